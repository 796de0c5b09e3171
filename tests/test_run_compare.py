"""Rows that came against rows that were expected."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from pyspark.sql import types as T

from runner.contract import SEQ_PARTS
from runner.engine.errors import QueryFailed
from runner.engine.values import fitted, typed
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


SEQ = T.StructType([T.StructField(part, T.StringType()) for part in SEQ_PARTS])


@pytest.mark.parametrize(
    ("kind", "written", "as_the_model_writes_it"),
    [
        (T.DecimalType(10, 2), "10", "10.00"),
        (T.DecimalType(10, 2), "1e1", "10.00"),
        (T.DecimalType(10, 2), "10.001", "10.001"),
        (T.DecimalType(4, 2), "100", "100"),
        (T.DecimalType(38, 2), "123456789012345678901234567890123456", "123456789012345678901234567890123456.00"),
        (T.DecimalType(20, 0), "10.0", 10),
        (T.LongType(), "9007199254740993", 9007199254740993),
        (T.IntegerType(), "10.00", 10),
        (T.IntegerType(), "10.5", "10.5"),
        (T.DoubleType(), "1e2", 100.0),
        (T.FloatType(), "0.1", 0.10000000149011612),
        (T.BooleanType(), "True", True),
        (T.BooleanType(), "yes", "yes"),
        (T.TimestampType(), "2024-05-01 10:00:00", "2024-05-01T10:00:00Z"),
        (T.TimestampType(), "2024-05-01T10:00:00+08:00", "2024-05-01T02:00:00Z"),
        (T.TimestampNTZType(), "2024-05-01 10:00:00", "2024-05-01T10:00:00"),
        (T.DateType(), "2024-05-01", "2024-05-01"),
        (T.DateType(), "May", "May"),
        (T.BinaryType(), "0AFF", "0aff"),
        (T.StringType(), "10.00", "10.00"),
        (T.ArrayType(T.DecimalType(5, 1)), ["1", None, "x"], ["1.0", None, "x"]),
        (T.MapType(T.StringType(), T.DecimalType(5, 1)), {"a": "1"}, {"a": "1.0"}),
        (
            T.StructType([T.StructField("a", T.IntegerType()), T.StructField("b", T.DateType())]),
            {"a": "1"},
            {"a": 1, "b": None},
        ),
        (T.StructType([T.StructField("a", T.IntegerType())]), {"z": "1"}, {"z": "1", "a": None}),
        (T.IntegerType(), ["1"], ["1"]),
        (SEQ, "5", {"generation": "0", "phase": "1", "position": ["5"], "arrival": ["0"], "row": "0"}),
        (T.IntegerType(), None, None),
    ],
)
def test_expected_values_by_the_type_of_their_column(
    kind: T.DataType, written: object, as_the_model_writes_it: object
) -> None:
    assert fitted(written, kind) == as_the_model_writes_it


@pytest.mark.parametrize(("kind", "value"), [(T.BooleanType(), "yes"), (T.IntegerType(), "1.5"), (T.DateType(), "May")])
def test_a_given_value_that_is_none_of_its_type(kind: T.DataType, value: str) -> None:
    with pytest.raises(QueryFailed, match=f'"{value}" is no {kind.simpleString()}'):
        typed(value, kind)


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
