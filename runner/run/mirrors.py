"""Mirrors: tables made of the changes of one table. Where a storage can change rows, a table takes in what is new."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from runner.compile.compiled import Compiled
from runner.engine.errors import QueryFailed
from runner.engine.progress import Position, Positions, Progress
from runner.engine.tables import Tables
from runner.project.mirror import Mirror, MirrorColumn, MirroredTable, MirrorQuery
from runner.project.mirrors import taken_columns
from runner.project.templates import new_rows_view
from runner.run.landing import finishes
from runner.run.reading import Reading, landed_again, reading_until

Built = tuple[int, tuple[str, ...]]
"""The number of a table's rows, and notes for the user."""

# In the mark of a table of which no change has told parts of a row.
WHOLE_ROWS = " whole rows"


@dataclass(frozen=True)
class Mirrors:
    """Builds the tables of mirrors."""

    reading: Reading
    compiled: Compiled
    tables: Tables
    run_id: str

    def build(self, query: MirrorQuery) -> Built:
        """Builds a table, or brings it up to date. Raises QueryFailed, also for columns that the mirror does not have,
        if it is to fail then.
        """
        begun = self.tables.begun_refresh(query.model)
        seen, progress = self.reading.changelogs(query.model), self.tables.progress(query.model)
        if self._takes_increments(query):
            since = None if begun else self._since(query, seen, progress)
            if since is not None:
                return self._up_to_date(query, since, reading_until(seen, since), progress)
        if not begun:
            self._check_whole(query)
        return self._built(query, reading_until(seen, {}), finishes(begun, self.run_id), progress)

    def _up_to_date(self, query: MirrorQuery, since: Positions, until: Positions, progress: Progress) -> Built:
        """Takes in what has landed between two places."""
        name, query = query.model, self._with_added(query)
        self.tables.refresh(name, query.layout)
        if until == since:
            return self.tables.count(name), ()
        self.reading.show_new_rows(name, query.mirror.models, since, until)
        new = replace(query.mirror, tables=tuple(_with_rows(name, one) for one in query.mirror.tables))
        now = self.tables.macro(f"{query.shows}_now", self.tables.storage.table(name))
        found = _row(self.tables, "mirror_findings", new, now)
        found_mirror, notes = _after_findings(new, query.shows, found)
        if found_mirror is not new or found["is_emptied"]:
            self._check_whole(query)
            return self._built(query, until, (), progress)
        found["has_parts"] = self._has_parts(query, found["tells_parts"])
        with progress.writing(until):
            Increment(self.tables, query, new, found, lambda: self._check_whole(query)).apply()
        return self.tables.count(name), notes if query.shows == "state" else ()

    def _has_parts(self, query: MirrorQuery, tells_parts: bool) -> bool:
        """Whether changes of the table have told parts of a row, those that it is to take in among them."""
        had_parts = self.tables.mark(query.model) != self._mark(query, has_parts=False)
        if tells_parts and not had_parts:
            # Before the table: a run that dies in between must not hide it.
            self.tables.write_mark(query.model, self._mark(query, has_parts=True))
        return tells_parts or had_parts

    def _check_whole(self, query: MirrorQuery) -> None:
        """Raises QueryFailed if changes that made a table are no longer there."""
        name = query.model
        removed = self.reading.without_old_rows(query.mirror.models)
        if removed and self.tables.storage.has_table(name):
            raise QueryFailed(
                f'"{name}" must look at all changes of "{removed[0]}" again, and maintain --keep-days has removed old '
                f"ones: --full-refresh -s {name} makes it of those that are left"
            )

    def _with_added(self, query: MirrorQuery) -> MirrorQuery:
        """The mirror with the columns that earlier runs have added."""
        if query.mirror.on_drift != "add":
            return query
        self.tables.table_view(query.model)
        added = [one for one in self.tables.types(query.model) if one not in query.columns]
        return replace(query, mirror=_with_texts(query.mirror, added))

    def _since(self, query: MirrorQuery, seen: Mapping[str, Position | None], progress: Progress) -> Positions | None:
        """How far the table has read; None if it is not this mirror of these changelogs, and must be built again."""
        if not all(self.tables.storage.has_table(name) for name in (query.model, query.beside)):
            return None
        since = progress.read()
        is_this = self.tables.mark(query.model) in (
            self._mark(query, has_parts=True),
            self._mark(query, has_parts=False),
        )
        return since if is_this and since is not None and not landed_again(since, seen) else None

    def _built(self, query: MirrorQuery, until: Positions, notes: tuple[str, ...], progress: Progress) -> Built:
        """Builds the table from all changes and, where it is to take in new ones, that which is beside it."""
        name, (mirror, more, has_parts) = query.model, self._looked_at(query)
        with progress.writing(until):
            if self._takes_increments(query):
                count = self._written_with_beside(query, mirror)
                self.tables.write_mark(name, self._mark(query, has_parts))
            else:
                count = self.tables.replace(name, self.tables.macro(f"mirror_{query.shows}", mirror), query.layout)
        self.tables.refreshes.done(name)
        return count, (*notes, *(more if query.shows == "state" else ()))

    def _written_with_beside(self, query: MirrorQuery, mirror: Mirror) -> int:
        name, macro, shows = query.model, self.tables.macro, query.shows
        rows = f"{name}__whole"
        # A table without a mark is built again.
        self.tables.write_mark(name, "")
        with self.tables.spark.computed_view(rows, macro(f"{shows}_whole", mirror)):
            self.tables.storage.replace(query.beside, macro(f"{shows}_beside", mirror, rows), is_changed_often=True)
            return self.tables.replace(name, macro(f"{shows}_rows", mirror, rows), query.layout, is_changed_often=True)

    def _takes_increments(self, query: MirrorQuery) -> bool:
        return self.tables.storage.changes_rows and query.mirror.takes_increments

    def _mark(self, query: MirrorQuery, has_parts: bool) -> str:
        """What a table is made by, and that no change has told parts of a row, where it is so. Its SQL says nothing of
        columns that were added to it.
        """
        order = f"\n{query.layout.order}" if query.layout.order else ""
        meaning = f"{self.compiled.nodes[query.model].meaning}\n{query.mirror.drift}{order}"
        return f"{hashlib.sha256(meaning.encode()).hexdigest()}{'' if has_parts else WHOLE_ROWS}"

    def _looked_at(self, query: MirrorQuery) -> tuple[Mirror, tuple[str, ...], bool]:
        """The mirror, with columns that were added to it, notes on what it is without, and whether changes may tell
        parts of a row; raises QueryFailed.
        """
        # The notes are those of its rows as they are; looking for them reads all changes.
        if query.shows == "history" and query.mirror.on_drift == "warn":
            return query.mirror, (), True
        found = _row(self.tables, "mirror_findings", query.mirror)
        return *_after_findings(query.mirror, query.shows, found), found["tells_parts"]


