"""Every mistake a person can make has a code, a place and a hint: exit code 2, no traceback."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from runner.project import absent

ROOT = Path(__file__).parent.parent
PROJECT = "name: shop\nsources:\n  - {name: orders, format: canal, files: in/*.jsonl}\n"
FORMAT = "about: x\nop:\n  by: type\n  cases: {I: insert}\nafter: data\n"
FUNCTION = "create function f(a string comment 'a') returns string comment 'c' return a;"
FORM = "create function NAME(ARGUMENT TYPE comment '...') returns TYPE comment '...' return EXPRESSION;"
# Commands that read as little as shows the mistake: `check` compiles all built-in formats too.
# Messages that no known format fits.
DIALECT = '{"act": "A", "new": {"id": 1}, "old": {}}\n{"act": "R", "new": {}, "old": {"id": 1}}\n'
CHECK_FORMAT = ("formats", "check", "g")


@dataclass(frozen=True)
class Case:
    """`place` and `hint` are what follows `-->` and `hint:`, None where there is no such line; `says` is in the
    message.
    """

    code: str
    place: str | None
    hint: str | None
    says: str
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    words: tuple[str, ...] = ("compile",)


def in_project(code: str, place: str | None, hint: str | None, says: str, text: str | bytes, *words: str) -> Case:
    return Case(code, place, hint, says, {"project.yml": text}, words or ("compile",))


def in_format(code: str, place: str, hint: str | None, says: str, text: str) -> Case:
    return Case(code, place, hint, says, {"formats/g.yml": text}, CHECK_FORMAT)


def in_registry(code: str, key: str, says: str, registry: str, hint: str | None) -> Case:
    """A source with this registry; `key` is where the mistake is."""
    text = f"sources: [{{name: a, format: dts_avro, files: x, registry: {registry}}}]"
    return in_project(code, f"project.yml:1:{text.index(f'{key}: ') + 1}", hint, says, text)


def in_model(code: str, place: str, hint: str | None, says: str, sql: str | bytes, **files: str) -> Case:
    return Case(
        code,
        place,
        hint,
        says,
        {"models/m.sql": sql, **{name.replace("__", "/") + ".sql": text for name, text in files.items()}},
    )


def in_properties(code: str, place: str, hint: str | None, says: str, text: str, sql: str = "select 1 as a") -> Case:
    return Case(code, place, hint, says, {"models/m.sql": sql, "models/m.yml": text})


def selecting(code: str, hint: str | None, says: str, *words: str) -> Case:
    return Case(code, None, hint, says, {"models/m.sql": "{{ config(tags=['nightly']) }} select 1"}, words)


STATE = "--state FOLDER, or the environment variable RUNNER_STATE: the target folder of an earlier run"


DELTA = '{"metadata": {"env": {"target": "prod", "storage": "delta", "path": "/lake"}}}'
FAILED = '{"args": %s, "results": [{"unique_id": "model.shop.m", "status": "error"}]}'


def last_run(code: str, place: str | None, says: str, text: str) -> Case:
    hint = "write it again: runner compile, or runner run" if place else "runner maintain"
    return Case(code, place, hint, says, {"models/m.sql": "select 1", "target/run_results.json": text}, ("retry",))


def in_state(says: str, text: str) -> Case:
    files = {"models/m.sql": "select 1", "s/manifest.json": text}
    hint = "write it again: runner compile, or runner run"
    return Case("state-unreadable", "s/manifest.json", hint, says, files, ("ls", "-s", "state:new", "--state", "s"))


def messages_case(code: str, hint: str | None, says: str, *words: str, text: str = DIALECT) -> Case:
    return Case(code, None, hint, says, {"formats/g.yml": FORMAT, "in/a.jsonl": text}, (*words, "in/a.jsonl"))


def with_vars(says: str, place: str, text: str) -> Case:
    return Case("vars", place, '--vars "{start: 2024-01-01, limit: 10}"', says, {}, ("ls", "--vars", text))


def case_file(
    code: str, place: str, hint: str | None, says: str, rows: str, messages: str | None = "{}", folder: str = "g"
) -> Case:
    files = {"formats/g.yml": FORMAT, f"formats/cases/{folder}/a.rows.yml": rows}
    if messages:
        files[f"formats/cases/{folder}/a.messages.jsonl"] = messages
    return Case(code, place, hint, says, files, ("check",))


def in_functions(code: str, place: str, hint: str | None, says: str, sql: str) -> Case:
    return Case(code, place, hint, says, {"macros/functions/f.sql": f"{FUNCTION}\n{sql}"})


def in_function_tests(code: str, place: str, hint: str | None, says: str, tests: str) -> Case:
    files = {"macros/functions/f.sql": FUNCTION, "macros/functions/f.yml": f"functions:\n  {tests}"}
    return Case(code, place, hint, says, files, ("test", "-s", "function.*"))


def in_target(code: str, place: str, hint: str | None, says: str, target: str) -> Case:
    return in_project(code, place, hint, says, f"target: t\ntargets:\n  t: {target}\n")


def in_kafka(code: str, place: str, hint: str | None, says: str, kafka: str) -> Case:
    return in_project(code, place, hint, says, f"sources:\n  - {{name: orders, format: canal, kafka: {kafka}}}\n")


def in_avro(code: str, place: str, hint: str | None, says: str, schema: str, text: str = "{}", more: str = "") -> Case:
    spec = (
        f"about: x\nop:\n  by: type\n  cases: {{I: insert}}\n\nafter: data\n"
        f"message: {{encoding: avro, schema: {schema}}}\n{more}"
    )
    return Case(
        code, place, hint, says, {"formats/g.yml": spec, "formats/s.avsc": text, "formats/folder/x": ""}, CHECK_FORMAT
    )


def in_mirror(code: str, place: str, hint: str | None, says: str, mirror: str) -> Case:
    return Case(code, place, hint, says, {"models/m.yml": f"mirrors:\n  - {{name: m, {mirror}}}"})


A_TO_Z = "use only letters from a to z, digits and _: it becomes the name of a table"
OF = "of: {source: orders, table: t}"

POSITIONAL = """{"type": "record", "name": "r", "fields": [{"name": "type", "type": "string"}, {"name": "names",
    "type": {"type": "array", "items": "string"}},
 {"name": "data", "type": {"type": "array", "items": {"type": "record", "name": "V", "fields": [{"name": "kind",
 "type": {"type": "enum", "name": "K", "symbols": ["A"]}},
  {"name": "value", "type": ["null", {"type": "record", "name": "D", "fields": [{"name": "text", "type": "string"},
  {"name": "number", "type": "int"}]}]}]}}}]}"""


def by_position(says: str, image: str, records: str) -> Case:
    spec = (
        f"about: x\nop:\n  by: type\n  cases: {{I: insert}}\nafter: {{at: data, names: names, {image}}}\n"
        f"message: {{encoding: avro, schema: s.avsc}}\nrecords: {{{records}}}\n"
    )
    files = {"formats/g.yml": spec, "formats/s.avsc": POSITIONAL}
    return Case("schema-field", "formats/g.yml:1:1", None, says, files, CHECK_FORMAT)


SOURCE = "sources: [{name: a, format: canal, files: x%s}]"
ZONES = 'write an IANA name such as Asia/Shanghai or an offset such as "+08:00"; abbreviations are ambiguous'

CASES = [
    # mirrors
    Case(
        "mirror-name",
        "models/m.yml:2:6",
        A_TO_Z,
        '"a b"',
        {"models/m.yml": f"mirrors:\n  - {{name: a b, {OF}, key: [a], columns: {{a: int}}}}"},
    ),
    in_mirror(
        "setting-alone",
        "models/m.yml:2:56",
        "known: partition_by, cluster_by, table_properties, persist_docs",
        '"unique_key"',
        OF + ", config: {unique_key: a}, key: [a], columns: {a: int}",
    ),
    in_mirror(
        "setting-storage",
        "models/m.yml:2:56",
        "catalog: {schema: changelog}, under the target",
        '"persist_docs"',
        OF + ", config: {persist_docs: {columns: true}}, key: [a], columns: {a: int}",
    ),
    in_mirror(
        "column-unknown",
        "models/m.yml:2:47",
        "known: _changed_at, _in_parts, _seq, _source, _unfit, a",
        '"m" has no column "day"',
        OF + ", config: {partition_by: day}, key: [a], columns: {a: int}",
    ),
    in_mirror("mirror-missing", "models/m.yml:2:5", None, '"of"', "key: [a], columns: {a: int}"),
    in_mirror(
        "mirror-missing",
        "models/m.yml:2:15",
        "of: {source: shop, table: shop.orders}",
        '"of" needs "table"',
        "of: {source: orders}, key: [a], columns: {a: int}",
    ),
    in_mirror("mirror-missing", "models/m.yml:2:5", None, '"columns"', OF + ", key: [a]"),
    in_mirror("mirror-missing", "models/m.yml:2:67", None, '"type"', OF + ", key: [a], columns: {a: {sent_as: b}}"),
    in_mirror(
        "source-unknown",
        "models/m.yml:2:20",
        'did you mean "orders"?',
        '"ordrs"',
        "of: {source: ordrs, table: t}, key: [a], columns: {a: int}",
    ),
    in_mirror(
        "mirror-type", "models/m.yml:2:67", 'did you mean "bigint"?', '"bigin"', OF + ", key: [a], columns: {a: bigin}"
    ),
    in_mirror(
        "mirror-type",
        "models/m.yml:2:67",
        "P is 1 to 38, S at most P",
        '"decimal(39,0)"',
        OF + ", key: [a], columns: {a: 'decimal(39,0)'}",
    ),
    in_mirror(
        "mirror-column",
        "models/m.yml:2:75",
        None,
        '"A" cannot be a column beside "a"',
        OF + ", key: [a], columns: {a: int, A: int}",
    ),
    in_mirror("mirror-column", "models/m.yml:2:75", None, '"_seq"', OF + ", key: [a], columns: {a: int, _SEQ: int}"),
    in_mirror(
        "mirror-column", "models/m.yml:2:90", None, '"op"', OF + ", key: [a], history: true, columns: {a: int, op: int}"
    ),
    in_mirror(
        "mirror-key",
        "models/m.yml:2:5",
        "without_key: whole_row or append, if the table has no key",
        '"key"',
        OF + ", columns: {a: int}",
    ),
    in_mirror(
        "mirror-key", "models/m.yml:2:53", 'did you mean "ab"?', '"abc"', OF + ", key: [abc], columns: {ab: int}"
    ),
    in_mirror(
        "mirror-key",
        "models/m.yml:2:47",
        'remove "key" if the table has none',
        '"without_key: append"',
        OF + ", key: [a], without_key: append, columns: {a: int}",
    ),
    in_mirror(
        "test-arguments",
        "models/m.yml:2:100",
        "such as 0.01",
        '"2"',
        OF + ", key: [a], columns: {a: int}, data_tests: [mirrored: {share: 2}]",
    ),
    Case(
        "name-taken",
        "models/m__gone.sql:1",
        "by model models/m.yml",
        '"m__gone"',
        {
            "models/m.yml": f"mirrors:\n  - {{name: m, {OF}, key: [a], columns: {{a: int}}}}",
            "models/m__gone.sql": "select 1 as a",
        },
        ("ls",),
    ),
    in_mirror(
        "mirror-setting",
        "models/m.yml:2:57",
        'did you mean "delete"?',
        '"delte"',
        OF + ", key: [a], on_truncate: delte, columns: {a: int}",
    ),
    # YAML
    in_project("yaml-syntax", "project.yml:2:1", None, "tab character", "name: p\n\tx: 1"),
    in_project("yaml-syntax", "project.yml:2:1", None, "parsing a flow sequence", "name: [a\n"),
    in_project("yaml-syntax", "project.yml:2:1", None, "another document", "name: a\n---\nname: b"),
    in_project("yaml-syntax", "project.yml:1:7", None, "undefined alias", "name: *x"),
    in_project("yaml-syntax", "project.yml:2", None, "control characters", "name: a\nx: \x00b"),
    in_project("yaml-alias", "project.yml:1:11", None, "inside the value that it names", "name: &a [*a]"),
    in_project("yaml-depth", "project.yml:1:106", None, "more than 100", "name: " + "[" * 100_000),
    in_project("yaml-unsupported", "project.yml:1:7", "leave it out: ", '"tag:yaml.org,2002:int"', "name: !!int 1"),
    in_project("yaml-unsupported", "project.yml:2:8", "write the members", '"<<"', "a: &a {b: c}\nvars: {<<: *a}"),
    in_project("file-encoding", "project.yml:2", "save the file as UTF-8", "0xff", b"name: a\nx: \xff"),
    in_project("yaml-type", "project.yml:1:1", None, '"name" must be text, not a list', "name: [a]"),
    in_project("yaml-type", "project.yml:1:1", None, '"name" must be text, not empty', "name:"),
    in_project("yaml-type", "project.yml:1:1", None, "the file must be a mapping", "- a"),
    in_project("yaml-type", "project.yml:1:3", None, "a key must be text", "? [a]\n: 1"),
    in_project("yaml-type", "project.yml:1:1", None, '"vars" must be a mapping', "vars:   [a]"),
    in_project("yaml-type", "project.yml:1:1", None, '"sources" must be a list', "sources: {a: b}"),
    in_project("yaml-type", "project.yml:1:11", None, '"sources[0]" must be a mapping', "sources: [a]"),
    in_project("duplicate-key", "project.yml:3:1", None, '"name" appears twice', "name: a\n\nname: b"),
    in_project("unknown-key", "project.yml:1:1", 'did you mean "name"?', '"nmae"', "nmae: a"),
    # project.yml
    Case(
        "project-missing", None, "start one with: runner init NAME", "nowhere", {}, ("ls", "--project-dir", "nowhere")
    ),
    in_project(
        "target-unknown",
        "project.yml:1:1",
        'did you mean "prod"?',
        '"prd"',
        "target: prd\ntargets: {prod: {}, dev: {}}",
    ),
    in_project(
        "target-unknown",
        "project.yml:2:1",
        'did you mean "prod"?',
        '"prd"',
        "target: dev\ntargets: {prod: {}, dev: {}}",
        "ls",
        "-t",
        "prd",
    ),
    in_project("unknown-key", "project.yml:1:19", 'did you mean "path"?', '"pth"', "targets: {local: {pth: x}}"),
    in_project(
        "target-storage",
        "project.yml:1:19",
        'did you mean "iceberg"?',
        '"icebreg"',
        "targets: {local: {storage: icebreg}}",
    ),
    in_project(
        "env-var-missing",
        "project.yml:1:19",
        None,
        '"NO_SUCH"',
        "targets: {local: {path: \"{{ env_var('NO_SUCH') }}\"}}",
    ),
    in_project(
        "var-missing",
        "project.yml:2:36",
        'did you mean "folder"?',
        '"foldr"',
        "vars: {folder: in}\nsources: [{name: a, format: canal, files: \"{{ var('foldr') }}\"}]",
    ),
    in_project(
        "template",
        "project.yml:1:36",
        'did you mean "target"?',
        '"targt"',
        'sources: [{name: a, format: canal, files: "{{ targt.name }}"}]',
    ),
    in_project(
        "template", "project.yml:1:36", None, "unexpected end", 'sources: [{name: a, format: canal, files: "{{ x"}]'
    ),
    in_project("unknown-key", "project.yml:1:46", 'did you mean "zone"?', '"zon"', SOURCE % ", zon: y"),
    in_project("source-generation", "project.yml:1:46", None, '"-1"', SOURCE % ", generation: -1"),
    in_project("source-missing", "project.yml:1:11", None, '"name"', "sources: [{format: canal, files: x}]"),
    in_project(
        "source-name",
        "project.yml:1:12",
        "use only letters, digits and _: the name becomes part of table names",
        '"a-b"',
        "sources: [{name: a-b, format: canal, files: x}]",
    ),
    in_project(
        "source-messages",
        "project.yml:1:11",
        "files: messages/*.jsonl",
        "exactly one of",
        "sources: [{name: a, format: canal}]",
    ),
    in_project(
        "source-messages", "project.yml:1:11", "files: messages/*.jsonl", "exactly one of", SOURCE % ", table: y"
    ),
    in_project(
        "name-taken",
        "project.yml:1:47",
        "the other one: project.yml:1:11",
        '"A"',
        "sources: [{name: a, format: canal, files: x}, {name: A, format: canal, files: y}]",
    ),
    in_project("spec-zone", "project.yml:1:46", ZONES, '"CST"', SOURCE % ", zone: CST"),
    in_project(
        "spec-zone",
        "project.yml:1:46",
        'did you mean "Asia/Shanghai"?',
        '"Asia/Shanghia"',
        SOURCE % ", zone: Asia/Shanghia",
    ),
    in_project("spec-zone", "project.yml:1:46", ZONES, '"+99:00"', SOURCE % ', zone: "+99:00"'),
    in_project(
        "format-unknown",
        "project.yml:1:21",
        'did you mean "canal"?',
        '"cnal"',
        "sources: [{name: a, format: cnal, files: x}]",
    ),
    in_project(
        "format-unknown",
        "project.yml:1:30",
        'did you mean "canal"?',
        '"cnal"',
        "sources: [{name: a, format: {extends: cnal}, files: x}]",
    ),
    in_project(
        "unknown-key",
        "project.yml:1:46",
        'did you mean "zone"?',
        '"zonne" in "sources[0].format"',
        "sources: [{name: a, format: {extends: canal, zonne: UTC}, files: x}]",
    ),
    in_project(
        "setting-unknown",
        "project.yml:1:10",
        'did you mean "materialized"?',
        '"materialised"',
        "models: {+materialised: view}",
    ),
    Case(
        "setting-folder",
        "project.yml:1:10",
        'did you mean "staging"?',
        '"stagin"',
        {"project.yml": "models: {stagin: {+tags: x}}", "models/staging/m.sql": "select 1"},
    ),
    Case(
        "setting-folder",
        "project.yml:1:10",
        'settings begin with +: "+tags"',
        '"tags"',
        {"project.yml": "models: {tags: x}"},
    ),
    Case(
        "yaml-type",
        "project.yml:1:10",
        None,
        '"models.staging"',
        {"project.yml": "models: {staging: view}", "models/staging/m.sql": "select 1"},
    ),
    in_project(
        "materialization-unknown", "project.yml:1:10", 'did you mean "view"?', '"viw"', "models: {+materialized: viw}"
    ),
    # models
    in_model(
        "new-rows",
        "models/m.sql:1",
        "new_rows takes a view of the changelog",
        'the rows of "freshness" do not tell in which batch',
        "{{ config(materialized='incremental') }} select * from {{ new_rows('freshness') }}",
    ),
    in_model(
        "setting-alone",
        "models/m.sql:1",
        "materialized: incremental",
        '"new_rows" has no meaning',
        "select * from {{ new_rows('changelog') }}",
    ),
    in_model(
        "ref-unknown",
        "models/m.sql:3",
        'did you mean "changelog"?',
        '"chngelog"',
        "select *\n\nfrom {{ ref('chngelog') }}",
    ),
    in_model(
        "ref-unknown",
        "models/m.sql:1",
        'there are no packages: this project is "shop"',
        'there is no project "other"',
        "select * from {{ ref('other', 'm') }}",
    ),
    in_model(
        "template",
        "models/m.sql:1",
        "for instance: ref('orders')",
        "ref takes the name of a model, after the project's name or alone",
        "select * from {{ ref('shop', 'm', 'a') }}",
    ),
    in_model(
        "source-unknown", "models/m.sql:2", 'did you mean "orders"?', '"order"', "select *\nfrom {{ source('order') }}"
    ),
    in_model(
        "template",
        "models/m.sql:2",
        "for instance: source('orders')",
        "source takes the name of a source of messages, or a source and its table",
        "select *\nfrom {{ source('shop', 'orders', 'a') }}",
    ),
    in_model("source-unknown", "models/m.sql:1", "known: orders", 'no source "x"', "from {{ changelog_of('x') }}"),
    in_model("template", "models/m.sql:2", 'did you mean "ref"?', '"reff"', "select\n {{ reff('x') }}"),
    in_model("template", "models/m.sql:2", None, '"target" has no "nme"', "select\n {{ target.nme }}"),
    in_model(
        "template", "models/m.sql:1", absent.ATTRIBUTES[".schema"], '"target" has no "schema"', "{{ target.schema }}"
    ),
    in_model("template", "models/m.sql:1", absent.ATTRIBUTES[".schema"], 'a text has no "schema"', "{{ this.schema }}"),
    in_model(
        "template", "models/m.sql:1", absent.ATTRIBUTES[".get"], 'a function has no "get"', "{{ config.get('a') }}"
    ),
    in_model("template", "models/m.sql:1", None, 'a text has no "abc"', "{{ 'x'.abc }}"),
    in_model("template", "models/m.sql:3", None, "end of", "select\n\n{% if true %}"),
    in_model("template", "models/m.sql:2", None, "unsupported operand", "select\n {{ 1 + 'a' }}"),
    in_model("template", "models/m.sql:2", None, '"include" is not for', "select 1\n{% include 'nowhere' %}"),
    in_model(
        "template-unsafe", "models/m.sql:2", "a template reads", "attribute '__class__'", "--\n{{ ''.__class__.x }}"
    ),
    in_model("template-size", "models/m.sql:2", "make less in", "40000000 characters", "--\n{{ 'a' * 10 ** 10 }}"),
    in_model(
        "template",
        "macros/mine.sql:4",
        "called in models/m.sql",
        '"qqqq"',
        "select\n {{ mine(1) }}",
        macros__mine="\n{% macro mine(a) %}\n\n{{ qqqq }}\n{% endmacro %}",
    ),
    in_model("template", "macros/mine.sql:3", None, '"qqqq"', "select 1", macros__mine="\n\n{{ qqqq }}\n"),
    in_model(
        "template",
        "macros/mine.sql:3",
        None,
        "unexpected '}'",
        "select 1",
        macros__mine="\n{% macro mine(a) %}\n{{ a }{% endmacro %}",
    ),
    in_model(
        "template",
        "models/m.sql:2",
        None,
        "not more than 1 argument",
        "select\n {{ mine(1, 2) }}",
        macros__mine="{% macro mine(a) %}{{ a }}{% endmacro %}",
    ),
    in_model(
        "macro-taken",
        "macros/mine.sql:2",
        "give it another name; a project may replace data tests (test_*) and the macros that docs/runner.md lists",
        '"header" is the name of a built-in macro',
        "select 1",
        macros__mine="{% macro mine() %}{% endmacro %}\n{% macro header() %}{% endmacro %}",
    ),
    in_model(
        "macro-taken",
        "macros/b.sql:2",
        "the other one: macros/a.sql:1",
        'there are two macros "mine"',
        "select 1",
        macros__a="{% macro mine() %}{% endmacro %}",
        macros__b="\n{% macro mine() %}{% endmacro %}",
    ),
    in_model(
        "macro-taken",
        "macros/a.sql:3",
        "the other one: macros/a.sql:1",
        'there are two macros "test_mine"',
        "select 1",
        macros__a="{% macro test_mine(model) %}{% endmacro %}\n\n{% test mine(model) %}{% endtest %}",
    ),
    # SQL functions
    in_functions("function-syntax", "macros/functions/f.sql:3", FORM, 'expected "create", not "select"', "\nselect 1;"),
    in_functions(
        "function-syntax",
        "macros/functions/f.sql:2",
        FORM,
        'expected "function", not "or"',
        "create or replace function g() returns int comment 'c' return 1;",
    ),
    in_functions(
        "function-syntax",
        "macros/functions/f.sql:4",
        FORM,
        'the argument "b" has no comment',
        "-- g\ncreate function g(a int comment 'a',\n  b int) returns int comment 'c' return 1;",
    ),
    in_functions(
        "function-syntax",
        "macros/functions/f.sql:2",
        FORM,
        'the function "g" has no comment',
        "create function g()\nreturns int return 1;",
    ),
    in_functions(
        "function-syntax",
        "macros/functions/f.sql:3",
        FORM,
        'the function "g" has no comment',
        "create function g()\nreturns int comment '' return 1;",
    ),
    in_functions(
        "function-syntax",
        "macros/functions/f.sql:2",
        FORM,
        'the argument "a" has no type',
        "create function g(a comment 'a') returns int comment 'c' return 1;",
    ),
    in_functions(
        "function-syntax",
        "macros/functions/f.sql:2",
        FORM,
        'the result of "g" has no type',
        "create function g() returns comment 'c' return 1;",
    ),
    in_functions(
        "function-syntax",
        "macros/functions/f.sql:2",
        FORM,
        'two arguments "A"',
        "create function g(a int comment 'a', A int comment 'a') returns int comment 'c' return 1;",
    ),
    in_functions(
        "function-syntax",
        "macros/functions/f.sql:3",
        FORM,
        '"g" returns nothing',
        "create function g() returns int comment 'c'\nreturn;",
    ),
    in_functions(
        "function-syntax",
        "macros/functions/f.sql:2",
        FORM,
        "must end with a semicolon",
        "create function g() returns int comment 'c' return 1",
    ),
    in_functions("function-syntax", "macros/functions/f.sql:2", FORM, "is not complete", "create function g"),
    in_functions(
        "function-syntax", "macros/functions/f.sql:2", FORM, """expected a name, not "'g'\"""", "create function 'g'()"
    ),
    in_functions(
        "function-syntax",
        "macros/functions/f.sql:2",
        "use a-z, 0-9 and _, and no digit at the start",
        '"isPaid" cannot be the name',
        "create function isPaid() returns int comment 'c' return 1;",
    ),
    in_functions(
        "function-taken",
        "macros/functions/f.sql:2",
        "it is a built-in function",
        '"changed_columns" is taken',
        "create function changed_columns() returns int comment 'c' return 1;",
    ),
    in_functions(
        "function-taken",
        "macros/functions/f.sql:2",
        "it is a function in Python of this project",
        '"java_bytes" is taken',
        "create function java_bytes() returns int comment 'c' return 1;",
    ),
    in_functions(
        "function-taken",
        "macros/functions/f.sql:2",
        "it is the function at macros/functions/f.sql:1",
        '"f" is taken',
        FUNCTION,
    ),
    Case(
        "function-cycle",
        "macros/functions/f.sql:2",
        None,
        "in a circle: g -> h -> g",
        {
            "models/m.sql": "select G (1)",
            "macros/functions/f.sql": "-- g\n" + FUNCTION.replace(" f(", " g(").replace("return a", "return h(a)"),
            "macros/functions/h.sql": FUNCTION.replace(" f(", " h(").replace("return a", "return g(a)"),
        },
    ),
    in_functions("template", "macros/functions/f.sql:2", None, "no filter named 'sql_txt'", "{{ 'a' | sql_txt }}"),
    in_function_tests(
        "function-unknown", "macros/functions/f.yml:2:3", 'did you mean "columns_of"?', '"colums_of"', "colums_of: []"
    ),
    Case(
        "unknown-key",
        "macros/functions/f.yml:1:1",
        'did you mean "functions"?',
        '"function"',
        {"macros/functions/f.yml": "function: {}"},
        ("ls",),
    ),
    in_function_tests(
        "unknown-key",
        "macros/functions/f.yml:2:20",
        'did you mean "expect"?',
        '"expected"',
        "f: [{given: [a], expected: a}]",
    ),
    in_function_tests("unit-test-missing", "macros/functions/f.yml:2:7", None, 'needs "expect"', "f: [{given: [a]}]"),
    in_function_tests(
        "unit-test-given",
        "macros/functions/f.yml:3:8",
        "arguments: a",
        '"f" takes 1 arguments, and 2 are given',
        "f:\n    - {given: [a, b], expect: a}",
    ),
    in_function_tests(
        "yaml-type", "macros/functions/f.yml:2:3", None, '"functions.f" must be a list', "f: {given: [], expect: a}"
    ),
    in_function_tests("yaml-type", "macros/functions/f.yml:2:8", None, "must be a list", "f: [{given: a, expect: a}]"),
    Case(
        "name-taken",
        "macros/functions/g.yml:1:13",
        "by unit_test macros/functions/f.yml",
        '"function.f"',
        {f"macros/functions/{name}.yml": "functions: {f: []}" for name in "fg"},
        ("ls",),
    ),
    in_model(
        "var-missing",
        "models/m.sql:1",
        'set it under "vars" in project.yml or with --vars',
        '"start"',
        "select {{ var('start') }}",
    ),
    in_model(
        "secret-in-model",
        "models/m.sql:2",
        "compiled SQL is written to files; if all may see the value: env_var('NAME', public=true)",
        'the SQL would show the secret "HOME"',
        "select\n'{{ env_var('HOME') }}'",
    ),
    in_model("env-var-missing", "models/m.sql:2", None, '"NO_SUCH"', "select\n{{ env_var('NO_SUCH') }}"),
    in_model("file-encoding", "models/m.sql:2", "save the file as UTF-8", "0xff", b"select\n'\xff'"),
    in_model("model-empty", "models/m.sql:1", None, '"m"', "{# soon #}\n"),
    in_model(
        "setting-unknown",
        "models/m.sql:2",
        'did you mean "materialized"?',
        '"materialised"',
        "\n{{ config(materialised='view') }} select 1",
    ),
    in_model(
        "template",
        "models/m.sql:1",
        "for instance: config(materialized='table')",
        "by name",
        "{{ config('view') }} select 1",
    ),
    in_model(
        "materialization-unknown",
        "models/m.sql:2",
        'did you mean "table"?',
        '"tabel"',
        "\n{{ config(materialized='tabel') }} select 1",
    ),
    in_model(
        "materialization-unknown",
        "models/m.sql:1",
        "known: incremental, table, view",
        '"streaming"',
        "{{ config(materialized='streaming') }} select 1",
    ),
    *(
        in_model(code, "models/m.sql:1", hint, says, f"{{{{ config({config}) }}}} select 1 as a")
        for code, hint, says, config in (
            ("setting-alone", "materialized: table", '"cluster_by" has no meaning for a view', "cluster_by='a'"),
            ("setting-parts", "partition_by: [day, country]", '"partition_by" is', "partition_by=5"),
            ("setting-parts", "remove one of them", '"A" twice', "partition_by=['a', 'A']"),
            ("setting-parts", 'did you mean "days"?', 'no transform "day"', "partition_by='day(at)'"),
            ("setting-parts", "partition_by: ['bucket(16, id)']", '"bucket(a)"', "partition_by='bucket(a)'"),
            ("setting-parts", "partition_by: ['days(at)']", '"days(4, a)"', "partition_by='days(4, a)'"),
            ("setting-value", "table_properties: {delta.enableChangeDataFeed: true}", "mapping", "table_properties=[]"),
            (
                "setting-value",
                "persist_docs: {relation: true} makes the description the comment",
                '"comment"',
                "table_properties={'comment': 'a'}",
            ),
            (
                "setting-value",
                "persist_docs: {relation: true, columns: true}",
                "whether it is so",
                "persist_docs={'relation': 5}",
            ),
            ("setting-value", 'did you mean "columns"?', '"column"', "persist_docs={'column': true}"),
            ("setting-value", 'did you mean "append"?', '"apend"', "incremental_strategy='apend'"),
            ("setting-value", "contract: {enforced: true}", '"contract" says', "contract=true"),
            ("setting-alone", "materialized: incremental", '"incremental_strategy"', "incremental_strategy='append'"),
            (
                "setting-storage",
                "partition_by keeps rows in folders; delta and iceberg have cluster_by",
                'tables in parquet do not have "cluster_by"',
                "materialized='table', cluster_by='a'",
            ),
            (
                "setting-storage",
                "make a column of it, and name that",
                '"days(a)", but columns alone',
                "materialized='table', partition_by='days(a)'",
            ),
            (
                "setting-strategy",
                "unique_key: id",
                '"merge" needs "unique_key"',
                "materialized='incremental', incremental_strategy='merge'",
            ),
            (
                "setting-strategy",
                "incremental_strategy: merge, or no unique_key",
                '"unique_key" has no meaning with "append"',
                "materialized='incremental', incremental_strategy='append', unique_key='a'",
            ),
            (
                "setting-strategy",
                "partition_by: day",
                '"insert_overwrite" replaces partitions',
                "materialized='incremental', incremental_strategy='insert_overwrite'",
            ),
            (
                "contract-columns",
                "columns: [{name: id, data_type: bigint}]",
                "needs the columns",
                "contract={'enforced': true}",
            ),
        )
    ),
    *(
        Case(
            "setting-storage",
            "models/m.sql:1",
            hint,
            says,
            {
                "project.yml": PROJECT + "target: d\ntargets: {d: {storage: delta, path: x}}\n",
                "models/m.sql": f"{{{{ config(materialized='table', {config}) }}}} select 1 as a",
            },
        )
        for hint, says, config in (
            ("keep one of them", '"cluster_by" beside "partition_by"', "cluster_by='a', partition_by='b'"),
            ("name the 4 that most queries use", "more than 4 columns", "cluster_by=['a', 'b', 'c', 'd', 'e']"),
        )
    ),
    *(
        in_properties(
            code,
            f"models/m.yml:1:{column}",
            hint,
            says,
            f"models: [{{name: m, config: {{contract: {{enforced: true}}}}, columns: [{{name: a{entry}}}]}}]",
        )
        for code, column, hint, says, entry in (
            ("contract-columns", 68, "data_type: string", 'the type of the column "a"', ""),
            ("contract-type", 78, 'did you mean "bigint"?', '"bigin"', ", data_type: bigin"),
            (
                "contract-constraint",
                109,
                "constraints: [{type: not_null}]; data tests check what else is to be so",
                '"unique"',
                ", data_type: int, constraints: [{type: unique}]",
            ),
        )
    ),
    in_properties(
        "contract-constraint",
        "models/m.sql:1",
        "materialized: table, or the data test not_null",
        '"a" of a view',
        "models: [{name: m, config: {contract: {enforced: true}}, "
        "columns: [{name: a, data_type: int, constraints: [{type: not_null}]}]}]",
    ),
    in_model(
        "setting-tags", "models/m.sql:1", "tags: [nightly, orders]", "tags must be", "{{ config(tags=5) }} select 1"
    ),
    Case(
        "cycle",
        "models/a.sql:1",
        None,
        "a -> b -> c -> a",
        {f"models/{m}.sql": f"select * from {{{{ ref('{r}') }}}}" for m, r in ("ab", "bc", "ca")},
    ),
    in_model("cycle", "models/m.sql:1", None, "m -> m", "select * from {{ ref('m') }}"),
    Case(
        "node-name",
        "models/m.yml:1:33",
        "its SQL is written to a file of this name",
        '"../../out" leads out of a folder',
        {
            "models/m.sql": "select 1 as a",
            "models/m.yml": "models: [{name: m, data_tests: [{expression_is_true: "
            "{name: ../../out, expression: a > 0}}]}]",
        },
        ("compile",),
    ),
    Case(
        "name-taken",
        "models/b/x.sql:1",
        "by model models/a/x.sql",
        '"x"',
        {"models/a/x.sql": "select 1", "models/b/x.sql": "select 2"},
    ),
    Case(
        "name-taken",
        "models/changelog.sql:1",
        "by model macros/views.sql#changelog",
        '"changelog"',
        {"models/changelog.sql": "select 1"},
    ),
    Case(
        "name-taken",
        "models/orders_to_changelog.sql:1",
        "by model project.yml#orders",
        '"orders_to_changelog"',
        {"models/orders_to_changelog.sql": "select 1"},
    ),
    # properties
    in_properties("unknown-key", "models/m.yml:1:1", 'did you mean "models"?', '"modles"', "modles: []"),
    in_properties("name-missing", "models/m.yml:1:10", None, '"models"', "models: [{description: x}]"),
    in_properties(
        "model-unknown", "models/m.yml:1:11", 'did you mean "changelog"?', '"chngelog"', "models: [{name: chngelog}]"
    ),
    in_properties(
        "unknown-key",
        "models/m.yml:1:20",
        'did you mean "data_tests"?',
        '"data_test"',
        "models: [{name: m, data_test: [unique]}]",
    ),
    in_properties(
        "unknown-key",
        "models/m.yml:1:1",
        "the changelog has the history of each row, and a mirror with history: true makes a table of it",
        '"snapshots"',
        "snapshots: []",
    ),
    in_properties(
        "properties-version", "models/m.yml:1:1", "remove the line, or write version: 2", 'not "3"', "version: 3"
    ),
    in_properties(
        "doc-unknown",
        "models/m.yml:1:20",
        "write {% docs NAME %} ... {% enddocs %} in models/NAME.md",
        '"orders"',
        "models: [{name: m, description: \"{{ doc('orders') }}\"}]",
    ),
    Case(
        "doc-unknown",
        "models/m.yml:1:20",
        'did you mean "orders"?',
        '"order"',
        {
            "models/m.sql": "select 1 as a",
            "models/a.md": "{% docs orders %}one row an order{% enddocs %}",
            "models/m.yml": "models: [{name: m, description: \"{{ doc('order') }}\"}]",
        },
    ),
    Case(
        "duplicate-key",
        "models/a.md:3",
        "keep one",
        '"orders"',
        {"models/a.md": "{% docs orders %}a{% enddocs %}\n\n{% docs orders %}b{% enddocs %}"},
    ),
    in_properties(
        "duplicate-key",
        "models/m.yml:1:37",
        "keep one of them",
        '"tests" is an older name',
        "models: [{name: m, data_tests: [a], tests: []}]",
    ),
    in_properties(
        "setting-value", "models/m.yml:1:29", None, '"enabled"', "models: [{name: m, config: {enabled: perhaps}}]"
    ),
    in_properties(
        "setting-value",
        "models/m.yml:1:29",
        "post_hook: analyze ...",
        '"pre_hook"',
        "models: [{name: m, config: {pre-hook: [{sqls: a}]}}]",
    ),
    in_properties(
        "setting-value", "models/m.yml:1:29", "meta: {owner: data}", '"meta"', "models: [{name: m, config: {meta: a}}]"
    ),
    in_properties(
        "setting-unknown",
        "models/m.yml:1:29",
        "storage of the target says it, for all tables of a run",
        '"file_format"',
        "models: [{name: m, config: {file_format: delta}}]",
    ),
    in_properties(
        "setting-unknown",
        "models/m.yml:1:54",
        'did you mean "severity"?',
        '"severty"',
        "models: [{name: m, data_tests: [row_count: {config: {severty: warn}}]}]",
    ),
    in_properties(
        "setting-value",
        "models/m.yml:1:45",
        "limit: 100",
        '"limit"',
        "models: [{name: m, data_tests: [row_count: {limit: many}]}]",
    ),
    in_properties(
        "duplicate-key",
        "models/m.yml:1:45",
        "keep one",
        '"severity" stands beside "config"',
        "models: [{name: m, data_tests: [row_count: {severity: warn, config: {severity: warn}}]}]",
    ),
    in_properties(
        "test-arguments",
        "models/m.yml:1:45",
        'put all arguments under "arguments"',
        '"at_least" stands beside "arguments"',
        "models: [{name: m, data_tests: [row_count: {at_least: 1, arguments: {at_most: 2}}]}]",
    ),
    Case("csv-columns", "seeds/a.csv:1", "the first line names the columns", "no name", {"seeds/a.csv": "a,\n1,2\n"}),
    Case("csv-columns", "seeds/a.csv:1", "the first line names the columns", '"A"', {"seeds/a.csv": "A,b,a\n"}),
    Case(
        "csv-line",
        "seeds/a.csv:4",
        'values are separated by ","; one that contains it stands in double quotes, doubled within it',
        "the line has 3 values, and the file 2 columns",
        {"seeds/a.csv": 'a,b\n1,"x\ny"\n1,2,3\n'},
    ),
    Case(
        "csv-line",
        "seeds/a.csv:2",
        'values are separated by ","; one that contains it stands in double quotes, doubled within it',
        "unexpected end of data",
        {"seeds/a.csv": 'a,b\n1,"x\n'},
    ),
    Case(
        "column-unknown",
        "seeds/a.csv:1",
        'did you mean "amount"?',
        '"amout"',
        {
            "seeds/a.csv": "id,amount\n1,2\n",
            "seeds/a.yml": "seeds: [{name: a, config: {column_types: {amout: int}}}]",
        },
    ),
    Case(
        "seed-unknown",
        "seeds/a.yml:1:10",
        'did you mean "people"?',
        '"peopel"',
        {"seeds/people.csv": "id\n1\n", "seeds/a.yml": "seeds: [{name: peopel}]"},
    ),
    Case(
        "setting-value",
        "seeds/a.yml:1:28",
        'delimiter: ";"',
        "one character",
        {"seeds/a.csv": "id\n1\n", "seeds/a.yml": "seeds: [{name: a, config: {delimiter: tab}}]"},
    ),
    Case(
        "setting-value",
        "seeds/a.yml:1:28",
        "{id: bigint}",
        '"column_types"',
        {"seeds/a.csv": "id\n1\n", "seeds/a.yml": "seeds: [{name: a, config: {column_types: [id]}}]"},
    ),
    Case(
        "name-taken",
        "models/a.sql:1",
        "by seed seeds/a.csv",
        '"a"',
        {"seeds/a.csv": "id\n1\n", "models/a.sql": "select 1"},
    ),
    Case(
        "template",
        "models/m.sql:1",
        "there are no packages: copy the macro into macros/",
        '"dbt_utils" is not defined',
        {"models/m.sql": "select {{ dbt_utils.star() }}"},
    ),
    Case(
        "template",
        "models/m.sql:1",
        "the changelog has the history of each row, and a mirror with history: true makes a table of it",
        "unknown tag 'snapshot'",
        {"models/m.sql": "{% snapshot a %} select 1 {% endsnapshot %}"},
    ),
    in_properties(
        "setting-value",
        "models/m.yml:1:33",
        "{count: 12, period: hour}",
        "a whole number and a period",
        "sources: [{name: s, freshness: {error_after: {period: day}}, tables: [{name: t}]}]",
    ),
    in_properties(
        "setting-value",
        "models/m.yml:1:56",
        'did you mean "hour"?',
        '"hours"',
        "sources: [{name: s, freshness: {warn_after: {count: 1, period: hours}}, tables: [{name: t}]}]",
    ),
    in_properties(
        "setting-value",
        "models/m.yml:1:40",
        "location: data/orders",
        "needs a location",
        "sources: [{name: s, tables: [{name: t, external: {using: delta}}]}]",
    ),
    in_properties(
        "source-unknown",
        "models/m.sql:1",
        'did you mean "crm.people"?',
        '"crm.peple"',
        "sources: [{name: crm, tables: [{name: people}]}]",
        "select * from {{ source('crm', 'peple') }}",
    ),
    in_properties(
        "unit-test-rows",
        "models/m.yml:1:64",
        'did you mean "csv"?',
        '"cvs"',
        "unit_tests: [{name: t, model: m, given: [], expect: {rows: [], format: cvs}}]",
    ),
    Case(
        "unit-test-rows",
        "models/m.yml:1:54",
        'did you mean "people.csv"?',
        '"peopel"',
        {
            "tests/fixtures/people.csv": "a\n1\n",
            "models/m.sql": "select 1 as a",
            "models/m.yml": "unit_tests: [{name: t, model: m, given: [], expect: {fixture: peopel}}]",
        },
    ),
    in_properties(
        "unit-test-overrides",
        "models/m.yml:1:15",
        None,
        '"changelog"',
        "unit_tests: [{overrides: {}, name: t, model: changelog, given: [{input: orders_to_changelog, rows: []}], "
        "expect: {rows: []}}]",
    ),
    Case(
        "macro-unknown",
        "models/m.yml:1:14",
        'did you mean "cents"?',
        '"centz"',
        {
            "macros/cents.sql": "{% macro cents() %}1{% endmacro %}",
            "models/m.sql": "select 1 as a",
            "models/m.yml": "unit_tests: [{name: t, model: m, given: [], expect: {rows: []}, "
            "overrides: {macros: {centz: a}}}]",
        },
        ("check",),
    ),
    Case(
        "ref-disabled",
        "models/b.sql:1",
        'enable "a", or disable what reads it',
        '"b" reads "a"',
        {"models/a.sql": "{{ config(enabled=false) }} select 1", "models/b.sql": "select * from {{ ref('a') }}"},
    ),
    Case(
        "ref-disabled",
        "tests/t.sql:1",
        'enable "a", or disable what reads it',
        '"t" reads "a"',
        {"models/a.sql": "{{ config(enabled=false) }} select 1", "tests/t.sql": "select * from {{ ref('a') }}"},
    ),
    Case(
        "ref-unknown",
        "tests/t.sql:1",
        'did you mean "changelog"?',
        '"chngelog"',
        {"tests/t.sql": "select * from {{ ref('chngelog') }}"},
    ),
    Case(
        "ref-unknown",
        "models/m.yml:1:36",
        'did you mean "changelog"?',
        'there is no model "chngelog"',
        {"models/m.yml": "exposures: [{name: e, depends_on: [ref('chngelog')]}]"},
    ),
    Case(
        "source-unknown",
        "models/m.yml:1:36",
        "a YAML file in models/ declares it under sources",
        'there is no source "a.b"',
        {"models/m.yml": "exposures: [{name: e, depends_on: [\"source('a', 'b')\"]}]"},
    ),
    in_properties(
        "duplicate-key", "models/m.yml:3:5", "also at models/m.yml:2:5", '"m"', "models:\n  - name: m\n  - name: m\n"
    ),
    in_properties(
        "setting-unknown", "models/m.yml:1:29", 'did you mean "tags"?', '"tag"', "models: [{name: m, config: {tag: a}}]"
    ),
    in_properties(
        "materialization-unknown",
        "models/m.yml:1:29",
        'did you mean "view"?',
        '"viw"',
        "models: [{name: m, config: {materialized: viw}}]",
    ),
    in_properties(
        "setting-tags",
        "models/m.yml:1:29",
        "tags: [nightly, orders]",
        "tags must be",
        "models: [{name: m, config: {tags: {a: b}}}]",
    ),
    in_properties(
        "config-fixed",
        "models/m.yml:1:28",
        None,
        '"changelog"',
        "models: [{name: changelog, config: {materialized: table}}]",
    ),
    in_properties(
        "column-unknown",
        "models/m.yml:1:39",
        'did you mean "op"?',
        '"opp"',
        "models: [{name: changelog, columns: [{name: opp}]}]",
    ),
    in_properties(
        "yaml-type",
        "models/m.yml:1:20",
        None,
        '"models[0].columns" must be a list',
        "models: [{name: m, columns: {a: b}}]",
    ),
    in_properties(
        "test-unknown",
        "models/m.yml:5:21",
        'did you mean "not_null"?',
        '"not_nul"',
        "models:\n- name: m\n  columns:\n  - name: a\n    data_tests:    [not_nul]\n",
    ),
    in_properties(
        "test-unknown",
        "models/m.yml:1:33",
        "known: accepted_values, expression_is_true, fresh, mirrored, not_null, relationships, row_count, unique",
        '"conserved"',
        "models: [{name: m, data_tests: [conserved]}]",
    ),
    in_properties(
        "test-arguments",
        "models/m.yml:1:53",
        'did you mean "values"?',
        'takes no argument "value"',
        "models: [{name: m, columns: [{name: a, data_tests: [accepted_values: {value: [x]}]}]}]",
    ),
    in_properties(
        "test-arguments",
        "models/m.yml:1:33",
        None,
        '"mirrored" is only for mirrors',
        "models: [{name: m, data_tests: [mirrored]}]",
    ),
    in_properties(
        "test-arguments",
        "models/m.yml:1:53",
        None,
        'the data test "accepted_values" needs values',
        "models: [{name: m, columns: [{name: a, data_tests: [accepted_values]}]}]",
    ),
    in_properties(
        "setting-value",
        "models/m.yml:1:71",
        'error_if: ">10"',
        '"error_if" compares the number of failures, and "5" does not',
        "models: [{name: m, data_tests: [not_null: {column: a, warn_if: '> 1', error_if: '5'}]}]",
    ),
    in_properties(
        "var-missing",
        "models/m.yml:1:33",
        'set it under "vars" in project.yml or with --vars',
        'the variable "q" is not set',
        "models: [{name: m, data_tests: [not_null: {column: a, where: \"x = {{ var('q') }}\"}]}]",
    ),
    in_project(
        "unknown-key", "project.yml:1:1", absent.PROJECT_KEYS["model-paths"], '"model-paths"', "model-paths: [a]"
    ),
    in_project("unknown-key", "project.yml:1:1", absent.PROJECT_KEYS["data_tests"], '"data_tests"', "data_tests: {}"),
    in_properties(
        "test-arguments",
        "models/m.yml:1:33",
        'name the column, or put the test under it in "columns"',
        'the data test "not_null" needs column',
        "models: [{name: m, data_tests: [not_null]}]",
    ),
    in_properties(
        "test-arguments",
        "models/m.yml:1:33",
        "for instance: accepted_values: {values: [a, b]}",
        "one name",
        "models: [{name: m, data_tests: [{unique: , not_null: }]}]",
    ),
    in_properties(
        "yaml-type",
        "models/m.yml:1:71",
        None,
        "must be a list",
        "models: [{name: m, columns: [{name: a, data_tests: [accepted_values: {values: abc}]}]}]",
    ),
    in_properties(
        "test-severity",
        "models/m.yml:1:69",
        'did you mean "warn"?',
        '"warning"',
        "models: [{name: m, data_tests: [expression_is_true: {expression: a, severity: warning}]}]",
    ),
    in_properties(
        "ref-unknown",
        "models/m.yml:1:69",
        'did you mean "m"?',
        '"mm"',
        "models: [{name: m, columns: [{name: a, data_tests: [relationships: {to: ref('mm'), field: a}]}]}]",
    ),
    in_properties("unit-test-missing", "models/m.yml:1:14", None, '"given"', "unit_tests: [{name: t, model: m}]"),
    in_properties(
        "unit-test-missing",
        "models/m.yml:1:42",
        None,
        '"rows"',
        "unit_tests: [{name: t, model: m, given: [{input: x}], expect: {rows: []}}]",
    ),
    in_properties(
        "unit-test-missing",
        "models/m.yml:1:45",
        None,
        '"rows"',
        "unit_tests: [{name: t, model: m, given: [], expect: {}}]",
    ),
    in_properties(
        "unknown-key",
        "models/m.yml:1:45",
        'did you mean "expect"?',
        '"expct"',
        "unit_tests: [{name: t, model: m, given: [], expct: {rows: []}}]",
    ),
    in_properties(
        "model-unknown",
        "models/m.yml:1:24",
        'did you mean "m"?',
        '"mm"',
        "unit_tests: [{name: t, model: mm, given: [], expect: {rows: []}}]",
    ),
    in_properties(
        "unit-test-given",
        "models/m.yml:1:34",
        "inputs of the model: changelog",
        "lacks rows for changelog",
        "unit_tests: [{name: t, model: m, given: [], expect: {rows: []}}]",
        "select * from {{ ref('changelog') }}",
    ),
    in_properties(
        "unit-test-given",
        "models/m.yml:1:34",
        "inputs of the model: none",
        "gives rows for x",
        "unit_tests: [{name: t, model: m, given: [{input: x, rows: []}], expect: {rows: []}}]",
    ),
    in_properties(
        "yaml-type",
        "models/m.yml:1:61",
        None,
        '"unit_tests[0].expect.rows[0]" must be a mapping',
        "unit_tests: [{name: t, model: m, given: [], expect: {rows: [a]}}]",
    ),
    # formats
    in_format(
        "unknown-key", "formats/g.yml:6:1", 'did you mean "schema_name"?', '"schem_name"', FORMAT + "schem_name: a\n"
    ),
    in_format(
        "spec-missing", "formats/g.yml:2:1", None, '"op.by"', "about: x\nop: {cases: {I: insert}}\nafter: data\n"
    ),
    in_format(
        "spec-missing",
        "formats/g.yml:6:1",
        "for instance key: {names: pkNames}",
        'exactly one of "names"',
        FORMAT + "key: {split: x}\n",
    ),
    in_format(
        "spec-missing",
        "formats/g.yml:6:1",
        'for instance {names: keys, values: key_values, split: ","}',
        '"values" need "split"',
        FORMAT + "key: {names: a, values: b}\n",
    ),
    in_format(
        "spec-missing",
        "formats/g.yml:6:1",
        'for instance {names: keys, split: ","}',
        '"split" needs "names"',
        FORMAT + "key: {columns: [a], split: x}\n",
    ),
    in_format(
        "spec-missing",
        "formats/g.yml:6:1",
        "for instance {at: columns, name: name, value: type, table: FILE}",
        'with "name" needs "value"',
        FORMAT + "types: {at: a, name: n, table: mysql}\n",
    ),
    in_format("spec-missing", "formats/g.yml:6:8", None, '"name"', FORMAT + "drop: [{if: {has: a}}]\n"),
    in_format(
        "spec-pattern",
        "formats/g.yml:6:18",
        "for instance [{tenant}.]{db_name}; put brackets around what may be missing",
        "{db_name} once",
        FORMAT + 'db_name: {at: a, pattern: "{tenant}.{x}"}\n',
    ),
    in_format(
        "spec-word",
        "formats/g.yml:6:28",
        "for instance {at: file, as: numbers, count: 2}",
        '"count"',
        FORMAT + "seq: [{at: a, as: numbers, count: 0}]\n",
    ),
    in_format(
        "spec-word", "formats/g.yml:6:17", "known: extended_json", '"yaml"', FORMAT + "before: {at: b, text: yaml}\n"
    ),
    in_format(
        "spec-line",
        "formats/g.yml:5:27",
        "for instance {row: update, half: before}",
        "halves",
        FORMAT.replace("cases: {I: insert}", "cases: {I: insert}\n  missing: [{row: insert, half: before}]"),
    ),
    in_project(
        "types-unknown",
        "project.yml:1:75",
        'did you mean "bigint"?',
        '"bigit"',
        SOURCE % ", tables: [{name: t, columns: {a: bigit}}]",
    ),
    in_project(
        "spec-path",
        "project.yml:1:56",
        'it may have four: tenant, database, schema, table; put a part with dots in quotes: shop."v1.orders"',
        '"a.b.c.d.e" has 5 parts',
        SOURCE % ", tables: [{name: a.b.c.d.e}]",
    ),
    in_project(
        "spec-path",
        "project.yml:1:56",
        'write parts with dots between, odd names in quotes: a."b c".d',
        '"a b"',
        SOURCE % ", tables: [{name: a b}]",
    ),
    in_project("name-missing", "project.yml:1:55", None, '"tables"', SOURCE % ", tables: [{key: a}]"),
    in_project(
        "unknown-key",
        "project.yml:1:65",
        'did you mean "columns"?',
        '"column"',
        SOURCE % ", tables: [{name: t, column: a}]",
    ),
    in_format("spec-missing", "formats/g.yml:6:1", None, '"at"', FORMAT + "event_time: {as: epoch_s}\n"),
    in_format(
        "spec-missing",
        "formats/g.yml:6:1",
        "types: {at: path of the map column -> type, table: a file in formats/types}",
        '"table"',
        FORMAT + "types: {at: a}\n",
    ),
    in_format("spec-op", "formats/g.yml:4:11", 'did you mean "insert"?', '"insrt"', FORMAT.replace("insert", "insrt")),
    in_format("spec-op", "formats/g.yml:4:15", 'did you mean "drop"?', '"drp"', FORMAT.replace("insert", "{ddl: drp}")),
    in_format(
        "spec-line",
        "formats/g.yml:4:11",
        "for instance {row: delete, before: old}",
        "exactly one of",
        FORMAT.replace("insert", "{row: insert, ddl: drop}"),
    ),
    in_format(
        "spec-image",
        "formats/g.yml:4:47",
        'for other fields there is "has"',
        '"a" is not the image of a single row',
        FORMAT.replace("insert", "{row: insert, if: {holds: [data, a]}}"),
    ),
    in_format(
        "unknown-key",
        "formats/g.yml:4:33",
        "known: has, holds, is, is_not, lacks",
        '"iz"',
        FORMAT.replace("insert", "{row: insert, if: {iz: {a: b}}}"),
    ),
    in_format(
        "spec-word",
        "formats/g.yml:4:28",
        'did you mean "stream"?',
        '"streem"',
        FORMAT.replace("insert", "{row: insert, phase: streem}"),
    ),
    in_format(
        "spec-word", "formats/g.yml:6:11", 'did you mean "quoted"?', '"quotd"', FORMAT + "message: {numbers: quotd}\n"
    ),
    in_format(
        "spec-image",
        "formats/g.yml:4:11",
        'name the field that holds the rows, with "after"',
        '"insert"',
        FORMAT.replace("after: data\n", ""),
    ),
    in_format(
        "spec-image",
        "formats/g.yml:5:1",
        'name the field that holds the rows, with "after"',
        '"insert"',
        FORMAT.replace("after: data", "after: none"),
    ),
    in_format(
        "spec-path",
        "formats/g.yml:6:1",
        'write parts with dots between, odd names in quotes: a."b c".d',
        '"a..b"',
        FORMAT + "db_name: a..b\n",
    ),
    in_format(
        "spec-reader",
        "formats/g.yml:6:21",
        'did you mean "epoch_s"?',
        '"epoch_sec"',
        FORMAT + "event_time: {at: a, as: epoch_sec}\n",
    ),
    in_format(
        "spec-reader",
        "formats/g.yml:6:18",
        "readers are for times and order numbers",
        '"db_name"',
        FORMAT + "db_name: {at: a, as: epoch_s}\n",
    ),
    in_format(
        "spec-reader", "formats/g.yml:6:10", 'did you mean "latin1"?', '"latin"', FORMAT + "values: {binary: latin}\n"
    ),
    in_format(
        "spec-class", "formats/g.yml:6:10", 'did you mean "binary"?', '"binry"', FORMAT + "values: {binry: latin1}\n"
    ),
    in_format("spec-meta", "formats/g.yml:6:8", 'did you mean "gtid"?', '"gtidd"', FORMAT + "meta: {gtidd: a}\n"),
    in_format("spec-zone", "formats/g.yml:6:1", ZONES, '"CST"', FORMAT + "zone: CST\n"),
    in_format("spec-conflict", "formats/g.yml:5:1", None, '"data"', FORMAT + "db_name: data\n"),
    in_format(
        "types-unknown",
        "formats/g.yml:6:16",
        'did you mean "mysql"?',
        '"mysq"',
        FORMAT + "types: {at: a, table: mysq}\n",
    ),
    in_format(
        "spec-word", "formats/g.yml:6:11", 'did you mean "avro"?', '"avo"', FORMAT + "message: {encoding: avo}\n"
    ),
    in_format(
        "spec-word",
        "formats/g.yml:6:11",
        None,
        '"skip_bytes" works only with encoding: avro',
        FORMAT + "message: {skip_bytes: 5}\n",
    ),
    in_format(
        "spec-word",
        "formats/g.yml:6:27",
        "for instance 5, for one byte and the number of a schema",
        '"five"',
        FORMAT + "message: {encoding: avro, skip_bytes: five}\n",
    ),
    in_format(
        "spec-word",
        "formats/g.yml:6:23",
        'did you mean "year"?',
        '"yeer"',
        FORMAT + "records: {A: {parts: {yeer: y}}}\n",
    ),
    in_format(
        "spec-word",
        "formats/g.yml:6:48",
        "for instance utf_8, cp1252, gbk, or binary",
        '"hex"',
        FORMAT + "records: {A: {bytes: b, charset: c, charsets: {utf8: hex}}}\n",
    ),
    in_format(
        "spec-class",
        "formats/g.yml:6:15",
        'did you mean "string"?',
        '"strng"',
        FORMAT + "records: {A: {class: strng, text: t}}\n",
    ),
    in_format(
        "spec-missing",
        "formats/g.yml:6:11",
        "or, for an enum, is_null and not_sent",
        'exactly one of "text", "bytes", "parts"',
        FORMAT + "records: {A: {text: t, bytes: b}}\n",
    ),
    in_format(
        "spec-missing",
        "formats/g.yml:6:11",
        "for instance charsets: {utf8mb4: utf_8}",
        '"charset" and "charsets"',
        FORMAT + "records: {A: {bytes: b, charset: c}}\n",
    ),
    in_format(
        "spec-missing",
        "formats/g.yml:6:1",
        "for instance {at: images, names: fields.name, value: value}",
        '"names"',
        FORMAT + "before: {at: b, type: v}\n",
    ),
    in_format(
        "spec-missing",
        "formats/g.yml:6:1",
        "for instance {names: fields.name, indexes: keys}",
        '"indexes" need "names"',
        FORMAT + "key: {columns: a, indexes: b}\n",
    ),
    in_format(
        "spec-missing",
        "formats/g.yml:6:1",
        "for instance {columns: [id], at: where, text: mongo_shell}",
        '"at" and "columns"',
        FORMAT + "key: {names: a, at: b}\n",
    ),
    in_format(
        "spec-word",
        "formats/g.yml:6:27",
        None,
        '"numbers" works only with encoding: json',
        FORMAT + "message: {encoding: avro, numbers: exact}\n",
    ),
    in_format(
        "spec-word",
        "formats/g.yml:5:1",
        None,
        '"names" does not work with "each"',
        FORMAT.replace("data", "{at: data, names: columns}") + "each: data\nmessage: {encoding: avro}\n",
    ),
    in_format(
        "spec-word",
        "formats/g.yml:6:11",
        None,
        '"optional" works only with encoding: avro',
        FORMAT + "message: {optional: a}\n",
    ),
    in_format(
        "spec-word",
        "formats/g.yml:6:1",
        None,
        '"text" does not work with encoding: avro',
        FORMAT.replace("after: data\n", "message: {encoding: avro}\nafter: {at: data, text: mongo_shell}\n"),
    ),
    in_format(
        "spec-word",
        "formats/g.yml:6:1",
        None,
        '"records" works only with encoding: avro',
        FORMAT + "records: {A: {text: t}}\n",
    ),
    in_format(
        "spec-word",
        "formats/g.yml:5:1",
        None,
        '"type" works only with encoding: avro',
        FORMAT.replace("after: data\n", "after: {at: data, names: n, value: v, type: t}\n"),
    ),
    *(
        in_format(
            "spec-word",
            f"formats/g.yml:{line}:1",
            None,
            f'"{word}" does not work with "each"',
            FORMAT.replace("after: data", after) + f"each: data\n{more}",
        )
        for word, line, after, more in [
            ("root", 7, "after: data", "message: {root: [payload, .]}\n"),
            ("batch", 7, "after: data", "message: {batch: .}\n"),
            ("frames", 7, "after: data", "message: {frames: {length_bytes: 8}}\n"),
            ("value", 5, "after: {at: data, value: v}", ""),
            ("name", 5, "after: {at: data, name: n, value: v}", ""),
            ("prefix", 5, "after: {at: data, prefix: n}", ""),
        ]
    ),
    *(
        in_format(
            "spec-word",
            "formats/g.yml:6:27",
            None,
            f'"{word}" works only with encoding: json',
            FORMAT + f"message: {{encoding: avro, {word}: .}}\n",
        )
        for word in ("root", "batch", "frames")
    ),
    *(
        in_format("spec-word", place, hint, message, FORMAT + written)
        for place, hint, message, written in [
            (
                "formats/g.yml:6:11",
                "batch: none",
                '"batch" and "frames" do not go together',
                "message: {batch: ., frames: {length_bytes: 8}}\n",
            ),
            (
                "formats/g.yml:6:20",
                "known: 4, 8",
                'unknown number of bytes "5"',
                "message: {frames: {length_bytes: 5}}\n",
            ),
            (
                "formats/g.yml:6:37",
                'for instance "0000000000000001"',
                '"xy" is not bytes in hexadecimal',
                "message: {frames: {length_bytes: 8, key_starts: xy}}\n",
            ),
            (
                "formats/g.yml:6:35",
                "for instance {at: ts, as: epoch_ms, shift: 18}",
                '"shift" is a number of bits',
                "event_time: {at: t, as: epoch_ms, shift: 63}\n",
            ),
            (
                "formats/g.yml:6:32",
                "for instance {at: ts, as: epoch_ms, shift: 18}",
                '"shift" is a number of bits',
                "event_time: {at: t, as: local, shift: 1}\n",
            ),
            (
                "formats/g.yml:6:49",
                "1, 2, 4, 8 and so on",
                '"3" is not the value of one bit',
                "types: {at: t, value: v, flags: {at: f, words: {3: x}}, table: mysql}\n",
            ),
            (
                "formats/g.yml:6:1",
                "keep one",
                '"prefix" and "value" are different ways to write an image',
                "before: {at: b, value: v, prefix: p}\n",
            ),
            (
                "formats/g.yml:6:1",
                None,
                '"flags" does not work with encoding: avro',
                "types: {at: t, value: v, flags: {at: f, words: {1: x}}}\nmessage: {encoding: avro}\n",
            ),
        ]
    ),
    *(
        in_format("spec-missing", place, hint, message, FORMAT + written)
        for place, hint, message, written in [
            (
                "formats/g.yml:6:11",
                "frames: {length_bytes: 8}",
                'frames need "length_bytes"',
                "message: {frames: {key_starts: 00}}\n",
            ),
            (
                "formats/g.yml:6:26",
                "for instance flags: {at: f, words: {128: unsigned}}",
                '"flags" need "at"',
                "types: {at: t, value: v, flags: {at: f}, table: mysql}\n",
            ),
            (
                "formats/g.yml:6:1",
                "for instance {members: columns, name: name, flag: isKey}",
                '"flag" needs "members"',
                "key: {names: a, flag: b}\n",
            ),
        ]
    ),
    in_format(
        "spec-word",
        "formats/g.yml:5:1",
        "keep one",
        '"names" and "name" are different ways to write an image',
        FORMAT.replace("data", "{at: data, names: n, name: n, value: v}"),
    ),
    in_format(
        "spec-missing",
        "formats/g.yml:5:1",
        "for instance {at: columns, name: name, value: value}",
        '"name" needs "value"',
        FORMAT.replace("data", "{at: data, name: n}"),
    ),
    in_format(
        "spec-missing",
        "formats/g.yml:5:19",
        "for patches that are texts",
        '"removed" needs "text"',
        FORMAT.replace("data", "{at: data, removed: n}"),
    ),
    in_format(
        "spec-missing",
        "formats/g.yml:6:1",
        "for instance {columns: [_id], values: $key.id, text: extended_json}",
        '"values" of "columns" need "text"',
        FORMAT + "key: {columns: [a, b], values: k, text: extended_json}\n",
    ),
    *(
        in_format(
            "spec-path",
            "formats/g.yml:6:1",
            f"for instance {word}.id",
            f'"{word}" is no text',
            FORMAT + f"tx_id: {word}\n",
        )
        for word in ("$key", "$headers", "$message")
    ),
    in_format(
        "spec-path",
        "formats/g.yml:6:9",
        "for instance a(b=c).d",
        'after "fields(a=b)" the path has one more name',
        FORMAT + "types: {at: fields(a=b).c.d, name: n, value: v, table: mysql}\n",
    ),
    in_format(
        "spec-word",
        "formats/g.yml:6:1",
        None,
        '"indexes" works only with encoding: avro',
        FORMAT + "key: {names: n, indexes: i}\n",
    ),
    in_format(
        "spec-word",
        "formats/g.yml:6:27",
        "for instance 5, for one byte and the number of a schema",
        '"٥"',
        FORMAT + "message: {encoding: avro, skip_bytes: ٥}\n",
    ),
    by_position('no member "datum"', "value: datum", "D: {text: text}"),
    by_position('no member "sort" that is an enum', "value: value, type: sort", "D: {text: text}"),
    by_position('no field "txt"', "value: value", "D: {text: txt}"),
    by_position('the field "text" is not of type int', "value: value", "D: {parts: {year: text}}"),
    by_position('the field "number" is not of type bytes', "value: value", "D: {bytes: number}"),
    by_position('no symbol "NOPE"', "value: kind", "K: {is_null: NOPE}"),
    in_avro("schema-file", "formats/g.yml:7:27", None, '"formats/folder" is a folder', "folder"),
    in_avro("schema-file", "formats/g.yml:7:27", 'did you mean "s.avsc"?', "formats/t.avsc", "t.avsc"),
    in_avro(
        "schema-unusable",
        "formats/g.yml:7:27",
        "give a file .avsc that describes the record of a message",
        '"s.avsc" is not a schema that can be used: it is not JSON',
        "s.avsc",
        "{",
    ),
    in_avro(
        "schema-unusable",
        "formats/g.yml:7:27",
        "give a file .avsc that describes the record of a message",
        "does not describe a record",
        "s.avsc",
        '"string"',
    ),
    in_avro(
        "schema-unusable",
        "formats/g.yml:7:27",
        "give a file .avsc that describes the record of a message",
        'uses a type "Money"',
        "s.avsc",
        '{"type": "record", "name": "r", "fields": [{"name": "type", "type": "Money"}]}',
    ),
    in_avro(
        "schema-field",
        "formats/g.yml:6:1",
        'did you mean "dat"?',
        'no field "data"',
        "s.avsc",
        '{"type": "record", "name": "r", "fields": [{"name": "type", "type": "string"}, {"name": "dat", '
        '"type": "long"}]}',
    ),
    in_avro(
        "schema-field",
        "formats/g.yml:6:1",
        None,
        '"data" is not a map',
        "s.avsc",
        '{"type": "record", "name": "r", "fields": [{"name": "type", "type": "string"}, {"name": "data", '
        '"type": "long"}]}',
    ),
    in_avro(
        "schema-field",
        "formats/g.yml:8:11",
        None,
        'no type "R2"',
        "s.avsc",
        '{"type": "record", "name": "r", "fields": [{"name": "type", "type": "string"}, {"name": "data", '
        '"type": {"type": "map", "values": "string"}}]}',
        "records: {R2: {text: t}}\n",
    ),
    in_registry(
        "registry-setting", "registry", 'a registry needs "url"', "{user: u}", "url: https://registry.example:8081"
    ),
    in_registry(
        "registry-setting",
        "url",
        '"registry:8081" is not the address',
        "{url: 'registry:8081'}",
        "url: https://registry.example:8081",
    ),
    in_registry(
        "registry-setting", "url", "has no login in it", "{url: 'http://u:p@registry'}", 'use "user" and "password"'
    ),
    in_registry(
        "registry-setting",
        "path",
        '"path" must have {number} in it',
        "{url: http://registry, path: schemas}",
        "path: schemas/ids/{number}",
    ),
    in_registry(
        "registry-setting", "registry", '"user" and "password" go together', "{url: http://registry, user: u}", None
    ),
    in_registry("registry-setting", "key_file", '"key_file" goes with', "{url: http://registry, key_file: k}", None),
    in_registry(
        "registry-file", "ca_file", 'there is no file "ca.pem"', "{url: http://registry, ca_file: ca.pem}", None
    ),
    in_registry(
        "registry-file",
        "ca_file",
        "the certificates cannot be used",
        "{url: http://registry, ca_file: project.yml}",
        "they are PEM files, and a key is not encrypted",
    ),
    in_project(
        "schema-missing",
        "project.yml:1:21",
        "format: {extends: ..., message: {skip_bytes: none}}",
        '"skip_bytes", which would skip the numbers',
        "sources: [{name: a, format: {extends: dts_avro, message: {skip_bytes: 5}}, files: x, registry: {url: http://r}}]",
    ),
    in_project(
        "schema-missing",
        "project.yml:1:21",
        'give "schema: FOLDER" with files NUMBER.avsc, or a registry',
        "no schema is known by number",
        "sources: [{name: a, format: {extends: dts_avro, message: {framing: schema_number}}, files: x}]",
    ),
    in_project(
        "schema-missing",
        "project.yml:1:21",
        'remove "schema: FILE.avsc"',
        "are not Avro",
        "sources: [{name: a, format: canal, files: x, registry: {url: http://r}}]",
    ),
    Case(
        "schema-file",
        "project.yml:1:49",
        "its files are NUMBER.avsc, for instance 7.avsc",
        'in the folder "in", "07.avsc" is not the number of a schema',
        {
            "project.yml": "sources: [{name: a, format: drs_avro, files: x, schema: in}]",
            "in/07.avsc": "{}",
        },
    ),
    Case(
        "schema-file",
        "project.yml:1:49",
        "its files are NUMBER.avsc, for instance 7.avsc",
        'in the folder "in", there are no schemas',
        {"project.yml": "sources: [{name: a, format: drs_avro, files: x, schema: in}]", "in/7.json": "{}"},
    ),
    in_project(
        "spec-word",
        "project.yml:1:59",
        "skip_bytes: none",
        "do not go together",
        "sources: [{name: a, format: {extends: dts_avro, message: {skip_bytes: 5, framing: schema_number}}, files: x}]",
    ),
    in_project(
        "schema-missing",
        "project.yml:1:21",
        'give it with "schema: FILE.avsc"; the vendor has it at '
        "https://res-static.hc-cdn.cn/cloudbu-site/china/zh-cn/zhuchenlu/record.rar",
        '"drs_avro" needs the schema',
        "sources: [{name: a, format: drs_avro, files: x}]",
    ),
    Case(
        "schema-missing",
        "project.yml:1:21",
        'remove "schema: FILE.avsc"',
        "are not Avro",
        {
            "project.yml": "sources: [{name: a, format: canal, files: x, schema: s.avsc}]",
            "s.avsc": '{"type": "record", "name": "r", "fields": []}',
        },
    ),
    in_project(
        "schema-file",
        "project.yml:1:49",
        None,
        '"s.avsc"',
        "sources: [{name: a, format: drs_avro, files: x, schema: s.avsc}]",
    ),
    in_format("format-unknown", "formats/g.yml:6:1", 'did you mean "canal"?', '"cnal"', FORMAT + "extends: cnal\n"),
    in_format(
        "format-cycle",
        "formats/g.yml:6:1",
        "only a spec that shadows a built-in one may extend its own name",
        '"g"',
        FORMAT + "extends: g\n",
    ),
    Case(
        "spec-class",
        "formats/types/t.yml:1:1",
        'did you mean "integer"?',
        '"integr"',
        {"formats/g.yml": FORMAT + "types: {at: a, table: t}\n", "formats/types/t.yml": "integr: [int]\n"},
        CHECK_FORMAT,
    ),
    Case(
        "spec-class",
        "formats/types/t.yml:2:10",
        None,
        '"INT" is in two',
        {
            "formats/g.yml": FORMAT + "types: {at: a, table: t}\n",
            "formats/types/t.yml": "integer: [int]\nstring: [INT]\n",
        },
        CHECK_FORMAT,
    ),
    *(
        Case(
            "record-line",
            None,
            'for instance {"key": {"id": 1}, "value": {"op": "c"}}',
            'a line of "a.records.jsonl" is not the record of a topic',
            {"formats/g.yml": FORMAT, "a.records.jsonl": line},
            ("parse", "g", "a.records.jsonl"),
        )
        for line in ('{"values": {}}', "[]", "{")
    ),
    case_file(
        "case-messages",
        "formats/cases/g/a.rows.yml:1:1",
        "they belong in a.messages.jsonl",
        '"a"',
        "rows: []",
        messages=None,
    ),
    case_file(
        "format-unknown",
        "formats/cases/h/a.rows.yml:1:1",
        "known: " + ", ".join(sorted(["g", *(path.stem for path in (ROOT / "formats").glob("*.yml"))])),
        '"h"',
        "rows: []",
        folder="h",
    ),
    case_file("unknown-key", "formats/cases/g/a.rows.yml:1:1", 'did you mean "rows"?', '"rwos"', "rwos: []"),
    case_file("unit-test-missing", "formats/cases/g/a.rows.yml:1:1", None, '"rows"', "about: x"),
    case_file("spec-zone", "formats/cases/g/a.rows.yml:1:10", ZONES, '"CST"', "source: {zone: CST}\nrows: []"),
    # the command line
    selecting("selector-empty", 'did you mean "changelog"?', '"chngelog"', "ls", "-s", "chngelog"),
    selecting("selector-empty", 'did you mean "nightly"?', '"tag:nigtly"', "compile", "-s", "tag:nigtly"),
    selecting("selector-empty", 'did you mean "canal"?', '"format:cnal"', "ls", "-s", "format:cnal"),
    selecting("selector-empty", 'did you mean "orders"?', '"source:oders"', "ls", "-s", "source:oders+"[:-1]),
    selecting("selector-empty", 'did you mean "models"?', '"path:modls"', "ls", "-s", "path:modls"),
    selecting("selector-empty", "runner ls shows what there is", '"zzz"', "ls", "-s", "m", "--exclude", "zzz"),
    selecting(
        "selector-empty", "runner ls shows what there is", "nothing to do", "compile", "-s", "m", "--exclude", "m"
    ),
    selecting("selector-method", 'did you mean "format"?', '"fromat"', "ls", "-s", "fromat:canal"),
    selecting("selector-state", 'did you mean "modified"?', '"state:modifed"', "ls", "-s", "state:modifed"),
    selecting("selector-state", 'did you mean "error"?', '"result:eror"', "ls", "-s", "result:eror"),
    selecting("selector-state", "source_status:fresher", '"source_status:new"', "ls", "-s", "source_status:new"),
    Case(
        "state-unreadable",
        "s/run_results.json",
        "write it again: runner compile, or runner run",
        "how far sources have landed",
        {"s/run_results.json": '{"results": []}'},
        ("ls", "-s", "source_status:fresher", "--state", "s"),
    ),
    selecting("selector-unknown", "selectors.yml in the project has them", '"a"', "ls", "--selector", "a"),
    selecting("state-missing", STATE, "with what to compare", "ls", "-s", "state:new"),
    selecting("state-missing", "compile, run, test", '"models"', "ls", "-s", "state:new", "--state", "models"),
    selecting("state-missing", "run, test and build write it", '"run_results.json"', "retry"),
    last_run("state-unreadable", "target/run_results.json", "it does not say how", "{}"),
    last_run("state-unreadable", "target/run_results.json", "it does not say how", FAILED % '{"which": "run"}'),
    last_run("retry-command", None, '"maintain" cannot be run again', FAILED % '{"which": "maintain"}'),
    in_state("no JSON object", "["),
    Case(
        "defer-storage",
        None,
        "compare with a run into the same storage",
        "the state are in delta",
        {"models/m.sql": "select 1", "s/manifest.json": DELTA},
        ("run", "-s", "m", "--defer", "--state", "s"),
    ),
    selecting("usage", None, '"--empty" has no meaning together with', "run", "--continuous", "--empty"),
    in_state("a node has no contents", '{"nodes": {"a": {}}, "sources": {}}'),
    Case(
        "selector-definition",
        "selectors.yml:1:59",
        None,
        'definition.parents" is true or false',
        {"selectors.yml": "selectors: [{name: a, definition: {method: tag, value: x, parents: 1}}]"},
        ("ls",),
    ),
    selecting("usage", "runner ls -s selector:a,", '"--selector" stands alone', "ls", "--selector=a", "-s", "m"),
    selecting("selector-syntax", "for instance: ", '"m++"', "ls", "-s", "m++"),
    selecting("selector-syntax", "for instance: ", '"@m+"', "ls", "-s", "@m+"),
    selecting("selector-syntax", "for instance: ", '"m,"', "ls", "-s", "m, changelog"),
    with_vars("must be a mapping of names to values, not a list", "--vars:1:1", "[a]"),
    with_vars("parsing a flow mapping", "--vars:2:1", "{a"),
    selecting("file-missing", 'did you mean "project.yml"?', '"projct.yml"', "parse", "canal", "projct.yml"),
    selecting("file-missing", None, '"models" is a folder', "parse", "canal", "models"),
    Case("file-gzip", None, None, '"a.jsonl.gz"', {"a.jsonl.gz": "{}"}, ("parse", "canal", "a.jsonl.gz")),
    Case("spec-zone", "--zone", ZONES, '"CST"', {"a.jsonl": "{}"}, ("parse", "canal", "a.jsonl", "--zone", "CST")),
    selecting("format-unknown", 'did you mean "canal"?', '"cnal"', "parse", "cnal", "project.yml"),
    selecting("format-unknown", 'did you mean "canal"?', '"cnal"', "formats", "show", "cnal"),
    messages_case(
        "infer-exists", "choose another name with --name", '"formats/g.yml" exists', "formats", "infer", "--name=g"
    ),
    messages_case(
        "infer-exists",
        "choose another name with --name",
        'there is a format "canal" already',
        "formats",
        "infer",
        "--name=canal",
    ),
    messages_case(
        "infer-none", "runner formats infer in/a.jsonl says why", 'no known format fits "in/a.jsonl"', "parse"
    ),
    messages_case(
        "infer-nothing",
        "if they are changes",
        "no field has words for operations",
        "formats",
        "infer",
        text='{"id": 1}',
    ),
    messages_case("infer-nothing", None, '"a.jsonl" has no messages', "formats", "infer", text=" "),
    messages_case(
        "usage",
        "runner formats infer FILE --name NAME",
        '"--name" is only for formats infer',
        "formats",
        "check",
        "--name=x",
    ),
    selecting("usage", "runner formats infer FILE", "needs files of messages", "formats", "infer"),
    selecting("usage", "runner formats --help", 'unknown argument "b"', "formats", "show", "a", "b"),
    selecting("usage", "runner parse FORMAT FILE takes one file", 'unknown argument "c"', "parse", "a", "b", "c"),
    selecting("init-exists", "choose another name", '"models"', "init", "models"),
    selecting("init-exists", "choose another name", '"project.yml"', "init", "project.yml"),
    selecting("usage", "known: aws_dms", "needs the name", "formats", "show"),
    selecting("usage", None, "-s MODEL", "show"),
    selecting("usage", 'did you mean "compile"?', '"compil"', "compil"),
    selecting("usage", 'did you mean "json"?', '"jsn"', "ls", "--output", "jsn"),
    selecting("usage", None, '"--threads" must be at least 1, not "0"', "run", "--threads", "0"),
    selecting("usage", None, '"--limit" must be a whole number, not "x"', "show", "--limit", "x"),
    selecting(
        "usage",
        "such as 500ms, 10s or 2m",
        '"--trigger" must be a time, not "1x"',
        "run",
        "--continuous",
        "--trigger",
        "1x",
    ),
    selecting(
        "usage", "runner run --continuous --trigger 5s", "--trigger is only for --continuous", "run", "--trigger", "5s"
    ),
    selecting("usage", None, '"--keep-days" must be a number of days', "maintain", "--keep-days", "-1"),
    selecting("usage", 'did you mean "--output"?', "--outptu", "ls", "--outptu", "json"),
    selecting("usage", 'did you mean "--full-refresh"?', "--ful-refresh", "run", "--ful-refresh"),
    selecting("usage", 'did you mean "--target"?', "--taget=x", "ls", "--taget=x"),
    selecting("usage", "runner check --help", '"everything"', "check", "everything"),
    in_target("target-jars", "project.yml:3:30", None, '"none/*.jar"', "{storage: delta, jars: [none/*.jar]}"),
    Case(
        "target-jars",
        "project.yml:1:19",
        r"keep jars in a folder without , [ ] { } * ? \ in its path",
        "from which Spark loads no jar",
        {"project.yml": "targets: {local: {jars: x*.jar}}", "x,y.jar": ""},
    ),
    in_target(
        "target-catalog", "project.yml:3:3", "catalog: {type: hadoop}", "the target has none", "{storage: iceberg}"
    ),
    in_target(
        "target-catalog",
        "project.yml:3:23",
        "catalog: {schema: changelog}",
        '"spark_catalog", whose settings',
        "{storage: delta, catalog: {name: lake}}",
    ),
    in_target(
        "target-catalog",
        "project.yml:3:7",
        "catalog: {schema: changelog}",
        '"spark_catalog", whose settings',
        "{catalog: {type: hadoop}}",
    ),
    in_target(
        "target-remote",
        "project.yml:3:31",
        "mount a folder on both",
        '"s3a://lake/x"',
        "{remote: sc://db7:15002, path: s3a://lake/x}",
    ),
    in_target(
        "target-remote",
        "project.yml:3:31",
        "start the server with them",
        '"packages" cannot be set for a remote target',
        "{remote: sc://db7:15002, packages: [a:b:c]}",
    ),
    in_target(
        "target-remote",
        "project.yml:3:39",
        "start the server with it",
        '"spark.executor.memory" is a setting',
        "{remote: sc://db7:15002, spark: {spark.executor.memory: 1g}}",
    ),
    in_target("unknown-key", "project.yml:3:7", 'did you mean "storage"?', '"storge"', "{storge: delta}"),
    in_kafka("kafka-missing", "project.yml:2:35", "servers:", 'need "servers"', "{topics: a}"),
    in_kafka("kafka-missing", "project.yml:2:35", "topics:", 'either "topics" or "pattern"', "{servers: h:1}"),
    in_kafka(
        "kafka-missing",
        "project.yml:2:35",
        "topics:",
        'either "topics" or "pattern"',
        "{servers: h:1, topics: a, pattern: b}",
    ),
    in_kafka(
        "kafka-word",
        "project.yml:2:68",
        "known: false, true",
        '"allow_loss" must be one of',
        "{servers: h:1, topics: a, allow_loss: perhaps}",
    ),
    in_kafka(
        "kafka-word",
        "project.yml:2:68",
        'did you mean "timestamp"?',
        '"arrival" must be one of',
        "{servers: h:1, topics: a, arrival: timestmp}",
    ),
    in_kafka(
        "kafka-number",
        "project.yml:2:68",
        None,
        'must be a whole number, not "many"',
        "{servers: h:1, topics: a, batch: many}",
    ),
    in_kafka(
        "kafka-number",
        "project.yml:2:83",
        None,
        'must be a whole number, not "x"',
        "{servers: h:1, topics: a, starting: {a: {0: x}}}",
    ),
    in_kafka(
        "kafka-offsets",
        "project.yml:2:68",
        "earliest, latest, an instant",
        'cannot be "newest"',
        "{servers: h:1, topics: a, starting: newest}",
    ),
    in_kafka(
        "kafka-offsets",
        "project.yml:2:68",
        "an instant",
        'cannot be "latest"',
        "{servers: h:1, topics: a, ending: latest}",
    ),
    in_kafka(
        "kafka-option",
        "project.yml:2:78",
        'use the key "allow_loss"',
        '"failOnDataLoss"',
        "{servers: h:1, topics: a, options: {failOnDataLoss: false}}",
    ),
    in_kafka(
        "unknown-key",
        "project.yml:2:68",
        'did you mean "starting"?',
        '"starts"',
        "{servers: h:1, topics: a, starts: latest}",
    ),
    Case(
        "file-refused",
        None,
        "move the file away",
        '"target" is a file, and a folder belongs there',
        {"models/m.sql": "select 1", "target": ""},
        ("compile", "-s", "m"),
    ),
    Case(
        "file-refused",
        "models/m.sql",
        "move the folder away",
        '"models/m.sql" is a folder, and a file belongs there',
        {"models/m.sql/x": ""},
    ),
    in_model(
        "setting-key",
        "models/m.sql:1",
        "unique_key:",
        "unique_key must be",
        "{{ config(materialized='incremental', unique_key=[1]) }} select 1 as a",
    ),
    in_model(
        "setting-schema-change",
        "models/m.sql:1",
        "known: append_new_columns",
        '"append"',
        "{{ config(materialized='incremental', on_schema_change='append') }} select 1 as a",
    ),
    in_model(
        "setting-alone",
        "models/m.sql:1",
        "materialized: incremental",
        '"unique_key" has no meaning',
        "{{ config(materialized='table', unique_key='a') }} select 1 as a",
    ),
    Case(
        "template", "--inline", 'did you mean "ref"?', '"reff"', {}, ("compile", "--inline", "select {{ reff('x') }}")
    ),
    Case(
        "ref-unknown",
        "--inline",
        'did you mean "changelog"?',
        '"changelogs"',
        {},
        ("compile", "--inline", "select * from {{ ref('changelogs') }}"),
    ),
    Case(
        "new-rows",
        "--inline",
        "ref shows all rows",
        "only for incremental models",
        {},
        ("compile", "--inline", "select * from {{ new_rows('changelog') }}"),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[f"{number}-{case.code}" for number, case in enumerate(CASES)])
