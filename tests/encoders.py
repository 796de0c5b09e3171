"""How each vendor writes a change, from its documents alone: nothing here knows how this project reads them.

`ENCODERS[name](change)` gives the messages of a change, none where the vendor has no message for it. A change is what
`logical_changes`
describes; nothing of it is imported. What no document says, and is assumed here, stands under `assumed` in
vendors/exceptions.yml.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from struct import pack
from typing import Any
from zoneinfo import ZoneInfo

LOCAL = ZoneInfo("Asia/Shanghai")
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
SEPARATOR = "\u0001"  # of joined key names and values
HIDDEN_ROW_ID = "#alibaba_rds_row_id#"  # of tables without a key
CANAL_HIDDEN_ROW_ID = f"__{HIDDEN_ROW_ID}__"

# The codes of java.sql.Types that go with MySQL's types.
JDBC_CODES = {
    "bigint": -5,
    "binary": -2,
    "bit": -7,
    "blob": 2004,
    "char": 1,
    "date": 91,
    "datetime": 93,
    "decimal": 3,
    "double": 8,
    "enum": 4,
    "float": 7,
    "geometry": -2,
    "int": 4,
    "json": 12,
    "mediumint": 4,
    "set": -7,
    "smallint": 5,
    "text": 2005,
    "time": 92,
    "timestamp": 93,
    "tinyint": -6,
    "varbinary": -3,
    "varchar": 12,
    "year": 12,
}

DDL_WORDS = {
    "create": "CREATE",
    "alter": "ALTER",
    "drop": "ERASE",
    "truncate": "TRUNCATE",
    "rename": "RENAME",
    "index": "CINDEX",
}


# --- JSON
# ----------------------------------------------------------------------------------------------------------------------


class Digits(str):
    """A number, with exactly these digits."""


def json_text(value: Any) -> str:
    """Compact JSON, non-ASCII characters as themselves.

    >>> json_text({"a": [Digits("1.50"), "1.50", None, True, 7]})
    '{"a":[1.50,"1.50",null,true,7]}'
    """
    match value:
        case Digits():
            return str(value)
        case dict():
            return "{" + ",".join(f"{json_text(name)}:{json_text(member)}" for name, member in value.items()) + "}"
        case list():
            return "[" + ",".join(json_text(member) for member in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def message(value: Any) -> list[bytes]:
    return [json_text(value).encode()]


def escaped_message(value: Any) -> list[bytes]:
    """As DRS writes it: characters that mean something in HTML are escaped, wherever they stand.

    >>> escaped_message({"a": "<b>='&"})
    [b'{"a":"\\\\u003cb\\\\u003e\\\\u003d\\\\u0027\\\\u0026"}']
    """
    return [re.sub("[<>&=']", lambda found: f"\\u{ord(found[0]):04x}", json_text(value)).encode()]


# --- values
# ----------------------------------------------------------------------------------------------------------------------


Writers = Mapping[str, Callable[[Any, Any], Any]]  # class of a column -> what (column, value) is written as


def image(change: Any, row: Mapping[str, Any] | None, writers: Writers) -> dict[str, Any] | None:
    """A row as one vendor writes it; columns of classes that it has no writer for are left out."""
    if row is None:
        return None
    columns = [column for column in change.table.columns if column.kind in writers]
    return {c.name: None if row[c.name] is None else writers[c.kind](c, row[c.name]) for c in columns}


def changed_columns(change: Any) -> set[str]:
    return {column.name for column in change.table.columns if change.before[column.name] != change.after[column.name]}


def events(change: Any) -> Iterator[Any]:
    """A change as most tools with keyed topics tell it: if its key changes, a delete and an insert."""
    is_update = change.table is not None and change.op == "update"
    if is_update and changed_columns(change) & set(change.table.key):
        yield replace(change, op="delete", after=None)
        yield replace(change, op="insert", before=None)
    else:
        yield change


def some_columns(row: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name in names}


def base_type(column: Any) -> str:
    return re.match(r"\w+", column.type)[0].lower()


def types_of(change: Any, type_name: Callable[[Any], str], writers: Writers) -> dict[str, str]:
    return {column.name: type_name(column) for column in change.table.columns if column.kind in writers}


def digits(column: Any, value: Any) -> Digits:
    return Digits(value)


def text(column: Any, value: Any) -> str:
    return str(value)


def plain_decimal(column: Any, value: Decimal) -> str:
    return f"{value:f}"


def bare_decimal(column: Any, value: Decimal) -> Digits:
    """With an exponent where Java's BigDecimal prints one: Python's Decimal follows the same rule."""
    return Digits(value)


def exact_double(column: Any, value: float) -> Digits:
    """Every digit of the binary number."""
    return Digits(Decimal(value))


def plain_exact_double(column: Any, value: float) -> Digits:
    return Digits(f"{Decimal(value):f}")


def sixteen_digits(column: Any, value: float) -> Digits:
    return Digits(f"{value:.16g}")


def bare_float(column: Any, value: float) -> Digits:
    return Digits(repr(value))


def float_text(column: Any, value: float) -> str:
    """As Java prints it: `1.2510357E7`."""
    return repr(value).upper() if abs(value) < 1e7 else f"{Decimal(repr(value)).normalize():E}".replace("E+", "E")


def joined(column: Any, value: tuple[str, ...]) -> str:
    return ",".join(value)


def bit_bytes(column: Any, value: int) -> bytes:
    """The bytes of a bit(n), the highest first."""
    return value.to_bytes((type_parameter(column, 1) + 7) // 8, "big")


def type_parameter(column: Any, default: int) -> int:
    found = re.search(r"\((\d+)\)", column.type)
    return int(found[1]) if found else default


def base64_text(value: bytes) -> str:
    return b64encode(value).decode()


def base64_of_bytes(column: Any, value: bytes) -> str:
    return base64_text(value)


def base64_of_bits(column: Any, value: int) -> str:
    return base64_text(bit_bytes(column, value))


def geometry_bytes(value: tuple[int, bytes]) -> bytes:
    """MySQL's own bytes: a 4-byte SRID, then WKB."""
    return pack("<I", value[0]) + value[1]


