"""Runs selected nodes, parents first, several at a time. After a failure, nodes that depend on it are skipped and the
others still run. Views of all sources do not depend on a single source: they, and the nodes that read them, run with a
warning.
"""

from __future__ import annotations

import graphlib
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import cached_property
from threading import Thread
from types import MappingProxyType
from typing import Protocol

from runner.project.nodes import DataTest, Graph, Model, Node, UnitTest
from runner.run.results import Interrupted, Result

POLL_SECONDS = 0.2
END_AT_ONCE = 2


class Listener(Protocol):
    def started(self, node: Node, number: int, total: int) -> None: ...
    def finished(self, node: Node, result: Result, number: int, total: int) -> None: ...


class Order:
    """The order of the nodes with these names, and the nodes that a failure stops. `queries` maps tests to their
    queries: of tests that share a query, the first by name runs first.
    """

    def __init__(self, graph: Graph, names: Iterable[str], queries: Mapping[str, str] = MappingProxyType({})) -> None:
        self.graph, self.queries = graph, queries
        self.chosen = frozenset(name for name in names if graph.nodes[name].resource_type != "source")

    @cached_property
    def before(self) -> dict[str, list[str]]:
        """Each node -> the nodes that must have ended before it: its parents, the unit tests of a model, and the data
        tests of what the node reads.
        """
        graph, chosen = self.graph, self.chosen
        before: dict[str, set[str]] = {name: graph.upstream({name}) & chosen for name in chosen}
        leaders: dict[str, str] = {}
        for name in sorted(chosen):
            match graph.nodes[name].subject:
                case UnitTest() as test:
                    before[name].discard(test.model)
                    if test.model in chosen:
                        before[test.model].add(name)
                case DataTest():
                    for reader in (self.models_below(_tested(graph.nodes[name])) & chosen) - before[name]:
                        before[reader].add(name)
            if name in self.queries:
                before[name] |= {leaders.setdefault(self.queries[name], name)} - {name}
        return {name: sorted(before[name]) for name in sorted(chosen)}

    def models_below(self, names: Iterable[str]) -> set[str]:
        return {below for below in self.graph.downstream(names) if self.graph.nodes[below].model}

    def depending(self, node: Node, failed: AbstractSet[str]) -> set[str]:
        """Returns the nodes to skip after a node has failed. After a data test, these are the models that read the
        tested model, and their tests. After a unit test, these are its model and all nodes below the model, unless the
        model does not run: then its table stays as it is. Views of all sources, and the nodes that read them, are
        skipped only when all of their sources are in `failed`.
        """
        graph, views = (
            self.graph,
            [one for one in self.graph.nodes.values() if one.model and one.model.reads_all_sources],
        )
        without = {view.name for view in views if not failed >= set(view.parents)}
        match node.subject:
            case Model():
                below = graph.downstream({node.name}, without=without)
            case DataTest():
                models = {n for n in graph.downstream(_tested(node), without=without) if graph.nodes[n].model}
                models -= graph.upstream({node.name})
                below = models | graph.downstream(models, without=without)
            case UnitTest() as test if test.model in self.chosen:
                below = {test.model} | graph.downstream({test.model}, without=without)
            case _:
                below = set()
        return {n for n in below if graph.nodes[n].resource_type != "unit_test"}


