"""Landing messages: once each, in order, whatever happens between runs. Everything through the command line."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from tests.conftest import Ran
from tests.landed import Project, files_of
from tests.spark_fixtures import batches_in_files

pytestmark = pytest.mark.usefixtures("interpreted", "lean")
OWN = (Path(__file__).parent / "formats/lean.yml").read_text()
VIEWS = ("changelog", "ddl_events", "control_events", "dead_letters", "freshness", "freshness_by_table")


def message(number: int, **other: object) -> str:
    change = {
        "data": [{"id": str(number)}],
        "database": "d",
        "table": "t",
        "type": "INSERT",
        "es": 1700000000000 + number,
        "pkNames": ["id"],
        "mysqlType": {"id": "int"},
    }
    return json.dumps({**change, **other})


def messages(numbers: range) -> str:
    return "\n".join(map(message, numbers))


# Files of the source `lines`, in many blocks -> the first of their 2,000 numbers.
LONG = {"a.jsonl": 0, "b.jsonl": 10_000, "c.jsonl.gz": 20_000}
FIRST = {
    "in/1.jsonl": messages(range(3)) + "\n\n  \t\n",
    "in/bad.jsonl": b'{"type":\n' + message(3, type="MERGE").encode() + b"\n\xff\n" + message(4).encode(),
    "in/wide.jsonl": message(0, data=[{"id": str(n)} for n in range(100, 150)]),
    **{
        f"lines/{name}": gzip.compress(text) if name.endswith("gz") else text
        for name, start in LONG.items()
        for text in [messages(range(start, start + 2_000)).encode()]
    },
}


def write_dump(folder: Path) -> None:
    """A table of raw messages."""
    table = {
        "key": pyarrow.array([b"k1", b"\xff", None, b"k4", None], pyarrow.binary()),
        "value": pyarrow.array([message(1).encode(), None, b"", message(2).encode(), b"\xfe"], pyarrow.binary()),
        "topic": ["orders"] * 5,
        "partition": pyarrow.array([0, 0, 0, 1, 1], pyarrow.int32()),
        "offset": pyarrow.array([7, 8, 9, 3, 4], pyarrow.int64()),
        "timestamp": pyarrow.array([1_700_000_000_000_000] * 5, pyarrow.timestamp("us", "UTC")),
    }
    folder.mkdir()
    pyarrow.parquet.write_table(pyarrow.table(table), folder / "1.parquet")


def write_half_a_plan(file: Path, checkpoint: Path) -> None:
    """What a run leaves that was killed while it wrote its first plan."""
    entry = {"path": file.as_uri(), "timestamp": file.stat().st_mtime_ns // 1_000_000, "batchId": 0}
    left = {
        "metadata": json.dumps({"id": str(uuid.uuid4())}),
        "sources/0/0": "v1\n" + json.dumps(entry),
        "offsets/.0.95f2cd35-6a4c-4e6b-8b3c-2f5a4bb8bd1b.tmp": "v1\n",
        "offsets/..0.95f2cd35-6a4c-4e6b-8b3c-2f5a4bb8bd1b.tmp.crc": "",
    }
    Project(checkpoint, left)


@pytest.fixture(scope="module")
def before() -> dict[str, Ran]:
    """What commands said before anything had landed."""
    return {}


@pytest.fixture(scope="module")
def landed(spark: object, tmp_path_factory: pytest.TempPathFactory, before: dict[str, Ran]) -> Project:
    project = Project(tmp_path_factory.mktemp("streams") / "project", {**files_of("streams"), "formats/own.yml": OWN})
    write_dump(project / "dump")
    for view in ("changelog", "app_to_changelog"):
        before[view] = project.run("show", "-s", view, "--output", "json")
    counts = " union all ".join(f"select 1 from {{{{ ref('{view}') }}}}" for view in VIEWS)
    before["all views"] = project.run("show", "--inline", counts, "--output", "json")
    before["no file"] = project.run("run", "-s", "app_to_changelog")
    project.write({**FIRST, "cut/1.jsonl": messages(range(3))})
    write_half_a_plan(project / "cut/1.jsonl", project / "warehouse/_checkpoints/cut_to_changelog")
    project.ok("build")
    return project


@pytest.fixture
def changed(landed: Project) -> Iterator[Project]:
    """The project, which is put back when the test is over."""
    with landed.put_back():
        yield landed


def ids(project: Project, source: str) -> list[str]:
    """In the order of messages and rows."""
    sql = f"select after['id'] as id from {source}_to_changelog where op is not null order by seq.arrival, seq.row"
    return [row["id"] for row in project.rows(sql)]


# --- what one run lands


def test_views_exist_before_anything_has_landed(landed: Project, before: dict[str, Ran]) -> None:
    for what in ("changelog", "app_to_changelog", "all views"):
        assert (before[what].code, before[what].out) == (0, ""), before[what].err
    assert before["no file"].code == 0 and "no file matches" in before["no file"].err


def test_a_bad_message_is_a_dead_letter_and_the_job_goes_on(landed: Project) -> None:
    dead = landed.rows("select reason, detail, raw from dead_letters where source = 'app' order by seq.arrival")
    assert [row["reason"] for row in dead] == ["not-json", "unknown-op", "not-utf8"]
    assert dead[0]["raw"] == '{"type":' and dead[1]["detail"] == 'type: "MERGE"' and dead[2]["raw"] == "/w=="
    sql = "select after['id'] as id from changelog where origin.file like '%/bad.jsonl'"
    assert landed.rows(sql) == [{"id": "4"}]


def test_order_within_a_file_is_kept(landed: Project) -> None:
    """Three files, read in many blocks by two tasks at once: rows by `seq` are the lines in their order."""
    found = landed.rows(
        "select origin.file as file, origin.block as block, after['id'] as id from lines_to_changelog order by seq"
    )
    assert len({(row["file"], row["block"]) for row in found}) > 5
    for name, start in LONG.items():
        assert [int(row["id"]) for row in found if row["file"].endswith(name)] == list(range(start, start + 2_000))


def test_rows_of_one_message_are_in_order(landed: Project) -> None:
    wide = "from changelog where origin.file like '%/wide.jsonl' order by seq"
    found = landed.rows(f"select seq.row as number, after['id'] as id {wide}")
    assert [(row["number"], row["id"]) for row in found] == [(n, str(100 + n)) for n in range(50)]


def test_a_table_of_raw_messages(landed: Project) -> None:
    found = landed.rows(
        "select kind, op, reason, origin, seq.arrival as arrival from raw_to_changelog order by origin.partition, "
        "origin.offset"
    )
    assert [(r["kind"], r["op"], r["reason"]) for r in found] == [
        ("row", "insert", None),
        ("control", "tombstone", None),
        ("dead_letter", None, "empty"),
        ("row", "insert", None),
        ("dead_letter", None, "not-utf8"),
    ]
    assert [r["arrival"] for r in found] == [[7], [8], [9], [3], [4]]
    first = found[0]["origin"]
    assert [first[name] for name in ("topic", "partition", "offset", "timestamp", "key")] == [
        *("orders", 0, 7, "2023-11-14T22:13:20Z", "k1")
    ]
    assert found[1]["origin"]["key"] == "/w=="


def test_a_run_goes_on_after_one_that_was_killed_while_it_wrote_its_first_plan(landed: Project) -> None:
    """Spark starts no first batch where a plan is half written, though that is what a kill may leave."""
    assert ids(landed, "cut") == ["0", "1", "2"]
    assert not list((landed / "warehouse/_checkpoints/cut_to_changelog").glob("offsets/.*.tmp*"))


# --- what further runs land


def test_new_files_are_landed_and_old_ones_not_again(changed: Project) -> None:
    """Also lines that end with CR and LF, and one with a CR in it. Rows have the number of the batch that landed them;
    it is known before the stream starts, but for names that need a batch of their own. Spark by itself leaves out files
    that are a week older than the newest one that it has seen.
    """
    first = ids(changed, "app")
    changed.write(
        {
            "in/2.jsonl.gz": gzip.compress(f"{message(5)}\r\n{message(6).replace(' ', chr(13))}".encode()),
            "in/old.jsonl": message(7),
        }
    )
    os.utime(changed / "in/old.jsonl", (1_000_000_000, 1_000_000_000))
    changed.ok("run", "-s", "app_to_changelog")
    changed.write({f"in/{name}": message(8) for name in ("[3].jsonl", "[4].jsonl", "5.jsonl")})
    changed.ok("build", "-s", "app_to_changelog")
    assert sorted(ids(changed, "app")) == sorted([*first, "5", "6", "7", "8", "8", "8"])
    assert batches_in_files(changed / "warehouse/app_to_changelog") == {number: [number] for number in range(5)}
    later = "app_to_changelog where op is not null and batch > 0"
    assert changed.rows(f"select count(distinct run_id) as runs from {later}") == [{"runs": 2}]
    packed = changed.rows(f"select after['id'] as id from {later} and origin.file like '%in/2.jsonl.gz' order by seq")
    assert packed == [{"id": "5"}, {"id": "6"}]


def test_a_changed_format_is_said_and_a_lost_checkpoint_refused(changed: Project) -> None:
    """Without the refusal, the sink would take the first new batches for ones that it has, and drop them."""
    only = ("-s", "cut_to_changelog")
    changed.write({"formats/own.yml": f"{OWN}meta: {{message_id: id}}\n", "cut/2.jsonl": message(3)})
    assert "has changed since rows landed" in changed.ok("run", *only)
    shutil.rmtree(changed / "warehouse/_checkpoints/cut_to_changelog")
    refused = changed.run("run", *only)
    assert refused.code == 1 and "--full-refresh" in refused.err
    # That starts over.
    changed.ok("build", "--full-refresh", *only)
    assert ids(changed, "cut") == ["0", "1", "2", "3"]


# --- conserved: the promise that nothing is dropped


def test_conserved_finds_what_did_not_land_and_what_landed_twice(changed: Project) -> None:
    # Lines behind what was read are never read again.
    changed.write({"in/1.jsonl": messages(range(5)), "cut/1.jsonl": message(0) + "\n"})
    ran = changed.run("test", "-s", "conserved_app", "conserved_cut", "conserved_raw")
    assert ran.code == 1 and changed.statuses == {
        "conserved_app": "fail", "conserved_cut": "fail", "conserved_raw": "pass",
    }  # fmt: skip
    assert "messages_read: 5, messages_landed: 3" in ran.err
    assert "messages_read: 1, messages_landed: 3" in ran.err


def test_conserved_says_what_it_cannot_know(changed: Project) -> None:
    changed.write({"cut/2 %ü.jsonl": message(3)})
    changed.ok("build", "-s", "cut_to_changelog")
    assert changed.statuses["conserved_cut"] == "pass"
    (changed / "cut/2 %ü.jsonl").unlink()
    said = changed.ok("test", "-s", "conserved_cut")
    assert "WARN" in said and "1 of 2 files that were read are gone" in said


# --- models and tests

SAID = (
    "FAIL test not_null_numbers_id",
    "FAIL test unique_numbers_id",
    "id: 1, n_records: 2",
    "FAIL test accepted_values_numbers_id",
    "id: 3, n_records: 1",
    "WARN test relationships_numbers_parent",
    "parent: 7, n_records: 1",
    "FAIL test expression_is_true_numbers",
    "FAIL unit test wrong_on_purpose",
    '- missing: {"id": "6", "parent": null}',
    '+ not expected: {"id": "5", "parent": null}',
    "PASS test conserved_cut",
)


def test_failed_models_and_tests(changed: Project) -> None:
    """A failed model skips what reads it, and the rest goes on; tests fail on what they should."""
    changed.write(files_of("failing"))
    ran = changed.run("run", "-s", "broken+", "beside", "numbers")
    assert ran.code == 1
    assert "no_such_column" in ran.err and "broken.sql:3:3" in ran.err and 'because "broken" failed' in ran.err
    assert changed.statuses == {
        "broken": "error", "behind": "skipped", "beside": "success", "numbers": "success",
    }  # fmt: skip
    assert changed.rows("select n from beside") == [{"n": 3}]
    ran = changed.run("test", "-s", "numbers", "tested", "conserved_cut")
    assert ran.code == 1
    assert [line for line in SAID if line not in ran.err] == [], ran.err
    ran = changed.run("test", "--unit")
    assert ran.code == 1 and set(changed.statuses) == {"wrong_on_purpose"}


# --- broken off


def test_a_run_that_a_person_breaks_off_says_what_was_cut_and_the_next_one_goes_on(
    spark: object, tmp_path: Path
) -> None:
    sources = ", ".join(f"{{name: {name}, format: lean, files: {name}/*}}" for name in ("one", "other"))
    counted = "select count(*) as n, count(distinct source, after['id']) as ids from {{ ref('changelog') }}\n"
    files = {f"{name}/1.jsonl": messages(range(5_000)) for name in ("one", "other")}
    files["models/counted.sql"] = f"{{{{ config(materialized='table') }}}} {counted}"
    project = Project(tmp_path, {"project.yml": f"sources: [{sources}]", **files})
    checkpoints = project / "warehouse/_checkpoints"

    def interrupt() -> None:
        deadline = time.monotonic() + 100
        while not list(checkpoints.glob("*/offsets/0")) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(interrupt)
        ran = project.run("run", "--threads", "2")
    assert ran.code == 130, ran.err
    assert ran.err.count("ERROR streaming model") == 2 and ran.err.splitlines()[-1] == "interrupted", ran.err
    said: dict[str, Any] = {name: (one["status"], one["message"]) for name, one in project.results.items()}
    assert said["one_to_changelog"] == said["other_to_changelog"] == ("error", "interrupted")
    assert said["counted"] == ("skipped", "because the run was interrupted")
    project.ok("build", "-q")
    assert project.rows("select * from counted") == [{"n": 10_000, "ids": 10_000}]
