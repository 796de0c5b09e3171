"""The results of compiling: the SQL of nodes, and what a format promises of the rows of a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from runner.errors import Where
from runner.functions.avro.layout import AvroFunction
from runner.project.inputs import TableSettings
from runner.project.project import built_in_folder
from runner.project.sql_functions import SqlFunction, distinct
from runner.spec.words import Field, Format, Value, fields_of

Print = Callable[..., str]
"""A macro's name and arguments -> the SQL that it prints."""
Columns = Mapping[str, str]
"""Columns of a query: what each is called, and its expression. They are the same of one that is kept as it is."""


def kept(*columns: str) -> Columns:
    """Returns columns that a step passes on as they are: each name stands for itself."""
    return dict(zip(columns, columns))


@dataclass(frozen=True)
class Step:
    """A step of a query. Later steps read it by its `name`. The step itself `reads` a relation, as SQL writes it."""

    name: str
    comment: str
    reads: str
    columns: Columns


@dataclass(frozen=True)
class Promise:
    """A `part` that the format names for all rows: `table_name`, `key`, `event_time`, `images` or `before`. `where` is
    the place of its word in the spec, None if the spec is built in. `hint` is what to try if no row has the part, where
    `{source}` stands for the source.
    """

    part: str
    where: Where | None
    hint: str


@dataclass(frozen=True)
class CompiledNode:
    """The SQL of a model, a data test or a case, and the functions that it calls. `functions` read messages.
    `sql_functions` are all SQL functions that the SQL needs, in the order in which they must be made. `increment` is
    the SQL of an incremental model once its table exists. `promises` are what the format of a source says of all rows.
    `of_first_load` is the SQL of a source for its first load, where that is another. `pre_hook` and `post_hook` are the
    statements that run before and after. `encoding` is that of the messages that the SQL reads.
    """

    sql: str
    functions: tuple[AvroFunction, ...] = ()
    increment: str | None = None
    sql_functions: tuple[SqlFunction, ...] = ()
    promises: tuple[Promise, ...] = ()
    pre_hook: tuple[str, ...] = ()
    post_hook: tuple[str, ...] = ()
    of_first_load: str = ""
    encoding: str = ""

    @property
    def meaning(self) -> str:
        """All text that decides which rows the SQL makes, whichever load of their tables they belong to."""
        return ";\n".join([*(function.text for function in self.sql_functions), self.of_first_load or self.sql])


@dataclass(frozen=True)
class CompiledCase:
    """A file of messages and the changelog rows that a format must make of them; the query reads the view `view`."""

    query: CompiledNode
    view: str
    messages: Path
    rows: list[Mapping[str, Any]]


@dataclass(frozen=True)
class FunctionCase:
    """The arguments `given` in one call, and the result to `expect`, as YAML values: text, None, lists and dicts."""

    given: tuple[Any, ...]
    expect: Any


@dataclass(frozen=True)
class CompiledFunctionTest:
    """The unit tests of a SQL function. All tests of one `file` run in one query."""

    function: SqlFunction
    file: Path
    cases: tuple[FunctionCase, ...]

    @property
    def view(self) -> str:
        """The name of the view of the arguments, which has a row for each call: its number, the arguments and the
        expected result.
        """
        return f"tests_of_{self.function.name}"

    @property
    def expected(self) -> str:
        """The column of the expected results. No argument can have this name."""
        return "expected result"


@dataclass(frozen=True)
class Compiled:
    """The results of compiling, by name, for the nodes that were asked for and all that they read. `together` maps a
    data test to the query that answers it together with other tests. `times` say from when to when each node was
    compiled.
    """

    nodes: Mapping[str, CompiledNode] = field(default_factory=dict)
    cases: Mapping[str, CompiledCase] = field(default_factory=dict)
    function_tests: Mapping[str, CompiledFunctionTest] = field(default_factory=dict)
    together: Mapping[str, str] = field(default_factory=dict)
    times: Mapping[str, tuple[datetime, datetime]] = field(default_factory=dict)

    @property
    def sql_functions(self) -> tuple[SqlFunction, ...]:
        """All SQL functions that the nodes need, in the order in which they must be made."""
        return distinct(node.sql_functions for node in self.nodes.values())

    def with_more(self, more: Compiled) -> Compiled:
        """Returns these results together with those of other nodes."""
        return replace(self, nodes={**self.nodes, **more.nodes}, times={**self.times, **more.times})


# --- promises

NEEDS_ZONE = "it is a local time, which needs a zone"
OTHER_FORMAT = "perhaps the messages have another format: runner formats infer FILE"


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
