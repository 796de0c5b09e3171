"""A model or a seed whose table has another name: the node keeps its own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.compile.column_lineage import columns_of_models
from tests.landed import Project, files_of
from tests.small_format import SMALL, message

FILES = {**files_of("alias"), "formats/small.yml": SMALL, "in/1.jsonl": f"{message(1)}\n{message(2)}\n"}


@pytest.mark.usefixtures("interpreted")
def test_tables_are_called_by_it(tmp_path: Path, spark: Any) -> None:
    project = Project(tmp_path, FILES)
    said = project.ok("build")
    assert "PASS unit test named" in said and "PASS test relationships_staged_id" in said
    tables = {"orders_to_changelog", "lands", "seen_orders", "numbers"}
    assert project.tables("warehouse") == tables
    assert {path.name for path in (project / "warehouse/_checkpoints").iterdir()} == tables - {"numbers"}
    assert {path.stem for path in (project / "warehouse/_locks").iterdir()} == tables
    published = spark.session.sql("show tables in alias_local").collect()
    assert {"v_staged", "staged", "seen_orders", "numbers", "moved"} < {row["tableName"] for row in published}
    assert spark.rows("select n, last from alias_local.numbers")[1] == [{"n": 3, "last": "Peru"}]

    assert shown(project, "counted") == [{"n": 3, "last": "Peru"}]
    assert shown(project, "lands", "--limit", "1") == [{"land": 1, "name": "Chile"}]
    assert project.rows("select n, land from numbers, {{ ref('lands') }} where land > 2") == [{"n": 3, "land": 3}]
    project.write({"in/2.jsonl": message(3)})
    assert "unchanged since it was loaded" in project.ok("build")
    assert sorted(row["id"] for row in shown(project, "grown")) == ["1", "2", "3"]
    assert "runner seed -s countries" in project.run("show", "-s", "counted", "-t", "dev").err

    shutil.copytree(project / "target", project / "before")
    elsewhere = ("-t", "dev", "--defer", "--state", "before")
    project.ok("build", "-s", "counted", *elsewhere)
    assert project.tables("dev") == {"numbers"}
    assert shown(project, "counted", *elsewhere) == [{"n": 3, "last": "Peru"}]
    assert "not built yet" not in project.ok("maintain", "-s", "counted", "grown")
    project.ok("run", "-s", "grown", "--full-refresh")
    assert not list((project / "warehouse/_refreshes").iterdir())


def shown(project: Project, model: str, *words: str) -> list[dict[str, Any]]:
    ran = project.run("show", "-s", model, *words, "--output", "json")
    assert ran.code == 0, ran.err
    return [json.loads(line) for line in ran.out.splitlines()]


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
    from runner.run.run import Run
    from runner.run.workspace import ProjectArguments, Workspace

    project(FILES)
    workspace = Workspace(ProjectArguments())
    compiled = Run(workspace, "docs", list(workspace.graph.nodes.values())).compiled
    columns = columns_of_models(workspace.graph, compiled)
    assert columns["lands"]["from"] == {"land": [["staged", "id"]], "name": [["staged", "name"]]}
    assert columns["staged"]["from"]["id"] == [["countries", "id"]]


MISTAKES = {
    "models/a.sql": ("{{ config(alias='lands') }} select 1 as a", 'name-taken]: the name "lands" is taken'),
    "models/b.sql": ("{{ config(alias='changelog') }} select 1 as a", 'name-taken]: the name "changelog" is taken'),
    "models/c.sql": ("{{ config(alias='a/b') }} select 1 as a", 'setting-value]: "a/b" cannot be an alias'),
    "models/d.sql": ("select 1 as a from {{ ref('numbers') }}", 'ref-unknown]: there is no model "numbers"'),
    # Tables of their own do not make two nodes of one name two.
    "models/countries.sql": (
        "{{ config(alias='others') }} select 1 as a",
        'name-taken]: the name "countries" is taken',
    ),
}


def test_mistakes(project: Callable[..., Path], runner: Callable[..., Any]) -> None:
    project({**FILES, **{name: model for name, (model, _) in MISTAKES.items()}})
    ran = runner("ls")
    assert ran.code == 2 and ran.err.count("error[") == len(MISTAKES), ran.err
    for name, (_, error) in MISTAKES.items():
        assert f"error[{error}\n  --> {name}:1\n" in ran.err
    assert ran.err.count("hint: by seed seeds/wide/countries.csv") == 2
