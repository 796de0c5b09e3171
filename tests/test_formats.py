"""Inheritance of specs, and a dialect made of nothing but a YAML file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner.errors import RunnerError
from runner.spec.formats import FormatFolders
from runner.spec.words import Format
from tests.pages import table

SPECS = table("specs")

BASE = """
about: the base
message: {encoding: avro, skip_bytes: 5}
records: {A: {text: a}}
op:
  by: type
  first: [{if: {has: ddl}, ddl: by_statement}]
  cases: {I: insert, D: delete}
  else: heartbeat
before: {at: old, over: data}
after: data
key: {names: [pk, keys]}
values: {binary: latin1, enum: ordinal}
drop: [a, b]
db_name: db
table_name: [tbl, table]
event_time: {at: ts, as: epoch_ms, unknown: [0, -1]}
seq: [a, b]
meta: {gtid: gtid, scn: scn}
zone: UTC
"""


def load(tmp_path: Path, name: str = "child", **specs: str) -> Format:
    for key, text in {"base": BASE, **specs}.items():
        (tmp_path / f"{key}.yml").write_text(text)
    return FormatFolders((tmp_path,)).load(name)


def test_a_child_that_says_nothing_is_its_parent(tmp_path: Path) -> None:
    child, base = load(tmp_path, child="extends: base"), load(tmp_path, "base")
    assert {k: v for k, v in vars(child).items() if k not in ("name", "origin")} == {
        k: v for k, v in vars(base).items() if k not in ("name", "origin")
    }
    assert (child.name, child.about) == ("child", "the base")


@pytest.mark.parametrize("inherited", SPECS["inherited"], ids=lambda one: f"{one['spec']} -> {one['part']}")
def test_what_is_merged_and_what_is_replaced(tmp_path: Path, inherited: dict[str, Any]) -> None:
    part, child = inherited["part"], load(tmp_path, child=f"extends: base\n{inherited['spec']}\n")

    def paths(choices: object) -> object:
        return [".".join(choice.path) for choice in choices] if choices is not None else None  # type: ignore[attr-defined]

    found = {
        "cases": lambda: {text: [line.op for line in lines] for text, lines in child.op.cases.items()},
        "first": lambda: [line.op for line in child.op.first],
        "message": lambda: child.message.skip_bytes,
        "over": lambda: child.op.cases["D"][0].before.over,
        "otherwise": lambda: [line.op for line in child.op.otherwise],
        "meta": lambda: {name: paths(choices) for name, choices in child.meta.items()},
        "records": lambda: list(child.records),
        "seq": lambda: [paths(choices) for choices in child.seq],
        "key": lambda: [path for key in child.key for path in key.names],
        "drop": lambda: [name for name, _ in child.drop],
        "table_name": lambda: paths(child.columns.get("table_name")),
        "event_time": lambda: paths(child.columns.get("event_time")),
    }.get(part, lambda: getattr(child, part))
    assert json.loads(json.dumps(found())) == inherited["value"]


def test_a_value_with_a_reader_is_replaced_whole(tmp_path: Path) -> None:
    (choice,) = load(tmp_path, child="extends: base\nevent_time: ts\n").columns["event_time"]
    assert (choice.reader, choice.unknown) == ("text", ())


def test_later_parents_win_and_the_spec_over_all(tmp_path: Path) -> None:
    one, two = (
        "zone: Asia/Tokyo\ndb_name: one\nmeta: {thread: one}\n",
        "db_name: two\nmeta: {gtid: two}\nop: {cases: {I: snapshot}}\n",
    )
    child = load(tmp_path, one=one, two=two, child="extends: [base, one, two]\nmeta: {thread: child}\n")
    assert child.zone == "Asia/Tokyo"
    assert child.columns["db_name"][0].path == ("two",)
    assert {name: value[0].path[0] for name, value in child.meta.items()} == {
        "gtid": "two",
        "scn": "scn",
        "thread": "child",
    }
    assert child.op.cases["I"][0].op == "snapshot" and child.op.cases["D"][0].op == "delete"
    assert load(tmp_path, one=one, two=two, child="extends: [two, base]\n").columns["db_name"][0].path == ("db",)


def test_grandparents(tmp_path: Path) -> None:
    child = load(
        tmp_path, middle="extends: base\nzone: none\ndb_name: middle\n", child="extends: middle\ndb_name: child\n"
    )
    assert (child.zone, child.columns["db_name"][0].path, child.key[0].names) == (
        None,
        ("child",),
        (("pk",), ("keys",)),
    )


def test_a_spec_that_shadows_another_may_extend_it(tmp_path: Path) -> None:
    own, built_in = tmp_path / "own", tmp_path / "builtin"
    for folder, text in ((built_in, BASE), (own, "extends: base\nzone: Asia/Tokyo\n")):
        folder.mkdir()
        (folder / "base.yml").write_text(text)
    folders = FormatFolders((own, built_in))
    assert folders.names() == ["base"]
    assert folders.load("base").zone == "Asia/Tokyo" and folders.load("base").message.skip_bytes == 5
    (own / "other.yml").write_text("extends: base\nabout: other\n")
    assert folders.load("other").zone == "Asia/Tokyo"


@pytest.mark.parametrize(
    "specs",
    [
        {"child": "extends: child\n"},
        {"child": "extends: b\n", "b": "extends: c\n", "c": "extends: child\n"},
        {"child": "extends: [base, b]\n", "b": "extends: b\n"},
    ],
)
def test_circles(tmp_path: Path, specs: dict[str, str]) -> None:
    with pytest.raises(RunnerError) as caught:
        load(tmp_path, **specs)
    assert caught.value.code == "format-cycle" and caught.value.where


def test_two_ways_to_one_parent_are_no_circle(tmp_path: Path) -> None:
    assert load(tmp_path, b="extends: base\n", c="extends: base\nzone: none\n", child="extends: [b, c]\n").zone is None


# --- in a project

FLAVOUR = """
extends: canal
about: A dialect with its own op names
each: [data, updateBefore]
before: {at: updateBefore, over: data}
op:
  by: opType
  cases: {I: insert, U: update, D: {row: delete, before: data}}
