"""Building models: landing messages, creating views, writing tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from runner.compile.compiled import Compiled
from runner.engine.catalog import CatalogPublisher
from runner.engine.errors import QueryFailed, SparkGone
from runner.engine.session import Spark
from runner.engine.tables import Tables
from runner.project.inputs import Source
from runner.project.mirror import MirrorQuery
from runner.project.nodes import Model, Node, SeedFile
from runner.run.increments import Increments
from runner.run.landing import Landing
from runner.run.mirrors import Mirrors
from runner.run.results import Result
from runner.run.seeds import Seeds
from runner.run.unknown_types import notes_on_landed
from runner.run.views import Views


@dataclass(frozen=True)
class Models:
    """Builds models, parents first."""

    spark: Spark
    compiled: Compiled
    tables: Tables
    views: Views
    landing: Landing
    increments: Increments
    mirrors: Mirrors
    seeds: Seeds
    publisher: CatalogPublisher

    def build(self, node: Node, model: Model) -> Result:
        """Builds a model and publishes it in the catalog, between its hooks; raises QueryFailed."""
        compiled = self.compiled.nodes[node.name]
        if model.source:
            result = self._land(node, model.source)
        else:
            missing = self.views.prepare(node.name)
            self._do("pre_hook", compiled.pre_hook)
            result = self._build(node, model, missing)
        notes = self._published(node.name, not model.source and result.status == "warn")
        self._do("post_hook", compiled.post_hook)
        return replace(result, notes=(*result.notes, *notes))

    def _do(self, hook: str, statements: Iterable[str]) -> None:
        for statement in statements:
            try:
                self.spark.do(statement)
            except SparkGone:
                raise
            except QueryFailed as failure:
                raise QueryFailed(f"{hook}: {failure.message}\n{statement.strip()}") from failure

    def _published(self, name: str, lacks_rows: bool) -> tuple[str, ...]:
        """Publishes a model; returns notes. If rows are missing, what it reads may be missing in the catalog too."""
        try:
            return self.publisher.publish(name)
        except SparkGone:
            raise
        except QueryFailed as failure:
            if not lacks_rows:
                raise
            return (failure.message,)

    def _land(self, node: Node, source: Source) -> Result:
        began = datetime.now(timezone.utc).date()
        landed, notes = self.landing.land(source)
        self.tables.changelog_view(node.name)
        self.views.was_made(node.name)
        result = self.landing.result(source, landed, notes)
        unknown = notes_on_landed(self.tables, source, landed.rows["row"], self.landing.run_id, began)
        return replace(result, notes=(*result.notes, *unknown))

    def _build(self, node: Node, model: Model, missing: tuple[str, ...]) -> Result:
        rows, notes = self._write(node, model)
        self.views.was_made(node.name)
        status = "warn" if missing else "success"
        return Result(node.name, node.resource_type, status, notes=(*missing, *notes), rows=rows)

    def _write(self, node: Node, model: Model) -> tuple[dict[str, int], tuple[str, ...]]:
        """Writes the table or creates the view; returns the number of rows of a table, and notes for the user."""
        relation, sql = node.relation, self.compiled.nodes[node.name].sql
        match model:
            case Model(materialized="view"):
                self.tables.view(relation, self.tables.promised(relation, sql, model.contract))
                return {}, ()
            case Model(query=MirrorQuery() as query):
                rows, notes = self.mirrors.build(query)
            case Model(query=SeedFile() as file):
                rows, notes = self.seeds.build(node, file)
            case Model(materialized="incremental"):
                rows, notes = self.increments.build(node, model)
            case _:
                promised = self.tables.promised(relation, sql, model.contract)
                rows, notes = self.tables.replace(relation, promised, model.layout), ()
        return {"rows": rows}, notes
