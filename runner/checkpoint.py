"""What lies in a changelog table's folder beside its rows: the checkpoint's record of files, and the format's fingerprint."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

CHECKPOINT = "_checkpoint"
COMMITTED = "_spark_metadata"
FINGERPRINT = "_format.json"


@dataclass(frozen=True)
class Fingerprint:
    """Of the compiled SQL that landed rows: it changes with the spec, its type tables and the macros."""

    format: str
    sha256: str

    @classmethod
    def of(cls, format_name: str, sql: str) -> Fingerprint:
        return cls(format_name, hashlib.sha256(sql.encode()).hexdigest())


def read_fingerprint(root: Path) -> Fingerprint | None:
    path = root / FINGERPRINT
    return Fingerprint(**json.loads(path.read_text())) if path.is_file() else None


def write_fingerprint(root: Path, fingerprint: Fingerprint) -> None:
    root.mkdir(parents=True, exist_ok=True)
    (root / FINGERPRINT).write_text(json.dumps({"format": fingerprint.format, "sha256": fingerprint.sha256}) + "\n")


def is_torn(root: Path) -> bool:
    """Whether one of the two records is gone that must agree: what is committed to the table, and what was read."""
    return (root / COMMITTED).is_dir() != (root / CHECKPOINT / "commits").is_dir()


def committed_files(root: Path) -> list[str]:
    """The files that committed batches have read, named as rows name them in `origin.file`."""
    log = root / CHECKPOINT / "sources" / "0"
    # Old commits are deleted and old entries moved to a `.compact` file: what counts is the newest commit.
    newest = max((int(path.name) for path in (root / CHECKPOINT / "commits").glob("*") if path.name.isdigit()), default=-1)
    entries = [entry for path in log.glob("*") if not path.name.startswith(".") for entry in _entries(path)]
    return sorted({entry["path"].replace("file:///", "file:/", 1) for entry in entries if entry["batchId"] <= newest})


def _entries(path: Path) -> list[dict]:
    """The lines of one file of the log behind its first, which names a version."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[1:] if line]
