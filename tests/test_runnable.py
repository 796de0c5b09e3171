"""What `compile --runnable` prints runs without the runner, and gives the rows that it lands."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.avro_cases import encoded
from tests.engines import spark_home
from tests.pages import ROOT
from tests.test_avro_sources import SCHEMA, record

pytestmark = pytest.mark.usefixtures("spark", "interpreted")

# Files have no topics, and each row is a message.
VIEW = """
create or replace temporary view {view} as
select
  {raw} as raw, {more}
  named_struct(
    'topic', string(null), 'partition', int(null), 'offset', bigint(null), 'timestamp', timestamp(null),
    'key', string(null), 'headers', cast(null as array<struct<key string, value string>>),
    'file', _metadata.file_path, 'block', _metadata.file_block_start) as origin,
  array(
    unix_millis(_metadata.file_modification_time), xxhash64(_metadata.file_path), _metadata.file_block_start,
    monotonically_increasing_id()) as arrival
from text.`{file}`"""
PROJECT = """
name: runnable
sources:
  - {{name: app, format: {format}, zone: Asia/Shanghai, files: "{files}"}}
"""
NOT_OF_THE_MESSAGE = "origin, seq, run_id, batch, loaded_at, landed_on"


def runnable(runner, model: str) -> tuple[str, str]:
    """The text without its last statement, and that statement."""
    text, query = (runner("compile", "-s", model, *words).out for words in (["--runnable"], ["-q"]))
    assert query and text.endswith(query)
    return text.removesuffix(query), query


def landed(runner, sql: str) -> list[str]:
    """The rows of a query, as JSON in one order."""
    ran = runner("show", "--inline", sql, "--limit", "100000", "--output", "json")
    assert ran.code == 0, ran.err
    return sorted(json.loads(line)["row"] for line in ran.out.splitlines())


def spark_sql(folder: Path, text: str) -> list[str]:
    """The lines that spark-sql prints for a file of statements."""
    (folder / "all.sql").write_text(text)
    ran = subprocess.run(
        [spark_home() / "bin/spark-sql", "--conf", "spark.sql.catalogImplementation=in-memory", "-f", "all.sql"],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout.splitlines()


@pytest.mark.engines
def test_spark_sql_makes_the_rows_of_a_source_in_json(project, runner, tmp_path: Path) -> None:
    messages = tmp_path / "in/shop.jsonl"
    messages.parent.mkdir()
    shutil.copyfile(ROOT / "formats/cases/canal/shop.messages.jsonl", messages)
    project({"project.yml": PROJECT.format(format="canal", files="in/*")})
    assert runner("run", "-s", "app_to_changelog").code == 0
    of_messages = "select * except (run_id, batch, loaded_at, landed_on) from app_to_changelog"
    rows = f"select to_json(struct(*)) as row from ({of_messages})"
    expected = landed(runner, rows)
    before, query = runnable(runner, "app_to_changelog")
    view = VIEW.format(view="app_messages", raw="value", more="", file=messages)
    printed = spark_sql(
        tmp_path,
        f"{before}{view};\ncreate temporary view made as\n{query};\nselect to_json(struct(*)) as row from made;\n",
    )
    assert sorted(line for line in printed if line.startswith('{"kind"')) == expected
    assert len(expected) > 10


MODEL = """-- rows; of it's
select
  changed_columns(map('a', 'x;', 'b', `c d`), map('a', 'x;', 'b', '3'), null) as d,
  columns_of(map('a', '1'), null, array('a')) as e,
  own('x') as f
from (select '2' as `c d`)"""


@pytest.mark.soak
def test_spark_sql_makes_the_rows_of_a_model_that_calls_functions(project, runner, tmp_path: Path) -> None:
    own = "create function own(a string comment 'it\\'s; -- a') returns string comment 'c;' return concat(a, ';');"
    project(
        {
            "models/m.sql": MODEL,
            "macros/functions/own.sql": own,
        }
    )
    before, query = runnable(runner, "m")
    printed = spark_sql(tmp_path, before + query)
    assert printed[-1] == '["b"]\t{"a":"1"}\tx;'
    assert printed[: len(printed) - 1] == [line for line in printed if line.startswith("spark.sql.")]
    # What functions.sql has, a session has after it was run.
    assert runner("compile", "-s", "m").code == 0
    functions = (tmp_path / "target/compiled/shop/functions.sql").read_text()
    assert spark_sql(tmp_path, f"{functions}\n{query}") == printed[-1:]


IN_PYTHON = re.compile(r"^--   ((?:from|register).*)$", re.MULTILINE)
NOTEBOOK = """
import json, pathlib, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
texts = json.loads(pathlib.Path("texts.json").read_text())
exec(texts["python"])
for statement in texts["statements"]:
    spark.sql(statement)
spark.sql(texts["query"]).createOrReplaceTempView("made")
for (row,) in spark.sql(texts["rows"]).collect():
    print("row", row)
"""


def in_pyspark(folder: Path, texts: dict[str, object]) -> list[str]:
    """The rows that a session of pyspark makes, in a process of its own that has this project installed."""
    (folder / "texts.json").write_text(json.dumps(texts))
    ran = subprocess.run(
        [sys.executable, "-c", NOTEBOOK],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return sorted(line.removeprefix("row ") for line in ran.stdout.splitlines() if line.startswith("row "))


@pytest.mark.soak
def test_pyspark_makes_the_rows_of_a_source_in_avro(project, runner, tmp_path: Path) -> None:
    lines = [base64.b64encode(encoded(SCHEMA, record(number))) for number in range(5)]
    folder = project(
        {
            "project.yml": PROJECT.format(format="oceanbase_avro", files="in/*"),
            "in/1.base64": b"\n".join(lines),
        }
    )
    assert runner("run", "-s", "app_to_changelog").code == 0
    rows = (
        f"select to_json(struct(*)) as row from (select seq.position, * except ({NOT_OF_THE_MESSAGE}) "
        "from app_to_changelog)"
    )
    expected = landed(runner, rows)
    before, query = runnable(runner, "app_to_changelog")
    more = "string(null) as own_schema, string(null) as damage,"
    view = VIEW.format(view="app_messages", raw="unbase64(value)", more=more, file=folder / "in/1.base64")
    python = IN_PYTHON.findall(before)
    *statements, comment = before.split(";\n")
    assert len(python) == 2
    made = in_pyspark(
        folder,
        {
            "python": "\n".join(python),
            "statements": [view, *statements],
            "query": comment + query,
            "rows": rows.replace("app_to_changelog", "made").replace(", run_id, batch, loaded_at, landed_on", ""),
        },
    )
    assert made == expected
    assert len(expected) >= 5
