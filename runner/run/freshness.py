"""Measures how old the newest row of a source is, and compares that with the age that is allowed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from runner.engine.errors import QueryFailed, telling
from runner.project.inputs import ExternalTable, Freshness, Source
from runner.project.nodes import Node
from runner.render import name as quoted
from runner.run.results import Result

if TYPE_CHECKING:
    from runner.run.run import Run

# The errors that Spark raises for a missing table or folder, or for a missing schema or catalog.
NOT_THERE = re.compile(
    r"\[(TABLE_OR_VIEW_NOT_FOUND|SCHEMA_NOT_FOUND|CATALOG_NOT_FOUND|PATH_NOT_FOUND"
    r"|DELTA_MISSING_DELTA_TABLE|DELTA_PATH_DOES_NOT_EXIST|DELTA_TABLE_NOT_FOUND)"
)


class SourceAges:
    """Measures sources. `found` maps each node to what was measured: `newest`, an instant as ISO 8601 in UTC, and `age`
    in seconds; both are None where there are no rows.
    """

    def __init__(self, run: Run) -> None:
        self.graph, self.spark, self.views, self.macro = run.graph, run.spark, run.views, run.macro
        self.found: dict[str, dict[str, Any]] = {}

    def measure(self, node: Node) -> Result:
        """Compares the age of a source with the age that is allowed; raises QueryFailed."""
        rows, loaded_at, freshness = self._measured(node)
        with telling(lambda failure: _tell_missing(node, failure)):
            (found,) = self.spark.rows(self.macro("age_of", rows, loaded_at, freshness.filter))[1]
        self.found[node.name] = found
        return Result(node.name, "source", status_of(found["age"], freshness), said_of(found["newest"], found["age"]))

    def _measured(self, node: Node) -> tuple[str, str, Freshness]:
        match node.subject:
            case ExternalTable() as table:
                return self.macro("external_table", table).strip(), table.loaded_at, table.freshness
            case Source() as source:
                self.views.make(self.graph.nodes[source.model])
                return quoted(source.model), self.macro("sent_at").strip(), source.freshness
        raise AssertionError(f"{node.name} is no source")


def _tell_missing(node: Node, failure: QueryFailed) -> None:
    """Raises an error that says what to do about a missing table, if that is why the query of a node has failed."""
    table = node.subject
    if not isinstance(table, ExternalTable) or not NOT_THERE.search(failure.message):
        return
    if table.folder:
        what, names = f'there is no table in "{table.folder}"', '"location"'
    else:
        what, names = f'there is no table "{".".join(table.place)}"', '"database", "schema" and "identifier"'
    raise QueryFailed(f"{what}\nrun what fills it, or correct {names} of {node.label}, at {node.where}") from failure


def status_of(age: int | None, freshness: Freshness) -> str:
    """Returns the status of a source for the age of its newest row in seconds, None if it has no rows.

    >>> from runner.project.inputs import Age
    >>> limits = Freshness(warn_after=Age(1, "hour"), error_after=Age(1, "day"))
    >>> [status_of(age, limits) for age in (3600, 3601, 86401, None)], status_of(None, Freshness())
    (['pass', 'warn', 'fail', 'fail'], 'pass')
    """
    for status, limit in (("fail", freshness.error_after), ("warn", freshness.warn_after)):
        if limit and (age is None or age > limit.seconds):
            return status
    return "pass"


def said_of(newest: str | None, age: int | None) -> str:
    """Returns the instant and the age of the newest row in words.

    >>> said_of("2024-05-01T10:00:00Z", 90061)
    'newest: 2024-05-01T10:00:00Z, 1d 1h 1m ago'
    """
    if newest is None or age is None:
        return "no rows"
    days, hours, minutes = age // 86400, age // 3600 % 24, age // 60 % 60
    parts = [f"{count}{unit}" for count, unit in ((days, "d"), (hours, "h"), (minutes, "m")) if count]
    return f"newest: {newest}, {' '.join(parts) or 'less than a minute'} ago"
