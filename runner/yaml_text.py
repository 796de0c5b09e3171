"""Reads YAML files as texts, each with its place: no scalar is taken for a number, a date or a boolean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from runner.errors import Problems, RunnerError, Where, nearest_or_all
from runner.files import read_text
from runner.yaml_events import LARGEST, Builder, Steps

LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
WORDS = {"true": True, "false": False}


@dataclass(frozen=True)
class Yaml:
    """A value (text, list or dict; None for a plain null), and the places of the value and of everything inside it."""

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
        """Returns the elements; a single value gives a list of one."""
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

    def data(self) -> Any:
        """Returns the value for a template: lists, mappings, true, false and none; all else is a text, so numbers keep
        their digits.
        """
        match self.value:
            case dict():
                return {key: value.data() for key, value in self.items()}
            case list():
                return [value.data() for value in self.elements()]
            case text:
                return WORDS.get(text, text)

    def only(self, known: Iterable[str], code: str = "unknown-key", instead: Mapping[str, str] = {}) -> Yaml:
        """Returns the value itself; raises an error of that code for each key that is not known. For some keys,
        `instead` says what to do instead of writing them.
        """
        problems = Problems()
        known = list(known)
        for key, value in self.mapping().items():
            if key not in known:
                hint = instead.get(key) or nearest_or_all(key, known)
                problems.add(value.error(code, f'unknown key "{key}" in {self.name()}', hint))
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


def whole_number(text: str) -> int | None:
    """Returns the number that digits write; None for other text, and for more digits than 64 bits have.

    >>> whole_number("010"), whole_number("²"), whole_number("1" * 19)
    (10, None, None)
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None


def yaml_files(folder: Path) -> list[Path]:
    """Returns the YAML files in a folder and in the folders below it."""
    return sorted(path for path in folder.rglob("*") if path.suffix in (".yml", ".yaml"))


def read_yaml(path: Path) -> Yaml:
    """Returns the content of a YAML file; raises what `yaml_of` raises, and `yaml-size`."""
    size = path.stat().st_size
    if size > LARGEST:
        message = f"too large: {size} bytes, and a file of YAML has at most {LARGEST}"
        raise RunnerError("yaml-size", message, Where(path), "write what is in it to several files")
    return yaml_of(read_text(path), path)


def yaml_of(text: str, path: Path) -> Yaml:
    """Returns the content of YAML; raises `yaml-syntax`, `yaml-type`, `duplicate-key`, `yaml-unsupported`, `yaml-depth`
    or `yaml-alias` with the place.
    """
    built = Builder(path)
    try:
        # This does not use `yaml.compose`: that of libyaml calls itself for each level, and kills the process if there
        # are many.
        built.take(yaml.parse(text, Loader=LOADER))
    except yaml.MarkedYAMLError as e:
        mark, words = e.problem_mark, ", ".join(part for part in (e.context, e.problem) if part)
        raise RunnerError(
            "yaml-syntax", f"not YAML: {words}", Where(path, mark.line + 1, mark.column + 1) if mark else Where(path)
        ) from None
    except yaml.reader.ReaderError as e:
        line = text.encode().count(b"\n", 0, e.position) + 1
        raise RunnerError("yaml-syntax", f"not YAML: {e.reason}", Where(path, line)) from None
    except UnicodeEncodeError as e:
        raise RunnerError("yaml-syntax", "not YAML: not UTF-8", Where(path, text.count("\n", 0, e.start) + 1)) from None
    root = built.places.root
    return Yaml({} if root is None else root, built.places)
