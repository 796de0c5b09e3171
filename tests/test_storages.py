"""What every storage promises (runner/storage/storage.py), as runs use it, and how its tables are seen by others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from runner.engine.contracts import columns_after
from runner.engine.errors import QueryFailed
from runner.engine.files import LocalFiles
from runner.project.nodes import SCHEMA_CHANGES
from runner.project.properties import Contract
from runner.project.settings import layout_of
from tests.storages import STORAGES, Lake, opened


@pytest.fixture(scope="module", params=STORAGES)
def lake(
    request: pytest.FixtureRequest, spark: Any, interpreted: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lake]:
    """One lake a storage: each test has tables with names of its own."""
    with opened(spark, request.param, tmp_path_factory.mktemp(request.param)) as found:
        yield found


def only(storage: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("lake", [storage], indirect=True)


# --- tables that grow


OLD = "select k, v, w from values (1, 'a', 1.5), (2, 'b', 2.5), (cast(null as int), 'n', null) as t(k, v, w)"
CHANGES = {
    "added": (
        "select k, v, w, named_struct('x y', 1) as `more.of it` from values (2, 'B', 2.0), (3, 'c', null), "
        "(cast(null as int), 'N', 0.5) as t(k, v, w)"
    ),
    "of_a_new_type": (
        "select k, v, w, if(k = 3, timestamp_ntz'2024-02-29 01:02:03.5', null) as at from values (2, 'B', 2.0), "
        "(3, 'c', null), (cast(null as int), 'N', 0.5) as t(k, v, w)"
    ),
    "removed": "select k, v from values (2, 'B'), (3, 'c'), (cast(null as int), 'N') as t(k, v)",
}
ADDED = [
    {"k": None, "v": "N", "w": "0.5"},
    {"k": 1, "v": "a", "w": "1.5"},
    {"k": 2, "v": "B", "w": "2.0"},
    {"k": 3, "v": "c", "w": None},
]
# Mode and change -> the rows afterwards.
AFTERWARDS = {
    ("ignore", "added"): ADDED,
    ("append_new_columns", "added"): [{**row, "more.of it": None if row["k"] == 1 else {"x y": 1}} for row in ADDED],
    ("append_new_columns", "of_a_new_type"): [
        {**row, "at": "2024-02-29T01:02:03.500000" if row["k"] == 3 else None} for row in ADDED
    ],
    ("append_new_columns", "removed"): [
        {**row, "w": "1.5" if row["k"] == 1 else "2.5" if row["k"] == 2 else None} for row in ADDED
    ],
    ("sync_all_columns", "removed"): [{"k": row["k"], "v": row["v"]} for row in ADDED],
}


def test_columns_that_change(lake: Lake) -> None:
    for (mode, change), afterwards in AFTERWARDS.items():
        name = f"{mode}_{change}"
        lake.tables.replace_keyed(name, OLD, ["k"], layout_of({}, "", {}))
        lake.tables.apply_increment(name, CHANGES[change], ["k"], mode)
        assert lake.rows_of(name) == afterwards, name


WAS = {"k": "int", "w": "int"}
SENT = {
    "added": {**WAS, "new": "int"},
    "removed": {"k": "int"},
    "retyped": {"k": "int", "w": "string"},
    "exchanged": {"new": "int", "k": "int"},
}
# Mode -> change -> the columns afterwards; nothing if it is refused.
COLUMNS_AFTERWARDS = {
    "ignore": {"added": ["k", "w"]},
    "fail": {},
    "append_new_columns": {"added": ["k", "w", "new"], "removed": ["k", "w"], "exchanged": ["k", "w", "new"]},
    "sync_all_columns": {"added": ["k", "w", "new"], "removed": ["k"], "exchanged": ["k", "new"]},
}


@pytest.mark.parametrize("mode", SCHEMA_CHANGES)
@pytest.mark.parametrize("change", SENT)
def test_what_may_change(mode: str, change: str) -> None:
    columns = COLUMNS_AFTERWARDS[mode].get(change)
    if columns:
        assert columns_after("m", WAS, SENT[change], ["k"], mode) == columns
    else:
        said = r"\(with another type: w \(int, now string\)\)" if change == "retyped" else r"\((new|gone): .*\)"
        with pytest.raises(QueryFailed, match=rf'the columns of "m" have changed {said}: --full-refresh rebuilds it'):
            columns_after("m", WAS, SENT[change], ["k"], mode)


def test_rows_are_added_or_replace_those_with_their_key(lake: Lake) -> None:
    tables, row = lake.tables, "select {} as step, cast(7 as smallint) as small"
    assert tables.replace("added_up", row.format(1)) == 1
    # An increment may read the table that it is for.
    more = " where (select count(*) from added_up) < 3"
    counts = [tables.apply_increment("added_up", row.format(step) + more, (), "ignore") for step in (2, 3, 4)]
    assert counts == [2, 3, 3]
    assert lake.rows_of("added_up") == [{"step": step, "small": 7} for step in (1, 2, 3)]
    assert tables.replace("added_up", row.format(5)) == 1
    assert lake.rows_of("added_up") == [{"step": 5, "small": 7}]

    odd = """select 1 as `the ``key```, 'p' as `part.of`, {step} as `Step Of (it)`,
        map('a', array(named_struct('b c', {step}))) as nested"""
    key = ["the `key`", "Part.Of"]
    tables.replace_keyed("odd", odd.format(step=1), key, layout_of({}, "", {}))
    tables.apply_increment("odd", odd.format(step=2) + ", (select max(`step of (it)`) from odd) as more", key, "ignore")
    assert tables.table_view("odd")
    assert lake.rows("select * from odd") == [
        {"the `key`": 1, "part.of": "p", "Step Of (it)": 2, "nested": {"a": [{"b c": 2}]}}
    ]

    tables.replace_keyed("letter_case", "select 1 as Id, 1 as step", ["ID"], layout_of({}, "", {}))
    tables.apply_increment("letter_case", "select 1 as id, 2 as step", ["ID"], "sync_all_columns")
    assert lake.rows_of("letter_case") == [{"Id": 1, "step": 2}]


def test_what_fails_leaves_the_table_as_it_was(lake: Lake) -> None:
    tables, none = lake.tables, layout_of({}, "", {})
    twice = "select k, cast(null as string) as part, {} as step from values (1), ({}) as t(k)"
    tables.replace_keyed("twice", twice.format(1, 2), ["k", "part"], none)
    for build in (
        lambda sql: tables.apply_increment("twice", sql, ["k", "part"], "ignore"),
        lambda sql: tables.replace_keyed("twice", sql, ["k", "part"], none),
    ):
        with pytest.raises(QueryFailed) as refused:
            build(twice.format(2, 1))
        said = 'two new rows of "twice" have one key: {"k":1,"part":null}: a unique key must tell the rows of one run'
        assert refused.value.message.startswith(said)
        assert lake.rows_of("twice") == [{"k": number, "part": None, "step": 1} for number in (1, 2)]

    tables.replace("failing", "select id from range(1000)")
    with pytest.raises(QueryFailed, match=r"cannot be cast|malformed"):
        tables.apply_increment("failing", "select cast(concat(id, 'x') as bigint) as id from range(9)", (), "ignore")
    assert len(lake.rows_of("failing")) == 1000

    tables.replace("no_key", "select 1 as k")
    no_key = 'the unique key "k" is not a column of "no_key": l'
    with pytest.raises(QueryFailed, match=no_key):
        tables.apply_increment("no_key", "select 1 as l", ["k"], "ignore")
    with pytest.raises(QueryFailed, match=no_key):
        tables.replace_keyed("no_key", "select 1 as l", ["k"], none)

    contract = Contract({"id": "bigint", "amount": "decimal(5,2)"}, ("id",))
    promised = "select cast(1.5 as decimal(5, 2)) as amount, {} as ID"
    tables.replace("promised", tables.promised("promised", promised.format("1L"), contract))
    with pytest.raises(QueryFailed, match='the contract of "promised" is broken: null in "ID": nothing was written'):
        tables.replace("promised", tables.promised("promised", promised.format("cast(null as bigint)"), contract))
    assert lake.rows_of("promised") == [{"amount": "1.50", "ID": 1}]


# --- what dies in between


@only("delta")
def test_a_run_that_died_before_it_committed_a_table_in_delta(lake: Lake) -> None:
    """It leaves files of rows, and the folder of a log without commits."""
    folder = lake.seen.folder / "half"
    (folder / "_delta_log").mkdir(parents=True)
    pyarrow.parquet.write_table(pyarrow.table({"a": [9]}), folder / "part-00000.parquet")
    assert not lake.tables.table_view("half")
    lake.tables.replace("half", "select 1 as a")
    assert lake.rows_of("half") == [{"a": 1}]


@only("parquet")
@pytest.mark.parametrize("dies_at", [1, 2])
def test_a_run_that_dies_while_it_exchanges_a_table_in_parquet(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, dies_at: int
) -> None:
    name, calls = f"exchanged_{dies_at}", []
    lake.tables.replace(name, "select 1 as step")

    def move(self: LocalFiles, path: str, to: str) -> None:
        calls.append(path)
        if len(calls) == dies_at:
            raise KeyboardInterrupt
        Path(path).rename(to)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(LocalFiles, "move", move)
        lake.tables.apply_increment(name, "select 2 as step", (), "ignore")
    kept = [1] if dies_at == 1 else [1, 2]
    assert [row["step"] for row in lake.rows_of(name)] == kept
    lake.tables.apply_increment(name, "select 3 as step", (), "ignore")
    assert [row["step"] for row in lake.rows_of(name)] == [*kept, 3]
    assert [path.name for path in lake.seen.folder.glob(f"{name}*")] == [name]


# --- changelogs


def test_a_changelog_is_known_by_its_identity_until_it_is_dropped(lake: Lake) -> None:
    storage = lake.tables.storage
    assert (storage.identity("landing"), storage.has_changelog("landing")) == (None, False)
    storage.create_changelog("landing")
    first = storage.identity("landing")
    storage.create_changelog("landing")
    assert first and storage.identity("landing") == first
    # One whose stream has written nothing: a run may have died before.
    assert (storage.has_rows("landing"), storage.newest_batch("landing")) == (False, None)
    storage.drop_changelog("landing")
    assert (storage.identity("landing"), storage.has_changelog("landing")) == (None, False)
    storage.create_changelog("landing")
    assert storage.identity("landing") != first


# --- how tables are kept


# Partitions of no text, and of one that no folder can be named by.
CODES = "select code, n from values ('01', 1), ('01', 2), ('1', 3), (null, 4), ('a b/c', 5) as t(code, n)"
NEW_CODES = "select 7 as n, 'new' as more, code from values ('01'), (null), ('x') as t(code)"
# Partitions of texts that all look like numbers.
NUMBERS = "select id, number, what as `a``b` from values {} as t(id, number, what)"


def test_new_rows_replace_partitions_or_keys(lake: Lake) -> None:
    tables, by_code = lake.tables, layout_of({"partition_by": "code"}, "", {})
    tables.replace("taken", CODES, by_code)
    tables.apply_increment("taken", NEW_CODES, (), "append_new_columns", by_code, replaces_partitions=True)
    assert tables.table_view("taken")
    assert lake.rows("select code, n, more from taken order by code, n") == [
        {"code": None, "n": 7, "more": "new"},
        {"code": "01", "n": 7, "more": "new"},
        {"code": "1", "n": 3, "more": None},
        {"code": "a b/c", "n": 5, "more": None},
        {"code": "x", "n": 7, "more": "new"},
    ]
    empty = "null" if lake.storage == "iceberg" else "__HIVE_DEFAULT_PARTITION__"
    assert lake.seen.folders("taken") == {"code=01", "code=1", f"code={empty}", "code=a b/c", "code=x"}

    by_number = layout_of({"partition_by": "number"}, "", {})
    first = NUMBERS.format("(1, '01', 'first'), (2, '02', 'first')")
    tables.replace_keyed("merged", first, ["id"], by_number)
    new = NUMBERS.format("(2, '1e3', 'moved'), (3, '01', 'new')")
    tables.apply_increment("merged", new, ["id"], "ignore", by_number)
    assert tables.table_view("merged")
    assert lake.rows("select id, number, `a``b` as what from merged order by id") == [
        {"id": 1, "number": "01", "what": "first"},
        {"id": 2, "number": "1e3", "what": "moved"},
        {"id": 3, "number": "01", "what": "new"},
    ]
    assert lake.seen.folders("merged") == {"number=01", "number=1e3"}


DAYS = "select id, date'2024-01-01' + cast(id % 3 as int) as day, concat('v', id) as word from range(50)"
AT = "select id, timestamp'2024-01-01' + make_interval(0, 0, 0, cast(id % 3 as int)) as at from range(50)"


@only("delta")
def test_layouts_of_delta(lake: Lake) -> None:
    lake.build("clustered", DAYS, cluster_by=["DAY", "id"], table_properties={"delta.appendOnly": True})
    (detail,) = lake.seen.rows(f"describe detail {lake.seen.table('clustered')}")
    assert (detail["clusteringColumns"], detail["partitionColumns"]) == (["day", "id"], [])
    assert lake.seen.properties("clustered")["delta.appendOnly"] == "true"
    check_comments(lake, {"partition_by": "day"}, {"cluster_by": "id"})
    assert lake.seen.folders("described") == {"day=2024-01-01", "day=2024-01-02", "day=2024-01-03"}
    assert json.loads(lake.seen.properties("grown")["clusteringColumns"]) == [["id"]]


@only("iceberg")
def test_layouts_of_iceberg(lake: Lake) -> None:
    seen = lake.seen
    lake.build("sorted", AT, partition_by=["days(at)"], cluster_by=["bucket(4, id)", "id"])
    table = seen.described("sorted")
    assert table["Part 0"][0] == "days(at)" and "Part 1" not in table
    assert seen.properties("sorted")["sort-order"] == "bucket(4, id) ASC NULLS FIRST, id ASC NULLS FIRST"
    # Also the rows that the table was created with are in that order.
    written = seen.rows(
        "select _file as file, lake.system.bucket(4, id) as bucket, id "
        f"from {seen.table('sorted')} order by _file, _pos"
    )
    places = [(row["file"], row["bucket"], row["id"]) for row in written]
    assert len(places) == 50 and places == sorted(places)
    hidden = {"partition_by": ["bucket(4, id)", "truncate(2, word)"]}
    orc = {"table_properties": {"write.format.default": "orc"}}
    check_comments(lake, hidden | orc, {"partition_by": "months(day)", "cluster_by": "word"})
    assert seen.described("described")["Part 1"][0] == "truncate(2, word)"
    assert seen.properties("described")["format"] == "iceberg/orc"
    assert seen.described("grown")["Part 0"][0] == "months(day)"


def check_comments(lake: Lake, built: dict[str, Any], growing: dict[str, Any]) -> None:
    """Descriptions are comments where settings say so, also once they are others: of a table that is built again, and
    of one that grows.
    """
    lake.build("described", DAYS, "it's a table", {"ID": "the id"}, **built)
    lake.build("grown", DAYS, table_properties={"owned.by": "us", "it's": True}, **growing)
    assert "Comment" not in lake.seen.described("described") and lake.seen.properties("grown")["it's"] == "true"
    commented = {"persist_docs": {"relation": True, "columns": True}}
    for table, column, owner in (("it's a table", "the \\ id", "us"), ("one | other", "", "them")):
        lake.build("described", DAYS, table, {"ID": column}, **built, **commented)
        properties = {"table_properties": {"owned.by": owner, "it's": True}}
        layout = layout_of({**growing, **commented, **properties}, table, {"ID": column})
        lake.tables.apply_increment("grown", DAYS, (), "ignore", layout)
        for name in ("described", "grown"):
            told = lake.seen.described(name)
            assert told["Comment"][0] == table and (told["id"][1] or "") == column and not told["word"][1]
        assert lake.seen.properties("grown")["owned.by"] == owner
