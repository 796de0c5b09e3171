"""state: what a project has in its target: tables, how far each has read, what waits, what nobody has any more."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from runner.commands.arguments import Call
from runner.commands.clean import orphans_of
from runner.counts import bytes_in_words
from runner.errors import RunnerError
from runner.files import is_uri
from runner.project.inputs import Target
from runner.run.inventory import Standing, size_of, standing_of
from runner.run.workspace import Workspace

COLUMNS = ("name", "kind", "read", "size", "changed", "note")
Row = dict[str, Any]


def state(call: Call, output: str) -> int:
    """Prints a line for each table of the target; reads no rows and starts no Spark."""
    workspace = Workspace(call.project)
    target = workspace.project.target
    if is_uri(target.path):
        raise RunnerError("state-elsewhere", f'this machine does not see the tables in "{target.path}"')
    rows = list(_rows(workspace, target))
    if output == "json":
        call.report.json_lines(rows)
    else:
        call.report.table(list(COLUMNS), [{**row, "size": bytes_in_words(row["size"])} for row in rows])
    return 0


def _rows(workspace: Workspace, target: Target) -> Iterator[Row]:
    for name in workspace.graph.order():
        node = workspace.graph.nodes[name]
        if node.model and node.model.is_table:
            shown = node.model.source.name if node.model.source else node.name
            yield _row(target, shown, node.model.makes, node.relation, standing_of(workspace, node))
    for name in orphans_of(workspace):
        yield _row(target, name, "orphan", name, Standing(note="no node has it any more: runner clean --orphans"))


def _row(target: Target, name: str, kind: str, relation: str, standing: Standing) -> Row:
    size, changed = size_of(target, relation)
    return {
        "name": name,
        "kind": kind,
        "table": relation,
        "read": standing.read,
        "size": size,
        "changed": f"{datetime.fromtimestamp(changed, timezone.utc):%Y-%m-%dT%H:%M:%SZ}" if changed else None,
        "note": standing.said,
    }
