"""The same project on a standalone cluster, through Spark Connect and here: the same rows. The blocks of
docs/production.md are what is run.
"""

from __future__ import annotations

import base64
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from runner.cli import main
from runner.storage.iceberg import Iceberg
from tests.avro_cases import encoded
from tests.engines import ROOT, ConnectServer, StandaloneCluster, free_port, jars, processes_after
from tests.pages import blocks, run_block
from tests.test_avro_sources import SCHEMA, container, record

pytestmark = pytest.mark.engines
PAGE = blocks(ROOT / "docs/production.md")
# Formats whose SQL calls Python: documents of a shell, bytes as lists of numbers, records.
SOURCES = """
name: production
sources:
  - {name: documents, format: drs_mongodb, files: "in/documents/*"}
  - {name: byte_lists, format: drs_json, zone: Asia/Shanghai, files: "in/byte_lists/*"}
  - {name: containers, format: oceanbase_avro, files: "in/containers/*"}
  - {name: lines, format: oceanbase_avro, files: "in/lines/*"}
"""
LANDED = [f"{source}_to_changelog" for source in ("documents", "byte_lists", "containers", "lines")]
TABLES = (*LANDED, "by_operation", "newest")
OF_THE_RUN = ["run_id", "batch", "loaded_at", "landed_on"]
MODELS = {
    "by_operation.sql": (
        "{{ config(materialized='table') }}\n"
        "select source, op, count(*) as changes, sum(size(changed_columns(before, after, types))) as columns,\n"
        "  max(bytes_of(map('v', '[1, 2]'))) as bytes\n"
        "from {{ ref('changelog') }} group by source, op\n"
    ),
    "newest.sql": (
        "{{ config(materialized='incremental', unique_key='key_text') }}\n"
        "select key_text, max(event_time) as at from {{ ref('changelog') }} where key_text is not null group by 1\n"
    ),
}
# A function in SQL that calls one in Python.
FUNCTION = """
create function bytes_of(image map<string,string> comment 'an image') returns string comment 'Its column v.'
return java_bytes(columns_of(image, null, array('v')))['v'];
"""
LOCAL = "  local: {path: local}\n"
RUNNER = [sys.executable, "-m", "runner.cli"]


def cases(name: str, *stems: str) -> bytes:
    return b"".join((ROOT / "formats/cases" / name / f"{stem}.messages.jsonl").read_bytes() for stem in stems)


