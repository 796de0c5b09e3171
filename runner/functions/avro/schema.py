"""The JSON text of an Avro schema -> its types. Defaults and documentation are not read: they say nothing of how a
record is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


class SchemaError(Exception):
    """The text is no schema; the message says why."""


@dataclass(frozen=True)
class Primitive:
    name: str
    logical: str | None = None
    scale: int = 0


@dataclass(frozen=True)
class Fixed:
    name: str
    size: int
    logical: str | None = None
    scale: int = 0


@dataclass(frozen=True)
class Enum:
    name: str
    symbols: tuple[str, ...]


@dataclass(frozen=True)
class Array:
    items: Schema


@dataclass(frozen=True)
class Map:
    values: Schema


@dataclass(frozen=True)
class OneOf:
    """A union."""

    branches: tuple[Schema, ...]


@dataclass(frozen=True, eq=False)
class Record:
    """`fields` in the order in which they are written. A record may hold itself."""

    name: str
    fields: dict[str, Schema] = field(default_factory=dict, repr=False)


Schema = Union[Primitive, Fixed, Enum, Array, Map, OneOf, Record]


def parse_schema(text: str) -> Record:
    """The record that messages are. A list of named types is a published file of them: its record is the one that no
    other type uses.

    >>> parse_schema('{"type": "record", "name": "r", "fields": [{"name": "id", "type": ["null", "long"]}]}').fields
    {'id': OneOf(branches=(Primitive(name='null', logical=None, scale=0), Primitive(name='long', logical=None, scale=0)))}
    """
    try:
        written = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise SchemaError(f"it is not JSON: {e}") from None
    names: dict[str, Schema] = {}
    try:
        json.dumps(written, ensure_ascii=False).encode()
        if isinstance(written, list):
            return _unused([_read(one, "", names) for one in written])
        root = _read(written, "", names)
    except RecursionError:
        raise SchemaError("it is too deep") from None
    except UnicodeEncodeError:
        raise SchemaError("it holds half a surrogate pair") from None
    if not isinstance(root, Record):
        raise SchemaError("it describes no record")
    return root


def parse_record(text: str) -> Record:
    """The same of the schema in a file of messages, where a list can only be a union."""
    if text.lstrip().startswith("["):
        raise SchemaError("it describes no record")
    return parse_schema(text)


def least_bytes(schema: Schema, known: dict[int, int] | None = None) -> int:
    """The least number of bytes that a value takes; of what holds itself, 0 within itself.

    >>> least_bytes(parse_schema('{"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": ["null", "double"]}]}'))
    2
    """
    known = {} if known is None else known
    match schema:
        case Primitive():
            return {"null": 0, "float": 4, "double": 8}.get(schema.name, 1)
        case Fixed():
            return schema.size
        case OneOf():
            return 1 + min((least_bytes(branch, known) for branch in schema.branches), default=0)
        case Record():
            if id(schema) not in known:
                known[id(schema)] = 0  # before its fields: a record may hold itself
                known[id(schema)] = sum(least_bytes(one, known) for one in schema.fields.values())
            return known[id(schema)]
    return 1


def find(schema: Schema, path: Sequence[str]) -> list[Schema]:
    """What may stand at a path, through unions, lists and maps; nothing, where no such field is."""
    found = [schema]
    for part in path:
        found = [inner for one in found for inner in _members(one, part)]
    return found


def opened(schema: Schema, through_arrays: bool = True) -> list[Schema]:
    """A type, or what it may be instead."""
    match schema:
        case OneOf():
            return [one for branch in schema.branches for one in opened(branch, through_arrays)]
        case Array() if through_arrays:
            return opened(schema.items)
    return [schema]


def _members(schema: Schema, name: str) -> list[Schema]:
    choices = opened(schema)
    return [
        *(one.fields[name] for one in choices if isinstance(one, Record) and name in one.fields),
        *(one.values for one in choices if isinstance(one, Map)),
    ]


def _unused(types: list[Schema]) -> Record:
    used = {id(inner) for one in types for inner in inside(one) if inner is not one}
    roots = [one for one in types if isinstance(one, Record) and id(one) not in used]
    if len(roots) != 1:
        names = ", ".join(one.name for one in roots) or "none"
        raise SchemaError(
            f"of the types that it lists, exactly one record must be used by no other; these are not: {names}"
        )
    return roots[0]


def children(schema: Schema) -> list[Schema]:
    match schema:
        case Array():
            return [schema.items]
        case Map():
            return [schema.values]
        case OneOf():
            return list(schema.branches)
        case Record():
            return list(schema.fields.values())
    return []


def inside(schema: Schema) -> Iterator[Schema]:
    """All types within one, each once."""
    seen: set[int] = set()
    edge = children(schema)
    while edge:
        one = edge.pop()
        if id(one) not in seen:
            seen.add(id(one))
            edge += children(one)
            yield one


def _read(written: Any, space: str, names: dict[str, Schema]) -> Schema:
    """`space` is the namespace in which names without a dot stand."""
    match written:
        case str():
            return Primitive(written) if written in PRIMITIVES else _named(written, space, names)
        case list():
            return OneOf(tuple(_read(branch, space, names) for branch in written))
        case {"type": "record" | "error" | "enum" | "fixed"}:
            return _define(written, space, names)
        case {"type": "array", "items": items}:
            return Array(_read(items, space, names))
        case {"type": "map", "values": values}:
            return Map(_read(values, space, names))
        case {"type": str(name)} if name in PRIMITIVES:
            return Primitive(name, *_logical(written))
        case {"type": (str() | list() | dict()) as inner} if inner not in ("array", "map"):
            return _read(inner, space, names)
    raise SchemaError(f"it has a type that is none: {json.dumps(written)[:80]}")


def _named(name: str, space: str, names: dict[str, Schema]) -> Schema:
    found = names.get(name if "." in name or not space else f"{space}.{name}", names.get(name))
    if found is None:
        raise SchemaError(f'it names a type "{name}", which is not defined before')
    return found


def _define(written: dict[str, Any], space: str, names: dict[str, Schema]) -> Schema:
    name = written.get("name")
    if not isinstance(name, str):
        raise SchemaError(f"a {written['type']} has no name")
    space = name.rpartition(".")[0] if "." in name else written.get("namespace", space)
    short = name.rpartition(".")[2]
    full = f"{space}.{short}" if space else short
    if full in names:
        raise SchemaError(f'it defines "{full}" twice')
    match written:
        case {"type": "enum", "symbols": [*symbols]} if all(isinstance(symbol, str) for symbol in symbols):
            names[full] = Enum(short, tuple(symbols))
        case {"type": "fixed", "size": int(size)} if size >= 0:
            names[full] = Fixed(short, size, *_logical(written))
        case {"type": "record" | "error", "fields": [*fields]}:
            record = names[full] = Record(short)
            for one in fields:
                if (
                    not isinstance(one, dict)
                    or not isinstance(one.get("name"), str)
                    or "type" not in one
                    or one["name"] in record.fields
                ):
                    raise SchemaError(
                        f'the record "{short}" has a field without a name or type of its own: {json.dumps(one)[:80]}'
                    )
                record.fields[one["name"]] = _read(one["type"], space, names)
        case _:
            raise SchemaError(f'the {written["type"]} "{short}" lacks what makes it one')
    return names[full]


def _logical(written: dict[str, Any]) -> tuple[str | None, int]:
    logical, scale = written.get("logicalType"), written.get("scale", 0)
    return (logical if isinstance(logical, str) else None), (scale if isinstance(scale, int) else 0)
