"""formats infer: finds the known format that fits messages, and if none does, writes a draft of one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from runner.commands.arguments import Call, MessagesArguments
from runner.commands.init import editor_line, write_schemas
from runner.commands.parse import Look, Messages, look_at, parse_messages, read_file
from runner.counts import counted
from runner.errors import RunnerError, from_here
from runner.files import write_whole
from runner.infer.candidates import avro_documents, differences
from runner.infer.draft import NoDraft, draft_of
from runner.infer.fields import scalar
from runner.infer.understanding import ABSENT, Document, documents_of, is_flat_row
from runner.project.project import find_project
from runner.report import Report
from runner.run.results import most_frequent
from runner.run.workspace import folders_of, root_of
from runner.spec.formats import FormatFolders, read_type_table
from runner.spec.schemas import Schemas, schemas_at
from runner.spec.words import TypeTable
from runner.yaml_text import read_yaml

# The number of formats that fit and are tried on all messages; the number of formats that do not fit and are named.
TRIED, NAMED = 2, 3


def infer(call: Call, files: tuple[str, ...], name: str | None) -> int:
    """Prints which formats fit the messages of files. Writes a draft of a new format if none does, with a name made
    from the name of the first file, or if `name` asks for one.
    """
    report = call.report
    contents = {file: read_file(file) for file in files}
    schemas = schemas_at([(path, None) for path in call.flags["schema"]])
    folders = FormatFolders(folders_of(call.project, "formats"))
    look = look_at(folders, contents, schemas)
    report.payload(f"{counted(look.count, 'message')} of {look.name}, {len(look.messages)} looked at")
    if look.dump:
        report.payload(f"they are in records that a tool has dumped: a source reads them with dump: {look.dump}")
    for line in _said(look, folders):
        report.payload(line)
    for fit in look.best[:TRIED]:
        for line in _tried(call.messages(fit.name, look.name), look, report):
            report.payload(line)
    if name or not look.best:
        _write_draft(call.messages(name or _name_of(files[0]), files[0]), look, schemas, report)
    return 0


# --- known formats


def _said(look: Look, folders: FormatFolders) -> Iterator[str]:
    """Yields the lines that are printed about the known formats."""
    found = look.best
    for fit in found:
        for number, reason in enumerate(fit.reasons()):
            head = f"{fit.name.ljust(24)} {fit.score:3.0f}" if number == 0 else " " * 28
            yield f"{head}  {reason}"
    if len(found) == 1:
        yield f"the format is {found[0].name}"
    elif found:
        yield f"these fit equally well: {', '.join(fit.name for fit in found)}. What they read differently may decide:"
        first = folders.resolved(found[0].name)
        for fit in found[1:]:
            yield f"  {found[0].name} or {fit.name}: {differences(first, folders.resolved(fit.name)) or 'nothing'}"
    else:
        yield "no known format fits"
        for fit in [fit for fit in look.fits if fit.score][:NAMED]:
            yield f"  {fit.name.ljust(22)} {fit.score:3.0f}  {'; '.join(fit.reasons())}"


def _tried(arguments: MessagesArguments, look: Look, report: Report) -> Iterator[str]:
    """Yields lines about the rows that a format makes of the messages."""
    name, numbers = arguments.format, list(range(1, len(look.messages) + 1))
    try:
        parsed = parse_messages(arguments, report, Messages(list(look.messages), numbers, False))
    except RunnerError as error:
        yield f"rows with {name}: not tried, since {error.message}"
        return
    reasons = f" ({most_frequent(parsed.landed.reasons)})" if parsed.landed.reasons else ""
    yield f"rows with {name}: {parsed.summary}{reasons}"
    as_sent = sum("as_sent" in (row["meta"] or {}) for row in parsed.rows)
    if as_sent:
        yield f"  {counted(as_sent, 'row')} with values that cannot be read and stay as sent"
    yield from (f"  {warning.message}" for warning in parsed.warnings if warning.code != "dead-letters")
    yield from (f"  {note}" for note in parsed.notes)


# --- a draft


def _write_draft(arguments: MessagesArguments, look: Look, schemas: Schemas, report: Report) -> None:
    """Writes the draft of a format, with the name in the arguments, into the project; raises `infer-nothing` if there
    are no changes in the messages, and `infer-none` if they are Avro of an unknown schema.
    """
    folders, name = FormatFolders(folders_of(arguments.project, "formats")), arguments.format
    documents, message, schema = _material(arguments, look, schemas)
    try:
        draft = draft_of(documents, type_tables(folders), look.name, editor_line("format", "../"), message)
    except NoDraft as why:
        what = f"these are no change messages: {why}"
        raise RunnerError("infer-nothing", what, hint=_hint(arguments, look)) from None
    root = root_of(arguments.project) or find_project(Path.cwd())
    path = root / "formats" / f"{name}.yml"
    if path.exists() or name in folders.names():
        what = f'"{from_here(path)}" exists' if path.exists() else f'there is a format "{name}" already'
        raise RunnerError("infer-exists", what, hint="choose another name with --name")
    write_schemas(root)
    if schema:
        write_whole(path.with_suffix(".avsc"), schema)
    write_whole(path, draft)
    for line in draft.splitlines()[1:]:
        report.payload(f"  {line}".rstrip())
    flags = "".join(f" --schema {from_here(one)}" for one in arguments.schemas if one.is_dir())
    report.payload(f"wrote {from_here(path)}: look at it, then runner parse {name} {arguments.file}{flags}")


def _hint(arguments: MessagesArguments, look: Look) -> str:
    """Returns what to do with messages in which nothing names an operation."""
    as_rows = [fit.name for fit in look.fits if fit.tells_only_rows]
    if as_rows:
        return f"if each is a row as it is now: runner parse {as_rows[0]} {arguments.file} shows what would land"
    if not any(one.record for one in look.messages) and all(map(is_flat_row, documents_of(look.messages))):
        return "if each is a row as it is now, it needs the key and the topic that it had: docs/formats.md, flat rows"
    return "if they are changes of a kind that is not recognised, write the format by hand: docs/formats.md"


def _material(arguments: MessagesArguments, look: Look, schemas: Schemas) -> tuple[list[Document], str, str | None]:
    """Returns the material of a draft: a document for each message that has one, what the spec says of the messages as
    a whole, and the schema that stands in their file.
    """
    if look.encoding == "json":
        documents = documents_of(look.messages)
        if documents and all(isinstance(one, list) for one in documents):
            return [element for one in documents for element in one], "message: {batch: .}", None
        return documents, "", None
    own = next((one.schema for one in look.messages if one.schema), None)
    if not schemas and not own:
        known = ", ".join(fit.name for fit in look.fits) or "no format"
        what = f"no known format fits {look.name}: without a schema, messages in Avro can only be compared with {known}"
        hint = "--schema FILE.avsc gives their schema, or a folder of files NUMBER.avsc; see docs/formats.md"
        raise RunnerError("infer-none", what, hint=hint)
    documents = [one for one in avro_documents(look.messages, schemas, 0) if one is not ABSENT]
    if 2 * len(documents) < len(look.messages):
        wrong = len(look.messages) - len(documents)
        what = f"{wrong} of {counted(len(look.messages), 'message')} of {look.name} are no records of the schema"
        raise RunnerError("infer-none", what, hint="--schema gives another schema; bytes before a record are not known")
    if not schemas:
        return documents, f"message: {{encoding: avro, schema: {arguments.format}.avsc}}", own
    if schemas.known:
        return documents, "message: {encoding: avro, framing: schema_number}    # the source names the schemas", None
    formats = (root_of(arguments.project) or Path.cwd()) / "formats"
    places = [scalar(os.path.relpath(path, formats)) for path in arguments.schemas]
    written = places[0] if len(places) == 1 else f"[{', '.join(places)}]"
    return documents, f"message: {{encoding: avro, schema: {written}}}", None


def type_tables(folders: FormatFolders) -> dict[str, TypeTable]:
    """Returns the known tables of types, by name."""
    paths = {path.stem: path for folder in reversed(folders.folders) for path in (folder / "types").glob("*.yml")}
    return {name: read_type_table(name, read_yaml(paths[name])) for name in sorted(paths)}


def _name_of(file: str) -> str:
    """Returns a name for a format, made from the name of a file.

    >>> _name_of("in/my-orders.2024.jsonl"), _name_of("-")
    ('my_orders', 'draft')
    """
    plain = re.sub(r"\W+", "_", Path(file).name.partition(".")[0], flags=re.ASCII).strip("_").lower()
    return plain or "draft"
