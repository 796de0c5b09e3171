"""Mirrors (runner/project/mirrors.py, macros/mirrors.sql): tables as they are in their databases. Expected rows are
those that a simulated table held, and for the history those of a plain reference (tests/lives.py).
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from runner.engine.checkpoint import Checkpoint
from runner.engine.errors import QueryFailed
from runner.engine.files import LocalFiles
from runner.project.project import project_folders
from runner.run import mirrors as runner_mirrors
from runner.run.mirrors import WHOLE_ROWS, Increment
from runner.storage.delta import Delta
from tests import lives, pages
from tests.engines import ConnectServer, jars
from tests.spark_fixtures import rows

pytestmark = pytest.mark.usefixtures("spark", "interpreted")
PROJECT = """
name: mirrored
target: {storage}
targets:
  parquet: {{path: lake/parquet}}
  delta: {{storage: delta, path: lake/delta}}
  iceberg: {{storage: iceberg, path: lake/iceberg, catalog: {{type: hadoop}}}}
sources:
  - {{name: shop, format: everything, files: in/*}}
"""
MIRROR = """
  - name: {name}
    of: {{source: shop, table: {name}}}
    key: [life, id]
    columns: {{life: int, id: bigint, a: string, b: "decimal(10,2)", c: string}}
    history: true
    data_tests: [mirrored]
"""
# What is told of `orderly` comes in its own order, of the others in any. Of `whole` no change tells parts of a row.
TABLES = ("many", "emptied", "whole", "orderly")
RUNS = 3
PARQUET_FIRST = ("parquet", *(pytest.param(one, marks=pytest.mark.soak) for one in ("delta", "iceberg")))


def random_life(name: str, number: int, chance: random.Random, steps: int) -> lives.Life:
    """A life of a table; of `emptied` one that is emptied, and more than once."""
    while True:
        life = lives.Life(number, chance, name == "emptied", name == "whole").live(steps)
        if name != "emptied" or sum(message.op == "T" for message in life.messages) > 1:
            return life


def random_messages(seed: int, number: int, steps: int) -> dict[str, tuple[list[lives.Life], list[list[str]]]]:
    """Table -> its lives, and what each run reads of them: some messages twice."""
    chance = random.Random(seed)
    told = {}
    for name in TABLES:
        lived = [random_life(name, n, chance, steps) for n in range(1 if name == "emptied" else number)]
        if name == "orderly":
            told[name] = (lived, in_order(name, lived))
            continue
        texts = [message.text(name) for life in lived for message in life.messages]
        told[name] = (lived, lives.shuffled(texts, RUNS, chance))
    return told


def in_order(name: str, lived: list[lives.Life]) -> list[list[str]]:
    """The messages of each life in as many parts as there are runs; rows that a full load told later are taken out."""
    parts: list[list[str]] = [[] for _ in range(RUNS)]
    for life in lived:
        life.messages = [message for message in life.messages if message.op != "S"]
        for number, message in enumerate(life.messages):
            parts[number * RUNS // len(life.messages)].append(message.text(name))
    return parts


@pytest.mark.parametrize(
    ("storage", "number"),
    [
        ("iceberg", 12),
        *(
            pytest.param(*one, marks=pytest.mark.soak)
            for one in (("parquet", 12), ("delta", 12), ("parquet", 1000), ("delta", 1000), ("iceberg", 1000))
        ),
    ],
)
def test_random_lives(project, runner, capsys, monkeypatch, storage: str, number: int) -> None:
    """Told in three runs, of which the second dies between the writes of a mirror's two tables."""
    mirrors = "".join(MIRROR.format(name=name) for name in TABLES) + "    where: c <> 'p'\n"
    folder = project(
        {
            "project.yml": PROJECT.format(storage=storage),
            "formats/everything.yml": lives.FORMAT,
            "models/mirrors/tables.yml": f"mirrors:{mirrors}",
        }
    )
    told = random_messages(20261123, number, steps=40)
    writes: list[tuple[str, str]] = []
    write = Increment._write

    def dies(increment: Increment, step: str, table: str, *arguments: Any) -> None:
        writes.append((step, table))
        if part == 1 and step == "merged" and table != "orderly_history":
            raise QueryFailed("killed")
        write(increment, step, table, *arguments)

    monkeypatch.setattr(Increment, "_write", dies)
    decisions = looked_at(monkeypatch, "history_decisions")
    (folder / "in").mkdir()
    for part in range(RUNS):
        (folder / f"in/{part}.jsonl").write_text("\n".join(text for _, parts in told.values() for text in parts[part]))
        ran = runner("run", "-s", "shop_to_changelog+")
        assert ran.code == (1 if part == 1 and storage != "parquet" else 0), ran.err
    # The tables that are never emptied have taken in what was new.
    for name in ("many", "whole"):
        for model, beside in ((name, f"{name}__gone"), (f"{name}_history", f"{name}_history__known")):
            taken_in = [("beside_written", beside), ("merged", model)] * (2 if storage != "parquet" else 0)
            assert [one for one in writes if one[1] in (model, beside)] == taken_in
        if storage != "parquet":
            mark = folder / "lake" / storage / "_checkpoints" / name / "_mark"
            assert mark.read_text().endswith(WHOLE_ROWS) == (name == "whole")
    in_orderly = [one for view, one in decisions if view.startswith("orderly_history")]
    # Some rows are taken up where they were, and some, which `where` leaves out, looked at again.
    assert len(in_orderly) == (RUNS - 1 if storage != "parquet" else 0)
    assert all(0 < one["again"] < one["changed"] / 2 for one in in_orderly)
    for name, (lived, _) in told.items():
        left_out = ("p", None) if name == "orderly" else ()
        held = [as_mirrored(row) for life in lived for row in life.rows.values() if row["c"] not in left_out]
        assert sorted(held, key=str) == sorted(shown(capsys, f"select life, id, a, b, c from {name}"), key=str)
        expected_versions = [
            version(one)
            for life in lived
            for one in lives.versions(life.messages)
            if dict(one.row)["c"] not in left_out
        ]
        found = shown(capsys, f"select life, id, a, b, c, valid_from, valid_to, is_current from {name}_history")
        assert sorted(found, key=str) == sorted(expected_versions, key=str)
    check_mirrored(folder, runner)


def test_a_part_that_comes_late(project, runner, capsys) -> None:
    """Between the whole row and a later part, both of which are known already."""
    row = {"life": "0", "id": "1"}
    whole, late, last = (
        lives.Message(op, n, lives.FIRST_MOMENT + n, None, {**row, **told}).text("many")
        for op, n, told in (("I", 1, {"a": "x", "b": "1", "c": "p"}), ("U", 2, {"c": "q"}), ("U", 3, {"a": "z"}))
    )
    files = {
        "formats/everything.yml": lives.FORMAT,
        "models/mirrors/tables.yml": "mirrors:" + MIRROR.format(name="many"),
    }
    project({"project.yml": PROJECT.format(storage="delta"), **files, "in/1.jsonl": f"{whole}\n{last}\n"})
    for later in ({}, {"in/2.jsonl": f"{late}\n"}):
        project({"project.yml": PROJECT.format(storage="delta"), **files, **later})
        assert runner("run", "-s", "shop_to_changelog+").code == 0
    assert shown(capsys, "select a, c from many") == [{"a": "z", "c": "q"}]


# What is wrong in the SQL of mirrors once it is put in place of a text that is there once.
MUTATIONS = {
    "what is deleted comes back": ("mirrors", "if(newest.place < gone_until, 'leave', 'take')", "'take'"),
    "an older change counts": (
        "mirrors",
        "when matched and {{ is_not_older }} then update",
        "when matched then update",
    ),
    "parts of a row are all of it": ("mirrors", "op <> 'update' or after_image = 'full' or moved", "true"),
    "the oldest change counts": ("mirrors", "max_by(told, place) as told", "min_by(told, place) as told"),
    "the old key stays": ("mirrors", "when moved then array(true, false)", "when moved then array(false)"),
    "late parts are laid over": ("mirrors", "and first_part > known_until then 'over'", "then 'over'"),
    "a truncate is not seen": ("mirrors", "where size(emptied) = 0", "where true"),
    "a version never ends": (
        "histories",
        "own.valid_to = new._begins, own.is_current = false",
        "own.is_current = false",
    ),
    "late versions are added": ("histories", "or one.first <= known._known_until", "or false"),
    "nothing is new": ("histories", "where not version <=> version_before", "where true"),
    "a history forgets what is left out": ("histories", "(known._left_out and not one.begins_whole)", "false"),
}


@pytest.mark.soak
@pytest.mark.parametrize("mutation", MUTATIONS)
def test_mutations_of_the_sql_are_noticed(project, runner, capsys, monkeypatch, tmp_path_factory, mutation) -> None:
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
            test_a_part_that_comes_late(project, runner, capsys)
        else:
            test_random_lives(project, runner, capsys, monkeypatch, "delta", 100)
    # By its rows, and not because the SQL is none.
    assert "SQLSTATE" not in f"{noticed.value}"


@pytest.mark.soak
def test_a_server_takes_in_the_same(project, tmp_path: Path) -> None:
    """Spark Connect, on Delta."""
    told = random_messages(7, 6, steps=30)
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
                "models/mirrors/tables.yml": "mirrors:" + "".join(MIRROR.format(name=name) for name in TABLES),
            }
        )
        (folder / "in").mkdir()

        def ran(*words: str) -> str:
            command = [sys.executable, "-m", "runner.cli", "--project-dir", str(folder), *words]
            done = subprocess.run(command, cwd=pages.ROOT, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            return done.stdout

        for run in range(RUNS):
            (folder / f"in/{run}.jsonl").write_text("\n".join(t for _, parts in told.values() for t in parts[run]))
            ran("run", "-s", "shop_to_changelog+")
        ran("test", "--data", "-s", "shop_to_changelog+")
        for name, (lived, _) in told.items():
            held = [as_mirrored(row) for life in lived for row in life.rows.values()]
            shown_rows = ran(
                "show", "--inline", f"select life, id, a, b, c from {name}", "--limit", "9999", "--output", "json"
            )
            assert sorted(map(json.loads, shown_rows.splitlines()), key=str) == sorted(held, key=str)


def looked_at(monkeypatch: pytest.MonkeyPatch, macro: str) -> list[tuple[str, dict[str, Any]]]:
    """Each row that the macro selects from now on, after the name of its view."""
    found = []
    row = runner_mirrors._row

    def noted(tables: Any, name: str, *arguments: Any) -> dict[str, Any]:
        selected = row(tables, name, *arguments)
        if name == macro:
            found.append((arguments[0], selected))
        return selected

    monkeypatch.setattr(runner_mirrors, "_row", noted)
    return found


def check_mirrored(folder: Path, runner) -> None:
    """The test `mirrored`: also of some keys, also when more has landed; it finds a mirror that is not what it says."""
    (folder / "in/later.jsonl").write_text(
        "\n".join(m.text("many") for m in lives.Life(99, random.Random(1)).live(9).messages)
    )
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


def shown(capsys: Any, sql: str) -> list[dict[str, Any]]:
    return rows(capsys, sql)


def as_mirrored(row: lives.Row) -> dict[str, Any]:
    amount = row["b"]
    return {
        "life": int(row["life"] or 0),
        "id": int(row["id"] or 0),
        "a": row["a"],
        "b": None if amount is None else str(Decimal(amount).quantize(Decimal("0.01"))),
        "c": row["c"],
    }


def version(one: lives.Version) -> dict[str, Any]:
    begins, ends = moment(one.valid_from), moment(one.valid_to)
    return {**as_mirrored(dict(one.row)), "valid_from": begins, "valid_to": ends, "is_current": one.is_current}


def moment(milliseconds: int | None) -> str | None:
    """An instant as results show it."""
    if milliseconds is None:
        return None
    text = datetime.fromtimestamp(milliseconds / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return text.rstrip("0").rstrip(".") + "Z"


# --- settings, values, names: told by hand

SETTINGS = """
mirrors:
  - name: plain
    of: {source: shop, table: t}
    key: [id]
    columns:
      {id: int, a: string, n: "decimal(6,2)", at: timestamp, local: timestamp_ntz, day: date, flag: boolean,
       bytes: binary, x: double}
    left_out: [unwanted]
  - name: kept
    of: {source: shop, table: t}
    key: [id]
    on_truncate: keep
    columns: {id: int, A: {type: string, sent_as: [a2, "a.3"]}}
    left_out: [n, at, local, day, flag, bytes, x, unwanted, new]
  - name: added
    of: {source: shop, table: t}
    key: [id]
    on_drift: add
    where: id > 1
    columns: {id: int}
    history: true
  - {name: refused, of: {source: shop, table: t}, key: [id], on_drift: fail, columns: {id: int}}
  - {name: rows, of: {source: shop, table: k}, without_key: whole_row, columns: {a: string, b: string}}
  - {name: log, of: {source: shop, table: k}, without_key: append, columns: {a: string, b: string}}
  - name: moved
    of: [{source: shop, table: t}, {source: later, table: orders.t}]
    key: [id]
    columns: {id: int, a: string}
    left_out: [n, at, local, day, flag, bytes, x, unwanted, new, a2, a.3]
  - name: odd
    of: {source: shop, table: names}
    key: ["i.d"]
    columns: {"i.d": int, "it's `q`": string, "列": string, told: string, place: int, row: string}
    history: true
"""


def told(op: str, n: int, table: str = "t", old: Any = None, new: Any = None, at: int = 0, **more: Any) -> str:
    """A message of the format `everything`."""
    at = at or lives.FIRST_MOMENT + n * 1000
    return json.dumps({"op": op, "n": n, "at": at, "table": table, "key": ["id"], "old": old, "new": new, **more})


BY_HAND = """
mirrors:
  - name: seen
    of: {source: shop, table: t}
    key: [id]
    columns: {id: int, a: string, b: string, n: "decimal(4,1)"}
    left_out: [new]
    where: a <> 'hidden'
    history: true
    data_tests: [mirrored]
  - {name: kept, of: {source: shop, table: k}, key: [id], on_truncate: keep, columns: {id: int}}
  - {name: loaded, of: {source: loads, table: t}, key: [id], columns: {id: int}, history: true}
  - name: documents
    of: {source: documents, table: t}
    key: [_id]
    columns: {_id: string, value: {type: string, sent_as: [v]}, other: {type: string, sent_as: [W]}}
"""
MORE = """
  - {{name: loads, format: everything, files: loads/*}}
  - {{name: documents, format: drs_mongodb, files: documents/*}}
"""


def part(n: int, new: dict[str, str]) -> str:
    """A message that tells only some columns."""
    return told("U", n, new=new, types={"id": "int", "a": "text", "b": "text", "n": "decimal(9,3)"})


def document(op: str, value: Any, at: int) -> str:
    """A message about the document 1."""
    header = {"op": op, "dbType": "MongoDB", "db": "d", "coll": "t", "recordType": op.lower(), "es": at, "ts": at}
    where = json.dumps({"_id": 1}) if op != "INSERT" else None
    return json.dumps({**header, "value": json.dumps(value), "where": where, "clusterTime": f"{at // 1000}:1"})


PARTS = [
    {  # `where` leaves out a row
        "in": [
            told("I", 20, new={"id": "1", "a": "hidden", "b": "20"}),
            told("I", 21, new={"id": "2", "a": "x", "n": "1000"}),
            told("I", 22, new={"id": "3", "a": "hidden", "b": "30"}),
            told("I", 23, new={"id": "4", "a": "x", "b": "40"}),
        ],
        "loads": [told("S", 1, new={"id": "1"}), told("S", 2, new={"id": "2"})],
        "documents": [document("INSERT", {"_id": 1, "V": "x", "w": "y"}, 1714528800000)],
        "kept": [told("I", 1, "k", new={"id": "1"})],
    },
    {  # A late image of all columns does not count beside a newer one, and a part after it does.
        "in": [
            told("I", 15, new={"id": "1", "a": "15", "b": "15"}),
            part(30, {"id": "1", "a": "30"}),
            part(31, {"id": "2", "b": "z"}),
            part(31, {"id": "3", "a": "no more"}),
            told("U", 32, new={"id": "4", "a": "hidden", "b": "40"}),
        ],
        "loads": [told("S", 3, new={"id": "1"})],
        "documents": [document("UPDATE", {"$set": {"w": "z"}, "$unset": {"v": True}}, 1714528801000)],
        "kept": [told("T", 2, "k")],
    },
    {
        "in": [part(32, {"id": "2", "n": "7.5"}), part(33, {"id": "4", "a": "back"})],
        "loads": [told("S", 4, new={"id": "3"})],
        "kept": [told("I", 3, "k", new={"id": "2"})],
    },
    {"in": [part(33, {"id": "2", "a": "w"}), part(34, {"id": "2", "n": "x"})]},
]


def test_what_runs_take_in(project, runner, capsys) -> None:
    """A row that comes back, parts, a table that is emptied and one that is loaded anew, in four runs. Before the last
    one old changes are removed, as it is recorded: what comes then must not look for them.
    """
    settings = (PROJECT + MORE).format(storage="delta")
    files = {"formats/everything.yml": lives.FORMAT, "models/mirrors.yml": BY_HAND, "project.yml": settings}
    folder = project(files)
    for name in ("in", "loads", "documents"):
        (folder / name).mkdir()
    models = "seen seen_history kept loaded loaded_history documents"
    checkpoint = Checkpoint(LocalFiles(), f"{folder}/lake/delta/_checkpoints/shop_to_changelog")
    for number, landing in enumerate(PARTS):
        if number == 1:
            loads = settings.replace("files: loads/*", "files: loads/*, generation: 1")
            (folder / "project.yml").write_text(loads)
        if number == 3:
            ran = runner("maintain", "-s", "shop_to_changelog", "--keep-days", "0")
            assert ran.code == 0 and "no rows landed before" in ran.err
            checkpoint.keep_since(date.today())
        landing = {**landing, "in": landing["in"] + landing.get("kept", [])}
        for name in ("in", "loads", "documents"):
            if landing.get(name):
                (folder / name / f"{number}.jsonl").write_text("\n".join(landing[name]))
        ran = runner("run", "-s", f"config.materialized:streaming {models}")
        assert ran.code == 0, ran.err
    own = "_unfit, _in_parts, _seq.position[0] as n_of"
    assert shown(capsys, f"select id, a, b, n, {own} from seen order by id") == [
        {"id": 1, "a": "30", "b": "20", "n": None, "_unfit": None, "_in_parts": True, "n_of": 30},
        {"id": 2, "a": "w", "b": "z", "n": None, "_unfit": {"n": "x"}, "_in_parts": True, "n_of": 34},
        {"id": 3, "a": "no more", "b": "30", "n": None, "_unfit": None, "_in_parts": True, "n_of": 31},
        {"id": 4, "a": "back", "b": "40", "n": None, "_unfit": None, "_in_parts": True, "n_of": 33},
    ]
    columns = "id, a, b, n, _unfit['n'] as unfit, _seq.position[0] as n_of, is_current"
    assert [tuple(row.values()) for row in shown(capsys, f"select {columns} from seen_history order by id, n_of")] == [
        (1, "15", "15", None, None, 15, False),
        (1, "30", "20", None, None, 30, True),
        (2, "x", None, None, "1000", 21, False),
        (2, "x", "z", None, "1000", 31, False),
        (2, "x", "z", "7.5", None, 32, False),
        (2, "w", "z", "7.5", None, 33, False),
        (2, "w", "z", None, "x", 34, True),
        (3, "no more", "30", None, None, 31, True),
        (4, "x", "40", None, None, 23, False),
        (4, "back", "40", None, None, 33, True),
    ]
    assert shown(capsys, "select id from kept order by id") == [{"id": 1}, {"id": 2}]
    assert shown(capsys, "select id, _seq.generation as load from loaded order by id") == [
        {"id": 1, "load": 1},
        {"id": 3, "load": 1},
    ]
    assert shown(capsys, "select id, is_current, _seq.generation as load from loaded_history order by id, load") == [
        {"id": 1, "is_current": False, "load": 0},
        {"id": 1, "is_current": True, "load": 1},
        {"id": 2, "is_current": False, "load": 0},
        {"id": 3, "is_current": True, "load": 1},
    ]
    assert shown(capsys, "select _id, value, other from documents") == [{"_id": "1", "value": None, "other": "z"}]
    # A mirror of other columns must be made of all changes, and these are not there any more.
    (folder / "models/mirrors.yml").write_text(BY_HAND.replace("left_out: [new]", "left_out: []"))
    ran = runner("run", "-s", "seen")
    assert ran.code == 1 and "maintain --keep-days has removed old ones: --full-refresh -s seen makes it" in ran.err
    ran = runner("test", "-s", "mirrored_seen_history")
    assert ran.code == 0 and "the mirror cannot be made again of what is left" in ran.err
    assert [row["id"] for row in shown(capsys, "select id from seen order by id")] == [1, 2, 3, 4]
    assert runner("run", "-s", "seen", "--full-refresh").code == 0
    assert [row["id"] for row in shown(capsys, "select id from seen order by id")] == [1, 2, 3, 4]


def test_what_becomes_of_added_columns(project, runner, capsys) -> None:
    """A mirror that no longer adds columns, or is not to have one, is built again."""
    mirror = "mirrors:\n  - {name: m, of: {source: shop, table: t}, key: [id], on_drift: add, columns: {id: int}}\n"
    new = {"id": "1", "x": "a", "X": "b", "_seq": "c", "Y": "d"}
    folder = project(
        {
            "project.yml": PROJECT.format(storage="delta"),
            "formats/everything.yml": lives.FORMAT,
            "models/m.yml": mirror,
            "in/1.jsonl": told("I", 1, new=new),
        }
    )
    ran = runner("run", "-s", "shop_to_changelog m")
    assert ran.code == 0, ran.err
    assert 'added as text: "X", "Y"; give them a type' in ran.err
    assert 'not added, since a mirror has columns of these names itself: "_seq"' in ran.err
    assert shown(capsys, "select id, X, Y, _seq.position[0] as n from m") == [{"id": 1, "X": "b", "Y": "d", "n": 1}]
    (folder / "models/m.yml").write_text(mirror.replace("on_drift: add", "on_drift: add, left_out: [y]"))
    (folder / "in/2.jsonl").write_text(told("U", 2, new={**new, "X": "e"}))
    assert runner("run", "-s", "shop_to_changelog m").code == 0
    assert shown(capsys, "select * except (_changed_at, _seq, _source, _in_parts, _unfit) from m") == [
        {"id": 1, "X": "e"}
    ]


GOOD = {
    "id": "1",
    "a": "x",
    "n": "12.50",
    "at": "2024-05-01T10:00:00.5Z",
    "local": "2024-05-01 10:00:00",
    "day": "2024-05-01",
    "flag": "true",
    "bytes": "/wA=",
    "x": "1.5",
}
MISFITS = {
    "n": "12.505",
    "at": "2024-05-01 10:00:00",
    "local": "2024-05-01T10:00:00Z",
    "day": "2024-02-30",
    "flag": "perhaps",
    "bytes": "?",
    "x": "1e400",
}
MESSAGES = [
    told("I", 1, new={"id": "9", "a": "gone"}),
    told("T", 2),
    told("I", 3, new=GOOD),
    told("I", 4, new={"id": "2", "a": None, **MISFITS, "unwanted": "u", "new": "1"}),
    told("U", 5, new={"id": "2", "a2": "renamed", **MISFITS}),
    told("I", 6, new={"id": "no number", "a": "y"}),
    told("D", 7, old={"a": "y"}, key=None),
    told("I", 8, new={"ID": "3", "a.3": "z"}, key=["ID"]),
    *(told("I", n, "k", new={"a": "x", "b": None}, key=None) for n in (10, 11)),
    told("U", 12, "k", {"a": "x", "b": None}, {"a": "y", "b": "1"}, key=None),
    told("I", 13, "k", new={"a": "z", "b": "2"}, key=None),
    told("D", 14, "k", {"a": "z", "b": "2"}, key=None),
    told(
        "I",
        20,
        "names",
        new={"i.d": "1", "it's `q`": "a", "列": "b", "told": "c", "place": "5", "row": "d"},
        key=["i.d"],
    ),
    told("U", 21, "names", {"i.d": "1"}, {"i.d": "1", "列": "e"}, key=["i.d"]),
]
OF_LATER = [
    told("S", 1, new={"id": "1", "a": "from the new tool"}, at=lives.FIRST_MOMENT),
    told("D", 2, old={"id": "3", "a": None}, at=lives.FIRST_MOMENT + 1),
]
LATER = "  - {{name: later, format: everything, files: later/*}}\n"


@pytest.mark.parametrize("storage", PARQUET_FIRST)
def test_settings_and_values(project, runner, capsys, storage: str) -> None:
    folder = project(
        {
            "project.yml": (PROJECT + LATER).format(storage=storage),
            "formats/everything.yml": lives.FORMAT,
            "models/mirrors.yml": SETTINGS,
            "in/1.jsonl": "\n".join(MESSAGES),
            "later/1.jsonl": "\n".join(OF_LATER).replace('"table": "t"', '"table": "t", "db": "orders"'),
        }
    )
    (folder / "formats/everything.yml").write_text(lives.FORMAT + "db_name: db\n")
    ran = runner("build", "--exclude", "conserved_*")
    assert ran.code == 1
    said = json.loads((folder / "target/run_results.json").read_text())["results"]
    by_name = {one["unique_id"].split(".")[-1]: one for one in said}
    unknown = "the table has columns that the mirror does not have: "
    assert by_name["plain"]["message"].splitlines() == [
        f'{unknown}"a.3", "a2", "new": give them a type under columns, or name them under left_out',
        "2 changes tell no key of its type (id), and the mirror is without them",
    ]
    assert by_name["refused"]["message"] == (
        f'on_drift is fail, and {unknown}"a", "a.3", "a2", "at", "bytes", "day", "flag", "local", "n", "new", '
        '"unwanted", "x"'
    )
    # Of two changes the key does not fit, so that the mirror has no row of theirs.
    assert by_name["fits_plain"]["failures"] == len(MISFITS) + 2
    assert {name: one["status"] for name, one in by_name.items() if one["status"] in ("fail", "error")} == {
        **dict.fromkeys(("fits_plain", "fits_added", "fits_kept", "fits_moved"), "fail"),
        "refused": "error",
    }
    keys = by_name["fits_moved"]["message"].splitlines()
    assert {"unfit_column: id, unfit_value: no number", "unfit_column: id"} <= set(keys)
    first = {**GOOD, "id": 1, "n": "12.50", "local": "2024-05-01T10:00:00", "flag": True, "bytes": "ff00", "x": 1.5}
    nothing = dict.fromkeys(GOOD)
    assert shown(capsys, "select * except (_changed_at, _seq, _source, _in_parts) from plain order by id") == [
        {**first, "_unfit": None},
        {**nothing, "id": 2, "_unfit": MISFITS},
        {**nothing, "id": 3, "_unfit": None},
    ]
    assert shown(capsys, "select id, A as a from kept order by id") == [
        {"id": 1, "a": "x"},
        {"id": 2, "a": "renamed"},
        {"id": 3, "a": "z"},
        {"id": 9, "a": "gone"},
    ]
    assert shown(capsys, "select id, a2, day, unwanted from added_history order by id, valid_from") == [
        {"id": 2, "a2": None, "day": "2024-02-30", "unwanted": "u"},
        {"id": 2, "a2": "renamed", "day": "2024-02-30", "unwanted": None},
        {"id": 3, "a2": None, "day": None, "unwanted": None},
        {"id": 9, "a2": None, "day": None, "unwanted": None},
    ]
    assert shown(capsys, "select a, b from rows order by a") == [{"a": "y", "b": "1"}]
    assert shown(capsys, "select a, b from log order by a, b") == [
        {"a": "x", "b": None},
        {"a": "x", "b": None},
        {"a": "y", "b": "1"},
        {"a": "z", "b": "2"},
    ]
    assert shown(capsys, "select id, a, _source from moved order by id") == [
        {"id": 1, "a": "from the new tool", "_source": "later"},
        {"id": 2, "a": None, "_source": "shop"},
    ]
    assert shown(capsys, "select * except (_changed_at, _seq, _source, _in_parts, _unfit) from odd") == [
        {"i.d": 1, "it's `q`": None, "列": "e", "told": None, "place": None, "row": None}
    ]
    assert shown(capsys, "select count(*) as n, count_if(is_current) as current from odd_history") == [
        {"n": 2, "current": 1}
    ]


# --- the page, on the sample that `init` creates

PAGE = pages.ROOT / "docs/mirrors.md"
THREE_VENDORS = pages.section(PAGE, "One table through three vendors")


def test_one_table_through_three_vendors(tmp_path: Path, monkeypatch, runner) -> None:
    monkeypatch.chdir(tmp_path)
    pages.write_files(THREE_VENDORS, tmp_path)
    build, show = pages.commands(THREE_VENDORS)
    ran = runner(*build)
    assert ran.code == 0, ran.err
    assert "PASS test same_orders [" in ran.err
    assert runner(*show).out == THREE_VENDORS[-1].text
    # What only one of them tells is noticed.
    more = (tmp_path / "canal/1.jsonl").read_text().splitlines()[0].replace("1001", "1003")
    (tmp_path / "canal/2.jsonl").write_text(more)
    ran = runner("build", "-s", "canal_to_changelog+")
    assert ran.code == 1 and "FAIL test same_orders [" in ran.err and "id: 1003, " in ran.err, ran.err


def test_the_page(tmp_path: Path, monkeypatch, runner) -> None:
    monkeypatch.chdir(tmp_path)
    assert runner("init", "demo").code == 0
    monkeypatch.chdir(tmp_path / "demo")
    page = [block for block in pages.blocks(PAGE) if block not in THREE_VENDORS]
    out, suggested = "", Path("models/mirrors/orders.yml")
    for block in page:
        if block.kind == "yaml":
            assert suggested.read_text().replace("history: false", "history: true") == block.text
            suggested.write_text(block.text)
            assert runner("build", "-s", "orders orders_history").code == 0
        elif block.kind == "text":
            assert out.strip() == block.text.strip()
        for words in pages.commands([block]):
            ran = runner(*words)
            assert ran.code == 0, ran.err
            out = ran.out
    ran = runner("mirrors", "suggest", "--source", "shop", "--table", "orders")
    assert ran.out == "models/mirrors/orders.yml: as the data is\n"
    suggested.write_text(
        suggested.read_text()
        .replace("      note: string  # varchar(200)\n", "")
        .replace("decimal(10,2)", "decimal(4,2)")
        .replace("paid_at: timestamp ", "paid_at: string ")
    )
    assert runner("mirrors", "suggest", "--table", "orders").out.splitlines() == [
        "models/mirrors/orders.yml: the data has",
        '  - amount: "decimal(4,2)"',
        '  + amount: "decimal(10,2)"  # decimal(10,2)',
        "  + note: string  # varchar(200)",
    ]
    assert "error[mirror-nothing]" in runner("mirrors", "suggest", "--table", "ordrs").err
    Path("models/mirrors/customers.yml").write_text("mirrors: []\n")
    assert "error[mirror-exists]" in runner("mirrors", "suggest", "--table", "customers").err
