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

from tests.spark_fixtures import rows

SECONDS_TO_WAIT = 150
PROJECT = "sources: [{name: app, format: canal, files: app/*}, {name: other, format: canal, files: other/*}]\n"


def write(folder: Path, source: str, number: int) -> None:
    (folder / source).mkdir(exist_ok=True)
    (folder / source / f"{number}.jsonl").write_text(
        json.dumps({"type": "INSERT", "data": [{"id": str(number)}], "pkNames": ["id"]})
    )


@pytest.fixture
def folder(tmp_path: Path, spark: object, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "project.yml").write_text(PROJECT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def holder(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A run that lands `app` and goes on."""
    write(folder, "app", 1)
    command = [
        sys.executable,
        "-m",
        "runner.cli",
        "run",
        "--continuous",
        "--trigger",
        "500ms",
        "-s",
        "app_to_changelog",
    ]
    with (folder / "holder.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_for(folder / "holder.log", "app_to_changelog: 1 messages", process)
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for(log: Path, text: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + SECONDS_TO_WAIT
    while text not in log.read_text():
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


def test_a_held_table(
    folder: Path, holder: subprocess.Popen[bytes], runner, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (
        ("run",),
        ("build", "-s", "app_to_changelog"),
        ("run", "-s", "app_to_changelog", "--full-refresh"),
        ("run", "--continuous"),
    ):
        ran = runner(*words)
        assert ran.code == 2 and ran.out == "", ran.err
        assert re.search(
            r'error\[target-held\]: "app_to_changelog" is being written by "run --continuous" \(process '
            rf"{holder.pid} of \S+ on \S+, since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d UTC\)\n",
            ran.err,
        ), ran.err
        assert f"kill {holder.pid}" in ran.err
    write(folder, "other", 5)
    assert runner("run", "-s", "other_to_changelog").code == 0
    ran = runner("test", "-s", "app_to_changelog")
    assert ran.code == 0 and "PASS test conserved_app" in ran.err, ran.err
    assert [row["id"] for row in rows(capsys, "select after['id'] as id from changelog order by id")] == ["1", "5"]

    holder.send_signal(signal.SIGKILL)
    holder.wait()
    write(folder, "app", 2)
    assert runner("build").code == 0
    assert [row["id"] for row in rows(capsys, "select after['id'] as id from changelog order by id")] == ["1", "2", "5"]


def test_who_is_refused_has_started_no_jvm(folder: Path, runner) -> None:
    """The refusal of a process of its own, which has no Spark at hand: nothing of Spark is even loaded."""
    from runner.engine.locks import TableLocks

    code = (
        "import sys; from runner.cli import main\ntry: print(main(['build', '-s', 'app_to_changelog']))\n"
        "finally: assert not [m for m in sys.modules if m.split('.')[0] in ('pyspark', 'py4j')]"
    )
    with TableLocks(folder / "warehouse/_locks", "build", "local") as locks:
        locks.take(["app_to_changelog"])
        ran = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert (
        ran.stdout == "2\n"
        and "error[target-held]" in ran.stderr
        and f"(process {os.getpid()} of" in ran.stderr
        and "AssertionError" not in ran.stderr
    )
    assert runner("run", "-s", "app_to_changelog").code == 0, "the holder has let go"
