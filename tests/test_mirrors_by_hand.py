"""Mirrors of changes that are told by hand: settings, values, names, what runs take in; and the page on mirrors.
tests/mirrors has the mirrors, and the messages that each run reads.
"""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
import yaml

from runner.engine.checkpoint import Checkpoint
from runner.engine.files import LocalFiles
from tests import lives, pages
from tests.landed import Project

pytestmark = pytest.mark.usefixtures("spark", "interpreted")
BY_HAND = Path(__file__).parent / "mirrors"
EXCEPT_OWN = "select * except (_changed_at, _seq, _source, _in_parts, _untold, _unfit) from {}"


def told_by_hand(folder: Path, what: str, storage: str, sources: str = "", more: str = "") -> Project:
    settings = {
        "project.yml": lives.PROJECT.format(storage=storage) + sources,
        "formats/everything.yml": lives.FORMAT + more,
    }
    return Project(folder, {**settings, "models/mirrors.yml": (BY_HAND / what / "models/mirrors.yml").read_bytes()})


def check(project: Project, what: str) -> None:
    for query, expected in yaml.safe_load((BY_HAND / what / "expected.yml").read_text()).items():
        assert [list(row.values()) for row in project.rows(query)] == expected, query


@pytest.mark.engines
def test_what_runs_take_in(tmp_path: Path) -> None:
    """A row that `where` leaves out, a late image of all columns, which does not count beside a newer one, a late part,
    which does, a row that comes back, a table that is emptied and one that is loaded anew, in four runs. Before the
    last one old changes are removed, as it is recorded: what comes then must not look for them.
    """
    loads = "  - {name: loads, format: everything, files: loads/*}\n"
    documents = "  - {name: documents, format: drs_mongodb, files: documents/*}\n"
    project = told_by_hand(tmp_path, "runs", "delta", loads + documents)
    checkpoint = Checkpoint(LocalFiles(), f"{tmp_path}/lake/delta/_checkpoints/shop_to_changelog")
    for run in range(4):
        if run == 1:
            again = loads.replace("files: loads/*", "files: loads/*, generation: 1")
            project.write({"project.yml": lives.PROJECT.format(storage="delta") + again + documents})
        if run == 3:
            said = project.ok("maintain", "-s", "shop_to_changelog", "--keep-days", "0")
            assert "no rows landed before" in said
            checkpoint.keep_since(date.today())
        read = (BY_HAND / "runs").glob(f"*/{run}.jsonl")
        project.write({f"{file.parent.name}/{file.name}": file.read_bytes() for file in read})
        project.ok("run", "-s", "config.materialized:streaming seen seen_history kept loaded loaded_history documents")
    check(project, "runs")
    # A mirror of other rows must be made of all changes, and these are not there any more.
    mirrors = (project / "models/mirrors.yml").read_text()
    project.write({"models/mirrors.yml": mirrors.replace("where: a <> 'hidden'", "where: a <> 'hidden' and id < 100")})
    ran = project.run("run", "-s", "seen")
    assert (
        ran.code == 1
        and "maintain --keep-days has removed old ones: runner run --full-refresh -s seen makes it" in ran.err
    )
    assert "the mirror cannot be made again of what is left" in project.ok("test", "-s", "mirrored_seen_history")
    assert project.rows("select id from seen order by id") == [{"id": id_} for id_ in range(1, 6)]
    project.ok("run", "-s", "seen", "--full-refresh")
    assert project.rows("select id from seen order by id") == [{"id": id_} for id_ in range(1, 6)]


@pytest.mark.engines
def test_what_becomes_of_added_columns(tmp_path: Path) -> None:
    """A mirror that no longer adds columns, or is not to have one, is built again."""
    mirror = "mirrors:\n  - {name: m, of: {source: shop, table: t}, key: [id], on_drift: add, columns: {id: int}}\n"
    files = {"project.yml": lives.PROJECT.format(storage="delta"), "formats/everything.yml": lives.FORMAT}

    def told(op: str, n: int, **new: str) -> str:
        # Of names that differ only in their case the later one counts.
        new = {"id": "1", "x": "a", "X": "b", "_seq": "c", "Y": "d", **new}
        return json.dumps({"op": op, "n": n, "at": lives.FIRST_MOMENT + n, "table": "t", "key": ["id"], "new": new})

    project = Project(tmp_path, {**files, "models/m.yml": mirror, "in/1.jsonl": told("I", 1)})
    said = project.ok("run", "-s", "shop_to_changelog m")
    assert 'added as text: "X", "Y"; give them a type' in said
    assert 'not added, since a mirror has columns of these names itself: "_seq"' in said
    assert project.rows("select id, X, Y from m") == [{"id": 1, "X": "b", "Y": "d"}]
    left_out = mirror.replace("on_drift: add", "on_drift: add, left_out: [y]")
    project.write({"models/m.yml": left_out, "in/2.jsonl": told("U", 2, X="e")})
    project.ok("run", "-s", "shop_to_changelog m")
    assert project.rows(EXCEPT_OWN.format("m")) == [{"id": 1, "X": "e"}]


MISFITS = {
    "n": "12.505",
    "at": "2024-05-01 10:00:00",
    "local": "2024-05-01T10:00:00Z",
    "day": "2024-02-30",
    "flag": "perhaps",
    "bytes": "?",
    "x": "1e400",
}


@pytest.mark.parametrize(
    "storage", ["parquet", *(pytest.param(one, marks=pytest.mark.soak) for one in ("delta", "iceberg"))]
)
def test_settings_and_values(tmp_path: Path, storage: str) -> None:
    later = "  - {name: later, format: everything, files: later/*}\n"
    project = told_by_hand(tmp_path, "settings", storage, later, more="db_name: db\n")
    project.write({f"{name}/1.jsonl": (BY_HAND / f"settings/{name}/1.jsonl").read_bytes() for name in ("in", "later")})
    assert project.run("build", "--exclude", "conserved_*").code == 1
    by_name = project.results
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
    assert {name: status for name, status in project.statuses.items() if status in ("fail", "error")} == {
        **dict.fromkeys(("fits_plain", "fits_added", "fits_kept", "fits_moved"), "fail"),
        "refused": "error",
    }
    keys = by_name["fits_moved"]["message"].splitlines()
    assert {"unfit_column: id, unfit_value: no number", "unfit_column: id"} <= set(keys)
    check(project, "settings")
    (columns,) = project.rows(
        "select * except (_changed_at, _seq, _source, _in_parts, _untold) from plain where id = 2"
    )
    assert columns == {**dict.fromkeys(("id", "a", *MISFITS)), "id": 2, "_unfit": MISFITS}
    assert project.rows("select _unfit from plain where id <> 2") == [{"_unfit": None}] * 2
    (columns,) = project.rows(EXCEPT_OWN.format("odd"))
    assert [*columns] == ["i.d", "it's `q`", "列", "told", "place", "row"]


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
        if block.name == str(suggested):
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
