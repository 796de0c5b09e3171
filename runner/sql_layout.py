"""Folds long lines of SQL so that a person can read them. Only blanks between words become line breaks."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from runner.sql_text import OPAQUE

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
