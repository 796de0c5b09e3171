"""Writes the tables that this version makes, next to this file: `python -m tests.kept.make NAME`, before a version is
released or when the form of tables has changed. Earlier folders stay as they are.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from runner.cli import main

HERE = Path(__file__).parent
# Tables name their files and those of their messages with whole paths: a test puts its own folder in place of this one.
PLACE = Path("/tmp/changelog-runner-kept")
PROJECT = """
name: kept
targets:
  local: {path: lake}
sources:
  - {name: shop, format: canal, files: in/*.jsonl}
"""
MIRROR = """
mirrors:
  - {name: orders, of: {source: shop, table: shop.orders}, key: [id], columns: {id: int, n: int}, history: true}
"""
DAILY = """{{ config(materialized='incremental') }}
select table_name, op, count(*) as changes from {{ new_rows('changelog') }} group by all
"""
START = (
    '{{"id": {0}, "database": "shop", "table": "orders", "type": "{1}", "es": 17104968{0}0000, "ts": 17104968{0}0500, '
    '"mysqlType": {{"id": "int", "n": "int"}}, "pkNames": ["id"], "data": [{{"id": "{2}", "n": "{3}"}}]{4}}}\n'
)


def message(number: int, kind: str, key: int, n: int) -> str:
    """A message of a change; `number` has one digit."""
    return START.format(number, kind, key, n, ', "old": [{"n": "0"}]' if kind == "UPDATE" else "")


FIRST = message(1, "INSERT", 1, 5) + message(2, "INSERT", 2, 6) + '{"id": 9, "broken\n'
SECOND = message(3, "UPDATE", 1, 7) + message(4, "DELETE", 2, 6)
FILES = {"project.yml": PROJECT, "models/orders.yml": MIRROR, "models/daily.sql": DAILY}


def make(name: str) -> None:
    shutil.rmtree(PLACE, ignore_errors=True)
    for file, text in FILES.items():
        (PLACE / file).parent.mkdir(parents=True, exist_ok=True)
        (PLACE / file).write_text(text)
    (PLACE / "in").mkdir()
    for number, text in enumerate((FIRST, SECOND), 1):
        (PLACE / f"in/{number}.jsonl").write_text(text)
        if main(["run", "--project-dir", str(PLACE)]) > 1:  # a run with too many dead letters ends with 1
            raise SystemExit("the run has failed")
    # Checksums are of files as they are here, where paths are others.
    for path in PLACE.rglob(".*.crc"):
        path.unlink()
    for other in ("target", "lake/_locks", "lake/_catalog", "lake/_node_results"):
        shutil.rmtree(PLACE / other, ignore_errors=True)
    shutil.rmtree(HERE / name, ignore_errors=True)
    shutil.copytree(PLACE, HERE / name)
    shutil.rmtree(PLACE)


if __name__ == "__main__":
    make(sys.argv[1])
