"""What readers of dbt's artifacts (manifest v12, run_results v6, sources v3) need is in ours, and nothing that they
refuse. The keys are those of dbt's published schemas.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from runner import artifacts
from runner.compile.compiled import Compiled
from runner.project.state import landed_in, statuses_in, target_in
from runner.run.results import Result
from runner.run.workspace import ProjectArguments, Workspace
from tests.landed import Project

FILES = {
    "project.yml": """
name: shop
target: lake
targets:
  lake: {storage: delta, path: warehouse, catalog: {name: spark_catalog, schema: lake}}
sources:
  - {name: orders, format: canal, files: in/*.jsonl, freshness: {warn_after: {count: 1, period: day}}}
""",
    "models/deep/a.sql": """
{{ config(materialized='incremental', unique_key='id', alias='b', tags=['x'], meta={'n': 1}) }}
select key['id'] as id from {{ new_rows('changelog') }}
""",
    "models/v.sql": "select * from {{ source('crm', 'customers') }} where exists (select 1 from {{ ref('a') }})",
    "models/all.yml": """
version: 2
models:
  - name: a
    config: {contract: {enforced: true}}
    description: said
    columns:
      - name: id
        data_type: string
        description: its key
        data_tests: [not_null, unique: {config: {severity: warn, limit: 5, tags: [y], meta: {z: 1}}}]
sources:
  - name: crm
    schema: raw
    loaded_at_field: at
    tables:
      - {name: customers, identifier: cust, columns: [{name: id, data_tests: [not_null]}]}
      - {name: visits, external: {location: data/visits, using: parquet}}
exposures:
  - {name: board, type: dashboard, owner: {name: Sales}, depends_on: [ref('v')]}
unit_tests:
  - {name: u, model: a, given: [{input: ref('changelog'), rows: [{key: {id: "1"}}]}], expect: {rows: [{id: "1"}]}}
mirrors:
  - {name: m, of: {source: orders, table: shop.orders}, key: id, columns: {id: bigint}}
""",
    "seeds/s.csv": "id,n\n1,x\n",
    "tests/none.sql": "select 1 as a from {{ ref('s') }} where false",
}
MANIFEST = {
    *("metadata", "nodes", "sources", "macros", "docs", "exposures", "metrics", "groups", "selectors", "disabled"),
    *("parent_map", "child_map", "group_map", "saved_queries", "semantic_models", "unit_tests"),
}
OF_ALL = {"name", "resource_type", "package_name", "path", "original_file_path", "unique_id", "fqn"}
OF_TABLES = {*OF_ALL, "schema", "alias", "checksum"}
MAY_ALL = {"config", "description", "depends_on"}
MAY_TABLES = {*MAY_ALL, "database", "tags", "columns", "meta", "relation_name", "raw_code"}
MAY_QUERIES = {*MAY_TABLES, "language", "compiled", "compiled_code", "compiled_path"}
# List and type -> the keys that an entry must have, and those that it may have.
KEYS = {
    ("nodes", "model"): (OF_TABLES, MAY_QUERIES),
    ("nodes", "test"): (OF_TABLES, {*MAY_QUERIES, "test_metadata", "column_name", "attached_node"}),
    ("nodes", "seed"): (OF_TABLES, MAY_TABLES),
    ("sources", "source"): (
        {*OF_ALL, "schema", "source_name", "source_description", "loader", "identifier"},
        {"config", "description", "database", "loaded_at_field", "freshness", "columns", "tags"},
    ),
    ("exposures", "exposure"): ({*OF_ALL, "type", "owner"}, {*MAY_ALL, "label", "maturity", "meta", "tags", "url"}),
    ("unit_tests", "unit_test"): ({*OF_ALL, "model", "given", "expect"}, MAY_ALL),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project, compiled."""
    project = Project(tmp_path_factory.mktemp("shop"), FILES)
    project.ok("compile")
    return project.folder


def manifest(root: Path) -> dict[str, Any]:
    return dict(json.loads((root / "target/manifest.json").read_text()))


def test_a_manifest_has_what_dbt_s_readers_need(root: Path) -> None:
    written = manifest(root)
    assert written.keys() == MANIFEST
    assert written["metadata"]["dbt_schema_version"] == "https://schemas.getdbt.com/dbt/manifest/v12.json"
    assert all(isinstance(value, str) for value in written["metadata"]["env"].values())
    seen = set()
    for one in ("nodes", "sources", "exposures", "unit_tests"):
        for name, entry in written[one].items():
            kind = entry["resource_type"]
            needed, allowed = KEYS[one, kind]
            assert needed <= entry.keys() <= needed | allowed, (name, entry.keys() ^ needed)
            assert entry["unique_id"] == name and name.startswith(f"{kind}.shop.")
            assert "contents" in entry["config"]
            seen.add((one, kind))
    assert seen == KEYS.keys()


def test_what_it_says_of_nodes(root: Path) -> None:
    written = manifest(root)
    a = written["nodes"]["model.shop.a"]
    assert (a["name"], a["alias"], a["database"], a["schema"]) == ("a", "b", "spark_catalog", "lake")
    assert (a["fqn"], a["path"], a["original_file_path"]) == (["shop", "deep", "a"], "deep/a.sql", "models/deep/a.sql")
    assert a["config"]["contract"] == {"enforced": True} and a["config"]["on_schema_change"] == "fail"
    assert a["columns"] == {"id": {"name": "id", "description": "its key"}} and a["meta"] == {"n": 1}
    assert "new_rows('changelog')" in a["raw_code"] and "new_rows_of" in a["compiled_code"]
    assert (root / a["compiled_path"]).read_text() == a["compiled_code"]
    unique = written["nodes"]["test.shop.unique_a_id"]
    assert unique["test_metadata"] == {"name": "unique", "kwargs": {"column": "id"}, "namespace": None}
    assert (unique["attached_node"], unique["config"]["severity"]) == ("model.shop.a", "warn")
    customers = written["sources"]["source.shop.crm.customers"]
    assert [customers[key] for key in ("source_name", "name", "schema", "identifier", "loaded_at_field")] == [
        *("crm", "customers", "raw", "cust", "at")
    ]
    assert written["unit_tests"]["unit_test.shop.u"]["given"] == [
        {"input": "ref('changelog')", "rows": [{"key": {"id": "1"}}]}
    ]


def test_who_reads_whom(root: Path) -> None:
    written = manifest(root)
    every = {name for one in ("nodes", "sources", "exposures", "unit_tests") for name in written[one]}
    parents, children = written["parent_map"], written["child_map"]
    assert parents.keys() == children.keys() == every
    assert parents["model.shop.v"] == ["model.shop.a", "source.shop.crm.customers"]
    assert children["model.shop.v"] == ["exposure.shop.board"]
    assert {(up, down) for down in parents for up in parents[down]} == {
        (up, down) for up in children for down in children[up]
    }


def test_results_have_what_dbt_s_readers_need(root: Path) -> None:
    workspace = Workspace(ProjectArguments(project_dir=root))
    at = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
    results = [
        Result("a", "model", "success", seconds=1.23456, rows={"rows": 2}, ended=at),
        Result("u", "unit_test", "fail", seconds=0.5, ended=at),
        Result("v", "model", "skipped"),
    ]
    compiled = Compiled(times={"a": (at - timedelta(seconds=9), at - timedelta(seconds=8)), "v": (at, at)})
    how = {"which": "build", "landed": {"orders": {}}}
    artifacts.write_results(workspace.project, workspace.graph, compiled, "r", results, 2.5, how)
    written = json.loads((root / "target/run_results.json").read_text())
    assert written.keys() == {"metadata", "results", "elapsed_time", "args"} and written["elapsed_time"] == 2.5
    assert written["metadata"]["dbt_schema_version"] == "https://schemas.getdbt.com/dbt/run-results/v6.json"
    needed = {"status", "timing", "thread_id", "execution_time", "adapter_response", "unique_id", "message", "failures"}
    for one in written["results"]:
        assert one.keys() == {*needed, "compiled", "compiled_code", "relation_name"}
    first, second, skipped = (one["timing"] for one in written["results"])
    assert first == [
        {
            "name": "compile",
            "started_at": "2024-05-01T11:59:51.000000Z",
            "completed_at": "2024-05-01T11:59:52.000000Z",
        },
        {
            "name": "execute",
            "started_at": "2024-05-01T11:59:58.765440Z",
            "completed_at": "2024-05-01T12:00:00.000000Z",
        },
    ]
    assert [one["name"] for one in second] == ["execute"] and skipped == []
    statuses = {"model.shop.a": "success", "unit_test.shop.u": "fail", "model.shop.v": "skipped"}
    assert statuses_in(root / "target") == statuses
    assert landed_in(root / "target") == {"orders": {}}


def test_ages_have_what_dbt_s_readers_need(root: Path) -> None:
    workspace = Workspace(ProjectArguments(project_dir=root))
    orders, crm = Result("source.orders", "source", "fail"), Result("source.crm.visits", "source", "error", "gone")
    nothing = {"source.orders": {"newest": None, "age": None}}
    artifacts.write_ages(workspace.project, workspace.graph, [orders, crm], nothing)
    written = json.loads((root / "target/sources.json").read_text())
    assert written.keys() == {"metadata", "results", "elapsed_time"}
    assert written["metadata"]["dbt_schema_version"] == "https://schemas.getdbt.com/dbt/sources/v3.json"
    one, other = written["results"]
    assert (one["status"], one["criteria"]["warn_after"]) == ("error", {"count": 1, "period": "day"})
    assert one["max_loaded_at"] == "0001-01-01T00:00:00+00:00" and one["max_loaded_at_time_ago_in_s"] > 6e10
    assert other == {"unique_id": "source.shop.crm.visits", "status": "runtime error", "error": "gone"}


def test_our_own_readers_find_where_tables_are(root: Path) -> None:
    target = target_in(root / "target")
    assert (target.name, target.storage, target.path) == ("lake", "delta", str(root / "warehouse"))
    assert target.catalog and (target.catalog.name, target.catalog.schema) == ("spark_catalog", "lake")
