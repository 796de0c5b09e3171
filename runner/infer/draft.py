"""A draft of a spec for messages that no known format fits, with a comment for each guess."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

from runner.counts import counted
from runner.infer.fields import (
    ROW_MEANINGS,
    Fields,
    dotted,
    is_below,
    listed,
    operations,
    path_text,
    scalar,
    shortened,
)
from runner.infer.header import (
    Found,
    Header,
    find_database,
    find_key,
    find_order,
    find_statement,
    find_table,
    find_transaction,
    find_types,
)
from runner.infer.images import Images, find_images
from runner.infer.times import find_times, value_readers
from runner.infer.understanding import Document
from runner.spec.vocabulary import CONTROL_OPS, DDL_OPS
from runner.spec.words import TypeTable

# The position where a comment behind a line begins.
COMMENT = 48
# The number of fields that are tried as the operation, and of unused fields that are named.
TRIED, NAMED = 3, 12
NOT_TOLD = {
    "table_name": "no field names the table for certain",
    "key": "no field names the key: declare it with `tables` of a source",
    "event_time": "no field holds a time in all changes",
    "types": "no map of columns to types: all values stay as sent, unless `tables` of a source declares types",
    "seq": "no number grows from message to message: the order is that of arrival",
}


class NoDraft(Exception):
    """Raised for messages that are not change messages; its text gives the reason, as far as can be told."""


def draft_of(
    documents: Sequence[Document], tables: Mapping[str, TypeTable], source: str, head: str, message: str = ""
) -> str:
    """Returns a draft of a spec for documents, one for each message; raises NoDraft. `tables` are the known tables of
    types; `source` says where the messages are from, `head` is the line that the text begins with, `message` what the
    spec says of the messages as a whole.
    """
    objects = [document for document in documents if isinstance(document, dict)]
    if 2 * len(objects) < len(documents) or not objects:
        raise NoDraft(f"{len(documents) - len(objects)} of {len(documents)} messages are no JSON objects")
    fields = Fields(objects)
    candidates = operations(fields)
    if not candidates:
        raise NoDraft("no field has words for operations, such as insert, update, delete or I, U, D")
    found = [images for one in candidates[:TRIED] if (images := find_images(fields, one))]
    if not found:
        where = dotted(candidates[0].path)
        raise NoDraft(f'"{where}" may name operations, but no object beside it could be a row')
    guesses = Guesses(fields, max(found, key=attrgetter("covered")), tables)
    about = f"about: {scalar(f'A draft from {len(documents)} messages of {source}')}"
    lines = [head, about, *([message] if message else []), *guesses.lines()]
    return re.sub("\n{3,}", "\n\n", "\n".join(lines) + "\n")


class Guesses:
    """The guesses about messages, one for each part of a spec, and the lines of the spec for them."""

    def __init__(self, fields: Fields, images: Images, tables: Mapping[str, TypeTable]) -> None:
        header = Header(fields, images)
        self.images = images
        self.statement, self.table, self.types = find_statement(header), find_table(header), find_types(header, tables)
        self.readers = value_readers(header, self.types, tables) if self.types else {}
        self.names: dict[str, Found] = {}
        for column in ("db_name", "schema_name") if self.table and "with dots" not in self.table.why else ():
            found = find_database(header, self.table.path, column) if self.table else None
            if found and found.path not in [one.path for one in self.names.values()]:
                self.names[column] = found
        self.key = find_key(header, self.table)
        taken = [one.path for one in (self.statement, self.table, self.key, *self.names.values()) if one]
        self.times = find_times(header, taken)
        taken += [time.path for time in self.times]
        self.transaction = find_transaction(header, taken)
        taken += [self.transaction.path] if self.transaction else []
        self.order = find_order(header, taken)
        taken += [one.path for one in (self.order, self.types) if one]
        used = [*taken, images.operation.path, *(place.path for place in images.places)]
        paths = [path for path in header.paths if not is_below(path, used)]
        self.unused = [(path, listed(fields.texts(path).values(), 2)) for path in paths]
        others = [place.path for place in images.others if not is_below(place.path, used)]
        self.unused += [(path, "an object with columns") for path in others]

    def lines(self) -> Iterator[str]:
        """Returns the lines of the spec without its head."""
        yield ""
        if lists := [path_text(place.path) for place in self.images.places if place.is_list]:
            yield _line(f"each: [{', '.join(lists)}]", "lists of rows")
            yield ""
        yield from self._op_lines()
        yield ""
        yield from self._image_lines()
        yield ""
        yield from self._name_lines()
        if self.key:
            yield from _key_lines(self.key)
        yield from self._type_lines()
        yield ""
        yield from self._time_lines()
        if self.transaction:
            yield _line(f"tx_id: {path_text(self.transaction.path)}", self.transaction.why)
        if self.order:
            yield _line(f"seq: [{path_text(self.order.path)}]", self.order.why)
        if self.statement:
            yield _line(f"statement: {path_text(self.statement.path)}", self.statement.why)
        if left_out := list(self._left_out()):
            yield ""
            yield "# What the messages do not tell:"
            yield from (f"# - {shortened(one, 130)}" for one in left_out)

    def _op_lines(self) -> Iterator[str]:
        images, operation = self.images, self.images.operation
        yield "op:"
        yield _line(f"  by: {path_text(operation.path)}", f"words for operations: {listed(operation.texts.values())}")
        yield "  cases:"
        for text, meaning in images.meanings.items():
            numbers = [number for number, one in operation.texts.items() if one == text]
            places = [f"{dotted(place.path)} in {sum(n in place.rows for n in numbers)}" for place in images.places]
            rows = f"; rows: {', '.join(places)}" if meaning in ROW_MEANINGS else ""
            line = _meaning_line(images, text, meaning, self.statement is not None)
            yield _line(f"    {scalar(text)}: {line}", counted(len(numbers), "message") + rows)
        for text in images.unknown:
            count = sum(one == text for one in operation.texts.values())
            yield f"    # {scalar(text)}: ?  {counted(count, 'message')}: what it means is not known"

    def _image_lines(self) -> Iterator[str]:
        images = self.images
        after, before = images.after, images.before
        for side, place, other in (("after", after, before), ("before", before, after)):
            if not place:
                continue
            why = f"rows with {_columns(place.columns)}; {images.sides}"
            if images.partial == side and other:
                why = f"in updates only some columns, the others are in {dotted(other.path)}; {images.sides}"
            yield _line(f"{side}: {path_text(place.path)}", why)

    def _name_lines(self) -> Iterator[str]:
        for column, found in self.names.items():
            yield _line(f"{column}: {path_text(found.path)}", found.why)
        if not self.table:
            return
        path, why = path_text(self.table.path), self.table.why
        if "with dots" not in why:
            yield _line(f"table_name: {path}", why)
            return
        examples = why.partition(": ")[2].partition(" (")[0]
        columns = ["db_name", *(["schema_name"] if examples.count(".") > 1 else []), "table_name"]
        pattern = ".".join(f"{{{column}}}" for column in columns)
        for column in columns:
            is_table = column == "table_name"
            whole = pattern.replace("{db_name}.", "[{db_name}.]") if is_table else pattern
            comment = why if is_table else "a part of the table's name"
            yield _line(f'{column}: {{at: {path}, pattern: "{whole}"}}', comment)

    def _type_lines(self) -> Iterator[str]:
        types = self.types
        if not types:
            return
        members = f", name: {scalar(types.name)}, value: {scalar(types.value)}" if types.name and types.value else ""
        yield _line(f"types: {{at: {path_text(types.path)}{members}, table: {types.table}}}", types.why)
        readers = {name: (reader, example) for name, (reader, example) in self.readers.items() if reader}
        if readers:
            yield "values:"
        for class_name, (reader, example) in sorted(readers.items()):
            yield _line(f"  {class_name}: {reader}", f"all look like {shortened(example)}")

    def _time_lines(self) -> Iterator[str]:
        whys = ("", "") if len(self.times) < 2 else ("; earlier than the other one", "; later than the other one")
        for column, time, why in zip(("event_time", "produced_at"), self.times, whys):
            unknown = f", unknown: [{', '.join(scalar(text) for text in time.unknown)}]" if time.unknown else ""
            yield _line(f"{column}: {{at: {path_text(time.path)}, as: {time.reader}{unknown}}}", time.why + why)
            if time.reader == "local":
                yield "# These are local times: give their zone here, or at the source. zone: Europe/Paris"

    def _left_out(self) -> Iterator[str]:
        """Returns the parts of the spec that could not be told, and the fields that are not used."""
        there = {
            "table_name": self.table,
            "key": self.key,
            "event_time": self.times,
            "types": self.types,
            "seq": self.order,
        }
        yield from (f"{word}: {why}" for word, why in NOT_TOLD.items() if not there[word])
        if not self.images.before:
            yield "before: no image before the change, except of deleted rows"
        for class_name, (reader, example) in self.readers.items():
            if reader is None and class_name != "enum":
                yield f"values of class {class_name}: how they are written, such as {shortened(example)}"
        yield from (f"operation {scalar(text)}: what it means" for text in self.images.unknown)
        for time in self.times[2:]:
            yield f"{dotted(time.path)}: one more time"
        yield from (f"{dotted(path)}: not used; {seen}" for path, seen in self.unused[:NAMED])
        if self.unused[NAMED:]:
            yield f"{len(self.unused) - NAMED} more fields are not used"


def _line(text: str, comment: str) -> str:
    """Returns a line of the spec with a comment in a fixed column.

    >>> _line("seq: [id]", "a guess")
    'seq: [id]                                       # a guess'
    """
    return f"{text.ljust(COMMENT - 1)} # {shortened(comment, 110)}"


def _meaning_line(images: Images, text: str, meaning: str, has_statement: bool) -> str:
    """Returns the line of an op for a text's meaning, with an image of its own where the spec's image has no such
    rows.
    """
    match meaning:
        case "update_before" | "update_after" if _has_both(images, text):
            return _update(images)
        case "update_before" | "update_after":
            place = images.after or images.before
            half = meaning.removeprefix("update_")
            path = path_text(place.path) if place else ""
            return f"{{row: update, half: {half}, {half}: {path}}}"
        case "delete" if images.deleted:
            return f"{{row: delete, before: {path_text(images.deleted)}}}"
        case "insert" | "snapshot" if not images.after and images.before:
            return f"{{row: {meaning}, after: {path_text(images.before.path)}}}"
        case "update" if not images.after and images.before:
            return f"{{row: update, after: {path_text(images.before.path)}}}"
        case "update":
            return _update(images)
        case "delete" if not images.before and images.after:
            return f"{{row: delete, before: {path_text(images.after.path)}}}"
        case "by_statement":
            return "{ddl: by_statement}" if has_statement else "{ddl: other}"
    if meaning in DDL_OPS or meaning in CONTROL_OPS or meaning in ROW_MEANINGS:
        return meaning if meaning != "index" else "{ddl: index}"
    return "{control: other}"


def _update(images: Images) -> str:
    """Returns the line of an update. Only here, an image with some columns is laid over the other one."""
    if not images.partial or not images.before or not images.after:
        return "update"
    some, whole = images.before, images.after
    if images.partial == "after":
        some, whole = whole, some
    return f"{{row: update, {images.partial}: {{at: {path_text(some.path)}, over: {path_text(whole.path)}}}}}"


def _has_both(images: Images, text: str) -> bool:
    """Returns True if messages with this text of the operation have both images: these messages are then not halves."""
    numbers = [number for number, one in images.operation.texts.items() if one == text]
    return len(images.places) == 2 and all(place.share(numbers) > 0.5 for place in images.places)


def _columns(columns: set[str]) -> str:
    names = sorted(columns)
    return ", ".join(shortened(name, 20) for name in names[:4]) + (f" and {len(names) - 4} more" if names[4:] else "")


def _key_lines(key: Found) -> Iterator[str]:
    if key.is_object:
        yield _line(f"key: {{members: {path_text(key.path)}}}", key.why)
    else:
        split = f", split: {scalar(key.split)}" if key.split else ""
        yield _line(f"key: {{names: {path_text(key.path)}{split}}}", key.why)
