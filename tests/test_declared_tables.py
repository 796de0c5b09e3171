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


@pytest.mark.parametrize("name", ["table_path", "x.table_path", "table_path.table_path", "it's"])
def test_a_key_is_for_the_table_of_exactly_that_name(compiled: Callable[..., str], name: str) -> None:
    path, quoted = "concat_ws('.', nullif(m.`database`, ''), nullif(m.`table`, ''))", name.replace("'", "\\'")
    sql = compiled(f'{{name: "{name}", key: [id]}}')
    assert f"when ({path} = '{quoted}' or endswith({path}, '.{quoted}')) then array('id')" in sql


def test_columns_are_those_of_the_table_of_exactly_that_name(compiled: Callable[..., str]) -> None:
    sql = compiled("{name: x.table_path, columns: {at: datetime}}")
    assert "when (table_path = 'x.table_path' or endswith(table_path, '.x.table_path')) then map(" in sql
