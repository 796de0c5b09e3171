"""run, test, build, show, parse: the few lines that call the stages. Each returns the exit code."""

from __future__ import annotations

import re
import sys
import tempfile
import uuid
from argparse import Namespace
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner import artifacts
from runner.commands.workspace import Opened, Wanted, project_root
from runner.compile.query import compile_format, reads
from runner.contract import COLUMNS, MACRO_GLOBALS, RUN_COLUMNS
from runner.engine.locks import Session, TableLocks
from runner.errors import RunnerError, Where, did_you_mean
from runner.files import is_uri
from runner.project.graph import Graph
from runner.project.nodes import Case, DataTest, Model, Node, Project, Target, UnitTest
from runner.project.parse import Parser
from runner.project.project import project_folders, with_schemas
from runner.project.select import select
from runner.render import Renderer
from runner.render import name as quoted
from runner.report import Report
from runner.run.schedule import Interrupted, Result
from runner.spec.formats import FormatFolders
from runner.spec.messages import read_schema
from runner.yaml_text import Yaml
from runner.zones import read_zone

if TYPE_CHECKING:
    from runner.engine.catalog import Entry
    from runner.engine.session import Spark
    from runner.functions.avro.files import FileMessage
    from runner.run.execute import Execution

TRIGGER = "10s"
UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes"}


def run(args: Namespace, report: Report) -> int:
    if args.trigger and not args.continuous:
        raise RunnerError(
            "usage", "--trigger goes with --continuous", hint=f"runner run --continuous --trigger {args.trigger}"
        )
    return (
        _run_continuously(args, report)
        if args.continuous
        else _execute(args, report, lambda node: isinstance(node.about, Model))
    )


def _run_continuously(args: Namespace, report: Report) -> int:
    """Lands the chosen sources until a signal comes."""
    interval = spark_interval(args.trigger or TRIGGER)
    opened = Opened(args)
    nodes = opened.chosen(lambda node: isinstance(node.about, Model) and node.about.source is not None)
    others = [node.name for node in opened.chosen(lambda node: isinstance(node.about, Model)) if node not in nodes]
    if others:
        report.say(f"only sources are landed continuously, and left out are: {', '.join(others)}")

    def land(execution: Execution) -> list[Result]:
        from runner.run.continuous import Continuous

        return Continuous(execution, report, interval, args.fail_fast).run(nodes)

    return _carried_out(opened, "run --continuous", nodes, report, land)


def spark_interval(text: str) -> str:
    """
    >>> spark_interval("500ms"), spark_interval("10s"), spark_interval("2m")
    ('500 milliseconds', '10 seconds', '2 minutes')
    """
    found = re.fullmatch(r"([1-9][0-9]{0,5})(ms|s|m)", text)
    if not found:
        raise RunnerError("usage", f'"--trigger" must be a time, not "{text}"', hint="such as 500ms, 10s or 2m")
    return f"{found[1]} {UNITS[found[2]]}"


def test(args: Namespace, report: Report) -> int:
    def wanted(node: Node) -> bool:
        is_unit = isinstance(node.about, (UnitTest, Case))
        return (isinstance(node.about, DataTest) and not args.unit) or (is_unit and not args.data)

    return _execute(args, report, wanted)


def build(args: Namespace, report: Report) -> int:
    return _execute(args, report, lambda node: node.resource_type != "source")


def _execute(args: Namespace, report: Report, wanted: Wanted) -> int:
    """Run what was selected, in order, and say how it went."""
    if args.threads < 1:
        raise RunnerError("usage", f'"--threads" must be a number from 1, not "{args.threads}"')
    opened = Opened(args)
    nodes = _with_tests(opened, wanted)
    return _carried_out(
        opened,
        args.name_of_command,
        nodes,
        report,
        lambda execution: execution.run([node.name for node in nodes], report, args.threads, args.fail_fast),
    )


def maintain(args: Namespace, report: Report) -> int:
    """Looks after the tables that were chosen."""
    for flag, days in (("--keep-days", args.keep_days), ("--history-days", args.history_days)):
        if days is not None and days < 0:
            raise RunnerError("usage", f'"{flag}" must be a number of days, not "{days}"')
    opened = Opened(args)
    nodes = opened.chosen(lambda node: isinstance(node.about, Model) and node.about.materialized != "view")

    def look_after(execution: Execution) -> list[Result]:
        from runner.engine.maintenance import Maintenance

        return execution.maintain(nodes, Maintenance(execution.tables, args.keep_days, args.history_days), report)

    return _carried_out(opened, args.name_of_command, nodes, report, look_after)


