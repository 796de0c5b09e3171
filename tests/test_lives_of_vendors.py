"""Random lives of tables, as eleven vendors tell them (tests/vendor_lives.py): with loads, statements, failovers and
restarts. Each mirror is the table as its database has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
import yaml
from hypothesis import strategies as st

from runner.engine.errors import QueryFailed
from runner.engine.tables import Tables
from runner.project.mirror import MirrorQuery
from runner.project.parse import VIEWS
from runner.run.mirrors import Mirrors
from tests import lives
from tests.encoders import ENCODERS
from tests.landed import Project, random_pieces
from tests.storages import TARGETS
from tests.vendor_lives import COLUMNS, TELLERS, Database, as_mirrored, as_told, steps, table_of

STEPS, RESTARTS = 80, 4
SHOWN = ", ".join(COLUMNS)
# Those that have one where not all do: one vendor numbers rows and statements, the other servers number their own logs.
WITH_HISTORY = ("dataworks", "maxwell")


class Told(NamedTuple):
    """A database, and the messages of a vendor that tell of it."""

    database: Database
    messages: list[bytes]

    def rows(self, life: int) -> list[dict[str, Any]]:
        """The table of a life, as results show its mirror."""
        return in_order(map(as_mirrored, self.database.tables[table_of(life)].rows.values()))


@cache
def told_by(vendor: str, number: int = 1) -> Told:
    """So many lives, and what a vendor tells of them."""
    teller = TELLERS[vendor]

    def draw_one(draw: Callable[..., Any], _: int) -> Told:
        database = Database(number, teller.dialect, "truncate" in teller.statements)
        database.live(draw(steps(teller.kinds, number, number * STEPS)))
        changes = as_told(database.changes, teller, RESTARTS, draw(st.randoms(use_true_random=False)))
        return Told(database, [message for change in changes for message in ENCODERS[vendor](change)])

    # The first example is the simplest one; vendors that tell the same have lives of their own.
    return lives.drawn(draw_one, 2 + list(TELLERS).index(vendor) % 4)[-1]


def test_lives_have_all_that_vendors_tell() -> None:
    assert len(TELLERS) == 11
    told: dict[str, set[str]] = {vendor: {one.op for one in told_by(vendor).database.changes} for vendor in TELLERS}
    assert set().union(*told.values()) >= {"truncate", "drop", "create", "rename", "alter", "snapshot"}
    for vendor, teller in TELLERS.items():
        assert told[vendor] >= {"insert", "update", "delete", "alter"}, vendor
        assert teller.loads == ("snapshot" in told[vendor]), vendor
        assert teller.names_server == (told_by(vendor).database.server > 1), vendor
        assert len(told_by(vendor).rows(0)) >= 2, vendor


# --- mirrors


def name_of(vendor: str, life: int) -> str:
    return f"{table_of(life)}_of_{vendor}"


def project_of(folder: Path, storage: str, told: dict[str, Told], histories: Sequence[str]) -> Project:
    sources = [{"name": vendor, "format": vendor, "files": f"in/{vendor}/*"} for vendor in told]
    settings = {**yaml.safe_load(TARGETS), "target": storage, "sources": sources}
    mirrors = [
        {
            "name": name_of(vendor, life),
            "of": {
                "source": vendor,
                "table": f"{'shop' if one.database.dialect == 'mysql' else 'public'}.{table_of(life)}",
            },
            "key": ["id"],
            "columns": dict(COLUMNS),
            "history": vendor in histories,
        }
        for vendor, one in told.items()
        for life in range(one.database.lives)
    ]
    files = {"project.yml": settings, "models/mirrors.yml": {"mirrors": mirrors}}
    return Project(folder, {path: yaml.safe_dump(content) for path, content in files.items()})


def check(project: Project, told: dict[str, Told], histories: Sequence[str]) -> None:
    """That each mirror is its table, and the rows of its history that are current are, too."""
    expected = {
        name_of(vendor, life): one.rows(life) for vendor, one in told.items() for life in range(one.database.lives)
    }
    assert all_rows(project, expected, SHOWN) == expected
    own = {name_of(vendor, life) for vendor in histories for life in range(told[vendor].database.lives)}
    versions = all_rows(project, [f"{name}_history" for name in own], f"{SHOWN}, valid_from, valid_to, is_current")
    current = {
        name: in_order({column: one[column] for column in COLUMNS} for one in rows if one["is_current"])
        for name, rows in versions.items()
    }
    assert current == {f"{name}_history": rows for name, rows in expected.items() if name in own}
    for rows in versions.values():
        check_times(rows)


def all_rows(project: Project, names: Iterable[str], columns: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of tables that have these columns."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for row in project.rows(" union all ".join(f"select '{name}' as of, {columns} from {name}" for name in found)):
        found[row.pop("of")].append(row)
    return {name: in_order(rows) for name, rows in found.items()}


def check_times(versions: list[dict[str, Any]]) -> None:
    """That no version ends before it begins, or after the next one of its row begins; loaded rows may have no time."""
    told = [one for one in versions if one["valid_from"] is not None]
    # Without the letter at their end, texts of instants sort as instants do.
    times = sorted((one["id"], one["valid_from"][:-1], (one["valid_to"] or "9999Z")[:-1]) for one in told)
    assert all(begins <= ends for _, begins, ends in times), times
    assert all(one[0] != after[0] or one[2] <= after[1] for one, after in pairwise(times)), times
    assert all(one["is_current"] == (one["valid_to"] is None) for one in told), told


def in_order(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=str)


@pytest.mark.usefixtures("spark", "interpreted")
@pytest.mark.parametrize("number", [1, pytest.param(4, marks=pytest.mark.soak)])
def test_in_one_run(tmp_path: Path, number: int) -> None:
    told = {vendor: told_by(vendor, number) for vendor in TELLERS}
    histories = WITH_HISTORY if number == 1 else tuple(TELLERS)
    project = project_of(tmp_path, "parquet", told, histories)
    project.write({f"in/{vendor}/1.jsonl": b"\n".join(one.messages) for vendor, one in told.items()})
    assert "cannot be followed" not in project.ok("run", "--exclude", " ".join(VIEWS))
    check(project, told, histories)


@pytest.mark.soak
@pytest.mark.usefixtures("spark", "interpreted")
@pytest.mark.parametrize("storage", ["delta", "iceberg"])
def test_in_many_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storage: str) -> None:
    """Of which some die between the writes of a mirror's two tables, where it takes in changes or is built again."""
    told, runs = {vendor: told_by(vendor) for vendor in TELLERS}, 8
    project = project_of(tmp_path, storage, told, tuple(TELLERS))
    killed: set[str] = set()
    chance, write, replace = Random(storage), Mirrors._write, Tables.replace

    def may_die(table: str) -> None:
        if table not in killed and run < runs - 1 and chance.random() < 0.5:
            killed.add(table)
            raise QueryFailed("killed")

    def written(mirrors: Mirrors, query: MirrorQuery, step: str, table: str, changed: str) -> None:
        if step == "merged":
            may_die(f"{table} merged")
        write(mirrors, query, step, table, changed)

    def replaced(tables: Tables, name: str, *arguments: Any, **words: Any) -> int:
        if "_of_" in name:
            may_die(name)
        return replace(tables, name, *arguments, **words)

    monkeypatch.setattr(Mirrors, "_write", written)
    monkeypatch.setattr(Tables, "replace", replaced)
    lengths = {vendor: len(one.messages) for vendor, one in told.items()}
    for run, pieces in enumerate(random_pieces(lengths, runs, Random(storage))):
        for vendor, (start, end) in pieces.items():
            project.write({f"in/{vendor}/{run}.jsonl": b"\n".join(told[vendor].messages[start:end])})
        before = len(killed)
        ran = project.run("run", "--exclude", " ".join(VIEWS))
        assert ran.code == (len(killed) > before), ran.err
    assert killed
    check(project, told, tuple(TELLERS))
