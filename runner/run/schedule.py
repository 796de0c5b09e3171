"""Runs selected nodes, parents first, several at a time. After a failure, nodes that depend on it are skipped and the
others still run.
"""

from __future__ import annotations

import graphlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Protocol

from runner.project.graph import Graph
from runner.project.nodes import Case, DataTest, FunctionTest, Model, Node, UnitTest
from runner.run.results import Interrupted, Result

POLL_SECONDS = 0.5


class Listener(Protocol):
    def started(self, node: Node, number: int, total: int) -> None: ...
    def finished(self, node: Node, result: Result, number: int, total: int) -> None: ...


def what_comes_before(graph: Graph, names: Iterable[str], queries: Mapping[str, str]) -> dict[str, list[str]]:
    """Each node that will run -> the nodes that must have ended before: its parents, the unit tests of a model, the
    data tests of what it reads. Of tests that share a query (`queries`: test -> query), the first by name runs first.
    """
    chosen = {name for name in names if graph.nodes[name].resource_type != "source"}
    before: dict[str, set[str]] = {name: graph.upstream({name}) & chosen for name in chosen}
    leaders: dict[str, str] = {}
    for name in sorted(chosen):
        match graph.nodes[name].subject:
            case UnitTest() as test:
                before[name].discard(test.model)
                if test.model in chosen:
                    before[test.model].add(name)
            case DataTest() as test:
                for reader in (_models_below(graph, test.model) & chosen) - before[name]:
                    before[reader].add(name)
            case Case() | FunctionTest():
                leader = leaders.setdefault(queries[name], name)
                before[name] |= {leader} - {name}
    return {name: sorted(before[name]) for name in sorted(chosen)}


@dataclass
class Schedule:
    """One run of selected nodes. `do` runs one, in any thread; `cancel` ends what runs in all threads. The listener is
    called in the thread that runs the schedule. `queries` maps tests to the queries that they may share.
    """

    graph: Graph
    names: Iterable[str]
    do: Callable[[Node], Result]
    cancel: Callable[[], None]
    listener: Listener
    threads: int = 1
    fail_fast: bool = False
    queries: Mapping[str, str] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)

    def __post_init__(self) -> None:
        before = what_comes_before(self.graph, self.names, self.queries)
        self.left = set(before)
        self.total = len(before)
        self.sorter = graphlib.TopologicalSorter(before)
        self.ready: deque[str] = deque()
        self.running: dict[Future[Result], tuple[Node, int, float]] = {}
        self.blocked: dict[str, str] = {}

    def run(self) -> list[Result]:
        """Runs the nodes; returns their results in the order in which they ended. Raises Interrupted, with the results,
        on Ctrl-C.
        """
        self.sorter.prepare()
        with ThreadPoolExecutor(self.threads) as pool:
            try:
                while self.sorter.is_active():
                    self.ready += self.sorter.get_ready()
                    self._start(pool)
                    self._gather()
            except KeyboardInterrupt:
                self._interrupt()
                raise Interrupted(self.results) from None
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

    def _gather(self) -> None:
        """Waits for a node to end, if any runs."""
        for future in wait(self.running, return_when=FIRST_COMPLETED).done:
            result = future.result()
            node, number, _ = self.running.pop(future)
            self._ended(node, number, result)
            if result.has_failed:
                skipped = self.left if self.fail_fast else depending(self.graph, node)
                self.blocked |= {name: f'because "{node.name}" failed' for name in skipped if name not in self.blocked}

    def _ended(self, node: Node, number: int, result: Result) -> None:
        self.results.append(result)
        self.listener.finished(node, result, number, self.total)
        self.sorter.done(node.name)

    def _interrupt(self) -> None:
        while wait(self.running, timeout=0).not_done:
            self.cancel()
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


def depending(graph: Graph, node: Node) -> set[str]:
    """The nodes to skip after a node has failed. After a test: the models that read the tested one, and their tests."""
    match node.subject:
        case Model():
            below = graph.downstream({node.name})
        case DataTest() as test:
            models = _models_below(graph, test.model)
            below = models | graph.downstream(models)
        case UnitTest() as test:
            below = {test.model} | graph.downstream({test.model})
        case _:
            below = set()
    return {n for n in below if graph.nodes[n].resource_type != "unit_test"}


def _models_below(graph: Graph, name: str) -> set[str]:
    return {below for below in graph.downstream({name}) if graph.nodes[below].resource_type == "model"}
