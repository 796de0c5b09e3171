"""Mirrors of tables without a key, and what a mirror says that it cannot follow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.landed import Project
from tests.test_site import data_of

pytestmark = pytest.mark.usefixtures("spark", "interpreted")
ROW_ID = "__#alibaba_rds_row_id#__"


class Canal:
    """The messages of Canal, one second after the other."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def rows(
        self, table: str, kind: str, *rows: Mapping[str, str], old: Mapping[str, str] | None = None, key: str = "id"
    ) -> None:
        types = {name: "int(11)" if name == "id" else "varchar(20)" for name in rows[0]}
        keys = [key] if key in rows[0] else None
        self._tell(table, kind, data=rows, old=[old] * len(rows) if old else None, pkNames=keys, mysqlType=types)

    def statement(self, sql: str, kind: str = "ALTER") -> None:
        self._tell("", kind, isDdl=True, sql=sql)

    def _tell(self, table: str, kind: str, **more: Any) -> None:
        second = 1683008290000 + 1000 * len(self.lines)
        told = {"data": None, "old": None, "isDdl": False, "sql": "", "pkNames": None, "mysqlType": None, **more}
        place = {
            "database": "depot",
            "table": table,
            "type": kind,
            "es": second,
            "ts": second,
            "id": len(self.lines) + 1,
        }
        self.lines.append(json.dumps({**told, **place}))


def landed(folder: Path, canal: Canal) -> Project:
    settings = {"name": "followed", "sources": [{"name": "canal", "format": "canal", "files": "in/*"}]}
    project = Project(folder, {"project.yml": yaml.safe_dump(settings), "in/1.jsonl": "\n".join(canal.lines)})
    project.ok("run", "-s", "canal_to_changelog changelog")
    return project


def mirrors(project: Project, **mirrors: Mapping[str, Any]) -> None:
    columns = {"id": "int", "s": "string"}
    told = [
        {"name": name, "of": {"source": "canal", "table": f"depot.{name}"}, "columns": columns, **settings}
        for name, settings in mirrors.items()
    ]
    project.write({"models/mirrors.yml": yaml.safe_dump({"mirrors": told})})


def test_tables_without_a_key(tmp_path: Path) -> None:
    canal = Canal()
    for table, ids in (("by_id", {ROW_ID: ("15", "16", "17")}), ("counted", {}), ("unnamed", {})):
        first, second, third = ({name: values[nth] for name, values in ids.items()} for nth in range(3))
        canal.rows(table, "INSERT", {"s": "a", **first}, {"s": "a", **second}, key=ROW_ID)
        canal.rows(table, "UPDATE", {"s": "b", **first}, old={"s": "a"}, key=ROW_ID)
        canal.rows(table, "INSERT", {"s": "a", **third}, key=ROW_ID)
        canal.rows(table, "DELETE", {"s": "a", **second}, key=ROW_ID)
    project = landed(tmp_path, canal)
    said = project.run("mirrors", "suggest", "--files")
    assert said.out.count("no change of this table tells a key, and the mirror has no rows") == 2, said.out
    path = tmp_path / "models/mirrors/counted.yml"
    path.write_text(path.read_text().replace("without_key: reject", "without_key: count"))
    # The same messages come again, as Canal sends them after it was ended.
    project.write({"in/2.jsonl": "\n".join(canal.lines[-3:])})
    assert project.run("build", "-s", "canal_to_changelog by_id counted unnamed", "--exclude", "conserved_*").code == 1
    assert project.rows("select rowid, s from by_id order by 1") == [
        {"rowid": "15", "s": "b"},
        {"rowid": "17", "s": "a"},
    ]
    assert project.rows("select s from counted order by s") == [{"s": "a"}, {"s": "b"}]
    assert project.rows("select * from unnamed") == []
    assert {name for name, status in project.statuses.items() if status == "fail"} == {"fits_unnamed"}
    assert "no key that is named here" in project.results["unnamed"]["message"]