def base64_of_geometry(column: Any, value: tuple[int, bytes]) -> str:
    return base64_text(geometry_bytes(value))


def latin1(column: Any, value: bytes) -> str:
    return value.decode("latin-1")


def latin1_geometry(column: Any, value: tuple[int, bytes]) -> str:
    return geometry_bytes(value).decode("latin-1")


def java_bytes(column: Any, value: bytes) -> str:
    """As Java prints a byte[]: signed.

    >>> java_bytes(None, b"j\\xff"), java_bytes(None, b"")
    ('[106, -1]', '[]')
    """
    return "[" + ", ".join(str(byte - 256 if byte > 127 else byte) for byte in value) + "]"


def java_bytes_geometry(column: Any, value: tuple[int, bytes]) -> str:
    return java_bytes(column, geometry_bytes(value))


def declared_fraction(column: Any, value: str) -> str:
    """Wall clock with as many digits behind the dot as the column's type declares."""
    whole, _, fraction = value.partition(".")
    declared = type_parameter(column, 0)
    return f"{whole}.{fraction.ljust(declared, '0')}" if declared else whole


def local_time(value: datetime) -> str:
    """Wall clock of the vendor's host, with six digits of fraction."""
    return value.astimezone(LOCAL).strftime("%Y-%m-%d %H:%M:%S.%f")


def local_moment(column: Any, value: datetime | str) -> str:
    return value if isinstance(value, str) else declared_fraction(column, local_time(value))


def seconds_and_microseconds(value: datetime) -> tuple[int, int]:
    since = value - EPOCH
    return since.days * 86400 + since.seconds, since.microseconds


def local_epoch_ms(wall_clock: str) -> Digits:
    """Epoch milliseconds of a wall clock of the vendor's host."""
    return epoch_ms(datetime.fromisoformat(padded(wall_clock)).replace(tzinfo=LOCAL))


def padded(wall_clock: str) -> str:
    whole, _, fraction = wall_clock.partition(".")
    return f"{whole}.{fraction.ljust(6, '0')}" if fraction else whole


