"""Streams of few messages are interpreted: to compile their query to Java would take longer than to read them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from runner.engine import tables
from runner.engine.checkpoint import Checkpoint
from runner.engine.files import LocalFiles
from runner.engine.session import Spark
from runner.engine.tables import Tables
from runner.project.inputs import Messages
from runner.run.source_files import SourceFiles
from tests.small_format import SMALL, message

PROJECT = """
name: p
target: local
targets: {local: {storage: parquet, path: warehouse}}
sources:
  - {name: app, format: small, files: "in/*.jsonl"}
"""
FORMAT = {"formats/small.yml": SMALL}
# A project whose own settings say that everything is compiled.
COMPILED = PROJECT.replace("path: warehouse", "path: warehouse, spark: {spark.sql.codegen.wholeStage: true}")


@pytest.mark.usefixtures("spark")
def test_only_streams_of_few_messages_are_interpreted(project, runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing else of the same run: models that read what has landed are compiled. What a target sets stays."""
    text = "{{ config(materialized='table') }} select count(*) as n from {{ ref('app_to_changelog') }}"
    folder = project({**FORMAT, "project.yml": PROJECT, "models/counted.sql": text})
    seen: list[str] = []

    def noting(method: Callable[..., object]) -> Callable[..., object]:
        def call(first: Any, *rest: object) -> object:
            session = first.sparkSession if isinstance(first, DataFrame) else first.spark.session
            seen.append(f"{method.__name__} {session.conf.get('spark.sql.codegen.wholeStage')}")
            return method(first, *rest)

        return call

    monkeypatch.setattr(tables, "start_stream", noting(tables.start_stream))
    monkeypatch.setattr(Tables, "replace", noting(Tables.replace))
    for name, lines, interpreted, settings in (
        ("1", 3, True, PROJECT),
        ("2", 5_000, False, PROJECT),
        ("3", 3, True, PROJECT),
        ("4", 3, False, COMPILED),
    ):
        project({"project.yml": settings})
        (folder / f"in/{name}.jsonl").parent.mkdir(exist_ok=True)
        (folder / f"in/{name}.jsonl").write_text(f"{message(1)}\n" * lines)
        ran = runner("run", "-s", "app_to_changelog", "counted")
        assert ran.code == 0, ran.err
        assert seen == [f"start_stream {str(not interpreted).lower()}", "replace true"]
        seen.clear()
    ran = runner("show", "--inline", "select * from {{ ref('counted') }}", "--output", "json")
    assert json.loads(ran.out) == {"n": 5_009}


@pytest.mark.usefixtures("spark")
def test_only_few_messages_are_parsed_without_being_compiled(project, runner, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    whole = Spark.rows_counted

    def noting(spark: Spark, *words: Any) -> object:
        seen.append(str(spark.session.conf.get("spark.sql.codegen.wholeStage")))
        return whole(spark, *words)

    monkeypatch.setattr(Spark, "rows_counted", noting)
    for lines in (3, 5_000):
        project({**FORMAT, "in/a.jsonl": f"{message(1)}\n" * lines})
        ran = runner("parse", "small", "in/a.jsonl")
        assert ran.code == 0 and len(ran.out.splitlines()) == lines, ran.err
    assert seen == ["false", "true"]


def checkpoint_of(folder: Path, has_unfinished_batch: bool = False) -> Checkpoint:
    checkpoint = folder / "checkpoint"
    (checkpoint / "offsets").mkdir(parents=True)
    if has_unfinished_batch:
        (checkpoint / "offsets/0").write_text("v1\n{}\n{}")
    return Checkpoint(LocalFiles(), str(checkpoint))


@pytest.mark.parametrize(
    ("lines", "pattern", "has_unfinished_batch", "expected"),
    [
        pytest.param(["{}"] * 12, "{folder}/*.jsonl", False, True, id="few short lines"),
        pytest.param(["{}"] * 10_000, "{folder}/*.jsonl", False, False, id="many short lines"),
        pytest.param(["x" * 5_000_000], "{folder}/*.jsonl", False, False, id="one long line"),
        pytest.param(["{}"] * 12, "{folder}/*.jsonl", True, False, id="a batch was begun, with other files perhaps"),
        pytest.param(["{}"] * 12, "s3a://bucket/*.jsonl", False, False, id="files that this machine does not see"),
    ],
)
def test_messages_are_few_where_files_are_small(
    tmp_path: Path, lines: list[str], pattern: str, has_unfinished_batch: bool, expected: bool
) -> None:
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    messages = Messages("files", pattern.format(folder=tmp_path))
    assert SourceFiles.found(messages, checkpoint_of(tmp_path, has_unfinished_batch)).are_few() is expected


def test_of_files_without_lines_the_size_counts(tmp_path: Path) -> None:
    messages, checkpoint = Messages("avro_files", f"{tmp_path}/*.avro"), checkpoint_of(tmp_path)
    (tmp_path / "a.avro").write_bytes(b"x" * 4_000)
    assert SourceFiles.found(messages, checkpoint).are_few()
    (tmp_path / "a.avro").write_bytes(b"x" * 5_000_000)
    assert not SourceFiles.found(messages, checkpoint).are_few()