def test_what_cannot_be_followed_fails_a_test(tmp_path: Path) -> None:
    canal, tables = Canal(), ("lost", "seen", "again", "emptied", "added")
    for table in tables:
        canal.rows(table, "INSERT", {"id": "1", "s": "a"}, {"id": "2", "s": "a"})
    for table in tables[:4]:
        canal.statement(f"alter table {table} truncate partition p0")
    canal.rows("again", "UPDATE", {"id": "1", "s": "b"}, {"id": "2", "s": "b"}, old={"s": "a"})
    canal.statement("truncate table emptied", "TRUNCATE")
    for table in ("lost", "seen", "emptied"):
        canal.rows(table, "INSERT", {"id": "3", "s": "c"})
    # Nobody tells the statement that adds this column.
    canal.rows("added", "INSERT", {"id": "3", "s": "c", "n": "x"})
    project = landed(tmp_path, canal)
    key = {"key": ["id"]}
    more = {"id": "int", "s": "string", "n": "string"}
    settings: dict[str, dict[str, Any]] = dict.fromkeys(tables, key)
    known = {"what": "statement", "through": "2023-05-02", "because": "the partition was empty"}
    settings["seen"] = {**key, "acknowledged": [{**known, "until": "9999-12-31"}]}
    # What was known for a time speaks again.
    settings["lost"] = {**key, "acknowledged": [{**known, "until": "2023-06-01"}]}
    settings["added"] = {**key, "columns": more}
    mirrors(project, **settings)
    built = project.run("build", "-s", " ".join(tables))
    assert built.code == 1
    assert project.results["followed_lost"]["message"].splitlines()[1:] == [
        "lost: statement, what: alter table lost truncate partition p0, why: truncate partition, source: canal, "
        "batch: 0, rows: 2"
    ]
    assert project.results["followed_added"]["message"].splitlines()[1:] == [
        "lost: column, what: n, why: no change tells what these rows have, rows: 2"
    ]
    assert {name for name, status in project.statuses.items() if status == "fail"} == {
        "followed_lost",
        "followed_added",
    }
    notes = {name: result["message"] or "" for name, result in project.results.items()}
    lost = "a statement cannot be followed (truncate partition)"
    assert {name for name, note in notes.items() if note.startswith(lost)} == {"lost", "again"}
    told = f"acknowledged until 9999-12-31 (the partition was empty): {lost}"
    assert {name for name, note in notes.items() if note.startswith(told)} == {"seen", "followed_seen"}
    assert project.statuses["followed_seen"] == "pass"
    project.ok("docs", "generate")
    assert told in json.dumps(data_of(tmp_path / "target/docs/index.html"))
    settings["added"] = {**key, "columns": {**more, "n": {"type": "string", "default": "d0"}}}
    settings["lost"] = {**key, "acknowledged": [{**known, "through": "2023-05-02T12:00:00Z"}]}
    mirrors(project, **settings)
    project.ok("build", "-s", "lost added")
    assert [row["n"] for row in project.rows("select n from added order by id")] == ["d0", "d0", "x"]
    settings["added"] = {**key, "columns": {**more, "n": {"type": "string", "default": None}}}
    mirrors(project, **settings)
    project.ok("build", "-s", "added")
    assert [row["n"] for row in project.rows("select n from added order by id")] == [None, None, "x"]


