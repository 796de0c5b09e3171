"""Suggested mirrors: YAML for review, from the landed changes of a table, and the differences to an existing mirror."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import yaml

from runner.compile.readers import bare_type
from runner.project.mirror import HISTORY, Mirror, MirrorColumn
from runner.project.mirrors import MOST_DIGITS, taken_columns
from runner.spec.words import Types, TypeTable

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
# The digits behind the point of a decimal whose type does not say how many it has.
SCALE = 18
PLAIN = re.compile(r"[^\W\d]\w*")
PLAIN_TEXT = re.compile(r"[^\W\d][\w.]*(?: [\w.]+)*")
# Words that YAML may read as something else than a text.
NOT_TEXTS = ("null", "true", "false", "yes", "no", "on", "off", "y", "n")
DIGITS = re.compile(r"\(\s*(\d+)\s*(?:,\s*(-?\d+)\s*)?\)")


@dataclass(frozen=True)
class Difference:
    """A difference between the data and a mirror. `name` is the name of a column, or `key`. `after` is the value that
    the mirror is to have there, as YAML writes it. `before` is the value that the mirror has for its `column`, or as
    its key; it is empty if a column is missing.
    """

    name: str
    after: str
    column: str = ""
    before: str = ""

    def lines(self) -> list[str]:
        """Returns the lines of a diff that shows this difference."""
        removed = [f"- {self.name}: {self.before}"] if self.before else []
        return [*removed, f"+ {self.name}: {self.after}"]


@dataclass(frozen=True)
class ColumnSeen:
    """A column in the images that have landed. `type` is the newest type that was sent, None if none was. `unfit` is
    the number of values that do not fit each type. `integer_digits` and `fraction_digits` are the most digits that a
    value has before and behind the point, None if not all values are numbers.
    """

    name: str
    type: str | None
    unfit: dict[str, int]
    integer_digits: int | None
    fraction_digits: int | None


@dataclass(frozen=True)
class TableSeen:
    """A table of which changes have landed. `without_key` is the number of changes that do not tell the key. `partial`
    is the number of updates whose image after the change lacks columns. `gone` are columns that the table once had and
    no longer has. If it `has_row_ids`, each change tells the id that the database gives to its row.
    """

    source: str
    names: tuple[str, ...]
    changes: int
    key: tuple[str, ...]
    without_key: int
    partial: int
    columns: tuple[ColumnSeen, ...]
    gone: tuple[str, ...] = ()
    has_row_ids: bool = False

    @property
    def row_id(self) -> str:
        """The column for the id of a row, if it is the table's key; else empty."""
        is_taken = any(column.name.lower() == "rowid" for column in self.columns)
        return ("row_id_of_table" if is_taken else "rowid") if self.has_row_ids and not self.key else ""


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
            if _fits(column, UNSIGNED):
                return UNSIGNED
        elif not column.unfit[tried]:
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
    return next((one for one in tried if _fits(column, one)), None)


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


def _digits(decimal: str) -> tuple[int, int]:
    """Returns the digits of a decimal type of a mirror, and how many of them stand behind the point.

    >>> _digits("decimal(12,2)")
    (12, 2)
    """
    digits, scale = (int(part) for part in re.findall(r"\d+", decimal))
    return digits, scale


def _fits(column: ColumnSeen, decimal: str) -> bool:
    """Returns True if all values of a column fit a decimal type."""
    if column.integer_digits is None or column.fraction_digits is None:
        return False
    digits, scale = _digits(decimal)
    return column.fraction_digits <= scale and column.integer_digits <= digits - scale


def suggested_yaml(table: TableSeen, name: str, types: Types | None) -> str:
    """Returns the file of a mirror, for review."""
    lines = [
        "mirrors:",
        f"  - name: {_scalar(name)}",
        f"    description: {_scalar('.'.join(table.names) + ' of source ' + table.source)}",
        f"    of: {{source: {_scalar(table.source)}, table: {_scalar(_path(table.names))}}}",
        *_key_lines(table),
        "    columns:",
        *([f"      {table.row_id}: {{type: string, sent_as: [meta.rowid]}}"] if table.row_id else []),
        *(f"      {line}" for column in table.columns for line in _column_lines(column, table, types)),
        *([f"    left_out: [{', '.join(map(_scalar, table.gone))}]"] if table.gone else []),
        "    history: false",
    ]
    return "\n".join(lines) + "\n"


