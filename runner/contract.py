"""The changelog's columns, and the way in which values of each class become canonical by default."""

from __future__ import annotations

from collections.abc import Mapping

from runner.render import name as quoted

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
