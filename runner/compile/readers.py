"""Readers of values: the macros that make the text of a value canonical, by the value's class and the spec's word."""

from __future__ import annotations

import re
from dataclasses import dataclass

from runner.contract import CLASS_READERS
from runner.errors import RunnerError, nearest_or_all
from runner.project.inputs import TableSettings
from runner.spec.vocabulary import CLASSES, bare_type
from runner.spec.words import Format
from runner.yaml_text import Yaml

# Kinds of reading that need the column's type, for its labels or its scale, and those that are Python functions over
# whole images.
WITH_TYPE = frozenset({"label", "labels", "ordinal", "mask", "unscaled"})
PYTHON_READERS = ("java_bytes", "escaped_bytes")
# Kinds of reading that take the bytes out of a text: nothing but a text can be such an encoding.
BYTES = frozenset(
    {
        *("base64", "base64_bits", "base64_text", "base64_little_endian", "unscaled"),
        *("hex", "hex_0x", "hex_bits", "latin1", "java_bytes", "escaped_bytes"),
    }
)
# Kinds of reading that write an exponent out.
EXPONENTS = frozenset({"decimal", "number"})
# Kinds of reading that read a zone behind a wall clock.
ZONED = ("zoned", "iso_zoned")

MICROS_PER_MINUTE = 60_000_000


@dataclass(frozen=True)
class Zone:
    """A time zone. `offset` is the distance of an offset such as +08:00 from UTC, in microseconds, None for a zone that
    has a name. `is_ahead` is True if the offset is ahead of UTC. `may_skip` is True if its clocks may be set forward,
    so that some local times do not exist.
    """

    name: str
    offset: int | None
    is_ahead: bool
    may_skip: bool

    @property
    def function(self) -> str:
        """The name of the SQL function that reads local times of this zone."""
        spoken = self.name.replace("+", "plus_").replace("-", "minus_" if self.offset is not None else "_")
        return "instant_in_" + re.sub(r"\W", "_", spoken.lower())


@dataclass(frozen=True)
class Attempt:
    """One way to read a value: the macro `read_<kind>`, with the zone that the macro needs or None."""

    kind: str
    zone: Zone | None

    @property
    def is_bytes(self) -> bool:
        """True if the macro takes the bytes out of a text."""
        return self.kind in BYTES

    @property
    def may_be_ambiguous(self) -> bool:
        """True if the macro may read a wall clock that came twice: a macro `came_twice_<kind>` tells."""
        return self.kind in ZONED or (self.kind == "instant" and self.zone is not None and self.zone.may_skip)


@dataclass(frozen=True)
class Reader:
    """The attempts to read a value, in turn: the first that gives a text counts. `word` is the name of the reader in
    compiled SQL. `needs_type` is True if an attempt needs the column's type, `of_elements` if each element of a list is
    such a value.
    """

    attempts: tuple[Attempt, ...]
    word: str
    needs_type: bool
    of_elements: bool = False

    @property
    def reads_bytes(self) -> bool:
        """True if an attempt takes the bytes out of the whole value."""
        return not self.of_elements and any(one.is_bytes for one in self.attempts)

    @property
    def ambiguous(self) -> tuple[Attempt, ...]:
        """The attempts that may read a wall clock that came twice."""
        return () if self.of_elements else tuple(one for one in self.attempts if one.may_be_ambiguous)


def make_zone(name: str | None) -> Zone | None:
    """Returns the zone of a name: an offset from UTC or the name of a region.

    >>> make_zone("-03:30")
    Zone(name='-03:30', offset=12600000000, is_ahead=False, may_skip=False)
    >>> make_zone("GMT+08:00").offset, make_zone("Asia/Tokyo")
    (28800000000, Zone(name='Asia/Tokyo', offset=None, is_ahead=False, may_skip=True))
    """
    if name is None:
        return None
    offset = re.fullmatch(r"(?:UTC|GMT|UT)?([+-])(\d\d):(\d\d)", name)
    if not offset:
        return Zone(name, None, False, name not in ("UTC", "GMT"))
    minutes = int(offset[2]) * 60 + int(offset[3])
    return Zone(name, minutes * MICROS_PER_MINUTE, offset[1] == "+", False)


def reader_of_class(class_name: str, spec: Format, zone: Zone | None, own: tuple[str, ...] = ()) -> Reader | None:
    """Returns the reader that makes this format's values of a class canonical; None if they are canonical as sent.
    `own` are the words that a table of types has for one type.
    """
    words = own or spec.readers.get(class_name) or (CLASS_READERS.get(class_name, "as_sent"),)
    attempts = tuple(attempt for one in words if (attempt := _attempt(one, class_name, zone)))
    if not attempts or attempts[0].kind == "as_sent":
        return None
    name = " or ".join(f"{one.kind} {one.zone.name}" if one.zone else one.kind for one in attempts)
    of_elements = class_name == "array"
    needs_type = any(one.kind in WITH_TYPE for one in attempts)
    return Reader(attempts, f"each {name}" if of_elements else name, needs_type, of_elements)


def _attempt(word: str, class_name: str, zone: Zone | None) -> Attempt | None:
    match word, class_name:
        case "local", "timestamp" | "zoned" if zone:
            return Attempt("instant", zone)
        case "local", "date":
            return Attempt("date", None)
        case "local", _:
            return Attempt("wall_clock", None)
        case "clock_z", "date":
            return Attempt("date_z", None)
        case "zoned", "time":
            return Attempt("zoned_time", None)
        case "zoned", _:
            return Attempt("zoned", zone if class_name in ("timestamp", "zoned") else None)
        case "epoch_ms", "date" | "time" | "datetime" if zone:
            return Attempt(f"epoch_ms_{class_name}", zone)
        case "epoch_ms_nanos", _:
            return Attempt("epoch_ms_nanos", zone) if zone else None
        case "iso_t", "zoned":
            return Attempt("iso_zoned", zone)
        case "iso_t", "date" | "time":
            return Attempt(f"iso_{class_name}", None)
        case "iso_t", _:
            return Attempt("iso_datetime", None)
        case "base64", "bit":
            return Attempt("base64_bits", None)
        case "base64", "string":
            return Attempt("base64_text", None)
        case "hex", "bit":
            return Attempt("hex_bits", None)
        case "labels", "enum":
            return Attempt("label", None)
    return Attempt(word, None)


def readers_of_columns(table: TableSettings, spec: Format, zone: Zone | None) -> dict[str, Reader]:
    """Returns the readers of the columns of a table that a source declares, for those that have one; raises
    `types-unknown` for a type that is neither in the format's tables of types nor the name of a class.
    """
    readers = {}
    for column, type_name in table.columns.items():
        class_name, words = _class_of(column, bare_type(type_name), table, spec)
        reader = reader_of_class(class_name, spec, make_zone(table.zone) or zone, words)
        if reader:
            readers[column] = reader
    return readers


def _class_of(column: str, type_name: str, table: TableSettings, spec: Format) -> tuple[str, tuple[str, ...]]:
    tables = spec.types.all_tables() if spec.types else []
    if type_name in CLASSES:
        return type_name, ()
    for known in tables:
        if type_name in known.classes:
            return known.classes[type_name], known.readers.get(type_name, ())
    names = [*CLASSES, *(name for known in tables for name in known.classes)]
    raise _unknown(table.origin, column, type_name, names)


def _unknown(origin: Yaml, column: str, type_name: str, names: list[str]) -> RunnerError:
    return origin["columns"][column].error(
        "types-unknown", f'the format does not know the type "{type_name}"', nearest_or_all(type_name, names)
    )
