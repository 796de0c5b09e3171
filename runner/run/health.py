"""The health of a project: what each source, table and test last did, what waits, who writes; and whether that is well.
Needs no Spark. The bounds are those that the project has: limits of dead letters, freshness, waivers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timezone
from functools import cached_property
from typing import Any

from runner.counts import age_in_words, brief, bytes_in_words, counted, enumeration
from runner.engine.locks import Held, locks_in
from runner.files import Damaged, is_uri
from runner.project.inputs import Age, Source
from runner.project.node_results import FAILED, NodeRecord, NodeResults
from runner.project.nodes import Node
from runner.project.waivers import ended_waivers
from runner.run.inventory import Standing, Waiting, disks, interrupted_in, standing_of, waiting_files
from runner.run.workspace import Workspace

# Files that wait longer than this are a problem, unless the freshness of their source says another age.
LONGEST_WAIT = Age(1, "day")
# The number of characters of a message that are shown, and of reasons that the first line names.
MESSAGE, NAMED = 160, 3
NEVER = "never"
ELSEWHERE = Standing()

# A row of the report: its `problems` and `warnings` are sentences; the other members are facts.
Row = dict[str, Any]


class Health:
    """The health of some nodes of a project, now. `local_dirs` is the variable that Spark reads for its folders."""

    def __init__(self, workspace: Workspace, names: Collection[str], local_dirs: str | None = None) -> None:
        self.workspace, self.project, self.local_dirs = workspace, workspace.project, local_dirs
        self.nodes = [node for node in workspace.in_order(names) if node.runs]
        self.now = datetime.now(timezone.utc)
        # Before anything else is looked at: a run that ends meanwhile is not taken for one that was killed.
        self.held = list(locks_in(self.project.beside_tables("locks")))
        results = NodeResults(self.project)
        self.records = {node.name: results.read(node) for node in self.nodes}

    # --- the verdict

    @property
    def problems(self) -> list[str]:
        """What is not well, the most urgent first."""
        return self._said("problems")

    @property
    def warnings(self) -> list[str]:
        return self._said("warnings")

    def _said(self, key: str) -> list[str]:
        parts = (self.disks, self.interrupted, self.locks, self.sources, self.tables, self.tests, self.waivers)
        return list(dict.fromkeys(text for rows in parts for row in rows for text in row[key]))

    @property
    def everything(self) -> Row:
        """All that is known, as JSON has it."""
        return {
            "well": not self.problems,
            "at": _text(self.now),
            "problems": self.problems,
            "warnings": self.warnings,
            "sources": self.sources,
            "tables": self.tables,
            "tests": self.tests,
            "locks": self.locks,
            "disks": self.disks,
            "maintained": self.maintained,
        }

    # --- sources

    @cached_property
    def sources(self) -> list[Row]:
        """A row for each source."""
        landing = ((node, node.model.source) for node in self.nodes if node.model)
        return [self._source(node, source) for node, source in landing if source]

    def _source(self, node: Node, source: Source) -> Row:
        record, standing = self.records[node.name], self._standing(node)
        problems, warnings = self._of_node(node, f"source {source.name}", standing)
        waiting: Waiting | None = None
        try:
            waiting = waiting_files(self.project.target, source)
        except (Damaged, OSError) as damage:
            problems.append(f"source {source.name}: {damage}")
        problems += self._waited(source, waiting)
        for is_problem, text in self._not_fresh(source, record):
            (problems if is_problem else warnings).append(text)
        # After a failure in the middle of a run their number is not known until the next run has counted them.
        if record.open or record.limit:
            told = counted(record.open, "open dead letter") if record.open else "open dead letters"
            text = f"{source.name} has {told} (runner dead-letters --source {source.name})"
            (problems if record.limit else warnings).append(text)
        newest = record.newest
        return {
            **_row(source.name, record, problems, warnings),
            "model": node.name,
            "read": standing.read,
            "waiting_files": waiting.files if waiting else None,
            "waiting_bytes": waiting.bytes if waiting else None,
            "behind": _behind(record),
            "landed": record.landed or None,
            **_rates(record.results),
            "dead_letters_open": record.open,
            "dead_letters_new": sum(newest["reasons"].values()) if newest else None,
            "limit": record.limit or None,
        }

    def _waited(self, source: Source, waiting: Waiting | None) -> Iterator[str]:
        longest = source.freshness.error_after or LONGEST_WAIT
        if waiting and waiting.files and (age := self.now.timestamp() - waiting.since) > longest.seconds:
            files = f"{counted(waiting.files, 'file')} of {source.name} not landed"
            yield f"{files}, the oldest for {age_in_words(age)} (runner run -s {source.model})"

    def _not_fresh(self, source: Source, record: NodeRecord) -> Iterator[tuple[bool, str]]:
        """Yields whether it is a problem that messages landed long ago, and a sentence, unless it was not too long ago.
        Messages are no newer than their landing: what is too old here is too old for `source freshness`.
        """
        limits = source.freshness
        age = self._age(record.landed)
        for limit, is_problem in ((limits.error_after, True), (limits.warn_after, False)):
            if limit and age is not None and age > limit.seconds:
                nothing = f"nothing has landed from {source.name} for {age_in_words(age)}"
                yield is_problem, f"{nothing}; expected within {limit}"
                return

    # --- tables and tests

    @cached_property
    def tables(self) -> list[Row]:
        """A row for each mirror, model and seed. Views of all sources, which no one has written, are among them only if
        they are not as they should be.
        """
        rows = []
        for node in self.nodes:
            if node.model and not node.model.source:
                row = self._table(node)
                if not node.model.reads_all_sources or row["problems"]:
                    rows.append(row)
        never = [row for row in rows if row["result"] == NEVER]
        if never:
            names = enumeration([row["name"] for row in never])
            never[0]["warnings"].append(f"{counted(len(never), 'model')} without a result: {names} (runner build)")
        return rows

    def _table(self, node: Node) -> Row:
        record, standing = self.records[node.name], self._standing(node)
        problems, warnings = self._of_node(node, f"{_kind(node)} {node.label}", standing)
        written = next((one["rows"]["rows"] for one in record.results if "rows" in one["rows"]), None)
        return {
            **_row(node.name, record, problems, warnings),
            "kind": _kind(node),
            "read": standing.read,
            "behind": standing.behind,
            "rows": written,
            "built": record.built or None,
        }

    @cached_property
    def tests(self) -> list[Row]:
        """A row for each test that failed or warned when it last ran."""
        rows = []
        for node in self.nodes:
            newest = self.records[node.name].newest if node.is_test else None
            if newest and newest["status"] in (*FAILED, "warn"):
                said = self._of_node(node, f"test {node.label}", ELSEWHERE)
                rows.append({**_row(node.name, self.records[node.name], *said), "failures": newest["failures"]})
        return rows

    def _of_node(self, node: Node, what: str, standing: Standing) -> tuple[list[str], list[str]]:
        """Returns what is not well with a node, and what is worth a look."""
        record, problems, warnings = self.records[node.name], [], []
        if standing.damage:
            problems.append(f"{what}: {standing.damage}")
        newest = record.newest
        if newest and (newest["is_incomplete"] or _has_failed(node, newest)):
            problems.append(f"{what} {self._failure(record, newest)}")
        elif standing.unfinished and node.relation not in self._written_now:
            # A failure leaves something unfinished too, and says more.
            problems.append(f"{what}: {standing.unfinished}")
        elif newest and newest["status"] == "warn":
            message = first_line(newest["message"])
            warnings.append(f"{what} warned {self._ago(newest['ended'])}{': ' if message else ''}{message}")
        return problems, warnings

    def _failure(self, record: NodeRecord, newest: Mapping[str, Any]) -> str:
        """Returns in words when a node failed, for how long it has been failing, and why."""
        word, since = "was read in part" if newest["is_incomplete"] else "failed", record.failing_since
        first = f", first {self._ago(since)}" if since and since != newest["ended"] else ""
        message = first_line(newest["message"])
        return f"{word} {self._ago(newest['ended'])}{first}{': ' if message else ''}{message}"

    def _standing(self, node: Node) -> Standing:
        is_here = not is_uri(self.project.target.path) and node.model and node.model.is_table
        return standing_of(self.workspace, node) if is_here else ELSEWHERE

    # --- locks, disks, waivers

    @cached_property
    def _written_now(self) -> set[str]:
        return {one.table for one in self.held if one.is_held is not False}

    @cached_property
    def locks(self) -> list[Row]:
        """A row for each run that writes tables of the nodes, or has died while it did."""
        relations = {node.relation for node in self.nodes}
        runs: dict[tuple[str, bool | None], list[Held]] = {}
        for one in self.held:
            if one.table in relations:
                runs.setdefault((one.holder.said, one.is_held), []).append(one)
        return [self._lock(held) for held in runs.values()]

    def _lock(self, held: list[Held]) -> Row:
        holder, is_held, tables = held[0].holder, held[0].is_held, [one.table for one in held]
        since = holder.since.replace("T", " ").replace("Z", " UTC")
        died = f'"{holder.command}" of {since} was stopped before its end; it wrote {enumeration(tables)}'
        return {
            "command": holder.command,
            "process": holder.pid,
            "user": holder.user,
            "host": holder.host,
            "since": holder.since,
            "tables": tables,
            "is": {True: "writing", False: "dead", None: "unknown"}[is_held],
            "problems": [f"{died} (run again)"] if is_held is False else [],
            "warnings": [],
        }

    @cached_property
    def disks(self) -> list[Row]:
        """A row for each place of this machine that runs write to."""
        rows = []
        for disk in disks(self.project.target, self.local_dirs):
            full = f"{bytes_in_words(disk.free)} are left for {disk.what} in {disk.place}"
            problems = [f"{full} ({disk.to_do})"] if disk.is_full else []
            rows.append(
                {"what": disk.what, "place": disk.place, "free": disk.free, "problems": problems, "warnings": []}
            )
        return rows

    @cached_property
    def interrupted(self) -> list[Row]:
        """A row for each command that has left the target half done."""
        return [{"problems": [text], "warnings": []} for text in interrupted_in(self.project.target)]

    @cached_property
    def waivers(self) -> list[Row]:
        """A row for each waiver that has ended."""
        ended = ended_waivers(self.project, self.workspace.graph.nodes.values(), self.now.date())
        return [{"problems": [f"{one.message} ({one.where})"], "warnings": []} for one in ended]

    @property
    def maintained(self) -> str | None:
        """The time when one of the tables was maintained last; None if none ever was."""
        return max((record.maintained for record in self.records.values()), default="") or None

    # --- times

    def _age(self, instant: str) -> float | None:
        return (self.now - datetime.fromisoformat(instant.replace("Z", "+00:00"))).total_seconds() if instant else None

    def _ago(self, instant: str) -> str:
        return f"{age_in_words(self._age(instant) or 0)} ago"


def in_a_line(problems: list[str], warnings: list[str]) -> str:
    """Returns in words whether all is well; what is not well, or else worth a look, is named.

    >>> in_a_line([], []), in_a_line([], ["shop has 1 open dead letter"])
    ('well', 'well; worth a look: shop has 1 open dead letter')
    >>> in_a_line(["a", "b", "c", "d"], ["e"])
    'not well: a; b; c; and 1 more'
    """
    named = problems or warnings
    more = [f"and {len(named) - NAMED} more"] if len(named) > NAMED else []
    said = "; ".join([*named[:NAMED], *more])
    if problems:
        return f"not well: {said}"
    return f"well; worth a look: {said}" if warnings else "well"


def _row(name: str, record: NodeRecord, problems: list[str], warnings: list[str]) -> Row:
    """Returns the members that the rows of all nodes have."""
    newest = record.newest
    return {
        "name": name,
        "result": newest["status"] if newest else NEVER,
        "ended": newest["ended"] if newest else None,
        "message": newest["message"] if newest else "",
        "was_skipped": bool(record.results) and record.results[0]["status"] == "skipped",
        "problems": problems,
        "warnings": warnings,
    }


def _has_failed(node: Node, newest: Mapping[str, Any]) -> bool:
    """Returns True if a result is a failure that lasts: that of a source with too many dead letters lasts as long as
    they are open.
    """
    is_of_letters = newest["status"] == "fail" and node.model is not None
    return newest["status"] in FAILED and not is_of_letters


def _behind(record: NodeRecord) -> int | None:
    """Returns how many messages the newest batch left in topics; None if none has told."""
    return next((one["behind"] for one in record.results if one["behind"] is not None), None)


def _kind(node: Node) -> str:
    return node.model.makes if node.model else node.resource_type


def _rates(results: Iterable[Mapping[str, Any]]) -> Row:
    """Returns how many messages a second the newest runs have landed, and how many a day came.

    >>> of = {"seconds": 2.0, "rows": {"messages": 100}}
    >>> _rates([{**of, "ended": "2026-11-29T12:00:00Z"}, {**of, "ended": "2026-11-29T00:00:00Z"}])
    {'per_second': 50.0, 'per_day': 200}
    >>> _rates([])
    {'per_second': None, 'per_day': None}
    """
    landed = [one for one in results if "messages" in one["rows"]]
    counts = [one["rows"]["messages"] for one in landed]
    # A run that finds nothing takes its time too.
    seconds = sum(one["seconds"] for one, count in zip(landed, counts) if count)
    ended = [datetime.fromisoformat(one["ended"].replace("Z", "+00:00")) for one in landed]
    days = (ended[0] - ended[-1]).total_seconds() / 86_400 if ended else 0
    return {
        "per_second": round(sum(counts) / seconds, 1) if seconds else None,
        # What came before the first of the runs came in no time that is known.
        "per_day": round(sum(counts[:-1]) / days) if days > 0 else None,
    }


def first_line(message: str) -> str:
    """Returns the first line of the message of a result, as short as it is shown."""
    line = brief(message).partition("\n")[0]
    return line if len(line) <= MESSAGE else f"{line[:MESSAGE]}…"


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
