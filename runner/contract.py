"""The changelog's columns, and what every class of value becomes if the format says nothing else."""

from __future__ import annotations

from collections.abc import Mapping

ORIGIN = (
    "struct<topic string, partition int, offset bigint, timestamp timestamp, key string, "
    "headers array<struct<key string, value string>>, file string, block bigint>"
)
SEQ = "struct<generation int, phase int, position array<decimal(38,0)>, arrival array<bigint>, row int>"

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
    "loaded_at": "timestamp",
    "landed_on": "date",
}

# The columns that the run adds, not the message.
RUN_COLUMNS = ("run_id", "loaded_at", "landed_on")

# What the macros of a format read, by its encoding: one row a message. A message in Avro may have the schema of its
# file; `damage` says why it is
# none, but a piece of a file that cannot be taken apart.
MESSAGE_COLUMNS = {
    "json": {"raw": "string", "origin": ORIGIN, "arrival": "array<bigint>"},
    "avro": {"raw": "binary", "own_schema": "string", "damage": "string", "origin": ORIGIN, "arrival": "array<bigint>"},
}

# Class -> how its values become canonical, where the format says nothing else. Classes that are not here are as sent.
CLASS_READERS = {"decimal": "decimal", "time": "local", "datetime": "local", "timestamp": "local", "zoned": "zoned"}

# Settings of the session without which compiled SQL means something else.
SQL_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.chunkBase64String.enabled": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
}

# What macros know of the contract, by name.
MACRO_GLOBALS = {"contract": COLUMNS, "sql_settings": SQL_SETTINGS}


def schema(columns: Mapping[str, str]) -> str:
    """
    >>> schema({"a": "string", "b": "int"})
    '`a` string, `b` int'
    """
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
