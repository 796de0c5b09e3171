"""What is promised of the columns of tables, compared with what queries give."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace

from runner.engine.errors import QueryFailed, explained
from runner.engine.increment import as_written
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
    """The layout, its columns named as the table has them; raises QueryFailed for one that it does not have."""
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
