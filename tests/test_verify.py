"""Mirrors compared with the tables of their database: each planted difference is found and nothing else, in files and
through JDBC; what is wrong with a place, a file or a table is said.

The rows of the database are made here, and so are the messages: the two spell equal values in different ways.
"""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy
import pyarrow
import pyarrow.parquet
import pytest

from tests.landed import Project

if TYPE_CHECKING:
    from runner.engine.session import Spark

pytestmark = pytest.mark.usefixtures("spark", "interpreted", "lean")

ROWS = 120
NEWEST = datetime(2024, 3, 15, 2, 12, tzinfo=timezone.utc)
COLUMNS = {
    "id": "bigint",
    "part": "string",
    "amount": "decimal(12,3)",
    "number": "int",
    "length": "double",
    "weight": "float",
    "is_paid": "boolean",
    "note": "string",
    "day": "date",
    "local": "timestamp_ntz",
    "at": "timestamp",
    "picture": "binary",
    "document": "string",
}
MIRRORS = """
mirrors:
  - name: things
    of: {{source: orders, table: shop.things}}
    key: [id, part]
    columns: {columns}
    data_tests: [verified]
"""
TEXTS = ["", " ", "a", "A", "a ", "ä", "a\u0308", "null", "\\N", "it's", 'say "no"', "1,2", "two\nlines", "日本", "😀"]
Row = dict[str, Any]
# Kind, key, columns.
Difference = tuple[str, tuple[int, str], tuple[str, ...]]


