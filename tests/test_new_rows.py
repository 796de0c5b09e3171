"""Incremental models take in each row once, whatever fails, is killed, is restored or lands in between. Expected counts
are those of the messages that were written.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.engine.progress import Progress
from runner.storage.known import STORAGES
from tests.landed import Project
from tests.spark_fixtures import hadoop_catalog

pytestmark = pytest.mark.usefixtures("interpreted", "lean")
PROJECT = """
name: growing
target: {storage}
targets:
  parquet: {{path: lake/parquet}}
  delta: {{storage: delta, path: lake/delta}}
  iceberg: {{storage: iceberg, path: lake/iceberg, catalog: {{type: hadoop}}}}
sources:
"""
TAKEN = """
{{ config(materialized='incremental') }}
select source, count(*) as changes from {{ new_rows('both') }} group by source
"""


class Shop(Project):
    """A project with two sources and a model that adds up what is new, on one storage."""

    def __init__(self, folder: Path, storage: str) -> None:
        models = {"both": "select * from {{ ref('changelog') }} where kind = 'row'", "taken": TAKEN}
        super().__init__(folder, {f"models/{name}.sql": text for name, text in models.items()})
        self.storage, self.lake = storage, folder / "lake" / storage
        self.written: dict[str, int] = {}
        self.write({"project.yml": PROJECT.format(storage=storage)})
        self.add_source("a")

    def add_source(self, name: str) -> None:
        self.written[name] = 0
        (self / f"in/{name}").mkdir(parents=True)
        with (self / "project.yml").open("a") as project:
            project.write(f"  - {{name: {name}, format: lean, files: in/{name}/*}}\n")

    def send(self, source: str, messages: int, is_broken: bool = False) -> None:
        """One more file of a source; a broken one is an archive that cannot be unpacked until `mend`."""
        at = self.written[source]
        self.written[source] += messages
        change = {"type": "INSERT", "table": "t", "pkNames": ["id"]}
        text = "\n".join(json.dumps({**change, "data": [{"id": str(n)}]}) for n in range(at, at + messages))
        packed = gzip.compress(text.encode())
        if is_broken:
            hidden = {f"in/{source}/.{at}.jsonl.gz": packed}
            self.write({f"in/{source}/{at}.jsonl.gz": packed[: len(packed) // 2], **hidden})
        else:
            self.write({f"in/{source}/{at}.jsonl": text})

    def mend(self, source: str) -> None:
        for whole in (self / f"in/{source}").glob(".*.gz"):
            whole.with_name(whole.name[1:]).write_bytes(whole.read_bytes())
            whole.unlink()

    def fails(self, *words: str) -> str:
        ran = self.run("run", *words)
        assert ran.code == 1, ran.err
        return ran.err

    def killed(self, *words: str) -> None:
        """A run in which something raises KeyboardInterrupt, as a patch does."""
        with contextlib.suppress(KeyboardInterrupt):
            assert self.run("run", *words).code != 0

    def taken(self) -> dict[str, int]:
        """Source -> the changes that the model has counted."""
        found = self.rows("select source, sum(changes) as n from {{ ref('taken') }} group by source")
        return {row["source"]: row["n"] for row in found}

    def table(self, name: str) -> Path:
        return self.lake / (f"changelog/{name}" if self.storage == "iceberg" else name)

    def checkpoint(self, name: str) -> Path:
        return self.lake / "_checkpoints" / name

    def roll_back(self, name: str, session: Any) -> None:
        """Undoes the last write of a table, with the statement of its storage."""
        if self.storage == "delta":
            table = f"delta.`{self.table(name)}`"
            version = session.sql(f"describe history {table}").first()["version"]
            session.sql(f"restore table {table} to version as of {version - 1}")
            return
        hadoop_catalog(session, "iceberg", self.lake)
        snapshots = f"iceberg.changelog.{name}.snapshots"
        first = session.sql(f"select snapshot_id from {snapshots} order by committed_at").first()[0]
        session.sql(f"call iceberg.system.rollback_to_snapshot('changelog.{name}', {first})")


@pytest.fixture
def shop(tmp_path: Path, spark: object, storage: str) -> Shop:
    return Shop(tmp_path, storage)


# On the others only in the long tests.
on_parquet_first = pytest.mark.parametrize(
    "storage", ["parquet", *(pytest.param(other, marks=pytest.mark.soak) for other in ("delta", "iceberg"))]
)


# --- what fails, comes back, and lands in between


def land_half(shop: Shop, source: str) -> None:
    """Lands a batch up to the moment when its rows are in the table and it is not committed: what a model sees that is
    built while a run of its own lands the source, or after such a run was killed.
    """
    shop.ok("run", "-s", f"{source}_to_changelog")
    commits = shop.checkpoint(f"{source}_to_changelog") / "commits"
    newest = max((path for path in commits.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
    newest.unlink()
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)


STEPS = ("breaks", "meanwhile", "alone", "plain")


def live(shop: Shop, steps: list[tuple[str, int]]) -> None:
    """Each step comes with some messages and is followed by a run; at the end all have landed and were counted once."""
    shop.add_source("b")
    is_broken = False
    for step, messages in steps:
        shop.send("a", messages)
        if step == "breaks" and not is_broken:
            is_broken = True
            shop.send("b", messages, is_broken)
            shop.fails("-s", "b_to_changelog")
        elif step == "meanwhile":
            land_half(shop, "a")
        elif is_broken:
            is_broken = False
            # What was read before the failure lands with the time of the first attempt, after newer rows of "a".
            shop.ok("run", "-s", "a_to_changelog", "-s", "taken")
            shop.mend("b")
            shop.ok("run", "-s", "b_to_changelog")
        elif step == "alone":
            shop.send("b", 2)
            shop.ok("run", "-s", "b_to_changelog")
        shop.ok("run", "-s", "taken")
    shop.mend("b")
    shop.ok("run", "-s", "+taken")
    assert shop.taken() == shop.written


@pytest.mark.parametrize("storage", ["parquet"])
def test_each_row_is_taken_in_once(shop: Shop) -> None:
    live(shop, [("breaks", 3), ("meanwhile", 2), ("plain", 5), ("alone", 1)])


@pytest.mark.soak
@on_parquet_first
@settings(max_examples=5)
@given(steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 5)), min_size=10, max_size=20))
def test_each_row_is_taken_in_once_in_long_lives(
    tmp_path_factory: pytest.TempPathFactory, spark: object, storage: str, steps: list[tuple[str, int]]
) -> None:
    live(Shop(tmp_path_factory.mktemp("shop"), storage), steps)


# --- what is killed


def dies(*_: object) -> None:
    raise KeyboardInterrupt


@on_parquet_first
def test_a_write_that_is_killed_before_or_after_its_commit(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.send("a", 3)
    shop.ok("run", "-s", "+taken")

    shop.send("a", 4)
    with monkeypatch.context() as patch:
        patch.setattr(STORAGES[shop.storage], "apply_increment", dies)
        shop.killed("-s", "+taken")
    shop.send("a", 5)
    shop.ok("run", "-s", "+taken")
    assert shop.taken() == {"a": 12}

    record = Progress._record
    with monkeypatch.context() as patch:
        patch.setattr(Progress, "_record", lambda self, what: record(self, what) if "next" in what else dies())
        shop.send("a", 6)
        shop.killed("-s", "+taken")
    shop.send("a", 7)
    shop.ok("run", "-s", "+taken")
    assert shop.taken() == {"a": 25}


@on_parquet_first
def test_a_full_refresh_that_is_killed_is_finished(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.send("a", 3)
    shop.ok("run", "-s", "+taken")

    with monkeypatch.context() as patch:
        # After the checkpoint is gone, before the table is.
        patch.setattr(STORAGES[shop.storage], "drop_changelog", dies)
        shop.killed("--full-refresh", "-s", "+taken")
    said = shop.ok("run", "-s", "+taken")
    assert "finishes the full refresh that the run " in said
    assert shop.taken() == {"a": 3}
    with monkeypatch.context() as patch:
        # The sources have landed again, the model is not built again.
        patch.setattr(STORAGES[shop.storage], "replace", dies)
        shop.killed("--full-refresh", "-s", "+taken")
    shop.send("a", 2)
    said = shop.ok("run", "-s", "+taken")
    assert said.count("finishes the full refresh that the run ") == 1
    assert shop.taken() == {"a": 5}
    assert "finishes" not in shop.ok("run", "-s", "+taken")
    # A source that has landed again alone.
    shop.ok("run", "--full-refresh", "-s", "a_to_changelog")
    said = shop.fails("-s", "taken")
    assert '"a_to_changelog" has landed everything again since "taken" was built' in said
    shop.ok("run", "--full-refresh", "-s", "taken")
    assert shop.taken() == {"a": 5}


# --- what is restored


@on_parquet_first
def test_a_table_and_a_checkpoint_of_different_moments(shop: Shop) -> None:
    places = {"table": shop.table("a_to_changelog"), "checkpoint": shop.checkpoint("a_to_changelog")}
    only = ("-s", "a_to_changelog")

    def save(moment: str) -> None:
        for name, place in places.items():
            shutil.copytree(place, shop / moment / name)

    def restore(table: str, checkpoint: str) -> None:
        for name, moment in (("table", table), ("checkpoint", checkpoint)):
            shutil.rmtree(places[name])
            shutil.copytree(shop / moment / name, places[name])

    shop.send("a", 1)
    shop.ok("run", *only)
    save("then")
    shop.send("a", 1)
    shop.ok("run", *only)
    save("now")
    shop.send("a", 1)
    for table, checkpoint, reason in (
        ("then", "now", 'the table "a_to_changelog" is older than its checkpoint: it lacks batch 1'),
        ("now", "then", 'the checkpoint of "a_to_changelog" is older than its table, which has batch 1'),
    ):
        restore(table, checkpoint)
        said = shop.fails(*only)
        assert (
            reason in said
            and "restore both as they were at one moment, or runner run --full-refresh -s a_to_changelog" in said
        )
    restore("now", "now")
    shop.ok("run", "-s", "+taken")
    assert shop.taken() == {"a": 3}
    # Of another table with this name.
    shop.ok("run", "--full-refresh", *only)
    save("again")
    restore("now", "again")
    said = shop.fails(*only)
    assert 'the checkpoint of "a_to_changelog" is that of another table of this name' in said


@on_parquet_first
def test_a_model_that_is_restored(shop: Shop) -> None:
    shop.send("a", 1)
    shop.ok("run", "-s", "+taken")
    shutil.copytree(shop.table("taken"), shop / "then")
    shop.send("a", 1)
    shop.ok("run", "-s", "+taken")
    shutil.rmtree(shop.table("taken"))
    shutil.copytree(shop / "then", shop.table("taken"))
    shop.send("a", 1)
    said = shop.fails("-s", "+taken")
    assert 'it is not known what "taken" has read: runner run --full-refresh -s taken builds it again' in said
    shop.ok("run", "--full-refresh", "-s", "taken")
    assert shop.taken() == {"a": 3}
    # What is recorded of it is damaged.
    for name in ("_progress.json", "_mark"):
        (shop.checkpoint("taken") / name).write_bytes(b"\xff")
    said = shop.fails("-s", "taken")
    assert "is damaged" in said and "read all messages again with --full-refresh" in said
    shop.ok("run", "--full-refresh", "-s", "taken")
    assert shop.taken() == {"a": 3}


@pytest.mark.parametrize("storage", ["delta", "iceberg"])
def test_a_model_that_is_restored_in_place(shop: Shop, spark: Any) -> None:
    """The table keeps the names of the writes that were undone."""
    shop.send("a", 1)
    shop.ok("run", "-s", "+taken")
    shop.send("a", 1)
    shop.ok("run", "-s", "+taken")
    shop.roll_back("taken", spark.session)
    shop.send("a", 1)
    said = shop.fails("-s", "+taken")
    assert 'it is not known what "taken" has read: runner run --full-refresh -s taken builds it again' in said
    shop.ok("run", "--full-refresh", "-s", "taken")
    assert shop.taken() == {"a": 3}
