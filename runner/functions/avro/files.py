"""The bytes of a file -> the messages in it: a container of Avro records, lines of base64, or one message that is the
whole file.
"""

from __future__ import annotations

import base64
import bz2
import gzip
import lzma
import mmap
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, Union
from urllib.parse import unquote, urlparse

import pyarrow

from runner.functions.avro.reader import Malformed, Skip, read_bytes, read_entries, read_long, skipper
from runner.functions.avro.schema import SchemaError, least_bytes, parse_record

Content = Union[bytes, mmap.mmap]

MAGIC = b"Obj\x01"
SYNC = 16
LINES = ".base64"
ZIPPED = ".gz"
# More is a lie, or nothing that a worker should unpack: blocks are made of some 64 KB.
MOST_BYTES_OF_A_BLOCK = 1 << 28
MOST_BYTES_OF_A_MESSAGE = 1 << 28
MOST_MEMORY = 1 << 28  # that the header of an xz block may ask for, whatever is in it
# Of a damaged piece of a file that much is kept with the dead letter; the file is still there.
MOST_BYTES_OF_A_PIECE = 1 << 20


@dataclass(frozen=True)
class FileMessage:
    """`block` is where its block or line begins in the file, `number` counts within it. `schema` is set where the file
    has one of its own;
    `damage` says why the bytes are no message but a piece of a damaged file."""

    block: int
    number: int
    raw: bytes
    schema: str | None = None
    damage: str | None = None


def local_path(address: str) -> str:
    """
    >>> local_path("file:///a/b%20c"), local_path("file:/a/b")
    ('/a/b c', '/a/b')
    """
    return unquote(urlparse(address).path)


