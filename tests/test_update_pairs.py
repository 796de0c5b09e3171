"""Updates that come as two messages: one row of the changelog, whichever run and file each half came in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runner.cli import main

COLUMNS = (
    "op, key_text, old_key, before, after, before_image, after_image, changed, pair_id, event_time, meta['rowid'] "
    "as rowid"
)


def half(op: str, sequence: str, row: dict, before: dict | None = None) -> dict:
    """A message as DataWorks writes it; `row` lies on the side that the op names."""
    is_before = op in ("UPDATE_BEFOR", "UPDATE_BEFORE", "DELETE")
    images = {
        "before": {"dataColumn": row} if is_before else before and {"dataColumn": before},
        "after": None if is_before else {"dataColumn": row},
    }
    schema = {
        "dataColumn": [{"name": "id", "type": "LONG"}, {"name": "v", "type": "STRING"}],
        "primaryKey": ["id"],
        "source": {"dbType": "MySQL", "dbName": "shop", "tableName": "t"},
    }
    times = {"eventTime": 1620458077000 + int(sequence), "systemTime": 1620458077779, "checkpointTime": 1620458077000}
    return {
        "schema": schema,
        "payload": {**images, "sequenceId": sequence, "timestamp": times, "op": op, "ddl": None},
        "version": "0.0.1",
    }


@pytest.fixture
def source(tmp_path: Path, spark: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "project.yml").write_text("sources: [{name: dw, format: dataworks, files: in/*.jsonl}]\n")
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path)

    def land(name: str, *messages: dict) -> list[dict]:
        (tmp_path / f"in/{name}.jsonl").write_text("".join(json.dumps(m) + "\n" for m in messages))
        assert main(["run"]) == 0, capsys.readouterr().err
        capsys.readouterr()
        assert (
            main(["show", "--inline", f"select {COLUMNS} from changelog order by seq, key_text", "--output", "json"])
            == 0
        )
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return land


def test_halves_meet_across_runs(source) -> None:
    [lone] = source("1", half("UPDATE_BEFOR", "1", {"id": 1, "v": "a"}))
    assert (lone["op"], lone["before"], lone["after"], lone["after_image"], lone["changed"], lone["pair_id"]) == (
        "update",
        {"id": "1", "v": "a"},
        None,
        "none",
        None,
        "1",
    )
    [joined] = source("2", half("UPDATE_AFTER", "1", {"id": 2, "v": "b"}))
    assert (joined["before"], joined["after"], joined["changed"]) == (
        {"id": "1", "v": "a"},
        {"id": "2", "v": "b"},
        ["id", "v"],
    )
    assert (joined["key_text"], joined["old_key"], joined["before_image"], joined["after_image"]) == (
        '{"id":"2"}',
        {"id": "1"},
        "full",
        "full",
    )
    # Halves that come again change nothing, in whatever order.
    assert source(
        "3", half("UPDATE_AFTER", "1", {"id": 2, "v": "b"}), half("UPDATE_BEFOR", "1", {"id": 1, "v": "a"})
    ) == [joined]


def test_the_changelog_of_one_source_has_whole_updates_too(source, capsys: pytest.CaptureFixture[str]) -> None:
    source("1", half("UPDATE_BEFOR", "1", {"id": 1, "v": "a"}), half("UPDATE_AFTER", "1", {"id": 1, "v": "b"}))
    sql = "select op, before['v'] as old, after['v'] as new from {{ changelog_of('dw') }}"
    assert main(["show", "--inline", sql, "--output", "json"]) == 0
    assert capsys.readouterr().out == '{"op":"update","old":"a","new":"b"}\n'


def test_halves_meet_in_any_order_and_only_their_own(source) -> None:
    rows = source(
        "1",
        half("UPDATE_AFTER", "5", {"id": 1, "v": None}),
        half("UPDATE_BEFORE", "6", {"id": 1, "v": None}),
        half("UPDATE_BEFORE", "5", {"id": 1}),
        half("UPDATE_AFTER", "7", {"id": 1, "v": "c"}),
        half("UPDATE_AFTER", "8", {"id": 1, "v": "d"}, before={"id": 1, "v": "c"}),
        half("DELETE", "9", {"id": 1, "v": "d"}),
    )
    assert [(r["before"], r["after"], r["changed"], r["pair_id"]) for r in rows] == [
        # Whether `v` has changed is not known: its half before the change lacks it.
        ({"id": "1"}, {"id": "1", "v": None}, None, "5"),
        ({"id": "1", "v": None}, None, None, "6"),
        (None, {"id": "1", "v": "c"}, None, "7"),
        ({"id": "1", "v": "c"}, {"id": "1", "v": "d"}, ["v"], None),
        ({"id": "1", "v": "d"}, None, None, None),
    ]
    assert (rows[0]["before_image"], rows[0]["after_image"]) == ("key", "full")
    assert rows[0]["event_time"] == "2021-05-08T07:14:37.005Z"
