"""show, source freshness, maintain: commands about tables as they are. No node runs."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner import artifacts
from runner.commands.arguments import Call
from runner.commands.run import deferred_tables
from runner.commands.session import session, session_to_read
from runner.errors import RunnerError, RunnerWarning, Where
from runner.project.inputs import ExternalTable, Freshness, Source
from runner.project.nodes import Graph, Model, Node
from runner.render import name as quoted
from runner.run.recording import Recorder
from runner.run.results import Result
from runner.run.run import Run, Settings
from runner.run.schedule import Order, Schedule
from runner.run.verified import COLUMNS, show_results
from runner.run.workspace import NOTHING, Selection, Workspace

if TYPE_CHECKING:
    from runner.engine.errors import QueryFailed


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
                _show_results(run, node)
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


def _show_results(run: Run, node: Node) -> None:
    """Creates views of the tables of `runner verify`, if the query of the command line reads them."""
    from runner.project.sql_analysis import tables_read

    query = node.model and node.model.query
    # Only a query that names such a table is parsed.
    named = [table for table in COLUMNS if table in query] if isinstance(query, str) else []
    for table in tables_read(str(query), named) if named else ():
        if table not in node.parents:
            show_results(run.tables, table)


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
    from runner.project.sql_analysis import tables_read

    sql, reading = workspace.templates.expand(text, Where(Path("--inline")))
    nodes = {node.relation: name for name, node in workspace.graph.nodes.items() if node.model or node.writes_table}
    read = (nodes[relation] for relation in tables_read(sql, nodes))
    node = Node("inline", "model", Model(sql, "view"), tuple(dict.fromkeys([*reading.parents, *read])))
    workspace.graph = workspace.graph.with_node(node)
    return node


# --- source freshness

# The newest row of a source: `newest`, an instant as ISO 8601 in UTC, and `age` in seconds; both are
# None where there are no rows.
Newest = dict[str, Any]
# The errors that Spark raises for a missing table or folder, or for a missing schema or catalog.
NOT_THERE = re.compile(
    r"\[(TABLE_OR_VIEW_NOT_FOUND|SCHEMA_NOT_FOUND|CATALOG_NOT_FOUND|PATH_NOT_FOUND"
    r"|DELTA_MISSING_DELTA_TABLE|DELTA_PATH_DOES_NOT_EXIST|DELTA_TABLE_NOT_FOUND)"
)


def freshness(call: Call, action: str) -> int:
    """Measures the selected sources and writes target/sources.json; returns 1 if a source is older than it may be."""
    workspace = Workspace(call.project)
    nodes = workspace.chosen(call.selection, _has_age)
    if not nodes:
        call.report.say(NOTHING)
        return 0
    run = Run(workspace, "source freshness", [_landing(workspace, node) for node in nodes])
    ages: dict[str, Newest] = {}
    results: list[Result] = []
    with session_to_read(run, call.report):
        from runner.run.execute import Execution

        execution = Execution(run)
        for number, node in enumerate(nodes, start=1):
            results.append(execution.timed(node, partial(_measured, run, ages)))
            call.report.finished(node, results[-1], number, len(nodes))
    artifacts.write_ages(workspace.project, workspace.graph, results, ages)
    code = 1 if any(result.has_failed for result in results) else 0
    call.report.done(results, sum(result.seconds for result in results), code)
    return code


def _has_age(node: Node) -> bool:
    """Returns True if a node is a source of messages, or a table that declares when its rows came."""
    return isinstance(node.subject, Source) or (
        isinstance(node.subject, ExternalTable) and bool(node.subject.loaded_at)
    )


def _landing(workspace: Workspace, node: Node) -> Node:
    """Returns the node whose SQL is needed to see the rows of a source."""
    return workspace.graph.nodes[node.subject.model] if isinstance(node.subject, Source) else node


def _measured(run: Run, ages: dict[str, Newest], node: Node) -> Result:
    """Compares the age of a source with the age that is allowed, and adds it to `ages`; raises QueryFailed."""
    from runner.engine.errors import telling

    match node.subject:
        case ExternalTable() as table:
            rows, loaded_at, freshness = run.macro("external_table", table).strip(), table.loaded_at, table.freshness
        case Source() as source:
            run.views.make(run.graph.nodes[source.model])
            rows, loaded_at, freshness = quoted(source.model), run.macro("sent_at").strip(), source.freshness
        case _:
            raise AssertionError(f"{node.name} is no source")
    with telling(partial(_tell_missing, node)):
        (age,) = run.spark.rows(run.macro("age_of", rows, loaded_at, freshness.filter))[1]
    ages[node.name] = age
    return Result(node.name, "source", _status_of(age["age"], freshness), _said_of(age["newest"], age["age"]))


def _tell_missing(node: Node, failure: QueryFailed) -> None:
    """Raises an error that says what to do about a missing table, if that is why the query of a node has failed."""
    from runner.engine.errors import QueryFailed

    table = node.subject
    if not isinstance(table, ExternalTable) or not NOT_THERE.search(failure.message):
        return
    if table.folder:
        what, names = f'there is no table in "{table.folder}"', '"location"'
    else:
        what, names = f'there is no table "{".".join(table.place)}"', '"database", "schema" and "identifier"'
    raise QueryFailed(f"{what}\nrun what fills it, or correct {names} of {node.label}, at {node.where}") from failure


def _status_of(age: int | None, freshness: Freshness) -> str:
    """Returns the status of a source for the age of its newest row in seconds, None if it has no rows.

    >>> from runner.project.inputs import Age, Freshness
    >>> limits = Freshness(warn_after=Age(1, "hour"), error_after=Age(1, "day"))
    >>> [_status_of(age, limits) for age in (3600, 3601, 86401, None)], _status_of(None, Freshness())
    (['pass', 'warn', 'fail', 'fail'], 'pass')
    """
    for status, limit in (("fail", freshness.error_after), ("warn", freshness.warn_after)):
        if limit and (age is None or age > limit.seconds):
            return status
    return "pass"


def _said_of(newest: str | None, age: int | None) -> str:
    """Returns the instant and the age of the newest row in words.

    >>> _said_of("2024-05-01T10:00:00Z", 90061)
    'newest: 2024-05-01T10:00:00Z, 1d 1h 1m ago'
    """
    if newest is None or age is None:
        return "no rows"
    days, hours, minutes = age // 86400, age // 3600 % 24, age // 60 % 60
    parts = [f"{count}{unit}" for count, unit in ((days, "d"), (hours, "h"), (minutes, "m")) if count]
    return f"newest: {newest}, {' '.join(parts) or 'less than a minute'} ago"


# --- maintain


def maintain(call: Call, keep_days: int | None, history_days: int) -> int:
    """Maintains the selected tables; keeps their rows for `keep_days` (None: for ever) and old versions for
    `history_days`.
    """
    for flag, days in (("--keep-days", keep_days), ("--history-days", history_days)):
        if days is not None and days < 0:
            raise RunnerError("usage", f'"{flag}" must be a number of days, not "{days}"')
    workspace = Workspace(call.project)
    nodes = workspace.chosen(call.selection, _is_table)
    if not nodes:
        call.report.say(NOTHING)
        return 0
    run = Run(workspace, "maintain", nodes)
    with session(run, call.report):
        from runner.run.execute import Execution

        # Tables that are maintained do not depend on each other.
        order = Order(Graph({node.name: replace(node, parents=()) for node in nodes}), [node.name for node in nodes])
        do = partial(Execution(run).timed, action=partial(_maintained, run, keep_days, history_days))
        run.results = Schedule(order, do, Recorder(run, call.report, call.report.warn), run.signals).run()
    return run.exit_code


def _is_table(node: Node) -> bool:
    return bool(node.model and node.model.is_table)


def _maintained(run: Run, keep_days: int | None, history_days: int, node: Node) -> Result:
    from runner.engine.maintenance import maintain

    source = node.model.source if node.model else None
    readers = _readers(run.graph, node.name) if source else []
    notes = maintain(run.tables, node.relation, source, readers, keep_days, history_days)
    return Result(node.name, "model", "success", notes=notes)


def _readers(graph: Graph, changelog: str) -> list[Node]:
    """Returns the models whose tables record how far they have read a changelog."""
    nodes = (graph.nodes[name] for name in sorted(graph.downstream({changelog})))
    return [node for node in nodes if node.model and (node.model.new_rows or node.model.mirror)]
