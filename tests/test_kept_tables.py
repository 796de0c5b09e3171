"""Tables that earlier versions have written (tests/kept): this version goes on with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kept.make import HERE, PLACE, message
from tests.landed import Project

pytestmark = pytest.mark.usefixtures("spark", "interpreted")

KEPT = sorted(path.parent.name for path in HERE.glob("*/project.yml"))
SHOWN = """
select 'order' as what, concat_ws(' ', id, n) as row from orders
union all select 'version', concat_ws(' ', id, n, is_current) from orders_history
union all select 'daily', concat_ws(' ', op, sum(changes)) from daily where op is not null group by op
union all select 'message', concat_ws(' ', batch, kind, op, key_text) from shop_to_changelog
order by what, row
"""
# What the messages of `make` become, as a person reads them.
DAILY = {"delete 1", "insert 2", "update 1"}
MESSAGES = {
    *("0 dead_letter", '0 row insert {"id":"1"}', '0 row insert {"id":"2"}'),
    *('1 row delete {"id":"2"}', '1 row update {"id":"1"}'),
}
ROWS = {"order": {"1 7"}, "version": {"1 5 false", "1 7 true", "2 6 false"}, "daily": DAILY, "message": MESSAGES}


def unpacked(name: str, folder: Path) -> Project:
    """A copy of the tables of a version, which name their files as they are in this folder."""
    files = {
        str(path.relative_to(HERE / name)): path.read_bytes() for path in (HERE / name).rglob("*") if path.is_file()
    }
    own, here = str(PLACE).encode(), str(folder).encode()
    moved = {name: text if name.endswith(".parquet") else text.replace(own, here) for name, text in files.items()}
    return Project(folder, moved)


def shown(made: Project) -> dict[str, set[str]]:
    rows = made.rows(SHOWN)
    found = {what: {row["row"] for row in rows if row["what"] == what} for what in ROWS}
    assert sum(map(len, found.values())) == len(rows)  # nothing is there twice
    return found


@pytest.mark.parametrize("name", KEPT)
def test_this_version_goes_on_with_them(tmp_path: Path, name: str) -> None:
    made = unpacked(name, tmp_path)
    assert shown(made) == ROWS
    made.write({"in/3.jsonl": message(5, "INSERT", 3, 9)})
    made.ok("run")
    assert shown(made) == {
        "order": {*ROWS["order"], "3 9"},
        "version": {*ROWS["version"], "3 9 true"},
        "daily": {"delete 1", "insert 3", "update 1"},
        "message": {*MESSAGES, '2 row insert {"id":"3"}'},
    }


def test_they_are_small_and_name_no_place_of_a_machine() -> None:
    assert {"0.3.0", "form_1"} <= {*KEPT}
    for name in KEPT:
        files = [path for path in (HERE / name).rglob("*") if path.is_file()]
        assert sum(path.stat().st_size for path in files) < 200_000
        texts = [path.read_bytes() for path in files if path.suffix != ".parquet"]
        assert not any(b"/home/" in text or b"/root/" in text for text in texts)


def test_tables_of_a_later_version_are_refused(tmp_path: Path) -> None:
    made = unpacked("form_1", tmp_path)
    made.write({"in/3.jsonl": message(5, "INSERT", 3, 9)})
    for record, failed in (("shop_to_changelog/_table.json", "shop_to_changelog"), ("daily/_progress.json", "daily")):
        path = made / "lake/_checkpoints" / record
        text = path.read_text()
        path.write_text(json.dumps({**json.loads(text), "form": 99, "by": "9.1.0"}))
        ran = made.run("run")
        assert ran.code == 1 and "was written by version 9.1.0 of the runner" in ran.err
        assert made.statuses[failed] == "error"
        path.write_text(text)
    assert shown(made)["message"] == {*MESSAGES, '2 row insert {"id":"3"}'}
