"""Mirrors: tables made of the changes of one table. Where a storage can change rows, a table takes in what is new."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from runner.compile.compiled import CompiledNode
from runner.engine.errors import QueryFailed
from runner.engine.progress import Position, Positions, Progress
from runner.engine.recorded import ends_with
from runner.engine.tables import Tables
from runner.errors import full_refresh
from runner.project.mirror import Mirror, MirroredTable, MirrorQuery
from runner.project.templates import new_rows_view
from runner.run.definitions import NO_MARK, Definitions, Mark, log_of_numbers
from runner.run.drift import after_findings, defaults_told, with_defaults, with_texts
from runner.run.evolution import (
    Evolution,
    Evolving,
    again_because,
    as_it_was,
    columns_as_recorded,
    columns_changed,
    with_defaults_told,
    with_statements,
)
from runner.run.increments import NOTHING, landed_again, reading_until, replaced_since
from runner.run.landing import finishes
from runner.run.statements import Effect
from runner.sql_text import folded

if TYPE_CHECKING:
    from runner.run.run import Run

Built = tuple[int | None, tuple[str, ...]]
"""The number of a table's rows, None if the table is as it was; and notes for the user."""


class Mirrors:
    """Builds the tables of mirrors."""

    def __init__(self, run: Run) -> None:
        self.reading, self.tables = run.reading, run.tables
        self.statements, self.run_id, self.library = run.statements, run.run_id, run.library
        self.seen, self.definitions, self.evolving = run.seen, Definitions(run), Evolving(run)

    def build(self, query: MirrorQuery) -> Built:
        """Builds a table, or brings it up to date. Raises QueryFailed, also for columns that the mirror does not have
        if `on_drift` is `fail`.
        """
        for table in query.mirror.tables:
            self.seen.look(table.source)
        query, begun = self.seen.current(query), self.tables.begun_refresh(query.model)
        seen, progress = self.reading.changelogs(query.model), self.tables.progress(query.model)
        if not begun and self._is_up_to_date(query, seen, progress):
            return None, ()
        written, notes = self._as_written(query), finishes(begun, self.run_id)
        if self._takes_increments(query) and not begun:
            since, evolution = self._since(query, written, seen, progress)
            if since is not None and not evolution.refused:
                until = reading_until(seen, since)
                if until == since and not evolution.is_needed:
                    return self._kept(query, written, progress)
                return self._up_to_date(query, written, since, until, progress, evolution)
            notes = again_because(evolution.refused)
        if not begun:
            self._check_whole(query)
        return self._built(query, written, reading_until(seen, {}), notes, progress)

    def _is_up_to_date(self, query: MirrorQuery, seen: Mapping[str, Position | None], progress: Progress) -> bool:
        """Returns True if nothing has landed that concerns the table, as far as this can be told without a query."""
        name, storage, record = query.model, self.tables.storage, progress.recorded()
        names = [name, query.beside] if self._takes_increments(query) else [name]
        if record is None or not storage.have_tables(names):
            return False
        newest, mark = storage.newest_write(name), Mark.read(self.tables.mark(name))
        is_another = newest is not None and newest not in record.written
        if (
            is_another
            or landed_again(record.read, seen)
            or mark.defined_by != self.definitions.of(mark.under_first_names(query))
        ):
            return False
        if self._replaced(query, record.read, seen):
            return False
        return all(self._has_no_news(query, table, seen, record.read) for table in query.mirror.tables)

    def _has_no_news(
        self, query: MirrorQuery, table: MirroredTable, now: Mapping[str, Position | None], since: Positions
    ) -> bool:
        """Returns True if no change of a table and no statement has landed since the mirror has read."""
        model = table.source.model
        position, read, seen = now.get(model), since.get(model, NOTHING), self.seen.of(table.source)
        if position is None or position.table != read.table:
            return False
        if position.batch == read.batch:
            return True
        if (seen.table, seen.batch) != (position.table, position.batch) or seen.statements > read.batch:
            return False
        return all(one.batch <= read.batch for name in self._names(query, table) for one in seen.named(name))

    def _names(self, query: MirrorQuery, table: MirroredTable) -> list[tuple[str, ...]]:
        """Returns the names that a table of a mirror has and had."""
        seen = self.seen.of(table.source)
        return [table.name] if seen.statements < 0 else self.statements.names(query.mirror, table, seen)

    def _replaced(self, query: MirrorQuery, since: Positions, seen: Mapping[str, Position | None]) -> bool:
        """Returns True if rows of the mirror's tables were replaced after it has read them."""
        replaced = replaced_since(self.tables, since, seen)
        return any(
            ends_with(other, name)
            for table in query.mirror.tables
            for other in replaced.get(table.source.model, ())
            for name in self._names(query, table)
        )

    def _up_to_date(
        self,
        query: MirrorQuery,
        written: Mark,
        since: Positions,
        until: Positions,
        progress: Progress,
        evolution: Evolution,
    ) -> Built:
        """Takes in what has landed between two positions in the changelogs."""
        name, mark, as_written = query.model, Mark.read(self.tables.mark(query.model)), query
        query = self._with_added(query)
        statements = self.statements.show(query.mirror)
        query = replace(query, mirror=with_defaults(statements.mirror, mark.defaults))
        self.reading.show_new_rows(name, query.mirror.models, since, until)
        tables = tuple(replace(one, rows=new_rows_view(name, one.source.model)) for one in query.mirror.tables)
        new = replace(query.mirror, tables=tables)
        found = _row(self.tables, "increment_findings", new)
        wider, notes = after_findings(new, query.shows, found)
        evolution = evolution._replace(added=(*evolution.added, *wider.columns[len(new.columns) :]))
        query = replace(query, mirror=replace(query.mirror, columns=wider.columns))
        read = {one.source.name: since.get(one.source.model, NOTHING).batch for one in query.mirror.tables}
        evolution = with_statements(evolution, query, statements.effects, read)
        defaults = mark.defaults
        if not defaults_told(self.tables, new).keys() <= defaults.keys():
            defaults = defaults_told(self.tables, query.mirror)
            evolution = with_defaults_told(evolution, mark.defaults, defaults)
            query = replace(query, mirror=with_defaults(query.mirror, defaults))
        with self.evolving.evolved(query, evolution, progress) as (evolution, again):
            if evolution.refused:
                self._check_whole(query)
                return self._built(as_written, written, until, again_because(evolution.refused), progress)
            self._keep(as_written, progress)
            with progress.writing(until):
                if found["with_key"] or again:
                    query = self._remembered(query, found, statements.effects)
                    self._take_in(query, replace(query.mirror, tables=tables), again)
        self._record(name, written, defaults)
        own = (*notes, *statements.notes) if query.shows == "state" else ()
        return self._count(name, progress), (*evolution.notes, *self._removed(query, evolution), *own)

    def _kept(self, query: MirrorQuery, written: Mark, progress: Progress) -> Built:
        """Leaves the rows of a table as they are."""
        self._keep(query, progress)
        self._record(query.model, written, Mark.read(self.tables.mark(query.model)).defaults)
        return self._count(query.model, progress), ()

    def _count(self, name: str, progress: Progress) -> int:
        """Returns the number of a table's rows, and creates a view of the table. The rows are counted if the number is
        not recorded.
        """
        rows = progress.rows()
        if rows is None:
            progress.counted(rows := self.tables.count(name))
        else:
            self.tables.storage.table_view(name)
        return rows

    def _removed(self, query: MirrorQuery, evolution: Evolution) -> list[str]:
        """Returns the note that new columns may lack values, if changes that told them may have been removed."""
        removed = self.reading.without_old_rows(query.mirror.models) if evolution.added else []
        return [
            f'old changes of "{name}" are removed, and with them what they told of the new columns' for name in removed
        ]

    def _keep(self, query: MirrorQuery, progress: Progress) -> None:
        """Brings up to date what is beside the rows of a table."""
        self.tables.refresh(query.model, query.layout)
        progress.verified()

    def _record(self, name: str, written: Mark, defaults: dict[str, str]) -> None:
        """Records that a table is as the mirror is written now."""
        had = Mark.read(self.tables.mark(name))
        now = written._replace(told_parts=had.told_parts, numbered_in=had.numbered_in, defaults=defaults)
        if now != had:
            self.tables.write_mark(name, now.text())

    def _as_written(self, query: MirrorQuery) -> Mark:
        """Returns what is recorded of a mirror as it is written, before anything is known of its changes."""
        mark = Mark.read(self.tables.mark(query.model))
        columns, left_out = columns_as_recorded(query.mirror.columns), list(query.mirror.left_out)
        first = mark.under_first_names(query)
        return NO_MARK._replace(
            made_by=self._made_by(first),
            defined_by=self.definitions.of(first),
            columns=columns,
            left_out=left_out,
            named=mark.named,
        )

    def _take_in(self, query: MirrorQuery, new: Mirror, again: list[str]) -> None:
        """Merges new changes into the tables of a mirror; `new` is the mirror as it reads only these changes. Rows of
        the views in `again` are looked at again. A run that dies meanwhile leaves all this to the next run, and the
        second merge has the same result.
        """
        own = map(self.tables.storage.table, (query.model, query.beside))
        query = replace(query, bounds=()) if again else query
        with self._decided(query, replace(query, mirror=new), list(own), again) as (decided, counts):
            looks_again = counts["again"] > 0
            if looks_again:
                self._check_whole(query)
            if counts["changed"]:
                with self._changed(query, decided, looks_again) as changed:
                    if counts["beside"]:
                        self._write(query, "beside_written", query.beside, changed)
                    self._write(query, "merged", query.model, changed)

    @contextmanager
    def _decided(
        self, query: MirrorQuery, new: MirrorQuery, own: list[str], again: list[str]
    ) -> Iterator[tuple[str, Mapping[str, int]]]:
        """Creates a view of new changes, each with what is to be done with it; yields it with the numbers of these
        decisions.
        """
        with self._counted(query, "decided", new, *own) as decided:
            if not again:
                yield decided
                return
            with self._counted(query, "decided_with", decided[0], *again) as with_others:
                yield with_others

    @contextmanager
    def _counted(self, query: MirrorQuery, step: str, *arguments: Any) -> Iterator[tuple[str, Mapping[str, int]]]:
        """Creates a view of what a step decides, with the numbers of its decisions."""
        view, macro = f"{query.model}__{step}", self.tables.macro
        sql, counts = macro(f"{query.shows}_{step}", *arguments), macro(f"{query.shows}_decisions")
        with self.tables.spark.counted_view(view, sql, counts) as counted:
            yield view, counted

    def _changed(self, query: MirrorQuery, decided: str, looks_again: bool) -> AbstractContextManager[str]:
        """Creates a view of the rows that change."""
        if query.shows == "history":
            return self._computed(query, "changed", query, decided, [decided] if looks_again else [])
        return self._computed(query, "changed", query, decided) if looks_again else nullcontext(decided)

    def _write(self, query: MirrorQuery, step: str, table: str, changed: str) -> None:
        own = self.tables.storage.table(table)
        self.tables.spark.do(self.tables.macro(f"{query.shows}_{step}", query, own, changed))

    @contextmanager
    def _computed(self, query: MirrorQuery, step: str, *arguments: Any) -> Iterator[str]:
        """Creates a view of what a step selects, computed before the tables of the mirror change."""
        view = f"{query.model}__{step}"
        with self.tables.spark.computed_view(view, self.tables.macro(f"{query.shows}_{step}", *arguments)):
            yield view

    def _remembered(self, query: MirrorQuery, found: Mapping[str, Any], effects: Sequence[Effect]) -> MirrorQuery:
        """Returns the query with what is known of all changes of the table, including those that the table is about to
        take in.
        """
        had = Mark.read(self.tables.mark(query.model))
        numbered_in = had.numbered_in if had.numbered_in == log_of_numbers(found, effects) else None
        now = had._replace(told_parts=had.told_parts or found["tells_parts"], numbered_in=numbered_in)
        if now != had:
            # The mark is written before the table: a run that dies in between must not hide what has changed.
            self.tables.write_mark(query.model, now.text())
        bounds = tuple(
            (column, found[f"first_{number}"], found[f"last_{number}"])
            for number, column in enumerate(query.mirror.key_columns)
            if column.type != "binary"
        )
        return replace(_knowing(query, effects, now.told_parts, now.numbered_in), bounds=bounds)

    def _check_whole(self, query: MirrorQuery) -> None:
        """Raises QueryFailed if changes from which the table was made are no longer there."""
        name = query.model
        removed = self.reading.without_old_rows(query.mirror.models)
        if removed and self.tables.storage.has_table(name):
            raise QueryFailed(
                f'"{name}" must look at all changes of "{removed[0]}" again, and maintain --keep-days has removed old '
                f"ones: {full_refresh(name)} makes it of those that are left"
            )

    def _with_added(self, query: MirrorQuery) -> MirrorQuery:
        """Returns the mirror with the columns that earlier runs have added."""
        if query.mirror.on_drift != "add":
            return query
        self.tables.table_view(query.model)
        added = [one for one in self.tables.types(query.model) if one not in query.columns]
        return replace(query, mirror=with_texts(query.mirror, added))

    def _since(
        self, query: MirrorQuery, written: Mark, seen: Mapping[str, Position | None], progress: Progress
    ) -> tuple[Positions | None, Evolution]:
        """Returns how far the table has read, and how it becomes the table of this mirror; None if it is not there, or
        has read other changelogs.
        """
        storage, mark = self.tables.storage, Mark.read(self.tables.mark(query.model))
        if not all(storage.has_table(name) for name in (query.model, query.beside)):
            return None, Evolution()
        since = progress.read()
        if since is None or landed_again(since, seen):
            return None, Evolution()
        if self._replaced(query, since, seen):
            return since, Evolution(refused="rows that it has read were replaced")
        if mark.made_by == written.made_by:
            return since, Evolution()
        was = as_it_was(query, mark.columns, mark.left_out)
        if mark.made_by != self._made_by(mark.under_first_names(was)):
            return since, Evolution(refused="it is defined otherwise")
        return since, columns_changed(was, query, storage.widens)

    def _built(
        self, query: MirrorQuery, written: Mark, until: Positions, notes: tuple[str, ...], progress: Progress
    ) -> Built:
        """Builds the table from all changes. Where the table is to take in new changes later, also builds the table
        beside it.
        """
        name = query.model
        query, more, defaults = self._looked_at(query)
        with progress.writing(until):
            if self._takes_increments(query):
                count = self._written_with_beside(query)
            else:
                count = self.tables.replace(name, self.tables.macro(f"mirror_{query.shows}", query), query.layout)
            mark = written._replace(told_parts=query.has_parts, numbered_in=query.numbered_in, defaults=defaults)
            self.tables.write_mark(name, mark.text())
        progress.counted(count)
        self.tables.refreshes.done(name)
        return count, (*notes, *(more if query.shows == "state" else ()))

    def _written_with_beside(self, query: MirrorQuery) -> int:
        name, macro, shows = query.model, self.tables.macro, query.shows
        rows = f"{name}__whole"
        # A table without a mark is built again.
        self.tables.write_mark(name, "")
        with self.tables.spark.counted_view(rows, macro(f"{shows}_whole", query), macro("not_gone_counted")) as count:
            self.tables.storage.replace(query.beside, macro(f"{shows}_beside", query, rows), is_changed_often=True)
            self.tables.write(name, macro("rows_not_gone", query, rows), query.layout, is_changed_often=True)
        self.tables.storage.table_view(name)
        return int(count)

    def _takes_increments(self, query: MirrorQuery) -> bool:
        return self.tables.storage.changes_rows and query.mirror.takes_increments

    def _made_by(self, query: MirrorQuery) -> str:
        """Returns the hash of what makes a table. The hash covers the settings for columns that are added, because the
        SQL does not name such columns.
        """
        order = f"\n{query.layout.order}" if query.layout.order else ""
        drift = f"{query.mirror.on_drift} {json.dumps(sorted(query.mirror.left_out))}"
        meaning = f"{self._meaning(query)}\n{drift}{order}"
        return hashlib.sha256(meaning.encode()).hexdigest()

    def _meaning(self, query: MirrorQuery) -> str:
        sql = folded(self.tables.macro(f"mirror_{query.shows}", query))
        return self.library.complete(CompiledNode(sql)).meaning

    def _looked_at(self, query: MirrorQuery) -> tuple[MirrorQuery, tuple[str, ...], dict[str, str]]:
        """Returns the query with what is known of all changes and with the columns that were added to its mirror, notes
        on what the mirror lacks, and the defaults that messages name; raises QueryFailed.
        """
        statements = self.statements.show(query.mirror)
        defaults = defaults_told(self.tables, statements.mirror)
        mirror = with_defaults(statements.mirror, defaults)
        # Only a mirror that shows the state has notes on its rows, and finding them reads all changes.
        if query.shows == "history" and query.mirror.on_drift == "warn":
            return _knowing(replace(query, mirror=mirror), statements.effects), (), defaults
        found = _row(self.tables, "mirror_findings", mirror)
        mirror, notes = after_findings(mirror, query.shows, found)
        numbered_in = log_of_numbers(found, statements.effects)
        query = _knowing(replace(query, mirror=mirror), statements.effects, found["tells_parts"], numbered_in)
        return query, (*notes, *statements.notes), defaults


def _knowing(
    query: MirrorQuery, effects: Sequence[Effect], has_parts: bool = True, numbered_in: str | None = None
) -> MirrorQuery:
    """Returns the query with what is known of its changes. Numbers alone give the newest change of a row; a history
    must also know which changes are told again.
    """
    log = numbered_in if query.shows == "state" else None
    return replace(query, has_statements=bool(effects), has_parts=has_parts, numbered_in=log)


def _row(tables: Tables, macro: str, *arguments: Any) -> dict[str, Any]:
    """Returns the one row that a macro selects."""
    return tables.spark.rows(tables.macro(macro, *arguments))[1][0]
