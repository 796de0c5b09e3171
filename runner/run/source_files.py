"""The files of a source: which of them Spark cannot read, has passed over, or has read before they changed."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote

from runner.engine.checkpoint import Checkpoint
from runner.engine.messages import ONE_BY_ONE, ORDINARY_FILES, OTHER_FILES
from runner.engine.recorded import FileState
from runner.functions.avro.files import LINES, plain_path
from runner.patterns import HAS_SPECIAL, escaped, matching, unescaped, with_colon
from runner.project.inputs import DUMPS, Messages
from runner.run.documents import dumped_message

# The number of bytes of a file that are read to judge the length of its lines.
SAMPLE = 1 << 18
# If files have no more bytes and no more messages than this, reading them takes less time than starting to read.
SMALL_SIZE, FEW_MESSAGES = 1 << 22, 4_000


@dataclass(frozen=True)
class SourceFiles:
    """The files of a source when its stream starts. `there` are the files that match its pattern and are not empty, as
    far as this machine sees them. `aside` maps the files that cannot be read to the reasons.
    """

    messages: Messages
    checkpoint: Checkpoint
    there: tuple[Path, ...]
    aside: dict[str, str] = field(default_factory=dict)

    @classmethod
    def found(cls, messages: Messages, checkpoint: Checkpoint) -> SourceFiles:
        pattern = messages.local_pattern
        return cls(messages, checkpoint, tuple(_files(matching(pattern))) if pattern else ())

    def unreadable(self) -> list[str]:
        """Returns the names at which Spark's search for the files ends in an error in every run."""
        pattern = self.messages.local_pattern
        is_searched = pattern and (HAS_SPECIAL.search(pattern) or Path(unescaped(pattern)).is_file())
        return [shown(path) for path in with_colon(pattern)] if pattern and is_searched else []

    def streams(self) -> Sequence[Mapping[str, str]]:
        """Returns the options of the streams that read the files, one after the other. The first stream can go on for
        ever.
        """
        if self.messages.topics:
            return ({},)
        if self._are_in_special_folders():
            return (ONE_BY_ONE,)
        # Nothing is known of the names of files in other file systems.
        may_be_others = not self.messages.local_pattern or any(HAS_SPECIAL.search(path.name) for path in self.there)
        return (ORDINARY_FILES, OTHER_FILES) if may_be_others else (ORDINARY_FILES,)

    def _are_in_special_folders(self) -> bool:
        # Before there are files, only the pattern is known; in it, special characters of folders stand behind a
        # backslash.
        folder = (self.messages.local_pattern or "").rsplit("/", 1)[0]
        return "\\" in folder or any(HAS_SPECIAL.search(str(path.parent)) for path in self.there)

    def all_read(self) -> bool:
        """Returns True if a stream would find nothing to read: committed batches have read all files that are there.
        Returns False where that is not known, and if a file that was read is gone, since its folder may be unreadable.
        """
        if not self.messages.local_pattern or self.checkpoint.newest_commit < 0 or self.checkpoint.has_unfinished_batch:
            return False
        return self.checkpoint.paths_read() == {str(path) for path in self.there}

    def passed_over(self) -> list[str]:
        """Returns the files that were there and that Spark has not read, though Spark has read all files that it finds.
        Files that were set aside are not among them.
        """
        if not self.messages.kind.endswith("files"):
            return []
        done = self._done()
        return [shown(path) for path in self.there if str(path) not in done and os.path.exists(path)]

    def _done(self) -> set[str]:
        """Returns the files that were read or set aside."""
        return self.checkpoint.paths_read() | {*self.aside}

    def set_aside(self, reason: str) -> bool:
        """Takes the files that a reason names out of the batch that has failed on them, so that they do not hold up
        others; returns False if the reason names none of its files.
        """
        begun = {path for path in self.checkpoint.begun_files() if _is_named(path, reason)}
        self.checkpoint.leave_out(begun)
        self.aside.update(dict.fromkeys(begun, _cause(reason)))
        return bool(begun)

    def left_by(self, stream: Mapping[str, str]) -> Iterator[Messages]:
        """Yields the messages of each file that a stream with these options did not reach. Such a stream reads one file
        at a time; if it could not read one of them, it would begin with that file again.
        """
        pattern = self.messages.local_pattern
        if not pattern or not ONE_BY_ONE.items() <= stream.items():
            return
        # Spark finds no files in deeper folders, and no files with a hidden name.
        found, done = {*matching(pattern)}, self._done()
        for path in self.there:
            is_hidden = path.name.startswith(("_", ".")) or path.name.endswith("._COPYING_")
            if not is_hidden and not found.isdisjoint((path, path.parent)) and str(path) not in done:
                yield replace(self.messages, path=escaped(str(path)))

    def gone(self) -> set[str]:
        """Returns the files of a batch that was begun that are not there any more."""
        return {path for path in self.checkpoint.begun_files() if path.startswith("/") and not os.path.exists(path)}

    @cached_property
    def to_read(self) -> tuple[int, float | None]:
        """The size of the files that were not read yet when this was first asked, and the number of their lines, None
        if they have no lines.
        """
        read = self.checkpoint.paths_read()
        return self.amount([path for path in self.there if str(path) not in read])

    def amount(self, files: Sequence[Path]) -> tuple[int, float | None]:
        """Returns the size of some of the files, and the number of their lines, judged by the first file; None if they
        have no lines.
        """
        size = sum(map(_size, files))
        length = _length_of_a_line(files[0]) if files and not self.messages.are_whole_files else None
        return size, size / length if length else None

    def are_few(self) -> bool:
        """Returns True if a stream will find few messages to read, as far as this machine can see."""
        if not self.messages.local_pattern or self.checkpoint.has_unfinished_batch:
            return False
        return starting_is_longer(*self.to_read)

    def changed(self) -> list[str]:
        """Returns the files that have changed since they were read."""
        changed = () if self.messages.topics else changed_files(self.checkpoint)
        return [shown(plain_path(file)) for file in changed]

    def record(self) -> None:
        """Records what was in the files that were read, so that changes can be seen."""
        if not self.messages.topics:
            record_files(self.checkpoint)


