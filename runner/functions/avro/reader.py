"""Readers of Avro: functions that turn bytes into values, or step over them. Damaged bytes never make a value larger
than its message.

A schema becomes functions from (bytes, position) to (value, position after it). The functions raise Malformed for bytes
that are not such a value, and IndexError for bytes that end too early: callers must treat both as damage.

The reader is our own because it keeps bounds, the digits of numbers and the position of damage. fastavro makes
3,000,000 items of five bytes, and accepts bytes that follow the value.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from runner.functions.avro.schema import Array, Enum, Fixed, Map, OneOf, Primitive, Record, Schema

Read = Callable[[bytes, int], "tuple[Any, int]"]
Skip = Callable[[bytes, int], int]
Choice = TypeVar("Choice")

# This many items may take no bytes. A list that claims more of them than there are bytes left is damaged.
MAX_EMPTY_ITEMS = 100


class Malformed(Exception):
    """Raised for bytes that are not the value that a schema expects; it says where, and why."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(position, why)
        self.position, self.why = position, why


# --- single values


def read_long(data: bytes, position: int) -> tuple[int, int]:
    byte = data[position]
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), position + 1
    start, number, shift = position, 0, 0
    while byte >= 128:
        number |= (byte & 127) << shift
        shift += 7
        position += 1
        if shift > 63:
            raise Malformed(start, "a number of more than 64 bits")
        byte = data[position]
    number |= byte << shift
    if number >> 64:
        raise Malformed(start, "a number of more than 64 bits")
    return (number >> 1) ^ -(number & 1), position + 1


def skip_long(data: bytes, position: int) -> int:
    return position + 1 if data[position] < 128 else read_long(data, position)[1]


def span(data: bytes, position: int) -> tuple[int, int]:
    """Returns where the bytes of a text begin and end; `position` is where their length is."""
    length, start = read_long(data, position)
    if not 0 <= length <= len(data) - start:
        raise Malformed(position, f"a length of {length}, with {len(data) - start} bytes left")
    return start, start + length


def read_string(data: bytes, position: int) -> tuple[str, int]:
    byte = data[position]
    start, end = (
        (position + 1, position + 1 + (byte >> 1))
        if byte < 128 and not byte & 1 and position + byte < len(data)
        else span(data, position)
    )
    try:
        return data[start:end].decode(), end
    except UnicodeDecodeError as e:
        raise Malformed(start + e.start, "text that is not UTF-8") from None


def skip_bytes(data: bytes, position: int) -> int:
    """Steps over a text or bytes."""
    byte = data[position]
    if byte < 128 and not byte & 1 and position + byte < len(data):
        return position + 1 + (byte >> 1)
    return span(data, position)[1]


def read_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    start, end = span(data, position)
    return data[start:end], end


def read_boolean(data: bytes, position: int) -> tuple[bool, int]:
    if data[position] > 1:
        raise Malformed(position, f"a boolean of {data[position]}")
    return data[position] == 1, position + 1


def read_null(data: bytes, position: int) -> tuple[None, int]:
    return None, position


def read_float(data: bytes, position: int) -> tuple[float, int]:
    return struct.unpack("<f", _exactly(data, position, 4))[0], position + 4


def read_double(data: bytes, position: int) -> tuple[float, int]:
    return struct.unpack("<d", _exactly(data, position, 8))[0], position + 8


def _exactly(data: bytes, position: int, size: int) -> bytes:
    out = data[position : position + size]
    if len(out) < size:
        raise IndexError
    return out


def read_fixed(size: int) -> Read:
    def read(data: bytes, position: int) -> tuple[bytes, int]:
        end = position + size
        if end > len(data):
            raise IndexError
        return data[position:end], end

    return read


def by_first_byte(choices: Sequence[Choice]) -> list[Choice | None]:
    """Returns 256 entries: for a byte, the choice whose number it encodes; None if it encodes none, or only begins
    one.
    """
    out: list[Choice | None] = [None] * 256
    for number, choice in enumerate(choices[:64]):
        out[2 * number] = choice
    return out


def read_enum(symbols: Sequence[Any]) -> Read:
    """Returns a reader of an enum; `symbols` are what it returns for each of its symbols."""
    by_byte = by_first_byte(symbols)

    def read(data: bytes, position: int) -> tuple[Any, int]:
        symbol = by_byte[data[position]]
        if symbol is not None:
            return symbol, position + 1
        number, end = read_long(data, position)
        if not 0 <= number < len(symbols):
            raise Malformed(position, f"symbol {number} of an enum of {len(symbols)}")
        return symbols[number], end

    return read


def read_union(branches: Sequence[Read]) -> Read:
    by_byte = by_first_byte(branches)

    def read(data: bytes, position: int) -> tuple[Any, int]:
        branch = by_byte[data[position]]
        if branch is not None:
            return branch(data, position + 1)
        number, start = read_long(data, position)
        if not 0 <= number < len(branches):
            raise Malformed(position, f"branch {number} of a union of {len(branches)}")
        return branches[number](data, start)

    return read


