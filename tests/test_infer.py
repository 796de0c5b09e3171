"""Which known format fits messages, and the draft of a new one: without Spark, from the structure of messages alone."""

from __future__ import annotations

import base64
import functools
import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.commands.infer import type_tables
from runner.functions.avro.files import FileMessage, TopicRecord
from runner.infer.candidates import avro_documents, fits_of
from runner.infer.draft import Draft, Nothing, draft_of
from runner.infer.fits import Fit, best
from runner.infer.samples import documents_of, json_documents, spread
from runner.infer.times import time_reader
from runner.infer.understanding import Reading
from runner.run.documents import messages_of
from runner.spec.formats import FormatFolders
from runner.spec.schemas import Schemas
from runner.spec.words import Format
from runner.yaml_text import yaml_of
from tests import vendor_messages
from tests.avro_cases import encoded
from tests.pages import ROOT
from tests.vendor_rows import format_of
from tests.vendor_sources import AVRO, RECORDS

FOLDERS = FormatFolders((ROOT / "formats",))
CASES = ROOT / "formats" / "cases"
MOST = 120  # messages of all cases of a format
ENDINGS = (".messages.jsonl", ".records.jsonl", ".messages.base64")
WITH_CASES = sorted(path.name for path in CASES.iterdir() if path.is_dir())
# Maxwell's messages fit OceanBase's format of the same kind a little better than their own.
OF_LINES = [vendor for vendor in vendor_messages.VENDORS if vendor not in (*RECORDS, *AVRO, "maxwell")]


@functools.cache
def known() -> Mapping[str, Format]:
    return {name: spec for name in FOLDERS.names() if (spec := FOLDERS.check(name))}


@functools.cache
def tables() -> Mapping[str, Any]:
    return type_tables(FOLDERS)


def fits(messages: Sequence[FileMessage], encoding: str, schemas: Sequence[str] = ()) -> list[Fit]:
    return fits_of(known(), messages, encoding, Schemas(tuple(schemas)))


def fits_of_json(messages: Sequence[bytes]) -> list[Fit]:
    return fits([FileMessage(0, 0, one) for one in messages], "json")


def fits_of_cases(name: str, paths: Sequence[Path]) -> list[Fit]:
    """How well each format fits the messages of some cases of one format."""
    encoding = known()[name].message.encoding
    messages = [one for path in paths for one in messages_of(path.name, path.read_bytes(), encoding)]
    return fits(spread(messages, MOST), encoding, [path.read_text() for path in sorted((CASES / name).glob("*.avsc"))])


def case_files(name: str) -> list[Path]:
    return sorted(path for path in (CASES / name).iterdir() if path.name.endswith(ENDINGS))


def names(found: Sequence[Fit]) -> list[str]:
    return [fit.name for fit in best(found)]


def scores(found: Sequence[Fit]) -> list[tuple[str, float]]:
    return [(fit.name, round(fit.score, 1)) for fit in found[:4]]


def json_lines(documents: Sequence[Any]) -> str:
    return "".join(json.dumps(one) + "\n" for one in documents)


def lines_of(vendor: str) -> list[bytes]:
    """What a vendor writes: the lives of some tables, statements and a heartbeat."""
    recorded = [sent.record.value or b"" for sent in vendor_messages.messages_of(vendor)]
    return [*recorded[:16], *recorded[-4:]]


# --- known formats


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
    found = draft_of(logs, tables(), "x", "#")
    assert isinstance(found, Nothing) and found.why


def test_text_that_is_no_json_has_no_draft() -> None:
    lines = [b"10.0.0.1 - - [01/May/2024] GET /", b"", b"INSERT INTO t VALUES (1)"]
    assert not best(fits_of_json(lines))
    assert isinstance(draft_of(json_documents(lines), tables(), "x", "#"), Nothing)


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


# --- drafts


