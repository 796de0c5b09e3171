"""The readers that compiled SQL takes from the types of columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran


@pytest.fixture
def readers(project: Callable[..., Path], runner: Callable[..., Ran]) -> Callable[..., str]:
    """The function that finds the readers of columns, of a format that extends Canal's; with tables of types."""

    def readers_of(spec: str, **tables: str) -> str:
        types = {f"formats/types/{name}.yml": text for name, text in tables.items()}
        source = "sources: [{name: shop, format: f, files: in/*}]\n"
        project({"formats/f.yml": f"extends: canal\n{spec}\n", "project.yml": source, **types})
        ran = runner("compile", "--runnable", "-s", "shop_to_changelog")
        assert ran.code == 0, ran.err
        return ran.out.split("function `shop_readers`")[1].split(";\n")[0]

    return readers_of


@pytest.mark.parametrize("cases", ["Oracle*: oracle", "Oracle*: oracle, MySQL: mysql"])
def test_messages_that_no_table_of_types_is_for_have_no_readers(readers: Callable[..., str], cases: str) -> None:
    """Values without a reader stay as sent, and are not counted among those that could not be read."""
    found = readers(f"types: {{at: mysqlType, table: {{by: dbType, cases: {{{cases}}}, else: none}}}}")
    assert "return map_filter(" in found and "(c, reader) -> reader is not null)" in found


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
    readers: Callable[..., str], types: str, whole: bool
) -> None:
    """The first word costs less."""
    assert ("regexp_replace" in readers("types: {at: mysqlType, table: t}", t=types)) is whole


def test_a_table_of_types_adds_its_names_to_those_of_the_table_that_it_extends(readers: Callable[..., str]) -> None:
    """A name in both has its own class, and its own reader or none."""
    base = "datetime: [clock, moment]\nbinary: [{name: blob, as: hex}, {name: raw, as: hex}]\n"
    own = "extends: base\nstring: [moment, blob]\ndatetime: [day]\n"
    found = readers("types: {at: mysqlType, table: t}\nvalues: {binary: none}", t=own, base=base)
    named = [name for name in ("clock", "day", "raw", "moment", "blob") if f"'{name}'" in found]
    assert named == ["clock", "day", "raw"]


@pytest.mark.parametrize(
    ("order", "word"), [("[as_sent, base64]", None), ("[base64, as_sent]", "'base64_bits or as_sent'")]
)
def test_only_values_that_need_to_be_read_have_readers(
    readers: Callable[..., str], order: str, word: str | None
) -> None:
    found = readers(f"values: {{bit: {order}}}")
    assert ("'bit'" in found) == (word is not None)
    assert word is None or word in found
