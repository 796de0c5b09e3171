"""How far a model has read the changelogs above it, and the views of what it has not read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from runner.engine.errors import QueryFailed
from runner.engine.progress import Position, Positions
from runner.engine.tables import Tables
from runner.project.graph import Graph
from runner.project.templates import new_rows_view, read_rows_view

NOTHING = Position(None, -1)


@dataclass(frozen=True)
class Reading:
    """What a model reads of the changelogs above it."""

    graph: Graph
    tables: Tables

    def changelogs(self, name: str) -> Mapping[str, Position | None]:
        """How far the changelogs go that a model reads, directly or not; None for one whose rows cannot be seen."""
        return {changelog: self.tables.position(changelog) for changelog in self._sources(name)}

    def _sources(self, name: str) -> dict[str, str]:
        """The changelogs that a model reads, directly or not -> the names of their sources."""
        above = [self.graph.nodes[one] for one in sorted(self.graph.upstream({name}))]
        return {node.name: node.model.source.name for node in above if node.model and node.model.source}

    def show_new_rows(self, name: str, parents: Iterable[str], since: Positions, until: Positions) -> None:
        """Creates the views of those rows of parents that a model has not read."""
        for parent in parents:
            self._show(new_rows_view(name, parent), name, parent, since, until)

    def show_read_rows(self, name: str, parents: Iterable[str]) -> None:
        """Creates the views of those rows of parents that a model has read; raises QueryFailed if that is not known."""
        until = self.tables.progress(name).read()
        if until is None:
            raise QueryFailed(f'it is not known what "{name}" has read: runner run -s {name}')
        for parent in parents:
            self._show(read_rows_view(name, parent), name, parent, {}, until)

    def without_old_rows(self, changelogs: Iterable[str]) -> list[str]:
        """Those of which old rows were removed."""
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
    """A changelog that has landed everything again since a model has read it."""
    for changelog, position in since.items():
        now = seen.get(changelog)
        if position.table and now and position.table != now.table:
            return changelog
    return None


def reading_until(seen: Mapping[str, Position | None], since: Positions) -> Positions:
    """How far the table has read after it was written: no further than before where rows cannot be seen."""
    return {changelog: position or since.get(changelog, NOTHING) for changelog, position in seen.items()}
