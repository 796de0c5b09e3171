"""Format + source settings -> Plan: what the macros print. All choices are made here; macros loop and print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from runner.compile.avro import avro_function
from runner.compile.column_types import TypeReaders, TypesPlace, type_readers, types_places
from runner.compile.columns import Column, MetaEntry, OrderNumber, make_columns, meta_entries, order_numbers
from runner.compile.images import Images, make_images
from runner.compile.keys import Keys, make_keys
from runner.compile.paths import TEXT, Tree, header_paths, image_paths, json_fields, plant
from runner.compile.readers import (
    PYTHON_READERS,
    DeclaredTable,
    Reader,
    Zone,
    declared_table,
    make_zone,
)
from runner.contract import MESSAGE_COLUMNS
from runner.functions.avro.layout import AvroFunction
from runner.project.nodes import TableSettings
from runner.spec.words import DdlSwitch, Dropped, Format, Line, fields_of

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
    """How values become canonical: all `readers`, the `python` functions that some of them need, whether one of them
    looks up labels, and the readers `by_type`.
    """

    readers: tuple[Reader, ...]
    python: tuple[PythonReader, ...]
    need_labels: bool
    by_type: TypeReaders | None


@dataclass(frozen=True)
class Verdicts:
    """Groups of verdicts: `dead_letters` are the lines that refuse messages, `ddl` is verdict -> how the op of its DDL
    is chosen, `by_statement` says whether any op is taken from a statement, `halves` are updates that come as two
    messages, `snapshots` belong to the first load. `op_name` is the field of the op, as details of errors name it.
    """

    op_name: str
    dead_letters: tuple[Line, ...]
    ddl: Mapping[str, DdlSwitch]
    by_statement: bool
    halves: tuple[str, ...]
    snapshots: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """What the macros print for one source.

    `reads` is column -> type without parameters, of the messages; `functions` are the functions that are not Spark's.
    `exact`: whether numbers are put in quotes to keep their digits. `fields` is the tree of what is read of a JSON
    message, `sealed_fields` the same with the seal that follows it, `header` the texts that later steps need. `columns`
    are the contract's plain columns, `names` those of them that name a table. `always_dropped` and `sometimes_dropped`
    are members of rows that are not columns.
    """

    source: str
    spec: Format
    zone: Zone | None
    avro: AvroFunction | None
    reads: Mapping[str, str]
    functions: tuple[str, ...]
    exact: bool
    fields: Tree
    sealed_fields: Tree
    header: Tree
    verdicts: Verdicts
    images: Images
    columns: Mapping[str, Column]
    names: tuple[Column, ...]
    order: tuple[OrderNumber, ...]
    meta: tuple[MetaEntry, ...]
    always_dropped: tuple[str, ...]
    sometimes_dropped: tuple[Dropped, ...]
    keys: Keys
    types_places: tuple[TypesPlace, ...]
    values: Values
    tables: Tables


def make_plan(source: str, spec: Format, zone_name: str | None, settings: Iterable[TableSettings] = ()) -> Plan:
    """The plan for one source; its zone overrides the format's. Raises `types-unknown`, `schema-field` and
    `spec-conflict`.
    """
    zone = make_zone(zone_name or spec.zone)
    avro = avro_function(source, spec) if spec.message.encoding == "avro" else None
    fields = {} if avro else _fields(spec)
    images = make_images(spec)
    columns = make_columns(spec)
    tables = _tables(declared_table(table, spec, zone) for table in settings)
    values = _values(type_readers(spec, zone), tables)
    functions = [*(image.function for image in images.texts), *(reader.function for reader in values.python)]
    return Plan(
        source=source,
        spec=spec,
        zone=zone,
        avro=avro,
        reads={name: kind.split("<")[0] for name, kind in MESSAGE_COLUMNS[spec.message.encoding].items()},
        functions=tuple(dict.fromkeys([*([avro.name] if avro else []), *functions])),
        exact=avro is None and spec.message.numbers == "exact",
        fields=fields,
        sealed_fields={**fields, "seal": TEXT},
        header=_header(spec),
        verdicts=_verdicts(spec),
        images=images,
        columns=columns,
        names=tuple(columns[name] for name in NAME_COLUMNS),
        order=tuple(order_numbers(spec)),
        meta=tuple(meta_entries(spec, image_paths(spec) if images.in_lists else ())),
        always_dropped=tuple(dropped.name for dropped in spec.drop if not dropped.conditions),
        sometimes_dropped=tuple(dropped for dropped in spec.drop if dropped.conditions),
        keys=make_keys(spec, tables.keyed),
        types_places=tuple(types_places(spec)),
        values=values,
        tables=tables,
    )


def _fields(spec: Format) -> Tree:
    """The part of a JSON message that is read: names -> types."""
    tree: Tree = {}
    for path, kind in json_fields(spec):
        plant(tree, path, kind)
    return tree


def _header(spec: Format) -> Tree:
    """The texts of a message, without those that are members of its rows."""
    lists = image_paths(spec) if spec.each and spec.message.encoding != "avro" else []
    tree: Tree = {}
    for path in header_paths(spec):
        if path[:-1] not in lists:
            plant(tree, path, TEXT)
    return tree


def _verdicts(spec: Format) -> Verdicts:
    lines = spec.op.lines()
    return Verdicts(
        " or ".join(".".join(field.path) for field in fields_of(spec.op.by)),
        tuple(line for line in lines if line.kind == "dead_letter"),
        {line.verdict: line.ddl for line in lines if line.ddl},
        any(line.op is None for line in lines),
        tuple(dict.fromkeys(line.verdict for line in lines if line.kind == "row" and line.half)),
        tuple(dict.fromkeys(line.verdict for line in lines if line.phase == 0)),
    )


def _tables(tables: Iterable[DeclaredTable]) -> Tables:
    found = tuple(tables)
    return Tables(found, tuple(table for table in found if table.key), tuple(table for table in found if table.columns))


def _values(by_type: TypeReaders | None, tables: Tables) -> Values:
    of_types = [reader for case in by_type.cases for reader in case.readers] if by_type else []
    of_tables = [reader for table in tables.typed for reader in table.readers.values()]
    readers = tuple(dict.fromkeys([*of_types, *of_tables]))
    return Values(readers, tuple(_python_readers(readers)), any(reader.labelled for reader in readers), by_type)


def _python_readers(readers: Iterable[Reader]) -> Iterator[PythonReader]:
    for kind in PYTHON_READERS:
        words = tuple(reader.word for reader in readers if any(one.kind == kind for one in reader.attempts))
        if words:
            yield PythonReader(kind, words)
