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
import time
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event
from urllib.request import urlopen

import pytest

from runner.run import continuous
from runner.run.continuous import Continuous, Stream
from tests.conftest import Ran
from tests.engines import Broker, Message
from tests.landed import Project
from tests.schema_registry import registry_server
from tests.test_recording import port as free_port
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


class Running:
    """A command in the main thread, as another thread sees it: what it has said so far, and how to stop it."""

    def __init__(self, stderr: io.StringIO) -> None:
        self.stderr = stderr

    @property
    def said(self) -> str:
        return self.stderr.getvalue()

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


class Followed(Project):
    def follow(self, script: Callable[[Running], None], *words: str) -> Ran:
        """Runs a command while a script watches it, which sends the signals; one that fails stops the command."""
        running, has_ended = Running(io.StringIO()), Event()

        def guarded() -> None:
            try:
                script(running)
            except BaseException:
                while not has_ended.is_set():
                    running.send()
                    time.sleep(0.5)
                raise

        def unheard(*_: object) -> None:
            raise AssertionError("nobody hears the signal")

        # For SIGINT there is a handler of Spark's, which the command has to replace.
        before = signal.signal(signal.SIGTERM, unheard)
        try:
            with ThreadPoolExecutor(1) as pool:
                watching = pool.submit(guarded)
                ran = self.run("run", "--continuous", "--trigger", "500ms", *words, stderr=running.stderr)
                has_ended.set()
                watching.result()
            return ran
        finally:
            signal.signal(signal.SIGTERM, before)

    def send(self, name: str, content: str | bytes) -> None:
        """A file that is whole when it is seen."""
        path = Path(name)
        hidden = str(path.with_name(f".{path.name}"))
        self.write({hidden: content})
        (self / hidden).rename(self / name)

    def ids(self, model: str) -> list[int]:
        return sorted(int(row["id"]) for row in self.rows(f"select after['id'] as id from {model}"))


@pytest.fixture
def project(tmp_path: Path, spark: object) -> Followed:
    return Followed(tmp_path, {})


# --- topics


