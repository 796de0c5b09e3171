"""mirrors suggest: looks at what has landed and writes mirrors of its tables; mirrors diff: compares both."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from runner.commands.arguments import Call
from runner.commands.session import session_to_read
from runner.compile.suggested_mirrors import (
    deviations,
    differences,
    free_name,
    suggested_rule,
    suggested_yaml,
    with_differences,
)
from runner.counts import counted, enumeration
from runner.errors import RunnerError, RunnerWarning
from runner.files import read_text, write_whole
from runner.project.inputs import Source
from runner.project.many_mirrors import changes
from runner.project.mirror import HISTORY, Mirror
from runner.project.mirrors import mirror_nodes
from runner.project.nodes import Node
from runner.project.tables_seen import TableSeen, TablesSeen, plain_name, tables_seen
from runner.report import Report
from runner.run.run import Run
from runner.run.workspace import Workspace
from runner.spec.words import Types
from runner.yaml_text import yaml_of


def mirrors(call: Call, action: str, source: str | None, table: str | None, files: bool, apply: bool) -> int:
    """Runs `suggest` or `diff` for the tables of one source or of all."""
    workspace = Workspace(call.project)
    told = [one for one in workspace.sources_named(source) if not one.messages.are_repairs]
    chosen = sorted(told, key=attrgetter("name"))
    sources = {one.name: one for one in chosen}
    of_table = tuple(table.split(".")) if table else ()
    if action == "diff" and (files or apply):
        raise RunnerError("usage", "mirrors diff writes nothing", hint="mirrors suggest --apply")
    found = (tables_seen(workspace.project, one) for one in chosen)
    looked = found if action == "diff" else _seen(workspace, chosen, of_table, call.report)
    seen = [one for tables in looked for one in tables.named(of_table)]
    if not seen:
        hint = "runner run lands messages, and runner show -s freshness_by_table shows the tables"
        raise RunnerError("mirror-nothing", "no change of such a table has landed", hint=hint)
    if action == "diff":
        for one in seen:
            for line in _compared(workspace, one, sources[one.source].format.types):
                call.report.payload(line)
        return 0
    return _suggest(call, workspace, seen, sources, apply, files or bool(table))


def _suggest(
    call: Call,
    workspace: Workspace,
    seen: list[TableSeen],
    sources: Mapping[str, Source],
    is_to_apply: bool,
    in_files: bool,
) -> int:
    """Writes a rule for the tables of a source that have no mirror, or a file for each, and prints what other tables
    have that their mirrors lack.
    """
    taken = {name.lower() for name in workspace.graph.nodes}
    for name, tables in groupby(seen, key=attrgetter("source")):
        for line in _of_source(workspace, sources[name], list(tables), taken, is_to_apply, in_files):
            call.report.payload(line)
    return 0


def _compared(workspace: Workspace, table: TableSeen, types: Types | None) -> Iterator[str]:
    """Yields the lines that say where the mirror of a table is not as the data, and which setting of a rule says so."""
    mirrors = _mirrors_of(workspace, table)
    for node, mirror in mirrors[:1]:
        rule = next(
            (one for one in workspace.mirrors.rules if node.name in workspace.mirrors.by_rule and one.matches(table)),
            None,
        )
        found = list(deviations(table, mirror, types))
        state = "differs" if found else "as the data is"
        yield f"{mirror.name}: {table.path} of source {table.source}, {node.path}: {state}"
        for column, text in found:
            kinds = [kind for kind, _ in changes(column, types)] if column and rule else []
            why = ", ".join(f"{kind}: {rule.schema[kind]}" for kind in kinds) if rule else ""
            name = f'"{column.name}": ' if column else ""
            yield f"  {name}{text}" + (f" (schema: {{{why}}})" if why else "")
    if not mirrors:
        yield f"{table.path} of source {table.source}: no mirror"


def _of_source(
    workspace: Workspace, source: Source, tables: list[TableSeen], taken: set[str], is_to_apply: bool, in_files: bool
) -> Iterator[str]:
    """Writes mirrors of the tables of one source; yields the lines to print. Tables that a rule leaves out get none."""
    new = [one for one in tables if workspace.lacks_mirror(one)]
    if len(new) > 1 and not in_files:
        tables = [one for one in tables if one not in new]
        yield from _by_rule(workspace, new, tables, taken)
    for one in tables:
        yield from _suggested(workspace, one, source, taken, is_to_apply)


def _by_rule(workspace: Workspace, tables: list[TableSeen], others: list[TableSeen], taken: set[str]) -> Iterator[str]:
    """Writes one rule for tables, and not for `others`, which have mirrors; yields the lines to print."""
    root, source = workspace.project.root, tables[0].source
    path = root / "models" / "mirrors" / f"{plain_name(source)}.yml"
    if path.exists():
        raise RunnerError("mirror-exists", f'"{path}" exists, and has no mirrors of {len(tables)} tables of {source}')
    write_whole(path, suggested_rule(tables, others, taken))
    yield f"wrote {path.relative_to(root)}: a rule for {counted(len(tables), 'table')} of source {source}: runner run"
    if without := [one.path for one in tables if not one.key and not one.row_id]:
        yield f"  no change tells a key of {enumeration(without)}: their mirrors have no rows (without_key: reject)"
        yield "  name their keys under tables_like, or choose count, whole_row or append"


def _suggested(
    workspace: Workspace, table: TableSeen, source: Source, taken: set[str], is_to_apply: bool
) -> Iterator[str]:
    """Writes the file of a mirror, or finds what its data has that the mirror lacks; yields the lines to print."""
    types, root = source.format.types, workspace.project.root
    mirrors = _mirrors_of(workspace, table)
    for node, mirror in mirrors[:1]:
        if node.name in workspace.mirrors.by_rule:
            yield f"{node.path}: {mirror.name} follows {table.path} by a rule"
            return
        found = list(differences(table, mirror, types))
        state = "as the data is" if not found else "changed to what the data has" if is_to_apply else "the data has"
        yield f"{node.path}: {state}"
        yield from (f"  {line}" for one in found for line in one.lines())
        if found and is_to_apply:
            path = root / node.path
            _write(workspace, path, with_differences(read_text(path), mirror.name, found), mirror.name)
    if mirrors or not workspace.lacks_mirror(table):
        return
    name = free_name(table, taken)
    path = root / "models" / "mirrors" / f"{name}.yml"
    if path.exists():
        raise RunnerError("mirror-exists", f'"{path}" exists, and has no mirror of {".".join(table.names)}')
    try:
        _write(workspace, path, suggested_yaml(table, name, types), name)
    except RunnerError as error:
        yield f"no mirror of {'.'.join(table.names)} of source {table.source}: {error.message}"
        return
    taken |= {name.lower(), f"{name.lower()}{HISTORY}"}
    yield f"wrote {path.relative_to(root)}: runner build -s {name}"
    if not table.key and not table.row_id:
        what = "no change of this table tells a key, and the mirror has no rows (without_key: reject)"
        yield f"  {what}: name its key, or choose count, whole_row or append"


def _write(workspace: Workspace, path: Path, text: str, name: str) -> None:
    """Writes a property file, if it can be read: a mistake in the file would stop every other command."""
    for entry in yaml_of(text, path)["mirrors"].elements():
        if entry["name"].value == name:
            list(mirror_nodes(entry, workspace.project, str(path.relative_to(workspace.project.root))))
    write_whole(path, text)


def _mirrors_of(workspace: Workspace, table: TableSeen) -> list[tuple[Node, Mirror]]:
    return [(node, mirror) for node in workspace.graph.nodes.values() if (mirror := _mirror_of(node, table))]


def _mirror_of(node: Node, table: TableSeen) -> Mirror | None:
    """Returns the mirror of a node, if it is one of this table; else None."""
    mirror = node.model.mirror if node.model else None
    for one in mirror.tables if mirror else ():
        if one.source.name == table.source and table.ends_with(one.name):
            return mirror
    return None


def _seen(
    workspace: Workspace, sources: Collection[Source], of_table: tuple[str, ...], report: Report
) -> Iterator[TablesSeen]:
    """Yields the tables of sources whose changes have landed, from all changes. Columns have what is known of their
    values where the name of their table ends with `of_table`.
    """
    from runner.engine.errors import QueryFailed
    from runner.run.tables_seen import looked_at

    run = Run(workspace, "mirrors", [workspace.graph.nodes[source.model] for source in sources])
    with session_to_read(run, report), report.during("looking at what has landed"):
        for source, node in zip(sources, run.nodes):
            try:
                run.views.make(node)
                yield looked_at(run.tables, source.model, TablesSeen(source.name), of_table)
            except QueryFailed as failure:
                report.warn(RunnerWarning("source-unreadable", f'without any row of "{node.name}": {failure.message}'))
