"""Counting again the messages that were read, to compare them with those that landed: for the data test `conserved`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timezone
from pathlib import Path

from runner.counts import enumeration
from runner.engine.checkpoint import Checkpoint
from runner.engine.kafka import offset_views, topics_now
from runner.engine.messages import file_counts_view
from runner.engine.offsets import TopicsNow
from runner.engine.read_files import ReadFiles
from runner.engine.session import Spark
from runner.engine.tables import Tables
from runner.functions.avro.files import plain_path
from runner.project.inputs import Source, Topics
from runner.run.landing import Reads

RECOUNTED = (
    "place string, messages_read bigint, messages_landed bigint, not_landed bigint, landed_twice bigint, "
    "removed bigint, first_offset bigint"
)


@dataclass(frozen=True)
class Recount:
    """Creates the views `<source>_read_again` and, for files, `<source>_gone` and `<source>_changed`. `reads` gives the
    expressions that read messages of a kind.
    """

    spark: Spark
    tables: Tables
    reads: Reads

    def views(self, source: Source) -> tuple[str, ...]:
        """Counts the messages that were read and still exist; returns notes on those that cannot be counted."""
        topics = source.messages.topics
        return self._topics(source, topics) if topics else self._files(source)

    def _files(self, source: Source) -> tuple[str, ...]:
        checkpoint = self.tables.checkpoint(source.model)
        files, since = checkpoint.committed_files(), checkpoint.kept_since()
        remaining = [file for file in files if _exists(file)]
        gone = sorted(files.keys() - set(remaining))
        file_counts_view(
            self.spark, source.messages, self.reads(source.messages), remaining, f"{source.name}_read_again"
        )
        notes: list[str] = []
        if gone:
            counts = f"{len(gone)} of {len(files)} files that were read are gone"
            notes.append(f"{counts}, so their messages cannot be counted again: {gone[0]}")
        removed = self._removed(source, checkpoint, since) if since else []
        if removed:
            counts = f"{len(removed)} of {len(files)} files may have landed before {since}"
            notes.append(f"{counts}, and rows from before that day were removed: {removed[0]}")
        changed = ReadFiles(checkpoint).differing()
        self.spark.rows_view(f"{source.name}_gone", [(file,) for file in [*gone, *removed]], "value string")
        self.spark.rows_view(f"{source.name}_changed", [(file,) for file in changed], "value string")
        return tuple(notes)

    def _removed(self, source: Source, checkpoint: Checkpoint, since: date) -> list[str]:
        """The files whose rows may have been removed because they landed before a day."""
        landed = {row["file"] for row in self.spark.rows(self.tables.macro("landed_files", source))[1]}
        first_kept = datetime(since.year, since.month, since.day, tzinfo=timezone.utc).timestamp() * 1000
        files = checkpoint.committed_files()
        return [file for file, changed in files.items() if file not in landed and changed < first_kept]

    def _topics(self, source: Source, topics: Topics) -> tuple[str, ...]:
        checkpoint, view = self.tables.checkpoint(source.model), f"{source.name}_read_again"
        is_message, now = self.reads(source.messages)["is_message"], self._same_topics_now(topics, checkpoint)
        offset_views(
            self.spark, topics, is_message, checkpoint.first_offsets(), checkpoint.committed_offsets(), now, view
        )
        has_removed_rows = checkpoint.kept_since() is not None
        rows = self.spark.rows(self.tables.macro("topics_recounted", source, has_removed_rows))[1]
        self.spark.rows_view(view, [tuple(row.values()) for row in rows], RECOUNTED)
        removed = [f"{row['removed']} of {row['place']}" for row in rows if row["removed"]]
        if not removed:
            return ()
        return (f"messages that landed are no longer in Kafka and cannot be counted again: {enumeration(removed)}",)

    def _same_topics_now(self, topics: Topics, checkpoint: Checkpoint) -> TopicsNow | None:
        """What the broker has of the topics that were read, except those that were deleted and created again."""
        now, known = topics_now(self.spark, topics, checkpoint.next_offsets()), checkpoint.topic_ids()
        return now and now.only([topic for topic, id_ in now.ids.items() if known.get(topic, id_) == id_])


def _exists(file: str) -> bool:
    """Whether a file is still there; True for one that only Spark can look up."""
    return not file.startswith("file:") or Path(plain_path(file)).is_file()
