"""Ctrl-C and SIGTERM, as a terminal and a service manager send them: to a run in a process of its own, with its JVM."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.engine.locks import start_of
from runner.run.schedule import StopSignals

ROOT = Path(__file__).parent.parent
SECONDS_TO_WAIT = 150
# A source of one batch that takes longer than anybody waits, and what reads it.
FILES = {
    "project.yml": "sources: [{name: app, format: canal, files: in/*}]\n",
    "models/counted.sql": "{{ config(materialized='table') }} select count(*) as n from {{ ref('changelog') }}\n",
}


def message(number: int) -> str:
    header = {"type": "INSERT", "database": "d", "table": "t", "es": 1700000000000, "pkNames": ["id"]}
    return json.dumps({**header, "data": [{"id": str(number)}]})


class Run:
    """A run in a process group of its own, as a terminal starts it."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder, self.log = folder, folder / "log.txt"
        command = [sys.executable, "-m", "runner.cli", "--project-dir", str(folder), "run", *words]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, start_new_session=True, stderr=log, stdout=log, cwd=ROOT)

    def wait_for(self, is_so: Callable[[], object]) -> None:
        deadline = time.monotonic() + SECONDS_TO_WAIT
        while not is_so():
            assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.01)

    def send(self, number: int) -> None:
        os.killpg(self.process.pid, number)

    @property
    def results(self) -> dict[str, tuple[str, str]]:
        found = json.loads((self.folder / "target/run_results.json").read_text())["results"]
        return {one["unique_id"].rpartition(".")[2]: (one["status"], one["message"]) for one in found}


@pytest.mark.engines
def test_two_signals_end_a_run_at_once_and_its_results_are_true(project: Callable[..., Path]) -> None:
    folder = project({**FILES, "in/1.jsonl": "\n".join(map(message, range(60_000)))})
    checkpoint = folder / "warehouse/_checkpoints/app_to_changelog"
    run = Run(folder)
    try:
        run.wait_for((checkpoint / "offsets/0").exists)
        jvm = json.loads((folder / "warehouse/_locks/app_to_changelog.lock").read_text())["jvm"]
        began = time.monotonic()
        run.send(signal.SIGINT)
        time.sleep(0.05)
        run.send(signal.SIGTERM)
        assert run.process.wait(20) == 130, run.log.read_text()
        assert time.monotonic() - began < 5
        assert run.results["app_to_changelog"] == ("error", "interrupted")
        assert run.results["counted"] == ("skipped", "because the run was interrupted")
        assert run.log.read_text().splitlines()[-1] == "interrupted" and "Traceback" not in run.log.read_text()
        # What was said to be cut does not land afterwards.
        assert start_of(jvm["pid"]) != jvm["start"] and not (checkpoint / "commits/0").exists()
    finally:
        if run.process.poll() is None:
            run.send(signal.SIGKILL)
        run.process.wait()


def test_a_signal_before_anything_runs_is_in_the_results_too(
    project: Callable[..., Path], runner: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(*_: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    folder = project(FILES)
    monkeypatch.setattr("runner.commands.session.open_spark", started)
    assert runner("run")[0] == 130
    found = json.loads((folder / "target/run_results.json").read_text())["results"]
    assert {one["status"] for one in found} == {"skipped"} and len(found) == 8
    assert {one["message"] for one in found} == {"because the run was interrupted"}


def test_the_second_signal_ends_it_at_once_and_hasty_ones_do_no_harm() -> None:
    ended: list[int] = []
    before = signal.getsignal(signal.SIGTERM)
    with StopSignals() as signals:
        signals.count_only(lambda: None, lambda: ended.append(signals.count))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT, signal.SIGINT):
            signal.raise_signal(number)
        assert signals.count == 4 and ended == [2]
    assert signal.getsignal(signal.SIGTERM) is before
