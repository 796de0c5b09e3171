"""Figures of `make bench` about size: ten times the data, Kafka to each storage, many tables, many sources, a huge
message.

Each figure runs in a process of its own (`python -m tests.bench_scale FIGURE`) and prints JSON, name -> number. What a
figure is compared with is landed in turn with it, in the same JVM.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench import MEGABYTES, ROOT, ROUNDS, WORK, bench_run, measured_by
from tests.bench_messages import canal_messages, write_messages
from tests.engines import Broker, jars

if TYPE_CHECKING:
    from runner.run.run import Run

FIGURES = ("ten_times", "kafka", "sources", "huge")
TABLES = 200
FORMATS = (
    "canal",
    "oms_default",
    "oms_default_extend",
    "oms_canal",
    "oms_dataworks",
    "oms_shareplex",
    "oceanbase_canal",
    "drs_json",
    "drs_json_oracle",
    "drs_json_c",
    "drs_sql",
    "drs_mongodb",
    "dataworks",
)
WARM_UP = 1

TARGETS = """
targets:
  parquet: {{path: {work}/parquet, jars: "{jars}", spark: &spark {{spark.master: "local[2]", spark.driver.memory: 8g}}}}
  delta: {{storage: delta, path: {work}/delta, jars: "{jars}", spark: *spark}}
  iceberg: {{storage: iceberg, path: {work}/iceberg, jars: "{jars}", catalog: {{type: hadoop}}, spark: *spark}}
"""


def ten_times(folder: Path) -> dict[str, float]:
    """How many times as long ten files take as one of them, each time landed from their beginning in a JVM that is
    warm.
    """
    write_messages(folder / "one/0.jsonl", MEGABYTES // 2, canal_messages)
    (folder / "ten").mkdir()
    for number in range(10):
        os.link(folder / "one/0.jsonl", folder / f"ten/{number}.jsonl")
    return {"scale.time_10x_vs_1x": _times(folder, "one", "ten")}


def kafka(folder: Path) -> dict[str, float]:
    """Throughput from Kafka into each storage, and of 200 tables in one topic, as ratios to files into Parquet and to a
    topic of one table.
    """
    write_messages(folder / "files/one.jsonl", MEGABYTES // 2, canal_messages)
    write_messages(
        folder / "many.jsonl",
        MEGABYTES // 2,
        lambda number, draw: [m | {"table": f"orders_{number % TABLES}"} for m in canal_messages(number, draw)],
    )
    with Broker(folder / "broker") as broker:
        topics, server = {"one": folder / "files/one.jsonl", "many": folder / "many.jsonl"}, broker.servers
        kafka = "{{name: {name}, format: canal, kafka: {{servers: '{server}', topics: {name}}}}}"
        sources = [kafka.format(name=name, server=server) for name in topics]
        project = _project(folder, [f"{{name: files, format: canal, files: '{folder}/files/*'}}", *sources])
        with jvm(project) as session:
            for name, data in topics.items():
                broker.create_topic(name, partitions=2)
                frame = session.read.text(str(data)).withColumn("topic", _literal(name))
                frame.write.format("kafka").option("kafka.bootstrap.servers", broker.servers).save()
            figures = {f"kafka.{storage}": ("one", storage) for storage in ("parquet", "delta", "iceberg")}
            figures["kafka.parquet_200_tables"] = ("many", "parquet")
            return _against(project, ("files", "parquet"), figures)


def sources(folder: Path) -> dict[str, float]:
    """Seconds of 13 sources at once in one session, how many times those of one of them, and of all in turn."""
    cases = f"{ROOT}/formats/cases"
    each = [f"{{name: {name}, format: {name}, files: {cases}/{name}/*.messages.jsonl}}" for name in FORMATS]
    project = _project(folder, each)
    with jvm(project):
        rounds = [
            (
                _land(project, "parquet", FORMATS[:1]),
                _land(project, "parquet", FORMATS, threads=1),
                _land(project, "parquet", FORMATS, threads=4),
                _land(project, "parquet", FORMATS, full_refresh=False, threads=4),
            )
            for _ in range(WARM_UP + 2)
        ][WARM_UP:]
    at_once, nothing_new = (statistics.median(column) for column in list(zip(*rounds))[2:])
    return {
        "sources.13_s": at_once,
        "sources.nothing_new_s": nothing_new,
        "sources.13_vs_1": statistics.median(row[2] / row[0] for row in rounds),
        "sources.13_at_once_vs_in_turn": statistics.median(row[2] / row[1] for row in rounds),
    }


def huge(folder: Path) -> dict[str, float]:
    """How many times as long messages take of which one has 50 MB, as the same megabytes in small ones."""
    write_messages(folder / "small/one.jsonl", 80, canal_messages)
    write_messages(folder / "mixed/small.jsonl", 30, canal_messages)
    picture = {"type": "INSERT", "table": "scans", "data": [{"id": "1", "scan": "x" * 50_000_000}], "pkNames": ["id"]}
    (folder / "mixed/huge.jsonl").write_text(json.dumps(picture) + "\n")
    return {"huge.50_mb_vs_small": _times(folder, "small", "mixed")}


def _times(folder: Path, other: str, one: str) -> float:
    """How many times as long the files of one folder take as those of another, landed from their beginning."""
    names = (other, one)
    project = _project(folder, [f"{{name: {name}, format: canal, files: '{folder}/{name}/*'}}" for name in names])
    with jvm(project):
        rounds = [[_land(project, "parquet", [name]) for name in names] for _ in range(WARM_UP + 3)][WARM_UP:]
    return statistics.median(second / first for first, second in rounds)


def _against(project: Path, baseline: tuple[str, str], figures: dict[str, tuple[str, str]]) -> dict[str, float]:
    """Throughput of each source and target as a ratio to the baseline's, the median of the rounds."""
    times = [
        [_land(project, target, [source]) for source, target in (baseline, *figures.values())]
        for _ in range(WARM_UP + ROUNDS)
    ][WARM_UP:]
    ratios = [[row[0] / seconds for seconds in row[1:]] for row in times]
    return {f"{name}_vs_files": statistics.median(column) for name, column in zip(figures, zip(*ratios))}