def drafted(documents: Sequence[Any]) -> Format:
    """The format that a draft describes, which must be one without a mistake."""
    draft = draft_of(documents, tables(), "x.jsonl", "# head")
    assert isinstance(draft, Draft), draft
    return FOLDERS.read("draft", yaml_of(draft.text, Path("draft.yml")))


def renamed(
    value: Any, kept: frozenset[tuple[str, ...]], new: dict[tuple[str, ...], str], path: tuple[str, ...] = ()
) -> Any:
    """A document whose fields have other names, without those in `kept`: the columns of images and types."""
    if path in kept or not isinstance(value, dict | list):
        return value
    if isinstance(value, list):
        return [renamed(one, kept, new, path) for one in value]
    return {new[(*path, name)]: renamed(member, kept, new, (*path, name)) for name, member in value.items()}


def paths_in(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for one in value if isinstance(value, list) else [value]:
        for name, member in one.items() if isinstance(one, dict) else ():
            yield (*path, name)
            yield from paths_in(member, (*path, name))


def new_names(documents: Sequence[Any], letters: Sequence[str]) -> dict[tuple[str, ...], str]:
    return dict(zip(sorted({path for document in documents for path in paths_in(document)}), letters))


def random_names(documents: Sequence[Any], seed: int) -> dict[tuple[str, ...], str]:
    return new_names(documents, [hashlib.sha1(f"{seed} {n}".encode()).hexdigest() for n in range(MANY)])


MANY = 100  # more names than messages have
# Vendor -> the objects whose members are columns.
COLUMNS = {
    "canal": ("data", "old", "mysqlType", "sqlType"),
    "drs_json": ("data", "old", "mysqlType", "sqlType"),
    "oms_default": ("prevStruct", "postStruct"),
    "oms_dataworks": ("payload.before.data", "payload.after.data"),
    "oms_shareplex": ("data", "key"),
    "dataworks_single": ("payload.before.dataColumn", "payload.after.dataColumn"),
}


def told(spec: Format, document: Any) -> list[Any]:
    """What a format says of the rows of a message, as far as its structure goes."""
    reading = Reading(spec, document)
    line = reading.understood().line
    if line is None:
        return []
    if line.kind != "row":
        return [line.kind]
    table = [reading.text((field,)) for field in spec.columns["table_name"][:1]]
    # Some vendors tell a snapshot by what else stands there, which no draft finds.
    op = "insert" if line.op == "snapshot" else line.op
    return [line.kind, op, reading.rows(line.own), reading.rows(line.before) and line.op != "insert", table]


@pytest.mark.parametrize("vendor", list(COLUMNS))
@settings(max_examples=3)
@given(letters=st.lists(st.text("abcdefghijklm", min_size=6, max_size=6), min_size=MANY, max_size=MANY, unique=True))
def test_the_draft_of_renamed_messages_tells_the_same(vendor: str, letters: list[str]) -> None:
    sent = json_documents(lines_of(vendor))
    new = new_names(sent, letters)
    kept = frozenset(tuple(path.split(".")) for path in COLUMNS[vendor])
    documents = [renamed(document, kept, new) for document in sent]
    assert not best(fits_of_json([json.dumps(one).encode() for one in documents]))
    draft, own = drafted(documents), known()[format_of(vendor)]
    for before, after in zip(sent, documents):
        assert told(draft, after) == told(own, before)
    assert draft.columns["event_time"]


def dialect(op: Mapping[str, str], count: int = 4) -> list[Any]:
    """Messages of a dialect of one's own: `op` are its words for insert, update and delete."""
    out: list[Any] = []
    for n in range(count):
        row = {"id": n, "status": "created", "amount": 1.5 * n}
        table, at = "shop.orders", f"2024-05-01T10:00:0{n}Z"
        header = {"tbl": table, "at": at}
        out += [
            {"hdr": {**header, "act": op["insert"]}, "row": {"new": row, "orig": {}}, "pk": "id"},
            {"hdr": {**header, "act": op["update"]}, "row": {"new": row, "orig": {"status": "new"}}, "pk": "id"},
            {"hdr": {**header, "act": op["delete"]}, "row": {"new": {}, "orig": row}, "pk": "id"},
        ]
    return out


OWN = dialect({"insert": "A", "update": "M", "delete": "R"})
LINES = json_lines(OWN)
WORDS = [
    ("A", "M", "R"),
    ("I", "U", "D"),
    ("i", "u", "d"),
    ("c", "u", "d"),
    ("INSERT", "UPDATE", "DELETE"),
    ("Inserted", "Updated", "Deleted"),
    ("add", "modify", "remove"),
    ("create", "update", "delete"),
    ("new", "edit", "erase"),
]


@pytest.mark.parametrize("words", WORDS, ids=str)
def test_words_for_operations_are_known_in_any_case_of_letters(words: tuple[str, str, str]) -> None:
    spec = drafted(dialect(dict(zip(("insert", "update", "delete"), words))))
    assert spec.op.by[0].path == ("hdr", "act")
    assert [lines[0].op for lines in (spec.op.cases[word] for word in words)] == ["insert", "update", "delete"]


def test_messages_of_one_operation_are_told_by_the_name_of_its_field() -> None:
    """Values of columns may be words for operations too."""
    states = ("created", "created", "paid", "created")
    updates = [
        {**one, "row": {"new": {**one["row"]["new"], "status": f"s{n}"}, "orig": {"status": states[n]}}}
        for n, one in enumerate(OWN[1::3])
    ]
    text = text_of_draft(updates)
    assert "by: hdr.act" in text and "M: {row: update, before: {at: row.orig, over: row.new}}" in text
    empty = {"hdr": updates[0]["hdr"], "row": {"new": {}, "orig": {}}, "pk": "id"}
    found = draft_of([empty], tables(), "x", "#")
    assert isinstance(found, Nothing) and "hdr.act" in found.why and "could be a row" in found.why


def test_a_draft_finds_every_part_of_a_dialect() -> None:
    spec = drafted(OWN)
    update, delete = spec.op.cases["M"][0], spec.op.cases["R"][0]
    assert update.after and update.after.at == (("row", "new"),)
    assert update.before and (update.before.at, update.before.over) == ((("row", "orig"),), ("row", "new"))
    assert delete.before and delete.before.at == (("row", "orig"),)
    assert [key.names for key in spec.key] == [(("pk",),)]
    (time,) = spec.columns["event_time"]
    assert (time.path, time.reader) == (("hdr", "at"), "zoned")
    assert told(spec, OWN[2])[:2] == ["row", "delete"]
    (db_name,) = spec.columns["db_name"]
    assert db_name.path == ("hdr", "tbl") and db_name.pattern


def text_of_draft(documents: Sequence[Any]) -> str:
    draft = draft_of(documents, tables(), "x.jsonl", "# head")
    assert isinstance(draft, Draft), draft
    return draft.text


def with_field(name: str, values: Sequence[Any]) -> str:
    """The draft of a dialect with one more field."""
    return text_of_draft([{**one, name: value} for one, value in zip(OWN, [*values] * 12)])


def test_a_word_that_is_not_known_is_left_out_and_said() -> None:
    text = text_of_draft([*OWN, {**OWN[0], "hdr": {**OWN[0]["hdr"], "act": "ZAP"}}])
    assert "# 'ZAP': ?" in text.replace("ZAP:", "'ZAP':") and "operation ZAP: what it means" in text
    assert "\n    ZAP: " not in text


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (range(100, 112), "seq: [x]"),
        ([f"tx{n // 3}" for n in range(12)], "x: not used"),
        ([1714557600000 + n for n in range(12)], "x, as: epoch_ms"),
        ([1714557600 + n for n in range(12)], "x, as: epoch_s"),
        ([1714557600000000 + n for n in range(12)], "x, as: epoch_us"),
        ([1714557600000000000 + n for n in range(12)], "x, as: epoch_ns"),
        (["2024-05-01 10:00:00"], "x, as: local"),
        (["2024-05-01T10:00:00+08:00"], "x, as: zoned"),
        ([0, 1714557600000], "as: epoch_ms, unknown: ['0']"),
        (["create table shop.orders (id int)"], "statement: x"),
        ([{"id": "int", "status": "varchar(9)", "amount": "decimal(9,2)"}], "types: {at: x, table: "),
        (
            [[{"col": "id", "ty": "int"}, {"col": "status", "ty": "text"}]],
            "types: {at: x, name: col, value: ty, table: ",
        ),
        (["yes"], "x: not used; yes (12)"),
    ],
    ids=str,
)
def test_fields_beside_the_rows(values: Sequence[Any], says: str) -> None:
    assert says in with_field("x", values)


