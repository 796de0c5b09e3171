"""Mirrors: tables made of the changes of one table. Where a storage can change rows, a table takes in what is new."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from runner.compile.compiled import CompiledNode
from runner.engine.errors import QueryFailed
from runner.engine.progress import Position, Positions, Progress
from runner.engine.tables import Tables
from runner.errors import full_refresh
from runner.files import read_text
from runner.project.inputs import Source
from runner.project.mirror import Mirror, MirrorColumn, MirroredTable, MirrorQuery
from runner.project.mirrors import taken_columns
from runner.project.templates import new_rows_view
from runner.run.increments import NOTHING, landed_again, reading_until
from runner.run.landing import finishes
from runner.run.statements import Effect
from runner.sql_text import folded

if TYPE_CHECKING:
    from runner.run.run import Run

Built = tuple[int | None, tuple[str, ...]]
"""The number of a table's rows, None if the table is as it was; and notes for the user."""


class Mark(NamedTuple):
    """The facts that are recorded of a mirror's table, as JSON; any other text is read as no facts. `made_by` is the
    hash of the SQL that made the table, `defined_by` that of the mirror as it was written. `told_parts` is True if
    changes told only parts of a row. `numbered_in` is the log in which all changes are numbered, None if there is no
    such log. `defaults` are the defaults of columns that messages named.
    """

    made_by: str
    told_parts: bool
    numbered_in: str | None
    defaults: dict[str, str]
    defined_by: str = ""

    def text(self) -> str:
        return json.dumps(self._asdict())

    @classmethod
    def read(cls, text: str) -> Mark:
        try:
            return cls(**json.loads(text))
        except (TypeError, ValueError):
            return cls("", True, None, {})


class Definitions:
    """The hashes of mirrors as they are written: they tell without any SQL if a mirror has changed."""

    def __init__(self, run: Run) -> None:
        self.renderer, self.vars = run.library.renderer, run.project.vars
        self.formats: dict[str, str] = {}

    @cached_property
    def macros(self) -> str:
        texts = [read_text(path) for path in sorted(set(self.renderer.files.values()))]
        return hashlib.sha256("".join([*texts, repr(self.vars)]).encode()).hexdigest()

    def of(self, query: MirrorQuery) -> str:
        tables = [(self._source(table.source), table.name, table.after) for table in query.mirror.tables]
        written = (query.shows, query.layout, replace(query.mirror, tables=()), tables, self.macros)
        return hashlib.sha256(repr(written).encode()).hexdigest()

    def _source(self, source: Source) -> str:
        if source.name not in self.formats:
            self.formats[source.name] = repr((source.name, source.generation, source.format))
        return self.formats[source.name]


