"""A person's rows are erased: found in no file any more, other rows as they were, and messages that come again do not
bring them back.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from runner.engine.erasures import Erasure, of_tables
from runner.engine.files import LocalFiles
from runner.storage.parquet import exchange_files
from tests import pages
from tests.hidden import holding
from tests.landed import Project
from tests.storages import TARGETS
from tests.test_dumps_of_tables import jdbc_project

SPARK = pytest.mark.usefixtures("spark", "interpreted", "lean")

NAME, MAIL, OLD_MAIL = "Zephyrine Qux", "zq-4711@example.org", "zq-before@example.org"
PLANTED = (NAME, MAIL, OLD_MAIL)
# Folders that are not the runner's.
OF_SENDER = ("in", "dump")
SOURCES = """
sources:
  - {name: shop, format: mine, files: in/*.jsonl, keep_raw: all, dead_letters: {fail: null}}
"""
FILES = {
    "formats/mine.yml": "extends: canal\nabout: ours\n",
    "models/m.yml": """
mirrors:
  - name: customers
    of: {source: shop, table: shop.customers}
    key: [id]
    columns: {id: int, name: string, mail: string}
    history: true
    data_tests: [mirrored]
  - {name: orders, of: {source: shop, table: shop.orders}, key: [id], columns: {id: int, name: string, mail: string}}
models:
  - name: told
    columns:
      - name: key_text
        data_tests: [{accepted_values: {values: [x], config: {store_failures: true, severity: warn}}}]
  - name: names
    columns: [{name: name, data_tests: [{accepted_values: {values: [x], config: {severity: warn}}}]}]
""",
    "models/told.sql": "{{ config(materialized='incremental') }}\n"
    "select source, op, key_text, after from {{ new_rows('changelog') }}\n",
    "models/names.sql": "{{ config(materialized='table') }}\nselect id, name from {{ ref('customers') }}\n",
}
COLUMNS = {"id": "int", "name": "varchar(40)", "mail": "varchar(40)"}
BEFORE_ALL = 1_710_496_800_000


def change(
    number: int, kind: str, *rows: tuple[str, str, str], old: Mapping[str, str] = {}, table: str = "customers"
) -> str:
    """A message of Canal; `number` counts seconds."""
    data = [dict(zip(COLUMNS, row)) for row in rows]
    at = number if number > BEFORE_ALL else BEFORE_ALL + 1000 * number
    told = {"database": "shop", "table": table, "type": kind, "es": at, "ts": at + 5, "pkNames": ["id"]}
    return json.dumps({**told, "mysqlType": COLUMNS, "data": data, "old": [old] if old else None})


FIRST = [
    change(1, "INSERT", ("7", NAME, OLD_MAIL), ("8", "Bob", "bob@b.org")),
    change(2, "UPDATE", ("7", NAME, MAIL), old={"mail": OLD_MAIL}),
    change(3, "INSERT", ("9", "Carl", "carl@c.org")),
    # Another row's key becomes this one, and this one's another.
    change(4, "UPDATE", ("7", NAME, MAIL), old={"id": "9", "name": "Carl", "mail": "carl@c.org"}),
    change(5, "UPDATE", ("70", "Dora", "dora@d.org"), old={"id": "7", "name": NAME, "mail": MAIL}),
    change(6, "INSERT", ("7", NAME, MAIL)),
    change(11, "ODD", ("7", NAME, MAIL)),
    change(12, "ODD", ("10", "Otto", "otto@o.org")),
    change(13, "ODD", ("7", "a row of another table", "x@y.org"), table="orders"),
    '{"database": "shop", "table": "customers", "data": [{"id": "7", "name": "' + NAME,
    change(14, "INSERT", ("7", "a row of another table", "x@y.org"), table="orders"),
    change(15, "UPDATE", ("8", "Bobby", "bob@b.org"), old={"name": "Bob"}),
]
SECOND = [
    change(20, "INSERT", ("11", "Eve", "eve@e.org")),
    change(21, "DELETE", ("7", NAME, MAIL)),
    change(22, "INSERT", ("7", NAME, MAIL)),
]
MIRRORS = ("customers", "customers_history", "orders", "names")
ALL_ROWS = "select * except (run_id, batch, loaded_at, landed_on) from shop_to_changelog"
AS_JSON = "to_json(struct(*), map('ignoreNullFields', 'false'))"
# The key 7 is an `int` in mirrors.
KEY = ("id", "7")


def lines(messages: list[str]) -> str:
    return "\n".join(messages) + "\n"


def tables(made: Project, *target: str) -> dict[str, list[Mapping[str, Any]]]:
    parts = [f"select '{name}' as name, {AS_JSON} as row, null as place from {name}" for name in MIRRORS]
    changes = f"select 'changes' as name, {AS_JSON} as row, seq as place from ({ALL_ROWS})"
    rows = made.rows(" union all ".join([*parts, changes]) + " order by name, place, row", *target)
    return {name: [json.loads(row["row"]) for row in rows if row["name"] == name] for name in (*MIRRORS, "changes")}


def is_erased(row: Mapping[str, Any]) -> bool:
    """Whether a row of the changelog tells the key, by hand."""
    maps = [row[name] or {} for name in ("key", "old_key", "before", "after")]
    return row["kind"] == "row" and row["table_name"] == "customers" and any(KEY in one.items() for one in maps)


def certificate(made: Project, storage: str) -> dict[str, Any]:
    (path,) = (made / f"lake/{storage}/_certificates").iterdir()
    return json.loads(path.read_text())


def verified(made: Project, name: str, *target: str) -> str:
    """What is said of the mirror beside the table as the database has it, where the row 7 has a name."""
    rows = [("7", name, MAIL), ("8", "Bobby", "bob@b.org"), ("11", "Eve", "eve@e.org"), ("70", "Dora", "dora@d.org")]
    made.write({"dump/customers.jsonl": lines([json.dumps(dict(zip(COLUMNS, row))) for row in rows])})
    return made.run("verify", "-s", "customers", "--against", "dump", "--show-values", *target).err


def check_before(made: Project, before: Mapping[str, list[Mapping[str, Any]]], *target: str) -> None:
    """Mistakes, and what would be removed: nothing changes."""
    assert "error[erase-table]: no row of a table" in made.run("erase", "--table", "x", "--key", "id=7", *target).err
    wrong = made.run("erase", "--table", "customers", "--key", "name=x", *target)
    assert 'error[erase-key]: the key of "shop.customers" is id, not name' in wrong.err
    planned = made.run("erase", "--table", "customers", "--key", "id=7", *target, "--dry-run", "--output", "json")
    assert planned.code == 0, planned.err
    plan = {(row["place"], row["what"]): row["rows"] for row in map(json.loads, planned.out.splitlines())}
    changes = [row for row in before["changes"] if is_erased(row)]
    assert plan["shop_to_changelog", "rows"] == len(changes) == 7
    assert plan["shop_to_changelog", "rows that keep another key"] == 2
    assert plan["shop_to_changelog", "dead letters"] == 2
    assert "1 row differs: 1 with other values (columns: name)" in verified(made, f"{NAME} II", *target)
    assert tables(made, *target) == before


@SPARK
@pytest.mark.parametrize("storage", ["parquet", "delta", pytest.param("iceberg", marks=pytest.mark.soak)])
def test_nothing_is_left_of_an_erased_key(tmp_path: Path, storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target = ("-t", storage)
    erase = ("erase", "--table", "customers", "--key", "id=7", *target)
    made = Project(tmp_path / "made", {"project.yml": TARGETS + SOURCES, **FILES, "in/1.jsonl": lines(FIRST)})
    made.ok("build", *target)
    made.write({"in/2.jsonl": lines(SECOND)})
    made.ok("run", *target)
    before = tables(made, *target)
    assert len(holding(made.folder, PLANTED, OF_SENDER)) > 5

    if storage == "parquet":
        check_before(made, before, *target)

    # Interrupted before each step, and in the midst of one: no run goes on until it is finished.
    steps = ["changelogs", "readers", "kept", "search", "end"] if storage == "parquet" else []
    for number, step in enumerate(steps):
        with monkeypatch.context() as patch:
            at = "runner.storage.parquet.exchange_files" if step == "readers" else f"runner.run.erase.Erasing.{step}"
            patch.setattr(at, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            words = erase if number != 2 else ("erase", "--resume", *target)
            assert made.run(*words, "--purge").code == 130
        refused = made.run("run", *target)
        assert refused.code == 2 and f"runner erase -t {storage} --resume finishes it" in refused.err
    if steps:
        assert "error[erase-unfinished]" in made.run(*erase[:4], "id=8", *target).err
    ran = made.run(*erase, "--purge")
    assert ran.code == 0, ran.err
    assert "not reached: files of shop: " in ran.err

    # Found nowhere, and all else is as it was.
    assert holding(made.folder, PLANTED, OF_SENDER) == []
    after = tables(made, *target)
    for name in ("customers", "customers_history", "names"):
        assert after[name] == [row for row in before[name] if row["id"] != 7], name
    assert after["orders"] == before["orders"]
    places = {json.dumps([row["origin"]["file"], row["seq"]["arrival"]]): is_erased(row) for row in before["changes"]}
    assert len(places) == len({json.dumps([row["origin"]["file"], row["seq"]["arrival"]]) for row in after["changes"]})
    kept = [row for row in before["changes"] if not is_erased(row) and row["kind"] == "row"]
    now = [row for row in after["changes"] if row["kind"] == "row"]
    moved = [row for row in now if row["key"]["id"] in ("70",) or row["op"] == "delete"]
    # Its message had a row of the person: the text of the message is gone.
    shared = [{**row, "raw": None} if row["key"]["id"] == "8" and row["op"] == "insert" else row for row in kept]
    assert [row for row in now if row not in moved] == shared
    assert [(row["op"], row["key"], row["before"], row["after"]) for row in moved] == [
        ("delete", {"id": "9"}, {"id": "9", "name": "Carl", "mail": "carl@c.org"}, None),
        ("update", {"id": "70"}, None, {"id": "70", "name": "Dora", "mail": "dora@d.org"}),
    ]
    letters = [row["raw"] for row in after["changes"] if row["kind"] == "dead_letter"]
    assert letters == [FIRST[7], FIRST[8]]
    told = certificate(made, storage)
    assert (told["left"], told["purged"]) == ([], True) and '"7"' not in json.dumps(told)
    assert told["removed"]["shop_to_changelog"]["rows"] == 7 and told["removed"]["customers"]["rows"] == 1
    made.ok("test", "-s", "conserved_shop", "mirrored_customers", "mirrored_customers_history", *target)

    if storage == "parquet":
        assert told["removed"]["verified_differences"] == {"rows": 1}
        said = verified(made, NAME, *target)
        assert "PASS test verified_customers" in said
        assert "missing here because they were erased (runner erase): 1 row" in said

    # Repeats stay out, also with a spec that understands more; what the database wrote later lands.
    now_ms = int(datetime.now(timezone.utc).timestamp() * 1000) + 1000
    made.write({"formats/mine.yml": "extends: canal\nabout: ours\nop: {cases: {ODD: insert}}\n"})
    made.write({"in/4.jsonl": lines([*FIRST, *SECOND, change(now_ms, "INSERT", ("7", "Another One", "new@n.org"))])})
    if storage == "parquet":
        made.ok("reprocess", "shop", *target)
        assert holding(made.folder, PLANTED, OF_SENDER) == []
    made.ok("run", "--full-refresh", *target)
    again = tables(made, *target)
    assert [row["name"] for row in again["customers"] if row["id"] == 7] == ["Another One"]
    assert sorted(row["id"] for row in again["customers"]) == [7, 8, 10, 11, 70]
    assert holding(made.folder, PLANTED, OF_SENDER) == []
    # Of seven messages the first row is gone, in each of their two files.
    assert sum(row["op"] == "erased" for row in again["changes"]) == 14


@SPARK
def test_the_rows_of_a_query_go_too(tmp_path: Path) -> None:
    """Its result is in a file beside the tables. A row without a time stays out when the query is asked again."""
    made = jdbc_project(tmp_path, f"jdbc:sqlite:{tmp_path}/shop.db")
    with sqlite3.connect(tmp_path / "shop.db") as database:
        database.execute("create table s_t(id integer primary key, note text)")
        database.execute(f"insert into s_t values (7, '{NAME}'), (8, 'b')")
        database.commit()
    made.ok("run")
    assert [path for path in holding(made.folder, [NAME]) if "_results" in path]
    made.ok("erase", "--table", "t", "--key", "id=7", "--purge")
    database_alone = [str(made / "shop.db")]
    assert holding(made.folder, [NAME]) == database_alone
    made.ok("test", "-s", "conserved_db")
    made.ok("run")
    made.ok("run", "--full-refresh")
    keys = made.rows("select key['id'] as id, op from db_to_changelog order by id nulls first")
    assert [tuple(row.values()) for row in keys] == [(None, "erased"), ("8", "snapshot")]


def test_a_record_hides_the_value_and_knows_it() -> None:
    key, masked, names = {"Tenant": "a", "id": "4711"}, {"Tenant": "a", "id": "f00"}, ("shop", "customers")
    erasure, again = (Erasure.of(id_, names, masked, key, "2026-11-30T00:00:00Z") for id_ in "12")
    text = json.dumps(erasure.as_json())
    assert "4711" not in text and "f00" not in text and Erasure.read(json.loads(text)) == erasure
    assert [part.digest for part in erasure.parts] != [part.digest for part in again.parts]
    assert [part.digest for part in erasure.parts] == [
        hashlib.sha256(f"{part.prefix}{value}".encode()).hexdigest() for part, value in zip(erasure.parts, ["a", "f00"])
    ]
    # A masked column has another value in rows than in messages.
    told = erasure.parts[1]
    assert told.told_digest == hashlib.sha256(f"{told.prefix}4711".encode()).hexdigest() and told.told_length == 4
    assert erasure.is_of_key({"tenant": "a", "ID": "4711"}) and not erasure.is_of_key({"id": "4711"})
    assert not erasure.is_of_key({"tenant": "a", "id": "4712"})


def test_names_of_tables_may_lack_their_first_parts() -> None:
    assert of_tables([("customers",)], ["shop", "Customers"]) and of_tables(
        [("SHOP", "customers")], ["shop", "customers"]
    )
    assert not of_tables([("crm", "customers")], ["shop", "customers"]) and not of_tables([()], ["shop", "customers"])


def test_files_are_exchanged_in_a_log_however_often(tmp_path: Path) -> None:
    """Entries before the newest compact part are not read any more, and name files that are gone all the same."""

    def entry(name: str) -> dict[str, str]:
        return {"path": f"file:///lake/t/{name}", "action": "add"}

    # One write gives files of several folders the same name.
    row_a, row_c, other_a = "kind=row/landed_on=2/a", "kind=row/landed_on=2/c", "kind=control/landed_on=2/a"
    parts = {"8": [row_a], "9.compact": [row_a, other_a], "10": [row_c], "11": ["kind=row/landed_on=2/d"]}
    for name, files in parts.items():
        (tmp_path / name).write_text("\n".join(["v1", *(json.dumps(entry(file)) for file in files)]))
        (tmp_path / f".{name}.crc").write_text("x")
    for _ in range(2):
        exchange_files(LocalFiles(), str(tmp_path), {row_a, row_c}, [entry("kind=row/landed_on=2/e")])
        found = {name: (tmp_path / name).read_text().splitlines() for name in parts}
        assert {lines[0] for lines in found.values()} == {"v1"}
        told = {name: [json.loads(line)["path"][15:] for line in lines[1:]] for name, lines in found.items()}
        assert {name: [path[-1] for path in paths] for name, paths in told.items()} == {
            "8": [],
            "9.compact": ["a"],
            "10": [],
            "11": ["d", "e"],
        }
        assert told["9.compact"] == [other_a]
    # A checksum of a file that has changed would count as damage.
    assert not list(tmp_path.glob(".*.crc"))


PAGE = Path(__file__).parent.parent / "docs/personal-data.md"


@SPARK
def test_the_page_shows_what_comes_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line that the page shows begins a line of what the commands above it print."""
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setenv("RUNNER_MASK_SECRET", "tests-of-this-page-have-this-secret")
    made, said = Project(tmp_path, {}), ""
    for block in pages.blocks(PAGE):
        if block.name:
            made.write({block.name: block.text})
        elif block.kind == "sh":
            runs = [made.run(*words) for words in pages.commands([block])]
            assert not [ran.err for ran in runs if ran.code]
            said = "".join(ran.out for ran in runs)
        else:
            shown = [line.rstrip() for line in said.splitlines()]
            missing = [line for line in block.text.splitlines() if not any(one.startswith(line) for one in shown)]
            assert not missing, said
    hidden = ["Ada", "Lovelace", "555-1234", "green tea"]
    assert holding(made.folder, hidden, ("in", "staff")) == []
