"""Runs of which nothing has changed since they last ended well: they start no Spark, and say what a run says that finds
nothing new. Anything that may have changed something is looked at by Spark.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.landed import Project
from tests.small_format import SMALL, message
from tests.storages import TARGETS

pytestmark = pytest.mark.usefixtures("spark", "interpreted", "lean")

FILES = {
    "project.yml": TARGETS + "sources: [{name: shop, format: small, files: in/*.jsonl}]\n",
    "formats/small.yml": SMALL,
    "models/m.yml": "mirrors: [{name: orders, of: {source: shop, table: t}, key: [id], columns: {id: int}, history: true}]\n",
    "models/told.sql": "{{ config(materialized='incremental') }}\nselect key_text from {{ new_rows('changelog') }}\n",
    "in/1.jsonl": f"{message(1)}\n",
}


class SparkAsked(Exception):
    pass


@pytest.fixture
def starts_no_spark(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str | None]:
    """What a command says that starts no Spark; None if it would start it."""

    def run(made: Project, *words: str) -> str | None:
        def asked(*_: object, **__: object) -> None:
            raise SparkAsked

        with monkeypatch.context() as patch:
            patch.setattr("runner.commands.session.open_spark", asked)
            try:
                return made.ok(*words)
            except (SparkAsked, AssertionError):
                return None

    return run


@pytest.mark.parametrize("storage", ["parquet", "delta", "iceberg"])
def test_what_is_looked_at_by_spark(tmp_path: Path, storage: str, starts_no_spark: Callable[..., str | None]) -> None:
    target, made = ("-t", storage), Project(tmp_path / "made", FILES)
    assert starts_no_spark(made, "run", *target) is None
    made.ok("run", *target)
    found = made.ok("run", *target)
    said = starts_no_spark(made, "run", *target)
    assert said is not None and told(said) == told(found)
    assert "no new messages" in said and said.count("nothing new") == 3 and "PASS=10" in said
    # Another selection has not run yet; tests, builds and full refreshes run.
    for words in (("run", "-s", "orders"), ("build",), ("test",), ("run", "--full-refresh")):
        assert starts_no_spark(made, *words, *target) is None, words

    changes: dict[str, Callable[[], object]] = {
        "a new file": lambda: made.write({"in/2.jsonl": f"{message(2)}\n"}),
        "a file that changed": lambda: os.utime(made / "in/1.jsonl", (1, 1)),
        "another query": lambda: made.write(
            {"models/told.sql": FILES["models/told.sql"] + "where key_text is not null\n"}
        ),
        "another run has landed": lambda: (
            made.write({"in/3.jsonl": f"{message(3)}\n"}),
            made.ok("run", "-s", "shop_to_changelog", *target),
        ),
    }
    for what, change in changes.items():
        change()
        assert starts_no_spark(made, "run", *target) is None, what
        first = made.run("run", *target)
        is_noted = "changed since read" in first.err
        assert (starts_no_spark(made, "run", *target) is None) == is_noted, what
        if is_noted:
            os.utime(made / "in/1.jsonl")
            made.ok("run", "--full-refresh", *target)
            made.ok("run", *target)
    assert [row["id"] for row in made.rows("select id from orders order by id", *target)] == [1, 2, 3]


def told(err: str) -> list[str]:
    """What a run says of its nodes, without times and order."""
    return sorted(line.split("OK ")[1].split(" in ")[0] for line in err.splitlines() if " OK " in line)
