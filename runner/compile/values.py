"""Canonical texts of values: the SQL functions of a source that read values, and the steps that call them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from runner.compile.avro import Records
from runner.compile.column_types import OfTypes, TypeReaders, type_readers
from runner.compile.compiled import Columns, Step, kept
from runner.compile.documents import Documents
from runner.compile.header import Header
from runner.compile.readers import EXPONENTS, PYTHON_READERS, Attempt, Reader, readers_of_columns
from runner.compile.rows import SIDES, Rows
from runner.project.inputs import TableSettings
from runner.render import name as quoted
from runner.render import sql_text

IMAGE = ("map<string,string>", "an image as it was sent")
READERS = ("map<string,string>", "the columns whose text may not be canonical, each with what reads it")


class Readers:
    """The readers of a source's values, by the types that messages name, and by those declared for tables."""

    def __init__(self, header: Header, tables: Iterable[TableSettings]) -> None:
        self.by_type: TypeReaders | None = type_readers(header.spec, header.zone)
        # The tables for which the source declares columns, each with the readers of these.
        self.typed = [(one, readers_of_columns(one, header.spec, header.zone)) for one in tables if one.columns]
        of_types = [reader for _, readers in self.by_type.cases for reader in readers] if self.by_type else []
        of_tables = [reader for _, readers in self.typed for reader in readers.values()]
        self.all: tuple[Reader, ...] = tuple(dict.fromkeys([*of_types, *of_tables]))

    @cached_property
    def ambiguous(self) -> list[Reader]:
        """The readers that may read a wall clock that came twice."""
        return [reader for reader in self.all if reader.ambiguous]

    @cached_property
    def of_bytes(self) -> list[Reader]:
        return [reader for reader in self.all if reader.reads_bytes]

    @cached_property
    def exponents(self) -> list[str]:
        """The words of the readers that write exponents out."""
        return self._words(EXPONENTS)

    @cached_property
    def python(self) -> list[tuple[str, list[str]]]:
        """The functions that read values of whole images, each with the words of the readers that use it."""
        return [(kind, words) for kind in PYTHON_READERS if (words := self._words((kind,)))]

    def _words(self, kinds: Container[str]) -> list[str]:
        return [reader.word for reader in self.all if any(one.kind in kinds for one in reader.attempts)]


