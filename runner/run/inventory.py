"""The facts about the tables of a target, and about its disks, that can be seen without Spark: how far each table has
read, what waits, who writes. `runner state` lists them, `runner status` judges them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from runner.counts import counted
from runner.engine.checkpoint import Checkpoint
from runner.engine.files import LocalFiles
from runner.engine.progress import Refreshes, checkpoint_of, files_to_read, recorded_in
from runner.engine.recorded import COPYING, ERASING
from runner.files import Damaged, is_uri, mapping
from runner.project.inputs import Source, Target
from runner.project.mirror import BESIDE
from runner.project.nodes import Node
from runner.run.workspace import Workspace

NEVER = "never built"
UNTOLD = "what it has read cannot be told"
# What may have been begun in a target and not finished: its record, and what it is, in words.
BEGUN = {COPYING: "a copy into this target", ERASING: "an erase in this target"}
# The bytes on a disk without which no run can be expected to end.
LEAST_SPACE = 100_000_000
# If the variable is set, Spark does not look at the setting.
LOCAL_DIR, LOCAL_DIRS = "spark.local.dir", "SPARK_LOCAL_DIRS"


@dataclass(frozen=True)
class Standing:
    """How far a table has got. `read` says in words what it has read, `behind` is the number of batches that have
    landed after that, None if it is not known. `unfinished` says what the next run finishes, `note` what else is to be
    known, `damage` what cannot be read; all may be empty.
    """

    read: str = ""
    behind: int | None = None
    unfinished: str = ""
    note: str = ""
    damage: str = ""

    @property
    def said(self) -> str:
        """What is to be known of the table, in words."""
        behind = f"behind by {self.behind}" if self.behind else ""
        return self.damage or self.unfinished or self.note or behind


def standing_of(workspace: Workspace, node: Node) -> Standing:
    """Returns how far the table of a node has got. This machine must see the tables."""
    target, source = workspace.project.target, node.model.source if node.model else None
    standing = _of_source(target, source) if source else _of_model(workspace, node)
    if not standing.damage and Refreshes(LocalFiles(), target.at("_refreshes")).unfinished(node.relation):
        begun = "a full refresh has begun, and the next run finishes it"
        return Standing(standing.read, standing.behind, begun, standing.note)
    if old := _former(target, node):
        return Standing(standing.read, standing.behind, note=f'still "{old}": the next run renames it')
    return standing


def _former(target: Target, node: Node) -> str:
    """Returns the name under which the table of a node still is, as far as this machine sees it; empty if there is
    none.
    """
    names = node.model.renamed_from if node.model else ()
    there = [name for name in names if _is_there(target, name)]
    return there[0] if there and not _is_there(target, node.relation) else ""


def _is_there(target: Target, name: str) -> bool:
    return any(Path(path).exists() for path in (target.at(name), f"{target.at('_checkpoints')}/{name}"))


def _of_source(target: Target, source: Source) -> Standing:
    checkpoint = checkpoint_of(target, source)
    try:
        if checkpoint.newest_plan < 0:
            return Standing(note=NEVER)
        read = f"batch {checkpoint.newest_commit}: {_amount(checkpoint, source)}"
        kept = checkpoint.kept_since()
        note = f"rows from before {kept} were removed" if kept else ""
        return Standing(read, None, _waits(checkpoint), note)
    except (Damaged, OSError) as damage:
        return Standing(damage=str(damage))


def _waits(checkpoint: Checkpoint) -> str:
    if checkpoint.has_unfinished_batch:
        return "a batch was interrupted, and the next run finishes it"
    return "messages wait to land once more with the next run" if checkpoint.again_waiting() else ""


def _amount(checkpoint: Checkpoint, source: Source) -> str:
    if not source.messages.topics:
        return counted(len(checkpoint.committed_files()), "file")
    first, now = checkpoint.first_offsets(), checkpoint.committed_offsets()
    parts = [(end, first.get(topic, {}).get(one, 0)) for topic, ends in now.items() for one, end in ends.items()]
    return f"{counted(sum(end - begin for end, begin in parts), 'offset')} of {counted(len(parts), 'partition')}"


def _of_model(workspace: Workspace, node: Node) -> Standing:
    """Returns which batches a table has read of the changelogs, and how many landed after them."""
    target, sources = workspace.project.target, {source.model: source for source in workspace.project.sources}
    path = f"{target.at('_checkpoints')}/{node.relation}/_progress.json"
    with suppress(Damaged, OSError):
        recorded = recorded_in(LocalFiles(), path)
        if not recorded:
            was_begun = Path(path).exists()
            return Standing(unfinished="a write was interrupted, and the next run repeats it" if was_begun else "")
        read = {model: one.batch for model, one in recorded.read.items() if model in sources}
        behind = sum(max(0, checkpoint_of(target, sources[one]).newest_commit - batch) for one, batch in read.items())
        told = ", ".join(f"{sources[model].name}: batch {batch}" for model, batch in sorted(read.items()))
        return Standing(told, behind)
    return Standing(damage=UNTOLD)


def size_of(target: Target, relation: str) -> tuple[int | None, float]:
    """Returns the bytes of a table and of those beside it, and when one of their files was changed last, in seconds
    since 1970. A catalog may keep its tables elsewhere: then the size is None.
    """
    size, changed = 0, 0.0
    for folder in (relation, *(f"{relation}{ending}" for ending in BESIDE.values())):
        for path in Path(target.at(folder)).rglob("*"):
            # A file may go away at any moment.
            with suppress(OSError):
                found = path.stat()
                size += found.st_size if path.is_file() else 0
                changed = max(changed, found.st_mtime)
    return (size if changed else None), changed


class Waiting(NamedTuple):
    """The files of a source that have not landed: their number and bytes, and since when the oldest has waited, in
    seconds since 1970.
    """

    files: int
    bytes: int
    since: float


def waiting_files(target: Target, source: Source) -> Waiting | None:
    """Returns the files of a source that no committed batch has read; None for topics, and where this machine does not
    see the files or the tables. Raises Damaged or OSError.
    """
    if not source.messages.local_pattern or is_uri(target.path):
        return None
    read, sizes, times = checkpoint_of(target, source).paths_read(), [0], []
    for file in files_to_read(source.messages):
        # A file may go away at any moment.
        with suppress(OSError):
            if str(file) not in read:
                found = file.stat()
                sizes.append(found.st_size)
                times.append(found.st_mtime)
    return Waiting(len(times), sum(sizes), min(times, default=0.0))


class Disk(NamedTuple):
    """A place that a run writes to. `setting` is what chooses it. `free` are the free bytes of its disk, None if the
    file system does not tell.
    """

    what: str
    place: str
    setting: str
    free: int | None

    @property
    def is_full(self) -> bool:
        return self.free is not None and self.free < LEAST_SPACE

    @property
    def to_do(self) -> str:
        return f"make space there, or choose another folder: {self.setting}"


def interrupted_in(target: Target) -> Iterator[str]:
    """Yields what was begun in a target on this machine and not finished, with the command that finishes it."""
    for name, what in {} if is_uri(target.path) else BEGUN.items():
        path = Path(target.at(name))
        if path.is_file():
            with suppress(Damaged):
                command = mapping(path.read_text(), str(path), ("command",))["command"]
                yield f"{what} was interrupted, and runs wait for its end ({command})"


def disks(target: Target, local_dirs: str | None) -> Iterator[Disk]:
    """Yields the places on this machine that a run writes to; `local_dirs` is the variable that Spark reads."""
    places = [] if is_uri(target.path) else [("tables", target.path, "path")]
    if not target.remote:
        folders = (local_dirs or target.spark.get(LOCAL_DIR, tempfile.gettempdir())).split(",")
        setting = LOCAL_DIRS if local_dirs else LOCAL_DIR
        places += [(f"Spark{f' {nth}' if nth > 1 else ''}", one, setting) for nth, one in enumerate(folders, 1)]
    for what, place, setting in places:
        folder = Path(place).absolute()
        nearest = next(one for one in (folder, *folder.parents) if one.exists())
        space = shutil.disk_usage(nearest)
        # A file system of the kernel's own, and some that lie behind a network, have no size.
        yield Disk(what, place, setting, space.free if space.total else None)
