"""The same changes, written by every vendor, become the same rows: all columns but those that the contract lets differ,
and the exceptions in a table.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
import yaml

from runner.cli import main
from tests import vendors_page
from tests.avro_encoders import AVRO_ENCODERS, DRS_SCHEMA_FILE, base64_lines, container, decoded
from tests.debezium_encoders import DEBEZIUM_ENCODERS, OMS_DEBEZIUM_ENCODERS
from tests.encoders import ENCODERS as JSON_ENCODERS
from tests.logical_changes import CHANGES, ORDERS, TABLES, Change, Column, Table, moment
from tests.logical_encoders import LOGICAL_ENCODERS
from tests.replication_encoders import FRAME_ENCODERS, FULL_PHASE, REPLICATION_ENCODERS
from tests.topic_records import Record, write_topic
from tests.vendor_rows import (
    EXCEPTIONS,
    FORMATS,
    ROW_RULES,
    SEVERAL,
    SOURCES,
    VALUE_RULES,
    Row,
    VendorException,
    concerns,
    expected_rows,
    format_of,
)

JSON_LINES = {**JSON_ENCODERS, **REPLICATION_ENCODERS, **LOGICAL_ENCODERS, **OMS_DEBEZIUM_ENCODERS}
RECORD_ENCODERS = {**DEBEZIUM_ENCODERS, **FRAME_ENCODERS}
ENCODERS = {
    **JSON_ENCODERS,
    **AVRO_ENCODERS,
    **REPLICATION_ENCODERS,
    **RECORD_ENCODERS,
    **OMS_DEBEZIUM_ENCODERS,
    **LOGICAL_ENCODERS,
}
BY_ARRIVAL = (
    "canal",
    "oms_canal",
    "oms_maxwell",
    "dts_avro",
    "aws_dms",
    "oms_debezium_smt",
)  # their numbers give no order
IN_PARTITION_ORDER = (*RECORD_ENCODERS, "ticdc_canal")  # those of one change, whose numbers are the same
# What a source says of its messages where they are not lines of JSON.
MESSAGES = {
    "oceanbase_avro": {"files": "in/oceanbase_avro/*.avro"},
    "dts_avro": {"table": "in/dts_avro"},
    "drs_avro": {"schema": str(DRS_SCHEMA_FILE), "files": "in/drs_avro/*.base64"},
    **{name: {"table": f"in/{name}"} for name in RECORD_ENCODERS},
}
# What a source's format says beside the vendor's.
DIALECTS = {"oms_debezium_smt": {"extends": "oms_debezium_smt", "table_name": "$topic"}}
ZONES = dict.fromkeys(
    (
        "canal",
        "drs_json_c",
        "oms_dataworks",
        "oms_shareplex",
        "maxwell",
        "ticdc_canal",
        "ticdc_open",
        "ogg_json",
        "ogg_json_row",
    ),
    "Asia/Shanghai",
)
# The types of columns where rows come from Oracle, and of those that have another name with Qlik Replicate.
ORACLE_COLUMNS = {
    **dict.fromkeys(("integer", "boolean", "decimal"), "number"),
    "float": "binary_float",
    "double": "binary_double",
    **dict.fromkeys(("string", "enum", "set"), "varchar2"),
    "json": "clob",
    "binary": "blob",
    **dict.fromkeys(("date", "datetime"), "datetime"),
}
QLIK_COLUMNS = {"binary": "bytes", "bit": "bytes"}
VIEWS = ("changelog", "ddl_events", "control_events", "dead_letters")
SAME_COLUMNS = (
    "kind",
    "op",
    "tenant",
    "db_name",
    "schema_name",
    "table_name",
    "key",
    "old_key",
    "key_text",
    "before",
    "after",
    "before_image",
    "after_image",
    "changed",
    "event_time",
    "produced_at",
    "statement",
)
VENDORS = pytest.mark.parametrize("vendor", list(ENCODERS))
CHANGE_OF = {change.name: change for change in CHANGES}


# --- what is declared of tables
# ----------------------------------------------------------------------------------------------------------------------


def declared(vendor: str, table: Table) -> dict[str, Any]:
    """What a source must say of a table because the vendor's messages do not."""
    types = {column.name: column.type for column in table.columns}
    match vendor:
        case "oms_default" | "maxwell" | "oms_maxwell":
            return {"columns": types}
        case "oms_debezium" | "oms_debezium_smt":
            return {"key": list(table.key)} if table.key else {}
        case "oms_shareplex":
            return {"columns": types, **({"key": list(table.key)} if table.key else {})}
        case "ogg_json" | "ogg_json_row":
            return {"columns": {c.name: ORACLE_COLUMNS[c.kind] for c in table.columns if c.kind in ORACLE_COLUMNS}}
        case "qlik_replicate":
            names = {column.name: QLIK_COLUMNS.get(column.kind, column.type) for column in table.columns}
            return {"columns": names, **({"key": list(table.key)} if table.key else {})}
        case "aws_dms":
            classes = {c.name: "integer" if c.kind == "boolean" else c.kind for c in table.columns}
            return {"columns": classes, **({"key": list(table.key)} if table.key else {})}
        case "dataworks" | "dataworks_single":
            wall_clocks = {column.name: column.type for column in table.columns if column.kind in ("date", "datetime")}
            return {"columns": wall_clocks, "zone": "Asia/Shanghai"} if wall_clocks else {}
    return {}


def source_of(vendor: str) -> dict[str, Any]:
    prefix = "" if vendor == "oms_debezium_smt" else f"{TABLES[0].database}."
    tables = [{"name": f'{prefix}"{table.name}"', **says} for table in TABLES if (says := declared(vendor, table))]
    zone = {"zone": ZONES[vendor]} if vendor in ZONES else {}
    messages = MESSAGES.get(vendor, {"files": f"in/{vendor}/*.jsonl"})
    return {
        "name": vendor,
        "format": DIALECTS.get(vendor) or FORMATS.get(vendor, vendor),
        **messages,
        **zone,
        **({"tables": tables} if tables else {}),
    }


# --- landing
# ----------------------------------------------------------------------------------------------------------------------


