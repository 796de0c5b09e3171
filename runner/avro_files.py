"""The bytes of a file -> the messages in it: a container of Avro records, lines of base64, or one message that is the whole file."""

from __future__ import annotations

import base64
import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow

from runner.avro_reader import Malformed, Skip, read_bytes, read_entries, read_long, skipper
from runner.avro_schema import SchemaError, parse_schema

MAGIC = b"Obj\x01"
SYNC = 16
LINES = ".base64"
ZIPPED = ".gz"
# More is a lie, or nothing that a worker should unpack: blocks are made of some 64 KB.
MOST_BYTES_OF_A_BLOCK = 1 << 28
MOST_RECORDS_OF_A_BYTE = 1_100
MOST_MEMORY = 1 << 28  # that the header of an xz block may ask for, whatever is in it


@dataclass(frozen=True)
class FileMessage:
    """`block` is where its block or line begins in the file, `number` counts within it. `schema` is set where the file has one of its own;
    `damage` says why the bytes are no message but a piece of a damaged file."""

    block: int
    number: int
    raw: bytes
    schema: str | None = None
    damage: str | None = None


def messages_of_file(name: str, content: bytes) -> Iterator[FileMessage]:
    """All messages of a file, in their order; what cannot be taken apart comes as one piece."""
    try:
        name, content = unzipped(name, content)
    except UNPACKED as error:
        yield FileMessage(0, 0, content, damage=f"a file that cannot be unpacked: {error}")
        return
    if content.startswith(MAGIC):
        yield from _messages_of_container(content)
    elif name.endswith(LINES):
        yield from _messages_of_lines(content)
    else:
        yield FileMessage(0, 0, content)


def count_messages(name: str, content: bytes) -> int:
    """How many messages a file holds, by what its blocks say of themselves: no record is looked at."""
    try:
        name, content = unzipped(name, content)
    except UNPACKED:
        return 1
    if name.endswith(LINES) and not content.startswith(MAGIC):
        return sum(1 for line in content.split(b"\n") if line.strip())
    if not content.startswith(MAGIC):
        return 1
    try:
        container = _container(content)
    except UNUSABLE:
        return 1
    count, position = 0, container.first_block
    while position < len(content):
        try:
            records, packed, position = _block(content, position, container.sync)
        except (Malformed, IndexError):
            return count + 1
        count += records or _has_bytes(packed, container)
    return count


def unzipped(name: str, content: bytes) -> tuple[str, bytes]:
    """Name and bytes of what is in a file that ends in .gz; raises one of UNPACKED."""
    return (name.removesuffix(ZIPPED), gzip.decompress(content)) if name.endswith(ZIPPED) else (name, content)


def _messages_of_lines(content: bytes) -> Iterator[FileMessage]:
    position = 0
    for line in content.split(b"\n"):
        text = line.strip()
        if text:
            try:
                yield FileMessage(position, 0, base64.b64decode(text, validate=True))
            except ValueError:
                yield FileMessage(position, 0, text, damage="a line that is not base64")
        position += len(line) + 1


# --- containers


class _Container(NamedTuple):
    schema: str
    skip: Skip
    unpack: Callable[[bytes], bytes]
    first_block: int
    sync: bytes


def _container(content: bytes) -> _Container:
    meta, position, sync = _header(content)
    schema = meta["avro.schema"].decode()
    return _Container(schema, skipper(parse_schema(schema)), CODECS[meta.get("avro.codec", b"null").decode()], position, sync)


def _messages_of_container(content: bytes) -> Iterator[FileMessage]:
    try:
        container = _container(content)
    except UNUSABLE as error:
        yield FileMessage(0, 0, content, damage=f"a container whose header cannot be used: {_words(error)}")
        return
    position = container.first_block
    while position < len(content):
        start = position
        try:
            count, packed, position = _block(content, start, container.sync)
        except (Malformed, IndexError) as error:
            yield FileMessage(start, 0, content[start:], damage=f"a container that is damaged from byte {start} on: {_words(error)}")
            return
        if count:
            yield from _messages_of_block(packed, count, start, content[start:position], container)
        elif _has_bytes(packed, container):
            yield FileMessage(start, 0, content[start:position], damage=f"the block at byte {start}: no records, but bytes")


def _has_bytes(packed: bytes, container: _Container) -> bool:
    try:
        return container.unpack(packed) != b""
    except UNPACKED:
        return True


def _messages_of_block(packed: bytes, count: int, block: int, whole: bytes, container: _Container) -> Iterator[FileMessage]:
    try:
        data = container.unpack(packed)
    except UNPACKED as error:
        yield from _lost(whole, 0, count, block, _words(error))
    else:
        yield from _records(data, count, block, container)


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
        yield FileMessage(block, number, data[position:] if number == count - 1 else data[position:end], container.schema)
        position = end


def _lost(rest: bytes, first: int, count: int, block: int, why: str) -> Iterator[FileMessage]:
    """The records of a block from the first one on that cannot be read: one piece for each, since that is how many `count_messages` says there are."""
    yield FileMessage(block, first, rest, damage=f"record {first + 1} of {count} in the block at byte {block}: {why}")
    for number in range(first + 1, count):
        yield FileMessage(block, number, b"", damage=f"record {number + 1} of {count} in the block at byte {block}: behind one that cannot be read")


def _header(content: bytes) -> tuple[Mapping[str, bytes], int, bytes]:
    """What a container says of itself, where its blocks begin, and what stands between them."""
    meta, position = read_entries(read_bytes)(content, len(MAGIC))
    sync = content[position : position + SYNC]
    if len(sync) < SYNC:
        raise IndexError
    return meta, position + SYNC, sync


def _block(content: bytes, position: int, sync: bytes) -> tuple[int, bytes, int]:
    """How many records a block has, its bytes as they are packed, and where the next one begins."""
    count, start = read_long(content, position)
    packed, end = read_bytes(content, start)
    if not 0 <= count <= len(packed) * MOST_RECORDS_OF_A_BYTE:
        raise Malformed(position, f"a block of {count} records in {len(packed)} bytes")
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
    "null": bytes, "deflate": _inflate, "bzip2": _by(bz2.BZ2Decompressor), "xz": _by(lambda: lzma.LZMADecompressor(memlimit=MOST_MEMORY)), "snappy": _snappy, "zstandard": _zstandard,
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
