"""clean, ls --orphans: what the runner wrote to target/, and tables that no node of the project has any more."""

from __future__ import annotations

import shutil
import sys

import click

from runner import artifacts
from runner.commands.arguments import Call
from runner.commands.session import session
from runner.counts import counted
from runner.engine.progress import TablesWritten
from runner.errors import RunnerError
from runner.project.mirror import BESIDE
from runner.run.run import Run
from runner.run.workspace import Workspace, read_project_of


def orphans_of(workspace: Workspace) -> list[str]:
    """Returns the names of the tables that runs of the project have written, and that none of its nodes has or had."""
    known = {relation for node in workspace.graph.nodes.values() for relation in node.relations}
    return sorted(TablesWritten(workspace.project).read() - known - workspace.graph.former_tables.keys())


def clean(call: Call, orphans: bool, yes: bool) -> int:
    """Removes what the runner wrote to target/: tables, checkpoints and other files there stay. With `orphans`, removes
    tables that no node has any more, after a question; with `yes` without one.
    """
    if not orphans:
        return _clean_target(call)
    workspace = Workspace(call.project)
    names = orphans_of(workspace)
    for name in names:
        call.report.payload(name)
    if not names:
        call.report.say("nothing to do: each table that the project has written belongs to a node")
        return 0
    if not yes and not sys.stdin.isatty():
        raise RunnerError("usage", "nothing was removed: there is no terminal to ask on", hint="clean --orphans --yes")
    if not yes and not click.confirm(f"Remove {counted(len(names), 'table')} with all rows?", err=True):
        return 1
    run = Run(workspace, "clean", [])
    with session(run, call.report):
        run.lock([name + beside for name in names for beside in ("", *BESIDE.values())])
        for name in names:
            _remove(run, name)
    call.report.say(f"removed {counted(len(names), 'table')}")
    return 0


def _clean_target(call: Call) -> int:
    project = read_project_of(call.project)
    for path in (project.target_path / name for name in artifacts.WRITTEN):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    if project.target_path.is_dir() and not any(project.target_path.iterdir()):
        project.target_path.rmdir()
    call.report.say(f"removed what the runner wrote to {project.target_path}")
    return 0


def _remove(run: Run, name: str) -> None:
    """Removes a table, the one beside it, and what is recorded of it; the record that it was written goes last."""
    for table in (name, *(name + beside for beside in BESIDE.values())):
        run.tables.forget(table)
    run.publisher.remove(name)
    TablesWritten(run.project).remove(name)