@pytest.mark.parametrize(
    ("pk", "says"),
    [
        ("id", "key: {names: pk}"),
        (["id"], "key: {names: pk}"),
        (["id", "status"], "key: {names: pk}"),
        ("id,status", "key: {names: pk, split: ','}"),
        ("id\u0001status", 'key: {names: pk, split: "\\u0001"}'),
        ("identity", "key: no field names the key"),
        (None, "key: no field names the key"),
    ],
)
def test_keys(pk: Any, says: str) -> None:
    assert says in text_of_draft([{**one, "pk": pk} for one in OWN])


def test_an_object_with_the_values_of_some_columns_is_the_key_and_no_image() -> None:
    documents = [
        {"op": op, "tab": "orders", "row": {"id": n, "v": f"a{n}", "w": 1}, "pk": {"id": n}}
        for n, op in enumerate(["insert", "update", "delete"] * 4)
    ]
    spec = drafted(documents)
    assert [key.members for key in spec.key] == [("pk",)]
    assert {path for line in spec.op.lines() for image in (line.before, line.after) if image for path in image.at} == {
        ("row",)
    }


def test_a_deleted_row_is_where_it_is() -> None:
    documents = [
        {"op": op, "tab": "orders", "row": {"id": n, "v": f"a{n}"}}
        for n, op in enumerate(["insert", "update", "delete"] * 4)
    ]
    text = text_of_draft(documents)
    assert "delete: {row: delete, before: row}" in text and "\nafter: row" in text
    assert "no image before the change" in text


