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

Members = Mapping[str, Value]


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
        for names, (kind, make) in EXTENDED.items():
            if members.keys() == names:
                return make(members) or Value(kind, text, text, fits=False)
        return Value("object", text, text)


def _only(make: Callable[[Value], Value | None]) -> Callable[[Members], Value | None]:
    """Returns a function that makes a value from the only member of an object."""
    return lambda members: make(*members.values())


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


def _old_binary(members: Members) -> Value | None:
    return _bytes(members["$type"].text, members["$binary"].text)


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


def _old_pattern(members: Members) -> Value | None:
    return _regex(members["$regex"].text, members["$options"].text)


def _regex(pattern: object, options: object) -> Value | None:
    if not isinstance(pattern, str) or not isinstance(options, str):
        return None
    written = f'{{"$regularExpression":{{"pattern":{quote(pattern)},"options":{quote(options)}}}}}'
    return Value("regex", f"/{pattern}/{options}", written)


def _inner(given: Value) -> Mapping[str, object]:
    found = json.loads(given.json) if given.kind == "object" else None
    return found if isinstance(found, dict) else {}


def _word(word: str) -> Callable[[Members], Value]:
    return lambda members: value_of_word(word)


# The names of an object that stands for a value -> the type of that value, and the function that makes it.
EXTENDED: dict[frozenset[str], tuple[str, Callable[[Members], Value | None]]] = {
    frozenset(["$oid"]): ("objectId", _only(object_id)),
    frozenset(["$numberLong"]): ("long", _only(CONSTRUCTORS["NumberLong"])),
    frozenset(["$numberInt"]): ("int", _only(CONSTRUCTORS["NumberInt"])),
    frozenset(["$numberDouble"]): ("double", _only(_double)),
    frozenset(["$numberDecimal"]): ("decimal", _only(decimal)),
    frozenset(["$date"]): ("date", _only(date)),
    frozenset(["$binary"]): ("binData", _only(_binary)),
    frozenset(["$binary", "$type"]): ("binData", _old_binary),
    frozenset(["$uuid"]): ("binData", _only(uuid)),
    frozenset(["$timestamp"]): ("timestamp", _only(_timestamp)),
    frozenset(["$regularExpression"]): ("regex", _only(_pattern)),
    frozenset(["$regex", "$options"]): ("regex", _old_pattern),
    frozenset(["$undefined"]): ("undefined", _word("undefined")),
    frozenset(["$minKey"]): ("minKey", _word("MinKey")),
    frozenset(["$maxKey"]): ("maxKey", _word("MaxKey")),
}
