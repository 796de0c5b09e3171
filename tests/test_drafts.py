"""The draft of a format, from the structure of messages alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from runner.functions.avro.files import FileMessage, TopicRecord
from runner.infer.draft import NoDraft, draft_of
from runner.infer.fits import best
from runner.infer.times import time_reader
from runner.infer.understanding import documents_of, json_documents
from tests.inferred import (
    OWN,
    dialect,
    drafted,
    fits_of_json,
    known,
    lines_of,
    random_names,
    renamed,
    tables,
    text_of_draft,
    told,
)
from tests.vendor_rows import format_of

# Vendor -> the objects whose members are columns.
COLUMNS = {
    "canal": ("data", "old", "mysqlType", "sqlType"),
    "drs_json": ("data", "old", "mysqlType", "sqlType"),
    "oms_default": ("prevStruct", "postStruct"),
    "oms_dataworks": ("payload.before.data", "payload.after.data"),
    "oms_shareplex": ("data", "key"),
    "dataworks_single": ("payload.before.dataColumn", "payload.after.dataColumn"),
}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("vendor", list(COLUMNS))
def test_the_draft_of_renamed_messages_tells_the_same(vendor: str, seed: int) -> None:
    sent = json_documents(lines_of(vendor))
    new = random_names(sent, seed)
    kept = frozenset(tuple(path.split(".")) for path in COLUMNS[vendor])
    documents = [renamed(document, kept, new) for document in sent]
    assert not best(fits_of_json([json.dumps(one).encode() for one in documents]))
    draft, own = drafted(documents), known()[format_of(vendor)]
    for before, after in zip(sent, documents):
        assert told(draft, after) == told(own, before)
    assert draft.columns["event_time"]


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
    with pytest.raises(NoDraft, match=r"hdr\.act.*could be a row"):
        draft_of([empty], tables(), "x", "#")


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
