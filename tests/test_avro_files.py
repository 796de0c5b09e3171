"""Files of messages in Avro: containers written by fastavro, or by hand for what it cannot pack here, whole and
damaged. Without Spark.
"""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from runner.functions.avro.files import FileMessage, content_of, count_messages, messages_of_file
from tests.avro_cases import encoded
from tests.avro_types import record_type
from tests.random_avro import Made, damaged, long_bytes, schemas, text_bytes, values

SCHEMA = record_type("message", id="long", text=["null", "string"], raw="bytes")
MARK = bytes(range(100, 116))
DECLARED = json.dumps(SCHEMA)
RECORDS = st.builds(
    lambda id_, text, raw: encoded(SCHEMA, {"id": id_, "text": text, "raw": raw}),
    st.integers(0, 2**40),
    st.sampled_from([None, "", "é" * 80]) | st.text(max_size=5),
    st.binary(max_size=9),
)
BLOCKS = st.lists(st.lists(RECORDS, min_size=1, max_size=4), min_size=1, max_size=4)
CODECS = st.deferred(lambda: st.sampled_from(list(PACKINGS)))


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


def records(count: int, first: int = 0) -> list[bytes]:
    values = [
        {"id": number << number % 30, "text": [None, "", "é" * number][number % 3], "raw": bytes(number % 9)}
        for number in range(first, first + count)
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


@st.composite
def values_of_a_schema(draw: Any) -> tuple[Made, list[Any]]:
    made = draw(schemas())
    return made, draw(st.lists(values(made), min_size=1, max_size=3))


def test_containers_of_fastavro() -> None:
    """By random schemas. Records without any bytes are left out: nothing is known of how many there are."""
    blocks = []

    @given(values_of_a_schema(), st.sampled_from(["null", "deflate", "bzip2", "xz"]))
    def check(made_and_values: tuple[Made, list[Any]], codec: str) -> None:
        made, some = made_and_values
        expected = [encoded(made.parsed, value) for value in some] * 5
        assume(all(expected))
        out = io.BytesIO()
        fastavro.writer(out, made.parsed, some * 5, codec=codec, sync_interval=50)
        found = found_in(out.getvalue())
        assert [one.raw for one in found] == expected
        assert {one.damage for one in found} == {None}
        written = fastavro.reader(io.BytesIO(out.getvalue())).metadata["avro.schema"]
        assert json.loads(found[0].schema or "") == json.loads(written)
        blocks.append(len({one.block for one in found}))

    check()
    assert sum(number > 1 for number in blocks) > 20


@pytest.mark.parametrize("codec", PACKINGS)
def test_containers_made_by_hand(codec: str) -> None:
    blocks = [records(count) for count in (3, 1, 200, 7)]
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
    one = records(1)
    assert whole(found_in(header(codec=None) + block(1, one[0]))) == one
    assert whole(found_in(header(codec=None, other=b"\xff") + block(1, one[0]))) == one


def test_a_container_may_have_any_name() -> None:
    one = records(1)
    for name in ("x.base64", "x", "x.jsonl"):
        assert whole(found_in(container([one]), name)) == one


# --- damaged containers


@pytest.mark.parametrize("codec", PACKINGS)
def test_containers_that_are_cut_off(codec: str) -> None:
    blocks = [records(count, count) for count in (3, 2, 4)]
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


@st.composite
def damaged_containers(draw: Any) -> tuple[str, list[list[bytes]], bytes, bytes]:
    """The codec, the records of each block, the whole container, and the damaged one."""
    codec, blocks = draw(CODECS), draw(BLOCKS)
    content, first = container(blocks, codec), draw(st.just(0) | st.just(len(header(codec=codec))))
    return codec, blocks, content, content[:first] + draw(damaged(content[first:]))


@given(damaged_containers())
def test_containers_with_random_damage(sent: tuple[str, list[list[bytes]], bytes, bytes]) -> None:
    """Records of blocks before the damage come back; what does not lies in a piece, wherever the damage is."""
    codec, blocks, content, broken = sent
    found = found_in(broken)
    same = next((at for at, (a, b) in enumerate(zip(content, broken)) if a != b), min(len(content), len(broken)))
    end, before = len(header(codec=codec)), []
    is_header_whole = broken[:end] == content[:end]
    for one in blocks:
        end += len(block(len(one), PACKINGS[codec](b"".join(one))))
        before += one if end <= same else []
    assert [one.raw for one in found][: len(before)] == before or not broken.startswith(b"Obj\x01")
    if codec == "null" and is_header_whole:
        assert bytes_are_kept(broken, found)


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
    before, within, behind = (records(3, first) for first in (0, 3, 6))
    packed = PACKINGS[codec](b"".join(within))
    broken = block(3, b"\xff" * 20 if codec == "null" else packed[:5] + b"\xff" * 5 + packed[10:])
    found = found_in(container([before], codec) + broken + container([behind], codec)[len(header(codec=codec)) :])
    assert whole(found)[:3] == before and whole(found)[-3:] == behind
    lost = found[3:-3]
    if codec == "null":
        starts = [(number, f"record {number + 1} of 3 i") for number in range(3)]
        assert [(one.number, (one.damage or "")[:15]) for one in lost] == starts
    else:
        assert [one.raw for one in lost] == [broken] and "with 3 records: " in (lost[0].damage or "")


@pytest.mark.parametrize("count", [0, 1, 4, 5, 6, 500])
@pytest.mark.parametrize("codec", PACKINGS)
def test_wrong_counts(codec: str, count: int) -> None:
    """Too few: what is left makes the last one too long, and it shows as such. Too many: those that are not there are
    pieces, as long as they might be.
    """
    sent, behind = records(5), records(2, 5)
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
        expected = sent if count >= 5 else [*sent[: count - 1], b"".join(sent[count - 1 :])]
        assert [one.raw for one in found[: min(count, 5)]] == expected
        assert all(one.damage for one in found[5:-2])


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        *((block(count, b"abc"), f"a block of {count} records") for count in (-1, -(2**63))),
        *((block(count, b"abc"), f"{count} records in 3 bytes") for count in (2**40, 2**63 - 1)),
        *((block(1, b"abc", size=size), "") for size in (-1, 2**60, -(2**63), 4, 2)),
        (block(2, b"".join(records(2)), mark=MARK[::-1]) + block(1, b"\0"), "the mark after a block is missing"),
    ],
    ids=range(10),
)
def test_blocks_that_lie(broken: bytes, words: str) -> None:
    """Of how many records or bytes they have, or of where they end."""
    good = records(2)
    found = found_in(container([good]) + broken)
    assert whole(found) == good
    (piece,) = found[2:]
    assert piece.raw == broken and piece.damage and words in piece.damage