class Mirrors:
    """Builds the tables of mirrors."""

    def __init__(self, run: Run) -> None:
        self.reading, self.compiled, self.tables = run.reading, run.compiled, run.tables
        self.statements, self.run_id, self.library = run.statements, run.run_id, run.library
        self.seen, self.by_rule = run.seen, run.workspace.mirrors.by_rule
        self.definitions = Definitions(run)

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
        if self._takes_increments(query):
            since = None if begun else self._since(query, seen, progress)
            if since is not None:
                return self._up_to_date(query, since, reading_until(seen, since), progress)
        if not begun:
            self._check_whole(query)
        return self._built(query, reading_until(seen, {}), finishes(begun, self.run_id), progress)

    def _is_up_to_date(self, query: MirrorQuery, seen: Mapping[str, Position | None], progress: Progress) -> bool:
        """Returns True if nothing has landed that concerns the table, as far as this can be told without a query."""
        name, storage, record = query.model, self.tables.storage, progress.recorded()
        names = [name, query.beside] if self._takes_increments(query) else [name]
        if record is None or not storage.have_tables(names):
            return False
        newest, mark = storage.newest_write(name), Mark.read(self.tables.mark(name))
        is_another = newest is not None and newest not in record.written
        if is_another or landed_again(record.read, seen) or mark.defined_by != self.definitions.of(query):
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
        names = [table.name] if seen.statements < 0 else self.statements.names(query.mirror, table, seen)
        return all(one.batch <= read.batch for name in names for one in seen.named(name))

    def _up_to_date(self, query: MirrorQuery, since: Positions, until: Positions, progress: Progress) -> Built:
        """Takes in what has landed between two positions in the changelogs."""
        name, definition, query = query.model, self.definitions.of(query), self._with_added(query)
        self.tables.refresh(name, query.layout)
        progress.verified(self.tables.storage.newest_write(name))
        if (mark := Mark.read(self.tables.mark(name))).defined_by != definition:
            self.tables.write_mark(name, mark._replace(defined_by=definition).text())
        if until == since:
            return self.tables.count(name), ()
        statements = self.statements.show(query.mirror)
        known = mark.defaults
        query = replace(query, mirror=with_defaults(statements.mirror, known))
        read = {one.source.name: since.get(one.source.model, NOTHING).batch for one in query.mirror.tables}
        if any(one.row["batch"] > read[one.row["source"]] for one in statements.effects):
            self._check_whole(query)
            return self._built(query, until, (), progress)
        self.reading.show_new_rows(name, query.mirror.models, since, until)
        tables = tuple(replace(one, rows=new_rows_view(name, one.source.model)) for one in query.mirror.tables)
        new = replace(query.mirror, tables=tables)
        found = _row(self.tables, "increment_findings", new)
        found_mirror, notes = _after_findings(new, query.shows, found)
        if found_mirror is not new or not defaults_told(self.tables, new).keys() <= known.keys():
            self._check_whole(query)
            return self._built(query, until, (), progress)
        with progress.writing(until):
            if found["with_key"]:
                query = self._remembered(query, found, statements.effects)
                self._take_in(query, new)
        return self.tables.count(name), (*notes, *statements.notes) if query.shows == "state" else ()

    def _take_in(self, query: MirrorQuery, new: Mirror) -> None:
        """Merges new changes into the tables of a mirror; `new` is the mirror as it reads only these changes. A run
        that dies meanwhile leaves them to the next run, and the second merge has the same result.
        """
        own = map(self.tables.storage.table, (query.model, query.beside))
        with self._computed(query, "decided", replace(query, mirror=new), *own) as decided:
            counts = _row(self.tables, f"{query.shows}_decisions", decided)
            looks_again = counts["again"] > 0
            if looks_again:
                self._check_whole(query)
            if counts["changed"]:
                with self._changed(query, decided, looks_again) as changed:
                    if counts["beside"]:
                        self._write(query, "beside_written", query.beside, changed)
                    self._write(query, "merged", query.model, changed)

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
        numbered_in = had.numbered_in if had.numbered_in == _numbered_in(found, effects) else None
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
        return replace(query, mirror=_with_texts(query.mirror, added))

    def _since(self, query: MirrorQuery, seen: Mapping[str, Position | None], progress: Progress) -> Positions | None:
        """Returns how far the table has read; None if the table is not this mirror of these changelogs, and must be
        built again.
        """
        if not all(self.tables.storage.has_table(name) for name in (query.model, query.beside)):
            return None
        since = progress.read()
        is_this = Mark.read(self.tables.mark(query.model)).made_by == self._made_by(query)
        return since if is_this and since is not None and not landed_again(since, seen) else None

    def _built(self, query: MirrorQuery, until: Positions, notes: tuple[str, ...], progress: Progress) -> Built:
        """Builds the table from all changes. Where the table is to take in new changes later, also builds the table
        beside it.
        """
        name, made_by, definition = query.model, self._made_by(query), self.definitions.of(query)
        query, more, defaults = self._looked_at(query)
        with progress.writing(until):
            if self._takes_increments(query):
                count = self._written_with_beside(query)
            else:
                count = self.tables.replace(name, self.tables.macro(f"mirror_{query.shows}", query), query.layout)
            mark = Mark(made_by, query.has_parts, query.numbered_in, defaults, definition)
            self.tables.write_mark(name, mark.text())
        self.tables.refreshes.done(name)
        return count, (*notes, *(more if query.shows == "state" else ()))

    def _written_with_beside(self, query: MirrorQuery) -> int:
        name, macro, shows = query.model, self.tables.macro, query.shows
        rows = f"{name}__whole"
        # A table without a mark is built again.
        self.tables.write_mark(name, "")
        with self.tables.spark.computed_view(rows, macro(f"{shows}_whole", query)):
            self.tables.storage.replace(query.beside, macro(f"{shows}_beside", query, rows), is_changed_often=True)
            return self.tables.replace(name, macro("rows_not_gone", query, rows), query.layout, is_changed_often=True)

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
        if query.model not in self.by_rule:
            return self.compiled.nodes[query.model].meaning
        # The tables of a rule may have changed since the nodes were compiled.
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
        mirror, notes = _after_findings(mirror, query.shows, found)
        numbered_in = _numbered_in(found, statements.effects)
        query = _knowing(replace(query, mirror=mirror), statements.effects, found["tells_parts"], numbered_in)
        return query, (*notes, *statements.notes), defaults


