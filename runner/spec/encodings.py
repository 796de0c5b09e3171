"""How messages are divided that are frames of bytes, and how records in them become texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Frames(NamedTuple):
    """What key and value begin with, in hexadecimal, and the bytes of the length before each of their frames."""

    key_starts: str
    value_starts: str
    length_bytes: int


@dataclass(frozen=True)
class RecordText:
    """How a value that is a record becomes text. All paths start at the record.

    `classes`: name of the value's type -> class, `else` for all others. The text is at `text`, or decoded from the
    bytes at `bytes`, or made of `parts`. Bytes are in the charset named at `charset`, whose codec is in `charsets`, or
    follow the number at `srid`. `labels` and `length` are what enums and bits need. `is_null` and `not_sent` are the
    symbols of an enum that stand for null and for no value at all.
    """

    classes: Mapping[str, str]
    text: tuple[str, ...] = ()
    bytes: tuple[str, ...] = ()
    charset: tuple[str, ...] = ()
    charsets: Mapping[str, str] = field(default_factory=dict)
    srid: tuple[str, ...] = ()
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    length: tuple[str, ...] = ()
    is_null: tuple[str, ...] = ()
    not_sent: tuple[str, ...] = ()