class Sent(NamedTuple):
    """A message, of which vendor it is, and the name of the change that it tells; a record of Kafka if it is more."""

    vendor: str
    change: str
    message: bytes | Record


def messages_of(vendor: str) -> list[Sent]:
    return [Sent(vendor, change.name, message) for change in CHANGES for message in ENCODERS[vendor](change)]


def sources() -> list[str]:
    return [vendor for vendor in ENCODERS if vendor not in SOURCES]


def messages_to(source: str) -> list[Sent]:
    """What a source lands, in the order of its file: any order, where the vendor's numbers give one. Several events of
    one change may have the same numbers; then they are in the order of their partition.
    """
    sent = [one for vendor in ENCODERS if SOURCES.get(vendor, vendor) == source for one in messages_of(vendor)]
    if source in BY_ARRIVAL:
        return sent
    chance = Random(source)
    if source not in IN_PARTITION_ORDER:
        chance.shuffle(sent)
        return sent
    place = {change.name: chance.random() for change in CHANGES}
    return sorted(sent, key=lambda one: (place[one.change], one.vendor))


def write_messages(source: str, folder: Path) -> None:
    """One file with all messages of a source, of the kind that it reads."""
    folder.mkdir(parents=True)
    _, names, messages = zip(*messages_to(source))
    match source:
        case "oceanbase_avro":
            (folder / "1.avro").write_bytes(container(source, (CHANGE_OF[name] for name in names)))
        case "dts_avro":
            write_topic((Record(None, message) for message in messages), folder / "1.parquet")
        case _ if source in RECORD_ENCODERS:
            write_topic(messages, folder / "1.parquet")
        case "drs_avro":
            (folder / "1.base64").write_bytes(base64_lines(messages))
        case _:
            (folder / "1.jsonl").write_bytes(b"".join(message + b"\n" for message in messages))


Rows = list[dict[str, Any]]


class Landed(NamedTuple):
    """Of each vendor, with the name of the change in `change`: all rows of its table, with nothing else but kind, seq
    and raw; and the rows of the views. Of some vendors the rows of a mirror of their orders, and of its history.
    """

    tables: dict[str, Rows]
    views: dict[str, Rows]
    mirrors: dict[str, Rows]
    versions: dict[str, Rows]

    def by_change(self, vendor: str) -> dict[str, Rows]:
        out: dict[str, Rows] = {}
        for row in self.views[vendor]:
            out.setdefault(row["change"], []).append(row)
        return out


def by_arrival(tables: Rows) -> dict[tuple[str, str], Sent]:
    """Source and arrival -> what was sent: arrivals in one file have the order of its messages."""
    out = {}
    for source in sources():
        first = [row["seq"]["arrival"] for row in tables if row["source"] == source and row["seq"]["row"] == 0]
        out |= {(source, str(arrival)): sent for arrival, sent in zip(sorted(first), messages_to(source))}
    return out


def by_vendor(rows: Rows, sent: Mapping[tuple[str, str], Sent]) -> dict[str, Rows]:
    out: dict[str, Rows] = {vendor: [] for vendor in ENCODERS}
    for row in rows:
        vendor, change, _ = sent[row["source"], str(row["seq"]["arrival"])]
        out[vendor].append({**row, "change": change})
    return out


def run(*words: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words)
    assert code == 0, err.getvalue() + out.getvalue()
    return out.getvalue()


def query(sql: str) -> Iterator[dict[str, Any]]:
    """Rows of a query; values may hold characters that `splitlines` takes for the end of a line."""
    for line in run("show", "--inline", sql, "--output", "json", "--limit", "100000").split("\n"):
        if line:
            yield json.loads(line)


@pytest.fixture(scope="module")
def landed(spark: object, tmp_path_factory: pytest.TempPathFactory) -> Landed:
    folder = tmp_path_factory.mktemp("many_vendors")
    project = {"name": "many_vendors", "sources": [source_of(source) for source in sources()]}
    (folder / "project.yml").write_text(yaml.safe_dump(project, allow_unicode=True, sort_keys=False))
    (folder / "models").mkdir()
    (folder / "models/mirrors.yml").write_text(yaml.safe_dump({"mirrors": [mirror_of(vendor) for vendor in MIRRORED]}))
    for source in sources():
        write_messages(source, folder / "in" / source)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("RUNNER_TARGET", "RUNNER_PROJECT_DIR", "RUNNER_TARGET_PATH", "RUNNER_LOG_FORMAT"):
            patch.delenv(name, raising=False)
        run("run")
        tables = " union all ".join(
            f"select source, kind, reason, detail, raw, seq from {source}_to_changelog" for source in sources()
        )
        views = " union all ".join(
            f"select source, seq, tx_id, {', '.join(SAME_COLUMNS)} from {view}" for view in VIEWS
        )
        rows = list(query(tables))
        sent = by_arrival(rows)
        mirrors = {vendor: list(query(f"select {MIRROR_ROWS} from orders_of_{vendor}")) for vendor in MIRRORED}
        versions = {vendor: list(query(VERSIONS.format(vendor))) for vendor in MIRRORED}
        return Landed(by_vendor(rows, sent), by_vendor(list(query(views)), sent), mirrors, versions)


# --- one table, as several vendors tell it
# ----------------------------------------------------------------------------------------------------------------------

# With before images of what has changed, halves of updates, and in Avro; more vendors are in test_told_by_vendors.py.
MIRRORED = ("canal", "dataworks", "oceanbase_avro")
MIRROR_ROWS = "id, label, amount, note"
VERSIONS = f"select {MIRROR_ROWS}, is_current from orders_of_{{}}_history"


def mirror_of(vendor: str) -> dict[str, Any]:
    columns = {"id": "bigint", "label": "string", "amount": "decimal(10,2)", "note": "string"}
    of = {"source": vendor, "table": "orders"}
    return {"name": f"orders_of_{vendor}", "of": of, "key": ["id"], "columns": columns, "history": True}


def as_shown(row: Mapping[str, Any]) -> Row:
    return {**row, "amount": None if row["amount"] is None else str(row["amount"])}


