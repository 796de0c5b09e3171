"""The views that a run makes of what a node reads (runner/run/views.py)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import pages
from tests.spark_fixtures import rows

pytestmark = pytest.mark.usefixtures("spark", "interpreted")

NEVER_BUILT = {
    "models/m.sql": "{{ config(materialized='table') }} select 1 as a, 2 as b",
    "models/m.yml": (
        "models:\n  - name: m\n    columns: [{name: a, data_tests: [not_null, unique]}, {name: b, data_tests: "
        "[not_null]}]\n"
    ),
}


def test_every_test_of_a_table_that_was_never_built_says_so(project, runner) -> None:
    folder = project(NEVER_BUILT)
    assert runner("test", "--data", "-s", "m", "--threads", "1").code == 1
    results = json.loads((folder / "target/run_results.json").read_text())["results"]
    assert len(results) == 3
    assert {(one["status"], one["message"]) for one in results} == {
        ("error", '"m" has not been built yet: runner run -s m')
    }


def named_by(case: dict[str, Any]) -> list[str]:
    """The tables that the statement of a case names, in its order."""
    if "tables" in case:
        return case["tables"]
    names = [name for one in case["does"] for name in ([one[1], one[3]] if one[0] == "rename_table" else [one[1]])]
    return list(dict.fromkeys(names))


def test_ddl_events_have_all_tables_that_a_statement_names(project, runner, capsys) -> None:
    cases = pages.table("ddl")
    told = {"isDdl": True, "type": "QUERY", "database": "db", "table": "of_message", "data": None}
    folder = project({"project.yml": "name: p\nsources: [{name: shop, format: canal, files: in/*}]"})
    (folder / "in").mkdir()
    lines = [json.dumps({**told, "es": n, "sql": case["sql"]}) for n, case in enumerate(cases)]
    (folder / "in/0.jsonl").write_text("\n".join(lines))
    assert runner("run", "-s", "ddl_events shop_to_changelog").code == 0
    found = rows(capsys, "select statement, tables from ddl_events order by unix_millis(event_time)")
    wanted = [(case["sql"], named_by(case)) for case in cases]
    assert [one for one in ((row["statement"], row["tables"]) for row in found) if one not in wanted] == []
    assert [row["statement"] for row in found] == [case["sql"] for case in cases]
