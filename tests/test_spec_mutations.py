"""A spec that reads one thing wrongly is noticed: a case of the format fails, in the column that became wrong."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from runner.contract import COLUMNS
from runner.run.compare import NOT_IN_CASES
from tests.pages import ROOT

FORMATS = ROOT / "formats"
# The columns of a row, which stand in lines of their own; reading all cases as YAML takes long.
COLUMN = re.compile(r"^  (?:- |  )(\w+):", re.MULTILINE)


class Mutation(NamedTuple):
    """`text` is in the spec once; `case` fails in `column` with `instead` in its place."""

    text: str
    instead: str
    case: str
    column: str


# Format -> mutations of its spec. Those of one list are made together, since each query takes its time: no other one of
# the list may touch the column in the case.
MUTATIONS = {
    "canal": [
        [
            Mutation("key: {names: pkNames}", "key: none", "key_composite", "key"),
            Mutation("{at: es, as: epoch_ms, unknown: 0}", "{at: es, as: epoch_s, unknown: 0}",
                     "old_differs_row_to_row", "event_time"),
            Mutation("table: mysql", "table: oracle", "type_names", "after"),
            Mutation("statement: sql\n", "statement: none\n", "statement_without_rows", "reason"),
            Mutation("seq: []", "seq: []\ntx_id: gtid", "shop", "tx_id"),
        ],
        [
            Mutation("after: data\nbefore: {at: old, over: data}", "before: data\nafter: {at: old, over: data}",
                     "old_differs_row_to_row", "before"),
            Mutation("DELETE: {row: delete, before: [data, old]}", "DELETE: insert", "delete_row_in", "op"),
        ],
        [
            Mutation("before: {at: old, over: data}", "before: none", "old_differs_row_to_row", "before_image"),
            Mutation("{at: es, as: epoch_ms, unknown: 0}", "{at: es, as: epoch_ms}",
                     "header_es_out_of_range", "event_time"),
        ],
    ],
    "drs_json": [
        [
            Mutation("    DDL: {ddl: by_statement}", "    DDL: {control: other}", "ddl", "kind"),
            Mutation("seq: [id]", "seq: none", "header_id", "seq"),
        ]
    ],
    "drs_json_c": [[Mutation("timestamp: local", "timestamp: as_sent", "sample_update_zone", "after")]],
    "drs_json_oracle": [
        [Mutation("db_name: none\nschema_name: database", "db_name: database", "operations", "schema_name")]
    ],
    "drs_sql": [
        [
            Mutation("{Postgres*: none}", "{Postgres*: {at: es, as: epoch_ms}}", "previous_commit_time", "event_time"),
            Mutation("schema_name: schema\n", "", "previous_commit_time", "schema_name"),
        ]
    ],
    "drs_mongodb": [
        [
            Mutation("[{at: clusterTime, as: numbers, count: 2}, id]", "[id, {at: clusterTime, as: numbers, count: 2}]",
                     "header_order", "seq"),
            Mutation("image: patch", "image: full", "patches", "after_image"),
        ]
    ],
    "dataworks": [[Mutation("- {row: update, half: after}", "- update", "sample_update_halves", "pair_id")]],
    "oms_default": [
        [
            Mutation("  - {at: allMetaData.storeDataSequence, as: within_second}\n", "", "sequence_not_padded", "seq"),
            Mutation('pattern: "{tenant}.{db_name}"', 'pattern: "{db_name}.{tenant}"', "tenants", "tenant"),
            Mutation("{at: allMetaData.timestamp, as: epoch_s, unknown: 0}", "{at: allMetaData.timestamp, as: epoch_s}",
                     "header_time_zero", "event_time"),
        ]
    ],
    "oms_dataworks": [
        [
            Mutation("dbName\nschema_name: schema.source.schema\n", "schema\nschema_name: schema.source.dbName\n",
                     "names", "db_name"),
        ]
    ],
    "oms_shareplex": [[Mutation("before: key\n", "before: key\nzone: +08:00\n", "without_zone", "event_time")]],
    "oceanbase_avro": [
        [
            Mutation("  first:\n    - {if: {is_not: {total: [-1, 0, 1]}}, dead_letter: sharded-message}"
                     "      # part of a record: half an image must never land\n", "", "sharded", "kind"),
        ]
    ],
    "dts_avro": [
        [
            Mutation("before: {at: beforeImages, names: fields.name}\nafter: {at: afterImages",
                     "after: {at: beforeImages, names: fields.name}\nbefore: {at: afterImages", "updates", "after"),
        ]
    ],
    "maxwell": [
        [
            Mutation("before: {at: old, over: data}", "before: old", "sample_rows", "before_image"),
            Mutation("as: last_numbers, count: 2", "as: last_numbers", "keys", "seq"),
            Mutation(", {at: ts, as: epoch_ms, unknown: 0}]", "]", "ddl", "event_time"),
            Mutation("bootstrap-insert: snapshot", "bootstrap-insert: insert", "bootstrap", "op"),
        ]
    ],
    "oms_maxwell": [
        [
            Mutation("zone: UTC", "zone: Asia/Tokyo", "values", "after"),
            Mutation("{at: ts, as: epoch_ms, unknown: 1600000000}", "{at: ts, as: epoch_ms}",
                     "full_phase_and_ddl", "event_time"),
        ]
    ],
    "ticdc_canal": [
        [
            Mutation("seq: [_tidb.commitTs]", "seq: []", "sample_rows", "seq"),
            Mutation("TIDB_WATERMARK: watermark", "TIDB_WATERMARK: heartbeat", "statements_and_watermarks", "op"),
        ]
    ],
    "ticdc_open": [
        [
            Mutation("flag: h}, {", "flag: f}, {", "updates", "key"),
            Mutation("over: value.u", "image: full", "updates", "before"),
            Mutation("shift: 18", "shift: 19", "updates", "event_time"),
            Mutation("1: binary, 128", "2: binary, 128", "types", "after"),
            Mutation('key_starts: "0000000000000001"', 'key_starts: "0000000000000002"', "frames", "kind"),
        ],
        [Mutation("3: watermark", "3: heartbeat", "statements", "op")],
    ],
    "tencent_dts": [
        [
            Mutation("names: pkNames", "names: objectName", "rows", "key"),
            Mutation("timestamp: epoch_ms}", "timestamp: as_sent}", "values", "after"),
        ],
        [Mutation("heartbeatTimestamp", "timestamp", "rows", "event_time")],
    ],
    "ogg_json": [
        [
            Mutation("after: {at: after, over: before, image: partial}", "after: {at: after, image: partial}",
                     "compressed_updates", "after"),
            Mutation("T: truncate", "T: drop", "operations", "op"),
            Mutation("seq: [pos]", "seq: []", "names_and_order", "seq"),
        ]
    ],
    "ogg_json_row": [[Mutation("current_ts, pos, primary_keys", "current_ts, primary_keys", "operations", "after")]],
    "qlik_replicate": [
        [
            Mutation("image: key", "image: full", "operations", "before"),
            Mutation("zone: UTC", "zone: Asia/Tokyo", "columns_of_a_table", "event_time"),
        ]
    ],
    "debezium": [
        [
            Mutation("root: [payload, .]", "root: [payload]", "without_schema", "after"),
            Mutation("key: {members: $key}", "key: none", "mysql", "key"),
            Mutation(", params: parameters.scale", "", "types", "after"),
            Mutation("not_sent: [__debezium_unavailable_value, ", "not_sent: [", "postgresql", "after_image"),
        ],
        [
            Mutation("{if: {is: {source.snapshot: incremental}}, row: snapshot, phase: stream}", "snapshot",
                     "without_schema", "seq"),
            Mutation("postgresql: source.lsn", "postgresql: none", "postgresql", "seq"),
            Mutation("&change {at: source.change_lsn, as: lsn}", "&change source.change_lsn", "other_databases", "seq"),
        ],
    ],
    "debezium_postgresql": [[Mutation("{at: before, image: key}", "before", "default_identity", "before")]],
    "debezium_flat": [
        [
            Mutation("drop: [__deleted, ", "drop: [", "rows", "after"),
            Mutation("produced_at: {at: __ts_ms", "produced_at: {at: __source_ts_ms", "names_of_fields", "produced_at"),
        ],
        [Mutation('{at: $topic, pattern: "{server}.{database}.{table_name}"}', "$topic", "rows", "table_name")],
    ],
    "debezium_mongodb": [
        [Mutation("name: _id, image: key", "name: id, image: key", "documents", "before")],
        [Mutation("removed: updateDescription.removedFields, ", "", "documents", "changed")],
        [Mutation("values: $key.id, text: extended_json", "at: before, text: extended_json", "documents", "key")],
    ],
    "oms_debezium": [
        [Mutation("seq: [{at: source.pos, as: last_numbers}", "seq: [{at: source.pos, as: numbers}", "rows", "seq")],
        [
            Mutation('{source.ts_ms: "0"}', '{source.ts_ms: "1"}', "rows", "op"),
            Mutation("[{at: source.ts_ms, as: epoch_s, unknown: 0}, ", "[", "rows", "event_time"),
        ],
    ],
    "wal2json": [
        [Mutation("seq: [{at: [lsn, nextlsn], as: lsn}]", "seq: [lsn]", "readme", "seq")],
        [Mutation("key: {members: pk, name: name}", "key: {members: identity, name: name}", "readme", "key")],
        [Mutation("at: [columns, identity], name", "at: columns, name", "readme", "before")],
    ],
    "wal2json_v1": [
        [Mutation("names: change.columnnames, table", "names: change.pk.pknames, table", "readme", "types")]
    ],
    "aws_dms": [
        [Mutation("prefix: BI_", "prefix: B_", "rows", "before")],
        [
            Mutation("delete: {row: delete, before: {at: data, ", "delete: {row: delete, before: {at: before-image, ",
                     "rows", "op"),
            Mutation("after: {at: data, image: without_nulls}", "after: data", "documented", "after"),
        ],
    ],
}  # fmt: skip
ALL = [(name, one) for name, lists in MUTATIONS.items() for mutations in lists for one in mutations]


def spec_of(format_name: str) -> str:
    return (FORMATS / f"{format_name}.yml").read_text(encoding="utf-8")


def write_dialect(root: Path, name: str, format_name: str, mutations: list[Mutation], cases: set[str]) -> None:
    """The format with these mutations under another name, with these of its cases."""
    spec = spec_of(format_name)
    for mutation in mutations:
        assert spec.count(mutation.text) == 1, mutation
        spec = spec.replace(mutation.text, mutation.instead)
    folder = root / "formats/cases" / name
    folder.mkdir(parents=True)
    (root / f"formats/{name}.yml").write_text(spec, encoding="utf-8")
    for case in cases:
        files = list((FORMATS / "cases" / format_name).glob(f"{case}.*"))
        assert len(files) >= 2, f"{format_name} has no case {case}"
        for file in files:
            shutil.copy(file, folder)


def test_cases_state_every_column_of_every_format() -> None:
    """Only stated columns are compared: one that a format never fills is stated as null."""
    columns = set(COLUMNS) - set(NOT_IN_CASES)
    for folder in sorted((FORMATS / "cases").iterdir()):
        texts = [file.read_text(encoding="utf-8") for file in folder.glob("*.rows.yml")]
        assert columns <= {column for text in texts for column in COLUMN.findall(text)}, folder.name


@pytest.mark.usefixtures("spark", "interpreted")
def test_cases_notice_every_mutation_of_a_spec(project, runner) -> None:
    """Also that the same copies of cases pass with a spec that reads all as it should."""
    assert len(ALL) >= 12 and len(MUTATIONS) >= 6
    root = project()
    shutil.copytree(FORMATS / "schemas", root / "formats/schemas")
    write_dialect(root, "as_it_is", "canal", [], {one.case for name, one in ALL if name == "canal"})
    noticed = {}
    for format_name, lists in MUTATIONS.items():
        for number, mutations in enumerate(lists):
            name = f"{format_name}_{number}"
            write_dialect(root, name, format_name, mutations, {one.case for one in mutations})
            noticed |= {(f"unit_test.shop.{name}.{one.case}", one.column): one for one in mutations}
    assert len(noticed) == len(ALL)
    ran = runner("test", "--unit", "-s", " ".join(f"format:{path.stem}" for path in root.glob("formats/*.yml")))
    assert ran.code == 1, ran.err
    results = json.loads((root / "target/run_results.json").read_text())["results"]
    statuses = {one["unique_id"]: one["status"] for one in results}
    assert statuses == {name: "pass" if name.startswith("unit_test.shop.as_it_is.") else "fail" for name in statuses}
    messages = {one["unique_id"]: one["message"] or "" for one in results}
    assert not [one for (case, column), one in noticed.items() if f": {column}: got " not in messages[case]]
