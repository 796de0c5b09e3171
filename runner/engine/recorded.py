"""What the runner records beside tables, and beside Spark's own files in the folder of a checkpoint."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

# In a target: the copy into it, and the erase in it, that were begun and are not finished.
COPYING, ERASING = "_copying.json", "_erasing.json"


@dataclass(frozen=True)
class Fingerprint:
    """The facts that decided the rows that landed from the batch `since` on. `sha256` is the hash of the compiled SQL,
    which changes with the spec, its type tables and the macros. `reach` says where reading of the source ends. `parts`
    are the other settings of the source that decide its rows.
    """

    format: str
    sha256: str
    reach: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)
    since: int = 0

    @classmethod
    def of(cls, format_name: str, sql: str, reach: str = "", parts: Mapping[str, str] = {}) -> Fingerprint:
        return cls(format_name, hashlib.sha256(sql.encode()).hexdigest(), reach, parts)

    def changed_parts(self, other: Fingerprint) -> list[str]:
        """Returns the parts of the source that differ from those in another fingerprint."""
        return [part for part in sorted({*self.parts, *other.parts}) if self.parts.get(part) != other.parts.get(part)]


@dataclass(frozen=True)
class FileState:
    """The content of a file, in short. `modified` is its time of change in milliseconds since 1970."""

    modified: int
    size: int
    sha256: str

    @property
    def looks(self) -> tuple[int, int]:
        """The time of change and the size, which can be seen without reading the file."""
        return self.modified, self.size


TableName = Sequence[str]
"""The parts of a table's name. A name without parts stands for all tables."""


def ends_with(name: TableName, ending: TableName) -> bool:
    """Returns True if the last parts of a name are these; always for the name that stands for all tables.

    >>> ends_with(["shop", "orders"], ["orders"]), ends_with(["shop", "orders"], ["s", "orders"]), ends_with([], ["a"])
    (True, False, True)
    """
    return not name or list(name[-len(ending) :]) == list(ending)


@dataclass(frozen=True)
class Again:
    """The batches in which messages may have landed once more. Rows of older batches that nobody is to see are still in
    the table: the dead letters of messages in the batches `letters`, and all rows of messages in the batches
    `replacing`. `replaced` maps all batches that ever had messages whose rows were replaced to the tables of these
    rows.
    """

    letters: frozenset[int] = frozenset()
    replacing: frozenset[int] = frozenset()
    replaced: Mapping[int, Sequence[TableName]] = field(default_factory=dict)

    @property
    def hides_rows(self) -> bool:
        return bool(self.letters or self.replacing)

    @classmethod
    def of(cls, json: Mapping[str, Any]) -> Again:
        replaced = {int(batch): tables for batch, tables in json["replaced"].items()}
        return cls(frozenset(json["letters"]), frozenset(json["replacing"]), replaced)

    def as_json(self) -> dict[str, Any]:
        return {"letters": sorted(self.letters), "replacing": sorted(self.replacing), "replaced": self.replaced}

    def with_letters(self, batches: Iterable[int]) -> Again:
        return replace(self, letters=self.letters.union(batches))

    def with_replaced(self, batches: Iterable[int], tables: Sequence[TableName]) -> Again:
        new = {batch: _distinct([*self.replaced.get(batch, ()), *tables]) for batch in batches}
        return replace(self, replacing=self.replacing.union(new), replaced={**self.replaced, **new})

    def replaced_between(self, since: int, until: int) -> list[TableName]:
        """Returns the tables of rows that were replaced after one batch and not after another."""
        return [one for batch, tables in self.replaced.items() if since < batch <= until for one in tables]


def _distinct(tables: Iterable[TableName]) -> list[TableName]:
    return list({tuple(one): one for one in tables}.values())
