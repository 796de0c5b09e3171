"""A MariaDB of its own, whose changes Canal tells, for tests that compare mirrors with the database itself."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

from tests.engines import Program, free_port
from tests.landed import Project
from tests.live_tools import DatabaseError, Tool, missing_jars

HOST = "127.0.0.1"
SERVER = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
# Canal may connect as a user of any host, or of this machine.
USERS = "".join(
    f"create user canal@'{host}' identified by 'canal'; grant all on *.* to canal@'{host}';"
    for host in ("%", "localhost")
)
CHANGES_TABLES = re.compile(r"\b(create|drop|alter|rename|truncate)\b")


class Canal:
    """One in a folder of its own, which Canal follows."""

    missing = missing_jars("canal") if SERVER else "MariaDB is not installed"
    source: ClassVar = {"format": "canal", "zone": "UTC", "files": "in/*"}
    types: ClassVar = {
        "text": "varchar(200)",
        "number": "decimal",
        "moment": "timestamp(6) null default null",
        "document": "json",
    }
    tells_statements = True
    after_creation: ClassVar[dict[str, str]] = {}
    moments: ClassVar = ["'1970-01-01 00:00:01'", "'2024-02-29 15:59:59.123456'"]
    # No column of another character set than Canal's own: it writes U+FFFD for its letters.
    additions: ClassVar = [
        "int not null default 7 first",
        "enum('a','b c') default 'b c' after version",
        "set('x','y') default 'x,y'",
        "bit(8) default b'101'",
        "decimal(9,3) default 1.5",
        "datetime(3) default current_timestamp(3)",
        "varchar(20) not null default ''",
        "varchar(20) default 'it''s'",
        "text default 'ä'",
        "date default '2020-02-29' comment 'a, b'",
    ]
    loads: ClassVar[list[str]] = []

    def __enter__(self) -> Canal:
        self.folder = Path(tempfile.mkdtemp(prefix="mariadb-", dir="/tmp"))
        self.port, self.marks = free_port(), 0
        data, user = f"--datadir={self.folder / 'data'}", []
        if os.geteuid() == 0:
            shutil.chown(self.folder, "mysql", "mysql")
            user = ["--user=mysql"]
        subprocess.run(
            ["mariadb-install-db", "--no-defaults", data, *user, "--auth-root-authentication-method=normal"],
            check=True,
            capture_output=True,
        )
        place = [f"--socket={self.folder / 'socket'}", f"--port={self.port}", f"--bind-address={HOST}"]
        log = ["--log-bin=mysql-bin", "--binlog-format=ROW", "--binlog-row-image=FULL", "--server-id=1"]
        small = ["--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0"]
        texts = ["--character-set-server=utf8mb4", "--default-time-zone=+00:00"]
        command = [str(SERVER), "--no-defaults", data, *user, *place, *log, *small, *texts]
        self.server = Program(command, self.folder / "server.log", os.environ)
        self.server.wait_until(self._answers)
        self.run(f"{USERS} create database s; create table s.mark(n int primary key);")
        self.tool = Tool("canal", self.folder, str(self.port), str(self.folder / "canal"))
        self.catch_up()
        return self

    def __exit__(self, *_: object) -> None:
        self.tool.stop()
        self.server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _answers(self) -> bool:
        try:
            return self._run("select 1;") == "1\n"
        except DatabaseError:
            return False

    def _run(self, sql: str) -> str:
        command = ["mariadb", "--no-defaults", f"--socket={self.folder / 'socket'}", "-uroot", "-Nr", "--batch"]
        ran = subprocess.run(
            [*command, "--default-character-set=utf8mb4"], input=sql, capture_output=True, encoding="utf-8"
        )
        if ran.returncode:
            raise DatabaseError(f"{ran.stderr}\n{sql}")
        return ran.stdout

    def run(self, sql: str) -> str:
        """What a script prints. Canal reads how tables are when it meets their rows: nothing may change them before."""
        if not self.marks or not CHANGES_TABLES.search(sql):
            return self._run(sql)
        self.catch_up()
        out = self._run(sql)
        self.catch_up()
        return out

    def catch_up(self) -> None:
        """Returns when all that has been done is told."""
        self.marks += 1
        self._run(f"insert into s.mark values ({self.marks});")
        self.tool.wait_for(self._is_mark)

    def _is_mark(self, message: Any) -> bool:
        return message["table"] == "mark" and any(one["n"] == str(self.marks) for one in message["data"] or ())

    def write(self, project: Project, number: int) -> None:
        """Writes the messages of what has been done since the last time."""
        self.catch_up()
        project.write({f"in/{number:03}.jsonl": "".join(f"{line}\n" for line in self.tool.take())})

    def restart(self) -> None:
        self.tool.restart()

    def rows(self, table: str) -> list[dict[str, Any]]:
        members = ", ".join(f"'{column}', `{column}`" for column in self.columns(table))
        lines = self._run(f"select json_object({members}) from s.{table};").split("\n") if members else []
        return [json.loads(line, parse_float=Decimal, parse_int=Decimal) for line in lines if line]

    def columns(self, table: str) -> list[str]:
        """The columns of a table, none if it is not there."""
        where = f"table_schema = 's' and table_name = '{table}'"
        return self._run(
            f"select column_name from information_schema.columns where {where} order by ordinal_position;"
        ).split()

    def upsert(self, table: str, key: str, values: dict[str, str]) -> str:
        insert = f"insert into s.{table}({', '.join(values)}) values ({', '.join(values.values())})"
        return f"{insert} on duplicate key update {', '.join(f'{one} = values({one})' for one in values)};"

    def in_order(self, update: str, column: str, step: int) -> str:
        return f"{update} order by {column} {'desc' if step > 0 else ''};"
