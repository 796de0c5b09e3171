"""One source that fails stops only what reads it by name: views of all sources and what reads them go on with a warning
that says what is missing, and other sources' models are built.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.landed import Project
from tests.small_format import SMALL, message

pytestmark = pytest.mark.usefixtures("spark", "interpreted")

PROJECT = "sources: [{name: bad, format: small, files: bad/*}, {name: good, format: small, files: good/*}]\n"
MODELS = {
    "counted": "select source, count(*) as n from {{ ref('changelog') }} group by source",
    "only_bad": "select count(*) as n from {{ ref('bad_to_changelog') }}",
    "only_good": "select count(*) as n from {{ ref('good_to_changelog') }}",
}
UNIONS = ("changelog", "control_events", "ddl_events", "dead_letters", "freshness", "freshness_by_table")
# Spark finds no files where a name has a colon.
UNREADABLE = "bad/2:3.jsonl"


def counted(project: Project) -> dict[str, int]:
    return {row["source"]: row["n"] for row in project.rows("select source, n from {{ ref('counted') }}")}


def nodes(project: Project, status: str) -> set[str]:
    return {name for name, found in project.statuses.items() if found == status}


def test_one_source_fails_and_the_others_go_on(tmp_path: Path) -> None:
    tables = {f"models/{name}.sql": f"{{{{ config(materialized='table') }}}} {sql}\n" for name, sql in MODELS.items()}
    files = {"project.yml": PROJECT, "formats/small.yml": SMALL, "bad/1.jsonl": message(1), "good/1.jsonl": message(1)}
    project = Project(tmp_path, {**tables, **files})
    project.ok("run")

    # It cannot land: what landed earlier stays in the views.
    project.write({UNREADABLE: message(2), "good/2.jsonl": message(2)})
    ran = project.run("build")
    assert ran.code == 1, ran.err
    assert nodes(project, "error") == {"bad_to_changelog"}
    assert nodes(project, "skipped") == {"only_bad", "conserved_bad"}
    assert nodes(project, "warn") == {*UNIONS, "counted"}
    note = 'without the rows of "bad_to_changelog" that did not land: it failed'
    assert {project.results[name]["message"] for name in (*UNIONS, "counted")} == {note}
    assert "WARN table model counted [2 rows in" in ran.err and note in ran.err
    assert counted(project) == {"bad": 1, "good": 2}
    assert project.rows("select n from {{ ref('only_good') }}") == [{"n": 2}]

    # Its table is gone: the views go on without its rows, and what reads it by name does not take it for empty.
    shutil.rmtree(project / "warehouse/bad_to_changelog")
    project.write({"good/3.jsonl": message(3)})
    ran = project.run("run", "--threads", "2")
    assert ran.code == 1, ran.err
    assert nodes(project, "error") == {"bad_to_changelog"} and nodes(project, "skipped") == {"only_bad"}
    assert nodes(project, "warn") == {*UNIONS, "counted"}
    for name in (*UNIONS, "counted"):
        said = project.results[name]["message"]
        assert 'without any row of "bad_to_changelog"' in said and "--full-refresh" in said, said
    assert counted(project) == {"good": 3}
    assert project.run("run", "-s", "only_bad,resource_type:model only_good counted").code == 1
    assert project.statuses == {"only_bad": "error", "only_good": "success", "counted": "warn"}
    ran = project.run("show", "-s", "changelog", "--output", "json")
    assert ran.code == 0 and len(ran.out.splitlines()) == 3
    assert ran.err.startswith("warning[source-unreadable]: without any row of"), ran.err

    (project / UNREADABLE).unlink()
    project.ok("build", "--full-refresh")
    assert counted(project) == {"bad": 1, "good": 3}
