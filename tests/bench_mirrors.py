"""Figures of `make bench` about mirrors on Delta and Iceberg: what a run of 10,000 changes costs on tables of two
sizes, beside a plain MERGE of the same changes; what a first build costs beside landing, with little memory.

Each runs in a process of its own (`python -m tests.bench_mirrors FIGURE STORAGE ROWS`) and prints JSON, name -> number.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from runner.storage.delta import Delta
from runner.storage.iceberg import Iceberg
from runner.storage.table_format import TableFormat
from tests.bench import WORK, measured_by, run_of
from tests.bench_scale import jvm, seconds_of
from tests.engines import jars

SIZES = tuple(int(size) for size in os.environ.get("BENCH_ROWS", "1000000,10000000").split(","))
CHANGES = int(os.environ.get("BENCH_CHANGES", "10000"))
FIRST_BUILD = int(os.environ.get("BENCH_FIRST_BUILD", "5000000"))
STORAGES: dict[str, type[TableFormat]] = {"delta": Delta, "iceberg": Iceberg}
ROUNDS = 3
ROWS_PER_MESSAGE = 100
COLUMNS = "id: bigint, customer: bigint, status: string, amount: 'decimal(12,2)', updated_at: timestamp_ntz"
TYPES = {
    "id": "bigint",
    "customer": "bigint",
    "status": "varchar(16)",
    "amount": "decimal(12,2)",
    "updated_at": "datetime",
}
PROJECT = """
name: mirrors
targets:
  local:
    {{storage: {storage}, path: {folder}/lake, jars: "{jars}", {catalog}
      spark: {{spark.master: "local[2]", spark.driver.memory: {memory}}}}}
sources:
  - {{name: shop, format: canal, files: "{folder}/in/*"}}
"""
MIRROR = f"""
mirrors:
  - name: orders
    of: {{source: shop, table: shop.orders}}
    key: [id]
    columns: {{{COLUMNS}}}
    history: true
"""
CATALOGS = {"delta": "", "iceberg": "catalog: {type: hadoop, name: lake, schema: main},"}
PLAIN_MERGE = """
merge into {plain} as own using (
  select * from (
    select
      op, cast(key['id'] as bigint) as id, cast(after['customer'] as bigint) as customer, after['status'] as status,
      cast(after['amount'] as decimal(12,2)) as amount, cast(after['updated_at'] as timestamp_ntz) as updated_at,
      row_number() over (partition by key['id'] order by seq desc) as nth
    from {changelog}
    where kind = 'row' and batch > {batch})
  where nth = 1) as new
on own.id = new.id
when matched and new.op = 'delete' then delete
when matched then update set
  own.customer = new.customer, own.status = new.status, own.amount = new.amount, own.updated_at = new.updated_at
when not matched and new.op <> 'delete' then insert (id, customer, status, amount, updated_at)
  values (new.id, new.customer, new.status, new.amount, new.updated_at)
