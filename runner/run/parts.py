"""The parts of a run. Each is created when it is first used, from those that it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from runner.compile.compiled import Compiled
from runner.engine.catalog import CatalogPublisher, Entry
from runner.engine.maintenance import Maintenance
from runner.engine.session import Spark
from runner.engine.tables import Tables
from runner.project.graph import Graph
from runner.project.inputs import Elsewhere, Messages
from runner.project.mirror import MirrorQuery
from runner.project.nodes import Model, Node
from runner.project.sql_functions import SqlFunction, distinct
from runner.run.continuous import Continuous, Watcher
from runner.run.execute import Execution, PlaceOf
from runner.run.following import following
from runner.run.increments import Increments
from runner.run.landing import Landing
from runner.run.mirrors import Mirrors
from runner.run.models import Models
from runner.run.reading import Reading
from runner.run.recount import Recount
from runner.run.results import Result
from runner.run.seeds import Seeds
from runner.run.signals import StopSignals
from runner.run.statements import Statements
from runner.run.tests import TestRuns
from runner.run.views import Views


@dataclass(frozen=True)
class Parts:
    """The parts of one run in one session. `macro` prints SQL, `reads` gives the expressions that read messages of
    a kind.
    """

    graph: Graph
    compiled: Compiled
    spark: Spark
    macro: Callable[..., str]
    reads: Callable[[Messages], Mapping[str, str]]
    run_id: str = ""
    signals: StopSignals = field(default_factory=StopSignals)
    reads_nothing: bool = False
    elsewhere: Elsewhere | None = None

    @cached_property
    def tables(self) -> Tables:
        return Tables(self.spark, self.macro, self.reads_nothing, self.elsewhere)

    @cached_property
    def landing(self) -> Landing:
        return Landing(self.compiled, self.spark, self.tables, self.reads, self.run_id)

    @cached_property
    def views(self) -> Views:
        read_source, show_file = self.landing.read_source, self.seeds.show_file
        return Views(self.graph, self.compiled, self.spark, self.tables, read_source, show_file)

    @cached_property
    def shapes(self) -> Views:
        """Views without rows, in a session of their own: a table that is not built yet is the view of its query."""
        return replace(self, spark=self.spark.fresh(), reads_nothing=True).views

    @cached_property
    def seeds(self) -> Seeds:
        return Seeds(self.compiled, self.spark, self.tables)

    @cached_property
    def publisher(self) -> CatalogPublisher:
        return CatalogPublisher(self.spark, self.tables, self._catalog_entries)

    def _catalog_entries(self, name: str) -> list[Entry]:
        """The catalog entry of a model; before that of a view those of all models that it reads, parents first."""
        model = self.graph.nodes[name].model
        names = {name} if model and model.is_table else {name, *self.graph.upstream({name})}
        nodes = [self.graph.nodes[one] for one in self.graph.order() if one in names]
        return [self._catalog_entry(node, node.model) for node in nodes if node.model and not node.model.is_ephemeral]

    def _catalog_entry(self, node: Node, model: Model) -> Entry:
        sql = None if model.is_table else self._with_ephemeral(node)
        layout = model.query.layout if isinstance(model.query, MirrorQuery) else model.layout
        return Entry(node.relation, sql, model.source is not None, distinct(self._functions(node.name)), layout)

    def _with_ephemeral(self, view: Node) -> str:
        """The SQL of a view, with those of ephemeral models that it reads, which the catalog does not have."""
        sql, read = self.compiled.nodes[view.name].sql, self._ephemeral(view.name)
        queries = {
            self.graph.nodes[one].relation: self.compiled.nodes[one].sql for one in self.graph.order() if one in read
        }
        return self.macro("with_queries", queries, sql) if queries else sql

    def _ephemeral(self, name: str) -> set[str]:
        """The ephemeral models that a query reads, itself or through others."""
        above = self.graph.nodes[name].parents
        own = {one for one in above if (model := self.graph.nodes[one].model) and model.is_ephemeral}
        return own.union(*map(self._ephemeral, own))

    def _functions(self, name: str) -> Iterator[tuple[SqlFunction, ...]]:
        """The SQL functions that a model needs, a view after those of the views that it reads."""
        model = self.graph.nodes[name].model
        if model and not model.is_table:
            for parent in self.graph.nodes[name].parents:
                if (above := self.graph.nodes[parent].model) and not above.is_table:
                    yield from self._functions(parent)
        if name in self.compiled.nodes:
            yield self.compiled.nodes[name].sql_functions

    def execution(self, place_of: PlaceOf) -> Execution:
        """What runs single nodes, in any thread."""
        recount = Recount(self.spark, self.tables, self.reads)
        reading = Reading(self.graph, self.tables)
        increments = Increments(reading, self.compiled, self.tables, self.run_id)
        statements = Statements(self.tables)
        mirrors = Mirrors(reading, self.compiled, self.tables, statements, self.run_id)
        built = (self.landing, increments, mirrors, self.seeds)
        models = Models(self.spark, self.compiled, self.tables, self.views, *built, self.publisher)
        read = (self.views, lambda: self.shapes, recount, reading)
        tests = TestRuns(self.compiled, self.spark, *read, statements, self.tables, self.macro)
        return Execution(models, tests, place_of)

    def continuous(
        self, place_of: PlaceOf, watcher: Watcher, interval: str, fail_fast: bool, streams: int, mirrors: list[Node]
    ) -> Continuous:
        """What lands sources until a signal comes, of which there are `streams`, and keeps mirrors up to date."""
        build = self.execution(place_of).run

        def rebuilt(node: Node) -> Result:
            self.views.are_outdated(node.parents)
            return build(node)

        follows = following(rebuilt, mirrors, streams + 1)
        return Continuous(
            self.spark,
            self.landing,
            self.publisher,
            place_of,
            follows,
            watcher,
            interval,
            fail_fast,
            signals=self.signals,
        )

    def maintenance(self, keep_days: int | None, history_days: int) -> Maintenance:
        return Maintenance(self.tables, self._that_take_in, keep_days, history_days)

    def _that_take_in(self, changelog: str) -> list[Node]:
        """The models whose tables remember how far they have read a changelog."""
        nodes = (self.graph.nodes[name] for name in sorted(self.graph.downstream({changelog})))
        return [node for node in nodes if node.model and (node.model.new_rows or node.model.mirror)]
