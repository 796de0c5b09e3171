"""Sources with dead letters through the command line: how a run ends, what its lines say, and what is built. And what
the SQL makes of details and waivers.
"""

from __future__ import annotations

import json
import re
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runner.project.inputs import Waiver
from runner.project.project import project_folders
from runner.render import Renderer, sql_text
from tests.landed import Project
from tests.small_format import SMALL, message

if TYPE_CHECKING:
    from runner.engine.session import Spark

pytestmark = pytest.mark.usefixtures("spark", "interpreted")

SOURCES = """sources:
  - {name: none, format: small, files: none/*}
  - {name: few, format: small, files: few/*}
  - {name: many, format: small, files: many/*}
  - {name: free, format: small, files: free/*, dead_letters: {warn: null, fail: null}}
  - name: waived
    format: small
    files: waived/*
    dead_letters:
      fail: 2
      waived:
        - {reason: unknown-op, detail: 'op: "XA 17"', table: d.t, because: expected, until: 9999-12-31}
        - {reason: not-json, because: expected}
  - name: ended
    format: small
    files: ended/*
    dead_letters: {fail: "50 %", waived: [{reason: not-json, because: expected, until: 2024-05-01}]}
"""
MIRROR = "mirrors: [{name: orders, of: {source: many, table: t}, key: [id], columns: {id: int}}]\n"
COUNTED = "{{ config(materialized='table') }} select count(*) as n from {{ ref('many_to_changelog') }}"


def good(number: int) -> list[str]:
    return [message(one) for one in range(number)]


def xa(number: int, table: str = "t") -> str:
    return json.dumps({"op": f"XA {number}", "db": "d", "table": table})


def test_a_run_with_too_many_ends_with_1_and_all_is_built(tmp_path: Path) -> None:
    messages = {
        "none": good(5),
        "few": [*good(100), "{"],
        "many": [*good(3), "{", "[]", "{", xa(1)],
        "free": ["{"],
        # One of them is of another table, and counts.
        "waived": [*good(3), xa(1), xa(2345), xa(6, "u"), "{"],
        "ended": ["{", message(1)],
    }
    files = {f"{name}/1.jsonl": "\n".join(lines) for name, lines in messages.items()}
    models = {"models/m.yml": MIRROR, "models/counted.sql": COUNTED}
    project = Project(tmp_path, {"project.yml": SOURCES, "formats/small.yml": SMALL, **models, **files})
    ran = project.run("build")
    assert ran.code == 1, ran.err
    landed = {name: status for name, status in project.statuses.items() if name.endswith("_to_changelog")}
    assert landed == {
        "none_to_changelog": "success",
        "few_to_changelog": "warn",
        "many_to_changelog": "fail",
        "free_to_changelog": "success",
        "waived_to_changelog": "warn",
        "ended_to_changelog": "fail",
    }
    others = {status for name, status in project.statuses.items() if name not in landed}
    assert others == {"success", "pass"}, project.statuses
    assert project.rows("select id from orders order by id") == [{"id": 0}, {"id": 1}, {"id": 2}]
    assert project.rows("select n from counted") == [{"n": 7}]

    number = r"\d+ of \d+ "
    said = re.sub(rf"{number}|\d\d:\d\d:\d\d  ", "", ran.err)
    many = "7 messages: 3 row, 4 dead_letter (2 not-json, 1 not-an-object, 1 unknown-op) in"
    why = "the limit of 1 % is reached: 2 not-json, 1 not-an-object, 1 unknown-op"
    assert f"FAIL streaming model many_to_changelog [{many}" in said
    assert f"\n      4 dead letters in 7 messages, {why}; runner dead-letters --source many shows them\n" in said
    assert "WARN streaming model few_to_changelog [101 messages: 100 row, 1 dead_letter (1 not-json) in" in said
    waived = "7 messages: 3 row, 4 dead_letter (3 unknown-op, 1 not-json; 3 waived) in"
    assert f"WARN streaming model waived_to_changelog [{waived}" in said
    assert "the limit of 50 % is reached: 1 not-json; runner dead-letters --source ended shows them" in said
    assert "ERROR=2 SKIP=0" in said.splitlines()[-1]
    answer = project.results["waived_to_changelog"]["adapter_response"]
    assert answer["waived"] == {"not-json": 1, "unknown-op": 2} and answer["rows"]["dead_letter"] == 4

    # Only what a run has landed itself counts.
    project.write({"many/2.jsonl": "\n".join(good(3)), "waived/2.jsonl": xa(3)})
    ran = project.run("build", "--log-format", "json")
    finished = {
        one["name"]: (one["status"], one["message"], one["waived"])
        for one in map(json.loads, ran.err.splitlines())
        if one["event"] == "finished" and one["name"] in landed
    }
    assert ran.code == 0 and finished == {
        **dict.fromkeys(landed, ("success", "", {})),
        "waived_to_changelog": ("success", "", {"unknown-op": 1}),
    }


