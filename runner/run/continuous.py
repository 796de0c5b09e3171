"""Streams that land messages as they arrive until they are stopped: one batch per interval, and a line of output for
each batch that has landed messages. Mirrors take in what the streams have landed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol

from runner.contract import Landed
from runner.counts import enumeration
from runner.engine.errors import QueryFailed, SparkGone, query_errors
from runner.engine.messages import has_run, lag, landed
from runner.project.inputs import Source
from runner.project.mirror import Mirror
from runner.project.nodes import Node
from runner.run.execute import Execution
from runner.run.results import GOOD, Batch, Result, Verdict, judged
from runner.run.schedule import Listener

if TYPE_CHECKING:
    from runner.run.run import Run

POLL_SECONDS = 0.5
QUIET_SECONDS = 60.0
# Spark keeps the progress of this many batches of a stream. Of older batches only sums are kept here: memory does not
# grow with time.
PROGRESS_KEPT = 50
# A stream that has failed is started again after a pause, which is twice as long each time until messages land.
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 30.0, 600.0
PROGRESS_SETTING = "spark.sql.streaming.numRecentProgressUpdates"


class Watcher(Listener, Protocol):
    def opened(self, node: Node, number: int, total: int) -> None: ...
    def say(self, text: str) -> None: ...
    def progress(self, name: str, batch: Batch) -> None: ...
    def followed(self, name: str, result: Result, behind: int) -> None: ...
    def idle(self, busy: Iterable[str], behind: int | None) -> None: ...


@dataclass
class Stream:
    """A running stream. `newest` is the number of the newest batch that was seen, `awaited` the number of the newest
    batch when the stream was asked to stop. `behind` is the number of messages that the newest batch left to later
    ones. `verdict` is the worst one on a batch. `pause` is the number of seconds before the stream is started again if
    it fails.
    """

    node: Node
    source: Source
    number: int
    began: float
    query: Any
    notes: tuple[str, ...]
    newest: int | None = None
    awaited: int | None = None
    is_published: bool = False
    is_stopped: bool = False
    behind: int | None = None
    landed: Landed = field(default_factory=Landed)
    verdict: Verdict = GOOD
    pause: float = FIRST_PAUSE_SECONDS

    def new_batches(self) -> Iterator[Batch]:
        """Yields the batches that have ended since the last call, each once."""
        last = self.query.lastProgress
        if last is None or last.batchId == self.newest:
            return
        several = self.newest is None or last.batchId > self.newest + 1
        for progress in self.query.recentProgress if several else (last,):
            if (self.newest is None or progress.batchId > self.newest) and has_run(progress):
                yield self._counted(progress)

    def _counted(self, progress: Any) -> Batch:
        new, behind = landed([progress]), lag(json.loads(progress.json)["sources"])
        batch = Batch(
            progress.batchId, new, progress.batchDuration / 1000, behind, judged(self.source, new, progress.batchId)
        )
        self.newest, self.behind, self.verdict = batch.number, batch.behind, self.verdict.worse(batch.verdict)
        self.landed += batch.landed
        return batch

    def stop(self, at_once: bool) -> bool:
        """Stops the stream between two batches, or at once; False if it goes on until the batch in flight ends."""
        status = self.query.status
        self.awaited = (self.newest if self.newest is not None else -1) if self.awaited is None else self.awaited
        # With a backlog the next batch begins at once, and the trigger stays active: only a batch newer than `awaited`
        # shows that the batch in flight has ended.
        if status["isTriggerActive"] and not at_once and (self.newest is None or self.newest <= self.awaited):
            return False
        self.is_stopped = True
        self.query.stop()
        return True


class Continuous:
    """Lands sources until a signal comes, one batch in each `interval`, such as `10 seconds`, and keeps mirrors up to
    date. `paused` maps each model whose stream has failed to the time at which the stream is started again, and to the
    function that starts it.
    """

    def __init__(self, run: Run, watcher: Watcher, interval: str, fail_fast: bool = False) -> None:
        self.execution = Execution(run)
        self.spark, self.landing, self.publisher, self.signals = run.spark, run.landing, run.publisher, run.signals
        self.views, self.watcher, self.interval, self.fail_fast = run.views, watcher, interval, fail_fast
        self.sources = [(node, node.model.source) for node in run.nodes if node.model and node.model.source]
        mirrors = [(node, node.model.mirror) for node in run.nodes if node.model and node.model.mirror]
        followers = [Follower(node, nth, mirror) for nth, (node, mirror) in enumerate(mirrors, len(self.sources) + 1)]
        self.following = Following(self._rebuilt, followers)
        self.seen, self.known_mirrors = run.seen, frozenset(run.graph.nodes)
        self.running: list[Stream] = []
        self.paused: dict[str, tuple[float, Callable[[], None]]] = {}
        self.results: list[Result] = []
        self.reported_at = 0.0

    def _rebuilt(self, node: Node) -> Result:
        self.views.are_outdated(node.parents)
        return self.execution.run(node)

    def run(self) -> list[Result]:
        """Lands the sources until a signal comes or none of them runs; returns one result per model and mirror."""
        self.total, self.reported_at = len(self.sources) + len(self.following.followers), time.monotonic()
        # Spark reads the setting again with each batch.
        with self._limited_progress():
            for number, (node, source) in enumerate(self.sources, 1):
                if self._must_stop():
                    why = "because the run was stopped"
                    self._finish(node, number, Result(node.name, node.resource_type, "skipped", why))
                else:
                    self._start(node, source, number)
                    self._look()
            while self.running:
                self._look()
                self._follow()
                if self._must_stop():
                    self._stop(at_once=self.signals.count > 1)
                else:
                    self._start_again()
                self._report_if_idle()
                time.sleep(POLL_SECONDS if self.running else 0)
            self._end_following()
        return self.results

    @contextmanager
    def _limited_progress(self) -> Iterator[None]:
        with ExitStack() as settings:
            # If the JVM has ended, nothing is raised here: the streams report it.
            with suppress(SparkGone), query_errors():
                settings.enter_context(self.spark.setting(PROGRESS_SETTING, str(PROGRESS_KEPT)))
            try:
                yield
            finally:
                with suppress(SparkGone), query_errors():
                    settings.close()

    def _must_stop(self) -> bool:
        return self.signals.count > 0 or (self.fail_fast and any(r.status == "error" for r in self.results))

    def _start(self, node: Node, source: Source, number: int, failed_before: Stream | None = None) -> None:
        self.watcher.opened(node, number, self.total)
        began = time.monotonic()
        try:
            with self.landing.explained(source):
                query, notes = self.landing.start(source, {"processingTime": self.interval})
        except QueryFailed as failure:
            result = self.execution.failed(node, failure)
            self._finish(node, number, replace(result, seconds=time.monotonic() - began))
            self._pause(self._continued(Stream(node, source, number, began, None, ()), failed_before))
            return
        self.running.append(self._continued(Stream(node, source, number, began, query, notes), failed_before))
        for note in notes:
            self.watcher.say(f"{node.name}: {note}")

    def _continued(self, stream: Stream, before: Stream | None) -> Stream:
        """Returns a stream that also counts what `before` has landed, the stream of the same model that has failed."""
        if before is None:
            return stream
        notes = dict.fromkeys((*before.notes, *stream.notes, "it had failed, and was started again"))
        pause = min(2 * before.pause, LONGEST_PAUSE_SECONDS)
        return replace(stream, landed=before.landed, verdict=before.verdict, notes=tuple(notes), pause=pause)

    def _pause(self, stream: Stream) -> None:
        again = partial(self._start, stream.node, stream.source, stream.number, stream)
        self.paused[stream.node.name] = time.monotonic() + stream.pause, again

    def _start_again(self) -> None:
        """Starts the streams whose pause is over: the messages that they could not read may be there again."""
        for name, (until, start) in list(self.paused.items()):
            if time.monotonic() >= until:
                del self.paused[name]
                start()

    def _look(self) -> None:
        """Reports the batches and the streams that have ended."""
        for stream in list(self.running):
            try:
                with self.landing.explained(stream.source):
                    # Must come before the progress is read: after a stream has ended, its progress is complete.
                    has_ended = not stream.query.isActive
                    for batch in stream.new_batches():
                        self._report(stream, batch)
                    if has_ended and not stream.is_stopped:
                        stream.query.awaitTermination()
            except QueryFailed as failure:
                self._failed(stream, failure)
            else:
                if has_ended:
                    result = self.landing.result(stream.source, stream.landed, stream.notes, stream.verdict)
                    self._ended(stream, result)

    def _report(self, stream: Stream, batch: Batch) -> None:
        if not batch.landed.messages:
            return
        self.landing.remember(stream.source, batch.number)
        self.following.landed(stream.node.name, batch.landed.messages)
        stream.pause = FIRST_PAUSE_SECONDS
        self.watcher.progress(stream.node.name, batch)
        self.reported_at = time.monotonic()
        if not stream.is_published:
            stream.is_published = True
            self._publish(stream)

    def _publish(self, stream: Stream) -> None:
        """Publishes the table of a stream as soon as it has rows. If the catalog refuses the table, messages still
        land.
        """
        try:
            self.publisher.publish(stream.node.name)
        except QueryFailed as failure:
            stream.notes += (failure.message,)
            self.watcher.say(f"{stream.node.name}: {failure.message}")

    def _follow(self) -> None:
        """Reports the mirror that has been brought up to date. Unless the run ends, the next mirror begins."""
        for followed in self.following.look() if not self._must_stop() else ():
            self._followed(*followed)

    def _end_following(self) -> None:
        """Waits for the mirror that is being built, and reports all mirrors."""
        for followed in self.following.end():
            # The second signal has ended Spark, and with it what ran there.
            if not (followed[1].has_failed and self.signals.count > 1):
                self._followed(*followed)
        for follower in self.following.followers:
            result = self._last(follower.node.name)
            if not result:
                result = Result(follower.node.name, "model", "skipped", "because the run was stopped")
            if not result.has_failed:
                more = (f"{follower.behind} messages behind: the next run brings them",) if follower.behind else ()
                self._finish(follower.node, follower.number, replace(result, notes=(*result.notes, *more)))

    def _followed(self, follower: Follower, result: Result, behind: int) -> None:
        name, before = follower.node.name, self._last(follower.node.name)
        if result.has_failed:
            self._finish(follower.node, follower.number, result)
            return
        for note in result.notes:
            if not before or note not in before.notes:
                self.watcher.say(f"{name}: {note}")
        self._keep(result)
        self.watcher.followed(name, result, behind)
        self._tell_new_tables()
        self.reported_at = time.monotonic()

    def _tell_new_tables(self) -> None:
        """Reports once that a rule has mirrors of tables that are new: their nodes are not among those of this run."""
        new = sorted(self.seen.project_now().mirrors.by_rule - self.known_mirrors)
        self.known_mirrors |= frozenset(new)
        if new:
            self.watcher.say(f"new tables: the next start of the runner makes their mirrors: {enumeration(new)}")

    def _report_if_idle(self) -> None:
        if time.monotonic() - self.reported_at < QUIET_SECONDS:
            return
        self.reported_at = time.monotonic()
        # An error of a stream that does not answer is handled at the next poll.
        with suppress(QueryFailed), query_errors():
            states = [(stream, stream.query.status) for stream in self.running]
            # A trigger is also active while Spark looks for messages.
            busy = [
                stream.node.name for stream, status in states if status["isTriggerActive"] and status["isDataAvailable"]
            ]
            behind = [
                stream.behind if status["isDataAvailable"] else 0
                for stream, status in states
                if stream.behind is not None
            ]
            self.watcher.idle(busy, sum(behind) if behind else None)

    def _stop(self, at_once: bool) -> None:
        for stream in [s for s in self.running if not s.is_stopped]:
            is_first = stream.awaited is None
            try:
                with query_errors():
                    if not stream.stop(at_once) and is_first:
                        self.watcher.say(f"stopping: waiting for the batch of {stream.node.name}")
            except QueryFailed as failure:
                self._failed(stream, failure)

    def _failed(self, stream: Stream, failure: QueryFailed) -> None:
        """Ends a stream that has failed. The stream counts as stopped, not as failed, if its JVM was stopped along with
        the runner, as service managers do.
        """
        if isinstance(failure, SparkGone) and self.signals.count:
            stopped = "its JVM was stopped too: the next run lands the batch that was in flight"
            self._ended(stream, Result(stream.node.name, "model", *stream.verdict, notes=(*stream.notes, stopped)))
        else:
            self.landing.set_aside(stream.source, failure)
            result = self.execution.failed(stream.node, failure)
            self._ended(stream, replace(result, notes=stream.notes))
            self._pause(stream)

    def _ended(self, stream: Stream, result: Result) -> None:
        self.running.remove(stream)
        self._finish(
            stream.node,
            stream.number,
            replace(result, rows=stream.landed.numbers, seconds=time.monotonic() - stream.began),
        )

    def _finish(self, node: Node, number: int, result: Result) -> None:
        self._keep(result)
        self.watcher.finished(node, result, number, self.total)
        self.reported_at = time.monotonic()

    def _last(self, name: str) -> Result | None:
        return next((one for one in self.results if one.name == name), None)

    def _keep(self, result: Result) -> None:
        self.results = [*(one for one in self.results if one.name != result.name), result]


@dataclass
class Follower:
    """A mirror that follows streams. `number` is its number among the nodes of a run, `behind` the number of messages
    that have landed and that its table does not have. `is_due` is True if it has to be brought up to date.
    """

    node: Node
    number: int
    mirror: Mirror
    behind: int = 0
    is_due: bool = True


# A mirror that was brought up to date, its result, and the number of messages that have landed since that began.
Followed = tuple[Follower, Result, int]


class Following:
    """The mirrors that follow the streams of one run: one after the other takes in what has landed. `build` brings a
    mirror up to date, in any thread. A mirror is due when the run begins, and whenever messages have landed for it.
    """

    def __init__(self, build: Callable[[Node], Result], followers: Collection[Follower]) -> None:
        self.build, self.followers, self.pool = build, followers, ThreadPoolExecutor(1)
        self.running: tuple[Follower, Future[Result]] | None = None

    def landed(self, model: str, messages: int) -> None:
        """Records that a model has landed messages."""
        for follower in self.followers:
            if model in follower.mirror.models:
                follower.behind += messages
                follower.is_due = True

    def look(self) -> Iterator[Followed]:
        """Yields the mirror that has been brought up to date since the last call, if there is one; then begins the next
        one.
        """
        if self.running and not self.running[1].done():
            return
        yield from self._ended()
        # The mirror that is furthest behind goes first; of mirrors that are equally far behind, the first in their
        # order.
        due = max((one for one in self.followers if one.is_due), key=attrgetter("behind"), default=None)
        if due:
            due.is_due, due.behind = False, 0
            self.running = due, self.pool.submit(self.build, due.node)

    def end(self) -> Iterator[Followed]:
        """Waits for the mirror that is being built, and yields it; no other mirror begins."""
        try:
            yield from self._ended()
        finally:
            self.pool.shutdown()

    def _ended(self) -> Iterator[Followed]:
        if self.running:
            (follower, future), self.running = self.running, None
            yield follower, future.result(), follower.behind
