"""The base class of storages: what every storage can do."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from threading import Lock
from typing import Any, ClassVar

from runner.storage.data import Cutoff, FileSystem, Increment, Layout, Macro, Place, Publisher, Session, Sink, Write

NO_LAYOUT = Layout()


def new_identity() -> str:
    """Returns an identity that tells a changelog from all others, even from one created later under its name."""
    return uuid.uuid4().hex


class Storage(ABC):
    """
    The tables of a target in one storage, by the names of their models. A changelog is the table that a source's stream
    writes; every other table is written whole or grows by increments.

    Tables are folders in the target's path unless a storage says otherwise.
    """

    name: ClassVar[str]
    """The name of the storage in targets, and of its tables' format in Spark."""

    extension: ClassVar[str] = ""
    """The class that extends Spark for it."""

    session_catalog: ClassVar[str] = ""
    """The class that replaces Spark's own catalog, for tables in folders."""

    own_catalog: ClassVar[str] = ""
    """The class of the catalog that its tables are in, which the target must then have; empty for folders."""

    types_kept_as: ClassVar[Mapping[str, str]] = {}
    """Types in SQL that it does not have -> the types that columns get instead."""

    changes_rows: ClassVar[bool] = False
    """True if rows of a table can be changed and removed without writing all of it."""

    lacks: ClassVar[Mapping[str, str]] = {}
    """Settings of tables that it does not have -> what to do instead."""

    keeps_comments: ClassVar[bool] = False
    """True if tables have comments themselves, and not only the views of them that are in a catalog."""

    transforms: ClassVar[tuple[str, ...]] = ()
    """The functions of columns that its tables can be partitioned and clustered by."""

    most_clusters: ClassVar[int | None] = None
    """The number of columns that tables can be clustered by, if these cannot have partitions too."""

    def __init__(self, session: Session, files: FileSystem, target: Place, macro: Macro) -> None:
        self.session, self.files, self.target, self.macro = session, files, target, macro
        self._schema_exists, self._creating_schema = False, Lock()

    # --- what exists

    def table(self, name: str) -> str:
        """Returns the name of a table in SQL."""
        return self.table_of(self.target, self.macro, name)

    @classmethod
    def table_of(cls, target: Place, macro: Macro, name: str) -> str:
        """Returns the name of a target's table in SQL."""
        return macro("folder_table", cls.name, target.at(name)).strip()

    @abstractmethod
    def has_table(self, name: str) -> bool: ...

    def have_tables(self, names: Iterable[str]) -> bool:
        """Returns True if all of these tables exist, as far as this is known without asking for each."""
        return all(self.has_table(name) for name in names)

    def has_changelog(self, name: str) -> bool:
        return self.has_table(name)

    def has_rows(self, name: str) -> bool:
        """Returns True if a changelog exists and holds rows."""
        return self.has_changelog(name) and not self.session.is_empty(self.table(name))

    @abstractmethod
    def check_changelog(self, name: str) -> None:
        """Raises Damaged, or the error of the system, for a file that lists the files of a changelog and cannot be
        read: Spark's own errors do not name it.
        """

    # --- views, for a run

    def view(self, name: str, sql: str) -> None:
        """Creates a view of a query."""
        self.session.view(name, sql)

    def changelog_view(self, name: str, view: str) -> None:
        """Creates a view of a changelog that exists."""
        self.view(view, self.macro("changelog_rows", self.table(name)))

    def table_view(self, name: str) -> None:
        """Creates a view of a table that exists."""
        self.view(name, self.macro("all_rows", self.table(name)))

    # --- tables of models

    @abstractmethod
    def recover(self, name: str) -> None:
        """Completes what a run has left half done when it died. Must run before a table is read to be rewritten."""

    @abstractmethod
    def replace(self, name: str, sql: str, layout: Layout = NO_LAYOUT, is_changed_often: bool = False) -> None:
        """Writes the rows of a query to a table and replaces the table that was there. If `is_changed_often` is True,
        later changes of rows are cheap and reading costs more.
        """

    @abstractmethod
    def apply_increment(self, name: str, increment: Increment, layout: Layout = NO_LAYOUT) -> None:
        """Adds new rows to a table that exists, with this layout. If the query of the new rows fails, the table keeps
        the rows that it had.
        """

    def widens(self, kind: str, wider: str) -> bool:
        """Returns True if a column of one type can get another in place, and each value is as if it had been written
        with that type.
        """
        return False

    def add_columns(self, name: str, columns: Mapping[str, str], after: str | None = None) -> None:
        """Gives a table more columns, with their types: after a column, at the beginning if its name is empty, or at
        the end. Only for a storage that `changes_rows`.
        """
        raise NotImplementedError

    def widen_column(self, name: str, column: str, kind: str) -> None:
        """Changes the type of a column in place. Only where the storage `widens` it."""
        raise NotImplementedError

    @abstractmethod
    def refresh(self, name: str, layout: Layout) -> None:
        """Gives a table that exists the properties and comments of its layout, where they differ."""

    @abstractmethod
    def writes(self, name: str) -> list[str]:
        """Returns names of the writes that made a table what it is, without writes that only keep its rows in another
        way; the names of old writes may be missing. A write that was committed has added at least one name.
        """

    def newest_write(self, name: str) -> str | None:
        """Returns the name of the newest write of a table that exists; None if it cannot be told without a query."""
        return None

    def head(self, name: str) -> str | None:
        """Returns the name of the newest write of a table, which tells all later ones from those before it; None if
        there is no write, or names do not tell this.
        """
        return None

    def writes_since(self, name: str, before: Collection[str]) -> list[Write]:
        """Returns the writes, as `writes` does, since a moment: `before` is the `head` that the table had then, or all
        writes that it had.
        """
        return [Write(one) for one in self.writes(name) if one not in before]

    # --- changelogs

    @abstractmethod
    def create_changelog(self, name: str) -> None:
        """Creates an empty changelog with a new identity, unless it exists."""

    @abstractmethod
    def fill_changelog(self, name: str, rows: str, newest: int) -> None:
        """Writes the rows of a query to a changelog that was created and has none, as if a stream had landed them, in
        batches up to `newest`.
        """

    @abstractmethod
    def identity(self, name: str) -> str | None:
        """Returns the identity that a changelog was created with; None if it does not exist or bears none."""

    @abstractmethod
    def newest_batch(self, name: str) -> int | None:
        """Returns the number of the newest batch that a changelog has rows of; None if it has no rows."""

    @abstractmethod
    def sink(self, name: str) -> Sink:
        """Returns the place where a stream writes a changelog."""

    def drop_changelog(self, name: str) -> None:
        """Removes a changelog with all its rows, if it exists."""
        self.files.remove(self.target.at(name))

    # --- rows that are erased

    @abstractmethod
    def erase(self, name: str, erased: str, erasures: Collection[Any]) -> None:
        """Changes the rows of a changelog whose places a view has, as the records of erased keys say; goes on where an
        interrupted one has ended. Must run only while nothing else writes the table.
        """

    @abstractmethod
    def finish_erasing(self, name: str) -> None:
        """Finishes an interrupted `erase` of a changelog, where it has left something half done."""

    @abstractmethod
    def purge(self, name: str) -> None:
        """Removes all old versions of a table, and files that it no longer needs. Must run only while nothing else
        reads or writes the table.
        """

    # --- tables that get another name

    def rename(self, name: str, new: str) -> None:
        """Gives a table or a changelog another name, with all that is known of it; goes on where an interrupted one has
        ended. Does nothing if there is no such table.
        """
        if self.files.exists(self.target.at(name)):
            self.files.move(self.target.at(name), self.target.at(new))

    # --- the catalog

    def create_schema(self) -> None:
        """Creates the schema in the target's catalog, if the target has one."""
        with self._creating_schema:
            if self.target.catalog and not self._schema_exists:
                self.session.do(self.macro("schema_created", self.target))
                self._schema_exists = True

    @abstractmethod
    def publish(self, name: str, is_changelog: bool, publisher: Publisher) -> None:
        """Publishes a table in the target's catalog."""

    def unpublish(self, name: str, publisher: Publisher) -> None:
        """Takes a table out of the target's catalog, if it is there."""
        publisher.do(self.macro("table_dropped", self.macro("catalog_name", self.target, name)))

    # --- maintenance

    @abstractmethod
    def maintain(self, name: str, is_changelog: bool, cutoff: Cutoff) -> tuple[str, ...]:
        """Compacts a table and removes what is no longer needed; returns notes for the user. Must run only while
        nothing else writes the table.
        """

    def remove_rows(self, name: str, before: str) -> None:
        """Removes the rows of a changelog that landed before a day, where the storage removes rows."""
        self.session.do(self.macro("old_rows_removed", self.table(name), before))

    def remove_texts(self, name: str, before: str) -> None:
        """Removes the texts of messages from the rows of a changelog that landed before a day, but for those of dead
        letters, where the storage changes rows.
        """
        self.session.do(self.macro("old_texts_removed", self.table(name), before))

    def remove_landed_again(self, name: str, letters: Collection[int], replacing: Collection[int]) -> None:
        """Removes the dead letters of a changelog whose messages have landed once more in one of the batches `letters`,
        and all older rows of the messages in the batches `replacing`, where the storage removes rows.
        """
        for macro, batches in (("replaced_removed", replacing), ("letters_removed", letters)):
            if batches:
                self.session.do(self.macro(macro, self.table(name), batches))
