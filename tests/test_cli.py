"""The command line without Spark: exit codes, what goes where, the environment, what each command prints."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from datetime import datetime
from pathlib import Path

import pytest

from runner import cli
from runner.cli import main
from runner.commands.flags import Command
from runner.run.workspace import ProjectArguments, Selection, Workspace

MODELS = {
    "models/staging/stg_orders.sql": "{{ config(tags='nightly') }}\nselect * from {{ ref('changelog') }}",
    "models/orders.sql": "{{ config(materialized='table') }}\nselect * from {{ ref('stg_orders') }}",
    "models/orders.yml": (
        "models:\n  - name: orders\n    description: All orders\n    columns: [{name: id, data_tests: [not_null]}]\n"
    ),
}


# --- exit codes


@pytest.mark.parametrize("words", ["--help", "--version", "run --help", "ls -q", "formats list"])
def test_all_good_is_0(project, runner, words: str) -> None:
    """And 2 where nothing could run: see tests/mistakes."""
    project()
    ran = runner(*words.split())
    assert ran.code == 0 and "error" not in ran.err


def test_a_closed_pipe_is_no_mistake(project, runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*arguments: object) -> None:
        raise BrokenPipeError

    project()
    monkeypatch.setattr("runner.report.Report.payload", closed)
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # to be put back
    assert main(["ls"]) == 0


def test_flags_stand_before_or_behind_the_command(project, runner) -> None:
    root = project(MODELS)
    before, behind = (runner("--project-dir", str(root), "ls"), runner("ls", "--project-dir", str(root)))
    assert before.out == behind.out == runner("ls").out
    for words in ("-q clean", "clean -q"):
        assert runner(*words.split()) == (0, "", "")
    assert "removed" in runner("clean").err


def test_the_project_is_found_upwards(project, runner, monkeypatch: pytest.MonkeyPatch) -> None:
    root = project(MODELS)
    here = runner("ls").out
    monkeypatch.chdir(root / "models" / "staging")
    assert runner("ls").out == here


def test_every_command_has_a_function_that_takes_its_flags() -> None:
    """It is found by its name, when the command runs."""
    for command in cli.runner.commands.values():
        assert isinstance(command, Command)
        function = getattr(importlib.import_module(command.module), command.function)
        inspect.signature(function).bind(None, **{one.name: None for one in command.params if one.expose_value})


def test_several_selectors_follow_one_flag(project, runner) -> None:
    project(MODELS)
    names = {"orders", "changelog", "stg_orders"}
    for words in (
        "-s orders changelog stg_orders",
        "-s orders -q --select changelog stg_orders",
        "--select orders changelog freshness --exclude freshness dead_letters -s stg_orders",
    ):
        assert set(runner("ls", *words.split()).out.split()) == names, words
    assert 'unknown argument "stg_orders"' in runner("ls", "-s", "orders", "-q", "stg_orders").err


# --- what goes where


def test_json_lines(project, runner) -> None:
    project(MODELS)
    ran = runner("clean", "--log-format", "json")
    assert [json.loads(line)["event"] for line in ran.err.splitlines()] == ["info"]
    ran = runner("ls", "-s", "nothing", "--log-format", "json")
    (event,) = [json.loads(line) for line in ran.err.splitlines()]
    assert (
        event["event"] == "error"
        and event["code"] == "selector-empty"
        and set(event) == {"time", "project", "target", "run_id", "event", "code", "message", "where", "hint"}
    )
    assert (event["project"], event["target"], event["run_id"]) == ("shop", "local", None)
    assert datetime.fromisoformat(event["time"]).tzinfo is not None
    # Before a project is read, its name is not known.
    event = json.loads(runner("ls", "--target", "none", "--log-format", "json").err)
    assert (event["code"], event["project"], event["target"]) == ("target-unknown", None, None)


def test_quiet_still_says_what_is_wrong(project, runner) -> None:
    project(MODELS)
    assert "error[selector-empty]" in runner("-q", "ls", "-s", "nothing").err


def test_payload_is_all_there_is_on_standard_output(project, runner) -> None:
    project(MODELS)
    for words in (["ls"], ["ls", "--output", "json"], ["compile", "-q", "-s", "orders"], ["formats", "list"]):
        ran = runner(*words)
        assert ran.out and not ran.err, words


# --- the environment


def test_the_environment_has_twins_of_flags(project, runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = project(
        {
            **MODELS,
            "project.yml": "target: dev\ntargets: {dev: {}, prod: {}}\n",
            "models/which.sql": "select '{{ target.name }}'",
        }
    )

    def target_of(*words: str) -> str:
        return runner("compile", "-s", "which", "-q", *words).out.strip()

    assert target_of() == "select 'dev'"
    assert target_of("-t", "prod") == "select 'prod'"
    monkeypatch.setenv("RUNNER_TARGET", "prod")
    assert target_of() == "select 'prod'"
    assert target_of("-t", "dev") == "select 'dev'", "the flag counts before the environment"

    monkeypatch.setenv("RUNNER_TARGET_PATH", str(tmp_path / "elsewhere"))
    runner("compile", "-s", "which")
    assert (tmp_path / "elsewhere/manifest.json").is_file()
    runner("compile", "-s", "which", "--target-path", str(tmp_path / "third"))
    assert (tmp_path / "third/manifest.json").is_file()

    monkeypatch.chdir("/")
    assert runner("ls").code == 2
    monkeypatch.setenv("RUNNER_PROJECT_DIR", str(root))
    assert runner("ls").code == 0
    monkeypatch.setenv("RUNNER_LOG_FORMAT", "json")
    assert json.loads(runner("ls", "-s", "nothing").err)["code"] == "selector-empty"


def test_variables(project, runner) -> None:
    project(
        {
            "project.yml": "vars: {start: 2024-01-01, limit: 010}\n",
            "models/m.sql": "select '{{ var('start') }}', {{ var('limit') }}, {{ var('other', 'x') }}",
        }
    )
    assert runner("compile", "-s", "m", "-q").out.strip() == "select '2024-01-01', 010, x"
    assert (
        runner("compile", "-s", "m", "-q", "--vars", "{limit: 1e3, other: on}").out.strip()
        == "select '2024-01-01', 1e3, on"
    )


@pytest.mark.parametrize("own", ["{0}", "{{m: {0}}}"], ids=["of all projects", "below the project's name"])
def test_variables_that_are_no_texts(project, runner, own: str) -> None:
    values = "{names: [a, b], one: {two: x}, yes: true, no: false, nothing: null, n: 3}"
    model = (
        "select {{ var('names') | join('+') }}, {{ var('one').two }}, {{ 1 if var('yes') else 0 }}, "
        "{{ 1 if var('no') else 0 }}, {{ var('nothing') is none }}, {{ var('n') | int + 1 }}, "
        "{{ var('x', none) is none }}"
    )
    project({"project.yml": f"name: m\nvars: {own.format(values)}\n", "models/m.sql": model})
    assert runner("compile", "-s", "m", "-q").out.strip() == "select a+b, x, 1, 0, True, 4, True"
    given = runner("compile", "-s", "m", "-q", "--vars", "{names: [c], no: true}").out.strip()
    assert given == "select c, x, 1, 1, True, 4, True"


# --- ls


def test_ls(project, runner) -> None:
    project(MODELS)
    assert runner("ls").out.split() == [
        "source:orders",
        "orders_to_changelog",
        "changelog",
        "conserved_orders",
        "control_events",
        "ddl_events",
        "dead_letters",
        "freshness",
        "freshness_by_table",
        "stg_orders",
        "orders",
        "not_null_orders_id",
    ]
    assert runner("ls", "-s", "orders+", "--output", "path").out.split() == ["models/orders.sql", "models/orders.yml"]
    assert runner("ls", "--resource-type", "source").out == "source:orders\n"
    assert runner("ls", "-s", "tag:nightly", "--output", "selector").out == "model:stg_orders\n"
    assert runner("ls", "-s", "orders").out == "orders\n"
    tests_of_orders = ("ls", "-s", "orders", "--resource-type", "test")
    assert runner(*tests_of_orders).out == "not_null_orders_id\n"
    assert runner(*tests_of_orders, "--exclude", "not_null_orders_id").out == ""


def test_settings_in_lists_and_mappings_select(project, runner) -> None:
    project({"models/m.sql": "{{ config(tags=['x', 'y'], meta={'own': {'by': 'me'}}) }} select 1 as a"})
    assert runner("ls", "-s", "config.tags:x,config.tags:y,config.meta.own.by:me,config.materialized:view").out == "m\n"
    for selector in ("config.tags:z", "config.meta.own:me", "config.meta.own.by.no:me"):
        assert runner("ls", "-s", selector).code == 2


def test_settings_below_the_projects_name(project, runner) -> None:
    settings = "name: shop\nmodels:\n  +tags: [a]\n  shop: {+materialized: table, mart: {+tags: [b]}}\n"
    project({"project.yml": settings, "models/m.sql": "select 1 as a", "models/mart/n.sql": "select 1 as a"})
    assert runner("ls", "-s", "config.materialized:table").out == "m\nn\n"
    assert runner("ls", "-s", "tag:b").out == "n\n" and runner("ls", "-s", "tag:a").out == "m\n"


def test_a_macro_behind_the_projects_name(project, runner) -> None:
    macros = {"macros/m.sql": "{% macro cents(x) %}{{ x }} * 100{% endmacro %}"}
    project({**macros, "models/m.sql": "select {{ shop.cents('a') }} from {{ ref('shop', 'orders_to_changelog') }}"})
    assert "select a * 100 from" in runner("compile", "-s", "m", "-q").out


def test_property_files_may_end_in_yaml(project, runner) -> None:
    project(
        {"models/m.sql": "select 1 as a", "models/m.yaml": "models: [{name: m, data_tests: [unique: {column: a}]}]"}
    )
    assert runner("ls", "--resource-type", "test", "-s", "m").out == "unique_m\n"


def test_ls_prints_what_can_be_selected(project, runner) -> None:
    project(MODELS)
    lines = runner("ls").out.split()
    workspace = Workspace(ProjectArguments())
    for line in lines:
        assert workspace.selected(Selection(select=(line,))) == {line.replace("source:", "source.")}


def test_ls_as_json(project, runner) -> None:
    project(MODELS)
    nodes = {node["name"]: node for node in map(json.loads, runner("ls", "--output", "json").out.splitlines())}
    assert nodes["orders"] == {
        "name": "orders",
        "resource_type": "model",
        "path": "models/orders.sql",
        "format": None,
        "materialized": "table",
        "tags": [],
        "depends_on": ["stg_orders"],
    }
    assert nodes["stg_orders"]["tags"] == ["nightly"]
    assert nodes["orders_to_changelog"]["format"] == "canal" and nodes["orders_to_changelog"]["depends_on"] == [
        "source.orders"
    ]


def test_settings_of_folders(project, runner) -> None:
    project(
        {
            **MODELS,
            "project.yml": "models:\n  +materialized: table\n  staging: {+materialized: view, +tags: [staging]}\n",
            "models/other.sql": "select 1",
        }
    )
    found = {
        node["name"]: (node["materialized"], node["tags"])
        for node in map(
            json.loads,
            runner("ls", "--output", "json", "-s", "path:models", "--resource-type", "model").out.splitlines(),
        )
    }
    assert found == {"orders": ("table", []), "other": ("table", []), "stg_orders": ("view", ["nightly"])}


def test_settings_by_name(project, runner) -> None:
    project(
        {
            "project.yml": "name: shop\nmodels: {mart: {+tags: [a], n: {+tags: [b], +alias: named}, o: {+tags: [c]}}}\n"
            "seeds:\n  shop: {codes: {+column_types: {id: string}, +delimiter: ';'}}\n"
            "  more: {codes_2: {+enabled: false}}\n",
            "models/n.sql": "select 1 as a",
            "models/mart/o.sql": "{{ config(tags=['own']) }} select 1 as a",
            "models/mart/o/p.sql": "select 1 as a",
            "models/mart/n.sql.md": "no model",
            "models/mart/n.v2.sql": "select 1 as a",
            "seeds/codes.csv": "id;x\n01;2\n",
            "seeds/more/codes_2.csv": "id\n1\n",
            "seeds/others.csv": "id,x\n01,2\n",
        }
    )
    assert runner("ls").err.count("error[setting-folder]") == 1, "n is not in mart"
    Path("models/n.sql").rename("models/mart/n.sql")
    assert runner("ls").err == ""
    tags = {tag: runner("ls", "-s", f"tag:{tag}").out.split() for tag in ("a", "b", "c", "own")}
    # As in dbt, what is said of a name is said of the model and of the folder; the model's own file wins.
    assert tags == {"a": ["n.v2"], "b": ["n"], "c": ["p"], "own": ["o"]}
    assert runner("ls", "-s", "config.alias:named").out == "n\n"
    nodes = Workspace(ProjectArguments()).graph.nodes
    seeds = {name: node.model.query for name, node in nodes.items() if node.resource_type == "seed" and node.model}
    assert seeds.keys() == {"codes", "others"}
    assert (seeds["codes"].delimiter, seeds["codes"].types) == (";", {"id": "string"})
    assert (seeds["others"].delimiter, seeds["others"].types) == (",", {})


# --- compile


def test_compiled_sql_begins_with_its_header_and_is_the_same_every_time(project, runner) -> None:
    project({"project.yml": "sources: [{name: canal, format: canal, files: in/*}]\n"})
    ran = runner("compile", "-s", "canal_to_changelog", "-q")
    assert ran.out.startswith(
        "-- canal_to_changelog: the messages of source canal, as rows of the changelog\n-- format     canal: "
    )
    assert [runner("compile", "-s", "canal_to_changelog", "-q").out for _ in range(2)] == [ran.out] * 2
    assert not re.search(r"20\d\d-\d\d|\{\{|\{%", ran.out)


def test_compile_writes_files_and_names_them(project, runner) -> None:
    root = project(MODELS)
    paths = [Path(line) for line in runner("compile", "-s", "orders not_null_orders_id").out.splitlines()]
    assert paths == [
        root / "target/compiled/shop/models/orders.sql",
        root / "target/compiled/shop/tests/not_null_orders_id.sql",
    ]
    assert paths[0].read_text() == "select * from `stg_orders`\n"
    assert json.loads((root / "target/manifest.json").read_text())["nodes"]["model.shop.orders"]["depends_on"][
        "nodes"
    ] == ["model.shop.stg_orders"]


def test_what_is_compiled_again_is_left_alone(project, runner) -> None:
    root = project(MODELS)
    runner("compile", "-s", "orders changelog")
    before = {path: path.stat().st_mtime_ns for path in (root / "target").rglob("*") if path.is_file()}
    assert len(before) == 3
    runner("compile", "-s", "orders changelog")
    assert {path: path.stat().st_mtime_ns for path in (root / "target").rglob("*") if path.is_file()} == before


def test_runnable_sql_has_its_settings(project, runner) -> None:
    project()
    plain, runnable = (runner("compile", "-s", "orders_to_changelog", *words).out for words in (["-q"], ["--runnable"]))
    assert runnable.endswith(plain) and runnable.startswith("set spark.sql.ansi.enabled = true;\n")


def test_inline_sql(project, runner) -> None:
    project()
    assert runner("compile", "--inline", "select * from {{ ref('changelog') }}").out == "select * from `changelog`\n"


def test_tests_with_defaults_and_arguments_in_any_order(project, runner) -> None:
    macro = (
        "{% macro test_at_least(least, model, column='id') %}select count({{ column }}) from {{ model }} having "
        "count(*) < {{ least }}{% endmacro %}"
    )
    project(
        {
            **MODELS,
            "macros/at_least.sql": macro,
            "models/t.yml": "models: [{name: stg_orders, data_tests: [at_least: {least: 5}]}]",
        }
    )
    assert (
        runner("compile", "-s", "at_least_stg_orders", "-q").out
        == "select count(id) from `stg_orders` having count(*) < 5\n"
    )


# --- the rest


def test_clean_takes_what_is_compiled_and_leaves_tables(project, runner) -> None:
    root = project({**MODELS, "warehouse/orders/part.parquet": "x"})
    runner("compile", "-s", "orders")
    assert (root / "target").is_dir()
    assert runner("clean").code == 0
    assert not (root / "target").exists() and (root / "warehouse/orders/part.parquet").is_file()
    assert runner("clean").code == 0, "nothing to remove is no mistake"


def test_init_makes_a_project_that_is_good(project, runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = runner("init", "demo")
    assert ran.code == 0 and "cd demo" in ran.err
    monkeypatch.chdir(tmp_path / "demo")
    assert runner("compile", "-s", "order_status", "shop_to_changelog").code == 0
    assert {"source:shop", "shop_to_changelog", "order_status"} <= set(runner("ls").out.split())
    assert list((tmp_path / "demo/messages").glob("*.jsonl"))
    assert not [path for path in (tmp_path / "demo").rglob("*") if path.suffix in (".pyc", ".parquet")]


def test_the_sample_project_is_good(runner, tmp_path: Path) -> None:
    """Its formats and cases are those that are built in: tests with Spark run them."""
    ran = runner("--project-dir", str(Path(__file__).parent.parent), "compile", "--target-path", str(tmp_path))
    assert ran.code == 0 and (tmp_path / "compiled").is_dir()


def test_every_model_of_a_command_has_sql(project, runner) -> None:
    """What `run` takes is what `compile` prints."""
    project(MODELS)
    names = runner("ls", "--resource-type", "model").out.split()
    compiled = {Path(line).stem for line in runner("compile", "-s", "resource_type:model").out.splitlines()}
    assert compiled == set(names)
