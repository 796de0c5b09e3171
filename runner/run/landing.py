"""Landing: streams of a source's messages into its table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from runner.contract import Landed
from runner.counts import counted, enumeration
from runner.engine.errors import NO_SPACE, QueryFailed, SparkGone, query_errors, telling
from runner.engine.kafka import topics_now
from runner.engine.messages import LIMITS, newest_landed, source_view
from runner.engine.messages import landed as landed_in
from runner.engine.offsets import Offsets
from runner.engine.queries import write_result
from runner.engine.tables import check_consistency
from runner.engine.versions import upgrade
from runner.errors import full_refresh
from runner.project.inputs import Messages, Source, Topics
from runner.project.node_results import NodeResults
from runner.project.topics import without_secrets
from runner.run.dead_letters import Chosen
from runner.run.reprocess import Reprocessing
from runner.run.results import Result, Verdict, silences
from runner.run.source_files import SourceFiles, shown
from runner.run.stale import GENERATION, check_secret, made_by_now, makes_other_rows, stale_batches, told_stale

if TYPE_CHECKING:
    from runner.run.run import Run


ALL_NEW = {"availableNow": True}
# Spark writes this file when all others of a result are there.
DONE = "_SUCCESS"
# The connector's words for lost messages; they do not say which messages are lost.
SAYS_LOST = re.compile("may have been (lost|missed)")


class Landing:
    """Lands sources in a session."""

    def __init__(self, run: Run) -> None:
        self.run, self.compiled, self.spark, self.tables = run, run.compiled, run.spark, run.tables
        self.reads, self.run_id = run.reads, run.run_id
        self.files: dict[str, SourceFiles] = {}
        self.open_letters = run.open_letters

    def land(self, source: Source) -> tuple[Landed, tuple[str, ...]]:
        """Lands new messages; returns what has landed, and notes for the user."""
        with self.explained(source):
            notes = self._ready(source)
            if self.files[source.name].all_read() and not self.tables.checkpoint(source.model).again_waiting():
                self.tables.checkpoint(source.model).check()
                return Landed(), notes
            query, lost = self._started(source, ALL_NEW)
            landed = self._all_landed(source, query, self.files[source.name].streams()[0])
            for options in self.files[source.name].streams()[1:]:
                self.read_source(source, options)
                landed += self._all_landed(source, self._stream(source, options, ALL_NEW), options)
        return landed, notes + lost

    def _all_landed(self, source: Source, query: Any, options: Mapping[str, str]) -> Landed:
        """Returns what a stream has landed, together with the streams that go on without the files that it could not
        read.
        """
        landed = Landed()
        while True:
            try:
                with query_errors():
                    query.awaitTermination()
                    return landed + self._landed_by(source, query)
            except QueryFailed as failure:
                if not self.set_aside(source, failure):
                    raise
                landed += self._landed_by(source, query)
                if not self.tables.checkpoint(source.model).has_unfinished_batch:
                    break  # the batch had no other file
                query = self._stream(source, options, ALL_NEW)
        for messages in self.files[source.name].left_by(options):
            self.read_source(source, options, messages)
            # Without options: the stream of a single file has no other files to leave.
            landed += self._all_landed(source, self._stream(source, options, ALL_NEW), {})
        return landed

    def set_aside(self, source: Source, failure: QueryFailed) -> bool:
        """Leaves the file at which a stream of a source has failed to a later run; returns False if the stream has
        failed for another reason.
        """
        if source.messages.topics or isinstance(failure, SparkGone) or NO_SPACE in failure.message:
            return False
        return self.files[source.name].set_aside(failure.message)

    def _stream(self, source: Source, options: Mapping[str, str], trigger: Mapping[str, Any]) -> Any:
        """Starts a stream over the view of a source; returns Spark's query."""
        topics, checkpoint = source.messages.topics, self.tables.checkpoint(source.model)
        has_limit = not {*options, *(topics.options if topics else ())}.isdisjoint(LIMITS)
        # Without a limit, all messages that are there at the start are one batch, unless another batch has to be
        # finished first.
        batch = checkpoint.next_batch if trigger == ALL_NEW and not has_limit else None
        sql, are_few = self.compiled.nodes[source.model].sql, trigger == ALL_NEW and self.files[source.name].are_few()
        waivers = source.dead_letters.waived
        return self.tables.start(source.model, sql, self.run_id, trigger, batch, are_few, waivers)

    def _landed_by(self, source: Source, query: Any) -> Landed:
        progress = query.recentProgress
        self.remember(source, newest_landed(progress))
        return landed_in(progress)

    def result(self, source: Source, landed: Landed, notes: tuple[str, ...], verdict: Verdict) -> Result:
        """Returns the result of a model whose stream has ended, with a verdict on its dead letters: at least a warning
        if there are notes, parts that no row has, or no files.
        """
        silent = silences(self.compiled.nodes[source.model].promises, landed, source.name)
        aside = self._aside(source)
        notes = (*notes, *aside, *self._unmatched(source, landed), *self._after(source), *(str(one) for one in silent))
        status, message = verdict.worse(Verdict("warn" if notes else "success"))
        return Result(
            source.model,
            "model",
            status,
            message,
            notes,
            rows=landed.numbers,
            reasons=landed.reasons,
            waived=landed.waived,
            is_incomplete=bool(aside),
        )

    def _aside(self, source: Source) -> tuple[str, ...]:
        """Returns a note on the files that could not be read."""
        aside = self.files[source.name].aside
        if not aside:
            return ()
        what = f"{counted(len(aside), 'file')} cannot be read: {enumeration([shown(path) for path in aside])}"
        why = shown(next(iter(aside.values())))
        how = "the other files have landed; put the whole file there, or move it away, and run again"
        return (f"{what} ({why}): {how}",)

    def _unmatched(self, source: Source, landed: Landed) -> tuple[str, ...]:
        """Returns a note if a source has no files and never had any, unless they are repairs, which few need."""
        is_empty = not landed.messages and not source.messages.topics and not source.messages.are_repairs
        if is_empty and self.tables.checkpoint(source.model).newest_commit < 0:
            return (f'no file matches "{source.messages.path}"',)
        return ()

    def _found(self, source: Source) -> SourceFiles:
        """Returns the files of a source; raises QueryFailed for names at which Spark fails in every run."""
        files = self.files[source.name] = SourceFiles.found(source.messages, self.tables.checkpoint(source.model))
        if names := files.unreadable():
            raise QueryFailed(
                f"Spark finds no files where a name has a colon: {enumeration(names)}; rename it, or move it away"
            )
        return files

    def _fetch(self, source: Source) -> None:
        """Writes the result of a source's query to its files, unless it is there and nobody asks for another one."""
        if not (jdbc := source.messages.jdbc):
            return
        is_there = self.tables.files.exists(f"{jdbc.folder}/{DONE}")
        if not is_there or self.tables.refreshes.unfinished(source.model):
            write_result(self.spark, jdbc)

    def _forget_result(self, source: Source) -> None:
        """Removes the result of a source's query that has landed, if nobody may see all of its values."""
        if (jdbc := source.messages.jdbc) and source.masked:
            for name in self.tables.files.names(jdbc.folder):
                if name != DONE:
                    self.tables.files.remove(f"{jdbc.folder}/{name}")

    def _changed(self, model: str, files: SourceFiles) -> tuple[str, ...]:
        """Returns a note if files have changed since they were read."""
        if not (changed := files.changed()):
            return ()
        how = f"new messages belong in new files, and {full_refresh(model)} reads everything again"
        what = f"{counted(len(changed), 'file')} changed since read, and the change has not landed"
        return (f"{what}: {enumeration(changed)}; {how}",)

    def _after(self, source: Source) -> tuple[str, ...]:
        """Returns notes on files that were passed over; records the files that were read."""
        files = self.files[source.name]
        files.record()
        self._forget_result(source)
        if passed_over := files.passed_over():
            why = (
                "Spark reads none whose name begins with _ or ., or ends in ._COPYING_, and none in deeper folders; "
                "--continuous none with []{}*?\\ in its name"
            )
            what = f"{counted(len(passed_over), 'file')} not read though the pattern matches"
            return (f"{what}: {enumeration(passed_over)}; {why}",)
        return ()

    def start(self, source: Source, trigger: Mapping[str, Any]) -> tuple[Any, tuple[str, ...]]:
        """Starts the stream of a source; returns Spark's query, and notes for the user."""
        notes = self._ready(source)
        query, lost = self._started(source, trigger)
        return query, notes + lost

    def _ready(self, source: Source) -> tuple[str, ...]:
        """Checks the messages of a source and the table in which they land; returns notes."""
        self._fetch(source)
        files, notes = self._found(source), self._refreshed(source.model)
        upgrade(self.tables.checkpoint(source.model))
        check_consistency(source.model, self.tables)
        self.open_letters[source.name] = self._open_before(source)
        return notes + self._notes(source) + self._changed(source.model, files)

    def _open_before(self, source: Source) -> int | None:
        """Returns the number of dead letters that are open before a source lands; None if the table has to be asked
        later, because messages land once more or no run has counted yet.
        """
        checkpoint = self.tables.checkpoint(source.model)
        if checkpoint.newest_plan < 0:
            return 0
        has_again = checkpoint.again_waiting() or checkpoint.has_unfinished_batch
        return None if has_again else NodeResults(self.run.project).read(self.run.graph.nodes[source.model]).open

    def count_open(self, source: Source, landed: Landed) -> None:
        """Counts the dead letters of a source that are open after so much more has landed."""
        before = self.open_letters.get(source.name)
        if before is not None:
            self.open_letters[source.name] = before + sum(landed.unexpected.values())
            return
        # A count that fails is made by a later run.
        with suppress(QueryFailed), query_errors():
            self.tables.changelog_view(source.model)
            (row,) = self.spark.rows(self.run.macro("open_dead_letters", source, Chosen()))[1]
            self.open_letters[source.name] = row["count"]

    def _started(self, source: Source, trigger: Mapping[str, Any]) -> tuple[Any, tuple[str, ...]]:
        """Starts the stream of a source that is ready; returns Spark's query, and notes on messages that are lost."""
        model, compiled, files = source.model, self.compiled.nodes[source.model], self.files[source.name]
        lost: tuple[str, ...] = ()
        options = files.streams()[0]
        self.read_source(source, options)
        self.spark.register(compiled.functions, compiled.sql_functions)
        if source.messages.topics:
            lost = self._lost(source)
            with self.explained(source):
                self._finish_batch(source, options)
        else:
            self._leave_to_later(model, files)
            self.spark.measures.expect(model, *files.to_read)
        return self._stream(source, options, trigger), lost

    def _leave_to_later(self, model: str, files: SourceFiles) -> None:
        """Takes files that are gone out of a batch that was begun and has not landed: Spark would count them as read,
        also when they are there again.
        """
        gone = files.gone()
        if gone and not self.tables.has_batch(model, files.checkpoint.newest_plan):
            files.checkpoint.leave_out(gone)

    def _refreshed(self, model: str) -> tuple[str, ...]:
        """Removes what has landed, if this run is a full refresh or finishes one; in the second case returns a note."""
        begun = self.tables.refreshes.unfinished(model)
        if not begun:
            return ()
        self.tables.forget(model)
        self.tables.refreshes.done(model)
        return finishes(begun, self.run_id)

    def remember(self, source: Source, batch: int | None) -> None:
        """Records the newest batch that has landed messages, if there is one."""
        if batch is not None:
            self.tables.checkpoint(source.model).write_landed(batch)

    def read_source(
        self, source: Source, stream: Mapping[str, str] | None = None, messages: Messages | None = None
    ) -> None:
        """Creates the view of a source's messages, or of the given messages: of a stream with the options `stream`, or
        of a batch if there are none.
        """
        messages = messages or source.messages
        again = self.tables.checkpoint(source.model).again_folder
        source_view(self.spark, messages, self.reads(messages), f"{source.name}_messages", stream, again)

    def _finish_batch(self, source: Source, options: Mapping[str, str]) -> None:
        """Lands the batch that a run has begun and not finished."""
        checkpoint = self.tables.checkpoint(source.model)
        if not checkpoint.has_unfinished_batch:
            return
        begun = checkpoint.newest_plan
        query = self._stream(source, options, ALL_NEW)
        try:
            with query_errors():
                query.awaitTermination()
        except QueryFailed:
            # After it commits such a batch, the connector fails because it lacks one of its own statistics.
            if checkpoint.newest_commit < begun:
                raise

    @contextmanager
    def explained(self, source: Source) -> Iterator[None]:
        """Raises Spark's errors as QueryFailed. If a file of the table or of its checkpoint cannot be read, the error
        names the file. If messages were lost before they were read, the error names the messages.
        """

        def look(failure: QueryFailed) -> None:
            if not source.messages.topics:
                return
            if SAYS_LOST.search(failure.message):
                self._lost(source)
            raise QueryFailed(without_secrets(failure.message), failure.place) from None

        with telling(look), self.tables.naming_damage(source.model):
            yield

    def _lost(self, source: Source) -> tuple[str, ...]:
        """Returns notes on messages that Kafka lost before they were read; raises QueryFailed if the source allows no
        loss.
        """
        checkpoint, topics = self.tables.checkpoint(source.model), source.messages.topics
        now = topics_now(self.spark, topics, checkpoint.next_offsets()) if topics else None
        if now is None or topics is None:
            return ()
        if checkpoint.is_there:
            wanted, known = checkpoint.next_offsets(), checkpoint.topic_ids()
        else:
            wanted, known = _named_offsets(topics), {}
        lost = now.lost(wanted, known, checkpoint.is_there)
        if lost and topics.options["failOnDataLoss"] == "true":
            raise QueryFailed(
                f"messages that were not read yet are gone from Kafka: {enumeration(lost)}; "
                f"{full_refresh(source.model)} --accept-loss lands what is still there, or allow_loss: true goes on "
                "without them"
            )
        checkpoint.write_topic_ids({**known, **now.ids})
        self.spark.measures.expect(source.model, rows=now.left(wanted))
        return (f"messages were gone from Kafka before they were read: {enumeration(lost)}",) if lost else ()

    def _notes(self, source: Source) -> tuple[str, ...]:
        """Returns notes for the user before a source is landed; raises QueryFailed if the end of the source has
        changed, and `mask-secret` if the secret has that masks its values.
        """
        checkpoint = self.tables.checkpoint(source.model)
        had, made_by = checkpoint.fingerprints(), made_by_now(checkpoint, self.run.fingerprint_of(source))
        then, now = (had if had and checkpoint.is_there else made_by)[-1], made_by[-1]
        if then.reach != now.reach:
            raise QueryFailed(
                f'the end of "{source.name}" has changed since messages landed, '
                f"and messages that were skipped then would be missing: {full_refresh(source.model)} reads everything "
                "again"
            )
        check_secret(source, then, self.run.project.mask_secret)
        if made_by != had:
            checkpoint.write_fingerprints(made_by)
        if stale := [one for one in made_by if makes_other_rows(one, now)]:
            is_new = source.raw.are_all and 0 < len(had) < len(made_by)
            sampled = Reprocessing.sampled(self.run, source, stale_batches(made_by)) if is_new else ""
            return (told_stale(source, stale[0], now), *([sampled] if sampled else []))
        if GENERATION in then.changed_parts(now):
            return (f"source {source.name}: {GENERATION} changed: what lands from now on is of another load",)
        return ()


def finishes(begun: str | None, run_id: str) -> tuple[str, ...]:
    """Returns a note on a full refresh that another run began."""
    return (f"finishes the full refresh that the run {begun} began",) if begun and begun != run_id else ()


def _named_offsets(topics: Topics) -> Offsets:
    """Returns the offsets at which reading begins, if the source names them."""
    starting = topics.options.get("startingOffsets", "")
    offsets: Offsets = json.loads(starting) if starting.startswith("{") else {}
    return offsets
