"""The same changes, written by every vendor, become the same rows: all columns but those that the contract lets differ,
and the exceptions in a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pytest
import yaml

from tests import vendors_page
from tests.commands import query, run
from tests.logical_changes import CHANGES, ORDERS, Change, Table
from tests.vendor_messages import FOLDER, VENDORS, Sent, messages_of, told_by
from tests.vendor_rows import (
    EXCEPTIONS,
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
from tests.vendor_sources import messages_to, source_of, sources, write_messages

VIEWS = ("changelog", "ddl_events", "control_events", "dead_letters")
SAME_COLUMNS = (
    "kind", "op", "tenant", "db_name", "schema_name", "table_name", "key", "old_key", "key_text", "before", "after",
    "before_image", "after_image", "changed", "event_time", "produced_at", "statement",
)  # fmt: skip
EACH_VENDOR = pytest.mark.parametrize("vendor", VENDORS)


# --- landing
# ----------------------------------------------------------------------------------------------------------------------


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
    out: dict[str, Rows] = {vendor: [] for vendor in VENDORS}
    for row in rows:
        vendor, change, _ = sent[row["source"], str(row["seq"]["arrival"])]
        out[vendor].append({**row, "change": change})
    return out


@pytest.fixture(scope="module")
def landed(spark: object, interpreted: None, tmp_path_factory: pytest.TempPathFactory) -> Landed:
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


def orders_then(changes: Iterable[Change]) -> tuple[Rows, Rows]:
    """The rows of orders that the database has after these changes, and all versions that they had."""
    held: dict[int, Row] = {}
    versions: Rows = []
    for change in changes:
        if change.kind != "row" or change.table is not ORDERS:
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
    """As far as a vendor tells of its rows: not all tell of a full load."""
    held, versions = orders_then(change for change in CHANGES if change.name in told_by(vendor))
    assert len(held) == 1 and len(versions) >= 5
    assert sorted(landed.mirrors[vendor], key=str) == sorted(held, key=str)
    assert sorted(landed.versions[vendor], key=str) == sorted(versions, key=str)


# --- comparing
# ----------------------------------------------------------------------------------------------------------------------


def differences(
    by_change: Mapping[str, list[Row]], exceptions: list[VendorException], changes: Iterable[Change] = CHANGES
) -> Iterator[str]:
    """What is not as the exceptions allow, one line a column."""
    for change in changes:
        expected = expected_rows(change, exceptions)
        got = sorted(by_change.get(change.name, []), key=as_arrived)
        if len(got) != len(expected):
            yield f"{change.name}: {len(got)} rows, expected {len(expected)}"
        for ours, theirs in zip(got, expected):
            yield from (f"{change.name}: {line}" for line in column_differences(change, ours, theirs))


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


@EACH_VENDOR
def test_the_same_change_gives_the_same_row(landed: Landed, vendor: str) -> None:
    assert list(differences(landed.by_change(vendor), EXCEPTIONS[vendor]["exceptions"])) == []


@EACH_VENDOR
def test_every_message_has_one_first_row(landed: Landed, vendor: str) -> None:
    first = [str(row["seq"]["arrival"]) for row in landed.tables[vendor] if row["seq"]["row"] == 0]
    assert len(first) == len(set(first)) == len(messages_of(vendor))


@EACH_VENDOR
def test_rows_of_one_key_are_in_order(landed: Landed, vendor: str) -> None:
    by_change = landed.by_change(vendor)
    for identity in {change.row for change in CHANGES if change.row}:
        names = [change.name for change in CHANGES if change.row == identity]
        told = [
            row for name in names for row in sorted(by_change.get(name, []), key=as_arrived) if row["kind"] == "row"
        ]
        assert sorted(told, key=order_key) == told, identity


@EACH_VENDOR
def test_messages_lack_what_is_said(landed: Landed, vendor: str) -> None:
    changes = [row for row in landed.views[vendor] if row["kind"] == "row" and row["op"] != "snapshot"]
    there = {
        "key": not any(table.get("key") for table in source_of(SOURCES.get(vendor, vendor)).get("tables", ())),
        "order": all(row["seq"]["position"] for row in changes),
        "transaction": all(row["tx_id"] for row in changes),
    }
    assert EXCEPTIONS[vendor]["lacks"] == [name for name, is_there in there.items() if not is_there]


# --- tests without
# ----------------------------------------------------------------------------------------------------------------------


def test_every_vendor_has_its_messages_and_exceptions() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(VENDORS)
    for vendor, entry in EXCEPTIONS.items():
        assert sorted(entry) == ["assumed", "exceptions", "lacks"], vendor
        for exception in entry["exceptions"]:
            (what,) = {"arrives", "column", "values", "row"} & set(exception)
            assert exception["reason"] and set(exception) <= {"of", "reason", what, "becomes", "rule"}, exception
            assert exception.get("rule", "seconds") in VALUE_RULES, exception
            assert exception.get("row", "patch") in (*ROW_RULES, *SEVERAL), exception
            assert what == "arrives" or any(concerns(exception, change) for change in CHANGES)


@EACH_VENDOR
def test_every_exception_is_needed(vendor: str) -> None:
    """That rows come as the exceptions say is what test_the_same_change_gives_the_same_row is for."""
    exceptions = EXCEPTIONS[vendor]["exceptions"]
    as_expected = {change.name: list(numbered(expected_rows(change, exceptions))) for change in CHANGES}
    for exception in exceptions:
        others = [other for other in exceptions if other is not exception]
        concerned = [change for change in CHANGES if concerns(exception, change)]
        assert any(differences(as_expected, others, concerned)), exception


def numbered(rows: Rows) -> Iterator[Row]:
    for number, row in enumerate(rows):
        yield {**row, "seq": {"arrival": [number], "row": 0}}


@EACH_VENDOR
def test_what_never_arrives_is_not_told(vendor: str) -> None:
    exceptions = EXCEPTIONS[vendor]["exceptions"]
    assert told_by(vendor) == {change.name for change in CHANGES if expected_rows(change, exceptions)}


# --- the page
# ----------------------------------------------------------------------------------------------------------------------


def test_the_page_is_current_and_has_every_format() -> None:
    text = vendors_page.PAGE.read_text(encoding="utf-8")
    assert text == vendors_page.page(text), "make snapshots"
    formats = {path.stem for path in (vendors_page.PAGE.parent.parent / "formats").glob("*.yml")}
    # What is laid over other formats, is the same message in another envelope or encoding, or tells no changes.
    others = {"oms_before_3_3", "debezium_cloudevents", "debezium_avro", "rows"}
    assert set(map(format_of, EXCEPTIONS)) == formats - others
