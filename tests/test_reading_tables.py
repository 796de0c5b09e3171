"""The tables as others see them: in catalogs, by spark-sql, in a notebook, with DuckDB, as the page on reading says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runner.cli import main
from tests.pages import ROOT, Block, blocks, run_block, section, write_files
from tests.spark_fixtures import hadoop_catalog

pytestmark = pytest.mark.usefixtures("interpreted")
PAGE = ROOT / "docs/reading.md"
SHOP = ROOT / "formats/cases/canal/shop.messages.jsonl"
VIEWS = {"changelog", "ddl_events", "control_events", "dead_letters", "freshness", "freshness_by_table"}


def project(folder: Path, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "messages").mkdir()
    shutil.copyfile(SHOP, folder / "messages/shop.jsonl")
    (folder / "project.yml").write_text(
        f"target: t\ntargets: {{t: {target}}}\nsources: [{{name: shop, format: canal, files: messages/*}}]\n"
    )
    (folder / "models").mkdir()
    (folder / "models/totals.sql").write_text(
        "{{ config(materialized='table') }} select op, count(*) as n from {{ ref('changelog') }} group by op\n"
    )
    (folder / "models/renames.sql").write_text("select * from {{ ref('totals') }} where op = 'update'\n")
    monkeypatch.chdir(folder)


def names(session, catalog: str, what: str) -> set[str]:
    return {row[1] for row in session.sql(f"show {what} in {catalog}").collect()}


@pytest.mark.parametrize("storage", [pytest.param("parquet", marks=pytest.mark.soak), "delta"])
def test_another_session_finds_tables_and_views_by_name(
    tmp_path: Path, spark: object, monkeypatch: pytest.MonkeyPatch, storage: str
) -> None:
    schema = f"seen_{storage}"
    project(tmp_path, f"{{storage: {storage}, catalog: {{schema: {schema}}}}}", monkeypatch)
    assert main(["run", "-s", "ddl_events"]) == 0  # its table is not landed yet: empty, and there
    other = spark.fresh().session
    assert other.table(f"{schema}.ddl_events").count() == 0
    assert main(["run"]) == 0
    other = spark.fresh().session
    assert VIEWS | {"shop_to_changelog", "totals", "renames"} <= names(other, schema, "tables")
    assert other.table(f"{schema}.changelog").count() == 13
    assert other.table(f"{schema}.ddl_events").count() == 3
    assert (
        [tuple(row) for row in other.table(f"{schema}.renames").collect()]
        == [tuple(row) for row in other.table(f"{schema}.totals").where("op = 'update'").collect()]
        != []
    )
    (tmp_path / "messages/more.jsonl").write_text('{"type":"INSERT","data":[{"id":"7"}],"pkNames":["id"]}\n')
    assert main(["run"]) == 0
    assert spark.fresh().session.table(f"{schema}.changelog").count() == 14


def test_a_catalog_without_views_holds_the_tables(
    tmp_path: Path, spark: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path, "{storage: iceberg, catalog: {name: seen, type: hadoop, schema: lake}}", monkeypatch)
    assert main(["run"]) == 0
    session = spark.fresh().session
    hadoop_catalog(session, "seen", tmp_path / "warehouse")
    assert names(session, "seen.lake", "tables") == {"shop_to_changelog", "totals"}
    assert session.table("seen.lake.shop_to_changelog").where("kind = 'row'").count() == 13


# --- the page


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "messages").mkdir()
    shutil.copyfile(SHOP, tmp_path / "messages/shop.jsonl")
    return tmp_path


def notebook(folder: Path, settings: dict[str, str], text: str) -> str:
    """What a session without this project prints."""
    options = "".join(
        f".config({key!r}, {value!r})" for key, value in {"spark.ui.enabled": "false", **settings}.items()
    )
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
def test_the_page_by_name(folder: Path) -> None:
    write_files(section(PAGE, "By name, in a catalog") + section(PAGE, "spark-sql"), folder)
    (run,) = [block for block in section(PAGE, "By name, in a catalog") if block.kind == "sh"]
    run_block(run, folder)
    ask, says = [block for block in section(PAGE, "spark-sql") if block.kind in ("sh", "text")]
    assert printed(says, run_block(ask, folder))
    settings = dict(line.split() for line in (folder / "spark-defaults.conf").read_text().splitlines())
    code, says = section(PAGE, "A notebook")
    assert printed(says, notebook(folder, {**settings, "spark.sql.catalogImplementation": "hive"}, code.text))


def test_the_page_of_folders(folder: Path, spark: object, monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    (folder / "project.yml").write_text(
        "targets: {local: {}, folders: {}}\n"
        "sources: [{name: shop, format: canal, zone: Asia/Shanghai, files: messages/*.jsonl}]\n"
    )
    monkeypatch.chdir(folder)
    assert main(["run"]) == 0
    (day,) = (folder / "warehouse/shop_to_changelog/kind=row").glob("*")
    (written,) = day.glob("*.parquet")
    shutil.copyfile(written, day / "left-over.parquet")  # as a run that was killed leaves it
    by_spark, by_duckdb = [block for block in blocks(PAGE) if block.kind == "sql"]
    expected = [
        ("update", '{"id":"1001"}', "paid"),
        ("update", '{"id":"1001"}', "shipped"),
        ("update", '{"id":"1002"}', "cancelled"),
    ]
    assert duckdb.sql(by_duckdb.text).fetchall() == expected
    in_spark = by_spark.text.replace("warehouse/", f"{folder}/warehouse/")
    assert spark.fresh().session.sql(in_spark).count() == 13
    assert main(["maintain", "--target", "folders"]) == 0
    assert [path.name for path in day.glob("*.parquet")] == [written.name]
    assert duckdb.sql("select count(*) from 'warehouse/shop_to_changelog/kind=row/*/*.parquet'").fetchall() == [(13,)]
    code, says = section(PAGE, "Views without a catalog")
    assert printed(says, notebook(folder, {}, code.text))
