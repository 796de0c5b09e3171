"""The messages in the bytes of a file: a container of Avro records, lines of base64, or one message."""

from __future__ import annotations

import base64
import mmap
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, cast
from urllib.parse import unquote

from runner.functions.avro.reader import Malformed, Skip, read_bytes, read_entries, read_long, skipper
from runner.functions.avro.schema import SchemaError, min_size, parse_record
from runner.functions.avro.unpacking import CODECS, MAX_UNPACKED_BYTES, Unpack, Unpacked, gzipped, unpacked

Content = bytes | mmap.mmap

MAGIC = b"Obj\x01"
SYNC = 16
LINES = ".base64"
ZIPPED = ".gz"
MAX_MESSAGE_BYTES = 1 << 26
# All blocks of a container may together unpack to this many bytes, or to this many times the size of the file, if that
# is more. A record counts for some bytes, and for a part of the file's schema, which goes with each record.
MAX_CONTAINER_BYTES = 1 << 30
MAX_CONTAINER_TIMES = 100
MIN_RECORD_BYTES = 100
MAX_HEADER_BYTES = 1 << 26
# The number of bytes of a damaged piece of a file that are kept with the dead letter; the file itself stays.
MAX_PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class TopicRecord:
    """The parts of a record of a topic beside its value."""

    key: str | None
    topic: str | None
    headers: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True)
class FileMessage:
    """A message of a file. `block` is the position in the file where the block or line of the message begins, `number`
    counts within the block from 0. `schema` is the text of the file's own schema, if the file has one. `damage` is set
    if the bytes are not a message but a piece of a damaged file, and says why. `record` is set if the file holds
    records of a topic: then no bytes mean no value.
    """

    block: int
    number: int
    raw: bytes
    schema: str | None = None
    damage: str | None = None
    record: TopicRecord | None = None


def plain_path(address: str) -> str:
    """Returns the path at an address, as Spark writes it: for a local file without file:.

    >>> plain_path("file:///a/b%20c;d"), plain_path("file:/a/b"), plain_path("s3a://lake/b%20c")
    ('/a/b c;d', '/a/b', 's3a://lake/b c')
    """
    return unquote(address.removeprefix("file:").removeprefix("//") if address.startswith("file:") else address)


