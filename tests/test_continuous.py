"""Landing until a signal comes: what comes while it runs, how far behind it is, how it stops, what a failure of one
stream does to others.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import signal
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from runner.cli import main
from runner.run import continuous
from runner.run.continuous import Continuous, Stream
from tests.engines import Broker, Message
from tests.schema_registry import registry_server
from tests.spark_fixtures import rows
from tests.test_registry_sources import FIRST, SECOND, SPEC, change

pytestmark = pytest.mark.usefixtures("interpreted", "lean")
SECONDS_TO_WAIT = 150


def message(number: int) -> str:
    header = {"type": "INSERT", "database": "d", "table": "t", "es": 1700000000000, "pkNames": ["id"]}
    return json.dumps({**header, "data": [{"id": str(number)}]})


def wait_until(is_so: Callable[[], object], missing: Callable[[], str]) -> None:
    deadline = time.monotonic() + SECONDS_TO_WAIT
    while not is_so():
        assert time.monotonic() < deadline, missing()
        time.sleep(0.02)


class Ran(NamedTuple):
    code: int
    err: str


class Running:
    """A command in the main thread, as another thread sees it: what it has said so far, and how to stop it."""

    def __init__(self, stderr: io.StringIO) -> None:
        self._stderr = stderr

    @property
    def said(self) -> str:
        return self._stderr.getvalue()

    def wait_for(self, text: str, times: int = 1) -> None:
        wait_until(lambda: self.said.count(text) >= times, lambda: f"{text!r} is not in\n{self.said}")

    def wait_for_messages(self, total: int) -> None:
        """Waits until so many have landed, in however many batches."""
        wait_until(
            lambda: sum(map(int, re.findall(r"_to_changelog: (\d+) messages", self.said))) >= total,
            lambda: f"{total} messages have not landed\n{self.said}",
        )

    def send(self, number: int = signal.SIGTERM) -> None:
        os.kill(os.getpid(), number)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Ran]]:
    """Runs a command while a script watches it, which sends the signals; one that fails stops the command."""

    def unheard(*_: object) -> None:
        raise AssertionError("nobody hears the signal")

    # For SIGINT there is a handler of Spark's, which the command has to replace.
    before = signal.signal(signal.SIGTERM, unheard)

    def run(script: Callable[[Running], None], *words: str) -> Ran:
        running = Running(io.StringIO())

        def guarded() -> None:
            try:
                script(running)
            except BaseException:
                while not is_done:
                    running.send()
                    time.sleep(0.5)
                raise

        is_done: list[int] = []
        with monkeypatch.context() as patch, ThreadPoolExecutor(1) as pool:
            patch.setattr(sys, "stderr", running._stderr)
            watching = pool.submit(guarded)
            is_done.append(main(["run", "--continuous", "--trigger", "500ms", *words]))
            watching.result()
        return Ran(is_done[0], running.said)

    yield run
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def folder(tmp_path: Path, spark: object, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, content: bytes) -> None:
    """A file that is whole when it is seen."""
    path.parent.mkdir(exist_ok=True)
    hidden = path.with_name(f".{path.name}")
    hidden.write_bytes(content)
    hidden.rename(path)


def ids(capsys: pytest.CaptureFixture[str], model: str) -> list[int]:
    return sorted(int(row["id"]) for row in rows(capsys, f"select after['id'] as id from {{{{ ref('{model}') }}}}"))


# --- topics


def test_topics(
    broker: Broker,
    folder: Path,
    run: Callable[..., Ran],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Behind and caught up, messages that come while it runs, a new partition, and twice stopped and started again."""
    monkeypatch.setattr(continuous, "QUIET_SECONDS", 2.0)
    monkeypatch.setattr(continuous, "PROGRESS_KEPT", 4)
    stop, kept = Stream.stop, []
    monkeypatch.setattr(
        Stream, "stop", lambda stream, at_once: kept.append(len(stream.query.recentProgress)) or stop(stream, at_once)
    )
    (folder / "project.yml").write_text(
        f"sources: [{{name: app, format: lean, kafka: {{servers: '{broker.servers}', topics: continuous, "
        f"batch: 10}}}}]\n"
    )
    broker.create_topic("continuous", 2)

    def produce(numbers: range, partitions: int) -> None:
        broker.produce("continuous", [Message(message(n).encode(), partition=n % partitions) for n in numbers])

    def first(running: Running) -> None:
        running.wait_for(", 0 behind")
        produce(range(30, 35), 2)
        running.wait_for_messages(35)
        broker.add_partitions("continuous", 3)
        produce(range(36, 60, 3), 3)
        running.wait_for_messages(43)
        running.wait_for("nothing new, 0 behind")
        running.send(signal.SIGTERM)

    produce(range(30), 2)
    ran = run(first)
    assert ran.code == 0, ran.err
    assert ran.err.count("app_to_changelog: ") >= 5 and 0 < kept[0] <= 4, f"Spark remembers {kept} batches"
    assert [line.partition("s, ")[2] for line in ran.err.splitlines() if "10 messages (10 row)" in line] == [
        "20 behind",
        "10 behind",
        "0 behind",
    ]
    assert (
        "only sources are landed continuously" in ran.err
        and "OK streaming model app_to_changelog [43 messages: 43 row in" in ran.err
    )
    assert ran.err.splitlines()[-1].endswith("Done. PASS=1 WARN=0 ERROR=0 SKIP=0 TOTAL=1")
    (result,) = json.loads((folder / "target/run_results.json").read_text())["results"]
    assert result["status"] == "success" and result["adapter_response"]["rows"]["messages"] == 43

    def second(running: Running) -> None:
        running.wait_for('"event": "progress"')
        running.send(signal.SIGINT)

    produce(range(100, 103), 1)
    broker.produce("continuous", [Message(b"{", partition=1)])
    ran = run(second, "-s", "app_to_changelog", "--log-format", "json")
    assert ran.code == 0, ran.err
    (event,) = [event for event in map(json.loads, ran.err.splitlines()) if event["event"] == "progress"]
    assert event.pop("time") and event.pop("seconds") > 0 and event.pop("batch") > 4
    assert event == {
        "event": "progress",
        "name": "app_to_changelog",
        "messages": 4,
        "rows": {"row": 3, "ddl": 0, "control": 0, "dead_letter": 1},
        "reasons": {"not-json": 1},
        "behind": 0,
    }
    assert main(["test", "-q", "-s", "conserved_app"]) == 0
    assert ids(capsys, "changelog") == [*range(35), *range(36, 60, 3), *range(100, 103)]


