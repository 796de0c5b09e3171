"""The compiled SQL is what the files in tests/compiled say: a change of a macro is a diff that a reviewer reads."""

from __future__ import annotations

from runner.yaml_text import read_yaml
from tests import snapshots


def test_compiled_sql_is_as_written() -> None:
    now, written = snapshots.compiled(), snapshots.written()
    assert sorted(now) == sorted(written), "make snapshots"
    for name, sql in now.items():
        assert sql == written[name], f"{name} has changed: look at what `make snapshots` makes of it"


def test_every_built_in_format_has_a_snapshot() -> None:
    formats = {path.stem for path in (snapshots.FOLDER.parent.parent / "formats").glob("*.yml")}
    assert formats <= {
        source["name"].text() for source in read_yaml(snapshots.FOLDER / "project.yml")["sources"].elements()
    }


# Columns of compiled SQL that a reader sees without scrolling, and how many lines are wider. This number may only fall.
WIDTH = 140
WIDER_LINES = 1364


def test_no_more_lines_are_too_wide() -> None:
    wider = [line for sql in snapshots.written().values() for line in sql.splitlines() if len(line) > WIDTH]
    assert len(wider) == WIDER_LINES, "state the new number if there are fewer; wrap lines if there are more"
