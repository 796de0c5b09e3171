"""erase: the rows of one key of a table are removed from all that a target keeps, and stay out."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from runner import artifacts
from runner.commands.arguments import Call
from runner.commands.session import session, session_to_read
from runner.errors import RunnerError
from runner.files import is_uri
from runner.project.inputs import Source
from runner.project.nodes import Project
from runner.project.state import RESULTS
from runner.run.run import Run
from runner.run.verified import DIFFERENCES
from runner.run.workspace import Workspace

if TYPE_CHECKING:
    from runner.run.erase import Erasing
    from runner.run.erased_state import Asked

COLUMNS = ("place", "what", "rows")
HINT = '--key id=7, or --key \'{"tenant": "a", "id": "7"}\''
REPEATS = "messages that come again land without rows of this key that the database wrote up to this moment"
NOT_PURGED = "old versions and files of tables: the same command with --purge removes them"


def erase(
    call: Call,
    table: str | None,
    key: str | None,
    source: str | None,
    because: str | None,
    purge: bool,
    resume: bool,
    dry_run: bool,
    output: str,
) -> int:
    """Erases a key, or goes on with an erase that was interrupted, and prints a certificate; returns 1 if something is
    left.
    """
    if resume == bool(table and key) or (resume and (source or because or dry_run)):
        raise RunnerError("usage", "erase takes --table and --key, or --resume alone", hint="runner erase --help")
    values = key_of(key) if key else {}
    reason = _checked_reason(because or "", values)
    workspace = Workspace(call.project)
    sources = workspace.sources_named(source) if source else workspace.project.sources
    # Mistakes in the arguments do not wait until Spark is imported.
    from runner.engine.errors import QueryFailed
    from runner.run.erase import Erasing
    from runner.run.erased_state import Asked

    asked = Asked(tuple((table or "").split(".")), values, tuple(sources)) if values else None
    run = Run(workspace, "erase", workspace.in_order([*workspace.graph.nodes], lambda node: node.writes_table))
    try:
        with session_to_read(run, call.report) if dry_run else session(run, call.report):
            erasing = Erasing(run)
            with erasing.open:
                if asked and dry_run:
                    erasing.find(asked, "", reason, purge)
                    rows = erasing.plan()
                    return _print(call, rows, rows, output)
                return _erased(call, erasing, asked, reason, purge, output)
    except QueryFailed as failure:
        call.report.query_failed(failure.message)
        return 1


def _erased(call: Call, erasing: Erasing, asked: Asked | None, because: str, purge: bool, output: str) -> int:
    run = erasing.run
    run.lock([DIFFERENCES])
    if erasing.unfinished(asked):
        call.report.say("goes on with an erase that was interrupted")
    elif asked is None:
        call.report.say("nothing to do: no erase was interrupted in this target")
        return 0
    else:
        command = shlex.join(["runner", "erase", "-t", run.project.target.name, "--resume"])
        erasing.find(asked, command, because, purge)
        erasing.begin(asked.key)
    if not _removed(call, erasing):
        return 1
    is_purged = erasing.state.purges or purge
    looked: dict[str, int] = {}
    left: list[dict[str, Any]] = []
    if is_purged:
        for name in erasing.purge():
            call.report.say(f"{name}: old versions removed")
        looked, left = erasing.search(run.project.target_path)
    certificate = _certificate(erasing, is_purged, looked, left)
    path = erasing.end(certificate)
    removed = [
        {"place": place, "what": what.replace("_", " "), "rows": None if what == "built_again" else count}
        for place, counts in erasing.state.removed.items()
        for what, count in counts.items()
    ]
    _print(call, removed + [{**one, "what": "LEFT"} for one in left], [certificate], output)
    for line in (*certificate["not_reached"], *certificate["notes"]):
        call.report.say(f"not reached: {line}" if line in certificate["not_reached"] else line)
    if not removed:
        call.report.say("nothing was there to be removed: no row has this key")
    call.report.say(f"the certificate is {path}")
    return int(bool(left))


def _removed(call: Call, erasing: Erasing) -> bool:
    """Carries out the steps that remove rows; returns False if a table could not be built again."""
    from runner.run.execute import Execution

    erasing.changelogs()
    is_well = True
    for number, (node, result) in enumerate(erasing.readers(Execution(erasing.run)), 1):
        call.report.finished(node, result, number, number)
        is_well &= not result.has_failed
    erasing.kept()
    _clear(erasing.run.project)
    return is_well


def _clear(project: Project) -> None:
    """Removes the files about runs that may have values of rows. Spark goes on to write its log."""
    for name in (RESULTS, artifacts.AGES):
        (project.target_path / name).unlink(missing_ok=True)
    for path in (project.target_path / "docs").glob("*"):
        path.unlink()
    for path in (project.target_path / "logs").glob("*"):
        path.write_bytes(b"")


def _certificate(erasing: Erasing, purged: bool, looked: Mapping[str, int], left: list[Any]) -> dict[str, Any]:
    state, project = erasing.state, erasing.run.project
    sources = [one for one in project.sources if one.model in state.sources]
    parts = [{"column": one.name, "salt": one.prefix, "sha256": one.digest} for one in state.erasure.parts]
    not_reached = [line for source in sources for line in _senders(source)]
    not_reached += [*_other_targets(project), *([NOT_PURGED] if erasing.storage.changes_rows and not purged else [])]
    if purged and is_uri(project.target.path):
        not_reached.append(
            f"the files in {project.target.path} were not looked through: this machine does not see them"
        )
    return {
        "id": state.erasure.id,
        "table": ".".join(state.names),
        "key": parts,
        "because": state.because,
        "target": project.target.name,
        "storage": project.target.storage,
        "up_to": state.erasure.at,
        "removed": state.removed,
        "purged": purged,
        "looked_through": dict(looked),
        "left": left,
        "not_reached": not_reached,
        "repeats": REPEATS,
        "notes": state.notes,
    }


def _senders(source: Source) -> list[str]:
    """Returns where the messages of a source are, which stay there."""
    messages = source.messages
    if messages.jdbc:
        return [f"the database of {source.name}: {messages.jdbc.url}"]
    if topics := messages.topics:
        told = {name: value for name, value in topics.options.items() if name.startswith(("subscribe", "assign"))}
        return [f"topics of {source.name}: {value}" for value in told.values()]
    what = "repairs that runner verify has written" if messages.are_repairs else "files"
    return [f"{what} of {source.name}: {messages.path}"]


def _other_targets(project: Project) -> list[str]:
    others = [name for name in project.target_names if name != project.target.name]
    return [f"the target {name}, and copies in it: runner erase -t {name}" for name in others] + [
        "backups, and copies of the tables or of the messages that other tools have made"
    ]


def _print(call: Call, rows: list[dict[str, Any]], as_json: list[dict[str, Any]], output: str) -> int:
    if output == "json":
        call.report.json_lines(as_json)
    elif rows:
        call.report.table(list(COLUMNS), rows)
    return 0


def key_of(text: str) -> dict[str, str]:
    """Returns the columns of a key with the texts of their values; raises `usage` for a text that is none.

    >>> key_of("id=7"), key_of('{"tenant": "a", "id": 7}')
    ({'id': '7'}, {'tenant': 'a', 'id': '7'})
    """
    name, is_pair, value = text.partition("=")
    try:
        if not text.lstrip().startswith("{"):
            key = {name.strip(): value} if is_pair else {}
        else:
            key = json.loads(text, parse_int=str, parse_float=str)
    except ValueError:
        key = {}
    if not key or not all(isinstance(one, str) and one and column for column, one in key.items()):
        raise RunnerError("usage", '"--key" must be a column and its value, or all of them as JSON', hint=HINT)
    return key


def _checked_reason(because: str, key: Mapping[str, str]) -> str:
    """Returns the reason; raises `usage` if it has a value of the key, because it is kept."""
    if any(re.search(rf"(?<!\w){re.escape(value)}(?!\w)", because) for value in key.values()):
        raise RunnerError("usage", '"--because" is kept, and has a value of the key', hint="name a ticket instead")
    return because
