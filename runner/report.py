"""Reports events as lines on stderr, as text or JSON, and prints the payload to stdout."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TextIO

from runner.contract import Landed
from runner.counts import brief, counted, grouped
from runner.errors import BUG, RunnerError, RunnerWarning
from runner.grid import grid, json_text
from runner.live import Live, Measured, Work
from runner.project.nodes import Node, Project
from runner.run.results import Batch, Result, most_frequent
from runner.secrets import Secrets

WORDS = {"success": "OK", "error": "ERROR", "skipped": "SKIP", "pass": "PASS", "warn": "WARN", "fail": "FAIL"}
COLOURS = {"OK": "32", "PASS": "32", "WARN": "33", "ERROR": "31", "FAIL": "31", "SKIP": "33"}
# Characters that would move the cursor, or turn the direction of a line, where it is shown: they come only from data
# and files. The report's own colours are not among them.
CONTROLS = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]"
PLAIN, COLOURED = re.compile(CONTROLS), re.compile(rf"(?!\x1b\[(?:0|31|32|33)m){CONTROLS}")
# If there are more results than this, those that failed are printed again at the end.
MANY = 20
# The width of tables if there is no terminal.
SCREEN = 140


class Report:
    """Reports how a run goes. `log_format` is text or json; `quiet` leaves out all that is not a warning or a failure.
    `secrets` are redacted in all events. If `live` is True, lines may be drawn again on the terminal, if there is one.
    """

    def __init__(
        self,
        log_format: str = "text",
        quiet: bool = False,
        color: bool | None = None,
        stderr: TextIO | None = None,
        stdout: TextIO | None = None,
        secrets: Secrets | None = None,
        live: bool = True,
    ) -> None:
        self.secrets = secrets or Secrets()
        self.stderr, self.stdout = stderr or sys.stderr, stdout or sys.stdout
        self.log_format, self.quiet = log_format, quiet
        self.color = self.stderr.isatty() if color is None else color
        self.warnings = 0
        self.results: tuple[Result, ...] = ()
        # What each line of JSON says of the run: None as long as it is not known.
        self.about: dict[str, str | None] = dict.fromkeys(("project", "target", "run_id"))
        is_drawn = live and not quiet and log_format == "text" and self.stderr.isatty()
        self.live = Live(self.stderr if is_drawn else None, self._running)

    def close(self) -> None:
        """Ends the lines that show work under way."""
        self.live.close()

    # --- events

    def say(self, text: str) -> None:
        if not self.quiet:
            self._line({"event": "info", "message": text}, text)

    def error(self, error: RunnerError) -> None:
        self._line(_event_of("error", error), self._error(str(error)), clock=False)

    def warn(self, warning: RunnerWarning) -> None:
        """Reports a warning, which stops nothing; the last line of a run has the number of warnings."""
        self.warnings += 1
        self._line(_event_of("warning", warning), self._in_yellow(str(warning)), clock=False)

    def debug(self, text: str) -> None:
        self._line({"event": "debug", "message": text}, text, clock=False)

    def query_failed(self, message: str) -> None:
        """Reports that Spark refused a query of the user."""
        event = {"event": "error", "code": "query", "message": message, "where": None, "hint": None}
        self._line(event, self._error(f"error[query]: {message}"), clock=False)

    def interrupted(self) -> None:
        self._line({"event": "interrupted", "message": "interrupted"}, "interrupted", clock=False)

    def bug(self, trace: str) -> None:
        """Reports an error that is not a mistake of the user, with its traceback."""
        text = f"{trace}{BUG}"
        self._line({"event": "bug", "message": text}, text, clock=False)

    @contextmanager
    def during(self, what: str, is_said: bool = False) -> Iterator[None]:
        """Shows on a terminal what is being done in the block. Without a terminal, prints that after a while, or at
        once with `is_said`.
        """
        if self.quiet:
            yield
            return
        if is_said and not self.live.terminal:
            self.say(what)
        self.live.begin(Work(what, what))
        try:
            yield
        finally:
            self.live.end(what)

    def measuring(self, measured: Measured) -> None:
        """Sets the function that is asked from now on how far a node is."""
        self.live.measured = measured

    def started(self, node: Node, number: int, total: int) -> None:
        """Reports that a node runs, and from then on how far it is."""
        if not self.quiet:
            self.opened(node, number, total)
            self.live.begin(Work(node.name, f"{_kind(node)} {node.label}", f"{number} of {total} "))

    def opened(self, node: Node, number: int, total: int) -> None:
        """Reports that a node runs, if it takes long or goes on without an end."""
        is_one_of_many = total > MANY and node.model and node.model.mirror
        if not self.quiet and node.model and node.model.is_table and not is_one_of_many:
            self._line(
                {"event": "started", "name": node.name, "number": number, "total": total},
                f"{number} of {total} START {_kind(node)} {node.label}",
            )

    def _running(self, work: Work) -> None:
        """Reports that work is still under way."""
        measure = work.measure
        event = {
            "event": "running",
            "name": work.name,
            "read": measure.read,
            "written": measure.written,
            "rate": work.rate,
            "share": None if measure.share is None else round(min(measure.share, 1.0), 3),
            "seconds": round(work.seconds, 3),
        }
        share = "" if measure.share is None else f", {int(min(measure.share, 1.0) * 100)}%"
        self._line(event, f"{work.number}RUNNING {work.what}: {work.progress}{share}")

    def finished(self, node: Node, result: Result, number: int, total: int) -> None:
        self.live.end(node.name)
        is_one_of_many = result.is_unchanged and total > MANY and self.log_format == "text"
        if result.status in ("success", "pass") and (self.quiet or is_one_of_many):
            return
        word = WORDS[result.status]
        counts = "nothing new in " if result.is_unchanged else _counted(result.rows, self._reasons(result))
        took = f"[{counts}{result.seconds:.1f}s]"
        text = f"{number} of {total} {self._coloured(word)} {_kind(node)} {node.label} {took}"
        said = [line for text in (result.message, *result.notes) for line in brief(text).splitlines()]
        if node.is_test and node.where and result.message:
            said.append(f"written at {node.where}")
        lines = [text, *(f"      {line}" for line in said)]
        event = {
            "event": "finished",
            "name": node.name,
            "status": result.status,
            "seconds": round(result.seconds, 3),
            "message": brief(result.message),
            "notes": list(map(brief, result.notes)),
            "rows": dict(result.rows),
            "reasons": dict(result.reasons),
            "waived": dict(result.waived),
        }
        self._line(event, "\n".join(lines))

    def progress(self, name: str, batch: Batch) -> None:
        """Reports what a batch of a stream has landed, and if there are too many dead letters in it."""
        landed, verdict = batch.landed, batch.verdict
        has_failed = verdict.status == "fail"
        if self.quiet and not has_failed:
            return
        rows = ", ".join(f"{grouped(count)} {kind}" for kind, count in landed.rows.items() if count)
        kinds = f" ({rows}{self._reasons(landed)})" if rows else ""
        word = f"{self._coloured(WORDS['fail'])} " if has_failed else ""
        text = (
            f"{word}{name}: {grouped(landed.messages)} messages{kinds} in {batch.seconds:.1f}s{_behind(batch.behind)}"
        )
        event = {
            "event": "progress",
            "name": name,
            "batch": batch.number,
            "status": verdict.status,
            "message": verdict.message,
            "messages": batch.landed.messages,
            "rows": dict(batch.landed.rows),
            "reasons": dict(batch.landed.reasons),
            "waived": dict(batch.landed.waived),
            "seconds": round(batch.seconds, 3),
            "behind": batch.behind,
        }
        self._line(event, f"{text}\n      {verdict.message}" if has_failed else text)

    def followed(self, name: str, result: Result, behind: int) -> None:
        """Reports that a mirror was brought up to date, and how many messages have landed since the update began."""
        if self.quiet:
            return
        counts = ", ".join(f"{grouped(count)} {kind}" for kind, count in result.rows.items()) or "nothing new"
        event = {
            "event": "followed",
            "name": name,
            "rows": dict(result.rows),
            "seconds": round(result.seconds, 3),
            "behind": behind,
        }
        self._line(event, f"{name}: {counts} in {result.seconds:.1f}s{_behind(behind)}")

    def idle(self, busy: Iterable[str], behind: int | None) -> None:
        """Reports that no batch has ended for a while."""
        names = list(busy)
        text = f"still landing a batch of {', '.join(names)}" if names else f"nothing new{_behind(behind)}"
        if not self.quiet:
            self._line({"event": "idle", "busy": names, "behind": behind}, text)

    @property
    def verdict(self) -> str:
        """The first words in the last line of a command that found no errors."""
        return f"no errors, {counted(self.warnings, 'warning')}" if self.warnings else "all good"

    def of_project(self, project: Project) -> None:
        """Sets the project of which the lines that follow are."""
        self.about |= {"project": project.name, "target": project.target.name}

    def of_run(self, run_id: str) -> None:
        """Sets the run of which the lines that follow are."""
        self.about["run_id"] = run_id

    def done(self, results: Iterable[Result], seconds: float, exit_code: int) -> None:
        """Reports that a run has ended: how its nodes ended, how long it took, and its exit code."""
        self.results = tuple(results)
        statuses = [r.status for r in self.results]
        good = sum(s in ("success", "pass") for s in statuses)
        bad = sum(s in ("error", "fail") for s in statuses)
        warned, skipped = statuses.count("warn"), statuses.count("skipped")
        if len(self.results) > MANY and self.log_format == "text":
            for result in (one for one in self.results if one.has_failed):
                first = result.message.partition("\n")[0]
                kind = result.resource_type.replace("_", " ")
                self._line({}, f"{self._coloured(WORDS[result.status])} {kind} {result.name}: {first}")
        unchanged = sum(result.is_unchanged for result in self.results)
        if unchanged and len(self.results) > MANY and not self.quiet:
            self._line({"event": "info", "message": f"{unchanged} unchanged"}, f"{unchanged} mirrors had nothing new")
        text = f"Done. PASS={good} WARN={warned} ERROR={bad} SKIP={skipped} TOTAL={len(self.results)}"
        text += f", {counted(self.warnings, 'warning')}" if self.warnings else ""
        in_part = sum(result.is_incomplete for result in self.results)
        text += f", {counted(in_part, 'source')} read in part: exit code 1" if in_part and not bad else ""
        if bad or not self.quiet:
            event = {
                "event": "done",
                "message": text,
                "counts": {status: statuses.count(status) for status in WORDS},
                "warnings": self.warnings,
                "seconds": round(seconds, 3),
                "exit_code": exit_code,
            }
            self._line(event, self._coloured(_worst(bad, warned + self.warnings), text))

    def _line(self, event: Mapping[str, Any], text: str, clock: bool = True) -> None:
        now = datetime.now()
        if self.log_format == "json":
            # The time of this machine, with its zone.
            time = now.astimezone().isoformat(timespec="seconds")
            line = json.dumps({"time": time, **self.about, **event}, ensure_ascii=False)
        else:
            line = f"{now:%H:%M:%S}  {text}" if clock else text
        with self.live.above():
            print(self._escaped(self.secrets.redacted(line)), file=self.stderr, flush=True)

    def shown(self, text: str) -> str:
        """Returns a text without secrets, as it may be shown on a terminal."""
        return self._escaped(self.secrets.redacted(text))

    def _escaped(self, line: str) -> str:
        """Returns a line in which characters that a terminal obeys are written as codes, as JSON writes them."""
        controls = COLOURED if self.color else PLAIN
        return controls.sub(lambda found: f"\\u{ord(found[0]):04x}", line)

    def _coloured(self, word: str, text: str = "") -> str:
        return self._painted(text or word, COLOURS[word])

    def _error(self, text: str) -> str:
        """Returns the text of an error, with its first words in red."""
        first, colon, rest = text.partition(":")
        return f"{self._coloured('ERROR', first + colon)}{rest}"

    def _reasons(self, landed: Result | Landed) -> str:
        """Returns the reasons of dead letters, as they follow the number of dead letters."""
        waived = sum(landed.waived.values())
        more = f"; {grouped(waived)} waived" if waived else ""
        return self._in_yellow(f" ({most_frequent(landed.reasons)}{more})") if landed.reasons else ""

    def _in_yellow(self, text: str) -> str:
        return self._painted(text, COLOURS["WARN"])

    def _painted(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self.color and text else text

    # --- payload: data, in which nothing is redacted

    def payload(self, text: str) -> None:
        with self.live.above():
            print(text, file=self.stdout)

    def json_lines(self, rows: Iterable[Mapping[str, Any]]) -> None:
        for row in rows:
            self.payload(json_text(row))

    def table(self, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
        """Prints rows as a table that fits the screen, or as blocks if the columns are too many for it."""
        for line in grid(columns, rows, shutil.get_terminal_size((SCREEN, 24)).columns):
            self.payload(line)
        self.payload(f"({counted(len(rows), 'row')})")


def _worst(bad: int, warned: int) -> str:
    return "ERROR" if bad else "WARN" if warned else "OK"


def _behind(count: int | None) -> str:
    return "" if count is None else f", {grouped(count)} behind"


def _kind(node: Node) -> str:
    if node.resource_type == "model" and node.model:
        return f"{node.model.materialized} model"
    return node.resource_type.replace("_", " ")


def _event_of(name: str, said: RunnerError | RunnerWarning) -> dict[str, Any]:
    where = str(said.where) if said.where else None
    return {
        "event": name,
        "code": said.code,
        "message": brief(said.message),
        "where": where,
        "hint": brief(said.hint) or None,
    }


def _counted(rows: Mapping[str, int], reasons: str = "") -> str:
    """Returns the numbers of what was written in words.

    >>> _counted({"messages": 1200, "row": 1198, "ddl": 0, "dead_letter": 2}, " (2 no-op)")
    '1 200 messages: 1 198 row, 2 dead_letter (2 no-op) in '
    >>> _counted({"messages": 0}), _counted({"rows": 3}), _counted({})
    ('no new messages in ', '3 rows in ', '')
    """
    counts = {name: grouped(count) for name, count in rows.items() if count}
    if "messages" not in rows:
        return "".join(f"{count} {name} in " for name, count in counts.items())
    if "messages" not in counts:
        return "no new messages in "
    messages, kinds = counts.pop("messages"), ", ".join(f"{count} {name}" for name, count in counts.items())
    return f"{messages} messages: {kinds}{reasons} in "
