"""How each vendor writes a change in Avro, from its documents alone: nothing here knows how this project reads them.

`AVRO_ENCODERS[name](change)` gives the messages of a change, as `encoders.ENCODERS` does for those that write JSON;
what no document says stands
under `assumed` in vendors/exceptions.yml, too. A value of a union is a pair of the branch's name and the value, since
fastavro would choose another
branch for some.
"""

from __future__ import annotations

import io
import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import fastavro

from tests.avro_cases import encoded
from tests.encoders import (
    DDL_WORDS,
    JDBC_CODES,
    Writers,
    base_type,
    declared_fraction,
    geometry_bytes,
    image,
    joined,
    padded,
    plain_decimal,
    seconds_and_microseconds,
    text,
    type_parameter,
    types_of,
)

FORMATS = Path(__file__).parent.parent / "formats"
DRS_SCHEMA_FILE = FORMATS / "cases/drs_avro/record.avsc"
LARGEST_LONG = 2**63 - 1
BYTES_OF_A_BLOCK = 4000  # so that a container has several

Branch = tuple[str, Any]


def read_schema(path: Path) -> Any:
    return fastavro.parse_schema(json.loads(path.read_text()))


OCEANBASE_SCHEMA = read_schema(FORMATS / "schemas/oceanbase.avsc")
DTS_SCHEMA = read_schema(FORMATS / "schemas/dts.avsc")
DRS_SCHEMA = read_schema(DRS_SCHEMA_FILE)


# --- values
# ----------------------------------------------------------------------------------------------------------------------


def given(branch: str, value: Any) -> Branch | None:
    return None if value is None else (branch, value)


def is_of(change: Any, table: str) -> bool:
    return change.table is not None and change.table.name == table


def is_long(column: Any) -> bool:
    return base_type(column) == "bigint" or column.type.startswith("int unsigned")


def whole_number(column: Any, value: int) -> Branch:
    """An int or a long by the column's type; text where even a long is too short.

    >>> class BigUnsigned: type = "bigint unsigned"
    >>> whole_number(BigUnsigned, 7), whole_number(BigUnsigned, 2**64 - 1)
    (('long', 7), ('string', '18446744073709551615'))
    """
    if value > LARGEST_LONG:
        return "string", str(value)
    return ("long" if is_long(column) else "int"), value


def date_parts(value: str) -> dict[str, int]:
    """
    >>> date_parts("2024-02-29")
    {'year': 2024, 'month': 2, 'day': 29}
    """
    return dict(zip(("year", "month", "day"), map(int, value.split("-"))))


def time_parts(value: str) -> tuple[bool, list[int], int]:
    """Whether it is negative; hours, minutes and seconds without sign; microseconds.

    >>> time_parts("-838:59:59.5")
    (True, [838, 59, 59], 500000)
    """
    whole, _, fraction = padded(value.removeprefix("-")).partition(".")
    return value.startswith("-"), [int(part) for part in whole.split(":")], int(fraction or 0)


def decimal_size(column: Any) -> dict[str, int]:
    """
    >>> class Price: type = "decimal(10,2)"
    >>> decimal_size(Price)
    {'precision': 10, 'scale': 2}
    """
    precision, scale = column.type.removeprefix("decimal(").removesuffix(")").split(",")
    return {"precision": int(precision), "scale": int(scale)}


# --- OceanBase's subscription, from a tenant in MySQL mode
# ----------------------------------------------------------------------------


def oceanbase_object(name: str, **members: Any) -> Branch:
    return f"oms.avro.{name}", members


def oceanbase_string(column: Any, value: str) -> Branch:
    return oceanbase_object("StringObject", charsetName="utf8mb4", value=value)


def oceanbase_decimal(column: Any, value: Any) -> Branch:
    return oceanbase_object("DecimalObject", **decimal_size(column), value=plain_decimal(column, value))


def oceanbase_bits(column: Any, value: int) -> Branch:
    length = type_parameter(column, 1)
    return oceanbase_object("BitObject", bit_length=length, value=f"{value:0{length}b}")


def oceanbase_labels(column: Any, value: str | tuple[str, ...]) -> Branch:
    written = value if isinstance(value, str) else joined(column, value)
    return oceanbase_object("EnumSetValue", value=written, defines=("array", list(column.labels)))


