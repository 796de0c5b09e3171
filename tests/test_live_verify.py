"""A mirror of a table that a real database has, made of what its tool tells, and compared with the table through JDBC:
it is the same; what is then changed in the database without being told is found, and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.engines import ROOT
from tests.landed import Project
from tests.live_tools import JARS, Told, missing_jars
from tests.mariadb import Canal
from tests.postgresql import Wal2json

pytestmark = [pytest.mark.engines, pytest.mark.usefixtures("spark", "interpreted")]
PASSWORD = "tr0ut-and-gill"


class Tried(NamedTuple):
    """A database with its tool: the `columns` of a table with their types, rows as its SQL writes them, and statements,
    each with the column that it changes. `not_compared` is the column whose values cannot be compared.
    """

    tool: type[Any]
    columns: dict[str, str]
    rows: list[list[str]]
    changes: dict[str, str]
    users: str
    address: str
    not_compared: str = ""


POSTGRESQL = Tried(
    Wal2json,
    {
        "big": "bigint",
        "t": "text",
        "v": "varchar(20)",
        "c": "char(5)",
        "amount": "numeric(12,3)",
        "any_number": "numeric",
        "small": "smallint",
        "g": "double precision",
        "f": "real",
        "ok": "boolean",
        "d": "date",
        "w": "timestamp",
        "at": "timestamptz",
        "clock": "time",
        "bytes": "bytea",
        "document": "jsonb",
        "u": "uuid",
        "bits": "bit(4)",
    },
    [
        [
            *(
                "9223372036854775807",
                "'a '",
                "'ä''\"'",
                "'ab'",
                "-1.500",
                "123456.7890",
                "-32768",
                "0.1",
                "1.1",
                "true",
            ),
            *("'2024-02-29'", "'2024-03-10 02:30:00.123456'", "'2024-03-10 02:30:00.5+08'", "'23:59:59.5'"),
            *("'\\xdeadbeef'", '\'{"b": 1.50, "a": [1, null]}\'', "'0e37df36-f698-11e6-8dd4-cb9ced3df976'", "b'0101'"),
        ],
        [
            *(
                "0",
                "''",
                "'\\'",
                "''",
                "0",
                "0",
                "0",
                "1e300",
                "1e-7",
                "false",
                "'1582-10-04'",
                "'1969-12-31 23:59:59'",
            ),
            *("'0001-01-01 00:00:00+00'", "'00:00'", "''", "'[]'", "null", "b'0000'"),
        ],
        ["null"] * 18,
    ],
    {
        "big": "big - 1",
        "t": "'a'",
        "v": "'ä'",
        "c": "'abc'",
        "amount": "amount + 0.001",
        "any_number": "any_number + 0.0001",
        "small": "null",
        "g": "0.10000000000000002",
        "f": "1.1000001",
        "ok": "false",
        "d": "'2024-03-01'",
        "w": "'2024-03-10 02:30:00.123457'",
        "at": "'2024-03-10 03:30:00.5+08'",
        "clock": "'23:59:59.6'",
        "bytes": "'\\xdeadbeee'",
        "document": '\'{"b": 1.51, "a": [1, null]}\'',
        "u": "'0e37df36-f698-11e6-8dd4-cb9ced3df977'",
        "bits": "b'0111'",
    },
    f"create role reader login password '{PASSWORD}'; grant usage on schema s to reader;"
    " grant select on all tables in schema s to reader;",
    "jdbc:postgresql://127.0.0.1:{port}/postgres",
)
MARIADB = Tried(
    Canal,
    {
        "big": "bigint unsigned",
        "t": "text",
        "v": "varchar(20)",
        "c": "char(5)",
        "amount": "decimal(12,3)",
        "small": "tinyint(1)",
        "g": "double",
        "ok": "boolean",
        "d": "date",
        "w": "datetime(6)",
        "at": "timestamp(3) null default null",
        "clock": "time(1)",
        "bytes": "varbinary(20)",
        "document": "json",
        "kind": "enum('a','b')",
        "kinds": "set('x','y')",
        "bits": "bit(1)",
        "year": "year",
        "flags": "bit(8)",
    },
    [
        [
            *("18446744073709551615", "'a '", "'ä''\"'", "'ab'", "-1.500", "2", "0.1", "true", "'2024-02-29'"),
            *("'2024-03-10 02:30:00.123456'", "'2024-03-10 02:30:00.5'", "'23:59:59.5'", "x'deadbeef'"),
            *('\'{"b": 1.50, "a": [1, null]}\'', "'b'", "'x,y'", "b'1'", "2024", "b'101'"),
        ],
        [
            *("0", "''", "'\\\\'", "''", "0", "0", "1e300", "false", "'1000-01-01'", "'1969-12-31 23:59:59'"),
            *("'1970-01-01 00:00:01'", "'00:00'", "''", "'[]'", "'a'", "''", "b'0'", "1901", "b'0'"),
        ],
        ["null"] * 19,
    ],
    {
        "big": "big - 1",
        "t": "'a'",
        "v": "'ä'",
        "c": "'abc'",
        "amount": "amount + 0.001",
        "small": "1",
        "g": "0.10000000000000002",
        "ok": "false",
        "d": "'2024-03-01'",
        "w": "'2024-03-10 02:30:00.123457'",
        "at": "'2024-03-10 03:30:00.5'",
        "clock": "'23:59:59.6'",
        "bytes": "x'deadbeee'",
        "document": '\'{"b": 1.51, "a": [1, null]}\'',
        "kind": "'a'",
        "kinds": "'x'",
        "bits": "b'0'",
        "year": "2025",
    },
    f"create user reader@'%' identified by '{PASSWORD}'; grant select on s.* to reader@'%';"
    f" create user reader@'localhost' identified by '{PASSWORD}'; grant select on s.* to reader@'localhost';",
    "jdbc:mariadb://127.0.0.1:{port}/s",
    # Spark loses bits of theirs.
    "flags",
)


def verified(project: Project, *words: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, whose JVM has the drivers."""
    command = [sys.executable, "-m", "runner.cli", "verify", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "READER": PASSWORD}
    return subprocess.run(command, cwd=project.folder, env=environment, capture_output=True, text=True, timeout=600)


