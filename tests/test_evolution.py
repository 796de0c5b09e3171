"""Tables of mirrors that get columns and wider types as they stand, where the storage can."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from runner.project.inputs import Source
from runner.project.mirror import Mirror, MirrorColumn, MirroredTable, MirrorQuery
from runner.run.evolution import columns_changed, with_statements
from runner.run.statements import Effect
from runner.storage.data import Layout, Part
from runner.storage.delta import Delta
from runner.storage.iceberg import Iceberg
from runner.storage.storage import Storage
from tests.landed import Project
from tests.test_many_mirrors import INT, STORAGES, TEXT, Messages

RULES = """
mirrors:
  - {tables: [depot.t, depot.plain], of: {source: canal}, history: true}
  - {tables: s.listed, of: {source: debezium}, history: true, key: [id]}
"""
# What people write themselves.
OWN = """
  - {{name: own, of: {{source: canal, table: depot.own}}, key: [id], history: true, columns: {{id: int, {columns}}}}}
"""
MIRRORS = ("t", "plain", "own", "listed")


class Debezium:
    """Messages of Debezium's connector for PostgreSQL, whose schema tells the columns and their defaults."""

    def __init__(self) -> None:
        self.number = 0

    def told(self, op: str, row: Mapping[str, Any], *fields: Mapping[str, Any]) -> str:
        self.number += 1
        columns = [{"field": "id", "type": "int32", "optional": False}, *fields]
        source = {"connector": "postgresql", "db": "d", "schema": "s", "table": "listed", "lsn": self.number}
        source |= {"ts_ms": 1683008290000 + self.number, "sequence": f'["1","{self.number}"]'}
        schema = {"type": "struct", "fields": [{"type": "struct", "field": "after", "fields": columns}]}
        payload = {"op": op, "before": None, "after": row, "source": source, "ts_ms": source["ts_ms"]}
        return json.dumps({"schema": schema, "payload": payload}) + "\n"


def field(name: str, kind: str = "int32", **more: Any) -> dict[str, Any]:
    return {"field": name, "type": kind, "optional": True, **more}


def project(folder: Path, storage: str) -> Project:
    target = {"path": "lake", **STORAGES[storage]}
    settings = {"name": "many", "target": "t", "targets": {"t": target}}
    sources = [{"name": name, "format": name, "files": f"{name}/*"} for name in ("canal", "debezium")]
    rules = RULES + OWN.format(columns="v: tinyint")
    return Project(folder, {"project.yml": yaml.safe_dump({**settings, "sources": sources}), "models/r.yml": rules})


def column(made: Project, mirror: str, name: str) -> dict[int, Any]:
    return {row["id"]: row[name] for row in made.rows(f"select id, `{name}` from {mirror}")}


def versions(made: Project, mirror: str, name: str) -> list[tuple[Any, ...]]:
    """The versions of rows in their order, each as its key, the value in a column, and whether it is current."""
    rows = made.rows(f"select id, `{name}` as v, is_current from {mirror}_history order by id, valid_from")
    return [tuple(row.values()) for row in rows]


def notes(said: str, mirror: str) -> str:
    """What a run says of a mirror besides its rows."""
    lines = said.splitlines()
    at = next(nth for nth, line in enumerate(lines) if f" OK table model {mirror} " in line)
    return "\n".join(lines[at : at + 5])


def whole(made: Project) -> dict[str, list[dict[str, Any]]]:
    """All rows of all tables, with their columns in order."""
    names = [name + end for name in MIRRORS for end in ("", "_history")]
    return {name: [list(row.items()) for row in made.rows(f"select * from {name} order by id, _seq")] for name in names}


