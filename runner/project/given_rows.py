"""The rows of a unit test: in its own file, or in one of tests/fixtures/, as YAML or CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runner.csv_text import Csv, csv_of, read_csv
from runner.errors import nearest_or_all
from runner.project.properties import mappings, needed, rows
from runner.yaml_text import Yaml, read_yaml

ROWS_KEYS = ("rows", "format", "fixture")
FORMATS = ("dict", "csv")
FIXTURES = (".csv", ".yml")


def given_rows(yaml: Yaml, root: Path) -> list[Any]:
    """Mappings of columns to values: text, None, lists and dicts; raises `unit-test-rows`."""
    kind = yaml["format"].text() if yaml.get("format") else FORMATS[0]
    if kind not in FORMATS:
        hint = "write the rows, as dict or csv" if kind == "sql" else nearest_or_all(kind, FORMATS)
        raise yaml["format"].error("unit-test-rows", f'rows cannot be in "{kind}"', hint)
    if yaml.get("fixture"):
        return _fixture(yaml["fixture"], root / "tests" / "fixtures")
    if kind == "csv":
        written = needed(yaml, "rows")
        return _of_csv(csv_of(written.text().strip(), written.where().path))
    return rows(yaml)


def _fixture(yaml: Yaml, folder: Path) -> list[Any]:
    """The rows of a file in a folder, whose name is given with its ending or without."""
    name = yaml.text()
    files = sorted(path for path in folder.rglob("*") if path.suffix in FIXTURES)
    found = [path for path in files if name in (path.name, path.stem)]
    if len(found) != 1:
        what = f'there is no fixture "{name}"' if not found else f'{len(found)} fixtures have the name "{name}"'
        hint = nearest_or_all(name, [path.name for path in files]) or "tests/fixtures/NAME.csv, or NAME.yml"
        raise yaml.error("unit-test-rows", what, hint)
    return _of_csv(read_csv(found[0])) if found[0].suffix == ".csv" else mappings(read_yaml(found[0]))


def _of_csv(read: Csv) -> list[Any]:
    return [dict(zip(read.columns, row)) for row in read.rows]
