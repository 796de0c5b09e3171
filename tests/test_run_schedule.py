"""What runs when: parents first, as many nodes at a time as there are threads, nothing behind a failure. No Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from runner.project.nodes import DataTest, Graph, Model, Node, SourcesView, UnitTest
from runner.run.results import Interrupted, Result
from runner.run.schedule import Order, Schedule, StopSignals

#     a -> b -> d -> e
#     a -> c -> d        f
DIAMOND = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": ["d"], "f": []}


class Heard:
    """A listener that notes what it hears, and in which thread."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.threads: set[int] = set()

    def started(self, node: Node, number: int, total: int) -> None:
        self._note(f"{number}/{total} start {node.name}")

    def finished(self, node: Node, result: Result, number: int, total: int) -> None:
        self._note(f"{number}/{total} {result.status} {node.name}")

    def _note(self, line: str) -> None:
        self.lines.append(line)
        self.threads.add(threading.get_ident())


def models(parents: dict[str, list[str]]) -> Graph:
    return Graph({name: Node(name, "model", Model("", "view"), tuple(above)) for name, above in parents.items()})


def succeed(node: Node) -> Result:
    return Result(node.name, node.resource_type, "pass" if node.resource_type.endswith("test") else "success")


def failing(*names: str) -> Callable[[Node], Result]:
    """Ends the nodes of these names in a failure."""

    def do(node: Node) -> Result:
        status = "error" if node.resource_type == "model" else "fail"
        return Result(node.name, node.resource_type, status) if node.name in names else succeed(node)

    return do


def results(
    graph: Graph, do: Callable[[Node], Result] = succeed, chosen: Iterable[str] = (), **options: Any
) -> dict[str, Result]:
    """Name -> result, in the order in which the nodes ended."""
    heard, signals = options.pop("heard", Heard()), StopSignals()
    signals.cancel = options.pop("cancel", signals.cancel)
    order = Order(graph, list(chosen) or graph.nodes, options.pop("queries", {}))
    ran = Schedule(order, do, heard, options.pop("signals", signals), **options).run()
    return {result.name: result for result in ran}


def run(*arguments: Any, **options: Any) -> dict[str, str]:
    return {name: result.status for name, result in results(*arguments, **options).items()}


def interrupted(*arguments: Any, **options: Any) -> dict[str, tuple[str, str]]:
    """What a run that is broken off says."""
    with pytest.raises(Interrupted) as caught:
        results(*arguments, **options)
    return {result.name: (result.status, result.message) for result in caught.value.results}


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_parents_end_before_children_begin(threads: int) -> None:
    ended: set[str] = set()

    def do(node: Node) -> Result:
        assert set(DIAMOND[node.name]) <= ended
        time.sleep(0.01)
        ended.add(node.name)
        return succeed(node)

    assert set(run(models(DIAMOND), do, threads=threads)) == set(DIAMOND) == ended


def test_as_many_at_a_time_as_there_are_threads() -> None:
    together = threading.Barrier(3, timeout=20)
    running: list[str] = []
    most: list[int] = []

    def do(node: Node) -> Result:
        running.append(node.name)
        most.append(len(running))
        together.wait()  # three have to be here
        running.remove(node.name)
        return succeed(node)

    names = {name: [] for name in "abcdef"}
    assert set(run(models(names), do, threads=3).values()) == {"success"}
    assert max(most) == 3


def test_each_is_said_by_the_thread_that_asked_with_its_number() -> None:
    heard = Heard()
    run(models({"a": [], "b": ["a"], "c": ["b"]}), failing("b"), ["b", "a", "c"], heard=heard, threads=2)
    assert heard.lines == ["1/3 start a", "1/3 success a", "2/3 start b", "2/3 error b", "3/3 skipped c"]
    assert heard.threads == {threading.get_ident()}


def test_what_is_behind_a_failure_is_skipped_and_the_rest_goes_on() -> None:
    ended = {"a": "success", "f": "success", "c": "success", "b": "error", "d": "skipped", "e": "skipped"}
    assert run(models(DIAMOND), failing("b")) == ended


def test_fail_fast_skips_all_that_has_not_begun() -> None:
    ended = run(models({"a": [], "b": [], "c": ["b"]}), failing("a"), fail_fast=True)
    assert ended == {"a": "error", "b": "skipped", "c": "skipped"}


def test_a_data_test_comes_before_what_reads_the_tested_model() -> None:
    graph = models({"a": [], "b": ["a"], "c": []})
    tested = Graph({**graph.nodes, "z": Node("z", "test", DataTest("", "a"), ("a",))})
    assert list(run(tested)) == ["a", "c", "z", "b"]
    assert run(tested, failing("z")) == {"a": "success", "c": "success", "z": "fail", "b": "skipped"}


#     a_landed -> all -> below -> further      own -> both (all, own)
#     b_landed -> all    a_landed -> only_a -> behind
SOURCES = {
    "a_landed": [],
    "b_landed": [],
    "all": ["a_landed", "b_landed"],
    "below": ["all"],
    "further": ["below"],
    "only_a": ["a_landed"],
    "behind": ["only_a", "all"],
    "only_b": ["b_landed"],
}


def with_sources() -> Graph:
    graph = models(SOURCES)
    view = Node("all", "model", Model(SourcesView("changelog", ()), "view"), ("a_landed", "b_landed"))
    tests = {
        name: Node(name, "test", DataTest("", model), (model,))
        for name, model in (("conserved_a", "a_landed"), ("of_below", "below"), ("of_only_a", "only_a"))
    }
    return Graph({**graph.nodes, "all": view, **tests})


