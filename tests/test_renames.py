"""Sources, mirrors and models that get other names: what was kept goes on, whenever a run is killed, and nothing is
read again.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from runner.engine.files import LocalFiles
from runner.engine.renames import Moves, Rename
from runner.project.inputs import Target
from runner.run.workspace import ProjectArguments, Workspace
from runner.storage.parquet import Parquet
from tests.landed import Project
from tests.test_landing_again import FIRST, RIGHT, SECOND, WRONG, lines

if TYPE_CHECKING:
    from runner.engine.session import Spark

# --- the steps, without Spark


class Killed(BaseException):
    pass


class Interrupted(LocalFiles):
    """Files in which the call with this number, of those that change a file, is the last one."""

    def __init__(self, number: int) -> None:
        self.left = number

    def _count(self) -> None:
        if not self.left:
            raise Killed
        self.left -= 1

    def write(self, path: str, text: str) -> None:
        self._count()
        super().write(path, text)

    def remove(self, path: str) -> None:
        if Path(path).exists():
            self._count()
        super().remove(path)

    def move(self, path: str, to: str) -> None:
        self._count()
        super().move(path, to)


SOURCE, STATE = Rename("shop_to_changelog", "b_to_changelog", "source"), Rename("orders", "sales", "state")
POSITION = {"table": "x", "batch": 3}
PROGRESS = {"read": {"shop_to_changelog": POSITION, "other_to_changelog": POSITION}, "written": ["w"]}
BEGUN = {**PROGRESS, "next": {"shop_to_changelog": {**POSITION, "batch": 4}}, "before": []}
MARK = {"made_by": "hash", "told_parts": False, "numbered_in": None, "defaults": {}}
SEEN: dict[str, Any] = {"table": "x", "batch": 3, "statements": -1}
TABLE: dict[str, Any] = {"names": ["shop", "orders"], "key": [], "columns": []}


def entry(path: str) -> str:
    return json.dumps({"path": path, "batchId": 0})


def before(lake: Path) -> dict[str, str]:
    """The files of a warehouse: path -> text. A folder above has the name of the source too."""
    at = f"file://{lake}"
    return {
        "shop_to_changelog/_identity": "x",
        "shop_to_changelog/_spark_metadata/9.compact": f"v1\n{entry(f'{at}/shop_to_changelog/kind=row/a.parquet')}",
        "shop_to_changelog/_spark_metadata/10": f"v1\n{entry(f'{at}/shop_to_changelog/kind=ddl/b.parquet')}",
        "shop_to_changelog/_spark_metadata/.10.crc": "sum",
        "shop_to_changelog/kind=row/a.parquet": "rows",
        "_checkpoints/shop_to_changelog/metadata": '{"id": "1"}',
        "_checkpoints/shop_to_changelog/sources/0/0": f"v1\n{entry('file:///in/shop_to_changelog/again/1.jsonl')}",
        "_checkpoints/shop_to_changelog/sources/1/0": (
            f"v1\n{entry(f'{at}/_checkpoints/shop_to_changelog/again/r1/p.parquet')}"
        ),
        "_checkpoints/shop_to_changelog/sources/1/.0.crc": "sum",
        "_checkpoints/shop_to_changelog/again/r1/p.parquet": "rows",
        "_checkpoints/orders/_progress.json": json.dumps(PROGRESS),
        "_checkpoints/orders/_mark": json.dumps(MARK),
        "_checkpoints/daily/_progress.json": json.dumps(BEGUN),
        "_checkpoints/daily/_mark": "partitions by day",
        "_checkpoints/other/_progress.json": json.dumps({"read": {"other_to_changelog": POSITION}, "written": []}),
        "_refreshes/shop_to_changelog": "run 1",
        "_refreshes/orders": "run 2",
        "_results/shop/_SUCCESS": "",
        "_results/shop/part.parquet": "rows",
        "_tables_seen/shop.json": json.dumps({**SEEN, "source": "shop", "tables": [{**TABLE, "source": "shop"}]}),
        "orders/_SUCCESS": "",
        "orders/part-0": "rows",
        "orders.building/part-1": "half of a table",
        "orders__gone/_SUCCESS": "",
        "shop/part-0": "a table of the same name as the source",
    }


def after(lake: Path) -> dict[str, Any]:
    """The same files after both renames, those in JSON as values."""
    at = f"file://{lake}"
    names = {"b_to_changelog": "shop_to_changelog"}

    def read(progress: Mapping[str, Any]) -> dict[str, Any]:
        return json.loads(json.dumps(progress).replace("shop_to_changelog", "b_to_changelog"))

    return {
        "b_to_changelog/_identity": "x",
        "b_to_changelog/_spark_metadata/9.compact": f"v1\n{entry(f'{at}/b_to_changelog/kind=row/a.parquet')}",
        "b_to_changelog/_spark_metadata/10": f"v1\n{entry(f'{at}/b_to_changelog/kind=ddl/b.parquet')}",
        "b_to_changelog/kind=row/a.parquet": "rows",
        "_checkpoints/b_to_changelog/metadata": {"id": "1"},
        "_checkpoints/b_to_changelog/_names.json": {"now": "b", "landed": "shop"},
        "_checkpoints/b_to_changelog/sources/0/0": f"v1\n{entry('file:///in/shop_to_changelog/again/1.jsonl')}",
        "_checkpoints/b_to_changelog/sources/1/0": (
            f"v1\n{entry(f'{at}/_checkpoints/b_to_changelog/again/r1/p.parquet')}"
        ),
        "_checkpoints/b_to_changelog/again/r1/p.parquet": "rows",
        "_checkpoints/sales/_progress.json": read(PROGRESS),
        "_checkpoints/sales/_mark": {**MARK, "named": {**names, "sales": "orders"}},
        "_checkpoints/daily/_progress.json": read(BEGUN),
        "_checkpoints/daily/_mark": "partitions by day",
        "_checkpoints/other/_progress.json": {"read": {"other_to_changelog": POSITION}, "written": []},
        "_refreshes/b_to_changelog": "run 1",
        "_refreshes/sales": "run 2",
        "_results/b/_SUCCESS": "",
        "_results/shop/part.parquet": "rows",
        "_tables_seen/b.json": {
            **SEEN,
            "source": "b",
            "tables": [
                {
                    **TABLE,
                    "source": "b",
                    "changes": 0,
                    "without_key": 0,
                    "partial": 0,
                    "has_row_ids": False,
                    "batch": -1,
                    "is_new": False,
                }
            ],
        },
        "sales/_SUCCESS": "",
        "sales/part-0": "rows",
        "sales__gone/_SUCCESS": "",
        "shop/part-0": "a table of the same name as the source",
    }


def files_in(lake: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in (path for path in lake.rglob("*") if path.is_file()):
        text = path.read_text()
        found[str(path.relative_to(lake))] = json.loads(text) if text.startswith("{") else text
    return found


def moved(lake: Path, files: LocalFiles) -> None:
    target = Target("t", str(lake))
    moves = Moves(files, Parquet(None, files, target, None), target, lake / "_tables_seen")
    for rename in (SOURCE, STATE):
        for step in moves.steps(rename):
            step()


def test_steps_are_finished_whenever_they_were_interrupted(tmp_path: Path) -> None:
    """All steps run again after each number of changes of files."""
    lake = tmp_path / "shop_to_changelog/lake"
    for number in range(100):
        shutil.rmtree(lake, ignore_errors=True)
        for name, text in before(lake).items():
            LocalFiles().write(f"{lake}/{name}", text)
        try:
            moved(lake, Interrupted(number))
        except Killed:
            moved(lake, LocalFiles())
            assert files_in(lake) == after(lake), number
        else:
            assert files_in(lake) == after(lake)
            assert number > 20
            return
    pytest.fail("it never ends")


def test_a_name_after_a_name(tmp_path: Path) -> None:
    """What is recorded of the first name stays; twice is as once."""
    target, mark = Target("t", str(tmp_path)), tmp_path / "_checkpoints/c/_mark"
    moves = Moves(LocalFiles(), Parquet(None, LocalFiles(), target, None), target, tmp_path)
    LocalFiles().write(str(tmp_path / "_checkpoints/a/_mark"), json.dumps(MARK))
    for rename in [Rename("a", "b", "model"), *[Rename("b", "c", "model")] * 2]:
        for step in moves.steps(rename):
            step()
    assert json.loads(mark.read_text())["named"] == {"c": "a"}


def test_a_history_has_the_name_of_its_mirror() -> None:
    history = Rename("orders_history", "sales_history", "history")
    assert history.named == ("orders", "sales")
    assert history.tables == [
        ("orders_history", "sales_history"),
        ("orders_history__known", "sales_history__known"),
    ]
    assert (str(SOURCE), str(STATE)) == ('the source "shop" is "b" now', 'the table "orders" is "sales" now')


# --- projects, without Spark


def test_a_rule_knows_the_tables_of_the_name_before(tmp_path: Path) -> None:
    """Before any run has moved anything, a rule makes the mirrors of what its source had landed as `shop`."""
    rule = {
        "tables": "shop.*",
        "of": {"source": "store"},
        "name": "s_{table}",
        "renamed_from": ["{source}_{table}", "o"],
    }
    column = {"name": "id", "type": "int", "earlier": list[str]()}
    table = {**TABLE, "source": "shop", "key": ["id"], "columns": [column], "batch": 3}
    files = {
        "project.yml": "sources: [{name: store, renamed_from: shop, format: canal, files: in/*}]\n",
        "models/m.yml": json.dumps({"mirrors": [rule | {"history": True}]}),
        "warehouse/_tables_seen/shop.json": json.dumps({**SEEN, "source": "shop", "tables": [table]}),
    }
    made = Project(tmp_path, files)
    former = Workspace(ProjectArguments(made.folder)).graph.former_tables
    names = {old: node.name for old, node in former.items()}
    assert names == {
        "shop_to_changelog": "store_to_changelog",
        "store_orders": "s_orders",
        "o": "s_orders",
        "store_orders_history": "s_orders_history",
        "o_history": "s_orders_history",
    }
    assert made.run("check").code == 0


# --- whole runs

used = pytest.mark.usefixtures("spark", "interpreted", "lean")
MIRRORS = """
mirrors:
  - name: {mirror}
    {former}
    of: {{source: {source}, table: shop.orders}}
    key: [id]
    columns: {{id: int, n: int}}
    history: true
    data_tests: [mirrored]
