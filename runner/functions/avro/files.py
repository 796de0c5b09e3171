"""The bytes of a file -> the messages in it. A file is a container of Avro records, lines of base64, or one message."""

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
from typing import NamedTuple, cast
from urllib.parse import unquote, urlparse

import pyarrow

from runner.functions.avro.reader import Malformed, Skip, read_bytes, read_entries, read_long, skipper
from runner.functions.avro.schema import SchemaError, min_size, parse_record

Content = bytes | mmap.mmap

MAGIC = b"Obj\x01"
SYNC = 16
LINES = ".base64"
ZIPPED = ".gz"
# Blocks usually have some 64 KB. A larger block than this is damaged, or too large for a worker to unpack.
MAX_BLOCK_BYTES = 1 << 28
MAX_MESSAGE_BYTES = 1 << 28
# The memory that the header of an xz block may ask for, however small the block is.
MAX_XZ_MEMORY = 1 << 28
# This much of a damaged piece of a file is kept with the dead letter; the file itself is still there.
MAX_PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class FileMessage:
    """`block` is the position in the file where the block or line of the message begins, `number` counts within it from
    0. `schema` is the text of the file's own schema, if it has one. `damage` is set if the bytes are not a message but
    a piece of a damaged file, and says why.
    """

    block: int
    number: int
    raw: bytes
    schema: str | None = None
    damage: str | None = None


def local_path(address: str) -> str:
    """The path of a local file at an address.

    >>> local_path("file:///a/b%20c"), local_path("file:/a/b")
    ('/a/b c', '/a/b')
    """
    return unquote(urlparse(address).path)


