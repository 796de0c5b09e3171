"""Texts of values in Avro: canonical ones, numbers that are written out, and what stays as it was sent. Without
Spark.
"""

from __future__ import annotations

import datetime
import json
import math
from typing import Any

import fastavro
import numpy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runner.functions.avro.layout import Layout, RecordEntry, Slot
from runner.functions.avro.messages import Found, record_decoder
from runner.functions.avro.schema import parse_schema
from runner.functions.avro.texts import text_reader
from runner.functions.avro.times import Ambiguous, instant_text
from runner.functions.avro.values import AsSent, double_text, float_text, written_out
from tests.avro_cases import encoded
from tests.avro_types import array_of, record_type
from tests.pages import table
from tests.random_avro import decoded, long_bytes, without_logical_types
from tests.test_avro_reader import LARGEST_LONG, bounded, schema_of

TABLES = table("avro_texts")


# --- texts of values


def text_of(written: Any, data: bytes) -> Any:
    value, end = text_reader(schema_of(written), {})(data, 0)
    assert end == len(data)
    return written_out([value])[0]


@pytest.mark.parametrize(("written", "value", "text"), TABLES["texts"])
def test_texts_of_values(written: Any, value: Any, text: str | None) -> None:
    found = text_of(written, encoded(fastavro.parse_schema(written), value))
    assert found == text
    assert not isinstance(found, AsSent)


def logical(kind: str, logical_name: str, **others: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical_name, **others}


def clock(value: datetime.datetime | datetime.time, between: str = "T") -> str:
    """A clock without the zeros at the end of its fraction."""
    text = value.isoformat().replace("+00:00", "").replace("T", between)
    return text.rstrip("0") if "." in text else text


TIMES = {
    logical_type: (kind, make)
    for logical_type, kind, make in [
        ("date", "int", lambda value: value.isoformat()),
        ("time-millis", "int", clock),
        ("time-micros", "long", clock),
        ("timestamp-millis", "long", lambda value: clock(value) + "Z"),
        ("timestamp-micros", "long", lambda value: clock(value) + "Z"),
        ("local-timestamp-millis", "long", lambda value: clock(value, " ")),
        ("local-timestamp-micros", "long", lambda value: clock(value, " ")),
    ]
}
UNITS = {"date": 86400, "millis": 1000, "micros": 1_000_000}


def counts(name: str) -> tuple[int, int]:
    """The first and the last number of a logical type that Python's own types have."""
    unit = UNITS[name.rpartition("-")[2]]
    if name == "date":
        return -719162, 2932896
    return (0, 86400 * unit - 1) if name.startswith("time-") else (-62135596800 * unit, 253402300800 * unit - 1)


COUNTS = st.sampled_from(list(TIMES)).flatmap(
    lambda name: st.tuples(st.just(name), st.lists(st.integers(*counts(name)), max_size=20))
)


@given(COUNTS)
def test_times(sent: tuple[str, list[int]]) -> None:
    name, numbers = sent
    kind, make = TIMES[name]
    written, (first, last) = logical(kind, name), counts(name)
    for number in {0, first, last, min(UNITS[name.rpartition("-")[2]], last), *numbers}:
        data = encoded(kind, number)
        assert text_of(written, data) == make(decoded(written, data))


@pytest.mark.parametrize("name", TIMES)
def test_times_that_do_not_fit(name: str) -> None:
    kind, _ = TIMES[name]
    largest = 2**31 - 1 if kind == "int" else LARGEST_LONG
    numbers = [86_400_000 if kind == "int" else 86_400_000_000, -1]
    for number in numbers if name.startswith("time-") else [largest, -largest - 1]:
        found = text_of(logical(kind, name), encoded(kind, number))
        assert (found, type(found)) == (str(number), AsSent)


@given(st.integers(-LARGEST_LONG, LARGEST_LONG))
@example(0)
@example(1_500_000_000)
@example(LARGEST_LONG)
@example(-LARGEST_LONG)
def test_times_in_nanoseconds(number: int) -> None:
    """Any number of 64 bits is one."""
    whole, _, fraction = str(numpy.datetime64(number, "ns")).partition(".")
    expected = f"{whole}.{fraction}".rstrip("0").rstrip(".")
    data = encoded("long", number)
    assert text_of(logical("long", "timestamp-nanos"), data) == expected + "Z"
    assert text_of(logical("long", "local-timestamp-nanos"), data) == expected.replace("T", " ")


