"""Format + source settings -> Plan: what the macros print. All choices are made here; macros loop and print."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from runner.compile.avro import avro_function
from runner.compile.column_types import TypeReaders, TypesPlace, type_readers, types_places
from runner.compile.columns import Column, MetaEntry, OrderNumber, make_columns, meta_entries, order_numbers
from runner.compile.images import Images, make_images
from runner.compile.json import JsonReading, Placing, json_reading, placing
from runner.compile.keys import Keys, make_keys
from runner.compile.paths import image_paths
from runner.compile.readers import (
    EXPONENTS,
    PYTHON_READERS,
    DeclaredTable,
    Reader,
    Zone,
    declared_table,
    make_zone,
)
from runner.contract import MESSAGE_COLUMNS
from runner.functions.avro.layout import AvroFunction
from runner.project.inputs import TableSettings
from runner.spec.words import DdlSwitch, Format, Line, fields_of

# The columns that together name a table, from the outside in.
NAME_COLUMNS = ("tenant", "db_name", "schema_name", "table_name")


@dataclass(frozen=True)
class PythonReader:
    """A function that reads values of whole images, and the words of the readers that use it."""

    function: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Tables:
    """The tables that a source declares: all, those with a key, and those with columns."""

    all: tuple[DeclaredTable, ...]
    keyed: tuple[DeclaredTable, ...]
    typed: tuple[DeclaredTable, ...]


@dataclass(frozen=True)
class Values:
    """How values become canonical: all `readers`, those of them that may read an `ambiguous` wall clock, the `python`
    functions that some of them need, those that read `bytes`, the words of those that write `exponents` out, whether
    one of them needs types, and the readers `by_type`.
    """

    readers: tuple[Reader, ...]
    ambiguous: tuple[Reader, ...]
    python: tuple[PythonReader, ...]
    bytes: tuple[Reader, ...]
    exponents: tuple[str, ...]
    need_types: bool
    by_type: TypeReaders | None


@dataclass(frozen=True)
class Verdicts:
    """Groups of verdicts: `dead_letters` are the lines that refuse messages, `ddl` is verdict -> how the op of its DDL
    is chosen, `by_statement` says whether the op of others is taken from a statement, `halves` are updates that come as
    two messages. `op_name` is the field of the op, as details of errors name it.
    """

    op_name: str
    dead_letters: tuple[Line, ...]
    ddl: Mapping[str, DdlSwitch]
    by_statement: bool
    halves: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """What the macros print for one source. `prefix` begins the names of the functions that only it has.

    `reads` is column -> type without parameters, of the messages; `functions` are the functions that are not Spark's.
    `json` is what is read of messages in JSON, `placing` where their paths start. `has_local_times`: whether the zone
    is needed for fields of the header. `columns` are the contract's plain columns, `names` those of them that name a
    table, `ambiguous_columns` those that come from a wall clock which may have come twice.
    """

    source: str
    prefix: str
    spec: Format
    zone: Zone | None
    avro: AvroFunction | None
    reads: Mapping[str, str]
    functions: tuple[str, ...]
    json: JsonReading | None
    placing: Placing | None
    has_local_times: bool
    verdicts: Verdicts
    images: Images
    columns: Mapping[str, Column]
    names: tuple[Column, ...]
    ambiguous_columns: tuple[Column, ...]
    order: tuple[OrderNumber, ...]
    meta: tuple[MetaEntry, ...]
    keys: Keys
    types_places: tuple[TypesPlace, ...]
    values: Values
    tables: Tables
    generation: int

    @property
    def bytes_in_doubt(self) -> bool:
        """Whether what looks like bytes has to be looked up in the message, where it may be no text. That is possible
        where images stand in the message as they are.
        """
        return bool(self.json and self.values.bytes and not self.images.named and not self.json.is_flat)

    @property
    def tells_as_sent(self) -> bool:
        """Whether values may stay as sent because they could not be read."""
        return bool(self.values.readers or self.images.tell_unfit)

    @property
    def tells_ambiguous_times(self) -> bool:
        """Whether times may be wall clocks that came twice."""
        return bool(self.values.ambiguous or self.ambiguous_columns or self.images.may_be_ambiguous)

    @property
    def is_numbered(self) -> bool:
        """Whether a number of a schema stands before a text in JSON."""
        return bool(self.json and self.spec.message.number_bytes)

    @property
    def has_parts(self) -> bool:
        """Whether a message may hold several, which are numbered."""
        return bool(self.spec.message.batch or self.spec.message.frames)

    @property
    def long_fields(self) -> tuple[tuple[str, ...], ...]:
        """The fields that hold lists and maps of a message's rows and columns."""
        return tuple(path for path, _ in self.json.others) if self.json else self.images.listed


