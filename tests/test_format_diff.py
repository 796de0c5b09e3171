"""What two formats make of the same messages, and where their specs differ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner.run.format_diff import Differences, Row, differing_keys, ordered
from runner.spec.formats import FormatFolders
from runner.yaml_text import yaml_of
from tests.landed import Project


def row(message: int, number: int = 0, kind: str = "row", **columns: Any) -> Row:
    seq = {"generation": 0, "phase": 1, "position": [], "arrival": [message], "row": number}
    empty = {"op": None, "reason": None, "detail": None}
    return {"kind": kind, "source": "x", "format": "y", **empty, "seq": seq, **columns}


def compared(a: list[Row], b: list[Row]) -> Differences:
    found = Differences()
    found.add([f"m:{number}" for number in range(3)], a, b)
    return found


def kinds(found: Differences) -> list[tuple[Any, ...]]:
    return [(one.column, count, where, one.a, one.b) for count, where, one in ordered(found)]


def test_messages_are_counted_by_what_becomes_of_them() -> None:
    refused = row(1, kind="dead_letter", reason="unknown-op", detail='type: "X"')
    a = [row(0, op="insert"), row(1, op="insert"), row(1, 1, op="insert"), row(2, op="insert", event_time="t")]
    b = [row(2, op="update", event_time="t"), refused, row(0, op="insert", format="z")]
    found = compared(a, b)
    assert (found.messages, found.same, found.other) == (3, 1, 1)
    assert [dict(one) for one in found.only] == [{"row insert": 1}, {}]
    assert kinds(found) == [
        ("lands", 1, "m:1", ["row insert"], ['unknown-op: type: "X"']),
        ("op", 1, "m:2", ["insert"], ["update"]),
    ]
    assert [dict(one) for one in compared(b, a).only] == [{}, {"row insert": 1}]


def test_reasons_of_refused_messages_are_compared() -> None:
    """Their details are not, as in cases."""
    a, b = ([row(n, kind="dead_letter", reason=one, detail=one) for n in range(3)] for one in ("no-op", "empty"))
    assert kinds(compared(a, b)) == [("reason", 3, "m:0", ["no-op"], ["empty"])] and not compared(a, b).same
    assert compared(a, [{**one, "detail": "other"} for one in a]).same == 3


def test_kinds_of_differences_have_an_example() -> None:
    """Members of maps that the data names are of one kind; null is not the same as absent."""
    a = [
        row(0, after={"a": "1", "b": None}, meta={"gtid": "1", "scn": "7"}),
        row(1, after={"c": "5"}),
        row(2, changed=["a"]),
    ]
    b = [
        row(0, after={"a": "1"}, meta={"gtid": "2"}),
        row(1, after={"c": "05"}),
        row(2, changed=[]),
        row(2, 1, changed=[]),
    ]
    assert kinds(compared(a, b)) == [
        ("after.b", 2, "m:0", [None], None),
        ("meta.gtid", 1, "m:0", ["1"], ["2"]),
        ("meta.scn", 1, "m:0", ["7"], None),
        ("rows", 1, "m:2", [1], [2]),
    ]
    # An image without columns is not the same as none, and what is equal in other order is the same.
    none = compared(
        [row(0, after={}), row(1, types={"a": "b", "c": "d"})], [row(0), row(1, types={"c": "d", "a": "b"})]
    )
    assert kinds(none) == [("after", 1, "m:0", [{}], None)]


def test_the_keys_that_differ() -> None:
    a = yaml_of("about: x\nop: {by: type, cases: {I: insert, U: update}}\nafter: data\neach: [data]\n", Path("a.yml"))
    b = yaml_of("op:\n  by: kind\n  cases: {I: insert, U: [{row: update}]}\neach: [data]\nseq: [id]\n", Path("b.yml"))
    found = [
        (key.key, *((one.value, str(one.where())) if one else None for one in (key.a, key.b)))
        for key in differing_keys(a, b)
    ]
    assert found == [
        ("op.by", ("type", "a.yml:2:6"), ("kind", "b.yml:2:3")),
        ("op.cases.U", ("update", "a.yml:2:35"), ([{"row": "update"}], "b.yml:3:22")),
        ("after", ("data", "a.yml:3:1"), None),
        ("seq", None, (["id"], "b.yml:5:1")),
    ]


def test_a_spec_in_a_file_stands_in_place_of_the_one_with_its_name(tmp_path: Path) -> None:
    """A project's own format may extend the built-in one of the same name, and so may an older version of it."""
    own, built_in = tmp_path / "own", tmp_path / "built_in"
    for folder, text in ((own, "extends: f\nafter: new\n"), (built_in, "op: x\nafter: built_in\n")):
        folder.mkdir()
        (folder / "f.yml").write_text(text)
    old = tmp_path / "f.yml"
    old.write_text("extends: f\nbefore: old\n")
    folders = FormatFolders((own, built_in))
    resolved = folders.resolved_at(old)
    assert (resolved["after"].value, resolved["before"].value) == ("built_in", "old")
    other = tmp_path / "g.yml"
    other.write_text("extends: f\n")
    assert folders.resolved_at(other)["after"].value == "new"


