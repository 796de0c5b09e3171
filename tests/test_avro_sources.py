"""Messages in Avro, wherever they lie: containers, a message a file, lines of base64, tables of raw bytes. Everything
through the command line.
"""

from __future__ import annotations

import base64
import io
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
import pyarrow
import pyarrow.parquet
import pytest
from pyspark import cloudpickle

from runner import functions
from runner.cli import main
from runner.compile.avro import avro_function
from runner.functions import udfs
from runner.functions.avro.layout import Numbers, Registry
from runner.spec.formats import FormatFolders
from tests.avro_cases import encoded
from tests.avro_types import map_of, record_type
from tests.schema_registry import registry_server
from tests.spark_fixtures import rows

ROOT = Path(__file__).parent.parent
SCHEMA = json.loads((ROOT / "formats/schemas/oceanbase.avsc").read_text())
DUMPS = "format: {extends: oceanbase_avro, message: {skip_bytes: 5}}"
PROJECT = f"""
name: avro
vars: {{of: maps}}
sources:
  - {{name: containers, format: oceanbase_avro, files: "in/containers/*"}}
  - {{name: single, format: oceanbase_avro, files: "in/single/*"}}
  - {{name: lines, format: oceanbase_avro, files: "in/lines/*"}}
  - {{name: dump, {DUMPS}, table: in/dump}}
  - {{name: older, format: oceanbase_avro, files: "in/older/*"}}
  - {{name: damaged, format: oceanbase_avro, files: "in/damaged/*", dead_letters: {{fail: null}}}}
  - {{name: damaged_dump, {DUMPS}, table: in/damaged_dump, dead_letters: {{fail: null}}}}
  - name: maps
    format: maps
    schema: "formats/{{{{ var('of') }}}}.avsc"
    files: in/maps/*
    dead_letters: {{fail: null}}
  - name: shop
    format: debezium_avro
    files: in/envelopes/*
    schema: schemas
    tables: [{{name: inventory.customers, key: id}}]
"""
MONEY = record_type("Money", digits="string")
MAPS = record_type(
    "change",
    kind="string",
    now=map_of(["null", "long", {"type": "enum", "name": "Gone", "symbols": ["NULL", "NONE"]}, MONEY]),
)
MAPS_SPEC = """
about: rows as maps, of which some columns may not be sent
message: {encoding: avro, schema: maps.avsc, skip_bytes: 5}
op: {by: kind, cases: {I: insert}}
after: now
records: {Gone: {is_null: "NULL", not_sent: NONE}, Money: {class: decimal, text: digits}}
"""
BEFORE = b"\x00\x00\x00\x00\x07"


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


RECORDS = [record(number) for number in range(60)]
MESSAGES = [encoded(SCHEMA, one) for one in RECORDS]


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


# Messages of Debezium, whose schemas have numbers.
NUMBER = 7
TEXT, LONG = ["null", "string"], ["null", "long"]
DAY = {"type": "int", "connect.name": "io.debezium.time.Date", "connect.version": 1}
AMOUNT = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}


VALUE = record_type("Value", id="int", name=TEXT, amount=["null", AMOUNT], day=["null", DAY])
SOURCE = record_type(
    "Source", version="string", connector="string", name="string", ts_ms="long", snapshot=TEXT, db="string",
    table=TEXT, gtid=TEXT, file="string", pos="long", row="int",
)  # fmt: skip
ENVELOPE = record_type(
    "Envelope", before=["null", VALUE], after=["null", "Value"], source=SOURCE, op="string", ts_ms=LONG
)
ORIGIN = {
    "version": "2.5", "connector": "mysql", "name": "server", "ts_ms": 1_700_000_000_000, "snapshot": "false",
    "db": "inventory", "table": "customers", "gtid": None, "file": "mysql-bin.000003", "pos": 154, "row": 0,
}  # fmt: skip
ANNE = {"id": 1, "name": "Anne", "amount": Decimal("5.00"), "day": 16_695}
MARIE = {**ANNE, "name": "Anne Marie", "day": None}


def envelope(op: str, before: dict | None, after: dict | None) -> bytes:
    event = {"before": before, "after": after, "source": ORIGIN, "op": op, "ts_ms": 1_700_000_000_123}
    schema = fastavro.parse_schema(json.loads(json.dumps(ENVELOPE)))
    return b"\0" + NUMBER.to_bytes(4, "big") + encoded(schema, event)


# What cannot be read: cut off, too long, of no bytes; a length of some 2^61, too short for what is skipped, no number.
HUGE = b"\x02\x00\x02\x00\x02" + b"\xff\xff\xff\xff\xff\xff\xff\xff\x3f"
BAD_IN_DUMP = [BEFORE + MESSAGES[0][:20], BEFORE + MESSAGES[0] + b"\x00", b"", BEFORE + HUGE, b"\x00"]
BAD_IN_DUMP.append(BEFORE + b"\xff" * 12)
CUT = container(RECORDS)[:-150]


