"""Building models: landing messages, creating views, writing tables."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date, datetime, timezone
from typing import TYPE_CHECKING

from runner.compile.column_types import has_tables_of_types, notes_on, unknown_types
from runner.csv_text import read_csv
from runner.engine.catalog import Entry
from runner.engine.errors import QueryFailed, SparkGone
from runner.engine.tables import Tables
from runner.errors import Where, excerpt
from runner.files import read_text
from runner.project.inputs import Source
from runner.project.mirror import MirrorQuery
from runner.project.nodes import Graph, Model, Node, SeedFile
from runner.project.sql_functions import SqlFunction, distinct
from runner.render import name as quoted
from runner.run.results import Result, judged

if TYPE_CHECKING:
    from runner.run.run import Run


class Models:
    """Builds models, parents first."""

    def __init__(self, run: Run) -> None:
        # All of them here, in one thread: models are built in several.
        self.spark, self.compiled, self.tables, self.publisher = run.spark, run.compiled, run.tables, run.publisher
        self.views, self.landing, self.increments = run.views, run.landing, run.increments
        self.mirrors, self.seeds, self.seen = run.mirrors, run.seeds, run.seen
        self.mirrored = run.workspace.mirrored

    def build(self, node: Node, model: Model) -> Result:
        """Builds a model and publishes it in the catalog, between its hooks; raises QueryFailed."""
        # Mirrors have no hooks, and the SQL of many mirrors is better not made.
        compiled = None if model.mirror else self.compiled.nodes[node.name]
        if model.source:
            result = self._land(node, model.source)
        else:
            missing = self.views.prepare(node.name)
            self._do("pre_hook", compiled.pre_hook if compiled else ())
            result = self._build(node, model, missing)
        notes = self._published(node.name, not model.source and result.status == "warn")
        self._do("post_hook", compiled.post_hook if compiled else ())
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
        """Publishes a model; returns notes. If rows are missing, a table that the model reads may be missing in the
        catalog too.
        """
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
        if source.name in self.mirrored:
            self.seen.look(source)
        self.landing.count_open(source, landed)
        result = self.landing.result(source, landed, notes, judged(source, landed))
        unknown = notes_on_landed(self.tables, source, landed.rows["row"], self.landing.run_id, began)
        return replace(result, notes=(*result.notes, *unknown))

    def _build(self, node: Node, model: Model, missing: tuple[str, ...]) -> Result:
        rows, notes = self._write(node, model)
        if rows is None:
            status = "warn" if missing else "success"
            return Result(node.name, node.resource_type, status, notes=missing, is_unchanged=True)
        self.views.was_made(node.name)
        status = "warn" if missing else "success"
        return Result(node.name, node.resource_type, status, notes=(*missing, *notes), rows=rows)

    def _write(self, node: Node, model: Model) -> tuple[dict[str, int] | None, tuple[str, ...]]:
        """Writes the table or creates the view; returns the number of rows of a table, None if the table is as it was,
        and notes for the user.
        """
        if isinstance(model.query, MirrorQuery):
            count, notes = self.mirrors.build(model.query)
            return None if count is None else {"rows": count}, notes
        relation, sql = node.relation, self.compiled.nodes[node.name].sql
        match model:
            case Model(materialized="view"):
                self.tables.view(relation, self.tables.promised(relation, sql, model.contract))
                return {}, ()
            case Model(query=SeedFile() as file):
                rows, notes = self.seeds.build(node, file)
            case Model(materialized="incremental"):
                rows, notes = self.increments.build(node, model)
            case _:
                promised = self.tables.promised(relation, sql, model.contract)
                rows, notes = self.tables.replace(relation, promised, model.layout), ()
        return {"rows": rows}, notes


# If there are no more rows than this, all their types are read: finding the types that are alike would take Spark
# longer.
FEW_ROWS = 1_000


def notes_on_landed(tables: Tables, source: Source, landed: int, run_id: str, since: date) -> tuple[str, ...]:
    """Returns the notes on the rows that a run has landed since a day; `landed` is their number."""
    if not landed or not has_tables_of_types(source.format):
        return ()
    are_few = landed <= FEW_ROWS
    _, rows = tables.spark.rows(tables.macro("types_landed", source.model, run_id, since.isoformat(), are_few))
    return notes_on(unknown_types(source.format, rows, source.tables))


# Spark's words for a text that is no value of a type.
NOT_FITTING = re.compile(r"The value '(.*)' of the type")


class Seeds:
    """Loads seeds, each only if its file or its settings have changed since it was loaded."""

    def __init__(self, run: Run) -> None:
        self.compiled, self.spark, self.tables = run.compiled, run.spark, run.tables

    def show_file(self, file: SeedFile) -> None:
        """Creates a view of the values of a file, as texts."""
        rows = read_csv(file.path, file.delimiter)
        self.spark.rows_view(file.view, rows.rows, ", ".join(f"{quoted(column)} string" for column in rows.columns))

    def build(self, node: Node, file: SeedFile) -> tuple[int, tuple[str, ...]]:
        """Loads a seed; returns the number of its rows, and notes for the user."""
        name, sql, refreshes = node.relation, self.compiled.nodes[node.name].sql, self.tables.refreshes
        mark = _mark(file, sql)
        if not refreshes.unfinished(name) and self.tables.mark(name) == mark and self.tables.table_view(name):
            return self.tables.count(name), ("unchanged since it was loaded",)
        self.show_file(file)
        # A table without a mark is loaded again.
        self.tables.write_mark(name, "")
        try:
            count = self.tables.replace(name, sql)
        except QueryFailed as failure:
            raise _in_file(failure, file) from failure
        self.tables.write_mark(name, mark)
        refreshes.done(name)
        return count, ()


def _in_file(failure: QueryFailed, file: SeedFile) -> QueryFailed:
    """Returns the failure. If it is about a value that does not fit its type, adds the line of the file that has the
    value.
    """
    told, read = NOT_FITTING.search(failure.message), read_csv(file.path, file.delimiter)
    typed = [read.columns.index(column) for column in file.types]
    for row, line in zip(read.rows, read.lines):
        if told and told[1] in [row[number] for number in typed]:
            text = read_text(file.path)
            column = text.split("\n")[line - 1].find(told[1]) + 1
            shown = excerpt(Where(file.path, line, column or None), text, told[1] if column else "")
            return QueryFailed(f"{failure.message}\n{shown}")
    return failure


def _mark(file: SeedFile, sql: str) -> str:
    """Returns the hash of what a table is loaded from: the file, its delimiter and the SQL."""
    content = hashlib.sha256(file.path.read_bytes())
    content.update(f"{file.delimiter}{sql}".encode())
    return content.hexdigest()


# --- the catalog


def catalog_entries(run: Run, name: str) -> list[Entry]:
    """Returns the catalog entry of a model. Before the entry of a view stand those of all models that the view reads,
    parents first.
    """
    model = run.graph.nodes[name].model
    names = {name} if model and model.is_table else {name, *run.graph.upstream({name})}
    nodes = [run.graph.nodes[one] for one in run.graph.order() if one in names]
    return [_catalog_entry(run, node, node.model) for node in nodes if node.model and not node.model.is_ephemeral]


def _catalog_entry(run: Run, node: Node, model: Model) -> Entry:
    sql = None if model.is_table else _with_ephemeral(run, node)
    layout = model.query.layout if isinstance(model.query, MirrorQuery) else model.layout
    return Entry(node.relation, sql, model.source is not None, distinct(_functions(run, node.name)), layout)


def _with_ephemeral(run: Run, view: Node) -> str:
    """Returns the SQL of a view, with the queries of what it reads and the catalog does not have: ephemeral models, and
    changelogs without the dead letters that have landed since.
    """
    sql, read = run.compiled.nodes[view.name].sql, _ephemeral(run.graph, view.name)
    queries = {run.graph.nodes[one].relation: run.compiled.nodes[one].sql for one in run.graph.order() if one in read}
    queries = {**dict(_settled_changelogs(run, {view.name, *read})), **queries}
    return run.macro("with_queries", queries, sql) if queries else sql


def _settled_changelogs(run: Run, readers: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields the changelogs that these models read and in which messages have landed once more, with their queries."""
    for name in sorted({parent for reader in readers for parent in run.graph.nodes[reader].parents}):
        model = run.graph.nodes[name].model
        if model and model.source and (again := run.tables.checkpoint(name).again()).hides_rows:
            yield name, run.macro("without_landed_again", name, again)


def _ephemeral(graph: Graph, name: str) -> set[str]:
    """Returns the ephemeral models that a query reads, directly or through other ephemeral models."""
    own = {one for one in graph.nodes[name].parents if (model := graph.nodes[one].model) and model.is_ephemeral}
    return own.union(*(_ephemeral(graph, one) for one in own))


def _functions(run: Run, name: str) -> Iterator[tuple[SqlFunction, ...]]:
    """Yields the SQL functions that a model needs; those of a view after those of the views that it reads."""
    model = run.graph.nodes[name].model
    if model and not model.is_table:
        for parent in run.graph.nodes[name].parents:
            if (above := run.graph.nodes[parent].model) and not above.is_table:
                yield from _functions(run, parent)
    if name in run.compiled.nodes:
        yield run.compiled.nodes[name].sql_functions
