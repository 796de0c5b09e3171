"""docs/examples.md: a message of each format and the rows that it becomes, from the formats' cases. Without arguments
the page is rewritten, with --check the exit code is 1 if it is not current.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import yaml

from runner.yaml_text import read_yaml

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "examples.md"
CHOSEN = Path(__file__).with_suffix(".yml")
# What a reader does not need to see, and what says the same as another column.
LEFT_OUT = ("kind", "key_text", "types", "raw", "meta")
WIDTH = 140
HEAD = """# Examples

A message of each built-in format and the rows of the changelog that it becomes, without the columns `types` and `meta`.
They are from the formats' cases in `formats/cases`; `tools/format_examples.py` writes this page.
"""


def page() -> str:
    """The text of the page."""
    return HEAD + "".join(_sections())


def _sections() -> Iterator[str]:
    for name, chosen in read_yaml(CHOSEN).value.items():
        about = read_yaml(ROOT / f"formats/{name}.yml")["about"].text()
        folder = ROOT / "formats/cases" / name
        case = read_yaml(folder / f"{chosen['case']}.rows.yml").value
        rows = _of_one_message(case["rows"], int(chosen.get("row", 0)))
        message = _message(folder, chosen["case"], int(chosen.get("message", 0)))
        given = f"\nThe source says `{json.dumps(case['source'], ensure_ascii=False)}`.\n" if case.get("source") else ""
        shown = "\n".join(map(_row, rows))
        yield f"\n## {name}\n\n{about}\n\n```json\n{message}\n```\n{given}\n```yaml\n{shown}```\n"


def _of_one_message(rows: list[dict[str, Any]], first: int) -> list[dict[str, Any]]:
    """The row with this number, which is the first of its message, and the others of the message."""
    numbers = (row.get("seq", {}).get("row", 0) for row in rows[first + 1 :])
    return rows[first : first + 1 + sum(1 for _ in takewhile(lambda number: int(number) > 0, numbers))]


def _message(folder: Path, case: str, number: int) -> str:
    """A message, laid out for reading. Of Avro the cases have a form in JSON, of topics whole records."""
    path = next(folder.glob(f"{case}.[mr]e*s.jsonl"))
    line = [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()][number]
    return _laid_out(json.loads(line, parse_float=_Number, parse_int=_Number), 0)


class _Number(str):
    """The digits of a number, as they were sent."""


def _laid_out(value: Any, indent: int) -> str:
    """JSON in which objects and lists stand on one line where they fit."""
    flat = _flat_json(value)
    if len(flat) + indent <= WIDTH or not isinstance(value, (dict, list)):
        return flat
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        inner = [f"{_flat_json(key)}: {_laid_out(one, indent + 2)}" for key, one in value.items()]
        return "{\n" + ",\n".join(pad + one for one in inner) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(pad + _laid_out(one, indent + 2) for one in value) + "\n" + " " * indent + "]"


def _flat_json(value: Any) -> str:
    """
    >>> _flat_json({"a": [_Number("1.50"), "1.50", None]})
    '{"a": [1.50, "1.50", null]}'
    """
    match value:
        case _Number():
            return str(value)
        case dict():
            return "{" + ", ".join(f"{_flat_json(key)}: {_flat_json(one)}" for key, one in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_flat_json, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _row(row: dict[str, Any]) -> str:
    shown = {key: value for key, value in row.items() if value not in (None, {}) and key not in LEFT_OUT}
    return "".join(f"{key}: {_flow(value)}\n" for key, value in shown.items())


def _flow(value: Any) -> str:
    """A value as YAML on one line."""
    text: str = yaml.safe_dump(value, allow_unicode=True, sort_keys=False, default_flow_style=True, width=10_000)
    return text.removesuffix("\n").removesuffix("\n...")


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(PAGE.read_text(encoding="utf-8") != page())
    PAGE.write_text(page(), encoding="utf-8")
