"""Files in Avro that are made to harm: schemas without end, blocks that unpack to more than there is memory for. They
are read or refused, in bounded memory and time. Without Spark.
"""

from __future__ import annotations

import base64
import gzip
import json
import time
from typing import Any

import pytest

from runner.functions.avro import files as avro_files
from runner.functions.avro import schema as avro_schema
from runner.functions.avro import unpacking as avro_unpacking
from runner.functions.avro.files import messages_of_file
from runner.functions.avro.layout import Layout, Slot
from runner.functions.avro.messages import Found, message_decoder
from tests.avro_cases import encoded
from tests.avro_types import array_of, record_type
from tests.random_avro import long_bytes
from tests.test_avro_files import (
    DECLARED,
    MARK,
    PACKINGS,
    SCHEMA,
    block,
    container,
    deflate,
    found_in,
    header,
    records,
    whole,
)  # fmt: skip
from tests.test_avro_reader import bounded

PACKED = [codec for codec in PACKINGS if codec != "null"]
NODE = record_type("node", next=["null", "node"])


def nested_record(number: int) -> dict[str, object]:
    """A record of one field, whose type is the record with the number before."""
    kind = f"r{number - 1}" if number else "long"
    return record_type(f"r{number}", f=kind)


SIX = block(2, bytes(6))
CODEC = b"avro.codec\x08"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (header(codec="lz4") + SIX, "lz4 is not known or missing"),
        (header(codec="") + SIX, " is not known or missing"),
        (header().replace(b"null", b"\xff\xff\xff\xff", 1) + SIX, "codec can't decode"),
        (header().replace(CODEC + b"null", CODEC + b"\xff\xfe\xfd\xfc") + SIX, "codec can't decode"),
        (header(schema="no JSON") + SIX, "it is not JSON"),
        (header(schema='"string"') + SIX, "it does not describe a record"),
        (header(schema=json.dumps(record_type("r", f="unknown"))) + SIX, "not defined before"),
        (header(schema=json.dumps(record_type("r", **{"\ud800": "int"}))) + SIX, "half a surrogate pair"),
        (header(schema="{" * 100_000) + SIX, "it is not JSON"),
        (header(schema=json.dumps([nested_record(number) for number in range(1000)])) + SIX, "not describe a record"),
        (header().replace(b"avro.schema", b"avro_schema") + SIX, "avro.schema is not known or missing"),
        (b"Obj\x01", "it ends too early"),
        (b"Obj\x01\0" + MARK[:15], "it ends too early"),
        (b"Obj\x01" + long_bytes(2**60) + b"\x02a\x02b", "items, with"),
        (b"Obj\x01\x02" + long_bytes(2**60) + b"a", "a length of"),
    ],
    ids=range(15),
)
def test_headers_that_cannot_be_used(content: bytes, words: str) -> None:
    found = found_in(content)
    assert [(one.block, one.number, one.raw, one.schema) for one in found] == [(0, 0, content, None)]
    damage = found[0].damage or ""
    assert damage.startswith("a container whose header cannot be used: ") and words in damage


@pytest.mark.parametrize("depth", [*range(50, 1000, 150), 1000, 3000, 10_000])
def test_schemas_that_are_deep(depth: int) -> None:
    """They are used, or refused, but nothing else: parts of the reader go down in them, each to another depth."""
    for before, behind in (
        ('{"type": "array", "items": ', "}"),
        ('["null", {"type": "map", "values": ', "}]"),
        ('{"type": "record", "name": "NAME", "fields": [{"name": "f", "type": ', "}]}"),
    ):
        inner = "".join(before.replace("NAME", f"r{number}") for number in range(depth)) + '"long"' + behind * depth
        schema = '{"type": "record", "name": "r", "fields": [{"name": "f", "type": ' + inner + "}]}"
        assert len(found_in(header(schema=schema) + block(1, b"\0"))) == 1


