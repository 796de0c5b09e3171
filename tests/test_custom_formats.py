"""A dialect made of nothing but a YAML file lands like any other format."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.cli import main
from tests.avro_cases import encoded

FLAVOUR = """
extends: canal
about: A Canal dialect with its own op names
each: [data, updateBefore]
before: {at: updateBefore, over: data}
op:
  by: opType
  cases: {I: insert, U: update, D: {row: delete, before: data}}
"""

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


def parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], spec: str, messages: list[dict]
) -> list[dict]:
    (tmp_path / "formats").mkdir()
    (tmp_path / "formats/acme.yml").write_text(spec)
    (tmp_path / "project.yml").write_text("sources: [{name: acme, format: acme, files: in/*}]\n")
    (tmp_path / "in").mkdir()
    (tmp_path / "in/1.jsonl").write_text("\n".join(json.dumps(m) for m in messages))
    monkeypatch.chdir(tmp_path)
    assert main(["ls"]) == 0
    assert "acme_to_changelog" in capsys.readouterr().out.split()
    assert main(["compile", "-s", "acme_to_changelog", "-q"]) == 0
    capsys.readouterr()
    assert main(["build"]) == 0, capsys.readouterr().err
    capsys.readouterr()
    assert main(["parse", "acme", "in/1.jsonl"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert main(["show", "--inline", "select count(*) as n from acme_to_changelog", "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"n": len(rows)}
    assert (
        main(
            [
                "show",
                "--inline",
                "select count(*) as n from changelog where source = 'acme' and format = 'acme'",
                "--output",
                "json",
            ]
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out) == {"n": sum(row["kind"] == "row" for row in rows)}
    return rows


def test_a_dialect_of_another_format(
    tmp_path: Path, spark: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    header = {"database": "d", "table": "t", "pkNames": ["id"], "mysqlType": {"id": "int", "v": "blob"}}
    messages = [
        {**header, "opType": "I", "data": [{"id": "1", "v": "a"}]},
        {**header, "opType": "U", "data": [{"id": "1", "v": "b"}], "updateBefore": [{"v": "a"}]},
        {**header, "opType": "D", "data": [{"id": "1", "v": "b"}]},
        {**header, "opType": "DELETE", "data": None, "old": {"id": "2"}},
        {**header, "type": "INSERT", "data": [{"id": "1"}]},
    ]
    rows = parsed(tmp_path, monkeypatch, capsys, FLAVOUR, messages)
    assert [(r["op"], r["reason"]) for r in rows] == [
        ("insert", None),
        ("update", None),
        ("delete", None),
        ("delete", None),
        (None, "no-op"),
    ]
    assert (
        rows[1]["before"] == {"id": "1", "v": "YQ=="}
        and rows[1]["after"] == {"id": "1", "v": "Yg=="}
        and rows[1]["changed"] == ["v"]
    )
    assert rows[3]["before"] == {"id": "2"}


LAID_OVER = """
op: {by: op, cases: {I: insert, U: update, D: delete}}
before: {at: old, over: new}
after: new
table_name: t
"""


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("in_lists", [False, True])
def test_an_image_over_one_that_a_change_does_not_have_stands_alone(project, runner, in_lists: bool) -> None:
    old, new = {"id": "1", "v": "a"}, {"id": "1", "v": "b"}
    images = [
        ("I", {}, new), ("U", {"v": "a"}, new), ("U", {}, new), ("D", old, {}), ("D", {"id": "1"}, new), ("D", {}, {}),
        ("D", {}, new),
    ]  # fmt: skip
    messages = [
        {"op": op, "t": "x", "old": [before] if in_lists else before, "new": [after] if in_lists else after}
        for op, before, after in images
    ]
    spec = f"each: [old, new]\n{LAID_OVER}" if in_lists else LAID_OVER
    project({"formats/acme.yml": spec, "in/1.jsonl": "\n".join(map(json.dumps, messages))})
    rows = [json.loads(line) for line in runner("parse", "acme", "in/1.jsonl").out.splitlines()]
    assert [tuple(row[name] for name in ("before", "before_image", "after", "reason")) for row in rows] == [
        (None, "none", new, None),
        (old, "full", new, None),
        (new, "full", new, None),
        (old, "partial", None, None),
        ({"id": "1"}, "partial", None, None),
        (None, None, None, "no-row-image"),
        (None, None, None, "no-row-image"),
    ]


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


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("table_name", ["t", "other.places.lie.deeper"])
@pytest.mark.parametrize("written", WRITTEN)
def test_nested_values_keep_their_digits_and_characters(project, runner, written: str, table_name: str) -> None:
    image, row = WRITTEN[written]
    spec = f"op: {{by: op, cases: {{I: insert}}}}\nafter: {image}\ntable_name: {table_name}\n"
    lines = [f'{{"op": "I", "t": "t", "names": ["x", "y"], "new": {row % value}}}' for value in NESTED]
    project({"formats/acme.yml": spec, "in/1.jsonl": "\n".join(lines)})
    rows = [json.loads(line) for line in runner("parse", "acme", "in/1.jsonl").out.splitlines()]
    assert [row["after"] for row in rows] == [{"x": text, "y": "1.20"} for text in NESTED.values()]


def test_an_envelope_without_lists(
    tmp_path: Path, spark: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def message(op: str, **other: object) -> dict:
        return {
            "payload": {
                "op": op,
                "source": {"db name": "d", "table": "t"},
                "keys": ["id"],
                "time": "1700000000.25",
                "pos": "7",
                "tx": "x1",
                **other,
            }
        }

    messages = [
        message("i", after={"id": 1, "v": "a"}),
        message("i", after={"id": 2, "v": 1.25}, pos=None, time=-1),
        message("u", before={"id": 1}, after={"id": 1, "v": None}),
        message("d", before={"id": 1, "v": None}),
        message("d", before=None),
        message("x", ddl={"text": "/* c */ drop table t"}),
        message("x"),
    ]
    rows = parsed(tmp_path, monkeypatch, capsys, ENVELOPE, messages)
    assert [(r["kind"], r["op"], r["reason"]) for r in rows] == [
        ("row", "insert", None),
        ("row", "snapshot", None),
        ("row", "update", None),
        ("row", "delete", None),
        ("dead_letter", None, "no-row-image"),
        ("ddl", "drop", None),
        ("dead_letter", None, "unknown-op"),
    ]
    assert rows[1]["after"] == {"id": "2", "v": "1.25"}
    assert (rows[2]["before_image"], rows[2]["changed"]) == ("key", None)
    assert [r["event_time"] for r in rows[:2]] == ["2023-11-14T22:13:20.25Z", None]
    assert [r["seq"]["position"] for r in rows[:3]] == [[], [], []]  # a time with a fraction is no order number
    assert (rows[0]["db_name"], rows[0]["table_name"], rows[0]["tx_id"], rows[1]["seq"]["phase"]) == ("d", "t", "x1", 0)


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


@pytest.fixture
def keys(project, runner) -> Callable[..., list]:
    """The keys of the rows that a format with this spec makes of inserts; each message is the JSON text of one."""

    def keys_of(spec: str, messages: list[dict]) -> list:
        text = "\n".join(json.dumps({"hdr": {"tbl": "t", "act": "I"}, "row": {"new": NEW}, **one}) for one in messages)
        project({"formats/acme.yml": spec, "in/1.jsonl": text})
        ran = runner("parse", "acme", "in/1.jsonl")
        assert ran.code == 0, ran.err
        rows = [json.loads(line) for line in ran.out.splitlines()]
        assert [row["kind"] for row in rows] == ["row"] * len(messages)
        return [row["key"] for row in rows]

    return keys_of


@pytest.mark.usefixtures("spark")
def test_a_text_where_a_list_of_names_is_expected_is_one_name(keys) -> None:
    listed = [*((sent, key) for sent, key, _ in NAMES), *ONLY_LISTED]
    found = keys(OWN + "key: {names: pk}\n", [{"pk": sent} for sent, _ in listed])
    assert found == [key for _, key in listed]


@pytest.mark.usefixtures("spark")
def test_names_in_one_text_are_split(keys) -> None:
    found = keys(OWN + 'key: {names: pk, split: ","}\n', [{"pk": sent} for sent, _, _ in NAMES])
    assert found == [key for _, _, key in NAMES]


@pytest.mark.usefixtures("spark")
def test_the_first_place_that_gives_names_counts(keys) -> None:
    spec = OWN + 'key: [{names: hdr.keys}, {names: pk, split: ","}]\n'
    messages: list[dict] = [
        {"pk": "id,shop"},
        {"pk": "id,shop", "hdr": {"tbl": "t", "act": "I", "keys": "shop"}},
        {"pk": "id", "hdr": {"tbl": "t", "act": "I", "keys": []}},
    ]
    assert keys(spec, messages) == [{"id": "1", "shop": "2"}, {"shop": "2"}, {"id": "1"}]


@pytest.mark.usefixtures("spark")
def test_names_in_one_text_of_a_record(project, runner) -> None:
    """A plain text, a text or a list, and several names in one text, all in Avro."""
    names = {"one": "string", "either": ["null", "string", {"type": "array", "items": "string"}]}
    fields = [
        {"name": "op", "type": "string"},
        {"name": "new", "type": {"type": "map", "values": "string"}},
        *({"name": name, "type": kind} for name, kind in names.items()),
    ]
    schema = {"type": "record", "name": "r", "fields": fields}
    messages = [("id", None), ("", ["shop", "id"]), ("id,shop", "shop"), ("id,shop", "")]
    new = {name: str(value) for name, value in NEW.items()}
    raw = [encoded(schema, {"op": "I", "new": new, "one": one, "either": either}) for one, either in messages]
    spec = "message: {encoding: avro, schema: r.avsc}\nop: {by: op, cases: {I: insert}}\nafter: new\n"
    files = {"formats/r.avsc": json.dumps(schema), "in/1.base64": b"\n".join(base64.b64encode(one) for one in raw)}
    expected = {
        "{names: one}": [{"id": "1"}, None, None, None],
        "{names: either}": [None, {"shop": "2", "id": "1"}, {"shop": "2"}, None],
        '{names: one, split: ","}': [{"id": "1"}, None, {"id": "1", "shop": "2"}, {"id": "1", "shop": "2"}],
    }
    for key, keys in expected.items():
        project({"formats/acme.yml": f"{spec}key: {key}\n", **files})
        ran = runner("parse", "acme", "in/1.base64")
        assert [json.loads(line)["key"] for line in ran.out.splitlines()] == keys, key


@pytest.mark.parametrize("key", ["none", "{columns: [_id]}", "{names: keys}"])
def test_a_dialect_with_another_key_than_that_beside_the_row(project, runner, key: str) -> None:
    source = f"sources: [{{name: shop, format: {{extends: drs_mongodb, key: {key}}}, files: in/*}}]\n"
    project({"project.yml": source})
    ran = runner("compile", "-q", "-s", "shop_to_changelog")
    assert ran.code == 0, ran.err
    assert "key_image" not in ran.out
