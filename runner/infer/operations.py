"""Which field names the operation, by the words in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from runner.infer.fields import Fields, Parts

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
# A field with more texts names no operation.
MOST_TEXTS = 30
# Names that fields of operations have: they decide only between fields with the same words, and what one letter is.
NAMES = re.compile(
    r"(^|_)(op|ops|opt|optype|operation|operationtype|action|act|event|eventtype|type|kind|dml|verb|change)(_|$)"
)
LEAST_KNOWN = 0.6


def meanings_of(text: str) -> tuple[str, ...]:
    """What a text may mean; nothing if it is no known word.

    >>> meanings_of("INSERT"), meanings_of("Update_Before"), meanings_of("+I"), meanings_of("R")
    (('insert',), ('update_before',), ('insert',), ('snapshot', 'delete'))
    """
    lower = text.strip().lower()
    return WORDS.get(lower) or WORDS.get(re.sub(r"[^a-z]", "", lower), ())


@dataclass(frozen=True)
class Operation:
    """A field that may name the operation. `texts` are what it holds, by document."""

    path: Parts
    texts: Mapping[int, str]

    @property
    def distinct(self) -> list[str]:
        """The texts, each once, in the order in which they come."""
        return list(dict.fromkeys(self.texts.values()))

    def meaning(self, text: str) -> tuple[str, ...]:
        return meanings_of(text)


def operations(fields: Fields) -> list[Operation]:
    """The fields that may name the operation, the likeliest first."""
    return [found for _, found in sorted(_ranked(fields), key=lambda one: one[0], reverse=True)]


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
        # One letter that never changes may stand for anything, but in a field that is called like an operation.
        if len(distinct) == 1 and max(map(len, distinct)) < 3 and not named:
            continue
        if found & CHANGES and known >= LEAST_KNOWN * len(texts) and 2 * len(texts) >= len(fields.documents):
            yield (len(changes), known / len(fields.documents), float(named), -len(path)), Operation(path, texts)
