"""Values as they stand in records -> their canonical text; None for what does not fit its class, and stays as sent."""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
FIRST_SECOND, LAST_SECOND = -62135596800, 253402300799  # of the years 1 to 9999
PLAIN_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
EXPONENT = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]*))?[eE]([+-]?[0-9]{1,5})")
FRACTIONS = (("nano", 9, 10**9), ("micro", 6, 10**6), ("milli", 3, 10**3))
MOST_BYTES_OF_A_NUMBER = 1_000  # Python refuses to write numbers of over 4,300 digits
OFFSET = re.compile(r"([+-])(0[0-9]|1[0-8]):?([0-5][0-9])")


def bytes_text(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def double_text(value: float) -> str:
    """The shortest text that reads back to the same number.

    >>> [double_text(x) for x in (0.1, 5.0, 1e20, float("-inf"), -0.0)]
    ['0.1', '5', '1e+20', '-Infinity', '-0']
    """
    text = repr(value)
    if text[-1] in "fn":
        return {"inf": "Infinity", "-inf": "-Infinity"}.get(text, "NaN")
    return text.removesuffix(".0")


def float_text(value: float) -> str:
    """The same for a number of 32 bits.

    >>> float_text(struct.unpack("<f", struct.pack("<f", 3.14))[0])
    '3.14'
    """
    if value - value != 0:
        return double_text(value)
    packed = struct.pack("<f", value)
    # Six digits are never too many, but for the smallest numbers, which have fewer bits.
    for digits in range(6 if abs(value) > 1.2e-38 else 1, 10):
        shorter = float(f"{value:.{digits}g}")
        if abs(shorter) < 3.4028236e38 and struct.pack("<f", shorter) == packed:
            return double_text(shorter)
    return double_text(value)


def json_text(value: Any) -> str:
    """Compact JSON; bytes in it as base64."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=bytes_text)


def decimal_text(text: str) -> str | None:
    """
    >>> [decimal_text(t) for t in ("1.50", "-12.5e-3", "1E3", "1e99999", "x")]
    ['1.50', '-0.0125', '1000', None, None]
    """
    if PLAIN_DECIMAL.fullmatch(text):
        return text
    found = EXPONENT.fullmatch(text)
    if not found or abs(int(found[4])) > 10_000:
        return None
    sign, digits, dot = found[1].replace("+", ""), found[2] + (found[3] or ""), len(found[2]) + int(found[4])
    if dot <= 0:
        whole = f"0.{'0' * -dot}{digits}"
    elif dot >= len(digits):
        whole = digits.ljust(dot, "0")
    else:
        whole = f"{digits[:dot]}.{digits[dot:]}"
    return sign + re.sub("^0+(?=[0-9])", "", whole)


def bit_text(text: str, length: int | None) -> str | None:
    """A bit string as a number without sign: binary digits if there are as many as bits.

    >>> bit_text("0101", 4), bit_text("11", 8), bit_text("5", 4), bit_text("x", 1)
    ('5', '11', '5', None)
    """
    if length is not None and 0 < len(text) == length <= 8 * MOST_BYTES_OF_A_NUMBER and not text.strip("01"):
        return str(int(text, 2))
    return text if text.isascii() and text.isdigit() else None


def enum_text(text: str, labels: Sequence[str] | None) -> str | None:
    """
    >>> [enum_text(t, ["a", "b"]) for t in ("b", "2", "0", "3")]
    ['b', 'b', '', None]
    """
    if not labels or text in labels or not text:
        return text
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
    return labels[number - 1] if 0 < number <= len(labels) else "" if number == 0 else None


def set_text(text: str, labels: Sequence[str] | None) -> str | None:
    """
    >>> [set_text(t, ["a", "b", "c"]) for t in ("a,c", "5", "0", "8")]
    ['a,c', 'a,c', '', None]
    """
    if not labels or not text or frozenset(labels).issuperset(text.split(",")):
        return text
    mask = int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else 1 << 64
    return None if mask >> len(labels) else ",".join(label for bit, label in enumerate(labels) if mask >> bit & 1)


# --- times from their parts


def clock_text(parts: Mapping[str, Any]) -> str | None:
    """A date, a time, both, or a year alone, by the parts that are there.

    >>> clock_text({"hour": 838, "minute": 59, "second": 5, "nano": 500000000, "negative": True})
    '-838:59:05.5'
    >>> clock_text({"year": 2024, "month": 2, "day": 30, "hour": 1, "minute": 2, "second": 3, "micro": None})
    '2024-02-30 01:02:03'
    """
    get = parts.get
    negative = get("negative")
    year, month, day, hour, minute, second = (
        get("year"),
        get("month"),
        get("day"),
        get("hour"),
        get("minute"),
        get("second"),
    )
    fraction = _fraction(parts)
    if (
        fraction is not None
        and not negative
        and None not in (year, month, day, hour, minute, second)
        and min(year, month, day, hour, minute, second) >= 0
    ):
        # Nearly all values; the rest of the ways give the same for these.
        text = f"{year:04d}-{month:02d}-{day:02d} {hour:02d}:{minute:02d}:{second:02d}"
        if len(text) == 19:
            return text + fraction
    if (
        fraction is None
        and hour is not None
        and minute is not None
        and second is not None
        and max(hour, minute, second) <= 0
    ):
        # Of a negative time each part is negative, its fraction too.
        fraction, negative = _fraction({name: -parts[name] for name, _, _ in FRACTIONS if parts.get(name)}), True
    if fraction is None:
        return None
    match _given(year, month, day), _given(hour, minute, second):
        case "all", "all":
            date, time = _date(year, month, day), _time(hour, minute, second, fraction, negative)
            return f"{date} {time}" if date and time and time[0] != "-" else None
        case "none", "all":
            return _time(hour, minute, second, fraction, negative)
        case "all", "none" if not fraction:
            return _date(year, month, day)
        case "some", "none" if month is None and day is None and not fraction and 0 <= year <= 9999:
            return str(year)
    return None


def _given(*values: int | None) -> str:
    return "all" if None not in values else "some" if any(value is not None for value in values) else "none"


def _date(year: int, month: int, day: int) -> str | None:
    return f"{year:04d}-{month:02d}-{day:02d}" if 0 <= year <= 9999 and 0 <= month <= 99 and 0 <= day <= 99 else None


def _time(hour: int, minute: int, second: int, fraction: str, negative: bool | None) -> str | None:
    if abs(minute) > 99 or abs(second) > 99:
        return None
    sign = "-" if negative or hour < 0 or minute < 0 or second < 0 else ""
    return f"{sign}{abs(hour):02d}:{abs(minute):02d}:{abs(second):02d}{fraction}"


def _fraction(parts: Mapping[str, Any]) -> str | None:
    """The fraction of a second with its dot, without zeros at its end; None if it is none."""
    for name, digits, whole in FRACTIONS:
        number = parts.get(name)
        if number:
            return f".{number:0{digits}d}".rstrip("0") if 0 < number < whole else None
    return ""


def instant_text(parts: Mapping[str, Any]) -> str | None:
    """An instant from seconds since 1970, or from the clock of a zone; with the zone's name where it is one.

    >>> instant_text({"epoch_s": 0, "nano": 120000000, "zone": None}), instant_text({"epoch_s": 0, "zone": "Asia/Shanghai"})
    ('1970-01-01T00:00:00.12Z', '1970-01-01T00:00:00Z[Asia/Shanghai]')
    >>> instant_text({"year": 2024, "month": 5, "day": 1, "hour": 8, "minute": 0, "second": 0, "zone": "+08:00"})
    '2024-05-01T00:00:00Z'
    """
    fraction, zone = _fraction(parts), parts.get("zone")
    seconds = parts["epoch_s"] if "epoch_s" in parts else _seconds(parts, zone)
    if fraction is None or seconds is None or not FIRST_SECOND <= seconds <= LAST_SECOND:
        return None
    text = (EPOCH + timedelta(seconds=seconds)).isoformat()[:19]
    return f"{text}{fraction}Z" + (f"[{zone}]" if zone and known_zone(zone) else "")


def _seconds(parts: Mapping[str, Any], zone: str | None) -> int | None:
    """Seconds since 1970 of a clock in a zone: of two such moments the earlier; None if there was none."""
    try:
        clock = datetime(*(parts[name] for name in ("year", "month", "day", "hour", "minute", "second")))
    except (ValueError, TypeError, OverflowError):
        return None
    offset = OFFSET.fullmatch(zone or "")
    if offset:
        minutes = int(offset[2]) * 60 + int(offset[3])
        return _whole(clock) - (-minutes if offset[1] == "-" else minutes) * 60
    named = known_zone(zone or "")
    if not named:
        return _whole(clock) if zone in ("Z", "UTC", "GMT") else None
    try:
        seconds = _whole(clock) - int(clock.replace(tzinfo=named).utcoffset().total_seconds())
        back = EPOCH + timedelta(seconds=seconds)
        return seconds if back.astimezone(named).replace(tzinfo=None) == clock else None
    except OverflowError:
        return None


def _whole(clock: datetime) -> int:
    return int((clock.replace(tzinfo=timezone.utc) - EPOCH).total_seconds())


def known_zone(name: str) -> ZoneInfo | None:
    """The zone of an Area/City that is known."""
    if not re.fullmatch(r"[A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+", name):
        return None
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        return None


# --- logical types


def logical_text(logical: str | None, scale: int) -> Callable[[Any], str | None] | None:
    """What makes text of a value of a logical type; None for types that say no more than what they are made of."""
    units = {"millis": 3, "micros": 6, "nanos": 9}
    kind, _, unit = (logical or "").rpartition("-")
    match kind, logical:
        case _, "decimal":
            return lambda value: scaled_text(value, scale)
        case _, "date":
            return days_text
        case "time", _ if unit in units:
            return lambda value: time_of_day_text(value, units[unit])
        case "timestamp", _ if unit in units:
            return lambda value: epoch_text(value, units[unit], "T", "Z")
        case "local-timestamp", _ if unit in units:
            return lambda value: epoch_text(value, units[unit], " ", "")
    return None


def scaled_text(value: bytes, scale: int) -> str | None:
    """A whole number in two's complement, with a dot in front of its last digits.

    >>> scaled_text((-200).to_bytes(2, "big", signed=True), 2), scaled_text(b"5", 3), scaled_text(b"", 0)
    ('-2.00', '0.053', '0')
    """
    if not 0 <= scale <= 10_000 or len(value) > MOST_BYTES_OF_A_NUMBER:
        return None
    number = int.from_bytes(value, "big", signed=True)
    digits = str(abs(number)).rjust(scale + 1, "0")
    whole, fraction = digits[: len(digits) - scale], digits[len(digits) - scale :]
    return ("-" if number < 0 else "") + whole + (f".{fraction}" if fraction else "")


def days_text(days: int) -> str | None:
    seconds = days * 86400
    return (EPOCH + timedelta(days=days)).date().isoformat() if FIRST_SECOND <= seconds <= LAST_SECOND else None


def time_of_day_text(value: int, digits: int) -> str | None:
    seconds, fraction = divmod(value, 10**digits)
    return (
        f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{_digits(fraction, digits)}"
        if 0 <= seconds < 86400
        else None
    )


def epoch_text(value: int, digits: int, between: str, behind: str) -> str | None:
    """
    >>> epoch_text(-1, 3, "T", "Z")
    '1969-12-31T23:59:59.999Z'
    """
    seconds, fraction = divmod(value, 10**digits)
    if not FIRST_SECOND <= seconds <= LAST_SECOND:
        return None
    return (
        (EPOCH + timedelta(seconds=seconds)).isoformat()[:19].replace("T", between) + _digits(fraction, digits) + behind
    )


def _digits(fraction: int, digits: int) -> str:
    return f".{fraction:0{digits}d}".rstrip("0") if fraction else ""
