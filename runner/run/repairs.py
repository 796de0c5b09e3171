"""Repairs: rows with which mirrors become what their tables were, in files that a source lands like all messages."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from runner.counts import counted
from runner.files import write_whole
from runner.patterns import is_pattern, unescaped
from runner.project.inputs import EPOCH, instant_of
from runner.project.mirror import Mirror

if TYPE_CHECKING:
    from runner.run.comparison import Comparison
    from runner.run.run import Run

ADDED = (
    "{{name: repairs, format: rows, files: repairs/*.jsonl, dump: repair}} under sources in project.yml, and "
    "{{source: repairs, table: {table}}} as the last entry under of"
)
# What is said of rows of each operation.
SAID = {"snapshot": "{} as the database has them", "update": "{} in the compared columns", "delete": "{} to delete"}


@dataclass(frozen=True)
class Place:
    """What all repairs of a mirror tell: their `texts` by name, and the place among the changes of the table that they
    have. If they do not tell whole rows, `is_whole` is False.
    """

    texts: Mapping[str, str | None]
    arrival: tuple[int, ...]
    is_whole: bool


class NotRepaired(Exception):
    """A mirror that is compared and cannot be repaired."""


def why_refused(mirror: Mirror) -> tuple[str, str] | None:
    """Returns why a mirror cannot be repaired, with a hint that may be empty; None if it can be."""
    if not mirror.key:
        return "it has no key: nothing tells which row a repair is of", ""
    sources = [table.source.name for table in mirror.logged]
    if len(sources) > len(set(sources)):
        return "it has the rows of several tables", ""
    if not mirror.repairs:
        return "no source of repairs is named in its of", ADDED.format(table=".".join(mirror.tables[-1].name))
    try:
        file_of(mirror, datetime.now(timezone.utc))
    except NotRepaired as why:
        return str(why), f"write files: repairs/*.jsonl into the source {mirror.repairs.source.name}"
    return None


def file_of(mirror: Mirror, at: datetime) -> Path:
    """Returns the file for the repairs of a mirror that is verified at an instant; raises NotRepaired if the source of
    repairs would not find the file.
    """
    assert mirror.repairs
    messages = mirror.repairs.source.messages
    folder, _, ending = (messages.local_pattern or "").rpartition("/")
    name = f"{mirror.name}.{at.astimezone(timezone.utc):%Y%m%dT%H%M%S.%fZ}.jsonl"
    if not folder or is_pattern(folder) or not fnmatchcase(name, ending):
        raise NotRepaired(f'its source of repairs reads "{messages.path}", and not the file "{name}" in one folder')
    return Path(unescaped(folder)) / name


class Repairs:
    """Writes repairs of the mirrors of a run. `at` is the instant of the verification, by which files are named. If the
    rows of tables are those of files, `taken_at` is the instant of these, else it is empty. Without `writes`, nothing
    is written.
    """

    def __init__(self, run: Run, at: datetime, taken_at: str, writes: bool) -> None:
        self.spark, self.macro, self.run = run.spark, run.macro, run
        self.at, self.taken_at, self.writes = at, taken_at, writes

    def place(self, mirror: Mirror, is_whole: bool) -> Place:
        """Returns the place of repairs of a mirror: behind all changes of its table that have landed, or that happened
        up to the instant of its file. It must be asked for before the table is read, so that the table has these
        changes. Raises NotRepaired, and QueryFailed.
        """
        from runner.functions.row_files import NAME_PARTS

        assert mirror.repairs
        table, own, now = mirror.logged[-1], mirror.repairs.source, micros(datetime.now(timezone.utc))
        self.run.views.make(self.run.graph.nodes[table.source.model])
        (head,) = self.spark.rows(self.macro("place_of_repairs", table, self.taken_at))[1]
        if (head["generation"] or 0) != own.generation:
            raise NotRepaired(f'its table has generation {head["generation"]}: write it to the source "{own.name}" too')
        # No version of a history ends before it began.
        taken_at = (
            micros(datetime.fromisoformat(self.taken_at)) if self.taken_at else max(now, head["happened_at"] or 0)
        )
        texts = {
            **dict(zip(NAME_PARTS, reversed(mirror.repairs.name))),
            "mirror": mirror.name,
            "taken_at": instant_of(taken_at),
            "sent_at": None if head["sent_at"] is None else instant_of(head["sent_at"]),
        }
        return Place(texts, (*(head["arrival"] or ()), now), is_whole)

    def write(self, comparison: Comparison, views: list[str], place: Place) -> str:
        """Writes the repairs of the rows that differ, which are in these views; returns a note on what was written.
        Raises QueryFailed.
        """
        path, ops = file_of(comparison.mirror, self.at), Counter[str]()
        messages = self._messages(self.macro("repairs_of", comparison, views, place), ops)
        if self.writes:
            write_whole(path, messages)
        else:
            deque(messages, maxlen=0)
        parts = ", ".join(text.format(counted(ops[op], "row")) for op, text in SAID.items() if ops[op])
        return f"{'repairs' if self.writes else 'repairs, if written'}: {parts}, in {path}"

    def _messages(self, sql: str, ops: Counter[str]) -> Iterator[str]:
        """Yields lines of repairs, and counts their operations."""
        for op, message in self.spark.each_row(sql):
            ops[op] += 1
            yield f"{message}\n"


def micros(instant: datetime) -> int:
    """Returns an instant in microseconds.

    >>> micros(datetime(1970, 1, 1, 1, tzinfo=timezone.utc))
    3600000000
    """
    return (instant - EPOCH) // timedelta(microseconds=1)
