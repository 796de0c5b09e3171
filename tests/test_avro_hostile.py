"""Hostile messages in Avro, one for each value that is hostile, in each field of the formats' schemas: they land in one
run, none of them is lost, and those around them land as ever.
"""

from __future__ import annotations

import base64
import json
import os
import random
from pathlib import Path
from typing import Any

import fastavro
import pytest

from runner.cli import main
from tests.avro_cases import encoded
from tests.hostile_avro import filled, hostile_records
from tests.random_avro import long_bytes, mutated
from tests.spark_fixtures import rows

FORMATS = Path(__file__).parent.parent / "formats"
SCHEMAS = {
    "oceanbase_avro": FORMATS / "schemas/oceanbase.avsc",
    "dts_avro": FORMATS / "schemas/dts.avsc",
    "drs_avro": FORMATS / "cases/drs_avro/record.avsc",
    "drs_lists": FORMATS / "cases/drs_avro/lists.avsc",
}
PROJECT = f"""
name: hostile
sources:
  - {{name: oceanbase_avro, format: oceanbase_avro, files: oceanbase_avro.base64}}
  - {{name: dts_avro, format: dts_avro, files: dts_avro.base64}}
  - {{name: drs_avro, format: drs_avro, files: drs_avro.base64, schema: {SCHEMAS["drs_avro"]}}}
  - {{name: drs_lists, format: drs_avro, files: drs_lists.base64, schema: {SCHEMAS["drs_lists"]}}}
"""


def oceanbase_update(number: int) -> dict[str, Any]:
    image = [
        {"type_info": "INTEGER", "value": ("int", number)},
        {"type_info": "DATETIME", "value": ("oms.avro.DateTimeObject", DATETIME)},
    ]
    return {
        "id": number,
        "version": ("int", 1),
        "operation": ("oms.avro.Operation", "UPDATE"),
        "timestamp": ("long", 1700000000),
        "source": ("oms.avro.Source", {"sourceType": "OB_MYSQL", "version": "4"}),
        "schemaName": ("string", "tn.d"),
        "tableName": ("string", "t"),
        "fields": ("array", [{"name": "id", "dataTypeNumber": 3}, {"name": "at", "dataTypeNumber": 12}]),
        "pkIndexes": ("array", [0]),
        "beforeImages": ("array", image),
        "afterImages": ("array", image),
        "total": -1,
    }


DATETIME = {"year": 2024, "month": 5, "day": 1, "hours": 1, "minutes": 2, "seconds": 3, "nanos": 4}


def dts_update(number: int) -> dict[str, Any]:
    space = "com.alibaba.dts.formats.avro."
    image = [
        (f"{space}Integer", {"precision": 4, "value": str(number)}),
        (f"{space}Character", {"charset": "utf8mb4", "value": "é".encode()}),
    ]
    return {
        "source": {"sourceType": "MySQL", "version": "8"},
        "operation": "UPDATE",
        "objectName": ("string", "d.t"),
        "tags": {"pk_uk_info": '{"PRIMARY":["id"]}'},
        "fields": ("array", [{"name": "id", "dataTypeNumber": 3}, {"name": "v", "dataTypeNumber": 253}]),
        "beforeImages": ("array", image),
        "afterImages": ("array", image),
    }


def drs_update(number: int) -> dict[str, Any]:
    row = {"id": ("int", number), "v": ("string", "x")}
    return {
        "mysqlType": ("map", {"id": "int", "v": "varchar(9)"}),
        "database": ("string", "d"),
        "table": ("string", "t"),
        "type": ("string", "UPDATE"),
        "data": ("map", row),
        "old": ("map", row),
        "pkNames": ("array", ["id"]),
    }


def drs_update_in_lists(number: int) -> dict[str, Any]:
    """Its columns have types whose texts are read."""
    types = {"id": "int", "at": "timestamp", "b": "blob", "d": "decimal(9,2)", "c": "datetime"}
    row = {**dict.fromkeys(types, ("null", None)), "id": ("int", number)}
    rows = ("array", [("map", row)])
    return {**drs_update(number), "mysqlType": ("map", types), "data": rows, "old": rows}


UPDATES = {
    "oceanbase_avro": oceanbase_update,
    "dts_avro": dts_update,
    "drs_avro": drs_update,
    "drs_lists": drs_update_in_lists,
}


def messages_of(name: str, damaged_ones: int) -> list[bytes]:
    """Hostile messages between usual ones, whose keys are 1001 and 1002; also some whose bytes are damaged."""
    names: dict[str, Any] = {}
    schema = fastavro.parse_schema(json.loads(SCHEMAS[name].read_text()), names)
    usual = [encoded(schema, record) for record in (filled(schema, UPDATES[name](number)) for number in (1001, 1002))]
    hostile = [encoded(schema, record) for record in hostile_records(schema, names, UPDATES[name](1))]
    draw = random.Random(name)
    damaged = [mutated(draw, usual[0]) for _ in range(damaged_ones)]
    beyond = beyond_their_type(usual[0]) if name == "oceanbase_avro" else []
    return [usual[0], *hostile, *(one for one in damaged if one), *beyond, usual[1]]


def beyond_their_type(message: bytes) -> list[bytes]:
    """Key indexes of more than 31 bits, which fastavro does not write."""
    index = b"\x02\x02\x00\x00"  # the second branch, a list of one item, which is 0
    return [message.replace(index, b"\x02\x02" + long_bytes(2**bits) + b"\0") for bits in (31, 32, 62)]


def test_hostile_messages_land(tmp_path: Path, spark: object, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    check_landed(tmp_path, capsys, monkeypatch, damaged_ones=300)


@pytest.mark.soak
def test_many_damaged_messages_land(
    tmp_path: Path, spark: object, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    landed = check_landed(tmp_path, capsys, monkeypatch, damaged_ones=int(os.environ.get("HOSTILE", "10000")))
    with capsys.disabled():
        for row in landed:
            print(f"\n{row['source']}: {row['messages']} messages -> {row['good']} good, {row['dead']} dead letters")


def check_landed(folder: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, damaged_ones: int) -> list[dict[str, Any]]:
    """What landed of each source, counted."""
    monkeypatch.chdir(folder)
    (folder / "project.yml").write_text(PROJECT)
    counts = {}
    for name in SCHEMAS:
        messages = messages_of(name, damaged_ones)
        counts[name] = len(messages)
        (folder / f"{name}.base64").write_bytes(b"".join(base64.b64encode(one) + b"\n" for one in messages))
    assert main(["run", "-s", "source:*+"]) == 0, capsys.readouterr().err
    landed = rows(capsys, LANDED)
    assert {row["source"]: row["messages"] for row in landed} == counts
    # A damaged one may be a message with another key.
    assert {row["source"]: {"1001", "1002"} <= set(row["usual"]) for row in landed} == dict.fromkeys(SCHEMAS, True)
    assert set().union(*(row["reasons"] for row in landed)) <= KNOWN_REASONS
    return landed


KNOWN_REASONS = {
    "bad-avro", "schema-mismatch", "sharded-message", "no-op", "unknown-op", "no-row-image", "statement-without-rows",
    "row-not-an-object", "uneven-rows",
}  # fmt: skip
LANDED = " union all ".join(
    f"""select source, count_if(seq.row = 0) as messages,
  count_if(reason is null) as good, count(reason) as dead, collect_set(reason) as reasons,
  sort_array(collect_set(if(kind = 'row' and op = 'update' and key['id'] like '100_', key['id'], null))) as usual
from {name}_to_changelog group by source"""
    for name in SCHEMAS
)
