"""A file of messages -> messages."""

from __future__ import annotations

import pytest

from runner.run.documents import split_messages


def split(text: bytes) -> list[tuple[int, bytes]]:
    return [(message.line, message.text) for message in split_messages(text)]


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (b"", []),
        (b"\n \n\t\r\n", []),
        (b'{"a":1}', [(1, b'{"a":1}')]),
        (b'{"a":1}\n{"a":2}\n', [(1, b'{"a":1}'), (2, b'{"a":2}')]),
        (b'\n{"a":1}\r\n\r\n \n{"a":2}\r\n', [(2, b'{"a":1}'), (5, b'{"a":2}')]),
        (b'\xef\xbb\xbf{"a":1}\n', [(1, b'{"a":1}')]),
        # what is no JSON is a message too
        (b'nonsense\n{"a":1}\n', [(1, b"nonsense"), (2, b'{"a":1}')]),
        (b'{"a":1}\n{\n', [(1, b'{"a":1}'), (2, b"{")]),
        (b'{"a":1} {"b":2}\n', [(1, b'{"a":1} {"b":2}')]),
        (b'{"a" 1}\n{"a":2}\n', [(1, b'{"a" 1}'), (2, b'{"a":2}')]),
        (b'{"a" 1\n{"a":2}\n', [(1, b'{"a" 1'), (2, b'{"a":2}')]),
        (b'[{"a":1},\n{"a":2}]\n', [(1, b'[{"a":1},'), (2, b'{"a":2}]')]),
        (b'{"a":"\xff"}\n', [(1, b'{"a":"\xff"}')]),
        (b' {"a":1} \n', [(1, b' {"a":1} ')]),
    ],
)
def test_a_message_a_line(text: bytes, messages: list[tuple[int, bytes]]) -> None:
    assert split(text) == messages


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (b'{\n "a": 1\n}\n', [(1, b'{\n "a": 1\n}')]),
        (
            b'{\n "a": 1\n}\n\n{\n "b": [\n  {"c": 2}\n ]\n}\n',
            [(1, b'{\n "a": 1\n}'), (5, b'{\n "b": [\n  {"c": 2}\n ]\n}')],
        ),
        (b'\n\n{"a":\n1}\n{"b":2}\n', [(3, b'{"a":\n1}'), (5, b'{"b":2}')]),
        (b'{\r\n "a": 1\r\n}\r\n{"b":2}\r\n', [(1, b'{\r\n "a": 1\r\n}'), (4, b'{"b":2}')]),
        # brackets and quotes inside texts are text
        (
            b'{\n "a": "}{", "b": "\\"}", "c": "\\\\"\n}\n{"d": 1}\n',
            [(1, b'{\n "a": "}{", "b": "\\"}", "c": "\\\\"\n}'), (4, b'{"d": 1}')],
        ),
        # what never closes is one message, to the end
        (b'{\n "a": 1\n}\n{\n "b": \n', [(1, b'{\n "a": 1\n}'), (4, b'{\n "b":')]),
        # a line that is no document between two of them
        (b"{\n}\nnonsense\n{\n}", [(1, b"{\n}"), (3, b"nonsense"), (4, b"{\n}")]),
    ],
)
def test_documents_over_several_lines(text: bytes, messages: list[tuple[int, bytes]]) -> None:
    assert split(text) == messages