def _key_lines(table: TableSeen) -> Iterator[str]:
    if table.key:
        yield f"    key: [{', '.join(_scalar(_own_name(column)) for column in table.key)}]"
        if table.without_key:
            yield f"    # {table.without_key} of {table.changes} changes do not tell the key: the mirror lacks them."
    elif table.row_id:
        yield f"    key: [{table.row_id}]  # no change tells a key, but each the id of its row"
    else:
        yield "    # No change tells a key, and the mirror has no rows. If the table has one, name it: key: [id]. If it"
        yield "    # has none, count has each row as often as it was inserted and not deleted; whole_row takes rows of"
        yield "    # the same values for one; append makes a row of each insert and update, and removes none."
        yield "    without_key: reject"
    if table.partial:
        yield f"    # {table.partial} of {table.changes} changes tell only some columns; others are null until told."


def _column_lines(column: ColumnSeen, table: TableSeen, types: Types | None) -> Iterator[str]:
    kind, comment = column_type(column, types), _type_comment(column)
    first = next(one.name for one in table.columns if one.name.lower() == column.name.lower())
    if column.name != first:
        yield f"# {_scalar(column.name)} differs from {_scalar(first)} only in the case of letters: they are one column"
        return
    settings = {"type": _scalar(kind)}
    name = _own_name(column.name)
    if name != column.name:
        settings["sent_as"] = f"[{_scalar(column.name)}]"
    if [column.name] == list(table.key):
        settings["data_tests"] = "[not_null, unique]"
    elif column.name in table.key:
        settings["data_tests"] = "[not_null]"
    told = ", ".join(f"{key}: {value}" for key, value in settings.items())
    yield f"{_scalar(name)}: {_scalar(kind) if len(settings) == 1 else f'{{{told}}}'}{comment}"


def _own_name(column: str) -> str:
    """Returns the name that a column has in a mirror, which has columns of its own.

    >>> _own_name("_seq"), _own_name("amount")
    ('_seq_of_table', 'amount')
    """
    return f"{column}_of_table" if column.lower() in taken_columns(with_history=False) else column


def _type_comment(column: ColumnSeen) -> str:
    """Returns a YAML comment with the type that a column has in its database, to follow the line of the column."""
    return f"  # {_one_line(column.type)}" if column.type else ""


def differences(table: TableSeen, mirror: Mirror, types: Types | None) -> Iterator[Difference]:
    """Returns the columns, types and key that the data has and a mirror of the table lacks."""
    known = {sent.lower(): column for column in mirror.columns for sent in (column.name, *column.sent_as)}
    left_out = {name.lower() for name in mirror.left_out}
    for column in table.columns:
        kind, own = column_type(column, types), known.get(column.name.lower())
        lower = column.name.lower()
        if own is None and lower not in left_out:
            known[lower] = MirrorColumn(_own_name(column.name), kind)
            yield Difference(*next(_column_lines(column, table, types)).split(": ", 1))
        elif own is not None and not _takes(own.type, kind, column):
            yield Difference(_scalar(own.name), f"{_scalar(kind)}{_type_comment(column)}", own.name, _scalar(own.type))
    if table.key and mirror.key and {name.lower() for name in table.key} != {name.lower() for name in mirror.key}:
        own_key, key = (f"[{', '.join(map(_scalar, names))}]" for names in (mirror.key, table.key))
        yield Difference("key", key, "", own_key)


def _takes(own: str, suggested: str, column: ColumnSeen) -> bool:
    """Returns True if a column's type in a mirror takes all values that the column can have, as far as known."""
    if own in ("string", suggested):
        return True
    if own in TRIED:
        return not column.unfit[own]
    if own.startswith("decimal"):
        digits, scale = _digits(own)
        wanted = _digits(suggested) if suggested.startswith("decimal") else (0, 0)
        is_wider = digits - scale >= wanted[0] - wanted[1] and scale >= wanted[1]
        return _fits(column, own) and (is_wider or wanted[0] == MOST_DIGITS)
    # For the smaller number types, values that do not fit are not counted.
    return own in ("tinyint", "smallint", "int", "float") and suggested in ("bigint", "double")


