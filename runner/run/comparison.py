"""How a mirror is compared with its table: which columns, in which way, in which ranges of keys."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from runner.project.inputs import SHOWN
from runner.project.masks import mask_in
from runner.project.mirror import META, Mirror, MirrorColumn

# Type in SQL -> the kind of its values.
KINDS = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "decimal"), "number"),
    **dict.fromkeys(("float", "double", "boolean"), ""),
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz", "time"), "time"),
    **dict.fromkeys(("string", "varchar", "char"), "text"),
    "binary": "bytes",
}
# Two kinds, in the order of the alphabet -> the kind as which values of both are compared, where that is not the kind
# of the one that is no text.
BOTH = {
    ("double", "float"): "float",
    ("double", "number"): "double",
    ("float", "number"): "float",
    ("boolean", "number"): "number",
}
# A kind, and the kind as which its values are compared -> the ending of the macro `compared_<...>`, where that is not
# the latter.
MACROS = {("boolean", "number"): "flag", ("bytes", "bytes"): "hex"}
# A type in SQL -> the ending of the macro `told_<...>` that makes the canonical text of its values.
TOLD = {"timestamp": "instant", "timestamp_ntz": "clock", "date": "day", "binary": "base64"}


@dataclass(frozen=True)
class ComparedColumn:
    """A column of a mirror and the column of its table with the same values. `here` and `there` are the endings of the
    macros `compared_<...>` that make their values comparable, `told_here` and `told_there` those of the macros
    `told_<...>` that make their values the texts with which a change tells them.
    """

    name: str
    other: str
    type: str
    here: str
    there: str
    told_here: str
    told_there: str


@dataclass(frozen=True)
class Range:
    """Keys from `start` up to `end`, which is not among them; either may be open."""

    start: int | None = None
    end: int | None = None

    @property
    def kind(self) -> str:
        """The ending of the macros `in_range_<kind>`."""
        ends = (self.start is not None, self.end is not None)
        return {(False, False): "whole", (False, True): "first", (True, True): "middle", (True, False): "last"}[ends]


@dataclass(frozen=True)
class Comparison:
    """A query of the rows of a mirror and of its table, printed by the macro `compared`. `rows` is the name of the
    table in SQL; `key` are the columns that tell rows from each other. `changed` is the column of the table with the
    time at which a row was last changed, empty if none is named; `until` is the instant up to which the mirror knows
    changes. If it `tells_rows`, it also has the rows of the table, and the keys of the mirror, as changes tell them.
    """

    mirror: Mirror
    rows: str
    key: tuple[ComparedColumn, ...]
    columns: tuple[ComparedColumn, ...]
    ranges: tuple[Range, ...] = (Range(),)
    changed: str = ""
    until: str | None = None
    shows_values: bool = False
    tells_rows: bool = False

    @property
    def told(self) -> str:
        """The ending of the macros `row_told_<...>`."""
        return "whole" if self.tells_rows else "never"

    @property
    def copies(self) -> str:
        """The ending of the macro `copies_<...>`: which of equal rows of the table count, if it has no key."""
        return "one" if not self.mirror.key and self.mirror.without_key == "whole_row" else "all"

    @property
    def shows(self) -> str:
        """The ending of the macro `values_<...>`."""
        return "shown" if self.shows_values else "hidden"


@dataclass(frozen=True)
class Columns:
    """The columns that are compared. `missing` are those of the mirror that the table lacks; `unlike` are those whose
    values cannot be compared, each with the types of both or with its mask; `unmirrored` are those of the table that
    the mirror lacks.
    """

    compared: tuple[ComparedColumn, ...]
    missing: tuple[str, ...]
    unlike: tuple[str, ...]
    unmirrored: tuple[str, ...]

    @property
    def left_out(self) -> list[str]:
        """The names of the mirror's columns that are not compared."""
        return [*self.missing, *(one.partition(" ")[0] for one in self.unlike)]


def columns_of(mirror: Mirror, there: Mapping[str, str], documents: Collection[str]) -> Columns:
    """Returns the columns of a mirror and of its table, whose columns are `there`, with their types in SQL."""
    names = {name.lower(): name for name in there}
    compared, missing, unlike, used = [], [], [], set()
    for column in mirror.columns:
        other = next((names[one] for one in _names(column) if one in names), None)
        if other is None:
            missing.append(column.name)
            continue
        used.add(other)
        kind, mask = compared_as(column.type, there[other], other in documents), mask_in(mirror, column.name)
        if kind is None or mask != SHOWN:
            unlike.append(f"{column.name} ({column.type}, {there[other] if mask == SHOWN else f'masked: {mask}'})")
            continue
        here, beyond = (macro_of(kind_of(one), kind) for one in (column.type, there[other]))
        told = (told_as(column.type, column.type), told_as(column.type, there[other]))
        compared.append(ComparedColumn(column.name, other, column.type, here, beyond, *told))
    left_out = {name.lower() for name in mirror.left_out}
    unmirrored = (name for name in there if name not in used and name.lower() not in left_out)
    return Columns(tuple(compared), tuple(missing), tuple(unlike), tuple(unmirrored))


def _names(column: MirrorColumn) -> list[str]:
    """Returns the names in lower case that a column of the table may have."""
    return [one.lower() for one in (column.name, *column.sent_as) if not one.startswith(META)]


def kind_of(type_: str) -> str | None:
    """Returns the kind of the values of a type in SQL; None for lists, maps and the like.

    >>> kind_of("decimal(10,2)"), kind_of("float"), kind_of("array<int>")
    ('number', 'float', None)
    """
    name = type_.partition("(")[0]
    return KINDS[name] or name if name in KINDS else None


def compared_as(here: str, there: str, is_document: bool) -> str | None:
    """Returns the kind as which values of two types in SQL are compared; None if they cannot be compared.

    >>> compared_as("decimal(10,2)", "string", False), compared_as("string", "string", True)
    ('number', 'document')
    >>> compared_as("double", "float", False), compared_as("bigint", "date", False)
    ('float', None)
    """
    one, two = kind_of(here), kind_of(there)
    if one is None or two is None:
        return None
    if one == two == "text":
        return "document" if is_document else "text"
    if "text" in (one, two):
        return two if one == "text" else one
    return one if one == two else BOTH.get((min(one, two), max(one, two)))


def macro_of(own: str | None, kind: str) -> str:
    """Returns the ending of the macro that makes a value of a kind comparable with values of another."""
    return MACROS.get((str(own), kind), kind)


def told_as(here: str, there: str) -> str:
    """Returns the ending of the macro that makes of a value of the type `there` the text with which a change tells it
    to a column of the type `here`.

    >>> told_as("decimal(10,2)", "boolean"), told_as("string", "timestamp"), told_as("binary", "string")
    ('flag', 'instant', 'bytes')
    """
    kind, other = kind_of(here), kind_of(there)
    if kind == "text":
        return TOLD.get(there, "text")
    if kind == "bytes":
        return "base64" if other == "bytes" else "bytes"
    if kind == "number" and other == "boolean":
        return "flag"
    return TOLD.get(here, str(kind))


def ranges_of(bounds: Iterable[int]) -> list[Range]:
    """Returns the ranges between values of a key, which together hold all keys.

    >>> [(one.start, one.end) for one in ranges_of([3, 9])], [one.kind for one in ranges_of([])]
    ([(None, 3), (3, 9), (9, None)], ['whole'])
    """
    return [Range(start, end) for start, end in pairwise([None, *sorted(set(bounds)), None])]
