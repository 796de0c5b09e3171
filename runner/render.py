"""Renders macros and models with Jinja to SQL text. Names and texts from data or YAML are quoted only here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jinja2
import jinja2.exceptions
import jinja2.nodes

from runner.errors import RunnerError, RunnerErrors, Where, did_you_mean, from_here, placed
from runner.files import read_text
from runner.sandbox import Sandbox, Trace, TracingSandbox


def name(text: str) -> str:
    """Returns a name in backquotes.

    >>> name("odd `name`")
    '`odd ``name```'
    """
    return "`" + text.replace("`", "``") + "`"


def sql_text(text: str) -> str:
    r"""Returns a text as a literal in SQL.

    >>> print(sql_text("it's a \\"))
    'it\'s a \\'
    """
    return f"'{sql_inner(text)}'"


def sql_inner(text: str) -> str:
    """Returns a text as it is written between the quotes of a SQL literal."""
    return text.replace("\\", "\\\\").replace("'", "\\'")


LINE = 132


def in_lines(parts: Iterable[str], indent: int, between: str = ", ", longest: int = LINE) -> str:
    r"""Returns parts with commas or blanks between them, in lines that begin at a column. Parts of several lines, and
    those of more than `longest` characters, stand alone.

    >>> print(in_lines(["a" * 100, "b" * 40, "c"], 2).replace("a" * 100, "aa"))
    aa,
      bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, c
    """
    lines: list[str] = []
    was_short = False
    for part in parts:
        is_short = len(part) <= longest and "\n" not in part
        if is_short and was_short and len(lines[-1]) + len(part) + len(between) + indent <= LINE:
            lines[-1] += between + part
        else:
            lines.append(part)
        was_short = is_short
    return f"{between.rstrip()}\n{' ' * indent}".join(lines)


def in_columns(columns: Mapping[str, str], indent: int) -> str:
    r"""Returns the columns of a select, each with its expression or kept as it is: short ones share lines.

    >>> print(in_columns({"a": "a", "b": "f(a)", "c": "f(" + "x" * 70 + ")"}, 2).replace("x" * 70, "xx"))
    a, f(a) as b,
      f(xx) as c
    """
    parts = (column if column == text else f"{text} as {column}" for column, text in columns.items())
    return in_lines(parts, indent, longest=LINE // 2)


# Macros that a project may replace by a macro of the same name, in addition to all data tests (`test_*`): the one that
# creates a changelog, and the steps of maintenance.
REPLACEABLE = (
    "changelog_created",
    "delta_compacted",
    "delta_vacuumed",
    "iceberg_compacted",
    "iceberg_manifests_compacted",
    "iceberg_snapshots_expired",
    "iceberg_orphans_removed",
)
SAFE = "a template reads data and calls macros, the functions in docs/runner.md, and methods that only compute"
SMALL = "make less in one template, and do not let macros call themselves without end"
MACRO = re.compile(r"\{%-?\s*macro\s+(\w+)\s*\(")


@dataclass(frozen=True)
class Signature:
    """The arguments of a macro; `required` are those that have no default."""

    arguments: tuple[str, ...]
    required: frozenset[str]


class Renderer:
    """Renders templates with the macros of some folders, the built-in one last. Raises `macro-taken` for a macro of
    another folder that has the name of a built-in macro and may not replace it, or the name of another macro of such a
    folder. Files of built-in macros are compiled when one of their macros is first called. `instead` maps names, tags
    and attributes (`.schema`) that do not exist, but that people look for, to hints. Macros can also be called with
    `namespace` and a dot before them.
    """

    def __init__(
        self,
        macro_folders: Iterable[Path],
        globals_: Mapping[str, Any],
        sandbox: Callable[..., Sandbox] = Sandbox,
        instead: Mapping[str, str] = MappingProxyType({}),
        namespace: str = "",
    ) -> None:
        names = {"name": name, "text": sql_text, "macro": self._macro, **globals_}
        self.environment = sandbox(names, loader=jinja2.FunctionLoader(_source))
        self.environment.instead = instead
        self.environment.filters |= {
            "sql_text": sql_text,
            "sql_inner": sql_inner,
            "name": name,
            "in_lines": in_lines,
            "in_columns": in_columns,
            "each": self._each,
        }
        *own, self.built_in = self.folders = tuple(macro_folders)
        self.files = {macro: path for path in _sql_files(self.built_in) for macro in MACRO.findall(read_text(path))}
        self.built_in_names = frozenset(self.files)
        # The places of the macros of other folders.
        self.own: dict[str, Where] = {}
        self.loaded: dict[Path, Mapping[str, Any]] = {}
        self.parsed: dict[Path, list[jinja2.nodes.Macro]] = {}
        own_files = [path for folder in own for path in _sql_files(folder)]
        for path in own_files:
            with self._guarded(path):
                self._register(path)
        callers = {macro: self._caller(macro) for macro in self.files}
        self.environment.globals |= callers
        self.namespace = namespace if namespace not in self.environment.globals else ""
        if self.namespace:
            self.environment.globals[self.namespace] = callers
        # The macros are loaded before anything is rendered: mistakes in macros that nothing calls are reported too.
        for path in own_files:
            with self._guarded(path):
                self._load(path)

    def names(self) -> list[str]:
        """Returns the names of all macros."""
        return list(self.files)

    def signature(self, macro: str) -> Signature:
        path = self.files[macro]
        node = next(node for node in self._parsed(path) if node.name == macro)
        required = node.args[: len(node.args) - len(node.defaults)]
        return Signature(tuple(argument.name for argument in node.args), frozenset(one.name for one in required))

    def render(self, path: Path, context: Mapping[str, Any]) -> str:
        """Returns the SQL of a model's file; raises RunnerError `template` with the line of the model or macro."""
        return self._rendered(path, context).strip() + "\n"

    def _rendered(self, path: Path, context: Mapping[str, Any]) -> str:
        with self._guarded(path):
            return self.environment.get_template(str(path)).render(context)

    def call(self, macro: str, *arguments: Any, **named: Any) -> str:
        """Returns the text that a macro prints."""
        with self._guarded(self.files[macro]):
            return str(self._macro(macro)(*arguments, **named)).strip() + "\n"

    def constant(self, macro: str, text: str, where: Where | None) -> Callable[..., str]:
        """Returns a function that prints a text where a template calls a macro; raises `macro-unknown` if there is no
        such macro.
        """
        if macro not in self.files:
            hint = did_you_mean(macro, self.files)
            raise RunnerError("macro-unknown", f'there is no macro "{macro}"', where, hint)
        return lambda *_, **__: text

    def expand(self, text: str, where: Where, context: Mapping[str, Any] = MappingProxyType({})) -> str:
        """Returns a text with its `{{ }}` filled in."""
        return fill(self.environment, text, where, context)

    def parse(self, path: Path) -> jinja2.nodes.Template:
        """Returns the syntax tree of a template; raises RunnerError `template` with the line."""
        with self._guarded(path):
            return self.environment.parse(read_text(path), filename=str(path))

    def _register(self, path: Path) -> None:
        """Registers the macros of a file. They may replace built-in macros that are replaceable."""
        for node in self._parsed(path):
            where = Where(path, node.lineno)
            if node.name in self.own:
                message = f'there are two macros "{node.name}"'
                raise RunnerError("macro-taken", message, where, f"the other one: {self.own[node.name]}")
            if node.name in self.built_in_names:
                _check_replaceable(node.name, where)
            self.files[node.name], self.own[node.name] = path, where

    def _parsed(self, path: Path) -> list[jinja2.nodes.Macro]:
        """Returns the syntax trees of a file's macros."""
        if path not in self.parsed:
            tree = self.environment.parse(read_text(path), filename=str(path))
            self.parsed[path] = [node for node in tree.body if isinstance(node, jinja2.nodes.Macro)]
        return self.parsed[path]

    def _caller(self, macro: str) -> Callable[..., str]:
        """Returns a function that looks the macro up only when it is called: files may call each other's macros in any
        order.
        """
        return lambda *arguments, **named: self._macro(macro)(*arguments, **named)

    def _macro(self, macro: str) -> Callable[..., str]:
        called: Callable[..., str] = self._load(self.files[macro])[macro]
        return called

    def _each(self, items: Iterable[Any], macro: str, *arguments: Any) -> list[str]:
        """Returns for each of several items the text that a macro prints of it."""
        return [self._macro(macro)(one, *arguments) for one in items]

    def _load(self, path: Path) -> Mapping[str, Any]:
        if path not in self.loaded:
            self.loaded[path] = vars(self.environment.get_template(str(path)).module)
        return self.loaded[path]

    @contextmanager
    def _guarded(self, path: Path) -> Iterator[None]:
        """Raises mistakes in templates as RunnerErrors with their places; `path` is the file from which they were
        called.
        """
        try:
            yield
        except jinja2.TemplateSyntaxError as e:
            raise _mistake(e, Where(Path(e.filename or path), e.lineno), self.environment) from None
        except RunnerErrors as several:
            with placed(_innermost(several, path)):
                raise
        except Exception as e:
            where = _innermost(e, path)
            if where.path.is_relative_to(self.built_in) and not isinstance(e, (jinja2.TemplateError, RunnerError)):
                raise
            raise self._called(_mistake(e, where, self.environment), path) from e

    def _called(self, mistake: RunnerError, path: Path) -> RunnerError:
        """Returns the mistake; if it is in a macro, its hint also names the file that calls the macro."""
        if not mistake.where or mistake.where.path == path or path.is_relative_to(self.built_in):
            return mistake
        called = f"called in {from_here(path)}"
        hint = f"{mistake.hint}; {called}" if mistake.hint else called
        return RunnerError(mistake.code, mistake.message, mistake.where, hint)


