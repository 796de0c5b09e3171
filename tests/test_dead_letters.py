"""Limits for dead letters, and dead letters that do not count."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from runner.project.dead_letters import read_dead_letters
from runner.project.inputs import DeadLetterLimits, Limit, Waiver
from runner.spec.formats import FormatFolders
from runner.yaml_text import yaml_of

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
