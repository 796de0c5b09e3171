"""A Spark that does not start, or has ended: what is wrong with it is said, as with all other mistakes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engines import ROOT
from tests.pages import section
from tests.test_cluster import wait_until


def run(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: in this one Spark may have been started."""
    return subprocess.run(
        [sys.executable, "-m", "runner.cli", "run"],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


@pytest.mark.spark
@pytest.mark.parametrize(
    ("settings", "environment", "says"),
    [
        pytest.param("{}", {"JAVA_HOME": "nowhere"}, "nowhere/bin/java", id="no Java"),
        pytest.param("{}", {"SPARK_HOME": "nowhere"}, "nowhere", id="no Spark"),
        pytest.param("{spark.driver.memory: lots}", {}, "lots", id="memory"),
        pytest.param(
            "{spark.master: nonsense}", {}, "Master must either be yarn or start with spark, k8s, or local", id="master"
        ),
    ],
)
def test_what_is_wrong_is_said(
    project: Callable[..., Path], settings: str, environment: dict[str, str], says: str
) -> None:
    folder = project(
        {
            "project.yml": (
                f"target: t\ntargets: {{t: {{spark: {settings}}}}}\n"
                f"sources: [{{name: app, format: canal, files: in/*}}]\n"
            )
        }
    )
    ran = run(folder, **environment)
    assert (ran.returncode, ran.stdout) == (2, "")
    lines = [line for line in ran.stderr.splitlines() if not re.match(r"Picked up|\S+  RUNNING ", line)]
    starting, said, hint = lines
    assert starting[10:] == "starting Spark"
    assert said.startswith("error[spark-start]: Spark did not start: ") and says in said
    assert "hint: Spark needs Java 17 or later" in hint and "target/logs/spark.log has the whole output" in hint


KILLED = """
import sys
from runner.cli import main
from runner.engine.session import Spark

whole = Spark.{method}

def killed(self, *words, **named):
    self.kill()
    self.is_killed = False
    return whole(self, *words, **named)

Spark.{method} = killed
sys.exit(main(["show", "--inline", "select 1 as n"]))
"""


@pytest.mark.spark
@pytest.mark.parametrize(("method", "code"), [("_prepare", 2), ("query", 1)])
def test_a_spark_that_has_ended(project: Callable[..., Path], method: str, code: int) -> None:
    """Killed while a session is opened, and before a query."""
    command = [sys.executable, "-c", KILLED.format(method=method)]
    ran = subprocess.run(command, cwd=project({"project.yml": "{}"}), capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (code, ""), ran.stderr
    assert "the JVM of Spark has ended" in ran.stderr and "bug" not in ran.stderr, ran.stderr


@pytest.mark.spark
@pytest.mark.soak
def test_an_archive_of_classes_is_written_by_one_run_and_read_by_the_next(project: Callable[..., Path]) -> None:
    settings, written = section(ROOT / "docs/production.md", "Runs that start faster")
    message = {"type": "INSERT", "database": "d", "table": "t", "data": [{"id": "1"}], "pkNames": ["id"]}
    folder = project({"in/a.jsonl": json.dumps(message)})
    archive, loaded = folder / "classes.jsa", folder / "loaded.log"
    targets = settings.text.replace("/srv/shop/classes.jsa", f"{archive} -Xlog:class+load:file={loaded}")
    project({"project.yml": f"target: local\n{targets}sources: [{{name: app, format: canal, files: in/*}}]\n"})

    variable, command = written.text.strip().split(" ", 1)
    assert command == "runner run"
    name, value = variable.split("=")
    # Tests have options of their own, with another archive.
    wrote = run(folder, JAVA_TOOL_OPTIONS="", **{name: value})
    assert wrote.returncode == 0, wrote.stderr
    # Java goes on to write it when the command has ended.
    wait_until(lambda: archive.exists() and time.time() - archive.stat().st_mtime > 2)
    read = run(folder, JAVA_TOOL_OPTIONS="")
    assert read.returncode == 0, read.stderr
    loads = [line for line in loaded.read_text().splitlines() if " org.apache.spark." in line]
    assert sum(line.endswith("shared objects file (top)") for line in loads) > 1000
    assert sum(line.endswith(".jar") for line in loads) < 100
