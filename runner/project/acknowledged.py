"""The reader of `acknowledged`: findings about a mirror that a person knows of."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from runner.errors import Problems
from runner.project.dead_letters import read_until
from runner.project.mirror import Acknowledged
from runner.spec.values import one_of
from runner.yaml_text import Yaml

ACKNOWLEDGED_KEYS = ("what", "column", "through", "because", "until")
# What may be acknowledged -> the keys that it has beside `because` and `until`: those that it needs, and others.
KEYS_OF = {"statement": (("through",), ()), "drift": (("column",), ()), "unfit": (("column",), ("through",))}
HINTS = {
    "statement": 'acknowledged: [{what: statement, through: 2026-11-28, because: "why it is no harm"}]',
    "drift": 'acknowledged: [{what: drift, column: note, because: "why it is no harm", until: 2027-01-31}]',
    "unfit": 'acknowledged: [{what: unfit, column: note, because: "why it is no harm", until: 2027-01-31}]',
}


def read_acknowledged(yaml: Yaml | None) -> tuple[Acknowledged, ...]:
    """Returns what is acknowledged of a mirror, or of the mirrors of a rule; nothing if nothing is written. Raises
    `mirror-setting` for an entry that does not say what it is about or why, and for a time that is none.
    """
    problems = Problems()
    found: list[Acknowledged] = []
    for entry in yaml.as_list() if yaml else ():
        with problems.gathered():
            found.append(_acknowledged(entry))
    problems.raise_if_any()
    return tuple(found)


def _acknowledged(yaml: Yaml) -> Acknowledged:
    if not isinstance(yaml.value, dict):
        message = f'what is acknowledged has "what" and "because", and is not {yaml.kind()}'
        raise yaml.error("mirror-setting", message, HINTS["statement"])
    yaml.only(ACKNOWLEDGED_KEYS)
    what = one_of(_needed(yaml, "what"), tuple(KEYS_OF), "mirror-setting", '"what"')
    needed, others = KEYS_OF[what]
    for key in (*needed, "because"):
        _needed(yaml, key, HINTS[what])
    for key in ("column", "through"):
        if yaml.get(key) and key not in (*needed, *others):
            raise yaml[key].error("mirror-setting", f'"{key}" has no meaning for "{what}"', HINTS[what])
    return Acknowledged(
        what,
        yaml["because"].text(),
        yaml["column"].text() if yaml.get("column") else "",
        _moment(yaml["through"]) if yaml.get("through") else None,
        read_until(yaml.get("until"), "mirror-setting"),
        yaml.where(),
    )


def _needed(yaml: Yaml, key: str, hint: str = HINTS["drift"]) -> Yaml:
    if not yaml.get(key) or not yaml[key].value:
        raise yaml.error("mirror-setting", f'what is acknowledged needs "{key}"', hint)
    return yaml[key]


def _moment(yaml: Yaml) -> int:
    """Returns the end of a day, or an instant in UTC, in microseconds."""
    try:
        moment = datetime.fromisoformat(yaml.text())
    except ValueError:
        message = f'"through" is a day or an instant, not "{yaml.text()}"'
        raise yaml.error("mirror-setting", message, "through: 2026-11-28") from None
    if len(yaml.text()) == len("2026-11-28"):
        moment += timedelta(days=1)
    utc = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    return (utc - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)
