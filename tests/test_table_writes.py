"""What the log of a table tells of its writes, and what a record of a model keeps of them."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from runner.engine.files import LocalFiles
from runner.engine.progress import Position, Progress
from runner.project.inputs import Target
from runner.storage.data import Write
from runner.storage.delta import Delta
from runner.storage.iceberg import Iceberg

MERGED = {"numTargetRowsInserted": "5", "numTargetRowsUpdated": "7", "numTargetRowsDeleted": "2"}
COMMITS: list[dict[str, Any]] = [
    {"operation": "CREATE OR REPLACE TABLE AS SELECT", "operationMetrics": {"numOutputRows": "10"}},
    {"operation": "MERGE", "operationMetrics": MERGED},
    {"operation": "OPTIMIZE", "operationMetrics": {"numRemovedFiles": "2"}},
    {"operation": "MERGE", "operationMetrics": {}},
    {"operation": "RESTORE", "operationParameters": {"version": 2, "timestamp": None}},
    {"operation": "DELETE", "operationMetrics": {"numDeletedRows": "1"}},
]


@pytest.mark.parametrize(
    ("number", "before", "expected"),
    [
        (0, (), []),
        (3, (), [("1", 3), ("0", None)]),
        (3, ("0",), [("1", 3)]),
        (3, ("2",), []),
        (4, ("2",), [("3", None)]),
        # A record of an older version has all writes.
        (4, ("0", "1"), [("3", None)]),
        (6, ("0",), [("5", None), ("4", None), ("1", 3)]),
    ],
)
def test_writes_in_the_log_of_delta(
    tmp_path: Path, number: int, before: Collection[str], expected: list[tuple[str, int | None]]
) -> None:
    log = tmp_path / "orders/_delta_log"
    log.mkdir(parents=True)
    for version, commit in enumerate(COMMITS[:number]):
        lines = [{"commitInfo": {"timestamp": 1, "operationParameters": {}, **commit}}, {"add": {"path": "part"}}]
        (log / f"{version:020}.json").write_text("\n".join(json.dumps(one, separators=(",", ":")) for one in lines))
        (log / f".{version:020}.json.crc").write_text("sum")
    table: Any = Delta(None, LocalFiles(), Target("local", path=str(tmp_path)), str)  # type: ignore[arg-type]
    assert table.head("orders") == (str(number - 1) if number else None)
    assert table.writes_since("orders", before) == [Write(*one) for one in expected]


class Snapshots(Iceberg):
    """A table of Iceberg with snapshots as its metadata tables show them."""

    def __init__(self, newest: str, rows: list[tuple[int, int | None, str, dict[str, str]]]) -> None:
        names = ("snapshot_id", "parent_id", "operation", "summary")
        self.newest, self.snapshots = newest, [dict(zip(names, row)) for row in rows]
        self.session = self
        self.macro = lambda name, _: name

    def table(self, name: str) -> str:
        return name

    def table_exists(self, _: str) -> bool:
        return True

    def rows(self, sql: str) -> tuple[list[str], list[dict[str, Any]]]:
        properties = [{"key": "format", "value": "iceberg"}, {"key": "current-snapshot-id", "value": self.newest}]
        return [], properties if sql == "properties_shown" else self.snapshots


def test_writes_in_the_snapshots_of_iceberg() -> None:
    changed = {"added-records": "12", "added-position-deletes": "9", "total-records": "99"}
    compacted = {"added-records": "40", "deleted-records": "49", "removed-position-deletes": "9"}
    again = {"added-records": "1", "added-position-deletes": "4", "removed-position-deletes": "3"}
    rows = [
        (1, None, "append", {"added-records": "40"}),
        (2, 1, "overwrite", changed),
        (3, 2, "replace", compacted),
        (4, 3, "overwrite", again),
        (5, 2, "append", {"added-records": "7"}),
        (6, 4, "overwrite", {"added-records": "1", "added-equality-deletes": "1"}),
    ]
    assert Snapshots("4", rows).writes_since("t", ()) == [Write("4", 0), Write("2", 3), Write("1", 40)]
    assert Snapshots("4", rows).writes_since("t", ("2",)) == [Write("4", 0)]
    assert Snapshots("4", rows).writes_since("t", ("4",)) == []
    assert Snapshots("6", rows).writes_since("t", ("3",)) == [Write("6", None), Write("4", 0)]
    # A table that was rolled back has the snapshot that another one follows.
    assert Snapshots("2", rows).writes("t") == ["2", "1"]
    assert Snapshots("none", rows).writes_since("t", ()) == []


class Written:
    """A table with these writes, oldest first; listing all of them is counted."""

    def __init__(self) -> None:
        self.all: list[Write] = []
        self.listed = 0

    def writes(self, _: str) -> list[str]:
        self.listed += 1
        return [one.name for one in self.all]

    def head(self, _: str) -> str | None:
        return self.all[-1].name if self.all else None

    newest_write = head

    def writes_since(self, _: str, before: Collection[str]) -> list[Write]:
        names = [one.name for one in self.all]
        return self.all[max((names.index(one) + 1 for one in before), default=0) :]


def test_what_is_recorded_of_the_number_of_rows(tmp_path: Path) -> None:
    table, read = Written(), {"shop_to_changelog": Position("x", 1)}
    progress = Progress(LocalFiles(), str(tmp_path / "p"), table, "orders")  # type: ignore[arg-type]
    with progress.writing(read):
        table.all.append(Write("1"))
    assert progress.rows() is None
    progress.counted(40)
    table.listed = 0
    with progress.writing(read):
        table.all += [Write("2", 3), Write("3", -1)]
    assert (progress.rows(), progress.read()) == (42, read)
    with progress.writing(read):
        pass
    assert progress.rows() == 42
    # All this is known from the newest write.
    assert table.listed == 0
    with progress.writing(read):
        table.all.append(Write("4"))
    assert progress.rows() is None

    # What others write is not known.
    progress.counted(50)
    table.all.append(Write("5", 1))
    progress.verified()
    assert progress.rows() is None
    progress.counted(51)
    table.all.append(Write("6", 1))
    with progress.writing(read):
        table.all.append(Write("7", 1))
    assert progress.rows() is None


def test_a_write_that_was_interrupted(tmp_path: Path) -> None:
    table, old, new = Written(), {"c": Position("x", 1)}, {"c": Position("x", 2)}
    progress = Progress(LocalFiles(), str(tmp_path / "p"), table, "orders")  # type: ignore[arg-type]
    with progress.writing(old):
        table.all.append(Write("1"))
    progress.counted(40)
    for is_written in (False, True):
        with pytest.raises(KeyboardInterrupt), progress.writing(new):
            table.all += [Write("2", 1)] * is_written
            raise KeyboardInterrupt
        assert progress.read() == (new if is_written else old)
        assert progress.rows() is None
