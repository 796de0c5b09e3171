"""The results of nodes and batches: data only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from runner.contract import Landed
from runner.counts import counted
from runner.errors import RunnerWarning
from runner.project.inputs import Source

if TYPE_CHECKING:
    from runner.compile.compiled import Promise

FAILED = ("error", "fail")
# The exit code of a command that a signal has stopped.
INTERRUPTED = 130
# The statuses of a source that has landed, the worst last.
BADNESS = ("success", "warn", "fail")
# The number of reasons of dead letters that are named.
REASONS_NAMED = 3


@dataclass(frozen=True)
class Result:
    """The result of one node. `status` is success, error, skipped, pass, warn or fail. A model that landed or was built
    has the status `warn` if there is something that the user should look at. `failures` is the number of rows that fail
    a test. `rows` counts what was written: messages and rows by kind for a source, rows for a table. `reasons` counts
    the dead letters that landed by reason, `waived` those among them that are expected. A source has the status `fail`
    if too many of them landed. `is_incomplete` is True if not all of what could be read has landed, `is_unchanged` if
    nothing new has landed for a mirror. `seconds` is the time that the node took, `ended` the time when it ended.
    """

    name: str
    resource_type: str
    status: str
    message: str = ""
    notes: tuple[str, ...] = ()
    failures: int | None = None
    rows: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)
    waived: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    is_incomplete: bool = False
    is_unchanged: bool = False
    ended: datetime = field(default_factory=partial(datetime.now, timezone.utc), compare=False)

    @property
    def has_failed(self) -> bool:
        return self.status in FAILED

    @property
    def stops_readers(self) -> bool:
        """True if what reads this node must not run. The rows of a source with too many dead letters are right."""
        return self.has_failed and not (self.status == "fail" and self.resource_type == "model")


class Interrupted(KeyboardInterrupt):
    """The user ended a run early. `results` has one result for each node that was to run."""

    def __init__(self, results: list[Result]) -> None:
        super().__init__()
        self.results = results


class Verdict(NamedTuple):
    """What the limits of a source make of the dead letters that have landed: the status of the source, and why it is
    `fail`.
    """

    status: str = "success"
    message: str = ""

    def worse(self, other: Verdict) -> Verdict:
        """Returns the worse of two verdicts; of two that are equally bad, this one."""
        return max(self, other, key=lambda one: BADNESS.index(one.status))


GOOD = Verdict()


@dataclass(frozen=True)
class Batch:
    """A batch of a stream. `landed` is what it has landed. `behind` is the number of messages that existed when the
    batch began and that it left to later batches, None if that is not known.
    """

    number: int
    landed: Landed
    seconds: float
    behind: int | None
    verdict: Verdict = GOOD


def judged(source: Source, landed: Landed, batch: int | None = None) -> Verdict:
    """Returns the verdict on what a run, or the batch of a stream with a number, has landed. Dead letters that are
    waived do not count.
    """
    warn, fail = source.dead_letters.warn, source.dead_letters.fail
    dead, messages = landed.rows["dead_letter"] - sum(landed.waived.values()), landed.messages
    if fail and fail.is_reached(dead, messages):
        counts = f"{counted(dead, 'dead letter')} in {counted(messages, 'message')}"
        why = f"the limit of {fail} is reached: {most_frequent(landed.unexpected)}"
        where = "" if batch is None else f"batch {batch}: "
        return Verdict("fail", f"{where}{counts}, {why}; runner dead-letters --source {source.name} shows them")
    return Verdict("warn" if warn and warn.is_reached(dead, messages) else "success")


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
