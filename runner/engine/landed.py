"""What streams have landed: data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# The kinds of rows in a changelog.
KINDS = ("row", "ddl", "control", "dead_letter")


@dataclass(frozen=True)
class Landed:
    """How many messages the batches of a stream have landed, and how many rows of each kind."""

    messages: int
    rows: Mapping[str, int]
