"""What runs record of nodes, and what is made of it without Spark: records, metrics, the watch."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics import parser as openmetrics_parser

from runner.contract import Landed
from runner.errors import RunnerError, RunnerWarning
from runner.project.inputs import Target
from runner.project.node_results import KEPT, NodeRecord, NodeResults
from runner.project.nodes import Model, Node, Project
from runner.run.metrics import CONTENT_TYPE, Metrics, openmetrics
from runner.run.recording import Recorder
from runner.run.results import Batch, Result, Verdict
from runner.run.workspace import ProjectArguments, Workspace
from runner.secrets import Secrets

NODE = Node("orders", "model", None)  # type: ignore[arg-type]


def entry(ended: int, status: str = "success", **more: Any) -> dict[str, Any]:
    """A result that ended in some second of a day."""
    own = {"ended": f"2026-03-01T00:{ended // 60:02}:{ended % 60:02}Z", "status": status, "message": ""}
    return {**own, "seconds": 0.5, "rows": {}, "reasons": {}, "waived": {}, "failures": None, "behind": None, **more}


def project_in(folder: Path, path: str | None = None, secrets: Secrets | None = None) -> Project:
    nothing: dict[str, Any] = {"vars": {}, "sources": (), "model_config": {}, "seed_config": {}}
    folders: dict[str, Any] = {"format_folders": (), "macro_folders": (), "target_path": folder / "target"}
    target = Target("local", path or str(folder / "lake"))
    return Project(folder, "shop", target, **nothing, **folders, secrets=secrets or Secrets())


def after(*entries: dict[str, Any], letters: int | None = None) -> NodeRecord:
    record = NodeRecord()
    for one in entries:
        record = record.after(one, letters)
    return record


# --- records


def test_a_record_is_bounded_and_its_sums_are_not() -> None:
    record = after(*(entry(second, rows={"messages": 2, "row": 1}) for second in range(KEPT + 7)))
    assert [one["ended"] for one in record.results][:2] == ["2026-03-01T00:00:26Z", "2026-03-01T00:00:25Z"]
    assert len(record.results) == KEPT and record.statuses == {"success": KEPT + 7}
    assert record.rows == {"messages": 2 * (KEPT + 7), "row": KEPT + 7} and record.seconds == 13.5


def test_for_how_long_a_node_has_been_failing() -> None:
    good, first, skipped, last = entry(1), entry(2, "error"), entry(3, "skipped"), entry(4, "fail")
    assert after(good, first, skipped, last).failing_since == first["ended"]
    assert after(first, good, last).failing_since == last["ended"]
    assert after(first, good, skipped).failing_since == ""
    # A node that was skipped is as it was before.
    record = after(good, last, skipped)
    assert record.newest == last and record.built == good["ended"] and after(skipped).newest is None


def test_a_limit_is_reached_until_no_dead_letter_is_open() -> None:
    record = NodeRecord().after(entry(1, "fail", message="too many"), 3)
    assert record.limit == "too many"
    for left, limit in ((3, "too many"), (None, "too many"), (1, "too many"), (0, ""), (1, "")):
        record = record.after(entry(2), left)
        assert (record.open, record.limit) == (left, limit)


def test_when_messages_landed_last() -> None:
    record = after(entry(1, rows={"messages": 5}), entry(2, rows={"messages": 0}), entry(3, "error"))
    assert record.landed == "2026-03-01T00:00:01Z"


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    results, long = NodeResults(project_in(tmp_path)), Node("n" * 250, "test", None)  # type: ignore[arg-type]
    other = Node("n" * 250 + "o", "test", None)  # type: ignore[arg-type]
    results.add(NODE, entry(1, rows={"messages": 1}, reasons={"empty": 1}), 1)
    results.maintained(NODE, "2026-03-02T00:00:00Z")
    for node, status in ((long, "pass"), (other, "fail")):
        results.add(node, entry(1, status))
    record = results.read(NODE)
    assert (record.open, record.maintained, record.reasons) == (1, "2026-03-02T00:00:00Z", {"empty": 1})
    assert [results.read(node).newest["status"] for node in (long, other)] == ["pass", "fail"]  # type: ignore[index]
    results.waived(NODE, 4)
    assert results.read(NODE).open == 0
    for damaged in ("", "{", "[]", '{"record": {"results": 1}}', '{"record": {"results": [], "new": 1}}'):
        next(results.folder.glob("model.shop.orders-*")).write_text(damaged)
        assert results.read(NODE) == NodeRecord(), damaged


def test_a_message_is_bounded_and_has_no_secret(tmp_path: Path) -> None:
    secrets = Secrets()
    secrets.add("PASS", "trout&gill")
    results = NodeResults(project_in(tmp_path, secrets=secrets))
    results.add(NODE, entry(1, "error", message=f"a trout&gill {'x' * 9000}"))
    (text,) = [path.read_text() for path in results.folder.iterdir()]
    assert "trout" not in text and "a *** xxx" in text and len(text) < 4000


def test_tables_elsewhere_have_their_records_here(tmp_path: Path) -> None:
    assert NodeResults(project_in(tmp_path, "s3a://lake/shop")).folder == tmp_path / "target/node_results/shop"
    assert NodeResults(project_in(tmp_path)).folder == tmp_path / "lake/_node_results/shop"


def test_records_of_nodes_that_are_gone_stay_for_a_day(tmp_path: Path) -> None:
    results, gone = NodeResults(project_in(tmp_path)), Node("gone", "model", None)  # type: ignore[arg-type]
    for node in (NODE, gone):
        results.add(node, entry(1))
    results.keep_only([NODE])
    assert len(list(results.folder.iterdir())) == 2
    for path in results.folder.iterdir():
        os.utime(path, (time.time() - 90_000,) * 2)
    results.keep_only([NODE])
    assert results.read(NODE).newest and results.read(gone) == NodeRecord()


def test_several_may_write_at_the_same_time(tmp_path: Path) -> None:
    results, seen = NodeResults(project_in(tmp_path)), []
    results.add(NODE, entry(0))

    def write() -> None:
        for second in range(60):
            results.add(NODE, entry(second))

    writers = [threading.Thread(target=write) for _ in range(3)]
    for one in writers:
        one.start()
    while any(one.is_alive() for one in writers):
        seen.append(results.read(NODE).newest)
    assert None not in seen and len(seen) > 3


# --- recording


class Told:
    """What a report is told."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.warnings: list[RunnerWarning] = []

    def __getattr__(self, event: str) -> Callable[..., None]:
        return lambda *_: self.events.append(event)

    def warn(self, warning: RunnerWarning) -> None:
        self.warnings.append(warning)


