"""A file of messages -> messages."""

from __future__ import annotations

import pytest

from runner.run.documents import split_messages
from tests.pages import table

CASES = table("documents")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["text"])
def test_messages_of_a_file(case: dict) -> None:
    found = split_messages(case["text"].encode("latin-1"))
    assert [(line, text.decode("latin-1")) for line, text in found] == [*case["messages"].items()]
