"""Files of messages in Avro: containers written by fastavro, or by hand for what it cannot pack here, whole and
damaged. Without Spark.
"""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import itertools
import json
import lzma
import random
import time
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow
import pytest

from runner.functions.avro import files as avro_files
from runner.functions.avro import schema as avro_schema
from runner.functions.avro import unpacking as avro_unpacking
from runner.functions.avro.files import FileMessage, content_of, count_messages, messages_of_file
from runner.functions.avro.layout import Layout, Slot
from runner.functions.avro.messages import Found, message_decoder
from tests.avro_cases import encoded
from tests.random_avro import RandomSchema, long_bytes, mutated, text_bytes

SCHEMA = {
    "type": "record",
    "name": "message",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "text", "type": ["null", "string"]},
        {"name": "raw", "type": "bytes"},
    ],
}
NODE = {"type": "record", "name": "node", "fields": [{"name": "next", "type": ["null", "node"]}]}
MARK = bytes(range(100, 116))
DECLARED = json.dumps(SCHEMA)


def with_sum(packed: bytes, data: bytes) -> bytes:
    return packed + zlib.crc32(data).to_bytes(4, "big")


def deflate(data: bytes) -> bytes:
    packing = zlib.compressobj(wbits=-15)
    return packing.compress(data) + packing.flush()


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": deflate,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "snappy": lambda data: with_sum(pyarrow.Codec("snappy").compress(data, asbytes=True), data),
    "zstandard": lambda data: pyarrow.Codec("zstd").compress(data, asbytes=True),
}


def nested_record(number: int) -> dict[str, object]:
    """A record of one field, whose type is the record with the number before."""
    kind = f"r{number - 1}" if number else "long"
    return {"type": "record", "name": f"r{number}", "fields": [{"name": "f", "type": kind}]}


def header(schema: str = DECLARED, codec: str | None = "null", mark: bytes = MARK, **others: bytes) -> bytes:
    meta = {"avro.schema": schema.encode(), **({} if codec is None else {"avro.codec": codec.encode()}), **others}
    entries = b"".join(text_bytes(key) + long_bytes(len(value)) + value for key, value in meta.items())
    return b"Obj\x01" + long_bytes(len(meta)) + entries + b"\0" + mark


def block(count: int, packed: bytes, mark: bytes = MARK, size: int | None = None) -> bytes:
    return long_bytes(count) + long_bytes(len(packed) if size is None else size) + packed + mark


def container(blocks: list[list[bytes]], codec: str = "null", schema: str = DECLARED) -> bytes:
    return header(schema, codec) + b"".join(
        block(len(records), PACKINGS[codec](b"".join(records))) for records in blocks
    )


def records(draw: random.Random, count: int) -> list[bytes]:
    values = [
        {
            "id": draw.getrandbits(draw.choice([5, 40])),
            "text": draw.choice([None, "", "é" * draw.randrange(80)]),
            "raw": draw.randbytes(draw.randrange(9)),
        }
        for _ in range(count)
    ]
    return [encoded(SCHEMA, value) for value in values]


def found_in(content: bytes, name: str = "file.avro") -> list[FileMessage]:
    """All messages; there are as many as counted, and they ascend."""
    found = list(messages_of_file(name, content))
    assert count_messages(name, content) == len(found)
    places = [(one.block, one.number) for one in found]
    assert places == sorted(set(places))
    assert all((one.damage is None) or one.schema is None for one in found)
    return found


def whole(found: list[FileMessage]) -> list[bytes]:
    return [one.raw for one in found if one.damage is None]


# --- whole containers


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_containers_of_fastavro(codec: str) -> None:
    """By random schemas. Records without any bytes are left out: nothing is known of how many there are."""
    used = 0
    for seed in range(40):
        made = RandomSchema(seed)
        values = [made.value() for _ in range(30)]
        expected = [encoded(made.parsed, value) for value in values]
        if not all(expected):
            continue
        out = io.BytesIO()
        fastavro.writer(out, made.parsed, values, codec=codec, sync_interval=200)
        found = found_in(out.getvalue())
        assert [one.raw for one in found] == expected
        assert {one.damage for one in found} == {None}
        assert json.loads(found[0].schema or "") == json.loads(
            fastavro.reader(io.BytesIO(out.getvalue())).metadata["avro.schema"]
        )
        used += len({one.block for one in found}) > 1
    assert used > 20


