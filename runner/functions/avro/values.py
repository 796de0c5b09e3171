"""Canonical texts of values of records; None for a value that does not fit its class, and stays as it was sent."""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, NamedTuple

from runner.functions.avro.times import Parts, clock_text, days_text, epoch_text, is_shown, time_of_day_text

PLAIN_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
EXPONENT = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]*))?[eE]([+-]?[0-9]{1,5})")
MAX_EXPONENT = 10_000
# The numbers of one image, when they are written out, may together get this many characters longer.
MAX_LONGER = 100_000
# Zeros before a number that its scale asks for do not count up to this many, so usual numbers are written at once.
USUAL_ZEROS = 38
MAX_NUMBER_BYTES = 1_000  # Python refuses to write numbers of more than 4,300 digits


class AsSent(str):
    """The text of a value that does not fit its class, as it was sent."""


class Settled(str):
    """The text of a value that was not sent as text: no type says that the value stands for something else."""


class Longer(NamedTuple):
    """A number that gets longer when it is written out: its text as sent, its `digits`, and the place of their dot."""

    sent: str
    sign: str
    digits: str
    dot: int

    def text(self) -> str:
        if self.dot <= 0:
            whole = f"0.{'0' * -self.dot}{self.digits}"
        elif self.dot >= len(self.digits):
            whole = self.digits.ljust(self.dot, "0")
        else:
            whole = f"{self.digits[: self.dot]}.{self.digits[self.dot :]}"
        return self.sign + re.sub("^0+(?=[0-9])", "", whole)

    def growth(self) -> int:
        """Returns how many characters longer the number gets."""
        return max(len(self.text()) - len(self.sent), 0)


def written_out(values: Collection[Any]) -> list[Any]:
    """Returns the values of an image with numbers written out; all stay as sent if they get too long together."""
    room = MAX_LONGER
    for value in values:
        if value.__class__ is Longer and (room := room - value.growth()) < 0:
            return [AsSent(one.sent) if one.__class__ is Longer else one for one in values]
    return [value.text() if value.__class__ is Longer else value for value in values]


def bytes_text(value: bytes) -> str:
    """Returns the bytes in base64."""
    return base64.b64encode(value).decode("ascii")


def double_text(value: float) -> str:
    """Returns the shortest text that reads back to the same number.

    >>> [double_text(x) for x in (0.1, 5.0, 1e20, float("-inf"), -0.0)]
    ['0.1', '5', '1e+20', '-Infinity', '-0']
    """
    text = repr(value)
    if text[-1] in "fn":
        return {"inf": "Infinity", "-inf": "-Infinity"}.get(text, "NaN")
    return text.removesuffix(".0")


def float_text(value: float) -> str:
    """Returns the shortest text that reads back to the same number of 32 bits.

    >>> float_text(struct.unpack("<f", struct.pack("<f", 3.14))[0])
    '3.14'
    """
    if value - value != 0:
        return double_text(value)
    packed = struct.pack("<f", value)
    # Six digits are never too many, except for the smallest numbers, which have fewer bits.
    for digits in range(6 if abs(value) > 1.2e-38 else 1, 10):
        shorter = float(f"{value:.{digits}g}")
        if abs(shorter) < 3.4028236e38 and struct.pack("<f", shorter) == packed:
            return double_text(shorter)
    return double_text(value)


