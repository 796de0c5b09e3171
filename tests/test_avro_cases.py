"""The cases of Avro formats: what the runner reads is what their readable files say."""

from __future__ import annotations

import json

from tests.avro_cases import ROOT, encoded_file, encoded_text, readable_files


def test_messages_are_what_the_readable_files_say() -> None:
    stale = [path.name for path in readable_files() if encoded_file(path).read_text("ascii") != encoded_text(path)]
    assert not stale, "python -m tests.avro_cases"


def test_no_encoded_file_without_a_readable_one() -> None:
    assert sorted(map(encoded_file, readable_files())) == sorted((ROOT / "formats/cases").rglob("*.messages.base64"))


def test_the_two_schemas_of_one_vendor_differ_in_their_last_field() -> None:
    newer, older = (
        json.loads((ROOT / f"formats/schemas/{name}.avsc").read_text())
        for name in ("dts", "dts_without_born_timestamp")
    )
    assert [field["name"] for field in newer["fields"]][-1] == "bornTimestamp"
    assert {**newer, "fields": newer["fields"][:-1]} == older
