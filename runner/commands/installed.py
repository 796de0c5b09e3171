"""The packages that the runner needs, and those that are installed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version

DISTRIBUTION = "changelog-runner"
NEED = re.compile(r"(?P<name>[\w.-]+)(?P<range>[^;]*)(?:;\s*(?P<marker>.*))?")
LIMIT = re.compile(r"(==|!=|>=|<=|<|>)\s*([\w.]+)")


@dataclass(frozen=True)
class Package:
    """A package that is needed: the versions that would do, and the one that is installed, None if there is none."""

    name: str
    wanted: str
    installed: str | None

    @property
    def is_right(self) -> bool:
        return self.installed is not None and is_within(self.installed, self.wanted)


def packages(with_connect: bool) -> Iterator[Package]:
    """The packages that the runner needs, with those for Spark Connect or without; nothing if it is not installed
    itself.
    """
    try:
        needs = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return
    for need in map(NEED.fullmatch, needs):
        if need and (not need["marker"] or (with_connect and "connect" in need["marker"])):
            yield Package(need["name"], need["range"].strip(), _installed(need["name"]))


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def is_within(installed: str, wanted: str) -> bool:
    """
    >>> is_within("3.1.6", "<4,>=3.1"), is_within("4.0", "<4,>=3.1"), is_within("4.1.1", "==4.1.1"), is_within("4", "")
    (True, False, True, True)
    """
    mine = _numbers(installed)
    compared = {
        "==": mine.__eq__,
        "!=": mine.__ne__,
        ">=": mine.__ge__,
        "<=": mine.__le__,
        "<": mine.__lt__,
        ">": mine.__gt__,
    }
    return all(compared[sign](_numbers(limit)) for sign, limit in LIMIT.findall(wanted))


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers of a version, without zeros at its end: 4.1 is 4.1.0."""
    release = re.match(r"[0-9.]*", text)
    numbers = [int(number) for number in (release[0] if release else "").split(".") if number]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
