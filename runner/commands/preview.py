"""show and parse: the rows of a model, and the changelog rows of a file of messages."""

from __future__ import annotations

import gzip
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.commands.arguments import ParseArguments, ShowArguments
from runner.commands.formats import format_renderer
from runner.commands.job import Job, open_spark, parts_of, spark_log
from runner.commands.workspace import Workspace, folders_of
from runner.compile.compiled import FormatQuery
from runner.compile.library import Library
from runner.compile.query import Print, compile_format
from runner.contract import COLUMNS, RUN_COLUMNS
from runner.errors import RunnerError, Where, did_you_mean
from runner.project.graph import Graph
from runner.project.lineage import tables_read
from runner.project.nodes import Model, Node, SqlText, Target
from runner.project.sources import with_schemas
from runner.render import name as quoted
from runner.report import Report
from runner.spec.formats import FormatFolders
from runner.spec.messages import read_schema
from runner.yaml_text import Yaml
from runner.zones import read_zone

if TYPE_CHECKING:
    from runner.functions.avro.files import FileMessage

KINDS = ("row", "ddl", "control", "dead_letter")


def show(arguments: ShowArguments, report: Report) -> int:
    """Prints the first rows of a model, from the tables as they are now."""
    workspace = Workspace(arguments.project)
    node = _inline(workspace, arguments.inline) if arguments.inline else _one_model(workspace, arguments)
    job = Job.of(workspace, "show", [node])
    with open_spark(workspace.project.target, spark_log(workspace.project), job.library) as spark:
        from runner.engine.errors import QueryFailed

        parts = parts_of(job, spark)
        try:
            parts.views.prepare(node.name)
            parts.views.make(node)
            columns, rows = spark.rows(f"select * from {quoted(node.name)}", arguments.limit)
        except QueryFailed as failure:
            report.query_failed(failure.message)
            return 1
    if arguments.output == "json":
        report.json_lines(rows)
    else:
        report.table(columns, rows)
    return 0


def _one_model(workspace: Workspace, arguments: ShowArguments) -> Node:
    if not arguments.selection.select:
        raise RunnerError("usage", "show needs -s MODEL or --inline SQL")
    nodes = workspace.chosen(arguments.selection, lambda node: node.model is not None)
    if len(nodes) > 1:
        names = ", ".join(node.name for node in nodes[:5])
        raise RunnerError("usage", f"show takes one model, and {len(nodes)} are selected: {names}")
    return nodes[0]


def _inline(workspace: Workspace, text: str) -> Node:
    """The query of --inline as a model of the graph, which reads the models that it names with or without ref()."""
    sql, reading = workspace.templates.expand(text, Where(Path("--inline")))
    read = tables_read(sql, [name for name, node in workspace.graph.nodes.items() if node.model])
    node = Node("inline", "model", Model(SqlText(sql), "view"), tuple(dict.fromkeys([*reading.parents, *read])))
    workspace.graph = Graph({**workspace.graph.nodes, node.name: node})
    return node


# --- parse


def parse(arguments: ParseArguments, report: Report) -> int:
    """Prints the changelog rows of a file of messages: a table on a terminal, else one JSON object per row."""
    renderer = format_renderer(arguments.project)
    library = Library(renderer)
    query = library.complete(_query_of(arguments, renderer.call))
    messages, lines = _messages(arguments.file, query.encoding)
    rows = _rows(query, messages, f"{arguments.format}_messages", library)
    rows = [row for row in rows if not arguments.kind or row["kind"] == arguments.kind]
    shown = rows[: arguments.limit] if arguments.limit is not None else rows
    if arguments.output == "json" or (arguments.output is None and not report.stdout.isatty()):
        columns = [column for column in COLUMNS if column not in RUN_COLUMNS]
        report.json_lines({column: row.get(column) for column in columns} for row in shown)
        return 0
    summaries = [_summary(row, lines[row["seq"]["arrival"][0]]) for row in shown]
    report.table(["line", "kind", "op", "table", "key", "changed"], summaries)
    counts = ", ".join(f"{sum(row['kind'] == kind for row in rows)} {kind}" for kind in KINDS)
    report.payload(f"{len(messages)} messages: {counts}")
    return 0


def _query_of(arguments: ParseArguments, macro: Print) -> FormatQuery:
    folders = FormatFolders(folders_of(arguments.project, "formats"))
    schemas = tuple(read_schema(path, None) for path in arguments.schemas)
    spec = with_schemas(folders.load(arguments.format), schemas, "--schema FILE.avsc", None)
    zone = read_zone(Yaml(arguments.zone, {(): Where(Path("--zone"))}))
    return compile_format(macro, spec, arguments.format, zone)


def _rows(query: FormatQuery, messages: list[FileMessage], view: str, library: Library) -> list[dict[str, Any]]:
    """The rows of messages, in the order of the file."""
    folder = Path(tempfile.gettempdir()) / "runner-parse"
    with open_spark(Target("parse", str(folder)), folder / "logs" / "spark.log", library) as spark:
        from runner.engine.messages import messages_view

        messages_view(spark, messages, query.encoding, view)
        spark.register(query.functions, query.sql_functions)
        _, rows = spark.rows(query.sql)
    return sorted(rows, key=lambda row: (row["seq"]["arrival"], row["seq"]["row"]))


def _messages(file: str, encoding: str) -> tuple[list[FileMessage], list[int]]:
    """The messages of a file, and for each the line where it begins, or its number if the file has no lines."""
    from runner.functions.avro.files import FileMessage
    from runner.run.documents import messages_of, split_messages

    content = _read(file)
    if encoding == "avro":
        messages = messages_of(file.removesuffix(".gz"), content, encoding)
        return messages, list(range(1, len(messages) + 1))
    split = split_messages(content)
    return [FileMessage(0, 0, message.text) for message in split], [message.line for message in split]


def _summary(row: dict[str, Any], line: int) -> dict[str, Any]:
    names = (row[column] for column in ("tenant", "db_name", "schema_name", "table_name"))
    table = ".".join(name for name in names if name is not None)
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
    if path.is_dir():
        raise RunnerError("file-missing", f'"{file}" is a folder')
    if not path.is_file():
        near = did_you_mean(path.name, [other.name for other in path.parent.glob("*")] if path.parent.is_dir() else [])
        raise RunnerError("file-missing", f'there is no file "{file}"', hint=near)
    content = path.read_bytes()
    if path.suffix != ".gz":
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError) as e:
        raise RunnerError("file-gzip", f'cannot unpack "{file}": {str(e)[:1].lower()}{str(e)[1:]}') from None
