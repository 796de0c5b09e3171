"""Documents in the language of a database's shell, `{_id: ObjectId("..."), n: NumberLong(5)}`, as columns and their
types.

Values at the top level become canonical text; nested ones compact JSON, with constructors in their extended JSON form.
Standard library
only, and nothing from other modules of the project: the functions travel to executors by value.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

DEEPEST = 150
NOT_A_DOCUMENT, UNKNOWN_PATCH = "row-not-an-object", "unknown-patch"

BLANKS = re.compile(r"[ \t\r\n]*")
DOUBLE_QUOTED = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
SINGLE_QUOTED = re.compile(r"'[^'\\]*(?:\\.[^'\\]*)*'", re.DOTALL)
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![0-9A-Za-z_.$])")
INFINITE = re.compile(r"(?:NaN|-?Infinity)(?![0-9A-Za-z_$])")
WORD = re.compile(r"[A-Za-z_$][0-9A-Za-z_$]*")
NEW = re.compile(r"new[ \t\r\n]+(?=[A-Za-z_$])")
PATTERN = re.compile(r"/((?:[^/\\\n]|\\.)+)/([a-z]*)")
DIGITS = re.compile(r"-?(?:0|[1-9][0-9]*)")
DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|NaN|[+-]?Infinity")
IDENTIFIER = re.compile(r"[0-9a-fA-F]{24}")
IDENTITY = re.compile(r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")
HEXADECIMAL = re.compile(r"(?:[0-9a-fA-F]{2})*")
BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
SUBTYPE = re.compile(r"[0-9]{1,3}")
INSTANT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]((?:[01][0-9]|2[0-3]):[0-9]{2})(?:(:[0-9]{2})(?:\.([0-9]+))?)?)?"
    r"(?:Z|([+-](?:[01][0-9]|2[0-3]))(?::?([0-5][0-9]))?)?"
)
WORDS = {
    "true": "bool",
    "false": "bool",
    "null": "null",
    "undefined": "undefined",
    "MinKey": "minKey",
    "MaxKey": "maxKey",
}
EXTENDED_WORDS = {"undefined": '{"$undefined":true}', "MinKey": '{"$minKey":1}', "MaxKey": '{"$maxKey":1}'}


class NotADocument(ValueError):
    """The text is no document."""


class Value(NamedTuple):
    """A value: its type's name, its text at the top level, and its JSON inside others."""

    kind: str
    text: str | None
    json: str


class ShellDocument(NamedTuple):
    """Columns with their texts and types; the columns that a patch removes; why there are none."""

    values: dict[str, str | None] | None
    types: dict[str, str] | None
    removed: list[str] | None
    reason: str | None


NOTHING = ShellDocument(None, None, None, None)


def shell_document(text: str | None) -> ShellDocument:
    """The top-level members of a document; of equal names the last counts.

    >>> shell_document('{"_id": ObjectId("64650cf67dc36a464e76e583"), "n": NumberLong("5"), "tags": ["a", 1.50]}').values
    {'_id': '64650cf67dc36a464e76e583', 'n': '5', 'tags': '["a",1.50]'}
    >>> shell_document("[1]").reason
    'row-not-an-object'
    """
    if text is None:
        return NOTHING
    try:
        reader = Reader(text)
        members = reader.members(0)
        reader.end()
    except NotADocument:
        return NOTHING._replace(reason=NOT_A_DOCUMENT)
    return ShellDocument(
        {name: v.text for name, v in members.items()}, {name: v.kind for name, v in members.items()}, None, None
    )


def shell_patch(text: str | None) -> ShellDocument:
    """What an update by operators sets and removes; any other operator, or a member that is none, is an
    `unknown-patch`.

    >>> shell_patch('{"$unset": {"a": true}, "$set": {"b": 1}}')[:3]
    ({'b': '1'}, {'b': 'int'}, ['a'])
    >>> shell_patch('{"$inc": {"a": 1}}').reason
    'unknown-patch'
    """
    if text is None:
        return NOTHING
    try:
        reader = Reader(text)
        operators = reader.operators()
        reader.end()
    except NotADocument:
        return NOTHING._replace(reason=NOT_A_DOCUMENT)
    if any(name not in ("$set", "$unset") or members is None for name, members in operators.items()):
        return NOTHING._replace(reason=UNKNOWN_PATCH)
    members = operators.get("$set") or {}
    removed = list(operators.get("$unset") or {})
    return ShellDocument(
        {name: v.text for name, v in members.items()}, {name: v.kind for name, v in members.items()}, removed, None
    )


