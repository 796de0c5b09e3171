"""`make bench-steps FORMAT=canal`: what each named step of a format's compiled SQL costs.

Each step runs as a prefix of the query, up to this step and no further, in turn with all others. The table has
microseconds of one core per message: of the first run in this process, of the fastest later one, and what the step adds
to the step before. The last lines are the seconds that Spark takes to analyse and to plan the whole query.
"""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.bench import MEGABYTES, PROJECT, ROUNDS, WORK, analysed_and_planned, bench_run
from tests.bench_messages import write_format

if TYPE_CHECKING:
    from runner.engine.session import Spark

CORES = 2
STEP = re.compile(r"^`?(\w+)`? as \($")


@dataclass
class Step:
    """A prefix of a query: `sql` selects all that the step holds. `seconds` are those of its runs, in their order."""

    name: str
    sql: str
    seconds: list[float] = field(default_factory=list)

    def microseconds(self, seconds: float, messages: int) -> float:
        return seconds * CORES * 1e6 / messages


def steps_of(sql: str) -> Iterator[tuple[str, str]]:
    """Name and prefix of each step of a compiled query, then the whole query.

    >>> sql = "with\\na as (\\n  select 1\\n),\\nb as (\\n  select * from a\\n)\\nselect * from b"
    >>> next(steps_of(sql))
    ('a', 'with\\na as (\\n  select 1\\n)\\nselect * from `a`')
    >>> [name for name, _ in steps_of(sql)]
    ['a', 'b', '(all)']
    """
    lines, name = sql.split("\n"), ""
    for number, line in enumerate(lines):
        if found := STEP.match(line):
            name = found[1]
        elif name and line in (")", "),"):
            yield name, "\n".join([*lines[:number], ")", f"select * from `{name}`"])
            name = ""
    yield "(all)", sql


def write_project(format_name: str) -> None:
    """The project of `make bench`, with a source of this format."""
    project = PROJECT.format(work=WORK, files="canal.jsonl", memory="2g")
    if f"name: {format_name}," not in project:
        files = f"{WORK}/{format_name}.jsonl"
        project += f'  - {{name: {format_name}, format: {format_name}, files: "{files}"}}\n'
    (WORK / "project.yml").write_text(project)


def measure(spark: Spark, steps: list[Step]) -> None:
    """Runs every step, round by round: prefixes that run one after the other meet the same state of the machine."""
    for _ in range(ROUNDS + 1):
        for step in steps:
            began = time.perf_counter()
            spark.query(step.sql).write.format("noop").mode("overwrite").save()
            step.seconds.append(time.perf_counter() - began)


def main(format_name: str) -> None:
    from runner.compile.query import reads
    from runner.engine.messages import source_view
    from runner.engine.session import Spark

    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    write_format(WORK, format_name, MEGABYTES)
    write_project(format_name)
    run = bench_run(WORK, [format_name])
    compiled, project = run.compiled.nodes[f"{format_name}_to_changelog"], run.project
    (source,) = [source for source in project.sources if source.name == format_name]
    view, expressions = f"{format_name}_messages", reads(run.macro, source.messages)
    with Spark(project.target, WORK / "spark.log", run.library) as spark:
        source_view(spark, source.messages, expressions, view)
        spark.register(compiled.functions, compiled.sql_functions)
        steps = [Step("(scan)", f"select * from `{view}`"), *(Step(*one) for one in steps_of(compiled.sql))]
        messages = spark.count(f"select * from `{view}`")
        measure(spark, steps)
        analysis, planning = analysed_and_planned(spark, compiled.sql)
    show(steps, messages)
    print(f"{messages} messages; analysis {analysis:.2f} s, planning {planning:.2f} s")


def show(steps: list[Step], messages: int) -> None:
    print(f"{'step':20} {'first':>8} {'warm':>8} {'adds':>8}   core-µs per message")
    before = 0.0
    for step in steps:
        first, warm = (step.microseconds(one, messages) for one in (step.seconds[0], min(step.seconds[1:])))
        print(f"{step.name:20} {first:8.1f} {warm:8.1f} {warm - before:8.1f}")
        before = warm


if __name__ == "__main__":
    main(*sys.argv[1:])
