"""Incremental models: tables that take in what is new, each row once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runner.compile.compiled import Compiled
from runner.engine.errors import QueryFailed
from runner.engine.progress import Position, Positions
from runner.engine.tables import Tables
from runner.project.graph import Graph
from runner.project.nodes import Model
from runner.project.templates import new_rows_view
from runner.run.landing import finishes

NOTHING = Position(None, -1)


@dataclass(frozen=True)
class Increments:
    """Builds incremental models, and remembers what of each changelog they have read."""

    graph: Graph
    compiled: Compiled
    tables: Tables
    run_id: str

    def build(self, name: str, model: Model) -> tuple[int, tuple[str, ...]]:
        """Builds the table or adds what is new to it; returns the number of its rows, and notes for the user. Raises
        QueryFailed.
        """
        compiled, seen = self.compiled.nodes[name], self._changelogs(name)
        refreshes, progress = self.tables.refreshes, self.tables.progress(name)
        self.tables.storage.recover(name)
        begun = refreshes.unfinished(name)
        if begun or not self.tables.table_view(name):
            until = _until(seen, {})
            self._show_new_rows(name, model, {}, until)
            with progress.writing(until):
                count = self.tables.replace(name, compiled.sql)
            refreshes.done(name)
            return count, finishes(begun, self.run_id)
        since = self._since(name, seen)
        until = _until(seen, since)
        self._show_new_rows(name, model, since, until)
        with progress.writing(until):
            count = self.tables.apply_increment(
                name, compiled.increment or compiled.sql, model.unique_key, model.on_schema_change
            )
        return count, ()

    def _changelogs(self, name: str) -> Mapping[str, Position | None]:
        """How far the changelogs go that a model reads, directly or not; None for one whose rows cannot be seen."""
        return {changelog: self.tables.position(changelog) for changelog in self._sources(name)}

    def _sources(self, name: str) -> dict[str, str]:
        """The changelogs that a model reads, directly or not -> the names of their sources."""
        above = [self.graph.nodes[one] for one in sorted(self.graph.upstream({name}))]
        return {node.name: node.model.source.name for node in above if node.model and node.model.source}

    def _since(self, name: str, seen: Mapping[str, Position | None]) -> Positions:
        """How far the table has read; raises QueryFailed if its rows cannot be those of these changelogs."""
        again = f"--full-refresh -s {name} builds it again"
        since = self.tables.progress(name).read()
        if since is None:
            raise QueryFailed(f'it is not known what "{name}" has read: {again}')
        for changelog, position in since.items():
            now = seen.get(changelog)
            if position.table and now and position.table != now.table:
                raise QueryFailed(f'"{changelog}" has landed everything again since "{name}" was built: {again}')
        return since

    def _show_new_rows(self, name: str, model: Model, since: Positions, until: Positions) -> None:
        """Creates the views of new rows that a model reads."""
        read = [
            {"name": source, "since": since.get(changelog, NOTHING).batch, "until": until[changelog].batch}
            for changelog, source in self._sources(name).items()
        ]
        for parent in model.new_rows:
            self.tables.view(new_rows_view(name, parent), self.tables.macro("rows_between", parent, read))


def _until(seen: Mapping[str, Position | None], since: Positions) -> Positions:
    """How far the table has read after it was written: no further than before where rows cannot be seen."""
    return {changelog: position or since.get(changelog, NOTHING) for changelog, position in seen.items()}
