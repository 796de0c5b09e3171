"""The selector: from a text of `--select` to names of nodes, with dbt's grammar: a space means or, a comma means
and.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from runner.errors import Problems, RunnerError, Where, did_you_mean, nearest_or_all, placed
from runner.project import dbt_hints
from runner.project.nodes import DECLARED, Graph, Node
from runner.project.variables import Filler
from runner.yaml_text import Yaml, read_yaml, whole_number

TERM = re.compile(r"(?P<at>@)?(?:(?P<up>\d*)\+)?(?:(?P<method>[\w.]+):)?(?P<value>[^+]+?)(?:\+(?P<down>\d*))?")


def _names_of_source(node: Node) -> list[str]:
    """Returns the names that select a source: its name and, for a table of a source, that source's name; else none."""
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


def _compared(method: str) -> Callable[[Node], Iterable[str]]:
    if method.startswith("config."):
        return lambda node: _settings_at(node, method.removeprefix("config."))
    return COMPARED[method]


def _settings_at(node: Node, path: str) -> list[str]:
    """Returns the values of a setting as texts: of a mapping, `path` also has its keys; of a list, each value
    counts.
    """
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
            hint=dbt_hints.METHODS.get(method) or nearest_or_all(method, [*METHODS, *LOOKED_UP, "config.NAME"]),
        )
    return METHODS[method]


FILE = "selectors.yml"
SELECTOR_KEYS = ("name", "description", "default", "definition")
SETS = ("union", "intersection")
TERM_KEYS = (
    "method", "value", "parents", "parents_depth", "children", "children_depth", "childrens_parents", "exclude",
)  # fmt: skip
ABSENT = {"indirect_selection": "remove it: the tests of a selected model are always run"}


@dataclass(frozen=True)
class Term:
    """A selection of nodes, written in the words of --select."""

    text: str
    where: Where


@dataclass(frozen=True)
class Combined:
    """The nodes of any of the `parts`, or with `of_all` those of all parts, without those of `excluded`."""

    parts: tuple[Definition, ...]
    excluded: tuple[Definition, ...] = ()
    of_all: bool = False


Definition = Term | Combined


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
        inner = {**lookups, "selector": lambda other: self.select(other, graph, lookups, (*within, name))}
        return _selected(self.definitions[name], graph, inner)


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
        return Term(yaml.text(), yaml.where())
    if not yaml.mapping().value:
        raise yaml.error("selector-definition", f"{yaml.name()} selects nothing", "definition: tag:nightly")
    first = next(iter(yaml.value))
    if first in SETS:
        yaml.only([first])
        return _combined(yaml[first], first == "intersection")
    if len(yaml.value) == 1 and first not in TERM_KEYS:
        return Term(f"{first}:{yaml[first].text()}", yaml.where())
    return _single(yaml)


def _combined(yaml: Yaml, of_all: bool) -> Combined:
    excluded, parts = list[Definition](), list[Definition]()
    for one in yaml.list().elements():
        if isinstance(one.value, dict) and list(one.value) == ["exclude"]:
            excluded += [_definition(each) for each in one["exclude"].list().elements()]
        else:
            parts.append(_definition(one))
    if not parts:
        raise yaml.error("selector-definition", f"{yaml.name()} selects nothing")
    return Combined(tuple(parts), tuple(excluded), of_all)


def _single(yaml: Yaml) -> Definition:
    yaml.only(TERM_KEYS, instead=ABSENT)
    for key in ("method", "value"):
        if not yaml.get(key):
            raise yaml.error("selector-definition", f'{yaml.name()} needs "{key}"')
    at = "@" if _is_true(yaml.get("childrens_parents")) else ""
    before = f"{_depth(yaml.get('parents_depth'))}+" if _is_true(yaml.get("parents")) else ""
    after = f"+{_depth(yaml.get('children_depth'))}" if _is_true(yaml.get("children")) else ""
    term = Term(f"{at}{before}{yaml['method'].text()}:{yaml['value'].text()}{after}", yaml.where())
    if excluded := yaml.get("exclude"):
        return Combined((term,), tuple(_definition(one) for one in excluded.list().elements()))
    return term


def _is_true(yaml: Yaml | None) -> bool:
    if yaml and yaml.text() not in ("true", "false"):
        raise yaml.error("selector-definition", f'{yaml.name()} is true or false, not "{yaml.text()}"')
    return bool(yaml and yaml.text() == "true")


def _depth(yaml: Yaml | None) -> str:
    if yaml and whole_number(yaml.text()) is None:
        raise yaml.error("selector-definition", f'{yaml.name()} is a whole number, not "{yaml.text()}"')
    return yaml.text() if yaml else ""


def _selected(definition: Definition, graph: Graph, lookups: Mapping[str, Lookup]) -> set[str]:
    if isinstance(definition, Term):
        with placed(definition.where):
            return select(graph, [definition.text], (), lookups)
    sets = [_selected(part, graph, lookups) for part in definition.parts]
    excluded = [_selected(part, graph, lookups) for part in definition.excluded]
    return (set.intersection(*sets) if definition.of_all else set.union(*sets)).difference(*excluded)
