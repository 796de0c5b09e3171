"""`make bench`: how fast, as ratios to the bare JSON parser of the same Spark in the same process, round by round; Avro
beside fastavro alone.

Prints a table and writes target/bench.json, flat: name -> number. Each figure runs in a JVM of its own, for a JVM that
has run other
queries runs the next ones slower; every round takes the baseline and the figure in turn, and the figure is the median
of the rounds' ratios.
"""

from __future__ import annotations

import base64
import io
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import fastavro
import orjson
import pyarrow
import pyarrow.parquet

from tests.avro_cases import encoded

if TYPE_CHECKING:
    from runner.commands.job import Job
    from runner.project.nodes import Source

ROOT = Path(__file__).parent.parent
WORK = ROOT / "target" / "bench"
MEGABYTES = int(os.environ.get("BENCH_MB", "140"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "7"))
WARM_UP = 2
# Format, figure, and what it is compared with.
FIGURES = (
    ("canal", "sql", "bare"),
    ("canal", "run", "bare"),
    ("oms_default", "sql", "bare"),
    ("oceanbase_avro", "decode", "fastavro"),
    ("oceanbase_avro", "sql", "fastavro"),
)

TYPES = {
    "id": "bigint(20)",
    "order_no": "varchar(32)",
    "customer_id": "bigint(20)",
    "status": "varchar(16)",
    "quantity": "int(11)",
    "currency": "char(3)",
    "sku": "varchar(64)",
    "title": "varchar(255)",
    "note": "varchar(255)",
    "paid": "tinyint(1)",
    "city": "varchar(64)",
    "weight": "double",
    "updated_at": "timestamp",
    "picture": "blob",
}
WORDS = [
    "red",
    "green",
    "blue",
    "large",
    "small",
    "light",
    "heavy",
    "fast",
    "slow",
    "paper",
    "steel",
    "glass",
    "wooden",
    "round",
]
PROJECT = """
name: bench
targets: {{local: {{path: {work}/warehouse, spark: {{spark.master: "local[2]", spark.driver.memory: {memory}}}}}}}
sources:
  - {{name: canal, format: canal, zone: "+08:00", files: "{work}/{files}"}}
  - {{name: oms_default, format: oms_default, files: "{work}/oms_default.jsonl"}}
  - {{name: oceanbase_avro, format: oceanbase_avro, table: "{work}/oceanbase_avro"}}
"""


# --- the messages


def write_messages(path: Path, megabytes: int, message: Callable[[int, random.Random], dict]) -> None:
    """Messages of about 1 KB with 14 columns, a timestamp and a blob among them: 30 % inserts, 60 % updates, 10 %
    deletes.
    """
    draw = random.Random(1)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        number = 0
        while file.tell() < megabytes * 1_000_000:
            file.write(orjson.dumps(message(number, draw)) + b"\n")
            number += 1


def _bare_number_message(number: int, draw: random.Random) -> dict:
    """Numbers bare, fractions among them, and whole images on both sides."""
    kind = draw.choices(["INSERT", "UPDATE", "DELETE"], [3, 6, 1])[0]
    row = _row(number, draw)
    row |= {name: int(row[name]) for name in ("id", "customer_id", "quantity", "paid")}
    row |= {
        "weight": draw.randrange(10**6) / 100,
        "updated_at": f"{1700000000 + number}.250000",
        "picture": base64.b64encode(draw.randbytes(24)).decode(),
    }
    meta = {
        "checkpoint": str(1700000000 + number),
        "record_primary_key": "id",
        "record_primary_value": str(number),
        "source_identity": "s-1",
        "dbType": "OB_MYSQL",
        "storeDataSequence": 170000000000000 + number,
        "table_name": "orders",
        "db": "tenant.shop",
        "timestamp": str(1700000000 + number),
        "uniqueId": f"1002_{number}",
    }
    before = None if kind == "INSERT" else {**row, "status": "new", "weight": 0.5}
    return {
        "prevStruct": before,
        "postStruct": None if kind == "DELETE" else row,
        "allMetaData": meta,
        "recordType": kind,
    }


