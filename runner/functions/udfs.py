"""The functions of compiled SQL that Spark does not have, over columns of Arrow: lists of numbers as bytes, documents
in the language of MongoDB's shell, records of Avro.

The functions are pickled and sent to executors together with this package, because the project is not installed there.
"""

from __future__ import annotations

import array
import base64
import gc
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import orjson
import pyarrow as pa

from runner.functions.avro.files import Content, FileMessage, content_of, count_messages, messages_of_file
from runner.functions.avro.images import Image
from runner.functions.avro.layout import Layout, Slot, SlotTree
from runner.functions.avro.messages import Found, message_decoder
from runner.functions.avro.registry import numbered_decoder
from runner.functions.extended_json import extended_document
from runner.functions.frames import FrameLayout, framed_events, json_elements
from runner.functions.mongo_shell import ShellDocument, shell_document, shell_patch
from runner.functions.records import topic_record
from runner.functions.row_files import RowFiles, count_rows, row_messages
from runner.functions.signatures import PYTHON_FUNCTIONS

TEXT_MAP = pa.map_(pa.string(), pa.string())
DOCUMENT = pa.struct(
    [
        ("values", TEXT_MAP),
        ("types", TEXT_MAP),
        ("as_sent", pa.list_(pa.string())),
        ("removed", pa.list_(pa.string())),
        ("reason", pa.string()),
    ]
)


def java_bytes(text: str | None) -> str | None:
    """Returns base64 of the bytes in a list of numbers from -128 to 127; None if the text is not such a list.

    >>> java_bytes("[106, -1, 0]"), java_bytes("[]"), java_bytes("[128]"), java_bytes("[true]")
    ('av8A', '', None, None)
    """
    # Texts with letters of `true` and `false` are refused: Python takes these for numbers.
    if text is None or "u" in text or "l" in text:
        return None
    try:
        numbers = orjson.loads(text)
        return base64.b64encode(array.array("b", numbers).tobytes()).decode() if isinstance(numbers, list) else None
    except (ValueError, TypeError, OverflowError):
        return None


def java_bytes_of(maps: pa.Array) -> pa.Array:
    """Returns maps with the same keys, each value read as a list of bytes; null for any other value."""
    return _with_values(maps, java_bytes)


def escaped_bytes_of(maps: pa.Array) -> pa.Array:
    """Returns maps with the same keys, each value read as bytes with escapes; null for any other value."""
    return _with_values(maps, escaped_bytes)


def _with_values(maps: pa.Array, read: Callable[[str | None], str | None]) -> pa.Array:
    items = pa.array([read(text) for text in maps.items.to_pylist()], pa.string())
    entries = pa.StructArray.from_arrays([maps.keys, items], names=["key", "value"])
    # The map is made from buffers, because from_arrays loses which maps are null.
    return pa.Array.from_buffers(TEXT_MAP, len(maps), maps.buffers()[:2], offset=maps.offset, children=[entries])


def shell_documents(texts: pa.Array) -> pa.Array:
    """Returns a struct of values, types, as_sent, removed and reason for each text, read as a document of the shell."""
    return _structs([shell_document(text) for text in texts.to_pylist()])


def shell_patches(texts: pa.Array) -> pa.Array:
    """Returns a struct as `shell_documents` does for each text, read as an update by operators."""
    return _structs([shell_patch(text) for text in texts.to_pylist()])


def extended_documents(texts: pa.Array) -> pa.Array:
    """Returns a struct as `shell_documents` does for each text, read as a document in MongoDB's extended JSON."""
    return _structs([extended_document(text) for text in texts.to_pylist()])


def elements_of(texts: pa.Array, paths: pa.Array) -> pa.Array:
    """Returns the messages in each text: the elements of the list at the path."""
    found = [json_elements(text, path) for text, path in zip(texts.to_pylist(), paths.to_pylist())]
    return pa.array(found, pa.list_(pa.string()))


RECORD = pa.struct(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("key", pa.string()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))),
        ("value", pa.string()),
    ]
)


def records_of(lines: pa.Array) -> pa.Array:
    """Returns the record of a topic in each line."""
    return pa.array([topic_record(line) for line in lines.to_pylist()], RECORD)


EVENT = pa.struct([("text", pa.string()), ("damage", pa.string())])


def events_of(
    values: pa.Array, keys: pa.Array, key_starts: pa.Array, value_starts: pa.Array, length_bytes: pa.Array
) -> pa.Array:
    """Returns the events in each message, which are frames of its key and value."""
    layouts = map(FrameLayout, key_starts.to_pylist(), value_starts.to_pylist(), length_bytes.to_pylist())
    found = map(framed_events, values.to_pylist(), keys.to_pylist(), layouts)
    return pa.array([[one._asdict() for one in events] for events in found], pa.list_(EVENT))


