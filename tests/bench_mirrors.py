"""Figures of `make bench` about mirrors on Delta: what a run of 10,000 changes costs on tables of two sizes, beside a
plain MERGE of the same changes; what a first build costs beside landing, with little memory.

Each size runs in a process of its own (`python -m tests.bench_mirrors FIGURE ROWS`) and prints JSON, name -> number.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench import ROOT, WORK, job_of
from tests.bench_scale import jvm, seconds_of
from tests.engines import jars

SIZES = tuple(int(size) for size in os.environ.get("BENCH_ROWS", "1000000,10000000").split(","))
CHANGES = int(os.environ.get("BENCH_CHANGES", "10000"))
FIRST_BUILD = int(os.environ.get("BENCH_FIRST_BUILD", "5000000"))
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
    {{storage: delta, path: {folder}/lake, jars: "{jars}",
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
PLAIN_MERGE = """
merge into delta.`{folder}/plain` as own using (
  select * from (
    select
      op, cast(key['id'] as bigint) as id, cast(after['customer'] as bigint) as customer, after['status'] as status,
      cast(after['amount'] as decimal(12,2)) as amount, cast(after['updated_at'] as timestamp_ntz) as updated_at,
      row_number() over (partition by key['id'] order by seq desc) as nth
    from delta.`{folder}/lake/shop_to_changelog`
    where kind = 'row' and batch > {batch})
  where nth = 1) as new
on own.id = new.id
when matched and new.op = 'delete' then delete
when matched then update set
  own.customer = new.customer, own.status = new.status, own.amount = new.amount, own.updated_at = new.updated_at
when not matched and new.op <> 'delete' then insert (id, customer, status, amount, updated_at)
  values (new.id, new.customer, new.status, new.amount, new.updated_at)
