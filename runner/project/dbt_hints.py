"""Hints for people who know dbt (dbt_hints.yml): words of dbt that the runner does not have, and what to do instead."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path

from runner.files import read_text
from runner.yaml_text import yaml_of

FILE = Path(__file__).with_suffix(".yml")


class Hints(Mapping[str, str]):
    """The hints of some sections of the file, by word. It is read when a word is looked up: only mistakes need it."""

    def __init__(self, *sections: str) -> None:
        self.sections = sections

    @functools.cached_property
    def hints(self) -> dict[str, str]:
        return {word: hint for section in self.sections for word, hint in _read()[section].items()}

    def __getitem__(self, word: str) -> str:
        return self.hints[word]

    def __iter__(self) -> Iterator[str]:
        return iter(self.hints)

    def __len__(self) -> int:
        return len(self.hints)


@functools.cache
def _read() -> dict[str, dict[str, str]]:
    sections = yaml_of(read_text(FILE), FILE).data()
    return {
        section: {word: hint for words, hint in hints.items() for word in words.split()}
        for section, hints in sections.items()
    }


COMMANDS, ALONE, FLAGS, METHODS = Hints("commands"), Hints("alone"), Hints("flags"), Hints("methods")
KEYS, PROJECT_KEYS, SETTINGS = Hints("keys"), Hints("project_keys"), Hints("settings")
MATERIALIZATIONS, NAMES = Hints("materializations"), Hints("names")
IN_TEMPLATES = Hints("names", "statements", "attributes")
FILES, MACROS = Hints("files"), Hints("macros")