# --- SQL


def renderer() -> Renderer:
    return Renderer(project_folders(None, "macros"), {})


def in_plain_python(detail: str) -> str:
    """The shape of a detail, taken one character after the other."""
    out, quoted = "", None
    for one in [*detail, ""]:
        if quoted is None:
            out, quoted = (out, "") if one == '"' else (out + one, None)
        elif one in ('"', ""):
            out += f'"...{one or chr(34)}' if len(quoted) > 30 else f'"{quoted}{one}'
            quoted = None
        else:
            quoted += one
    return re.sub("[0-9]+", "#", out)[:80]


DETAILS = {
    'op: "XA 17", offset 2300': 'op: "XA #", offset #',
    f'statement: "{"x" * 30}"': f'statement: "{"x" * 30}"',
    f'statement: "{"x" * 31}"': 'statement: "..."',
    f'a: "", b: "{"1" * 31}", c: 5': 'a: "", b: "...", c: #',
    # Between two quoted texts: not in quotes itself.
    f'a: "b" {"-" * 40} "c"': f'a: "b" {"-" * 40} "c"',
    f'cut off: "{"x" * 9000}': 'cut off: "..."',
    f'long: "{"x" * 9000}" 1': 'long: "..."',
    "y" * 200: "y" * 80,
    "": "",
    "it's a \\ and\na line": "it's a \\ and\na line",
    '"' * 4001: '"' * 80,
}


def test_the_shape_of_a_detail(spark: Spark) -> None:
    macro = renderer().call
    texts = [*DETAILS, *map("".join, zip(DETAILS, reversed(DETAILS)))]
    shape, again = macro("detail_shape", "d"), macro("detail_shape", "s")
    rows = ", ".join(f"({number}, {sql_text(text)})" for number, text in enumerate(texts))
    query = f"select n, s, {again} as again from (select n, {shape} as s from values {rows} as t(n, d)) order by n"
    found = spark.rows(query)[1]
    assert dict(zip(DETAILS, (row["s"] for row in found))) == DETAILS
    # A text of more than 4000 characters may end at another place.
    short = [(row["s"], in_plain_python(text)) for row, text in zip(found, texts) if len(text) <= 4000]
    assert [one for one, _ in short] == [other for _, other in short] and len(short) > len(DETAILS)
    assert [row["again"] for row in found] == [row["s"] for row in found]
    assert spark.rows(f"select {macro('detail_shape', 'cast(null as string)')} as s")[1] == [{"s": None}]


NAMES = "cast(null as string) as tenant, 'shop' as db_name, cast(null as string) as schema_name"


def test_waivers_hold_for_their_reason_detail_table_and_days(spark: Spark) -> None:
    today = datetime.now(timezone.utc).date()

    def waiver(reason: str = "no-op", detail: str = "", table: str = "", until: date | None = None) -> Waiver:
        return Waiver(reason, detail, tuple(filter(None, table.split("."))), "x", until)

    row = f"select 'no-op' as reason, 'op: \"it\\'s 5\"' as detail, 'orders' as table_name, {NAMES}"
    bare = f"select 'no-op' as reason, cast(null as string) as detail, cast(null as string) as table_name, {NAMES}"
    change = f"select cast(null as string) as reason, cast(null as string) as detail, 'orders' as table_name, {NAMES}"
    cases = [
        ([], row, False),
        ([waiver()], row, True),
        ([waiver()], change, False),
        ([waiver("not-json")], row, False),
        ([waiver(detail='op: "it\'s 77"')], row, True),
        ([waiver(detail='op: "it\'s #"')], row, True),
        ([waiver(detail='op: "its 5"')], row, False),
        ([waiver(detail="op")], bare, False),
        ([waiver(table="orders")], row, True),
        ([waiver(table="shop.orders")], row, True),
        ([waiver(table="x.shop.orders")], row, False),
        ([waiver(table="rders")], row, False),
        ([waiver(table="orders")], bare, False),
        ([waiver(until=today + timedelta(days=1))], row, True),
        ([waiver(until=today - timedelta(days=1))], row, False),
        ([waiver("not-json"), waiver(until=date(2024, 1, 1)), waiver(table="orders")], row, True),
    ]
    macro = renderer().call
    queries = (f"select {n} as n, {macro('is_waived', one)} as w from ({of})" for n, (one, of, _) in enumerate(cases))
    found = spark.rows(f"select * from ({' union all '.join(queries)}) order by n")[1]
    assert [row["w"] for row in found] == [expected for *_, expected in cases]