def starting_is_longer(size: int, messages: float | None) -> bool:
    """Returns True if so many bytes and messages are read in less time than it takes to start reading."""
    return size <= SMALL_SIZE and (messages or 0) <= FEW_MESSAGES


def _is_named(path: str, reason: str) -> bool:
    """Returns True if a reason names a file, as a path or as a part of a URI.

    >>> reason = "Could not read file:///in/a%20b.gz. The file ends."
    >>> [_is_named(path, reason) for path in ("/in/a b.gz", "/in/a b.g", "/in/c.gz")]
    [True, False, False]
    """
    texts = (reason, unquote(reason))
    return any(re.search(rf"{re.escape(path)}(?![\w/-]|\.\w)", text) for text in texts)


def _cause(reason: str) -> str:
    """Returns the error in the brackets behind Spark's message about a stream that has failed; if there is none, the
    first line of the message.

    >>> _cause("[STREAM_FAILED] Query [id = 7] terminated. SQLSTATE: KD001 (java.io.IOException: not a gzip file)")
    'java.io.IOException: not a gzip file'
    """
    first = reason.split("\n", 1)[0]
    found = re.search(r"SQLSTATE: \w+ \((.+)\)$", first)
    return found[1] if found else first


def shown(path: Path | str) -> str:
    """Returns a path as a person can read it on one line, whatever bytes it has.

    >>> print(shown("in/数\\n" + b"\\xff".decode(errors="surrogateescape")))
    in/数\\n\\udcff
    """
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in str(path))


def _files(found: Iterable[Path]) -> Iterator[Path]:
    """Yields the files that have content, also those in folders, without Hadoop's own checksums: Hadoop keeps the
    checksum of `x` in `.x.crc`.
    """
    for path in found:
        for file in path.rglob("*") if os.path.isdir(path) else (path,):
            # A file may go away at any moment.
            with suppress(OSError):
                if file.is_file() and file.stat().st_size and not _is_checksum(file):
                    yield file


