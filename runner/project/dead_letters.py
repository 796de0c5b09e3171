"""The reader of what a source says of dead letters: how many new ones are too many, and which of them do not count."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from decimal import Decimal

from runner.contract import REASONS
from runner.errors import Problems, nearest_or_all
from runner.project.inputs import DeadLetterLimits, Limit, Waiver
from runner.spec.values import read_table_name
from runner.spec.words import Format
from runner.yaml_text import Yaml, whole_number

DEAD_LETTER_KEYS = ("warn", "fail", "waived")
WAIVER_KEYS = ("reason", "detail", "table", "because", "until")
SHARE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,9})?) ?%")
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
WAIVER_HINT = 'waived: [{reason: unknown-op, because: "why it is expected", until: 2027-01-31}]'


def read_dead_letters(yaml: Yaml | None, chosen: Format) -> DeadLetterLimits:
    """Returns the limits of a source for dead letters, with the default ones in place of those that it does not name.
    Raises `source-dead-letters` for a limit that is neither a number nor a share, and `source-waiver` for a waiver that
    waives nothing, or that does not say why.
    """
    limits = DeadLetterLimits()
    if yaml is None:
        return limits
    yaml.only(DEAD_LETTER_KEYS)
    problems = Problems()
    warn, fail, waived = limits.warn, limits.fail, limits.waived
    with problems.gathered():
        warn = _limit(yaml["warn"]) if yaml.get("warn") else warn
    with problems.gathered():
        fail = _limit(yaml["fail"]) if yaml.get("fail") else fail
    with problems.gathered():
        waived = _waivers(yaml["waived"].list(), reasons_of(chosen)) if yaml.get("waived") else waived
    problems.raise_if_any()
    return DeadLetterLimits(warn, fail, waived)


def reasons_of(chosen: Format) -> tuple[str, ...]:
    """Returns all reasons that dead letters of a format may have: those of any format, then its own."""
    own = (line.op for line in chosen.op.lines() if line.kind == "dead_letter" and line.op)
    return tuple(dict.fromkeys((*REASONS, *own)))


def _limit(yaml: Yaml) -> Limit | None:
    """Returns a limit; None if it is null."""
    if yaml.value is None:
        return None
    text = yaml.text()
    share, number = SHARE.fullmatch(text), whole_number(text)
    limit = Limit(Decimal(share[1]), True) if share else Limit(Decimal(number or 0))
    if limit.number == 0 or (limit.is_share and limit.number > 100):
        message = f'{yaml.name()} is neither a number from 1 nor a share of the messages up to "100 %": "{text}"'
        raise yaml.error("source-dead-letters", message, '10, or "0.5 %", or null for no limit')
    return limit


def _waivers(yaml: Yaml, reasons: Iterable[str]) -> tuple[Waiver, ...]:
    problems = Problems()
    waivers: list[Waiver] = []
    for entry in yaml.elements():
        with problems.gathered():
            waiver = _waiver(entry, reasons)
            if twin := next((one for one in waivers if one.waives_same_as(waiver)), None):
                message = f'dead letters "{waiver.reason}" are waived twice'
                raise entry.error("source-waiver", message, f"the other one: {twin.where}")
            waivers.append(waiver)
    problems.raise_if_any()
    return tuple(waivers)


def _waiver(yaml: Yaml, reasons: Iterable[str]) -> Waiver:
    yaml.only(WAIVER_KEYS)
    for key in ("reason", "because"):
        if not yaml.get(key) or not yaml[key].value:
            raise yaml.error("source-waiver", f'a waiver needs "{key}"', WAIVER_HINT)
    reason = yaml["reason"].text()
    if reason not in reasons:
        message = f'no dead letter of this source has the reason "{reason}"'
        raise yaml["reason"].error("source-waiver", message, nearest_or_all(reason, reasons))
    return Waiver(
        reason,
        yaml["detail"].text() if yaml.get("detail") else "",
        tuple(read_table_name(yaml["table"])) if yaml.get("table") else (),
        yaml["because"].text(),
        read_until(yaml.get("until"), "source-waiver"),
        yaml.where(),
    )


def read_until(yaml: Yaml | None, code: str) -> date | None:
    """Returns the last day on which something holds; None if none is named. Raises an error with this code for a text
    that is no day.
    """
    if yaml is None:
        return None
    text = yaml.text()
    try:
        day = date.fromisoformat(text) if DAY.fullmatch(text) else None
    except ValueError:
        day = None
    if day is None:
        raise yaml.error(code, f'"until" is the last day on which this holds, not "{text}"', "until: 2027-01-31")
    return day
