"""maintain: compacts tables and removes what is no longer needed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from runner.commands.arguments import Call
from runner.commands.session import session
from runner.errors import RunnerError
from runner.project.nodes import Graph, Node
from runner.run.results import Result
from runner.run.run import Run
from runner.run.schedule import Order, Schedule
from runner.run.workspace import NOTHING, Workspace

if TYPE_CHECKING:
    from runner.engine.maintenance import Maintenance
    from runner.run.execute import Execution


def maintain(call: Call, keep_days: int | None, history_days: int) -> int:
    """Maintains the selected tables; keeps their rows for `keep_days` (None: for ever) and old versions for
    `history_days`.
    """
    for flag, days in (("--keep-days", keep_days), ("--history-days", history_days)):
        if days is not None and days < 0:
            raise RunnerError("usage", f'"{flag}" must be a number of days, not "{days}"')
    workspace = Workspace(call.project)
    nodes = workspace.chosen(call.selection, lambda node: bool(node.model and node.model.is_table))
    if not nodes:
        call.report.say(NOTHING)
        return 0
    run = Run(workspace, "maintain", nodes)
    with session(run, call.report):
        from runner.engine.maintenance import Maintenance
        from runner.run.execute import Execution

        execution = Execution(run)
        maintenance = Maintenance(run.tables, partial(_readers, run.graph), keep_days, history_days)
        # Tables that are maintained do not depend on each other.
        order = Order(Graph({node.name: replace(node, parents=()) for node in nodes}), [node.name for node in nodes])
        do = partial(_maintained, execution, maintenance)
        run.results = Schedule(order, do, call.report, run.signals).run()
    return run.exit_code


def _maintained(execution: Execution, maintenance: Maintenance, node: Node) -> Result:
    def maintain(node: Node) -> Result:
        notes = maintenance.maintain(node.relation, bool(node.model and node.model.source))
        return Result(node.name, "model", "success", notes=notes)

    return execution.timed(node, maintain)


def _readers(graph: Graph, changelog: str) -> list[Node]:
    """Returns the models whose tables record how far they have read a changelog."""
    nodes = (graph.nodes[name] for name in sorted(graph.downstream({changelog})))
    return [node for node in nodes if node.model and (node.model.new_rows or node.model.mirror)]
