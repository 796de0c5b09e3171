"""All mistakes of a project are told at once, also several in one entry of a property file."""

from __future__ import annotations

import re

FILES = {
    "models/a.sql": "{{ config(materialized='tabel', tagz=['x']) }} select * from {{ ref('b') }}",
    "models/b.sql": "select 1 as id",
    "seeds/s.csv": "id\n1\n",
    "models/m.yml": """models:
  - name: a
    descriptoin: x
    config: {materialized: tabel, tag: [a]}
    columns:
      - name: id
        descrption: y
        data_tests: [not_nul, {relationships: {to: ref('c'), field: id, config: {severty: warn, limit: x}}}]
      - nam: b
  - name: b
    confg: {}
    data_tests: [uniq]
exposures:
  - name: e
    typ: dashboard
    depends_on: [ref('c'), ref('b'), ref('d')]
seeds:
  - name: s
    config: {column_typs: {}, delimiterr: x}
    columns: [{name: id, data_tests: [uniq]}]
""",
}
PLACES = [
    "materialization-unknown models/a.sql:1",
    "setting-unknown models/a.sql:1",
    "unknown-key models/m.yml:3:5",
    "materialization-unknown models/m.yml:4:14",
    "setting-unknown models/m.yml:4:35",
    "unknown-key models/m.yml:7:9",
    "test-unknown models/m.yml:8:22",
    "ref-unknown models/m.yml:8:48",
    "setting-unknown models/m.yml:8:82",
    "setting-value models/m.yml:8:97",
    "unknown-key models/m.yml:9:9",
    "name-missing models/m.yml:9:9",
    "unknown-key models/m.yml:11:5",
    "test-unknown models/m.yml:12:18",
    "unknown-key models/m.yml:15:5",
    "ref-unknown models/m.yml:16:18",
    "ref-unknown models/m.yml:16:38",
    "setting-unknown models/m.yml:19:14",
    "setting-unknown models/m.yml:19:31",
    "test-unknown models/m.yml:20:39",
]


def test_all_mistakes_are_told_at_once(project, runner) -> None:
    project(FILES)
    for command in ("check", "compile", "ls"):
        ran = runner(command)
        assert ran.code == 2
        told = re.findall(r"^error\[([\w-]+)\]: .*\n  --> (\S+)", ran.err, re.MULTILINE)
        assert [" ".join(one) for one in told] == PLACES, command


def test_settings_that_a_storage_lacks_are_told_where_they_are_written(project, runner) -> None:
    config = "{persist_docs: {relation: true}, table_properties: {a: b}, cluster_by: id}"
    project(
        {
            "models/a.sql": "{{ config(materialized='table', cluster_by='id') }} select 1 as id",
            "models/m.yml": f"models: [{{name: a, description: x, config: {config}}}]",
        }
    )
    ran = runner("check")
    told = re.findall(r"^error\[setting-storage\]: .*\n  --> (\S+)", ran.err, re.MULTILINE)
    line = f"models: [{{name: a, description: x, config: {config}"
    places = [f"models/m.yml:1:{line.index(setting) + 1}" for setting in ("persist_docs", "table_properties")]
    assert ran.code == 2 and told == ["models/a.sql:1", *places]


def test_a_test_of_a_disabled_model_is_no_mistake(project, runner) -> None:
    properties = "models: [{name: a, data_tests: [unheard_of], config: {enabled: false}}]"
    project({"models/a.sql": "select 1 as a", "models/m.yml": properties})
    assert runner("ls", "--resource-type", "test").out == "conserved_orders\n"
