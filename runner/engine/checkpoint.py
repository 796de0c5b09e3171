"""What a checkpoint says of what was read, and the fingerprint of the format that is kept beside it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime, timezone
from typing import Any

from runner.engine.file_systems import FileSystem

FINGERPRINT = "_format.json"
TOPIC_IDS = "_topics.json"
RETENTION = "_retention.json"

# Topic -> partition -> offset.
Offsets = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Fingerprint:
    """Of what landed rows: `sha256` of the compiled SQL changes with the spec, its type tables and the macros; `reach`
    is what of the source was read.
    """

    format: str
    sha256: str
    reach: str = ""

    @classmethod
    def of(cls, format_name: str, sql: str, reach: str = "") -> Fingerprint:
        return cls(format_name, hashlib.sha256(sql.encode()).hexdigest(), reach)


@dataclass(frozen=True)
class TopicsNow:
    """What a broker has now: the ids of topics, and of each partition the first offset that is there and the one that
    its next message will have.
    """

    ids: Mapping[str, str]
    first: Offsets
    next: Offsets

    def only(self, topics: Iterable[str]) -> TopicsNow:
        return TopicsNow(*({topic: of[topic] for topic in topics} for of in (self.ids, self.first, self.next)))

    def lost(self, wanted: Offsets, known: Mapping[str, str], added: bool) -> list[str]:
        """What of messages from the wanted offsets on is not there any more, in words; topics had the ids that are
        known. Whether a partition
        that is not wanted counts as wanted from its beginning, `added` says."""
        return [f"{place} {what}" for place, what in self._lost(wanted, known, added)]

    def _lost(self, wanted: Offsets, known: Mapping[str, str], added: bool) -> Iterator[tuple[str, str]]:
        for topic in sorted({*wanted, *(self.ids if added else ())}):
            if topic not in self.ids:
                yield topic, "is not there any more"
                continue
            if known.get(topic, self.ids[topic]) != self.ids[topic]:
                yield topic, "was deleted and made anew, with offsets from 0"
                continue
            partitions = self.first[topic] if added else {}
            for partition in sorted({*partitions, *wanted.get(topic, {})}, key=int):
                offset = wanted.get(topic, {}).get(partition, 0)
                if what := self._lost_of(topic, partition, offset):
                    yield f"{topic}/{partition}", what

    def _lost_of(self, topic: str, partition: str, offset: int) -> str:
        first, following = self.first[topic].get(partition), self.next[topic].get(partition)
        if first is None or following is None:
            return "is not there any more"
        if first > offset:
            return f"offset {offset}" if first == offset + 1 else f"offsets {offset} to {first - 1}"
        return f"ends before offset {following}, and would be read from {offset} on" if following < offset else ""


@dataclass(frozen=True)
class Checkpoint:
    """The checkpoint of one stream, a folder as Spark writes it."""

    files: FileSystem
    folder: str

    @property
    def is_there(self) -> bool:
        """Whether a stream has begun."""
        return self.files.exists(f"{self.folder}/metadata")

    @property
    def newest_commit(self) -> int:
        """The number of the newest batch that was committed; -1 if there is none."""
        return max(self._numbers("commits"), default=-1)

    @property
    def newest_plan(self) -> int:
        """The number of the newest batch that was begun; -1 if there is none."""
        return max(self._numbers("offsets"), default=-1)

    def fingerprint(self) -> Fingerprint | None:
        noted = self._noted(FINGERPRINT)
        return Fingerprint(**noted) if noted else None

    def write_fingerprint(self, fingerprint: Fingerprint) -> None:
        self._note(FINGERPRINT, asdict(fingerprint))

    def topic_ids(self) -> Mapping[str, str]:
        """The ids of the topics that were read: a topic that is made anew has another."""
        return self._noted(TOPIC_IDS) or {}

    def write_topic_ids(self, ids: Mapping[str, str]) -> None:
        if ids != self.topic_ids():
            self._note(TOPIC_IDS, dict(sorted(ids.items())))

    def kept_since(self) -> date | None:
        """The day before which rows that landed were removed from the table; None if none were."""
        noted = self._noted(RETENTION)
        return date.fromisoformat(noted["landed_since"]) if noted else None

    def keep_since(self, day: date) -> None:
        self._note(RETENTION, {"landed_since": f"{day}"})

    def committed_files(self) -> dict[str, datetime]:
        """The files that committed batches have read, named as rows name them in `origin.file`, with the times of their
        last change.
        """
        log, newest = f"{self.folder}/sources/0", self.newest_commit
        # Old commits are deleted and old entries moved to a `.compact` file: what counts is the newest commit.
        entries = [
            entry
            for name in self.files.names(log)
            if not name.startswith(".")
            for entry in self._entries(f"{log}/{name}")
        ]
        read = {
            entry["path"].replace("file:///", "file:/", 1): entry["timestamp"]
            for entry in entries
            if entry["batchId"] <= newest
        }
        return {path: datetime.fromtimestamp(read[path] / 1000, timezone.utc) for path in sorted(read)}

    def first_offsets(self) -> Offsets:
        """Where reading began; partitions that came later are not named."""
        path = f"{self.folder}/sources/0/0"
        return json.loads(self._lines(path)[1]) if self.files.exists(path) else {}

    def committed_offsets(self) -> Offsets:
        """Where the newest committed batch ended."""
        newest = self.newest_commit
        return json.loads(self._lines(f"{self.folder}/offsets/{newest}")[2]) if newest >= 0 else {}

    def next_offsets(self) -> Offsets:
        """Where reading goes on."""
        return self.committed_offsets() or self.first_offsets()

    def _noted(self, name: str) -> Any:
        """What was noted beside Spark's own files; None if nothing was."""
        path = f"{self.folder}/{name}"
        return json.loads(self.files.read(path)) if self.files.exists(path) else None

    def _note(self, name: str, value: Mapping[str, str]) -> None:
        self.files.write(f"{self.folder}/{name}", json.dumps(value) + "\n")

    def _numbers(self, folder: str) -> list[int]:
        return [int(name) for name in self.files.names(f"{self.folder}/{folder}") if name.isdigit()]

    def _entries(self, path: str) -> list[dict]:
        """The lines of one file of the log behind its first, which names a version."""
        return [json.loads(line) for line in self._lines(path)[1:] if line]

    def _lines(self, path: str) -> list[str]:
        return self.files.read(path).splitlines()
