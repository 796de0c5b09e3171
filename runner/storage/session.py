"""The interfaces that a storage works with: a Spark session, a file system, the place of its target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

# Prints the SQL of a macro, given its name and its arguments.
Macro = Callable[..., str]


class Session(Protocol):
    """A Spark session. Tables have the names that SQL uses."""

    def do(self, sql: str) -> None:
        """Runs a statement for its effect."""

    def view(self, name: str, sql: str) -> None:
        """Creates a view of a query."""

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
        """Renames a folder; nothing may exist under the new name."""


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
