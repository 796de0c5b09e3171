"""Who reads whom: order, reach, circles."""

from __future__ import annotations

from itertools import pairwise

import pytest

from runner.errors import RunnerError, RunnerErrors
from runner.project.nodes import Graph

#     a -> b -> d -> e
#     a -> c -> d        f
DIAMOND = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": ["d"], "f": []}


def test_parents_come_first_and_equals_by_name() -> None:
    graph = Graph.of(DIAMOND)
    order = graph.order()
    assert all(order.index(parent) < order.index(name) for name, parents in DIAMOND.items() for parent in parents)
    assert order == Graph.of(dict(reversed(DIAMOND.items()))).order() == ["a", "f", "b", "c", "d", "e"]


@pytest.mark.parametrize(
    ("names", "depth", "up", "down"),
    [
        (["d"], None, {"a", "b", "c"}, {"e"}),
        (["d"], 1, {"b", "c"}, {"e"}),
        (["d"], 0, set(), set()),
        (["a"], 2, set(), {"b", "c", "d"}),
        (["b", "e"], None, {"a", "b", "c", "d"}, {"d", "e"}),
        (["f"], None, set(), set()),
        ([], None, set(), set()),
    ],
)
def test_reach(names: list[str], depth: int | None, up: set[str], down: set[str]) -> None:
    graph = Graph.of(DIAMOND)
    assert graph.upstream(names, depth) == up
    assert graph.downstream(names, depth) == down


@pytest.mark.parametrize(
    ("parents", "circle"),
    [
        ({"a": ["a"]}, "a -> a"),
        ({"a": ["b"], "b": ["a"]}, "a -> b -> a"),
        ({"x": [], "a": ["c", "x"], "b": ["a"], "c": ["b"]}, "a -> c -> b -> a"),
    ],
)
def test_circles(parents: dict[str, list[str]], circle: str) -> None:
    with pytest.raises(RunnerError) as caught:
        Graph.of(parents)
    assert caught.value.code == "cycle"
    shown = caught.value.message.removeprefix("models read each other in a circle: ").split(" -> ")
    assert (
        shown[0] == shown[-1]
        and set(shown) == set(circle.split(" -> "))
        and all(reads in parents[name] for name, reads in pairwise(shown))
    )


def test_all_parents_that_are_not_there() -> None:
    with pytest.raises(RunnerErrors) as caught:
        Graph.of({"orders": [], "a": ["ordes"], "b": ["zzz"]})
    assert [(e.code, e.hint) for e in caught.value.errors] == [
        ("ref-unknown", 'did you mean "orders"?'),
        ("ref-unknown", "known: a, b, orders"),
    ]


def test_five_thousand_in_a_row() -> None:
    graph = Graph.of({f"m{number}": [f"m{number - 1}"] if number else [] for number in range(5000)})
    assert len(graph.order()) == 5000 and len(graph.downstream(["m0"])) == 4999
