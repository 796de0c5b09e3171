"""Messages in Avro -> the values at the paths of a format, by the first schema that fits. Without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.functions.avro.layout import Layout, Slot
from runner.functions.avro.messages import Found, message_decoder, reach, record_decoder
from runner.functions.avro.schema import parse_schema
from runner.functions.avro.texts import text_reader
from tests.avro_cases import encoded
from tests.avro_types import array_of, map_of, record_type
from tests.random_avro import damaged, long_bytes, text_bytes
from tests.test_avro_reader import TABLES, blocks, decoder, record_of, schema_of

# --- messages


OLD, NEW = json.dumps(record_type("m", id="long")), json.dumps(record_type("m", id="long", note=["null", "string"]))
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
NO_ENTRY = dict.fromkeys(("bytes", "charset", "srid", "labels", "length", "is_null", "not_sent"), ())
SPECIAL = {**NO_ENTRY, "classes": {"b": "string"}, "text": ("v",), "charsets": {}, "parts": {}}


def image_of(**fields: Any) -> str:
    return json.dumps(record_type("m", image=array_of(record_type("item", **fields))))


@pytest.mark.parametrize(
    ("schema", "records"),
    [
        ("no JSON", {}),
        ('"string"', {}),
        (image_of(other="string"), {}),
        (image_of(value="string", type=KIND), {"item": SPECIAL}),
        (image_of(type=KIND, value=["null", record_type("item2", w="string")]), {"item2": SPECIAL}),
        (json.dumps([record_type(f"r{n}", image=f"r{n - 1}" if n else "long") for n in range(1000)]), {}),
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

TABLE = record_type(
    "message",
    table="string",
    columns=["null", array_of(record_type("column", name="string", type="int"))],
    key=array_of("int"),
    extra=map_of("string"),
    values=array_of(["null", "string"]),
)
TABLE_SLOTS = (
    Slot(("table",), "text"), Slot(("columns", "name"), "texts"), Slot(("columns", "type"), "numbers"),
    Slot(("key",), "numbers"), Slot(("extra", "a"), "text"),
    Slot(("extra",), "map"), Slot(("values",), "positional"),
)  # fmt: skip


def table_message(number: int, values: list[str | None]) -> tuple[bytes, list[Any]]:
    """A message of a table, and what is found in it. Columns in blocks of one each, so that the columns of a table
    begin like those of another that has some more.
    """
    names, types = [f"c{index}" for index in range(number % 12)], [index % 3 for index in range(number % 12)]
    key, extra = list(range(number % 5)), {"a": str(number % 4), **({"b": "x"} if number % 2 else {})}
    is_known = number % 13 > 0
    columns = [text_bytes(name) + long_bytes(kind) for name, kind in zip(names, types)]
    entries = [text_bytes(name) + text_bytes(value) for name, value in extra.items()]
    parts = [
        text_bytes(f"t{number}"),
        b"\x02" + blocks(columns, [1] * len(columns), False) if is_known else b"\0",
        blocks([long_bytes(one) for one in key], [1] * len(key), False),
        blocks(entries, [1] * len(entries), True),
        encoded(TABLE["fields"][4]["type"], values),
    ]
    of_columns = [names, types] if is_known else [None, None]
    return b"".join(parts), [f"t{number}", *of_columns, key, extra["a"], extra, (values, (), (), (), ())]


VALUES_SENT = st.lists(st.sampled_from([None, "v", ""]), max_size=3)
# Few tables, or more than are remembered.
TABLES_SENT = st.sampled_from([2, 5, 9, 60]).flatmap(lambda most: st.integers(0, most - 1))
LAYOUT = Layout((json.dumps(TABLE),), TABLE_SLOTS, {})
TABLE_SCHEMA = parse_schema(LAYOUT.schemas[0])


@given(st.lists(st.tuples(TABLES_SENT, VALUES_SENT), min_size=5, max_size=40), st.data())
def test_what_was_read_before_means_the_same_again(sent: list[tuple[int, list[str | None]]], data: Any) -> None:
    used = record_decoder(TABLE_SCHEMA, LAYOUT)
    for number, values in sent:
        message, expected = table_message(number, values)
        assert used(message) == Found(expected)
    bad = data.draw(damaged(message))
    assert used(bad) == record_decoder(TABLE_SCHEMA, LAYOUT)(bad)


def test_a_value_that_begins_like_one_read_before() -> None:
    """Its number has more digits, its text more letters, its list more blocks; and it is cut off where the other one
    ended.
    """
    record = record_of(columns=array_of("string"), behind="long")
    decode = decoder(record, Slot(("columns",), "texts"), Slot(("behind",), "text"))
    short, long = blocks([b"\x02a"], [1], False), blocks([b"\x02a", b"\x02b"], [1, 1], False)
    for _ in range(2):
        assert decode(short + b"\x02") == Found([["a"], "1"])
        assert decode(long + b"\x04") == Found([["a", "b"], "2"])
        assert decode(short).reason == decode(long[:-1]).reason == decode(short[:-1]).reason == "bad-avro"


# --- what stands at a path


COLUMN = record_type("column", before="double", name=["null", "string"], type=["int", "string"], behind=map_of("long"))


def reached(written: Any, sent: Any, path: str, kind: str, **members: str) -> Any:
    """What a slot gives; whatever it is, the whole value is stepped over."""
    data = encoded(fastavro.parse_schema(written), sent)
    read = reach(schema_of(written), tuple(path.split(".")) if path else (), Slot((), kind, **members), {})
    found, end = read(data, 0)
    assert end == len(data)
    return found


def columns(*pairs: tuple[str | None, Any]) -> list[dict[str, Any]]:
    return [{"before": 0.5, "name": name, "type": kind, "behind": {"k": 300}} for name, kind in pairs]


LIST = array_of(COLUMN)
OF_MAP = {"a": None, "b": "x", "c": "true"}
ARRAY_OF_BYTES, SENT = array_of("bytes"), ["null", "string", "boolean", "long"]
COLUMNS_SENT = {"column": COLUMN, "columns": LIST, "columns or null": ["null", LIST]}


def path_cases() -> Iterator[tuple[Any, ...]]:
    for written, value, *others in TABLES["paths"]:
        if isinstance(written, str) and written in COLUMNS_SENT:
            sent = columns(value)[0] if written == "column" else value and columns(*value)
            yield COLUMNS_SENT[written], sent, *others
        else:
            yield written, value, *others


@pytest.mark.parametrize(
    ("written", "value", "path", "kind", "expected"),
    [
        *path_cases(),
        (map_of(ARRAY_OF_BYTES), {"a": [b"\0\xff"]}, "", "map", {"a": '["AP8="]'}),
        (array_of(SENT), [None, "a", 5], "", "positional", ([None, "a", "5"], (), (), (), ())),
        (array_of(SENT), [], "", "positional", ([], (), (), (), ())),
        (map_of(SENT), {"a": None, "b": "x", "c": True}, "", "row", (OF_MAP, (), (), (), ())),
    ],
)
def test_what_stands_at_a_path(written: Any, value: Any, path: str, kind: str, expected: Any) -> None:
    assert reached(written, value, path, kind) == expected


@pytest.mark.parametrize(
    ("taken", "text"), [((), '{"a":{"x":1},"é":{"x":2}}'), (("a", "other"), '{"é":{"x":2}}'), (("a", "é"), None)]
)
def test_the_other_members_of_a_map(taken: tuple[str, ...], text: str | None) -> None:
    inner = record_type("r", x="int")
    record = record_of(tags=["null", map_of(inner)])
    message = b"\x02" + blocks([text_bytes("a") + b"\x02", text_bytes("é") + b"\x04"], [2], False)
    decode = decoder(record, Slot(("tags",), "others", taken=taken))
    assert decode(message) == Found([text])
    assert decode(b"\0") == decode(b"\x02\0") == Found([None])


def test_members_of_values_by_position() -> None:
    item = record_type("item", type=KIND, value=["null", "long", "string"])
    values = [{"type": "a", "value": 1}, {"type": "b", "value": None}, {"type": "a", "value": "x" * 100}]
    for members in ({"value": "value"}, {"value": "value", "type": "type"}):
        texts, missing, as_sent, *_ = reached(array_of(item), values, "", "positional", **members)
        assert (texts, list(missing), list(as_sent)) == (["1", None, "x" * 100], [], [])


AMOUNT = record_type("amount", precision="int", text="string")
SPECIALS = {"type": "enum", "name": "special", "symbols": ["NONE", "NULL", "MISSING"]}
# Values that are records, numbers, or one of the symbols that stand for nothing.
ANY_VALUE = ["null", "long", AMOUNT, SPECIALS]
AMOUNTS = {
    "amount": {**SPECIAL, "classes": {"a": "decimal", "else": "string"}, "text": ("text",)},
    "special": {**SPECIAL, "classes": {}, "text": (), "is_null": ["NULL"], "not_sent": ["MISSING"]},
}


@pytest.mark.parametrize("between", [0, 1])
def test_values_that_are_records(between: int) -> None:
    """With the type beside the value, and with something between the two: each way has a reader of its own."""
    written = array_of(record_type("item", type=KIND, **{"size": "string"} if between else {}, value=ANY_VALUE))
    amount = ("amount", {"precision": 3, "text": "1e2"})
    sent = [
        ("a", amount, "100"),
        ("b", amount, "1e2"),
        ("a", ("amount", {"precision": 3, "text": "much"}), "much"),
        ("b", ("special", "MISSING"), None),
        ("a", ("special", "NULL"), None),
        ("a", ("special", "NONE"), "NONE"),
        ("b", ("long", 64), "64"),
        ("b", None, None),
    ]
    items = [{"type": kind, "size": "s", "value": value} for kind, value, _ in sent]
    data = encoded(fastavro.parse_schema(written), items)
    read = reach(schema_of(written), (), Slot((), "positional", "value", "type"), AMOUNTS)
    (texts, missing, as_sent, *_), end = read(data, 0)
    assert (texts, list(as_sent), end) == ([text for _, _, text in sent], [2], len(data))
    assert list(missing) == [number == 3 for number in range(8)]


def test_numbers_of_types_and_branches_that_are_longer_than_they_need_to_be() -> None:
    """Those of one byte are looked up in tables, by which the others must not be read."""
    amount = encoded(fastavro.parse_schema(AMOUNT), {"precision": 3, "text": "1e2"})
    written = array_of(record_type("item", type=KIND, value=ANY_VALUE))
    read = reach(schema_of(written), (), Slot((), "positional", "value", "type"), AMOUNTS)
    for kind, text in ((0, "100"), (2, "1e2")):
        for type_bytes in (bytes([kind]), bytes([kind | 128, 0])):
            for branch_bytes in (b"\x04", b"\x84\0"):
                assert read(b"\x02" + type_bytes + branch_bytes + amount + b"\0", 0)[0][0] == [text]


VALUES = ["null", "bytes", "string", "long", {"type": "int", "logicalType": "date"}, array_of("int")]
ROW = map_of(VALUES)


def test_values_that_are_no_texts_are_settled() -> None:
    """Whatever the type of their column says: their text is not that of another value."""
    sent = {"a": b"\x00", "b": "AA==", "c": 65, "d": None, "e": [1]}
    (texts, _, as_sent, settled, _), _ = image_of_row(ROW, sent, by_type=True)
    assert texts == {"a": "AA==", "b": "AA==", "c": "65", "d": None, "e": "[1]"}
    assert (as_sent, settled) == ([], ["a", "e"])
    assert image_of_row(ROW, sent)[0] == (texts, (), (), (), ())
    by_date = map_of(VALUES[4])
    assert image_of_row(by_date, {"a": 0}, by_type=True)[0][3] == ["a"]


def image_of_row(written: Any, sent: Any, **slot: Any) -> Any:
    data = encoded(fastavro.parse_schema(json.loads(json.dumps(written).replace("logicalType", "aliasOf"))), sent)
    return reach(schema_of(written), (), Slot((), slot.pop("kind", "row"), **slot), {})(data, 0)


def test_lists_of_rows() -> None:
    """A map counts as a list of one; what is no map is None."""
    listed = array_of(["null", "int", ROW])
    images, _ = image_of_row(listed, [{"a": "x"}, None, 5, {}, {"b": b"\x00"}], kind="rows", by_type=True)
    assert images.texts == [{"a": "x"}, None, None, {}, {"b": "AA=="}]
    assert images.settled == [(), None, None, (), ["b"]]
    assert image_of_row(ROW, {"a": "x"}, kind="rows")[0].texts == [{"a": "x"}]
    assert image_of_row(["null", listed], None, kind="rows")[0] is None
    assert image_of_row("string", "x", kind="rows")[0] is None


def test_rows_of_records() -> None:
    written = map_of(ANY_VALUE)
    sent = {
        "a": ("amount", {"precision": 3, "text": "much"}),
        "b": ("special", "MISSING"),
        "c": ("special", "NULL"),
        "d": ("amount", {"precision": 3, "text": "5E1"}),
    }
    data = encoded(fastavro.parse_schema(written), sent)
    records = {**AMOUNTS, "amount": {**AMOUNTS["amount"], "classes": {"else": "decimal"}}}
    expected = ({"a": "much", "c": None, "d": "50"}, ["b"], ["a"], ["a"], [])
    assert reach(schema_of(written), (), Slot((), "row"), records)(data, 0) == (expected, len(data))


def test_a_member_that_only_some_branches_have() -> None:
    inner = [record_type("digits", digits="string"), record_type("other", other="string")]
    written = record_type("amount", **{"in": inner})
    records = {"amount": {**SPECIAL, "classes": {"else": "decimal"}, "text": ("in", "digits")}}
    for sent, text in (("digits", "7"), ("other", None)):
        data = encoded(fastavro.parse_schema(written), {"in": (sent, {sent: "7"})})
        assert text_reader(schema_of(written), records)(data, 0) == (text, len(data))
