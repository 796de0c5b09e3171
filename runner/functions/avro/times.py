"""Canonical texts of times that come as numbers or as parts; None for values that are not such a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
FIRST_SECOND, LAST_SECOND = -62135596800, 253402300799  # of the years 1 to 9999
# Part of a time, its digits, and how many of them make a second.
FRACTIONS = (("nano", 9, 10**9), ("micro", 6, 10**6), ("milli", 3, 10**3))
# The macro `zoned_of` has the same pattern.
ZONE_NAME = re.compile(r"UTC|GMT|UCT|PRC|ROC|ROK|[CEMW]ET|(?![A-Z]{3}\Z)[A-Za-z_][A-Za-z0-9_+:-]*(?:/[A-Za-z0-9_+-]+)*")
OFFSET = re.compile(r"([+-])(0[0-9]|1[0-8]):?([0-5][0-9])(?::([0-5][0-9]))?")

Parts = Mapping[str, Any]
"""Word of a spec for a part of a time -> its number, text or boolean, or None."""


class Ambiguous(str):
    """The text of the first of two instants at which a zone's clocks showed the same time."""


# Dates that exist in every month, and dates with a month or day of zero, which some databases keep.
SHOWN = re.compile(
    r"(?:[0-9]{4}-(?!1[3-9])[01][0-9]-(?:[01][0-9]|2[0-8])(?: (?:[01][0-9]|2[0-3])(?=:)|\Z)|-?[0-9]+(?=:))"
    r"(?::[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?)?\Z|[0-9]{1,4}\Z"
)


def is_shown(text: str) -> bool:
    """Returns True if a calendar and a clock show this date, time of day or year. Hours alone may pass 24.

    >>> [is_shown(text) for text in ("2024-02-29", "0000-00-00 00:00:00", "-838:59:59.5", "2024")]
    [True, True, True, True]
    >>> [is_shown(text) for text in ("2023-02-29", "24:60:00", "2024-01-01 24:00:00", "2024-13-01")]
    [False, False, False, False]
    """
    if SHOWN.match(text):
        return True
    try:
        return len(text) >= 10 and text[4] == "-" and datetime.fromisoformat(text[:19]) is not None
    except ValueError:
        return False


# --- from parts


def clock_text(parts: Parts) -> str | None:
    """Returns a date, a time, both, or only a year, depending on which parts are there.

    >>> clock_text({"hour": 838, "minute": 59, "second": 5, "nano": 500000000, "negative": True})
    '-838:59:05.5'
    >>> clock_text({"year": 2024, "month": 2, "day": 30, "hour": 1, "minute": 2, "second": 3, "micro": None})
    '2024-02-30 01:02:03'
    """
    get: Callable[[str], Any] = parts.get
    year, month, day = get("year"), get("month"), get("day")
    hour, minute, second = get("hour"), get("minute"), get("second")
    fraction = _fraction(parts)
    if (
        fraction is not None
        and not get("negative")
        and None not in (year, month, day, hour, minute, second)
        and min(year, month, day, hour, minute, second) >= 0
    ):
        # A faster way for nearly all values; the slower way gives the same text for them.
        text = f"{year:04d}-{month:02d}-{day:02d} {hour:02d}:{minute:02d}:{second:02d}"
        if len(text) == 19:
            return text + fraction
    return _any_clock_text(parts, (year, month, day), (hour, minute, second), fraction)


def _any_clock_text(
    parts: Parts, date: tuple[Any, Any, Any], time: tuple[Any, Any, Any], fraction: str | None
) -> str | None:
    negative = parts.get("negative")
    if fraction is None and None not in time and max(time) <= 0:
        # In a negative time, each part is negative, also the fraction.
        fraction, negative = _fraction({name: -parts[name] for name, _, _ in FRACTIONS if parts.get(name)}), True
    if fraction is None:
        return None
    match _given(*date), _given(*time):
        case "all", "all":
            day, clock = _date(*date), _time(*time, fraction, negative)
            return f"{day} {clock}" if day and clock and clock[0] != "-" else None
        case "none", "all":
            return _time(*time, fraction, negative)
        case "all", "none" if not fraction:
            return _date(*date)
        case "some", "none" if date[1:] == (None, None) and not fraction and 0 <= date[0] <= 9999:
            return str(date[0])
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


def _fraction(parts: Parts) -> str | None:
    """Returns the fraction of a second with its dot, without zeros at its end; None for a whole second or more."""
    for name, digits, whole in FRACTIONS:
        number = parts.get(name)
        if number:
            return f".{number:0{digits}d}".rstrip("0") if 0 < number < whole else None
    return ""


