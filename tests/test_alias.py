"""A model or a seed whose table has another name: the node keeps its own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.site.columns import columns_of_models
from tests.small_format import SMALL, message

FILES = {
    "project.yml": """
name: shop
targets:
  local: {path: warehouse, catalog: {schema: alias_local}}
  dev: {path: dev}
sources: [{name: orders, format: small, files: in/*}]
seeds: {wide: {+alias: lands}}
""",
    "formats/small.yml": SMALL,
    "in/1.jsonl": f"{message(1)}\n{message(2)}\n",
    "seeds/wide/countries.csv": "id,name\n1,Chile\n2,Peru\n3,Cuba\n",
    "models/staged.sql": "{{ config(alias='v_staged') }} select id, name from {{ ref('countries') }}",
    # Its own name is the alias of another, which names itself by it.
    "models/lands.sql": "{{ config(alias='staged') }} select id as land, name from {{ ref('staged') }}",
    "models/grown.sql": """
{{ config(materialized='incremental', alias='seen_orders', post_hook='select count(*) from {{ this }}') }}
select after['id'] as id from {{ new_rows('shifted') }}
{% if is_incremental() %} where not exists (select 1 from {{ this }} as own where own.id = after['id']) {% endif %}
""",
    "models/shifted.sql": "{{ config(alias='moved') }} select * from {{ ref('changelog') }}",
    "models/counted.sql": """
{{ config(materialized='table', alias='numbers') }} select count(*) as n, max(name) as last from {{ ref('lands') }}
""",
    "models/all.yml": """
models:
  - name: staged
    data_tests: [{row_count: {at_least: 3, at_most: 3}}]
    columns: [{name: id, data_tests: [not_null, {relationships: {to: ref('countries'), field: id}}]}]
  - name: grown
    columns: [{name: id, data_tests: [unique]}]
unit_tests:
  - name: named
    model: staged
    given: [{input: ref('countries'), rows: [{id: 7, name: Togo}]}]
    expect: {rows: [{id: 7, name: Togo}]}
  - name: growing
    model: grown
    given: [{input: ref('shifted'), rows: [{after: {id: 7}}]}]
    expect: {rows: [{id: 7}]}
""",
}


def values(runner: Callable[..., Any], *words: str) -> list[Any]:
    ran = runner("show", *words, "--output", "json")
    assert ran.code == 0, ran.err
    return sorted(tuple(json.loads(line).values()) for line in ran.out.splitlines())


@pytest.mark.usefixtures("interpreted")
def test_tables_are_called_by_it(project: Callable[..., Path], runner: Callable[..., Any], spark) -> None:
    root = project(FILES)
    built = runner("build")
    assert built.code == 0, built.err
    assert "PASS unit test named" in built.err and "PASS test relationships_staged_id" in built.err
    tables = {"orders_to_changelog", "lands", "seen_orders", "numbers"}
    assert {path.name for path in (root / "warehouse").iterdir() if path.name[0] != "_"} == tables
    assert {path.name for path in (root / "warehouse/_checkpoints").iterdir()} == tables - {"numbers"}
    assert {path.stem for path in (root / "warehouse/_locks").iterdir()} == tables
    published = spark.session.sql("show tables in alias_local").collect()
    assert {"v_staged", "staged", "seen_orders", "numbers", "moved"} < {row["tableName"] for row in published}
    assert spark.rows("select n, last from alias_local.numbers")[1] == [{"n": 3, "last": "Peru"}]

    assert values(runner, "-s", "counted") == [(3, "Peru")]
    assert values(runner, "-s", "lands", "--limit", "1") == [(1, "Chile")]
    assert values(runner, "--inline", "select n from numbers") == [(3,)]
    assert values(runner, "--inline", "select land from {{ ref('lands') }} where land > 2") == [(3,)]
    (root / "in/2.jsonl").write_text(message(3))
    again = runner("build")
    assert again.code == 0 and "unchanged since it was loaded" in again.err, again.err
    assert values(runner, "-s", "grown") == [("1",), ("2",), ("3",)]
    assert "runner seed -s countries" in runner("show", "-s", "counted", "-t", "dev").err

    shutil.copytree(root / "target", root / "before")
    deferred = runner("build", "-t", "dev", "-s", "counted", "--defer", "--state", "before")
    assert deferred.code == 0, deferred.err
    assert {path.name for path in (root / "dev").iterdir() if path.name[0] != "_"} == {"numbers"}
    assert values(runner, "-s", "counted", "-t", "dev", "--defer", "--state", "before") == [(3, "Peru")]
    maintained = runner("maintain", "-s", "counted", "grown")
    assert maintained.code == 0 and "not built yet" not in maintained.err, maintained.err
    rebuilt = runner("run", "-s", "grown", "--full-refresh")
    assert rebuilt.code == 0 and not list((root / "warehouse/_refreshes").iterdir()), rebuilt.err


def test_the_node_keeps_its_name(project: Callable[..., Path], runner: Callable[..., Any]) -> None:
    root = project(FILES)
    assert runner("compile").code == 0
    node = json.loads((root / "target/manifest.json").read_text())["nodes"]["model.shop.counted"]
    assert node["config"]["alias"] == "numbers" and node["depends_on"]["nodes"] == ["model.shop.lands"]
    assert runner("ls", "-s", "config.alias:numbers", "config.alias:lands").out.split() == ["countries", "counted"]
    assert runner("ls", "-s", "numbers").code == 2
    assert "from `staged`" in runner("compile", "-q", "-s", "counted").out
    assert "from `seen_orders` as own" in (root / "target/compiled/shop/models/grown.increment.sql").read_text()
    runnable = runner("compile", "-s", "grown", "--runnable").out
    assert "`grown__new_rows_of__shifted`" in runnable and "from `moved`" in runnable

    shutil.copytree(root / "target", root / "before")
    project({**FILES, "models/shifted.sql": FILES["models/shifted.sql"].replace("moved", "removed")})
    changed = runner("ls", "-s", "state:modified.configs", "--state", "before")
    assert changed.out.split() == ["shifted"], changed.err


def test_columns_come_from_the_nodes(project: Callable[..., Path]) -> None:
    from runner.commands.arguments import ProjectArguments
    from runner.commands.job import Job
    from runner.commands.workspace import Workspace

    project(FILES)
    workspace = Workspace(ProjectArguments())
    columns = columns_of_models(
        workspace.graph, Job.of(workspace, "docs", list(workspace.graph.nodes.values())).compiled
    )
    assert columns["lands"]["from"] == {"land": [["staged", "id"]], "name": [["staged", "name"]]}
    assert columns["staged"]["from"]["id"] == [["countries", "id"]]


@pytest.mark.parametrize(
    ("model", "error"),
    [
        ("{{ config(alias='lands') }} select 1 as a", 'error[name-taken]: the name "lands" is taken'),
        ("{{ config(alias='changelog') }} select 1 as a", 'error[name-taken]: the name "changelog" is taken'),
        ("{{ config(alias='a/b') }} select 1 as a", 'error[setting-value]: "a/b" cannot be an alias'),
        ("select 1 as a from {{ ref('numbers') }}", 'error[ref-unknown]: there is no model "numbers"'),
    ],
)
def test_mistakes(model: str, error: str, project: Callable[..., Path], runner: Callable[..., Any]) -> None:
    project({**FILES, "models/more.sql": model})
    ran = runner("check")
    assert ran.code == 2 and error in ran.err
    assert "models/more.sql:1" in ran.err


def test_two_nodes_of_one_name(project: Callable[..., Path], runner: Callable[..., Any]) -> None:
    """Tables of their own do not make two nodes of one name two."""
    project({**FILES, "models/countries.sql": "{{ config(alias='others') }} select 1 as a"})
    ran = runner("check")
    assert ran.code == 2 and 'error[name-taken]: the name "countries" is taken' in ran.err
    assert "hint: by seed seeds/wide/countries.csv" in ran.err
    assert 'the name "others"' not in ran.err
