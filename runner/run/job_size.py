"""Small jobs: runs that read so little that they end before Java's second compiler would have paid for its time."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runner.engine.progress import checkpoint_of
from runner.files import Damaged, is_uri
from runner.project.inputs import ExternalTable, Source, Target
from runner.project.nodes import Case, FunctionTest, Graph, Node, UnitTest
from runner.run.source_files import SourceFiles

# A run that reads no more than this is shorter without Java's second compiler: measured on two cores. Lines count too,
# since short lines take more time for their size. Files without lines, and tables, are compressed.
LITTLE_TEXT, LITTLE_STORED, LINES = 1 << 26, 1 << 24, 60_000
# Tests that bring the rows that they read.
SELF_CONTAINED = (Case, UnitTest, FunctionTest)


@dataclass(frozen=True)
class Amount:
    """The amount that is read. `text` is the number of bytes of files with lines, `lines` the number of their lines,
    `stored` the number of bytes of tables and of files without lines.
    """

    text: float = 0
    lines: float = 0
    stored: float = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.text + other.text, self.lines + other.lines, self.stored + other.stored)

    @property
    def is_little(self) -> bool:
        return self.text <= LITTLE_TEXT and self.lines <= LINES and self.stored <= LITTLE_STORED


# The amount of anything that this machine does not see.
UNKNOWN = Amount(stored=float("inf"))


def is_small_job(nodes: Collection[Node], graph: Graph, target: Target, is_refresh: bool = False) -> bool:
    """Returns True if the nodes of a run read little: messages that have not landed (in a full refresh all messages),
    messages that are read again for a test, and tables. Returns False where this machine does not see them.
    """
    reading = [node for node in nodes if not isinstance(node.subject, SELF_CONTAINED)]
    landing = [node.model.source for node in reading if node.model and node.model.source]
    again = [node.data_test.source for node in reading if node.data_test and node.data_test.source]
    try:
        amounts = [
            *(_messages(source, target, is_refresh) for source in landing),
            *(_messages(source, target, True) for source in again),
            *([_tables(graph, target)] if len(landing) < len(reading) else []),
        ]
    except (Damaged, OSError):
        return False
    return sum(amounts, Amount()).is_little


def tables_are_small(graph: Graph, target: Target) -> bool:
    """Returns True if all tables of a target together are little to read; False where this machine does not see one."""
    return _tables(graph, target).is_little


def _tables(graph: Graph, target: Target) -> Amount:
    has_others = target.catalog or any(isinstance(node.subject, ExternalTable) for node in graph.nodes.values())
    if target.remote or is_uri(target.path) or has_others:
        return UNKNOWN
    found = Amount()
    for path in Path(target.path).rglob("*"):
        # A file may go away at any moment.
        with suppress(OSError):
            found += Amount(stored=path.stat().st_size if path.is_file() else 0)
        if not found.is_little:
            break
    return found


def _messages(source: Source, target: Target, all_of_them: bool) -> Amount:
    """Returns the amount of the messages of a source: of all messages, or of those that have not landed."""
    if not source.messages.local_pattern or target.remote or is_uri(target.path):
        return UNKNOWN
    files = SourceFiles.found(source.messages, checkpoint_of(target, source))
    if not all_of_them and files.checkpoint.has_unfinished_batch:
        return UNKNOWN
    size, lines = files.amount(files.there) if all_of_them else files.to_read
    return Amount(stored=size) if lines is None else Amount(size, lines)