def orders_then(vendor: str, changes: Iterable[Change] = CHANGES) -> tuple[Rows, Rows]:
    """The rows of orders that the database has after these changes, and all versions that they had, as far as a vendor
    tells of them: not all tell of a full load.
    """
    held: dict[int, Row] = {}
    versions: Rows = []
    for change in changes:
        if change.kind != "row" or change.table is not ORDERS or not ENCODERS[vendor](change):
            continue
        before, after = (as_shown(row) if row else None for row in (change.before, change.after))
        if before and before != after and change.op != "snapshot":
            held.pop(before["id"], None)
        if after and after != held.get(after["id"]):
            held[after["id"]] = after
            versions.append(after)
    return list(held.values()), [{**row, "is_current": row is held.get(row["id"])} for row in versions]


@pytest.mark.parametrize("vendor", MIRRORED)
def test_mirrors_of_one_table_are_the_same(landed: Landed, vendor: str) -> None:
    held, versions = orders_then(vendor)
    assert len(held) == 1 and len(versions) >= 5
    assert sorted(landed.mirrors[vendor], key=str) == sorted(held, key=str)
    assert sorted(landed.versions[vendor], key=str) == sorted(versions, key=str)


# --- comparing
# ----------------------------------------------------------------------------------------------------------------------


def differences(by_change: Mapping[str, list[Row]], exceptions: list[VendorException]) -> list[str]:
    """What is not as the exceptions allow, one line a column."""
    out = []
    for change in CHANGES:
        expected = expected_rows(change, exceptions)
        got = sorted(by_change.get(change.name, []), key=as_arrived)
        if len(got) != len(expected):
            out.append(f"{change.name}: {len(got)} rows, expected {len(expected)}")
        for ours, theirs in zip(got, expected):
            out += [f"{change.name}: {line}" for line in column_differences(change, ours, theirs)]
    return out


def as_arrived(row: Row) -> tuple[list[int], int]:
    return row["seq"]["arrival"], row["seq"]["row"]


def column_differences(change: Change, got: Row, expected: Row) -> Iterator[str]:
    for name in SAME_COLUMNS:
        if name in ("before", "after"):
            ours, theirs = (floats_by_value(change.table, row[name]) for row in (got, expected))
            for column in sorted({*(ours or {}), *(theirs or {})}):
                if _member(ours, column) != _member(theirs, column):
                    yield f"{name}.{column}: got {_member(ours, column)!r}, expected {_member(theirs, column)!r}"
            if (ours is None) != (theirs is None):
                yield f"{name}: got {ours!r}, expected {theirs!r}"
        elif got[name] != expected[name]:
            yield f"{name}: got {got[name]!r}, expected {expected[name]!r}"


def _member(image: Mapping[str, Any] | None, column: str) -> Any:
    return (image or {}).get(column, "(not there)")


def floats_by_value(table: Table | None, image: Mapping[str, Any] | None) -> dict[str, Any] | None:
    floats = {column.name for column in table.columns if column.kind in ("float", "double")} if table else set()
    return None if image is None else {name: _number(text) if name in floats else text for name, text in image.items()}


def _number(text: str | None) -> Any:
    try:
        return text and repr(float(text))
    except ValueError:
        return text


def order_key(row: Row) -> tuple[Any, ...]:
    seq = row["seq"]
    return seq["generation"], seq["phase"], [int(number) for number in seq["position"]], seq["arrival"], seq["row"]


# --- tests with Spark
# ----------------------------------------------------------------------------------------------------------------------


@VENDORS
def test_the_same_change_gives_the_same_row(landed: Landed, vendor: str) -> None:
    assert differences(landed.by_change(vendor), EXCEPTIONS[vendor]["exceptions"]) == []


@VENDORS
def test_every_exception_is_needed(landed: Landed, vendor: str) -> None:
    exceptions = EXCEPTIONS[vendor]["exceptions"]
    needless = [
        left_out
        for left_out in exceptions
        if not differences(landed.by_change(vendor), [e for e in exceptions if e is not left_out])
    ]
    assert needless == []


@VENDORS
def test_no_dead_letters(landed: Landed, vendor: str) -> None:
    assert [
        (row["reason"], row["detail"], row["raw"]) for row in landed.tables[vendor] if row["kind"] == "dead_letter"
    ] == []


@VENDORS
def test_every_message_has_one_first_row(landed: Landed, vendor: str) -> None:
    first = [str(row["seq"]["arrival"]) for row in landed.tables[vendor] if row["seq"]["row"] == 0]
    assert len(first) == len(set(first)) == len(messages_of(vendor))


@VENDORS
def test_rows_of_one_key_are_in_order(landed: Landed, vendor: str) -> None:
    by_change = landed.by_change(vendor)
    for identity in {change.row for change in CHANGES if change.row}:
        names = [change.name for change in CHANGES if change.row == identity]
        told = [
            row for name in names for row in sorted(by_change.get(name, []), key=as_arrived) if row["kind"] == "row"
        ]
        assert sorted(told, key=order_key) == told, identity


@VENDORS
def test_messages_lack_what_is_said(landed: Landed, vendor: str) -> None:
    changes = [row for row in landed.views[vendor] if row["kind"] == "row" and row["seq"]["phase"] == 1]
    there = {
        "key": not any(table.get("key") for table in source_of(SOURCES.get(vendor, vendor)).get("tables", ())),
        "order": all(row["seq"]["position"] for row in changes),
        "transaction": all(row["tx_id"] for row in changes),
    }
    assert EXCEPTIONS[vendor]["lacks"] == [name for name, is_there in there.items() if not is_there]


# --- tests without
# ----------------------------------------------------------------------------------------------------------------------


def test_every_vendor_has_its_exceptions() -> None:
    assert list(EXCEPTIONS) == list(ENCODERS)
    for vendor, entry in EXCEPTIONS.items():
        assert sorted(entry) == ["assumed", "exceptions", "lacks"], vendor
        for exception in entry["exceptions"]:
            (what,) = {"arrives", "column", "values", "row"} & set(exception)
            assert exception["reason"] and set(exception) <= {"of", "reason", what, "becomes", "rule"}, exception
            assert exception.get("rule", "seconds") in VALUE_RULES, exception
            assert exception.get("row", "patch") in (*ROW_RULES, *SEVERAL), exception
            assert what == "arrives" or any(concerns(exception, change) for change in CHANGES)


