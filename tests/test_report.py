"""What is said of a run, and as which event in JSON logs (runner/report.py)."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from runner.contract import Landed
from runner.errors import RunnerError, RunnerWarning, Where
from runner.project.nodes import Node
from runner.report import Report
from runner.run.results import Batch, Result


def said(log_format: str, event: str, *arguments: object) -> str:
    stderr = io.StringIO()
    getattr(Report(log_format, stderr=stderr), event)(*arguments)
    return stderr.getvalue()


def test_only_what_nobody_can_mend_is_a_bug() -> None:
    events = [
        json.loads(said("json", *words))
        for words in (("interrupted",), ("query_failed", "no column x"), ("bug", "Traceback\n"))
    ]
    assert [(event["event"], event.get("code")) for event in events] == [
        ("interrupted", None),
        ("error", "query"),
        ("bug", None),
    ]


HOSTILE = "a\x1b]0;title\x07\x1b[2J\x1b[31m\x08\x9b1A\u202eb\n\tc 数🙂"
ESCAPED = r"a\u001b]0;title\u0007\u001b[2J\u001b[31m\u0008\u009b1A\u202eb"


@pytest.mark.parametrize(
    ("event", "arguments"),
    [
        ("error", [RunnerError("code", HOSTILE, Where(Path(HOSTILE), 1), HOSTILE)]),
        ("warn", [RunnerWarning("code", HOSTILE)]),
        ("finished", [Node("n", "test", None), Result("n", "test", "error", HOSTILE, (HOSTILE,)), 1, 1]),
        *((event, [HOSTILE]) for event in ("say", "bug", "debug", "query_failed")),
    ],
)
def test_what_a_terminal_would_obey_is_shown(event: str, arguments: list[Any]) -> None:
    text, line = said("text", event, *arguments), said("json", event, *arguments)
    assert ESCAPED in text and "c 数🙂" in text
    assert all(one.isprintable() or one in "\n\t" for one in text)
    assert line.removesuffix("\n").isprintable() and HOSTILE in json.loads(line)["message"]


def test_of_colours_only_those_of_the_report_are_left() -> None:
    stderr = io.StringIO()
    Report(color=True, stderr=stderr).error(RunnerError("code", "a\x1b[2J\x1b[32;1mb"))
    assert stderr.getvalue() == "\x1b[31merror[code]:\x1b[0m a\\u001b[2J\\u001b[32;1mb\n"


def test_a_query_that_fails_is_said_as_other_mistakes_are() -> None:
    assert said("text", "query_failed", "no column x") == "error[query]: no column x\n"


def test_a_batch_is_said_with_the_reasons_of_its_dead_letters() -> None:
    rows = {"row": 1, "ddl": 0, "control": 0, "dead_letter": 3}
    batch = Batch(4, Landed(4, rows, {"no-op": 1, "not-json": 2}), 0.5, 7)
    told = "orders: 4 messages (1 row, 3 dead_letter (2 not-json, 1 no-op)) in 0.5s, 7 behind\n"
    assert said("text", "progress", "orders", batch).partition("  ")[2] == told
    event = json.loads(said("json", "progress", "orders", batch))
    assert (event["rows"], event["reasons"]) == (rows, {"no-op": 1, "not-json": 2})


def test_the_last_line_counts_warnings() -> None:
    stderr = io.StringIO()
    report = Report(stderr=stderr)
    report.warn(RunnerWarning("files-unread", 'nothing reads "seeds/"', hint="a model"))
    report.done([Result("a", "model", "success"), Result("b", "model", "warn"), Result("c", "model", "error")], 1, 1)
    # Nodes are counted alone: the four numbers are those of dbt.
    assert stderr.getvalue().startswith('warning[files-unread]: nothing reads "seeds/"\n  hint: a model\n')
    assert stderr.getvalue().endswith("Done. PASS=1 WARN=1 ERROR=1 SKIP=0 TOTAL=3, 1 warning\n")


def test_the_end_of_a_run_is_said_as_fields() -> None:
    stderr = io.StringIO()
    report = Report("json", stderr=stderr)
    report.of_run("r1")
    report.warn(RunnerWarning("files-unread", "nothing"))
    statuses = ("success", "success", "pass", "warn", "error", "skipped")
    report.done([Result(f"{nth}", "model", status) for nth, status in enumerate(statuses)], 2.34567, 1)
    event = json.loads(stderr.getvalue().splitlines()[-1])
    assert event["counts"] == {"success": 2, "error": 1, "skipped": 1, "pass": 1, "warn": 1, "fail": 0}
    assert (event["event"], event["run_id"], event["warnings"]) == ("done", "r1", 1)
    assert (event["seconds"], event["exit_code"]) == (2.346, 1)


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_number_of_thousands_of_digits_is_not_told_whole(capsys: pytest.CaptureFixture[str], log_format: str) -> None:
    number = "9" * 5000
    Report(log_format).finished(Node("n", "test", None), Result("n", "test", "fail", number, (f"a: {number}",)), 1, 1)
    Report(log_format).warn(RunnerWarning("a", number, hint=number))
    said = capsys.readouterr().err
    assert said.count("…") == 4 and said.count("9") < 1300