@pytest.mark.parametrize("codec", PACKINGS)
def test_containers_made_by_hand(codec: str) -> None:
    draw = random.Random(1)
    blocks = [records(draw, count) for count in (3, 1, 200, 7)]
    content = container(blocks, codec)
    found = found_in(content)
    assert [one.raw for one in found] == [one for records in blocks for one in records]
    assert [one.number for one in found] == [number for records in blocks for number in range(len(records))]
    positions = list(dict.fromkeys(one.block for one in found))
    assert positions[0] == len(header(codec=codec)) and len(positions) == 4
    assert all(content[position - 16 : position] == MARK for position in positions)
    assert {(one.schema, one.damage) for one in found} == {(DECLARED, None)}
    if codec in ("null", "deflate", "bzip2", "xz"):
        assert [encoded(SCHEMA, value) for value in fastavro.reader(io.BytesIO(content))] == [one.raw for one in found]


@pytest.mark.parametrize("codec", PACKINGS)
def test_containers_without_records(codec: str) -> None:
    assert found_in(header(codec=codec)) == []
    assert found_in(header(codec=codec) + block(0, PACKINGS[codec](b""))) == []
    assert found_in(header(codec=codec) + block(0, b"")) == []


def test_a_container_that_names_no_codec() -> None:
    one = records(random.Random(2), 1)
    assert whole(found_in(header(codec=None) + block(1, one[0]))) == one
    assert whole(found_in(header(codec=None, other=b"\xff") + block(1, one[0]))) == one


def test_a_container_may_have_any_name() -> None:
    one = records(random.Random(2), 1)
    for name in ("x.base64", "x", "x.jsonl"):
        assert whole(found_in(container([one]), name)) == one


# --- damaged containers


@pytest.mark.parametrize("codec", PACKINGS)
def test_containers_that_are_cut_off(codec: str) -> None:
    draw = random.Random(3)
    blocks = [records(draw, count) for count in (3, 2, 4)]
    content = container(blocks, codec)
    ends = [len(header(codec=codec))]
    for one in blocks:
        ends.append(ends[-1] + len(block(len(one), PACKINGS[codec](b"".join(one)))))
    for end in range(4, len(content)):
        found = found_in(content[:end])
        complete = sum(1 for one in ends[1:] if one <= end)
        assert whole(found) == [one for records in blocks[:complete] for one in records]
        if end in ends:
            assert len(whole(found)) == len(found)
        else:
            assert found[-1].raw == (content[:end] if end < ends[0] else content[ends[complete] : end])
            assert found[-1].damage
    assert [one.damage for one in found_in(content[:2])] == [None]  # no mark of a container: a message


@pytest.mark.parametrize("codec", PACKINGS)
def test_containers_with_random_damage(codec: str) -> None:
    """Records of blocks before the damage come back; what does not lies in a piece, wherever the damage is."""
    draw = random.Random(4)
    for _ in range(250):
        blocks = [records(draw, draw.randrange(1, 5)) for _ in range(draw.randrange(1, 5))]
        first = len(header(codec=codec))
        content = container(blocks, codec)
        damaged = content[:first] + mutated(draw, content[first:]) if draw.random() < 0.7 else mutated(draw, content)
        found = found_in(damaged)
        same = next((at for at, (a, b) in enumerate(zip(content, damaged)) if a != b), min(len(content), len(damaged)))
        end, before = first, []
        for one in blocks:
            end += len(block(len(one), PACKINGS[codec](b"".join(one))))
            before += one if end <= same else []
        assert [one.raw for one in found][: len(before)] == before or not damaged.startswith(b"Obj\x01")
        if codec == "null" and damaged[:first] == content[:first]:
            assert bytes_are_kept(damaged, found)


def bytes_are_kept(content: bytes, found: list[FileMessage]) -> bool:
    """Whether all pieces stand in the file, one behind the other, with nothing but marks and numbers left out between
    them.
    """
    position, left_out = found[0].block if found else 0, 0
    for one in found:
        at = content.find(one.raw, position)
        if at < 0:
            return False
        left_out += at - position
        position = at + len(one.raw)
    left_out += len(content) - position if found else 0
    return left_out <= 40 * len({one.block for one in found})


