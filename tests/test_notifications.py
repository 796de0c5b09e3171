"""Who is told how a run has ended: which states, what the message says, what becomes of hooks that do not answer."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from runner.errors import RunnerWarning
from runner.project.node_results import NodeResults
from runner.project.nodes import Node
from runner.project.project import project_schema
from runner.run.notifications import Notifier
from runner.run.recording import Recorder
from runner.run.results import Batch, Interrupted, Landed, Result, Verdict
from runner.run.workspace import ProjectArguments, Workspace
from runner.secrets import Secrets
from tests import pages
from tests.answers import Server
from tests.pages import ROOT

SOURCES = "name: shop\nsources:\n  - {name: orders, format: canal, files: in/*}\n"
SOURCE, VIEW = "orders_to_changelog", "changelog"
WRITES = "import sys, pathlib; pathlib.Path('told.jsonl').open('a').write(sys.stdin.read() + '\\n')"
TO_FILE = {"command": [sys.executable, "-c", WRITES]}


class Project:
    """Runs of a project that end with some results, as far as hooks see them."""

    def __init__(self, folder: Path, notify: Any, secrets: Secrets | None = None) -> None:
        (folder / "project.yml").write_text(SOURCES + yaml.safe_dump({"notify": notify}, sort_keys=False))
        self.folder = folder
        self.workspace = Workspace(ProjectArguments(folder, secrets=secrets or Secrets()))
        self.project, self.nodes = self.workspace.project, self.workspace.graph.nodes
        self.records = NodeResults(self.project)
        self.warnings: list[RunnerWarning] = []
        self.said: list[str] = []

    def notifier(self, command: str = "build") -> tuple[Notifier, Recorder]:
        nodes = [self.nodes[SOURCE], self.nodes[VIEW]]
        landing, signals = SimpleNamespace(count_open=lambda *_: None), SimpleNamespace(count=0)
        run: Any = SimpleNamespace(
            project=self.project,
            nodes=nodes,
            command=command,
            run_id="r1",
            landing=landing,
            signals=signals,
            open_letters={},
        )
        notifier = Notifier(run, self.warnings.append, self.said.append)
        saw = notifier.saw_batch if "continuous" in command else notifier.saw
        told = SimpleNamespace(finished=lambda *_: None, progress=lambda *_: None)
        return notifier, Recorder(run, told, self.warnings.append, saw=saw)  # type: ignore[arg-type]

    def run(self, *results: Result, letters: int | None = None) -> list[Any]:
        """What hooks have written to the file when a run with these results has ended."""
        notifier, recorder = self.notifier()
        recorder.run.open_letters["orders"] = letters
        with notifier.at_end():
            for result in results:
                recorder.finished(self.nodes[result.name], result, 1, 1)
        return self.told()

    def told(self) -> list[Any]:
        """What hooks have written since the last call, in the order in which they were told."""
        file = self.folder / "told.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return sorted((json.loads(line) for line in lines), key=lambda one: one.get("state", ""))


def ended(status: str, name: str = VIEW, message: str = "", **more: Any) -> Result:
    return Result(name, "model", status, message, **more)


ALL = {"on_failure": TO_FILE, "on_warning": [TO_FILE], "on_recovery": TO_FILE}


def states(told: list[Any]) -> list[tuple[str, list[str]]]:
    return [(one["state"], [node["name"] for node in one["nodes"]]) for one in told]


# --- when


def test_nothing_is_sent_while_all_is_well(tmp_path: Path) -> None:
    project = Project(tmp_path, ALL)
    for _ in range(2):
        assert project.run(ended("success", SOURCE), ended("success")) == []
    assert project.warnings == [] and project.said == []


def test_failures_warnings_and_recoveries(tmp_path: Path) -> None:
    project = Project(tmp_path, ALL)
    good, bad, warned = ended("success"), ended("error"), ended("warn", SOURCE)
    for results, expected in (
        ([warned, good], [("warning", [SOURCE])]),
        ([warned, bad], [("failure", [VIEW])]),
        # Each command tells it again.
        ([warned, bad], [("failure", [VIEW])]),
        # A node that did not run is as it was.
        ([ended("success", SOURCE)], []),
        ([ended("success", SOURCE), ended("skipped")], []),
        ([good, warned], [("recovery", [VIEW]), ("warning", [SOURCE])]),
        ([good], []),
        ([ended("success", SOURCE, is_incomplete=True)], [("failure", [SOURCE])]),
        ([ended("success", SOURCE), good], [("recovery", [SOURCE])]),
    ):
        assert states(project.run(*results)) == expected, results
    assert project.warnings == []


def test_all_that_has_failed_must_be_well_again(tmp_path: Path) -> None:
    project = Project(tmp_path, ALL)
    project.run(ended("error", SOURCE), ended("error"))
    assert states(project.run(ended("success", SOURCE), ended("error"))) == [("failure", [VIEW])]
    assert states(project.run(ended("success", SOURCE), ended("success"))) == [("recovery", [VIEW, SOURCE])]


def test_a_source_is_well_when_its_dead_letters_are_gone(tmp_path: Path) -> None:
    project = Project(tmp_path, ALL)
    assert states(project.run(ended("fail", SOURCE, "3 dead letters"), letters=3)) == [("failure", [SOURCE])]
    assert project.run(ended("success", SOURCE), letters=3) == []
    project.records.waived(project.nodes[SOURCE], 3)
    assert project.told() == []
    assert states(project.run(ended("success", SOURCE), letters=0)) == [("recovery", [SOURCE])]


def test_a_command_that_was_stopped_tells_nothing(tmp_path: Path) -> None:
    project = Project(tmp_path, ALL)
    notifier, _ = project.notifier()
    with pytest.raises(Interrupted), notifier.at_end():
        notifier.saw(project.nodes[VIEW], ended("error"))
        raise Interrupted([])
    assert project.told() == [] and notifier.deliveries == []


def batch(number: int, status: str = "success") -> Batch:
    rows = {"row": 2, "ddl": 0, "control": 0, "dead_letter": 0}
    return Batch(number, Landed(2, rows, {}), 0.5, None, Verdict(status, "too many" if status == "fail" else ""))


def test_batches_that_change_the_state_are_told(tmp_path: Path) -> None:
    project = Project(tmp_path, ALL)
    notifier, recorder = project.notifier("run --continuous")
    source, view, letters = project.nodes[SOURCE], project.nodes[VIEW], recorder.run.open_letters

    def after(act: Callable[[], None]) -> list[tuple[str, list[str]]]:
        act()
        for delivery in notifier.deliveries:
            delivery.wait()
        return states(project.told())

    with notifier.at_end():
        assert after(lambda: recorder.progress(SOURCE, batch(1))) == []
        letters["orders"] = 2
        assert after(lambda: recorder.progress(SOURCE, batch(2, "fail"))) == [("failure", [SOURCE])]
        assert after(lambda: recorder.progress(SOURCE, batch(3))) == []
        assert after(lambda: recorder.progress(SOURCE, batch(4, "fail"))) == []
        assert after(lambda: recorder.finished(view, ended("error"), 1, 2)) == [("failure", [VIEW, SOURCE])]
        letters["orders"] = 0
        assert after(lambda: recorder.progress(SOURCE, batch(5))) == []
        assert after(lambda: recorder.finished(view, ended("success"), 1, 2)) == [("recovery", [VIEW, SOURCE])]
        # The result of the whole stream is that of its worst batch, which was told.
        assert after(lambda: recorder.finished(source, ended("fail", SOURCE), 1, 2)) == []
    assert project.told() == [] and project.warnings == []


# --- what


def test_the_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASS", "trout&gill")
    secrets = Secrets()
    project = Project(tmp_path, {"on_failure": {**TO_FILE, "timeout": "30"}}, secrets)
    secrets.add("PASS", "trout&gill")
    (told,) = project.run(ended("error", message=f"no login: trout&gill {'x ' * 200}\nline 2: rows"))
    instant = told.pop("at")
    assert abs(time.time() - time.mktime(time.strptime(instant, "%Y-%m-%dT%H:%M:%SZ")) + time.timezone) < 600
    node = told["nodes"][0]
    assert node.pop("message").startswith("no login: *** x x") and "line 2" not in json.dumps(told)
    assert told == {
        "project": "shop",
        "target": "local",
        "run_id": "r1",
        "command": "build",
        "state": "failure",
        "message": "shop (local): build failed: changelog",
        "nodes": [{"name": VIEW, "resource_type": "model", "status": "error"}],
        "count": 1,
        "look": "runner status",
    }


def test_many_nodes_are_counted(tmp_path: Path) -> None:
    project = Project(tmp_path, ALL)
    notifier, _ = project.notifier()
    with notifier.at_end():
        for number in range(400):
            node = Node(f"n{number:03}", "model", None)  # type: ignore[arg-type]
            notifier.saw(node, ended("error", node.name))
    (told,) = project.told()
    assert (told["count"], len(told["nodes"])) == (400, 20)
    assert told["message"] == "shop (local): build failed: n000, n001, n002, n003, n004 and 395 more"


def test_a_body_reads_the_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "k3y-of-it")
    body = {"a": ["{{ state }}", {"b": "{{ nodes[0].name }}: {{ env_var('KEY') }}"}], "c": None, "d": "plain"}
    project = Project(tmp_path, {"on_failure": {**TO_FILE, "body": body}})
    assert project.run(ended("fail")) == [{"a": ["failure", {"b": "changelog: k3y-of-it"}], "c": None, "d": "plain"}]
    project = Project(tmp_path, {"on_failure": {**TO_FILE, "body": {"a": "{{ 1 // (2 - count) }}"}}})
    assert project.run(ended("fail", SOURCE), ended("fail")) == []
    assert [one.code for one in project.warnings] == ["hook-failed"]


# --- hooks that do not do what they should


@pytest.mark.parametrize(
    ("command", "timeout", "said", "why"),
    [
        (["sh", "-c", "cat > told.jsonl; echo sent; echo more >&2"], "20", ["sent", "more"], ""),
        (["sh", "-c", "echo no mail; exit 3"], "20", ["no mail"], "its exit code is 3"),
        (["./nowhere.sh"], "20", [], "No such file or directory"),
        (["sh", "-c", "echo begun; sleep 600 & sleep 600"], "3", ["begun"], "it has not ended after 3 s"),
        (["sh", "-c", "yes"], "3", ["y"] * 1000, "it has not ended after 3 s"),
    ],
)
def test_commands(tmp_path: Path, command: list[str], timeout: str, said: list[str], why: str) -> None:
    project = Project(tmp_path, {"on_failure": {"command": command, "timeout": timeout}})
    told = project.run(ended("error"))
    assert project.said == [f'hook "{command[0]}" (on_failure): {line}' for line in said]
    expected = [f'the hook "{command[0]}" (on_failure) was not told: {why}'] if why else []
    assert [one.message for one in project.warnings] == expected
    assert bool(told) is not bool(why)


@pytest.mark.parametrize(
    ("codes", "requests", "why"),
    [
        ([200], 1, ""),
        ([500, 503, 204], 3, ""),
        ([429, 200], 2, ""),
        ([500], 4, "the answer is 500 Internal Server Error"),
        ([403], 1, "the answer is 403 Forbidden"),
        ([302, 200], 1, "the answer is 302 Found"),
    ],
)
def test_addresses(tmp_path: Path, serve: Callable[..., Server], codes: list[int], requests: int, why: str) -> None:
    server = serve(*codes)
    hook = {"url": server.url, "headers": {"X-Token": "{{ 'abc' }}"}, "body": {"text": "{{ message }}"}}
    project = Project(tmp_path, {"on_failure": hook})
    project.run(ended("error"))
    assert server.posted == [{"text": "shop (local): build failed: changelog"}] * requests
    assert server.headers[0]["X-Token"] == "abc" and server.headers[0]["Content-Type"] == "application/json"
    expected = [f'the hook "http://127.0.0.1" (on_failure) was not told: {why}'] if why else []
    assert [one.message for one in project.warnings] == expected


def test_hooks_that_hang_hold_up_no_run_and_no_other_hook(tmp_path: Path, serve: Callable[..., Server]) -> None:
    hanging, good = serve(0), serve(200)
    hooks = [{"url": hanging.url, "timeout": "2"}, {"url": hanging.url, "timeout": "2"}, {"url": good.url}]
    project = Project(tmp_path, {"on_failure": hooks})
    notifier, _ = project.notifier("run --continuous")
    notifier.saw_batch(project.nodes[VIEW], ended("error"))
    # Nothing has timed out yet when the batch goes on.
    assert project.warnings == []
    with notifier.at_end():
        pass
    assert len(good.posted) == 1 and [one.code for one in project.warnings] == ["hook-failed"] * 2
    assert {one.message.rpartition(": ")[2] for one in project.warnings} == {"timed out"}


def test_a_server_that_is_not_there(tmp_path: Path, serve: Callable[..., Server]) -> None:
    server = serve(200)
    server.close()
    project = Project(tmp_path, {"on_failure": {"url": server.url}})
    project.run(ended("error"))
    assert [one.message.rpartition(": ")[2] for one in project.warnings] == ["Connection refused"]


def test_an_empty_address_is_no_hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOOK_URL", raising=False)
    project = Project(tmp_path, {"on_failure": {"url": "{{ env_var('HOOK_URL', '') }}"}})
    assert project.project.hooks == () and project.run(ended("error")) == [] and project.warnings == []


# --- the page


def body_of(heading: str, folder: Path, message: Any) -> dict[str, Any]:
    """The bodies that the hooks under a heading send, by their event."""
    (block,) = [block for block in pages.section(ROOT / "docs/monitoring.md", heading) if block.kind == "yaml"]
    (folder / "project.yml").write_text(f"name: shop\n{block.text}")
    Draft202012Validator(project_schema()).validate(yaml.load(block.text, yaml.BaseLoader))
    hooks = Workspace(ProjectArguments(folder)).project.hooks
    return {hook.event: json.loads(hook.content(message)) for hook in hooks}


def test_the_recipes_send_what_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLACK_URL", "HOOK_URL"):
        monkeypatch.setenv(name, "https://localhost/x")
    monkeypatch.setenv("PAGERDUTY_KEY", "0" * 32)
    (shown,) = [one.text for one in pages.section(ROOT / "docs/monitoring.md", "Who is told") if one.kind == "json"]
    message = json.loads(shown)
    assert body_of("Who is told", tmp_path, message) == {"on_failure": message, "on_recovery": message}
    assert body_of("Mail", tmp_path, message) == {"on_failure": message, "on_recovery": message}
    assert body_of("Slack", tmp_path, message) == {
        "on_failure": {
            "text": ":red_circle: shop (local): build failed: orders\n"
            "orders: [DIVIDE_BY_ZERO] Division by zero.\n`runner status`"
        },
        "on_recovery": {"text": ":white_check_mark: shop (local): build failed: orders"},
    }
    own = {"routing_key": "0" * 32, "dedup_key": "shop/local"}
    payload = {
        "summary": "shop (local): build failed: orders",
        "source": "shop/local",
        "severity": "error",
        "timestamp": "2026-11-29T21:16:31Z",
    }
    assert body_of("PagerDuty", tmp_path, message) == {
        "on_failure": {**own, "event_action": "trigger", "payload": payload},
        "on_recovery": {**own, "event_action": "resolve"},
    }


def test_the_message_on_the_page_has_the_fields(tmp_path: Path) -> None:
    (shown,) = [one.text for one in pages.section(ROOT / "docs/monitoring.md", "Who is told") if one.kind == "json"]
    (told,) = Project(tmp_path, ALL).run(ended("error"))
    assert list(told) == list(json.loads(shown)) and list(told["nodes"][0]) == list(json.loads(shown)["nodes"][0])
