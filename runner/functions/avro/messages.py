"""The reader of messages in Avro: each becomes one row of values, one value for each slot of a layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from operator import methodcaller
from typing import Any, NamedTuple

from runner.functions.avro.images import member_reader, only_row, positional_reader, row_images, row_reader
from runner.functions.avro.layout import Layout, Records, Slot
from runner.functions.avro.reader import (
    Malformed,
    Read,
    field_skippers,
    nothing,
    plain,
    read_entries,
    read_list,
    read_null,
    read_union,
    skipper,
    then,
)
from runner.functions.avro.schema import (
    Array,
    Fixed,
    Map,
    OneOf,
    Primitive,
    Record,
    Schema,
    SchemaError,
    find,
    inside,
    parse_record,
    parse_schema,
)
from runner.functions.avro.texts import text_reader, types_reader
from runner.functions.avro.values import json_text, written_out

TRUNCATED = "the message ends too early"
# How many different encodings of a field are remembered, and how many schemas that came with files.
REMEMBERED = 8
IMAGE_KINDS = ("row", "rows", "positional")
# Kind of a slot for a list -> the kind of its items.
ITEM_KINDS = {"texts": "text", "names": "text", "numbers": "number"}


class Found(NamedTuple):
    """The values of a message, one for each slot, None where the message has none. `reason` and `detail` say why the
    message cannot be read; the values are then those that could be read.
    """

    values: Sequence[Any]
    reason: str | None = None
    detail: str | None = None


Decode = Callable[[bytes], Found]


def message_decoder(layout: Layout) -> Callable[[bytes, str | None], Found]:
    """Returns the function that reads a message with the schema given with it, else with those of the layout."""
    usual = [record_decoder(parse_schema(text), layout) for text in layout.schemas]
    own = lru_cache(REMEMBERED)(partial(own_decoder, layout))

    def decode(message: bytes, schema: str | None) -> Found:
        return first_fitting(usual, message) if schema is None else own(schema)(message)

    return decode


def own_decoder(layout: Layout, schema: str) -> Decode:
    """Returns the function that reads a message of a file that has this schema in it."""
    try:
        record = parse_record(schema)
        if layout.needed and not any(find(record, path) for path in layout.needed):
            raise SchemaError(f'it has no field "{".".join(layout.needed[0])}"')
        return record_decoder(record, replace(layout, skip_bytes=0))
    except (SchemaError, RecursionError) as error:
        return refusing(layout, "schema-mismatch", f"its schema cannot be used: {error}")


def refusing(layout: Layout, reason: str, detail: str) -> Decode:
    """Returns the function that reads no message."""
    found = Found([None] * len(layout.slots), reason, detail)

    def decode(message: bytes) -> Found:
        return found

    return decode


def first_fitting(decoders: Sequence[Decode], message: bytes) -> Found:
    """Returns the result of the first schema that fits the whole message. If none fits, returns the first result that
    leaves only bytes at the end, else the result of the first schema.
    """
    first: Found | None = None
    for decode in decoders:
        found = decode(message)
        if found.reason is None:
            return found
        if first is None or (found.reason == "schema-mismatch" and first.reason != "schema-mismatch"):
            first = found
    assert first
    return first


def record_decoder(schema: Record, layout: Layout) -> Decode:
    """Returns the function that reads a record; raises SchemaError if the layout cannot be read from its schema."""
    nothing = [None] * len(layout.slots)
    steps = [
        (name, _field_step(name, one, layout), skip)
        for (name, one), skip in zip(schema.fields.items(), field_skippers(schema))
    ]
    start = layout.skip_bytes

    def decode(message: bytes) -> Found:
        values, position, field = list(nothing), start, ""
        if len(message) < start:
            return Found(nothing, "bad-avro", f"{len(message)} bytes, but {start} come before a record")
        try:
            for name, step, skip in steps:
                field = name
                position = step(message, position, values) if step else skip(message, position)
        except Malformed as error:
            return Found(nothing, "bad-avro", f"{error.why}, at byte {error.position}, in {field}")
        except IndexError:
            return Found(nothing, "bad-avro", f"{TRUNCATED}, at byte {len(message)}, in {field}")
        except RecursionError:
            return Found(nothing, "bad-avro", f"too deep, from byte {position} on, in {field}")
        if position < len(message):
            return Found(
                values, "schema-mismatch", f"{len(message) - position} bytes after the record, from byte {position} on"
            )
        return Found(values)

    return decode


# --- the fields of a record

Step = Callable[[bytes, int, "list[Any]"], int]


def _field_step(name: str, schema: Schema, layout: Layout) -> Step | None:
    """Returns a step that reads a field into the slots whose paths begin with it; None if there are none."""
    reads = [
        (number, field_reader(schema, slot, layout.records))
        for number, slot in enumerate(layout.slots)
        if slot.path[0] == name
    ]
    if not reads:
        return None
    if _repeats(schema) and not any(layout.slots[number].kind in IMAGE_KINDS for number, _ in reads):
        return _remembered(reads)
    if len(reads) == 1:
        return _one(*reads[0])
    return _several(reads)


def _one(number: int, read: Read) -> Step:
    def step(data: bytes, position: int, values: list[Any]) -> int:
        values[number], position = read(data, position)
        return position

    return step


def _several(reads: Sequence[tuple[int, Read]]) -> Step:
    """Returns a step that reads the same bytes once for each slot."""

    def step(data: bytes, position: int, values: list[Any]) -> int:
        end = position
        for number, read in reads:
            values[number], end = read(data, position)
        return end

    return step


def _repeats(schema: Schema) -> bool:
    """Returns True if a field holds more than one value, such as the columns of a table or its key. Such a field is
    likely to be the same in many messages.
    """
    return any(
        isinstance(branch, (Record, Array, Map))
        for branch in (schema.branches if isinstance(schema, OneOf) else (schema,))
    )


def _remembered(reads: Sequence[tuple[int, Read]]) -> Step:
    """Returns a step that keeps the values of the last encodings. The same bytes always mean the same values: no
    encoding of a value is the beginning of another.
    """
    known: list[tuple[bytes, list[Any]]] = []
    step = _several(reads)

    def remember(data: bytes, position: int, values: list[Any]) -> int:
        for encoded, seen in known:
            if data.startswith(encoded, position):
                for (number, _), value in zip(reads, seen):
                    values[number] = value
                return position + len(encoded)
        end = step(data, position, values)
        known.insert(0, (data[position:end], [values[number] for number, _ in reads]))
        del known[REMEMBERED:]
        return end

    return remember


# --- the value at a path


def field_reader(schema: Schema, slot: Slot, records: Records) -> Read:
    """Returns a reader of the value that a slot needs from a field of a message."""
    read = reach(schema, slot.path[1:], slot, records)
    if slot.kind in (*IMAGE_KINDS, "types") or not any(_is_decimal(one) for one in (schema, *inside(schema))):
        return read
    return then(read, _written_out)


def _is_decimal(schema: Schema) -> bool:
    return isinstance(schema, (Primitive, Fixed)) and schema.logical == "decimal"


def _written_out(value: Any) -> Any:
    """Returns the text, the texts, or the map of texts, of a field that is not an image, with numbers written out."""
    match value:
        case list():
            return written_out(value)
        case dict():
            return dict(zip(value, written_out(value.values())))
    return written_out((value,))[0]


def reach(schema: Schema, path: Sequence[str], slot: Slot, records: Records) -> Read:
    """Returns a reader of a whole value; the reader returns what the slot needs from the value at a path in it."""
    match schema:
        case OneOf():
            return read_union([reach(branch, path, slot, records) for branch in schema.branches])
        case Primitive("null"):
            return read_null
        case Array() if slot.kind in ITEM_KINDS:
            return then(read_list(reach(schema.items, path, Slot((), ITEM_KINDS[slot.kind]), records)), _all_there)
        case _ if not path:
            return _leaf(schema, slot, records)
        case Record() if path[0] in schema.fields:
            return _reach_member(schema, path, slot, records)
        case Map():
            return then(read_entries(reach(schema.values, path[1:], slot, records)), methodcaller("get", path[0]))
    return nothing(skipper(schema))


def _reach_member(schema: Record, path: Sequence[str], slot: Slot, records: Records) -> Read:
    """Returns a reader of a record that returns what the slot needs from a member. One reader is made for all places
    where the record stands.
    """
    place = (tuple(path), slot)
    if place not in schema.made:
        inner = reach(schema.fields[path[0]], path[1:], slot, records)
        schema.made[place] = member_reader(schema, path[0], inner)
    read: Read = schema.made[place]
    return read


def _all_there(values: list[Any]) -> list[Any] | None:
    return None if None in values else values


def _leaf(schema: Schema, slot: Slot, records: Records) -> Read:
    is_scalar = not isinstance(schema, (Record, Array, Map))
    match slot.kind:
        case "text":
            return text_reader(schema, {})
        case "scalar" if is_scalar:
            return text_reader(schema, {})
        case "names" if isinstance(schema, Primitive):
            return then(text_reader(schema, {}), _only_name)
        case "number" if isinstance(schema, Primitive) and schema.name in ("int", "long"):
            return plain(schema)
        case "map" if isinstance(schema, Map):
            return read_entries(text_reader(schema.values, {}))
        case "others" if isinstance(schema, Map):
            return then(plain(schema), partial(_others, slot.taken))
        case "types" if isinstance(schema, Record):
            return types_reader(schema, slot.names, slot.params)
        case "row" if isinstance(schema, (Map, Record)):
            return row_reader(schema, slot, records)
        case "rows" if isinstance(schema, (Map, Record, Array)):
            return _rows_reader(schema, slot, records)
        case "positional" if isinstance(schema, Array):
            return positional_reader(schema, slot, records)
    return nothing(skipper(schema))


def _only_name(name: str | None) -> list[str] | None:
    return [name] if name else None


def _others(taken: Sequence[str], entries: dict[str, Any]) -> str | None:
    others = {name: value for name, value in entries.items() if name not in taken}
    return json_text(others) if others else None


def _rows_reader(schema: Map | Record | Array, slot: Slot, records: Records) -> Read:
    """Returns a reader of a list of rows, with None for an item that is neither a map nor a record."""
    if not isinstance(schema, Array):
        return then(row_reader(schema, slot, records), only_row)
    return then(read_list(reach(schema.items, (), replace(slot, kind="row"), records)), row_images)
