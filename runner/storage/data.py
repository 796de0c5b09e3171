"""What storages take and return: data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass(frozen=True)
class Sink:
    """Where Spark writes a stream: a path, or a table that exists."""

    format: str
    path: str | None = None
    table: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    partitioned_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Increment:
    """
    New rows for a table that exists. `rows` is what SQL reads them from, with a column `times of this key` if there is
    a key; with a key they replace the rows with the same key, without one all are added. `had` and `sent` map the
    columns of the table and of the new rows to their types in SQL; `columns` are those of the table afterwards.
    """

    rows: str
    had: Mapping[str, str]
    sent: Mapping[str, str]
    columns: tuple[str, ...]
    key: tuple[str, ...] = ()

    @property
    def taken(self) -> list[str]:
        """The columns of the new rows that the table has afterwards."""
        return [column for column in self.columns if column in self.sent]

    @property
    def added(self) -> dict[str, str]:
        """The columns that the table gets, with their types."""
        return {column: self.sent[column] for column in self.taken if column not in self.had}

    @property
    def dropped(self) -> list[str]:
        return [column for column in self.had if column not in self.columns]


@dataclass(frozen=True)
class Cutoff:
    """The instant some days before `now`: older states of a table need not stay readable."""

    days: int
    now: datetime

    @property
    def hours(self) -> int:
        return self.days * 24

    @property
    def at(self) -> str:
        """The instant in UTC, as SQL writes it."""
        return f"{self.now - timedelta(days=self.days):%Y-%m-%d %H:%M:%S}"

    @property
    def at_least_a_day_ago(self) -> str:
        """The instant, or a day ago if that is earlier: newer files may belong to a write that is still running."""
        return Cutoff(max(self.days, 1), self.now).at