@VENDORS
def test_every_exception_changes_something(vendor: str) -> None:
    exceptions = EXCEPTIONS[vendor]["exceptions"]
    as_expected = {change.name: list(numbered(expected_rows(change, exceptions))) for change in CHANGES}
    assert differences(as_expected, exceptions) == []
    for exception in exceptions:
        assert differences(as_expected, [other for other in exceptions if other is not exception]), exception


def numbered(rows: Rows) -> Iterator[Row]:
    for number, row in enumerate(rows):
        yield {**row, "seq": {"arrival": [number], "row": 0}}


@VENDORS
def test_what_never_arrives_is_not_written(vendor: str) -> None:
    exceptions = EXCEPTIONS[vendor]["exceptions"]
    for change in CHANGES:
        assert bool(ENCODERS[vendor](change)) == bool(expected_rows(change, exceptions)), change.name


@pytest.mark.parametrize("vendor", list(JSON_LINES))
def test_messages_are_lines_of_json(vendor: str) -> None:
    for _, name, message in messages_of(vendor):
        assert b"\n" not in message and isinstance(json.loads(message), dict), name


@pytest.mark.parametrize("vendor", list(DEBEZIUM_ENCODERS))
def test_records_are_json(vendor: str) -> None:
    for _, name, record in messages_of(vendor):
        parts = [json.loads(part) for part in record[:2] if part is not None]
        assert parts and all(isinstance(part, dict) for part in parts), name


@pytest.mark.parametrize("vendor", list(AVRO_ENCODERS))
def test_messages_are_records(vendor: str) -> None:
    for _, name, message in messages_of(vendor):
        record, size = decoded(vendor, message)
        assert size == len(message) and record["id"] == CHANGE_OF[name].order, name


# --- the encoders against messages that the documents print
# ------------------------------------------------------------------------


def exact(text: str | bytes) -> Any:
    """JSON with the digits of its numbers."""
    return json.loads(text, parse_float=str, parse_int=str)


def assert_holds(message: Any, sample: Any, path: str = "") -> None:
    """Everything that the sample has is in the message, too."""
    if isinstance(sample, dict) and isinstance(message, dict):
        for name, member in sample.items():
            assert name in message, f"{path}.{name}"
            assert_holds(message[name], member, f"{path}.{name}")
    elif isinstance(sample, list) and isinstance(message, list) and len(sample) == len(message):
        for number, member in enumerate(sample):
            assert_holds(message[number], member, f"{path}[{number}]")
    else:
        assert message == sample, path


DOUBLE = float("9.99999999999999909326625337248461995470488734032E-308")
DOUBLE_DIGITS = (
    "9.99999999999999909326625337248461995470488734032045693707225049331647881341002217023668530611028595157578301758491822824378438792553200763769833775473829862512"
    "856683413461939989729065436937279228852476622948659167943435544622149348072943613294167216662821737555414480159115639791276054897201420389770580351533960771506199"
    "055664889770260291710977826725024401716523031627390652604144008597950935492433262042405635563993262949691698930975461134804791235994697938405200089317860731205010"
    "159117711704697471514344499487123311264707354172378099538737850219826145102366279591379660471881259976727356521602405329789906247763521525981391443887618575275588"
    "619928089116905061711975308467857756405810961619074331866883961080943542712559830853980002984826569445431232452392578125E-308"
)
OMS_TABLE = Table(
    "table",
    (
        *(
            Column(f"col{number}", "integer", type_)
            for number, type_ in enumerate(("tinyint", "smallint", "int", "bigint", "bigint unsigned"), 1)
        ),
        Column("col6", "float", "float"),
        Column("col7", "double", "double"),
        Column("col8", "string", "varchar(255)"),
        Column("col9", "binary", "blob"),
        Column("col10", "decimal", "decimal(65,30)"),
        Column("col11", "date", "date"),
        Column("col12", "time", "time"),
        Column("col13", "datetime", "datetime"),
        Column("col14", "timestamp", "timestamp(6)"),
    ),
    ("col1", "col2"),
    database="database",
)
OMS_ROW = dict(
    zip(
        (column.name for column in OMS_TABLE.columns),
        (
            3,
            129,
            2147483646,
            9223372036854775806,
            10223372036854775806,
            1.2222,
            DOUBLE,
            "hello world",
            b"hello world",
            Decimal(DOUBLE_DIGITS),
            "2020-11-25",
            "00:01:02",
            "2020-11-25 00:01:02",
            moment("2020-11-24 16:01:02.012345"),
        ),
    )
)
OMS_VALUES_SENT = """"col1":3,"col2":129,"col3":2147483646,"col4":9223372036854775806,"col5":10223372036854775806,
    "col6":1.2222,"col7":DOUBLE,"col8":"hello world",
    "col9":"aGVsbG8gd29ybGQ=","col10":DOUBLE,"col11":"2020-11-25","col12":"00:01:02","col13":"2020-11-25 00:01:02",
    "col14":"1606233662.012345" """
OMS_TYPES_SENT = (
    "TINYINT",
    "SMALLINT",
    "INT",
    "INT64",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "VARCHAR",
    "BLOB",
    "DECIMAL",
    "DATE",
    "TIME",
    "DATETIME",
    "TIMESTAMP",
)
OMS_INSERT = Change("sample", "insert", OMS_TABLE, None, OMS_ROW, order=5, instant=1609344671000, written=1618323429026)
OMS_UPDATE = replace(
    OMS_INSERT, op="update", before=OMS_ROW, after={**OMS_ROW, "col8": "hello world 2020"}, written=1618364572908
)


def the_message(vendor: str, change: Change) -> Any:
    (message,) = ENCODERS[vendor](change)
    return exact(message)


def oms_values(double: str) -> Any:
    return exact("{" + OMS_VALUES_SENT.replace("DOUBLE", double) + "}")


