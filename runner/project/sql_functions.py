"""The reader of SQL functions: `create function` statements become data."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from runner.errors import RunnerError, Where
from runner.sql_text import Token, names_called, tokens

FORM = "create function NAME(ARGUMENT TYPE comment '...') returns TYPE comment '...' return EXPRESSION;"
OPENING, CLOSING = frozenset("(<"), frozenset(")>")
# The words and signs that end a type, outside of its brackets.
AFTER_TYPE = frozenset({"comment", "return", ",", ")"})


@dataclass(frozen=True)
class Argument:
    name: str
    type: str
    comment: str


@dataclass(frozen=True)
class SqlFunction:
    """A SQL function. `text` is the statement that makes it, without `create function` before and the semicolon behind;
    `calls` are the names that it calls, Spark's own functions included. `in_library` is True if all queries may call
    it, False if only those of one source may.
    """

    name: str
    arguments: tuple[Argument, ...]
    returns: str
    comment: str
    text: str
    calls: frozenset[str] = field(repr=False)
    where: Where = field(compare=False)
    in_library: bool = True


def printed_functions(text: str, macro: str) -> tuple[SqlFunction, ...]:
    """Returns the functions of one source, from the text that a macro printed for it; raises `function-syntax` with the
    line of that text. The functions are in the order in which they must be made.
    """
    return tuple(replace(one, in_library=False) for one in read_functions(text, Path(macro)))


def read_functions(text: str, path: Path, template: str = "") -> list[SqlFunction]:
    """Returns the functions of a text of `create function` statements; raises `function-syntax` with the line. If the
    text was rendered, `template` is its template: lines are then those of the template, where it has the same line.
    """
    written, source = text.split("\n"), template.split("\n")

    def where(position: int) -> Where:
        number = text.count("\n", 0, position)
        return Where(path, _line_in(source, written[number], number) + 1)

    parser = Parser(text, where)
    out = []
    while not parser.at_end:
        out.append(parser.function())
    return out


def _line_in(template: list[str], line: str, number: int) -> int:
    """Returns the index of a line in a template, given its index in the rendered text."""
    return number if template[number : number + 1] == [line] or line not in template else template.index(line)


class Parser:
    """Reads the statements of a text, one after the other."""

    def __init__(self, text: str, where: Callable[[int], Where]) -> None:
        self.sql, self.where = text, where
        self.tokens = list(tokens(text))
        self.next = 0

    @property
    def at_end(self) -> bool:
        return self.next == len(self.tokens)

    def function(self) -> SqlFunction:
        """Returns the function of the next statement."""
        start = self._word("create")
        self._word("function")
        named = self._name()
        name = _unquoted(named)
        self._sign("(")
        arguments = tuple(self._arguments(name))
        self._word("returns")
        returns = self._type(f'the result of "{name}"', start)
        comment = self._comment(f'the function "{name}"', start)
        self._word("return")
        first = self._peek()
        end = self._skipped_to_semicolon(start)
        if first is end:
            raise self._error(f'"{name}" returns nothing', first)
        body = self.sql[first.start : end.start]
        return SqlFunction(
            name,
            arguments,
            returns,
            comment,
            self.sql[named.start : end.start].strip(),
            names_called(body),
            self.where(start.start),
        )

    def _arguments(self, function: str) -> Iterator[Argument]:
        """Returns the arguments up to and with the closing bracket."""
        names: set[str] = set()
        while self._peek().text != ")":
            token = self._name()
            name = _unquoted(token)
            if name.lower() in names:
                raise self._error(f'"{function}" has two arguments "{name}"', token)
            names.add(name.lower())
            kind = self._type(f'the argument "{name}"', token)
            yield Argument(name, kind, self._comment(f'the argument "{name}"', token))
            if self._peek().text != ")":
                self._sign(",")
        self._sign(")")

    def _type(self, of: str, start: Token) -> str:
        """Returns a type: everything up to its comment."""
        first, depth = self._peek(), 0
        while self._peek().text != ";" and (depth or self._peek().text.lower() not in AFTER_TYPE):
            sign = self._take().text
            depth += (sign in OPENING) - (sign in CLOSING)
        if self._peek() is first:
            raise self._error(f"{of} has no type", start)
        return " ".join(self.sql[first.start : self._peek().start].split())

    def _comment(self, of: str, start: Token) -> str:
        """Returns the text behind the word comment."""
        if self._peek().text.lower() != "comment":
            raise self._error(f"{of} has no comment", start)
        self.next += 1
        token = self._take()
        if token.kind != "text" or not token.text.strip("'\" "):
            raise self._error(f"{of} has no comment", token)
        return re.sub(r"\\(.)", r"\1", token.text[1:-1], flags=re.DOTALL)

    def _name(self) -> Token:
        token = self._take()
        if token.kind not in ("word", "quoted"):
            raise self._error(f'expected a name, not "{token.text}"', token)
        return token

    def _word(self, word: str) -> Token:
        token = self._take()
        if token.kind != "word" or token.text.lower() != word:
            raise self._error(f'expected "{word}", not "{token.text}"', token)
        return token

    def _sign(self, sign: str) -> None:
        token = self._take()
        if token.text != sign:
            raise self._error(f'expected "{sign}", not "{token.text}"', token)

    def _skipped_to_semicolon(self, start: Token) -> Token:
        while not self.at_end:
            if (token := self._take()).text == ";":
                return token
        raise self._error("a function must end with a semicolon", start)

    def _take(self) -> Token:
        token = self._peek()
        self.next += 1
        return token

    def _peek(self) -> Token:
        if self.at_end:
            raise self._error("the last function is not complete", self.tokens[-1])
        return self.tokens[self.next]

    def _error(self, message: str, at: Token) -> RunnerError:
        return RunnerError("function-syntax", message, self.where(at.start), FORM)


def _unquoted(token: Token) -> str:
    return token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text


def distinct(groups: Iterable[Iterable[SqlFunction]]) -> tuple[SqlFunction, ...]:
    """Returns the functions of all groups, each once. If each group is in the order in which its functions must be
    made, so is the result.
    """
    return tuple(dict.fromkeys(itertools.chain.from_iterable(groups)))
