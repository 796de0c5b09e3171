"""A part of a project: what failed runs again, models are built of nothing, tables of another run are read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.landed import Project, files_of
from tests.small_format import SMALL, message

pytestmark = pytest.mark.usefixtures("spark", "interpreted")

FILES = {**files_of("partial"), "formats/small.yml": SMALL, "in/1.jsonl": f"{message(1)}\n{message(2)}\n"}
FRAGILE = FILES["models/fragile.sql"]


class Nothing(NamedTuple):
    """What was built before anything had landed."""

    statuses: dict[str, str]
    tables: set[str]
    values: list[Any]


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory, spark: object, interpreted: None) -> tuple[Project, Nothing]:
    """Models built of nothing, and then their source landed."""
    project = Project(tmp_path_factory.mktemp("partial") / "project", FILES)
    project.ok("build", "--empty")
    built = project.statuses, project.tables("warehouse"), values(project, "counted", "sent", "grown", "above")
    project.ok("run", "-s", "orders_to_changelog")
    return project, Nothing(*built)


@pytest.fixture
def shop(landed: tuple[Project, Nothing]) -> Iterator[Project]:
    with landed[0].put_back():
        yield landed[0]


def values(project: Project, *models: str, words: tuple[str, ...] = ()) -> list[list[Any]]:
    """The values of the one column of each model."""
    columns = (f"(select sort_array(collect_list(struct(*))) from {{{{ ref('{one}') }}}}) as {one}" for one in models)
    (row,) = project.rows(f"select {', '.join(columns)}", *words)
    return [[value for found in row[model] for value in found.values()] for model in models]


def test_what_failed_runs_again_until_it_is_mended(shop: Project) -> None:
    shop.write({"models/counted.sql": "select 2 as n"})
    again = {"fragile": "error", "seen": "skipped", "above": "skipped", "not_null_above_n": "skipped"}
    assert shop.run("build", "-s", "+above", "sent", "--threads", "2").code == 1
    assert shop.statuses == {"counted": "success", "sent": "success", **again}
    how = json.loads((shop / "target/run_results.json").read_text())["args"]
    assert (how["which"], how["select"], how["threads"]) == ("build", ["+above", "sent"], 2)
    assert shop.run("retry").code == 1
    assert shop.statuses == again
    shop.write({"models/fragile.sql": FRAGILE.replace("n > 0", "n > 2")})
    assert '"build" again, of 4 nodes' in shop.ok("retry")
    assert shop.statuses == {**dict.fromkeys(again, "success"), "not_null_above_n": "pass"}
    assert values(shop, "above") == [[2]]
    assert "nothing to do" in shop.ok("retry")


def test_sources_with_new_messages(shop: Project) -> None:
    two = FILES["project.yml"].replace("]\n", ", {name: items, format: small, files: items/*}]\n")
    shop.write({"project.yml": two, "items/1.jsonl": message(1)})

    def fresher(*words: str) -> list[str]:
        ran = shop.run("ls", "-s", "source_status:fresher", *words)
        assert ran.code == 0, ran.err
        return list(ran.out.split())

    shutil.rmtree(shop / "target")
    assert shop.run("ls", "-s", "source_status:fresher").code == 2
    shop.ok("run", "-s", "orders_to_changelog")
    assert fresher() == ["source:items"]
    shop.ok("run", "-s", "items_to_changelog")
    assert fresher() == []
    shutil.copytree(shop / "target", shop / "before")
    for name, text in {"_2.jsonl": message(2), "3.jsonl": "", "4.jsonl": message(4)}.items():
        assert fresher() == []
        shop.write({f"items/{name}": text})
    assert fresher() == fresher("--state", "before") == ["source:items"]
    shop.ok("run", "-s", "source_status:fresher+1")
    assert set(shop.statuses) == {"items_to_changelog"}
    assert (fresher(), fresher("--state", "before")) == ([], ["source:items"])


def test_models_of_nothing_count_nothing_as_read(landed: tuple[Project, Nothing], shop: Project) -> None:
    built = landed[1]
    assert set(built.statuses) == {
        *("changelog", "control_events", "ddl_events", "dead_letters", "freshness", "freshness_by_table"),
        *("counted", "sent", "grown", "fragile", "seen", "above", "not_null_above_n"),
    }
    assert "orders_to_changelog" not in built.tables
    assert built.values == [[0], [0], [], []]
    shop.ok("run", "-s", "grown")
    shop.write({"in/2.jsonl": message(3)})
    shop.ok("run", "-s", "orders_to_changelog")
    shop.ok("run", "--empty", "-s", "grown")
    assert values(shop, "grown") == [["1", "2"]]
    shop.ok("run", "-s", "grown")
    assert values(shop, "grown") == [["1", "2", "3"]]


def test_what_is_not_here_is_read_elsewhere(shop: Project) -> None:
    shop.write({"models/fragile.sql": FRAGILE.replace("n > 0", "n > 9")})
    shop.ok("run", "-s", "counted", "fragile", "seen", "above")
    shutil.copytree(shop / "target", shop / "before")
    shop.write({"models/fragile.sql": FRAGILE.replace("n > 0", "n > 8").replace(", n)", ", n * 10)")})
    elsewhere = ("--defer", "--state", "before")
    changed = ("run", "-t", "dev", "-s", "state:modified+ grown")
    assert shop.run(*changed, "--state", "before").code == 1
    assert not (shop / "dev/above").exists()
    assert f'is read at "{shop.folder}/warehouse"' in shop.ok(*changed, *elsewhere)
    assert shop.statuses == dict.fromkeys(("fragile", "seen", "above", "grown"), "success")
    assert shop.tables("dev") == {"fragile", "above", "grown"}
    assert shop.run("show", "-s", "counted", "-t", "dev").code == 1
    assert values(shop, "counted", words=("-t", "dev", *elsewhere)) == [[2]]
    assert values(shop, "above", "grown", words=("-t", "dev")) == [[20], ["1", "2"]]
    assert values(shop, "above") == [[2]]
    # With the changelog of the other target, it goes on where it was.
    shop.write({"in/2.jsonl": message(3)})
    shop.ok("run", "-s", "orders_to_changelog")
    shop.ok("run", "-t", "dev", "-s", "grown", *elsewhere)
    assert values(shop, "grown", words=("-t", "dev")) == [["1", "2", "3"]]
