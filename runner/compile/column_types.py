"""Types of columns: where a message states them, the reader of each, SQL that finds them, and types that are in no
table of types.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from runner.compile.compiled import Columns
from runner.compile.header import NAME_COLUMNS
from runner.compile.images import Side, grouped
from runner.compile.keys import Keys
from runner.compile.paths import MAP, ChosenList, chosen_list, image_paths
from runner.compile.readers import Reader, Zone, reader_of_class
from runner.compile.rows import Rows
from runner.project.inputs import TableSettings
from runner.render import name as quoted
from runner.spec.vocabulary import bare_type
from runner.spec.words import FieldPath, Format, Types, TypeTable, Value

# The number of columns that a note names; the others are counted.
SHOWN = 5
# The number of notes is limited, because damaged messages may name any number of types.
MOST_NOTES = 20
# The ending of an array's type, behind the type of its elements.
ARRAY = re.compile(r"(?: *\[[0-9]*\])+$")


class TypesPlace(NamedTuple):
    """A place of column types. `form` is `map` (column -> type), `objects` (column -> object with the type), `list` (of
    objects with name and type), `chosen` (such a list in an element of another), `lists` (one of names beside some of
    types), `beside` (one of types in step with one of names) or `text` (JSON of a map or of objects).
    """

    path: FieldPath
    form: str
    chosen: ChosenList | None


OfTypes = Mapping[Reader, tuple[str, ...]]
"""The readers of one table of types, each with the names of the types that it reads."""


@dataclass(frozen=True)
class TypeReaders:
    """The readers of all tables of types. `by` is the value that chooses the table, empty if there is one for all
    messages. `cases` are the readers of each table behind the texts that choose it; those without texts are for all
    others. `names` are all types that have a reader. `may_be_long` is True if the first word of a type's name does not
    decide how its values are read.
    """

    by: Value
    cases: tuple[tuple[Sequence[str], OfTypes], ...]
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
    tables = spec.types.tables if spec.types and spec.types.at else None
    if not tables:
        return None
    found = [
        (texts, table, _reader_of_types(table, spec, zone) if table else {})
        for texts, table in [*tables.groups(), ([], tables.otherwise)]
    ]
    cases = tuple((texts, _by_reader(reader_of)) for texts, _, reader_of in found if reader_of or texts)
    names = dict.fromkeys(name for _, readers in cases for names in readers.values() for name in names)
    may_be_long = any(
        reader_of.get(name) != reader_of.get(name.split()[0])
        for _, table, reader_of in found
        for name in (table.classes if table else ())
    )
    return TypeReaders(tables.by if tables.cases else (), cases, tuple(names), may_be_long) if names else None


def _reader_of_types(table: TypeTable, spec: Format, zone: Zone | None) -> dict[str, Reader]:
    """Returns the reader of each type of a table that has one."""
    found = {
        type_name: reader_of_class(class_name, spec, zone, table.readers.get(type_name, ()))
        for type_name, class_name in table.classes.items()
    }
    return {type_name: reader for type_name, reader in found.items() if reader}


def _by_reader(reader_of: Mapping[str, Reader]) -> OfTypes:
    return {reader: tuple(names) for reader, names in grouped((one, name) for name, one in reader_of.items())}


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
            return self._in_texts("types") if self.rows.images.texts else self.sql("null_of", MAP)
        if forms == {"list"} and len(self.places) > 1:
            lists = [self.header.field(place.path) for place in self.places]
            sent = self.sql("types_together", lists, list(map(self._at, reversed(self.places))))
        else:
            sent = self.header.first(map(self._at, self.places))
        if forms <= {"list", "chosen"}:
            return sent
        return self.sql("types_once", sent, self.spec.drop) if self._have_lambdas else self.rows.table_columns(sent)

    @property
    def _have_lambdas(self) -> bool:
        """True if the SQL of the types has lambdas, which no argument of a SQL function may have."""
        forms = {"objects", "beside", *(("text",) if self.written.value else ())}
        return any(place.form in forms for place in self.places)

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
            (self.sql("is_one_of", "verdict", verdicts), self.sql("member_of", quoted(column), member))
            for column, verdicts in side.by_text
        ]
        return self.sql("cases", found) if found else "null"


# --- types that are in no table of types, and whose values therefore stay as sent


def notes_on(unknown: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Returns a note for users on each of the first types and its columns, and one with the number of the other types.

    >>> notes_on({"hstore": ["t.a", "t.b"]})
    ('note: type "hstore" of columns t.a, t.b is in no table of types: their values stay as sent',)
    >>> notes_on({"hstore": "abcdefg"})
    ('note: type "hstore" of columns a, b, c, d, e and 2 more is in no table of types: their values stay as sent',)
    """
    notes = []
    for name, columns in list(unknown.items())[:MOST_NOTES]:
        more = f" and {len(columns) - SHOWN} more" if len(columns) > SHOWN else ""
        shown = ", ".join(columns[:SHOWN]) + more
        notes.append(f'note: type "{name}" of columns {shown} is in no table of types: their values stay as sent')
    left = len(unknown) - MOST_NOTES
    return (*notes, *([f"note: {left} more types are in no table of types"] if left > 0 else []))


def has_tables_of_types(spec: Format) -> bool:
    """Returns True if messages name types, and tables of types say what the types mean."""
    return bool(spec.types and spec.types.at and spec.types.tables)


def unknown_types(
    spec: Format, rows: Iterable[Mapping[str, Any]], declared: Collection[TableSettings] = ()
) -> dict[str, list[str]]:
    """Returns the types in rows of the changelog that no table of the format has, by the name that was sent, each with
    its columns: the names of the table and the column, with dots. Columns whose types the source declares do not count.
    """
    if not has_tables_of_types(spec):
        return {}
    columns: dict[str, set[str]] = {}
    for row in rows:
        table = tuple(row[name] for name in NAME_COLUMNS if row[name] is not None)
        for column, type_name in _sent_types(row["types"], table, declared):
            columns.setdefault(type_name, set()).add(".".join((*table, column)))
    return {name: sorted(columns[name]) for name in sorted(columns) if not is_known(name, spec.types)}


def _sent_types(
    types: Mapping[str, str | None] | None, table: tuple[str, ...], declared: Collection[TableSettings]
) -> Iterator[tuple[str, str]]:
    """Returns column and type, for the columns of a table whose types the source does not declare."""
    own = {column for one in declared if table[-len(one.name) :] == one.name for column in one.columns}
    for column, type_name in (types or {}).items():
        if type_name is not None and column not in own:
            yield column, type_name


def is_known(type_name: str, types: Types | None) -> bool:
    """Returns True if a table has a type, or the type of an array's elements.

    >>> from runner.spec.words import Switch, TypeTable
    >>> table = TypeTable("t", {"time": "time", "bit varying": "bit"})
    >>> types = Types((), None, (), Switch((), {}, table, table))
    >>> [is_known(name, types) for name in ("TIME(6)", "bit varying(5)[]", "time with a twist", "bit")]
    [True, True, False, False]
    """
    bare = bare_type(ARRAY.sub("", type_name))
    return any(bare in table.classes for table in (types.all_tables() if types else ()))
