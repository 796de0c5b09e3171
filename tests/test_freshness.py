"""Tables that the runner does not make are read and tested; sources that are too old are errors."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from tests.landed import Project, files_of
from tests.pages import ROOT

PROJECT = f"""
name: ages
sources:
  - name: shop
    format: canal
    files: {ROOT}/formats/cases/canal/shop.messages.jsonl
    freshness: {{warn_after: {{count: 1, period: day}}}}
"""


@pytest.mark.usefixtures("spark", "interpreted")
def test_sources_that_are_too_old_are_errors(tmp_path: Path) -> None:
    now = datetime.now(timezone.utc)
    times = [(now - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ") for minutes in (200, 5)]
    people = f"id,at\n1,{times[0]}\n2,{times[1]}\n"
    project = Project(tmp_path, {**files_of("ages"), "project.yml": PROJECT, "seeds/people.csv": people})
    project.ok("seed")
    assert "PASS test unique_crm_new_id" in project.ok("build", "-s", "shop_to_changelog source:crm.new+")
    assert project.rows("select ids from {{ ref('ids') }}") == [{"ids": 3}]
    ran = project.run("source", "freshness")
    assert ran.code == 1 and "Done. PASS=2 WARN=2 ERROR=3 SKIP=0 TOTAL=7" in ran.err, ran.err
    results = json.loads((project / "target/sources.json").read_text())["results"]
    found = {one["unique_id"].removeprefix("source.ages."): one for one in results}
    assert {name: one["status"] for name, one in found.items()} == {
        "crm.new": "pass",
        "crm.old": "error",
        "crm.empty": "error",
        "crm.inherits": "error",
        "crm.between": "warn",
        "crm.any_age": "pass",
        "shop": "warn",
    }
    assert found["crm.old"]["max_loaded_at"] == times[0]
    assert 200 * 60 <= found["crm.old"]["max_loaded_at_time_ago_in_s"] < 240 * 60
    assert found["crm.empty"]["max_loaded_at"] == "0001-01-01T00:00:00+00:00"
    # The last message of the file was sent at this time.
    assert found["shop"]["max_loaded_at"] == "2024-03-15T02:12:00.31Z"
    project.ok("source", "freshness", "-s", "source:crm.new", "source:crm.between")
    missing = "sources: [{name: gone, schema: raw, loaded_at_field: at, tables: [{name: a, identifier: b}, "
    missing += "{name: c, external: {location: nowhere, using: delta}}, {name: d, external: {location: nowhere}}]}]"
    (project / "models/gone.yml").write_text(
        missing.replace("location: nowhere}", "location: nowhere, using: parquet}")
    )
    ran = project.run("source", "freshness", "-s", "source:gone.*")
    assert ran.code == 1 and "Done. PASS=0 WARN=0 ERROR=3" in ran.err, ran.err
    what_to_do = 'run what fills it, or correct "database", "schema" and "identifier" of gone.a, at models/gone.yml:1:'
    assert f'there is no table "raw.b"\n      {what_to_do}{missing.index("{name: a") + 1}\n' in ran.err, ran.err
    assert ran.err.count(f'there is no table in "{project.folder}/nowhere"\n      run what fills it') == 2, ran.err
    assert 'correct "location" of gone.c, at models/gone.yml:1:' in ran.err and "NOT_FOUND" not in ran.err


def test_tables_are_called_by_their_names(project, runner) -> None:
    files = {
        "models/s.yml": "sources: [{name: crm, tables: [{name: a}, {name: b, identifier: 'B 1'}]}]",
        "models/m.sql": "select * from {{ source('crm', 'a') }} join {{ source('crm', 'b') }} using (id)",
    }
    project(files)
    assert runner("compile", "-q", "-s", "m").out == "select * from `crm`.`a` join `crm`.`B 1` using (id)\n"
    assert runner("ls", "-s", "source:crm.*+", "--resource-type", "model").out == "m\n"
    project({"models/s.yml": files["models/s.yml"].replace("crm,", "crm, database: lake, schema: raw,")})
    assert "`lake`.`raw`.`B 1`" in runner("compile", "-q", "-s", "m").out
