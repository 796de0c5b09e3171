"""The arguments of a run, as run_results.json keeps them, so that it can be run again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from runner.commands.arguments import RunArguments
from runner.run.workspace import ProjectArguments, Selection

# Arguments that are kept as they are.
PLAIN = ("threads", "fail_fast", "full_refresh", "unit_only", "data_only", "empty", "defer")


def repeatable(arguments: RunArguments, target: str) -> dict[str, Any]:
    """Returns the arguments of a run into this target as JSON keeps them."""
    selection = arguments.selection
    return {
        "target": target,
        "vars": dict(arguments.project.variables),
        "select": list(selection.select),
        "exclude": list(selection.exclude),
        "selector": selection.selector,
        "state": str(selection.state.absolute()) if selection.state else None,
        **{name: getattr(arguments, name) for name in PLAIN},
    }


def repeated(kept: Mapping[str, Any], project: ProjectArguments, only: tuple[str, ...]) -> RunArguments:
    """Returns the arguments that were kept, for these nodes only; the target and the variables of `project` win over
    those that were kept. Raises KeyError or TypeError for arguments that were not kept by this version.
    """
    again = replace(project, target=project.target or kept["target"], variables={**kept["vars"], **project.variables})
    state = Path(kept["state"]) if kept["state"] else None
    selection = Selection(tuple(kept["select"]), tuple(kept["exclude"]), state, kept["selector"])
    return RunArguments(again, selection, only=only, **{name: kept[name] for name in PLAIN})
