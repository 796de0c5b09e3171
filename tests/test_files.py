"""Files as messages come in them: whatever their names are, and whatever happens to them after they were read.
Everything through the command line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark_fixtures import rows
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


def small_project(folder: Path, targets: str = "", files: str = "in/*.jsonl") -> None:
    for name, text in {
        "project.yml": f"name: p\nsources: [{{name: app, format: lean, files: '{files}'}}]\n{targets}",
        **(MODELS if targets else {}),
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def write(path: Path, *numbers: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(message(number) + "\n" for number in numbers))


@pytest.mark.parametrize(
    ("folder", "targets", "names"),
    [
        pytest.param(FOLDER, ("parquet",), NAMES[:2], id="special"),
        pytest.param(FOLDER, ("delta", "iceberg"), NAMES[:2], id="other-storages", marks=pytest.mark.soak),
        pytest.param("plain", ("parquet",), NAMES, id="plain"),
    ],
)
def test_names_of_files_and_folders_are_no_patterns(
    tmp_path: Path,
    runner: Callable,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    folder: str,
    targets: tuple[str, ...],
    names: tuple[str, ...],
) -> None:
    """In a project in such a folder, and in one where only the files have such names."""
    root = tmp_path / folder
    small_project(root, TARGETS)
    for number, name in enumerate(names):
        write(root / "in" / name, *range(number * 100, number * 100 + 100))
    monkeypatch.chdir(root)
    for target in targets:
        for _ in range(2 if folder == "plain" else 1):
            built = runner("build", "-t", target, "-s", "app_to_changelog whole grown")
            assert built.code == 0 and "WARN=0" in built.err and "PASS test conserved_app" in built.err, built.err
        monkeypatch.setenv("RUNNER_TARGET", target)
        assert rows(capsys, COUNTED) == [{"n": 100 * len(names), "ids": 100 * len(names), "grown": 100 * len(names)}]


def test_what_happens_to_files_after_they_were_read_is_said(
    tmp_path: Path, runner: Callable, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small_project(tmp_path, files="in/*")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "in"
    for number, name in enumerate(("other", "same-time", "touched", "future", "_a", ".b", "c._COPYING_", "deep/er/d")):
        write(folder / name, number * 10, number * 10 + 1)
    (folder / "half").write_text(message(81) + "\n" + message(82)[:20])
    write(folder / os.fsdecode(b"\xff\n"), 95)
    (folder / "_SUCCESS").touch()
    (folder / ".other.crc").write_text("crc")
    os.utime(folder / "future", (2**33, 2**33))  # 272 years after 1970, and the next file 10 before
    ran = runner("run", "-s", "app_to_changelog")
    assert named(ran.err, "not read though") == {".b", "_a", "c._COPYING_", "deep/er/d", r"\udcff\n"}, ran.err
    assert "5 files not read though the pattern matches" in ran.err and "changed since" not in ran.err

    before = (folder / "same-time").stat()
    write(folder / "same-time", 18, 19)
    os.utime(folder / "same-time", ns=(before.st_atime_ns, before.st_mtime_ns))
    write(folder / "other", 8, 9)
    (folder / "half").write_text(message(81) + "\n" + message(82) + "\n")
    (folder / "touched").touch()
    write(folder / "past", 91)
    os.utime(folder / "past", (-(10**8), -(10**8)))
    ran = runner("run", "-s", "app_to_changelog")
    assert ran.code == 0 and "WARN streaming model app_to_changelog [1 messages" in ran.err, ran.err
    assert named(ran.err, "2 files changed since") == {"half", "other"}, ran.err

    # Only reading them again shows that both have other messages than those that landed, as many and as long.
    ran = runner("test", "-s", "conserved_app")
    assert ran.code == 1 and "3 failing rows" in ran.err, ran.err
    failing = re.findall(
        r"/in/([^,]+), messages_read: 2, messages_landed: 2, content: changed since it was read", ran.err
    )
    assert sorted(failing) == ["half", "other", "same-time"], ran.err


def named(said: str, what: str) -> set[str]:
    """The files of the folder in/ that a note names."""
    (note,) = (line for line in said.splitlines() if what in line)
    return {re.sub(".*/in/", "", path) for path in note.split(": ")[-1].split("; ")[0].split(", ")}


def test_a_name_that_spark_cannot_read_is_refused_until_it_is_gone(
    tmp_path: Path, runner: Callable, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "in/1.jsonl", 1)
    write(tmp_path / "in/12:30.jsonl", 2)
    ran = runner("run", "-s", "app_to_changelog")
    assert ran.code == 1 and f"where a name has a colon: {tmp_path}/in/12:30.jsonl; rename it" in ran.err, ran.err
    (tmp_path / "in/12:30.jsonl").rename(tmp_path / "in/12_30.jsonl")
    ran = runner("run", "-s", "app_to_changelog")
    assert ran.code == 0 and "[2 messages" in ran.err and "WARN=0" in ran.err, ran.err
