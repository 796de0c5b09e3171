"""A run that is killed at any moment, and started again: nothing is lost, nothing lands twice, on any storage."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from runner.cli import main
from tests.spark_fixtures import batches_in_files
from tests.sparks import JARS

pytestmark = [pytest.mark.engines, pytest.mark.usefixtures("interpreted")]
STORAGES = ("parquet", "delta", "iceberg")
# Where each keeps a list of commits, and what an entry in it is called.
COMMITS = {
    "parquet": ("app_to_changelog/_spark_metadata", r"\d+(\.compact)?"),
    "delta": ("app_to_changelog/_delta_log", r".*\.json"),
    "iceberg": ("changelog/app_to_changelog/metadata", r".*\.metadata\.json"),
}
MESSAGES_OF_A_FILE = 2_000
SECONDS_OF_A_RUN = 300
PROJECT = f"""
sources: [{{name: app, format: canal, files: in/*, dead_letters: {{fail: null}}}}]
target: calm
targets:
  calm: {{path: lake/calm}}
  parquet: {{path: lake/parquet, spark: &small {{spark.sql.files.maxPartitionBytes: 100000}}}}
  delta: {{storage: delta, path: lake/delta, jars: '{JARS}/spark/[!is]*.jar', spark: *small}}
  iceberg:
    storage: iceberg
    path: lake/iceberg
    catalog: {{type: hadoop}}
    jars: {JARS}/spark/iceberg*.jar
    spark: *small
"""
# All that two runs over the same messages must agree on: the place of a row in its file depends on how files were
# divided among tasks.
SUMMARY = """
select
  kind, count(*) as n, count(distinct coalesce(raw, after['id'])) as ids, count(distinct origin.file) as files,
  sum(cast(xxhash64(
    op, to_json(after), key_text, changed, to_json(before), event_time, reason, raw, origin.file, seq.row
  ) as decimal(38))) as hash
from app_to_changelog group by kind order by kind
"""
TAKEN = """
{{ config(materialized='incremental') }}
select kind, count(*) as n, sum(cast(after['id'] as bigint)) as ids
from {{ new_rows('app_to_changelog') }} group by kind
"""
TAKEN_SUMMARY = "select kind, sum(n) as n, sum(ids) as ids from {{ ref('taken') }} group by kind order by kind"
LANDED = ["run", "-s", "app_to_changelog"]
TAKEN_IN = ["run", "-s", "+taken"]


class Run:
    """A run in processes of its own, with Spark's."""

    def __init__(self, folder: Path, storage: str, words: list[str]) -> None:
        self.lake, self.storage = folder / "lake" / storage, storage
        self.committed, self.written = self.table_commits(), self.data_files()
        self.log = folder / "log.txt"
        command = [sys.executable, "-m", "runner.cli", "--project-dir", str(folder), *words, "-t", storage]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, start_new_session=True, stderr=log, stdout=subprocess.DEVNULL)

    def names(self, *parts: str) -> list[str]:
        folder = self.lake.joinpath(*parts)
        return os.listdir(folder) if folder.is_dir() else []

    def table_commits(self) -> int:
        """How many commits of rows the table has."""
        log, entry = COMMITS[self.storage]
        made = sum(bool(re.fullmatch(entry, name)) for name in self.names(log))
        return made if self.storage == "parquet" else max(made - 1, 0)  # the first one made the table

    def data_files(self) -> int:
        # os.walk passes over what vanishes while it looks.
        return sum(name.endswith(".parquet") for _, _, names in os.walk(self.lake) for name in names)

    def batches(self, kind: str) -> int:
        return sum(name.isdigit() for name in self.names("_checkpoints", "app_to_changelog", kind))

    def is_between_commits(self) -> bool:
        return self.table_commits() > self.committed and self.batches("commits") < self.batches("offsets")

    def has_begun(self) -> bool:
        return b"START" in self.log.read_bytes()

    def is_adding(self, name: str = "taken") -> bool:
        """Whether a model takes in new rows: its record says what it will have read."""
        progress = self.lake / "_checkpoints" / name / "_progress.json"
        with contextlib.suppress(FileNotFoundError):
            return b'"next"' in progress.read_bytes()
        return False

    def is_refreshing(self) -> bool:
        return bool(self.names("_refreshes"))

    def wait_for(self, moment: Callable[[], bool]) -> bool:
        """Whether the moment came before the run ended."""
        deadline = time.monotonic() + SECONDS_OF_A_RUN
        while self.process.poll() is None:
            if moment():
                return True
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.001)
        return False

    def kill(self, alone: bool) -> None:
        """Kills Python with its JVM, or alone."""
        if alone:
            os.kill(self.process.pid, signal.SIGKILL)
        else:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def moments(run: Run, draw: random.Random) -> dict[str, Callable[[], bool]]:
    """What a kill can be aimed at."""
    until, started = time.monotonic() + draw.uniform(0, 15), time.monotonic() + draw.uniform(0, 8)
    return {
        "starting": lambda: time.monotonic() > started,
        "reading": lambda: run.batches("offsets") > run.batches("commits"),
        "writing": lambda: run.data_files() > run.written,
        "between commits": run.is_between_commits,
        "adding": run.is_adding,
        "refreshing": lambda: run.is_refreshing() and time.monotonic() > until,
        "maintaining": lambda: run.has_begun() and time.monotonic() > until,
        "any": lambda: run.has_begun() and time.monotonic() > until,
    }


def words_of(aim: str, usual: list[str]) -> list[str]:
    """The command that comes to this moment."""
    others = {"refreshing": [*usual, "--full-refresh"], "maintaining": ["maintain", "--history-days", "0"]}
    return others.get(aim, usual)


def write_file(folder: Path, number: int) -> None:
    """The next messages; some are broken."""
    first = number * MESSAGES_OF_A_FILE
    numbers = range(first, first + MESSAGES_OF_A_FILE)
    whole = '{{"type": "INSERT", "data": [{{"id": "{}", "v": "' + "x" * 50 + '"}}], "pkNames": ["id"]}}'
    part = folder / f"{number}.part"
    part.write_text("\n".join(whole.format(n) if n % 100 else f'{{"broken": {n}' for n in numbers))
    part.rename(folder / "in" / f"{number}.jsonl")


def kill_runs(
    folder: Path, storage: str, usual: list[str], aims: Iterable[tuple[str, bool]], draw: random.Random
) -> Counter[str]:
    """Starts and kills one run an aim, each with new messages; says at which moments they were killed."""
    (folder / "in").mkdir()
    (folder / "models").mkdir()
    (folder / "models/taken.sql").write_text(TAKEN)
    (folder / "project.yml").write_text(PROJECT)
    write_file(folder, 0)
    hit: Counter[str] = Counter()
    for number, (aim, alone) in enumerate(aims, 1):
        write_file(folder, number)
        run = Run(folder, storage, words_of(aim, usual))
        if run.wait_for(moments(run, draw)[aim]):
            run.kill(alone)
            hit[f"{aim}{' (Python alone)' if alone else ''}"] += 1
            hit["found between commits"] += run.is_between_commits()
        else:
            # What was interrupted is finished before it is maintained.
            refused = aim == "maintaining" and "has to be finished first" in run.log.read_text()
            assert refused or run.process.returncode == 0, run.log.read_text()
            hit["refused" if refused else "ended before"] += 1
    return hit


def summary(storage: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    assert main(["build", "-t", storage]) == 0, capsys.readouterr().err
    return shown(SUMMARY, storage, capsys) + shown(TAKEN_SUMMARY, storage, capsys)


def shown(sql: str, storage: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    capsys.readouterr()
    assert main(["show", "-t", storage, "--output", "json", "--inline", sql]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


FEW = [("writing", True), ("between commits", False)]


def many(draw: random.Random) -> Iterator[tuple[str, bool]]:
    """Number of kills from the environment of `make soak`."""
    aims = ["starting", "reading", "writing", "between commits", "adding", "refreshing", "maintaining", "any"]
    for number in range(int(os.environ.get("KILLS", "50"))):
        yield aims[number % len(aims)], draw.random() < 0.3


@pytest.mark.parametrize(
    "storage", [STORAGES[0], *(pytest.param(other, marks=pytest.mark.soak) for other in STORAGES[1:])]
)
def test_killed_runs_land_each_message_once(
    tmp_path: Path, spark: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], storage: str
) -> None:
    hit = kill_runs(tmp_path, storage, LANDED, FEW, random.Random(storage))
    monkeypatch.chdir(tmp_path)
    check_landed(storage, hit, capsys)


@pytest.mark.soak
@pytest.mark.parametrize("storage", STORAGES)
def test_many_killed_runs_do(
    tmp_path: Path, spark: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], storage: str
) -> None:
    draw = random.Random(storage)
    hit = kill_runs(tmp_path, storage, TAKEN_IN, many(draw), draw)
    monkeypatch.chdir(tmp_path)
    files = check_landed(storage, hit, capsys)
    with capsys.disabled():
        print(f"\n{storage}: killed at {dict(hit)}; {files * MESSAGES_OF_A_FILE} messages, each landed once")


def check_landed(storage: str, hit: Counter[str], capsys: pytest.CaptureFixture[str]) -> int:
    """Each message of the files has landed once and as in a run without kills, some of which were between the two
    commits; returns the number of files.
    """
    landed = summary(storage, capsys)
    files = len(os.listdir("in"))
    whole = sum(number for number in range(MESSAGES_OF_A_FILE * files) if number % 100)
    assert [(row["kind"], row["n"], row["ids"], row.get("files")) for row in landed] == [
        ("dead_letter", 20 * files, 20 * files, files),
        ("row", 1980 * files, 1980 * files, files),
        ("dead_letter", 20 * files, None, None),
        ("row", 1980 * files, whole, None),
    ], hit
    assert landed == summary("calm", capsys), hit
    if storage == "parquet":
        batches = batches_in_files(Path("lake/parquet/app_to_changelog"))
        assert batches and all(numbers == [batch] for batch, numbers in batches.items()), batches
    assert hit["found between commits"], hit
    return files
