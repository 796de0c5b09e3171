"""What the checkpoint's own files say, written here as Spark writes them."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import Mock

import pytest

from runner.compile.library import Library
from runner.compile.nodes import compile_nodes
from runner.engine.checkpoint import REPLACED, Checkpoint
from runner.engine.files import LocalFiles
from runner.engine.offsets import TopicsNow
from runner.engine.recorded import Again, Fingerprint
from runner.files import Damaged
from runner.run.landing import Landing
from runner.run.stale import fingerprint_of
from runner.run.workspace import ProjectArguments, Workspace


def log(folder: Path, name: str, *entries: tuple[str, int]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"path": path, "timestamp": 1, "batchId": batch}) for path, batch in entries]
    (folder / name).write_text("\n".join(["v1", *lines]))


def plan(folder: Path, batch: int, files: int, again: int | None = None) -> None:
    """The plan of a batch: where the stream of files ends, and that of messages that land once more."""
    (folder / "offsets").mkdir(exist_ok=True)
    ends = [json.dumps({"logOffset": files}), "-" if again is None else json.dumps({"logOffset": again})]
    (folder / f"offsets/{batch}").write_text("\n".join(["v1", '{"batchWatermarkMs":0}', *ends]))


def test_files_of_all_committed_batches(tmp_path: Path) -> None:
    """Old commits are gone and old entries compacted; what was planned and not committed does not count."""
    sources, commits = tmp_path / "sources/0", tmp_path / "commits"
    log(sources, "9.compact", ("file:///in/a", 0), ("file:///in/b%20c", 9))
    log(sources, "10", ("file:///in/d", 10))
    log(sources, "11", ("file:///in/e", 11))
    log(sources, ".11.crc")
    commits.mkdir()
    plan(tmp_path, 10, 10)
    for batch in (9, 10):
        (commits / str(batch)).write_text("v1\n{}")
    (commits / ".10.crc").write_text("")
    assert list(Checkpoint(LocalFiles(), str(tmp_path)).committed_files()) == [
        "file:/in/a",
        "file:/in/b%20c",
        "file:/in/d",
    ]


def test_offsets_of_the_newest_commit(tmp_path: Path) -> None:
    """The second line of a plan is of the batch, the third of its only source; without a commit it does not count."""
    checkpoint = Checkpoint(LocalFiles(), str(tmp_path))
    assert (checkpoint.first_offsets(), checkpoint.committed_offsets(), checkpoint.newest_commit) == ({}, {}, -1)
    for folder in ("sources/0", "offsets", "commits"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "sources/0/0").write_text('v1\n{"orders":{"0":5}}')
    for batch, end in ((0, 9), (1, 12), (2, 20)):
        (tmp_path / f"offsets/{batch}").write_text(f'v1\n{{"batchWatermarkMs":0}}\n{{"orders":{{"0":{end},"1":3}}}}')
    for batch in (0, 1):
        (tmp_path / f"commits/{batch}").write_text("v1\n{}")
    assert checkpoint.first_offsets() == {"orders": {"0": 5}}
    assert checkpoint.committed_offsets() == {"orders": {"0": 12, "1": 3}}
    assert (checkpoint.newest_commit, checkpoint.newest_plan) == (1, 2)


@pytest.mark.parametrize(("name", "others"), [("9.compact", 1), ("9", 0)])
def test_a_file_is_left_out_of_a_batch_that_was_begun(tmp_path: Path, name: str, others: int) -> None:
    """Other files of the batch stay, and what a compacted log has of earlier batches; then nothing is left of it."""
    sources, checkpoint = tmp_path / "sources/0", Checkpoint(LocalFiles(), str(tmp_path))
    earlier = [("file:///in/old", 8)][:others]
    log(sources, "8", ("file:///in/old", 8))
    log(sources, name, *earlier, ("file:///in/a%20b", 9), ("file:///in/c", 9))
    (sources / f".{name}.crc").touch()
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits/8").write_text("v1\n{}")
    for number in (8, 9):
        plan(tmp_path, number, number)
    assert checkpoint.begun_files() == {"/in/a b", "/in/c"}
    checkpoint.leave_out({"/in/a b", "/in/old"})
    assert checkpoint.begun_files() == {"/in/c"} and checkpoint.has_unfinished_batch
    assert checkpoint.paths_read() == {"/in/old"}
    assert (sources / name).read_text().startswith("v1\n{") and not (sources / f".{name}.crc").exists()
    checkpoint.leave_out({"/in/c"})
    assert checkpoint.begun_files() == set() and not checkpoint.has_unfinished_batch
    assert [path.name for path in sources.iterdir()] == ["8"] and checkpoint.paths_read() == {"/in/old"}


def test_messages_land_once_more_in_batches_of_their_own(tmp_path: Path) -> None:
    """Such a batch leaves the log of files where it was: numbers of the log and of batches part."""
    checkpoint = Checkpoint(LocalFiles(), str(tmp_path))
    log(tmp_path / "sources/0", "0", ("file:///in/a", 0))
    plan(tmp_path, 0, 0)
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits/0").write_text("v1\n{}")
    checkpoint.expect_again()
    assert (checkpoint.again_waiting(), checkpoint.again()) == ([], Again())
    for name in ("one", "two"):
        (tmp_path / "again" / name).mkdir(parents=True)
    checkpoint.expect_again()
    assert (checkpoint.again_waiting(), checkpoint.again()) == (["one", "two"], Again(frozenset({1})))
    log(tmp_path / "sources/1", "0", (f"file://{tmp_path}/again/one/part-0.parquet", 0))
    plan(tmp_path, 1, 0, 0)
    assert checkpoint.again_waiting() == ["one", "two"] and checkpoint.has_unfinished_batch
    checkpoint.expect_again()
    assert checkpoint.again() == Again(frozenset({1, 2}))
    (tmp_path / "commits/1").write_text("v1\n{}")
    assert checkpoint.again_waiting() == ["two"] and checkpoint.paths_read() == {"/in/a"}
    # The next file is entry 1 of its log, and comes with batch 2.
    log(tmp_path / "sources/0", "1", ("file:///in/b", 1))
    plan(tmp_path, 2, 1, 0)
    assert checkpoint.begun_files() == {"/in/b"} and checkpoint.paths_read() == {"/in/a"}


def test_rows_are_replaced_by_messages_that_land_once_more(tmp_path: Path) -> None:
    """Readers know the tables of such rows after the rows are gone; those of dead letters concern nobody."""
    checkpoint = Checkpoint(LocalFiles(), str(tmp_path))
    plan(tmp_path, 3, 0, 0)
    checkpoint.files.write(f"{checkpoint.again_folder}/one/{REPLACED}", '{"tables": [["shop", "orders"], ["a"]]}')
    checkpoint.expect_again()
    checkpoint.expect_again()
    tables = [["shop", "orders"], ["a"]]
    expected = Again(frozenset(), frozenset({3, 4}), {3: tables, 4: tables})
    assert checkpoint.again() == expected and expected.hides_rows
    found = [expected.replaced_between(*one) for one in ((2, 3), (3, 4), (4, 9))]
    assert found == [tables, tables, []]
    checkpoint.write_removed()
    assert not checkpoint.again().hides_rows and checkpoint.again().replaced == expected.replaced


def test_a_fingerprint_is_read_as_it_was_written(tmp_path: Path) -> None:
    checkpoint = Checkpoint(LocalFiles(), str(tmp_path / "new"))
    assert checkpoint.fingerprints() == []
    fingerprint = Fingerprint.of("canal", "select 1", "[5]")
    checkpoint.write_fingerprints([fingerprint])
    assert checkpoint.fingerprints() == [fingerprint]
    assert fingerprint != Fingerprint.of("canal", "select 2", "[5]")


def test_what_is_lost_between_a_checkpoint_and_a_broker() -> None:
    now = TopicsNow(
        {"a": "1", "b": "9", "c": "3"},
        {"a": {"0": 4, "1": 0, "2": 2}, "b": {"0": 0}, "c": {"0": 0}},
        {"a": {"0": 8, "1": 3, "2": 2}, "b": {"0": 9}, "c": {"0": 1}},
    )
    wanted = {"a": {"0": 3, "1": 5}, "b": {"0": 1}, "c": {"0": 0, "1": 2}, "d": {"0": 1}}
    assert now.lost(wanted, {"a": "1", "b": "2"}, added=True) == [
        "a/0 offset 3",
        "a/1 ends before offset 3, and would be read from 5 on",
        "a/2 offsets 0 to 1",  # a partition that came since
        "b was deleted and created again, with offsets from 0",
        "c/1 no longer exists",
        "d no longer exists",
    ]
    assert now.lost({"a": {"0": 4, "1": 3}}, {}, added=False) == []
    assert now.lost({"a": {"0": 4, "1": 3, "2": 2}}, {}, added=True) == []
    assert now.only(["c"]) == TopicsNow({"c": "3"}, {"c": {"0": 0}}, {"c": {"0": 1}})


def test_reading_goes_on_where_it_began_until_a_batch_is_committed(tmp_path: Path) -> None:
    checkpoint = Checkpoint(LocalFiles(), str(tmp_path))
    (tmp_path / "sources/0").mkdir(parents=True)
    (tmp_path / "sources/0/0").write_text('v1\n{"orders":{"0":5}}')
    assert checkpoint.next_offsets() == {"orders": {"0": 5}}
    for folder in ("offsets", "commits"):
        (tmp_path / folder).mkdir()
    (tmp_path / "offsets/0").write_text('v1\n{"batchWatermarkMs":0}\n{"orders":{"0":9}}')
    assert checkpoint.next_offsets() == {"orders": {"0": 5}}
    (tmp_path / "commits/0").write_text("v1\n{}")
    assert checkpoint.next_offsets() == {"orders": {"0": 9}}


def test_ids_of_topics_are_read_as_they_were_written(tmp_path: Path) -> None:
    checkpoint = Checkpoint(LocalFiles(), str(tmp_path / "new"))
    assert checkpoint.topic_ids() == {}
    checkpoint.write_topic_ids({"b": "2", "a": "1"})
    assert checkpoint.topic_ids() == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        ("", ""),
        ("sources/0/10", '/sources/0/10" is damaged (missing)'),
        ("sources/0/11", '/sources/0/11" is damaged (missing)'),
        ("sources/0/12", ""),  # no batch was started with it
        ("sources/0/9.compact", '/sources/0/0" is damaged (missing)'),
        ("sources/0", '/sources/0" is damaged (missing)'),
        ("offsets/4", '/offsets/4" is damaged (missing)'),
        ("offsets/5", ""),
        ("commits/4", ""),
    ],
)
def test_a_file_that_is_gone_is_named(tmp_path: Path, gone: str, said: str) -> None:
    """Of a log of files with a compacted entry. The numbers of batches are others: a batch may have no files."""
    for number in ("8", "9.compact", "10", "11", "12"):
        log(tmp_path / "sources/0", number)
    for folder in ("offsets", "commits"):
        (tmp_path / folder).mkdir()
    for batch, last in ((3, 10), (4, 10), (5, 11)):
        (tmp_path / f"offsets/{batch}").write_text(f'v1\n{{"batchWatermarkMs":0}}\n{{"logOffset":{last}}}')
    for batch in (3, 4):
        (tmp_path / f"commits/{batch}").write_text("v1\n{}")
    (tmp_path / "metadata").write_text("{}")
    if gone:
        path = tmp_path / gone
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(Damaged, match=re.escape(said)) if said else nullcontext():
        Checkpoint(LocalFiles(), str(tmp_path)).check()


def test_offsets_of_topics_need_no_log_of_files(tmp_path: Path) -> None:
    for folder in ("sources/0", "offsets", "commits"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "metadata").write_text("{}")
    (tmp_path / "sources/0/0").write_text('v1\n{"logOffset":{"0":5}}')
    (tmp_path / "offsets/7").write_text('v1\n{"batchWatermarkMs":0}\n{"logOffset":{"0":9}}')
    Checkpoint(LocalFiles(), str(tmp_path)).check()


# --- what a run says of a source that has changed

SHOP = "{name: shop, format: own, files: in/*%s}"
OWN = "about: Ours\nextends: canal\n"
AGAIN = "since rows landed: runner run --full-refresh -s shop_to_changelog lands all rows again"
NEW_LOAD = "source shop: generation changed: what lands from now on is of another load"


@pytest.mark.parametrize(
    ("source", "spec", "notes"),
    [
        pytest.param("", OWN, ([], []), id="nothing"),
        pytest.param(", description: ours", OWN, ([], []), id="the description"),
        pytest.param(", generation: 1", OWN, ([NEW_LOAD], []), id="the generation"),
        pytest.param(", zone: Asia/Tokyo", OWN, 2 * ([f"source shop: zone changed {AGAIN}"],), id="the zone"),
        pytest.param(
            ", zone: Asia/Tokyo, generation: 2, tables: [{name: t, key: [a]}]",
            OWN,
            2 * ([f"source shop: tables, zone changed {AGAIN}"],),
            id="all",
        ),
        pytest.param(
            "",
            f"{OWN}meta: {{gtid: es}}\n",
            2 * ([f'the compiled SQL of the format "own" has changed {AGAIN}'],),
            id="the format",
        ),
    ],
)
def test_what_has_changed_of_a_source(project, source: str, spec: str, notes: tuple[list[str], list[str]]) -> None:
    """Said by the first run after the change, and by the second, if what has landed is to land again."""
    folder = project({"project.yml": f"sources: [{SHOP % ''}]", "formats/own.yml": OWN})
    assert said_of_shop(folder) == []
    project({"project.yml": f"sources: [{SHOP % source}]", "formats/own.yml": spec})
    assert (said_of_shop(folder), said_of_shop(folder)) == notes


def said_of_shop(folder: Path) -> list[str]:
    """The notes on how the source `shop` has changed, when it has landed before."""
    workspace = Workspace(ProjectArguments())
    node = workspace.graph.nodes["shop_to_changelog"]
    library = Library(workspace.templates.renderer)
    compiled = compile_nodes([node], workspace.templates, workspace.formats, library)
    checkpoint = Checkpoint(LocalFiles(), str(folder / "checkpoint"))
    checkpoint.files.write(f"{checkpoint.folder}/metadata", "{}")
    assert node.model and node.model.source
    now = fingerprint_of(node.model.source, compiled.nodes[node.name].meaning, None)
    run = Mock(compiled=compiled, tables=Mock(checkpoint=lambda _: checkpoint), fingerprint_of=lambda _: now)
    return list(Landing(run)._notes(node.model.source))
