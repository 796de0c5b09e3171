"""dead-letters: messages that could not be understood, from their first look to a landed row."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from runner.commands.arguments import Call, MessagesArguments, RunArguments
from runner.commands.parse import case_of
from runner.commands.run import land_and_build
from runner.commands.session import session, session_to_read
from runner.counts import counted, enumeration
from runner.errors import RunnerError, Where, excerpt, from_here, nearest_or_all
from runner.project.inputs import RECORDS, Source
from runner.run.run import Run
from runner.run.workspace import Selection, Workspace

if TYPE_CHECKING:
    from runner.run.dead_letters import Chosen, DeadLetters

Row = Mapping[str, Any]
# Reason -> the keys of a spec that decide it, the first of which a spec has counts. Other reasons are of the message.
DECIDED_BY = {
    "no-op": ("op.by", "op"),
    "unknown-op": ("op.cases", "op"),
    "statement-without-rows": ("after", "op"),
    "no-row-image": ("after", "before", "op"),
    "row-not-an-object": ("each", "after"),
    "uneven-rows": ("each", "before"),
    "unknown-patch": ("after", "op"),
    "schema-mismatch": ("message.schemas", "message"),
    "schema-unknown": ("message.registry", "message"),
}
COLUMNS = ("id", "source", "reason", "detail", "table", "state", "messages", "last_day", "first_seen", "last_seen")
TRIED = ("id", "source", "reason", "detail", "table", "messages", "land", "as_rows", "still")
ENDINGS = {"json": ".jsonl", "avro": ".base64"}


def dead_letters(
    call: Call,
    action: str,
    word: str | None,
    source: str | None,
    reason: str | None,
    table: str | None,
    since: str | None,
    as_case: str | None,
    dry_run: bool,
    output: str,
) -> int:
    """Runs one of the actions on the dead letters that are chosen."""
    from runner.run.dead_letters import Chosen

    needed = {"show": "ID", "export": "" if as_case else "FILE"}.get(action)
    if needed and not word:
        hint = f"runner dead-letters {action} {needed}"
        raise RunnerError("usage", f"the following arguments are required: {needed}", hint=hint)
    if as_case and action != "export":
        raise RunnerError(
            "usage", '"--as-case" belongs to export', hint=f"runner dead-letters export --as-case {as_case}"
        )
    workspace, of_id = Workspace(call.project), "" if action == "export" else word or ""
    run = _run(workspace, source)
    chosen = Chosen(reason or "", tuple(table.split(".")) if table else (), _instant(since), of_id)
    # Mistakes in the arguments do not wait until Spark is imported.
    from runner.engine.errors import QueryFailed

    try:
        if action == "land" and not dry_run:
            return _land(call, workspace, run, chosen)
        exported = _looked_at(call, run, chosen, action, output)
    except QueryFailed as failure:
        call.report.query_failed(failure.message)
        return 1
    if exported:
        _export(call, exported, run, word, as_case)
    return 0


def _looked_at(call: Call, run: Run, chosen: Chosen, action: str, output: str) -> Exported | None:
    """Prints what an action that changes no table shows; returns the messages to export, if they are asked for."""
    with session_to_read(run, call.report):
        letters = _letters(run, chosen)
        match action:
            case "export":
                return _exported(letters, run)
            case "show":
                _show(call, run, letters, chosen.id)
            case "list":
                _print(call, letters.groups(), COLUMNS, output)
            case _:
                _print(call, letters.tried(), TRIED, output)
    return None


def _run(workspace: Workspace, name: str | None) -> Run:
    """Returns a run of the models that land the sources; raises `source-unknown`."""
    sources = {one.name: one for one in workspace.project.sources}
    if name is not None and name not in sources:
        raise RunnerError("source-unknown", f'there is no source "{name}"', hint=nearest_or_all(name, sources))
    models = {one.model for one in sources.values() if name in (None, one.name)}
    return Run(workspace, "dead-letters", workspace.in_order(models))


def _sources(run: Run) -> list[Source]:
    return [node.model.source for node in run.nodes if node.model and node.model.source]


def _letters(run: Run, chosen: Chosen) -> DeadLetters:
    from runner.run.dead_letters import DeadLetters

    return DeadLetters(run, _sources(run), chosen)


def _instant(text: str | None) -> str:
    """Returns an instant as SQL reads it; raises `usage` for a text that is none.

    >>> _instant("2026-11-20"), _instant("2026-11-20T10:00:00Z"), _instant(None)
    ('2026-11-20T00:00:00', '2026-11-20T10:00:00+00:00', '')
    """
    if not text:
        return ""
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).isoformat()
    except ValueError:
        hint = "such as 2026-11-20 or 2026-11-20T10:00:00Z"
        raise RunnerError("usage", f'"--since" must be a day or an instant, not "{text}"', hint=hint) from None


def _print(call: Call, rows: list[Row], columns: Iterable[str], output: str) -> None:
    if output == "json":
        call.report.json_lines(rows)
    else:
        call.report.table(list(columns), rows)


# --- one message


def _show(call: Call, run: Run, letters: DeadLetters, word: str) -> None:
    """Prints the newest of the dead letters with this id: why it is one, where it lies, and its text."""
    found = letters.newest()
    if not found:
        hint = "runner dead-letters lists groups, with the id of each"
        raise RunnerError("dead-letter-unknown", f'no dead letter and no group has the id "{word}"', hint=hint)
    source = next(one for one in _sources(run) if one.name == found[0]["source"])
    for line in _told(source, found[0]):
        call.report.payload(line)


def _told(source: Source, row: Row) -> Iterator[str]:
    yield f"{row['id']}  {row['reason']}{': ' if row['detail'] else ''}{row['detail'] or ''}"
    yield f"source   {source.name}, format {source.format.name}{', table ' + row['named'] if row['named'] else ''}"
    yield f"lies in  {_place(row)}"
    yield f"landed   {row['loaded_at']} by run {row['run_id']}"
    if decided := _decided_by(source, row["reason"]):
        yield f"decided  by {decided}"
    raw = row["raw"]
    if raw is None:
        yield "the message is empty"
        return
    where, fragment = marked(row["reason"], row["detail"] or "", raw)
    yield excerpt(where, raw, fragment) if where else raw


def _place(row: Row) -> str:
    origin = row["origin"]
    if origin["topic"] is not None:
        return f"topic {origin['topic']}, partition {origin['partition']}, offset {origin['offset']}"
    return f"{origin['file']}"


def _decided_by(source: Source, reason: str) -> str:
    """Returns the key of the spec that decides a reason, with its place; empty if the message alone decides it."""
    for key in DECIDED_BY.get(reason, ()):
        yaml = source.format.origin
        steps = key.split(".")
        while steps and (found := yaml.get(steps[0])):
            yaml, steps = found, steps[1:]
        if not steps:
            return f"{key}, at {yaml.where()}"
    return ""


def marked(reason: str, detail: str, raw: str) -> tuple[Where | None, str]:
    """Returns the place in a message at which reading it failed, and the text that stands there; None if the place is
    not known.

    >>> marked("not-json", "", '{"a": 1,}')[0].column, marked("trailing-text", "", '{"a":1} x')[0].column
    (9, 9)
    >>> marked("unknown-op", 'hdr.act: "X"', '{"hdr": {"act": "X"}}')
    (Where(path=PosixPath('message'), line=1, column=10), '"act": "X"')
    """
    if reason in ("not-json", "trailing-text"):
        text = raw.lstrip()
        try:
            _, end = json.JSONDecoder().raw_decode(text)
            end += len(text[end:]) - len(text[end:].lstrip())
        except (json.JSONDecodeError, RecursionError) as error:
            end = getattr(error, "pos", 0)
        return _where(raw, len(raw) - len(text) + end), ""
    named = re.match(r"[\w.$@-]*?([\w$@-]+):", detail)
    found = named and re.search(rf'"{re.escape(named[1])}"\s*:\s*("[^"]*"|[^,}}\s]*)', raw)
    return (_where(raw, found.start()), found[0]) if found else (None, "")


def _where(text: str, at: int) -> Where:
    before = text[: min(at, max(len(text) - 1, 0))]
    return Where(Path("message"), before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


# --- landing


def _land(call: Call, workspace: Workspace, run: Run, chosen: Chosen) -> int:
    """Lands the messages that the formats understand now, each once, and builds what reads them. Messages that an
    interrupted command has left land first, alone.
    """
    arguments = RunArguments(call.project, Selection(tuple(f"{source.model}+" for source in _sources(run))))
    names = workspace.selected(arguments.selection)
    whole = Run(workspace, "dead-letters", workspace.in_order(names, lambda node: bool(node.model) and node.runs))
    with session(whole, call.report):
        letters = _letters(whole, chosen)
        if waiting := [source.name for source in _sources(run) if letters.are_waiting(source)]:
            what = f"messages that an interrupted command has left land first: {enumeration(waiting)}"
            call.report.say(f"{what}; the same command again lands the others")
        else:
            groups = letters.tried()
            _print(call, groups, TRIED, "table")
            landing = {row["source"] for row in groups if row["land"]}
            for source in _sources(run):
                if source.name in landing:
                    letters.place(source)
            if not landing:
                call.report.payload("no message would land")
                return 0
        land_and_build(whole, "run", arguments, call.report)
    return whole.exit_code


# --- files


class Exported(NamedTuple):
    """Messages as lines of a file that ends in `ending`, and the format that they are of."""

    lines: list[bytes]
    ending: str
    source: Source


def _exported(letters: DeadLetters, run: Run) -> Exported:
    """Returns the messages; raises `usage` if they are of several formats."""
    rows = letters.newest(None)
    sources = [one for one in _sources(run) if any(row["source"] == one.name for row in rows)]
    if len({one.format.name for one in sources}) != 1:
        what = "messages of several formats go into files of their own" if sources else "there are no such dead letters"
        raise RunnerError("usage", what, hint="--source NAME")
    encoding = sources[0].format.message.encoding
    is_record = any(_has_more_than_a_line(row) for row in rows) and encoding == "json"
    ending = RECORDS if is_record else ENDINGS[encoding]
    ordered = sorted(rows, key=lambda row: (row["source"], row["seq"]["arrival"]))
    return Exported([_line(row, ending) for row in ordered], ending, sources[0])


def _has_more_than_a_line(row: Row) -> bool:
    """Returns True if a line of a file cannot hold a message with all that came with it."""
    return row["origin"]["key"] is not None or bool(row["origin"]["headers"]) or "\n" in (row["raw"] or "")


def _export(call: Call, exported: Exported, run: Run, word: str | None, name: str | None) -> None:
    """Writes messages to a file that `parse` reads or, with a name, to a case of their format."""
    lines, ending, source = exported
    ending = RECORDS if name and ending == RECORDS else f".messages{ending}" if name else ending
    folder = run.project.root / "formats" / "cases" / source.format.name
    file = folder / f"{name}{ending}" if name else Path(str(word))
    if not file.name.endswith(ending):
        raise RunnerError("usage", f'the file must end in "{ending}", so that parse reads it', hint=f"{file}{ending}")
    file.parent.mkdir(parents=True, exist_ok=True)
    content = b"".join(line + b"\n" for line in lines)
    file.write_bytes(content)
    call.report.payload(f"{counted(len(lines), 'message')} written to {from_here(file)}")
    if name:
        arguments = MessagesArguments(call.project, source.format.name, str(file), source.zone)
        rows = folder / f"{name}.rows.yml"
        rows.write_text(case_of(arguments, content, call.report))
        call.report.payload(f"and what they are now to {from_here(rows)}: write there what they should be")


def _line(row: Row, ending: str) -> bytes:
    """Returns the line of a file for a message."""
    raw, origin = row["raw"], row["origin"]
    if ending != RECORDS:
        is_text = ending == ENDINGS["avro"] or row["meta"].get("raw_encoding") != "base64"
        return (raw or "").encode() if is_text else base64.b64decode(raw)
    headers = [part for one in origin["headers"] or () for part in (one["key"], one["value"])]
    record = {"topic": origin["topic"], "key": origin["key"], "headers": headers, "value": raw}
    written = {name: value for name, value in record.items() if value not in (None, [])}
    return json.dumps(written, ensure_ascii=False).encode()
