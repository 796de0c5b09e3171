"""The views that a run makes of what a node reads (runner/run/views.py)."""

from __future__ import annotations

import json

import pytest

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
