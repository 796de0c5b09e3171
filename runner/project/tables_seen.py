"""The tables of a source as far as their changes have landed: their keys, their columns, and the types of these."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from runner.errors import RunnerError, Where
from runner.files import Damaged, mapping, read_text
from runner.project.inputs import Source
from runner.spec.vocabulary import bare_type
from runner.spec.words import Types, TypeTable
from runner.sql_text import digits_of

if TYPE_CHECKING:
    from runner.project.nodes import Project

# Class of a column's type in its database -> the types to try, the first that takes all values wins. Any takes texts.
TYPES_OF_CLASSES = {
    "integer": ("bigint", "decimal"),
    "bit": ("bigint",),
    "decimal": ("decimal",),
    "float": ("double",),
    "double": ("double",),
    "boolean": ("boolean",),
    "date": ("date",),
    "datetime": ("timestamp_ntz",),
    "timestamp": ("timestamp", "timestamp_ntz"),
    "zoned": ("timestamp",),
    "binary": ("binary",),
    "raw": ("binary",),
}
# The types for which the values that do not fit are counted.
TRIED = ("bigint", "double", "boolean", "date", "timestamp_ntz", "timestamp", "binary")
# The digits of decimal types that are written without brackets, by name; for other names they are unknown.
DIGITS_OF_NAMES = {
    "integer": (38, 0),
    "int": (38, 0),
    "smallint": (38, 0),
    "money": (19, 4),
    "smallmoney": (10, 4),
}
# Types whose number in brackets counts bits, not digits.
OF_BITS = ("float", "real", "double precision")
# A bigint cannot hold 64 bits without a sign: such a number has up to 20 digits.
UNSIGNED = "decimal(20,0)"
LARGE_INTEGERS = ("bigint", "int8", "uint8")
MOST_DIGITS = 38
# The digits behind the point of a decimal whose type does not say how many it has.
SCALE = 18
DIGITS = re.compile(r"\(\s*(\d+)\s*(?:,\s*(-?\d+)\s*)?\)")
PLAIN = re.compile(r"[^\W\d]\w*|\*")


@dataclass(frozen=True)
class ColumnSeen:
    """A column in the images that have landed. `type` is the newest type that was sent, None if none was; `earlier` are
    other types that were sent before it, oldest first. `unfit` is the number of values that do not fit a type, by type,
    where there are some. `integer_digits` and `fraction_digits` are the most digits that a value has before and behind
    the point, None if not all values are numbers. If it `is_added`, the table was seen without it before. If it
    `is_gone`, the table no longer has it; if it `is_renamed` too, the table has it under another name.
    """

    name: str
    type: str | None = None
    earlier: tuple[str, ...] = ()
    unfit: Mapping[str, int] = field(default_factory=dict)
    integer_digits: int | None = 0
    fraction_digits: int | None = 0
    is_added: bool = False
    is_gone: bool = False
    is_renamed: bool = False

    def sent_as(self, kind: str | None) -> ColumnSeen:
        """Returns the column after it was sent with a type, or without one."""
        if kind is None or kind == self.type:
            return replace(self, is_gone=False, is_renamed=False)
        earlier = dict.fromkeys((*self.earlier, *((self.type,) if self.type else ())))
        return replace(
            self, type=kind, earlier=tuple(one for one in earlier if one != kind), is_gone=False, is_renamed=False
        )


def ends_with(names: Sequence[str], last: Sequence[str]) -> bool:
    """Returns True if the parts of a name end with these."""
    return tuple(names[max(0, len(names) - len(last)) :]) == tuple(last)


@dataclass(frozen=True)
class TableSeen:
    """A table of which changes have landed. `without_key` is the number of changes that do not tell the key. `partial`
    is the number of updates whose image after the change lacks columns. If it `has_row_ids`, each change tells the id
    that the database gives to its row. `batch` is the newest batch with changes of the table. If it `is_new`, its
    source was seen without it before.
    """

    source: str
    names: tuple[str, ...]
    changes: int = 0
    key: tuple[str, ...] = ()
    without_key: int = 0
    partial: int = 0
    columns: tuple[ColumnSeen, ...] = ()
    has_row_ids: bool = False
    batch: int = -1
    is_new: bool = False

    @property
    def there(self) -> tuple[ColumnSeen, ...]:
        """The columns that the table has now."""
        return tuple(column for column in self.columns if not column.is_gone)

    @property
    def row_id(self) -> str:
        """The column for the id of a row, if it is the table's key; else empty."""
        is_taken = any(column.name.lower() == "rowid" for column in self.columns)
        return ("row_id_of_table" if is_taken else "rowid") if self.has_row_ids and not self.key else ""

    @property
    def path(self) -> str:
        """The name of the table as a path: parts with other characters than letters, digits and _ are in quotes."""
        return ".".join(map(path_part, self.names))

    def after(self, row: Mapping[str, Any]) -> TableSeen:
        """Returns the table after newer changes: a row of the macro `tables_landed`."""
        columns, key = {one.name: one for one in self.columns}, self.key
        for shape in row["shapes"]:
            sent = dict(zip(shape["columns"], shape["types"]))
            told = {name: self._column(name, columns).sent_as(kind) for name, kind in sent.items()}
            others = {name: one for name, one in columns.items() if name not in sent}
            if shape["is_whole"]:
                # The newest row that is told whole has the columns that the table has now, in their order.
                columns = {**told, **{name: replace(one, is_gone=True) for name, one in others.items()}}
            else:
                columns = {**columns, **told}
            key = tuple(shape["key"] or key)
        return replace(
            self,
            changes=self.changes + row["changes"],
            key=key,
            without_key=self.without_key + row["without_key"],
            partial=self.partial + row["partial"],
            columns=tuple(columns.values()),
            has_row_ids=self.has_row_ids and not row["without_row_id"],
            batch=row["batch"],
        )

    def _column(self, name: str, columns: Mapping[str, ColumnSeen]) -> ColumnSeen:
        return columns.get(name) or ColumnSeen(name, is_added=bool(self.columns))

    def ends_with(self, names: tuple[str, ...]) -> bool:
        """Returns True if these are the last parts of the table's name."""
        return ends_with(self.names, names)

    def is_named(self, names: tuple[str, ...]) -> bool:
        """Returns True if the table has a name with these last parts, whatever the case of letters."""
        lower = replace(self, names=tuple(part.lower() for part in self.names))
        return lower.ends_with(tuple(part.lower() for part in names))

    def renamed(self, old: str, new: str) -> TableSeen:
        """Returns the table after a statement gave a column another name."""
        columns, known = list[ColumnSeen](), {column.name.lower() for column in self.columns}
        for column in self.columns:
            if column.name.lower() == old.lower():
                if new.lower() not in known:
                    columns.append(replace(column, name=new, is_added=True))
                column = replace(column, is_gone=True, is_renamed=True)
            columns.append(column)
        key = tuple(new if one.lower() == old.lower() else one for one in self.key)
        return replace(self, columns=tuple(columns), key=key)

    def with_values(self, rows: Mapping[str, Mapping[str, Any]]) -> TableSeen:
        """Returns the table with what was found in the values of columns: column -> a row of the macro
        `values_landed`.
        """
        return replace(self, columns=tuple(_with_values(one, rows.get(one.name)) for one in self.columns))


