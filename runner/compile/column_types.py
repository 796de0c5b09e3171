"""Types of columns: where a message states them, and the reader of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from runner.compile.paths import ChosenList, chosen_list, image_paths
from runner.compile.readers import Reader, Zone, reader_of_class
from runner.spec.words import FieldPath, Format, Types, TypeTable, TypeTables, Value


@dataclass(frozen=True)
class TypesPlace:
    """A place of column types. `form` is `map` (column -> type), `objects` (column -> object with the type), `list` (of
    objects with name and type), `chosen` (such a list in an element of another), `lists` (one of names beside some of
    types), `beside` (one of types in step with one of `names`) or `text` (JSON of a map or of objects). `name` is the
    member with the column's name, `members` those that may hold its type, `params` what follows the type in brackets.
    `flags` are bits of the number in the member `flag`, with words for the type; `items` is the member with the type of
    an array's elements.
    """

    path: FieldPath
    form: str
    name: str | None
    members: tuple[str, ...]
    params: tuple[FieldPath, ...]
    names: FieldPath | None
    chosen: ChosenList | None
    flag: str | None
    flags: tuple[tuple[int, str], ...]
    items: str | None


@dataclass(frozen=True)
class TypeCase:
    """The readers of one table of types: reader -> type names. It is for messages in which a value matches one of
    `texts`, or, if there are none, for all others. `may_be_long`: whether the first word of a name does not decide.
    """

    texts: tuple[str, ...]
    readers: Mapping[Reader, tuple[str, ...]]
    may_be_long: bool


@dataclass(frozen=True)
class TypeReaders:
    """The readers of all tables of types. `by` is the value that chooses the table, empty if there is one for all
    messages. `names` are all types that have a reader. `may_be_long`: whether the first word of a type's name does not
    decide how its values are read.
    """

    by: Value
    cases: tuple[TypeCase, ...]
    names: tuple[str, ...]
    may_be_long: bool


def types_places(spec: Format) -> Iterator[TypesPlace]:
    """The places where a message states the types of columns."""
    images = image_paths(spec)
    types = spec.types
    for path in types.at if types else ():
        assert types
        chosen = chosen_list(path)
        form = "chosen" if chosen else _form(spec, types, path[:-1] in images)
        yield TypesPlace(
            path, form, types.name, types.value, types.params, types.names, chosen, types.flag, types.flags, types.items
        )


def _form(spec: Format, types: Types, is_in_image: bool) -> str:
    if spec.message.encoding == "avro":
        return "lists" if types.name else "map"
    if types.names:
        return "beside"
    if types.name:
        return "list"
    if is_in_image:
        return "text"
    return "objects" if types.value else "map"


def type_readers(spec: Format, zone: Zone | None) -> TypeReaders | None:
    """The readers by a column's type; None if messages state no types, or all values are canonical as sent."""
    if spec.types is None or not spec.types.at or not spec.types.tables:
        return None
    tables = spec.types.tables
    found = [_type_case(texts, table, spec, zone) for texts, table in _texts_of_tables(tables)]
    cases = tuple(case for case in found if case.readers or case.texts)
    names = {name: reader for case in cases for reader, names in case.readers.items() for name in names}
    may_be_long = any(case.may_be_long for case in cases)
    return TypeReaders(tables.by if tables.cases else (), cases, tuple(names), may_be_long) if names else None


def _texts_of_tables(tables: TypeTables) -> Iterator[tuple[tuple[str, ...], TypeTable | None]]:
    """The texts that choose each table, and the table: first those of cases that follow one another."""
    for table, cases in groupby(tables.cases.items(), key=lambda case: case[1]):
        yield tuple(text for text, _ in cases), table
    yield (), tables.otherwise


def _type_case(texts: tuple[str, ...], table: TypeTable | None, spec: Format, zone: Zone | None) -> TypeCase:
    readers = _readers(table, spec, zone)
    reader_of = {name: reader for reader, names in readers.items() for name in names}
    may_be_long = any(
        reader_of.get(name) != reader_of.get(name.split()[0]) for name in (table.classes if table else ())
    )
    return TypeCase(texts, readers, may_be_long)


def _readers(table: TypeTable | None, spec: Format, zone: Zone | None) -> dict[Reader, tuple[str, ...]]:
    readers: dict[Reader, list[str]] = {}
    for type_name, class_name in table.classes.items() if table else ():
        assert table
        reader = reader_of_class(class_name, spec, zone, table.readers.get(type_name, ()))
        if reader:
            readers.setdefault(reader, []).append(type_name)
    return {reader: tuple(names) for reader, names in readers.items()}
