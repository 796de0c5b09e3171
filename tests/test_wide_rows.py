"""Rows of very many columns: the same as rows of few, and in a time that follows their number."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any, NamedTuple

import pyarrow.parquet
import pytest

from runner.cli import main

# With times or searches that grow with the square of the number, the last would take an hour.
WIDTHS = (7, 90, 180, 1_400, 80_000)
PROJECT = """
targets: {local: {path: warehouse}}
sources: [{name: app, format: canal, files: in.jsonl, zone: America/New_York}]
"""
HEADER = {"database": "d", "table": "t", "es": 1700000000000}


class Kind(NamedTuple):
    """Columns of one type: what is sent before and after a change, and the text of each; `flag` names the list in
    `meta` that has the columns whose value after the change needs a word.
    """

    type: str
    sent: tuple[Any, Any]
    text: tuple[str | None, str | None]
    flag: str | None = None


def in_base64(text: str) -> str:
    return b64encode(text.encode("latin-1")).decode()


# The 1st of each seven columns is of the key.
KINDS = (
    Kind("varchar(10)", ("k", "k"), ("k", "k")),
    Kind("decimal(20,2)", ("2.50", "1.5e1"), ("2.50", "15")),
    Kind("decimal(20,2)", (None, "many"), (None, "many"), "as_sent"),
    Kind("binary(3)", ("\u00e9a", "b"), (in_base64("\u00e9a"), in_base64("b"))),
    Kind("binary(3)", ("c", 7), (in_base64("c"), "7"), "as_sent"),
    Kind("enum('x','y')", ("1", "2"), ("x", "y")),
    # One in the morning came twice in this night.
    Kind(
        "timestamp",
        ("2021-01-01 00:00:00", "2021-11-07 01:30:00"),
        ("2021-01-01T05:00:00Z", "2021-11-07T05:30:00Z"),
        "ambiguous_times",
    ),
)


def columns(width: int) -> dict[str, Kind]:
    return {f"c{number}": KINDS[number % len(KINDS)] for number in range(width)}


def message(table: dict[str, Kind], op: str) -> str:
    """An insert, or an update whose `old` has the columns in another order and lacks those that have not changed."""
    before = {name: kind.sent[0] for name, kind in reversed(table.items()) if kind.sent[0] != kind.sent[1]}
    keys = [name for name, kind in table.items() if kind is KINDS[0]]
    types = {name: kind.type for name, kind in table.items()}
    after = {name: kind.sent[1] for name, kind in table.items()}
    sent = {**HEADER, "type": op, "pkNames": keys, "mysqlType": types, "data": [after]}
    return json.dumps({**sent, "old": [before]} if op == "UPDATE" else sent)


def expected(table: dict[str, Kind], op: str) -> dict[str, Any]:
    def named(flag: str) -> str:
        return ",".join(sorted(name for name, kind in table.items() if kind.flag == flag))

    is_update = op == "UPDATE"
    return {
        "op": op.lower(),
        "key": {name: kind.text[1] for name, kind in table.items() if kind is KINDS[0]},
        "before": {name: kind.text[0] for name, kind in table.items()} if is_update else None,
        "after": {name: kind.text[1] for name, kind in table.items()},
        "before_image": "full" if is_update else "none",
        "after_image": "full",
        "changed": sorted(name for name, kind in table.items() if kind.text[0] != kind.text[1]) if is_update else None,
        "as_sent": named("as_sent"),
        "ambiguous_times": named("ambiguous_times"),
    }


TABLES = [(columns(width), op) for width in WIDTHS for op in ("INSERT", "UPDATE")]


def like_number(width: int) -> str:
    """An insert of texts in binary columns, of which one looks like a number."""
    names = [f"c{number}" for number in range(width)]
    data = [{**dict.fromkeys(names, "a"), "c0": "7"}]
    types = dict.fromkeys(names, "binary(3)")
    return json.dumps({**HEADER, "type": "INSERT", "pkNames": [], "mysqlType": types, "data": data})


@pytest.fixture(scope="module")
def landed(spark: object, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The rows of TABLES, then those of texts that look like numbers."""
    folder = tmp_path_factory.mktemp("wide")
    (folder / "project.yml").write_text(PROJECT)
    sent = [*(message(table, op) for table, op in TABLES), *map(like_number, (10, 1_001))]
    (folder / "in.jsonl").write_text("\n".join(sent))
    assert main(["run", "--project-dir", str(folder), "-s", "app_to_changelog"]) == 0
    found = pyarrow.parquet.read_table(folder / "warehouse/app_to_changelog").to_pylist()
    return sorted(found, key=lambda row: row["seq"]["arrival"])


def test_rows_of_many_columns_are_as_those_of_few(landed: list[dict[str, Any]]) -> None:
    for row, (table, op) in zip(landed[:-2], TABLES, strict=True):
        meta = dict(row["meta"])
        images = {name: row[name] and dict(row[name]) for name in ("key", "before", "after")}
        got = {**row, **images, **{flag: meta.get(flag) for flag in ("as_sent", "ambiguous_times")}}
        want = expected(table, op)
        assert {name: got[name] for name in want} == want, (len(table), op)


def test_texts_that_look_like_numbers_are_not_looked_up_in_very_wide_rows(landed: list[dict[str, Any]]) -> None:
    """The bytes of a text `7` are known to be a text in a row of few columns."""
    values = {len(row["after"]): (dict(row["after"])["c0"], dict(row["meta"]).get("as_sent")) for row in landed[-2:]}
    assert values == {10: (in_base64("7"), None), 1_001: ("7", "c0")}
