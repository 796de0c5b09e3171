"""reprocess: messages that are kept are read again with the spec as it is now, and their rows are exchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from runner.commands.arguments import Call, RunArguments, instant
from runner.commands.run import land_and_build
from runner.commands.session import session, session_to_read
from runner.counts import counted
from runner.errors import RunnerError, full_refresh
from runner.project.inputs import Source
from runner.run.run import Run
from runner.run.workspace import Selection, Workspace

if TYPE_CHECKING:
    from runner.run.reprocess import Counted, Reprocessing

COLUMNS = ("table", "was", "becomes", "differs", "rows", "messages", "example")
NOTHING = "nothing"


def reprocess(
    call: Call,
    source: str,
    table: str | None,
    reason: str | None,
    from_: str | None,
    to: str | None,
    stale: bool,
    dry_run: bool,
    output: str,
) -> int:
    """Prints what the rows of a source's kept messages are otherwise now, and exchanges the rows of the messages of
    which one is.
    """
    workspace = Workspace(call.project)
    (own,) = workspace.sources_named(source)
    since, until = instant("--from", from_), instant("--to", to)
    # Mistakes in the arguments do not wait until Spark is imported.
    from runner.engine.errors import QueryFailed
    from runner.run.reprocess import Reprocessing, Slice

    chosen = Slice(tuple(table.split(".")) if table else (), reason or "", since, until)
    arguments = RunArguments(call.project, Selection((f"{own.model}+",)))
    names = {own.model} if dry_run else workspace.selected(arguments.selection)
    run = Run(workspace, "reprocess", workspace.in_order(names, lambda node: bool(node.model) and node.runs))
    try:
        with session_to_read(run, call.report) if dry_run else session(run, call.report):
            run.views.make(run.graph.nodes[own.model])
            work = Reprocessing.of_stale(run, own, chosen) if stale else Reprocessing(run, own, chosen)
            if run.tables.checkpoint(own.model).again_waiting() and not dry_run:
                what = "messages that an interrupted command has left land first"
                call.report.say(f"{what}; the same command again does what is left")
                _land(call, run, own, arguments)
            else:
                _read_again(call, run, work, arguments, dry_run, output)
    except QueryFailed as failure:
        call.report.query_failed(failure.message)
        return 1
    return run.exit_code


def _read_again(call: Call, run: Run, work: Reprocessing, arguments: RunArguments, dry_run: bool, output: str) -> None:
    counts = work.count()
    _check(work, counts)
    with work.compared():
        found = work.differences()
        rows = [{**row, "example": _example(row, bool(work.source.masked))} for row in found]
        if output == "json":
            call.report.json_lines(rows)
        elif rows:
            call.report.table(list(COLUMNS), rows)
        _say(call, work.source, counts, bool(found))
        if dry_run:
            return
        if found:
            work.place()
    is_done = _land(call, run, work.source, arguments) if found else True
    if is_done and counts.kept == counts.messages and work.chosen.is_of_batches:
        work.is_settled()


def _check(work: Reprocessing, counts: Counted) -> None:
    """Raises `raw-not-kept` if there are messages, and the text of none is kept."""
    if counts.messages and not counts.kept:
        name = work.source.name
        raise RunnerError(
            "raw-not-kept",
            f'the texts of these messages of "{name}" are not kept',
            work.source.where,
            f"keep_raw: all keeps those that land from now on; {full_refresh(work.source.model)} reads all messages "
            "again, where they are still there",
        )


def _say(call: Call, source: Source, counts: Counted, differs: bool) -> None:
    if not counts.messages:
        call.report.say(f"no message of {source.name} is chosen: nothing is read again")
        return
    kept = counted(counts.kept, "message")
    call.report.say(f"{kept} of {source.name} read again" + ("" if differs else ": all their rows are the same"))
    if left := counts.messages - counts.kept:
        call.report.say(f"{counted(left, 'message')} more: the texts are not kept, so their rows stay as they are")


def _example(row: Mapping[str, Any], is_masked: bool) -> str:
    """Returns the place of a message, and the first value that is otherwise, unless values are masked: those that
    landed before there were masks are not.
    """
    example = row["example"]
    if is_masked:
        return str(example["at"])
    first = example["first"]
    was, now = ((NOTHING if value is None else value) for value in (first["was"], first["is"])) if first else ("", "")
    return f"{example['at']}: {was} -> {now}" if first else example["at"]


def _land(call: Call, run: Run, source: Source, arguments: RunArguments) -> bool:
    """Lands the messages that were placed, and builds what reads them; returns True if all went well."""
    land_and_build(run, "run", arguments, call.report)
    run.tables.remove_landed_again(source.model)
    return run.exit_code == 0
