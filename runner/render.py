"""Jinja: macros and models -> SQL text. Names and texts that come from data or YAML are quoted here and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import jinja2

from runner.errors import RunnerError, Where, did_you_mean
from runner.files import read_text


def name(text: str) -> str:
    """
    >>> name("odd `name`")
    '`odd ``name```'
    """
    return "`" + text.replace("`", "``") + "`"


def sql_text(text: str) -> str:
    r"""
    >>> print(sql_text("it's a \\"))
    'it\'s a \\'
    """
    return f"'{sql_inner(text)}'"


def sql_inner(text: str) -> str:
    """A text as it stands between the quotes of a SQL literal."""
    return text.replace("\\", "\\\\").replace("'", "\\'")


class Renderer:
    """Renders models with the macros of some folders, the built-in one last; of macros with the same name, the one in
    the earlier folder counts.
    """

    def __init__(self, macro_folders: Iterable[Path], globals_: Mapping[str, Any]) -> None:
        self.environment = jinja2.Environment(
            undefined=jinja2.StrictUndefined,
            loader=jinja2.FunctionLoader(_source),
            extensions=["jinja2.ext.do"],
            keep_trailing_newline=False,
        )
        self.environment.filters |= {"sql_text": sql_text, "sql_inner": sql_inner, "name": name}
        self.environment.globals |= {
            "name": name,
            "text": sql_text,
            "macro": lambda called: self.macros[called],
            **globals_,
        }
        folders = list(macro_folders)
        self.built_in = folders[-1]
        files = [path for folder in reversed(folders) for path in sorted(folder.rglob("*.sql"))]
        self.macros: dict[str, Any] = {}
        self.required: dict[str, set[str]] = {}
        """Macro -> its arguments that have no default."""
        for path in files:
            self._guard(path, lambda path=path: self._announce(path))
        for path in files:
            self._guard(path, lambda path=path: self._load(path))

    def render(self, path: Path, context: Mapping[str, Any]) -> str:
        """The SQL of a model's file; raises RunnerError `template` with the line of the model or macro."""
        return self._guard(path, lambda: self.environment.get_template(str(path)).render(context)).strip() + "\n"

    def call(self, macro: str, *arguments: Any, **named: Any) -> str:
        """What a macro prints."""
        template = self.environment.from_string("{{ macro(*arguments, **named) }}")
        file = Path(self.macros[macro]._func.__code__.co_filename)
        return (
            self._guard(
                file, lambda: template.render(macro=self.macros[macro], arguments=arguments, named=named)
            ).strip()
            + "\n"
        )

    def expand(self, text: str, where: Where, context: Mapping[str, Any]) -> str:
        """A value of a YAML file with its `{{ }}` filled in."""
        return fill(self.environment, text, where, context)

    def _announce(self, path: Path) -> None:
        """Makes a file's macros callable by name before any file is loaded: files may call each other in any order."""
        tree = self.environment.parse(read_text(path), filename=str(path))
        for node in (node for node in tree.body if isinstance(node, jinja2.nodes.Macro)):
            macro = node.name
            self.required[macro] = {argument.name for argument in node.args[: len(node.args) - len(node.defaults)]}
            self.environment.globals[macro] = lambda *arguments, macro=macro, **named: self.macros[macro](
                *arguments, **named
            )

    def _load(self, path: Path) -> None:
        module = vars(self.environment.get_template(str(path)).module)
        self.macros |= {key: value for key, value in module.items() if isinstance(value, jinja2.runtime.Macro)}

    def _guard(self, path: Path, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except jinja2.TemplateSyntaxError as e:
            raise _mistake(e, Where(Path(e.filename or path), e.lineno), self.environment) from None
        except Exception as e:
            where = _innermost(e, path)
            if where.path.is_relative_to(self.built_in) and not isinstance(e, (jinja2.TemplateError, RunnerError)):
                raise
            raise _mistake(e, where, self.environment) from e


def fill(environment: jinja2.Environment, text: str, where: Where, context: Mapping[str, Any]) -> str:
    """A text with its `{{ }}` filled in."""
    try:
        return environment.from_string(text).render(context)
    except Exception as e:
        raise _mistake(e, where, environment, context) from e


def _mistake(
    error: Exception, where: Where, environment: jinja2.Environment, context: Mapping[str, Any] | None = None
) -> RunnerError:
    """The error with its place, and the nearest name if it is about one."""
    if isinstance(error, RunnerError):
        return RunnerError(error.code, error.message, error.where or where, error.hint)
    if isinstance(error, jinja2.TemplateNotFound):
        return RunnerError("template", f'there is no template "{error.name}"', where)
    message = str(getattr(error, "message", None) or error).rstrip(".")
    undefined = re.fullmatch(r"'(\w+)' is undefined", message)
    if undefined:
        return RunnerError(
            "template",
            f'"{undefined[1]}" is not defined',
            where,
            did_you_mean(undefined[1], [*environment.globals, *(context or ())]),
        )
    return RunnerError("template", message[:1].lower() + message[1:], where)


def _source(path: str) -> tuple[str, str, Callable[[], bool]] | None:
    return (read_text(Path(path)), path, lambda: True) if Path(path).is_file() else None


def _innermost(error: BaseException, path: Path) -> Where:
    """The innermost line of a user's template that the error passed through."""
    where, traceback = Where(path), error.__traceback__
    while traceback:
        filename, line = traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
        # Jinja puts the template's lines into tracebacks of models, not into those of files with macros.
        template = traceback.tb_frame.f_globals.get("__jinja_template__")
        if re.search(r"\.(sql|yml)$", filename):
            where = Where(Path(filename), template.get_corresponding_lineno(line) if template else line)
        traceback = traceback.tb_next
    return where
