"""What is known of a source's files before Spark looks at them: whether a stream would find anything new."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.engine.checkpoint import Checkpoint
from runner.engine.files import LocalFiles
from runner.engine.tables import Tables
from runner.project.inputs import Messages
from runner.run.source_files import SourceFiles, lines_of_message

PROJECT = """
name: p
target: local
targets: {local: {storage: parquet, path: warehouse}}
sources:
  - {name: app, format: canal, zone: UTC, files: "in/*.jsonl"}
"""
MESSAGE = {"type": "INSERT", "database": "d", "table": "t", "data": [{"id": "1"}], "pkNames": ["id"], "isDdl": False}


CHANGES: dict[str, tuple[Callable[[Path], object], bool]] = {
    "as it was": (lambda folder: None, True),
    "a file is new": (lambda folder: (folder / "in/c.jsonl").write_text("{}"), False),
    "an empty file is new": (lambda folder: (folder / "in/c.jsonl").write_text(""), True),
    "a file is gone": (lambda folder: (folder / "in/b 1.jsonl").unlink(), False),
    "a batch was begun": (lambda folder: (folder / "checkpoint/offsets/1").write_text("v1\n{}\n{}"), False),
    "a file's batch was not committed": (lambda folder: (folder / "checkpoint/commits/0").unlink(), False),
    "the name Spark passes over": (lambda folder: (folder / "in/_c.jsonl").write_text("{}"), False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_stream_is_not_needed_where_all_files_were_read(tmp_path: Path, change: str) -> None:
    for name in ("in", "checkpoint/offsets", "checkpoint/commits", "checkpoint/sources/0"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("a", "b 1"):
        (tmp_path / f"in/{name}.jsonl").write_text("{}")
    read = [{"path": f"file://{tmp_path}/in/{name}.jsonl", "timestamp": 1, "batchId": 0} for name in ("a", "b%201")]
    (tmp_path / "checkpoint/sources/0/0").write_text("\n".join(["v1", *map(json.dumps, read)]))
    (tmp_path / "checkpoint/offsets/0").write_text('v1\n{}\n{"logOffset":0}\n-')
    (tmp_path / "checkpoint/commits/0").write_text("v1\n{}")
    apply, expected = CHANGES[change]
    apply(tmp_path)
    checkpoint = Checkpoint(LocalFiles(), str(tmp_path / "checkpoint"))
    assert SourceFiles.found(Messages("files", f"{tmp_path}/in/*.jsonl"), checkpoint).all_read() is expected
    assert not SourceFiles.found(Messages("files", "s3a://in/*.jsonl"), checkpoint).all_read()


@pytest.mark.usefixtures("spark", "interpreted")
def test_a_run_starts_no_stream_where_nothing_is_new(project, runner, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project({"project.yml": PROJECT, "in/1.jsonl": json.dumps(MESSAGE) + "\n"})
    assert "[1 messages: 1 row" in runner("run", "-s", "app_to_changelog").err
    with monkeypatch.context() as without_streams:
        without_streams.setattr(Tables, "start", None)
        ran = runner("run", "-s", "app_to_changelog")
    assert ran.code == 0 and "[no new messages" in ran.err, ran.err
    for name, words, expected in (("2", (), 1), ("3", ("--full-refresh",), 3)):
        (folder / f"in/{name}.jsonl").write_text(json.dumps(MESSAGE) + "\n")
        ran = runner("run", "-s", "app_to_changelog", *words)
        assert ran.code == 0 and f"[{expected} messages: {expected} row" in ran.err, ran.err


VALUE = '{"a": "\u00e9"}'
RECORD = json.dumps({"key": "k", "value": VALUE})
CONSOLE = f"CreateTime:1\tPartition:0\tOffset:7\tNO_HEADERS\tnull\t{VALUE}\n"
# The kind of messages, the name of a file, its content, a message, and where it stands.
IN_LINES: dict[str, tuple[str, str, bytes, bytes, tuple[int, int] | None]] = {
    "blank lines and CR": ("files", "a.jsonl", b'{"b": 1}\n\n{"a": 1}\r\n', b'{"a": 1}', (3, 1)),
    "several times": ("files", "a.jsonl", b"x\ny\nx\nx", b"x", (1, 3)),
    "nowhere": ("files", "a.jsonl", b"x\ny\n", b"z", (0, 0)),
    "a part of a line": ("files", "a.jsonl", b"xx\n", b"x", (0, 0)),
    "no text": ("files", "a.jsonl", b"a\rb\n\xff\n", b"\xff", (2, 1)),
    "packed": ("files", "a.jsonl.gz", gzip.compress(b"x\ny\n"), b"y", (2, 1)),
    "packed and cut off": ("files", "a.jsonl.gz", gzip.compress(b"x\ny\n" * 1000)[:-9], b"y", None),
    "not packed": ("files", "a.jsonl.gz", b"y\n", b"y", None),
    "a record": ("json_files", "a.jsonl", f"{{\n{RECORD}\n".encode(), VALUE.encode(), (2, 1)),
    "no record": ("json_files", "a.jsonl", f"{RECORD}\n{{\n".encode(), b"{", (2, 1)),
    "a record of the console": ("console_files", "a.txt", CONSOLE.encode(), VALUE.encode(), (1, 1)),
    "lines of base64": ("binary_files", "a.base64", b"w6n/\nAAA=\n", b"AAA=", (2, 1)),
    "other Avro": ("binary_files", "a.avro", b"AAA=\n", b"AAA=", None),
    "rows": ("rows_files", "a.csv", b"1,2\n", b"1,2", None),
    "a table": ("table", "a.parquet", b"x", b"x", None),
}


@pytest.mark.parametrize("case", IN_LINES)
def test_the_lines_of_a_message(tmp_path: Path, case: str) -> None:
    kind, name, content, message, expected = IN_LINES[case]
    path = tmp_path / name
    path.write_bytes(content)
    assert lines_of_message(Messages(kind, str(path)), path, message) == expected
