"""The reading of one document by a format, as far as its structure says: the line of `op` that fits, and the rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from runner.compile.paths import CHOSEN
from runner.functions.avro.files import FileMessage, TopicRecord
from runner.spec.vocabulary import ABOVE_ROOT, RECORD_HEADERS, RECORD_KEY, RECORD_TOPIC, WHOLE
from runner.spec.words import Condition, Field, FieldPath, Format, Image, Line, Value


@dataclass(frozen=True)
class Reading:
    """A document as a format reads it, with the record that the document came in, if that is known."""

    spec: Format
    document: Document
    record: TopicRecord | None = None

    def at(self, path: FieldPath) -> Any:
        """Returns the value at a path of the spec; ABSENT if there is none."""
        first = path[0] if path else WHOLE
        if first in BESIDE:
            return value_at(self._beside, path)
        if first == ABOVE_ROOT:
            return value_at(self.document, path[1:])
        return self.root if tuple(path) in ((), (WHOLE,)) else value_at(self.root, path)

    @property
    def root(self) -> Document:
        """The object in which paths start."""
        places = (value_at(self.document, () if path == (WHOLE,) else path) for path in self.spec.message.root)
        return next((place for place in places if isinstance(place, dict)), self.document)

    @property
    def _beside(self) -> dict[str, Any]:
        """The values that a record has beside its value."""
        return beside(self.record) if self.record else {}

    def text(self, value: Value) -> str | None:
        """Returns the text of the first place of a value that has a text."""
        for choice in value:
            found = text_of(self.at(choice.path)) if isinstance(choice, Field) else self._chosen(choice)
            if found is not None and not (isinstance(choice, Field) and found in choice.unknown):
                return found
        return None

    def _chosen(self, switch: Any) -> str | None:
        by = self.text(switch.by)
        if by is None:
            return self.text(switch.missing)
        case = next((text for text in switch.cases if _is_like(by.lower(), text.lower())), None)
        return self.text(switch.otherwise if case is None else switch.cases[case])

    @property
    def operation(self) -> str | None:
        """The text that names the operation."""
        return self.text(self.spec.op.by) if isinstance(self.document, dict) else None

    def understood(self) -> tuple[Line | None, bool]:
        """Returns the line of `op` that fits the message, None if none does, and whether a text that the format lists
        led to the line.
        """
        if not isinstance(self.document, dict):
            return None, False
        op, text = self.spec.op, self.operation
        for line in op.first:
            if self._holds(line):
                return line, True
        for wanted, lines in op.cases.items() if text is not None else ():
            for line in lines:
                if _is_like(text or "", wanted) and self._holds(line):
                    return line, True
        last = op.missing if text is None else op.otherwise
        return next((line for line in last if self._holds(line)), None), False

    @property
    def is_meant(self) -> bool:
        """True if the format says that it is for such messages."""
        return bool(self.spec.meant) and all(self._is_true(condition) for condition in self.spec.meant)

    def _holds(self, line: Line) -> bool:
        return all(self._is_true(condition) for condition in line.conditions)

    def _is_true(self, condition: Condition) -> bool:
        found = self.at(condition.path)
        match condition.test:
            case "is":
                return text_of(found) in condition.texts
            case "is_not":
                return text_of(found) not in condition.texts
            case "has":
                return found is not ABSENT and found is not None
            case "lacks":
                return found is ABSENT or found is None
        return isinstance(found, dict) and bool(found)

    def rows(self, image: Image | None) -> list[dict[str, Any]]:
        """Returns the rows of an image: one row, or several for a format that reads lists. A row whose columns cannot
        be seen is empty.
        """
        found = (list(self._rows_at(path, image)) for path in image.at) if image else iter(())
        return next((rows for rows in found if rows), [])

    def _rows_at(self, path: FieldPath, image: Image) -> Iterator[dict[str, Any]]:
        found = self.at(path)
        if image.text or image.names or image.name:
            if found and isinstance(found, str if image.text else list | dict):
                yield {}
        elif isinstance(found, dict) and found:
            prefix = image.prefix or ""
            row = {name.removeprefix(prefix): one for name, one in found.items() if name.startswith(prefix)}
            yield from [row] if row else []
        elif isinstance(found, list) and self.spec.each:
            yield from (one for one in found if isinstance(one, dict))


def parts(spec: Format, document: Document) -> list[Document]:
    """Returns the messages in a document: the document itself, or if the format reads batches, one for each element."""
    batch = spec.message.batch
    if not batch:
        return [document]
    if batch == (WHOLE,):
        return document if isinstance(document, list) else [document]
    found = value_at(document, batch)
    elements = found if isinstance(found, list) else []
    return [_with(document, batch, element) for element in elements] or [document]


def _with(document: Document, path: FieldPath, element: Any) -> Document:
    """Returns the document, with an element in place of the list at a path."""
    if not path:
        return element
    return {**document, path[0]: _with(document[path[0]], FieldPath(path[1:]), element)}


def _is_like(text: str, wanted: str) -> bool:
    """Returns True if a text is the wanted one, or begins like it where it ends in *.

    >>> _is_like("CREATE_INDEX", "CREATE*"), _is_like("C", "CREATE"), _is_like("C", "C")
    (True, False, True)
    """
    return text.startswith(wanted[:-1]) if wanted.endswith("*") else text == wanted


One = TypeVar("One")

# The number of messages that are read if there are more, spread over all of them.
MOST = 1000


class _Absent:
    """The value of a path that a document does not have; null is another value."""

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False


ABSENT: Final = _Absent()

Document = Any
"""A message as Python has JSON; ABSENT for one that is not JSON."""

# Parts of a record beside its value that are not a part of a row.
BESIDE = (RECORD_KEY, RECORD_TOPIC, RECORD_HEADERS)


def is_flat_row(document: Document) -> bool:
    """Returns True if a document is an object of plain values only."""
    return isinstance(document, dict) and not any(isinstance(one, (dict, list)) for one in document.values())


def spread(messages: Sequence[One], most: int = MOST) -> list[One]:
    """Returns at most `most` of the messages, evenly spread and in their order.

    >>> spread([b"a", b"b", b"c", b"d", b"e"], 2)
    [b'a', b'd']
    """
    step = -(-len(messages) // most) or 1
    return list(messages[::step])


def json_documents(messages: Iterable[bytes]) -> list[Document]:
    """Returns the documents of messages in JSON, one for each message.

    >>> json_documents([b'{"a": null}', b'{"a"', b"[1]"])
    [{'a': None}, ABSENT, [1]]
    """
    return [_json_document(message) for message in messages]


def documents_of(messages: Iterable[FileMessage]) -> list[Document]:
    """Returns the documents of messages in JSON. The document of a record of a topic has its key, topic and headers as
    members, by the names that a spec has for them. Records without a value are left out.

    >>> record = TopicRecord('{"id": 1}', "shop.t", ())
    >>> documents_of([FileMessage(0, 0, b'{"op": "c"}', record=record), FileMessage(0, 0, b"", record=record)])
    [{'op': 'c', '$key': {'id': 1}, '$topic': 'shop.t'}]
    """
    return [_with_record(_json_document(one.raw), one.record) for one in messages if one.raw or not one.record]


def _with_record(document: Document, record: TopicRecord | None) -> Document:
    return {**document, **beside(record)} if record and isinstance(document, dict) else document


def beside(record: TopicRecord) -> dict[str, Any]:
    """Returns the key, topic and headers of a record, by the names that a spec has for them."""
    key = _json_document(record.key.encode()) if record.key else ABSENT
    parts = {RECORD_KEY: key, RECORD_TOPIC: record.topic, RECORD_HEADERS: dict(record.headers)}
    return {name: part for name, part in parts.items() if part is not ABSENT and part not in (None, {})}


def _json_document(message: bytes) -> Document:
    try:
        return json.loads(message)
    except (ValueError, RecursionError):
        return ABSENT


def value_at(document: Document, path: Iterable[str]) -> Any:
    """Returns the value at a path of a document; ABSENT if the document has no such path. The path goes through lists
    by their first object.

    >>> value_at({"a": [{"b": 1}]}, ("a", "b")), value_at({"a": None}, ("a",)), value_at({"a": None}, ("a", "b"))
    (1, None, ABSENT)
    >>> value_at({"a": [{"b": "x"}, {"b": "y", "c": 1}]}, ("a(b=y)", "c"))
    1
    """
    for name in path:
        chosen = CHOSEN.fullmatch(name)
        if chosen:
            inside = value_at(document, [chosen[1]])
            elements = [one for one in inside if isinstance(one, dict)] if isinstance(inside, list) else []
            document = next((one for one in elements if one.get(chosen[2]) == chosen[3]), ABSENT)
            continue
        if isinstance(document, list):
            document = next((one for one in document if isinstance(one, dict)), None)
        if not isinstance(document, dict):
            return ABSENT
        document = document.get(name, ABSENT)
    return document


def text_of(value: Any) -> str | None:
    """Returns the text of a scalar as a format reads it; None for null, nothing, objects and lists.

    >>> text_of("I"), text_of(True), text_of(1), text_of(None), text_of({})
    ('I', 'true', '1', None, None)
    """
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else None
