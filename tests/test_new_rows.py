"""Incremental models take in each row once, whatever fails, is killed, is restored or lands in between. Expected counts
are those of the messages that were written.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from runner.cli import main
from runner.engine.progress import Progress
from runner.storage.known import STORAGES
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


class Shop:
    """A project with two sources and a model that adds up what is new, on one storage."""

    def __init__(self, folder: Path, storage: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.storage, self._capsys = folder, storage, capsys
        self.lake = folder / "lake" / storage
        self.written: dict[str, int] = {}
        (folder / "project.yml").write_text(PROJECT.format(storage=storage))
        self.add_source("a")
        (folder / "models").mkdir()
        (folder / "models/both.sql").write_text("select * from {{ ref('changelog') }} where kind = 'row'")
        (folder / "models/taken.sql").write_text(TAKEN)

    def add_source(self, name: str) -> None:
        self.written[name] = 0
        (self.folder / "in" / name).mkdir(parents=True)
        with (self.folder / "project.yml").open("a") as project:
            project.write(f"  - {{name: {name}, format: lean, files: in/{name}/*}}\n")

    def write(self, source: str, messages: int) -> None:
        """One more file of a source."""
        at = self.written[source]
        self.written[source] += messages
        lines = [_message(number) for number in range(at, at + messages)]
        (self.folder / f"in/{source}/{at}.jsonl").write_text("\n".join(lines))

    def write_broken(self, source: str, messages: int) -> None:
        """The same, as an archive that cannot be unpacked until `mend`."""
        at = self.written[source]
        self.written[source] += messages
        packed = gzip.compress("\n".join(_message(number) for number in range(at, at + messages)).encode())
        path = self.folder / f"in/{source}/{at}.jsonl.gz"
        path.write_bytes(packed[: len(packed) // 2])
        path.with_name(f".{path.name}").write_bytes(packed)

    def mend(self, source: str) -> None:
        for whole in (self.folder / "in" / source).glob(".*.gz"):
            broken = whole.with_name(whole.name[1:])
            broken.write_bytes(whole.read_bytes())
            whole.unlink()

    def run(self, *words: str) -> tuple[int, str]:
        self._capsys.readouterr()
        code = main(["run", *words])
        return code, self._capsys.readouterr().err

    def build(self, *words: str) -> str:
        code, said = self.run(*words)
        assert code == 0, said
        return said

    def killed(self, *words: str) -> None:
        """A run in which something raises KeyboardInterrupt, as a patch does."""
        with contextlib.suppress(KeyboardInterrupt):
            assert self.run(*words)[0] != 0

    def taken(self) -> dict[str, int]:
        """Source -> the changes that the model has counted."""
        self._capsys.readouterr()
        sql = "select source, sum(changes) as n from {{ ref('taken') }} group by source"
        assert main(["show", "--inline", sql, "--output", "json"]) == 0
        found = [json.loads(line) for line in self._capsys.readouterr().out.splitlines()]
        return {row["source"]: row["n"] for row in found}

    def table(self, name: str) -> Path:
        return self.lake / (f"changelog/{name}" if self.storage == "iceberg" else name)

    def roll_back(self, name: str, session: Any) -> None:
        """Undoes the last write of a table, with the statement of its storage."""
        if self.storage == "delta":
            table = f"delta.`{self.table(name)}`"
            version = session.sql(f"describe history {table}").first()["version"]
            session.sql(f"restore table {table} to version as of {version - 1}")
            return
        hadoop_catalog(session, "iceberg", self.lake)
        first = session.sql(
            f"select snapshot_id from iceberg.changelog.{name}.snapshots order by committed_at"
        ).first()[0]
        session.sql(f"call iceberg.system.rollback_to_snapshot('changelog.{name}', {first})")

    def checkpoint(self, name: str) -> Path:
        return self.lake / "_checkpoints" / name


def _message(number: int) -> str:
    return json.dumps({"type": "INSERT", "table": "t", "data": [{"id": str(number)}], "pkNames": ["id"]})


@pytest.fixture
def shop(
    tmp_path: Path, spark: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, storage: str
) -> Shop:
    monkeypatch.chdir(tmp_path)
    return Shop(tmp_path, storage, capsys)


# On the others only in the long tests.
on_parquet_first = pytest.mark.parametrize(
    "storage", ["parquet", *(pytest.param(other, marks=pytest.mark.soak) for other in ("delta", "iceberg"))]
)


# --- what fails, comes back, and lands in between


def land_half(shop: Shop, source: str) -> None:
    """Lands a batch up to the moment when its rows are in the table and it is not committed: what a model sees that is
    built while a run of its own lands the source, or after such a run was killed.
    """
    shop.build("-s", f"{source}_to_changelog")
    commits = shop.checkpoint(f"{source}_to_changelog") / "commits"
    newest = max((path for path in commits.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
    newest.unlink()
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)


def live(shop: Shop, steps: int, seed: int) -> None:
    """Random steps, each followed by a run; at the end all messages have landed and were counted once."""
    shop.add_source("b")
    chance = random.Random(seed)
    is_broken = False
    for _ in range(steps):
        shop.write("a", chance.randint(1, 5))
        step = chance.choice(["breaks", "meanwhile", "alone", "plain"])
        if step == "breaks" and not is_broken:
            is_broken = True
            shop.write_broken("b", chance.randint(1, 5))
            assert shop.run("-s", "b_to_changelog")[0] == 1
        elif step == "meanwhile":
            land_half(shop, "a")
        elif is_broken:
            is_broken = False
            # What was read before the failure lands with the time of the first attempt, after newer rows of "a".
            shop.build("-s", "a_to_changelog", "-s", "taken")
            shop.mend("b")
            shop.build("-s", "b_to_changelog")
        elif step == "alone":
            shop.write("b", 2)
            shop.build("-s", "b_to_changelog")
        shop.build("-s", "taken")
    shop.mend("b")
    shop.build("-s", "+taken")
    assert shop.taken() == shop.written


@pytest.mark.parametrize("storage", ["parquet"])
def test_each_row_is_taken_in_once(shop: Shop) -> None:
    live(shop, 5, seed=3)


@pytest.mark.soak
@on_parquet_first
@pytest.mark.parametrize("seed", range(5))
def test_each_row_is_taken_in_once_in_long_lives(shop: Shop, seed: int) -> None:
    live(shop, 20, seed)


# --- what is killed


def dies(*_: object) -> None:
    raise KeyboardInterrupt


@on_parquet_first
def test_a_write_that_is_killed_before_or_after_its_commit(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.write("a", 3)
    shop.build("-s", "+taken")

    shop.write("a", 4)
    with monkeypatch.context() as patch:
        patch.setattr(STORAGES[shop.storage], "apply_increment", dies)
        shop.killed("-s", "+taken")
    shop.write("a", 5)
    shop.build("-s", "+taken")
    assert shop.taken() == {"a": 12}

    record = Progress._record
    with monkeypatch.context() as patch:
        patch.setattr(Progress, "_record", lambda self, what: record(self, what) if "next" in what else dies())
        shop.write("a", 6)
        shop.killed("-s", "+taken")
    shop.write("a", 7)
    shop.build("-s", "+taken")
    assert shop.taken() == {"a": 25}


@on_parquet_first
def test_a_full_refresh_that_is_killed_is_finished(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.write("a", 3)
    shop.build("-s", "+taken")

    with monkeypatch.context() as patch:
        # After the checkpoint is gone, before the table is.
        patch.setattr(STORAGES[shop.storage], "drop_changelog", dies)
        shop.killed("--full-refresh", "-s", "+taken")
    said = shop.build("-s", "+taken")
    assert "finishes the full refresh that the run " in said
    assert shop.taken() == {"a": 3}
    with monkeypatch.context() as patch:
        # The sources have landed again, the model is not built again.
        patch.setattr(STORAGES[shop.storage], "replace", dies)
        shop.killed("--full-refresh", "-s", "+taken")
    shop.write("a", 2)
    said = shop.build("-s", "+taken")
    assert said.count("finishes the full refresh that the run ") == 1
    assert shop.taken() == {"a": 5}
    assert "finishes" not in shop.build("-s", "+taken")
    # A source that has landed again alone.
    shop.build("--full-refresh", "-s", "a_to_changelog")
    code, said = shop.run("-s", "taken")
    assert code == 1 and '"a_to_changelog" has landed everything again since "taken" was built' in said
    shop.build("--full-refresh", "-s", "taken")
    assert shop.taken() == {"a": 5}


# --- what is restored


@on_parquet_first
def test_a_table_and_a_checkpoint_of_different_moments(shop: Shop) -> None:
    places = {"table": shop.table("a_to_changelog"), "checkpoint": shop.checkpoint("a_to_changelog")}
    only = ("-s", "a_to_changelog")

    def save(moment: str) -> None:
        for name, place in places.items():
            shutil.copytree(place, shop.folder / moment / name)

    def restore(table: str, checkpoint: str) -> None:
        for name, moment in (("table", table), ("checkpoint", checkpoint)):
            shutil.rmtree(places[name])
            shutil.copytree(shop.folder / moment / name, places[name])

    shop.write("a", 1)
    shop.build(*only)
    save("then")
    shop.write("a", 1)
    shop.build(*only)
    save("now")
    shop.write("a", 1)
    for table, checkpoint, reason in (
        ("then", "now", 'the table "a_to_changelog" is older than its checkpoint: it lacks batch 1'),
        ("now", "then", 'the checkpoint of "a_to_changelog" is older than its table, which has batch 1'),
    ):
        restore(table, checkpoint)
        code, said = shop.run(*only)
        assert code == 1 and reason in said and "restore both as they were at one moment, or --full-refresh" in said
    restore("now", "now")
    shop.build("-s", "+taken")
    assert shop.taken() == {"a": 3}
    # Of another table with this name.
    shop.build("--full-refresh", *only)
    save("again")
    restore("now", "again")
    code, said = shop.run(*only)
    assert code == 1 and 'the checkpoint of "a_to_changelog" is that of another table of this name' in said


@on_parquet_first
def test_a_model_that_is_restored(shop: Shop) -> None:
    shop.write("a", 1)
    shop.build("-s", "+taken")
    shutil.copytree(shop.table("taken"), shop.folder / "then")
    shop.write("a", 1)
    shop.build("-s", "+taken")
    shutil.rmtree(shop.table("taken"))
    shutil.copytree(shop.folder / "then", shop.table("taken"))
    shop.write("a", 1)
    code, said = shop.run("-s", "+taken")
    assert code == 1 and 'it is not known what "taken" has read: --full-refresh -s taken builds it again' in said
    shop.build("--full-refresh", "-s", "taken")
    assert shop.taken() == {"a": 3}
    # What is recorded of it is damaged.
    for name in ("_progress.json", "_mark"):
        (shop.checkpoint("taken") / name).write_bytes(b"\xff")
    code, said = shop.run("-s", "taken")
    assert code == 1 and "is damaged" in said and "read all messages again with --full-refresh" in said
    shop.build("--full-refresh", "-s", "taken")
    assert shop.taken() == {"a": 3}


@pytest.mark.parametrize("storage", ["delta", "iceberg"])
def test_a_model_that_is_restored_in_place(shop: Shop, spark: Any) -> None:
    """The table keeps the names of the writes that were undone."""
    shop.write("a", 1)
    shop.build("-s", "+taken")
    shop.write("a", 1)
    shop.build("-s", "+taken")
    shop.roll_back("taken", spark.session)
    shop.write("a", 1)
    code, said = shop.run("-s", "+taken")
    assert code == 1 and 'it is not known what "taken" has read: --full-refresh -s taken builds it again' in said
    shop.build("--full-refresh", "-s", "taken")
    assert shop.taken() == {"a": 3}
