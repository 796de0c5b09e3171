"""Mirrors compared with the tables of their database: each planted difference is found and nothing else, in files and
through JDBC; what is wrong with a place, a file or a table is said.

The rows of the database are made here, and so are the messages: the two spell equal values in different ways.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import shutil
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
import yaml

from tests import pages
from tests.landed import Project
from tests.storages import TARGETS

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


# --- what is left out, and what cannot be compared


def test_rows_that_changed_later_are_left_out(landed: Landed, tmp_path: Path) -> None:
    """Of a row that is gone nothing tells when it went."""
    old, new = NEWEST - timedelta(days=1), NEWEST + timedelta(seconds=1)
    rows = [{**row, "number": 7, "at": new} for row in landed.rows[:3]] + landed.rows[4:]
    rows += [{**landed.rows[0], "id": number, "at": at} for number, at in ((1, new), (2, old), (3, NEWEST))]
    (tmp_path / "things.jsonl").write_bytes(as_json(rows))
    ran = landed.project.run("verify", "--against", str(tmp_path), "--changed-column", "AT")
    assert ran.code == 1 and "3 rows differ: 2 missing here, 1 not in the database" in ran.err
    assert "left out, since they have changed after that: 4 rows" in ran.err
    gone = ("extra", (landed.rows[3]["id"], landed.rows[3]["part"]), ())
    assert differences(landed.project) == [gone, ("missing", (2, "a"), ()), ("missing", (3, "a"), ())]
    assert landed.project.rows("select differences, open from verified") == [{"differences": 3, "open": 4}]
    said = landed.project.run("verify", "--against", str(tmp_path), "--changed-column", "updated").err
    assert "warning[verify-columns]: " in said and 'has no column "updated"' in said and "7 rows differ" in said


def test_values_are_kept_only_if_asked_for_and_never_printed(landed: Landed, tmp_path: Path) -> None:
    rows = [{**landed.rows[0], "note": "tr0ut-and-gill"}, *landed.rows[1:]]
    (tmp_path / "things.csv").write_bytes(as_csv(rows))
    query = "select in_database, in_mirror from verified_differences"
    for words, expected in {
        (): [{"in_database": None, "in_mirror": None}],
        ("--show-values",): [
            {"in_database": {"note": "tr0ut-and-gill"}, "in_mirror": {"note": landed.rows[0]["note"]}}
        ],
    }.items():
        ran = landed.project.run("verify", "--against", str(tmp_path), *words)
        assert ran.code == 1 and "1 row differs: 1 with other values (columns: note)" in ran.err
        assert "tr0ut" not in ran.err + ran.out and landed.project.rows(query) == expected


def test_rows_that_come_twice(landed: Landed, tmp_path: Path) -> None:
    (tmp_path / "things.jsonl").write_bytes(as_json([*landed.rows, landed.rows[0]]))
    assert landed.project.run("verify", "--against", str(tmp_path)).code == 1
    assert differences(landed.project) == [("missing", (1000, "a"), ())]


def test_files_with_fewer_columns_and_lines_that_cannot_be_read(landed: Landed, tmp_path: Path) -> None:
    project, lines = landed.project, as_json(landed.rows).decode().splitlines()
    fewer = [json.loads(line) for line in lines]
    file = tmp_path / "things.jsonl"
    file.write_text("\n".join(json.dumps({n: v for n, v in row.items() if n not in ("note", "at")}) for row in fewer))
    said = project.ok("verify", "--against", str(file))
    assert f'warning[verify-columns]: {file} lacks columns of "things": note, at' in said
    assert "120 rows are the same" in said and "1 warning" in said
    assert project.rows("select not_compared from verified") == [{"not_compared": ["note", "at"]}]
    file.write_text("\n".join(json.dumps({n: v for n, v in row.items() if n != "part"}) for row in fewer))
    ran = project.run("verify", "--against", str(file))
    assert ran.code == 1 and "WARN test verified_things" in ran.err and "lacks the key: part" in ran.err
    file.write_text("\n".join([*lines[:6], lines[6][:-1], *lines[7:]]))
    ran = project.run("verify", "--against", str(file))
    assert ran.code == 1 and 'error[verify-file]: "things.jsonl" must have one JSON object a line' in ran.err
    assert f"--> {file}:7" in ran.err
    table = tmp_path / "things.csv"
    table.write_text('id,part\n1,"a\nb"\n2\n')
    ran = project.run("verify", "--against", str(table))
    assert ran.code == 1 and f'"things.csv" has 2 columns, and this row 1\n        --> {table}:4' in ran.err


MORE = """
mirrors:
  - {name: notes, of: {source: orders, table: shop.notes}, without_key: count, columns: {note: string, n: int}}
  - {name: once, of: {source: orders, table: shop.notes}, without_key: whole_row, columns: {note: string, n: int}}
  - {name: added, of: {source: orders, table: shop.notes}, without_key: append, columns: {note: string, n: int}}
  - {name: large, of: {source: orders, table: shop.items}, key: [id], columns: {id: int, n: int}, where: n > 1}
  - {name: unbuilt, of: {source: orders, table: shop.items}, key: [id], columns: {id: int, n: int}}
