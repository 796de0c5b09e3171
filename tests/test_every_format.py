"""The messages of all cases, and hostile ones, land from files and from dumps of topics, each once, in one run of all
formats (tests/every_format).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from runner.spec.formats import FormatFolders
from runner.yaml_text import read_yaml
from tests.hostile_json import fuzzed, hostile_records, is_json
from tests.pages import ROOT
from tests.spark_fixtures import rows
from tests.topic_records import Record, record, write_topic

WITH_SPARK = pytest.mark.usefixtures("spark", "interpreted")
PROJECT = ROOT / "tests" / "every_format"
CASES = ROOT / "formats" / "cases"
# Formats that read a record's key or topic: dumps of topics have their messages.
OF_RECORDS = (
    "debezium", "debezium_flat", "debezium_mongodb", "debezium_postgresql", "oms_debezium", "oms_debezium_smt",
    "qlik_replicate",
)  # fmt: skip
# Hostile messages of each format.
SOME, MANY = 200, int(os.environ.get("HOSTILE", "10000"))
UNREAD = """
select source, raw from dead_letters where reason in ('not-json', 'trailing-text', 'not-an-object', 'empty')
"""
FIGURES = """
select coalesce(reason, kind) as what, count(*) as rows from {name}_to_changelog group by all order by rows desc, what
"""


def formats() -> set[str]:
    """All but the one that is only laid over others."""
    return {path.stem for path in (ROOT / "formats").glob("*.yml")} - {"oms_before_3_3"}


def declared() -> list[dict[str, Any]]:
    """The sources of the project, by themselves."""
    sources: list[dict[str, Any]] = yaml.safe_load((PROJECT / "project.yml").read_text())["sources"]
    return sources


def is_in_json(source: dict[str, Any]) -> bool:
    """Of hostile messages in bytes, there are those of test_avro_hostile.py."""
    return source["files"].endswith(".jsonl")


def test_every_built_in_format_has_a_source() -> None:
    sources = {source["format"].text() for source in read_yaml(PROJECT / "project.yml")["sources"].elements()}
    assert sources == formats()


def test_formats_of_records_are_all_that_read_more_than_the_value() -> None:
    folders = FormatFolders((ROOT / "formats",))
    specs = {name: repr(folders.load(name)) for name in formats()}
    told = {name for name, spec in specs.items() if any(f"'{word}'" in spec for word in ("$key", "$topic", "$headers"))}
    assert told == set(OF_RECORDS)


@WITH_SPARK
def test_every_message_of_the_cases_and_hostile_ones_land_once(tmp_path: Path, project, runner, capsys) -> None:
    sources = declared()
    hostile = {source["name"]: hostile_messages(source["name"], SOME) for source in sources if is_in_json(source)}
    sent = {source["name"]: write_messages(tmp_path, source, hostile.get(source["name"], [])) for source in sources}
    project({"project.yml": yaml.safe_dump({"name": "every_format", "sources": sources})})
    assert runner("run").code == 0
    assert landed_messages(tmp_path) == sent
    # `conserved` of each source counts again what is in the files.
    assert runner("test", "--data").code == 0
    unread = unread_messages(capsys)
    for name, messages in hostile.items():
        check_unread(messages, unread.get(name, set()))


@WITH_SPARK
@pytest.mark.soak
@pytest.mark.parametrize("source", [one for one in declared() if is_in_json(one)], ids=lambda one: one["name"])
def test_many_hostile_messages_land_each_once(source, tmp_path: Path, project, runner, capsys) -> None:
    name = source["name"]
    hostile = hostile_messages(name, MANY)
    sent = write_messages(tmp_path, source, hostile)
    project({"project.yml": yaml.safe_dump({"name": "every_format", "sources": [source]})})
    assert runner("run").code == 0
    assert landed_messages(tmp_path) == {name: sent}
    assert runner("test", "--data").code == 0
    check_unread(hostile, unread_messages(capsys).get(name, set()))
    figures = [f"{row['rows']} {row['what']}" for row in rows(capsys, FIGURES.format(name=name))]
    with capsys.disabled():
        print(f"\n{name}: {sent} messages, {len(hostile)} of them hostile -> {', '.join(figures)}")


def unread_messages(capsys) -> dict[str, set[str]]:
    """Of each source the messages that were not taken for JSON."""
    unread: dict[str, set[str]] = {}
    for row in rows(capsys, UNREAD):
        unread.setdefault(row["source"], set()).add(row["raw"])
    return unread


def check_unread(messages: list[str], unread: set[str]) -> None:
    """What is no JSON is never a row, and JSON is always taken for it."""
    assert {text for text in messages if text in unread} == {text for text in messages if not is_json(text)}


def hostile_messages(name: str, count: int) -> list[str]:
    return fuzzed(CASES / name, FormatFolders((ROOT / "formats",)).load(name), count)


def write_messages(folder: Path, source: dict[str, Any], hostile: list[str]) -> int:
    """Writes what a source reads, and says to it where that is; the number of messages."""
    name = source["name"]
    if not is_in_json(source):
        for key in {"files", "schema"} & source.keys():
            source[key] = source[key].replace("../../", f"{ROOT}/")
        return len(lines_of(name, "*.messages.base64"))
    into = folder / "in" / name
    into.mkdir(parents=True)
    plain = lines_of(name, "*.messages.jsonl")
    if name not in OF_RECORDS:
        source["files"] = f"in/{name}/*.jsonl"
        (into / "1.jsonl").write_bytes(b"\n".join([*plain, *(text.encode() for text in hostile)]))
        return len(plain) + len(hostile)
    del source["files"]
    source["table"] = f"in/{name}"
    of_cases = [record_of(line) for line in lines_of(name, "*.records.jsonl")]
    records = [*(Record(None, line) for line in plain), *of_cases, *hostile_records(hostile, name)]
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
