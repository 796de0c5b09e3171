"""Jinja: macros and models -> SQL text. Names and texts that come from data or YAML are quoted here and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import jinja2

from runner.errors import RunnerError, Where


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
    """Renders models with the macros of some folders; of macros with the same name, the one in the earlier folder counts."""

    def __init__(self, macro_folders: Iterable[Path], globals_: Mapping[str, Any]) -> None:
        self.environment = jinja2.Environment(
            undefined=jinja2.StrictUndefined, loader=jinja2.FunctionLoader(_source), extensions=["jinja2.ext.do"], keep_trailing_newline=False
        )
        self.environment.filters |= {"sql_text": sql_text, "sql_inner": sql_inner, "name": name}
        self.environment.globals |= {"name": name, "text": sql_text, **globals_}
        files = [path for folder in reversed(list(macro_folders)) for path in sorted(folder.rglob("*.sql"))]
        self.macros: dict[str, Any] = {}
        for path in files:
            self._guard(path, lambda path=path: self._announce(path))
        for path in files:
            self._guard(path, lambda path=path: self._load(path))

    def render(self, path: Path, context: Mapping[str, Any]) -> str:
        """The SQL of a model's file; raises RunnerError `template` with the line of the model or macro."""
        return self._guard(path, lambda: self.environment.get_template(str(path)).render(context)).strip() + "\n"

    def call(self, macro: str, *arguments: Any) -> str:
        """What a macro prints."""
        template = self.environment.from_string("{{ macro(*arguments) }}")
        return self._guard(Path(macro), lambda: template.render(macro=self.macros[macro], arguments=arguments)).strip() + "\n"

    def expand(self, text: str, where: Where, context: Mapping[str, Any]) -> str:
        """A value of a YAML file with its `{{ }}` filled in."""
        try:
            return self.environment.from_string(text).render(context)
        except jinja2.TemplateError as e:
            raise RunnerError("template", f"cannot fill in {text!r}: {e}", where) from None

    def _announce(self, path: Path) -> None:
        """Makes a file's macros callable by name before any file is loaded: files may call each other in any order."""
        tree = self.environment.parse(path.read_text(encoding="utf-8"), filename=str(path))
        for macro in (node.name for node in tree.body if isinstance(node, jinja2.nodes.Macro)):
            self.environment.globals[macro] = lambda *arguments, macro=macro, **named: self.macros[macro](*arguments, **named)

    def _load(self, path: Path) -> None:
        module = vars(self.environment.get_template(str(path)).module)
        self.macros |= {key: value for key, value in module.items() if isinstance(value, jinja2.runtime.Macro)}

    def _guard(self, path: Path, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except jinja2.TemplateSyntaxError as e:
            raise RunnerError("template", str(e.message), Where(Path(e.filename or path), e.lineno)) from None
        except jinja2.TemplateError as e:
            raise RunnerError("template", str(e.message), _innermost(e, path)) from None


def _source(path: str) -> tuple[str, str, Callable[[], bool]]:
    return Path(path).read_text(encoding="utf-8"), path, lambda: True


def _innermost(error: BaseException, path: Path) -> Where:
    """The innermost line of a user's template that the error passed through."""
    where, traceback = Where(path), error.__traceback__
    while traceback:
        filename = traceback.tb_frame.f_code.co_filename
        if re.search(r"\.(sql|yml)$", filename):
            where = Where(Path(filename), traceback.tb_lineno)
        traceback = traceback.tb_next
    return where
