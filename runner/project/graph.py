"""The graph of nodes: parents, children, order, cycles."""

from __future__ import annotations

import graphlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from runner.errors import Problems, RunnerError, nearest_or_all
from runner.project.nodes import Model, Node, SqlText


@dataclass(frozen=True)
class Graph:
    """The nodes of a project and which node reads which. `project` is the project's name, which may stand before the
    names of its models; `disabled` are the names of models that are not enabled.
    """

    nodes: Mapping[str, Node]
    project: str = ""
    disabled: frozenset[str] = frozenset()
    children: Mapping[str, set[str]] = field(init=False)
    _order: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self._check_parents()
        children: dict[str, set[str]] = {name: set() for name in self.nodes}
        for node in self.nodes.values():
            for parent in node.parents:
                children[parent].add(node.name)
        object.__setattr__(self, "children", children)
        object.__setattr__(self, "_order", self._sorted())

    @classmethod
    def of(cls, parents: Mapping[str, Iterable[str]]) -> Graph:
        """Returns a graph of plain models, from the names of their parents."""
        return cls(
            {
                name: Node(name, "model", Model(SqlText(""), "view"), tuple(read), path=f"models/{name}.sql")
                for name, read in parents.items()
            }
        )

    def _check_parents(self) -> None:
        problems = Problems()
        models = [name for name, node in self.nodes.items() if node.model]
        for node in self.nodes.values():
            for parent in node.parents:
                if parent not in self.nodes:
                    problems.add(
                        RunnerError(
                            "ref-unknown",
                            f'"{node.label}" reads "{parent}", and there is no such model',
                            node.where,
                            nearest_or_all(parent, models),
                        )
                    )
        problems.raise_if_any()

    def order(self) -> list[str]:
        """Returns the names of all nodes: parents first, otherwise in alphabetical order.

        >>> Graph.of({"a": ["b"], "b": ["a"]})
        Traceback (most recent call last):
        runner.errors.RunnerError: error[cycle]: models read each other in a circle: a -> b -> a
        """
        return list(self._order)

    def _sorted(self) -> list[str]:
        sorter = graphlib.TopologicalSorter({name: sorted(self.nodes[name].parents) for name in sorted(self.nodes)})
        try:
            return list(sorter.static_order())
        except graphlib.CycleError as e:
            circle = e.args[1][::-1]
            raise RunnerError(
                "cycle", f"models read each other in a circle: {' -> '.join(circle)}", self.nodes[circle[0]].where
            ) from None

    def upstream(self, names: Iterable[str], depth: int | None = None) -> set[str]:
        return self._reach(set(names), lambda n: self.nodes[n].parents, depth)

    def downstream(
        self, names: Iterable[str], depth: int | None = None, enters: Callable[[str], bool] = lambda name: True
    ) -> set[str]:
        """Returns the nodes that read these, directly or not. A node that `enters` refuses is left out, and so is all
        that is read only through it.
        """
        return self._reach(set(names), lambda n: {m for m in self.children[n] if enters(m)}, depth)

    def _reach(self, names: set[str], step: Callable[[str], Iterable[str]], depth: int | None) -> set[str]:
        seen: set[str] = set()
        frontier = names
        while frontier and (depth is None or depth > 0):
            frontier = {m for n in frontier for m in step(n)} - seen
            seen |= frontier
            depth = depth if depth is None else depth - 1
        return seen
