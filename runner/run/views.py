"""The views that the queries of a run read, with the names of nodes."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from runner.engine.errors import QueryFailed, SparkGone, query_errors
from runner.project.inputs import Source
from runner.project.nodes import DataTest, Model, Node
from runner.project.properties import TestConfig
from runner.project.templates import new_rows_view
from runner.render import name as quoted
from runner.run.verified import VERIFIED, show_results

if TYPE_CHECKING:
    from runner.run.run import Run


class Views:
    """The views of one run, which all its threads share. `unreadable` maps the changelogs that cannot be read to the
    reasons: views of all sources go on without their rows.
    """

    def __init__(self, run: Run) -> None:
        self.run, self.graph, self.compiled = run, run.graph, run.compiled
        self.spark, self.tables = run.spark, run.tables
        self.made: set[str] = set()
        self.unreadable: dict[str, str] = {}
        self.making = threading.RLock()

    def prepare(self, name: str) -> tuple[str, ...]:
        """Creates the views that a node reads, unless this run has already created them. Returns notes on the sources
        whose rows are missing there.
        """
        test = self.graph.nodes[name].data_test
        if test and test.kind == VERIFIED:
            show_results(self.tables, VERIFIED)
        return self._make_all(name)

    def prepare_shapes(self, name: str) -> None:
        """Creates the views that a node reads if only their columns matter: a table may not be built yet, so its view
        is that of its query. Needs a session of its own: others would read the query under the table's name.
        """
        self._make_all(name, of_shapes=True)

    def make(self, node: Node) -> None:
        """Creates the view of a node as it is now; raises QueryFailed for a table that was never built."""
        match node.subject:
            case Source() as source:
                self.run.landing.read_source(source)
                if self.tables.reads_nothing:
                    self.tables.emptied(f"{source.name}_messages")
            case Model(query=Source()):
                self.tables.changelog_view(node.name)
            case Model(is_table=False) | DataTest(config=TestConfig(store_failures=False)):
                self.tables.view(node.relation, self.compiled.nodes[node.name].sql)
            case DataTest():
                if not self.tables.table_view(node.name):
                    raise QueryFailed(f'"{node.name}" has kept no rows yet: runner test -s {node.name}')
            case Model() as model:
                if not self.tables.readable_view(node.relation):
                    command = "seed" if model.seed else "run"
                    raise QueryFailed(f'"{node.name}" has not been built yet: runner {command} -s {node.name}')

    def was_made(self, name: str) -> None:
        """Records that the view of a node shows what this run has built. Does nothing if readers are to see no rows:
        then the view is made again for them.
        """
        with self.making:
            if not self.tables.reads_nothing:
                self.made.add(name)
            self.unreadable.pop(name, None)

    def are_outdated(self, changelogs: Iterable[str]) -> None:
        """Records that changelogs may have new rows: their views are made again when they are next needed."""
        with self.making:
            for name in changelogs:
                self.made.discard(name)
                self.unreadable.pop(name, None)

    def _make_all(self, name: str, of_shapes: bool = False) -> tuple[str, ...]:
        needed, model = self._needed(name, of_shapes), self.graph.nodes[name].model
        reads_all = model and model.reads_all_sources
        by_name = set() if reads_all else self._needed(name, of_shapes, past_views_of_all=False)
        with self.making:
            for one in [one for one in self.graph.order() if one in needed - self.made]:
                self._make(self.graph.nodes[one], of_shapes)
                # Recorded only now: a node whose view cannot be created must fail for each node that reads it.
                self.made.add(one)
            for one in sorted(by_name & self.unreadable.keys()):
                raise QueryFailed(self.unreadable[one])
            missing = sorted(needed & self.unreadable.keys())
        return tuple(f'without any row of "{one}": {self.unreadable[one]}' for one in missing)

    def _make(self, node: Node, of_shapes: bool) -> None:
        """Creates the view of a node; for a changelog that cannot be read, a view without rows."""
        try:
            with query_errors():
                if of_shapes:
                    self._make_shape(node)
                else:
                    self.make(node)
        except SparkGone:
            raise
        except QueryFailed as failure:
            if not (node.model and node.model.source):
                raise
            self.unreadable[node.name] = failure.message
            self.tables.empty_changelog_view(node.name)

    def _make_shape(self, node: Node) -> None:
        if node.model and node.model.is_table and not node.model.source:
            if node.model.seed:
                self.run.seeds.show_file(node.model.seed)
            self.show_as_new(node.name, node.model)
            if node.model.mirror:
                self.run.statements.show_none(node.model.mirror)
            self.tables.view(node.relation, self.compiled.nodes[node.name].sql)
        else:
            self.make(node)

    def show_as_new(self, name: str, model: Model) -> None:
        """Creates the views of the new rows that a model reads, with all rows: only their columns matter."""
        for read in model.new_rows:
            whole = self.tables.macro("all_rows", quoted(self.graph.nodes[read].relation))
            self.tables.view(new_rows_view(name, read), whole)

    def _needed(self, name: str, of_shapes: bool, past_views_of_all: bool = True) -> set[str]:
        """Returns the nodes whose views a node needs: its parents and, if a parent is a query, the nodes that the query
        reads in turn. Of shapes, all models but sources are queries.
        """

        def is_query(model: Model) -> bool:
            is_read_by_name = past_views_of_all or not model.reads_all_sources
            return is_read_by_name and (model.source is None if of_shapes else not model.is_table)

        needed: set[str] = set()
        model = self.graph.nodes[name].model
        frontier = set() if model and model.source else set(self.graph.nodes[name].parents)
        while frontier:
            needed |= frontier
            queries = {one for one in frontier if (model := self.graph.nodes[one].model) and is_query(model)}
            frontier = {parent for one in queries for parent in self.graph.nodes[one].parents} - needed
        return needed