class Values:
    """Prints how the values of a source become canonical. `prefix` begins the names of its functions."""

    def __init__(self, rows: Rows, readers: Readers, reading: Documents | Records, prefix: str) -> None:
        self.sql, self.header, self.images = rows.sql, rows.header, rows.images
        self.readers, self.prefix = readers, prefix
        self.documents = reading if isinstance(reading, Documents) else None

    @property
    def may_be_in_doubt(self) -> bool:
        """True if a text that looks like bytes has to be looked up in the message, where the value may not be a text.
        That is possible where images stand in the message as they are.
        """
        return bool(
            self.documents and self.readers.of_bytes and not self.images.named and not self.documents.json.is_flat
        )

    @property
    def shares_zeros(self) -> bool:
        """True if the rows of a message share the characters that exponents may add to the message."""
        return bool(self.images.in_lists and self.readers.exponents)

    def _function(self, ending: str) -> str:
        return quoted(f"{self.prefix}_{ending}")

    # --- columns and steps

    def of_message(self) -> Columns:
        """Prints the readers of the columns of a message, column -> reader: the readers that a source declares go
        before those of the message's types.
        """
        if not self.readers.all:
            return {}
        if not self.readers.typed:
            return {"readers": self._by_types()}
        declared = [
            (self.sql("is_table", table.name), self.sql("map_of_texts", self._words(table, readers)))
            for table, readers in self.readers.typed
            if readers
        ]
        maps = [self.sql("or_no_map", self.sql("cases", declared)) if declared else self.sql("called", "map", ())]
        if self.readers.by_type:
            tables = [
                (self.sql("is_table", table.name), self.sql("is_one_of_several", "c", list(table.columns)))
                for table, _ in self.readers.typed
            ]
            others = self.sql("readers_but", self._by_types(), self.sql("cases", tables))
            maps.insert(0, self.sql("or_no_map", others))
        return {"readers": self.sql("called", "map_concat", maps)}

    def _words(self, table: TableSettings, readers: Mapping[str, Reader]) -> dict[str, str]:
        return {
            column: f"{reader.word} {table.columns[column]}" if reader.needs_type else reader.word
            for column, reader in readers.items()
        }

    def _by_types(self) -> str:
        by = self.readers.by_type.by if self.readers.by_type else ()
        return self.sql("called", self._function("readers"), ["types", *([self.header.plain(by)] if by else [])])

    def in_doubt_of_lists(self) -> Columns:
        """Prints the rows of a message in JSON as sent, if they are in lists and may hold bytes that are not texts
        there.
        """
        arguments = ["raw", "rows_before", "rows", "readers"]
        is_told = self.may_be_in_doubt and self.images.in_lists
        return {"rows_in_doubt": self.sql("called", self._function("in_doubt"), arguments)} if is_told else {}

    def in_doubt(self) -> Columns:
        """Prints the images of a message of one row in JSON as sent, if they may hold bytes that are not texts
        there.
        """
        arguments = ["raw", "sent_before", "sent_after", "readers"]
        is_told = self.may_be_in_doubt and not self.images.in_lists
        return {"json_in_doubt": self.sql("called", self._function("in_doubt"), arguments)} if is_told else {}

    def in_doubt_of_row(self) -> Columns:
        return {"json_in_doubt": self.sql("row_in_doubt")} if self.may_be_in_doubt else {}

    def zeros_allowed(self) -> Columns:
        return {"zeros_allowed": self.sql("zeros_allowed")} if self.shares_zeros else {}

    def steps(self) -> Iterator[Step]:
        """Returns the steps that make the canonical texts of both images, if texts as sent may not be canonical."""
        if self.readers.python:
            columns = {
                f"{function}_{side}": self.sql("read_in_python", function, words, f"sent_{side}")
                for function, words in self.readers.python
                for side in SIDES
            }
            about = "The values that only a function over a whole image can read.  [values]"
            yield Step("python_read", about, "exploded", {**kept("*"), **columns})
        if self.readers.all:
            columns = {f"texts_{side}": self._texts_of(side) for side in SIDES}
            # Each image is made once: one may be laid over the other.
            for side in SIDES:
                columns[f"read_{side}"] = self.sql("called", "with_texts", [f"sent_{side}", f"texts_{side}"])
            columns |= self._texts_of_defaults()
            about = (
                "The canonical text of the values whose text as sent may be another, and the images with it.  "
                "[types.table, values]"
            )
            reads = "python_read" if self.readers.python else "exploded"
            yield Step("texts", about, reads, {**kept("*"), **columns})

    def _texts_of(self, side: str) -> str:
        arguments = [f"sent_{side}", "readers"]
        arguments += ["zeros_allowed"] if self.shares_zeros else []
        arguments += ["json_in_doubt"] if self.may_be_in_doubt else []
        arguments += [f"{function}_{side}" for function, _ in self.readers.python]
        return self.sql("called", self._function("texts"), arguments)

    def _texts_of_defaults(self) -> Columns:
        """Prints the canonical texts of defaults. No column has two defaults, and no default holds bytes."""
        if not (self.header.spec.types and self.header.spec.types.default):
            return {}
        arguments = [
            "defaults",
            "readers",
            *(["null"] if self.may_be_in_doubt else []),
            *("null" for _ in self.readers.python),
        ]
        return {"texts_defaults": self.sql("called", self._function("texts"), arguments)}

    def defaults_read(self) -> str:
        """Prints the defaults of columns in canonical text."""
        return self.sql("called", "with_texts", ["defaults", "texts_defaults"]) if self.readers.all else "defaults"

    # --- what could not be read, and what was read from a wall clock that came twice

    def as_sent(self) -> Columns:
        """Prints the columns whose values could not be read."""
        unfit = self.sql("columns_of_rows", "unfit_columns") if self.images.tell_unfit else ""
        unread = [self.sql("called", "unread_columns", [f"sent_{side}", "readers", f"texts_{side}"]) for side in SIDES]
        if not self.readers.all:
            return {"columns_as_sent": unfit} if unfit else {}
        found = self.sql("called", "concat", unread)
        return {"columns_as_sent": self.sql("called", "concat", [found, unfit]) if unfit else found}

    def ambiguous_times(self) -> Columns:
        """Prints the values read from a wall clock that came twice: columns of the table, and times of the header."""
        parts = [
            self.sql("time_came_twice", column, self.header.column(column), self.header.zone)
            for column in self.header.ambiguous_columns()
        ]
        if self.readers.ambiguous:
            arguments = (([f"sent_{side}", "readers", f"texts_{side}"]) for side in SIDES)
            parts += [self.sql("called", self._function("ambiguous"), one) for one in arguments]
        if self.images.may_be_ambiguous:
            parts.append(self.sql("columns_of_rows", "ambiguous_columns"))
        return {"ambiguous_times": self.sql("called", "concat", parts)} if parts else {}

    # --- functions

    def sql_functions(self) -> Iterator[str]:
        """Prints the statements that make the functions of the source that read values."""
        if not self.readers.all:
            return
        if self.readers.by_type:
            yield self._readers_function(self.readers.by_type)
        if self.may_be_in_doubt:
            yield self._in_doubt_function()
        yield self._texts_function()
        if self.readers.ambiguous:
            yield self._ambiguous_function()

    def _readers_function(self, by_type: TypeReaders) -> str:
        arguments = {"types": ("map<string,string>", "the types of columns, as the vendor writes them")}
        bare = self.sql("bare_type" if by_type.may_be_long else "first_word_of_type", "type")
        body = self.sql("readers_of_types", bare, by_type.names, self._reader_of(by_type))
        if by_type.by:
            arguments["kind"] = ("string", "what chooses the table of types")
            body = self.sql("readers_found", body)
        needs_type = any(reader.needs_type for reader in self.readers.all)
        about = "The columns whose text as sent may not be canonical, each with what reads it" + (
            "; behind the name of a reader that needs it stands the type." if needs_type else "."
        )
        return self._create("readers", arguments, READERS[0], about, body)

    def _create(
        self, ending: str, arguments: Mapping[str, tuple[str, str]], returns: str, about: str, body: str
    ) -> str:
        return self.sql("function_of_source", self._function(ending), arguments, returns, about, body)

    def _reader_of(self, by_type: TypeReaders) -> str:
        if not by_type.by:
            return self._reader_in(by_type.cases[0][1])
        kind = self.sql("called", "lower", ["kind"])
        cases = [(self.header.fits(kind, texts), self._reader_in(one)) for texts, one in by_type.cases if texts]
        otherwise = [self._reader_in(one) for texts, one in by_type.cases if not texts]
        return self.sql("choice", cases, otherwise[0]) if otherwise else self.sql("cases", cases)

    def _reader_in(self, readers: OfTypes) -> str:
        """Prints the word of the reader of a type `t`."""
        words = [
            (
                self.sql("is_type_among", names),
                self.sql("word_with_type", reader.word) if reader.needs_type else sql_text(reader.word),
            )
            for reader, names in readers.items()
        ]
        return self.sql("cases", words) if words else "null"

    def _texts_function(self) -> str:
        arguments = {"image": IMAGE, "readers": READERS}
        if self.shares_zeros:
            longer = "by how many characters exponents may make the image longer; null if they are too few to count"
            arguments["zeros_allowed"] = ("bigint", longer)
        if self.may_be_in_doubt:
            arguments["json_in_doubt"] = ("string", "the images in JSON, if they may hold bytes that are no text there")
        for function, _ in self.readers.python:
            arguments[function] = (IMAGE[0], "the columns that a function over the whole image reads, as it read them")
        about = (
            "The canonical text of each value that needs to be read and can be; null if there is none that needs to be."
        )
        read = [(self._is("reader.value", reader), self._read(reader)) for reader in self.readers.all]
        return self._create("texts", arguments, IMAGE[0], about, self.sql("texts_read", self._values(), read))

    def _values(self) -> str:
        """Prints the values that readers read, in the order of the readers. The exponents of one image are written out
        if all of them together do not make the image longer than allowed.
        """
        if not self.readers.exponents:
            return self.sql("values_sent")
        is_number = self.sql("is_one_of_several", "reader", self.readers.exponents)
        if self.images.in_lists:
            return self.sql("values_within", is_number, self.sql("is_there", "zeros_allowed"), "zeros_allowed")
        return self.sql("values_within", is_number, self.sql("has_many", "readers"), "100000")

    def _is(self, word: str, reader: Reader) -> str:
        return (
            self.sql("begins_with", word, f"{reader.word} ")
            if reader.needs_type
            else self.sql("is_one_of", word, [reader.word])
        )

    def _read(self, reader: Reader) -> str:
        if not reader.of_elements:
            return self.header.first(map(self._attempt, reader.attempts))
        each = self.sql("read_each", self.header.first(map(self._read_by, reader.attempts)))
        # Numbers in a list keep their digits as sent, so a list without texts is not read.
        return self.sql("if_it_has_texts", each) if any(one.kind == "decimal" for one in reader.attempts) else each

    def _read_by(self, attempt: Attempt) -> str:
        return self.sql(f"read_{attempt.kind}", "v", attempt.zone)

    def _attempt(self, attempt: Attempt) -> str:
        """Prints a value, read in one of the ways to try. Only a text can be an encoding of bytes."""
        found = self._read_by(attempt)
        return self.sql("if_it_is_text", found) if attempt.is_bytes and self.may_be_in_doubt else found

    def _ambiguous_function(self) -> str:
        arguments = {"image": IMAGE, "readers": READERS}
        arguments["texts"] = (IMAGE[0], "the canonical text of those values that could be read")
        about = "The columns whose wall clock came twice in its zone: the text is the first of two instants."
        tests = [
            (
                self._is("sent.reader", reader),
                self.sql(
                    "any_of", [self.sql(f"came_twice_{one.kind}", "sent.v", "t", one.zone) for one in reader.ambiguous]
                ),
            )
            for reader in self.readers.ambiguous
        ]
        return self._create("ambiguous", arguments, "array<string>", about, self.sql("columns_of_two_instants", tests))

    def _in_doubt_function(self) -> str:
        """Prints the function that tells whether the bytes of an image are texts in the message. SQL calls it once for
        a message: its rows may be many.
        """
        of_lists, documents = self.images.in_lists, self.documents
        assert documents
        rows, kind = ("rows", "array<map<string,string>>") if of_lists else ("row", IMAGE[0])
        arguments = {"json": ("string", "the text of a message")}
        arguments |= {side: (kind, f"what was sent of the {rows} {side} a change") for side in SIDES}
        arguments["readers"] = (
            READERS[0],
            "the columns whose text as sent may not be canonical, each with what reads it",
        )
        about = (
            f"The {'lists of images' if of_lists else 'images'} of the message in JSON without blanks, if a column of "
            "bytes has a value that may be no text in them but a number, a word, a list or an object; else null. Empty "
            "if more than 1,000 columns need to be read: too many to look each up."
        )
        form = "rows_may_be_no_text" if of_lists else "row_may_be_no_text"
        tests = [self.sql(form, side) for side in SIDES]
        again = "lists_if_in_doubt" if of_lists else "images_if_in_doubt"
        body = self.sql(again, self._is_of_bytes(self.readers.of_bytes), tests, list(documents.images_again()))
        return self._create("in_doubt", arguments, "array<array<string>>" if of_lists else "string", about, body)

    def _is_of_bytes(self, readers: Sequence[Reader]) -> str:
        words = [reader.word for reader in readers if not reader.needs_type]
        tests = [self.sql("is_one_of_several", "reader.value", words)] if words else []
        tests += [self._is("reader.value", reader) for reader in readers if reader.needs_type]
        return self.sql("in_brackets", self.sql("any_of", tests)) if tests[1:] else tests[0]
