"""What people who know dbt do in tests and incremental models does here what it does there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.small_format import SMALL, message

pytestmark = pytest.mark.usefixtures("spark", "interpreted")

FILES = {
    "project.yml": "name: shop\nvars: {least: 2}\n",
    "seeds/raw.csv": "id,v\n1,a\n2,b\n2,c\n3,\n",
    "models/added.sql": """{{ config(materialized='incremental') }}
select id, v from {{ ref('raw') }} {% if is_incremental() %} where id > (select max(id) from {{ this }}) {% endif %}""",
    "models/keyed.sql": "{{ config(materialized='incremental', unique_key='id') }} select * from {{ ref('raw') }}",
    "models/priced.sql": """select id, cast(id * 10 as decimal(10, 2)) as price, timestamp '2024-05-01 00:00:00Z' as at,
  array(cast(id as decimal(5, 1))) as tags from {{ ref('raw') }}""",
    "macros/tests.sql": """{% test short(model, column_name) %}
{{ config(severity='warn', store_failures=true) }}
select {{ column_name }} from {{ model }} where length({{ column_name }}) < 2
{% endtest %}""",
    "models/m.yml": """
models:
  - name: added
    columns:
      - name: v
        data_tests:
          - not_null: {where: "id > {{ var('least') }}"}
          - short
          - short: {name: short_and_strict, config: {severity: error}}
unit_tests:
  - name: later_runs
    model: added
    overrides: {macros: {is_incremental: true}}
    given:
      - {input: ref('raw'), rows: [{id: 1, v: x}, {id: 7, v: y}]}
      - {input: this, rows: [{id: 5, v: x}]}
    expect: {rows: [{id: 7, v: y}]}
  - name: first_run
    model: added
    given: [{input: ref('raw'), rows: [{id: 1, v: x}, {id: 7, v: y}]}]
    expect: {rows: [{id: 1, v: x}, {id: 7, v: z}]}
  - name: by_types
    model: priced
    given: [{input: ref('raw'), rows: [{id: 1}, {id: 2}]}]
    expect:
      rows:
        - {id: 1, price: 10, at: 2024-05-01 00:00:00, tags: [1]}
        - {id: 2.0, price: 20.0, at: 2024-05-01, tags: [2]}
""",
}


SOURCE = "name: shop\nsources: [{name: orders, format: small, files: in/*}]\n"


def test_tests_and_increments(project, runner) -> None:
    project(FILES)
    ran = runner("build", "--exclude", "first_run")
    assert ran.code == 1
    said = ran.err
    # Two rows of one key are refused in the first run too, and no table is left that holds them.
    assert 'two new rows of "keyed" have one key: {"id":2}' in said
    assert runner("show", "-s", "keyed").code == 1
    # The incremental branch can be tested too.
    assert "PASS unit test later_runs" in said
    timing = {
        one["unique_id"]: one["timing"] for one in json.loads(Path("target/run_results.json").read_text())["results"]
    }
    assert [one["name"] for one in timing["model.shop.priced"]] == ["compile", "execute"]
    moments = [one[end] for one in timing["model.shop.priced"] for end in ("started_at", "completed_at")]
    assert moments == sorted(moments)
    # 10 is 10.00 where the model's column is a decimal.
    assert "PASS unit test by_types" in said
    # A failing row has the column that is tested, also if it is null.
    assert "FAIL test not_null_added_v" in said and "      id: 3, v: null\n      written at models/m.yml:7:13" in said
    # What a macro says of its test holds unless the test says otherwise.
    assert "WARN test short_added_v" in said and "FAIL test short_and_strict" in said
    ran = runner("show", "--output", "json", "--inline", "select count(*) as n from short_added_v")
    assert json.loads(ran.out) == {"n": 3}
    # A test that fails tells where it is written.
    said = runner("test", "-s", "first_run").err
    assert "FAIL unit test first_run" in said and "2 differences\n" in said and "written at models/m.yml:18:5" in said


def test_a_value_of_a_seed_that_does_not_fit_is_told_with_its_line(project, runner) -> None:
    seed = 'id,note,amount\n1,"two\nlines",3\n\n2,12.5,4\n3,x,12.5\n'
    project({"seeds/s.csv": seed, "seeds/s.yml": "seeds: [{name: s, config: {column_types: {amount: int}}}]"})
    ran = runner("seed")
    assert ran.code == 1 and "The value '12.5' of the type" in ran.err
    assert "  --> seeds/s.csv:6:5\n" in ran.err and "6 | 3,x,12.5\n" in ran.err and "target/compiled" not in ran.err


def test_a_unit_test_shows_nobody_else_its_shapes(project, runner) -> None:
    """Of a table only the columns are needed, also of one that is not built, or that grows; what reads it afterwards
    reads the table.
    """
    project(
        {
            "project.yml": SOURCE,
            "formats/small.yml": SMALL,
            "in/1.jsonl": message(1),
            "models/kept.sql": "{{ config(materialized='table') }} select 1 as n",
            "models/grown.sql": "{{ config(materialized='incremental') }} select 1 n from {{ new_rows('changelog') }}",
            "models/odd-name.v2.sql": "{{ config(materialized='table') }} select n from {{ ref('kept') }}",
            "models/last.sql": "{{ config(materialized='table') }} select n from {{ ref('grown') }}",
            "models/m.yml": """