@pytest.mark.parametrize("codec", PACKINGS)
def test_a_block_that_cannot_be_unpacked(codec: str) -> None:
    """Its mark is in its place: the blocks behind it are not lost."""
    draw = random.Random(5)
    before, within, behind = (records(draw, 3) for _ in range(3))
    packed = PACKINGS[codec](b"".join(within))
    broken = block(3, b"\xff" * 20 if codec == "null" else packed[:5] + b"\xff" * 5 + packed[10:])
    found = found_in(container([before], codec) + broken + container([behind], codec)[len(header(codec=codec)) :])
    assert whole(found)[:3] == before and whole(found)[-3:] == behind
    lost = found[3:-3]
    if codec == "null":
        assert [(one.number, (one.damage or "")[:15]) for one in lost] == [
            (0, "record 1 of 3 i"),
            (1, "record 2 of 3 i"),
            (2, "record 3 of 3 i"),
        ]
    else:
        assert [one.raw for one in lost] == [broken] and "with 3 records: " in (lost[0].damage or "")


@pytest.mark.parametrize("count", [0, 1, 4, 5, 6, 500])
@pytest.mark.parametrize("codec", PACKINGS)
def test_wrong_counts(codec: str, count: int) -> None:
    """Too few: what is left makes the last one too long, and it shows as such. Too many: those that are not there are
    pieces, as long as they might be.
    """
    draw = random.Random(6)
    sent, behind = records(draw, 5), records(draw, 2)
    found = found_in(
        header(codec=codec)
        + block(count, PACKINGS[codec](b"".join(sent)))
        + block(2, PACKINGS[codec](b"".join(behind)))
    )
    assert whole(found)[-2:] == behind
    if count in (0, 500):
        assert len(found) == 3 and found[0].damage and f"with {count} records" in found[0].damage
    else:
        assert len(found) == count + 2
        assert [one.raw for one in found[: min(count, 5)]] == [
            *sent[:count][: count - 1 if count < 5 else 5],
            *([b"".join(sent[count - 1 :])] if count < 5 else []),
        ]
        assert all(one.damage for one in found[5:-2])


@pytest.mark.parametrize("count", [-1, -(2**63), 2**40, 2**63 - 1])
def test_counts_that_lie(count: int) -> None:
    found = found_in(header() + block(count, b"abc"))
    assert (
        len(found) == 1
        and found[0].damage
        and (f"a block of {count} records" if count < 0 else f"{count} records in 3 bytes") in found[0].damage
    )


@pytest.mark.parametrize("size", [-1, 2**60, -(2**63), 4, 2])
def test_sizes_that_lie(size: int) -> None:
    good = records(random.Random(7), 2)
    broken = block(1, b"abc", size=size)
    found = found_in(container([good]) + broken)
    assert whole(found) == good
    assert (found[-1].raw, len(found)) == (broken, 3) and found[-1].damage


def test_a_wrong_mark() -> None:
    draw = random.Random(8)
    good, bad = records(draw, 2), records(draw, 2)
    found = found_in(container([good]) + block(2, b"".join(bad), mark=MARK[::-1]) + block(2, b"".join(good)))
    assert whole(found) == good
    assert len(found) == 3 and "the mark after a block is missing" in (found[-1].damage or "")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (header(codec="lz4") + block(2, b"\0\0\0\0\0\0"), "lz4 is not known or missing"),
        (header(codec="") + block(2, b"\0\0\0\0\0\0"), " is not known or missing"),
        (header().replace(b"null", b"\xff\xff\xff\xff", 1) + block(1, b"\0"), "codec can't decode"),
        (
            header().replace(b"avro.codec\x08null", b"avro.codec\x08\xff\xfe\xfd\xfc") + block(1, b"\0"),
            "codec can't decode",
        ),
        (header(schema="no JSON") + block(2, b"\0\0\0\0\0\0"), "it is not JSON"),
        (header(schema='"string"') + block(2, b"\0\0\0\0\0\0"), "it does not describe a record"),
        (
            header(schema='{"type": "record", "name": "r", "fields": [{"name": "f", "type": "unknown"}]}')
            + block(2, b"\0\0"),
            "not defined before",
        ),
        (
            header(schema='{"type": "record", "name": "r", "fields": [{"name": "\\ud800", "type": "int"}]}')
            + block(1, b"\0"),
            "half a surrogate pair",
        ),
        (header(schema="{" * 100_000) + block(2, b"\0\0"), "it is not JSON"),
        (
            header(schema=json.dumps([nested_record(number) for number in range(1000)])) + block(1, b"\0"),
            "it does not describe a record",
        ),
        (
            header().replace(b"avro.schema", b"avro_schema") + block(2, b"\0\0\0\0\0\0"),
            "avro.schema is not known or missing",
        ),
        (b"Obj\x01", "it ends too early"),
        (b"Obj\x01\0" + MARK[:15], "it ends too early"),
        (b"Obj\x01" + long_bytes(2**60) + b"\x02a\x02b", "items, with"),
        (b"Obj\x01\x02" + long_bytes(2**60) + b"a", "a length of"),
    ],
    ids=range(15),
)  # fmt: skip
def test_headers_that_cannot_be_used(content: bytes, words: str) -> None:
    found = found_in(content)
    assert [(one.block, one.number, one.raw, one.schema) for one in found] == [(0, 0, content, None)]
    assert (found[0].damage or "").startswith("a container whose header cannot be used: ") and words in (
        found[0].damage or ""
    )


