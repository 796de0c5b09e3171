"""formats: lists formats, shows one with what it inherits, checks them, prints their JSON Schema."""

from __future__ import annotations

from runner.commands.arguments import FormatsArguments, ProjectArguments
from runner.commands.workspace import folders_of, format_renderer
from runner.compile.compiled import Print
from runner.compile.query import compile_format
from runner.counts import counted
from runner.errors import Problems, RunnerError, nearest_or_all
from runner.grid import json_text
from runner.report import Report
from runner.spec.formats import FormatFolders
from runner.spec.json_schema import spec_schema
from runner.yaml_text import Yaml


def formats(arguments: FormatsArguments, report: Report) -> int:
    """Does one of list, show NAME, check [NAME] and schema."""
    if arguments.messages and arguments.action != "check":
        raise RunnerError("usage", f'"--messages" is only for formats check, not for formats {arguments.action}')
    folders = FormatFolders(folders_of(arguments.project, "formats"))
    match arguments.action:
        case "schema":
            report.payload(json_text(spec_schema()))
        case "list":
            for name in folders.names():
                report.payload(f"{name.ljust(24)} {folders.about(name)}")
        case "check":
            _check(arguments, report)
        case _:
            for line in _shown(folders, arguments.name):
                report.payload(line)
    return 0


def _check(arguments: FormatsArguments, report: Report) -> None:
    """Checks formats, and what one of them makes of a file of messages."""
    if arguments.messages and not arguments.name:
        hint = f"runner formats check NAME --messages {arguments.messages.file}"
        raise RunnerError("usage", '"--messages" needs the name of the format', hint=hint)
    names = check_formats(arguments.project, format_renderer(arguments.project).call, arguments.name)
    summary = counted(len(names), "format")
    if arguments.messages:
        from runner.commands.parse import parse_messages

        parsed = parse_messages(arguments.messages, report)
        for warning in parsed.warnings:
            report.warn(warning)
        summary = f"{summary}, {parsed.summary}"
    report.payload(f"{report.verdict}: {summary}")


def check_formats(arguments: ProjectArguments, macro: Print, only: str | None = None) -> list[str]:
    """Checks all formats, or only one, and returns their names; raises all mistakes in them."""
    folders, problems = FormatFolders(folders_of(arguments, "formats")), Problems()
    names = [only] if only else folders.names()
    for name in names:
        with problems.gathered():
            spec = folders.check(name)
            # If the users of a format have to give the schema, it can be compiled only for a source.
            if spec and (spec.message.schemas or spec.message.encoding != "avro"):
                compile_format(macro, spec, name, None)
    problems.raise_if_any()
    return names


def _shown(folders: FormatFolders, name: str | None) -> list[str]:
    """The lines of a spec with what it inherits; each ends with the place where it is written."""
    if not name:
        hint = nearest_or_all("", folders.names())
        raise RunnerError("usage", "formats show needs the name of a format", hint=hint)
    return [line for key, child in folders.resolved(name).items() for line in _lines(child, 0, key)]


def _lines(yaml: Yaml, depth: int, label: str) -> list[str]:
    pad = "  " * depth
    if isinstance(yaml.value, dict) and depth < 2 and yaml.value:
        return [f"{pad}{label}:", *(line for key, child in yaml.items() for line in _lines(child, depth + 1, key))]
    text = yaml.value if isinstance(yaml.value, str) else json_text(yaml.value)
    where = yaml.where()
    return [f"{pad}{label}: {text}".ljust(90) + f"  # {where.path.name}:{where.line}"]
