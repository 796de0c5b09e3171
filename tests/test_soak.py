"""What only the soak runs is listed in tables/soak.yml, with the promise that nothing else keeps."""

from __future__ import annotations

from datetime import date

import pytest

from tests.durations import SOAK
from tests.pages import ROOT, table

LISTED = table("soak")


def test_what_only_the_soak_runs_is_listed(request: pytest.FixtureRequest) -> None:
    assert request.config.stash[SOAK] <= set(LISTED)


def test_what_is_listed_is_there() -> None:
    for name, entry in LISTED.items():
        module, test = name.split("::")
        assert f"def {test}(" in (ROOT / module).read_text(), name
        assert set(entry) == {"promise", "passed"} and len(entry["promise"]) > 10
        assert entry["passed"] == "not yet" or isinstance(entry["passed"], date)
