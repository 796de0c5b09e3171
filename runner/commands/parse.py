"""parse: prints the changelog rows of a file of messages, and what is wrong with them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.commands.arguments import Call, MessagesArguments
from runner.commands.fitting import Messages, fitting_format, messages_in, read_file
from runner.commands.session import open_spark
from runner.compile.column_types import notes_on, unknown_types
from runner.compile.compiled import CompiledNode, Print
from runner.compile.library import Library
from runner.compile.query import compile_format
from runner.contract import COLUMNS, RUN_COLUMNS
from runner.counts import counted
from runner.engine.landed import Landed, landed_of
from runner.errors import RunnerError, RunnerWarning, Where
from runner.project.inputs import Target
from runner.report import Report
from runner.run.compare import case_text
from runner.run.results import most_frequent, silences
from runner.run.workspace import folders_of, format_renderer
from runner.spec.formats import FormatFolders
from runner.spec.schemas import schemas_at, with_schemas
from runner.spec.words import Format
from runner.yaml_text import Yaml
from runner.zones import read_zone

if TYPE_CHECKING:
    from runner.engine.session import Spark
    from runner.functions.avro.files import FileMessage


@dataclass(frozen=True)
class Parsed:
    """The rows that a format makes of a file, in the order of the file. `lines` are the lines where messages begin,
    `warnings` say what the rows lack, and `notes` name types that are in no table. `is_case` is True if the file has
    one message per line, as cases have.
    """

    rows: list[dict[str, Any]]
    lines: list[int]
    landed: Landed
    warnings: tuple[RunnerWarning, ...]
    notes: tuple[str, ...]
    is_case: bool

    @property
    def summary(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.landed.rows.items())
        return f"{counted(self.landed.messages, 'message')}: {kinds}"


def parse(call: Call, words: tuple[str, ...], kind: str | None, limit: int | None, output: str | None) -> int:
    """Prints the changelog rows of a file of messages: as a table on a terminal, else as one JSON object per row, or as
    a case.
    """
    if len(words) > 2:
        raise RunnerError("usage", f'unknown argument "{words[2]}"', hint="runner parse FORMAT FILE takes one file")
    messages, report = call.messages(words[0] if len(words) == 2 else "", words[-1]), call.report
    content = read_file(messages.file)
    if not messages.format:
        messages = replace(messages, format=fitting_format(messages, content, report))
    if output == "case":
        if kind or limit is not None:
            raise RunnerError("usage", '"--output case" has all rows: it goes without --kind and --limit')
        return _print_case(messages, content, report)
    parsed = parse_messages(messages, report, content)
    for warning in parsed.warnings:
        report.warn(warning)
    for note in parsed.notes:
        report.say(note)
    rows = [row for row in parsed.rows if not kind or row["kind"] == kind]
    shown = rows[:limit] if limit is not None else rows
    if output == "json" or (output is None and not report.stdout.isatty()):
        columns = [column for column in COLUMNS if column not in RUN_COLUMNS]
        report.json_lines({column: row.get(column) for column in columns} for row in shown)
        return 0
    summaries = [_summary(row, parsed.lines[row["seq"]["arrival"][0]]) for row in shown]
    report.table(["line", "kind", "op", "table", "key", "changed"], summaries)
    report.payload(f"{report.verdict}; {parsed.summary}" if parsed.warnings else parsed.summary)
    return 0


def _print_case(messages: MessagesArguments, content: bytes, report: Report) -> int:
    """Prints all rows of a file as a case has them, with the settings of the source that they need."""
    parsed = parse_messages(messages, report, content)
    if not parsed.is_case:
        ending = "a case has one message per line: NAME.messages.jsonl, or NAME.messages.base64 for Avro"
        raise RunnerError("case-messages", f'"{messages.file}" cannot be the messages of a case', hint=ending)
    for warning in parsed.warnings:
        report.warn(warning)
    folder = Path("formats") / "cases" / messages.format
    schemas = [os.path.relpath(path, folder) for path in messages.schemas]
    source = {"zone": messages.zone, "schema": schemas}
    report.payload(case_text(f"The rows of {Path(messages.file).name}", source, parsed.rows).rstrip("\n"))
    return 0


def parse_messages(arguments: MessagesArguments, report: Report, content: bytes | None = None) -> Parsed:
    """Returns what the format of the arguments makes of their file, or of its content, if that was already read; raises
    mistakes in either.
    """
    content = read_file(arguments.file) if content is None else content
    return parse_with(arguments, report, lambda encoding: messages_in(arguments.file, content, encoding))


def parse_with(arguments: MessagesArguments, report: Report, read: Callable[[str], Messages]) -> Parsed:
    """Returns what the format of the arguments makes of the messages that `read` returns for the format's encoding."""
    from runner.run.job_size import Amount
    from runner.run.source_files import starting_is_longer

    renderer = format_renderer(arguments.project)
    library = Library(renderer)
    spec = _format_of(arguments)
    query = library.complete(_query_of(arguments, spec, renderer.call))
    messages, lines, is_case, dump = read(query.encoding)
    if dump:
        report.say(f"{arguments.file} has records that a tool has dumped: a source reads them with dump: {dump}")
    folder = Path(tempfile.gettempdir()) / "runner-parse"
    size = sum(len(message.raw) for message in messages)
    target, is_small_job = Target("parse", str(folder)), Amount(size, len(messages)).is_little
    with open_spark(target, folder / "logs" / "spark.log", library, report, is_small_job) as opened:
        with report.during(f"reading {Path(arguments.file).name}"):
            spark = opened.for_messages(starting_is_longer(size, len(messages)))
            view = f"{arguments.format}_messages"
            rows, counts = _rows(spark, query, messages, view, renderer.call("landed_counts"))
    landed = landed_of(counts)
    notes = notes_on(unknown_types(spec, rows))
    return Parsed(rows, lines, landed, tuple(_warnings(arguments, query, landed)), notes, is_case)


def _warnings(arguments: MessagesArguments, query: CompiledNode, landed: Landed) -> Iterator[RunnerWarning]:
    if landed.reasons:
        what = f"{landed.rows['dead_letter']} of {counted(landed.messages, 'message')} cannot be understood"
        hint = f"runner parse {arguments.format} {arguments.file} --kind dead_letter shows them"
        yield RunnerWarning("dead-letters", f"{what}: {most_frequent(landed.reasons)}", hint=hint)
    yield from silences(query.promises, landed)


def _format_of(arguments: MessagesArguments) -> Format:
    folders = FormatFolders(folders_of(arguments.project, "formats"))
    schemas = schemas_at([(path, None) for path in arguments.schemas])
    return with_schemas(folders.load(arguments.format), schemas, "--schema FILE.avsc", None)


def _query_of(arguments: MessagesArguments, spec: Format, macro: Print) -> CompiledNode:
    zone = read_zone(Yaml(arguments.zone, {(): Where(Path("--zone"))}))
    return compile_format(macro, spec, arguments.format, zone)


def _rows(
    spark: Spark, query: CompiledNode, messages: list[FileMessage], view: str, counts: str
) -> tuple[list[dict[str, Any]], str]:
    """Returns the rows of messages, in the order of the file, and the text of what is counted of them."""
    from runner.engine.messages import messages_view

    messages_view(spark, messages, query.encoding, view)
    spark.register(query.functions, query.sql_functions)
    rows, counted_text = spark.rows_counted(query.sql, counts)
    return sorted(rows, key=lambda row: (row["seq"]["arrival"], row["seq"]["row"])), counted_text


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
