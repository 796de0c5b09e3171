"""The files that a stream has read, where this machine sees them: whether they still are what they were then."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from runner.engine.checkpoint import Checkpoint, FileState
from runner.functions.avro.files import plain_path

BLOCK = 1 << 20


@dataclass(frozen=True)
class ReadFiles:
    """What was in a file is recorded after it was read, if its time of change is then still the one that Spark saw
    before it read the file. Of a file that changed in between, only that time is known.
    """

    checkpoint: Checkpoint

    def record(self) -> None:
        """Records what is in the files that were read and not recorded yet."""
        known = self.checkpoint.file_states()
        times = {file: time for file, time in self.checkpoint.committed_files().items() if file not in known}
        new = {file: state for file, state in _states(times).items() if state and state.modified == times[file]}
        if new:
            self.checkpoint.write_file_states({**known, **new})

    def changed(self) -> list[str]:
        """The files that have changed; only those are read again whose time or size is another. Records the time of
        those that were only touched.
        """
        known, times = self.checkpoint.file_states(), self.checkpoint.committed_files()
        now = _states(
            file
            for file, time in times.items()
            if (looks := _looks(file)) and looks != (known[file].looks if file in known else (time, looks[1]))
        )
        same = _same(now, known, times)
        if same:
            self.checkpoint.write_file_states({**known, **same})
        return [file for file in now if file not in same]

    def differing(self) -> list[str]:
        """The files that have changed; all of them are read again to see it."""
        known, times = self.checkpoint.file_states(), self.checkpoint.committed_files()
        now = _states(times)
        same = _same(now, known, times)
        return [file for file in now if file not in same]


def _same(
    now: Mapping[str, FileState | None], known: Mapping[str, FileState], times: Mapping[str, int]
) -> dict[str, FileState]:
    """The files whose content is what was recorded or, if nothing was, whose time of change is that which Spark saw."""
    return {
        file: state
        for file, state in now.items()
        if state and (state.sha256 == known[file].sha256 if file in known else state.modified == times[file])
    }


def _states(files: Iterable[str]) -> Mapping[str, FileState | None]:
    """What is in files now, without those that are gone or elsewhere; None for one that is being changed."""
    there = [file for file in files if _looks(file)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(there, pool.map(_state, there)))


def _state(file: str) -> FileState | None:
    before, hashed = _looks(file), hashlib.sha256()
    try:
        with open(plain_path(file), "rb") as content:
            while block := content.read(BLOCK):
                hashed.update(block)
    except OSError:
        return None
    return FileState(*before, hashed.hexdigest()) if before and before == _looks(file) else None


def _looks(file: str) -> tuple[int, int] | None:
    """The time of change of a file, in milliseconds as Spark has it, and its size; None if this machine does not see
    such a file.
    """
    try:
        found = os.stat(plain_path(file))
    except OSError:
        return None
    return (found.st_mtime_ns // 1_000_000, found.st_size) if file.startswith("file:") else None