def _message(number: int, draw: random.Random) -> dict:
    kind = draw.choices(["INSERT", "UPDATE", "DELETE"], [3, 6, 1])[0]
    old = [{"status": "new", "updated_at": "2024-01-01 00:00:00"}] if kind == "UPDATE" else None
    return {
        "data": [_row(number, draw)],
        "database": "shop",
        "es": 1700000000000 + number,
        "id": number,
        "isDdl": False,
        "mysqlType": TYPES,
        "old": old,
        "pkNames": ["id"],
        "sql": "",
        "sqlType": dict.fromkeys(TYPES, 12),
        "table": "orders",
        "ts": 1700000000500 + number,
        "type": kind,
    }


def write_avro(folder: Path, megabytes: int) -> None:
    """The same changes in Avro, as a Kafka dump of four Parquet files."""
    schema, draw, size, messages = _avro_schema(), random.Random(1), 0, []
    while size < megabytes * 1_000_000:
        messages.append(encoded(schema, _avro_message(len(messages), draw)))
        size += len(messages[-1])
    folder.mkdir(parents=True)
    for number in range(4):
        part = pyarrow.array(messages[number::4], pyarrow.binary())
        table = pyarrow.table(
            {"value": part, "offset": pyarrow.array(range(number, len(messages), 4), pyarrow.int64())}
        )
        pyarrow.parquet.write_table(table, folder / f"{number}.parquet")


def _avro_schema() -> object:
    return fastavro.parse_schema(json.loads((ROOT / "formats/schemas/oceanbase.avsc").read_text()))


def _avro_message(number: int, draw: random.Random) -> dict:
    kind = draw.choices(["INSERT", "UPDATE", "DELETE"], [3, 6, 1])[0]
    after = _avro_row(number, draw)
    before = [{**after[0]}, *after[1:3], {"type_info": "STRING", "value": "new"}, *after[4:]]
    return {
        "id": number,
        "version": 1,
        "operation": kind,
        "xid": f"1002_{number}",
        "txind": "W",
        "position": f"1@{number}",
        "timestamp": 1700000000 + number,
        "source": {"sourceType": "OB_MYSQL", "version": "4.2.1"},
        "schemaName": "tenant.shop",
        "tableName": "orders",
        "fields": [{"name": name, "dataTypeNumber": code} for code, name in enumerate(TYPES)],
        "pkIndexes": [0],
        "ukIndexes": [[1]],
        "beforeImages": None if kind == "INSERT" else before,
        "afterImages": None if kind == "DELETE" else after,
        "beforeImageBytes": b"",
        "afterImageBytes": b"",
    }


def _avro_row(number: int, draw: random.Random) -> list[dict]:
    row = _row(number, draw)
    day, clock = row["updated_at"].split(" ")
    values = {
        **row,
        **{name: int(row[name]) for name in ("id", "customer_id", "quantity", "paid")},
        "picture": draw.randbytes(24),
    }
    values["weight"] = ("oms.avro.DecimalObject", {"precision": 10, "scale": 2, "value": row["weight"]})
    parts = [int(part) for part in (*day.split("-"), *clock.split(":"))]
    values["updated_at"] = (
        "oms.avro.DateTimeObject",
        {**dict(zip(("year", "month", "day", "hours", "minutes", "seconds"), parts)), "nanos": 250_000_000},
    )
    kinds = {int: "LONG", str: "STRING", bytes: "BINARY"}
    return [
        {
            "type_info": kinds.get(type(values[name]), "DECIMAL" if name == "weight" else "DATETIME"),
            "value": values[name],
        }
        for name in TYPES
    ]


