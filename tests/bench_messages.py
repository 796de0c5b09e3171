"""The messages of `make bench`, of about 1 KB with 14 columns, a timestamp and a blob among them: 30 % inserts, 60 %
updates, 10 % deletes.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from pathlib import Path

import fastavro
import orjson
import pyarrow
import pyarrow.parquet

from tests.avro_cases import encoded

ROOT = Path(__file__).parent.parent
AVRO = "oceanbase_avro"
# The messages of a change, from its number and a source of chance.
Messages = Callable[[int, random.Random], list[dict]]
TYPES = {
    "id": "bigint(20)",
    "order_no": "varchar(32)",
    "customer_id": "bigint(20)",
    "status": "varchar(16)",
    "quantity": "int(11)",
    "currency": "char(3)",
    "sku": "varchar(64)",
    "title": "varchar(255)",
    "note": "varchar(255)",
    "paid": "tinyint(1)",
    "city": "varchar(64)",
    "weight": "double",
    "updated_at": "timestamp",
    "picture": "blob",
}
DATAWORKS_TYPES = {
    **dict.fromkeys(TYPES, "STRING"),
    **dict.fromkeys(("id", "customer_id", "quantity"), "LONG"),
    "paid": "BOOLEAN",
    "weight": "DOUBLE",
    "updated_at": "DATE",
    "picture": "BYTES",
}
WORDS = [
    "red",
    "green",
    "blue",
    "large",
    "small",
    "light",
    "heavy",
    "fast",
    "slow",
    "paper",
    "steel",
    "glass",
    "wooden",
    "round",
]


def write_format(folder: Path, format_name: str, megabytes: int) -> None:
    """Writes messages of a format to FORMAT.jsonl, or in Avro to the folder FORMAT: those of this module if it has
    some, else the messages of its cases over and over.
    """
    path = folder / f"{format_name}.jsonl"
    if format_name in JSON_MESSAGES:
        write_messages(path, megabytes, JSON_MESSAGES[format_name])
    elif format_name == AVRO:
        write_avro(folder / AVRO, megabytes)
    else:
        cases = sorted((ROOT / "formats/cases" / format_name).glob("*.messages.jsonl"))
        once = b"".join(case.read_bytes().rstrip(b"\n") + b"\n" for case in cases)
        if not once:
            raise SystemExit(f'no case of "{format_name}" has messages in JSON')
        path.write_bytes(once * (megabytes * 1_000_000 // len(once) + 1))


def write_messages(path: Path, megabytes: int, messages: Messages) -> None:
    """Writes the messages of changes, one a line, until the file has so many megabytes."""
    draw = random.Random(1)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        number = 0
        while file.tell() < megabytes * 1_000_000:
            file.writelines(orjson.dumps(message) + b"\n" for message in messages(number, draw))
            number += 1


def oms_default_messages(number: int, draw: random.Random) -> list[dict]:
    """One message of a change: numbers bare, fractions among them, and whole images on both sides."""
    kind = _kind(draw)
    row = _row(number, draw)
    row |= {name: int(row[name]) for name in ("id", "customer_id", "quantity", "paid")}
    row |= {
        "weight": draw.randrange(10**6) / 100,
        "updated_at": f"{1700000000 + number}.250000",
        "picture": base64.b64encode(draw.randbytes(24)).decode(),
    }
    meta = {
        "checkpoint": str(1700000000 + number),
        "record_primary_key": "id",
        "record_primary_value": str(number),
        "source_identity": "s-1",
        "dbType": "OB_MYSQL",
        "storeDataSequence": 170000000000000 + number,
        "table_name": "orders",
        "db": "tenant.shop",
        "timestamp": str(1700000000 + number),
        "uniqueId": f"1002_{number}",
    }
    before = None if kind == "INSERT" else {**row, "status": "new", "weight": 0.5}
    after = None if kind == "DELETE" else row
    return [{"prevStruct": before, "postStruct": after, "allMetaData": meta, "recordType": kind}]


def canal_messages(number: int, draw: random.Random) -> list[dict]:
    """One message of a change: values as text, and of the old row only what changed."""
    kind = _kind(draw)
    old = [{"status": "new", "updated_at": "2024-01-01 00:00:00"}] if kind == "UPDATE" else None
    message = {
        "data": [_row(number, draw)],
        "database": "shop",
        "es": 1700000000000 + number,
        "id": number,
        "isDdl": False,
        "mysqlType": TYPES,
        "old": old,
        "pkNames": ["id"],
        "sql": "",
        "sqlType": dict.fromkeys(TYPES, 12),
        "table": "orders",
        "ts": 1700000000500 + number,
        "type": kind,
    }
    return [message]


def dataworks_messages(number: int, draw: random.Random) -> list[dict]:
    """One message of a change, or the two halves of an update: whole images, numbers bare, a timestamp as an epoch,
    bytes in base64.
    """
    kind, row = _kind(draw), _row(number, draw)
    row |= {name: int(row[name]) for name in ("id", "customer_id", "quantity")}
    row |= {
        "paid": True,
        "weight": draw.randrange(10**6) / 100,
        "updated_at": 1700000000250 + number,
        "picture": base64.b64encode(draw.randbytes(24)).decode(),
    }
    old = {**row, "status": "new", "weight": 0.5}
    match kind:
        case "INSERT":
            return [_dataworks_message(number, kind, None, row)]
        case "DELETE":
            return [_dataworks_message(number, kind, row, None)]
        case _:
            halves = (("UPDATE_BEFOR", old, None), ("UPDATE_AFTER", None, row))
            return [_dataworks_message(number, *half) for half in halves]


def _dataworks_message(number: int, op: str, before: dict | None, after: dict | None) -> dict:
    return {
        "schema": {
            "dataColumn": [{"name": name, "type": kind} for name, kind in DATAWORKS_TYPES.items()],
            "primaryKey": ["id"],
            "source": {"dbType": "MySQL", "dbName": "shop", "tableName": "orders"},
        },
        "payload": {
            "before": before and {"dataColumn": before},
            "after": after and {"dataColumn": after},
            "sequenceId": str(1700000000000000000 + number),
            "timestamp": {
                "eventTime": 1700000000000 + number,
                "systemTime": 1700000000500 + number,
                "checkpointTime": 1700000000000 + number,
            },
            "op": op,
            "ddl": None,
        },
        "version": "0.0.1",
    }


JSON_MESSAGES: dict[str, Messages] = dict(
    canal=canal_messages, oms_default=oms_default_messages, dataworks=dataworks_messages
)


def write_avro(folder: Path, megabytes: int) -> None:
    """The same changes in Avro, as a Kafka dump of four Parquet files."""
    schema, draw, size, messages = avro_schema(), random.Random(1), 0, []
    while size < megabytes * 1_000_000:
        messages.append(encoded(schema, _avro_message(len(messages), draw)))
        size += len(messages[-1])
    folder.mkdir(parents=True)
    for number in range(4):
        part = pyarrow.array(messages[number::4], pyarrow.binary())
        offsets = pyarrow.array(range(number, len(messages), 4), pyarrow.int64())
        pyarrow.parquet.write_table(pyarrow.table({"value": part, "offset": offsets}), folder / f"{number}.parquet")


def avro_schema() -> object:
    return fastavro.parse_schema(json.loads((ROOT / "formats/schemas/oceanbase.avsc").read_text()))


def _avro_message(number: int, draw: random.Random) -> dict:
    kind = _kind(draw)
    after = _avro_row(number, draw)
    before = [{**after[0]}, *after[1:3], {"type_info": "STRING", "value": "new"}, *after[4:]]
    return {
        "id": number,
        "version": 1,
        "operation": kind,
        "xid": f"1002_{number}",
        "txind": "W",
        "position": f"1@{number}",
        "timestamp": 1700000000 + number,
        "source": {"sourceType": "OB_MYSQL", "version": "4.2.1"},
        "schemaName": "tenant.shop",
        "tableName": "orders",
        "fields": [{"name": name, "dataTypeNumber": code} for code, name in enumerate(TYPES)],
        "pkIndexes": [0],
        "ukIndexes": [[1]],
        "beforeImages": None if kind == "INSERT" else before,
        "afterImages": None if kind == "DELETE" else after,
        "beforeImageBytes": b"",
        "afterImageBytes": b"",
    }


def _avro_row(number: int, draw: random.Random) -> list[dict]:
    row = _row(number, draw)
    day, clock = row["updated_at"].split(" ")
    numbers = {name: int(row[name]) for name in ("id", "customer_id", "quantity", "paid")}
    values = {**row, **numbers, "picture": draw.randbytes(24)}
    values["weight"] = ("oms.avro.DecimalObject", {"precision": 10, "scale": 2, "value": row["weight"]})
    parts = [int(part) for part in (*day.split("-"), *clock.split(":"))]
    moment = dict(zip(("year", "month", "day", "hours", "minutes", "seconds"), parts)) | {"nanos": 250_000_000}
    values["updated_at"] = ("oms.avro.DateTimeObject", moment)
    kinds = {int: "LONG", str: "STRING", bytes: "BINARY"}
    named = {name: kinds.get(type(values[name]), "DECIMAL" if name == "weight" else "DATETIME") for name in TYPES}
    return [{"type_info": kind, "value": values[name]} for name, kind in named.items()]


def _kind(draw: random.Random) -> str:
    return draw.choices(["INSERT", "UPDATE", "DELETE"], [3, 6, 1])[0]


def _row(number: int, draw: random.Random) -> dict:
    when = f"2024-0{draw.randrange(1, 9)}-1{draw.randrange(9)} 1{draw.randrange(9)}:0{draw.randrange(9)}:11"
    return {
        "id": str(number),
        "order_no": f"A-{number:010d}",
        "customer_id": str(draw.randrange(10**6)),
        "status": draw.choice(["paid", "sent"]),
        "quantity": str(draw.randrange(9)),
        "currency": "EUR",
        "sku": f"SKU-{draw.randrange(10**5):06d}",
        "title": " ".join(draw.choices(WORDS, k=6)),
        "note": " ".join(draw.choices(WORDS, k=10)),
        "paid": "1",
        "city": "Shanghai",
        "weight": f"{draw.randrange(10**6) / 100:.2f}",
        "updated_at": when,
        "picture": draw.randbytes(24).decode("latin-1"),
    }
