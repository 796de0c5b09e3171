"""Housekeeping: tables of few large files, without what nobody needs any more."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from runner.engine.errors import QueryFailed
from runner.engine.file_systems import FileSystem
from runner.engine.tables import Tables
from runner.project.nodes import Model, Node

# Storage -> the macros of what is done to each table, in this order.
STEPS = {
    "parquet": (),
    "delta": ("delta_compacted", "delta_vacuumed"),
    "iceberg": (
        "iceberg_compacted",
        "iceberg_manifests_compacted",
        "iceberg_snapshots_expired",
        "iceberg_orphans_removed",
    ),
}


@dataclass(frozen=True)
class Until:
    """An instant some days ago, as engines want it: UTC, or hours from now."""

    days: int
    now: datetime

    @property
    def hours(self) -> int:
        return self.days * 24

    @property
    def at(self) -> str:
        return f"{self.now - timedelta(days=self.days):%Y-%m-%d %H:%M:%S}"

    @property
    def at_a_day_ago(self) -> str:
        """The instant, or a day ago if it is later: files of a write that is going on would be taken for left over."""
        return Until(max(self.days, 1), self.now).at


@dataclass(frozen=True)
class Maintenance:
    """What is kept: rows for `keep_days` since they landed, None for ever; old states of tables for `history_days`."""

    tables: Tables
    keep_days: int | None
    history_days: int

    def maintain(self, node: Node) -> tuple[str, ...]:
        """Looks after a model's table, and says what was done where no engine says it."""
        model: Model = node.subject
        if not (self.tables.has_changelog(node.name) if model.source else self.tables.has_table(node.name)):
            return ("not built yet",)
        if model.source:
            self._check_settled(node.name)
        removed = self._remove_old_rows(node.name) if model.source and self.keep_days is not None else ()
        now = datetime.now(timezone.utc)
        # Delta keeps a week of history unless it is told that no other write goes on, which the run's lock sees to.
        with self.tables.spark.setting("spark.databricks.delta.retentionDurationCheck.enabled", "false"):
            for step in STEPS[self.tables.storage]:
                self.tables.spark.do(
                    self.tables.macro(step, self.tables.target, node.name, Until(self.history_days, now))
                )
        if self.tables.storage == "parquet":
            return self._remove_uncommitted(node.name) if model.source else ("written whole each time: nothing to do",)
        return removed

    def _check_settled(self, name: str) -> None:
        """A batch that was begun may be in the table and not in the checkpoint; what shows that it is there may not be
        removed before.
        """
        checkpoint = self.tables.checkpoint(name)
        if checkpoint.newest_plan > checkpoint.newest_commit:
            raise QueryFailed(
                f'the last run of "{name}" was broken off, and has to be ended first: runner run -s {name}'
            )

    def _remove_old_rows(self, name: str) -> tuple[str, ...]:
        if self.tables.storage == "parquet":
            raise QueryFailed(
                "rows of a Parquet folder cannot be removed: --keep-days needs a target with the storage delta or iceberg"
            )
        since = datetime.now(timezone.utc).date() - timedelta(days=self.keep_days or 0)
        # First the note: `conserved` must not miss what is about to go.
        self.tables.checkpoint(name).keep_since(since)
        self.tables.spark.do(self.tables.macro("old_rows_removed", self.tables.name_of(name), f"{since}"))
        return (f"rows that landed before {since} are removed",)

    def _remove_uncommitted(self, name: str) -> tuple[str, ...]:
        """Removes files of broken runs, which Spark does not read, and other tools do."""
        left = uncommitted_files(self.tables.files, self.tables.target.at(name))
        for path in left:
            self.tables.files.remove(path)
        return (
            f"{len(left)} files of broken runs removed; files of a Parquet folder are not compacted, see the targets delta and iceberg",
        )


def uncommitted_files(files: FileSystem, root: str) -> list[str]:
    """The files of a Parquet folder that no committed batch has written, with their checksums; only while nothing
    writes there.
    """
    committed = {
        name
        for entry in files.names(f"{root}/_spark_metadata")
        if not entry.startswith(".")
        for name in _names_in(files.read(f"{root}/_spark_metadata/{entry}"))
    }
    folders = [
        f"{root}/{kind}/{day}"
        for kind in files.names(root)
        if kind.startswith("kind=")
        for day in files.names(f"{root}/{kind}")
    ]
    return [
        f"{folder}/{name}"
        for folder in folders
        for name in files.names(folder)
        if name.removeprefix(".").removesuffix(".crc") not in committed
    ]


def _names_in(log: str) -> list[str]:
    """The names of the files in one entry of Spark's log of a folder, whose first line is a version."""
    return [json.loads(line)["path"].rsplit("/", 1)[1] for line in log.splitlines()[1:]]
