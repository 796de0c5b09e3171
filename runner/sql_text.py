"""Reads SQL as a sequence of words, texts and signs: enough to find what it calls, without knowing its grammar."""

from __future__ import annotations

import functools
import re
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
