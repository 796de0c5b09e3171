"""Limits for dead letters, and dead letters that do not count."""

from __future__ import annotations

import io
import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from runner.commands.dead_letters import line_of
from runner.contract import Landed
from runner.functions.records import read_record
from runner.project.acknowledged import read_acknowledged
from runner.project.dead_letters import read_dead_letters
from runner.project.inputs import DeadLetterLimits, Limit, Waiver
from runner.project.mirror import Acknowledged
from runner.project.nodes import Graph, Model, Node
from runner.project.project import project_schema
from runner.project.waivers import with_waiver
from runner.report import Report
from runner.run.results import Batch, Result, Verdict, judged
from runner.run.schedule import Order, Schedule, StopSignals
from runner.spec.formats import FormatFolders
from runner.yaml_text import yaml_of
from tests.pages import section

ROOT = Path(__file__).parents[1]
PLACE = Path("project.yml")


def limits(text: str, name: str = "canal") -> DeadLetterLimits:
    chosen = FormatFolders((ROOT / "formats",)).load(name, yaml_of("x: y", PLACE)["x"])
    return read_dead_letters(yaml_of(f"dead_letters: {text}", PLACE)["dead_letters"], chosen)


def test_limits_that_are_not_named_are_the_default_ones() -> None:
    assert limits("{}") == DeadLetterLimits(Limit(Decimal(1)), Limit(Decimal(1), True), ())
    assert limits("{fail: null}") == DeadLetterLimits(fail=None)
    assert limits('{warn: 20, fail: "0.25%"}') == DeadLetterLimits(Limit(Decimal(20)), Limit(Decimal("0.25"), True))


def test_waivers_are_read() -> None:
    text = """{waived: [
        {reason: unknown-op, detail: 'type: "XA"', table: 'shop."v1.orders"', because: a, until: 2027-01-31},
        {reason: unknown-op, because: b}]}"""
    assert limits(text).waived == (
        Waiver("unknown-op", 'type: "XA"', ("shop", "v1.orders"), "a", date(2027, 1, 31)),
        Waiver("unknown-op", "", (), "b", None),
    )


def test_a_format_may_have_reasons_of_its_own() -> None:
    (waiver,) = limits("{waived: [{reason: sharded-message, because: x}]}", "oceanbase_avro").waived
    assert waiver.reason == "sharded-message"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{warn: 1, fail: "1 %"}', True),
        ("{fail: null, waived: [{reason: no-op, because: a, detail: b, table: c, until: '2027-01-31'}]}", True),
        ("{fails: 1}", False),
        ("{fail: [1]}", False),
        ("{waived: [{reasons: no-op, because: a}]}", False),
    ],
)
def test_editors_know_the_keys(text: str, expected: bool) -> None:
    source = {"name": "a", "format": "canal", "files": "x", "dead_letters": yaml.safe_load(text)}
    assert Draft202012Validator(project_schema()).is_valid({"sources": [source]}) is expected


@pytest.mark.parametrize(
    ("limit", "dead_letters", "messages", "expected"),
    [
        (Limit(Decimal(1)), 0, 10, False),
        (Limit(Decimal(1)), 1, 10, True),
        (Limit(Decimal(10)), 9, 9, False),
        (Limit(Decimal(10)), 10, 1_000_000, True),
        (Limit(Decimal(1), True), 0, 0, False),
        (Limit(Decimal(1), True), 99, 10_000, False),
        (Limit(Decimal(1), True), 100, 10_000, True),
        # 0.1 + 0.2 in binary numbers would be more than 0.3.
        (Limit(Decimal("0.3"), True), 3, 1000, True),
        (Limit(Decimal(100), True), 99, 100, False),
    ],
)
def test_a_limit_is_reached(limit: Limit, dead_letters: int, messages: int, expected: bool) -> None:
    assert limit.is_reached(dead_letters, messages) is expected


def test_a_waiver_holds_on_its_last_day() -> None:
    waiver = Waiver("no-op", "", (), "x", date(2027, 1, 31))
    assert [waiver.has_ended(date(2027, 1, 31)), waiver.has_ended(date(2027, 2, 1))] == [False, True]


# --- what becomes of what has landed


def landed(dead: int, messages: int, waived: int = 0) -> Landed:
    rows = {"row": messages - dead, "ddl": 0, "control": 0, "dead_letter": dead}
    return Landed(messages, rows, {"no-op": dead}, waived={"no-op": waived})


