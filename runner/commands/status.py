"""status: one look that says whether all is well, and why not."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from runner.commands.arguments import Call
from runner.counts import age_in_words, bytes_in_words, counted, grouped
from runner.errors import RunnerError
from runner.grid import json_text
from runner.report import Report
from runner.run.health import NAMED, Health, Row, in_a_line
from runner.run.inventory import LOCAL_DIRS
from runner.run.workspace import Workspace

CLEAR = "\x1b[2J\x1b[H"


def status(call: Call, output: str, watch: int | None) -> int:
    """Prints whether all is well, why not, and what is known of each source and table; returns 1 if all is not well.
    With `watch`, prints that again and again, so many seconds apart, until Ctrl-C.
    """
    if watch is not None and watch < 1:
        raise RunnerError("usage", f'"--watch" must be at least 1 second, not "{watch}"')
    while True:
        health = _health(call)
        if watch and call.report.stdout.isatty() and output != "json":
            call.report.payload(CLEAR)
        if output == "json":
            call.report.payload(json_text(health.everything))
        else:
            _print(call.report, health)
        code = 1 if health.problems else 0
        if watch is None:
            return code
        try:
            time.sleep(watch)
        except KeyboardInterrupt:
            return code


def _health(call: Call) -> Health:
    """Returns the health of the selected nodes. The project is read each time: it may have changed."""
    workspace = Workspace(call.project)
    names = workspace.selected_with_tests(call.selection)
    landing = {source.model for source in workspace.project.sources if f"source.{source.name}" in names}
    return Health(workspace, names | landing, call.environment.get(LOCAL_DIRS))


def _print(report: Report, health: Health) -> None:
    report.payload(report.shown(in_a_line(health.problems, health.warnings)))
    for title, rows in _tables(health).items():
        if rows:
            report.payload(f"\n{title}")
            shown = [{name: report.shown(text) for name, text in row.items()} for row in rows]
            report.table(list(rows[0]), shown)
    report.payload("")
    for line in _ending(health):
        report.payload(line)


def _tables(health: Health) -> dict[str, list[dict[str, str]]]:
    """Returns what is known as tables of texts, by their titles."""
    more = [*health.problems[NAMED:], *(health.warnings if health.problems else health.warnings[NAMED:])]
    return {
        "more": [{"what": text} for text in more],
        "sources": [_source(health, row) for row in health.sources],
        "tables": [_table(health, row) for row in health.tables],
        "tests that failed": [
            {"name": row["name"], **_result(health, row), "message": row["message"].partition("\n")[0]}
            for row in health.tests
        ],
        "runs": [
            {"command": row["command"], "is": row["is"], "process": f"{row['process']} on {row['host']}"}
            | {"since": row["since"], "tables": ", ".join(row["tables"])}
            for row in health.locks
        ],
    }


def _source(health: Health, row: Row) -> dict[str, str]:
    waits = (
        [counted(row["waiting_files"], "file"), bytes_in_words(row["waiting_bytes"])] if row["waiting_files"] else []
    )
    waits += [counted(row["behind"], "message")] if row["behind"] else []
    rates = {"a second": row["per_second"], "a day": row["per_day"]}
    letters = {"open": row["dead_letters_open"], "new": row["dead_letters_new"]}
    return {
        "name": row["name"],
        **_result(health, row),
        "waits": ", ".join(waits),
        "landed": _ago(health, row["landed"]),
        "messages": _joined({f"{name}": round(rate) for name, rate in rates.items() if rate}),
        "dead letters": _joined({name: count for name, count in letters.items() if count}),
    }


def _table(health: Health, row: Row) -> dict[str, str]:
    return {
        "name": row["name"],
        "kind": row["kind"],
        **_result(health, row),
        "built": _ago(health, row["built"]),
        "behind": f"{grouped(row['behind'])} {'batch' if row['behind'] == 1 else 'batches'}" if row["behind"] else "",
        "rows": "" if row["rows"] is None else grouped(row["rows"]),
    }


def _result(health: Health, row: Row) -> dict[str, str]:
    skipped = ", then skipped" if row["was_skipped"] else ""
    return {"result": f"{row['result']}{skipped}", "ended": _ago(health, row["ended"])}


def _joined(counts: dict[str, int]) -> str:
    return ", ".join(f"{grouped(count)} {name}" for name, count in counts.items())


def _ago(health: Health, instant: str | None) -> str:
    if not instant:
        return ""
    seconds = (health.now - datetime.fromisoformat(instant.replace("Z", "+00:00"))).total_seconds()
    return f"{age_in_words(seconds)} ago"


def _ending(health: Health) -> Iterable[str]:
    known: dict[str, Any] = {row["what"]: row["free"] for row in health.disks if row["free"] is not None}
    free = ", ".join(f"{bytes_in_words(free)} for {what}" for what, free in known.items())
    if free:
        yield f"free: {free}"
    yield f"maintained: {_ago(health, health.maintained) or 'not yet, as far as is known'}"
