"""Data tests of one table that one query answers, which reads the table once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from runner.project.nodes import DataTest, Node
from runner.project.templates import Templates

# Spark plans and compiles queries of many hundred columns slowly.
MOST = 100


def queries_together(nodes: Iterable[Node], templates: Templates) -> dict[str, str]:
    """Data test -> the query that tells of it and of others whether no row fails. Tests go together that look at the
    same rows, and wait for the same nodes. What is written of failures, or made of their number, needs the rows.
    """
    groups: dict[tuple[str, str, tuple[str, ...]], dict[str, str]] = defaultdict(dict)
    for node in nodes:
        test = node.data_test
        if test and _only_fails(test) and (passing := templates.passing(test)):
            groups[test.model, test.config.where, node.parents][node.name] = passing
    return {
        name: sql
        for (model, where, _), passing in groups.items()
        for part in _parts(passing)
        for sql in [templates.tested_together(model, where, part)]
        for name in part
    }


def _only_fails(test: DataTest) -> bool:
    return test.config.counts_rows and not test.config.store_failures


def _parts(passing: dict[str, str]) -> Iterator[dict[str, str]]:
    """The aggregates, as many at a time as one query takes; none that would be alone."""
    items = list(passing.items())
    for first in range(0, len(items), MOST):
        if len(part := items[first : first + MOST]) > 1:
            yield dict(part)
