"""What becomes of the table of a mirror when columns or their types change: what can be done to it as it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from runner.engine.progress import Progress
from runner.project.mirror import MirrorColumn, MirrorQuery
from runner.project.templates import read_rows_view
from runner.render import name as quoted
from runner.run.statements import Effect

if TYPE_CHECKING:
    from runner.run.run import Run


class Evolution(NamedTuple):
    """What is to be done to a table before it takes in new changes. `added` are the columns that it gets, `widened`
    those whose type takes more values now, `told` the effects of statements on columns of its rows. `refused` says why
    the table must be built again instead; it is empty if that is not so.
    """

    added: tuple[MirrorColumn, ...] = ()
    widened: tuple[MirrorColumn, ...] = ()
    told: tuple[Effect, ...] = ()
    refused: str = ""

    @property
    def is_needed(self) -> bool:
        return bool(self.added or self.widened or self.told)

    def looks(self, query: MirrorQuery) -> list[tuple[str, Any]]:
        """Returns which rows may have other values than those that the table is given: the macros `again_<name>`, each
        with what it is about.
        """
        in_parts = [("in_parts", None)] if self.added and query.shows == "state" and query.has_parts else []
        told: list[tuple[str, Any]] = [("told", [one.name for one in self.added])] if self.added else []
        unfit = [("unfit", [one.name for one in self.widened])] if self.widened else []
        return [*told, *unfit, *in_parts, *(("unplaced", one) for one in self.told)]

    @property
    def notes(self) -> tuple[str, ...]:
        added = [f"{_quoted(one)} {one.type}" for one in self.added]
        widened = [f"{_quoted(one)} to {one.type}" for one in self.widened]
        return tuple(
            f"{what} in place: {', '.join(columns)}"
            for what, columns in (("added", added), ("widened", widened))
            if columns
        )


def _quoted(column: MirrorColumn) -> str:
    return f'"{column.name}"'


def again_because(why: str) -> tuple[str, ...]:
    """Returns the note on a table that is built again."""
    return (f"built again: {why}",) if why else ()


def columns_as_recorded(columns: Iterable[MirrorColumn]) -> list[list[Any]]:
    """Returns columns as JSON can hold them."""
    return [[one.name, one.type, list(one.sent_as), one.has_default, one.default] for one in columns]


def as_it_was(query: MirrorQuery, columns: Iterable[Sequence[Any]], left_out: Iterable[str]) -> MirrorQuery:
    """Returns a query with the columns with which its table was built, as they are recorded, and those that were left
    out then.
    """
    key = set(query.mirror.key)
    was = tuple(
        MirrorColumn(name, kind, tuple(sent_as), has_default, default, is_key=name in key)
        for name, kind, sent_as, has_default, default in columns
    )
    return replace(query, mirror=replace(query.mirror, columns=was, left_out=tuple(left_out)))


def columns_changed(was: MirrorQuery, now: MirrorQuery, widens: Callable[[str, str], bool]) -> Evolution:
    """Returns what makes a table with the columns of one query one with those of another; `widens` tells if the storage
    can change a type to another in place.
    """
    had = {one.name: one for one in was.mirror.columns}
    has = {one.name: one for one in now.mirror.columns}
    if now.mirror.on_drift == "add" and set(was.mirror.left_out) != set(now.mirror.left_out):
        return Evolution(refused="it is to be without other columns")
    if gone := [one for one in had if one not in has]:
        return Evolution(refused=f'no longer has "{gone[0]}"')
    added, widened = list[MirrorColumn](), list[MirrorColumn]()
    for name, column in has.items():
        before = had.get(name)
        if before is None:
            added.append(column)
        elif before.type != column.type:
            is_placed = column.is_key or name in now.layout.columns
            if is_placed or not widens(before.type, column.type):
                return Evolution(refused=f'"{name}" is {column.type} now, and was {before.type}')
            widened.append(column)
        elif replace(before, added_with=None) != replace(column, added_with=None):
            return Evolution(refused=f'"{name}" is sent or filled otherwise')
    if now.mirror.where and (added or widened):
        return Evolution(refused="rows are chosen by an expression of its columns")
    return Evolution(tuple(added), tuple(widened))


def with_statements(
    evolution: Evolution, query: MirrorQuery, effects: Iterable[Effect], read: Mapping[str, int]
) -> Evolution:
    """Returns what is to be done if statements, too, have changed the table: those that landed after the batch that the
    table has `read` of each source, and older ones of columns that it gets only now.
    """
    added, here = {one.name for one in evolution.added}, _names_in_rows(query)
    told = list[Effect]()
    for effect in effects:
        is_new = effect.row["batch"] > read[effect.row["source"]]
        concerned = (here if is_new else added) & {*effect.told, *effect.renamed, *effect.renamed.values()}
        changes_rows = is_new and not (effect.told or effect.renamed)
        if changes_rows or (concerned and effect.renamed):
            what = "empties it" if effect.empties else "gives a column or the table another name"
            return Evolution(refused=f"a statement {what}")
        if concerned:
            told.append(effect)
    if told and (query.mirror.where or query.mirror.was_renamed):
        return Evolution(refused="a statement changes its columns")
    return evolution._replace(told=tuple(told))


def _names_in_rows(query: MirrorQuery) -> set[str]:
    """Returns the columns that statements can change: a row keeps the key that was told."""
    return {one.name for one in query.mirror.columns if not one.is_key}


def with_defaults_told(evolution: Evolution, had: Mapping[str, str], has: Mapping[str, str]) -> Evolution:
    """Returns what is to be done if messages name other defaults of columns than before."""
    added = {one.name for one in evolution.added}
    if changed := [name for name in has if had.get(name) != has[name] and name not in added]:
        return Evolution(refused=f'messages name a default of "{changed[0]}"')
    return evolution


class Evolving:
    """Changes the tables of mirrors as they stand."""

    def __init__(self, run: Run) -> None:
        self.reading, self.tables = run.reading, run.tables

    @contextmanager
    def evolved(
        self, query: MirrorQuery, evolution: Evolution, progress: Progress
    ) -> Iterator[tuple[Evolution, list[Any]]]:
        """Gives a table its new columns and types, and rows what they have there of which no new change tells. Yields
        what was done; and, if more rows must be looked at again than those with new changes, what the macros
        `<shows>_decided_with` need to know of them. A run that dies meanwhile leaves all this to the next one, and
        doing it twice has the same result.
        """
        if evolution.refused or not evolution.is_needed:
            yield evolution, []
            return
        as_read = self._as_read(query)
        lists = self._lists(as_read, evolution)
        if lists is None:
            yield evolution._replace(refused="some messages list its columns, and others do not"), []
            return
        again, own, beside = (
            f"{query.model}__looked_again",
            *map(self.tables.storage.table, (query.model, query.beside)),
        )
        placed = (own, "_seq") if query.shows == "state" else (beside, "_known_until")
        looks = self.tables.macro("rows_looked_again", as_read, evolution.looks(query), own, *placed)
        with self.tables.spark.computed_view(again, looks):
            self._alter(query, evolution)
            with progress.writing(progress.read() or {}):
                self._fill(query, evolution, own, lists)
            all_new = query.shows == "history" and bool(evolution.told)
            is_any = all_new or not self.tables.spark.is_empty(quoted(again))
            yield evolution, [again, all_new] if is_any else []

    def _as_read(self, query: MirrorQuery) -> MirrorQuery:
        """Returns the query of all changes that the table has read."""
        self.reading.show_read_rows(query.model, query.mirror.models)
        tables = (replace(one, rows=read_rows_view(query.model, one.source.model)) for one in query.mirror.tables)
        return replace(query, mirror=replace(query.mirror, tables=tuple(tables)))

    def _lists(self, as_read: MirrorQuery, evolution: Evolution) -> bool | None:
        """Returns whether messages list all columns of the table; None if some do and others do not."""
        if not evolution.added or "unlisted" not in as_read.mirror.sent_columns:
            return False
        [row] = self.tables.spark.rows(self.tables.macro("lists_told", as_read.mirror))[1]
        return None if row["some_list"] and row["some_do_not"] else bool(row["some_list"])

    def _alter(self, query: MirrorQuery, evolution: Evolution) -> None:
        """Gives a table its new columns, each at its place, and its wider types."""
        self.tables.table_view(query.model)
        had, storage = self.tables.types(query.model), self.tables.storage
        added = {one.name for one in evolution.added}
        before = ""
        for column in query.mirror.columns:
            if column.name in added and column.name not in had:
                kind = storage.types_kept_as.get(column.type, column.type)
                storage.add_columns(query.model, {column.name: kind}, before)
            before = column.name
        for column in evolution.widened:
            if had[column.name] != column.type:
                storage.widen_column(query.model, column.name, column.type)

    def _fill(self, query: MirrorQuery, evolution: Evolution, own: str, lists: bool) -> None:
        """Gives rows the defaults of new columns, and what statements did to columns."""
        here, names = _names_in_rows(query), {one.name for one in evolution.added}
        added = [one for one in query.mirror.columns if one.name in names]
        defaults = {one.name: one.default if one.has_default or not lists else one.added_with for one in added}
        told = {name: value for name, value in defaults.items() if value is not None}
        untold = [one.name for one in added if one.added_with is None and not one.has_default] if lists else []
        if told or (untold and query.shows == "state"):
            self._apply(query, own, told, untold, "all")
        for effect in evolution.told:
            changed = {name: value for name, value in effect.told.items() if name in here}
            self._apply(query, own, changed, [], query.shows)

    def _apply(
        self, query: MirrorQuery, own: str, told: Mapping[str, str | None], untold: list[str], rows: str
    ) -> None:
        columns, values = [one for one in query.mirror.columns if one.name in told], f"{query.model}__told"
        with self.tables.spark.computed_view(values, self.tables.macro("values_told", columns, told, untold)):
            self.tables.spark.do(self.tables.macro("columns_filled", query, own, columns, values, rows))
