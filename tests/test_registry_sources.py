"""Sources whose messages name their schemas by number, through the command line and Spark."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path

import pytest

from runner.cli import main
from tests.avro_types import map_of, record_type
from tests.pages import ROOT, section, write_files
from tests.schema_registry import registry_server
from tests.spark_fixtures import rows
from tests.test_avro_sources import container, write_dump
from tests.test_registry import framed

SPEC = """
about: rows as maps
message: {encoding: avro, optional: [source]}
op: {by: kind, cases: {I: insert, U: update}}
after: now
table_name: table
tx_id: source.transaction
key: {columns: [id]}
"""
PROJECT = """
name: numbered
sources:
  - name: changes
    format: maps
    table: in/dump
    dead_letters: {fail: null}
    registry:
      url: "{{ env_var('REGISTRY', public=true) }}"
      user: loader
      password: "{{ env_var('REGISTRY_PASSWORD') }}"
  - name: eight
    format: {extends: maps, message: {framing: schema_number_8}}
    files: in/eight/*
    dead_letters: {fail: null}
    schema: schemas
"""
ROW = map_of(["null", "long", "string"])
FIRST = record_type("change", kind="string", table="string", now=ROW)
SECOND = record_type("change", table="string", source=record_type("source", transaction="long"), now=ROW, kind="string")
RENAMED = record_type("change", kind="string", name="string", now=ROW)


@pytest.fixture
def folder(tmp_path: Path, interpreted: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("formats", "schemas", "in/eight", "in/dump"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "formats/maps.yml").write_text(SPEC)
    (tmp_path / "schemas/7.avsc").write_text(json.dumps(FIRST))
    (tmp_path / "project.yml").write_text(PROJECT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGISTRY_PASSWORD", "tr0ut-gill")
    return tmp_path


def change(number: int, schema: dict, id_: int, size: int = 4) -> bytes:
    value = {"kind": "I", "table": "t", "name": "t", "now": {"id": id_}, "source": {"transaction": id_}}
    return framed(number, schema, {field["name"]: value[field["name"]] for field in schema["fields"]}, size)


@pytest.mark.engines
def test_a_registry_is_asked_once_for_each_number(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages wait while it does not answer, and land then."""
    with registry_server("loader:tr0ut-gill") as server:
        monkeypatch.setenv("REGISTRY", server.url)
        server.add(7, FIRST)
        server.add(8, SECOND)
        server.add(9, RENAMED)
        server.add(10, {"type": "object"}, schemaType="JSON")
        first = [change(7 + n % 2, (FIRST, SECOND)[n % 2], n) for n in range(1000)]
        write_dump(folder / "in/dump/1.parquet", first)
        server.login = "loader:another"
        assert main(["run", "-s", "source:changes+"]) == 1
        said = capsys.readouterr().err
        assert f"the schema registry at {server.url} does not give schema 7: it refuses access (401)" in said
        assert "the next run reads them" in said and "Traceback" not in said and "tr0ut" not in said

        server.login = "loader:tr0ut-gill"
        server.calls.clear()
        assert main(["build", "-s", "source:changes+"]) == 0
        assert rows(
            capsys, "select count(*) as n, count(distinct key_text) as keys, count(tx_id) as with_tx from changelog"
        ) == [{"n": 1000, "keys": 1000, "with_tx": 500}]
        # At most once in each process that reads messages at the same time.
        assert set(server.calls) == {"/schemas/ids/7", "/schemas/ids/8"} and len(server.calls) <= 8

        server.calls.clear()
        server.answers.pop("/schemas/ids/7")
        write_dump(folder / "in/dump/2.parquet", [change(7, FIRST, n) for n in range(1000, 1500)], 1000)
        other = [change(9, RENAMED, 0), change(10, FIRST, 0), change(11, FIRST, 0)]
        write_dump(folder / "in/dump/3.parquet", other, 1500)
        assert main(["run", "-s", "source:changes+"]) == 0
        assert set(server.calls) == {"/schemas/ids/9", "/schemas/ids/10", "/schemas/ids/11"}
    assert rows(capsys, "select reason, detail from dead_letters order by seq.arrival") == [
        {"reason": "schema-mismatch", "detail": 'the schema with the number 9 cannot be used: it has no field "table"'},
        {
            "reason": "schema-mismatch",
            "detail": "the schema with the number 10 cannot be used: its language is JSON, not AVRO",
        },
        {"reason": "schema-unknown", "detail": "no schema has the number 11: the schema registry has none"},
    ]
    # The registry is gone, and nobody misses it.
    write_dump(folder / "in/dump/4.parquet", [change(8, SECOND, n) for n in range(1500, 1600)], 1503)
    assert main(["run", "-s", "source:changes+"]) == 0
    assert rows(capsys, "select count(*) as n from changelog") == [{"n": 1600}]
    for path in (path for path in folder.rglob("*") if path.is_file() and "logs" not in path.parts):
        content = path.read_bytes()
        assert b"tr0ut" not in content and b64encode(b"loader:tr0ut-gill") not in content, path


def test_the_project_of_the_docs(project, runner, monkeypatch: pytest.MonkeyPatch) -> None:
    project()
    write_files(section(ROOT / "docs/formats.md", "Schemas by number"), Path())
    ran = runner("compile")
    assert ran.code == 2 and "env-var-missing" in ran.err
    monkeypatch.setenv("REGISTRY_PASSWORD", "tr0ut-gill")
    assert runner("compile").code == 0


@pytest.mark.engines
def test_schemas_from_a_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "in/eight/1").write_bytes(change(7, FIRST, 1, 8))
    (folder / "in/eight/2.base64").write_bytes(
        b64encode(change(2**40, FIRST, 2, 8)) + b"\n" + b64encode(change(7, FIRST, 3, 8))
    )
    # A container has its own schema, and nothing stands before its records.
    (folder / "in/eight/3.avro").write_bytes(container([{"kind": "I", "table": "t", "now": {"id": 4}}], FIRST))
    (folder / "project.yml").write_text(
        PROJECT.split("  - name: changes")[0] + "  - name: eight" + PROJECT.split("- name: eight")[1]
    )
    assert main(["build"]) == 0
    assert rows(capsys, "select key_text from changelog order by key_text") == [
        {"key_text": '{"id":"1"}'},
        {"key_text": '{"id":"3"}'},
        {"key_text": '{"id":"4"}'},
    ]
    assert rows(capsys, "select reason, detail from dead_letters") == [
        {"reason": "schema-unknown", "detail": f'no schema has the number {2**40}: there is no file "{2**40}.avsc"'}
    ]
    (folder / "schemas/1099511627776.avsc").write_text(json.dumps(FIRST))
    capsys.readouterr()
    # A schema that was added is no other format: only messages with its number are read in another way.
    assert main(["run"]) == 0 and "has changed" not in capsys.readouterr().err
    assert main(["run", "--full-refresh"]) == 0
    assert rows(capsys, "select count(*) as n from changelog") == [{"n": 4}]
