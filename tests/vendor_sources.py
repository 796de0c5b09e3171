"""The sources of a project that land what the vendors write: what must be declared, and the files with the messages."""

from __future__ import annotations

import io
import json
import zlib
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import fastavro

from tests.avro_cases import encoded
from tests.logical_changes import CHANGES, TABLES, Table
from tests.topic_records import write_topic
from tests.vendor_messages import VENDORS, Sent, messages_of
from tests.vendor_rows import FORMATS, SOURCES

SPECS = Path(__file__).parent.parent / "formats"
# Vendors whose messages are records of topics, with a key.
RECORDS = (
    "debezium", "debezium_oracle", "debezium_sqlserver", "debezium_db2", "debezium_flat", "debezium_postgresql",
    "debezium_mongodb", "debezium_mongodb_patches", "oms_debezium_smt", "ticdc_open",
)  # fmt: skip
AVRO = ("oceanbase_avro", "dts_avro", "drs_avro")
# The numbers in these vendors' messages give no order.
BY_ARRIVAL = ("canal", "oms_canal", "oms_maxwell", "dts_avro", "aws_dms", "oms_debezium_smt")
# Those of one change, whose numbers are the same, are in the order of their partition.
IN_PARTITION_ORDER = (*RECORDS, "ticdc_canal")
IN_TABLES = (*RECORDS, "dts_avro")
# What a source says of its messages where they are neither lines of JSON nor a table.
MESSAGES = {
    "oceanbase_avro": {"files": "in/oceanbase_avro/*.avro"},
    "drs_avro": {"schema": str(SPECS / "cases/drs_avro/record.avsc"), "files": "in/drs_avro/*.base64"},
}
# What a source's format says beside the vendor's.
DIALECTS = {"oms_debezium_smt": {"extends": "oms_debezium_smt", "table_name": "$topic"}}
IN_SHANGHAI = (
    "canal", "drs_json_c", "oms_dataworks", "oms_shareplex", "maxwell", "ticdc_canal", "ticdc_open", "ogg_json",
    "ogg_json_row",
)  # fmt: skip
# The types of columns where rows come from Oracle, and of those that have another name with Qlik Replicate.
ORACLE_COLUMNS = {
    **dict.fromkeys(("integer", "boolean", "decimal"), "number"),
    "float": "binary_float",
    "double": "binary_double",
    "json": "clob",
    "binary": "blob",
    **dict.fromkeys(("string", "enum", "set"), "varchar2"),
    **dict.fromkeys(("date", "datetime"), "datetime"),
}
QLIK_COLUMNS = {"binary": "bytes", "bit": "bytes"}
MESSAGES_OF_A_BLOCK = 12  # so that a container has several blocks


def declared(vendor: str, table: Table) -> dict[str, Any]:
    """What a source must say of a table because the vendor's messages do not."""
    types = {column.name: column.type for column in table.columns}
    key = {"key": list(table.key)} if table.key else {}
    match vendor:
        case "oms_default" | "maxwell" | "oms_maxwell":
            return {"columns": types}
        case "oms_debezium" | "oms_debezium_smt":
            return key
        case "oms_shareplex":
            return {"columns": types, **key}
        case "ogg_json" | "ogg_json_row":
            return {"columns": {c.name: ORACLE_COLUMNS[c.kind] for c in table.columns if c.kind in ORACLE_COLUMNS}}
        case "qlik_replicate":
            return {"columns": {c.name: QLIK_COLUMNS.get(c.kind, c.type) for c in table.columns}, **key}
        case "aws_dms":
            return {"columns": {c.name: "integer" if c.kind == "boolean" else c.kind for c in table.columns}, **key}
        case "dataworks" | "dataworks_single":
            wall_clocks = {column.name: column.type for column in table.columns if column.kind in ("date", "datetime")}
            return {"columns": wall_clocks, "zone": "Asia/Shanghai"} if wall_clocks else {}
    return {}


def source_of(vendor: str) -> dict[str, Any]:
    prefix = "" if vendor == "oms_debezium_smt" else f"{TABLES[0].database}."
    tables = [{"name": f'{prefix}"{table.name}"', **says} for table in TABLES if (says := declared(vendor, table))]
    place = {"table": f"in/{vendor}"} if vendor in IN_TABLES else {"files": f"in/{vendor}/*.jsonl"}
    return {
        "name": vendor,
        "format": DIALECTS.get(vendor) or FORMATS.get(vendor, vendor),
        **MESSAGES.get(vendor, place),
        **({"zone": "Asia/Shanghai"} if vendor in IN_SHANGHAI else {}),
        **({"tables": tables} if tables else {}),
    }


def sources() -> list[str]:
    return [vendor for vendor in VENDORS if vendor not in SOURCES]


def messages_to(source: str) -> list[Sent]:
    """What a source lands, in the order of its file: any order, where the vendor's numbers give one. Several events of
    one change may have the same numbers; then they are in the order of their partition.
    """
    sent = [one for vendor in VENDORS if SOURCES.get(vendor, vendor) == source for one in messages_of(vendor)]
    if source in BY_ARRIVAL:
        return sent
    chance = Random(source)
    if source not in IN_PARTITION_ORDER:
        chance.shuffle(sent)
        return sent
    place = {change.name: chance.random() for change in CHANGES}
    return sorted(sent, key=lambda one: (place[one.change], one.vendor))


def write_messages(source: str, folder: Path) -> None:
    """One file with all messages of a source, of the kind that it reads."""
    folder.mkdir(parents=True)
    records = [sent.record for sent in messages_to(source)]
    messages = [one.value or b"" for one in records]
    if source in IN_TABLES:
        write_topic(records, folder / "1.parquet")
    elif source == "oceanbase_avro":
        (folder / "1.avro").write_bytes(container(SPECS / "schemas/oceanbase.avsc", messages))
    elif source == "drs_avro":
        (folder / "1.base64").write_bytes(b"".join(b64encode(message) + b"\n" for message in messages))
    else:
        (folder / "1.jsonl").write_bytes(b"".join(message + b"\n" for message in messages))


def container(schema: Path, messages: Sequence[bytes]) -> bytes:
    """A container file with records that are written already, in blocks that are packed."""
    out, sync = io.BytesIO(), bytes(range(16))
    fastavro.writer(out, json.loads(schema.read_text()), [], codec="deflate", sync_marker=sync)
    for start in range(0, len(messages), MESSAGES_OF_A_BLOCK):
        block = messages[start : start + MESSAGES_OF_A_BLOCK]
        packed = zlib.compress(b"".join(block))[2:-4]  # without what zlib puts around it
        out.write(encoded("long", len(block)) + encoded("long", len(packed)) + packed + sync)
    return out.getvalue()
