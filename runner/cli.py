"""The command line: arguments in, exit code out. 0 all good, 1 something ran and failed, 2 nothing could run."""

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
    ListArguments,
    MaintainArguments,
    ParseArguments,
    ProjectArguments,
    RunArguments,
    Selection,
    ShowArguments,
)
from runner.errors import RunnerError, RunnerErrors, did_you_mean, nearest_or_all
from runner.report import Report


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code of a command; what it says goes to standard output and standard error."""
    debug, report = False, Report(os.environ.get("RUNNER_LOG_FORMAT", "text"))
    try:
        args = _parser().parse_args(argv)
        debug = args.debug
        color = False if args.no_color or os.environ.get("NO_COLOR") else None
        report = Report(args.log_format, args.quiet, color)
        return int(args.run(args, report))
    except (RunnerError, RunnerErrors) as mistake:
        for error in mistake.errors if isinstance(mistake, RunnerErrors) else [mistake]:
            report.error(error)
            if debug:
                report.debug("".join(traceback.format_exception(error)).rstrip())
        return 2
    except KeyboardInterrupt:
        report.interrupted()
        return 130
    except BrokenPipeError:
        sys.stdout = None  # nobody reads it: Python must not try to flush it at its end
        return 0
    except Exception:
        report.bug(traceback.format_exc())
        return 1


class _Parser(ArgumentParser):
    """Says what is wrong with the arguments as all other mistakes are said."""

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
        """Refuses what it does not know by itself: only it knows the flags that were meant."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            word = unknown[0].partition("=")[0]
            hint = did_you_mean(word, self._option_string_actions) if word.startswith("-") else ""
            raise RunnerError("usage", f'unknown argument "{unknown[0]}"', hint=hint or f"{self.prog} --help")
        return known, unknown


class _Version(argparse.Action):
    """Looks the version up only when it is asked for: that takes longer than all other flags together."""

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
        prog="runner", description="Vendors' change messages to one changelog on Spark.", allow_abbrev=False
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
    """Flags that may stand before and after the name of the command."""

    def default(value: object) -> object:
        return value if is_top else argparse.SUPPRESS

    folder, log_format = os.environ.get("RUNNER_PROJECT_DIR"), os.environ.get("RUNNER_LOG_FORMAT", "text")
    parser.add_argument(
        "--project-dir",
        type=Path,
        default=default(Path(folder) if folder else None),
        help="the folder with project.yml (default: here or above)",
    )
    parser.add_argument(
        "--target-path",
        type=Path,
        default=default(None),
        help="where compiled SQL, results and logs go (default: target)",
    )
    parser.add_argument("-t", "--target", default=default(None), help="the target of project.yml to run on")
    parser.add_argument("--vars", metavar="YAML", default=default(None), help="variables, over those of project.yml")
    parser.add_argument("--log-format", choices=("text", "json"), default=default(log_format))
    parser.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        default=default(False),
        help="only what is not good; with compile: print the SQL",
    )
    parser.add_argument("-d", "--debug", action="store_true", default=default(False), help="with tracebacks")
    parser.add_argument("--no-color", action="store_true", default=default(False))


def _selection(parser: ArgumentParser) -> None:
    methods = "names, name+, +name, tag:, path:, file:, source:, format:, resource_type:, config.x:"
    parser.add_argument("-s", "--select", action="append", default=[], metavar="S", help=f"what to work on: {methods}")
    parser.add_argument("--exclude", action="append", default=[], metavar="S", help="what to leave out")


def _fail_fast(parser: ArgumentParser) -> None:
    parser.add_argument("-x", "--fail-fast", action="store_true", help="stop at the first failure")


def _threads(parser: ArgumentParser) -> None:
    help_text = "how many models and tests run at a time (default: 4)"
    parser.add_argument("--threads", type=int, metavar="N", default=4, help=help_text)


def _full_refresh(parser: ArgumentParser) -> None:
    help_text = "forget what was read and landed, and read all again"
    parser.add_argument("--full-refresh", action="store_true", help=help_text)


def _continuous(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--continuous",
        action="store_true",
        help="land what comes until Ctrl-C or SIGTERM, which let the batch in flight end; a second one does not wait",
    )
    parser.add_argument(
        "--trigger",
        metavar="TIME",
        help=f"with --continuous: the time from batch to batch, such as 500ms, 10s, 2m (default: {TRIGGER})",
    )


def _days(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--keep-days",
        type=int,
        metavar="N",
        help="remove rows of changelog tables that landed more than N days ago (default: none)",
    )
    parser.add_argument(
        "--history-days",
        type=int,
        metavar="N",
        default=7,
        help="how long old states of tables stay readable (default: 7)",
    )


