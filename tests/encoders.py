"""How vendors tell an insert, an update or a delete of a row of `logical_changes.ORDERS`: for lives that no vendor has
told yet. Of the changes that are recorded, an encoder gives what is recorded (test_told_by_vendors.py).

`ENCODERS[vendor](change)` gives the messages of a change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from tests.logical_changes import ORDERS, Change

Row = Mapping[str, Any]
TYPES = {column.name: column.type for column in ORDERS.columns}
BASE_TYPES = {name: type_.partition("(")[0] for name, type_ in TYPES.items()}
OMS_TYPES = {"id": "INT64", "label": "VARCHAR", "amount": "DECIMAL", "note": "TEXT"}
DATAWORKS_TYPES = {"id": "LONG", "label": "STRING", "amount": "DOUBLE", "note": "STRING"}
POSTGRESQL_TYPES = {"id": "bigint", "label": "character varying", "amount": "numeric", "note": "text"}
JDBC_CODES = {"id": -5, "label": 12, "amount": 3, "note": 2005}


def message(value: Any) -> list[bytes]:
    return [json_text(value).encode()]


def escaped_message(value: Any) -> list[bytes]:
    """As DRS writes it: characters that mean something in HTML are escaped, wherever they stand."""
    return [re.sub("[<>&=']", lambda found: f"\\u{ord(found[0]):04x}", json_text(value)).encode()]


def json_text(value: Any) -> str:
    """JSON, in which a decimal is a number with all its digits.

    >>> json_text({"a": [Decimal("1.50"), "1.50", None]})
    '{"a":[1.50,"1.50",null]}'
    """
    match value:
        case Decimal():
            return f"{value:f}"
        case dict():
            return "{" + ",".join(f"{json_text(name)}:{json_text(member)}" for name, member in value.items()) + "}"
        case list():
            return "[" + ",".join(map(json_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def bare(row: Row | None) -> dict[str, Any] | None:
    """A row with numbers as numbers."""
    return None if row is None else dict(row)


def quoted(row: Row | None) -> dict[str, str | None] | None:
    """A row with all values as text."""
    return None if row is None else {name: None if value is None else str(value) for name, value in row.items()}


def changed(change: Change) -> list[str]:
    return [name for name in change.before if change.before[name] != change.after[name]]


def whole_second(change: Change) -> int:
    return change.instant // 1000 * 1000


# --- Canal and what is like it
# ----------------------------------------------------------------------------------------------------------------------


def canal(change: Change) -> list[bytes]:
    more = {"es": whole_second(change), "id": change.order // 3, "gtid": ""}
    return message({**canal_body(change, quoted, TYPES), **more})


def oceanbase_canal(change: Change) -> list[bytes]:
    types = {name: type_.upper() for name, type_ in TYPES.items()}
    return message({**canal_body(change, quoted, types), "id": change.order})


def oms_canal(change: Change) -> list[bytes]:
    types = {name: type_.lower() for name, type_ in OMS_TYPES.items()}
    return message({**canal_body(change, bare, types), "es": whole_second(change)})


def canal_body(change: Change, written: Callable[[Row | None], Any], types: Mapping[str, str]) -> dict[str, Any]:
    """`data` holds the row after the change, or the deleted one; `old` what an update changed, as it was before."""
    before = written(change.before)
    return {
        "database": ORDERS.database,
        "table": ORDERS.name,
        "es": change.instant,
        "ts": change.written,
        "data": [written(change.after) or before],
        "old": [{name: before[name] for name in changed(change)}] if change.op == "update" else None,
        "isDdl": False,
        "sql": "",
        "type": change.op.upper(),
        "mysqlType": dict(types),
        "sqlType": JDBC_CODES,
        "pkNames": list(ORDERS.key),
    }


def drs_json(change: Change) -> list[bytes]:
    return escaped_message(drs_body(change))


def drs_json_c(change: Change) -> list[bytes]:
    """Deleted rows stand in `data`."""
    body = drs_body(change)
    return escaped_message({**body, "data": body["old"], "old": None} if change.op == "delete" else body)


def drs_body(change: Change) -> dict[str, Any]:
    """`old` holds the whole row before the change."""
    before, after = quoted(change.before), quoted(change.after)
    rows = {"data": [after] if after else None, "old": [before] if before else None}
    return {**canal_body(change, quoted, BASE_TYPES), **rows, "id": change.order}


def drs_sql(change: Change) -> list[bytes]:
    """From GaussDB."""
    body = {name: value for name, value in drs_body(change).items() if name != "mysqlType"}
    kind = {"dbType": "GaussDB Primary/Standby", "schema": "public", "opType": change.op.upper()}
    return escaped_message({**body, **kind, "columnType": POSTGRESQL_TYPES, "sqlType": dict.fromkeys(TYPES, 1)})


# --- OceanBase OMS, DataWorks, Maxwell
# ----------------------------------------------------------------------------------------------------------------------


def oms_default(change: Change) -> list[bytes]:
    return message(oms_envelope(change))


def oms_default_extend(change: Change) -> list[bytes]:
    envelope = oms_envelope(change)
    types = {"__light_type": {name: {"schemaType": type_} for name, type_ in OMS_TYPES.items()}}
    for struct in ("prevStruct", "postStruct"):
        envelope[struct] = envelope[struct] and {**envelope[struct], **types}
    return message(envelope)


def oms_envelope(change: Change) -> dict[str, Any]:
    second = str(change.instant // 1000)
    meta = {
        "checkpoint": second,
        "timestamp": second,
        "storeDataSequence": int(f"{second}{change.order}"),
        "source_identity": "subtopic-1",
        "dbType": "OB_MYSQL",
        "uniqueId": change.transaction,
        "db": f"{ORDERS.tenant}.{ORDERS.database}",
        "table_name": ORDERS.name,
        "record_primary_key": "id",
        "record_primary_value": str((change.after or change.before)["id"]),
    }
    structs = {"prevStruct": bare(change.before), "postStruct": bare(change.after)}
    return {**structs, "allMetaData": meta, "recordType": change.op.upper()}


def oms_dataworks(change: Change) -> list[bytes]:
    source = {"dbType": "ob_mysql", "dbVersion": None, "dbName": ORDERS.database, "schema": None, "table": ORDERS.name}
    columns = [{"name": name, "type": type_} for name, type_ in OMS_TYPES.items()]
    sides = {"before": change.before, "after": change.after}
    payload = {
        **{side: row and {"data": bare(row)} for side, row in sides.items()},
        "timestamp": {**dataworks_times(change), "checkpointTime": change.instant // 1000},
        "op": change.op.upper(),
        "ddl": None,
        "scn": str(change.order),
    }
    schema = {"source": source, "column": columns, "pk": list(ORDERS.key)}
    return message({"version": "2.0", "schema": schema, "payload": payload, "extend": {"load_fm": "test"}})


def dataworks(change: Change) -> list[bytes]:
    """An update is two messages that share their sequence."""
    if change.op != "update":
        return message(dataworks_body(change, change.op.upper(), change.before, change.after))
    halves = {"UPDATE_BEFOR": (change.before, None), "UPDATE_AFTER": (None, change.after)}
    return [one for op, rows in halves.items() for one in message(dataworks_body(change, op, *rows))]


def dataworks_body(change: Change, op: str, before: Row | None, after: Row | None) -> dict[str, Any]:
    columns = [{"name": name, "type": type_} for name, type_ in DATAWORKS_TYPES.items()]
    source = {"dbType": "MySQL", "dbName": ORDERS.database, "tableName": ORDERS.name}
    payload = {
        "before": before and {"dataColumn": bare(before)},
        "after": after and {"dataColumn": bare(after)},
        "op": op,
        "sequenceId": f"1620457642589{change.order:06}",
        "timestamp": dataworks_times(change),
        "ddl": None,
    }
    schema = {"dataColumn": columns, "primaryKey": list(ORDERS.key), "source": source}
    return {"schema": schema, "payload": payload, "version": "0.0.1"}


def dataworks_times(change: Change) -> dict[str, int]:
    return {"eventTime": change.instant, "systemTime": change.written, "checkpointTime": change.instant}


def maxwell(change: Change) -> list[bytes]:
    row, position = change.after or change.before, f"mysql-bin.{change.order // 10 + 1:06}:{4 + change.order % 10}"
    old = {"old": {name: change.before[name] for name in changed(change)}} if change.op == "update" else {}
    names = {"database": ORDERS.database, "table": ORDERS.name, "type": change.op}
    key = {"primary_key_columns": list(ORDERS.key), "primary_key": [row["id"]]}
    log = {"ts": change.instant // 1000, "xid": change.order, "commit": True, "position": position}
    return message({**names, **key, "data": bare(row), **old, **log})


ENCODERS: dict[str, Callable[[Change], list[bytes]]] = {
    encoder.__name__: encoder
    for encoder in (
        *(canal, oms_canal, oms_default, oms_default_extend, oms_dataworks, oceanbase_canal),
        *(drs_json, drs_json_c, drs_sql, dataworks, maxwell),
    )
}
