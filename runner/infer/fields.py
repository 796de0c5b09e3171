"""The fields of documents: paths, and the values that each document has there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from runner.infer.understanding import Document, text_of

Parts = tuple[str, ...]

# The depth to which objects are searched, and the number of paths that are kept: rows of many tables have many columns.
DEEPEST, MOST_PATHS = 8, 20_000
# The number of characters of a text that are read for a comment.
LONGEST = 1000
PLAIN_PART = re.compile(r'[^."\s]+')
NOT_TEXTS = ("null", "true", "false", "yes", "no", "on", "off", "y", "n", "none")


class Fields:
    """The fields of documents. `values` maps a path and the number of a document to the value there, null included.
    Lists are not searched.
    """

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = documents
        self.values: dict[Parts, dict[int, Any]] = {}
        for number, document in enumerate(documents):
            for path, value in _walked(document, ()):
                if path in self.values or len(self.values) < MOST_PATHS:
                    self.values.setdefault(path, {})[number] = value

    def texts(self, path: Parts) -> dict[int, str]:
        """Returns the texts of scalars at a path, by document."""
        found = ((number, text_of(value)) for number, value in self.values.get(path, {}).items())
        return {number: text for number, text in found if text is not None}

    def scalars(self) -> list[Parts]:
        """Returns the paths with a scalar in some document, and an object or a list in none; the shallow ones first."""
        found = []
        for path, values in self.values.items():
            if self.texts(path) and not any(isinstance(value, dict | list) for value in values.values()):
                found.append(path)
        return sorted(found, key=len)


def _walked(value: Any, path: Parts) -> Iterator[tuple[Parts, Any]]:
    for name, member in value.items() if isinstance(value, dict) and len(path) < DEEPEST else ():
        yield (*path, name), member
        yield from _walked(member, (*path, name))


def is_below(path: Parts, above: Iterable[Parts]) -> bool:
    """Returns True if a path is one of other paths, or leads into one of them.

    >>> is_below(("a", "b"), [("a",)]), is_below(("a",), [("a", "b")])
    (True, False)
    """
    return any(path[: len(one)] == one for one in above)


def rows_in(value: Any) -> list[dict[str, Any]]:
    """Returns the rows of an image: an object, or a list of objects; objects without a column do not count."""
    found = value if isinstance(value, list) else [value]
    return [one for one in found if isinstance(one, dict) and one]


def listed(texts: Iterable[str], most: int = 4) -> str:
    """Returns texts with their counts, the most frequent first.

    >>> listed(["A", "B", "A"]), listed("abcdefg", 2)
    ('A (2), B (1)', 'a (1), b (1), ...')
    """
    counts = Counter(texts).most_common()
    return ", ".join(f"{shortened(text)} ({count})" for text, count in counts[:most]) + (
        ", ..." if counts[most:] else ""
    )


def shortened(text: str, width: int = 40) -> str:
    """Returns a text on one line, cut to a width; characters that cannot be printed are written as escapes."""
    line = " ".join(text.split())
    line = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in line[:LONGEST])
    return line if len(line) <= width else line[: width - 1] + "…"


def path_text(path: Parts) -> str:
    """Returns a path as a spec writes it, in YAML.

    >>> path_text(("a", "b c")), path_text(("#a",)), path_text(("meta", "op"))
    ('a."b c"', "'#a'", 'meta.op')
    """
    return scalar(dotted(path))


def dotted(path: Parts) -> str:
    """Returns a path as a spec writes it: names with unusual characters are in quotes."""
    return ".".join(part if PLAIN_PART.fullmatch(part) else f'"{part}"' for part in path)


def scalar(text: str) -> str:
    """Returns a text in YAML, in quotes where it needs them.

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


# What the words mean that vendors write for operations, the likeliest first. A word with several meanings means the
# first that the images agree with.
MEANINGS: Mapping[str, str] = {
    "insert": "i ins insert inserted inserting insertion add added a new n +i put",
    "update": "u up upd update updated updating m mod modify modified modification change changed edit edited replace",
    "delete": "d del delete deleted deleting deletion rm remove removed erase erased -d",
    "snapshot": "snapshot load init initial initialload refresh full row",
    "insert create": "c create created",
    "snapshot delete": "r",
    "snapshot insert": "read",
    "update_before": "-u updatebefore updatebefor updatepreimage",
    "update_after": "+u updateafter updatepostimage",
    "alter": "alter",
    "drop": "drop dropped",
    "truncate": "t truncate truncated",
    "rename": "rename",
    "by_statement": "ddl schemachange query statement",
    "index": "cindex dindex createindex dropindex",
    "heartbeat": "hb heartbeat mheartbeat ping",
    "begin": "begin transactionbegin",
    "commit": "commit transactionend transactioncommit xacommit end",
    "rollback": "rollback transactionrollback xarollback",
}
WORDS = {word: tuple(meanings.split()) for meanings, words in MEANINGS.items() for word in words.split()}
ROW_MEANINGS = ("insert", "update", "delete", "snapshot", "update_before", "update_after")
CHANGES = frozenset(ROW_MEANINGS) - {"snapshot"}
# A field with more different texts than this does not name an operation.
MOST_TEXTS = 30
# Usual names of fields with operations. They decide only between fields with the same words, and about single letters.
NAMES = re.compile(
    r"(^|_)(op|ops|opt|optype|operation|operationtype|action|act|event|eventtype|type|kind|dml|verb|change)(_|$)"
)
LEAST_KNOWN = 0.6


def meanings_of(text: str) -> tuple[str, ...]:
    """Returns the operations that a text may mean; nothing if the text is not a known word.

    >>> meanings_of("INSERT"), meanings_of("Update_Before"), meanings_of("+I"), meanings_of("R")
    (('insert',), ('update_before',), ('insert',), ('snapshot', 'delete'))
    """
    lower = text.strip().lower()
    return WORDS.get(lower) or WORDS.get(re.sub(r"[^a-z]", "", lower), ())


@dataclass(frozen=True)
class Operation:
    """A field that may name the operation. `texts` are its texts, by document."""

    path: Parts
    texts: Mapping[int, str]

    @property
    def distinct(self) -> list[str]:
        """The texts of the field, each once, in the order in which they come."""
        return list(dict.fromkeys(self.texts.values()))


def operations(fields: Fields) -> list[Operation]:
    """Returns the fields that may name the operation, the likeliest first."""
    return [found for _, found in sorted(_ranked(fields), key=itemgetter(0), reverse=True)]


def _ranked(fields: Fields) -> Iterator[tuple[tuple[float, ...], Operation]]:
    for path in fields.scalars():
        texts = fields.texts(path)
        distinct = set(texts.values())
        if len(distinct) > MOST_TEXTS or not any(len(text) <= 40 for text in distinct):
            continue
        known = sum(bool(meanings_of(text)) for text in texts.values())
        found = {meaning for text in distinct for meaning in meanings_of(text)[:1]}
        changes = {"insert" if one == "snapshot" else one for one in found & (CHANGES | {"snapshot"})}
        named = bool(NAMES.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", path[-1]).lower()))
        # One letter that never changes may mean anything, unless the name of its field is that of an operation.
        if len(distinct) == 1 and max(map(len, distinct)) < 3 and not named:
            continue
        if found & CHANGES and known >= LEAST_KNOWN * len(texts) and 2 * len(texts) >= len(fields.documents):
            yield (len(changes), known / len(fields.documents), float(named), -len(path)), Operation(path, texts)