def oceanbase_geometry(column: Any, value: tuple[int, bytes]) -> Branch:
    return oceanbase_object("GeometryValue", srid=value[0], wkb=value[1])


def oceanbase_date(column: Any, value: str) -> Branch:
    return oceanbase_object("DateObject", **date_parts(value))


def oceanbase_time(column: Any, value: str) -> Branch:
    negative, (hours, minutes, seconds), microseconds = time_parts(value)
    return oceanbase_object(
        "TimeObject", negative=negative, hours=hours, minutes=minutes, seconds=seconds, nanos=microseconds * 1000
    )


def oceanbase_datetime(column: Any, value: str) -> Branch:
    date, time = value.split(" ")
    _, (hours, minutes, seconds), microseconds = time_parts(time)
    return oceanbase_object(
        "DateTimeObject", **date_parts(date), hours=hours, minutes=minutes, seconds=seconds, nanos=microseconds * 1000
    )


def oceanbase_timestamp(column: Any, value: datetime) -> Branch:
    seconds, microseconds = seconds_and_microseconds(value)
    return oceanbase_object("TimestampObject", seconds=seconds, nanos=microseconds * 1000, timezone=None)


OCEANBASE_VALUES: Writers = {
    **dict.fromkeys(("integer", "boolean"), whole_number),
    "decimal": oceanbase_decimal,
    "float": lambda column, value: ("float", value),
    "double": lambda column, value: ("double", value),
    "bit": oceanbase_bits,
    "string": oceanbase_string,
    "json": lambda column, value: ("string", value),
    **dict.fromkeys(("enum", "set"), oceanbase_labels),
    "binary": lambda column, value: ("bytes", value),
    "geometry": oceanbase_geometry,
    "date": oceanbase_date,
    "time": oceanbase_time,
    "datetime": oceanbase_datetime,
    "timestamp": oceanbase_timestamp,
}


def oceanbase_type(column: Any) -> str:
    words = {"boolean": "INTEGER", "json": "STRING", "integer": "LONG" if is_long(column) else "INTEGER"}
    return words.get(column.kind, column.kind.upper())


def oceanbase_images(change: Any, row: Mapping[str, Any] | None) -> Branch | None:
    """Values by position; the type of a value that is null is NULL."""
    if row is None:
        return None
    written = image(change, row, OCEANBASE_VALUES)
    return "array", [
        {"type_info": "NULL" if written[c.name] is None else oceanbase_type(c), "value": written[c.name]}
        for c in change.table.columns
    ]


def fields_of(change: Any, number: Callable[[Any], int]) -> list[dict[str, Any]]:
    return [{"name": column.name, "dataTypeNumber": number(column)} for column in change.table.columns]


