"""Copies of tables in another target, with all that later runs there need to go on with them."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from runner.engine.checkpoint import AGAIN, FILE_STATES, FINGERPRINT, LANDED, NAMES, RETENTION, TOPIC_IDS
from runner.engine.erasures import check_no_erase, copy_erasures
from runner.engine.progress import Positions
from runner.engine.recorded import COPYING
from runner.engine.tables import Tables, check_consistency
from runner.engine.versions import upgrade
from runner.errors import Problems, RunnerError
from runner.files import is_uri, json_lines, mapping
from runner.project.inputs import Source
from runner.project.sources import RESULTS
from runner.render import name as quoted
from runner.storage.data import Layout
from runner.storage.storage import NO_LAYOUT

# The logs of a stream, and what is recorded beside them apart from the identity of the table.
LOGS = ("offsets", "commits", "sources/0", "sources/1")
RECORDS = (NAMES, FINGERPRINT, TOPIC_IDS, RETENTION, LANDED, AGAIN, FILE_STATES)


class Sum(NamedTuple):
    """The number of a table's rows, and a hash of them that does not depend on their order."""

    rows: int
    hash: str


@dataclass(frozen=True)
class Table:
    """A table that is to be copied. `source` is set for a changelog; `layout` is how the copy is kept, and it
    `is_changed_often` if later runs change single rows. `mark` is what is recorded of the copy, None for what is
    recorded of the table. `types` are those of columns to which the storage of the table has given other ones.
    """

    name: str
    source: Source | None = None
    layout: Layout = NO_LAYOUT
    is_changed_often: bool = False
    mark: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)


class Unfinished(NamedTuple):
    """A copy that was begun: the command that goes on with it, and the names of its tables."""

    command: str
    tables: list[str]


def unfinished_copy(tables: Tables) -> Unfinished | None:
    """Returns the copy into a target that was begun and not finished; None if there is none."""
    path = tables.target.at(COPYING)
    if not tables.files.exists(path):
        return None
    found = mapping(tables.files.read(path), path, ("command", "tables"))
    return Unfinished(found["command"], found["tables"])


def check_whole(tables: Tables) -> None:
    """Raises `copy-unfinished` if a copy into the target was begun and not finished."""
    if found := unfinished_copy(tables):
        what = f'a copy into the target "{tables.target.name}" was interrupted, and its tables are not whole'
        raise RunnerError("copy-unfinished", what, hint=f"{found.command} finishes it")


