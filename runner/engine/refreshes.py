"""Full refreshes that have begun: what one was asked to read or build again is remembered until that is done."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from runner.storage.session import FileSystem


@dataclass(frozen=True)
class Refreshes:
    """One file for each model that must still be refreshed, in a folder."""

    files: FileSystem
    folder: str

    def begin(self, names: Iterable[str], run_id: str) -> None:
        """Remembers models that this run refreshes; before anything is removed."""
        for name in names:
            self.files.write(self._file(name), run_id)

    def unfinished(self, name: str) -> str | None:
        """The run that began to refresh a model and has not finished; None if there is none."""
        return self.files.read(self._file(name)) if self.files.exists(self._file(name)) else None

    def done(self, name: str) -> None:
        self.files.remove(self._file(name))

    def _file(self, name: str) -> str:
        return f"{self.folder}/{name}"
