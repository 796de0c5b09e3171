"""How tables are kept: partitions, clusters, properties, comments, contracts and strategies, on each storage. What was
asked for on the command line is read back from the tables, by other means than the runner's.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.conftest import Ran
from tests.pages import ROOT, section, write_files
from tests.spark_fixtures import hadoop_catalog
from tests.spark_fixtures import rows as rows_of

pytestmark = pytest.mark.usefixtures("interpreted")
STORAGES = ("parquet", "delta", "iceberg")
# What is the same code on all: on one in `make test`, on the others in `make soak`.
ICEBERG_FIRST = ("iceberg", *(pytest.param(one, marks=pytest.mark.soak) for one in ("parquet", "delta")))
PROJECT = """
name: kept
target: {storage}
targets:
  parquet: {{path: lake}}
  delta: {{storage: delta, path: lake}}
  iceberg: {{storage: iceberg, path: lake, catalog: {{type: hadoop}}}}
vars: {{step: first}}
"""
# Partitions of no text, and of one that no folder can be named by.
TAKEN = """
{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by='code',
          on_schema_change='append_new_columns') }}
{% if is_incremental() %}
select 7 as n, 'new' as more, code from values ('01'), (null), ('x') as t(code)
{% else %}
select code, n from values ('01', 1), ('01', 2), ('1', 3), (null, 4), ('a b/c', 5) as t(code, n)
{% endif %}
"""
# Partitions of texts that all look like numbers.
MERGED = """
{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', partition_by='number') }}
select id, number, what as `a``b` from values
{% if is_incremental() %} (2, '1e3', 'moved'), (3, '01', 'new')
{% else %} (1, '01', 'first'), (2, '02', 'first') {% endif %} as t(id, number, what)
"""
PROMISED = """
{{ config(materialized='table') }}
{% if var('step') == 'types' %} select '1' as id, 'a' as other
{% elif var('step') == 'nulls' %} select id, cast(1.5 as decimal(5, 2)) as amount from values (1L), (null) as t(id)
{% else %} select cast(1.5 as decimal(5, 2)) as amount, 1L as ID {% endif %}
"""
CONTRACT = """
models:
  - name: promised
    config: {contract: {enforced: true}}
    columns:
      - {name: id, data_type: long, constraints: [{type: not_null}]}
      - {name: amount, data_type: "numeric(5, 2)"}
"""
DAYS = "select id, date'2024-01-01' + cast(id % 3 as int) as day, concat('v', id) as word from range(50)"
AT = "select id, timestamp'2024-01-01' + make_interval(0, 0, 0, cast(id % 3 as int)) as at from range(50)"
HIDDEN = """
{{ config(partition_by=['bucket(4, id)', 'truncate(2, word)'], table_properties={'write.format.default': 'orc'}) }}
"""
# A table that is built by each run, and one that grows.
DESCRIBED = """
models:
  - name: described
    description: "{table}"
    config: {{materialized: table}}
    columns:
      - {{name: ID, description: "{column}"}}
  - name: grown
    description: "{table}"
    config: {{materialized: incremental, table_properties: {{owned.by: {owner}, "it's": true}}}}
    columns:
      - {{name: ID, description: "{column}"}}
      - name: word
"""


@pytest.fixture
def build(project: Callable[..., Path], runner: Callable[..., Ran]) -> Callable[..., Path]:
    """Writes a project of a storage with these models, and builds it."""

    def built(storage: str, **models: str) -> Path:
        files = {f"models/{name}.{'yml' if name == 'properties' else 'sql'}": text for name, text in models.items()}
        folder = project({"project.yml": PROJECT.format(storage=storage), **files})
        assert (ran := runner("run", "-s", "path:models")).code == 0, ran.err
        return folder

    return built


class Lake:
    """The tables of a target, seen by a session that knows nothing of the runner."""

    def __init__(self, spark: Any, storage: str, folder: Path) -> None:
        self.session = spark.session.newSession()
        self.storage, self.folder = storage, folder / "lake"
        if storage == "iceberg":
            hadoop_catalog(self.session, "lake", self.folder)
            self.session.conf.set("spark.sql.catalog.lake.cache-enabled", "false")

    def table(self, name: str) -> str:
        return f"lake.changelog.{name}" if self.storage == "iceberg" else f"{self.storage}.`{self.folder}/{name}`"

    def rows(self, sql: str) -> list[dict[str, Any]]:
        return [row.asDict() for row in self.session.sql(sql).collect()]

    def described(self, name: str) -> dict[str, tuple[str, str | None]]:
        """What DESCRIBE says: first column -> type, comment."""
        told = self.rows(f"describe table extended {self.table(name)}")
        return {row["col_name"]: (row["data_type"], row["comment"]) for row in told}

    def properties(self, name: str) -> dict[str, str]:
        return {row["key"]: row["value"] for row in self.rows(f"show tblproperties {self.table(name)}")}

    def folders(self, name: str) -> set[str]:
        """The names of the folders that a table's files are in, without those that nothing refers to any more."""
        if self.storage == "iceberg":
            files = [row["file_path"] for row in self.rows(f"select file_path from {self.table(name)}.files")]
        elif self.storage == "delta":
            files = self.session.read.format("delta").load(f"{self.folder}/{name}").inputFiles()
        else:
            files = [str(path) for path in (self.folder / name).rglob("*.parquet")]
        # Iceberg writes names of folders as parts of addresses, and addresses of files are quoted once more.
        once = [unquote(file.replace("+", " ")).split("/data/")[-1] for file in files]
        return {unquote(part) for file in once for part in [file.split(f"/{name}/")[-1].rsplit("/", 1)[0]]}


@pytest.mark.parametrize("storage", STORAGES)
def test_new_rows_replace_partitions_or_keys(
    build: Callable[..., Path], runner: Callable[..., Ran], spark: Any, capsys: Any, storage: str
) -> None:
    folder = build(storage, taken=TAKEN, merged=MERGED)
    assert runner("run", "-s", "taken merged").code == 0
    taken = rows_of(capsys, "select code, n, more from taken")
    expected = [("01", 7, "new"), ("1", 3, None), (None, 7, "new"), ("a b/c", 5, None), ("x", 7, "new")]
    assert sorted(((row["code"], row["n"], row["more"]) for row in taken), key=str) == sorted(expected, key=str)
    merged = rows_of(capsys, "select id, number, `a``b` from merged order by id")
    assert [tuple(row.values()) for row in merged] == [
        (1, "01", "first"),
        (2, "1e3", "moved"),
        (3, "01", "new"),
    ]
    empty = "null" if storage == "iceberg" else "__HIVE_DEFAULT_PARTITION__"
    lake = Lake(spark, storage, folder)
    assert lake.folders("taken") == {"code=01", "code=1", f"code={empty}", "code=a b/c", "code=x"}
    assert lake.folders("merged") == {"number=01", "number=1e3"}

    # Another layout is refused, and what to do is said.
    (folder / "models/taken.sql").write_text(TAKEN.replace("partition_by='code'", "partition_by=['n']"))
    refused = runner("run", "-s", "taken")
    assert refused.code == 1
    assert "partitions by code; now partitions by n: --full-refresh -s taken builds it again" in refused.err
    assert runner("run", "-s", "taken", "--full-refresh").code == 0
    assert runner("run", "-s", "taken").code == 0
    assert len(rows_of(capsys, "select * from taken")) == 8


@pytest.mark.parametrize("storage", ICEBERG_FIRST)
def test_a_broken_contract_leaves_the_table_as_it_was(
    build: Callable[..., Path], runner: Callable[..., Ran], capsys: Any, storage: str
) -> None:
    build(storage, promised=PROMISED, properties=CONTRACT)
    broken = runner("run", "-s", "promised", "--vars", "{step: types}")
    assert broken.code == 1
    for line in (
        '"id": expected bigint, found string',
        '"amount": expected decimal(5,2), found no such column',
        '"other": not in the contract, found string',
    ):
        assert line in broken.err
    nulls = runner("run", "-s", "promised", "--vars", "{step: nulls}")
    assert nulls.code == 1
    assert 'the contract of "promised" is broken: null in "id": nothing was written' in nulls.err
    assert rows_of(capsys, "select ID, amount from promised") == [{"ID": 1, "amount": "1.50"}]


MIRROR = """
mirrors:
  - name: orders
    description: orders of the shop
    of: {source: shop, table: orders}
    key: [id]
    columns:
      id: {type: bigint, description: the number}
      word: string
    config:
      partition_by: word
      persist_docs: {columns: true}
"""
SENT = '{{"data":[{{"id":"{id}","word":"{word}"}}],"database":"d","table":"orders","type":"INSERT",\
"pkNames":["id"],"es":{id},"ts":{id},"isDdl":false}}\n'


@pytest.mark.usefixtures("lean")
@pytest.mark.parametrize("storage", ICEBERG_FIRST)
def test_layouts_of_mirrors(
    project: Callable[..., Path], runner: Callable[..., Ran], spark: Any, capsys: Any, storage: str
) -> None:
    """A mirror takes in what is new where its layout stays; another one has it built again. The model of the docs
    beside it counts days again.
    """
    mirror = MIRROR if storage != "parquet" else MIRROR.replace("persist_docs: {columns: true}", "")
    source = "sources: [{name: shop, format: lean, files: in/*}]\n"
    folder = project(
        {
            "project.yml": PROJECT.format(storage=storage) + source,
            "models/mirror.yml": mirror,
            "in/1.jsonl": SENT.format(id=1, word="a") + SENT.format(id=2, word="b"),
        }
    )
    write_files(section(ROOT / "docs/models.md", "How tables are kept"), folder)
    lake = Lake(spark, storage, folder)
    assert (ran := runner("run", "-s", "+orders +order_days")).code == 0, ran.err
    assert lake.folders("orders") == {"word=a", "word=b"}
    assert lake.folders("order_days") == {"day=1970-01-01"}
    (folder / "in/2.jsonl").write_text(SENT.format(id=3, word="c"))
    (folder / "models/mirror.yml").write_text(mirror.replace("the number", "its number"))
    assert (ran := runner("run", "-s", "+orders +order_days")).code == 0, ran.err
    assert [tuple(row.values()) for row in rows_of(capsys, "select day, op, changes from order_days")] == [
        ("1970-01-01", "insert", 3)
    ]
    assert lake.folders("orders") == {"word=a", "word=b", "word=c"}
    if storage != "parquet":
        told = lake.described("orders")
        assert (told["id"][1], told["word"][1]) == ("its number", None)
        assert told["_source"][1] == "the source that told it"
    (folder / "models/mirror.yml").write_text(mirror.replace("partition_by: word", "partition_by: [_source]"))
    assert (ran := runner("run", "-s", "+orders")).code == 0, ran.err
    assert lake.folders("orders") == {"_source=shop"}
    assert [tuple(row.values()) for row in rows_of(capsys, "select id, word from orders order by id")] == [
        (1, "a"),
        (2, "b"),
        (3, "c"),
    ]


def test_comments_of_views_in_a_catalog(
    project: Callable[..., Path], runner: Callable[..., Ran], spark: Any, capsys: Any
) -> None:
    """A table of Parquet files has a view in the catalog, as a model that is a view has, and that has the comments."""
    schema = "{schema: comments_of_views}"
    described = DESCRIBED.split("  - name: grown")[0].format(table="it's a table", column="the \\\\ id")
    shown = described.replace("models:\n", "").replace("described", "shown").replace("table}", "view}")
    project(
        {
            "project.yml": PROJECT.format(storage="parquet").replace(
                "path: lake}", f"path: lake, catalog: {schema}}}", 1
            )
            + "models: {+persist_docs: {relation: true, columns: true}}",
            "models/described.sql": "{{ config(partition_by='day') }}" + DAYS,
            "models/shown.sql": "select * from {{ ref('described') }}",
            "models/properties.yml": described + shown,
        }
    )
    assert (ran := runner("run", "-s", "path:models")).code == 0, ran.err
    for name in ("described", "shown"):
        told = spark.session.sql(f"describe table extended comments_of_views.{name}").collect()
        comments = {row["col_name"]: (row["data_type"], row["comment"]) for row in told}
        assert comments["id"] == ("bigint", "the \\ id") and comments["day"] == ("date", None)
        assert comments["Comment"][0] == "it's a table"
        assert len(rows_of(capsys, f"select * from comments_of_views.{name}")) == 50
    spark.session.sql("drop schema comments_of_views cascade")


def test_layouts_of_delta(build: Callable[..., Path], runner: Callable[..., Ran], spark: Any) -> None:
    clustered = (
        "{{ config(materialized='table', cluster_by=['DAY', 'id'], table_properties={'delta.appendOnly': true}) }}"
    )
    described = DESCRIBED.format(table="it's a table", column="the \\\\ id", owner="us")
    folder = build(
        "delta",
        clustered=clustered + DAYS,
        described="{{ config(partition_by='day') }}" + DAYS,
        grown="{{ config(cluster_by='id') }}" + DAYS,
        properties=described,
    )
    lake = Lake(spark, "delta", folder)
    (detail,) = lake.rows(f"describe detail {lake.table('clustered')}")
    assert (detail["clusteringColumns"], detail["partitionColumns"]) == (["day", "id"], [])
    assert lake.properties("clustered")["delta.appendOnly"] == "true"
    assert lake.folders("described") == {"day=2024-01-01", "day=2024-01-02", "day=2024-01-03"}
    check_comments(folder, runner, lake)


def test_layouts_of_iceberg(build: Callable[..., Path], runner: Callable[..., Ran], spark: Any) -> None:
    described = DESCRIBED.format(table="it's a table", column="the \\\\ id", owner="us")
    folder = build(
        "iceberg",
        sorted="{{ config(materialized='table', partition_by=['days(at)'], cluster_by=['bucket(4, id)', 'id']) }}" + AT,
        described=HIDDEN + DAYS,
        grown="{{ config(partition_by='months(day)', cluster_by='word') }}" + DAYS,
        properties=described,
    )
    lake = Lake(spark, "iceberg", folder)
    table = lake.described("sorted")
    assert table["Part 0"][0] == "days(at)" and "Part 1" not in table
    assert lake.properties("sorted")["sort-order"] == "bucket(4, id) ASC NULLS FIRST, id ASC NULLS FIRST"
    # Also the rows that the table was created with are in that order.
    written = lake.rows(
        "select _file as file, lake.system.bucket(4, id) as bucket, id "
        f"from {lake.table('sorted')} order by _file, _pos"
    )
    places = [(row["file"], row["bucket"], row["id"]) for row in written]
    assert len(places) == 50 and places == sorted(places)
    assert lake.described("described")["Part 1"][0] == "truncate(2, word)"
    assert lake.properties("described")["format"] == "iceberg/orc"
    assert lake.described("grown")["Part 0"][0] == "months(day)"
    check_comments(folder, runner, lake)


def check_comments(folder: Path, runner: Callable[..., Ran], lake: Lake) -> None:
    """Descriptions are comments where settings of the project say so, also once they are others."""
    assert "Comment" not in lake.described("described") and lake.properties("grown")["it's"] == "true"
    persist = "models: {+persist_docs: {relation: true, columns: true}}\n"
    (folder / "project.yml").write_text(PROJECT.format(storage=lake.storage) + persist)
    for table, column, owner in (("it's a table", "the \\ id", "us"), ("one | other", "", "them")):
        text = DESCRIBED.format(table=table, column=column.replace("\\", "\\\\"), owner=owner)
        (folder / "models/properties.yml").write_text(text)
        assert (ran := runner("run", "-s", "described grown")).code == 0, ran.err
        for name in ("described", "grown"):
            told = lake.described(name)
            assert told["Comment"][0] == table and (told["id"][1] or "") == column and not told["word"][1]
        assert lake.properties("grown")["owned.by"] == owner
    if lake.storage == "delta":
        assert json.loads(lake.properties("grown")["clusteringColumns"]) == [["id"]]