def test_a_record_that_cannot_be_stepped_over() -> None:
    good, behind = records(4), records(2, 4)
    rest = b"\x02\x06" + b"".join(good[2:])  # the third branch of two
    found = found_in(header() + block(5, b"".join(good[:2]) + rest) + block(2, b"".join(behind)))
    assert [one.raw for one in found] == [*good[:2], rest, b"", b"", *behind]
    assert [one.damage is None for one in found] == [True, True, False, False, False, True, True]
    assert (found[2].damage or "").startswith("record 3 of 5 in the block at byte ") and "branch 3 of a union of 2" in (
        found[2].damage or ""
    )


def test_a_sum_that_is_not_that_of_the_block() -> None:
    good, other = records(2), records(2, 2)
    packed = pyarrow.Codec("snappy").compress(b"".join(other), asbytes=True)
    found = found_in(container([good], "snappy") + block(2, with_sum(packed, b"something else")))
    assert whole(found) == good
    assert len(found) == 3 and "checksum is wrong" in (found[2].damage or "")


ANY_BYTES = st.binary(max_size=60)
ANY_CONTENTS = st.one_of(
    ANY_BYTES,
    st.builds(bytes.__add__, st.sampled_from([b"Obj\x01", *(header(codec=codec) for codec in PACKINGS)]), ANY_BYTES),
    st.lists(ANY_BYTES.map(base64.b64encode) | ANY_BYTES).map(b"\r\n".join),
    damaged_containers().map(lambda sent: sent[-1]),
)


def test_any_contents_are_read_alike_in_memory_and_from_a_file(tmp_path: Path) -> None:
    @given(ANY_CONTENTS, st.sampled_from(["a b.avro", "a.base64"]))
    def check(content: bytes, name: str) -> None:
        (tmp_path / name).write_bytes(content)
        with content_of((tmp_path / name).as_uri(), None) as mapped:
            assert list(messages_of_file(name, mapped)) == found_in(content, name)
            assert count_messages(name, mapped) == count_messages(name, content)

    check()


# --- lines of base64, and files that are one message


def test_lines_of_base64() -> None:
    messages = [bytes(range(number)) for number in range(1, 60)]
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
    for content in (b"", b"\0", b"abc\n", b"Obj", b"Obj\x02" + bytes(50), records(1)[0]):
        assert found_in(content) == [FileMessage(0, 0, content)]


# --- packed as a whole


@pytest.mark.parametrize("name", ["1.avro", "1.base64", "1"])
def test_files_in_gzip(name: str) -> None:
    content = {"1.avro": container([records(3)]), "1.base64": b"AAAA\nAAAB\n", "1": b"\x02"}[name]
    packed = gzip.compress(content)
    assert list(messages_of_file(f"{name}.gz", packed)) == list(messages_of_file(name, content))
    assert count_messages(f"{name}.gz", packed) == count_messages(name, content)
    for broken in (packed[:-9], packed[:5], content):
        (piece,) = messages_of_file(f"{name}.gz", broken)
        assert (piece.raw, piece.damage is None, count_messages(f"{name}.gz", broken)) == (broken, False, 1)
