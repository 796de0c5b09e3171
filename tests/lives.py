"""Random lives of tables: what a database held after each of its changes, the messages that tell of them, and a plain
reference of what a mirror makes of messages (runner/project/mirrors.py).

A life is data: a list of steps, which hypothesis draws and shrinks. `Life` carries them out on a simulated table. Many
lives make one batch for Spark: the number of a life is part of its keys.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple, TypeVar

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

# Where its mirrors may be stored.
PROJECT = """
name: mirrored
target: {storage}
targets:
  parquet: {{path: lake/parquet}}
  delta: {{storage: delta, path: lake/delta}}
  iceberg: {{storage: iceberg, path: lake/iceberg, catalog: {{type: hadoop}}}}
sources:
  - {{name: shop, format: everything, files: in/*}}
"""
# Another source, whose tables are loaded again and whose servers fail over.
LOGGED_SOURCE = "  - {name: logged, format: logged, files: logged/*}\n"
# A format of our own, which can tell all that a changelog can hold.
FORMAT = """\
about: A dialect that tells everything
op:
  by: op
  cases:
    I: insert
    U: update
    P: {row: update, after: {at: new, image: patch}}
    D: delete
    S: snapshot
    T: {ddl: truncate}
after: new
before: old
table_name: table
key: {names: key}
types: {at: types, table: mysql}
event_time: {at: at, as: epoch_ms}
seq: [n]
"""
# The same, but loaded rows have no numbers, and each server numbers its own log.
LOGGED = """\
extends: everything
loads: unnumbered
produced_at: {at: sent, as: epoch_ms}
meta: {log: server}
"""
# A mirror of one of its tables, with all that may become of a row.
MIRROR = """
  - name: {name}
    of: {{source: {source}, table: {name}}}
    key: [life, id]
    columns: {{life: int, id: bigint, a: string, b: "decimal(10,2)", c: string}}
    history: true
    data_tests: [mirrored]
"""
KEY = ("life", "id")
TYPES = {"life": "int", "id": "bigint", "a": "varchar(20)", "b": "decimal(10,2)", "c": "varchar(20)"}
FIRST_MOMENT = 1714528800000
Row = Mapping[str, str | None]
Drawn = TypeVar("Drawn")
Sent = TypeVar("Sent")


class Message(NamedTuple):
    """What is told of one change, and its number, which gives the order of all that one server tells."""

    op: str
    n: int
    at: int
    old: Row | None = None
    new: Row | None = None
    server: int = 0
    sent: int = 0

    def text(self, table: str) -> str:
        """The message as it is sent."""
        told = {"op": self.op, "n": self.n, "at": self.at, "table": table, "key": list(KEY), "types": TYPES}
        return json.dumps({**told, "old": self.old, "new": self.new})

    def logged(self, table: str) -> str:
        """The same with the server that numbers it, and when it was sent; a loaded row has no time of its own."""
        told = json.loads(self.text(table)) | {"server": str(self.server), "sent": self.sent}
        return json.dumps(told | ({"at": None} if self.op == "S" else {}))


# --- what is drawn


class Step(NamedTuple):
    """A change of whatever rows there are then: numbers choose among what is possible."""

    kind: str
    pause: int
    row: int
    to: int
    values: Row
    told: str


CHANGES = ("insert", "update", "update", "delete", "move", "swap", "load")
LOGGED_CHANGES = (*(kind for kind in CHANGES if kind != "load"), "unseen", "reload", "failover")
# The clock of a database is set back now and then.
PAUSES = (0, 0, 1, 7, 1000, -3)
# Of a change: both rows, the new one, and of an update what has changed, as a row or as a patch.
TOLD = ("both", "new", "parts", "patch")
VALUES = {
    "a": st.sampled_from([None, "", "x", "y", "é"]),
    "b": st.sampled_from([None, "1.50", "2", "-3.25"]),
    "c": st.sampled_from("pqr"),
}
NUMBERS = st.integers(0, 99)


def steps(
    most: int, least: int = 0, kinds: Iterable[str] = CHANGES, told: Iterable[str] = TOLD
) -> st.SearchStrategy[list[Step]]:
    """The steps of a life."""
    values = st.fixed_dictionaries({}, optional=VALUES)
    one = st.builds(
        Step, *map(st.sampled_from, (list(kinds), PAUSES)), NUMBERS, NUMBERS, values, st.sampled_from(list(told))
    )
    return st.lists(one, min_size=least, max_size=most)


def drawn(draw_one: Callable[[Callable[..., Any], int], Drawn], number: int) -> list[Drawn]:
    """One batch of so many examples; `draw_one` is given what draws from a strategy, and the number of the example."""
    found: list[Drawn] = []

    @settings(max_examples=number, phases=[Phase.generate])
    @given(st.data())
    def draw_all(data: st.DataObject) -> None:
        found.append(draw_one(data.draw, len(found)))

    draw_all()
    assert len(found) == number
    return found


def shuffled(sent: list[Sent], runs: int, chance: Random) -> list[list[Sent]]:
    """What each of some runs reads: all in any order, a quarter of it twice."""
    told = sent + chance.sample(sent, len(sent) // 4)
    chance.shuffle(told)
    return [told[run::runs] for run in range(runs)]


# --- a table as its database has it


@dataclass
class Life:
    """A table, and the messages that tell of its changes. `rows` are by their keys."""

    number: int
    now: int = FIRST_MOMENT
    rows: dict[str, Row] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    server: int = 0
    numbers: int = 0
    has_unseen: bool = False

    def live(self, steps: Iterable[Step]) -> Life:
        for step in steps:
            self.now += step.pause
            match step.kind if self.rows or step.kind == "empty" else "insert":
                case "insert":
                    self.insert(step.to, {"a": None, "b": None, "c": "q", **step.values})
                case "update":
                    self.update(self._one(step.row), step.values, step.told)
                case "delete":
                    self.delete(self._one(step.row), is_whole=step.told == "both")
                case "move":
                    self.move(self._one(step.row), step.to, times=1 + step.to % 3)
                case "swap":
                    self.swap(self._one(step.row), self._one(step.to))
                case "load":
                    self.load(self._one(step.row))
                case "empty":
                    self.empty()
                case "unseen":
                    # A change that nobody tells, until the table is loaded again.
                    id_, self.has_unseen = self._one(step.row), True
                    self.rows[id_] = {**self.rows[id_], **step.values}
                case "reload":
                    self.reload()
                case "failover":
                    self.server, self.numbers = self.server + 1, step.to % 5
        if self.has_unseen:
            self.reload()
        return self

    def insert(self, to: int, values: Row) -> None:
        free = self._free(6)
        if free:
            id_ = free[to % len(free)]
            self.rows[id_] = self._key(id_) | values
            self._tell("I", new=self.rows[id_])

    def update(self, id_: str, values: Row, told: str) -> None:
        before = self.rows[id_]
        after = self.rows[id_] = {**before, **values}
        parts = {name: value for name, value in after.items() if name in KEY or before[name] != value}
        op = "P" if told == "patch" else "U"
        self._tell(op, before if told == "both" else None, after if told in ("both", "new") else parts)

    def delete(self, id_: str, is_whole: bool) -> None:
        before = self.rows.pop(id_)
        self._tell("D", before if is_whole else self._key(id_))

    def move(self, id_: str, to: int, times: int) -> None:
        """A key changes, and perhaps again, to one that is free."""
        for _ in range(times):
            free = self._free(20)
            self.change_key(id_, free[to % len(free)])
            id_ = free[to % len(free)]

    def swap(self, one: str, other: str) -> None:
        """Two rows change their keys, by way of one that is free."""
        if one != other:
            for source, to in ((one, "99"), (other, one), ("99", other)):
                self.change_key(source, to)

    def change_key(self, id_: str, to: str) -> None:
        before = self.rows.pop(id_)
        self.rows[to] = {**before, **self._key(to)}
        self._tell("U", before, self.rows[to])

    def load(self, id_: str) -> None:
        """A row as a full load tells it."""
        self._tell("S", new=self.rows[id_])

    def reload(self) -> None:
        """All rows as a full load tells them."""
        for id_ in self.rows:
            self.load(id_)
        self.has_unseen = False

    def empty(self) -> None:
        self.rows.clear()
        self._tell("T")

    def _one(self, number: int) -> str:
        return list(self.rows)[number % len(self.rows)]

    def _free(self, most: int) -> list[str]:
        return [str(n) for n in range(most) if str(n) not in self.rows]

    def _key(self, id_: str) -> dict[str, str]:
        return {"life": str(self.number), "id": id_}

    def _tell(self, op: str, old: Row | None = None, new: Row | None = None) -> None:
        self.numbers += 1
        sent = FIRST_MOMENT + 60_000 + len(self.messages)
        self.messages.append(Message(op, self.numbers, self.now, old, new, self.server, sent))


# --- what a mirror makes of messages: they are sorted and applied one after the other


class Version(NamedTuple):
    row: tuple[tuple[str, str | None], ...]
    valid_from: int
    valid_to: int | None
    is_current: bool


class Effect(NamedTuple):
    """What a message does to the row of one key."""

    n: int
    at: int
    key: tuple[str, ...]
    is_whole: bool
    told: Row | None


def versions(messages: Iterable[Message]) -> Iterator[Version]:
    """The history of all rows, in any order."""
    return history(sorted(set_of(messages), key=lambda one: one.n))


def versions_logged(messages: Iterable[Message]) -> Iterator[Version]:
    """The same of messages in the order in which they were told, of which loaded rows have no time of their own."""
    told = [one._replace(at=one.sent) if one.op == "S" else one for one in messages]
    return history([one._replace(n=number) for number, one in enumerate(told)])


def history(ordered: list[Message]) -> Iterator[Version]:
    """The history of all rows, whose messages are numbered in their order."""
    emptied = [one for one in ordered if one.op == "T"]
    keys: dict[tuple[str, ...], list[Effect]] = {}
    for effect in (effect for one in ordered if one.op != "T" for effect in _effects(one)):
        keys.setdefault(effect.key, []).append(effect)
    for effects in keys.values():
        begins = 0
        for times in range(len(emptied) + 1):
            begins = max([begins, *(one.at for one in emptied[:times])])
            life = [one for one in effects if sum(empty.n < one.n for empty in emptied) == times]
            for version in _life(life, begins, emptied[times].at if times < len(emptied) else None):
                begins = max(begins, version.valid_from)
                yield version


def set_of(messages: Iterable[Message]) -> list[Message]:
    """Each message once."""
    return list({one.n: one for one in messages}.values())


def _effects(message: Message) -> Iterator[Effect]:
    old, new = message.old, message.new
    where = (message.n, message.at)
    if message.op == "D":
        yield Effect(*where, _key_of(old), True, None)
        return
    moved = bool(old) and new is not None and _key_of(old) != _key_of(new)
    if moved:
        yield Effect(*where, _key_of(old), True, None)
    yield Effect(*where, _key_of(new), message.op in "IS" or set(new) == set(TYPES), new)


def _key_of(row: Row | None) -> tuple[str, ...]:
    assert row
    return tuple(str(row[name]) for name in KEY)


def _life(effects: list[Effect], begins: int, end: int | None) -> Iterator[Version]:
    """The versions of one row until its table is emptied. None begins before the one before it."""
    states: list[tuple[int, dict[str, str | None] | None]] = []
    now: dict[str, str | None] | None = None
    for effect in effects:
        if effect.told is None:
            now = None
        elif effect.is_whole:
            now = {name: effect.told.get(name) for name in TYPES}
        else:
            now = {**dict.fromkeys(TYPES), **dict(zip(KEY, effect.key)), **(now or {}), **effect.told}
        if not states or states[-1][1] != now:
            begins = max(begins, effect.at)
            states.append((begins, now))
    for index, (at, row) in enumerate(states):
        is_last = index == len(states) - 1
        ends = (None if end is None else max(end, at)) if is_last else states[index + 1][0]
        if row is not None:
            yield Version(tuple(row.items()), at, ends, is_last and end is None)


# --- what a mirror holds, as queries show it

ROWS = "select life, id, a, b, c from {}"
VERSIONS = "select life, id, a, b, c, valid_from, valid_to, is_current from {}_history"


def check(
    lived: Iterable[Life],
    rows: list[dict],
    history: list[dict] | None = None,
    left_out: Any = (),
    versions: Callable[[list[Message]], Iterator[Version]] = versions,
) -> None:
    """That a mirror and its history are right, but for rows whose `c` is left out. Of the lives that are not, the one
    with the fewest messages is shown.
    """
    lived = sorted(lived, key=lambda one: len(one.messages))
    assert {row["life"] for row in rows} <= {life.number for life in lived}
    for life in lived:
        held = [as_mirrored(row) for row in life.rows.values() if row["c"] not in left_out]
        assert _of(life, rows) == sorted(held, key=str), life.messages
        if history is not None:
            told = [as_version(one) for one in versions(life.messages) if dict(one.row)["c"] not in left_out]
            assert _of(life, history) == sorted(told, key=str), life.messages


def _of(life: Life, rows: list[dict]) -> list[dict]:
    return sorted((row for row in rows if row["life"] == life.number), key=str)


def as_mirrored(row: Row) -> dict[str, Any]:
    amount = row["b"]
    exact = None if amount is None else str(Decimal(amount).quantize(Decimal("0.01")))
    return {"life": int(row["life"] or 0), "id": int(row["id"] or 0), "a": row["a"], "b": exact, "c": row["c"]}


def as_version(one: Version) -> dict[str, Any]:
    begins, ends = moment(one.valid_from), moment(one.valid_to)
    return {**as_mirrored(dict(one.row)), "valid_from": begins, "valid_to": ends, "is_current": one.is_current}


def moment(milliseconds: int | None) -> str | None:
    """An instant as results show it."""
    if milliseconds is None:
        return None
    text = datetime.fromtimestamp(milliseconds / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return text.rstrip("0").rstrip(".") + "Z"
