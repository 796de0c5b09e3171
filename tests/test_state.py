"""Only what changed: nodes are compared by what they consist of with those of an earlier run."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from runner.cli import main
from runner.commands import retry
from runner.commands.arguments import RunArguments, Selection

FILES = {
    "project.yml": """
name: shop
targets: {local: {storage: delta}}
vars: {start: '2024-01-01', unit: cent}
models:
  marts: {+materialized: table}
sources:
  - {name: orders, format: own, files: in/*.jsonl}
""",
    "formats/own.yml": "about: Ours\nextends: canal\n",
    "macros/money.sql": """
{% macro cents(column) %}{{ rounded(column) }} * 100{% endmacro %}
{% macro rounded(column) %}round({{ column }}, {{ digits() }}){% endmacro %}
{% macro digits() %}0{% endmacro %}
{% macro since() %}day >= '{{ var('start') }}'{% endmacro %}
""",
    "macros/unused.sql": "{% macro unused(column) %}{{ rounded(column) }}{% endmacro %}",
    "macros/functions/pence.sql": (
        "create function pence(price double comment 'p') returns double comment 'in pence' return price * 100;"
    ),
    "models/staging/paid.sql": "select {{ shop.cents('price') }} as price, day from {{ ref('changelog') }}",
    "models/staging/lately.sql": "select * from {{ ref('paid') }} where {{ since() }}",
    "models/marts/by_day.sql": "select day, sum(pence(price)) as price from {{ ref('lately') }} group by day",
    "models/marts/unit.sql": "select '{{ var('unit') }}' as unit",
    "models/mirrors.yml": """
mirrors: [{name: bought, of: {source: orders, table: shop.orders}, key: [id], columns: {id: bigint}, history: true}]
""",
    "seeds/rates.csv": "currency,rate\nEUR,1.1\n",
    "seeds/rates.yml": "seeds: [{name: rates, config: {column_types: {rate: double}}}]",
    "models/marts/unit.yml": """
models:
  - name: unit
    description: what prices are counted in
    columns: [{name: unit, description: a word, data_tests: [not_null]}]
""",
}
VIEWS = ("changelog", "control_events", "ddl_events", "dead_letters", "freshness", "freshness_by_table")


def changed(files: Mapping[str, str], name: str, old: str, new: str) -> dict[str, str]:
    assert old in files[name]
    return {name: files[name].replace(old, new)}


CHANGES: dict[str, tuple[dict[str, str], dict[str, list[str]]]] = {
    "nothing: times and folders are not contents": ({}, {}),
    "the body of a model": (
        changed(FILES, "models/staging/paid.sql", "as price", "as paid"),
        {"paid": ["body"]},
    ),
    "a comment in SQL, which Spark gets": (
        {"models/marts/unit.sql": FILES["models/marts/unit.sql"] + " -- in words"},
        {"unit": ["body"]},
    ),
    "a comment of Jinja, line ends and blanks around": (
        {
            "models/marts/unit.sql": "{# why #}\r\n" + FILES["models/marts/unit.sql"] + "\r\n",
            "macros/money.sql": FILES["macros/money.sql"] + "{# all about money #}",
        },
        {},
    ),
    "a setting of a folder": (
        changed(FILES, "project.yml", "+materialized: table", "+materialized: incremental"),
        {"by_day": ["configs.materialized"], "unit": ["configs.materialized"]},
    ),
    "a setting in properties": (
        changed(FILES, "models/marts/unit.yml", "    columns", "    config: {post_hook: select 1}\n    columns"),
        {"unit": ["configs.post_hook"]},
    ),
    "how a table is kept": (
        {"models/marts/by_day.yml": "models: [{name: by_day, config: {partition_by: day}}]"},
        {"by_day": ["configs.partition_by"]},
    ),
    "a description that becomes a comment": (
        {
            "models/marts/by_day.yml": (
                "models: [{name: by_day, description: x, config: {persist_docs: {relation: true}}}]"
            )
        },
        {"by_day": ["configs.comment"]},
    ),
    "a setting in the model's file": (
        {"models/marts/unit.sql": FILES["models/marts/unit.sql"] + "{{ config(materialized='view') }}"},
        {"unit": ["body", "configs.materialized"]},
    ),
    "a macro that a model calls": (
        changed(FILES, "macros/money.sql", "* 100", "* 1000"),
        {"paid": ["macros.cents"]},
    ),
    "a macro that a model calls through another": (
        changed(FILES, "macros/money.sql", "round({{ column }}", "bround({{ column }}"),
        {"paid": ["macros.rounded"]},
    ),
    "a macro that a model calls through two others": (
        changed(FILES, "macros/money.sql", "%}0{%", "%}2{%"),
        {"paid": ["macros.digits"]},
    ),
    "a macro that no model calls": (
        changed(FILES, "macros/unused.sql", "rounded", "cents"),
        {},
    ),
    "a SQL function": (
        changed(FILES, "macros/functions/pence.sql", "* 100", "* 240"),
        {"by_day": ["macros.pence"]},
    ),
    "a variable in a model": (changed(FILES, "project.yml", "unit: cent", "unit: penny"), {"unit": ["vars.unit"]}),
    "a variable in a macro": (changed(FILES, "project.yml", "2024", "2025"), {"lately": ["vars.start"]}),
    "a column of a mirror": (
        changed(FILES, "models/mirrors.yml", "id: bigint", "id: string"),
        {"bought": ["body"], "bought_history": ["body"], "fits_bought": ["body"]},
    ),
    "a row of a seed": ({"seeds/rates.csv": "currency,rate\nEUR,1.2\n"}, {"rates": ["body"]}),
    "a type of a seed": (
        changed(FILES, "seeds/rates.yml", "double", "float"),
        {"rates": ["configs.column_types"]},
    ),
    "what a format inherits": (
        {"formats/own.yml": "about: Ours\nextends: canal\nzone: Asia/Shanghai\n"},
        {"source.orders": ["format.own"], "orders_to_changelog": ["format.own"]},
    ),
    "what a format says of itself": ({"formats/own.yml": "about: Theirs\nextends: canal\n"}, {}),
    "the zone of a source": (
        changed(FILES, "project.yml", "format: own,", "format: own, zone: UTC,"),
        {"source.orders": ["body"], "orders_to_changelog": ["body"]},
    ),
    "descriptions, tags and notes": (
        {
            "models/marts/unit.yml": """
models:
  - name: unit
    description: cents or pence
    meta: {owner: finance}
    config: {tags: [nightly]}
    columns: [{name: unit, description: one word, data_tests: [not_null]}]
""",
            "project.yml": FILES["project.yml"].replace("{name: orders,", "{name: orders, description: paid,"),
        },
        {},
    ),
    "the severity of a test": (
        changed(FILES, "models/marts/unit.yml", "[not_null]", "[{not_null: {config: {severity: warn}}}]"),
        {"not_null_unit_unit": ["configs.severity"]},
    ),
    "another source": (
        changed(FILES, "project.yml", "sources:", "sources:\n  - {name: items, format: canal, files: y/*}"),
        {
            "source.items": ["new"],
            "items_to_changelog": ["new"],
            "conserved_items": ["new"],
            **{view: ["body"] for view in VIEWS},
        },
    ),
}


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The target folder of a project that was compiled elsewhere, before."""
    root = tmp_path_factory.mktemp("before")
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["compile", "--project-dir", str(root)]) == 0
    return root / "target"


@pytest.fixture
def later(
    before: Path, project: Callable[..., Path], runner: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Runs a command that compares the project, as it is unless files are changed, with the one before."""
    monkeypatch.setenv("RUNNER_STATE", str(before))
    project(FILES)
    return runner


@pytest.mark.parametrize("change", CHANGES)
def test_the_nodes_that_a_change_modifies_and_why(
    later: Callable[..., Any], project: Callable[..., Path], change: str
) -> None:
    files, expected = CHANGES[change]
    project({**FILES, **files})
    ran = later("ls", "--output", "json")
    nodes = [json.loads(line) for line in ran.out.splitlines()]
    assert {one["name"]: one["changed"] for one in nodes if one["changed"]} == expected
    assert len(nodes) > 15


def test_parts_of_state_are_selected_alone(later: Callable[..., Any], project: Callable[..., Path]) -> None:
    files = {
        **changed(FILES, "macros/money.sql", "* 100", "* 1000"),
        **changed(FILES, "models/staging/lately.sql", "*", "price"),
        **changed(FILES, "project.yml", "table}", "incremental}"),
        "models/extra.sql": "select 1 as one",
    }
    files["project.yml"] = files["project.yml"].replace("unit: cent", "unit: penny")
    project({**FILES, **files})
    for selector, names in {
        "state:modified.body": {"lately"},
        "state:modified.macros": {"paid"},
        "state:modified.configs": {"by_day", "unit"},
        "state:modified.vars": {"unit"},
        "state:modified.format": set(),
        "state:new": {"extra"},
        "state:modified": {"lately", "paid", "by_day", "unit", "extra"},
        "state:unmodified": {"bought", "bought_history", "orders_to_changelog", *VIEWS},
        "state:modified.macros+": {"paid", "lately", "by_day"},
        "state:modified,config.materialized:incremental": {"by_day", "unit"},
        "state:old,extra": set(),
        "state:old,by_day": {"by_day"},
    }.items():
        models = later("ls", "-s", selector, "--resource-type", "model")
        assert (models.code, set(models.out.split())) == (0, names), selector


def test_nothing_in_a_state_is_no_mistake(later: Callable[..., Any]) -> None:
    for command in ("ls", "compile"):
        assert later(command, "-s", "state:modified") == (0, "", "")
    for command in ("run", "run --continuous", "test", "build", "seed", "maintain"):
        ran = later(*command.split(), "-s", "state:modified")
        assert (ran.code, ran.out, "nothing to do" in ran.err) == (0, "", True), ran.err
    assert "selects no model" in later("show", "-s", "state:modified").err
    assert later("run", "-s", "state:modified", "mixed_up").code == 2


def write_results(folder: Path, statuses: Mapping[str, str], **more: object) -> None:
    results = [{"unique_id": name, "status": status} for name, status in statuses.items()]
    folder.mkdir()
    (folder / "run_results.json").write_text(json.dumps({"results": results, **more}))


def test_nodes_are_selected_by_their_last_result(project: Callable[..., Path], runner: Callable[..., Any]) -> None:
    root = project(FILES)
    statuses = {"model.shop.paid": "error", "model.shop.lately": "skipped", "test.shop.not_null_unit_unit": "fail"}
    write_results(root / "target", statuses)
    write_results(root / "before", {"model.shop.paid": "error"})
    found = runner("ls", "-s", "result:error+ result:fail").out.split()
    assert sorted(found) == ["by_day", "lately", "not_null_unit_unit", "paid"]
    assert runner("ls", "-s", "result:skipped", "--exclude", "result:error+").out == ""
    assert runner("ls", "-s", "result:error result:fail", "--state", "before").out.split() == ["paid"]


def test_retry_takes_what_failed_and_what_lacks_its_rows(
    project: Callable[..., Path], runner: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    statuses = {
        "model.shop.orders_to_changelog": "error",
        "model.shop.changelog": "warn",
        "model.shop.paid": "warn",
        "model.shop.lately": "success",
        "model.shop.unit": "warn",
        "test.shop.not_null_unit_unit": "warn",
        "test.shop.conserved_orders": "skipped",
        "model.shop.gone": "error",
    }
    kept = {
        "which": "build",
        "target": "local",
        "vars": {"start": "2020", "unit": "penny"},
        "select": ["paid+"],
        "exclude": ["unit"],
        "selector": None,
        "state": "/before",
        "threads": 2,
        "fail_fast": True,
        "defer": True,
        "full_refresh": True,
        "unit_only": False,
        "data_only": False,
        "empty": True,
    }
    write_results(project(FILES) / "target", statuses, args=kept)
    asked: list[RunArguments] = []
    monkeypatch.setattr(retry, "COMMANDS", {"build": lambda arguments, report: asked.append(arguments) or 1})
    assert runner("retry", "--vars", "{unit: cent}").code == 1
    (one,) = asked
    assert one.only == ("changelog", "conserved_orders", "orders_to_changelog", "paid")
    assert (one.project.target, one.project.variables) == ("local", {"start": "2020", "unit": "cent"})
    assert one.selection == Selection(("paid+",), ("unit",), Path("/before"))
    assert (one.threads, one.fail_fast, one.full_refresh, one.empty, one.defer) == (2, True, True, True, True)


def test_dbt_finds_what_it_knows_in_the_manifest(before: Path) -> None:
    manifest = json.loads((before / "manifest.json").read_text())
    paid = manifest["nodes"]["model.shop.paid"]
    assert paid["depends_on"] == {
        "nodes": ["model.shop.changelog"],
        "macros": ["macro.shop.cents", "macro.shop.digits", "macro.shop.rounded"],
    }
    assert paid["checksum"]["name"] == "sha256"
    assert len(paid["checksum"]["checksum"]) == 64
    assert manifest["sources"]["source.shop.orders"]["resource_type"] == "source"
