"""A pytest plugin: how long each test took, kept in files, and how many Java processes the tests started.

`target/tests/NAME.json` has the seconds of each test of the last run of a tier, `tests/durations.json` those of each
module (committed; `make durations` writes it). Modules that took longest come first: workers that take the next module
when they are idle then end at the same time.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WRITTEN = ROOT / "target" / "tests"
RECORDED = Path(__file__).parent / "durations.json"
SLOWEST = 20
# The tests of which at least one case runs only in the soak.
SOAK = pytest.StashKey[set[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--durations-name", help="keep durations in target/tests/NAME.json and list the slowest")


def pytest_configure(config: pytest.Config) -> None:
    name = config.getoption("--durations-name")
    if name and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(name), "recorded-durations")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sorts modules by what they took, longest first; tests of a module keep their order. Keeps the soak's names."""
    config.stash[SOAK] = {item.nodeid.split("[")[0] for item in items if item.get_closest_marker("soak")}
    seconds = json.loads(RECORDED.read_text())
    items.sort(key=lambda item: -seconds.get(module_of(item.nodeid), 0))


def module_of(test: str) -> str:
    """
    >>> module_of("tests/test_cli.py::test_help[a::b]")
    'tests/test_cli.py'
    """
    return test.split("::", 1)[0]


class Durations:
    """Collects the reports of all workers."""

    def __init__(self, name: str) -> None:
        self.file, self.java = WRITTEN / f"{name}.json", WRITTEN / f"{name}-java"
        self.seconds: defaultdict[str, float] = defaultdict(float)
        shutil.rmtree(self.java, ignore_errors=True)
        self.java.mkdir(parents=True)
        # Each Java process opens a log of its own, empty but for errors of its garbage collector.
        log = shlex.quote(f"-Xlog:gc=error:file={self.java}/%p.log")
        os.environ["JAVA_TOOL_OPTIONS"] = f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} {log}".strip()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        slowest = sorted(self.seconds.items(), key=lambda one: -one[1])
        self.file.write_text(json.dumps({test: round(seconds, 2) for test, seconds in slowest}, indent=0) + "\n")
        terminalreporter.section(f"slowest {SLOWEST} tests (all: {self.file.relative_to(ROOT)})")
        for test, seconds in slowest[:SLOWEST]:
            terminalreporter.line(f"{seconds:7.2f} s  {test}")
        terminalreporter.line(f"Java was started {len(list(self.java.iterdir()))} times")


def main() -> None:
    """Writes the seconds of each module, as the last run of each tier took them; those under a second do not matter."""
    modules: defaultdict[str, float] = defaultdict(float)
    for file in WRITTEN.glob("*.json"):
        for test, seconds in json.loads(file.read_text()).items():
            modules[module_of(test)] += seconds
    kept = {module: round(seconds) for module, seconds in sorted(modules.items()) if seconds >= 1}
    RECORDED.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
