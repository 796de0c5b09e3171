"""Tables on a screen: they fit its width, and nothing of what they show is lost (runner/grid.py)."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.grid import grid

ROWS = [
    {"id": 1, "name": "数据库 中文", "after": {"id": "1", "note": "two words", "at": "2024-01-01T00:00:00"}},
    {"id": 22, "name": None, "after": {}},
]
COLUMNS = ["id", "name", "after"]
WIDE = """\
id | name        | after
-- | ----------- | ---------------------------------------------------------
1  | 数据库 中文 | {"id":"1","note":"two words","at":"2024-01-01T00:00:00"}
22 |             | {}
"""
WRAPPED = """\
id | name        | after
-- | ----------- | --------------------------------
1  | 数据库 中文 | {"id":"1","note":"two words",
   |             | "at":"2024-01-01T00:00:00"}

22 |             | {}
"""
BLOCKS = """\
-- row 1 ----------------------------------------
id     1
name   数据库 中文
after  {"id":"1","note":"two words",
       "at":"2024-01-01T00:00:00"}
-- row 2 ----------------------------------------
id     22
"""


def columns_of(line: str) -> int:
    """How many columns of a terminal a line of these tests takes."""
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in line)


@pytest.mark.parametrize(("width", "text"), [(100, WIDE), (50, WRAPPED), (35, BLOCKS)])
def test_a_table_comes_first_and_blocks_only_if_it_cannot_fit(width: int, text: str) -> None:
    shown = [line.rstrip() for line in grid(COLUMNS, ROWS, width)]
    # The dashes are as long as what stands above and below them, whatever the width.
    assert [line for line in shown if "--" not in line] == [line for line in text.splitlines() if "--" not in line]


NAMES = [f"column_{number}" for number in range(5)]
TEXTS = st.text("abc 数据 {}:,\"'", max_size=60).map(str.strip)


@given(st.integers(1, 5), st.lists(st.tuples(*[TEXTS] * 5), min_size=1, max_size=3), st.integers(20, 120))
def test_a_table_never_exceeds_the_width_and_keeps_all_that_it_shows(count: int, texts: list[Any], width: int) -> None:
    names = NAMES[:count]
    rows = [dict(zip(names, row)) for row in texts]
    lines = list(grid(names, rows, width))
    shown = "".join(lines).replace(" ", "").replace("|", "")
    if not lines[0].startswith("-- row 1 "):
        assert max(map(columns_of, lines)) <= width
    for row in rows:
        for value in row.values():
            assert all(shown.count(each) >= value.count(each) for each in set(value) - {" "})


def test_what_would_move_the_cursor_is_shown_as_a_code() -> None:
    assert list(grid(["a"], [{"a": "x\x1b[2Jy\rz\tu"}], 80))[2] == "x\\x1b[2Jy z u"


def test_a_very_long_value_ends_with_how_much_is_missing() -> None:
    lines = list(grid(["a"], [{"a": "word " * 1000}], 60))
    assert lines[0].startswith("-- row 1 ") and len(lines) == 13 and lines[-1].endswith("more lines")


@pytest.mark.parametrize(
    "value", ["9" * 5000, int("9" * 4000), ["9" * 5000], {"a": "9" * 5000}], ids=["text", "number", "list", "map"]
)
def test_a_number_of_thousands_of_digits_is_not_shown_whole_on_any_screen(value: Any) -> None:
    shown = "".join(grid(["a"], [{"a": value}], 10_000))
    assert 900 < shown.count("9") <= 1000 and "…" in shown
