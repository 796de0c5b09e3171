"""How each kind of node is run, and the result of a query that fails."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from runner.engine.errors import QueryFailed, query_errors
from runner.engine.maintenance import Maintenance
from runner.errors import BUG, RunnerError, RunnerErrors
from runner.project.inputs import ForeignTable, Source
from runner.project.nodes import Case, DataTest, Exposure, FunctionTest, Model, Node, UnitTest
from runner.run.models import Models
from runner.run.results import Result
from runner.run.tests import TestRuns

PlaceOf = Callable[[Node, QueryFailed], str]
"""The lines that say where the query of a node is wrong."""


@dataclass(frozen=True)
class Execution:
    """Builds models and runs tests."""

    models: Models
    tests: TestRuns
    place_of: PlaceOf

    def run(self, node: Node) -> Result:
        """Runs one node."""
        return timed(node, self._run, self.place_of)

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
            case Source() | ForeignTable() | Exposure():
                raise AssertionError(f"{node.name} is nothing that runs")


def maintained(node: Node, maintenance: Maintenance, place_of: PlaceOf) -> Result:
    """Maintains the table of a model."""

    def maintain(node: Node) -> Result:
        notes = maintenance.maintain(node.relation, bool(node.model and node.model.source))
        return Result(node.name, "model", "success", notes=notes)

    return timed(node, maintain, place_of)


def timed(node: Node, action: Callable[[Node], Result], place_of: PlaceOf) -> Result:
    """The result of an action, with the seconds that it took. A query that fails is a result too, and so is any other
    error: what does not read this node goes on.
    """
    began = time.monotonic()
    try:
        with query_errors():
            result = action(node)
    except QueryFailed as failure:
        result = failed(node, failure, place_of)
    except (RunnerError, RunnerErrors) as error:
        result = Result(node.name, node.resource_type, "error", f"{error}")
    except Exception:
        result = Result(node.name, node.resource_type, "error", f"{traceback.format_exc()}{BUG}")
    return replace(result, seconds=time.monotonic() - began, ended=datetime.now(timezone.utc))


def failed(node: Node, failure: QueryFailed, place_of: PlaceOf) -> Result:
    """The result of a node whose query failed, with the place of what is wrong."""
    return Result(node.name, node.resource_type, "error", f"{failure.message}{place_of(node, failure)}")
