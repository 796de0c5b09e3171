"""source freshness: measures how old the newest row of each source is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner import artifacts
from runner.commands.arguments import Call
from runner.commands.session import session_to_read
from runner.project.inputs import ExternalTable, Source
from runner.project.nodes import Node
from runner.run.run import Run
from runner.run.workspace import NOTHING, Workspace

if TYPE_CHECKING:
    from runner.run.results import Result


def freshness(call: Call, action: str) -> int:
    """Measures the selected sources and writes target/sources.json; returns 1 if a source is older than it may be."""
    workspace = Workspace(call.project)
    nodes = workspace.chosen(call.selection, _has_age)
    if not nodes:
        call.report.say(NOTHING)
        return 0
    run = Run(workspace, "source freshness", [_landing(workspace, node) for node in nodes])
    with session_to_read(run, call.report):
        from runner.run.execute import Execution
        from runner.run.freshness import SourceAges

        ages, execution = SourceAges(run), Execution(run)
        results: list[Result] = []
        for number, node in enumerate(nodes, start=1):
            results.append(execution.timed(node, ages.measure))
            call.report.finished(node, results[-1], number, len(nodes))
    artifacts.write_ages(workspace.project, workspace.graph, results, ages.found)
    call.report.done(results)
    return 1 if any(result.has_failed for result in results) else 0


def _has_age(node: Node) -> bool:
    """Returns True if a node is a source of messages, or a table that declares when its rows came."""
    return isinstance(node.subject, Source) or (
        isinstance(node.subject, ExternalTable) and bool(node.subject.loaded_at)
    )


def _landing(workspace: Workspace, node: Node) -> Node:
    """Returns the node whose SQL is needed to see the rows of a source."""
    return workspace.graph.nodes[node.subject.model] if isinstance(node.subject, Source) else node
