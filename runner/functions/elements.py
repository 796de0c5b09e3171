"""Messages that hold several: the elements of a list in a JSON text, each in the text as it was sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from json import JSONDecoder

BLANKS = re.compile(r"[ \t\r\n]*")


def json_elements(text: str | None, path: Sequence[str]) -> list[str] | None:
    """For each element of the list at the path, the text with that element in the place of the list; with null in its
    place if the list is empty, and the text itself if no list is there.

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
        # What stands in place of an empty list is still one message.
        elements = [text[one:other] for one, other in document.elements(start)] or ["null"]
    except (ValueError, LookupError, RecursionError):
        return [text]
    return [text[:start] + element + text[end:] for element in elements]


class Document:
    """A JSON text, with the places in it where values begin and end. Methods raise ValueError or LookupError."""

    def __init__(self, text: str) -> None:
        self.text = text
        # Digits stay texts: they are only passed over, and Python refuses to read thousands of them.
        self.decoder = JSONDecoder(parse_int=str, parse_float=str)

    def place(self, path: Sequence[str]) -> tuple[int, int]:
        """Where the value at a path begins and ends; of equal names the last counts."""
        start = self._after_blanks(0)
        end = self._end(start)
        if self._after_blanks(end) != len(self.text):
            raise LookupError
        for name in path:
            found = [place for member, place in self._members(start) if member == name]
            start, end = found[-1]
        return start, end

    def elements(self, start: int) -> Iterator[tuple[int, int]]:
        """Where the elements of the list at `start` begin and end."""
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
        """Where the next value begins, or the list or object ends."""
        position = self._after_blanks(end)
        return self._after_blanks(position + 1) if self.text[position] == "," else position

    def _end(self, start: int) -> int:
        return self.decoder.raw_decode(self.text, start)[1]

    def _after_blanks(self, position: int) -> int:
        found = BLANKS.match(self.text, position)
        assert found  # it matches nothing, too
        return found.end()
