"""Rows that came against rows that were expected."""

from __future__ import annotations

from decimal import Decimal

import pytest

from runner.run.compare import as_text, case_row, in_any_order, in_order


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
    ("got", "expected", "lines"),
    [
        ([], [], []),
        ([{"a": "1"}], [{"a": "1"}], []),
        ([{"a": "1", "b": "2"}], [{"b": "2", "a": "1"}], []),
        ([{"a": "1"}], [{"a": "2"}], ['row 0: a: got "1", expected "2"']),
        ([{"a": "1", "b": "x"}], [{"a": "1"}], []),
        (
            [{"a": "1", "b": "x"}] * 2,
            [{"a": "1"}, {"b": "x"}],
            ['row 0: b: got "x", expected null', 'row 1: a: got "1", expected null'],
        ),
        ([{"a": None}], [{"a": "null"}], ['row 0: a: got null, expected "null"']),
        ([{"a": "1"}], [], ['row 0: not expected: {"a": "1"}']),
        ([], [{"a": "1"}], ['row 0: missing: {"a": "1"}']),
        ([{"a": {"z": "1", "b": "ü"}}], [{"a": {}}], ['row 0: a: got {"b": "ü", "z": "1"}, expected {}']),
        (
            [{"a": "1"}, {"a": "2"}],
            [{"a": "2"}, {"a": "1"}],
            ['row 0: a: got "1", expected "2"', 'row 1: a: got "2", expected "1"'],
        ),
    ],
)
def test_row_by_row(got: list, expected: list, lines: list[str]) -> None:
    assert in_order(got, expected) == lines


@pytest.mark.parametrize(
    ("got", "expected", "lines"),
    [
        ([{"a": 1}, {"a": 2}], [{"a": "2"}, {"a": "1"}], []),
        ([{"a": 1}, {"a": 1}], [{"a": "1"}], ['+ not expected: {"a": "1"}']),
        ([{"a": 1}], [{"a": "1"}, {"a": "1"}], ['- missing: {"a": "1"}']),
        ([{"a": None}], [{"a": "null"}], ['- missing: {"a": "null"}', '+ not expected: {"a": null}']),
        ([{"a": [1, {"b": 2}]}], [{"a": ["1", {"b": "2"}]}], []),
    ],
)
def test_in_any_order(got: list, expected: list, lines: list[str]) -> None:
    assert in_any_order(got, expected) == lines
