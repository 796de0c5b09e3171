"""The messages of another project's tests, and the images that it expects of them: `+I` insert, `-U`/`+U` update, `-D`
delete.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runner.cli import main

PEER_DATA = Path(__file__).parent.parent.parent / "shared" / "peer-data" / "flink"
COLUMNS = ("id", "name", "description", "weight")
MARKS = {"insert": ("", "+I"), "snapshot": ("", "+I"), "update": ("-U", "+U"), "delete": ("-D", "")}


def images(rows: list[dict]) -> list[str]:
    return [
        f"{mark}({','.join('null' if image.get(name) is None else image[name] for name in COLUMNS)})"
        for row in rows
        for mark, image in zip(MARKS[row["op"]], (row["before"], row["after"]))
        if mark
    ]


@pytest.mark.skipif(not PEER_DATA.is_dir(), reason="the other project's data is not here")
def test_images_are_those_of_the_other_project(
    spark: object, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Of the same changes without rows that were there before, then with some."""
    files = [(PEER_DATA / name).read_text().strip("\n") for name in ("canal-data.txt", "canal-data-with-init.txt")]
    (tmp_path / "messages.jsonl").write_text("\n".join(files))
    assert main(["parse", "canal", str(tmp_path / "messages.jsonl")]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    expected = (PEER_DATA / "expected_canal-data.txt").read_text().splitlines()
    # A snapshot has no description for 106, and the first update of it says so: null before.
    with_init = [line.replace("16oz carpenter's hammer", "null") for line in expected]
    assert len(expected) == 26
    assert images([row for row in rows if row["kind"] == "row"]) == expected + with_init
    assert [(row["kind"], row["op"]) for row in rows if row["kind"] != "row"] == [("ddl", "create")] * 2
    assert sum(row["op"] == "snapshot" for row in rows) == 9
