"""Runs that read little start Java so that it is there sooner, and is slower with much: which these are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.commands import debug, parse, session
from runner.commands.session import is_little
from runner.errors import RunnerError
from tests.pages import table

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
APP = ("-s", "app_to_changelog")
CONTENTS = {
    "many lines": MANY,
    "some lines": "{}\n" * 40,
    "long lines": f"{'x' * 1_999}\n" * 20,
    "large": LARGE,
    "large, in a line": f"{LARGE}\n",
    "large, in few lines": f"{LARGE}\n{{}}\n",
    "stored": STORED,
    "less stored": STORED[:10_000],
    "foreign": "sources:\n  - name: crm\n    tables: [{name: people}]\n",
}
RUNS = table("little_to_read")


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        ({"text": 60_000_000, "lines": 50_000, "stored": 16_000_000}, True),
        ({"text": 70_000_000}, False),
        ({"lines": 70_000}, False),
        ({"stored": 17_000_000}, False),
    ],
)
def test_how_much_is_little(amount: dict[str, int], expected: bool) -> None:
    assert is_little(**amount) is expected


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What sessions were opened for; none of them is there."""
    seen: list[bool] = []

    def not_there(*words: Any, is_small_job: bool = False) -> None:
        seen.append(words[4] if len(words) > 4 else is_small_job)
        raise RunnerError("not-there", "Spark is not there")

    for name, limit in LIMITS.items():
        monkeypatch.setattr(session, name, limit)
    for module in (session, debug, parse):
        monkeypatch.setattr(module, "open_spark", not_there)
    return seen


@pytest.mark.parametrize("name", RUNS)
def test_which_runs_read_little(
    project: Callable[..., Path], runner: Callable[..., Any], opened: list[bool], name: str
) -> None:
    given = RUNS[name]
    project({**FILES, **{path: CONTENTS[content] for path, content in given.get("files", {}).items()}})
    ran = runner(*given["command"].split())
    assert opened == [given["little"]], ran.err


def landed(folder: Path, *names: str) -> None:
    """The checkpoint of a run that has landed files."""
    checkpoint = folder / "warehouse/_checkpoints/app_to_changelog"
    for log in ("offsets", "commits", "sources/0"):
        (checkpoint / log).mkdir(parents=True)
    read = [{"path": f"file://{folder}/in/{name}", "timestamp": 1, "batchId": 0} for name in names]
    (checkpoint / "sources/0/0").write_text("\n".join(["v1", *map(json.dumps, read)]))
    (checkpoint / "offsets/0").write_text('v1\n{}\n{"logOffset":0}\n-')
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
    (folder / "warehouse/_checkpoints/app_to_changelog/offsets/1").write_text('v1\n{}\n{"logOffset":0}\n-')
    runner("run", *APP)
    (folder / "warehouse/_checkpoints/app_to_changelog/commits/1").write_text("v1\n{}")
    (folder / "warehouse/_checkpoints/app_to_changelog/sources/0/0").write_text("v1\n{")
    runner("run", *APP)
    assert opened == [False, True, False, False, False, False]
