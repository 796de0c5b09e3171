"""The views that a run's queries read, by the names of nodes."""

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
    """The views of one run, which all its threads share. `read_source` makes the view of a source's messages."""

    graph: Graph
    compiled: Compiled
    spark: Spark
    tables: Tables
    read_source: Callable[[Source], None]
    made: set[str] = field(default_factory=set)
    making: threading.RLock = field(default_factory=threading.RLock)

    def prepare(self, name: str) -> None:
        """Makes the views of all that a node reads, where this run has not made them."""
        self._make_all(self._needed(name, lambda model: not model.is_table), self.make)

    def prepare_shapes(self, name: str) -> None:
        """The same for their columns alone: the query of a table stands in for the table, which may not be built."""
        self._make_all(self._needed(name, lambda model: model.source is None), self._make_shape)

    def make(self, node: Node) -> None:
        """Makes the view of a node as the last run has left it; raises QueryFailed for a table that was never built."""
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
        """Notes that the view of a node shows what this run has built."""
        with self.making:
            self.made.add(name)

    def _make_all(self, needed: set[str], make: Callable[[Node], None]) -> None:
        with self.making:
            for name in [name for name in self.graph.order() if name in needed - self.made]:
                make(self.graph.nodes[name])
                # Not before: a node without a view must be refused each time that it is asked for.
                self.made.add(name)

    def _make_shape(self, node: Node) -> None:
        if node.model and node.model.is_table and not node.model.source:
            self.tables.view(node.name, self.compiled.nodes[node.name].sql)
        else:
            self.make(node)

    def _needed(self, name: str, is_query: Callable[[Model], bool]) -> set[str]:
        """What a node needs to be read: for a table only itself, for a query also what it reads in turn."""
        needed: set[str] = set()
        model = self.graph.nodes[name].model
        edge = set() if model and model.source else set(self.graph.nodes[name].parents)
        while edge:
            needed |= edge
            queries = {one for one in edge if (model := self.graph.nodes[one].model) and is_query(model)}
            edge = {parent for one in queries for parent in self.graph.nodes[one].parents} - needed
        return needed
