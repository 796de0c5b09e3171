"""How vendors tell what happens to rows of a table, and statements: for lives that no vendor has told yet. Of the
changes that are recorded, an encoder gives what is recorded (test_told_by_vendors.py).

`ENCODERS[vendor](change)` gives the messages of a change; none of one that the vendor does not tell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from tests.logical_changes import Change, Table

Row = Mapping[str, Any]
# What vendors call the types of MySQL, by their first words.
MYSQL_TYPES = ("bigint", "int", "varchar", "decimal", "text")
OMS_TYPES = dict(zip(MYSQL_TYPES, ("INT64", "INT", "VARCHAR", "DECIMAL", "TEXT")))
DATAWORKS_TYPES = dict(zip(MYSQL_TYPES, ("LONG", "LONG", "STRING", "DOUBLE", "STRING")))
POSTGRESQL_TYPES = dict(zip(MYSQL_TYPES, ("bigint", "integer", "character varying", "numeric", "text")))
JDBC_CODES = dict(zip(MYSQL_TYPES, (-5, 4, 12, 3, 2005)))
# What Canal calls statements; the words of DataWorks are the same.
CANAL_STATEMENTS = {
    "create": "CREATE",
    "alter": "ALTER",
    "drop": "ERASE",
    "truncate": "TRUNCATE",
    "rename": "RENAME",
    "index": "CINDEX",
}
OMS_STATEMENTS = {
    "create": "CREATE_TABLE",
    "alter": "ALTER_TABLE",
    "drop": "DROP_TABLE",
    "truncate": "TRUNCATE_TABLE",
    "rename": "RENAME_TABLE",
    "index": "CREATE_INDEX",
}


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


def types_of(table: Table) -> dict[str, str]:
    """The types as MySQL writes them."""
    return {column.name: column.type for column in table.columns}


def base_types(table: Table, names: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The first words of the types, or what a vendor calls them."""
    first = {column.name: column.type.partition("(")[0] for column in table.columns}
    return first if names is None else {name: names[type_] for name, type_ in first.items()}


def whole_second(change: Change) -> int:
    return change.instant // 1000 * 1000


# --- Canal and what is like it
# ----------------------------------------------------------------------------------------------------------------------