def _row(number: int, draw: random.Random) -> dict:
    when = f"2024-0{draw.randrange(1, 9)}-1{draw.randrange(9)} 1{draw.randrange(9)}:0{draw.randrange(9)}:11"
    return {
        "id": str(number),
        "order_no": f"A-{number:010d}",
        "customer_id": str(draw.randrange(10**6)),
        "status": draw.choice(["paid", "sent"]),
        "quantity": str(draw.randrange(9)),
        "currency": "EUR",
        "sku": f"SKU-{draw.randrange(10**5):06d}",
        "title": " ".join(draw.choices(WORDS, k=6)),
        "note": " ".join(draw.choices(WORDS, k=10)),
        "paid": "1",
        "city": "Shanghai",
        "weight": f"{draw.randrange(10**6) / 100:.2f}",
        "updated_at": when,
        "picture": draw.randbytes(24).decode("latin-1"),
    }


# --- one figure, in this process


def measure(format_name: str, figure: str) -> None:
    """Prints the seconds of the baseline and of the figure, round by round, as JSON."""
    from runner.compile.query import reads
    from runner.engine.messages import source_view
    from runner.engine.session import Spark

    job = bench_job(WORK, [format_name])
    compiled = job.compiled.nodes[f"{format_name}_to_changelog"]
    (source,) = [source for source in job.workspace.project.sources if source.name == format_name]
    macro = job.workspace.templates.call
    with Spark(job.workspace.project.target, WORK / "spark.log", job.library) as spark:
        source_view(spark, source.messages, reads(macro, source.messages), f"{format_name}_messages", streaming=False)
        spark.register(compiled.functions)
        actions = {"sql": lambda: _noop(spark, compiled.sql), "run": lambda: _land(spark, job, source)}
        if compiled.functions:
            decode = f"select {compiled.functions[0].name}(raw, own_schema) as record from {format_name}_messages"
            actions |= {"decode": lambda: _noop(spark, decode)}
            baseline = _fastavro(format_name)
        else:
            bare = f"select from_json(raw, '{_bare_schema(macro, source)}') as m from {format_name}_messages"
            baseline = lambda: _seconds(lambda: _noop(spark, bare))  # noqa: E731
        rounds = [(baseline(), _seconds(actions[figure])) for _ in range(WARM_UP + ROUNDS)][WARM_UP:]
    print(json.dumps(rounds))


def _fastavro(format_name: str) -> Callable[[], float]:
    """The seconds that fastavro would take for all messages, alone in this process; it reads an eighth of them."""
    schema = _avro_schema()
    messages = [
        value
        for path in sorted((WORK / format_name).glob("*"))
        for value in pyarrow.parquet.read_table(path)["value"].to_pylist()
    ][::8]

    def read() -> None:
        for message in messages:
            fastavro.schemaless_reader(io.BytesIO(message), schema, None)

    return lambda: 8 * _seconds(read)


def bench_job(folder: Path, sources: Iterable[str], target: str | None = None, full_refresh: bool = True) -> Job:
    """The landing of some sources of a project, compiled."""
    from runner.commands.arguments import ProjectArguments
    from runner.commands.job import Job
    from runner.commands.workspace import Workspace

    workspace = Workspace(ProjectArguments(folder, target))
    nodes = [workspace.graph.nodes[f"{source}_to_changelog"] for source in sources]
    return Job.of(workspace, "bench", nodes, full_refresh)


def _bare_schema(macro: Callable[..., str], source: Source) -> str:
    """What the compiled SQL reads of a message, as one schema."""
    from runner.compile.plan import make_plan

    return macro("field_type", make_plan(source.name, source.format, source.zone).json.fields, 0)


def _noop(spark: object, sql: str) -> None:
    spark.session.sql(sql).write.format("noop").mode("overwrite").save()


def _land(spark: object, job: Job, source: Source) -> None:
    """The whole landing: stream, checkpoint, Parquet files by kind and day."""
    from runner.commands.job import parts_of

    landing = parts_of(job, spark, "bench").landing
    landing.land(source)
    landing.read_source(source)


