"""A mirror: a table of a database, made of its changes. Data only."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import NamedTuple

from runner.project.inputs import Source
from runner.storage.data import Layout

HISTORY = "_history"
META = "meta."


def lost_view(mirror: str) -> str:
    """The view of the statements about the table of a mirror that cannot be followed."""
    return f"{mirror}__lost"


def statements_view(mirror: str) -> str:
    """The view of what statements did to the table of a mirror."""
    return f"{mirror}__statements"


class Called(NamedTuple):
    """A name of a table, which it has from the statement with the number `since` until that with the number `until`; 0
    if there is none.
    """

    name: tuple[str, ...]
    since: int = 0
    until: int = 0


@dataclass(frozen=True)
class MirroredTable:
    """A table whose changes a source tells. `name` are the parts of its name, of which the first may be missing. `rows`
    is the view of the changes that are to be read; if it is empty, all are. `names` are all names that it ever had, if
    statements have changed them.
    """

    source: Source
    name: tuple[str, ...]
    rows: str = ""
    names: tuple[Called, ...] = ()

    @property
    def called(self) -> tuple[Called, ...]:
        return self.names or (Called(self.name),)


@dataclass(frozen=True)
class MirrorColumn:
    """A column of a mirror. `sent_as` are other names under which messages send it; `meta.NAME` is what `meta` of the
    changelog has at a name. `default` is what rows have of which no change tells the column, if it `has_default`;
    `added_with` what messages name as its default, for rows that were there before it.
    """

    name: str
    type: str
    sent_as: tuple[str, ...] = ()
    has_default: bool = False
    default: str | None = None
    added_with: str | None = None


@dataclass(frozen=True)
class Mirror:
    """
    A table as it is in its database, typed, made of its changes. Changes of a later table of `tables` come after those
    of an earlier one. `where` is an expression over the columns, and rows for which it is not true are left out.

    `without_key` says what becomes of changes of a table without a key; `on_truncate` and `on_drift` what happens when
    the table is emptied, and when it has columns that the mirror has not, except those that are `left_out`. Up to
    `acknowledged`, in microseconds, a person has looked at what cannot be followed.
    """

    name: str
    tables: tuple[MirroredTable, ...]
    key: tuple[str, ...]
    columns: tuple[MirrorColumn, ...]
    without_key: str = "reject"
    on_truncate: str = "delete"
    on_drift: str = "warn"
    left_out: tuple[str, ...] = ()
    where: str = ""
    acknowledged: int | None = None

    @property
    def meta_names(self) -> tuple[str, ...]:
        """The names in `meta` under which columns are sent."""
        sent = (name for column in self.columns for name in column.sent_as)
        return tuple(name.removeprefix(META) for name in sent if name.startswith(META))

    @property
    def tells_defaults(self) -> bool:
        """Whether a message may name the defaults of its table's columns."""
        return any(table.source.format.types and table.source.format.types.default for table in self.tables)

    @property
    def lists_columns(self) -> bool:
        """Whether a message may name all columns that its table has."""
        return any(table.source.format.types and table.source.format.types.at for table in self.tables)

    @property
    def takes_increments(self) -> bool:
        """Whether new changes alone say which rows change: not without a key, not where halves of an update must find
        each other, and not where the source of a row does not tell which of the tables it was in.
        """
        has_halves = any(table.source.format.has_halves for table in self.tables)
        return bool(self.key) and not has_halves and len(self.models) == len(self.tables)

    @property
    def was_renamed(self) -> bool:
        """Whether one of its tables had another name."""
        return any(table.names for table in self.tables)

    @property
    def drift(self) -> str:
        """What is done with columns that it does not have."""
        return f"{self.on_drift} {json.dumps(sorted(self.left_out))}"

    @property
    def state_columns(self) -> tuple[str, ...]:
        """The columns of the table that has its rows as they are."""
        own = ("_changed_at", "_seq", "_source", "_in_parts", "_untold", "_unfit")
        return (*(column.name for column in self.columns), *own)

    @property
    def history_columns(self) -> tuple[str, ...]:
        """The columns of the table that has its versions."""
        own = ("valid_from", "valid_to", "is_current", "op", "_changed_at", "_seq", "_source", "_unfit")
        return (*(column.name for column in self.columns), *own)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that land its changes."""
        return tuple(dict.fromkeys(table.source.model for table in self.tables))


# What the names of the tables beside mirrors end with.
BESIDE = {"state": "__gone", "history": "__known"}


@dataclass(frozen=True)
class MirrorQuery:
    """The rows of a mirror, printed by the macro `mirror_<shows>`: its `state` or its `history`. `layout` is how their
    table is kept.
    """

    mirror: Mirror
    shows: str
    layout: Layout = field(default_factory=Layout)

    @property
    def model(self) -> str:
        """The name of the model that has these rows."""
        return f"{self.mirror.name}{HISTORY}" if self.shows == "history" else self.mirror.name

    @property
    def beside(self) -> str:
        """The name of the table beside it: up to where rows are known that are gone, or all rows of a history."""
        return f"{self.model}{BESIDE[self.shows]}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its table."""
        return self.mirror.history_columns if self.shows == "history" else self.mirror.state_columns
