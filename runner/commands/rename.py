"""rename: what is kept of a source, a mirror or a model under an old name goes on under the name that it has now."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from runner.commands.arguments import Call
from runner.commands.session import session, session_to_read
from runner.errors import RunnerError, nearest_or_all
from runner.project.inputs import CHANGELOG
from runner.project.mirror import HISTORY
from runner.project.nodes import Graph, Model, Node
from runner.run.run import Run
from runner.run.workspace import Workspace

if TYPE_CHECKING:
    from runner.engine.renames import Rename


def rename(call: Call, old: str, new: str, dry_run: bool) -> int:
    """Renames the tables of a target as `renamed_from` does, at once; with `dry_run` only says which. Raises
    `rename-name` unless the project has the new name and no longer the old one.
    """
    workspace = Workspace(call.project)
    nodes = _tables_of(workspace.graph, new)
    if not nodes:
        known = {_shown(node) for node in workspace.graph.nodes.values() if _has_table(node)}
        message = f'the project has no source, mirror or model with a table "{new}"'
        raise RunnerError("rename-name", message, hint=nearest_or_all(new, known))
    if still := _tables_of(workspace.graph, old):
        message = f'the project still has "{old}"'
        raise RunnerError("rename-name", message, still[0].where, f"name it {new} here first")
    asked = {node.name: _asked(node, old, new) for node in nodes}
    workspace.graph = Graph({**workspace.graph.nodes, **asked}, workspace.graph.project, workspace.graph.disabled)
    run = Run(workspace, "rename", [])
    done = _renamed(run, call, dry_run)
    if not [one for one in done if one.new in {node.relation for node in nodes}]:
        message = f'there is no table "{old}" in "{run.project.target.path}", or it has its new name'
        raise RunnerError("rename-name", message, hint="runner ls --orphans lists tables without a node")
    for node in nodes:
        if node.model and node.model.renamed_from:
            call.report.say(f"renamed_from at {node.where} is for other targets now: this one does not need it")
    return 0


def _renamed(run: Run, call: Call, dry_run: bool) -> list[Rename]:
    with (session_to_read if dry_run else session)(run, call.report):
        done = run.renames.waiting() if dry_run else run.renames.done
    for one in done:
        for old, new in one.tables:
            call.report.payload(f"{old} -> {new}")
    return done


def _asked(node: Node, old: str, new: str) -> Node:
    """Returns a node whose table had the old name where it has the new one now."""
    assert node.model
    former = f"{old}{node.relation.removeprefix(new)}"
    return replace(node, subject=replace(node.model, renamed_from=(former,)))


def _tables_of(graph: Graph, name: str) -> list[Node]:
    """Returns the nodes with tables that a name stands for: a source, a mirror with its history, or a model."""
    relations = {name, f"{name}{CHANGELOG}"}
    found = [node for node in graph.nodes.values() if _has_table(node) and node.relation in relations]
    has_history = any(node.model and node.model.mirror for node in found)
    history = graph.nodes.get(f"{name}{HISTORY}")
    return [*found, *([history] if has_history and history and history.model and history.model.mirror else [])]


def _has_table(node: Node) -> bool:
    return isinstance(node.subject, Model) and node.subject.is_table and not node.subject.seed


def _shown(node: Node) -> str:
    return node.model.source.name if node.model and node.model.source else node.relation