@contextmanager
def opened(path: str, content: bytes | None) -> Iterator[Content]:
    """The bytes of a file: those given, else of the local file at an address such as file:/a/b, of which only what is
    looked at comes into memory.
    """
    if content is not None:
        yield content
        return
    with open(local_path(path), "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            yield b""
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            yield mapped


def messages_of_file(name: str, content: Content) -> Iterator[FileMessage]:
    """All messages of a file, in their order; what cannot be taken apart comes as one piece."""
    try:
        name, content = unzipped(name, content)
    except UNPACKED as error:
        yield _piece(0, content, 0, f"a file that cannot be unpacked: {error}")
        return
    if content[: len(MAGIC)] == MAGIC:
        yield from _messages_of_container(content)
    elif name.endswith(LINES):
        yield from _messages_of_lines(content)
    elif len(content) > MOST_BYTES_OF_A_MESSAGE:
        yield _piece(
            0, content, 0, f"a file of {len(content)} bytes, which is no container, and too large for a message"
        )
    else:
        yield FileMessage(0, 0, content[:])


def count_messages(name: str, content: Content) -> int:
    """How many messages a file holds, by what its blocks say of themselves: no record is looked at."""
    try:
        name, content = unzipped(name, content)
    except UNPACKED:
        return 1
    if content[: len(MAGIC)] == MAGIC:
        try:
            return sum(block.count for block in _blocks(content, _container(content)))
        except UNUSABLE:
            return 1
    return sum(1 for _, line in _lines(content) if line) if name.endswith(LINES) else 1


def unzipped(name: str, content: Content) -> tuple[str, Content]:
    """Name and bytes of what is in a file that ends in .gz; raises one of UNPACKED."""
    return (name.removesuffix(ZIPPED), gzip.decompress(content[:])) if name.endswith(ZIPPED) else (name, content)


def _piece(block: int, content: Content, start: int, why: str) -> FileMessage:
    """What is no message, from a byte on, as far as it is kept."""
    rest = len(content) - start
    kept = "" if rest <= MOST_BYTES_OF_A_PIECE else f"; of {rest} bytes the first {MOST_BYTES_OF_A_PIECE} are kept here"
    return FileMessage(block, 0, content[start : start + MOST_BYTES_OF_A_PIECE], damage=why + kept)


def _lines(content: Content) -> Iterator[tuple[int, bytes]]:
    """Where each line begins, and the line without blanks around it."""
    start = 0
    while start < len(content):
        end = content.find(b"\n", start)
        end = len(content) if end < 0 else end
        yield start, content[start:end].strip()
        start = end + 1


def _messages_of_lines(content: Content) -> Iterator[FileMessage]:
    for start, line in _lines(content):
        if line:
            try:
                yield FileMessage(start, 0, base64.b64decode(line, validate=True))
            except ValueError:
                yield FileMessage(start, 0, line, damage="a line that is not base64")


# --- containers


class _Container(NamedTuple):
    schema: str
    skip: Skip
    least_bytes: int
    unpack: Callable[[bytes], bytes]
    first_block: int
    sync: bytes


class _Block(NamedTuple):
    """`count` records in unpacked bytes; of a damaged one the bytes as they lie, which count as one message."""

    start: int
    count: int
    data: bytes
    damage: str | None = None


def _container(content: Content) -> _Container:
    meta, position, sync = _header(content)
    schema = meta["avro.schema"].decode()
    record = parse_record(schema)
    return _Container(
        schema,
        skipper(record),
        max(1, least_bytes(record)),
        CODECS[meta.get("avro.codec", b"null").decode()],
        position,
        sync,
    )


def _messages_of_container(content: Content) -> Iterator[FileMessage]:
    try:
        container = _container(content)
    except UNUSABLE as error:
        yield _piece(0, content, 0, f"a container whose header cannot be used: {_words(error)}")
        return
    for block in _blocks(content, container):
        if block.damage:
            yield _piece(block.start, block.data, 0, block.damage)
        else:
            yield from _records(block.data, block.count, block.start, container)


def _blocks(content: Content, container: _Container) -> Iterator[_Block]:
    """The blocks that hold something. Behind one whose end cannot be found no other can."""
    position = container.first_block
    while position < len(content):
        start = position
        try:
            count, packed, position = _block(content, start, container.sync)
        except (Malformed, IndexError) as error:
            rest = content[start : start + MOST_BYTES_OF_A_BLOCK]
            yield _Block(
                start,
                1,
                rest,
                f"a container that is damaged from byte {start} on, {len(content) - start} bytes before its end: {_words(error)}",
            )
            return
        if not count and not packed:
            continue
        try:
            data = container.unpack(packed)
            why = (
                f"{count} records in {len(data)} bytes"
                if count * container.least_bytes > len(data) or (data and not count)
                else None
            )
        except UNPACKED as error:
            data, why = b"", _words(error)
        if why:
            yield _Block(start, 1, content[start:position], f"the block at byte {start}, with {count} records: {why}")
        elif count:
            yield _Block(start, count, data)


def _records(data: bytes, count: int, block: int, container: _Container) -> Iterator[FileMessage]:
    """The records of a block, each in its bytes. From one that cannot be stepped over on, no other can be found."""
    position = 0
    for number in range(count):
        try:
            end = container.skip(data, position)
        except (Malformed, IndexError, RecursionError) as error:
            yield from _lost(data[position:], number, count, block, _words(error))
            return
        # What is left behind the last record makes that one too long: it is not lost.
        yield FileMessage(
            block, number, data[position:] if number == count - 1 else data[position:end], container.schema
        )
        position = end


def _lost(rest: bytes, first: int, count: int, block: int, why: str) -> Iterator[FileMessage]:
    """The records of a block from the first one on that cannot be read: one piece for each, since that is how many
    `count_messages` says there are.
    """
    yield FileMessage(block, first, rest, damage=f"record {first + 1} of {count} in the block at byte {block}: {why}")
    for number in range(first + 1, count):
        yield FileMessage(
            block,
            number,
            b"",
            damage=f"record {number + 1} of {count} in the block at byte {block}: behind one that cannot be read",
        )


def _header(content: Content) -> tuple[Mapping[str, bytes], int, bytes]:
    """What a container says of itself, where its blocks begin, and what stands between them."""
    meta, position = read_entries(read_bytes)(content, len(MAGIC))
    sync = content[position : position + SYNC]
    if len(sync) < SYNC:
        raise IndexError
    return meta, position + SYNC, sync


def _block(content: Content, position: int, sync: bytes) -> tuple[int, bytes, int]:
    """How many records a block has, its bytes as they are packed, and where the next one begins."""
    count, start = read_long(content, position)
    packed, end = read_bytes(content, start)
    if count < 0:
        raise Malformed(position, f"a block of {count} records")
    if content[end : end + SYNC] != sync:
        raise Malformed(end, "the mark behind a block is missing")
    return count, packed, end + SYNC


def _inflate(packed: bytes) -> bytes:
    unpacking = zlib.decompressobj(-zlib.MAX_WBITS)
    data = unpacking.decompress(packed, MOST_BYTES_OF_A_BLOCK)
    if unpacking.unconsumed_tail:
        raise Malformed(0, f"a block of more than {MOST_BYTES_OF_A_BLOCK} bytes")
    return data


def _by(decompressor: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor]) -> Callable[[bytes], bytes]:
    def unpack(packed: bytes) -> bytes:
        unpacking = decompressor()
        data = unpacking.decompress(packed, MOST_BYTES_OF_A_BLOCK)
        if not unpacking.eof:
            raise Malformed(0, f"a block that does not end, or of more than {MOST_BYTES_OF_A_BLOCK} bytes")
        return data

    return unpack


def _snappy(packed: bytes) -> bytes:
    """Behind a block in this packing stands a sum of its bytes."""
    body, size, shift = packed[:-4], 0, 0
    for byte in body[:5]:
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    if size > MOST_BYTES_OF_A_BLOCK:
        raise Malformed(0, f"a block of {size} bytes")
    data = pyarrow.Codec("snappy").decompress(body, size, asbytes=True)
    if zlib.crc32(data) != int.from_bytes(packed[-4:], "big"):
        raise Malformed(0, "a block with another sum than it had when it was written")
    return data


def _zstandard(packed: bytes) -> bytes:
    data = pyarrow.CompressedInputStream(pyarrow.BufferReader(packed), "zstd").read(MOST_BYTES_OF_A_BLOCK + 1)
    if len(data) > MOST_BYTES_OF_A_BLOCK:
        raise Malformed(0, f"a block of more than {MOST_BYTES_OF_A_BLOCK} bytes")
    return data


CODECS: Mapping[str, Callable[[bytes], bytes]] = {
    "null": bytes, "deflate": _inflate, "bzip2": _by(bz2.BZ2Decompressor), "xz": _by(lambda: lzma.LZMADecompressor(memlimit=MOST_MEMORY)),
    "snappy": _snappy, "zstandard": _zstandard,
}  # fmt: skip
UNPACKED = (Malformed, IndexError, zlib.error, OSError, lzma.LZMAError, EOFError, ValueError)
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
