"""The search for rows: objects whose members are the columns of a table, and that some operations lack."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from runner.infer.fields import ROW_MEANINGS, Fields, Operation, Parts, is_below, meanings_of, rows_in
from runner.infer.understanding import BESIDE, text_of

# Words in the names of fields: they decide only where the data does not.
BEFORE = re.compile(r"before|old|orig|prev|pre(?=[A-Z_]|$)", re.IGNORECASE)
AFTER = re.compile(r"after|new|curr|post|data|row|value|record|image", re.IGNORECASE)
# From the first share on, "always" is assumed of an image; up to the second share, "never".
ALWAYS, NEVER = 0.9, 0.1
# The part of its members that the smaller of two images must share with the other.
SHARED = 0.5
BESIDE_ROWS = [(name,) for name in BESIDE]


@dataclass(frozen=True)
class Place:
    """An object, or a list of objects, that may be an image. `rows` are those with columns, by document; `texts` are
    the different values of each column.
    """

    path: Parts
    rows: Mapping[int, list[dict[str, Any]]]
    is_list: bool
    texts: Mapping[str, set[str]]

    @property
    def columns(self) -> set[str]:
        return set(self.texts)

    @property
    def variety(self) -> float:
        """The number of different values, as a part of all values: 1 if no value comes twice."""
        count = sum(len(row) for rows in self.rows.values() for row in rows)
        return sum(len(texts) for texts in self.texts.values()) / count if count else 0.0

    def share(self, numbers: Sequence[int]) -> float:
        """Returns the part of these documents, from 0 to 1, in which the place has a row."""
        return sum(number in self.rows for number in numbers) / len(numbers) if numbers else 0.0


@dataclass(frozen=True)
class Images:
    """The images that were found: their places, the meaning of each text of the operation, and documents by meaning.
    `partial` is the image that has only some columns in updates (`before` or `after`). `deleted` is the path of deleted
    rows if they are not in `before`. `others` are objects that have the columns as members and are not images. `sides`
    says why each image is `before` or `after`; `unknown` are texts of the operation without a meaning.
    """

    operation: Operation
    after: Place | None
    before: Place | None
    meanings: Mapping[str, str]
    numbers: Mapping[str, list[int]]
    partial: str = ""
    deleted: Parts | None = None
    others: tuple[Place, ...] = ()
    sides: str = ""
    unknown: tuple[str, ...] = ()

    @property
    def places(self) -> list[Place]:
        return [place for place in (self.after, self.before) if place]

    @property
    def covered(self) -> int:
        """The number of row changes that have a row."""
        changes = [number for meaning, numbers in self.numbers.items() if meaning in ROW_MEANINGS for number in numbers]
        return sum(any(number in place.rows for place in self.places) for number in changes)

    def row(self, number: int) -> dict[str, Any]:
        """Returns all columns that a document gives for its first row."""
        rows = (place.rows[number][0] for place in reversed(self.places) if number in place.rows)
        return {name: value for row in rows for name, value in row.items()}


def find_images(fields: Fields, operation: Operation) -> Images | None:
    """Returns the images of row changes, if there are any."""
    places = [place for place in _places(fields, operation) if place.rows]
    changes = _clear_changes(operation)
    rows = [number for meaning, numbers in changes.items() if meaning in ROW_MEANINGS for number in numbers]
    inside = [place for place in places if not is_below(place.path, BESIDE_ROWS)]
    ranks = [(_rank(place, inside, changes, rows), place) for place in inside]
    ranked = [place for _, place in sorted(ranks, key=itemgetter(0), reverse=True)]
    if not ranked or not ranked[0].share(rows):
        return None
    first = ranked[0]
    partners = [place for place in ranked[1:] if _is_partner(place, first, changes)]
    chosen = [first, *partners[:1]]
    after, before, sides = _sides(chosen, changes)
    meanings = {text: _meaning(operation, text, known, after, before) for text, known in _known(operation).items()}
    numbers = _by_meaning(operation, meanings)
    others = tuple(place for place in places if place not in chosen and place.columns & first.columns)
    unknown = tuple(text for text in operation.distinct if text not in meanings)
    partial, deleted = _partial(after, before, numbers), _deleted(after, before, numbers)
    return Images(operation, after, before, meanings, numbers, partial, deleted, others, sides, unknown)


def _known(operation: Operation) -> dict[str, tuple[str, ...]]:
    return {text: meanings for text in operation.distinct if (meanings := meanings_of(text))}


def _by_meaning(operation: Operation, meanings: Mapping[str, str]) -> dict[str, list[int]]:
    out: dict[str, list[int]] = {}
    for number, text in operation.texts.items():
        if text in meanings:
            out.setdefault(meanings[text], []).append(number)
    return out


def _clear_changes(operation: Operation) -> dict[str, list[int]]:
    """Returns documents by meaning: by the texts with one meaning, if these name inserts or deletes, else by the
    likeliest meaning of each text.
    """
    known = _known(operation)
    clear = _by_meaning(operation, {text: meanings[0] for text, meanings in known.items() if len(meanings) == 1})
    if clear.keys() & {"insert", "delete"}:
        return clear
    return _by_meaning(operation, {text: meanings[0] for text, meanings in known.items()})


def _places(fields: Fields, operation: Operation) -> Iterator[Place]:
    for path, values in fields.values.items():
        if not is_below(operation.path, [path]) and any(isinstance(value, dict | list) for value in values.values()):
            rows = {number: found for number, value in values.items() if (found := rows_in(value))}
            members = [member for found in rows.values() for row in found for member in row.values()]
            nested = sum(isinstance(member, dict | list) for member in members)
            if members and 2 * nested <= len(members):
                yield Place(path, rows, any(isinstance(value, list) for value in values.values()), _texts(rows))


def _texts(rows: Mapping[int, list[dict[str, Any]]]) -> dict[str, set[str]]:
    out: dict[str, set[str]] = {}
    for found in rows.values():
        for row in found:
            for name, value in row.items():
                out.setdefault(name, set()).add(text_of(value) or repr(value))
    return out


def _rank(place: Place, places: Sequence[Place], changes: Mapping[str, list[int]], rows: Sequence[int]) -> float:
    """Returns a number that grows with the evidence that a place is an image."""
    partner = any(_share_columns(place, other) for other in places if other is not place)
    named = bool(BEFORE.search(place.path[-1]) or AFTER.search(place.path[-1]))
    few = min(1.0, len(place.columns) / 3)
    return place.variety + place.share(rows) + _is_in_step(place, changes) + 0.5 * partner + 0.3 * named + 0.3 * few


def _is_in_step(place: Place, changes: Mapping[str, list[int]]) -> bool:
    """Returns True if a place has rows always with some row changes, and never with others."""
    shares = [place.share(numbers) for meaning, numbers in changes.items() if meaning in ROW_MEANINGS]
    return any(share >= ALWAYS for share in shares) and any(share <= NEVER for share in shares)


def _share_columns(place: Place, other: Place) -> bool:
    smaller = min(len(place.columns), len(other.columns))
    return len(place.columns & other.columns) >= SHARED * smaller


def _is_partner(place: Place, first: Place, changes: Mapping[str, list[int]]) -> bool:
    """Returns True if a place is the other image: it has the same columns, and neither the values of the first image in
    all documents, as a key has, nor the same values in all of them, as types have.
    """
    if not _share_columns(place, first) or is_below(place.path, [first.path]) or is_below(first.path, [place.path]):
        return False
    both = [number for number in place.rows if number in first.rows]
    if both and place.columns < first.columns and all(_agrees(place, first, number) for number in both):
        return False
    return _is_in_step(place, changes) or place.variety >= first.variety / 3


def _agrees(place: Place, first: Place, number: int) -> bool:
    return all(row.items() <= other.items() for row, other in zip(place.rows[number], first.rows[number]))


# --- which is which


def _sides(chosen: Sequence[Place], changes: Mapping[str, list[int]]) -> tuple[Place | None, Place | None, str]:
    """Returns the image after a change, the image before it, and the reason."""
    inserts, deletes = (changes.get(meaning, []) for meaning in ("insert", "delete"))
    if len(chosen) == 1:
        (only,) = chosen
        if deletes and not only.share(inserts) and only.share(deletes):
            return None, only, "only deletes have it"
        return only, None, "the only object with columns"
    one, other = chosen
    for known, numbers in (("insert", inserts), ("delete", deletes)):
        shares = one.share(numbers), other.share(numbers)
        if numbers and max(shares) >= SHARED and min(shares) <= NEVER:
            has = shares[0] > shares[1]
            after, before = (one, other) if has == (known == "insert") else (other, one)
            return after, before, f"{known}s have only {'the one after' if known == 'insert' else 'the one before'}"
    if BEFORE.search(one.path[-1]) and not BEFORE.search(other.path[-1]):
        return other, one, "a guess from the names: no insert and no delete tells"
    if BEFORE.search(other.path[-1]) and not BEFORE.search(one.path[-1]):
        return one, other, "a guess from the names: no insert and no delete tells"
    fewer = len([n for n in other.rows if n in one.rows and len(other.rows[n][0]) < len(one.rows[n][0])])
    after, before = (one, other) if fewer else (other, one)
    return after, before, "a guess: no insert and no delete tells which is which"


def _meaning(operation: Operation, text: str, known: Sequence[str], after: Place | None, before: Place | None) -> str:
    """Returns the meaning of a text: of several meanings the one that the images agree with."""
    numbers = [number for number, one in operation.texts.items() if one == text]
    has_after = after is not None and after.share(numbers) > 0.5
    has_before = before is not None and before.share(numbers) > 0.5
    for meaning in known:
        others = (meanings_of(other)[:1] for other in operation.distinct if other != text)
        match meaning:
            case "delete" if has_before and not has_after:
                return meaning
            case "insert" if has_after and (meaning,) not in others:
                return meaning
            case "snapshot" if has_after:
                return meaning
            case "create" if not has_after and not has_before:
                return meaning
    return known[-1] if known[0] == "snapshot" and not has_after and len(known) > 1 else known[0]


def _partial(after: Place | None, before: Place | None, numbers: Mapping[str, list[int]]) -> str:
    """Returns the image, `before` or `after`, that has only some columns of the other one in updates; empty if none."""
    if not after or not before:
        return ""
    both = [number for number in numbers.get("update", ()) if number in after.rows and number in before.rows]
    pairs = [pair for number in both for pair in zip(before.rows[number], after.rows[number])]
    if sum(old.keys() < new.keys() for old, new in pairs) * 2 > len(pairs):
        return "before"
    return "after" if sum(new.keys() < old.keys() for old, new in pairs) * 2 > len(pairs) else ""


def _deleted(after: Place | None, before: Place | None, numbers: Mapping[str, list[int]]) -> Parts | None:
    """Returns the path of deleted rows, if they are where the image after a change is."""
    deletes = numbers.get("delete", [])
    if not after or not deletes or (before and before.share(deletes) >= after.share(deletes)):
        return None
    return after.path
