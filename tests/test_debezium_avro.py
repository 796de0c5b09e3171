"""The dialect of docs/formats.md for Debezium in Avro, on messages that fastavro writes."""

from __future__ import annotations

import base64
import io
import json
import re
import struct
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from tests.pages import ROOT
from tests.spark_fixtures import rows

pytestmark = pytest.mark.usefixtures("spark", "interpreted")

NUMBER = 7
TEXT, LONG = ["null", "string"], ["null", "long"]
DAY = {"type": "int", "connect.name": "io.debezium.time.Date", "connect.version": 1}
AMOUNT = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}


def record(name: str, /, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields.items()]}


VALUE = record("Value", id="int", name=TEXT, amount=["null", AMOUNT], day=["null", DAY])
SOURCE = record(
    "Source", version="string", connector="string", name="string", ts_ms="long", snapshot=TEXT, db="string",
    table=TEXT, gtid=TEXT, file="string", pos="long", row="int",
)  # fmt: skip
ENVELOPE = record("Envelope", before=["null", VALUE], after=["null", "Value"], source=SOURCE, op="string", ts_ms=LONG)
ORIGIN = {
    "version": "2.5", "connector": "mysql", "name": "server", "ts_ms": 1_700_000_000_000, "snapshot": "false",
    "db": "inventory", "table": "customers", "gtid": None, "file": "mysql-bin.000003", "pos": 154, "row": 0,
}  # fmt: skip
ANNE = {"id": 1, "name": "Anne", "amount": Decimal("5.00"), "day": 16_695}
MARIE = {**ANNE, "name": "Anne Marie", "day": None}


def message(op: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> str:
    written = io.BytesIO()
    event = {"before": before, "after": after, "source": ORIGIN, "op": op, "ts_ms": 1_700_000_000_123}
    fastavro.schemaless_writer(written, fastavro.parse_schema(json.loads(json.dumps(ENVELOPE))), event)
    return base64.b64encode(b"\0" + struct.pack(">I", NUMBER) + written.getvalue()).decode()


def test_envelopes_in_avro_land(project, runner, capsys) -> None:
    page = (ROOT / "docs/formats.md").read_text()
    (dialect,) = re.findall(r"```yaml formats/debezium_avro.yml\n(.*?)```", page, re.DOTALL)
    tables = "[{name: inventory.customers, key: id, columns: {day: io.debezium.time.Date}}]"
    source = f"{{name: shop, format: debezium_avro, files: in/*, schema: schemas, tables: {tables}}}"
    messages = [message("c", None, ANNE), message("u", ANNE, MARIE), message("d", MARIE, None)]
    project(
        {
            "project.yml": f"sources:\n  - {source}\n",
            "formats/debezium_avro.yml": dialect,
            f"schemas/{NUMBER}.avsc": json.dumps(ENVELOPE),
            "in/a.base64": "\n".join(messages),
        }
    )
    ran = runner("run", "-s", "shop_to_changelog")
    assert ran.code == 0, ran.out + ran.err
    columns = "op, key, before, after, changed, seq.position as position, db_name, table_name"
    landed = rows(capsys, f"select {columns} from shop_to_changelog order by seq.arrival")
    anne = {"id": "1", "name": "Anne", "amount": "5.00", "day": "2015-09-17"}
    marie = {**anne, "name": "Anne Marie", "day": None}
    common = {"key": {"id": "1"}, "position": [3, 154, 0], "db_name": "inventory", "table_name": "customers"}
    assert landed == [
        {"op": "insert", "before": None, "after": anne, "changed": None, **common},
        {"op": "update", "before": anne, "after": marie, "changed": ["day", "name"], **common},
        {"op": "delete", "before": marie, "after": None, "changed": None, **common},
    ]
