"""Tables that go to another target: what lands after that is as if they had always been there."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.engine.copies import Copies
from runner.engine.files import LocalFiles
from runner.run.mirrors import Mirrors
from tests.landed import Project
from tests.test_dumps_of_tables import jdbc_project
from tests.test_landing_again import BROKEN, RIGHT, WRONG, change, lines, state

pytestmark = pytest.mark.usefixtures("spark", "interpreted", "lean")

PROJECT = """
name: copies
target: parquet
targets:
  parquet: {path: lake/parquet}
  backup: {path: lake/backup}
  delta: {storage: delta, path: lake/delta}
  delta_copy: {storage: delta, path: lake/delta_copy}
  iceberg: {storage: iceberg, path: lake/iceberg, catalog: {type: hadoop}}
  iceberg_copy: {storage: iceberg, path: lake/iceberg_copy, catalog: {type: hadoop}}
  iceberg_moved: {storage: iceberg, path: lake/iceberg_moved, catalog: {type: hadoop}}
sources:
  - {name: shop, format: mine, files: in/*.jsonl, dead_letters: {warn: null, fail: null}}
"""
MIRROR = """
mirrors:
  - {name: orders, of: {source: shop, table: shop.orders}, key: [id], columns: {id: int, n: smallint}, history: true}
"""
DAILY = """{{ config(materialized='incremental') }}
select table_name, op, cast(count(*) as smallint) as changes from {{ new_rows('changelog') }} group by all
"""
FILES = {
    "project.yml": PROJECT,
    "models/m.yml": MIRROR,
    "models/daily.sql": DAILY,
    "seeds/names.csv": "id,name\n1,one\n",
}
# What comes one after the other. The last has changes that come late, of a row that is gone and of one that is there.
COME = {
    "in/1.jsonl": lines(change(1, "INSERT", 5, 1), change(3, "INSERT", 7, 3), change(4, "UPSERT", 4, 4), BROKEN),
    "in/2.jsonl": lines(change(8, "UPDATE", 8, 1), change(9, "DELETE", 7, 3), change(10, "INSERT", 1, 6)),
    "in/3.jsonl": lines(change(7, "UPDATE", 70, 3), change(5, "UPDATE", 50, 1), change(11, "UPDATE", 2, 6), BROKEN),
}
# All tables, without the facts of a run.
TABLES = {
    "changelog": "select * except (run_id, loaded_at, landed_on) from shop_to_changelog",
    "dead_letters": "select reason, raw, seq from dead_letters",
    "orders": "select * from orders",
    "history": "select * from orders_history",
    "daily": "select * from daily",
}
ALL = " union all ".join(
    f"select '{name}' as name, to_json(struct(*)) as row from ({sql})" for name, sql in TABLES.items()
)
# Storage -> which targets go into which.
COPIES = {
    "parquet": {"backup": "parquet"},
    "delta": {"delta_copy": "parquet", "backup": "delta"},
    "iceberg": {"iceberg_copy": "parquet", "iceberg_moved": "iceberg", "backup": "iceberg"},
}


def tables(made: Project, target: str) -> dict[str, list[str]]:
    """The rows of all tables, in one query."""
    rows = made.rows(f"{ALL} order by name, row", "-t", target)
    return {name: [row["row"] for row in rows if row["name"] == name] for name in TABLES}


def copied(made: Project, *words: str) -> dict[str, dict[str, Any]]:
    ran = made.run("copy", *words, "--output", "json")
    assert ran.code == 0, ran.err
    return {row["table"]: row for row in map(json.loads, ran.out.splitlines())}


def lived(made: Project, *targets: str) -> None:
    """Two runs, and a dead letter that has landed after all."""
    made.write({"formats/mine.yml": WRONG, "in/1.jsonl": COME["in/1.jsonl"]})
    for target in targets:
        made.ok("build", "-t", target)
    made.write({"formats/mine.yml": RIGHT, "in/2.jsonl": COME["in/2.jsonl"]})
    for target in targets:
        made.ok("dead-letters", "land", "-t", target)


@pytest.mark.parametrize(
    "storage", ["iceberg", *(pytest.param(other, marks=pytest.mark.soak) for other in ("parquet", "delta"))]
)
def test_a_copy_goes_on_as_if_it_had_always_been_there(
    tmp_path: Path, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, pairs = Project(tmp_path, FILES), COPIES[storage]
    lived(made, *dict.fromkeys(["parquet", storage]))
    for copy, own in pairs.items():
        before, told = tables(made, own), copied(made, "-t", own, "--to", copy)
        assert tables(made, copy) == before == tables(made, own)
        # The table also has the dead letter that has landed since, which no reader sees.
        assert (told["shop_to_changelog"]["rows"], told["daily"]["rows"]) == (
            len(before["changelog"]) + 1,
            len(before["daily"]),
        )
        assert (told["orders"]["rows"], told["orders_history"]["rows"]) == (3, 5)
        assert {row["note"] for row in told.values()} <= {"", "built from its changes"}
        now, of_copy = (state(made, "-t", target) for target in (own, copy))
        assert [(row["read"], row["note"]) for row in of_copy.values()] == [
            (row["read"], row["note"]) for row in now.values()
        ]
        again = made.run("copy", "-t", own, "--to", copy)
        assert again.code == 2 and again.err.count("error[copy-target-not-empty]") == len(told)

    # Nothing is new, and nothing is built again, where a storage takes in what is new.
    built, build = list[str](), Mirrors._built
    monkeypatch.setattr(
        Mirrors, "_built", lambda of, query, *others: built.append(query.model) or build(of, query, *others)
    )
    for copy in pairs:
        before = tables(made, copy), state(made, "-t", copy)["orders"]["read"]
        made.ok("run", "-t", copy)
        assert built == [] and before == (tables(made, copy), state(made, "-t", copy)["orders"]["read"])
    made.write({"in/3.jsonl": COME["in/3.jsonl"]})
    for copy in pairs:
        alone = copy.split("_")[0].replace("backup", "parquet")
        for target in (alone, copy):
            built.clear()
            made.ok("run", "-t", target)
            assert built == [] or alone == "parquet"
        assert tables(made, copy) == tables(made, alone)
        made.ok("test", "-s", "conserved_shop", "orders", "orders_history", "-t", copy)


def test_a_copy_that_is_interrupted_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each interruption a run is refused, and in the end the tables are those of a copy that was not."""
    made = Project(tmp_path, FILES)
    lived(made, "parquet")
    before, words = tables(made, "parquet"), ("copy", "-t", "parquet", "--to", "backup")
    write = LocalFiles.write
    for moment in (2, 3, 15, 16, 18):
        left = iter(range(moment))

        def interrupted(files: LocalFiles, path: str, text: str, left: Iterator[int] = left) -> None:
            if "/backup/" in path and next(left, None) is None:
                raise KeyboardInterrupt
            write(files, path, text)

        with monkeypatch.context() as patch:
            patch.setattr(LocalFiles, "write", interrupted)
            assert made.run(*words).code == 130, moment
        for command in ("run", "show", "copy"):
            more = {"show": ["-s", "orders"], "copy": ["--to", "iceberg"]}.get(command, [])
            refused = made.run(command, "-t", "backup", *more)
            assert refused.code == 2 and "error[copy-unfinished]" in refused.err
            assert "hint: runner copy -t parquet --to backup finishes it" in refused.err
    other = made.run("copy", "-t", "parquet", "--to", "backup", "-s", "names")
    assert other.code == 2 and "error[copy-unfinished]" in other.err
    assert made.run(*words).code == 0 and tables(made, "backup") == before
    made.write({"in/3.jsonl": COME["in/3.jsonl"]})
    for target in ("parquet", "backup"):
        made.ok("run", "-t", target)
    assert tables(made, "backup") == tables(made, "parquet") != before


def test_what_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Project(tmp_path, FILES)
    lived(made, "parquet")
    without = made.run("copy", "--to", "backup", "-s", "daily")
    assert without.code == 2 and "error[copy-incomplete]" in without.err and "hint: -s +daily" in without.err
    tried = copied(made, "--to", "backup", "-s", "+daily", "--dry-run")
    assert {name: row["note"] for name, row in tried.items()} == dict.fromkeys(
        ("shop_to_changelog", "daily"), "would be copied"
    )
    assert not (made / "lake/backup/daily").exists() and not (made / "lake/backup/_copying.json").exists()

    # Rows that are not what they are a copy of.
    summed = Copies.sum_of
    with monkeypatch.context() as patch:
        patch.setattr(Copies, "sum_of", lambda of, *one: summed(of, *one)._replace(hash=f"{one[1] is of.other}"))
        failed = made.run("copy", "--to", "backup", "-s", "+daily", "--output", "json")
    assert failed.code == 1 and json.loads(failed.out.splitlines()[0])["note"].startswith("differs: 8 rows")
    assert made.run("run", "-t", "backup").code == 2
    assert {*copied(made, "--to", "backup", "-s", "+daily")} == {"shop_to_changelog", "daily"}
    assert {*made.tables("lake/backup")} == {"shop_to_changelog", "daily"}

    # A batch that has landed, and is not recorded as such.
    for name in ("1", ".1.crc"):
        (made / f"lake/parquet/_checkpoints/shop_to_changelog/commits/{name}").unlink()
    unsettled = made.run("copy", "--to", "delta")
    assert unsettled.code == 2 and "error[copy-unsettled]" in unsettled.err
    assert "hint: runner run -t parquet -s shop_to_changelog finishes it" in unsettled.err
    made.ok("run")
    assert {*copied(made, "--to", "delta_copy", "--dry-run")} == {
        *("shop_to_changelog", "orders", "orders_history", "daily", "names")
    }


def test_messages_that_wait_land_in_the_copy_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On file systems that only Spark may see."""
    made = Project(tmp_path, {**FILES, "formats/mine.yml": WRONG, "in/1.jsonl": COME["in/1.jsonl"]})
    made.write({"project.yml": re.sub("lake/(parquet|backup)", rf"'file://{tmp_path}/lake/\1'", PROJECT)})
    made.ok("run")
    made.write({"formats/mine.yml": RIGHT})
    with monkeypatch.context() as patch:
        patch.setattr(
            "runner.commands.dead_letters.land_and_build", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        assert made.run("dead-letters", "land").code == 130
    copied(made, "--to", "backup")
    for target in ("parquet", "backup", "backup"):
        made.ok("run", "-t", target)
    assert tables(made, "backup") == tables(made, "parquet")
    assert [row["id"] for row in made.rows("select id from orders order by id", "-t", "backup")] == [1, 3, 4]


def test_what_a_query_gave_comes_along(tmp_path: Path) -> None:
    """The files of results are in a target. In a copy they are others, and their rows have landed all the same."""
    made = jdbc_project(tmp_path, f"jdbc:sqlite:{tmp_path}/shop.db")
    sources = (made / "project.yml").read_text()
    made.write({"project.yml": f"{sources}target: a\ntargets: {{a: {{path: a b}}, b: {{path: b}}}}\n"})
    with sqlite3.connect(tmp_path / "shop.db") as database:
        database.execute("create table s_t(id integer primary key, note text)")
        database.execute("insert into s_t values (1, 'x'), (2, null)")
        database.commit()
        made.ok("run")
        database.execute("insert into s_t values (3, 'c')")
        database.commit()
        copied(made, "--to", "b")
        assert "changed since read" not in made.ok("build", "-t", "b")
    rows = made.rows("select key_text, batch, origin.file as file from changelog order by seq", "-t", "b")
    assert [(row["key_text"], row["batch"]) for row in rows] == [('{"id":"1"}', 0), ('{"id":"2"}', 0)]
    assert {row["file"].rsplit("/", 1)[0] for row in rows} == {f"file:{tmp_path}/b/_results/db"}
