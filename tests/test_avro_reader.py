"""Records of Avro against fastavro, for random schemas and values; and bytes that are none, by accident or by intent.
Without Spark.
"""

from __future__ import annotations

import datetime
import itertools
import json
import math
import random
import struct
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import fastavro
import numpy
import pytest

from runner.functions.avro import reader as avro_reader
from runner.functions.avro.layout import Layout, Slot
from runner.functions.avro.messages import Found, message_decoder, reach, record_decoder
from runner.functions.avro.reader import Malformed, plain, read_long, skip_long, skipper
from runner.functions.avro.schema import Record, Schema, parse_schema
from runner.functions.avro.texts import text_reader
from runner.functions.avro.values import AsSent, double_text, float_text, written_out
from tests.avro_cases import encoded
from tests.random_avro import RandomSchema, decoded, long_bytes, mutated, text_bytes

SLOT_KINDS = ("text", "scalar", "number", "texts", "names", "numbers", "map", "row", "positional")
REFUSED = (Malformed, IndexError, RecursionError)
NODE = {
    "type": "record",
    "name": "node",
    "fields": [{"name": "value", "type": "long"}, {"name": "next", "type": ["null", "node"]}],
}
LEAST_LONG, LARGEST_LONG = -(2**63), 2**63 - 1


def record_of(**fields: Any) -> Record:
    return parse_schema(
        json.dumps(
            {
                "type": "record",
                "name": "message",
                "fields": [{"name": name, "type": one} for name, one in fields.items()],
            }
        )
    )


def schema_of(written: Any) -> Schema:
    return record_of(f=written).fields["f"]


def decoder(schema: Record, *slots: Slot) -> Callable[[bytes], Found]:
    return record_decoder(schema, Layout((), slots, {}))


# --- random schemas and values


@pytest.mark.parametrize("first_seed", range(0, 400, 100))
def test_random_values(first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 100):
        made = RandomSchema(seed)
        schema = parse_schema(made.text)
        read, skip = plain(schema), skipper(schema)
        for _ in range(10):
            data = encoded(made.parsed, made.value())
            value, end = read(data, 0)
            # Their texts, since nan is not equal to itself, and 1, 1.0 and True are equal to each other.
            assert repr(value) == repr(decoded(made.parsed, data)), seed
            assert (end, skip(data, 0)) == (len(data), len(data)), seed


def test_what_stands_around_a_value_does_not_matter() -> None:
    draw = random.Random(1)
    for seed in range(60):
        made = RandomSchema(seed)
        schema = parse_schema(made.text)
        data, before, behind = (
            encoded(made.parsed, made.value()),
            draw.randbytes(draw.randrange(9)),
            draw.randbytes(draw.randrange(9)),
        )
        value, end = plain(schema)(before + data + behind, len(before))
        assert repr(value) == repr(decoded(made.parsed, data))
        assert end == skipper(schema)(before + data + behind, len(before)) == len(before) + len(data)


