"""A whole database by one rule: forty tables of a real database, of which five change and one comes while the mirrors
follow. What the mirrors have is compared with the database itself.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import sparks
from tests.landed import Project
from tests.live_tools import JARS, missing_jars
from tests.mariadb import Canal
from tests.postgresql import Debezium
from tests.test_live_verify import PASSWORD, verified
from tests.test_many_mirrors import STORAGES

pytestmark = [pytest.mark.soak, pytest.mark.usefixtures("spark", "interpreted")]

# LIVE_TABLES=8 is enough to try the test.
TABLES = [f"t_{number:02}" for number in range(int(os.environ.get("LIVE_TABLES", "40")))]
RULE = "mirrors:\n  - {tables: s.t_*, of: {source: live}}\n"
ADDRESSES = {
    Canal: "jdbc:mariadb://127.0.0.1:{port}/s",
    Debezium: "jdbc:postgresql://127.0.0.1:{port}/postgres",
}
USERS = {
    Canal: "".join(
        f"create user reader@'{host}' identified by '{PASSWORD}'; grant select on s.* to reader@'{host}';"
        for host in ("%", "localhost")
    ),
    Debezium: f"create role reader login password '{PASSWORD}'; grant usage on schema s to reader;"
    " alter default privileges in schema s grant select on tables to reader;"
    " grant select on all tables in schema s to reader;",
}
WIDER = {
    Canal: "alter table s.t_01 modify n decimal(12,2);",
    Debezium: "alter table s.t_01 alter column n type numeric(12,2);",
}
# In PostgreSQL, concat takes null for an empty text.
RENAMED = "alter table s.t_03 rename column v to w; update s.t_03 set w = concat(w, '!') where w is not null;"


def changed(tool: type[Any]) -> list[str]:
    """What five tables do while the mirrors follow, and one that comes."""
    return [
        "alter table s.t_00 add column x int default 7; update s.t_00 set v = 'changed' where id = 1;",
        f"{WIDER[tool]} insert into s.t_01 values (9, 'wide', 1234567890.25);",
        "alter table s.t_02 drop column v; insert into s.t_02 values (9, 9.5);",
        RENAMED,
        "delete from s.t_04 where id < 3; insert into s.t_04 values (8, null, null);"
        " update s.t_04 set id = 80 where id = 8;",
        "create table s.t_late(id int primary key, v varchar(20)); insert into s.t_late values (1, 'late');",
    ]


def told(said: str) -> list[str]:
    """The mirrors that a run has built."""
    return re.findall(r" OK table model (t_\w+)", said)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(
    "tool",
    [
        pytest.param(one, id=one.__name__, marks=pytest.mark.skipif(bool(missing), reason=missing))
        for one in (Canal, Debezium)
        for missing in [one.missing or missing_jars("jdbc")]
    ],
)
def test_forty_tables(tmp_path: Path, tool: type[Any], storage: str) -> None:
    with tool() as database:
        for name in TABLES:
            database.run(f"create table s.{name}(id int primary key, v varchar(20), n numeric(8,2));")
            database.run(f"insert into s.{name} values (1, 'one', 1.50), (2, 'zwei ä', null), (3, null, -0.25);")
        database.run(USERS[tool])
        target = {**STORAGES[storage], "path": "lake", "jars": [f"{sparks.JARS}/spark/*.jar", f"{JARS}/jdbc/*.jar"]}
        settings = {"name": "live", "target": "t", "targets": {"t": target}}
        sources = [{"name": "live", **database.source}]
        project = Project(
            tmp_path, {"project.yml": yaml.safe_dump({**settings, "sources": sources}), "models/rule.yml": RULE}
        )
        database.write(project, 0)
        assert sorted(told(project.ok("run"))) == TABLES
        login = (
            "--against",
            ADDRESSES[tool].format(port=database.port),
            "--user",
            "reader",
            "--password-env",
            "READER",
        )
        same = verified(project, *login)
        assert same.returncode == 0 and same.stderr.count("3 rows are the same") == len(TABLES), same.stderr

        for statements in changed(tool):
            database.run(statements)
        database.write(project, 1)
        said = project.ok("run")
        # After a statement all mirrors of its source are looked at.
        assert {*TABLES[:5], "t_late"} <= {*told(said)} <= {*TABLES, "t_late"}, said
        assert database.tells_statements or len(told(said)) == 6, said
        if storage != "parquet":
            assert 'added in place: "x" bigint' in said and 'widened in place: "n" to decimal(12,2)' in said, said
        same = verified(project, *login)
        assert same.returncode == 0 and len(re.findall(r"rows? (?:are|is) the same", same.stderr)) == len(TABLES) + 1, (
            same.stderr
        )
        # The mirror keeps what the table has no more; where no statement tells another name, both.
        assert 'lacks columns of "t_02": v' in same.stderr
        assert ('lacks columns of "t_03": v' in same.stderr) != database.tells_statements, same.stderr
        assert project.rows("select id, x from t_00 order by id") == [{"id": nth, "x": 7} for nth in (1, 2, 3)]
        assert [row["w"] for row in project.rows("select w from t_03 order by id")] == ["one!", "zwei ä!", None]

        # What nobody tells is found, and nothing else.
        for name in TABLES[5:25]:
            database.run(f"update s.{name} set v = 'other' where id = 2;")
        differing = verified(project, *login)
        found = project.rows("select mirror, kind, key, columns from verified_differences order by mirror")
        print(json.dumps(found, indent=1))
        assert differing.returncode == 1 and [(row["mirror"], row["kind"]) for row in found] == [
            (name, "different") for name in TABLES[5:25]
        ]
        assert all((row["key"], row["columns"]) == ({"id": "2"}, ["v"]) for row in found)
