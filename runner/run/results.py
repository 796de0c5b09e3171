"""The results of nodes and batches: data only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

from runner.contract import Landed
from runner.errors import RunnerWarning

if TYPE_CHECKING:
    from runner.compile.compiled import Promise

FAILED = ("error", "fail")
# The number of reasons of dead letters that are named.
REASONS_NAMED = 3


@dataclass(frozen=True)
class Result:
    """The result of one node. `status` is success, error, skipped, pass, warn or fail. A model that landed or was built
    has the status `warn` if there is something that the user should look at. `failures` is the number of rows that fail
    a test. `rows` counts what was written: messages and rows by kind for a source, rows for a table. `reasons` counts
    the dead letters that landed by reason. `is_incomplete` is True if not all of what could be read has landed,
    `is_unchanged` if nothing new has landed for a mirror. `seconds` is the time that the node took, `ended` the time
    when it ended.
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
    is_unchanged: bool = False
    ended: datetime = field(default_factory=partial(datetime.now, timezone.utc), compare=False)

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
    """A batch of a stream. `landed` is what it has landed. `behind` is the number of messages that existed when the
    batch began and that it left to later batches, None if that is not known.
    """

    number: int
    landed: Landed
    seconds: float
    behind: int | None


def most_frequent(reasons: Mapping[str, int]) -> str:
    """Returns the most frequent reasons of dead letters, with their numbers.

    >>> most_frequent({"no-op": 1, "not-json": 2, "empty": 1, "not-utf8": 4}), most_frequent({})
    ('4 not-utf8, 2 not-json, 1 empty and 1 more', '')
    """
    ordered = sorted(sorted(reasons.items()), key=itemgetter(1), reverse=True)
    more = sum(count for _, count in ordered[REASONS_NAMED:])
    named = ", ".join(f"{count} {reason}" for reason, count in ordered[:REASONS_NAMED])
    return f"{named} and {more} more" if more else named


# Maps a part of rows to the text that is shown if no row has the part.
SAYINGS = {
    "table_name": "{} of {} rows have no table name",
    "key": "{} of {} rows have no key",
    "event_time": "{} of {} changes have no event time",
    "images": "{} of {} rows have no column in their images",
    "before": "{} of {} updates have no image before the change",
}


def silences(promises: Iterable[Promise], landed: Landed, source: str | None = None) -> Iterator[RunnerWarning]:
    """Yields a warning for each part that the format names and no row has. There is no warning if only some rows lack a
    part: tables without a key, and messages without a time, are common. `source` is the name of the source, if there is
    one.
    """
    for promise in promises:
        expected = landed.expected.get(promise.part, 0)
        if expected and not landed.found[promise.part]:
            what = SAYINGS[promise.part].format(expected, expected)
            where = ", though the format says where" if promise.where else ""
            hint = promise.hint.replace("{source}", f"source {source}" if source else "a source")
            yield RunnerWarning("never-filled", f"{what}{where}", promise.where, hint)
