"""Mirrors: tables made of the changes of one table. Where a storage can change rows, a table takes in what is new."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from runner.compile.compiled import Compiled
from runner.engine.errors import QueryFailed
from runner.engine.progress import Position, Positions
from runner.engine.tables import Tables
from runner.project.mirrors import GONE, taken_columns
from runner.project.nodes import Mirror, MirrorColumn, MirroredTable, MirrorQuery
from runner.project.templates import new_rows_view
from runner.run.landing import finishes
from runner.run.reading import Reading, landed_again, reading_until

Built = tuple[int, tuple[str, ...]]
"""The number of a table's rows, and notes for the user."""


@dataclass(frozen=True)
class Mirrors:
    """Builds the tables of mirrors."""

    reading: Reading
    compiled: Compiled
    tables: Tables
    run_id: str

    def build(self, name: str, query: MirrorQuery) -> Built:
        """Builds a table, or brings it up to date. Raises QueryFailed, also for columns that the mirror does not have,
        if it is to fail then.
        """
        if query.shows == "state" and self.tables.storage.changes_rows and query.mirror.takes_increments:
            return self._up_to_date(name, query.mirror)
        begun, seen = self.tables.refreshes.unfinished(name), self.reading.changelogs(name)
        if not begun:
            self._check_whole(name, query.mirror)
        mirror, notes = self._looked_at(query.mirror, query.shows)
        with self.tables.progress(name).writing(reading_until(seen, {})):
            count = self.tables.replace(name, self.tables.macro(f"mirror_{query.shows}", mirror))
        self.tables.refreshes.done(name)
        return count, (*finishes(begun, self.run_id), *(notes if query.shows == "state" else ()))

    def _up_to_date(self, name: str, mirror: Mirror) -> Built:
        begun, seen = self.tables.refreshes.unfinished(name), self.reading.changelogs(name)
        since = None if begun else self._since(name, mirror, seen)
        if since is None:
            if not begun:
                self._check_whole(name, mirror)
            return self._built(name, mirror, seen, finishes(begun, self.run_id))
        until, mirror = reading_until(seen, since), self._with_added(name, mirror)
        if until == since:
            return self.tables.count(name), ()
        self.reading.show_new_rows(name, mirror.models, since, until)
        new = replace(mirror, tables=tuple(_with_rows(name, one) for one in mirror.tables))
        found = self._findings(new, self.tables.storage.table(name))
        found_mirror, notes = _after_findings(new, "state", found)
        if found_mirror is not new or found["is_emptied"]:
            self._check_whole(name, mirror)
            return self._built(name, mirror, seen, ())
        with self.tables.progress(name).writing(until):
            Increment(self.tables, name, mirror, new, lambda: self._check_whole(name, mirror)).apply()
        return self.tables.count(name), notes

    def _check_whole(self, name: str, mirror: Mirror) -> None:
        """Raises QueryFailed if changes that made a table are no longer there."""
        removed = [model for model in mirror.models if self.tables.checkpoint(model).kept_since()]
        if removed and self.tables.storage.has_table(name):
            raise QueryFailed(
                f'"{name}" must look at all changes of "{removed[0]}" again, and maintain --keep-days has removed old '
                f"ones: --full-refresh -s {name} makes it of those that are left"
            )

    def _with_added(self, name: str, mirror: Mirror) -> Mirror:
        """The mirror with the columns that earlier runs have added."""
        if mirror.on_drift != "add":
            return mirror
        self.tables.table_view(name)
        return _with_texts(mirror, [one for one in self.tables.types(name) if one not in mirror.state_columns])

    def _since(self, name: str, mirror: Mirror, seen: Mapping[str, Position | None]) -> Positions | None:
        """How far the table has read; None if it is not this mirror of these changelogs, and must be built again."""
        if not self.tables.storage.has_table(name) or not self.tables.storage.has_table(f"{name}{GONE}"):
            return None
        since = self.tables.progress(name).read()
        is_this = self.tables.mark(name) == self._meaning(name, mirror)
        return since if is_this and since is not None and not landed_again(since, seen) else None

    def _built(self, name: str, mirror: Mirror, seen: Mapping[str, Position | None], notes: tuple[str, ...]) -> Built:
        """Builds the table and that of rows that are gone, from all changes."""
        self.tables.write_mark(name, "")
        whole, more = self._looked_at(mirror, "state")
        rows, macro, storage = f"{name}__whole", self.tables.macro, self.tables.storage
        with (
            self.tables.progress(name).writing(reading_until(seen, {})),
            self.tables.spark.computed_view(rows, macro("mirror_whole", whole)),
        ):
            storage.replace(f"{name}{GONE}", macro("rows_gone", whole, rows), True)
            count = self.tables.replace(name, macro("rows_there", whole, rows), True)
        self.tables.write_mark(name, self._meaning(name, mirror))
        self.tables.refreshes.done(name)
        return count, (*notes, *more)

    def _meaning(self, name: str, mirror: Mirror) -> str:
        """What a table is made by. Its SQL says nothing of columns that were added to it."""
        return hashlib.sha256(f"{self.compiled.nodes[name].meaning}\n{mirror.drift}".encode()).hexdigest()

    def _looked_at(self, mirror: Mirror, shows: str) -> tuple[Mirror, tuple[str, ...]]:
        """The mirror, with columns that were added to it, and notes on what it is without; raises QueryFailed."""
        # The notes are those of its rows as they are; looking for them reads all changes.
        if shows == "history" and mirror.on_drift == "warn":
            return mirror, ()
        return _after_findings(mirror, shows, self._findings(mirror))

    def _findings(self, mirror: Mirror, table: str = "") -> dict[str, Any]:
        return _row(self.tables, "mirror_findings", mirror, table)