def _size(path: Path) -> int:
    # A file may go away at any moment.
    with suppress(OSError):
        return path.stat().st_size
    return 0


def _length_of_a_line(path: Path) -> float | None:
    """Returns the average number of bytes that a line of a file takes as it is stored; None if that cannot be seen from
    the beginning of the file.
    """
    with (
        suppress(OSError, EOFError, zlib.error),
        path.open("rb") as raw,
        gzip.open(raw) if path.suffix == ".gz" else nullcontext(raw) as content,
    ):
        lines = content.read(SAMPLE).count(b"\n")
        return raw.tell() / lines if lines else None
    return None


def lines_of_message(messages: Messages, path: Path, message: bytes) -> tuple[int, int] | None:
    """Returns the first line of a file, counted from 1, in which a message stands, and the number of lines in which it
    stands: both are 0 if there is none. Returns None for a file whose messages are not in lines, and for one that
    cannot be unpacked.
    """
    dump = messages.kind.removesuffix("_files")
    if not messages.kind.endswith("files") or (
        messages.are_whole_files and not path.name.removesuffix(".gz").endswith(LINES)
    ):
        return None
    first, count = 0, 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as content:
            for number, line in enumerate(content, 1):
                text = line.removesuffix(b"\n").removesuffix(b"\r")
                if message in (text, dumped_message(dump, text).raw if dump in DUMPS else text):
                    first, count = first or number, count + 1
    except (OSError, EOFError, zlib.error):
        return None
    return first, count


def _is_checksum(file: Path) -> bool:
    checked = file.name.removeprefix(".").removesuffix(".crc")
    return file.name == f".{checked}.crc" and file.with_name(checked).is_file()


BLOCK = 1 << 20


# --- what was in the files that a stream has read. The content of a file is recorded after it was read, if its time of
# change is then still the one that Spark saw before. If a file changed in between, only that time is known.


def record_files(checkpoint: Checkpoint) -> None:
    """Records what is in the files that were read and whose content was not recorded yet."""
    known = checkpoint.file_states()
    times = {file: time for file, time in checkpoint.committed_files().items() if file not in known}
    new = {file: state for file, state in _states(times).items() if state and state.modified == times[file]}
    if new:
        checkpoint.write_file_states({**known, **new})


def changed_files(checkpoint: Checkpoint) -> list[str]:
    """Returns the files that have changed; reads again only files that have another time or size. Records the time of
    files that were only touched.
    """
    known, times = checkpoint.file_states(), checkpoint.committed_files()
    now = _states(
        file
        for file, time in times.items()
        if (looks := _looks(file)) and looks != (known[file].looks if file in known else (time, looks[1]))
    )
    same = _same(now, known, times)
    if same:
        checkpoint.write_file_states({**known, **same})
    return [file for file in now if file not in same]


def differing_files(checkpoint: Checkpoint) -> list[str]:
    """Returns the files that have changed; reads all of them again to see it."""
    known, times = checkpoint.file_states(), checkpoint.committed_files()
    now = _states(times)
    same = _same(now, known, times)
    return [file for file in now if file not in same]


def _same(
    now: Mapping[str, FileState | None], known: Mapping[str, FileState], times: Mapping[str, int]
) -> dict[str, FileState]:
    """Returns the files whose content is what was recorded or, if nothing was recorded, whose time of change is the one
    that Spark saw.
    """
    return {
        file: state
        for file, state in now.items()
        if state and (state.sha256 == known[file].sha256 if file in known else state.modified == times[file])
    }


def _states(files: Iterable[str]) -> Mapping[str, FileState | None]:
    """Returns what is in files now, without files that are gone or elsewhere; None for a file that is being changed."""
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
    """Returns the time of change of a file, in milliseconds as Spark has it, and its size; None if this machine does
    not see such a file.
    """
    try:
        found = os.stat(plain_path(file))
    except OSError:
        return None
    return (found.st_mtime_ns // 1_000_000, found.st_size) if file.startswith("file:") else None
