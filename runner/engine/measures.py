"""Measures how far the work in a session is: Spark counts rows and bytes of its jobs while they run."""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from runner.live import Measure

# The metric in which Spark counts, while a query runs, the rows that a step of the query gives.
ROWS = "number of output rows"
# The number of the newest queries in Spark's list that are looked at.
NEWEST = 20


# The numbers of rows and bytes that the stages of jobs have read, and of rows that they have written.
Counts = tuple[int, int, int]


@dataclass
class Task:
    """Work whose jobs have the tag. `bytes` and `rows` are the amounts that it will read, None if they are not known.
    `stages` has the counts of its jobs' stages so far, `scanned` the number of rows that each query has read. The
    counts of jobs and queries in `ended` do not change any more.
    """

    tag: str
    bytes: int | None = None
    rows: float | None = None
    stages: dict[int, Counts] = field(default_factory=dict)
    scanned: dict[int, int] = field(default_factory=dict)
    scans: dict[int, list[int]] = field(default_factory=dict)
    ended: set[tuple[str, int]] = field(default_factory=set)

    @property
    def measure(self) -> Measure:
        in_stages, size, written = map(sum, zip((0, 0, 0), *self.stages.values()))
        # Spark counts what a stage has read only when a task ends, and what a query has scanned also before; only
        # stages count what is read without a scan.
        read = max(in_stages, sum(self.scanned.values()))
        rows = in_stages * self.bytes / size if self.bytes and size else self.rows
        return Measure(read, written, read / rows if rows and read else None)


class Measures:
    """Measures pieces of work by their names, in any thread. With Spark Connect it measures nothing."""

    def __init__(self, session: SparkSession, is_remote: bool) -> None:
        self.session = None if is_remote else session
        self.run = uuid.uuid4().hex
        self.tasks: dict[str, Task] = {}

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Counts jobs of this thread in the block, and of streams that the block starts, as work of this name."""
        task = self.tasks[name] = Task(f"{self.run}-{len(self.tasks)}")
        if not self.session:
            yield
            return
        # The JVM may have ended: the code that works with the JVM reports that, not the code that measures.
        with suppress(Py4JError, OSError):
            self.session.sparkContext.addJobTag(task.tag)
        try:
            yield
        finally:
            with suppress(Py4JError, OSError):
                self.session.sparkContext.removeJobTag(task.tag)

    def expect(self, name: str, bytes: int | None = None, rows: float | None = None) -> None:
        """Sets the amount that the work of this name will read in all, if the work is measured."""
        if task := self.tasks.get(name):
            task.bytes, task.rows = bytes, rows

    def now(self, name: str) -> Measure | None:
        """Returns how far the work of this name is; None if that is not known."""
        task = self.tasks.get(name)
        if not task or not self.session:
            return None
        spark = self.session.sparkContext._jsc.sc()
        jobs = list(spark.statusTracker().getJobIdsForTag(task.tag))
        for job in jobs:
            if ("job", job) not in task.ended:
                _look_at_job(task, spark.statusStore(), job)
        _look_at_queries(task, self.session._jsparkSession.sharedState().statusStore(), jobs)
        return task.measure


def _look_at_job(task: Task, store: Any, number: int) -> None:
    """Looks at the stages of a job."""
    job = store.job(number)
    has_ended, stages = job.completionTime().isDefined(), job.stageIds()
    for place in range(stages.length()):
        task.stages[stages.apply(place)] = _stage(store, stages.apply(place))
    if has_ended:
        task.ended.add(("job", number))


def _stage(store: Any, number: int) -> Counts:
    try:
        stage = store.lastStageAttempt(number)
        return stage.inputRecords(), stage.inputBytes(), stage.outputRecords()
    except Py4JError:
        # Spark has no such stage if its rows were there already, or if Spark has forgotten the stage.
        return 0, 0, 0


def _look_at_queries(task: Task, store: Any, jobs: Collection[int]) -> None:
    """Looks at the rows that the queries of these jobs have read."""
    newest = store.executionsList(max(0, store.executionsCount() - NEWEST), NEWEST)
    for place in range(newest.length()):
        query = newest.apply(place)
        number, has_ended = query.executionId(), query.completionTime().isDefined()
        if ("query", number) in task.ended or not any(query.jobs().contains(job) for job in jobs):
            continue
        task.scans[number] = scans = task.scans.get(number) or _scans(store.planGraph(number))
        values = store.executionMetrics(number)
        texts = [values.apply(scan) for scan in scans if values.contains(scan)]
        task.scanned[number] = sum(int(re.sub(r"\D", "", text) or 0) for text in texts)
        if has_ended:
            task.ended.add(("query", number))


def _scans(graph: Any) -> list[int]:
    """Returns the numbers in Spark of the metrics that count the rows that a query reads."""
    nodes, found = graph.allNodes(), []
    for place in range(nodes.length()):
        if "Scan" in nodes.apply(place).name():
            metrics = nodes.apply(place).metrics()
            all_metrics = [metrics.apply(number) for number in range(metrics.length())]
            found += [metric.accumulatorId() for metric in all_metrics if metric.name() == ROWS]
    return found
