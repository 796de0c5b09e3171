"""dead-letters: messages that could not be understood, from their first look to a landed row."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from runner.commands.arguments import Call, MessagesArguments, RunArguments, instant
from runner.commands.parse import case_of
from runner.commands.run import land_and_build
from runner.commands.session import session, session_to_read
from runner.counts import counted, enumeration
from runner.errors import RunnerError, RunnerErrors, Where, excerpt, from_here
from runner.files import read_text, write_whole
from runner.project.inputs import RECORDS, Source
from runner.project.node_results import NodeResults
from runner.project.waivers import with_waiver
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
GROUPS = ("id", "source", "reason", "detail", "table", "state", "messages", "last_day", "last_seen")
TRIED = ("id", "source", "reason", "detail", "table", "messages", "land", "as_rows", "still")
ENDINGS = {"json": ".jsonl", "avro": ".base64"}


class Asked(NamedTuple):
    """What is asked of an action. `word` is an id, or the file to write; `as_case` the name of a case to write;
    `because` and `until` are what a waiver says. With `opens`, texts that are sealed are shown as they came.
    """

    action: str
    word: str
    as_case: str
    because: str
    until: str
    output: str
    opens: bool = False

    @property
    def id(self) -> str:
        return "" if self.action == "export" else self.word


def dead_letters(
    call: Call,
    source: str | None,
    reason: str | None,
    table: str | None,
    since: str | None,
    dry_run: bool,
    open: bool,
    **asked: str | None,
) -> int:
    """Runs one of the actions on the dead letters that are chosen."""
    from runner.run.dead_letters import Chosen

    own = Asked(**{name: value or "" for name, value in asked.items()}, opens=open)
    _check(own)
    workspace = Workspace(call.project)
    run = _run(workspace, source)
    chosen = Chosen(reason or "", tuple(table.split(".")) if table else (), instant("--since", since), own.id)
    # Mistakes in the arguments do not wait until Spark is imported.
    from runner.engine.errors import QueryFailed

    try:
        if own.action == "land" and not dry_run:
            return _land(call, workspace, run, chosen)
        with session_to_read(run, call.report):
            write = ACTIONS[own.action](call, run, _letters(run, chosen), own)
    except QueryFailed as failure:
        call.report.query_failed(failure.message)
        return 1
    if write:
        write()
    return 0


def _check(asked: Asked) -> None:
    """Raises `usage` for arguments that an action lacks, and for those of another action."""
    needed = {"show": ("ID",), "export": () if asked.as_case else ("FILE",), "waive": ("ID", "--because TEXT")}
    own = needed.get(asked.action, ())
    if lacking := [name for name, value in zip(own, (asked.word, asked.because)) if not value]:
        hint = " ".join(("runner dead-letters", asked.action, *own))
        raise RunnerError("usage", f"the following arguments are required: {', '.join(lacking)}", hint=hint)
    if asked.opens and asked.action not in ("show", "export"):
        raise RunnerError("usage", '"--open" belongs to show and export', hint="runner dead-letters show ID --open")
    for name, action in (("as_case", "export"), ("because", "waive"), ("until", "waive")):
        flag, value = f"--{name.replace('_', '-')}", getattr(asked, name)
        if value and asked.action != action:
            raise RunnerError(
                "usage", f'"{flag}" belongs to {action}', hint=f"runner dead-letters {action} {flag} {value}"
            )


def _run(workspace: Workspace, name: str | None) -> Run:
    """Returns a run of the models that land the sources; raises `source-unknown`."""
    models = {source.model for source in workspace.sources_named(name)}
    return Run(workspace, "dead-letters", workspace.in_order(models))


def _sources(run: Run) -> list[Source]:
    return [node.model.source for node in run.nodes if node.model and node.model.source]


def _letters(run: Run, chosen: Chosen) -> DeadLetters:
    from runner.run.dead_letters import DeadLetters

    return DeadLetters(run, _sources(run), chosen)


def _print(call: Call, rows: list[Row], columns: Iterable[str], output: str) -> None:
    if output == "json":
        call.report.json_lines(rows)
    else:
        call.report.table(list(columns), rows)


def _list(call: Call, run: Run, letters: DeadLetters, asked: Asked) -> None:
    """Prints groups that look alike."""
    _print(call, letters.groups(), GROUPS, asked.output)


def _try(call: Call, run: Run, letters: DeadLetters, asked: Asked) -> None:
    """Prints groups with what the formats make of their messages now."""
    _print(call, letters.tried(), TRIED, asked.output)


# --- one message


def _one(letters: DeadLetters, asked: Asked) -> Row:
    """Returns the newest of the dead letters with this id; raises `dead-letter-unknown`."""
    if found := letters.newest(opens=asked.opens):
        return found[0]
    hint = "runner dead-letters lists groups, with the id of each"
    raise RunnerError("dead-letter-unknown", f'no dead letter and no group has the id "{asked.id}"', hint=hint)


def _source_of(run: Run, row: Row) -> Source:
    return next(one for one in _sources(run) if one.name == row["source"])


def _show(call: Call, run: Run, letters: DeadLetters, asked: Asked) -> None:
    """Prints why a message is a dead letter, where it lies, and its text."""
    row = _one(letters, asked)
    for line in _told(_source_of(run, row), row):
        call.report.payload(line)


def _told(source: Source, row: Row) -> Iterator[str]:
    yield f"{row['id']}  {row['reason']}{': ' if row['detail'] else ''}{row['detail'] or ''}"
    yield f"source   {source.name}, format {source.format.name}{', table ' + row['named'] if row['named'] else ''}"
    yield f"lies in  {_place(source, row)}"
    yield f"landed   {row['loaded_at']} by run {row['run_id']}"
    if decided := _decided_by(source, row["reason"]):
        yield f"decided  by {decided}"
    raw = row["raw"]
    if raw is None:
        yield "the message is empty"
        return
    if _is_sealed(row):
        yield "the text is sealed: --open shows it, to those who have the secret for masks"
        return
    where, fragment = marked(row["reason"], row["detail"] or "", raw)
    yield excerpt(where, raw, fragment) if where else raw


def _is_sealed(row: Row) -> bool:
    return (row["meta"] or {}).get("raw_encoding") == "sealed"


def _place(source: Source, row: Row) -> str:
    """Returns where a message lies: in a file that this machine sees, the line in which the text of the message stands
    now.
    """
    from runner.functions.avro.files import plain_path
    from runner.run.source_files import lines_of_message

    origin, file = row["origin"], row["origin"]["file"]
    if origin["topic"] is not None:
        return f"topic {origin['topic']}, partition {origin['partition']}, offset {origin['offset']}"
    if not file or not file.startswith("file:"):
        return f"{file}"
    path = Path(plain_path(file))
    if not path.is_file():
        return f"{file}, which is gone"
    encoding = source.format.message.encoding
    is_known = row["raw"] is not None and not _is_sealed(row)
    found = lines_of_message(source.messages, path, line_of(row, ENDINGS[encoding])) if is_known else None
    if found is None:
        return f"{file}"
    line, count = found
    times = f" ({count} times)" if count > 1 else ""
    return f"{file}, line {line}{times}" if count else f"{file}, where no line is this message alone now"


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
        letters, sources = _letters(whole, chosen), _sources(run)
        if landing := [source for source in sources if letters.are_waiting(source)]:
            named = enumeration([source.name for source in landing])
            what = f"messages that an interrupted command has left land first: {named}"
            call.report.say(f"{what}; the same command again lands the others")
        else:
            groups = letters.tried(places=True)
            _print(call, groups, TRIED, "table")
            understood = {row["source"] for row in groups if row["land"]}
            landing = [source for source in sources if source.name in understood]
        if not landing:
            call.report.payload("no message would land")
            return 0
        models = {source.model for source in landing}
        touched = models | workspace.graph.downstream(models)
        whole.nodes = [node for node in whole.nodes if node.name in touched]
        land_and_build(whole, "run", arguments, call.report)
    return whole.exit_code


# --- files


def _export(call: Call, run: Run, letters: DeadLetters, asked: Asked) -> Callable[[], None]:
    """Returns what writes the messages to a file that `parse` reads or, with a name, to a case of their format; raises
    `usage` if they are of several formats.
    """
    rows = letters.newest(None, asked.opens)
    if any(map(_is_sealed, rows)):
        raise RunnerError(
            "usage", "messages are sealed, and nobody could read the file", hint="--open, with the secret"
        )
    sources = [one for one in _sources(run) if any(row["source"] == one.name for row in rows)]
    if len({one.format.name for one in sources}) != 1:
        what = "messages of several formats go into files of their own" if sources else "there are no such dead letters"
        raise RunnerError("usage", what, hint="--source NAME" if sources else "runner dead-letters lists them")
    source, encoding = sources[0], sources[0].format.message.encoding
    is_record = any(_has_more_than_a_line(row) for row in rows) and encoding == "json"
    ending = RECORDS if is_record else f".messages{ENDINGS[encoding]}" if asked.as_case else ENDINGS[encoding]
    folder = run.project.root / "formats" / "cases" / source.format.name
    file = folder / f"{asked.as_case}{ending}" if asked.as_case else Path(asked.word)
    if not file.name.endswith(ending):
        raise RunnerError("usage", f'the file must end in "{ending}", so that parse reads it', hint=f"{file}{ending}")
    ordered = sorted(rows, key=lambda row: (row["source"], row["seq"]["arrival"]))
    lines = [line_of(row, ending) for row in ordered]
    return partial(_write, call, source, file, lines, f"{asked.as_case}.rows.yml" if asked.as_case else "")


def _write(call: Call, source: Source, file: Path, lines: list[bytes], rows: str) -> None:
    content = b"".join(line + b"\n" for line in lines)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    call.report.payload(f"{counted(len(lines), 'message')} written to {from_here(file)}")
    if rows:
        arguments = MessagesArguments(call.project, source.format.name, str(file), source.zone)
        (file.parent / rows).write_text(case_of(arguments, content, call.report))
        told = "what they are now, to be corrected to what they should be"
        call.report.payload(f"{told}, to {from_here(file.parent / rows)}")


def _has_more_than_a_line(row: Row) -> bool:
    """Returns True if a line of a file cannot hold a message with all that came with it."""
    return row["origin"]["key"] is not None or bool(row["origin"]["headers"]) or "\n" in (row["raw"] or "")


def line_of(row: Row, ending: str) -> bytes:
    """Returns the line of a file for a message."""
    raw, origin = row["raw"], row["origin"]
    if ending != RECORDS:
        is_text = ending.endswith(ENDINGS["avro"]) or (row["meta"] or {}).get("raw_encoding") != "base64"
        return (raw or "").encode() if is_text else base64.b64decode(raw)
    headers = [part for one in origin["headers"] or () for part in (one["key"], one["value"])]
    record = {"topic": origin["topic"], "key": origin["key"], "headers": headers, "value": raw}
    written = {name: value for name, value in record.items() if value not in (None, [])}
    return json.dumps(written, ensure_ascii=False).encode()


# --- waivers


def _waive(call: Call, run: Run, letters: DeadLetters, asked: Asked) -> Callable[[], None]:
    """Returns what writes a waiver of a group into project.yml."""
    row = _one(letters, asked)
    waiver = {"reason": row["reason"], "detail": row["shape"], "table": row["named"], "because": asked.because}
    said = {name: value for name, value in {**waiver, "until": asked.until}.items() if value}
    from runner.run.dead_letters import Chosen

    # The id may be that of one message, and the waiver is for its group.
    groups = _letters(run, Chosen(id=row["group_id"])).groups()
    waived = [one for one in groups if one["state"] == "open"]
    recorded = partial(
        NodeResults(run.project).waived,
        run.graph.nodes[_source_of(run, row).model],
        sum(one["messages"] for one in waived),
    )
    return partial(_write_waiver, call, run.project.root / "project.yml", row["source"], said, recorded)


def _write_waiver(call: Call, file: Path, source: str, waiver: Mapping[str, str], recorded: Callable[[], None]) -> None:
    """Writes a waiver, and records that its dead letters are not open any more; leaves the file as it was, and raises
    what is wrong with it, if it cannot be read then.
    """
    before = read_text(file)
    write_whole(file, with_waiver(before, source, waiver))
    try:
        Workspace(call.project)
    except (RunnerError, RunnerErrors):
        write_whole(file, before)
        raise
    recorded()
    call.report.payload(f"waived in {from_here(file)}: {waiver['reason']}, {waiver.get('detail', 'any detail')}")


Action = Callable[["Call", "Run", "DeadLetters", Asked], "Callable[[], None] | None"]
ACTIONS: dict[str, Action] = {
    "list": _list,
    "show": _show,
    "try": _try,
    "land": _try,
    "waive": _waive,
    "export": _export,
}