def _with_values(column: ColumnSeen, row: Mapping[str, Any] | None) -> ColumnSeen:
    if row is None:
        return column
    digits = (None, None) if row["no_numbers"] else (row["integer_digits"] or 0, row["fraction_digits"] or 0)
    unfit = {kind: row[f"unfit_{kind}"] for kind in TRIED if row[f"unfit_{kind}"]}
    return replace(column, unfit=unfit, integer_digits=digits[0], fraction_digits=digits[1])


@dataclass(frozen=True)
class TablesSeen:
    """The tables of a source. They are those of the batches up to `batch` of the changelog's `table`, -1 and None if
    nothing was read yet. `statements` is the newest batch with statements that change tables, or -1.
    """

    source: str
    table: str | None = None
    batch: int = -1
    statements: int = -1
    tables: tuple[TableSeen, ...] = ()

    def text(self) -> str:
        """Returns the record as JSON."""
        return orjson.dumps(self).decode()

    @classmethod
    def read(cls, text: str, path: str) -> TablesSeen:
        """Returns the record that a run has written; raises Damaged."""
        record = mapping(text, path, ("source", "tables"))
        try:
            return cls(**{**record, "tables": tuple(_table(one) for one in record["tables"])})
        except (TypeError, KeyError):
            raise Damaged(path, "no record of tables") from None

    def renamed(self, columns: Iterable[tuple[tuple[str, ...], str, str]]) -> TablesSeen:
        """Returns the tables after columns got other names: the table's name, the old name and the new one of each."""
        tables = self.tables
        for names, old, new in columns:
            tables = tuple(one.renamed(old, new) if one.is_named(names) else one for one in tables)
        return replace(self, tables=tables)

    def of_source(self, name: str) -> TablesSeen:
        """Returns the same tables of a source that has this name now."""
        return replace(self, source=name, tables=tuple(replace(one, source=name) for one in self.tables))

    def told(self) -> list[object]:
        """Returns what mirrors are made of: the tables without the numbers of their changes."""
        return [replace(one, changes=0, without_key=0, partial=0, batch=-1) for one in self.tables]

    def named(self, name: tuple[str, ...]) -> list[TableSeen]:
        """Returns the tables whose names end with these parts."""
        return [table for table in self.tables if table.ends_with(name)]


