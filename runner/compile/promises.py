"""The promises of a format: what it says that the rows of every source have, and where it says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from runner.errors import Where
from runner.project.inputs import TableSettings
from runner.project.project import built_in_folder
from runner.spec.words import Field, Format, Value, fields_of

NEEDS_ZONE = "it is a local time, which needs a zone"
OTHER_FORMAT = "perhaps the messages have another format: runner formats infer FILE"


@dataclass(frozen=True)
class Promise:
    """A `part` that the format names for all rows: `table_name`, `key`, `event_time`, `images` or `before`. `where` is
    the place of its word in the spec, None if the spec is built in. `hint` is what to try if no row has the part, where
    `{source}` stands for the source.
    """

    part: str
    where: Where | None
    hint: str


def make_promises(spec: Format, zone: str | None, tables: Sequence[TableSettings]) -> tuple[Promise, ...]:
    """Returns the promises of a format to a source with this zone and these tables."""
    found = (_of_built_in(promise) for promise in _promises(spec, zone, tables))
    return tuple(promise for promise in found if promise)


def _of_built_in(promise: Promise) -> Promise | None:
    """Returns the promise, with a hint of its own for a built-in format; None for a promise that depends on the sender.
    Built-in specs are right: if a part is missing, the project has to declare it, or the format is another one. Images
    before updates are there if a database or a tool is set to give them, and times if they are sent.
    """
    if not promise.where or not promise.where.path.is_relative_to(built_in_folder("formats")):
        return promise
    match promise.part:
        case "key":
            return Promise("key", None, "declare it on {source}: tables: [{name: TABLE, key: [COLUMN]}]")
        case "event_time" if NEEDS_ZONE in promise.hint:
            return Promise("event_time", None, promise.hint)
        case "table_name":
            return Promise(
                "table_name", None, f"{OTHER_FORMAT}; if messages name no table, extend it: table_name: none"
            )
        case "images":
            return Promise("images", None, OTHER_FORMAT)
    return None


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
    """Returns True if a value is named for every message: no case of a switch leaves the value out."""
    return any(
        isinstance(choice, Field)
        or all(_is_always_there(one) for one in (*choice.cases.values(), choice.missing, choice.otherwise))
        for choice in value
    )


def _hint(column: str, value: Value, zone: str | None) -> str:
    if zone is None and any(field.reader == "local" for field in fields_of(value)):
        return f"{NEEDS_ZONE}: zone of the source or the format, --zone of a command"
    return f"correct the path or how it is read; {column}: none if messages do not have it"


def _place(spec: Format, word: str) -> Where:
    """Returns the place of a word in a spec; the place of `op` if only lines of `op` have the word."""
    return (spec.origin.get(word) or spec.origin.get("op") or spec.origin).where()
