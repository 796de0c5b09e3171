"""run, test, seed, build, retry: run the selected nodes, parents first, or land messages until a signal comes."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from runner.commands.arguments import METRICS_HOST, TRIGGER, Call, RunArguments
from runner.commands.session import session
from runner.counts import counted
from runner.errors import RunnerError
from runner.project.inputs import Deferred
from runner.project.masks import unmatched
from runner.project.node_results import NodeResults
from runner.project.nodes import TESTS, Node
from runner.project.project import unread
from runner.project.state import (
    RESULTS,
    given_state,
    read_artifact,
    statuses_in,
    target_in,
    unique_id,
    unreadable,
)
from runner.report import Report
from runner.run.inventory import LOCAL_DIRS
from runner.run.metrics import Metrics
from runner.run.notifications import Notifier
from runner.run.openlineage import LineageEvents
from runner.run.recording import Recorder
from runner.run.results import Result
from runner.run.run import Run, Settings
from runner.run.schedule import Schedule
from runner.run.unchanged import Unchanged
from runner.run.workspace import NOTHING, ProjectArguments, Selection, Workspace

# Command -> the types of the nodes that it runs.
RESOURCE_TYPES = {"run": {"model"}, "seed": {"seed"}, "test": {*TESTS}, "build": {"seed", "model", *TESTS}}
# Arguments that run_results.json keeps as they are, so that a run can be run again.
KEPT = ("threads", "fail_fast", "full_refresh", "accept_loss", "unit_only", "data_only", "empty", "defer")
AGAIN = ("error", "fail", "skipped")
# What a run says in place of "starting Spark".
NOT_NEEDED = "nothing has changed since the last run: Spark is not needed"
UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes"}


def execute(call: Call, **flags: Any) -> int:
    """Runs the command of this name with the flags of the command line."""
    if flags.get("unit_only") and flags["data_only"]:
        raise RunnerError("usage", "argument --data: not allowed with argument --unit", hint="runner test --help")
    local_dirs = call.environment.get(LOCAL_DIRS)
    return run_nodes(
        call.command, RunArguments(call.project, call.selection, local_dirs=local_dirs, **flags), call.report
    )


def run_nodes(command: str, arguments: RunArguments, report: Report) -> int:
    """Runs the selected nodes that a command runs, in order, and reports the results."""
    if arguments.continuous:
        return _run_continuously(arguments, report)
    if arguments.trigger:
        hint = f"runner run --continuous --trigger {arguments.trigger}"
        raise RunnerError("usage", "--trigger is only for --continuous", hint=hint)
    for flag, value in (("--metrics-port", arguments.metrics_port), ("--metrics-host", arguments.metrics_host)):
        if value is not None:
            hint = f"runner run --continuous {flag} {value}; or --metrics FILE"
            raise RunnerError("usage", f"{flag} is only for --continuous", hint=hint)
    if arguments.threads < 1:
        raise RunnerError("usage", f'"--threads" must be at least 1, not "{arguments.threads}"')
    workspace = _workspace(arguments, report)
    nodes = _nodes(workspace, command, arguments)
    if not nodes:
        report.say(NOTHING)
        return 0
    run = Run(workspace, command, nodes, _settings(workspace, nodes, arguments))
    if run.settings.deferred:
        report.say(f'what is neither selected nor here is read at "{run.settings.deferred.target.path}"')
    metrics = Metrics(arguments.metrics, arguments.local_dirs, report.warn)
    notifier, events = Notifier(run, report.warn, report.say), LineageEvents(run, report.warn)
    unchanged = Unchanged(run)
    with notifier.at_end(), events.of_run(), metrics.of(run):
        with session(run, report, may_be_small=True, unless=unchanged.is_so) as is_needed:
            if is_needed:
                land_and_build(run, command, arguments, report, notifier, events)
                unchanged.record(report.warnings)
            else:
                report.say(NOT_NEEDED)
                recorder = Recorder(run, report, report.warn, saw=notifier.saw, events=events)
                run.results = Schedule(run.order, unchanged.result, recorder, run.signals).run()
    NodeResults(run.project).keep_only(run.graph.nodes.values())
    return run.exit_code


def land_and_build(
    run: Run,
    command: str,
    arguments: RunArguments,
    report: Report,
    notifier: Notifier | None = None,
    events: LineageEvents | None = None,
) -> None:
    """Runs the nodes of a run in its session, and those of tables that the run has met; sets the results."""
    run.results = _results(run, arguments, report, notifier, events)
    workspace = run.seen.project_now()
    for warning in workspace.mirrors.warnings:
        if warning not in run.workspace.mirrors.warnings:
            report.warn(warning)
    new = [] if workspace is run.workspace else _nodes(workspace, command, arguments)
    if new := [node for node in new if node.name not in run.graph.nodes]:
        with run.of_new_tables(workspace, new) as more:
            run.results += _results(more, arguments, report, notifier, events)
    for source in run.sources_landed:
        if without := workspace.unmirrored(run.seen.of(source)):
            report.warn(without)
    failed = {result.name for result in run.results if result.has_failed}
    for source in run.sources_masked:
        for warning in unmatched(source, run.seen.look(source)) if source.model not in failed else ():
            report.warn(warning)


def _results(
    run: Run, arguments: RunArguments, report: Report, notifier: Notifier | None, events: LineageEvents | None
) -> list[Result]:
    """Runs the nodes of a run in their order; returns their results."""
    from runner.run.execute import Execution

    do = Execution(run).run
    recorder = Recorder(run, report, report.warn, saw=notifier.saw if notifier else None, events=events)
    return Schedule(run.order, do, recorder, run.signals, arguments.threads, arguments.fail_fast).run()


def _workspace(arguments: RunArguments, report: Report) -> Workspace:
    """Returns the workspace, after warnings about files that nothing reads, and about tables without a mirror."""
    workspace = Workspace(arguments.project)
    for warning in (*unread(workspace.project.root), *workspace.mirrors.warnings):
        report.warn(warning)
    return workspace


def _nodes(workspace: Workspace, command: str, arguments: RunArguments) -> list[Node]:
    """Returns the nodes to run: those that are selected, and the tests of selected models."""
    if arguments.only is not None:
        nodes = workspace.in_order(arguments.only)
    else:
        types = {"unit_test"} if arguments.unit_only else {"test"} if arguments.data_only else RESOURCE_TYPES[command]
        names, wanted = workspace.selected_with_tests(arguments.selection), partial(_is_run, types)
        nodes = workspace.in_order(names, wanted) or workspace.chosen(arguments.selection, wanted)
    return [node for node in nodes if not (arguments.empty and _reads_messages(node))]


def _is_run(types: Collection[str], node: Node) -> bool:
    """Returns True if a node of these types runs: an ephemeral model does not, since its readers run its query."""
    return node.resource_type in types and node.runs


def _reads_messages(node: Node) -> bool:
    """Returns True if a node lands messages, or compares messages with what has landed."""
    return bool((node.model and node.model.source) or (node.data_test and node.data_test.source))


def _settings(workspace: Workspace, nodes: list[Node], arguments: RunArguments) -> Settings:
    """Returns the settings of a run, with the arguments with which it can be run again, as JSON keeps them."""
    own, selection = {node.name for node in nodes}, arguments.selection
    deferred = deferred_tables(workspace, own, selection.state) if arguments.defer else None
    again = {
        "target": workspace.project.target.name,
        "vars": dict(arguments.project.variables),
        "select": list(selection.select),
        "exclude": list(selection.exclude),
        "selector": selection.selector,
        "state": str(selection.state.absolute()) if selection.state else None,
        **{name: getattr(arguments, name) for name in KEPT},
    }
    return Settings(arguments.full_refresh, arguments.empty, deferred, arguments.accept_loss, again)


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


# --- until a signal comes


def _run_continuously(arguments: RunArguments, report: Report) -> int:
    """Lands the selected sources until a signal comes; the selected mirrors take in what lands."""
    for flag, is_given in (("--empty", arguments.empty), ("--defer", arguments.defer)):
        if is_given:
            raise RunnerError("usage", f'"{flag}" has no meaning together with "--continuous"')
    interval = spark_interval(arguments.trigger or TRIGGER)
    workspace = _workspace(arguments, report)
    models = workspace.chosen(arguments.selection, partial(_is_run, RESOURCE_TYPES["run"]))
    sources = workspace.chosen(arguments.selection, _lands)
    mirrors = [node for node in models if node.model and node.model.mirror]
    others = [node.name for node in models if node.model and not node.model.source and not node.model.mirror]
    if not models:
        report.say(NOTHING)
        return 0
    if others:
        report.say(f"only sources are landed continuously, and mirrors of them follow; left out: {', '.join(others)}")
    run = Run(
        workspace,
        "run --continuous",
        [*sources, *mirrors],
        Settings(arguments.full_refresh, accepts_loss=arguments.accept_loss),
    )
    metrics = Metrics(arguments.metrics, arguments.local_dirs, report.warn)
    host = arguments.metrics_host or METRICS_HOST
    notifier, events = Notifier(run, report.warn, report.say), LineageEvents(run, report.warn)
    served = metrics.served(run, host, arguments.metrics_port)
    with notifier.at_end(), events.of_run(), metrics.of(run), served, session(run, report):
        from runner.run.continuous import Continuous

        recorder = Recorder(run, report, report.warn, partial(metrics.write, run), notifier.saw_batch, events)
        run.results = Continuous(run, recorder, interval, arguments.fail_fast).run()
    return run.exit_code


def _lands(node: Node) -> bool:
    return bool(node.model and node.model.source)


def spark_interval(text: str) -> str:
    """Returns the interval of a trigger as Spark writes it; raises `usage` for a text that is no time.

    >>> spark_interval("500ms"), spark_interval("10s"), spark_interval("2m")
    ('500 milliseconds', '10 seconds', '2 minutes')
    """
    found = re.fullmatch(r"([1-9][0-9]{0,5})(ms|s|m)", text)
    if not found:
        raise RunnerError("usage", f'"--trigger" must be a time, not "{text}"', hint="such as 500ms, 10s or 2m")
    return f"{found[1]} {UNITS[found[2]]}"


# --- once more


def retry(call: Call) -> int:
    """Runs the last command again, with its flags, for the nodes that failed or were skipped, and for the models that
    were built without rows of such nodes.
    """
    workspace = Workspace(call.project)
    folder = workspace.project.target_path
    command = _command(folder)
    names = _again(workspace, statuses_in(folder))
    if not names:
        call.report.say("nothing to do: nothing has failed in the last run")
        return 0
    try:
        arguments = _repeated(read_artifact(folder, RESULTS)["args"], call.project, names)
    except (KeyError, TypeError):
        raise unreadable(folder / RESULTS, "it does not say how it was run") from None
    call.report.say(f'"{command}" again, of {counted(len(names), "node")}')
    return run_nodes(command, arguments, call.report)


def _command(folder: Path) -> str:
    """Returns the last command; raises `retry-command` for a command that cannot be run again."""
    how = read_artifact(folder, RESULTS).get("args")
    command = how.get("which") if isinstance(how, dict) else None
    if not isinstance(command, str):
        raise unreadable(folder / RESULTS, "it does not say how it was run")
    if command not in RESOURCE_TYPES:
        message = f'"{command}" cannot be run again in part'
        raise RunnerError("retry-command", message, hint=f"runner {command}")
    return command


def _repeated(kept: Mapping[str, Any], project: ProjectArguments, only: tuple[str, ...]) -> RunArguments:
    """Returns the arguments that were kept, for these nodes only; the target and the variables of `project` win over
    those that were kept. Raises KeyError or TypeError for arguments that were not kept by this version.
    """
    again = replace(project, target=project.target or kept["target"], variables={**kept["vars"], **project.variables})
    state = Path(kept["state"]) if kept["state"] else None
    selection = Selection(tuple(kept["select"]), tuple(kept["exclude"]), state, kept["selector"])
    return RunArguments(again, selection, only=only, **{name: kept[name] for name in KEPT})


def _again(workspace: Workspace, statuses: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the names of the nodes to run again, among those that are still there."""
    graph = workspace.graph
    ended = {name: statuses.get(unique_id(workspace.project, node)) for name, node in graph.nodes.items()}
    again = {name for name, status in ended.items() if status in AGAIN}
    # Views of all sources, and the models that read them, are built although a source has failed.
    incomplete = {name for name in graph.downstream(again) if ended[name] == "warn" and graph.nodes[name].model}
    return tuple(sorted(again | incomplete))
