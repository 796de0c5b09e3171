"""Housekeeping: small files become large ones, old rows and states go, and nothing else."""

from __future__ import annotations

import json
import os
import time
from datetime import date, timedelta
from pathlib import Path

import pytest

from runner.cli import main
from tests.spark_fixtures import hadoop_catalog, rows

pytestmark = pytest.mark.usefixtures("interpreted", "lean")
TARGETS = {
    "parquet": "{spark: {spark.sql.files.openCostInBytes: 134217728}}",
    "delta": "{storage: delta, spark: {spark.sql.files.openCostInBytes: 134217728}}",
    "iceberg": (
        "{storage: iceberg, catalog: {name: kept, type: hadoop}, spark: {spark.sql.files.openCostInBytes: 134217728}}"
    ),
}
FILES, EACH = 6, 3
LANDED = "select after['id'] as id from {{ ref('changelog') }} order by cast(after['id'] as int)"


@pytest.fixture(params=TARGETS)
def folder(request: pytest.FixtureRequest, tmp_path: Path, spark: object, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of one source, landed in as many small files as it has files of messages."""
    (tmp_path / "in").mkdir()
    for number in range(FILES):
        write(tmp_path, number)
    (tmp_path / "project.yml").write_text(
        f"target: {request.param}\ntargets: {{{request.param}: {TARGETS[request.param]}}}\n"
        f"sources: [{{name: app, format: lean, files: in/*}}]\n"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["run"]) == 0
    return tmp_path


def write(folder: Path, number: int) -> None:
    lines = (
        json.dumps({"type": "INSERT", "table": "t", "data": [{"id": str(number * EACH + n)}], "pkNames": ["id"]})
        for n in range(EACH)
    )
    path = folder / f"in/{number}.jsonl"
    path.write_text("\n".join(lines))
    if number == 0:  # an old one, whose rows may be old too
        os.utime(path, (time.time() - 40 * 86_400,) * 2)


def storage(folder: Path) -> str:
    return (folder / "project.yml").read_text().split()[1]


def table(folder: Path) -> str:
    return {"delta": f"delta.`{folder}/warehouse/app_to_changelog`", "iceberg": "kept.changelog.app_to_changelog"}[
        storage(folder)
    ]


def session(folder: Path, spark: object) -> object:
    own = spark.fresh().session
    hadoop_catalog(own, "kept", folder / "warehouse")
    return own


def data_files(folder: Path, spark: object) -> int:
    own = session(folder, spark)
    if storage(folder) == "delta":
        return own.sql(f"describe detail {table(folder)}").first()["numFiles"]
    return own.table(f"{table(folder)}.files").count()


def ids(count: int) -> list[dict]:
    return [{"id": str(n)} for n in range(count)]


def test_small_files_become_large_ones(folder: Path, spark: object, capsys: pytest.CaptureFixture[str]) -> None:
    if storage(folder) == "parquet":
        (day,) = (folder / "warehouse/app_to_changelog/kind=row").glob("*")
        (day / "left.parquet").write_bytes(b"")
        assert main(["maintain"]) == 0
        assert "1 file of interrupted runs removed" in capsys.readouterr().err and not (day / "left.parquet").exists()
    else:
        assert data_files(folder, spark) == FILES
        assert main(["maintain", "--history-days", "0"]) == 0
        assert data_files(folder, spark) == 1
    assert rows(capsys, LANDED) == ids(FILES * EACH)
    write(folder, FILES)
    assert main(["build"]) == 0, capsys.readouterr().err  # the stream goes on, and `conserved` agrees
    assert rows(capsys, LANDED) == ids((FILES + 1) * EACH)


def test_old_rows_go_and_nobody_misses_them(folder: Path, spark: object, capsys: pytest.CaptureFixture[str]) -> None:
    if storage(folder) == "parquet":
        assert main(["maintain", "--keep-days", "30"]) == 1
        assert "--keep-days needs a target with the storage delta or iceberg" in capsys.readouterr().err
        return
    own = session(folder, spark)
    for number, days in ((0, 31), (1, 29)):
        own.sql(
            f"update {table(folder)} set landed_on = date '{date.today() - timedelta(days=days)}' where "
            f"origin.file like '%/{number}.jsonl'"
        ).collect()
    assert main(["maintain", "--keep-days", "30"]) == 0
    assert rows(capsys, LANDED) == ids(FILES * EACH)[EACH:]
    assert main(["test"]) == 0
    assert "1 of 6 files may have landed before" in capsys.readouterr().err  # what cannot be known is said
    own.sql(f"delete from {table(folder)} where after['id'] = '5'").collect()
    assert main(["test"]) == 1  # and what is really missing is found
    assert "messages_read: 3, messages_landed: 2" in capsys.readouterr().err


@pytest.mark.parametrize("folder", ["delta"], indirect=True)
def test_rows_that_a_table_has_not_read_stay(folder: Path, spark: object, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "models").mkdir()
    (folder / "models/taken.sql").write_text(
        "{{ config(materialized='incremental') }} select key_text from {{ new_rows('changelog') }}"
    )
    assert main(["run", "-s", "taken"]) == 0
    write(folder, FILES)
    assert main(["run", "-s", "app_to_changelog"]) == 0
    old = date.today() - timedelta(days=31)
    session(folder, spark).sql(f"update {table(folder)} set landed_on = date '{old}'").collect()
    capsys.readouterr()
    assert main(["maintain", "-s", "app_to_changelog", "--keep-days", "30"]) == 1
    assert '"taken" has not read all rows of "app_to_changelog"' in capsys.readouterr().err
    assert rows(capsys, LANDED) == ids((FILES + 1) * EACH)
    assert main(["run", "-s", "taken"]) == 0
    assert main(["maintain", "-s", "app_to_changelog", "--keep-days", "30"]) == 0
    assert rows(capsys, LANDED) == []
    assert len(rows(capsys, "select * from {{ ref('taken') }}")) == (FILES + 1) * EACH


@pytest.mark.parametrize("folder", ["parquet"], indirect=True)
def test_a_broken_batch_has_to_end_before(folder: Path, spark: object, capsys: pytest.CaptureFixture[str]) -> None:
    """The table has the batch and the checkpoint has not: were its mark in the table removed, it would land again."""
    commits = folder / "warehouse/_checkpoints/app_to_changelog/commits"
    (commits / "0").unlink()
    (commits / ".0.crc").unlink()
    assert main(["maintain"]) == 1
    assert "runner run -s app_to_changelog" in capsys.readouterr().err
    assert main(["run"]) == 0
    assert rows(capsys, LANDED) == ids(FILES * EACH)
    assert main(["maintain"]) == 0
