"""The picture of a format: a message from one of its cases, and the place in it of each column of the row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.compile.paths import CHOSEN
from runner.contract import COLUMNS
from runner.functions.avro.files import TopicRecord
from runner.infer.understanding import BESIDE, Reading, json_documents
from runner.spec.vocabulary import ABOVE_ROOT, WHOLE
from runner.spec.words import FieldPath, Format, Image, Key, Line, Value, fields_of
from runner.yaml_text import read_yaml

# Names of members and positions in lists, from the outermost inwards.
Place = tuple[str | int, ...]

# The typical number of characters of a message. A much longer or shorter one shows less.
TYPICAL, LONGEST = 450, 2500
WIDTH = 66
# The number of messages of a case that are read.
MOST_MESSAGES = 20
COMPUTED = {
    "key_text": "the text of key",
    "changed": "before and after, compared",
    "before_image": "how complete before is",
    "after_image": "how complete after is",
    "kind": "as op says",
}


def mapping_of(spec: Format, folders: Sequence[Path]) -> dict[str, Any] | None:
    """Returns the picture of a format, None if no case has a row change; `folders` have formats, each with its cases.

    `message` are lines of JSON. Each column has `value`, its value in the row, and `from`, a list of [words of the
    spec, number of the line or None].
    """
    found = [one for folder in folders for one in _examples(spec, folder / "cases" / spec.name)]
    rows = ((one, one.row()) for one in sorted(found, key=Example.rank))
    example, row = next(((one, row) for one, row in rows if row), (None, None))
    if example is None or row is None:
        return None
    lines, numbers = _laid_out(example.shown)
    columns = []
    for column in COLUMNS:
        paths = list(dict.fromkeys(_paths(spec, example.line, column)))
        places = [[words, numbers.get(_place(example, path))] for path, words in paths]
        shown = [place for place in places if place[1] is not None] or places
        value = row.get(column)
        if value not in (None, {}, []) and (shown or column in COMPUTED):
            columns.append({"name": column, "value": _short(value), "from": shown, "how": COMPUTED.get(column, "")})
    return {"case": example.case, "message": lines, "columns": columns}


# --- the example


@dataclass(frozen=True)
class Example:
    """A message that may be shown: the message `number` of the `total` messages of a case. `shown` is the message or,
    for a case of topics, the whole record.
    """

    path: Path
    number: int
    total: int
    shown: Any
    reading: Reading
    line: Line

    @property
    def case(self) -> str:
        return self.path.name.partition(".")[0]

    def rank(self) -> tuple[int, int, str]:
        """Returns a sort key: lower for a message with an update, both images, many columns, a typical length."""
        images = sum(bool(self.reading.rows(image)) for image in (self.line.before, self.line.after))
        columns = self.reading.spec.columns.values()
        found = sum(self.reading.text(value) is not None for value in columns)
        far = abs(len(json.dumps(self.shown)) - TYPICAL)
        return -2 * images - 2 * (self.line.op == "update") - found, far, self.path.name

    def row(self) -> Mapping[str, Any] | None:
        """Returns the row of this message, None if the case does not tell which of its rows that is."""
        rows: list[Mapping[str, Any]] = read_yaml(self.path.with_name(f"{self.case}.rows.yml"))["rows"].value
        if not rows or (self.number and len(rows) != self.total):
            return None
        row = rows[self.number]
        return row if (row.get("kind", "row"), row.get("op")) == ("row", self.line.op) else None


def _examples(spec: Format, folder: Path) -> Iterator[Example]:
    """Returns the messages of the cases in a folder that are short, and row changes."""
    for path in sorted([*folder.glob("*.messages.jsonl"), *folder.glob("*.records.jsonl")]):
        messages = [one for one in path.read_bytes().split(b"\n") if one.strip()]
        for number, message in enumerate(messages[:MOST_MESSAGES]):
            shown = json_documents([message])[0] if len(message) <= LONGEST else None
            reading = _reading(spec, shown, path.name.endswith(".records.jsonl"))
            line = reading.understood()[0] if reading else None
            if reading and line and line.kind == "row":
                yield Example(path, number, len(messages), shown, reading, line)


def _reading(spec: Format, shown: Any, is_record: bool) -> Reading | None:
    if not isinstance(shown, dict):
        return None
    if not is_record:
        return Reading(spec, shown)
    key = shown.get("key")
    text = key if isinstance(key, str) or key is None else json.dumps(key)
    headers = shown.get("headers")
    pairs = tuple(headers.items()) if isinstance(headers, dict) else ()
    document = shown.get("value")
    return Reading(spec, document, TopicRecord(text, shown.get("topic"), pairs)) if isinstance(document, dict) else None


# --- where the columns come from


def _paths(spec: Format, line: Line, column: str) -> Iterator[tuple[FieldPath, str]]:
    """Returns the places in a message that decide a column, with the words of the spec for them."""
    match column:
        case "op":
            yield from _of_value(spec.op.by)
            yield from ((one.path, _words(one.path, one.test)) for one in line.conditions)
        case "before" | "after":
            yield from _of_image(line.before if column == "before" else line.after)
        case "key":
            for key in spec.key:
                yield from _of_key(key, line.own)
        case "types" if spec.types:
            yield from ((path, _words(path)) for path in spec.types.at)
        case "seq":
            for value in spec.seq:
                yield from _of_value(value)
        case "meta":
            for value in spec.meta.values():
                yield from _of_value(value)
        case _:
            yield from _of_value({**spec.columns, **line.columns}.get(column, ()))


def _of_value(value: Value) -> Iterator[tuple[FieldPath, str]]:
    for field in fields_of(value):
        yield field.path, _words(field.path, "" if field.reader == "text" else field.reader)


def _of_image(image: Image | None) -> Iterator[tuple[FieldPath, str]]:
    if image:
        yield from ((path, _words(path)) for path in image.at)
        if image.over:
            yield image.over, _words(image.over, "the rest")
        if image.names:
            yield image.names, _words(image.names, "names")


def _of_key(key: Key, own: Image | None) -> Iterator[tuple[FieldPath, str]]:
    for path in (*key.names, *key.values, *(key.image.at if key.image else ())):
        yield path, _words(path)
    if key.members:
        yield key.members, _words(key.members, "members")
    for path in own.at if own and key.columns and not key.values else ():
        for column in key.columns:
            yield path.child(column), _words(path.child(column))


def _words(path: FieldPath, how: str = "") -> str:
    """Returns the words of the spec for a place in a message.

    >>> _words(FieldPath(["source", "ts_ms"]), "epoch_ms"), _words(FieldPath())
    ('source.ts_ms (epoch_ms)', 'the message')
    """
    name = ".".join(path) or "the message"
    return f"{name} ({how})" if how else name


def _place(example: Example, path: FieldPath) -> Place:
    """Returns the place that a path of the spec leads to; () is the whole message, ("",) no place."""
    start: Place = ("value",) if example.reading.record is not None else ()
    document = example.reading.document
    first = path[0] if path else WHOLE
    if first in BESIDE:
        return _followed(example.shown, (first[1:], *path[1:]), ())
    if first == ABOVE_ROOT:
        return _followed(document, path[1:], start)
    for root in example.reading.spec.message.root:
        inner = _followed(document, () if root == (WHOLE,) else root, ())
        if inner != NOWHERE and isinstance(_at(document, inner), dict):
            start, document = (*start, *inner), _at(document, inner)
            break
    return start if tuple(path) in ((), (WHOLE,)) else _followed(document, path, start)


NOWHERE: Place = ("",)


def _at(document: Any, place: Place) -> Any:
    for step in place:
        document = document[step]
    return document


def _followed(document: Any, path: Sequence[str], start: Place) -> Place:
    """Follows a path through lists by their first object, and up to a text that is a document itself."""
    place = start
    for name in path:
        chosen = CHOSEN.fullmatch(name)
        if isinstance(document, list):
            document, place = (document[0] if document else None), (*place, 0)
        if isinstance(document, str):
            return place
        member = chosen[1] if chosen else name
        if not isinstance(document, dict) or member not in document:
            return NOWHERE
        document, place = document[member], (*place, member)
        if chosen:
            fits = (isinstance(one, dict) and one.get(chosen[2]) == chosen[3] for one in document)
            index = next((number for number, one in enumerate(fits) if one), None)
            if index is None:
                return NOWHERE
            document, place = document[index], (*place, index)
    return place


# --- texts


def _laid_out(value: Any) -> tuple[list[str], dict[Place, int]]:
    """Returns the lines of a JSON value, and for each place in it the line where it begins."""
    lines: list[str] = []
    numbers: dict[Place, int] = {}

    def write(value: Any, place: Place, label: str, comma: str, indent: str) -> None:
        flat = json.dumps(value, ensure_ascii=False)
        numbers[place] = len(lines)
        fits = bool(place) and len(indent) + len(label) + len(flat) <= WIDTH
        if fits or not value or not isinstance(value, (dict, list)):
            numbers.update((inner, len(lines)) for inner in _inside(value, place))
            lines.append(f"{indent}{label}{flat}{comma}")
            return
        opens, closes = ("{", "}") if isinstance(value, dict) else ("[", "]")
        lines.append(f"{indent}{label}{opens}")
        members = list(value.items() if isinstance(value, dict) else enumerate(value))
        for number, (name, one) in enumerate(members):
            named = f"{json.dumps(name, ensure_ascii=False)}: " if isinstance(value, dict) else ""
            write(one, (*place, name), named, "," if number + 1 < len(members) else "", f"{indent}  ")
        lines.append(f"{indent}{closes}{comma}")

    write(value, (), "", "", "")
    return lines, numbers


def _inside(value: Any, place: Place) -> Iterator[Place]:
    """Returns all places in a value."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in members:
        yield (*place, name)
        yield from _inside(one, (*place, name))


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:300]}…"
