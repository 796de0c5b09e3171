"""The command line: arguments in, exit code out. 0: all good; 1: something ran and failed; 2: nothing could run."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TextIO

from runner.commands import flags
from runner.commands.arguments import (
    CompileArguments,
    CompletionArguments,
    DebugArguments,
    DocsArguments,
    FormatsArguments,
    FreshnessArguments,
    InferArguments,
    InitArguments,
    ListArguments,
    MaintainArguments,
    MessagesArguments,
    MirrorsArguments,
    ParseArguments,
    ProjectArguments,
    RunArguments,
    Selection,
    ShowArguments,
)
from runner.commands.parser import Parser
from runner.errors import RunnerError, RunnerErrors, errors_in
from runner.report import Report
from runner.run.results import Result
from runner.secrets import Secrets


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its exit code, how each node went that it worked on, and what kept it from running, if
    anything did.
    """

    exit_code: int
    results: tuple[Result, ...] = ()
    exception: BaseException | None = None


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code; it prints to standard output and standard error."""
    try:
        return execute(argv).exit_code
    except BrokenPipeError:
        sys.stdout = None  # its reader is gone: Python must not flush it at exit
        return 0


def execute(argv: Sequence[str] | None, stdout: TextIO | None = None) -> Outcome:
    """Runs a command and says how it went, on standard error too; data go to `stdout`."""
    secrets = Secrets()
    debug, report = False, Report(os.environ.get("RUNNER_LOG_FORMAT", "text"))
    try:
        args = _parser().parse_args(argv)
        debug = args.debug
        is_dumb = os.environ.get("TERM") == "dumb"
        color = False if args.no_color or os.environ.get("NO_COLOR") or is_dumb else None
        report = Report(args.log_format, args.quiet, color, None, stdout, secrets, live=not is_dumb)
        args.secrets = secrets
        return Outcome(int(args.run(args, report)), report.results)
    except BrokenPipeError:
        raise
    except (RunnerError, RunnerErrors, OSError) as mistake:
        for error in errors_in(mistake):
            report.error(error)
            if debug:
                report.debug("".join(traceback.format_exception(error)).rstrip())
        return Outcome(2, exception=mistake)
    except KeyboardInterrupt as signal:
        report.interrupted()
        return Outcome(130, report.results, signal)
    except Exception as bug:
        report.bug(traceback.format_exc())
        return Outcome(1, report.results, bug)
    finally:
        report.close()


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
    parser = Parser(
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


# --- commands: each imports only what it needs, so that all start fast


def _project(args: Namespace) -> ProjectArguments:
    return ProjectArguments(args.project_dir, args.target, _variables(args.vars), args.target_path, args.secrets)


def _variables(text: str | None) -> dict[str, Any]:
    if not text:
        return {}
    from runner.yaml_text import yaml_of

    try:
        given = yaml_of(text, Path("--vars")).mapping()
        for name, value in given.items():
            if value.value is None and ":" in name:
                raise value.error("vars", f'"{name}" is a name without a value: a blank follows the colon')
        return dict(given.data())
    except RunnerError as e:
        raise RunnerError(
            "vars", f"cannot read the variables: {e.message}", e.where, '--vars "{start: 2024-01-01, limit: 10}"'
        ) from None


def _selected(args: Namespace) -> Selection:
    if args.selector and (args.select or args.exclude):
        hint = f"runner {args.name_of_command} -s selector:{args.selector},tag:nightly"
        raise RunnerError("usage", '"--selector" stands alone, without "--select" and "--exclude"', hint=hint)
    given = os.environ.get("RUNNER_STATE")
    state = args.state or (Path(given) if given else None)
    return Selection(tuple(args.select), tuple(args.exclude), state, args.selector)


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
        getattr(args, "empty", False),
        args.defer,
    )


def _run(args: Namespace, report: Report) -> int:
    from runner.commands.run import run

    return run(_run_arguments(args), report)


def _test(args: Namespace, report: Report) -> int:
    from runner.commands.run import test

    return test(_run_arguments(args), report)


def _seed(args: Namespace, report: Report) -> int:
    from runner.commands.run import seed

    return seed(_run_arguments(args), report)


def _build(args: Namespace, report: Report) -> int:
    from runner.commands.run import build

    return build(_run_arguments(args), report)


def _retry(args: Namespace, report: Report) -> int:
    from runner.commands.retry import retry

    return retry(_project(args), report)


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

    shown = ShowArguments(_project(args), _selected(args), args.inline, args.limit, args.output, args.defer)
    return show(shown, report)


def _docs(args: Namespace, report: Report) -> int:
    from runner.commands.docs import generate

    return generate(DocsArguments(_project(args), not args.no_tables), report)


def _parse(args: Namespace, report: Report) -> int:
    from runner.commands.parse import parse

    if len(args.words) > 2:
        hint = "runner parse FORMAT FILE takes one file"
        raise RunnerError("usage", f'unknown argument "{args.words[2]}"', hint=hint)
    format_name, file = args.words if len(args.words) == 2 else ("", args.words[0])
    return parse(ParseArguments(_messages(args, format_name, file), args.kind, args.limit, args.output), report)


def _formats(args: Namespace, report: Report) -> int:
    from runner.commands.formats import formats

    if args.action == "infer":
        return _infer(args, report)
    if args.name:
        raise RunnerError("usage", '"--name" is only for formats infer', hint="runner formats infer FILE --name NAME")
    if len(args.words) > 1:
        raise RunnerError("usage", f'unknown argument "{args.words[1]}"', hint="runner formats --help")
    if (args.zone or args.schema) and not args.messages:
        raise RunnerError("usage", '"--zone" and "--schema" need "--messages"', hint="runner formats check --help")
    name = args.words[0] if args.words else None
    messages = _messages(args, name or "", args.messages) if args.messages else None
    return formats(FormatsArguments(_project(args), args.action, name, messages), report)


def _infer(args: Namespace, report: Report) -> int:
    from runner.commands.infer import infer

    if args.messages or not args.words:
        raise RunnerError("usage", "formats infer needs files of messages", hint="runner formats infer FILE")
    arguments = InferArguments(_project(args), tuple(args.words), args.name, args.zone, tuple(args.schema))
    return infer(arguments, report)


def _source(args: Namespace, report: Report) -> int:
    from runner.commands.freshness import freshness

    return freshness(FreshnessArguments(_project(args), _selected(args)), report)


def _mirrors(args: Namespace, report: Report) -> int:
    from runner.commands.mirrors import suggest

    return suggest(MirrorsArguments(_project(args), args.source, args.table, args.apply), report)


def _init(args: Namespace, report: Report) -> int:
    from runner.commands.init import init

    given = [flag for flag in ("format", "files", "zone", "schema") if getattr(args, flag)]
    if bool(args.name) == bool(args.from_dbt) or (args.from_dbt and given):
        hint = "runner init NAME, or: runner init --from-dbt FOLDER"
        raise RunnerError("usage", "init needs the name of a new project, or a project of dbt alone", hint=hint)
    if args.from_dbt:
        from runner.commands.from_dbt import init_from_dbt

        return init_from_dbt(args.from_dbt, report)
    missing = [f'"--{flag}"' for flag in ("format", "files") if not getattr(args, flag)]
    if given and missing:
        hint = f"runner init {args.name} --format FORMAT --files 'messages/*.jsonl'"
        raise RunnerError("usage", f'"--{given[0]}" needs {" and ".join(missing)} too', hint=hint)
    messages = _messages(args, args.format, args.files) if given else None
    return init(InitArguments(args.name, messages), report)


def _clean(args: Namespace, report: Report) -> int:
    from runner.commands.init import clean

    return clean(_project(args), report)


def _debug(args: Namespace, report: Report) -> int:
    from runner.commands.debug import debug

    settings = (os.environ.get(name) for name in ("JAVA_HOME", "SPARK_LOCAL_DIRS"))
    return debug(DebugArguments(_project(args), *settings), report)


def _prepare(args: Namespace, report: Report) -> int:
    from runner.commands.prepare import prepare

    return prepare(report)


def _completion(args: Namespace, report: Report) -> int:
    from runner.commands.completion import completion

    return completion(CompletionArguments(_project(args), args.shell, args.line), _parser(), report)


Section = Callable[[ArgumentParser], None]
EXECUTING: tuple[Section, ...] = (flags.selection, flags.fail_fast, flags.threads, flags.defer)
BUILDING = (*EXECUTING, flags.full_refresh, flags.empty)

COMMANDS: tuple[tuple[str, Callable[[Namespace, Report], int], str, tuple[Section, ...]], ...] = (
    ("run", _run, "land new messages and build models", (*BUILDING, flags.continuous)),
    ("test", _test, "run data tests, unit tests and cases of formats", (*EXECUTING, flags.kinds_of_tests)),
    ("seed", _seed, "load the files in seeds/", (*EXECUTING, flags.full_refresh)),
    ("build", _build, "load seeds, land new messages, build models and run tests, in order", BUILDING),
    ("retry", _retry, "run again what failed in the last run, and what was skipped", ()),
    (
        "maintain",
        _maintain,
        "compact tables, remove old rows, old versions and leftover files",
        (flags.selection, flags.days),
    ),
    ("compile", _compile, "write the SQL of models to target/compiled", (flags.selection, flags.of_compile)),
    ("check", _check, "read and compile everything, report all mistakes", ()),
    ("ls", _ls, "list sources, models and tests", (flags.selection, flags.of_ls)),
    ("show", _show, "show the first rows of a model or query", (flags.selection, flags.of_show, flags.defer)),
    ("docs", _docs, "write a page about everything in the project", (flags.of_docs,)),
    ("parse", _parse, "show the changelog rows of a file of messages", (flags.of_parse, flags.of_messages)),
    (
        "formats",
        _formats,
        "list formats, show one with what it inherits, check them",
        (flags.of_formats, flags.of_messages),
    ),
    ("source", _source, "measure how old the newest row of each source is", (flags.of_source, flags.selection)),
    ("mirrors", _mirrors, "write mirrors of tables that have landed, for review", (flags.of_mirrors,)),
    ("init", _init, "start a new project", (flags.of_init, flags.of_messages)),
    ("debug", _debug, "check that all is there that a run needs: Java, Spark, packages, project, sources", ()),
    ("prepare", _prepare, "keep the classes of Spark in an archive, once: each run starts some seconds sooner", ()),
    ("completion", _completion, "print the script with which a shell completes commands", (flags.of_completion,)),
    ("clean", _clean, "remove what the runner wrote to target/", ()),
)


if __name__ == "__main__":
    sys.exit(main())
