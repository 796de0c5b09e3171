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


@pytest.mark.parametrize(
    ("types", "whole"),
    [
        ("datetime: [time stamp, time]\n", False),
        ("datetime: [time stamp]\nstring: [time]\n", True),
        ("datetime: [time]\nstring: [time stamp]\n", True),
        ("integer: [int, int big]\ndatetime: [time]\n", False),
    ],
)
def test_types_are_looked_up_by_whole_names_only_where_the_first_word_does_not_decide(
    project: Callable[..., Path], runner: Callable[..., Ran], types: str, whole: bool
) -> None:
    """The first word costs less."""
    files = {
        "formats/f.yml": "extends: canal\ntypes: {at: mysqlType, table: t}\n",
        "formats/types/t.yml": types,
        "project.yml": "sources: [{name: shop, format: f, files: in/*}]\n",
    }
    project(files)
    ran = runner("compile", "--runnable", "-s", "shop_to_changelog")
    assert ran.code == 0, ran.err
    assert ("regexp_replace" in ran.out.split("function `shop_readers`")[1].split(";\n")[0]) is whole


def test_a_table_of_types_adds_its_names_to_those_of_the_table_that_it_extends(
    project: Callable[..., Path], runner: Callable[..., Ran]
) -> None:
    """A name in both has its own class, and its own reader or none."""
    files = {
        "formats/f.yml": "extends: canal\ntypes: {at: mysqlType, table: t}\nvalues: {binary: none}\n",
        "formats/types/t.yml": "extends: base\nstring: [moment, blob]\ndatetime: [day]\n",
        "formats/types/base.yml": "datetime: [clock, moment]\nbinary: [{name: blob, as: hex}, {name: raw, as: hex}]\n",
        "project.yml": "sources: [{name: shop, format: f, files: in/*}]\n",
    }
    project(files)
    ran = runner("compile", "--runnable", "-s", "shop_to_changelog")
    assert ran.code == 0, ran.err
    readers = ran.out.split("function `shop_readers`")[1].split(";\n")[0]
    assert {name: f"'{name}'" in readers for name in ("clock", "day", "raw", "moment", "blob")} == {
        "clock": True,
        "day": True,
        "raw": True,
        "moment": False,
        "blob": False,
    }


@pytest.mark.parametrize(
    ("readers", "word"), [("[as_sent, base64]", None), ("[base64, as_sent]", "'base64_bits or as_sent'")]
)
def test_only_values_that_need_to_be_read_have_readers(
    project: Callable[..., Path], runner: Callable[..., Ran], readers: str, word: str | None
) -> None:
    spec = f"extends: canal\nvalues: {{bit: {readers}}}\n"
    project({"formats/f.yml": spec, "project.yml": "sources: [{name: shop, format: f, files: in/*}]\n"})
    ran = runner("compile", "--runnable", "-s", "shop_to_changelog")
    assert ran.code == 0, ran.err
    function = ran.out.split("function `shop_readers`")[1].split(";\n")[0]
    assert ("'bit'" in function) == (word is not None)
    assert word is None or word in function
