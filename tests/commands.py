"""Commands in this process, for what outlives a test and so has no `capsys`."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from runner.cli import main


def run(*words: str) -> str:
    """What a command that succeeds prints."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words)
    assert code == 0, err.getvalue() + out.getvalue()
    return out.getvalue()


def query(sql: str) -> Iterator[dict[str, Any]]:
    """Rows of a query; values may hold characters that `splitlines` takes for the end of a line."""
    for line in run("show", "--inline", sql, "--output", "json", "--limit", "100000").split("\n"):
        if line:
            yield json.loads(line)
