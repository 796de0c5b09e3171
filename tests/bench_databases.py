"""Figures of `make bench` about whole databases: what a run costs that finds changes in five of many tables, whose
mirrors one rule makes, beside the same run on those five tables alone; and a run that finds nothing new.

Each storage runs in a process of its own (`python -m tests.bench_databases STORAGE`) and prints JSON, name -> number.
Each run is a command, from its start to its end.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.bench import WORK, measured_by
from tests.engines import jars
from tests.sparks import COMMANDS

TABLES = int(os.environ.get("BENCH_TABLES", "300"))
CHANGED = 5
ROWS = 20
ROUNDS = 3
STORAGES = ("delta", "iceberg")
CATALOGS = {"delta": "", "iceberg": "catalog: {type: hadoop, name: lake, schema: main},"}
PROJECT = """
name: databases
targets:
  local: {{storage: {storage}, path: {folder}/lake, jars: "{jars}", {catalog} spark: {{spark.master: "local[2]"}}}}
sources:
  - {{name: shop, format: canal, files: "{folder}/in/*"}}
"""
RULE = "mirrors:\n  - {tables: 'shop.*', of: {source: shop}}\n"
TYPES = {"id": "bigint", "customer": "bigint", "status": "varchar(16)", "amount": "decimal(12,2)"}


class Database:
    """A project with the mirrors of so many tables, and the messages of its source, a file for each run."""

    def __init__(self, folder: Path, storage: str, tables: int) -> None:
        self.folder, self.tables, self.files = folder, tables, 0
        (folder / "in").mkdir(parents=True)
        (folder / "models").mkdir()
        found = jars("spark")[0].parent / "*.jar"
        settings = {"storage": storage, "folder": folder, "jars": found, "catalog": CATALOGS[storage]}
        (folder / "project.yml").write_text(PROJECT.format(**settings))
        (folder / "models/mirrors.yml").write_text(RULE)

    def change(self, tables: int) -> None:
        """Writes messages that change the first tables."""
        lines = [self._message(table, row) for table in range(tables) for row in range(ROWS)]
        (self.folder / f"in/{self.files}.jsonl").write_text("\n".join(lines) + "\n")
        self.files += 1

    def run(self) -> float:
        """The seconds of a run."""
        began = time.monotonic()
        command = [f"{COMMANDS}/runner", "--project-dir", str(self.folder), "run"]
        subprocess.run(command, check=True, capture_output=True)
        return time.monotonic() - began

    def _message(self, table: int, row: int) -> str:
        at = 1683008290000 + 1000 * self.files
        data = {"id": str(row), "customer": str(self.files), "status": "open", "amount": "1.50"}
        told: dict[str, Any] = {"type": "INSERT", "isDdl": False, "pkNames": ["id"], "mysqlType": TYPES, "old": None}
        return json.dumps({**told, "database": "shop", "table": f"t_{table}", "es": at, "ts": at, "data": [data]})


def measure(work: Path, storage: str) -> dict[str, float]:
    """The seconds of each kind of run, the medians of some rounds, and the ratio of those with changes."""
    many, few = Database(work / "many", storage, TABLES), Database(work / "few", storage, CHANGED)
    for database in (many, few):
        database.change(database.tables)
        database.run()
    seconds: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for name, database in (("few", few), ("many", many)):
            database.change(CHANGED)
            seconds.setdefault(name, []).append(database.run())
            seconds.setdefault(f"{name}_nothing_new", []).append(database.run())
    figures = {f"databases.{storage}_{name}_s": statistics.median(of) for name, of in seconds.items()}
    ratio = statistics.median(many / few for many, few in zip(seconds["many"], seconds["few"]))
    return {**figures, f"databases.{storage}_many_vs_few": ratio}


def figures() -> Iterator[dict[str, float]]:
    for storage in STORAGES:
        yield measured_by("tests.bench_databases", storage)


if __name__ == "__main__":
    work = WORK / "databases"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    print(json.dumps(measure(work, sys.argv[1])))
