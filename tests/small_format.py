"""A dialect with what little a format needs: its query is planned in a fraction of the time."""

from __future__ import annotations

import json

SMALL = """\
about: A dialect of our own
op: {by: op, cases: {insert: insert}}
after: row
db_name: db
table_name: table
key: {names: key}
"""


def message(number: int) -> str:
    """An insert into d.t."""
    return json.dumps({"op": "insert", "db": "d", "table": "t", "key": ["id"], "row": {"id": str(number)}})
