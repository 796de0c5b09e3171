"""Each file of a project and of its tables is broken in turn, and a command says which one it is and what to do: no
traceback, no bug in the runner, and other sources go on.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from runner.files import Damaged, decoded, from_json, json_lines
from tests.small_format import SMALL, message

PROJECT = """\
sources:
{sources}
targets: {{local: {{storage: {storage}, path: warehouse}}}}
target: local
"""
# Sources that share a run: a session has much to do for each.
SHARING = 24


# --- ways to break a file or a folder


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def scramble(path: Path) -> None:
    path.write_bytes(bytes(byte ^ 0xA5 for byte in path.read_bytes()))


def folder_instead(path: Path) -> None:
    path.unlink()
    path.mkdir()


def file_instead(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("x")


def cut_gzip(path: Path) -> None:
    content = gzip.compress(os.urandom(90_000))
    path.with_name(f"{path.name}.gz").write_bytes(content[: len(content) // 2])


def forbid(path: Path) -> None:
    path.chmod(0)


FILE_WAYS = (remove, empty, cut, scramble, folder_instead)
FOLDER_WAYS = (remove, file_instead)


@dataclass(frozen=True)
class Breakage:
    """The file or folder of a source `{s}` at `path`, which may be a pattern, is broken in a `way`. `says` is in the
    error, beside the name of the file and a remedy.
    """

    way: Callable[[Path], None]
    path: str
    says: str = ""

    def __str__(self) -> str:
        return f"{self.way.__name__} {self.path}"


CHECKPOINT, TABLE = "warehouse/_checkpoints/{s}_to_changelog", "warehouse/{s}_to_changelog"
LOGS = ("offsets", "commits", "sources/0")
FILES = (
    "in/{s}/1.jsonl",
    "in/{s}/3.jsonl",
    *(f"{CHECKPOINT}/{name}" for name in ("metadata", "_format.json")),
    *(f"{CHECKPOINT}/{log}/{batch}" for log in LOGS for batch in (0, 1)),
    f"{TABLE}/kind=row/*/*.parquet",
)
FOLDERS = (CHECKPOINT, *(f"{CHECKPOINT}/{name}" for name in ("offsets", "commits", "sources", "sources/0")), TABLE)
OF_STORAGE = {
    "parquet": (
        (f"{TABLE}/_spark_metadata/0", f"{TABLE}/_spark_metadata/1"),
        (f"{TABLE}/_spark_metadata", f"{TABLE}/kind=row"),
    ),
    "delta": (
        tuple(f"{TABLE}/_delta_log/{number:020}.json" for number in range(3)),
        (f"{TABLE}/_delta_log",),
    ),
}
SAMPLE = [
    Breakage(cut_gzip, "in/{s}/3.jsonl", "put the whole file there, or move it away"),
    Breakage(cut, f"{CHECKPOINT}/_format.json", "(no JSON at character"),
    Breakage(scramble, f"{CHECKPOINT}/offsets/1", "is not UTF-8)"),
    Breakage(remove, f"{CHECKPOINT}/sources/0/1", '/sources/0/1" is damaged (missing)'),
    Breakage(remove, TABLE),
    Breakage(remove, f"{CHECKPOINT}/metadata"),
    Breakage(remove, f"{CHECKPOINT}/commits/1"),
    Breakage(remove, f"{TABLE}/_spark_metadata/0", '/_spark_metadata/0" is damaged (missing)'),
    Breakage(file_instead, f"{TABLE}/_spark_metadata"),
]


def all_breakages(storage: str) -> list[Breakage]:
    files, folders = OF_STORAGE[storage]
    return [
        *(Breakage(way, path) for path, way in product((*FILES, *files), FILE_WAYS)),
        *(Breakage(way, path) for path, way in product((*FOLDERS, *folders), FOLDER_WAYS)),
    ]


def shared_out(storage: str) -> Iterator[Any]:
    some = all_breakages(storage)
    for start in range(0, len(some), SHARING):
        yield pytest.param(storage, some[start : start + SHARING], id=f"{storage}-{start}", marks=pytest.mark.soak)


@pytest.mark.parametrize(
    ("storage", "some"),
    [pytest.param("parquet", SAMPLE, id="sample"), *(one for storage in OF_STORAGE for one in shared_out(storage))],
)
@pytest.mark.usefixtures("spark", "interpreted")
def test_a_broken_file_of_one_source(
    storage: str, some: list[Breakage], project: Callable[..., Path], runner: Callable[..., Any]
) -> None:
    """Each breaks a source of its own, after two batches have landed and before a third."""
    sources = {f"s{number}": breakage for number, breakage in enumerate(some)}
    lines = [f"  - {{name: {s}, format: small, files: in/{s}/*}}" for s in (*sources, "good")]
    text = PROJECT.format(sources="\n".join(lines), storage=storage)
    landing = ["-s", " ".join(f"{s}_to_changelog" for s in (*sources, "good")), "--log-format", "json"]
    for number in (1, 2, 3):
        messages = {f"in/{s}/{number}.jsonl": message(number) + "\n" for s in (*sources, "good")}
        folder = project({"project.yml": text, "formats/small.yml": SMALL, **messages})
        if number < 3:
            assert runner("run", *landing).code == 0
    for s, breakage in sources.items():
        breakage.way(next(iter(sorted(folder.glob(breakage.path.format(s=s))))))
    ran = runner("build", *landing)
    results = {event["name"]: event for event in finished(ran.err)}
    assert ran.code == 1 and "this is a bug" not in ran.err, ran.err
    assert [results[name]["status"] for name in ("good_to_changelog", "conserved_good")] == ["success", "pass"]
    wrong = [said for s, breakage in sources.items() for said in badly_said(breakage, s, results)]
    # Tests that the build has skipped read broken files by themselves.
    ran = runner("test", "-s", "conserved_*", "--log-format", "json")
    results = {event["name"]: event for event in finished(ran.err)}
    assert len(results) == len(sources) + 1 and results["conserved_good"]["status"] == "pass", ran.err
    wrong += [said for s, breakage in sources.items() for said in badly_said(breakage, s, results)]
    assert not wrong, "\n".join(wrong)


def finished(err: str) -> Iterator[dict[str, Any]]:
    return (event for event in map(json.loads, err.splitlines()) if event["event"] == "finished")


REMEDY = re.compile(r"--full-refresh|restore|move (it|the \w+) away|put the whole file|let the user|make ")


def badly_said(breakage: Breakage, source: str, results: dict[str, dict[str, Any]]) -> Iterator[str]:
    """The errors of a source that do not say which file it is and what to do. It may also have landed all the same."""
    for name in (f"{source}_to_changelog", f"conserved_{source}"):
        if name not in results:
            continue
        result = results[name]
        text = "\n".join([result["message"], *result["notes"]])
        named = [part for part in breakage.path.format(s=source).split("/") if "*" not in part][-1]
        # Of a folder that is gone, the table's or the checkpoint's is named. Without its newest commit a table of Delta
        # is as it was before.
        is_older = f'the table "{source}_to_changelog" is older than its checkpoint' in text
        is_named = named in text or f'/{source}_to_changelog"' in text or is_older
        is_explained = is_named and REMEDY.search(text) and breakage.says in text and "NO_HINT" not in text
        if "Traceback" in text or (result["status"] == "error" and not is_explained):
            yield f"{breakage}: {name} says {text}"


# --- files that stop a command before Spark starts

WHOLE = {
    "project.yml": PROJECT.format(sources="  - {name: a, format: small, files: in/*}", storage="parquet"),
    "formats/small.yml": SMALL,
    "models/m.sql": "select 1 as a",
    "models/m.yml": "models: [{name: m, description: x}]",
    "macros/functions/f.sql": "create function f(a string comment 'a') returns string comment 'c' return a;",
    "target/manifest.json": "{}",
    "target/run_results.json": "{}",
    "target/compiled/project/models/m.sql": "select 1",
    "target/logs/spark.log": "",
    "warehouse/_locks/a_to_changelog.lock": "",
}
PLACES = sorted({str(parent) for name in WHOLE for parent in [Path(name), *Path(name).parents]} - {"."})


WRITTEN = ("target", "warehouse")


def broken_projects() -> Iterator[tuple[list[str], Callable[[Path], None]]]:
    """Places in a project, and how they are broken. What a run writes again does not stop it: all of it at once is."""
    goes_on = [way for way in FILE_WAYS if way is not folder_instead]
    for name in PLACES:
        is_written = name.startswith(WRITTEN)
        for way in FILE_WAYS if name in WHOLE else FOLDER_WAYS:
            if not (is_written and way in goes_on):
                yield [name], way
    yield from product([[name for name in WHOLE if name.startswith(WRITTEN)]], goes_on)
    yield list(WRITTEN), remove
    yield from (([name], forbid) for name in PLACES)


def test_a_broken_file_of_a_project(
    tmp_path: Path, project: Callable[..., Path], runner: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_spark(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("runner.commands.session.open_spark", no_spark)
    wrong: list[str] = []
    for names, way in broken_projects():
        for path in list(tmp_path.iterdir()):
            remove(path)
        folder = project(WHOLE)
        for name in names:
            way(folder / name)
        if way is forbid and os.access(folder / names[0], os.R_OK):
            continue  # root reads everything
        # Only a run of a table that lands has to do with its lock.
        ran = runner("run", *(() if names[-1].startswith("warehouse") else ("-s", "m")))
        is_refused = ran.code == 2 and ran.err.startswith("error[") and re.search("\n  (hint: |--> )", ran.err)
        goes_on = ran.code == 130
        if not (goes_on or (is_refused and len(names) == 1)) or "Traceback" in ran.err or "Errno" in ran.err:
            wrong.append(f"{way.__name__} {names}: {ran.code} {ran.err[-600:]}")
    assert not wrong, "\n".join(wrong)


# --- a disk that is full


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """A disk of one MB in a folder of the project; a call leaves this many bytes on it."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("only root can mount a small disk")

    def fill(left: int) -> Path:
        filler = folder / "filler"
        filler.unlink(missing_ok=True)
        space = os.statvfs(folder)
        filler.write_bytes(bytes(max(space.f_bavail * space.f_frsize - left, 0)))
        return folder

    try:
        yield fill
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_no_space_for_files_of_a_command(
    full_disk: Callable[[int], Path], project: Callable[..., Path], runner: Callable[..., Any]
) -> None:
    project({"models/m.sql": "select 1 as a"})
    full_disk(0)
    for command in ("compile", "run"):
        ran = runner(command, "-s", "m", "--target-path", "disk/target")
        said = 'error[file-refused]: no space is left on the disk of "disk/target/compiled/shop/models/m.sql"'
        assert ran.code == 2 and ran.err.startswith(said) and "hint: make space there" in ran.err, ran.err


