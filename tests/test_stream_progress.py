"""What is made of what Spark says of streams that land continuously, and what follows them. No Spark."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from dataclasses import replace
from decimal import Decimal
from threading import Event
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

from runner.engine.errors import QueryFailed, query_errors
from runner.project.inputs import DeadLetterLimits, Limit
from runner.project.nodes import Graph, Model, Node
from runner.run.continuous import Continuous, Follower, Following, Stream
from runner.run.landing import Landing
from runner.run.results import Result, Verdict
from runner.run.schedule import StopSignals


def batch(number: int) -> Any:
    """A batch with a row and a dead letter."""
    rows = {"row": 1, "ddl": 0, "control": 0, "dead_letter": 1}
    reasons = [{"count": 1}, {"item": "no-op", "count": 1}]
    counts = {"messages": 2, "rows": rows, "reasons": reasons, "expected": {"key": 1}, "found": {"key": 0}}
    observed = {"landed": SimpleNamespace(asDict=lambda: {"counts": json.dumps(counts)})}
    return SimpleNamespace(
        batchId=number,
        batchDuration=800,
        observedMetrics=observed,
        durationMs={"latestOffset": 1, "addBatch": 700, "triggerExecution": 800},
        json='{"sources": [{"endOffset": null, "latestOffset": null}]}',
    )


def idle(number: int) -> Any:
    """What Spark tells after ten seconds without messages: the batch that comes next has this number."""
    times = {"latestOffset": 1, "triggerExecution": 1}
    return SimpleNamespace(**{**vars(batch(number)), "observedMetrics": {}, "durationMs": times})


class Query:
    """A stream that has run the batches that it is told, and keeps what it said of the last three."""

    def __init__(self) -> None:
        self.recentProgress: list[Any] = []
        self.status = {"isTriggerActive": True, "isDataAvailable": True}
        self.isActive = True

    @property
    def lastProgress(self) -> Any:
        return self.recentProgress[-1] if self.recentProgress else None

    def stop(self) -> None:
        self.isActive = False

    def ran(self, *batches: Any) -> None:
        self.recentProgress = [*self.recentProgress, *batches][-3:]


NODE = Node("app_to_changelog", "model", Model("", "streaming"))
# What is asked of its source: whether it reads topics, and how many dead letters are too many.
SOURCE: Any = SimpleNamespace(
    model="a", name="a", messages=SimpleNamespace(topics=None), dead_letters=DeadLetterLimits(fail=None)
)
NOTHING: Any = None


def stream_of(query: Query) -> Stream:
    return Stream(NODE, SOURCE, 1, 0.0, query, ())


def test_each_batch_is_counted_once() -> None:
    query = Query()
    stream = stream_of(query)
    seen: list[int] = []
    for batches in ((), (4, 5), (), (6,), (7, 8, 9), (9,), (10, 11)):
        query.ran(*map(batch, [n for n in batches if n not in seen]))
        seen += [found.number for found in stream.new_batches()]
    assert seen == [4, 5, 6, 7, 8, 9, 10, 11] and stream.landed.messages == 16
    assert (stream.landed.rows["row"], stream.landed.reasons) == (8, {"no-op": 8})
    assert (stream.landed.expected, stream.landed.found) == ({"key": 8}, {"key": 0})


def test_each_batch_is_judged_and_the_first_bad_one_is_kept() -> None:
    query = Query()
    source = SimpleNamespace(name="app", dead_letters=DeadLetterLimits(fail=Limit(Decimal(1))))
    stream = replace(stream_of(query), source=source)
    query.ran(batch(4), batch(5))
    why = "1 dead letter in 2 messages, the limit of 1 is reached: 1 no-op; runner dead-letters --source app shows them"
    assert [one.verdict.message for one in stream.new_batches()] == [f"batch 4: {why}", f"batch 5: {why}"]
    assert stream.verdict == Verdict("fail", f"batch 4: {why}")


def test_a_batch_after_a_time_without_messages_is_counted() -> None:
    query = Query()
    stream = stream_of(query)
    seen = []
    for told in ((batch(0),), (idle(1),), (idle(1),), (batch(1), idle(2)), (idle(2), batch(2)), (batch(3),)):
        query.ran(*told)
        seen += [found.number for found in stream.new_batches()]
    assert seen == [0, 1, 2, 3] and stream.landed.messages == 8


def test_behind_a_backlog_it_stops_when_the_awaited_batch_has_ended() -> None:
    query = Query()
    stream = stream_of(query)
    assert not stream.stop(at_once=False)
    query.ran(batch(0))
    list(stream.new_batches())
    assert stream.stop(at_once=False) and not query.isActive


def test_between_two_batches_and_at_once_it_does_not_wait() -> None:
    query = Query()
    query.status = {"isTriggerActive": False, "isDataAvailable": False}
    assert stream_of(query).stop(at_once=False)
    assert stream_of(Query()).stop(at_once=True)


def test_a_stream_that_fails_is_started_again_after_longer_and_longer_pauses() -> None:
    results: Any = iter([*[QueryFailed("no broker")] * 7, (Query(), ())])

    def start(*_: object) -> Any:
        if isinstance(result := next(results), QueryFailed):
            raise result
        return result

    landing: Any = SimpleNamespace(start=start, explained=lambda _: nullcontext())
    nothing = lambda *_: None  # noqa: E731
    watcher: Any = SimpleNamespace(opened=nothing, started=nothing, finished=nothing, say=nothing)
    run = Mock(landing=landing, nodes=[], graph=Graph({}), signals=StopSignals())
    watched = Continuous(run, watcher, "1 second")
    watched.total, pauses = 1, []
    watched._start(NODE, SOURCE, 1)
    while watched.paused:
        until, again = watched.paused.pop(NODE.name)
        pauses.append(round(until - time.monotonic()))
        assert [result.status for result in watched.results] == ["error"] and not watched.running
        again()
    assert pauses == [30, 60, 120, 240, 480, 600, 600]
    assert [stream.notes for stream in watched.running] == [("it had failed, and was started again",)]


def test_a_jvm_that_ends_fails_its_streams_unless_they_were_to_stop() -> None:
    class Gone(Query):
        @property
        def lastProgress(self) -> Any:
            raise ConnectionRefusedError

    def result(signals: int) -> Result:
        tables: Any = SimpleNamespace(naming_damage=lambda _: query_errors())
        run = Mock(tables=tables, nodes=[], graph=Graph({}), signals=StopSignals())
        run.landing = Landing(run)
        watcher: Any = SimpleNamespace(finished=lambda *_: None)
        watched = Continuous(run, watcher, "1 second")
        watched.running = [stream_of(Gone())]
        watched.total, watched.signals.count = 1, signals
        watched._look()
        assert not watched.running
        return watched.results[0]

    assert result(0).status == "error" and "the JVM of Spark has ended" in result(0).message
    assert result(1).status == "success" and result(1).notes


def test_what_lands_while_a_mirror_is_built_is_behind_and_then_follows() -> None:
    built, may_end = [], Event()
    mirror: Any = SimpleNamespace(models=("app_to_changelog",))
    other: Any = SimpleNamespace(models=("other_to_changelog",))

    def build(node: Node) -> Result:
        built.append(node.name)
        assert may_end.wait(10)
        return Result(node.name, "model", "success")

    def ended() -> list[tuple[str, int]]:
        deadline = time.monotonic() + 10
        while not (found := list(follows.look())) and time.monotonic() < deadline:
            time.sleep(0.01)
        return [(follower.node.name, behind) for follower, _, behind in found]

    nodes = [replace(NODE, name=name) for name in ("first", "second")]
    follows = Following(build, [Follower(nodes[0], 2, mirror), Follower(nodes[1], 3, other)])
    follows.landed("app_to_changelog", 5)
    assert not list(follows.look()) and not list(follows.look())
    follows.landed("app_to_changelog", 7)
    may_end.set()
    assert [*ended(), *ended(), *ended()] == [("first", 7), ("first", 0), ("second", 0)]
    assert not list(follows.look()) and not list(follows.end())
    assert built == ["first", "first", "second"]
