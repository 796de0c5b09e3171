"""Publishing tables and views in the target's catalog, where people find them by name without this project."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from threading import Lock

from runner.engine.contracts import layout_of_columns
from runner.engine.errors import QueryFailed
from runner.engine.functions import NoFunctions
from runner.engine.session import Spark
from runner.engine.tables import Tables
from runner.functions.signatures import PYTHON_FUNCTIONS
from runner.project.sql_functions import SqlFunction
from runner.storage.data import Layout
from runner.storage.storage import NO_LAYOUT

# The errors of catalogs that cannot hold views, in Spark's words and in Iceberg's.
NO_VIEWS = re.compile(r"MISSING_CATALOG_ABILITY|view is not supported by catalog")
# The errors of catalogs that cannot hold functions. Spark raises the second if one of its extensions does not read
# `create function`.
NO_FUNCTIONS = re.compile(r"MISSING_CATALOG_ABILITY|UnsupportedOperationException")


@dataclass(frozen=True)
class Entry:
    """A model to publish. `view_sql` is its query if the model is a view, None for a table. `functions` are the SQL
    functions that the model needs, in the order in which they must be made; a view also needs those of the views that
    it reads. `layout` has the comments of its view.
    """

    name: str
    view_sql: str | None = None
    is_changelog: bool = False
    functions: tuple[SqlFunction, ...] = ()
    layout: Layout = NO_LAYOUT


class CatalogPublisher:
    """Publishes tables and views in the target's catalog. Before them it publishes the functions that their SQL calls
    and, before a view, the models that the view reads. Without a catalog it does nothing. A catalog that keeps no
    functions gets none, and no views that call functions. `entries_of` gives the entry of a model; for a view, first
    those of all models that the view reads, parents first.
    """

    def __init__(self, spark: Spark, tables: Tables, entries_of: Callable[[str], Iterable[Entry]]) -> None:
        self.spark, self.tables, self.entries_of = spark, tables, entries_of
        self.published: set[str] = set()
        self.holds_views, self.keeps_functions = True, True
        self.kept: set[str] = set()
        self.layouts: dict[str, Layout] = {}
        self.session: Spark | None = None
        self.publishing = Lock()

    def publish(self, name: str) -> tuple[str, ...]:
        """Publishes a model that was just built, even if it was published before; returns notes for the user."""
        if not self.tables.target.catalog:
            return ()
        with self.publishing:
            self._begin()
            entries = list(self.entries_of(name))
            self.published.discard(entries[-1].name)
            if borrowed := self.tables.borrowed.intersection(entry.name for entry in entries):
                return (f'not in the catalog: it reads "{min(borrowed)}" of another target',)
            needed = entries if self.holds_views else entries[-1:]
            notes: tuple[str, ...] = ()
            for entry in [entry for entry in needed if entry.name not in self.published]:
                notes = self._publish(entry)
                self.published.add(entry.name)
            return notes

    def remove(self, name: str) -> None:
        """Removes the entry of a table, if the target has a catalog."""
        if self.tables.target.catalog:
            self._begin()
            self.tables.storage.unpublish(name, self)

    def _begin(self) -> None:
        """Opens a session for the catalog. It must be another session: a permanent view cannot read views of a session,
        which have the same names.
        """
        if self.session is None:
            self.tables.storage.create_schema()
            self.session = self.spark.fresh(NoFunctions())
            self.do(self.tables.macro("schema_in_use", self.tables.target))

    def _publish(self, entry: Entry) -> tuple[str, ...]:
        self.layouts[entry.name] = entry.layout
        lacking = self._keep(entry.functions)
        # Without this check a storage would publish an empty table in place of a changelog that is gone.
        if entry.is_changelog and self.tables.is_gone(entry.name):
            return ()
        if entry.view_sql is None:
            self.tables.storage.publish(entry.name, entry.is_changelog, self)
        elif not lacking:
            self.view(entry.name, entry.view_sql)
        elif self.holds_views:
            return (f"not in the catalog, which does not have {', '.join(lacking)}",)
        return ()

    def _keep(self, functions: Iterable[SqlFunction]) -> list[str]:
        """Makes functions in the catalog, once in a run; returns the names of those that the catalog does not have. The
        catalog keeps no function of a single source, and none that calls Python, which ends with its session.
        """
        lacking: list[str] = []
        for function in functions:
            if function.calls & {*PYTHON_FUNCTIONS, *lacking} or not function.in_library or not self._kept(function):
                lacking.append(function.name)
        return lacking

    def _kept(self, function: SqlFunction) -> bool:
        if self.keeps_functions and function.name not in self.kept:
            try:
                self.do(self.tables.macro("catalog_function", function))
                self.kept.add(function.name)
            except QueryFailed as failure:
                if not NO_FUNCTIONS.search(failure.message):
                    message = f'the catalog does not accept the function "{function.name}": {failure.message}'
                    raise QueryFailed(message) from None
                self.keeps_functions = False
        return function.name in self.kept

    def do(self, sql: str) -> None:
        """Runs a statement in the catalog's schema."""
        assert self.session
        self.session.do(sql)

    def view(self, name: str, sql: str) -> None:
        """Creates a view in the catalog, if it holds views, with the comments of its layout."""
        if not self.holds_views:
            return
        try:
            self.do(self.tables.macro("view_published", self.tables.target, name, sql))
            self._comment(name, sql, self.layouts.get(name, NO_LAYOUT))
        except QueryFailed as failure:
            if not NO_VIEWS.search(failure.message):
                raise QueryFailed(f'the catalog does not accept "{name}": {failure.message}') from None
            self.holds_views = False

    def _comment(self, name: str, sql: str, layout: Layout) -> None:
        """Creates a view once more, with comments: Spark wants comments for all its columns, and the columns are known
        only now.
        """
        if layout.comment is None and layout.comments is None:
            return
        target = self.tables.target
        assert self.session
        columns = self.session.column_types(self.tables.macro("catalog_name", target, name).strip(), {})
        comments = layout_of_columns(name, replace(layout, partition_by=(), cluster_by=()), columns).comments or {}
        told = {column: comments.get(column, "") for column in columns}
        clauses = {"columns": told} | ({"comment": layout.comment} if layout.comment else {})
        self.do(self.tables.macro("view_published", target, name, sql, clauses))