def _project(folder: Path, sources: list[str]) -> Path:
    targets = TARGETS.format(work=folder, jars=jars("spark")[0].parent / "*.jar")
    lines = "".join(f"  - {source}\n" for source in sources)
    (folder / "project.yml").write_text(f"name: scale\ntarget: parquet\n{targets}sources:\n{lines}")
    return folder


class jvm:
    """The session that starts the JVM, which knows all storages; those of the figures are sessions beside it."""

    def __init__(self, project: Path) -> None:
        self.project = project

    def __enter__(self) -> object:
        from dataclasses import replace

        from runner.engine.session import Spark
        from tests.spark_fixtures import every_storage

        target = bench_run(self.project, []).project.target
        self.spark = Spark(replace(target, spark={**target.spark, **every_storage()}), self.project / "spark.log")
        return self.spark.session

    def __exit__(self, *_: object) -> None:
        self.spark.session.stop()


def _land(project: Path, target: str, names: Iterable[str], full_refresh: bool = True, threads: int = 1) -> float:
    """The seconds of landing sources, in a session of their own."""
    return seconds_of(bench_run(project, names, target, full_refresh), threads)


def seconds_of(run: Run, threads: int = 1) -> float:
    """The seconds of running nodes, in a session of their own."""
    from runner.engine.session import Spark
    from runner.report import Report
    from runner.run.execute import Execution
    from runner.run.schedule import Schedule

    project = run.project
    with Spark(project.target, project.root / "spark.log", run.library) as spark:
        run.begin(spark)
        began = time.perf_counter()
        results = Schedule(run.order, Execution(run).run, Report(quiet=True), run.signals, threads).run()
        seconds = time.perf_counter() - began
    assert {result.status for result in results} <= {"success", "warn"}, results
    assert not run.settings.full_refresh or all(any(result.rows.values()) for result in results), results
    return seconds


def _literal(text: str) -> object:
    from pyspark.sql import functions

    return functions.lit(text)


def figures() -> Iterator[dict[str, float]]:
    """All figures, part by part, each from a process of its own."""
    for name in FIGURES:
        yield measured_by("tests.bench_scale", name)


if __name__ == "__main__":
    work = WORK / sys.argv[1]
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    print(json.dumps(globals()[sys.argv[1]](work)))