def _table(record: Mapping[str, Any]) -> TableSeen:
    columns = tuple(ColumnSeen(**{**one, "earlier": tuple(one["earlier"])}) for one in record["columns"])
    return TableSeen(**{**record, "names": tuple(record["names"]), "key": tuple(record["key"]), "columns": columns})


def path_of_seen(project: Project, name: str) -> Path:
    """Returns the file of the tables seen of a source of this name, for commands without Spark."""
    return project.beside_tables("tables_seen") / f"{name}.json"


def tables_seen(project: Project, source: Source) -> TablesSeen:
    """Returns the tables seen of a source, as far as the last run that landed it knows; raises `tables-seen` for a
    record that is damaged. The record may still be that of a name which the source had before.
    """
    paths = [path_of_seen(project, name) for name in (source.name, *source.renamed_from)]
    path = next((one for one in paths if one.exists()), paths[0])
    try:
        return (TablesSeen.read(read_text(path), str(path)) if path.exists() else TablesSeen("")).of_source(source.name)
    except Damaged:
        hint = "remove it: the next run looks again at all that has landed"
        raise RunnerError("tables-seen", "the record of the tables seen is damaged", Where(path), hint) from None


# --- types


def column_type(column: ColumnSeen, types: Types | None) -> str:
    """Returns the type of a column in a mirror: the type that its type in the database becomes, if all values fit, and
    else string.

    >>> column_type(ColumnSeen("a", None, {}, 3, 0), None)
    'string'
    """
    table = _table_of(column, types)
    for tried in TYPES_OF_CLASSES.get(table.classes[_bare(column)] if table else "", ()):
        if tried == "decimal":
            if found := _decimal(column, table):
                return found
        elif tried == "bigint" and _is_unsigned(column):
            if fits(column, UNSIGNED):
                return UNSIGNED
        elif not column.unfit.get(tried):
            return tried
    return "string"


def _bare(column: ColumnSeen) -> str:
    return bare_type(column.type or "")


def _table_of(column: ColumnSeen, types: Types | None) -> TypeTable | None:
    """Returns the table of types that has a column's type."""
    tables = types.all_tables() if types and column.type else []
    return next((table for table in tables if _bare(column) in table.classes), None)


def _is_unsigned(column: ColumnSeen) -> bool:
    """Returns True if a column has whole numbers of 64 bits without a sign."""
    words = (column.type or "").lower().split()
    return _bare(column) in LARGE_INTEGERS and ("unsigned" in words or _bare(column) == "uint8")


