"""Dumps of tables, and mirrors that begin with one whose log tells from before the dump."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
import yaml

from tests import pages
from tests.landed import Project
from tests.postgresql import HOST, MISSING, PostgreSQL

pytestmark = pytest.mark.usefixtures("spark", "interpreted")

STORAGES: dict[str, dict[str, Any]] = {
    "parquet": {},
    "delta": {"storage": "delta"},
    "iceberg": {"storage": "iceberg", "catalog": {"type": "hadoop"}},
}
Row = dict[str, Any]
Table = dict[int, Row]
# The second in which the log begins, transactions in it, and after which of them the dump is taken; after which of them
# another server goes on with numbers of its own.
BEGIN, TRANSACTIONS, DUMPED, FAILOVER = 1_700_000_000, 60, 30, 50
SERVERS = ("3e11fa47-71ca-11e1-9e33-c80aa9429562", "aaaaaaaa-0000-11e1-9e33-c80aa9429562")


@dataclass
class Transaction:
    """A transaction: its number, where it begins among those that end, what it does (a kind with the row after and
    before), and the table after it.
    """

    number: int
    begins: float
    does: list[tuple[str, Row, Row]]
    table: Table
    xid: int = 0

    @property
    def second(self) -> int:
        return BEGIN + self.number

    @property
    def server(self) -> int:
        return int(self.number > FAILOVER)

    @property
    def nth(self) -> int:
        """Its number among those of its server."""
        return self.number - self.server * FAILOVER


def random_log(chance: Random) -> list[Transaction]:
    """Changes of a few rows: one that the dump has was there before, was gone, and is back."""
    table: Table = {}
    out = []
    for number in range(1, TRANSACTIONS + 1):
        does: list[tuple[str, Row, Row]] = []
        for nth in range(chance.randint(1, 3)):
            key = chance.randint(1, 6)
            row = {"id": key, "s": f"s{number}.{nth}", "n": None if chance.random() < 0.2 else number * 10 + nth}
            if key not in table:
                does.append(("insert", row, {}))
                table[key] = row
            elif chance.random() < 0.4:
                does.append(("delete", {}, table.pop(key)))
            else:
                does.append(("update", row, table[key]))
                table[key] = row
        if number in (DUMPED - 7, DUMPED + 9):
            does.append(("truncate", {}, {}))
            table = {}
        # One that is open when the dump is taken has begun before others that have ended then.
        lasts = 3.7 if number == DUMPED + 1 else chance.choice((0.5, 0.5, 1.5, 2.5, 3.5))
        out.append(Transaction(number, number - lasts, does, dict(table)))
    for xid, one in enumerate(sorted(out, key=lambda one: (one.begins, one.number)), 2**32 + 700):
        one.xid = xid
    return out


# --- the same log, as three tools tell it


def by_maxwell(one: Transaction, before: Table) -> Iterator[Row]:
    """Without a message for truncate: each row is deleted."""
    there = dict(before)
    position = f"binlog.{900 - 899 * one.server:06}:{one.nth * 1000}"
    for nth, (kind, after, old) in enumerate(one.does):
        changes = [(kind, after, old)] if kind != "truncate" else [("delete", {}, row) for row in there.values()]
        for kind_now, row, row_before in changes:
            told = {"database": "shop", "table": "orders", "type": kind_now, "ts": one.second, "xid": one.xid}
            told |= {"position": position, "xoffset": nth, "server_id": one.server + 1, "primary_key_columns": ["id"]}
            told["data"] = row or row_before
            changed = {name: value for name, value in row_before.items() if kind_now == "update" and value != row[name]}
            yield told | ({"old": changed} if kind_now == "update" else {})
        key = (after or old).get("id")
        there = (
            {}
            if kind == "truncate"
            else {**there, key: after}
            if after
            else {k: v for k, v in there.items() if k != key}
        )


def by_canal(one: Transaction, _: Table) -> Iterator[Row]:
    for kind, after, old in one.does:
        told = {"database": "shop", "table": "orders", "es": one.second * 1000, "ts": one.second * 1000 + 5}
        told |= {"gtid": f"{SERVERS[one.server]}:{one.nth}", "pkNames": ["id"], "isDdl": kind == "truncate"}
        told |= {"type": kind.upper(), "sql": "truncate table orders" if kind == "truncate" else ""}
        texts = {name: value if value is None else str(value) for name, value in (after or old).items()}
        was = [{name: value if value is None else str(value) for name, value in old.items()}]
        yield told | {"data": None if kind == "truncate" else [texts], "old": was if kind == "update" else None}


def by_wal2json(one: Transaction, _: Table) -> Iterator[Row]:
    moment = datetime.fromtimestamp(one.second, timezone.utc).strftime("%Y-%m-%d %H:%M:%S+00")
    types = {"id": "integer", "s": "text", "n": "bigint"}
    for nth, (kind, after, old) in enumerate(one.does):
        told = {
            "action": kind[0].upper(),
            "xid": one.xid % 2**32,
            "timestamp": moment,
            "schema": "shop",
            "table": "orders",
        }
        told |= {"lsn": f"1/{one.number * 1000 + nth:X}"}
        columns = [{"name": name, "type": types[name], "value": value} for name, value in after.items()]
        identity = [{"name": "id", "type": "integer", "value": old["id"]}] if old else []
        pk = {"pk": [{"name": "id", "type": "integer"}]} if kind != "truncate" else {}
        yield {
            **told,
            **({"columns": columns} if columns else {}),
            **({"identity": identity} if identity else {}),
            **pk,
        }


TOOLS = {"maxwell": by_maxwell, "canal": by_canal, "wal2json": by_wal2json}


def told_by(tool: str, log: Sequence[Transaction], first: int, last: int) -> str:
    before = [{}, *(one.table for one in log)]
    lines = (told for one in log[first:last] for told in TOOLS[tool](one, before[one.number - 1]))
    return "".join(json.dumps(line) + "\n" for line in lines)


# --- dumps


def places(log: Sequence[Transaction]) -> dict[str, Any]:
    """The place of the dump, as the databases tell it."""
    last = log[DUMPED - 1]
    began = [one.xid for one in log if one.begins <= DUMPED]
    still_open = [one.xid for one in log if one.begins <= DUMPED < one.number]
    assert min(still_open) < last.xid
    instant = datetime.fromtimestamp(last.second, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "numbers": {"place": f"binlog.000900:{DUMPED * 1000}", "log": "1", "time": instant},
        "ids": f"{SERVERS[0]}:1-{DUMPED}",
        "transactions": f"{min(still_open)}:{max(began) + 1}:{','.join(map(str, still_open))}",
        "time": instant,
    }


COLUMNS = {"id": "bigint", "s": "text", "n": "bigint"}


def files_of_dumps(rows: Sequence[Row], folder: Path) -> Iterator[tuple[str, str | bytes]]:
    def texts(row: Row, null: str) -> list[str]:
        return [null if value is None else str(value) for value in row.values()]

    yield "numbers/orders.csv", "id,s,n\n" + "".join(",".join(texts(row, "")) + "\n" for row in rows)
    yield "ids/orders.txt", "".join("\t".join(texts(row, "\\N")) + "\n" for row in rows)
    yield "time/orders.jsonl", "".join(json.dumps(row) + "\n" for row in rows)
    schema = pyarrow.schema({"id": pyarrow.int32(), "s": pyarrow.string(), "n": pyarrow.int64()})
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema), folder / "orders.parquet")
    yield "transactions/orders.parquet", (folder / "orders.parquet").read_bytes()


# Kind of a place -> form of the dump, and the tool that tells the log.
KINDS = {
    "numbers": ("csv", "maxwell"),
    "ids": ("text", "canal"),
    "transactions": ("parquet", "wal2json"),
    "time": ("lines", "maxwell"),
}


def kinds_in(storage: str) -> dict[str, tuple[str, str]]:
    """All kinds in Parquet. In what storages do with changes, others do not differ from these."""
    return KINDS if storage == "parquet" else {kind: KINDS[kind] for kind in ("numbers", "ids")}


def project_of(log: Sequence[Transaction], storage: str) -> dict[str, str]:
    tools = sorted({tool for _, tool in kinds_in(storage).values()})
    sources: list[Row] = [{"name": tool, "format": tool, "files": f"in/{tool}.*"} for tool in tools]
    at = places(log)
    for kind, (form, _) in kinds_in(storage).items():
        table = {"name": "shop.orders", "key": ["id"], **({"columns": COLUMNS} if form == "text" else {})}
        files = {"files": f"{kind}/*", "dump": form}
        sources.append({"name": f"dump_{kind}", "format": "rows", "at": at[kind], "tables": [table], **files})
    mirrors = [
        {
            "name": kind,
            "of": [{"source": f"dump_{kind}", "table": "shop.orders"}, {"source": tool, "table": "shop.orders"}],
            "key": ["id"],
            "columns": {"id": "bigint", "s": "string", "n": "bigint"},
            "history": "true",
        }
        for kind, (_, tool) in kinds_in(storage).items()
    ]
    target = {"path": "lake", **STORAGES[storage]}
    settings = {"name": "dumps", "target": "t", "targets": {"t": target}, "sources": sources}
    return {
        "project.yml": yaml.safe_dump(settings, sort_keys=False),
        "models/mirrors.yml": yaml.safe_dump({"mirrors": mirrors}, sort_keys=False),
    }


def versions(log: Sequence[Transaction]) -> list[tuple[Any, ...]]:
    """The history from the dump on: id, s, n, op, whether it is current, and the second in which it began."""
    last = log[DUMPED - 1]
    begun = {key: ("snapshot", row, last.second) for key, row in last.table.items()}
    out = []
    for one in log[DUMPED:]:
        for kind, after, old in one.does:
            ended = list(begun) if kind == "truncate" else [old["id"]] if old else []
            out += [(begun.pop(key), False) for key in ended]
            if after:
                begun[after["id"]] = (kind, after, one.second)
    out += [(version, True) for version in begun.values()]
    return sorted(
        ((row["id"], row["s"], row["n"], op, current, second) for (op, row, second), current in out), key=repr
    )


@pytest.mark.parametrize("storage", ["parquet", pytest.param("delta", marks=pytest.mark.soak), "iceberg"])
def test_a_mirror_begins_with_a_dump(tmp_path: Path, storage: str) -> None:
    log = random_log(Random(7))
    table = log[DUMPED - 1].table
    assert table and any(key in log[DUMPED - 12].table for key in table)
    project = Project(tmp_path, project_of(log, storage))
    # First the log is read to a place before the dump, then beyond it, then after the failover.
    ends = (0, DUMPED - 10, DUMPED + 12, TRANSACTIONS)
    for number, (first, last) in enumerate(pairwise(ends)):
        project.write({f"in/{tool}.{number}.jsonl": told_by(tool, log, first, last) for tool in TOOLS})
        if number == 0:
            project.write(dict(files_of_dumps(list(table.values()), tmp_path)))
        project.ok("build" if last == TRANSACTIONS else "run")
        expected = log[max(last, DUMPED) - 1].table
        for kind in kinds_in(storage):
            rows = project.rows(f"select id, s, n from {kind} order by id")
            assert rows == [expected[key] for key in sorted(expected)], (kind, last)
    for kind in kinds_in(storage):
        found = project.rows(f"select id, s, n, op, is_current, unix_seconds(valid_from) begun from {kind}_history")
        begun = {"snapshot": None} if kind in ("ids", "transactions") else {}
        wanted = [(*row[:5], begun.get(row[3], row[5])) for row in versions(log)]
        assert sorted((tuple(row.values()) for row in found), key=repr) == sorted(wanted, key=repr), kind


def test_global_transaction_ids(tmp_path: Path) -> None:
    """Of servers with tags, and of domains, in which any server goes on with the numbers."""
    server = "AAAAAAAA-0000-11e1-9e33-c80aa9429562"
    ids = {
        **dict.fromkeys(("0-1-57", "0-2-1", "1-9-3", f"{server}:t:5", f"{server.lower()}:t:7", f"{server}:9"), False),
        **dict.fromkeys(("0-1-58", "0-2-58", "1-9-4", "2-1-1", f"{server}:t:6", f"{server}:8", f"{server}:x:9"), True),
        **dict.fromkeys(("", "9", None), True),
    }
    message = {"database": "shop", "table": "orders", "type": "insert", "ts": BEGIN, "primary_key_columns": ["id"]}
    lines = [{**message, "gtid": one, "data": {"id": nth}} for nth, one in enumerate(ids)]
    at = f"0-1-57,1-9-3,{server}:t:1-5:7,{server}:9"
    dump = {"name": "dump", "format": "rows", "files": "dump/*", "dump": "lines", "at": at}
    sources = [dump, {"name": "log", "format": "maxwell", "files": "in/*"}]
    of = [{"source": "dump", "table": "orders"}, {"source": "log", "table": "orders"}]
    mirror = {"name": "orders", "of": of, "key": ["id"], "columns": {"id": "int"}}
    files = {"project.yml": yaml.safe_dump({"sources": sources}), "models/m.yml": yaml.safe_dump({"mirrors": [mirror]})}
    written = {"dump/orders.jsonl": '{"id": 100}\n', "in/1.jsonl": "".join(json.dumps(line) + "\n" for line in lines)}
    project = Project(tmp_path, {**files, **written})
    project.ok("run", "-s", "+orders")
    there = {row["id"] for row in project.rows("select id from orders")}
    assert there == {100, *(nth for nth, is_later in enumerate(ids.values()) if is_later)}


PAGE = pages.ROOT / "docs/databases.md"


def test_the_page(tmp_path: Path) -> None:
    """The first part by its files and commands; then the recipes, which are sources that a project reads."""
    blocks = pages.section(PAGE, "Start from a dump")
    pages.write_files(blocks, tmp_path)
    project, out = Project(tmp_path, {}), ""
    for block in blocks:
        if block.kind == "text":
            assert out.strip() == block.text.strip()
        for words in pages.commands([block]):
            ran = project.run(*words)
            assert ran.code == 0, ran.err
            out = ran.out
    assert "warning" not in ran.err
    (recipes,) = [block.text for block in pages.section(PAGE, "Forms of dumps") if block.kind == "yaml"]
    tools = (
        "  - {name: topic_a, format: maxwell, files: x}\n  - {name: topic_b, format: debezium_postgresql, files: x}\n"
    )
    of = [{"source": name, "table": "shop.orders"} for name in ("by_mysqldump", "topic_a")]
    others = [{"source": name, "table": "shop.orders"} for name in ("by_copy", "of_parquet", "by_query", "topic_b")]
    mirrors = [
        {"name": f"m{nth}", "of": one, "key": ["id"], "columns": {"id": "int"}} for nth, one in enumerate((of, others))
    ]
    project.write({"project.yml": recipes + tools, "models/orders.yml": yaml.safe_dump({"mirrors": mirrors})})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DB_PASSWORD", "tr0ut&gill")
        assert {"m0", "m1", "by_query_to_changelog"} <= {*project.run("ls").out.split()}


def test_lines_and_columns_that_a_dump_lacks(tmp_path: Path) -> None:
    source = "{name: dump, format: rows, dump: csv, files: in/*, tables: [{name: shop.orders, key: [id]}]}"
    mirror = (
        "{name: orders, of: {source: dump, table: shop.orders}, key: [id], columns: {id: int, a: string, b: string}}"
    )
    files = {"project.yml": f"sources: [{source}]", "models/m.yml": f"mirrors: [{mirror}]"}
    project = Project(tmp_path, {**files, "in/1.csv": "id,a\n1,x\n2\n3,z\n"})
    ran = project.run("run")
    # One of three lines: the mirror is built all the same.
    assert ran.code == 1 and "the limit of 1 % is reached: 1 not-a-row" in ran.err
    assert 'the dump of shop.orders in dump lacks columns, unknown until told: "b"' in ran.err
    assert "1 dead_letter (1 not-a-row)" in ran.err
    (dead,) = project.rows("select detail, origin.file as file from dead_letters")
    assert dead["file"].endswith("in/1.csv")
    assert dead["detail"] == 'problem: "1 value, and the table has 2 columns", line: "3"'
    assert project.rows("select id, a, b, array_join(_untold, '|') as untold from orders order by id") == [
        {"id": 1, "a": "x", "b": None, "untold": "|b"},
        {"id": 3, "a": "z", "b": None, "untold": "|b"},
    ]
    ran = project.run("test", "--data", "-s", "followed_orders")
    assert ran.code == 1 and "b" in ran.err
    # What has landed was read in another way.
    project.write({"project.yml": files["project.yml"].replace("dump: csv", 'dump: {form: csv, null: "x"}')})
    assert "source dump: dump changed since rows landed" in project.ok("run", "-s", "dump_to_changelog")


def jdbc_project(folder: Path, url: str, **more: str) -> Project:
    jdbc = {"url": url, "query": "select * from s_t", **more}
    source = {"name": "db", "format": "rows", "jdbc": jdbc, "tables": [{"name": "t", "key": ["id"]}]}
    return Project(folder, {"project.yml": yaml.safe_dump({"sources": [source]})})


def test_a_query_lands_once_until_it_is_asked_again(tmp_path: Path) -> None:
    project = jdbc_project(tmp_path, f"jdbc:sqlite:{tmp_path}/shop.db")
    with sqlite3.connect(tmp_path / "shop.db") as database:
        database.execute("create table s_t(id integer primary key, note text, n real)")
        database.execute("insert into s_t values (1, 'a\nb', 1.5), (2, null, null)")
        database.commit()
        project.ok("build")
        database.execute("insert into s_t values (3, 'c', 2)")
        database.commit()
        project.ok("build")
        rows = "select key_text, after['note'] as note, after['n'] as n from changelog order by 1"
        first = [
            {"key_text": '{"id":"1"}', "note": "a\nb", "n": "1.5"},
            {"key_text": '{"id":"2"}', "note": None, "n": None},
        ]
        assert project.rows(rows) == first
        project.ok("run", "--full-refresh")
        assert project.rows(rows) == [*first, {"key_text": '{"id":"3"}', "note": "c", "n": "2"}]
        # While the database is away, a full refresh fails, and what has landed stays.
        database.execute("drop table s_t")
        database.commit()
        ran = project.run("run", "--full-refresh")
        assert ran.code == 1 and "gave no rows" in ran.err and "Traceback" not in ran.err
        assert len(project.rows(rows)) == 3


def test_a_database_that_is_away_or_has_no_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_PASSWORD", "tr0ut-and-gill")
    project = jdbc_project(tmp_path, "jdbc:shopdb://h:1/shop", user="u", password="{{ env_var('DB_PASSWORD') }}")
    ran = project.run("run")
    assert ran.code == 1 and "tr0ut" not in ran.err and "Traceback" not in ran.err
    assert 'Spark has no driver for "jdbc:shopdb://h:1/shop": name it under "packages" of the target' in ran.err


DRIVER = next(iter(sorted((pages.ROOT / ".jars-live/debezium").glob("postgresql-*.jar"))), None)
# As PostgreSQL casts values to text, with bytes in base64, clocks as the changelog has them.
COLUMNS_OF_PG = {
    "id": ("bigint primary key", "1", "1"),
    "n": ("numeric", "1.50", "1.50"),
    "d": ("numeric(10,2)", "2.5", "2.50"),
    "t": ("timestamp", "'2024-01-01 10:00:00.5'", "2024-01-01 10:00:00.5"),
    "old": ("timestamp", "'1850-01-01'", "1850-01-01 00:00:00"),
    "tz": ("timestamptz", "'2024-01-01 10:00:00+08'", "2024-01-01T02:00:00Z"),
    "b": ("bytea", "'\\x0aff'", "Cv8="),
    "j": ("jsonb", """'{"a": 1.50}'""", '{"a": 1.50}'),
    "ok": ("boolean", "true", "true"),
    "tm": ("time", "'10:00:00.25'", "10:00:00.25"),
    "dt": ("date", "'2024-02-29'", "2024-02-29"),
    "e": ("text", "E'a\\tb\\n\\\\\"'", 'a\tb\n\\"'),
    "z": ("text", "''", ""),
}


@pytest.mark.engines
@pytest.mark.skipif(bool(MISSING) or not DRIVER, reason="needs PostgreSQL and its driver: make live")
def test_a_database_dumps_itself_in_three_ways(tmp_path: Path) -> None:
    """COPY as text and as CSV, and a query, of one table."""
    names = list(COLUMNS_OF_PG)
    declared = {name: kind.split(" ")[0] for name, (kind, *_) in COLUMNS_OF_PG.items()}
    with PostgreSQL() as database:
        database.run(f"create table s_t({', '.join(f'{name} {kind}' for name, (kind, *_) in COLUMNS_OF_PG.items())});")
        database.run(f"insert into s_t values ({', '.join(value for _, value, _ in COLUMNS_OF_PG.values())});")
        database.run("insert into s_t(id) values (2);")
        written = {
            "text/t.tsv": database.run("copy s_t to stdout;"),
            "csv/t.csv": database.run("copy s_t to stdout with (format csv, header);"),
        }
        of = {"format": "rows", "tables": [{"name": "t", "key": ["id"], "columns": declared}]}
        url = f"jdbc:postgresql://{HOST}:{database.port}/postgres"
        query = {"url": url, "query": "select * from s_t", "user": "postgres", "driver": "org.postgresql.Driver"}
        sources = [
            {"name": "by_text", "files": "text/*", "dump": "text", **of},
            {"name": "by_csv", "files": "csv/*", "dump": "csv", **of},
            {"name": "by_query", "jdbc": query, **of, "tables": [{"name": "t", "key": ["id"]}]},
        ]
        target = {"path": "lake", "jars": [str(DRIVER)]}
        settings = {"name": "pg", "target": "t", "targets": {"t": target}, "sources": sources}
        project = Project(tmp_path, {**written, "project.yml": yaml.safe_dump(settings, sort_keys=False)})
        command = ["-c", "import sys; from runner.cli import main; sys.exit(main())", "build"]
        ran = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
    for source in sources:
        found = project.rows(f"select after from {source['name']}_to_changelog order by key_text")
        assert found[0]["after"] == {name: text for name, (*_, text) in COLUMNS_OF_PG.items()}, source["name"]
        assert found[1]["after"] == {**dict.fromkeys(names), "id": "2"}, source["name"]