def with_differences(text: str, mirror: str, found: Sequence[Difference]) -> str:
    """Returns the text of a property file with the differences written into a mirror."""
    for start, end, new in sorted(_edits(text, _mapping_of(text, mirror), found), reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _mapping_of(text: str, mirror: str) -> dict[str, Any]:
    """Returns the keys of a mirror in the text of a property file, and the nodes of their values."""
    for entry in _values(yaml.compose(text))["mirrors"].value:
        if (values := _values(entry))["name"].value == mirror:
            return values
    raise AssertionError(mirror)


def _values(mapping: Any) -> dict[str, Any]:
    return {key.value: value for key, value in mapping.value}


def _edits(text: str, mirror: Mapping[str, Any], found: Sequence[Difference]) -> Iterator[tuple[int, int, str]]:
    """Returns the edits of a text: start, end, and the new text between them."""
    columns = mirror["columns"]
    for one in found:
        if one.before:
            node = _values(columns)[one.column] if one.column else mirror["key"]
            node = _values(node)["type"] if isinstance(node, yaml.MappingNode) else node
            end = node.end_mark.index
            if not text[end : _line_end(text, end)].split("#")[0].strip():
                yield node.start_mark.index, _line_end(text, end), one.after
            else:
                yield node.start_mark.index, end, _without_comment(one)
    added = [one for one in found if not one.before]
    end = _last_leaf(columns).end_mark.index
    if columns.flow_style:
        end = columns.value[-1][1].end_mark.index
        yield end, end, "".join(f", {one.name}: {_without_comment(one)}" for one in added)
    else:
        indent, end = " " * columns.value[0][0].start_mark.column, _line_end(text, end)
        yield end, end, "".join(f"\n{indent}{one.name}: {one.after}" for one in added)


def _without_comment(one: Difference) -> str:
    return one.after.split("  # ")[0]


def _line_end(text: str, start: int) -> int:
    return len(text) if (end := text.find("\n", start)) < 0 else end


def _last_leaf(node: Any) -> Any:
    """Returns the last value in the text of a block. The end of the block itself is where the next block begins."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return node


def _path(names: Sequence[str]) -> str:
    """Returns the name of a table as a path: parts with other characters than letters, digits and _ are in quotes."""
    return ".".join(name if PLAIN.fullmatch(name) else f'"{name}"' for name in names)


def _scalar(text: str) -> str:
    """Returns a text in YAML, in quotes where it needs them.

    >>> _scalar("paid at"), _scalar("no"), _scalar("a\\u2028b")
    ('paid at', '"no"', '"a\\\\Lb"')
    """
    if PLAIN_TEXT.fullmatch(text) and text.lower() not in NOT_TEXTS:
        return text
    return yaml.dump(text, default_style='"', allow_unicode=True, width=math.inf).rstrip("\n")


def _one_line(text: str | None) -> str:
    """Returns a text that a comment can hold: one line of printable characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text or "").split())


def _plain_name(name: str) -> str:
    """Returns a name with only the characters that names of models have.

    >>> _plain_name("v1.orders"), _plain_name("数据"), _plain_name("1st")
    ('v1_orders', 'table', 't_1st')
    """
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "table"
    return f"t_{plain}" if plain[0].isdigit() else plain


def free_name(table: TableSeen, taken: Collection[str]) -> str:
    """Returns a name for a mirror of a table: the table's own name, in letters that names of models have, or with its
    source before it. Neither the mirror's name nor that of its history is in `taken`, which is in lower case.
    """
    own, *others = (_plain_name(name) for name in reversed(table.names))
    whole = "_".join([table.source, *reversed(others), own])
    names = chain((own, f"{table.source}_{own}", whole), (f"{whole}_{number}" for number in count(2)))
    return next(name for name in names if not {name.lower(), f"{name.lower()}{HISTORY}"} & set(taken))
