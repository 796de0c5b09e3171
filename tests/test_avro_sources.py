"""Messages in Avro, wherever they lie: containers, a message a file, lines of base64, tables of raw bytes. Everything
through the command line.
"""

from __future__ import annotations

import base64
import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import fastavro
import pyarrow
import pyarrow.parquet
import pytest
from pyspark import cloudpickle

from runner import functions
from runner.cli import main
from runner.compile.avro import avro_function
from runner.functions import udfs
from runner.functions.avro.layout import Numbers
from runner.functions.avro.places import Registry
from runner.spec.formats import FormatFolders
from tests.avro_cases import encoded
from tests.schema_registry import registry_server
from tests.spark_fixtures import rows

ROOT = Path(__file__).parent.parent
SCHEMA = json.loads((ROOT / "formats/schemas/oceanbase.avsc").read_text())
PROJECT = """
name: avro
sources:
  - {name: containers, format: oceanbase_avro, files: "in/containers/*"}
  - {name: single, format: oceanbase_avro, files: "in/single/*"}
  - {name: lines, format: oceanbase_avro, files: "in/lines/*"}
  - {name: dump, format: {extends: oceanbase_avro, message: {skip_bytes: 5}}, table: in/dump}
"""


def record(number: int, **other: object) -> dict:
    values = [{"type_info": "LONG", "value": number}, {"type_info": "STRING", "value": "v" * (number % 7)}]
    return {
        "id": number,
        "version": 1,
        "operation": "INSERT",
        "timestamp": 1700000000,
        "source": {"sourceType": "OB_MYSQL", "version": "4"},
        "schemaName": "tn.d",
        "tableName": "t",
        "fields": [{"name": "id", "dataTypeNumber": 8}, {"name": "v", "dataTypeNumber": 253}],
        "pkIndexes": [0],
        "afterImages": values,
        "beforeImageBytes": b"",
        "afterImageBytes": b"",
        **other,
    }


def container(values: list[dict], schema: dict = SCHEMA, codec: str = "deflate") -> bytes:
    buffer = io.BytesIO()
    fastavro.writer(buffer, schema, values, codec=codec, sync_interval=500)
    return buffer.getvalue()


