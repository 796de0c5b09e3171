"""A random life of a database, told by the real tool while runs land it: after each run a mirror is the table as the
database has it, or its data test `followed` fails; once all rows were told again, it is the table.

`LIVE_STATEMENTS` says how long the lives of the soak are, `LIVE_SEED` which lives they are.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.database_life import TABLES, Life, Script
from tests.landed import Project
from tests.live_tools import DatabaseError, Told
from tests.mariadb import Canal
from tests.postgresql import Debezium, Wal2json
from tests.same_values import is_same, number_of
from tests.storages import TARGETS

pytestmark = [pytest.mark.engines, pytest.mark.usefixtures("spark", "interpreted")]
# How many statements there are, and how many between two runs.
SHORT, LONG = (60, 30), (int(os.environ.get("LIVE_STATEMENTS", "510")), 51)
# What a database may say of a statement of a life: another row has the key.
REFUSED = ("duplicate key", "Duplicate entry")


class Lived:
    """A database that lives, and the project that lands what its tool tells."""

    def __init__(self, folder: Path, database: Told, seed: str) -> None:
        self.database, self.life, self.runs = database, Life(database, seed), 0
        settings = {**yaml.safe_load(TARGETS), "target": "delta", "sources": [{"name": "live", **database.source}]}
        self.project = Project(folder, {"project.yml": yaml.safe_dump(settings)})
        # How often mirrors were compared, and how often a data test said that they may differ.
        self.counts: Counter[str] = Counter()
        self.do(self.life.beginning())

    def do(self, scripts: Iterable[Script]) -> None:
        for one in scripts:
            script = one if isinstance(one, str) else one()
            print(script)
            try:
                self.database.run(script)
            except DatabaseError as error:
                if not any(words in str(error) for words in REFUSED):
                    raise
                print("-- refused")
                self.counts["refused"] += 1

    def lives(self, statements: int) -> None:
        for number in range(statements):
            if number == statements // 2 and self.runs % 3 == 1:
                print("-- the tool starts again")
                self.database.restart()
            self.do(self.life.next())

    def land(self) -> None:
        """Lands what was told, and builds the mirrors that are suggested."""
        print(f"-- run {self.runs}")
        self.database.write(self.project, self.runs)
        self.runs += 1
        self.project.ok("run", "-s", "live_to_changelog changelog")
        assert self.project.rows("select reason, raw from dead_letters") == []
        self.project.ok("mirrors", "suggest", "--files", "--apply")
        assert self.project.run("build", "-s", " ".join(TABLES)).code in (0, 1)

    def wrong(self) -> dict[str, Any]:
        """The mirrors that are not the tables though their data tests say so, and what differs."""
        out = {}
        for table in TABLES:
            (mirror,) = yaml.safe_load((self.project / f"models/mirrors/{table}.yml").read_text())["mirrors"]
            if self.project.statuses[f"followed_{table}"] == "pass":
                self.counts["compared"] += 1
                out[table] = differences(self.project, self.database, mirror)
            else:
                self.counts["not followed"] += 1
        return {name: found for name, found in out.items() if found}

    @property
    def not_followed(self) -> dict[str, Any]:
        results = self.project.results.items()
        return {name: one for name, one in results if name.startswith("followed_") and one["status"] != "pass"}


def lives_of(tool: type[Any], *, is_short_in_soak: bool) -> list[Any]:
    """A short life and a long one, which is told in the soak alone."""
    missing = pytest.mark.skipif(bool(tool.missing), reason=tool.missing)
    lengths = (("short", SHORT, is_short_in_soak), ("long", LONG, True))
    return [
        pytest.param(
            tool, *length, id=f"{tool.__name__}-{name}", marks=[missing, *([pytest.mark.soak] if soak else [])]
        )
        for name, length, soak in lengths
    ]


@pytest.mark.parametrize(
    ("tool", "statements", "in_a_run"),
    [
        *lives_of(Debezium, is_short_in_soak=False),
        # What these tools told of such tables is in test_recorded.py, too.
        *lives_of(Wal2json, is_short_in_soak=True),
        *lives_of(Canal, is_short_in_soak=True),
    ],
)
def test_a_random_life_of_a_database(tmp_path: Path, tool: type[Any], statements: int, in_a_run: int) -> None:
    seed = os.environ.get("LIVE_SEED", "1" if statements == SHORT[0] else os.urandom(4).hex())
    begun = time.monotonic()
    print(f"LIVE_SEED={seed} LIVE_STATEMENTS={statements}")
    with tool() as database:
        lived = Lived(tmp_path, database, seed)
        for _ in range(statements // in_a_run):
            lived.lives(in_a_run)
            lived.land()
            assert lived.wrong() == {}
        lived.do(lived.life.all_again())
        lived.land()
        assert lived.wrong() == {}
        assert lived.not_followed == {}
    print(f"-- {lived.life.count} statements, {dict(lived.counts)}, {time.monotonic() - begun:.0f} s")


def differences(project: Project, database: Told, mirror: dict[str, Any]) -> list[Any]:
    """Where a mirror is not the table."""

    def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        texts = [[str(row[column]) for column in mirror["key"]] for row in rows]
        keys = [[(number_of(text) or Decimal(0), text) for text in row] for row in texts]
        return [row for _, row in sorted(zip(keys, rows), key=lambda one: one[0])]

    found = in_order(project.rows(f"select * from {mirror['name']}"))
    expected = in_order(database.rows(mirror["of"]["table"].split(".")[-1]))
    if len(found) != len(expected):
        return [("rows", len(found), len(expected))]
    return [
        ([row[key] for key in mirror["key"]], column, row.get(column), value)
        for row, wanted in zip(found, expected)
        for column, value in wanted.items()
        if not is_same(row.get(column), value)
    ]
