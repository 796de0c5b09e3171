"""maintain: compacts tables and removes what is no longer needed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from runner.commands.arguments import Call
from runner.commands.job import Job, run_locked
from runner.commands.workspace import NOTHING, Workspace
from runner.errors import RunnerError
from runner.project.graph import Graph
from runner.run.results import Result

if TYPE_CHECKING:
    from runner.run.parts import Parts


def maintain(call: Call, keep_days: int | None, history_days: int) -> int:
    """Maintains the selected tables; their rows (None: for ever) and old versions are kept for so many days."""
    for flag, days in (("--keep-days", keep_days), ("--history-days", history_days)):
        if days is not None and days < 0:
            raise RunnerError("usage", f'"{flag}" must be a number of days, not "{days}"')
    workspace = Workspace(call.project)
    nodes = workspace.chosen(call.selection, lambda node: bool(node.model and node.model.is_table))
    if not nodes:
        call.report.say(NOTHING)
        return 0
    job = Job.of(workspace, "maintain", nodes)

    def work(parts: Parts) -> list[Result]:
        from runner.run.execute import maintained
        from runner.run.schedule import Schedule

        maintenance = parts.maintenance(keep_days, history_days)
        # Of tables that are maintained none depends on another.
        graph = Graph({node.name: replace(node, parents=()) for node in nodes})
        return Schedule(
            graph,
            graph.nodes,
            lambda node: maintained(node, maintenance, job.places.of),
            parts.spark.cancel,
            call.report,
            stops=lambda: parts.signals.count,
        ).run()

    return run_locked(job, call.report, work)
