"""Files of rows in the forms of dumps: what the documents of databases say that they write is what is read."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as some

from runner.errors import RunnerError, Where
from runner.functions.row_files import RowFiles, count_rows, row_messages
from runner.project.dumps import read_place
from runner.project.inputs import Place
from runner.project.variables import Filler
from runner.secrets import Secrets
from runner.yaml_text import Yaml

NAMES = ("id", "a b", "ü")
TABLES = ((("shop", "orders"), NAMES),)
CSV, TEXT = RowFiles("csv", tables=TABLES), RowFiles("text", False, "\\N", TABLES)
# No surrogates, which are no characters; the characters with a meaning in the forms come often.
TEXTS = some.text(some.one_of(some.sampled_from('\\\t\n\r",N0.'), some.characters(exclude_categories=["Cs"])))
ROWS = some.lists(some.tuples(*[some.none() | TEXTS] * len(NAMES)), max_size=8)
Rows = Sequence[Sequence[str | None]]


def read(content: bytes, files: RowFiles, name: str = "file:/d/orders.x") -> list[dict[str, Any]]:
    messages = [json.loads(message) for message in row_messages(name, content, files)]
    assert count_rows(name, content, files) == len(messages)
    assert all(message.pop("table") == "orders" for message in messages)
    return messages


def read_rows(content: bytes, files: RowFiles) -> list[tuple[str | None, ...]]:
    messages = read(content, files)
    assert all(message.keys() == {"schema", "row"} and message["schema"] == "shop" for message in messages)
    return [tuple(message["row"].values()) for message in messages]


def as_mysqldump(rows: Rows) -> bytes:
    r"""As `SELECT ... INTO OUTFILE` writes, which is what --tab uses: before a tab, a newline and a backslash stands a
    backslash, NUL is \0, null is \N.
    """

    def field(value: str | None) -> str:
        if value is None:
            return "\\N"
        return "".join({"\0": "\\0"}.get(c, f"\\{c}" if c in "\\\t\n" else c) for c in value)

    return "".join("\t".join(map(field, row)) + "\n" for row in rows).encode()


def as_copy(rows: Rows) -> bytes:
    r"""As COPY writes in its text format: \b \f \n \r \t \v and \\ for these characters, \N for null; no NUL."""
    letters = {"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", "\v": "v", "\\": "\\"}

    def field(value: str | None) -> str:
        return "\\N" if value is None else "".join(f"\\{letters[c]}" if c in letters else c for c in value)

    return "".join("\t".join(map(field, row)) + "\n" for row in rows).encode() + b"\\.\n"


def as_copy_csv(rows: Rows) -> bytes:
    """As COPY writes in its csv format: null is empty without quotes, and an empty text has quotes."""

    def field(value: str | None) -> str:
        if value is None:
            return ""
        quoted = value == "" or any(c in value for c in '",\r\n')
        return '"' + value.replace('"', '""') + '"' if quoted else value

    lines = [NAMES, *rows]
    return "".join(",".join(map(field, line)) + "\n" for line in lines).encode()


@given(ROWS)
def test_what_databases_write_is_read(rows: Rows) -> None:
    assert read_rows(as_mysqldump(rows), TEXT) == rows
    without_nul = [tuple(value and value.replace("\0", "") for value in row) for row in rows]
    assert read_rows(as_copy(without_nul), TEXT) == without_nul
    assert read_rows(as_copy_csv(rows), CSV) == rows


@given(ROWS)
def test_what_python_writes_is_read(rows: Rows) -> None:
    """Also with CR and LF, and with a mark at the beginning; a value that is not there is an empty one."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerows([NAMES, *rows])
    wanted = [tuple(value or None for value in row) for row in rows]
    found = read_rows(b"\xef\xbb\xbf" + out.getvalue().encode(), CSV)
    # The writer puts an empty text of a row in quotes only where nothing else is in the row.
    assert [tuple(value or None for value in row) for row in found] == wanted


def problems(content: bytes, files: RowFiles) -> list[tuple[str, str]]:
    return [(one["line"], one["problem"]) for one in read(content, files) if "problem" in one]