def read_block(data: bytes, position: int) -> tuple[int, int]:
    """Returns how many items follow, 0 at the end, and the position after that number. A number larger than the bytes
    that are left can only be damage, or items of no bytes.
    """
    count, start = read_long(data, position)
    if count < 0:
        count, start = -count, span(data, start)[0]
    if count > len(data) - start and count > MAX_EMPTY_ITEMS:
        raise Malformed(position, f"{count} items, with {len(data) - start} bytes left")
    return count, start


def read_list(item: Read) -> Read:
    def read(data: bytes, position: int) -> tuple[list[Any], int]:
        out: list[Any] = []
        count, position = read_block(data, position)
        while count:
            start = position
            for _ in range(count):
                value, position = item(data, position)
                out.append(value)
            if position == start and len(out) > MAX_EMPTY_ITEMS:
                raise Malformed(position, f"{len(out)} items of no bytes")
            count, position = read_block(data, position)
        return out, position

    return read


def read_entries(value: Read) -> Read:
    """Returns a reader of the entries of a map; of equal keys the last counts."""

    def entry(data: bytes, position: int) -> tuple[tuple[str, Any], int]:
        key, position = read_string(data, position)
        out, position = value(data, position)
        return (key, out), position

    entries = read_list(entry)

    def read(data: bytes, position: int) -> tuple[dict[str, Any], int]:
        out, position = entries(data, position)
        return dict(out), position

    return read


def then(read: Read, make: Callable[[Any], Any]) -> Read:
    """Returns a reader that reads a value, and returns what `make` makes of it."""

    def read_and_make(data: bytes, position: int) -> tuple[Any, int]:
        value, position = read(data, position)
        return make(value), position

    return read_and_make


# --- stepping over


def skipper(schema: Schema) -> Skip:
    """Returns a function that steps over a value; texts in the value are not decoded."""
    match schema:
        case Primitive("int" | "long"):
            return skip_long
        case Primitive("string" | "bytes"):
            return skip_bytes
        case Record():
            skip: Skip = schema.made.get("skip") or _record_skipper(schema)
            return skip
        case OneOf():
            read = read_union([nothing(skipper(branch)) for branch in schema.branches])
        case Array():
            read = read_list(nothing(skipper(schema.items)))
        case Map():
            read = read_list(nothing(_in_turn([skip_bytes, skipper(schema.values)])))
        case _:
            read = plain(schema)

    def step_over(data: bytes, position: int) -> int:
        return read(data, position)[1]

    return step_over


def _in_turn(skips: Sequence[Skip]) -> Skip:
    def skip(data: bytes, position: int) -> int:
        for one in skips:
            position = one(data, position)
        return position

    return skip


def _record_skipper(schema: Record) -> Skip:
    skips: list[Skip] = []
    skip = schema.made["skip"] = _in_turn(skips)  # before its fields: a record may contain itself
    skips.extend(field_skippers(schema))
    return skip


def field_skippers(schema: Record) -> list[Skip]:
    """Returns a function that steps over each field of a record. Fields of the same type share one function: a record
    may have many fields.
    """
    if "skips" not in schema.made:
        made = {one: skipper(one) for one in dict.fromkeys(schema.fields.values())}
        schema.made["skips"] = [made[one] for one in schema.fields.values()]
    skips: list[Skip] = schema.made["skips"]
    return skips


def nothing(skip: Skip, instead: Any = None) -> Read:
    """Returns a reader that steps over a value, and returns always the same in its place."""

    def read(data: bytes, position: int) -> tuple[Any, int]:
        return instead, skip(data, position)

    return read


# --- plain values


PRIMITIVES: Mapping[str, Read] = {
    "null": read_null,
    "boolean": read_boolean,
    "int": read_long,
    "long": read_long,
    "float": read_float,
    "double": read_double,
    "bytes": read_bytes,
    "string": read_string,
}


def plain(schema: Schema) -> Read:
    """Returns a reader of a value as Python has it: records and maps are dicts."""
    match schema:
        case Primitive():
            return PRIMITIVES[schema.name]
        case Fixed():
            return read_fixed(schema.size)
        case Enum():
            return read_enum(schema.symbols)
        case OneOf():
            return read_union([plain(branch) for branch in schema.branches])
        case Array():
            return read_list(plain(schema.items))
        case Map():
            return read_entries(plain(schema.values))
    read: Read = schema.made.get("read") or _plain_record(schema)
    return read


def read_record(fields: Sequence[tuple[str, Read]]) -> Read:
    """Returns a reader of a record, name -> value, from the readers of its fields."""

    def read(data: bytes, position: int) -> tuple[dict[str, Any], int]:
        out = {}
        for name, field in fields:
            out[name], position = field(data, position)
        return out, position

    return read


def _plain_record(schema: Record) -> Read:
    fields: list[tuple[str, Read]] = []
    read = read_record(fields)
    schema.made["read"] = read  # before its fields: a record may contain itself
    made = {one: plain(one) for one in dict.fromkeys(schema.fields.values())}
    fields.extend((name, made[one]) for name, one in schema.fields.items())
    return read