class TracingRenderer(Renderer):
    """Renders templates again, to say where their SQL comes from, in files for which `is_marked` returns True."""

    environment: TracingSandbox

    def __init__(
        self,
        macro_folders: Iterable[Path],
        globals_: Mapping[str, Any],
        is_marked: Callable[[Path], bool],
        namespace: str = "",
    ) -> None:
        super().__init__(macro_folders, globals_, partial(TracingSandbox, is_marked=is_marked), namespace=namespace)

    def trace(self, path: Path, context: Mapping[str, Any]) -> Trace:
        """Returns the SQL of a model's file, with the place in a template that each piece comes from."""
        return self.environment.trace(self._rendered(path, context))


def function_folder(folder: Path) -> Path:
    """Returns the folder, in a folder of macros, whose files are SQL functions, not macros."""
    return folder / "functions"


def _sql_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.sql") if not path.is_relative_to(function_folder(folder)))


def _check_replaceable(macro: str, where: Where) -> None:
    if not macro.startswith("test_") and macro not in REPLACEABLE:
        message = f'"{macro}" is the name of a built-in macro'
        hint = (
            "give it another name; a project may replace data tests (test_*) and the macros that docs/runner.md lists"
        )
        raise RunnerError("macro-taken", message, where, hint)


def fill(environment: Sandbox, text: str, where: Where, context: Mapping[str, Any] = MappingProxyType({})) -> str:
    """Returns a text with its `{{ }}` filled in."""
    try:
        return environment.from_string(text).render(context)
    except Exception as e:
        raise _mistake(e, where, environment) from e


