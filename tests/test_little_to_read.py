"""Runs that read little start Java so that it is there sooner, and is slower with much: which these are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.commands import debug, job, parse
from runner.errors import RunnerError
from runner.run import little
from runner.run.little import Amount

pytestmark = pytest.mark.usefixtures("lean")

PROJECT = """
target: local
targets:
  local: {path: warehouse}
  lake: {path: "s3a://lake/warehouse"}
  catalog: {path: warehouse, storage: iceberg, catalog: {name: lake, schema: shop}}
  server: {path: warehouse, remote: "sc://nowhere"}
sources:
  - {name: app, format: lean, files: "in/*.jsonl"}
  - {name: beside, format: lean, files: "beside/*.jsonl"}
  - {name: avro, format: oceanbase_avro, zone: UTC, files: "avro/*"}
  - {name: far, format: lean, files: "s3a://bucket/*.jsonl"}
  - {name: topic, format: lean, kafka: {servers: "nowhere:1", topics: a}}
"""
FOREIGN = "sources:\n  - name: crm\n    tables: [{name: people}]\n"
FILES = {
    "project.yml": PROJECT,
    "models/counted.sql": "{{ config(materialized='table') }} select count(*) as n from {{ ref('app_to_changelog') }}",
    "models/counted.yml": (
        "models: [{name: counted, columns: [{name: n, data_tests: [not_null]}]}]\n"
        "unit_tests:\n"
        "  - name: none\n"
        "    model: counted\n"
        "    given: [{input: ref('app_to_changelog'), rows: []}]\n"
        "    expect: {rows: [{n: 0}]}\n"
    ),
    "in/1.jsonl": "{}\n" * 3,
    "beside/1.jsonl": "{}\n" * 3,
    "warehouse/counted/part-0.parquet": "x",
}
# A thousandth of what is little.
LIMITS = {"LITTLE_TEXT": 1 << 16, "LITTLE_STORED": 1 << 14, "LINES": 60}
MANY, LARGE, STORED = "{}\n" * 70, "x" * 70_000, "x" * 17_000
SOME, LONG = "{}\n" * 40, f"{'x' * 1_999}\n" * 20
APP = ("-s", "app_to_changelog")
# What the project has beside FILES, the command, whether there is little to read.
RUNS: dict[str, tuple[dict[str, str], tuple[str, ...], bool]] = {
    "few messages": ({}, ("run", *APP), True),
    "many messages": ({"in/2.jsonl": MANY}, ("run", *APP), False),
    "many messages of another source": ({"beside/2.jsonl": MANY}, ("run", *APP), True),
    "messages of two sources that are few alone": (
        {"in/2.jsonl": SOME, "beside/2.jsonl": SOME},
        ("run", *APP, "beside_to_changelog"),
        False,
    ),
    "messages of one of the two": ({"in/2.jsonl": SOME}, ("run", *APP, "beside_to_changelog"), True),
    "a large file without lines": ({"in/2.jsonl": LARGE}, ("run", *APP), False),
    "a large file of few lines": ({"in/2.jsonl": f"{LARGE}\n{{}}\n"}, ("run", *APP), False),
    "messages of two sources that are long": (
        {"in/1.jsonl": LONG, "beside/1.jsonl": LONG},
        ("run", *APP, "beside_to_changelog"),
        False,
    ),
    "long messages of one source": ({"in/1.jsonl": LONG}, ("run", *APP), True),
    "a file of binary messages": ({"avro/1.avro": STORED[:10_000]}, ("run", "-s", "avro_to_changelog"), True),
    "a large file of binary messages": ({"avro/1.avro": STORED}, ("run", "-s", "avro_to_changelog"), False),
    "binary messages and tables": (
        {"avro/1.avro": STORED[:10_000], "warehouse/other/part-0.parquet": STORED[:10_000]},
        ("run", "-s", "avro_to_changelog", "counted"),
        False,
    ),
    "topics": ({}, ("run", "-s", "topic_to_changelog"), False),
    "files that this machine does not see": ({}, ("run", "-s", "far_to_changelog"), False),
    "tables that this machine does not see": ({}, ("run", *APP, "-t", "lake"), False),
    "a server": ({}, ("run", *APP, "-t", "server"), False),
    "messages into a catalog": ({}, ("run", *APP, "-t", "catalog"), True),
    "tables of a catalog": ({}, ("run", "-s", "counted", "-t", "catalog"), False),
    "small tables": ({}, ("run", "-s", "counted"), True),
    "large tables": ({"warehouse/app_to_changelog/part-0.parquet": STORED}, ("run", "-s", "counted"), False),
    "large tables, and few messages": ({"warehouse/other/part-0.parquet": STORED}, ("run", *APP), True),
    "small tables, and many messages": ({"in/2.jsonl": MANY}, ("run", *APP, "counted"), False),
    "tables of others": ({"models/crm.yml": FOREIGN}, ("run", "-s", "counted"), False),
    "data tests of small tables": ({}, ("test", "--data", "-s", "counted"), True),
    "data tests of large tables": (
        {"warehouse/counted/part-1.parquet": STORED},
        ("test", "--data", "-s", "counted"),
        False,
    ),
    "a test that counts few messages": ({}, ("test", "-s", "conserved_app"), True),
    "a test that counts many": ({"in/2.jsonl": MANY}, ("test", "-s", "conserved_app"), False),
    "unit tests": ({"warehouse/counted/part-1.parquet": STORED}, ("test", "--unit", "-s", "counted"), True),
    "unit tests far from tables": ({}, ("test", "--unit", "-s", "counted", "-t", "lake"), True),
    "nothing": ({"in/2.jsonl": MANY, "warehouse/counted/part-1.parquet": STORED}, ("run", "--empty"), True),
    "without an end": ({}, ("run", "--continuous", *APP), False),
    "rows of small tables": ({}, ("show", "-s", "counted"), True),
    "rows of large tables": ({"warehouse/counted/part-1.parquet": STORED}, ("show", "-s", "counted"), False),
    "the age of small tables": ({}, ("source", "freshness", "-s", "source:app"), True),
    "upkeep": ({}, ("maintain", "-s", "counted"), False),
    "a file of few messages": ({}, ("parse", "lean", "in/1.jsonl"), True),
    "a file of many messages": ({"in/2.jsonl": MANY}, ("parse", "lean", "in/2.jsonl"), False),
    "a file of a long message": ({"in/2.jsonl": f"{LARGE}\n"}, ("parse", "lean", "in/2.jsonl"), False),
    "no project's data": ({"warehouse/counted/part-1.parquet": STORED}, ("debug",), True),
}


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        (Amount(text=60_000_000, lines=50_000, stored=16_000_000), True),
        (Amount(text=70_000_000), False),
        (Amount(lines=70_000), False),
        (Amount(stored=17_000_000), False),
    ],
)
def test_how_much_is_little(amount: Amount, expected: bool) -> None:
    assert amount.is_little is expected


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What sessions were opened for; none of them is there."""
    seen: list[bool] = []

    def not_there(*words: Any, reads_little: bool = False) -> None:
        seen.append(words[4] if len(words) > 4 else reads_little)
        raise RunnerError("not-there", "Spark is not there")

    for name, limit in LIMITS.items():
        monkeypatch.setattr(little, name, limit)
    for module in (job, debug, parse):
        monkeypatch.setattr(module, "open_spark", not_there)
    return seen


