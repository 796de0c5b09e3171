"""A PostgreSQL of its own, whose changes wal2json or Debezium tells, for tests that compare mirrors with the database
itself.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

from tests.engines import EngineError, Program, free_port
from tests.landed import Project
from tests.live_tools import DatabaseError, Tool, missing_jars
from tests.topic_records import write_recorded

PROGRAMS = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"))), Path())
# Why tests cannot use it, empty if they can.
MISSING = "" if (PROGRAMS / "initdb").exists() else "PostgreSQL is not installed"
OPTIONS = "-c wal_level=logical -c fsync=off -c timezone=UTC -c unix_socket_directories={} -c port={}"
HOST = "127.0.0.1"


class PostgreSQL:
    """One in a folder of its own: a database runs as another user than root, and cannot look into root's folders."""

    types: ClassVar = {"text": "text", "number": "numeric", "moment": "timestamptz", "document": "jsonb"}
    tells_statements = False
    after_creation: ClassVar = {
        "acc": "alter table {table} alter big set storage external;",
        "mov": "alter table {table} replica identity full;",
    }
    moments: ClassVar = ["'1969-12-31 23:59:59Z'", "'2024-02-29 23:59:59.123456+08'"]
    # Not with quotes in it: Debezium tells them cut.
    additions: ClassVar = ["text default upper('q')", "boolean default true", "timestamptz default now()"]
    loads: ClassVar[list[str]] = []

    def __enter__(self) -> PostgreSQL:
        self.folder = Path(tempfile.mkdtemp(prefix="postgresql-", dir="/tmp"))
        self.port = free_port()
        self.user: list[str] = []
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
            self.user = ["runuser", "-u", "postgres", "--"]
        words = ["-D", str(self.folder / "data"), "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-locale"]
        initdb = [*self.user, str(PROGRAMS / "initdb"), *words]
        subprocess.run(initdb, check=True, cwd=self.folder, capture_output=True)
        options = OPTIONS.format(self.folder, self.port).split()
        # Later versions load only plugins that are allowed, earlier ones do not know the setting.
        for more in (["-c", "output_plugin_libraries=wal2json,pgoutput"], []):
            command = [*self.user, str(PROGRAMS / "postgres"), "-D", str(self.folder / "data"), *options, *more]
            self.server = Program(command, self.folder / "server.log", os.environ)
            try:
                self.server.wait_until(self._answers)
                break
            except EngineError:
                self.server.stop()
                if not more:
                    raise
        self._start_telling()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _answers(self) -> bool:
        try:
            return self.run("select 1;") == "1\n"
        except DatabaseError:
            return False

    def _start_telling(self) -> None:
        self.run("create schema s;")

    def run(self, sql: str) -> str:
        """What a script prints; each statement commits by itself, unless it begins a transaction."""
        command = ["psql", "-h", str(self.folder), "-p", str(self.port), "-U", "postgres", "-AtqX"]
        in_utf8 = {**os.environ, "PGCLIENTENCODING": "UTF8"}
        ran = subprocess.run(
            [*command, "-v", "ON_ERROR_STOP=1"], input=sql, capture_output=True, encoding="utf-8", env=in_utf8
        )
        if ran.returncode:
            raise DatabaseError(f"{ran.stderr}\n{sql}")
        return ran.stdout

    def rows(self, table: str) -> list[dict[str, Any]]:
        lines = self.run(f"select to_jsonb(whole_row) from s.{table} whole_row;").split("\n")
        return [json.loads(line, parse_float=Decimal, parse_int=Decimal) for line in lines if line]

    def columns(self, table: str) -> list[str]:
        """The columns of a table, none if it is not there."""
        where = f"attrelid = to_regclass('s.{table}') and attnum > 0 and not attisdropped"
        return self.run(f"select attname from pg_attribute where {where} order by attnum;").split()

    def upsert(self, table: str, key: str, values: dict[str, str]) -> str:
        insert = f"insert into s.{table}({', '.join(values)}) values ({', '.join(values.values())})"
        return f"{insert} on conflict ({key}) do update set {', '.join(f'{one} = excluded.{one}' for one in values)};"

    def in_order(self, update: str, _: str, __: int) -> str:
        """It updates rows as they lie, and refuses keys that are there."""
        return f"{update};"


class Wal2json(PostgreSQL):
    """Its plugin wal2json tells the changes when it is asked."""

    missing = MISSING or (
        "" if (PROGRAMS.parent / "lib/wal2json.so").exists() else "PostgreSQL's plugin wal2json is not installed"
    )
    source: ClassVar = {"format": "wal2json", "files": "in/*"}
    OPTIONS = "'format-version','2','include-lsn','1','include-timestamp','1','include-xids','1','include-pk','1'"

    def _start_telling(self) -> None:
        super()._start_telling()
        self.run("select pg_create_logical_replication_slot('told', 'wal2json');")

    def write(self, project: Project, number: int) -> None:
        """Writes the messages of what has been done since the last time."""
        lines = self.run(f"select data from pg_logical_slot_get_changes('told', null, null, {self.OPTIONS});")
        project.write({f"in/{number:03}.jsonl": lines})

    def restart(self) -> None:
        """Nothing is kept between two calls."""


class Debezium(PostgreSQL):
    """Debezium follows it; a row in a table of signals makes it load tables."""

    missing = MISSING or missing_jars("debezium")
    source: ClassVar = {"format": "debezium_postgresql", "table": "in"}
    loads: ClassVar = [
        "insert into s.signal(id, type, data) values ('{nth}', 'execute-snapshot',"
        f' \'{{{{"data-collections": ["s.{{table}}"], "type": "{kind}"}}}}\');'
        for kind in ("BLOCKING", "INCREMENTAL")
    ]

    def _start_telling(self) -> None:
        super()._start_telling()
        self.run("create table s.signal(id text primary key, type text, data text);")
        self.run("create table s.mark(n int primary key);")
        self.marks = self.written = 0
        settings = {
            "name": "live",
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
            "offset.storage.file.filename": str(self.folder / "offsets"),
            "offset.flush.interval.ms": "100",
            "topic.prefix": "live",
            "database.hostname": HOST,
            "database.port": str(self.port),
            "database.user": "postgres",
            "database.dbname": "postgres",
            "plugin.name": "pgoutput",
            "publication.autocreate.mode": "all_tables",
            "schema.include.list": "s",
            "signal.data.collection": "s.signal",
            "skipped.operations": "none",
            "include.unknown.datatypes": "true",
            "poll.interval.ms": "20",
        }
        path = self.folder / "debezium.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self.tool = Tool("debezium", self.folder, str(path))
        self.catch_up()

    def __exit__(self, *_: object) -> None:
        self.tool.stop()
        super().__exit__()

    def catch_up(self) -> None:
        """Returns when all that has been done is told."""
        self.marks += 1
        self.run(f"insert into s.mark values ({self.marks});")
        self.tool.wait_for(self._is_mark)

    def _is_mark(self, record: Any) -> bool:
        if record["topic"] != "live.s.mark" or record["value"] is None:
            return False
        return bool(json.loads(record["value"])["payload"]["after"]["n"] == self.marks)

    def write(self, project: Project, number: int) -> None:
        """Writes the records of what has been done since the last time."""
        self.catch_up()
        lines = self.tool.take()
        write_recorded(lines, project / f"in/{number:03}.parquet", self.written)
        self.written += len(lines)

    def restart(self) -> None:
        self.tool.restart()
