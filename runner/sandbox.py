"""Jinja for templates that nobody has reviewed: they compute texts, and reach only the values that they are given. What
they print can be traced to its place in them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import jinja2
import jinja2.nodes as syntax
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment

from runner.errors import Where

# Only the first part of a module's name counts. Objects of other modules, such as paths, may do more than compute.
CALLABLE_OBJECTS_OF = ("builtins", "jinja2", "runner")
READS_FILES = {
    syntax.Include: "include",
    syntax.Import: "import",
    syntax.FromImport: "import",
    syntax.Extends: "extends",
}


class TestTag(Extension):
    """Reads `{% test NAME(model, ...) %} ... {% endtest %}`, which is another way to write the macro `test_NAME`."""

    tags = {"test"}  # noqa: RUF012

    def parse(self, parser: Parser) -> syntax.Node:
        line = next(parser.stream).lineno
        macro = syntax.Macro(lineno=line)
        macro.name = f"test_{parser.parse_assign_target(name_only=True).name}"
        parser.parse_signature(macro)
        macro.body = parser.parse_statements(("name:endtest",), drop_needle=True)
        return macro


class Sandbox(ImmutableSandboxedEnvironment):
    """An environment whose templates see only some names. `instead` maps names and tags that do not exist, but that
    people look for, to hints.
    """

    instead: Mapping[str, str] = MappingProxyType({})

    def __init__(self, names: Mapping[str, Any], **options: Any) -> None:
        super().__init__(undefined=jinja2.StrictUndefined, extensions=["jinja2.ext.do", TestTag], **options)
        self.globals = {**{name: self.globals[name] for name in ("range", "dict", "namespace")}, **names}
        del self.filters["random"]  # the same project compiles to the same SQL

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, list) and attr in ("append", "extend"):
            return True
        is_own = isinstance(value, Macro) or type(obj).__module__.split(".")[0] in CALLABLE_OBJECTS_OF
        return super().is_safe_attribute(obj, attr, value) and (is_own or not callable(value))

    def _parse(self, source: str, name: str | None, filename: str | None) -> syntax.Template:
        tree = super()._parse(source, name, filename)
        for node in tree.find_all(tuple(READS_FILES)):
            message = f'"{READS_FILES[type(node)]}" is not for templates here: macros are called by name'
            raise jinja2.TemplateSyntaxError(message, node.lineno)
        return tree


# --- each piece of rendered SQL, traced to its place in a person's templates

# A character that no template prints: it stands around the number of a place.
MARK = "\0"
MARKED = re.compile(f"{MARK}(\\d+){MARK}")


@dataclass(frozen=True)
class Trace:
    """A rendered text, with the pieces that it is made of, in order: where in the text a piece begins, its place in a
    template, and whether it is copied. Then its characters stand in the template as they are, and follow each other
    there as they do here; else an expression at that place has printed them.
    """

    text: str
    pieces: tuple[tuple[int, Where, bool], ...]

    def place(self, line: int, column: int) -> Where | None:
        """Returns the place in a template of a place in the text; None if nothing is known of it."""
        lines = self.text.split("\n")
        if line > len(lines):
            return None
        offset = sum(len(one) + 1 for one in lines[: line - 1]) + column - 1
        number = bisect_right([begin for begin, *_ in self.pieces], offset) - 1
        if number < 0:
            return None
        begin, where, is_copied = self.pieces[number]
        return _further(where, self.text[begin:offset]) if is_copied else where


class TracingSandbox(Sandbox):
    """An environment whose templates print, before each piece, a mark that says where the piece comes from. Only files
    for which `is_marked` returns True print marks.
    """

    def __init__(self, *arguments: Any, is_marked: Callable[[Path], bool], **options: Any) -> None:
        self.is_marked = is_marked
        self.places: list[tuple[Where, bool]] = []
        super().__init__(*arguments, **options)

    def trace(self, marked: str) -> Trace:
        """Returns the text and the pieces of a marked text, without its marks and without blanks around it."""
        parts = MARKED.split(marked)
        text = "".join(parts[::2])
        began, pieces, offset = len(text) - len(text.lstrip()), [], len(parts[0])
        for number, part in zip(parts[1::2], parts[2::2]):
            where, is_copied = self.places[int(number)]
            skipped = max(began - offset, 0) if is_copied else 0
            pieces.append((max(offset - began, 0), _further(where, part[:skipped]), is_copied))
            offset += len(part)
        return Trace(text.strip(), tuple(pieces))

    def _parse(self, source: str, name: str | None, filename: str | None) -> syntax.Template:
        tree = super()._parse(source, name, filename)
        if filename and self.is_marked(Path(filename)):
            self._mark(tree, self._printed(source, Path(filename)))
        return tree

    def _mark(self, tree: syntax.Template, printed: Iterator[tuple[Where, bool]]) -> None:
        """Puts a mark before all that a template prints, in the order in which it is written."""
        for output in list(tree.find_all(syntax.Output)):
            marked: list[syntax.Node] = []
            for one in output.nodes:
                self.places.append(next(printed))
                mark = syntax.TemplateData(f"{MARK}{len(self.places) - 1}{MARK}", lineno=one.lineno)
                marked += [mark.set_environment(self), one]
            output.nodes = cast("list[syntax.Expr]", marked)

    def _printed(self, source: str, path: Path) -> Iterator[tuple[Where, bool]]:
        """Yields the place of each piece of text and of each expression of a template, and whether it is text."""
        text, found = "\n".join(re.split(r"\r\n|\r|\n", source)), 0
        for _, kind, value in self.lexer.tokeniter(source, None):
            # Blanks that a dash takes away are in no token.
            found = text.index(value, found)
            if (kind == "data" and value) or kind == "variable_begin":
                yield _further(Where(path, 1, 1), text[:found]), kind == "data"
            found += len(value)


def _further(where: Where, text: str) -> Where:
    """Returns the place after a text that begins at a place.

    >>> _further(Where(Path("a"), 3, 5), "select"), _further(Where(Path("a"), 3, 5), "select\\n  1")
    (Where(path=PosixPath('a'), line=3, column=11), Where(path=PosixPath('a'), line=4, column=4))
    """
    lines = text.split("\n")
    line, column = where.line or 1, where.column or 1
    if len(lines) == 1:
        return Where(where.path, line, column + len(text))
    return Where(where.path, line + len(lines) - 1, len(lines[-1]) + 1)
