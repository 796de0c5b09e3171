"""Columns of a table that its mirror does not have, or that a dump does not tell: what is done, and what is said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from runner.engine.errors import QueryFailed
from runner.engine.tables import Tables
from runner.project.mirror import Acknowledged, Mirror, MirrorColumn
from runner.project.mirrors import taken_columns


def after_findings(mirror: Mirror, shows: str, found: Mapping[str, Any]) -> tuple[Mirror, tuple[str, ...]]:
    """Returns the mirror with the columns that are added to it, and notes on what it lacks; raises QueryFailed for
    columns of which no person knows, if `on_drift` is `fail`.
    """
    known = _known(mirror, "drift")
    noted = [column for column in found["unknown_columns"] if column.lower() in known]
    unknown = [column for column in found["unknown_columns"] if column not in noted]
    if unknown and mirror.on_drift == "fail":
        raise QueryFailed(f"on_drift is fail, and {_not_here(unknown)}")
    taken = taken_columns(shows == "history") if mirror.on_drift == "add" else set(unknown)
    added = [column for column in unknown if column.lower() not in taken]
    left = [column for column in unknown if column not in added]
    notes = (
        *_notes(mirror, added, left),
        *_without_key(mirror, found["without_key"]),
        *(known[column.lower()].noted(_not_here([column])) for column in noted),
        *_lacking(mirror, found),
    )
    return with_texts(mirror, added) if added else mirror, notes


def _known(mirror: Mirror, what: str) -> dict[str, Acknowledged]:
    """Returns what a person knows today, whenever it came, by columns in lower case."""
    today = datetime.now(timezone.utc).date()
    known = (one for one in mirror.known(what) if one.through is None and not one.has_ended(today))
    return {one.column.lower(): one for one in known}


def with_texts(mirror: Mirror, columns: Iterable[str]) -> Mirror:
    return replace(mirror, columns=(*mirror.columns, *(MirrorColumn(one, "string") for one in columns)))


def defaults_told(tables: Tables, mirror: Mirror) -> dict[str, str]:
    """Returns the defaults that messages name of the columns of a mirror."""
    if "defaults" not in mirror.sent_columns:
        return {}
    return {row["column"]: row["value"] for row in tables.spark.rows(tables.macro("defaults_told", mirror))[1]}


def with_defaults(mirror: Mirror, defaults: Mapping[str, str]) -> Mirror:
    """Returns the mirror with the values that rows have in columns that were added after them."""
    columns = tuple(replace(one, added_with=defaults.get(one.name)) for one in mirror.columns)
    return replace(mirror, columns=columns) if defaults else mirror


def _notes(mirror: Mirror, added: list[str], left: list[str]) -> Iterator[str]:
    if added:
        yield f"added as text: {_quoted(added)}; give them a type under columns"
    if left and mirror.on_drift == "add":
        yield f"not added, since a mirror has columns of these names itself: {_quoted(left)}"
    elif left:
        yield f"{_not_here(left)}: give them a type under columns, or name them under left_out"


def _without_key(mirror: Mirror, count: int) -> Iterator[str]:
    """Yields a note on changes that are left out, if there are any: a person knows of them who knows that the values of
    all columns of the key may not fit.
    """
    if count:
        changes, them = ("1 change tells", "it") if count == 1 else (f"{count} changes tell", "them")
        what = f"no key of its type ({', '.join(mirror.key)})" if mirror.key else "no key that is named here"
        known, keys = _known(mirror, "unfit"), [column.lower() for column in mirror.key]
        finding = f"{changes} {what}, and the mirror is without {them}"
        yield known[keys[0]].noted(finding) if keys and set(keys) <= known.keys() else finding


def _lacking(mirror: Mirror, found: Mapping[str, Any]) -> Iterator[str]:
    """Yields a note for each dump of which no row tells all columns of the mirror."""
    for rank, table in mirror.dumps:
        told = {name.lower() for name in found[f"told_by_{rank}"]}
        lacking = [one.name for one in mirror.columns if not one.has_default and one.name.lower() not in told]
        if told and lacking:
            name = ".".join(table.name)
            yield f"the dump of {name} in {table.source.name} lacks columns, unknown until told: {_quoted(lacking)}"


def _not_here(unknown: Iterable[str]) -> str:
    return f"the table has columns that the mirror does not have: {_quoted(unknown)}"


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