def make_plan(
    source: str,
    spec: Format,
    zone_name: str | None,
    settings: Iterable[TableSettings] = (),
    prefix: str | None = None,
    generation: int = 0,
) -> Plan:
    """The plan for one source; its zone overrides the format's, and the `prefix` is the source if it is not given.
    Raises `types-unknown`, `schema-field` and `spec-conflict`.
    """
    zone = make_zone(zone_name or spec.zone)
    avro = avro_function(source, spec) if spec.message.encoding == "avro" else None
    images, columns = make_images(spec), make_columns(spec)
    tables = _tables(declared_table(table, spec, zone) for table in settings)
    values = _values(type_readers(spec, zone), tables)
    return Plan(
        source=source,
        prefix=prefix or source,
        spec=spec,
        zone=zone,
        avro=avro,
        reads={name: kind.split("<")[0] for name, kind in MESSAGE_COLUMNS[spec.message.encoding].items()},
        functions=tuple(dict.fromkeys(_functions(spec, avro, images, values))),
        json=None if avro else json_reading(spec),
        placing=None if avro else placing(spec),
        has_local_times=_has_local_times(spec),
        verdicts=_verdicts(spec),
        images=images,
        columns=columns,
        names=tuple(columns[name] for name in NAME_COLUMNS),
        ambiguous_columns=_ambiguous_columns(columns.values(), zone),
        order=tuple(order_numbers(spec)),
        meta=tuple(meta_entries(spec, image_paths(spec) if images.in_lists else ())),
        keys=make_keys(spec, tables.keyed),
        types_places=tuple(types_places(spec)),
        values=values,
        tables=tables,
        generation=generation,
    )


def _functions(spec: Format, avro: AvroFunction | None, images: Images, values: Values) -> Iterator[str]:
    """The functions in Python: those that read messages, images and values."""
    if avro:
        yield avro.name
    if spec.message.batch:
        yield "json_elements"
    if spec.message.frames:
        yield "framed_events"
    yield from (image.function for image in images.texts)
    yield from (reader.function for reader in values.python)


def _ambiguous_columns(columns: Iterable[Column], zone: Zone | None) -> tuple[Column, ...]:
    return tuple(column for column in columns if column.is_local) if zone and zone.may_skip else ()


def _has_local_times(spec: Format) -> bool:
    """Whether a time or an order number of the header is a local time."""
    of_lines = (value for line in spec.op.lines() for value in line.columns.values())
    values = [*spec.columns.values(), *spec.seq, *of_lines]
    return any(field.reader == "local" for value in values for field in fields_of(value))


def _verdicts(spec: Format) -> Verdicts:
    lines = spec.op.lines()
    return Verdicts(
        " or ".join(".".join(field.path) for field in fields_of(spec.op.by)),
        tuple(line for line in lines if line.kind == "dead_letter"),
        {line.verdict: line.ddl for line in lines if line.ddl},
        any(line.op is None and not line.ddl for line in lines),
        tuple(dict.fromkeys(line.verdict for line in lines if line.kind == "row" and line.half)),
    )


def _tables(tables: Iterable[DeclaredTable]) -> Tables:
    found = tuple(tables)
    return Tables(found, tuple(table for table in found if table.key), tuple(table for table in found if table.columns))


def _values(by_type: TypeReaders | None, tables: Tables) -> Values:
    of_types = [reader for case in by_type.cases for reader in case.readers] if by_type else []
    of_tables = [reader for table in tables.typed for reader in table.readers.values()]
    readers = tuple(dict.fromkeys([*of_types, *of_tables]))
    return Values(
        readers,
        tuple(reader for reader in readers if reader.ambiguous),
        tuple(_python_readers(readers)),
        tuple(reader for reader in readers if reader.reads_bytes),
        _words(readers, EXPONENTS),
        any(reader.needs_type for reader in readers),
        by_type,
    )


def _words(readers: Iterable[Reader], kinds: Container[str]) -> tuple[str, ...]:
    """The words of the readers that read in one of these ways."""
    return tuple(reader.word for reader in readers if any(one.kind in kinds for one in reader.attempts))


def _python_readers(readers: Iterable[Reader]) -> Iterator[PythonReader]:
    for kind in PYTHON_READERS:
        words = _words(readers, (kind,))
        if words:
            yield PythonReader(kind, words)