def write_dump(path: Path, messages: list[bytes | None], first_offset: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {
        "key": pyarrow.array([b"k"] * len(messages), pyarrow.binary()),
        "value": pyarrow.array(messages, pyarrow.binary()),
        "topic": ["changes"] * len(messages),
        "partition": pyarrow.array([3] * len(messages), pyarrow.int32()),
        "offset": pyarrow.array(range(first_offset, first_offset + len(messages)), pyarrow.int64()),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


@pytest.fixture
def folder(tmp_path: Path, spark: object, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("containers", "single", "lines", "dump"):
        (tmp_path / "in" / name).mkdir(parents=True)
    (tmp_path / "project.yml").write_text(PROJECT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_same_messages_from_everywhere(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = [record(number) for number in range(40)]
    messages = [encoded(SCHEMA, value) for value in values]
    (folder / "in/containers/1.avro").write_bytes(container(values[:25]))
    (folder / "in/containers/2.avro").write_bytes(container(values[25:], codec="null"))
    for number, message in enumerate(messages):
        (folder / f"in/single/{number}.bin").write_bytes(message)
    (folder / "in/lines/1.base64").write_bytes(b"\n".join(base64.b64encode(m) for m in messages[:30]) + b"\n\n")
    write_dump(folder / "in/dump/1.parquet", [b"\x00\x00\x00\x00\x07" + m for m in messages[:20]])
    assert main(["run"]) == 0
    (folder / "in/lines/2.base64").write_bytes(b"\r\n".join(base64.b64encode(m) for m in messages[30:]))
    write_dump(folder / "in/dump/2.parquet", [b"\x00\x00\x00\x00\x07" + m for m in messages[20:]], 20)
    assert main(["build"]) == 0
    landed = rows(
        capsys, "select source, key['id'] as id, after, seq, origin from changelog order by source, seq.position"
    )
    for source in ("containers", "single", "lines", "dump"):
        own = [row for row in landed if row["source"] == source]
        assert [(row["id"], row["after"]) for row in own] == [
            (str(n), {"id": str(n), "v": "v" * (n % 7)}) for n in range(40)
        ]
        assert len({str(row["seq"]["arrival"]) for row in own}) == 40
    dump = [row for row in landed if row["source"] == "dump"]
    assert [
        (row["seq"]["arrival"], row["origin"]["topic"], row["origin"]["partition"], row["origin"]["key"])
        for row in dump
    ] == [([n], "changes", 3, "k") for n in range(40)]
    packed = [row for row in landed if row["source"] == "containers"]
    assert {row["origin"]["file"].rpartition("/")[2] for row in packed} == {"1.avro", "2.avro"}
    # Arrival gives the order of the records in each file.
    assert [row["id"] for row in sorted(packed[:25], key=lambda row: row["seq"]["arrival"])] == [
        str(n) for n in range(25)
    ]


def test_a_container_is_read_by_the_schema_in_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fields = [field for field in SCHEMA["fields"] if field["name"] not in ("xid", "tags")]
    older = {**SCHEMA, "fields": [{"name": "extra", "type": "string", "default": ""}, *fields]}
    (folder / "in/containers/old.avro").write_bytes(
        container([record(number, extra="x") for number in range(9)], older)
    )
    (folder / "in/containers/new.avro").write_bytes(container([record(number) for number in range(9, 12)]))
    assert main(["build", "-s", "source:containers+"]) == 0
    landed = rows(capsys, "select key['id'] as id, tx_id, table_name from changelog order by seq.position")
    assert landed == [{"id": str(number), "tx_id": None, "table_name": "t"} for number in range(12)]


def test_what_cannot_be_read_is_a_dead_letter_and_all_else_lands(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = [encoded(SCHEMA, record(number)) for number in range(1000)]
    huge = b"\xff\xff\xff\xff\xff\xff\xff\xff\x3f"  # a length of some 2^61
    bad = [good[0][:20], good[0] + b"\x00", b"", None, b"\x02\x00\x02\x00\x02" + huge, b"\x00", b"\xff" * 12]
    mixed = [*good[:500], *bad[:2], *good[500:]]
    write_dump(folder / "in/dump/1.parquet", [b"\x00\x00\x00\x00\x07" + m for m in mixed])
    write_dump(
        folder / "in/dump/2.parquet",
        [bad[2], bad[3], b"\x00\x00\x00\x00\x07" + bad[4], bad[5], b"\x00\x00\x00\x00\x07" + bad[6]],
        len(mixed),
    )
    cut = container([record(number) for number in range(60)])[:-150]
    (folder / "in/containers/cut.avro").write_bytes(cut)
    (folder / "in/containers/none.avro").write_bytes(b"Obj\x01 and nothing of the kind")
    (folder / "in/lines/1.base64").write_bytes(base64.b64encode(good[7]) + b"\nno base64!\n")
    (folder / "in/single/1").write_bytes(b"\xff" * 30)
    assert main(["build"]) == 0
    dead = rows(capsys, "select reason, detail, raw, meta from dead_letters where source = 'dump' order by seq.arrival")
    assert [row["reason"] for row in dead] == [
        "bad-avro",
        "schema-mismatch",
        "empty",
        "bad-avro",
        "bad-avro",
        "bad-avro",
    ]
    assert [base64.b64decode(row["raw"])[5:] for row in dead[:2]] == bad[:2] and dead[2]["raw"] == ""
    assert (
        "a length of 4, with 0 bytes left, at byte 24, in schemaName" in dead[0]["detail"]
        and "1 bytes after the record" in dead[1]["detail"]
    )
    assert (
        "a length of" in dead[3]["detail"]
        and "5 come before" in dead[4]["detail"]
        and "more than 64 bits, at byte 5, in id" in dead[5]["detail"]
    )
    assert {row["meta"]["raw_encoding"] for row in dead} == {"base64"}
    assert rows(
        capsys, "select count(*) as n, count(distinct key['id']) as ids from changelog where source = 'dump'"
    ) == [{"n": 1000, "ids": 1000}]
    assert rows(capsys, "select op, count(*) as n from control_events group by op") == [{"op": "tombstone", "n": 1}]
    others = rows(
        capsys,
        "select source, reason, detail, raw, origin.file as file from dead_letters where source <> 'dump' "
        "order by source, file",
    )
    assert [(row["source"], row["reason"]) for row in others] == [
        ("containers", "bad-avro"),
        ("containers", "bad-avro"),
        ("lines", "bad-avro"),
        ("single", "bad-avro"),
    ]
    assert (
        "damaged from byte" in others[0]["detail"]
        and "header" in others[1]["detail"]
        and "not base64" in others[2]["detail"]
    )
    # What was not understood of the damaged file is kept: with what landed it is the whole file.
    assert cut.endswith(base64.b64decode(others[0]["raw"]))
    assert 0 < rows(capsys, "select count(*) as n from changelog where source = 'containers'")[0]["n"] < 60


def test_parse_shows_what_a_file_becomes(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def parsed(*words: str) -> list[dict]:
        capsys.readouterr()
        assert main(["parse", *words]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    values = [record(number) for number in range(3)]
    Path("c.avro").write_bytes(container(values))
    Path("one").write_bytes(encoded(SCHEMA, values[1]))
    Path("l.base64").write_bytes(b"\n".join(base64.b64encode(encoded(SCHEMA, value)) for value in values))
    assert [row["key"]["id"] for row in parsed("oceanbase_avro", "c.avro")] == ["0", "1", "2"]
    assert [row["key"]["id"] for row in parsed("oceanbase_avro", "l.base64")] == ["0", "1", "2"]
    assert [row["key"]["id"] for row in parsed("oceanbase_avro", "one")] == ["1"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(container(values))))
    assert len(parsed("oceanbase_avro", "-")) == 3
    capsys.readouterr()
    assert main(["parse", "drs_avro", "one"]) == 2
    said = capsys.readouterr().err
    assert "error[schema-missing]" in said and "--schema FILE.avsc" in said and "record.rar" in said
    cases = ROOT / "formats/cases/drs_avro"
    assert parsed("drs_avro", str(cases / "operations.messages.base64"), "--schema", str(cases / "record.avsc"))


MAPS = {
    "type": "record",
    "name": "change",
    "fields": [
        {"name": "kind", "type": "string"},
        {
            "name": "now",
            "type": {
                "type": "map",
                "values": [
                    "null",
                    "long",
                    {"type": "enum", "name": "Gone", "symbols": ["NULL", "NONE"]},
                    {"type": "record", "name": "Money", "fields": [{"name": "digits", "type": "string"}]},
                ],
            },
        },
    ],
}
MAPS_SPEC = """
about: rows as maps, of which some columns may not be sent
message: {encoding: avro, schema: maps.avsc, skip_bytes: 5}
op: {by: kind, cases: {I: insert}}
after: now
records: {Gone: {is_null: "NULL", not_sent: NONE}, Money: {class: decimal, text: digits}}
"""


def test_rows_that_are_maps(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In containers there is nothing in front of a record."""
    (folder / "formats").mkdir()
    (folder / "formats/maps.yml").write_text(MAPS_SPEC)
    (folder / "formats/maps.avsc").write_text(json.dumps(MAPS))
    (folder / "project.yml").write_text(
        "vars: {of: maps}\nsources: [{name: maps, format: maps, schema: \"formats/{{ var('of') }}.avsc\", "
        "files: in/single/*}]\n"
    )
    first = {
        "kind": "I",
        "now": {
            "a": 1,
            "b": "NONE",
            "c": "NULL",
            "d": None,
            "e": ("Money", {"digits": "1e2"}),
            "f": ("Money", {"digits": "much"}),
        },
    }
    second = {"kind": "I", "now": {"a": 2, "b": 3}}
    other = {"type": "record", "name": "other", "fields": [{"name": "a", "type": "int"}]}
    (folder / "in/single/1").write_bytes(b"\x00\x00\x00\x00\x07" + encoded(MAPS, first))
    (folder / "in/single/2").write_bytes(container([second], MAPS))
    (folder / "in/single/3").write_bytes(container([{"a": 1}], other))
    (folder / "in/single/4").write_bytes(container([{"a": 1}], ["null", other]))
    assert main(["build"]) == 0
    landed = rows(capsys, "select after, after_image, meta, reason, detail from maps_to_changelog order by origin.file")
    assert landed[0]["after"] == {"a": "1", "c": None, "d": None, "e": "100", "f": "much"} and landed[0]["meta"] == {
        "as_sent": "f"
    }
    assert landed[1]["after"] == {"a": "2", "b": "3"}
    assert [row["after_image"] for row in landed] == ["partial", "full", None, None]
    assert [row["reason"] for row in landed[2:]] == ["schema-mismatch", "bad-avro"]
    assert 'no field "kind"' in landed[2]["detail"] and "does not describe a record" in landed[3]["detail"]


WITHOUT_THE_PROJECT = """
import importlib.abc, pickle, sys

class Refused(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in ("runner", "fastavro", "orjson"):
            raise ImportError(f"{name} is not installed here")

sys.meta_path.insert(0, Refused())
import pyarrow
function, batches, messages, numbered, named = pickle.load(open(sys.argv[1], "rb"))
(by_number,) = numbered(pyarrow.array([named], pyarrow.binary()), pyarrow.nulls(1, pyarrow.string())).to_pylist()
assert by_number["reason"] is None and by_number["images"]["afterImages"]["texts"] == ["1", "v"], by_number
found = function(pyarrow.array(messages, pyarrow.binary()), pyarrow.nulls(len(messages), pyarrow.string())).to_pylist()
assert [one["reason"] for one in found] == [None, "bad-avro"], found
assert found[0]["images"]["afterImages"]["texts"] == ["1", "v"], found
content = pyarrow.array([messages[0]], pyarrow.binary())
batch = pyarrow.RecordBatch.from_arrays([["a"], [0], content], names=["path", "modified", "content"])
assert [one.num_rows for one in batches(iter([batch]), ())] == [1]
"""


def test_functions_bring_all_that_they_are_made_of(tmp_path: Path) -> None:
    """As executors get them: where neither the project nor what it uses for tests is installed."""
    cloudpickle.register_pickle_by_value(functions)
    made = avro_function("x", FormatFolders((ROOT / "formats",)).load("oceanbase_avro"))
    function = udfs.avro_reader(made.layout, {"fields": made.fields, "images": made.images})
    message = encoded(SCHEMA, record(1))
    with registry_server() as registry:
        registry.add(7, SCHEMA)
        layout = replace(made.layout, numbers=Numbers(4, {}, Registry((registry.url,)), ()))
        numbered = udfs.avro_reader(layout, {"images": made.images}, str(tmp_path / "schemas"))
        named = b"\0\0\0\0\7" + message
        travels = (function, udfs.messages_of_files, [message, message[:9]], numbered, named)
        (tmp_path / "pickled").write_bytes(cloudpickle.dumps(travels))
        subprocess.run([sys.executable, "-c", WITHOUT_THE_PROJECT, str(tmp_path / "pickled")], check=True, cwd=tmp_path)
        assert registry.calls == ["/schemas/ids/7"]
