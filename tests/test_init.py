"""`runner init`: a sample, or a project of the person's own files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from runner.yaml_text import read_yaml
from tests.pages import ROOT

CASES = ROOT / "formats" / "cases"
# A row of another database than the sample's.
ROW = {"data": [{"id": "1"}], "pkNames": ["id"]}
MESSAGE = {"type": "INSERT", "database": "d", "table": "t", "es": 1700000000000, **ROW}
FILES = {"messages/1.jsonl": json.dumps(MESSAGE), "messages/2.jsonl": json.dumps(MESSAGE), "other/a.txt": "x"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with messages and no project."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def source_of(project: Path) -> dict:
    (source,) = read_yaml(project / "project.yml").value["sources"]
    return source


@pytest.mark.usefixtures("spark", "interpreted")
def test_the_first_build_of_own_files_is_green(here: Path, runner, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = runner("init", "demo", "--format", "canal", "--files", "messages/*.jsonl", "--zone", "Asia/Shanghai")
    assert ran.code == 0 and "cd demo && runner build" in ran.err
    written = [str(path.relative_to(here / "demo")) for path in (here / "demo").rglob("*") if path.is_file()]
    assert sorted(written) == [".schemas/format.json", ".schemas/project.json", "project.yml"]
    expected = {"name": "messages", "format": "canal", "zone": "Asia/Shanghai", "files": "../messages/*.jsonl"}
    assert source_of(here / "demo") == expected
    monkeypatch.chdir(here / "demo")
    ran = runner("build")
    assert ran.code == 0 and "[2 messages: 2 row in" in ran.err and "PASS test conserved_messages" in ran.err
    assert " WARN=0 ERROR=0 " in ran.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("files", "seen"),
    [
        ("messages/1.jsonl", "../../messages/1.jsonl"),
        ("messages", "../../messages"),
        ("messages/{1,3}.jsonl", "../../messages/{1,3}.jsonl"),
        (r"messages/\1.jsonl", r"../../messages/\1.jsonl"),
        ("s3a://bucket/in/*", "s3a://bucket/in/*"),
        ("HERE/messages/*", "HERE/messages/*"),
    ],
)
def test_files_are_found_from_the_project(here: Path, runner, files: str, seen: str) -> None:
    ran = runner("init", "new/demo", "--format", "canal", "--files", files.replace("HERE", str(here)))
    assert ran.code == 0, ran.err
    assert source_of(here / "new/demo")["files"] == seen.replace("HERE", str(here))
    assert "zone" not in source_of(here / "new/demo")
    assert runner("ls", "-q", "--project-dir", "new/demo", "-s", "source:messages").out == "source:messages\n"


def test_a_schema_goes_with_avro(here: Path, runner) -> None:
    shutil.copy(CASES / "drs_avro/record.avsc", here)
    words = ("init", "demo", "--format", "drs_avro", "--files", "messages/*")
    ran = runner(*words)
    assert ran.code == 2 and "error[schema-missing]" in ran.err and "--schema FILE.avsc" in ran.err
    assert runner(*words, "--schema", "record.avsc").code == 0
    assert source_of(here / "demo")["schema"] == ["../record.avsc"]
    ran = runner("compile", "-q", "--project-dir", "demo", "-s", "messages_to_changelog")
    assert ran.code == 0 and "'drs_avro' as format" in ran.out


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["demo", "--format", "cannal", "--files", "messages/*"], "format-unknown", 'did you mean "canal"?'),
        (["demo", "--format", "acme", "--files", "messages/*"], "format-unknown", "formats/acme.yml in the project"),
        (["demo", "--format", "oms_before_3_3", "--files", "messages/*"], "spec-missing", "op"),
        (["demo", "--format", "canal", "--files", "message/*"], "file-missing", 'no file matches "message/*"'),
        (["demo", "--format", "canal", "--files", "*"], "file-missing", 'no file matches "*"'),
        (["demo", "--format", "canal", "messages/1.jsonl"], "usage", 'unknown argument "messages/1.jsonl"'),
        (["demo", "--format", "canal"], "usage", '"--format" needs "--files" too'),
        (["demo", "--files", "messages/*"], "usage", '"--files" needs "--format" too'),
        (["demo", "--zone", "UTC"], "usage", '"--zone" needs "--format" and "--files" too'),
        (["demo", "--format", "canal", "--files", "messages/*", "--zone", "CST"], "spec-zone", "CST"),
        (["demo", "--format", "canal", "--files", "messages/*", "--schema", "a.avsc"], "schema-file", "a.avsc"),
        (["other", "--format", "canal", "--files", "messages/*"], "init-exists", '"other" already exists'),
        (["other/a.txt", "--format", "canal", "--files", "messages/*"], "init-exists", '"other/a.txt" already exists'),
    ],
)
def test_mistakes_are_said_and_nothing_is_written(here: Path, runner, words: list[str], code: str, says: str) -> None:
    ran = runner("init", *words)
    assert ran.code == 2 and f"error[{code}]" in ran.err and says in ran.err
    assert {str(path.relative_to(here)) for path in here.rglob("*") if path.is_file()} == set(FILES)


def test_the_sample_is_as_before(here: Path, runner) -> None:
    assert runner("init", "demo").code == 0
    assert source_of(here / "demo") == {
        "name": "shop",
        "description": "The changes in the database of a shop",
        "format": "canal",
        "zone": "Asia/Shanghai",
        "files": "messages/*.jsonl",
    }
    assert read_yaml(here / "demo/project.yml").value["name"] == "demo"
    assert "order_status" in runner("ls", "--project-dir", "demo").out


DBT_PROJECT = """
name: 'jaffle'
version: '1.0.0'
config-version: 2
profile: 'jaffle'
model-paths: ["models"]
snapshot-paths: ["history"]
clean-targets: ["target", "dbt_packages"]
on-run-end: "{{ log('x') }}"
vars:
  start: 2024-01-01
  rates: {eur: 1.10, none: null, flag: true, word: "null"}