"""


def test_mirrors_without_a_key_with_a_condition_and_that_are_not_there(lean: None, tmp_path: Path) -> None:
    common = {"database": "shop", "type": "INSERT", "es": 1, "ts": 1, "pkNames": None}
    notes = [{"note": "a", "n": "1"}, {"note": "a", "n": "1"}, {"note": "b", "n": None}]
    items = [{"id": "1", "n": "1"}, {"id": "2", "n": "2"}, {"id": "3", "n": None}]
    told = [
        *({**common, "table": "notes", "data": [row], "seq": number} for number, row in enumerate(notes)),
        *({**common, "table": "items", "data": [row], "pkNames": ["id"]} for row in items),
    ]
    files = {
        "project.yml": "name: shop\nsources: [{name: orders, format: lean, files: in/*}]\n",
        "in/1.jsonl": "\n".join(map(json.dumps, told)),
        "models/mirrors.yml": MORE,
        "dump/notes.csv": "n,note\n1,a\n,b\n1,a\n",
        "dump/items.csv": "id,n\n1,1\n2,02\n3,\n4,-5\n",
    }
    project = Project(tmp_path, files)
    project.ok("run", "-s", "+notes", "+once", "+added", "+large")
    ran = project.run("verify", "--against", "dump")
    assert ran.code == 1
    statuses = {word: line for line in ran.err.splitlines() for word in line.split() if word.startswith("verified_")}
    assert {name: line.split()[4] for name, line in statuses.items() if " test " in line} == {
        "verified_notes": "PASS",
        "verified_once": "PASS",
        "verified_added": "WARN",
        "verified_large": "PASS",
        "verified_unbuilt": "ERROR",
    }
    assert "not compared: the mirror has no key: name its key" in ran.err
    assert '"unbuilt" has not been built yet: runner run -s unbuilt' in ran.err
    assert {row["mirror"]: row["rows"] for row in project.rows("select * from verified")} == {
        "notes": 3,
        "once": 2,
        "large": 1,
    }
    project.write({"dump/notes.csv": "n,note\n1,a\n,b\n", "dump/items.csv": "id,n\n2,2\n4,5\n"})
    ran = project.run("verify", "--against", "dump", "-s", "notes", "once", "large")
    assert "1 row differs: 1 not in the database" in ran.err and "1 row differs: 1 missing here" in ran.err
    found = project.rows("select mirror, kind, key from verified_differences order by mirror")
    assert found == [
        {"mirror": "large", "kind": "missing", "key": {"id": "4"}},
        {"mirror": "notes", "kind": "extra", "key": {"note": "a", "n": "1"}},
    ]
    # A folder that lacks the file of one of two tables.
    (project / "dump/items.csv").unlink()
    ran = project.run("verify", "--against", "dump", "-s", "once", "large")
    assert ran.code == 0 and 'not compared: there is no file of the table "shop.items" in dump' in ran.err


# --- databases that cannot be reached


def test_databases_that_cannot_be_reached(landed: Landed, spark: Spark, tmp_path: Path, monkeypatch) -> None:
    Derby(spark, tmp_path, "without-things")
    monkeypatch.setenv("READER", "tr0ut-and-gill")
    login = ("--user", "reader", "--password-env", "READER")
    ran = landed.project.run("verify", "--against", "jdbc:derby:memory:nowhere;password=k3y-of-it", *login)
    assert ran.code == 2
    assert 'error[verify-connection]: no connection to "jdbc:derby:memory:nowhere": Database' in ran.err
    assert "tr0ut" not in ran.err and "k3y" not in ran.err
    ran = landed.project.run("verify", "--against", "jdbc:postgresql://localhost/shop", *login)
    assert ran.code == 2 and 'error[verify-connection]: there is no driver for "jdbc:postgresql:"' in ran.err
    assert 'hint: packages: [org.postgresql:postgresql:42.7.8] in project.yml, under the target "local"' in ran.err
    ran = landed.project.run("verify", "--against", "jdbc:unheard_of://localhost/shop")
    assert ran.code == 2 and "packages: [GROUP:ARTIFACT:VERSION of the driver]" in ran.err
    ran = landed.project.run("verify", "--against", "{{ env_var('WHERE', 'jdbc:derby:memory:without-things') }}")
    assert ran.code == 1
    assert 'not compared: there is no table "shop.things" in jdbc:derby:memory:without-things' in ran.err


# --- the data test


def test_the_data_test(landed: Landed, tmp_path: Path, monkeypatch) -> None:
    project = landed.project
    (tmp_path / "things.parquet").write_bytes(as_parquet(landed.rows))
    (tmp_path / "other.parquet").write_bytes(as_parquet(landed.rows[1:]))
    with project.put_back():
        for table in ("verified", "verified_differences"):
            shutil.rmtree(project / f"warehouse/{table}", ignore_errors=True)
        assert project.run("test", "-s", "verified_things").code == 1
        assert project.rows("select * from verified") == []
        project.ok("verify", "--against", str(tmp_path))
        project.ok("test", "-s", "verified_things")
        assert project.run("verify", "--against", str(tmp_path / "other.parquet")).code == 1
        ran = project.run("test", "-s", "verified_things")
        assert ran.code == 1 and "mirror: things, verified_at: " in ran.err and "differences: 1" in ran.err
        project.ok("verify", "--against", str(tmp_path))
        project.ok("test", "-s", "verified_things")
        # As if it had been eight days ago.
        longer = datetime.now(timezone.utc) - timedelta(days=8)
        monkeypatch.setattr("runner.run.verify.iso", lambda _: longer.isoformat())
        project.ok("verify", "--against", str(tmp_path))
        assert project.run("test", "-s", "verified_things").code == 1
        properties = (project / "models/mirrors.yml").read_text()
        project.write({"models/mirrors.yml": properties.replace("[verified]", "[verified: {within_days: 9}]")})
        project.ok("test", "-s", "verified_things")


# --- the page

PAGE = Path(__file__).parent.parent / "docs/verify.md"
SHOP = Path(__file__).parent.parent / "formats/cases/canal/shop.messages.jsonl"


def test_the_page_shows_what_comes_out(tmp_path: Path) -> None:
    settings = f"name: shop\nsources: [{{name: shop, format: canal, zone: Asia/Shanghai, files: {SHOP}}}]\n"
    project = Project(tmp_path, {"project.yml": settings})
    project.ok("run", "-s", "shop_to_changelog")
    project.ok("mirrors", "suggest", "--table", "shop.orders")
    project.ok("run", "-s", "orders")
    # tests/test_repairs.py does what the page says of repairs.
    found = [block for block in pages.blocks(PAGE) if block not in pages.section(PAGE, "Repair")]
    pages.write_files(found, tmp_path)
    shown = []
    for block in found:
        for words in pages.commands([block]):
            if not any("jdbc:" in word for word in words) and words != ["run"]:
                ran = project.run(*words)
                assert ran.code == (words[0] == "verify"), ran.err
                shown.append(re.sub(r"^\d\d:\d\d:\d\d  | \[[\d.]+s\]$", "", ran.out or ran.err, flags=re.MULTILINE))
    texts = [block.text for block in found if block.kind == "text"]
    assert len(shown) == len(texts) == 2
    assert texts[0] in shown[0] and texts[1] == shown[1]


@pytest.mark.parametrize("storage", [pytest.param("delta", marks=pytest.mark.soak), "iceberg"])
def test_results_are_kept_in_other_storages(lean: None, tmp_path: Path, storage: str) -> None:
    """What was found of one mirror stays when another is verified."""
    common = {"database": "shop", "type": "INSERT", "es": 1, "ts": 1, "pkNames": ["id"]}
    told = [{**common, "table": table, "data": [{"id": "1"}]} for table in ("a", "b")]
    mirrors = [
        {"name": name, "of": {"source": "orders", "table": name}, "key": ["id"], "columns": {"id": "int"}}
        for name in "ab"
    ]
    sources = [{"name": "orders", "format": "lean", "files": "in/*"}]
    settings = {**yaml.safe_load(TARGETS), "target": storage, "sources": sources}
    files = {"in/1.jsonl": "\n".join(map(json.dumps, told)), "models/mirrors.yml": json.dumps({"mirrors": mirrors})}
    files |= {"project.yml": yaml.safe_dump(settings), "dump/a.csv": "id\n1\n2\n", "dump/b.csv": "id\n3\n"}
    project = Project(tmp_path, files)
    project.ok("run", "-s", "+a", "+b")
    for mirror in ("a", "b", "a"):
        assert project.run("verify", "-s", mirror, "--against", "dump").code == 1
    found = project.rows("select mirror, kind, key['id'] as id from verified_differences order by all")
    assert found == [
        {"mirror": "a", "kind": "missing", "id": "2"},
        {"mirror": "b", "kind": "extra", "id": "1"},
        {"mirror": "b", "kind": "missing", "id": "3"},
    ]
    assert [row["differences"] for row in project.rows("select * from verified order by mirror")] == [1, 2]
