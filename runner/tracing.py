"""Traces each piece of rendered SQL to its place in a person's templates."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import jinja2.nodes as syntax

from runner.errors import Where
from runner.sandbox import Sandbox

# A character that no template prints: it stands around the number of a place.
MARK = "\0"
MARKED = re.compile(f"{MARK}(\\d+){MARK}")


@dataclass(frozen=True)
class Piece:
    """The characters of a rendered text from `begin` on. If `is_copied` is True, they stand in the template as they
    are, and follow each other there as they do here; else an expression at the place `where` has printed them.
    """

    begin: int
    where: Where
    is_copied: bool


@dataclass(frozen=True)
class Trace:
    """A rendered text, with the pieces that it is made of, in order."""

    text: str
    pieces: tuple[Piece, ...]

    def place(self, line: int, column: int) -> Where | None:
        """Returns the place in a template of a place in the text; None if nothing is known of it."""
        lines = self.text.split("\n")
        if line > len(lines):
            return None
        offset = sum(len(one) + 1 for one in lines[: line - 1]) + column - 1
        number = bisect_right([piece.begin for piece in self.pieces], offset) - 1
        if number < 0:
            return None
        piece = self.pieces[number]
        return _further(piece.where, self.text[piece.begin : offset]) if piece.is_copied else piece.where


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
            pieces.append(Piece(max(offset - began, 0), _further(where, part[:skipped]), is_copied))
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
