"""Work under way: on a terminal lines that are drawn again, elsewhere plain lines (runner/live.py), from what
Spark counts (runner/engine/measures.py).
"""

from __future__ import annotations

import io
import json
import os
import pty
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from runner import live
from runner.engine.checkpoint import Checkpoint
from runner.engine.files import LocalFiles
from runner.engine.measures import Measures
from runner.errors import RunnerError
from runner.live import Measure
from runner.project.inputs import Messages
from runner.project.nodes import Model, Node
from runner.report import Report
from runner.run.results import Result
from runner.run.source_files import SourceFiles
from tests.conftest import Ran

if TYPE_CHECKING:
    from runner.engine.session import Spark

NODE = Node("orders", "model", Model("select 1", "table"), ())
DONE = Result("orders", "model", "success", rows={"rows": 3}, seconds=2.0)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that happens after seconds happens at once."""
    for name in ("DRAW_SECONDS", "MEASURE_SECONDS", "PLAIN_SECONDS"):
        monkeypatch.setattr(live, name, 0.01)


@pytest.fixture
def terminal() -> Iterator[tuple[int, io.TextIOBase]]:
    """A terminal of 60 columns: what a person sees of it, and where it is written."""
    import fcntl
    import struct
    import termios

    person, program = pty.openpty()
    fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 60, 0, 0))
    with os.fdopen(program, "w") as stream:
        yield person, stream
    os.close(person)


def written_on(person: int) -> str:
    """All that was written on a terminal so far."""
    os.set_blocking(person, False)
    text = b""
    try:
        while part := os.read(person, 1 << 16):
            text += part
    except BlockingIOError:
        pass
    return text.decode()


def screen(text: str) -> list[str]:
    """The lines that stand on a terminal in the end."""
    lines = [""]
    for part in re.findall(r"\x1b\[\d*[A-Za-z]|\r?\n|[^\x1b\r\n]+", text):
        if up := re.fullmatch(r"\x1b\[(\d+)F", part):
            lines = [*lines[: len(lines) - 1 - int(up[1])], ""]
        elif part.endswith("\n"):
            lines.append("")
        elif not part.startswith("\x1b"):
            lines[-1] += part
    return [line.rstrip() for line in lines if line]


def run_shown(report: Report, until: Callable[[], bool]) -> None:
    """A run of one node that goes on until something is so."""
    report.measuring(lambda name: Measure(read=12_000, written=11_000, share=0.5))
    report.started(NODE, 1, 5)
    deadline = time.monotonic() + 20
    while not until() and time.monotonic() < deadline:
        time.sleep(0.01)
    report.finished(NODE, DONE, 1, 5)
    report.done([DONE], 1.5, 0)
    report.close()


@pytest.mark.usefixtures("hasty")
def test_a_terminal_shows_a_line_with_rows_and_a_bar_and_in_the_end_only_what_came_of_it(terminal) -> None:
    person, stream = terminal
    seen: list[str] = []

    def has_bar() -> bool:
        seen.append(written_on(person))
        return "50%" in "".join(seen)

    run_shown(Report(color=False, stderr=stream), has_bar)
    during, after = "".join(seen), written_on(person)
    shown = [line.rstrip("\r") for line in during.splitlines() if "50%" in line]
    assert "1 of 5 table model orders  [##########----------]  50% 12 " in shown[-1]
    # A line that is too long would be broken by the terminal, and could not be drawn over.
    assert all(len(re.sub(r"\x1b\[\d*[A-Z]", "", line)) < 60 for line in shown)
    ended = [line[10:] for line in screen(during + after)]
    assert ended == [
        "1 of 5 START table model orders",
        "1 of 5 OK table model orders [3 rows in 2.0s]",
        "Done. PASS=1 WARN=0 ERROR=0 SKIP=0 TOTAL=1",
    ]
    assert "runner-live" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.usefixtures("hasty")
def test_elsewhere_there_is_a_plain_line_from_time_to_time() -> None:
    stderr = io.StringIO()
    run_shown(Report(stderr=stderr), lambda: "RUNNING" in stderr.getvalue())
    lines = [line[10:] for line in stderr.getvalue().splitlines()]
    assert lines[0] == "1 of 5 START table model orders"
    assert re.fullmatch(
        r"1 of 5 RUNNING table model orders: 12 000 rows read, 11 000 written(, \d+/s)?, 0s, 50%", lines[1]
    )
    assert "\x1b" not in stderr.getvalue()


@pytest.mark.usefixtures("hasty")
def test_json_logs_say_it_as_an_event() -> None:
    stderr = io.StringIO()
    run_shown(Report("json", stderr=stderr), lambda: '"running"' in stderr.getvalue())
    event = next(event for line in stderr.getvalue().splitlines() if (event := json.loads(line))["event"] == "running")
    assert (event["name"], event["read"], event["written"], event["share"]) == ("orders", 12_000, 11_000, 0.5)


@pytest.mark.usefixtures("hasty")
def test_quiet_shows_nothing_of_it(terminal) -> None:
    person, stream = terminal
    stderr = io.StringIO()
    for report in (Report(quiet=True, stderr=stderr), Report(quiet=True, stderr=stream)):
        with report.during("starting Spark", is_said=True):
            run_shown(report, lambda: time.sleep(0.2) is None)
    assert stderr.getvalue() == written_on(person) == ""


def test_starting_spark_is_said_at_once_and_gone_from_the_terminal_when_it_is_there(terminal) -> None:
    person, stream = terminal
    with Report(stderr=stream).during("starting Spark", is_said=True):
        assert screen(written_on(person)) == ["starting Spark  0s"]
    assert screen("starting Spark  0s\r\n" + written_on(person)) == []
    stderr = io.StringIO()
    with Report(stderr=stderr).during("starting Spark", is_said=True):
        assert stderr.getvalue()[10:] == "starting Spark\n"


def test_a_terminal_that_cannot_draw_gets_plain_lines(terminal) -> None:
    person, stream = terminal
    with Report(stderr=stream, live=False).during("starting Spark", is_said=True):
        assert screen(written_on(person))[0][10:] == "starting Spark"


def test_colours_are_those_of_dbt_on_a_terminal_alone(terminal) -> None:
    """OK green, ERROR red, WARN and SKIP yellow."""
    person, stream = terminal
    results = [Result("a", "model", status) for status in ("success", "error", "warn", "skipped")]
    report = Report(stderr=stream)
    for result in results:
        report.finished(NODE, result, 1, 4)
    report.error(RunnerError("usage", "wrong: very", hint="right"))
    told = written_on(person)
    assert re.findall(r"\x1b\[(\d+)m(\w+)\x1b\[0m", told) == [
        ("32", "OK"),
        ("31", "ERROR"),
        ("33", "WARN"),
        ("33", "SKIP"),
    ]
    assert "\x1b[31merror[usage]:\x1b[0m wrong: very\r\n  hint: right" in told
    stderr = io.StringIO()
    Report(stderr=stderr).finished(NODE, results[0], 1, 4)
    assert "\x1b" not in stderr.getvalue()


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_can_be_declined(terminal, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    from runner.cli import main

    person, stream = terminal
    monkeypatch.setattr("sys.stderr", stream)
    assert main(["ls", "--wrong"]) == 2 and "\x1b[31m" in written_on(person)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert main(["ls", "-s", "a,"]) == 2
    assert "error[" in (told := written_on(person)) and "\x1b" not in told


# --- what is measured


def test_how_many_lines_there_are_is_judged_by_the_first_file(tmp_path: Path) -> None:
    class Read(Checkpoint):
        def committed_files(self) -> dict[str, int]:
            return {f"file:{tmp_path}/a.jsonl": 0}

    for name, lines in (("a", 1000), ("b", 100), ("c", 300)):
        (tmp_path / f"{name}.jsonl").write_text("123456789\n" * lines)
    files = SourceFiles.found(Messages("files", str(tmp_path / "*")), Read(LocalFiles(), ""))
    assert files.to_read == (4000, 400.0)


def test_rows_of_jobs_are_counted_while_they_run_for_the_work_that_started_them(spark: Spark, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.txt").write_text("x\n" * 1000)
    measures, session = Measures(spark.session, False), spark.session

    def copy() -> None:
        with measures.of("copied"):
            measures.expect("copied", rows=2000)
            frame = session.readStream.schema("value string").text(str(tmp_path / "in"))
            stream = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
            stream.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()

    thread = threading.Thread(target=copy)
    thread.start()
    with measures.of("other"):
        session.read.text(str(tmp_path / "in")).limit(7).collect()
    thread.join()
    deadline = time.monotonic() + 20
    # Spark's own bookkeeping of what has ended comes a moment later.
    while (found := measures.now("copied")) != Measure(1000, 1000, 0.5) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert found == Measure(1000, 1000, 0.5)
    other = measures.now("other")
    assert other and 0 < other.read < 1000
    assert measures.now("unknown") is None


@pytest.mark.usefixtures("spark", "hasty")
def test_a_run_says_how_far_its_nodes_are(project, runner: Callable[..., Ran]) -> None:
    header = {"type": "INSERT", "database": "d", "table": "t", "es": 1700000000000, "pkNames": ["id"]}
    lines = [json.dumps({**header, "data": [{"id": str(number)}]}) for number in range(3000)]
    project({"in/1.jsonl": "\n".join(lines) + "\n"})
    ran = runner("run", "-s", "orders_to_changelog", "--log-format", "json")
    assert ran.code == 0, ran.err
    events = [json.loads(line) for line in ran.err.splitlines()]
    told = [event for event in events if event["event"] == "running" and event["name"] == "orders_to_changelog"]
    reads = [event["read"] for event in told]
    assert reads == sorted(reads) and reads[-1] >= 3000
    assert 0.9 <= told[-1]["share"] <= 1
    assert events[-1]["event"] == "done"


def test_measuring_ends_with_the_jvm_and_says_nothing_of_it() -> None:
    class Gone:
        @property
        def sparkContext(self) -> object:
            raise ConnectionRefusedError

    gone: Any = Gone()
    with Measures(gone, is_remote=False).of("orders"):
        pass
