"""The columns of a table after an increment, and what an increment refuses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager

from runner.engine.errors import QueryFailed, explained

TWO_ROWS_OF_ONE_KEY = re.compile(r"two new rows of .* have one key: .*?(?= SQLSTATE|\n|$)")


def columns_after(
    name: str, had: Mapping[str, str], sent: Mapping[str, str], key: Iterable[str], on_schema_change: str
) -> list[str]:
    """The columns of a table after an increment, given its columns and those of the new rows with their types. Raises
    QueryFailed if `on_schema_change` does not allow the difference.
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
    """A unique key as its columns are written among those of a table; raises QueryFailed for one that is not there."""
    columns = list(sent)
    found = tuple(as_written(column, columns) for column in key)
    if missing := [column for column in found if column not in columns]:
        raise QueryFailed(f'the unique key "{missing[0]}" is not a column of "{name}": {", ".join(columns)}')
    return found


def as_written(column: str, others: Iterable[str]) -> str:
    """A column as it is written among others, which may differ in case.

    >>> as_written("id", ["Id", "n"]), as_written("x", ["Id"])
    ('Id', 'x')
    """
    return next((other for other in others if other.lower() == column.lower()), column)


def duplicate_keys_explained() -> AbstractContextManager[None]:
    """Shortens an error about two rows with one key to what the user needs."""
    return explained(TWO_ROWS_OF_ONE_KEY, "a unique key must tell the rows of one run apart")
