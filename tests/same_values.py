"""Whether a value of a mirror is that of the database, which may write it in another way."""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any


def is_same(told: Any, in_database: Any) -> bool:
    """Whether a value of a mirror is that of the database: numbers, times and documents have several spellings."""
    if told is None or in_database is None:
        return told is in_database
    if isinstance(told, bool) or isinstance(in_database, bool):
        return told == (in_database in (True, "1"))
    text = in_database if isinstance(in_database, str) else _written(in_database)
    if isinstance(in_database, str) and told == json.dumps(in_database, ensure_ascii=False):
        return True  # a text in a document
    readings = (str, number_of, time_of, _document)
    return any(read(str(told)) == read(text) is not None for read in readings) or _is_same_bits(str(told), text)


def _written(value: Any) -> str:
    """A value of the database as JSON, with the digits of its numbers."""
    match value:
        case dict():
            return "{" + ", ".join(f"{json.dumps(name)}: {_written(one)}" for name, one in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_written, value)) + "]"
        case Decimal():
            return str(value)
        case _:
            return json.dumps(value)


def _is_same_bits(told: str, in_database: str) -> bool:
    """Bytes are hex behind a mark in the database; bits a number in the mirror."""
    bits = re.fullmatch("[01]+", in_database) and str(int(in_database, 2))
    return told in (in_database.removeprefix("\\x"), bits)


def number_of(text: str) -> Decimal | None:
    try:
        return Decimal(text.strip('"'))
    except InvalidOperation:
        return None


def time_of(text: str) -> str | None:
    """An instant in UTC, or a wall clock."""
    match = re.fullmatch(r"\+?(\d{4,5}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.0+|(\.\d+?)0*)?(Z|\+00:00|\+00)?", text)
    return match and f"{match[1]} {match[2]}{match[3] or ''}"


def _document(text: str) -> Any:
    """A document, or a list as PostgreSQL writes it."""
    if re.fullmatch(r"\{[^:]*\}", text):
        return text.strip("{}").split(",")
    try:
        return json.loads(text, parse_float=_plain, parse_int=_plain)
    except ValueError:
        return None


def _plain(number: str) -> str:
    return str(Decimal(number).normalize())
