"""A stream's checkpoint: what was read, and what the runner records in its folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict, astuple, dataclass
from datetime import date
from typing import Any

from runner.engine.offsets import Offsets
from runner.engine.recorded import Again, FileState, Fingerprint
from runner.engine.versions import form_of, signed
from runner.files import Damaged, from_json, gone_beside_checksums, json_lines, mapping
from runner.functions.avro.files import plain_path
from runner.storage.data import FileSystem
from runner.storage.parquet import move_paths

FINGERPRINT = "_format.json"
TOPIC_IDS = "_topics.json"
RETENTION = "_retention.json"
TABLE = "_table.json"
LANDED = "_landed.json"
AGAIN = "_again.json"
REPLACED = "_replaced.json"
NAMES = "_names.json"
FILE_STATES = "_files.json"


@dataclass(frozen=True)
class SourceNames:
    """The name that a source has `now`, and the one that it had when its first messages `landed`."""

    now: str
    landed: str


@dataclass(frozen=True)
class Checkpoint:
    """The checkpoint of one stream, a folder that Spark writes."""

    files: FileSystem
    folder: str

    @property
    def is_there(self) -> bool:
        """True if the stream was ever started."""
        return self.files.exists(f"{self.folder}/metadata")

    @property
    def newest_commit(self) -> int:
        """The number of the newest batch that was committed; -1 if there is none."""
        return max(self._numbers("commits"), default=-1)

    @property
    def newest_plan(self) -> int:
        """The number of the newest batch that was started; -1 if there is none."""
        return max(self._numbers("offsets"), default=-1)

    @property
    def has_unfinished_batch(self) -> bool:
        """True if a batch was started and not committed."""
        return self.next_batch is None

    @property
    def next_batch(self) -> int | None:
        """The number of the batch that is started next; None while a batch is not finished."""
        newest = self.newest_plan
        return newest + 1 if newest <= self.newest_commit else None

    def check(self) -> None:
        """Raises Damaged, or the error of the system, for a file of Spark's in the checkpoint that cannot be read:
        Spark's own errors do not name the file.
        """
        if self.is_there:
            from_json(self.files.read(f"{self.folder}/metadata"), f"{self.folder}/metadata")
        for log in ("offsets", "commits", "sources/0", "sources/1"):
            folder = f"{self.folder}/{log}"
            names = self.files.names(folder)
            for name in sorted(names):
                if not name.startswith("."):
                    self._entries(f"{folder}/{name}")
            for name in gone_beside_checksums(names):
                raise Damaged(f"{folder}/{name}", "missing")
        for path in self._missing():
            raise Damaged(path, "missing")

    def drop_leftovers(self) -> None:
        """Removes files that a killed run may have left and over which Spark does not start: unfinished files, and
        checksums of commits that are gone. A batch without its commit is one whose run was killed before the commit.
        """
        for log in ("offsets", "commits"):
            names = self.files.names(f"{self.folder}/{log}")
            left = [name for name in names if name.startswith(".") and name.endswith((".tmp", ".tmp.crc"))]
            if log == "commits":
                left += [f".{name}.crc" for name in gone_beside_checksums(names)]
            for name in left:
                self.files.remove(f"{self.folder}/{log}/{name}")

    def _missing(self) -> Iterator[str]:
        """Yields files of Spark's that were there when the newest batch was started, and are gone."""
        if self.newest_commit >= 0 and not self.files.names(f"{self.folder}/sources/0"):
            yield f"{self.folder}/sources/0"
        for batch in sorted({*self._numbers("commits")} - {*self._numbers("offsets")}):
            yield f"{self.folder}/offsets/{batch}"
        if self.newest_plan >= 0:
            # Spark writes files to their source's log before the offset of the log is in a batch's plan.
            last = self._offsets(f"{self.folder}/offsets/{self.newest_plan}", 1).get("logOffset")
            gone = self._not_in_log(last) if isinstance(last, int) else []
            yield from (f"{self.folder}/sources/0/{number}" for number in gone)

    def _not_in_log(self, last: int) -> list[int]:
        """Returns the entries of the log of files, up to this one, that are gone, without those whose content is in a
        later `.compact` file.
        """
        compact = {*self._numbers("sources/0", ".compact")}
        first = max((number for number in compact if number <= last), default=0)
        return sorted({*range(first, last + 1)} - {*self._numbers("sources/0")} - compact)

    def fingerprints(self) -> list[Fingerprint]:
        """Returns what has decided the rows, from the first batch to the newest."""
        recorded = self._recorded(FINGERPRINT, ("made_by",))
        return [Fingerprint(**one) for one in recorded["made_by"]] if recorded else []

    def list_fingerprints(self) -> None:
        """Makes a record of only one fingerprint one of a list."""
        found = self._recorded(FINGERPRINT)
        if found and "made_by" not in found:
            self._record(FINGERPRINT, {"made_by": [found]})

    def write_fingerprints(self, fingerprints: Iterable[Fingerprint]) -> None:
        self._record(FINGERPRINT, {"made_by": [asdict(one) for one in fingerprints]})

    def topic_ids(self) -> Mapping[str, str]:
        """Returns the ids of the topics that were read: a topic that is deleted and created again has another id."""
        return self._recorded(TOPIC_IDS) or {}

    def write_topic_ids(self, ids: Mapping[str, str]) -> None:
        if ids != self.topic_ids():
            self._record(TOPIC_IDS, dict(sorted(ids.items())))

    def table(self) -> str | None:
        """Returns the identity of the table that the stream writes; raises Newer."""
        found = self._table()
        return found["identity"] if found else None

    def form(self) -> int:
        """Returns the number of the form that the checkpoint and its table have; raises Newer."""
        return form_of(self._table() or {}, self.folder)

    def _table(self) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self._recorded(TABLE, ("identity",))
        form_of(found or {}, self.folder)
        return found

    def write_table(self, identity: str) -> None:
        """Records the table that the stream writes, and that both have the form that this version gives them."""
        self._record(TABLE, signed({"identity": identity}))

    def names(self) -> SourceNames | None:
        """Returns the names of the source; None if it always had the same."""
        recorded = self._recorded(NAMES, ("now", "landed"))
        return SourceNames(recorded["now"], recorded["landed"]) if recorded else None

    def renamed(self, folder: str, source: str, new: str) -> None:
        """Records that a source has another name, and the checkpoint another folder than before; twice has the same
        result.
        """
        known = self.names()
        self._record(NAMES, asdict(SourceNames(new, known.landed if known else source)))
        parts = (f"/{one.rsplit('/', 1)[-1]}/again/" for one in (folder, self.folder))
        # Messages that have landed once more would land again from files with other paths.
        move_paths(self.files, f"{self.folder}/sources/1", *parts)

    def newest_landed(self) -> int:
        """Returns the newest batch that is known to have landed messages; -1 if none is."""
        found = self._recorded(LANDED, ("batch",))
        return int(found["batch"]) if found else -1

    def write_landed(self, batch: int) -> None:
        self._record(LANDED, {"batch": batch})

    # --- messages that land once more: a second stream, of folders of files

    @property
    def again_folder(self) -> str:
        """The folder of the messages that land once more, with a folder for each time that a person has asked. In it, a
        file REPLACED names the tables of the rows that the messages had and have, if their rows are to be replaced.
        """
        return f"{self.folder}/again"

    def add_second_stream(self) -> None:
        """Adds this stream, which has read nothing, to the plans of batches that lack it."""
        for batch in self._numbers("offsets"):
            if len(self._ends(batch)) == 1:
                # The checksum is that of the plan as it was.
                self.files.remove(f"{self.folder}/offsets/.{batch}.crc")
                path = f"{self.folder}/offsets/{batch}"
                self.files.write(path, self.files.read(path).rstrip("\n") + "\n-")

    def again_waiting(self) -> list[str]:
        """Returns the folders of messages that have not landed once more yet."""
        placed = {*self.files.names(self.again_folder)}
        read = {path.rsplit("/", 2)[-2] for path in self._files_read(1)} if placed else set()
        return sorted(placed - read)

    def again(self) -> Again:
        """Returns the batches in which messages may have landed once more."""
        found = self._recorded(AGAIN, ("letters", "replacing", "replaced"))
        return Again.of(found) if found else Again()

    def expect_again(self) -> None:
        """Records the batches in which waiting messages may land. Must run before the stream starts."""
        again, newest = self.again(), self.newest_plan
        batches = [newest + 1, *([newest] if self.has_unfinished_batch else [])]
        for folder in self.again_waiting():
            path = f"{self.again_folder}/{folder}/{REPLACED}"
            if not self.files.exists(path):
                again = again.with_letters(batches)
            else:
                again = again.with_replaced(batches, mapping(self.files.read(path), path, ("tables",))["tables"])
        if again != self.again():
            self._record(AGAIN, again.as_json())

    def write_removed(self) -> None:
        """Records that rows which nobody sees since their messages have landed once more are no longer there."""
        self._record(AGAIN, Again(replaced=self.again().replaced).as_json())

    def kept_since(self) -> date | None:
        """Returns the day before which landed rows were removed; None if none were removed."""
        recorded = self._recorded(RETENTION, ("landed_since",))
        try:
            return date.fromisoformat(recorded["landed_since"]) if recorded else None
        except (TypeError, ValueError):
            raise Damaged(f"{self.folder}/{RETENTION}", "no day") from None

    def keep_since(self, day: date) -> None:
        self._record(RETENTION, {"landed_since": f"{day}"})

    def file_states(self) -> dict[str, FileState]:
        """Returns the state of the files that were read, as far as it is known; the names are those in `origin.file` of
        rows.
        """
        return {file: FileState(*state) for file, state in (self._recorded(FILE_STATES) or {}).items()}

    def write_file_states(self, states: Mapping[str, FileState]) -> None:
        self._record(FILE_STATES, {file: list(astuple(states[file])) for file in sorted(states)})

    def committed_files(self) -> dict[str, int]:
        """Returns the files that committed batches have read, with the times of their last change in milliseconds since
        1970; the names are those in `origin.file` of rows.
        """
        return self._files_read(0)

    def _files_read(self, stream: int) -> dict[str, int]:
        log, newest = f"{self.folder}/sources/{stream}", self._log_read(stream)
        # Old entries are moved to a `.compact` file, so only the newest commit tells what was read.
        entries = [
            entry
            for name in self.files.names(log)
            if not name.startswith(".")
            for entry in self._entries(f"{log}/{name}")
        ]
        read = {_named(entry): entry["timestamp"] for entry in entries if entry["batchId"] <= newest}
        return {path: read[path] for path in sorted(read)}

    def _log_read(self, stream: int = 0) -> int:
        """Returns the number of the newest entry of a stream's log of files that committed batches have read; -1 if
        there is none. It falls behind the number of the batch when a batch has read only from the other stream.
        """
        newest = self.newest_commit
        if newest < 0:
            return -1
        ends = self._ends(newest)
        if len(ends) <= stream or ends[stream] == "-":
            return -1
        return int(mapping(ends[stream], f"{self.folder}/offsets/{newest}").get("logOffset", -1))

    def _ends(self, batch: int) -> list[str]:
        """Returns where each stream ends in the plan of a batch; `-` where a stream has not begun."""
        # Before them are the number of a version, and what holds for the batch.
        return self.files.read(f"{self.folder}/offsets/{batch}").splitlines()[2:]

    def begun_files(self) -> set[str]:
        """Returns the files of the batch that was started and not committed, as paths of this machine."""
        newest = self._log_read()
        entries = (entry for _, entries in self._begun_logs() for entry in entries)
        return {_path_of(entry) for entry in entries if entry["batchId"] > newest}

    def leave_out(self, paths: AbstractSet[str]) -> None:
        """Takes files out of the batch that was started and not committed, so that a later batch reads them. No row of
        the batch may have landed. If the batch has no other files, all of it is removed.
        """
        newest, log = self._log_read(), f"{self.folder}/sources/0"
        for name, entries in self._begun_logs():
            kept = [entry for entry in entries if entry["batchId"] <= newest or _path_of(entry) not in paths]
            if not any(entry["batchId"] > newest for entry in kept):
                # The plan is removed first: it must not name a log that is gone.
                self._remove(f"{self.folder}/offsets", f"{self.newest_plan}" if self.has_unfinished_batch else "")
                self._remove(log, name)
            elif len(kept) < len(entries):
                version = self.files.read(f"{log}/{name}").split("\n", 1)[0]
                self._remove(log, name)
                self.files.write(f"{log}/{name}", "\n".join([version, *map(json.dumps, kept)]))

    def _begun_logs(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Returns the files of the log of files that were written for a batch that is not committed, with their
        entries.
        """
        log, newest = f"{self.folder}/sources/0", self._log_read()
        names = [name for name in self.files.names(log) if name.removesuffix(".compact").isdigit()]
        begun = [name for name in names if int(name.removesuffix(".compact")) > newest]
        return [(name, self._entries(f"{log}/{name}")) for name in begun]

    def _remove(self, folder: str, name: str) -> None:
        """Removes a file of Spark's with its checksum. The checksum goes first: a checksum without its file would count
        as damage.
        """
        for one in (f".{name}.crc", name) if name else ():
            self.files.remove(f"{folder}/{one}")

    def paths_read(self) -> set[str]:
        """Returns the files that committed batches have read, as paths of this machine."""
        return {plain_path(file) for file in self.committed_files()}

    def first_offsets(self) -> Offsets:
        """Returns the offsets at which reading began, without partitions that were added later."""
        path = f"{self.folder}/sources/0/0"
        return self._offsets(path, 0) if self.files.exists(path) else {}

    def committed_offsets(self) -> Offsets:
        """Returns the offsets at which the newest committed batch ended."""
        newest = self.newest_commit
        return self._offsets(f"{self.folder}/offsets/{newest}", 1) if newest >= 0 else {}

    def next_offsets(self) -> Offsets:
        """Returns the offsets at which reading continues."""
        return self.committed_offsets() or self.first_offsets()

    def _recorded(self, name: str, keys: Iterable[str] = ()) -> Any:
        """Returns what was recorded next to Spark's own files, with these keys; None if nothing was recorded."""
        path = f"{self.folder}/{name}"
        return mapping(self.files.read(path), path, keys) if self.files.exists(path) else None

    def _record(self, name: str, value: Mapping[str, Any]) -> None:
        self.files.write(f"{self.folder}/{name}", json.dumps(value) + "\n")

    def _numbers(self, folder: str, ending: str = "") -> list[int]:
        """Returns the numbers that are the names of files, without the given ending."""
        names = self.files.names(f"{self.folder}/{folder}")
        parts = [name.removesuffix(ending) for name in names if name.endswith(ending)]
        return [int(part) for part in parts if part.isdigit()]

    def _entries(self, path: str) -> list[dict[str, Any]]:
        """Returns the lines of one file of the log after the first, which is a version."""
        return json_lines(self.files.read(path), path)

    def _offsets(self, path: str, number: int) -> dict[str, Any]:
        entries = self._entries(path)
        if len(entries) <= number:
            raise Damaged(path, f"{len(entries) + 1} of {number + 2} lines")
        return entries[number]


def _named(entry: Mapping[str, Any]) -> str:
    """Returns the file of an entry of the log of files, as `origin.file` of rows names it."""
    return str(entry["path"]).replace("file:///", "file:/", 1)


def _path_of(entry: Mapping[str, Any]) -> str:
    return plain_path(_named(entry))
