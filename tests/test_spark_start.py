"""A Spark that does not start, or has ended: what is wrong with it is said, as with all other mistakes."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyspark
import pytest

from runner.engine.start import DEFAULT_OPTIONS, OPTIONS, READ_BY_JAVA, archive, java_options, reading, settings_of
from runner.project.inputs import Target

JAVA_OPTIONS = ("-XX:+UseParallelGC", "-XX:-DontCompileHugeMethods", "-XX:MetaspaceSize=256m")
FOR_LITTLE = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m")


# Settings of a target, variables of the environment -> what is said. The last one does start Java.
MISTAKES = (
    ({}, {"JAVA_HOME": "nowhere"}, "nowhere/bin/java"),
    ({}, {"SPARK_HOME": "nowhere"}, "nowhere"),
    ({"spark.driver.memory": "lots"}, {}, "lots"),
    ({"spark.master": "nonsense"}, {}, "Master must either be yarn or start with spark, k8s, or local"),
)
ONE_AFTER_THE_OTHER = """
import json, os, sys
from pathlib import Path
from runner.cli import main

for settings, environment, _ in json.loads(sys.argv[1]):
    Path("project.yml").write_text(json.dumps({**PROJECT, "targets": {"t": {"spark": settings}}}))
    before = dict(os.environ)
    os.environ.update(environment)
    code = main(["run"])
    os.environ.clear()
    os.environ.update(before)
    print(f"exit code {code}", file=sys.stderr)
