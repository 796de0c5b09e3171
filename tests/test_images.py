"""Where compiled SQL takes images from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.conftest import Ran

SCHEMA = {
    "type": "record",
    "name": "change",
    "fields": [
        {"name": "op", "type": "string"},
        *({"name": name, "type": ["null", {"type": "map", "values": "string"}]} for name in ("row", "copy")),
    ],
}
FORMAT = """
about: two ops that take their rows from the same field, one of them from another field too
message: {encoding: avro, schema: change.avsc}
op: {by: op, cases: {I: insert, S: {row: snapshot, after: [row, copy]}}}
after: row
"""


def test_an_image_that_is_used_twice_is_one_column(project: Callable[..., Path], runner: Callable[..., Ran]) -> None:
    """Two columns of one name could not be told apart."""
    source = "sources: [{name: shop, format: f, files: in/*}]\n"
    project({"formats/f.yml": FORMAT, "formats/change.avsc": json.dumps(SCHEMA), "project.yml": source})
    ran = runner("compile", "-q", "-s", "shop_to_changelog")
    assert ran.code == 0, ran.err
    assert (ran.out.count(" as `image_row`"), ran.out.count(" as `image_copy`")) == (1, 1)
