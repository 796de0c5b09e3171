"""Types of columns that are in no table of types, and whose values therefore stay as sent."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runner.compile.header import NAME_COLUMNS
from runner.project.inputs import TableSettings
from runner.spec.words import Format, Types, bare_type

# The number of columns that a note names; the others are counted.
SHOWN = 5
# The number of notes is limited, because damaged messages may name any number of types.
MOST_NOTES = 20
# The ending of an array's type, behind the type of its elements.
ARRAY = re.compile(r"(?: *\[[0-9]*\])+$")


@dataclass(frozen=True)
class UnknownType:
    """A type that is in no table of types. `name` is the name as it was sent. `columns` are the columns that have the
    type, each as the names of its table and its own, with dots.
    """

    name: str
    columns: tuple[str, ...]

    @property
    def note(self) -> str:
        """The note for users that this type is unknown.

        >>> UnknownType("hstore", ("t.a", "t.b")).note
        'note: type "hstore" of columns t.a, t.b is in no table of types: their values stay as sent'
        >>> UnknownType("hstore", tuple("abcdefg")).note
        'note: type "hstore" of columns a, b, c, d, e and 2 more is in no table of types: their values stay as sent'
        """
        more = f" and {len(self.columns) - SHOWN} more" if len(self.columns) > SHOWN else ""
        columns = ", ".join(self.columns[:SHOWN]) + more
        return f'note: type "{self.name}" of columns {columns} is in no table of types: their values stay as sent'


def notes_on(unknown: list[UnknownType]) -> tuple[str, ...]:
    """Returns a note on each of the first types, and one with the number of the other types."""
    left = len(unknown) - MOST_NOTES
    more = (f"note: {left} more types are in no table of types",) if left > 0 else ()
    return (*(one.note for one in unknown[:MOST_NOTES]), *more)


def has_tables_of_types(spec: Format) -> bool:
    """Returns True if messages name types, and tables of types say what the types mean."""
    return bool(spec.types and spec.types.at and spec.types.tables)


def unknown_types(
    spec: Format, rows: Iterable[Mapping[str, Any]], declared: Collection[TableSettings] = ()
) -> list[UnknownType]:
    """Returns the types in rows of the changelog that no table of the format has, by name. Columns whose types the
    source declares do not count.
    """
    if not has_tables_of_types(spec):
        return []
    columns: dict[str, set[str]] = {}
    for row in rows:
        table = tuple(row[name] for name in NAME_COLUMNS if row[name] is not None)
        for column, type_name in _sent_types(row["types"], table, declared):
            columns.setdefault(type_name, set()).add(".".join((*table, column)))
    return [
        UnknownType(name, tuple(sorted(columns[name]))) for name in sorted(columns) if not is_known(name, spec.types)
    ]


def _sent_types(
    types: Mapping[str, str | None] | None, table: tuple[str, ...], declared: Collection[TableSettings]
) -> Iterator[tuple[str, str]]:
    """Returns column and type, for the columns of a table whose types the source does not declare."""
    own = {column for one in declared if table[-len(one.name) :] == one.name for column in one.columns}
    for column, type_name in (types or {}).items():
        if type_name is not None and column not in own:
            yield column, type_name


def is_known(type_name: str, types: Types | None) -> bool:
    """Returns True if a table has a type, or the type of an array's elements.

    >>> from runner.spec.words import TypeTable, TypeTables
    >>> types = Types((), None, (), TypeTables((), {}, TypeTable("t", {"time": "time", "bit varying": "bit"})))
    >>> [is_known(name, types) for name in ("TIME(6)", "bit varying(5)[]", "time with a twist", "bit")]
    [True, True, False, False]
    """
    bare = bare_type(ARRAY.sub("", type_name))
    return any(bare in table.classes for table in (types.all_tables() if types else ()))
