"""Tables as folders of Parquet files."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Container, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote

from runner.contract import COLUMNS
from runner.counts import counted
from runner.files import Damaged, from_json, gone_beside_checksums, json_lines
from runner.patterns import escaped
from runner.render import name as quoted
from runner.storage.data import Cutoff, FileSystem, Increment, Layout, Macro, Place, Publisher, Sink
from runner.storage.storage import NO_LAYOUT, Storage, new_identity

# Suffixes of folders: of a table that is being written, and of one that is being replaced.
BUILDING, REPLACED = ".building", ".replaced"
# The file that says what columns a table with partitions has. Spark reads no file whose name begins like this.
SHAPE = "_shape.json"
# The columns of a changelog that are folders.
CHANGELOG_FOLDERS = ("kind", "landed_on")
# Of so many entries Spark makes one in its log of committed files: the last of them holds all files up to it.
COMPACTED = 10
BLOCK = 1 << 27
# The folder in which files of a changelog are written anew, and the file in it that says which files they replace.
ERASING, PLAN = "_erasing", "_plan.json"


class Parquet(Storage):
    """A changelog is a folder that Spark's stream writes, with Spark's log of committed files. Every other table is
    written as a whole next to the old one, and then replaces it.
    """

    name = "parquet"
    lacks: ClassVar[Mapping[str, str]] = {
        "cluster_by": "partition_by keeps rows in folders; delta and iceberg have cluster_by",
        "table_properties": "delta and iceberg have properties",
    }

    @classmethod
    def table_of(cls, target: Place, macro: Macro, name: str) -> str:
        # Spark reads the path of the folder as a pattern.
        return macro("folder_table", cls.name, escaped(target.at(name))).strip()

    # --- what exists

    def has_table(self, name: str) -> bool:
        return self._place(name) is not None

    def has_changelog(self, name: str) -> bool:
        log = self.files.names(f"{self.target.at(name)}/_spark_metadata")
        return any(entry.isdigit() or entry.endswith(".compact") for entry in log)

    def has_rows(self, name: str) -> bool:
        return self.has_changelog(name)

    def check_changelog(self, name: str) -> None:
        log = f"{self.target.at(name)}/_spark_metadata"
        entries = self.files.names(log)
        for entry in sorted(entries):
            if not entry.startswith("."):
                _names_in(self.files, f"{log}/{entry}")
        for entry in gone_beside_checksums(entries):
            raise Damaged(f"{log}/{entry}", "missing")

    def _place(self, name: str) -> str | None:
        """Returns the name of the folder that a table is in. The folder has another name than the table if a run died
        after it had moved the old table away and before it moved the new one there.
        """
        return next(
            (place for place in (name, f"{name}{BUILDING}") if self.files.exists(f"{self.target.at(place)}/_SUCCESS")),
            None,
        )

    # --- views

    def changelog_view(self, name: str, view: str) -> None:
        # The view is of the root only: with a pattern or a sub-folder Spark would not look into the log of committed
        # files.
        self.session.parquet_view(view, self.target.at(name), COLUMNS)

    def table_view(self, name: str) -> None:
        place = self._place(name) or name
        if shape := self._shape(place):
            # Spark guesses the types of columns that are folders, so the types are given.
            self.session.parquet_view(name, escaped(self.target.at(place)), shape["columns"])
        else:
            self.view(name, self.macro("all_rows", self.table(place)))

    def _shape(self, place: str) -> Mapping[str, Any] | None:
        """Returns the columns of a table with partitions, and the name of the write that made it; None if it has no
        partitions.
        """
        path = f"{self.target.at(place)}/{SHAPE}"
        return from_json(self.files.read(path), path) if self.files.exists(path) else None

    # --- tables of models

    def replace(self, name: str, sql: str, layout: Layout = NO_LAYOUT, is_changed_often: bool = False) -> None:
        """Replaces a table. At every moment the old table or the new one is complete."""
        root = self.target.at(name)
        self.recover(name)
        self.files.remove(root + BUILDING)
        partitions = [part.column for part in layout.partition_by]
        if partitions:
            # The shape is written before the rows: a table is complete when Spark has written _SUCCESS.
            self.session.view(f"{name}__rows", sql)
            shape = {"columns": self.session.column_types(quoted(f"{name}__rows"), {}), "write": new_identity()}
            self.files.write(f"{root}{BUILDING}/{SHAPE}", json.dumps(shape))
        self.session.write_parquet(sql, root + BUILDING, partitions)
        if self.files.exists(root):
            self.files.remove(root + REPLACED)
            # Only a rename takes a folder away in one step.
            self.files.move(root, root + REPLACED)
        self.recover(name)

    def apply_increment(self, name: str, increment: Increment, layout: Layout = NO_LAYOUT) -> None:
        self.table_view(name)
        new = increment
        macro, *key = ("rewritten_with", new.key) if new.key else ("rewritten_rows",)
        if new.replaces_partitions:
            macro, key = "rewritten_over", [tuple(part.column for part in layout.partition_by)]
        self.replace(name, self.macro(macro, quoted(name), new.rows, new.kept, new.columns, new.taken, *key), layout)

    def refresh(self, name: str, layout: Layout) -> None:
        """Does nothing: a table in Parquet files has neither properties nor comments."""

    def writes(self, name: str) -> list[str]:
        """Returns names that no other write gives: those of the table's files, or that of the write if it has
        partitions.
        """
        place = self._place(name)
        if place and (shape := self._shape(place)):
            return [shape["write"]]
        return [file for file in self.files.names(self.target.at(place)) if file.startswith("part-")] if place else []

    def newest_write(self, name: str) -> str | None:
        return max(self.writes(name), default="")

    def recover(self, name: str) -> None:
        """Moves a new table into place if the old one is gone."""
        root = self.target.at(name)
        if self._place(name) == name + BUILDING:
            self.files.remove(root)
            self.files.move(root + BUILDING, root)
        self.files.remove(root + REPLACED)

    # --- changelogs

    def create_changelog(self, name: str) -> None:
        """Writes only the identity; the stream creates everything else in the folder."""
        if self.identity(name) is None:
            self.files.write(self._identity_file(name), new_identity())

    def fill_changelog(self, name: str, rows: str, newest: int) -> None:
        """Writes the files, then Spark's log of committed files, with an entry for each batch since the last entry that
        holds all before it.
        """
        root = self.target.at(name)
        self.session.write_parquet(rows, root, CHANGELOG_FOLDERS)
        self.files.remove(f"{root}/_SUCCESS")
        has_rows = any(entry.startswith("kind=") for entry in self.files.names(root))
        written = self.session.rows(self.macro("files_of_rows", self.table(name)))[1] if has_rows else []
        whole = (newest + 1) // COMPACTED * COMPACTED - 1
        first = max(whole, 0)
        for batch in range(first, newest + 1):
            entries = map(json.dumps, map(_log_entry, written)) if batch == first else ()
            ending = ".compact" if batch == whole else ""
            self.files.write(f"{root}/_spark_metadata/{batch}{ending}", "\n".join(["v1", *entries]))

    def identity(self, name: str) -> str | None:
        path = self._identity_file(name)
        return self.files.read(path) if self.files.exists(path) else None

    def _identity_file(self, name: str) -> str:
        # Spark reads no file whose name begins like this.
        return f"{self.target.at(name)}/_identity"

    def newest_batch(self, name: str) -> int | None:
        log = self.files.names(f"{self.target.at(name)}/_spark_metadata")
        numbers = [entry.removesuffix(".compact") for entry in log]
        return max((int(number) for number in numbers if number.isdigit()), default=None)

    def sink(self, name: str) -> Sink:
        return Sink("parquet", path=self.target.at(name), partitioned_by=CHANGELOG_FOLDERS)

    # --- rows that are erased

    def erase(self, name: str, erased: str, erasures: Collection[Any]) -> None:
        """Writes the files that have such rows anew, and exchanges them in Spark's log of committed files."""
        root = self.target.at(name)
        building, plan = f"{root}/{ERASING}", f"{root}/{ERASING}/{PLAN}"
        if not self.files.exists(plan):
            table = self.macro("folder_table", self.name, root).strip()
            old = [row["file"] for row in self.session.rows(self.macro("files_touched", table, erased))[1]]
            if not old:
                return
            self.files.remove(building)
            rows = self.macro("rows_of_files_after_erasing", table, old, erased, erasures)
            self.session.write_parquet(rows, building, CHANGELOG_FOLDERS)
            own = self.macro("folder_table", self.name, escaped(building)).strip()
            new = [_log_entry(row) for row in self.session.rows(self.macro("files_of_rows", own))[1]]
            self.files.write(plan, json.dumps({"old": old, "new": new}))
        self.finish_erasing(name)

    def finish_erasing(self, name: str) -> None:
        """Exchanges the files of a changelog that were written anew, if there are any; each step does nothing where it
        was already done.
        """
        root = self.target.at(name)
        building = f"{root}/{ERASING}"
        if not self.files.exists(f"{building}/{PLAN}"):
            self.files.remove(building)
            return
        plan = from_json(self.files.read(f"{building}/{PLAN}"), f"{building}/{PLAN}")
        for folder in _day_folders(self.files, building):
            for file in self.files.names(f"{building}/{folder}"):
                self.files.move(f"{building}/{folder}/{file}", f"{root}/{folder}/{file}")
        old = {_in_table(path) for path in plan["old"]}
        new = [{**entry, "path": entry["path"].replace(f"/{ERASING}/", "/")} for entry in plan["new"]]
        exchange_files(self.files, f"{root}/_spark_metadata", old, new)
        for folder in _day_folders(self.files, root):
            for file in self.files.names(f"{root}/{folder}"):
                if f"{folder}/{file.removeprefix('.').removesuffix('.crc')}" in old:
                    self.files.remove(f"{root}/{folder}/{file}")
        self.files.remove(building)

    def purge(self, name: str) -> None:
        """Does nothing: a table has no old versions."""

    # --- tables that get another name

    def rename(self, name: str, new: str) -> None:
        self.recover(name)
        self.files.remove(self.target.at(name) + BUILDING)
        super().rename(name, new)
        # Spark's log of a changelog names its files with their folders.
        move_paths(self.files, f"{self.target.at(new)}/_spark_metadata", f"/{name}/kind=", f"/{new}/kind=")

    # --- the catalog

    def unpublish(self, name: str, publisher: Publisher) -> None:
        publisher.do(self.macro("view_dropped", self.macro("catalog_name", self.target, name)))

    def publish(self, name: str, is_changelog: bool, publisher: Publisher) -> None:
        publisher.view(name, self._changelog_rows(name) if is_changelog else self._table_rows(name))

    def _table_rows(self, name: str) -> str:
        shape = self._shape(name)
        table = self.table(name)
        return self.macro("shaped_rows", table, shape["columns"]) if shape else self.macro("all_rows", table)

    def _changelog_rows(self, name: str) -> str:
        # Spark takes the columns of a folder from its files.
        root = self.target.at(name)
        if not any(entry.startswith("kind=") for entry in self.files.names(root)):
            return self.macro("no_rows", COLUMNS)
        # Spark does not read the path as a pattern if the folder has a log of committed files.
        return self.macro("changelog_rows", self.macro("folder_table", self.name, root).strip())

    # --- maintenance

    def maintain(self, name: str, is_changelog: bool, cutoff: Cutoff) -> tuple[str, ...]:
        """Removes files of interrupted runs, which Spark does not read but other tools do."""
        if not is_changelog:
            return ("rewritten as a whole by each run: nothing to do",)
        left = uncommitted_files(self.files, self.target.at(name))
        for path in left:
            self.files.remove(path)
        return (
            f"{counted(len(left), 'file')} of interrupted runs removed; "
            "files of a Parquet folder are not compacted, those of delta and iceberg are",
        )


