"""`make bench`: how fast, as ratios to the bare JSON parser of the same Spark in the same process, round by round; Avro
beside fastavro alone. `python -m tests.bench FORMAT FIGURE` measures one: canal sql, canal cold, canal planning.

Prints a table and writes target/bench.json, flat: name -> number. Each figure runs in a JVM of its own, for a JVM that
has run other queries runs the next ones slower; every round takes the baseline and the figure in turn, and the figure
is the median of the rounds' ratios.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow
import pyarrow.parquet

from tests.bench_messages import avro_schema, write_format

if TYPE_CHECKING:
    from runner.compile.compiled import CompiledNode
    from runner.engine.session import Spark
    from runner.project.inputs import Source
    from runner.run.run import Run

ROOT = Path(__file__).parent.parent
WORK = ROOT / "target" / "bench"
MEGABYTES = int(os.environ.get("BENCH_MB", "140"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "7"))
WARM_UP = 2
# Java compiles the analyser late: until then each round is faster than the one before it.
PLANNING_ROUNDS = 5
COLD_ROUNDS = 5
# Format, figure, and what it is compared with.
FIGURES = (
    ("canal", "sql", "bare"),
    ("canal", "run", "bare"),
    ("oms_default", "sql", "bare"),
    ("dataworks", "sql", "bare"),
    ("oceanbase_avro", "decode", "fastavro"),
    ("oceanbase_avro", "sql", "fastavro"),
)

PROJECT = """
name: bench
targets: {{local: {{path: {work}/warehouse, spark: {{spark.master: "local[2]", spark.driver.memory: {memory}}}}}}}
sources:
  - {{name: canal, format: canal, zone: "+08:00", files: "{work}/{files}"}}
  - {{name: oms_default, format: oms_default, files: "{work}/oms_default.jsonl"}}
  - {{name: dataworks, format: dataworks, files: "{work}/dataworks.jsonl"}}
  - {{name: oceanbase_avro, format: oceanbase_avro, table: "{work}/oceanbase_avro"}}