def rows_of_database(chance: Random) -> list[Row]:
    """Random rows, values as Python has them; keys are spread, and some come twice but for their second part."""
    return [
        {
            "id": 1000 - 7 * (number // 2),
            "part": "ab"[number % 2],
            "amount": Decimal(chance.randint(-(10**9), 10**9)).scaleb(-chance.randint(0, 3)),
            "number": chance.randint(-(2**31), 2**31 - 1),
            "length": chance.choice([0.0, 0.1, 1e20, 1e-7, chance.uniform(-1e3, 1e3)]),
            "weight": float(numpy.float32(chance.uniform(-1e3, 1e3))),
            "is_paid": chance.random() < 0.5,
            "note": chance.choice(TEXTS),
            "day": date(1900, 1, 1) + timedelta(days=chance.randint(0, 80_000)),
            "local": datetime(2024, 3, 10, 1) + timedelta(microseconds=chance.randint(0, 10**11)),
            "at": NEWEST - timedelta(seconds=chance.randint(0, 10**8), microseconds=chance.choice([0, 500_000, 1])),
            "picture": chance.randbytes(chance.randint(0, 5)),
            "document": json.dumps({"b": chance.randint(0, 9), "a": [1.5, "x ", None]}),
            **{column: None for column in [*COLUMNS][2:] if chance.random() < 0.05},
        }
        for number in range(ROWS)
    ]


def told(row: Row) -> dict[str, str | None]:
    """A row as a message tells it, in the canonical text of values."""
    return {column: None if value is None else _told(value) for column, value in row.items()}


def _told(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case datetime(tzinfo=None):
            return value.isoformat(" ")
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case bytes():
            return base64.b64encode(value).decode()
    return str(value)


def messages(rows: Iterable[Row]) -> str:
    common = {"database": "shop", "table": "things", "pkNames": ["id", "part"], "type": "INSERT"}
    at = int(NEWEST.timestamp() * 1000)
    return "".join(json.dumps({**common, "es": at, "ts": at, "data": [told(row)]}) + "\n" for row in rows)


def planted(rows: list[Row]) -> tuple[list[Row], list[Difference]]:
    """The rows with twenty differences, and these."""
    rows = [dict(row) for row in rows]
    found: list[Difference] = []

    def change(column: str, new: Callable[[Any], Any], having: Callable[[Any], bool]) -> None:
        changed = {key for _, key, _ in found}
        row = next(one for one in rows if (one["id"], one["part"]) not in changed and having(one[column]))
        assert row[column] != new(row[column])
        row[column] = new(row[column])
        found.append(("different", (row["id"], row["part"]), (column,)))

    def is_there(value: Any) -> bool:
        return value is not None

    change("amount", lambda value: value + Decimal("0.001"), is_there)
    change("number", lambda value: value - 1, is_there)
    change("length", lambda value: float(numpy.nextafter(value, 1e9)), lambda value: value not in (None, 0.0))
    change("weight", lambda value: float(numpy.nextafter(numpy.float32(value), numpy.float32(1e9))), is_there)
    change("is_paid", lambda value: not value, is_there)
    change("note", lambda _: None, lambda value: value == "")
    change("note", lambda _: "", lambda value: value is None)
    change("note", str.lower, lambda value: value == "A")
    change("note", str.rstrip, lambda value: value == "a ")
    change("note", lambda _: "ä", lambda value: value == "a\u0308")
    change("day", lambda value: value + timedelta(days=1), is_there)
    change("local", lambda value: value + timedelta(microseconds=1), is_there)
    change("at", lambda value: value - timedelta(hours=1), is_there)
    change("picture", lambda value: value + b"\0", is_there)
    change("document", lambda value: value.replace("1.5", "1.51"), is_there)
    change("amount", lambda _: None, is_there)
    changed = {key for _, key, _ in found}
    for row in [one for one in rows if (one["id"], one["part"]) not in changed][-2:]:
        rows.remove(row)
        found.append(("extra", (row["id"], row["part"]), ()))
    for row in {**rows[0], "id": -5}, {**rows[0], "part": "c"}:
        rows.append(row)
        found.append(("missing", (row["id"], row["part"]), ()))
    Random(1).shuffle(rows)
    return rows, sorted(found)


# --- the rows of the database in files and in a database, each in its own spelling


def as_json(rows: list[Row]) -> bytes:
    def spelled(value: Any) -> Any:
        match value:
            case bool() | None:
                return value
            case Decimal():
                return f"{value:+.6f}"
            case datetime(tzinfo=None):
                return value.isoformat(timespec="microseconds")
            case datetime():
                return value.astimezone(timezone(timedelta(hours=8))).isoformat(" ", timespec="microseconds")
            case date():
                return f"{value} 00:00:00"
            case bytes():
                return f"\\x{value.hex()}"
        return value

    lines = []
    for row in rows:
        document = row["document"] and json.dumps(json.loads(row["document"]), sort_keys=True, separators=(",", ":"))
        others = json.dumps({name: spelled(value) for name, value in row.items() if name != "document"})
        lines.append(f'{others[:-1]}, "document": {document or "null"}}}\n')
    return "".join(lines).encode()


def as_csv(rows: list[Row]) -> bytes:
    out = io.StringIO()
    out.write(",".join(COLUMNS) + "\n")
    for row in rows:
        fields = ("" if value is None else f'"{_told(value).replace(chr(34), chr(34) * 2)}"' for value in row.values())
        out.write(",".join(fields) + "\n")
    assert len([*csv.reader(io.StringIO(out.getvalue()))]) == len(rows) + 1
    return out.getvalue().encode()


PARQUET = {
    "amount": pyarrow.decimal128(38, 18),
    "number": pyarrow.int64(),
    "weight": pyarrow.float32(),
    "at": pyarrow.timestamp("us", "UTC"),
}


def as_parquet(rows: list[Row]) -> bytes:
    arrays = {name: pyarrow.array([row[name] for row in rows], PARQUET.get(name)) for name in COLUMNS}
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(arrays), out)
    return out.getvalue()


FILES = {"things.jsonl": as_json, "SHOP.THINGS.csv": as_csv, "things.parquet": as_parquet}


class Derby:
    """A database in the memory of the JVM of the tests, whose driver Spark has."""

    TYPES: ClassVar = {
        "bigint": "bigint",
        "string": "varchar(200)",
        "decimal(12,3)": "decimal(30,6)",
        "int": "numeric(12,0)",
        "double": "double",
        "float": "real",
        "boolean": "boolean",
        "date": "date",
        "timestamp_ntz": "timestamp",
        "timestamp": "timestamp",
        "binary": "varchar(20) for bit data",
    }

    def __init__(self, spark: Spark, folder: Path, name: str) -> None:
        self.url, jvm = f"jdbc:derby:memory:{name}", spark.jvm
        jvm.java.lang.System.setProperty("derby.stream.error.file", str(folder / "derby.log"))
        driver = jvm.org.apache.derby.iapi.jdbc.AutoloadedDriver()
        self.connection = driver.connect(f"{self.url};create=true", jvm.java.util.Properties())

    def do(self, sql: str) -> None:
        statement = self.connection.createStatement()
        statement.execute(sql)
        statement.close()

    def create(self, table: str, columns: Mapping[str, str]) -> None:
        self.do(
            f"create table {table} ({', '.join(f'{chr(34)}{n}{chr(34)} {self.TYPES[t]}' for n, t in columns.items())})"
        )

    def insert(self, table: str, rows: list[Row]) -> None:
        for row in rows:
            self.do(f"insert into {table} values ({', '.join(map(self.literal, row.values()))})")

    @staticmethod
    def literal(value: Any) -> str:
        match value:
            case None:
                return "null"
            case bool() | int() | Decimal():
                return str(value)
            case float():
                return f"{value!r}" if "e" in repr(value) else f"{value!r}e0"
            case datetime():
                return f"timestamp('{value.replace(tzinfo=None).isoformat(' ', timespec='microseconds')}')"
            case date():
                return f"date('{value}')"
            case bytes():
                return f"x'{value.hex()}'"
        return "'{}'".format(str(value).replace("'", "''"))


# --- a project that has landed


class Landed(NamedTuple):
    project: Project
    rows: list[Row]


@pytest.fixture(scope="module")
def landed(lean: None, spark: Spark, tmp_path_factory: pytest.TempPathFactory) -> Landed:
    rows = rows_of_database(Random(20))
    settings = "name: shop\nsources: [{name: orders, format: lean, files: in/*}]\n"
    mirrors = MIRRORS.format(columns=json.dumps(COLUMNS))
    files = {"project.yml": settings, "in/1.jsonl": messages(rows), "models/mirrors.yml": mirrors}
    project = Project(tmp_path_factory.mktemp("verified"), files)
    project.ok("run", "-s", "+things")
    assert project.rows("select count(*) as n, count(_unfit) as unfit from things") == [{"n": ROWS, "unfit": 0}]
    return Landed(project, rows)


def differences(project: Project) -> list[Difference]:
    rows = project.rows("select * from verified_differences where mirror = 'things'")
    found = [(row["kind"], (int(row["key"]["id"]), row["key"]["part"]), tuple(row["columns"] or ())) for row in rows]
    return sorted(found)


@pytest.mark.parametrize("file", FILES)
def test_each_planted_difference_is_found_in_a_file_and_nothing_else(landed: Landed, file: str, tmp_path: Path) -> None:
    rows, expected = planted(landed.rows)
    assert len(expected) == 20
    (tmp_path / file).write_bytes(FILES[file](landed.rows))
    said = landed.project.ok("verify", "--against", str(tmp_path))
    assert "PASS test verified_things" in said and f"{ROWS} rows are the same" in said
    assert differences(landed.project) == []
    (tmp_path / file).write_bytes(FILES[file](rows))
    ran = landed.project.run("verify", "--against", str(tmp_path / file))
    assert ran.code == 1
    assert "20 rows differ: 2 missing here, 2 not in the database, 16 with other values (columns: " in ran.err
    assert "up to 2024-03-15T02:12:00Z" in ran.err
    assert differences(landed.project) == expected


@pytest.mark.parametrize("words", [(), ("--rows", "10"), ("--rows", "25", "--parallel", "3")])
def test_each_planted_difference_is_found_in_a_database(landed: Landed, spark, words, tmp_path: Path) -> None:
    rows, expected = planted(landed.rows)
    database = Derby(spark, tmp_path, tmp_path.name)
    database.do('create schema "shop"')
    database.create('"shop"."things"', {**COLUMNS, "unmirrored": "int"})
    database.insert('"shop"."things"', [{**row, "unmirrored": 1} for row in rows])
    ran = landed.project.run("verify", "--against", database.url, *words)
    assert ran.code == 1 and differences(landed.project) == expected
    assert f"120 rows read of shop.things of {database.url}" in ran.err
    assert "columns that the mirror lacks: unmirrored" in ran.err
    verified = landed.project.rows("select * from verified")
    assert [(row["rows"], row["differences"], row["open"]) for row in verified] == [(120, 20, 0)]
