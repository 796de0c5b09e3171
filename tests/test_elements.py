"""Messages that hold several are taken apart in their text: against Python's own parser, over random documents."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.functions.frames import json_elements

SCALARS = st.sampled_from([None, True, 1, -2.5, "", "x", "],[", '"', "\\", '{"list":[1]}', "é\ud7ff"])
NAMES = st.sampled_from(["a", "b", "[", '"', "中"])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner), max_leaves=8)
ELEMENTS = st.lists(VALUES, min_size=1, max_size=3)
BESIDE = st.dictionaries(st.sampled_from(["before0", "before1"]), VALUES)
PATHS = st.sampled_from([["list"], ["a", "list"], ['"'], []])


@given(PATHS, ELEMENTS, BESIDE, st.sampled_from([None, 1]), st.booleans())
def test_against_python(
    path: list[str], elements: list[Any], beside: Any, indent: int | None, ascii_only: bool
) -> None:
    def document(held: Any) -> Any:
        for name in reversed(path):
            held = {**beside, name: held, "z": 1}
        return held

    text = json.dumps(document(elements), indent=indent, ensure_ascii=ascii)
    found = [json.loads(one) for one in json_elements(text, path) or []]
    assert found == [document(element) for element in elements]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1] x",
        '{"list": {"a": 1}}',
        '{"list": 5}',
        '{"list": null}',
        '{"other": [1]}',
        '["list"]',
        "[" * 9_000,
    ],
)
def test_without_a_list_the_text_stays(text: str) -> None:
    assert json_elements(text, ["list"]) == [text]


def test_of_equal_names_the_last_counts() -> None:
    assert json_elements('{"l": [1, 2], "l": [3]}', ["l"]) == ['{"l": [1, 2], "l": 3}']


def test_digits_stay() -> None:
    number = "1" * 5_000
    assert json_elements(f"[{number}, 1.10e400]", []) == [number, "1.10e400"]