unit_tests:
  - {name: of_a_table, model: odd-name.v2, given: [{input: ref('kept'), rows: [{n: 7}]}], expect: {rows: [{n: 7}]}}
  - {name: of_new_rows, model: last, given: [{input: ref('grown'), rows: [{n: 7}]}], expect: {rows: [{n: 7}]}}
models: [{name: kept, data_tests: [{expression_is_true: {expression: n = 1}}]}]
""",
        }
    )
    ran = runner("test", "-s", "of_a_table", "of_new_rows")
    assert ran.code == 0 and "PASS unit test of_a_table" in ran.err and "PASS unit test of_new_rows" in ran.err
    assert runner("build").code == 0
    project({"project.yml": SOURCE, "models/kept.sql": "{{ config(materialized='table') }} select 2 as n"})
    # The file has changed and the table has not: what reads it reads the table.
    ran = runner("build", "-s", "odd-name.v2", "expression_is_true_kept")
    assert ran.code == 0, ran.err
    assert json.loads(runner("show", "-s", "odd-name.v2", "--output", "json").out) == {"n": 1}


def test_ephemeral_models_are_queries_of_what_reads_them(project, runner, spark) -> None:
    project(
        {
            "project.yml": "name: shop\ntarget: local\ntargets: {local: {catalog: {schema: of_ephemeral}}}\n"
            "models: {steps: {+materialized: ephemeral}}\n",
            "seeds/raw.csv": "id,v\n1,a\n2,b\n2,c\n3,\n",
            "models/steps/cleaned.sql": "select id, v from {{ ref('raw') }} where v is not null -- and no others",
            "models/steps/doubled.sql": "with c as (select * from {{ ref('cleaned') }}) select id * 2 as id, v from c",
            "models/shown.sql": "with d as (select * from {{ ref('doubled') }}) select id, v from d where id > 2 --",
            "models/kept.sql": "{{ config(materialized='table') }} select sum(id) as ids from {{ ref('doubled') }}",
            "models/m.yml": """
models:
  - name: cleaned
    columns: [{name: v, data_tests: [not_null]}, {name: id, data_tests: [unique: {config: {severity: warn}}]}]
unit_tests:
  - name: of_given
    model: kept
    given: [{input: ref('doubled'), rows: [{id: 5}, {id: 6}]}]
    expect: {rows: [{ids: 11}]}
  - name: of_steps
    model: doubled
    given: [{input: ref('cleaned'), rows: [{id: 5, v: x}]}]
    expect: {rows: [{id: 10, v: x}]}
""",
        }
    )
    assert runner("ls", "-s", "config.materialized:ephemeral").out == "cleaned\ndoubled\n"
    ran = runner("build")
    # Two tests of an ephemeral model, two unit tests, a seed, a view and a table.
    assert ran.code == 0 and "Done. PASS=6 WARN=1 ERROR=0 SKIP=0 TOTAL=7\n" in ran.err, ran.err
    assert "WARN test unique_cleaned_id" in ran.err
    catalog = spark.session.newSession()
    assert {row.tableName for row in catalog.sql("show tables in of_ephemeral").collect()} == {"raw", "shown", "kept"}
    shown = catalog.sql("select id, v from of_ephemeral.shown order by v").collect()
    assert [tuple(row) for row in shown] == [(4, "b"), (4, "c")]
    assert json.loads(runner("show", "-s", "kept", "--output", "json").out) == {"ids": 10}
    assert len(runner("show", "-s", "doubled", "--output", "json").out.splitlines()) == 3
    ran = runner("run", "-s", "cleaned")
    assert ran.code == 2 and '"cleaned" selects nothing that this command works on' in ran.err
