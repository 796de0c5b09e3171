"""Text of `--select` -> names of nodes, with dbt's grammar: a space means or, a comma means and."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from runner.errors import RunnerError, did_you_mean, nearest_or_all
from runner.project import absent
from runner.project.graph import Graph
from runner.project.nodes import DECLARED, Node
from runner.yaml_text import whole_number

TERM = re.compile(r"(?P<at>@)?(?:(?P<up>\d*)\+)?(?:(?P<method>[\w.]+):)?(?P<value>[^+]+?)(?:\+(?P<down>\d*))?")


def _names_of_source(node: Node) -> list[str]:
    """What stands for a source: its name and, for a table of a source, also the name of that; none of other nodes."""
    return list(dict.fromkeys([node.label, node.label.partition(".")[0]])) if node.resource_type == "source" else []


METHODS: dict[str, Callable[[Node, str], bool]] = {
    "name": lambda node, value: (
        node.resource_type not in DECLARED and (fnmatch.fnmatchcase(node.name, value) or _in_folder(node, value))
    ),
    "file": lambda node, value: fnmatch.fnmatchcase(PurePosixPath(node.path).name, value),
    "tag": lambda node, value: any(fnmatch.fnmatchcase(tag, value) for tag in node.tags),
    "path": lambda node, value: fnmatch.fnmatchcase(node.path, value) or node.path.startswith(value.rstrip("/") + "/"),
    "source": lambda node, value: any(fnmatch.fnmatchcase(name, value) for name in _names_of_source(node)),
    "exposure": lambda node, value: node.resource_type == "exposure" and fnmatch.fnmatchcase(node.label, value),
    "format": lambda node, value: node.format is not None and fnmatch.fnmatchcase(node.format, value),
    "resource_type": lambda node, value: node.resource_type == value,
}

# Method -> the values of a node that it compares. If nothing matches, the hint suggests the nearest of them.
COMPARED: dict[str, Callable[[Node], Iterable[str]]] = {
    "name": lambda node: [node.name] if node.resource_type not in DECLARED else [],
    "file": lambda node: [PurePosixPath(node.path).name],
    "tag": lambda node: node.tags,
    "path": lambda node: [node.path, *map(str, PurePosixPath(node.path).parents)],
    "source": _names_of_source,
    "exposure": lambda node: [node.label] if node.resource_type == "exposure" else [],
    "format": lambda node: [node.format] if node.format else [],
    "resource_type": lambda node: [node.resource_type],
}


# Methods whose answers are not in the graph. That there is nothing of the kind is no mistake.
LOOKED_UP = ("state", "result", "source_status", "selector")

Lookup = Callable[[str], set[str]]
"""The names of the nodes that a method selects by a value."""


def select(
    graph: Graph, include: Iterable[str], exclude: Iterable[str] = (), lookups: Mapping[str, Lookup] = {}
) -> set[str]:
    """The names of the selected nodes: all nodes if `include` is empty. `lookups` answer for methods in LOOKED_UP.

    >>> g = Graph.of({"a": [], "b": ["a"], "c": ["b"], "d": []})
    >>> sorted(select(g, ["+b"])), sorted(select(g, ["a+1"])), sorted(select(g, ["@b"]))
    (['a', 'b'], ['a', 'b'], ['a', 'b', 'c'])
    >>> sorted(select(g, ["a+,+b d"], exclude=["a"]))
    ['b', 'd']
    """
    include = [text for text in include if text.strip()]
    chosen = _union(graph, include, lookups) if include else set(graph.nodes)
    return chosen - _union(graph, exclude, lookups)


def _union(graph: Graph, texts: Iterable[str], lookups: Mapping[str, Lookup]) -> set[str]:
    return {n for text in texts for group in text.split() for n in _intersection(graph, group, lookups)}


def _intersection(graph: Graph, group: str, lookups: Mapping[str, Lookup]) -> set[str]:
    if not all(group.split(",")):
        raise _unreadable(group)
    return set.intersection(*(_term(graph, term, lookups) for term in group.split(",")))


def _term(graph: Graph, text: str, lookups: Mapping[str, Lookup]) -> set[str]:
    match = TERM.fullmatch(text)
    if match is None or (match["at"] and (match["up"] is not None or match["down"] is not None)):
        raise _unreadable(text)
    out = set(hit := _matching(graph, text, match["method"], match["value"], lookups))
    if match["at"]:
        hit |= graph.downstream(hit)
        return hit | graph.upstream(hit)
    if match["up"] is not None:
        out |= graph.upstream(hit, depth=whole_number(match["up"]))
    if match["down"] is not None:
        out |= graph.downstream(hit, depth=whole_number(match["down"]))
    return out


def _matching(graph: Graph, text: str, method: str | None, value: str, lookups: Mapping[str, Lookup]) -> set[str]:
    if method and method in lookups:
        return set(lookups[method](value))
    method = method or ("path" if "/" in value else "file" if value.endswith(".sql") else "name")
    nodes = graph.nodes.values()
    hit = {node.name for node in nodes if _method(method)(node, value)}
    if not hit and method == "name" and graph.project:
        within = "*" if value == graph.project else value.removeprefix(f"{graph.project}.")
        hit = {node.name for node in nodes if METHODS[method](node, within)}
    if not hit:
        known = {name for node in nodes for name in _compared(method)(node)}
        disabled = f'"{value}" is not enabled' if value in graph.disabled else ""
        hint = disabled or did_you_mean(value, known) or "runner ls shows what there is"
        raise RunnerError("selector-empty", f'nothing matches "{text}"', hint=hint)
    return hit


def _in_folder(node: Node, value: str) -> bool:
    """Whether a value such as `staging` or `staging.orders.*` names a folder in models/ that the model is in, or the
    model with its folders.
    """
    parts, wanted = PurePosixPath(node.path).with_suffix("").parts[1:], value.split(".")
    return (
        node.path.startswith("models/")
        and node.resource_type == "model"
        and len(wanted) <= len(parts)
        and all(map(fnmatch.fnmatchcase, parts, wanted))
    )


def _compared(method: str) -> Callable[[Node], Iterable[str]]:
    if method.startswith("config."):
        return lambda node: _settings_at(node, method.removeprefix("config."))
    return COMPARED[method]


def _settings_at(node: Node, path: str) -> list[str]:
    """The values of a setting as texts: of a mapping, `path` also has the keys in it; of a list, each counts."""
    value: Any = {**node.config, "tags": sorted(node.tags)}
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return [str(one) for one in value] if isinstance(value, (list, tuple)) else [str(value)]


def _unreadable(text: str) -> RunnerError:
    return RunnerError(
        "selector-syntax",
        f'cannot read the selector "{text}"',
        hint="for instance: name, name+, +name, @name, tag:nightly, path:models/staging, name,tag:nightly",
    )


def _method(method: str) -> Callable[[Node, str], bool]:
    if method.startswith("config."):
        return lambda node, value: value in _settings_at(node, method.removeprefix("config."))
    if method not in METHODS:
        raise RunnerError(
            "selector-method",
            f'there is no selector method "{method}"',
            hint=absent.METHODS.get(method) or nearest_or_all(method, [*METHODS, *LOOKED_UP, "config.NAME"]),
        )
    return METHODS[method]
