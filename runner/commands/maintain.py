"""maintain: compacts tables and removes what is no longer needed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from runner.commands.arguments import MaintainArguments
from runner.commands.job import Job, run_locked
from runner.commands.workspace import NOTHING, Workspace
from runner.errors import RunnerError
from runner.project.graph import Graph
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
    if not nodes:
        report.say(NOTHING)
        return 0
    job = Job.of(workspace, "maintain", nodes)

    def work(parts: Parts) -> list[Result]:
        from runner.run.execute import maintained
        from runner.run.schedule import Schedule

        maintenance = parts.maintenance(arguments.keep_days, arguments.history_days)
        # Of tables that are maintained none depends on another.
        graph = Graph({node.name: replace(node, parents=()) for node in nodes})
        return Schedule(
            graph,
            graph.nodes,
            lambda node: maintained(node, maintenance, job.places.of),
            parts.spark.cancel,
            report,
            stops=lambda: parts.signals.count,
        ).run()

    return run_locked(job, report, work)