@contextmanager
def content_of(path: str, content: bytes | None) -> Iterator[Content]:
    """The bytes of a file: `content` if given, else those of the local file at an address such as file:/a/b. Only the
    parts of a local file that are read come into memory.
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
    """All messages of a file, in order. A part that cannot be split into messages is one piece, with its damage."""
    try:
        name, content = unzipped(name, content)
    except UNPACKED as error:
        yield _piece(0, content, 0, f"a file that cannot be unpacked: {error}")
        return
    if content[: len(MAGIC)] == MAGIC:
        yield from _messages_of_container(content)
    elif name.endswith(LINES):
        yield from _messages_of_lines(content)
    elif len(content) > MAX_MESSAGE_BYTES:
        yield _piece(
            0, content, 0, f"a file of {len(content)} bytes, which is not a container, and too large for a message"
        )
    else:
        yield FileMessage(0, 0, content[:])


def count_messages(name: str, content: Content) -> int:
    """How many messages a file has. In a container, the numbers that its blocks claim count: no record is read."""
    try:
        name, content = unzipped(name, content)
    except UNPACKED:
        return 1
    if content[: len(MAGIC)] == MAGIC:
        try:
            return sum(block.records for block in _blocks(content, _container(content)))
        except UNUSABLE:
            return 1
    return sum(1 for _, line in _lines(content) if line) if name.endswith(LINES) else 1


def unzipped(name: str, content: Content) -> tuple[str, Content]:
    """The name without .gz and the unpacked bytes, if the name ends in .gz; raises one of UNPACKED."""
    return (name.removesuffix(ZIPPED), gzip.decompress(content[:])) if name.endswith(ZIPPED) else (name, content)


def _piece(block: int, content: Content, start: int, why: str) -> FileMessage:
    """The bytes from `start` on as a piece with its damage, cut to the size that is kept."""
    rest = len(content) - start
    kept = "" if rest <= MAX_PIECE_BYTES else f"; of {rest} bytes the first {MAX_PIECE_BYTES} are kept here"
    return FileMessage(block, 0, content[start : start + MAX_PIECE_BYTES], damage=why + kept)


def _lines(content: Content) -> Iterator[tuple[int, bytes]]:
    """The position where each line begins, and the line without blanks around it."""
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
    min_size: int
    unpack: Callable[[bytes], bytes]
    first_block: int
    sync: bytes


class _Block(NamedTuple):
    """The unpacked bytes of `records` records. A damaged block keeps its bytes as sent, and counts as one message."""

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
            yield from _records(block, container)


def _blocks(content: Content, container: _Container) -> Iterator[_Block]:
    """The blocks that are not empty. After a block whose end cannot be found, no other block can be found."""
    position = container.first_block
    while position < len(content):
        start = position
        try:
            count, packed, position = _block(content, start, container.sync)
        except (Malformed, IndexError) as error:
            left = len(content) - start
            damage = f"a container that is damaged from byte {start} on, {left} bytes before its end: {_words(error)}"
            yield _Block(start, 1, content[start : start + MAX_BLOCK_BYTES], damage)
            return
        if not count and not packed:
            continue
        data, why = _unpacked(packed, count, container)
        if why:
            yield _Block(start, 1, content[start:position], f"the block at byte {start}, with {count} records: {why}")
        elif count:
            yield _Block(start, count, data)


def _unpacked(packed: bytes, count: int, container: _Container) -> tuple[bytes, str | None]:
    """The unpacked bytes of a block that claims `count` records; or why they cannot be that."""
    try:
        data = container.unpack(packed)
    except UNPACKED as error:
        return b"", _words(error)
    if count * container.min_size > len(data) or (data and not count):
        return b"", f"{count} records in {len(data)} bytes"
    return data, None


def _records(block: _Block, container: _Container) -> Iterator[FileMessage]:
    """The records of a block, each with its bytes. After a record that cannot be read, no other can be found."""
    position = 0
    for number in range(block.records):
        try:
            end = container.skip(block.data, position)
        except (Malformed, IndexError, RecursionError) as error:
            yield from _lost(block, position, number, _words(error))
            return
        # Bytes left after the last record stay with it: the record is then too long, and nothing is lost.
        raw = block.data[position:] if number == block.records - 1 else block.data[position:end]
        yield FileMessage(block.start, number, raw, container.schema)
        position = end


def _lost(block: _Block, position: int, first: int, why: str) -> Iterator[FileMessage]:
    """The records of a block from the first one on that cannot be read: one piece for each record, because
    `count_messages` counts all of them.
    """
    raw = block.data[position:]
    for number in range(first, block.records):
        place = f"record {number + 1} of {block.records} in the block at byte {block.start}"
        yield FileMessage(block.start, number, raw, damage=f"{place}: {why}")
        raw, why = b"", "after one that cannot be read"


def _header(content: Content) -> tuple[Mapping[str, bytes], int, bytes]:
    """The entries in the header of a container, where its blocks begin, and the mark between them."""
    # A mapped file is read by index and slice, like bytes.
    meta, position = read_entries(read_bytes)(cast("bytes", content), len(MAGIC))
    sync = content[position : position + SYNC]
    if len(sync) < SYNC:
        raise IndexError
    return meta, position + SYNC, sync


def _block(content: Content, position: int, sync: bytes) -> tuple[int, bytes, int]:
    """How many records a block claims, its packed bytes, and where the next block begins."""
    data = cast("bytes", content)
    count, start = read_long(data, position)
    packed, end = read_bytes(data, start)
    if count < 0:
        raise Malformed(position, f"a block of {count} records")
    if content[end : end + SYNC] != sync:
        raise Malformed(end, "the mark after a block is missing")
    return count, packed, end + SYNC


def _inflate(packed: bytes) -> bytes:
    unpacking = zlib.decompressobj(-zlib.MAX_WBITS)
    data = unpacking.decompress(packed, MAX_BLOCK_BYTES)
    if unpacking.unconsumed_tail:
        raise Malformed(0, f"a block of more than {MAX_BLOCK_BYTES} bytes")
    return data


def _by(decompressor: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor]) -> Callable[[bytes], bytes]:
    def unpack(packed: bytes) -> bytes:
        unpacking = decompressor()
        data = unpacking.decompress(packed, MAX_BLOCK_BYTES)
        if not unpacking.eof:
            raise Malformed(0, f"a block that does not end, or of more than {MAX_BLOCK_BYTES} bytes")
        return data

    return unpack


def _snappy(packed: bytes) -> bytes:
    """The last four bytes of a packed block are a checksum of the unpacked ones."""
    body, size, shift = packed[:-4], 0, 0
    for byte in body[:5]:
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    if size > MAX_BLOCK_BYTES:
        raise Malformed(0, f"a block of {size} bytes")
    data: bytes = pyarrow.Codec("snappy").decompress(body, size, asbytes=True)
    if zlib.crc32(data) != int.from_bytes(packed[-4:], "big"):
        raise Malformed(0, "a block whose checksum is wrong")
    return data


def _zstandard(packed: bytes) -> bytes:
    stream = pyarrow.CompressedInputStream(pyarrow.BufferReader(packed), "zstd")
    data: bytes = stream.read(MAX_BLOCK_BYTES + 1)
    if len(data) > MAX_BLOCK_BYTES:
        raise Malformed(0, f"a block of more than {MAX_BLOCK_BYTES} bytes")
    return data


CODECS: Mapping[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": _inflate,
    "bzip2": _by(bz2.BZ2Decompressor),
    "xz": _by(lambda: lzma.LZMADecompressor(memlimit=MAX_XZ_MEMORY)),
    "snappy": _snappy,
    "zstandard": _zstandard,
}
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
