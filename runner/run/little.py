"""Whether a run reads little: it has ended before Java's second compiler would have paid for its time."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from runner.engine.fresher import checkpoint_of
from runner.files import Damaged, is_uri
from runner.project.graph import Graph
from runner.project.inputs import ForeignTable, Source, Target
from runner.project.nodes import Case, FunctionTest, Node, UnitTest
from runner.run.source_files import SourceFiles, is_little

# They bring the rows that they read.
SELF_CONTAINED = (Case, UnitTest, FunctionTest)
UNKNOWN = float("inf")


def reads_little(nodes: Collection[Node], graph: Graph, target: Target, is_refresh: bool = False) -> bool:
    """Whether all that the nodes of a run read is little: messages that have not landed (in a full refresh all), those
    that are read again for a test, and tables. False where this machine does not see it.
    """
    reading = [node for node in nodes if not isinstance(node.subject, SELF_CONTAINED)]
    landing = [node.model.source for node in reading if node.model and node.model.source]
    again = [node.data_test.source for node in reading if node.data_test and node.data_test.source]
    try:
        amounts = [
            *(_messages(source, target, is_refresh) for source in landing),
            *(_messages(source, target, True) for source in again),
        ]
        size, messages = (sum(numbers) for numbers in zip((0, 0), *amounts))
        reads_tables = len(landing) < len(reading)
        return is_little(size, messages) and (not reads_tables or tables_are_small(graph, target))
    except (Damaged, OSError):
        return False


def tables_are_small(graph: Graph, target: Target) -> bool:
    """Whether all tables of a target are little to read together. False where this machine does not see them."""
    has_others = target.catalog or any(isinstance(node.subject, ForeignTable) for node in graph.nodes.values())
    if target.remote or is_uri(target.path) or has_others:
        return False
    size = 0
    for file_size in _sizes(Path(target.path)):
        size += file_size
        if not is_little(size, None):
            return False
    return True


def _messages(source: Source, target: Target, all_of_them: bool) -> tuple[float, float]:
    """The size and the number of messages of a source that have not landed, or of all."""
    if not source.messages.local_pattern or target.remote or is_uri(target.path):
        return UNKNOWN, UNKNOWN
    files = SourceFiles.found(source.messages, checkpoint_of(target, source))
    if not all_of_them and files.checkpoint.has_unfinished_batch:
        return UNKNOWN, UNKNOWN
    size, messages = files.amount(files.there) if all_of_them else files.to_read
    return size, messages or 0


def _sizes(folder: Path) -> Iterator[int]:
    for path in folder.rglob("*"):
        # A file may go away at any moment.
        if path.is_file():
            yield path.stat().st_size
