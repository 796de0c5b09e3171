"""What streams have landed: data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Landed:
    """What batches of a stream have landed: rows by kind, and messages."""

    messages: int
    rows: Mapping[str, int]