"""


def increments(folder: Path, rows: int) -> dict[str, float]:
    """Seconds of a run of the mirror and of its history, of changes to rows all over the table and to the newest rows,
    and how many times those of a MERGE.
    """
    _project(folder, "6g")
    _write(folder, "0-base", _loaded(range(rows)))
    times: dict[str, list[tuple[float, float, float]]] = {"spread": [], "recent": []}
    with jvm(folder), _session(folder) as session:
        seconds_of(job_of(folder, ["shop_to_changelog", "orders", "orders_history"]))
        _plain_table(session, folder)
        for number in range(ROUNDS + 1):
            for kind, changed in times.items():
                chance = random.Random(f"{number} {kind}")
                first = 0 if kind == "spread" else rows - 2 * CHANGES
                _write(folder, f"{number + 1}-{kind}", _updated(chance.sample(range(first, rows), CHANGES), chance))
                batch = _newest_batch(session, folder)
                seconds_of(job_of(folder, ["shop_to_changelog"]))
                merged = _seconds_of_merge(session, folder, batch)
                changed.append(
                    (seconds_of(job_of(folder, ["orders"])), seconds_of(job_of(folder, ["orders_history"])), merged)
                )
        assert _differences(session, folder) == 0
    return dict(_increment_figures(rows, times))


def _increment_figures(rows: int, times: dict[str, list[tuple[float, float, float]]]) -> Iterator[tuple[str, float]]:
    for kind, measured in times.items():
        name, warm = f"mirror.{rows // 1000}k_{kind}", measured[1:]
        yield f"{name}_s", statistics.median(one[0] for one in warm)
        yield f"{name}_history_s", statistics.median(one[1] for one in warm)
        yield f"{name}_vs_merge", statistics.median(one[0] / one[2] for one in warm)


def first_build(folder: Path, changes: int) -> dict[str, float]:
    """How many times as long as landing changes a first build of a mirror of them takes, with 2 GB for both."""
    _project(folder, "2g")
    chance = random.Random(1)
    rows = changes // 5
    _write(folder, "0-base", _loaded(range(rows)))
    _write(folder, "1-changes", (m for _ in range(4) for m in _updated(range(rows), chance)))
    with jvm(folder):
        landed = seconds_of(job_of(folder, ["shop_to_changelog"]))
        built = seconds_of(job_of(folder, ["orders"]))
        history = seconds_of(job_of(folder, ["orders_history"]))
    return {
        "mirror.landed_rows_s": changes / landed,
        "mirror.first_build_vs_landing": landed / built,
        "mirror.first_history_vs_landing": landed / history,
    }


def _project(folder: Path, memory: str) -> None:
    (folder / "models").mkdir(parents=True)
    (folder / "in").mkdir()
    settings = PROJECT.format(folder=folder, jars=jars("spark")[0].parent / "*.jar", memory=memory)
    (folder / "project.yml").write_text(settings)
    (folder / "models/orders.yml").write_text(MIRROR)


def _write(folder: Path, name: str, messages: Iterable[dict[str, Any]]) -> None:
    with (folder / f"in/{name}.jsonl").open("w") as file:
        file.writelines(json.dumps(message) + "\n" for message in messages)


def _loaded(ids: range) -> Iterator[dict[str, Any]]:
    for first in range(ids.start, ids.stop, ROWS_PER_MESSAGE):
        yield _message(
            "INIT", 0, [_row(number, "new", 100) for number in range(first, min(first + ROWS_PER_MESSAGE, ids.stop))]
        )


def _updated(ids: Iterable[int], chance: random.Random) -> Iterator[dict[str, Any]]:
    """Updates, and one delete of a hundred."""
    for number in ids:
        row = _row(number, chance.choice(["paid", "sent", "done"]), chance.randint(1, 999_999))
        yield (
            _message("UPDATE", 1, [row], [{"status": "new"}])
            if chance.random() > 0.01
            else _message("DELETE", 1, [row])
        )


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
def _session(folder: Path) -> Iterator[Any]:
    """A session of the target, for statements that the runner has nothing to do with."""
    from runner.engine.session import Spark

    job = job_of(folder, [])
    with Spark(job.workspace.project.target, folder / "spark.log", job.library) as spark:
        yield spark.session


def _plain_table(session: Any, folder: Path) -> None:
    columns = ", ".join(TYPES)
    session.sql(
        f"create table delta.`{folder}/plain` using delta tblproperties ('delta.enableDeletionVectors' = 'true') "
        f"as select {columns} from delta.`{folder}/lake/orders`"
    )


def _newest_batch(session: Any, folder: Path) -> int:
    return session.sql(f"select max(batch) from delta.`{folder}/lake/shop_to_changelog`").first()[0]


def _seconds_of_merge(session: Any, folder: Path, batch: int) -> float:
    began = time.perf_counter()
    session.sql(PLAIN_MERGE.format(folder=folder, batch=batch))
    return time.perf_counter() - began


def _differences(session: Any, folder: Path) -> int:
    """The rows that only one of both tables has."""
    own, plain = (f"select {', '.join(TYPES)} from delta.`{folder}/{name}`" for name in ("lake/orders", "plain"))
    return session.sql(f"({own} except {plain}) union all ({plain} except {own})").count()


def figures() -> Iterator[dict[str, float]]:
    """All figures, part by part, each from a process of its own; then how they grow with the table."""
    found: dict[str, float] = {}
    for figure, rows in (*(("increments", size) for size in SIZES), ("first_build", FIRST_BUILD)):
        words = [sys.executable, "-m", "tests.bench_mirrors", figure, str(rows)]
        ran = subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
        found |= (part := json.loads(ran.stdout.splitlines()[-1]))
        yield part
    small, large = (f"mirror.{size // 1000}k" for size in (SIZES[0], SIZES[-1]))
    for kind in ("spread", "recent", "spread_history", "recent_history"):
        yield {f"mirror.{kind}_large_vs_small": found[f"{large}_{kind}_s"] / found[f"{small}_{kind}_s"]}


if __name__ == "__main__":
    work = WORK / "mirrors"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    print(json.dumps(globals()[sys.argv[1]](work, int(sys.argv[2]))))