@pytest.mark.parametrize("depth", [*range(50, 1000, 50), *range(1000, 10_000, 1000)])
def test_schemas_that_are_deep(depth: int) -> None:
    """They are used, or refused, but nothing else: parts of the reader go down in them, each to another depth."""
    for before, behind in (
        ('{"type": "array", "items": ', "}"),
        ('["null", {"type": "map", "values": ', "}]"),
        ('{"type": "record", "name": "NAME", "fields": [{"name": "f", "type": ', "}]}"),
    ):
        inner = "".join(before.replace("NAME", f"r{number}") for number in range(depth)) + '"long"' + behind * depth
        found = found_in(
            header(schema='{"type": "record", "name": "r", "fields": [{"name": "f", "type": ' + inner + "}]}")
            + block(1, b"\0")
        )
        assert len(found) == 1


def test_schemas_of_which_each_part_is_used_twice() -> None:
    """Whoever goes over all uses of all parts does not come to an end. That such a record has more bytes than this
    block must be seen at once.
    """
    parts = [
        {
            "name": f"f{n}",
            "type": {
                "type": "record",
                "name": f"r{n}",
                "fields": [{"name": name, "type": f"r{n - 1}" if n else "long"} for name in "ab"],
            },
        }
        for n in range(25)
    ]
    started = time.perf_counter()
    content = header(schema=json.dumps({"type": "record", "name": "r", "fields": parts})) + block(1, bytes(100))
    assert [one.damage is None for one in found_in(content)] == [False]
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize("leaf", [[], [{"name": "f", "type": "null"}]], ids=["empty", "null"])
def test_records_that_hold_two_of_each_other_and_no_bytes(leaf: list[Any]) -> None:
    """To step over one takes 2^40 steps, and not a byte says so."""
    kind: Any = {"type": "record", "name": "r0", "fields": leaf}
    for number in range(1, 41):
        kind = {
            "type": "record",
            "name": f"r{number}",
            "fields": [{"name": "a", "type": kind}, {"name": "b", "type": f"r{number - 1}"}],
        }
    (piece,) = found_in(header(schema=json.dumps(kind)) + block(1, b"\0"))
    assert "may hold more than 100 parts of no bytes" in (piece.damage or "")


def test_a_schema_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_schema, "MAX_SCHEMA_CHARACTERS", len(DECLARED) - 1)
    (piece,) = found_in(container([records(random.Random(2), 1)]))
    assert f"it has {len(DECLARED)} characters, more than {len(DECLARED) - 1}" in (piece.damage or "")


COLUMNS = 80_000


def test_a_record_of_many_columns() -> None:
    """Around the values that are read, in a record of its own and in a list."""
    columns = [{"name": f"column_{number}", "type": ["null", "string"]} for number in range(COLUMNS)]
    wide = {"type": "record", "name": "wide", "fields": [*columns, {"name": "name", "type": "string"}]}
    fields = [{"name": "source", "type": wide}, {"name": "fields", "type": {"type": "array", "items": "wide"}}]
    schema = json.dumps({"type": "record", "name": "r", "fields": fields})
    values = b"\x02\x02a" * COLUMNS
    message = values + b"\x02b" + b"\x02" + values + b"\x02c" + b"\0"
    (found,) = messages_of_file("1.avro", header(schema=schema, codec="deflate") + block(1, deflate(message)))
    slots = (Slot(("source", "name"), "text"), Slot(("fields", "name"), "texts"))
    assert message_decoder(Layout((), slots, {}))(found.raw, found.schema) == Found(["b", ["c"]])


