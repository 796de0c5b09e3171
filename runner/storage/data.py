"""The values that storages take and return, and the interfaces that they work with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol


@dataclass(frozen=True)
class Sink:
    """The place where Spark writes a stream: a path, or a table that exists."""

    format: str
    path: str | None = None
    table: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    partitioned_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """A value that keeps rows together: that of a column, or what a transform makes of it, such as `bucket(16, id)`."""

    column: str
    transform: str = ""
    argument: int | None = None

    def __str__(self) -> str:
        arguments = [str(one) for one in (self.argument, self.column) if one is not None]
        return f"{self.transform}({', '.join(arguments)})" if self.transform else self.column


@dataclass(frozen=True)
class Layout:
    """The partitions, clusters, properties and comments of a table. `comment` is the comment of the table, None if it
    is to stay as it is; `comments` are those of all its columns that have one, None if they are to stay as they are.
    """

    partition_by: tuple[Part, ...] = ()
    cluster_by: tuple[Part, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    comments: Mapping[str, str] | None = None

    @property
    def order(self) -> str:
        """The partitions and clusters in words; a table that exists has this text as it was when it was built."""
        named = (("partitions", self.partition_by), ("clusters", self.cluster_by))
        return "; ".join(f"{what} by {', '.join(map(str, parts))}" for what, parts in named if parts)

    def clauses(self, properties: Mapping[str, str]) -> dict[str, Any]:
        """Returns the clauses that create such a table with these properties; the macros `clause_<name>` print them."""
        parts = {"partition_by": self.partition_by, "cluster_by": self.cluster_by}
        others = {"comment": self.comment, "properties": properties or None}
        return {name: value for name, value in {**parts, **others}.items() if value not in ((), None)}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that keep the rows of the table together."""
        return tuple(part.column for part in (*self.partition_by, *self.cluster_by))


@dataclass(frozen=True)
class Increment:
    """New rows for a table that exists. `rows` is what SQL reads the new rows from, with a column `times of this key`
    if there is a `key`. With a key, new rows replace the rows with the same key; without a key, all new rows are added.
    If `replaces_partitions` is True, all old rows of the partitions that the new rows are in are gone. `had` and `sent`
    map the columns of the table and of the new rows to their types in SQL; `columns` are the columns of the table
    afterwards.
    """

    rows: str
    had: Mapping[str, str]
    sent: Mapping[str, str]
    columns: tuple[str, ...]
    key: tuple[str, ...] = ()
    replaces_partitions: bool = False

    @property
    def taken(self) -> list[str]:
        """The columns of the new rows that the table has afterwards."""
        return [column for column in self.columns if column in self.sent]

    @property
    def added(self) -> dict[str, str]:
        """The columns that the table gets, with their types."""
        return {column: self.sent[column] for column in self.taken if column not in self.had}

    @property
    def kept(self) -> dict[str, str]:
        """Each column -> the place from which rows that stay take its value, if the table is written whole: the macros
        `kept_<place>`.
        """
        new, newest = ("new", "newest") if self.key else ("nowhere", "own")
        own = {column: newest if column in self.sent else "own" for column in self.had}
        return {column: own.get(column, new) for column in self.columns}

    @property
    def dropped(self) -> list[str]:
        return [column for column in self.had if column not in self.columns]


class Write(NamedTuple):
    """A write of a table. `rows` is the number of rows that it has added, less the number of those that it has removed;
    None if this is not known.
    """

    name: str
    rows: int | None = None


@dataclass(frozen=True)
class Cutoff:
    """The instant that is `days` days before `now`: older states of a table need not stay readable."""

    days: int
    now: datetime

    @property
    def hours(self) -> int:
        return self.days * 24

    @property
    def at(self) -> str:
        """The instant in UTC, as SQL writes it."""
        return f"{self.now - timedelta(days=self.days):%Y-%m-%d %H:%M:%S}"

    @property
    def at_least_a_day_ago(self) -> str:
        """The instant, or a day ago if that is earlier: newer files may belong to a write that is still running."""
        return Cutoff(max(self.days, 1), self.now).at


# --- what a storage works with: a Spark session, a file system, the place of its target

# Prints the SQL of a macro, given its name and its arguments.
Macro = Callable[..., str]


class Session(Protocol):
    """A Spark session. Tables have the names that SQL uses."""

    def do(self, sql: str) -> None:
        """Runs a statement for its effect."""

    def view(self, name: str, sql: str) -> None:
        """Creates a view of a query."""

    def computed_view(self, name: str, sql: str) -> AbstractContextManager[None]:
        """Creates a view of a query that is computed once, until the block ends."""

    def parquet_view(self, name: str, folder: str, columns: Mapping[str, str]) -> None:
        """Creates a view of a folder of Parquet files with these columns and types."""

    def table_exists(self, table: str) -> bool: ...

    def rows(self, sql: str) -> tuple[list[str], list[dict[str, Any]]]:
        """Returns the columns and the rows of a query."""

    def is_empty(self, table: str) -> bool: ...

    def column_types(self, table: str, instead: Mapping[str, str]) -> dict[str, str]:
        """Returns the columns of a table or view with their types in SQL; `instead` maps types to those that replace
        them.
        """

    def write_parquet(self, sql: str, folder: str, partitions: Sequence[str] = ()) -> None:
        """Writes the rows of a query to a folder that has no table yet, with folders in it for these columns."""

    def overwrite_partitions(self, table: str, sql: str) -> None:
        """Writes the rows of a query to a table, in place of all rows of the partitions that they are in."""

    def setting(self, key: str, value: str) -> AbstractContextManager[None]:
        """Sets a setting of the session until the block ends."""


class FileSystem(Protocol):
    """A file system. Paths are texts as the target gives them: absolute ones on this machine, or URIs."""

    def exists(self, path: str) -> bool: ...

    def names(self, folder: str) -> list[str]:
        """Returns the names in a folder; nothing if there is no such folder."""

    def read(self, path: str) -> str: ...

    def write(self, path: str, text: str) -> None:
        """Writes or replaces a file; creates its folder."""

    def remove(self, path: str) -> None:
        """Removes a file, or a folder with everything in it, if it exists."""

    def move(self, path: str, to: str) -> None:
        """Renames a folder or a file; nothing may exist under the new name, except what an interrupted call has left.
        Creates the folder that it is moved into.
        """


class CatalogSchema(Protocol):
    """A Spark catalog and a schema in it."""

    @property
    def name(self) -> str: ...

    @property
    def schema(self) -> str: ...


class Place(Protocol):
    """The place where a target keeps its tables, and the schema of a catalog where people find them by name."""

    @property
    def catalog(self) -> CatalogSchema | None: ...

    def at(self, name: str) -> str:
        """Returns the path of the table or folder with this name."""


class Publisher(Protocol):
    """Publishes tables in the target's catalog."""

    def do(self, sql: str) -> None:
        """Runs a statement in the catalog's schema."""

    def view(self, name: str, sql: str) -> None:
        """Creates a view in the catalog, if it holds views."""
