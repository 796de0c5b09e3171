"""How Debezium's connectors, and OceanBase OMS in formats like Debezium's, write a change, from their documents alone,
as in `encoders`: records of topics, with the schemas of Kafka Connect, and settings that are the default unless
vendors/exceptions.yml says otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from tests.encoders import (
    Writers,
    bare_float,
    base64_of_bytes,
    base64_text,
    bit_bytes,
    changed_columns,
    digits,
    epoch_ms,
    events,
    geometry_bytes,
    image,
    is_replaced,
    joined,
    json_text,
    message,
    null_if_empty,
    padded,
    plain_decimal,
    postgresql_type,
    some_columns,
    text,
    type_parameter,
)
from tests.topic_records import Record, record

EPOCH_CLOCK = datetime(1970, 1, 1)
CONNECT_DECIMAL = "org.apache.kafka.connect.data.Decimal"


# --- values
# ----------------------------------------------------------------------------------------------------------------------


def unscaled(column: Any, value: Decimal) -> str:
    """The digits as a whole number in two's complement."""
    return whole_bytes(int(f"{value:.{scale_of(column)}f}".replace(".", "")))


def whole_bytes(number: int) -> str:
    length = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return base64_text(number.to_bytes(length, "big", signed=True))


def scale_of(column: Any) -> int:
    return int(column.type.rstrip(")").rpartition(",")[2]) if column.kind == "decimal" else 0


def exceeds_long(column: Any) -> bool:
    return column.type == "bigint unsigned"


def whole_number(column: Any, value: int) -> str:
    return whole_bytes(value) if exceeds_long(column) else digits(column, value)


def little_endian(column: Any, value: int) -> str | bool:
    """The bytes of several bits; one bit is a boolean."""
    return bool(value) if is_one_bit(column) else base64_text(bit_bytes(column, value)[::-1])


def is_one_bit(column: Any) -> bool:
    return type_parameter(column, 1) == 1


def days(column: Any, value: str) -> int:
    return (date.fromisoformat(value) - date(1970, 1, 1)).days


def micros_of_day(column: Any, value: str) -> int:
    """Of a time of day, which may be negative or longer than a day."""
    hours, minutes, seconds = padded(value.lstrip("-")).split(":")
    whole, _, fraction = seconds.partition(".")
    micros = (int(hours) * 3600 + int(minutes) * 60 + int(whole)) * 1_000_000 + int(fraction or 0)
    return -micros if value.startswith("-") else micros


def clock_micros(value: str) -> int:
    return (datetime.fromisoformat(padded(value)) - EPOCH_CLOCK) // timedelta(microseconds=1)


def clock(column: Any, value: str) -> int:
    """Milliseconds of a column with up to three digits of fraction, else microseconds."""
    return clock_micros(value) if type_parameter(column, 0) > 3 else clock_micros(value) // 1000


def zoned(column: Any, value: datetime) -> str:
    moment = value.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return moment.rstrip("0").rstrip(".") + "Z"


DEBEZIUM_VALUES: Writers = {
    "integer": whole_number,
    "boolean": digits,
    "decimal": unscaled,
    **dict.fromkeys(("float", "double"), bare_float),
    **dict.fromkeys(("string", "enum", "json"), text),
    "set": joined,
    "binary": base64_of_bytes,
    "bit": little_endian,
    "date": days,
    "time": micros_of_day,
    "datetime": clock,
    "timestamp": zoned,
}


def semantic_type(column: Any) -> dict[str, Any]:
    """What the schema says of a column of MySQL."""
    match column.kind:
        case "integer" if exceeds_long(column):
            return {"type": "bytes", "name": CONNECT_DECIMAL, "parameters": {"scale": "0"}}
        case "integer" | "boolean":
            return {"type": "int64"}
        case "decimal":
            return {"type": "bytes", "name": CONNECT_DECIMAL, "parameters": {"scale": str(scale_of(column))}}
        case "float" | "double":
            return {"type": column.kind}
        case "enum" | "set":
            name = "io.debezium.data.Enum" + ("Set" if column.kind == "set" else "")
            return {"type": "string", "name": name, "parameters": {"allowed": ",".join(column.labels)}}
        case "json":
            return {"type": "string", "name": "io.debezium.data.Json"}
        case "binary":
            return {"type": "bytes"}
        case "bit" if is_one_bit(column):
            return {"type": "boolean"}
        case "bit":
            length = {"length": str(type_parameter(column, 1))}
            return {"type": "bytes", "name": "io.debezium.data.Bits", "parameters": length}
        case "datetime":
            micros = type_parameter(column, 0) > 3
            return {"type": "int64", "name": f"io.debezium.time.{'Micro' if micros else ''}Timestamp"}
    return {**TIMES.get(column.kind, {"type": "string"})}


