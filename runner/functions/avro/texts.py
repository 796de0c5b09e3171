"""Readers of values in Avro that return canonical text. The format's entries for records and enums decide how."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from runner.functions.avro.layout import Names, RecordEntry, Records
from runner.functions.avro.reader import (
    PRIMITIVES,
    Read,
    field_skippers,
    nothing,
    plain,
    read_enum,
    read_long,
    read_union,
    skipper,
    then,
)
from runner.functions.avro.schema import (
    Enum,
    Fixed,
    OneOf,
    Primitive,
    Record,
    Schema,
    SchemaError,
    alternatives,
    find,
    type_name,
)
from runner.functions.avro.times import Parts, instant_text
from runner.functions.avro.values import (
    AsSent,
    Longer,
    Settled,
    bit_text,
    bytes_text,
    digits_text,
    double_text,
    enum_text,
    float_text,
    json_text,
    logical_text,
    number_text,
    set_text,
    shown_text,
)

SMALL_NUMBERS = [str((byte >> 1) ^ -(byte & 1)) for byte in range(128)]

# The errors that conversions raise for values that do not fit their class.
UNFIT = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError)


class NotSent:
    """The value of a column that this image does not contain."""


def text_reader(schema: Schema, records: Records, type_name: str | None = None) -> Read:
    """Returns a reader of the canonical text of a value, or of a number that is still to be written out; JSON for
    lists, maps and other records. `type_name` chooses the class of a record that may have several.
    """
    match schema:
        case Primitive("null") | Primitive("string", None):
            return PRIMITIVES[schema.name]
        case Primitive("int" | "long", None):
            return read_long_text
        case OneOf():
            return read_union([text_reader(branch, records, type_name) for branch in schema.branches])
        case Enum() if schema.name in records:
            return read_enum(_symbols(schema, records[schema.name]))
        case Enum():
            return read_enum(schema.symbols)
        case Record() if schema.name in records:
            return _written_record(schema, records[schema.name], type_name)
        case Primitive() | Fixed():
            return _scalar_text(schema)
    return then(plain(schema), json_text)


def typed_text_reader(schema: Schema, records: Records, names: Names = ()) -> Read:
    """Returns a reader like `text_reader` for a value whose column has a type. The value is settled unless it is a text
    or a plain number. If the schema names the type with one of the attributes `names`, only decimals and types that the
    format has an entry for are settled.
    """
    if isinstance(schema, OneOf):
        return read_union([typed_text_reader(branch, records, names) for branch in schema.branches])
    is_named = any(name in schema.attributes for name in names if name != "type")
    if is_named and isinstance(schema, Primitive) and schema.name in ("int", "long"):
        return read_long_text  # the name says more than a logical type: whether a time is a wall clock, for instance
    read = text_reader(schema, records)
    if _is_open(schema, records, bool(names)):
        return read
    return then(read, _settled)


def _settled(text: Any) -> Any:
    return Settled(text) if text.__class__ is str else text


def types_reader(schema: Record, names: Names, params: Names) -> Read:
    """Returns a reader that passes over a row, and returns the types that its schema names for the columns."""
    return nothing(skipper(schema), [(column, type_name(one, names, params)) for column, one in schema.fields.items()])


def _is_open(schema: Schema, records: Records, are_named: bool) -> bool:
    """Returns True if the type of a column decides how its value is read."""
    match schema:
        case Primitive():
            return schema.logical is None and (are_named or schema.name not in ("bytes", "boolean"))
        case Fixed():
            return schema.logical is None and are_named
        case Enum() | Record():
            return schema.name not in records and are_named
    return are_named


def _boolean_text(value: bool) -> str:
    return "true" if value else "false"


SCALAR_TEXTS: Mapping[str, Callable[[Any], str]] = {
    "boolean": _boolean_text,
    "int": str,
    "long": str,
    "float": float_text,
    "double": double_text,
    "bytes": bytes_text,
    "string": str,
}


def read_long_text(data: bytes, position: int) -> tuple[str, int]:
    byte = data[position]
    if byte < 128:
        return SMALL_NUMBERS[byte], position + 1
    number, position = read_long(data, position)
    return str(number), position


def _scalar_text(schema: Primitive | Fixed) -> Read:
    usual = SCALAR_TEXTS[schema.name] if isinstance(schema, Primitive) else bytes_text
    is_bytes = isinstance(schema, Fixed) or schema.name == "bytes"
    logical = logical_text(schema.logical, schema.scale)
    # A logical type counts only on its own primitive type: decimals on bytes, all others on whole numbers.
    if logical is None or is_bytes != (schema.logical == "decimal") or not (is_bytes or schema.name in ("int", "long")):
        return then(plain(schema), usual)

    sent = plain(schema)

    def read(data: bytes, position: int) -> tuple[str | Longer, int]:
        value, end = sent(data, position)
        try:
            text = logical(value)
        except UNFIT:
            text = None
        return (AsSent(usual(value)) if text is None else text), end

    return read


def _symbols(schema: Enum, entry: RecordEntry) -> list[Any]:
    """Returns what the symbols of an enum stand for: themselves, null, or no value at all."""
    for symbol in (*entry["is_null"], *entry["not_sent"]):
        if symbol not in schema.symbols:
            raise SchemaError(f'the enum "{schema.name}" has no symbol "{symbol}"')
    special = {**dict.fromkeys(entry["is_null"]), **dict.fromkeys(entry["not_sent"], NotSent)}
    return [special.get(symbol, symbol) for symbol in schema.symbols]


def _written_record(schema: Record, entry: RecordEntry, type_name: str | None) -> Read:
    """Returns a reader of a value that the vendor writes as a record, as the format's entry for the record says."""
    _check_kinds(schema, entry)
    paths, convert = _conversion(entry, entry["classes"].get(type_name or "else", entry["classes"].get("else")))
    used = list(dict.fromkeys(path[0] for path in paths))
    fields = fields_reader(schema, used)
    whole, has_parts = plain(schema), bool(entry["parts"])
    flat = [path[0] for path in paths] == used and all(len(path) == 1 for path in paths)

    def read(data: bytes, position: int) -> tuple[Any, int]:
        sent, end = fields(data, position)
        values = sent if flat else [_dig(sent[used.index(path[0])], path[1:]) for path in paths]
        if values[0] is None and not has_parts:
            return None, end
        try:
            text = convert(*values)
        except UNFIT:
            text = None
        return (AsSent(_as_sent(whole(data, position)[0] if has_parts else values[0])) if text is None else text), end

    return read


