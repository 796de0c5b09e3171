"""Messages that nobody should send: none of them stops a source, none is lost, and what is no JSON is never a row. Here
with columns of all classes; test_every_format has fewer of every format, and in the long tests many.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import pytest

from runner.compile.readers import make_zone, reader_of_class
from runner.project.sources import read_source_format
from runner.spec.formats import FormatFolders
from runner.spec.schemas import Schemas
from runner.spec.vocabulary import CLASSES
from runner.spec.words import Format
from runner.yaml_text import yaml_of
from tests.hostile_json import in_columns, in_fields, is_json, mutants, objects_of_cases, typed
from tests.pages import ROOT
from tests.spark_fixtures import rows

pytestmark = pytest.mark.usefixtures("spark", "interpreted")

BEFORE_3_3 = "oms_before_3_3"
FORMATS = (
    "canal", "dataworks", "drs_json", "drs_json_c", "drs_json_oracle", "drs_mongodb", "drs_sql", "oceanbase_canal",
    "oms_canal", "oms_dataworks", "oms_default", "oms_default_extend", "oms_shareplex",
)  # fmt: skip
# What is laid over other formats, and reads nothing but columns.
OVER = ("oms_dataworks", "oms_default")
# Clocks change in the zone, so that local times are read too.
ZONE = "America/New_York"
# Its values of one class are read as they are sent, if they cannot be read otherwise.
AS_SENT = "{name: as_sent, format: {extends: drs_sql, values: {timestamp: [zoned, as_sent]}}, files: in/drs_sql.jsonl}"
# Columns of all classes, of a table that every format's messages have.
COLUMNS = {f"c_{name}": name for name in CLASSES}
TABLES = f"[{{name: typed, key: id, columns: {json.dumps(COLUMNS)}}}]"
# Readers that take every value, of columns whose type lists no labels too.
TAKE_ALL = {"as_sent", "label", "labels"}
NOT_READ = ("not-json", "trailing-text", "not-an-object", "empty")
LANDED = "select kind, reason from {name}_to_changelog where seq.row = 0 order by seq.arrival"
COLUMNS_AS_SENT = """
select distinct explode(split(meta['as_sent'], ',')) as name from {name}_to_changelog where table_name = 'typed'
"""


def source_of(name: str, written_format: str) -> str:
    return f"  - {{name: {name}, format: {written_format}, files: in/{name}.jsonl, zone: {ZONE}, tables: {TABLES}}}\n"


def specs_of(declared: str) -> Iterator[tuple[str, Format]]:
    """The formats of the sources that a project declares."""
    folders = FormatFolders((ROOT / "formats",))
    for source in yaml_of(declared, ROOT / "project.yml")["sources"].elements():
        yield source["name"].text(), read_source_format(source["format"], folders, "", Schemas())


def hostile(name: str, spec: Format) -> Iterator[str]:
    """Messages for a source. What is laid over another format gets only values of columns."""
    base = name.removesuffix(f"_{BEFORE_3_3}")
    objects = objects_of_cases(ROOT / "formats/cases" / base)
    all_classes = typed(objects, spec, COLUMNS)
    if base != name:
        yield from in_columns([all_classes], spec)
        return
    some = random.Random(name).sample(objects, min(len(objects), 6))
    yield from in_fields(some, spec)
    yield from in_columns([*some, all_classes], spec)
    yield from mutants(objects, 300, seed=len(name))


def test_hostile_messages_land_each_once(project, runner, capsys) -> None:
    formats = {name: name for name in FORMATS}
    formats |= {f"{name}_{BEFORE_3_3}": f"{{extends: [{name}, {BEFORE_3_3}]}}" for name in OVER}
    declared = f"sources:\n{''.join(source_of(*one) for one in formats.items())}  - {AS_SENT}\n"
    specs = dict(specs_of(declared))
    sent = {name: list(hostile(name, specs[name])) for name in formats}
    project({"project.yml": declared, **{f"in/{name}.jsonl": "\n".join(lines) for name, lines in sent.items()}})
    ran = runner("run")
    assert ran.code == 0, ran.out + ran.err
    wrong = []
    for name, lines in sent.items():
        landed = rows(capsys, LANDED.format(name=name))
        assert len(landed) == len(lines)
        for line, row in zip(lines, landed):
            unread = row["kind"] == "dead_letter" and row["reason"] in NOT_READ
            if unread == is_json(line):
                wrong.append((name, row["kind"], row["reason"], line[:2_000]))
    assert not wrong
    for name in sent:
        unread = {row["name"] for row in rows(capsys, COLUMNS_AS_SENT.format(name=name))}
        # The values of MongoDB's shell say themselves what they are.
        assert name == "drs_mongodb" or read_columns(specs[name]) <= unread, name


def read_columns(spec: Format) -> set[str]:
    """The columns of the declared table whose reader does not take every value."""
    zone = make_zone(ZONE)
    readers = {column: reader_of_class(name, spec, zone) for column, name in COLUMNS.items()}
    return {column for column, one in readers.items() if one and TAKE_ALL.isdisjoint(a.kind for a in one.attempts)}
