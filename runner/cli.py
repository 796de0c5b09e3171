"""The command line: arguments in, exit code out. 0: all good; 1: something ran and failed; 2: nothing could run."""

from __future__ import annotations

import argparse
import os
import re
import sys
import traceback
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from runner.commands.arguments import (
    TRIGGER,
    CompileArguments,
    FormatsArguments,
    InitArguments,
    ListArguments,
    MaintainArguments,
    MessagesArguments,
    ParseArguments,
    ProjectArguments,
    RunArguments,
    Selection,
    ShowArguments,
)
from runner.errors import RunnerError, RunnerErrors, did_you_mean, errors_in, nearest_or_all
from runner.report import Report
from runner.secrets import Secrets


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code; it prints to standard output and standard error."""
    secrets = Secrets()
    debug, report = False, Report(os.environ.get("RUNNER_LOG_FORMAT", "text"))
    try:
        args = _parser().parse_args(argv)
        debug = args.debug
        color = False if args.no_color or os.environ.get("NO_COLOR") else None
        report = Report(args.log_format, args.quiet, color, secrets=secrets)
        args.secrets = secrets
        return int(args.run(args, report))
    except BrokenPipeError:
        sys.stdout = None  # its reader is gone: Python must not flush it at exit
        return 0
    except (RunnerError, RunnerErrors, OSError) as mistake:
        for error in errors_in(mistake):
            report.error(error)
            if debug:
                report.debug("".join(traceback.format_exception(error)).rstrip())
        return 2
    except KeyboardInterrupt:
        report.interrupted()
        return 130
    except Exception:
        report.bug(traceback.format_exc())
        return 1


class _Parser(ArgumentParser):
    """Raises wrong arguments as RunnerError, like all other mistakes."""

    def error(self, message: str) -> NoReturn:
        choice = re.fullmatch(r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)", message)
        if choice:
            known = [name.strip("' ") for name in choice[3].split(",")]
            raise RunnerError("usage", f'unknown {choice[1]} "{choice[2]}"', hint=nearest_or_all(choice[2], known))
        number = re.fullmatch(r"argument (\S+): invalid int value: '(.*)'", message)
        if number:
            raise RunnerError("usage", f'"{number[1]}" must be a whole number, not "{number[2]}"')
        raise RunnerError("usage", message, hint=f"{self.prog} --help")

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]  # argparse overloads it
        """Refuses unknown arguments. Not left to the parser above, which does not know the flags of this command."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            word = unknown[0].partition("=")[0]
            hint = did_you_mean(word, self._option_string_actions) if word.startswith("-") else ""
            raise RunnerError("usage", f'unknown argument "{unknown[0]}"', hint=hint or f"{self.prog} --help")
        return known, unknown