def test_mistake(case: Case, project, runner) -> None:
    project(case.files)
    ran = runner(*case.words)
    assert ran.code == 2, ran.err
    assert "Traceback" not in ran.err
    first, *rest = ran.err.splitlines()
    assert first.startswith(f"error[{case.code}]: ") and case.says in first, ran.err
    assert len(re.findall(r"^error\[", ran.err, re.MULTILINE)) == 1, ran.err
    assert [line.removeprefix("  --> ") for line in rest if line.startswith("  --> ")] == (
        [case.place] if case.place else []
    )
    assert_well_said(first.split("]: ", 1)[1])
    hints = [line.removeprefix("  hint: ") for line in rest if line.startswith("  hint: ")]
    assert len(hints) == bool(case.hint) and all(hint.startswith(str(case.hint)) for hint in hints), ran.err


def assert_well_said(message: str) -> None:
    """Lower case, no full stop, nothing that tells a person nothing."""
    assert message[0].islower() or message[0] in "\"'-" or message.startswith(("not YAML", "not UTF-8")), message
    assert not message.endswith("."), message
    assert not re.search(r"\b(invalid|oops|something|Error)\b", message), message


# --- all of them


CODE_AT = {"RunnerError": 0, "error": 0, "_error": 1, "one_of": 2}


