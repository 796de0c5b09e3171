"""Times: fields beside the rows, and the readers that fit columns of known types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from runner.infer.fields import Parts, listed
from runner.infer.fits import SHAPES
from runner.infer.header import Header, TypesFound
from runner.infer.understanding import text_of
from runner.spec.vocabulary import TIME_READERS, bare_type
from runner.spec.words import TypeTable

# Number of digits -> the reader of a time since 1970 with so many digits, today and some decades around.
COUNTS = {10: "epoch_s", 13: "epoch_ms", 16: "epoch_us", 19: "epoch_ns"}
EARLIEST, LATEST = 946_684_800, 4_102_444_800  # 2000 and 2100
SECONDS_OF_DAY = 86_400
UNKNOWN = ("0", "-1", "")
CLOCK = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?"
LOCAL, ZONED = re.compile(CLOCK), re.compile(CLOCK + r" ?(Z|[-+]\d\d(:?\d\d)?)")
SECONDS = re.compile(r"(\d{10})(\.\d+)?")
# Class of columns -> readers to try; the first that fits all values is taken.
TRIED = {
    "timestamp": ("epoch_s", "epoch_ms", "local", "zoned"),
    "datetime": ("local", "iso_t", "epoch_ms", "zoned"),
    "binary": ("hex", "java_bytes", "base64", "latin1"),
    "enum": ("ordinal",),
    "set": ("mask",),
}


@dataclass(frozen=True)
class TimeFound:
    """A field with times, its reader, and the texts that stand for no time."""

    path: Parts
    reader: str
    unknown: tuple[str, ...]
    why: str
    texts: Mapping[int, str]


def find_times(header: Header, but: Sequence[Parts]) -> list[TimeFound]:
    """Returns the fields that hold times in nearly all changes; the field with the earlier times first."""
    found = [time for path in header.paths if path not in but and (time := _time(path, header.on_changes(path)))]
    near = [_seconds(time) for time in found if time.reader in ("epoch_s", "epoch_ms")]
    times = [time for time in found if not near or _is_near(time, near)]
    return sorted(times, key=_rank)


def _seconds(time: TimeFound) -> float:
    return sum(float(text[:10]) for text in time.texts.values()) / len(time.texts)


def _is_near(time: TimeFound, near: Sequence[float]) -> bool:
    """Returns True if times are within a day of others: order numbers may begin with a clock that is far off."""
    is_long = time.reader in ("epoch_us", "epoch_ns")
    return not is_long or min(abs(_seconds(time) - one) for one in near) < SECONDS_OF_DAY


def _time(path: Parts, texts: Mapping[int, str]) -> TimeFound | None:
    unknown = tuple(sorted({text for text in texts.values() if text in UNKNOWN}))
    known = {number: text for number, text in texts.items() if text not in UNKNOWN}
    reader = time_reader(known.values())
    if reader is None or reader not in TIME_READERS:
        return None
    example = listed(known.values(), 1).partition(" (")[0]
    return TimeFound(path, reader, unknown, f"times such as {example}", known)


def time_reader(texts: Iterable[str]) -> str | None:
    """Returns the reader of times that fits all texts.

    >>> time_reader(["1700000000123"]), time_reader(["1700000000"]), time_reader(["2024-01-02T03:04:05Z"])
    ('epoch_ms', 'epoch_s', 'zoned')
    >>> time_reader(["2024-01-02 03:04:05"]), time_reader(["17"]), time_reader([])
    ('local', None, None)
    """
    readers = {_reader(text) for text in texts}
    return readers.pop() if len(readers) == 1 else None


def _reader(text: str) -> str | None:
    if SECONDS.fullmatch(text) and EARLIEST <= float(text) <= LATEST:
        return "epoch_s"
    if text.isascii() and text.isdecimal() and len(text) in COUNTS:
        return COUNTS[len(text)] if EARLIEST <= int(text[:10]) <= LATEST else None
    return "local" if LOCAL.fullmatch(text) else "zoned" if ZONED.fullmatch(text) else None


def _rank(time: TimeFound) -> tuple[float, int]:
    """Returns the mean of the first 14 digits of all times, and the depth of the field. Only times that are written
    alike can be compared.
    """
    digits = [re.sub(r"\D", "", text)[:14].ljust(14, "0") for text in time.texts.values()]
    return sum(map(int, digits)) / len(digits), len(time.path)


def value_readers(
    header: Header, types: TypesFound, tables: Mapping[str, TypeTable]
) -> dict[str, tuple[str | None, str]]:
    """Returns, for each class of columns, the reader that fits all their values, None if there is no such reader, and
    an example. Classes that need no reader are left out.
    """
    classes = tables[types.table].classes
    texts: dict[str, list[str]] = {}
    for place in header.images.places:
        for number, rows in place.rows.items():
            for column, type_name in types.named.get(number, {}).items():
                values = (text_of(row.get(column)) for row in rows)
                texts.setdefault(classes.get(bare_type(type_name), ""), []).extend(one for one in values if one)
    return {name: (_fitting(tried, texts[name]), texts[name][0]) for name, tried in TRIED.items() if texts.get(name)}


def _fitting(tried: Sequence[str], texts: Sequence[str]) -> str | None:
    return next((reader for reader in tried if all(_fits(reader, text) for text in texts)), None)


def _fits(reader: str, text: str) -> bool:
    if reader == "epoch_ms":
        return _reader(text) == "epoch_ms"
    if reader == "epoch_s":
        return bool(SECONDS.fullmatch(text))
    if reader == "latin1":
        return all(ord(character) < 256 for character in text)
    return bool(LOCAL.fullmatch(text) if reader == "local" else SHAPES[reader].fullmatch(text))
