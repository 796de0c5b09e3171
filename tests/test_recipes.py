"""The queries of docs/recipes.md show what stands there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import pages

pytestmark = pytest.mark.usefixtures("spark", "interpreted")


def test_each_query_shows_what_the_page_shows(tmp_path: Path, monkeypatch, runner) -> None:
    monkeypatch.setenv("COLUMNS", "160")  # the tables that it shows are wide
    monkeypatch.chdir(tmp_path)
    assert runner("init", "demo").code == 0
    monkeypatch.chdir(tmp_path / "demo")
    assert runner("run", "-s", "shop_to_changelog").code == 0
    found = pages.blocks(pages.ROOT / "docs/recipes.md")
    queries, shown = found[::2], found[1::2]
    assert len(queries) == len(shown) == 10
    wrong = []
    for query, expected in zip(queries, shown):
        ran = runner("show", "--inline", query.text, "--limit", "20")
        if (ran.code, ran.out) != (0, expected.text):
            wrong.append(f"{query.text}\n{ran.out}{ran.err}")
    assert (query.kind, expected.kind) == ("sql", "text") and not wrong, "\n".join(wrong)