def codes_in(path: Path) -> Iterator[str]:
    """The codes of errors that a file raises."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            at = CODE_AT.get(name)
            if at is not None and len(node.args) > at and isinstance(node.args[at], ast.Constant):
                yield node.args[at].value
        if isinstance(node, ast.arguments):
            defaults = dict(zip([argument.arg for argument in node.args][::-1], node.defaults[::-1]))
            if isinstance(defaults.get("code"), ast.Constant):
                yield defaults["code"].value


CODES = sorted({code for path in (ROOT / "runner").rglob("*.py") for code in codes_in(path)})


SOURCES = "".join(path.read_text() for path in (ROOT / "runner").rglob("*.py"))
WARNING_CODES = set(re.findall(r'RunnerWarning\(\s*"([^"]+)"', SOURCES))


def test_codes_are_words() -> None:
    assert len(CODES) > 50
    assert [code for code in CODES if not re.fullmatch(r"[a-z]+(-[a-z]+)*", code)] == []


def test_every_code_has_a_case() -> None:
    # Of locks that others hold, a Spark that does not start or has ended, an archive of its classes, a file that is too
    # large and what has landed, there are tests of their own.
    locks, spark = {"target-held", "target-lock"}, {"prepare", "spark-gone", "spark-start"}
    others = locks | spark | {"mirror-exists", "mirror-nothing", "yaml-size"}
    assert set(CODES) - {case.code for case in CASES} == others


def test_every_code_is_documented_and_no_other() -> None:
    pages = (ROOT / "docs/errors.md").read_text().split("## Warnings")
    errors, warnings = (re.findall(r"^\| `([^`]+)` \| \S.* \| \S.* \|$", page, re.MULTILINE) for page in pages)
    assert errors == CODES
    assert warnings == sorted(WARNING_CODES)


def test_all_mistakes_are_said_at_once_in_the_order_of_their_places(project, runner) -> None:
    files = {
        "models/a.sql": "select {{ x }}",
        "models/b.sql": "\nselect {{ y }}",
        "models/b.yml": "models:\n  - {name: zz}\n  - {name: b, descr: x}\n",
        "formats/g.yml": FORMAT + "x: y\nzone: CST\n",
        "formats/cases/g/a.rows.yml": "rwos: []",
    }
    project(files)
    ran = runner("check")
    assert ran.code == 2
    places = re.findall(r"--> (.*)", ran.err)
    assert places == [
        "formats/cases/g/a.rows.yml:1:1",
        "formats/g.yml:6:1",
        "formats/g.yml:7:1",
        "models/a.sql:1",
        "models/b.sql:2",
        "models/b.yml:2:6",
        "models/b.yml:3:15",
    ]
    (project() / "formats/g.yml").unlink()
    project(
        {
            "project.yml": (
                "nmae: x\ntarget: x\nvars: [a]\nsources:\n  - {name: a, format: cnal, files: x}\n"
                "  - {name: b, fromat: canal, files: y}\nmodels: {+tag: x}\n"
            )
        }
    )
    assert re.findall(r"--> (.*)", runner("check").err) == [
        "project.yml:1:1",
        "project.yml:2:1",
        "project.yml:3:1",
        "project.yml:5:15",
        "project.yml:6:15",
        "project.yml:7:10",
    ]


def test_the_same_mistake_is_said_once(project, runner) -> None:
    """A format that two sources use."""
    project(
        {
            "project.yml": "sources:\n  - {name: a, format: g, files: x}\n  - {name: b, format: g, files: y}\n",
            "formats/g.yml": FORMAT + "x: y\n",
        }
    )
    assert runner("check").err.count("error[") == 1


def test_debug_keeps_the_traceback(project, runner) -> None:
    project({"models/m.sql": "select {{ 1 / 0 }}"})
    assert "Traceback" not in runner("check").err
    ran = runner("check", "-d")
    assert ran.code == 2 and "Traceback" in ran.err and "ZeroDivisionError" in ran.err


def test_a_bug_of_ours_keeps_its_traceback_and_says_so(project, runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise KeyError("deep inside")

    monkeypatch.setattr("runner.commands.workspace.read_project", broken)
    project()
    ran = runner("check")
    assert ran.code == 1 and "Traceback" in ran.err and "this is a bug in the runner" in ran.err


def test_a_bug_in_a_built_in_macro_is_no_mistake_of_the_user(project, runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str) -> str:
        raise KeyError("deep inside")

    monkeypatch.setattr("runner.render.sql_inner", broken)
    project()
    ran = runner("check")
    assert ran.code == 1 and "this is a bug in the runner" in ran.err


def test_mistakes_as_json(project, runner) -> None:
    project({"models/m.sql": "select\n{{ reff('x') }}"})
    ran = runner("check", "--log-format", "json")
    (event,) = [json.loads(line) for line in ran.err.splitlines()]
    assert {key: event[key] for key in ("event", "code", "where", "hint")} == {
        "event": "error",
        "code": "template",
        "where": "models/m.sql:2",
        "hint": 'did you mean "ref"?',
    }


def test_tests_of_a_model_that_cannot_be_read_are_no_second_mistake(project, runner) -> None:
    unit_test = "{name: t, model: m, given: [], expect: {rows: []}}"
    project(
        {"models/m.sql": "select {{ nothing }}", "models/m.yml": f"models: [{{name: m}}]\nunit_tests: [{unit_test}]"}
    )
    ran = runner("check")
    assert re.findall(r"^error\[(.*)\]", ran.err, re.MULTILINE) == ["template"]


@pytest.mark.parametrize("name", ["test_unique", "delta_vacuumed"])
def test_some_built_in_macros_may_be_replaced(project, runner, name: str) -> None:
    project({"macros/mine.sql": f"{{% macro {name}(model, column) %}}select 1{{% endmacro %}}"})
    assert runner("check").code == 0


def test_what_replaces_a_built_in_macro_is_what_is_called(project, runner) -> None:
    project(
        {
            "macros/mine.sql": "{% macro test_not_null(model, column) %}select 'mine' from {{ model }}{% endmacro %}",
            "models/m.sql": "select 1 as a",
            "models/m.yml": "models: [{name: m, columns: [{name: a, data_tests: [not_null]}]}]",
        }
    )
    assert "select 'mine' from `m`" in runner("compile", "-q", "-s", "not_null_m_a").out
