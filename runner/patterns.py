"""Patterns for the names of files, as Hadoop reads them: `*`, `?`, `[a-z]`, `[^a-z]` and `{a,b}`; a character after a
backslash stands for itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

# The characters that make a path a pattern, as they stand in a set of characters.
SPECIAL = r"\[\]\{\}\*\?\\"
HAS_SPECIAL = re.compile(f"[{SPECIAL}]")
# A character after a backslash, or a character that makes a group.
BRACES = re.compile(r"\\.|[{},]", re.DOTALL)
TOKEN = re.compile(r"\\(.)|(\[[!^]?(?:\\.|[^\]\\])+\])|(.)", re.DOTALL)


def escaped(path: str) -> str:
    """Returns the pattern that matches this path only.

    >>> escaped("/a [1]/b?.jsonl")
    '/a \\\\[1\\\\]/b\\\\?.jsonl'
    """
    return HAS_SPECIAL.sub(r"\\\g<0>", path)


def unescaped(pattern: str) -> str:
    """Returns the path that a pattern without wildcards matches."""
    return re.sub(r"\\(.)", r"\1", pattern, flags=re.DOTALL)


def is_pattern(path: str) -> bool:
    """Returns True if more than one path can match.

    >>> is_pattern("a[1].jsonl"), is_pattern("a\\\\[1\\\\].jsonl"), is_pattern("{a,b}")
    (True, False, True)
    """
    return any(charset or other in ("*", "?", "{") for _, charset, other in TOKEN.findall(path))


def matching(pattern: str) -> list[Path]:
    """Returns the files and folders of this machine that match a pattern with an absolute path."""
    return sorted({path for parts in _alternatives(pattern) for path in _found(Path("/"), parts)})


def with_colon(pattern: str) -> list[Path]:
    """Returns the names with a colon that come up in the search for a pattern, whether they match or not: Hadoop's own
    search ends at the first of them. Where Hadoop looks for folders, it passes over files.
    """
    return sorted(
        {
            path
            for parts in _alternatives(pattern)
            for number, part in enumerate(parts)
            for path in _found(Path("/"), [*parts[:number], "*" if is_pattern(part) else part])
            if ":" in path.name and (number == len(parts) - 1 or path.is_dir())
        }
    )


def _alternatives(pattern: str) -> Iterator[list[str]]:
    """Yields the parts of the paths that a pattern stands for. As in Hadoop, a group with a slash makes several
    patterns, and a group without a slash is a wildcard.
    """
    for before, *choices, behind in _groups(pattern):
        if any("/" in choice for choice in choices):
            for choice in choices:
                yield from _alternatives(before + choice + behind)
            return
    yield [part for part in os.path.normpath(pattern).split("/") if part]


def _groups(pattern: str) -> Iterator[list[str]]:
    """Yields, for each group that is not inside another, the text before it, its choices, and the text after it."""
    depth, cuts = 0, [-1]
    for brace in BRACES.finditer(pattern):
        depth += brace[0] == "{"
        if depth == 1 and brace[0] in ("{", ",", "}"):
            cuts.append(brace.start())
        if depth and brace[0] == "}":
            depth -= 1
            if not depth:
                yield [pattern[at + 1 : to] for at, to in pairwise([*cuts, len(pattern)])]
                cuts = [-1]


def _found(folder: Path, parts: list[str]) -> Iterator[Path]:
    if not parts:
        yield folder
    elif not is_pattern(parts[0]):
        child = folder / unescaped(parts[0])
        if os.path.exists(child):
            yield from _found(child, parts[1:])
    elif os.access(folder, os.R_OK) and os.path.isdir(folder):
        accepts = _expression(parts[0]).fullmatch
        for name in filter(accepts, os.listdir(folder)):
            yield from _found(folder / name, parts[1:])


def _expression(part: str) -> re.Pattern[str]:
    return re.compile(_regular(part), re.DOTALL)


def _regular(part: str) -> str:
    """Returns the regular expression for a part of a pattern."""
    for before, *choices, behind in _groups(part):
        return f"{_regular(before)}(?:{'|'.join(map(_regular, choices))}){_regular(behind)}"
    wild = {"*": ".*", "?": "."}
    return "".join(
        re.escape(escape) if escape else charset.replace("[!", "[^", 1) or wild.get(other, re.escape(other))
        for escape, charset, other in TOKEN.findall(part)
    )
