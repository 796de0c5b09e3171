"""Random lives of tables, as vendors tell them: a simulated database with its rows, columns and names, which is loaded
again, fails over and runs statements.

A life is a table, and another one with which it exchanges names. All lives of a database are told in one log. Ids are
of one life only, so that one mirror may read all of its tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.logical_changes import FIRST_INSTANT, ORDERS, WRITTEN_AFTER, Change, Column

Row = dict[str, Any]
IDS_OF_A_LIFE = 1000
ROW_KINDS = ("insert", "insert", "insert", "update", "update", "update", "delete", "move", "swap")
STATEMENTS = (
    "truncate", "drop", "drop_both", "add_column", "add_column", "drop_column", "rename_column", "rename_column",
    "swap_names", "swap_names", "swap_names",
)  # fmt: skip
EMPTY = ("truncate", "drop", "drop_both", "load_anew")
# With each name that a table had, its query is longer.
MOST_SWAPS = 2
# How far a restart goes back at most, and how long it takes; how many changes may come before an earlier statement.
TOLD_AGAIN, RESTART, MOST_LATE = 12, 5000, 8
# Milliseconds between steps: many share a second.
PAUSES = (0, 0, 1, 7, 300, 1000, 2500)


class Added(NamedTuple):
    """A column that may be added: how a statement defines it, and what rows have that were there."""

    column: Column
    definition: str
    default: Any


ADDED = (
    Added(Column("colour", "string", "varchar(10)"), "varchar(10) default 'it''s red'", "it's red"),
    Added(Column("fee", "decimal", "decimal(10,2)"), "decimal(10,2) not null default 1.5", Decimal("1.50")),
    Added(Column("place", "integer", "int"), "int not null default -7", -7),
    Added(Column("remark", "string", "varchar(10)"), "varchar(10)", None),
)
# Columns that a statement renames, in both directions.
RENAMED = {"label": "title", "title": "label", "note": "memo", "memo": "note"}
# The columns that tables ever have, in the order of a mirror.
COLUMNS = {
    "id": "bigint",
    "label": "string",
    "title": "string",
    "amount": "decimal(10,2)",
    "note": "string",
    "memo": "string",
    "colour": "string",
    "fee": "decimal(10,2)",
    "place": "int",
    "remark": "string",
}


class Step(NamedTuple):
    """What happens to one of the lives: numbers choose among what is possible."""

    kind: str
    life: int
    pause: int
    row: int
    to: int
    values: Row


NUMBERS = st.integers(0, 99)
VALUES = {
    "string": st.sampled_from([None, "", "x", "已付", 'it\'s "so"']),
    "decimal": st.sampled_from([Decimal("1.50"), Decimal("-0.10"), Decimal("99999.00")]),
    "integer": st.integers(-3, 3),
}


def steps(kinds: Iterable[str], lives: int, number: int) -> st.SearchStrategy[list[Step]]:
    """What happens to so many lives, in so many steps: in the later ones nothing empties tables."""
    values = st.fixed_dictionaries({}, optional=VALUES)
    life, pause = st.integers(0, lives - 1), st.sampled_from(PAUSES)

    def some(kinds: list[str], number: int) -> st.SearchStrategy[list[Step]]:
        one = st.builds(Step, st.sampled_from(kinds), life, pause, NUMBERS, NUMBERS, values)
        return st.lists(one, min_size=number, max_size=number)

    all_kinds, last = list(kinds), number * 3 // 5
    calm = [kind for kind in all_kinds if kind not in EMPTY]
    return st.builds(list.__add__, some(all_kinds, number - last), some(calm, last))


@dataclass
class SimulatedTable:
    """A table as its database has it. `rows` are by their ids."""

    columns: tuple[Column, ...] = ORDERS.columns
    rows: dict[int, Row] = field(default_factory=dict)


@dataclass
class Database:
    """Tables, and the changes that tell of them: of `lives` pairs of tables. `dialect` is that of its statements;
    where nobody tells that a table is truncated, it never is.
    """

    lives: int
    dialect: str = "mysql"
    tells_truncate: bool = True
    now: int = FIRST_INSTANT
    server: int = 1
    order: int = 0
    tables: dict[str, SimulatedTable] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    swaps: Counter[str] = field(default_factory=Counter)

    def live(self, steps: Iterable[Step]) -> Database:
        for life in range(self.lives):
            for name in (table_of(life), other_of(life)):
                self.tables[name] = SimulatedTable()
                self.insert(name, Step("insert", life, 0, 0, 0, {}))
        for step in steps:
            self.now += step.pause
            is_of_other = step.kind in ROW_KINDS and (step.row + step.to) % 3 == 0
            name = (other_of if is_of_other else table_of)(step.life)
            takes_a_row = step.kind in ("update", "delete", "move", "swap")
            kind = "insert" if takes_a_row and not self.tables[name].rows else step.kind
            getattr(self, kind)(name, step)
        return self

    # --- rows

    def insert(self, name: str, step: Step) -> None:
        free = self._free(name, step, 16)
        if free:
            row = {column.name: self._value(column, step) for column in self.tables[name].columns}
            id_ = free[step.to % len(free)]
            self._change("insert", name, None, {**row, "id": id_})

    def update(self, name: str, step: Step) -> None:
        before = self._row(name, step.row)
        after = {column.name: self._value(column, step, before) for column in self.tables[name].columns}
        self._change("update", name, before, {**after, "id": before["id"]})

    def delete(self, name: str, step: Step) -> None:
        self._change("delete", name, self._row(name, step.row), None)

    def move(self, name: str, step: Step) -> None:
        """A key changes, and perhaps again."""
        row = self._row(name, step.row)
        for _ in range(1 + step.to % 3):
            free = self._free(name, step, 20)
            row = self._change("update", name, row, {**row, "id": free[step.to % len(free)]})

    def swap(self, name: str, step: Step) -> None:
        """Two rows exchange their keys, by way of one that is free."""
        one, other = (self._row(name, number) for number in (step.row, step.to))
        if one is not other:
            free = self._free(name, step, 99)[-1]
            moved = self._change("update", name, one, {**one, "id": free})
            self._change("update", name, other, {**other, "id": one["id"]})
            self._change("update", name, moved, {**moved, "id": other["id"]})

    # --- loads and failovers

    def load(self, name: str, step: Step) -> None:
        """The table is loaded again, after changes that nobody told."""
        table = self.tables[name]
        for row in [*table.rows.values()][: step.to % 3]:
            table.rows[row["id"]] = {
                column.name: row["id"] if column.name == "id" else self._value(column, step, row)
                for column in table.columns
            }
        for row in [*table.rows.values()]:
            self._tell("snapshot", name, after=dict(row))

    def load_anew(self, name: str, step: Step) -> None:
        """The table is emptied and filled without a word, and loaded then."""
        (self.truncate if step.row % 2 and self.tells_truncate else self.drop)(name, step)
        for id_ in self._free(name, step, 6)[: step.to % 5]:
            row = {column.name: self._value(column, step) for column in self.tables[name].columns}
            self.tables[name].rows[id_] = {**row, "id": id_}
        self.load(name, step)

    def failover(self, name: str, step: Step) -> None:
        """Another server numbers its own log."""
        self.server, self.order = self.server + 1, step.to % 5

    # --- statements

    def truncate(self, name: str, step: Step) -> None:
        self.tables[name].rows.clear()
        self._state("truncate", f"truncate table {name}", name)

    def drop(self, name: str, step: Step) -> None:
        self._state("drop", f"drop table {name}", name)
        self._create(name)

    def drop_both(self, name: str, step: Step) -> None:
        both = (other_of(step.life), name)
        self._state("drop", f"DROP TABLE `{both[0]}`,`{both[1]}` /* generated by server */", *both)
        for one in both:
            self._create(one)
        # Names are exchanged only with tables of which something is told.
        self.insert(both[0], step)

    def _create(self, name: str) -> None:
        self.tables[name] = SimulatedTable()
        definitions = ", ".join(f"{column.name} {column.type}" for column in ORDERS.columns)
        self._state("create", f"create table {name} ({definitions}, primary key (id))", name)

    def add_column(self, name: str, step: Step) -> None:
        table = self.tables[name]
        possible = [one for one in ADDED if one.column not in table.columns]
        if possible:
            added = possible[step.to % len(possible)]
            table.columns += (added.column,)
            for row in table.rows.values():
                row[added.column.name] = added.default
            self._state("alter", f"alter table {name} add column {added.column.name} {added.definition}", name)

    def drop_column(self, name: str, step: Step) -> None:
        table = self.tables[name]
        possible = [column for column in table.columns if column.name not in ("id", "amount")]
        if possible:
            dropped = possible[step.to % len(possible)]
            table.columns = tuple(column for column in table.columns if column is not dropped)
            for row in table.rows.values():
                del row[dropped.name]
            self._state("alter", f"alter table {name} drop column {dropped.name}", name)

    def rename_column(self, name: str, step: Step) -> None:
        table = self.tables[name]
        possible = [column for column in table.columns if column.name in RENAMED]
        if possible:
            old = possible[step.to % len(possible)]
            new = replace(old, name=RENAMED[old.name])
            table.columns = tuple(new if column is old else column for column in table.columns)
            table.rows = {
                id_: {new.name if key == old.name else key: value for key, value in row.items()}
                for id_, row in table.rows.items()
            }
            is_changed = self.dialect == "mysql" and step.row % 2
            words = (
                f"change {old.name} {new.name} {new.type}" if is_changed else f"rename column {old.name} to {new.name}"
            )
            self._state("alter", f"alter table {name} {words}", name)

    def swap_names(self, name: str, step: Step) -> None:
        """As tools do that change tables beside their use: the other table takes the name of this one."""
        other, free = other_of(step.life), f"free_{step.life}"
        self.swaps[name] += 1
        if self.swaps[name] > MOST_SWAPS:
            return
        moves = ((name, free), (other, name), (free, other))
        self.tables[name], self.tables[other] = self.tables[other], self.tables[name]
        if self.dialect == "mysql":
            words = ", ".join(f"{old} to {new}" for old, new in moves)
            self._state("rename", f"rename table {words}", *(old for old, _ in moves))
        else:
            for old, new in moves:
                self._state("rename", f"alter table {old} rename to {new}", old)

    # --- what is told

    def _change(self, op: str, name: str, before: Row | None, after: Row | None) -> Row:
        rows = self.tables[name].rows
        if before is not None:
            del rows[before["id"]]
        if after is not None:
            rows[after["id"]] = after
        self._tell(op, name, before=before and dict(before), after=after and dict(after))
        return after or {}

    def _state(self, op: str, words: str, *names: str) -> None:
        """Tells a statement. The first of the names is the table that messages name."""
        self._tell(op, names[0], statement=words, names=names if len(names) > 1 else ())

    def _tell(self, op: str, name: str, **more: Any) -> None:
        self.order += 1
        columns = self.tables[name].columns if name in self.tables else ORDERS.columns
        instant, number = self.now, len(self.changes)
        place = {"order": self.order, "server": self.server, "instant": instant, "written": instant + WRITTEN_AFTER}
        table = replace(ORDERS, name=name, columns=columns)
        self.changes.append(Change(f"step_{number}", op, table, transaction=f"transaction-{number}", **place, **more))

    # --- what is chosen

    def _row(self, name: str, number: int) -> Row:
        rows = [*self.tables[name].rows.values()]
        return rows[number % len(rows)]

    def _free(self, name: str, step: Step, most: int) -> list[int]:
        """Ids that no row of the table has; the two tables of a life may have the same ones."""
        first = step.life * IDS_OF_A_LIFE
        rows = self.tables[name].rows
        return [first + number for number in range(1, most) if first + number not in rows]

    def _value(self, column: Column, step: Step, row: Row | None = None) -> Any:
        """What a change gives a column; what a row has, where it gives none."""
        return step.values.get(column.kind, row[column.name] if row else defaults().get(column.name))


class Teller(NamedTuple):
    """What a vendor tells: whether it tells loads, of which server a change is, and which statements. `numbers` are
    those of its messages: of `all`, which then may come late, of `rows` but not of statements, or of `none`.
    """

    numbers: str
    loads: bool = False
    names_server: bool = False
    statements: tuple[str, ...] = STATEMENTS
    dialect: str = "mysql"

    @property
    def kinds(self) -> tuple[str, ...]:
        """The steps of its lives."""
        loads = ("load", "load_anew") if self.loads else ()
        return (*ROW_KINDS * 5, *self.statements, *loads * 2, *(("failover",) * 4 if self.names_server else ()))


TELLERS = {
    "canal": Teller("none"),
    "oms_canal": Teller("none", loads=True),
    "oms_default": Teller("rows", loads=True),
    "oms_default_extend": Teller("rows", loads=True),
    "oms_dataworks": Teller("rows", loads=True),
    "oceanbase_canal": Teller("all"),
    "drs_json": Teller("all", loads=True),
    "drs_json_c": Teller("all", loads=True),
    "drs_sql": Teller("all", dialect="postgresql"),
    "dataworks": Teller("all", loads=True),
    "maxwell": Teller("all", loads=True, names_server=True, statements=STATEMENTS[1:]),
}


def as_told(changes: list[Change], teller: Teller, restarts: int, chance: Random) -> list[Change]:
    """Changes in the order in which a tool sends them: statements come late where numbers give their place, and after
    restarts some are told again.
    """
    told = late(changes, chance) if teller.numbers == "all" else list(changes)
    ends = sorted(chance.sample(range(1, len(told)), restarts))
    out: list[Change] = []
    clock = 0
    for end, after in pairwise([0, *ends, len(told)]):
        start = end
        while start and end - start < TOLD_AGAIN and is_told_again(told[start - 1], told[end - 1]):
            start -= 1
        clock += RESTART if end else 0
        for change in told[chance.randint(start, end) : after]:
            clock = max(clock, change.written)
            out.append(replace(change, written=clock))
    return out


def is_told_again(change: Change, last: Change) -> bool:
    """Whether a restart may go back over a change: not over loads, nor into the log of another server."""
    return change.op != "snapshot" and change.server == last.server


def late(changes: list[Change], chance: Random) -> list[Change]:
    """Some statements after changes that come after them."""
    told = list(changes)
    for place in reversed(range(len(told))):
        later = place
        while later - place < MOST_LATE and later + 1 < len(told) and is_overtaken(told[place], told[later + 1]):
            later += 1
        if told[place].kind == "ddl" and chance.random() < 0.8:
            told.insert(chance.randint(place, later), told.pop(place))
    return told


def is_overtaken(statement: Change, change: Change) -> bool:
    return change.kind == "row" and is_told_again(change, statement)


def defaults() -> dict[str, Any]:
    return {"label": "new", "amount": Decimal("2.00")} | {one.column.name: one.default for one in ADDED}


def table_of(life: int) -> str:
    return f"orders_{life}"


def other_of(life: int) -> str:
    return f"others_{life}"


def as_mirrored(row: Row) -> Row:
    """A row as results show that of a mirror: with all columns, of which those that its table has not are null."""
    return {name: str(row[name]) if isinstance(row.get(name), Decimal) else row.get(name) for name in COLUMNS}