TIMES = {
    "date": {"type": "int32", "name": "io.debezium.time.Date"},
    "time": {"type": "int64", "name": "io.debezium.time.MicroTime"},
    "timestamp": {"type": "string", "name": "io.debezium.time.ZonedTimestamp"},
}

TypeName = Callable[[Any], dict[str, Any]]


def fields_of(change: Any, writers: Writers, type_name: TypeName) -> list[dict[str, Any]]:
    """The schema of a row."""
    columns = [column for column in change.table.columns if column.kind in writers]
    return [{**type_name(column), "optional": True, "field": column.name} for column in columns]


def envelope_schema(fields: list[dict[str, Any]], struct: str = "struct") -> dict[str, Any]:
    rows = [{"type": struct, "fields": fields, "optional": True, "field": side} for side in ("before", "after")]
    return {"type": struct, "fields": [*rows, {"type": "string", "optional": False, "field": "op"}]}


# --- Debezium from MySQL
# ----------------------------------------------------------------------------------------------------------------------

# Zero dates become null or the epoch: what the row held is lost.
DEBEZIUM_HAS_NONE = ("zero_dates", "zero_moments")
DEBEZIUM_OPS = {"snapshot": "r", "insert": "c", "update": "u", "delete": "d", "truncate": "t"}


def key_of(change: Any, writers: Writers, type_name: TypeName) -> dict[str, Any] | None:
    """The record's key, with its schema."""
    if not change.table.key:
        return None
    row = image(change, change.after or change.before, writers)
    fields = [one for one in fields_of(change, writers, type_name) if one["field"] in change.table.key]
    return {"schema": {"type": "struct", "fields": fields}, "payload": some_columns(row, change.table.key)}


def with_tombstone(change: Any, sent: Record) -> list[Record]:
    """Behind the delete of a row with a key comes a record with the key alone."""
    return [sent, sent._replace(value=None)] if change.op == "delete" and sent.key else [sent]


def heartbeat(change: Any) -> Record:
    return record({"serverName": "shop_server"}, {"ts_ms": change.written}, "__debezium-heartbeat.shop_server")


def source_of(change: Any) -> dict[str, Any]:
    return {
        "version": "2.5.0.Final",
        "connector": "mysql",
        "name": "shop_server",
        "ts_ms": change.instant // 1000 * 1000,
        "snapshot": "true" if change.op == "snapshot" else "false",
        "db": change.table.database,
        "table": change.table.name,
        "server_id": 223344,
        "gtid": f"24da167-11e6-4d21-8c5b-1b3c2d0a9f10:{change.order}",
        "file": f"mysql-bin.{change.order // 10 + 1:06}",
        "pos": 4 + change.order % 10,
        "row": 0,
    }


def debezium(change: Any) -> list[Record]:
    """Statements and heartbeats are in topics of their own, which the same source reads."""
    if change.op == "heartbeat":
        return [heartbeat(change)]
    if change.table.name in DEBEZIUM_HAS_NONE:
        return []
    if change.kind == "ddl":
        names = {"databaseName": change.table.database, "schemaName": None}
        body = {"source": source_of(change), **names, "ddl": change.statement, "tableChanges": []}
        value = {"payload": {**body, "ts_ms": change.written}, "schema": {"type": "struct"}}
        return [record({"payload": {"databaseName": change.table.database}}, value)]
    return [one for event in events(change) for one in with_tombstone(event, debezium_event(event))]


def debezium_event(change: Any) -> Record:
    before, after = (image(change, row, DEBEZIUM_VALUES) for row in (change.before, change.after))
    event = {"before": before, "after": after, "source": source_of(change), "op": DEBEZIUM_OPS[change.op]}
    schema = envelope_schema(fields_of(change, DEBEZIUM_VALUES, semantic_type))
    key = key_of(change, DEBEZIUM_VALUES, semantic_type)
    return record(key, {"schema": schema, "payload": {**event, "ts_ms": change.written}})


def debezium_flat(change: Any) -> list[Record]:
    """Deletes are rewritten. What is no change of a row does not go through the transform."""
    if change.kind != "row" or change.table.name in DEBEZIUM_HAS_NONE:
        return []
    return [flat_event(event) for event in events(change)]


def flat_event(change: Any) -> Record:
    source = source_of(change)
    added = {
        "__deleted": "true" if change.op == "delete" else "false",
        "__op": DEBEZIUM_OPS[change.op],
        "__ts_ms": change.written,
        **{f"__{name}": source[name] for name in ("db", "table")},
        **{f"__source_{name}": source[name] for name in ("ts_ms", "connector", "file", "pos", "row", "gtid")},
    }
    row = image(change, change.after or change.before, DEBEZIUM_VALUES)
    schema = {"type": "struct", "fields": fields_of(change, DEBEZIUM_VALUES, semantic_type)}
    key = key_of(change, DEBEZIUM_VALUES, semantic_type)
    return record(key, {"schema": schema, "payload": {**row, **added}})


# --- Debezium from PostgreSQL, tables with the default replica identity
# ----------------------------------------------------------------------------------------------------------------------

POSTGRESQL_HAS_NONE = ("long_times", *DEBEZIUM_HAS_NONE)
POSTGRESQL_VALUES: Writers = {
    **DEBEZIUM_VALUES,
    "boolean": lambda column, value: bool(value),
    # A numeric that declares no scale has that of each value.
    "integer": lambda column, value: (
        {"scale": 0, "value": whole_bytes(value)} if exceeds_long(column) else digits(column, value)
    ),
}


