"""What shows only after long: an hour of streams, a clock that is set back, many projects on one
lake. Expected counts are those of what was sent.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.bench_messages import JSON_MESSAGES
from tests.engines import Broker, Message, stop_group
from tests.sparks import JARS

pytestmark = pytest.mark.soak


def command(folder: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "runner.cli", "--project-dir", str(folder), *words]


def said(folder: Path, *words: str, **environment: str) -> str:
    """The standard output of a command that succeeds, in a process of its own."""
    ran = subprocess.run(command(folder, *words), capture_output=True, text=True, env={**os.environ, **environment})
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def shown(folder: Path, sql: str) -> list[dict[str, Any]]:
    words = ("show", "--output", "json", "--limit", "10000", "--inline", sql)
    return [json.loads(line) for line in said(folder, *words).splitlines()]


# --- streams


MINUTES = float(os.environ.get("MINUTES", "60"))
SECONDS_DOWN = 30
STREAMS = """
target: here
targets: {{here: {{jars: {jars}/spark/*.jar}}}}
sources:
  - {{name: canal, format: canal, kafka: {{servers: '{servers}', topics: canal}}}}
  - {{name: dataworks, format: dataworks, kafka: {{servers: '{servers}', pattern: 'dataworks.*'}}}}
  - {{name: oms_default, format: oms_default, kafka: {{servers: '{servers}', topics: oms_default}}}}
"""
PLACES = """
select source, count(*) as n, count(distinct origin.topic, origin.partition, origin.offset) as places,
  count(distinct origin.partition) as partitions, count(distinct origin.topic) as topics,
  max(cardinality(after)) as columns
from (select * from canal_to_changelog union all select * from dataworks_to_changelog
  union all select * from oms_default_to_changelog)
where seq.row = 0 group by source
"""


def megabytes_of_group(leader: int) -> float:
    """The resident memory of all processes of a group."""
    pages = 0
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
            if int(fields[2]) == leader:
                pages += int((status.parent / "statm").read_text().split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Feed:
    """Sends messages of three formats to their topics, some each second."""

    def __init__(self, broker: Broker) -> None:
        self.broker, self.sent, self.draw = broker, Counter[str](), random.Random(1)
        self.topics = {"canal": ["canal"], "dataworks": ["dataworks"], "oms_default": ["oms_default"]}
        self.has_new_column = False

    def send(self, number: int) -> None:
        for source, topics in self.topics.items():
            topic = topics[number % len(topics)]
            messages = [json.dumps(self._changed(one)).encode() for one in JSON_MESSAGES[source](number, self.draw)]
            self.broker.produce(topic, [Message(one, str(number).encode()) for one in messages])
            self.sent[source] += len(messages)

    def _changed(self, message: dict[str, Any]) -> dict[str, Any]:
        if self.has_new_column and "data" in message:
            message["data"][0]["added"] = "x"
            message["mysqlType"] = {**message["mysqlType"], "added": "varchar(10)"}
        return message


def events(feed: Feed) -> Iterator[tuple[float, Any]]:
    """What happens to topics and broker, each at a part of the time."""

    def renamed() -> None:
        feed.broker.create_topic("dataworks_2")
        feed.topics["dataworks"].append("dataworks_2")

    def schema_changed() -> None:
        feed.has_new_column = True

    yield 0.25, lambda: feed.broker.add_partitions("canal", 3)
    yield 0.4, renamed
    yield 0.5, lambda: feed.broker.restart(SECONDS_DOWN)
    yield 0.7, schema_changed


def test_streams_for_an_hour(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Broker(tmp_path / "broker") as broker:
        for topic in ("canal", "dataworks", "oms_default"):
            broker.create_topic(topic)
        folder = tmp_path / "project"
        folder.mkdir()
        (folder / "project.yml").write_text(STREAMS.format(servers=broker.servers, jars=JARS))
        with (tmp_path / "log.txt").open("wb") as log:
            words = command(folder, "run", "--continuous", "--trigger", "2s", "-s", "config.materialized:streaming")
            run = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
        try:
            feed = Feed(broker)
            memory = fed(feed, run, tmp_path / "log.txt")
            caught_up(folder, run, feed, tmp_path / "log.txt")
        finally:
            stop_group(run)
        landed = {row["source"]: row for row in shown(folder, PLACES)}
    log_text = (tmp_path / "log.txt").read_text()
    assert {name: (row["n"], row["places"]) for name, row in landed.items()} == {
        name: (number, number) for name, number in feed.sent.items()
    }, log_text[-3_000:]
    assert (landed["canal"]["partitions"], landed["dataworks"]["topics"], landed["canal"]["columns"]) == (3, 2, 15)
    quarter = len(memory) // 4
    middle, last = max(memory[quarter : 2 * quarter]), max(memory[-quarter:])
    with capsys.disabled():
        print(f"\n{sum(feed.sent.values())} messages in {MINUTES} minutes; MB by the minute: {memory}")
    assert last < 1.25 * middle, memory


def fed(feed: Feed, run: subprocess.Popen[bytes], log: Path) -> list[int]:
    """Sends messages until the time is over, while things happen; returns the memory of the run, a number a minute."""
    began, waiting, memory, number = time.monotonic(), list(events(feed)), [], 0
    while (passed := time.monotonic() - began) < MINUTES * 60:
        assert run.poll() is None, log.read_text()[-3_000:]
        if waiting and passed > waiting[0][0] * MINUTES * 60:
            waiting.pop(0)[1]()
        for _ in range(10):
            feed.send(number)
            number += 1
        if passed > 60 * len(memory):
            memory.append(round(megabytes_of_group(run.pid)))
        time.sleep(1)
    return memory


def caught_up(folder: Path, run: subprocess.Popen[bytes], feed: Feed, log: Path) -> None:
    """Waits until all is read, then stops the run as a service manager does."""
    deadline = time.monotonic() + 120
    total, landed = sum(feed.sent.values()), 0
    while landed < total and time.monotonic() < deadline:
        time.sleep(5)
        landed = sum(committed(folder, source) for source in feed.sent)
    run.send_signal(signal.SIGTERM)
    assert run.wait(120) == 0, log.read_text()[-3_000:]


def committed(folder: Path, source: str) -> int:
    """The messages up to which a source's stream has committed."""
    checkpoint = next(folder.rglob(f"_checkpoints/{source}_to_changelog"))
    newest = max((int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit()), default=None)
    if newest is None:
        return 0
    offsets = json.loads((checkpoint / f"offsets/{newest}").read_text().splitlines()[-1])
    return sum(offset for partitions in offsets.values() for offset in partitions.values())


# --- clocks


CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long shift(void) { const char *text = getenv("CLOCK_SHIFT"); return text ? atol(text) : 0; }
int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*whole)(clockid_t, struct timespec *);
  if (!whole) whole = dlsym(RTLD_NEXT, "clock_gettime");
  int code = whole(clock, now);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += shift();
  return code;
}
int gettimeofday(struct timeval *now, void *zone) {
  struct timespec precise;
  int code = clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec; now->tv_usec = precise.tv_nsec / 1000;
  return code;
}
time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
"""
TAKEN = """
{{ config(materialized='incremental') }}
select source, count(*) as n from {{ new_rows('changelog') }} group by source
"""


@pytest.fixture
def clock(tmp_path: Path) -> str:
    """A library that shifts the clock of a process by CLOCK_SHIFT seconds."""
    source, library = tmp_path / "clock.c", tmp_path / "clock.so"
    source.write_text(CLOCK)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    return str(library)


def canal(first: int, count: int) -> str:
    draw = random.Random(first)
    lines = [one for number in range(first, first + count) for one in JSON_MESSAGES["canal"](number, draw)]
    return "".join(json.dumps(line) + "\n" for line in lines)


def test_a_clock_that_is_set_back(tmp_path: Path, clock: str) -> None:
    """By a month, an hour, and then right again: what lands then is new all the same."""
    folder = tmp_path / "project"
    (folder / "models").mkdir(parents=True)
    (folder / "in").mkdir()
    (folder / "project.yml").write_text("sources: [{name: app, format: canal, files: in/*}]\n")
    (folder / "models/taken.sql").write_text(TAKEN)
    for number, shift in enumerate((0, -30 * 86_400, -3_600, 0, 86_400, 0)):
        path = folder / f"in/{number}.jsonl"
        path.write_text(canal(100 * number, 100))
        os.utime(path, (time.time() + shift, time.time() + shift))
        said(folder, "run", CLOCK_SHIFT=str(shift), LD_PRELOAD=clock)
    landed = shown(
        folder, "select count(*) as n, count(distinct after['id'], before['id']) as ids from app_to_changelog"
    )
    assert [row["n"] for row in landed] == [600]
    assert [row["n"] for row in shown(folder, "select sum(n) as n from {{ ref('taken') }}")] == [600]
    said(folder, "test", "--data")


# --- projects


PROJECTS = int(os.environ.get("PROJECTS", "10"))


@pytest.mark.parametrize("storage", ["parquet", "delta", "iceberg"])
def test_many_projects_on_one_lake(tmp_path: Path, storage: str) -> None:
    """All at once, three times: none waits for, refuses or damages what others do."""
    jars = {"delta": f"jars: '{JARS}/spark/[!is]*.jar'", "iceberg": f"jars: '{JARS}/spark/iceberg*.jar'"}
    more = f", {jars[storage]}" if storage in jars else ""
    catalog = ", catalog: {type: hadoop}" if storage == "iceberg" else ""
    folders = [tmp_path / f"project_{number}" for number in range(PROJECTS)]
    for number, folder in enumerate(folders):
        (folder / "in").mkdir(parents=True)
        (folder / "models").mkdir()
        (folder / f"models/taken_{number}.sql").write_text(TAKEN)
        (folder / "project.yml").write_text(
            f"name: project_{number}\ntarget: lake\n"
            f"targets: {{lake: {{storage: {storage}, path: {tmp_path}/lake{more}{catalog}}}}}\n"
            f"sources: [{{name: app_{number}, format: canal, files: in/*}}]\n"
        )
    for turn in range(3):
        for number, folder in enumerate(folders):
            (folder / f"in/{turn}.jsonl").write_text(canal(100 * turn, 10 * (number + 1)))
        with ThreadPoolExecutor(len(folders)) as pool:
            list(pool.map(lambda folder: said(folder, "run"), folders))
    for number, folder in enumerate(folders):
        landed = shown(folder, f"select count(*) as n from app_{number}_to_changelog")
        taken = shown(folder, f"select sum(n) as n from {{{{ ref('taken_{number}') }}}}")
        assert [row["n"] for row in landed + taken] == [30 * (number + 1)] * 2
