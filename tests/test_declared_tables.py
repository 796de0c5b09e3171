"""Tables that a source declares, in the compiled SQL: each is compared by exactly its name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran

SOURCE = "sources: [{name: shop, format: %s, files: in/*, tables: [%s]}]\n"


@pytest.fixture
def compiled(project: Callable[..., Path], runner: Callable[..., Ran]) -> Callable[..., str]:
    """The SQL of a source with a format and with tables, given as YAML."""

    def compile_source(tables: str, format_: str = "canal") -> str:
        project({"project.yml": SOURCE % (format_, tables)})
        ran = runner("compile", "-q", "-s", "shop_to_changelog")
        assert ran.code == 0, ran.err
        return " ".join(ran.out.split())

    return compile_source


def test_names_are_compared_part_by_part_from_the_right(compiled: Callable[..., str]) -> None:
    tables = {
        "table_names": "'table_names'",
        "x.orders": "'x', 'orders'",
        'x."v1.orders"': "'x', 'v1.orders'",
        'a.b.c."it\'s"': "'a', 'b', 'c', 'it\\'s'",
    }
    quoted = [name.replace("'", "''") for name in tables]
    sql = compiled(", ".join(f"{{name: '{name}', key: [id], columns: {{at: datetime}}}}" for name in quoted))
    for parts in tables.values():
        count = parts.count(", ") + 1
        is_table = f"slice(table_names, -{count}, {count}) = array({parts})"
        assert f"when {is_table} then array('id')" in sql
        assert f"when {is_table} then map('at'," in sql


def test_names_that_a_message_lacks_do_not_count(compiled: Callable[..., str]) -> None:
    null = "cast(null as string)"
    names = f"array_compact(array({null}, nullif(m.`database`, ''), {null}, nullif(m.`table`, ''))) as table_names"
    assert names in compiled("{name: orders, key: [id]}")


def test_columns_whose_values_stay_as_sent_need_no_reader(compiled: Callable[..., str]) -> None:
    assert "then c in ('code') end, false)), map()), map()) as readers" in compiled("{name: t, columns: {code: text}}")