"""


def test_a_dialect_is_a_short_file(project, runner) -> None:
    assert len(FLAVOUR.splitlines()) < 15
    project({"formats/acme.yml": FLAVOUR, "project.yml": "sources: [{name: shop, format: acme, files: in/*}]\n"})
    assert "shop_to_changelog" in runner("ls", "-s", "format:acme").out.split()
    listed = runner("formats", "list").out
    assert "acme" in listed and "A dialect with its own op names" in listed
    assert runner("formats", "check", "acme").out == "all good: 1 format\n"
    sql = runner("compile", "-s", "shop_to_changelog", "-q").out
    assert "acme: A dialect with its own op names" in sql and "opType" in sql and "updateBefore" in sql


def test_formats_show_names_the_file_of_each_key(project, runner) -> None:
    project({"formats/acme.yml": FLAVOUR})
    lines = {line.split(":")[0].strip(): line for line in runner("formats", "show", "acme").out.splitlines()}
    assert lines["by"].endswith("# acme.yml:7")
    assert "# canal.yml:" in lines["db_name"] and "# acme.yml:4" in lines["each"]


def test_a_format_written_at_its_source(project, runner) -> None:
    written = "{extends: canal, op: {by: opType}, zone: Asia/Shanghai}"
    inline = f"sources:\n  - name: shop\n    files: in/*\n    format: {written}\n"
    project({"project.yml": inline})
    sql = runner("compile", "-s", "shop_to_changelog", "-q").out
    assert "opType" in sql and "Asia/Shanghai" in sql
    project({"project.yml": inline.replace("opType", "a..b")})
    assert "--> project.yml:4:35" in runner("compile", "-s", "shop_to_changelog").err
    project({"project.yml": inline.replace("{by: opType}", "{bye: opType}")})
    ran = runner("compile", "-s", "shop_to_changelog")
    assert "--> project.yml:4:35" in ran.err and 'did you mean "by"?' in ran.err


def test_a_mistake_that_was_inherited_is_where_it_was_written(project, runner) -> None:
    project(
        {
            "formats/parent.yml": "extends: canal\ndb_name: a..b\n",
            "formats/child.yml": "extends: parent\ntable_name: t\n",
        }
    )
    assert "--> formats/parent.yml:2:1" in runner("formats", "check", "child").err


def test_the_zone_of_the_source_counts_before_that_of_the_format(project, runner) -> None:
    project(
        {
            "formats/acme.yml": "extends: canal\nzone: UTC\n",
            "project.yml": "sources: [{name: shop, format: acme, files: in/*, zone: Asia/Tokyo}]\n",
        }
    )
    sql = runner("compile", "-s", "shop_to_changelog", "-q").out
    assert "Asia/Tokyo" in sql and "zone       Asia/Tokyo" in sql


# --- mistakes are found where they are written

SPEC = "about: x\nop:\n  by: type\n  cases: {I: insert}\nafter: data\n"
SCHEMA = (
    '{"type": "record", "name": "r", "fields": [{"name": "type", "type": "string"}, {"name": "dat", "type": "long"}]}'
)


@pytest.mark.parametrize("mistake", SPECS["mistakes"], ids=lambda one: one["spec"].replace("\n", " "))
def test_a_mistake_is_where_it_is_written(project, runner, mistake: dict[str, str]) -> None:
    project({"formats/g.yml": mistake["spec"], "formats/g.avsc": SCHEMA})
    ran = runner("formats", "check", "g")
    assert ran.code == 2 and f"error[{mistake['error']}]: {mistake.get('says', '')}" in ran.err
    assert f"--> formats/g.yml:{mistake['place']}\n" in ran.err


def test_an_inherited_path_is_where_its_parent_has_it(project, runner) -> None:
    child = "extends: g\nmessage: {encoding: avro, schema: g.avsc}\nabout: data\n"
    project({"formats/g.yml": SPEC, "formats/child.yml": child, "formats/g.avsc": SCHEMA})
    assert "--> formats/g.yml:5:1\n" in runner("formats", "check", "child").err


@pytest.mark.parametrize(
    ("kind", "is_good"),
    [
        ('"string"', True),
        ('["null", "string"]', True),
        ('["null", {"type": "array", "items": "string"}]', True),
        ('["null", {"type": "map", "values": "string"}]', False),
        ('"null"', False),
    ],
)
def test_names_of_a_key_in_avro_are_a_list_or_a_text(project, runner, kind: str, is_good: bool) -> None:
    fields = f"""{{"name": "op", "type": "string"}}, {{"name": "data", "type": {{"type": "map", "values": "string"}}}},
        {{"name": "pk", "type": {kind}}}"""
    schema = f'{{"type": "record", "name": "r", "fields": [{fields}]}}'
    spec = (
        "message: {encoding: avro, schema: r.avsc}\nop: {by: op, cases: {I: insert}}\nafter: data\nkey: {names: pk}\n"
    )
    project({"formats/g.yml": f"about: x\n{spec}", "formats/r.avsc": schema})
    ran = runner("formats", "check", "g")
    assert ran.code == (0 if is_good else 2)
    assert is_good or 'error[schema-field]: in the schema, "pk" is not a list\n  --> formats/g.yml:5:7\n' in ran.err


def test_lists_of_rows_that_have_no_image_before(project, runner) -> None:
    spec = "{about: ours, each: [rows], op: {by: op, cases: {i: insert}}, after: rows, key: {columns: [id]}}"
    project({"project.yml": f"sources:\n  - name: shop\n    files: in/*\n    format: {spec}\n"})
    ran = runner("compile", "-q", "-s", "shop_to_changelog")
    assert ran.code == 0 and "cast(null as map<string,string>) as found_before" in ran.out, ran.err
    assert "case verdict end" not in " ".join(ran.out.split())
