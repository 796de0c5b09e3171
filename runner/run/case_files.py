"""The rows of a case of a format as a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from runner.run.compare import case_row


class _Flow(dict[str, Any]):
    """A mapping that is written on one line."""


class _Dumper(yaml.SafeDumper):
    """Writes YAML without aliases, which people do not read easily."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


# Escaped in quotes; elsewhere they would break the line.
_BREAKS = frozenset("\n\r\x85\u2028\u2029")
_Dumper.add_representer(
    str,
    lambda dumper, value: dumper.represent_scalar(
        "tag:yaml.org,2002:str", value, style='"' if _BREAKS.intersection(value) else None
    ),
)
_Dumper.add_representer(
    list, lambda dumper, value: dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=True)
)
_Dumper.add_representer(
    _Flow, lambda dumper, value: dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=True)
)


def case_text(about: str, source: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """The text of a `NAME.rows.yml`. Of `source`, what is None or empty is left out."""
    settings = _Flow({key: value for key, value in source.items() if value})
    head = _written({"about": about, **({"source": settings} if settings else {})})
    return head + ("rows:\n" + "\n".join(_row(case_row(row)) for row in rows) if rows else "rows: []\n")


def _row(row: Mapping[str, Any]) -> str:
    columns = {name: _Flow(value) if isinstance(value, dict) else value for name, value in row.items()}
    lines = _written(columns).rstrip("\n").split("\n")
    return "".join(f"  {'- ' if number == 0 else '  '}{line}\n" for number, line in enumerate(lines))


def _written(value: Mapping[str, Any]) -> str:
    """Each entry on a line of its own, however long it is."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf"))
    return text