BASE = """about: ours
each: [rows, old]
op: {by: op, cases: {i: insert, u: update}}
after: rows
before: {at: old, over: rows}
db_name: db
table_name: table
key: {columns: [id]}
"""
OLD, NEW = (
    "extends: base\nafter: rows\n",
    "extends: base\nop: {cases: {p: insert}}\nevent_time: {at: at, as: epoch_s}\n",
)


def message(op: str, *ids: str, **more: Any) -> str:
    return json.dumps({"op": op, "db": "d", "table": "t", "rows": [{"id": one} for one in ids], **more})


CASE = "about: x\nsource: {zone: UTC}\nrows: []\n"


@pytest.mark.usefixtures("spark", "interpreted")
def test_what_a_changed_spec_changes(tmp_path: Path) -> None:
    """In a file of messages, and in the cases of the two formats and of what both extend: those of another are not
    read.
    """
    messages = [message("i", "1"), "", message("p", "2", "3"), message("u", "1", at=1_700_000_000), "{"]
    made = Project(
        tmp_path,
        {
            "project.yml": "name: p\nsources: []\n",
            "formats/base.yml": BASE,
            "formats/mine.yml": NEW,
            "formats/other.yml": "extends: base\n",
            "before/mine.yml": OLD,
            "in/a.jsonl": "\n".join(messages),
            **{
                f"formats/cases/{name}/c.{ending}": text
                for name in ("base", "mine", "other")
                for ending, text in (("messages.jsonl", message("p", "1")), ("rows.yml", CASE))
            },
            # Messages of a source with a format of its own are of neither format.
            "formats/cases/mine/own.messages.jsonl": message("p", "1"),
            "formats/cases/mine/own.rows.yml": "about: x\nsource: {format: {extends: other}}\nrows: []\n",
        },
    )
    ran = made.run("formats", "diff", "before/mine.yml", "mine", "--messages", "in/a.jsonl", "--output", "json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert [found[name] for name in ("a", "b", "messages", "same", "other_rows")] == [
        "before/mine.yml",
        "mine",
        4,
        2,
        1,
    ]
    assert (found["landed_only_by_a"], found["landed_only_by_b"]) == ({}, {"row insert": 1})
    assert found["differences"] == [
        {"column": "lands", "messages": 1, "place": "in/a.jsonl:3", "a": 'unknown-op: op: "p"', "b": "row insert"},
        {"column": "event_time", "messages": 1, "place": "in/a.jsonl:4", "b": "2023-11-14T22:13:20Z"},
    ]
    assert found["keys"] == [
        {"key": "op.cases.p", "b": "insert", "b_at": "formats/mine.yml:2"},
        {"key": "event_time", "b": {"at": "at", "as": "epoch_s"}, "b_at": "formats/mine.yml:3"},
    ]

    lines = made.run("formats", "diff", "mine", "before/mine.yml").out.splitlines()
    assert lines[:2] == [
        "a is mine, b is before/mine.yml",
        "2 messages: 0 the same, 0 with other rows, 2 landed only by a (2 row insert), 0 landed only by b",
    ]
    assert [cell.strip() for cell in lines[4].split("|")] == [
        *("lands", "2", "mine/c.messages.jsonl:1", "row insert"),
        'unknown-op: op: "p"',
    ]
    of_one = made.run("formats", "diff", "mine", "mine", "--cases", "other").out.splitlines()
    assert of_one[1:] == ["1 message: 1 the same, 0 with other rows, 0 landed only by a, 0 landed only by b"]
