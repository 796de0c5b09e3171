"""A part of a project: what failed runs again, models are built of nothing, tables of another run are read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.small_format import SMALL, message

pytestmark = pytest.mark.usefixtures("spark", "interpreted")

PROJECT = """
name: shop
targets: {local: {path: warehouse}, dev: {path: dev}}
sources: [{name: orders, format: small, files: in/*}]
"""
FRAGILE = (
    "{{ config(materialized='table') }} select if(n > 0, raise_error('too many'), n) as n from {{ ref('counted') }}"
)
FILES = {
    "project.yml": PROJECT,
    "formats/small.yml": SMALL,
    "in/1.jsonl": f"{message(1)}\n{message(2)}\n",
    "models/counted.sql": "{{ config(materialized='table') }} select count(*) as n from {{ ref('changelog') }}",
    "models/sent.sql": "{{ config(materialized='table') }} select count(*) as n from {{ source('orders') }}",
    "models/grown.sql": """
{{ config(materialized='incremental') }} select after['id'] as id from {{ new_rows('changelog') }}
""",
    "models/fragile.sql": FRAGILE,
    "models/seen.sql": "select * from {{ ref('fragile') }}",
    "models/above.sql": "{{ config(materialized='table') }} select n from {{ ref('seen') }}",
    "models/above.yml": "models: [{name: above, columns: [{name: n, data_tests: [not_null]}]}]",
}


def statuses(root: Path) -> dict[str, str]:
    found = json.loads((root / "target/run_results.json").read_text())["results"]
    return {one["unique_id"].rpartition(".")[2]: one["status"] for one in found}


def values(runner: Callable[..., Any], model: str, *words: str) -> list[Any]:
    ran = runner("show", "-s", model, "--output", "json", *words)
    assert ran.code == 0, ran.err
    return sorted(value for line in ran.out.splitlines() for value in json.loads(line).values())


def test_what_failed_runs_again_until_it_is_mended(project: Callable[..., Path], runner: Callable[..., Any]) -> None:
    files = {**FILES, "models/counted.sql": "select 2 as n"}
    root = project(files)
    again = {"fragile": "error", "seen": "skipped", "above": "skipped", "not_null_above_n": "skipped"}
    assert runner("build", "-s", "+above", "sent", "--threads", "2").code == 1
    assert statuses(root) == {"counted": "success", "sent": "success", **again}
    how = json.loads((root / "target/run_results.json").read_text())["args"]
    assert (how["which"], how["select"], how["threads"]) == ("build", ["+above", "sent"], 2)
    assert runner("retry").code == 1
    assert statuses(root) == again
    project({**files, "models/fragile.sql": FRAGILE.replace("n > 0", "n > 2")})
    ran = runner("retry")
    assert (ran.code, '"build" again, of 4 nodes' in ran.err) == (0, True), ran.err
    assert statuses(root) == {
        "fragile": "success", "seen": "success", "above": "success", "not_null_above_n": "pass",
    }  # fmt: skip
    assert values(runner, "above") == [2]
    assert "nothing to do" in runner("retry").err


def test_sources_with_new_messages(project: Callable[..., Path], runner: Callable[..., Any]) -> None:
    two = PROJECT.replace("]\n", ", {name: items, format: small, files: items/*}]\n")
    root = project({**FILES, "project.yml": two, "items/1.jsonl": message(1)})

    def fresher(*words: str) -> list[str]:
        ran = runner("ls", "-s", "source_status:fresher", *words)
        assert ran.code == 0, ran.err
        return list(ran.out.split())

    assert runner("ls", "-s", "source_status:fresher").code == 2
    assert runner("run", "-s", "orders_to_changelog").code == 0
    assert fresher() == ["source:items"]
    assert runner("run", "-s", "items_to_changelog").code == 0
    assert fresher() == []
    shutil.copytree(root / "target", root / "before")
    for name, text in {"_2.jsonl": message(2), "3.jsonl": "", "4.jsonl": message(4)}.items():
        assert fresher() == []
        (root / "items" / name).write_text(text)
    assert fresher() == fresher("--state", "before") == ["source:items"]
    assert runner("run", "-s", "source_status:fresher+1").code == 0
    assert set(statuses(root)) == {"items_to_changelog"}
    assert (fresher(), fresher("--state", "before")) == ([], ["source:items"])


def test_models_of_nothing_count_nothing_as_read(project: Callable[..., Path], runner: Callable[..., Any]) -> None:
    root = project(FILES)
    assert runner("build", "--empty").code == 0
    assert set(statuses(root)) == {
        *("changelog", "control_events", "ddl_events", "dead_letters", "freshness", "freshness_by_table"),
        *("counted", "sent", "grown", "fragile", "seen", "above", "not_null_above_n"),
    }
    assert not (root / "warehouse/orders_to_changelog").exists()
    assert [values(runner, model) for model in ("counted", "sent", "grown", "above")] == [[0], [0], [], []]
    assert runner("run", "-s", "orders_to_changelog", "grown").code == 0
    assert values(runner, "grown") == ["1", "2"]
    (root / "in/2.jsonl").write_text(message(3))
    assert runner("run", "-s", "orders_to_changelog").code == 0
    assert runner("run", "--empty", "-s", "grown").code == 0
    assert values(runner, "grown") == ["1", "2"]
    assert runner("run", "-s", "grown").code == 0
    assert values(runner, "grown") == ["1", "2", "3"]


def test_what_is_not_here_is_read_elsewhere(project: Callable[..., Path], runner: Callable[..., Any]) -> None:
    root = project({**FILES, "models/fragile.sql": FRAGILE.replace("n > 0", "n > 9")})
    assert runner("run", "--exclude", "sent", "grown").code == 0
    shutil.copytree(root / "target", root / "before")
    project({**FILES, "models/fragile.sql": FRAGILE.replace("n > 0", "n > 8").replace(", n)", ", n * 10)")})
    changed = ("run", "-t", "dev", "-s", "state:modified+ grown", "--state", "before")
    assert runner(*changed).code == 1
    assert not (root / "dev/above").exists()
    ran = runner(*changed, "--defer")
    assert (ran.code, f'is read at "{root}/warehouse"' in ran.err) == (0, True), ran.err
    assert statuses(root) == {"fragile": "success", "seen": "success", "above": "success", "grown": "success"}
    assert {path.name for path in (root / "dev").iterdir() if path.name[0] != "_"} == {"fragile", "above", "grown"}
    assert values(runner, "above", "-t", "dev") == [20]
    assert runner("show", "-s", "counted", "-t", "dev").code == 1
    assert values(runner, "counted", "-t", "dev", "--defer", "--state", "before") == [2]
    assert values(runner, "grown", "-t", "dev") == ["1", "2"]
    assert values(runner, "above") == [2]
    # With the changelog of the other target, it goes on where it was.
    (root / "in/2.jsonl").write_text(message(3))
    assert runner("run", "-s", "orders_to_changelog").code == 0
    assert runner("run", "-t", "dev", "-s", "grown", "--defer", "--state", "before").code == 0
    assert values(runner, "grown", "-t", "dev") == ["1", "2", "3"]
