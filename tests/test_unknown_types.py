"""Notes on types that are in no table of types: in a run on what it has landed, in `parse` on what it shows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from runner.compile.column_types import unknown_types
from runner.project.inputs import TableSettings
from runner.run.models import FEW_ROWS
from runner.spec.formats import FormatFolders
from tests.conftest import Ran
from tests.small_format import SMALL

ROOT = Path(__file__).parent.parent
FORMATS = FormatFolders((ROOT / "formats",))
SOURCES = """
name: notes
sources:
  - name: shop
    format: typed
    files: in/*
    tables: [{name: shop.t, columns: {declared: varchar}}]
"""
NOTE = 'note: type "hstore" of columns shop.t.a, shop.t.b, shop.u.a is in no table of types: their values stay as sent'


def row(table: str, **types: str | None) -> dict[str, object]:
    return {"tenant": None, "db_name": "shop", "schema_name": None, "table_name": table, "types": types or None}


def message(table: str, types: Mapping[str, str]) -> bytes:
    sent = {"op": "insert", "db": "shop", "table": table, "types": types, "row": dict.fromkeys(types, "1")}
    return json.dumps(sent).encode() + b"\n"


@pytest.mark.parametrize(
    "type_name", ["VARCHAR(10)", "int unsigned zerofill", "enum('a)','b')", "text", "double precision", "text[]"]
)
def test_types_of_every_class_are_known(type_name: str) -> None:
    assert unknown_types(FORMATS.load("canal"), [row("t", a=type_name)]) == {}


def test_unknown_types_are_told_once_with_their_columns() -> None:
    rows = [row("t", b="hstore", a="hstore"), row("t", a="hstore", c="Box(1)"), row("u", a=None), row("u")]
    expected = {"Box(1)": ["shop.t.c"], "hstore": ["shop.t.a", "shop.t.b"]}
    assert unknown_types(FORMATS.load("canal"), rows) == expected


def test_a_type_that_the_table_of_any_database_has_is_known() -> None:
    rows = [row("t", a="NUMBER", b="int4", c="datetimeoffset", d="hstore")]
    assert list(unknown_types(FORMATS.load("drs_sql"), rows)) == ["hstore"]


@pytest.mark.parametrize("name", ["oceanbase_avro", "oms_default"])
def test_formats_without_tables_of_types_know_none(name: str) -> None:
    assert unknown_types(FORMATS.load(name), [row("t", a="252")]) == {}


@pytest.mark.parametrize(("name", "known"), [(("t",), True), (("shop", "t"), True), (("p", "t"), False)])
def test_declared_columns_do_not_count(name: tuple[str, ...], known: bool) -> None:
    declared = [TableSettings(name, columns={"a": "text"})]
    assert (unknown_types(FORMATS.load("canal"), [row("t", a="hstore")], declared) == {}) is known


@pytest.mark.usefixtures("spark", "interpreted")
def test_a_run_notes_the_unknown_types_of_what_it_has_landed(
    project: Callable[..., Path], runner: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of few rows, and of those that are too many to be looked at one by one."""
    first = [
        message("t", {"a": "hstore", "b": "hstore", "c": "varchar(10)", "declared": "hstore"}),
        message("u", {"a": "hstore", "b": "int"}),
        message("u", {"a": "int"}),
    ]
    spec = f"{SMALL}types: {{at: types, table: mysql}}\n"
    folder = project({"project.yml": SOURCES, "formats/typed.yml": spec})
    (folder / "in").mkdir()
    for number, (messages, few_rows) in enumerate([(first, FEW_ROWS), (first[2:], FEW_ROWS), (first, 0)]):
        monkeypatch.setattr("runner.run.models.FEW_ROWS", few_rows)
        (folder / f"in/{number}.jsonl").write_bytes(b"".join(messages))
        ran = runner("run", "-s", "shop_to_changelog")
        assert ran.code == 0 and ran.err.count("no table of types") == ran.err.count(NOTE) == (messages is first)
    ran = runner("parse", "typed", "in/0.jsonl")
    note = NOTE.replace("shop.t.b, shop.u.a", "shop.t.b, shop.t.declared, shop.u.a")
    assert ran.code == 0 and f"{note}\n" in ran.err and len(ran.out.splitlines()) == 3, ran.err
