"""runner debug: one table of what a run needs, and what to do where it is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from runner.commands import debug as debug_command
from runner.commands.debug import _spaces
from runner.project.inputs import Target
from tests.conftest import Ran
from tests.sparks import HERE, SPARKS

MESSAGES = '{"type":"INSERT"}\n'


def told(ran: Ran) -> dict[str, tuple[str, str, str]]:
    """Check -> its state, what was found, what to do."""
    lines = [[cell.strip() for cell in re.split(r" \|(?: |$)", line)] for line in ran.out.splitlines() if " | " in line]
    return {what: (state, found, *to_do, "")[:3] for what, state, found, *to_do in lines}  # type: ignore[misc]


@pytest.fixture
def debug(runner: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    monkeypatch.setenv("COLUMNS", "1000")
    return lambda *words: runner("debug", *words)


@pytest.mark.skipif(HERE is not SPARKS[0], reason="another Spark than the project needs is not all good")
@pytest.mark.usefixtures("spark")
def test_all_good(project, debug: Callable[..., Ran]) -> None:
    folder = project({"in/1.jsonl": MESSAGES, "in/2.jsonl": MESSAGES})
    ran = debug()
    found = told(ran)
    assert ran.code == 0 and ran.out.endswith("all good\n"), ran.out
    assert {state for state, _, _ in found.values()} == {"is", "-" * 2, "ok"}
    assert found["package pyspark"][1] == f"{HERE.pyspark}, needed is =={HERE.pyspark}"
    assert found["Spark"][1].startswith(f"{HERE.pyspark}, ")
    assert found["source orders"][1] == "2 files"
    assert found["project"][1] == str(folder / "project.yml")
    assert found["tables"][1] == "will be created"
    assert {"Python", "Java", "target", "models"} <= set(found)


@pytest.mark.engines
@pytest.mark.usefixtures("spark")
def test_what_is_wrong_is_said_with_what_to_do_and_keeps_nothing_else_from_being_looked_at(
    project, debug: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("FOLDER", "tr0ut-and-more")
    monkeypatch.setattr(
        debug_command, "requires", lambda name: ["pyspark==3.5.0", "no-such-package>=2,<3", "jinja2>=3"]
    )
    project(
        {
            "project.yml": (
                "sources:\n"
                "  - {name: a, format: canal, files: 'in/*'}\n"
                "  - {name: b, format: canal, files: \"nowhere/{{ env_var('FOLDER') }}/*\"}\n"
                "  - {name: c, format: canal, table: \"s3a://gone/{{ env_var('FOLDER') }}\"}\n"
                "target: t\n"
                "targets: {t: {storage: delta, path: /proc/nothing, catalog: {name: spark_catalog, schema: lake}}}\n"
            ),
            "in/1.jsonl": MESSAGES,
        }
    )
    ran = debug()
    found = told(ran)
    assert ran.code == 1 and ran.out.endswith("6 of 17 checks wrong\n"), ran.out
    wrong = {what: (text, to_do) for what, (state, text, to_do) in found.items() if state == "WRONG"}
    assert set(wrong) == {
        "package pyspark",
        "package no-such-package",
        "Java",
        "tables",
        "source b",
        "source c",
    }
    assert wrong["package pyspark"] == (f"{HERE.pyspark}, needed is ==3.5.0", "pip install 'pyspark==3.5.0'")
    assert wrong["package no-such-package"] == (
        "not installed, needed is >=2,<3",
        "pip install 'no-such-package>=2,<3'",
    )
    assert wrong["Java"] == (
        'there is no "/nowhere/bin/java"',
        "install Java 17 or later, and put it in PATH or in JAVA_HOME",
    )
    assert wrong["tables"][0].startswith('nothing can be written to "/proc": ')
    assert "nothing that can be read matches" in wrong["source b"][0] and 'correct "files"' in wrong["source b"][1]
    assert 'correct "table" of the source' in wrong["source c"][1]
    assert found["source a"][:2] == ("ok", "1 file") and found["catalog spark_catalog.lake"][1] == "will be created"
    assert found["space for tables"][0] == "-" and found["space for Spark"][0] == "ok"
    assert "tr0ut" not in ran.out + ran.err and "***" in ran.out


@pytest.mark.usefixtures("spark")
def test_a_project_that_cannot_be_read_is_a_line_of_the_table(project, debug: Callable[..., Ran]) -> None:
    project({"project.yml": "sorces: []\nvars: 7\n"})
    ran = debug()
    lines = [line for line in ran.out.splitlines() if line.startswith("project ")]
    assert ran.code == 1 and len(lines) == 2
    assert "project.yml:1:1" in lines[0] and 'did you mean "sources"?' in lines[0]
    assert told(ran)["Spark"][0] == "ok"
    project({"project.yml": "{}", "models/a.sql": "select * from {{ ref('b') }}"})
    ran = debug()
    assert ran.code == 1 and "models/a.sql:1" in told(ran)["models"][1]


@pytest.mark.engines
@pytest.mark.usefixtures("spark")
def test_topics_without_a_broker(project, debug: Callable[..., Ran]) -> None:
    """The password of the broker is nowhere in the table."""
    source = (
        "sources: [{name: a, format: canal, kafka: {servers: '127.0.0.1:1', topics: [x], options: "
        "{kafka.ssl.key.password: tr0ut-and-more}}}]\n"
    )
    project({"project.yml": source})
    ran = debug()
    state, found, to_do = told(ran)["source a"]
    assert (ran.code, state) == (1, "WRONG") and "Kafka does not answer at 127.0.0.1:1" in found, ran.out
    assert 'correct "kafka"' in to_do and "tr0ut" not in ran.out


def test_where_there_is_no_project_the_rest_is_looked_at(
    tmp_path: Path, debug: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_spark(*_: object, **__: object) -> None:
        from runner.errors import RunnerError

        raise RunnerError("spark-start", "Spark did not start: out of luck", hint="try again")

    monkeypatch.setattr("runner.commands.debug.open_spark", no_spark)
    ran = debug("--project-dir", str(tmp_path))
    found = told(ran)
    assert ran.code == 1
    assert found["project"][0] == "WRONG" and found["project"][2] == "start one with: runner init NAME"
    assert found["Spark"] == ("WRONG", "Spark did not start: out of luck", "try again")
    assert found["Python"][0] == found["Java"][0] == "ok"


@pytest.mark.parametrize(("free", "state"), [(99_999_999, "WRONG"), (100_000_000, "ok")])
def test_the_space_on_the_disks_that_a_run_writes_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, state: str
) -> None:
    """Of folders that are not there, that of the disk on which they will be."""
    disks = {tmp_path: free, Path("/"): 5_000_000_000}
    monkeypatch.setattr("shutil.disk_usage", lambda folder: Mock(free=disks[folder]))
    local, lake = tmp_path / "local", tmp_path / "new/lake"
    found = list(_spaces(Target("t", str(lake), spark={"spark.local.dir": f"/,{local}"})))
    assert [(one.what, one.state, one.found) for one in found] == [
        ("space for tables", state, f"{free // 1_000_000} MB free for {lake}"),
        ("space for Spark", "ok", "5 000 MB free for /"),
        ("space for Spark 2", state, f"{free // 1_000_000} MB free for {local}"),
    ]
    to_do = "make space there, or choose another folder: "
    assert [one.to_do for one in found if one.state == "WRONG"] == (
        [f"{to_do}path", f"{to_do}spark.local.dir"] if state == "WRONG" else []
    )
    target = Target("t", str(lake), spark={"spark.local.dir": "/nowhere"})
    of_variable = list(_spaces(target, str(local)))[1:]
    assert [(one.what, one.state) for one in of_variable] == [("space for Spark", state)]
    assert all(one.to_do == f"{to_do}SPARK_LOCAL_DIRS" for one in of_variable if state == "WRONG")
    assert not list(_spaces(Target("t", "s3a://lake/a", remote="sc://a")))
