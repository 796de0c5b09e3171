"""The cases of Avro formats: what the runner reads is what their readable files say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.avro_cases import (
    ROOT,
    decode,
    encoded_file,
    encoded_text,
    message_bytes,
    readable_files,
    schema_of,
    write_all,
)

OCEANBASE = ROOT / "formats/cases/oceanbase_avro/case.messages.jsonl"
ANY_ORDER = {
    "type": "record",
    "name": "R",
    "namespace": "n",
    "fields": [
        {
            "name": "v",
            "type": [
                "null", "int", "long", "float", "double", "bytes", "string",
                {"type": "record", "name": "A", "fields": [{"name": "x", "type": "int"}]},
                {
                    "type": "record",
                    "name": "B",
                    "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "int", "default": 3}],
                },
                {"type": "enum", "name": "E", "symbols": ["S", "T"]},
                {"type": "array", "items": ["null", "A"]},
                {"type": "map", "values": "B"},
            ],
        },
        {"name": "d", "type": ["null", "string"], "default": None},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    "readable", readable_files(), ids=lambda path: f"{path.parent.name}.{path.name.partition('.')[0]}"
)
def test_messages_are_what_the_readable_file_says(readable: Path) -> None:
    assert encoded_file(readable).read_text("ascii") == encoded_text(readable)


def test_no_encoded_file_without_a_readable_one() -> None:
    assert sorted(map(encoded_file, readable_files())) == sorted((ROOT / "formats/cases").rglob("*.messages.base64"))


@pytest.mark.parametrize(
    "readable", readable_files(), ids=lambda path: f"{path.parent.name}.{path.name.partition('.')[0]}"
)
def test_records_are_read_back(readable: Path) -> None:
    """By another reader than the runner's: what is no special line is a whole record."""
    for line in readable.read_text("utf-8").split("\n"):
        written = json.loads(line) if line else {"base64": ""}
        if not written.keys() & {"base64", "record"}:
            decode(schema_of(readable), message_bytes(written, readable))


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (None, "00"),
        ({"int": 1}, "02 02"),
        ({"long": 1}, "04 02"),
        ({"long": -(1 << 63)}, "04 ff ff ff ff ff ff ff ff ff 01"),
        ({"float": 1}, "06 00 00 80 3f"),
        ({"double": 1}, "08 00 00 00 00 00 00 f0 3f"),
        ({"double": "-Infinity"}, "08 00 00 00 00 00 00 f0 ff"),
        ({"bytes": "\u00ffa"}, "0a 04 ff 61"),
        ({"string": "é"}, "0c 04 c3 a9"),
        ({"n.A": {"x": 1}}, "0e 02"),
        ({"n.B": {"x": 1}}, "10 02 06"),
        ({"n.B": {"x": 1, "y": 1}}, "10 02 02"),
        ({"n.E": "T"}, "12 02"),
        ({"array": [None, {"n.A": {"x": 1}}]}, "14 04 00 02 02 00"),
        ({"map": {"k": {"x": 1, "y": 1}}}, "16 02 02 6b 02 02 00"),
    ],
)
def test_branches_are_the_ones_that_are_named(tmp_path: Path, value: Any, encoded: str) -> None:
    assert message_bytes({"v": value}, a_case(tmp_path)) == bytes.fromhex(encoded) + b"\0"


@pytest.mark.parametrize(
    "written",
    [
        {},
        {"v": 1},
        {"v": {"n.C": {}}},
        {"v": {"int": 1 << 31}},
        {"v": {"int": True}},
        {"v": {"n.E": "U"}},
        {"v": {"n.A": {}}},
        {"v": None, "w": 1},
        {"base64": "", "about": ""},
    ],
)
def test_what_fits_no_schema_is_refused(tmp_path: Path, written: Any) -> None:
    with pytest.raises(ValueError):
        message_bytes(written, a_case(tmp_path))


def test_special_lines(tmp_path: Path) -> None:
    case = a_case(tmp_path)
    types = [
        {"type": "record", "name": "In", "fields": [{"name": "x", "type": "int"}]},
        {"type": "record", "name": "Out", "fields": [{"name": "in", "type": {"type": "array", "items": "In"}}]},
    ]
    (tmp_path / "formats/schemas/list.avsc").write_text(json.dumps(types))
    assert message_bytes({"schema": "schemas/list.avsc", "record": {"in": [{"x": 1}]}}, case) == b"\x02\x02\x00"
    assert message_bytes({"base64": "AP8=", "about": "two bytes"}, case) == b"\x00\xff"


def test_schema_of_the_source(tmp_path: Path) -> None:
    case = a_case(tmp_path)
    (tmp_path / "formats/f.yml").write_text("message: {encoding: avro}\n")
    (tmp_path / "formats/schemas/a.avsc").rename(case.parent / "own.avsc")
    case.write_text('{"v": {"int": 1}}\n\n{"base64": "AA==", "about": "null"}\n')
    case.with_name("c.rows.yml").write_text("source: {schema: own.avsc}\nrows: []\n")
    write_all(tmp_path)
    assert encoded_file(case).read_text().split("\n") == ["AgIA", "", "AA==", ""]


def test_oceanbase_round_trip() -> None:
    value = {"oms.avro.TimeObject": {"hours": 1, "minutes": 2, "seconds": 3, "nanos": 4}}
    record = {"id": 7, "version": {"int": 1}, "afterImages": {"array": [{"type_info": "TIME", "value": value}]}}
    read = decode(schema_of(OCEANBASE), message_bytes(record, OCEANBASE))
    assert read["afterImages"][0]["value"] == {"negative": False, "hours": 1, "minutes": 2, "seconds": 3, "nanos": 4}
    assert (read["version"], read["total"], read["afterImageBytes"]) == (1, -1, b"")


def a_case(tmp_path: Path) -> Path:
    """The readable file of a case, with a format whose schema is ANY_ORDER."""
    case = tmp_path / "formats/cases/f/c.messages.jsonl"
    case.parent.mkdir(parents=True)
    (tmp_path / "formats/schemas").mkdir()
    (tmp_path / "formats/schemas/a.avsc").write_text(json.dumps(ANY_ORDER))
    (tmp_path / "formats/f.yml").write_text("message: {encoding: avro, schema: [schemas/a.avsc, schemas/b.avsc]}\n")
    return case


def test_the_two_schemas_of_one_vendor_differ_in_their_last_field() -> None:
    newer, older = (
        json.loads((ROOT / f"formats/schemas/{name}.avsc").read_text())
        for name in ("dts", "dts_without_born_timestamp")
    )
    assert [field["name"] for field in newer["fields"]][-1] == "bornTimestamp"
    assert {**newer, "fields": newer["fields"][:-1]} == older