def canal(change: Change) -> list[bytes]:
    if change.op == "snapshot":
        return []
    more = {"es": whole_second(change), "id": change.order // 3, "gtid": ""}
    return message({**canal_body(change, quoted, types_of(change.table)), **more})


def oceanbase_canal(change: Change) -> list[bytes]:
    if change.op == "snapshot":
        return []
    types = {name: type_.upper() for name, type_ in types_of(change.table).items()}
    return message({**canal_body(change, quoted, types), "id": change.order})


def oms_canal(change: Change) -> list[bytes]:
    """A loaded row is an insert."""
    types = {name: type_.lower() for name, type_ in base_types(change.table, OMS_TYPES).items()}
    body = {**canal_body(change, bare, types), "es": whole_second(change)}
    return message({**body, "type": "INSERT"} if change.op == "snapshot" else body)


def canal_body(change: Change, written: Callable[[Row | None], Any], types: Mapping[str, str]) -> dict[str, Any]:
    """`data` holds the row after the change, or the deleted one; `old` what an update changed, as it was before."""
    before, is_row = written(change.before), change.kind == "row"
    return {
        "database": change.table.database,
        "table": change.table.name,
        "es": change.instant,
        "ts": change.written,
        "data": [written(change.after) or before] if is_row else None,
        "old": [{name: before[name] for name in changed(change)}] if change.op == "update" else None,
        "isDdl": not is_row,
        "sql": change.statement or "",
        "type": change.op.upper() if is_row else CANAL_STATEMENTS[change.op],
        "mysqlType": dict(types) if is_row else None,
        "sqlType": base_types(change.table, JDBC_CODES) if is_row else None,
        "pkNames": list(change.table.key) if is_row else None,
    }


def drs_json(change: Change) -> list[bytes]:
    return escaped_message(drs_body(change))


def drs_json_c(change: Change) -> list[bytes]:
    """Deleted rows stand in `data`."""
    body = drs_body(change)
    return escaped_message({**body, "data": body["old"], "old": None} if change.op == "delete" else body)


def drs_body(change: Change) -> dict[str, Any]:
    """`old` holds the whole row before the change."""
    body = {**canal_body(change, quoted, base_types(change.table)), "id": change.order}
    if change.kind == "ddl":
        return {**body, "type": "DDL"}
    before, after = quoted(change.before), quoted(change.after)
    op = "INIT" if change.op == "snapshot" else change.op.upper()
    return {**body, "type": op, "data": [after] if after else None, "old": [before] if before else None}


def drs_sql(change: Change) -> list[bytes]:
    """From GaussDB."""
    if change.op == "snapshot":
        return []
    body = {name: value for name, value in drs_body(change).items() if name != "mysqlType"}
    types, codes = base_types(change.table, POSTGRESQL_TYPES), dict.fromkeys(types_of(change.table), 1)
    kind = {"dbType": "GaussDB Primary/Standby", "schema": "public", "opType": body["type"]}
    of_rows = {"columnType": types, "sqlType": codes} if change.kind == "row" else {"columnType": None}
    return escaped_message({**body, **kind, **of_rows})


# --- OceanBase OMS, DataWorks, Maxwell
# ----------------------------------------------------------------------------------------------------------------------


def oms_default(change: Change) -> list[bytes]:
    return message(oms_envelope(change, loaded="ROW"))


def oms_default_extend(change: Change) -> list[bytes]:
    envelope = oms_envelope(change, loaded="INSERT")
    types = {"ddl": "VAR_STRING"} if change.kind == "ddl" else base_types(change.table, OMS_TYPES)
    more = {"__light_type": {name: {"schemaType": type_} for name, type_ in types.items()}}
    for struct in ("prevStruct", "postStruct"):
        envelope[struct] = envelope[struct] and {**envelope[struct], **more}
    return message(envelope)


def oms_envelope(change: Change, loaded: str) -> dict[str, Any]:
    """`loaded` is what a loaded row is called, which has neither a time nor a number; a statement has no number."""
    second, table = str(change.instant // 1000), change.table
    of_all = {"source_identity": "subtopic-1", "dbType": "OB_MYSQL", "table_name": table.name}
    if change.kind == "ddl":
        key = {"record_primary_key": None, "record_primary_value": None}
        times = {"checkpoint": second, "timestamp": second, "storeDataSequence": None, "uniqueId": None}
        meta = {**key, **of_all, "db": table.database, **times, "ddlType": OMS_STATEMENTS[change.op]}
        return {"prevStruct": None, "postStruct": {"ddl": change.statement}, "allMetaData": meta, "recordType": "DDL"}
    row = str((change.after or change.before)["id"])
    meta = {"record_primary_key": "id", "record_primary_value": row, **of_all, "db": f"{table.tenant}.{table.database}"}
    structs = {"prevStruct": bare(change.before), "postStruct": bare(change.after)}
    if change.op == "snapshot":
        return {**structs, "allMetaData": {**meta, "checkpoint": f"id={row}"}, "recordType": loaded}
    sequence = {"storeDataSequence": int(f"{second}{change.order}"), "uniqueId": change.transaction}
    meta = {**meta, "checkpoint": second, "timestamp": second, **sequence}
    return {**structs, "allMetaData": meta, "recordType": change.op.upper()}


def oms_dataworks(change: Change) -> list[bytes]:
    """A loaded row is an insert, and a statement has no number."""
    table, is_row = change.table, change.kind == "row"
    source = {"dbType": "ob_mysql", "dbVersion": None, "dbName": table.database, "schema": None, "table": table.name}
    columns = [{"name": name, "type": type_} for name, type_ in base_types(table, OMS_TYPES).items()]
    sides = {"before": change.before, "after": change.after}
    op = "INSERT" if change.op == "snapshot" else change.op.upper()
    payload = {
        **{side: row and {"data": bare(row)} for side, row in sides.items()},
        "timestamp": {**dataworks_times(change), "checkpointTime": change.instant // 1000},
        "op": op if is_row else CANAL_STATEMENTS[change.op],
        "ddl": None if is_row else {"text": change.statement},
        "scn": str(change.order) if is_row else "null",
    }
    schema = {"source": source, "column": columns if is_row else None, "pk": list(table.key) if is_row else None}
    return message({"version": "2.0", "schema": schema, "payload": payload, "extend": {"load_fm": "test"}})


def dataworks(change: Change) -> list[bytes]:
    """An update is two messages that share their sequence."""
    if change.op != "update":
        is_row = change.kind == "row"
        op = "INSERT" if change.op == "snapshot" else change.op.upper() if is_row else CANAL_STATEMENTS[change.op]
        return message(dataworks_body(change, op, change.before, change.after))
    halves = {"UPDATE_BEFOR": (change.before, None), "UPDATE_AFTER": (None, change.after)}
    return [one for op, rows in halves.items() for one in message(dataworks_body(change, op, *rows))]


def dataworks_body(change: Change, op: str, before: Row | None, after: Row | None) -> dict[str, Any]:
    table, is_row = change.table, change.kind == "row"
    columns = [{"name": name, "type": type_} for name, type_ in base_types(table, DATAWORKS_TYPES).items()]
    source = {"dbType": "MySQL", "dbName": table.database, "tableName": table.name}
    is_loaded, times = change.op == "snapshot", dataworks_times(change)
    payload = {
        "before": before and {"dataColumn": bare(before)},
        "after": after and {"dataColumn": bare(after)},
        "op": op,
        "sequenceId": "-1" if is_loaded else f"1620457642589{change.order:06}",
        "timestamp": {**times, "eventTime": -1, "checkpointTime": -1} if is_loaded else times,
        "ddl": None if is_row else {"text": change.statement, "ddlMeta": "rO0ABQ=="},
    }
    key = list(table.key) if is_row else None
    schema = {"dataColumn": columns if is_row else None, "primaryKey": key, "source": source}
    return {"schema": schema, "payload": payload, "version": "0.0.1"}


def dataworks_times(change: Change) -> dict[str, int]:
    return {"eventTime": change.instant, "systemTime": change.written, "checkpointTime": change.instant}


def maxwell(change: Change) -> list[bytes]:
    names = {"database": change.table.database, "table": change.table.name}
    log = {"position": f"mysql-bin.{change.order // 10 + 1:06}:{4 + change.order % 10}"}
    server = {"server_id": change.server} if change.server else {}
    if change.kind == "ddl":
        return maxwell_statements(change, names, {**log, **server})
    row = change.after or change.before
    key = {"primary_key_columns": list(change.table.key), "primary_key": [row["id"]]}
    old = {"old": {name: change.before[name] for name in changed(change)}} if change.op == "update" else {}
    row_of = {**names, **key, "data": bare(row), **old, "ts": change.instant // 1000}
    if change.op == "snapshot":
        return message({**row_of, "type": "bootstrap-insert"})
    return message({**row_of, "type": change.op, "xid": change.order, "commit": True, **log, **server})


def maxwell_statements(change: Change, names: Mapping[str, str], log: Mapping[str, Any]) -> list[bytes]:
    """A message for each table that a statement changes, all with the same text. It reads no others, such as
    truncate.
    """
    type_ = {"create": "table-create", "alter": "table-alter", "rename": "table-alter", "drop": "table-drop"}.get(
        change.op
    )
    columns = [{"type": of_column, "name": name} for name, of_column in base_types(change.table).items()]
    table = {**names, "charset": "utf8mb4", "columns": columns, "primary-key": list(change.table.key)}
    tables = {"table-create": {"def": table}, "table-alter": {"old": table, "def": table}}.get(type_, {})
    told = {"type": type_, **names, **tables, "sql": change.statement, "ts": whole_second(change), **log}
    each = change.names or (change.table.name,)
    return [one for name in each for one in message({**told, "table": name})] if type_ else []


ENCODERS: dict[str, Callable[[Change], list[bytes]]] = {
    encoder.__name__: encoder
    for encoder in (
        *(canal, oms_canal, oms_default, oms_default_extend, oms_dataworks, oceanbase_canal),
        *(drs_json, drs_json_c, drs_sql, dataworks, maxwell),
    )
}