def oceanbase_record(change: Any) -> dict[str, Any] | None:
    if change.op == "snapshot" or is_of(change, "zero_moments"):
        return None
    table, is_row = change.table, change.kind == "row"
    names = [column.name for column in table.columns] if table else []
    return {
        "id": change.order,
        "version": 1,
        "operation": "DDL" if change.kind == "ddl" else change.op.upper(),
        "xid": given("string", change.transaction if is_row else None),
        "txind": given("oms.avro.TxindType", "W" if is_row else None),
        "position": ("string", f"{change.instant // 1000}.{change.order}"),
        "timestamp": ("long", change.instant // 1000),
        "source": ("oms.avro.Source", {"sourceType": "OB_MYSQL", "version": "4.2.1"}),
        "schemaName": given("string", table and table.database),
        "tableName": given("string", table and table.name),
        "fields": ("array", fields_of(change, lambda column: JDBC_CODES[base_type(column)])) if is_row else None,
        "pkIndexes": ("array", [names.index(name) for name in table.key]) if is_row and table.key else None,
        "ukIndexes": None,
        "beforeImages": oceanbase_images(change, change.before),
        "afterImages": oceanbase_images(change, change.after),
        "sql": given("string", change.statement),
        "tags": None,
        "total": -1,
        "index": -1,
        "beforeImageBytes": b"",
        "afterImageBytes": b"",
    }


# --- Alibaba DTS, from MySQL
# ----------------------------------------------------------------------------------------------------------------------

# MySQL's own numbers of types.
DTS_TYPES = {
    "tinyint": 1,
    "smallint": 2,
    "int": 3,
    "float": 4,
    "double": 5,
    "timestamp": 7,
    "bigint": 8,
    "mediumint": 9,
    "date": 10,
    "time": 11,
    "datetime": 12,
    "year": 13,
    "bit": 16,
    "json": 245,
    "decimal": 246,
    "enum": 247,
    "set": 248,
    "blob": 252,
    "varchar": 253,
    "varbinary": 253,
    "text": 253,
    "geometry": 255,
}


def dts_object(name: str, **members: Any) -> Branch:
    return f"com.alibaba.dts.formats.avro.{name}", members


def dts_integer(column: Any, value: int) -> Branch:
    """A year is a date of which the rest is missing."""
    if base_type(column) == "year":
        return dts_clock(year=value)
    return dts_object("Integer", precision=len(str(abs(value))), value=str(value))


def dts_decimal(column: Any, value: Any) -> Branch:
    return dts_object("Decimal", value=plain_decimal(column, value), **decimal_size(column))


def dts_float(column: Any, value: float) -> Branch:
    return dts_object("Float", value=value, precision=0, scale=0)


def dts_characters(column: Any, value: str) -> Branch:
    return dts_object("Character", charset="utf8mb4", value=value.encode())


def dts_text(column: Any, value: str | tuple[str, ...]) -> Branch:
    return dts_object(
        "TextObject", type=base_type(column), value=value if isinstance(value, str) else joined(column, value)
    )


def dts_bytes(column: Any, value: bytes) -> Branch:
    """Only a blob is an object: short bytes are characters of no charset."""
    if base_type(column) == "blob":
        return dts_object("BinaryObject", type="blob", value=value)
    return dts_object("Character", charset="binary", value=value)


def dts_geometry(column: Any, value: tuple[int, bytes]) -> Branch:
    """The vendor's client reads these bytes as WKB: no SRID stands before it."""
    return dts_object("BinaryGeometry", type="geometry", value=value[1])


def dts_clock(**parts: int) -> Branch:
    return dts_object(
        "DateTime", **{part: parts.get(part) for part in ("year", "month", "day", "hour", "minute", "second", "millis")}
    )


def dts_time(column: Any, value: str) -> Branch:
    """Every part of a negative time is negative; `millis` holds microseconds."""
    negative, clock, microseconds = time_parts(value)
    hour, minute, second, fraction = (-part if negative else part for part in (*clock, microseconds))
    return dts_clock(hour=hour, minute=minute, second=second, millis=fraction)


def dts_datetime(column: Any, value: str) -> Branch:
    date, time = value.split(" ")
    _, (hour, minute, second), microseconds = time_parts(time)
    return dts_clock(**date_parts(date), hour=hour, minute=minute, second=second, millis=microseconds)


def dts_timestamp(column: Any, value: datetime) -> Branch:
    """`millis` holds microseconds."""
    seconds, microseconds = seconds_and_microseconds(value)
    return dts_object("Timestamp", timestamp=seconds, millis=microseconds)


DTS_VALUES: Writers = {
    **dict.fromkeys(("integer", "boolean", "bit"), dts_integer),
    "decimal": dts_decimal,
    **dict.fromkeys(("float", "double"), dts_float),
    "string": dts_characters,
    **dict.fromkeys(("enum", "set", "json"), dts_text),
    "binary": dts_bytes,
    "geometry": dts_geometry,
    "date": lambda column, value: dts_clock(**date_parts(value)),
    "time": dts_time,
    "datetime": dts_datetime,
    "timestamp": dts_timestamp,
}


def dts_images(change: Any, row: Mapping[str, Any] | None) -> Branch | None:
    return None if row is None else ("array", list(image(change, row, DTS_VALUES).values()))


def dts_name(*parts: str) -> str:
    """A dot inside a name is written as six characters.

    >>> print(dts_name("shop", "a.b"))
    shop.a\\u002Eb
    """
    return ".".join(part.replace(".", r"\u002E") for part in parts)


def dts_record(change: Any) -> dict[str, Any] | None:
    if is_of(change, "zero_moments"):
        return None
    table, is_row = change.table, change.kind == "row"
    keys = {"PRIMARY": list(table.key)} if is_row and table.key else None
    position = f"{change.instant // 1000}@{change.order}"
    return {
        "version": 1,
        "id": change.order,
        "sourceTimestamp": change.instant // 1000,
        "sourcePosition": position,
        "safeSourcePosition": position,
        "sourceTxid": change.transaction if is_row else "",
        "source": {"sourceType": "MySQL", "version": "8.0.30"},
        "operation": {
            "ddl": "DDL",
            "row": "INIT" if change.op == "snapshot" else change.op.upper(),
            "control": change.op.upper(),
        }[change.kind],
        "objectName": given("string", table and dts_name(table.database, table.name)),
        "processTimestamps": None,
        "tags": {"pk_uk_info": json.dumps(keys)} if keys else {},
        "fields": ("array", fields_of(change, lambda column: DTS_TYPES[base_type(column)])) if is_row else None,
        "beforeImages": dts_images(change, change.before),
        "afterImages": given("string", change.statement) or dts_images(change, change.after),
        "bornTimestamp": change.written,
    }


# --- Huawei DRS, from MySQL
# ----------------------------------------------------------------------------------------------------------------------


def drs_text(column: Any, value: Any) -> Branch:
    return "string", text(column, value)


DRS_VALUES: Writers = {
    **dict.fromkeys(("integer", "boolean", "bit"), whole_number),
    "decimal": lambda column, value: ("string", plain_decimal(column, value)),
    "float": lambda column, value: ("float", value),
    "double": lambda column, value: ("double", value),
    **dict.fromkeys(("string", "enum", "json", "date"), drs_text),
    "set": lambda column, value: ("string", joined(column, value)),
    "binary": lambda column, value: ("bytes", value),
    "geometry": lambda column, value: ("bytes", geometry_bytes(value)),
    **dict.fromkeys(("time", "datetime"), lambda column, value: ("string", declared_fraction(column, value))),
}


def drs_record(change: Any) -> dict[str, Any] | None:
    if change.op == "heartbeat":
        return None
    table, is_row = change.table, change.kind == "row"
    types = types_of(change, base_type, DRS_VALUES) if is_row else None
    words = {"snapshot": "INIT", **dict.fromkeys(DDL_WORDS, "DDL")}
    return {
        "mysqlType": given("map", types),
        "id": ("long", change.order),
        "es": ("long", change.instant),
        "ts": ("long", change.written),
        "database": ("string", table.database),
        "table": ("string", table.name),
        "type": ("string", words.get(change.op, change.op.upper())),
        "isDdl": ("boolean", not is_row),
        "sql": ("string", change.statement or ""),
        "sqlType": given("map", types and {c.name: JDBC_CODES[base_type(c)] for c in table.columns if c.name in types}),
        "data": given("map", image(change, change.after, DRS_VALUES)),
        "old": given("map", image(change, change.before, DRS_VALUES)),
        "pkNames": ("array", list(table.key)) if is_row and table.key else None,
    }


# --- messages and files
# ----------------------------------------------------------------------------------------------------------------------

SCHEMAS = {"oceanbase_avro": OCEANBASE_SCHEMA, "dts_avro": DTS_SCHEMA, "drs_avro": DRS_SCHEMA}
RECORDS: Mapping[str, Callable[[Any], dict[str, Any] | None]] = {
    "oceanbase_avro": oceanbase_record,
    "dts_avro": dts_record,
    "drs_avro": drs_record,
}


def encoder(vendor: str) -> Callable[[Any], list[bytes]]:
    def encode(change: Any) -> list[bytes]:
        record = RECORDS[vendor](change)
        return [] if record is None else [encoded(SCHEMAS[vendor], record)]

    return encode


AVRO_ENCODERS: dict[str, Callable[[Any], list[bytes]]] = {vendor: encoder(vendor) for vendor in RECORDS}


def decoded(vendor: str, message: bytes) -> tuple[Any, int]:
    """The record at the beginning of some bytes, and how many of them it takes; records in unions as pairs of name and
    members.
    """
    stream = io.BytesIO(message)
    record = fastavro.schemaless_reader(stream, SCHEMAS[vendor], return_record_name=True)
    return record, stream.tell()


def container(vendor: str, changes: Iterable[Any]) -> bytes:
    """A container file with the records of some changes, in blocks that are packed."""
    out = io.BytesIO()
    records = (record for change in changes if (record := RECORDS[vendor](change)))
    fastavro.writer(out, SCHEMAS[vendor], records, codec="deflate", sync_interval=BYTES_OF_A_BLOCK)
    return out.getvalue()


def base64_lines(messages: Iterable[bytes]) -> bytes:
    return b"".join(b64encode(message) + b"\n" for message in messages)
