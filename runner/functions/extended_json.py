"""The reader of documents in MongoDB's extended JSON, `{"_id": {"$oid": ".."}, "n": 5}`: columns and their types.

The documents become the same texts as documents in the language of the shell.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import orjson

from runner.functions.mongo_shell import NOT_A_DOCUMENT, NOTHING, NotADocument, Reader, ShellDocument, document_of
from runner.functions.mongo_values import (
    CONSTRUCTORS,
    Value,
    binary,
    date,
    decimal,
    object_id,
    quote,
    timestamp,
    uuid,
    value_of_word,
)


def extended_document(text: str | None) -> ShellDocument:
    """Returns the members of a document at its top level; of equal names the last counts.

    >>> extended_document('{"_id": {"$oid": "64650cf67dc36a464e76e583"}, "n": {"$numberLong": "5"}, "f": 1.50}')[:2]
    ({'_id': '64650cf67dc36a464e76e583', 'n': '5', 'f': '1.50'}, {'_id': 'objectId', 'n': 'long', 'f': 'double'})
    >>> extended_document('{"n": {"$numberLong": "x"}}')[:3]
    ({'n': '{"$numberLong":"x"}'}, {'n': 'long'}, ['n'])
    >>> extended_document("[1]").reason
    'row-not-an-object'
    """
    if text is None:
        return NOTHING
    try:
        orjson.loads(text)
        members = ExtendedReader(text).members(0)
    except (ValueError, NotADocument):
        return NOTHING._replace(reason=NOT_A_DOCUMENT)
    return document_of(members, None)


class ExtendedReader(Reader):
    """Reads a text that is JSON, in one pass."""

    def value(self, depth: int) -> Value:
        self.skip_blanks()
        if not self.text.startswith("{", self.position):
            return super().value(depth)
        members = self.members(depth)
        text = "{" + ",".join(f"{quote(name)}:{v.json}" for name, v in members.items()) + "}"
        kind, value = _value_of(members)
        return value or Value(kind, text, text, fits=kind == "object")


def _value_of(members: Mapping[str, Value]) -> tuple[str, Value | None]:
    """Returns the type of the value that an object stands for, and the value, None if the object is none of the type.
    Most objects are only objects.
    """
    if members.keys() == {"$binary", "$type"}:
        return "binData", _bytes(members["$type"].text, members["$binary"].text)
    if members.keys() == {"$regex", "$options"}:
        return "regex", _regex(members["$regex"].text, members["$options"].text)
    name = next(iter(members)) if len(members) == 1 else ""
    if name in WORDS:
        return name, value_of_word(WORDS[name])
    kind, make = EXTENDED.get(name, ("object", None))
    return kind, make(members[name]) if make else None


def _double(given: Value) -> Value | None:
    text = given.text or ""
    try:
        is_finite = float(text) - float(text) == 0
    except ValueError:
        return None
    return Value("double", text, text if is_finite else f'{{"$numberDouble":"{text}"}}')


def _binary(given: Value) -> Value | None:
    inner = _inner(given)
    return _bytes(inner.get("subType"), inner.get("base64"))


def _bytes(subtype: object, text: object) -> Value | None:
    """Returns bytes, from their subtype in hexadecimal digits and their base64."""
    if not isinstance(subtype, str) or not isinstance(text, str):
        return None
    try:
        number = str(int(subtype, 16))
    except ValueError:
        return None
    return binary(Value("int", number, number), Value("string", text, quote(text)))


def _timestamp(given: Value) -> Value | None:
    inner = _inner(given)
    parts = [Value("int", str(inner.get(name)), "") for name in ("t", "i")]
    return timestamp(*parts)


def _pattern(given: Value) -> Value | None:
    inner = _inner(given)
    return _regex(inner.get("pattern"), inner.get("options"))


def _regex(pattern: object, options: object) -> Value | None:
    if not isinstance(pattern, str) or not isinstance(options, str):
        return None
    written = f'{{"$regularExpression":{{"pattern":{quote(pattern)},"options":{quote(options)}}}}}'
    return Value("regex", f"/{pattern}/{options}", written)


def _inner(given: Value) -> Mapping[str, object]:
    found = json.loads(given.json) if given.kind == "object" else None
    return found if isinstance(found, dict) else {}


# The only name of an object that stands for a value -> the type of that value, and the function that makes it.
EXTENDED: Mapping[str, tuple[str, Callable[[Value], Value | None]]] = {
    "$oid": ("objectId", object_id),
    "$numberLong": ("long", CONSTRUCTORS["NumberLong"]),
    "$numberInt": ("int", CONSTRUCTORS["NumberInt"]),
    "$numberDouble": ("double", _double),
    "$numberDecimal": ("decimal", decimal),
    "$date": ("date", date),
    "$binary": ("binData", _binary),
    "$uuid": ("binData", uuid),
    "$timestamp": ("timestamp", _timestamp),
    "$regularExpression": ("regex", _pattern),
}
# The same for values that are a word in the language of the shell.
WORDS = {"$undefined": "undefined", "$minKey": "MinKey", "$maxKey": "MaxKey"}
