"""Hostile messages in Avro, one for each value that is hostile, in each field of the formats' schemas: they land in one
run, none of them is lost, and those around them land as ever.
"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import fastavro
import pyarrow
import pytest
import yaml
from hypothesis import given

from runner.cli import main
from runner.compile.avro import avro_function
from runner.functions.udfs import avro_reader
from runner.spec.formats import FormatFolders
from tests.avro_cases import datum, encoded
from tests.drawn import drawn
from tests.hostile_avro import filled, hostile_records
from tests.random_avro import damaged, long_bytes
from tests.spark_fixtures import rows

ROOT = Path(__file__).parent.parent
FORMATS = ROOT / "formats"
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


UPDATES = (ROOT / "tests/tables/avro_updates.yml").read_text("utf-8")


@cache
def schema_of(name: str) -> tuple[Any, dict[str, Any]]:
    """fastavro's schema, and its named types."""
    names: dict[str, Any] = {}
    return fastavro.parse_schema(json.loads(SCHEMAS[name].read_text()), names), names


def update(name: str, number: int) -> dict[str, Any]:
    """An update of the row with that key."""
    schema, names = schema_of(name)
    sent = yaml.safe_load(UPDATES.replace("1001", str(number)))[name]
    types = {field["name"]: field["type"] for field in schema["fields"]}
    return filled(schema, {field: datum(value, types[field], names) for field, value in sent.items()})


def usual_messages(name: str) -> list[bytes]:
    return [encoded(schema_of(name)[0], update(name, number)) for number in (1001, 1002)]


def messages_of(name: str) -> list[bytes]:
    """Hostile messages between usual ones; also some whose bytes are damaged."""
    schema, names = schema_of(name)
    first, last = usual_messages(name)
    hostile = [encoded(schema, record) for record in hostile_records(schema, names, update(name, 1))]
    beyond = beyond_their_type(first) if name == "oceanbase_avro" else []
    return [first, *hostile, *filter(None, drawn(damaged(first), 100)), *beyond, last]


def beyond_their_type(message: bytes) -> list[bytes]:
    """Key indexes of more than 31 bits, which fastavro does not write."""
    index = b"\x02\x02\x00\x00"  # the second branch, a list of one item, which is 0
    return [message.replace(index, b"\x02\x02" + long_bytes(2**bits) + b"\0") for bits in (31, 32, 62)]


@pytest.mark.parametrize("name", SCHEMAS)
def test_damaged_messages_are_refused_or_read_and_those_around_them_are_read(name: str) -> None:
    spec = FormatFolders((FORMATS,)).load(name.replace("lists", "avro"))
    message_of_source = replace(spec.message, schemas=(SCHEMAS[name].read_text(),))
    made = avro_function(name, replace(spec, message=message_of_source))
    trees = {"fields": made.fields, "images": made.images}
    read = avro_reader(made.layout, {part: tree for part, tree in trees.items() if tree})
    first, last = usual_messages(name)

    def values_of(*messages: bytes) -> Any:
        no_schemas = pyarrow.nulls(len(messages), pyarrow.string())
        return read(pyarrow.array(messages, pyarrow.binary()), no_schemas).to_pylist()

    usual = values_of(first, last)
    assert [one["reason"] for one in usual] == [None, None]

    @given(damaged(first))
    def check(message: bytes) -> None:
        before, found, behind = values_of(first, message, last)
        assert [before, behind] == usual
        assert found["reason"] in (None, "bad-avro", "schema-mismatch")
        assert (found["reason"] is None) == (found["detail"] is None)

    check()


def test_hostile_messages_land(tmp_path: Path, interpreted: None, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "project.yml").write_text(PROJECT)
    sent = {name: messages_of(name) for name in SCHEMAS}
    for name, messages in sent.items():
        (tmp_path / f"{name}.base64").write_bytes(b"".join(base64.b64encode(one) + b"\n" for one in messages))
    # More dead letters than a run may have.
    assert main(["run", "-s", "source:*+"]) == 1, capsys.readouterr().err
    landed = rows(capsys, LANDED)
    assert {row["source"]: row["messages"] for row in landed} == {name: len(one) for name, one in sent.items()}
    # A damaged one may be a message with another key.
    assert {row["source"]: {"1001", "1002"} <= set(row["usual"]) for row in landed} == dict.fromkeys(SCHEMAS, True)
    assert set().union(*(row["reasons"] for row in landed)) <= KNOWN_REASONS


KNOWN_REASONS = {
    "bad-avro", "schema-mismatch", "sharded-message", "no-op", "unknown-op", "no-row-image", "statement-without-rows",
    "row-not-an-object", "uneven-rows",
}  # fmt: skip
LANDED = " union all ".join(
    f"""select source, count_if(seq.row = 0) as messages,
  collect_set(reason) as reasons,
  sort_array(collect_set(if(kind = 'row' and op = 'update' and key['id'] like '100_', key['id'], null))) as usual
from {name}_to_changelog group by source"""
    for name in SCHEMAS
)