def _structs(documents: list[ShellDocument]) -> pa.Array:
    rows = [
        {
            "values": None if d.values is None else list(d.values.items()),
            "types": None if d.types is None else list(d.types.items()),
            "as_sent": d.as_sent,
            "removed": d.removed,
            "reason": d.reason,
        }
        for d in documents
    ]
    return pa.array(rows, DOCUMENT)


# Name in SQL -> function, and the type that it returns.
FUNCTIONS = {
    name: (function, PYTHON_FUNCTIONS[name].returns)
    for name, function in (
        ("java_bytes", java_bytes_of),
        ("escaped_bytes", escaped_bytes_of),
        ("shell_document", shell_documents),
        ("shell_patch", shell_patches),
        ("extended_document", extended_documents),
        ("json_elements", elements_of),
        ("topic_record", records_of),
        ("framed_events", events_of),
    )
}


# --- records of Avro

POSITIONS, FLAGS = pa.list_(pa.int32()), pa.list_(pa.bool_())
IMAGE_MEMBERS = list(Image._fields)
COLUMN_NAMES = pa.list_(pa.string())
SLOT_TYPES = {
    "text": pa.string(),
    "scalar": pa.string(),
    "others": pa.string(),
    "texts": pa.list_(pa.string()),
    "names": pa.list_(pa.string()),
    "numbers": pa.list_(pa.int64()),
    "map": TEXT_MAP,
    "types": TEXT_MAP,
}


def avro_reader(
    layout: Layout, trees: Mapping[str, SlotTree], folder: str = ""
) -> Callable[[pa.Array, pa.Array], pa.Array]:
    """Returns the function that reads a column of messages, with a column of the schemas that some of them bring. The
    function returns structs of reason, detail, and one struct for each of `trees`, with the values of the layout's
    slots. Schemas from a registry are kept in `folder`, or in a folder of the machine if `folder` is empty.
    """
    made: list[Callable[[bytes, str | None], Found]] = []

    def read(raw: pa.Array, own_schema: pa.Array) -> pa.Array:
        if not made:
            made.append(numbered_decoder(layout, layout.numbers, folder) if layout.numbers else message_decoder(layout))
        decode = made[0]
        with _no_collection():
            found = [
                NOTHING if message is None else decode(message, schema)
                for message, schema in zip(raw.to_pylist(), own_schema.to_pylist())
            ]
            slots = [
                _slot_array(slot, [values[number] if values else None for values, _, _ in found])
                for number, slot in enumerate(layout.slots)
            ]
        reasons = [pa.array([getattr(one, name) for one in found], pa.string()) for name in ("reason", "detail")]
        structs = {name: _tree_array(tree, slots) for name, tree in trees.items()}
        return pa.StructArray.from_arrays([*reasons, *structs.values()], names=["reason", "detail", *structs])

    return read


NOTHING = Found(())


@contextmanager
def _no_collection() -> Iterator[None]:
    """Turns off Python's search for cycles while many small lists are made. The lists would start the search often, and
    have no cycles.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _tree_array(tree: SlotTree, slots: Sequence[pa.Array]) -> pa.Array:
    arrays = [slots[branch] if isinstance(branch, int) else _tree_array(branch, slots) for branch in tree.values()]
    return pa.StructArray.from_arrays(arrays, names=list(tree))


# Kind of an image -> the types of its members.
IMAGE_TYPES = {
    "positional": (pa.list_(pa.string()), FLAGS, POSITIONS, POSITIONS, POSITIONS),
    "row": (TEXT_MAP, *[COLUMN_NAMES] * 4),
    "rows": (pa.list_(TEXT_MAP), *[pa.list_(COLUMN_NAMES)] * 4),
}


def _slot_array(slot: Slot, values: list[Any]) -> pa.Array:
    if slot.kind in IMAGE_TYPES:
        return _image_array(values, slot.kind)
    if slot.kind == "map":
        values = [None if value is None else list(value.items()) for value in values]
    if slot.kind in ("texts", "names", "numbers", "types"):
        return _repeating_array(values, SLOT_TYPES[slot.kind])
    return pa.array(values, SLOT_TYPES[slot.kind])


def _repeating_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Returns an array of lists, many of which are the same object because they were read from the same bytes: each
    object is converted once.
    """
    numbers: dict[int, int] = {}
    rows = pa.array([numbers.setdefault(id(value), len(numbers)) for value in values], pa.int32())
    known = {id(value): value for value in values}
    return pa.array([known[one] for one in numbers], kind).take(rows)


def _image_array(images: list[Any], kind: str) -> pa.Array:
    nothing = (None,) * len(IMAGE_MEMBERS)
    members = list(zip(*(nothing if image is None else image for image in images))) or [()] * len(nothing)
    members[0] = tuple(_entries(texts, kind) for texts in members[0])
    arrays = [pa.array(values, one) for values, one in zip(members, IMAGE_TYPES[kind])]
    return pa.StructArray.from_arrays(arrays, names=IMAGE_MEMBERS)


