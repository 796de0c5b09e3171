"""What a thousand micro-batches leave behind: checkpoints and logs may not grow without bound."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from runner.cli import main
from tests.engines import Broker, Message
from tests.spark_fixtures import rows

BATCHES = 1_000
STEPS = 4
TARGETS = {
    "parquet": "{path: parquet}",
    "delta": "{storage: delta, path: delta}",
    "iceberg": "{storage: iceberg, path: iceberg, catalog: {name: grown, type: hadoop}}",
}


def small_files(folder: Path) -> tuple[int, int]:
    """Number and bytes of all files below a folder that hold no rows."""
    found = [
        path
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(".parquet") and not path.name.endswith(".parquet.crc")
    ]
    return len(found), sum(path.stat().st_size for path in found)


@pytest.mark.soak
@pytest.mark.parametrize("storage", TARGETS)
def test_a_thousand_batches(
    tmp_path: Path, spark: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], storage: str
) -> None:
    """Prints after each quarter: batches, seconds for one, files and bytes of the checkpoint, and of what the storage
    notes of its files.
    """
    monkeypatch.chdir(tmp_path)
    figures = []
    with Broker(tmp_path / "broker") as broker:
        broker.create_topic("orders")
        (tmp_path / "project.yml").write_text(
            f"target: t\ntargets: {{t: {TARGETS[storage]}}}\n"
            f"sources: [{{name: app, format: canal, kafka: {{servers: '{broker.servers}', topics: orders, "
            f"batch: 1}}}}]\n"
        )
        for step in range(STEPS):
            each = BATCHES // STEPS
            numbers = range(step * each, (step + 1) * each)
            broker.produce(
                "orders",
                (
                    Message(json.dumps({"type": "INSERT", "data": [{"id": str(n)}], "pkNames": ["id"]}).encode())
                    for n in numbers
                ),
            )
            began = time.perf_counter()
            assert main(["run", "-s", "app_to_changelog"]) == 0, capsys.readouterr().err
            seconds = (time.perf_counter() - began) / each
            root = tmp_path / storage
            log = {
                "parquet": root / "app_to_changelog/_spark_metadata",
                "delta": root / "app_to_changelog/_delta_log",
                "iceberg": root / "changelog/app_to_changelog/metadata",
            }[storage]
            figures.append((numbers.stop, seconds, *small_files(root / "_checkpoints"), *small_files(log)))
        assert rows(capsys, "select count(*) as n, count(distinct after['id']) as ids from {{ ref('changelog') }}") == [
            {"n": BATCHES, "ids": BATCHES}
        ]
        assert main(["maintain", "--history-days", "0"]) == 0
        figures.append((BATCHES, 0.0, *small_files(root / "_checkpoints"), *small_files(log)))
        assert rows(capsys, "select count(*) as n from {{ ref('changelog') }}") == [{"n": BATCHES}]
    with capsys.disabled():
        for batches, seconds, files, size, log_files, log_size in figures:
            print(
                f"\n{storage}: {batches} batches, {seconds:.2f} s each; checkpoint {files} files, "
                f"{size / 1e6:.2f} MB; log {log_files} files, {log_size / 1e6:.2f} MB",
                end="",
            )
        print()
    # Each state of a table in Iceberg lists all snapshots: of old states the last ten are kept.
    assert len(list(log.glob("*.metadata.json"))) <= 11
    # Spark keeps the last 100 batches in a checkpoint: each has a plan and a commit, with a checksum beside each.
    assert figures[-1][2] < 500
