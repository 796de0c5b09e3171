"""YAML files as texts, each with its place: no scalar is taken for a number, a date or a boolean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from runner.errors import Problems, RunnerError, Where, nearest_or_all
from runner.files import read_text

Steps = tuple["str | int", ...]
LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


@dataclass(frozen=True)
class Yaml:
    """A value (text, list or dict; None for a plain null), and the places of it and of everything inside it."""

    value: Any
    places: Mapping[Steps, Where]
    steps: Steps = field(default=())

    def where(self) -> Where:
        steps = self.steps
        while steps not in self.places:
            steps = steps[:-1]
        return self.places[steps]

    def __getitem__(self, step: str | int) -> Yaml:
        return Yaml(self.value[step], self.places, (*self.steps, step))

    def get(self, key: str) -> Yaml | None:
        return self[key] if isinstance(self.value, dict) and key in self.value else None

    def items(self) -> list[tuple[str, Yaml]]:
        return [(key, self[key]) for key in self.value]

    def elements(self) -> list[Yaml]:
        return [self[index] for index in range(len(self.value))]

    def error(self, code: str, message: str, hint: str = "") -> RunnerError:
        return RunnerError(code, message, self.where(), hint)

    def as_list(self) -> list[Yaml]:
        """The elements; a single value is a list of one."""
        return self.elements() if isinstance(self.value, list) else [self]

    # Each of these returns what a value must be, or raises `yaml-type` with what it is instead.

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.error("yaml-type", f"{self.name()} must be text, not {self.kind()}")
        return self.value

    def mapping(self) -> Yaml:
        if not isinstance(self.value, dict):
            raise self.error("yaml-type", f"{self.name()} must be a mapping of names to values, not {self.kind()}")
        return self

    def list(self) -> Yaml:
        if not isinstance(self.value, list):
            raise self.error("yaml-type", f"{self.name()} must be a list, not {self.kind()}")
        return self

    def only(self, known: Iterable[str], code: str = "unknown-key") -> Yaml:
        """The value itself; raises an error of that code for each key that is not known."""
        problems = Problems()
        known = list(known)
        for key, value in self.mapping().items():
            if key not in known:
                problems.add(value.error(code, f'unknown key "{key}" in {self.name()}', nearest_or_all(key, known)))
        problems.raise_if_any()
        return self

    def name(self) -> str:
        names = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps]
        return f'"{"".join(names).lstrip(".")}"' if names else "the file"

    def kind(self) -> str:
        match self.value:
            case str():
                return f'"{self.value}"'
            case dict():
                return "a mapping"
            case list():
                return "a list"
            case _:
                return "empty"


def read_yaml(path: Path) -> Yaml:
    """The content of a YAML file; raises `yaml-syntax`, `yaml-type` or `duplicate-key` with the place."""
    text = read_text(path)
    places: dict[Steps, Where] = {(): Where(path, 1, 1)}
    try:
        root = yaml.compose(text, Loader=LOADER)
        return Yaml(_value(root, (), path, places) if root else {}, places)
    except yaml.MarkedYAMLError as e:
        mark, words = e.problem_mark, ", ".join(part for part in (e.context, e.problem) if part)
        raise RunnerError(
            "yaml-syntax", f"not YAML: {words}", Where(path, mark.line + 1, mark.column + 1) if mark else Where(path)
        ) from None
    except yaml.reader.ReaderError as e:
        line = text.encode().count(b"\n", 0, e.position) + 1
        raise RunnerError("yaml-syntax", f"not YAML: {e.reason}", Where(path, line)) from None
    except RecursionError:
        raise RunnerError(
            "yaml-syntax", "too deep, or an alias is inside the value that it names", Where(path)
        ) from None


def _value(node: yaml.Node, steps: Steps, path: Path, places: dict[Steps, Where]) -> Any:
    places.setdefault(steps, _where(path, node))
    match node:
        case yaml.MappingNode():
            return _mapping(node, steps, path, places)
        case yaml.SequenceNode():
            return [_value(child, (*steps, index), path, places) for index, child in enumerate(node.value)]
        case yaml.ScalarNode(style=None | "", value="" | "~" | "null"):
            return None
    return node.value


def _mapping(node: yaml.MappingNode, steps: Steps, path: Path, places: dict[Steps, Where]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, child in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise RunnerError("yaml-type", "a key must be text", _where(path, key))
        if key.value in out:
            raise RunnerError("duplicate-key", f'the key "{key.value}" appears twice', _where(path, key))
        places[(*steps, key.value)] = _where(path, key)
        out[key.value] = _value(child, (*steps, key.value), path, places)
    return out


def _where(path: Path, node: yaml.Node) -> Where:
    return Where(path, node.start_mark.line + 1, node.start_mark.column + 1)
