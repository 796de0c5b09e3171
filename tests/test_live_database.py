"""A random life of a database, told by the real tool while runs land it: after each run a mirror is the table as the
database has it, or its data test `followed` fails; once all rows were told again, it is the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from tests.landed import Project
from tests.postgresql import MISSING, PostgreSQL
from tests.same_values import is_same, number_of
from tests.storages import TARGETS

pytestmark = [
    pytest.mark.engines,
    pytest.mark.usefixtures("spark", "interpreted"),
    pytest.mark.skipif(bool(MISSING), reason=MISSING),
]
KEYS = {"acc": ["id"], "mov": ["acc", "n"]}
STATEMENTS = 30
SCHEMA = """
create schema s;
create table s.acc(id int primary key, owner text, bal numeric(14,2), opened date, at timestamptz, doc jsonb, big text);
alter table s.acc alter big set storage external;
create table s.mov(acc int, n int, amt numeric(12,3), memo text, primary key(acc, n));
alter table s.mov replica identity full;
insert into s.acc(id, owner) select g, 'o' || g from generate_series(1, 5) g;
insert into s.mov select g, g, g * 1.5, null from generate_series(1, 5) g;
"""


class Life:
    """Statements that people and programs run on two tables."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.added: list[str] = []
        self.count = 0

    def statements(self) -> Iterator[str]:
        for _ in range(STATEMENTS):
            self.count += 1
            one = self.statement()
            rolled_back = f"begin; {one} {self.statement()} rollback;" if self.chance.random() < 0.1 else one
            yield rolled_back if "alter" not in rolled_back else one

    def statement(self) -> str:
        key, other, n = (self.chance.randint(1, 12) for _ in range(3))
        value = self.chance.choice(["null", "'x'", "'it''s \"q\"'", "''", "'列 😀'", f"'{n}'"])
        amount = self.chance.choice(["0", "-0.01", "99999999.99", f"{n}.5", "null"])
        moment = self.chance.choice(
            ["null", "'2024-02-29 23:59:59.123456+08'", "'1969-12-31 23:59:59Z'", "'2026-01-01'"]
        )
        document = self.chance.choice(["null", '\'{"a": 1.50, "b": [1, null]}\'', "'[]'", "'\"t\"'"])
        both = f"owner = {value}, bal = {amount}, at = {moment}, doc = {document}"
        insert = f"insert into s.acc(id, owner, bal, at, doc) values ({key}, {value}, {amount}, {moment}, {document})"
        again = f"insert into s.mov values ({key}, {other}, {n}.25, {value}) on conflict (acc, n) do update set amt = 0"
        return self.chance.choice(
            [
                *[f"{insert} on conflict (id) do update set {both};"] * 4,
                *[f"update s.acc set {both} where id = {key};"] * 3,
                f"update s.acc set bal = bal + 1 where id % 3 = {key % 3} and bal < 1000;",
                f"update s.acc a set id = id + 1000 where id = {key} and {key} + 1000 not in (select id from s.acc);",
                f"update s.acc set big = repeat(md5('{n}'), 100) where id = {key};",
                *[f"delete from s.acc where id = {key};"] * 2,
                f"delete from s.acc where id = {key}; {insert};",
                *[f"{again};"] * 3,
                f"update s.mov set memo = {value} where acc = {key};",
                f"update s.mov set n = n + 100 where acc = {key} and n = {other};",
                f"delete from s.mov where acc = {key};",
                *self.rare(),
            ]
        )

    def rare(self) -> list[str]:
        if self.chance.random() > 0.1:
            return []
        if self.added and self.chance.random() < 0.5:
            return [f"alter table s.acc drop column {self.added.pop()};"]
        if self.chance.random() < 0.5:
            return ["truncate s.mov;"]
        return [f"alter table s.acc add column c{self.count} {self.chance.choice(['text', 'int default 7'])};"]


@pytest.mark.parametrize("rounds", [2, pytest.param(17, marks=pytest.mark.soak)])
def test_a_random_life_of_a_database(tmp_path: Path, rounds: int) -> None:
    settings = {
        **yaml.safe_load(TARGETS),
        "target": "delta",
        "sources": [{"name": "live", "format": "wal2json", "files": "in/*"}],
    }
    project, life = Project(tmp_path, {"project.yml": yaml.safe_dump(settings)}), Life(rounds)
    with PostgreSQL() as database:
        database.start_telling()
        database.run(SCHEMA)
        for number in range(rounds):
            for statement in life.statements():
                database.run(statement)
                life.added = columns_added(database) if "alter" in statement else life.added
            told(project, database, number)
            for table in KEYS:
                is_followed = project.statuses[f"followed_{table}"] == "pass"
                assert not is_followed or not differences(project, database, table), (number, table)
        database.run("update s.acc set id = id; update s.mov set acc = acc;")
        told(project, database, rounds)
        for table in KEYS:
            assert project.statuses[f"followed_{table}"] == "pass", project.results[f"followed_{table}"]
            assert differences(project, database, table) == []


def columns_added(database: PostgreSQL) -> list[str]:
    columns = "pg_attribute where attrelid = 's.acc'::regclass and attname ~ '^c[0-9]' and not attisdropped"
    return database.run(f"select attname from {columns};").split()


def told(project: Project, database: PostgreSQL, number: int) -> None:
    project.write({f"in/{number}.jsonl": database.told()})
    project.ok("run", "-s", "live_to_changelog changelog")
    project.ok("mirrors", "suggest", "--apply")
    assert project.run("build", "-s", "acc mov").code in (0, 1)


def differences(project: Project, database: PostgreSQL, table: str) -> list[Any]:
    """Where a mirror is not the table."""

    def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return sorted(rows, key=lambda row: [number_of(str(row[column])) or Decimal(0) for column in KEYS[table]])

    found, expected = in_order(project.rows(f"select * from {table}")), in_order(database.rows(f"s.{table}"))
    if len(found) != len(expected):
        return [("rows", len(found), len(expected))]
    return [
        (column, row.get(column), wanted[column])
        for row, wanted in zip(found, expected)
        for column in wanted
        if not is_same(row.get(column), wanted[column])
    ]
