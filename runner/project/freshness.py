"""The freshness of sources: the age that the newest row of a source may have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from runner.errors import nearest_or_all
from runner.project.expressions import expression
from runner.yaml_text import Yaml, whole_number

FRESHNESS_KEYS = ("warn_after", "error_after", "filter")
AGE_KEYS = ("count", "period")
SECONDS = {"minute": 60, "hour": 3600, "day": 86400}


@dataclass(frozen=True)
class Age:
    """An age of `count` minutes, hours or days."""

    count: int
    period: str

    @property
    def seconds(self) -> int:
        return self.count * SECONDS[self.period]

    def __str__(self) -> str:
        """Returns the age in words.

        >>> str(Age(1, "day")), str(Age(6, "hour"))
        ('1 day', '6 hours')
        """
        return f"{self.count} {self.period}{'' if self.count == 1 else 's'}"


@dataclass(frozen=True)
class Freshness:
    """The thresholds of a source: the ages after which there is a warning, and an error. Rows for which `filter` is not
    true do not count.
    """

    warn_after: Age | None = None
    error_after: Age | None = None
    filter: str = ""


ANY_AGE = Freshness()


def read_freshness(yaml: Yaml | None, outer: Freshness = ANY_AGE) -> Freshness:
    """Returns the thresholds of a source, with those of `outer` in place of the ones that the source does not name. An
    empty value means no thresholds. Raises `setting-value`.
    """
    if yaml is None:
        return outer
    if yaml.value is None:
        return ANY_AGE
    yaml.only(FRESHNESS_KEYS)
    said: dict[str, Any] = {key: _setting(key, one) for key, one in yaml.items()}
    return replace(outer, **said)


def _setting(key: str, yaml: Yaml) -> Age | str | None:
    if key == "filter":
        return expression(yaml, key) if yaml.value else ""
    return _age(yaml) if yaml.value is not None else None


def _age(yaml: Yaml) -> Age:
    hint = "{count: 12, period: hour}"
    yaml.only(AGE_KEYS)
    count = whole_number(yaml["count"].text()) if yaml.get("count") else None
    if count is None or not yaml.get("period"):
        raise yaml.error("setting-value", "an age is a whole number and a period", hint)
    period = yaml["period"].text()
    if period not in SECONDS:
        raise yaml["period"].error("setting-value", f'no such period: "{period}"', nearest_or_all(period, SECONDS))
    return Age(count, period)
