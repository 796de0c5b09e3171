"""A mirror: a copy of a database's table, made from its changes. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from typing import Any, NamedTuple

from runner.errors import Where
from runner.project.inputs import Place, Source
from runner.storage.data import Layout

HISTORY = "_history"
META = "meta."


class Step(NamedTuple):
    """A step of a query, printed by the macro `step_<name>`; `columns` are those that not every such step has."""

    name: str
    reads: str
    columns: list[str]


class Called(NamedTuple):
    """A name that a table had, from the statement with the number `since` until that with the number `until`; a number
    is 0 if there is no such statement.
    """

    name: tuple[str, ...]
    since: int = 0
    until: int = 0

    @property
    def depth(self) -> str:
        """The ending of the macros `of_table_<depth>`: how many parts the name has besides the table."""
        return ("anywhere", "in_one", "in_several")[min(len(self.name), 3) - 1]


@dataclass(frozen=True)
class MirroredTable:
    """A table whose changes a source tells. `name` are the parts of its name, of which the first may be missing. `rows`
    is the view of the changes that are to be read; if it is empty, all changes are read. `names` are all names that the
    table ever had, if statements have changed them. `after` are places in the log at which dumps were taken: changes up
    to these places are in a dump that the mirror reads before.
    """

    source: Source
    name: tuple[str, ...]
    rows: str = ""
    names: tuple[Called, ...] = ()
    after: tuple[Place, ...] = ()

    @property
    def called(self) -> tuple[Called, ...]:
        return self.names or (Called(self.name),)

    @property
    def has_repairs(self) -> bool:
        """True if its rows are those with which `runner verify --repair` repairs a mirror."""
        return self.source.messages.are_repairs

    @property
    def ways(self) -> Mapping[str, str]:
        """The endings that this table gives to the names of macros that have several variants."""
        has_halves = self.source.format.has_halves and not self.rows
        log = "named" if "log" in self.source.format.meta else "unnamed"
        reads = "with_halves_joined" if has_halves else "as_landed"
        return {"reads": reads, "log": log, "told": "one_mirror" if self.has_repairs else "all_mirrors"}


@dataclass(frozen=True)
class MirrorColumn:
    """A column of a mirror. `sent_as` are other names under which messages send it; `meta.NAME` is the value in `meta`
    of the changelog under a name. `default` is the value of rows of which no change tells the column, if it
    `has_default`. `added_with` is the default that messages name for the column, for rows that were there before it.
    `is_key` is True for a column of the key.
    """

    name: str
    type: str
    sent_as: tuple[str, ...] = ()
    has_default: bool = False
    default: str | None = None
    added_with: str | None = None
    is_key: bool = False

    @property
    def ways(self) -> Mapping[str, str]:
        """The endings that this column gives to the names of macros that have several variants."""
        is_added = self.added_with is not None and not self.has_default
        untold = "added" if is_added else "null" if self.default is None else "default"
        return {"place": "key" if self.is_key else "row", "untold": untold}


@dataclass(frozen=True)
class Acknowledged:
    """A finding about a mirror that a person knows of. `what` is a `statement` that cannot be followed, the `drift` of
    a `column` that the mirror lacks, or the `unfit` values of a `column`. If there is a `through`, only changes before
    this instant, in microseconds, are meant. `because` says why they need nothing, `until` is the last day on which
    this holds, `where` the place at which it is written.
    """

    what: str
    because: str
    column: str = ""
    through: int | None = None
    until: date | None = None
    where: Where | None = field(default=None, repr=False, compare=False)

    def has_ended(self, today: date) -> bool:
        return self.until is not None and self.until < today

    def covers(self, at: int, today: date) -> bool:
        """Returns True if a person knows, today, of a change at an instant."""
        return (self.through is None or at < self.through) and not self.has_ended(today)

    def noted(self, finding: str) -> str:
        """Returns the note on a finding that is acknowledged."""
        until = f" until {self.until}" if self.until else ""
        return f"acknowledged{until} ({self.because}): {finding}"


@dataclass(frozen=True)
class Mirror:
    """
    A table as it is in its database, typed, made of its changes. Changes of a later table of `tables` come after those
    of an earlier one; only the rows of `repairs`, if there are any, stand among the changes of the table before it.
    `where` is an expression over the columns, and rows for which it is not true are left out.

    `without_key` says what becomes of changes of a table without a key. `on_truncate` says what happens when the table
    is emptied, `on_drift` when it has columns that the mirror lacks, except those that are `left_out`. `acknowledged`
    says of which findings a person knows. `renamed_from` are names that the mirror had before: repairs name their
    mirror as it was called then.
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
    acknowledged: tuple[Acknowledged, ...] = ()
    renamed_from: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def ways(self) -> Mapping[str, str]:
        """The endings that this mirror gives to the names of macros that have several variants. The key identifies a
        row, or all its values do; else each change is of a row of its own, or its row is not known.
        """
        return {
            "key": "columns" if self.key else "value",
            "by": "key" if self.key else {"append": "change", "reject": "nothing"}.get(self.without_key, "row"),
            "rejects": "unkeyed" if self.key else "all" if self.without_key == "reject" else "none",
            "rows": "copies" if self.without_key == "count" else "rows",
            "keeps": "where" if self.where else "all",
            "names": "several_names" if self.was_renamed else "one_name",
            "types": "values" if any(not one.is_key and one.type != "string" for one in self.columns) else "texts",
            "lists": "lists" if "unlisted" in self.sent_columns else "images",
            "defaults": "none" if all(one.added_with is None for one in self.columns) else "added",
            "unfit": "known_in_part" if self.known_unfit else "unknown",
        }

    def known(self, what: str) -> tuple[Acknowledged, ...]:
        """Returns what is acknowledged of findings of a kind, also what has ended."""
        return tuple(one for one in self.acknowledged if one.what == what)

    @property
    def known_unfit(self) -> tuple[Acknowledged, ...]:
        """What is acknowledged of values that do not fit their types."""
        return self.known("unfit")

    @property
    def meta_names(self) -> tuple[str, ...]:
        """The names in `meta` under which columns are sent."""
        sent = (name for column in self.columns for name in column.sent_as)
        return tuple(name.removeprefix(META) for name in sent if name.startswith(META))

    @property
    def images(self) -> Mapping[str, str]:
        """The images of a change, each with the values of `meta` that are laid into it."""
        new, old = ("with_new", "with_old") if self.meta_names else ("alone", "alone")
        return {"key": new, "old_key": old, "before": old, "after": new}

    @property
    def sent_names(self) -> list[tuple[str, str]]:
        """The names under which columns may be sent, in lower case, each with the name of its column in the mirror."""
        return [(sent.lower(), one.name) for one in self.columns for sent in (one.name, *one.sent_as)]

    @property
    def called(self) -> list[tuple[int, MirroredTable, int, Called]]:
        """All names that the tables of this mirror had, with the number of the table and that of the name."""
        return [
            (rank - table.has_repairs, table, *one)
            for rank, table in enumerate(self.tables)
            for one in enumerate(table.called)
        ]

    @property
    def called_columns(self) -> list[str]:
        """The columns that say under which name of its table a change was sent, if there were several names."""
        return ["called", "called_since", "called_until"] * self.was_renamed

    @property
    def key_columns(self) -> list[MirrorColumn]:
        return [column for key in self.key for column in self.columns if column.name == key]

    @property
    def keyed_comment(self) -> str:
        both = " A change of the key is of two rows." if self.ways["by"] != "change" else ""
        return f"The row that each change is of.{both}"

    @property
    def sent_columns(self) -> list[str]:
        """The columns `defaults` and `unlisted` of steps, if messages may name defaults, or all columns of a table."""
        types = [table.source.format.types for table in self.tables if table.source.format.types]
        return ["defaults"] * any(one.default for one in types) + ["unlisted"] * any(one.at for one in types)

    @property
    def dumps(self) -> list[tuple[int, MirroredTable]]:
        """The tables whose rows are those of a dump, each with its number."""
        return [(rank, table) for rank, table in enumerate(self.tables) if table.source.messages.dump]

    @property
    def repairs(self) -> MirroredTable | None:
        """The table of the rows that repair this mirror, which is the last one."""
        return self.tables[-1] if self.tables[-1].has_repairs else None

    @property
    def logged(self) -> tuple[MirroredTable, ...]:
        """The tables whose changes logs or dumps tell."""
        return tuple(table for table in self.tables if not table.has_repairs)

    @property
    def statements_read(self) -> dict[str, tuple[Place, ...]]:
        """The places after which the statements of each model count."""
        return {table.source.model: table.after for table in self.tables}

    @property
    def takes_increments(self) -> bool:
        """True if new changes alone say which rows change. That is not so without a key, where halves of an update must
        find each other, and where the source of a row does not tell which of the tables it was in.
        """
        has_halves = any(table.source.format.has_halves for table in self.tables)
        return bool(self.key) and not has_halves and len(self.models) == len(self.tables)

    @property
    def all_names(self) -> tuple[str, ...]:
        """The name of this mirror, and those that it had before."""
        return (self.name, *self.renamed_from)

    @property
    def was_renamed(self) -> bool:
        """True if a table of this mirror had another name."""
        return any(table.names for table in self.tables)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that land the changes of this mirror."""
        return tuple(dict.fromkeys(table.source.model for table in self.tables))


# The endings of the names of tables beside mirrors, and the columns that mirrors have themselves, with their types.
BESIDE = {"state": "__gone", "history": "__known"}
OF_CHANGE = {"_changed_at": "timestamp", "_seq": "string", "_source": "string"}
VALID = {"valid_from": "timestamp", "valid_to": "timestamp", "is_current": "boolean"}
UNFIT = {"_unfit": "map<string,string>"}
OWN_COLUMNS = {
    "state": {**OF_CHANGE, "_in_parts": "boolean", "_untold": "array<string>", **UNFIT},
    "history": {**VALID, "op": "string", **OF_CHANGE, **UNFIT},
}


@dataclass(frozen=True)
class MirrorQuery:
    """
    The rows of a mirror, printed by the macro `mirror_<shows>`: its `state` or its `history`. `layout` is how their
    table is kept.

    The other fields are known facts about the changes that the query reads. `has_statements` is True if statements may
    have changed rows, `has_parts` if changes may tell parts of a row. `numbered_in` is the log in which all changes are
    numbered. `bounds` are the values between which the columns of the key are. With a `share` less than 1, the query is
    of that share of all keys.
    """

    mirror: Mirror
    shows: str
    layout: Layout = field(default_factory=Layout)
    has_statements: bool = True
    has_parts: bool = True
    numbered_in: str | None = None
    bounds: tuple[tuple[MirrorColumn, str, str], ...] = ()
    share: Any = 1

    @property
    def model(self) -> str:
        """The name of the model that has these rows."""
        return f"{self.mirror.name}{HISTORY}" if self.shows == "history" else self.mirror.name

    @property
    def beside(self) -> str:
        """The name of the table beside this one: up to where rows are known that are gone, or all rows of a history."""
        return f"{self.model}{BESIDE[self.shows]}"

    @property
    def columns(self) -> Mapping[str, str]:
        """The columns of the table of this query, with their types."""
        return {**{column.name: column.type for column in self.mirror.columns}, **OWN_COLUMNS[self.shows]}

    @property
    def compared(self) -> list[str]:
        """The columns by which rows are compared. A row keeps the name that its source had when the row was told."""
        own = ("valid_from", "valid_to", "is_current", "op") if self.shows == "history" else ("_in_parts", "_untold")
        return [*(column.name for column in self.mirror.columns), *own, "_changed_at"]

    @property
    def shares(self) -> list[Any]:
        """The share of all keys that the query reads, if it does not read all."""
        return [self.share] if self.mirror.key and self.share != 1 else []

    @property
    def ways(self) -> Mapping[str, str]:
        """The endings that this query gives to the names of macros that have several variants. They depend on what may
        change rows, and on what tells if a new change comes after the known ones.
        """
        looks = "places" if self.has_parts or self.numbered_in is None else "numbers"
        decides, laid = ("parts", "over") if self.has_parts else (looks, "alone")
        after = "statements" if self.has_statements else "changes"
        return {"after": after, "looks": looks, "decides": decides, "laid": laid}

    @property
    def emptied(self) -> list[str]:
        """The column with the number of the statement that emptied the table after a change, if there may be one."""
        return ["emptied_nth"] * self.has_statements

    @property
    def steps(self) -> list[Step]:
        """The steps of the query. They lead from the changes, each with its row's key, to their order, and to the
        statements after each; for a state they lead to what is known of each row. As long as no change tells only parts
        of a row, the newest change tells the whole row.
        """
        mirror, formats = self.mirror, [table.source.format for table in self.mirror.tables]
        is_numbered, names_logs = any(one.seq for one in formats), any("log" in one.meta for one in formats)
        names, begins = ["came", "told_once", "ordered_as_told"], ["one_stretch"]
        if self.numbered_in is not None:
            names, begins = ["ordered_by_numbers"], ["told_at", "one_stretch"]
        elif is_numbered:
            names = ["came", "told_once", *["named"] * names_logs, "stretched", "ordered_in_stretches"]
            begins = ["stretches"]
        rows, copies, unlisted = mirror.ways["rows"], mirror.without_key == "count", "unlisted" in mirror.sent_columns
        known = [f"told_newest_{rows}", "unlisted_newest" if unlisted else "unlisted_never", "no_parts"]
        if self.has_parts or self.has_statements:
            told = "told_and_rewritten" if self.has_statements else "told_in_parts"
            known = ["parts", "unlisted_whole" if unlisted else "unlisted_never", "only_parts", told]
        columns = {
            "told_changes": ["copies"] * copies + ["still_unlisted"] * unlisted,
            "told_once": ["row_index"] * (not mirror.key),
            names[-1]: begins * self.has_statements,
            "known": ["copies_known"] * copies + known,
        }
        names += ["effects", "changes_and_statements"] if self.has_statements else ["changes"]
        steps = pairwise(["keyed", "told_changes", *names, *["known"] * (self.shows == "state")])
        return [Step(name, reads, columns.get(name, [])) for reads, name in steps]