EDGES = (0, 1, -1, 127, 128, -128, -129)


@given(st.sampled_from([0, 1, 2, 9, 38, 300]), st.lists(st.integers(-(10**60), 10**60), max_size=5))
def test_decimals(scale: int, numbers: list[int]) -> None:
    decimal = {"logicalType": "decimal", "precision": 400, "scale": scale}
    for number in (*EDGES, 10**scale, -(10**scale), *numbers):
        packed = number.to_bytes(26 if scale < 300 else 130, "big", signed=True)
        data = long_bytes(len(packed)) + packed
        whole, rest = divmod(abs(number), 10**scale)
        expected = "-" * (number < 0) + f"{whole}" + (f".{rest:0{scale}d}" if scale else "")
        assert text_of({"type": "bytes", **decimal}, data) == expected
        assert text_of({"type": "fixed", "name": "F", "size": len(packed), **decimal}, packed) == expected
        assert scale == 300 or format(decoded({"type": "bytes", **decimal}, data), "f") == expected


@pytest.mark.parametrize(
    ("written", "data", "text"),
    [
        (logical("bytes", "decimal", scale=-1), b"\x02\x05", "BQ=="),
        (logical("bytes", "decimal", scale=10**9), b"\x02\x05", "BQ=="),
        (logical("fixed", "decimal", scale=-1, name="F", size=1), b"\x05", "BQ=="),
        (logical("bytes", "decimal", scale=0), long_bytes(5000) + b"\x01" * 5000, None),
    ],
)  # fmt: skip
def test_decimals_that_do_not_fit(written: Any, data: bytes, text: str | None) -> None:
    found = text_of(written, data)
    assert isinstance(found, AsSent)
    assert found == (text or "AQEB" * 1666 + "AQE=")


@pytest.mark.parametrize("name", [*TIMES, "timestamp-nanos", "decimal", "uuid", "unknown"])
def test_logical_types_of_what_they_are_not_made_of(name: str) -> None:
    """As the specification has it, they say nothing. A text must not be multiplied like a number of days."""
    values = [
        ("string", "a" * 5000, "a" * 5000),
        ("boolean", True, "true"),
        ("double", 1.5, "1.5"),
        ("float", 1.5, "1.5"),
    ]
    for kind, value, text in [
        *values,
        *([] if name == "decimal" else [("bytes", b"\0\xff", "AP8=")]),
        *([("int", 5, "5"), ("long", 5, "5")] if name in ("decimal", "uuid", "unknown") else []),
    ]:
        with bounded(300_000, 10):
            found = text_of(logical(kind, name, scale=1), encoded(kind, value))
        assert (found, isinstance(found, AsSent)) == (text, False), kind


# --- numbers of 32 and 64 bits


def digits_of(text: str) -> str:
    """The digits that say something."""
    return text.lstrip("-").partition("e")[0].replace(".", "").strip("0")


def test_floats_of_32_bits() -> None:
    """Numbers in all of the range, and those around each power of two."""
    powers = [exponent << 23 | more for exponent in range(255) for more in (0, 1, 0x7FFFFF)]
    patterns = numpy.array([*powers, 1 << 31, *range(100), *range(0, 1 << 32, 200_003)], numpy.uint32)
    values = patterns.view(numpy.float32)
    values = values[numpy.isfinite(values)]
    texts = [float_text(float(value)) for value in values]
    # Back as bits, to tell the two zeros apart.
    back = numpy.array([float(text) for text in texts]).astype(numpy.float32)
    assert (back.view(numpy.uint32) == values.view(numpy.uint32)).all()
    # Beside three powers of two lies a shorter text that is not the nearest of its length: they have nine digits where
    # eight would do.
    longer = {one for one, value in zip(texts, values, strict=True) if len(digits_of(one)) > len(digits_of(str(value)))}
    assert len(longer) <= 3
    assert {math.frexp(float(numpy.float32(text)))[0] for text in longer} <= {0.5}


