"""A PostgreSQL of its own, whose changes wal2json tells, for tests that compare mirrors with the database itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

PROGRAMS = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"))), Path())
# Why tests cannot use it, empty if they can.
MISSING = "" if (PROGRAMS.parent / "lib/wal2json.so").exists() else "PostgreSQL or its plugin wal2json is not installed"
OPTIONS = "-c wal_level=logical -c fsync=off -c listen_addresses='' -c unix_socket_directories={}"
TOLD = "'format-version','2','include-lsn','1','include-timestamp','1','include-xids','1','include-pk','1'"


class PostgreSQL:
    """One in a folder of its own: a database runs as another user than root, and cannot look into root's folders."""

    def __enter__(self) -> PostgreSQL:
        self.folder = Path(tempfile.mkdtemp(prefix="postgresql-", dir="/tmp"))
        self.is_root = os.geteuid() == 0
        if self.is_root:
            shutil.chown(self.folder, "postgres", "postgres")
        self._program(
            "initdb", "-D", str(self.folder / "data"), "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-locale"
        )
        options = OPTIONS.format(self.folder)
        # Later versions load only plugins that are allowed, earlier ones do not know the setting.
        for more in (" -c output_plugin_libraries=wal2json", ""):
            try:
                log = str(self.folder / "log")
                self._program("pg_ctl", "-D", str(self.folder / "data"), "-w", "-l", log, "-o", options + more, "start")
                break
            except subprocess.CalledProcessError:
                if not more:
                    raise
        return self

    def __exit__(self, *_: object) -> None:
        self._program("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _program(self, name: str, *words: str) -> None:
        user = ["runuser", "-u", "postgres", "--"] if self.is_root else []
        command = [*user, str(PROGRAMS / name), *words]
        subprocess.run(command, check=True, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def run(self, sql: str) -> str:
        """What a script prints; each statement commits by itself, unless it begins a transaction."""
        command = ["psql", "-h", str(self.folder), "-U", "postgres", "-AtqX", "-v", "ON_ERROR_STOP=1"]
        in_utf8 = {**os.environ, "PGCLIENTENCODING": "UTF8"}
        return subprocess.run(command, input=sql, check=True, capture_output=True, encoding="utf-8", env=in_utf8).stdout

    def start_telling(self) -> None:
        self.run("select pg_create_logical_replication_slot('told', 'wal2json');")

    def told(self) -> str:
        """The messages of what has been done since the last time, one a line."""
        return self.run(f"select data from pg_logical_slot_get_changes('told', null, null, {TOLD});")

    def rows(self, table: str) -> list[dict[str, Any]]:
        lines = self.run(f"select to_jsonb(t) from {table} t;").splitlines()
        return [json.loads(line, parse_float=Decimal, parse_int=Decimal) for line in lines]
