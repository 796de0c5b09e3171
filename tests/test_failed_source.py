"""One source that fails stops only what reads it by name: views of all sources and what reads them go on with a warning
that says what is missing, and other sources' models are built.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.small_format import SMALL, message
from tests.spark_fixtures import rows

pytestmark = pytest.mark.usefixtures("spark", "interpreted")

PROJECT = "sources: [{name: bad, format: small, files: bad/*}, {name: good, format: small, files: good/*}]\n"
MODELS = {
    "counted": "select source, count(*) as n from {{ ref('changelog') }} group by source",
    "only_bad": "select count(*) as n from {{ ref('bad_to_changelog') }}",
    "only_good": "select count(*) as n from {{ ref('good_to_changelog') }}",
}
UNIONS = ("changelog", "control_events", "ddl_events", "dead_letters", "freshness", "freshness_by_table")
CUT = gzip.compress(b"{}" * 5_000)[:-10]


def results(folder: Path) -> dict[str, dict[str, Any]]:
    found = json.loads((folder / "target/run_results.json").read_text())["results"]
    return {result["unique_id"].rpartition(".")[2]: result for result in found}


def counted(capsys: pytest.CaptureFixture[str]) -> dict[str, int]:
    return {row["source"]: row["n"] for row in rows(capsys, "select source, n from {{ ref('counted') }}")}


def statuses(folder: Path) -> dict[str, set[str]]:
    """Status -> the nodes that have it."""
    found: dict[str, set[str]] = {}
    for name, result in results(folder).items():
        found.setdefault(result["status"], set()).add(name)
    return found


def test_one_source_fails_and_the_others_go_on(
    project: Callable[..., Path], runner: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    tables = {f"models/{name}.sql": f"{{{{ config(materialized='table') }}}} {sql}\n" for name, sql in MODELS.items()}
    folder = project(
        {
            "project.yml": PROJECT,
            "formats/small.yml": SMALL,
            **tables,
            "bad/1.jsonl": message(1),
            "good/1.jsonl": message(1),
        }
    )
    assert runner("run").code == 0

    # It cannot land: what landed earlier stays in the views.
    (folder / "bad/2.jsonl.gz").write_bytes(CUT)
    (folder / "good/2.jsonl").write_text(message(2))
    ran = runner("build")
    assert ran.code == 1, ran.err
    found = statuses(folder)
    assert found["error"] == {"bad_to_changelog"} and found["skipped"] == {"only_bad", "conserved_bad"}
    assert found["warn"] == {*UNIONS, "counted"}
    note = 'without the rows of "bad_to_changelog" that did not land: it failed'
    assert {results(folder)[name]["message"] for name in found["warn"]} == {note}
    assert "WARN table model counted [2 rows in" in ran.err and note in ran.err
    assert counted(capsys) == {"bad": 1, "good": 2}
    assert rows(capsys, "select n from {{ ref('only_good') }}") == [{"n": 2}]

    # Its table is gone: the views go on without its rows, and what reads it by name does not take it for empty.
    shutil.rmtree(folder / "warehouse/bad_to_changelog")
    (folder / "good/3.jsonl").write_text(message(3))
    ran = runner("run", "--threads", "2")
    assert ran.code == 1, ran.err
    found = statuses(folder)
    assert found["error"] == {"bad_to_changelog"} and found["skipped"] == {"only_bad"}
    assert found["warn"] == {*UNIONS, "counted"}
    for name in found["warn"]:
        said = results(folder)[name]["message"]
        assert 'without any row of "bad_to_changelog"' in said and "--full-refresh" in said, said
    assert counted(capsys) == {"good": 3}
    ran = runner("run", "-s", "only_bad,resource_type:model only_good counted")
    assert ran.code == 1 and statuses(folder) == {"error": {"only_bad"}, "success": {"only_good"}, "warn": {"counted"}}
    ran = runner("show", "-s", "changelog", "--output", "json")
    assert ran.code == 0 and len(ran.out.splitlines()) == 3
    assert ran.err.startswith("warning[source-unreadable]: without any row of"), ran.err

    (folder / "bad/2.jsonl.gz").unlink()
    assert runner("build", "--full-refresh").code == 0
    assert counted(capsys) == {"bad": 1, "good": 3}
