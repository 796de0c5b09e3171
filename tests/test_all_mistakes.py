"""All mistakes of a project are told at once, also several in one entry of a property file."""

from __future__ import annotations

import re

import pytest

from runner.spec.formats import FormatFolders
from tests.test_errors import FORMAT


@pytest.fixture(autouse=True)
def no_other_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    """`check` leaves out the built-in formats that no source has: there are no mistakes in them to tell."""

    def own(folders: FormatFolders) -> list[str]:
        return [path.stem for folder in folders.folders[:-1] for path in sorted(folder.glob("*.yml"))]

    monkeypatch.setattr(FormatFolders, "names", own)


FILES = {
    "models/a.sql": "{{ config(materialized='tabel', tagz=['x']) }} select * from {{ ref('b') }}",
    "models/b.sql": "select 1 as id",
    "seeds/s.csv": "id\n1\n",
    "models/m.yml": """models:
  - name: a
    descriptoin: x
    config: {materialized: tabel, tag: [a]}
    columns:
      - name: id
        descrption: y
        data_tests: [not_nul, {relationships: {to: ref('c'), field: id, config: {severty: warn, limit: x}}}]
      - nam: b
  - name: b
    confg: {}
    data_tests: [uniq]
exposures:
  - name: e
    typ: dashboard
    depends_on: [ref('c'), ref('b'), ref('d')]
seeds:
  - name: s
    config: {column_typs: {}, delimiterr: x}
    columns: [{name: id, data_tests: [uniq]}]
""",
}
PLACES = [
    "materialization-unknown models/a.sql:1",
    "setting-unknown models/a.sql:1",
    "unknown-key models/m.yml:3:5",
    "materialization-unknown models/m.yml:4:14",
    "setting-unknown models/m.yml:4:35",
    "unknown-key models/m.yml:7:9",
    "test-unknown models/m.yml:8:22",
    "ref-unknown models/m.yml:8:48",
    "setting-unknown models/m.yml:8:82",
    "setting-value models/m.yml:8:97",
    "unknown-key models/m.yml:9:9",
    "name-missing models/m.yml:9:9",
    "unknown-key models/m.yml:11:5",
    "test-unknown models/m.yml:12:18",
    "unknown-key models/m.yml:15:5",
    "ref-unknown models/m.yml:16:18",
    "ref-unknown models/m.yml:16:38",
    "setting-unknown models/m.yml:19:14",
    "setting-unknown models/m.yml:19:31",
    "test-unknown models/m.yml:20:39",
]


def test_all_mistakes_are_told_at_once(project, runner) -> None:
    project(FILES)
    for command in ("check", "compile", "ls"):
        ran = runner(command)
        assert ran.code == 2
        told = re.findall(r"^error\[([\w-]+)\]: .*\n  --> (\S+)", ran.err, re.MULTILINE)
        assert [" ".join(one) for one in told] == PLACES, command


def test_settings_that_a_storage_lacks_are_told_where_they_are_written(project, runner) -> None:
    config = "{persist_docs: {relation: true}, table_properties: {a: b}, cluster_by: id}"
    project(
        {
            "models/a.sql": "{{ config(materialized='table', cluster_by='id') }} select 1 as id",
            "models/m.yml": f"models: [{{name: a, description: x, config: {config}}}]",
        }
    )
    ran = runner("check")
    told = re.findall(r"^error\[setting-storage\]: .*\n  --> (\S+)", ran.err, re.MULTILINE)
    line = f"models: [{{name: a, description: x, config: {config}"
    places = [f"models/m.yml:1:{line.index(setting) + 1}" for setting in ("persist_docs", "table_properties")]
    assert ran.code == 2 and told == ["models/a.sql:1", *places]


def test_a_test_of_a_disabled_model_is_no_mistake(project, runner) -> None:
    properties = "models: [{name: a, data_tests: [unheard_of], config: {enabled: false}}]"
    project({"models/a.sql": "select 1 as a", "models/m.yml": properties})
    assert runner("ls", "--resource-type", "test").out == "conserved_orders\n"


def test_they_are_told_in_the_order_of_their_places(project, runner) -> None:
    folder = project(
        {
            "models/a.sql": "select {{ x }}",
            "models/b.sql": "\nselect {{ y }}",
            "models/b.yml": "models:\n  - {name: zz}\n  - {name: b, descr: x}\n",
            "formats/g.yml": FORMAT + "x: y\nzone: CST\n",
            "formats/cases/g/a.rows.yml": "rwos: []",
            "selectors.yml": "selectors:\n  - {name: a, definition: b}\n  - {definition: b}\n  - {name: c}\n",
        }
    )
    places = ("formats/cases/g/a.rows.yml:1:1", "formats/g.yml:6:1", "formats/g.yml:7:1")
    places += ("models/a.sql:1", "models/b.sql:2", "models/b.yml:2:6", "models/b.yml:3:15")
    places += ("selectors.yml:3:5", "selectors.yml:4:5")
    assert re.findall(r"--> (.*)", runner("check").err) == list(places)
    (folder / "formats/g.yml").unlink()
    project(
        {
            "project.yml": (
                "nmae: x\ntarget: x\nvars: [a]\nsources:\n  - {name: a, format: cnal, files: x}\n"
                "  - {name: b, fromat: canal, files: y}\nmodels: {+tag: x}\n"
            )
        }
    )
    places = ("1:1", "2:1", "3:1", "5:15", "6:15", "7:10")
    assert re.findall(r"--> project.yml:(.*)", runner("ls").err) == list(places)


def test_the_same_mistake_is_said_once(project, runner) -> None:
    """A format that two sources use."""
    sources = "sources:\n  - {name: a, format: g, files: x}\n  - {name: b, format: g, files: y}\n"
    project({"project.yml": sources, "formats/g.yml": FORMAT + "x: y\n"})
    assert runner("check").err.count("error[") == 1


def test_tests_of_a_model_that_cannot_be_read_are_no_second_mistake(project, runner) -> None:
    tests = "models: [{name: m}]\nunit_tests: [{name: t, model: m, given: [], expect: {rows: []}}]"
    project({"models/m.sql": "select {{ nothing }}", "models/m.yml": tests})
    assert re.findall(r"^error\[(.*)\]", runner("check").err, re.MULTILINE) == ["template"]
