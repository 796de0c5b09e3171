"""What each vendor writes of the changes in `logical_changes`, as it was recorded.

A line of tests/vendors/messages/VENDOR.jsonl is a message, with the name of the change that it tells, in the order of
the changes. `message` is its JSON as it is sent, `base64` its bytes if it is Avro. A record of a topic has `topic`,
`key` and `value` instead, as they are sent, or the bytes of both in `key_base64` and `value_base64`. The messages
follow the vendors' documents; what no document says, and was assumed, stands under `assumed` in vendors/exceptions.yml.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.topic_records import Record
from tests.vendor_rows import EXCEPTIONS

FOLDER = Path(__file__).parent / "vendors" / "messages"
VENDORS = tuple(EXCEPTIONS)


class Sent(NamedTuple):
    """A message, of which vendor it is, and the name of the change that it tells. A message in a file has no key."""

    vendor: str
    change: str
    record: Record


@cache
def messages_of(vendor: str) -> tuple[Sent, ...]:
    lines = (FOLDER / f"{vendor}.jsonl").read_text("utf-8").removesuffix("\n").split("\n")
    return tuple(_sent(vendor, dict(_members(line))) for line in lines)


def _sent(vendor: str, parts: dict[str, str]) -> Sent:
    change = json.loads(parts.pop("change"))
    topic = json.loads(parts.pop("topic", '"shop"'))
    match parts:
        case {"message": value}:
            return Sent(vendor, change, Record(None, _bytes(value)))
        case {"base64": value}:
            return Sent(vendor, change, Record(None, _decoded(value)))
        case {"key_base64": key, "value_base64": value}:
            return Sent(vendor, change, Record(_decoded(key), _decoded(value)))
    return Sent(vendor, change, Record(_bytes(parts["key"]), _bytes(parts["value"]), topic))


def _members(line: str) -> Iterator[tuple[str, str]]:
    """The names of an object's members, and their values as they are written.

    >>> dict(_members('{"change": "a", "message": {"n":1.50,"t":"<\\\\u003d"}}'))
    {'change': '"a"', 'message': '{"n":1.50,"t":"<\\\\u003d"}'}
    """
    decoder, place = json.JSONDecoder(), len("{")
    while place < len(line):
        name, end = decoder.raw_decode(line, place)
        start = end + len(": ")
        _, end = decoder.raw_decode(line, start)
        yield name, line[start:end]
        place = end + len(", ")


def _bytes(written: str) -> bytes | None:
    return None if written == "null" else written.encode()


def _decoded(written: str) -> bytes:
    return b64decode(json.loads(written))


def told_by(vendor: str) -> frozenset[str]:
    """The names of the changes that a vendor tells."""
    return frozenset(sent.change for sent in messages_of(vendor))
