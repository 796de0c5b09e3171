"""Types of columns: where a message states them, the reader of each, and SQL that finds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from runner.compile.compiled import Columns
from runner.compile.images import Side
from runner.compile.keys import Keys
from runner.compile.paths import ChosenList, chosen_list, image_paths
from runner.compile.readers import Reader, Zone, reader_of_class
from runner.compile.rows import Rows
from runner.render import name as quoted
from runner.spec.words import FieldPath, Format, Types, TypeTable, TypeTables, Value


class TypesPlace(NamedTuple):
    """A place of column types. `form` is `map` (column -> type), `objects` (column -> object with the type), `list` (of
    objects with name and type), `chosen` (such a list in an element of another), `lists` (one of names beside some of
    types), `beside` (one of types in step with one of names) or `text` (JSON of a map or of objects).
    """

    path: FieldPath
    form: str
    chosen: ChosenList | None


@dataclass(frozen=True)
class TypeCase:
    """The readers of one table of types: reader -> type names. The case is for messages in which a value matches one of
    `texts`, or, if there are none, for all others. `may_be_long` is True if the first word of a name does not decide
    the reader.
    """

    texts: tuple[str, ...]
    readers: Mapping[Reader, tuple[str, ...]]
    may_be_long: bool


@dataclass(frozen=True)
class TypeReaders:
    """The readers of all tables of types. `by` is the value that chooses the table, empty if there is one for all
    messages. `names` are all types that have a reader. `may_be_long` is True if the first word of a type's name does
    not decide how its values are read.
    """

    by: Value
    cases: tuple[TypeCase, ...]
    names: tuple[str, ...]
    may_be_long: bool


def types_places(spec: Format) -> Iterator[TypesPlace]:
    """Returns the places where a message states the types of columns."""
    images = image_paths(spec)
    types = spec.types
    for path in types.at if types else ():
        assert types
        chosen = chosen_list(path)
        form = "chosen" if chosen else _form(spec, types, path[:-1] in images)
        yield TypesPlace(path, form, chosen)


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
    """Returns the readers by a column's type; None if messages state no types, or all values are canonical as sent."""
    if spec.types is None or not spec.types.at or not spec.types.tables:
        return None
    tables = spec.types.tables
    found = [_type_case(texts, table, spec, zone) for texts, table in _texts_of_tables(tables)]
    cases = tuple(case for case in found if case.readers or case.texts)
    names = {name: reader for case in cases for reader, names in case.readers.items() for name in names}
    may_be_long = any(case.may_be_long for case in cases)
    return TypeReaders(tables.by if tables.cases else (), cases, tuple(names), may_be_long) if names else None


def _texts_of_tables(tables: TypeTables) -> Iterator[tuple[tuple[str, ...], TypeTable | None]]:
    """Returns each table of types after the texts that choose it; neighbouring cases with the same table are one."""
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


