"""One look that says whether all is well: prepared situations through the command line, on what real runs have left;
and the metrics that these runs wrote, read by the parsers of Prometheus.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from prometheus_client import parser as older_text
from prometheus_client.openmetrics import parser as openmetrics

from runner.run.metrics import FAMILIES, PREFIX
from tests import pages
from tests.landed import Project
from tests.pages import ROOT
from tests.small_format import SMALL, message

pytestmark = pytest.mark.usefixtures("spark", "interpreted")

SOURCES = """name: shop
sources:
  - {name: shop, format: small, files: in/*.jsonl}
  - {name: late, format: small, files: late/*.jsonl, freshness: {error_after: {count: 2, period: day}}}
"""
MIRROR = "mirrors: [{name: orders, of: {source: shop, table: t}, key: [id], columns: {id: int}%s}]\n"
FILES = {
    "project.yml": SOURCES,
    "formats/small.yml": SMALL,
    "models/m.yml": MIRROR % "",
    "in/1.jsonl": f"{message(1)}\n{message(2)}\n",
    "late/1.jsonl": f"{message(1)}\n",
}
DAY = 86_400


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project that was built once; it has written its metrics."""
    project = Project(tmp_path_factory.mktemp("status"), FILES)
    project.ok("build", "--metrics", "metrics/well.prom")
    return project


@pytest.fixture
def project(landed: Project) -> Iterator[Project]:
    """The project, which is put back when a test has changed it; metrics are kept."""
    with landed.put_back():
        yield landed


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The metrics that the runs of this module have written, by situation."""
    return {}


def status(project: Project, *words: str) -> tuple[int, dict[str, Any], str]:
    """The exit code, all that is known as JSON, and the first line for a person."""
    told, shown = project.run("status", "--output", "json", *words), project.run("status", *words)
    assert told.code == shown.code, shown.err
    return told.code, json.loads(told.out), shown.out.splitlines()[0]


def named(rows: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(row for row in rows if row["name"] == name)


def test_all_is_well(project: Project, written: dict[str, str]) -> None:
    code, known, line = status(project)
    assert (code, line, known["well"], known["problems"]) == (0, "well", True, [])
    shop, orders = named(known["sources"], "shop"), named(known["tables"], "orders")
    assert (shop["result"], shop["waiting_files"], shop["dead_letters_open"]) == ("success", 0, 0)
    assert (orders["kind"], orders["result"], orders["behind"], orders["rows"]) == ("mirror", "success", 0, 2)
    ended = time.strptime(shop["landed"], "%Y-%m-%dT%H:%M:%SZ")
    assert 0 <= time.time() - (time.mktime(ended) - time.timezone) < 600
    written["well"] = (project / "metrics/well.prom").read_text()
    # Names choose what is looked at.
    assert [one["name"] for one in status(project, "-s", "orders")[1]["tables"]] == ["orders"]
    assert status(project, "-s", "source:late")[1]["tables"] == []


def test_dead_letters_above_the_limit_until_they_are_waived(project: Project, written: dict[str, str]) -> None:
    project.write({"in/2.jsonl": f"{message(3)}\n{{\n[]\n{{\n"})
    assert project.run("run", "--metrics", "letters.prom").code == 1
    # A later run lands nothing, and ends with 0: the dead letters are open all the same.
    project.ok("run", "-s", "shop_to_changelog")
    code, known, line = status(project)
    assert (code, line) == (1, "not well: shop has 3 open dead letters (runner dead-letters --source shop)")
    shop = named(known["sources"], "shop")
    assert (shop["dead_letters_open"], shop["result"]) == (3, "success")
    assert "the limit of 1 % is reached: 2 not-json, 1 not-an-object" in shop["limit"]
    written["letters"] = (project / "letters.prom").read_text()

    groups = [json.loads(one) for one in project.run("dead-letters", "--output", "json").out.splitlines()]
    for group, left in zip(sorted(groups, key=lambda one: one["messages"], reverse=True), (1, 0)):
        # The id of one of its messages stands for the group.
        assert project.run("dead-letters", "waive", group["example"], "--because", "known").code == 0
        assert named(status(project)[1]["sources"], "shop")["dead_letters_open"] == left
    assert status(project)[::2] == (0, "well")


def test_dead_letters_are_open_until_they_land(project: Project) -> None:
    unknown = message(3).replace('"insert"', '"upsert"')
    project.write({"in/2.jsonl": f"{unknown}\n{{\n", "formats/small.yml": SMALL})
    project.run("run", "-s", "shop_to_changelog")
    assert named(status(project)[1]["sources"], "shop")["dead_letters_open"] == 2
    project.write({"formats/small.yml": SMALL.replace("{insert: insert}", "{insert: insert, upsert: insert}")})
    project.ok("dead-letters", "land")
    # Another source of the same format has landed nothing, and is none of this.
    sources = status(project)[1]["sources"]
    assert [named(sources, name)["dead_letters_open"] for name in ("shop", "late")] == [1, 0]
    assert project.run("run", "-s", "shop_to_changelog", "--full-refresh").code == 1
    assert named(status(project)[1]["sources"], "shop")["dead_letters_open"] == 1


def test_a_mirror_that_failed(project: Project, written: dict[str, str]) -> None:
    project.write({"models/m.yml": MIRROR % ", where: 'id / 0 > 1'"})
    assert project.run("run", "--metrics", "failed.prom").code == 1
    code, known, line = status(project)
    assert code == 1
    assert re.match(r"not well: mirror orders failed less than a minute ago: \[DIVIDE_BY_ZERO\]", line), line
    orders = named(known["tables"], "orders")
    assert orders["result"] == "error" and orders["rows"] == 2
    written["failed"] = (project / "failed.prom").read_text()
    # The page says so too, though the last command ran something else.
    project.ok("test", "-s", "conserved_shop")
    assert status(project)[0] == 1


def test_hooks_are_told_of_a_failure_and_of_its_end(project: Project) -> None:
    to_file = '[sh, -c, "cat >> told.jsonl; echo >> told.jsonl"]'
    hooks = f"on_failure: [{{command: {to_file}}}, {{command: [./nowhere]}}], on_recovery: {{command: {to_file}}}"
    project.write({"project.yml": f"{SOURCES}notify: {{{hooks}}}\n", "models/m.yml": MIRROR % ", where: 'id / 0 > 1'"})
    failed = project.run("run", "-s", "orders")
    # A hook that fails is a warning; the exit code is that of the run.
    assert failed.code == 1 and failed.err.count("warning[hook-failed]") == 1, failed.err
    project.write({"models/m.yml": MIRROR % ""})
    for _ in range(2):
        assert project.run("build", "-s", "orders").code == 0
    told = [json.loads(line) for line in (project / "told.jsonl").read_text().splitlines()]
    assert [(one["state"], one["command"], [node["name"] for node in one["nodes"]]) for one in told] == [
        ("failure", "run", ["orders"]),
        ("recovery", "build", ["orders"]),
    ]
    assert told[0]["nodes"][0]["message"].startswith("[DIVIDE_BY_ZERO]") and told[0]["run_id"] != told[1]["run_id"]


def test_events_of_a_build(project: Project) -> None:
    project.write({"project.yml": f"{SOURCES}openlineage: {{file: events.jsonl}}\n", "in/2.jsonl": f"{message(3)}\n"})
    project.ok("build", "-s", "shop_to_changelog+", "--full-refresh")
    told = [json.loads(line) for line in (project / "events.jsonl").read_text().splitlines()]
    for event in told:
        Draft202012Validator(pages.table("openlineage")).validate(event)
    assert {one["eventType"] for one in told} == {"START", "COMPLETE"}
    by_run: dict[str, list[str]] = {}
    for one in told:
        by_run.setdefault(one["run"]["runId"], []).append(one["eventType"])
    assert set(map(tuple, by_run.values())) == {("START", "COMPLETE")}
    assert (told[0]["job"]["name"], told[-1]["job"]["name"]) == ("shop.build", "shop.build")
    ended = {one["job"]["name"]: one for one in told if one["eventType"] == "COMPLETE"}
    rows = {
        name: one["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"]
        for name, one in ended.items()
        if one["outputs"] and "outputFacets" in one["outputs"][0]
    }
    assert (rows["shop.shop_to_changelog"], rows["shop.orders"]) == (3, 3)
    # Where the event says, there is the table.
    assert Path(ended["shop.orders"]["outputs"][0]["name"]).is_dir()


def test_a_run_that_was_killed_leaves_a_batch(project: Project) -> None:
    # What a kill between the writing of a batch and its commit leaves, and the lock of a process that is no more.
    checkpoint, locks = project / "warehouse/_checkpoints/shop_to_changelog", project / "warehouse/_locks"
    for name in ("0", ".0.crc"):
        (checkpoint / "commits" / name).unlink()
    holder = {"user": "ann", "host": os.uname().nodename, "pid": 2**22 + 1, "start": "1", "command": "run"}
    holder |= {"target": "local", "since": "2026-11-29T10:00:00Z", "jvm": None, "session": None}
    (locks / "shop_to_changelog.lock").write_text(json.dumps(holder) + "\n")
    code, known, line = status(project)
    died = '"run" of 2026-11-29 10:00:00 UTC'
    assert (code, line) == (
        1,
        f"not well: {died} was stopped before its end; it wrote shop_to_changelog (run again); "
        "source shop: a batch was interrupted, and the next run finishes it",
    )
    assert [one["is"] for one in known["locks"]] == ["dead"]
    # While a process has the lock, a batch is not finished because it is being landed.
    import fcntl

    alive = {"pid": os.getpid(), "start": Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]}
    with (locks / "shop_to_changelog.lock").open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps({**holder, **alive}) + "\n")
        file.flush()
        code, known, line = status(project)
        assert (code, line) == (0, "well") and [one["is"] for one in known["locks"]] == ["writing"]


def test_what_was_interrupted(project: Project) -> None:
    project.write({"warehouse/_erasing.json": json.dumps({"command": "runner erase -t local --resume"})})
    ran = project.run("status")
    assert ran.code == 1
    assert ran.out.startswith(
        "not well: an erase in this target was interrupted, and runs wait for its end (runner erase -t local --resume)"
    )


def test_files_that_wait(project: Project) -> None:
    project.write({"in/2.jsonl": message(3), "late/2.jsonl": message(3)})
    code, known, line = status(project)
    shop = named(known["sources"], "shop")
    assert (code, line, shop["waiting_files"], shop["waiting_bytes"]) == (0, "well", 1, len(message(3)))
    for name in ("in/2.jsonl", "late/2.jsonl"):
        os.utime(project / name, (time.time() - 1.5 * DAY,) * 2)
    # The freshness of the other source allows two days.
    waits = "1 file of shop not landed, the oldest for 1 day (runner run -s shop_to_changelog)"
    assert status(project)[::2] == (1, f"not well: {waits}")
    os.utime(project / "late/2.jsonl", (time.time() - 2.5 * DAY,) * 2)
    assert "not well: 1 file of late not landed, the oldest for 2 days (" in status(project)[2]


def test_what_landed_longer_ago_than_freshness_allows(project: Project) -> None:
    (record,) = (project / "warehouse/_node_results/shop").glob("model.shop.late_to_changelog-*.json")
    known = json.loads(record.read_text())
    long_ago = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3 * DAY))
    record.write_text(json.dumps({**known, "record": {**known["record"], "landed": long_ago}}))
    assert status(project)[2] == "not well: nothing has landed from late for 3 days; expected within 2 days"


# --- metrics


def samples(text: str) -> dict[str, set[str]]:
    """The name of each sample -> its labels, as the parser of OpenMetrics reads them."""
    found: dict[str, set[str]] = {}
    for family in openmetrics.text_string_to_metric_families(text):
        for one in family.samples:
            found.setdefault(one.name, set()).update(one.labels)
    return found


def value(text: str, name: str, **labels: str) -> float:
    families = openmetrics.text_string_to_metric_families(text)
    every = [one for family in families for one in family.samples if one.name == f"{PREFIX}_{name}"]
    (found,) = [one for one in every if labels.items() <= one.labels.items()]
    return found.value


def test_what_runs_have_written(written: dict[str, str]) -> None:
    well, letters, failed = (written[name] for name in ("well", "letters", "failed"))
    assert (value(well, "well"), value(letters, "well"), value(failed, "well")) == (1, 0, 0)
    assert value(well, "messages_total", source="shop") == 2
    # A counter goes on in the next run, which is another process where a timer starts it.
    assert value(letters, "messages_total", source="shop") == 6
    assert value(letters, "dead_letters_total", source="shop", reason="not-json") == 2
    assert value(letters, "dead_letters_open", source="shop") == 3
    assert (value(well, "run_exit_code", command="build"), value(failed, "run_exit_code", command="run")) == (0, 1)
    assert value(failed, "node_failed", node="orders", resource_type="model") == 1
    assert value(failed, "node_results_total", node="orders", status="error") == 1


def test_readers_of_the_older_text_take_the_same(written: dict[str, str]) -> None:
    for text in written.values():
        new = {one.name: one.value for f in openmetrics.text_string_to_metric_families(text) for one in f.samples}
        old = {one.name: one.value for f in older_text.text_string_to_metric_families(text) for one in f.samples}
        assert new == old and len(new) > 10


NAMED = re.compile(rf"{PREFIX}_\w+")


def expressions() -> list[str]:
    """The queries of the dashboard and of the alerts."""
    board = json.loads((ROOT / "docs/monitoring/grafana.json").read_text())
    panels = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    chosen = [one["query"]["query"] for one in board["templating"]["list"] if one["type"] == "query"]
    rules = yaml.safe_load((ROOT / "docs/monitoring/alerts.yml").read_text())
    return [*panels, *chosen, *(rule["expr"] for group in rules["groups"] for rule in group["rules"])]


def test_the_dashboard_and_the_alerts_name_what_runs_write(written: dict[str, str]) -> None:
    known: dict[str, set[str]] = {}
    for text in written.values():
        for name, labels in samples(text).items():
            known.setdefault(name, set()).update(labels)
    # Only batches of topics leave messages in them: tests/test_continuous.py.
    known[f"{PREFIX}_source_behind_messages"] = {"project", "target", "source"}
    assert len(expressions()) > 12
    for text in expressions():
        names = NAMED.findall(text)
        labels = {one for part in re.findall(r"\{([^}]*)\}", text) for one in re.findall(r"(\w+)\s*[=!]", part)}
        labels |= {
            one for part in re.findall(r"(?:by|on|without)\s*\(([^)]*)\)", text) for one in re.findall(r"\w+", part)
        }
        labels |= set(re.findall(r"label_values\([^,]+, (\w+)\)", text))
        assert names and [name for name in names if name not in known] == [], text
        assert labels <= set().union(*(known[name] for name in names)), text


def test_legends_and_texts_of_alerts_name_labels_that_are_there(written: dict[str, str]) -> None:
    every = {label for text in written.values() for labels in samples(text).values() for label in labels}
    texts = [(ROOT / "docs/monitoring" / name).read_text() for name in ("grafana.json", "alerts.yml")]
    used = {one for text in texts for one in re.findall(r"\$labels\.(\w+)|\{\{(\w+)\}\}", text) for one in one if one}
    assert used and used <= every


def test_every_metric_is_documented() -> None:
    rows = re.findall(rf"^\| `{PREFIX}_(\w+)` \| (.*?) \|", (ROOT / "docs/monitoring.md").read_text(), re.MULTILINE)
    told = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}
    endings = {"counter": "_total", "gauge": ""}
    assert told == {f"{name}{endings[one.type]}": set(one.labels) for name, one in FAMILIES.items()}


# --- the page


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")]


def is_shown(line: str, said: list[str]) -> bool:
    """Whether a line of the page is among those that a command has printed; `...` stands for any cell."""
    wanted = cells(line)
    found = [cells(one) for one in said]
    return any(len(one) == len(wanted) and all(w in ("...", c) for w, c in zip(wanted, one)) for one in found)


def test_the_page_shows_what_comes_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    blocks = pages.section(ROOT / "docs/monitoring.md", "Is all well?")
    project = Project(tmp_path, {block.name: block.text for block in blocks if block.name})
    # Both say that something is not well.
    ran = [project.run(*words) for words in pages.commands(blocks)]
    assert [one.code for one in ran] == [1, 1], ran[0].err
    (shown,) = [block.text for block in blocks if block.kind == "text"]
    said = ran[-1].out.splitlines()
    assert [line for line in shown.splitlines() if not is_shown(line, said)] == [], ran[-1].out
    known = {one.name for one in openmetrics.text_string_to_metric_families((project / "shop.prom").read_text())}
    assert f"{PREFIX}_well" in known


def test_the_log_on_the_page_is_what_a_run_says(project: Project) -> None:
    (block,) = pages.section(ROOT / "docs/monitoring.md", "Logs")
    ran = project.run("test", "-s", "conserved_shop", "--log-format", "json")
    said = [json.loads(line) for line in ran.err.splitlines()]
    told = json.loads(block.text)
    assert list(said[-1]) == list(told) and set(said[-1]["counts"]) == set(told["counts"])
    assert {one["project"] for one in said} == {"shop"} and said[-1]["exit_code"] == ran.code == 0
    assert {one["run_id"] for one in said[1:]} == {said[-1]["run_id"]} and said[-1]["run_id"]