def test_samples_of_oms_default() -> None:
    sent = oms_values(DOUBLE_DIGITS)
    del sent["col7"]  # the sample's is shorter: here the digits follow the table of types
    message = the_message("oms_default", OMS_INSERT)
    keys = {
        "record_primary_key": "col1\u0001col2",
        "record_primary_value": "3\u0001129",
        "timestamp": "1609344671",
        "table_name": "table",
    }
    assert_holds(message, {"allMetaData": keys, "prevStruct": None, "recordType": "INSERT", "postStruct": sent})
    assert float(message["postStruct"]["col7"]) == DOUBLE
    assert_holds(
        the_message("oms_default", replace(OMS_INSERT, op="delete", before=OMS_ROW, after=None)),
        {"recordType": "DELETE", "prevStruct": sent, "postStruct": None},
    )


def test_samples_of_oms_default_extend() -> None:
    light = {f"col{number}": {"schemaType": type_} for number, type_ in enumerate(OMS_TYPES_SENT, 1)}
    sent = {**oms_values(DOUBLE_DIGITS), "__light_type": light}
    assert_holds(
        the_message("oms_default_extend", OMS_INSERT), {"prevStruct": None, "recordType": "INSERT", "postStruct": sent}
    )
    assert_holds(
        the_message("oms_default_extend", OMS_UPDATE),
        {"prevStruct": sent, "recordType": "UPDATE", "postStruct": {"col8": "hello world 2020", "__light_type": light}},
    )


def test_samples_of_oms_canal() -> None:
    types = {f"col{number}": type_.lower() for number, type_ in enumerate(OMS_TYPES_SENT, 1)}
    head = {
        "database": "database",
        "table": "table",
        "es": "1609344671000",
        "isDdl": False,
        "sql": "",
        "mysqlType": types,
        "pkNames": ["col1", "col2"],
    }
    sent = oms_values(DOUBLE_DIGITS)
    assert_holds(
        the_message("oms_canal", OMS_INSERT),
        {**head, "data": [sent], "old": None, "type": "INSERT", "ts": "1618323429026"},
    )
    update = the_message("oms_canal", OMS_UPDATE)
    assert_holds(
        update, {**head, "data": [{**sent, "col8": "hello world 2020"}], "type": "UPDATE", "ts": "1618364572908"}
    )
    assert update["old"] == [{"col8": "hello world"}]
    assert_holds(
        the_message("oms_canal", replace(OMS_INSERT, op="delete", before=OMS_ROW, after=None)),
        {**head, "data": [sent], "old": None, "type": "DELETE"},
    )


def test_samples_of_oms_dataworks() -> None:
    plain = f"{Decimal(DOUBLE_DIGITS):f}"
    change = replace(OMS_INSERT, instant=1647581000000, written=1647581000795)
    source = {"dbType": "ob_mysql", "dbVersion": None, "dbName": "database", "schema": None, "table": "table"}
    columns = [{"name": f"col{number}", "type": type_} for number, type_ in enumerate(OMS_TYPES_SENT, 1)]
    times = {"eventTime": "1647581000000", "systemTime": "1647581000795", "checkpointTime": "1647581000"}
    payload = {"before": None, "after": {"data": oms_values(plain)}, "op": "INSERT", "timestamp": times, "ddl": None}
    assert_holds(
        the_message("oms_dataworks", change),
        {
            "version": "2.0",
            "schema": {"source": source, "column": columns, "pk": ["col1", "col2"]},
            "payload": payload,
            "extend": {"load_fm": "test"},
        },
    )
    heartbeat = {"version": "2.0", "payload": {"timestamp": {"eventTime": "1620457659000"}, "op": "HEARTBEAT"}}
    assert the_message("oms_dataworks", Change("sample", "heartbeat", instant=1620457659000)) == heartbeat
    template = replace(
        change,
        table=Table("t", (Column("ts", "datetime", "datetime(6)"),), ()),
        after={"ts": "2020-05-24 18:14:29.123456"},
    )
    assert the_message("oms_dataworks", template)["payload"]["after"]["data"] == {"ts": "1590315269000.123456000"}


def test_samples_of_oms_shareplex() -> None:
    table = replace(OMS_TABLE, name="mock_table", database="mock_database")
    change = replace(OMS_UPDATE, table=table, instant=1606233662000, written=1607320749000)
    meta = {
        "posttime": "2020-12-07T13:59:09",
        "op": "upd",
        "time": "2020-11-25T00:01:02",
        "table": "mock_database.mock_table",
        "rowid": "mock_database.mock_table-3\u0001129",
    }
    message = the_message("oms_shareplex", change)
    assert_holds(message, {"data": {"col8": "hello world 2020"}, "meta": meta, "key": oms_values(DOUBLE_DIGITS)})
    assert list(message["data"]) == ["col8"]
    assert_holds(
        the_message("oms_shareplex", replace(change, op="delete", after=None)),
        {"data": oms_values(DOUBLE_DIGITS), "meta": {"op": "del"}},
    )


def test_sample_of_oceanbase_canal() -> None:
    columns = (
        Column("id", "integer", "integer"),
        Column("name", "string", "varchar(255)"),
        Column("description", "string", "varchar(512)"),
        Column("weight", "float", "float"),
    )
    after = {"id": 111, "name": "name", "description": "Big 2-wheel scooter", "weight": 5.18}
    change = Change(
        "sample",
        "update",
        Table("products", columns, database="inventory"),
        {**after, "weight": 5.15},
        after,
        order=9,
        instant=1589373560000,
        written=1589373560798,
    )
    assert_holds(
        the_message("oceanbase_canal", change),
        exact("""{"data": [{"id": "111", "name": "name", "description": "Big 2-wheel scooter", "weight": "5.18"}],
            "database": "inventory", "es": 1589373560000, "id": 9, "isDdl": false,
            "mysqlType": {"id": "INTEGER", "name": "VARCHAR(255)", "description": "VARCHAR(512)",
            "weight": "FLOAT"}, "old": [{"weight": "5.15"}], "pkNames": ["id"], "sql": "",
            "table": "products", "ts": 1589373560798, "type": "UPDATE"}"""),
    )


