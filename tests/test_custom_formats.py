"""Dialects made of nothing but YAML files land like any other format: one project with a source of each."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet
import pytest
import yaml

from runner.cli import main
from tests.avro_cases import encoded
from tests.spark_fixtures import rows


class Sent(NamedTuple):
    """A format, and the lines that it reads."""

    format: str
    lines: list[str]


def in_lines(messages: list[dict[str, Any]]) -> list[str]:
    return [json.dumps(one) for one in messages]


FLAVOUR = """
extends: canal
about: A Canal dialect with its own op names
each: [data, updateBefore]
before: {at: updateBefore, over: data}
op:
  by: opType
  cases: {I: insert, U: update, D: {row: delete, before: data}}
"""

HEADER = {"database": "d", "table": "t", "pkNames": ["id"], "mysqlType": {"id": "int", "v": "blob"}}
CHANGES: list[dict[str, Any]] = [
    {**HEADER, "opType": "I", "data": [{"id": "1", "v": "a"}]},
    {**HEADER, "opType": "U", "data": [{"id": "1", "v": "b"}], "updateBefore": [{"v": "a"}]},
    {**HEADER, "opType": "D", "data": [{"id": "1", "v": "b"}]},
    {**HEADER, "opType": "DELETE", "data": None, "old": {"id": "2"}},
    {**HEADER, "type": "INSERT", "data": [{"id": "1"}]},
]

ENVELOPE = """
about: One row a message, in an envelope
op:
  by: [payload.op, payload.kind]
  first: [{if: {has: payload.ddl.text, is_not: {payload.op: [i, u]}}, ddl: by_statement}]
  cases:
    i: [{if: {lacks: payload.pos}, row: snapshot}, insert]
    u: update
    d: delete
before: payload.before
after: payload.after
db_name: payload.source."db name"
table_name: [payload.source.table, payload.source.collection]
key: {names: payload.keys}
event_time: {at: payload.time, as: epoch_s, unknown: [-1, 0]}
seq: [{at: payload.time, unknown: -1}, payload.pos]
statement: payload.ddl.text
tx_id: payload.tx
"""


def enveloped(op: str, **other: object) -> dict[str, Any]:
    source = {"db name": "d", "table": "t"}
    head = {"op": op, "source": source, "keys": ["id"], "time": "1700000000.25", "pos": "7", "tx": "x1"}
    return {"payload": {**head, **other}}


ENVELOPED = [
    enveloped("i", after={"id": 1, "v": "a"}),
    enveloped("i", after={"id": 2, "v": 1.25}, pos=None, time=-1),
    enveloped("u", before={"id": 1}, after={"id": 1, "v": None}),
    enveloped("d", before={"id": 1, "v": None}),
    enveloped("d", before=None),
    enveloped("x", ddl={"text": "/* c */ drop table t"}),
    enveloped("x"),
]

LAID_OVER = """
op: {by: op, cases: {I: insert, U: update, D: delete}}
before: {at: old, over: new}
after: new
table_name: t
"""
OLD, NEW_ROW = {"id": "1", "v": "a"}, {"id": "1", "v": "b"}
IMAGES: list[tuple[str, dict[str, str], dict[str, str]]] = [
    ("I", {}, NEW_ROW), ("U", {"v": "a"}, NEW_ROW), ("U", {}, NEW_ROW), ("D", OLD, {}), ("D", {"id": "1"}, NEW_ROW),
    ("D", {}, {}), ("D", {}, NEW_ROW),
]  # fmt: skip

# How a row may be written that is no object with a member for each column: the spec of its image, and a row.
WRITTEN = {
    "list of objects": ("{at: new, name: n, value: v}", '[{"n": "x", "v": %s}, {"n": "y", "v": 1.20}]'),
    "object of objects": ("{at: new, value: v}", '{"x": {"v": %s}, "y": {"v": 1.20}}'),
    "list of values": ("{at: new, names: names}", "[%s, 1.20]"),
}
# Values as they are sent, and their texts.
NESTED = {
    '{"a": 1.50, "b": [1.0, -0, 1e3], "c": "1.50", "d": {"e": 9.90}}':
        '{"a":1.50,"b":[1.0,-0,1e3],"c":"1.50","d":{"e":9.90}}',
    "[1.50]": "[1.50]",
    "1.50": "1.50",
    '"1.50"': "1.50",
    '{"s": "\\ud83d\\ude00", "t": 1.0}': '{"s":"😀","t":1.0}',
    '{"s": "😀"}': '{"s":"😀"}',
    '{"s": "\\\\uD83D\\\\uDE00"}': '{"s":"\\\\uD83D\\\\uDE00"}',
    '{"q": "\\"1.5\\"", "t": -1.5e400}': '{"q":"\\"1.5\\"","t":-1.5e400}',
    '"{\\"a\\": 1.50}"': '{"a": 1.50}',
    "[]": "[]",
    "true": "true",
    "null": None,
}  # fmt: skip
TABLE_NAMES = {"t": "t", "deep": "other.places.lie.deeper"}


def written_rows(written: str, table_name: str) -> Sent:
    image, row = WRITTEN[written]
    spec = f"op: {{by: op, cases: {{I: insert}}}}\nafter: {image}\ntable_name: {table_name}\n"
    return Sent(spec, [f'{{"op": "I", "t": "t", "names": ["x", "y"], "new": {row % value}}}' for value in NESTED])


# --- the names of a key

OWN = """
about: A dialect of our own
op:
  by: hdr.act
  cases: {I: insert, M: update, D: delete}