def json_text(value: Any) -> str:
    """Returns compact JSON, with bytes in base64, and in quotes the floating-point values that are not numbers.

    >>> json_text([5, "\U0001f600", b"A", float("nan")])
    '[5,"\U0001f600","QQ==","NaN"]'
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=bytes_text)
    except ValueError:
        return json_text(_without_nan(value))


def _without_nan(value: Any) -> Any:
    match value:
        case dict():
            return {name: _without_nan(one) for name, one in value.items()}
        case list():
            return [_without_nan(one) for one in value]
        case float() if value - value != 0:
            return double_text(value)
    return value


def number_text(value: Any) -> str | Longer | None:
    """Returns a number without exponent, or one that has to be written out; None for a value that is not a number.

    >>> [number_text(value) for value in ("1.50", 7, 0.5, "x", b"1", True)]
    ['1.50', '7', '0.5', None, None, None]
    >>> [number_text(text).text() for text in ("-12.5e-3", "1E3", "00e1")]
    ['-0.0125', '1000', '0']
    >>> number_text("1e10001")
    """
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    text = value if isinstance(value, str) else digits_text(value)
    if PLAIN_DECIMAL.fullmatch(text):
        return text
    found = EXPONENT.fullmatch(text)
    if not found or abs(int(found[4])) > MAX_EXPONENT:
        return None
    whole, fraction = found[2], found[3] or ""
    return Longer(text, found[1].replace("+", ""), whole + fraction, len(whole) + int(found[4]))


def digits_text(value: float) -> str:
    """Returns the text of a number of Python."""
    return double_text(value) if isinstance(value, float) else str(value)


def shown_text(parts: Parts) -> str | None:
    """Returns a date, a time or both; as sent, if no calendar and no clock shows it.

    >>> shown_text({"year": 2024, "month": 2, "day": 30}), type(shown_text({"year": 2024, "month": 2, "day": 30}))
    ('2024-02-30', <class 'runner.functions.avro.values.AsSent'>)
    """
    text = clock_text(parts)
    return text if text is None or is_shown(text) else AsSent(text)


def bit_text(text: str, length: int | None = None) -> str | None:
    """Returns a bit string as a number without sign. A text of `length` zeros and ones is read as binary digits; so is
    a shorter text that is not a decimal number of so many bits.

    >>> [bit_text(*one) for one in (("0101", 4), ("11", 8), ("101", 5), ("011", 8), ("5", 4), ("x", 1))]
    ['5', '11', '5', '3', '5', None]
    """
    if length is not None and 0 < len(text) <= length <= 8 * MAX_NUMBER_BYTES and not text.strip("01"):
        is_decimal = len(text) < length and (text[0] != "0" or text == "0") and int(text) < 2**length
        return text if is_decimal else str(int(text, 2))
    return text if text.isascii() and text.isdigit() else None


def enum_text(text: str, labels: Sequence[str] | None) -> str | None:
    """Returns a label of an enum, given as a label or by its number, which counts from 1.

    >>> [enum_text(t, ["a", "b"]) for t in ("b", "2", "0", "3")]
    ['b', 'b', '', None]
    """
    if not labels or text in labels or not text:
        return text
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
    return labels[number - 1] if 0 < number <= len(labels) else "" if number == 0 else None


def set_text(text: str, labels: Sequence[str] | None) -> str | None:
    """Returns the labels of a set, given as labels or as a number with a bit for each.

    >>> [set_text(t, ["a", "b", "c"]) for t in ("a,c", "5", "0", "8")]
    ['a,c', 'a,c', '', None]
    """
    if not labels or not text or frozenset(labels).issuperset(text.split(",")):
        return text
    mask = int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else 1 << 64
    return None if mask >> len(labels) else ",".join(label for bit, label in enumerate(labels) if mask >> bit & 1)


# --- logical types


def logical_text(logical: str | None, scale: int) -> Callable[[Any], str | Longer | None] | None:
    """Returns the function that makes text of a logical type's values; None if values stay as they are."""
    units = {"millis": 3, "micros": 6, "nanos": 9}
    kind, _, unit = (logical or "").rpartition("-")
    match kind, logical:
        case _, "decimal":
            return partial(scaled_text, scale)
        case _, "date":
            return days_text
        case "time", _ if unit in units:
            return partial(time_of_day_text, units[unit])
        case "timestamp", _ if unit in units:
            return partial(epoch_text, units[unit], "T", "Z")
        case "local-timestamp", _ if unit in units:
            return partial(epoch_text, units[unit], " ", "")
    return None


def scaled_text(scale: int, value: bytes) -> str | Longer | None:
    """Returns a whole number in two's complement, with a dot before its last `scale` digits.

    >>> scaled_text(2, (-200).to_bytes(2, "big", signed=True)), scaled_text(3, b"5"), scaled_text(0, b"")
    ('-2.00', '0.053', '0')
    >>> len(scaled_text(1000, b"5").text())
    1002
    """
    if not 0 <= scale <= MAX_EXPONENT or len(value) > MAX_NUMBER_BYTES:
        return None
    number = int.from_bytes(value, "big", signed=True)
    sign, digits = "-" if number < 0 else "", str(abs(number))
    if scale - len(digits) > USUAL_ZEROS:
        return Longer(bytes_text(value), sign, digits, len(digits) - scale)
    digits = digits.rjust(scale + 1, "0")
    whole, fraction = digits[: len(digits) - scale], digits[len(digits) - scale :]
    return sign + whole + (f".{fraction}" if fraction else "")
