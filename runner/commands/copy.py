"""copy: tables of a target, with all that later runs go on from, into another target."""

from __future__ import annotations

import shlex
from dataclasses import replace

from runner.commands.arguments import Call
from runner.commands.session import session_between
from runner.counts import counted
from runner.project.inputs import Target
from runner.project.targets import side_by_side
from runner.run.run import Run
from runner.run.verified import COLUMNS as VERIFIED
from runner.run.workspace import Selection, Workspace

COLUMNS = ("table", "kind", "rows", "hash", "note")


def copy(call: Call, to: str, dry_run: bool, output: str) -> int:
    """Copies the selected tables of the target into another one, and prints a line for each; returns 1 if one differs
    from what it is a copy of.
    """
    workspace, there = Workspace(call.project), Workspace(replace(call.project, target=to))
    own, other = workspace.project.target, there.project.target
    one, both = side_by_side(own, other)
    nodes = workspace.chosen(call.selection, lambda node: node.writes_table)
    run = Run(workspace, _command(call.selection, own, to), nodes)
    is_whole = call.selection == Selection()
    names = [*run.tables_written, *(VERIFIED if is_whole else ())]
    # Mistakes in the arguments do not wait until Spark is imported.
    from runner.engine.errors import QueryFailed
    from runner.run.copying import DIFFERS, Copying

    try:
        with session_between(run, there.project, both, call.report, names) as spark:
            copying = Copying(run, there, spark, one, is_whole)
            copying.check()
            rows = []
            for row in copying.looked_at() if dry_run else copying.copied():
                call.report.say(f"{row['table']}: {counted(row['rows'], 'row')} {row['note'] or 'copied'}")
                rows.append(row)
    except QueryFailed as failure:
        call.report.query_failed(failure.message)
        return 1
    if output == "json":
        call.report.json_lines(rows)
    else:
        call.report.table(list(COLUMNS), rows)
    return int(any(row["note"].startswith(DIFFERS) for row in rows))


def _command(selection: Selection, own: Target, to: str) -> str:
    """Returns the command that goes on with a copy that was interrupted."""
    chosen = [word for one in selection.select for word in ("-s", one)]
    chosen += [word for one in selection.exclude for word in ("--exclude", one)]
    chosen += ["--selector", selection.selector] if selection.selector else []
    return shlex.join(["runner", "copy", "-t", own.name, "--to", to, *chosen])
