"""Only what changed: nodes are compared by what they consist of with those of an earlier run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from runner.commands import run as run_command
from runner.commands.arguments import RunArguments
from runner.run.workspace import Selection
from tests.landed import Project
from tests.pages import table

WRITTEN = table("state", yaml.CBaseLoader)
FILES, CHANGES = WRITTEN["files"], WRITTEN["changes"]
VIEWS = ("changelog", "control_events", "ddl_events", "dead_letters", "freshness", "freshness_by_table")


def edited(replace: Mapping[str, tuple[str, str]], write: Mapping[str, str] = {}) -> dict[str, str]:
    """The files of the project after a change."""
    assert all(FILES[name].count(old) == 1 for name, (old, _) in replace.items())
    return {**FILES, **write, **{name: FILES[name].replace(*texts) for name, texts in replace.items()}}


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The target folder of a project that was compiled elsewhere, before."""
    project = Project(tmp_path_factory.mktemp("before"), FILES)
    project.ok("compile")
    return project / "target"


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
    written = CHANGES[change]
    project(edited(written.get("replace", {}), written.get("write", {})))
    ran = later("ls", "--output", "json")
    nodes = [json.loads(line) for line in ran.out.splitlines()]
    assert {one["name"]: one["changed"] for one in nodes if one["changed"]} == written["modifies"]
    assert len(nodes) > 15


def test_parts_of_state_are_selected_alone(later: Callable[..., Any], project: Callable[..., Path]) -> None:
    files = edited(
        {
            "macros/money.sql": ("* 100", "* 1000"),
            "models/staging/lately.sql": ("*", "price"),
            "project.yml": (
                "unit: cent}\nmodels:\n  marts: {+materialized: table}",
                "unit: penny}\nmodels:\n  marts: {+materialized: incremental}",
            ),
        },
        {"models/extra.sql": "select 1 as one"},
    )
    project(files)
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
        "accept_loss": True,
        "unit_only": False,
        "data_only": False,
        "empty": True,
    }
    write_results(project(FILES) / "target", statuses, args=kept)
    asked: list[RunArguments] = []
    monkeypatch.setattr(run_command, "run_nodes", lambda _, arguments, __: asked.append(arguments) or 1)
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
