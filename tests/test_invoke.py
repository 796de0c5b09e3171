"""Commands from Python, as a task of an orchestrator runs them: results are objects, and nothing is left over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runner import invoke
from runner.errors import RunnerError, RunnerErrors
from tests.pages import section
from tests.small_format import SMALL, message

if TYPE_CHECKING:
    from runner.engine.session import Spark

ROOT = Path(__file__).parent.parent
FILES = {
    "project.yml": "{}",
    "models/good.sql": "{{ config(materialized='table') }} select 1 as id union all select null",
    "models/bad.sql": "{{ config(materialized='table') }} select nothing from {{ ref('good') }}",
    "models/good.yml": "models: [{name: good, columns: [{name: id, data_tests: [not_null]}]}]",
}


def test_data_are_in_the_output_and_nothing_is_printed(project, capsys: pytest.CaptureFixture[str]) -> None:
    project(FILES)
    listed = invoke(["ls", "--resource-type", "model", "-s", "good bad"])
    assert (listed.success, listed.exit_code, listed.exception) == (True, 0, None)
    assert sorted(listed.output.splitlines()) == ["bad", "good"]
    assert capsys.readouterr().out == ""


def test_a_mistake_is_an_exception_in_the_result(project) -> None:
    project(FILES)
    wrong = invoke(["ls", "-s", "god"])
    assert (wrong.success, wrong.exit_code, wrong.results) == (False, 2, ())
    assert isinstance(wrong.exception, RunnerError) and wrong.exception.code == "selector-empty"
    project({"models/good.sql": "select {{ nothing }}", "models/bad.sql": "select {{ more }}"})
    several = invoke(["ls"]).exception
    assert isinstance(several, RunnerErrors) and len(several.errors) == 2


def test_help_and_version_end_nothing() -> None:
    assert invoke(["--help"]).success and invoke(["ls", "--version"]).exit_code == 2


def test_the_results_of_nodes_are_objects_and_the_session_that_is_there_is_left(project, spark: Spark) -> None:
    project(FILES)
    threads, handlers = set(threading.enumerate()), [signal.getsignal(number) for number in signal.Signals]
    views = {view.name for view in spark.session.catalog.listTables()}
    built = invoke(["build", "-s", "good bad"])
    assert (built.success, built.exit_code, built.exception) == (False, 1, None)
    by_name = {result.name: result for result in built.results}
    assert {name: result.status for name, result in by_name.items()} == {
        "good": "success",
        "not_null_good_id": "fail",
        "bad": "skipped",
    }
    assert by_name["good"].rows == {"rows": 2} and by_name["not_null_good_id"].failures == 1
    assert by_name["bad"].message == 'because "not_null_good_id" failed'
    again = invoke(["show", "-s", "good", "--output", "json"])
    assert again.success and sorted(again.output.splitlines()) == ['{"id":1}', '{"id":null}'] and not again.results
    # Nothing is left of either.
    assert spark.session.range(3).count() == 3
    assert {view.name for view in spark.session.catalog.listTables()} == views
    assert [signal.getsignal(number) for number in signal.Signals] == handlers
    assert not {each.name for each in set(threading.enumerate()) - threads} & {"runner-live"}


@pytest.mark.usefixtures("spark")
def test_the_example_of_the_page(project, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = [block.text for block in section(ROOT / "docs/runner.md", "From Python") if block.kind == "python"]
    folder = project({"project.yml": "{}", "models/orders.sql": "{{ config(materialized='table') }} select 1 as id"})
    here: dict[str, Callable[[], None]] = {}
    exec(example.replace("/srv/shop", str(folder)), here)
    here["build_orders"]()
    assert capsys.readouterr().out == "orders success {'rows': 1} \n"
    project({"models/orders.sql": "select nothing"})
    with pytest.raises(RuntimeError, match="exit code 1"):
        here["build_orders"]()


@pytest.mark.usefixtures("spark")
def test_threads_take_turns(project) -> None:
    """As an orchestrator with a pool of workers calls it; signals are those of the main thread."""
    project(FILES)
    with ThreadPoolExecutor(2) as pool:
        several = list(pool.map(invoke, [["run", "-s", "good"], ["run", "-s", "good"]]))
    assert [one.success for one in several] == [True, True]
    assert [result.status for one in several for result in one.results] == ["success", "success"]


# As two tasks in a process of an orchestrator that lives on: the first in a thread, the second in the main thread.
TASKS = """
import signal, threading, time
from runner import invoke

