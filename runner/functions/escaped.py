r"""Bytes as text in which what cannot be printed is escaped, as Go and C write them: `\x89PNG\r\n`."""

from __future__ import annotations

import base64
import re

# Characters of one letter, and escapes with the numbers of bytes or characters.
LETTERS = {
    "a": b"\a", "b": b"\b", "f": b"\f", "n": b"\n", "r": b"\r", "t": b"\t", "v": b"\v",
    "\\": b"\\", '"': b'"', "'": b"'",
}  # fmt: skip
ESCAPE = re.compile(
    r"""\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-7]{3})|([abfnrtv\\"']))|[^\\]+""",
    re.DOTALL,
)


def escaped_bytes(text: str | None) -> str | None:
    r"""Base64 of the bytes of a text with escapes; None if a backslash begins no escape.

    >>> escaped_bytes(r"\x89PNG\r\n"), escaped_bytes("é"), escaped_bytes(r"\u00e9"), escaped_bytes("")
    ('iVBORw0K', 'w6k=', 'w6k=', '')
    >>> escaped_bytes("\\"), escaped_bytes(r"\q"), escaped_bytes(r"\ud800"), escaped_bytes(r"\400")
    (None, None, None, None)
    """
    if text is None:
        return None
    parts, position = [], 0
    while position < len(text):
        found = ESCAPE.match(text, position)
        if not found:
            return None
        try:
            parts.append(_bytes_of(found))
        except (ValueError, OverflowError):
            return None
        position = found.end()
    return base64.b64encode(b"".join(parts)).decode()


def _bytes_of(found: re.Match[str]) -> bytes:
    """The bytes of one escape, or of the text between two; raises ValueError for the number of no byte or character."""
    byte, short, long, octal, letter = found.groups()
    if letter:
        return LETTERS[letter]
    if short or long:
        return chr(int(short or long, 16)).encode()
    if byte or octal:
        return bytes([int(byte, 16) if byte else int(octal, 8)])
    return found[0].encode()
