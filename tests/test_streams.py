"""Landing messages: once each, in order, whatever happens between runs. Everything through the command line."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from runner.cli import main
from tests.spark_fixtures import batches_in_files, rows

pytestmark = pytest.mark.usefixtures("interpreted")
PROJECT = """
name: streams
sources:
  - {name: app, format: canal, files: "in/*"}
"""


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


@pytest.fixture
def folder(tmp_path: Path, spark: object, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "project.yml").write_text(PROJECT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


LANDED = (
    "select after['id'] as id, run_id, origin.file as file from {{ ref('app_to_changelog') }} order by "
    "seq.arrival, seq.row"
)


def test_new_files_are_landed_and_old_ones_not_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "in/1.jsonl").write_text("\n".join(message(n) for n in range(3)) + "\n\n  \t\n")
    assert main(["build"]) == 0
    assert main(["run"]) == 0
    (folder / "in/2.jsonl.gz").write_bytes(gzip.compress((message(3) + "\r\n" + message(4)).encode()))
    assert main(["build"]) == 0
    landed = rows(capsys, LANDED)
    assert [row["id"] for row in landed] == ["0", "1", "2", "3", "4"]
    assert len({row["run_id"] for row in landed}) == 2
    assert landed[4]["file"].endswith("in/2.jsonl.gz")


def test_a_full_refresh_starts_over(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "in/1.jsonl").write_text(message(1))
    assert main(["run"]) == 0
    assert main(["run", "--full-refresh"]) == 0
    landed = rows(capsys, LANDED)
    assert [row["id"] for row in landed] == ["1"]


def test_a_bad_message_is_a_dead_letter_and_the_job_goes_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "in/1.jsonl").write_bytes(
        message(1).encode() + b'\n{"type":\n' + message(2, type="MERGE").encode() + b"\n\xff\n" + message(3).encode()
    )
    assert main(["build"]) == 0
    dead = rows(capsys, "select reason, detail, raw from {{ ref('dead_letters') }} order by seq.arrival")
    assert [row["reason"] for row in dead] == ["not-json", "unknown-op", "not-utf8"]
    assert dead[0]["raw"] == '{"type":' and dead[1]["detail"] == 'type: "MERGE"' and dead[2]["raw"] == "/w=="
    assert [
        row["id"] for row in rows(capsys, "select after['id'] as id from {{ ref('changelog') }} order by seq.arrival")
    ] == ["1", "3"]


def test_views_exist_before_anything_has_landed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for view in (
        "changelog",
        "ddl_events",
        "control_events",
        "dead_letters",
        "freshness",
        "freshness_by_table",
        "app_to_changelog",
    ):
        assert main(["show", "-s", view, "--output", "json"]) == 0
        assert capsys.readouterr().out == ""


def test_a_pattern_that_matches_no_file_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "-s", "app_to_changelog"]) == 0
    assert "no file matches" in capsys.readouterr().err


def test_order_within_a_file_is_kept(folder: Path, spark: object, capsys: pytest.CaptureFixture[str]) -> None:
    """Three files, read in many blocks by two tasks at once: rows by `seq` are the lines in their order."""
    for name, start in (("a.jsonl", 0), ("b.jsonl", 10_000), ("c.jsonl.gz", 20_000)):
        text = "".join(message(n) + "\n" for n in range(start, start + 2_000)).encode()
        (folder / "in" / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    (folder / "project.yml").write_text(
        PROJECT + "targets: {local: {spark: {spark.sql.files.maxPartitionBytes: 60000}}}\n"
    )
    assert main(["build"]) == 0
    landed = rows(
        capsys,
        "select origin.file as file, origin.block as block, after['id'] as id from {{ ref('changelog') }} order by seq",
    )
    assert len({(row["file"], row["block"]) for row in landed}) > 5
    for name, start in (("a.jsonl", 0), ("b.jsonl", 10_000), ("c.jsonl.gz", 20_000)):
        assert [int(row["id"]) for row in landed if row["file"].endswith(name)] == list(range(start, start + 2_000))


def test_rows_of_one_message_are_in_order(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "in/1.jsonl").write_text(message(0, data=[{"id": str(n)} for n in range(50)]))
    assert main(["build"]) == 0
    landed = rows(capsys, "select seq.row as number, after['id'] as id from {{ ref('changelog') }} order by seq")
    assert [(row["number"], row["id"]) for row in landed] == [(n, str(n)) for n in range(50)]


# --- conserved: the promise that nothing is dropped


def conserved(capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    code = main(["test", "-s", "conserved_app"])
    return code, capsys.readouterr().err


def test_conserved_finds_what_did_not_land(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "in/1.jsonl").write_text("\n".join(message(n) for n in range(3)))
    assert main(["run"]) == 0
    assert conserved(capsys)[0] == 0
    (folder / "in/1.jsonl").write_text(
        "\n".join(message(n) for n in range(5))
    )  # lines behind what was read: never read again
    code, err = conserved(capsys)
    assert code == 1
    assert "messages_read: 5, messages_landed: 3" in err


def test_conserved_finds_what_landed_twice(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "in/1.jsonl").write_text("\n".join(message(n) for n in range(4)))
    assert main(["run"]) == 0
    (folder / "in/1.jsonl").write_text(message(0) + "\n")
    code, err = conserved(capsys)
    assert code == 1
    assert "messages_read: 1, messages_landed: 4" in err


def test_conserved_says_what_it_cannot_know(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "in/1.jsonl").write_text(message(1))
    (folder / "in/2 %ü.jsonl").write_text(message(2))
    assert main(["run"]) == 0
    assert conserved(capsys)[0] == 0
    (folder / "in/2 %ü.jsonl").unlink()
    code, err = conserved(capsys)
    assert code == 0
    assert "WARN" in err and "1 of 2 files that were read are gone" in err


def test_a_lost_checkpoint_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without this, the sink would take the first new batches for ones that it has, and drop them."""
    (folder / "in/1.jsonl").write_text(message(1))
    assert main(["run"]) == 0
    shutil.rmtree(folder / "warehouse/_checkpoints/app_to_changelog")
    (folder / "in/2.jsonl").write_text(message(2))
    assert main(["run", "-s", "app_to_changelog"]) == 1
    assert "--full-refresh" in capsys.readouterr().err
    assert main(["build", "--full-refresh"]) == 0
    assert [row["id"] for row in rows(capsys, LANDED)] == ["1", "2"]


