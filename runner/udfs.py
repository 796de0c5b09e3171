"""The functions of compiled SQL that are not Spark's own, over columns of Arrow: bytes as lists of numbers, documents in shell text.

They travel to executors by value, together with runner.shell_text: nothing of the project is installed there.
"""

from __future__ import annotations

import array
import base64

import orjson
import pyarrow as pa

from runner.shell_text import ShellDocument, shell_document, shell_patch

TEXT_MAP = pa.map_(pa.string(), pa.string())
DOCUMENT = pa.struct([("values", TEXT_MAP), ("types", TEXT_MAP), ("removed", pa.list_(pa.string())), ("reason", pa.string())])


def java_bytes(text: str | None) -> str | None:
    """Base64 of the bytes that a list of numbers from -128 to 127 names; None if the text is no such list.

    >>> java_bytes("[106, -1, 0]"), java_bytes("[]"), java_bytes("[128]"), java_bytes("[true]")
    ('av8A', '', None, None)
    """
    # The letters of `true` and `false`, which Python takes for numbers.
    if text is None or "u" in text or "l" in text:
        return None
    try:
        numbers = orjson.loads(text)
        return base64.b64encode(array.array("b", numbers).tobytes()).decode() if isinstance(numbers, list) else None
    except (ValueError, TypeError, OverflowError):
        return None


def java_bytes_of(maps: pa.Array) -> pa.Array:
    """Maps of the same names, each value read as a list of bytes; null where it is none."""
    items = pa.array([java_bytes(text) for text in maps.items.to_pylist()], pa.string())
    entries = pa.StructArray.from_arrays([maps.keys, items], names=["key", "value"])
    # Of the buffers: from_arrays forgets which maps are null.
    return pa.Array.from_buffers(TEXT_MAP, len(maps), maps.buffers()[:2], offset=maps.offset, children=[entries])


def shell_documents(texts: pa.Array) -> pa.Array:
    """A struct of values, types, removed and reason for each text."""
    return _structs([shell_document(text) for text in texts.to_pylist()])


def shell_patches(texts: pa.Array) -> pa.Array:
    """The same for updates by operators."""
    return _structs([shell_patch(text) for text in texts.to_pylist()])


def _structs(documents: list[ShellDocument]) -> pa.Array:
    rows = [
        {
            "values": None if d.values is None else list(d.values.items()),
            "types": None if d.types is None else list(d.types.items()),
            "removed": d.removed,
            "reason": d.reason,
        }
        for d in documents
    ]
    return pa.array(rows, DOCUMENT)


# Name in SQL -> function and what it returns.
FUNCTIONS = {
    "java_bytes": (java_bytes_of, "map<string,string>"),
    "shell_document": (shell_documents, "struct<values map<string,string>, types map<string,string>, removed array<string>, reason string>"),
    "shell_patch": (shell_patches, "struct<values map<string,string>, types map<string,string>, removed array<string>, reason string>"),
}
