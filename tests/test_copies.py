"""Tables that go to another target: what lands after that is as if they had always been there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner.run.mirrors import Mirrors
from tests.landed import Project
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
# Facts of a run, and the order in which the batches of two targets have come.
CHANGELOG = "select * except (run_id, loaded_at, landed_on) from shop_to_changelog order by seq, kind, op, batch"
TABLES = {
    "changelog": CHANGELOG,
    "dead_letters": "select reason, raw, seq from dead_letters order by seq",
    "orders": "select * from orders order by id",
    "history": "select * from orders_history order by id, valid_from",
    "daily": "select * from daily order by all",
    "names": "select * from names order by all",
}
# Storage -> which targets go into which.
COPIES = {
    "parquet": {"backup": "parquet"},
    "delta": {"delta_copy": "parquet", "backup": "delta"},
    "iceberg": {"iceberg_copy": "parquet", "iceberg_moved": "iceberg"},
}


def tables(made: Project, target: str) -> dict[str, list[dict[str, Any]]]:
    return {name: made.rows(sql, "-t", target) for name, sql in TABLES.items()}


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


@pytest.mark.parametrize("storage", COPIES)
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
        assert "[0 messages" in made.ok("run", "-t", copy)
    assert built == []
    made.write({"in/3.jsonl": COME["in/3.jsonl"]})
    for copy in pairs:
        alone = copy.split("_")[0].replace("backup", "parquet")
        for target in (alone, copy):
            built.clear()
            made.ok("run", "-t", target)
            assert built == [] or alone == "parquet"
        assert tables(made, copy) == tables(made, alone)
        made.ok("test", "-s", "conserved_shop", "orders", "orders_history", "-t", copy)
