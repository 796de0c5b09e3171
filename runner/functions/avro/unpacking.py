"""The unpacking of compressed bytes, up to a limit."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

# The most bytes that a block of a container, or a file in gzip, may unpack to. Blocks usually have some 64 KB.
MAX_UNPACKED_BYTES = 1 << 28
PART_BYTES = 1 << 22
# The memory that the header of an xz block may ask for, however small the block is.
MAX_XZ_MEMORY = 1 << 28

Unpack = Callable[[bytes], Iterator[bytes]]
"""Packed bytes -> what is in them, part by part."""


class Unpacked(NamedTuple):
    """The result of unpacking. `data` are the unpacked bytes, or `damage` says why they cannot be used; `size` bytes
    were unpacked in any case.
    """

    data: bytes
    size: int
    damage: str | None = None


def unpacked(unpack: Unpack, packed: bytes) -> Unpacked:
    """Returns the bytes that packed bytes unpack to, if these are not more than the limit."""
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
    # All packed bytes may be read before all unpacked bytes are returned.
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
    """Returns the unpacked bytes of a packed block, whose last four bytes are a checksum of the unpacked ones."""
    body, size, shift = packed[:-4], 0, 0
    for byte in body[:5]:
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    if size > MAX_UNPACKED_BYTES:
        raise ValueError(f"it unpacks to {size} bytes, more than {MAX_UNPACKED_BYTES}")
    # Commands that only look at checkpoints import this module, and loading the package would be half of their time.
    import pyarrow

    data: bytes = pyarrow.Codec("snappy").decompress(body, size, asbytes=True)
    if zlib.crc32(data) != int.from_bytes(packed[-4:], "big"):
        raise ValueError("its checksum is wrong")
    yield data


def _zstandard(packed: bytes) -> Iterator[bytes]:
    import pyarrow

    stream = pyarrow.CompressedInputStream(pyarrow.BufferReader(packed), "zstd")
    yield from iter(partial(stream.read, PART_BYTES), b"")


# Name of a codec in a container -> the function that unpacks its blocks.
CODECS: Mapping[str, Unpack] = {
    "null": _as_it_is,
    "deflate": _deflated,
    "bzip2": _by(bz2.BZ2Decompressor),
    "xz": _by(partial(lzma.LZMADecompressor, memlimit=MAX_XZ_MEMORY)),
    "snappy": _snappy,
    "zstandard": _zstandard,
}