models:
  +meta: {owner: data}
  jaffle:
    materialized: view
    +schema: raw
    marts:
      +materialized: table
      +post-hook: "analyze table {{ this }}"
      +tags: "{{ var('tags') }}"
      orders: {+tags: [nightly], +materialized: materialized_view}
    gone: {+enabled: false}
  dbt_utils: {+materialized: table}
seeds:
  jaffle:
    codes: {+column_types: {id: varchar(10)}, +full_refresh: false}
"""


def test_a_project_of_dbt(tmp_path: Path, runner, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("models/marts/orders.sql", "models/staging/a.sql"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("select 1 as id")
    (tmp_path / "seeds").mkdir()
    (tmp_path / "seeds/codes.csv").write_text("id\n1\n")
    (tmp_path / "dbt_project.yml").write_text(DBT_PROJECT)
    monkeypatch.chdir(tmp_path.parent)
    ran = runner("init", "--from-dbt", tmp_path.name, "--log-format", "json")
    *left_out, last = map(json.loads, ran.err.splitlines())
    lines = DBT_PROJECT.splitlines()
    # Each with the line on which it stands.
    written = {one["message"].split('"')[1]: lines[int(one["where"].split(":")[1]) - 1].strip() for one in left_out}
    assert written == {
        "models.jaffle.+schema": "+schema: raw",
        "models.jaffle.marts.+tags": "+tags: \"{{ var('tags') }}\"",
        "models.jaffle.marts.orders.+materialized": "orders: {+tags: [nightly], +materialized: materialized_view}",
        "models.jaffle.gone": "gone: {+enabled: false}",
        "models.dbt_utils": "dbt_utils: {+materialized: table}",
        "seeds.jaffle.codes.+full_refresh": "codes: {+column_types: {id: varchar(10)}, +full_refresh: false}",
        "profile": "profile: 'jaffle'",
        "snapshot-paths": 'snapshot-paths: ["history"]',
        "on-run-end": "on-run-end: \"{{ log('x') }}\"",
    }
    assert all(one["code"] == "left-out" and one["hint"] for one in left_out)
    assert last["message"].startswith(f"wrote {tmp_path.name}/project.yml, without 9 keys of dbt_project.yml. Next: ")
    assert read_yaml(tmp_path / "project.yml").value == {
        "name": "jaffle",
        "vars": {"start": "2024-01-01", "rates": {"eur": "1.10", "none": None, "flag": "true", "word": "null"}},
        "models": {
            "+meta": {"owner": "data"},
            "jaffle": {
                "+materialized": "view",
                "marts": {
                    "+materialized": "table",
                    "+post_hook": "analyze table {{ this }}",
                    "orders": {"+tags": ["nightly"]},
                },
            },
        },
        "seeds": {"jaffle": {"codes": {"+column_types": {"id": "varchar(10)"}}}},
    }
    monkeypatch.chdir(tmp_path)
    ran = runner("ls", "-s", "tag:nightly,config.materialized:table")
    assert ran.out == "orders\n", ran.err
    assert runner("ls", "-s", "codes").out == "codes\n"