def test_records_that_hold_each_other() -> None:
    """Each has a member of a union of all those before it: a reader for each way through them would be too many."""
    names = [f"r{number}" for number in range(300)]
    types = [
        {
            "type": "record",
            "name": name,
            "fields": [{"name": member, "type": ["null", *names[:number]]} for member in ("a", "b")],
        }
        for number, name in enumerate(names)
    ]
    schema = json.dumps({"type": "record", "name": "r", "fields": [{"name": "top", "type": ["null", *types]}]})
    read = message_decoder(Layout((), (Slot(("top", "a"), "text"), Slot(("top", "a", "b"), "text")), {}))
    assert read(b"\0", schema) == Found([None, None])


def test_a_record_that_cannot_be_stepped_over() -> None:
    draw = random.Random(9)
    good, behind = records(draw, 4), records(draw, 2)
    rest = b"\x02\x06" + b"".join(good[2:])  # the third branch of two
    found = found_in(header() + block(5, b"".join(good[:2]) + rest) + block(2, b"".join(behind)))
    assert [one.raw for one in found] == [*good[:2], rest, b"", b"", *behind]
    assert [one.damage is None for one in found] == [True, True, False, False, False, True, True]
    assert (found[2].damage or "").startswith("record 3 of 5 in the block at byte ") and "branch 3 of a union of 2" in (
        found[2].damage or ""
    )


def test_a_record_that_is_too_deep() -> None:
    deep = b"\x02" * 100_000 + b"\0"
    found = found_in(header(schema=json.dumps(NODE)) + block(3, b"\0" + deep + b"\0"))
    assert [(one.raw, one.damage is None) for one in found] == [(b"\0", True), (deep + b"\0", False), (b"", False)]


@pytest.mark.parametrize("codec", ["deflate", "bzip2", "xz", "snappy", "zstandard"])
def test_a_block_that_unpacks_to_more_than_is_allowed(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_unpacking, "MAX_UNPACKED_BYTES", 1 << 20)
    packed, good = PACKINGS[codec](bytes(100 << 20)), records(random.Random(10), 2)
    content = (
        header(codec=codec)
        + block(2, PACKINGS[codec](b"".join(good)))
        + block(1, packed)
        + block(2, PACKINGS[codec](b"".join(good)))
    )
    # bz2 and lzma take what they need from elsewhere: of what Python holds, nothing is much larger than is allowed.
    tracemalloc.start()
    found = found_in(content)
    largest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert largest < (20 << 20) + 2 * len(content)
    assert len(found) == 5 and f"more than {1 << 20}" in (found[2].damage or "")
    assert whole(found) == [*good, *good]


