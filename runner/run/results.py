"""The results of nodes and batches: data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone

from runner.engine.landed import Landed

FAILED = ("error", "fail")
# Of the reasons of dead letters, this many are named.
REASONS_NAMED = 3


@dataclass(frozen=True)
class Result:
    """The result of one node. `status` is success, error, skipped, pass, warn or fail. `failures` is the number of rows
    that fail a test; `rows` are the numbers of what was written: for a source messages and rows by kind, for a table
    rows. `reasons` are those of the dead letters that landed, with their numbers. A model that landed or was built has
    the status `warn` if there is something that the user should look at; it `is_incomplete` if not all of what could be
    read has landed. It took `seconds`, until it `ended`.
    """

    name: str
    resource_type: str
    status: str
    message: str = ""
    notes: tuple[str, ...] = ()
    failures: int | None = None
    rows: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    is_incomplete: bool = False
    ended: datetime = field(default_factory=lambda: datetime.now(timezone.utc), compare=False)

    @property
    def has_failed(self) -> bool:
        return self.status in FAILED


class Interrupted(KeyboardInterrupt):
    """The user ended a run early. `results` has one result for each node that was to run."""

    def __init__(self, results: list[Result]) -> None:
        super().__init__()
        self.results = results


@dataclass(frozen=True)
class Batch:
    """What a batch has landed. `behind` is the number of messages that existed when it began and that it left to later
    batches, None if that is not known.
    """

    number: int
    landed: Landed
    seconds: float
    behind: int | None


def most_frequent(reasons: Mapping[str, int]) -> str:
    """The reasons of most dead letters, with their numbers.

    >>> most_frequent({"no-op": 1, "not-json": 2, "empty": 1, "not-utf8": 4}), most_frequent({})
    ('4 not-utf8, 2 not-json, 1 empty and 1 more', '')
    """
    ordered = sorted(reasons.items(), key=lambda one: (-one[1], one[0]))
    more = sum(count for _, count in ordered[REASONS_NAMED:])
    named = ", ".join(f"{count} {reason}" for reason, count in ordered[:REASONS_NAMED])
    return f"{named} and {more} more" if more else named
