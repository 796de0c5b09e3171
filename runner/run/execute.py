"""Runs a node of each kind, and finds the place of the mistake if its query fails: in the person's own file if that can
be told, else in compiled SQL.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
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
        """Returns the result of an action, with the seconds that it took. A query that fails gives a result too, and so
        does any other error: nodes that do not read this node still run.
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
        """Returns the result of a node whose query failed, with the place of the mistake."""
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


class ErrorLocations:
    """Finds the places of mistakes in the queries of a run. Several threads may call its methods at the same time."""

    def __init__(self, run: Run) -> None:
        self.project, self.graph, self.compiled = run.project, run.graph, run.compiled
        self.templates, self.tracing = run.workspace.templates, threading.Lock()

    def of(self, node: Node, failure: QueryFailed) -> str:
        """Returns the lines that follow Spark's message about a node's query: the file, and the text at the place of
        the mistake. Empty if nothing is known of the place.
        """
        if named := failure.place:
            for one, sql, is_increment in self._queries(node):
                if place := named.found_in(sql):
                    return f"\n{self._shown(one, sql, is_increment, place)}"
        return ""

    def _queries(self, node: Node) -> Iterator[tuple[Node, str, bool]]:
        """Yields the queries that may have failed: those of the node, and those of the views that the node reads,
        nearest first; each with its node, and whether it is the one that runs once the node's table exists.
        """
        above = self.graph.upstream({node.name})
        views = [self.graph.nodes[name] for name in reversed(self.graph.order()) if name in above]
        for one in [node, *(view for view in views if view.model and not view.model.is_table)]:
            if found := self.compiled.nodes.get(one.name):
                if found.increment:
                    yield one, found.increment, True
                yield one, found.sql, False

    def _shown(self, node: Node, sql: str, is_increment: bool, place: SqlPlace) -> str:
        source = node.model and node.model.query
        if isinstance(source, str):
            return excerpt(Where(COMMAND_LINE, place.line, place.column), source, place.fragment)
        if isinstance(source, Path):
            with self.tracing:
                trace = self.templates.trace(source, sql, is_increment)
            if trace and (where := trace.place(place.line, place.column)):
                return excerpt(where, read_text(where.path), place.fragment)
        where = Where(compiled_path(self.project, node, is_increment), place.line, place.column)
        return excerpt(where, sql, place.fragment)
