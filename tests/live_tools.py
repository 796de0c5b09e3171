"""Tools that tell what happens in a database, each in a JVM of its own that writes messages to a file (tests/live)."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Protocol

from tests.engines import ROOT, EngineError, Program, tail
from tests.landed import Project

JARS = ROOT / ".jars-live"
SECONDS_TO_TELL = 120


class Told(Protocol):
    """A database with a tool that tells its changes. All tables of tests are in its schema `s`, and have a key."""

    missing: ClassVar[str]
    source: dict[str, str]
    types: dict[str, str]
    # Whether statements that change tables are told, as such.
    tells_statements: bool
    # What follows the statement that creates a table.
    after_creation: dict[str, str]
    moments: list[str]
    # Definitions of columns that only it knows, and what makes its tool load a `{table}`.
    additions: list[str]
    loads: list[str]

    def run(self, sql: str) -> str: ...

    def restart(self) -> None: ...

    def rows(self, table: str) -> list[dict[str, Any]]: ...

    def columns(self, table: str) -> list[str]: ...

    def upsert(self, table: str, key: str, values: dict[str, str]) -> str: ...

    def in_order(self, update: str, column: str, step: int) -> str: ...

    def write(self, project: Project, number: int) -> None: ...


class DatabaseError(Exception):
    """What a database says of a statement that it refuses."""


def missing_jars(name: str) -> str:
    """Why a tool cannot run, empty if it can."""
    return "" if any((JARS / name).glob("*.jar")) else f"there are no jars of {name}: run `tools/jars.sh live`"


class Tool:
    """A program of tests/live and the lines that it has written."""

    def __init__(self, name: str, folder: Path, *words: str) -> None:
        self.name, self.folder, self.file = name, folder, folder / "told.jsonl"
        source = ROOT / "tests/live" / f"{name.title()}.java"
        java = f"{os.environ['JAVA_HOME']}/bin/java" if "JAVA_HOME" in os.environ else "java"
        options = [
            "-Xmx512m",
            "-XX:TieredStopAtLevel=1",
            "-Duser.timezone=UTC",
            "-Dfile.encoding=UTF-8",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        ]
        self.command = [java, *options, "-cp", f"{JARS / name}/*", str(source), *words, str(self.file)]
        self.file.touch()
        self.read = self.file.open(encoding="utf-8")
        self.begun = ""
        self.lines: list[str] = []
        self.start()

    def start(self) -> None:
        environment = {name: value for name, value in os.environ.items() if name != "JAVA_TOOL_OPTIONS"}
        self.program = Program(self.command, self.folder / "tool.log", environment)

    def restart(self) -> None:
        self.program.stop()
        self.start()

    def stop(self) -> None:
        self.program.stop()
        self.read.close()

    def new_lines(self) -> Iterator[str]:
        """The lines that have been written since the last call; the last one may not be whole yet."""
        *whole, self.begun = (self.begun + self.read.read()).split("\n")
        self.lines += whole
        yield from whole

    def wait_for(self, is_mark: Callable[[Any], bool]) -> None:
        """Returns when it has told a message."""
        deadline = time.monotonic() + SECONDS_TO_TELL
        while not any(is_mark(json.loads(line)) for line in self.new_lines()):
            if time.monotonic() > deadline:
                raise EngineError(f"{self.name} did not tell a row in {SECONDS_TO_TELL} s:\n{tail(self.program.log)}")
            time.sleep(0.02)

    def take(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines
