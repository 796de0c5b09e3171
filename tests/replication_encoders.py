"""How tools of other vendors write a change, from their documents alone, as in `encoders`: Maxwell and what is like it,
TiCDC, Oracle GoldenGate, Qlik Replicate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from struct import pack
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
    base64_text,
    base_type,
    bit_bytes,
    canal_message,
    changed_columns,
    declared_fraction,
    digits,
    enum_ordinal,
    epoch_ms,
    events,
    geometry_bytes,
    image,
    joined,
    json_text,
    local_moment,
    message,
    plain_decimal,
    set_mask,
    sixteen_digits,
    some_columns,
    text,
)
from tests.topic_records import Record

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


# The Open Protocol's numbers of types, and flags: binary, key, unsigned.
TIDB_TYPES = {
    "tinyint": 1, "smallint": 2, "int": 3, "float": 4, "double": 5, "timestamp": 7, "bigint": 8, "mediumint": 9,
    "date": 10, "time": 11, "datetime": 12, "year": 13, "varchar": 15, "varbinary": 15, "bit": 16,
    "json": 245, "decimal": 246, "enum": 247, "set": 248, "text": 252, "blob": 252,
}  # fmt: skip
BINARY, KEY, UNSIGNED = 1, 10, 128
TIDB_STATEMENTS = {"alter": 5, "index": 7, "truncate": 11}
ROW_EVENT, STATEMENT_EVENT, RESOLVED_EVENT = 1, 2, 3


def escaped_text(value: bytes) -> str:
    """As Go quotes it: `\\x00`. Its other escapes do not occur in the changes."""
    return "".join(chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}" for byte in value)


def text_or_base64(column: Any, value: str) -> str:
    return base64_text(value.encode()) if base_type(column) == "text" else value


TICDC_OPEN_VALUES: Writers = {
    **{kind: TICDC_VALUES[kind] for kind in ("json", "date", "time", "datetime", "timestamp")},
    **dict.fromkeys(("integer", "boolean", "bit"), digits),
    "decimal": plain_decimal,
    **dict.fromkeys(("float", "double"), bare_float),
    "string": text_or_base64,
    "enum": lambda column, value: Digits(enum_ordinal(column, value)),
    "set": lambda column, value: Digits(set_mask(column, value)),
    "binary": lambda column, value: base64_text(value) if base_type(column) == "blob" else escaped_text(value),
}


def ticdc_open(change: Any) -> list[Record]:
    """A message for each event. The key is the version 1 and what changed, the value how; each behind its length."""
    return [] if change.op == "snapshot" else [ticdc_open_event(event) for event in events(change)]


def ticdc_open_event(change: Any) -> Record:
    key: dict[str, Any] = {"ts": (change.instant << 18) + change.order}
    if change.op == "heartbeat":
        return framed({**key, "t": RESOLVED_EVENT}, None)
    key |= {"scm": change.table.database, "tbl": change.table.name}
    if change.kind == "ddl":
        return framed({**key, "t": STATEMENT_EVENT}, {"q": change.statement, "t": TIDB_STATEMENTS[change.op]})
    sides = {"d": change.before} if change.op == "delete" else {"u": change.after, "p": change.before}
    rows = {side: ticdc_open_row(change, row) for side, row in sides.items() if row is not None}
    return framed({**key, "t": ROW_EVENT}, rows)


def ticdc_open_row(change: Any, row: Mapping[str, Any]) -> dict[str, Any]:
    columns = {column.name: column for column in change.table.columns}
    written = image(change, row, TICDC_OPEN_VALUES)
    return {name: ticdc_open_value(columns[name], value, change.table.key) for name, value in written.items()}


def ticdc_open_value(column: Any, value: Any, key: tuple[str, ...]) -> dict[str, Any]:
    is_number = column.kind == "integer" and column.name in key  # as the samples have it
    flags = BINARY if column.kind == "binary" or is_number else 0
    flags |= UNSIGNED if "unsigned" in column.type else 0
    handle = {"h": True} if column.name in key else {}
    return {"t": TIDB_TYPES[base_type(column)], **handle, "f": flags | (KEY if handle else 0), "v": value}


def framed(key: dict[str, Any], value: dict[str, Any] | None) -> Record:
    told, how = json_text(key).encode(), b"" if value is None else json_text(value).encode()
    return Record(pack(">qq", 1, len(told)) + told, pack(">q", len(how)) + how)


# --- Tencent DTS
# ----------------------------------------------------------------------------------------------------------------------


def three_digits(column: Any, value: str) -> str:
    whole, _, fraction = value.partition(".")
    return f"{whole}.{fraction[:3].ljust(3, '0')}"


TENCENT_VALUES: Writers = {
    **dict.fromkeys(("integer", "boolean", "bit", "string", "enum", "json", "date"), text),
    "decimal": plain_decimal,
    **dict.fromkeys(("float", "double"), lambda column, value: repr(value)),
    "set": joined,
    "binary": lambda column, value: f"0x{value.hex()}",
    "geometry": lambda column, value: f"0x{geometry_bytes(value).hex()}",
    **dict.fromkeys(("time", "datetime"), three_digits),
    "timestamp": lambda column, value: str(epoch_ms(value)),
}
TENCENT_HAS_NONE = ("zero_dates", "zero_moments")


def tencent_dts(change: Any) -> list[bytes]:
    if change.table and change.table.name in TENCENT_HAS_NONE:
        return []
    row_words = {"snapshot": "INIT_INSERT", "heartbeat": "HEARTBEAT"}
    body: dict[str, Any] = {
        "id": change.order,
        "version": 1,
        "messageType": row_words.get(change.op) or ("DDL" if change.kind == "ddl" else change.op.upper()),
        "timestamp": change.instant // 1000,
        "gtid": f"c7c98333-6006-11ed-bfc9-b8cef6e1a231:{change.order}",
        "sourceType": "MySQL",
        "schemaName": change.table.database if change.table else "",
        "tableName": change.table.name if change.table else "",
        "columns": None,
        "oldColumns": None,
        "newColumns": None,
        "sql": change.statement or "",
        "heartbeatTimestamp": change.instant // 1000 if change.op == "heartbeat" else 0,
        "pkNames": None,
        "readerTimestamp": change.written,
        "total": 1,
        "index": 0,
    }
    return message({**body, **(tencent_row(change) if change.kind == "row" else {})})


def tencent_row(change: Any) -> dict[str, Any]:
    """Values in step with the columns."""
    before, after = (image(change, row, TENCENT_VALUES) for row in (change.before, change.after))
    columns = [
        {"name": column.name, "isKey": column.name in change.table.key, "originalType": column.type}
        for column in change.table.columns
        if column.kind in TENCENT_VALUES
    ]
    rows = {"oldColumns": before and list(before.values()), "newColumns": after and list(after.values())}
    return {"columns": columns, **rows, "pkNames": list(change.table.key) or None}


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


FRAME_ENCODERS: dict[str, Callable[[Any], list[Record]]] = {"ticdc_open": ticdc_open}
REPLICATION_ENCODERS: dict[str, Callable[[Any], list[bytes]]] = {
    "maxwell": maxwell,
    "oms_maxwell": oms_maxwell,
    "ticdc_canal": ticdc_canal,
    "ogg_json": ogg_json,
    "ogg_json_row": ogg_json_row,
    "qlik_replicate": qlik_replicate,
    "tencent_dts": tencent_dts,
}
