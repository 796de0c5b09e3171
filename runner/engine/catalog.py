"""Publishing tables and views in the target's catalog, where people find them by name without this project."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock

from runner.engine.errors import QueryFailed
from runner.engine.session import Spark
from runner.engine.tables import Tables

# Errors of catalogs that cannot hold views, in Spark's words and in Iceberg's.
NO_VIEWS = re.compile(r"MISSING_CATALOG_ABILITY|view is not supported by catalog")


@dataclass(frozen=True)
class Entry:
    """A model to publish. `view_sql` is its query if it is a view, None for a table."""

    name: str
    view_sql: str | None = None
    is_changelog: bool = False


class CatalogPublisher:
    """Publishes tables and views in the target's catalog, and before a view what it reads. Without a catalog it does
    nothing. `entries_of` gives the entry of a model; before that of a view those of all models that it reads, parents
    first.
    """

    def __init__(self, spark: Spark, tables: Tables, entries_of: Callable[[str], Iterable[Entry]]) -> None:
        self.spark, self.tables, self.entries_of = spark, tables, entries_of
        self.published: set[str] = set()
        self.holds_views = True
        self.session: Spark | None = None
        self.publishing = Lock()

    def publish(self, name: str) -> None:
        """Publishes a model that was just built, even if it was published before."""
        if not self.tables.target.catalog:
            return
        with self.publishing:
            self._begin()
            self.published.discard(name)
            entries = list(self.entries_of(name))
            needed = entries if self.holds_views else entries[-1:]
            for entry in [entry for entry in needed if entry.name not in self.published]:
                self._publish(entry)
                self.published.add(entry.name)

    def _begin(self) -> None:
        """Opens a session for the catalog: a permanent view cannot read views of a session, which have the same
        names.
        """
        if self.session is None:
            self.tables.storage.create_schema()
            self.session = self.spark.fresh()
            self.do(self.tables.macro("schema_in_use", self.tables.target))

    def _publish(self, entry: Entry) -> None:
        if entry.view_sql is not None:
            self.view(entry.name, entry.view_sql)
        else:
            self.tables.storage.publish(entry.name, entry.is_changelog, self)

    def do(self, sql: str) -> None:
        """Runs a statement in the catalog's schema."""
        assert self.session
        self.session.do(sql)

    def view(self, name: str, sql: str) -> None:
        """Creates a view in the catalog, if it holds views."""
        if not self.holds_views:
            return
        try:
            self.do(self.tables.macro("view_published", self.tables.target, name, sql))
        except QueryFailed as failure:
            if not NO_VIEWS.search(failure.message):
                raise QueryFailed(f'the catalog does not accept "{name}": {failure.message}') from None
            self.holds_views = False
