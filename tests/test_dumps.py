"""Records of topics in files: as tools dump them, as people write them, and in Parquet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from tests.landed import Project
from tests.pages import ROOT, section, write_files

pytestmark = pytest.mark.usefixtures("spark", "interpreted")

TOPIC = "inv.depot.parts"
HEADERS = [{"key": "trace", "value": "a,b"}, {"key": "empty", "value": None}]
TIMES = ["2025-10-09T08:53:20.123Z", "2025-10-09T08:53:20.124Z"]
VALUE = '{"id":1,"n":1.50,"__op":"c"}'
MORE = {
    # A value goes on to the end of its line, whatever is in it: a bare tab makes it no JSON.
    # A console prints the value of JSON in a header, and the reader must not part it at its commas.
    "by_console/2.txt": 'LogAppendTime:7\tPartition:0\tOffset:9\ta:{"x":1,"y":2},b-c:\tnull\t{"id":2,"__op":"r"}\n'
    'NO_TIMESTAMP\tPartition:0\tOffset:10\tNO_HEADERS\tnull\t{"id":3,"s":"a\tb","__op":"r"}\n'
    '{"id":4,"__op":"r"}\n\nPartition:1\tx\n',
    "by_kcat/2.jsonl": '{"topic":"a.b.c","partition":0,"offset":5,"ts":-1,"payload":{"id":5,"s":1.50,"__op":"r"}}\n'
    '{"id":6,"__op":"r"}\n{"topic":"a.b.c","offset":"x","payload":"{}"}\n{"topic":"a.b.c","offset":7,"payl\n',
    "by_hand/2.records.jsonl": '[1]\n{"value": {"id":8}, "headers": [1]}\n'
    '{"value":\r{"id":9,"s":"a","__op":"r"}}\n{"value": "{\\"id\\":7,\\"__op\\":\\"r\\"}"}\n',
}
SEEN = """select kind, op, key_text, after['n'] as n, table_name, origin.topic as topic, origin.partition as part,
origin.offset as at, origin.timestamp as time, origin.headers as headers, origin.key as key
from {{ ref('%s_to_changelog') }} where origin.file like '%%1.%%' order by op"""


def of_record(op: str, topic: str | None, **more: Any) -> dict[str, Any]:
    empty = dict.fromkeys(("part", "at", "time", "headers", "n"))
    table = topic and topic.rsplit(".", 1)[1]
    of_op = {"kind": "row", "op": op, "key_text": '{"id":"1"}', "table_name": table, "topic": topic, "key": '{"id":1}'}
    return {**empty, **of_op, **more}


def test_the_dumps_of_the_page(tmp_path: Path) -> None:
    project = Project(tmp_path, {})
    write_files(section(ROOT / "docs/kafka.md", "Dumps in files"), tmp_path)
    project.ok("build")
    placed = [{"part": 3, "at": 41, "time": TIMES[0]}, {"part": 3, "at": 42, "time": TIMES[1]}]
    for source, topic, places in (
        ("by_kcat", TOPIC, placed),
        ("by_console", None, placed),
        ("by_hand", TOPIC, [{}, {}]),
    ):
        rows = project.rows(SEEN % source)
        insert = of_record("insert", topic, n="1.50", headers=HEADERS, **places[0])
        assert rows == [of_record("delete", topic, **places[1]), insert], source
    # `parse` sees what they are.
    for source, file, dump in (("by_kcat", "by_kcat/1.jsonl", "json"), ("by_console", "by_console/1.txt", "console")):
        ran = project.run("parse", "debezium_flat", file)
        assert f"a source reads them with dump: {dump}" in ran.err
        parsed = [json.loads(line) for line in ran.out.splitlines()]
        landed = project.rows(f"select * from {{{{ ref('{source}_to_changelog') }}}} where origin.file like '%1.%'")
        for name in ("op", "key_text", "table_name", "before", "after"):
            assert [row[name] for row in parsed] == [
                row[name] for row in sorted(landed, key=lambda row: row["seq"]["arrival"])
            ]
        assert parsed[0]["origin"]["headers"] == HEADERS
    project.write(MORE)
    # Some lines are no records.
    assert project.run("build").code == 1 and set(project.statuses.values()) == {"success", "pass", "fail"}
    found = project.rows(
        "select source, coalesce(after['id'], raw) as what, origin.offset as at, origin.headers as headers, "
        "after['s'] as s from (select source, after, null as raw, origin from {{ ref('changelog') }} union all "
        "select source, null, raw, origin from {{ ref('dead_letters') }}) "
        "where origin.file like '%2.%' order by source, what"
    )
    headers = [{"key": "a", "value": '{"x":1,"y":2}'}, {"key": "b-c", "value": ""}]
    assert [(row["source"], row["what"], row["at"], row["headers"], row["s"]) for row in found] == [
        ("by_console", "2", 9, headers, None),
        ("by_console", "4", None, None, None),
        ("by_console", "Partition:1\tx", None, None, None),
        ("by_console", '{"id":3,"s":"a\tb","__op":"r"}', 10, None, None),
        ("by_hand", "7", None, None, None),
        ("by_hand", "9", None, None, "a"),
        ("by_hand", "[1]", None, None, None),
        ("by_hand", '{"value": {"id":8}, "headers": [1]}', None, None, None),
        ("by_kcat", "5", 5, None, "1.50"),
        ("by_kcat", "6", None, None, None),
        ("by_kcat", '{"topic":"a.b.c","offset":"x","payload":"{}"}', None, None, None),
        ("by_kcat", '{"topic":"a.b.c","offset":7,"payl', None, None, None),
    ]


INTEGERS = {"i8": pyarrow.int8(), "i16": pyarrow.int16(), "i64": pyarrow.int64(), "u32": pyarrow.uint32()}


def test_columns_of_parquet(tmp_path: Path) -> None:
    sources = "".join(
        f"  - {{name: {name}, format: debezium_flat, table: {name}}}\n" for name in (*INTEGERS, "texts", "times")
    )
    project = Project(tmp_path, {"project.yml": f"sources:\n{sources}"})

    def write(name: str, of: dict[str, pyarrow.Array]) -> None:
        (tmp_path / name).mkdir()
        pyarrow.parquet.write_table(pyarrow.table(of), tmp_path / name / "1.parquet")

    for number, (name, kind) in enumerate(INTEGERS.items()):
        key, value = (pyarrow.array([text], [pyarrow.string(), pyarrow.binary()][number % 2]) for text in ("{}", VALUE))
        offset = pyarrow.array([7], [pyarrow.int32(), pyarrow.int64()][number % 2])
        write(name, {"key": key, "value": value, "partition": pyarrow.array([5], kind), "offset": offset})
    write("texts", {"value": pyarrow.array([VALUE]), "partition": pyarrow.array(["5"])})
    write("times", {"value": pyarrow.array([VALUE]), "timestamp": pyarrow.array([5.5])})
    ran = project.run("run", "-s", *(f"{name}_to_changelog" for name in (*INTEGERS, "texts", "times")))
    for name in INTEGERS:
        (row,) = project.rows(
            f"select after['n'] n, origin.partition p, origin.offset o from {{{{ ref('{name}_to_changelog') }}}}"
        )
        assert row == {"n": "1.50", "p": 5, "o": 7}, name
    assert ran.code == 1 and "damaged" not in ran.err
    assert 'texts/1.parquet" is BINARY, and must be a bigint: write it with that type' in ran.err
    assert 'times/1.parquet" is DOUBLE, and must be a timestamp' in ran.err