@contextmanager
def content_of(path: str, content: bytes | None) -> Iterator[Content]:
    """Returns the bytes of a file: `content` if given, else those of the local file at an address such as file:/a/b.
    Only the parts of a local file that are read come into memory.
    """
    if content is not None:
        yield content
        return
    with open(plain_path(path), "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            yield b""
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            yield mapped


def messages_of_file(name: str, content: Content) -> Iterator[FileMessage]:
    """Returns all messages of a file, in order. A part that cannot be split is one piece, with its damage."""
    name, data, damage = without_gzip(name, content)
    if damage:
        yield _piece(0, 0, content, f"a file that cannot be unpacked: {damage}")
    elif data[: len(MAGIC)] == MAGIC:
        yield from _messages_of_container(data)
    elif name.endswith(LINES):
        yield from _messages_of_lines(data)
    else:
        yield _message(0, 0, data)


def count_messages(name: str, content: Content) -> int:
    """Returns the number of messages in a file. In a container, its blocks claim their numbers: no record is read."""
    name, data, damage = without_gzip(name, content)
    if damage:
        return 1
    if data[: len(MAGIC)] == MAGIC:
        try:
            return sum(block.records for block in _blocks(data, _container(data)))
        except UNUSABLE:
            return 1
    return sum(1 for _, line in _lines(data) if line) if name.endswith(LINES) else 1


def without_gzip(name: str, content: Content) -> tuple[str, Content, str | None]:
    """Returns the name without .gz and the unpacked bytes, if the name ends in .gz; or why unpacking fails."""
    if not name.endswith(ZIPPED):
        return name, content, None
    found = unpacked(gzipped, content[:])
    return name.removesuffix(ZIPPED), found.data, found.damage


def _piece(block: int, number: int, content: Content, why: str) -> FileMessage:
    """Returns bytes that are not a message, with their damage, cut to the size that is kept."""
    kept = "" if len(content) <= MAX_PIECE_BYTES else f"; the first {MAX_PIECE_BYTES} bytes are kept here"
    return FileMessage(block, number, content[:MAX_PIECE_BYTES], damage=why + kept)


def _message(block: int, number: int, raw: Content, schema: str | None = None) -> FileMessage:
    if len(raw) > MAX_MESSAGE_BYTES:
        return _piece(block, number, raw, f"a message of more than {MAX_MESSAGE_BYTES} bytes")
    return FileMessage(block, number, raw[:], schema)


def _lines(content: Content) -> Iterator[tuple[int, bytes]]:
    """Returns the position where each line begins, and the line without blanks around it. A line that is too long for a
    message is cut; its length still shows that it is too long.
    """
    start = 0
    while start < len(content):
        end = content.find(b"\n", start)
        end = len(content) if end < 0 else end
        yield start, content[start : min(end, start + 2 * MAX_MESSAGE_BYTES)].strip()
        start = end + 1


def _messages_of_lines(content: Content) -> Iterator[FileMessage]:
    for start, line in _lines(content):
        if line:
            try:
                yield _message(start, 0, base64.b64decode(line, validate=True))
            except ValueError:
                yield _piece(start, 0, line, "a line that is not base64")


# --- containers


class _Container(NamedTuple):
    """The header of a container of records, and what is needed to read its blocks. `room` is the number of bytes that
    the blocks may unpack to, where a record counts for `weight` at least.
    """

    schema: str
    skip: Skip
    min_size: int
    unpack: Unpack
    first_block: int
    sync: bytes
    room: int
    weight: int


class _Block(NamedTuple):
    """A block of a container: the unpacked bytes of `records` records. A damaged block keeps its bytes as sent, and
    counts as one message.
    """

    start: int
    records: int
    data: bytes
    damage: str | None = None


def _container(content: Content) -> _Container:
    meta, position, sync = _header(content)
    schema = meta["avro.schema"].decode()
    record = parse_record(schema)
    return _Container(
        schema,
        skipper(record),
        max(1, min_size(record)),
        CODECS[meta.get("avro.codec", b"null").decode()],
        position,
        sync,
        max(MAX_CONTAINER_BYTES, MAX_CONTAINER_TIMES * len(content)),
        MIN_RECORD_BYTES + len(schema) // MAX_CONTAINER_TIMES,
    )


def _messages_of_container(content: Content) -> Iterator[FileMessage]:
    try:
        container = _container(content)
    except UNUSABLE as error:
        yield _piece(0, 0, content, f"a container whose header cannot be used: {_words(error)}")
        return
    for block in _blocks(content, container):
        if block.damage:
            yield _piece(block.start, 0, block.data, block.damage)
        else:
            yield from _records(block, container)


def _blocks(content: Content, container: _Container) -> Iterator[_Block]:
    """Returns the blocks that are not empty. No block can be found after a block whose end cannot be found, or after
    one for which there is no room.
    """
    position, room = container.first_block, container.room
    while position < len(content):
        start = position
        try:
            count, packed, position = _block(content, start, container.sync)
        except (Malformed, IndexError) as error:
            yield _rest(content, start, f"damaged from byte {start} on", _words(error))
            return
        if not count and not packed:
            continue
        data, size, why = _block_data(container, packed, count)
        room -= max(size, 0 if why else count * container.weight)
        if room < 0:
            limit = f"its blocks unpack to more than {container.room} bytes"
            yield _rest(content, start, f"not read from byte {start} on", limit)
            return
        if why:
            yield _Block(start, 1, content[start:position], f"the block at byte {start}, with {count} records: {why}")
        elif count:
            yield _Block(start, count, data)


def _rest(content: Content, start: int, what: str, why: str) -> _Block:
    damage = f"a container that is {what}, {len(content) - start} bytes before its end: {why}"
    return _Block(start, 1, content[start : start + MAX_UNPACKED_BYTES], damage)


def _block_data(container: _Container, packed: bytes, count: int) -> Unpacked:
    """Returns the unpacked bytes of a block that claims `count` records; or why the bytes cannot be so many records."""
    found = unpacked(container.unpack, packed)
    if not found.damage and (count * container.min_size > found.size or (found.size and not count)):
        return Unpacked(b"", found.size, f"{count} records in {found.size} bytes")
    return found


def _records(block: _Block, container: _Container) -> Iterator[FileMessage]:
    """Returns the records of a block, each with its bytes. After an unreadable record, no other can be found."""
    position = 0
    for number in range(block.records):
        try:
            end = container.skip(block.data, position)
        except (Malformed, IndexError, RecursionError) as error:
            yield from _lost(block, position, number, _words(error))
            return
        # Bytes left after the last record stay with it: the record is then too long, and nothing is lost.
        raw = block.data[position:] if number == block.records - 1 else block.data[position:end]
        yield _message(block.start, number, raw, container.schema)
        position = end


def _lost(block: _Block, position: int, first: int, why: str) -> Iterator[FileMessage]:
    """Returns a piece for each record of a block from the first that cannot be read. No record is left out, because
    `count_messages` counts all of them.
    """
    raw = block.data[position:]
    for number in range(first, block.records):
        place = f"record {number + 1} of {block.records} in the block at byte {block.start}"
        yield _piece(block.start, number, raw, f"{place}: {why}")
        raw, why = b"", "after one that cannot be read"


def _header(content: Content) -> tuple[Mapping[str, bytes], int, bytes]:
    """Returns the entries in the header of a container, where its blocks begin, and the mark between them."""
    meta, position = read_entries(read_bytes)(content[:MAX_HEADER_BYTES], len(MAGIC))
    sync = content[position : position + SYNC]
    if len(sync) < SYNC:
        raise IndexError
    return meta, position + SYNC, sync


def _block(content: Content, position: int, sync: bytes) -> tuple[int, bytes, int]:
    """Returns how many records a block claims, its packed bytes, and where the next block begins."""
    # A mapped file is read by index and slice, like bytes.
    data = cast("bytes", content)
    count, start = read_long(data, position)
    packed, end = read_bytes(data, start)
    if count < 0:
        raise Malformed(position, f"a block of {count} records")
    if content[end : end + SYNC] != sync:
        raise Malformed(end, "the mark after a block is missing")
    return count, packed, end + SYNC


UNUSABLE = (Malformed, IndexError, SchemaError, LookupError, UnicodeDecodeError, RecursionError)


def _words(error: Exception) -> str:
    match error:
        case Malformed():
            return f"{error.why}, at byte {error.position}"
        case IndexError():
            return "it ends too early"
        case KeyError():
            return f"{error.args[0]} is not known or missing"
    return str(error)