class Reader:
    """One pass over a text."""

    def __init__(self, text: str) -> None:
        self.text, self.position = text, 0

    # --- tokens

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """What stands here, behind blanks; passes over it."""
        self.position = BLANKS.match(self.text, self.position).end()
        found = pattern.match(self.text, self.position)
        if found:
            self.position = found.end()
        return found

    def sees(self, sign: str) -> bool:
        self.position = BLANKS.match(self.text, self.position).end()
        if not self.text.startswith(sign, self.position):
            return False
        self.position += len(sign)
        return True

    def need(self, sign: str) -> None:
        if not self.sees(sign):
            raise NotADocument

    def end(self) -> None:
        if BLANKS.match(self.text, self.position).end() != len(self.text):
            raise NotADocument

    def quoted(self) -> str | None:
        found = self.match(DOUBLE_QUOTED) or self.match(SINGLE_QUOTED)
        return unquoted(found[0]) if found else None

    # --- documents

    def names(self, depth: int, read: Callable[[], object]) -> dict[str, object]:
        """Name -> what `read` takes from behind the colon, for each member of an object."""
        if depth > DEEPEST:
            raise NotADocument
        self.need("{")
        out: dict[str, object] = {}
        if self.sees("}"):
            return out
        while True:
            name = self.quoted()
            if name is None:
                word = self.match(WORD)
                if not word:
                    raise NotADocument
                name = word[0]
            self.need(":")
            out.pop(name, None)
            out[name] = read()
            if self.sees("}"):
                return out
            self.need(",")

    def members(self, depth: int) -> dict[str, Value]:
        return self.names(depth, lambda: self.value(depth + 1))  # type: ignore[return-value]

    def operators(self) -> dict[str, dict[str, Value] | None]:
        """The operators of an update, each with the members of its object; None where it has none."""

        def operand() -> dict[str, Value] | None:
            start = self.position
            try:
                return self.members(1)
            except NotADocument:
                self.position = start
                self.value(1)
                return None

        return self.names(0, operand)  # type: ignore[return-value]

    # --- values

    def value(self, depth: int) -> Value:
        if depth > DEEPEST:
            raise NotADocument
        self.position = BLANKS.match(self.text, self.position).end()
        sign = self.text[self.position : self.position + 1]
        if sign == "{":
            text = "{" + ",".join(f"{quote(name)}:{v.json}" for name, v in self.members(depth).items()) + "}"
            return Value("object", text, text)
        if sign == "[":
            text = "[" + ",".join(v.json for v in self.elements("[", "]", depth)) + "]"
            return Value("array", text, text)
        if sign in ('"', "'"):
            text = self.quoted()
            if text is None:
                raise NotADocument
            return Value("string", text, quote(text))
        return self.scalar(depth)

    def elements(self, opening: str, closing: str, depth: int) -> list[Value]:
        self.need(opening)
        out: list[Value] = []
        if self.sees(closing):
            return out
        while True:
            out.append(self.value(depth + 1))
            if self.sees(closing):
                return out
            self.need(",")

    def scalar(self, depth: int) -> Value:
        number = self.match(NUMBER)
        if number:
            return Value("double" if number[1] or number[2] else "int", number[0], number[0])
        infinite = self.match(INFINITE)
        if infinite:
            return Value("double", infinite[0], f'{{"$numberDouble":"{infinite[0]}"}}')
        pattern = self.match(PATTERN)
        if pattern:
            return Value(
                "regex",
                pattern[0],
                f'{{"$regularExpression":{{"pattern":{quote(pattern[1])},"options":"{pattern[2]}"}}}}',
            )
        return self.word(depth)

    def word(self, depth: int) -> Value:
        """A word that is a value, or a constructor with what is in its brackets."""
        start = self.position
        new = self.match(NEW)
        word = self.match(WORD)
        if not word:
            raise NotADocument
        name, behind = word[0], self.position
        if not self.sees("("):
            self.position = behind
            if new or name not in WORDS:
                raise NotADocument
            return named(name)
        self.position = BLANKS.match(self.text, behind).end()
        arguments = self.elements("(", ")", depth)
        if name in ("MinKey", "MaxKey") and not arguments:
            return named(name)
        made = CONSTRUCTORS[name](*arguments) if name in CONSTRUCTORS and len(arguments) == ARGUMENTS[name] else None
        text = self.text[start : self.position]
        return made or Value(KINDS.get(name, name), text, quote(text))


def named(word: str) -> Value:
    return Value(WORDS[word], None if word == "null" else word, EXTENDED_WORDS.get(word, word))


