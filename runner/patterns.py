"""Patterns for the names of files, as Hadoop reads them: `*`, `?`, `[a-z]`, `[^a-z]` and `{a,b}`; a character after a
backslash stands for itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

# The characters that make a path a pattern, as they stand in a set of characters.
SPECIAL = r"\[\]\{\}\*\?\\"
HAS_SPECIAL = re.compile(f"[{SPECIAL}]")
# A character after a backslash; or an innermost group.
GROUP = re.compile(r"\\.|\{((?:\\.|[^\\{}])*)\}", re.DOTALL)
TOKEN = re.compile(r"\\(.)|(\[[!^]?(?:\\.|[^\]\\])+\])|(.)", re.DOTALL)


def escaped(path: str) -> str:
    """The pattern that matches this path only.

    >>> escaped("/a [1]/b?.jsonl")
    '/a \\\\[1\\\\]/b\\\\?.jsonl'
    """
    return HAS_SPECIAL.sub(r"\\\g<0>", path)


def unescaped(pattern: str) -> str:
    """The path that a pattern without wildcards matches."""
    return re.sub(r"\\(.)", r"\1", pattern, flags=re.DOTALL)


def is_pattern(path: str) -> bool:
    """Whether more than one path can match.

    >>> is_pattern("a[1].jsonl"), is_pattern("a\\\\[1\\\\].jsonl"), is_pattern("{a,b}")
    (True, False, True)
    """
    return any(charset or other in ("*", "?", "{") for _, charset, other in TOKEN.findall(path))


def matching(pattern: str) -> list[Path]:
    """The files and folders of this machine that match a pattern with an absolute path."""
    return sorted({path for parts in _alternatives(pattern) for path in _found(Path("/"), parts)})


def with_colon(pattern: str) -> list[Path]:
    """The names with a colon that come up in the search for a pattern, whether they match or not: Hadoop's own search
    ends at the first of them.
    """
    return sorted(
        {
            path
            for parts in _alternatives(pattern)
            for number, part in enumerate(parts)
            for path in _found(Path("/"), [*parts[:number], "*" if is_pattern(part) else part])
            if ":" in path.name
        }
    )


def _alternatives(pattern: str) -> Iterator[list[str]]:
    """The parts of the paths that a pattern stands for, without groups."""
    group = next((match for match in GROUP.finditer(pattern) if match[1] is not None), None)
    if group is None:
        yield [part for part in os.path.normpath(pattern).split("/") if part]
        return
    for choice in re.split(r"(?<!\\),", group[1]):
        yield from _alternatives(pattern[: group.start()] + choice + pattern[group.end() :])


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
    wild = {"*": ".*", "?": "."}
    texts = [
        re.escape(escape) if escape else charset.replace("[!", "[^", 1) or wild.get(other, re.escape(other))
        for escape, charset, other in TOKEN.findall(part)
    ]
    return re.compile("".join(texts), re.DOTALL)
