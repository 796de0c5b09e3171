"""Sources whose messages name their schemas by number, through the command line and Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runner.cli import main
from runner.functions.avro import registry
from tests.avro_cases import encoded
from tests.schema_registry import Registry, registry_server
from tests.spark_fixtures import rows
from tests.test_avro_sources import write_dump
from tests.test_registry import framed, record

SPEC = """
about: rows as maps
message: {encoding: avro, optional: [source]}
op: {by: kind, cases: {I: insert, U: update}}
after: now
table_name: table
tx_id: source.transaction
key: {columns: [id]}
"""
SOURCES = """
name: numbered
sources:
  - name: changes
    format: maps
    table: in/dump
    registry:
      url: "{{ env_var('REGISTRY', public=true) }}"
      user: loader
      password: "{{ env_var('REGISTRY_PASSWORD') }}"
"""
ROW = {"type": "map", "values": ["null", "long", "string"]}
FIRST = record("change", kind="string", table="string", now=ROW)
SECOND = record("change", table="string", source=record("source", transaction="long"), now=ROW, kind="string")


def message(number: int, id_: int, **other: object) -> bytes:
    return framed(number, FIRST, {"kind": "I", "table": "t", "now": {"id": id_, **other}})


@pytest.fixture
def folder(tmp_path: Path, spark: object, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "formats").mkdir()
    (tmp_path / "formats/maps.yml").write_text(SPEC)
    (tmp_path / "project.yml").write_text(SOURCES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGISTRY_PASSWORD", "tr0ut-gill")
    return tmp_path


def test_x(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with registry_server("loader:tr0ut-gill") as server:
        monkeypatch.setenv("REGISTRY", server.url)
        write_dump(folder / "in/dump/1.parquet", [message(7, n) for n in range(5000)])
        code = main(["run"])
        print(capsys.readouterr(), server.calls)
        server.add(7, FIRST)
        write_dump(folder / "in/dump/2.parquet", [message(7, n) for n in range(5000)])
        code = main(["run"])
        print(capsys.readouterr(), server.calls)
        server.failures=10000
        write_dump(folder / "in/dump/3.parquet", [message(8, n) for n in range(5000)])
        code = main(["run"])
        print(capsys.readouterr(), server.calls)
        assert 0
