"""parse: prints the changelog rows of a file of messages, and what is wrong with them; finds the format that fits."""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from runner.commands.arguments import Call, MessagesArguments
from runner.commands.session import is_little, open_spark
from runner.compile.column_types import notes_on, unknown_types
from runner.compile.compiled import CompiledNode
from runner.compile.library import Library
from runner.compile.query import compile_format
from runner.contract import COLUMNS, RUN_COLUMNS, Landed, landed_of
from runner.counts import counted
from runner.errors import RunnerError, RunnerWarning, Where, did_you_mean
from runner.infer.candidates import fits_of
from runner.infer.fits import Fit, best
from runner.infer.understanding import spread
from runner.project.inputs import Target
from runner.report import Report
from runner.run.compare import case_text, place
from runner.run.results import most_frequent, silences
from runner.run.workspace import folders_of, format_renderer, masks_of_format
from runner.spec.formats import FormatFolders
from runner.spec.schemas import Schemas, schemas_at, with_schemas
from runner.spec.values import read_zone
from runner.yaml_text import Yaml

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
        report.payload(case_of(messages, content, report).rstrip("\n"))
        return 0
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


def case_of(messages: MessagesArguments, content: bytes, report: Report) -> str:
    """Returns all rows of a file as a case has them, with the settings of the source that they need."""
    parsed = parse_messages(messages, report, content)
    if not parsed.is_case:
        ending = "a case has one message per line: NAME.messages.jsonl, or NAME.messages.base64 for Avro"
        raise RunnerError("case-messages", f'"{messages.file}" cannot be the messages of a case', hint=ending)
    for warning in parsed.warnings:
        report.warn(warning)
    folder = Path("formats") / "cases" / messages.format
    schemas = [os.path.relpath(path, folder) for path in messages.schemas]
    source = {"zone": messages.zone, "schema": schemas}
    return case_text(f"The rows of {Path(messages.file).name}", source, parsed.rows)


def parse_messages(arguments: MessagesArguments, report: Report, given: bytes | Messages) -> Parsed:
    """Returns what the format of the arguments makes of the content of their file, or of given messages of it; raises
    mistakes in either.
    """
    from runner.run.source_files import starting_is_longer

    renderer = format_renderer(arguments.project)
    library = Library(renderer)
    folders = FormatFolders(folders_of(arguments.project, "formats"))
    schemas = schemas_at([(path, None) for path in arguments.schemas])
    spec = with_schemas(folders.load(arguments.format), schemas, "--schema FILE.avsc", None)
    zone = read_zone(Yaml(arguments.zone, {(): Where(Path("--zone"))}))
    masked, secret = masks_of_format(arguments.project, arguments.format)
    query = library.complete(compile_format(renderer.call, spec, arguments.format, zone, masked))
    read = given if isinstance(given, Messages) else messages_in(arguments.file, given, query.encoding)
    messages, lines, is_case, dump = read
    if dump:
        report.say(f"{arguments.file} has records that a tool has dumped: a source reads them with dump: {dump}")
    folder = Path(tempfile.gettempdir()) / "runner-parse"
    size = sum(len(message.raw) for message in messages)
    target, is_small_job = Target("parse", str(folder)), is_little(size, len(messages))
    with open_spark(target, folder / "logs" / "spark.log", library, report, is_small_job) as opened:
        with report.during(f"reading {Path(arguments.file).name}"):
            spark = opened.for_messages(starting_is_longer(size, len(messages)))
            view = f"{arguments.format}_messages"
            if masked:
                from runner.engine.masks import mask_keys_view

                mask_keys_view(spark, secret)
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


def _rows(
    spark: Spark, query: CompiledNode, messages: list[FileMessage], view: str, counts: str
) -> tuple[list[dict[str, Any]], str]:
    """Returns the rows of messages, in the order of the file, and the text of what is counted of them."""
    from runner.engine.messages import messages_view

    messages_view(spark, messages, query.encoding, view)
    spark.register(query.functions, query.sql_functions)
    rows, counted_text = spark.rows_counted(query.sql, counts)
    return sorted(rows, key=place), counted_text


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


