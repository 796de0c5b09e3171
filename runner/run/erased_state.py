"""What is to be erased, and an erase that was begun: data only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from runner.engine.erasures import Erasure
from runner.project.inputs import Source


@dataclass(frozen=True)
class Asked:
    """What is to be erased: the last parts of the name of a table, and a key with the texts that messages have. Only
    from some `sources`.
    """

    table: tuple[str, ...]
    key: Mapping[str, str]
    sources: tuple[Source, ...]


@dataclass
class State:
    """An erase that was begun. `sources` maps changelogs to the names that the table has there, `removed` places to the
    numbers of what was removed there.
    """

    command: str
    names: list[str]
    erasure: Erasure
    sources: dict[str, list[list[str]]]
    because: str = ""
    purges: bool = False
    removed: dict[str, dict[str, int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def text(self) -> str:
        return json.dumps({**self.__dict__, "erasure": self.erasure.as_json()}) + "\n"
