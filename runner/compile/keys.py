"""The key of a row: SQL of the names of its columns, and of their values."""

from __future__ import annotations

from collections.abc import Sequence

from runner.compile.compiled import Columns
from runner.compile.images import RowImage, row_image
from runner.compile.paths import TEXTS
from runner.compile.rows import Cases, Rows
from runner.project.inputs import TableSettings
from runner.render import name as quoted
from runner.render import sql_text
from runner.spec.vocabulary import RECORD_KEY
from runner.spec.words import FieldPath, Format, Key


class Keys:
    """Prints the key of a format's rows. `tables` are those for which the source declares a key, `roots` the names of
    the objects where paths start.
    """

    def __init__(self, rows: Rows, tables: Sequence[TableSettings], roots: Sequence[str]) -> None:
        self.sql, self.header, self.rows = rows.sql, rows.header, rows
        self.spec: Format = rows.spec
        self.tables, self.roots = tables, roots
        self.beside_row = next((key for key in self.spec.key if key.image), Key())
        image = self.beside_row.image
        self.image: RowImage | None = row_image(image, is_avro=False) if image else None

    @property
    def text_column(self) -> str:
        """The column of a text that holds the key, as SQL names it; empty if there is none."""
        return quoted(self.image.text_column) if self.image and self.image.text_column else ""

    @property
    def are_named(self) -> bool:
        """True if the format or the source names the columns of keys."""
        return bool(self.spec.key or self.tables)

    @property
    def are_sent(self) -> bool:
        """True if messages themselves name the key columns of their table. A record's key may be another table's."""
        return any(not key.columns and key.members != (RECORD_KEY,) for key in self.spec.key)

    # --- names

    def names(self) -> str:
        """Prints the names of the key columns: those that the message names, else those that the source declares."""
        places = list(map(self._names, self.spec.key))
        if self.tables:
            declared = [(self.sql("is_table", one.name), self._texts(one.key)) for one in self.tables]
            places.append(self.sql("cases", declared))
        if not places:
            return self.sql("null_of", TEXTS)
        return self.sql("first_names", places[:-1], places[-1]) if places[1:] else places[0]

    def _names(self, key: Key) -> str:
        if key.columns:
            return self._texts(key.columns)
        if key.indexes:
            return self.sql("names_by_position", self.header.field(key.indexes), self.header.field(key.names[0]))
        if key.split and key.values:
            return self._split(key.names, key)
        if key.members == (RECORD_KEY,):
            return self.sql(
                "called", "members_of_key", ["origin.key", self.sql("texts_of", self.roots), self.rows.hidden]
            )
        if key.flag:
            return self.sql("columns_among", self._listed(key), self.rows.hidden)
        return self.sql("called", "key_columns", [self._listed(key), self.rows.hidden])

    def _listed(self, key: Key) -> str:
        """Prints the names of a key as a list that may still have nulls and members that are not columns."""
        if key.members:
            return self._members(key, self.header.field(key.members))
        if key.split:
            return self._split(key.names, key)
        if key.text:
            return self.header.first(map(self._in_text, key.names))
        return self.header.first_field(key.names)

    def _members(self, key: Key, found: str) -> str:
        """Prints the names of members, or of objects in a list; with a flag, of those in which the flag is true."""
        if key.member:
            member = quoted(key.member)
            objects = self.sql("flagged_objects", found, quoted(key.flag), member) if key.flag else found
            return self.sql("member_of", objects, member)
        flagged = self.sql("flagged_members", found, quoted(key.flag)) if key.flag else found
        return self.sql("called", "map_keys", [flagged])

    def _split(self, paths: Sequence[FieldPath], key: Key) -> str:
        return self.sql("split_names", self.header.first_field(paths), key.split)

    def _in_text(self, path: FieldPath) -> str:
        return self.sql("names_in_text", self.header.field(path.parent), path[-1])

    def _texts(self, names: Sequence[str]) -> str:
        return self.sql("array_of", list(map(sql_text, names)))

    def beyond(self) -> Cases:
        """Prints the conditions that a key column is not in the list of columns, each with a detail for the error."""
        out = []
        for key in self.spec.key:
            if key.indexes:
                indexes, names = self.header.field(key.indexes), self.header.field(key.names[0])
                found = self.sql("indexes_of_columns", ".".join(key.indexes), indexes, names)
                out.append((self.sql("is_beyond", indexes, names), found))
        return out

    # --- values

    def image_columns(self) -> Columns:
        """Prints the key in an image beside the row; and that image as sent, if it says more than the key or is
        damaged.
        """
        if not self.image:
            return {}
        columns = self._texts(self.beside_row.columns)
        sent = self.header.first_field(self.image.paths)
        found = self.sql("member_of", self.text_column, "values") if self.text_column else sent
        as_sent = sent if self.text_column else self.sql("called", "to_json", [found])
        return {
            "key_image": self.sql("called", "columns_of", [found, "null", columns]),
            "more_than_key": self.sql("unless_columns_are", found, columns, as_sent),
        }

    def in_text(self, member: str) -> str:
        """Prints what the function that reads the key's text found beside it, for the columns of the key alone."""
        columns = self._texts(self.beside_row.columns)
        found = self.sql("member_of", self.text_column, member)
        if member == "types":
            return self.sql("called", "columns_of", [found, "null", columns])
        return self.sql("called", "array_intersect", [found, columns])

    def key(self) -> str:
        """Prints the key columns of the row; else those of the image beside it, or the vendor's joined values, where
        there are as many of them as names.
        """
        key = self.sql("called", "columns_of", ["after", "before", "key_names"])
        joined = next((key for key in self.spec.key if key.values), None)
        if joined:
            values = self._values(joined)
            key = self.header.first(
                [key, self.sql("called", "key_with_values", ["after", "before", "key_names", values])]
            )
        elif self.image:
            key = self.header.first([key, "key_image"])
        return self.sql("cases", [(self.sql("is_one_of", "kind", ["row"]), key)])

    def _values(self, key: Key) -> str:
        return self.sql("split_values", self.header.first_field(key.values), key.split)