@pytest.mark.parametrize(
    ("text", "numbers", "expected"),
    [
        ("{}", (0, 100), "success"),
        ("{}", (1, 101), "warn"),
        ("{}", (1, 100), "fail"),
        ("{}", (100, 100, 100), "success"),
        ("{}", (100, 200, 99), "warn"),
        ("{}", (100, 200, 98), "fail"),
        ("{warn: 5}", (4, 1000), "success"),
        ("{warn: 5, fail: 6}", (5, 1000), "warn"),
        ("{warn: 5, fail: 6}", (6, 1000), "fail"),
        ("{warn: null, fail: null}", (10, 10), "success"),
        ("{warn: null}", (1, 1000), "success"),
        ("{fail: null}", (10, 10), "warn"),
    ],
)
def test_the_limits_decide(text: str, numbers: tuple[int, ...], expected: str) -> None:
    source: Any = SimpleNamespace(name="shop", dead_letters=limits(text))
    assert judged(source, landed(*numbers)).status == expected


def test_the_verdict_says_numbers_limit_reasons_and_what_to_do() -> None:
    source: Any = SimpleNamespace(name="shop", dead_letters=limits("{}"))
    rows = {"row": 12, "ddl": 0, "control": 0, "dead_letter": 8}
    verdict = judged(source, Landed(20, rows, {"no-op": 4, "not-json": 3, "empty": 1}, waived={"no-op": 4}), 7)
    assert verdict.message == (
        "batch 7: 4 dead letters in 20 messages, the limit of 1 % is reached: 3 not-json, 1 empty; "
        "runner dead-letters --source shop shows them"
    )


def test_the_line_of_a_source_and_of_a_batch_says_how_many_are_waived() -> None:
    def said(log_format: str, method: str, *arguments: Any, quiet: bool = False) -> str:
        stderr = io.StringIO()
        getattr(Report(log_format, quiet, stderr=stderr), method)(*arguments)
        return stderr.getvalue()

    node, numbers = Node("shop_to_changelog", "model", Model("", "streaming")), landed(3, 9, 2)
    result = Result(node.name, "model", "fail", "too many", rows=numbers.numbers, reasons={"no-op": 3}, waived={"a": 2})
    line = said("text", "finished", node, result, 1, 1, quiet=True)
    assert "FAIL streaming model shop_to_changelog [9 messages: 6 row, 3 dead_letter (3 no-op; 2 waived) in" in line
    assert line.endswith("\n      too many\n")
    assert json.loads(said("json", "finished", node, result, 1, 1))["waived"] == {"a": 2}
    batch = Batch(4, numbers, 0.5, 7, Verdict("fail", "too many"))
    line = said("text", "progress", "shop", batch, quiet=True)
    assert "FAIL shop: 9 messages (6 row, 3 dead_letter (3 no-op; 2 waived)) in 0.5s, 7 behind\n      too many" in line
    event = json.loads(said("json", "progress", "shop", batch))
    assert (event["status"], event["message"], event["waived"]) == ("fail", "too many", {"no-op": 2})
    assert said("text", "progress", "shop", Batch(4, numbers, 0.5, 7), quiet=True) == ""


def test_a_stream_is_as_bad_as_its_worst_batch() -> None:
    good, bad, first = Verdict("warn"), Verdict("fail", "b"), Verdict("fail", "a")
    assert (good.worse(bad), bad.worse(good), first.worse(bad)) == (bad, bad, first)


@pytest.mark.parametrize(
    ("status", "fail_fast", "expected"),
    [
        ("fail", False, {"a": "fail", "b": "success"}),
        ("error", False, {"a": "error", "b": "skipped"}),
        ("fail", True, {"a": "fail", "b": "skipped"}),
    ],
)
def test_what_reads_a_source_with_too_many_is_built(status: str, fail_fast: bool, expected: dict[str, str]) -> None:
    graph = Graph(
        {"a": Node("a", "model", Model("", "streaming")), "b": Node("b", "model", Model("", "table"), ("a",))}
    )
    listener: Any = SimpleNamespace(started=lambda *_: None, finished=lambda *_: None)

    def do(node: Node) -> Result:
        return Result(node.name, "model", status if node.name == "a" else "success")

    results = Schedule(Order(graph, ("a", "b")), do, listener, StopSignals(), 1, fail_fast).run()
    assert {result.name: result.status for result in results} == expected


# --- what has ended


