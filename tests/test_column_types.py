"""The readers that compiled SQL takes from the types of columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran

FORMAT = "extends: canal\ntypes: {at: mysqlType, table: {by: dbType, cases: {%s}, else: none}}\n"


@pytest.mark.parametrize("cases", ["Oracle*: oracle", "Oracle*: oracle, MySQL: mysql"])
def test_messages_that_no_table_of_types_is_for_have_no_readers(
    project: Callable[..., Path], runner: Callable[..., Ran], cases: str
) -> None:
    """Values without a reader stay as sent, and are not counted among those that could not be read."""
    files = {"formats/f.yml": FORMAT % cases, "project.yml": "sources: [{name: shop, format: f, files: in/*}]\n"}
    project(files)
    ran = runner("compile", "--runnable", "-s", "shop_to_changelog")
    assert ran.code == 0, ran.err
    readers = ran.out.split("function `shop_readers`")[1].split(";\n")[0]
    assert "return map_filter(" in readers and "(c, reader) -> reader is not null)" in readers
