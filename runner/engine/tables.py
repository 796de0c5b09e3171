"""The tables of a target, in any storage: views of them, tables of models, changelogs that streams fill."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from runner.contract import COLUMNS
from runner.engine.checkpoint import REPLACED, Checkpoint
from runner.engine.contracts import (
    as_written,
    broken_contract_explained,
    check_contract,
    checked_key,
    columns_after,
    duplicate_keys_explained,
    layout_of_columns,
)
from runner.engine.erasures import without_erased
from runner.engine.errors import QueryFailed, query_errors, telling
from runner.engine.files import files_of
from runner.engine.messages import changelog_stream, start_stream
from runner.engine.progress import Position, Progress, Refreshes
from runner.engine.recorded import TableName
from runner.engine.session import Spark
from runner.errors import full_refresh
from runner.project.inputs import Deferred, Target, Waiver
from runner.project.properties import Contract
from runner.render import name as quoted
from runner.storage.data import Increment, Layout, Macro
from runner.storage.known import STORAGES
from runner.storage.storage import NO_LAYOUT, Storage


class Tables:
    """The tables of a target, by the names of their models. `macro` prints SQL. If `reads_nothing` is True, all that
    the run reads has no rows, and nothing of it counts as read. `deferred` are tables of another target, which are read
    where this target does not have them.
    """

    def __init__(
        self,
        spark: Spark,
        macro: Macro,
        reads_nothing: bool = False,
        deferred: Deferred | None = None,
        target: Target | None = None,
    ) -> None:
        self.spark, self.target, self.macro = spark, target or spark.target, macro
        self.reads_nothing, self.deferred = reads_nothing, deferred
        # The names of the tables of another target that this run reads.
        self.borrowed: set[str] = set()
        self.files = files_of(spark, self.target)
        self.storage = STORAGES[self.target.storage](spark, self.files, self.target, macro)
        # Changelog -> the position up to which the view that this run has created shows its rows; None if the view
        # shows no rows.
        self.positions: dict[str, Position | None] = {}

    def checkpoint(self, name: str) -> Checkpoint:
        return Checkpoint(self.files, f"{self.target.at('_checkpoints')}/{name}")

    def progress(self, name: str) -> Progress:
        """Returns the record of how far an incremental model has read."""
        path = f"{self.target.at('_checkpoints')}/{name}/_progress.json"
        return Progress(self.files, path, self.storage, name)

    def mark(self, name: str) -> str:
        """Returns the text that was last written with `write_mark` for a table; empty if none was."""
        path = self._mark(name)
        return self.files.read(path) if self.files.exists(path) else ""

    def write_mark(self, name: str, mark: str) -> None:
        self.files.write(self._mark(name), mark)

    def _mark(self, name: str) -> str:
        return f"{self.target.at('_checkpoints')}/{name}/_mark"

    def begun_refresh(self, name: str) -> str | None:
        """Returns the run that began to build the table of a model again and has not finished; None if there is none.
        If there is one, removes what is recorded of the table, which may be damaged.
        """
        begun = self.refreshes.unfinished(name)
        for path in (self.progress(name).path, self._mark(name)) if begun else ():
            self.files.remove(path)
        return begun

    @property
    def refreshes(self) -> Refreshes:
        return Refreshes(self.files, self.target.at("_refreshes"))

    def position(self, name: str) -> Position | None:
        """Returns the position of a changelog as this run sees it: rows that land later are left to a later run. None
        if its rows cannot be seen.
        """
        if self.reads_nothing:
            return None
        return self.positions[name] if name in self.positions else self._position(name)

    def _position(self, name: str) -> Position:
        return Position(self.storage.identity(name), self.checkpoint(name).newest_commit)

    def has_batch(self, name: str, batch: int) -> bool:
        """Returns True if a changelog has rows of a batch."""
        if not self.storage.has_changelog(name):
            return False
        self.storage.changelog_view(name, name)
        return bool(self.spark.rows(self.macro("first_of_batch", name, batch))[1])

    def is_gone(self, name: str) -> bool:
        """Returns True if a changelog is no longer there, though batches have landed in it."""
        return self.checkpoint(name).newest_commit >= 0 and not self.storage.has_changelog(name)

    def check_changelog(self, name: str) -> None:
        """Raises QueryFailed for a file of a changelog or of its checkpoint that cannot be read."""
        with query_errors():
            self.checkpoint(name).check()
            self.storage.check_changelog(name)

    def naming_damage(self, name: str) -> AbstractContextManager[None]:
        """Raises Spark's errors as QueryFailed. If a file of a changelog or of its checkpoint cannot be read, the error
        names the file.
        """

        def look(failure: QueryFailed) -> None:
            if not failure.is_of_disk:
                self.check_changelog(name)

        return telling(look)

    # --- views, for a run

    def view(self, name: str, sql: str) -> None:
        """Creates a view of a query."""
        self.storage.view(name, sql)

    def changelog_view(self, name: str) -> None:
        """Creates a view of a changelog; a view without rows if nothing has landed yet. Raises QueryFailed if the
        changelog is gone.
        """
        if self.reads_nothing:
            self.empty_changelog_view(name)
            return
        try:
            # The position is taken before the view, which may show rows that land in between.
            position = self._position(name)
            if is_there := self.storage.has_changelog(name):
                self._changelog_view(name)
        except QueryFailed:
            self.check_changelog(name)
            raise
        self.positions[name] = position if is_there else self._absent_changelog_view(name, position)

    def _changelog_view(self, name: str) -> None:
        """Creates a view of a changelog that exists, without the rows of messages that have landed once more since, and
        with the name that its source has now.
        """
        again, names = self.checkpoint(name).again(), self.checkpoint(name).names()
        whole = f"{name}__whole" if again.hides_rows else name
        landed = f"{name}__landed" if names else whole
        self.storage.changelog_view(name, landed)
        if names:
            self.view(whole, self.macro("rows_under_name", landed, names.now))
        if again.hides_rows:
            self.view(name, self.macro("without_landed_again", whole, again))

    def place_again(self, name: str, messages: str, run_id: str, replaced: Sequence[TableName] | None = None) -> None:
        """Puts messages where the next run of a changelog lands them once more, all of them or none. If `replaced`
        names the tables of rows that the messages had and will have, their new rows replace those that they had.
        """
        checkpoint = self.checkpoint(name)
        building = f"{checkpoint.folder}/again.building"
        self.files.remove(building)
        self.spark.write_parquet(messages, building)
        if replaced is not None:
            self.files.write(f"{building}/{REPLACED}", json.dumps({"tables": list(map(list, replaced))}))
        self.files.move(building, f"{checkpoint.again_folder}/{run_id}")

    def remove_landed_again(self, name: str) -> None:
        """Removes the rows of a changelog that nobody sees since their messages have landed once more, where the
        storage removes rows.
        """
        again = self.checkpoint(name).again()
        if again.hides_rows and self.storage.changes_rows:
            self.storage.remove_landed_again(name, again.letters, again.replacing)
            self.checkpoint(name).write_removed()

    def _absent_changelog_view(self, name: str, position: Position) -> Position:
        """Creates a view of a changelog that is not in this target: of the changelog of another target, or without
        rows; returns its position.
        """
        if self.is_gone(name):
            raise QueryFailed(
                f'the table "{name}" is gone, or its list of committed files is: restore "{self.target.at(name)}", or '
                f"read all messages again with {full_refresh(name)}"
            )
        if (other := self._lender(name)) and other.storage.has_changelog(name):
            position = other._position(name)
            other._changelog_view(name)
            self.borrowed.add(name)
            return position
        self.empty_changelog_view(name)
        return position

    def empty_changelog_view(self, name: str) -> None:
        """Creates a view of a changelog without rows."""
        self.positions[name] = None
        self.spark.view(name, self.macro("no_rows", COLUMNS))

    def table_view(self, name: str) -> bool:
        """Creates a view of a table; returns False if the table has not been built yet."""
        has_table = self.storage.has_table(name)
        if has_table:
            self.storage.table_view(name)
        return has_table

    def readable_view(self, name: str) -> bool:
        """Creates the view of a table that others read; returns False if the table has not been built yet, neither here
        nor in the target of the deferred tables.
        """
        if not self.table_view(name):
            other = self._lender(name)
            if not (other and other.table_view(name)):
                return False
            self.borrowed.add(name)
        if self.reads_nothing:
            self.emptied(name)
        return True

    def emptied(self, view: str) -> None:
        """Takes all rows from a view."""
        self.view(view, self.macro("no_rows", self.types(view)))

    def _lender(self, name: str) -> Tables | None:
        """Returns the tables of another target, if this run reads a table there that is not here; else None."""
        is_lent = self.deferred and name in self.deferred.names
        return Tables(self.spark, self.macro, target=self.deferred.target) if self.deferred and is_lent else None

    # --- tables of models

    def replace(self, name: str, sql: str, layout: Layout = NO_LAYOUT) -> int:
        """Writes a query's rows to a table as `write` does; returns the number of rows."""
        self.write(name, sql, layout)
        return self.count(name)

    def write(self, name: str, sql: str, layout: Layout = NO_LAYOUT, is_changed_often: bool = False) -> None:
        """Writes a query's rows to a table and replaces the table that was there. If `is_changed_often` is True, later
        changes of rows are cheap and reading costs more.
        """
        if layout.columns or layout.comments:
            self.view(f"{name}__rows", sql)
            layout = layout_of_columns(name, layout, self.types(f"{name}__rows"))
        with broken_contract_explained():
            self.storage.replace(name, sql, layout, is_changed_often)

    def replace_keyed(self, name: str, sql: str, key: Sequence[str], layout: Layout) -> int:
        """Replaces a table by rows; if there is a key, raises QueryFailed if two rows have the same key."""
        if not key:
            return self.replace(name, sql, layout)
        new = f"{name}__new"
        self.view(new, sql)
        own_key = checked_key(name, key, self.types(new))
        with duplicate_keys_explained():
            return self.replace(name, self.macro("rows_once_each", name, new, own_key), layout)

    def refresh(self, name: str, layout: Layout) -> None:
        """Gives a table that exists the properties and comments of its layout, where they are others."""
        if layout.properties or layout.comment is not None or layout.comments is not None:
            self.table_view(name)
            self.storage.refresh(name, layout_of_columns(name, layout, self.types(name)))

    def promised(self, name: str, sql: str, contract: Contract | None) -> str:
        """Returns the query of a model's rows, which fails for rows that break the model's contract. Raises QueryFailed
        if columns have other types than the contract.
        """
        if contract is None:
            return sql
        rows, types = f"{name}__promised", f"{name}__contract"
        self.view(rows, sql)
        self.view(types, self.macro("no_rows", contract.types))
        found = self.spark.column_types(quoted(rows), {})
        check_contract(name, self.spark.column_types(quoted(types), {}), found)
        not_null = [as_written(column, found) for column in contract.not_null]
        return self.macro("promised_rows", name, rows, not_null) if not_null else sql

    def apply_increment(
        self,
        name: str,
        sql: str,
        key: Iterable[str],
        on_schema_change: str,
        layout: Layout = NO_LAYOUT,
        replaces_partitions: bool = False,
    ) -> int:
        """Adds the rows of a query to a table that exists. With a key they replace the rows with the same key; without
        a key all are added, or replace the rows of their partitions. Returns the number of the table's rows afterwards.
        If the query fails, the table keeps the rows that it had.
        """
        new = f"{name}__new"
        self.storage.recover(name)
        self.table_view(name)
        self.view(new, sql)
        had = self.types(name)
        sent = {as_written(column, had): kind for column, kind in self.types(new).items()}
        own_key = tuple(as_written(column, sent) for column in key)
        columns = tuple(columns_after(name, had, sent, own_key, on_schema_change))
        rows = self.macro("once_each", name, new, own_key) if own_key else quoted(new)
        layout = layout_of_columns(name, layout, columns)
        with duplicate_keys_explained(), broken_contract_explained():
            increment = Increment(rows, had, sent, columns, own_key, replaces_partitions)
            self.storage.apply_increment(name, increment, layout)
            self.storage.refresh(name, layout)
        return self.count(name)

    def types(self, view: str) -> dict[str, str]:
        """Returns the columns of a view, with their types in SQL."""
        return self.spark.column_types(quoted(view), self.storage.types_kept_as)

    def count(self, name: str) -> int:
        """Returns the number of a table's rows; creates a view of the table first."""
        self.table_view(name)
        return self.spark.count(self.macro("all_rows", quoted(name)))

    # --- changelogs

    def start(
        self,
        name: str,
        sql: str,
        run_id: str,
        trigger: Mapping[str, Any],
        batch: int | None,
        are_few: bool,
        waivers: Sequence[Waiver] = (),
    ) -> StreamingQuery:
        """Starts a stream over new messages; every message lands once, however earlier runs ended. `batch` is the
        number of the only batch, None if there may be several; `are_few` is True if the stream will read few messages.
        Dead letters that one of the `waivers` waives are counted apart.
        """
        sink = self.storage.sink(name)
        # A clone takes the views and functions of this session along, which the SQL names. It has catalogs of its own:
        # this session may not see for a while what they write.
        spark = self.spark if sink.table else self.spark.for_messages(are_few)
        frame = changelog_stream(
            spark, without_erased(self, name, sql), self.macro("landed_counts", waivers), run_id, batch
        )
        self.storage.create_changelog(name)
        checkpoint = self.checkpoint(name)
        checkpoint.drop_leftovers()
        if checkpoint.newest_commit < 0:
            # Before the first batch, table and checkpoint have the same identity: `check_consistency` compares them.
            checkpoint.write_table(self.storage.identity(name) or "")
        checkpoint.expect_again()
        return start_stream(frame, name, checkpoint.folder, sink, trigger)

    def forget(self, name: str) -> None:
        """Removes a changelog and its checkpoint; the checkpoint first, because a changelog without one is refused."""
        self.files.remove(self.checkpoint(name).folder)
        self.storage.drop_changelog(name)


