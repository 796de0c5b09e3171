"""Maintenance: compacting tables and removing what is no longer needed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timedelta, timezone

from runner.engine.errors import QueryFailed
from runner.engine.tables import Tables
from runner.project.inputs import Source
from runner.project.mirror import BESIDE
from runner.project.nodes import Node
from runner.storage.data import Cutoff
from runner.storage.known import STORAGES


def maintain(
    tables: Tables,
    name: str,
    source: Source | None,
    readers: Iterable[Node],
    keep_days: int | None,
    history_days: int,
) -> tuple[str, ...]:
    """Maintains the table of a model; returns notes for the user. Old versions are kept for `history_days`. If it is
    the changelog of a source, its rows are kept for `keep_days` after they landed, for ever if that is None, and the
    texts of its messages for as long as the source says; `readers` are the models that take in its new rows.
    """
    storage, is_changelog = tables.storage, source is not None
    if not (storage.has_changelog(name) if is_changelog else storage.has_table(name)):
        return ("not built yet",)
    notes: tuple[str, ...] = ()
    if source:
        _check_settled(tables, name)
        tables.remove_landed_again(name)
        notes = _remove_old_rows(tables, name, readers, keep_days) if keep_days is not None else ()
        notes += _remove_old_texts(tables, name, source.raw.days) if source.raw.days is not None else ()
    else:
        tables.progress(name).settle()
    cutoff = Cutoff(history_days, datetime.now(timezone.utc))
    for beside in () if is_changelog else (f"{name}{ending}" for ending in BESIDE.values()):
        if storage.has_table(beside):
            storage.maintain(beside, False, cutoff)
    return (*notes, *storage.maintain(name, is_changelog, cutoff))


def _check_settled(tables: Tables, name: str) -> None:
    """Raises QueryFailed after a run that was interrupted: its batch may be in the table and not in the checkpoint, and
    the rows that show that the batch is in the table must not be removed.
    """
    if tables.checkpoint(name).has_unfinished_batch:
        raise QueryFailed(
            f'the last run of "{name}" was interrupted and has to be finished first: runner run -s {name}'
        )


def _days_ago(days: int) -> date:
    return datetime.now(timezone.utc).date() - timedelta(days=days)


def _remove_old_texts(tables: Tables, name: str, days: int) -> tuple[str, ...]:
    before = _days_ago(days)
    if not tables.storage.changes_rows:
        return (f"the texts of messages of before {before} stay: a table in {tables.storage.name} changes no rows",)
    tables.storage.remove_texts(name, f"{before}")
    return (f"the texts of messages that landed before {before} were removed",)


def _remove_old_rows(tables: Tables, name: str, readers: Iterable[Node], keep_days: int) -> tuple[str, ...]:
    if not tables.storage.changes_rows:
        others = " or ".join(other for other, storage in STORAGES.items() if storage.changes_rows)
        raise QueryFailed(
            f"rows of a table in {tables.storage.name} cannot be removed: "
            f"--keep-days needs a target with the storage {others}"
        )
    since = _days_ago(keep_days)
    tables.changelog_view(name)
    (row,) = tables.spark.rows(tables.macro("newest_batch_before", name, f"{since}"))[1]
    if row["batch"] is None:
        return (f"no rows landed before {since}",)
    for reader in readers:
        # Its table must have read all rows that are about to be removed.
        read = (tables.progress(reader.relation).read() or {}).get(name)
        if read and read.batch < int(row["batch"]):
            unread = f'"{reader.name}" has not read all rows of "{name}" that landed before {since}'
            raise QueryFailed(f"{unread}: runner run -s {reader.name}")
    # The day is recorded first: the test `conserved` must know what is about to be removed.
    tables.checkpoint(name).keep_since(since)
    tables.storage.remove_rows(name, f"{since}")
    return (f"rows that landed before {since} were removed",)
