"""What has landed of a table -> a mirror of it, as YAML for review, and what a mirror that is there lacks."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from runner.compile.readers import bare_type
from runner.project.mirror import Mirror
from runner.project.mirrors import MOST_DIGITS
from runner.spec.words import Types

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
# The types of which it is counted how many values do not fit.
TRIED = ("bigint", "double", "boolean", "date", "timestamp_ntz", "timestamp", "binary")
PLAIN = re.compile(r"[^\W\d]\w*")
PLAIN_TEXT = re.compile(r"[^\W\d][\w.]*(?: [\w.]+)*")
# What YAML may take for something else than a text.
NOT_TEXTS = ("null", "true", "false", "yes", "no", "on", "off", "y", "n")
DIGITS = re.compile(r"\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")


@dataclass(frozen=True)
class ColumnSeen:
    """A column in the images that have landed. `type` is the newest one that was told, None if none was. `unfit` is the
    number of values that do not fit each type; of numbers there is the most that stands before and behind the point,
    or None if not all values are numbers.
    """

    name: str
    type: str | None
    unfit: dict[str, int]
    integer_digits: int | None
    fraction_digits: int | None


@dataclass(frozen=True)
class TableSeen:
    """A table of which changes have landed. `without_key` is the number of changes that do not tell the key, `partial`
    that of updates whose image after the change lacks columns.
    """

    source: str
    names: tuple[str, ...]
    changes: int
    key: tuple[str, ...]
    without_key: int
    partial: int
    columns: tuple[ColumnSeen, ...]


def column_type(column: ColumnSeen, types: Types | None) -> str:
    """The type of a column in a mirror: what its type in the database becomes, if all values fit, and else string.

    >>> column_type(ColumnSeen("a", None, {}, 3, 0), None)
    'string'
    """
    tables = types.all_tables() if types and column.type else []
    bare = bare_type(column.type or "")
    class_name = next((table.classes[bare] for table in tables if bare in table.classes), "")
    for tried in TYPES_OF_CLASSES.get(class_name, ()):
        if tried == "decimal":
            if found := _decimal(column):
                return found
        elif not column.unfit[tried]:
            return tried
    return "string"


def _decimal(column: ColumnSeen) -> str | None:
    """The decimal type that all values fit, with the digits of the type in the database if they are enough."""
    if column.integer_digits is None or column.fraction_digits is None:
        return None
    declared = DIGITS.search(column.type or "")
    digits, scale = (int(part or 0) for part in declared.groups()) if declared else (0, 0)
    scale = max(scale, column.fraction_digits)
    digits = max(digits, column.integer_digits + scale, 1)
    return f"decimal({digits},{scale})" if digits <= MOST_DIGITS else None


def suggested_yaml(table: TableSeen, name: str, types: Types | None) -> str:
    """The file of a mirror, for review."""
    lines = [
        "mirrors:",
        f"  - name: {_scalar(name)}",
        f"    description: {_scalar('.'.join(table.names) + ' of source ' + table.source)}",
        f"    of: {{source: {_scalar(table.source)}, table: {_scalar(_path(table.names))}}}",
        *_key_lines(table),
        "    columns:",
        *(f"      {line}" for column in table.columns for line in _column_lines(column, table, types)),
        "    history: false",
    ]
    return "\n".join(lines) + "\n"


def _key_lines(table: TableSeen) -> Iterator[str]:
    if table.key:
        yield f"    key: [{', '.join(_scalar(column) for column in table.key)}]"
        if table.without_key:
            yield f"    # {table.without_key} of {table.changes} changes do not tell the key: a mirror is without them."
    else:
        yield "    # No change tells a key. If the table has one, name it: key: [id]. If it has none, whole_row takes"
        yield "    # rows with the same values for one; append makes a row of each insert and update, and removes none."
        yield "    without_key: whole_row"
    if table.partial:
        yield f"    # {table.partial} of {table.changes} changes tell only some columns; others are null until told."


def _column_lines(column: ColumnSeen, table: TableSeen, types: Types | None) -> Iterator[str]:
    kind, comment = column_type(column, types), f"  # {_one_line(column.type)}" if column.type else ""
    if [column.name] == list(table.key):
        yield f"{_scalar(column.name)}: {{type: {_scalar(kind)}, data_tests: [not_null, unique]}}{comment}"
    elif column.name in table.key:
        yield f"{_scalar(column.name)}: {{type: {_scalar(kind)}, data_tests: [not_null]}}{comment}"
    else:
        yield f"{_scalar(column.name)}: {_scalar(kind)}{comment}"


def differences(table: TableSeen, mirror: Mirror, types: Types | None) -> Iterator[str]:
    """What the data has and a mirror of the table does not, as lines of a diff."""
    known = {sent.lower(): column for column in mirror.columns for sent in (column.name, *column.sent_as)}
    left_out = {name.lower() for name in mirror.left_out}
    for column in table.columns:
        kind, own = column_type(column, types), known.get(column.name.lower())
        comment = f"  # {_one_line(column.type)}" if column.type else ""
        if own is None and column.name.lower() not in left_out:
            yield f"+ {_scalar(column.name)}: {_scalar(kind)}{comment}"
        elif own is not None and not _takes(own.type, kind, column):
            yield f"- {_scalar(own.name)}: {_scalar(own.type)}"
            yield f"+ {_scalar(own.name)}: {_scalar(kind)}{comment}"
    if table.key and mirror.key and {name.lower() for name in table.key} != {name.lower() for name in mirror.key}:
        yield f"- key: [{', '.join(_scalar(column) for column in mirror.key)}]"
        yield f"+ key: [{', '.join(_scalar(column) for column in table.key)}]"


def _takes(own: str, suggested: str, column: ColumnSeen) -> bool:
    """Whether all values of a column fit the type that a mirror has for it."""
    if own in ("string", suggested):
        return True
    if own in TRIED:
        return not column.unfit[own]
    digits = DIGITS.search(own)
    if digits and column.integer_digits is not None and column.fraction_digits is not None:
        scale = int(digits[2])
        return column.fraction_digits <= scale and column.integer_digits <= int(digits[1]) - scale
    # The smaller numbers: what they take is not counted.
    return own in ("tinyint", "smallint", "int", "float") and suggested in ("bigint", "double")


def _path(names: Sequence[str]) -> str:
    """The name of a table as paths write it: parts with other characters than letters, digits and _ are in quotes."""
    return ".".join(name if PLAIN.fullmatch(name) else f'"{name}"' for name in names)


def _scalar(text: str) -> str:
    """A text in YAML, in quotes where it needs them."""
    plain = PLAIN_TEXT.fullmatch(text) and text.lower() not in NOT_TEXTS
    return text if plain else json.dumps(text, ensure_ascii=False)


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def _plain_name(name: str) -> str:
    """
    >>> _plain_name("v1.orders"), _plain_name("数据"), _plain_name("1st")
    ('v1_orders', 'table', 't_1st')
    """
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "table"
    return f"t_{plain}" if plain[0].isdigit() else plain


def free_name(table: TableSeen, taken: Collection[str]) -> str:
    """A name for a mirror of a table: its own, in letters that names of models have, or with its source before it."""
    own, *others = (_plain_name(name) for name in reversed(table.names))
    whole = "_".join([table.source, *reversed(others), own])
    return next((name for name in (own, f"{table.source}_{own}") if name not in taken), whole)