def first_files() -> dict[str, bytes]:
    fields = [field for field in SCHEMA["fields"] if field["name"] not in ("xid", "tags")]
    older = {**SCHEMA, "fields": [{"name": "extra", "type": "string", "default": ""}, *fields]}
    money, much = ("Money", {"digits": "1e2"}), ("Money", {"digits": "much"})
    sent = {"a": 1, "b": "NONE", "c": "NULL", "d": None, "e": money, "f": much}
    other = record_type("other", a="int")
    return {
        "containers/1.avro": container(RECORDS[:25]),
        "containers/2.avro": container(RECORDS[25:40], codec="null"),
        **{f"single/{number}.bin": message for number, message in enumerate(MESSAGES[:40])},
        "lines/1.base64": b"\n".join(base64.b64encode(one) for one in MESSAGES[:30]) + b"\n\n",
        "older/old.avro": container([record(number, extra="x") for number in range(9)], older),
        "older/new.avro": container(RECORDS[9:12]),
        "damaged/1_cut.avro": CUT,
        "damaged/2_none.avro": b"Obj\x01 and nothing of the kind",
        "damaged/3.base64": base64.b64encode(MESSAGES[7]) + b"\nno base64!\n",
        "damaged/4": b"\xff" * 30,
        # In containers there is nothing in front of a record.
        "maps/1": BEFORE + encoded(MAPS, {"kind": "I", "now": sent}),
        "maps/2": container([{"kind": "I", "now": {"a": 2, "b": 3}}], MAPS),
        "maps/3": container([{"a": 1}], other),
        "maps/4": container([{"a": 1}], ["null", other]),
        "envelopes/a.base64": b"\n".join(
            base64.b64encode(one)
            for one in (envelope("c", None, ANNE), envelope("u", ANNE, MARIE), envelope("d", MARIE, None))
        ),
    }


