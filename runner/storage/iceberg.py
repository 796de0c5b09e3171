"""Tables in Apache Iceberg, which are in a catalog."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from functools import cached_property
from typing import Any, ClassVar

from runner.storage.data import Layout, Macro, Place, Publisher, Sink, Write
from runner.storage.table_format import TableFormat

# The property with which Spark shows the newest snapshot of a table, and its value if there is none.
CURRENT, NO_SNAPSHOT = "current-snapshot-id", "none"
# What the summary of a snapshot counts: rows in files that it has added, and in those that it has removed. A file of
# positions removes rows of other files.
ADDED = ("added-records", "removed-position-deletes")
REMOVED = ("deleted-records", "added-position-deletes")
UNKNOWN = ("added-equality-deletes", "removed-equality-deletes")


class Iceberg(TableFormat):
    name = "iceberg"
    extension = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    own_catalog = "org.apache.iceberg.spark.SparkCatalog"
    types_kept_as: ClassVar[Mapping[str, str]] = {"tinyint": "int", "smallint": "int"}
    # Tasks write the rows that they read, without sorting them by partition first.
    changelog_properties: ClassVar[Mapping[str, str]] = {
        "write.distribution-mode": "none",
        "write.spark.fanout.enabled": "true",
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "10",
    }
    # Rows stay in the order in which the query that creates a table gives them.
    ordered_properties: ClassVar[Mapping[str, str]] = {
        "write.distribution-mode": "none",
        "write.spark.fanout.enabled": "true",
    }
    transforms = ("years", "months", "days", "hours", "bucket", "truncate")
    wider_types: ClassVar[Mapping[str, tuple[str, ...]]] = {"int": ("bigint",)}
    changing_properties: ClassVar[Mapping[str, str]] = {
        "write.merge.mode": "merge-on-read",
        "write.delete.mode": "merge-on-read",
        "write.update.mode": "merge-on-read",
    }
    maintenance = (
        "iceberg_compacted",
        "iceberg_manifests_compacted",
        "iceberg_snapshots_expired",
        "iceberg_orphans_removed",
    )

    @classmethod
    def table_of(cls, target: Place, macro: Macro, name: str) -> str:
        return macro("catalog_name", target, name).strip()

    def has_table(self, name: str) -> bool:
        return self.session.table_exists(self.table(name))

    def have_tables(self, names: Iterable[str]) -> bool:
        return all(name.lower() in self._listed for name in names)

    @cached_property
    def _listed(self) -> frozenset[str]:
        """The tables that were in the schema when a run first asked."""
        self.create_schema()
        rows = self.session.rows(self.macro("tables_listed", self.target))[1]
        return frozenset(row["tableName"].lower() for row in rows)

    def check_changelog(self, name: str) -> None:
        """Does nothing: the files of a changelog are listed where its catalog says."""

    def view(self, name: str, sql: str) -> None:
        super().view(name, sql)
        # MERGE can only plan a view of such tables that was created from text, not one of a data frame.
        self.session.do(self.macro("temporary_view", name, sql))

    def create_table(self, name: str, view: str, layout: Layout, properties: Mapping[str, str]) -> None:
        if not layout.cluster_by:
            super().create_table(name, view, layout, properties)
            return
        # A table gets its order once it is there, and the rows that it is created with must be in that order too.
        rows = self.macro("ordered_rows", self.target, view, (*layout.partition_by, *layout.cluster_by))
        clauses = replace(layout, cluster_by=()).clauses({**self.ordered_properties, **properties})
        self.session.do(self.macro("table_replaced", self.table(name), self.name, rows, clauses))
        self.session.do(self.macro("table_ordered", self.table(name), layout.cluster_by))

    def writes(self, name: str) -> list[str]:
        return [one.name for one in self.writes_since(name, ())]

    def head(self, name: str) -> str | None:
        if not self.has_table(name):
            return None
        properties = self.session.rows(self.macro("properties_shown", self.table(name)))[1]
        newest = next((row["value"] for row in properties if row["key"] == CURRENT), NO_SNAPSHOT)
        return None if newest == NO_SNAPSHOT else str(newest)

    def writes_since(self, name: str, before: Collection[str]) -> list[Write]:
        head, writes = self.head(name), list[Write]()
        if head is None or head in before:
            return []
        rows = self.session.rows(self.macro("iceberg_snapshots", self.table(name)))[1]
        snapshots = {str(row["snapshot_id"]): row for row in rows}
        while head in snapshots and head not in before:
            if snapshots[head]["operation"] != "replace":
                writes.append(Write(head, _rows_added(snapshots[head]["summary"])))
            head = str(snapshots[head]["parent_id"])
        return writes

    def purge(self, name: str) -> None:
        self.session.do(self.macro("iceberg_rewritten", self.target, name))
        self.session.do(self.macro("iceberg_manifests_compacted", self.target, name, None))
        # The versions that these two have made are old ones too, but for the last.
        now = f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M:%S.%f}"
        self.session.do(self.macro("iceberg_expired_at_once", self.target, name, now))

    def sink(self, name: str) -> Sink:
        return Sink("iceberg", table=self.table(name), options={"fanout-enabled": "true"})

    def rename(self, name: str, new: str) -> None:
        if self.has_table(name):
            self.session.do(self.macro("table_renamed", self.table(name), new))

    def unpublish(self, name: str, publisher: Publisher) -> None:
        """Does nothing: a table is in its catalog for as long as it exists."""

    def drop_changelog(self, name: str) -> None:
        self.create_schema()
        self.session.do(self.macro("table_dropped", self.table(name)))


def _rows_added(summary: Mapping[str, Any]) -> int | None:
    """Returns how many rows a snapshot has more than the one before it, as its summary says; None if there are deletes
    of which only the values are known.
    """
    if any(one in summary for one in UNKNOWN):
        return None
    return sum(int(summary.get(one, 0)) for one in ADDED) - sum(int(summary.get(one, 0)) for one in REMOVED)
