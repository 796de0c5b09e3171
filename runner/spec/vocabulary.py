"""The closed lists of words of the spec language of `formats/*.yml`."""

from __future__ import annotations

import re
from typing import NamedTuple

ROW_OPS = ("insert", "update", "delete", "snapshot")
DDL_OPS = ("create", "alter", "drop", "truncate", "rename", "index", "other")
CONTROL_OPS = ("heartbeat", "begin", "commit", "rollback", "watermark", "tombstone", "other")
OPS = {"row": ROW_OPS, "ddl": DDL_OPS, "control": CONTROL_OPS}
BARE_OPS = {op: kind for kind, ops in OPS.items() for op in ops if op != "other"}
BY_STATEMENT = "by_statement"

CLASSES = (
    "integer", "bit", "decimal", "float", "double", "boolean", "string", "enum", "set", "json", "xml", "array",
    "vector", "map", "range", "interval", "uuid", "binary", "raw", "geometry",
    "date", "time", "datetime", "timestamp", "zoned",
)  # fmt: skip
VALUE_READERS = (
    "as_sent", "number", "decimal", "local", "zoned", "epoch_s", "epoch_ms", "epoch_ms_nanos", "iso_t", "clock_z",
    "epoch_days", "clock_ms", "clock_us", "clock_ns", "day_ms", "day_us", "day_ns",
    "base64", "base64_little_endian", "hex", "hex_0x", "latin1", "java_bytes", "escaped_bytes",
    "unscaled", "variable_scale", "labels", "ordinal", "mask",
)  # fmt: skip
TIME_READERS = ("epoch_s", "epoch_ms", "epoch_us", "epoch_ns", "zoned", "local")
ORDER_READERS = ("numbers", "last_numbers", "lsn", "second", "within_second", *TIME_READERS)
# Whether loaded rows are numbered with the changes, have no numbers, or come late.
LOADS = ("numbered", "unnumbered", "late")
META = (
    "db_type", "db_version", "protocol_version", "message_id", "gtid", "scn", "rowid", "checkpoint",
    "source_identity", "source_system", "cluster", "thread", "sequence", "transaction_position", "transaction_sequence",
    "transaction_size", "log", "log_position", "unique_keys", "clustertime",
    "previous_commit_time", "connector", "server", "prefix", "content", "tags", "record_type", "extra",
    "old_rowid", "ddl_meta", "payload_location",
)  # fmt: skip

# The last part of a path: the members of a map that no other path leads to.
OTHERS = "*"
# A path of one part: the whole message.
WHOLE = "."
# The first part of a path: the Kafka record's key as JSON, its topic and its headers, and the message above its root.
RECORD_KEY, RECORD_TOPIC, RECORD_HEADERS, ABOVE_ROOT = "$key", "$topic", "$headers", "$message"
# The path of an image that is the key of a record.
KEY_ROW = (RECORD_KEY,)

TEXT_COLUMNS = ("tenant", "db_name", "schema_name", "table_name", "tx_id", "pair_id", "statement")
TIME_COLUMNS = ("event_time", "produced_at")
ENCODINGS = ("json", "avro")
# How a message names its schema -> the bytes of the number, after a byte that is zero.
FRAMINGS = {"schema_number": 4, "schema_number_8": 8}
# The bytes of a length before a frame.
LENGTHS = ("4", "8")
NUMBERS = ("exact", "quoted")
PARTS = ("year", "month", "day", "hour", "minute", "second", "milli", "micro", "nano", "negative", "epoch_s", "zone")
KEY_TEXTS = ("json",)
IMAGE_TEXTS = ("mongo_shell", "extended_json")
IMAGE_KINDS = ("full", "without_nulls", "partial", "key", "patch")

# The keys of a spec whose members are merged with those of its parent; all other keys are replaced as a whole.
MERGED = {(), ("message",), ("op",), ("op", "cases"), ("values",), ("records",), ("meta",)}


class Frames(NamedTuple):
    """The frames of key and value. `key_starts` and `value_starts` are the bytes that key and value begin with, in
    hexadecimal. `length_bytes` is the number of bytes of the length before each frame.
    """

    key_starts: str
    value_starts: str
    length_bytes: int


def bare_type(type_name: str) -> str:
    """Returns a type's name in lower case, without the part in brackets and without `unsigned`, `signed` and
    `zerofill`.

    >>> [bare_type(t) for t in ("INT(11) UNSIGNED", "timestamp(6) with time zone", "enum('a)','b')", "bit  varying(3)")]
    ['int', 'timestamp with time zone', 'enum', 'bit varying']
    """
    words = re.sub(r"\([0-9, *]*\)|\(.*", " ", type_name.lower()).split()
    return " ".join(word for word in words if word not in ("unsigned", "signed", "zerofill"))