def test_lines_that_are_no_rows_are_named_and_others_are_read() -> None:
    content = b'id,a b,\xc3\xbc\n1,"x\ny",z\n2,b\n3,b,c,d\n4,"b"x,c\n5,\xff,c\n\n6,b,c\n7,"no end\n'
    assert problems(content, CSV) == [
        ("4", "2 values, and the table has 3 columns"),
        ("5", "4 values, and the table has 3 columns"),
        ("6", "a value in quotes does not end with a quote before a comma or the end of a line"),
        ("7", "bytes that are not UTF-8"),
        ("10", "a value in quotes does not end with a quote before a comma or the end of a line"),
    ]
    assert [one["row"]["id"] for one in read(content, CSV) if "row" in one] == ["1", "6"]
    assert problems(b"1\ta\\\nb\tc\n2\n3\t\xff\tc\n4\tb\tc\\", TEXT) == [
        ("3", "1 value, and the table has 3 columns"),
        ("4", "bytes that are not UTF-8"),
        ("5", "a backslash at the end of the file"),
    ]
    assert problems(b'{"id":1}\n\n[1]\n{"id":\n', RowFiles("lines"))[0] == (
        "3",
        "no object, with a member for each column",
    )
    assert len(problems(b'{"id":1}\n\n[1]\n{"id":\n', RowFiles("lines"))) == 2


