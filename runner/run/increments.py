"""Incremental models: tables that take in what is new, each row once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from runner.engine.errors import QueryFailed
from runner.engine.progress import Position, Positions, Progress
from runner.engine.recorded import TableName
from runner.engine.tables import Tables
from runner.errors import full_refresh
from runner.project.nodes import Model, Node
from runner.project.templates import new_rows_view, read_rows_view
from runner.run.landing import finishes

if TYPE_CHECKING:
    from runner.run.run import Run


class Increments:
    """Builds incremental models, and records how far they have read each changelog."""

    def __init__(self, run: Run) -> None:
        self.reading, self.compiled, self.tables, self.run_id = run.reading, run.compiled, run.tables, run.run_id

    def build(self, node: Node, model: Model) -> tuple[int, tuple[str, ...]]:
        """Builds the table or adds what is new to it; returns the number of its rows, and notes for the user. Raises
        QueryFailed.
        """
        name, compiled, seen = node.relation, self.compiled.nodes[node.name], self.reading.changelogs(node.name)
        refreshes, progress = self.tables.refreshes, self.tables.progress(name)
        self.tables.storage.recover(name)
        begun, replaced = self.tables.begun_refresh(name), self._replaced(node, seen, progress)
        if begun or replaced or not self.tables.table_view(name):
            until = reading_until(seen, {})
            self.reading.show_new_rows(node.name, model.new_rows, {}, until)
            with progress.writing(until):
                # The mark is written before the table: if the run dies in between, the next run builds the table again.
                if self.tables.mark(name) != model.layout.order:
                    self.tables.write_mark(name, model.layout.order)
                promised = self.tables.promised(name, compiled.sql, model.contract)
                count = self.tables.replace_keyed(name, promised, model.unique_key, model.layout)
            refreshes.done(name)
            return count, (*finishes(begun, self.run_id), *replaced)
        since = self._since(node, seen, progress)
        self._check_order(node, model.layout.order)
        until = reading_until(seen, since)
        self.reading.show_new_rows(node.name, model.new_rows, since, until)
        with progress.writing(until):
            sql = self.tables.promised(name, compiled.increment or compiled.sql, model.contract)
            count = self.tables.apply_increment(
                name, sql, model.unique_key, model.on_schema_change, model.layout, model.replaces_partitions
            )
        return count, ()

    def _replaced(self, node: Node, seen: Mapping[str, Position | None], progress: Progress) -> tuple[str, ...]:
        """Returns a note if rows that the table has read were replaced, so that it must be built again."""
        since = progress.read() or {}
        if landed_again(since, seen):
            return ()
        replaced = replaced_since(self.tables, since, seen)
        return (f'built again: rows of "{next(iter(replaced))}" that it has read were replaced',) if replaced else ()

    def _check_order(self, node: Node, order: str) -> None:
        """Raises QueryFailed if the partitions or clusters of the table are not those that its settings now name."""
        built = self.tables.mark(node.relation)
        if built != order:
            changed = f"{built or 'has neither partitions nor clusters'}; now {order or 'it is to have none'}"
            again = f"{full_refresh(node.name)} builds it again"
            raise QueryFailed(f'the table "{node.relation}" {changed}: {again}')

    def _since(self, node: Node, seen: Mapping[str, Position | None], progress: Progress) -> Positions:
        """Returns how far the table has read; raises QueryFailed if its rows cannot be those of these changelogs."""
        again = f"{full_refresh(node.name)} builds it again"
        since = progress.read()
        if since is None:
            raise QueryFailed(f'it is not known what "{node.name}" has read: {again}')
        if changelog := landed_again(since, seen):
            raise QueryFailed(f'"{changelog}" has landed everything again since "{node.name}" was built: {again}')
        return since


NOTHING = Position(None, -1)


class Reading:
    """Finds the changelogs above a model, and creates views of the rows that the model has read or has not read."""

    def __init__(self, run: Run) -> None:
        self.graph, self.tables = run.graph, run.tables

    def changelogs(self, name: str) -> Mapping[str, Position | None]:
        """Returns how far the changelogs go that a model reads, directly or not; None for one whose rows cannot be
        seen.
        """
        return {changelog: self.tables.position(changelog) for changelog in self._sources(name)}

    def _sources(self, name: str) -> dict[str, str]:
        """Returns a mapping of the changelogs that a model reads, directly or not, to the names of their sources."""
        above = [self.graph.nodes[one] for one in sorted(self.graph.upstream({name}))]
        return {node.name: node.model.source.name for node in above if node.model and node.model.source}

    def show_new_rows(self, name: str, parents: Iterable[str], since: Positions, until: Positions) -> None:
        """Creates for each parent the view of the rows that a model has not read."""
        for parent in parents:
            self._show(new_rows_view(name, parent), name, parent, since, until)

    def show_read_rows(self, name: str, parents: Iterable[str]) -> None:
        """Creates for each parent the view of the rows that a model has read; raises QueryFailed if these are not
        known.
        """
        until = self.tables.progress(name).read()
        if until is None:
            raise QueryFailed(f'it is not known what "{name}" has read: runner run -s {name}')
        for parent in parents:
            self._show(read_rows_view(name, parent), name, parent, {}, until)

    def without_old_rows(self, changelogs: Iterable[str]) -> list[str]:
        """Returns the changelogs of which old rows were removed."""
        return [one for one in changelogs if self.tables.checkpoint(one).kept_since()]

    def _show(self, view: str, name: str, parent: str, since: Positions, until: Positions) -> None:
        read = [
            {
                "name": source,
                "since": since.get(changelog, NOTHING).batch,
                "until": until.get(changelog, NOTHING).batch,
            }
            for changelog, source in self._sources(name).items()
        ]
        self.tables.view(view, self.tables.macro("rows_between", self.graph.nodes[parent].relation, read))


def landed_again(since: Positions, seen: Mapping[str, Position | None]) -> str | None:
    """Returns a changelog that has landed everything again since a model has read it; None if there is no such
    changelog.
    """
    for changelog, position in since.items():
        now = seen.get(changelog)
        if position.table and now and position.table != now.table:
            return changelog
    return None


def replaced_since(tables: Tables, since: Positions, seen: Mapping[str, Position | None]) -> dict[str, list[TableName]]:
    """Returns the changelogs of which rows were replaced after they were read, with the names of the rows' tables."""
    found = {
        changelog: tables.checkpoint(changelog).again().replaced_between(position.batch, now.batch)
        for changelog, position in since.items()
        if (now := seen.get(changelog)) and position.batch < now.batch
    }
    return {changelog: names for changelog, names in found.items() if names}


def reading_until(seen: Mapping[str, Position | None], since: Positions) -> Positions:
    """Returns how far a table has read after it was written. Where the rows of a changelog cannot be seen, that is no
    further than before.
    """
    return {changelog: position or since.get(changelog, NOTHING) for changelog, position in seen.items()}
