"""Dialects of nothing but YAML land like any other format: one project, a source for each of tables/dialects.yml."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import yaml

from runner.cli import main
from tests.avro_cases import encoded
from tests.pages import table
from tests.spark_fixtures import rows

DIALECTS = table("dialects")


def write_source(root: Path, name: str, dialect: dict[str, str]) -> dict[str, object]:
    """A source that reads the messages of a dialect, after its files were written."""
    spec, lines, ending = dialect["format"], dialect["messages"].rstrip("\n").split("\n"), "jsonl"
    if schema := dialect.get("schema"):
        spec, ending = f"message: {{encoding: avro, schema: {name}.avsc}}\n{spec}", "base64"
        (root / f"formats/{name}.avsc").write_text(schema)
        lines = [base64.b64encode(encoded(json.loads(schema), json.loads(line))).decode() for line in lines]
    (root / f"formats/{name}.yml").write_text(spec)
    (root / f"in/{name}.{ending}").write_text("\n".join(lines), encoding="utf-8")
    # One of a few messages may be a dead letter on purpose.
    return {"name": name, "format": name, "files": f"in/{name}.{ending}", "dead_letters": {"fail": None}}


@pytest.fixture(scope="module")
def folder(spark: object, interpreted: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that has landed the messages of all dialects."""
    root = tmp_path_factory.mktemp("dialects")
    for name in ("formats", "in"):
        (root / name).mkdir()
    sources = [write_source(root, name, dialect) for name, dialect in DIALECTS.items()]
    target = {"target": "here", "targets": {"here": {"path": "lake"}}}
    (root / "project.yml").write_text(yaml.safe_dump({"name": "dialects", **target, "sources": sources}))
    assert main(["run", "--project-dir", str(root), "-s", "config.materialized:streaming", "changelog"]) == 0
    return root


def test_what_landed_is_in_the_changelog(folder: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    counted = "select source, format, count(*) as n from changelog where source in ('flavour', 'envelope') group by all"
    found = {row["source"]: (row["format"], row["n"]) for row in rows(capsys, counted)}
    assert found == {"flavour": ("flavour", 4), "envelope": ("envelope", 4)}


@pytest.mark.parametrize("name", DIALECTS)
def test_rows_of_a_dialect(folder: Path, name: str) -> None:
    found = pyarrow.parquet.read_table(folder / f"lake/{name}_to_changelog").to_pylist()
    found.sort(key=lambda row: (row["seq"]["arrival"], row["seq"]["row"]))
    for row, stated in zip(map(plain, found), DIALECTS[name]["rows"], strict=True):
        assert {column: row[column] for column in stated} == stated


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its images by name and the parts of its order beside them."""
    return {**row, **row["seq"], **{name: row[name] and dict(row[name]) for name in ("key", "before", "after")}}


def test_a_dialect_with_another_key_than_that_beside_the_row(project, runner) -> None:
    keys = {"none": "none", "columns": {"columns": ["_id"]}, "names": {"names": "keys"}}
    formats = {name: {"extends": "drs_mongodb", "key": key} for name, key in keys.items()}
    sources = [{"name": name, "format": written, "files": "in/*"} for name, written in formats.items()]
    project({"project.yml": yaml.safe_dump({"sources": sources})})
    ran = runner("compile", "-q", "-s", "config.materialized:streaming")
    assert ran.code == 0, ran.err
    assert ran.out.count("-- The columns of the contract") == len(keys) and "key_image" not in ran.out