DRS_TABLE = Table(
    "test ",
    (
        Column("c11", "binary", "binary(1)"),
        Column("c10", "string", "varchar(255)"),
        Column("c14", "binary", "blob"),
        Column("c4", "datetime", "datetime"),
        Column("c5", "timestamp", "timestamp(3)"),
        Column("c6", "string", "char(20)"),
        Column("c7", "float", "float"),
        Column("c8", "double", "double"),
        Column("c9", "decimal", "decimal(20,0)"),
        Column("id", "integer", "int"),
    ),
    database="test01",
)
DRS_ROW = dict(
    c11=b"",
    c10="华为云huaweicloud",
    c14=b"jgojgoid!@#$%^",
    c4="2021-06-25 17:51:53",
    c5=moment("2021-06-25 09:51:53.201"),
    c6="!@#$%90weurtg103",
    c7=10357.0,
    c8=12510357.0,
    c9=Decimal(9874510357),
    id=104,
)
DRS_VALUES_SENT = """"c11":"[]", "c10":"华为云huaweicloud",
    "c14":"[106, 103, 111, 106, 103, 111, 105, 100, 33, 64, 35, 36, 37, 94]", "c4":"2021-06-25 17:51:53",
    "c5":"1624614713.201",
    "c6":"!@#$%90weurtg103", "c7":"10357.0", "c8":"1.2510357E7", "c9":"9874510357" """
DRS_UPDATE = Change(
    "sample",
    "update",
    DRS_TABLE,
    {**DRS_ROW, "id": 103},
    DRS_ROW,
    order=27677,
    instant=1624614713000,
    written=1625058726990,
)


def test_samples_of_drs_json() -> None:
    head = """{"mysqlType":{"c11":"binary", "c10":"varchar", "c14":"blob", "c4":"datetime", "c5":"timestamp",
        "c6":"char", "c7":"float", "c8":"double", "c9":"decimal", "id":"int"},
        "id":27677, "es":1624614713000, "ts":1625058726990, "database":"test01", "table":"test ", "isDdl":false,
        "sql":"", "pkNames":["id"]}"""
    after, before = (exact("{" + DRS_VALUES_SENT + f', "id":"{number}"' + "}") for number in (104, 103))
    assert_holds(
        the_message("drs_json", DRS_UPDATE), {**exact(head), "type": "UPDATE", "data": [after], "old": [before]}
    )
    deleted = replace(DRS_UPDATE, op="delete", after=None)
    assert_holds(the_message("drs_json", deleted), {"type": "DELETE", "data": None, "old": [before]})
    assert_holds(
        the_message("drs_json_c", deleted),
        {"type": "DELETE", "data": [{**before, "c5": "2021-06-25 17:51:53"}], "old": None},
    )


def test_sample_of_drs_sql() -> None:
    columns = (
        Column("timestamp_column", "datetime", "datetime(6)"),
        Column("jsonb_column", "json", "json"),
        Column("boolean_column", "boolean", "tinyint(1)"),
        Column("bit_column", "bit", "bit(1)"),
        Column("smallint_column", "integer", "tinyint"),
        Column("bytea_column", "binary", "blob"),
    )
    before = dict(
        timestamp_column="2014-07-02 06:14:00.742",
        jsonb_column='{"key1": "value1", "key2": "value2"}',
        boolean_column=1,
        bit_column=1,
        smallint_column=12,
        bytea_column=b"bytea_data",
    )
    after = {**before, "timestamp_column": "2021-12-16 12:31:49.344365", "boolean_column": 0}
    change = Change(
        "sample",
        "update",
        Table("table01", columns, (), database="database01"),
        before,
        after,
        order=332,
        instant=1639626187000,
        written=1639629261915,
    )
    values = """{"timestamp_column": "2021-12-16 12:31:49.344365",
        "jsonb_column": "{\\"key1\\": \\"value1\\", \\"key2\\": \\"value2\\"}", "boolean_column": "false",
        "bit_column": "1", "smallint_column": "12", "bytea_column": "62797465615f64617461"}"""
    sample = """{"columnType": {"timestamp_column": "timestamp without time zone", "jsonb_column": "json",
        "boolean_column": "boolean", "bit_column": "bit", "smallint_column": "smallint",
        "bytea_column": "bytea"}, "dbType": "GaussDB Primary/Standby", "opType": "UPDATE", "id": 332,
        "es": 1639626187000, "ts": 1639629261915, "database": "database01",
        "table": "table01", "type": "UPDATE", "isDdl": false, "sql": "", "pkNames": null}"""
    old = {**exact(values), "timestamp_column": "2014-07-02 06:14:00.742", "boolean_column": "true"}
    assert_holds(the_message("drs_sql", change), {**exact(sample), "data": [exact(values)], "old": [old]})


def test_samples_of_drs_mongodb() -> None:
    table = Table(
        "ljx",
        (Column("id", "integer", "int"), Column("c1", "string", "text"), Column("tags", "json", "json")),
        database="ljx",
    )
    row = dict(id=1, c1="baz", tags='["mongodb", "database", "NoSQL"]')
    change = Change(
        "sample", "insert", table, None, row, "ljx/1", order=256, instant=1684315111439, written=1684315111576
    )
    identity = f'{{"_id": ObjectId("{change.document_id}")}}'
    head = exact(
        '{"id": 256, "op": "INSERT", "dbType": "MongoDB", "db": "ljx", "coll": "ljx", "where": null, '
        '"recordType": "insert", "extra": "insert", "es": 1684315111439, "ts": 1684315111576}'
    )
    document = '"id": NumberInt(1), "c1": "baz", "tags": ["mongodb", "database", "NoSQL"]}'
    insert = the_message("drs_mongodb", change)
    assert_holds(insert, {**head, "value": f"{identity[:-1]}, {document}"})
    assert re.fullmatch("1684344063:[0-9]+", insert["clusterTime"])
    update = replace(change, op="update", before=row, after={**row, "c1": "aaa"})
    assert_holds(
        the_message("drs_mongodb", update),
        {"op": "UPDATE", "value": '{"$set": {"c1": "aaa"}}', "where": identity, "recordType": "update"},
    )
    replaced = replace(update, after=row)
    assert_holds(
        the_message("drs_mongodb", replaced),
        {"op": "UPDATE", "value": f"{identity[:-1]}, {document}", "where": identity, "recordType": "replace"},
    )
    assert_holds(
        the_message("drs_mongodb", replace(change, op="delete", before=row, after=None)),
        {"op": "DELETE", "value": identity, "where": None, "recordType": "doc", "extra": "doc"},
    )


