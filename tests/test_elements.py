"""Messages that hold several are taken apart in their text: against Python's own parser, over random documents."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from runner.functions.elements import json_elements


def value(draw: random.Random, depth: int) -> Any:
    if depth and draw.random() < 0.5:
        members = [value(draw, depth - 1) for _ in range(draw.randrange(4))]
        return members if draw.random() < 0.5 else {draw.choice(["a", "b", "[", '"', "中"]): one for one in members}
    return draw.choice([None, True, 1, -2.5, "", "x", "],[", '"', "\\", '{"list":[1]}', "é\ud7ff"])


@pytest.mark.parametrize("path", [["list"], ["a", "list"], ['"'], []], ids=str)
def test_against_python(path: list[str]) -> None:
    draw = random.Random(3)
    for _ in range(300):
        elements = [value(draw, 3) for _ in range(draw.randrange(1, 4))]
        document: Any = elements
        for name in reversed(path):
            document = {**{f"before{n}": value(draw, 2) for n in range(draw.randrange(3))}, name: document, "z": 1}
        text = json.dumps(document, indent=draw.choice([None, 1]), ensure_ascii=draw.random() < 0.5)
        expected = []
        for element in elements:
            one = json.loads(text)
            holder = one
            for name in path[:-1]:
                holder = holder[name]
            if path:
                holder[path[-1]] = element
            expected.append(one if path else element)
        assert [json.loads(found) for found in json_elements(text, path) or []] == expected


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
