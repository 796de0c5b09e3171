"""The messages of a file: JSON Lines, JSON documents of several lines each, or Avro records."""

from __future__ import annotations

import json
from collections.abc import Callable

from runner.errors import RunnerError
from runner.functions.avro.files import FileMessage, TopicRecord, messages_of_file
from runner.functions.records import Record, console_record, dump_of, read_record
from runner.project.inputs import RECORDS

# A message of a file, behind the line where it begins, from 1.
Message = tuple[int, bytes]


def messages_of(name: str, content: bytes, encoding: str) -> list[FileMessage]:
    """Returns the messages of a file with one message per line, of a file with records of a topic, or of a file in
    Avro.
    """
    if encoding == "avro":
        return list(messages_of_file(name, content))
    lines = _filled_lines(content)
    if name.endswith(RECORDS):
        return [_record(name, line) for line in lines]
    return [FileMessage(0, 0, line) for line in lines]


def _filled_lines(content: bytes) -> list[bytes]:
    return [line.removesuffix(b"\r") for line in content.split(b"\n") if line.strip(b" \t\r")]


def dumped_messages(content: bytes) -> tuple[str, list[FileMessage]] | None:
    """Returns the word for the tool that has dumped a file, and the messages of the file; None for other files."""
    first = content.lstrip(b" \t\r\n").split(b"\n", 1)[0].removesuffix(b"\r")
    dump = dump_of(first.decode("utf-8", "replace"))
    return (dump, [dumped_message(dump, line) for line in _filled_lines(content)]) if dump else None


def dumped_message(dump: str, line: bytes) -> FileMessage:
    """Returns the message in a line that a tool has dumped; a line that is no record of the tool is a message as it
    is.
    """
    try:
        return record_message(line.decode(), console_record if dump == "console" else read_record)
    except (ValueError, LookupError, RecursionError):
        return FileMessage(0, 0, line)


def _record(name: str, line: bytes) -> FileMessage:
    try:
        return record_message(line.decode())
    except (ValueError, LookupError, RecursionError) as error:
        what = f'a line of "{name}" is not the record of a topic: {error}'
        raise RunnerError("record-line", what, hint='for instance {"key": {"id": 1}, "value": {"op": "c"}}') from None


def record_message(line: str, read: Callable[[str], Record] = read_record) -> FileMessage:
    """Returns the message in a line of a file of records; raises ValueError or LookupError."""
    record = read(line)
    beside = TopicRecord(record.key, record.topic, record.headers or ())
    return FileMessage(0, 0, (record.value or "").encode(), record=beside)


def split_messages(text: bytes) -> list[Message]:
    r"""Returns the messages of a file: its lines that are not blank or, if the first line holds only the beginning of a
    document, whole documents.

    >>> split_messages(b'{"a":1}\n\n{"a":2}\n')
    [(1, b'{"a":1}'), (3, b'{"a":2}')]
    >>> split_messages(b'{\n "a": 1\n}\n{\n}')
    [(1, b'{\n "a": 1\n}'), (4, b'{\n}')]
    """
    lines = text.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    first = next((line for line in lines if line.strip()), b"")
    return _documents(lines) if _is_open(first) else _lines(lines)


def _lines(lines: list[bytes]) -> list[Message]:
    return [(number, line.rstrip(b"\r")) for number, line in enumerate(lines, 1) if line.strip(b" \t\r")]


def _is_open(line: bytes) -> bool:
    """Returns True if a line holds only the beginning of an object."""
    text = line.decode("utf-8", "replace").strip()
    if not text.startswith("{"):
        return False
    try:
        json.JSONDecoder().raw_decode(text)
    except json.JSONDecodeError as error:
        return error.pos >= len(text)
    return False


def _documents(lines: list[bytes]) -> list[Message]:
    """Returns documents, from the line where each begins to the line where it ends. A document that does not end takes
    all lines after it.
    """
    out: list[Message] = []
    start, depth, in_text = None, 0, False
    for number, line in enumerate(lines):
        if start is None and not line.strip():
            continue
        start = number if start is None else start
        depth, in_text = _depth_after(line, depth, in_text)
        if depth <= 0:
            out.append((start + 1, b"\n".join(lines[start : number + 1]).strip()))
            start, depth, in_text = None, 0, False
    if start is not None:
        out.append((start + 1, b"\n".join(lines[start:]).strip()))
    return out


def _depth_after(line: bytes, depth: int, in_text: bool) -> tuple[int, bool]:
    """Returns the number of brackets that are open after a line of a document, and whether a text is open."""
    escaped = False
    for byte in line:
        if escaped:
            escaped = False
        elif byte == 0x5C and in_text:
            escaped = True
        elif byte == 0x22:
            in_text = not in_text
        elif not in_text and byte in b"{[":
            depth += 1
        elif not in_text and byte in b"}]":
            depth -= 1
    return depth, in_text