# The name of a function as Python tells it; a template knows only its last part.
OWN_NAME = re.compile(r"(?:\w+\.)+(?:<\w+>\.)*_?(\w+|<lambda>)\(\)")


# Jinja's words for an attribute that is not there, and its names for kinds of values.
LACKING = re.compile(r"'(.+)' has no attribute '(\w+)'")
KINDS = {
    "str object": "a text",
    "int object": "a number",
    "list object": "a list",
    "dict object": "a mapping",
    "method object": "a function",
    "function object": "a function",
    "None": "none",
}


def _subject(kind: str, environment: Sandbox) -> str:
    """Returns the name that a template has for a value, given the kind of value as Jinja tells it."""
    named = (name for name, value in environment.globals.items() if f"{_type_of(value)} object" == kind)
    return KINDS.get(kind) or next((f'"{name}"' for name in named), f"a {kind}")


def _type_of(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _mistake(error: Exception, where: Where, environment: Sandbox) -> RunnerError:
    """Returns the error with its place; if the error is about an unknown name, with the nearest known one."""
    if isinstance(error, RunnerError):
        return error.at(where)
    message = str(getattr(error, "message", None) or error).rstrip(".")
    if isinstance(error, TypeError):
        message = OWN_NAME.sub(r"\1()", message)
    if isinstance(error, jinja2.exceptions.SecurityError):
        return RunnerError("template-unsafe", message[:1].lower() + message[1:], where, SAFE)
    if isinstance(error, (RecursionError, OverflowError, MemoryError)):
        return RunnerError("template-size", message[:1].lower() + message[1:] or "out of memory", where, SMALL)
    undefined = re.fullmatch(r"'(\w+)' is undefined", message)
    if undefined:
        hint = environment.instead.get(undefined[1]) or did_you_mean(undefined[1], environment.globals)
        return RunnerError("template", f'"{undefined[1]}" is not defined', where, hint)
    lacking = LACKING.fullmatch(message)
    if lacking:
        subject, hint = _subject(lacking[1], environment), environment.instead.get(f".{lacking[2]}", "")
        return RunnerError("template", f'{subject} has no "{lacking[2]}"', where, hint)
    tag = re.match(r"Encountered unknown tag '(\w+)'", message)
    hint = environment.instead.get(tag[1], "") if tag else ""
    return RunnerError("template", message[:1].lower() + message[1:], where, hint)


def _source(path: str) -> tuple[str, str, None] | None:
    return (read_text(Path(path)), path, None) if Path(path).exists() else None


def _innermost(error: BaseException, path: Path) -> Where:
    """Returns the innermost line of a user's template that the error passed through."""
    where, traceback = Where(path), error.__traceback__
    while traceback:
        filename, line = traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
        # Jinja puts the lines of templates into tracebacks of models, but not into those of files with macros.
        template = traceback.tb_frame.f_globals.get("__jinja_template__")
        if re.search(r"\.(sql|yml)$", filename):
            where = Where(Path(filename), template.get_corresponding_lineno(line) if template else line)
        traceback = traceback.tb_next
    return where