def _seconds(action: Callable[[], None]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


# --- all figures


def main() -> None:
    shutil.rmtree(WORK, ignore_errors=True)
    data = WORK / "canal.jsonl"
    write_messages(data, MEGABYTES, _message)
    write_messages(WORK / "oms_default.jsonl", MEGABYTES, _bare_number_message)
    (WORK / "project.yml").write_text(PROJECT.format(work=WORK, files="canal.jsonl", memory="2g"))
    write_avro(WORK / "oceanbase_avro", MEGABYTES)
    figures: dict[str, float] = {}
    for found in all_figures(data):
        for name, value in found.items():
            print(f"{name:32} {value:10.2f}", flush=True)
        figures |= found
        # After each part: a figure that fails does not take the others with it.
        (ROOT / "target" / "bench.json").write_text(
            json.dumps({name: round(value, 3) for name, value in figures.items()}, indent=1) + "\n"
        )
    shutil.rmtree(WORK / "warehouse", ignore_errors=True)


def all_figures(data: Path) -> Iterator[dict[str, float]]:
    """The figures, part by part."""
    from tests import bench_scale

    for format_name, figure, baseline in FIGURES:
        megabytes = MEGABYTES if baseline == "fastavro" else data.stat().st_size / 1e6
        rounds = json.loads(_python("-m", "tests.bench", format_name, figure).splitlines()[-1])
        yield {
            f"{format_name}.{figure}_mb_s": megabytes / statistics.median(own for _, own in rounds),
            f"{format_name}.{figure}_vs_{baseline}": statistics.median(bare / own for bare, own in rounds),
            f"{format_name}.{baseline}_mb_s": megabytes / statistics.median(bare for bare, _ in rounds),
        }
    yield command_figures()
    yield memory_figures(data)
    yield from bench_scale.figures()


def command_figures() -> dict[str, float]:
    """Seconds of commands that start no JVM, as whole processes."""
    commands = {
        "cli.help_s": ["--help"],
        "cli.ls_s": ["ls"],
        "cli.compile_s": ["compile", "-s", "shop_to_changelog", "-q"],
        "cli.check_s": ["check"],
    }
    return {
        name: statistics.median(_seconds(partial(_runner, *words)) for _ in range(5))
        for name, words in commands.items()
    }


def memory_figures(data: Path) -> dict[str, float]:
    """The most memory of the JVM in a whole `runner run`, and for ten times the data as a ratio to it, with a heap that
    is small for both.
    """
    (WORK / "project.yml").write_text(PROJECT.format(work=WORK, files="one/*", memory="700m"))
    (WORK / "one").mkdir()
    os.link(data, WORK / "one" / "0.jsonl")
    once, seconds = _peak_of_run()
    for number in range(1, 10):
        os.link(data, WORK / "one" / f"{number}.jsonl")
    ten, seconds_ten = _peak_of_run()
    return {
        "canal.memory_mb": once,
        "canal.memory_10x_vs_1x": ten / once,
        "canal.cold_run_s": seconds,
        "canal.cold_run_10x_s": seconds_ten,
        "canal.time_10x_vs_1x": seconds_ten / seconds,
    }


def _peak_of_run() -> tuple[float, float]:
    began = time.perf_counter()
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "runner.cli",
            "--project-dir",
            str(WORK),
            "-q",
            "run",
            "--full-refresh",
            "-s",
            "canal_to_changelog",
        ],
        cwd=ROOT,
    )
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, *(_peak_mb(pid) for pid in _descendants(process.pid)), 0.0)
        time.sleep(0.2)
    if process.returncode:
        raise SystemExit(f"runner run failed with exit code {process.returncode}")
    return peak, time.perf_counter() - began


def _descendants(pid: int) -> list[int]:
    try:
        children = [
            int(c) for task in Path(f"/proc/{pid}/task").iterdir() for c in (task / "children").read_text().split()
        ]
    except OSError:
        return []
    return [pid, *(d for child in children for d in _descendants(child))]


def _peak_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM")), 0.0)


def _runner(*words: str) -> None:
    _python("-m", "runner.cli", "--project-dir", str(WORK), *words)


def _python(*words: str) -> str:
    return subprocess.run([sys.executable, *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    measure(*sys.argv[1:]) if len(sys.argv) > 1 else main()
