"""Reads SQL as a sequence of words, texts and signs: enough to find what it calls and where its lines can be
broken, without knowing its grammar.
"""

from __future__ import annotations

import functools
import re
import textwrap
from collections.abc import Iterator
from typing import NamedTuple

# A comment (only the beginning of a comment that may hold others), a literal, a name in backquotes.
OPAQUE = r"""
      (?P<comment>--[^\n]*|/\*)
    | (?P<text>(?:\b[rR])(?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<quoted>`(?:[^`]|``)*`)"""
TOKEN = re.compile(rf"\s*(?:{OPAQUE} | (?P<word>\w+) | (?P<sign>\S))", re.VERBOSE | re.DOTALL)
CALL = re.compile(rf"{OPAQUE} | (?<![\w.])(?P<name>[^\W\d]\w*)\s*\(", re.VERBOSE | re.DOTALL)
COMMENT_ENDS = re.compile(r"/\*|\*/")


class Token(NamedTuple):
    """A token of SQL. `kind` is text (a literal), quoted (a name in backquotes), word (also a number) or sign."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def tokens(sql: str) -> Iterator[Token]:
    """Yields the tokens of SQL, without its comments.

    >>> [token.text for token in tokens("f(`a b`, 'x -- y') -- z")]
    ['f', '(', '`a b`', ',', "'x -- y'", ')']
    >>> [token.text for token in tokens("1 /* a /* b */ c */ + 2")]
    ['1', '+', '2']
    """
    position = 0
    while found := TOKEN.match(sql, position):
        kind, position = str(found.lastgroup), found.end()
        text = found[kind]
        if kind != "comment":
            yield Token(kind, text, found.start(kind))
        elif text == "/*":
            position = _comment_end(sql, position)


def _comment_end(sql: str, position: int) -> int:
    """Returns the position after a comment that may hold other comments, given the position after its beginning."""
    depth = 1
    while depth and (found := COMMENT_ENDS.search(sql, position)):
        depth += 1 if found[0] == "/*" else -1
        position = found.end()
    return len(sql) if depth else position


@functools.lru_cache(maxsize=64)
def names_called(sql: str) -> frozenset[str]:
    """Returns the names of functions that SQL calls, in lower case: all words before a bracket, so some are no
    functions (`in`, `over`). Names in backquotes and names with a schema are left out.

    >>> sorted(names_called("select Upper(a), `lower`(b), s.trim(c), 'left(d)' from t where e in (1) -- f(x)"))
    ['in', 'upper']
    """
    called, position = set(), 0
    while found := CALL.search(sql, position):
        position = found.end()
        if found["name"]:
            called.add(found["name"].lower())
        elif found["comment"] == "/*":
            position = _comment_end(sql, position)
    return frozenset(called)


# --- long lines, folded so that a person can read them: only blanks between words become line breaks

WIDTH = 140
SKIPPED = re.compile(OPAQUE, re.VERBOSE | re.DOTALL)
# A line begins with one of these words rather than with any other word.
LEADING = re.compile(r" (?=(?:when|then|else|and|or|end)\b)")
COMMENT = re.compile(r"( *)-- (.*)")


def folded(sql: str) -> str:
    """Returns the same SQL without lines of more than 140 columns, where there is a blank at which they can be broken.

    >>> print(folded("select\\n  if(" + "a" * 100 + ", 'x y', " + "b" * 40 + ")"))
    select
      if(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, 'x y',
        bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb)
    """
    if all(len(line) <= WIDTH for line in sql.split("\n")):
        return sql
    out: list[str] = []
    position = 0
    hidden = _without_texts(sql)
    for line in sql.split("\n"):
        out += _lines(line, hidden[position : position + len(line)])
        position += len(line) + 1
    return "\n".join(out)


def _without_texts(sql: str) -> str:
    """Returns SQL with another sign for every character of a text, a quoted name or a comment."""
    return SKIPPED.sub(lambda found: re.sub(r"[^\n]", "x", found[0]), sql)


def _lines(line: str, hidden: str) -> Iterator[str]:
    """Yields the parts of a line; `hidden` is the line without texts."""
    if comment := COMMENT.fullmatch(line):
        lead = f"{comment[1]}-- "
        yield from textwrap.wrap(comment[2], WIDTH, initial_indent=lead, subsequent_indent=lead) or [line]
        return
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    while len(line) > WIDTH and (at := _break_at(hidden)):
        yield line[:at].rstrip()
        line, hidden = indent + line[at + 1 :], indent + hidden[at + 1 :]
    yield line


def _break_at(hidden: str) -> int | None:
    """Returns where to break a line: outside of most brackets if possible, then before a word that leads, then late."""
    first = len(hidden) - len(hidden.lstrip())
    depth, best = 0, None
    for at, sign in enumerate(hidden[: WIDTH + 1]):
        depth += (sign in "([") - (sign in ")]")
        if sign == " " and at > first:
            rank = (-depth, bool(LEADING.match(hidden, at)), at)
            best = max(best, rank) if best and at > WIDTH // 3 else rank
    return best[2] if best else None


def digits_of(decimal: str) -> tuple[int, int]:
    """Returns the digits of a decimal type, and how many of them stand behind the point.

    >>> digits_of("decimal(12,2)")
    (12, 2)
    """
    digits, scale = (int(part) for part in re.findall(r"\d+", decimal))
    return digits, scale
