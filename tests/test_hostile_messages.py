"""Messages that nobody should send, and those of all cases, in one run of all formats (tests/every_format), from files
and from dumps of topics: none of them stops a source, each lands once, and what is no JSON is never a row.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyarrow.parquet import read_table

from runner.compile.readers import make_zone, reader_of_class
from runner.project.sources import read_source_format
from runner.spec.formats import FormatFolders
from runner.spec.schemas import Schemas
from runner.spec.vocabulary import CLASSES
from runner.spec.words import Format
from runner.yaml_text import read_yaml, yaml_of
from tests.hostile_json import fuzzed, hostile_records, in_columns, is_json, objects_of_cases, typed
from tests.pages import ROOT
from tests.topic_records import Record, record, write_topic

WITH_SPARK = pytest.mark.usefixtures("spark", "interpreted")
PROJECT = ROOT / "tests" / "every_format"
CASES = ROOT / "formats" / "cases"
FOLDERS = FormatFolders((ROOT / "formats",))
# Formats that read a record's key or topic: dumps of topics have their messages.
OF_RECORDS = (
    "debezium", "debezium_cloudevents", "debezium_flat", "debezium_mongodb", "debezium_postgresql", "oms_debezium",
    "oms_debezium_smt", "qlik_replicate",
)  # fmt: skip
# What is laid over other formats, and reads nothing but columns.
BEFORE_3_3 = "oms_before_3_3"
OVER = ("oms_dataworks", "oms_default")
# Formats whose messages are also sent as those of a table with columns of all classes.
OF_ALL_CLASSES = (
    "canal", "dataworks", "drs_json", "drs_json_c", "drs_json_oracle", "drs_mongodb", "drs_sql", "oceanbase_canal",
    "oms_canal", "oms_dataworks", "oms_default", "oms_default_extend", "oms_shareplex",
    *(f"{name}_{BEFORE_3_3}" for name in OVER),
)  # fmt: skip
COLUMNS = {f"c_{name}": name for name in CLASSES}
# Clocks change in the zone, so that local times are read too.
ZONE = "America/New_York"
DECLARED = {"zone": ZONE, "tables": [{"name": "typed", "key": "id", "columns": COLUMNS}]}
# Its values of one class are read as they are sent, if they cannot be read otherwise.
AS_SENT = {"extends": "drs_sql", "values": {"timestamp": ["zoned", "as_sent"]}}
# Readers that take every value, of columns whose type lists no labels too.
TAKE_ALL = {"as_sent", "label", "labels"}
# Hostile messages of each format.
SOME, MANY = 600, int(os.environ.get("HOSTILE", "30000"))
NOT_READ = {"not-json", "trailing-text", "not-an-object", "empty"}


def formats() -> set[str]:
    """All but the one that is only laid over others."""
    return {path.stem for path in (ROOT / "formats").glob("*.yml")} - {BEFORE_3_3}


def declared() -> list[dict[str, Any]]:
    """The sources of the project, by themselves."""
    sources: list[dict[str, Any]] = yaml.safe_load((PROJECT / "project.yml").read_text())["sources"]
    return [{**source, **(DECLARED if is_in_json(source) else {})} for source in sources]


def is_in_json(source: dict[str, Any]) -> bool:
    """Of hostile messages in bytes, there are those of test_avro_hostile.py."""
    return str(source["files"]).endswith(".jsonl")


def spec_of(source: dict[str, Any]) -> Format:
    written = yaml_of(yaml.safe_dump(source), PROJECT / "project.yml")["format"]
    return read_source_format(written, FOLDERS, "", Schemas())


def test_every_built_in_format_has_a_source() -> None:
    sources = {source["format"].text() for source in read_yaml(PROJECT / "project.yml")["sources"].elements()}
    assert sources == formats()


def test_formats_of_records_are_all_that_read_more_than_the_value() -> None:
    specs = {name: repr(FOLDERS.load(name)) for name in formats()}
    told = {name for name, spec in specs.items() if any(f"'{word}'" in spec for word in ("$key", "$topic", "$headers"))}
    assert told == set(OF_RECORDS)


@WITH_SPARK
def test_every_message_of_the_cases_and_hostile_ones_land_once(tmp_path: Path, project, runner) -> None:
    over = [{"name": f"{name}_{BEFORE_3_3}", "format": {"extends": [name, BEFORE_3_3]}, **DECLARED} for name in OVER]
    also = {"name": "as_sent", "format": AS_SENT, "files": "in/drs_sql/*.jsonl"}
    sources, specs = [*declared(), *over], {}
    hostile: dict[str, list[str]] = {}
    for source in sources:
        name = source["name"]
        if is_in_json({"files": ".jsonl", **source}):
            specs[name] = spec_of(source)
            hostile[name] = [] if source in over else fuzzed(CASES / name, specs[name], SOME)
        if name in OF_ALL_CLASSES:
            base = CASES / name.removesuffix(f"_{BEFORE_3_3}")
            hostile[name] += in_columns([typed(objects_of_cases(base), specs[name], COLUMNS)], specs[name])
    sent = {source["name"]: write_messages(tmp_path, source, hostile.get(source["name"], [])) for source in sources}
    project({"project.yml": project_of([*sources, also])})
    assert runner("run", "-s", "config.materialized:streaming").code == 0
    assert landed_messages(tmp_path) == sent | {"as_sent": sent["drs_sql"]}
    # It counts again what is in the files: of lines, of records, of lines of base64.
    assert runner("test", "--data", "-s", "conserved_canal conserved_debezium conserved_dts_avro").code == 0
    for name, messages in hostile.items():
        check_unread(messages, landed(tmp_path, name))
    for name in set(OF_ALL_CLASSES) - {"drs_mongodb"}:  # whose values say themselves what they are
        meta = [dict(row["meta"] or ()) for row in landed(tmp_path, name) if row["table_name"] == "typed"]
        as_sent = {column for one in meta for column in one.get("as_sent", "").split(",")}
        assert set() != read_columns(specs[name]) <= as_sent, name


def project_of(sources: list[dict[str, Any]]) -> str:
    target = {"target": "here", "targets": {"here": {"path": "lake"}}}
    with_dead_letters = [{**source, "dead_letters": {"fail": None}} for source in sources]
    return yaml.safe_dump({"name": "every_format", **target, "sources": with_dead_letters})


def landed(folder: Path, source: str) -> list[dict[str, Any]]:
    columns = ["kind", "reason", "raw", "table_name", "meta"]
    found: list[dict[str, Any]] = read_table(folder / f"lake/{source}_to_changelog", columns=columns).to_pylist()
    return found


def read_columns(spec: Format) -> set[str]:
    """The columns of the declared table whose reader does not take every value."""
    zone = make_zone(ZONE)
    readers = {column: reader_of_class(name, spec, zone) for column, name in COLUMNS.items()}
    return {column for column, one in readers.items() if one and TAKE_ALL.isdisjoint(a.kind for a in one.attempts)}


@WITH_SPARK
@pytest.mark.soak
@pytest.mark.parametrize("source", [one for one in declared() if is_in_json(one)], ids=lambda one: one["name"])
def test_many_hostile_messages_land_each_once(source, tmp_path: Path, project, runner, capsys) -> None:
    name = source["name"]
    hostile = fuzzed(CASES / name, spec_of(source), MANY)
    sent = write_messages(tmp_path, source, hostile)
    project({"project.yml": project_of([source])})
    assert runner("run", "-s", "config.materialized:streaming").code == 0
    assert landed_messages(tmp_path) == {name: sent}
    assert runner("test", "--data").code == 0
    found = landed(tmp_path, name)
    check_unread(hostile, found)
    counts = Counter(row["reason"] or row["kind"] for row in found)
    figures = [f"{count} {what}" for what, count in counts.most_common()]
    with capsys.disabled():
        print(f"\n{name}: {sent} messages, {len(hostile)} of them hostile -> {', '.join(figures)}")


def check_unread(messages: list[str], found: list[dict[str, Any]]) -> None:
    """What is no JSON is never a row, and JSON is always taken for it."""
    unread = {row["raw"] for row in found if row["reason"] in NOT_READ}
    assert {text for text in messages if text in unread} == {text for text in messages if not is_json(text)}


def write_messages(folder: Path, source: dict[str, Any], hostile: list[str]) -> int:
    """Writes what a source reads, and says to it where that is; the number of messages."""
    name, files = source["name"], source.pop("files", ".jsonl")
    if not is_in_json({"files": files}):
        source |= {key: path.replace("../../", f"{ROOT}/") for key, path in {**source, "files": files}.items()}
        return len(lines_of(name, "*.messages.base64"))
    into = folder / "in" / name
    into.mkdir(parents=True)
    plain = lines_of(name, "*.messages.jsonl")
    if name not in OF_RECORDS:
        source["files"] = f"in/{name}/*.jsonl"
        (into / "1.jsonl").write_bytes(b"\n".join([*plain, *(text.encode() for text in hostile)]))
        return len(plain) + len(hostile)
    source["table"] = f"in/{name}"
    of_cases = [record_of(line) for line in lines_of(name, "*.records.jsonl")]
    records = [*(Record(None, line) for line in plain), *of_cases, *hostile_records(hostile)]
    write_topic(records, into / "1.parquet")
    return len(records)


def lines_of(name: str, files: str) -> list[bytes]:
    """The lines that are not blank in files of a format's cases."""
    found = sorted((CASES / name).glob(files))
    return [line for path in found for line in path.read_bytes().split(b"\n") if line.strip(b" \t\r")]


def record_of(line: bytes) -> Record:
    parts = json.loads(line)
    return record(parts.get("key"), parts.get("value"), parts.get("topic", "shop"))


def landed_messages(folder: Path) -> dict[str, int]:
    """Of each source the messages that the last run has landed."""
    results = json.loads((folder / "target/run_results.json").read_text())["results"]
    counts = {one["unique_id"].rpartition(".")[2]: one["adapter_response"]["rows"] for one in results}
    return {
        name.removesuffix("_to_changelog"): count.get("messages")
        for name, count in counts.items()
        if name.endswith("_to_changelog")
    }