class Schedule:
    """One run of nodes in an order. `do` runs one node, in any thread. The listener is called in the thread that runs
    the schedule. The first signal to stop cancels the nodes that run; after the second signal the run waits for
    nothing.
    """

    def __init__(
        self,
        order: Order,
        do: Callable[[Node], Result],
        listener: Listener,
        signals: StopSignals,
        threads: int = 1,
        fail_fast: bool = False,
    ) -> None:
        self.order, self.graph, self.do, self.listener, self.signals = order, order.graph, do, listener, signals
        self.threads, self.fail_fast = threads, fail_fast
        self.results: list[Result] = []
        self.left = set(order.before)
        self.total = len(order.before)
        self.sorter = graphlib.TopologicalSorter(order.before)
        self.ready: deque[str] = deque()
        self.running: dict[Future[Result], tuple[Node, int, float]] = {}
        self.blocked: dict[str, str] = {}
        self.failed: set[str] = set()
        self.lacks: dict[str, tuple[str, ...]] = {}

    def run(self) -> list[Result]:
        """Runs the nodes; returns their results in the order in which they ended. Raises Interrupted, with the results,
        after a signal to stop.
        """
        self.sorter.prepare()
        pool = ThreadPoolExecutor(self.threads)
        try:
            while self.sorter.is_active():
                if self.signals.count:
                    raise KeyboardInterrupt
                self.ready += self.sorter.get_ready()
                self._start(pool)
                self._gather(POLL_SECONDS)
        except KeyboardInterrupt:
            self._interrupt()
            raise Interrupted(self.results) from None
        finally:
            pool.shutdown(wait=self.signals.count < END_AT_ONCE)
        return self.results

    def _start(self, pool: ThreadPoolExecutor) -> None:
        while self.ready and len(self.running) < self.threads:
            node = self.graph.nodes[self.ready.popleft()]
            self.left.remove(node.name)
            number = self.total - len(self.left)
            if node.name in self.blocked:
                self._ended(node, number, Result(node.name, node.resource_type, "skipped", self.blocked[node.name]))
            else:
                self.listener.started(node, number, self.total)
                self.running[pool.submit(self.do, node)] = node, number, time.monotonic()

    def _gather(self, seconds: float) -> None:
        """Waits for a node to end, if any runs, but not longer than `seconds`."""
        for future in wait(self.running, seconds, return_when=FIRST_COMPLETED).done:
            result = future.result()
            # The second signal has ended Spark: a node that fails after that was interrupted.
            if result.has_failed and self.signals.count >= END_AT_ONCE:
                continue
            node, number, _ = self.running.pop(future)
            self._ended(node, number, result)
            if result.stops_readers or (result.has_failed and self.fail_fast):
                self._failed(node)

    def _failed(self, node: Node) -> None:
        """Decides what a failure stops, and which models go on without what has failed."""
        self.failed.add(_judged(node))
        skipped = self.left if self.fail_fast else self.order.depending(node, self.failed)
        self.blocked |= {name: f'because "{node.name}" failed' for name in skipped if name not in self.blocked}
        for name in self.order.models_below([_judged(node)]) - skipped:
            self.lacks[name] = (*self.lacks.get(name, ()), _what_lacks(node))

    def _ended(self, node: Node, number: int, result: Result) -> None:
        lacks = self.lacks.get(node.name, ())
        if lacks and result.status in ("success", "warn"):
            result = replace(result, status="warn", notes=(*result.notes, *lacks))
        self.results.append(result)
        self.listener.finished(node, result, number, self.total)
        self.sorter.done(node.name)

    def _interrupt(self) -> None:
        # A node that ended before it was cancelled keeps its own result. This must be first: after the cancelling, a
        # stream that was cut looks like one that has landed everything.
        self._gather(0)
        cancelling = Thread(target=self.signals.cancel, daemon=True)
        while wait(self.running, timeout=0).not_done and self.signals.count < END_AT_ONCE:
            # Cancelling needs a thread, because it may wait for Spark. It is repeated, because a node may begin its
            # next query.
            if not cancelling.is_alive():
                cancelling = Thread(target=self.signals.cancel, daemon=True)
                cancelling.start()
            wait(self.running, timeout=POLL_SECONDS)
        for node, number, began in self.running.values():
            self._ended(
                node,
                number,
                Result(node.name, node.resource_type, "error", "interrupted", seconds=time.monotonic() - began),
            )
        for name in sorted(self.left):
            self.results.append(
                Result(name, self.graph.nodes[name].resource_type, "skipped", "because the run was interrupted")
            )


def _judged(node: Node) -> str:
    """Returns the model that a node builds or tests; for a test of something else, the test itself."""
    match node.subject:
        case DataTest() | UnitTest() as test if test.model:
            return test.model
    return node.name


def _tested(node: Node) -> tuple[str, ...]:
    """Returns the models that a data test judges: its own model or, if it has none, all models that it reads."""
    return (test.model,) if (test := node.data_test) and test.model else node.parents


def _what_lacks(node: Node) -> str:
    """Returns a text that says what is wrong with a model that is built although a node above it has failed."""
    if node.model:
        return f'without the rows of "{node.name}" that did not land: it failed'
    return f'with the rows of "{_judged(node)}" as they are: "{node.name}" failed'


SIGNALS = (signal.SIGINT, signal.SIGTERM)
# The seconds that a run needs after the second signal to record what it has done; a third signal may come sooner.
SECONDS_TO_END = 5.0


class StopSignals:
    """Counts Ctrl-C and SIGTERM in its block. Until `count_only` is called, each also raises KeyboardInterrupt."""

    def __init__(self) -> None:
        self.count = 0
        self.only_count = False
        self.cancel: Callable[[], None] = do_nothing
        self._end_at_once: Callable[[], None] = do_nothing
        self._ended_at = 0.0

    def __enter__(self) -> StopSignals:
        # Only the main thread gets signals.
        is_main = threading.current_thread() is threading.main_thread()
        self._before = {number: signal.getsignal(number) for number in SIGNALS} if is_main else {}
        self._listen()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler or signal.SIG_DFL)

    def count_only(self, cancel: Callable[[], None], end_at_once: Callable[[], None]) -> None:
        """Changes what signals do: from now on they are only counted. The run looks at `count`, and calls `cancel` to
        end what runs in all threads. The second signal calls `end_at_once` itself, because all threads may be waiting
        for Spark. If the run has not ended some seconds later, the next signal raises KeyboardInterrupt.
        """
        self.only_count, self.cancel, self._end_at_once = True, cancel, end_at_once
        # A new Spark session has put its own handler here, which would cancel all jobs and raise.
        self._listen()

    def _listen(self) -> None:
        for number in self._before:
            signal.signal(number, self._on_signal)

    def _on_signal(self, *_: object) -> None:
        # While signals are only counted, nothing is printed or raised here: the main thread may be in the middle of a
        # line, or of a call to the JVM.
        self.count += 1
        if not self.only_count or (self.count > 2 and time.monotonic() - self._ended_at > SECONDS_TO_END):
            raise KeyboardInterrupt
        if self.count == 2:
            self._ended_at = time.monotonic()
            self._end_at_once()


def do_nothing() -> None:
    """Does nothing: used where nothing is to be done."""
