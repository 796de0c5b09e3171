"""How wal2json and AWS DMS write a change, from their documents alone, as in `encoders`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

from tests.encoders import (
    POSTGRESQL_HAS_NONE,
    SQL_VALUES,
    Digits,
    Writers,
    bare_float,
    digits,
    image,
    joined,
    message,
    plain_decimal,
    postgresql_type,
    text,
)

# --- wal2json
# ----------------------------------------------------------------------------------------------------------------------

# Values as PostgreSQL prints them, but numbers and booleans are JSON's, and bytes lack the \x.
WAL2JSON_VALUES: Writers = {
    **SQL_VALUES,
    "integer": digits,
    "boolean": lambda column, value: bool(value),
    "decimal": lambda column, value: Digits(plain_decimal(column, value)),
    **dict.fromkeys(("float", "double"), bare_float),
}
WAL2JSON_ACTIONS = {"insert": "I", "update": "U", "delete": "D", "truncate": "T"}
SCHEMA = "public"


def is_told(change: Any) -> bool:
    return change.op in WAL2JSON_ACTIONS and change.table.name not in POSTGRESQL_HAS_NONE


def has_identity(change: Any) -> bool:
    """Updates and deletes of a table without a key are not sent, unless all columns are its replica identity."""
    return change.op in ("insert", "truncate") or bool(change.table.key)


def commit_time(change: Any) -> str:
    moment = datetime.fromtimestamp(change.instant / 1000, timezone.utc)
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f") + "+00"


def place_in_log(change: Any) -> str:
    """Two hexadecimal numbers, without zeros in front: as texts, they are in another order."""
    return f"16/{change.order * 128:X}"


def listed(change: Any, row: Mapping[str, Any] | None) -> list[dict[str, Any]] | None:
    """A list of objects, one a column."""
    written = image(change, row, WAL2JSON_VALUES)
    if written is None:
        return None
    types = {column.name: postgresql_type(column) for column in change.table.columns if column.name in written}
    return [{"name": name, "type": types[name], "value": value} for name, value in written.items()]


def wal2json(change: Any) -> list[bytes]:
    """With the options include-xids, include-timestamp, include-lsn and include-pk."""
    if not is_told(change) or not has_identity(change):
        return []
    head = {"xid": change.order, "timestamp": commit_time(change), "lsn": place_in_log(change)}
    table = {"schema": SCHEMA, "table": change.table.name}
    body: dict[str, Any] = {"action": WAL2JSON_ACTIONS[change.op], **head, **table}
    if change.kind == "row":
        after, before = listed(change, change.after), listed_key(change, change.before)
        body |= {"columns": after} if after is not None else {}
        body |= {"identity": before} if before is not None else {}
        body["pk"] = [{"name": name, "type": type_} for name, type_ in key_types(change).items()]
    return message(body)


def listed_key(change: Any, row: Mapping[str, Any] | None) -> list[dict[str, Any]] | None:
    """The replica identity: the columns of the key."""
    columns = listed(change, row)
    return columns and [column for column in columns if column["name"] in change.table.key]


def key_types(change: Any) -> dict[str, str]:
    return {column.name: postgresql_type(column) for column in change.table.columns if column.name in change.table.key}


WAL2JSON_KINDS = {"insert": "insert", "update": "update", "delete": "delete"}


def wal2json_v1(change: Any) -> list[bytes]:
    """A transaction of one change. It has no kind for a truncated table."""
    if change.op not in WAL2JSON_KINDS or not is_told(change) or not has_identity(change):
        return []
    one: dict[str, Any] = {"kind": change.op, "schema": SCHEMA, "table": change.table.name}
    one |= in_step(listed(change, change.after), "column")
    old = in_step(listed_key(change, change.before), "key")
    if old:
        one["oldkeys"] = old
    keys = key_types(change)
    if keys:
        one["pk"] = {"pknames": list(keys), "pktypes": list(keys.values())}
    head = {"xid": change.order, "nextlsn": place_in_log(change), "timestamp": commit_time(change)}
    return message({**head, "change": [one]})


def in_step(columns: list[dict[str, Any]] | None, word: str) -> dict[str, Any]:
    if columns is None:
        return {}
    return {f"{word}{part}s": [column[part] for column in columns] for part in ("name", "type", "value")}


# --- AWS DMS
# ----------------------------------------------------------------------------------------------------------------------

AWS_DMS_VALUES: Writers = {
    **dict.fromkeys(("integer", "boolean"), digits),
    "decimal": lambda column, value: Digits(plain_decimal(column, value)),
    **dict.fromkeys(("float", "double"), bare_float),
    **dict.fromkeys(("string", "enum", "json", "date", "time"), text),
    "set": joined,
    "binary": lambda column, value: value.hex(),
    "datetime": lambda column, value: value.replace(" ", "T"),
    "timestamp": lambda column, value: iso_time(value),
}
AWS_DMS_HAS_NONE = ("zero_dates", "zero_moments", "long_times")
AWS_DMS_ROWS = {"snapshot": "load", "insert": "insert", "update": "update", "delete": "delete"}
AWS_DMS_STATEMENTS = {"alter": "add-column", "truncate": "truncate-table"}


def iso_time(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def iso_milliseconds(milliseconds: int) -> str:
    return iso_time(datetime.fromtimestamp(milliseconds / 1000, timezone.utc))


def aws_dms(change: Any) -> list[bytes]:
    """Of MySQL, with IncludeNullAndEmpty, IncludeTransactionDetails, IncludeTableAlterOperations, NoHexPrefix, and all
    columns that have changed in `before-image`.
    """
    word = {**AWS_DMS_ROWS, **AWS_DMS_STATEMENTS}.get(change.op)
    if word is None or change.table.name in AWS_DMS_HAS_NONE:
        return []
    is_row = change.kind == "row"
    metadata = {
        "timestamp": iso_milliseconds(change.written),
        "record-type": "data" if is_row else "control",
        "operation": word,
        "partition-key-type": "schema-table" if is_row else "task-id",
        "schema-name": change.table.database,
        "table-name": change.table.name,
    }
    if change.op in ("insert", "update", "delete"):
        details = {"transaction-id": change.order, "transaction-record-id": 1}
        metadata |= {**details, "commit-timestamp": iso_milliseconds(change.instant), "stream-position": "0"}
    if not is_row:
        return message({"metadata": metadata})
    before, after = (image(change, row, AWS_DMS_VALUES) for row in (change.before, change.after))
    body = {"data": before if change.op == "delete" else after}
    if change.op == "update":
        body["before-image"] = before
    return message({**body, "metadata": metadata})


LOGICAL_ENCODERS: dict[str, Callable[[Any], list[bytes]]] = {
    "wal2json": wal2json,
    "wal2json_v1": wal2json_v1,
    "aws_dms": aws_dms,
}