before: row.orig
after: row.new
table_name: hdr.tbl
"""
NEW = {"id": 1, "shop": 2, "a,b": 3, "1": 4, "1.5": 5, "true": 6}
# What messages have as the names of their key, and the key that a format makes of it: as one name, and split.
NAMES = [
    ("id", {"id": "1"}, {"id": "1"}),
    ("id,shop", None, {"id": "1", "shop": "2"}),
    ("a,b", {"a,b": "3"}, None),
    ("", None, None),
    (None, None, None),
]
ONLY_LISTED = [
    (["id"], {"id": "1"}),
    (["id", "shop"], {"id": "1", "shop": "2"}),
    ([], None),
    (["id", None], {"id": "1"}),
    ({"id": 1}, None),
    (1, None),
    (1.5, None),
    (True, None),
]
LISTED = [*((sent, key) for sent, key, _ in NAMES), *ONLY_LISTED]
SPLIT = '{names: pk, split: ","}'
IN_PLACES: list[dict[str, Any]] = [
    {"pk": "id,shop"},
    {"pk": "id,shop", "hdr": {"tbl": "t", "act": "I", "keys": "shop"}},
    {"pk": "id", "hdr": {"tbl": "t", "act": "I", "keys": []}},
]


def inserts(key: str, messages: list[dict[str, Any]]) -> Sent:
    head = {"hdr": {"tbl": "t", "act": "I"}, "row": {"new": NEW}}
    return Sent(f"{OWN}key: {key}\n", in_lines([{**head, **one} for one in messages]))


# A plain text, a text or a list, and several names in one text, all in Avro.
KINDS = {"one": "string", "either": ["null", "string", {"type": "array", "items": "string"}]}
SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "op", "type": "string"},
        {"name": "new", "type": {"type": "map", "values": "string"}},
        *({"name": name, "type": kind} for name, kind in KINDS.items()),
    ],
}
IN_AVRO: list[tuple[str, Any]] = [("id", None), ("", ["shop", "id"]), ("id,shop", "shop"), ("id,shop", "")]
AVRO_SPEC = "message: {encoding: avro, schema: r.avsc}\nop: {by: op, cases: {I: insert}}\nafter: new\n"
KEYS_IN_AVRO = {
    "{names: one}": [{"id": "1"}, None, None, None],
    "{names: either}": [None, {"shop": "2", "id": "1"}, {"shop": "2"}, None],
    '{names: one, split: ","}': [{"id": "1"}, None, {"id": "1", "shop": "2"}, {"id": "1", "shop": "2"}],
}


def records(key: str) -> Sent:
    new = {name: str(value) for name, value in NEW.items()}
    raw = [encoded(SCHEMA, {"op": "I", "new": new, "one": one, "either": either}) for one, either in IN_AVRO]
    return Sent(f"{AVRO_SPEC}key: {key}\n", [base64.b64encode(one).decode() for one in raw])


SENT = {
    "flavour": Sent(FLAVOUR, in_lines(CHANGES)),
    "envelope": Sent(ENVELOPE, in_lines(ENVELOPED)),
    "over": Sent(LAID_OVER, in_lines([{"op": op, "t": "x", "old": old, "new": new} for op, old, new in IMAGES])),
    "over_lists": Sent(
        f"each: [old, new]\n{LAID_OVER}",
        in_lines([{"op": op, "t": "x", "old": [old], "new": [new]} for op, old, new in IMAGES]),
    ),
    **{
        f"{written}_{depth}".replace(" ", "_"): written_rows(written, table_name)
        for written in WRITTEN
        for depth, table_name in TABLE_NAMES.items()
    },
    "keys_listed": inserts("{names: pk}", [{"pk": sent} for sent, _ in LISTED]),
    "keys_split": inserts(SPLIT, [{"pk": sent} for sent, _, _ in NAMES]),
    "keys_in_places": inserts(f"[{{names: hdr.keys}}, {SPLIT}]", IN_PLACES),
    **{f"avro_{number}": records(key) for number, key in enumerate(KEYS_IN_AVRO)},
}


@pytest.fixture(scope="module")
def folder(spark: object, interpreted: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that has landed the messages of all these formats."""
    root = tmp_path_factory.mktemp("dialects")
    (root / "formats").mkdir()
    (root / "in").mkdir()
    (root / "formats/r.avsc").write_text(json.dumps(SCHEMA))
    sources = []
    for name, sent in SENT.items():
        file = f"in/{name}.{'base64' if name.startswith('avro') else 'jsonl'}"
        (root / f"formats/{name}.yml").write_text(sent.format)
        (root / file).write_text("\n".join(sent.lines))
        sources.append({"name": name, "format": name, "files": file})
    target = {"target": "here", "targets": {"here": {"path": "lake"}}}
    (root / "project.yml").write_text(yaml.safe_dump({"name": "dialects", **target, "sources": sources}))
    assert main(["run", "--project-dir", str(root), "-s", "config.materialized:streaming", "changelog"]) == 0
    return root