@pytest.fixture(scope="module")
def landed(spark: object, interpreted: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that landed twice: some lines and some of a dump came between."""
    folder: Path = tmp_path_factory.mktemp("avro")
    files = {f"in/{name}": content for name, content in first_files().items()}
    files |= {"project.yml": PROJECT.encode(), "formats/maps.yml": MAPS_SPEC.encode()}
    files |= {f"schemas/{NUMBER}.avsc": json.dumps(ENVELOPE).encode()}
    for name, content in {**files, "formats/maps.avsc": json.dumps(MAPS).encode()}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    write_dump(folder / "in/dump/1.parquet", [BEFORE + one for one in MESSAGES[:20]])
    damaged: list[bytes | None] = [BEFORE + one for one in MESSAGES]
    damaged[30:30] = BAD_IN_DUMP[:2]
    write_dump(folder / "in/damaged_dump/1.parquet", damaged)
    write_dump(folder / "in/damaged_dump/2.parquet", [BAD_IN_DUMP[2], None, *BAD_IN_DUMP[3:]], len(damaged))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["run"]) == 0
        lines = b"\r\n".join(base64.b64encode(one) for one in MESSAGES[30:40])
        (folder / "in/lines/2.base64").write_bytes(lines)
        write_dump(folder / "in/dump/2.parquet", [BEFORE + one for one in MESSAGES[20:40]], 20)
        assert main(["build"]) == 0
    return folder


@pytest.fixture
def read(landed: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Reads rows of the project that landed."""
    monkeypatch.chdir(landed)
    return partial(rows, capsys)


@pytest.mark.parametrize("source", ["containers", "single", "lines", "dump"])
def test_the_same_messages_from_everywhere(source: str, read: Callable[[str], Any]) -> None:
    found = read(f"select key['id'] as id, after, seq, origin from {source}_to_changelog order by seq.position")
    after = [(str(n), {"id": str(n), "v": "v" * (n % 7)}) for n in range(40)]
    assert [(row["id"], row["after"]) for row in found] == after
    assert len({str(row["seq"]["arrival"]) for row in found}) == 40
    if source == "dump":
        origins = [(row["origin"]["topic"], row["origin"]["partition"], row["origin"]["key"]) for row in found]
        assert origins == [("changes", 3, "k")] * 40
        assert [row["seq"]["arrival"] for row in found] == [[n] for n in range(40)]
    if source == "containers":
        assert {row["origin"]["file"].rpartition("/")[2] for row in found} == {"1.avro", "2.avro"}
        # Arrival gives the order of the records in each file.
        by_arrival = sorted(found[:25], key=lambda row: row["seq"]["arrival"])
        assert [row["id"] for row in by_arrival] == [str(n) for n in range(25)]


def test_a_container_is_read_by_the_schema_in_it(read: Callable[[str], Any]) -> None:
    found = read("select key['id'] as id, tx_id, table_name from older_to_changelog order by seq.position")
    assert found == [{"id": str(number), "tx_id": None, "table_name": "t"} for number in range(12)]


def test_what_cannot_be_read_is_a_dead_letter_and_all_else_lands(read: Callable[[str], Any]) -> None:
    dead = read(
        "select reason, detail, raw, meta from damaged_dump_to_changelog where kind = 'dead_letter' "
        "order by seq.arrival"
    )
    reasons = ["bad-avro", "schema-mismatch", "empty", "bad-avro", "bad-avro", "bad-avro"]
    assert [row["reason"] for row in dead] == reasons
    assert [base64.b64decode(row["raw"]) for row in dead] == BAD_IN_DUMP
    words = [
        "a length of 4, with 0 bytes left, at byte 24, in schemaName",
        "1 bytes after the record",
        "",
        "a length of",
        "5 come before",
        "more than 64 bits, at byte 5, in id",
    ]
    assert all(word in row["detail"] or not word for word, row in zip(words, dead, strict=True))
    assert {row["meta"]["raw_encoding"] for row in dead} == {"base64"}
    others = "select kind, op, count(*) as n, count(distinct key['id']) as ids from damaged_dump_to_changelog"
    assert read(f"{others} where kind <> 'dead_letter' group by all order by kind") == [
        {"kind": "control", "op": "tombstone", "n": 1, "ids": 0},
        {"kind": "row", "op": "insert", "n": 60, "ids": 60},
    ]


def test_what_cannot_be_read_of_files_is_kept(read: Callable[[str], Any]) -> None:
    found = read("select reason, detail, raw from damaged_to_changelog where kind = 'dead_letter' order by origin.file")
    assert [row["reason"] for row in found] == ["bad-avro"] * 4
    for word, row in zip(("damaged from byte", "header", "not base64", ""), found, strict=True):
        assert word in row["detail"]
    # With what landed of the damaged file, this is the whole file.
    assert CUT.endswith(base64.b64decode(found[0]["raw"]))
    landed = "select count(*) as n from damaged_to_changelog where kind = 'row' and origin.file like '%cut.avro'"
    assert 0 < read(landed)[0]["n"] < 60


def test_rows_that_are_maps(read: Callable[[str], Any]) -> None:
    found = read("select after, after_image, meta, reason, detail from maps_to_changelog order by origin.file")
    assert found[0]["after"] == {"a": "1", "c": None, "d": None, "e": "100", "f": "much"}
    assert found[0]["meta"] == {"as_sent": "f"}
    assert found[1]["after"] == {"a": "2", "b": "3"}
    assert [row["after_image"] for row in found] == ["partial", "full", None, None]
    assert [row["reason"] for row in found[2:]] == ["schema-mismatch", "bad-avro"]
    assert 'no field "kind"' in found[2]["detail"] and "does not describe a record" in found[3]["detail"]


def test_envelopes_of_debezium(read: Callable[[str], Any]) -> None:
    columns = "op, key, before, after, changed, seq.position as position, db_name, table_name"
    found = read(f"select {columns} from shop_to_changelog order by seq.arrival")
    anne = {"id": "1", "name": "Anne", "amount": "5.00", "day": "2015-09-17"}
    marie = {**anne, "name": "Anne Marie", "day": None}
    common = {"key": {"id": "1"}, "position": [3, 154, 0], "db_name": "inventory", "table_name": "customers"}
    assert found == [
        {"op": "insert", "before": None, "after": anne, "changed": None, **common},
        {"op": "update", "before": anne, "after": marie, "changed": ["day", "name"], **common},
        {"op": "delete", "before": marie, "after": None, "changed": None, **common},
    ]


def test_parse_shows_what_a_file_becomes(project, runner, interpreted: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def keys(*words: str) -> list[str]:
        ran = runner("parse", *words)
        assert ran.code == 0, ran.err
        return [json.loads(line)["key"]["id"] for line in ran.out.splitlines()]

    lines = b"\n".join(map(base64.b64encode, MESSAGES[:3]))
    project({"one": MESSAGES[1], "l.base64": lines})
    assert keys("oceanbase_avro", "l.base64") == ["0", "1", "2"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(container(RECORDS[:3]))))
    assert keys("oceanbase_avro", "-") == ["0", "1", "2"]
    without = runner("parse", "drs_avro", "one")
    assert without.code == 2 and "error[schema-missing]" in without.err
    assert "--schema FILE.avsc" in without.err and "record.rar" in without.err
    cases = ROOT / "formats/cases/drs_avro"
    words = (str(cases / "operations.messages.base64"), "--schema", str(cases / "record.avsc"))
    assert runner("parse", "drs_avro", *words).out


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


@pytest.mark.engines
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