def postgresql_semantic_type(column: Any) -> dict[str, Any]:
    if exceeds_long(column):
        return {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal"}
    match postgresql_type(column):
        case "boolean":
            return {"type": "boolean"}
        case "character varying" | "text":
            return {"type": "string"}
    return semantic_type(column)


def debezium_postgresql(change: Any) -> list[Record]:
    """A truncated table is told, with the setting for it."""
    if change.op == "heartbeat":
        return [heartbeat(change)]
    if change.op in ("alter", "index") or change.table.name in POSTGRESQL_HAS_NONE:
        return []
    if change.op == "truncate":
        event = {"before": None, "after": None, "source": postgresql_source(change), "op": "t"}
        return [record(None, {"payload": {**event, "ts_ms": change.written}})]
    if change.op in ("update", "delete") and not change.table.key:
        return []
    return [one for event in events(change) for one in with_tombstone(event, postgresql_event(event))]


def postgresql_event(change: Any) -> Record:
    """Of the row before, a delete has the key, and null for all other columns."""
    after = image(change, change.after, POSTGRESQL_VALUES)
    before = None
    if change.op == "delete":
        row = image(change, change.before, POSTGRESQL_VALUES)
        before = {name: value if name in change.table.key else None for name, value in row.items()}
    event = {"before": before, "after": after, "source": postgresql_source(change), "op": DEBEZIUM_OPS[change.op]}
    schema = envelope_schema(fields_of(change, POSTGRESQL_VALUES, postgresql_semantic_type))
    key = key_of(change, POSTGRESQL_VALUES, postgresql_semantic_type)
    return record(key, {"schema": schema, "payload": {**event, "ts_ms": change.written}})


def postgresql_source(change: Any) -> dict[str, Any]:
    place = change.order * 128
    return {
        "version": "2.5.0.Final",
        "connector": "postgresql",
        "name": "shop_server",
        "ts_ms": change.instant,
        "snapshot": "true" if change.op == "snapshot" else "false",
        "db": change.table.database,
        "sequence": json.dumps([str(place - 64), str(place)]),
        "schema": "public",
        "table": change.table.name,
        "txId": change.order,
        "lsn": place,
        "xmin": None,
    }


# --- Debezium from Oracle, SQL Server and Db2
# ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Connector:
    """A connector to a database: the schema that its tables are in, how it writes values and names their types, the
    tables that it cannot have, what the place of an event in the log is called, and whether it tells statements.
    """

    name: str
    schema: str
    writers: Writers
    type_name: TypeName
    has_none: tuple[str, ...]
    place: Callable[[Any], dict[str, Any]]
    has_statements: bool = False


def connector_records(change: Any, connector: Connector) -> list[Record]:
    """Changes of tables are in the topic for them, with the table as it is then; indexes are none. Of truncated tables
    only one connector could tell, and by default it does not.
    """
    if change.op == "heartbeat":
        return [heartbeat(change)]
    if change.op in ("index", "truncate") or change.table.name in connector.has_none:
        return []
    if change.kind == "ddl":
        names = {"databaseName": change.table.database, "schemaName": connector.schema}
        table = {"type": "ALTER", "id": change.table.name, "table": {"columns": [{"name": "id", "length": 10}]}}
        statement = change.statement if connector.has_statements else None
        body = {"source": connector_source(change, connector), "ts_ms": change.written, **names, "ddl": statement}
        value = {"payload": {**body, "tableChanges": [table]}}
        return [record({"payload": {"databaseName": change.table.database}}, value)]
    return [one for event in events(change) for one in with_tombstone(event, connector_event(event, connector))]


def connector_event(change: Any, connector: Connector) -> Record:
    before, after = (image(change, row, connector.writers) for row in (change.before, change.after))
    source, op = connector_source(change, connector), DEBEZIUM_OPS[change.op]
    schema = envelope_schema(fields_of(change, connector.writers, connector.type_name))
    payload = {"before": before, "after": after, "source": source, "op": op, "ts_ms": change.written}
    return record(key_of(change, connector.writers, connector.type_name), {"schema": schema, "payload": payload})


def connector_source(change: Any, connector: Connector) -> dict[str, Any]:
    return {
        "version": "2.5.0.Final",
        "connector": connector.name,
        "name": "shop_server",
        "snapshot": "true" if change.op == "snapshot" else "false",
        "db": change.table.database,
        "schema": connector.schema,
        "table": change.table.name,
        **connector.place(change),
    }


def exceeds_int64(column: Any) -> bool:
    """Of these databases, whose types have other bounds, a wide enough decimal holds the largest numbers."""
    return column.kind == "integer" and column.type.startswith("bigint")


def whole_decimal(column: Any, value: int) -> str:
    return whole_bytes(value) if exceeds_int64(column) else digits(column, value)


def decimal_type(scale: int) -> dict[str, Any]:
    return {"type": "bytes", "name": CONNECT_DECIMAL, "parameters": {"scale": str(scale)}}


def oracle_semantic_type(column: Any) -> dict[str, Any]:
    """Labels and documents are texts; a DATE has a time of day."""
    if exceeds_int64(column):
        return decimal_type(0)
    match column.kind:
        case "integer":
            return {"type": "int32"}
        case "boolean":
            return {"type": "int8"}
        case "date":
            return {"type": "int64", "name": "io.debezium.time.Timestamp"}
        case "enum" | "set" | "json":
            return {"type": "string"}
    return semantic_type(column)


def oracle_place(change: Any) -> dict[str, Any]:
    """System change numbers are texts. A time in the log is a whole second."""
    is_snapshot = change.op == "snapshot"
    return {
        "ts_ms": change.instant // 1000 * 1000,
        "txId": None if is_snapshot else f"6.28.{change.order}",
        "scn": str(2_122_000 + 2 * change.order),
        "commit_scn": None if is_snapshot else str(2_122_001 + 2 * change.order),
        "rs_id": None if is_snapshot else "001234.00012345.0124",
        "ssn": 0,
        "redo_thread": None if is_snapshot else 1,
    }


ORACLE = Connector(
    "oracle",
    "SHOP",
    {
        "integer": whole_decimal,
        "boolean": digits,
        "decimal": unscaled,
        **dict.fromkeys(("float", "double"), bare_float),
        **dict.fromkeys(("string", "enum", "json"), lambda column, value: null_if_empty(value)),
        "set": lambda column, value: null_if_empty(joined(column, value)),
        "binary": lambda column, value: null_if_empty(base64_of_bytes(column, value)),
        "date": lambda column, value: days(column, value) * 86_400_000,
        "datetime": clock,
        "timestamp": zoned,
    },
    oracle_semantic_type,
    ("wide_decimals", *DEBEZIUM_HAS_NONE),
    oracle_place,
    has_statements=True,
)


def sqlserver_semantic_type(column: Any) -> dict[str, Any]:
    if exceeds_int64(column):
        return decimal_type(0)
    match column.kind:
        case "boolean":
            return {"type": "boolean"}
        case "enum" | "set" | "json":
            return {"type": "string"}
    return semantic_type(column)


def log_number(number: int, part: int) -> str:
    """A number in the log: three numbers in hexadecimal digits."""
    return f"00000027:{number:08x}:{part:04x}"


def sqlserver_place(change: Any) -> dict[str, Any]:
    return {
        "ts_ms": change.instant,
        "change_lsn": None if change.op == "snapshot" else log_number(change.order, 2),
        "commit_lsn": log_number(change.order, 5),
        "event_serial_no": None if change.op == "snapshot" else 1 + (change.op == "update"),
    }


SQLSERVER = Connector(
    "sqlserver",
    "dbo",
    {
        "integer": whole_decimal,
        "boolean": lambda column, value: bool(value),
        "decimal": unscaled,
        **dict.fromkeys(("float", "double"), bare_float),
        **dict.fromkeys(("string", "enum", "json"), text),
        "set": joined,
        "binary": base64_of_bytes,
        "date": days,
        "time": micros_of_day,
        "datetime": clock,
        "timestamp": zoned,
    },
    sqlserver_semantic_type,
    ("wide_decimals", *POSTGRESQL_HAS_NONE),
    sqlserver_place,
)


def db2_semantic_type(column: Any) -> dict[str, Any]:
    match column.kind:
        case "boolean":
            return {"type": "int16"}
        case "time":
            return {"type": "int32", "name": "io.debezium.time.Time"}
        case "datetime":
            return {"type": "int64", "name": "io.debezium.time.MicroTimestamp"}
    return sqlserver_semantic_type(column)


def db2_place(change: Any) -> dict[str, Any]:
    place = sqlserver_place(change)
    return {name: place[name] for name in ("ts_ms", "change_lsn", "commit_lsn")}


DB2 = Connector(
    "db2",
    "DB2INST1",
    {
        **{kind: writer for kind, writer in SQLSERVER.writers.items() if kind != "timestamp"},
        "boolean": digits,
        "time": lambda column, value: micros_of_day(column, value) // 1_000_000 * 1000,
        "datetime": lambda column, value: clock_micros(value),
    },
    db2_semantic_type,
    ("wide_decimals", *POSTGRESQL_HAS_NONE),
    db2_place,
)


def debezium_oracle(change: Any) -> list[Record]:
    return connector_records(change, ORACLE)


def debezium_sqlserver(change: Any) -> list[Record]:
    return connector_records(change, SQLSERVER)


def debezium_db2(change: Any) -> list[Record]:
    return connector_records(change, DB2)


# --- Debezium from MongoDB
# ----------------------------------------------------------------------------------------------------------------------

MONGODB_HAS_NONE = ("wide_decimals", "zero_moments")


def extended_integer(column: Any, value: int) -> Any:
    if -(2**31) <= value < 2**31:
        return digits(column, value)
    return {"$numberLong" if value < 2**63 else "$numberDecimal": str(value)}


def nested(column: Any, value: str) -> Any:
    """A document in a document: numbers with a point are decimals, because a double would lose digits."""
    return json.loads(
        value,
        parse_int=lambda number: extended_integer(column, int(number)),
        parse_float=lambda number: {"$numberDecimal": number},
    )


MONGODB_VALUES: Writers = {
    **dict.fromkeys(("integer", "bit"), extended_integer),
    "boolean": lambda column, value: bool(value),
    "decimal": lambda column, value: {"$numberDecimal": plain_decimal(column, value)},
    **dict.fromkeys(("float", "double"), bare_float),
    **dict.fromkeys(("string", "enum", "date", "time", "datetime"), text),
    "set": joined,
    "json": nested,
    "binary": lambda column, value: {"$binary": {"base64": base64_text(value), "subType": "00"}},
    "timestamp": lambda column, value: {"$date": epoch_ms(value)},
}


def debezium_mongodb(change: Any) -> list[Record]:
    """An update brings the document as it is after it."""
    return mongodb_records(change, with_document=True)


def debezium_mongodb_patches(change: Any) -> list[Record]:
    """An update brings what was set."""
    return mongodb_records(change, with_document=False)


def mongodb_records(change: Any, with_document: bool) -> list[Record]:
    if change.op == "heartbeat":
        return [heartbeat(change)]
    if change.kind != "row" or change.table.name in MONGODB_HAS_NONE:
        return []
    identity = {"_id": {"$oid": change.document_id}}
    event: dict[str, Any] = {"op": DEBEZIUM_OPS[change.op], "source": mongodb_source(change), "ts_ms": change.written}
    if change.op != "delete":
        document = image(change, change.after, MONGODB_VALUES)
        is_patch = change.op == "update" and not is_replaced(change)
        if is_patch:
            event["updateDescription"] = patch_of(some_columns(document, changed_columns(change)))
        event["after"] = json_text({**identity, **document}) if with_document or not is_patch else None
    key = {"payload": {"id": json_text(identity["_id"])}, "schema": {"type": "struct"}}
    return with_tombstone(change, record(key, {"payload": event, "schema": {"type": "struct"}}))


def patch_of(updated: Mapping[str, Any]) -> dict[str, Any]:
    return {"removedFields": None, "updatedFields": json_text(dict(updated)), "truncatedArrays": None}


def mongodb_source(change: Any) -> dict[str, Any]:
    """The time is that of the log: a second, and a number within it."""
    return {
        "version": "2.5.0.Final",
        "connector": "mongodb",
        "name": "shop_server",
        "ts_ms": change.instant // 1000 * 1000,
        "snapshot": "true" if change.op == "snapshot" else "false",
        "db": change.table.database,
        "rs": "rs0",
        "collection": change.table.name,
        "ord": change.order,
    }


# --- OceanBase OMS
# ----------------------------------------------------------------------------------------------------------------------


def hexadecimal(value: bytes) -> str:
    return value.hex().upper()


OMS_VALUES: Writers = {
    **DEBEZIUM_VALUES,
    "integer": lambda column, value: str(value) if exceeds_long(column) else digits(column, value),
    "decimal": plain_decimal,
    "binary": lambda column, value: hexadecimal(value),
    "bit": lambda column, value: hexadecimal(bit_bytes(column, value)),
    "geometry": lambda column, value: hexadecimal(geometry_bytes(value)),
    "datetime": lambda column, value: clock_micros(value) // 1000,
}
OMS_TYPES = {
    "bit": {"type": "bytes", "name": "io.debezium.data.Bits"},
    "decimal": {"type": "string"},
    "geometry": {"type": "bytes"},
    "datetime": {"type": "int64", "name": "io.debezium.time.Timestamp"},
}


def oms_semantic_type(column: Any) -> dict[str, Any]:
    if exceeds_long(column):
        return {"type": "string"}
    return OMS_TYPES.get(column.kind) or semantic_type(column)


def oms_debezium(change: Any) -> list[bytes]:
    """Rows of the full phase have the time 0 and no place in the log."""
    second = 0 if change.op == "snapshot" else change.instant // 1000
    names = {"db": change.table and change.table.database, "table": change.table and change.table.name}
    head = {"version": "4.2.2", "connector": "OB_MYSQL", "name": "OMS", "ts_ms": second * 1000}
    source = {**head, **names, "pos": f"{change.order}@{second}" if second else None}
    if change.op == "heartbeat":
        return message({"payload": {"op": "HEARTBEAT", "source": source, "ts_ms": change.written}})
    if change.kind != "row" or change.table.name in DEBEZIUM_HAS_NONE:
        return []
    images = {"before": image(change, change.before, OMS_VALUES), "after": image(change, change.after, OMS_VALUES)}
    there = {side: row for side, row in images.items() if row is not None}
    schema = envelope_schema(fields_of(change, OMS_VALUES, oms_semantic_type), "STRUCT")
    op = "c" if change.op == "snapshot" else DEBEZIUM_OPS[change.op]
    return message({"schema": schema, "payload": {"op": op, "source": source, **there, "ts_ms": change.written}})


def oms_debezium_smt(change: Any) -> list[Record]:
    """A topic for each table, which messages do not name."""
    if change.kind != "row" or change.table.name in DEBEZIUM_HAS_NONE:
        return []
    row = image(change, change.after or change.before, OMS_VALUES)
    schema = {"type": "STRUCT", "fields": fields_of(change, OMS_VALUES, oms_semantic_type)}
    payload = {**row, "__deleted": "true" if change.op == "delete" else "false"}
    return [record(None, {"schema": schema, "payload": payload}, change.table.name)]


DEBEZIUM_ENCODERS: dict[str, Callable[[Any], list[Record]]] = {
    "debezium": debezium,
    "debezium_oracle": debezium_oracle,
    "debezium_sqlserver": debezium_sqlserver,
    "debezium_db2": debezium_db2,
    "debezium_flat": debezium_flat,
    "debezium_postgresql": debezium_postgresql,
    "debezium_mongodb": debezium_mongodb,
    "debezium_mongodb_patches": debezium_mongodb_patches,
    "oms_debezium_smt": oms_debezium_smt,
}
OMS_DEBEZIUM_ENCODERS: dict[str, Callable[[Any], list[bytes]]] = {"oms_debezium": oms_debezium}