LANDS = Node("shop_to_changelog", "model", Model("select 1", "streaming"))


def recorder(folder: Path, command: str = "run", signals: int = 0) -> tuple[Recorder, Told]:
    told = Told()
    run = SimpleNamespace(
        project=project_in(folder),
        nodes=[LANDS],
        command=command,
        run_id="r1",
        open_letters={},
        signals=SimpleNamespace(count=signals),
    )
    return Recorder(run, told, told.warn), told  # type: ignore[arg-type]


def test_a_stream_is_counted_by_its_batches(tmp_path: Path) -> None:
    recording, told = recorder(tmp_path, "run --continuous")
    rows = {"row": 2, "ddl": 0, "control": 0, "dead_letter": 1}
    for number, behind in ((4, 7), (5, 0)):
        landed = Landed(3, rows, {"empty": 1})
        recording.progress(LANDS.name, Batch(number, landed, 0.5, behind, Verdict("fail", f"batch {number}")))
    whole = Result(LANDS.name, "model", "success", rows={"messages": 6, **rows}, reasons={"empty": 2})
    recording.finished(LANDS, whole, 1, 1)
    record = recording.results.read(LANDS)
    assert (record.rows["messages"], record.reasons, record.statuses) == (6, {"empty": 2}, {"fail": 2, "success": 1})
    assert [(one["behind"], one["message"]) for one in record.results] == [(None, ""), (0, "batch 5"), (7, "batch 4")]
    assert told.events == ["progress", "progress", "finished"] and told.warnings == []