"""


@pytest.mark.engines
def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    """In a process of its own: in this one Spark may have been started."""
    project = {"target": "t", "sources": [{"name": "app", "format": "canal", "files": "in/*"}]}
    code = f"PROJECT = {project!r}\n{ONE_AFTER_THE_OTHER}"
    ran = python(tmp_path, code, json.dumps(MISTAKES))
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
    told = [line for line in ran.stderr.splitlines() if not re.match(r"Picked up|\S+  RUNNING ", line)]
    for number, (_, _, says) in enumerate(MISTAKES):
        starting, said, hint, code = told[4 * number : 4 * number + 4]
        assert starting[10:] == "starting Spark"
        assert said.startswith("error[spark-start]: Spark did not start: ") and says in said
        assert "hint: Spark needs Java 17 or later" in hint and "target/logs/spark.log has the whole output" in hint
        assert code == "exit code 2"
    assert len(told) == 4 * len(MISTAKES)


def python(folder: Path, code: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


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


@pytest.mark.engines
@pytest.mark.parametrize(("method", "code"), [("_prepare", 2), ("query", 1)])
def test_a_spark_that_has_ended(project: Callable[..., Path], method: str, code: int) -> None:
    """Killed while a session is opened, and before a query."""
    ran = python(project({"project.yml": "{}"}), KILLED.format(method=method))
    assert (ran.returncode, ran.stdout) == (code, ""), ran.stderr
    assert "the JVM of Spark has ended" in ran.stderr and "bug" not in ran.stderr, ran.stderr


PREPARED = """
import sys
sys.prefix = {prefix!r}
from runner.cli import main
sys.exit(main({words!r}))
"""


def of_installation(folder: Path, *words: str, options: str = "") -> subprocess.CompletedProcess[str]:
    """In a process whose environment of Python is this folder, with these options of Java alone."""
    code = PREPARED.format(prefix=str(folder / "environment"), words=words)
    return python(folder, code, JAVA_TOOL_OPTIONS=options, COLUMNS="1000")


@pytest.mark.soak
def test_an_archive_of_classes_is_written_once_and_read_by_later_runs(project: Callable[..., Path]) -> None:
    message = {"type": "INSERT", "database": "d", "table": "t", "data": [{"id": "1"}], "pkNames": ["id"]}
    folder = project({"in/a.jsonl": json.dumps(message)})
    old = folder / "environment/share/changelog-runner/classes-old.jsa"
    old.parent.mkdir(parents=True)
    old.touch()
    wrote = of_installation(folder, "prepare")
    assert wrote.returncode == 0, wrote.stderr
    (archive,) = old.parent.iterdir()
    assert archive.stat().st_size > 1e8 and f"wrote {archive} (" in wrote.stderr
    again = of_installation(folder, "prepare")
    assert (again.returncode, f"is there: {archive}" in again.stderr) == (0, True), again.stderr
    assert str(archive) in of_installation(folder, "debug").stdout

    loaded = folder / "loaded.log"
    read = of_installation(folder, "run", options=f"-Xlog:class+load:file={loaded}")
    assert read.returncode == 0, read.stderr
    loads = [line for line in loaded.read_text().splitlines() if " org.apache.spark." in line]
    assert sum(line.endswith("shared objects file (top)") for line in loads) > 1000
    assert sum(line.endswith(".jar") for line in loads) < 100


@pytest.mark.engines
def test_what_keeps_an_archive_from_being_written_is_said(project: Callable[..., Path]) -> None:
    folder = project({})
    refused = of_installation(folder, "prepare", options="-Xshare:off")
    assert refused.returncode == 2
    said = "error[prepare]: Java has written no archive of classes: Spark did not start: DynamicDump"
    assert said in refused.stderr, refused.stderr
    assert list((folder / "environment/share/changelog-runner").iterdir()) == []


def test_an_archive_is_read_if_it_is_there_and_no_other_is_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "an environment"
    monkeypatch.setattr(sys, "prefix", str(home))
    for name in READ_BY_JAVA:
        monkeypatch.setenv(name, "-Xmx1g")
    for name in ("JAVA_HOME", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    assert reading(["-XX:+UseParallelGC"]) == ""
    archive().parent.mkdir(parents=True)
    archive().touch()
    assert archive().is_relative_to(home)
    option = f"-XX:SharedArchiveFile={archive()}"
    assert shlex.split(reading(["-XX:+UseParallelGC", ""])) == [option]
    for chosen in (
        "-XX:SharedArchiveFile=/other.jsa",
        "-XX:ArchiveClassesAtExit=/other.jsa",
        "-Xshare:off",
        "-XX:-UseSharedSpaces",
        "-XX:AOTCache=/other.aot",
    ):
        assert reading(["", f"-Xmx1g {chosen}"]) == ""
        for name in READ_BY_JAVA:
            with monkeypatch.context() as variables:
                variables.setenv(name, chosen)
                assert reading([]) == ""
    for elsewhere in (
        lambda variables: variables.setattr(pyspark, "__version__", "9.9"),
        lambda variables: variables.setenv("JAVA_HOME", str(tmp_path)),
        lambda variables: variables.setenv("SPARK_CONF_DIR", str(tmp_path)),
    ):
        with monkeypatch.context() as variables:
            elsewhere(variables)
            assert reading([]) == ""
    assert shlex.split(reading([])) == [option]


@pytest.mark.parametrize(
    ("settings", "is_small_job", "expected"),
    [
        pytest.param({}, False, [*JAVA_OPTIONS], id="much to read"),
        pytest.param({}, True, [*JAVA_OPTIONS, *FOR_LITTLE], id="little to read"),
        pytest.param({OPTIONS: "-Da=b"}, True, ["-Da=b"], id="the target has options"),
        pytest.param({DEFAULT_OPTIONS: "-Da=b"}, True, [*JAVA_OPTIONS], id="the target has default options"),
        pytest.param({"spark.driver.memory": "1g"}, True, [*JAVA_OPTIONS, *FOR_LITTLE], id="other settings"),
    ],
)
def test_java_has_no_second_compiler_where_there_is_little_to_read(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, str],
    is_small_job: bool,
    expected: list[str],
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert java_options(settings, is_small_job).split() == expected


FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


@pytest.mark.parametrize(
    ("path", "own", "expected"),
    [
        pytest.param("lake", {}, "FileSystemBasedCheckpointFileManager", id="a folder"),
        pytest.param("lake", {"spark.master": "spark://x:1"}, "FileSystemBasedCheckpointFileManager", id="a cluster"),
        pytest.param("s3a://lake/x", {}, None, id="a store"),
        pytest.param("lake", {FILE_MANAGER: "a.Mine"}, "Mine", id="the target has one"),
    ],
)
def test_files_of_checkpoints_are_renamed_without_processes_in_a_folder(
    path: str, own: dict[str, str], expected: str | None
) -> None:
    chosen = settings_of(Target("t", path, spark=own)).get(FILE_MANAGER)
    assert (chosen and chosen.rsplit(".", 1)[1]) == expected
