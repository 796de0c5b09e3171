"""Messages in Avro: SQL that reads each as one record, whose images may be lists of values by position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runner.compile.avro import avro_function
from runner.compile.compiled import Columns, Step, kept
from runner.compile.images import SentImage
from runner.compile.keys import Keys
from runner.compile.rows import MISMATCH, Cases, Rows
from runner.render import name as quoted


class Records:
    """Prints how messages in Avro are read, and what their images say of their columns. Raises `schema-field` for a
    field that the schemas do not have.
    """

    # The form of messages: bytes or text.
    form = "bytes"
    # The interface of Documents: messages in Avro have no parts, paths no other root, and no SQL reads them.
    has_parts = False
    roots: tuple[str, ...] = ()
    kept = ("error_detail",)

    def __init__(self, rows: Rows, source: str) -> None:
        self.sql, self.header, self.rows, self.images = rows.sql, rows.header, rows, rows.images
        self.source = source
        self.functions = (avro_function(source, rows.spec),)
        self.python_functions = [self.functions[0].name]
        self.long_fields = self.images.listed

    def steps(self) -> Iterator[Step]:
        """Returns the step that reads the record of each message as `m` and its images, as they are in the record, as
        `sent_images`; if there is not one record, `parse_error` says why.
        """
        comment = "The fields that the format names, of the record in the bytes.  [message.schema, records]"
        record = self.sql("called", self.functions[0].name, ["raw", "own_schema"])
        yield Step("decoded", comment, quoted(f"{self.source}_messages"), {**kept("*"), "record": record})
        columns = {**kept(self.sql("all_except", ["record", "damage"])), "m": self.sql("member_of", "record", "fields")}
        if self.images.sent:
            columns["sent_images"] = self.sql("member_of", "record", "images")
        columns["parse_error"] = self.sql("why_no_record")
        if self.images.listed:
            columns["misfits"] = self.sql("texts_of", ())
        columns["read_detail"] = self.header.first(["damage", self.sql("member_of", "record", "detail")])
        if self.images.in_lists:
            columns |= self.rows.hidden_members()
        yield Step("parsed", "The one record of each message, or why there is not one.", "decoded", columns)

    def sql_functions(self) -> list[str]:
        return []

    # --- what images say of their columns

    def marks(self) -> Columns:
        """Prints the columns that one row of a message marks, if the images are lists of rows."""
        return self._all_marks() if self.images.listed else {}

    def _all_marks(self) -> Columns:
        """Prints the columns that a message, or one of its rows, marks: those whose values do not fit their class,
        those whose wall clock came twice in its zone, those whose values are not texts, and those that were not
        sent.
        """
        out = {"unfit_columns": self._marked("as_sent")}
        if self.images.may_be_ambiguous:
            out["ambiguous_columns"] = self._marked("ambiguous")
        if self.rows.has_readers:
            out["settled_columns"] = self._marked("settled")
        if self.images.may_lack_columns:
            out["missing_columns"] = self.sql(
                "all_missing", [*self._of_lists("missing"), *map(self._missing, self.images.sent)]
            )
        return out

    def listed(self) -> Columns:
        """Prints the lists of images of a message, each as a column."""
        return {self._listed(path): self.header.field(path) for path in self.images.listed}

    def _listed(self, path: Sequence[str]) -> str:
        return quoted("_".join(["listed", *path]))

    def _marked(self, member: str) -> str:
        of_images = [self._marked_in(image, member) for image in self.images.sent]
        return self.sql("all_marked", [*self._of_lists(member), *of_images])

    def _of_lists(self, member: str) -> list[str]:
        return [self.sql("marked_in_row", self._listed(path), member) for path in self.images.listed]

    def _marked_in(self, image: SentImage, member: str) -> str:
        marked = self.sql("member_of", self.rows.sent(image), member)
        if not image.names:
            return self.sql("or_none", marked)
        return self.sql("marked_by_index", quoted(image.column), marked, self.header.field(image.names))

    def _missing(self, image: SentImage) -> str:
        missing = self.sql("member_of", self.rows.sent(image), "missing")
        return self.sql(
            "or_none", self.sql("missing_names", self.header.field(image.names), missing) if image.names else missing
        )

    # --- records that cannot be used

    def checked(self, keys: Keys) -> Columns:
        """Prints the details of a record that was checked, with the marks of images that are not lists of rows."""
        return {"error_detail": self._error_detail(keys), **(self._all_marks() if self.images.sent else {})}

    def bad(self, keys: Keys) -> Cases:
        """Prints the tests for a whole record that cannot be used: an image has more or fewer values than columns, or a
        key column is not in the list of columns.
        """
        tests = [self._is_uneven(image) for image in self.images.positional] + [test for test, _ in keys.beyond()]
        return [(test, MISMATCH) for test in tests]

    def detail(self) -> list[str]:
        """Prints the detail that is kept of a message that cannot be used."""
        return [self.sql("detail_of_record")]

    def _error_detail(self, keys: Keys) -> str:
        """Prints the details of an unusable record: the image whose values do not match its columns, or the key."""
        uneven = [(self._is_uneven(image), self._values_of_columns(image)) for image in self.images.positional]
        found = [self.sql("if_true", test, detail) for test, detail in [*uneven, *keys.beyond()]]
        return self.sql("first_of", ["read_detail", *found])

    def _is_uneven(self, image: SentImage) -> str:
        return self.sql("is_uneven", self.rows.sent(image), quoted(image.column))

    def _values_of_columns(self, image: SentImage) -> str:
        return self.sql(
            "values_of_columns", ".".join(image.path), self.rows.sent(image), self.header.field(image.names or ())
        )
