"""Turn `--select` text into node names. Grammar: dbt's. Space = or, comma = and."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable

from runner.errors import RunnerError, did_you_mean, nearest_or_all
from runner.graph import Graph
from runner.nodes import Node

TERM = re.compile(r"(?P<at>@)?(?:(?P<up>\d*)\+)?(?:(?P<method>[\w.]+):)?(?P<value>[^+]+?)(?:\+(?P<down>\d*))?")

METHODS: dict[str, Callable[[Node, str], bool]] = {
    "name": lambda node, value: node.resource_type != "source" and fnmatch.fnmatchcase(node.name, value),
    "tag": lambda node, value: any(fnmatch.fnmatchcase(tag, value) for tag in node.tags),
    "path": lambda node, value: fnmatch.fnmatchcase(node.path, value) or node.path.startswith(value.rstrip("/") + "/"),
    "source": lambda node, value: node.resource_type == "source" and fnmatch.fnmatchcase(node.name.removeprefix("source."), value),
    "format": lambda node, value: node.format is not None and fnmatch.fnmatchcase(node.format, value),
    "resource_type": lambda node, value: node.resource_type == value,
}


def select(graph: Graph, include: Iterable[str], exclude: Iterable[str] = ()) -> set[str]:
    """Names of the nodes that are chosen: all of them if nothing is asked for.

    >>> g = Graph.of({"a": [], "b": ["a"], "c": ["b"], "d": []})
    >>> sorted(select(g, ["+b"])), sorted(select(g, ["a+1"])), sorted(select(g, ["@b"]))
    (['a', 'b'], ['a', 'b'], ['a', 'b', 'c'])
    >>> sorted(select(g, ["a+,+b d"], exclude=["a"]))
    ['b', 'd']
    """
    include = [text for text in include if text.strip()]
    chosen = _union(graph, include) if include else set(graph.nodes)
    return chosen - _union(graph, exclude)


def _union(graph: Graph, texts: Iterable[str]) -> set[str]:
    return {n for text in texts for group in text.split() for n in _intersection(graph, group)}


def _intersection(graph: Graph, group: str) -> set[str]:
    return set.intersection(*(_term(graph, term) for term in group.split(",")))


def _term(graph: Graph, text: str) -> set[str]:
    match = TERM.fullmatch(text)
    if match is None:
        raise RunnerError("selector-syntax", f'cannot read the selector "{text}"', hint="for instance: name, name+, +name, tag:nightly, format:canal, path:models/staging")
    out = set(hit := _matching(graph, text, match["method"], match["value"]))
    if match["at"]:
        hit |= graph.downstream(hit)
        return hit | graph.upstream(hit)
    if match["up"] is not None:
        out |= graph.upstream(hit, depth=_depth(match["up"]))
    if match["down"] is not None:
        out |= graph.downstream(hit, depth=_depth(match["down"]))
    return out


def _matching(graph: Graph, text: str, method: str | None, value: str) -> set[str]:
    method = method or ("path" if "/" in value else "name")
    hit = {node.name for node in graph.nodes.values() if _method(method)(node, value)}
    if not hit:
        known = [node.name.removeprefix("source.") for node in graph.nodes.values() if (node.resource_type == "source") == (method == "source")]
        raise RunnerError("selector-empty", f'nothing matches "{text}"', hint=did_you_mean(value, known) or "runner ls shows what there is")
    return hit


def _method(method: str) -> Callable[[Node, str], bool]:
    if method.startswith("config."):
        return lambda node, value: str(node.config.get(method.removeprefix("config."))) == value
    if method not in METHODS:
        raise RunnerError("selector-method", f'there is no selector method "{method}"', hint=nearest_or_all(method, [*METHODS, "config.NAME"]))
    return METHODS[method]


def _depth(digits: str) -> int | None:
    return int(digits) if digits else None
