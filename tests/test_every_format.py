"""The messages of all cases land from files, each once, in one run of all formats (tests/every_format)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runner.yaml_text import read_yaml
from tests.pages import ROOT

pytestmark = pytest.mark.usefixtures("spark", "interpreted")

PROJECT = ROOT / "tests" / "every_format"


def test_every_built_in_format_has_a_source() -> None:
    formats = {path.stem for path in (ROOT / "formats").glob("*.yml")}
    sources = {source["format"].text() for source in read_yaml(PROJECT / "project.yml")["sources"].elements()}
    # It is only laid over other formats.
    assert formats - sources == {"oms_before_3_3"}


def test_every_message_of_the_cases_lands_once(tmp_path: Path, project, runner) -> None:
    text = (PROJECT / "project.yml").read_text().replace("../../", f"{ROOT}/")
    folder = project({"project.yml": text})
    assert runner("run").code == 0
    landed = {
        one["unique_id"].rpartition(".")[2].removesuffix("_to_changelog"): one["adapter_response"]["rows"].get(
            "messages"
        )
        for one in json.loads((folder / "target/run_results.json").read_text())["results"]
        if one["unique_id"].endswith("_to_changelog")
    }
    assert landed == {name: messages_of_cases(name) for name in landed}
    assert len(landed) == 33
    # `conserved` of each source counts again what is in the files.
    assert runner("test", "--data").code == 0


def messages_of_cases(format_name: str) -> int:
    """The lines that are not blank in the files of a format's cases."""
    ending = "base64" if format_name.endswith("avro") else "jsonl"
    files = (ROOT / "formats/cases" / format_name).glob(f"*.messages.{ending}")
    return sum(1 for path in files for line in path.read_bytes().split(b"\n") if line.strip(b" \t\r"))