# --- files


TWO = "sources: [{name: bad, format: lean, files: bad/*}, {name: good, format: lean, files: good/*}]\n"


@pytest.mark.engines
def test_schemas_that_come_while_it_runs(
    folder: Path, run: Callable[..., Ran], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages with a number that is new wait until the registry answers, and each number is asked for once."""
    pause = Continuous._pause
    monkeypatch.setattr(Continuous, "_pause", lambda self, stream: pause(self, replace(stream, pause=1.0)))

    def send(name: str, content: bytes) -> None:
        write(folder / f"changes/{name}.base64", b64encode(content))

    with registry_server() as registry:
        (folder / "formats").mkdir()
        (folder / "formats/maps.yml").write_text(SPEC)
        (folder / "project.yml").write_text(
            "sources:\n  - {name: good, format: lean, files: good/*}\n"
            f"  - {{name: changes, format: maps, files: changes/*, registry: {{url: '{registry.url}'}}}}\n"
        )
        write(folder / "good/1.jsonl", message(1).encode())
        registry.add(7, FIRST)
        send("1", change(7, FIRST, 1))

        def script(running: Running) -> None:
            running.wait_for_messages(2)
            registry.failures = 1_000_000
            send("2", change(8, SECOND, 2))
            running.wait_for("does not give schema 8: it answers 500")
            registry.add(8, SECOND)
            registry.failures = 0
            running.wait_for_messages(3)
            registry.answers.clear()
            send("3", change(8, SECOND, 3))
            running.wait_for_messages(4)
            running.send()

        run(script)
    assert ids(capsys, "changes_to_changelog") == [1, 2, 3]
    assert set(registry.calls) == {"/schemas/ids/7", "/schemas/ids/8"}
    assert registry.calls.count("/schemas/ids/7") == 1


def test_a_stream_that_fails_beside_a_good_one(
    folder: Path, run: Callable[..., Ran], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "project.yml").write_text(TWO)
    write(folder / "good/1.jsonl", message(1).encode())
    write(folder / "bad/1.jsonl", message(1).encode())

    def script(running: Running) -> None:
        running.wait_for("_to_changelog: 1 messages (1 row) in", 2)
        write(folder / "bad/2.jsonl.gz", gzip.compress(os.urandom(50_000))[:-20_000])
        running.wait_for("ERROR streaming model bad_to_changelog [1 messages: 1 row in")
        write(folder / "good/2.jsonl", message(2).encode())
        running.wait_for("good_to_changelog: 1 messages (1 row) in", 2)
        running.send()

    ran = run(script)
    assert ran.code == 1, ran.err
    assert "FAILED_READ_FILE" in ran.err and "bad/2.jsonl.gz" in ran.err, ran.err
    assert "nothing new" not in ran.err and " behind" not in ran.err
    assert "OK streaming model good_to_changelog [2 messages: 2 row in" in ran.err
    results = {
        r["unique_id"].rpartition(".")[2]: r["status"]
        for r in json.loads((folder / "target/run_results.json").read_text())["results"]
    }
    assert results == {"bad_to_changelog": "error", "good_to_changelog": "success"}
    assert ids(capsys, "good_to_changelog") == [1, 2]

    def wait(running: Running) -> None:
        running.wait_for("Done.")

    assert run(wait, "-s", "bad_to_changelog", "-q").code == 1, "all have failed: it ends by itself"

    def mended(running: Running) -> None:
        running.wait_for("ERROR streaming model bad_to_changelog")
        write(folder / "bad/2.jsonl.gz", gzip.compress(message(2).encode()))
        running.wait_for("bad_to_changelog: 1 messages (1 row) in")
        running.send()

    pause = Continuous._pause
    monkeypatch.setattr(Continuous, "_pause", lambda self, stream: pause(self, replace(stream, pause=1.0)))
    ran = run(mended)
    assert ran.code == 0, ran.err
    assert "it had failed, and was started again" in ran.err
    assert ids(capsys, "bad_to_changelog") == [1, 2]


def test_a_batch_in_flight_may_end_but_not_after_a_second_signal(
    folder: Path, run: Callable[..., Ran], capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "project.yml").write_text("sources: [{name: app, format: canal, files: in/*}]\n")
    commits = folder / "warehouse/_checkpoints/app_to_changelog/commits"

    def in_flight(batch: int) -> None:
        wait_until((commits.parent / f"offsets/{batch}").exists, lambda: "no batch has begun")

    def patient(running: Running) -> None:
        in_flight(0)
        running.send(signal.SIGINT)

    def impatient(running: Running) -> None:
        in_flight(1)
        running.send()
        running.wait_for("stopping: waiting for the batch of app_to_changelog")
        running.send()

    write(folder / "in/1.jsonl", "\n".join(map(message, range(30_000))).encode())
    ran = run(patient)
    assert ran.code == 0 and "30 000 messages" in ran.err and (commits / "0").exists(), ran.err
    write(folder / "in/2.jsonl", "\n".join(map(message, range(30_000, 60_000))).encode())
    ran = run(impatient)
    assert ran.code == 0 and "no new messages" in ran.err and not (commits / "1").exists(), ran.err
    assert main(["run", "-q", "-s", "app_to_changelog"]) == 0
    assert main(["test", "-q", "-s", "conserved_app"]) == 0
    assert rows(capsys, "select count(*) as n, count(distinct after['id']) as ids from {{ ref('changelog') }}") == [
        {"n": 60_000, "ids": 60_000}
    ]


# --- mirrors


MIRRORS = """
mirrors:
  - {name: rows, of: {source: good, table: t}, key: [id], columns: {id: int}}
  - {name: refused, of: {source: bad, table: t}, key: [id], on_drift: fail, columns: {id: int}}
"""


def test_mirrors_follow(folder: Path, run: Callable[..., Ran], capsys: pytest.CaptureFixture[str]) -> None:
    """Of what has landed before, and of what lands then; one that fails stops nothing, and is tried again."""
    (folder / "project.yml").write_text(TWO)
    (folder / "models").mkdir()
    (folder / "models/mirrors.yml").write_text(MIRRORS)
    write(folder / "good/1.jsonl", message(1).encode())
    write(folder / "bad/1.jsonl", message(1).encode())
    assert main(["run", "-q", "-s", "config.materialized:streaming"]) == 0

    def script(running: Running) -> None:
        running.wait_for("rows: 1 rows in")
        running.wait_for("refused: 1 rows in")
        write(folder / "bad/2.jsonl", message(2).replace('"id": "2"', '"id": "2", "new": "x"').encode())
        running.wait_for("ERROR table model refused")
        write(folder / "good/2.jsonl", message(2).encode())
        running.wait_for("rows: 2 rows in")
        running.send()

    ran = run(script)
    assert ran.code == 1, ran.err
    assert 'on_drift is fail, and the table has columns that the mirror does not have: "new"' in ran.err
    assert re.search(r"rows: 2 rows in [0-9.]+s, 0 behind", ran.err)
    assert "OK table model rows [2 rows in" in ran.err
    assert rows(capsys, "select id from {{ ref('rows') }} order by id") == [{"id": 1}, {"id": 2}]
