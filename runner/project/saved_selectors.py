"""selectors.yml: selections with names, in dbt's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from runner.errors import Problems, RunnerError, Where, nearest_or_all, placed
from runner.project.graph import Graph
from runner.project.select import Lookup, select
from runner.project.variables import Filler
from runner.yaml_text import Yaml, read_yaml, whole_number

FILE = "selectors.yml"
SELECTOR_KEYS = ("name", "description", "default", "definition")
SETS = ("union", "intersection")
TERM_KEYS = (
    "method", "value", "parents", "parents_depth", "children", "children_depth", "childrens_parents", "exclude",
)  # fmt: skip
ABSENT = {"indirect_selection": "remove it: the tests of a selected model are always run"}


@dataclass(frozen=True)
class Term:
    """Nodes in the words of --select."""

    text: str
    where: Where


@dataclass(frozen=True)
class Combined:
    """The nodes of any of the parts, or with `of_all` those of all parts, without those of `excluded`."""

    parts: tuple[Definition, ...]
    excluded: tuple[Definition, ...] = ()
    of_all: bool = False


Definition = Term | Combined


@dataclass(frozen=True)
class SavedSelectors:
    """The selectors of a project; the one named `default` counts where nothing is selected."""

    definitions: Mapping[str, Definition]
    default: str | None = None

    def select(self, name: str, graph: Graph, lookups: Mapping[str, Lookup], within: tuple[str, ...] = ()) -> set[str]:
        """The names of the nodes that a selector selects; raises `selector-unknown` if there is none of this name."""
        if name not in self.definitions:
            hint = nearest_or_all(name, self.definitions) if self.definitions else f"{FILE} in the project has them"
            raise RunnerError("selector-unknown", f'there is no selector "{name}"', hint=hint)
        if name in within:
            circle = " -> ".join([*within[within.index(name) :], name])
            raise RunnerError("selector-definition", f"selectors select each other in a circle: {circle}")
        inner = {**lookups, "selector": lambda other: self.select(other, graph, lookups, (*within, name))}
        return _selected(self.definitions[name], graph, inner)


def read_selectors(root: Path, filler: Filler) -> SavedSelectors:
    """The selectors of a project; raises all mistakes in their file."""
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
    return _term(yaml)


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


def _term(yaml: Yaml) -> Definition:
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
