"""Time zones, as specs and sources name them."""

from __future__ import annotations

import re
import zoneinfo

from runner.errors import did_you_mean
from runner.yaml_text import Yaml

OFFSET = re.compile(r"(?:UTC|GMT|UT)?[+-](?:(?:0[0-9]|1[0-7]):[0-5][0-9]|18:00)")
# Most names of three letters are abbreviations that stand for several zones, such as CST: only these are allowed.
NAME = re.compile(r"UTC|GMT|UCT|PRC|ROC|ROK|[CEMW]ET|(?![A-Z]{3}$)[A-Z][A-Za-z0-9_+\-]*(/[A-Za-z0-9_+\-]+)*")


def read_zone(yaml: Yaml | None) -> str | None:
    """Returns an offset, or the name of a zone that exists; None if absent, null or `none`. Raises `spec-zone`.

    >>> [read_zone(Yaml(text, {})) for text in ("+08:00", "GMT+08:00", "UTC", "PRC", "Asia/Shanghai", "none")]
    ['+08:00', 'GMT+08:00', 'UTC', 'PRC', 'Asia/Shanghai', None]
    """
    if yaml is None or yaml.value in (None, "none"):
        return None
    text = yaml.text()
    if OFFSET.fullmatch(text) or (NAME.fullmatch(text) and _exists(text)):
        return text
    hint = did_you_mean(text, zoneinfo.available_timezones()) if "/" in text else ""
    raise yaml.error(
        "spec-zone",
        f'"{text}" is not a time zone',
        hint or 'write an IANA name such as Asia/Shanghai or an offset such as "+08:00"; abbreviations are ambiguous',
    )


def _exists(name: str) -> bool:
    try:
        return name != "Factory" and bool(zoneinfo.ZoneInfo(name))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