# --- checks that a changelog and its checkpoint are of one moment: a backup of only one of them, restored, would lose
# messages or land them twice


def check_consistency(name: str, tables: Tables) -> None:
    """Raises QueryFailed if the stream of a changelog must not go on."""
    storage, checkpoint = tables.storage, tables.checkpoint(name)
    wrong: str | None = None
    if not checkpoint.is_there:
        missing = f'"{checkpoint.folder}/metadata" is missing'
        wrong = f'"{name}" has rows and no checkpoint ({missing})' if storage.has_rows(name) else None
    elif tables.is_gone(name):
        wrong = f'the table "{tables.target.at(name)}" is gone, or its list of files is, and its checkpoint is there'
    elif storage.has_changelog(name):
        wrong = _why_apart(name, storage, checkpoint)
    if wrong:
        raise QueryFailed(f"{wrong}, so it is not known what was read: {_remedy(name)}")


def _remedy(name: str) -> str:
    return f"restore both as they were at one moment, or {full_refresh(name)} reads everything again"


def _why_apart(name: str, storage: Storage, checkpoint: Checkpoint) -> str | None:
    if checkpoint.table() != (storage.identity(name) or ""):
        return f'the checkpoint of "{name}" is that of another table of this name'
    newest, landed = storage.newest_batch(name), checkpoint.newest_landed()
    if newest is not None and newest > checkpoint.newest_plan:
        begun = checkpoint.newest_plan
        return (
            f'the checkpoint of "{name}" is older than its table, which has batch {newest} where it has begun {begun}'
        )
    # Rows that were removed on purpose are not missing.
    if checkpoint.kept_since() is None and landed > (-1 if newest is None else newest):
        return f'the table "{name}" is older than its checkpoint: it lacks batch {landed}, which has landed'
    return None
