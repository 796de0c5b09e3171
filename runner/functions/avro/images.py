"""The images of rows: readers of them, and what they make of the values: texts, and the columns that are marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from runner.functions.avro.layout import Records, Slot
from runner.functions.avro.reader import (
    Read,
    by_first_byte,
    field_skippers,
    plain,
    read_entries,
    read_list,
    read_record,
    read_union,
    then,
)
from runner.functions.avro.schema import Array, Enum, Map, OneOf, Record, Schema, SchemaError
from runner.functions.avro.texts import NotSent, text_reader, typed_text_reader
from runner.functions.avro.times import Ambiguous
from runner.functions.avro.values import AsSent, Settled, written_out

PLAIN_TYPES = frozenset({str, type(None)})


class Image(NamedTuple):
    """The texts of a row, column -> text, with the names of columns: those that were not sent, those whose values did
    not fit their class, those that are settled, and those whose wall clock came twice in its zone. An image may also be
    a list of texts, with positions in place of names; `missing` then has a flag for each text, and is empty if all were
    sent.
    """

    texts: Any
    missing: Sequence[Any] = ()
    as_sent: Sequence[Any] = ()
    settled: Sequence[Any] = ()
    ambiguous: Sequence[Any] = ()


def row_image(values: dict[str, Any]) -> Image:
    """Returns the image of a map, column -> value that was read."""
    if PLAIN_TYPES.issuperset(map(type, values.values())):
        return Image(values)
    image = _marked(list(values), list(values.values()))
    missing = set(image.missing)
    return image._replace(texts={name: text for name, text in zip(values, image.texts) if name not in missing})


def positional_image(values: list[Any]) -> Image:
    """Returns the image of a list of values that were read."""
    if PLAIN_TYPES.issuperset(map(type, values)):
        return Image(values)
    image = _marked(range(len(values)), values)
    return image._replace(missing=[value is NotSent for value in values] if image.missing else [])


def _marked(columns: Sequence[Any], values: list[Any]) -> Image:
    """Returns the image of these columns; the text of a column that was not sent is None."""
    values = written_out(values)

    def of(kind: type) -> list[Any]:
        return [column for column, value in zip(columns, values) if value is kind or value.__class__ is kind]

    missing, as_sent, settled, ambiguous = of(NotSent), of(AsSent), of(Settled), of(Ambiguous)
    texts = [None if value is NotSent else value for value in values]
    return Image(texts, missing, as_sent, settled + as_sent + ambiguous, ambiguous)


def only_row(row: Image) -> Image:
    """Returns the image of a bare row, which counts as a list of one."""
    return row_images([row])


def row_images(rows: list[Image | None]) -> Image:
    """Returns one image whose members are lists with an entry for each row."""
    return Image(*([row and row[member] for row in rows] for member in range(len(Image._fields))))


# --- readers


def row_reader(schema: Map | Record, slot: Slot, records: Records) -> Read:
    """Returns a reader of an image that is a map, or a record whose fields are the columns."""
    if isinstance(schema, Map):
        return then(read_entries(_value_reader(schema.values, slot, records)), row_image)
    return then(read_record([(n, _value_reader(one, slot, records)) for n, one in schema.fields.items()]), row_image)


def positional_reader(schema: Array, slot: Slot, records: Records) -> Read:
    """Returns a reader of an image that is a list of values."""
    return then(read_list(_item(schema.items, slot, records)), positional_image)


def _value_reader(schema: Schema, slot: Slot, records: Records) -> Read:
    if slot.by_type:
        return typed_text_reader(schema, records, slot.names)
    return text_reader(schema, records)


def _item(schema: Schema, slot: Slot, records: Records) -> Read:
    """Returns a reader of a value by position, which may be in a record together with the name of its type."""
    if slot.value is None:
        return _value_reader(schema, slot, records)
    if not isinstance(schema, Record) or slot.value not in schema.fields:
        raise SchemaError(f'values by position have no member "{slot.value}"')
    kind, value = schema.fields.get(slot.type or ""), schema.fields[slot.value]
    if slot.type and not isinstance(kind, Enum):
        raise SchemaError(f'values by position have no member "{slot.type}" that is an enum')
    names = {name for entry in records.values() for name in entry["classes"] if name != "else"}
    if slot.type is None or not isinstance(kind, Enum) or not names & set(kind.symbols):
        return member_reader(schema, slot.value, text_reader(value, records))
    if list(schema.fields) == [slot.type, slot.value] and isinstance(value, OneOf):
        return _chosen_branch(kind, value, records, names)
    special = {name: text_reader(value, records, name) for name in names}
    return _typed_member(schema, (slot.type, slot.value), special, text_reader(value, records))


def _typed_member(schema: Record, members: tuple[str, str], special: dict[str, Read], usual: Read) -> Read:
    """Returns a reader of a member of a record, chosen by an enum before it: `members` are the enum and the value."""
    names = list(schema.fields)
    type_at, value_at = (names.index(name) for name in members)
    if type_at > value_at:
        raise SchemaError(f'"{members[0]}", the type of a value, comes after "{members[1]}"')
    skips = field_skippers(schema)
    before, between, after = skips[:type_at], skips[type_at + 1 : value_at], skips[value_at + 1 :]
    type_of = plain(schema.fields[members[0]])

    def read(data: bytes, position: int) -> tuple[Any, int]:
        for skip in before:
            position = skip(data, position)
        symbol, position = type_of(data, position)
        for skip in between:
            position = skip(data, position)
        value, position = special.get(symbol, usual)(data, position)
        for skip in after:
            position = skip(data, position)
        return value, position

    return read


def _chosen_branch(kind: Enum, value: OneOf, records: Records, names: set[str]) -> Read:
    """Returns a reader of a record of nothing but an enum and a union whose readers the enum chooses. Most values of a
    stream are such records, so the reader makes few calls.
    """
    branches = {name: [text_reader(branch, records, name) for branch in value.branches] for name in names}
    usual = [text_reader(branch, records) for branch in value.branches]
    tables = by_first_byte([by_first_byte(branches.get(symbol, usual)) for symbol in kind.symbols])
    type_of, unions = plain(kind), {name: read_union(readers) for name, readers in branches.items()}
    usual_union = read_union(usual)

    def read(data: bytes, position: int) -> tuple[Any, int]:
        table = tables[data[position]]
        branch = table and table[data[position + 1]]
        if branch:
            return branch(data, position + 2)
        symbol, position = type_of(data, position)
        return unions.get(symbol, usual_union)(data, position)

    return read


def member_reader(schema: Record, name: str, member: Read) -> Read:
    """Returns a reader of one member of a record."""
    at, skips = list(schema.fields).index(name), field_skippers(schema)
    before, after = skips[:at], skips[at + 1 :]

    def read(data: bytes, position: int) -> tuple[Any, int]:
        for skip in before:
            position = skip(data, position)
        value, position = member(data, position)
        for skip in after:
            position = skip(data, position)
        return value, position

    return read