class _Version(argparse.Action):
    """Looks the version up only when it is asked for, because this is slow."""

    def __call__(self, parser: ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import PackageNotFoundError, version

        try:
            number = version("changelog-runner")
        except PackageNotFoundError:
            number = "0"
        parser.exit(message=f"runner {number}\n")
        raise AssertionError


def _parser() -> ArgumentParser:
    parser = _Parser(
        prog="runner",
        description="Lands vendors' change messages in one changelog on Spark, builds models on it and tests them.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    _common(parser, is_top=True)
    commands = parser.add_subparsers(dest="name_of_command", required=True, metavar="COMMAND")
    for name, run, help_text, sections in COMMANDS:
        command = commands.add_parser(name, help=help_text, description=help_text, allow_abbrev=False)
        _common(command, is_top=False)
        for section in sections:
            section(command)
        command.set_defaults(run=run)
    return parser


# --- flags


def _common(parser: ArgumentParser, is_top: bool) -> None:
    """Flags that are allowed before and after the name of the command."""

    def default(value: object) -> object:
        return value if is_top else argparse.SUPPRESS

    folder, log_format = os.environ.get("RUNNER_PROJECT_DIR"), os.environ.get("RUNNER_LOG_FORMAT", "text")
    add = parser.add_argument
    project = "the folder with project.yml (default: the current folder or the nearest one above that has it)"
    add("--project-dir", type=Path, metavar="FOLDER", default=default(Path(folder) if folder else None), help=project)
    target_path = "the folder for compiled SQL, results and logs (default: target, in the project)"
    add("--target-path", type=Path, metavar="FOLDER", default=default(None), help=target_path)
    target = "which of the targets in project.yml to use (default: the one that project.yml chooses)"
    add("-t", "--target", metavar="NAME", default=default(None), help=target)
    variables = 'variables that override those in project.yml: "{name: value}"'
    add("--vars", metavar="YAML", default=default(None), help=variables)
    logs = "how to print progress and errors (default: text)"
    add("--log-format", choices=("text", "json"), default=default(log_format), help=logs)
    quiet = "print only warnings, failures and errors; with compile: print the SQL instead of paths"
    add("-q", "--quiet", action="store_true", default=default(False), help=quiet)
    add("-d", "--debug", action="store_true", default=default(False), help="add tracebacks to errors")
    add("--no-color", action="store_true", default=default(False), help="print without colours")


def _selection(parser: ArgumentParser) -> None:
    methods = "NAME, NAME+, +NAME, @NAME, tag:X, path:X, file:X, source:X, format:X, resource_type:X, config.KEY:X"
    select = f"the nodes to work on (default: all), in dbt's syntax: {methods}; may be given more than once"
    exclude = "the nodes to leave out, in the same syntax"
    parser.add_argument("-s", "--select", action="append", default=[], metavar="SELECTOR", help=select)
    parser.add_argument("--exclude", action="append", default=[], metavar="SELECTOR", help=exclude)


def _fail_fast(parser: ArgumentParser) -> None:
    parser.add_argument("-x", "--fail-fast", action="store_true", help="start nothing more after the first failure")


def _threads(parser: ArgumentParser) -> None:
    help_text = "how many models and tests run at the same time (default: 4)"
    parser.add_argument("--threads", type=int, metavar="N", default=4, help=help_text)


def _full_refresh(parser: ArgumentParser) -> None:
    help_text = "drop changelogs and read all messages again; rebuild incremental models"
    parser.add_argument("--full-refresh", action="store_true", help=help_text)


def _continuous(parser: ArgumentParser) -> None:
    continuous = (
        "land messages as they arrive, until Ctrl-C or SIGTERM: "
        "the first signal lets the batch in flight end, the second ends it"
    )
    trigger = f"with --continuous: the time from batch to batch, such as 500ms, 10s, 2m (default: {TRIGGER})"
    parser.add_argument("--continuous", action="store_true", help=continuous)
    parser.add_argument("--trigger", metavar="TIME", help=trigger)


def _days(parser: ArgumentParser) -> None:
    keep = "remove rows of changelogs that landed more than N days ago (default: remove none)"
    history = "for how many days old states of tables stay readable (default: 7)"
    parser.add_argument("--keep-days", type=int, metavar="N", help=keep)
    parser.add_argument("--history-days", type=int, metavar="N", default=7, help=history)


def _kinds_of_tests(parser: ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--unit", action="store_true", help="run only unit tests and cases of formats")
    group.add_argument("--data", action="store_true", help="run only data tests")


def _ls_flags(parser: ArgumentParser) -> None:
    outputs, types = ("name", "path", "selector", "json"), ("source", "model", "test", "unit_test")
    parser.add_argument("--output", choices=outputs, default="name", help="what to print of each node (default: name)")
    parser.add_argument("--resource-type", choices=types, help="list only nodes of this type")


def _compile_flags(parser: ArgumentParser) -> None:
    inline = "compile this SQL (with ref, source, var and macros) instead of models, and print it"
    parser.add_argument("--inline", metavar="SQL", help=inline)
    parser.add_argument(
        "--runnable", action="store_true", help="print the SQL, after the settings and functions that it needs"
    )


def _show_flags(parser: ArgumentParser) -> None:
    output = "how to print the rows (default: table)"
    parser.add_argument("--inline", metavar="SQL", help="show the rows of this query instead of a model's")
    parser.add_argument("--limit", type=int, metavar="N", default=10, help="show at most N rows (default: 10)")
    parser.add_argument("--output", choices=("table", "json"), default="table", help=output)


def _parse_flags(parser: ArgumentParser) -> None:
    output = "how to print the rows (default: table on a terminal, else json); case: as the NAME.rows.yml of a case"
    parser.add_argument("format", metavar="FORMAT", help="the name of a format: see runner formats list")
    parser.add_argument("file", metavar="FILE", help="a file of messages, or - for standard input")
    parser.add_argument("--kind", choices=("row", "ddl", "control", "dead_letter"), help="show only rows of this kind")
    parser.add_argument("--limit", type=int, metavar="N", help="show at most N rows (default: all)")
    parser.add_argument("--output", choices=("table", "json", "case"), help=output)


def _messages_flags(parser: ArgumentParser) -> None:
    schema = "a file with the Avro schema of the messages, if the format has none; may be given more than once"
    parser.add_argument("--zone", help='the time zone of local times, as "zone" of a source')
    parser.add_argument("--schema", type=Path, action="append", default=[], metavar="FILE", help=schema)


def _formats_flags(parser: ArgumentParser) -> None:
    action = "list all formats, show NAME with what it inherits, check NAME or all, print the JSON Schema of specs"
    parser.add_argument("action", choices=("list", "show", "check", "schema"), help=action)
    parser.add_argument("name", metavar="NAME", nargs="?", help="the name of a format")
    messages = "with check NAME: a file of messages; warns of what no row of them has"
    parser.add_argument("--messages", metavar="FILE", help=messages)


def _init_flags(parser: ArgumentParser) -> None:
    files = "a pattern of your own files, in quotes (default: messages of a sample, with a model and tests)"
    parser.add_argument("name", metavar="NAME", help="the folder of the new project")
    parser.add_argument("--format", metavar="FORMAT", help="the format of your files: see runner formats list")
    parser.add_argument("--files", metavar="PATTERN", help=files)


# --- commands: each imports only what it needs, so that all start fast


def _project(args: Namespace) -> ProjectArguments:
    return ProjectArguments(args.project_dir, args.target, _variables(args.vars), args.target_path, args.secrets)


def _variables(text: str | None) -> dict[str, str]:
    if not text:
        return {}
    from runner.yaml_text import yaml_of

    try:
        return {name: value.text() for name, value in yaml_of(text, Path("--vars")).mapping().items()}
    except RunnerError as e:
        raise RunnerError(
            "vars", f"cannot read the variables: {e.message}", e.where, '--vars "{start: 2024-01-01, limit: 10}"'
        ) from None


def _selected(args: Namespace) -> Selection:
    return Selection(tuple(args.select), tuple(args.exclude))


def _messages(args: Namespace, format_name: str, file: str) -> MessagesArguments:
    return MessagesArguments(_project(args), format_name, file, args.zone, tuple(args.schema))


def _run_arguments(args: Namespace) -> RunArguments:
    """The arguments of run, test or build, with defaults for flags that the command lacks."""
    return RunArguments(
        _project(args),
        _selected(args),
        args.threads,
        args.fail_fast,
        getattr(args, "full_refresh", False),
        getattr(args, "continuous", False),
        getattr(args, "trigger", None),
        getattr(args, "unit", False),
        getattr(args, "data", False),
    )


def _run(args: Namespace, report: Report) -> int:
    from runner.commands.run import run

    return run(_run_arguments(args), report)


def _test(args: Namespace, report: Report) -> int:
    from runner.commands.run import test

    return test(_run_arguments(args), report)


def _build(args: Namespace, report: Report) -> int:
    from runner.commands.run import build

    return build(_run_arguments(args), report)


def _maintain(args: Namespace, report: Report) -> int:
    from runner.commands.maintain import maintain

    return maintain(MaintainArguments(_project(args), _selected(args), args.keep_days, args.history_days), report)


def _compile(args: Namespace, report: Report) -> int:
    from runner.commands.inspect import compile_

    arguments = CompileArguments(_project(args), _selected(args), args.inline, args.runnable, args.quiet)
    return compile_(arguments, report)


def _check(args: Namespace, report: Report) -> int:
    from runner.commands.inspect import check

    return check(_project(args), report)


def _ls(args: Namespace, report: Report) -> int:
    from runner.commands.inspect import ls

    return ls(ListArguments(_project(args), _selected(args), args.resource_type, args.output), report)


def _show(args: Namespace, report: Report) -> int:
    from runner.commands.show import show

    return show(ShowArguments(_project(args), _selected(args), args.inline, args.limit, args.output), report)


def _parse(args: Namespace, report: Report) -> int:
    from runner.commands.parse import parse

    messages = _messages(args, args.format, args.file)
    return parse(ParseArguments(messages, args.kind, args.limit, args.output), report)


def _formats(args: Namespace, report: Report) -> int:
    from runner.commands.formats import formats

    if (args.zone or args.schema) and not args.messages:
        raise RunnerError("usage", '"--zone" and "--schema" need "--messages"', hint="runner formats check --help")
    messages = _messages(args, args.name, args.messages) if args.messages else None
    return formats(FormatsArguments(_project(args), args.action, args.name, messages), report)


def _init(args: Namespace, report: Report) -> int:
    from runner.commands.init import init

    given = [flag for flag in ("format", "files", "zone", "schema") if getattr(args, flag)]
    if given and not (args.format and args.files):
        hint = f"runner init {args.name} --format FORMAT --files 'messages/*.jsonl'"
        raise RunnerError("usage", f'"--{given[0]}" needs both "--format" and "--files"', hint=hint)
    messages = _messages(args, args.format, args.files) if given else None
    return init(InitArguments(args.name, messages), report)


def _clean(args: Namespace, report: Report) -> int:
    from runner.commands.init import clean

    return clean(_project(args), report)


Section = Callable[[ArgumentParser], None]
EXECUTING: tuple[Section, ...] = (_selection, _fail_fast, _threads)

COMMANDS: tuple[tuple[str, Callable[[Namespace, Report], int], str, tuple[Section, ...]], ...] = (
    ("run", _run, "land new messages and build models", (*EXECUTING, _full_refresh, _continuous)),
    ("test", _test, "run data tests, unit tests and cases of formats", (*EXECUTING, _kinds_of_tests)),
    ("build", _build, "land new messages, build models and run tests, in order", (*EXECUTING, _full_refresh)),
    (
        "maintain",
        _maintain,
        "compact tables, remove old rows, old states and leftover files",
        (_selection, _days),
    ),
    ("compile", _compile, "write the SQL of models to target/compiled", (_selection, _compile_flags)),
    ("check", _check, "read and compile everything, report all mistakes", ()),
    ("ls", _ls, "list sources, models and tests", (_selection, _ls_flags)),
    ("show", _show, "show the first rows of a model or query", (_selection, _show_flags)),
    ("parse", _parse, "show the changelog rows of a file of messages", (_parse_flags, _messages_flags)),
    (
        "formats",
        _formats,
        "list formats, show one with what it inherits, check them",
        (_formats_flags, _messages_flags),
    ),
    ("init", _init, "start a new project", (_init_flags, _messages_flags)),
    ("clean", _clean, "remove what the runner wrote to target/", ()),
)


if __name__ == "__main__":
    sys.exit(main())
