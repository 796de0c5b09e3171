"""Runs that are killed while mirrors and their histories take in changes: a run that ends makes them right."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from tests import lives
from tests.spark_fixtures import rows
from tests.test_exactly_once import PROJECT, STORAGES, Run
from tests.test_mirrors import MIRROR, as_mirrored, version

pytestmark = pytest.mark.usefixtures("interpreted")
KILLS = int(os.environ.get("KILLS", "20"))
# Some runs end before they are killed.
RUNS = 2 * KILLS
# This part of the messages comes late; others come in order, so that rows are taken up where they were.
LATE = 0.1


def messages(draw: random.Random) -> tuple[list[lives.Life], list[list[str]]]:
    """Lives of a table, and what each run reads of them."""
    lived = [lives.Life(number, draw).live(4 * RUNS) for number in range(8)]
    parts: list[list[str]] = [[] for _ in range(RUNS + 1)]
    for life in lived:
        for number, message in enumerate(life.messages):
            run = number * len(parts) // len(life.messages)
            parts[draw.randrange(run, len(parts)) if draw.random() < LATE else run].append(message.text("many"))
    return lived, parts


def killed(folder: Path, storage: str, name: str, seconds: float) -> bool:
    """Whether a run was killed some seconds after a mirror began to be written; else it has ended."""
    run = Run(folder, storage, ["run"])
    if not run.wait_for(lambda: run.is_adding(name)):
        assert run.process.returncode == 0, run.log.read_text()
        return False
    time.sleep(seconds)
    run.kill(alone=False)
    return True


@pytest.mark.soak
@pytest.mark.parametrize("storage", STORAGES)
def test_mirrors_are_right_after_killed_runs(project, runner, spark: object, capsys, storage: str) -> None:
    draw = random.Random(storage)
    lived, parts = messages(draw)
    folder = project(
        {
            "project.yml": PROJECT.replace("name: app, format: canal", "name: shop, format: everything").replace(
                "target: calm", f"target: {storage}"
            ),
            "formats/everything.yml": lives.FORMAT,
            "models/mirrors/tables.yml": f"mirrors:{MIRROR.format(name='many')}",
        }
    )
    (folder / "in").mkdir()
    hit: Counter[str] = Counter()
    for number, part in enumerate(parts):
        (folder / f"in/{number}.jsonl").write_text("\n".join(part))
        name = ("many", "many_history")[number % 2]
        if number < RUNS and hit["many killed"] + hit["many_history killed"] < KILLS:
            hit[f"{name} {'killed' if killed(folder, storage, name, draw.uniform(0, 4)) else 'ended'}"] += 1
    ran = runner("build")
    assert ran.code == 0, ran.err
    held = [as_mirrored(row) for life in lived for row in life.rows.values()]
    assert sorted(held, key=str) == sorted(rows(capsys, "select life, id, a, b, c from many"), key=str), hit
    expected = [version(one) for life in lived for one in lives.versions(life.messages)]
    found = rows(capsys, "select life, id, a, b, c, valid_from, valid_to, is_current from many_history")
    assert sorted(found, key=str) == sorted(expected, key=str), hit
    assert hit["many killed"] and hit["many_history killed"]
    assert hit["many killed"] + hit["many_history killed"] == KILLS, hit
    with capsys.disabled():
        print(f"\n{storage}: {dict(hit)}; {len(held)} rows and {len(found)} versions are right")