def test_what_a_signal_kept_from_running_is_not_recorded(tmp_path: Path) -> None:
    skipped = Result(LANDS.name, "model", "skipped", "because the run was stopped")
    for signals, kept in ((1, 0), (0, 1)):
        recording, _ = recorder(tmp_path, signals=signals)
        recording.finished(LANDS, skipped, 1, 1)
        assert len(recording.results.read(LANDS).results) == kept


def test_a_mirror_that_is_reported_twice_is_recorded_once(tmp_path: Path) -> None:
    recording, told = recorder(tmp_path, "run --continuous")
    result = Result(LANDS.name, "model", "success", rows={"rows": 2})
    recording.followed(LANDS.name, result, 0)
    recording.finished(LANDS, replace(result, notes=("2 messages behind",)), 1, 1)
    assert told.events == ["followed", "finished"]
    assert recording.results.read(LANDS).statuses == {"success": 1}


def test_maintaining_is_no_result(tmp_path: Path) -> None:
    recording, _ = recorder(tmp_path, "maintain")
    ended = datetime(2026, 3, 1, 10, tzinfo=timezone.utc)
    recording.finished(LANDS, Result(LANDS.name, "model", "success", ended=ended), 1, 1)
    recording.finished(LANDS, Result(LANDS.name, "model", "error"), 1, 1)
    assert recording.results.read(LANDS) == NodeRecord(maintained="2026-03-01T10:00:00Z")


def test_a_run_goes_on_if_nothing_can_be_recorded(tmp_path: Path) -> None:
    recording, told = recorder(tmp_path)
    (tmp_path / "lake").write_text("a file where a folder belongs")
    for _ in range(2):
        recording.finished(LANDS, Result(LANDS.name, "model", "success"), 1, 1)
    assert [one.code for one in told.warnings] == ["results-unrecorded"]


# --- metrics


@given(st.text(), st.text(), st.floats(0, 1e15))
def test_any_text_is_a_label(name: str, reason: str, value: float) -> None:
    # The parser splits lines where Python does.
    name, reason = ("".join(one.splitlines()).encode(errors="ignore").decode() for one in (name, reason))
    for end in ("", "\n", "\\", '"', "\\n"):
        text = openmetrics((name, "t"), [("dead_letters", ("s", reason + end), value)])
        ((family,),) = ([*openmetrics_parser.text_string_to_metric_families(text)],)
        (sample,) = family.samples
        assert sample.labels == {"project": name, "target": "t", "source": "s", "reason": reason + end}
        assert sample.value == pytest.approx(value, rel=1e-14)


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """What metrics need of a run, of a project in which nothing has run."""
    text = "name: shop\nsources: [{name: orders, format: canal, files: in/*}]\n"
    (tmp_path / "project.yml").write_text(text)
    workspace = Workspace(ProjectArguments(tmp_path))
    return SimpleNamespace(workspace=workspace, project=workspace.project, command="run", exit_code=0, results=[])


def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_metrics_are_served_at_their_address_alone(run: Any) -> None:
    metrics, number = Metrics(None, None, Told().warn), port()
    with metrics.served(run, "127.0.0.1", number):
        with urllib.request.urlopen(f"http://127.0.0.1:{number}/metrics", timeout=30) as answer:
            assert answer.headers["Content-Type"] == CONTENT_TYPE
            found = [*openmetrics_parser.text_string_to_metric_families(answer.read().decode())]
        assert "changelog_runner_source_waiting_files" in {family.name for family in found}
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{number}/", timeout=30)
        with pytest.raises(RunnerError, match="cannot be served") as refused:
            with metrics.served(run, "127.0.0.1", number):
                raise AssertionError
        assert refused.value.code == "metrics-address"
    # The address is free again.
    with metrics.served(run, "127.0.0.1", number):
        pass
    with pytest.raises(RunnerError, match="65535"), metrics.served(run, "127.0.0.1", 70_000):
        raise AssertionError