@dataclass(frozen=True)
class Increment:
    """New changes of a mirror. `new` is the mirror as it reads only these. What they say of each row is merged, again
    if a run dies in between: it is the same the second time. `check_whole` raises QueryFailed if old ones are missing.
    """

    tables: Tables
    name: str
    mirror: Mirror
    new: Mirror
    check_whole: Callable[[], None]

    def apply(self) -> None:
        with self._computed("told", "mirror_told", self.new) as told:
            bounds = _row(self.tables, "mirror_bounds", self.mirror, told)
            if bounds["rows"]:
                own = self.tables.storage.table(self.name), self.tables.storage.table(f"{self.name}{GONE}")
                with self._computed("decided", "mirror_decided", self.mirror, told, *own, bounds) as decided:
                    self._merge(decided, bounds)

    def _merge(self, decided: str, bounds: Mapping[str, Any]) -> None:
        counts = _row(self.tables, "mirror_decisions", decided)
        if counts["again"]:
            self.check_whole()
        if counts["changed"]:
            with self._computed("changed", "mirror_changed", self.mirror, decided, counts["again"] > 0) as changed:
                self._write("gone_merged", f"{self.name}{GONE}", changed, bounds)
                self._write("mirror_merged", self.name, changed, bounds)

    def _write(self, macro: str, table: str, changed: str, bounds: Mapping[str, Any]) -> None:
        sql = self.tables.macro(macro, self.mirror, self.tables.storage.table(table), changed, bounds)
        self.tables.spark.do(sql)

    @contextmanager
    def _computed(self, what: str, macro: str, *arguments: Any) -> Iterator[str]:
        """A view of what a macro selects, before its own tables change."""
        view = f"{self.name}__{what}"
        with self.tables.spark.computed_view(view, self.tables.macro(macro, *arguments)):
            yield view


def _row(tables: Tables, macro: str, *arguments: Any) -> dict[str, Any]:
    """The one row that a macro selects."""
    return tables.spark.rows(tables.macro(macro, *arguments))[1][0]


def _after_findings(mirror: Mirror, shows: str, found: Mapping[str, Any]) -> tuple[Mirror, tuple[str, ...]]:
    """The mirror, with columns that are added to it, and notes on what it is without; raises QueryFailed."""
    unknown = found["unknown_columns"]
    if unknown and mirror.on_drift == "fail":
        raise QueryFailed(f"on_drift is fail, and {_not_here(unknown)}")
    taken = taken_columns(shows == "history") if mirror.on_drift == "add" else set(unknown)
    added = [column for column in unknown if column.lower() not in taken]
    left = [column for column in unknown if column not in added]
    notes = tuple(_notes(mirror, added, left, found["without_key"]))
    return _with_texts(mirror, added) if added else mirror, notes


def _with_texts(mirror: Mirror, columns: Iterable[str]) -> Mirror:
    return replace(mirror, columns=(*mirror.columns, *(MirrorColumn(one, "string") for one in columns)))


def _with_rows(name: str, table: MirroredTable) -> MirroredTable:
    return replace(table, rows=new_rows_view(name, table.source.model))


def _notes(mirror: Mirror, added: list[str], left: list[str], without_key: int) -> Iterator[str]:
    if added:
        yield f"added as text: {_quoted(added)}; give them a type under columns"
    if left and mirror.on_drift == "add":
        yield f"not added, since a mirror has columns of these names itself: {_quoted(left)}"
    elif left:
        yield f"{_not_here(left)}: give them a type under columns, or name them under left_out"
    if without_key:
        changes = "1 change tells" if without_key == 1 else f"{without_key} changes tell"
        yield f"{changes} no key of its type ({', '.join(mirror.key)}), and the mirror is without them"


def _not_here(unknown: Iterable[str]) -> str:
    return f"the table has columns that the mirror does not have: {_quoted(unknown)}"


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
