"""state: what a project has in its target: tables, how far each has read, what waits, what nobody has any more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from runner.commands.arguments import Call
from runner.commands.clean import orphans_of
from runner.counts import counted
from runner.engine.checkpoint import Checkpoint
from runner.engine.files import LocalFiles
from runner.engine.progress import Progress, Refreshes, checkpoint_of
from runner.errors import RunnerError
from runner.files import Damaged, is_uri
from runner.project.inputs import Source, Target
from runner.project.mirror import BESIDE
from runner.project.nodes import Node
from runner.run.workspace import Workspace

COLUMNS = ("name", "kind", "read", "size", "changed", "note")
UNITS = ("B", "KB", "MB", "GB", "TB")
NEVER = "never built"
Row = dict[str, Any]


def state(call: Call, output: str) -> int:
    """Prints a line for each table of the target; reads no rows and starts no Spark."""
    workspace = Workspace(call.project)
    target = workspace.project.target
    if is_uri(target.path):
        raise RunnerError("state-elsewhere", f'this machine does not see the tables in "{target.path}"')
    rows = list(_rows(workspace, target))
    if output == "json":
        call.report.json_lines(rows)
    else:
        call.report.table(list(COLUMNS), [{**row, "size": _size(row["size"])} for row in rows])
    return 0


def _rows(workspace: Workspace, target: Target) -> Iterator[Row]:
    refreshes = Refreshes(LocalFiles(), target.at("_refreshes"))
    for name in workspace.graph.order():
        node = workspace.graph.nodes[name]
        if not (node.model and node.model.is_table):
            continue
        source = node.model.source
        read, note = _of_source(target, source) if source else _of_model(workspace, target, node)
        if refreshes.unfinished(node.relation):
            note = "a full refresh has begun, and the next run finishes it"
        elif old := _former(target, node):
            note = f'still "{old}": the next run renames it'
        yield _row(target, source.name if source else node.name, node.model.makes, node.relation, read, note)
    for name in orphans_of(workspace):
        yield _row(target, name, "orphan", name, "", "no node has it any more: runner clean --orphans")


def _former(target: Target, node: Node) -> str:
    """Returns the name under which the table of a node still is, as far as this machine sees it; empty if there is
    none.
    """
    names = node.model.renamed_from if node.model else ()
    there = [name for name in names if _is_there(target, name)]
    return there[0] if there and not _is_there(target, node.relation) else ""


def _is_there(target: Target, name: str) -> bool:
    return any(Path(path).exists() for path in (target.at(name), f"{target.at('_checkpoints')}/{name}"))


def _row(target: Target, name: str, kind: str, relation: str, read: str, note: str) -> Row:
    size, changed = 0, 0.0
    for folder in (relation, *(f"{relation}{ending}" for ending in BESIDE.values())):
        for path in Path(target.at(folder)).rglob("*"):
            # A file may go away at any moment.
            with suppress(OSError):
                found = path.stat()
                size += found.st_size if path.is_file() else 0
                changed = max(changed, found.st_mtime)
    when = f"{datetime.fromtimestamp(changed, timezone.utc):%Y-%m-%dT%H:%M:%SZ}" if changed else None
    # A catalog may keep its tables elsewhere.
    found_size = size if changed else None
    return {
        "name": name,
        "kind": kind,
        "table": relation,
        "read": read,
        "size": found_size,
        "changed": when,
        "note": note,
    }


def _of_source(target: Target, source: Source) -> tuple[str, str]:
    """Returns how far a source has read, and what is to be known of it."""
    checkpoint = checkpoint_of(target, source)
    try:
        if checkpoint.newest_plan < 0:
            return "", NEVER
        return f"batch {checkpoint.newest_commit}: {_amount(checkpoint, source)}", _note(checkpoint)
    except (Damaged, OSError) as damage:
        return "", str(damage)


def _amount(checkpoint: Checkpoint, source: Source) -> str:
    if not source.messages.topics:
        return counted(len(checkpoint.committed_files()), "file")
    first, now = checkpoint.first_offsets(), checkpoint.committed_offsets()
    parts = [(end, first.get(topic, {}).get(one, 0)) for topic, ends in now.items() for one, end in ends.items()]
    return f"{counted(sum(end - begin for end, begin in parts), 'offset')} of {counted(len(parts), 'partition')}"


def _note(checkpoint: Checkpoint) -> str:
    if checkpoint.has_unfinished_batch:
        return "a batch was interrupted, and the next run finishes it"
    if checkpoint.again_waiting():
        return "messages wait to land once more with the next run"
    kept = checkpoint.kept_since()
    return f"rows from before {kept} were removed" if kept else ""


def _of_model(workspace: Workspace, target: Target, node: Node) -> tuple[str, str]:
    """Returns which batches a table has read of the changelogs, and how many landed after them."""
    path = f"{target.at('_checkpoints')}/{node.relation}/_progress.json"
    sources = {source.model: source for source in workspace.project.sources}
    with suppress(Damaged, OSError):
        recorded = Progress(LocalFiles(), path, list).recorded()
        read = {model: one.batch for model, one in recorded.read.items() if model in sources} if recorded else {}
        behind = sum(max(0, checkpoint_of(target, sources[one]).newest_commit - batch) for one, batch in read.items())
        told = ", ".join(f"{sources[model].name}: batch {batch}" for model, batch in sorted(read.items()))
        return told, f"behind by {behind}" if behind else ""
    return "", "what it has read cannot be told"


def _size(size: int | None) -> str:
    """Returns a number of bytes as a person reads it; an empty text if it is not known.

    >>> _size(0), _size(1023), _size(1_500_000)
    ('0 B', '1.0 KB', '1.5 MB')
    """
    number, unit = float(size or 0), 0
    while number >= 1000 and unit < len(UNITS) - 1:
        number, unit = number / 1000, unit + 1
    return f"{number:.1f} {UNITS[unit]}" if unit else "" if size is None else f"{size} B"