def test_samples_of_dataworks() -> None:
    table = Table(
        "pkset_test_no_pk",
        tuple(Column(name, "string", "varchar(20)") for name in ("name", "job", "sex")),
        (),
        database="pkset_test",
    )
    man = {"name": "name11", "job": "job11", "sex": "man"}
    update = Change(
        "sample", "update", table, man, {**man, "sex": "woman"}, order=1, instant=1620458077000, written=1620458077779
    )
    columns = [*({"name": name, "type": "STRING"} for name in man), {"name": "#alibaba_rds_row_id#", "type": "LONG"}]
    schema = {
        "dataColumn": columns,
        "primaryKey": None,
        "source": {"dbType": "MySQL", "dbName": "pkset_test", "tableName": "pkset_test_no_pk"},
    }
    before, after = ({"dataColumn": {**man, "sex": sex, "#alibaba_rds_row_id#": "15"}} for sex in ("man", "woman"))
    times = {"eventTime": "1620458077000", "systemTime": "1620458077779", "checkpointTime": "1620458077000"}
    payload = {"sequenceId": "1620457642589000001", "timestamp": times, "ddl": None}
    first, second = map(exact, ENCODERS["dataworks"](update))
    assert first == {
        "schema": schema,
        "payload": {**payload, "before": before, "after": None, "op": "UPDATE_BEFOR"},
        "version": "0.0.1",
    }
    assert second == {
        "schema": schema,
        "payload": {**payload, "before": None, "after": after, "op": "UPDATE_AFTER"},
        "version": "0.0.1",
    }
    assert the_message("dataworks_single", update) == {
        "schema": schema,
        "payload": {**payload, "before": before, "after": after, "op": "UPDATE_AFTER"},
        "version": "0.0.1",
    }
    heartbeat = exact("""{"schema": {"dataColumn": null, "primaryKey": null, "source": null},
        "payload": {"before": null, "after": null, "sequenceId": null,
        "timestamp": {"eventTime": 1620457659000, "checkpointTime": 1620457659000}, "op": "MHEARTBEAT",
        "ddl": null}, "version": "0.0.1"}""")
    assert the_message("dataworks", Change("sample", "heartbeat", instant=1620457659000)) == heartbeat


MAXWELL_TABLE = Table(
    "e",
    (
        Column("id", "integer", "int(10)"),
        Column("m", "double", "double"),
        Column("c", "timestamp", "timestamp(6)"),
        Column("comment", "string", "varchar(255)"),
    ),
    database="test",
)
MAXWELL_ROW = dict(id=1, m=4.2341, c=moment("2016-10-20 21:33:37.523"), comment="I am a creature of light.")
MAXWELL_NEW = {**MAXWELL_ROW, "m": 5.444, "c": moment("2016-10-20 21:33:54.631")}
MAXWELL_UPDATE = Change("sample", "update", MAXWELL_TABLE, MAXWELL_ROW, MAXWELL_NEW, order=9, instant=1477053234000)


def test_samples_of_maxwell() -> None:
    """The host of the sample is in another zone; its wall clocks are kept."""
    head = exact('{"database": "test", "table": "e", "ts": 1477053234, "commit": true}')
    data = exact('{"id": 1, "m": 5.444, "c": "2016-10-21 05:33:54.631000", "comment": "I am a creature of light."}')
    old = exact('{"m": 4.2341, "c": "2016-10-21 05:33:37.523000"}')
    update = the_message("maxwell", MAXWELL_UPDATE)
    assert_holds(update, {**head, "type": "update", "data": data})
    assert update["old"] == old
    deleted = the_message("maxwell", replace(MAXWELL_UPDATE, op="delete", before=MAXWELL_NEW, after=None))
    assert_holds(deleted, {**head, "type": "delete", "data": data})
    assert "old" not in deleted
    started = replace(MAXWELL_UPDATE, op="snapshot", before=None, instant=1450557744000)
    assert_holds(the_message("maxwell", started), {"type": "bootstrap-insert", "ts": "1450557744", "data": data})
    altered = replace(
        MAXWELL_UPDATE, op="alter", statement="alter table test.e add column t int", instant=1477053308000
    )
    columns = [{"type": type_, "name": name} for name, type_ in zip(data, ("int", "double", "timestamp", "varchar"))]
    assert_holds(
        the_message("maxwell", altered),
        {"type": "table-alter", "ts": "1477053308000", "def": {"columns": columns, "primary-key": ["id"]}},
    )


def test_samples_of_oms_maxwell() -> None:
    columns = tuple(column for column in MAXWELL_TABLE.columns if column.name != "comment")
    change = replace(
        MAXWELL_UPDATE, table=replace(MAXWELL_TABLE, columns=columns), instant=1684225127000, transaction="1002_336403"
    )
    head = exact("""{"database": "test", "type": "update", "ts": 1684225127, "xid": "1002_336403", "commit": true,
        "primary_key": ["1"], "primary_key_columns": ["id"], "sql": null, "def": null}""")
    data = exact('{"m": 5.444, "id": 1, "c": "2016-10-20 21:33:54.631000"}')
    old = exact('{"m": 4.2341, "id": 1, "c": "2016-10-20 21:33:37.523000"}')
    assert_holds(the_message("oms_maxwell", change), {**head, "data": data, "old": old})
    snapshot = replace(change, op="snapshot", before=None)
    assert_holds(the_message("oms_maxwell", snapshot), {"type": "insert", "ts": str(FULL_PHASE), "old": None})
    heartbeat = {"database": None, "type": "heartbeat", "ts": "1744181717000", "position": "1744181717", "data": None}
    assert_holds(the_message("oms_maxwell", Change("sample", "heartbeat", instant=1744181717000)), heartbeat)