def test_what_is_acknowledged_of_columns_is_told_and_fails_nothing(tmp_path: Path) -> None:
    """Of a column that is not there, and of values that do not fit; what has ended, or came later, counts."""
    canal = Canal()
    canal.rows(
        "t", "INSERT", {"id": "1", "s": "a", "n": "x"}, {"id": "2", "s": "7", "n": "y"}, {"id": "k", "s": "8", "n": "y"}
    )
    canal.rows("t", "INSERT", {"id": "3", "s": "b", "n": "z"})
    project = landed(tmp_path, canal)
    typed = {"of": {"source": "canal", "table": "depot.t"}, "key": ["id"], "columns": {"id": "int", "s": "int"}}
    until = {"because": "it was so before", "until": "9999-12-31"}
    drift = {"what": "drift", "column": "N", **until}
    values = [{"what": "unfit", "column": one, **until} for one in ("s", "id")]
    second = datetime.fromtimestamp(json.loads(canal.lines[1])["es"] / 1000, timezone.utc).isoformat()
    ended = [{**one, "until": "2023-06-01"} for one in (drift, *values)]
    mirrors(
        project,
        known={**typed, "on_drift": "fail", "acknowledged": [drift, *values]},
        later={**typed, "acknowledged": [drift, {**values[0], "through": second}, values[1]]},
        ended={**typed, "acknowledged": ended},
        failed={**typed, "on_drift": "fail", "acknowledged": ended},
    )
    assert project.run("build", "-s", "known later ended failed").code == 1
    fits = {name: project.statuses[f"fits_{name}"] for name in ("known", "later", "ended")}
    assert fits == {"known": "pass", "later": "fail", "ended": "fail"} and project.statuses["failed"] == "error"
    told = "acknowledged until 9999-12-31 (it was so before): "
    drifted = 'the table has columns that the mirror does not have: "n"'
    notes = {name: (result["message"] or "").splitlines() for name, result in project.results.items()}
    lacks = "1 change tells no key of its type (id), and the mirror is without it"
    assert notes["known"] == [told + lacks, told + drifted]
    assert notes["ended"][0].startswith(f"{drifted}: give") and notes["ended"][1:] == [lacks]
    assert notes["fits_known"] == [
        f'{told}1 value of "id" does not fit',
        f'{told}2 values of "s" do not fit',
    ]
    shown = ["1 failing row", "id: 3, unfit_column: s, unfit_value: b"]
    told_later = [f'{told}1 value of "{column}" does not fit' for column in ("id", "s")]
    assert notes["fits_later"] == [*shown, *told_later]
    assert notes["fits_ended"][0] == "3 failing rows" and f"on_drift is fail, and {drifted}" in notes["failed"][0]


def test_statements_may_come_before_any_row(tmp_path: Path) -> None:
    canal = Canal()
    canal.statement("truncate table late", "TRUNCATE")
    project = landed(tmp_path, canal)
    mirrors(project, late={"key": ["id"]})
    project.ok("build", "-s", "late")
    assert project.rows("select id from late") == []
    canal.rows("late", "INSERT", {"id": "1", "s": "a"})
    project.write({"in/2.jsonl": canal.lines[-1]})
    project.ok("run", "-s", "canal_to_changelog late")
    assert project.rows("select id, s from late") == [{"id": 1, "s": "a"}]


def test_suggested_mirrors_lack_columns_that_are_gone_alone(tmp_path: Path) -> None:
    """Deletes of this source name the columns of the key, and updates not those whose values were not logged again."""

    def columns(*names: str) -> list[dict[str, Any]]:
        return [{"name": one, "type": "text", "value": "1"} for one in names]

    table = {"schema": "s", "table": "notes", "timestamp": "2024-05-01 03:00:00+00", "pk": columns("id")}
    told = [
        {"action": "I", **table, "columns": columns("id", "old", "big")},
        {"action": "I", **table, "columns": columns("id", "big")},
        {"action": "U", **table, "columns": columns("id", "new"), "identity": columns("id")},
        {"action": "D", **table, "identity": columns("id")},
    ]
    settings = {"name": "gone", "sources": [{"name": "live", "format": "wal2json", "files": "in/*"}]}
    lines = "\n".join(json.dumps(one) for one in told)
    project = Project(tmp_path, {"project.yml": yaml.safe_dump(settings), "in/1.jsonl": lines})
    project.ok("run", "-s", "live_to_changelog changelog")
    project.ok("mirrors", "suggest")
    (mirror,) = yaml.safe_load((project / "models/mirrors/notes.yml").read_text())["mirrors"]
    assert {*mirror["columns"]} == {"id", "big", "new"} and mirror["left_out"] == ["old"]
