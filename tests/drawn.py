"""Random examples that are used together, where one by one would cost a query each."""

from __future__ import annotations

from typing import TypeVar

from hypothesis import Phase, given, settings
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")


def drawn(strategy: SearchStrategy[T], count: int) -> list[T]:
    """The different ones of so many examples, or of as many as other tests have if these are more."""
    found: dict[str, T] = {}

    @settings(max_examples=max(count, settings().max_examples), phases=[Phase.generate])
    @given(strategy)
    def draw(one: T) -> None:
        found[repr(one)] = one

    draw()
    return list(found.values())