@given(st.lists(st.floats(), max_size=20))
def test_floats_of_64_bits(values: list[float]) -> None:
    for value in values:
        text = double_text(value)
        if math.isfinite(value):
            assert (float(text), math.copysign(1, float(text))) == (value, math.copysign(1, value))
            assert len(digits_of(text)) <= len(digits_of(str(numpy.float64(value))))
            assert not text.endswith(".0")
        else:
            assert text in ("NaN", "Infinity", "-Infinity")


# --- in a message

NOTHING = RecordEntry(
    classes={"else": "string"}, text=("v",), bytes=(), charset=(), charsets={}, srid=(), parts={}, labels=(), length=(),
    is_null=(), not_sent=(),
)  # fmt: skip
AMOUNT = record_type("amount", v="string")
SMALL_WITH_LARGE_SCALE = {"type": "bytes", "logicalType": "decimal", "precision": 10_000, "scale": 10_000}
POSITIONAL = [Slot(("before",), "positional"), Slot(("after",), "positional")]


def found_in(item: Any, before: list[Any], after: list[Any], *slots: Slot, class_name: str = "decimal") -> Found:
    """What is read of a message with two lists of such items."""
    named = item["name"] if item["type"] == "record" else item
    schema = record_type("message", before=array_of(item), after=array_of(named))
    layout = Layout((), tuple(slots or POSITIONAL), {"amount": {**NOTHING, "classes": {"else": class_name}}})
    written = fastavro.parse_schema(without_logical_types(schema))
    message = encoded(written, {"before": before, "after": after})
    return record_decoder(parse_schema(json.dumps(schema)), layout)(message)


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
    [(AMOUNT, amounts("1e9999", 6_000), "1e9999"), (SMALL_WITH_LARGE_SCALE, [b"\x05"] * 6_000, "BQ==")],
    ids=["exponent", "scale"],
)
def test_a_small_message_stays_small(item: Any, values: list[Any], as_sent: str) -> None:
    slots = (*POSITIONAL, Slot(("before",), "texts"))
    with bounded(10_000_000, 60):
        found = found_in(item, values, [], *slots)
    assert found.values[0][:3] == ([as_sent] * 6_000, [], list(range(6_000)))


def test_a_large_scale_is_written_out() -> None:
    texts, _, as_sent, *_ = found_in(SMALL_WITH_LARGE_SCALE, [b"\x05"] * 9, []).values[0]
    assert set(texts) == {"0." + "0" * 9_999 + "5"} and not as_sent


@pytest.mark.parametrize(("class_name", "kind", "value", "text"), TABLES["of_classes"])
def test_numbers_and_texts_are_values(class_name: str, kind: str, value: Any, text: str) -> None:
    assert of_class(class_name, kind, value) == ([text], [])


@pytest.mark.parametrize("class_name", ["integer", "decimal", "bit", "enum", "set"])
@pytest.mark.parametrize(("kind", "value", "text"), [("bytes", b"\xd7m\xf8", "1234"), ("boolean", True, "true")])
def test_bytes_whose_base64_looks_like_a_number_are_none(class_name: str, kind: str, value: Any, text: str) -> None:
    assert of_class(class_name, kind, value) == ([text], [0])


def of_class(class_name: str, kind: str, value: Any) -> tuple[list[str], list[int]]:
    """The text of a record's value, and whether it is as sent."""
    amount = record_type("amount", v=kind, labels=array_of("string"))
    schema = record_type("message", row=array_of(amount))
    entry: RecordEntry = {**NOTHING, "classes": {"else": class_name}, "labels": ("labels",)}
    layout = Layout((), (Slot(("row",), "positional"),), {"amount": entry})
    message = encoded(fastavro.parse_schema(schema), {"row": [{"v": value, "labels": ["a", "b"]}]})
    texts, _, as_sent, *_ = record_decoder(parse_schema(json.dumps(schema)), layout)(message).values[0]
    return texts, list(as_sent)


@pytest.mark.parametrize(("parts", "text"), TABLES["instants"])
def test_instants_have_the_years_1_to_9999(parts: dict[str, Any], text: str | None) -> None:
    assert instant_text(parts) == text


@pytest.mark.parametrize(("parts", "is_ambiguous"), TABLES["ambiguous"])
def test_wall_clocks_that_came_twice_are_marked(parts: dict[str, Any], is_ambiguous: bool) -> None:
    assert isinstance(instant_text(parts), Ambiguous) == is_ambiguous
