"""The results of compiling: data only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from runner.compile.promises import Promise
from runner.functions.avro.layout import AvroFunction
from runner.project.sql_functions import SqlFunction, distinct

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