@pytest.mark.usefixtures("spark", "interpreted")
def test_no_space_for_a_table(
    full_disk: Callable[[int], Path], project: Callable[..., Path], runner: Callable[..., Any]
) -> None:
    """There is space for locks, then also for the names of tables, then also for a checkpoint, then enough: a run goes
    on as if nothing had been.
    """
    sources = "  - {name: a, format: small, files: in/*}"
    text = PROJECT.format(sources=sources, storage="parquet").replace("path: warehouse", "path: disk/warehouse")
    project({"project.yml": text, "formats/small.yml": SMALL, "in/1.jsonl": message(1)})
    for left, code, said in (
        (4_096, 2, "make space there"),
        (8_192, 1, "make space there"),
        (40_960, 1, "make some on the disks of the tables"),
    ):
        full_disk(left)
        ran = runner("run", "-s", "a_to_changelog")
        assert ran.code == code and "no space is left" in ran.err and said in ran.err, ran.err
        assert "Traceback" not in ran.err and "this is a bug" not in ran.err
    full_disk(800_000)
    ran = runner("build", "-s", "a_to_changelog")
    assert ran.code == 0 and "1 messages: 1 row" in ran.err, ran.err


def test_what_is_wrong_with_recorded_json() -> None:
    for content, said in (
        (b"", '"a/b" is damaged (empty)'),
        (b'{"a": "x', '"a/b" is damaged (no JSON at character 7 of 8)'),
        (b"{\xff}", '"a/b" is damaged (byte 2 is not UTF-8)'),
    ):
        with pytest.raises(Damaged) as caught:
            from_json(decoded(content, "a/b"), "a/b")
        assert str(caught.value).startswith(said) and "--full-refresh" in str(caught.value)
    assert json_lines('v1\n{"a": 1}\n-\n', "a/b") == [{"a": 1}]
    for log in ("", '{"a": 1}'):
        with pytest.raises(Damaged):
            json_lines(log, "a/b")


