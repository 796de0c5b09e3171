"""formats: lists formats, shows one with what it inherits, checks and compares them, prints their JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping

from runner.commands.arguments import Call
from runner.compile.compiled import Print
from runner.compile.query import compile_format
from runner.counts import counted
from runner.errors import Problems, RunnerError, nearest_or_all
from runner.grid import json_text
from runner.run.workspace import ProjectArguments, folders_of, format_renderer, root_of
from runner.spec.formats import FormatFolders
from runner.spec.json_schema import spec_schema
from runner.yaml_text import Yaml


def formats(
    call: Call, action: str, words: tuple[str, ...], messages: str | None, name: str | None, **of_diff: str | None
) -> int:
    """Does one of the actions list, show NAME, check [NAME], diff A B, schema and infer FILES; `of_diff` are the values
    of the flags `cases` and `output` of diff.
    """
    _check_flags(call, action, words, messages, name, of_diff)
    if action == "infer":
        from runner.commands.infer import infer

        return infer(call, words, name)
    if action == "diff":
        from runner.commands.format_diff import diff

        diff(call, words, messages, of_diff["cases"], of_diff["output"] or "table")
        return 0
    folders, report = FormatFolders(folders_of(call.project, "formats")), call.report
    name = words[0] if words else ""
    match action:
        case "schema":
            report.payload(json_text(spec_schema()))
        case "list":
            for known in folders.names():
                report.payload(f"{known.ljust(24)} {folders.about(known)}")
        case "check":
            _check(call, name, messages)
        case _:
            for line in _shown(folders, name):
                report.payload(line)
    return 0


def _check_flags(
    call: Call,
    action: str,
    words: tuple[str, ...],
    messages: str | None,
    name: str | None,
    of_diff: Mapping[str, str | None],
) -> None:
    """Raises `usage` for words and flags that do not belong to an action."""
    if flag := next((f"--{flag}" for flag, value in of_diff.items() if value and action != "diff"), ""):
        raise RunnerError("usage", f'"{flag}" is only for formats diff', hint="runner formats diff A B")
    if action == "infer":
        if messages or not words:
            raise RunnerError("usage", "formats infer needs files of messages", hint="runner formats infer FILE")
        return
    if name:
        raise RunnerError("usage", '"--name" is only for formats infer', hint="runner formats infer FILE --name NAME")
    if len(words) > 1 and action != "diff":
        raise RunnerError("usage", f'unknown argument "{words[1]}"', hint="runner formats --help")
    if (call.flags["zone"] or call.flags["schema"]) and not messages:
        raise RunnerError("usage", '"--zone" and "--schema" need "--messages"', hint="runner formats check --help")
    if messages and action not in ("check", "diff"):
        raise RunnerError("usage", f'"--messages" is only for formats check and diff, not for formats {action}')


def _check(call: Call, name: str, messages: str | None) -> None:
    """Checks formats, and the rows that one of them makes of a file of messages."""
    if messages and not name:
        hint = f"runner formats check NAME --messages {messages}"
        raise RunnerError("usage", '"--messages" needs the name of the format', hint=hint)
    names = check_formats(call.project, format_renderer(call.project).call, name)
    summary, report = counted(len(names), "format"), call.report
    if messages:
        from runner.commands.parse import parse_messages, read_file

        parsed = parse_messages(call.messages(name, messages), report, read_file(messages))
        for warning in parsed.warnings:
            report.warn(warning)
        summary = f"{summary}, {parsed.summary}"
    report.payload(f"{report.verdict}: {summary}")


def check_formats(arguments: ProjectArguments, macro: Print, only: str = "", changed: bool = False) -> list[str]:
    """Checks all formats, or only one, and returns their names; raises all mistakes in them. With `changed`, only those
    are checked that a project can have changed: its own and, if it has macros, all.
    """
    folders, problems = FormatFolders(folders_of(arguments, "formats")), Problems()
    names, root = [only] if only else folders.names(), root_of(arguments)
    is_plain = changed and not (root and (root / "macros").is_dir())
    for name in names:
        if is_plain and not (root and (root / "formats" / f"{name}.yml").is_file()):
            continue
        with problems.gathered():
            spec = folders.check(name)
            # If the users of a format have to give the schema, the format can be compiled only for a source.
            if spec and (spec.message.schemas or spec.message.encoding != "avro"):
                compile_format(macro, spec, name, None)
    problems.raise_if_any()
    return names


def _shown(folders: FormatFolders, name: str) -> list[str]:
    """Returns the lines of a spec with what it inherits; each line ends with the place where it is written."""
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