def _carried_out(
    opened: Opened, command: str, nodes: list[Node], report: Report, work: Callable[[Execution], list[Result]]
) -> int:
    """Does the work on nodes in a session that holds the tables they write; writes and says how it went."""
    project, graph = opened.project, opened.graph
    artifacts.write_compiled(project, graph)
    artifacts.write_manifest(project, graph)
    broken_off: Interrupted | None = None
    run_id = f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:8]}"
    with _locks(project, command) as locks:
        locks.take(
            (node.name for node in nodes if isinstance(node.about, Model) and node.about.materialized != "view"),
            lambda session: _ended(project.target, session),
        )
        with _spark(project) as spark:  # the first moment a JVM exists
            if spark.process:
                locks.jvm(spark.process)
            if spark.server_session:
                locks.session(spark.server_session)
            try:
                results = work(_execution(opened, graph, spark, run_id))
            except Interrupted as interrupted:
                results, broken_off = interrupted.results, interrupted
    artifacts.write_results(project, graph, run_id, results)
    report.done(results)
    if broken_off:
        raise broken_off
    return 1 if any(r.status in ("error", "fail") for r in results) else 0


def _locks(project: Project, command: str) -> TableLocks:
    """Beside the tables; for tables that lie elsewhere, on this machine."""
    target = project.target
    folder = project.target_path / "locks" if is_uri(target.path) else Path(target.at("_locks"))
    return TableLocks(folder, command, target.name)


def _ended(target: Target, session: Session) -> bool:
    """Ends a session that a dead client has left; False if it is in another server."""
    if not target.remote:
        return False
    from runner.engine.connect import end_session

    return end_session(target.remote, session)


def _execution(opened: Opened, graph: Graph, spark: Spark, run_id: str) -> Execution:
    from runner.engine.catalog import CatalogPublisher
    from runner.engine.tables import Tables
    from runner.run.execute import Execution
    from runner.run.landing import Landing

    tables = Tables(spark, opened.renderer.call)
    landing = Landing(
        spark,
        tables,
        lambda messages: reads(opened.renderer, messages),
        run_id,
        getattr(opened.args, "full_refresh", False),
    )
    return Execution(
        graph,
        spark,
        tables,
        landing,
        CatalogPublisher(spark, tables, lambda name: _catalog_entries(graph, name)),
        lambda node: artifacts.compiled_path(opened.project, node),
    )


def _catalog_entries(graph: Graph, name: str) -> list[Entry]:
    """What the catalog gets of a model, and before that of all models that a view reads, parents first."""
    from runner.engine.catalog import Entry

    is_view = graph.nodes[name].about.materialized == "view"
    wanted = graph.upstream({name}) | {name} if is_view else {name}
    models = {n: graph.nodes[n].about for n in graph.order() if n in wanted and graph.nodes[n].resource_type == "model"}
    return [
        Entry(n, model.sql if model.materialized == "view" else None, model.source is not None)
        for n, model in models.items()
    ]


def _with_tests(opened: Opened, wanted: Wanted) -> list[Node]:
    """The chosen nodes of a kind, and the tests of the models that were chosen."""
    chosen = select(opened.graph, opened.args.select or [], opened.args.exclude or [])
    excluded = select(opened.graph, opened.args.exclude) if opened.args.exclude else set()
    about_chosen = {
        n
        for n, node in opened.graph.nodes.items()
        if node.resource_type in ("test", "unit_test") and set(node.parents) & chosen
    } - excluded
    nodes = [
        opened.graph.nodes[n]
        for n in opened.graph.order()
        if n in chosen | about_chosen and wanted(opened.graph.nodes[n])
    ]
    return nodes or opened.chosen(wanted)


def show(args: Namespace, report: Report) -> int:
    """The first rows of a model, from what is in the tables now."""
    if not args.select and not args.inline:
        raise RunnerError("usage", "show needs -s MODEL or --inline SQL")
    opened = Opened(args)
    if args.inline:
        graph, node = _with_inline(opened)
    else:
        graph = opened.graph
        nodes = opened.chosen(lambda n: isinstance(n.about, Model))
        if len(nodes) > 1:
            raise RunnerError(
                "usage", f"show takes one model, and {len(nodes)} are selected: {', '.join(n.name for n in nodes[:5])}"
            )
        node = nodes[0]
    with _spark(opened.project) as spark:
        from runner.engine.errors import QueryFailed

        execution = _execution(opened, graph, spark, "")
        try:
            execution.prepare(node.name)
            execution.view_of(node)
            columns, rows = spark.rows(f"select * from {quoted(node.name)}", args.limit)
        except QueryFailed as failure:
            report.broken(f"error[query]: {failure.message}")
            return 1
    if args.output == "json":
        report.json_lines(rows)
    else:
        report.table(columns, rows)
    return 0