def test_schemas_of_which_each_part_is_used_twice() -> None:
    """Whoever goes over all uses of all parts does not come to an end. That such a record has more bytes than this
    block must be seen at once.
    """
    inner = ["long", *(f"r{number}" for number in range(25))]
    parts = {f"f{number}": record_type(f"r{number}", a=inner[number], b=inner[number]) for number in range(25)}
    started = time.perf_counter()
    content = header(schema=json.dumps(record_type("r", **parts))) + block(1, bytes(100))
    assert [one.damage is None for one in found_in(content)] == [False]
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize("leaf", [[], [{"name": "f", "type": "null"}]], ids=["empty", "null"])
def test_records_that_hold_two_of_each_other_and_no_bytes(leaf: list[Any]) -> None:
    """To step over one takes 2^40 steps, and not a byte says so."""
    kind: Any = {"type": "record", "name": "r0", "fields": leaf}
    for number in range(1, 41):
        kind = record_type(f"r{number}", a=kind, b=f"r{number - 1}")
    (piece,) = found_in(header(schema=json.dumps(kind)) + block(1, b"\0"))
    assert "may hold more than 100 parts of no bytes" in (piece.damage or "")


def test_a_schema_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_schema, "MAX_SCHEMA_CHARACTERS", len(DECLARED) - 1)
    (piece,) = found_in(container([records(1)]))
    assert f"it has {len(DECLARED)} characters, more than {len(DECLARED) - 1}" in (piece.damage or "")


COLUMNS = 5_000


def test_a_record_of_many_columns() -> None:
    """Around the values that are read, in a record of its own and in a list."""
    columns = {f"column_{number}": ["null", "string"] for number in range(COLUMNS)}
    wide = record_type("wide", **columns, name="string")
    schema = json.dumps(record_type("r", source=wide, fields=array_of("wide")))
    values = b"\x02\x02a" * COLUMNS
    message = values + b"\x02b" + b"\x02" + values + b"\x02c" + b"\0"
    (found,) = messages_of_file("1.avro", header(schema=schema, codec="deflate") + block(1, deflate(message)))
    slots = (Slot(("source", "name"), "text"), Slot(("fields", "name"), "texts"))
    assert message_decoder(Layout((), slots, {}))(found.raw, found.schema) == Found(["b", ["c"]])


def test_records_that_hold_each_other() -> None:
    """Each has a member of a union of all those before it: a reader for each way through them would be too many."""
    before = [["null", *(f"r{other}" for other in range(number))] for number in range(150)]
    types = [record_type(f"r{number}", a=union, b=union) for number, union in enumerate(before)]
    schema = json.dumps(record_type("r", top=["null", *types]))
    read = message_decoder(Layout((), (Slot(("top", "a"), "text"), Slot(("top", "a", "b"), "text")), {}))
    assert read(b"\0", schema) == Found([None, None])


def test_a_record_that_is_too_deep() -> None:
    deep = b"\x02" * 100_000 + b"\0"
    found = found_in(header(schema=json.dumps(NODE)) + block(3, b"\0" + deep + b"\0"))
    assert [(one.raw, one.damage is None) for one in found] == [(b"\0", True), (deep + b"\0", False), (b"", False)]


