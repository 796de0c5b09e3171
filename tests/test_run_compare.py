"""Rows that came against rows that were expected."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from runner.run.compare import as_text, case_row, in_any_order, in_order
from tests.pages import table


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("null", "null"),
        (0, "0"),
        (False, "false"),
        (Decimal("1.50"), "1.50"),
        (10**30, "1" + "0" * 30),
        ([1, None, [True]], ["1", None, ["true"]]),
        ({"a": {"b": 2}, "c": None}, {"a": {"b": "2"}, "c": None}),
    ],
)
def test_values_as_yaml_has_them(value: object, text: object) -> None:
    assert as_text(value) == text


def test_a_row_of_a_case_has_nothing_that_depends_on_the_run() -> None:
    row = {
        "kind": "row",
        "source": "s",
        "format": "f",
        "op": None,
        "after": {"id": "1", "v": None},
        "changed": [],
        "meta": {},
        "origin": {"file": "x"},
        "seq": {"generation": 0, "phase": 1, "position": [Decimal(7)], "arrival": [1, 2], "row": 0},
        "detail": "words",
        "run_id": "r",
        "loaded_at": "t",
        "landed_on": "d",
    }
    assert case_row(row) == {
        "kind": "row",
        "after": {"id": "1", "v": None},
        "changed": [],
        "seq": {"generation": 0, "phase": 1, "position": [Decimal(7)], "row": 0},
    }
    assert row["seq"]["arrival"] == [1, 2], "the row itself is left alone"


@pytest.mark.parametrize(
    ("compare", "case"),
    [
        (compare, case)
        for compare, name in ((in_order, "compared_in_order"), (in_any_order, "compared_in_any_order"))
        for case in table(name)
    ],
)
def test_rows_beside_rows(compare: Callable[[list, list], list[str]], case: dict[str, list]) -> None:
    assert compare(case["got"], case["expected"]) == case["lines"]
