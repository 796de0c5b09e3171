"""What a format says that rows have, and what no row has that landed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from runner.compile.promises import Promise
from runner.engine.landed import Landed
from runner.errors import RunnerWarning

# Part of rows -> what is said if no row has it.
SAYINGS = {
    "table_name": "{} of {} rows have no table name",
    "key": "{} of {} rows have no key",
    "event_time": "{} of {} changes have no event time",
    "images": "{} of {} rows have no column in their images",
    "before": "{} of {} updates have no image before the change",
}


def silences(promises: Iterable[Promise], landed: Landed, source: str | None = None) -> Iterator[RunnerWarning]:
    """A warning for each part that the format names and no row has. If only some rows lack it there is none: tables
    without a key, and messages without a time, are common. `source` is the name of the source, if there is one.
    """
    for promise in promises:
        expected = landed.expected.get(promise.part, 0)
        if expected and not landed.found[promise.part]:
            what = SAYINGS[promise.part].format(expected, expected)
            where = ", though the format says where" if promise.where else ""
            hint = promise.hint.replace("{source}", f"source {source}" if source else "a source")
            yield RunnerWarning("never-filled", f"{what}{where}", promise.where, hint)