@pytest.mark.parametrize(
    ("failure", "note"),
    [
        ("a_landed", 'without the rows of "a_landed" that did not land: it failed'),
        ("conserved_a", 'with the rows of "a_landed" as they are: "conserved_a" failed'),
    ],
)
def test_what_one_source_fails_stops_only_what_reads_it_by_name(failure: str, note: str) -> None:
    ran = results(with_sources(), failing(failure))
    skipped = {"only_a", "behind", "of_only_a"} | ({"conserved_a"} if failure == "a_landed" else set())
    assert {name for name, result in ran.items() if result.status == "skipped"} == skipped
    warned = {name: result.notes for name, result in ran.items() if result.status == "warn"}
    assert warned == dict.fromkeys(("all", "below", "further"), (note,))
    assert {ran[name].status for name in ("b_landed", "only_b", "of_below")} == {"success", "pass"}


def test_a_view_of_all_sources_is_skipped_when_all_have_failed() -> None:
    ran = results(with_sources(), failing("conserved_a", "b_landed"))
    assert {name for name in ran if ran[name].status == "skipped"} == {*ran} - {"a_landed", "b_landed", "conserved_a"}


def test_a_unit_test_comes_before_its_model() -> None:
    graph = models({"a": [], "b": ["a"], "c": []})
    tested = Graph({**graph.nodes, "z": Node("z", "unit_test", UnitTest("b", {}, []), ("b",))})
    assert list(run(tested)) == ["a", "c", "z", "b"]
    assert run(tested, failing("z"))["b"] == "skipped"


def test_a_unit_test_of_a_model_that_is_not_built_stops_no_other_test() -> None:
    """Which of them has ended when it fails is chance."""
    graph = models({"a": [], "b": ["a"]})
    tests = {
        "u": Node("u", "unit_test", UnitTest("b", {}, []), ("b",)),
        "x": Node("x", "test", DataTest("", "b"), ("b",)),
    }
    tested = Graph({**graph.nodes, **tests})
    assert run(tested, failing("u"), ["u", "x"]) == {"u": "fail", "x": "pass"}
    assert run(tested, failing("u")) == {"a": "success", "u": "fail", "b": "skipped", "x": "skipped"}


def test_what_was_not_chosen_does_not_run() -> None:
    assert list(run(models(DIAMOND), succeed, ["e", "b"])) == ["b", "e"]


def test_a_bug_comes_to_the_one_who_asked() -> None:
    def do(node: Node) -> Result:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(models(DIAMOND), do, threads=2)


CUT = {
    "a": ("success", ""),
    "f": ("success", ""),
    "b": ("error", "interrupted"),
    "c": ("error", "interrupted"),
    "d": ("skipped", "because the run was interrupted"),
    "e": ("skipped", "because the run was interrupted"),
}


def test_a_run_that_is_broken_off_says_how_far_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    is_cut = threading.Event()
    heard = Heard()

    def do(node: Node) -> Result:
        if node.name == "b":
            assert is_cut.wait(20), "nobody ends what runs"
        return succeed(node)

    def finished(node: Node, *_: object) -> None:
        if node.name == "c":
            raise KeyboardInterrupt

    monkeypatch.setattr(heard, "finished", finished)
    said = interrupted(models(DIAMOND), do, cancel=is_cut.set, heard=heard, threads=2)
    assert said == {**CUT, "c": ("success", "")}


class Stopped:
    """A run of two nodes at a time that stops after a number of signals. Nodes run until they are cancelled, or until
    the test is over if cancelling them takes for ever.
    """

    def __init__(self, signals: int, cancel_works: bool) -> None:
        self.sent, self.is_over, self.cancelled = signals, threading.Event(), 0
        self.cancel_works = cancel_works
        given: Any = self
        self.schedule = Schedule(Order(models(DIAMOND), DIAMOND), self.do, Heard(), given, threads=2)

    @property
    def count(self) -> int:
        """Signals come when b and c run, and f has ended."""
        return self.sent if {"b", "c"} <= {node.name for node, *_ in self.schedule.running.values()} else 0

    def do(self, node: Node) -> Result:
        if node.name in "bc":
            assert self.is_over.wait(20), "nobody ends what runs"
        return succeed(node)

    def cancel(self) -> None:
        self.cancelled += 1
        if self.cancel_works:
            self.is_over.set()
        self.is_over.wait(20)

    def run(self) -> dict[str, tuple[str, str]]:
        began = time.monotonic()
        try:
            with pytest.raises(Interrupted) as caught:
                self.schedule.run()
            assert time.monotonic() - began < 5
            return {result.name: (result.status, result.message) for result in caught.value.results}
        finally:
            self.is_over.set()


def test_the_first_signal_cancels_what_runs() -> None:
    stopped = Stopped(1, cancel_works=True)
    assert stopped.run() == CUT and stopped.cancelled


def test_the_second_signal_waits_for_nothing_even_if_cancelling_hangs() -> None:
    assert Stopped(2, cancel_works=False).run() == CUT


def test_what_had_ended_before_the_signal_has_its_own_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second node ends while the run still reports the first one, and then a signal comes."""
    heard, has_ended, signals = Heard(), threading.Event(), StopSignals()

    def do(node: Node) -> Result:
        if node.name == "b":
            assert has_ended.wait(20)
        return failing("b")(node)

    def finished(node: Node, *_: object) -> None:
        signals.count = 1
        has_ended.set()
        time.sleep(0.2)

    monkeypatch.setattr(heard, "finished", finished)
    graph = models({"a": [], "b": [], "c": ["a"]})
    ran = interrupted(graph, do, heard=heard, threads=2, signals=signals)
    assert {name: status for name, (status, _) in ran.items()} == {"a": "success", "b": "error", "c": "skipped"}
    assert ran["b"] == ("error", "")
