"""The tables of a project that get other names: which, in which order, and what is left of a killed run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from runner.engine.errors import QueryFailed, query_errors
from runner.engine.progress import TablesWritten
from runner.engine.renames import Moves, Rename, Step
from runner.errors import Problems, RunnerError
from runner.files import mapping
from runner.project.nodes import Node
from runner.run.verified import COLUMNS as RESULTS

if TYPE_CHECKING:
    from runner.run.run import Run

# Before anything is moved, a file in this folder says what is to be moved; it is removed after the last step.
RECORDS = "_renames"


class Renames:
    """The tables of a run's project that get other names. Needs a session."""

    def __init__(self, run: Run) -> None:
        self.run, self.tables, self.graph = run, run.tables, run.graph
        self.files, self.storage, self.target = run.tables.files, run.tables.storage, run.tables.target
        seen_here = run.project.beside_tables("tables_seen")
        self.done: list[Rename] = []
        self.moves, self.written = Moves(self.files, self.storage, self.target, seen_here), TablesWritten(run.project)

    def waiting(self) -> list[Rename]:
        """Returns what an interrupted run has begun, and the tables that are there under an old name and not yet under
        the new one; raises `rename-both` for each that is there under several names.
        """
        begun = {rename.new: rename for rename in self._begun()}
        problems, waiting = Problems(), dict(begun)
        for old, node in self.graph.former_tables.items():
            rename = Rename.of(node, old)
            if rename.new in begun or not self._is_there(old, rename):
                continue
            if rename.new in waiting or self._is_there(rename.new, rename):
                other = waiting[rename.new].old if rename.new in waiting else rename.new
                problems.add(_both(node, self.target.at(old), self.target.at(other)))
            waiting[rename.new] = rename
        problems.raise_if_any()
        return list(waiting.values())

    def carry_out(self) -> list[Rename]:
        """Finishes what an interrupted run has begun, and then renames what waits; returns all that has another name
        now. Raises `rename-both`, `rename-refused`, and `target-held` for a table that another run writes.
        """
        self._lock(self._begun())
        # Another run may have done it until the tables were locked.
        begun = self._begun()
        self._finish(begun)
        self._lock(self.waiting())
        waiting = self.waiting()
        for one in waiting:
            self.files.write(self._record(one), json.dumps(asdict(one)))
        self._finish(waiting)
        self.done = [*begun, *waiting]
        return self.done

    def _is_there(self, name: str, rename: Rename) -> bool:
        has_table = self.storage.has_changelog if rename.kind == "source" else self.storage.has_table
        return self.files.exists(self.tables.checkpoint(name).folder) or has_table(name)

    def _record(self, rename: Rename) -> str:
        return f"{self.target.at(RECORDS)}/{rename.new}.json"

    def _begun(self) -> list[Rename]:
        folder = self.target.at(RECORDS)
        names = [name for name in sorted(self.files.names(folder)) if name.endswith(".json")]
        records = [mapping(self.files.read(f"{folder}/{name}"), name, ("old", "new", "kind")) for name in names]
        return [Rename(**record) for record in records]

    def _lock(self, renames: Iterable[Rename]) -> None:
        """Locks the tables of renames, and those whose records change."""
        for rename in renames:
            others = self.moves.readers(rename.old) if rename.kind == "source" else []
            results = RESULTS if rename.kind == "state" else ()
            self.run.lock([*(name for both in rename.tables for name in both), *others, *results])

    def _finish(self, renames: list[Rename]) -> None:
        for number, rename in enumerate(renames):
            try:
                with query_errors():
                    for step in self._steps(rename):
                        step()
            except QueryFailed as failure:
                if self._is_there(rename.old, rename) and not self._is_there(rename.new, rename):
                    # Nothing has been moved: the old names hold until somebody asks again.
                    for one in renames[number:]:
                        self.files.remove(self._record(one))
                message = f'"{rename.old}" cannot be renamed to "{rename.new}": {failure.message}'
                hint = "keep the old name, or keep the tables in a catalog that renames tables"
                raise RunnerError("rename-refused", message, hint=hint) from None

    def _steps(self, rename: Rename) -> Iterator[Step]:
        publisher = self.run.publisher
        yield partial(publisher.remove, rename.old)
        yield from self.moves.steps(rename)
        if rename.kind == "state":
            yield from (partial(self._results, table, rename) for table in RESULTS)
        yield partial(self.written.rename, rename.old, rename.new)
        for node in self.graph.nodes.values():
            if node.model and node.relation == rename.new:
                yield partial(publisher.publish, node.name)
        yield partial(self.files.remove, self._record(rename))

    def _results(self, table: str, rename: Rename) -> None:
        """Writes the results of `runner verify` of a mirror under its new name."""
        if self.tables.table_view(table):
            of_mirror = self.tables.macro("results_of", table, rename.old)
            if self.tables.spark.rows(of_mirror, 1)[1]:
                rows = self.tables.macro("results_renamed", table, RESULTS[table], rename.old, rename.new)
                self.tables.replace(table, rows)


def _both(node: Node, old: str, new: str) -> RunnerError:
    message = f'"{node.name}" has two tables, and only one of them can go on: "{old}" and "{new}"'
    hint = "take away the one that is wrong, with its folder in _checkpoints, or remove renamed_from"
    return RunnerError("rename-both", message, node.where, hint)
