"""The difference of two formats: in the rows that they make of the same messages, and in the keys of their specs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from runner.contract import COLUMNS
from runner.run.compare import case_row, place
from runner.yaml_text import Steps, Yaml

Row = Mapping[str, Any]
# The columns whose members are named by the contract: each is a column of its own. The members of other maps are named
# by the data.
WITH_MEMBERS = ("meta", "seq")


class Difference(NamedTuple):
    """A value that differs: that of a column, of one of its members, the number of `rows` of a message, or whether the
    message `lands`. A value is None if a row does not have it, else in a list of one.
    """

    kind: str
    column: str
    a: list[Any] | None
    b: list[Any] | None


@dataclass
class Differences:
    """The messages of which two formats, a and b, make the `same` rows and `other` rows; those that land `only` by one
    of them, counted by the rows that they become; and how many messages have a kind of difference, with the place of
    the first one and what differs there.
    """

    messages: int = 0
    same: int = 0
    other: int = 0
    only: tuple[Counter[str], Counter[str]] = field(default_factory=lambda: (Counter(), Counter()))
    kinds: Counter[str] = field(default_factory=Counter)
    examples: dict[str, tuple[str, Difference]] = field(default_factory=dict)

    def add(self, places: Sequence[str], a: Iterable[Row], b: Iterable[Row]) -> None:
        """Adds messages with their places, and the rows that the two formats make of them."""
        of_a, of_b = _by_message(a), _by_message(b)
        for number, where in enumerate(places):
            self._add(where, of_a.get(number, []), of_b.get(number, []))

    def _add(self, where: str, a: list[Row], b: list[Row]) -> None:
        self.messages += 1
        land = [all(row["kind"] != "dead_letter" for row in rows) for rows in (a, b)]
        found = [_landing(a, b)] if land[0] != land[1] else list(_differences(a, b))
        if land[0] != land[1]:
            self.only[land[1]][_as_rows(a if land[0] else b)] += 1
        elif found:
            self.other += 1
        else:
            self.same += 1
        for kind in dict.fromkeys(one.kind for one in found):
            self.kinds[kind] += 1
            self.examples.setdefault(kind, (where, next(one for one in found if one.kind == kind)))


def _by_message(rows: Iterable[Row]) -> dict[int, list[Row]]:
    """Returns rows by the numbers of their messages, in order."""
    ordered = sorted(rows, key=place)
    return {number: list(own) for number, own in groupby(ordered, key=lambda row: row["seq"]["arrival"][0])}


def _as_rows(rows: Iterable[Row]) -> str:
    """Returns the kinds of rows in words."""
    return ", ".join(dict.fromkeys(f"{row['kind']} {row['op'] or ''}".rstrip() for row in rows))


def _landing(a: list[Row], b: list[Row]) -> Difference:
    told = [_why_not(rows) or _as_rows(rows) for rows in (a, b)]
    kind = " ".join(["lands", *(_reason(rows) or _as_rows(rows) for rows in (a, b))])
    return Difference(kind, "lands", told[:1], told[1:])


def _reason(rows: Iterable[Row]) -> str:
    return next((row["reason"] for row in rows if row["reason"]), "")


def _why_not(rows: Iterable[Row]) -> str:
    """Returns why a message does not land, empty if it does."""
    refused = next((row for row in rows if row["reason"]), None)
    return ": ".join(filter(None, (refused["reason"], refused["detail"]))) if refused else ""


def _differences(a: list[Row], b: list[Row]) -> Iterator[Difference]:
    """Yields what differs in the rows of a message: only their number, if that does."""
    if len(a) != len(b):
        yield Difference("rows", "rows", [len(a)], [len(b)])
        return
    for own, other in zip(map(case_row, a), map(case_row, b)):
        for column in COLUMNS:
            yield from _in_column(column, own.get(column), other.get(column))


def _in_column(column: str, a: Any, b: Any) -> Iterator[Difference]:
    if a == b:
        return
    if not all(value is None or isinstance(value, dict) for value in (a, b)) or {} in (a, b):
        yield Difference(column, column, _given(a), _given(b))
        return
    own, other = a or {}, b or {}
    for name in dict.fromkeys((*own, *other)):
        values = [[one[name]] if name in one else None for one in (own, other)]
        if values[0] != values[1]:
            path = f"{column}.{name}"
            yield Difference(path if column in WITH_MEMBERS else column, path, *values)


def _given(value: Any) -> list[Any] | None:
    return None if value is None else [value]


# --- specs

# Keys of a spec that say nothing of rows, or whose meaning is in the parts that are inherited.
NOT_COMPARED = ("about", "docs", "extends")


class Key(NamedTuple):
    """A key that differs in two specs, with its value in each and the place of the value; None where it is not."""

    key: str
    a: Yaml | None
    b: Yaml | None


def differing_keys(a: Yaml, b: Yaml, steps: Steps = ()) -> Iterator[Key]:
    """Yields the keys that differ in two specs with all that they inherit, as deep in them as both are mappings."""
    for key in dict.fromkeys((*a.value, *b.value)):
        own, other = a.get(key), b.get(key)
        if (key in NOT_COMPARED and not steps) or (own and other and own.value == other.value):
            continue
        path = (*steps, key)
        if own and other and isinstance(own.value, dict) and isinstance(other.value, dict):
            yield from differing_keys(own, other, path)
        else:
            yield Key(".".join(map(str, path)), own, other)


def ordered(found: Differences) -> list[tuple[int, str, Difference]]:
    """Returns the kinds of differences, those of most messages first: how many, the place of the first, and it."""
    kinds = sorted(found.kinds.items(), key=itemgetter(1), reverse=True)
    return [(count, *found.examples[kind]) for kind, count in kinds]
