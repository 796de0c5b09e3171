"""Tables in Delta Lake: folders with a log of transactions."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, ClassVar

from runner.files import Damaged, from_json
from runner.storage.data import Cutoff, Publisher, Sink, Write
from runner.storage.table_format import TableFormat

# Delta allows names with these characters, and dropping columns, only in tables with column mapping.
NOT_IN_NAMES = re.compile(r"[ ,;{}()\n\t=]")
# The names that Delta gives to commits which change no row.
KEEPS_ROWS = {
    "OPTIMIZE",
    "REORG",
    "VACUUM START",
    "VACUUM END",
    "SET TBLPROPERTIES",
    "UNSET TBLPROPERTIES",
    "ADD COLUMNS",
    "DROP COLUMNS",
    "CHANGE COLUMN",
    "CHANGE COLUMNS",
    "UPGRADE PROTOCOL",
}
INSERTED, DELETED = "numTargetRowsInserted", "numTargetRowsDeleted"
COMMIT = re.compile(r"[0-9]{20}\.json")
CHECKPOINT, OF_VERSION = re.compile(r"[0-9]{20}\.checkpoint\."), re.compile(r"[0-9]{20}\.")
# A table with these properties keeps nothing of what was there before.
FORGETS = {
    "delta.checkpointInterval": "1",
    "delta.deletedFileRetentionDuration": "interval 0 seconds",
    "delta.logRetentionDuration": "interval 0 seconds",
}
COLUMN_MAPPING = {"delta.columnMapping.mode": "name"}
# Delta gives this feature to a new table that has columns of the type timestamp_ntz, but not to a table that is there,
# even if the table is replaced.
WALL_CLOCKS = {"delta.feature.timestampNtz": "supported"}
WIDER_TYPES = {"delta.enableTypeWidening": "true"}


class Delta(TableFormat):
    name = "delta"
    extension = "io.delta.sql.DeltaSparkSessionExtension"
    session_catalog = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    # Statistics of maps and structs cost more than writing does, and no query uses them.
    changelog_properties: ClassVar[Mapping[str, str]] = {
        "delta.dataSkippingStatsColumns": "op,db_name,schema_name,table_name,key_text,event_time,batch,loaded_at"
    }
    changing_properties: ClassVar[Mapping[str, str]] = {"delta.enableDeletionVectors": "true"}
    wider_types: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "tinyint": ("smallint", "int", "bigint"),
        "smallint": ("int", "bigint"),
        "int": ("bigint",),
        "date": ("timestamp_ntz",),
    }
    digits_of_integers: ClassVar[Mapping[str, tuple[int, int]]] = {
        **dict.fromkeys(("tinyint", "smallint", "int"), (10, 0)),
        "bigint": (20, 0),
    }
    widens_scale = True
    most_clusters = 4
    maintenance = ("delta_compacted", "delta_vacuumed")

    def has_table(self, name: str) -> bool:
        # A run that dies while it creates a table leaves a log without commits. Listing a long log takes time.
        log = f"{self.target.at(name)}/_delta_log"
        if self.files.exists(f"{log}/_last_checkpoint"):
            return True
        return any(entry[:1].isdigit() for entry in self.files.names(log))

    def check_changelog(self, name: str) -> None:
        log = f"{self.target.at(name)}/_delta_log"
        commits = sorted(entry for entry in self.files.names(log) if COMMIT.fullmatch(entry))
        for entry in commits:
            for line in self.files.read(f"{log}/{entry}").splitlines() or [""]:
                from_json(line, f"{log}/{entry}")
        for before, after in pairwise(int(entry.removesuffix(".json")) for entry in commits):
            if after > before + 1:
                raise Damaged(f"{log}/{before + 1:020}.json", "missing")

    def properties(self, columns: Mapping[str, str]) -> Mapping[str, str]:
        wall_clocks = WALL_CLOCKS if any("timestamp_ntz" in kind for kind in columns.values()) else {}
        return {**(COLUMN_MAPPING if needs_mapping(columns) else {}), **wall_clocks}

    def add_columns(self, name: str, columns: Mapping[str, str], after: str | None = None) -> None:
        if needed := self.properties(columns):
            self.session.do(self.macro("properties_set", self.table(name), needed))
        super().add_columns(name, columns, after)

    def widen_column(self, name: str, column: str, kind: str) -> None:
        needed = {**WIDER_TYPES, **self.properties({column: kind})}
        self.session.do(self.macro("properties_set", self.table(name), needed))
        super().widen_column(name, column, kind)

    def drop_columns(self, name: str, columns: Iterable[str]) -> None:
        dropped = list(columns)
        if dropped:
            self.session.do(self.macro("properties_set", self.table(name), COLUMN_MAPPING))
        super().drop_columns(name, dropped)

    def writes(self, name: str) -> list[str]:
        if not self.has_table(name):
            return []
        commits = self.session.rows(self.macro("delta_history", self.table(name)))[1]
        return [str(commit["version"]) for commit in _not_undone(commits) if commit["operation"] not in KEEPS_ROWS]

    def newest_write(self, name: str) -> str | None:
        return self.head(name) or "-1"

    def head(self, name: str) -> str | None:
        versions = self._versions(name)
        return str(max(versions)) if versions else None

    def writes_since(self, name: str, before: Collection[str]) -> list[Write]:
        """The files of the new commits are read: describing the history takes a query, which reads all of them."""
        newest = max(map(int, before), default=-1)
        new = sorted((one for one in self._versions(name) if one > newest), reverse=True)
        commits = [{**self._commit(name, one), "version": one} for one in new]
        return [
            Write(str(commit["version"]), _rows_added(commit))
            for commit in _not_undone(commits)
            if commit["operation"] not in KEEPS_ROWS
        ]

    def _versions(self, name: str) -> list[int]:
        log = self.files.names(f"{self.target.at(name)}/_delta_log")
        return [int(entry[:20]) for entry in log if COMMIT.fullmatch(entry)]

    def _commit(self, name: str, version: int) -> Mapping[str, Any]:
        """Returns what the log says of a commit: its operation, and the numbers of rows that it has changed."""
        path = f"{self.target.at(name)}/_delta_log/{version:020}.json"
        info = next((line for line in self.files.read(path).splitlines() if line.startswith('{"commitInfo"')), "{}")
        return {"operation": "", "operationParameters": {}, **from_json(info, path).get("commitInfo", {})}

    def sink(self, name: str) -> Sink:
        return Sink("delta", path=self.target.at(name))

    def publish(self, name: str, is_changelog: bool, publisher: Publisher) -> None:
        super().publish(name, is_changelog, publisher)
        publisher.do(self.macro("folder_published", self.target, name, self.name))

    def maintain(self, name: str, is_changelog: bool, cutoff: Cutoff) -> tuple[str, ...]:
        # Without this setting Delta keeps a week of history. The run's lock makes it safe: no other run writes here.
        with self.session.setting("spark.databricks.delta.retentionDurationCheck.enabled", "false"):
            return super().maintain(name, is_changelog, cutoff)

    def purge(self, name: str) -> None:
        """Also removes the old part of the log of transactions, which has values as statistics."""
        table, log = self.table(name), f"{self.target.at(name)}/_delta_log"
        self.session.do(self.macro("delta_rewritten", self.target, name))
        with self.session.setting("spark.databricks.delta.retentionDurationCheck.enabled", "false"):
            self.session.do(self.macro("properties_set", table, FORGETS))
            self.session.do(self.macro("delta_vacuumed_at_once", self.target, name))
            # Each commit makes a checkpoint now.
            self.session.do(self.macro("properties_unset", table, [*FORGETS]))
            self.session.do(self.macro("properties_set", table, FORGETS))
        newest = max(int(entry[:20]) for entry in self.files.names(log) if CHECKPOINT.match(entry))
        for entry in sorted(self.files.names(log)):
            if OF_VERSION.match(entry.removeprefix(".")) and int(entry.removeprefix(".")[:20]) < newest:
                self.files.remove(f"{log}/{entry}")
        self.session.do(self.macro("properties_unset", table, [*FORGETS]))


def _rows_added(commit: Mapping[str, Any]) -> int | None:
    """Returns how many rows a MERGE has inserted, less those that it has deleted; None for other commits."""
    counts = commit.get("operationMetrics", {})
    if commit["operation"] != "MERGE" or not {INSERTED, DELETED} <= counts.keys():
        return None
    return int(counts[INSERTED]) - int(counts[DELETED])


def _not_undone(commits: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yields the commits that made a table what it is, given its history, the newest first. A `restore` undoes the
    commits after the version that it names; if it names a time, perhaps all commits before it are undone.
    """
    newest = math.inf
    for commit in commits:
        if commit["version"] <= newest:
            yield commit
            if commit["operation"] == "RESTORE":
                version = commit["operationParameters"].get("version")
                newest = int(version) if str(version).isdigit() else -1


def needs_mapping(columns: Mapping[str, str]) -> bool:
    """Returns True if the name of a column, or of a field in its type, is one that Delta allows only with column
    mapping.

    >>> needs_mapping({"a.b": "int"}), needs_mapping({"a": "struct<`b`:array<struct<`c d`:int>>>"})
    (False, True)
    """
    names = [text for name, kind in columns.items() for text in (name, *re.findall(r"`((?:[^`]|``)*)`", kind))]
    return any(NOT_IN_NAMES.search(text) for text in names)