@dataclass(frozen=True)
class Increment:
    """New changes of a mirror. `new` is the mirror as it reads only these, and `found` says what is in them. What they
    say of each row is merged, again if a run dies in between: it is the same the second time. `check_whole` raises
    QueryFailed if old ones are missing.
    """

    tables: Tables
    query: MirrorQuery
    new: Mirror
    found: Mapping[str, Any]
    check_whole: Callable[[], None]

    def apply(self) -> None:
        if self.found["with_key"]:
            own = map(self.tables.storage.table, (self.query.model, self.query.beside))
            with self._computed("decided", self.query.mirror, self.new, *own, self.found) as decided:
                self._merge(decided)

    def _merge(self, decided: str) -> None:
        counts = _row(self.tables, f"{self.query.shows}_decisions", decided)
        looks_again = counts["again"] > 0
        if looks_again:
            self.check_whole()
        if counts["changed"]:
            with self._changed(decided, looks_again) as changed:
                if counts["beside"]:
                    self._write("beside_written", self.query.beside, changed)
                self._write("merged", self.query.model, changed)

    def _changed(self, decided: str, looks_again: bool) -> AbstractContextManager[str]:
        """A view of the rows that change."""
        if self.query.shows == "history":
            return self._computed("changed", self.query.mirror, decided, looks_again)
        return self._computed("changed", self.query.mirror, decided) if looks_again else nullcontext(decided)

    def _write(self, step: str, table: str, changed: str) -> None:
        macro, storage = f"{self.query.shows}_{step}", self.tables.storage
        self.tables.spark.do(self.tables.macro(macro, self.query.mirror, storage.table(table), changed, self.found))

    @contextmanager
    def _computed(self, step: str, *arguments: Any) -> Iterator[str]:
        """A view of what a step selects, before its own tables change."""
        view = f"{self.query.model}__{step}"
        with self.tables.spark.computed_view(view, self.tables.macro(f"{self.query.shows}_{step}", *arguments)):
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