def task(words, results):
    results.append(invoke(words))

before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
results = []
thread = threading.Thread(target=task, args=(["run", "-s", "good"], results))
thread.start()
thread.join()
task(["show", "-s", "good", "--output", "json"], results)
from pyspark import SparkContext
print([one.success for one in results], len(results[0].results), sorted(results[1].output.split()))
print(SparkContext._gateway, SparkContext._active_spark_context)
print(before == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)])
deadline = time.monotonic() + 10
while threading.active_count() > 1 and time.monotonic() < deadline:
    time.sleep(0.1)
print([thread.name for thread in threading.enumerate()])
"""


@pytest.mark.engines
def test_two_tasks_of_a_process_that_lives_on(project) -> None:
    folder = project(FILES)
    ran = subprocess.run(
        [sys.executable, "-c", TASKS], cwd=folder, env=with_path(), capture_output=True, text=True, timeout=300
    )
    assert ran.stdout.splitlines() == [
        """[True, True] 1 ['{"id":1}', '{"id":null}']""",
        "None None",
        "True",
        "['MainThread']",
    ], ran.stderr
    assert ran.stderr.count("  starting Spark\n") == 2 and "Traceback" not in ran.stderr


def with_path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


INTERRUPTED = """
import signal
from runner import invoke
import runner.commands.session as session

def opened(*words):
    signal.raise_signal(signal.SIGINT)

session.open_spark = opened
try:
    invoke(["run", "-s", "good"])
except KeyboardInterrupt:
    print("interrupted", signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


@pytest.mark.engines
def test_a_signal_ends_the_caller_too(project) -> None:
    ran = subprocess.run([sys.executable, "-c", INTERRUPTED], cwd=project(FILES), env=with_path(), capture_output=True)
    assert ran.stdout == b"interrupted True\n", ran.stderr


# As a job that has opened a session itself, with settings of its own; then its JVM is killed.
GUEST = """
import json
from pyspark.sql import SparkSession
from runner import invoke

settings = {"spark.sql.session.timeZone": "Asia/Tokyo", "spark.sql.ansi.enabled": "false"}
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
own = builder.config(map=settings).getOrCreate()
before = own.sql("set").collect()
landed = invoke(["run", "-s", "a_to_changelog"])
print(landed.exit_code, [(result.status, dict(result.rows)["row"]) for result in landed.results])
print(own.sql("set").collect() == before, own.range(3).count())
own.sparkContext._gateway.proc.kill()
own.sparkContext._gateway.proc.wait()
gone = invoke(["build", "-s", "a_to_changelog"])
print(gone.exit_code, gone.exception.code)
again = invoke(["show", "--inline", "select key['id'] as id from a_to_changelog", "--output", "json"])
print(again.exit_code, again.output.split())
"""


@pytest.mark.engines
def test_a_session_of_the_process_is_enough_to_land_and_one_that_has_died_is_replaced(project) -> None:
    files = {"formats/small.yml": SMALL, "in/1.jsonl": f"{message(1)}\n{message(2)}\n"}
    folder = project({"project.yml": "sources: [{name: a, format: small, files: in/*}]", **files})
    ran = subprocess.run([sys.executable, "-c", GUEST], cwd=folder, env=with_path(), capture_output=True, text=True)
    assert ran.stdout.splitlines() == [
        "0 [('success', 2)]",
        "True 3",
        "2 spark-gone",
        """0 ['{"id":"1"}', '{"id":"2"}']""",
    ], ran.stderr
    # What lets go of its objects after the JVM has ended may say so, with a traceback of its own.
    assert "error[spark-gone]: the JVM of Spark has ended" in ran.stderr
