"""The differences between rows and expected rows, as lines that a person can read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import yaml


class Call(Protocol):
    """A call of a function in a test."""

    @property
    def given(self) -> Iterable[Any]:
        """The arguments, as YAML values."""


# Columns that the rows of cases leave out: they depend on the run, or are the same in all rows of a case.
NOT_IN_CASES = ("source", "format", "origin", "detail", "run_id", "batch", "loaded_at", "landed_on")


def case_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a changelog row as cases write it: without nulls, and without anything that depends on the run.

    >>> case_row({"kind": "row", "op": None, "meta": {}, "origin": {}, "seq": {"row": 0, "arrival": [1]}})
    {'kind': 'row', 'seq': {'row': 0}}
    """
    out = {column: value for column, value in row.items() if value is not None and column not in NOT_IN_CASES}
    if not out.get("meta"):
        out.pop("meta", None)
    if "seq" in out:
        out["seq"] = {part: value for part, value in out["seq"].items() if part != "arrival"}
    return out


def place(row: Mapping[str, Any]) -> tuple[Any, Any]:
    """Returns the place of a changelog row among those of its source."""
    return row["seq"]["arrival"], row["seq"]["row"]


def as_text(value: Any) -> Any:
    """Returns a plain value with each number and boolean as text, as YAML has them.

    >>> as_text({"a": [1, None, True, 1.5]})
    {'a': ['1', None, 'true', '1.5']}
    """
    match value:
        case dict():
            return {key: as_text(v) for key, v in value.items()}
        case list():
            return [as_text(v) for v in value]
        case bool():
            return "true" if value else "false"
        case None | str():
            return value
    return str(value)


def in_order(got: list[Mapping[str, Any]], expected: list[Mapping[str, Any]]) -> list[str]:
    """Returns the differences between two lists of rows, row by row, in the columns that any expected row has.

    >>> in_order([{"a": "1", "b": "5"}], [{"a": "2"}, {"a": "3"}])
    ['row 0: a: got "1", expected "2"', 'row 1: missing: {"a": "3"}']
    """
    stated = list(dict.fromkeys(column for row in expected for column in row))
    out = []
    for number in range(max(len(got), len(expected))):
        if number >= len(got):
            out.append(f"row {number}: missing: {_json(expected[number])}")
        elif number >= len(expected):
            out.append(f"row {number}: not expected: {_json(got[number])}")
        else:
            out += [f"row {number}: {line}" for line in _columns(stated, got[number], expected[number])]
    return out


def in_any_order(got: Iterable[Mapping[str, Any]], expected: Iterable[Mapping[str, Any]]) -> list[str]:
    """Returns the rows that only one of two lists has.

    >>> in_any_order([{"a": "1"}, {"a": "2"}], [{"a": "2"}, {"a": "3"}])
    ['- missing: {"a": "3"}', '+ not expected: {"a": "1"}']
    """
    left = [_json(as_text(row)) for row in got]
    missing = []
    for row in expected:
        text = _json(as_text(row))
        if text in left:
            left.remove(text)
        else:
            missing.append(f"- missing: {text}")
    return missing + [f"+ not expected: {text}" for text in left]


def in_calls(function: str, cases: Iterable[Call], rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Returns the calls of a function that do not return what is expected. A row has the number of a call and, as JSON,
    the value that the call returned and the expected value. Fractions are compared as they are written.
    """
    by_number = {row["number"]: row for row in rows}
    out = []
    for number, case in enumerate(cases):
        got, expected = (json.loads(by_number[number][side], parse_float=str) for side in ("got", "expected"))
        if got != expected:
            arguments = ", ".join(_json(value) for value in case.given)
            told = f"got {_json(got['value'])}, expected {_json(expected['value'])}"
            out.append(f"{function}({arguments}): {told}")
    return out


def _columns(names: Iterable[str], got: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    return [
        f"{name}: got {_json(got.get(name))}, expected {_json(expected.get(name))}"
        for name in names
        if got.get(name) != expected.get(name)
    ]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


class _Flow(dict[str, Any]):
    """A mapping that is written on one line."""


# Line breaks: YAML escapes them in quotes; without quotes they would break the line.
_BREAKS = frozenset("\n\r\x85\u2028\u2029")


class _Dumper(yaml.SafeDumper):
    """Writes lists on one line, and no aliases, which people do not read easily."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def text(self, value: str) -> yaml.Node:
        return self.represent_scalar("tag:yaml.org,2002:str", value, style='"' if _BREAKS.intersection(value) else None)

    def list_on_a_line(self, value: list[Any]) -> yaml.Node:
        return self.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=True)

    def mapping_on_a_line(self, value: dict[str, Any]) -> yaml.Node:
        return self.represent_mapping("tag:yaml.org,2002:map", value, flow_style=True)


_Dumper.add_representer(str, _Dumper.text)
_Dumper.add_representer(list, _Dumper.list_on_a_line)
_Dumper.add_representer(_Flow, _Dumper.mapping_on_a_line)


def case_text(about: str, source: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns the text of a `NAME.rows.yml`, without the entries of `source` that are None or empty."""
    settings = _Flow({key: value for key, value in source.items() if value})
    head = _written({"about": about, **({"source": settings} if settings else {})})
    return head + ("rows:\n" + "\n".join(_row(case_row(row)) for row in rows) if rows else "rows: []\n")


def _row(row: Mapping[str, Any]) -> str:
    columns = {name: _Flow(value) if isinstance(value, dict) else value for name, value in row.items()}
    lines = _written(columns).rstrip("\n").split("\n")
    return "".join(f"  {'- ' if number == 0 else '  '}{line}\n" for number, line in enumerate(lines))


def _written(value: Mapping[str, Any]) -> str:
    """Returns YAML with each entry on a line of its own, however long the entry is."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf"))
    return text
