"""What a run has made, by name in the target's catalog: there people find it without this project."""

from __future__ import annotations

import re
from threading import Lock

from runner.engine.errors import QueryFailed
from runner.engine.session import Spark
from runner.engine.tables import Tables
from runner.project.graph import Graph
from runner.project.nodes import Model

# What catalogs say that hold no views: Spark's own words, and Iceberg's.
NO_VIEWS = re.compile(r"MISSING_CATALOG_ABILITY|view is not supported by catalog")


class Publishing:
    """Makes tables and views known to the target's catalog, those that they read first. Without a catalog nothing is
    done.
    """

    def __init__(self, spark: Spark, tables: Tables, graph: Graph, compiled) -> None:
        self.tables, self.graph, self.compiled = tables, graph, compiled
        self.target = tables.target
        self.published: set[str] = set()
        self.holds_views = True
        self.own = spark
        self.session: Spark | None = None
        self.publishing = Lock()

    def publish(self, name: str) -> None:
        """Makes known a model that was just built, whatever was known of it before."""
        if not self.target.catalog:
            return
        with self.publishing:
            if self.session is None:
                self._begin()
            self.published.discard(name)
            wanted = self.graph.upstream({name}) | {name} if self._is_view(name) and self.holds_views else {name}
            for one in [
                n
                for n in self.graph.order()
                if n in wanted - self.published and self.graph.nodes[n].resource_type == "model"
            ]:
                self._publish_one(one)
                self.published.add(one)

    def _begin(self) -> None:
        """A session of its own: a view that stays may not read those of a session, which have the same names."""
        self.tables.make_schema()
        self.session = self.own.fresh()
        self.session.do(self.tables.macro("schema_in_use", self.target))

    def _is_view(self, name: str) -> bool:
        return self.graph.nodes[name].subject.materialized == "view"

    def _publish_one(self, name: str) -> None:
        model: Model = self.graph.nodes[name].subject
        if model.materialized == "view":
            self._view(name, self.compiled.nodes[name].sql)
        elif self.target.storage == "parquet":
            self._view(name, self.tables.rows_of(name, model.source is not None))
        else:
            if model.source:
                self.tables.make_changelog(name)
            if self.target.storage == "delta":
                self._do(self.tables.macro("delta_published", self.target, name))

    def _view(self, name: str, sql: str) -> None:
        if not self.holds_views:
            return
        try:
            self._do(self.tables.macro("view_published", self.target, name, sql))
        except QueryFailed as failure:
            if not NO_VIEWS.search(failure.message):
                raise QueryFailed(f'the catalog cannot take "{name}": {failure.message}') from None
            self.holds_views = False

    def _do(self, sql: str) -> None:
        assert self.session
        self.session.do(sql)
