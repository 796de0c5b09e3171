"""Records how far an incremental model has read each changelog, so that the record is right after a crash.

Before the table is written, the record says how far the table will have read then, and which writes it has had; after
that, only how far it has read. If there is a crash in between, a write that is not in the record shows that the table
was written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from runner.engine.checkpoint import Checkpoint
from runner.engine.files import LocalFiles
from runner.engine.versions import form_of, signed
from runner.files import Damaged, is_uri, mapping, read_text, write_whole
from runner.patterns import matching
from runner.project.inputs import Messages, Source, Target
from runner.project.nodes import Project
from runner.storage.data import FileSystem
from runner.storage.storage import Storage


@dataclass(frozen=True)
class Position:
    """A place in a changelog. `table` is the identity of the changelog's table, None if there is no table yet; `batch`
    is its newest batch, or -1.
    """

    table: str | None
    batch: int


Positions = Mapping[str, Position]
"""Name of a changelog -> how far it was read."""


class Recorded(NamedTuple):
    """How far a table has read each changelog, and the names of its last write, and of one that kept its rows."""

    read: Positions
    written: list[str]


@dataclass
class Progress:
    """The record of one model, a file. `storage` has the model's `table`, whose writes are listed once for as long as
    nobody writes the table; meanwhile others must be kept from writing it.
    """

    files: FileSystem
    path: str
    storage: Storage
    table: str
    known: list[str] | None = field(default=None, init=False)

    def read(self) -> Positions | None:
        """Returns how far the table has read; None if that is not known, because the table was never built, or is not
        the table that was built.
        """
        record = self._settled()
        if record is None or self._is_another_table(record):
            return None
        return _recorded(record).read

    def recorded(self) -> Recorded | None:
        """Returns what is recorded, whatever the table is now; None if nothing is, or a write was interrupted."""
        return recorded_in(self.files, self.path)

    def verified(self) -> None:
        """Records that the table as it is now has the rows that were written."""
        record, newest = self._record_now(), self.storage.newest_write(self.table) or self.storage.head(self.table)
        if record and newest is not None and newest not in _recorded(record).written:
            # Others have written the table: how many rows it has now is not known.
            record.pop("rows", None)
            self._record({**record, "verified": newest})

    def rows(self) -> int | None:
        """Returns the number of rows that is recorded of the table; None if it is not known."""
        return (self._record_now() or {}).get("rows")

    def counted(self, rows: int) -> None:
        """Records the number of rows of the table."""
        if record := self._record_now():
            self._record({**record, "rows": rows})

    @contextmanager
    def writing(self, read: Positions) -> Iterator[None]:
        """Records that the block writes the table, which has read as far as `read` when the block ends."""
        record, head = self._settled() or {"read": {}, "written": []}, self.storage.head(self.table)
        before = self._writes() if head is None else [head]
        positions = {name: asdict(position) for name, position in read.items()}
        self._record({**record, "next": positions, "before": before})
        self.known = None
        yield
        new = self.storage.writes_since(self.table, before)
        written = [one.name for one in new] or record["written"]
        rows = [record.get("rows") if head in _recorded(record).written else None, *(one.rows for one in new)]
        known = [one for one in rows if one is not None]
        counted = {"rows": sum(known)} if len(known) == len(rows) else {}
        self._record({"read": positions, "written": written, **counted})

    def _writes(self) -> list[str]:
        if self.known is None:
            self.known = self.storage.writes(self.table)
        return self.known

    def settle(self) -> None:
        """Finishes the record of a write that was interrupted. Must run before old writes are forgotten."""
        self._settled()

    def _settled(self) -> dict[str, Any] | None:
        record = self._record_now()
        if record is None or "next" not in record:
            return record
        written = [one.name for one in self.storage.writes_since(self.table, record["before"])]
        was_written = {"read": record["next"], "written": written}
        settled = was_written if written else {"read": record["read"], "written": record["written"]}
        self._record(settled)
        return settled

    def _record_now(self) -> dict[str, Any] | None:
        return _record_of(self.files, self.path)

    def _is_another_table(self, record: Mapping[str, Any]) -> bool:
        """Returns True if the table lacks its last write: the table was restored, or replaced by someone else."""
        if self.storage.head(self.table) in _recorded(record).written:
            return False
        now = set(self._writes())
        return bool(now) and not now.issuperset(record["written"])

    def _record(self, record: Mapping[str, Any]) -> None:
        self.files.write(self.path, json.dumps(signed(record)) + "\n")


def recorded_in(files: FileSystem, path: str) -> Recorded | None:
    """Returns what is recorded in a file, whatever the table is now; None if nothing is, or a write was interrupted."""
    record = _record_of(files, path)
    return None if record is None or "next" in record else _recorded(record)


def _record_of(files: FileSystem, path: str) -> dict[str, Any] | None:
    if not files.exists(path):
        return None
    record = mapping(files.read(path), path, ("read", "written"))
    form_of(record, path)
    return record


def _recorded(record: Mapping[str, Any]) -> Recorded:
    positions = {name: Position(**position) for name, position in record["read"].items()}
    return Recorded(positions, [*record["written"], record.get("verified", "")])


@dataclass(frozen=True)
class Refreshes:
    """The models that must still be refreshed: a folder with one file for each."""

    files: FileSystem
    folder: str

    def begin(self, names: Iterable[str], run_id: str) -> None:
        """Records the models that this run refreshes. Must run before anything is removed."""
        for name in names:
            self.files.write(self._file(name), run_id)

    def unfinished(self, name: str) -> str | None:
        """Returns the run that began to refresh a model and has not finished; None if there is none."""
        return self.files.read(self._file(name)) if self.files.exists(self._file(name)) else None

    def done(self, name: str) -> None:
        self.files.remove(self._file(name))

    def _file(self, name: str) -> str:
        return f"{self.folder}/{name}"


def read_under(files: FileSystem, path: str, name: str, new: str) -> None:
    """Records in the progress of a model that a changelog has another name."""
    record = mapping(files.read(path), path, ("read", "written"))
    for positions in (record[key] for key in ("read", "next") if key in record):
        if name in positions:
            positions[new] = positions.pop(name)
    files.write(path, json.dumps(record) + "\n")


def built_under(files: FileSystem, path: str, name: str, new: str) -> None:
    """Records in the mark of a mirror under which names it was built, when it or a changelog gets another name. Other
    marks say nothing of names.
    """
    try:
        mark = json.loads(files.read(path)) if files.exists(path) else None
    except ValueError:
        return
    if isinstance(mark, dict) and "made_by" in mark:
        named = mark.setdefault("named", {})
        named[new] = named.pop(name, named.get(new, name))
        files.write(path, json.dumps(mark))


class TablesWritten:
    """The names of the tables that the runs of a project have written into a target, as far as this machine knows: a
    file, beside the tables where this machine sees them.
    """

    def __init__(self, project: Project) -> None:
        self.path = project.beside_tables("tables_written") / f"{project.name}.json"

    def read(self) -> set[str]:
        """Returns the names; raises Damaged."""
        if not self.path.exists():
            return set()
        return set(mapping(read_text(self.path), str(self.path), ("tables",))["tables"])

    def add(self, names: Iterable[str]) -> None:
        if new := {*names} - (known := self.read()):
            self._write(known | new)

    def remove(self, name: str) -> None:
        self._write(self.read() - {name})

    def rename(self, name: str, new: str) -> None:
        if name in (known := self.read()):
            self._write(known - {name} | {new})

    def _write(self, names: set[str]) -> None:
        write_whole(self.path, json.dumps({"tables": sorted(names)}) + "\n")


# The beginnings and the ending of names of files that Spark passes over.
PASSED_OVER, BEING_COPIED = ("_", "."), "._COPYING_"


def landed_until(target: Target, sources: Iterable[Source]) -> dict[str, dict[str, Any]]:
    """Returns for each source how far its messages have landed: the identity of its table, and the newest batch that
    has messages. Leaves out tables that this machine does not see, and those of which this cannot be read.
    """
    found: dict[str, dict[str, Any]] = {}
    for source in () if is_uri(target.path) else sources:
        with suppress(Damaged, OSError):
            found[source.name] = _landed(checkpoint_of(target, source))
    return found


def has_new_input(source: Source, target: Target, recorded: Mapping[str, Any] | None) -> bool:
    """Returns True if a source has messages that a run into this target had not landed: they have landed since, or not
    yet. Also returns True where this machine does not see the messages (in topics, on other file systems), or cannot
    read what has landed.
    """
    pattern = source.messages.local_pattern
    if recorded is None or pattern is None or is_uri(target.path):
        return True
    checkpoint = checkpoint_of(target, source)
    try:
        read = checkpoint.paths_read()
        return _landed(checkpoint) != dict(recorded) or any(
            str(file) not in read for file in files_to_read(source.messages)
        )
    except (Damaged, OSError):
        return True


def checkpoint_of(target: Target, source: Source) -> Checkpoint:
    """Returns the checkpoint of a source, in a folder of this machine."""
    return Checkpoint(LocalFiles(), f"{target.at('_checkpoints')}/{source.model}")


def _landed(checkpoint: Checkpoint) -> dict[str, Any]:
    return {"table": checkpoint.table(), "batch": checkpoint.newest_landed()}


def files_to_read(messages: Messages) -> Iterator[Path]:
    """Yields the files of a source that Spark reads, and that are not empty."""
    inside = "**/*" if messages.kind.endswith("table") else "*"
    for path in matching(messages.local_pattern or ""):
        for file in path.glob(inside) if path.is_dir() else (path,):
            names = file.relative_to(path).parts or (file.name,)
            is_read = not any(name.startswith(PASSED_OVER) for name in names) and file.suffix != BEING_COPIED
            if is_read and file.is_file() and file.stat().st_size:
                yield file