def _entries(texts: Any, kind: str) -> Any:
    """Returns the texts of an image, with its maps as Arrow takes them."""
    if texts is None or kind == "positional":
        return texts
    return list(texts.items()) if kind == "row" else [_entries(row, "row") for row in texts]


# --- files that hold messages

MESSAGE_SCHEMA = pa.schema(
    {
        "file": pa.string(),
        "modified": pa.int64(),
        "block": pa.int64(),
        "number": pa.int64(),
        "raw": pa.binary(),
        "own_schema": pa.string(),
        "damage": pa.string(),
    }
)
MESSAGE_SQL_TYPE = (
    "file string, modified bigint, block bigint, number bigint, raw binary, own_schema string, damage string"
)
# A batch of messages ends after this many rows, or when its messages and their schemas have more bytes than this.
MAX_ROWS, MAX_BYTES = 10_000, 16_000_000


def messages_of_files(
    batches: Iterable[pa.RecordBatch], usual: Sequence[str], row_files: RowFiles | None = None
) -> Iterator[pa.RecordBatch]:
    """Returns the messages in files, or the rows in `row_files`. Batches have columns for the path, the time of change
    in milliseconds, and the content, which is null for local files. The schema of a file comes with its messages unless
    it is in `usual`.
    """
    for batch in batches:
        for path, modified, content in zip(*(column.to_pylist() for column in batch.columns)):
            with content_of(path, content) as data:
                rows: list[tuple[Any, ...]] = []
                size = 0
                for m in _messages_of(path, data, row_files):
                    own_schema = None if m.schema in usual else m.schema
                    rows.append((path, modified, m.block, m.number, m.raw, own_schema, m.damage))
                    size += len(m.raw) + len(own_schema or "")
                    if len(rows) == MAX_ROWS or size > MAX_BYTES:
                        yield _batch(rows)
                        rows, size = [], 0
                yield _batch(rows)


def _messages_of(path: str, data: Content, row_files: RowFiles | None) -> Iterator[FileMessage]:
    if row_files is None:
        return messages_of_file(path, data)
    return (FileMessage(0, number, raw) for number, raw in enumerate(row_messages(path, data, row_files)))


def _batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = list(zip(*rows)) or [()] * len(MESSAGE_SCHEMA)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, MESSAGE_SCHEMA)], schema=MESSAGE_SCHEMA
    )


def counts_of_files(batches: Iterable[pa.RecordBatch], row_files: RowFiles | None = None) -> Iterator[pa.RecordBatch]:
    """Returns path and number of messages of each file, or of rows in `row_files`. Batches have columns for the path
    and the content, as in `messages_of_files`.
    """
    for batch in batches:
        paths, contents = (column.to_pylist() for column in batch.columns)
        counts = []
        for path, content in zip(paths, contents):
            with content_of(path, content) as data:
                counts.append(count_rows(path, data, row_files) if row_files else count_messages(path, data))
        yield pa.RecordBatch.from_arrays(
            [pa.array(paths, pa.string()), pa.array(counts, pa.int64())], names=["file", "messages"]
        )


# Escapes of one letter, and escapes with the number of a byte or a character.
LETTERS = {
    "a": b"\a", "b": b"\b", "f": b"\f", "n": b"\n", "r": b"\r", "t": b"\t", "v": b"\v",
    "\\": b"\\", '"': b'"', "'": b"'",
}  # fmt: skip
ESCAPE = re.compile(
    r"""\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-7]{3})|([abfnrtv\\"']))|[^\\]+""",
    re.DOTALL,
)


def escaped_bytes(text: str | None) -> str | None:
    r"""Returns base64 of the bytes of a text with escapes; None if a backslash begins no escape.

    >>> escaped_bytes(r"\x89PNG\r\n"), escaped_bytes("é"), escaped_bytes(r"\u00e9"), escaped_bytes("")
    ('iVBORw0K', 'w6k=', 'w6k=', '')
    >>> escaped_bytes("\\"), escaped_bytes(r"\q"), escaped_bytes(r"\ud800"), escaped_bytes(r"\400")
    (None, None, None, None)
    """
    if text is None:
        return None
    parts, position = [], 0
    while position < len(text):
        found = ESCAPE.match(text, position)
        if not found:
            return None
        try:
            parts.append(_bytes_of(found))
        except (ValueError, OverflowError):
            return None
        position = found.end()
    return base64.b64encode(b"".join(parts)).decode()


def _bytes_of(found: re.Match[str]) -> bytes:
    """Returns the bytes of one escape, or of the text between two escapes; raises ValueError for the number of no byte
    or character.
    """
    byte, short, long, octal, letter = found.groups()
    if letter:
        return LETTERS[letter]
    if short or long:
        return chr(int(short or long, 16)).encode()
    if byte or octal:
        return bytes([int(byte, 16) if byte else int(octal, 8)])
    return found[0].encode()
