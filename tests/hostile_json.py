"""Hostile messages in JSON, made of the messages of a format's cases: hostile values in every field that the format
names and in every column, and documents with one character too many, too few or wrong; and records of topics whose
keys and topics are hostile.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import strategies as st

from runner.compile.paths import image_paths, json_fields
from runner.spec.words import Format
from tests.drawn import drawn
from tests.topic_records import Record

T = TypeVar("T")
Path_ = tuple[str, ...]


def lines_of(name: str) -> list[str]:
    """The lines of a file in tests/tables."""
    return (Path(__file__).parent / "tables" / name).read_text(encoding="utf-8").splitlines()


# As they stand in a message.
VALUES = [*lines_of("hostile_values.jsonl"), '"' + "x" * 20_000 + '"', "[" * 60 + "]" * 60]
# What a character is replaced by, or what is put before it.
CHARACTERS = '{}[]",:\\/ -+.eE019ntu\t\x00\x01\u00a0\ufeff\uffff😀#*'
# Keys and topics of records.
KEYS = [
    *(None, b"", b"\xff\xfe\x00", b"\x00\x00\x00\x00\x05id", b"[" * 5_000),
    *(line.encode() for line in lines_of("hostile_keys.jsonl")),
    *(f'{{"id": {value}}}'.encode() for value in VALUES),
    *(f'{{"schema": {{}}, "payload": {{"id": {value}}}}}'.encode() for value in VALUES),
]
TOPICS = (
    *("shop", "", ".", "..", "a.b", "server.shop.orders", "a.b.c.d.e", ".a.b", "a.b.", " x ", "\n", "表.名"),
    *('"a".b', "{b}", "x" * 249),
)
# The table of most messages of a format's cases, by itself or behind a dot.
TABLE = r'([".])(?:t|T|products)"'
UPDATE = r'"(?:UPDATE|UPDATE_AFTER|upd)"'


class Sent(str):
    """A value as it stands in a message."""


def written(value: Any) -> str:
    """A document as a line of JSON."""
    if isinstance(value, Sent):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{written(member)}" for name, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return json.dumps(value)


def objects_of_cases(folder: Path) -> list[dict[str, Any]]:
    """The messages of a format's cases that are objects, with their numbers as they were sent."""
    found = []
    for path in sorted([*folder.glob("*.messages.jsonl"), *folder.glob("*.records.jsonl")]):
        for line in path.read_bytes().split(b"\n"):
            try:
                one = json.loads(line, parse_float=Sent, parse_int=Sent)
            except ValueError:
                continue
            if path.name.endswith(".records.jsonl"):
                one = one.get("value")
            if isinstance(one, dict) and len(line) < 5_000:
                found.append(one)
    return found


def in_fields(messages: Sequence[dict[str, Any]], spec: Format) -> Iterator[str]:
    """Each value in each field that the format names, in turn in one of these messages."""
    found = [place for path, _ in json_fields(spec) for place in places(path, spec)]
    paths = sorted({path[: length + 1] for path in found for length in range(len(path))})
    for number, path in enumerate(paths):
        for value in VALUES:
            message = copy.deepcopy(messages[number % len(messages)])
            put(message, path, Sent(value))
            yield written(message)


def places(path: Path_, spec: Format) -> list[Path_]:
    """Where a path of a spec may lead to, from the top of a message; nowhere if it leads out of it."""
    if path[0] == "$message":
        return [path[1:]]
    if path[0].startswith("$"):
        return []
    roots = [tuple(root) for root in spec.message.root or [()]]
    return [tuple(part for part in (*root, *path) if part != ".") for root in roots]


def put(message: dict[str, Any], path: Path_, value: Any) -> None:
    """Puts a value at a path; an object stands where there is none on the way."""
    for part in path[:-1]:
        inner = message.get(part)
        message[part] = inner if isinstance(inner, dict) else {}
        message = message[part]
    message[path[-1]] = value


def in_columns(messages: Iterable[dict[str, Any]], spec: Format) -> Iterator[str]:
    """Each value in all columns of these messages."""
    for message in messages:
        for value in VALUES if image_rows(message, spec) else ():
            changed = copy.deepcopy(message)
            for row in image_rows(changed, spec):
                row.update(dict.fromkeys(row, Sent(value)))
            yield written(changed)


def typed(messages: Iterable[dict[str, Any]], spec: Format, columns: Iterable[str]) -> dict[str, Any]:
    """The shortest update with two images, as one of the table `typed` that has these columns too. A message without
    images if the format's are texts.
    """
    updates = [text for text in map(written, messages) if re.search(TABLE, text) and re.search(UPDATE, text)]
    for text in sorted(updates, key=len):
        message = json.loads(re.sub(TABLE, r'\1typed"', text), parse_float=Sent, parse_int=Sent)
        images = [rows_at(message, path) for path in image_paths(spec)]
        if sorted(map(len, filter(None, images))) == [1, 1]:
            break
    for row in image_rows(message, spec):
        row.update(dict.fromkeys(columns))
    return message


def image_rows(message: dict[str, Any], spec: Format) -> list[dict[str, Any]]:
    """All images of a message."""
    return [row for path in image_paths(spec) for place in places(path, spec) for row in rows_at(message, place)]


def rows_at(message: Any, path: Path_) -> list[dict[str, Any]]:
    """The images at a path: an object, or those in a list."""
    for part in path:
        message = message.get(part) if isinstance(message, dict) else None
    found = message if isinstance(message, list) else [message]
    return [row for row in found if isinstance(row, dict)]


def mutants(messages: Iterable[dict[str, Any]]) -> st.SearchStrategy[str]:
    """Messages with one character changed, taken out or put in, each in one line."""
    plain = [json.dumps(json.loads(written(one)), ensure_ascii=False) for one in messages]
    texts = [text.encode(errors="replace").decode() for text in plain]
    places, characters = st.integers(0, max(map(len, texts)) - 1), st.sampled_from(["", *CHARACTERS])

    def mutant(text: str, place: int, character: str, is_put_in: bool) -> str:
        place %= len(text)
        return text[:place] + character + text[place + (not character or not is_put_in) :]

    return st.builds(mutant, st.sampled_from(texts), places, characters, st.booleans())


def fuzzed(folder: Path, spec: Format, count: int) -> list[str]:
    """So many hostile messages of a format, made of its cases: of most a value is hostile, of others a character."""
    objects = objects_of_cases(folder)
    some = spread(objects, 6)
    of_values = spread([*in_fields(some, spec), *in_columns(some, spec)], count * 9 // 10)
    return [*of_values, *drawn(mutants(objects), count - len(of_values))]


def spread(values: Sequence[T], count: int) -> list[T]:
    """So many of some values, from the first to the last; all if they are fewer."""
    return [values[number * len(values) // count] for number in range(count)] if count < len(values) else list(values)


def hostile_records(messages: Sequence[str]) -> Iterator[Record]:
    """Messages as records with hostile keys in turn, in topics of all names; and a tombstone of each key."""
    keys, topics = cycle(KEYS), cycle(TOPICS)
    yield from (Record(next(keys), text.encode(), next(topics)) for text in messages)
    yield from (Record(key, None, next(topics)) for key in KEYS)


def is_json(text: str) -> bool:
    """Whether Python's parser takes a text for JSON. NaN and Infinity are none."""
    try:
        json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        return False
    return True


def _refused(word: str) -> None:
    raise ValueError(word)
