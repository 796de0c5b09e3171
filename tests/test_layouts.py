"""How tables are kept, as models and mirrors say it on the command line. What was asked for is read back from the
tables, by other means than the runner's. What each storage keeps is in test_storages.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran
from tests.pages import ROOT, section, write_files
from tests.spark_fixtures import rows as rows_of
from tests.storages import Seen

pytestmark = pytest.mark.usefixtures("interpreted")
PROJECT = """
name: kept
target: {storage}
targets:
  parquet: {{path: lake}}
  delta: {{storage: delta, path: lake}}
  iceberg: {{storage: iceberg, path: lake, catalog: {{type: hadoop}}}}
vars: {{step: first}}
"""
TAKEN = """
{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by='code') }}
select code, {% if is_incremental() %} 7 {% else %} 1 {% endif %} as n from values ('01'), ('x') as t(code)
{% if is_incremental() %} where code = 'x' {% endif %}
"""
MERGED = """
{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}
select 1 as id, {% if is_incremental() %} 7 {% else %} 1 {% endif %} as n
"""
PROMISED = """
{{ config(materialized='table') }}
{% if var('step') == 'types' %} select '1' as id, 'a' as other
{% elif var('step') == 'nulls' %} select id, cast(1.5 as decimal(5, 2)) as amount from values (1L), (null) as t(id)
{% else %} select cast(1.5 as decimal(5, 2)) as amount, 1L as ID {% endif %}
"""
PROPERTIES = """
models:
  - name: promised
    config: {contract: {enforced: true}}
    columns:
      - {name: id, data_type: long, constraints: [{type: not_null}]}
      - {name: amount, data_type: "numeric(5, 2)"}
"""
DAYS = "select id, date'2024-01-01' + cast(id % 3 as int) as day, concat('v', id) as word from range(50)"
DESCRIBED = """
  - name: {name}
    description: "it's a {what}"
    columns:
      - {{name: ID, description: "the \\\\ id"}}
"""


@pytest.fixture
def built(project: Callable[..., Path], runner: Callable[..., Ran], spark: object) -> Path:
    """A project of models that grow, and of one with a contract."""
    models = {"taken.sql": TAKEN, "merged.sql": MERGED, "promised.sql": PROMISED, "properties.yml": PROPERTIES}
    files = {f"models/{name}": text for name, text in models.items()}
    folder = project({"project.yml": PROJECT.format(storage="parquet"), **files})
    assert (ran := runner("run")).code == 0, ran.err
    return folder


def test_strategies_and_contracts_of_models(built: Path, runner: Callable[..., Ran], capsys: Any) -> None:
    """A broken contract leaves the table as it was. Another layout is refused, and what to do is said."""
    taken, merged = "select code, n from taken order by code", "select * from merged"
    assert runner("run", "-s", "taken merged").code == 0
    assert rows_of(capsys, taken) == [{"code": "01", "n": 1}, {"code": "x", "n": 7}]
    assert rows_of(capsys, merged) == [{"id": 1, "n": 7}]

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

    (built / "models/taken.sql").write_text(TAKEN.replace("partition_by='code'", "partition_by=['n']"))
    refused = runner("run", "-s", "taken")
    assert refused.code == 1
    assert "partitions by code; now partitions by n: runner run --full-refresh -s taken builds it again" in refused.err
    assert runner("run", "-s", "taken", "--full-refresh").code == 0
    assert runner("run", "-s", "taken").code == 0
    assert len(rows_of(capsys, taken)) == 3


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
@pytest.mark.parametrize(
    "storage", ["iceberg", *(pytest.param(one, marks=pytest.mark.soak) for one in ("parquet", "delta"))]
)
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
    lake = Seen(spark.session, storage, folder / "lake")
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
    lake = "path: lake, catalog: {schema: comments_of_views}}"
    described = [DESCRIBED.format(name=name, what=what) for name, what in (("described", "table"), ("shown", "view"))]
    project(
        {
            "project.yml": PROJECT.format(storage="parquet").replace("path: lake}", lake, 1)
            + "models: {+persist_docs: {relation: true, columns: true}}",
            "models/described.sql": "{{ config(materialized='table', partition_by='day') }}" + DAYS,
            "models/shown.sql": "select * from {{ ref('described') }}",
            "models/properties.yml": "models:" + "".join(described),
        }
    )
    assert (ran := runner("run", "-s", "path:models")).code == 0, ran.err
    for name, what in (("described", "table"), ("shown", "view")):
        told = spark.session.sql(f"describe table extended comments_of_views.{name}").collect()
        comments = {row["col_name"]: (row["data_type"], row["comment"]) for row in told}
        assert comments["id"] == ("bigint", "the \\ id") and comments["day"] == ("date", None)
        assert comments["Comment"][0] == f"it's a {what}"
        assert len(rows_of(capsys, f"select * from comments_of_views.{name}")) == 50
    spark.session.sql("drop schema comments_of_views cascade")
