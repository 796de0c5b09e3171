"""Tables that earlier versions have written (tests/kept): this version goes on with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.kept.make import HERE, PLACE, message
from tests.landed import Project

pytestmark = pytest.mark.usefixtures("spark", "interpreted")

KEPT = sorted(path.parent.name for path in HERE.glob("*/project.yml"))
# The messages of `make`, as a person reads them.
ORDERS = [{"id": 1, "n": 7}]
HISTORY = [(1, 5, False), (1, 7, True), (2, 6, False)]
DAILY = [("delete", 1), ("insert", 2), ("update", 1)]


def unpacked(name: str, folder: Path) -> Project:
    """A copy of the tables of a version, which name their files as they are in this folder."""
    files = {
        str(path.relative_to(HERE / name)): path.read_bytes() for path in (HERE / name).rglob("*") if path.is_file()
    }
    own, here = str(PLACE).encode(), str(folder).encode()
    moved = {name: text if name.endswith(".parquet") else text.replace(own, here) for name, text in files.items()}
    return Project(folder, moved)


def shown(made: Project) -> tuple[list[Any], ...]:
    history = made.rows("select id, n, is_current from orders_history order by id, valid_from")
    daily = made.rows("select op, sum(changes) as changes from daily where op is not null group by op order by op")
    return (
        made.rows("select id, n from orders order by id"),
        [tuple(row.values()) for row in history],
        [tuple(row.values()) for row in daily],
    )


def messages(made: Project) -> list[dict[str, Any]]:
    return made.rows("select kind, op, key_text, batch from shop_to_changelog order by batch, kind, key_text")


@pytest.mark.parametrize("name", KEPT)
def test_this_version_goes_on_with_them(tmp_path: Path, name: str) -> None:
    made = unpacked(name, tmp_path)
    before = messages(made)
    assert len(before) == 5 and shown(made) == (ORDERS, HISTORY, DAILY)
    made.ok("run")
    assert messages(made) == before and shown(made) == (ORDERS, HISTORY, DAILY)
    made.write({"in/3.jsonl": message(5, "INSERT", 3, 9)})
    made.ok("run")
    assert messages(made)[:-1] == before
    orders, history, daily = shown(made)
    assert orders == [*ORDERS, {"id": 3, "n": 9}] and history == [*HISTORY, (3, 9, True)]
    assert daily == [("delete", 1), ("insert", 3), ("update", 1)]
    # Messages can land once more, also where an earlier version knew nothing of that.
    made.write({"formats/mine.yml": "extends: canal\nabout: ours\n"})
    assert made.run("dead-letters", "try").code == 0


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
    assert len(messages(made)) == 6
