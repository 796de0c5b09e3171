"""Housekeeping: small files become large ones, old rows and states go, and nothing else."""

from __future__ import annotations

import json
import os
import time
from datetime import date, timedelta
from typing import Any

import pytest

from tests.landed import Project
from tests.spark_fixtures import hadoop_catalog

pytestmark = pytest.mark.usefixtures("interpreted", "lean")
TARGETS = {
    "parquet": "storage: parquet",
    "delta": "storage: delta",
    "iceberg": "storage: iceberg, catalog: {name: kept, type: hadoop}",
}
# Each file is read by a task of its own, which writes one.
PROJECT = """
target: t
targets: {{t: {{{target}, spark: {{spark.sql.files.openCostInBytes: 134217728}}}}}}
sources: [{{name: app, format: lean, files: in/*}}]
"""
FILES, EACH = 6, 3
TAKEN = "{{ config(materialized='incremental') }} select key_text from {{ new_rows('changelog') }}"
OLD, YOUNG = (date.today() - timedelta(days=days) for days in (31, 29))


def write(project: Project, number: int) -> None:
    ids = range(number * EACH, (number + 1) * EACH)
    lines = (json.dumps({"type": "INSERT", "table": "t", "data": [{"id": str(n)}], "pkNames": ["id"]}) for n in ids)
    project.write({f"in/{number}.jsonl": "\n".join(lines)})
    if number == 0:  # an old one, whose rows may be old too
        os.utime(project / "in/0.jsonl", (time.time() - 40 * 86_400,) * 2)


@pytest.fixture
def project(spark: Any, tmp_path_factory: pytest.TempPathFactory, storage: str) -> Project:
    """A project of one source, landed in as many small files as it has files of messages."""
    project = Project(tmp_path_factory.mktemp(storage), {"project.yml": PROJECT.format(target=TARGETS[storage])})
    for number in range(FILES):
        write(project, number)
    project.ok("run")
    return project


def ids(project: Project) -> list[int]:
    sql = "select cast(after['id'] as int) as id from {{ ref('changelog') }} order by id"
    return [row["id"] for row in project.rows(sql)]


@pytest.mark.parametrize("storage", ["parquet"])
def test_parquet(project: Project) -> None:
    ran = project.run("maintain", "--keep-days", "30")
    assert ran.code == 1 and "--keep-days needs a target with the storage delta or iceberg" in ran.err
    # The table has the batch and the checkpoint has not: were its mark in the table removed, it would land again.
    commits = project / "warehouse/_checkpoints/app_to_changelog/commits"
    (commits / "0").unlink()
    (commits / ".0.crc").unlink()
    ran = project.run("maintain")
    assert ran.code == 1 and "runner run -s app_to_changelog" in ran.err
    project.ok("run")
    assert ids(project) == [*range(FILES * EACH)]
    (day,) = (project / "warehouse/app_to_changelog/kind=row").glob("*")
    (day / "left.parquet").write_bytes(b"")
    assert "1 file of interrupted runs removed" in project.ok("maintain") and not (day / "left.parquet").exists()
    check_that_it_goes_on(project)


def check_that_it_goes_on(project: Project) -> None:
    """Nothing is gone, a run lands what is new, and `conserved` agrees."""
    assert ids(project) == [*range(FILES * EACH)]
    write(project, FILES)
    project.ok("build")
    assert ids(project) == [*range((FILES + 1) * EACH)]


class Table:
    """The table of the source. Each look is a session of its own: one remembers tables of Iceberg as it saw them."""

    def __init__(self, project: Project, storage: str, spark: Any) -> None:
        self.warehouse, self.storage, self.spark = project / "warehouse", storage, spark
        delta = f"delta.`{self.warehouse}/app_to_changelog`"
        self.name = delta if storage == "delta" else "kept.changelog.app_to_changelog"

    @property
    def session(self) -> Any:
        session = self.spark.fresh().session
        hadoop_catalog(session, "kept", self.warehouse)
        return session

    def data_files(self) -> int:
        if self.storage == "delta":
            return self.session.sql(f"describe detail {self.name}").first()["numFiles"]
        return self.session.table(f"{self.name}.files").count()

    def change(self, statement: str) -> None:
        self.session.sql(statement.format(self.name)).collect()


@pytest.mark.parametrize("storage", ["delta", "iceberg"])
def test_other_storages(project: Project, storage: str, spark: Any) -> None:
    table = Table(project, storage, spark)
    assert table.data_files() == FILES
    project.ok("maintain", "--history-days", "0")
    assert table.data_files() == 1
    check_that_it_goes_on(project)

    # Old rows go, and nobody misses them.
    for number, day in ((0, OLD), (1, YOUNG)):
        table.change(f"update {{}} set landed_on = date '{day}' where origin.file like '%/{number}.jsonl'")
    project.ok("maintain", "--keep-days", "30")
    assert ids(project) == [*range(EACH, (FILES + 1) * EACH)]
    # What cannot be known is said, and what is really missing is found.
    assert "1 of 7 files may have landed before" in project.ok("test")
    table.change("delete from {} where after['id'] = '5'")
    ran = project.run("test")
    assert ran.code == 1 and "messages_read: 3, messages_landed: 2" in ran.err


@pytest.mark.parametrize("storage", ["delta"])
def test_rows_that_a_table_has_not_read_stay(project: Project, storage: str, spark: Any) -> None:
    project.write({"models/taken.sql": TAKEN})
    project.ok("run", "-s", "taken")
    write(project, FILES)
    project.ok("run", "-s", "app_to_changelog")
    Table(project, storage, spark).change(f"update {{}} set landed_on = date '{OLD}'")
    maintain = ("maintain", "-s", "app_to_changelog", "--keep-days", "30")
    ran = project.run(*maintain)
    assert ran.code == 1 and '"taken" has not read all rows of "app_to_changelog"' in ran.err
    assert ids(project) == [*range((FILES + 1) * EACH)]
    project.ok("run", "-s", "taken")
    project.ok(*maintain)
    assert ids(project) == []
    assert len(project.rows("select * from {{ ref('taken') }}")) == (FILES + 1) * EACH
