"""Events of OpenLineage: what they say of runs, nodes, datasets and columns, and where they go."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from runner.errors import RunnerWarning
from runner.run.openlineage import LineageEvents
from runner.run.recording import Recorder
from runner.run.results import Result
from runner.run.run import Run
from runner.run.workspace import ProjectArguments, Workspace
from tests import pages
from tests.answers import Server
from tests.pages import ROOT

VALIDATOR = Draft202012Validator(pages.table("openlineage"))
PROJECT = """name: shop
sources:
  - {name: shop, format: canal, kafka: {servers: "kafka-1:9092, kafka-2:9092", topics: [a, b]}}
  - {name: old, format: canal, files: in/*.jsonl}
openlineage: {file: out/events.jsonl, namespace: prod}
"""
FILES = {
    "project.yml": PROJECT,
    "models/mirrors.yml": "mirrors: [{name: orders, of: {source: shop, table: o}, key: [id], "
    "columns: {id: int, amount: double}}]\n",
    "models/paid.sql": "{{ config(materialized='ephemeral') }} select id, amount * 2 as twice from {{ ref('orders') }}",
    "models/sums.sql": "{{ config(materialized='table') }} select id, twice + id as total, 1 as n from {{ref('paid')}}",
    "models/m.yml": "models: [{name: sums, data_tests: [{not_null: {column_name: id}}]}]\n",
}


class Events:
    """A run of a project, as far as its events see it; `warnings` are those that it tells."""

    def __init__(self, folder: Path, openlineage: str = "") -> None:
        self.folder, self.warnings = folder, list[RunnerWarning]()
        for name, text in FILES.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        if openlineage:
            lines = [*PROJECT.splitlines()[:-1], f"openlineage: {openlineage}", ""]
            (folder / "project.yml").write_text("\n".join(lines))
        workspace = Workspace(ProjectArguments(folder))
        self.nodes = workspace.graph.nodes
        self.run = Run(workspace, "build", [node for node in workspace.in_order(self.nodes) if node.runs])
        self.events = LineageEvents(self.run, self.warnings.append)
        watcher: Any = SimpleNamespace(started=lambda *_: None, finished=lambda *_: None)
        self.recorder = Recorder(self.run, watcher, self.warnings.append, events=self.events)

    def node(self, name: str, status: str, **more: Any) -> None:
        node = self.nodes[name]
        self.recorder.started(node, 1, 1)
        self.recorder.finished(node, Result(name, node.resource_type, status, **more), 1, 1)

    @property
    def told(self) -> list[Any]:
        events = [json.loads(line) for line in (self.folder / "out/events.jsonl").read_text().splitlines()]
        for event in events:
            VALIDATOR.validate(event)
        return events

    def ending(self, name: str) -> Any:
        """The last event of a job."""
        return [one for one in self.told if one["job"]["name"] == f"shop.{name}"][-1]


def names(datasets: list[Any]) -> list[tuple[str, str]]:
    return [(one["namespace"], one["name"]) for one in datasets]


def test_a_run_and_its_nodes(tmp_path: Path) -> None:
    project = Events(tmp_path)
    with project.events.of_run():
        project.node("shop_to_changelog", "success", rows={"messages": 5, "row": 3, "dead_letter": 1})
        project.node("orders", "error", message="[DIVIDE_BY_ZERO] Division by zero.\nat line 3", rows={})
        project.recorder.finished(project.nodes["sums"], Result("sums", "model", "skipped"), 1, 1)
        project.run.results = [Result("orders", "model", "error")]
    told = project.told
    assert [(one["eventType"], one["job"]["name"]) for one in told] == [
        ("START", "shop.build"),
        ("START", "shop.shop_to_changelog"),
        ("COMPLETE", "shop.shop_to_changelog"),
        ("START", "shop.orders"),
        ("FAIL", "shop.orders"),
        ("FAIL", "shop.build"),
    ]
    run, *others = [one["run"]["runId"] for one in told]
    assert others == [others[0], others[0], others[2], others[2], run] and len({run, *others}) == 3
    assert {one["job"]["namespace"] for one in told} == {"prod"}
    for event in told[1:-1]:
        parent = event["run"]["facets"]["parent"]
        assert (parent["run"], parent["job"]) == ({"runId": run}, {"namespace": "prod", "name": "shop.build"})
    assert told[4]["run"]["facets"]["errorMessage"]["message"] == "[DIVIDE_BY_ZERO] Division by zero."
    assert [one["eventTime"] for one in told] == sorted(one["eventTime"] for one in told)
    assert project.warnings == []


def test_datasets_and_columns(tmp_path: Path) -> None:
    project, lake = Events(tmp_path), f"{tmp_path}/warehouse"
    (test,) = [name for name, node in project.nodes.items() if node.resource_type == "test" and "not_null" in name]
    with project.events.of_run():
        project.node("shop_to_changelog", "warn", rows={"messages": 5, "row": 3, "dead_letter": 1})
        project.node("old_to_changelog", "success", rows={"messages": 0})
        project.node("orders", "success", rows={"rows": 2})
        project.node("sums", "success", rows={"rows": 7})
        project.node(test, "pass")
        project.run.results = []
    shop, old = project.ending("shop_to_changelog"), project.ending("old_to_changelog")
    assert names(shop["inputs"]) == [("kafka://kafka-1:9092", "a"), ("kafka://kafka-1:9092", "b")]
    assert names(old["inputs"]) == [("file", f"{tmp_path}/in/*.jsonl")]
    assert names(shop["outputs"]) == [("file", f"{lake}/shop_to_changelog")]
    assert shop["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 4
    assert {"name": "after", "type": "map<string,string>"} in shop["outputs"][0]["facets"]["schema"]["fields"]
    orders, sums = project.ending("orders"), project.ending("sums")
    assert names(orders["inputs"]) == names(shop["outputs"])
    assert {"name": "amount", "type": "double"} in orders["outputs"][0]["facets"]["schema"]["fields"]
    fields = orders["outputs"][0]["facets"]["columnLineage"]["fields"]
    changelog = {"namespace": "file", "name": f"{lake}/shop_to_changelog"}
    assert fields["id"]["inputFields"] == [{**changelog, "field": of} for of in ("key", "after", "before")]
    # Through the ephemeral model, which has no table.
    assert names(sums["inputs"]) == names(orders["outputs"]) == [("file", f"{lake}/orders")]
    assert sums["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 7
    assert [field["name"] for field in sums["outputs"][0]["facets"]["schema"]["fields"]] == ["id", "total", "n"]
    ends = {
        name: sorted((one["name"], one["field"]) for one in origin["inputFields"])
        for name, origin in sums["outputs"][0]["facets"]["columnLineage"]["fields"].items()
    }
    table = f"{lake}/orders"
    assert ends == {"id": [(table, "id")], "total": [(table, "amount"), (table, "id")]}
    tested = project.ending(test)
    assert (names(tested["inputs"]), tested["outputs"]) == (names(sums["outputs"]), [])


def test_a_signal_aborts_what_runs(tmp_path: Path) -> None:
    project = Events(tmp_path)
    with pytest.raises(KeyboardInterrupt), project.events.of_run():
        project.recorder.started(project.nodes["orders"], 1, 1)
        raise KeyboardInterrupt
    assert [(one["eventType"], one["job"]["name"]) for one in project.told] == [
        ("START", "shop.build"),
        ("START", "shop.orders"),
        ("ABORT", "shop.orders"),
        ("ABORT", "shop.build"),
    ]


def test_a_run_goes_on_if_a_seed_that_it_does_not_read_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "seeds").mkdir()
    (tmp_path / "seeds/codes.csv").write_text("a,b\n1\n")
    project = Events(tmp_path)
    with project.events.of_run():
        project.node("orders", "success")
        project.run.results = []
    assert "columnLineage" not in project.ending("orders")["outputs"][0]["facets"]


def test_tables_in_a_catalog_have_its_names(tmp_path: Path) -> None:
    project = Events(tmp_path)
    catalog = SimpleNamespace(name="lake", schema="cdc")
    target = replace(project.run.project.target, catalog=catalog)  # type: ignore[arg-type]
    project.run.project = replace(project.run.project, target=target)
    with project.events.of_run():
        project.node("orders", "success")
        project.run.results = []
    assert names(project.ending("orders")["outputs"]) == [("prod", "lake.cdc.orders")]


# --- where they go


def test_they_are_posted_in_their_order(tmp_path: Path, serve: Callable[..., Server]) -> None:
    server = serve(201)
    project = Events(tmp_path, f"{{url: {server.url}, headers: {{X-Token: abc}}}}")
    with project.events.of_run():
        project.node("orders", "success")
        project.run.results = []
    assert [one["eventType"] for one in server.posted] == ["START", "START", "COMPLETE", "COMPLETE"]
    assert {one["job"]["namespace"] for one in server.posted} == {"shop"} and project.warnings == []
    assert {one["X-Token"] for one in server.headers} == {"abc"}


@pytest.mark.parametrize(
    ("codes", "posted", "why"),
    [([201, 422], 2, "the answer is 422 "), ([0], 1, "timed out"), ([201, 0], 2, "timed out")],
)
def test_nothing_is_tried_after_the_first_that_does_not_arrive(
    tmp_path: Path, serve: Callable[..., Server], codes: list[int], posted: int, why: str
) -> None:
    server = serve(*codes)
    project = Events(tmp_path, f"{{url: {server.url}, timeout: 0.5}}")
    with project.events.of_run():
        project.node("orders", "success")
        project.node("sums", "success")
        project.run.results = []
    (warning,) = project.warnings
    assert warning.code == "openlineage-unsent" and "secret-path" not in warning.message
    assert why in warning.message or "has not taken all of them" in warning.message
    assert len(server.posted) == posted


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file where a folder belongs")
    project = Events(tmp_path)
    with project.events.of_run():
        project.node("orders", "success")
        project.run.results = []
    assert [one.code for one in project.warnings] == ["openlineage-unsent"]


def test_without_the_key_there_are_no_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENLINEAGE_URL", raising=False)
    (block,) = [one for one in pages.section(ROOT / "docs/monitoring.md", "OpenLineage") if one.kind == "yaml"]
    key = block.text.partition("openlineage:")[2]
    project = Events(tmp_path, key)
    assert project.run.project.openlineage is None
    with project.events.of_run():
        project.node("orders", "success")
    monkeypatch.setenv("OPENLINEAGE_URL", "https://localhost/api/v1/lineage")
    place = Events(tmp_path, key).run.project.openlineage
    assert place and (place.namespace, place.file) == ("shop-prod", None)
