"""How Debezium's connector for MySQL writes a change, from its documents alone, as in `encoders`: with the schema of
Kafka Connect, and the settings that are the default.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from tests.encoders import (
    Writers,
    bare_float,
    base64_of_bytes,
    base64_text,
    bit_bytes,
    digits,
    image,
    joined,
    message,
    padded,
    text,
    type_parameter,
)

EPOCH_CLOCK = datetime(1970, 1, 1)
# Zero dates become null or the epoch: what the row held is lost.
DEBEZIUM_HAS_NONE = ("zero_dates", "zero_moments")


def unscaled(column: Any, value: Decimal) -> str:
    """The digits as a whole number in two's complement."""
    number = int(f"{value:.{scale_of(column)}f}".replace(".", ""))
    length = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return b64encode(number.to_bytes(length, "big", signed=True)).decode()


def scale_of(column: Any) -> int:
    return int(column.type.rstrip(")").rpartition(",")[2])


def little_endian(column: Any, value: int) -> str:
    return base64_text(bit_bytes(column, value)[::-1])


def days(column: Any, value: str) -> int:
    return (date.fromisoformat(value) - date(1970, 1, 1)).days


def micros_of_day(column: Any, value: str) -> int:
    """Of a time of day, which may be negative or longer than a day."""
    hours, minutes, seconds = padded(value.lstrip("-")).split(":")
    whole, _, fraction = seconds.partition(".")
    micros = (int(hours) * 3600 + int(minutes) * 60 + int(whole)) * 1_000_000 + int(fraction or 0)
    return -micros if value.startswith("-") else micros


def clock(column: Any, value: str) -> int:
    """Milliseconds of a column with up to three digits of fraction, else microseconds."""
    micros = (datetime.fromisoformat(padded(value)) - EPOCH_CLOCK) // timedelta(microseconds=1)
    return micros if type_parameter(column, 0) > 3 else micros // 1000


def zoned(column: Any, value: datetime) -> str:
    moment = value.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return moment.rstrip("0").rstrip(".") + "Z"


DEBEZIUM_VALUES: Writers = {
    **dict.fromkeys(("integer", "boolean"), digits),
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
DEBEZIUM_OPS = {"snapshot": "r", "insert": "c", "update": "u", "delete": "d"}


def semantic_type(column: Any) -> dict[str, Any]:
    """What the schema says of a column."""
    match column.kind:
        case "integer" | "boolean":
            return {"type": "int64"}
        case "decimal":
            scale = {"scale": str(scale_of(column))}
            return {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": scale}
        case "float" | "double":
            return {"type": column.kind}
        case "enum":
            return {
                "type": "string",
                "name": "io.debezium.data.Enum",
                "parameters": {"allowed": ",".join(column.labels)},
            }
        case "set":
            name = "io.debezium.data.EnumSet"
            return {"type": "string", "name": name, "parameters": {"allowed": ",".join(column.labels)}}
        case "json":
            return {"type": "string", "name": "io.debezium.data.Json"}
        case "binary":
            return {"type": "bytes"}
        case "bit":
            length = {"length": str(type_parameter(column, 1))}
            return {"type": "bytes", "name": "io.debezium.data.Bits", "parameters": length}
        case "date":
            return {"type": "int32", "name": "io.debezium.time.Date"}
        case "time":
            return {"type": "int64", "name": "io.debezium.time.MicroTime"}
        case "datetime":
            micros = type_parameter(column, 0) > 3
            return {"type": "int64", "name": f"io.debezium.time.{'Micro' if micros else ''}Timestamp"}
        case "timestamp":
            return {"type": "string", "name": "io.debezium.time.ZonedTimestamp"}
    return {"type": "string"}


def envelope_schema(change: Any) -> dict[str, Any]:
    fields = [
        {**semantic_type(column), "optional": True, "field": column.name}
        for column in change.table.columns
        if column.kind in DEBEZIUM_VALUES
    ]
    rows = [{"type": "struct", "fields": fields, "optional": True, "field": side} for side in ("before", "after")]
    return {"type": "struct", "fields": [*rows, {"type": "string", "optional": False, "field": "op"}]}


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
        "gtid": None,
        "file": f"mysql-bin.{change.order // 10 + 1:06}",
        "pos": 4 + change.order % 10,
        "row": 0,
    }


def debezium(change: Any) -> list[bytes]:
    """Statements are in a topic of their own, which the same source reads."""
    if change.kind == "control" or change.table.name in DEBEZIUM_HAS_NONE:
        return []
    if change.kind == "ddl":
        names = {"databaseName": change.table.database, "schemaName": None}
        body = {"source": source_of(change), **names, "ddl": change.statement, "tableChanges": []}
        return message({"payload": {**body, "ts_ms": change.written}, "schema": {"type": "struct"}})
    before, after = (image(change, row, DEBEZIUM_VALUES) for row in (change.before, change.after))
    if change.op == "snapshot":
        before = None
    event = {"before": before, "after": after, "source": source_of(change), "op": DEBEZIUM_OPS[change.op]}
    return message({"schema": envelope_schema(change), "payload": {**event, "ts_ms": change.written}})


DEBEZIUM_ENCODERS: dict[str, Callable[[Any], list[bytes]]] = {"debezium": debezium}
