"""The command line as click reads it, with mistakes as RunnerErrors, and the flags that several commands have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from runner.errors import RunnerError, did_you_mean, nearest_or_all
from runner.project import dbt_hints


class Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # click sorts them by name

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _mistakes(ctx, args):
            return super().parse_args(ctx, [*args])  # click takes from the list what it has read

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args[0] not in self.commands and not ctx.resilient_parsing:
            raise _no_such_choice("command", args[0], self.commands)
        return super().resolve_command(ctx, args)


class Command(click.Command):
    """A command of a function `NAME` or `MODULE:NAME` in this package. The function gets a `Call` and the values of the
    flags. Its module is imported when the command runs, so that all commands start fast.
    """

    allow_extra_args = True

    def __init__(self, name: str, function: str, help: str, *params: click.Parameter) -> None:
        module, _, self.function = function.rpartition(":")
        self.module = f"{__package__}.{module or self.function}"
        super().__init__(name, params=[*params, *COMMON], help=help, short_help=help, callback=self._call)
        HELP(self)

    def _call(self, **values: Any) -> int:
        call = click.get_current_context().obj
        call.command = self.name
        code: int = getattr(import_module(self.module), self.function)(call, **values)
        return code

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _mistakes(ctx, args):
            super().parse_args(ctx, list(self._with_repeated_flags(args)))
        if ctx.args and not ctx.resilient_parsing:
            raise _unknown(ctx, ctx.args[0])
        return ctx.args

    def _with_repeated_flags(self, words: Sequence[str]) -> Iterator[str]:
        """Yields the words, with `-s a b` as `-s a -s b`: as in dbt, several selectors may follow their flag."""
        repeated = {name for one in self.params if one in SELECTION and one.multiple for name in one.opts}
        flag, has_value = "", False
        for word in words:
            if word.startswith("-") and word != "-":
                flag, has_value = word if word in repeated else "", False
            else:
                yield from [flag] if has_value else []
                has_value = bool(flag)
            yield word


class Choice(click.Choice[str]):
    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            raise _no_such_choice(_name(param), value, self.choices)
        return value


class Number(click.ParamType[int]):
    name = "number"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(value)
        except ValueError:
            raise RunnerError("usage", f'"{_name(param)}" must be a whole number, not "{value}"') from None


def _name(parameter: click.Parameter | None) -> str:
    return max(parameter.opts, key=len) if parameter else ""


def _no_such_choice(what: str, value: str, known: Collection[str]) -> RunnerError:
    hint = dbt_hints.COMMANDS.get(value) or nearest_or_all(value, known)
    return RunnerError("usage", f'unknown {what} "{value}"', hint=hint)


def _unknown(ctx: click.Context, word: str) -> RunnerError:
    name = word.partition("=")[0]
    hint = dbt_hints.FLAGS.get(name) or dbt_hints.FLAGS.get(name.replace("--no-", "--", 1), "")
    if not hint and name.startswith("-"):
        hint = did_you_mean(name, [flag for one in ctx.command.params for flag in one.opts])
    return RunnerError("usage", f'unknown argument "{word}"', hint=hint or f"{ctx.command_path} --help")


@contextmanager
def _mistakes(ctx: click.Context, words: Sequence[str]) -> Iterator[None]:
    """Raises click's errors about the words as RunnerError, like all other mistakes."""
    try:
        yield
    except click.NoSuchOption as error:
        begun = (word for word in words if word.startswith(error.option_name))
        raise _unknown(ctx, next(begun, error.option_name)) from None
    except click.MissingParameter as error:
        missing = error.param.human_readable_name if error.param else ""
        hint = dbt_hints.ALONE.get(ctx.info_name or "") or f"{ctx.command_path} --help"
        raise RunnerError("usage", f"the following arguments are required: {missing}", hint=hint) from None
    except click.UsageError as error:
        message = error.format_message().rstrip(".").replace("'", '"')
        raise RunnerError("usage", message[:1].lower() + message[1:], hint=f"{ctx.command_path} --help") from None


# --- flags


def option(flags: str, help: str, type: Any = None, **settings: Any) -> click.Option:
    """Returns an option, written as help shows it: `-t --target NAME`. An option without a value in capitals is a flag,
    unless its type is a list of the words that its value may be.
    """
    names = [word for word in flags.split() if not word.isupper() or word.startswith("-")]
    metavar = next((word for word in flags.split() if word not in names), None)
    kind = Choice(type) if isinstance(type, tuple) else Number() if type is int else type
    # None, not False: False would make the value of an option optional.
    settings = {"is_flag": True if not metavar and not type else None, **settings}
    return click.Option(names, help=help, type=kind, metavar=metavar, **settings)


def argument(name: str, help: str, choices: Sequence[str] | None = None, **settings: Any) -> click.Argument:
    return click.Argument([name], help=help, type=Choice(choices) if choices else None, **settings)


def shared(flags: str, help: str, type: Any = None, **settings: Any) -> click.Option:
    """Returns an option whose value is kept in the call; it may stand before and after the name of the command."""
    return option(flags, help, type, expose_value=False, callback=_keep, **settings)


def _keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    if ctx.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
        ctx.obj.flags[parameter.name] = value
    ctx.obj.flags.setdefault(parameter.name, value)


def completed(kind: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]:
    """Returns a function that completes words with the names of this kind in the project."""

    def complete(ctx: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem[str]]:
        from runner.commands.completion import names_in

        return names_in(ctx, parameter, kind, begun)

    return complete


HELP = click.help_option("-h", "--help", help="show this message and exit")
PROJECT = "the folder with project.yml (default: the current folder or the nearest one above that has it)"
TARGET = "which of the targets in project.yml to use (default: the one that project.yml chooses)"
QUIET = "print only warnings, failures and errors; with compile: print the SQL instead of paths"
LOGS = "how to print progress and errors (default: text)"
COMMON = (
    shared("--project-dir FOLDER", PROJECT, Path, envvar="RUNNER_PROJECT_DIR"),
    shared(
        "--target-path FOLDER", "the folder for compiled SQL, results and logs (default: target, in the project)", Path
    ),
    shared("-t --target NAME", TARGET, shell_complete=completed("targets")),
    shared("--vars YAML", 'variables that override those in project.yml: "{name: value}"'),
    shared("--log-format", LOGS, ("text", "json"), envvar="RUNNER_LOG_FORMAT", default="text"),
    shared("-q --quiet", QUIET),
    shared("-d --debug", "add tracebacks to errors"),
    shared("--no-color", "print without colours"),
)
SELECT = (
    "the nodes to work on (default: all), in dbt's syntax: NAME, NAME+, +NAME, @NAME, tag:X, path:X, file:X, source:X, "
    "format:X, resource_type:X, config.KEY:X, state:modified, result:error, selector:X; may be given more than once"
)
SAVED = "the nodes of a selector in selectors.yml, in place of --select and --exclude"
STATE = "the target folder of an earlier run, with which state: compares"
SELECTORS = completed("selectors")
SELECTION = (
    shared("-s --select SELECTOR", SELECT, multiple=True, shell_complete=SELECTORS),
    shared("--exclude SELECTOR", "the nodes to leave out, in the same syntax", multiple=True, shell_complete=SELECTORS),
    shared("--selector NAME", SAVED),
    shared("--state FOLDER", STATE, Path, envvar="RUNNER_STATE"),
)
