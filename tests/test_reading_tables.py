"""The tables as others see them: in catalogs, by spark-sql, in a notebook, with DuckDB, as the page on reading says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.landed import Project
from tests.pages import ROOT, Block, blocks, run_block, section, write_files
from tests.spark_fixtures import hadoop_catalog

pytestmark = pytest.mark.usefixtures("interpreted")
PAGE = ROOT / "docs/reading.md"
SHOP = ROOT / "formats/cases/canal/shop.messages.jsonl"
VIEWS = {"changelog", "ddl_events", "control_events", "dead_letters", "freshness", "freshness_by_table"}


FILES = {
    "messages/shop.jsonl": SHOP.read_bytes(),
    "models/totals.sql": (
        "{{ config(materialized='table') }} select op, count(*) as n from {{ ref('changelog') }} group by op\n"
    ),
    "models/renames.sql": "select * from {{ ref('totals') }} where op = 'update'\n",
}


def project_of(folder: Path, target: str) -> Project:
    sources = "[{name: shop, format: canal, files: messages/*}]"
    return Project(folder, {**FILES, "project.yml": f"target: t\ntargets: {{t: {target}}}\nsources: {sources}\n"})


def names(session, catalog: str, what: str) -> set[str]:
    return {row[1] for row in session.sql(f"show {what} in {catalog}").collect()}


@pytest.mark.parametrize("storage", ["parquet", "delta"])
def test_another_session_finds_tables_and_views_by_name(tmp_path: Path, spark: Any, storage: str) -> None:
    schema = f"seen_{storage}"
    project = project_of(tmp_path, f"{{storage: {storage}, catalog: {{schema: {schema}}}}}")
    project.ok("run", "-s", "ddl_events")  # its table is not landed yet: empty, and there
    other = spark.fresh().session
    assert other.table(f"{schema}.ddl_events").count() == 0
    project.ok("run")
    other = spark.fresh().session
    assert VIEWS | {"shop_to_changelog", "totals", "renames"} <= names(other, schema, "tables")
    assert other.table(f"{schema}.changelog").count() == 13
    assert other.table(f"{schema}.ddl_events").count() == 3
    renames = [tuple(row) for row in other.table(f"{schema}.renames").collect()]
    totals = other.table(f"{schema}.totals").where("op = 'update'")
    assert renames == [tuple(row) for row in totals.collect()] != []
    project.write({"messages/more.jsonl": '{"type":"INSERT","data":[{"id":"7"}],"pkNames":["id"]}\n'})
    project.ok("run", "-s", "shop_to_changelog")
    assert spark.fresh().session.table(f"{schema}.changelog").count() == 14


@pytest.mark.engines
def test_a_catalog_without_views_holds_the_tables(tmp_path: Path, spark: Any) -> None:
    project = project_of(tmp_path, "{storage: iceberg, catalog: {name: seen, type: hadoop, schema: lake}}")
    project.ok("run")
    session = spark.fresh().session
    hadoop_catalog(session, "seen", tmp_path / "warehouse")
    assert names(session, "seen.lake", "tables") == {"shop_to_changelog", "totals"}
    assert session.table("seen.lake.shop_to_changelog").where("kind = 'row'").count() == 13


# --- the page


def notebook(folder: Path, settings: dict[str, str], text: str) -> str:
    """What a session without this project prints."""
    settings = {"spark.ui.enabled": "false", **settings}
    options = "".join(f".config({key!r}, {value!r})" for key, value in settings.items())
    code = f"from pyspark.sql import SparkSession\nspark = SparkSession.builder{options}.getOrCreate()\n{text}"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def printed(block: Block, output: str) -> bool:
    return block.text.strip() in output


@pytest.mark.soak
def test_the_page_by_name(tmp_path: Path) -> None:
    folder = Project(tmp_path, {"messages/shop.jsonl": SHOP.read_bytes()}).folder
    write_files(section(PAGE, "By name, in a catalog") + section(PAGE, "spark-sql"), folder)
    (run,) = [block for block in section(PAGE, "By name, in a catalog") if block.kind == "sh"]
    run_block(run, folder)
    ask, says = [block for block in section(PAGE, "spark-sql") if block.kind in ("sh", "text")]
    assert printed(says, run_block(ask, folder))
    settings = dict(line.split() for line in (folder / "spark-defaults.conf").read_text().splitlines())
    code, says = section(PAGE, "A notebook")
    assert printed(says, notebook(folder, {**settings, "spark.sql.catalogImplementation": "hive"}, code.text))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, spark: object, interpreted: None) -> Project:
    """The project of the page, without a catalog."""
    settings = (
        "targets: {local: {}, folders: {}}\n"
        "sources: [{name: shop, format: canal, zone: Asia/Shanghai, files: messages/*.jsonl}]\n"
    )
    files = {"project.yml": settings, "messages/shop.jsonl": SHOP.read_bytes()}
    project = Project(tmp_path_factory.mktemp("folders"), files)
    project.ok("run")
    return project


@pytest.mark.engines
def test_the_page_of_views_in_a_notebook(folders: Project) -> None:
    code, says = section(PAGE, "Views without a catalog")
    assert printed(says, notebook(folders.folder, {}, code.text))


def test_the_page_of_folders(folders: Project, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    monkeypatch.chdir(folders.folder)
    (day,) = (folders / "warehouse/shop_to_changelog/kind=row").glob("*")
    (written,) = day.glob("*.parquet")
    shutil.copyfile(written, day / "left-over.parquet")  # as a run that was killed leaves it
    by_spark, by_duckdb = [block for block in blocks(PAGE) if block.kind == "sql"]
    expected = [
        ("update", '{"id":"1001"}', "paid"),
        ("update", '{"id":"1001"}', "shipped"),
        ("update", '{"id":"1002"}', "cancelled"),
    ]
    assert duckdb.sql(by_duckdb.text).fetchall() == expected
    in_spark = by_spark.text.replace("warehouse/", f"{folders.folder}/warehouse/")
    assert spark.fresh().session.sql(in_spark).count() == 13
    folders.ok("maintain", "--target", "folders")
    assert [path.name for path in day.glob("*.parquet")] == [written.name]
    assert duckdb.sql("select count(*) from 'warehouse/shop_to_changelog/kind=row/*/*.parquet'").fetchall() == [(13,)]
