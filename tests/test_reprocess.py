"""Messages that are kept and read again with a corrected spec: in the end all tables are as if the spec had been right
from the start, whatever the messages are in, and whatever was interrupted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from tests.landed import Project
from tests.storages import TARGETS
from tests.test_avro_sources import SCHEMA, container, record
from tests.test_frames import framed, key_of
from tests.test_landing_again import BROKEN, OF_RUN, change, lines, mirrored, state

pytestmark = pytest.mark.usefixtures("spark", "interpreted", "lean")

SOURCES = """
sources:
  - {name: shop, format: mine, files: in/*.jsonl, keep_raw: all, dead_letters: {fail: null}}
  - {name: changes, format: wal, files: pg/*.jsonl, keep_raw: all, dead_letters: {fail: null}}
  - {name: events, format: ti, table: dump, keep_raw: 30 days, dead_letters: {fail: null}}
  - {name: bytes, format: ob, files: ob/*, keep_raw: all}
  - {name: quiet, format: canal, files: in/1.jsonl, keep_raw: none, dead_letters: {fail: null}}
"""
MODELS = {
    "models/m.yml": """
mirrors:
  - {name: orders, of: {source: shop, table: shop.orders}, key: [id], columns: {id: int, n: int}, history: true}
  - {name: others, of: {source: shop, table: shop.others}, key: [id], columns: {id: int, n: int}}
""",
    "models/told.sql": """
{{ config(materialized='incremental') }}
select source, op, key_text, after from {{ new_rows('changelog') }}
""",
}
# A word of the vendor for an insert was taken for one for a delete, and a column was thought to be of no use.
WRONG = {
    "formats/mine.yml": "extends: canal\nabout: ours\nop: {cases: {UPSERT: delete}}\n",
    "formats/wal.yml": "extends: wal2json_v1\nabout: ours\ndrop: [v]\n",
    "formats/ti.yml": "extends: ticdc_open\nabout: ours\ndrop: [v]\n",
    "formats/ob.yml": "extends: oceanbase_avro\nabout: ours\ndrop: [v]\n",
}
RIGHT = {
    "formats/mine.yml": "extends: canal\nabout: ours\nop: {cases: {UPSERT: insert}}\n",
    **{name: spec.replace("drop: [v]\n", "") for name, spec in WRONG.items() if "mine" not in name},
}
OTHER = change(1, "INSERT", 5, 1).replace("orders", "others")
TWO_ROWS = change(2, "UPSERT", 6, 2).replace('"data": [', '"data": [{"id": "7", "n": "70"}, ')
FIRST = [change(1, "INSERT", 5, 1), TWO_ROWS, change(3, "UPSERT", 7, 3), change(4, "ODD", 8, 4), BROKEN, OTHER]
SECOND = [change(5, "UPDATE", 60, 2), change(6, "INSERT", 1, 6)]
COLUMNS = {"columnnames": ["id", "v"], "columntypes": ["integer", "text"], "schema": "s", "table": "t"}
PG = [
    {"kind": "insert", **COLUMNS, "columnvalues": [number, f"v{number}"]} if number else {"kind": "odd", "table": "t"}
    for number in (1, 2, 0)
]
# Lengths above 127 are no text.
TI_KEY = b'{"ts":415508878783938562,"scm":"test","tbl":"%s","t":1}' % (b"t" * 200)
TI_ROW = b'{"u":{"id":{"t":8,"h":true,"f":130,"v":%d},"v":{"t":8,"f":64,"v":7}}}'
# A field that the format's schema lacks: the file's own one is needed to read its messages.
OWN_SCHEMA = {**SCHEMA, "fields": [{"name": "more", "type": "long"}, *SCHEMA["fields"]]}


KEPT = "select kind, raw from {}_to_changelog where raw is not null order by seq"


def project(folder: Path, specs: Mapping[str, str]) -> Project:
    """Messages of which one has several rows, several parts or frames, or is no text."""
    records = [{**record(number), "more": number} for number in range(3)]
    made = Project(folder, {"project.yml": TARGETS + SOURCES, **MODELS, **specs, "in/1.jsonl": lines(*FIRST)})
    made.write({"pg/1.jsonl": json.dumps({"change": PG}), "ob/1.avro": container(records, OWN_SCHEMA)})
    columns = {
        "key": [key_of([TI_KEY, TI_KEY])] * 2,
        "value": [framed([TI_ROW % number, TI_ROW % (number + 1)]) for number in (1, 3)],
        "topic": ["t", "t"],
        "partition": pyarrow.array([0, 0], pyarrow.int32()),
        "offset": [0, 1],
    }
    (folder / "dump").mkdir(exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "dump/part.parquet")
    return made


def changelog(made: Project, *target: str) -> list[Mapping[str, Any]]:
    """All rows of all sources, without what a run says of them."""
    names = ("shop", "changes", "events", "bytes")
    parts = " union all ".join(f"select * from {name}_to_changelog" for name in names)
    return made.rows(f"select * except ({OF_RUN}) from ({parts}) order by source, seq, kind, op", *target)


def told(made: Project, *target: str) -> list[Mapping[str, Any]]:
    return made.rows("select * from told order by source, key_text, op, after['n'], after['id']", *target)


def differences(made: Project, *words: str) -> set[tuple[Any, ...]]:
    ran = made.run("reprocess", *words, "--output", "json")
    assert ran.code == 0, ran.err
    found = [json.loads(line) for line in ran.out.splitlines()]
    return {tuple(one[name] for name in ("table", "was", "becomes", "differs", "rows", "messages")) for one in found}


@pytest.mark.parametrize("storage", ["parquet", pytest.param("delta", marks=pytest.mark.soak), "iceberg"])
def test_a_corrected_spec(tmp_path: Path, storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target = ("-t", storage)
    made = project(tmp_path / "made", WRONG)
    made.run("run", *target)
    made.write(RIGHT)
    noted = made.run("run", *target)
    assert "runner reprocess shop --stale --dry-run shows what would differ" in noted.err
    assert "of the newest 6 messages, 2 have other rows now" in noted.err
    before = mirrored(made, *target)
    assert [row["id"] for row in before][:1] == [1]

    # What would differ, by hand. Nothing changes yet.
    upserts = {
        ("shop.orders", "dead_letter no-row-image", "row insert", None, 2, 2),
        ("shop.orders", None, "row insert", None, 1, 1),
    }
    assert differences(made, "shop", "--stale", "--dry-run", *target) == upserts
    assert differences(made, "shop", "--table", "others", "--dry-run", *target) == set()
    assert differences(made, "shop", "--reason", "unknown-op", "--dry-run", *target) == set()
    assert differences(made, "shop", "--to", "2001-01-01", "--dry-run", *target) == set()
    column = ("row insert", "row insert", "after.v, types.v")
    assert differences(made, "changes", "--dry-run", *target) == {("s.t", *column, 2, 1)}
    assert differences(made, "events", "--dry-run", *target) == {(f"test.{'t' * 200}", *column, 4, 2)}
    assert differences(made, "bytes", "--dry-run", *target) == {("tn.d.t", *column, 3, 3)}
    assert before == mirrored(made, *target)

    # Killed when the messages are placed and have not landed: the next run lands them, and each once.
    with monkeypatch.context() as patch:
        patch.setattr("runner.commands.reprocess.land_and_build", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert made.run("reprocess", "shop", "--stale", *target).code == 130
    assert "wait to land" in state(made, *target)["shop"]["note"] and before == mirrored(made, *target)
    again = made.run("reprocess", "shop", *target)
    assert again.code == 0 and "land first" in again.err
    assert "nothing new" in next(line for line in again.err.splitlines() if "model others [" in line)
    for source in ("shop", "changes", "events", "bytes"):
        done = made.run("reprocess", source, "--stale", *target)
        assert done.code == 0, done.err
    assert [row["id"] for row in mirrored(made, *target)][:4] == [1, 2, 3, 7]
    texts = {source: made.rows(KEPT.format(source), *target) for source in ("shop", "events", "quiet")}
    assert [len(texts[source]) for source in texts] == [6, 2, 0]
    assert [(row["kind"], row["raw"]) for row in texts["shop"]][:2] == [("row", FIRST[0]), ("row", TWO_ROWS)]
    made.write({"in/2.jsonl": lines(*SECOND)})
    last = made.run("run", *target)
    assert last.code == 0 and "reprocess" not in last.err, last.err

    # What all messages become that land at once with these formats.
    found = mirrored(made, *target), changelog(made, *target), told(made, *target)
    assert [(row["id"], row["n"]) for row in found[0]][:5] == [(1, 5), (2, 60), (3, 7), (6, 1), (7, 70)]
    made.ok("test", "--data", *target)
    made.run("run", "--full-refresh", *target)
    assert found == (mirrored(made, *target), changelog(made, *target), told(made, *target))

    # After their days only the texts of dead letters stay, where a storage changes rows.
    with monkeypatch.context() as patch:
        patch.setattr("runner.engine.maintenance._days_ago", lambda days: date.today() + timedelta(days=1))
        said = made.run("maintain", "-s", "events_to_changelog", *target)
    assert ("stay: a table in parquet changes no rows" in said.err) == (storage == "parquet")
    assert len(made.rows(KEPT.format("events"), *target)) == (2 if storage == "parquet" else 0)
