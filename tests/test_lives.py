"""The reference of mirrors agrees with the simulated database. No Spark."""

from __future__ import annotations

from hypothesis import given, settings

from tests import lives


@settings(max_examples=50)
@given(lives.steps(20) | lives.steps(20, kinds=(*lives.CHANGES, "empty")))
def test_versions_that_are_current_are_the_rows_that_are_left(steps: list[lives.Step]) -> None:
    life = lives.Life(0).live(steps)
    # In any order, and some twice.
    told = [*reversed(life.messages), *life.messages[::4]]
    current = [dict(version.row) for version in lives.versions(told) if version.is_current]
    assert sorted(current, key=str) == sorted(life.rows.values(), key=str)


@settings(max_examples=50)
@given(lives.steps(20, kinds=lives.LOGGED_CHANGES))
def test_what_is_told_in_its_order_is_what_is_left(steps: list[lives.Step]) -> None:
    life = lives.Life(0).live(steps)
    current = [dict(version.row) for version in lives.versions_logged(life.messages) if version.is_current]
    assert sorted(current, key=str) == sorted(life.rows.values(), key=str)
