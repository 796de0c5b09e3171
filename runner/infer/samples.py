"""The bytes of messages -> documents to look at, and where what is in them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

from runner.compile.paths import CHOSEN
from runner.functions.avro.files import FileMessage, TopicRecord
from runner.spec.vocabulary import RECORD_HEADERS, RECORD_KEY, RECORD_TOPIC

One = TypeVar("One")

# Of many messages, this many are looked at, spread over all of them.
MOST = 1000


class _Absent:
    """What is at a path that a document does not have: other than null."""

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False


ABSENT: Final = _Absent()

Document = Any
"""A message as Python has JSON; ABSENT for one that is not JSON."""

# What a record has beside its value, which is no part of a row.
BESIDE = (RECORD_KEY, RECORD_TOPIC, RECORD_HEADERS)


def is_flat_row(document: Document) -> bool:
    """Whether a document is an object of plain values only."""
    return isinstance(document, dict) and not any(isinstance(one, (dict, list)) for one in document.values())


def spread(messages: Sequence[One], most: int = MOST) -> list[One]:
    """At most so many of the messages, in their order.

    >>> spread([b"a", b"b", b"c", b"d", b"e"], 2)
    [b'a', b'd']
    """
    step = -(-len(messages) // most) or 1
    return list(messages[::step])


def json_documents(messages: Iterable[bytes]) -> list[Document]:
    """The documents of messages in JSON, one for each message.

    >>> json_documents([b'{"a": null}', b'{"a"', b"[1]"])
    [{'a': None}, ABSENT, [1]]
    """
    return [_json_document(message) for message in messages]


def documents_of(messages: Iterable[FileMessage]) -> list[Document]:
    """The documents of messages in JSON. One that is a record of a topic has its key, topic and headers as members, by
    the names that a spec has for them; records without a value are left out.

    >>> record = TopicRecord('{"id": 1}', "shop.t", ())
    >>> documents_of([FileMessage(0, 0, b'{"op": "c"}', record=record), FileMessage(0, 0, b"", record=record)])
    [{'op': 'c', '$key': {'id': 1}, '$topic': 'shop.t'}]
    """
    return [_with_record(_json_document(one.raw), one.record) for one in messages if one.raw or not one.record]


def _with_record(document: Document, record: TopicRecord | None) -> Document:
    return {**document, **beside(record)} if record and isinstance(document, dict) else document


def beside(record: TopicRecord) -> dict[str, Any]:
    """What a record has beside its value, by the names that a spec has for it."""
    key = _json_document(record.key.encode()) if record.key else ABSENT
    parts = {RECORD_KEY: key, RECORD_TOPIC: record.topic, RECORD_HEADERS: dict(record.headers)}
    return {name: part for name, part in parts.items() if part is not ABSENT and part not in (None, {})}


def _json_document(message: bytes) -> Document:
    try:
        return json.loads(message)
    except (ValueError, RecursionError):
        return ABSENT


def value_at(document: Document, path: Iterable[str]) -> Any:
    """What a document has at a path, which goes through lists by their first object; ABSENT if it has not that path.

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
    """The text of a scalar as a format reads it; None for null, nothing, objects and lists.

    >>> text_of("I"), text_of(True), text_of(1), text_of(None), text_of({})
    ('I', 'true', '1', None, None)
    """
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else None
