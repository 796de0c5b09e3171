"""A spec that reads one thing wrongly is noticed: a case of the format fails, in the column that became wrong."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from runner.contract import COLUMNS
from runner.run.compare import NOT_IN_CASES
from tests.pages import ROOT, table

FORMATS = ROOT / "formats"
# The columns of a row, which stand in lines of their own; reading all cases as YAML takes long.
COLUMN = re.compile(r"^  (?:- |  )(\w+):", re.MULTILINE)


class Mutation(NamedTuple):
    """`text` is in the spec once; `case` fails in `column` with `instead` in its place."""

    text: str
    instead: str
    case: str
    column: str


# Format -> lists of mutations of its spec that are made together.
MUTATIONS = {
    name: [[Mutation(**one) for one in together] for together in lists]
    for name, lists in table("spec_mutations").items()
}
ALL = [(name, one) for name, lists in MUTATIONS.items() for mutations in lists for one in mutations]


def spec_of(format_name: str) -> str:
    return (FORMATS / f"{format_name}.yml").read_text(encoding="utf-8")


def write_dialect(root: Path, name: str, format_name: str, mutations: list[Mutation], cases: set[str]) -> None:
    """The format with these mutations under another name, with these of its cases."""
    spec = spec_of(format_name)
    for mutation in mutations:
        assert spec.count(mutation.text) == 1, mutation
        spec = spec.replace(mutation.text, mutation.instead)
    folder = root / "formats/cases" / name
    folder.mkdir(parents=True)
    (root / f"formats/{name}.yml").write_text(spec, encoding="utf-8")
    for case in cases:
        files = list((FORMATS / "cases" / format_name).glob(f"{case}.*"))
        assert len(files) >= 2, f"{format_name} has no case {case}"
        for file in files:
            shutil.copy(file, folder)


def test_cases_state_every_column_of_every_format() -> None:
    """Only stated columns are compared: one that a format never fills is stated as null."""
    columns = set(COLUMNS) - set(NOT_IN_CASES)
    for folder in sorted((FORMATS / "cases").iterdir()):
        texts = [file.read_text(encoding="utf-8") for file in folder.glob("*.rows.yml")]
        assert columns <= {column for text in texts for column in COLUMN.findall(text)}, folder.name


@pytest.mark.usefixtures("spark", "interpreted")
def test_cases_notice_every_mutation_of_a_spec(project, runner) -> None:
    """Also that the same copies of cases pass with a spec that reads all as it should."""
    assert len(ALL) >= 12 and len(MUTATIONS) >= 6
    root = project()
    shutil.copytree(FORMATS / "schemas", root / "formats/schemas")
    write_dialect(root, "as_it_is", "canal", [], {one.case for name, one in ALL if name == "canal"})
    noticed = {}
    for format_name, lists in MUTATIONS.items():
        for number, mutations in enumerate(lists):
            name = f"{format_name}_{number}"
            write_dialect(root, name, format_name, mutations, {one.case for one in mutations})
            noticed |= {(f"unit_test.shop.{name}.{one.case}", one.column): one for one in mutations}
    assert len(noticed) == len(ALL)
    ran = runner("test", "--unit", "-s", " ".join(f"format:{path.stem}" for path in root.glob("formats/*.yml")))
    assert ran.code == 1, ran.err
    results = json.loads((root / "target/run_results.json").read_text())["results"]
    statuses = {one["unique_id"]: one["status"] for one in results}
    assert statuses == {name: "pass" if name.startswith("unit_test.shop.as_it_is.") else "fail" for name in statuses}
    messages = {one["unique_id"]: one["message"] or "" for one in results}
    assert not [one for (case, column), one in noticed.items() if f": {column}: got " not in messages[case]]