def unquoted(token: str) -> str:
    """The text of a token in quotes; half a surrogate pair becomes U+FFFD."""
    if token[0] == "'":
        token = (
            '"'
            + re.sub(
                r"\\(.)|(\")", lambda m: "'" if m[1] == "'" else '\\"' if m[2] else m[0], token[1:-1], flags=re.DOTALL
            )
            + '"'
        )
    if "\\" not in token:
        return token[1:-1]
    try:
        text = json.loads(token, strict=False)
    except ValueError:
        raise NotADocument from None
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


# --- constructors: what they make of their arguments; None where these are not theirs


def object_id(given: Value) -> Value | None:
    text = (given.text or "").lower()
    return Value("objectId", text, f'{{"$oid":"{text}"}}') if IDENTIFIER.fullmatch(text) else None


def whole_number(kind: str, extended: str) -> Callable[[Value], Value | None]:
    def make(given: Value) -> Value | None:
        return Value(kind, given.text, extended % given.text) if DIGITS.fullmatch(given.text or "") else None

    return make


def decimal(given: Value) -> Value | None:
    return (
        Value("decimal", given.text, f'{{"$numberDecimal":"{given.text}"}}')
        if DECIMAL.fullmatch(given.text or "")
        else None
    )


def date(given: Value) -> Value | None:
    """An instant, of its text or of milliseconds since 1970."""
    instant = instant_of_text(given.text or "") if given.kind == "string" else instant_of_milliseconds(given.text or "")
    return Value("date", instant, f'{{"$date":"{instant}"}}') if instant else None


def instant_of_text(text: str) -> str | None:
    found = INSTANT.fullmatch(text)
    if not found:
        return None
    day, minutes, seconds, fraction, hours_off, minutes_off = found.groups()
    try:
        clock = datetime.fromisoformat(f"{day}T{minutes or '00:00'}{seconds or ':00'}")
        if hours_off:
            away = timedelta(hours=abs(int(hours_off)), minutes=int(minutes_off or 0))
            clock = clock + away if hours_off[0] == "-" else clock - away
    except (ValueError, OverflowError):
        return None
    return with_fraction(clock, fraction or "")


def instant_of_milliseconds(text: str) -> str | None:
    if not DIGITS.fullmatch(text) or len(text) > 16:
        return None
    try:
        instant = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=int(text))
    except OverflowError:
        return None
    return with_fraction(instant, f"{instant.microsecond // 1000:03}")


def with_fraction(clock: datetime, fraction: str) -> str:
    digits = fraction.rstrip("0")
    return f"{clock.year:04}-{clock:%m-%dT%H:%M:%S}{'.' + digits if digits else ''}Z"


def binary(kind: Value, given: Value) -> Value | None:
    text = given.text or ""
    # SUBTYPE bounds the digits: Python refuses to read thousands of them.
    fits = (
        BASE64.fullmatch(text)
        and len(text) % 4 == 0
        and SUBTYPE.fullmatch(kind.text or "")
        and int(kind.text or "") <= 255
    )
    return (
        Value("binData", text, f'{{"$binary":{{"base64":"{text}","subType":"{int(kind.text or ""):02x}"}}}}')
        if fits
        else None
    )


def binary_in_hex(kind: Value, given: Value) -> Value | None:
    if not HEXADECIMAL.fullmatch(given.text or ""):
        return None
    return binary(kind, Value("string", base64.b64encode(bytes.fromhex(given.text or "")).decode(), ""))


def uuid(given: Value) -> Value | None:
    return Value("binData", given.text, f'{{"$uuid":{given.json}}}') if IDENTITY.fullmatch(given.text or "") else None


def timestamp(seconds: Value, increment: Value) -> Value | None:
    if not (DIGITS.fullmatch(seconds.text or "") and DIGITS.fullmatch(increment.text or "")):
        return None
    return Value(
        "timestamp", f"{seconds.text}:{increment.text}", f'{{"$timestamp":{{"t":{seconds.text},"i":{increment.text}}}}}'
    )


CONSTRUCTORS: dict[str, Callable[..., Value | None]] = {
    "ObjectId": object_id, "NumberLong": whole_number("long", '{"$numberLong":"%s"}'), "NumberInt": whole_number("int", "%s"), "NumberDecimal": decimal,
    "ISODate": date, "Date": date, "BinData": binary, "HexData": binary_in_hex, "UUID": uuid, "Timestamp": timestamp,
}  # fmt: skip
ARGUMENTS = {name: 2 if name in ("BinData", "HexData", "Timestamp") else 1 for name in CONSTRUCTORS}
KINDS = {
    "ObjectId": "objectId", "NumberLong": "long", "NumberInt": "int", "NumberDecimal": "decimal", "ISODate": "date", "Date": "date",
    "BinData": "binData", "HexData": "binData", "UUID": "binData", "Timestamp": "timestamp",
}  # fmt: skip