NUMBERS = ("int", "long", "null")
# Word of an entry -> the types that its field may have; the first is the one that errors name.
KINDS = {"bytes": ("bytes", "null"), "charset": ("string", "null"), "srid": NUMBERS, "length": NUMBERS}
PART_KINDS = {"negative": ("boolean", "null"), "zone": ("string", "null")}


def _check_kinds(schema: Record, entry: RecordEntry) -> None:
    """Raises SchemaError for a field that is missing, or has a type that the format's entry rules out."""
    paths: Mapping[str, Any] = entry
    wanted: list[tuple[Names, tuple[str, ...] | None]] = []
    wanted += [(paths[word], kinds) for word, kinds in KINDS.items() if paths[word]]
    wanted += [(path, PART_KINDS.get(part, NUMBERS)) for part, path in entry["parts"].items()]
    wanted += [(path, None) for path in (entry["text"], entry["labels"]) if path]
    for path, kinds in wanted:
        found = [one for inner in find(schema, path) for one in alternatives(inner, through_arrays=False)]
        if not found:
            raise SchemaError(f'the record "{schema.name}" has no field "{".".join(path)}"')
        if kinds and not all(
            (isinstance(one, Primitive) and one.name in kinds) or (isinstance(one, Fixed) and "bytes" in kinds)
            for one in found
        ):
            raise SchemaError(f'in the record "{schema.name}", the field "{".".join(path)}" is not of type {kinds[0]}')


def fields_reader(schema: Record, wanted: Sequence[str]) -> Read:
    """Returns a reader of the values of some fields of a record, in the order of `wanted`."""
    steps = [
        (plain(one) if name in wanted else None, skip)
        for (name, one), skip in zip(schema.fields.items(), field_skippers(schema))
    ]
    written = [name for name in schema.fields if name in wanted]
    order = None if written == list(wanted) else [written.index(name) for name in wanted]

    def read(data: bytes, position: int) -> tuple[list[Any], int]:
        values = []
        for field, skip in steps:
            if field is None:
                position = skip(data, position)
            else:
                value, position = field(data, position)
                values.append(value)
        return values if order is None else [values[number] for number in order], position

    return read


def _dig(value: Any, path: Sequence[str]) -> Any:
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _as_sent(sent: Any) -> str:
    return sent if isinstance(sent, str) else bytes_text(sent) if isinstance(sent, bytes) else json_text(sent)


def _conversion(entry: RecordEntry, class_name: str | None) -> tuple[list[Names], Callable[..., str | Longer | None]]:
    """Returns the fields that the text is made from, and the function that makes it from their values."""
    if entry["parts"]:
        names = list(entry["parts"])
        make = instant_text if class_name in ("timestamp", "zoned") else shown_text
        return list(entry["parts"].values()), partial(_of_parts, make, names)
    if entry["bytes"]:
        return _bytes_conversion(entry)
    path = entry["text"]
    match class_name:
        case "integer" | "decimal":
            return [path], number_text
        case "bit":
            return [path, *([entry["length"]] if entry["length"] else [])], _of_text(bit_text)
        case "enum" | "set" if entry["labels"]:
            return [path, entry["labels"]], _of_text(enum_text if class_name == "enum" else set_text)
    return [path], _any_text


def _of_parts(make: Callable[[Parts], str | None], names: Sequence[str], *values: Any) -> str | None:
    return make(dict(zip(names, values)))


def _of_text(convert: Callable[..., str | None]) -> Callable[..., str | None]:
    """Returns a conversion of a text that also takes a whole number. Bytes and all other values give None."""

    def make(value: Any, *others: Any) -> str | None:
        if isinstance(value, str):
            return convert(value, *others)
        return convert(digits_text(value), *others) if value.__class__ is int else None

    return make


def _any_text(value: Any) -> str:
    return double_text(value) if isinstance(value, float) else _as_sent(value)


def _bytes_conversion(entry: RecordEntry) -> tuple[list[Names], Callable[..., str | None]]:
    if entry["srid"]:
        return [entry["bytes"], entry["srid"]], _with_srid
    if entry["charset"]:
        charsets = {name.lower(): codec for name, codec in entry["charsets"].items()}
        return [entry["bytes"], entry["charset"]], partial(_decoded, charsets)
    return [entry["bytes"]], bytes_text


def _with_srid(value: bytes, srid: int) -> str:
    return bytes_text(struct.pack("<I", srid & 0xFFFFFFFF) + value)


def _decoded(codecs: Mapping[str, str], value: bytes, charset: str) -> str:
    codec = codecs[charset.lower()]
    return bytes_text(value) if codec == "binary" else value.decode(codec)