# --- files of messages that cannot be read for a while

LANDED = "select key['id'] as id from changelog where source = 'a' order by id"


@pytest.mark.usefixtures("spark", "interpreted")
def test_a_damaged_file_is_set_aside_and_lands_when_it_is_whole(
    project: Callable[..., Path], runner: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With two others of its source; then beside a new one, moved away as the note says, and put back."""
    text = PROJECT.format(sources="  - {name: a, format: small, files: in/*}", storage="parquet")
    folder = project({"project.yml": text, "formats/small.yml": SMALL, "in/1.jsonl": message(1)})
    whole, damaged = gzip.compress(f"{message(2)}\n".encode() * 9_000, 0), folder / "in/2 b.jsonl.gz"
    (folder / "in/3.jsonl").write_text(message(3))

    def run(code: int, *landed: str) -> str:
        ran = runner("run", "-s", "a_to_changelog+")
        assert ran.code == code, ran.err
        rows = runner("show", "--inline", LANDED, "--output", "json", "--limit", "20000").out.splitlines()
        assert sorted({json.loads(row)["id"] for row in rows}) == sorted(landed)
        assert len(rows) == len(landed) + 8_999 * ("2" in landed)
        return str(ran.err)

    damaged.write_bytes(whole[: len(whole) // 2])
    said = run(1, "1", "3")
    assert f"1 file cannot be read: {damaged} (java.io.EOFException: Unexpected end of input stream): " in said, said
    assert "the other files have landed; put the whole file there, or move it away, and run again" in said
    assert "WARN=1 ERROR=0 SKIP=0 TOTAL=7, 1 source read in part: exit code 1" in said, said
    assert "not read though the pattern matches" not in said and "OK view model changelog" in said
    (folder / "in/4.jsonl").write_text(message(4))
    assert "1 file cannot be read" in run(1, "1", "3", "4")
    # An earlier version, and a run that was killed, leave a batch that has not landed, with the file in it.
    with monkeypatch.context() as patch:
        patch.setattr("runner.run.landing.Landing.set_aside", lambda *_: False)
        run(1, "1", "3", "4")
    damaged.unlink()
    assert "WARN" not in run(0, "1", "3", "4").replace("WARN=0", "")
    damaged.write_bytes(whole)
    run(0, "1", "2", "3", "4")
    run(0, "1", "2", "3", "4")
    assert runner("test", "-s", "conserved_a").code == 0


@pytest.mark.usefixtures("spark", "interpreted")
def test_a_damaged_file_does_not_hold_up_files_that_are_read_one_by_one(
    project: Callable[..., Path], runner: Callable[..., Any]
) -> None:
    """Where names have characters of patterns. A stream begins with the oldest file: here a damaged one."""
    text = PROJECT.format(sources="  - {name: a, format: small, files: in/*}", storage="parquet")
    folder = project(
        {"project.yml": text, "formats/small.yml": SMALL, "in/1 [a].jsonl.gz": "", "in/9.jsonl": message(9)}
    )
    whole = gzip.compress(f"{message(1)}\n".encode() * 2, 0)

    def written(name: str, content: bytes, seconds: int) -> None:
        (folder / "in" / name).write_bytes(content)
        os.utime(folder / "in" / name, (seconds, seconds))

    def run(code: int, *landed: str) -> str:
        ran = runner("run", "-s", "a_to_changelog+")
        assert ran.code == code, ran.err
        rows = runner("show", "--inline", LANDED, "--output", "json").out.splitlines()
        assert [json.loads(row)["id"] for row in rows] == list(landed)
        return str(ran.err)

    written("1 [a].jsonl.gz", whole[:-20], 1_000)
    written("2 {b,c}.jsonl", message(2).encode(), 2_000)
    written("3 [d]*.jsonl.gz", whole[:-30], 3_000)
    written("4 [e].jsonl", message(4).encode(), 4_000)
    said = run(1, "2", "4", "9")
    assert "2 files cannot be read" in said and "1 [a].jsonl.gz" in said and "3 [d]*.jsonl.gz" in said, said
    written("5 [f].jsonl", message(5).encode(), 5_000)
    run(1, "2", "4", "5", "9")
    (folder / "in/3 [d]*.jsonl.gz").unlink()
    written("1 [a].jsonl.gz", whole, 6_000)
    run(0, "1", "1", "2", "4", "5", "9")
    assert runner("test", "-s", "conserved_a").code == 0
