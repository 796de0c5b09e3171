"""What has landed, in numbers: data only."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

Counts = Mapping[str, int]

# The kinds of rows in a changelog.
KINDS = ("row", "ddl", "control", "dead_letter")


@dataclass(frozen=True)
class Landed:
    """How many messages have landed, how many rows of each kind, and how many dead letters for each reason. `expected`
    says in how many rows each part that a format may name should be, `found` in how many it is.
    """

    messages: int = 0
    rows: Counts = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    reasons: Counts = field(default_factory=dict)
    expected: Counts = field(default_factory=dict)
    found: Counts = field(default_factory=dict)

    @property
    def numbers(self) -> Counts:
        """The number of messages, then those of rows by kind."""
        return {"messages": self.messages, **self.rows}

    def __add__(self, other: Landed) -> Landed:
        """
        >>> Landed(1, {"row": 1}, {}) + Landed(2, {"row": 0}, {"no-op": 2})
        Landed(messages=3, rows={'row': 1}, reasons={'no-op': 2}, expected={}, found={})
        """
        return Landed(
            self.messages + other.messages,
            _sum(self.rows, other.rows),
            _sum(self.reasons, other.reasons),
            _sum(self.expected, other.expected),
            _sum(self.found, other.found),
        )


def landed_of(text: str) -> Landed:
    """What the macro `landed_counts` has counted, as it prints it."""
    counts = json.loads(text)
    # Rows without a reason are an item that has no text.
    reasons = {one["item"]: one["count"] for one in counts["reasons"] if "item" in one}
    return Landed(counts["messages"], counts["rows"], reasons, counts["expected"], counts["found"])


def _sum(one: Counts, other: Counts) -> Counts:
    total = Counter(one)
    total.update(other)
    return dict(total)