def _kinds_of_tests(parser: ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--unit", action="store_true", help="only unit tests and cases of formats")
    group.add_argument("--data", action="store_true", help="only data tests")


def _ls_flags(parser: ArgumentParser) -> None:
    parser.add_argument("--output", choices=("name", "path", "selector", "json"), default="name")
    parser.add_argument("--resource-type", choices=("source", "model", "test", "unit_test"))


def _compile_flags(parser: ArgumentParser) -> None:
    parser.add_argument("--inline", metavar="SQL", help="compile this instead of models")
    parser.add_argument("--runnable", action="store_true", help="print the SQL after the settings that it needs")


def _show_flags(parser: ArgumentParser) -> None:
    parser.add_argument("--inline", metavar="SQL", help="show the rows of this query instead of a model's")
    parser.add_argument("--limit", type=int, default=10)
    parser.add_argument("--output", choices=("table", "json"), default="table")


def _parse_flags(parser: ArgumentParser) -> None:
    parser.add_argument("format")
    parser.add_argument("file", metavar="FILE", help="a file of messages, or - for standard input")
    parser.add_argument("--kind", choices=("row", "ddl", "control", "dead_letter"))
    parser.add_argument("--limit", type=int)
    parser.add_argument("--zone", help="the zone of local times, as a source would declare it")
    parser.add_argument(
        "--schema",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="the Avro schema of the messages, where the format has none; may be given more than once",
    )
    parser.add_argument("--output", choices=("table", "json"), help="default: a table on a terminal, else JSON")


def _formats_flags(parser: ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "show", "check", "schema"))
    parser.add_argument("name", nargs="?")


def _name(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the folder to create")


# --- commands: each imports what it needs, so that none pays for what others do


def _project(args: Namespace) -> ProjectArguments:
    return ProjectArguments(args.project_dir, args.target, _variables(args.vars), args.target_path)


def _variables(text: str | None) -> dict[str, str]:
    if not text:
        return {}
    import yaml

    from runner.yaml_text import LOADER

    try:
        value = yaml.load(text, Loader=LOADER)  # the loader makes texts only
    except yaml.YAMLError:
        value = None
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        message = f'cannot read the variables "{text}"'
        raise RunnerError("vars", message, hint='--vars "{start: 2024-01-01, limit: 10}"')
    return value


def _selected(args: Namespace) -> Selection:
    return Selection(tuple(args.select), tuple(args.exclude))


def _run_arguments(args: Namespace) -> RunArguments:
    """Of run, test and build, each with the flags that it has."""
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
    from runner.commands.preview import show

    return show(ShowArguments(_project(args), _selected(args), args.inline, args.limit, args.output), report)


def _parse(args: Namespace, report: Report) -> int:
    from runner.commands.preview import parse

    schemas = tuple(args.schema)
    arguments = ParseArguments(
        _project(args), args.format, args.file, args.kind, args.limit, args.zone, schemas, args.output
    )
    return parse(arguments, report)


def _formats(args: Namespace, report: Report) -> int:
    from runner.commands.formats import formats

    return formats(FormatsArguments(_project(args), args.action, args.name), report)


def _init(args: Namespace, report: Report) -> int:
    from runner.commands.init import init

    return init(args.name, report)


def _clean(args: Namespace, report: Report) -> int:
    from runner.commands.init import clean

    return clean(_project(args), report)


Section = Callable[[ArgumentParser], None]
EXECUTING: tuple[Section, ...] = (_selection, _fail_fast, _threads)

COMMANDS: tuple[tuple[str, Callable[[Namespace, Report], int], str, tuple[Section, ...]], ...] = (
    ("run", _run, "land new messages and build models", (*EXECUTING, _full_refresh, _continuous)),
    ("test", _test, "run data tests, unit tests and cases of formats", (*EXECUTING, _kinds_of_tests)),
    ("build", _build, "models and their tests, in order", (*EXECUTING, _full_refresh)),
    ("maintain", _maintain, "compact tables, remove what is old or left over", (_selection, _days)),
    ("compile", _compile, "write the SQL of models to target/compiled", (_selection, _compile_flags)),
    ("check", _check, "read everything and say what is wrong", ()),
    ("ls", _ls, "list what there is", (_selection, _ls_flags)),
    ("show", _show, "show rows of a model", (_selection, _show_flags)),
    ("parse", _parse, "show what a file of messages becomes", (_parse_flags,)),
    ("formats", _formats, "list formats, show one with what it inherits, check them", (_formats_flags,)),
    ("init", _init, "start a new project", (_name,)),
    ("clean", _clean, "remove target/", ()),
)


if __name__ == "__main__":
    sys.exit(main())
