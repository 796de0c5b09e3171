"""Which sources have new messages, as far as this machine sees it without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from runner.engine.checkpoint import Checkpoint
from runner.engine.files import LocalFiles
from runner.files import Damaged, is_uri
from runner.patterns import matching
from runner.project.inputs import Messages, Source, Target

# Files that Spark passes over.
PASSED_OVER, BEING_COPIED = ("_", "."), "._COPYING_"


def landed_until(target: Target, sources: Iterable[Source]) -> dict[str, dict[str, Any]]:
    """Source -> how far its messages have landed: which table, and its newest batch that has some. Nothing for tables
    that this machine does not see, and for those of which it cannot be read.
    """
    found: dict[str, dict[str, Any]] = {}
    for source in () if is_uri(target.path) else sources:
        with suppress(Damaged, OSError):
            found[source.name] = _landed(checkpoint_of(target, source))
    return found


def is_fresher(source: Source, target: Target, recorded: Mapping[str, Any] | None) -> bool:
    """Whether there are messages of a source that a run into this target had not landed: in the table since then, or
    not landed yet. True too where this machine does not see it (in topics, on other file systems), or cannot read what
    has landed.
    """
    pattern = source.messages.local_pattern
    if recorded is None or pattern is None or is_uri(target.path):
        return True
    checkpoint = checkpoint_of(target, source)
    try:
        read = checkpoint.paths_read()
        return _landed(checkpoint) != dict(recorded) or any(str(file) not in read for file in _files(source.messages))
    except (Damaged, OSError):
        return True


def checkpoint_of(target: Target, source: Source) -> Checkpoint:
    """The checkpoint of a source, in a folder of this machine."""
    return Checkpoint(LocalFiles(), f"{target.at('_checkpoints')}/{source.model}")


def _landed(checkpoint: Checkpoint) -> dict[str, Any]:
    return {"table": checkpoint.table(), "batch": checkpoint.newest_landed()}


def _files(messages: Messages) -> Iterator[Path]:
    """The files of a source that Spark reads, and that are not empty."""
    inside = "**/*" if messages.kind.endswith("table") else "*"
    for path in matching(messages.local_pattern or ""):
        for file in path.glob(inside) if path.is_dir() else (path,):
            names = file.relative_to(path).parts or (file.name,)
            is_read = not any(name.startswith(PASSED_OVER) for name in names) and file.suffix != BEING_COPIED
            if is_read and file.is_file() and file.stat().st_size:
                yield file
