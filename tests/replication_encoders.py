"""How tools of other vendors write a change, from their documents alone, as in `encoders`: Maxwell and what is like it,
TiCDC, Oracle GoldenGate, Qlik Replicate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any
from zoneinfo import ZoneInfo

from tests.encoders import (
    CANAL_VALUES,
    LOCAL,
    OMS_VALUES,
    ORACLE_VALUES,
    Digits,
    Writers,
    bare_decimal,
    bare_float,
    base64_of_bytes,
    base_type,
    bit_bytes,
    canal_message,
    changed_columns,
    declared_fraction,
    digits,
    events,
    image,
    joined,
    local_moment,
    message,
    plain_decimal,
    sixteen_digits,
    some_columns,
    text,
)

UTC = ZoneInfo("UTC")
FULL_PHASE = 1600000000  # the time of all rows of OMS's full phase


# --- Maxwell, and OceanBase OMS in the same format
# ----------------------------------------------------------------------------------------------------------------------


def point_text(column: Any, value: tuple[int, bytes]) -> str:
    """Well known text, without the SRID; the only shape that changes have is a point at (1, 2)."""
    return "POINT (1 2)"


MAXWELL_VALUES: Writers = {
    **dict.fromkeys(("integer", "boolean", "bit"), digits),
    "decimal": bare_decimal,
    **dict.fromkeys(("float", "double"), bare_float),
    **dict.fromkeys(("string", "enum", "date"), text),
    **dict.fromkeys(("time", "datetime"), declared_fraction),
    "set": lambda column, value: list(value),
    "json": lambda column, value: Digits(value),  # a part of the message
    "binary": base64_of_bytes,
    "geometry": point_text,
    "timestamp": local_moment,
}
MAXWELL_TYPES = {"insert": "insert", "update": "update", "delete": "delete", "snapshot": "bootstrap-insert"}
MAXWELL_STATEMENTS = {"create": "table-create", "alter": "table-alter", "drop": "table-drop"}


def maxwell(change: Any) -> list[bytes]:
    """With the options that add the key's columns and the statements."""
    if change.kind == "ddl" and change.op in MAXWELL_STATEMENTS:
        return message({**maxwell_statement(change), "ts": change.instant // 1000 * 1000, **maxwell_position(change)})
    if change.kind != "row":
        return []
    log = {} if change.op == "snapshot" else {"xid": change.order, "commit": True, **maxwell_position(change)}
    old = some_columns(change.before, changed_columns(change)) if change.op == "update" else None
    return message({**maxwell_row(change, MAXWELL_VALUES, old), "ts": change.instant // 1000, **log})


def maxwell_position(change: Any) -> dict[str, str]:
    return {"position": f"mysql-bin.{change.order // 10 + 1:06}:{4 + change.order % 10}"}


def maxwell_row(change: Any, writers: Writers, old: Mapping[str, Any] | None) -> dict[str, Any]:
    """`data` holds the row after the change, or the deleted one."""
    row = change.after or change.before
    written = image(change, change.before, writers) if old is not None else {}
    return {
        "database": change.table.database,
        "table": change.table.name,
        "type": MAXWELL_TYPES[change.op],
        "primary_key_columns": list(change.table.key),
        "primary_key": [row[name] for name in change.table.key],
        "data": image(change, row, writers),
        **({} if old is None else {"old": some_columns(written, old)}),
    }


def maxwell_statement(change: Any) -> dict[str, Any]:
    names = {"database": change.table.database, "table": change.table.name}
    columns = [{"type": base_type(column), "name": column.name} for column in change.table.columns]
    table = {**names, "charset": "utf8mb4", "columns": columns, "primary-key": list(change.table.key)}
    return {"type": MAXWELL_STATEMENTS[change.op], **names, "old": table, "def": table, "sql": change.statement}


def utc_moment(column: Any, value: datetime | str) -> str:
    """Wall clock of UTC with six digits of fraction; a zero date is itself."""
    return value if isinstance(value, str) else value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


OMS_MAXWELL_VALUES: Writers = {
    **OMS_VALUES,
    "double": sixteen_digits,
    "set": lambda column, value: list(value),
    "timestamp": utc_moment,
}


def oms_maxwell(change: Any) -> list[bytes]:
    second = change.instant // 1000
    body = {"commit": True, "position": str(second), "sql": None, "def": None}
    if change.op == "heartbeat":
        nothing = dict.fromkeys(("database", "table", "xid", "data", "old", "primary_key", "primary_key_columns"))
        return message({**body, **nothing, "type": "heartbeat", "ts": second * 1000})
    if change.kind == "ddl":
        if change.op not in MAXWELL_STATEMENTS:
            return []
        statement = maxwell_statement(change)
        table = {**statement["def"], "primary-key": [], "columns": []}
        return message({**body, **statement, "ts": second, "data": None, "old": None, "def": table})
    if change.op == "snapshot":
        body = {
            **maxwell_row(change, OMS_MAXWELL_VALUES, None),
            **body,
            "ts": FULL_PHASE,
            "xid": None,
            "position": None,
        }
        return message({**body, "old": None, "type": "insert"})
    old = change.before if change.op == "update" else None
    row = maxwell_row(change, OMS_MAXWELL_VALUES, old)
    key = [str(value) for value in row["primary_key"]]
    return message({"old": None, **row, **body, "primary_key": key, "ts": second, "xid": change.transaction})


# --- TiCDC
# ----------------------------------------------------------------------------------------------------------------------

TICDC_VALUES: Writers = {kind: writer for kind, writer in CANAL_VALUES.items() if kind != "geometry"}


def ticdc_type(column: Any) -> str:
    """A type without what is in brackets."""
    return base_type(column) + (" unsigned" if "unsigned" in column.type else "")


def ticdc_canal(change: Any) -> list[bytes]:
    """With the extension. A timestamp of the commit is milliseconds, and 18 bits of a count."""
    if change.op == "snapshot":
        return []
    return [one for event in events(change) for one in ticdc_event(event)]


def ticdc_event(change: Any) -> list[bytes]:
    commit = (change.instant << 18) + change.order
    body = {**canal_message(change, TICDC_VALUES, ticdc_type, change.instant), "id": 0}
    if change.op == "heartbeat":
        return message({**body, "type": "TIDB_WATERMARK", "_tidb": {"watermarkTs": commit}})
    if change.op == "update":
        body["old"] = [image(change, change.before, TICDC_VALUES)]
    return message({**body, "_tidb": {"commitTs": commit}})


# --- Oracle GoldenGate
# ----------------------------------------------------------------------------------------------------------------------

OGG_VALUES: Writers = {
    **ORACLE_VALUES,
    **dict.fromkeys(("integer", "boolean"), digits),
    "decimal": lambda column, value: Digits(plain_decimal(column, value)),
    **dict.fromkeys(("float", "double"), bare_float),
    "binary": base64_of_bytes,
}
OGG_HAS_NONE = ("wide_decimals", "zero_dates", "zero_moments")
OGG_LETTERS = {"insert": "I", "snapshot": "I", "update": "U", "delete": "D", "truncate": "T"}


def ogg_head(change: Any) -> dict[str, Any] | None:
    """What is said of a change; None if it is not told."""
    if change.op not in OGG_LETTERS or change.table.name in OGG_HAS_NONE:
        return None
    return {
        "table": f"{change.table.database}.{change.table.name}",
        "op_type": OGG_LETTERS[change.op],
        "op_ts": ogg_time(change.instant),
        "current_ts": ogg_time(change.written).replace(" ", "T"),
        "pos": f"{change.order:020}",
        **({"primary_keys": list(change.table.key)} if change.kind == "row" and change.table.key else {}),
    }


def ogg_time(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    return moment.astimezone(LOCAL).strftime("%Y-%m-%d %H:%M:%S.%f")


def ogg_images(change: Any) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Compressed: of an update the key and what changed, of a delete the key. Without a key, all columns are one."""
    before, after = (image(change, row, OGG_VALUES) for row in (change.before, change.after))
    if change.op not in ("update", "delete") or not change.table.key:
        return before, after
    changed = changed_columns(change) if change.op == "update" else set()
    names = {*change.table.key, *changed}
    return some_columns(before, names), after and some_columns(after, names)


def ogg_json(change: Any) -> list[bytes]:
    head = ogg_head(change)
    if head is None:
        return []
    before, after = ogg_images(change) if change.kind == "row" else (None, None)
    images = {name: row for name, row in (("before", before), ("after", after)) if row is not None}
    return message({**head, **images})


def ogg_json_row(change: Any) -> list[bytes]:
    head = ogg_head(change)
    if head is None:
        return []
    before, after = ogg_images(change) if change.kind == "row" else (None, None)
    return message({**head, **(after or before or {})})


# --- Qlik Replicate
# ----------------------------------------------------------------------------------------------------------------------


def hexadecimal(column: Any, value: bytes) -> str:
    return value.hex()


def qlik_integer(column: Any, value: int) -> Digits | str:
    """A UINT8 is a text."""
    return str(value) if column.type == "bigint unsigned" else Digits(value)


QLIK_VALUES: Writers = {
    "integer": qlik_integer,
    "boolean": digits,
    "decimal": plain_decimal,
    **dict.fromkeys(("float", "double"), bare_float),
    **dict.fromkeys(("string", "enum", "json", "date", "time"), text),
    "set": joined,
    "binary": hexadecimal,
    "bit": lambda column, value: bit_bytes(column, value).hex(),
    "datetime": lambda column, value: six_digits(value),
    "timestamp": utc_moment,
}
QLIK_HAS_NONE = ("zero_dates", "zero_moments", "long_times")
QLIK_OPERATIONS = {"snapshot": "REFRESH", "insert": "INSERT", "update": "UPDATE", "delete": "DELETE"}


def six_digits(wall_clock: str) -> str:
    whole, _, fraction = wall_clock.partition(".")
    return f"{whole}.{fraction.ljust(6, '0')}"


def qlik_replicate(change: Any) -> list[bytes]:
    """In the envelope, with the names of schema and table in each message."""
    if change.op == "alter":
        return qlik_envelope("MD", qlik_table(change))
    if change.kind != "row" or change.table.name in QLIK_HAS_NONE:
        return []
    before, after = (image(change, row, QLIK_VALUES) for row in (change.before, change.after))
    if change.op == "delete":
        key = change.table.key or before
        before, after = None, {name: value if name in key else None for name, value in before.items()}
    names = {"schema": change.table.database, "table": change.table.name}
    return qlik_envelope("DT", {**names, "data": after, "beforeData": before, "headers": qlik_headers(change)})


def qlik_envelope(kind: str, body: dict[str, Any]) -> list[bytes]:
    nothing = dict.fromkeys(("headers", "messageSchemaId", "messageSchema"))
    return message({"magic": "atMSG", "type": kind, **nothing, "message": body})


def qlik_headers(change: Any) -> dict[str, Any]:
    headers = {"operation": QLIK_OPERATIONS[change.op]}
    if change.op == "snapshot":
        return {**headers, **dict.fromkeys(("changeSequence", "timestamp", "streamPosition", "transactionId"), "")}
    return {
        **headers,
        "changeSequence": f"2024050102000000{change.order:019}",
        "timestamp": qlik_time(change.instant),
        "streamPosition": f"mysql-bin.000001:{change.order}",
        "transactionId": f"{change.order:032X}",
        "transactionEventCounter": 1,
        "transactionLastEvent": True,
    }


def qlik_time(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S") + f".{rest:03}"


def qlik_table(change: Any) -> dict[str, Any]:
    """The columns of a table, when a statement has changed them."""
    names = {"schema": change.table.database, "table": change.table.name}
    columns = {
        column.name: {"ordinal": number, "type": "STRING", "primaryKeyPosition": int(column.name in change.table.key)}
        for number, column in enumerate(change.table.columns, 1)
    }
    lineage = {"server": "qlik", "task": "shop", **names, "tableVersion": 2, "timestamp": qlik_time(change.instant)}
    return {"schemaId": None, "lineage": lineage, "tableStructure": {"tableColumns": columns}, "dataSchema": None}


REPLICATION_ENCODERS: dict[str, Callable[[Any], list[bytes]]] = {
    "maxwell": maxwell,
    "oms_maxwell": oms_maxwell,
    "ticdc_canal": ticdc_canal,
    "ogg_json": ogg_json,
    "ogg_json_row": ogg_json_row,
    "qlik_replicate": qlik_replicate,
}