@pytest.mark.parametrize("name", RUNS)
def test_which_runs_read_little(
    project: Callable[..., Path], runner: Callable[..., Any], opened: list[bool], name: str
) -> None:
    files, words, expected = RUNS[name]
    project({**FILES, **files})
    ran = runner(*words)
    assert opened == [expected], ran.err


def landed(folder: Path, *names: str) -> None:
    """The checkpoint of a run that has landed files."""
    checkpoint = folder / "warehouse/_checkpoints/app_to_changelog"
    for log in ("offsets", "commits", "sources/0"):
        (checkpoint / log).mkdir(parents=True)
    read = [{"path": f"file://{folder}/in/{name}", "timestamp": 1, "batchId": 0} for name in names]
    (checkpoint / "sources/0/0").write_text("\n".join(["v1", *map(json.dumps, read)]))
    (checkpoint / "offsets/0").write_text("v1\n{}\n{}")
    (checkpoint / "commits/0").write_text("v1\n{}")


def test_which_files_that_have_landed_are_read_again(
    project: Callable[..., Path], runner: Callable[..., Any], opened: list[bool]
) -> None:
    folder = project({**FILES, "in/0.jsonl": MANY})
    runner("run", *APP)
    landed(folder, "0.jsonl")
    runner("run", *APP)
    runner("run", "--full-refresh", *APP)
    runner("test", "-s", "conserved_app")
    # A batch that was begun may have other files than those that are new.
    (folder / "warehouse/_checkpoints/app_to_changelog/offsets/1").write_text("v1\n{}\n{}")
    runner("run", *APP)
    (folder / "warehouse/_checkpoints/app_to_changelog/commits/1").write_text("v1\n{}")
    (folder / "warehouse/_checkpoints/app_to_changelog/sources/0/0").write_text("v1\n{")
    runner("run", *APP)
    assert opened == [False, True, False, False, False, False]
