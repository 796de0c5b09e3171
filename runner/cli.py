"""The command line: arguments in, exit code out. 0 all good, 1 something ran and failed, 2 nothing could run."""

from __future__ import annotations

import argparse
import os
import re
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NoReturn

from runner.commands import inspect as commands
from runner.commands import run as spark_commands
from runner.errors import RunnerError, RunnerErrors, nearest_or_all
from runner.report import Report


def main(argv: Sequence[str] | None = None) -> int:
    debug, report = False, Report(os.environ.get("RUNNER_LOG_FORMAT", "text"))
    try:
        args = _parser().parse_args(argv)
        debug = args.debug
        report = Report(args.log_format, args.quiet, False if args.no_color or os.environ.get("NO_COLOR") else None)
        args.vars = _variables(args.vars)
        return args.command(args, report)
    except (RunnerError, RunnerErrors) as mistake:
        for error in mistake.errors if isinstance(mistake, RunnerErrors) else [mistake]:
            report.error(error)
            if debug:
                report.debug("".join(traceback.format_exception(error)).rstrip())
        return 2
    except KeyboardInterrupt:
        report.broken("interrupted")
        return 130
    except BrokenPipeError:
        sys.stdout = None  # type: ignore[assignment]
        return 0
    except Exception:
        report.broken(f"{traceback.format_exc()}this is a bug in the runner: please report it with the lines above")
        return 1


class _Arguments(argparse.ArgumentParser):
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


def _variables(text: str | None) -> dict[str, str]:
    import yaml

    from runner.yaml_text import LOADER

    if not text:
        return {}
    try:
        value = yaml.load(text, Loader=LOADER)
    except yaml.YAMLError:
        value = None
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise RunnerError("vars", f'cannot read the variables "{text}"', hint='--vars "{start: 2024-01-01, limit: 10}"')
    return value


def _parser() -> argparse.ArgumentParser:
    parser = _Arguments(
        prog="runner", description="Vendors' change messages to one changelog on Spark.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"runner {_version()}")
    _common(parser, top=True)
    commands_ = parser.add_subparsers(dest="name_of_command", required=True, metavar="COMMAND")
    for name, command, help_text, sections in COMMANDS:
        sub = commands_.add_parser(name, help=help_text, description=help_text, allow_abbrev=False)
        _common(sub, top=False)
        for section in sections:
            section(sub)
        sub.set_defaults(command=command)
    return parser


def _common(parser: argparse.ArgumentParser, top: bool) -> None:
    def add(*names: str, default: object = None, **kwargs: object) -> None:
        parser.add_argument(*names, default=default if top else argparse.SUPPRESS, **kwargs)  # type: ignore[arg-type]

    add(
        "--project-dir",
        type=Path,
        default=_path_from_environment("RUNNER_PROJECT_DIR"),
        help="the folder with project.yml (default: here or above)",
    )
    add("--target-path", type=Path, help="where compiled SQL, results and logs go (default: target)")
    add("-t", "--target", help="the target of project.yml to run on")
    add("--vars", metavar="YAML", help="variables, over those of project.yml")
    add("--log-format", choices=("text", "json"), default=os.environ.get("RUNNER_LOG_FORMAT", "text"))
    add("-q", "--quiet", action="store_true", default=False, help="only what is not good; with compile: print the SQL")
    add("-d", "--debug", action="store_true", default=False, help="with tracebacks")
    add("--no-color", action="store_true", default=False)


def _path_from_environment(name: str) -> Path | None:
    return Path(os.environ[name]) if os.environ.get(name) else None


def _selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-s",
        "--select",
        action="append",
        metavar="S",
        help="what to work on: names, name+, +name, tag:, path:, file:, source:, format:, resource_type:, config.x:",
    )
    parser.add_argument("--exclude", action="append", metavar="S", help="what to leave out")


def _failing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-x", "--fail-fast", action="store_true", help="stop at the first failure")


def _in_parallel(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--threads", type=int, metavar="N", default=4, help="how many models and tests run at a time (default: 4)"
    )


def _refreshing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--full-refresh", action="store_true", help="forget what was read and landed, and read all again"
    )


def _continuing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--continuous",
        action="store_true",
        help="land what comes until Ctrl-C or SIGTERM, which let the batch in flight end; a second one does not wait",
    )
    parser.add_argument(
        "--trigger",
        metavar="TIME",
        help=f"with --continuous: the time from batch to batch, such as 500ms, 10s, 2m (default: {spark_commands.TRIGGER})",
    )


def _keeping(parser: argparse.ArgumentParser) -> None:
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


def _testing(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--unit", action="store_true", help="only unit tests and cases of formats")
    group.add_argument("--data", action="store_true", help="only data tests")


def _listing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", choices=("name", "path", "selector", "json"), default="name")
    parser.add_argument("--resource-type", choices=("source", "model", "test", "unit_test"))


def _compiling(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--inline", metavar="SQL", help="compile this instead of models")
    parser.add_argument("--runnable", action="store_true", help="print the SQL behind the settings that it needs")


def _showing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--inline", metavar="SQL", help="show the rows of this query instead of a model's")
    parser.add_argument("--limit", type=int, default=10)
    parser.add_argument("--output", choices=("table", "json"), default="table")


def _parsing(parser: argparse.ArgumentParser) -> None:
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
        help="the Avro schema of the messages, where the format has none; may stand more than once",
    )
    parser.add_argument("--output", choices=("table", "json"), help="default: a table on a terminal, else JSON")


def _formats(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "show", "check", "schema"))
    parser.add_argument("name", nargs="?")


def _naming(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the folder to make")


COMMANDS = (
    (
        "run",
        spark_commands.run,
        "land new messages and build models",
        (_selection, _failing, _in_parallel, _refreshing, _continuing),
    ),
    (
        "test",
        spark_commands.test,
        "run data tests, unit tests and cases of formats",
        (_selection, _failing, _in_parallel, _testing),
    ),
    (
        "build",
        spark_commands.build,
        "models and their tests, in order",
        (_selection, _failing, _in_parallel, _refreshing),
    ),
    ("maintain", spark_commands.maintain, "compact tables, remove what is old or left over", (_selection, _keeping)),
    ("compile", commands.compile_, "write the SQL of models to target/compiled", (_selection, _compiling)),
    ("check", commands.check, "read everything and say what is wrong", ()),
    ("ls", commands.ls, "list what there is", (_selection, _listing)),
    ("show", spark_commands.show, "show rows of a model", (_selection, _showing)),
    ("parse", spark_commands.parse, "show what a file of messages becomes", (_parsing,)),
    ("formats", commands.formats, "list formats, show one with what it inherits, check them", (_formats,)),
    ("init", commands.init, "start a new project", (_naming,)),
    ("clean", commands.clean, "remove target/", ()),
)


def _version() -> str:
    try:
        return version("changelog-runner")
    except PackageNotFoundError:
        return "0"


if __name__ == "__main__":
    sys.exit(main())