def epoch_ms(value: datetime) -> Digits:
    return Digits((value - EPOCH) // timedelta(milliseconds=1))


# --- Alibaba Canal, and OceanBase's subscription in the same format
# -------------------------------------------------------------------


def enum_ordinal(column: Any, value: str) -> str:
    return str(column.labels.index(value) + 1)


def set_mask(column: Any, value: tuple[str, ...]) -> str:
    return str(sum(1 << column.labels.index(label) for label in value))


CANAL_VALUES: Writers = {
    **dict.fromkeys(("integer", "boolean", "bit", "string", "json", "date"), text),
    "decimal": plain_decimal,
    **dict.fromkeys(("float", "double"), float_text),
    "enum": enum_ordinal,
    "set": set_mask,
    "binary": latin1,
    "geometry": latin1_geometry,
    **dict.fromkeys(("time", "datetime"), declared_fraction),
    "timestamp": local_moment,
}


def canal(change: Any) -> list[bytes]:
    if change.op == "snapshot":
        return []
    es = change.instant // 1000 * 1000  # the binlog knows seconds
    body = canal_message(change, CANAL_VALUES, lambda column: column.type, es)
    if change.kind == "row" and not change.table.key:
        body["data"][0][CANAL_HIDDEN_ROW_ID] = "15"
        body["mysqlType"][CANAL_HIDDEN_ROW_ID] = "bigint"
    return message({**body, "id": change.order // 3, "gtid": ""})


def upper_case_type(column: Any) -> str:
    base = base_type(column)
    return base.upper() + column.type[len(base) :]


def canal_message(change: Any, writers: Writers, type_name: Callable[[Any], str], es: int) -> dict[str, Any]:
    names = {
        "database": change.table.database if change.table else "",
        "table": change.table.name if change.table else "",
    }
    times = {"es": es, "ts": change.written}
    if change.kind != "row":
        word = "MHEARTBEAT" if change.op == "heartbeat" else DDL_WORDS[change.op]
        return {
            "data": None,
            **names,
            **times,
            "isDdl": change.kind == "ddl",
            "mysqlType": None,
            "old": None,
            "pkNames": None,
            "sql": change.statement or "",
            "sqlType": None,
            "type": word,
        }
    return {
        **canal_rows(change, writers),
        **names,
        **times,
        **canal_columns(change, type_name, writers),
        "isDdl": False,
        "sql": "",
        "type": "INSERT" if change.op == "snapshot" else change.op.upper(),
    }


def canal_rows(change: Any, writers: Writers) -> dict[str, Any]:
    """`data` holds the row after the change, or the deleted one; `old` what an update changed, as it was before."""
    data = [image(change, change.after or change.before, writers)]
    old = (
        [some_columns(image(change, change.before, writers), changed_columns(change))]
        if change.op == "update"
        else None
    )
    return {"data": data, "old": old}


def canal_columns(change: Any, type_name: Callable[[Any], str], writers: Writers) -> dict[str, Any]:
    codes = {
        column.name: JDBC_CODES.get(base_type(column), 12) for column in change.table.columns if column.kind in writers
    }
    return {
        "mysqlType": types_of(change, type_name, writers),
        "pkNames": list(change.table.key) or None,
        "sqlType": codes,
    }


# --- OceanBase OMS
# ----------------------------------------------------------------------------------------------------------------------


def oms_type(column: Any) -> str:
    """OMS's own names: INT64 is a signed 64-bit integer, BIGINT any larger one."""
    base = base_type(column).upper()
    if base == "BIGINT":
        return "BIGINT" if "unsigned" in column.type else "INT64"
    return {"INTEGER": "INT", "CHAR": "VARCHAR", "VARBINARY": "BLOB"}.get(base, base)


def sent_instant(column: Any, value: datetime | str) -> str:
    """Seconds, and as much of a fraction as there is; a zero date is itself."""
    if isinstance(value, str):
        return value
    seconds, microseconds = seconds_and_microseconds(value)
    return f"{seconds}.{microseconds:06}".rstrip("0").rstrip(".")


OMS_VALUES: Writers = {
    **dict.fromkeys(("integer", "boolean"), digits),
    "decimal": bare_decimal,
    "float": bare_float,
    "double": exact_double,
    **dict.fromkeys(("string", "enum", "json", "date", "time", "datetime"), text),
    "set": joined,
    "binary": base64_of_bytes,
    "bit": base64_of_bits,
    "geometry": base64_of_geometry,
    "timestamp": sent_instant,
}


OCEANBASE_CANAL_VALUES: Writers = {
    **CANAL_VALUES,
    **{kind: OMS_VALUES[kind] for kind in ("enum", "set", "binary", "bit", "geometry", "timestamp")},
}


def oceanbase_canal(change: Any) -> list[bytes]:
    if change.op in ("snapshot", "heartbeat"):
        return []
    body = canal_message(change, OCEANBASE_CANAL_VALUES, upper_case_type, change.instant)
    return message({**body, "id": change.order})


OCEANBASE_ORACLE_TYPES = {
    **dict.fromkeys(("integer", "boolean", "decimal"), "NUMBER"),
    "float": "BINARY_FLOAT",
    "double": "BINARY_DOUBLE",
    **dict.fromkeys(("string", "enum", "set"), "VARCHAR2(255)"),
    "json": "CLOB",
    "binary": "RAW(2000)",
    "date": "DATE",
    "datetime": "TIMESTAMP(6)",
}
OCEANBASE_ORACLE_VALUES: Writers = {
    **{kind: CANAL_VALUES[kind] for kind in ("integer", "boolean", "decimal", "float", "double", "json", "datetime")},
    **dict.fromkeys(("string", "enum"), lambda column, value: value or None),
    "set": lambda column, value: joined(column, value) or None,
    "binary": base64_of_bytes,
    "date": lambda column, value: f"{value} 00:00:00",
}
OCEANBASE_ORACLE_HAS_NONE = ("wide_decimals", "zero_dates")


def oceanbase_canal_oracle(change: Any) -> list[bytes]:
    """Oracle mode, which nothing in the message names."""
    if change.op in ("snapshot", "heartbeat") or change.table.name in OCEANBASE_ORACLE_HAS_NONE:
        return []
    body = canal_message(change, OCEANBASE_ORACLE_VALUES, oceanbase_oracle_type, change.instant)
    return message({**body, "id": change.order})


def oceanbase_oracle_type(column: Any) -> str:
    return OCEANBASE_ORACLE_TYPES[column.kind]


def oms_default(change: Any) -> list[bytes]:
    """The full phase writes ROW."""
    word = {"snapshot": "ROW"}.get(change.op)
    return message(oms_envelope(change, {**OMS_VALUES, "double": sixteen_digits}, word))


def oms_default_extend(change: Any) -> list[bytes]:
    return message(oms_with_types(change, OMS_VALUES, oms_type))


def oms_with_types(change: Any, writers: Writers, type_name: Callable[[Any], str]) -> dict[str, Any]:
    """The full phase writes INSERT without the time and the sequence of the log."""
    envelope = oms_envelope(change, writers, {"snapshot": "INSERT"}.get(change.op))
    types = {"ddl": "VAR_STRING"} if change.kind == "ddl" else {}
    for struct in ("prevStruct", "postStruct"):
        if envelope[struct] is not None:
            names = types or types_of(change, type_name, writers)
            envelope[struct] |= {"__light_type": {name: {"schemaType": names[name]} for name in names}}
    return envelope


OMS_ORACLE_TYPES = {
    **dict.fromkeys(("integer", "boolean", "decimal"), "NUMBER"),
    "float": "BINARY_FLOAT",
    "double": "BINARY_DOUBLE",
    **dict.fromkeys(("string", "enum", "set"), "VARCHAR2"),
    "json": "CLOB",
    "binary": "RAW",
    **dict.fromkeys(("date", "datetime"), "DATETIME"),
    "timestamp": "ZONED_DATETIME",
}
OMS_ORACLE_VALUES: Writers = {
    **{kind: OMS_VALUES[kind] for kind in ("integer", "boolean", "decimal", "float", "double", "json", "binary")},
    **dict.fromkeys(("string", "enum"), lambda column, value: value or None),
    "set": lambda column, value: joined(column, value) or None,
    "date": lambda column, value: f"{value} 00:00:00",
    "datetime": text,
    "timestamp": lambda column, value: f"{local_time(value)} {LOCAL.key}",
}
OMS_ORACLE_HAS_NONE = ("wide_decimals", "zero_dates", "zero_moments")


def oms_default_extend_oracle(change: Any) -> list[bytes]:
    """OceanBase in Oracle mode: what stands before the table's name is a schema."""
    if change.table and change.table.name in OMS_ORACLE_HAS_NONE:
        return []
    envelope = oms_with_types(change, OMS_ORACLE_VALUES, lambda column: OMS_ORACLE_TYPES[column.kind])
    envelope["allMetaData"]["dbType"] = "OB_ORACLE"
    return message(envelope)


def oms_envelope(change: Any, writers: Writers, word: str | None) -> dict[str, Any]:
    is_row = change.kind == "row"
    post = (
        image(change, change.after, writers) if is_row else {"ddl": change.statement} if change.kind == "ddl" else None
    )
    prev = image(change, change.before, writers) if is_row else None
    word = word or ("DDL" if change.kind == "ddl" else change.op.upper())
    return {"prevStruct": prev, "postStruct": post, "allMetaData": oms_meta(change), "recordType": word}


def oms_meta(change: Any) -> dict[str, Any]:
    second = change.instant // 1000
    meta = {
        "checkpoint": str(second),
        "record_primary_key": None,
        "record_primary_value": None,
        "source_identity": "subtopic-1",
        "dbType": "OB_MYSQL",
        "table_name": None,
        "db": None,
    }
    if change.op == "heartbeat":
        return meta
    meta["table_name"] = change.table.name
    if change.kind == "ddl":
        words = {"index": "CREATE_INDEX"}
        return {
            **meta,
            "db": change.table.database,
            "timestamp": str(second),
            "ddlType": words.get(change.op, f"{change.op.upper()}_TABLE"),
            "storeDataSequence": None,
            "uniqueId": None,
        }
    meta |= {"db": f"{change.table.tenant}.{change.table.database}", **oms_key(change)}
    if change.op == "snapshot":
        return {**meta, "checkpoint": f"id={change.order}"}
    return {
        **meta,
        "timestamp": str(second),
        "storeDataSequence": Digits(f"{second}{change.order}"),
        "uniqueId": change.transaction,
    }


def oms_key(change: Any) -> dict[str, Any]:
    if not change.table.key:
        return {"record_primary_key": None, "record_primary_value": None}
    row = change.after or change.before
    return {
        "record_primary_key": SEPARATOR.join(change.table.key),
        "record_primary_value": SEPARATOR.join(str(row[name]) for name in change.table.key),
    }


def oms_canal(change: Any) -> list[bytes]:
    if change.op == "heartbeat":
        return []
    es = change.instant // 1000 * 1000  # OMS knows seconds
    return message(canal_message(change, OMS_VALUES, lambda column: oms_type(column).lower(), es))


def numbered_or_text(column: Any, value: str) -> Digits | str:
    """A wall clock with a fraction as 13 digits, a dot and nine digits of nanoseconds; any other as text: the document
    shows both.
    """
    if "." not in value:
        return value
    whole, fraction = value.split(".")
    return Digits(f"{local_epoch_ms(whole)}.{fraction.ljust(9, '0')}")


OMS_DATAWORKS_VALUES: Writers = {
    **OMS_VALUES,
    "decimal": lambda column, value: Digits(f"{value:f}"),
    "double": plain_exact_double,
    "datetime": lambda column, value: value if value < "1970" else numbered_or_text(column, value),
}


def oms_dataworks(change: Any) -> list[bytes]:
    if change.op == "heartbeat":
        return message({"version": "2.0", "payload": {"timestamp": {"eventTime": change.instant}, "op": "HEARTBEAT"}})
    columns = [
        {"name": name, "type": type_name}
        for name, type_name in types_of(change, oms_type, OMS_DATAWORKS_VALUES).items()
    ]
    is_row = change.kind == "row"
    source = {
        "dbType": "ob_mysql",
        "dbVersion": None,
        "dbName": change.table.database,
        "schema": None,
        "table": change.table.name,
    }
    word = DDL_WORDS[change.op] if not is_row else "INSERT" if change.op == "snapshot" else change.op.upper()
    payload = {
        "before": {"data": image(change, change.before, OMS_DATAWORKS_VALUES)} if change.before else None,
        "after": {"data": image(change, change.after, OMS_DATAWORKS_VALUES)} if change.after else None,
        "op": word,
        "timestamp": {
            "eventTime": change.instant,
            "systemTime": change.written,
            "checkpointTime": change.instant // 1000,
        },
        "ddl": None if is_row else {"text": change.statement},
        "scn": str(change.order) if is_row else "null",
    }
    schema = {"source": source, "column": columns if is_row else None, "pk": list(change.table.key) if is_row else None}
    return message({"version": "2.0", "schema": schema, "payload": payload, "extend": {"load_fm": "test"}})


def oms_shareplex(change: Any) -> list[bytes]:
    if change.op == "heartbeat":
        return []
    meta = shareplex_meta(change)
    if change.kind == "ddl":
        return message({"data": {}, "meta": meta, "sql": {"ddl": change.statement}})
    data = image(change, change.after or change.before, OMS_VALUES)
    if change.op != "update":
        return message({"data": data, "meta": meta})
    return message(
        {
            "data": some_columns(data, changed_columns(change)),
            "meta": meta,
            "key": image(change, change.before, OMS_VALUES),
        }
    )


def shareplex_meta(change: Any) -> dict[str, Any]:
    words = {"insert": "ins", "snapshot": "ins", "update": "upd", "delete": "del"}
    table = f"{change.table.database}.{change.table.name}"
    row = change.before or change.after or {}
    key = SEPARATOR.join(str(row[name]) for name in change.table.key) if row else ""
    is_row = change.kind == "row"
    return {
        "posttime": local_clock(change.written),
        "op": words.get(change.op, "ddl"),
        "size": 10,
        "time": local_clock(change.instant),
        "idx": f"{change.order % 10}/10",
        "seq": change.order % 10,
        "table": table,
        "rowid": f"{table}-{key}",
        "trans": change.transaction if is_row else None,
        "scn": f"{change.instant // 1000}{change.order}" if is_row else "null",
    }


def local_clock(epoch_milliseconds: int) -> str:
    return datetime.fromtimestamp(epoch_milliseconds // 1000, LOCAL).strftime("%Y-%m-%dT%H:%M:%S")


# --- Huawei DRS
# ----------------------------------------------------------------------------------------------------------------------


def seconds_and_milliseconds(column: Any, value: datetime) -> str:
    """`1624614713.201`; more digits where the column has them."""
    seconds, microseconds = seconds_and_microseconds(value)
    fraction = f"{microseconds:06}"
    return f"{seconds}.{fraction[:3]}{fraction[3:].rstrip('0')}"


DRS_VALUES: Writers = {
    **CANAL_VALUES,
    "enum": text,
    "set": joined,
    "binary": java_bytes,
    "geometry": java_bytes_geometry,
    "timestamp": seconds_and_milliseconds,
}
DRS_C_VALUES: Writers = {**DRS_VALUES, "timestamp": lambda column, value: local_moment(column, value)[:19]}


def drs_json(change: Any) -> list[bytes]:
    zero = isinstance((change.after or {}).get("moment"), str)
    return [] if change.op == "heartbeat" or zero else escaped_message(drs_message(change, DRS_VALUES, base_type))


def drs_json_c(change: Any) -> list[bytes]:
    """Deleted rows stand in `data`."""
    if change.op == "heartbeat":
        return []
    body = drs_message(change, DRS_C_VALUES, base_type)
    return escaped_message(body | {"data": body["old"], "old": None} if change.op == "delete" else body)


def drs_message(change: Any, writers: Writers, type_name: Callable[[Any], str]) -> dict[str, Any]:
    head = {
        "id": change.order,
        "es": change.instant,
        "ts": change.written,
        "database": change.table.database,
        "table": change.table.name,
    }
    if change.kind == "ddl":
        return {
            "mysqlType": None,
            **head,
            "type": "DDL",
            "isDdl": True,
            "sql": change.statement,
            "sqlType": None,
            "data": None,
            "old": None,
            "pkNames": None,
        }
    columns = canal_columns(change, type_name, writers)
    word = "INIT" if change.op == "snapshot" else change.op.upper()
    return {**columns, **head, "type": word, "isDdl": False, "sql": "", **drs_rows(change, writers)}


def drs_rows(change: Any, writers: Writers) -> dict[str, Any]:
    """`data` holds the row after the change, `old` the whole row before it."""
    return {
        "data": [image(change, change.after, writers)] if change.after else None,
        "old": [image(change, change.before, writers)] if change.before else None,
    }


ORACLE_TYPES = {
    "integer": "NUMBER",
    "boolean": "NUMBER",
    "decimal": "NUMBER",
    "float": "BINARY_FLOAT",
    "double": "BINARY_DOUBLE",
    "string": "VARCHAR2",
    "enum": "VARCHAR2",
    "set": "VARCHAR2",
    "json": "CLOB",
    "binary": "BLOB",
    "date": "DATE",
    "datetime": "TIMESTAMP",
}


def null_if_empty(value: str) -> str | None:
    return value or None


ORACLE_VALUES: Writers = {
    **dict.fromkeys(("integer", "boolean", "json"), text),
    "decimal": plain_decimal,
    **dict.fromkeys(("float", "double"), float_text),
    **dict.fromkeys(("string", "enum"), lambda column, value: null_if_empty(value)),
    "set": lambda column, value: null_if_empty(joined(column, value)),
    "date": lambda column, value: f"{value} 00:00:00",
    "datetime": declared_fraction,
}
ORACLE_HAS_NONE = ("wide_decimals", "zero_dates")


def drs_json_oracle(change: Any) -> list[bytes]:
    """The page of the older version: `database` is the Oracle schema."""
    if change.op in ("snapshot", "heartbeat") or change.table.name in ORACLE_HAS_NONE:
        return []
    return escaped_message(drs_message(change, ORACLE_VALUES, lambda column: ORACLE_TYPES[column.kind]))


POSTGRESQL_TYPES = {
    "tinyint": "smallint",
    "smallint": "integer",
    "mediumint": "integer",
    "int": "bigint",
    "bigint": "numeric",
    "year": "smallint",
    "float": "real",
    "double": "double precision",
    "decimal": "numeric",
    "varchar": "character varying",
    "text": "text",
    "enum": "character varying",
    "set": "text",
    "json": "json",
    "blob": "bytea",
    "varbinary": "bytea",
    "bit": "bit",
    "date": "date",
    "time": "time without time zone",
    "datetime": "timestamp without time zone",
    "timestamp": "timestamp with time zone",
}


def postgresql_type(column: Any) -> str:
    return (
        "boolean"
        if column.kind == "boolean"
        else "bigint"
        if column.type == "bigint"
        else POSTGRESQL_TYPES[base_type(column)]
    )


SQL_VALUES: Writers = {
    **dict.fromkeys(("integer", "string", "enum", "json", "date", "time", "datetime"), text),
    "boolean": lambda column, value: "true" if value else "false",
    "decimal": plain_decimal,
    **dict.fromkeys(("float", "double"), lambda column, value: repr(value)),
    "set": joined,
    "bit": lambda column, value: f"{value:0{type_parameter(column, 1)}b}",
    "binary": lambda column, value: value.hex(),
    "timestamp": lambda column, value: f"{local_time(value)[:19]}{fraction_of(value)}+08",
}
POSTGRESQL_HAS_NONE = ("long_times", "zero_dates", "zero_moments")


def fraction_of(value: datetime) -> str:
    return f".{value.microsecond:06}".rstrip("0").rstrip(".")


def drs_sql(change: Any) -> list[bytes]:
    return drs_sql_messages(change, GAUSSDB)


@dataclass(frozen=True)
class Database:
    """A kind of database as DRS names it: the schema that its tables are in, how it names types and writes values, the
    tables that it cannot have, whether messages name the database, and how long before a change `es` is.
    """

    db_type: str
    schema: str
    type_name: Callable[[Any], str]
    writers: Writers
    has_none: tuple[str, ...]
    is_named: bool = True
    es_before: int = 0


GAUSSDB = Database("GaussDB Primary/Standby", "public", postgresql_type, SQL_VALUES, POSTGRESQL_HAS_NONE)

# As PostgreSQL itself prints values. `es` is the commit of the transaction before.
POSTGRESQL_VALUES: Writers = {
    **SQL_VALUES,
    "boolean": lambda column, value: "t" if value else "f",
    "binary": lambda column, value: f"\\x{value.hex()}",
}
POSTGRESQL = replace(GAUSSDB, db_type="PostgreSQL", writers=POSTGRESQL_VALUES, es_before=250)

ORACLE = Database(
    "Oracle", "shop", lambda column: ORACLE_TYPES[column.kind], ORACLE_VALUES, ORACLE_HAS_NONE, is_named=False
)

SQLSERVER_TYPES = {
    "tinyint": "smallint",
    "smallint": "int",
    "mediumint": "int",
    "int": "bigint",
    "bigint": "decimal(20,0)",
    "year": "smallint",
    "float": "real",
    "double": "float",
    "decimal": "decimal",
    "date": "date",
    "time": "time(6)",
    "datetime": "datetime2(6)",
    "timestamp": "datetimeoffset(6)",
}


def sqlserver_type(column: Any) -> str:
    if column.kind == "boolean":
        return "bit"
    return "bigint" if column.type == "bigint" else SQLSERVER_TYPES.get(base_type(column), "nvarchar(max)")


SQLSERVER_VALUES: Writers = {
    **dict.fromkeys(("integer", "string", "enum", "json", "date", "boolean"), text),
    **dict.fromkeys(("time", "datetime"), declared_fraction),
    "decimal": plain_decimal,
    **dict.fromkeys(("float", "double"), lambda column, value: repr(value)),
    "set": joined,
    "timestamp": lambda column, value: f"{local_time(value)} +08:00",
}
SQLSERVER = Database(
    "Microsoft SQL Server", "dbo", sqlserver_type, SQLSERVER_VALUES, (*POSTGRESQL_HAS_NONE, "wide_decimals")
)


def drs_sql_postgresql(change: Any) -> list[bytes]:
    return drs_sql_messages(change, POSTGRESQL)


def drs_sql_oracle(change: Any) -> list[bytes]:
    return drs_sql_messages(change, ORACLE)


def drs_sql_sqlserver(change: Any) -> list[bytes]:
    return drs_sql_messages(change, SQLSERVER)


def drs_sql_messages(change: Any, database: Database) -> list[bytes]:
    if change.op in ("snapshot", "heartbeat") or change.table.name in database.has_none:
        return []
    word = "DDL" if change.kind == "ddl" else change.op.upper()
    is_row = change.kind == "row"
    return escaped_message(
        {
            "columnType": types_of(change, database.type_name, database.writers) if is_row else None,
            "dbType": database.db_type,
            "schema": database.schema,
            "opType": word,
            "id": change.order,
            "es": change.instant - database.es_before,
            "ts": change.written,
            "database": change.table.database if database.is_named else "",
            "table": change.table.name,
            "type": word,
            "isDdl": not is_row,
            "sql": change.statement or "",
            "sqlType": {column.name: 1 for column in change.table.columns} if is_row else None,
            **(drs_rows(change, database.writers) if is_row else {"data": None, "old": None}),
            "pkNames": (list(change.table.key) or None) if is_row else None,
        }
    )


# --- Huawei DRS from MongoDB: documents as text of the shell
# ------------------------------------------------------------------------


class Shell(str):
    """Text that stands in a document without quotes."""


def shell_text(value: Any) -> str:
    """A value as the shell prints it.

    >>> shell_text({"_id": Shell('ObjectId("5")'), "tags": ["a", None]})
    '{"_id": ObjectId("5"), "tags": ["a", null]}'
    """
    match value:
        case Shell():
            return str(value)
        case dict():
            return "{" + ", ".join(f"{json_text(name)}: {shell_text(member)}" for name, member in value.items()) + "}"
        case list():
            return "[" + ", ".join(shell_text(member) for member in value) + "]"
    return json_text(value)


def shell_integer(column: Any, value: int) -> Shell:
    if -(2**31) <= value < 2**31:
        return Shell(f"NumberInt({value})")
    return Shell(f'NumberLong("{value}")' if value < 2**63 else f'NumberDecimal("{value}")')


MONGODB_VALUES: Writers = {
    "integer": shell_integer,
    "bit": shell_integer,
    "boolean": lambda column, value: bool(value),
    "decimal": lambda column, value: Shell(f'NumberDecimal("{value:f}")'),
    **dict.fromkeys(("float", "double"), lambda column, value: Shell(repr(value))),
    **dict.fromkeys(("string", "enum", "date", "time", "datetime"), text),
    "set": joined,
    "json": lambda column, value: Shell(value),
    "binary": lambda column, value: Shell(f'BinData(0,"{base64_text(value)}")'),
    "timestamp": lambda column, value: Shell(f'ISODate("{utc_milliseconds(value)}")'),
}
MONGODB_HAS_NONE = ("wide_decimals", "zero_moments")


def utc_milliseconds(value: datetime) -> str:
    return value.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def drs_mongodb(change: Any) -> list[bytes]:
    if change.kind != "row" or change.op == "snapshot" or change.table.name in MONGODB_HAS_NONE:
        return []
    value, where, record_type = mongodb_value(change)
    body = {
        "id": change.order,
        "op": change.op.upper(),
        "dbType": "MongoDB",
        "db": change.table.database,
        "coll": change.table.name,
        "value": shell_text(value),
        "where": where and shell_text(where),
        "recordType": record_type,
        "extra": record_type,
        "es": change.instant,
        "ts": change.written,
        "clusterTime": f"{change.instant // 1000 + 28952}:{change.order}",
    }
    return escaped_message(body)


def mongodb_value(change: Any) -> tuple[dict[str, Any], dict[str, Any] | None, str]:
    """`value`, `where` and `recordType`: a document where it is new or replaced, else what is set in it, or only its
    `_id`.
    """
    identity = {"_id": Shell(f'ObjectId("{change.document_id}")')}
    if change.op == "delete":
        return identity, None, "doc"
    document = image(change, change.after, MONGODB_VALUES)
    if change.op == "insert":
        return {**identity, **document}, None, "insert"
    if is_replaced(change):
        return {**identity, **document}, identity, "replace"
    return {"$set": some_columns(document, changed_columns(change))}, identity, "update"


def is_replaced(change: Any) -> bool:
    """An update that sets nothing has no other form; one that changes the table's key stands for all others."""
    changed = changed_columns(change)
    return not changed or bool(changed & set(change.table.key))


# --- Alibaba DataWorks
# ----------------------------------------------------------------------------------------------------------------------


DATAWORKS_TYPES = {
    "integer": "LONG",
    "bit": "LONG",
    "boolean": "BOOLEAN",
    "decimal": "DOUBLE",
    "float": "DOUBLE",
    "double": "DOUBLE",
    "string": "STRING",
    "enum": "STRING",
    "set": "STRING",
    "json": "STRING",
    "binary": "BYTES",
    "geometry": "BYTES",
    "date": "DATE",
    "datetime": "DATE",
    "timestamp": "DATE",
}
DATAWORKS_VALUES: Writers = {
    **dict.fromkeys(("integer", "bit"), digits),
    "boolean": lambda column, value: bool(value),
    "decimal": lambda column, value: Digits(f"{value:f}"),
    **dict.fromkeys(("float", "double"), bare_float),
    **dict.fromkeys(("string", "enum", "json"), text),
    "set": joined,
    "binary": base64_of_bytes,
    "geometry": base64_of_geometry,
    **dict.fromkeys(("date", "datetime"), lambda column, value: local_epoch_ms(value)),
    "timestamp": lambda column, value: epoch_ms(value),
}
DATAWORKS_HAS_NONE = ("zero_dates", "zero_moments")


def dataworks(change: Any) -> list[bytes]:
    """An update is two messages that share their sequence."""
    if change.op != "update":
        return dataworks_messages(change, DATAWORKS_VALUES)
    before = dataworks_message(change, DATAWORKS_VALUES, "UPDATE_BEFOR", with_after=False)
    return [*message(before), *message(dataworks_message(change, DATAWORKS_VALUES, "UPDATE_AFTER", with_before=False))]


def dataworks_single(change: Any) -> list[bytes]:
    """An update is one message; decimals come in quotes, as they have been seen in use."""
    return dataworks_messages(change, {**DATAWORKS_VALUES, "decimal": plain_decimal})


def dataworks_messages(change: Any, writers: Writers) -> list[bytes]:
    if change.op == "heartbeat":
        times = {"eventTime": change.instant, "checkpointTime": change.instant}
        payload = {
            "before": None,
            "after": None,
            "sequenceId": None,
            "timestamp": times,
            "op": "MHEARTBEAT",
            "ddl": None,
        }
        return message(
            {"schema": {"dataColumn": None, "primaryKey": None, "source": None}, "payload": payload, "version": "0.0.1"}
        )
    if change.table.name in DATAWORKS_HAS_NONE:
        return []
    words = {**DDL_WORDS, "snapshot": "INSERT", "update": "UPDATE_AFTER"}
    return message(dataworks_message(change, writers, words.get(change.op, change.op.upper())))


def dataworks_message(
    change: Any, writers: Writers, word: str, with_before: bool = True, with_after: bool = True
) -> dict[str, Any]:
    is_row, is_snapshot = change.kind == "row", change.op == "snapshot"
    columns = (
        [
            {"name": name, "type": type_name}
            for name, type_name in types_of(change, lambda c: DATAWORKS_TYPES[c.kind], writers).items()
        ]
        if is_row
        else None
    )
    if is_row and not change.table.key:
        columns.append({"name": HIDDEN_ROW_ID, "type": "LONG"})
    event_time = -1 if is_snapshot else change.instant
    return {
        "schema": {
            "dataColumn": columns,
            "primaryKey": list(change.table.key) or None if is_row else None,
            "source": {"dbType": "MySQL", "dbName": change.table.database, "tableName": change.table.name},
        },
        "payload": {
            "before": dataworks_image(change, change.before, writers) if with_before else None,
            "after": dataworks_image(change, change.after, writers) if with_after else None,
            "sequenceId": "-1" if is_snapshot else f"{1620457642589}{change.order:06}",
            "timestamp": {"eventTime": event_time, "systemTime": change.written, "checkpointTime": event_time},
            "op": word,
            "ddl": None if is_row else {"text": change.statement, "ddlMeta": base64_text(b"\xac\xed\x00\x05")},
        },
        "version": "0.0.1",
    }


def dataworks_image(change: Any, row: Mapping[str, Any] | None, writers: Writers) -> dict[str, Any] | None:
    """A table without a key shows the hidden number of its rows."""
    if row is None:
        return None
    hidden = {} if change.table.key else {HIDDEN_ROW_ID: 15}
    return {"dataColumn": {**image(change, row, writers), **hidden}}


ENCODERS: dict[str, Callable[[Any], list[bytes]]] = {
    "canal": canal,
    "oms_default": oms_default,
    "oms_default_extend": oms_default_extend,
    "oms_default_extend_oracle": oms_default_extend_oracle,
    "oms_canal": oms_canal,
    "oms_dataworks": oms_dataworks,
    "oms_shareplex": oms_shareplex,
    "oceanbase_canal": oceanbase_canal,
    "oceanbase_canal_oracle": oceanbase_canal_oracle,
    "drs_json": drs_json,
    "drs_json_oracle": drs_json_oracle,
    "drs_json_c": drs_json_c,
    "drs_sql": drs_sql,
    "drs_sql_postgresql": drs_sql_postgresql,
    "drs_sql_oracle": drs_sql_oracle,
    "drs_sql_sqlserver": drs_sql_sqlserver,
    "drs_mongodb": drs_mongodb,
    "dataworks": dataworks,
    "dataworks_single": dataworks_single,
}
