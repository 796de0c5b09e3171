"""How messages are divided that are frames of bytes."""

from __future__ import annotations

from typing import NamedTuple


class Frames(NamedTuple):
    """What key and value begin with, in hexadecimal, and the bytes of the length before each of their frames."""

    key_starts: str
    value_starts: str
    length_bytes: int
