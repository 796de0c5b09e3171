"""The selector: from a text of `--select` to names of nodes, with dbt's grammar: a space means or, a comma means
and.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from runner.errors import Problems, RunnerError, Where, did_you_mean, nearest_or_all, placed
from runner.project import dbt_hints
from runner.project.nodes import DECLARED, Graph, Node
from runner.project.variables import Filler
from runner.yaml_text import Yaml, read_yaml, whole_number

TERM = re.compile(r"(?P<at>@)?(?:(?P<up>\d*)\+)?(?:(?P<method>[\w.]+):)?(?P<value>[^+]+?)(?:\+(?P<down>\d*))?")
METHODS = ("name", "file", "tag", "path", "source", "exposure", "format", "resource_type")

# Methods whose answers are not in the graph. An empty answer is not a mistake.
LOOKED_UP = ("state", "result", "source_status", "selector")

Lookup = Callable[[str], set[str]]
"""The names of the nodes that a method selects by a value."""


def select(
    graph: Graph, include: Iterable[str], exclude: Iterable[str] = (), lookups: Mapping[str, Lookup] = {}
) -> set[str]:
    """Returns the names of the selected nodes: all nodes if `include` is empty. `lookups` answer for methods in
    LOOKED_UP.

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
    hit = {node.name for node in nodes if _is_selected(node, method, value)}
    if not hit and method == "name" and graph.project:
        within = "*" if value == graph.project else value.removeprefix(f"{graph.project}.")
        hit = {node.name for node in nodes if _is_selected(node, method, within)}
    if not hit:
        known = {name for node in nodes for name in compared(node, method)}
        disabled = f'"{value}" is not enabled' if value in graph.disabled else ""
        hint = disabled or did_you_mean(value, known) or "runner ls shows what there is"
        raise RunnerError("selector-empty", f'nothing matches "{text}"', hint=hint)
    return hit


def _is_selected(node: Node, method: str, value: str) -> bool:
    """Returns True if a method selects a node by a value, which may be a pattern."""
    if method == "path":
        return fnmatch.fnmatchcase(node.path, value) or node.path.startswith(value.rstrip("/") + "/")
    values = compared(node, method)
    if method == "resource_type" or method.startswith("config."):
        return value in values
    return any(fnmatch.fnmatchcase(one, value) for one in values) or (method == "name" and _in_folder(node, value))


def compared(node: Node, method: str) -> Iterable[str]:
    """Returns the values of a node that a method compares; raises `selector-method` if there is no such method. If
    nothing matches, the hint suggests the nearest of all these values.
    """
    match method:
        case "name":
            return [node.name] if node.resource_type not in DECLARED else []
        case "file":
            return [PurePosixPath(node.path).name]
        case "tag":
            return node.tags
        case "path":
            return [node.path, *map(str, PurePosixPath(node.path).parents)]
        case "source":
            # The name of a source stands for its tables too.
            return dict.fromkeys([node.label, node.label.partition(".")[0]]) if node.resource_type == "source" else []
        case "exposure":
            return [node.label] if node.resource_type == "exposure" else []
        case "format":
            return [node.format] if node.format else []
        case "resource_type":
            return [node.resource_type]
    if method.startswith("config."):
        return _settings_at(node, method.removeprefix("config."))
    hint = dbt_hints.METHODS.get(method) or nearest_or_all(method, [*METHODS, *LOOKED_UP, "config.NAME"])
    raise RunnerError("selector-method", f'there is no selector method "{method}"', hint=hint)


def _in_folder(node: Node, value: str) -> bool:
    """Returns True if a value such as `staging` or `staging.orders.*` names a folder in models/ that the model is in,
    or the model with its folders.
    """
    parts, wanted = PurePosixPath(node.path).with_suffix("").parts[1:], value.split(".")
    return (
        node.path.startswith("models/")
        and node.resource_type == "model"
        and len(wanted) <= len(parts)
        and all(map(fnmatch.fnmatchcase, parts, wanted))
    )


def _settings_at(node: Node, path: str) -> list[str]:
    """Returns the values of a setting as texts: of a mapping, `path` also has its keys; of a list, each value
    counts.
    """
    value: Any = {**node.config, "tags": sorted(node.tags)}
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return [str(one) for one in value] if isinstance(value, (list, tuple)) else [str(value)]


def _unreadable(text: str) -> RunnerError:
    hint = "for instance: name, name+, +name, @name, tag:nightly, path:models/staging, name,tag:nightly"
    return RunnerError("selector-syntax", f'cannot read the selector "{text}"', hint=hint)


FILE = "selectors.yml"
SELECTOR_KEYS = ("name", "description", "default", "definition")
SETS = ("union", "intersection")
TERM_KEYS = (
    "method", "value", "parents", "parents_depth", "children", "children_depth", "childrens_parents", "exclude",
)  # fmt: skip
ABSENT = {"indirect_selection": "remove it: the tests of a selected model are always run"}


