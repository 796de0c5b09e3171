"""Records of Avro against fastavro, for random schemas and values; and bytes that are none, by accident or by intent.
Without Spark.
"""

from __future__ import annotations

import itertools
import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.functions.avro import reader as avro_reader
from runner.functions.avro.layout import Layout, Slot
from runner.functions.avro.messages import Found, record_decoder
from runner.functions.avro.reader import Malformed, plain, read_long, skip_long, skipper
from runner.functions.avro.schema import Record, Schema, parse_schema
from runner.functions.avro.texts import text_reader
from tests.avro_cases import encoded
from tests.avro_types import array_of, map_of, record_type
from tests.pages import table
from tests.random_avro import Made, damaged, decoded, long_bytes, messages, one_of, text_bytes, up_to

TABLES = table("avro")
SLOT_KINDS = ("text", "scalar", "number", "texts", "names", "numbers", "map", "row", "positional")
REFUSED = (Malformed, IndexError, RecursionError)
NODE = record_type("node", value="long", next=["null", "node"])
LEAST_LONG, LARGEST_LONG = -(2**63), 2**63 - 1


def record_of(**fields: Any) -> Record:
    written = [{"name": name, "type": one} for name, one in fields.items()]
    return parse_schema(json.dumps({"type": "record", "name": "message", "fields": written}))


def schema_of(written: Any) -> Schema:
    return record_of(f=written).fields["f"]


def decoder(schema: Record, *slots: Slot) -> Callable[[bytes], Found]:
    return record_decoder(schema, Layout((), slots, {}))


# --- random schemas and values


