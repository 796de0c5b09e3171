"""What the checkpoint's own files say, written here as Spark writes them."""

from __future__ import annotations

import json
from pathlib import Path

from runner.checkpoint import committed_files, is_torn


def log(folder: Path, name: str, *entries: tuple[str, int]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"path": path, "timestamp": 1, "batchId": batch}) for path, batch in entries]
    (folder / name).write_text("\n".join(["v1", *lines]))


def test_files_of_all_committed_batches(tmp_path: Path) -> None:
    """Old commits are gone and old entries compacted; what was planned and not committed does not count."""
    sources, commits = tmp_path / "_checkpoint/sources/0", tmp_path / "_checkpoint/commits"
    log(sources, "9.compact", ("file:///in/a", 0), ("file:///in/b%20c", 9))
    log(sources, "10", ("file:///in/d", 10))
    log(sources, "11", ("file:///in/e", 11))
    log(sources, ".11.crc")
    commits.mkdir()
    for batch in (9, 10):
        (commits / str(batch)).write_text("v1\n{}")
    (commits / ".10.crc").write_text("")
    assert committed_files(tmp_path) == ["file:/in/a", "file:/in/b%20c", "file:/in/d"]


def test_one_record_without_the_other(tmp_path: Path) -> None:
    assert not is_torn(tmp_path)
    (tmp_path / "_spark_metadata").mkdir()
    assert is_torn(tmp_path)
    (tmp_path / "_checkpoint/commits").mkdir(parents=True)
    assert not is_torn(tmp_path)
