"""The results of nodes and batches: data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from runner.engine.landed import Landed

FAILED = ("error", "fail")


@dataclass(frozen=True)
class Result:
    """The result of one node. `status` is success, error, skipped, pass, warn or fail. `failures` is the number of rows
    that fail a test; `rows` are the numbers of what was written: for a source messages and rows by kind, for a table
    rows.
    """

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
    """The user ended a run early. `results` has one result for each node that was to run."""

    def __init__(self, results: list[Result]) -> None:
        super().__init__()
        self.results = results


@dataclass(frozen=True)
class Batch:
    """What a batch has landed. `behind` is the number of messages that existed when it began and that it left to later
    batches, None if that is not known.
    """

    number: int
    landed: Landed
    seconds: float
    behind: int | None
