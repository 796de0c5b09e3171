"""Messages whose rows or exponents are many, beside good ones: what they take follows their size."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.pages import ROOT

# The least that Spark starts with; copies of a whole message for each of its rows would be gigabytes.
PROJECT = """
targets: {local: {path: warehouse, spark: {spark.master: "local[1]", spark.driver.memory: 512m}}}
sources: [{name: app, format: canal, files: in.jsonl}]
"""
HEADER = {"type": "INSERT", "database": "d", "table": "t", "es": 1700000000000, "pkNames": ["id"]}
ROWS = 3_000
# Values, their type, how many rows; exponents written out would be 300 MB.
SENT = [("1.5000", "varchar(20)", ROWS), ("1e9999", "decimal(65,0)", ROWS), ("good", "varchar(20)", 1)]


def message(value: str, kind: str, rows: int, columns: int = 10) -> str:
    names = [f"c{number}" for number in range(columns)]
    data = [{"id": str(number), **dict.fromkeys(names, value)} for number in range(rows)]
    return json.dumps({**HEADER, "mysqlType": {"id": "int", **dict.fromkeys(names, kind)}, "data": data})


@pytest.mark.engines
def test_messages_of_many_rows_land_in_little_memory(project: Callable[..., Path]) -> None:
    sent = [message(*one) for one in SENT]
    folder = project({"project.yml": PROJECT, "in.jsonl": "\n".join(sent)})
    command = [sys.executable, "-m", "runner.cli", "--project-dir", str(folder), "run", "-s", "app_to_changelog"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    rows = pyarrow.parquet.read_table(folder / "warehouse/app_to_changelog", columns=["seq", "after"]).to_pylist()
    landed = sorted((row["seq"]["arrival"][-1], row["seq"]["row"], *map(tuple, row["after"][:2])) for row in rows)
    assert [row[1:] for row in landed] == [
        (number, ("id", str(number)), ("c0", value)) for value, _, rows in SENT for number in range(rows)
    ]