def instant_text(parts: Parts) -> str | None:
    """Returns an instant from seconds since 1970, or from a clock in a zone; the zone follows if it has a name.

    >>> instant_text({"epoch_s": 0, "nano": 120000000, "zone": None})
    '1970-01-01T00:00:00.12Z'
    >>> [instant_text({"epoch_s": 0, "zone": zone})[19:] for zone in ("Asia/Shanghai", "UTC", "CST", "Z")]
    ['Z[Asia/Shanghai]', 'Z[UTC]', 'Z', 'Z']
    >>> instant_text({"year": 2024, "month": 5, "day": 1, "hour": 8, "minute": 0, "second": 0, "zone": "+08:00"})
    '2024-05-01T00:00:00Z'
    """
    fraction, zone = _fraction(parts), parts.get("zone")
    seconds = parts["epoch_s"] if "epoch_s" in parts else _seconds(parts, zone)
    if fraction is None or seconds is None or not FIRST_SECOND <= seconds <= LAST_SECOND:
        return None
    text = f"{(EPOCH + timedelta(seconds=seconds)).isoformat()[:19]}{fraction}Z"
    named = known_zone(zone) if zone else None
    if not named:
        return text
    return (Ambiguous if "epoch_s" not in parts and _came_twice(seconds, named) else str)(f"{text}[{zone}]")


def _came_twice(seconds: int, zone: ZoneInfo) -> bool:
    """Returns True if a zone's clocks show the same time at a second instant after this one."""
    clock = (EPOCH + timedelta(seconds=seconds)).astimezone(zone)
    return clock.utcoffset() != clock.replace(fold=1).utcoffset()


def _seconds(parts: Parts, zone: str | None) -> int | None:
    """Returns the seconds since 1970 for a clock in a zone: the earlier instant if the clock showed this time twice,
    None if it never did.
    """
    try:
        clock = datetime(*(parts[name] for name in ("year", "month", "day", "hour", "minute", "second")))
    except (ValueError, TypeError, OverflowError):
        return None
    offset = OFFSET.fullmatch(zone or "")
    if offset:
        away = int(offset[2]) * 3600 + int(offset[3]) * 60 + int(offset[4] or 0)
        return _whole(clock) - (-away if offset[1] == "-" else away)
    named = known_zone(zone or "")
    if not named:
        return _whole(clock) if zone == "Z" else None
    try:
        ahead = clock.replace(tzinfo=named).utcoffset() or timedelta()
        seconds = _whole(clock) - int(ahead.total_seconds())
        back = EPOCH + timedelta(seconds=seconds)
        return seconds if back.astimezone(named).replace(tzinfo=None) == clock else None
    except OverflowError:
        return None


def _whole(clock: datetime) -> int:
    return int((clock.replace(tzinfo=timezone.utc) - EPOCH).total_seconds())


def known_zone(name: str) -> ZoneInfo | None:
    """Returns the zone of that name; None if there is none. Names of three letters are refused: most are abbreviations
    that stand for several zones, such as CST.
    """
    if not ZONE_NAME.fullmatch(name):
        return None
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        return None


# --- from numbers: seconds, whose last `digits` digits are the fraction


def days_text(days: int) -> str | None:
    """Returns the date `days` days after 1970-01-01."""
    seconds = days * 86400
    return (EPOCH + timedelta(days=days)).date().isoformat() if FIRST_SECOND <= seconds <= LAST_SECOND else None


def time_of_day_text(digits: int, value: int) -> str | None:
    """Returns the time of day that is `value` after midnight; None if that is not in one day.

    >>> time_of_day_text(3, 3_600_500), time_of_day_text(3, -1)
    ('01:00:00.5', None)
    """
    seconds, fraction = divmod(value, 10**digits)
    if not 0 <= seconds < 86400:
        return None
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return clock + _fraction_text(fraction, digits)


def epoch_text(digits: int, between: str, zone: str, value: int) -> str | None:
    """Returns the instant that is `value` after the beginning of 1970. `between` is the text between date and time,
    `zone` the end.

    >>> epoch_text(3, "T", "Z", -1)
    '1969-12-31T23:59:59.999Z'
    """
    seconds, fraction = divmod(value, 10**digits)
    if not FIRST_SECOND <= seconds <= LAST_SECOND:
        return None
    clock = (EPOCH + timedelta(seconds=seconds)).isoformat()[:19].replace("T", between)
    return clock + _fraction_text(fraction, digits) + zone


def _fraction_text(fraction: int, digits: int) -> str:
    return f".{fraction:0{digits}d}".rstrip("0") if fraction else ""
