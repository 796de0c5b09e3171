"""Data tests of one table read it together, and say the same as each alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.compile import nodes
from runner.run.workspace import ProjectArguments, Workspace
from tests.landed import Project, files_of

FILES = files_of("tested")
TESTED = FILES["models/orders.yml"]
# Test -> its status, and the number of rows that fail.
EXPECTED = {
    "row_count_orders": ("pass", 0),
    "too_few": ("fail", 1),
    "too_many": ("fail", 1),
    "all_positive": ("fail", 1),
    "small_or_unknown": ("fail", 1),
    "all_small": ("warn", 2),
    "all_small_of_ann": ("pass", 0),
    "none_of_ann": ("fail", 2),
    "not_null_orders_id": ("pass", 0),
    "unique_orders_id": ("fail", 1),
    "fresh_orders_id": ("pass", 0),
    "not_null_orders_amount": ("fail", 1),
    "few_are_null": ("warn", 1),
    "kept_when_null": ("fail", 1),
    "none_counts": ("pass", 0),
    "not_null_orders_buyer": ("pass", 0),
    "accepted_values_orders_buyer": ("pass", 0),
    "only_ann": ("fail", 1),
    "fresh_orders_paid_at": ("fail", 1),
    "of_this_century": ("pass", 0),
    "has_a": ("pass", 0),
    "has_b": ("fail", 4),
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queries whose rows were asked for."""
    from runner.engine.session import Spark

    queries: list[str] = []
    rows = Spark.rows

    def remembered(self: Spark, sql: str, limit: int | None = None) -> Any:
        queries.append(sql)
        return rows(self, sql, limit)

    monkeypatch.setattr(Spark, "rows", remembered)
    return queries


@pytest.mark.usefixtures("spark", "interpreted")
def test_they_say_the_same_as_each_alone(tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path, FILES)
    project.ok("run")
    asked.clear()
    assert project.run("test").code == 1
    together_said = said(project)
    assert {name: found[:2] for name, found in together_said.items()} == EXPECTED
    # Two for all rows and for ann's; those that fail; those that are alone.
    alone = {"unique_orders_id", "few_are_null", "kept_when_null"}
    failed = {name for name, (status, _) in EXPECTED.items() if status != "pass"} | {"none_counts"}
    assert len([sql for sql in asked if "failures" not in sql]) == 2 + len(failed | alone)

    with monkeypatch.context() as patch:
        patch.setattr("runner.run.run.queries_together", lambda *_: {})
        assert project.run("test").code == 1
    assert said(project) == together_said

    # One that cannot be asked leaves the others.
    wrong = "\n      - expression_is_true: {name: wrong, expression: amounts > 0}"
    project.write({"models/orders.yml": TESTED.replace("data_tests:", f"data_tests:{wrong}", 1)})
    assert project.run("test").code == 1
    assert project.statuses["wrong"] == "error"
    assert {name: found for name, found in said(project).items() if name != "wrong"} == together_said


def said(project: Project) -> dict[str, tuple[str, int, str]]:
    return {name: (one["status"], one["failures"], one["message"]) for name, one in project.results.items()}


OWN = """
{% macro test_even(model, column) %} select * from {{ model }} where {{ column }} % 2 <> 0 {% endmacro %}
{% macro passes_even(column) %} max({{ column }} % 2) = 0 {% endmacro %}
{% macro test_not_null(model, column) %} select 1 as a where false {% endmacro %}
"""


def groups(root: Path) -> list[list[str]]:
    """The tests that go together."""
    workspace = Workspace(ProjectArguments(project_dir=root))
    found = nodes.queries_together(workspace.graph.nodes.values(), workspace.templates)
    return sorted((sorted(name for name in found if found[name] == sql) for sql in set(found.values())), key=len)


def test_which_go_together(project: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    of_all = {"row_count_orders", "too_few", "too_many", "all_positive", "small_or_unknown", "all_small", "none_counts"}
    of_all |= {f"not_null_orders_{column}" for column in ("id", "amount", "buyer")} | {"has_a", "has_b", "only_ann"}
    of_all |= {"accepted_values_orders_buyer", "fresh_orders_id", "fresh_orders_paid_at", "of_this_century"}
    root = project(FILES)
    assert groups(root) == [["all_small_of_ann", "none_of_ann"], sorted(of_all)]
    monkeypatch.setattr(nodes, "MOST", 8)
    # Of 17, one is left that would be alone.
    assert [len(names) for names in groups(root)] == [2, 8, 8]


def test_of_macros_of_ones_own(project: Callable[..., Path]) -> None:
    """A test that has replaced a built-in one is not told by what that has beside it."""
    even = "\n      - even: {column: amount}\n      - even: {name: again, column: amount}"
    own = TESTED.replace("data_tests:", f"data_tests:{even}", 1)
    found = groups(project({**FILES, "models/orders.yml": own, "macros/own.sql": OWN}))
    assert {"even_orders", "again"} < set(found[1])
    assert not [name for group in found for name in group if name.startswith(("not_null", "has_"))]
