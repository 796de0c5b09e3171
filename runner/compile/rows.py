"""The rows of a message and their images: SQL that finds them, checks that they are rows, and makes them canonical."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from runner.compile.compiled import Columns, Print
from runner.compile.header import Header
from runner.compile.images import Images, NamedImage, RowImage, Side, TextImage, text_column
from runner.compile.paths import MAP, MAPS
from runner.render import name as quoted
from runner.render import sql_text
from runner.spec.words import FieldPath, Format, Image

Cases = list[tuple[str, str]]
"""Conditions, each with the result where it is the first that is true."""

NOT_AN_OBJECT, NO_IMAGE, MISMATCH = map(sql_text, ("row-not-an-object", "no-row-image", "schema-mismatch"))
# The macros that look for columns in an image that is not a map, for the forms of images that may be damaged.
CHECKED = ("lists", "objects", "members")


class Rows:
    """Prints the SQL for the rows of a format's messages. `has_types` is True if messages name types of columns,
    `has_readers` if values have to be read.
    """

    def __init__(self, header: Header, images: Images, has_types: bool, has_readers: bool) -> None:
        self.sql: Print = header.sql
        self.spec: Format = header.spec
        self.header, self.images = header, images
        self.has_types, self.has_readers = has_types, has_readers
        self.is_avro = self.spec.message.encoding == "avro"
        self.hidden = "hidden" if self.spec.drop else self.sql("array_of", ())

    # --- members that are no columns, and texts that stand for no value

    def hidden_members(self) -> Columns:
        """Prints the members of rows that are not columns, as a column of its own."""
        names = [
            self.sql("if_true", self.header.conditions(conditions), sql_text(name)) if conditions else sql_text(name)
            for name, conditions in self.spec.drop
        ]
        return {"hidden": self.sql("array_of", names)} if names else {}

    def placeholders(self) -> Columns:
        """Prints the texts that stand for a value that was not sent, as a column of its own."""
        return {"placeholders": self.sql("placeholders", texts)} if (texts := self.spec.not_sent.get("")) else {}

    def table_columns(self, members: str, types: str = "null") -> str:
        """Prints the members of a map that are columns. In Avro, no name is in a map twice."""
        if self.is_avro and not self.spec.drop:
            return members
        return self.sql("called", "table_columns", [members, types, self.hidden])

    # --- lists of rows

    def lists(self) -> Columns:
        """Prints the rows of each row change, the rows before an update, and the rows in the place of images that the
        change does not have. Most row changes have their rows in the same list.
        """
        usual = next(iter(self.images.own.values())).paths
        others = [(self._is([verdict]), image) for verdict, image in self.images.own.items() if image.paths != usual]
        own = self._first_list(usual)
        if others:
            own = self.sql("choice", [(test, self._first_list(image.paths)) for test, image in others], own)
        updates = [
            (self._is([verdict]), self._first_list(image.paths))
            for verdict, image in self.images.before_updates.items()
        ]
        out = {"rows": own, "rows_before": self.sql("cases", updates) if updates else self.sql("null_of", MAPS)}
        if self.images.others:
            places = [(self._is(verdicts), self.header.field(one.paths[0])) for one, verdicts in self.images.others]
            out["other_rows"] = self.sql("cases", places)
        return out

    def _first_list(self, paths: Sequence[FieldPath]) -> str:
        """Prints the first of several lists that holds a row; if none does, the last."""
        found = self.header.field(paths[0])
        return self.sql("list_or", found, self._first_list(paths[1:])) if paths[1:] else found

    def each(self, long_fields: Iterable[Iterable[str]], added: Columns, of_rows: Columns, keeps_all: bool) -> str:
        """Prints the rows of each message beside the rest of the message, with columns `added` to the message and
        `of_rows` to each row. No list or map of the message goes along. With `keeps_all`, nor does the text of a
        message that is not one row.
        """
        before = [(sql_text(one), "row") for one in self.images.before.own]
        before += [(sql_text(one), self.sql("nth_of", "rows_before")) for one in self.images.before_updates]
        after = [(self._is(own), "row")] if (own := self.images.after.own) else []
        found = {
            "found_before": self.sql("simple_cases", "verdict", before) if before else self.sql("null_of", MAP),
            "found_after": self.sql("cases", after) if after else self.sql("null_of", MAP),
        }
        lists = list(map(self.header.field, long_fields))
        raw = self.sql("raw_without_rows" if keeps_all else "if_refused", "raw")
        return self.sql("each_row", lists, raw, added, {**found, **of_rows})

    # --- one row a message

    def in_texts(self) -> Columns:
        """Prints the documents that came as texts in another language than JSON, as the functions return them."""
        return {
            quoted(image.column): self.sql("read_text", image.function, image.verdicts, self._text(image))
            for image in self.images.texts
        }

    def _text(self, image: TextImage) -> str:
        """Prints the text of an image; a text that is only the value of a column is put into a document with this
        column.
        """
        sent = self.header.field(image.path)
        if image.value_of:
            return self.sql("document_of_value", image.value_of, sent)
        return self.sql("text_or_empty", sent, self.header.field(image.removed)) if image.removed else sent

    def named(self) -> Columns:
        """Prints the images that are not objects with a member for each column, as maps."""
        if self.images.sent:
            return {quoted(image.column): self._sent_map(image) for image in self.images.sent}
        return {quoted(image.column): self._named_map(image) for image in self.images.named}

    def _named_map(self, image: NamedImage) -> str:
        sent, written = self.header.field(image.path), image.image
        match image.form:
            case "lists" if written.names:
                return self.sql("map_of_lists", self.header.field(written.names), sent)
            case "objects" if written.name and written.value:
                return self.sql("map_of_objects", sent, quoted(written.name), quoted(written.value))
            case "members" if written.value:
                return self.sql("map_of_members", sent, quoted(written.value))
            case "prefixed":
                return self.sql("map_of_prefixed", sent, image.prefix)
        return self.sql("map_of_others", sent, image.prefix) if image.prefix else sent

    def _sent_map(self, image: NamedImage) -> str:
        """Prints an image of a record as a map; null for an image that has more or fewer values than columns."""
        sent = self.sent(image)
        if not image.image.names:
            return self.sql("member_of", sent, "texts")
        form = "map_of_some_values" if self.images.may_lack_columns else "map_of_values"
        return self.sql(form, self.header.field(image.image.names), sent)

    def sent(self, image: NamedImage) -> str:
        return self.sql("at_path", "sent_images", image.path)

    def of_message(self) -> Columns:
        """Prints the images of each row change."""
        found = {**self.hidden_members(), **self.placeholders()}
        if self.images.removed:
            columns = [(sql_text(verdict), self._removed(patch)) for verdict, patch in self.images.removed.items()]
            found["removed"] = self.sql("simple_cases", "verdict", columns)
        sides = (self.images.before, self.images.after)
        return {**found, **{f"found_{side.name}": self._found(side) for side in sides}}

    def _removed(self, patch: Image) -> str:
        """The columns that a patch removes: those in a list of the message, or that the function of its text found."""
        found = quoted(text_column(patch))
        return self.header.field(patch.removed) if patch.removed else self.sql("member_of", found, "removed")

    def _found(self, side: Side) -> str:
        """Prints the image on one side, for the verdicts that have an image there."""
        images = [(self._is(verdicts), self._first_image(image)) for image, verdicts in side.by_image]
        return self.sql("cases", images) if images else self.sql("null_of", MAP)

    def _first_image(self, image: RowImage) -> str:
        """Prints the first of several images that holds a column; if none does, the last."""
        if image.text_column:
            return self.sql("member_of", quoted(image.text_column), "values")
        *others, last = map(quoted, image.columns) if image.columns else map(self.header.field, image.paths)
        return self.sql("choice", [(self.sql("holds", one), one) for one in others], last) if others else last

    # --- messages that cannot be used

    def bad(self, records: Cases) -> Cases:
        """Prints the reasons why the rows of a message cannot be used; `records` are the reasons of whole records."""
        return self._bad_lists() if self.images.in_lists else [*records, *self._bad_images()]

    def _bad_lists(self) -> Cases:
        images = self.images
        out = [
            (self._of_verdicts(verdicts, self._is_not_row_list(path), in_brackets=True), NOT_AN_OBJECT)
            for path, verdicts in images.first_paths
        ]
        out += [
            (self._of_verdicts(verdicts, self._is_not_later_list(paths)), NOT_AN_OBJECT)
            for paths, verdicts in images.own_paths
            if len(paths) > 1
        ]
        out.append((self.sql("holds_no_row", "rows"), self._without_rows()))
        for verdict, image in images.before_updates.items():
            test = self.sql("is_misfit", ".".join(image.paths[0]))
            out.append((self.sql("all_of", [self._is([verdict]), test]), NOT_AN_OBJECT))
        before = self.header.first(["rows_before", *(["other_rows"] if images.others else [])])
        return [*out, (self.sql("is_longer", before, "rows"), sql_text("uneven-rows"))]

    def _bad_images(self) -> Cases:
        images = self.images
        out = [
            (self.sql("is_lost", self.header.field(image.path), quoted(image.column)), MISMATCH)
            for image in images.named
            if image.form in CHECKED
        ]
        for found, verdicts in images.json_paths:
            test = self.sql("any_of", list(map(self._is_not_image, found)))
            test = self.sql("in_brackets", test) if len(found) > 1 or len(found[0]) > 1 else test
            out.append((self._of_verdicts(verdicts, test), NOT_AN_OBJECT))
        for verdict, own in images.own.items():
            if own.text_column:
                reason = self.sql("member_of", quoted(own.text_column), "reason")
                out.append((self.sql("all_of", [self._is([verdict]), self.sql("is_there", reason)]), reason))
        no_row = self.sql("is_not_true", self._is_row())
        if not images.patches:
            return [*out, (no_row, self._without_rows())]
        others = self.sql("all_of", [self.sql("is_not", self._is(images.patches)), no_row])
        lost = self.sql("all_of", [self.sql("is_missing", "found_after"), self._is(images.patches)])
        return [*out, (others, self._without_rows()), (lost, NO_IMAGE)]

    def _without_rows(self) -> str:
        statement = self.spec.columns.get("statement", ())
        return self.sql("without_rows", self.header.given(statement)) if statement else NO_IMAGE

    def _is(self, verdicts: Iterable[str]) -> str:
        return self.sql("is_one_of", "verdict", list(verdicts))

    def _of_verdicts(self, verdicts: Sequence[str], test: str, in_brackets: bool = False) -> str:
        """Prints a test for row changes with these verdicts alone; the test as it is if there are no others."""
        if len(verdicts) == len(self.images.own):
            return test
        return self.sql("all_of", [self._is(verdicts), self.sql("in_brackets", test) if in_brackets else test])

    def _is_row(self) -> str:
        """Prints the test that the image of a row change holds a column; an image that is laid over another may be
        empty.
        """
        own, laid_over = self._own_image(), self.images.after.laid_over
        holds = self.sql("holds", own)
        if self.spec.drop:
            dropped = self.sql("holds_others", own, len(self.spec.drop), self.table_columns(own))
            holds = self.sql("all_of", [holds, dropped])
        return self.sql("any_of", [holds, self.sql("is_laid_over", laid_over)]) if laid_over else holds

    def _own_image(self) -> str:
        """Prints the image that makes a message a row change."""
        before, after = self.images.before.own, self.images.after.own
        if before and after:
            return self.sql("either_image", before)
        return "found_before" if before else "found_after"

    def _is_not_image(self, paths: Sequence[FieldPath]) -> str:
        """Prints the test that something other than an object stands in the place of an image. A later path counts only
        where no earlier path holds a column.
        """
        test = self.sql("is_misfit", ".".join(paths[0]))
        if not paths[1:]:
            return test
        return self.sql(
            "any_of", [test, self.sql("if_empty", self.header.field(paths[0]), self._is_not_image(paths[1:]))]
        )

    def _is_not_row_list(self, path: FieldPath) -> str:
        return self.sql("is_not_row_list", ".".join(path), self.header.field(path))

    def _is_not_later_list(self, paths: Sequence[FieldPath]) -> str:
        """Prints the test that something other than a list of rows stands at a later path, which counts only where no
        earlier path holds a row.
        """
        tests = [self._is_not_row_list(paths[1])]
        tests += [self._is_not_later_list(paths[1:])] if len(paths) > 2 else []
        return self.sql("without_row", self.header.field(paths[0]), self.sql("any_of", tests))

    # --- images

    def as_sent(self) -> Columns:
        """Prints both images as sent, of messages that can be used, with the columns of their table alone."""
        return {f"sent_{side.name}": self._columns(side) for side in (self.images.before, self.images.after)}

    def _columns(self, side: Side) -> str:
        found, types = f"found_{side.name}", "types" if self.has_types else "null"
        has_placeholders = "" in self.spec.not_sent
        columns = self.table_columns(found, types)
        if has_placeholders:
            columns = self.sql("without_placeholders", columns)
        if side.key_only:
            unsent = "placeholders" if has_placeholders else "null"
            part = self.sql("called", "key_part", [found, types, self.hidden, unsent, "key_names"])
            columns = self.sql("part_of_key", side.key_only, part, columns)
        return columns if self.images.in_lists else self.sql("if_usable", columns)

    def canonical(self) -> Columns:
        """Prints both images in canonical text, and the columns that came with them."""
        images = self.images
        before, after = (f"{'read' if self.has_readers else 'sent'}_{side}" for side in SIDES)
        if images.before.laid_over:
            both = self.sql("laid_over", images.before.laid_over, after, before)
        else:
            # An empty image before a change means that there is none.
            both = self.sql("if_holds", "sent_before", before)
        out = {"before": self._without_unsent(both), "after": self._without_unsent(self._after(before, after))}
        out["columns_before"] = self.sql("called", "map_keys", ["sent_before"])
        if images.after.laid_over and not images.before.laid_over:
            out["columns_after"] = self.sql("called", "map_keys", ["sent_after"])
        return out

    def _after(self, before: str, after: str) -> str:
        """Prints the image after a change. It is laid over the image before the change only where that one is there.
        Columns that it lacks because they are null are null where the other image has them.
        """
        side = self.images.after
        if side.laid_over:
            return self.sql("laid_over_sent", side.laid_over, before, after)
        return self.sql("laid_over_nulls", side.without_nulls, after) if side.without_nulls else after

    def _without_unsent(self, image: str) -> str:
        """Prints an image without the columns whose text says, for their type, that the value was not sent."""
        for type_name, texts in self.spec.not_sent.items():
            if type_name:
                values = self.sql("array_of", list(map(sql_text, texts)))
                image = self.sql("called", "sent_columns", [image, "types", sql_text(type_name), values])
        return image

    def completeness(self, side: Side) -> str:
        """Prints how complete an image is: at most as complete as the spec says."""
        other = "after" if side.name == "before" else "before"
        found = self.sql("called", "completeness", [side.name, other, self.named_columns, "key_names"])
        special = [(self.sql("is_key_alone", side.name, side.key_only), sql_text("key"))] if side.key_only else []
        for word, verdicts in side.incomplete.items():
            if always := [one for one in verdicts if one not in side.key_only]:
                test = [self.sql("is_there", side.name), self._is(always)]
                special.append((self.sql("all_of", test), sql_text(word)))
        if side.name == "after" and side.laid_over:
            test = [self.sql("is_missing", "before"), self._is(side.laid_over)]
            special.append((self.sql("all_of", test), sql_text("partial")))
        return self.sql("special_of_rows", special, found) if special else self.sql("of_rows", found)

    @property
    def named_columns(self) -> str:
        """A map of the columns that a message names for its table: those with types, and those not sent."""
        return "named_columns" if self.images.name_columns else "types"

    def names(self) -> Columns:
        """Prints the map of all columns that a message names, if these are more than the columns of its types."""
        if self.images.may_lack_columns:
            return {"named_columns": self.sql("names_with_missing")}
        if not self.images.name_columns:
            return {}
        return {"named_columns": self.sql("names_in_images", [self.table_columns(f"found_{one}") for one in SIDES])}

    def changed(self) -> str:
        """Prints the columns that a change changed. Where one image is laid over the other, only the columns that it
        brought can differ.
        """
        images = self.images
        if images.before.laid_over:
            differing = self.sql("called", "changed_among", ["columns_before", "before", "after"])
        elif images.after.laid_over:
            differing = self.sql("called", "changed_among", ["columns_after", "before", "after"])
        else:
            differing = self.sql("called", "changed_columns", ["before", "after", self.named_columns])
        pairs = [(self.sql("is_one_of", "op", ["update"]), differing)]
        if images.patches:
            columns = self.sql("columns_of_patch" if images.removed else "columns_of_image")
            pairs.insert(0, (self.sql("is_row_with", images.patches), columns))
        return self.sql("cases", pairs)

    def other(self) -> Columns:
        """Prints the image that is in a message although its change does not have it. It may be the row itself, where
        the row can stand in several places.
        """
        if not self.images.others:
            return {}
        if self.images.in_lists:
            own = self.header.first(["found_after", "found_before"])
            return {"other_image": self.sql("called", "other_image", ["other_row", own, self.hidden])}
        own = self.header.first(["found_before", "found_after"])
        pairs = [
            (
                self.sql("is_usable_with", verdicts),
                self.sql("called", "other_image", [self._first_image(one), own, self.hidden]),
            )
            for one, verdicts in self.images.others
        ]
        return {"other_image": self.sql("cases", pairs)}


SIDES = ("before", "after")
