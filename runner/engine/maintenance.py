"""Maintenance: compacting tables and removing what is no longer needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from runner.engine.errors import QueryFailed
from runner.engine.tables import Tables
from runner.project.mirror import BESIDE
from runner.project.nodes import Node
from runner.storage.data import Cutoff
from runner.storage.known import STORAGES


@dataclass(frozen=True)
class Maintenance:
    """Maintains tables. Rows are kept for `keep_days` after they landed, for ever if that is None; old versions of
    tables for `history_days`. `readers` returns the models that take in the new rows of a changelog.
    """

    tables: Tables
    readers: Callable[[str], Iterable[Node]]
    keep_days: int | None
    history_days: int

    def maintain(self, name: str, is_changelog: bool) -> tuple[str, ...]:
        """Maintains a model's table; returns notes for the user."""
        storage = self.tables.storage
        if not (storage.has_changelog(name) if is_changelog else storage.has_table(name)):
            return ("not built yet",)
        notes: tuple[str, ...] = ()
        if is_changelog:
            self._check_settled(name)
            notes = self._remove_old_rows(name, self.keep_days) if self.keep_days is not None else ()
        else:
            self.tables.progress(name).settle()
        cutoff = Cutoff(self.history_days, datetime.now(timezone.utc))
        for beside in () if is_changelog else (f"{name}{ending}" for ending in BESIDE.values()):
            if storage.has_table(beside):
                storage.maintain(beside, False, cutoff)
        return (*notes, *storage.maintain(name, is_changelog, cutoff))

    def _check_settled(self, name: str) -> None:
        """Raises QueryFailed after a run that was interrupted: its batch may be in the table and not in the checkpoint,
        and the rows that show that the batch is in the table must not be removed.
        """
        if self.tables.checkpoint(name).has_unfinished_batch:
            raise QueryFailed(
                f'the last run of "{name}" was interrupted and has to be finished first: runner run -s {name}'
            )

    def _remove_old_rows(self, name: str, keep_days: int) -> tuple[str, ...]:
        if not self.tables.storage.changes_rows:
            others = " or ".join(other for other, storage in STORAGES.items() if storage.changes_rows)
            raise QueryFailed(
                f"rows of a table in {self.tables.storage.name} cannot be removed: "
                f"--keep-days needs a target with the storage {others}"
            )
        since = datetime.now(timezone.utc).date() - timedelta(days=keep_days)
        newest = self._newest_before(name, f"{since}")
        if newest is None:
            return (f"no rows landed before {since}",)
        self._check_read(name, f"{since}", newest)
        # The day is recorded first: the test `conserved` must know what is about to be removed.
        self.tables.checkpoint(name).keep_since(since)
        self.tables.storage.remove_rows(name, f"{since}")
        return (f"rows that landed before {since} were removed",)

    def _newest_before(self, name: str, day: str) -> int | None:
        """Returns the newest batch with rows that landed before a day; None if there are no such rows."""
        self.tables.changelog_view(name)
        (row,) = self.tables.spark.rows(self.tables.macro("newest_batch_before", name, day))[1]
        return row["batch"] if row["batch"] is None else int(row["batch"])

    def _check_read(self, name: str, day: str, newest: int) -> None:
        """Raises QueryFailed if a table has not read all rows that landed before a day, up to their newest batch."""
        for reader in self.readers(name):
            read = (self.tables.progress(reader.relation).read() or {}).get(name)
            if read and read.batch < newest:
                unread = f'"{reader.name}" has not read all rows of "{name}" that landed before {day}'
                raise QueryFailed(f"{unread}: runner run -s {reader.name}")
