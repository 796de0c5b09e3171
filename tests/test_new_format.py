"""From a file of messages to a tested format: the page docs/new-format.md, and the rows that drafts give."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from runner.yaml_text import read_yaml
from tests import pages
from tests.inferred import LINES, OWN, random_names, renamed

pytestmark = pytest.mark.usefixtures("spark", "interpreted")

SHOP = pages.ROOT / "formats/cases/canal/shop.messages.jsonl"
# What a message tells, whatever its fields are called. Its database is a guess, and its zone is not in it.
TOLD = ("kind", "op", "db_name", "table_name", "key", "before", "after", "changed", "types", "event_time", "statement")


def test_every_step_of_the_page_prints_what_stands_there(tmp_path: Path, monkeypatch, runner) -> None:
    monkeypatch.setenv("COLUMNS", "160")  # the tables that it shows are wide
    monkeypatch.chdir(tmp_path)
    printed, ran = "", []
    for block in pages.blocks(pages.ROOT / "docs/new-format.md"):
        if block.kind == "text":
            assert printed == block.text
        elif block.name:
            pages.write_files([block], Path.cwd())
        for words in pages.statements(block.text) if block.kind == "sh" else ():
            printed = carried_out(words, runner, monkeypatch)
            ran.append(words[:3])
    assert ["runner", "formats", "infer"] in ran and ["runner", "test", "--unit"] in ran and len(ran) >= 9
    spec = Path("formats/acme.yml")
    schema = json.loads((spec.parent / spec.read_text().splitlines()[0].partition("$schema=")[2]).read_text())
    Draft202012Validator(schema).validate(read_yaml(spec).value)


def carried_out(words: list[str], runner, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a command of the page prints; `>` leads it to a file."""
    command, *rest = words
    match command:
        case "cd":
            monkeypatch.chdir(rest[0])
        case "mkdir":
            Path(rest[-1]).mkdir(parents=True)
        case "cp":
            shutil.copyfile(*rest)
        case "runner":
            rest, target = (rest[: rest.index(">")], rest[-1]) if ">" in rest else (rest, "")
            ran = runner(*rest)
            assert ran.code == 0, ran.err
            if target:
                Path(target).write_text(ran.out)
            return ran.out
        case _:
            raise AssertionError(words)
    return ""


def rows_of(ran: Any) -> list[dict[str, Any]]:
    assert ran.code == 0, ran.err
    return [{name: json.loads(line)[name] for name in TOLD} for line in ran.out.split("\n") if line]


def test_the_draft_of_renamed_messages_gives_the_rows_of_the_format(project, runner) -> None:
    sent = [json.loads(line) for line in SHOP.read_text().splitlines()]
    kept = frozenset((name,) for name in ("data", "old", "mysqlType", "sqlType"))
    new = random_names(sent, 7)
    lines = "".join(json.dumps(renamed(one, kept, new)) + "\n" for one in sent)
    project({"in/shop.jsonl": SHOP.read_bytes(), "in/other.jsonl": lines})
    zone = ("--zone", "Asia/Shanghai")
    assert runner("formats", "infer", "in/other.jsonl", "--name", "drafted", *zone).code == 0
    drafted = rows_of(runner("parse", "drafted", "in/other.jsonl", *zone))
    assert drafted == rows_of(runner("parse", "canal", "in/shop.jsonl", *zone))
    assert len(drafted) > 12


def test_a_dialect_of_ones_own_gives_its_rows(project, runner) -> None:
    project({"in/own.jsonl": LINES})
    assert runner("formats", "infer", "in/own.jsonl").code == 0
    ops = {"A": "insert", "M": "update", "R": "delete"}
    for message, row in zip(OWN, rows_of(runner("parse", "own", "in/own.jsonl")), strict=True):
        new, old = message["row"]["new"], message["row"]["orig"]
        op = ops[message["hdr"]["act"]]
        expected = {
            "kind": "row",
            "op": op,
            "db_name": "shop",
            "table_name": "orders",
            "key": {"id": str((new or old)["id"])},
            "before": texts({**new, **old}) if op != "insert" else None,
            "after": texts(new) if op != "delete" else None,
            "changed": ["status"] if op == "update" else None,
            "event_time": message["hdr"]["at"],
        }
        assert {name: row[name] for name in expected} == expected


def texts(row: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in row.items()}


def test_a_known_format_is_named_and_tried(project, runner) -> None:
    project({"in/shop.jsonl": SHOP.read_bytes()})
    ran = runner("formats", "infer", "in/shop.jsonl")
    assert ran.code == 0 and not Path("formats").exists()
    assert "these fit equally well: canal, " in ran.out and "values.binary: latin1 or " in ran.out
    assert "rows with canal: 12 messages: 13 row, 3 ddl, 1 control, 0 dead_letter" in ran.out
    parsed = runner("parse", "in/shop.jsonl", "--output", "table")
    assert parsed.code == 0 and "12 messages: 13 row" in parsed.out
    assert "the format canal fits; " in parsed.err and "would fit as well" in parsed.err


def test_dead_letters_are_counted_by_reason(project, runner) -> None:
    odd = json.dumps({**json.loads(SHOP.read_text().splitlines()[2]), "type": "MERGE"})
    project({"in/shop.jsonl": SHOP.read_text() + odd + "\n"})
    ran = runner("formats", "infer", "in/shop.jsonl")
    assert "unknown operations: MERGE" in ran.out and "1 dead_letter (1 unknown-op)" in ran.out
