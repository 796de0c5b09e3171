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


def parsed(capsys: pytest.CaptureFixture[str], file: Path) -> list[dict]:
    assert main(["parse", "canal", str(file)]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def images(rows: list[dict]) -> list[str]:
    marks = {"insert": ("", "+I"), "snapshot": ("", "+I"), "update": ("-U", "+U"), "delete": ("-D", "")}
    out = []
    for row in rows:
        for mark, image in zip(marks[row["op"]], (row["before"], row["after"])):
            if mark:
                out.append(f"{mark}({','.join('null' if image.get(c) is None else image[c] for c in COLUMNS)})")
    return out


@pytest.mark.skipif(not PEER_DATA.is_dir(), reason="the other project's data is not here")
@pytest.mark.parametrize("name", ["canal-data.txt", "canal-data-with-init.txt"])
def test_images_are_those_of_the_other_project(spark: object, capsys: pytest.CaptureFixture[str], name: str) -> None:
    rows = parsed(capsys, PEER_DATA / name)
    got = images([row for row in rows if row["kind"] == "row"])
    expected = (PEER_DATA / "expected_canal-data.txt").read_text().splitlines()
    if name == "canal-data-with-init.txt":
        # Its snapshot has no description for 106, and its first update says so: null before.
        expected = [line.replace("16oz carpenter's hammer", "null") for line in expected]
    assert got == expected
    assert len(got) == 26
    assert [(row["kind"], row["op"]) for row in rows if row["kind"] != "row"] == [("ddl", "create")]
    assert sum(row["op"] == "snapshot" for row in rows) == (9 if "init" in name else 0)


def test_images_of_a_case_of_our_own(spark: object, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    header = {"database": "d", "table": "t", "pkNames": ["id"]}
    messages = [
        {**header, "type": "INSERT", "data": [{"id": "1", "name": "a", "description": None, "weight": "1.50"}]},
        {
            **header,
            "type": "UPDATE",
            "data": [{"id": "1", "name": "b", "description": "x", "weight": "1.50"}],
            "old": [{"name": "a", "description": None}],
        },
        {**header, "type": "DELETE", "data": [{"id": "1", "name": "b", "description": "x", "weight": "1.50"}]},
    ]
    file = tmp_path / "messages.jsonl"
    file.write_text("\n".join(json.dumps(m) for m in messages))
    assert images(parsed(capsys, file)) == [
        "+I(1,a,null,1.50)",
        "-U(1,a,null,1.50)",
        "+U(1,b,x,1.50)",
        "-D(1,b,x,1.50)",
    ]