@pytest.mark.engines
@pytest.mark.usefixtures("spark", "interpreted")
@pytest.mark.parametrize("storage", ["delta", "iceberg"])
def test_columns_that_come_and_types_that_widen(tmp_path: Path, storage: str) -> None:
    """In the end each table is as it is when it is built from all changes."""
    canal, debezium, made = Messages(), Debezium(), project(tmp_path, storage)
    two, own = {"id": INT, "s": TEXT, "d": "decimal(6,2)"}, {"id": INT, "v": INT, "w": TEXT}
    first = [
        *(("t", "INSERT", {"id": str(nth), "s": "a", "d": f"{nth}.50"}, two) for nth in (1, 2, 3)),
        ("plain", "INSERT", {"id": "1", "s": "p", "d": "1.00"}, two),
        ("own", "INSERT", {"id": "1", "v": "100", "w": "x"}, own),
        ("own", "INSERT", {"id": "2", "v": "1000", "w": "y"}, own),
        ("own", "UPDATE", {"id": "1", "v": "100", "w": "z"}, own),
        ("own", "INSERT", {"id": "3", "v": "3", "w": None}, own),
    ]
    rows = [debezium.told("c", {"id": nth, "a": nth}, field("a")) for nth in (1, 2)]
    made.write({"canal/1.jsonl": canal.told(*first), "debezium/1.jsonl": "".join(rows)})
    made.ok("run")
    assert column(made, "own", "v") == {1: 100, 2: None, 3: 3}

    # A statement adds a column with a default, between others; a column comes without any; messages name a default.
    three = {"id": INT, "n": INT, "s": TEXT, "d": "decimal(6,2)"}
    added = canal.statement("t", "alter table depot.t add column n int default 7 after id") + "\n"
    second = [
        ("t", "UPDATE", {"id": "1", "n": "8", "s": "a", "d": "1.50"}, three),
        ("t", "INSERT", {"id": "4", "n": "9", "s": "d", "d": "4.50"}, three),
        ("plain", "INSERT", {"id": "2", "s": "q", "d": "2.00", "x": "new"}, {**two, "x": TEXT}),
    ]
    fields = field("a"), field("b", default=5), field("c")
    rows = [debezium.told("u", {"id": 1, "a": 1, "b": 6, "c": None}, *fields)]
    # A person asks for a column that was told from the beginning, and for a wider type.
    made.write({
        "canal/2.jsonl": added + canal.told(*second),
        "debezium/2.jsonl": "".join(rows),
        "models/r.yml": RULES + OWN.format(columns="v: int, w: string, z: {type: string, default: none}"),
    })  # fmt: skip
    said = made.ok("run")
    assert 'added in place: "n" bigint' in notes(said, "t") and 'added in place: "n" bigint' in notes(said, "t_history")
    assert 'added in place: "x" string' in notes(said, "plain")
    assert 'added in place: "w" string, "z" string' in notes(said, "own") + said
    assert 'widened in place: "v" to int' in notes(said, "own_history")
    assert 'added in place: "b" bigint, "c" bigint' in notes(said, "listed") and "built again" not in said, said
    assert column(made, "t", "n") == {1: 8, 2: 7, 3: 7, 4: 9}
    assert versions(made, "t", "n") == [(1, 7, False), (1, 8, True), (2, 7, True), (3, 7, True), (4, 9, True)]
    assert column(made, "plain", "x") == {1: None, 2: "new"}
    assert column(made, "own", "v") == {1: 100, 2: 1000, 3: 3} and set(column(made, "own", "z").values()) == {"none"}
    assert versions(made, "own", "w") == [(1, "x", False), (1, "z", True), (2, "y", True), (3, None, True)]
    assert column(made, "listed", "b") == {1: 6, 2: 5}
    assert versions(made, "listed", "b") == [(1, 5, False), (1, 6, True), (2, 5, True)]
    assert column(made, "listed", "_untold") == {1: None, 2: ["c"]}

    # A type takes more digits, and so do values of rows that are there; a statement changes it once more.
    wide = {**three, "d": "decimal(9,2)"}
    third = [("t", "UPDATE", {"id": "2", "n": "7", "s": "b", "d": "1234567.25"}, wide)]
    made.write({"canal/3.jsonl": canal.told(*third)})
    said = made.ok("run")
    assert 'widened in place: "d" to decimal(9,2)' in notes(said, "t"), said
    assert column(made, "t", "d") == {1: "1.50", 2: "1234567.25", 3: "3.50", 4: "4.50"}
    assert "nothing new" in made.ok("run")

    # A type that the storage cannot take into another one: the table is built again.
    made.write(
        {"canal/4.jsonl": canal.told(("t", "UPDATE", {"id": "3", "n": "x", "s": "b", "d": "1"}, {**wide, "n": TEXT}))}
    )
    said = made.ok("run")
    assert 'built again: "n" is string now, and was bigint' in notes(said, "t"), said
    assert column(made, "t", "n") == {1: "8", 2: "7", 3: "x", 4: "9"}

    in_place = whole(made)
    made.ok("run", "--full-refresh", "-s", *(f"{name} {name}_history" for name in MIRRORS))
    assert in_place == whole(made)


