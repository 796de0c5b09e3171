"""The results of compiling: data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.functions.avro.layout import AvroFunction
from runner.project.sql_functions import SqlFunction


@dataclass(frozen=True)
class FormatQuery:
    """The SELECT that a format compiles to, and the functions that only it calls: `functions` read messages,
    `sql_functions` are all SQL functions that it needs, in the order in which they must be made.
    """

    sql: str
    encoding: str
    functions: tuple[AvroFunction, ...] = ()
    sql_functions: tuple[SqlFunction, ...] = ()


@dataclass(frozen=True)
class CompiledNode:
    """The SQL of a model or data test, and the functions that it calls: `functions` read messages, `sql_functions` are
    all SQL functions that it needs, in the order in which they must be made. `increment` is the SQL of an incremental
    model once its table exists.
    """

    sql: str
    functions: tuple[AvroFunction, ...] = ()
    increment: str | None = None
    sql_functions: tuple[SqlFunction, ...] = ()


@dataclass(frozen=True)
class CompiledCase:
    """A file of messages and the changelog rows that a format must make of them; the query reads the view `view`."""

    query: FormatQuery
    view: str
    messages: Path
    rows: list[Mapping[str, Any]]


@dataclass(frozen=True)
class Compiled:
    """Name -> what was compiled, for the nodes that were asked for and all that they read."""

    nodes: Mapping[str, CompiledNode] = field(default_factory=dict)
    cases: Mapping[str, CompiledCase] = field(default_factory=dict)