class ColumnTypes:
    """Prints the vendor's own types of columns, column -> type, where messages state them."""

    def __init__(self, rows: Rows, keys: Keys) -> None:
        self.sql, self.header, self.rows, self.keys = rows.sql, rows.header, rows, keys
        self.spec = rows.spec
        self.places = tuple(types_places(self.spec))
        self.written = self.spec.types or Types((), None, (), None)

    def types(self) -> str:
        """Prints the types of the columns of a message's table. In a list, the types of members that are not columns
        are left out beforehand. Of a column that stands in several lists, the first counts.
        """
        forms = {place.form for place in self.places}
        if not self.places:
            return self._in_texts("types") if self.rows.images.texts else self.sql("no_map")
        if forms == {"list"} and len(self.places) > 1:
            lists = [self.header.field(place.path) for place in self.places]
            sent = self.sql("types_together", lists, list(map(self._at, reversed(self.places))))
        else:
            sent = self.header.first(map(self._at, self.places))
        return self.rows.table_columns(sent) if forms - {"list", "chosen"} else sent

    def of_message(self) -> str:
        """Prints the types of a row. A DDL has the types of its table, unless these stand in the images of rows."""
        are_beside = any(place.form != "text" for place in self.places)
        return self.sql("types_of_kinds", ["row", "ddl"] if are_beside else ["row"])

    def _at(self, place: TypesPlace) -> str:
        sent = self.header.field(place.path)
        match place.form:
            case "objects":
                return self.sql("types_of_objects", sent, self._type())
            case "list" | "chosen":
                return self._in_list(place)
            case "beside":
                return self.sql("types_beside_names", self.header.field(self.written.names or ()), sent)
            case "lists":
                names = self.sql("member_of", sent, quoted(self.written.name or ""))
                members = (self.sql("member_of", sent, quoted(one)) for one in self.written.value)
                return self.header.first(self.sql("map_if_even", names, types) for types in members)
            case "text" if self.written.value:
                return self.sql("types_in_objects_of_text", sent, self.written.value, self._type())
            case "text":
                return self.sql("types_in_text", sent)
        return sent

    def _list(self, place: TypesPlace) -> str:
        chosen = place.chosen
        if not chosen:
            return self.header.field(place.path)
        found = self.header.field(chosen.path)
        return self.sql("chosen_list", found, quoted(chosen.member), chosen.value, quoted(chosen.below))

    def _in_list(self, place: TypesPlace) -> str:
        column = self.sql("member_of", "t", quoted(self.written.name or ""))
        tests = [self.sql("is_not_hidden", column)] if self.spec.drop else []
        tests.append(self.sql("is_there", column))
        return self.sql("types_in_list", self._list(place), self.sql("all_of", tests), column, self._type())

    def _type(self) -> str:
        """Prints the type in an object `t`, with its parameters."""
        kind = self._first_member("t")
        items = self.sql("member_of", "t", quoted(self.written.items)) if self.written.items else ""
        if items:
            kind = self.sql("type_of_array", self._first_member(items), kind)
        if self.written.params:
            return self.sql("type_with_params", kind, [self._param(path, items) for path in self.written.params])
        if self.written.flags:
            return self.sql(
                "type_with_flags", kind, self.sql("member_of", "t", quoted(self.written.flag or "")), self.written.flags
            )
        return kind

    def _param(self, path: FieldPath, items: str) -> str:
        own = self.sql("at_path", "t", path)
        return self.header.first([self.sql("at_path", items, path), own]) if items else own

    def _first_member(self, of: str) -> str:
        return self.header.first(self.sql("member_of", of, quoted(one)) for one in self.written.value)

    def defaults(self) -> Columns:
        """Prints the defaults that a message names for its columns: column -> default as sent."""
        if not self.written.default:
            return {}
        names, defaults = (
            self.sql("member_of", "t", quoted(one or "")) for one in (self.written.name, self.written.default)
        )
        return {
            "defaults": self.sql("defaults_in_list", self.header.first(map(self._list, self.places)), names, defaults)
        }

    # --- what functions find in texts in another language than JSON

    def unfit_in_texts(self) -> str:
        """Prints the columns whose values are as sent because they do not fit their types."""
        return self.sql("all_unfit", self._found_in_texts("as_sent"))

    def _in_texts(self, member: str) -> str:
        return self.sql("types_in_texts", self._found_in_texts(member))

    def _found_in_texts(self, member: str) -> list[str]:
        of_key = [self.keys.in_text(member)] if self.keys.text_column else []
        return [*of_key, *(self._found(side, member) for side in (self.rows.images.before, self.rows.images.after))]

    def _found(self, side: Side, member: str) -> str:
        """Prints the results that a function that reads texts gives beside the values of an image."""
        found = [
            (self.sql("has_verdict", verdicts), self.sql("member_of", quoted(column), member))
            for column, verdicts in side.by_text
        ]
        return self.sql("cases", found) if found else "null"
