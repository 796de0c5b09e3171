"""Updates that come as two messages: one row of the changelog, whichever run and file each half came in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.commands import query, run

COLUMNS = "table_name, op, key_text, old_key, before, after, before_image, after_image, changed, pair_id, event_time"
Rows = list[dict[str, Any]]


def half(table: str, op: str, sequence: str, row: dict, before: dict | None = None) -> dict:
    """A message as DataWorks writes it; `row` lies on the side that the op names."""
    is_before = op in ("UPDATE_BEFOR", "UPDATE_BEFORE", "DELETE")
    images = {
        "before": {"dataColumn": row} if is_before else before and {"dataColumn": before},
        "after": None if is_before else {"dataColumn": row},
    }
    schema = {
        "dataColumn": [{"name": "id", "type": "LONG"}, {"name": "v", "type": "STRING"}],
        "primaryKey": ["id"],
        "source": {"dbType": "MySQL", "dbName": "shop", "tableName": table},
    }
    times = {"eventTime": 1620458077000 + int(sequence), "systemTime": 1620458077779, "checkpointTime": 1620458077000}
    payload = {**images, "sequenceId": sequence, "timestamp": times, "op": op, "ddl": None}
    return {"schema": schema, "payload": payload, "version": "0.0.1"}


# The messages of three runs: of one table the halves of an update come in different ones, and then again.
RUNS = [
    [
        half("parted", "UPDATE_BEFOR", "1", {"id": 1, "v": "a"}),
        half("mixed", "UPDATE_AFTER", "5", {"id": 1, "v": None}),
        half("mixed", "UPDATE_BEFORE", "6", {"id": 1, "v": None}),
        half("mixed", "UPDATE_BEFORE", "5", {"id": 1}),
        half("mixed", "UPDATE_AFTER", "7", {"id": 1, "v": "c"}),
        half("mixed", "UPDATE_AFTER", "8", {"id": 1, "v": "d"}, before={"id": 1, "v": "c"}),
        half("mixed", "DELETE", "9", {"id": 1, "v": "d"}),
    ],
    [half("parted", "UPDATE_AFTER", "1", {"id": 2, "v": "b"})],
    [
        half("parted", "UPDATE_AFTER", "1", {"id": 2, "v": "b"}),
        half("parted", "UPDATE_BEFOR", "1", {"id": 1, "v": "a"}),
    ],
]


@pytest.fixture(scope="module")
def after_runs(spark: object, tmp_path_factory: pytest.TempPathFactory) -> list[Rows]:
    """The rows of the changelog after each run, in the order of each table; at last those that the source's own has."""
    folder = tmp_path_factory.mktemp("pairs")
    (folder / "project.yml").write_text("sources: [{name: dw, format: dataworks, files: in/*.jsonl}]\n")
    (folder / "in").mkdir()
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for number, messages in enumerate(RUNS):
            (folder / f"in/{number}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in messages))
            run("run")
            seen.append(list(query(f"select {COLUMNS} from changelog order by table_name, seq, key_text")))
        of_the_source = f"select {COLUMNS} from {{{{ changelog_of('dw') }}}} order by table_name, seq, key_text"
        seen.append(list(query(of_the_source)))
    return seen


def of_table(table: str, rows: Rows) -> Rows:
    return [row for row in rows if row["table_name"] == table]


def test_halves_meet_across_runs(after_runs: list[Rows]) -> None:
    first, second, third, _ = (of_table("parted", rows) for rows in after_runs)
    [lone] = first
    assert (lone["op"], lone["before"], lone["after"], lone["after_image"], lone["changed"], lone["pair_id"]) == (
        "update",
        {"id": "1", "v": "a"},
        None,
        "none",
        None,
        "1",
    )
    [joined] = second
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
    assert third == [joined]


def test_the_changelog_of_one_source_has_whole_updates_too(after_runs: list[Rows]) -> None:
    of_all_sources, of_the_source = after_runs[-2:]
    assert of_the_source == of_all_sources


def test_halves_meet_in_any_order_and_only_their_own(after_runs: list[Rows]) -> None:
    rows = of_table("mixed", after_runs[0])
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