def changed(database: Told, tried: Tried) -> list[tuple[str, str, list[str] | None]]:
    """Changes the table, one row for each change; returns what verifying must find."""
    expected: list[tuple[str, str, list[str] | None]] = []
    for number, (column, value) in enumerate(tried.changes.items(), start=10):
        database.run(f"update s.things set {column} = {value} where id = {number};")
        expected.append(("different", str(number), [column]))
    database.run("delete from s.things where id = 1; update s.things set id = 900 where id = 2;")
    return sorted([*expected, ("extra", "1", None), ("extra", "2", None), ("missing", "900", None)])


@pytest.mark.parametrize(
    "tried",
    [
        pytest.param(one, id=one.tool.__name__, marks=pytest.mark.skipif(bool(missing), reason=missing))
        for one in (POSTGRESQL, MARIADB)
        for missing in [one.tool.missing or missing_jars("jdbc")]
    ],
)
def test_what_the_database_has_and_what_nobody_told(tmp_path: Path, tried: Tried) -> None:
    with tried.tool() as database:
        columns = ", ".join(f"{name} {kind}" for name, kind in tried.columns.items())
        database.run(f"create table s.things(id int primary key, {columns});")
        database.run(tried.users)
        rows = [*([tried.rows[0]] * 28), *tried.rows]
        texts = (f"({number}, {', '.join(row)})" for number, row in enumerate(rows, start=1))
        database.run(f"insert into s.things values {', '.join(texts)};")
        target = {"path": "lake", "jars": f"{JARS}/jdbc/*.jar"}
        settings = {"name": "live", "target": "t", "targets": {"t": target}}
        files = {"project.yml": yaml.safe_dump({**settings, "sources": [{"name": "live", **database.source}]})}
        project = Project(tmp_path, files)
        database.write(project, 0)
        project.ok("run")
        project.ok("mirrors", "suggest", "--table", "things")
        project.ok("run", "-s", "things")
        address = tried.address.format(port=database.port)
        login = ("--against", address, "--user", "reader", "--password-env", "READER")

        same = verified(project, *login)
        print(same.stderr)
        assert same.returncode == 0, same.stderr
        assert "31 rows are the same" in same.stderr
        unlike = re.findall(r"cannot be compared: (\w+) \(\S+, bits\)$", same.stderr, re.MULTILINE)
        assert unlike == [tried.not_compared] * bool(tried.not_compared) and "warning" not in same.stderr
        expected = changed(database, tried)
        differing = verified(project, *login, "--rows", "10", "--parallel", "2", "--show-values")
        assert differing.returncode == 1, differing.stderr
        assert f"read of s.things of {address}" in differing.stderr
        found = project.rows("select * from verified_differences")
        print(json.dumps(found, indent=1, ensure_ascii=False))
        assert sorted((row["kind"], row["key"]["id"], row["columns"]) for row in found) == expected
        wrong = {**os.environ, "READER": "wr0ng-password"}
        said = verified(project, "--against", address.replace("//", f"//reader:{wrong['READER']}@"))
        assert said.returncode == 2 and "error[verify-connection]: no connection to " in said.stderr
        assert wrong["READER"] not in said.stderr + said.stdout
    away = verified(project, *login)
    assert away.returncode == 2 and f'error[verify-connection]: no connection to "{address}"' in away.stderr
    assert PASSWORD not in "".join(one.stderr for one in (same, differing, said, away))