def test_lists_of_rows_are_read_in_step() -> None:
    documents = [
        {"op": op, "tab": "orders", "rows": [{"id": n, "v": f"a{n}"}, {"id": n + 9, "v": f"b{n}"}]}
        for n, op in enumerate(["I", "U", "D"] * 4)
    ]
    spec = drafted(documents)
    assert spec.each == (("rows",),) and len(told(spec, documents[0])[2]) == 2


def test_every_guess_says_what_speaks_for_it() -> None:
    for vendor in COLUMNS:
        text = text_of_draft(json_documents(lines_of(vendor)))
        for line in text.splitlines()[2:]:
            assert "#" in line or line in ("", "op:", "  cases:", "values:"), line


def test_times_by_their_digits() -> None:
    assert [time_reader([text]) for text in ("1714557600.25", "17145576001", "2024-05-01", "9999999999999")] == [
        "epoch_s", None, None, None,
    ]  # fmt: skip
    assert time_reader(["1714557600", "1714557600000"]) is None


# --- drafts of records of topics, and of records in Avro


def topic_records(topic: str, key: Any) -> list[FileMessage]:
    """The messages of a dialect, which say neither which table nor which key."""
    record = TopicRecord(json.dumps(key), topic, (("sent-by", "a"),))
    lines = [{"op": op, "row": {"id": 7, "status": f"s{n}", "amount": n}} for n, op in enumerate(["I", "U", "D"] * 4)]
    return [FileMessage(0, 0, json.dumps(line).encode(), record=record) for line in lines]


