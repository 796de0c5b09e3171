"""The common part of table formats: each change of a table is a transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, ClassVar

from runner.render import name as quoted
from runner.sql_text import digits_of
from runner.storage.data import Cutoff, Increment, Layout, Publisher
from runner.storage.storage import NO_LAYOUT, Storage, new_identity

# The property of a changelog that tells it from one that was created later under its name.
IDENTITY = "changelog.identity"


class TableFormat(Storage):
    """Tables in a format that changes them in place."""

    changes_rows = True
    keeps_comments = True

    changelog_properties: ClassVar[Mapping[str, str]]
    """The properties of a changelog's table."""

    changing_properties: ClassVar[Mapping[str, str]]
    """The properties of a table whose rows are changed often: changes are written beside the files that they change."""

    wider_types: ClassVar[Mapping[str, tuple[str, ...]]]
    """Types whose values are kept as they are when a column changes in place -> the types to which it may change."""

    digits_of_integers: ClassVar[Mapping[str, tuple[int, int]]] = {}
    """Types that may become decimal in place -> how many digits and how many behind the point that then has at least.
    """

    widens_scale: ClassVar[bool] = False
    """True if a decimal type may get more digits behind the point in place."""

    maintenance: ClassVar[tuple[str, ...]]
    """The macros that maintenance runs on a table, in this order."""

    # --- tables of models

    def recover(self, name: str) -> None:
        """Does nothing: what a run did not commit before it died is not in the table."""

    def replace(self, name: str, sql: str, layout: Layout = NO_LAYOUT, is_changed_often: bool = False) -> None:
        self.create_schema()
        view = f"{name}__rows"
        # The view is of the query as it is, so that a place that Spark refuses is found in the query.
        self.session.view(view, sql)
        columns = self.session.column_types(quoted(view), {})
        if layout.comments is not None:
            comments = {column: layout.comments.get(column, "") for column in columns}
            self.session.do(self.macro("commented_view", f"{name}__commented", view, comments))
            view = f"{name}__commented"
        often = self.changing_properties if is_changed_often else {}
        properties = {**self.properties(columns), **often, **layout.properties}
        self.create_table(name, view, layout, properties)

    def create_table(self, name: str, view: str, layout: Layout, properties: Mapping[str, str]) -> None:
        """Creates a table of the rows of a view, in place of the one that was there."""
        rows, clauses = self.macro("all_rows", quoted(view)), layout.clauses(properties)
        self.session.do(self.macro("table_replaced", self.table(name), self.name, rows, clauses))

    def properties(self, columns: Mapping[str, str]) -> Mapping[str, str]:
        """Returns the properties that a table with these columns and types needs."""
        return {}

    def refresh(self, name: str, layout: Layout) -> None:
        table = self.table(name)
        if layout.properties:
            has = {row["key"]: row["value"] for row in self.session.rows(self.macro("properties_shown", table))[1]}
            if changed := {key: value for key, value in layout.properties.items() if has.get(key) != value}:
                self.session.do(self.macro("properties_set", table, changed))
        if layout.comment is not None or layout.comments is not None:
            self._comment(table, layout)

    def _comment(self, table: str, layout: Layout) -> None:
        comment, comments = self._comments(table)
        if layout.comment is not None and layout.comment != comment:
            self.session.do(self.macro("table_commented", table, layout.comment))
        wanted = {column: layout.comments.get(column, "") for column in comments} if layout.comments is not None else {}
        if changed := {column: text for column, text in wanted.items() if text != comments[column]}:
            self.session.do(self.macro("columns_commented", table, changed))

    def _comments(self, table: str) -> tuple[str, dict[str, str]]:
        """Returns the comments of a table and of its columns, empty for those that have none."""
        columns = self.session.column_types(table, {})
        told = self.session.rows(self.macro("table_described", table))[1]
        # Rows of the columns come first, and a column may have any name.
        more = {row["col_name"]: row["data_type"] for row in told[len(columns) :]}
        return more.get("Comment") or "", {row["col_name"]: row["comment"] or "" for row in told[: len(columns)]}

    def apply_increment(self, name: str, increment: Increment, layout: Layout = NO_LAYOUT) -> None:
        self.add_columns(name, increment.added)
        self._write(self.table(name), increment)
        # Columns are dropped last: a dropped column takes its values with it.
        self.drop_columns(name, increment.dropped)

    def _write(self, table: str, new: Increment) -> None:
        if new.replaces_partitions:
            types = {column: new.had.get(column) or new.sent[column] for column in new.columns}
            self.session.overwrite_partitions(table, self.macro("typed_rows", new.rows, types, new.taken))
        elif new.key:
            self.session.do(self.macro("merged", table, new.rows, new.columns, new.taken, new.key))
        else:
            self.session.do(self.macro("added", table, new.rows, new.columns, new.taken))

    def add_columns(self, name: str, columns: Mapping[str, str], after: str | None = None) -> None:
        for column, kind in columns.items():
            self.session.do(self.macro("column_added", self.table(name), column, kind, after))

    def widens(self, kind: str, wider: str) -> bool:
        had, has = (self.types_kept_as.get(one, one) for one in (kind, wider))
        digits = digits_of(had) if had.startswith("decimal") else self.digits_of_integers.get(had)
        if not digits or not has.startswith("decimal"):
            return had == has or has in self.wider_types.get(had, ())
        more = digits_of(has)
        keeps_scale = more[1] == digits[1] or (self.widens_scale and more[1] > digits[1])
        return keeps_scale and more[0] - more[1] >= digits[0] - digits[1]

    def widen_column(self, name: str, column: str, kind: str) -> None:
        self.session.do(self.macro("column_widened", self.table(name), column, kind))

    def drop_columns(self, name: str, columns: Iterable[str]) -> None:
        for column in columns:
            self.session.do(self.macro("column_dropped", self.table(name), column))

    # --- changelogs

    def create_changelog(self, name: str) -> None:
        self.create_schema()
        properties = {**self.changelog_properties, IDENTITY: new_identity()}
        self.session.do(self.macro("changelog_created", self.table(name), self.name, properties))

    def fill_changelog(self, name: str, rows: str, newest: int) -> None:
        self.session.do(self.macro("changelog_filled", self.table(name), rows))

    def identity(self, name: str) -> str | None:
        if not self.has_table(name):
            return None
        properties = self.session.rows(self.macro("properties_shown", self.table(name)))[1]
        return next((row["value"] for row in properties if row["key"] == IDENTITY), None)

    def newest_batch(self, name: str) -> int | None:
        newest: list[dict[str, int | None]] = self.session.rows(self.macro("newest_batch", self.table(name)))[1]
        return newest[0]["newest"]

    # --- rows that are erased

    def erase(self, name: str, erased: str, erasures: Collection[Any]) -> None:
        whole, changes = f"{name}__whole", f"{name}__erased"
        self.changelog_view(name, whole)
        with self.session.computed_view(changes, self.macro("changes_of_erasing", whole, erased, erasures)):
            self.session.do(self.macro("changes_merged", self.table(name), changes))

    def finish_erasing(self, name: str) -> None:
        """Does nothing: what was not committed is not in the table."""

    # --- the catalog

    def publish(self, name: str, is_changelog: bool, publisher: Publisher) -> None:
        if is_changelog:
            self.create_changelog(name)

    # --- maintenance

    def maintain(self, name: str, is_changelog: bool, cutoff: Cutoff) -> tuple[str, ...]:
        for macro in self.maintenance:
            self.session.do(self.macro(macro, self.target, name, cutoff))
        return ()
