"""run, test, build: run the selected nodes, parents first, or land messages until a signal comes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from runner.commands.arguments import TRIGGER, Call, RunArguments
from runner.commands.repeat import repeatable
from runner.commands.session import session
from runner.errors import RunnerError
from runner.project.inputs import Deferred
from runner.project.nodes import Case, DataTest, FunctionTest, Node, UnitTest
from runner.project.project import unread
from runner.project.state import given_state, target_in
from runner.report import Report
from runner.run.results import Result
from runner.run.run import Run, Settings
from runner.run.schedule import Schedule
from runner.run.workspace import NOTHING, Wanted, Workspace

UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes"}


def run(arguments: RunArguments, report: Report) -> int:
    """Lands new messages and builds models."""
    if arguments.continuous:
        return _run_continuously(arguments, report)
    if arguments.trigger:
        hint = f"runner run --continuous --trigger {arguments.trigger}"
        raise RunnerError("usage", "--trigger is only for --continuous", hint=hint)
    return _execute("run", arguments, report, _is_model)


def _is_model(node: Node) -> bool:
    """Returns True if a node is a model that runs: an ephemeral one does not, since its readers run its query."""
    return node.resource_type == "model" and node.runs


def seed(arguments: RunArguments, report: Report) -> int:
    """Loads seeds."""
    return _execute("seed", arguments, report, lambda node: node.resource_type == "seed")


def test(arguments: RunArguments, report: Report) -> int:
    """Runs data tests, and unit tests of models, formats and functions."""

    def wanted(node: Node) -> bool:
        match node.subject:
            case DataTest():
                return not arguments.unit_only
            case UnitTest() | Case() | FunctionTest():
                return not arguments.data_only
        return False

    return _execute("test", arguments, report, wanted)


def build(arguments: RunArguments, report: Report) -> int:
    """Loads seeds, lands new messages, builds models and runs tests, in order."""
    return _execute("build", arguments, report, lambda node: node.runs)


COMMANDS: Mapping[str, Callable[[RunArguments, Report], int]] = {"run": run, "seed": seed, "test": test, "build": build}


def execute(call: Call, **flags: Any) -> int:
    """Runs the command of this name with the flags of the command line."""
    if flags.get("unit_only") and flags["data_only"]:
        raise RunnerError("usage", "argument --data: not allowed with argument --unit", hint="runner test --help")
    return COMMANDS[call.command](RunArguments(call.project, call.selection, **flags), call.report)


def _execute(command: str, arguments: RunArguments, report: Report, wanted: Wanted) -> int:
    """Runs the selected nodes, in order, and reports the results."""
    if arguments.threads < 1:
        raise RunnerError("usage", f'"--threads" must be at least 1, not "{arguments.threads}"')
    workspace = _workspace(arguments, report)
    nodes = _nodes(workspace, arguments, wanted)
    if not nodes:
        report.say(NOTHING)
        return 0
    run = Run(workspace, command, nodes, _settings(workspace, nodes, arguments))
    if run.settings.deferred:
        report.say(f'what is neither selected nor here is read at "{run.settings.deferred.target.path}"')
    with session(run, report, lambda: _reads_little(run, arguments)):
        run.results = _results(run, arguments, report)
        workspace = run.seen.project_now()
        for warning in workspace.mirrors.warnings:
            if warning not in run.workspace.mirrors.warnings:
                report.warn(warning)
        new = [] if workspace is run.workspace else _nodes(workspace, arguments, wanted)
        if new := [node for node in new if node.name not in run.graph.nodes]:
            with run.of_new_tables(workspace, new) as more:
                run.results += _results(more, arguments, report)
        for source in run.sources_landed:
            if without := workspace.unmirrored(run.seen.of(source)):
                report.warn(without)
    return run.exit_code


def _results(run: Run, arguments: RunArguments, report: Report) -> list[Result]:
    """Runs the nodes of a run in their order; returns their results."""
    from runner.run.execute import Execution

    do = Execution(run).run
    return Schedule(run.order, do, report, run.signals, arguments.threads, arguments.fail_fast).run()


def _workspace(arguments: RunArguments, report: Report) -> Workspace:
    """Returns the workspace, after warnings about files that nothing reads, and about tables without a mirror."""
    workspace = Workspace(arguments.project)
    for warning in (*unread(workspace.project.root), *workspace.mirrors.warnings):
        report.warn(warning)
    return workspace


def _nodes(workspace: Workspace, arguments: RunArguments, wanted: Wanted) -> list[Node]:
    """Returns the nodes to run."""
    if arguments.only is not None:
        nodes = workspace.in_order(arguments.only, lambda node: True)
    else:
        nodes = _with_tests(workspace, arguments, wanted)
    return [node for node in nodes if not (arguments.empty and _reads_messages(node))]


def _reads_messages(node: Node) -> bool:
    """Returns True if a node lands messages, or compares messages with what has landed."""
    return bool((node.model and node.model.source) or (node.data_test and node.data_test.source))


def _settings(workspace: Workspace, nodes: list[Node], arguments: RunArguments) -> Settings:
    """Returns the settings of a run, with the arguments with which it can be run again."""
    own = {node.name for node in nodes}
    deferred = deferred_tables(workspace, own, arguments.selection.state) if arguments.defer else None
    again = repeatable(arguments, workspace.project.target.name)
    return Settings(arguments.full_refresh, arguments.empty, deferred, again)


def _reads_little(run: Run, arguments: RunArguments) -> bool:
    """Returns True if a run reads few rows, as far as this machine sees them."""
    if arguments.empty or arguments.defer:
        return not arguments.defer
    from runner.run.job_size import is_small_job

    return is_small_job(run.nodes, run.graph, run.project.target, arguments.full_refresh)


def deferred_tables(workspace: Workspace, run: Collection[str], folder: Path | None) -> Deferred:
    """Returns the tables of the state, for all nodes that are not run; raises `defer-storage` if Spark is not set up to
    read them.
    """
    target, own = target_in(given_state(folder)), workspace.project.target
    if target.storage != own.storage:
        raise RunnerError(
            "defer-storage",
            f'the tables of the state are in {target.storage}, and those of the target "{own.name}" in {own.storage}',
            hint="compare with a run into the same storage",
        )
    return Deferred(target, frozenset(node.relation for name, node in workspace.graph.nodes.items() if name not in run))


def _with_tests(workspace: Workspace, arguments: RunArguments, wanted: Wanted) -> list[Node]:
    """Returns the nodes to run: those that are selected, and the tests of selected models."""
    names = workspace.selected_with_tests(arguments.selection)
    return workspace.in_order(names, wanted) or workspace.chosen(arguments.selection, wanted)


# --- until a signal comes


def _run_continuously(arguments: RunArguments, report: Report) -> int:
    """Lands the selected sources until a signal comes; the selected mirrors take in what lands."""
    for flag, is_given in (("--empty", arguments.empty), ("--defer", arguments.defer)):
        if is_given:
            raise RunnerError("usage", f'"{flag}" has no meaning together with "--continuous"')
    interval = spark_interval(arguments.trigger or TRIGGER)
    workspace = _workspace(arguments, report)
    models = workspace.chosen(arguments.selection, _is_model)
    sources = [node for node in models if node.model and node.model.source]
    mirrors = [node for node in models if node.model and node.model.mirror]
    others = [node.name for node in models if node.model and not node.model.source and not node.model.mirror]
    workspace.chosen(arguments.selection, lambda node: bool(node.model and node.model.source))
    if not models:
        report.say(NOTHING)
        return 0
    if others:
        report.say(f"only sources are landed continuously, and mirrors of them follow; left out: {', '.join(others)}")
    run = Run(workspace, "run --continuous", [*sources, *mirrors], Settings(arguments.full_refresh))
    with session(run, report):
        from runner.run.continuous import Continuous

        run.results = Continuous(run, report, interval, arguments.fail_fast).run()
    return run.exit_code


def spark_interval(text: str) -> str:
    """Returns the interval of a trigger as Spark writes it; raises `usage` for a text that is no time.

    >>> spark_interval("500ms"), spark_interval("10s"), spark_interval("2m")
    ('500 milliseconds', '10 seconds', '2 minutes')
    """
    found = re.fullmatch(r"([1-9][0-9]{0,5})(ms|s|m)", text)
    if not found:
        raise RunnerError("usage", f'"--trigger" must be a time, not "{text}"', hint="such as 500ms, 10s or 2m")
    return f"{found[1]} {UNITS[found[2]]}"