def test_check_lists_what_has_ended(project, runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.commands.formats.check_formats", lambda *_, **__: [])
    mirror = "of: {source: shop, table: t}, key: [id], history: true, columns: {id: int}"
    project(
        {
            "project.yml": """sources:
  - name: shop
    format: canal
    files: in/*
    dead_letters:
      waived:
        - {reason: no-op, because: a bug of May, until: 2024-05-31}
        - {reason: empty, because: still so, until: 9999-12-31}
        - {reason: not-json, because: for ever}
""",
            "models/m.yml": f"""mirrors:
  - {{name: old, {mirror},
     acknowledged: [{{what: statement, through: 2024-04-01, because: nothing was in it, until: 2024-05-01}},
                    {{what: drift, column: note, because: not needed, until: 2024-05-02}}]}}
  - {{name: kept, acknowledged: {{what: statement, through: 2024-04-01, because: looked at}}, {mirror}}}
""",
        }
    )
    ran = runner("check", "--log-format", "json")
    events = [json.loads(line) for line in ran.err.splitlines()]
    assert ran.code == 0 and [(event["code"], event["message"], event["where"]) for event in events] == [
        ("waiver-ended", "this held until 2024-05-31, and has ended: a bug of May", "project.yml:7:11"),
        ("waiver-ended", "this held until 2024-05-01, and has ended: nothing was in it", "models/m.yml:3:21"),
        ("waiver-ended", "this held until 2024-05-02, and has ended: not needed", "models/m.yml:4:21"),
    ]


def test_what_is_acknowledged_is_known_up_to_its_instant_and_until_its_last_day() -> None:
    # 2024-04-01 ends at this second since 1970.
    known = Acknowledged("statement", "x", through=1_712_016_000_000_000, until=date(2024, 5, 1))
    assert known.through and [known.covers(known.through - 1, date(2024, 5, day)) for day in (1, 2)] == [True, False]
    assert not known.covers(known.through, date(2024, 5, 1))
    assert Acknowledged("unfit", "x", "n").covers(1 << 62, date(9999, 12, 31))


def test_what_the_page_acknowledges_is_read() -> None:
    (block,) = section(ROOT / "docs/mirrors.md", "Findings that are known")
    found = read_acknowledged(yaml_of(block.text, PLACE)["acknowledged"])
    assert [(one.what, one.column, one.until) for one in found] == [
        ("statement", "", date(2027, 1, 31)),
        ("drift", "note", None),
        ("unfit", "amount", date(2027, 1, 31)),
    ]
    # 2026-11-28 ends at this second since 1970.
    assert [one.through for one in found] == [1_795_910_400_000_000, None, 1_795_910_400_000_000]
    assert found[0].noted("a finding") == "acknowledged until 2027-01-31 (the partition was empty): a finding"


def test_messages_in_files() -> None:
    """What is no text is kept in base64; a file of Avro has lines of base64, other files have the bytes."""
    origin = {"topic": "t", "key": '{"id":1}', "headers": [{"key": "a", "value": None}]}
    binary = {"raw": "w6n/", "meta": {"raw_encoding": "base64"}, "origin": origin}
    assert [line_of(binary, ending) for ending in (".base64", ".messages.base64")] == [b"w6n/", b"w6n/"]
    assert line_of(binary, ".jsonl") == "é".encode() + b"\xff"
    text = {"raw": '{"n":1.50}', "meta": None, "origin": origin}
    assert line_of(text, ".messages.jsonl") == b'{"n":1.50}'
    record = read_record(line_of(text, ".records.jsonl").decode())
    assert (record.topic, record.key, record.headers, record.value) == ("t", '{"id":1}', (("a", None),), '{"n":1.50}')
    assert line_of({"raw": None, "meta": None, "origin": origin}, ".jsonl") == b""


@pytest.mark.parametrize(
    "text",
    [
        "sources:\n- name: a\n  files: x  # why\n- {name: shop, files: in/*}  # flow\ntarget: t\n",
        "sources:\n  - files: in/*\n    name: shop\n    dead_letters:\n      warn: 5   # five\n\ntarget: t\n",
        "sources: [{name: shop, dead_letters: {waived: [{reason: empty, because: b}]}}]\n",
        "sources:\n  - name: shop\n    dead_letters:\n      waived:\n      - {reason: empty, because: b}\n"
        "      fail: 3\n",
    ],
)
def test_waivers_are_written_into_any_form(text: str) -> None:
    """One more waiver, and nothing else is changed, comments included."""
    waiver = {"reason": "no-op", "detail": 'type: "{}"', "because": "it's # so: {indent}"}
    new = with_waiver(text, "shop", waiver)
    before, after = yaml.safe_load(text), yaml.safe_load(new)
    own = next(one for one in after["sources"] if one["name"] == "shop")
    assert own["dead_letters"]["waived"].pop() == waiver
    if not own["dead_letters"]["waived"]:
        del own["dead_letters"]["waived"]
    if not own["dead_letters"]:
        del own["dead_letters"]
    assert before == after
    assert [line for line in text.splitlines() if "#" in line and line not in new and "flow" not in line] == []
    assert with_waiver(new, "shop", waiver).count("no-op") == 2
