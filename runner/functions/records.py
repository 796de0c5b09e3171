"""The reader of records of topics in lines, as kcat -J, kafka-console-consumer or people write them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from runner.functions.frames import Document

OWN = {"key", "value", "topic", "headers"}
MOST = {"partition": 2**31, "offset": 2**63, "ts": 2**63}
# A line that the console prints for a record. The SQL for a source with `dump: console` has the same pattern.
CONSOLE = re.compile(
    r"(?:\w+:(-?\d+)|NO_TIMESTAMP)\tPartition:(\d+)\tOffset:(\d+)\t([^\t]*)\t([^\t]*)\t(.*)", re.ASCII | re.DOTALL
)
CONSOLE_HEADER = re.compile(r",(?=[\w.-]+:)", re.ASCII)
LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class Record(NamedTuple):
    """A record of a topic. `timestamp` is in milliseconds, None if the record has none; `headers` are None if the line
    does not have them.
    """

    topic: str | None
    partition: int | None
    offset: int | None
    timestamp: int | None
    key: str | None
    headers: tuple[tuple[str, str | None], ...] | None
    value: str | None


def read_record(line: str) -> Record:
    """Returns the record in a line. Value and key are the text in the line, or if that is in quotes, the text in these.
    Raises ValueError or LookupError if the line holds no record.

    >>> read_record('{"key": {"id": 1}, "value": {"n": 1.50}, "headers": {"a": "b"}}')[4:]
    ('{"id": 1}', (('a', 'b'),), '{"n": 1.50}')
    """
    parts = json.loads(line)
    is_of_kcat = _is_of_kcat(parts)
    if not is_of_kcat and not (isinstance(parts, dict) and parts.keys() <= OWN and parts.keys() & {"key", "value"}):
        raise ValueError("a record is an object with value, key, topic and headers")
    document = Document(line)

    def text(name: str) -> str | None:
        part = parts.get(name)
        if part is None or isinstance(part, str):
            return _text(part)
        start, end = document.place([name])
        return line[start:end]

    time = _number(parts, "ts") if is_of_kcat else None
    return Record(
        _text(parts.get("topic")),
        _number(parts, "partition") if is_of_kcat else None,
        _number(parts, "offset") if is_of_kcat else None,
        None if time is None or time < 0 else time,
        text("key"),
        _headers(parts.get("headers")),
        text("payload" if is_of_kcat else "value"),
    )


def console_record(line: str) -> Record:
    r"""Returns the record in a line that the console printed; raises ValueError for any other line.

    >>> console_record('CreateTime:5\tPartition:0\tOffset:7\ta:b,c:null\tnull\t{"id":1}')[1:]
    (0, 7, 5, None, (('a', 'b'), ('c', None)), '{"id":1}')
    """
    found = CONSOLE.fullmatch(line)
    if not found:
        raise ValueError("no line of the console with time, partition, offset, headers, key and value")
    time, partition, offset, headers, key, value = found.groups()
    pairs = [pair.partition(":") for pair in CONSOLE_HEADER.split(headers)] if headers not in ("", "NO_HEADERS") else []
    return Record(
        None,
        int(partition),
        int(offset),
        None if time is None else int(time),
        _unless_null(key),
        tuple((name, _unless_null(of_name)) for name, _, of_name in pairs) or None,
        _unless_null(value),
    )


def dump_of(line: str) -> str | None:
    """Returns the word for the tool that printed a line, as a source's `dump` has it; None for other lines.

    >>> dump_of('{"topic":"t","partition":0,"offset":7,"payload":"{}"}'), dump_of('{"topic":"t"}')
    ('json', None)
    """
    if CONSOLE.fullmatch(line):
        return "console"
    try:
        return "json" if _is_of_kcat(json.loads(line)) else None
    except (ValueError, RecursionError):
        return None


def _is_of_kcat(parts: Any) -> bool:
    return isinstance(parts, dict) and parts.keys() >= {"topic", "partition", "offset", "payload"}


def _unless_null(text: str) -> str | None:
    return None if text == "null" else text


def topic_record(line: str | None) -> dict[str, Any] | None:
    """Returns the record in a line, with its headers as structs; None if the line holds no record."""
    try:
        record = read_record(line or "")
    except (ValueError, LookupError, RecursionError):
        return None
    headers = None if record.headers is None else [{"key": key, "value": value} for key, value in record.headers]
    return {**record._asdict(), "headers": headers}


def _number(parts: Mapping[str, Any], name: str) -> int | None:
    number = parts.get(name)
    if number is not None and (type(number) is not int or not -MOST[name] <= number < MOST[name]):
        raise ValueError(f'"{name}" is no number')
    return number


def _headers(written: Any) -> tuple[tuple[str, str | None], ...] | None:
    """Returns the names and values of headers: of an object, or of a list in which names and values alternate."""
    if written is None:
        return None
    pairs = list(written.items()) if isinstance(written, dict) else []
    if isinstance(written, list) and len(written) % 2 == 0:
        pairs = list(zip(written[::2], written[1::2]))
    elif not isinstance(written, dict):
        raise ValueError("headers are an object of names and values")
    return tuple((_text(name) or "", _text(value)) for name, value in pairs)


def _text(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{json.dumps(value)} is no text")
    return value and LONE_SURROGATE.sub("\ufffd", value)