@pytest.mark.parametrize("codec", PACKED)
def test_a_block_that_unpacks_to_more_than_is_allowed(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # bz2 and lzma take what they need from elsewhere: of what Python holds, nothing is much larger than is allowed.
    monkeypatch.setattr(avro_unpacking, "MAX_UNPACKED_BYTES", 1 << 20)
    packed, good = PACKINGS[codec](bytes(24 << 20)), records(2)
    small = block(2, PACKINGS[codec](b"".join(good)))
    content = header(codec=codec) + small + block(1, packed) + small
    with bounded((20 << 20) + 2 * len(content), 60):
        found = found_in(content)
    assert len(found) == 5 and f"more than {1 << 20}" in (found[2].damage or "")
    assert whole(found) == [*good, *good]


@pytest.mark.parametrize("codec", PACKED)
def test_a_container_that_unpacks_to_more_than_is_allowed(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block is small enough, and some cannot be used: what they unpack to counts all the same."""
    monkeypatch.setattr(avro_files, "MAX_CONTAINER_BYTES", 10 << 20)
    monkeypatch.setattr(avro_files, "MAX_CONTAINER_TIMES", 2)
    good, large = records(2), bytes(4 << 20)
    first, packed = block(2, PACKINGS[codec](b"".join(good))), PACKINGS[codec](large)
    last = block(1, packed) + first
    found = found_in(header(codec=codec) + first + block(0, packed) + block(1, packed) + last)
    assert whole(found) == [*good, large]
    rest = found[-1]
    assert len(found) == 5 and rest.raw == last
    assert rest.damage and "its blocks unpack to more than 10485760 bytes" in rest.damage


def test_a_container_of_more_records_than_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record counts for more bytes than it has, since each goes on alone, together with its schema."""
    monkeypatch.setattr(avro_files, "MAX_CONTAINER_BYTES", 1000 * 150)
    one_byte = json.dumps(record_type("r", f="boolean"))
    content = header(one_byte, "deflate") + block(1000, deflate(bytes(1000))) + block(1000, deflate(bytes(1000)))
    found = found_in(content)
    assert whole(found) == [b"\0"] * 1000
    assert len(found) == 1001 and "more than 150000 bytes" in (found[-1].damage or "")


@pytest.mark.parametrize("fields", [[], [{"name": "f", "type": "null"}]], ids=["empty", "null"])
def test_records_of_no_bytes(fields: list[Any]) -> None:
    content = header(json.dumps({"type": "record", "name": "r", "fields": fields})) + block(10**9, b"")
    (piece,) = found_in(content)
    assert "1000000000 records in 0 bytes" in (piece.damage or "")


def test_a_message_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_files, "MAX_MESSAGE_BYTES", 100)
    monkeypatch.setattr(avro_files, "MAX_PIECE_BYTES", 10)
    small, large = (encoded(SCHEMA, {"id": 1, "text": None, "raw": bytes(size)}) for size in (50, 100))
    lines = b"\n".join(map(base64.b64encode, (small, large, small)))
    for content, name in ((container([[small, large, small]]), "a.avro"), (lines, "a.base64"), (large, "a")):
        found = found_in(content, name)
        assert whole(found) == [small] * (len(found) - 1)
        assert [(one.raw, one.damage) for one in found if one.damage] == [
            (large[:10], "a message of more than 100 bytes; the first 10 bytes are kept here")
        ]


def test_a_line_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only its beginning comes into memory."""
    monkeypatch.setattr(avro_files, "MAX_MESSAGE_BYTES", 1 << 20)
    content = b"QQ==\n" + b"QUJD" * (5 << 20) + b"\nQg=="
    with bounded(8 << 20, 60):
        found = found_in(content, "a.base64")
    assert whole(found) == [b"A", b"B"] and "more than 1048576 bytes" in (found[1].damage or "")


# --- packed


@pytest.mark.parametrize("name", ["1.avro.gz", "1.base64.gz", "1.gz"])
def test_a_file_in_gzip_that_unpacks_to_more_than_is_allowed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_unpacking, "MAX_UNPACKED_BYTES", 1 << 20)
    packed = gzip.compress(bytes(24 << 20))
    with bounded(20 << 20, 60):
        (piece,) = found_in(packed, name)
    assert piece.raw == packed
    assert piece.damage == f"a file that cannot be unpacked: it unpacks to more than {1 << 20} bytes"


@pytest.mark.parametrize("more", [0, 1, 3])
def test_all_that_is_in_a_deflated_block_comes_out(more: int) -> None:
    """What goes in is used up before all of it has come out."""
    data = bytes(avro_unpacking.PART_BYTES + more)
    packed = PACKINGS["deflate"](data)
    assert avro_unpacking.unpacked(avro_unpacking.CODECS["deflate"], packed).data == data
    cut = avro_unpacking.unpacked(avro_unpacking.CODECS["deflate"], packed[:-1])
    assert (cut.data, cut.damage) == (b"", "it ends too early")