def test_a_run_goes_on_if_metrics_cannot_be_written(run: Any, tmp_path: Path) -> None:
    told = Told()
    metrics = Metrics(tmp_path / "project.yml/x.prom", None, told.warn)
    metrics.write(run)
    with metrics.of(run):
        pass
    assert [one.code for one in told.warnings] == ["metrics-unwritten"]


def test_writing_metrics_takes_a_part_of_the_time_of_a_run(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]

    def text(*_: object) -> str:
        now[0] += 2  # writing takes two seconds
        return f"{now[0]}"

    monkeypatch.setattr("runner.run.metrics.time.monotonic", lambda: now[0])
    monkeypatch.setattr(Metrics, "text", text)
    metrics, file = Metrics(tmp_path / "x.prom", None, Told().warn), tmp_path / "x.prom"
    for moment, written, exit_code in (
        (100.0, 102.0, None),
        (121.5, 102.0, None),
        (122.5, 124.5, None),
        (125.0, 127.0, 0),
    ):
        now[0] = moment
        metrics.write(run, exit_code)
        assert file.read_text() == f"{written}"


@pytest.mark.parametrize(("raised", "code"), [(None, 0), (KeyboardInterrupt, 130)])
def test_metrics_have_the_exit_code(run: Any, tmp_path: Path, raised: type[BaseException] | None, code: int) -> None:
    file = tmp_path / "x.prom"

    def ends() -> None:
        with Metrics(file, None, Told().warn).of(run):
            if raised:
                raise raised

    if raised:
        with pytest.raises(raised):
            ends()
    else:
        ends()
    assert f'run_exit_code{{project="shop",target="local",command="run"}} {code}\n' in file.read_text()


# --- the watch


def test_the_watch_looks_again_until_it_is_stopped(
    project: Any, runner: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[int] = []

    def sleep(seconds: int) -> None:
        slept.append(seconds)
        Path("in").mkdir(exist_ok=True)
        (Path("in") / f"{len(slept)}.jsonl").write_text("{}\n")
        if len(slept) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("runner.commands.status.time.sleep", sleep)
    project()
    ran = runner("status", "--output", "json", "--watch")
    assert (ran.code, slept) == (0, [5, 5, 5]), ran.err
    assert [json.loads(line)["sources"][0]["waiting_files"] for line in ran.out.splitlines()] == [0, 1, 2]
    slept.clear()
    assert runner("status", "--watch", "60").code == 0 and slept == [60, 60, 60]


def test_too_many_dead_letters_are_told_when_they_are_not_counted(project: Any, runner: Callable[..., Any]) -> None:
    workspace = Workspace(ProjectArguments(project()))
    landing, results = workspace.graph.nodes["orders_to_changelog"], NodeResults(workspace.project)
    own = {"is_incomplete": False, "command": "run", "rows": {"messages": 3}}
    results.add(landing, entry(1, "fail", message="too many", **own), 3)
    results.add(landing, entry(2, "error", message="no space", **own), None)
    results.add(landing, entry(3, **own), None)
    ran = runner("status")
    assert (ran.code, ran.out.splitlines()[0]) == (
        1,
        "not well: orders has open dead letters (runner dead-letters --source orders)",
    )


def test_tables_elsewhere_are_looked_at_as_far_as_is_known(project: Any, runner: Callable[..., Any]) -> None:
    source = "sources: [{name: orders, format: canal, files: in/*}]\n"
    target = "target: lake\ntargets: {lake: {path: 's3a://lake/shop', storage: parquet}}\n"
    project({"project.yml": f"name: shop\n{target}{source}", "in/1": "{}"})
    ran = runner("status", "--output", "json")
    known = json.loads(ran.out)
    assert ran.code == 0 and known["sources"][0]["waiting_files"] is None
    assert [disk["what"] for disk in known["disks"]] == ["Spark"]
