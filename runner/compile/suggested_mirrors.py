"""Suggested mirrors: YAML for review, from the landed changes of a table, and the differences to an existing mirror."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import yaml

from runner.project.many_mirrors import name_by
from runner.project.mirror import HISTORY, META, Mirror, MirrorColumn
from runner.project.mirrors import own_name
from runner.project.tables_seen import (
    MOST_DIGITS,
    TRIED,
    ColumnSeen,
    TableSeen,
    column_type,
    fits,
    path_part,
    plain_name,
)
from runner.spec.words import Types
from runner.sql_text import digits_of
from runner.yaml_text import last_leaf

PLAIN_TEXT = re.compile(r"[^\W\d][\w.]*(?: [\w.]+)*")
# Words that YAML may read as something else than a text.
NOT_TEXTS = ("null", "true", "false", "yes", "no", "on", "off", "y", "n")


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


def suggested_yaml(table: TableSeen, name: str, types: Types | None) -> str:
    """Returns the file of a mirror, for review."""
    gone = [column.name for column in table.columns if column.is_gone]
    lines = [
        "mirrors:",
        f"  - name: {_scalar(name)}",
        f"    description: {_scalar('.'.join(table.names) + ' of source ' + table.source)}",
        f"    of: {{source: {_scalar(table.source)}, table: {_scalar(table.path)}}}",
        *_key_lines(table),
        "    columns:",
        *([f"      {table.row_id}: {{type: string, sent_as: [meta.rowid]}}"] if table.row_id else []),
        *(f"      {line}" for column in table.there for line in _column_lines(column, table, types)),
        *([f"    left_out: [{', '.join(map(_scalar, gone))}]"] if gone else []),
        "    history: false",
    ]
    return "\n".join(lines) + "\n"


# Templates for the names of mirrors, of which the first that gives each table a name of its own is suggested.
NAMES = ("{table}", "{db}_{table}", "{source}_{db}_{schema}_{table}")


def suggested_rule(tables: Sequence[TableSeen], others: Iterable[TableSeen], taken: Collection[str]) -> str:
    """Returns a file with one rule for several tables of a source, for review. The `others` have mirrors; `taken` are
    names in lower case that mirrors cannot have.
    """
    source = tables[0].source
    above = dict.fromkeys(table.names[:-1] for table in tables)
    patterns = [".".join(map(path_part, (*names, "*"))) for names in above]
    left = [one for one in others if one.names[:-1] in above]
    lines = [
        "mirrors:",
        f"  # {len(tables)} tables have landed. A table that comes later has its mirror from the run that meets it.",
        f"  - tables: [{', '.join(map(_scalar, patterns))}]",
        *([f"    except: [{', '.join(_scalar(one.path) for one in left)}]"] if left else []),
        f"    of: {{source: {_scalar(source)}}}",
        f'    name: "{next((one for one in NAMES if _are_free(one, tables, taken)), NAMES[-1])}"',
        "    history: false",
    ]
    if without := [table for table in tables if not table.key and not table.row_id]:
        lines += [
            "    tables_like:",
            "      # No change tells a key: name it (key: [id]), or choose count, whole_row or append.",
        ]
        lines += [f"      {_scalar(table.path)}: {{without_key: reject}}" for table in without]
    return "\n".join(lines) + "\n"


def _are_free(template: str, tables: Sequence[TableSeen], taken: Collection[str]) -> bool:
    names = [name_by(template, table).lower() for table in tables]
    return len({*names}) == len(names) and not {*names} & {*taken}


def _key_lines(table: TableSeen) -> Iterator[str]:
    if table.key:
        yield f"    key: [{', '.join(_scalar(own_name(column)) for column in table.key)}]"
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
    first = next(one.name for one in table.there if one.name.lower() == column.name.lower())
    if column.name != first:
        yield f"# {_scalar(column.name)} differs from {_scalar(first)} only in the case of letters: they are one column"
        return
    settings = {"type": _scalar(kind)}
    name = own_name(column.name)
    if name != column.name:
        settings["sent_as"] = f"[{_scalar(column.name)}]"
    if [column.name] == list(table.key):
        settings["data_tests"] = "[not_null, unique]"
    elif column.name in table.key:
        settings["data_tests"] = "[not_null]"
    told = ", ".join(f"{key}: {value}" for key, value in settings.items())
    yield f"{_scalar(name)}: {_scalar(kind) if len(settings) == 1 else f'{{{told}}}'}{comment}"


def _type_comment(column: ColumnSeen) -> str:
    """Returns a YAML comment with the type that a column has in its database, to follow the line of the column."""
    return f"  # {_one_line(column.type)}" if column.type else ""


def differences(table: TableSeen, mirror: Mirror, types: Types | None) -> Iterator[Difference]:
    """Returns the columns, types and key that the data has and a mirror of the table lacks."""
    known = {sent.lower(): column for column in mirror.columns for sent in (column.name, *column.sent_as)}
    left_out = {name.lower() for name in mirror.left_out}
    for column in table.there:
        kind, own = column_type(column, types), known.get(column.name.lower())
        lower = column.name.lower()
        if own is None and lower not in left_out:
            known[lower] = MirrorColumn(own_name(column.name), kind)
            yield Difference(*next(_column_lines(column, table, types)).split(": ", 1))
        elif own is not None and not _takes(own.type, kind, column):
            yield Difference(_scalar(own.name), f"{_scalar(kind)}{_type_comment(column)}", own.name, _scalar(own.type))
    if _has_other_key(table, mirror):
        own_key, key = (f"[{', '.join(map(_scalar, names))}]" for names in (mirror.key, table.key))
        yield Difference("key", key, "", own_key)


def deviations(table: TableSeen, mirror: Mirror, types: Types | None) -> Iterator[tuple[ColumnSeen | None, str]]:
    """Yields in words where a mirror is not as the data of its table, each with the column, if the data has one."""
    known = {sent.lower(): column for column in mirror.columns for sent in (column.name, *column.sent_as)}
    left_out, told = {name.lower() for name in mirror.left_out}, set[str]()
    for column in table.columns:
        lower, kind = column.name.lower(), column_type(column, types)
        own = known.get(lower)
        is_first = lower not in told
        told.add(lower)
        if own is None:
            is_left = lower in left_out
            if not column.is_gone and is_first:
                yield column, f"{kind} in the data, " + ("left out of the mirror" if is_left else "not in the mirror")
            continue
        told |= {own.name.lower(), *(sent.lower() for sent in own.sent_as)}
        if column.is_gone:
            yield column, f"no longer in the data, {own.type} in the mirror"
        elif own.type != kind:
            yield column, f"{kind} in the data, {own.type} in the mirror"
    for own in mirror.columns:
        sent = {own.name.lower(), *(one.lower() for one in own.sent_as)}
        if not told & sent and not any(one.startswith(META) for one in sent):
            yield None, f'"{own.name}": in no change, {own.type} in the mirror'
    if _has_other_key(table, mirror):
        yield None, f"the key: ({', '.join(table.key)}) in the data, ({', '.join(mirror.key)}) in the mirror"


def _has_other_key(table: TableSeen, mirror: Mirror) -> bool:
    told, own = ({name.lower() for name in key} for key in (table.key, mirror.key))
    return bool(told and own) and told != own


def _takes(own: str, suggested: str, column: ColumnSeen) -> bool:
    """Returns True if a column's type in a mirror takes all values that the column can have, as far as known."""
    if own in ("string", suggested):
        return True
    if own in TRIED:
        return not column.unfit.get(own)
    if own.startswith("decimal"):
        digits, scale = digits_of(own)
        wanted = digits_of(suggested) if suggested.startswith("decimal") else (0, 0)
        is_wider = digits - scale >= wanted[0] - wanted[1] and scale >= wanted[1]
        return fits(column, own) and (is_wider or wanted[0] == MOST_DIGITS)
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
    end = last_leaf(columns).end_mark.index
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


def free_name(table: TableSeen, taken: Collection[str]) -> str:
    """Returns a name for a mirror of a table: the table's own name, in letters that names of models have, or with its
    source before it. Neither the mirror's name nor that of its history is in `taken`, which is in lower case.
    """
    own, *others = (plain_name(name) for name in reversed(table.names))
    whole = "_".join([table.source, *reversed(others), own])
    names = chain((own, f"{table.source}_{own}", whole), (f"{whole}_{number}" for number in count(2)))
    return next(name for name in names if not {name.lower(), f"{name.lower()}{HISTORY}"} & set(taken))
