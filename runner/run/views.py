"""The views that the queries of a run read, with the names of nodes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from runner.compile.compiled import Compiled
from runner.engine.errors import QueryFailed
from runner.engine.session import Spark
from runner.engine.tables import Tables
from runner.project.graph import Graph
from runner.project.nodes import Model, Node, Source


@dataclass
class Views:
    """The views of one run, which all its threads share. `read_source` creates the view of a source's messages."""

    graph: Graph
    compiled: Compiled
    spark: Spark
    tables: Tables
    read_source: Callable[[Source], None]
    made: set[str] = field(default_factory=set)
    making: threading.RLock = field(default_factory=threading.RLock)

    def prepare(self, name: str) -> None:
        """Creates the views that a node reads, unless this run has already created them."""
        self._make_all(self._needed(name, lambda model: not model.is_table), self.make)

    def prepare_shapes(self, name: str) -> None:
        """The same if only their columns matter: a table may not be built yet, so the view is that of its query."""
        self._make_all(self._needed(name, lambda model: model.source is None), self._make_shape)

    def make(self, node: Node) -> None:
        """Creates the view of a node as it is now; raises QueryFailed for a table that was never built."""
        match node.subject:
            case Source() as source:
                self.read_source(source)
            case Model(query=Source()):
                self.tables.changelog_view(node.name)
            case Model(materialized="view"):
                self.tables.view(node.name, self.compiled.nodes[node.name].sql)
            case Model():
                if not self.tables.table_view(node.name):
                    raise QueryFailed(f'"{node.name}" has not been built yet: runner run -s {node.name}')

    def was_made(self, name: str) -> None:
        """Records that the view of a node shows what this run has built."""
        with self.making:
            self.made.add(name)

    def _make_all(self, needed: set[str], make: Callable[[Node], None]) -> None:
        with self.making:
            for name in [name for name in self.graph.order() if name in needed - self.made]:
                make(self.graph.nodes[name])
                # Only now: a node whose view cannot be created must fail for each node that reads it.
                self.made.add(name)

    def _make_shape(self, node: Node) -> None:
        if node.model and node.model.is_table and not node.model.source:
            self.tables.view(node.name, self.compiled.nodes[node.name].sql)
        else:
            self.make(node)

    def _needed(self, name: str, is_query: Callable[[Model], bool]) -> set[str]:
        """The nodes whose views a node needs: its parents and, if a parent is a query, what that reads in turn."""
        needed: set[str] = set()
        model = self.graph.nodes[name].model
        frontier = set() if model and model.source else set(self.graph.nodes[name].parents)
        while frontier:
            needed |= frontier
            queries = {one for one in frontier if (model := self.graph.nodes[one].model) and is_query(model)}
            frontier = {parent for one in queries for parent in self.graph.nodes[one].parents} - needed
        return needed
