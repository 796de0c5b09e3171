"""What is wrong and no error, and would not be seen: parts that no row has, dead letters, sources without files."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest

from runner.errors import RunnerWarning
from runner.project.nodes import Model, Node, SqlText
from runner.report import Report
from runner.run.results import Result

pytestmark = pytest.mark.usefixtures("spark", "interpreted")

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
    "acme.yml:5": "updates have no image before the change",
    "acme.yml:8": "rows have no table name",
    "acme.yml:9": "rows have no key",
    "acme.yml:10": "changes have no event time",
}
RIGHT = (
    WRONG.replace("row.old", "row.orig")
    .replace("hdr.table\n", '{at: hdr.tbl, pattern: "{db_name}.{table_name}"}\n')
    .replace("keys}", "pk}")
    .replace("as: local}", "as: local}\nzone: Asia/Shanghai")
)
PROJECT = "sources: [{name: orders, format: acme, files: in/*.jsonl}]\n"


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
        said[number + 1].removeprefix("--> formats/").rpartition(":")[0]: said[number].split(": ", 1)[1]
        for number in found
    }


def expected(counts: dict[str, int]) -> dict[str, str]:
    """All that WRONG lacks, of that many rows: the first word of what is said -> the number."""
    said = {place: (counts[what.split()[0]], what) for place, what in LACKS.items()}
    return {place: f"{n} of {n} {what}, though the format says where" for place, (n, what) in said.items()}


# An insert, two updates, and a snapshot, which is no change: only changes have a time for sure.
MESSAGES = lines(message(), message("M"), message("M"), message("S"))
COUNTS = {"updates": 2, "rows": 4, "changes": 3}


def test_a_part_that_no_row_has_is_a_warning_of_parse_and_of_the_check(project, runner) -> None:
    project({"formats/acme.yml": WRONG, "in/1.jsonl": MESSAGES})
    for words in (["parse", "acme", "in/1.jsonl"], ["formats", "check", "acme", "--messages", "in/1.jsonl"]):
        ran = runner(*words)
        assert ran.code == 0 and warnings(ran.err) == expected(COUNTS), words
    assert ran.out == "no errors, 4 warnings: 1 format, 4 messages: 4 row, 0 ddl, 0 control, 0 dead_letter\n"
    assert "needs a zone" in ran.err
    table = runner("parse", "acme", "in/1.jsonl", "--output", "table", "--limit", "1")
    assert table.out.splitlines()[-1] == "no errors, 4 warnings; 4 messages: 4 row, 0 ddl, 0 control, 0 dead_letter"


def test_a_part_that_no_row_has_is_a_warning_of_a_run(project, runner) -> None:
    project({"project.yml": PROJECT, "formats/acme.yml": WRONG, "in/1.jsonl": MESSAGES})
    ran = runner("run")
    assert ran.code == 0 and warnings(ran.err) == expected(COUNTS)
    assert "WARN streaming model orders_to_changelog [4 messages: 4 row in" in ran.err
    assert ran.err.splitlines()[-1].endswith("Done. PASS=6 WARN=1 ERROR=0 SKIP=0 TOTAL=7")
    assert "WARN=0" in runner("run", "-s", "orders_to_changelog").err, "nothing new, nothing to warn of"


def test_a_right_spec_is_silent(project, runner) -> None:
    project({"project.yml": PROJECT, "formats/acme.yml": RIGHT, "in/1.jsonl": MESSAGES})
    ran = runner("formats", "check", "acme", "--messages", "in/1.jsonl")
    assert ran == (0, "all good: 1 format, 4 messages: 4 row, 0 ddl, 0 control, 0 dead_letter\n", "")
    ran = runner("run")
    assert ran.code == 0 and "WARN=0" in ran.err and warnings(ran.err) == {}


def test_one_row_that_has_the_part_is_enough(project, runner) -> None:
    spec = RIGHT.replace("event_time: {at: hdr.at", "event_time: {at: time")
    rare = message("M", time="2024-05-01 10:00:00")
    bare = message("M", pk=None, row={"new": {"id": 1}})
    project({"formats/acme.yml": spec, "in/1.jsonl": lines(bare, rare, bare)})
    assert warnings(runner("parse", "acme", "in/1.jsonl").err) == {}


def test_of_no_messages_nothing_is_missing(project, runner) -> None:
    project({"formats/acme.yml": WRONG, "in/1.jsonl": "\n"})
    ran = runner("formats", "check", "acme", "--messages", "in/1.jsonl")
    assert ran == (0, "all good: 1 format, 0 messages: 0 row, 0 ddl, 0 control, 0 dead_letter\n", "")
    assert runner("parse", "acme", "in/1.jsonl", "--output", "case").out == "about: The rows of 1.jsonl\nrows: []\n"


def test_what_a_format_leaves_open_is_not_missed(project, runner) -> None:
    """A value that some cases leave out, images of halves, and what a spec does not name at all."""
    spec = RIGHT.replace("M: update", "M: {row: update, half: after}").replace("before: row.orig", "before: row.old")
    spec = spec.replace("event_time: ", "event_time: {by: hdr.source, cases: {a: ").replace(
        "as: local}", "as: local}}}"
    )
    spec = spec.replace("key: {names: pk}\n", "") + "pair_id: hdr.pair\n"
    project({"formats/acme.yml": spec, "in/1.jsonl": MESSAGES})
    assert runner("formats", "check", "acme", "--messages", "in/1.jsonl").err == ""


def test_a_declared_key_that_fits_no_table(project, runner) -> None:
    spec = RIGHT.replace("key: {names: pk}\n", "")
    tables = "[{name: order, key: [id]}]"
    text = f"sources:\n  - name: orders\n    format: acme\n    files: in/*.jsonl\n    tables: {tables}\n"
    project({"project.yml": text, "formats/acme.yml": spec, "in/1.jsonl": MESSAGES})
    ran = runner("run", "-s", "orders_to_changelog")
    assert "4 of 4 rows have no key" in ran.err and "--> project.yml:5:" in ran.err


def test_images_that_hold_no_column(project, runner) -> None:
    project({"formats/acme.yml": f"{RIGHT}drop: [id, v]\neach: [row.new, row.orig]\n", "in/1.jsonl": MESSAGES})
    said = warnings(runner("parse", "acme", "in/1.jsonl").err)
    assert said["acme.yml:6"] == "4 of 4 rows have no column in their images, though the format says where"


def test_messages_are_for_the_check_of_one_format(project, runner) -> None:
    project({"formats/acme.yml": RIGHT, "in/1.jsonl": MESSAGES})
    assert "error[usage]" in runner("formats", "list", "--messages", "in/1.jsonl").err
    assert "error[usage]" in runner("formats", "check", "acme", "--zone", "UTC").err
    ran = runner("formats", "check", "--messages", "in/1.jsonl")
    assert ran.code == 2 and "hint: runner formats check NAME --messages in/1.jsonl" in ran.err
    assert "error[file-missing]" in runner("formats", "check", "acme", "--messages", "in/2.jsonl").err


def test_dead_letters_of_a_run_have_their_reasons_in_its_line(project, runner) -> None:
    bad = ["{", "[]", "[]", message("X"), message("X"), message("X"), message(hdr={})]
    project({"project.yml": PROJECT, "formats/acme.yml": RIGHT, "in/1.jsonl": lines(message(), *bad)})
    ran = runner("run", "-s", "orders_to_changelog")
    said = "WARN streaming model orders_to_changelog [8 messages: 1 row, 7 dead_letter (3 unknown-op, 2 not-an-object, "
    assert ran.code == 0 and f"{said}1 no-op and 1 more) in" in ran.err and "PASS=0 WARN=1" in ran.err
    told = "7 of 8 messages cannot be understood: 3 unknown-op, 2 not-an-object, 1 no-op and 1 more"
    assert told in runner("parse", "acme", "in/1.jsonl").err


def test_dead_letters_that_landed_before_are_no_news(project, runner) -> None:
    root = project({"project.yml": PROJECT, "formats/acme.yml": RIGHT, "in/1.jsonl": lines(message("X"))})
    assert "1 dead_letter (1 unknown-op)" in runner("run", "-s", "orders_to_changelog").err
    (root / "in/2.jsonl").write_text(lines(message()))
    ran = runner("run", "-s", "orders_to_changelog", "--log-format", "json")
    event = next(one for one in map(json.loads, ran.err.splitlines()) if one["event"] == "finished")
    assert (event["status"], event["reasons"], event["rows"]["dead_letter"]) == ("success", {}, 0)


@pytest.mark.parametrize("place", ["in/*.jsonl", "in", "in/*/*.jsonl"])
def test_a_source_without_files_is_a_warning_until_it_has_some(project, runner, place: str) -> None:
    root = project({"project.yml": PROJECT.replace("in/*.jsonl", place), "formats/acme.yml": RIGHT, "in/.keep": ""})
    for _ in range(2):
        ran = runner("run", "-s", "orders_to_changelog")
        assert ran.code == 0 and f'no file matches "{root / place}"' in ran.err and "PASS=0 WARN=1" in ran.err
    (root / "in/day").mkdir()
    (root / ("in/day/1.jsonl" if "*/" in place else "in/1.jsonl")).write_text(lines(message()))
    assert "WARN=0" in runner("run", "-s", "orders_to_changelog").err
    assert "WARN=0" in runner("run", "-s", "orders_to_changelog").err, "it had some"


# --- files that nothing reads


UNREAD = (
    *("snapshots/a.sql", "analyses/a.sql", "models/deep/a.py", "macros/a.yml", "formats/a.yaml", "tests/schema.yml"),
    *("dbt_project.yml", "packages.yml", "dependencies.yml", "profiles.yml"),
)
READ = ("models/a.sql", "macros/a.sql", "tests/a/compiled.sql", "tests/a.py", "docs/seeds/a.csv", "docs/packages.yml")


def test_files_that_nothing_reads_are_a_warning(project, runner) -> None:
    files = dict.fromkeys(READ, "{# #} select 1 as a")
    root = project({**files, "macros/a.sql": "{% macro a() %}{% endmacro %}"})
    (root / "analyses").mkdir()
    assert runner("check").out.startswith("all good: ")
    project(dict.fromkeys(UNREAD, ""))
    ran = runner("check")
    said = [line for line in ran.err.splitlines() if not line.startswith("  hint: ")]
    expected = [(f'warning[files-unread]: nothing reads "{path}"', f"  --> {path}") for path in UNREAD]
    assert said == [line for pair in expected for line in pair]
    assert ran.err.count("\n  hint: ") == len(UNREAD)
    assert ran.code == 0 and ran.out.startswith(f"no errors, {len(UNREAD)} warnings: ")
    for command in ("run", "build"):
        ran = runner(command, "-s", "a")
        assert ran.code == 0 and ran.err.count("warning[files-unread]") == len(UNREAD)
        counts = f"PASS=1 WARN={len(UNREAD)} ERROR=0 SKIP=0 TOTAL={len(UNREAD) + 1}"
        assert ran.err.splitlines()[-1].endswith(f"Done. {counts}")


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("macros/a.sql", "{% macro generate_schema_name(name, node) %}x{% endmacro %}", "generate_schema_name"),
        ("macros/a/b.sql", "{%- macro generate_alias_name() -%}x{%- endmacro -%}", "generate_alias_name"),
    ],
)
def test_what_dbt_looks_for_by_name(project, runner, path: str, text: str, name: str) -> None:
    project({path: text})
    ran = runner("check")
    assert ran.code == 0 and f'nothing looks for "{name}"\n  --> {path}\n  hint: ' in ran.err
    assert ran.out.startswith("no errors, 1 warning: ")


def test_warnings_are_yellow_and_events(project, runner) -> None:
    project({"analyses/a.sql": ""})
    event = json.loads(runner("check", "--log-format", "json").err)
    assert (event["event"], event["code"], event["where"]) == ("warning", "files-unread", "analyses/a.sql")
    stderr = io.StringIO()
    report = Report(color=True, stderr=stderr)
    report.warn(RunnerWarning("x-y", "z"))
    assert stderr.getvalue() == "\x1b[33mwarning[x-y]: z\x1b[0m\n"
    node, result = Node("a", "model", Model(SqlText(""), "view")), Result("a", "model", "warn", reasons={"no-op": 2})
    report.finished(node, replace(result, rows={"messages": 2, "dead_letter": 2}), 1, 1)
    line = stderr.getvalue().splitlines()[1]
    assert "\x1b[33mWARN\x1b[0m" in line and "2 dead_letter\x1b[33m (2 no-op)\x1b[0m in" in line