class Copies:
    """Copies tables of one target into another; both are locked, and one session works with both."""

    def __init__(self, own: Tables, other: Tables) -> None:
        self.own, self.other, self.spark, self.macro = own, other, own.spark, own.macro
        # The identities of changelogs -> those of their copies.
        self.identities: dict[str, str] = {}

    # --- before anything is written

    def is_there(self, table: Table, tables: Tables) -> bool:
        """Returns True if a target has a table, or something is recorded of it."""
        if not table.source:
            return tables.storage.has_table(table.name) or tables.files.exists(tables.progress(table.name).path)
        return tables.storage.has_changelog(table.name) or tables.checkpoint(table.name).newest_plan >= 0

    def check(self, tables: Iterable[Table]) -> None:
        """Raises `erase-unfinished` if rows of this target were erased in part, `copy-unsettled` for each table whose
        last run was interrupted, `copy-target-not-empty` for each that the other target has and that is no part of a
        copy that was begun, and `copy-unfinished` if another copy was begun.
        """
        begun, names, problems = unfinished_copy(self.other), {table.name for table in tables}, Problems()
        check_no_erase(self.own)
        if begun and not names.issuperset(begun.tables):
            check_whole(self.other)
        for table in tables:
            with problems.gathered():
                self._check_settled(table)
                if not (begun and table.name in begun.tables) and self.is_there(table, self.other):
                    what = f'the target "{self.other.target.name}" has a table "{table.name}" of its own'
                    hint = "copy into a target with another path, or remove the tables there first"
                    raise RunnerError("copy-target-not-empty", what, hint=hint)
        problems.raise_if_any()

    def _check_settled(self, table: Table) -> None:
        name = table.name
        run = f"runner run -t {self.own.target.name} -s {name}"
        if self.own.refreshes.unfinished(name):
            raise _unsettled(f'a full refresh of "{name}" is not finished', run)
        if not table.source:
            return
        self.own.check_changelog(name)
        check_consistency(name, self.own)
        if self.own.checkpoint(name).has_unfinished_batch:
            raise _unsettled(f'the last batch of "{name}" is not finished', run)

    # --- the copy

    def begin(self, tables: Iterable[Table], command: str) -> None:
        """Records that a copy is begun: no run uses the tables of the other target until it has ended."""
        record = {"command": command, "tables": sorted(table.name for table in tables)}
        self.other.files.write(self.other.target.at(COPYING), json.dumps(record) + "\n")

    def end(self) -> None:
        """Records that the copy is whole."""
        self.other.files.remove(self.other.target.at(COPYING))

    def sum_of(self, table: Table, of: Tables) -> Sum:
        """Returns the sum of the rows that a target has of a table."""
        view = f"{table.name}__summed"
        self._show(table, of, view)
        row = self.spark.rows(self.macro("rows_summed", view))[1][0]
        return Sum(row["rows"], row["hash"])

    def _show(self, table: Table, of: Tables, view: str) -> None:
        """Creates a view of all rows of a table, also of those that no reader of a changelog sees."""
        if table.source:
            of.storage.changelog_view(table.name, view)
            if table.source.messages.jdbc and of is self.own:
                folder = _as_in_rows(self._results_there(table.source))
                self.spark.view(view, self.macro("changelog_of_files_in", view, folder))
        else:
            of.table_view(table.name)
            # The view of the table's own name is another one when the copy is written.
            self.spark.view(view, self.macro("all_rows", quoted(table.name)))

    def copy(self, table: Table) -> tuple[Sum, Sum]:
        """Copies a table, unless it was copied before the copy was interrupted; returns the sums of both."""
        if not table.source:
            self.own.storage.recover(table.name)
        own = self.sum_of(table, self.own)
        is_there = self.is_there(table, self.other)
        if table.source:
            # The checkpoint comes after the table, which is whole once the checkpoint names it.
            is_filled = is_there and self.other.checkpoint(table.name).table() is not None
            if not (is_filled and self.other.storage.has_changelog(table.name) and self._equals(table, own)):
                self._copy_changelog(table)
            self._copy_checkpoint(table.name, table.source)
        elif not (is_there and self._is_whole(table) and self._equals(table, own)):
            self._copy_table(table)
        if (mark := self.own.mark(table.name) if table.mark is None else table.mark) and not table.source:
            self.other.write_mark(table.name, mark)
        return own, self.sum_of(table, self.other)

    def _equals(self, table: Table, own: Sum) -> bool:
        return self.sum_of(table, self.other) == own

    def _copy_changelog(self, table: Table) -> None:
        name, view = table.name, f"{table.name}__copied"
        self.other.forget(name)
        self.other.storage.create_changelog(name)
        self._show(table, self.own, view)
        newest = self.own.checkpoint(name).newest_commit
        self.other.storage.fill_changelog(name, self.macro("changelog_copied", view), newest)

    def _copy_table(self, table: Table) -> None:
        name, view = table.name, f"{table.name}__copied"
        self.other.files.remove(self.other.checkpoint(name).folder)
        read = self.positions(name)
        self._show(table, self.own, view)
        kinds = self.spark.column_types(quoted(view), {})
        types = {column: table.types.get(column, kind) for column, kind in kinds.items()}
        rows = self.macro("typed_rows", quoted(view), types, types)
        with nullcontext() if read is None else self.other.progress(name).writing(read):
            self.other.write(name, rows, table.layout, table.is_changed_often)

    def _is_whole(self, table: Table) -> bool:
        """Returns True if the other target has a table, and has recorded of it what this one has."""
        if not self.other.storage.has_table(table.name):
            return False
        recorded = self.other.progress(table.name).recorded()
        return (recorded.read if recorded else None) == self.positions(table.name)

    def positions(self, name: str) -> Positions | None:
        """Returns how far the copy of a table has read the copies of changelogs; None if that is not known."""
        read = self.own.progress(name).read()
        if read is None:
            return None
        return {one: replace(at, table=self.identities.get(at.table or "", at.table)) for one, at in read.items()}

    # --- what is recorded of a changelog

    def _copy_checkpoint(self, name: str, source: Source) -> None:
        """Copies the checkpoint of a stream. The copy is a stream of its own, of the table that is there now. Of the
        messages that land once more only those come along that have not landed: under another path, the others would
        land again.
        """
        own, other = self.own.checkpoint(name), self.other.checkpoint(name)
        self.other.files.remove(other.folder)
        for path in self._files_of(own.folder):
            text = self.own.files.read(f"{own.folder}/{path}")
            if source.messages.jdbc:
                text = _with_files_in(self._results_there(source), path, text)
            self.other.files.write(f"{other.folder}/{path}", text)
        for folder in own.again_waiting():
            self.copy_folder(f"{own.again_folder}/{folder}", f"{other.again_folder}/{folder}")
        copy_erasures(self.own, self.other, name)
        identity = self.other.storage.identity(name) or ""
        self.identities[own.table() or ""] = identity
        self.other.files.write(f"{other.folder}/metadata", json.dumps({"id": f"{uuid.uuid4()}"}))
        upgrade(other)
        other.write_table(identity)

    def _files_of(self, folder: str) -> Iterator[str]:
        for log in LOGS:
            names = self.own.files.names(f"{folder}/{log}")
            yield from (f"{log}/{name}" for name in sorted(names) if not name.startswith("."))
        yield from (name for name in RECORDS if self.own.files.exists(f"{folder}/{name}"))

    def _results_there(self, source: Source) -> str:
        """Returns the folder of the results of a source's query in the other target, as Spark names files."""
        folder = self.other.target.at(f"{RESULTS}/{source.name}")
        if is_uri(folder) or not self.spark.jvm:
            return folder if is_uri(folder) else Path(folder).as_uri()
        return str(self.spark.jvm.org.apache.hadoop.fs.Path(f"file://{folder}").toUri().toString())

    def copy_results(self, source: Source) -> None:
        """Copies the results of a source's query, if it has one."""
        if jdbc := source.messages.jdbc:
            self.copy_folder(jdbc.folder, self.other.target.at(f"{RESULTS}/{source.name}"))

    def copy_seen(self, source: Source) -> str | None:
        """Copies the record of the tables of a source; returns its text, None if there is none."""
        path = f"_tables_seen/{source.name}.json"
        own = self.own.target.at(path)
        if not self.own.files.exists(own):
            return None
        record: dict[str, Any] = mapping(self.own.files.read(own), own)
        text = json.dumps({**record, "table": self.identities.get(record.get("table") or "", record.get("table"))})
        self.other.files.write(self.other.target.at(path), text)
        return text

    def copy_folder(self, folder: str, to: str) -> None:
        """Copies a folder of files, if it exists, in place of one that is there."""
        if not self.own.files.exists(folder):
            return
        self.other.files.remove(to)
        if not is_uri(folder) and not is_uri(to):
            shutil.copytree(folder, to)
            return
        hadoop, settings = self.spark.jvm.org.apache.hadoop.fs, self.spark.session._jsc.hadoopConfiguration()
        (at, system), (there, other) = (_in_hadoop(hadoop, settings, path) for path in (folder, to))
        hadoop.FileUtil.copy(system, at, other, there, False, settings)


def _in_hadoop(hadoop: Any, settings: Any, path: str) -> tuple[Any, Any]:
    at = hadoop.Path(path if is_uri(path) else f"file://{path}")
    return at, at.getFileSystem(settings)


def _with_files_in(folder: str, path: str, text: str) -> str:
    """Returns a file of a checkpoint after the files that were read have come into another folder."""
    if path == FILE_STATES:
        states = {f"{_as_in_rows(folder)}/{_last(file)}": state for file, state in mapping(text, path).items()}
        return json.dumps(states) + "\n"
    if not path.startswith(f"{LOGS[2]}/"):
        return text
    version = text.split("\n", 1)[0]
    entries = [{**entry, "path": f"{folder}/{_last(entry['path'])}"} for entry in json_lines(text, path)]
    return "\n".join([version, *map(json.dumps, entries)])


def _as_in_rows(folder: str) -> str:
    """Returns a folder as `origin.file` of rows names it."""
    return folder.replace("file:///", "file:/", 1)


def _last(path: str) -> str:
    return path.rsplit("/", 1)[1]


def _unsettled(what: str, run: str) -> RunnerError:
    return RunnerError("copy-unsettled", f"{what}, so it cannot be copied", hint=f"{run} finishes it")
