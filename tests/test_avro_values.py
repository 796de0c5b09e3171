"""Numbers that are written out, and what may stand for a value of a class. Without Spark."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import fastavro
import pytest

from runner.functions.avro.layout import Layout, RecordEntry, Slot
from runner.functions.avro.messages import Found, record_decoder
from runner.functions.avro.schema import parse_schema
from runner.functions.avro.times import FIRST_SECOND, LAST_SECOND, Ambiguous, instant_text
from tests.avro_cases import encoded

NOTHING = RecordEntry(
    classes={"else": "string"}, text=("v",), bytes=(), charset=(), charsets={}, srid=(), parts={}, labels=(), length=(),
    is_null=(), not_sent=(),
)  # fmt: skip
AMOUNT = {"type": "record", "name": "amount", "fields": [{"name": "v", "type": "string"}]}
SMALL_WITH_LARGE_SCALE = {"type": "bytes", "logicalType": "decimal", "precision": 10_000, "scale": 10_000}
POSITIONAL = [Slot(("before",), "positional"), Slot(("after",), "positional")]


def clock(year: int, month: int, day: int, hour: int) -> dict[str, int]:
    return {"year": year, "month": month, "day": day, "hour": hour, "minute": 0, "second": 0}


def found_in(item: Any, before: list[Any], after: list[Any], *slots: Slot, class_name: str = "decimal") -> Found:
    """What is read of a message with two lists of such items."""
    items = {"type": "array", "items": item}
    fields = [{"name": "before", "type": items}, {"name": "after", "type": json.loads(json.dumps(items))}]
    if isinstance(item, dict) and item["type"] == "record":
        fields[1]["type"]["items"] = item["name"]
    schema = {"type": "record", "name": "message", "fields": fields}
    layout = Layout((), tuple(slots or POSITIONAL), {"amount": {**NOTHING, "classes": {"else": class_name}}})
    written = without_logical_type(schema)
    return record_decoder(parse_schema(json.dumps(schema)), layout)(
        encoded(fastavro.parse_schema(written), {"before": before, "after": after})
    )


def without_logical_type(schema: Any) -> Any:
    return json.loads(json.dumps(schema).replace("logicalType", "aliasOfNothing"))


def amounts(text: str, count: int) -> list[dict[str, str]]:
    return [{"v": text}] * count


# A number of 7 characters, 10,001 when it is written out: each of these gets 9,994 characters longer.
LONGEST, LONGEST_WRITTEN = "1e10000", "1" + "0" * 10_000
FITTING = 100_000 // 9_994


@pytest.mark.parametrize("class_name", ["decimal", "integer"])
def test_numbers_are_written_out_while_their_image_does_not_get_too_long(class_name: str) -> None:
    """Each image for itself, and all of its numbers or none."""
    found = found_in(AMOUNT, amounts(LONGEST, FITTING), amounts(LONGEST, FITTING + 1), class_name=class_name)
    texts, _, as_sent, *_ = found.values[0]
    assert set(texts) == {LONGEST_WRITTEN} and not as_sent
    assert found.values[1][:3] == ([LONGEST] * (FITTING + 1), [], list(range(FITTING + 1)))


def test_numbers_without_exponent_do_not_count() -> None:
    values = [*amounts("9" * 2_000, 1_000), *amounts("1e3", 1), *amounts("much", 1)]
    texts, _, as_sent, *_ = found_in(AMOUNT, values, []).values[0]
    assert texts == [*["9" * 2_000] * 1_000, "1000", "much"]
    assert as_sent == [1_001]


@pytest.mark.parametrize(
    ("item", "values", "as_sent"),
    [(AMOUNT, amounts("1e9999", 30_000), "1e9999"), (SMALL_WITH_LARGE_SCALE, [b"\x05"] * 30_000, "BQ==")],
    ids=["exponent", "scale"],
)
def test_a_small_message_stays_small(item: Any, values: list[Any], as_sent: str) -> None:
    slots = (*POSITIONAL, Slot(("before",), "texts"))
    tracemalloc.start()
    found = found_in(item, values, [], *slots)
    largest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.values[0][:3] == ([as_sent] * 30_000, [], list(range(30_000)))
    assert largest < 30_000_000


def test_a_large_scale_is_written_out() -> None:
    texts, _, as_sent, *_ = found_in(SMALL_WITH_LARGE_SCALE, [b"\x05"] * 9, []).values[0]
    assert set(texts) == {"0." + "0" * 9_999 + "5"} and not as_sent


@pytest.mark.parametrize(
    ("class_name", "kind", "value", "text"),
    [
        ("integer", "string", "12e2", "1200"),
        ("decimal", "double", 1e22, "1" + "0" * 22),
        ("decimal", "long", 12, "12"),
        ("enum", "long", 2, "b"),
        ("set", "int", 3, "a,b"),
        ("bit", "long", 5, "5"),
        ("string", "bytes", b"\xd7m\xf8", "1234"),
    ],
)
def test_numbers_and_texts_are_values(class_name: str, kind: str, value: Any, text: str) -> None:
    assert of_class(class_name, kind, value) == ([text], [])


@pytest.mark.parametrize("class_name", ["integer", "decimal", "bit", "enum", "set"])
@pytest.mark.parametrize(("kind", "value", "text"), [("bytes", b"\xd7m\xf8", "1234"), ("boolean", True, "true")])
def test_bytes_whose_base64_looks_like_a_number_are_none(class_name: str, kind: str, value: Any, text: str) -> None:
    assert of_class(class_name, kind, value) == ([text], [0])


def of_class(class_name: str, kind: str, value: Any) -> tuple[list[str], list[int]]:
    """The text of a record's value, and whether it is as sent."""
    labels = {"name": "labels", "type": {"type": "array", "items": "string"}}
    record = {"type": "record", "name": "amount", "fields": [{"name": "v", "type": kind}, labels]}
    schema = {
        "type": "record",
        "name": "message",
        "fields": [{"name": "row", "type": {"type": "array", "items": record}}],
    }
    entry: RecordEntry = {**NOTHING, "classes": {"else": class_name}, "labels": ("labels",)}
    layout = Layout((), (Slot(("row",), "positional"),), {"amount": entry})
    message = encoded(fastavro.parse_schema(schema), {"row": [{"v": value, "labels": ["a", "b"]}]})
    texts, _, as_sent, *_ = record_decoder(parse_schema(json.dumps(schema)), layout)(message).values[0]
    return texts, list(as_sent)


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"epoch_s": FIRST_SECOND}, "0001-01-01T00:00:00Z"),
        ({"epoch_s": LAST_SECOND, "nano": 999_999_999}, "9999-12-31T23:59:59.999999999Z"),
        ({"epoch_s": FIRST_SECOND - 1}, None),
        ({"epoch_s": LAST_SECOND + 1}, None),
        ({"epoch_s": 2**63 - 1}, None),
        ({**clock(1, 1, 1, 0), "zone": "UTC"}, "0001-01-01T00:00:00Z"),
        ({**clock(1, 1, 1, 8), "zone": "+08:00"}, "0001-01-01T00:00:00Z"),
        ({**clock(1, 1, 1, 7), "zone": "+08:00"}, None),
        ({**clock(1, 1, 1, 7), "zone": "Asia/Shanghai"}, None),
        ({**clock(9999, 12, 31, 15), "zone": "-08:00"}, "9999-12-31T23:00:00Z"),
        ({**clock(9999, 12, 31, 16), "zone": "-08:00"}, None),
        ({**clock(9999, 12, 31, 16), "zone": "America/Los_Angeles"}, None),
        ({**clock(0, 1, 1, 0), "zone": "UTC"}, None),
        ({**clock(10_000, 1, 1, 0), "zone": "UTC"}, None),
        ({**clock(2**31 - 1, -(2**31), 1, 0), "zone": "UTC"}, None),
    ],
)
def test_instants_have_the_years_1_to_9999(parts: dict[str, Any], text: str | None) -> None:
    assert instant_text(parts) == text


@pytest.mark.parametrize(
    ("parts", "is_ambiguous"),
    [
        ({**clock(2021, 11, 7, 1), "zone": "America/New_York"}, True),
        ({**clock(2021, 11, 7, 2), "zone": "America/New_York"}, False),
        ({**clock(2021, 11, 7, 1), "zone": "-04:00"}, False),
        ({"epoch_s": 1_636_263_000, "zone": "America/New_York"}, False),
        ({**clock(9999, 12, 31, 23), "zone": "Asia/Shanghai"}, False),
        ({**clock(1, 1, 1, 9), "zone": "Asia/Shanghai"}, False),
    ],
)
def test_wall_clocks_that_came_twice_are_marked(parts: dict[str, Any], is_ambiguous: bool) -> None:
    assert isinstance(instant_text(parts), Ambiguous) == is_ambiguous
