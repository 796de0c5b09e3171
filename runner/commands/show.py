"""show: the rows of a model or a query, from the tables as they are."""

from __future__ import annotations

from pathlib import Path

from runner.commands.arguments import Call
from runner.commands.run import deferred_tables
from runner.commands.session import session_to_read
from runner.errors import RunnerError, RunnerWarning, Where
from runner.project.nodes import Model, Node
from runner.project.sql_analysis import tables_read
from runner.render import name as quoted
from runner.run.run import Run, Settings
from runner.run.workspace import Selection, Workspace


def show(call: Call, inline: str | None, limit: int, output: str, defer: bool) -> int:
    """Prints the first rows of a model, or those that fail a data test, from the tables as they are now."""
    workspace, report = Workspace(call.project), call.report
    node = _inline(workspace, inline) if inline else _one_model(workspace, call.selection)
    deferred = deferred_tables(workspace, (), call.selection.state) if defer else None
    run = Run(workspace, "show", [node], Settings(deferred=deferred))
    with session_to_read(run, report):
        from runner.engine.errors import QueryFailed
        from runner.run.execute import ErrorLocations

        try:
            with report.during(f"reading {node.name}"):
                for note in run.views.prepare(node.name):
                    report.warn(RunnerWarning("source-unreadable", note))
                run.views.make(node)
                columns, rows = run.spark.rows(run.macro("all_rows", quoted(node.relation)), limit)
        except QueryFailed as failure:
            report.query_failed(f"{failure.message}{ErrorLocations(run).of(node, failure)}")
            return 1
    if output == "json":
        report.json_lines(rows)
    else:
        report.table(columns, rows)
    return 0


def _one_model(workspace: Workspace, selection: Selection) -> Node:
    if not selection.text:
        raise RunnerError("usage", "show needs -s MODEL or --inline SQL")
    nodes = workspace.chosen(selection, _has_rows)
    if len(nodes) > 1:
        names = ", ".join(node.name for node in nodes[:5])
        raise RunnerError("usage", f"show takes one model or test, and {len(nodes)} are selected: {names}")
    if not nodes:
        raise RunnerError("selector-empty", f'nothing to show: "{selection.text}" selects no model or test')
    return nodes[0]


def _has_rows(node: Node) -> bool:
    """Returns True if a node is a model, or a test that needs nothing but tables: its rows are those that fail."""
    test = node.data_test
    return bool(node.model or (test and not test.source and not test.mirror))


def _inline(workspace: Workspace, text: str) -> Node:
    """Returns a model of the graph with the query of --inline, which reads the models that it names with or without
    ref().
    """
    sql, reading = workspace.templates.expand(text, Where(Path("--inline")))
    nodes = {node.relation: name for name, node in workspace.graph.nodes.items() if node.model or node.writes_table}
    read = (nodes[relation] for relation in tables_read(sql, nodes))
    node = Node("inline", "model", Model(sql, "view"), tuple(dict.fromkeys([*reading.parents, *read])))
    workspace.graph = workspace.graph.with_node(node)
    return node
