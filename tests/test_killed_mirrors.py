"""Runs that are killed while mirrors and their histories take in changes: a run that ends makes them right."""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st

from tests import lives
from tests.spark_fixtures import rows
from tests.test_exactly_once import PROJECT, STORAGES, Run

pytestmark = pytest.mark.usefixtures("interpreted")
KILLS = int(os.environ.get("KILLS", "20"))
# Some runs end before they are killed.
RUNS = 2 * KILLS
# So many of a hundred messages come late; others come in order, so that rows are taken up where they were.
LATE = 10


def messages(draw: Callable[..., Any], number: int) -> tuple[lives.Life, list[list[str]]]:
    """A life of a table, and what each run reads of it."""
    life = lives.Life(number).live(draw(lives.steps(4 * RUNS, 4 * RUNS)))
    parts: list[list[str]] = [[] for _ in range(RUNS + 1)]
    for place, message in enumerate(life.messages):
        run = place * len(parts) // len(life.messages)
        is_late = draw(st.integers(0, 99)) < LATE
        parts[draw(st.integers(run, RUNS)) if is_late else run].append(message.text("many"))
    return life, parts


def killed(folder: Path, storage: str, name: str, seconds: float) -> bool:
    """Whether a run was killed some seconds after a mirror began to be written; else it has ended."""
    run = Run(folder, storage, ["run"])
    if not run.wait_for(lambda: run.is_adding(name)):
        assert run.process.returncode == 0, run.log.read_text()
        return False
    time.sleep(seconds)
    run.kill(alone=False)
    return True


@pytest.mark.soak
@pytest.mark.parametrize("storage", STORAGES)
def test_mirrors_are_right_after_killed_runs(project, runner, spark: object, capsys, storage: str) -> None:
    lived, told = zip(*lives.drawn(messages, 8))
    pauses = random.Random(storage)
    folder = project(
        {
            "project.yml": PROJECT.replace("name: app, format: canal", "name: shop, format: everything").replace(
                "target: calm", f"target: {storage}"
            ),
            "formats/everything.yml": lives.FORMAT,
            "models/mirrors/tables.yml": f"mirrors:{lives.MIRROR.format(name='many', source='shop')}",
        }
    )
    (folder / "in").mkdir()
    hit: Counter[str] = Counter()
    for number, parts in enumerate(zip(*told)):
        (folder / f"in/{number}.jsonl").write_text("\n".join(text for part in parts for text in part))
        name = ("many", "many_history")[number % 2]
        if number < RUNS and hit["many killed"] + hit["many_history killed"] < KILLS:
            hit[f"{name} {'killed' if killed(folder, storage, name, pauses.uniform(0, 4)) else 'ended'}"] += 1
    ran = runner("build")
    assert ran.code == 0, ran.err
    held, history = (rows(capsys, sql.format("many")) for sql in (lives.ROWS, lives.VERSIONS))
    lives.check(lived, held, history)
    assert hit["many killed"] and hit["many_history killed"]
    assert hit["many killed"] + hit["many_history killed"] == KILLS, hit
    with capsys.disabled():
        print(f"\n{storage}: {dict(hit)}; {len(held)} rows and {len(history)} versions are right")


# --- a database by one rule, and a table that starts from a dump

SERVER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
TABLES = ("one", "two", "three", "late", "dumped")
# After so many runs there is a first change of the table `late`, another column in `two`, and no row in `one`.
LATE_FROM, ADDED_AFTER, EMPTIED_AFTER = 5, 8, 11
CHANGES_OF_A_RUN = 60
DATABASE = """
mirrors:
  - {tables: "shop.*", except: [shop.dumped], of: {source: app}, name: "{table}", history: true}
  - name: dumped
    of: [{source: dump, table: shop.dumped}, {source: app, table: shop.dumped}]
    key: [id]
    columns: {id: bigint, label: string, number: bigint}
    history: true
"""
SOURCES = """\
sources:
  - {{name: app, format: canal, files: in/*}}
  - name: dump
    format: rows
    files: dump/dumped.csv
    dump: csv
    at: "{server}:1-{number}"
    tables: [{{name: shop.dumped, key: [id]}}]
"""
Row = dict[str, Any]


