"""The engines of `engines.py` are real, and leave nothing behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import engines
from tests.engines import Broker, ConnectServer, EngineError, Message, Program, StandaloneCluster


def processes(folder: Path) -> list[str]:
    """The command lines of what runs with this folder, or in it."""
    listed = subprocess.run(["ps", "-A", "-ww", "-o", "args="], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if str(folder) in line]


def processes_after(folder: Path, seconds: float = 10) -> list[str]:
    """What still runs with this folder when it has had time to end."""
    deadline = time.monotonic() + seconds
    while processes(folder) and time.monotonic() < deadline:
        time.sleep(0.1)
    return processes(folder)


def test_messages_arrive_as_they_were_produced(broker: Broker) -> None:
    sent = [
        Message(b"\xff\x00", b"key", [("trace", b"\x00\xff"), ("trace", b"")], 0, 5),
        Message(None, b"key", [], 0, 1_700_000_000_000),
        Message(b"", None, [], 1, 1_700_000_000_000),
    ]
    broker.create_topic("produced", partitions=2)
    broker.produce("produced", sent)
    assert broker.messages("produced") == sent


def test_a_key_chooses_the_partition(broker: Broker) -> None:
    broker.create_topic("keyed", partitions=8)
    broker.produce("keyed", [Message(b"", key) for key in (b"a", b"c", b"a", b"d")])
    partitions: dict[bytes | None, set[int | None]] = {}
    for message in broker.messages("keyed"):
        partitions.setdefault(message.key, set()).add(message.partition)
    assert [len(numbers) for numbers in partitions.values()] == [1, 1, 1]
    assert len(set.union(*partitions.values())) > 1


def test_a_topic_gains_partitions(broker: Broker) -> None:
    broker.create_topic("growing")
    broker.produce("growing", [Message(b"old")])
    broker.add_partitions("growing", 3)
    broker.produce("growing", [Message(b"new", partition=2)])
    assert broker.end_offsets("growing") == {0: 1, 1: 0, 2: 1}


def test_deleted_records_are_gone(broker: Broker) -> None:
    broker.create_topic("losing", partitions=2)
    broker.produce("losing", [Message(str(number).encode(), partition=0) for number in range(5)])
    broker.delete_records("losing", {0: 3})
    assert (broker.start_offsets("losing"), broker.end_offsets("losing")) == ({0: 3, 1: 0}, {0: 5, 1: 0})
    assert [message.value for message in broker.messages("losing")] == [b"3", b"4"]


def test_a_topic_has_its_settings(broker: Broker) -> None:
    broker.create_topic("small", max_message_bytes=1000)
    with pytest.raises(Exception, match="RecordTooLargeException"):
        broker.produce("small", [Message(os.urandom(2000))])


def test_a_big_message_arrives(broker: Broker) -> None:
    broker.create_topic("big")
    broker.produce("big", [Message(b"v" * 50_000_000)])
    assert broker.end_offsets("big") == {0: 1}


@pytest.mark.spark
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


@pytest.mark.spark
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


@pytest.mark.spark
def test_nothing_outlives_a_killed_test_run(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, cwd=engines.ROOT
    ) as run:
        assert run.stdout and run.stdout.readline() == b"up\n"
        started = "\n".join(processes(tmp_path))
        assert "py4j.GatewayServer" in started and "sleep 100" in started
        run.send_signal(signal.SIGKILL)
    assert processes_after(tmp_path) == []


USES_PROJECT = """
import sys
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
import runner
def without(number): return number + 1
def with_project(number):
    import runner
    return 1
spark = SparkSession.builder.master(sys.argv[1]).config("spark.ui.enabled", "false").getOrCreate()
summed, called = spark.range(4).selectExpr("sum(id)"), spark.range(1).select(udf(without, "int")("id"))
print(summed.collect()[0][0], called.collect()[0][0])
try:
    spark.range(1).select(udf(with_project, "int")("id")).collect()
except Exception as error:
    print("ModuleNotFoundError: No module named 'runner'" in str(error))
"""


@pytest.mark.soak
@pytest.mark.spark
def test_a_cluster_works_and_does_not_know_the_project(tmp_path: Path) -> None:
    with StandaloneCluster(tmp_path) as cluster:
        command = [sys.executable, "-c", USES_PROJECT, cluster.master]
        run = subprocess.run(command, capture_output=True, text=True, cwd=engines.ROOT, timeout=120)
    assert run.stdout.splitlines() == ["6 1", "True"], run.stderr
    assert processes_after(tmp_path) == []


@pytest.mark.spark
def test_a_connect_server_starts_and_stops(tmp_path: Path) -> None:
    with ConnectServer(tmp_path, conf={"spark.app.name": "connected"}) as server:
        assert server.remote.startswith("sc://127.0.0.1:")
        assert processes(tmp_path)
    assert processes_after(tmp_path) == []