"""


@dataclass(frozen=True)
class Lake:
    """The folder of a project, and the storage of its tables."""

    folder: Path
    storage: str

    def table(self, name: str) -> str:
        """What SQL calls a table."""
        return f"lake.main.{name}" if self.storage == "iceberg" else f"delta.`{self.folder}/lake/{name}`"

    def build(self, *names: str) -> float:
        """The seconds of a run of these models."""
        return seconds_of(run_of(self.folder, list(names)))


def increments(lake: Lake, rows: int) -> dict[str, float]:
    """Seconds of a run of the mirror and of its history, of changes to rows all over the table and to the newest rows,
    and how many times those of a MERGE.
    """
    _project(lake, "6g")
    _write(lake, "0-base", _loaded(range(rows)))
    times: dict[str, list[tuple[float, float, float]]] = {"spread": [], "recent": []}
    with jvm(lake.folder), _session(lake) as session:
        lake.build("shop_to_changelog", "orders", "orders_history")
        _plain_table(session, lake)
        for number in range(ROUNDS + 1):
            for kind, changed in times.items():
                chance = random.Random(f"{number} {kind}")
                first = 0 if kind == "spread" else rows - 2 * CHANGES
                _write(lake, f"{number + 1}-{kind}", _updated(chance.sample(range(first, rows), CHANGES), chance))
                batch = _newest_batch(session, lake)
                lake.build("shop_to_changelog")
                merged = _seconds_of_merge(session, lake, batch)
                changed.append((lake.build("orders"), lake.build("orders_history"), merged))
        assert _differences(session, lake) == 0
    return dict(_increment_figures(f"mirror.{lake.storage}_{rows // 1000}k", times))


def _increment_figures(figures: str, times: dict[str, list[tuple[float, float, float]]]) -> Iterator[tuple[str, float]]:
    for kind, measured in times.items():
        name, warm = f"{figures}_{kind}", measured[1:]
        yield f"{name}_s", statistics.median(one[0] for one in warm)
        yield f"{name}_history_s", statistics.median(one[1] for one in warm)
        yield f"{name}_vs_merge", statistics.median(one[0] / one[2] for one in warm)


def first_build(lake: Lake, changes: int) -> dict[str, float]:
    """How many times as long as landing changes a first build of a mirror of them takes, with 2 GB for both."""
    _project(lake, "2g")
    chance = random.Random(1)
    rows = changes // 5
    _write(lake, "0-base", _loaded(range(rows)))
    _write(lake, "1-changes", (m for _ in range(4) for m in _updated(range(rows), chance)))
    with jvm(lake.folder):
        landed, built, history = (lake.build(name) for name in ("shop_to_changelog", "orders", "orders_history"))
    return {
        "mirror.landed_rows_s": changes / landed,
        "mirror.first_build_vs_landing": landed / built,
        "mirror.first_history_vs_landing": landed / history,
    }


def _project(lake: Lake, memory: str) -> None:
    (lake.folder / "models").mkdir(parents=True)
    (lake.folder / "in").mkdir()
    found, catalog = jars("spark")[0].parent / "*.jar", CATALOGS[lake.storage]
    settings = PROJECT.format(folder=lake.folder, storage=lake.storage, jars=found, catalog=catalog, memory=memory)
    (lake.folder / "project.yml").write_text(settings)
    (lake.folder / "models/orders.yml").write_text(MIRROR)


def _write(lake: Lake, name: str, messages: Iterable[dict[str, Any]]) -> None:
    with (lake.folder / f"in/{name}.jsonl").open("w") as file:
        file.writelines(json.dumps(message) + "\n" for message in messages)


def _loaded(ids: range) -> Iterator[dict[str, Any]]:
    for first in range(ids.start, ids.stop, ROWS_PER_MESSAGE):
        numbers = range(first, min(first + ROWS_PER_MESSAGE, ids.stop))
        yield _message("INIT", 0, [_row(number, "new", 100) for number in numbers])


def _updated(ids: Iterable[int], chance: random.Random) -> Iterator[dict[str, Any]]:
    """Updates, and one delete of a hundred."""
    for number in ids:
        row = _row(number, chance.choice(["paid", "sent", "done"]), chance.randint(1, 999_999))
        is_update = chance.random() > 0.01
        yield _message("UPDATE", 1, [row], [{"status": "new"}]) if is_update else _message("DELETE", 1, [row])


def _row(number: int, status: str, amount: int) -> dict[str, str]:
    return {
        "id": str(number),
        "customer": str(number * 7919 % 100_003),
        "status": status,
        "amount": f"{amount}.50",
        "updated_at": "2024-03-15 10:00:00",
    }


def _message(op: str, hour: int, data: list[dict[str, str]], old: list[dict[str, str]] | None = None) -> dict[str, Any]:
    at = 1710468000000 + hour * 3_600_000
    table = {"database": "shop", "table": "orders", "pkNames": ["id"], "mysqlType": TYPES}
    return {"type": op, "es": at, "ts": at, **table, "data": data, "old": old}


@contextmanager
def _session(lake: Lake) -> Iterator[Any]:
    """A session of the target, for statements that the runner has nothing to do with."""
    from runner.engine.session import Spark

    run = run_of(lake.folder, [])
    with Spark(run.project.target, lake.folder / "spark.log", run.library) as spark:
        yield spark.session


def _plain_table(session: Any, lake: Lake) -> None:
    """A table that has what makes changes cheap, as mirrors do."""
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in STORAGES[lake.storage].changing_properties.items())
    session.sql(
        f"create table {lake.table('plain')} using {lake.storage} tblproperties ({properties}) "
        f"as select {', '.join(TYPES)} from {lake.table('orders')}"
    )


def _newest_batch(session: Any, lake: Lake) -> int:
    return session.sql(f"select max(batch) from {_fresh(session, lake, 'shop_to_changelog')}").first()[0]


def _fresh(session: Any, lake: Lake, name: str) -> str:
    """What SQL calls a table. The session sees what others have written: of Iceberg it keeps what it has read."""
    if lake.storage == "iceberg":
        session.catalog.refreshTable(lake.table(name))
    return lake.table(name)


def _seconds_of_merge(session: Any, lake: Lake, batch: int) -> float:
    plain, changelog = lake.table("plain"), _fresh(session, lake, "shop_to_changelog")
    began = time.perf_counter()
    session.sql(PLAIN_MERGE.format(plain=plain, changelog=changelog, batch=batch))
    return time.perf_counter() - began


def _differences(session: Any, lake: Lake) -> int:
    """The rows that only one of both tables has."""
    own, plain = (f"select {', '.join(TYPES)} from {_fresh(session, lake, name)}" for name in ("orders", "plain"))
    return session.sql(f"({own} except {plain}) union all ({plain} except {own})").count()


def figures() -> Iterator[dict[str, float]]:
    """All figures, part by part, each from a process of its own; then how they grow with the table."""
    found: dict[str, float] = {}
    parts = [("increments", storage, size) for storage in STORAGES for size in SIZES]
    for figure, storage, rows in (*parts, ("first_build", "delta", FIRST_BUILD)):
        found |= (part := measured_by("tests.bench_mirrors", figure, storage, str(rows)))
        yield part
    for storage, kind in product(STORAGES, ("spread", "recent", "spread_history", "recent_history")):
        small, large = (found[f"mirror.{storage}_{size // 1000}k_{kind}_s"] for size in (SIZES[0], SIZES[-1]))
        yield {f"mirror.{storage}_{kind}_large_vs_small": large / small}


if __name__ == "__main__":
    work = WORK / "mirrors"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    name, storage, rows = sys.argv[1:]
    print(json.dumps({"increments": increments, "first_build": first_build}[name](Lake(work, storage), int(rows))))
