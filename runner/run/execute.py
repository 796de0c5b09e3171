"""How each kind of node is run, and where the query of one that fails is wrong: in the person's own file if that can be
told, else in compiled SQL.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from runner.engine.errors import QueryFailed, SqlPlace, query_errors
from runner.errors import BUG, RunnerError, RunnerErrors, Where, excerpt
from runner.files import read_text
from runner.project.inputs import ExternalTable, Source
from runner.project.nodes import (
    Case,
    DataTest,
    Exposure,
    FunctionTest,
    Model,
    Node,
    SqlFile,
    SqlText,
    UnitTest,
    compiled_path,
)
from runner.run.models import Models
from runner.run.results import Result
from runner.run.tests import TestRuns

if TYPE_CHECKING:
    from runner.run.run import Run

COMMAND_LINE = Path("--inline")


class Execution:
    """Runs single nodes, in any thread."""

    def __init__(self, run: Run) -> None:
        self.measures, self.locations = run.spark.measures, ErrorLocations(run)
        self.models, self.tests = Models(run), TestRuns(run)

    def run(self, node: Node) -> Result:
        """Builds a model or runs a test."""
        with self.measures.of(node.name):
            return self.timed(node, self._run)

    def timed(self, node: Node, action: Callable[[Node], Result]) -> Result:
        """The result of an action, with the seconds that it took. A query that fails is a result too, and so is any
        other error: what does not read this node goes on.
        """
        began = time.monotonic()
        try:
            with query_errors():
                result = action(node)
        except QueryFailed as failure:
            result = self.failed(node, failure)
        except (RunnerError, RunnerErrors) as error:
            result = Result(node.name, node.resource_type, "error", f"{error}")
        except Exception:
            result = Result(node.name, node.resource_type, "error", f"{traceback.format_exc()}{BUG}")
        return replace(result, seconds=time.monotonic() - began, ended=datetime.now(timezone.utc))

    def failed(self, node: Node, failure: QueryFailed) -> Result:
        """The result of a node whose query failed, with the place of what is wrong."""
        return Result(node.name, node.resource_type, "error", f"{failure.message}{self.locations.of(node, failure)}")

    def _run(self, node: Node) -> Result:
        match node.subject:
            case Model() as model:
                return self.models.build(node, model)
            case DataTest() as test:
                return self.tests.data_test(node, test)
            case UnitTest() as test:
                return self.tests.unit_test(node, test)
            case Case():
                return self.tests.case(node)
            case FunctionTest():
                return self.tests.function_test(node)
            case Source() | ExternalTable() | Exposure():
                raise AssertionError(f"{node.name} is nothing that runs")


@dataclass(frozen=True)
class Query:
    """The SQL of a node; if it `is_increment`, that which runs once its table exists."""

    node: Node
    sql: str
    is_increment: bool


class ErrorLocations:
    """Finds places in the queries of a run. Several threads may ask."""

    def __init__(self, run: Run) -> None:
        self.project, self.graph, self.compiled = run.project, run.graph, run.compiled
        self.templates, self.tracing = run.workspace.templates, threading.Lock()

    def of(self, node: Node, failure: QueryFailed) -> str:
        """The lines that follow what Spark says about a node's query: the file, and what stands there. Empty if nothing
        is known of the place.
        """
        if named := failure.place:
            for query in self._queries(node):
                if place := named.found_in(query.sql):
                    return f"\n{self._shown(query, place)}"
        return ""

    def _queries(self, node: Node) -> Iterator[Query]:
        """The queries that may have failed: that of the node, and those of the views that it reads, nearest first."""
        above = self.graph.upstream({node.name})
        views = [self.graph.nodes[name] for name in reversed(self.graph.order()) if name in above]
        for one in [node, *(view for view in views if view.model and not view.model.is_table)]:
            if found := self.compiled.nodes.get(one.name):
                if found.increment:
                    yield Query(one, found.increment, True)
                yield Query(one, found.sql, False)

    def _shown(self, query: Query, place: SqlPlace) -> str:
        source = query.node.model and query.node.model.query
        if isinstance(source, SqlText):
            return excerpt(Where(COMMAND_LINE, place.line, place.column), source.text, place.fragment)
        if isinstance(source, SqlFile) and (where := self._in_template(source.path, query, place)):
            return excerpt(where, read_text(where.path), place.fragment)
        where = Where(compiled_path(self.project, query.node, query.is_increment), place.line, place.column)
        return excerpt(where, query.sql, place.fragment)

    def _in_template(self, path: Path, query: Query, place: SqlPlace) -> Where | None:
        with self.tracing:
            trace = self.templates.trace(path, query.sql, query.is_increment)
        return trace.place(place.line, place.column) if trace else None
