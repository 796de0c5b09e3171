"""The reference of mirrors agrees with the simulated database. No Spark."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests import lives


@settings(max_examples=50)
@given(lives.steps(20) | lives.steps(20, kinds=(*lives.CHANGES, "empty")), st.randoms(use_true_random=False))
def test_versions_that_are_current_are_the_rows_that_are_left(steps: list[lives.Step], chance: Random) -> None:
    life = lives.Life(0).live(steps)
    (told,) = lives.shuffled(life.messages, 1, chance)
    current = [dict(version.row) for version in lives.versions(told) if version.is_current]
    assert sorted(current, key=str) == sorted(life.rows.values(), key=str)