@pytest.mark.parametrize(
    ("storage", "kind", "wider", "expected"),
    [
        (Delta, "int", "bigint", True),
        (Delta, "bigint", "int", False),
        (Delta, "decimal(10,2)", "decimal(12,2)", True),
        (Delta, "decimal(10,2)", "decimal(12,4)", True),
        (Delta, "decimal(10,2)", "decimal(11,4)", False),
        (Delta, "bigint", "decimal(20,0)", True),
        (Delta, "bigint", "decimal(19,0)", False),
        (Delta, "date", "timestamp_ntz", True),
        # 0.1 as a float is another number than 0.1 as a double.
        (Delta, "float", "double", False),
        (Delta, "int", "string", False),
        (Iceberg, "tinyint", "smallint", True),
        (Iceberg, "smallint", "bigint", True),
        (Iceberg, "decimal(10,2)", "decimal(12,2)", True),
        (Iceberg, "decimal(10,2)", "decimal(12,4)", False),
        (Iceberg, "bigint", "decimal(20,0)", False),
        (Iceberg, "float", "double", False),
    ],
)
def test_types_that_a_storage_widens(storage: type[Storage], kind: str, wider: str, expected: bool) -> None:
    assert storage.widens(storage.__new__(storage), kind, wider) is expected


# --- what can be done


def query(where: str = "", layout: Layout | None = None, **columns: MirrorColumn) -> MirrorQuery:
    """A mirror with the key `id` and these columns."""
    made = [replace(column, name=name, is_key=name == "id") for name, column in columns.items()]
    tables = (MirroredTable(cast(Source, SimpleNamespace(name="s")), ("t",)),)
    return MirrorQuery(Mirror("m", tables, ("id",), tuple(made), where=where), "state", layout or Layout())


def of(kind: str, **more: Any) -> MirrorColumn:
    return MirrorColumn("", kind, **more)


HAD = {"id": of("int"), "a": of("int"), "b": of("string")}


@pytest.mark.parametrize(
    ("has", "refused"),
    [
        ({"id": of("int"), "a": of("int")}, 'no longer has "b"'),
        ({**HAD, "id": of("bigint")}, '"id" is bigint now, and was int'),
        ({**HAD, "b": of("int")}, '"b" is int now, and was string'),
        ({**HAD, "a": of("int", sent_as=("x",))}, '"a" is sent or filled otherwise'),
        ({**HAD, "a": of("int", has_default=True, default="1")}, '"a" is sent or filled otherwise'),
        ({**HAD, "a": of("bigint"), "c": of("string", has_default=True)}, ""),
    ],
)
def test_what_columns_become_in_place(has: Mapping[str, MirrorColumn], refused: str) -> None:
    def widens(kind: str, wider: str) -> bool:
        return (kind, wider) == ("int", "bigint")

    found = columns_changed(query(**HAD), query(**has), widens)
    assert found.refused == refused
    assert ([one.name for one in found.added], [one.name for one in found.widened]) == (
        ([], []) if refused else (["c"], ["a"])
    )
    # An expression that chooses rows may mean others then.
    assert columns_changed(query("a > 1", **HAD), query("a > 1", **has), widens).refused
    # A table that gets all columns that come has some that it is to be without now.
    was, now = (replace(one, mirror=replace(one.mirror, on_drift="add")) for one in (query(**HAD), query(**has)))
    assert columns_changed(was, replace(now, mirror=replace(now.mirror, left_out=("x",))), widens).refused
    by_a = Layout(partition_by=(Part("a"),))
    assert columns_changed(query(layout=by_a, **HAD), query(layout=by_a, **has), widens).refused


@pytest.mark.parametrize(
    ("does", "batch", "refused", "told"),
    [
        ({"empties": True}, 1, "", False),
        ({"empties": True}, 2, "a statement empties it", False),
        ({}, 2, "a statement gives a column or the table another name", False),
        ({"told": {"a": "7"}}, 2, "", True),
        # The mirror has read this statement; but not for a column that it has only now.
        ({"told": {"a": "7"}}, 1, "", False),
        ({"told": {"c": "7"}}, 1, "", True),
        ({"renamed": {"x": "c"}}, 1, "a statement gives a column or the table another name", False),
        ({"renamed": {"x": "y"}}, 2, "", False),
        ({"told": {"x": "7"}}, 2, "", False),
        # A row keeps its key.
        ({"told": {"id": None}}, 2, "", False),
    ],
)
def test_what_statements_do_in_place(does: Mapping[str, Any], batch: int, refused: str, told: bool) -> None:
    now = query(**HAD, c=of("int"))
    effect = Effect({"source": "s", "batch": batch}, 0, 0, (), **does)
    found = with_statements(columns_changed(query(**HAD), now, lambda *_: True), now, [effect], {"s": 1})
    assert (found.refused, bool(found.told)) == (refused, told)
