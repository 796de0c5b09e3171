"""Mirrors (runner/project/mirrors.py, macros/mirrors.sql): tables as they are in their databases. Expected rows are
those that a simulated table held, and for the history those of a plain reference (tests/lives.py).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st

from runner.engine.errors import QueryFailed
from runner.engine.session import Spark
from runner.project.mirror import MirrorQuery
from runner.project.project import project_folders
from runner.run.mirrors import Mark, Mirrors
from runner.storage.delta import Delta
from tests import lives, pages, test_mirrors_by_hand
from tests.engines import ConnectServer, jars
from tests.spark_fixtures import rows

pytestmark = pytest.mark.usefixtures("spark", "interpreted")
# What is told of `orderly` comes in its own order, of the others in any. Of `whole` no change tells parts of a row.
TABLES = {
    "many": {},
    "emptied": {"kinds": (*lives.CHANGES * 2, "empty")},
    "whole": {"told": ("both", "new")},
    "orderly": {"kinds": [kind for kind in lives.CHANGES if kind != "load"]},
}
RUNS = 3
# A row that the mirror of `orderly` leaves out at first, told in parts.
LEFT_OUT = [
    lives.Step("insert", pause=0, row=0, to=0, values={"b": "2", "c": "p"}, told="new"),
    *(lives.Step("update", pause=1, row=0, to=0, values=told, told="parts") for told in ({"a": "x"}, {"c": "q"})),
]


class Told(NamedTuple):
    """A life, and which of its messages each run reads."""

    life: lives.Life
    parts: list[list[lives.Message]]


def random_lives(name: str, number: int, steps: int) -> list[Told]:
    """Lives of a table; of `emptied` each is emptied more than once."""
    strategy = lives.steps(steps, steps, **TABLES[name])
    if name == "emptied":
        strategy = strategy.filter(lambda drawn: sum(step.kind == "empty" for step in drawn) > 1)

    def draw_one(draw: Callable[..., Any], number: int) -> Told:
        life = lives.Life(number).live(draw(strategy))
        if name == "orderly":
            ends = [len(life.messages) * run // RUNS for run in range(RUNS + 1)]
            return Told(life, [life.messages[start:end] for start, end in pairwise(ends)])
        return Told(life, lives.shuffled(life.messages, RUNS, draw(st.randoms(use_true_random=False))))

    lived = lives.drawn(draw_one, 1 if name == "emptied" else number)
    if name == "orderly":
        hidden = lives.Life(len(lived)).live(LEFT_OUT)
        lived.append(Told(hidden, [[message] for message in hidden.messages]))
    return lived


def random_messages(number: int, steps: int) -> tuple[dict[str, list[Told]], list[str]]:
    """The lives of each table, and the file that each run reads."""
    told = {name: random_lives(name, number, steps) for name in TABLES}
    files = [
        "\n".join(message.text(name) for name, lived in told.items() for one in lived for message in one.parts[run])
        for run in range(RUNS)
    ]
    return told, files


def logged_messages(number: int, steps: int) -> tuple[list[lives.Life], list[str]]:
    """Lives whose tables are loaded again, whose servers fail over, and of which a part is told twice, as after a
    restart; and the file that each run reads.
    """

    def draw_one(draw: Callable[..., Any], number: int) -> lives.Life:
        return lives.Life(number).live(draw(lives.steps(steps, steps, kinds=lives.LOGGED_CHANGES)))

    lived = lives.drawn(draw_one, number)
    files: list[list[str]] = [[] for _ in range(RUNS)]
    for life in lived:
        told = [message.logged("logged") for message in life.messages]
        ends = [len(told) * run // RUNS for run in range(RUNS + 1)]
        for run, (start, end) in enumerate(pairwise(ends)):
            files[run] += told[max(0, start - life.number % 7) : end]
    return lived, ["\n".join(lines) for lines in files]


LONG = [("parquet", 12), ("delta", 12), ("parquet", 1000), ("delta", 1000), ("iceberg", 1000)]


@pytest.mark.parametrize(
    ("storage", "number"), [("iceberg", 12), *(pytest.param(*one, marks=pytest.mark.soak) for one in LONG)]
)
def test_random_lives(project, runner, capsys, monkeypatch, storage: str, number: int) -> None:
    """Told in three runs, of which the second dies between the writes of a mirror's two tables. On Parquet each run
    makes a mirror of all messages: one is enough.
    """
    is_increment = storage != "parquet"
    mirrors = "".join(lives.MIRROR.format(name=name, source="shop") for name in TABLES) + "    where: c <> 'p' -- no\n"
    mirrors += lives.MIRROR.format(name="logged", source="logged")
    folder = project(
        {
            "project.yml": lives.PROJECT.format(storage=storage) + lives.LOGGED_SOURCE,
            "formats/everything.yml": lives.FORMAT,
            "formats/logged.yml": lives.LOGGED,
            "models/mirrors/tables.yml": f"mirrors:{mirrors}",
        }
    )
    told, files = random_messages(number, steps=40)
    logged, logs = logged_messages(number, steps=25)
    files, logs = (files, logs) if is_increment else (["\n".join(files)], ["\n".join(logs)])
    writes: list[tuple[str, str]] = []
    write = Mirrors._write

    def dies(mirrors: Mirrors, query: MirrorQuery, step: str, table: str, changed: str) -> None:
        writes.append((step, table))
        if run == 1 and step == "merged" and not table.startswith(("orderly_history", "logged")):
            raise QueryFailed("killed")
        write(mirrors, query, step, table, changed)

    monkeypatch.setattr(Mirrors, "_write", dies)
    decisions = looked_at(monkeypatch, "decided")
    for name in ("in", "logged"):
        (folder / name).mkdir()
    for run, text in enumerate(files):
        (folder / f"in/{run}.jsonl").write_text(text)
        (folder / f"logged/{run}.jsonl").write_text(logs[run])
        ran = runner("run", "-s", "shop_to_changelog+ logged_to_changelog+")
        assert ran.code == (1 if run == 1 and is_increment else 0), ran.err
    check_counts(folder, capsys)
    if is_increment:
        check_increments(writes, decisions, folder / "lake" / storage / "_checkpoints")
    for name, lived in told.items():
        found = (rows(capsys, sql.format(name)) for sql in (lives.ROWS, lives.VERSIONS))
        lives.check([one.life for one in lived], *found, left_out=("p", None) if name == "orderly" else ())
    found = (rows(capsys, sql.format("logged")) for sql in (lives.ROWS, lives.VERSIONS))
    lives.check(logged, *found, versions=lives.versions_logged)
    check_mirrored(folder, runner)


def check_increments(writes: list[tuple[str, str]], decisions: list[tuple[str, dict]], checkpoints: Path) -> None:
    """The tables that are never emptied have taken in what was new."""
    for name in ("many", "whole"):
        for model, beside in ((name, f"{name}__gone"), (f"{name}_history", f"{name}_history__known")):
            taken_in = [("beside_written", beside), ("merged", model)] * 2
            assert [one for one in writes if one[1] in (model, beside)] == taken_in
        mark = Mark.read((checkpoints / name / "_mark").read_text())
        assert (mark.told_parts, mark.numbered_in) == (name != "whole", "")
    in_orderly = [one for view, one in decisions if view.startswith("orderly_history")]
    # Some rows are taken up where they were, and some, which `where` leaves out, looked at again.
    assert len(in_orderly) == RUNS - 1
    assert all(0 < one["again"] < one["changed"] / 2 for one in in_orderly)


# What is wrong in the SQL of mirrors once it is put in place of a text that is there once.
MUTATIONS = {
    "what is deleted comes back": ("mirrors", "if(newest.place < gone_until, 'leave', 'take')", "'take'"),
    "an older change counts": (
        "mirrors",
        "when matched and {{ is_not_older }} then update",
        "when matched then update",
    ),
    "parts of a row are all of it": ("mirrors", "op <> 'update' or after_image = 'full' or moved", "true"),
    "the oldest change counts": ("mirrors", "max_by(told, place){{", "min_by(told, place){{"),
    "the old key stays": ("mirrors", "when moved then array(true, false)", "when moved then array(false)"),
    "late parts are laid over": (
        "mirrors",
        "and {{ place_after('first_part', 'first_arrived', 'known_until') }} > known_until then 'over'",
        "then 'over'",
    ),
    "a truncate is not seen": ("mirrors", "where emptied_nth is null", "where true"),
    "a version never ends": (
        "histories",
        "own.valid_to = new._begins, own.is_current = false",
        "own.is_current = false",
    ),
    "late versions are added": (
        "histories",
        "{{ place_after('one.first', 'one.first_arrived', 'known._known_until') }} <= known._known_until",
        "false",
    ),
    "nothing is new": ("histories", "where not version <=> version_before", "where true"),
    "a history forgets what is left out": (
        "histories",
        "(known._left_out and (not one.begins_whole or one.row_begins < known._known_at))",
        "false",
    ),
}


# What a table notices that is built anew in each run, which takes less time.
IN_WHOLE = {
    "parts of a row are all of it",
    "the oldest change counts",
    "the old key stays",
    "a truncate is not seen",
    "nothing is new",
}


@pytest.mark.soak
@pytest.mark.parametrize("mutation", MUTATIONS)
def test_mutations_of_the_sql_are_noticed(
    project, runner, capsys, monkeypatch, tmp_path, tmp_path_factory, mutation
) -> None:
    name, text, instead = MUTATIONS[mutation]
    macros = tmp_path_factory.mktemp("mutated") / "macros"
    shutil.copytree(pages.ROOT / "macros", macros)
    file = macros / f"{name}.sql"
    assert file.read_text().count(text) == 1
    file.write_text(file.read_text().replace(text, instead))

    def mutated(root: Path | None, folder: str) -> tuple[Path, ...]:
        return (macros,) if folder == "macros" else project_folders(root, folder)

    monkeypatch.setattr("runner.project.project.project_folders", mutated)
    with pytest.raises(AssertionError) as noticed:
        if mutation == "late parts are laid over":
            # What random lives tell hardly ever.
            test_mirrors_by_hand.test_what_runs_take_in(tmp_path)
        else:
            storage = "parquet" if mutation in IN_WHOLE else "delta"
            test_random_lives(project, runner, capsys, monkeypatch, storage, 25)
    # By its rows, and not because the SQL is none.
    assert "SQLSTATE" not in f"{noticed.value}"


@pytest.mark.soak
def test_a_server_takes_in_the_same(project, tmp_path: Path) -> None:
    """Spark Connect, on Delta."""
    told, files = random_messages(6, steps=30)
    settings = {
        "spark.sql.extensions": Delta.extension,
        "spark.sql.catalog.spark_catalog": Delta.session_catalog,
        # Hundreds of tasks for a few rows would take minutes.
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
    }
    with ConnectServer(tmp_path / "engine", jars("spark"), settings) as server:
        folder = project(
            {
                "project.yml": f"targets: {{local: {{storage: delta, path: lake, remote: '{server.remote}'}}}}\n"
                "sources: [{name: shop, format: everything, files: in/*}]\n",
                "formats/everything.yml": lives.FORMAT,
                "models/mirrors/tables.yml": "mirrors:"
                + "".join(lives.MIRROR.format(name=name, source="shop") for name in TABLES),
            }
        )
        (folder / "in").mkdir()

        def ran(*words: str) -> str:
            command = [sys.executable, "-m", "runner.cli", "--project-dir", str(folder), *words]
            done = subprocess.run(command, cwd=pages.ROOT, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            return done.stdout

        for run, text in enumerate(files):
            (folder / f"in/{run}.jsonl").write_text(text)
            ran("run", "-s", "shop_to_changelog+")
        ran("test", "--data", "-s", "shop_to_changelog+")
        for name, lived in told.items():
            found = ran("show", "--inline", lives.ROWS.format(name), "--limit", "9999", "--output", "json")
            lives.check([one.life for one in lived], list(map(json.loads, found.splitlines())))


def looked_at(monkeypatch: pytest.MonkeyPatch, step: str) -> list[tuple[str, dict[str, Any]]]:
    """What is counted of each view of a step of a mirror from now on, after the name of the view."""
    found = []
    counted_view = Spark.counted_view

    @contextmanager
    def noted(spark: Spark, name: str, sql: str, counts: str) -> Iterator[Any]:
        with counted_view(spark, name, sql, counts) as counted:
            if name.endswith(f"__{step}"):
                found.append((name, counted))
            yield counted

    monkeypatch.setattr(Spark, "counted_view", noted)
    return found


def check_counts(folder: Path, capsys) -> None:
    """A run tells how many rows its mirrors have."""
    results = json.loads((folder / "target/run_results.json").read_text())["results"]
    told = {one["unique_id"].split(".")[2]: one["adapter_response"]["rows"] for one in results}
    mirrors = {name: counts["rows"] for name, counts in told.items() if "rows" in counts}
    assert {"many", "many_history", "logged", "logged_history"} <= mirrors.keys()
    counted = " union all ".join(f"select '{name}' as name, count(*) as rows from {name}" for name in mirrors)
    assert {row["name"]: row["rows"] for row in rows(capsys, counted)} == mirrors


def check_mirrored(folder: Path, runner) -> None:
    """The test `mirrored`: also of some keys, also when more has landed; it finds a mirror that is not what it says."""
    life = lives.Life(99)
    life.insert(1, {"a": "x", "b": None, "c": "q"})
    life.update("1", {"a": "y"}, "parts")
    (folder / "in/later.jsonl").write_text("\n".join(message.text("many") for message in life.messages))
    assert runner("run", "-s", "shop_to_changelog").code == 0
    path = folder / "models/mirrors/tables.yml"
    path.write_text(path.read_text().replace("[mirrored]", "[mirrored, {mirrored: {share: 0.5}}]", 1))
    ran = runner("test", "--data", "-s", "many+ many_history+ emptied+ emptied_history+")
    assert ran.code == 0, ran.err
    names = [
        f"mirrored_{name}"
        for name in ("many", "many_2", "many_history", "many_history_2", "emptied", "emptied_history")
    ]
    assert all(f"PASS test {name} [" in ran.err for name in names), ran.err
    path.write_text(path.read_text().replace("c: string", "c: {type: string, sent_as: [a]}"))
    ran = runner("test", "--data", "-s", "many+ many_history+")
    assert ran.code == 1 and ran.err.count("FAIL test mirrored_many") == 4, ran.err
    assert "difference: only in the mirror, life: " in ran.err and "difference: not in the mirror, life: " in ran.err