@given(messages(), st.binary(max_size=5), st.binary(max_size=5))
def test_values_are_those_of_fastavro(sent: tuple[Made, list[bytes]], before: bytes, behind: bytes) -> None:
    """Whatever stands around them; and what only begins like a value is none."""
    made, data = sent
    schema = parse_schema(made.text)
    read, skip = plain(schema), skipper(schema)
    for one in data:
        value, end = read(before + one + behind, len(before))
        # Their texts, since nan is not equal to itself, and 1, 1.0 and True are equal to each other.
        assert repr(value) == repr(decoded(made.parsed, one))
        assert end == skip(before + one + behind, len(before)) == len(before) + len(one)
        for each in (read, skip):
            for cut in {*range(0, len(one), 1 + len(one) // 10), *range(len(one))[-3:]}:
                with pytest.raises((Malformed, IndexError)):
                    each(one[:cut], 0)


def test_blocks_of_lists() -> None:
    """Several blocks, with and without their length in bytes, as fastavro never writes them."""
    schema = record_type("message", a=array_of("string"), m=map_of("long"))
    items, entries = (
        [text_bytes(text) for text in ("", "a", "中" * 50)],
        [text_bytes(key) + long_bytes(number) for key, number in (("a", 1), ("b", -(2**60)), ("a", 3))],
    )
    for with_lengths, sizes in itertools.product(
        itertools.product([False, True], repeat=2), ([3], [1, 2], [2, 1], [1, 1, 1])
    ):
        data = blocks(items, sizes, with_lengths[0]) + blocks(entries, sizes, with_lengths[1])
        value, end = plain(parse_schema(json.dumps(schema)))(data, 0)
        assert (
            value
            == decoded(fastavro.parse_schema(schema), data)
            == {"a": ["", "a", "中" * 50], "m": {"a": 3, "b": -(2**60)}}
        )
        assert end == skipper(parse_schema(json.dumps(schema)))(data, 0) == len(data)


def blocks(items: list[bytes], sizes: list[int], with_lengths: bool) -> bytes:
    rest, out = iter(items), b""
    for size in sizes:
        body = b"".join(itertools.islice(rest, size))
        out += (long_bytes(-size) + long_bytes(len(body)) if with_lengths else long_bytes(size)) + body
    return out + b"\0"


@pytest.mark.parametrize("count", [1, 63, 64, 65, 100, 8200])
def test_unions_and_enums_of_many(count: int) -> None:
    """The numbers of the first 64 take one byte, those of the first 8,192 two."""
    symbols = [f"S{number}" for number in range(count)]
    union = [{"type": "fixed", "name": f"F{number}", "size": 1} for number in range(count)]
    record = record_of(e={"type": "enum", "name": "E", "symbols": symbols}, u=union)
    read, skip, decode = plain(record), skipper(record), decoder(record)
    for number in {0, 1, 62, 63, 64, 65, count // 2, count - 2, count - 1} & set(range(count)):
        data = long_bytes(number) * 2 + b"x"
        assert read(data, 0) == ({"e": f"S{number}", "u": b"x"}, len(data))
        assert skip(data, 0) == len(data)
    for number in (count, count + 1, -1, -count, LARGEST_LONG, LEAST_LONG):
        for data, field in ((long_bytes(number) + b"\0x", "e"), (b"\0" + long_bytes(number) + b"x", "u")):
            assert decode(data).reason == "bad-avro"
            kind = f"symbol {number} of an enum" if field == "e" else f"branch {number} of a union"
            assert decode(data).detail == f"{kind} of {count}, at byte {'eu'.index(field)}, in {field}"


# --- bytes that were damaged


@st.composite
def layouts(draw: Any, schema: Record) -> Layout:
    """Slots of all kinds, on paths that lead through the schema."""
    slots = []
    for name, one in schema.fields.items():
        for _ in range(draw(up_to(2))):
            path: list[str] = [name]
            while isinstance(one, Record) and one.fields and draw(up_to(3)):
                path.append(one_of(draw, list(one.fields)))
                one = one.fields[path[-1]]
            slots.append(Slot((*path, *"abc"[: draw(up_to(2))]), one_of(draw, SLOT_KINDS)))
    return Layout((), tuple(slots), {}, one_of(draw, [0, 0, 5]))


@st.composite
def damaged_messages(draw: Any) -> tuple[Made, Layout, list[bytes]]:
    made, data = draw(messages())
    layout = draw(layouts(parse_schema(made.text)))
    return made, layout, [draw(damaged(one[:4000])) for one in data] + [draw(st.binary(max_size=50))]


def test_damaged_values() -> None:
    """They are read as fastavro reads them, or refused, by all that reads them; and nothing else is raised."""
    outcomes = set()

    @given(damaged_messages())
    def check(sent: tuple[Made, Layout, list[bytes]]) -> None:
        made, layout, data = sent
        schema = parse_schema(made.text)
        read, skip, decode = plain(schema), skipper(schema), record_decoder(schema, layout)
        for one in data:
            value, end, why = attempt(read, one)
            _, skipped, _ = attempt(lambda data, position: (None, skip(data, position)), one)
            if end == len(one):
                assert repr(value) == repr(decoded(made.parsed, one))
            found = decode(bytes(layout.skip_bytes) + one)
            outcomes.add(found.reason)
            if why not in NOT_ALWAYS:
                assert skipped == end
                assert found.reason == ("bad-avro" if end is None else "schema-mismatch" if end < len(one) else None)
            assert len(found.values) == len(layout.slots) and (found.reason is None) == (found.detail is None)
            assert found.reason != "bad-avro" or set(found.values) <= {None}

    check()
    assert outcomes == {None, "bad-avro", "schema-mismatch"}


# Texts that are stepped over are not looked at, and how deep is too deep depends on who reads.
NOT_ALWAYS = ("text that is not UTF-8", "RecursionError")


def attempt(read: Callable[[bytes, int], Any], data: bytes) -> tuple[Any, int | None, str | None]:
    try:
        return *read(data, 0), None
    except REFUSED as error:
        return None, None, error.why if isinstance(error, Malformed) else type(error).__name__


# --- bytes that are made to harm


@contextmanager
def bounded(most_bytes: int, most_seconds: float) -> Iterator[None]:
    started = time.perf_counter()
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most_bytes
    finally:
        tracemalloc.stop()
    assert time.perf_counter() - started < most_seconds


LENGTHS = (2**60, LARGEST_LONG, 2**31, 1_000_000, -1, -(2**60), LEAST_LONG)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("written", ["string", "bytes", map_of("null"), map_of("string"), array_of("string")], ids=str)
def test_lengths_that_lie(written: Any, length: int) -> None:
    """Of a text, of some bytes, of a text in a list, of a key; and of the block before it."""
    schema = schema_of(written)
    attacks = (
        [long_bytes(length) + b"abc", b"\x02" + long_bytes(length) + b"abc", b"\x01" + long_bytes(length) + b"\x02a\0"]
        if isinstance(written, dict)
        else [long_bytes(length) + b"abc"]
    )
    for data in attacks:
        with bounded(200_000, 10):
            for read in (
                plain(schema),
                lambda data, position: skipper(schema)(data, position),
                text_reader(schema, {}),
            ):
                with pytest.raises((Malformed, IndexError)):
                    read(data, 0)


@pytest.mark.parametrize(
    "items",
    ["null", {"type": "fixed", "name": "F", "size": 0}, record_type("R", n="null")],
    ids=["null", "fixed", "record"],
)
def test_items_without_bytes(items: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few are what the specification allows. Of many, a few bytes would make any number of them, in one block or in
    as many as the message holds.
    """
    monkeypatch.setattr(avro_reader, "MAX_EMPTY_ITEMS", 2000)
    record = record_of(a=array_of(items))
    read, slots = plain(record), [Slot(("a",), kind) for kind in ("texts", "positional")]
    one = plain(schema_of(items))(b"", 0)[0]
    assert read(long_bytes(1000) + long_bytes(-10) + b"\0\0", 0) == ({"a": [one] * 1010}, 5)
    for data in (
        long_bytes(2**60),
        long_bytes(-(2**60)) + b"\0",
        long_bytes(LEAST_LONG) + b"\0",
        long_bytes(2000) * 4_000,
        long_bytes(20_000) * 4_000,
    ):
        with bounded(5_000_000, 10):
            assert decoder(record, *slots)(data + b"\0").reason == "bad-avro"
            for refuse in (read, lambda data, position: (None, skipper(record)(data, position))):
                with pytest.raises(Malformed):
                    refuse(data + b"\0", 0)


def test_deep_values() -> None:
    record = parse_schema(json.dumps(NODE))
    whole = decoder(record, Slot(("next",), "text"), Slot(("next", "value"), "text"))
    for depth in (1, 50):
        data = b"\x0a\x02" * depth + b"\x0a\0"
        expected = decoded(fastavro.parse_schema(NODE), data)
        assert plain(record)(data, 0) == (expected, len(data))
        assert json.loads(whole(data).values[0]) == expected["next"]
        assert whole(data).values[1] == "5"
    for depth in (10_000, 1_000_000):
        with bounded(20_000_000, 20):
            for decode in (whole, decoder(record)):
                found = decode(b"\x0a\x02" * depth + b"\x0a\0")
                assert (found.reason, found.detail) == ("bad-avro", "too deep, from byte 1 on, in next")


def test_a_record_that_holds_itself_always() -> None:
    record = parse_schema('{"type": "record", "name": "r", "fields": [{"name": "again", "type": "r"}]}')
    assert decoder(record)(b"").detail == "too deep, from byte 0 on, in again"


def test_no_bytes() -> None:
    assert decoder(record_of(a="long"))(b"")[1:] == ("bad-avro", "the message ends too early, at byte 0, in a")
    assert decoder(record_of(a="null"), Slot(("a",), "text"))(b"") == Found([None])
    assert decoder(record_of())(b"") == Found([])
    assert decoder(record_of())(b"abc")[1:] == ("schema-mismatch", "3 bytes after the record, from byte 0 on")


# --- what the detail says


@pytest.mark.parametrize(("written", "data", "detail"), TABLES["damage"])
def test_where_it_is_damaged(written: Any, data: str, detail: str) -> None:
    """Behind a first field of one byte."""
    record = record_of(first="long", f=written)
    message = b"\x02" + bytes.fromhex(data)
    found = decoder(record, Slot(("f",), "text"), Slot(("first",), "text"))(message)
    assert (found.values, found.reason, found.detail) == ([None, None], "bad-avro", detail)
    # Texts that nobody wants are not looked at.
    assert decoder(record)(message) == (Found([]) if "UTF-8" in detail else Found([], "bad-avro", detail))


@pytest.mark.parametrize(("data", "number"), TABLES["numbers"])
def test_numbers_of_many_bytes(data: str, number: int | None) -> None:
    encoding = bytes.fromhex(data)
    if number is None:
        for read in (read_long, lambda data, position: (None, skip_long(data, position))):
            with pytest.raises(Malformed) as refused:
                read(b"xy" + encoding, 2)
            assert (refused.value.position, refused.value.why) == (2, "a number of more than 64 bits")
    else:
        assert decoded("long", encoding) == number
        assert read_long(encoding, 0) == (number, len(encoding))
        assert skip_long(encoding, 0) == len(encoding)
        assert text_reader(schema_of("long"), {})(encoding, 0) == (str(number), len(encoding))


def test_numbers_of_all_sizes() -> None:
    powers = [2**bits for bits in range(63)]
    for number in (*range(-300, 300), *powers, *(-power - 1 for power in powers), LARGEST_LONG, LEAST_LONG):
        data = encoded("long", number)
        assert read_long(data, 0) == (number, len(data))
        assert text_reader(schema_of("int"), {})(data, 0) == (str(number), len(data))
