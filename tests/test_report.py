"""What is said of a run, and as which event in JSON logs (runner/report.py)."""

from __future__ import annotations

import io
import json

from runner.report import Report


def said(log_format: str, event: str, *arguments: str) -> str:
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


def test_a_query_that_fails_is_said_as_other_mistakes_are() -> None:
    assert said("text", "query_failed", "no column x") == "error[query]: no column x\n"
