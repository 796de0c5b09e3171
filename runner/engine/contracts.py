"""Compares the columns that are promised of tables with the columns that queries give."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace

from runner.engine.errors import QueryFailed, explained
from runner.errors import nearest_or_all
from runner.storage.data import Layout, Part

BROKEN = re.compile(r"the contract of .* is broken: null in .*?(?= SQLSTATE|\n|$)")


def check_contract(name: str, promised: Mapping[str, str], found: Mapping[str, str]) -> None:
    """Raises QueryFailed, with all columns that differ, if a query gives other columns or types than are promised."""
    names = {as_written(column, found): column for column in promised}
    differences = [
        *(
            f'"{promised_as}": expected {promised[promised_as]}, found {found.get(column, "no such column")}'
            for column, promised_as in names.items()
            if found.get(column) != promised[promised_as]
        ),
        *(f'"{column}": not in the contract, found {kind}' for column, kind in found.items() if column not in names),
    ]
    if differences:
        raise QueryFailed("\n  ".join([f'the contract of "{name}" is broken:', *differences]))


def broken_contract_explained() -> AbstractContextManager[None]:
    """Shortens an error about nulls to what the user needs."""
    return explained(BROKEN, "nothing was written")


def layout_of_columns(name: str, layout: Layout, columns: Collection[str]) -> Layout:
    """Returns the layout with its columns named as the table has them; raises QueryFailed for a column that the table
    does not have.
    """
    return replace(
        layout,
        partition_by=tuple(_part(name, "partition_by", part, columns) for part in layout.partition_by),
        cluster_by=tuple(_part(name, "cluster_by", part, columns) for part in layout.cluster_by),
        comments=layout.comments and {as_written(column, columns): text for column, text in layout.comments.items()},
    )


def _part(name: str, setting: str, part: Part, columns: Collection[str]) -> Part:
    column = as_written(part.column, columns)
    if column not in columns:
        hint = nearest_or_all(column, columns)
        raise QueryFailed(f'"{setting}" of "{name}" names "{column}", which is not one of its columns: {hint}')
    return replace(part, column=column)


TWO_ROWS_OF_ONE_KEY = re.compile(r"two new rows of .* have one key: .*?(?= SQLSTATE|\n|$)")


def columns_after(
    name: str, had: Mapping[str, str], sent: Mapping[str, str], key: Iterable[str], on_schema_change: str
) -> list[str]:
    """Returns the columns of a table after an increment, given its columns and those of the new rows with their types.
    Raises QueryFailed if `on_schema_change` does not allow the difference.
    """
    checked_key(name, key, sent)
    new, gone = [c for c in sent if c not in had], [c for c in had if c not in sent]
    retyped = [f"{c} ({had[c]}, now {sent[c]})" for c in sent if had.get(c, sent[c]) != sent[c]]
    if retyped or (on_schema_change == "fail" and (new or gone)) or (on_schema_change == "ignore" and gone):
        changes = [
            f"{what} {', '.join(which)}"
            for what, which in (("new:", new), ("gone:", gone), ("with another type:", retyped))
            if which
        ]
        other = "" if retyped else ", or see on_schema_change"
        raise QueryFailed(
            f'the columns of "{name}" have changed ({"; ".join(changes)}): --full-refresh rebuilds it{other}'
        )
    if on_schema_change == "sync_all_columns":
        return [*(c for c in had if c in sent), *new]
    return [*had, *(new if on_schema_change == "append_new_columns" else [])]


def checked_key(name: str, key: Iterable[str], sent: Iterable[str]) -> tuple[str, ...]:
    """Returns a unique key with its columns as they are written in a table; raises QueryFailed for a column that is not
    there.
    """
    columns = list(sent)
    found = tuple(as_written(column, columns) for column in key)
    if missing := [column for column in found if column not in columns]:
        raise QueryFailed(f'the unique key "{missing[0]}" is not a column of "{name}": {", ".join(columns)}')
    return found


def as_written(column: str, others: Iterable[str]) -> str:
    """Returns a column as it is written among others, which may differ in case.

    >>> as_written("id", ["Id", "n"]), as_written("x", ["Id"])
    ('Id', 'x')
    """
    return next((other for other in others if other.lower() == column.lower()), column)


def duplicate_keys_explained() -> AbstractContextManager[None]:
    """Shortens an error about two rows with one key to what the user needs."""
    return explained(TWO_ROWS_OF_ONE_KEY, "a unique key must tell the rows of one run apart")
