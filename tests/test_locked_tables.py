"""One run at a time on a table, through the command line: who is refused, who is not, what a killed holder leaves."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.engine.locks import TableLocks
from tests.landed import Project
from tests.pages import ROOT

SECONDS_TO_WAIT = 150
PROJECT = "sources: [{name: app, format: canal, files: app/*}, {name: other, format: canal, files: other/*}]\n"


pytestmark = pytest.mark.engines


def write(project: Project, source: str, number: int) -> None:
    message = {"type": "INSERT", "data": [{"id": str(number)}], "pkNames": ["id"]}
    project.write({f"{source}/{number}.jsonl": json.dumps(message)})


def ids(project: Project) -> list[str]:
    return [row["id"] for row in project.rows("select after['id'] as id from changelog order by id")]


@pytest.fixture
def project(tmp_path: Path, spark: object) -> Project:
    return Project(tmp_path, {"project.yml": PROJECT})


@pytest.fixture
def holder(project: Project) -> Iterator[subprocess.Popen[bytes]]:
    """A run that lands `app` and goes on."""
    write(project, "app", 1)
    command = [sys.executable, "-m", "runner.cli", "--project-dir", str(project.folder), "run", "--continuous"]
    command += ["--trigger", "500ms", "-s", "app_to_changelog"]
    with (project / "holder.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_for(project / "holder.log", "app_to_changelog: 1 messages", process)
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for(log: Path, text: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + SECONDS_TO_WAIT
    while text not in log.read_text():
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


def test_a_held_table(project: Project, holder: subprocess.Popen[bytes]) -> None:
    for words in (
        ("run",),
        ("build", "-s", "app_to_changelog"),
        ("run", "-s", "app_to_changelog", "--full-refresh"),
        ("run", "--continuous"),
    ):
        ran = project.run(*words)
        assert ran.code == 2 and ran.out == "", ran.err
        assert re.search(
            r'error\[target-held\]: "app_to_changelog" is being written by "run --continuous" \(process '
            rf"{holder.pid} of \S+ on \S+, since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d UTC\)\n",
            ran.err,
        ), ran.err
        assert f"kill {holder.pid}" in ran.err
    write(project, "other", 5)
    project.ok("run", "-s", "other_to_changelog")
    assert "PASS test conserved_app" in project.ok("test", "-s", "app_to_changelog")
    assert ids(project) == ["1", "5"]

    holder.send_signal(signal.SIGKILL)
    holder.wait()
    write(project, "app", 2)
    project.ok("build")
    assert ids(project) == ["1", "2", "5"]


def test_who_is_refused_has_started_no_jvm(project: Project) -> None:
    """The refusal of a process of its own, which has no Spark at hand: nothing of Spark is even loaded."""
    code = (
        "import sys; from runner.cli import main\n"
        f"try: print(main(['--project-dir', {str(project.folder)!r}, 'build', '-s', 'app_to_changelog']))\n"
        "finally: assert not [m for m in sys.modules if m.split('.')[0] in ('pyspark', 'py4j')]"
    )
    with TableLocks(project / "warehouse/_locks", "build", "local") as locks:
        locks.take(["app_to_changelog"])
        ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ran.stdout == "2\n" and "error[target-held]" in ran.stderr, ran.stderr
    assert f"(process {os.getpid()} of" in ran.stderr and "AssertionError" not in ran.stderr
    project.ok("run", "-s", "app_to_changelog")  # the holder has let go