def _with_inline(opened: Opened) -> tuple[Graph, Node]:
    """The graph with the query of --inline in it as a model, which reads what it names with or without ref()."""
    from runner.project.lineage import tables_read

    parser = Parser(opened.project)
    sql = parser.renderer.expand(opened.args.inline, Where(Path("--inline")), {})
    read = tables_read(sql, [n for n, other in opened.graph.nodes.items() if isinstance(other.about, Model)])
    node = Node("inline", "model", tuple(dict.fromkeys([*parser.reading.parents, *read])), about=Model(sql, "view"))
    return Graph({**opened.graph.nodes, "inline": node}), node


def parse(args: Namespace, report: Report) -> int:
    """What a file of messages becomes: a table on a terminal, else one JSON object a row."""
    folders = FormatFolders(project_folders(project_root(args), "formats"))
    schemas = tuple(read_schema(path, None) for path in args.schema)
    spec = with_schemas(folders.load(args.format), schemas, "--schema FILE.avsc", None)
    renderer = Renderer(project_folders(project_root(args), "macros"), {**MACRO_GLOBALS, "ref": str})
    zone = read_zone(Yaml(args.zone, {(): Where(Path("--zone"))}))
    query = compile_format(renderer, spec, args.format, zone)
    messages, lines = _messages(args.file, query.encoding)
    folder = Path(tempfile.gettempdir()) / "runner-parse"
    with _open_spark(Target("parse", str(folder)), folder / "logs" / "spark.log") as spark:
        from runner.engine.messages import messages_view

        messages_view(spark, messages, query.encoding, f"{args.format}_messages")
        spark.register(query.functions)
        _, rows = spark.rows(query.sql)
    rows = sorted(rows, key=lambda r: (r["seq"]["arrival"], r["seq"]["row"]))
    rows = [r for r in rows if not args.kind or r["kind"] == args.kind]
    shown = rows[: args.limit] if args.limit is not None else rows
    if args.output == "json" or (args.output is None and not report.stdout.isatty()):
        report.json_lines({c: row.get(c) for c in COLUMNS if c not in RUN_COLUMNS} for row in shown)
    else:
        report.table(
            ["line", "kind", "op", "table", "key", "changed"],
            [_parsed(row, lines[row["seq"]["arrival"][0]]) for row in shown],
        )
        counts = {kind: sum(r["kind"] == kind for r in rows) for kind in ("row", "ddl", "control", "dead_letter")}
        report.payload(f"{len(messages)} messages: " + ", ".join(f"{n} {kind}" for kind, n in counts.items()))
    return 0


def _messages(file: str, encoding: str) -> tuple[list[FileMessage], list[int]]:
    """The messages of a file, and for each the line where it begins, or its number where there are no lines."""
    from runner.functions.avro.files import FileMessage
    from runner.run.documents import messages_of, split_messages

    content = _read(file)
    if encoding == "avro":
        messages = messages_of(file.removesuffix(".gz"), content, encoding)
        return messages, list(range(1, len(messages) + 1))
    split = split_messages(content)
    return [FileMessage(0, 0, m.text) for m in split], [m.line for m in split]


def _parsed(row: dict[str, Any], line: int) -> dict[str, Any]:
    table = ".".join(row[c] for c in ("tenant", "db_name", "schema_name", "table_name") if row[c] is not None)
    changed = f"{row['reason']}: {row['detail']}" if row["reason"] else ", ".join(row["changed"] or [])
    return {
        "line": line,
        "kind": row["kind"],
        "op": row["op"],
        "table": table,
        "key": row["key_text"],
        "changed": changed.removesuffix(": None"),
    }


def _read(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    path = Path(file)
    if not path.is_file():
        near = did_you_mean(path.name, [p.name for p in path.parent.glob("*")] if path.parent.is_dir() else [])
        raise RunnerError(
            "file-missing",
            f'"{file}" is a folder' if path.is_dir() else f'there is no file "{file}"',
            hint="" if path.is_dir() else near,
        )
    if path.suffix == ".gz":
        import gzip

        try:
            return gzip.decompress(path.read_bytes())
        except (OSError, EOFError) as e:
            raise RunnerError("file-gzip", f'cannot unpack "{file}": {str(e)[:1].lower()}{str(e)[1:]}') from None
    return path.read_bytes()


def _spark(project: Project) -> Spark:
    return _open_spark(project.target, project.target_path / "logs" / "spark.log")


def _open_spark(target: Target, log: Path) -> Spark:
    from runner.engine.session import Spark

    return Spark(target, log)