def write_project(folder: Path) -> None:
    records = [record(number) for number in range(30)]
    files = {
        "in/documents/1.jsonl": cases("drs_mongodb", "sample_insert", "patches"),
        "in/byte_lists/1.jsonl": cases("drs_json", "binary"),
        "in/containers/1.avro": container(records[:20]),
        "in/lines/1.base64": b"\n".join(base64.b64encode(encoded(SCHEMA, one)) for one in records[20:]),
        "project.yml": (SOURCES + text_of("project.yml") + LOCAL).encode(),
        "macros/functions/bytes.sql": FUNCTION.encode(),
        **{f"models/{name}": sql.encode() for name, sql in MODELS.items()},
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def text_of(name: str) -> str:
    return next(block.text for block in PAGE if block.name == name)


def block_with(command: str) -> Any:
    return next(block for block in PAGE if block.kind == "sh" and command in block.text)


def rows(folder: Path) -> list[str]:
    """The rows of a table without what differs between runs, in one order. All files are committed: no run was broken
    off.
    """
    table = pyarrow.parquet.read_table(folder, partitioning=None)
    return sorted(
        map(repr, table.drop_columns([name for name in OF_THE_RUN if name in table.column_names]).to_pylist())
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("production")
    write_project(made)
    return made


def environment(folder: Path, **given: str) -> dict[str, str]:
    return {
        "SHARED": str(folder),
        "WORKER_PYTHON": sys.executable,
        "CLUSTER_MASTER": "spark://nowhere:1",
        "CONNECT_ADDRESS": "sc://nowhere:1",
        **given,
    }


@pytest.fixture(scope="module")
def landed_here(folder: Path, spark: object) -> dict[str, list[str]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, value in environment(folder).items():
            patch.setenv(name, value)
        assert main(["run", "-t", "local"]) == 0
    return {table: rows(folder / "local" / table) for table in TABLES}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    folder = tmp_path_factory.mktemp("connect")
    with ConnectServer(folder) as started:
        yield started
    assert processes_after(folder) == []


@pytest.mark.soak
def test_a_cluster_lands_the_same(folder: Path, landed_here: dict[str, list[str]]) -> None:
    with StandaloneCluster(folder / "engine") as cluster:
        run_block(block_with("run -t cluster"), folder, **environment(folder, CLUSTER_MASTER=cluster.master))
    assert processes_after(folder / "engine") == []
    assert all(landed_here.values())
    assert {table: rows(folder / "cluster" / table) for table in TABLES} == landed_here


def test_a_server_lands_the_same(folder: Path, landed_here: dict[str, list[str]], server: ConnectServer) -> None:
    given = environment(folder, CONNECT_ADDRESS=server.remote)
    run_block(block_with("run -t connect"), folder, **given)
    assert {table: rows(folder / "connect" / table) for table in TABLES} == landed_here
    with (folder / "in/lines/2.base64").open("wb") as more:
        more.write(base64.b64encode(encoded(SCHEMA, record(99))))
    (folder / "models/broken.sql").write_text("select\n  nothing_of_this_name\nfrom {{ ref('changelog') }}\n")
    rows_of = "given: [{input: ref('changelog'), rows: [{source: a, op: insert}]}], expect: {rows: [{changes: 1}]}"
    (folder / "models/broken.yml").write_text(f"unit_tests: [{{name: sums, model: by_operation, {rows_of}}}]")
    ran = command(folder, "build", given)
    assert ran.returncode == 1 and "ERROR=1" in ran.stderr
    assert re.search(r"PASS unit.test", ran.stderr)
    assert "broken.sql:2:3" in ran.stderr and "nothing_of_this_name" in ran.stderr
    (folder / "models/broken.sql").unlink()
    query = "select sum(changes) as n from {{ ref('by_operation') }} where source = 'lines'"
    assert command(folder, "show", given, "--inline", query, "--output", "json").stdout == '{"n":11}\n'


def command(folder: Path, word: str, given: dict[str, str], *more: str) -> subprocess.CompletedProcess[str]:
    words = [*RUNNER, word, "-t", "connect", *more]
    return subprocess.run(words, cwd=folder, env=environment_of(given), capture_output=True, text=True)


def environment_of(given: dict[str, str]) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **given}


def wait_until(true: Callable[[], object], seconds: float = 180) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def commits(folder: Path) -> int:
    return len(list((folder / "connect/_checkpoints/lines_to_changelog/commits").glob("[0-9]*")))


@pytest.mark.soak
def test_what_a_killed_client_has_left_is_ended(tmp_path: Path, server: ConnectServer) -> None:
    """A stream goes on in the server: a full refresh beside it would make a table that two streams write."""
    write_project(tmp_path)
    given = environment(tmp_path, CONNECT_ADDRESS=server.remote)
    line = ["-s", "lines_to_changelog"]
    words = [*RUNNER, "run", "--continuous", "--trigger", "500ms", "-t", "connect", *line]
    with subprocess.Popen(words, cwd=tmp_path, env=environment_of(given), stderr=subprocess.DEVNULL) as client:
        try:
            wait_until(lambda: commits(tmp_path) == 1)
        finally:
            client.send_signal(signal.SIGKILL)
    (tmp_path / "in/lines/2.base64").write_bytes(base64.b64encode(encoded(SCHEMA, record(50))))
    wait_until(lambda: commits(tmp_path) == 2)  # it does go on
    ran = command(tmp_path, "run", given, "--full-refresh", *line)
    assert ran.returncode == 0, ran.stderr
    (tmp_path / "in/lines/3.base64").write_bytes(base64.b64encode(encoded(SCHEMA, record(51))))
    time.sleep(2)
    assert len(rows(tmp_path / "connect/lines_to_changelog")) == 11
    assert command(tmp_path, "run", given, *line).returncode == 0
    assert len(rows(tmp_path / "connect/lines_to_changelog")) == 12


def test_a_server_that_is_not_there_is_said_at_once(tmp_path: Path) -> None:
    write_project(tmp_path)
    port = free_port()
    began = time.monotonic()
    ran = command(tmp_path, "run", environment(tmp_path, CONNECT_ADDRESS=f"sc://127.0.0.1:{port}/;token=secret"))
    assert (ran.returncode, time.monotonic() - began < 20) == (2, True)
    assert f'error[target-remote]: no Spark Connect server answers at "127.0.0.1:{port}"' in ran.stderr
    assert "secret" not in ran.stderr


def test_a_server_that_cannot_make_functions_says_why(tmp_path: Path) -> None:
    write_project(tmp_path)
    settings = {"spark.sql.extensions": Iceberg.extension}
    with ConnectServer(tmp_path / "engine", jars("spark"), settings) as server:
        given = environment(tmp_path, CONNECT_ADDRESS=server.remote)
        ran = command(tmp_path, "show", given, "--inline", "select changed_columns(map(), map(), null)")
    assert ran.returncode == 1
    assert "the server cannot make SQL functions: one of its spark.sql.extensions does not read them" in ran.stderr
