"""Streams: a source's messages into its table, and counting again what was read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.engine.checkpoint import Checkpoint, Fingerprint
from runner.engine.errors import QueryFailed, SparkGone, query_errors
from runner.engine.kafka import offset_views, topics_now
from runner.engine.landed import Landed
from runner.engine.messages import file_counts_view, source_view
from runner.engine.offsets import TopicsNow
from runner.engine.session import Spark
from runner.engine.streams import landed
from runner.engine.tables import Tables
from runner.functions.avro.files import local_path
from runner.project.nodes import Messages, Model, Node, Source
from runner.project.topics import without_secrets

ALL_THAT_IS_NEW = {"availableNow": True}
RECOUNTED = "place string, messages_read bigint, messages_landed bigint, not_landed bigint, landed_twice bigint, removed bigint, first_offset bigint"
SAID = 5
# How the connector says that messages are gone, without saying which.
SAYS_LOST = re.compile("may have been (lost|missed)")
Reads = Callable[[Messages], Mapping[str, str]]


@dataclass
class Landing:
    """Lands sources in a session. `reads` gives the expressions that read messages of a kind."""

    spark: Spark
    tables: Tables
    reads: Reads
    run_id: str
    full_refresh: bool = False

    def land(self, node: Node) -> tuple[Landed, tuple[str, ...]]:
        """Lands what is new, and says what a person should know of it."""
        query, notes = self.start(node, ALL_THAT_IS_NEW)
        with self.explained(node):
            query.awaitTermination()
        return landed(query.recentProgress), notes

    def start(self, node: Node, trigger: Mapping[str, Any]) -> tuple[Any, tuple[str, ...]]:
        """Starts the stream of a source's model; returns Spark's query."""
        model: Model = node.about
        source = model.source
        assert source
        if self.full_refresh:
            self.tables.forget(node.name)
        if self.tables.is_torn(node.name):
            raise QueryFailed(
                f'"{node.name}" has lost its checkpoint or its list of committed files, so what was read is not known: --full-refresh reads all again'
            )
        notes = self._notes(node, source, model.sql)
        source_view(self.spark, source.messages, self.reads(source.messages), f"{source.name}_messages", streaming=True)
        self.spark.register(model.functions)
        if source.messages.topics:
            notes += self._lost(source)
            with self.explained(node):
                self._finish_begun(node)
        return self.tables.start(node.name, model.sql, self.run_id, trigger), notes

    def _finish_begun(self, node: Node) -> None:
        """Lands what a run has begun to land and not finished."""
        checkpoint = self.tables.checkpoint(node.name)
        begun = checkpoint.newest_plan
        if begun <= checkpoint.newest_commit:
            return
        query = self.tables.start(node.name, node.about.sql, self.run_id, ALL_THAT_IS_NEW)
        try:
            with query_errors():
                query.awaitTermination()
        except QueryFailed:
            # Behind such a batch, when it is committed, the connector fails over a statistic of its own that it has not
            # got.
            if checkpoint.newest_commit < begun:
                raise

    @contextmanager
    def explained(self, node: Node) -> Iterator[None]:
        """Raises what Spark raises as QueryFailed; where messages were lost before they were read, with what was lost."""
        try:
            with query_errors():
                yield
        except SparkGone:
            raise
        except QueryFailed as failure:
            source: Source = node.about.source
            if not source.messages.topics:
                raise
            if SAYS_LOST.search(failure.message):
                self._lost(source)
            raise QueryFailed(
                without_secrets(failure.message, source.messages.topics), failure.line, failure.column
            ) from None

    def _lost(self, source: Source) -> tuple[str, ...]:
        """Says what is gone from Kafka that was not read yet; raises QueryFailed unless the source allows that."""
        checkpoint = self.tables.checkpoint(source.model)
        now = self._now(source, checkpoint)
        topics = source.messages.topics
        if now is None or topics is None:
            return ()
        named = (
            json.loads(topics.options["startingOffsets"])
            if topics.options.get("startingOffsets", "").startswith("{")
            else {}
        )
        wanted, known = (checkpoint.next_offsets(), checkpoint.topic_ids()) if checkpoint.is_there else (named, {})
        lost = now.lost(wanted, known, checkpoint.is_there)
        if lost and topics.options["failOnDataLoss"] == "true":
            raise QueryFailed(
                f"messages that were not read yet are gone from Kafka: {listed(lost)}; --full-refresh lands what is there, or allow_loss: true goes on without them"
            )
        checkpoint.write_topic_ids({**known, **now.ids})
        return (f"messages were gone from Kafka before they were read: {listed(lost)}",) if lost else ()

    def _now(self, source: Source, checkpoint: Checkpoint) -> TopicsNow | None:
        assert source.messages.topics
        return topics_now(self.spark, source.messages.topics, checkpoint.next_offsets())

    def _notes(self, node: Node, source: Source, sql: str) -> tuple[str, ...]:
        checkpoint = self.tables.checkpoint(node.name)
        now, then = Fingerprint.of(source.format.name, sql, source.messages.reach), checkpoint.fingerprint()
        if then is None or not checkpoint.is_there:
            checkpoint.write_fingerprint(now)
        elif then.reach != now.reach:
            raise QueryFailed(
                f'the end of "{source.name}" was moved since messages were landed, and what was passed over would stay out: --full-refresh reads all again'
            )
        elif then != now:
            return (
                f'what the format "{source.format.name}" makes of a message has changed since rows were landed: --full-refresh lands all of them again',
            )
        if not checkpoint.is_there and not source.messages.topics and not _any_file(source.messages.path):
            return (f'no file matches "{source.messages.path}"',)
        return ()

    def read_again(self, source: Source) -> tuple[str, ...]:
        """Makes the views of the messages of what was read, as far as it is still there; says what cannot be known."""
        return self._topics_again(source) if source.messages.topics else self._files_again(source)

    def _files_again(self, source: Source) -> tuple[str, ...]:
        checkpoint = self.tables.checkpoint(source.model)
        files, since = checkpoint.committed_files(), checkpoint.kept_since()
        there = [f for f in files if _is_there(f)]
        gone = sorted(files.keys() - set(there))
        file_counts_view(self.spark, source.messages, self.reads(source.messages), there, f"{source.name}_read_again")
        notes = (
            [
                f"{len(gone)} of {len(files)} files that were read are gone, so their messages cannot be counted again: {gone[0]}"
            ]
            if gone
            else []
        )
        if since:
            landed = {row["file"] for row in self.spark.rows(self.tables.macro("landed_files", source))[1]}
            removed = [f for f, changed in files.items() if f not in landed and changed.date() < since]
            notes += (
                [
                    f"{len(removed)} of {len(files)} files may have landed before {since}, whose rows were removed: {removed[0]}"
                ]
                if removed
                else []
            )
            gone += removed
        self.spark.rows_view(f"{source.name}_gone", [(file,) for file in gone], "value string")
        return tuple(notes)

    def _topics_again(self, source: Source) -> tuple[str, ...]:
        checkpoint, view = self.tables.checkpoint(source.model), f"{source.name}_read_again"
        now = self._now(source, checkpoint)
        known = checkpoint.topic_ids()
        if now:
            now = now.only([topic for topic, id in now.ids.items() if known.get(topic, id) == id])
        assert source.messages.topics
        offset_views(
            self.spark,
            source.messages.topics,
            self.reads(source.messages)["is_message"],
            checkpoint.first_offsets(),
            checkpoint.committed_offsets(),
            now,
            view,
        )
        rows = self.spark.rows(self.tables.macro("topics_recounted", source, checkpoint.kept_since() is not None))[1]
        self.spark.rows_view(view, [tuple(row.values()) for row in rows], RECOUNTED)
        removed = [f"{row['removed']} of {row['place']}" for row in rows if row["removed"]]
        return (
            (f"messages that landed are not in Kafka any more, and cannot be counted again: {listed(removed)}",)
            if removed
            else ()
        )


def listed(texts: list[str]) -> str:
    """
    >>> listed(["orders/0 offset 3", "b", "c", "d", "e", "f", "g"])
    'orders/0 offset 3, b, c, d, e and 2 more'
    """
    more = f" and {len(texts) - SAID} more" if len(texts) > SAID else ""
    return ", ".join(texts[:SAID]) + more


def _is_there(file: str) -> bool:
    """Whether a file is still there; True for what only Spark can look up."""
    return not file.startswith("file:") or Path(local_path(file)).is_file()


def _any_file(path: str) -> bool:
    """Whether a local path or pattern matches anything; True for what only Spark can look up."""
    return "://" in path or Path(path).exists() or any(True for _ in Path("/").glob(path.lstrip("/")))