def test_a_changed_format_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "in/1.jsonl").write_text(message(1))
    assert main(["run"]) == 0
    capsys.readouterr()
    (folder / "formats").mkdir()
    (folder / "formats/canal.yml").write_text("extends: canal\nmeta: {message_id: none}\n")
    assert main(["run"]) == 0
    assert "has changed since rows landed" in capsys.readouterr().err


def test_old_files_are_read_however_old_they_are(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Spark by itself leaves out files that are a week older than the newest one that it has seen."""
    import os

    (folder / "in/new.jsonl").write_text(message(1))
    assert main(["run"]) == 0
    (folder / "in/old.jsonl").write_text(message(2))
    os.utime(folder / "in/old.jsonl", (1_000_000_000, 1_000_000_000))
    assert main(["build"]) == 0
    assert {row["id"] for row in rows(capsys, LANDED)} == {"1", "2"}


# --- a table of raw messages


def test_a_table_of_raw_messages(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = [message(1).encode(), None, b"", message(2).encode(), b"\xfe"]
    table = pyarrow.table(
        {
            "key": pyarrow.array([b"k1", b"\xff", None, b"k4", None], pyarrow.binary()),
            "value": pyarrow.array(values, pyarrow.binary()),
            "topic": ["orders"] * 5,
            "partition": pyarrow.array([0, 0, 0, 1, 1], pyarrow.int32()),
            "offset": pyarrow.array([7, 8, 9, 3, 4], pyarrow.int64()),
            "timestamp": pyarrow.array([1_700_000_000_000_000] * 5, pyarrow.timestamp("us", "UTC")),
        }
    )
    (folder / "dump").mkdir()
    pyarrow.parquet.write_table(table, folder / "dump/1.parquet")
    (folder / "project.yml").write_text("sources: [{name: app, format: canal, table: dump}]\n")
    assert main(["build"]) == 0
    landed = rows(
        capsys,
        "select kind, op, reason, origin, seq.arrival as arrival from {{ ref('app_to_changelog') }} order by "
        "origin.partition, origin.offset",
    )
    assert [(r["kind"], r["op"], r["reason"]) for r in landed] == [
        ("row", "insert", None),
        ("control", "tombstone", None),
        ("dead_letter", None, "empty"),
        ("row", "insert", None),
        ("dead_letter", None, "not-utf8"),
    ]
    assert [r["arrival"] for r in landed] == [[7], [8], [9], [3], [4]]
    first = landed[0]["origin"]
    assert (first["topic"], first["partition"], first["offset"], first["timestamp"], first["key"]) == (
        "orders",
        0,
        7,
        "2023-11-14T22:13:20Z",
        "k1",
    )
    assert landed[1]["origin"]["key"] == "/w=="


# --- models and tests


def test_a_failed_model_skips_what_reads_it_and_the_rest_goes_on(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "models").mkdir()
    (folder / "models/broken.sql").write_text("select\n  key,\n  no_such_column\nfrom {{ ref('changelog') }}\n")
    (folder / "models/behind.sql").write_text("select * from {{ ref('broken') }}\n")
    (folder / "models/beside.sql").write_text(
        "{{ config(materialized='table') }} select count(*) as n from {{ ref('changelog') }}\n"
    )
    (folder / "in/1.jsonl").write_text(message(1))
    assert main(["run"]) == 1
    err = capsys.readouterr().err
    assert "no_such_column" in err and "broken.sql:3:3" in err
    assert 'because "broken" failed' in err
    assert rows(capsys, "select n from {{ ref('beside') }}") == [{"n": 1}]
    results = json.loads((folder / "target/run_results.json").read_text())["results"]
    assert {r["unique_id"].split(".")[-1]: r["status"] for r in results} | {
        "broken": "error",
        "behind": "skipped",
        "beside": "success",
    } == {r["unique_id"].split(".")[-1]: r["status"] for r in results}


PROPERTIES = """
models:
  - name: numbers
    columns:
      - name: id
        data_tests: [not_null, unique, {accepted_values: {values: ["1", "2"]}}]
      - name: parent
        data_tests: [{relationships: {to: ref('numbers'), field: id, severity: warn}}]
    data_tests: [{expression_is_true: {expression: id > 0}}]
unit_tests:
  - name: wrong_on_purpose
    model: numbers
    given: [{input: ref('changelog'), rows: [{after: {id: 5, parent: null}}]}]
    expect: {rows: [{id: 6, parent: null}]}
"""


def test_data_tests_and_unit_tests_fail_on_what_they_should(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "models").mkdir()
    (folder / "models/numbers.sql").write_text(
        "select cast(after['id'] as int) as id, after['parent'] as parent from {{ ref('changelog') }}\n"
    )
    (folder / "models/numbers.yml").write_text(PROPERTIES)
    lines = [
        message(n, data=[{"id": i, "parent": p}])
        for n, (i, p) in enumerate([("1", None), ("1", "1"), (None, "2"), ("3", "7")])
    ]
    (folder / "in/1.jsonl").write_text("\n".join(lines))
    main(["run"])
    capsys.readouterr()
    assert main(["test"]) == 1
    err = capsys.readouterr().err
    for line in (
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
        "PASS test conserved_app",
    ):
        assert line in err, line
    assert main(["test", "--unit"]) == 1
    assert "conserved" not in capsys.readouterr().err


# --- broken off


def test_a_run_that_a_person_breaks_off_says_what_was_cut_and_the_next_one_goes_on(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "project.yml").write_text(PROJECT + '  - {name: other, format: canal, files: "other/*"}\n')
    (folder / "models").mkdir()
    (folder / "models/counted.sql").write_text(
        "{{ config(materialized='table') }} select count(*) as n, count(distinct source, after['id']) as ids "
        "from {{ ref('changelog') }}\n"
    )
    for name in ("in", "other"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "1.jsonl").write_text("\n".join(map(message, range(20_000))))
    checkpoints = folder / "warehouse/_checkpoints"

    def interrupt() -> None:
        deadline = time.monotonic() + 100
        while not list(checkpoints.glob("*/offsets/0")) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(interrupt)
        code = main(["run", "--threads", "2"])
    err = capsys.readouterr().err
    assert code == 130, err
    assert err.count("ERROR streaming model") == 2 and err.splitlines()[-1] == "interrupted", err
    results = {
        r["unique_id"].rpartition(".")[2]: (r["status"], r["message"])
        for r in json.loads((folder / "target/run_results.json").read_text())["results"]
    }
    assert results["app_to_changelog"] == results["other_to_changelog"] == ("error", "interrupted")
    assert results["counted"] == ("skipped", "because the run was interrupted")
    assert main(["build", "-q"]) == 0
    assert rows(capsys, "select * from {{ ref('counted') }}") == [{"n": 40_000, "ids": 40_000}]


def test_a_run_goes_on_after_one_that_was_killed_while_it_wrote_its_first_plan(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark starts no first batch where a plan is half written, though that is what a kill may leave."""
    file = folder / "in/1.jsonl"
    file.write_text("\n".join(message(n) for n in range(3)))
    checkpoint = folder / "warehouse/_checkpoints/app_to_changelog"
    entry = {"path": file.as_uri(), "timestamp": file.stat().st_mtime_ns // 1_000_000, "batchId": 0}
    left = {
        "metadata": json.dumps({"id": str(uuid.uuid4())}),
        "sources/0/0": "v1\n" + json.dumps(entry),
        "offsets/.0.95f2cd35-6a4c-4e6b-8b3c-2f5a4bb8bd1b.tmp": "v1\n",
        "offsets/..0.95f2cd35-6a4c-4e6b-8b3c-2f5a4bb8bd1b.tmp.crc": "",
    }
    for name, text in left.items():
        (checkpoint / name).parent.mkdir(parents=True, exist_ok=True)
        (checkpoint / name).write_text(text)
    assert main(["run", "-q"]) == 0, capsys.readouterr().err
    assert [row["id"] for row in rows(capsys, LANDED)] == ["0", "1", "2"]
    assert not list(checkpoint.glob("offsets/.*.tmp*"))


# --- batches


def test_rows_have_the_number_of_the_batch_that_landed_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The number is known before the stream starts, but for names that need a batch of their own."""
    for names in (["1.jsonl"], ["2.jsonl", "3.jsonl"], ["[4].jsonl", "[5].jsonl", "6.jsonl"], ["7.jsonl"]):
        for name in names:
            (folder / "in" / name).write_text(message(int(name.strip("[]")[0]) * 10))
        assert main(["run", "-q"]) == 0, capsys.readouterr().err
    assert batches_in_files(folder / "warehouse/app_to_changelog") == {number: [number] for number in range(6)}
