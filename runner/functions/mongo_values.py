"""Values of MongoDB's shell, and the results of its constructors, as text and as extended JSON."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from typing import NamedTuple
from uuid import UUID

DIGITS = re.compile(r"-?(?:0|[1-9][0-9]*)")
DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|NaN|[+-]?Infinity")
WITH_EXPONENT = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]*))?[eE]([+-]?[0-9]{1,5})")
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
# The largest exponent that is written out, and the most characters that this may add to a document.
MAX_EXPONENT, MAX_GROWTH = 10_000, 100_000
EXTENDED_WORDS = {"undefined": '{"$undefined":true}', "MinKey": '{"$minKey":1}', "MaxKey": '{"$maxKey":1}'}


class Value(NamedTuple):
    """A value: the name of its type, its text at the top level, and its JSON inside other values. `fits` is False if a
    constructor of that type does not take its arguments: then both texts are the constructor's own text.
    """

    kind: str
    text: str | None
    json: str
    fits: bool = True

    @property
    def has_exponent(self) -> bool:
        """True if the value is a decimal or a whole number with an exponent."""
        return self.fits and self.kind in ("decimal", "long", "int") and "E" in (self.text or "").upper()


def quote(text: str) -> str:
    """Returns the text as a string of JSON."""
    return json.dumps(text, ensure_ascii=False)


def value_of_word(word: str) -> Value:
    """Returns the value of one of WORDS."""
    return Value(WORDS[word], None if word == "null" else word, EXTENDED_WORDS.get(word, word))


# --- exponents


def exponents_written_out(values: Mapping[str, Value]) -> dict[str, str]:
    """Returns texts without an exponent, by name, for the values that have an exponent of up to MAX_EXPONENT. No text
    is written out if all together would become more than MAX_GROWTH characters longer.

    >>> exponents_written_out({"a": Value("decimal", "1.5E+3", ""), "b": Value("double", "1e3", "")})
    {'a': '1500'}
    """
    out: dict[str, str] = {}
    growth = 0
    for name, value in values.items():
        text = value.text or ""
        written = written_out(text) if value.has_exponent else None
        if written is not None:
            out[name] = written
            growth += len(written) - len(text)
            if growth > MAX_GROWTH:
                return {}
    return out


def written_out(text: str) -> str | None:
    """Returns a number without its exponent; None if it has no exponent, or one above MAX_EXPONENT.

    >>> written_out("-1.50E+3"), written_out("15E-3"), written_out("1E10001")
    ('-1500', '0.015', None)
    """
    found = WITH_EXPONENT.fullmatch(text)
    if not found or abs(int(found[4])) > MAX_EXPONENT:
        return None
    digits, point = found[2] + (found[3] or ""), len(found[2]) + int(found[4])
    if point <= 0:
        digits, point = "0" * (1 - point) + digits, 1
    whole = digits[:point].ljust(point, "0").lstrip("0") or "0"
    return f"{found[1].strip('+')}{whole}{'.' if digits[point:] else ''}{digits[point:]}"


def is_whole(text: str) -> bool:
    """Returns True if the text is a whole number; an exponent may make digits behind the point whole."""
    found = WITH_EXPONENT.fullmatch(text)
    return len(found[3] or "") <= int(found[4]) if found else bool(DIGITS.fullmatch(text))


# --- constructors: the value that they make of their arguments; None if they do not take such arguments


def object_id(given: Value) -> Value | None:
    text = (given.text or "").lower()
    return Value("objectId", text, f'{{"$oid":"{text}"}}') if IDENTIFIER.fullmatch(text) else None


def whole_number(kind: str, extended: str) -> Callable[[Value], Value | None]:
    def make(given: Value) -> Value | None:
        return Value(kind, given.text, extended % given.text) if is_whole(given.text or "") else None

    return make


def decimal(given: Value) -> Value | None:
    return (
        Value("decimal", given.text, f'{{"$numberDecimal":"{given.text}"}}')
        if DECIMAL.fullmatch(given.text or "")
        else None
    )


def date(given: Value) -> Value | None:
    """Returns an instant, from its text or from milliseconds since 1970."""
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


def binary(subtype: Value, given: Value) -> Value | None:
    text = given.text or ""
    return bytes_of(subtype, base64.b64decode(text)) if BASE64.fullmatch(text) and len(text) % 4 == 0 else None


def binary_in_hex(subtype: Value, given: Value) -> Value | None:
    text = given.text or ""
    return bytes_of(subtype, bytes.fromhex(text)) if HEXADECIMAL.fullmatch(text) else None


def uuid(given: Value) -> Value | None:
    text = given.text or ""
    return identity(bytes.fromhex(text.replace("-", ""))) if IDENTITY.fullmatch(text) else None


def bytes_of(subtype: Value, data: bytes) -> Value | None:
    """Returns bytes of a subtype: base64, or a UUID. Returns None if there is no such subtype."""
    number = subtype.text or ""
    # SUBTYPE limits the digits, because Python refuses to convert thousands of digits.
    if not SUBTYPE.fullmatch(number) or int(number) > 255:
        return None
    # The bytes of subtype 3 are UUIDs too, but each driver has its own order of them.
    if int(number) == 4 and len(data) == 16:
        return identity(data)
    text = base64.b64encode(data).decode()
    return Value("binData", text, f'{{"$binary":{{"base64":"{text}","subType":"{int(number):02x}"}}}}')


def identity(data: bytes) -> Value:
    """Returns a UUID: the same text in whatever notation it came."""
    text = str(UUID(bytes=data))
    return Value("binData", text, f'{{"$uuid":"{text}"}}')


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
