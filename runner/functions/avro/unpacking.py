"""Packed bytes -> the bytes in them, up to a limit."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import pyarrow

# So many bytes may come out of a block of a container, or of a file in gzip. Blocks usually have some 64 KB.
MAX_UNPACKED_BYTES = 1 << 28
PART_BYTES = 1 << 22
# The memory that the header of an xz block may ask for, however small the block is.
MAX_XZ_MEMORY = 1 << 28

Unpack = Callable[[bytes], Iterator[bytes]]
"""Packed bytes -> what is in them, part by part."""


class Unpacked(NamedTuple):
    """What came out: `data`, or why it cannot be used; `size` bytes came out in any case."""

    data: bytes
    size: int
    damage: str | None = None


def unpacked(unpack: Unpack, packed: bytes) -> Unpacked:
    """What comes out of packed bytes, if it is not more than may."""
    parts, size = [], 0
    try:
        for part in unpack(packed):
            parts.append(part)
            size += len(part)
            if size > MAX_UNPACKED_BYTES:
                return Unpacked(b"", size, f"it unpacks to more than {MAX_UNPACKED_BYTES} bytes")
    except (ValueError, OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        return Unpacked(b"", size, str(error))
    return Unpacked(b"".join(parts), size)


def gzipped(packed: bytes) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
        yield from iter(partial(file.read, PART_BYTES), b"")


def _as_it_is(packed: bytes) -> Iterator[bytes]:
    yield packed


def _deflated(packed: bytes) -> Iterator[bytes]:
    unpacking, rest = zlib.decompressobj(-zlib.MAX_WBITS), packed
    while rest:
        yield unpacking.decompress(rest, PART_BYTES)
        rest = unpacking.unconsumed_tail
    # What came in may be used up before all of it has come out.
    yield unpacking.flush()
    if not unpacking.eof:
        raise EOFError("it ends too early")


def _by(decompressor: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor]) -> Unpack:
    def unpack(packed: bytes) -> Iterator[bytes]:
        unpacking, rest = decompressor(), packed
        while not unpacking.eof:
            if not rest and unpacking.needs_input:
                raise EOFError("it ends too early")
            yield unpacking.decompress(rest, PART_BYTES)
            rest = b""

    return unpack


def _snappy(packed: bytes) -> Iterator[bytes]:
    """The last four bytes of a packed block are a checksum of the unpacked ones."""
    body, size, shift = packed[:-4], 0, 0
    for byte in body[:5]:
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    if size > MAX_UNPACKED_BYTES:
        raise ValueError(f"it unpacks to {size} bytes, more than {MAX_UNPACKED_BYTES}")
    data: bytes = pyarrow.Codec("snappy").decompress(body, size, asbytes=True)
    if zlib.crc32(data) != int.from_bytes(packed[-4:], "big"):
        raise ValueError("its checksum is wrong")
    yield data


def _zstandard(packed: bytes) -> Iterator[bytes]:
    stream = pyarrow.CompressedInputStream(pyarrow.BufferReader(packed), "zstd")
    yield from iter(partial(stream.read, PART_BYTES), b"")


# Name in a container -> what unpacks its blocks.
CODECS: Mapping[str, Unpack] = {
    "null": _as_it_is,
    "deflate": _deflated,
    "bzip2": _by(bz2.BZ2Decompressor),
    "xz": _by(lambda: lzma.LZMADecompressor(memlimit=MAX_XZ_MEMORY)),
    "snappy": _snappy,
    "zstandard": _zstandard,
}
