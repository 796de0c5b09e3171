"""docs generate: a page about everything in the project, for a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.commands.arguments import Call
from runner.compile.library import Library
from runner.compile.nodes import compile_nodes
from runner.errors import RunnerWarning
from runner.files import write_whole
from runner.project.nodes import DataTest, Model, Node, SourcesView
from runner.report import Report
from runner.run.workspace import Workspace
from runner.site.page import Landed, page, site_data, site_path

if TYPE_CHECKING:
    from runner.run.run import Run

OVER_TIME = "landed_over_time"
NOT_READ = "not read: the page was made with --no-tables"


def generate(call: Call, action: str, no_tables: bool) -> int:
    """Writes target/docs/index.html and prints its path."""
    workspace = Workspace(call.project)
    project, graph = workspace.project, workspace.graph
    nodes = [node for node in graph.nodes.values() if isinstance(node.subject, (Model, DataTest))]
    compiled = compile_nodes(nodes, workspace.templates, workspace.formats, Library(workspace.templates.renderer))
    reads = not no_tables and bool(project.sources)
    landed: Landed = _read(workspace, call.report) if reads else ([], [], NOT_READ)
    data = site_data(project, graph, compiled, workspace.formats, landed)
    path = site_path(project)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, page(data, project.secrets))
    call.report.payload(str(path))
    return 0


def _read(workspace: Workspace, report: Report) -> Landed:
    """Reads what the page shows of the tables of sources; a table that cannot be read gives a warning, and a text on
    the page.
    """
    from runner.commands.session import session_to_read
    from runner.engine.errors import QueryFailed
    from runner.run.run import Run

    sources = workspace.project.sources
    over_time = Node(
        OVER_TIME, "model", Model(SourcesView(OVER_TIME, sources), "view"), tuple(source.model for source in sources)
    )
    graph = workspace.graph
    workspace.graph = graph.with_node(over_time)
    try:
        run = Run(workspace, "docs", [graph.nodes["freshness"], over_time])
        with session_to_read(run, report), report.during("reading what has landed"):
            freshness, numbers = (_rows(run, node, report) for node in run.nodes)
    except QueryFailed as failure:
        report.warn(RunnerWarning("source-unreadable", failure.message))
        return [], [], failure.message
    finally:
        workspace.graph = graph
    return freshness, numbers, ""


def _rows(run: Run, node: Node, report: Report) -> list[dict[str, object]]:
    for note in run.views.prepare(node.name):
        report.warn(RunnerWarning("source-unreadable", note))
    return run.spark.rows(run.compiled.nodes[node.name].sql)[1]
