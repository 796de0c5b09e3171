"""What people met with loads, statements and failovers (tests/mirrors/cases.yml): each mirror is the table as its
database had it, in one run and in several.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from runner.project.parse import VIEWS
from tests.landed import Project, random_pieces
from tests.storages import TARGETS
from tests.topic_records import Record, record, write_topic

pytestmark = pytest.mark.usefixtures("spark", "interpreted")
BY_HAND = Path(__file__).parent / "mirrors"
CASES: dict[str, dict[str, Any]] = yaml.safe_load((BY_HAND / "cases.yml").read_text())
WITH_HISTORY = ("dbz_second_snapshot", "dms_reload")


def messages_of(case: str) -> list[Any]:
    """The messages of a case: records of a topic, or texts."""
    (path,) = (BY_HAND / "cases").glob(f"{case}.*")
    texts = path.read_text().splitlines()
    if ".records." not in path.name:
        return texts
    told = map(json.loads, texts)
    return [record(one["key"], one["value"], one["topic"]) for one in told]


def name_of(case: str, table: str) -> str:
    return f"{case}__{table.split('.')[-1]}".lower()


def project_of(folder: Path, storage: str) -> Project:
    sources = [
        {
            "name": case,
            "format": CASES[case]["format"],
            ("table" if isinstance(messages_of(case)[0], Record) else "files"): f"in/{case}",
        }
        for case in CASES
    ]
    mirrors = [
        {
            "name": name_of(case, table),
            "of": {"source": case, "table": table},
            "key": ["id"],
            "columns": {"id": "int", "s": "string"},
            "history": case in WITH_HISTORY,
            "data_tests": ["mirrored"],
        }
        for case in CASES
        for table in CASES[case]["tables"]
    ]
    told = {**yaml.safe_load(TARGETS), "target": storage, "sources": sources}
    return Project(
        folder, {"project.yml": yaml.safe_dump(told), "models/mirrors.yml": yaml.safe_dump({"mirrors": mirrors})}
    )


def write(project: Project, case: str, number: int, start: int, end: int) -> None:
    """One more file of a source, with some of its messages."""
    told = messages_of(case)
    if isinstance(told[0], Record):
        (project / f"in/{case}").mkdir(parents=True, exist_ok=True)
        write_topic(told[start:end], project / f"in/{case}/{number}.parquet", 95 + start)
    else:
        project.write({f"in/{case}/{number}.jsonl": "\n".join(told[start:end])})


def check(project: Project, data_tests: str) -> None:
    expected = {name_of(case, table): rows for case in CASES for table, rows in CASES[case]["tables"].items()}
    found: dict[str, list[Any]] = {name: [] for name in expected}
    for row in project.rows(" union all ".join(f"select '{name}' as name, id, s from {name}" for name in expected)):
        found[row["name"]].append([row["id"], row["s"]])
    assert {name: sorted(rows) for name, rows in found.items()} == expected
    project.run("test", "--data", "-s", data_tests)
    assert {name for name, status in project.statuses.items() if status != "pass"} == {
        f"followed_{name_of(case, table)}"
        for case in CASES
        for table in CASES[case]["tables"]
        if not CASES[case].get("is_followed", True)
    }


def test_in_one_run(tmp_path: Path) -> None:
    project = project_of(tmp_path, "parquet")
    for case in CASES:
        write(project, case, 0, 0, len(messages_of(case)))
    project.ok("run", "--exclude", " ".join(VIEWS))
    # The mirrors were just made of all changes: `mirrored` would do the same once more.
    check(project, "followed_*")


@pytest.mark.soak
@pytest.mark.parametrize("storage", ["delta", "iceberg"])
def test_in_several_runs(tmp_path: Path, storage: str) -> None:
    project = project_of(tmp_path, storage)
    lengths = {case: len(messages_of(case)) for case in CASES}
    for run, pieces in enumerate(random_pieces(lengths, 2, Random(storage))):
        for case, (start, end) in pieces.items():
            write(project, case, run, start, end)
        project.ok("run", "--exclude", " ".join(VIEWS))
    check(project, "mirrored_* followed_*")
