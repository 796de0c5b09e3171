"""Folders and files of a project that nothing reads, though people who know dbt may expect it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from runner.errors import RunnerWarning, Where

# What is looked for in a project's folder -> what to do instead.
UNREAD = {
    "snapshots/*": "the changelog already has the history of each row: select it in a model",
    "analyses/*": "runner show --inline SQL runs a query once; models/ has those that stay",
}


def unread(root: Path) -> Iterator[RunnerWarning]:
    """A warning for each kind of file that is there and that no command reads."""
    for pattern, hint in UNREAD.items():
        if found := sorted(root.glob(pattern)):
            yield RunnerWarning("files-unread", f'nothing reads "{pattern.removesuffix("*")}"', Where(found[0]), hint)
