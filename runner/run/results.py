"""How nodes went: data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from runner.engine.landed import Landed

FAILED = ("error", "fail")


@dataclass(frozen=True)
class Result:
    """How one node went; `status` is success, error, skipped, pass, warn or fail. `failures` counts rows that fail a
    test, `rows` what was
    written: messages and rows by kind of a source, rows of a table."""

    name: str
    resource_type: str
    status: str
    message: str = ""
    notes: tuple[str, ...] = ()
    failures: int | None = None
    rows: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def has_failed(self) -> bool:
        return self.status in FAILED


class Interrupted(KeyboardInterrupt):
    """A person ended a run before its end; `results` has one for each node that was to run."""

    def __init__(self, results: list[Result]) -> None:
        super().__init__()
        self.results = results


@dataclass(frozen=True)
class Batch:
    """What a batch has landed; `behind` counts the messages that were there when it began and that it left to later
    ones, None if that is not known.
    """

    number: int
    landed: Landed
    seconds: float
    behind: int | None