@pytest.mark.parametrize(
    ("content", "files", "says"),
    [
        (b"id,id\n1,2\n", CSV, 'names the column "id" twice'),
        (b"id,\n1,2\n", CSV, "one has no name"),
        (b"1\t2\n", RowFiles("text", False, "\\N"), "declare those of its table"),
        (b"PAR1", RowFiles("parquet"), "not Parquet or is damaged"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_message(content: bytes, files: RowFiles, says: str) -> None:
    ((_, problem),) = problems(content, files)
    assert says in problem


def test_files_and_their_tables() -> None:
    files = RowFiles("csv", tables=((("shop", "orders"), ()), (("depot", "items"), ())), taken_at="T")

    def tables(name: str) -> Any:
        return json.loads(next(row_messages(name, b"id\n1\n", files)))

    assert tables("file:/d/items.csv") == {"table": "items", "schema": "depot", "taken_at": "T", "row": {"id": "1"}}
    assert tables("file:/d/a.b.csv") == {"table": "b", "schema": "a", "taken_at": "T", "row": {"id": "1"}}
    packed = next(row_messages("s3a://d/orders.csv.gz", gzip.compress(b"id\n1\n"), files))
    assert json.loads(packed)["schema"] == "shop"
    assert read(b"id\n1\n\n2\n", RowFiles("csv", tables=((("orders",), ()),)))[1] == {"row": {"id": None}}
    assert read(b"1;x\n", RowFiles("csv", False, "x", ((("orders",), ("id",)),))) == [{"row": {"id": "1;x"}}]
    assert read(b"1,x\n", RowFiles("csv", False, "x", ((("orders",), ("a", "b")),))) == [{"row": {"a": "1", "b": None}}]


UTC = datetime.timezone.utc
# Type, value, the name of the type, the text.
TYPED: list[tuple[pa.DataType, Any, str, str]] = [
    (pa.int8(), -5, "smallint", "-5"),
    (pa.uint64(), 2**64 - 1, "numeric(20,0)", "18446744073709551615"),
    (pa.decimal128(20, 8), Decimal("0.00000001"), "numeric(20,8)", "0.00000001"),
    (pa.decimal128(10, 2), Decimal("-12.50"), "numeric(10,2)", "-12.50"),
    (pa.float32(), 0.1, "real", "0.1"),
    (pa.float64(), 1e-7, "double precision", "1e-7"),
    (pa.float64(), float("-inf"), "double precision", "-Infinity"),
    (pa.bool_(), False, "boolean", "false"),
    (pa.date32(), datetime.date(2024, 2, 29), "date", "2024-02-29"),
    (pa.timestamp("ms"), datetime.datetime(2024, 1, 1, 10, 0, 0, 500000), "timestamp", "2024-01-01 10:00:00.5"),
    (pa.timestamp("s"), datetime.datetime(1850, 1, 1, 10), "timestamp", "1850-01-01 10:00:00"),
    (
        pa.timestamp("us", "Asia/Shanghai"),
        datetime.datetime(2024, 1, 1, 2, tzinfo=UTC),
        "timestamp with time zone",
        "2024-01-01T02:00:00Z",
    ),
    (pa.time64("us"), datetime.time(10, 0, 0, 120000), "time", "10:00:00.12"),
    (pa.binary(), b"\x0a\xff", "bytea", "\\x0aff"),
    (pa.large_string(), "x", "text", "x"),
    (pa.dictionary(pa.int8(), pa.string()), "x", "text", "x"),
    (pa.list_(pa.decimal128(5, 2)), [Decimal("1.50"), None], "json", "[1.50,null]"),
    (pa.map_(pa.string(), pa.int64()), [("k", 1)], "json", '{"k":1}'),
    (pa.struct({"d": pa.date32()}), {"d": datetime.date(2024, 2, 29)}, "json", '{"d":"2024-02-29"}'),
]


def test_values_of_parquet() -> None:
    columns = {str(nth): pa.array([value, None], kind) for nth, (kind, value, *_) in enumerate(TYPED)}
    out = io.BytesIO()
    pa.parquet.write_table(pa.table(columns), out)
    first, second = read(out.getvalue(), RowFiles("parquet"))
    assert first["types"] == second["types"] == {str(nth): name for nth, (*_, name, _) in enumerate(TYPED)}
    assert first["row"] == {str(nth): text for nth, (*_, text) in enumerate(TYPED)}
    assert set(second["row"].values()) == {None}
    # The old kind of timestamps says nothing of zones, and stands for instants.
    out = io.BytesIO()
    moments = pa.table({"t": pa.array([datetime.datetime(2024, 1, 1, 10)], pa.timestamp("us"))})
    pa.parquet.write_table(moments, out, use_deprecated_int96_timestamps=True)
    (old,) = read(out.getvalue(), RowFiles("parquet"))
    assert old == {"types": {"t": "timestamp with time zone"}, "row": {"t": "2024-01-01T10:00:00Z"}}


SERVER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
# 2026-11-28T10:00:00Z in microseconds since 1970.
TEN_O_CLOCK = 1_795_860_000_000_000
PLACES: list[tuple[Any, Place]] = [
    ("mysql-bin.000003:1234", Place("numbers", (3, 1234))),
    ({"place": "a.b.000900:4", "log": "1"}, Place("numbers", (900, 4), ("1",))),
    ("1234567", Place("numbers", (1234567,))),
    # As the function number_of_lsn reads it.
    ("00000027:00000758:0005", Place("numbers", ((0x27 * 2**32 + 0x758) * 2**16 + 5,))),
    (
        f"{SERVER.upper()}:1-77:80, {SERVER}:tag:3",
        Place("ids", ids=((SERVER, 1, 77), (SERVER, 80, 80), (f"{SERVER}:tag", 3, 3))),
    ),
    ("0-1-57,1-2-9", Place("ids", ids=(("0", 0, 57), ("1", 0, 9)))),
    ("748:752:749,750", Place("transactions", until=752, open=(749, 750))),
    ({"place": "748:748:", "time": "2026-11-28T18:00:00+08:00"}, Place("transactions", until=748, time=TEN_O_CLOCK)),
    ("2026-11-28T10:00:00Z", Place("time", time=TEN_O_CLOCK)),
    ("2026-11-28 10:00:00.5+00:00", Place("time", time=TEN_O_CLOCK + 500_000)),
]


@pytest.mark.parametrize(("written", "place"), PLACES)
def test_places_of_dumps(written: Any, place: Place) -> None:
    assert read_place(Yaml(written, {(): Where(Path("project.yml"), 1)}), Filler({}, None, Secrets())) == place


@pytest.mark.parametrize("written", ["", "2026-11-28", "2026-11-28T10:00:00", "x:1", f"{SERVER}:", "1,,2", "0/1", "-1"])
def test_what_is_no_place(written: str) -> None:
    with pytest.raises(RunnerError) as raised:
        read_place(Yaml(written, {(): Where(Path("project.yml"), 1)}), Filler({}, None, Secrets()))
    assert raised.value.code == "source-at"
