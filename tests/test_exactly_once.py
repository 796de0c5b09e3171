"""A run that is killed at any moment, and started again: nothing is lost, nothing lands twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runner.cli import main

MESSAGES = 40_000
KILLS = 2


def started(folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "runner.cli", "--project-dir", str(folder), "run", "-s", "app_to_changelog"]
    return subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)


def kill_in_the_middle(process: subprocess.Popen[bytes], delay: float) -> None:
    """Kills the run and its JVM some time after it has begun to land messages."""
    for line in process.stderr:
        if b"START" in line:
            break
    time.sleep(delay)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def write_messages(folder: Path) -> None:
    (folder / "in").mkdir()
    for file in range(8):
        lines = (json.dumps({"type": "INSERT", "data": [{"id": str(n), "v": "x" * 50}], "pkNames": ["id"]}) for n in range(file, MESSAGES, 8))
        (folder / f"in/{file}.jsonl").write_text("\n".join(lines))
    settings = "targets: {local: {spark: {spark.sql.files.maxPartitionBytes: 200000}}}\n"
    (folder / "project.yml").write_text(f"sources: [{{name: app, format: canal, files: in/*}}]\n{settings}")


@pytest.mark.parametrize("kills", [KILLS, pytest.param(20, marks=pytest.mark.soak)])
def test_killed_runs_land_each_message_once(tmp_path: Path, spark: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kills: int) -> None:
    write_messages(tmp_path)
    draw = random.Random(kills)
    for _ in range(kills):
        kill_in_the_middle(started(tmp_path), draw.uniform(0.5, 9))
    monkeypatch.chdir(tmp_path)
    assert main(["build"]) == 0, capsys.readouterr().err
    capsys.readouterr()
    assert main(["show", "--output", "json", "--inline", "select count(*) as n, count(distinct after['id']) as ids from {{ ref('changelog') }}"]) == 0
    assert json.loads(capsys.readouterr().out) == {"n": MESSAGES, "ids": MESSAGES}
