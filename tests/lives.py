"""Random lives of tables: what a database held after each of its changes, the messages that tell of them, and a plain
reference of what a mirror makes of messages (runner/project/mirrors.py).
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

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
KEY = ("life", "id")
TYPES = {"life": "int", "id": "bigint", "a": "varchar(20)", "b": "decimal(10,2)", "c": "varchar(20)"}
FIRST_MOMENT = 1714528800000
Row = Mapping[str, str | None]
Sent = TypeVar("Sent")


class Message(NamedTuple):
    """What is told of one change, and its place: snapshots come before everything else."""

    op: str
    n: int
    at: int
    old: Row | None = None
    new: Row | None = None
    removed: tuple[str, ...] = ()

    @property
    def place(self) -> tuple[int, int]:
        return (0 if self.op == "S" else 1, self.n)

    def text(self, table: str) -> str:
        """The message as it is sent."""
        told = {"op": self.op, "n": self.n, "at": self.at, "table": table, "key": list(KEY), "types": TYPES}
        return json.dumps({**told, "old": self.old, "new": self.new})


def shuffled(sent: list[Sent], runs: int, chance: random.Random) -> list[list[Sent]]:
    """What each of some runs reads: all in any order, a quarter of it twice."""
    told = sent + chance.sample(sent, len(sent) // 4)
    chance.shuffle(told)
    return [told[run::runs] for run in range(runs)]


@dataclass
class Life:
    """A table that changes at random, of which updates may be `told_whole`. `rows` are by their keys. The clock of its
    database is set back now and then, unless the table may be emptied: times would not say what came before.
    """

    number: int
    chance: random.Random
    may_be_emptied: bool = False
    told_whole: bool = False
    now: int = FIRST_MOMENT
    n: int = 0
    rows: dict[str, Row] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)

    def live(self, steps: int) -> Life:
        for _ in range(steps):
            self.now += self.chance.choice([0, 0, 1, 7, 1000, 0 if self.may_be_emptied else -3])
            self.chance.choice(self._possible())()
        return self

    def _possible(self) -> list[Any]:
        on_rows = [self._update, self._update, self._delete, self._move, self._swap, self._load] if self.rows else []
        return [self._insert, *on_rows, *([self._empty] if self.may_be_emptied and self.chance.random() < 0.1 else [])]

    def _tell(self, op: str, old: Row | None = None, new: Row | None = None, **more: Any) -> None:
        self.n += 1
        self.messages.append(Message(op, self.n, self.now, old, new, **more))

    def _values(self) -> dict[str, str | None]:
        value = self.chance.choice
        return {"a": value([None, "", "x", "y", "é"]), "b": value([None, "1.50", "2", "-3.25"]), "c": value("pqr")}

    def _key(self, id_: str) -> dict[str, str]:
        return {"life": str(self.number), "id": id_}

    def _insert(self) -> None:
        free = [str(n) for n in range(6) if str(n) not in self.rows]
        if free:
            id_ = self.chance.choice(free)
            self.rows[id_] = self._key(id_) | self._values()
            self._tell("I", new=self.rows[id_])

    def _update(self) -> None:
        id_ = self.chance.choice(list(self.rows))
        before = self.rows[id_]
        after = {**before, **dict(self.chance.sample(list(self._values().items()), self.chance.randint(0, 3)))}
        self.rows[id_] = after
        told = {name: value for name, value in after.items() if name in KEY or before[name] != value}
        match self.chance.choice(["full"] if self.told_whole else ["full", "full", "partial", "patch"]):
            case "full":
                self._tell("U", self.chance.choice([before, None]), after)
            case "partial":
                self._tell("U", None, told)
            case "patch":
                self._tell("P", None, told)

    def _delete(self) -> None:
        id_ = self.chance.choice(list(self.rows))
        before = self.rows.pop(id_)
        self._tell("D", self.chance.choice([before, self._key(id_)]))

    def _move(self) -> None:
        """A key changes, and perhaps again, to one that is free."""
        id_ = self.chance.choice(list(self.rows))
        for _ in range(self.chance.randint(1, 3)):
            to = self.chance.choice([str(n) for n in range(20) if str(n) not in self.rows])
            self._change_key(id_, to)
            id_ = to

    def _swap(self) -> None:
        """Two rows change their keys, by way of one that is free."""
        if len(self.rows) > 1:
            one, other = self.chance.sample(list(self.rows), 2)
            for source, to in ((one, "99"), (other, one), ("99", other)):
                self._change_key(source, to)

    def _change_key(self, id_: str, to: str) -> None:
        before = self.rows.pop(id_)
        self.rows[to] = {**before, **self._key(to)}
        self._tell("U", before, self.rows[to])

    def _load(self) -> None:
        """A row as a full load tells it."""
        self._tell("S", new=self.chance.choice(list(self.rows.values())))

    def _empty(self) -> None:
        """Nothing else happens at that moment."""
        self.now += 1
        self.rows.clear()
        self._tell("T")
        self.now += 1


# --- what a mirror makes of messages: they are sorted and applied one after the other


class Version(NamedTuple):
    row: tuple[tuple[str, str | None], ...]
    valid_from: int
    valid_to: int | None
    is_current: bool


class Effect(NamedTuple):
    """What a message does to the row of one key."""

    place: tuple[int, int]
    at: int
    key: tuple[str, ...]
    is_whole: bool
    told: Row | None


def versions(messages: Iterable[Message]) -> Iterator[Version]:
    """The history of all rows, in any order."""
    ordered = sorted(messages, key=lambda one: one.place)
    emptied = [one for one in ordered if one.op == "T"]
    lives: dict[tuple[Any, int], list[Effect]] = {}
    for effect in (effect for one in ordered if one.op != "T" for effect in _effects(one)):
        times = sum(_is_before(one, effect) for one in emptied)
        lives.setdefault((effect.key, times), []).append(effect)
    for (_, times), effects in lives.items():
        yield from _life(effects, emptied[times].at if times < len(emptied) else None)


def _is_before(emptied: Message, effect: Effect) -> bool:
    return effect.place[0] == 1 and emptied.at < effect.at


def _effects(message: Message) -> Iterator[Effect]:
    old, new = message.old, message.new
    where = (message.place, message.at)
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


def _life(effects: list[Effect], end: int | None) -> Iterator[Version]:
    """The versions of one row until its table is emptied."""
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
            states.append((effect.at, now))
    for index, (at, row) in enumerate(states):
        later = [begins for begins, _ in states[index + 1 :]] + ([end] if end is not None else [])
        if row is not None:
            is_last = index == len(states) - 1 and end is None
            yield Version(tuple(row.items()), at, min(later, default=None), is_last)