# --- the messages of files, and the known formats that fit them


@dataclass(frozen=True)
class Look:
    """The messages of files, at most MOST of them, and how well the known formats fit, the best first. `dump` is the
    value that a source's `dump` needs to read the first file; None for files of messages.
    """

    name: str
    count: int
    messages: tuple[FileMessage, ...]
    encoding: str
    fits: tuple[Fit, ...]
    dump: str | None = None

    @property
    def best(self) -> list[Fit]:
        return best(self.fits)


def fitting_format(arguments: MessagesArguments, content: bytes, report: Report) -> str:
    """Returns the name of the format that fits a file; raises `infer-none` if none does."""
    folders = FormatFolders(folders_of(arguments.project, "formats"))
    schemas = schemas_at([(path, None) for path in arguments.schemas])
    look = look_at(folders, {arguments.file: content}, schemas)
    if not look.best:
        hint = f"runner formats infer {arguments.file} says why, and writes a draft of a new format"
        raise RunnerError("infer-none", f'no known format fits "{arguments.file}"', hint=hint)
    first, *others = (fit.name for fit in look.best)
    as_well = f"; {', '.join(others)} would fit as well: runner formats infer {arguments.file}" if others else ""
    report.say(f"the format {first} fits{as_well}")
    return first


def look_at(folders: FormatFolders, contents: Mapping[str, bytes], schemas: Schemas) -> Look:
    """Looks at files, given with their content, and at the formats that fit; raises `infer-nothing` if they have no
    messages.
    """
    encoding = _encoding(*next(iter(contents.items())))
    read = [messages_in(file, content, encoding) for file, content in contents.items()]
    messages = [one for each in read for one in each.messages]
    name = ", ".join(Path(file).name for file in contents)
    if not messages:
        raise RunnerError("infer-nothing", f'"{name}" has no messages')
    # A record without a value does not tell formats apart.
    chosen = spread([one for one in messages if one.raw or not one.record] or messages)
    specs = {name: spec for name in folders.names() if (spec := folders.check(name))}
    fits = fits_of(specs, chosen, encoding, schemas)
    return Look(name, len(messages), tuple(chosen), encoding, tuple(fits), read[0].dump)


def _encoding(file: str, content: bytes) -> str:
    """Returns the encoding of the messages of a file: json or avro."""
    from runner.functions.avro.files import LINES, MAGIC

    return "avro" if file.removesuffix(".gz").endswith(LINES) or content[: len(MAGIC)] == MAGIC else "json"


class Messages(NamedTuple):
    """The messages of a file. `lines` are the lines where the messages begin, or their numbers if the file has no
    lines. `is_case` is True if a case could have the messages as they are. `dump` is the value that a source's `dump`
    needs to read them, None for a file of messages.
    """

    messages: list[FileMessage]
    lines: list[int]
    is_case: bool
    dump: str | None = None


def messages_in(file: str, content: bytes, encoding: str) -> Messages:
    """Returns the messages of a file."""
    from runner.functions.avro.files import FileMessage
    from runner.project.inputs import RECORDS
    from runner.run.documents import dumped_messages, messages_of, split_messages

    if encoding == "avro":
        name = file.removesuffix(".gz")
        messages = messages_of(name, content, encoding)
        return Messages(messages, list(range(1, len(messages) + 1)), name.endswith(".base64"))
    dumped = None if file.endswith(RECORDS) else dumped_messages(content)
    if dumped or file.endswith(RECORDS):
        lines = [number for number, line in enumerate(content.split(b"\n"), 1) if line.strip(b" \t\r")]
        dump, messages = dumped or (None, messages_of(file, content, encoding))
        return Messages(messages, lines, dump is None, dump)
    split = split_messages(content)
    messages = [FileMessage(0, 0, text) for _, text in split]
    return Messages(messages, [line for line, _ in split], messages == messages_of(file, content, encoding))


def read_file(file: str) -> bytes:
    """Returns the content of a file of messages, unpacked; raises `file-missing` and `file-gzip`."""
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