"""


# --- one figure, in this process


def measure(format_name: str, figure: str) -> list:
    """A figure of a format, in a new JVM: of "cold" the seconds of each landing, of "cold_bare" those of each bare
    parse; of "planning" those of analysis and of planning; else those of the baseline and of the figure, round by
    round. Messages that are already written are read again.
    """
    from runner.engine.session import Spark

    write_inputs([format_name])
    run = bench_run(WORK, [format_name])
    (source,) = [source for source in run.project.sources if source.name == format_name]
    with Spark(run.project.target, WORK / "spark.log", run.library) as spark:
        match figure:
            case "cold":
                return [_seconds(lambda: _land(spark, run, source)) for _ in range(COLD_ROUNDS)]
            case "cold_bare":
                _open(spark, run, source)
                bare = _bare(run, source)
                return [_seconds(lambda: _noop(spark, bare)) for _ in range(COLD_ROUNDS)]
            case "planning":
                return _planning(spark, run, source)
            case _:
                return _against_baseline(spark, run, source, figure)


def _against_baseline(spark: Spark, run: Run, source: Source, figure: str) -> list[tuple[float, float]]:
    compiled, view = _open(spark, run, source), f"{source.name}_messages"
    actions = {"sql": lambda: _noop(spark, compiled.sql), "run": lambda: _land(spark, run, source)}
    if compiled.functions:
        decode = f"select {compiled.functions[0].name}(raw, own_schema) as record from {view}"
        actions |= {"decode": lambda: _noop(spark, decode)}
        baseline = _fastavro(source.name)
    else:
        bare = _bare(run, source)
        baseline = lambda: _seconds(lambda: _noop(spark, bare))  # noqa: E731
    return [(baseline(), _seconds(actions[figure])) for _ in range(WARM_UP + ROUNDS)][WARM_UP:]


def _planning(spark: Spark, run: Run, source: Source) -> list[float]:
    """Seconds of analysing and of planning the query of a source, in a JVM that has run it."""
    compiled = _open(spark, run, source)
    for _ in range(WARM_UP):
        _noop(spark, compiled.sql)
    return list(analysed_and_planned(spark, compiled.sql, PLANNING_ROUNDS * ROUNDS))


def analysed_and_planned(spark: Spark, sql: str, rounds: int = ROUNDS) -> tuple[float, float]:
    """The seconds of analysing and of planning a query, the fastest of some rounds."""
    analysis, planning = [], []
    for _ in range(rounds):
        began = time.perf_counter()
        frame = spark.query(sql)
        analysis.append(time.perf_counter() - began)
        frame._jdf.queryExecution().executedPlan()
        planning.append(time.perf_counter() - began - analysis[-1])
    return min(analysis), min(planning)


def _open(spark: Spark, run: Run, source: Source) -> CompiledNode:
    """The compiled model of a source, in a session that has its messages and the functions that it calls."""
    from runner.compile.query import reads
    from runner.engine.messages import source_view

    compiled = run.compiled.nodes[source.model]
    expressions = reads(run.macro, source.messages)
    source_view(spark, source.messages, expressions, f"{source.name}_messages")
    spark.register(compiled.functions, compiled.sql_functions)
    return compiled


def _fastavro(format_name: str) -> Callable[[], float]:
    """The seconds that fastavro would take for all messages, alone in this process; it reads an eighth of them."""
    schema = avro_schema()
    tables = [pyarrow.parquet.read_table(path) for path in sorted((WORK / format_name).glob("*"))]
    messages = [value for table in tables for value in table["value"].to_pylist()][::8]

    def read() -> None:
        for message in messages:
            fastavro.schemaless_reader(io.BytesIO(message), schema, None)

    return lambda: 8 * _seconds(read)


def bench_run(folder: Path, sources: Iterable[str], target: str | None = None, full_refresh: bool = True) -> Run:
    """The landing of some sources of a project, compiled."""
    return run_of(folder, [f"{source}_to_changelog" for source in sources], target, full_refresh)


def run_of(folder: Path, nodes: Iterable[str], target: str | None = None, full_refresh: bool = False) -> Run:
    """Some nodes of a project, compiled."""
    from runner.run.run import Run, Settings
    from runner.run.workspace import ProjectArguments, Workspace

    workspace = Workspace(ProjectArguments(folder, target))
    return Run(workspace, "bench", [workspace.graph.nodes[name] for name in nodes], Settings(full_refresh), "bench")


def _bare(run: Run, source: Source) -> str:
    """A query that only parses: with one schema, of all that the compiled SQL reads of a message."""
    from runner.compile.json import JsonReading

    fields = JsonReading(source.format).fields
    schema = run.macro("field_type", fields, 0)
    return f"select from_json(raw, '{schema}') as m from {source.name}_messages"


def _noop(spark: Spark, sql: str) -> None:
    spark.query(sql).write.format("noop").mode("overwrite").save()


def _land(spark: Spark, run: Run, source: Source) -> None:
    """The whole landing: stream, checkpoint, Parquet files by kind and day."""
    from runner.run.run import Run

    again = Run(run.workspace, run.command, run.nodes, run.settings, run.run_id)
    again.compiled = run.compiled
    again.begin(spark)
    landing = again.landing
    landed, _ = landing.land(source)
    assert landed.messages
    landing.read_source(source)


def _seconds(action: Callable[[], None]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


# --- all figures


def main() -> None:
    shutil.rmtree(WORK, ignore_errors=True)
    write_inputs(dict.fromkeys(name for name, _, _ in FIGURES))
    figures: dict[str, float] = {}
    for found in all_figures(WORK / "canal.jsonl"):
        for name, value in found.items():
            print(f"{name:32} {value:10.2f}", flush=True)
        figures |= found
        # After each part: a figure that fails does not take the others with it.
        rounded = {name: round(value, 3) for name, value in figures.items()}
        (ROOT / "target" / "bench.json").write_text(json.dumps(rounded, indent=1) + "\n")
    shutil.rmtree(WORK / "warehouse", ignore_errors=True)


def write_inputs(formats: Iterable[str]) -> None:
    """Writes the project, and the messages of these formats that are not there yet."""
    WORK.mkdir(parents=True, exist_ok=True)
    (WORK / "project.yml").write_text(PROJECT.format(work=WORK, files="canal.jsonl", memory="2g"))
    for name in formats:
        if not any((WORK / file).exists() for file in (f"{name}.jsonl", name)):
            write_format(WORK, name, MEGABYTES)


def all_figures(data: Path) -> Iterator[dict[str, float]]:
    """The figures, part by part."""
    from tests import bench_databases, bench_mirrors, bench_scale

    for format_name, figure, baseline in FIGURES:
        yield compared(format_name, figure, baseline, data.stat().st_size / 1e6)
    yield cold_figures()
    yield command_figures()
    yield memory_figures(data)
    yield from bench_scale.figures()
    yield from bench_mirrors.figures()
    yield from bench_databases.figures()


def compared(format_name: str, figure: str, baseline: str, megabytes: float) -> dict[str, float]:
    """A figure beside its baseline: throughput of both, and the median of the rounds' ratios."""
    megabytes = MEGABYTES if baseline == "fastavro" else megabytes
    rounds = measured_by("tests.bench", format_name, figure)
    return {
        f"{format_name}.{figure}_mb_s": megabytes / statistics.median(own for _, own in rounds),
        f"{format_name}.{figure}_vs_{baseline}": statistics.median(bare / own for bare, own in rounds),
        f"{format_name}.{baseline}_mb_s": megabytes / statistics.median(bare for bare, _ in rounds),
    }


