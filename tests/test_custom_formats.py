"""A dialect made of nothing but a YAML file lands like any other format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runner.cli import main

FLAVOUR = """
extends: canal
about: A Canal dialect with its own op names
each: [data, updateBefore]
before: {at: updateBefore, over: data}
op:
  by: opType
  cases: {I: insert, U: update, D: {row: delete, before: data}}
"""

ENVELOPE = """
about: One row a message, in an envelope
op:
  by: [payload.op, payload.kind]
  first: [{if: {has: payload.ddl.text, is_not: {payload.op: [i, u]}}, ddl: by_statement}]
  cases:
    i: [{if: {lacks: payload.pos}, row: snapshot}, insert]
    u: update
    d: delete
before: payload.before
after: payload.after
db_name: payload.source."db name"
table_name: [payload.source.table, payload.source.collection]
key: {names: payload.keys}
event_time: {at: payload.time, as: epoch_s, unknown: [-1, 0]}
seq: [{at: payload.time, unknown: -1}, payload.pos]
statement: payload.ddl.text
tx_id: payload.tx
"""


def parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], spec: str, messages: list[dict]
) -> list[dict]:
    (tmp_path / "formats").mkdir()
    (tmp_path / "formats/acme.yml").write_text(spec)
    (tmp_path / "project.yml").write_text("sources: [{name: acme, format: acme, files: in/*}]\n")
    (tmp_path / "in").mkdir()
    (tmp_path / "in/1.jsonl").write_text("\n".join(json.dumps(m) for m in messages))
    monkeypatch.chdir(tmp_path)
    assert main(["ls"]) == 0
    assert "acme_to_changelog" in capsys.readouterr().out.split()
    assert main(["compile", "-s", "acme_to_changelog", "-q"]) == 0
    capsys.readouterr()
    assert main(["build"]) == 0, capsys.readouterr().err
    capsys.readouterr()
    assert main(["parse", "acme", "in/1.jsonl"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert main(["show", "--inline", "select count(*) as n from acme_to_changelog", "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"n": len(rows)}
    assert (
        main(
            [
                "show",
                "--inline",
                "select count(*) as n from changelog where source = 'acme' and format = 'acme'",
                "--output",
                "json",
            ]
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out) == {"n": sum(row["kind"] == "row" for row in rows)}
    return rows


def test_a_dialect_of_another_format(
    tmp_path: Path, spark: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    header = {"database": "d", "table": "t", "pkNames": ["id"], "mysqlType": {"id": "int", "v": "blob"}}
    messages = [
        {**header, "opType": "I", "data": [{"id": "1", "v": "a"}]},
        {**header, "opType": "U", "data": [{"id": "1", "v": "b"}], "updateBefore": [{"v": "a"}]},
        {**header, "opType": "D", "data": [{"id": "1", "v": "b"}]},
        {**header, "opType": "DELETE", "data": None, "old": {"id": "2"}},
        {**header, "type": "INSERT", "data": [{"id": "1"}]},
    ]
    rows = parsed(tmp_path, monkeypatch, capsys, FLAVOUR, messages)
    assert [(r["op"], r["reason"]) for r in rows] == [
        ("insert", None),
        ("update", None),
        ("delete", None),
        ("delete", None),
        (None, "no-op"),
    ]
    assert (
        rows[1]["before"] == {"id": "1", "v": "YQ=="}
        and rows[1]["after"] == {"id": "1", "v": "Yg=="}
        and rows[1]["changed"] == ["v"]
    )
    assert rows[3]["before"] == {"id": "2"}


def test_an_envelope_without_lists(
    tmp_path: Path, spark: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def message(op: str, **other: object) -> dict:
        return {
            "payload": {
                "op": op,
                "source": {"db name": "d", "table": "t"},
                "keys": ["id"],
                "time": "1700000000.25",
                "pos": "7",
                "tx": "x1",
                **other,
            }
        }

    messages = [
        message("i", after={"id": 1, "v": "a"}),
        message("i", after={"id": 2, "v": 1.25}, pos=None, time=-1),
        message("u", before={"id": 1}, after={"id": 1, "v": None}),
        message("d", before={"id": 1, "v": None}),
        message("d", before=None),
        message("x", ddl={"text": "/* c */ drop table t"}),
        message("x"),
    ]
    rows = parsed(tmp_path, monkeypatch, capsys, ENVELOPE, messages)
    assert [(r["kind"], r["op"], r["reason"]) for r in rows] == [
        ("row", "insert", None),
        ("row", "snapshot", None),
        ("row", "update", None),
        ("row", "delete", None),
        ("dead_letter", None, "no-row-image"),
        ("ddl", "drop", None),
        ("dead_letter", None, "unknown-op"),
    ]
    assert rows[1]["after"] == {"id": "2", "v": "1.25"}
    assert (rows[2]["before_image"], rows[2]["changed"]) == ("partial", ["v"])
    assert [r["event_time"] for r in rows[:2]] == ["2023-11-14T22:13:20.25Z", None]
    assert [r["seq"]["position"] for r in rows[:3]] == [[], [], []]  # a time with a fraction is no order number
    assert (rows[0]["db_name"], rows[0]["table_name"], rows[0]["tx_id"], rows[1]["seq"]["phase"]) == ("d", "t", "x1", 0)
