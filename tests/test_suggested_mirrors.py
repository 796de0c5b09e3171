"""What `mirrors suggest` writes: types that take the next value too, and files that the project reads whatever names
and types a table has.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from runner.compile.suggested_mirrors import Difference, free_name, suggested_rule, suggested_yaml, with_differences
from runner.project.tables_seen import TRIED, ColumnSeen, TableSeen, column_type
from tests.inferred import known
from tests.landed import Project

ODD = (
    *("_seq", "_SEQ", "op", "valid_from", "_untold", "row_key", "no", "null", "~", "1e3", "2024-01-01", "- a", "? a"),
    *(
        "a: b",
        "a #b",
        "it's",
        'a "b"',
        "a\\b",
        "a`b",
        "{{ a }}",
        "{% a %}",
        "a\nb",
        "a\r\nb",
        "a\tb",
        "a\x00b",
        "a\x07b",
    ),
    *("a\x7fb", "a\x85b", "a\u2028b", "a\u2029b", "\ufeffa", "\ud7ffa", "😀", "列", "İ", "ſ", "K", " a ", "", "a.b"),
)


def seen(
    name: str, type_name: str | None, unfit: tuple[str, ...] = (), digits: tuple[int, int] | None = (3, 2)
) -> ColumnSeen:
    counts = {kind: int(kind in unfit) for kind in TRIED}
    return ColumnSeen(name, type_name, (), counts, *(digits or (None, None)))


@pytest.mark.parametrize(
    ("form", "column", "expected"),
    [
        # Three digits before the point and two behind it have come so far.
        ("canal", seen("a", "decimal(12,2)"), "decimal(12,2)"),
        ("canal", seen("a", "DECIMAL(12, 4) unsigned"), "decimal(12,4)"),
        ("canal", seen("a", "decimal(10)", digits=(3, 0)), "decimal(10,0)"),
        # Values that do not fit what is declared now are of an earlier type.
        ("canal", seen("a", "decimal(12,2)", digits=(14, 2)), "decimal(38,2)"),
        ("canal", seen("a", "decimal(12,2)", digits=(3, 4)), "decimal(38,4)"),
        ("canal", seen("a", "decimal(65,30)", digits=(35, 30)), "string"),
        ("canal", seen("a", "decimal(12,2)", digits=None), "string"),
        ("canal", seen("a", "bigint(20)"), "bigint"),
        ("canal", seen("a", "bigint(20) unsigned", digits=(3, 0)), "decimal(20,0)"),
        ("canal", seen("a", "int(10) unsigned"), "bigint"),
        ("debezium", seen("a", "org.apache.kafka.connect.data.Decimal(12,2)"), "decimal(12,2)"),
        # Only the digits behind the point are known.
        ("debezium", seen("a", "org.apache.kafka.connect.data.Decimal(4)"), "decimal(38,4)"),
        ("wal2json", seen("a", "numeric(14,2)"), "decimal(14,2)"),
        ("wal2json", seen("a", "numeric"), "decimal(38,18)"),
        ("wal2json", seen("a", "numeric", digits=(25, 2)), "decimal(38,2)"),
        ("drs_json_oracle", seen("a", "NUMBER(10,-2)", digits=(3, 0)), "decimal(12,0)"),
        ("drs_json_oracle", seen("a", "NUMBER(2,5)", digits=(0, 5)), "decimal(5,5)"),
        # In brackets stand bits.
        ("drs_json_oracle", seen("a", "FLOAT(126)"), "decimal(38,18)"),
        ("drs_json_oracle", seen("a", "INTEGER", digits=(3, 0)), "decimal(38,0)"),
        ("canal", seen("a", "datetime(6)", ("timestamp_ntz",)), "string"),
        ("canal", seen("a", None), "string"),
    ],
)
def test_types_take_the_next_value(form: str, column: ColumnSeen, expected: str) -> None:
    assert column_type(column, known()[form].types) == expected


def test_the_project_reads_what_is_written(tmp_path: Path) -> None:
    """Odd names of columns, of the key and of tables, odd types."""
    settings = "name: odd\nsources:\n  - {name: shop, format: canal, files: in/*}\n"
    project, taken = Project(tmp_path, {"project.yml": settings}), {"shop_to_changelog", "changelog"}
    columns = tuple(seen(name, f"varchar # {name}") for name in ODD)
    gone = (ColumnSeen("left", is_gone=True), ColumnSeen("a; b", is_gone=True))
    tables = [TableSeen("shop", ("depot", "all"), 1, ("op", "_seq"), 1, 1, (*columns, *gone))]
    tables += [TableSeen("shop", ("depot", name), 1, (), 1, 0, columns[:1]) for name in ODD if name and '"' not in name]
    for table in tables:
        name = free_name(table, taken)
        taken |= {name.lower(), f"{name}_history".lower()}
        project.write({f"models/{name}.yml": suggested_yaml(table, name, None)})
    project.write({"models/rule.yml": suggested_rule(tables[1:], tables[:1], taken)})
    project.ok("check")
    whole = yaml.safe_load((tmp_path / "models/all.yml").read_text())["mirrors"][0]
    told: set[str] = set()
    for name, column in whole["columns"].items():
        told |= set(column["sent_as"]) if isinstance(column, dict) and "sent_as" in column else {name}
    # Of names that differ only in case the first counts.
    assert {name.lower() for name in told} == {name.lower() for name in ODD}


MIRROR = """\
mirrors:
  - name: other
    columns: {a: int}
  # about it
  - name: shop
    of: {source: shop, table: t}
    key: [id]
    columns:
      id: {type: int, data_tests: [unique]}  # int
      amount: decimal(4,2)  # decimal(4,2)
      note:
        type: string
        description: "a: b"

    history: true
"""
FOUND = [
    Difference("id", "bigint  # bigint(20)", "id", "int"),
    Difference("amount", '"decimal(10,2)"  # decimal(10,2)', "amount", "decimal(4,2)"),
    Difference("key", "[id, amount]", "", "[id]"),
    Difference("new", "string  # text"),
]


def test_what_is_applied_stands_where_it_belongs() -> None:
    assert with_differences(MIRROR, "shop", FOUND) == MIRROR.replace("{type: int,", "{type: bigint,").replace(
        "decimal(4,2)  # decimal(4,2)", '"decimal(10,2)"  # decimal(10,2)'
    ).replace("key: [id]", "key: [id, amount]").replace('"a: b"\n', '"a: b"\n      new: string  # text\n')
    brief = "mirrors: [{name: shop, key: [id], columns: {id: int, amount: decimal(4)}}]"
    assert with_differences(brief, "shop", FOUND) == (
        'mirrors: [{name: shop, key: [id, amount], columns: {id: bigint, amount: "decimal(10,2)", new: string}}]'
    )
