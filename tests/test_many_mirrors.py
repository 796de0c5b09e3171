"""A whole database by one rule: tables that come later, columns that come later, shards, and tables without changes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import pages
from tests.landed import Project

pytestmark = pytest.mark.usefixtures("spark", "interpreted")

RULES = """
mirrors:
  - tables: "depot.*"
    except: [depot.tmp_*, depot.part_*]
    of: {source: canal}
    name: "d_{table}"
    tables_like:
      orders: {history: true}
      log: {without_key: append}
  - tables: depot.part_[0-9]
    of: {source: canal}
    into: parts
"""
STORAGES: dict[str, dict[str, Any]] = {
    "parquet": {},
    "delta": {"storage": "delta"},
    "iceberg": {"storage": "iceberg", "catalog": {"type": "hadoop"}},
}
INT, TEXT = "int(11)", "varchar(20)"


class Messages:
    """Messages of Canal, one second after the other, a file for each run."""

    def __init__(self) -> None:
        self.seconds = 0

    def told(self, *changes: tuple[str, str, Mapping[str, str | None], Mapping[str, str]]) -> str:
        """The lines of changes, each a table, a kind, a row, and the types of its columns."""
        return "\n".join(self._line(*change) for change in changes) + "\n"

    def statement(self, table: str, sql: str) -> str:
        return self._told(table, type="ALTER", isDdl=True, sql=sql, data=None)

    def _line(self, table: str, kind: str, row: Mapping[str, str | None], types: Mapping[str, str]) -> str:
        keys = None if table == "log" else ["id"]
        old = [{}] if kind == "UPDATE" else None
        return self._told(table, type=kind, isDdl=False, data=[row], old=old, pkNames=keys, mysqlType=types)

    def _told(self, table: str, **more: Any) -> str:
        self.seconds += 1
        at = 1683008290000 + 1000 * self.seconds
        return json.dumps({"database": "depot", "table": table, "es": at, "ts": at, "id": self.seconds, **more})


def statuses(project: Project) -> dict[str, int | None]:
    """The number of rows that the last run wrote for each mirror; None for those of which nothing new had landed."""
    results = project.results.items()
    names = ("d_", "parts")
    return {name: one["adapter_response"]["rows"].get("rows") for name, one in results if name.startswith(names)}


@pytest.mark.parametrize("storage", ["parquet", pytest.param("delta", marks=pytest.mark.soak), "iceberg"])
def test_a_database_by_one_rule(tmp_path: Path, storage: str) -> None:
    canal, two, three = Messages(), {"id": INT, "s": TEXT}, {"id": INT, "s": TEXT, "n": "decimal(12,2)"}
    target = {"path": "lake", **STORAGES[storage]}
    settings = {"name": "many", "target": "t", "targets": {"t": target}}
    sources = [{"name": "canal", "format": "canal", "files": "in/*"}]
    first = canal.told(
        ("orders", "INSERT", {"id": "1", "s": "a"}, two),
        ("users", "INSERT", {"id": "1", "s": "u"}, two),
        ("log", "INSERT", {"id": "1", "s": "l"}, two),
        ("tmp_1", "INSERT", {"id": "1", "s": "t"}, two),
        ("part_1", "INSERT", {"id": "1", "s": "p"}, two),
        ("part_2", "INSERT", {"id": "1", "s": "q"}, two),
    )
    files = {"project.yml": yaml.safe_dump({**settings, "sources": sources}), "models/rules.yml": RULES}
    files["models/n.sql"] = "select count(*) as n from {{ ref('d_users') }}"
    project = Project(tmp_path, {**files, "in/1.jsonl": first})

    # The run that meets the tables makes their mirrors, and the models that read them; later commands know them.
    said = project.ok("build")
    assert "unmirrored" not in said and "warning[ref-waits]" in said
    assert project.statuses["n"] == "success" and project.rows("select n from n") == [{"n": 1}]
    assert statuses(project) == {"d_orders": 1, "d_orders_history": 1, "d_users": 1, "d_log": 1, "parts": 2}
    assert project.statuses["followed_d_users"] == "pass"
    assert project.rows("select _table, id, s from parts order by 1") == [
        {"_table": "depot.part_1", "id": 1, "s": "p"},
        {"_table": "depot.part_2", "id": 1, "s": "q"},
    ]
    assert {"d_orders", "d_orders_history", "fits_d_log", "parts"} <= {*project.run("ls").out.split()}
    manifest = json.loads((project / "target/manifest.json").read_text())
    assert "model.many.d_orders" in manifest["nodes"]

    # A new table and a new column are there after the run that meets them; other mirrors are not even looked at.
    second = canal.told(
        ("users", "INSERT", {"id": "2", "s": "v", "n": "1.50"}, three), ("late", "INSERT", {"id": "9", "s": "z"}, two)
    )
    project.write({"in/2.jsonl": second})
    project.ok("run")
    assert statuses(project) == {
        "d_orders": None,
        "d_orders_history": None,
        "d_log": None,
        "parts": None,
        "d_users": 2,
        "d_late": 1,
    }
    assert project.rows("select id, s, n from d_users order by id") == [
        {"id": 1, "s": "u", "n": None},
        {"id": 2, "s": "v", "n": "1.50"},
    ]
    assert project.rows("select n from n") == [{"n": 2}]

    # With nothing new, nothing is built.
    project.ok("run")
    assert set(statuses(project).values()) == {None}

    # A statement gives a column another name, and the mirror follows it before a row has the new name.
    third = canal.statement("orders", "alter table depot.orders change s t varchar(20)")
    project.write({"in/3.jsonl": third + "\n"})
    project.ok("run", "--exclude", "n")
    assert project.rows("select * except (_changed_at, _seq, _source, _in_parts, _untold, _unfit) from d_orders") == [
        {"id": 1, "t": "a"}
    ]
    project.write({"in/4.jsonl": canal.told(("part_2", "UPDATE", {"id": "1", "s": "r"}, two))})
    project.ok("run", "-s", "canal_to_changelog parts d_log")
    assert statuses(project) == {"parts": 2, "d_log": None}
    assert [row["s"] for row in project.rows("select s from parts order by _table")] == ["p", "r"]

    # A rule that is narrowed drops nothing: tables without a mirror stay, until a person removes them.
    project.write({"models/rules.yml": RULES.replace("depot.part_*]", "depot.part_*, depot.late, depot.orders]", 1)})
    assert project.run("ls", "--orphans").out.split() == ["d_late", "d_orders", "d_orders_history"]
    refused = project.run("clean", "--orphans")
    assert refused.code == 2 and "error[usage]: nothing was removed" in refused.err
    assert project.ok("clean", "--orphans", "--yes").endswith("removed 3 tables\n")
    assert project.run("ls", "--orphans").out == ""
    assert project.rows("select count(*) as n from d_users") == [{"n": 2}]
    project.write({"models/rules.yml": RULES})
    project.ok("run", "-s", "d_late d_orders")
    assert project.rows("select id from d_late") == [{"id": 9}]


def test_tables_that_no_mirror_has_are_named_once(tmp_path: Path) -> None:
    canal, types = Messages(), {"id": INT}
    lines = canal.told(*((f"t_{number}", "INSERT", {"id": "1"}, types) for number in range(8)))
    mirror = "mirrors:\n  - {name: own, of: {source: canal, table: depot.t_0}, key: [id], columns: {id: int}}\n"
    settings = "name: many\nsources:\n  - {name: canal, format: canal, files: in/*}\n"
    project = Project(tmp_path, {"project.yml": settings, "models/m.yml": mirror, "in/1.jsonl": lines})
    said = project.ok("run")
    assert said.count("unmirrored") == 1
    assert "warning[unmirrored]: 7 tables of source canal without a mirror: depot.t_1, depot.t_2" in said
    assert "hint: runner mirrors suggest --source canal" in said
    assert "unmirrored" not in project.ok("run", "-s", "own")
    wrote = project.run("mirrors", "suggest").out
    assert "wrote models/mirrors/canal.yml: a rule for 7 tables of source canal: runner run" in wrote
    project.ok("run", "-s", "t_1 t_7")
    assert project.rows("select id from t_7") == [{"id": 1}]
    assert "models/m.yml: as the data is" in project.run("mirrors", "suggest").out
    by_rule = project.run("ls", "-s", "path:models/mirrors/canal.yml", "--resource-type", "model").out.split()
    assert by_rule == [f"t_{number}" for number in range(1, 8)]


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first part of the page by its commands; its second rule is one that the project reads. What follows is in
    test_dumps_of_tables.py.
    """
    assert Project(tmp_path, {}).run("init", "demo").code == 0
    project, out = Project(tmp_path / "demo", {}), ""
    page = pages.ROOT / "docs/databases.md"
    blocks = [*pages.section(page, "Whole databases"), *pages.section(page, "What a rule says")]
    rule, *others = [block for block in blocks if block.kind == "yaml"]
    for block in blocks:
        if block is rule or block == rule:
            assert (project / block.name).read_text() == block.text
        elif block.kind == "text":
            assert out.strip() == block.text.strip()
        for words in pages.commands([block]):
            ran = project.run(*words)
            assert ran.code == 0, ran.err
            out = ran.out
    assert {"customers", "order_items", "orders"} <= project.statuses.keys()
    project.write({rule.name: others[0].text})
    assert {"shop_orders_history", "shop_customers"} <= {*project.run("ls").out.split()}