def defaults_told(tables: Tables, mirror: Mirror) -> dict[str, str]:
    """Returns the defaults that messages name of the columns of a mirror."""
    if "defaults" not in mirror.sent_columns:
        return {}
    return {row["column"]: row["value"] for row in tables.spark.rows(tables.macro("defaults_told", mirror))[1]}


def with_defaults(mirror: Mirror, defaults: Mapping[str, str]) -> Mirror:
    """Returns the mirror with the values that rows have in columns that were added after them."""
    columns = tuple(replace(one, added_with=defaults.get(one.name)) for one in mirror.columns)
    return replace(mirror, columns=columns) if defaults else mirror


def _numbered_in(found: Mapping[str, Any], effects: Iterable[Effect]) -> str | None:
    """Returns the log in which all changes are numbered; None unless all statements have at least as many numbers
    there.
    """
    log = found["numbered_in"]
    if log is None:
        # Before a change has landed, there is neither a log nor a number.
        return None
    told = [(one.row["numbered_in"], len(one.position)) for one in effects if one.row["arrival"]]
    are_alike = all(of_one == log and number >= found["numbers"] for of_one, number in told)
    return log if are_alike else None


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


def _after_findings(mirror: Mirror, shows: str, found: Mapping[str, Any]) -> tuple[Mirror, tuple[str, ...]]:
    """Returns the mirror with the columns that are added to it, and notes on what it lacks; raises QueryFailed."""
    unknown = found["unknown_columns"]
    if unknown and mirror.on_drift == "fail":
        raise QueryFailed(f"on_drift is fail, and {_not_here(unknown)}")
    taken = taken_columns(shows == "history") if mirror.on_drift == "add" else set(unknown)
    added = [column for column in unknown if column.lower() not in taken]
    left = [column for column in unknown if column not in added]
    notes = (*_notes(mirror, added, left, found["without_key"]), *_lacking(mirror, found))
    return _with_texts(mirror, added) if added else mirror, notes


def _with_texts(mirror: Mirror, columns: Iterable[str]) -> Mirror:
    return replace(mirror, columns=(*mirror.columns, *(MirrorColumn(one, "string") for one in columns)))


def _notes(mirror: Mirror, added: list[str], left: list[str], without_key: int) -> Iterator[str]:
    if added:
        yield f"added as text: {_quoted(added)}; give them a type under columns"
    if left and mirror.on_drift == "add":
        yield f"not added, since a mirror has columns of these names itself: {_quoted(left)}"
    elif left:
        yield f"{_not_here(left)}: give them a type under columns, or name them under left_out"
    if without_key:
        changes, them = ("1 change tells", "it") if without_key == 1 else (f"{without_key} changes tell", "them")
        what = f"no key of its type ({', '.join(mirror.key)})" if mirror.key else "no key that is named here"
        yield f"{changes} {what}, and the mirror is without {them}"


def _lacking(mirror: Mirror, found: Mapping[str, Any]) -> Iterator[str]:
    """Yields a note for each dump of which no row tells all columns of the mirror."""
    for rank, table in mirror.dumps:
        told = {name.lower() for name in found[f"told_by_{rank}"]}
        lacking = [one.name for one in mirror.columns if not one.has_default and one.name.lower() not in told]
        if told and lacking:
            name = ".".join(table.name)
            yield f"the dump of {name} in {table.source.name} lacks columns, unknown until told: {_quoted(lacking)}"


def _not_here(unknown: Iterable[str]) -> str:
    return f"the table has columns that the mirror does not have: {_quoted(unknown)}"


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