def uncommitted_files(files: FileSystem, root: str) -> list[str]:
    """Returns the files of a Parquet folder that no committed batch has written, with their checksum files. Only valid
    while nothing writes there.
    """
    committed = {
        name
        for entry in files.names(f"{root}/_spark_metadata")
        if not entry.startswith(".")
        for name in _names_in(files, f"{root}/_spark_metadata/{entry}")
    }
    folders = [f"{root}/{folder}" for folder in _day_folders(files, root)]
    return [
        f"{folder}/{name}"
        for folder in folders
        for name in files.names(folder)
        if name.removeprefix(".").removesuffix(".crc") not in committed
    ]


def _day_folders(files: FileSystem, root: str) -> list[str]:
    """Returns the folders of a changelog that have its files, as parts of its path."""
    kinds = [kind for kind in files.names(root) if kind.startswith("kind=")]
    return [f"{kind}/{day}" for kind in kinds for day in files.names(f"{root}/{kind}")]


def _in_table(path: str) -> str:
    """Returns the path of a file in its changelog: one write gives files of several folders the same name."""
    return "/".join(path.split("/")[-3:])


def exchange_files(files: FileSystem, log: str, old: Container[str], new: Sequence[Mapping[str, Any]]) -> None:
    """Takes files of a changelog, given with their folders in it, out of Spark's log of them, and puts the entries of
    new ones into its newest part, unless they are there.
    """
    parts = {name: int(name.removesuffix(".compact")) for name in files.names(log) if name[:1].isdigit()}
    newest = max(parts, key=lambda name: (parts[name], name.endswith(".compact")))
    for name in sorted(parts):
        text = files.read(f"{log}/{name}")
        entries = json_lines(text, f"{log}/{name}")
        kept = [one for one in entries if _in_table(one["path"]) not in old]
        if name == newest:
            known = {one["path"] for one in kept}
            kept += [one for one in new if one["path"] not in known]
        if kept != entries:
            # The checksum goes first: one that does not fit its file would count as damage.
            files.remove(f"{log}/.{name}.crc")
            files.write(f"{log}/{name}", "\n".join([text.split("\n", 1)[0], *map(json.dumps, kept)]))


def _log_entry(file: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a file as Spark's log of a folder lists it."""
    path = re.sub(r"^file:/(?=[^/])", "file:///", file["path"])
    told = {"path": path, "size": file["size"], "isDir": False, "modificationTime": file["modified"]}
    return {**told, "blockReplication": 1, "blockSize": BLOCK, "action": "add"}


def move_paths(files: FileSystem, log: str, part: str, new: str) -> None:
    """Puts a new part in place of another one into the paths of files that a log of Spark's names. The text of a path
    may have characters as they are, or as a URI has them.
    """
    for name in sorted(files.names(log)):
        if name.startswith("."):
            continue
        text = files.read(f"{log}/{name}")
        moved = text.replace(part, new).replace(_in_uri(part), _in_uri(new))
        if moved != text:
            # The checksum goes first: one that does not fit its file would count as damage.
            files.remove(f"{log}/.{name}.crc")
            files.write(f"{log}/{name}", moved)


def _in_uri(path: str) -> str:
    return quote(path, safe="/=")


def _names_in(files: FileSystem, entry: str) -> list[str]:
    """Returns the names of the files in one entry of Spark's log of a folder, whose first line is a version."""
    return [written["path"].rsplit("/", 1)[1] for written in json_lines(files.read(entry), entry)]
