"""Values that nobody may see, and texts in which they are redacted."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus, unquote

REDACTED = "***"
# Shorter values are not redacted: each `true` or `1` of a text would be redacted too.
SHORTEST = 6
# Words in the names of settings whose values are secret, wherever they come from.
WORDS = ("password", "secret", "jaas", "token", "credential", "access.key", "keystore.key", "certificate")

# Parts of a value that are sent or shown without the rest: `id:SECRET`, `scheme://name:SECRET@host`, `token=SECRET`.
PARTS = (
    re.compile(r"^[^:/\s]+:([^/\s].*)$", re.DOTALL),
    re.compile(r"://[^/@\s]*?:([^@/\s]+)@"),
    re.compile(r"(?i)(?:password|passwd|pwd|token|secret|key|credential|signature)\w*\s*[=:]\s*[\"']?([^\"';&,\s}]+)"),
    re.compile(r"^(.+)$", re.MULTILINE),
)


class Secrets:
    """The secrets that a command has read so far. Several threads may use the object at the same time."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.forms: frozenset[str] = frozenset()
        self.pattern: re.Pattern[str] | None = None

    def add(self, name: str, value: str) -> None:
        """Records a value, and all ways in which it may be written, as secret from now on."""
        forms = self.forms | {form for part in _parts(value) for form in _forms(part) if len(form) >= SHORTEST}
        if forms != self.forms:
            longest_first = sorted(sorted(forms), key=len, reverse=True)
            self.pattern, self.forms = re.compile("|".join(map(re.escape, longest_first))), forms
        if len(value) >= SHORTEST:
            self.names[value] = name

    def add_setting(self, name: str, value: str) -> str:
        """Records the value of a setting as secret if its name says so; returns the value."""
        if any(word in name.lower() for word in WORDS):
            self.add(name, value)
        return value

    def redacted(self, text: str) -> str:
        """Returns the text without secrets.

        >>> secrets = Secrets()
        >>> secrets.add("CREDENTIAL", "loader:tr0ut&gill")
        >>> secrets.redacted("401 for client_id=loader&client_secret=tr0ut%26gill")
        '401 for client_id=loader&client_secret=***'
        """
        return self.pattern.sub(REDACTED, text) if self.pattern else text

    def named_in(self, text: str) -> str | None:
        """Returns the name of a secret whose value is in the text; None if there is none."""
        if not self.pattern or not self.pattern.search(text):
            return None
        return next((name for value, name in self.names.items() if any(form in text for form in _forms(value))), "")


def _parts(value: str) -> Iterator[str]:
    yield value
    for pattern in PARTS:
        yield from (part for part in pattern.findall(value) if len(part) >= SHORTEST)


def _forms(value: str) -> Iterator[str]:
    """Yields a value in the ways in which URLs, JSON, SQL, XML and headers write it."""
    yield from (value, value.strip(), unquote(value), html.escape(value), html.escape(value, quote=False))
    for encoded in (quote(value, safe=""), quote(value), quote_plus(value)):
        yield encoded
        yield re.sub("%[0-9A-F]{2}", lambda escape: escape[0].lower(), encoded)
    yield from (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1])
    yield value.replace("\\", "\\\\").replace("'", "\\'")
    content = value.encode(errors="surrogateescape")
    yield content.hex()
    for before in range(3):
        yield from _base64_after(content, before)


def _base64_after(content: bytes, before: int) -> Iterator[str]:
    """Yields, in each alphabet of base64, the part that is the same in all texts that hold the content after `before`
    bytes.
    """
    start, rest = (0, 2, 3)[before], (before + len(content)) % 3
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        text = encode(bytes(before) + content).decode().rstrip("=")
        yield text[start : -1 if rest else None]
