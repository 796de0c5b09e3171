"""How far an incremental model has read each changelog, written down so that a crash leaves it right.

Before the table is written, the record says what the table will have read then, and which writes it has had; afterwards
only what it has read. After a crash in between, a write that the record does not know shows that the table was written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from runner.files import mapping
from runner.storage.session import FileSystem


@dataclass(frozen=True)
class Position:
    """A place in a changelog: the identity of the table, None if there is no table yet; its newest batch, or -1."""

    table: str | None
    batch: int


Positions = Mapping[str, Position]
"""Name of a changelog -> how far it was read."""


@dataclass
class Progress:
    """The record of one model, a file. `list_writes` lists the writes that made its table what it is; it is asked once
    for as long as nobody writes the table, which must be kept from others meanwhile.
    """

    files: FileSystem
    path: str
    list_writes: Callable[[], list[str]]
    known: list[str] | None = field(default=None, init=False)

    def read(self) -> Positions | None:
        """How far the table has read; None if that is not known: it was never built, or is not the table that was
        built.
        """
        record = self._settled()
        if record is None or self._is_another_table(record["written"]):
            return None
        return {name: Position(**position) for name, position in record["read"].items()}

    @contextmanager
    def writing(self, read: Positions) -> Iterator[None]:
        """In the block the table is written, and has read that far afterwards."""
        record, before = self._settled() or {"read": {}, "written": []}, self.writes()
        positions = {name: asdict(position) for name, position in read.items()}
        self._record({**record, "next": positions, "before": before})
        self.known = None
        yield
        self._record({"read": positions, "written": self._new(before) or record["written"]})

    def writes(self) -> list[str]:
        if self.known is None:
            self.known = self.list_writes()
        return self.known

    def settle(self) -> None:
        """Finishes the record of a write that was interrupted. Must run before old writes are forgotten."""
        self._settled()

    def _settled(self) -> dict[str, Any] | None:
        if not self.files.exists(self.path):
            return None
        record = mapping(self.files.read(self.path), self.path, ("read", "written"))
        if "next" not in record:
            return record
        written = self._new(record["before"])
        was_written = {"read": record["next"], "written": written}
        settled = was_written if written else {"read": record["read"], "written": record["written"]}
        self._record(settled)
        return settled

    def _new(self, before: list[str]) -> list[str]:
        known = set(before)
        return [write for write in self.writes() if write not in known]

    def _is_another_table(self, written: list[str]) -> bool:
        """Whether the table lacks its last write: it was restored, or replaced by someone else."""
        now = set(self.writes())
        return bool(now) and not now.issuperset(written)

    def _record(self, record: Mapping[str, Any]) -> None:
        self.files.write(self.path, json.dumps(record) + "\n")
