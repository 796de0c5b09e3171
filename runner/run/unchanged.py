"""Runs of which nothing has changed since the same nodes last ran well: this machine can tell so without Spark."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.contract import Landed
from runner.engine.progress import files_to_read
from runner.engine.versions import program_version
from runner.files import Damaged, is_uri, write_whole
from runner.project.inputs import Source, Target
from runner.project.mirror import BESIDE, MirrorQuery
from runner.project.node_results import NodeResults
from runner.project.nodes import Node, SourcesView
from runner.run.inventory import interrupted_in, standing_of, waiting_files
from runner.run.results import Result

if TYPE_CHECKING:
    from runner.run.run import Run

# The folder of the records, beside the tables; the number of records that are kept.
FOLDER, MOST = "unchanged", 50
# In the folder of a table, and of a checkpoint: what a write adds a file to.
PARTS_OF_TABLE = ("", "_spark_metadata", "_delta_log", "metadata")
PARTS_OF_CHECKPOINT = ("", "offsets", "commits", "again", "sources/0")
# In a target: what says that something is to be done.
BEGUN = ("_refreshes", "_erased", "_erasing.json", "_copying.json", "_schemas")
Stamp = dict[str, Any]


class Unchanged:
    """What decides whether a run has anything to do. It must be made before the run reads anything."""

    def __init__(self, run: Run) -> None:
        self.run, self.project, self.target = run, run.project, run.project.target
        self.nodes = {node.name: node for node in run.nodes}
        self.before = self._inputs() if self._can_be_told else {}

    # --- whether it can be told

    @cached_property
    def _can_be_told(self) -> bool:
        """True if this machine sees all that the nodes read and write, and if running them again without anything new
        makes nothing.
        """
        settings = self.run.settings
        if self.run.command != "run" or settings.full_refresh or settings.reads_nothing or settings.deferred:
            return False
        if is_uri(self.target.path) or self.target.remote or _folder_of(self.target, "") is None:
            return False
        return all(self._is_quiet(self.run.graph.nodes[name]) for name in self._concerned)

    @cached_property
    def _concerned(self) -> list[str]:
        """The nodes of the run, and all that they read."""
        graph = self.run.graph
        return sorted({*self.nodes, *(name for name in graph.upstream(set(self.nodes)) if graph.nodes[name].runs)})

    def _is_quiet(self, node: Node) -> bool:
        """Returns True if a node that has read all that is there does nothing when it runs."""
        model = node.model
        if model is None or model.pre_hook or model.post_hook:
            return False
        match model.query:
            case Source(messages=messages):
                return bool(messages.local_pattern)
            case SourcesView() | MirrorQuery():
                return True
        return not model.seed and (model.materialized == "view" or model.is_incremental)

    # --- the stamp

    def _inputs(self) -> Stamp:
        """Returns the files of all sources."""
        return {
            source.name: [[str(path), *_looks(path)] for path in sorted(files_to_read(source.messages))]
            for source in self._sources()
        }

    def _sources(self) -> Iterator[Source]:
        models = (self.run.graph.nodes[name].model for name in self._concerned)
        return (model.source for model in models if model and model.source)

    def _stamp(self) -> str:
        """Returns what decides whether there is anything to do, in short."""
        nodes, compiled = [self.run.graph.nodes[name] for name in self._concerned], self.run.compiled
        stamp = {
            "runner": program_version(),
            # What holds until a day, such as a waiver, ends without anything that changes.
            "day": f"{datetime.now(timezone.utc).date()}",
            "target": repr(self.target),
            "nodes": {name: compiled.nodes[name].meaning for name in self.nodes},
            "written": {source.name: dict(source.written) for source in self._sources()},
            "inputs": self.before,
            "tables": {node.relation: list(_state_of(self.target, node)) for node in nodes},
            "begun": [[name, *_looks(Path(self.target.at(name)))] for name in BEGUN],
        }
        return hashlib.sha256(json.dumps(stamp, sort_keys=True, default=str).encode()).hexdigest()

    @cached_property
    def _path(self) -> Path:
        key = hashlib.sha256("\n".join(self.nodes).encode()).hexdigest()[:16]
        return self.project.beside_tables(FOLDER) / f"{key}.txt"

    # --- what runs ask

    @cached_property
    def is_so(self) -> bool:
        """True if the same nodes have run well, and nothing has changed since."""
        return self._can_be_told and self._path.is_file() and self._path.read_text() == self._stamp()

    def result(self, node: Node) -> Result:
        """Returns the result of a node for which there is nothing new."""
        assert node.model
        if source := node.model.source:
            self.run.open_letters[source.name] = NodeResults(self.project).read(node).open
            return Result(node.name, node.resource_type, "success", rows=Landed().numbers)
        return Result(node.name, node.resource_type, "success", is_unchanged=node.model.is_table)

    def record(self, warnings: int) -> None:
        """Records that a run has ended, if it ended well, and left nothing to do and nothing to say."""
        with suppress(OSError):
            if self._can_be_told and not warnings and self._is_done():
                write_whole(self._path, [self._stamp()])
                records = sorted(self._path.parent.glob("*.txt"), key=lambda path: path.stat().st_mtime)
                for path in records[:-MOST]:
                    path.unlink(missing_ok=True)

    def _is_done(self) -> bool:
        results = self.run.results or []
        if not results or any(one.status != "success" or one.notes for one in results):
            return False
        # Files that came, or changed, while the run was reading are for the next one.
        if self._inputs() != self.before or list(interrupted_in(self.target)):
            return False
        try:
            waiting = [waiting_files(self.target, source) for source in self._sources()]
        except Damaged:
            return False
        return all(one is not None and not one.files for one in waiting) and all(map(self._is_whole, self.run.nodes))

    def _is_whole(self, node: Node) -> bool:
        if not node.model or not node.model.is_table:
            return True
        standing = standing_of(self.run.workspace, node)
        return not (standing.behind or standing.unfinished or standing.damage or standing.note)


def _folder_of(target: Target, relation: str) -> str | None:
    """Returns the folder of a table; None if it is not known where a catalog has it."""
    if target.catalog is None:
        return target.at(relation)
    name = f"spark.sql.catalog.{target.catalog.name}"
    is_own = target.spark.get(f"{name}.type") == "hadoop" and target.spark.get(f"{name}.warehouse") == target.path
    return target.at(f"{target.catalog.schema}/{relation}") if is_own else None


def _state_of(target: Target, node: Node) -> Iterator[list[Any]]:
    """Yields the places that each write of a node changes, with how they look."""
    tables = (node.relation, *(f"{node.relation}{ending}" for ending in BESIDE.values()))
    places = [f"{_folder_of(target, table)}/{part}" for table in tables for part in PARTS_OF_TABLE]
    places += [f"{target.at('_checkpoints')}/{node.relation}/{part}" for part in PARTS_OF_CHECKPOINT]
    for place in places:
        yield [place, *_looks(Path(place))]
    for path in sorted(Path(f"{target.at('_checkpoints')}/{node.relation}").glob("_*.json")):
        yield [str(path), *_looks(path)]


def _looks(path: Path) -> list[int]:
    """Returns what changes with each write of a file, or of a file in a folder; nothing if it is not there."""
    try:
        found = path.stat()
    except OSError:
        return []
    return [found.st_ino, found.st_mtime_ns, found.st_size]
