"""The newest results of each node with their times, whatever command ran it: a file for each node beside the tables."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from urllib.parse import quote

from runner.files import write_whole
from runner.project.nodes import Node, Project
from runner.project.state import unique_id

# The number of results of a node that are kept, and of characters of a message.
KEPT, LONGEST = 20, 2_000
# The file of a node that is gone stays for so many seconds: another process may know the node.
SECONDS_OF_THE_GONE = 86_400.0
FAILED = ("error", "fail")

# A result: `ended` (ISO 8601 in UTC), `status`, `command`, `run_id`, `seconds`, `message`, `failures`, `rows`,
# `reasons`, `waived`, `behind` (messages, after a batch of a stream; else None) and `is_incomplete`.
Entry = Mapping[str, Any]
Counts = Mapping[str, int]


@dataclass(frozen=True)
class NodeRecord:
    """The record of a node. `results` are its newest results, the newest first. Over all results, `statuses` counts
    them by status, `rows` what was written, `reasons` the dead letters, and `seconds` is the time that they took.
    `landed` is the time when messages landed last, `built` when the node last did not fail, `maintained` when its table
    was. Of a source, `open` is the number of dead letters that are neither waived nor landed since, None if it is not
    known, and `limit` says which limit they have reached, empty if none. `is_told` is True if hooks were told that the
    node has failed, and not yet that it is well again.
    """

    results: tuple[Entry, ...] = ()
    statuses: Counts = field(default_factory=dict)
    rows: Counts = field(default_factory=dict)
    reasons: Counts = field(default_factory=dict)
    seconds: float = 0.0
    landed: str = ""
    built: str = ""
    maintained: str = ""
    open: int | None = None
    limit: str = ""
    is_told: bool = False

    @property
    def newest(self) -> Entry | None:
        """The newest result of a run that did not skip the node; None if there is none."""
        return next((one for one in self.results if one["status"] != "skipped"), None)

    @property
    def failing_since(self) -> str:
        """The time of the first of the failures since the node was last right, as far as they are kept; empty if the
        newest result is no failure.
        """
        since = ""
        for one in self.results:
            if one["status"] not in (*FAILED, "skipped"):
                break
            since = one["ended"] if one["status"] in FAILED else since
        return since

    def after(self, entry: Entry, open_letters: int | None) -> NodeRecord:
        """Returns the record after one more result, with the number of dead letters that are open then."""
        has_failed, status = entry["status"] in FAILED, entry["status"]
        results = (entry, *self.results)[:KEPT]
        statuses = _sum(self.statuses, {status: 1})
        if status == "skipped":
            return replace(self, results=results, statuses=statuses)
        return replace(
            self,
            results=results,
            statuses=statuses,
            rows=_sum(self.rows, entry["rows"]),
            reasons=_sum(self.reasons, entry["reasons"]),
            seconds=round(self.seconds + entry["seconds"], 3),
            landed=entry["ended"] if entry["rows"].get("messages") else self.landed,
            built=self.built if has_failed else entry["ended"],
            open=open_letters,
            limit="" if open_letters == 0 else entry["message"] if status == "fail" and open_letters else self.limit,
        )


class NodeResults:
    """The records of the nodes of a project in its target. Where this machine does not see the tables, they are in the
    target path, and only the runs of this machine are in them. They say nothing that decides rows: they may be deleted.
    """

    def __init__(self, project: Project) -> None:
        self.project, self.folder = project, project.beside_tables("node_results") / project.name

    def read(self, node: Node) -> NodeRecord:
        """Returns the record of a node; an empty one if there is none, or it is not what a run writes."""
        with suppress(OSError, ValueError, TypeError, KeyError):
            written = json.loads((self.folder / self._file(node)).read_bytes())
            return NodeRecord(**{**written["record"], "results": tuple(written["record"]["results"])})
        return NodeRecord()

    def add(self, node: Node, entry: Entry, open_letters: int | None = None) -> None:
        """Adds a result of a node; raises OSError."""
        brief = {**entry, "message": self.project.secrets.redacted(entry["message"])[:LONGEST]}
        self._write(node, self.read(node).after(brief, open_letters))

    def maintained(self, node: Node, at: str) -> None:
        """Records that the table of a node was maintained; raises OSError."""
        self._write(node, replace(self.read(node), maintained=at))

    def told(self, node: Node, is_told: bool) -> None:
        """Records whether hooks know the node as one that has failed; raises OSError."""
        self._write(node, replace(self.read(node), is_told=is_told))

    def forget_messages(self) -> None:
        """Removes the messages of all results, which may have values of rows, and the numbers of dead letters that are
        open, which runs count again; raises OSError.
        """
        for path in sorted(self.folder.glob("*.json")):
            with suppress(ValueError, TypeError, KeyError):
                written = json.loads(path.read_bytes())
                results = [{**one, "message": ""} for one in written["record"]["results"]]
                written["record"] |= {"results": results, "open": None}
                write_whole(path, json.dumps(written, ensure_ascii=False, indent=1) + "\n")

    def waived(self, node: Node, count: int) -> None:
        """Records that so many dead letters of a source are waived from now on; raises OSError."""
        record = self.read(node)
        left = None if record.open is None else max(0, record.open - count)
        self._write(node, replace(record, open=left, limit=record.limit if left else ""))

    def keep_only(self, nodes: Iterable[Node]) -> None:
        """Removes the records of nodes that have been gone for a day."""
        names: Collection[str] = {self._file(node) for node in nodes}
        for path in self.folder.glob("*.json"):
            # Another process may remove it too.
            with suppress(OSError):
                if path.name not in names and time.time() - path.stat().st_mtime > SECONDS_OF_THE_GONE:
                    path.unlink()

    def _write(self, node: Node, record: NodeRecord) -> None:
        written = {"node": unique_id(self.project, node), "record": asdict(record)}
        write_whole(self.folder / self._file(node), json.dumps(written, ensure_ascii=False, indent=1) + "\n")

    def _file(self, node: Node) -> str:
        """Returns the name of the file of a node. The name of the node in it may be cut, and then the hash tells it
        from others.
        """
        name = unique_id(self.project, node)
        return f"{quote(name, safe='')[:120]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}.json"


def _sum(one: Counts, other: Counts) -> dict[str, int]:
    total = Counter(one)
    total.update(other)
    return dict(sorted(total.items()))