@pytest.fixture
def landed(folder: Path) -> Callable[[str], list[dict[str, Any]]]:
    """The rows of a source, in order."""

    def landed_of(name: str) -> list[dict[str, Any]]:
        found = pyarrow.parquet.read_table(folder / f"lake/{name}_to_changelog").to_pylist()
        found.sort(key=lambda row: (row["seq"]["arrival"], row["seq"]["row"]))
        return [
            {**row, **{name: row[name] and dict(row[name]) for name in ("key", "before", "after")}} for row in found
        ]

    return landed_of


def test_what_landed_is_in_the_changelog(folder: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    counted = "select source, format, count(*) as n from changelog where source in ('flavour', 'envelope') group by all"
    found = {row["source"]: (row["format"], row["n"]) for row in rows(capsys, counted)}
    assert found == {"flavour": ("flavour", 4), "envelope": ("envelope", 4)}


def test_a_dialect_of_another_format(landed) -> None:
    found = landed("flavour")
    assert [(row["op"], row["reason"]) for row in found] == [
        ("insert", None),
        ("update", None),
        ("delete", None),
        ("delete", None),
        (None, "no-op"),
    ]
    assert found[1]["before"] == {"id": "1", "v": "YQ=="}
    assert found[1]["after"] == {"id": "1", "v": "Yg=="} and found[1]["changed"] == ["v"]
    assert found[3]["before"] == {"id": "2"}


@pytest.mark.parametrize("source", ["over", "over_lists"])
def test_an_image_over_one_that_a_change_does_not_have_stands_alone(landed, source: str) -> None:
    parts = [tuple(row[name] for name in ("before", "before_image", "after", "reason")) for row in landed(source)]
    assert parts == [
        (None, "none", NEW_ROW, None),
        (OLD, "full", NEW_ROW, None),
        (NEW_ROW, "full", NEW_ROW, None),
        (OLD, "partial", None, None),
        ({"id": "1"}, "partial", None, None),
        (None, None, None, "no-row-image"),
        (None, None, None, "no-row-image"),
    ]


@pytest.mark.parametrize("depth", TABLE_NAMES)
@pytest.mark.parametrize("written", WRITTEN)
def test_nested_values_keep_their_digits_and_characters(landed, written: str, depth: str) -> None:
    found = landed(f"{written}_{depth}".replace(" ", "_"))
    assert [row["after"] for row in found] == [{"x": text, "y": "1.20"} for text in NESTED.values()]


def test_an_envelope_without_lists(landed) -> None:
    found = landed("envelope")
    assert [(row["kind"], row["op"], row["reason"]) for row in found] == [
        ("row", "insert", None),
        ("row", "snapshot", None),
        ("row", "update", None),
        ("row", "delete", None),
        ("dead_letter", None, "no-row-image"),
        ("ddl", "drop", None),
        ("dead_letter", None, "unknown-op"),
    ]
    assert found[1]["after"] == {"id": "2", "v": "1.25"}
    assert (found[2]["before_image"], found[2]["changed"]) == ("key", None)
    at = datetime(2023, 11, 14, 22, 13, 20, 250_000, tzinfo=timezone.utc)
    assert [row["event_time"] for row in found[:2]] == [at, None]
    assert [row["seq"]["position"] for row in found[:3]] == [[], [], []]  # a time with a fraction is no order number
    first, second = found[:2]
    assert (first["db_name"], first["table_name"], first["tx_id"], second["seq"]["phase"]) == ("d", "t", "x1", 0)


def test_a_text_where_a_list_of_names_is_expected_is_one_name(landed) -> None:
    assert [(row["kind"], row["key"]) for row in landed("keys_listed")] == [("row", key) for _, key in LISTED]


def test_names_in_one_text_are_split(landed) -> None:
    assert [(row["kind"], row["key"]) for row in landed("keys_split")] == [("row", key) for _, _, key in NAMES]


def test_the_first_place_that_gives_names_counts(landed) -> None:
    expected = [{"id": "1", "shop": "2"}, {"shop": "2"}, {"id": "1"}]
    assert [row["key"] for row in landed("keys_in_places")] == expected


@pytest.mark.parametrize(("number", "keys"), enumerate(KEYS_IN_AVRO.values()))
def test_names_in_one_text_of_a_record(landed, number: int, keys: list[Any]) -> None:
    assert [row["key"] for row in landed(f"avro_{number}")] == keys


def test_a_dialect_with_another_key_than_that_beside_the_row(project, runner) -> None:
    keys = {"none": "none", "columns": {"columns": ["_id"]}, "names": {"names": "keys"}}
    formats = {name: {"extends": "drs_mongodb", "key": key} for name, key in keys.items()}
    sources = [{"name": name, "format": written, "files": "in/*"} for name, written in formats.items()]
    project({"project.yml": yaml.safe_dump({"sources": sources})})
    ran = runner("compile", "-q", "-s", "config.materialized:streaming")
    assert ran.code == 0, ran.err
    assert ran.out.count("The columns of the contract") == len(keys) and "key_image" not in ran.out