def test_topics(broker: Broker, project: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind and caught up, messages that come while it runs, a new partition, and twice stopped and started again."""
    monkeypatch.setattr(continuous, "QUIET_SECONDS", 2.0)
    monkeypatch.setattr(continuous, "PROGRESS_KEPT", 4)
    stop, kept = Stream.stop, []
    monkeypatch.setattr(
        Stream, "stop", lambda stream, at_once: kept.append(len(stream.query.recentProgress)) or stop(stream, at_once)
    )
    kafka = f"{{servers: '{broker.servers}', topics: continuous, batch: 10}}"
    project.write({"project.yml": f"sources: [{{name: app, format: lean, kafka: {kafka}}}]\n"})
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
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            served.append(answer.read().decode())
        running.send(signal.SIGTERM)

    port, served = free_port(), []
    produce(range(30), 2)
    ran = project.follow(first, "--metrics", "app.prom", "--metrics-port", str(port))
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
    (result,) = project.results.values()
    assert result["status"] == "success" and result["adapter_response"]["rows"]["messages"] == 43
    of_source = f'{{project="{project.folder.name}",target="local",source="app"}}'
    for text in (*served, (project / "app.prom").read_text()):
        assert f"changelog_runner_messages_total{of_source} 43\n" in text, text
        assert f"changelog_runner_source_behind_messages{of_source} 0\n" in text, text
    assert project.run("status").out.startswith("well\n")

    def second(running: Running) -> None:
        running.wait_for('"event": "progress"')
        running.send(signal.SIGINT)

    produce(range(100, 103), 1)
    broker.produce("continuous", [Message(b"{", partition=1)])
    ran = project.follow(second, "-s", "app_to_changelog", "--log-format", "json")
    # One of four messages is a dead letter; the stream goes on until it is stopped.
    assert ran.code == 1, ran.err
    (event,) = [event for event in map(json.loads, ran.err.splitlines()) if event["event"] == "progress"]
    assert event.pop("time") and event.pop("seconds") > 0 and event.pop("run_id")
    assert (event.pop("project"), event.pop("target")) == (project.folder.name, "local")
    letters = "not well: app has 1 open dead letter (runner dead-letters --source app)\n"
    assert project.run("status").out.startswith(letters)
    number = event.pop("batch")
    assert number > 4
    why = f"batch {number}: 1 dead letter in 4 messages, the limit of 1 % is reached: 1 not-json"
    assert event.pop("message") == f"{why}; runner dead-letters --source app shows them"
    assert project.results["app_to_changelog"]["message"].startswith(why)
    assert event == {
        "event": "progress",
        "name": "app_to_changelog",
        "messages": 4,
        "rows": {"row": 3, "ddl": 0, "control": 0, "dead_letter": 1},
        "reasons": {"not-json": 1},
        "waived": {},
        "status": "fail",
        "behind": 0,
    }
    project.ok("test", "-q", "-s", "conserved_app")
    assert project.ids("changelog") == [*range(35), *range(36, 60, 3), *range(100, 103)]


# --- files


TWO = "sources: [{name: bad, format: lean, files: bad/*}, {name: good, format: lean, files: good/*}]\n"


@pytest.mark.engines
def test_schemas_that_come_while_it_runs(project: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages with a number that is new wait until the registry answers, and each number is asked for once."""
    pause = Continuous._pause
    monkeypatch.setattr(Continuous, "_pause", lambda self, stream: pause(self, replace(stream, pause=1.0)))

    def send(name: str, content: bytes) -> None:
        project.send(f"changes/{name}.base64", b64encode(content))

    with registry_server() as registry:
        sources = (
            "sources:\n  - {name: good, format: lean, files: good/*}\n"
            f"  - {{name: changes, format: maps, files: changes/*, registry: {{url: '{registry.url}'}}}}\n"
        )
        project.write({"project.yml": sources, "formats/maps.yml": SPEC, "good/1.jsonl": message(1)})
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

        project.follow(script)
    assert project.ids("changes_to_changelog") == [1, 2, 3]
    assert set(registry.calls) == {"/schemas/ids/7", "/schemas/ids/8"}
    assert registry.calls.count("/schemas/ids/7") == 1


def test_a_stream_that_fails_beside_a_good_one(project: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write({"project.yml": TWO, "good/1.jsonl": message(1), "bad/1.jsonl": message(1)})

    def script(running: Running) -> None:
        running.wait_for("_to_changelog: 1 messages (1 row) in", 2)
        project.send("bad/2.jsonl.gz", gzip.compress(os.urandom(50_000))[:-20_000])
        running.wait_for("ERROR streaming model bad_to_changelog [1 messages: 1 row in")
        project.send("good/2.jsonl", message(2))
        running.wait_for("good_to_changelog: 1 messages (1 row) in", 2)
        running.send()

    ran = project.follow(script)
    assert ran.code == 1, ran.err
    assert "FAILED_READ_FILE" in ran.err and "bad/2.jsonl.gz" in ran.err, ran.err
    assert "nothing new" not in ran.err and " behind" not in ran.err
    assert "OK streaming model good_to_changelog [2 messages: 2 row in" in ran.err
    assert project.statuses == {"bad_to_changelog": "error", "good_to_changelog": "success"}
    assert project.ids("good_to_changelog") == [1, 2]

    def wait(running: Running) -> None:
        running.wait_for("Done.")

    assert project.follow(wait, "-s", "bad_to_changelog", "-q").code == 1, "all have failed: it ends by itself"

    def mended(running: Running) -> None:
        running.wait_for("ERROR streaming model bad_to_changelog")
        project.send("bad/2.jsonl.gz", gzip.compress(message(2).encode()))
        running.wait_for("bad_to_changelog: 1 messages (1 row) in")
        running.send()

    pause = Continuous._pause
    monkeypatch.setattr(Continuous, "_pause", lambda self, stream: pause(self, replace(stream, pause=1.0)))
    ran = project.follow(mended)
    assert ran.code == 0, ran.err
    assert "it had failed, and was started again" in ran.err
    assert project.ids("bad_to_changelog") == [1, 2]


def test_a_batch_in_flight_may_end_but_not_after_a_second_signal(project: Followed) -> None:
    project.write({"project.yml": "sources: [{name: app, format: canal, files: in/*}]\n"})
    commits = project / "warehouse/_checkpoints/app_to_changelog/commits"

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

    project.send("in/1.jsonl", "\n".join(map(message, range(15_000))))
    ran = project.follow(patient)
    assert ran.code == 0 and "15 000 messages" in ran.err and (commits / "0").exists(), ran.err
    project.send("in/2.jsonl", "\n".join(map(message, range(15_000, 30_000))))
    ran = project.follow(impatient)
    assert ran.code == 0 and "no new messages" in ran.err and not (commits / "1").exists(), ran.err
    project.ok("build", "-q", "-s", "app_to_changelog")
    counted = project.rows("select count(*) as n, count(distinct after['id']) as ids from changelog")
    assert counted == [{"n": 30_000, "ids": 30_000}]


# --- mirrors


MIRRORS = """
mirrors:
  - {name: rows, of: {source: good, table: t}, key: [id], columns: {id: int}}
  - {name: refused, of: {source: bad, table: t}, key: [id], on_drift: fail, columns: {id: int}}
"""


def test_mirrors_follow(project: Followed) -> None:
    """Of what has landed before, and of what lands then; one that fails stops nothing, and is tried again."""
    project.write({"project.yml": TWO, "models/mirrors.yml": MIRRORS})
    project.write({"good/1.jsonl": message(1), "bad/1.jsonl": message(1)})
    project.ok("run", "-q", "-s", "config.materialized:streaming")

    def script(running: Running) -> None:
        running.wait_for("rows: 1 rows in")
        running.wait_for("refused: 1 rows in")
        project.send("bad/2.jsonl", message(2).replace('"id": "2"', '"id": "2", "new": "x"'))
        running.wait_for("ERROR table model refused")
        project.send("good/2.jsonl", message(2))
        running.wait_for("rows: 2 rows in")
        running.send()

    ran = project.follow(script)
    assert ran.code == 1, ran.err
    assert 'on_drift is fail, and the table has columns that the mirror does not have: "new"' in ran.err
    assert re.search(r"rows: 2 rows in [0-9.]+s, 0 behind", ran.err)
    assert "OK table model rows [2 rows in" in ran.err
    assert project.rows("select id from {{ ref('rows') }} order by id") == [{"id": 1}, {"id": 2}]