def cold_figures() -> dict[str, float]:
    """What a process pays before it is warm: the first landing beside the last, the first bare parse beside the last,
    and a whole run of a few messages. Beside it the seconds that a warm process needs to analyse and to plan.
    """
    first, *_, last = measured_by("tests.bench", "canal", "cold")
    first_bare, *_, last_bare = measured_by("tests.bench", "canal", "cold_bare")
    analysis, planning = measured_by("tests.bench", "canal", "planning")
    return {
        "canal.cold_140mb_vs_warm": first / last,
        "canal.bare_cold_vs_warm": first_bare / last_bare,
        "canal.analyse_s": analysis,
        "canal.plan_s": planning,
        "cold.twelve_messages_s": twelve_messages(),
    }


def twelve_messages() -> float:
    """Seconds of a whole `runner run` of the sample project, in a copy: its own tables stay as they are."""
    sample = WORK / "sample"
    messages = "formats/cases/canal/shop.messages.jsonl"
    (sample / messages).parent.mkdir(parents=True, exist_ok=True)
    for name in ("project.yml", messages):
        shutil.copy(ROOT / name, sample / name)
    shutil.copytree(ROOT / "models", sample / "models", dirs_exist_ok=True)
    words = ("--project-dir", str(sample), "run", "--full-refresh", "-s", "shop_to_changelog")
    return statistics.median(_seconds(lambda: _python("-m", "runner.cli", *words)) for _ in range(3))


def measured_by(module: str, *words: str) -> Any:
    """What a process of its own measures: the last line that it prints, JSON."""
    command = [sys.executable, "-m", module, *words]
    ran = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(ran.stdout.splitlines()[-1])


def command_figures() -> dict[str, float]:
    """Seconds of commands that start no JVM, as whole processes."""
    runner = ("-m", "runner.cli", "--project-dir", str(WORK))
    compiled = ["compile", "-s", "canal_to_changelog", "-q"]
    commands = {"cli.help_s": ["--help"], "cli.ls_s": ["ls"], "cli.compile_s": compiled, "cli.check_s": ["check"]}
    each = {name: partial(_python, *runner, *words) for name, words in commands.items()}
    return {name: statistics.median(_seconds(run) for _ in range(5)) for name, run in each.items()}


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
    words = ("--project-dir", str(WORK), "-q", "run", "--full-refresh", "-s", "canal_to_changelog")
    process = subprocess.Popen([sys.executable, "-m", "runner.cli", *words], cwd=ROOT)
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, *(_peak_mb(pid) for pid in _descendants(process.pid)), 0.0)
        time.sleep(0.2)
    if process.returncode:
        raise SystemExit(f"runner run failed with exit code {process.returncode}")
    return peak, time.perf_counter() - began


def _descendants(pid: int) -> list[int]:
    try:
        texts = [(task / "children").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []
    return [pid, *(one for text in texts for child in text.split() for one in _descendants(int(child)))]


def _peak_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM")), 0.0)


def _python(*words: str) -> str:
    return subprocess.run([sys.executable, *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:]))) if len(sys.argv) > 1 else main()
