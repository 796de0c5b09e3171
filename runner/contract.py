"""The changelog's columns, the way in which values of each class become canonical by default, and the numbers of what
has landed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runner.render import name as quoted

Counts = Mapping[str, int]

ORIGIN = (
    "struct<topic string, partition int, offset bigint, timestamp timestamp, key string, "
    "headers array<struct<key string, value string>>, file string, block bigint>"
)
SEQ = "struct<generation int, phase int, position array<decimal(38,0)>, arrival array<bigint>, row int>"
SEQ_PARTS = ("generation", "phase", "position", "arrival", "row")

# Column -> type, in the contract's order.
COLUMNS = {
    "kind": "string",
    "source": "string",
    "format": "string",
    "op": "string",
    "tenant": "string",
    "db_name": "string",
    "schema_name": "string",
    "table_name": "string",
    "key": "map<string,string>",
    "old_key": "map<string,string>",
    "key_text": "string",
    "before": "map<string,string>",
    "after": "map<string,string>",
    "before_image": "string",
    "after_image": "string",
    "changed": "array<string>",
    "types": "map<string,string>",
    "event_time": "timestamp",
    "produced_at": "timestamp",
    "tx_id": "string",
    "seq": SEQ,
    "pair_id": "string",
    "meta": "map<string,string>",
    "origin": ORIGIN,
    "statement": "string",
    "reason": "string",
    "detail": "string",
    "raw": "string",
    "run_id": "string",
    "batch": "bigint",
    "loaded_at": "timestamp",
    "landed_on": "date",
}

# The kinds of rows.
KINDS = ("row", "ddl", "control", "dead_letter")

# The reasons that dead letters of any format may have; formats may name more.
REASONS = (
    *("not-utf8", "empty", "not-json", "trailing-text", "not-an-object", "no-op", "unknown-op"),
    *("statement-without-rows", "no-row-image", "row-not-an-object", "uneven-rows", "bad-avro", "bad-frames"),
    *("schema-mismatch", "schema-unknown", "unknown-patch"),
)

# The columns that come from the run, not from a message.
RUN_COLUMNS = ("run_id", "batch", "loaded_at", "landed_on")

# Encoding of a format -> the columns that its macros read, one row per message. A message in Avro may come with the
# schema of its file; `damage` says why a row is not a message but a piece of a damaged file.
MESSAGE_COLUMNS = {
    "json": {"raw": "string", "origin": ORIGIN, "arrival": "array<bigint>"},
    "avro": {"raw": "binary", "own_schema": "string", "damage": "string", "origin": ORIGIN, "arrival": "array<bigint>"},
}

# Class -> the way in which its values become canonical, unless the format says otherwise. Values of other classes stay
# as sent.
CLASS_READERS = {
    "decimal": "decimal",
    "boolean": "boolean",
    "date": "local",
    "time": "local",
    "datetime": "local",
    "timestamp": "local",
    "zoned": "zoned",
}

# Settings of the session that compiled SQL relies on.
SQL_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    # A document that does not have the shape that is asked for is null as a whole, not in part.
    "spark.sql.json.enablePartialResults": "false",
    # This field is not null if a field of a document has another type than the one that is read.
    "spark.sql.columnNameOfCorruptRecord": "_corrupt_record",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.chunkBase64String.enabled": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
}

# The parts of the contract that macros use, by name.
MACRO_GLOBALS = {"contract": COLUMNS, "sql_settings": SQL_SETTINGS}


def schema(columns: Mapping[str, str]) -> str:
    """Returns columns with their types as the text of a schema in SQL.

    >>> schema({"a": "string", "b": "int"})
    '`a` string, `b` int'
    """
    return ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())


@dataclass(frozen=True)
class Landed:
    """The numbers of what has landed: of `messages`, of `rows` of each kind, and of dead letters for each of the
    `reasons`. For each part that a format may name, `expected` is the number of rows that should have it, `found` the
    number of rows that do. `waived` are the dead letters among those that are expected, for each of the reasons.
    """

    messages: int = 0
    rows: Counts = field(default_factory=dict.fromkeys(KINDS, 0).copy)
    reasons: Counts = field(default_factory=dict)
    expected: Counts = field(default_factory=dict)
    found: Counts = field(default_factory=dict)
    waived: Counts = field(default_factory=dict)

    @property
    def numbers(self) -> Counts:
        """The number of messages, then those of rows by kind."""
        return {"messages": self.messages, **self.rows}

    @property
    def unexpected(self) -> Counts:
        """The number of dead letters that are not waived, for each reason that has some."""
        left = {reason: count - self.waived.get(reason, 0) for reason, count in self.reasons.items()}
        return {reason: count for reason, count in left.items() if count}

    def __add__(self, other: Landed) -> Landed:
        """Adds the numbers of another landing to these.

        >>> Landed(1, {"row": 1}, {}) + Landed(2, {"row": 0}, {"no-op": 2})
        Landed(messages=3, rows={'row': 1}, reasons={'no-op': 2}, expected={}, found={}, waived={})
        """
        return Landed(
            self.messages + other.messages,
            _sum(self.rows, other.rows),
            _sum(self.reasons, other.reasons),
            _sum(self.expected, other.expected),
            _sum(self.found, other.found),
            _sum(self.waived, other.waived),
        )


def landed_of(text: str) -> Landed:
    """Returns the numbers that the macro `landed_counts` has printed as text."""
    counts = json.loads(text)
    reasons, waived = _by_reason(counts["reasons"]), _by_reason(counts.get("waived", ()))
    return Landed(counts["messages"], counts["rows"], reasons, counts["expected"], counts["found"], waived)


def _by_reason(counted: Iterable[Mapping[str, Any]]) -> Counts:
    # An entry without an `item` counts the rows that have no reason.
    return {one["item"]: one["count"] for one in counted if "item" in one}


def _sum(one: Counts, other: Counts) -> Counts:
    total = Counter(one)
    total.update(other)
    return dict(total)
