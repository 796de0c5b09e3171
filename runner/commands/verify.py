"""verify: compares mirrors with the tables of their database, or with files of their rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from runner.commands.arguments import Call
from runner.commands.session import session_to_compare
from runner.errors import RunnerError, RunnerWarning
from runner.project.databases import Database, Dump, read_place
from runner.project.dumps import read_instant
from runner.project.inputs import Place
from runner.project.mirror import MirrorQuery
from runner.project.nodes import DataTest, Node
from runner.project.variables import Filler
from runner.report import Report
from runner.run.repairs import why_refused
from runner.run.results import Result
from runner.run.run import Run
from runner.run.verified import DIFFERENCES, VERIFIED
from runner.run.workspace import NOTHING, Workspace


def verify(
    call: Call,
    against: str,
    user: str | None,
    password_env: str | None,
    changed_column: str | None,
    parallel: int,
    rows: int,
    show_values: bool,
    repair: bool,
    dry_run: bool,
    taken_at: str | None,
) -> int:
    """Compares the selected mirrors, and may write repairs of them; returns 1 if one differs from its table, or if none
    could be compared.
    """
    for flag, number in (("--parallel", parallel), ("--rows", rows)):
        if number < 1:
            raise RunnerError("usage", f'"{flag}" must be at least 1, not "{number}"')
    for flag, is_given in (("--dry-run", dry_run), ("--taken-at", taken_at)):
        if is_given and not repair:
            raise RunnerError("usage", f'"{flag}" is for repairs', hint=f"--repair {flag}")
    workspace = Workspace(call.project)
    nodes = workspace.chosen(call.selection, _is_state)
    if not nodes:
        call.report.say(NOTHING)
        return 0
    project = workspace.project
    mirrors = [node.model.mirror for node in nodes if node.model and node.model.mirror]
    filler = Filler(project.vars, project.target, project.secrets)
    place = read_place(against, user, password_env, mirrors, filler)
    options = {"parallel": parallel, "rows": rows, "changed": changed_column or "", "shows_values": show_values}
    if repair:
        options |= {"repairs": True, "writes": not dry_run, "taken_at": _taken_at(place, taken_at)}
        _check_repaired(nodes, call.report)
    results = _verified(Run(workspace, "verify", nodes), place, options, call.report)
    code = int(any(result.has_failed for result in results) or all(result.status == "warn" for result in results))
    call.report.done(results, sum(result.seconds for result in results), code)
    return code


def _taken_at(place: Database | Dump, text: str | None) -> str:
    """Returns the instant of the files of a dump, an empty text for a database; raises `verify-repair`."""
    hint = "--taken-at 2026-11-28T10:00:00Z: an instant at which the rows were as the files have them"
    if isinstance(place, Database):
        if text:
            raise RunnerError("verify-repair", '"--taken-at" is for files: a database is as it is now')
        return ""
    if not text:
        message = "a file does not tell which changes it has: repairs need the instant at which it was taken"
        raise RunnerError("verify-repair", message, hint=hint)
    instant = read_instant(text)
    if instant is None:
        raise RunnerError("verify-repair", f'"{text}" is no time with its zone', hint=hint)
    return Place("time", time=instant).instant


def _check_repaired(nodes: Iterable[Node], report: Report) -> None:
    """Warns of each mirror that cannot be repaired; raises `verify-repair` if none can be."""
    refused = [(node, why_refused(node.model.mirror)) for node in nodes if node.model and node.model.mirror]
    if all(why for _, why in refused):
        node, why = refused[0]
        assert why
        raise RunnerError("verify-repair", f'"{node.name}" cannot be repaired: {why[0]}', node.where, why[1])
    for node, why in refused:
        if why:
            report.warn(
                RunnerWarning("not-repaired", f'"{node.name}" cannot be repaired: {why[0]}', node.where, why[1])
            )


def _is_state(node: Node) -> bool:
    """Returns True if a node is a mirror that shows its table as it is now."""
    query = node.model and node.model.query
    return isinstance(query, MirrorQuery) and query.shows == "state"


def _verified(run: Run, place: Database | Dump, options: dict[str, Any], report: Report) -> list[Result]:
    """Compares the mirrors of a run one after the other, and keeps what was found, also of an interrupted command."""
    from runner.run.verify import Options, Verification

    for table in (VERIFIED, DIFFERENCES):
        if owner := next((node for node in run.graph.nodes.values() if node.model and table in node.relations), None):
            hint = "give it another name: runner verify keeps its results in a table of this name"
            raise RunnerError("name-taken", f'the name "{table}" is taken by "{owner.name}"', owner.where, hint)
    results: list[Result] = []
    with session_to_compare(run, report, (VERIFIED, DIFFERENCES)):
        from runner.run.execute import Execution

        execution, verification = Execution(run), Verification(run, place, Options(**options))
        try:
            for number, node in enumerate(run.nodes, start=1):
                test = Node(f"verified_{node.name}", "test", DataTest("verified", node.name))
                report.started(test, number, len(run.nodes))
                result = replace(execution.timed(node, verification.verify), name=test.name, resource_type="test")
                for warning in verification.warnings:
                    report.warn(warning)
                verification.warnings.clear()
                results.append(result)
                report.finished(test, result, number, len(run.nodes))
        finally:
            verification.keep()
    return results