class Shop:
    """A database and what its log tells: `tables` are what a plain reader makes of all changes."""

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.number = chance, 0
        self.tables: dict[str, dict[int, Row]] = {table: {} for table in TABLES}
        self.types = {"id": "bigint", "label": "varchar(40)", "number": "bigint"}
        self.columns: dict[str, dict[str, str]] = {table: dict(self.types) for table in TABLES}

    def message(self, table: str, kind: str, **told: object) -> str:
        self.number += 1
        at = lives.FIRST_MOMENT + 10 * self.number
        common = {"database": "shop", "table": table, "type": kind, "es": at, "ts": at + 3, "isDdl": "sql" in told}
        return json.dumps({**common, "gtid": f"{SERVER}:{self.number}", "pkNames": ["id"], "old": None, **told})

    def change(self, table: str) -> str:
        """One change of one row."""
        rows, key = self.tables[table], self.chance.randint(1, 40)
        row = {"id": key, "label": self.chance.choice([None, "", "a", "é", f"l{self.number}"]), "number": self.number}
        row |= {"more": self.chance.choice(["x", "y"])} if "more" in self.columns[table] else {}
        before, kind = rows.get(key), "INSERT"
        if before is None:
            rows[key] = row
        elif self.chance.random() < 0.3:
            row, kind = rows.pop(key), "DELETE"
        else:
            rows[key], kind = row, "UPDATE"
        old = {name: text(value) for name, value in (before or {}).items() if value != row[name]}
        image = {name: text(value) for name, value in row.items()}
        told = {"mysqlType": self.columns[table], "data": [image], "old": [old] if kind == "UPDATE" else None}
        return self.message(table, kind, **told)

    def add_column(self, table: str) -> str:
        self.columns[table]["more"] = "varchar(10)"
        self.tables[table] = {key: {**row, "more": "z"} for key, row in self.tables[table].items()}
        return self.message(table, "ALTER", data=None, sql=f"alter table {table} add more varchar(10) default 'z'")

    def empty(self, table: str) -> str:
        self.tables[table].clear()
        return self.message(table, "TRUNCATE", data=None, sql=f"truncate table {table}")

    def run(self, number: int) -> list[str]:
        """What the log tells for one run."""
        tables = [table for table in TABLES if table != "late" or number >= LATE_FROM]
        told = [self.change(self.chance.choice(tables)) for _ in range(CHANGES_OF_A_RUN)]
        if number == ADDED_AFTER:
            told.append(self.add_column("two"))
        if number == EMPTIED_AFTER:
            told.append(self.empty("one"))
        return told


def as_csv(rows: Iterable[Row]) -> str:
    lines = (",".join("" if value is None else f'"{value}"' for value in row.values()) for row in rows)
    return "\n".join(["id,label,number", *lines])


def text(value: object) -> str | None:
    return None if value is None else str(value)


class Ended(NamedTuple):
    was_killed: bool
    seconds: float


def ended(folder: Path, storage: str, seconds: float) -> Ended:
    """How a run ended, which is killed after so many seconds."""
    run, begun = Run(folder, storage, ["run"]), time.monotonic()
    try:
        run.process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        run.kill(alone=False)
        return Ended(True, time.monotonic() - begun)
    assert run.process.returncode == 0, run.log.read_text()
    return Ended(False, time.monotonic() - begun)


@pytest.mark.soak
@pytest.mark.parametrize("storage", ["delta", "iceberg"])
def test_a_database_is_right_after_killed_runs(project, runner, spark: object, capsys, storage: str) -> None:
    """A mirror of each table by one rule, and one of a table that starts from a dump; each run has new messages."""
    seed = int(os.environ.get("SEED", random.randrange(10**6)))
    with capsys.disabled():
        print(f"\n{storage}: SEED={seed}")
    shop, pauses = Shop(random.Random(seed)), random.Random(seed + 1)
    first = shop.run(0)
    # The dump has what the first messages tell, and more that no message tells.
    shop.tables["dumped"] |= {key: {"id": key, "label": "before", "number": -key} for key in range(41, 60)}
    [own_source] = [line for line in PROJECT.splitlines() if line.startswith("sources: ")]
    sources = SOURCES.format(server=SERVER, number=shop.number)
    folder = project(
        {
            "project.yml": PROJECT.replace(own_source, sources).replace("target: calm", f"target: {storage}"),
            "models/mirrors.yml": DATABASE,
            "dump/dumped.csv": as_csv(shop.tables["dumped"].values()),
        }
    )
    (folder / "in").mkdir()
    (folder / "in/000.jsonl").write_text("\n".join(first))
    longest, kills, number = ended(folder, storage, 3600).seconds, 0, 0
    while kills < KILLS:
        number += 1
        assert number < 4 * KILLS + LATE_FROM, "too few runs were killed"
        (folder / f"in/{number:03}.jsonl").write_text("\n".join(shop.run(number)))
        kills += ended(folder, storage, pauses.uniform(0, longest)).was_killed
    for last in range(number + 1, max(number, EMPTIED_AFTER) + 2):
        (folder / f"in/{last:03}.jsonl").write_text("\n".join(shop.run(last)))
    ran = runner("build")
    assert ran.code == 0, ran.err
    for table, expected in shop.tables.items():
        columns = ", ".join(shop.columns[table])
        held = rows(capsys, f"select {columns} from {table} order by id")
        assert held == [expected[key] for key in sorted(expected)], table
        current = rows(capsys, f"select {columns} from {table}_history where is_current order by id")
        assert current == held, table
    with capsys.disabled():
        print(
            f"{storage}: {kills} of {number + 1} runs were killed; {sum(map(len, shop.tables.values()))} rows are right"
        )
