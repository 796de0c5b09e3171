"""The engines of `engines.py` are real, and leave nothing behind. That a broker does what it is told to is seen in
test_kafka.py, and that of a cluster and a server in test_cluster.py.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import engines
from tests.engines import Broker, EngineError, Program, processes, processes_after


@pytest.mark.engines
def test_a_stopped_broker_is_gone_and_what_is_left_of_it_is_quiet(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(KeyboardInterrupt), Broker(tmp_path) as broker:
        broker.create_topic("some")
        assert processes(tmp_path)
        raise KeyboardInterrupt
    assert processes(tmp_path) == []
    del broker
    gc.collect()
    assert caplog.records == []


@pytest.mark.engines
def test_a_broker_that_does_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"controller\.quorum"):
        Broker(tmp_path, {"controller.quorum.voters": ""}).__enter__()
    assert processes(tmp_path) == []


def test_jars_that_are_not_there_say_what_fetches_them(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="make jars"):
        engines.jars("spark", tmp_path)


def test_a_program_that_ends_says_why(tmp_path: Path) -> None:
    program = Program(["sh", "-c", "echo no such port; exit 3"], tmp_path / "worker.log", os.environ)
    with pytest.raises(EngineError, match=r"(?s)worker ended with exit code 3.*no such port"):
        program.wait_until(lambda: False)
    program.stop()


def test_a_program_that_takes_too_long_says_what_it_said(tmp_path: Path) -> None:
    program = Program(["sh", "-c", "echo waiting; sleep 100"], tmp_path / "worker.log", os.environ)
    with pytest.raises(EngineError, match=r"(?s)worker did not start.*waiting"):
        program.wait_until(lambda: False, seconds=0.5)
    program.stop()


KILLED = """
import os, sys, time
from pathlib import Path
from tests.engines import Broker, Program
folder = Path(sys.argv[1])
program = Program(["sh", "-c", "sleep 100 & sleep 100", str(folder)], folder / "program.log", os.environ)
with Broker(folder / "broker"):
    print("up", flush=True)
    time.sleep(100)
"""


@pytest.mark.engines
def test_nothing_outlives_a_killed_test_run(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, cwd=engines.ROOT
    ) as run:
        assert run.stdout and run.stdout.readline() == b"up\n"
        started = "\n".join(processes(tmp_path))
        assert "py4j.GatewayServer" in started and "sleep 100" in started
        run.send_signal(signal.SIGKILL)
    assert processes_after(tmp_path) == []


def test_what_a_spark_of_its_own_runs_does_not_know_this_project(tmp_path: Path) -> None:
    """Else jobs on a cluster or a server would find what they must bring with them."""
    command = [sys.executable, "-c", "import yaml; print('packages'); import runner"]
    ran = subprocess.run(command, env=engines.environment(tmp_path), cwd=tmp_path, capture_output=True, text=True)
    assert ran.stdout == "packages\n" and "No module named 'runner'" in ran.stderr
