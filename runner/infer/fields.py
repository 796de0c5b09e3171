"""The fields of documents: what stands where, in each of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from runner.infer.samples import ABSENT, Document, text_of

Parts = tuple[str, ...]

# Objects inside of objects that are looked into, and paths that are told apart: rows of many tables have many columns.
DEEPEST, MOST_PATHS = 8, 20_000
# Characters of a text that a comment begins with.
LONGEST = 1000
PLAIN_PART = re.compile(r'[^."\s]+')
NOT_TEXTS = ("null", "true", "false", "yes", "no", "on", "off", "y", "n", "none")


@dataclass(frozen=True)
class Fields:
    """Parts -> number of the document -> what stands there, null included. Lists are not looked into."""

    documents: Sequence[Document]
    values: dict[Parts, dict[int, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, documents: Sequence[Document]) -> Fields:
        fields = cls(documents)
        for number, document in enumerate(documents):
            for path, value in _walked(document, ()):
                if path in fields.values or len(fields.values) < MOST_PATHS:
                    fields.values.setdefault(path, {})[number] = value
        return fields

    def texts(self, path: Parts) -> dict[int, str]:
        """The texts of scalars at a path, by document."""
        found = ((number, text_of(value)) for number, value in self.values.get(path, {}).items())
        return {number: text for number, text in found if text is not None}

    def scalars(self) -> list[Parts]:
        """The paths that hold a scalar somewhere, and nowhere an object or a list; the shallow ones first."""
        found = [path for path in self.values if self.texts(path) and not any(self._nested(path))]
        return sorted(found, key=len)

    def _nested(self, path: Parts) -> Iterator[bool]:
        return (isinstance(value, dict | list) for value in self.values[path].values())

    def at(self, path: Parts, number: int) -> Any:
        return self.values.get(path, {}).get(number, ABSENT)


def _walked(value: Any, path: Parts) -> Iterator[tuple[Parts, Any]]:
    for name, member in value.items() if isinstance(value, dict) and len(path) < DEEPEST else ():
        yield (*path, name), member
        yield from _walked(member, (*path, name))


def is_below(path: Parts, above: Iterable[Parts]) -> bool:
    """Whether a path is one of others, or leads into one of them.

    >>> is_below(("a", "b"), [("a",)]), is_below(("a",), [("a", "b")])
    (True, False)
    """
    return any(path[: len(one)] == one for one in above)


def rows_in(value: Any) -> list[dict[str, Any]]:
    """The rows of an image: an object, or a list of objects; those without a column do not count."""
    found = value if isinstance(value, list) else [value]
    return [one for one in found if isinstance(one, dict) and one]


def listed(texts: Iterable[str], most: int = 4) -> str:
    """Texts with their counts, the most frequent first.

    >>> listed(["A", "B", "A"]), listed("abcdefg", 2)
    ('A (2), B (1)', 'a (1), b (1), ...')
    """
    counts = Counter(texts).most_common()
    return ", ".join(f"{shortened(text)} ({count})" for text, count in counts[:most]) + (
        ", ..." if counts[most:] else ""
    )


def shortened(text: str, width: int = 40) -> str:
    """A text on one line, cut to a width; characters that cannot be printed are written as escapes."""
    line = " ".join(text.split())
    line = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in line[:LONGEST])
    return line if len(line) <= width else line[: width - 1] + "…"


def path_text(path: Parts) -> str:
    """A path as a spec writes it, in YAML.

    >>> path_text(("a", "b c")), path_text(("#a",)), path_text(("meta", "op"))
    ('a."b c"', "'#a'", 'meta.op')
    """
    return scalar(dotted(path))


def dotted(path: Parts) -> str:
    """A path as a spec writes it: odd names in quotes."""
    return ".".join(part if PLAIN_PART.fullmatch(part) else f'"{part}"' for part in path)


def scalar(text: str) -> str:
    """A text in YAML, in quotes where it needs them.

    >>> scalar("abc"), scalar("no"), scalar("+I"), scalar("it's"), scalar("a\\x01")
    ('abc', "'no'", "'+I'", "'it''s'", '"a\\\\u0001"')
    """
    plain = re.fullmatch(r'[A-Za-z_][\w.]*( [\w.]+)*("[^"\\:#{}\[\],]*")?', text) and text.lower() not in NOT_TEXTS
    if plain:
        return text
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return (
        character if character.isprintable() else f"\\u{ord(character):04x}" if ord(character) < 0x10000 else character
    )
