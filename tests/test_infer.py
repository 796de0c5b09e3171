"""Which known format fits messages, and what the command writes if none does: without Spark, from their structure.

The command tries a format that fits on all messages, which starts Spark: it is given only what nothing known fits.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro
import pytest

from runner.functions.avro.files import FileMessage
from runner.infer.candidates import avro_documents, fits_of
from runner.infer.draft import NoDraft, draft_of
from runner.infer.fits import Fit, best
from runner.infer.understanding import json_documents, spread
from runner.run.documents import messages_of
from runner.spec.schemas import Schemas, schemas_at
from tests import vendor_messages
from tests.avro_cases import encoded
from tests.inferred import LINES, OWN, as_messages, checked, fits, fits_of_json, json_lines, known, tables, told
from tests.pages import ROOT
from tests.vendor_rows import format_of
from tests.vendor_sources import AVRO, RECORDS

CASES = ROOT / "formats" / "cases"
MOST = 120  # messages of all cases of a format
ENDINGS = (".messages.jsonl", ".records.jsonl", ".messages.base64")
WITH_CASES = sorted(path.name for path in CASES.iterdir() if path.is_dir())
# Maxwell's messages fit OceanBase's format of the same kind a little better than their own.
OF_LINES = [vendor for vendor in vendor_messages.VENDORS if vendor not in (*RECORDS, *AVRO, "maxwell")]


def fits_of_cases(name: str, paths: Sequence[Path]) -> list[Fit]:
    """How well each format fits the messages of some cases of one format."""
    encoding = known()[name].message.encoding
    messages = [one for path in paths for one in messages_of(path.name, path.read_bytes(), encoding)]
    numbered = CASES / name / "schemas"
    places = [numbered] if numbered.is_dir() else sorted((CASES / name).glob("*.avsc"))
    return fits(spread(messages, MOST), encoding, schemas_at([(place, None) for place in places]))


def case_files(name: str) -> list[Path]:
    return sorted(path for path in (CASES / name).iterdir() if path.name.endswith(ENDINGS))


def names(found: Sequence[Fit]) -> list[str]:
    return [fit.name for fit in best(found)]


def scores(found: Sequence[Fit]) -> list[tuple[str, float]]:
    return [(fit.name, round(fit.score, 1)) for fit in found[:4]]


@pytest.mark.parametrize("name", WITH_CASES)
def test_the_cases_of_a_format_are_recognised(name: str) -> None:
    """With all that is wrong in some of them."""
    found = fits_of_cases(name, case_files(name))
    assert name in names(found), scores(found)


@pytest.mark.parametrize("together", [6, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", WITH_CASES)
def test_no_cases_fit_another_format_much_better(name: str, together: int) -> None:
    """In a few messages, values that are wrong on purpose weigh much."""
    files = case_files(name)
    for start in range(0, len(files), together):
        some = files[start : start + together]
        found = fits_of_cases(name, some)
        (own,) = [fit for fit in found if fit.name == name]
        assert not own.fits or own.score >= found[0].score - 12, ([path.name for path in some], scores(found))


@pytest.mark.parametrize("vendor", OF_LINES)
def test_what_a_vendor_writes_is_recognised(vendor: str) -> None:
    found = fits_of_json([sent.record.value or b"" for sent in vendor_messages.messages_of(vendor)])
    assert format_of(vendor) in names(found), scores(found)
    assert len(names(found)) < len(known()) / 2


@pytest.mark.parametrize(
    ("connector", "fitting"),
    [("mysql", ["debezium"]), ("postgresql", ["debezium_postgresql"]), ("oracle", ["debezium"])],
)
@pytest.mark.parametrize("before", [{"a": "x"}, {"id": 1, "a": None}, {"id": 1, "a": "x"}])
def test_what_messages_say_of_their_source_decides(connector: str, fitting: list[str], before: dict[str, Any]) -> None:
    """However much of the row before an update they have."""
    change = {"op": "u", "before": before, "after": {"id": 1, "a": "y"}, "ts_ms": 1}
    source = {"connector": connector, "db": "d", "schema": "s", "table": "t", "ts_ms": 1}
    found = fits_of_json([json.dumps(change | {"source": source}).encode()] * 2)
    assert names(found) == fitting, scores(found)


def test_reasons_say_what_was_found() -> None:
    lines = (CASES / "canal" / "shop.messages.jsonl").read_bytes().splitlines()
    odd = json.loads(lines[2]) | {"type": "MERGE", "shard": 1}
    (fit,) = [fit for fit in fits_of_json([*lines, json.dumps(odd).encode()]) if fit.name == "canal"]
    reasons = "\n".join(fit.reasons())
    assert "12 of 13 messages are understood: 3 insert, 3 update" in reasons
    assert "unknown operations: MERGE" in reasons and "shard" in reasons


LOGS = [
    [{"ts": "2024-05-01T10:00:00Z", "level": "INFO", "msg": f"request {n}", "status": 200} for n in range(20)],
    [{"time": 1714557600 + n, "host": "web-1", "method": "GET", "path": "/a", "ms": n} for n in range(20)],
    [{"action": "update", "user": "li", "at": "2024-05-01T10:00:00Z"} for _ in range(20)],
    [{"type": "page_view", "data": {"url": "/", "id": n}} for n in range(20)],
    [{"sensor": f"s{n}", "data": {"t": 20 + n, "id": n}, "unit": "C"} for n in range(20)],
    [[1, 2], [3]],
    ["a", 1, None],
]


@pytest.mark.parametrize("logs", LOGS, ids=lambda logs: json.dumps(logs[0]))
def test_what_is_no_change_fits_nothing_and_has_no_draft(logs: list[Any]) -> None:
    assert not best(fits_of_json([json.dumps(one).encode() for one in logs]))
    with pytest.raises(NoDraft, match=r"."):
        draft_of(logs, tables(), "x", "#")


def test_text_that_is_no_json_has_no_draft() -> None:
    lines = [b"10.0.0.1 - - [01/May/2024] GET /", b"", b"INSERT INTO t VALUES (1)"]
    assert not best(fits_of_json(lines))
    with pytest.raises(NoDraft):
        draft_of(json_documents(lines), tables(), "x", "#")


def test_bytes_that_are_no_avro_fit_nothing() -> None:
    assert not best(fits([FileMessage(0, 0, base64.b64decode("AgQGCAo="))], "avro"))


FRAME = {"key_base64": b"\0\0\0\0\0\0\0\1", "value_base64": b""}


EVENTS = [
    ({"ts": n, "scm": "shop", "tbl": "t", "t": 1}, {"u": {"id": {"t": 3, "h": True, "f": 11, "v": n}}})
    for n in range(1, 4)
]


def test_records_of_frames_of_bytes_are_recognised() -> None:
    """A line of a file has the bytes of key and value in base64; in each, lengths of 8 bytes stand before texts."""
    parts = dict(FRAME)
    for event in EVENTS:
        for name, document in zip(parts, event):
            text = json.dumps(document).encode()
            parts[name] += len(text).to_bytes(8, "big") + text
    (found,) = best(fits_of_json([line_of_bytes(parts)]))
    assert (found.name, str(found.understood)) == ("ticdc_open", "3 of 3")
    assert not best(fits_of_json([line_of_bytes({**parts, "value_base64": parts["value_base64"][:-1]})]))


def line_of_bytes(parts: Mapping[str, bytes]) -> bytes:
    return json.dumps({name: base64.b64encode(part).decode() for name, part in parts.items()}).encode()


ROW = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "status", "type": ["null", "string"]},
        {"name": "photo", "type": "bytes"},
    ],
}


AVRO_SCHEMA = {
    "type": "record",
    "name": "Change",
    "fields": [
        {"name": "op", "type": {"type": "enum", "name": "Op", "symbols": ["INS", "UPD", "DEL"]}},
        {"name": "tbl", "type": "string"},
        {"name": "old", "type": ["null", ROW]},
        {"name": "new", "type": ["null", "Row"]},
        {"name": "pk", "type": {"type": "array", "items": "string"}},
    ],
}


CREATED, PAID = ({"id": 1, "status": status, "photo": b"\xff"} for status in ("created", "paid"))


AVRO_RECORDS = [
    {"op": op, "tbl": "shop.orders", "old": old, "new": new, "pk": ["id"]}
    for op, old, new in [("INS", None, CREATED), ("UPD", CREATED, PAID), ("DEL", PAID, None)] * 3
]


def avro_bytes(before: bytes = b"") -> list[bytes]:
    schema = fastavro.parse_schema(json.loads(json.dumps(AVRO_SCHEMA)))
    return [before + encoded(schema, record) for record in AVRO_RECORDS]


def avro_lines(messages: Sequence[bytes]) -> str:
    return "".join(base64.b64encode(one).decode() + "\n" for one in messages)


def avro_container() -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(json.loads(json.dumps(AVRO_SCHEMA))), AVRO_RECORDS)
    return out.getvalue()


def write_avro(root: Path) -> None:
    (root / "in/c.avro").write_bytes(avro_container())


AVRO_FILES = {
    "schemas/change.avsc": json.dumps(AVRO_SCHEMA),
    "numbered/7.avsc": json.dumps(AVRO_SCHEMA),
    "in/a.base64": avro_lines(avro_bytes()),
    "in/n.base64": avro_lines(avro_bytes(b"\0" + (7).to_bytes(4, "big"))),
}


@pytest.mark.parametrize(
    ("file", "schema", "message"),
    [
        ("a.base64", "schemas/change.avsc", "{encoding: avro, schema: '../schemas/change.avsc'}"),
        ("n.base64", "numbered", "{encoding: avro, framing: schema_number}"),
        ("c.avro", None, "{encoding: avro, schema: acme.avsc}"),
    ],
)
def test_a_draft_of_avro(project, runner, file: str, schema: str | None, message: str) -> None:
    root = project(AVRO_FILES)
    write_avro(root)
    flags = ["--schema", schema] if schema else []
    ran = runner("formats", "infer", f"in/{file}", "--name", "acme", *flags)
    assert ran.code == 0, ran.err
    assert f"  message: {message}" in ran.out
    assert runner("formats", "check", "acme").code == 0
    spec = checked("acme")
    (read,) = avro_documents([FileMessage(0, 0, avro_bytes()[1])], Schemas((json.dumps(AVRO_SCHEMA),)), 0)
    assert told(spec, read)[:4] == ["row", "update", [PAID], True]
    assert [key.names for key in spec.key] == [(("pk",),)]
    assert Path("formats/acme.avsc").exists() == (schema is None)


def test_avro_without_its_schema_is_said_to_be_that(project, runner) -> None:
    project(AVRO_FILES)
    ran = runner("formats", "infer", "in/a.base64")
    assert ran.code == 2 and "error[infer-none]" in ran.err and "without a schema" in ran.err
    assert "dts_avro, oceanbase_avro" in ran.err
    other = {**AVRO_SCHEMA, "fields": [{"name": "op", "type": "double"}]}
    Path("other.avsc").write_text(json.dumps(other))
    ran = runner("formats", "infer", "in/a.base64", "--schema", "other.avsc")
    assert ran.code == 2 and "9 of 9 messages of a.base64 are no records of the schema" in ran.err


def test_a_draft_is_written_and_known_from_then_on(project, runner) -> None:
    """Of several files, which are looked at together."""
    half = LINES.splitlines(keepends=True)
    root = project({"in/my-orders.jsonl": "".join(half[:6]), "in/b.jsonl": "".join(half[6:])})
    ran = runner("formats", "infer", "in/my-orders.jsonl", "in/b.jsonl")
    assert ran.code == 0, ran.err
    assert "12 messages of my-orders.jsonl, b.jsonl, 12 looked at" in ran.out and "no known format fits" in ran.out
    assert "wrote formats/my_orders.yml" in ran.out and "after: row.new" in ran.out
    first, *_ = (root / "formats/my_orders.yml").read_text().splitlines()
    schema = (root / "formats" / first.partition("$schema=")[2]).resolve()
    assert first.startswith("# yaml-language-server: ") and json.loads(schema.read_text())["$schema"]
    assert runner("formats", "check", "my_orders").code == 0
    (fit,) = fits_of({"my_orders": checked("my_orders")}, as_messages(LINES.encode().splitlines()), "json", Schemas())
    assert fit.fits and fit.understood.ratio == 1


@pytest.mark.parametrize("name", ["taken", "canal"])
def test_a_draft_takes_no_name_that_a_format_has(project, runner, name: str) -> None:
    root = project({"in/a.jsonl": LINES, "formats/taken.yml": "extends: canal\n"})
    ran = runner("formats", "infer", "in/a.jsonl", "--name", name)
    assert ran.code == 2 and "error[infer-exists]" in ran.err
    assert [path.name for path in (root / "formats").iterdir()] == ["taken.yml"]


def test_a_draft_needs_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runner) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_text(LINES)
    ran = runner("formats", "infer", "a.jsonl")
    assert ran.code == 2 and "error[project-missing]" in ran.err and "no known format fits" in ran.out
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_a_list_of_messages_is_a_batch(project, runner) -> None:
    project({"in/list.json": json.dumps(OWN)})
    ran = runner("formats", "infer", "in/list.json")
    assert ran.code == 0 and "  message: {batch: .}" in ran.out, ran.err
    assert runner("formats", "check", "list").code == 0
    assert told(checked("list"), OWN[2])[:2] == ["row", "delete"]


# Rows flattened by Debezium's transform, as its settings make them -> the format that infer names, or its hint.
ROW = {"id": 1, "n": 1.5}
FIELDS = {"__op": "c", "__table": "parts", "__source_ts_ms": 1_760_000_000_000, "__lsn": 5}
FLAT: dict[str, tuple[str, list[Any], str]] = {
    "rewritten deletes, added fields": (
        "a.jsonl",
        [{**ROW, **FIELDS, "__deleted": "false"}],
        "the format is debezium_flat",
    ),
    "rewritten deletes, few fields": (
        "a.jsonl",
        [{**ROW, "__op": "c", "__table": "parts", "__deleted": "false"}],
        "the format is debezium_flat",
    ),
    "added fields": ("a.jsonl", [{**ROW, **FIELDS}], "the format is debezium_flat"),
    "added headers": (
        "a.records.jsonl",
        [{"topic": "a.b.c", "key": {"id": 1}, "value": ROW, "headers": {"__op": "c"}}],
        "the format is debezium_flat",
    ),
    "a dump": (
        "a.jsonl",
        [{"topic": "a.b.c", "partition": 0, "offset": 7, "key": '{"id":1}', "payload": json.dumps({**ROW, **FIELDS})}],
        "a source reads them with dump: json",
    ),
    "nothing added": (
        "a.records.jsonl",
        [{"topic": "a.b.c", "key": {"id": 1}, "value": ROW}, {"topic": "a.b.c", "key": {"id": 1}, "value": None}],
        "if each is a row as it is now: runner parse debezium_flat a.records.jsonl shows what would land",
    ),
    "nothing added, without records": ("a.jsonl", [ROW], "it needs the key and the topic that it had"),
    "nothing but the mark of deletes": ("a.jsonl", [{**ROW, "__deleted": "false"}], "oms_debezium_smt"),
}


@pytest.mark.parametrize("name", FLAT)
def test_flat_rows_are_recognised(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runner: Any) -> None:
    file, lines, said = FLAT[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("runner.commands.infer._tried", lambda *_: ())  # it needs Spark
    Path(file).write_text(json_lines(lines), "utf-8")
    ran = runner("formats", "infer", file)
    assert said in ran.out + ran.err, ran