def _decimal(column: ColumnSeen, table: TypeTable | None) -> str | None:
    """Returns the decimal type with the digits of the type in the database. If the type does not say how many digits
    stand before the point, it has as many as there can be. The digits of the values do not count: the next value may
    have more.
    """
    declared = _declared_digits(column, table)
    digits, scale = declared or (MOST_DIGITS, SCALE)
    seen = column.fraction_digits or 0
    wider = [(MOST_DIGITS, scale), (MOST_DIGITS, max(scale, seen)), (MOST_DIGITS, seen)]
    tried = (f"decimal({max(p, s)},{s})" for p, s in [(digits, scale), *wider] if max(p, s) <= MOST_DIGITS)
    return next((one for one in tried if fits(column, one)), None)


def _declared_digits(column: ColumnSeen, table: TypeTable | None) -> tuple[int, int] | None:
    """Returns the digits of a type in the database, and how many of them stand behind the point; None if unknown."""
    bare = _bare(column)
    if bare in OF_BITS:
        return None
    if not (found := DIGITS.search(column.type or "")):
        # A whole number that is too large for 64 bits gets as many digits as there can be.
        return (MOST_DIGITS, 0) if table and table.classes[bare] == "integer" else DIGITS_OF_NAMES.get(bare)
    first, second = int(found[1]), int(found[2] or 0)
    if table and "unscaled" in table.readers.get(bare, ()) and not found[2]:
        return MOST_DIGITS, first
    return (first, second) if second >= 0 else (first - second, 0)


def fits(column: ColumnSeen, decimal: str) -> bool:
    """Returns True if all values of a column fit a decimal type."""
    if column.integer_digits is None or column.fraction_digits is None:
        return False
    digits, scale = digits_of(decimal)
    return column.fraction_digits <= scale and column.integer_digits <= digits - scale


# The digits of whole numbers, which are decimals without a point.
WHOLE = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}


def wider_type(one: str, other: str) -> str:
    """Returns the narrowest type of a mirror that takes all values of both types, without loss of digits.

    >>> wider_type("decimal(10,2)", "decimal(8,4)"), wider_type("int", "bigint"), wider_type("date", "double")
    ('decimal(12,4)', 'bigint', 'string')
    """
    kinds = {one, other}
    if len(kinds) == 1:
        return one
    if kinds <= WHOLE.keys():
        return max(kinds, key=lambda kind: WHOLE[kind])
    if kinds == {"float", "double"}:
        return "double"
    if kinds == {"date", "timestamp_ntz"}:
        return "timestamp_ntz"
    if all(kind in WHOLE or kind.startswith("decimal") for kind in kinds):
        parts = [(WHOLE[kind], 0) if kind in WHOLE else digits_of(kind) for kind in kinds]
        scale = max(scale for _, scale in parts)
        digits = max(digits - scale for digits, scale in parts) + scale
        return f"decimal({digits},{scale})" if digits <= MOST_DIGITS else "string"
    return "string"


# --- names


def path_part(name: str) -> str:
    """Returns a part of a path, in quotes if it has other characters than letters, digits, _ and *.

    >>> path_part("orders"), path_part("v1.orders"), path_part("*")
    ('orders', '"v1.orders"', '*')
    """
    return name if PLAIN.fullmatch(name) else f'"{name}"'


def plain_name(name: str) -> str:
    """Returns a name with only the characters that names of models have.

    >>> plain_name("v1.orders"), plain_name("数据"), plain_name("1st")
    ('v1_orders', 'table', 't_1st')
    """
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "table"
    return f"t_{plain}" if plain[0].isdigit() else plain


def with_new(seen: TablesSeen, rows: Iterable[Mapping[str, Any]], table: str | None, batch: int) -> TablesSeen:
    """Returns the tables seen after newer batches: the rows of the macro `tables_landed`, up to a batch of a table."""
    tables, statements = {one.names: one for one in seen.tables}, seen.statements
    for row in rows:
        if names := tuple(row["names"]):
            new = TableSeen(seen.source, names, has_row_ids=True, is_new=bool(seen.tables))
            tables[names] = tables.get(names, new).after(row)
        else:
            statements = row["batch"]
    return TablesSeen(seen.source, table, batch, statements, tuple(tables[names] for names in sorted(tables)))
