"""Values in records of Avro -> their canonical text, by what the format says of records of their own."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runner.functions.avro.reader import PRIMITIVES, Read, plain, read_enum, read_long, read_union, skipper, then
from runner.functions.avro.schema import Enum, Fixed, OneOf, Primitive, Record, Schema, SchemaError, find, opened
from runner.functions.avro.values import (
    bit_text,
    bytes_text,
    clock_text,
    decimal_text,
    double_text,
    enum_text,
    float_text,
    instant_text,
    json_text,
    logical_text,
    set_text,
)

Records = Mapping[str, Mapping[str, Any]]

SMALL_NUMBERS = [str((byte >> 1) ^ -(byte & 1)) for byte in range(128)]

# What conversions raise on values that do not fit their class.
UNFIT = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError)


class AsSent(str):
    """A text that did not fit its class."""


class NotSent:
    """The value of a column that this image does not hold."""


def text_reader(schema: Schema, records: Records, type_name: str | None = None) -> Read:
    """The canonical text of a value; JSON of what has no text of its own. `type_name` chooses a class where a record
    may be of several.
    """
    match schema:
        case Primitive("null" | "string", None):
            return PRIMITIVES[schema.name]
        case Primitive("int" | "long", None):
            return read_long_text
        case OneOf():
            return read_union([text_reader(branch, records, type_name) for branch in schema.branches])
        case Enum() if schema.name in records:
            return then(read_enum(schema.symbols), _symbols(schema, records[schema.name]))
        case Enum():
            return read_enum(schema.symbols)
        case Record() if schema.name in records:
            return _written_record(schema, records[schema.name], type_name)
        case Primitive() | Fixed():
            return _scalar_text(schema)
    return then(plain(schema), json_text)


SCALAR_TEXTS: Mapping[str, Callable[[Any], str | None]] = {
    "null": lambda value: None, "boolean": lambda value: "true" if value else "false", "int": str, "long": str, "float": float_text, "double": double_text,
    "bytes": bytes_text, "string": str,
}  # fmt: skip


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
    # A logical type of what it is not made of says nothing; all but decimals are whole numbers.
    if logical is None or is_bytes != (schema.logical == "decimal") or not (is_bytes or schema.name in ("int", "long")):
        return then(plain(schema), usual)

    def convert(value: Any) -> str:
        try:
            text = logical(value)
        except UNFIT:
            text = None
        return AsSent(usual(value)) if text is None else text

    return then(plain(schema), convert)


def _symbols(schema: Enum, entry: Mapping[str, Any]) -> Callable[[str], Any]:
    for symbol in (*entry["is_null"], *entry["not_sent"]):
        if symbol not in schema.symbols:
            raise SchemaError(f'the enum "{schema.name}" has no symbol "{symbol}"')
    special = {**dict.fromkeys(entry["is_null"]), **dict.fromkeys(entry["not_sent"], NotSent)}
    return lambda symbol: special.get(symbol, symbol)


def _written_record(schema: Record, entry: Mapping[str, Any], type_name: str | None) -> Read:
    """A value that its vendor writes as a record, by what the format says of it."""
    _check_kinds(schema, entry)
    paths, convert = _conversion(entry, entry["classes"].get(type_name, entry["classes"].get("else")))
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
# Word of a record -> the types that its field may have.
KINDS = {"bytes": ("bytes", "null"), "charset": ("string", "null"), "srid": NUMBERS, "length": NUMBERS}
PART_KINDS = {"negative": ("boolean", "null"), "zone": ("string", "null")}


def _check_kinds(schema: Record, entry: Mapping[str, Any]) -> None:
    """Raises SchemaError for a field that is not there, or cannot be what the format says."""
    wanted = [(entry[word], kinds) for word, kinds in KINDS.items() if entry[word]]
    wanted += [(path, PART_KINDS.get(part, NUMBERS)) for part, path in entry["parts"].items()]
    wanted += [(entry[word], None) for word in ("text", "labels") if entry[word]]
    for path, kinds in wanted:
        found = [one for inner in find(schema, path) for one in opened(inner, through_arrays=False)]
        if not found:
            raise SchemaError(f'the record "{schema.name}" has no field "{".".join(path)}"')
        if kinds and not all(
            (isinstance(one, Primitive) and one.name in kinds) or (isinstance(one, Fixed) and "bytes" in kinds)
            for one in found
        ):
            raise SchemaError(f'in the record "{schema.name}" the field "{".".join(path)}" is no {kinds[0]}')


def fields_reader(schema: Record, wanted: Sequence[str]) -> Read:
    """The values of some fields of a record, in the order asked for."""
    steps = [(plain(one) if name in wanted else None, skipper(one)) for name, one in schema.fields.items()]
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
        value = value[part] if isinstance(value, dict) else None
    return value


def _as_sent(sent: Any) -> str:
    return sent if isinstance(sent, str) else bytes_text(sent) if isinstance(sent, bytes) else json_text(sent)


def _conversion(entry: Mapping[str, Any], class_name: str) -> tuple[list[Sequence[str]], Callable[..., str | None]]:
    """The fields that make the text, and what makes it."""
    if entry["parts"]:
        names = list(entry["parts"])
        make = instant_text if class_name in ("timestamp", "zoned") else clock_text
        return list(entry["parts"].values()), lambda *values: make(dict(zip(names, values)))
    if entry["bytes"]:
        return _bytes_conversion(entry)
    path = entry["text"]
    match class_name:
        case "decimal":
            return [path], decimal_text
        case "bit":
            return (
                ([path, entry["length"]], bit_text) if entry["length"] else ([path], lambda text: bit_text(text, None))
            )
        case "enum" | "set" if entry["labels"]:
            return [path, entry["labels"]], enum_text if class_name == "enum" else set_text
    return [path], _any_text


def _any_text(value: Any) -> str:
    return double_text(value) if isinstance(value, float) else _as_sent(value)


def _bytes_conversion(entry: Mapping[str, Any]) -> tuple[list[Sequence[str]], Callable[..., str | None]]:
    if entry["srid"]:
        return [entry["bytes"], entry["srid"]], lambda value, srid: bytes_text(
            struct.pack("<I", srid & 0xFFFFFFFF) + value
        )
    if entry["charset"]:
        charsets = {name.lower(): codec for name, codec in entry["charsets"].items()}
        return [entry["bytes"], entry["charset"]], lambda value, charset: _decoded(value, charsets[charset.lower()])
    return [entry["bytes"]], bytes_text


def _decoded(value: bytes, codec: str) -> str:
    return bytes_text(value) if codec == "binary" else value.decode(codec)
