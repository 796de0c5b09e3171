"""Whether all messages of a source that have landed are still there: a full refresh would lose the others."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from runner.counts import counted, enumeration
from runner.engine.checkpoint import Checkpoint
from runner.engine.errors import QueryFailed
from runner.engine.kafka import topics_now
from runner.errors import Problems, RunnerError
from runner.files import Damaged
from runner.functions.avro.files import plain_path
from runner.project.inputs import Source, Topics
from runner.run.source_files import shown

if TYPE_CHECKING:
    from runner.engine.session import Spark
    from runner.engine.tables import Tables


def check_replayable(spark: Spark, tables: Tables, sources: Iterable[Source]) -> None:
    """Raises `source-not-replayable` for each source of which messages have landed that are not there any more, or of
    which this cannot be asked. A checkpoint that cannot be read tells nothing: reading all again is what mends it.
    """
    problems = Problems()
    for source in sources:
        checkpoint = tables.checkpoint(source.model)
        with problems.gathered(), suppress(Damaged, OSError):
            if checkpoint.newest_commit >= 0 and (gone := _gone(spark, source, checkpoint)):
                what = f'source "{source.name}": messages that have landed are not there any more: {enumeration(gone)}'
                raise _not_replayable(source, what)
    problems.raise_if_any()


def _gone(spark: Spark, source: Source, checkpoint: Checkpoint) -> list[str]:
    """Returns what is gone: files, or offsets of topics."""
    if topics := source.messages.topics:
        return _gone_from(spark, source, topics, checkpoint)
    if source.messages.jdbc:
        return []
    files = (plain_path(file) for file in checkpoint.committed_files() if file.startswith("file:"))
    gone = [shown(file) for file in files if not Path(file).is_file()]
    return [f"{counted(len(gone), 'file')}, such as {gone[0]}"] if gone else []


def _gone_from(spark: Spark, source: Source, topics: Topics, checkpoint: Checkpoint) -> list[str]:
    first = checkpoint.first_offsets()
    try:
        now = topics_now(spark, topics, first)
    except QueryFailed as failure:
        what = f'source "{source.name}": it is not known whether all messages are still there: {failure.message}'
        raise _not_replayable(source, what) from failure
    if topics.options.get("startingOffsets") == "latest":
        return ["a full refresh begins after the newest message"]
    return now.lost(first, checkpoint.topic_ids(), False) if now else []


def _not_replayable(source: Source, what: str) -> RunnerError:
    kept = f"runner reprocess {source.name} reads kept messages again" if source.raw.are_all else ""
    letters = "dead letters land without it: runner dead-letters land"
    hint = f"{kept or letters}; --accept-loss lands what is still there"
    return RunnerError("source-not-replayable", what, source.where, hint)