@dataclass(frozen=True)
class Definition:
    """The nodes of any of the `parts`, or with `of_all` those of all parts, without those of `excluded`. A part that is
    a text has the words of --select, and stands at `where`.
    """

    where: Where
    parts: tuple[str | Definition, ...]
    excluded: tuple[Definition, ...] = ()
    of_all: bool = False

    def select(self, graph: Graph, lookups: Mapping[str, Lookup]) -> set[str]:
        """Returns the names of these nodes."""
        sets = []
        for part in self.parts:
            if isinstance(part, Definition):
                sets.append(part.select(graph, lookups))
                continue
            with placed(self.where):
                sets.append(select(graph, [part], (), lookups))
        excluded = [one.select(graph, lookups) for one in self.excluded]
        return (set.intersection(*sets) if self.of_all else set.union(*sets)).difference(*excluded)


@dataclass(frozen=True)
class SavedSelectors:
    """The selectors of a project, by name. The selector `default` counts where nothing is selected."""

    definitions: Mapping[str, Definition]
    default: str | None = None

    def select(self, name: str, graph: Graph, lookups: Mapping[str, Lookup], within: tuple[str, ...] = ()) -> set[str]:
        """Returns the names of the nodes that a selector selects; raises `selector-unknown` for an unknown selector."""
        if name not in self.definitions:
            hint = nearest_or_all(name, self.definitions) if self.definitions else f"{FILE} in the project has them"
            raise RunnerError("selector-unknown", f'there is no selector "{name}"', hint=hint)
        if name in within:
            circle = " -> ".join([*within[within.index(name) :], name])
            raise RunnerError("selector-definition", f"selectors select each other in a circle: {circle}")
        inner = partial(self.select, graph=graph, lookups=lookups, within=(*within, name))
        return self.definitions[name].select(graph, {**lookups, "selector": inner})


def read_selectors(root: Path, filler: Filler) -> SavedSelectors:
    """Returns the selectors of a project; raises all mistakes in their file."""
    path = root / FILE
    if not path.is_file():
        return SavedSelectors({})
    problems, definitions, defaults = Problems(), dict[str, Definition](), list[str]()
    entries = read_yaml(path).only(["selectors", "version"]).get("selectors")
    for entry in entries.list().elements() if entries else ():
        with problems.gathered():
            entry.only(SELECTOR_KEYS)
            for key in ("name", "definition"):
                if not entry.get(key):
                    raise entry.error("selector-definition", f'a selector needs "{key}"')
            name = entry["name"].text()
            if name in definitions:
                raise entry["name"].error("name-taken", f'there are two selectors "{name}"')
            definitions[name] = _definition(entry["definition"])
            if (default := entry.get("default")) and filler.text(default).strip().lower() == "true":
                defaults.append(name)
                if len(defaults) > 1:
                    raise default.error("selector-definition", f'"{defaults[0]}" is the default already')
    problems.raise_if_any()
    return SavedSelectors(definitions, defaults[0] if defaults else None)


def _definition(yaml: Yaml) -> Definition:
    if isinstance(yaml.value, str):
        return Definition(yaml.where(), (yaml.text(),))
    if not yaml.mapping().value:
        raise yaml.error("selector-definition", f"{yaml.name()} selects nothing", "definition: tag:nightly")
    first = next(iter(yaml.value))
    if first in SETS:
        yaml.only([first])
        return _combined(yaml[first], first == "intersection")
    if len(yaml.value) == 1 and first not in TERM_KEYS:
        return Definition(yaml.where(), (f"{first}:{yaml[first].text()}",))
    return _single(yaml)


def _combined(yaml: Yaml, of_all: bool) -> Definition:
    excluded, parts = list[Definition](), list[Definition]()
    for one in yaml.list().elements():
        if isinstance(one.value, dict) and list(one.value) == ["exclude"]:
            excluded += [_definition(each) for each in one["exclude"].list().elements()]
        else:
            parts.append(_definition(one))
    if not parts:
        raise yaml.error("selector-definition", f"{yaml.name()} selects nothing")
    return Definition(yaml.where(), tuple(parts), tuple(excluded), of_all)


def _single(yaml: Yaml) -> Definition:
    yaml.only(TERM_KEYS, instead=ABSENT)
    for key in ("method", "value"):
        if not yaml.get(key):
            raise yaml.error("selector-definition", f'{yaml.name()} needs "{key}"')
    at = "@" if _is_true(yaml.get("childrens_parents")) else ""
    before = f"{_depth(yaml.get('parents_depth'))}+" if _is_true(yaml.get("parents")) else ""
    after = f"+{_depth(yaml.get('children_depth'))}" if _is_true(yaml.get("children")) else ""
    text = f"{at}{before}{yaml['method'].text()}:{yaml['value'].text()}{after}"
    excluded = yaml["exclude"].list().elements() if yaml.get("exclude") else ()
    return Definition(yaml.where(), (text,), tuple(map(_definition, excluded)))


def _is_true(yaml: Yaml | None) -> bool:
    if yaml and yaml.text() not in ("true", "false"):
        raise yaml.error("selector-definition", f'{yaml.name()} is true or false, not "{yaml.text()}"')
    return bool(yaml and yaml.text() == "true")


def _depth(yaml: Yaml | None) -> str:
    if yaml and whole_number(yaml.text()) is None:
        raise yaml.error("selector-definition", f'{yaml.name()} is a whole number, not "{yaml.text()}"')
    return yaml.text() if yaml else ""
