"""Files as messages come in them: whatever their names are, and whatever happens to them after they were read.
Everything through the command line.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.landed import Project
from tests.test_streams import message

# Every character that means something to a shell, to Hadoop, in an address, in SQL or in YAML. A colon: see below.
FOLDER = "a [1]{b,c} *?!^%20#&'\"`\\;=数"
NAMES = ("1.jsonl", "[1].jsonl", "{1,2}.jsonl", "*?.jsonl", "x y%20#,;'\"`=数.jsonl", "b\\c.jsonl", "\n.jsonl")
TARGETS = """
targets:
  parquet: {path: lake/parquet}
  delta: {storage: delta, path: lake/delta}
  iceberg: {storage: iceberg, path: lake/iceberg, catalog: {name: files, type: hadoop}}
"""
MODELS = {
    "models/whole.sql": "{{ config(materialized='table') }} select op, after from {{ ref('app_to_changelog') }}",
    "models/grown.sql": "{{ config(materialized='incremental') }} select after['id'] as id\n"
    "from {{ ref('app_to_changelog') }} {% if is_incremental() %}where false{% endif %}",
}

pytestmark = pytest.mark.usefixtures("interpreted", "lean")
COUNTED = """
select count(*) as n, count(distinct after['id']) as ids, (select count(*) from {{ ref('grown') }}) as grown
from {{ ref('app_to_changelog') }}"""


def small_project(folder: Path, targets: str = "", files: str = "in/*.jsonl") -> Project:
    settings = f"name: p\nsources: [{{name: app, format: lean, files: '{files}'}}]\n{targets}"
    return Project(folder, {"project.yml": settings, **(MODELS if targets else {})})


def lines(*numbers: int) -> str:
    return "".join(message(number) + "\n" for number in numbers)


@pytest.mark.parametrize(
    ("folder", "targets", "names"),
    [
        pytest.param(FOLDER, ("parquet",), NAMES[:2], id="special"),
        pytest.param(FOLDER, ("delta", "iceberg"), NAMES[:2], id="other-storages", marks=pytest.mark.soak),
        pytest.param("plain", ("parquet",), NAMES, id="plain"),
    ],
)
def test_names_of_files_and_folders_are_no_patterns(
    tmp_path: Path, spark: object, folder: str, targets: tuple[str, ...], names: tuple[str, ...]
) -> None:
    """In a project in such a folder, and in one where only the files have such names."""
    project = small_project(tmp_path / folder, TARGETS)
    project.write({f"in/{name}": lines(*range(n * 100, n * 100 + 100)) for n, name in enumerate(names)})
    for target in targets:
        for _ in range(2 if folder == "plain" else 1):
            said = project.ok("build", "-t", target, "-s", "app_to_changelog whole grown")
            assert "WARN=0" in said and "PASS test conserved_app" in said, said
        total = 100 * len(names)
        assert project.rows(COUNTED, "-t", target) == [{"n": total, "ids": total, "grown": total}]


def test_what_happens_to_files_after_they_were_read_is_said(tmp_path: Path, spark: object) -> None:
    project = small_project(tmp_path, files="in/*")
    folder = tmp_path / "in"
    only = ("-s", "app_to_changelog")
    for number, name in enumerate(("other", "same-time", "touched", "future", "_a", ".b", "c._COPYING_", "deep/er/d")):
        project.write({f"in/{name}": lines(number * 10, number * 10 + 1)})
    project.write({"in/half": message(81) + "\n" + message(82)[:20], "in/_SUCCESS": "", "in/.other.crc": "crc"})
    (folder / os.fsdecode(b"\xff\n")).write_text(lines(95))
    os.utime(folder / "future", (2**33, 2**33))  # 272 years after 1970, and the next file 10 before
    ran = project.run("run", *only)
    assert named(ran.err, "not read though") == {".b", "_a", "c._COPYING_", "deep/er/d", r"\udcff\n"}, ran.err
    assert "5 files not read though the pattern matches" in ran.err and "changed since" not in ran.err

    before = (folder / "same-time").stat()
    project.write({"in/same-time": lines(18, 19), "in/other": lines(8, 9), "in/half": lines(81, 82)})
    os.utime(folder / "same-time", ns=(before.st_atime_ns, before.st_mtime_ns))
    (folder / "touched").touch()
    project.write({"in/past": lines(91)})
    os.utime(folder / "past", (-(10**8), -(10**8)))
    said = project.ok("run", *only)
    assert "WARN streaming model app_to_changelog [1 messages" in said, said
    assert named(said, "2 files changed since") == {"half", "other"}, said

    # Only reading them again shows that both have other messages than those that landed, as many and as long.
    ran = project.run("test", "-s", "conserved_app")
    assert ran.code == 1 and "3 failing rows" in ran.err, ran.err
    failing = re.findall(
        r"/in/([^,]+), messages_read: 2, messages_landed: 2, content: changed since it was read", ran.err
    )
    assert sorted(failing) == ["half", "other", "same-time"], ran.err

    # A name that Spark cannot read is refused until it is gone.
    project.write({"in/12:30.jsonl": lines(2)})
    ran = project.run("run", *only)
    assert ran.code == 1 and f"where a name has a colon: {tmp_path}/in/12:30.jsonl; rename it" in ran.err, ran.err
    (folder / "12:30.jsonl").rename(folder / "12_30.jsonl")
    assert "[1 messages" in project.ok("run", *only)


def named(said: str, what: str) -> set[str]:
    """The files of the folder in/ that a note names."""
    (note,) = (line for line in said.splitlines() if what in line)
    return {re.sub(".*/in/", "", path) for path in note.split(": ")[-1].split("; ")[0].split(", ")}
