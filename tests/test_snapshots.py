"""The compiled SQL is what the files in tests/compiled say: a change of a macro is a diff that a reviewer reads."""

from __future__ import annotations

import re

from runner.yaml_text import read_yaml
from tests import snapshots
from tools import format_examples


def test_compiled_sql_is_as_written() -> None:
    now, written = snapshots.compiled(), snapshots.written()
    assert sorted(now) == sorted(written), "make snapshots"
    for name, sql in now.items():
        assert sql == written[name], f"{name} has changed: look at what `make snapshots` makes of it"


def test_the_page_of_formats_shows_a_model_as_it_is() -> None:
    text = snapshots.PAGE.read_text(encoding="utf-8")
    assert snapshots.written()["canal_to_changelog.sql"] in text
    assert snapshots.page(text) == text, "make snapshots"


def test_the_page_of_examples_is_current_and_has_every_format() -> None:
    text = format_examples.PAGE.read_text(encoding="utf-8")
    assert text == format_examples.page(), "make snapshots"
    formats = {path.stem for path in (snapshots.FOLDER.parent.parent / "formats").glob("*.yml")}
    assert set(re.findall(r"^## (.*)$", text, re.MULTILINE)) == formats - {"oms_before_3_3"}


def test_every_built_in_format_has_a_snapshot() -> None:
    formats = {path.stem for path in (snapshots.FOLDER.parent.parent / "formats").glob("*.yml")}
    assert formats <= {
        source["name"].text() for source in read_yaml(snapshots.FOLDER / "project.yml")["sources"].elements()
    }


def test_compiled_sql_is_read_without_scrolling() -> None:
    wider = [line for sql in snapshots.written().values() for line in sql.splitlines() if len(line) > 140]
    assert wider == []


def test_models_are_short() -> None:
    lines = {name: len(sql.splitlines()) for name, sql in snapshots.written().items()}
    # Views over all sources have a line or two for each.
    assert [name for name, count in lines.items() if name.endswith("_to_changelog.sql") and count > 230] == []
    assert lines["canal_to_changelog.sql"] <= 130


def test_patterns_are_in_functions() -> None:
    """An analyst reads names of functions instead of regular expressions."""
    assert not re.search("rlike|regexp", snapshots.written()["canal_to_changelog.sql"])
