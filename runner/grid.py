"""Rows as text that fits a screen: a table whose cells are wrapped, or blocks of rows if the columns are too many."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from runner.counts import brief

# A column is never narrower than its name, and a part of a value that is shorter than this is never broken.
WHOLE = 30
# A row that would take more lines than this in a table is easier to read as a block; in a block each value is cut after
# this many lines.
MOST_LINES = 12
BETWEEN = " | "
# The number of characters that are shown of a word, or of a member of a map or a list, however wide the screen is.
MOST_OF_PART = 1000
# A word, with the blanks before it.
WORD = re.compile(r"\s*\S+|\s+$")


def grid(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], width: int) -> Iterator[str]:
    """Returns the lines of a table of rows, or of a block for each row if a table cannot fit the width."""
    cells = [[pieces(row[column]) for column in columns] for row in rows]
    widths = _widths(columns, cells, width)
    wrapped = [[_wrapped(cell, size) for cell, size in zip(row, widths)] for row in cells] if widths else []
    if not widths or any(len(lines) > MOST_LINES for row in wrapped for lines in row):
        return _blocks(columns, rows, width)
    return _table(columns, widths, wrapped)


def _table(columns: Sequence[str], widths: Sequence[int], rows: Sequence[Sequence[list[str]]]) -> Iterator[str]:
    yield _line(columns, widths)
    yield BETWEEN.join("-" * width for width in widths)
    is_wrapped = any(len(lines) > 1 for row in rows for lines in row)
    for number, row in enumerate(rows):
        if number and is_wrapped:
            yield ""
        for line in range(max(len(lines) for lines in row)):
            yield _line([lines[line] if line < len(lines) else "" for lines in row], widths)


def _line(texts: Sequence[str], widths: Sequence[int]) -> str:
    return BETWEEN.join(text + " " * (width - width_of(text)) for text, width in zip(texts, widths)).rstrip()


def _blocks(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], width: int) -> Iterator[str]:
    """Yields the rows one after the other, without nulls and empty values."""
    label = max(width_of(column) for column in columns)
    for number, row in enumerate(rows, 1):
        yield f"-- row {number} " + "-" * 40
        for column in columns:
            if row[column] not in (None, {}, []):
                lines = _wrapped(pieces(row[column]), max(40, width - label - 2))
                if len(lines) > MOST_LINES:
                    lines = [*lines[: MOST_LINES - 1], f"… and {len(lines) - MOST_LINES + 1} more lines"]
                for name, text in zip([column, *("" for _ in lines[1:])], lines):
                    yield f"{name}{' ' * (label - width_of(name))}  {text}".rstrip()


def _widths(columns: Sequence[str], cells: Sequence[Sequence[list[str]]], width: int) -> list[int]:
    """Returns the widths of the columns so that a line fits: the widest columns are made narrower. Returns nothing if
    that is not enough.
    """
    by_column = [[row[number] for row in cells] for number in range(len(columns))]
    names = [width_of(name) for name in columns]
    full = [max([name, *(sum(map(width_of, cell)) for cell in column)]) for name, column in zip(names, by_column)]
    parts = [max((width_of(part) for cell in column for part in cell), default=0) for column in by_column]
    least = [max(name, min(part, WHOLE)) for name, part in zip(names, parts)]
    room = width - len(BETWEEN) * (len(columns) - 1)
    caps = (_capped(full, least, cap) for cap in range(room, 0, -1))
    return next((widths for widths in caps if sum(widths) <= room), [])


def _capped(full: Sequence[int], least: Sequence[int], cap: int) -> list[int]:
    return [max(low, min(most, cap)) for most, low in zip(full, least)]


# --- cells


def pieces(value: Any) -> list[str]:
    """Returns the parts of a value between which a line may end: the members of a map or a list, the words of a text.

    >>> pieces({"id": "1", "name": None}), pieces(["a", 2]), pieces("a new day"), pieces(None)
    (['{"id":"1",', '"name":null}'], ['["a",', '2]'], ['a', ' new', ' day'], [''])
    """
    match value:
        case None:
            return [""]
        case str():
            return WORD.findall(brief(visible(value), MOST_OF_PART)) or [""]
        case dict() if value:
            members = [f"{json_text(str(key))}:{json_text(member)}" for key, member in value.items()]
            return _listed("{", members, "}")
        case list() if value:
            return _listed("[", [json_text(member) for member in value], "]")
    return [brief(json_text(value), MOST_OF_PART)]


def _listed(first: str, members: Sequence[str], last: str) -> list[str]:
    ends = [*("," for _ in members[1:]), last]
    texts = (brief(member, MOST_OF_PART) for member in members)
    return [f"{'' if number else first}{text}{ends[number]}" for number, text in enumerate(texts)]


def _wrapped(parts: Sequence[str], width: int) -> list[str]:
    """Returns lines of parts that fit the width; a part that does not fit on a line is broken.

    >>> _wrapped(["a", " new", " day"], 5), _wrapped(["abcdefg", " h"], 3)
    (['a new', 'day'], ['abc', 'def', 'g h'])
    """
    lines = [""]
    for part in parts:
        if width_of(lines[-1]) + width_of(part) <= width:
            lines[-1] += part
            continue
        if lines[-1]:
            lines.append("")
            part = part.lstrip()
        for character in part:
            if width_of(lines[-1]) + width_of(character) > width:
                lines.append("")
            lines[-1] += character
    return lines


def visible(text: str) -> str:
    """Returns a text on one line, in which characters that would move the cursor are blanks or written as codes.

    >>> print(visible("a\\nb\\tc\\x1b[31m"))
    a b c\\x1b[31m
    """
    text = " ".join(text.splitlines()).replace("\t", " ")
    return "".join(ascii(each)[1:-1] if unicodedata.category(each) in ("Cc", "Cs") else each for each in text)


def width_of(text: str) -> int:
    """Returns the columns of a terminal that a text takes: wide characters take two, and accents and the like that are
    characters of their own take none.

    >>> width_of("数a"), width_of("e\\u0301")
    (3, 1)
    """
    if text.isascii():
        return len(text)
    return sum(_width(each) for each in text)


def shortened(text: str, width: int) -> str:
    """Returns a text that is cut to a width.

    >>> shortened("数据库", 5), shortened("数据", 4)
    ('数据…', '数据')
    """
    if width_of(text) <= width:
        return text
    while text and width_of(text) >= width:
        text = text[:-1]
    return f"{text}…"


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def json_text(value: Any) -> str:
    """Returns compact JSON; numbers too large for 64 bits keep their digits."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
