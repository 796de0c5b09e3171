"""parse: the changelog rows of a file of messages, and what is wrong with them."""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.commands.arguments import MessagesArguments, ParseArguments
from runner.commands.job import open_spark
from runner.commands.workspace import folders_of, format_renderer
from runner.compile.compiled import FormatQuery
from runner.compile.library import Library
from runner.compile.query import Print, compile_format
from runner.compile.unknown_types import unknown_types
from runner.contract import COLUMNS, RUN_COLUMNS
from runner.engine.landed import Landed, landed_of
from runner.errors import RunnerError, RunnerWarning, Where, did_you_mean
from runner.project.nodes import Target
from runner.report import Report, counted
from runner.run.case_files import case_text
from runner.run.results import most_frequent
from runner.run.silences import silences
from runner.spec.formats import FormatFolders
from runner.spec.schemas import schemas_at, with_schemas
from runner.spec.words import Format
from runner.yaml_text import Yaml
from runner.zones import read_zone

if TYPE_CHECKING:
    from runner.functions.avro.files import FileMessage


@dataclass(frozen=True)
class Parsed:
    """What a format makes of a file: its rows in the order of the file, with the `lines` where messages begin,
    `warnings` about what the rows lack, and `notes` on types that are in no table. `is_case`: whether the file has one
    message per line, as cases have.
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


def parse(arguments: ParseArguments, report: Report) -> int:
    """Prints the changelog rows of a file of messages: a table on a terminal, else one JSON object per row; or the case
    that they are.
    """
    if arguments.output == "case":
        return _print_case(arguments, report)
    parsed = parse_messages(arguments.messages)
    for warning in parsed.warnings:
        report.warn(warning)
    for note in parsed.notes:
        report.say(note)
    rows = [row for row in parsed.rows if not arguments.kind or row["kind"] == arguments.kind]
    shown = rows[: arguments.limit] if arguments.limit is not None else rows
    if arguments.output == "json" or (arguments.output is None and not report.stdout.isatty()):
        columns = [column for column in COLUMNS if column not in RUN_COLUMNS]
        report.json_lines({column: row.get(column) for column in columns} for row in shown)
        return 0
    summaries = [_summary(row, parsed.lines[row["seq"]["arrival"][0]]) for row in shown]
    report.table(["line", "kind", "op", "table", "key", "changed"], summaries)
    report.payload(f"{report.verdict}; {parsed.summary}" if parsed.warnings else parsed.summary)
    return 0


def _print_case(arguments: ParseArguments, report: Report) -> int:
    """Prints all rows of a file as a case has them, with the settings of the source that they need."""
    if arguments.kind or arguments.limit is not None:
        raise RunnerError("usage", '"--output case" has all rows: it goes without --kind and --limit')
    messages = arguments.messages
    parsed = parse_messages(messages)
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


def parse_messages(arguments: MessagesArguments) -> Parsed:
    """What the format of the arguments makes of their file; raises mistakes in either."""
    renderer = format_renderer(arguments.project)
    library = Library(renderer)
    spec = _format_of(arguments)
    query = library.complete(_query_of(arguments, spec, renderer.call))
    messages, lines, is_case = _messages(arguments.file, query.encoding)
    rows, counts = _rows(query, messages, f"{arguments.format}_messages", library, renderer.call("landed_counts"))
    landed = landed_of(counts)
    notes = tuple(unknown.note for unknown in unknown_types(spec, rows))
    return Parsed(rows, lines, landed, tuple(_warnings(arguments, query, landed)), notes, is_case)


def _warnings(arguments: MessagesArguments, query: FormatQuery, landed: Landed) -> Iterator[RunnerWarning]:
    if landed.reasons:
        what = f"{landed.rows['dead_letter']} of {counted(landed.messages, 'message')} cannot be understood"
        hint = f"runner parse {arguments.format} {arguments.file} --kind dead_letter shows them"
        yield RunnerWarning("dead-letters", f"{what}: {most_frequent(landed.reasons)}", hint=hint)
    yield from silences(query.promises, landed)


def _format_of(arguments: MessagesArguments) -> Format:
    folders = FormatFolders(folders_of(arguments.project, "formats"))
    schemas = schemas_at([(path, None) for path in arguments.schemas])
    return with_schemas(folders.load(arguments.format), schemas, "--schema FILE.avsc", None)


def _query_of(arguments: MessagesArguments, spec: Format, macro: Print) -> FormatQuery:
    zone = read_zone(Yaml(arguments.zone, {(): Where(Path("--zone"))}))
    return compile_format(macro, spec, arguments.format, zone)


def _rows(
    query: FormatQuery, messages: list[FileMessage], view: str, library: Library, counts: str
) -> tuple[list[dict[str, Any]], str]:
    """The rows of messages, in the order of the file, and what is counted of them."""
    folder = Path(tempfile.gettempdir()) / "runner-parse"
    with open_spark(Target("parse", str(folder)), folder / "logs" / "spark.log", library) as spark:
        from runner.engine.messages import messages_view

        messages_view(spark, messages, query.encoding, view)
        spark.register(query.functions, query.sql_functions)
        rows, counted_text = spark.rows_counted(query.sql, counts)
    return sorted(rows, key=lambda row: (row["seq"]["arrival"], row["seq"]["row"])), counted_text


def _messages(file: str, encoding: str) -> tuple[list[FileMessage], list[int], bool]:
    """The messages of a file; for each the line where it begins, or its number if the file has no lines; and whether a
    case could have them as they are.
    """
    from runner.functions.avro.files import FileMessage
    from runner.run.documents import RECORDS, messages_of, split_messages

    content = _read(file)
    if encoding == "avro":
        name = file.removesuffix(".gz")
        messages = messages_of(name, content, encoding)
        return messages, list(range(1, len(messages) + 1)), name.endswith(".base64")
    if file.endswith(RECORDS):
        lines = [number for number, line in enumerate(content.split(b"\n"), 1) if line.strip(b" \t\r")]
        return messages_of(file, content, encoding), lines, True
    split = split_messages(content)
    messages = [FileMessage(0, 0, message.text) for message in split]
    return messages, [message.line for message in split], messages == messages_of(file, content, encoding)


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
