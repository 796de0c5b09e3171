"""What a format says that the rows of every source have, and where it says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from runner.errors import Where
from runner.project.inputs import TableSettings
from runner.spec.words import Field, Format, Value, fields_of


@dataclass(frozen=True)
class Promise:
    """A part of rows that the format names for all of them: `table_name`, `key`, `event_time`, `images` or `before`.
    The place is that of its word in the spec; `hint` is what to try if no row has it.
    """

    part: str
    where: Where
    hint: str


def make_promises(spec: Format, zone: str | None, tables: Sequence[TableSettings]) -> tuple[Promise, ...]:
    """The promises of a format to a source with this zone and these tables."""
    return tuple(_promises(spec, zone, tables))


def _promises(spec: Format, zone: str | None, tables: Sequence[TableSettings]) -> Iterator[Promise]:
    rows = [line for line in spec.op.lines() if line.kind == "row"]
    if rows:
        yield Promise("images", _place(spec, rows[0].own_side), "correct the paths of before and after")
    if any(line.op == "update" and line.before and not line.half for line in rows):
        yield Promise("before", _place(spec, "before"), "correct the path, or write before: none")
    for column in ("table_name", "event_time"):
        values = [line.columns.get(column, spec.columns.get(column, ())) for line in rows]
        if values and all(_is_always_there(value) for value in values):
            yield Promise(column, _place(spec, column), _hint(column, values[0], zone or spec.zone))
    if spec.key:
        yield Promise("key", _place(spec, "key"), "correct the path; key: none if messages name no key")
    elif keyed := next((table for table in tables if table.key), None):
        yield Promise("key", keyed.origin.where(), "correct the name of the table, or its key")


def _is_always_there(value: Value) -> bool:
    """Whether a value is named for every message: no case of a switch leaves it out."""
    return any(
        isinstance(choice, Field)
        or all(_is_always_there(one) for one in (*choice.cases.values(), choice.missing, choice.otherwise))
        for choice in value
    )


def _hint(column: str, value: Value, zone: str | None) -> str:
    if zone is None and any(field.reader == "local" for field in fields_of(value)):
        return "it is a local time, which needs a zone: zone of the source or the format, --zone of a command"
    return f"correct the path or how it is read; {column}: none if messages do not have it"


def _place(spec: Format, word: str) -> Where:
    """The place of a word in a spec; that of `op` if only its lines have the word."""
    return (spec.origin.get(word) or spec.origin.get("op") or spec.origin).where()
