"""How far mirrors have got: for the page of a project."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from runner.counts import counted
from runner.engine.tables import Tables
from runner.project.mirror import Mirror, MirrorQuery
from runner.project.nodes import Node
from runner.project.tables_seen import ends_with
from runner.render import name as quoted
from runner.run.run import Run
from runner.run.verified import VERIFIED, show_results

State = list[tuple[str, str]]
"""Facts about a mirror in words, each with its name."""


def mirror_states(run: Run, nodes: Iterable[Node]) -> dict[str, State]:
    """Returns the facts about the tables of mirrors by the names of their nodes: how far each has read, when rows were
    loaded, which statements were followed and which not, and what was found when it was last verified. Raises
    QueryFailed.
    """
    queries = {node.name: query for node in nodes if (query := _query(node))}
    read = {name: _read(run.tables, query) for name, query in queries.items()}
    wanted = {(model, batch) for positions in read.values() for model, batch in positions.items()}
    landed = {one: _landed(run.tables, *one) for one in sorted(wanted)}
    verified = _verified(run.tables) if queries else {}
    states = dict[str, State]()
    for name, query in queries.items():
        is_built = bool(read[name])
        told = _state(query.mirror, read[name], landed) + _statements(run, query) if is_built else [("read", "nothing")]
        states[name] = told + verified.get(name, [])
    return states


def _verified(tables: Tables) -> dict[str, State]:
    show_results(tables, VERIFIED)
    rows = tables.spark.rows(tables.macro("all_rows", quoted(VERIFIED)))[1]
    return {row["mirror"]: [("verified", _found(row))] for row in rows}


def _found(row: Mapping[str, Any]) -> str:
    found = f"{counted(row['differences'], 'row')} differed" if row["differences"] else "no difference"
    through = f", for what happened up to {row['verified_through']}" if row["verified_through"] else ""
    return f"{row['verified_at']}: {found}{through}"


def _query(node: Node) -> MirrorQuery | None:
    query = node.model.query if node.model else None
    return query if isinstance(query, MirrorQuery) else None


def _read(tables: Tables, query: MirrorQuery) -> dict[str, int]:
    """Returns the newest batch that a mirror has read of each changelog; nothing if it was never built."""
    recorded = tables.progress(query.model).recorded()
    return (
        {model: position.batch for model, position in recorded.read.items() if position.batch >= 0} if recorded else {}
    )


def _landed(tables: Tables, model: str, batch: int) -> list[Mapping[str, Any]]:
    """Returns the newest change and the newest loaded row of each table among the first batches of a changelog."""
    return list(tables.spark.rows(tables.macro("newest_of_tables", model, batch))[1])


def _state(mirror: Mirror, read: Mapping[str, int], landed: Mapping[tuple[str, int], list[Mapping[str, Any]]]) -> State:
    state: State = []
    for table in mirror.tables:
        model, name = table.source.model, ".".join(table.name)
        rows = [row for row in landed.get((model, read.get(model, -1)), []) if ends_with(row["names"], table.name)]
        newest = max((row["newest"] for row in rows if row["newest"]), default=None)
        loaded = max((row["loaded"] for row in rows if row["loaded"]), default=None)
        batch = read.get(model, -1)
        upto = f"batch {batch} of {table.source.name}" if batch >= 0 else "nothing"
        state.append(("read", f"{name}: {upto}" + (f", changes up to {newest}" if newest else "")))
        if loaded:
            state.append(("loaded", f"{name}: rows of loads up to {loaded}"))
    return state


def _statements(run: Run, query: MirrorQuery) -> State:
    told = run.statements.of(query.mirror)
    followed = len(
        {(one.row["source"], one.row["batch"], one.row["statement"], *one.row["arrival"]) for one in told.effects}
    )
    lost = [("not followed", one.note) for one in told.lost]
    return [("statements followed", str(followed or "")), *lost, *(("known", one.note) for one in told.acknowledged)]
