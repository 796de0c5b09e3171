"""The packages that the runner needs, and those that are installed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

DISTRIBUTION = "changelog-runner"


@dataclass(frozen=True)
class Package:
    """A package that is needed: the versions that would do, and the one that is installed, None if there is none."""

    name: str
    wanted: str
    installed: str | None

    @property
    def is_right(self) -> bool:
        """
        >>> [Package("a", ">=3.1,<4", installed).is_right for installed in ("3.1.6", "4.0", "3.2rc1", None)]
        [True, False, True, False]
        """
        return self.installed is not None and SpecifierSet(self.wanted).contains(self.installed, prereleases=True)


def packages(with_connect: bool) -> Iterator[Package]:
    """The packages that the runner needs, with those for Spark Connect or without; nothing if it is not installed
    itself.
    """
    try:
        needs = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return
    for need in map(Requirement, needs):
        if not need.marker or need.marker.evaluate({"extra": "connect" if with_connect else ""}):
            wanted = ",".join(sorted(map(str, need.specifier), reverse=True))
            yield Package(need.name, wanted, _installed(need.name))


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