def test_samples_of_ticdc_canal() -> None:
    table = Table("tp_int", (Column("c_int", "integer", "int"), Column("id", "integer", "int")), database="test")
    before, after = {"c_int": 2147483647, "id": 2}, {"c_int": 0, "id": 2}
    change = Change("sample", "update", table, before, after, instant=1639633141221, written=1639633142960)
    sample = exact("""{"id": 0, "database": "test", "table": "tp_int", "pkNames": ["id"], "isDdl": false,
        "type": "UPDATE",
        "es": 1639633141221, "ts": 1639633142960, "sql": "", "sqlType": {"c_int": 4, "id": 4},
        "mysqlType": {"c_int": "int", "id": "int"}, "data": [{"c_int": "0", "id": "2"}],
        "old": [{"c_int": "2147483647", "id": "2"}]}""")
    assert_holds(the_message("ticdc_canal", change), sample)
    watermark = {"type": "TIDB_WATERMARK", "isDdl": False, "data": None, "es": "1640007049196"}
    assert_holds(the_message("ticdc_canal", Change("sample", "heartbeat", instant=1640007049196)), watermark)


def test_samples_of_ogg_json() -> None:
    table = Table("T", (Column("ID", "integer", "int"), Column("W", "float", "float")), ("ID",), database="S")
    change = Change("sample", "update", table, {"ID": 1, "W": 5.18}, {"ID": 1, "W": 5.15}, order=143)
    change = replace(change, instant=1589355606000, written=1589355607000)
    head = exact("""{"table": "S.T", "op_type": "U", "op_ts": "2020-05-13 15:40:06.000000",
        "current_ts": "2020-05-13T15:40:07.000000", "pos": "00000000000000000143", "primary_keys": ["ID"]}""")
    before, after = exact('{"ID": 1, "W": 5.18}'), exact('{"ID": 1, "W": 5.15}')
    assert the_message("ogg_json", change) == {**head, "before": before, "after": after}
    assert the_message("ogg_json_row", change) == {**head, **after}


def test_samples_of_qlik_replicate() -> None:
    table = Table("t", (Column("id", "integer", "int"), Column("email", "string", "text")))
    before, after = {"id": 1, "email": "john@doe.com"}, {"id": 1, "email": "foo@bar.com"}
    change = Change("sample", "update", table, before, after, order=197, instant=1556821049000)
    sample = exact("""{"magic": "atMSG", "type": "DT", "headers": null, "messageSchemaId": null, "messageSchema": null,
        "message": {"data": {"id": 1, "email": "foo@bar.com"}, "beforeData": {"id": 1, "email": "john@doe.com"},
        "headers": {"operation": "UPDATE", "timestamp": "2019-05-02T18:17:29.000", "transactionEventCounter": 1,
        "transactionLastEvent": true}}}""")
    message = the_message("qlik_replicate", change)
    assert_holds(message, sample)
    assert len(message["message"]["headers"]["changeSequence"]) == 35


PK_TABLE = Table(
    "table2_with_pk",
    (Column("a", "integer", "mediumint"), Column("b", "string", "varchar(30)"), Column("c", "datetime", "datetime(6)")),
    ("a", "c"),
)
PK_ROW = {"a": 1, "b": "Backup and Restore", "c": "2018-03-27 12:05:29.914496"}
PK_INSERT = Change("sample", "insert", PK_TABLE, None, PK_ROW, order=571, instant=1577606314806)
PK_DELETE = replace(PK_INSERT, op="delete", before=PK_ROW, after=None)


def test_samples_of_wal2json_v1() -> None:
    """The page's types have what is in brackets behind them."""
    table = {"schema": "public", "table": "table2_with_pk"}
    insert = exact("""{"kind": "insert", "columnnames": ["a", "b", "c"],
        "columntypes": ["integer", "character varying", "timestamp without time zone"],
        "columnvalues": [1, "Backup and Restore", "2018-03-27 12:05:29.914496"]}""")
    old = exact("""{"keynames": ["a", "c"], "keytypes": ["integer", "timestamp without time zone"],
        "keyvalues": [1, "2018-03-27 12:05:29.914496"]}""")
    assert_holds(the_message("wal2json_v1", PK_INSERT), {"change": [{**insert, **table}]})
    assert_holds(the_message("wal2json_v1", PK_DELETE), {"change": [{"kind": "delete", **table, "oldkeys": old}]})


def test_samples_of_wal2json() -> None:
    columns = exact("""[{"name": "a", "type": "integer", "value": 1},
        {"name": "b", "type": "character varying", "value": "Backup and Restore"},
        {"name": "c", "type": "timestamp without time zone", "value": "2018-03-27 12:05:29.914496"}]""")
    table = {"schema": "public", "table": "table2_with_pk"}
    assert_holds(the_message("wal2json", PK_INSERT), {"action": "I", **table, "columns": columns})
    deleted = the_message("wal2json", PK_DELETE)
    assert_holds(deleted, {"action": "D", **table, "identity": [columns[0], columns[2]]})
    assert "columns" not in deleted


def test_sample_of_aws_dms() -> None:
    """The page names the attributes, and shows a row as texts without what is around it."""
    table = Table("Customers", (Column("FirstName", "string", "text"),), (), database="Test")
    change = Change("sample", "insert", table, None, {"FirstName": "Randy"}, order=7, written=1730032743210)
    metadata = {"record-type": "data", "operation": "insert", "schema-name": "Test", "table-name": "Customers"}
    times = {"timestamp": "2024-10-27T12:39:03.210000Z"}
    sample = {"data": {"FirstName": "Randy"}, "metadata": {**metadata, **times}}
    assert_holds(the_message("aws_dms", change), sample)


# --- the page
# ----------------------------------------------------------------------------------------------------------------------


def test_the_page_is_current_and_has_every_format() -> None:
    text = vendors_page.PAGE.read_text(encoding="utf-8")
    assert text == vendors_page.page(text), "make snapshots"
    formats = {path.stem for path in (vendors_page.PAGE.parent.parent / "formats").glob("*.yml")}
    assert set(map(format_of, EXCEPTIONS)) == formats - {"oms_before_3_3"}
