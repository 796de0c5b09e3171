"""What table formats have in common: each change of a table is a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from runner.storage.data import Cutoff, Increment
from runner.storage.session import Publisher
from runner.storage.storage import Storage, new_identity

# The property of a changelog that tells it from one that was created later under its name.
IDENTITY = "changelog.identity"


class TableFormat(Storage):
    """Tables in a format that changes them in place."""

    changes_rows = True

    changelog_properties: ClassVar[Mapping[str, str]]
    """The properties of a changelog's table."""

    changing_properties: ClassVar[Mapping[str, str]]
    """The properties of a table whose rows are changed often: changes are written beside the files that they change."""

    maintenance: ClassVar[tuple[str, ...]]
    """The macros that maintenance runs on a table, in this order."""

    # --- tables of models

    def recover(self, name: str) -> None:
        """Does nothing: what a run that died did not commit is not in the table."""

    def replace(self, name: str, sql: str, is_changed_often: bool = False) -> None:
        more = self.changing_properties if is_changed_often else {}
        self.create_schema()
        self.session.replace_table(
            self.table(name), sql, self.name, lambda columns: {**self.properties(columns), **more}
        )

    def properties(self, columns: Mapping[str, str]) -> Mapping[str, str]:
        """The properties that a table with these columns and types needs."""
        return {}

    def apply_increment(self, name: str, increment: Increment) -> None:
        table = self.table(name)
        self.add_columns(name, increment.added)
        self.session.do(
            self.macro("merged", table, increment.rows, increment.columns, increment.taken, increment.key)
            if increment.key
            else self.macro("added", table, increment.rows, increment.columns, increment.taken)
        )
        # Last: a dropped column takes its values with it.
        self.drop_columns(name, increment.dropped)

    def add_columns(self, name: str, columns: Mapping[str, str]) -> None:
        for column, kind in columns.items():
            self.session.do(self.macro("column_added", self.table(name), column, kind))

    def drop_columns(self, name: str, columns: Iterable[str]) -> None:
        for column in columns:
            self.session.do(self.macro("column_dropped", self.table(name), column))

    # --- changelogs

    def create_changelog(self, name: str) -> None:
        self.create_schema()
        properties = {**self.changelog_properties, IDENTITY: new_identity()}
        self.session.do(self.macro("changelog_created", self.table(name), self.name, properties))

    def identity(self, name: str) -> str | None:
        if not self.has_table(name):
            return None
        properties = self.session.rows(self.macro("properties_shown", self.table(name)))[1]
        return next((row["value"] for row in properties if row["key"] == IDENTITY), None)

    def newest_batch(self, name: str) -> int | None:
        newest: list[dict[str, int | None]] = self.session.rows(self.macro("newest_batch", self.table(name)))[1]
        return newest[0]["newest"]

    # --- the catalog

    def publish(self, name: str, is_changelog: bool, publisher: Publisher) -> None:
        if is_changelog:
            self.create_changelog(name)

    # --- maintenance

    def maintain(self, name: str, is_changelog: bool, cutoff: Cutoff) -> tuple[str, ...]:
        for macro in self.maintenance:
            self.session.do(self.macro(macro, self.target, name, cutoff))
        return ()
