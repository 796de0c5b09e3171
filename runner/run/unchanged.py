"""Runs of which nothing has changed since the same nodes last ran well: they need no Spark.

A run that ends well, and leaves nothing to do, records a stamp of all that decides what its nodes do: files of
messages, tables and checkpoints, the files of the project, the settings of the target. A later run of the same nodes
that finds the same stamp would do nothing. Where this machine does not see all of this, there is no stamp.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from functools import cached_property
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from runner.contract import Landed
from runner.engine.progress import checkpoint_of
from runner.files import Damaged, from_json, is_uri, read_text, write_whole
from runner.patterns import matching, with_colon
from runner.project.inputs import ExternalTable, Source, Target
from runner.project.mirror import BESIDE
from runner.project.node_results import NodeResults
from runner.project.nodes import Model, Node
from runner.project.project import BUILT_IN, HERE
from runner.project.sql_analysis import is_settled, reads_only
from runner.project.tables_seen import path_of_seen
from runner.project.templates import new_rows_view
from runner.run.inventory import interrupted_in, standing_of
from runner.run.results import Result

if TYPE_CHECKING:
    from runner.run.run import Run

# The folder of the records, beside the tables; the number of records that are kept.
FOLDER, MOST = "unchanged", 50
# In a target: what says that something has been begun.
BEGUN = ("_refreshes", "_renames", "_erased", "_erasing.json", "_copying.json")
# The folders and files of a project, and of this program, that decide what nodes do.
OF_PROJECT = ("project.yml", "selectors.yml", "models", "macros", "formats", "seeds", "tests")
OF_PROGRAM = ("macros", "formats")
# With more files than this in tables, looking at them takes as long as Spark takes to start.
MOST_FILES = 20_000
Looks = list[Any]
Stamp = dict[str, Any]


class Unchanged:
    """What decides whether a run has anything to do. It is asked while the tables of the run are locked."""

    def __init__(self, run: Run) -> None:
        self.run, self.project, self.target = run, run.project, run.project.target
        self.nodes = {node.name: node for node in run.nodes}
        self.results = NodeResults(run.project)
        # What others may change while the run goes on, as it was before.
        self.before: Stamp | None = None

    # --- what runs ask

    def is_so(self) -> bool:
        """Returns True if the same nodes have run well, and nothing has changed since. Must be asked before the run
        reads anything.
        """
        if not self._is_seen:
            return False
        try:
            self.before, recorded = self._of_others(), self._recorded().get("stamp")
            is_same = bool(recorded) and recorded == self._stamp(self.before)
            return is_same and all(map(self._has_counts, self.nodes.values()))
        except (OSError, Damaged, _TooMany):
            return False

    def result(self, node: Node) -> Result:
        """Returns the result of a node for which there is nothing new: what the node said when it last ran."""
        assert node.model
        record = self.results.read(node)
        if source := node.model.source:
            self.run.open_letters[source.name] = record.open
            return Result(node.name, node.resource_type, "success", rows=Landed().numbers)
        is_unchanged = bool(node.model.mirror)
        rows = record.newest["rows"] if record.newest and not is_unchanged else {}
        return Result(node.name, node.resource_type, "success", rows=rows, is_unchanged=is_unchanged)

    def record(self, warnings: int) -> None:
        """Records that a run has ended, if it ended well, and left nothing to do and nothing to say. Must be called
        while the session is there, and the tables are locked.
        """
        from runner.engine.errors import QueryFailed, query_errors

        # The run has ended well: that this cannot be recorded only means that the next one starts Spark.
        with suppress(OSError, Damaged, QueryFailed, _TooMany), query_errors():
            if self.before is None or warnings or not self._is_done() or self._of_others() != self.before:
                return
            settled = self._text_of_models()
            if self._recorded().get("settled") == settled or all(map(self._is_settled, self._own_models())):
                stamp = {"stamp": self._stamp(self.before), "settled": settled}
                write_whole(self._path, json.dumps(stamp) + "\n")
                records = sorted(self._path.parent.glob("*.json"), key=lambda path: path.stat().st_mtime)
                for path in records[:-MOST]:
                    path.unlink(missing_ok=True)

    # --- whether it can be told

    @cached_property
    def _is_seen(self) -> bool:
        """True if this machine sees all that the nodes read and write, and none of them does something in each run."""
        settings, target = self.run.settings, self.target
        if self.run.command != "run" or settings.full_refresh or settings.reads_nothing or settings.deferred:
            return False
        if is_uri(target.path) or target.remote or _folder_of(target, "") is None:
            return False
        above = [self.run.graph.nodes[name] for name in self._above]
        if any(isinstance(node.subject, ExternalTable) for node in above):
            return False
        return all(_may_be_quiet(node.model) for node in self.nodes.values())

    @cached_property
    def _above(self) -> list[str]:
        """The nodes that the nodes of the run read and that the run does not run."""
        return sorted(self.run.graph.upstream(set(self.nodes)) - self.nodes.keys())

    def _has_counts(self, node: Node) -> bool:
        """Returns True if it is known what a node says when it has nothing to do."""
        record = self.results.read(node)
        if node.model and node.model.source:
            return record.open is not None
        return record.newest is not None or not (node.model and node.model.is_table)

    def _own_models(self) -> list[Node]:
        """Returns the nodes of the run whose SQL somebody has written."""
        return [node for node in self.nodes.values() if node.model and isinstance(node.model.query, Path)]

    def _is_settled(self, node: Node) -> bool:
        """Returns True if a model that runs again, while nothing changes that the project knows, changes nothing."""
        assert node.model
        compiled, known, views = self.run.compiled.nodes, self._relations(node), self._views_above(node)
        if not {*views} <= compiled.keys():
            return False
        queries = [compiled[name].increment or compiled[name].sql for name in (node.name, *views)]
        if not all(reads_only(sql, known) for sql in queries):
            return False
        if not node.model.is_table:
            return True
        if not node.model.is_incremental:
            functions = [function.text for name in (node.name, *views) for function in compiled[name].sql_functions]
            return all(is_settled(sql, functions) for sql in queries) and self.run.spark.is_deterministic(queries[0])
        if not node.model.new_rows:
            return False
        # Without new rows the model must have no rows to write, whatever its other tables hold.
        for read in node.model.new_rows:
            self.run.tables.emptied(new_rows_view(node.name, read))
        return self.run.spark.has_no_rows(queries[0])

    def _relations(self, node: Node) -> set[str]:
        """Returns the names of the tables and views of which the project knows that a model reads them."""
        new = {new_rows_view(node.name, read) for read in node.model.new_rows} if node.model else set[str]()
        return new | {self.run.graph.nodes[name].relation for name in self.run.graph.upstream({node.name})}

    def _views_above(self, node: Node) -> list[str]:
        """Returns the models above a node whose queries run with that of the node."""
        found, waiting = set[str](), list(node.parents)
        while waiting:
            name = waiting.pop()
            model = self.run.graph.nodes[name].model
            if name not in found and model and not model.is_table:
                found.add(name)
                waiting += self.run.graph.nodes[name].parents
        return sorted(found)

    def _text_of_models(self) -> str:
        return _digest([self._texts(name) for name in self._compiled_names()])

    # --- the stamp

    def _stamp(self, others: Stamp) -> str:
        """Returns what decides whether there is anything to do, in short. `others` is what `_of_others` returns."""
        secret, own = self.project.mask_secret, list(self.nodes.values())
        return _digest(
            {
                "target": repr(self.target),
                "jars": [_looks(Path(jar)) for jar in _jars(self.target)],
                "vars": repr(self.project.vars),
                "secret": [secret.name, secret.name_before] if secret else [],
                "files": list(_files_of(chain(self._folders(), _ours()))),
                "compiled": {name: self._texts(name) for name in self._compiled_names()},
                "sources": [repr(source) for source in self._sources(self._above)],
                "own": [repr(source) for source in self._sources(self.nodes)],
                "others": others,
                "tables": [list(_state_of(self.target, node)) for node in own],
                "seen": self._seen(self.nodes),
                "there": sorted(set(_names(self.target)) - {f"_{FOLDER}"}),
                "begun": [_looks(Path(self.target.at(name))) for name in BEGUN],
            }
        )

    def _of_others(self) -> Stamp:
        """Returns what may change while the tables of the run are locked: the day, files of messages, and tables that
        the run only reads.
        """
        return {
            # What holds until a day, such as a waiver, ends without anything that changes.
            "day": f"{datetime.now(timezone.utc).date()}",
            "inputs": {source.name: list(_messages_of(source)) for source in self._sources(self.nodes)},
            "above": [list(_state_of(self.target, self.run.graph.nodes[name])) for name in self._above],
            "seen": self._seen(self._above),
        }

    def _seen(self, names: Iterable[str]) -> list[Looks]:
        return [_looks(path_of_seen(self.project, source.name)) for source in self._sources(names)]

    def _sources(self, names: Iterable[str]) -> list[Source]:
        models = (self.run.graph.nodes[name].model for name in sorted(names))
        return [model.source for model in models if model and model.source]

    def _compiled_names(self) -> list[str]:
        """Returns the models whose SQL decides what runs; that of many mirrors is better not made."""
        return sorted(
            name
            for name in self.run.compiled.nodes
            if (model := self.run.graph.nodes[name].model) and not model.mirror and not model.seed
        )

    def _texts(self, name: str) -> list[str]:
        compiled = self.run.compiled.nodes[name]
        return [compiled.meaning, compiled.increment or ""]

    def _folders(self) -> Iterator[Path]:
        root = self.project.root
        yield from (root / name for name in OF_PROJECT)
        yield from (*self.project.format_folders, *self.project.macro_folders)

    @cached_property
    def _path(self) -> Path:
        key = _digest([f"{self.project.root}", self.target.name, *sorted(self.nodes)])
        return self.project.beside_tables(FOLDER) / f"{key[:16]}.json"

    def _recorded(self) -> Mapping[str, Any]:
        """Returns what was recorded of these nodes; nothing if nothing was, or if it is not what a run writes."""
        found = None
        with suppress(Damaged):
            found = from_json(read_text(self._path), f"{self._path}") if self._path.is_file() else None
        return found if isinstance(found, dict) else {}

    # --- whether a run has left nothing to do

    def _is_done(self) -> bool:
        results = self.run.results or []
        if {result.name for result in results} != self.nodes.keys():
            return False
        if any(one.status != "success" or one.notes for one in results) or list(interrupted_in(self.target)):
            return False
        return all(map(self._has_read_all, self._sources(self.nodes))) and all(map(self._is_whole, self.run.nodes))

    def _has_read_all(self, source: Source) -> bool:
        from runner.run.source_files import SourceFiles

        checkpoint = checkpoint_of(self.target, source)
        return SourceFiles.found(source.messages, checkpoint).all_read() and not checkpoint.again_waiting()

    def _is_whole(self, node: Node) -> bool:
        if not node.model or not node.model.is_added_to:
            return True
        standing = standing_of(self.run.workspace, node)
        return not (standing.behind or standing.unfinished or standing.damage)


def _messages_of(source: Source) -> Iterator[Looks]:
    """Yields how all files look that match, also those that no stream reads: of some of them runs warn."""
    pattern = source.messages.local_pattern or ""
    yield from _files_of(matching(pattern))
    yield [f"{path}" for path in with_colon(pattern)]


class _TooMany(Exception):
    """There are more files than are looked at."""


def _may_be_quiet(model: Model | None) -> bool:
    """Returns True if a model may have nothing to do when it has read all that is there."""
    if model is None or model.seed or model.pre_hook or model.post_hook:
        return False
    return not model.source or bool(model.source.messages.local_pattern and not model.source.messages.jdbc)


def _folder_of(target: Target, relation: str) -> str | None:
    """Returns the folder of a table; None if it is not known where a catalog has it."""
    if target.catalog is None:
        return target.at(relation)
    name = f"spark.sql.catalog.{target.catalog.name}"
    is_own = target.spark.get(f"{name}.type") == "hadoop" and target.spark.get(f"{name}.warehouse") == target.path
    return target.at(f"{target.catalog.schema}/{relation}") if is_own else None


def _names(target: Target) -> Iterator[str]:
    """Yields the names of all that is in a target: a table that comes back under an old name is among them."""
    for folder in dict.fromkeys((target.path, _folder_of(target, "") or "")):
        with suppress(FileNotFoundError):
            yield from os.listdir(folder)


def _jars(target: Target) -> list[str]:
    return [unquote(jar.removeprefix("file://")) for jar in target.spark.get("spark.jars", "").split(",") if jar]


def _ours() -> Iterator[Path]:
    """Yields what another version of this program, or of Spark, changes."""
    yield HERE
    yield from (BUILT_IN / name for name in OF_PROGRAM)
    # Importing Spark to ask for its version would take longer than all else.
    spark = find_spec("pyspark")
    yield Path(spark.origin if spark and spark.origin else HERE)


def _state_of(target: Target, node: Node) -> Iterator[Looks]:
    """Yields how all files look that a node has written: its table, what is beside it, and its checkpoint."""
    tables = (node.relation, *(f"{node.relation}{ending}" for ending in BESIDE.values()))
    folders = [Path(_folder_of(target, table) or "") for table in tables if node.writes_table]
    yield from _files_of([*folders, Path(target.at(f"_checkpoints/{node.relation}"))])


def _files_of(folders: Iterable[Path]) -> Iterator[Looks]:
    """Yields how all files look in folders; raises _TooMany."""
    count = 0
    for folder in dict.fromkeys(folders):
        if folder.is_file():
            yield [f"{folder}", *_looks(folder)]
        for path, names, files in os.walk(folder):
            names[:] = sorted(name for name in names if name != "__pycache__")
            count += len(files)
            if count > MOST_FILES:
                raise _TooMany
            yield [path, *([name, *_looks(Path(path, name))] for name in sorted(files))]


def _looks(path: Path) -> Looks:
    """Returns what changes with each change of a file; nothing if it is not there."""
    try:
        found = os.stat(path)
    except OSError:
        return []
    # The time of the last change of the inode tells of changes that keep size and time.
    return [found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode(errors="surrogateescape")).hexdigest()
