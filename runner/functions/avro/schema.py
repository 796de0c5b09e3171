"""Types of Avro, read from the JSON text of a schema. Defaults and documentation are not read: they do not change how a
record is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
MAX_SCHEMA_CHARACTERS = 1 << 24
# A value may hold this many parts that take no bytes. Of types inside types, a short schema makes any number of them.
MAX_EMPTY_PARTS = 100
Attributes = Mapping[str, str]
"""The attributes of a type in a schema: its members that are texts or numbers, with its `type`."""


class SchemaError(Exception):
    """Raised for a text that is not a usable schema. The message says why; "it" in the message is the schema."""


@dataclass(frozen=True)
class Primitive:
    name: str
    logical: str | None = None
    scale: int = 0
    attributes: Attributes = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Fixed:
    name: str
    size: int
    logical: str | None = None
    scale: int = 0
    attributes: Attributes = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Enum:
    name: str
    symbols: tuple[str, ...]
    attributes: Attributes = field(default_factory=dict, repr=False, compare=False)

    def __hash__(self) -> int:
        """Returns the hash of the name: symbols may be many, and a type is looked up once for each column that has
        it.
        """
        return hash(self.name)


@dataclass(frozen=True)
class Array:
    items: Schema
    attributes: Attributes = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Map:
    values: Schema
    attributes: Attributes = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class OneOf:
    """A union: a value has one of the types `branches`."""

    branches: tuple[Schema, ...]


@dataclass(frozen=True, eq=False)
class Record:
    """A record type. `fields` are in the order in which they are written. A record may contain itself. `made` holds the
    readers that were made of the record: each is made once, in however many places the record stands.
    """

    name: str
    fields: dict[str, Schema] = field(default_factory=dict, repr=False)
    made: dict[Any, Any] = field(default_factory=dict, repr=False)
    attributes: Attributes = field(default_factory=dict, repr=False, compare=False)


Sent = Primitive | Fixed | Enum | Array | Map | Record
Schema = Sent | OneOf
PLAIN = {name: Primitive(name, attributes={"type": name}) for name in PRIMITIVES}


def parse_schema(text: str, before: Sequence[str] = ()) -> Record:
    """Returns the record of a message. In a list of named types, the record is the one that no other type uses. The
    schema may use the types in the texts `before`. Raises SchemaError.

    >>> parse_schema('{"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}').fields
    {'id': Primitive(name='long', logical=None, scale=0)}
    """
    characters = sum(map(len, (text, *before)))
    if characters > MAX_SCHEMA_CHARACTERS:
        raise SchemaError(f"it has {characters} characters, more than {MAX_SCHEMA_CHARACTERS}")
    names: dict[str, Schema] = {}
    for one in before:
        _types(_json(one), names)
    written = _json(text)
    types = _types(written, names)
    if isinstance(written, list):
        return _unused(types)
    (root,) = types
    if not isinstance(root, Record):
        raise SchemaError("it does not describe a record")
    return root


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as e:
        raise SchemaError(f"it is not JSON: {e}") from None


def _types(written: Any, names: dict[str, Schema]) -> list[Schema]:
    """Returns the types of a schema. `names` has the types defined before, and gets those that the schema defines."""
    try:
        json.dumps(written, ensure_ascii=False).encode()
        types = [_read(one, "", names) for one in (written if isinstance(written, list) else [written])]
        _check_empty_parts(names.values())
    except RecursionError:
        raise SchemaError("it is too deep") from None
    except UnicodeEncodeError:
        raise SchemaError("it holds half a surrogate pair") from None
    return types


def parse_record(text: str, before: Sequence[str] = ()) -> Record:
    """Returns the record of a schema that comes with messages, where a list can only be a union; raises SchemaError."""
    if text.lstrip().startswith("["):
        raise SchemaError("it does not describe a record")
    return parse_schema(text, before)


def min_size(schema: Schema, known: dict[int, int] | None = None) -> int:
    """Returns the least number of bytes that a value takes. A record inside itself counts as 0.

    >>> min_size(OneOf((Primitive("double"), Primitive("long")))), min_size(Primitive("double"))
    (2, 8)
    """
    known = {} if known is None else known
    match schema:
        case Primitive():
            return {"null": 0, "float": 4, "double": 8}.get(schema.name, 1)
        case Fixed():
            return schema.size
        case OneOf():
            return 1 + min((min_size(branch, known) for branch in schema.branches), default=0)
        case Record():
            if id(schema) not in known:
                known[id(schema)] = 0  # before its fields: a record may contain itself
                known[id(schema)] = sum(min_size(one, known) for one in schema.fields.values())
            return known[id(schema)]
    return 1


def empty_parts(schema: Schema, known: dict[int, int] | None = None) -> int:
    """Returns how many parts of no bytes a value may hold beside its other parts. Parts behind the number of a branch
    or of items do not count. A record inside itself counts as 0.

    >>> empty_parts(Record("r", {"a": Primitive("null"), "b": Record("empty"), "c": OneOf((Primitive("null"),))}))
    2
    """
    known = {} if known is None else known
    match schema:
        case Primitive("null") | Fixed(size=0):
            return 1
        case Record():
            if id(schema) not in known:
                known[id(schema)] = 0  # before its fields: a record may contain itself
                parts = [empty_parts(one, known) for one in schema.fields.values()]
                known[id(schema)] = sum(parts) if parts else 1
            return known[id(schema)]
    return 0


def _check_empty_parts(types: Iterable[Schema]) -> None:
    known: dict[int, int] = {}
    if any(empty_parts(one, known) > MAX_EMPTY_PARTS for one in types):
        raise SchemaError(f"a value of it may hold more than {MAX_EMPTY_PARTS} parts of no bytes")


def find(schema: Schema, path: Sequence[str]) -> list[Schema]:
    """Returns the types that may be at a path, through unions, lists and maps, each once; empty if there is none."""
    found = [schema]
    for part in path:
        found = list(dict.fromkeys(inner for one in found for inner in _members(one, part)))
    return found


def alternatives(schema: Schema, through_arrays: bool = True) -> list[Schema]:
    """Returns the types that a value of this type may have: the branches of a union, and the items of a list."""
    match schema:
        case OneOf():
            return [one for branch in schema.branches for one in alternatives(branch, through_arrays)]
        case Array() if through_arrays:
            return alternatives(schema.items)
    return [schema]


# Kind of a slot -> the types that a schema must have at its path.
NEEDED_TYPES: Mapping[str, tuple[type, ...]] = {
    "positional": (Array,),
    "rows": (Array, Map, Record),
    "row": (Map, Record),
    "texts": (Array,),
    "names": (Array, Primitive),
    "numbers": (Array,),
    "map": (Map,),
    "others": (Map,),
}
NULL = Primitive("null")


def not_of_kind(found: Iterable[Schema], path: Sequence[str], kind: str) -> str | None:
    """Returns the kind of type that a slot needs and no type at its path has; None if the slot can be read."""
    needed = NEEDED_TYPES.get(kind)
    through_list = kind in ("texts", "names", "numbers") and len(path) > 1
    if not needed or through_list:
        return None
    types = (one for schema in found for one in alternatives(schema, through_arrays=False))
    if any(isinstance(one, needed) and one != NULL for one in types):
        return None
    return "list" if Array in needed else "map or a record" if Record in needed else "map"


def _members(schema: Schema, name: str) -> list[Schema]:
    types = alternatives(schema)
    return [
        *(one.fields[name] for one in types if isinstance(one, Record) and name in one.fields),
        *(one.values for one in types if isinstance(one, Map)),
    ]


def _unused(types: list[Schema]) -> Record:
    used = {id(inner) for one in types for inner in inside(one) if inner is not one}
    roots = [one for one in types if isinstance(one, Record) and id(one) not in used]
    if len(roots) != 1:
        names = ", ".join(one.name for one in roots) or "none"
        raise SchemaError(f"in its list of types, exactly one record must not be used by the others; not used: {names}")
    return roots[0]


def type_name(schema: Schema, words: Sequence[str], params: Sequence[str]) -> str | None:
    """Returns the name that a schema gives to the type of a value: the first of the attributes `words` that it has; for
    a union, that of the first branch that is not null. An array that has none but its `type` is named after its items.
    The attributes `params` follow in brackets.

    >>> names, params = ("connect.name", "type"), ("precision", "scale")
    >>> decimal = Primitive("bytes", attributes={"type": "bytes", "connect.name": "Decimal", "scale": "2"})
    >>> type_name(OneOf((NULL, Array(decimal, {"type": "array"}))), names, params)
    'Decimal[](2)'
    """
    name, called = _called(schema, words)
    values = [called.attributes[param] for param in params if param in called.attributes]
    return f"{name}({','.join(values)})" if name and values else name


def _called(schema: Schema, words: Sequence[str]) -> tuple[str | None, Sent]:
    """Returns the name of a type, and the type that has this name."""
    one = next((branch for branch in alternatives(schema, through_arrays=False) if branch != NULL), NULL)
    assert not isinstance(one, OneOf)
    name = next((one.attributes[word] for word in words if word in one.attributes), None)
    if not isinstance(one, Array) or name not in (None, one.attributes.get("type")):
        return name, one
    of_items, items = _called(one.items, words)
    return (f"{of_items}[]" if of_items else name), items


def children(schema: Schema) -> list[Schema]:
    """Returns the types that a type is made of."""
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
    """Returns all types inside a type, each once."""
    seen: set[int] = set()
    edge = children(schema)
    while edge:
        one = edge.pop()
        if id(one) not in seen:
            seen.add(id(one))
            edge += children(one)
            yield one


def _read(written: Any, space: str, names: dict[str, Schema]) -> Schema:
    """Returns a type from its JSON; `space` is the namespace of names without a dot."""
    match written:
        case str():
            return PLAIN[written] if written in PRIMITIVES else _named(written, space, names)
        case list():
            return OneOf(tuple(_read(branch, space, names) for branch in written))
        case {"type": "record" | "error" | "enum" | "fixed"}:
            return _define(written, space, names)
        case {"type": "array", "items": items}:
            return Array(_read(items, space, names), _attributes(written))
        case {"type": "map", "values": values}:
            return Map(_read(values, space, names), _attributes(written))
        case {"type": str(name)} if name in PRIMITIVES:
            return Primitive(name, *_logical(written), _attributes(written))
        case {"type": (str() | list() | dict()) as inner} if inner not in ("array", "map"):
            return _read(inner, space, names)
    raise SchemaError(f"it has an unknown type: {json.dumps(written)[:80]}")


def _named(name: str, space: str, names: dict[str, Schema]) -> Schema:
    found = names.get(name if "." in name or not space else f"{space}.{name}", names.get(name))
    if found is None:
        raise SchemaError(f'it uses a type "{name}" that is not defined before')
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
            names[full] = Enum(short, tuple(symbols), _attributes(written))
        case {"type": "fixed", "size": int(size)} if size >= 0:
            names[full] = Fixed(short, size, *_logical(written), _attributes(written))
        case {"type": "record" | "error", "fields": [*fields]}:
            record = names[full] = Record(short, attributes=_attributes(written))
            for one in fields:
                if (
                    not isinstance(one, dict)
                    or not isinstance(one.get("name"), str)
                    or "type" not in one
                    or one["name"] in record.fields
                ):
                    raise SchemaError(
                        f'the record "{short}" has a field without a unique name and a type: {json.dumps(one)[:80]}'
                    )
                record.fields[one["name"]] = _read(one["type"], space, names)
        case _:
            raise SchemaError(f'the {written["type"]} "{short}" lacks its symbols, size or fields')
    return names[full]


def _logical(written: dict[str, Any]) -> tuple[str | None, int]:
    logical, scale = written.get("logicalType"), written.get("scale", 0)
    return (logical if isinstance(logical, str) else None), (scale if isinstance(scale, int) else 0)


def _attributes(written: dict[str, Any]) -> Attributes:
    return {name: str(value) for name, value in written.items() if isinstance(value, (str, int))}
