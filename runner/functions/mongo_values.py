"""Values of MongoDB's shell, and what its constructors make of their arguments, as text and as extended JSON."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

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


class Value(NamedTuple):
    """A value: the name of its type, its text at the top level, and its JSON inside other values."""

    kind: str
    text: str | None
    json: str


def quote(text: str) -> str:
    """The text as a string of JSON."""
    return json.dumps(text, ensure_ascii=False)


def value_of_word(word: str) -> Value:
    """The value of one of WORDS."""
    return Value(WORDS[word], None if word == "null" else word, EXTENDED_WORDS.get(word, word))


# --- constructors: the value that they make of their arguments; None if they do not take such arguments


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
    """An instant, from its text or from milliseconds since 1970."""
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
    "ObjectId": object_id,
    "NumberLong": whole_number("long", '{"$numberLong":"%s"}'),
    "NumberInt": whole_number("int", "%s"),
    "NumberDecimal": decimal,
    "ISODate": date,
    "Date": date,
    "BinData": binary,
    "HexData": binary_in_hex,
    "UUID": uuid,
    "Timestamp": timestamp,
}
ARGUMENTS = {name: 2 if name in ("BinData", "HexData", "Timestamp") else 1 for name in CONSTRUCTORS}
# The types that constructors make, also of arguments that they do not take.
KINDS = {
    "ObjectId": "objectId",
    "NumberLong": "long",
    "NumberInt": "int",
    "NumberDecimal": "decimal",
    "ISODate": "date",
    "Date": "date",
    "BinData": "binData",
    "HexData": "binData",
    "UUID": "binData",
    "Timestamp": "timestamp",
}
