"""What stands in the files of a project: where a value that nobody may see could be."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path

import pyarrow.parquet

from tests.test_site import data_of

SHORTEST = 6


def texts_of(path: Path) -> Iterator[bytes]:
    """What stands in a file, and in its compressed parts."""
    content = path.read_bytes()
    yield content
    if path.suffix == ".parquet" and content:
        yield repr(pyarrow.parquet.ParquetFile(path).read().to_pylist()).encode()
    if path.suffix == ".html":
        yield json.dumps(data_of(path), ensure_ascii=False).encode()
    if content[:2] == b"\x1f\x8b":
        yield gzip.decompress(content)
    if path.suffix == ".avro":
        for start in range(len(content)):
            unpacking = zlib.decompressobj(-15)
            try:
                yield unpacking.decompress(content[start:])
            except zlib.error:
                continue


def holding(folder: Path, texts: Collection[str], but: Collection[str] = ("in",)) -> list[str]:
    """The files of a project, apart from those in folders of some names, that hold one of these texts as it is, in
    hexadecimal digits, or in base64.
    """
    told = [form for text in texts for form in _forms(text.encode())]
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.parent.name not in but]
    return [str(path) for path in files if any(text in content for content in texts_of(path) for text in told)]


def _forms(text: bytes) -> Iterator[bytes]:
    yield text
    if len(text) < SHORTEST:
        return  # found by chance
    yield from (text.hex().encode(), text.hex().upper().encode())
    for before in range(3):
        # What is the same in base64 wherever the text begins, but for the first and the last characters.
        yield base64.b64encode(b"\0" * before + text)[4 if before else 0 :].rstrip(b"=")[:-1]