def test_a_draft_takes_the_key_and_the_table_from_what_comes_beside_a_message() -> None:
    spec = drafted(documents_of(topic_records("shop.orders", {"id": 7})))
    assert [key.members for key in spec.key] == [("$key",)]
    assert [(one.path, one.pattern is not None) for one in spec.columns["table_name"]] == [(("$topic",), True)]
    assert {path for line in spec.op.lines() for image in (line.before, line.after) if image for path in image.at} == {
        ("row",)
    }
    other = text_of_draft(documents_of(topic_records("shop.orders", {"id": 8})))
    assert "key: no field names the key" in other and "$headers.sent-by: not used; a (12)" in other


def test_records_without_a_value_are_no_messages_to_look_at() -> None:
    record = TopicRecord('{"id": 1}', "t", ())
    sent = [*topic_records("shop.orders", {"id": 7}), *(FileMessage(0, 0, b"", record=record) for _ in range(40))]
    assert len(documents_of(sent)) == 12 and drafted(documents_of(sent)).key


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
    spec = FormatFolders((Path("formats"), *FOLDERS.folders)).check("acme")
    assert spec
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


# --- the command


def test_a_draft_is_written_and_checked(project, runner) -> None:
    root = project({"in/my-orders.jsonl": LINES})
    ran = runner("formats", "infer", "in/my-orders.jsonl")
    assert ran.code == 0, ran.err
    assert "12 messages of my-orders.jsonl, 12 looked at" in ran.out and "no known format fits" in ran.out
    assert "wrote formats/my_orders.yml" in ran.out and "after: row.new" in ran.out
    first, *_ = (root / "formats/my_orders.yml").read_text().splitlines()
    schema = (root / "formats" / first.partition("$schema=")[2]).resolve()
    assert first.startswith("# yaml-language-server: ") and json.loads(schema.read_text())["$schema"]
    assert runner("formats", "check", "my_orders").code == 0
    again = runner("formats", "infer", "in/my-orders.jsonl", "--name", "my_orders")
    assert again.code == 2 and "error[infer-exists]" in again.err


def test_a_draft_needs_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runner) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_text(LINES)
    ran = runner("formats", "infer", "a.jsonl")
    assert ran.code == 2 and "error[project-missing]" in ran.err and "no known format fits" in ran.out
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_what_was_drafted_is_known_from_then_on(project, runner) -> None:
    project({"in/a.jsonl": LINES})
    assert runner("formats", "infer", "--name", "acme", "in/a.jsonl").code == 0
    specs = {
        name: spec for name in ("acme",) if (spec := FormatFolders((Path("formats"), *FOLDERS.folders)).check(name))
    }
    (fit,) = fits_of(specs, [FileMessage(0, 0, line.encode()) for line in LINES.splitlines()], "json", Schemas())
    assert fit.fits and fit.understood.ratio == 1


def test_a_list_of_messages_is_a_batch(project, runner) -> None:
    project({"in/list.json": json.dumps(OWN)})
    ran = runner("formats", "infer", "in/list.json")
    assert ran.code == 0 and "  message: {batch: .}" in ran.out, ran.err
    assert runner("formats", "check", "list").code == 0
    spec = FormatFolders((Path("formats"), *FOLDERS.folders)).check("list")
    assert spec and told(spec, OWN[2])[:2] == ["row", "delete"]


def test_several_files_are_looked_at_together(project, runner) -> None:
    half = LINES.splitlines(keepends=True)
    project({"in/a.jsonl": "".join(half[:6]), "in/b.jsonl": "".join(half[6:])})
    ran = runner("formats", "infer", "in/a.jsonl", "in/b.jsonl")
    assert "12 messages of a.jsonl, b.jsonl" in ran.out and "wrote formats/a.yml" in ran.out
