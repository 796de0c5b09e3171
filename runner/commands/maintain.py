"""maintain: compacts tables and removes what is no longer needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.commands.arguments import MaintainArguments
from runner.commands.job import Job, run_locked
from runner.commands.workspace import Workspace
from runner.errors import RunnerError
from runner.report import Report
from runner.run.results import Result

if TYPE_CHECKING:
    from runner.run.parts import Parts


def maintain(arguments: MaintainArguments, report: Report) -> int:
    """Maintains the selected tables."""
    for flag, days in (("--keep-days", arguments.keep_days), ("--history-days", arguments.history_days)):
        if days is not None and days < 0:
            raise RunnerError("usage", f'"{flag}" must be a number of days, not "{days}"')
    workspace = Workspace(arguments.project)
    nodes = workspace.chosen(arguments.selection, lambda node: bool(node.model and node.model.is_table))
    job = Job.of(workspace, "maintain", nodes)

    def work(parts: Parts) -> list[Result]:
        from runner.run.execute import maintain as maintain_nodes

        maintenance = parts.maintenance(arguments.keep_days, arguments.history_days)
        return maintain_nodes(nodes, maintenance, report, job.compiled_path)

    return run_locked(job, report, work)
