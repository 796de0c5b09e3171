"""Queries that call SQL functions: models in all storages, tests, the command line, streams."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.compile import nodes
from runner.compile.library import Library
from runner.compile.query import compile_format
from runner.contract import MACRO_GLOBALS
from runner.project.sql_functions import printed_functions
from runner.render import Renderer
from tests.pages import ROOT
from tests.small_format import SMALL, message
from tests.spark_fixtures import hadoop_catalog

pytestmark = pytest.mark.usefixtures("spark", "interpreted")

FUNCTIONS = """
create function in_bytes(image map<string,string> comment 'an image') returns map<string,string>
comment 'Its columns, which are lists of bytes, as base64.'
return java_bytes(only_v(image));

create function only_v(image map<string,string> comment 'an image') returns map<string,string>
comment 'Its column v.'
return columns_of(image, null, array('v'));
"""
EXAMPLE = re.compile(r"^```sql\nselect (.*)\n-- (.*)\n```", re.MULTILINE)
PROJECT = """
name: calls
targets:
  parquet: {path: lake/parquet}
  delta: {storage: delta, path: lake/delta}
  iceberg: {storage: iceberg, path: lake/iceberg, catalog: {type: hadoop}}
target: parquet
sources: [{name: app, format: canal, files: in/*}]
"""
MODELS = {
    "models/as_view.sql": "select id, map('id', id, 'v', v) as image from values ('1', '[1,2]'), ('2', '[3]') t(id, v)",
    "models/as_table.sql": (
        "{{ config(materialized='table') }} select id, in_bytes(image)['v'] as v from {{ ref('as_view') }}"
    ),
    "models/merged.sql": (
        "{{ config(materialized='incremental', unique_key='id') }} select id, in_bytes(image)['v'] as v, "
        "changed_columns(image, map('id', id, 'v', ''), null) as changed from {{ ref('as_view') }} "
        "{% if is_incremental() %} where size(columns_of(image, null, array('id'))) = 1 and id = '2' {% endif %}"
    ),
    "models/on_top.sql": "select id, only_v(image) as image from {{ ref('as_view') }} where only_v(image) is not null",
    "models/m.yml": (
        "models: [{name: on_top, data_tests: [expression_is_true: {expression: size(in_bytes(image)) = 1}]}]\n"
        "unit_tests:\n"
        "  - {name: u, model: on_top, given: [{input: as_view, rows: [{id: 1, image: {v: x}}, {id: 2}]}],\n"
        "     expect: {rows: [{id: 1, image: {v: x}}]}}\n"
    ),
    "macros/functions/bytes.sql": FUNCTIONS,
    "project.yml": PROJECT,
}


def shown(runner: Any, *words: str) -> list[dict[str, Any]]:
    ran = runner("show", *words, "--output", "json")
    assert ran.code == 0, ran.err
    return [json.loads(line) for line in ran.out.splitlines()]


@pytest.mark.parametrize(
    "storage", ["parquet", *(pytest.param(other, marks=pytest.mark.soak) for other in ("delta", "iceberg"))]
)
def test_models_and_tests_call_functions(project, runner, storage: str) -> None:
    project(MODELS)
    for _ in range(2):
        ran = runner("build", "-t", storage, "-s", "+on_top +as_table +merged", "--threads", "4")
        assert ran.code == 0, ran.err
    inline = "select v, changed, only_v(map('v', id)) as m from merged order by id"
    assert shown(runner, "-t", storage, "--inline", inline) == [
        {"v": "AQI=", "changed": ["v"], "m": {"v": "1"}},
        {"v": "Aw==", "changed": ["v"], "m": {"v": "2"}},
    ]
    assert shown(runner, "-t", storage, "-s", "on_top") == [
        {"id": "1", "image": {"v": "[1,2]"}},
        {"id": "2", "image": {"v": "[3]"}},
    ]


def test_many_models_at_once_call_the_same_functions(project, runner) -> None:
    project(
        {
            **{f"models/m{n}.sql": f"select in_bytes(map('v', '[{n}]')) as v" for n in range(12)},
            "macros/functions/bytes.sql": FUNCTIONS,
        }
    )
    assert runner("run", "-s", "m*", "--threads", "8").code == 0


def test_a_function_that_spark_refuses_is_named_with_its_place(project, runner) -> None:
    project(
        {
            "macros/functions/f.sql": (
                "-- wrong\ncreate function f(a string comment 'a') returns string comment 'c'\nreturn nowhere + a;\n"
                "create function lower(a string comment 'a') returns string comment 'c' return a;\n"
            )
        }
    )
    ran = runner("show", "--inline", "select f('a')")
    assert ran.code == 1 and 'the SQL function "f" at macros/functions/f.sql:2: [UNRESOLVED_COLUMN' in ran.err
    ran = runner("show", "--inline", "select lower('a')")
    assert ran.code == 1
    assert 'the SQL function "lower" at macros/functions/f.sql:4: Spark has a function of this name' in ran.err


def test_a_function_with_another_text_replaces_the_one_of_its_name(spark) -> None:
    library = Library(Renderer([ROOT / "macros"], MACRO_GLOBALS))
    session = spark.fresh(library)
    for text in ("old", "new"):
        own = printed_functions(
            f"create function f(a int comment 'a') returns string comment 'c' return '{text}';", "f"
        )
        session.register((), library.called_by("select f(1)", own))
        assert session.rows("select f(1) as x")[1] == [{"x": text}]


# --- functions of one source


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A format whose SQL calls functions that only it has; the text that they add can be set."""
    said = {"text": "first"}

    def with_functions(macro: Any, spec: Any, source: str, *more: Any) -> Any:
        query = compile_format(macro, spec, source, *more)
        printed = (
            f"create function `{source} inner`(a map<string,string> comment 'a') returns map<string,string> "
            f"comment 'c' return map_concat(a, columns_of(map('said', '{said['text']}'), null, array('said')));\n"
            f"create function `{source} mark`(a map<string,string> comment 'a') returns map<string,string> "
            f"comment 'c' return `{source} inner`(a);\n"
        )
        sql = f"select * except (meta), `{source} mark`(meta) as meta from ({query.sql})"
        return replace(query, sql=sql, sql_functions=(*query.sql_functions, *printed_functions(printed, "marks")))

    monkeypatch.setattr(nodes, "compile_format", with_functions)
    return said


def test_a_stream_calls_functions_of_its_source(project, runner, marked: dict[str, str]) -> None:
    files = {"project.yml": PROJECT.replace("canal", "small"), "formats/small.yml": SMALL}
    folder = project({**files, "in/1.jsonl": message(1)})
    assert runner("run", "-s", "app_to_changelog").code == 0
    text = (folder / "target/compiled/calls/functions.sql").read_text()
    assert text.index("function columns_of(") < text.index("function `app inner`(") < text.index("function `app mark`(")
    (folder / "in/2.jsonl").write_text(message(2))
    again = runner("run", "-s", "app_to_changelog")
    assert again.code == 0 and "has changed" not in again.err
    marked["text"] = "second"
    (folder / "in/3.jsonl").write_text(message(3))
    changed = runner("run", "-s", "app_to_changelog")
    assert changed.code == 0 and "the compiled SQL of the format" in changed.err
    landed = shown(runner, "--inline", "select key_text as k, meta['said'] as s from app_to_changelog order by k")
    assert landed == [
        {"k": '{"id":"1"}', "s": "first"},
        {"k": '{"id":"2"}', "s": "first"},
        {"k": '{"id":"3"}', "s": "second"},
    ]


def test_cases_call_functions_of_their_format(project, runner, marked: dict[str, str]) -> None:
    rows = """
rows:
  - kind: row
    op: insert
    db_name: d
    table_name: t
    key: {id: 1}
    key_text: '{"id":"1"}'
    after: {id: 1}
    before_image: none
    after_image: full
    meta: {said: first}
    seq: {generation: 0, phase: 1, position: [], row: 0}
"""
    project(
        {
            "formats/g.yml": SMALL,
            "formats/cases/g/a.messages.jsonl": message(1),
            "formats/cases/g/a.rows.yml": rows,
        }
    )
    ran = runner("test", "-s", "g.a")
    assert ran.code == 0, ran.err


# --- catalogs


LACKS = "not in the catalog, which does not have columns_of, only_v"


@pytest.mark.engines
def test_a_catalog_that_keeps_neither_functions_nor_views(project, runner, spark, tmp_path: Path) -> None:
    target = "{storage: iceberg, path: lake, catalog: {name: calls_lake, type: hadoop}}"
    project({**MODELS, "project.yml": f"name: calls\ntarget: t\ntargets: {{t: {target}}}\n"})
    ran = runner("run", "-s", "+as_table +on_top")
    assert ran.code == 0 and "catalog" not in ran.err, ran.err
    session = spark.fresh().session
    hadoop_catalog(session, "calls_lake", tmp_path / "lake")
    assert [row["v"] for row in session.sql("select v from calls_lake.changelog.as_table order by v").collect()] == [
        "AQI=",
        "Aw==",
    ]


def test_a_catalog_that_keeps_views_but_no_functions(project, runner, spark) -> None:
    """Spark's own catalog cannot read functions while Iceberg's extension is there."""
    above = "select id from {{ ref('on_top') }}"
    project(
        {
            **MODELS,
            "models/above.sql": above,
            "project.yml": "name: calls\ntarget: t\ntargets: {t: {path: lake, catalog: {schema: no_functions}}}\n",
        }
    )
    ran = runner("run", "-s", "+as_table +above")
    assert ran.code == 0, ran.err
    assert [line.strip() for line in ran.err.splitlines() if "catalog" in line] == [LACKS, LACKS]
    found = {row["viewName"] for row in spark.fresh().session.sql("show views in no_functions").collect()}
    assert found == {"as_view", "as_table"}


# --- tests of functions


TESTED = """
create function mixed(
  a decimal(10,2) comment 'a', b timestamp comment 'b', c struct<x: int, y: array<date>> comment 'c',
  d boolean comment 'd', e binary comment 'e')
returns struct<a: decimal(10,2), b: timestamp, c: date, d: boolean, e: binary, f: map<int,double>> comment 'c'
return named_struct('a', a * 2, 'b', b + interval 1 day, 'c', c.y[0], 'd', not d, 'e', e, 'f', map(c.x, 1.5d));

create function nothing() returns int comment 'c' return null;

create function twice(a string comment 'a') returns string comment 'c' return concat(a, a);
"""
GIVEN = '[1.5, "2024-05-01T10:00:00+08:00", {x: 1, y: [2024-01-01]}, true, 00ff]'
EXPECTED = '{a: %s, b: "2024-05-02T02:00:00Z", c: 2024-01-01, d: false, e: 00ff, f: {1: 1.5}}'


def test_functions_are_tested(project, runner) -> None:
    folder = project(
        {
            "macros/functions/t.sql": TESTED,
            "macros/functions/t.yml": (
                "functions:\n  mixed:\n"
                f"    - {{given: {GIVEN}, expect: {EXPECTED % 3}}}\n"
                f"    - {{given: {GIVEN}, expect: {EXPECTED % '3.01'}}}\n"
                "  nothing: [{given: [], expect: null}]\n"
                "  twice:\n    - {given: [ab], expect: abab}\n"
                "    - {given: ['null'], expect: null}\n    - {given: [null], expect: null}\n"
            ),
            "macros/functions/u.yml": "functions:\n  columns_of: [{given: [{a: 1}, null, [a]], expect: {a: 1}}]\n",
        }
    )
    assert runner("ls", "-s", "path:macros/functions", "--output", "selector").out.split() == [
        "unit_test:function.columns_of",
        "unit_test:function.mixed",
        "unit_test:function.nothing",
        "unit_test:function.twice",
    ]
    ran = runner("test", "--unit", "-s", "resource_type:unit_test")
    assert ran.code == 1
    results = json.loads((folder / "target/run_results.json").read_text())["results"]
    assert {one["unique_id"]: (one["status"], one["failures"]) for one in results} == {
        "unit_test.shop.function.columns_of": ("pass", 0),
        "unit_test.shop.function.mixed": ("fail", 1),
        "unit_test.shop.function.nothing": ("pass", 0),
        "unit_test.shop.function.twice": ("fail", 1),
    }
    assert 'twice("null"): got "nullnull", expected null' in ran.err
    assert '"00ff"): got {"a": "3.00", ' in ran.err and 'expected {"a": "3.01", ' in ran.err
    assert runner("test", "-s", "function.nothing", "--data").code == 2
    assert runner("test", "-s", "function.nothing").code == 0


def test_a_value_of_another_type_is_told(project, runner) -> None:
    values = {"abc": '"abc" is no int', "[1]": '["1"] is no int', '"1.5"': '"1.5" is no int', "{a: 1}": "is no int"}
    files = {}
    for number, value in enumerate(values):
        text = f"create function f{number}(a int comment 'a') returns int comment 'c' return a;"
        tests = f"functions: {{f{number}: [{{given: [{value}], expect: 1}}]}}"
        files |= {f"macros/functions/f{number}.sql": text, f"macros/functions/f{number}.yml": tests}
    folder = project(files)
    assert runner("test", "-s", "function.*").code == 1
    results = json.loads((folder / "target/run_results.json").read_text())["results"]
    told = {one["unique_id"].removeprefix("unit_test.shop.function."): one["message"] for one in results}
    assert [says in told[f"f{number}"] for number, says in enumerate(values.values())] == [True] * 4


def test_the_built_in_functions_pass_their_tests(runner, tmp_path: Path) -> None:
    ran = runner(
        "test", "--unit", "-s", "path:macros/functions", "--project-dir", str(ROOT), "--target-path", str(tmp_path)
    )
    assert ran.code == 0, ran.err


def test_the_page_shows_what_functions_return(spark) -> None:
    examples = [
        (call, json.loads(result))
        for call, result in EXAMPLE.findall((ROOT / "docs/sql.md").read_text().partition("<!-- generated")[2])
    ]
    session = spark.fresh(Library(Renderer([ROOT / "macros"], MACRO_GLOBALS)))
    calls = ", ".join(f"{call} as c{number}" for number, (call, _) in enumerate(examples))
    assert list(session.rows(f"select {calls}")[1][0].values()) == [result for _, result in examples] != []
