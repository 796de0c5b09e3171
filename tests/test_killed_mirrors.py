"""Runs that are killed while mirrors and their histories take in changes: a run that ends makes them right."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from tests import lives
from tests.spark_fixtures import rows
from tests.test_exactly_once import PROJECT, STORAGES, Run

pytestmark = pytest.mark.usefixtures("interpreted")
KILLS = int(os.environ.get("KILLS", "20"))
# Some runs end before they are killed.
RUNS = 2 * KILLS
# So many of a hundred messages come late; others come in order, so that rows are taken up where they were.
LATE = 10


def messages(draw: Callable[..., Any], number: int) -> tuple[lives.Life, list[list[str]]]:
    """A life of a table, and what each run reads of it."""
    life = lives.Life(number).live(draw(lives.steps(4 * RUNS, 4 * RUNS)))
    parts: list[list[str]] = [[] for _ in range(RUNS + 1)]
    for place, message in enumerate(life.messages):
        run = place * len(parts) // len(life.messages)
        is_late = draw(st.integers(0, 99)) < LATE
        parts[draw(st.integers(run, RUNS)) if is_late else run].append(message.text("many"))
    return life, parts


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
    lived, told = zip(*lives.drawn(messages, 8))
    pauses = random.Random(storage)
    folder = project(
        {
            "project.yml": PROJECT.replace("name: app, format: canal", "name: shop, format: everything").replace(
                "target: calm", f"target: {storage}"
            ),
            "formats/everything.yml": lives.FORMAT,
            "models/mirrors/tables.yml": f"mirrors:{lives.MIRROR.format(name='many', source='shop')}",
        }
    )
    (folder / "in").mkdir()
    hit: Counter[str] = Counter()
    for number, parts in enumerate(zip(*told)):
        (folder / f"in/{number}.jsonl").write_text("\n".join(text for part in parts for text in part))
        name = ("many", "many_history")[number % 2]
        if number < RUNS and hit["many killed"] + hit["many_history killed"] < KILLS:
            hit[f"{name} {'killed' if killed(folder, storage, name, pauses.uniform(0, 4)) else 'ended'}"] += 1
    ran = runner("build")
    assert ran.code == 0, ran.err
    held, history = (rows(capsys, sql.format("many")) for sql in (lives.ROWS, lives.VERSIONS))
    lives.check(lived, held, history)
    assert hit["many killed"] and hit["many_history killed"]
    assert hit["many killed"] + hit["many_history killed"] == KILLS, hit
    with capsys.disabled():
        print(f"\n{storage}: {dict(hit)}; {len(held)} rows and {len(history)} versions are right")
