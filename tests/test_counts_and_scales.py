"""Clocks that are sent as counts, decimals that are sent as bytes and a scale, bits from the lowest byte: hundreds of
values against Python's own arithmetic.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal, localcontext
from typing import Any

FORMAT = "about: x\nop: {by: op, cases: {c: insert}}\nafter: after\ntypes: {at: types, table: t}\n"
TYPES = """
decimal: [{name: dec, as: unscaled}, {name: vdec, as: variable_scale}]
date: [{name: days, as: epoch_days}]
datetime: [{name: clock3, as: clock_ms}, {name: clock6, as: clock_us}, {name: clock9, as: clock_ns}]
time: [{name: day3, as: day_ms}, {name: day6, as: day_us}, {name: day9, as: day_ns}]
bit: [{name: bits, as: base64_little_endian}]
"""
NUMBERS = (0, -1, 1, 127, 128, -128, -129, 255, 2**63 - 1, -(2**63), 2**64, -(2**64), 10**38, -(10**38), 10**65 - 1)


def in_base64(number: int) -> str:
    length = max(1, (number if number >= 0 else ~number).bit_length() // 8 + 1)
    return base64.b64encode(number.to_bytes(length, "big", signed=True)).decode()


def scaled(number: int, scale: int) -> str:
    with localcontext() as context:
        context.prec = 1000
        return format(Decimal(number).scaleb(-scale), "f")


def fraction(count: int, digits: int) -> str:
    return f".{count:0{digits}}".rstrip("0").rstrip(".")


def decimals() -> Iterator[tuple[str, Any, str]]:
    """Type, value as sent, canonical text."""
    numbers = [sign * (0xA5 << bits >> 8) for bits in (8, 31, 62, 64, 65, 127, 128, 129, 400) for sign in (1, -1)]
    for number in (*NUMBERS, *numbers):
        for scale in (0, 2, 40, -3):
            yield f"dec({scale})", in_base64(number), scaled(number, scale)
        yield "vdec", {"scale": 5, "value": in_base64(number)}, scaled(number, 5)


def clocks() -> Iterator[tuple[str, Any, str]]:
    for digits in (3, 6, 9):
        unit = 10**digits
        last = 253402300799 * unit + unit - 1 if digits < 9 else 2**63 - 2  # the last one stands for infinity
        for count in (0, 1, -1, last, -987_654_321_012_345_678 // 10 ** (9 - digits)):
            seconds, rest = divmod(count, unit)
            clock = datetime(1970, 1, 1) + timedelta(seconds=seconds)
            yield f"clock{digits}", count, f"{clock}{fraction(rest, digits)}"
        for count in (0, 1, -1, 86_399 * unit, 86_400 * unit + 10, -3_020_399 * unit, 54_321 * unit + unit // 3):
            seconds, rest = divmod(abs(count), unit)
            clock_text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
            yield f"day{digits}", count, f"{'-' * (count < 0)}{clock_text}{fraction(rest, digits)}"
    for days in (0, 1, -1, 18_000, -719_162, 2_932_896):
        yield "days", days, str(date(1970, 1, 1) + timedelta(days=days))


def bits() -> Iterator[tuple[str, Any, str]]:
    for number, length in ((5, 1), (256, 2), (2**63 + 5, 8), (0, 3)):
        yield "bits", base64.b64encode(number.to_bytes(length, "little")).decode(), str(number)


def unreadable() -> Iterator[tuple[str, Any]]:
    yield from [("dec", "AQ=="), ("dec(2)", "no"), ("dec(2)", "1.50"), ("vdec", '{"value": "AQ=="}'), ("bits", "A")]
    yield from [("clock3", "2024-05-01"), ("clock3", "1e3"), ("clock6", 10**19), ("clock9", 10**20), ("day3", "10:00")]
    yield from [("days", 2_932_897), ("days", -719_163), ("days", "1.0")]


def test_against_python(project, runner, spark: object) -> None:
    known = list(enumerate([*decimals(), *clocks(), *bits()]))
    unknown = list(enumerate(unreadable(), len(known)))
    sent = {str(number): (kind, value) for number, (kind, value, *_) in [*known, *unknown]}
    types, after = ({column: one[part] for column, one in sent.items()} for part in (0, 1))
    message = json.dumps({"op": "c", "types": types, "after": after})
    project({"formats/f.yml": FORMAT, "formats/types/t.yml": TYPES, "m.jsonl": message})
    row = json.loads(runner("parse", "f", "m.jsonl").out)
    assert {number: row["after"][str(number)] for number, _ in known} == {n: text for n, (_, _, text) in known}
    assert row["meta"]["as_sent"].split(",") == sorted(str(number) for number, _ in unknown)