"""
CHANGES = """
{{ config(materialized='incremental', renamed_from=[%s]) }}
select source, key_text, op from {{ new_rows('changelog') }}
"""
DIRECT = """
{{ config(materialized='incremental') }}
select source, key_text, op from {{ new_rows('%s_to_changelog') }} where kind = 'row'
"""


def named(target: str, source: str, mirror: str, model: str, former: Mapping[str, str] = {}) -> dict[str, str]:
    """The files of a project with these names."""
    told = {what: f"renamed_from: [{names}]" for what, names in former.items()}
    limits = f"dead_letters: {{warn: null, fail: null}}{', ' if 'source' in told else ''}{told.get('source', '')}"
    return {
        "project.yml": f"name: p\ntarget: t\ntargets: {{t: {target}}}\nsources:\n"
        f"  - {{name: {source}, format: mine, files: in/*, {limits}}}\n",
        "models/m.yml": MIRRORS.format(mirror=mirror, source=source, former=told.get("mirror", "")),
        f"models/{model}.sql": CHANGES % ", ".join(f"'{name}'" for name in former.get("model", "").split() if name),
        "models/direct.sql": DIRECT % source,
    }


def renamed(made: Project, target: str, *names: str, **former: str) -> None:
    for path in (made / "models").glob("*.sql"):
        path.unlink()
    made.write(named(target, *names, former=former))


def table_rows(made: Project, source: str, mirror: str, model: str) -> dict[str, list[dict[str, Any]]]:
    """All that people see, without the name of the source, after that name was looked at."""
    own = "select * except (source) from"
    queries = {
        "changelog": f"{own} changelog order by seq",
        "direct": f"{own} {source}_to_changelog order by seq, kind",
        "letters": f"{own} dead_letters order by seq",
        "freshness": f"{own} freshness",
        "mirror": f"select * except (_source) from {mirror} order by id",
        "history": f"select * except (_source) from {mirror}_history order by id, valid_from",
        "model": f"{own} {model} order by all",
        "incremental": f"{own} direct order by all",
    }
    for view in ("changelog", "dead_letters", "freshness", f"{source}_to_changelog"):
        assert made.rows(f"select distinct source from {view}") == [{"source": source}], view
    return {name: made.rows(sql) for name, sql in queries.items()}


def target_of(storage: str, folder: Path) -> str:
    catalogs = {
        "parquet": "{schema: renamed_parquet}",
        "delta": "{schema: renamed_delta}",
        "iceberg": f"{{name: renamed, type: jdbc, uri: 'jdbc:sqlite:{folder}/catalog.db', warehouse: {folder}/lake, "
        "schema: s, jdbc.schema-version: V1}",
    }
    return f"{{storage: {storage}, path: lake, catalog: {catalogs[storage]}}}"


def test_a_store_that_renames_file_by_file_goes_on(tmp_path: Path, spark: Spark) -> None:
    from runner.engine.files import HadoopFiles

    files = HadoopFiles(spark.jvm, spark.session._jsc.hadoopConfiguration())
    for name, text in {"a/1": "new", "a/b/2": "new", "a/b/3": "new", "c/b/2": "half", "c/4": "moved"}.items():
        LocalFiles().write(f"{tmp_path}/{name}", text)
    files.move(f"file://{tmp_path}/a", f"file://{tmp_path}/c")
    told = {name: text for name, text in files_in(tmp_path).items() if not name.endswith(".crc")}
    assert told == {"c/1": "new", "c/b/2": "new", "c/b/3": "new", "c/4": "moved"}


@used
@pytest.mark.parametrize("storage", ["parquet", pytest.param("delta", marks=pytest.mark.soak), "iceberg"])
def test_other_names(tmp_path: Path, storage: str, spark: Spark) -> None:
    target = target_of(storage, tmp_path)
    first, second = ("shop", "orders", "changes"), ("store", "sales", "events")
    made = Project(tmp_path, {**named(target, *first), "formats/mine.yml": WRONG, "in/1.jsonl": lines(*FIRST)})
    made.ok("run")
    made.write({"formats/mine.yml": RIGHT})
    # Messages that have landed once more come from files beside the checkpoint, whose paths change too.
    made.ok("dead-letters", "land")
    rows = table_rows(made, *first)
    assert [(row["id"], row["n"]) for row in rows["mirror"]] == [(1, 5), (2, 6), (3, 7)]
    assert len(rows["incremental"]) == len(rows["model"]) == 3 and len(rows["letters"]) == 1

    renamed(made, target, *second, source="shop", mirror="orders", model="changes")
    assert made.run("ls", "--orphans").out == ""
    waits = made.run("show", "--inline", "select 1 as one")
    assert (
        waits.code == 0
        and waits.err.count("warning[rename-waits]") == 4
        and (made / "lake/_checkpoints/orders").exists()
    )
    said = made.ok("run")
    for line in (
        'source "shop" is "store"',
        'table "orders_history" is "sales_history"',
        'table "changes" is "events"',
    ):
        assert f"the {line} now" in said
    assert "built again" not in said
    written = {name: one["adapter_response"]["rows"] for name, one in made.results.items()}
    assert written["store_to_changelog"]["messages"] == 0 and written["sales"] == written["sales_history"] == {}
    assert rows == table_rows(made, *second)
    assert made.run("ls", "--orphans").out == "" and " is " not in made.ok("run", "-s", "sales")

    # A name after a name, and new messages: each lands once, and everything takes it in once.
    made.write({"in/2.jsonl": lines(*SECOND)})
    third = ("outlet", "deals", "events")
    renamed(made, target, *third, source="store, shop", mirror="sales, orders", model="changes")
    said = made.ok("run")
    assert "built again" not in said
    rows = table_rows(made, *third)
    assert [(row["id"], row["n"]) for row in rows["mirror"]] == [(1, 5), (2, 60), (3, 7), (4, 9)]
    assert [row["id"] for row in rows["history"]] == [1, 2, 2, 3, 4]
    assert len(rows["changelog"]) == len(rows["incremental"]) == len(rows["model"]) == 5
    made.ok("test")
    there = catalog_tables(spark, storage, tmp_path)
    assert there >= {"outlet_to_changelog", "deals", "deals_history", "events", "changelog"}
    assert not {name for name in there if name.startswith(("shop", "store", "orders", "sales", "changes"))}


def catalog_tables(spark: Spark, storage: str, folder: Path) -> set[str]:
    """The names of all tables and views in the catalog, which this session may not know."""
    if storage == "iceberg":
        with closing(sqlite3.connect(folder / "catalog.db")) as catalog:
            return {name for (name,) in catalog.execute("select table_name from iceberg_tables")}
    told = [spark.session.sql(f"show {what} in renamed_{storage}").collect() for what in ("tables", "views")]
    return {row[1] for rows in told for row in rows}


# Ends the process as if its machine had gone, in the middle of a rename.
KILLED = """
import os, signal, sys
from runner.cli import main
from runner.engine.renames import Moves
Moves._result = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
main(sys.argv[1:])
"""


@used
@pytest.mark.engines
def test_a_killed_run_is_finished_by_the_next(tmp_path: Path) -> None:
    target, first, second = "{path: lake}", ("shop", "orders", "changes"), ("store", "sales", "events")
    made = Project(tmp_path, {**named(target, *first), "formats/mine.yml": RIGHT, "in/1.jsonl": lines(*FIRST)})
    made.ok("run")
    rows = table_rows(made, *first)
    renamed(made, target, *second, source="shop", mirror="orders", model="changes")
    words = [sys.executable, "-c", KILLED, "--project-dir", str(tmp_path), "run"]
    assert subprocess.run(words, stderr=subprocess.DEVNULL).returncode == -signal.SIGKILL
    assert (made / "lake/store_to_changelog").exists() and (made / "lake/orders").exists()
    assert len(list((made / "lake/_renames").iterdir())) == 4
    waits = made.run("show", "--inline", "select 1 as one")
    assert waits.code == 0 and waits.err.count("warning[rename-waits]") == 4
    said = made.ok("run")
    assert "nothing new" in said and "has changed" not in said and "built again" not in said
    assert 'source "shop" is "store" now' in said and not os.listdir(made / "lake/_renames")
    assert rows == table_rows(made, *second)
    made.ok("test")


@used
def test_the_command_and_what_it_refuses(tmp_path: Path) -> None:
    target, first, second = "{path: lake}", ("shop", "orders", "changes"), ("store", "sales", "changes")
    made = Project(tmp_path, {**named(target, *first), "formats/mine.yml": RIGHT, "in/1.jsonl": lines(*FIRST)})
    made.ok("run", "-s", "shop_to_changelog", "orders", "orders_history")
    renamed(made, target, *second)
    tables = ["orders -> sales", "orders__gone -> sales__gone"]
    tables += ["orders_history -> sales_history", "orders_history__known -> sales_history__known"]
    assert made.run("rename", "orders", "sales", "--dry-run").out.splitlines() == tables
    assert made.run("ls", "--orphans").out.split() == ["orders", "orders_history", "shop_to_changelog"]
    ran = made.run("rename", "orders", "sales")
    assert ran.code == 0 and ran.out.splitlines() == tables
    assert made.run("rename", "shop", "store").out == "shop_to_changelog -> store_to_changelog\n"
    assert [row["n"] for row in made.rows("select n from sales order by id")] == [5, 6, 7]
    again = made.run("rename", "orders", "sales")
    assert again.code == 2 and "error[rename-name]: there is no table" in again.err

    # Two tables, of which nobody knows which one is right: nothing is moved.
    shutil.copytree(made / "lake/sales", made / "lake/orders")
    renamed(made, target, *second, mirror="orders")
    both = made.run("run")
    assert both.code == 2 and "error[rename-both]" in both.err and "--> models/m.yml:3:5" in both.err
    assert f'"{made / "lake/orders"}" and "{made / "lake/sales"}"' in both.err
    assert made.tables("lake") >= {"orders", "sales"}
    renamed(made, target, *second)
    made.ok("run", "-s", "sales")


@used
@pytest.mark.engines
def test_a_catalog_that_renames_no_tables(tmp_path: Path) -> None:
    target = "{storage: iceberg, path: lake, catalog: {name: fixed, type: hadoop}}"
    first, second = ("shop", "orders", "changes"), ("store", "sales", "events")
    made = Project(tmp_path, {**named(target, *first), "formats/mine.yml": RIGHT, "in/1.jsonl": lines(*FIRST)})
    made.ok("run")
    renamed(made, target, *second, source="shop", mirror="orders", model="changes")
    refused = made.run("run")
    assert refused.code == 2 and "error[rename-refused]" in refused.err and not os.listdir(made / "lake/_renames")
    renamed(made, target, *first)
    made.ok("run")
    assert made.statuses["shop_to_changelog"] == "success"
    assert [row["n"] for row in made.rows("select n from orders order by id")] == [5, 6, 7]
