"""retry: runs the nodes again that failed in the last run, and those that were skipped because of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from runner.commands.arguments import Call
from runner.commands.repeat import repeated
from runner.commands.run import COMMANDS
from runner.counts import counted
from runner.errors import RunnerError
from runner.project.state import RESULTS, read_artifact, statuses_in, unique_id, unreadable
from runner.run.workspace import Workspace

AGAIN = ("error", "fail", "skipped")


def retry(call: Call) -> int:
    """Runs the last command again, with its flags, for the nodes that failed or were skipped, and for the models that
    were built without rows of such nodes.
    """
    workspace = Workspace(call.project)
    folder = workspace.project.target_path
    command = _command(folder)
    names = _again(workspace, statuses_in(folder))
    if not names:
        call.report.say("nothing to do: nothing has failed in the last run")
        return 0
    try:
        arguments = repeated(read_artifact(folder, RESULTS)["args"], call.project, names)
    except (KeyError, TypeError):
        raise unreadable(folder / RESULTS, "it does not say how it was run") from None
    call.report.say(f'"{command}" again, of {counted(len(names), "node")}')
    return COMMANDS[command](arguments, call.report)


def _command(folder: Path) -> str:
    """Returns the last command; raises `retry-command` for a command that cannot be run again."""
    how = read_artifact(folder, RESULTS).get("args")
    command = how.get("which") if isinstance(how, dict) else None
    if not isinstance(command, str):
        raise unreadable(folder / RESULTS, "it does not say how it was run")
    if command not in COMMANDS:
        message = f'"{command}" cannot be run again in part'
        raise RunnerError("retry-command", message, hint=f"runner {command}")
    return command


def _again(workspace: Workspace, statuses: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the names of the nodes to run again, among those that are still there."""
    graph = workspace.graph
    ended = {name: statuses.get(unique_id(workspace.project, node)) for name, node in graph.nodes.items()}
    again = {name for name, status in ended.items() if status in AGAIN}
    # Views of all sources, and the models that read them, are built although a source has failed.
    incomplete = {name for name in graph.downstream(again) if ended[name] == "warn" and graph.nodes[name].model}
    return tuple(sorted(again | incomplete))
