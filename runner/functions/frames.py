"""The reader of messages whose key and value are sequences of binary frames: each frame becomes a JSON text."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Sequence
from json import JSONDecoder
from typing import NamedTuple

# The members of a line of a file that holds the bytes of a record.
KEY_BYTES, VALUE_BYTES = "key_base64", "value_base64"


class FrameLayout(NamedTuple):
    """The layout of frames. `key_starts` and `value_starts` are the bytes that a key and a value begin with, in
    hexadecimal. `length_bytes` is the number of bytes of the length before each frame, the most significant first.
    """

    key_starts: str
    value_starts: str
    length_bytes: int


class Event(NamedTuple):
    """The text of one event. If there is `damage`, the text is the record that was sent, as in a line of a file."""

    text: str | None
    damage: str | None


class Damage(ValueError):
    """Raised for bytes that should be frames and are not; the message says what is wrong."""


def framed_events(value: bytes | None, key: str | None, layout: FrameLayout) -> list[Event]:
    r"""Returns an event for each frame of a message, at least one: `{"key": ..., "value": ...}` with the texts of the
    frames as they were sent, and null for a frame without bytes. The key is text, or base64 if it is not UTF-8. A
    message without a key is an event by itself, or the record in a line of a file.

    >>> layout = FrameLayout("", "", 4)
    >>> key = "\0\0\0\x011\0\0\0\x012"
    >>> framed_events(b"\0\0\0\0\0\0\0\x02[]", key, layout)
    [Event(text='{"key": 1, "value": null}', damage=None), Event(text='{"key": 2, "value": []}', damage=None)]
    >>> framed_events(b"\0\0\0\x021", key, layout)[0].damage
    'value: frame 1 has 2 bytes, but 1 follow'
    """
    key_bytes = None if key is None else _bytes_of_key(key)
    if key_bytes is None and value is not None:
        key_bytes, value = _record_in(value)
    if value is None:
        return [Event(None, None)]
    if key_bytes is None:
        return [_bare_event(value)]
    try:
        pairs = _pairs(key_bytes, value, layout)
    except Damage as damage:
        return [_damaged(key_bytes, value, str(damage))]
    return [_event(number, *frames, layout) for number, frames in enumerate(pairs, 1)]


def _pairs(key: bytes, value: bytes, layout: FrameLayout) -> list[tuple[bytes, bytes]]:
    """Returns the frames of a key with those of its value, at least one pair."""
    keys = list(_frames("key", key, bytes.fromhex(layout.key_starts), layout.length_bytes))
    values = list(_frames("value", value, bytes.fromhex(layout.value_starts), layout.length_bytes))
    if len(keys) != len(values):
        raise Damage(f"{len(keys)} frames in the key, {len(values)} in the value")
    if not keys:
        raise Damage("no frames")
    return list(zip(keys, values))


def _bytes_of_key(key: str) -> bytes:
    """Returns the bytes of a key that is text, or base64 where the key is not text. A key of frames that is text cannot
    be taken for base64: its first length has bytes that are zero, which base64 never has.
    """
    try:
        return base64.b64decode(key, validate=True)
    except ValueError:
        return key.encode()


def _record_in(line: bytes) -> tuple[bytes | None, bytes | None]:
    """Returns key and value of the record in a line of a file; None and the line itself if the line holds no record."""
    if KEY_BYTES.encode() not in line:
        return None, line
    try:
        record = json.loads(line)
        key, value = (
            None if (part := record[name]) is None else base64.b64decode(part, validate=True)
            for name in (KEY_BYTES, VALUE_BYTES)
        )
        return key, value
    except (ValueError, LookupError, TypeError, RecursionError):
        return None, line


def _bare_event(value: bytes) -> Event:
    try:
        return Event(value.decode(), None)
    except UnicodeDecodeError:
        return _damaged(None, value, "no key, and the value is not UTF-8")


def _frames(where: str, data: bytes, starts: bytes, length_bytes: int) -> Iterator[bytes]:
    """Returns the frames of a key or a value."""
    if not data.startswith(starts):
        raise Damage(f"{where}: begins with {data[: len(starts)].hex() or 'nothing'}, not with {starts.hex()}")
    position, number = len(starts), 0
    while position < len(data):
        number += 1
        begin = position + length_bytes
        if begin > len(data):
            raise Damage(f"{where}: ends within the length of frame {number}")
        length = int.from_bytes(data[position:begin], "big")
        position = begin + length
        if position > len(data):
            raise Damage(f"{where}: frame {number} has {length} bytes, but {len(data) - begin} follow")
        yield data[begin:position]


def _event(number: int, key: bytes, value: bytes, layout: FrameLayout) -> Event:
    try:
        return Event(f'{{"key": {_json(key)}, "value": {_json(value)}}}', None)
    except (ValueError, LookupError, RecursionError):
        record = (_framed(key, layout.key_starts, layout), _framed(value, layout.value_starts, layout))
        return _damaged(*record, f"event {number} is not JSON")


def _framed(frame: bytes, starts: str, layout: FrameLayout) -> bytes:
    """Returns the bytes of a key or a value with this one frame."""
    return bytes.fromhex(starts) + len(frame).to_bytes(layout.length_bytes, "big") + frame


def _json(frame: bytes) -> str:
    """Returns the text of a frame, which must be one JSON value. The text is spliced into an event; any other text
    could change what stands around it.
    """
    text = frame.decode()
    if text:
        Document(text).place(())
    return text or "null"


def _damaged(key: bytes | None, value: bytes, damage: str) -> Event:
    record = {
        name: None if part is None else base64.b64encode(part).decode()
        for name, part in ((KEY_BYTES, key), (VALUE_BYTES, value))
    }
    return Event(json.dumps(record), damage)


BLANKS = re.compile(r"[ \t\r\n]*")


def json_elements(text: str | None, path: Sequence[str]) -> list[str] | None:
    """Returns, for each element of the list at the path, the text with that element in the place of the list. An empty
    list is replaced by null. Without a list at the path, the text itself is returned.

    >>> json_elements('{"id": 1, "changes": [{"a": 1.50}, {"a": 2}]}', ["changes"])
    ['{"id": 1, "changes": {"a": 1.50}}', '{"id": 1, "changes": {"a": 2}}']
    >>> json_elements('[1, "x"]', []), json_elements('{"changes": []}', ["changes"]), json_elements("no", [])
    (['1', '"x"'], ['{"changes": null}'], ['no'])
    """
    if text is None:
        return None
    try:
        document = Document(text)
        start, end = document.place(path)
        if text[start] != "[":
            return [text]
        # A message with an empty list is still one message.
        elements = [text[one:other] for one, other in document.elements(start)] or ["null"]
    except (ValueError, LookupError, RecursionError):
        return [text]
    return [text[:start] + element + text[end:] for element in elements]


class Document:
    """Finds the places in a JSON text where values begin and end. Methods raise ValueError or LookupError."""

    def __init__(self, text: str) -> None:
        self.text = text
        # Digits stay texts: they are only passed over, and Python refuses to convert thousands of digits.
        self.decoder = JSONDecoder(parse_int=str, parse_float=str)

    def place(self, path: Sequence[str]) -> tuple[int, int]:
        """Returns where the value at a path begins and ends; of equal names the last counts."""
        start = self._after_blanks(0)
        end = self._end(start)
        if self._after_blanks(end) != len(self.text):
            raise LookupError
        for name in path:
            found = [place for member, place in self._members(start) if member == name]
            start, end = found[-1]
        return start, end

    def elements(self, start: int) -> Iterator[tuple[int, int]]:
        """Returns where each element of the list at `start` begins and ends."""
        position = self._after_blanks(start + 1)
        while self.text[position] != "]":
            end = self._end(position)
            yield position, end
            position = self._next(end)

    def _members(self, start: int) -> Iterator[tuple[str, tuple[int, int]]]:
        if self.text[start] != "{":
            raise LookupError
        position = self._after_blanks(start + 1)
        while self.text[position] != "}":
            name, end = self.decoder.raw_decode(self.text, position)
            begin = self._after_blanks(self._after_blanks(end) + 1)
            end = self._end(begin)
            yield name, (begin, end)
            position = self._next(end)

    def _next(self, end: int) -> int:
        """Returns where the next value begins, or the list or object ends."""
        position = self._after_blanks(end)
        return self._after_blanks(position + 1) if self.text[position] == "," else position

    def _end(self, start: int) -> int:
        return self.decoder.raw_decode(self.text, start)[1]

    def _after_blanks(self, position: int) -> int:
        found = BLANKS.match(self.text, position)
        assert found  # it matches nothing, too
        return found.end()
