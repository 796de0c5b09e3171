"""The numbers of what has landed: data only."""

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
    """The numbers of what has landed: of `messages`, of `rows` of each kind, and of dead letters for each of the
    `reasons`. For each part that a format may name, `expected` is the number of rows that should have it, `found` the
    number of rows that do.
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
        """Adds the numbers of another landing to these.

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
    """Returns the numbers that the macro `landed_counts` has printed as text."""
    counts = json.loads(text)
    # An entry without an `item` counts the rows that have no reason.
    reasons = {one["item"]: one["count"] for one in counts["reasons"] if "item" in one}
    return Landed(counts["messages"], counts["rows"], reasons, counts["expected"], counts["found"])


def _sum(one: Counts, other: Counts) -> Counts:
    total = Counter(one)
    total.update(other)
    return dict(total)
