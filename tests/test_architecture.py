"""The page of the architecture shows the packages as they are."""

from __future__ import annotations

from tools import architecture


def test_the_page_is_current() -> None:
    written = architecture.PAGE.read_text(encoding="utf-8")
    assert architecture.current(written) == written, "python tools/architecture.py rewrites it"
