"""What Canal told of a MariaDB, and Debezium and wal2json of a PostgreSQL (tests/recorded): mirrors as `mirrors
suggest` writes them are the tables as their databases had them in the end, or a data test says that they are not; and
`verify` finds where they are not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from tests.landed import Project, random_pieces
from tests.same_values import is_same, number_of, time_of
from tests.storages import STORAGES, TARGETS
from tests.topic_records import write_recorded

pytestmark = pytest.mark.usefixtures("spark", "interpreted")
RECORDED = Path(__file__).parent / "recorded"
SOURCES = {
    "canal": ("canal", "canal-mariadb"),
    "debezium": ("debezium_postgresql", "debezium-postgresql"),
    "wal2json": ("wal2json", "wal2json-postgresql"),
}
# Table -> what a person does with the suggested mirror, and why.
BY_HAND = {
    # Neither tool tells a key. Rows were only added to these, as often as they were told.
    ("debezium", "nokey"): ("without_key: reject", "without_key: append"),
    ("wal2json", "log"): ("without_key: reject", "without_key: append"),
    # Some of its rows have the same values, and one of two is deleted.
    ("canal", "nokey2"): ("without_key: reject", "without_key: count"),
    # Only the tables that the database has in the end.
    **{("canal", table): None for table in ("_codes_new", "nokey", "tmp1", "tmp2", "types")},
    ("debezium", "signals"): None,
    ("wal2json", "signals"): None,
}
# (source, table, row, column) -> what the mirror has instead, since the tool tells it so.
TOLD_OTHERWISE = {
    # Debezium counts microseconds of intervals, with months of a mean length, and its zoned times are in UTC.
    ("debezium", "types", "1", "iv"): "37091106789000",
    ("debezium", "types", "2", "iv"): "-86400000000",
    ("debezium", "types", "1", "tmz"): "06:30:00Z",
    ("debezium", "types", "1", "m"): "-1234.56",
    ("debezium", "types", "1", "pt"): '{"x":1.5,"y":2.0,"wkb":"AQEAAAAAAAAAAAD4PwAAAAAAAABA","srid":null}',
    # Numerics in a list are texts, which keep their zeros.
    ("debezium", "types", "1", "narr"): '["1.00","2.55","-3.10"]',
    # It loses what is no number, infinite, or BC, and counts days before 1582 in the Julian calendar.
    ("debezium", "types", "2", "d"): None,
    ("debezium", "types", "2", "num"): None,
    ("debezium", "types", "2", "r"): None,
    ("debezium", "types", "2", "dt"): "-622191234",
    ("debezium", "types", "2", "ts"): "-9223372036832400000",
    ("debezium", "types", "3", "dt"): "0044-03-15",
    ("debezium", "types", "4", "dt"): "1582-10-20",
    # Nobody tells the default of a column that was added: the data test `followed_acc` fails.
    ("wal2json", "acc", "4", "status"): None,
}


def told(source: str) -> list[Any]:
    folder = RECORDED / SOURCES[source][1]
    path = folder / ("records.jsonl" if (folder / "records.jsonl").exists() else "messages.jsonl")
    return path.read_text().splitlines()


def write(project: Project, source: str, number: int, start: int, end: int) -> None:
    lines = told(source)[start:end]
    if source != "debezium":
        project.write({f"in/{source}/{number}.jsonl": "\n".join(lines)})
        return
    write_recorded(lines, project / f"in/{source}/{number}.parquet", 95 + start)


def project_of(folder: Path, storage: str) -> Recorded:
    sources = [
        {"name": name, "format": form, ("table" if name == "debezium" else "files"): f"in/{name}"}
        for name, (form, _) in SOURCES.items()
    ]
    settings = {**yaml.safe_load(TARGETS), "target": storage, "sources": sources}
    return Recorded(folder, {"project.yml": yaml.safe_dump(settings)})


def in_database(source: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for path in sorted((RECORDED / SOURCES[source][1]).glob("*.jsonl")):
        if path.name not in ("messages.jsonl", "records.jsonl"):
            lines = path.read_text().splitlines()
            yield path.stem, [json.loads(line, parse_float=Decimal, parse_int=Decimal) for line in lines]


def compared(project: Project) -> tuple[set[tuple[str, str]], dict[tuple[str, str, str, str], Any]]:
    """The tables that have other rows than their mirrors, and single values that differ."""
    rows, values = set(), {}
    for source in SOURCES:
        for table, expected in in_database(source):
            mirror = project.mirrors[source, table]
            found = project.rows(f"select * from {mirror}")
            if len(found) != len(expected):
                rows.add((source, table))
            for wanted, got in zip(_sorted(expected), _sorted(found)):
                for column, value in wanted.items():
                    if not is_same(got[column], value):
                        key = (source, table, str(next(iter(wanted.values()))), column)
                        values[key] = got[column]
    return rows, values


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """By the first two columns, which all tables have."""

    def place(row: dict[str, Any]) -> list[tuple[Decimal, str]]:
        values = [row[column] for column in [*row][:2]]
        return [(number_of(str(value)) or Decimal(0), time_of(str(value)) or str(value)) for value in values]

    return sorted(rows, key=place)


class Recorded(Project):
    """A project with the mirrors that `mirrors suggest` writes: those of tables that the databases have in the end."""

    mirrors: dict[tuple[str, str], str]

    def suggest(self) -> None:
        """Takes what is suggested, also for mirrors that are there."""
        self.ok("mirrors", "suggest", "--files", "--apply")
        self.mirrors = {}
        for path in sorted((self / "models/mirrors").glob("*.yml")):
            (mirror,) = yaml.safe_load(path.read_text())["mirrors"]
            which = mirror["of"]["source"], mirror["of"]["table"].split(".")[-1]
            change = BY_HAND.get(which, ("", ""))
            if change is None:
                path.unlink()
                continue
            assert change[1] in path.read_text() or change[0] in path.read_text(), path
            path.write_text(path.read_text().replace(*change))
            self.mirrors[which] = mirror["name"]


@pytest.mark.parametrize(
    ("storage", "runs"),
    [
        ("delta", 2),
        *(pytest.param(*one, marks=pytest.mark.soak) for one in (("parquet", 1), *((one, 3) for one in STORAGES))),
    ],
)
def test_mirrors_are_the_tables(tmp_path: Path, storage: str, runs: int) -> None:
    project = project_of(tmp_path, storage)
    lengths = {source: len(told(source)) for source in SOURCES}
    for run, pieces in enumerate(random_pieces(lengths, runs, Random(f"{storage} {runs}"))):
        for source, (start, end) in pieces.items():
            write(project, source, run, start, end)
        project.ok("run", "-s", "config.materialized:streaming")
        project.suggest()
        built = project.run("build", "-s", "path:models/mirrors")
    assert built.code == 1
    rows, values = compared(project)
    assert not rows
    assert values == TOLD_OTHERWISE
    failed = {name for name, status in project.statuses.items() if status not in ("success", "pass")}
    assert failed == {"followed_acc"}


# (source, table, row) -> columns with the same values that the database prints in another way than the tool tells them,
# in columns of texts: `verify` finds that the texts differ.
SPELLED_OTHERWISE = {
    ("debezium", "types", "1"): {"num", "ts", "tz", "bt"},
    ("debezium", "types", "3"): {"ts", "tz"},
    ("debezium", "types", "4"): {"ts", "tz"},
    **{("wal2json", "acc", row): {"tags"} for row in "123"},
}
# Infinity and what is no number are null where rows are shown as JSON; the mirror has them.
SHOWN_OTHERWISE = {("debezium", "types", "2", "d"), ("debezium", "types", "2", "r")}


def test_mirrors_are_verified(tmp_path: Path) -> None:
    project = project_of(tmp_path, "parquet")
    for source in SOURCES:
        write(project, source, 0, 0, len(told(source)))
    project.ok("run", "-s", "config.materialized:streaming")
    project.suggest()
    assert project.run("build", "-s", "path:models/mirrors").code == 1
    texts = project.rows("select cast(d as string) as d, cast(r as string) as r from debezium_types where id = 2")
    assert texts == [{"d": "NaN", "r": "-Infinity"}]
    spelled = {(*row, column) for row, columns in SPELLED_OTHERWISE.items() for column in columns}
    found, compared = set(), set()
    for source, (_, folder) in SOURCES.items():
        mirrors = {mirror: table for (of, table), mirror in project.mirrors.items() if of == source}
        project.run("verify", "-s", *mirrors, "--against", str(RECORDED / folder))
        compared |= {
            (source, mirrors[row["mirror"]])
            for row in project.rows("select mirror from verified")
            if row["mirror"] in mirrors
        }
        for row in project.rows("select mirror, kind, key, columns from verified_differences"):
            if row["mirror"] in mirrors:
                assert row["kind"] == "different", row
                found |= {(source, mirrors[row["mirror"]], row["key"]["id"], column) for column in row["columns"]}
    assert found == (TOLD_OTHERWISE.keys() | spelled) - SHOWN_OTHERWISE
    # A mirror to which each change adds a row is no copy of its table.
    assert project.mirrors.keys() - compared == {("debezium", "nokey"), ("wal2json", "log")}