def test_a_beginning_is_no_value() -> None:
    for seed in range(60):
        made = RandomSchema(seed)
        schema, data = parse_schema(made.text), encoded(made.parsed, made.value())
        for end in range(0, len(data), 1 + len(data) // 100):
            for read in (plain(schema), skipper(schema)):
                with pytest.raises((Malformed, IndexError)):
                    read(data[:end], 0)


def test_blocks_of_lists() -> None:
    """Several blocks, with and without their length in bytes, as fastavro never writes them."""
    schema = {
        "type": "record",
        "name": "message",
        "fields": [
            {"name": "a", "type": {"type": "array", "items": "string"}},
            {"name": "m", "type": {"type": "map", "values": "long"}},
        ],
    }
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


def layouts(draw: random.Random, schema: Record) -> Layout:
    """Slots of all kinds, on paths that lead through the schema."""
    slots = []
    for name, one in schema.fields.items():
        for _ in range(draw.randrange(3)):
            path: list[str] = [name]
            while isinstance(one, Record) and one.fields and draw.random() < 0.8:
                path.append(draw.choice(list(one.fields)))
                one = one.fields[path[-1]]
            slots.append(Slot((*path, *draw.choices("abc", k=draw.choice([0, 0, 1, 2]))), draw.choice(SLOT_KINDS)))
    return Layout((), tuple(slots), {}, draw.choice([0, 0, 0, 5]))


@pytest.mark.parametrize("first_seed", range(0, 300, 100))
def test_damaged_values(first_seed: int) -> None:
    draw = random.Random(first_seed)
    outcomes = set()
    for seed in range(first_seed, first_seed + 100):
        made = RandomSchema(seed)
        schema = parse_schema(made.text)
        read, skip, layout = plain(schema), skipper(schema), layouts(draw, schema)
        decode = record_decoder(schema, layout)
        for _ in range(12):
            data = mutated(draw, encoded(made.parsed, made.value())[:4000])
            value, end, why = attempt(read, data)
            _, skipped, _ = attempt(lambda data, position, skip=skip: (None, skip(data, position)), data)
            if end == len(data):
                assert repr(value) == repr(decoded(made.parsed, data)), seed
            found = decode(draw.randbytes(layout.skip_bytes) + data)
            outcomes.add(found.reason)
            if why not in NOT_ALWAYS:
                assert skipped == end
                assert found.reason == (
                    "bad-avro" if end is None else "schema-mismatch" if end < len(data) else None
                ), (seed, found)
            assert len(found.values) == len(layout.slots) and (found.reason is None) == (found.detail is None)
            assert found.reason != "bad-avro" or set(found.values) <= {None}
    assert outcomes == {None, "bad-avro", "schema-mismatch"}


# Texts that are stepped over are not looked at, and how deep is too deep depends on who reads.
NOT_ALWAYS = ("text that is not UTF-8", "RecursionError")


def attempt(read: Callable[[bytes, int], Any], data: bytes) -> tuple[Any, int | None, str | None]:
    try:
        return *read(data, 0), None
    except REFUSED as error:
        return None, None, error.why if isinstance(error, Malformed) else type(error).__name__


def test_any_bytes() -> None:
    draw = random.Random(2)
    for seed in range(100):
        schema = parse_schema(RandomSchema(seed).text)
        decode = record_decoder(schema, layouts(draw, schema))
        for size in (0, 1, 2, 5, 20, 500):
            assert decode(draw.randbytes(size)).reason in ("bad-avro", "schema-mismatch", None)


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
@pytest.mark.parametrize(
    "written",
    [
        "string",
        "bytes",
        {"type": "map", "values": "null"},
        {"type": "map", "values": "string"},
        {"type": "array", "items": "string"},
    ],
    ids=str,
)
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
    [
        "null",
        {"type": "fixed", "name": "F", "size": 0},
        {"type": "record", "name": "R", "fields": [{"name": "n", "type": "null"}]},
    ],
    ids=["null", "fixed", "record"],
)
def test_items_without_bytes(items: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few are what the specification allows. Of many, a few bytes would make any number of them, in one block or in
    as many as the message holds.
    """
    monkeypatch.setattr(avro_reader, "MAX_EMPTY_ITEMS", 2000)
    record = record_of(a={"type": "array", "items": items})
    read, slots = plain(record), [Slot(("a",), kind) for kind in ("texts", "positional")]
    one = plain(schema_of(items))(b"", 0)[0]
    assert read(long_bytes(1000) + long_bytes(-10) + b"\0\0", 0) == ({"a": [one] * 1010}, 5)
    for data in (
        long_bytes(2**60),
        long_bytes(-(2**60)) + b"\0",
        long_bytes(LEAST_LONG) + b"\0",
        long_bytes(2000) * 40_000,
        long_bytes(20_000) * 40_000,
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


@pytest.mark.parametrize(
    ("written", "data", "detail"),
    [
        (["null", "long"], "04", "branch 2 of a union of 2, at byte 1, in f"),
        (["null", "long"], "01", "branch -1 of a union of 2, at byte 1, in f"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "02", "symbol 1 of an enum of 1, at byte 1, in f"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "03", "symbol -2 of an enum of 1, at byte 1, in f"),
        ({"type": "array", "items": ["null", "long"]}, "040006", "branch 3 of a union of 2, at byte 3, in f"),
        ("boolean", "02", "a boolean of 2, at byte 1, in f"),
        ("boolean", "ff", "a boolean of 255, at byte 1, in f"),
        ("string", "0661ff63", "text that is not UTF-8, at byte 3, in f"),
        ("string", "02c3", "text that is not UTF-8, at byte 2, in f"),
        ("string", "06eda080", "text that is not UTF-8, at byte 2, in f"),
        ({"type": "map", "values": "null"}, "0202ff00", "text that is not UTF-8, at byte 3, in f"),
        ("string", "08616263", "a length of 4, with 3 bytes left, at byte 1, in f"),
        ("string", "01616263", "a length of -1, with 3 bytes left, at byte 1, in f"),
        ("bytes", "8001", "a length of 64, with 0 bytes left, at byte 1, in f"),
        ("long", "", "the message ends too early, at byte 1, in f"),
        ("long", "80", "the message ends too early, at byte 2, in f"),
        ("double", "00000000000000", "the message ends too early, at byte 8, in f"),
        ({"type": "fixed", "name": "F", "size": 3}, "0000", "the message ends too early, at byte 3, in f"),
        ({"type": "array", "items": "long"}, "0402", "the message ends too early, at byte 3, in f"),
        (
            {"type": "array", "items": "long"},
            f"{long_bytes(10**6).hex()}02",
            "1000000 items, with 1 bytes left, at byte 1, in f",
        ),
    ],
)
def test_where_it_is_damaged(written: Any, data: str, detail: str) -> None:
    """Behind a first field of one byte."""
    record = record_of(first="long", f=written)
    message = b"\x02" + bytes.fromhex(data)
    found = decoder(record, Slot(("f",), "text"), Slot(("first",), "text"))(message)
    assert (found.values, found.reason, found.detail) == ([None, None], "bad-avro", detail)
    # Texts that nobody wants are not looked at.
    assert decoder(record)(message) == (Found([]) if "UTF-8" in detail else Found([], "bad-avro", detail))


@pytest.mark.parametrize(
    ("data", "number"),
    [
        ("00", 0), ("01", -1), ("7f", -64), ("8001", 64),
        ("feffffffffffffffff01", LARGEST_LONG), ("ffffffffffffffffff01", LEAST_LONG),
        # longer than they need to be, but numbers
        ("8000", 0), ("8180808000", -1), ("80808080808080808000", 0), ("8a808080808080808000", 5),
        # of ten bytes with more than 64 bits, and of eleven bytes
        ("ffffffffffffffffff02", None), ("8080808080808080807f", None), ("ffffffffffffffffff03", None),
        ("8080808080808080808000", None), ("8080808080808080808001", None), ("ff" * 20, None), ("ff" * 11, None),
    ],
)  # fmt: skip
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
    for number in sorted(
        {sign * (2**bits + more) for bits in range(64) for more in (-1, 0, 1) for sign in (1, -1)}
        & set(range(-300, 300))
        | {2**bits - 1 for bits in range(64)}
        | {-(2**bits) for bits in range(64)}
    ):
        data = encoded("long", number)
        assert (read_long(data, 0), text_reader(schema_of("int"), {})(data, 0)) == (
            (number, len(data)),
            (str(number), len(data)),
        )


# --- messages


OLD = '{"type": "record", "name": "m", "fields": [{"name": "id", "type": "long"}]}'
NEW = """{"type": "record", "name": "m", "fields": [
  {"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}]}"""
BOTH = (Slot(("id",), "text"), Slot(("note",), "text"))


def test_the_first_schema_that_fits_counts() -> None:
    decode = message_decoder(Layout((NEW, OLD), BOTH, {}))
    old, new = encoded(json.loads(OLD), {"id": 7}), encoded(json.loads(NEW), {"id": 7, "note": "a"})
    assert decode(old, None) == Found(["7", None])
    assert decode(new, None) == Found(["7", "a"])
    # What fits none: what the last one says that knew the fields, else the first.
    assert decode(new + b"x", None) == Found(["7", "a"], "schema-mismatch", "1 bytes after the record, from byte 4 on")
    assert decode(old + b"\x04", None) == Found(
        ["7", None], "schema-mismatch", "1 bytes after the record, from byte 1 on"
    )
    assert decode(b"", None) == Found([None, None], "bad-avro", "the message ends too early, at byte 0, in id")
    for message, expected in ((old, ["7", None]), (new, ["7", "a"])):
        assert message_decoder(Layout((OLD, NEW), BOTH, {}))(message, None) == Found(expected)


def test_a_schema_of_its_own_goes_before() -> None:
    decode = message_decoder(Layout((OLD,), BOTH, {}))
    new = encoded(json.loads(NEW), {"id": 7, "note": "a"})
    for _ in range(2):
        assert decode(new, NEW) == Found(["7", "a"])
        assert decode(new, None).reason == "schema-mismatch"
        assert decode(new, OLD).reason == "schema-mismatch"
    assert message_decoder(Layout((), BOTH, {}))(new, NEW) == Found(["7", "a"])


def test_bytes_before_a_record() -> None:
    decode = message_decoder(Layout((OLD,), BOTH[:1], {}, 5))
    assert decode(b"\0\0\0\0\x01" + encoded(json.loads(OLD), {"id": 300}), None) == Found(["300"])
    assert decode(b"\0\0\0\0", None)[1:] == ("bad-avro", "4 bytes, but 5 come before a record")
    assert decode(b"\0\0\0\0\x01", None)[1:] == ("bad-avro", "the message ends too early, at byte 5, in id")
    assert decode(b"\0\0\0\0\x01\x02\x03", None)[1:] == ("schema-mismatch", "1 bytes after the record, from byte 6 on")


POSITIONAL = Layout((), (Slot(("image",), "positional", "value", "type"),), {})
KIND = {"type": "enum", "name": "kind", "symbols": ["a", "b"]}
SPECIAL = {
    "classes": {"b": "string"},
    "text": ("v",),
    "bytes": (),
    "charset": (),
    "charsets": {},
    "srid": (),
    "parts": {},
    "labels": (),
    "length": (),
    "is_null": [],
    "not_sent": [],
}


def image_of(*fields: tuple[str, Any]) -> str:
    item = {"type": "record", "name": "item", "fields": [{"name": name, "type": one} for name, one in fields]}
    return json.dumps(
        {"type": "record", "name": "m", "fields": [{"name": "image", "type": {"type": "array", "items": item}}]}
    )


@pytest.mark.parametrize(
    ("schema", "records"),
    [
        ("no JSON", {}),
        ('"string"', {}),
        (image_of(("other", "string")), {}),
        (image_of(("value", "string"), ("type", KIND)), {"item": SPECIAL}),
        (
            image_of(
                ("type", KIND),
                ("value", ["null", {"type": "record", "name": "item2", "fields": [{"name": "w", "type": "string"}]}]),
            ),
            {"item2": SPECIAL},
        ),
        (
            json.dumps(
                [
                    {
                        "type": "record",
                        "name": f"r{n}",
                        "fields": [{"name": "image", "type": f"r{n - 1}" if n else "long"}],
                    }
                    for n in range(1000)
                ]
            ),
            {},
        ),
    ],
    ids=["no schema", "no record", "no value", "type behind value", "no text", "deep"],
)
def test_a_schema_of_its_own_that_cannot_be_used(schema: str, records: dict[str, Any]) -> None:
    """It came with a file, and is no fault of the format: other messages must not suffer for it."""
    decode = message_decoder(Layout((OLD,), POSITIONAL.slots, records))
    found = decode(b"\x02\0\0", schema)
    assert (found.values, found.reason) == ([None], "schema-mismatch")
    assert found.detail and found.detail.startswith("its schema cannot be used: ")
    assert decode(b"\x02", None) == Found([None])


# --- what was read before

TABLE = {
    "type": "record",
    "name": "message",
    "fields": [
        {"name": "table", "type": "string"},
        {
            "name": "columns",
            "type": [
                "null",
                {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "column",
                        "fields": [{"name": "name", "type": "string"}, {"name": "type", "type": "int"}],
                    },
                },
            ],
        },
        {"name": "key", "type": {"type": "array", "items": "int"}},
        {"name": "extra", "type": {"type": "map", "values": "string"}},
        {"name": "values", "type": {"type": "array", "items": ["null", "string"]}},
    ],
}
TABLE_SLOTS = (
    Slot(("table",), "text"), Slot(("columns", "name"), "texts"), Slot(("columns", "type"), "numbers"),
    Slot(("key",), "numbers"), Slot(("extra", "a"), "text"),
    Slot(("extra",), "map"), Slot(("values",), "positional"),
)  # fmt: skip


class Table:
    """Columns in blocks of one each, so that the columns of a table begin like those of another that has some more."""

    def __init__(self, draw: random.Random, number: int) -> None:
        self.name, self.draw = f"t{number}", draw
        self.columns = [(f"c{index}", index % 3) for index in range(number % 12)] if number % 13 else None
        self.key = list(range(number % 5))
        self.extra = {"a": str(number % 4), **({"b": "x"} if number % 2 else {})}

    def message(self) -> tuple[bytes, list[Any]]:
        values = [self.draw.choice([None, "v", ""]) for _ in self.columns or ()]
        columns = (
            b"\0"
            if self.columns is None
            else b"\x02"
            + blocks(
                [text_bytes(name) + long_bytes(kind) for name, kind in self.columns], [1] * len(self.columns), False
            )
        )
        extra = blocks(
            [text_bytes(key) + text_bytes(value) for key, value in self.extra.items()], [1] * len(self.extra), True
        )
        data = (
            text_bytes(self.name)
            + columns
            + blocks([long_bytes(one) for one in self.key], [1] * len(self.key), False)
            + extra
            + encoded(TABLE["fields"][4]["type"], values)
        )
        names, types = (
            (None, None)
            if self.columns is None
            else ([name for name, _ in self.columns], [kind for _, kind in self.columns])
        )
        return data, [self.name, names, types, self.key, self.extra["a"], self.extra, (values, (), (), (), ())]


def test_what_was_read_before_means_the_same_again() -> None:
    draw = random.Random(3)
    layout = Layout((json.dumps(TABLE),), TABLE_SLOTS, {})
    schema = parse_schema(layout.schemas[0])
    tables, used = [Table(draw, number) for number in range(60)], record_decoder(schema, layout)
    near = tables
    for number in range(4000):
        if number % 100 == 0:
            near = draw.sample(tables, draw.choice([2, 5, 9, 60]))
        data, expected = draw.choice(near).message()
        assert used(data) == Found(expected)
        if number % 5 == 0:
            damaged = mutated(draw, data)
            assert used(damaged) == record_decoder(schema, layout)(damaged)


def test_a_value_that_begins_like_one_read_before() -> None:
    """Its number has more digits, its text more letters, its list more blocks; and it is cut off where the other one
    ended.
    """
    record = record_of(columns={"type": "array", "items": "string"}, behind="long")
    decode = decoder(record, Slot(("columns",), "texts"), Slot(("behind",), "text"))
    short, long = blocks([b"\x02a"], [1], False), blocks([b"\x02a", b"\x02b"], [1, 1], False)
    for _ in range(2):
        assert decode(short + b"\x02") == Found([["a"], "1"])
        assert decode(long + b"\x04") == Found([["a", "b"], "2"])
        assert decode(short).reason == decode(long[:-1]).reason == decode(short[:-1]).reason == "bad-avro"


# --- what stands at a path


COLUMN = {
    "type": "record",
    "name": "column",
    "fields": [
        {"name": "before", "type": "double"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "type", "type": ["int", "string"]},
        {"name": "behind", "type": {"type": "map", "values": "long"}},
    ],
}


def reached(written: Any, sent: Any, path: str, kind: str, **members: str) -> Any:
    """What a slot gives; whatever it is, the whole value is stepped over."""
    data = encoded(fastavro.parse_schema(written), sent)
    found, end = reach(schema_of(written), tuple(path.split(".")) if path else (), Slot((), kind, **members), {})(
        data, 0
    )
    assert end == len(data)
    return found


def columns(*pairs: tuple[str | None, Any]) -> list[dict[str, Any]]:
    return [{"before": 0.5, "name": name, "type": kind, "behind": {"k": 300}} for name, kind in pairs]


LIST, NULLABLE_LIST = {"type": "array", "items": COLUMN}, ["null", {"type": "array", "items": COLUMN}]


@pytest.mark.parametrize(
    ("written", "value", "path", "kind", "expected"),
    [
        # lists of records
        (LIST, columns(("a", 1), ("b", 2)), "name", "texts", ["a", "b"]),
        (LIST, columns(("a", 1), ("b", 2)), "type", "texts", ["1", "2"]),
        (LIST, columns(("a", 1), ("b", -200)), "type", "numbers", [1, -200]),
        (LIST, columns(("a", 1)), "behind.k", "numbers", [300]),
        (LIST, columns(("a", 1)), "other", "texts", None),
        (LIST, columns(("a", 1), ("b", 2)), "name", "names", ["a", "b"]),
        # a single text, which only names may be
        ("string", "a", "", "names", ["a"]),
        ("string", "", "", "names", None),
        ("string", "a", "", "texts", None),
        (["null", "string"], None, "", "names", None),
        (["string", {"type": "array", "items": "string"}], ["a", "b"], "", "names", ["a", "b"]),
        ({"type": "map", "values": "string"}, {"a": "b"}, "", "names", None),
        (LIST, columns(("a", 1)), "name.deeper", "texts", None),
        (LIST, [], "name", "texts", []),
        (LIST, columns(("a", 1), (None, 2)), "name", "texts", None),
        (LIST, columns(("a", 1), ("b", "text")), "type", "numbers", None),
        (LIST, columns(("a", 1)), "name", "text", None),
        (LIST, columns(("a", 1)), "name", "scalar", None),
        (LIST, columns(("a", 1)), "", "texts", ['{"before":0.5,"name":"a","type":1,"behind":{"k":300}}']),
        (NULLABLE_LIST, None, "name", "texts", None),
        (NULLABLE_LIST, columns(("a", 1)), "name", "texts", ["a"]),
        # members and keys
        (COLUMN, columns(("a", 1))[0], "name", "text", "a"),
        (COLUMN, columns(("a", 1))[0], "type", "number", 1),
        (COLUMN, columns(("a", "one"))[0], "type", "number", None),
        (COLUMN, columns(("a", 1))[0], "before", "text", "0.5"),
        (COLUMN, columns(("a", 1))[0], "behind.k", "text", "300"),
        (COLUMN, columns(("a", 1))[0], "behind.other", "text", None),
        (COLUMN, columns(("a", 1))[0], "behind", "map", {"k": "300"}),
        (COLUMN, columns(("a", 1))[0], "name", "map", None),
        # scalars, and what is none
        (COLUMN, columns(("a", 1))[0], "behind", "scalar", None),
        (COLUMN, columns(("a", 1))[0], "behind", "text", '{"k":300}'),
        (COLUMN, columns(("a", 1))[0], "type", "scalar", "1"),
        ({"type": "array", "items": "long"}, [1, 300], "", "text", "[1,300]"),
        ({"type": "array", "items": "long"}, [1, 300], "", "scalar", None),
        ({"type": "array", "items": "long"}, [1, 300], "", "numbers", [1, 300]),
        ({"type": "array", "items": "long"}, [1, 300], "", "texts", ["1", "300"]),
        ({"type": "array", "items": ["null", "long"]}, [1, None], "", "numbers", None),
        ({"type": "array", "items": ["null", "long"]}, [1, None], "", "texts", None),
        ("long", 7, "", "numbers", None),
        ("string", "7", "", "number", None),
        (
            {"type": "map", "values": {"type": "array", "items": "bytes"}},
            {"a": [b"\0\xff"]},
            "",
            "map",
            {"a": '["AP8="]'},
        ),
        # values by position, and rows
        (
            {"type": "array", "items": ["null", "string", "long"]},
            [None, "a", 5],
            "",
            "positional",
            ([None, "a", "5"], (), (), (), ()),
        ),
        ({"type": "array", "items": ["null", "string"]}, [], "", "positional", ([], (), (), (), ())),
        (["null", {"type": "array", "items": "string"}], None, "", "positional", None),
        (
            {"type": "map", "values": ["null", "string", "boolean"]},
            {"a": None, "b": "x", "c": True},
            "",
            "row",
            ({"a": None, "b": "x", "c": "true"}, (), (), (), ()),
        ),
        ("string", "x", "", "row", None),
    ],
)  # fmt: skip
def test_what_stands_at_a_path(written: Any, value: Any, path: str, kind: str, expected: Any) -> None:
    assert reached(written, value, path, kind) == expected


@pytest.mark.parametrize(
    ("taken", "text"), [((), '{"a":{"x":1},"é":{"x":2}}'), (("a", "other"), '{"é":{"x":2}}'), (("a", "é"), None)]
)
def test_the_other_members_of_a_map(taken: tuple[str, ...], text: str | None) -> None:
    inner = {"type": "record", "name": "r", "fields": [{"name": "x", "type": "int"}]}
    record = record_of(tags=["null", {"type": "map", "values": inner}])
    message = b"\x02" + blocks([text_bytes("a") + b"\x02", text_bytes("é") + b"\x04"], [2], False)
    decode = decoder(record, Slot(("tags",), "others", taken=taken))
    assert decode(message) == Found([text])
    assert decode(b"\0") == decode(b"\x02\0") == Found([None])


def test_members_of_values_by_position() -> None:
    item = {
        "type": "record",
        "name": "item",
        "fields": [{"name": "type", "type": KIND}, {"name": "value", "type": ["null", "long", "string"]}],
    }
    values = [{"type": "a", "value": 1}, {"type": "b", "value": None}, {"type": "a", "value": "x" * 100}]
    for members in ({"value": "value"}, {"value": "value", "type": "type"}):
        texts, missing, as_sent, *_ = reached({"type": "array", "items": item}, values, "", "positional", **members)
        assert (texts, list(missing), list(as_sent)) == (["1", None, "x" * 100], [], [])


def written_value(fields: list[dict[str, Any]]) -> dict[str, Any]:
    """An image whose values are records, numbers, or one of the symbols that stand for nothing."""
    special = {"type": "enum", "name": "special", "symbols": ["NONE", "NULL", "MISSING"]}
    amount = {
        "type": "record",
        "name": "amount",
        "fields": [{"name": "precision", "type": "int"}, {"name": "text", "type": "string"}],
    }
    return {
        "type": "array",
        "items": {
            "type": "record",
            "name": "item",
            "fields": [*fields, {"name": "value", "type": ["null", "long", amount, special]}],
        },
    }


AMOUNTS = {
    "amount": {**SPECIAL, "classes": {"a": "decimal", "else": "string"}, "text": ("text",)},
    "special": {**SPECIAL, "classes": {}, "text": (), "is_null": ["NULL"], "not_sent": ["MISSING"]},
}


@pytest.mark.parametrize("between", [0, 1])
def test_values_that_are_records(between: int) -> None:
    """With the type beside the value, and with something between the two: each way has a reader of its own."""
    written = written_value([{"name": "type", "type": KIND}, {"name": "size", "type": "string"}][: between + 1])
    sent = [
        ("a", ("amount", {"precision": 3, "text": "1e2"})),
        ("b", ("amount", {"precision": 3, "text": "1e2"})),
        ("a", ("amount", {"precision": 3, "text": "much"})),
        ("b", ("special", "MISSING")),
        ("a", ("special", "NULL")),
        ("a", ("special", "NONE")),
        ("b", ("long", 64)),
        ("b", None),
    ]
    data = encoded(
        fastavro.parse_schema(written), [{"type": kind, "size": "s", "value": value} for kind, value in sent]
    )
    (texts, missing, as_sent, *_), end = reach(
        schema_of(written), (), Slot((), "positional", "value", "type"), AMOUNTS
    )(data, 0)
    assert (texts, list(missing), list(as_sent), end) == (
        ["100", "1e2", "much", None, None, "NONE", "64", None],
        [False, False, False, True, False, False, False, False],
        [2],
        len(data),
    )


def test_numbers_of_types_and_branches_that_are_longer_than_they_need_to_be() -> None:
    """Those of one byte are looked up in tables, by which the others must not be read."""
    written = written_value([{"name": "type", "type": KIND}])
    amount = encoded(fastavro.parse_schema(written["items"]["fields"][1]["type"][2]), {"precision": 3, "text": "1e2"})
    read = reach(schema_of(written), (), Slot((), "positional", "value", "type"), AMOUNTS)
    for kind, text in ((0, "100"), (2, "1e2")):
        for type_bytes in (bytes([kind]), bytes([kind | 128, 0])):
            for branch_bytes in (b"\x04", b"\x84\0"):
                assert read(b"\x02" + type_bytes + branch_bytes + amount + b"\0", 0)[0][0] == [text]


VALUES = ["null", "bytes", "string", "long", {"type": "int", "logicalType": "date"}, {"type": "array", "items": "int"}]
ROW = {"type": "map", "values": VALUES}


def test_values_that_are_no_texts_are_settled() -> None:
    """Whatever the type of their column says: their text is not that of another value."""
    sent = {"a": b"\x00", "b": "AA==", "c": 65, "d": None, "e": [1]}
    (texts, _, as_sent, settled, _), _ = image_of_row(ROW, sent, by_type=True)
    assert texts == {"a": "AA==", "b": "AA==", "c": "65", "d": None, "e": "[1]"}
    assert (as_sent, settled) == ([], ["a", "e"])
    assert image_of_row(ROW, sent)[0] == (texts, (), (), (), ())
    by_date = {"type": "map", "values": VALUES[4]}
    assert image_of_row(by_date, {"a": 0}, by_type=True)[0][3] == ["a"]


def image_of_row(written: Any, sent: Any, **slot: Any) -> Any:
    data = encoded(fastavro.parse_schema(json.loads(json.dumps(written).replace("logicalType", "aliasOf"))), sent)
    return reach(schema_of(written), (), Slot((), slot.pop("kind", "row"), **slot), {})(data, 0)


def test_lists_of_rows() -> None:
    """A map counts as a list of one; what is no map is None."""
    listed = {"type": "array", "items": ["null", "int", ROW]}
    images, _ = image_of_row(listed, [{"a": "x"}, None, 5, {}, {"b": b"\x00"}], kind="rows", by_type=True)
    assert images.texts == [{"a": "x"}, None, None, {}, {"b": "AA=="}]
    assert images.settled == [(), None, None, (), ["b"]]
    assert image_of_row(ROW, {"a": "x"}, kind="rows")[0].texts == [{"a": "x"}]
    assert image_of_row(["null", listed], None, kind="rows")[0] is None
    assert image_of_row("string", "x", kind="rows")[0] is None


def test_rows_of_records() -> None:
    written = {"type": "map", "values": written_value([])["items"]["fields"][0]["type"]}
    sent = {
        "a": ("amount", {"precision": 3, "text": "much"}),
        "b": ("special", "MISSING"),
        "c": ("special", "NULL"),
        "d": ("amount", {"precision": 3, "text": "5E1"}),
    }
    data = encoded(fastavro.parse_schema(written), sent)
    records = {**AMOUNTS, "amount": {**AMOUNTS["amount"], "classes": {"else": "decimal"}}}
    assert reach(schema_of(written), (), Slot((), "row"), records)(data, 0) == (
        ({"a": "much", "c": None, "d": "50"}, ["b"], ["a"], ["a"], []),
        len(data),
    )


def test_a_member_that_only_some_branches_have() -> None:
    inner = [
        {"type": "record", "name": name, "fields": [{"name": name, "type": "string"}]} for name in ("digits", "other")
    ]
    written = {"type": "record", "name": "amount", "fields": [{"name": "in", "type": inner}]}
    records = {"amount": {**SPECIAL, "classes": {"else": "decimal"}, "text": ("in", "digits")}}
    for sent, text in (("digits", "7"), ("other", None)):
        data = encoded(fastavro.parse_schema(written), {"in": (sent, {sent: "7"})})
        assert text_reader(schema_of(written), records)(data, 0) == (text, len(data))


# --- texts of values


def text_of(written: Any, data: bytes) -> Any:
    value, end = text_reader(schema_of(written), {})(data, 0)
    assert end == len(data)
    return written_out([value])[0]


@pytest.mark.parametrize(
    ("written", "value", "text"),
    [
        ("null", None, None), ("boolean", True, "true"), ("boolean", False, "false"), ("int", -5, "-5"),
        ("int", 64, "64"), ("long", LEAST_LONG, str(LEAST_LONG)),
        ("long", LARGEST_LONG, str(LARGEST_LONG)), ("string", "", ""), ("string", "中😀\0" * 50, "中😀\0" * 50),
        ("bytes", b"", ""), ("bytes", b"\0\xff", "AP8="),
        ("double", 5.0, "5"), ("double", 0.1, "0.1"), ("double", -0.0, "-0"), ("double", 1e20, "1e+20"),
        ("double", 5e-324, "5e-324"), ("double", math.nan, "NaN"),
        ("double", math.inf, "Infinity"), ("double", -math.inf, "-Infinity"), ("float", 0.1, "0.1"),
        ("float", 5.0, "5"), ("float", math.nan, "NaN"),
        ("float", math.inf, "Infinity"), ("float", -math.inf, "-Infinity"),
        ({"type": "fixed", "name": "F", "size": 2}, b"\0\xff", "AP8="),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"), (["null", "string"], None, None),
        (["null", "string"], "a", "a"),
        ({"type": "map", "values": "bytes"}, {"é": b"\0"}, '{"é":"AA=="}'),
        ({"type": "map", "values": "string"}, {"😀": "\uffff\u2028"}, '{"😀":"\uffff\u2028"}'),
        ({"type": "array", "items": "double"}, [math.nan, -math.inf, 1.5], '["NaN","-Infinity",1.5]'),
        ("string", "\uffff", "\uffff"),
        ({"type": "array", "items": ["null", "boolean"]}, [None, True], "[null,true]"),
    ],
)  # fmt: skip
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


def times(draw: random.Random, name: str) -> list[int]:
    unit = UNITS[name.rpartition("-")[2]]
    if name == "date":
        return [0, -1, 1, -719162, 2932896, *(draw.randrange(-719162, 2932897) for _ in range(200))]
    first, last = (0, 86400 * unit - 1) if name.startswith("time-") else (-62135596800 * unit, 253402300800 * unit - 1)
    return [
        0,
        first,
        last,
        min(unit, last),
        *(draw.randrange(first, last + 1) for _ in range(200)),
        *(draw.randrange(first // unit, last // unit) * unit for _ in range(20)),
    ]


@pytest.mark.parametrize("name", TIMES)
def test_times(name: str) -> None:
    kind, make = TIMES[name]
    written = logical(kind, name)
    for number in times(random.Random(4), name):
        data = encoded(kind, number)
        assert text_of(written, data) == make(decoded(written, data)), number


@pytest.mark.parametrize("name", [*TIMES, "timestamp-nanos", "local-timestamp-nanos"])
def test_times_that_do_not_fit(name: str) -> None:
    kind = TIMES.get(name, ("long",))[0]
    largest = 2**31 - 1 if kind == "int" else LARGEST_LONG
    numbers = (
        [86_400_000 if kind == "int" else 86_400_000_000, -1] if name.startswith("time-") else [largest, -largest - 1]
    )
    for number in numbers if not name.endswith("nanos") else []:
        found = text_of(logical(kind, name), encoded(kind, number))
        assert (found, type(found)) == (str(number), AsSent)
    if name.endswith("nanos"):
        for number in (0, 1, -1, 1_500_000_000, largest, -largest - 1 + 1):
            whole, _, fraction = str(numpy.datetime64(number, "ns")).partition(".")
            expected = f"{whole}.{fraction}".rstrip("0").rstrip(".")
            found = text_of(logical(kind, name), encoded(kind, number))
            assert found == (expected.replace("T", " ") if name.startswith("local") else expected + "Z")


@pytest.mark.parametrize("scale", [0, 1, 2, 9, 38, 300])
def test_decimals(scale: int) -> None:
    draw = random.Random(scale)
    numbers = [
        0,
        1,
        -1,
        127,
        128,
        -128,
        -129,
        10**scale,
        -(10**scale),
        *(draw.randrange(-(10**60), 10**60) for _ in range(100)),
    ]
    for number in numbers:
        packed = number.to_bytes(26 if scale < 300 else 130, "big", signed=True)
        expected = (
            f"{number // 10**scale}"
            if not scale
            else ("-" if number < 0 else "") + f"{abs(number) // 10**scale}.{abs(number) % 10**scale:0{scale}d}"
        )
        assert (
            text_of(logical("bytes", "decimal", precision=400, scale=scale), long_bytes(len(packed)) + packed)
            == expected
        )
        assert (
            text_of(logical("fixed", "decimal", precision=400, scale=scale, name="F", size=len(packed)), packed)
            == expected
        )
        if scale < 300:
            assert (
                format(
                    decoded(logical("bytes", "decimal", precision=400, scale=scale), long_bytes(len(packed)) + packed),
                    "f",
                )
                == expected
            )


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


def bit_patterns() -> list[int]:
    draw = random.Random(6)
    powers = [exponent << 23 | more for exponent in range(255) for more in (0, 1, 0x7FFFFF)]
    subnormal = [draw.getrandbits(draw.randrange(1, 24)) for _ in range(10_000)]
    return [
        *powers,
        *subnormal,
        *(draw.getrandbits(32) for _ in range(100_000)),
        0x80000000,
        0x7F7FFFFF,
        0x00000001,
        0x00800000,
    ]


def test_floats_of_32_bits() -> None:
    patterns = numpy.array(bit_patterns(), numpy.uint32)
    values = patterns.view(numpy.float32)
    values = values[numpy.isfinite(values)]
    texts = [float_text(float(value)) for value in values]
    # Back as bits, to tell the two zeros apart.
    assert (
        numpy.array([float(text) for text in texts]).astype(numpy.float32).view(numpy.uint32)
        == values.view(numpy.uint32)
    ).all()
    # Beside three powers of two lies a shorter text that is not the nearest of its length: they have nine digits where
    # eight would do.
    longer = {
        text for text, value in zip(texts, values, strict=True) if len(digits_of(text)) > len(digits_of(str(value)))
    }
    assert len(longer) <= 3
    assert {math.frexp(float(numpy.float32(text)))[0] for text in longer} <= {0.5}


def test_floats_of_64_bits() -> None:
    draw = random.Random(7)
    for _ in range(20_000):
        (value,) = struct.unpack("<d", draw.randbytes(8))
        text = double_text(value)
        if math.isfinite(value):
            assert struct.pack("<d", float(text)) == struct.pack("<d", value)
            assert len(digits_of(text)) <= len(digits_of(str(numpy.float64(value))))
            assert not text.endswith(".0")
        else:
            assert text in ("NaN", "Infinity", "-Infinity")
