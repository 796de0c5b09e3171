"""What is wrong and no error, and would not be seen: parts that no row has, dead letters, sources without files."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest

from runner.compile.compiled import make_promises
from runner.contract import Landed
from runner.errors import RunnerWarning
from runner.project.nodes import Model, Node
from runner.project.project import built_in_folder, unread
from runner.report import Report
from runner.run.results import Result, silences
from runner.spec.formats import FormatFolders

WITH_SPARK = pytest.mark.usefixtures("spark", "interpreted")

# A dialect with each of the mistakes that make a part of all rows null: line -> what no row has.
WRONG = """\
about: A dialect of our own
op:
  by: hdr.act
  cases: {I: insert, M: update, D: delete, S: snapshot}
before: row.old
after: row.new
db_name: {at: hdr.tbl, pattern: "{db_name}.{table_name}"}
table_name: hdr.table
key: {names: keys}
event_time: {at: hdr.at, as: local}
"""
LACKS = {
    "formats/acme.yml:5": "updates have no image before the change",
    "formats/acme.yml:8": "rows have no table name",
    "formats/acme.yml:9": "rows have no key",
    "formats/acme.yml:10": "changes have no event time",
}
RIGHT = (
    WRONG.replace("row.old", "row.orig")
    .replace("hdr.table\n", '{at: hdr.tbl, pattern: "{db_name}.{table_name}"}\n')
    .replace("keys}", "pk}")
    .replace("as: local}", "as: local}\nzone: Asia/Shanghai")
)
KEYLESS = RIGHT.replace("key: {names: pk}\n", "")
# A declared key that fits no table; dead letters; and files that are not there at first.
PROJECT = """\
sources:
  - {name: orders, format: acme, files: in/*.jsonl}
  - {name: right, format: right, files: in/*.jsonl}
  - name: keyed
    format: keyless
    files: in/*.jsonl
    tables: [{name: order, key: [id]}]
  - {name: bad, format: right, files: bad/*.jsonl, dead_letters: {fail: null}}
  - {name: of_pattern, format: right, files: later/*.jsonl}
  - {name: of_folder, format: right, files: folder}
  - {name: of_deep_pattern, format: right, files: "deep/*/*.jsonl"}
"""
PLACES = {"of_pattern": "later/*.jsonl", "of_folder": "folder", "of_deep_pattern": "deep/*/*.jsonl"}


def message(act: str = "I", **other: object) -> dict:
    header = {"tbl": "shop.orders", "act": act, "at": "2024-05-01 10:00:00"}
    return {"hdr": header, "row": {"new": {"id": 1, "v": 2}, "orig": {"id": 1, "v": 1}}, "pk": ["id"], **other}


def lines(*messages: dict | str) -> str:
    return "\n".join(one if isinstance(one, str) else json.dumps(one) for one in messages)


def warnings(text: str) -> dict[str, str]:
    """The warnings about parts that no row has: the place in the spec -> what is said."""
    said = [line.strip() for line in text.splitlines()]
    found = [number for number, line in enumerate(said) if line.startswith("warning[never-filled]: ")]
    return {
        said[number + 1].removeprefix("--> ").rpartition(":")[0]: said[number].split(": ", 1)[1] for number in found
    }


def expected(counts: dict[str, int]) -> dict[str, str]:
    """All that WRONG lacks, of that many rows: the first word of what is said -> the number."""
    said = {place: (counts[what.split()[0]], what) for place, what in LACKS.items()}
    return {place: f"{n} of {n} {what}, though the format says where" for place, (n, what) in said.items()}


# An insert, two updates, and a snapshot, which is no change: only changes have a time for sure.
MESSAGES = lines(message(), message("M"), message("M"), message("S"))
COUNTS = {"updates": 2, "rows": 4, "changes": 3}


@WITH_SPARK
def test_a_part_that_no_row_has_is_a_warning_of_parse_and_of_the_check(project, runner) -> None:
    project({"formats/acme.yml": WRONG, "in/1.jsonl": MESSAGES})
    for words in (["parse", "acme", "in/1.jsonl"], ["formats", "check", "acme", "--messages", "in/1.jsonl"]):
        ran = runner(*words)
        assert ran.code == 0 and warnings(ran.err) == expected(COUNTS), words
    assert ran.out == "no errors, 4 warnings: 1 format, 4 messages: 4 row, 0 ddl, 0 control, 0 dead_letter\n"
    assert "needs a zone" in ran.err
    table = runner("parse", "acme", "in/1.jsonl", "--output", "table", "--limit", "1")
    assert table.out.splitlines()[-1] == "no errors, 4 warnings; 4 messages: 4 row, 0 ddl, 0 control, 0 dead_letter"


@pytest.mark.parametrize(
    ("name", "zone", "lacks", "hints"),
    [
        (
            "debezium_postgresql",
            None,
            ("key", "before", "event_time"),
            ["declare it on source live: tables: [{name: TABLE"],
        ),
        ("aws_dms", None, ("key", "before"), []),
        (
            "qlik_replicate",
            None,
            ("table_name",),
            ["perhaps the messages have another format: runner formats infer FILE"],
        ),
        ("oms_shareplex", None, ("event_time",), ["it is a local time, which needs a zone: zone of the source"]),
        ("oms_shareplex", "UTC", ("event_time",), []),
    ],
)
def test_of_a_built_in_format_only_what_its_user_can_do(
    name: str, zone: str | None, lacks: tuple[str, ...], hints: list[str]
) -> None:
    """Its paths are right: no warning points into it, or is about what a tool may leave out."""
    spec = FormatFolders((built_in_folder("formats"),)).load(name)
    landed = Landed(expected=dict.fromkeys(lacks, 4), found=dict.fromkeys(lacks, 0))
    said = [*silences(make_promises(spec, zone, ()), landed, "live")]
    assert [one.where for one in said] == [None] * len(hints)
    assert all(one.hint.startswith(hint) for one, hint in zip(said, hints, strict=True))


@WITH_SPARK
def test_of_a_right_spec_and_of_no_messages_nothing_is_said(project, runner) -> None:
    project({"formats/right.yml": RIGHT, "formats/acme.yml": WRONG, "in/1.jsonl": MESSAGES, "in/2.jsonl": "\n"})
    for name, file, count in (("right", "in/1.jsonl", 4), ("acme", "in/2.jsonl", 0)):
        ran = runner("formats", "check", name, "--messages", file)
        counts = f"{count} messages: {count} row, 0 ddl, 0 control, 0 dead_letter"
        assert (ran.code, ran.out) == (0, f"all good: 1 format, {counts}\n") and "warning" not in ran.err
    assert runner("parse", "acme", "in/2.jsonl", "--output", "case").out == "about: The rows of 2.jsonl\nrows: []\n"


BAD = ["{", "[]", "[]", message("X"), message("X"), message("X"), message(hdr={})]


@WITH_SPARK
def test_a_run_warns_of_what_just_landed_and_of_files_that_were_never_there(project, runner) -> None:
    formats = {"formats/acme.yml": WRONG, "formats/right.yml": RIGHT, "formats/keyless.yml": KEYLESS}
    files = {"in/1.jsonl": MESSAGES, "bad/1.jsonl": lines(message(), *BAD), "later/.keep": "", "folder/.keep": ""}
    root = project({"project.yml": PROJECT, **formats, **files})
    ran = runner("run")
    said = warnings(ran.err)
    assert ran.code == 0 and said.pop("project.yml:7") == "4 of 4 rows have no key, though the format says where"
    assert said == expected(COUNTS)
    assert "WARN streaming model orders_to_changelog [4 messages: 4 row in" in ran.err
    assert "OK streaming model right_to_changelog [4 messages: 4 row in" in ran.err
    dead = "8 messages: 1 row, 7 dead_letter (3 unknown-op, 2 not-an-object, 1 no-op and 1 more) in"
    assert f"WARN streaming model bad_to_changelog [{dead}" in ran.err
    assert "WARN=6 ERROR=0 " in ran.err.splitlines()[-1]

    def statuses_of_run(are_waiting: bool) -> dict[str, tuple[str, dict, int]]:
        ran = runner("run", "-s", "config.materialized:streaming", "--log-format", "json")
        assert ran.code == 0
        for place in PLACES.values():
            assert (f'no file matches \\"{root / place}\\"' in ran.err) is are_waiting
        finished = [one for one in map(json.loads, ran.err.splitlines()) if one["event"] == "finished"]
        told = {one["name"].removesuffix("_to_changelog"): one for one in finished}
        return {name: (one["status"], one["reasons"], one["rows"]["dead_letter"]) for name, one in told.items()}

    others = dict.fromkeys(("orders", "right", "keyed", "bad"), ("success", {}, 0))
    assert statuses_of_run(True) == {**others, **dict.fromkeys(PLACES, ("warn", {}, 0))}
    # Later files, and a message that is understood after those that were not.
    later = {f"{place}/2.jsonl": lines(message()) for place in ("bad", "later", "folder", "deep/day")}
    project({"project.yml": PROJECT, **later})
    for _ in range(2):
        assert statuses_of_run(False) == {**others, **dict.fromkeys(PLACES, ("success", {}, 0))}


@WITH_SPARK
def test_dead_letters_of_parse_have_their_reasons(project, runner) -> None:
    project({"formats/right.yml": RIGHT, "in/1.jsonl": lines(message(), *BAD)})
    told = "7 of 8 messages cannot be understood: 3 unknown-op, 2 not-an-object, 1 no-op and 1 more"
    assert told in runner("parse", "right", "in/1.jsonl").err


@WITH_SPARK
def test_one_row_that_has_the_part_is_enough(project, runner) -> None:
    spec = RIGHT.replace("event_time: {at: hdr.at", "event_time: {at: time")
    rare = message("M", time="2024-05-01 10:00:00")
    bare = message("M", pk=None, row={"new": {"id": 1}})
    project({"formats/acme.yml": spec, "in/1.jsonl": lines(bare, rare, bare)})
    assert warnings(runner("parse", "acme", "in/1.jsonl").err) == {}


@WITH_SPARK
def test_what_a_format_leaves_open_is_not_missed(project, runner) -> None:
    """A value that some cases leave out, images of halves, and what a spec does not name at all."""
    spec = RIGHT.replace("M: update", "M: {row: update, half: after}").replace("before: row.orig", "before: row.old")
    spec = spec.replace("event_time: ", "event_time: {by: hdr.source, cases: {a: ").replace(
        "as: local}", "as: local}}}"
    )
    spec = spec.replace("key: {names: pk}\n", "") + "pair_id: hdr.pair\n"
    project({"formats/acme.yml": spec, "in/1.jsonl": MESSAGES})
    assert runner("formats", "check", "acme", "--messages", "in/1.jsonl").err == ""


@WITH_SPARK
def test_images_that_hold_no_column(project, runner) -> None:
    project({"formats/acme.yml": f"{RIGHT}drop: [id, v]\neach: [row.new, row.orig]\n", "in/1.jsonl": MESSAGES})
    said = warnings(runner("parse", "acme", "in/1.jsonl").err)
    assert said["formats/acme.yml:6"] == "4 of 4 rows have no column in their images, though the format says where"


def test_messages_are_for_the_check_of_one_format(project, runner) -> None:
    project({"formats/acme.yml": RIGHT, "in/1.jsonl": MESSAGES})
    assert "error[usage]" in runner("formats", "list", "--messages", "in/1.jsonl").err
    assert "error[usage]" in runner("formats", "check", "acme", "--zone", "UTC").err
    ran = runner("formats", "check", "--messages", "in/1.jsonl")
    assert ran.code == 2 and "hint: runner formats check NAME --messages in/1.jsonl" in ran.err
    assert "error[file-missing]" in runner("formats", "check", "acme", "--messages", "in/2.jsonl").err


# --- files that nothing reads


UNREAD = (
    *("snapshots/a.sql", "analyses/a.sql", "models/deep/a.py", "macros/a.yml", "formats/a.yaml", "tests/schema.yml"),
    *("dbt_project.yml", "packages.yml", "dependencies.yml", "profiles.yml"),
)
READ = ("models/a.sql", "macros/a.sql", "tests/a/compiled.sql", "tests/a.py", "docs/seeds/a.csv", "docs/packages.yml")


@WITH_SPARK
def test_files_that_nothing_reads_are_a_warning(project, runner) -> None:
    files = dict.fromkeys(READ, "{# #} select 1 as a")
    root = project({**files, "macros/a.sql": "{% macro a() %}{% endmacro %}"})
    (root / "analyses").mkdir()
    assert list(unread(root)) == []
    project(dict.fromkeys(UNREAD, ""))
    for command in ("run", "build"):
        ran = runner(command, "-s", "a")
        said = [line for line in ran.err.splitlines() if line.startswith(("warning[", "  --> "))]
        expected = [(f'warning[files-unread]: nothing reads "{path}"', f"  --> {path}") for path in UNREAD]
        assert ran.code == 0 and said == [line for pair in expected for line in pair]
        assert ran.err.count("\n  hint: ") == len(UNREAD)
        counts = f"PASS=1 WARN=0 ERROR=0 SKIP=0 TOTAL=1, {len(UNREAD)} warnings"
        assert ran.err.splitlines()[-1].endswith(f"Done. {counts}")


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("macros/a.sql", "{% macro generate_schema_name(name, node) %}x{% endmacro %}", "generate_schema_name"),
        ("macros/a/b.sql", "{%- macro generate_alias_name() -%}x{%- endmacro -%}", "generate_alias_name"),
    ],
)
def test_what_dbt_looks_for_by_name(project, path: str, text: str, name: str) -> None:
    (warning,) = unread(project({path: text}))
    assert f'nothing looks for "{name}"' in warning.message and str(warning.where) == path and warning.hint


def test_warnings_of_the_check_are_counted_and_events(project, runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "runner.commands.formats.check_formats", lambda *_, **__: []
    )  # those of the project are no matter
    project({"analyses/a.sql": "", "packages.yml": ""})
    ran = runner("check", "--log-format", "json")
    events = [json.loads(line) for line in ran.err.splitlines()]
    assert [(event["event"], event["code"], event["where"]) for event in events] == [
        ("warning", "files-unread", "analyses/a.sql"),
        ("warning", "files-unread", "packages.yml"),
    ]
    assert ran.code == 0 and ran.out.startswith("no errors, 2 warnings: ")


def test_warnings_are_yellow() -> None:
    stderr = io.StringIO()
    report = Report(color=True, stderr=stderr)
    report.warn(RunnerWarning("x-y", "z"))
    assert stderr.getvalue() == "\x1b[33mwarning[x-y]: z\x1b[0m\n"
    node, result = Node("a", "model", Model("", "view")), Result("a", "model", "warn", reasons={"no-op": 2})
    report.finished(node, replace(result, rows={"messages": 2, "dead_letter": 2}), 1, 1)
    line = stderr.getvalue().splitlines()[1]
    assert "\x1b[33mWARN\x1b[0m" in line and "2 dead_letter\x1b[33m (2 no-op)\x1b[0m in" in line
