"""A file of messages -> messages."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from runner.run.documents import split_messages

CASES = yaml.safe_load((Path(__file__).parent / "tables/documents.yml").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["text"])
def test_messages_of_a_file(case: dict) -> None:
    found = split_messages(case["text"].encode("latin-1"))
    assert [(one.line, one.text.decode("latin-1")) for one in found] == [*case["messages"].items()]
