"""Mirrors that `runner verify --repair` repairs: they become their tables, whatever is told before and after."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests import pages
from tests.landed import Project
from tests.storages import TARGETS
from tests.test_verify import COLUMNS, PAGE, SHOP, Derby, Row, messages, planted, rows_of_database, told

if TYPE_CHECKING:
    from runner.engine.session import Spark

pytestmark = pytest.mark.usefixtures("spark", "interpreted", "lean")

REPAIRS = {"name": "repairs", "format": "rows", "files": "repairs/*.jsonl", "dump": "repair"}
OF = [{"source": "orders", "table": "shop.things"}, {"source": "repairs", "table": "shop.things"}]
THINGS = {"name": "things", "of": OF, "key": ["id", "part"], "columns": COLUMNS, "history": True}


def project_of(
    folder: Path, storage: str, sources: list[dict[str, Any]], mirrors: list[dict[str, Any]], files: Mapping[str, str]
) -> Project:
    settings = {**yaml.safe_load(TARGETS), "target": storage, "sources": [*sources, REPAIRS]}
    written = {"project.yml": yaml.safe_dump(settings), "models/mirrors.yml": yaml.safe_dump({"mirrors": mirrors})}
    return Project(folder, {**written, **files})


def as_shown(row: Row) -> Row:
    """A row of the database as results show that of its mirror."""
    shown = told(row)
    if row["amount"] is not None:
        shown["amount"] = str(row["amount"].quantize(Decimal("0.001")))
    if row["local"] is not None:
        shown["local"] = row["local"].isoformat()
    if row["at"] is not None and row["at"].microsecond:
        shown["at"] = f"{(shown['at'] or '').removesuffix('Z').rstrip('0')}Z"
    return {name: None if value is None else str(value).lower() for name, value in shown.items()}


def held(project: Project, columns: Mapping[str, str]) -> list[Row]:
    shown = ", ".join(f"base64({name}) as {name}" if kind == "binary" else name for name, kind in columns.items())
    rows = project.rows(f"select {shown} from things")
    return [{name: None if value is None else str(value).lower() for name, value in row.items()} for row in rows]


@pytest.mark.parametrize("storage", ["parquet", pytest.param("delta", marks=pytest.mark.soak), "iceberg"])
def test_planted_differences_are_repaired(spark: Spark, tmp_path: Path, storage: str) -> None:
    rows = rows_of_database(Random(20))
    there, differences = planted(rows)
    source = {"name": "orders", "format": "lean", "files": "in/*"}
    project = project_of(tmp_path, storage, [source], [THINGS], {"in/1.jsonl": messages(rows)})
    project.ok("run", "-s", "+things", "+things_history")
    database = Derby(spark, tmp_path, f"{storage}-{tmp_path.name}")
    database.do('create schema "shop"')
    database.create('"shop"."things"', COLUMNS)
    database.insert('"shop"."things"', there)
    against = ("verify", "--against", database.url)

    ran = project.run(*against, "--repair", "--dry-run")
    assert ran.code == 1 and "repairs, if written: 18 rows as the database has them, 2 rows to delete" in ran.err
    assert not (project / "repairs").exists()
    # Twice, before the first repairs have landed; and a command that was killed while it wrote.
    begun = datetime.now(timezone.utc)
    for _ in range(2):
        ran = project.run(*against, "--repair")
        assert ran.code == 1 and "repairs: 18 rows as the database has them, 2 rows to delete, in " in ran.err
        assert "do no harm: the changes that are still to land win over them" in ran.err
    ended = datetime.now(timezone.utc)
    files = sorted((project / "repairs").iterdir())
    assert len(files) == 2
    (project / "repairs" / f".{files[0].name}.0.part").write_bytes(files[0].read_bytes()[:100])
    project.ok("run", "-s", "+things", "+things_history")
    assert "120 rows are the same" in project.ok(*against, "--repair")
    assert sorted((project / "repairs").glob("things*")) == files
    assert sorted(held(project, COLUMNS), key=str) == sorted(map(as_shown, there), key=str)

    versions = project.rows("select id, part, op, valid_from, valid_to, is_current from things_history")
    first, kinds = "2024-03-15T02:12:00Z", {key: kind for kind, key, _ in differences}
    [instant] = {row["valid_from"] for row in versions} - {first}
    assert begun <= datetime.fromisoformat(instant) <= ended
    expected = [(row["id"], row["part"], "insert", first, instant) for row in rows if (row["id"], row["part"]) in kinds]
    expected += [(*key, "snapshot", instant, None) for key, kind in kinds.items() if kind != "extra"]
    expected += [
        (row["id"], row["part"], "insert", first, None) for row in rows if (row["id"], row["part"]) not in kinds
    ]
    assert all(row.pop("is_current") == (row["valid_to"] is None) for row in versions)
    assert sorted((tuple(row.values()) for row in versions), key=str) == sorted(expected, key=str)
    assert project.rows("select count(*) as n from changelog where source = 'repairs'") == [{"n": 40}]
    assert project.rows("select count(*) as n from dead_letters") == [{"n": 0}]


# --- the place of repairs among changes

FORMATS = {
    "timed": "extends: lean\n",
    "numbered": "extends: lean\nseq: [n]\n",
    "untimed": "extends: lean\nseq: [n]\nproduced_at: none\n",
}
ORDERS = ("before", "with", "after")
MIRRORS = (("timed", "before"), ("numbered", "with"), ("numbered", "after"), ("untimed", "after"))
HEAD = 1_710_468_000_000
# What has landed when the mirror is verified: number and time of the message, operation, row, row before.
LANDED: list[tuple[int, str, Row, Row]] = [
    *((number, "INSERT", {"id": str(number), "v": "a", "w": "a"}, {}) for number in (1, 2, 3, 4)),
    (9, "INSERT", {"id": "6", "v": "a", "w": "a"}, {}),
]
# The table then: a change of 1, the end of 3 and the beginning of 7 are still to land; those of 2, 4 and 5 are lost.
THERE = {1: ("b", "a"), 2: ("x", "a"), 4: ("y", "a"), 5: ("m", "m"), 6: ("a", "a"), 7: ("q", "q")}
# It was sent before the newest message that had landed, and comes late.
LATE: list[tuple[int, str, Row, Row]] = [(6, "UPDATE", {"id": "4", "v": "late", "w": "a"}, {"v": "a"})]
LATER: list[tuple[int, str, Row, Row]] = [
    (10, "UPDATE", {"id": "1", "v": "b", "w": "a"}, {"v": "a"}),
    (11, "UPDATE", {"id": "1", "v": "c", "w": "a"}, {"v": "b"}),
    (12, "DELETE", {}, {"id": "2", "v": "x", "w": "a"}),
    (13, "DELETE", {}, {"id": "3", "v": "a", "w": "a"}),
    (14, "INSERT", {"id": "3", "v": "again", "w": "a"}, {}),
    # It does not tell what `w` is.
    (15, "UPDATE", {"id": "5", "v": "n"}, {"v": "m", "w": "m"}),
    (16, "INSERT", {"id": "7", "v": "q", "w": "q"}, {}),
]
AT_LAST = {1: ("c", "a"), 3: ("again", "a"), 4: ("y", "a"), 5: ("n", "m"), 6: ("a", "a"), 7: ("q", "q")}


def lines(changes: list[tuple[int, str, Row, Row]]) -> str:
    """Messages of the tables that are repaired before, with and after the changes that come later."""
    out = []
    for number, op, row, old in changes:
        told = {
            "database": "shop",
            "type": op,
            "pkNames": ["id"],
            "n": number,
            "data": [row],
            "old": [old] if old else None,
        }
        at = HEAD + number * 1000
        out += [json.dumps({**told, "table": table, "es": at, "ts": at + 500}) + "\n" for table in ORDERS]
    return "".join(out)


def rows_of(project: Project, mirror: str) -> dict[int, tuple[str, str]]:
    return {row["id"]: (row["v"], row["w"]) for row in project.rows(f"select id, v, w from {mirror}")}


@pytest.mark.parametrize("storage", ["parquet", pytest.param("delta", marks=pytest.mark.soak), "iceberg"])
def test_later_changes_win_and_earlier_ones_lose_in_any_order(spark: Spark, tmp_path: Path, storage: str) -> None:
    """With numbers or without; by the time of messages, or that of files where messages have none."""
    columns = {"id": "bigint", "v": "string", "w": "string"}
    sources = [{"name": name, "format": name, "files": f"in/{name}/*"} for name in FORMATS]
    mirrors = {
        f"{name}_{order}": {
            "name": f"{name}_{order}",
            "of": [{"source": source, "table": f"shop.{order}"} for source in (name, f"repairs_{name}")],
            "key": ["id"],
            "columns": columns,
        }
        for name, order in MIRRORS
    }
    sources += [{**REPAIRS, "name": f"repairs_{name}", "files": f"repairs/{name}/*"} for name in FORMATS]
    files = {f"formats/{name}.yml": text for name, text in FORMATS.items()}
    files |= {f"in/{name}/1.jsonl": lines(LANDED) for name in FORMATS}
    project = project_of(tmp_path, storage, sources, list(mirrors.values()), files)
    words = [f"+{name}" for name in mirrors]
    project.ok("run", "-s", *words)
    database = Derby(spark, tmp_path, f"order-{storage}-{tmp_path.name}")
    database.do('create schema "shop"')
    for order in ORDERS:
        database.create(f'"shop"."{order}"', columns)
        database.insert(f'"shop"."{order}"', [{"id": n, "v": v, "w": w} for n, (v, w) in THERE.items()])
    ran = project.run("verify", "--against", database.url, "--repair", "-s", *mirrors)
    assert ran.code == 1 and ran.err.count("6 rows differ: 2 missing here, 1 not in the database, 3 with") == len(
        MIRRORS
    ), ran.err
    written = {path.name.split(".")[0]: path for path in (project / "repairs").rglob("*.jsonl")}
    assert written.keys() == mirrors.keys()
    aside = tmp_path / "aside"
    aside.mkdir()
    for name, path in written.items():
        if not name.endswith("before"):
            shutil.move(path, aside / path.name)
    project.ok("run", "-s", *words)
    there = {name: THERE if name.endswith("before") else dict.fromkeys((1, 2, 3, 4, 6), ("a", "a")) for name in mirrors}
    assert {name: rows_of(project, name) for name in mirrors} == there
    for name in FORMATS:
        project.write({f"in/{name}/2.jsonl": lines(LATE), f"in/{name}/3.jsonl": lines(LATER)})
        # The file with the late messages was written before the first one.
        first = (project / f"in/{name}/1.jsonl").stat().st_mtime
        os.utime(project / f"in/{name}/2.jsonl", (first - 5, first - 5))
    for order in ("with", "after"):
        for name, path in written.items():
            if name.endswith(order):
                shutil.move(aside / path.name, path)
        project.ok("run", "-s", *words)
    assert {name: rows_of(project, name) for name in mirrors} == dict.fromkeys(mirrors, AT_LAST)


# --- what else is told of a repair

LEAN = {"database": "shop", "type": "INSERT", "pkNames": ["id"], "es": HEAD, "ts": HEAD}
TWO = {
    "all_of_it": {"columns": {"id": "bigint", "v": "string", "n": "int"}},
    "large": {"columns": {"id": "bigint", "n": "int"}, "where": "n > 1"},
}


def test_mirrors_of_one_table_and_a_file_that_is_older_than_changes_that_have_landed(tmp_path: Path) -> None:
    """Each is repaired alone: one has other rows and columns than the other, and the file lacks a column. What happened
    after the file was taken stays.
    """
    sources = [{"name": "shop", "format": "lean", "files": "in/*"}]
    of = [{"source": source, "table": "shop.items"} for source in ("shop", "repairs")]
    mirrors = [{"name": name, "of": of, "key": ["id"], **one} for name, one in TWO.items()]
    told = [{**LEAN, "data": [{"id": str(key), "v": "v", "n": "5"}]} for key in (1, 2, 3, 4)]
    later = {**LEAN, "type": "UPDATE", "es": HEAD + 60_000, "ts": HEAD + 60_000}
    told += [{**later, "data": [{"id": "4", "v": "later", "n": "7"}], "old": [{"n": "5", "v": "v"}]}]
    files = {
        "in/1.jsonl": "".join(json.dumps({**one, "table": "items"}) + "\n" for one in told),
        # 1 is as it is, 2 is too small for the second mirror, 3 is gone, and 4 was something else.
        "dump/items.csv": "id,n\n1,5\n2,1\n4,6\n5,9\n",
    }
    project = project_of(tmp_path, "parquet", sources, mirrors, files)
    project.ok("run", "-s", "+all_of_it", "+large")
    words = ("verify", "--against", "dump", "-s", *TWO)
    ran = project.run(*words, "--repair", "--taken-at", "2024-03-15T02:00:30Z")
    assert (
        ran.code == 1 and "repairs: 1 row as the database has them, 2 rows in the compared columns, 1 row to" in ran.err
    )
    assert "repairs: 3 rows as the database has them, 1 row to delete, in " in ran.err
    project.ok("run", "-s", "+all_of_it", "+large")
    shown = "select id, {} n from {} order by id"
    assert project.rows(shown.format("v,", "all_of_it")) == [
        {"id": 1, "v": "v", "n": 5},
        {"id": 2, "v": "v", "n": 1},
        {"id": 4, "v": "later", "n": 7},
        {"id": 5, "v": None, "n": 9},
    ]
    assert project.rows(shown.format("", "large")) == [{"id": 1, "n": 5}, {"id": 4, "n": 7}, {"id": 5, "n": 9}]


def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    found = pages.section(PAGE, "Repair")
    project = Project(tmp_path, {"in/1.jsonl": SHOP.read_text()})
    pages.write_files([block for block in pages.blocks(PAGE) if block in found or block.kind == "json"], tmp_path)
    ran = [project.run(*words) for words in pages.commands(found)]
    assert [one.code for one in ran] == [0, 1, 0, 0], ran
    [text] = [block.text for block in found if block.kind == "text"]
    shown = re.sub(r"^\d\d:\d\d:\d\d  | \[[\d.]+s\]$", "", ran[-1].err, flags=re.MULTILINE)
    assert text in shown