@pytest.mark.parametrize("codec", ["deflate", "bzip2", "xz", "snappy", "zstandard"])
def test_a_container_that_unpacks_to_more_than_is_allowed(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block is small enough, and some cannot be used: what they unpack to counts all the same."""
    monkeypatch.setattr(avro_files, "MAX_CONTAINER_BYTES", 10 << 20)
    monkeypatch.setattr(avro_files, "MAX_CONTAINER_TIMES", 2)
    good, large = records(random.Random(10), 2), bytes(4 << 20)
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
    one_byte = json.dumps({"type": "record", "name": "r", "fields": [{"name": "f", "type": "boolean"}]})
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
    tracemalloc.start()
    found = found_in(content, "a.base64")
    largest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert whole(found) == [b"A", b"B"] and "more than 1048576 bytes" in (found[1].damage or "")
    assert largest < 8 << 20


def test_a_sum_that_is_not_that_of_the_block() -> None:
    good, other = records(random.Random(14), 2), records(random.Random(15), 2)
    packed = pyarrow.Codec("snappy").compress(b"".join(other), asbytes=True)
    found = found_in(container([good], "snappy") + block(2, with_sum(packed, b"something else")))
    assert whole(found) == good
    assert len(found) == 3 and "checksum is wrong" in (found[2].damage or "")


def test_files_that_are_not_read_into_memory(tmp_path: Path) -> None:
    draw = random.Random(16)
    contents = [
        b"",
        b"abc",
        header()[:-3],
        b"QQ==\r\n\nQ\nQg==",
        *(container([records(draw, 5), records(draw, 3)], codec) for codec in PACKINGS),
    ]
    for content, name in itertools.product(
        [*contents, *(mutated(draw, content) for content in contents)], ["a b.avro", "a.base64"]
    ):
        (tmp_path / name).write_bytes(content)
        with content_of((tmp_path / name).as_uri(), None) as mapped:
            assert list(messages_of_file(name, mapped)) == found_in(content, name)
            assert count_messages(name, mapped) == count_messages(name, content)


# --- lines of base64, and files that are one message


def test_lines_of_base64() -> None:
    draw = random.Random(11)
    messages = [draw.randbytes(draw.randrange(1, 60)) for _ in range(50)]
    for end in (b"\n", b"\r\n", b" \t\n", b"\n\n \n\r\n"):
        content = end + end.join(base64.b64encode(message) for message in messages)
        for behind in (b"", end):
            found = found_in(content + behind, "a.base64")
            assert whole(found) == messages
            assert {(one.number, one.schema) for one in found} == {(0, None)}
            assert [content[one.block :].split()[0] for one in found] == [
                base64.b64encode(message) for message in messages
            ]


@pytest.mark.parametrize(
    "line",
    [b"no base64!", b"QQ", b"QQ=", b"Q", b"=", b"====", b"QQ==QQ==", b"Q-_Q", b"\xff\xfe", b"{}", b"Q Q=", b"QQ==x"],
)
def test_a_line_that_is_no_base64(line: bytes) -> None:
    found = found_in(b"QQ==\n" + line + b"\r\nQg==\n", "a.base64")
    assert found == [
        FileMessage(0, 0, b"A"),
        FileMessage(5, 0, line, damage="a line that is not base64"),
        FileMessage(7 + len(line), 0, b"B"),
    ]


def test_files_without_lines() -> None:
    for content in (b"", b"\n", b"\r\n\r\n", b"  \t"):
        assert found_in(content, "a.base64") == []


def test_a_file_that_is_one_message() -> None:
    for content in (b"", b"\0", b"abc\n", b"Obj", b"Obj\x02" + bytes(50), records(random.Random(12), 1)[0]):
        assert found_in(content) == [FileMessage(0, 0, content)]


def test_random_bytes() -> None:
    draw = random.Random(13)
    for _ in range(2000):
        found_in(
            draw.choice([b"", b"Obj\x01", header(codec=draw.choice(list(PACKINGS)))])
            + draw.randbytes(draw.randrange(60)),
            draw.choice(["a", "a.base64"]),
        )


# --- packed as a whole


@pytest.mark.parametrize("name", ["1.avro", "1.base64", "1"])
def test_files_in_gzip(name: str) -> None:
    content = {"1.avro": container([records(random.Random(1), 3)]), "1.base64": b"AAAA\nAAAB\n", "1": b"\x02"}[name]
    packed = gzip.compress(content)
    assert list(messages_of_file(f"{name}.gz", packed)) == list(messages_of_file(name, content))
    assert count_messages(f"{name}.gz", packed) == count_messages(name, content)
    for broken in (packed[:-9], packed[:5], content):
        (piece,) = messages_of_file(f"{name}.gz", broken)
        assert (piece.raw, piece.damage is None, count_messages(f"{name}.gz", broken)) == (broken, False, 1)


@pytest.mark.parametrize("name", ["1.avro.gz", "1.base64.gz", "1.gz"])
def test_a_file_in_gzip_that_unpacks_to_more_than_is_allowed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_unpacking, "MAX_UNPACKED_BYTES", 1 << 20)
    packed = gzip.compress(bytes(100 << 20))
    tracemalloc.start()
    (piece,) = found_in(packed, name)
    largest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert largest < 20 << 20
    assert (piece.raw, piece.damage) == (
        packed,
        f"a file that cannot be unpacked: it unpacks to more than {1 << 20} bytes",
    )


@pytest.mark.parametrize("more", [0, 1, 3])
def test_all_that_is_in_a_deflated_block_comes_out(more: int) -> None:
    """What goes in is used up before all of it has come out."""
    data = bytes(avro_unpacking.PART_BYTES + more)
    packed = PACKINGS["deflate"](data)
    assert avro_unpacking.unpacked(avro_unpacking.CODECS["deflate"], packed).data == data
    cut = avro_unpacking.unpacked(avro_unpacking.CODECS["deflate"], packed[:-1])
    assert (cut.data, cut.damage) == (b"", "it ends too early")
