"""What happened in a database, told once and without any vendor, and the changelog row that each of it must become.

Values are Python values by the column's class:

| class | value |
|---|---|
| integer, boolean, bit | int |
| decimal | Decimal, with the column's scale |
| float, double | float |
| string, enum, json | str; json as MySQL prints it |
| set | tuple of labels, in the order of the definition |
| binary | bytes |
| geometry | (SRID, WKB) |
| date, time, datetime | wall clock text without zeros behind the fraction |
| timestamp | datetime with zone, or the text of a zero date |
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from decimal import Decimal
from hashlib import sha1
from struct import pack
from typing import Any

TENANT = "tenant_1"
DATABASE = "shop"
FIRST_INSTANT = 1714528800000  # 2024-05-01T02:00:00Z
STEP = 250  # milliseconds: four changes share a second
WRITTEN_AFTER = 626
ZERO_MOMENT = "0000-00-00 00:00:00"


@dataclass(frozen=True)
class Column:
    name: str
    kind: str  # the class of its values
    type: str  # as MySQL writes it, with parameters
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ("id",)
    tenant: str = TENANT
    database: str = DATABASE


@dataclass(frozen=True)
class Change:
    """`row` names what was changed, through changes of its key; `order` counts from 1 on each `server`, 0 if there is
    only one; instants are milliseconds of 1970. `names` are the tables that a statement changes, in its order, if they
    are several.
    """

    name: str
    op: str
    table: Table | None = None
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    row: str = ""
    statement: str | None = None
    order: int = 0
    instant: int = 0
    written: int = 0
    transaction: str = ""
    server: int = 0
    names: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return "control" if self.op == "heartbeat" else "ddl" if self.statement else "row"

    @property
    def document_id(self) -> str:
        """The 24 hex digits that a document store would have given the row: they outlive changes of its key."""
        return sha1(self.row.encode()).hexdigest()[:24]


# --- tables
# ----------------------------------------------------------------------------------------------------------------------


def integer(name: str, type_: str = "bigint") -> Column:
    return Column(name, "integer", type_)


def string(name: str, type_: str = "varchar(255)") -> Column:
    return Column(name, "string", type_)


def labelled(name: str, kind: str, *labels: str) -> Column:
    quoted = ",".join("'" + label.replace("'", "''") + "'" for label in labels)
    return Column(name, kind, f"{kind}({quoted})", labels)


ID = integer("id")
ORDERS = Table(
    "orders", (ID, string("label", "varchar(20)"), Column("amount", "decimal", "decimal(10,2)"), string("note", "text"))
)
ORDER_LINES = Table(
    "order_lines",
    (integer("order_id", "int"), string("line", "varchar(10)"), integer("quantity", "smallint")),
    ("order_id", "line"),
)
VISITS = Table("visits", (string("page", "varchar(20)"), integer("seconds", "int")), ())
NUMBERS = Table(
    "numbers",
    (
        ID,
        integer("tiny", "tinyint"),
        integer("small_unsigned", "smallint unsigned"),
        integer("medium", "mediumint"),
        integer("whole", "int"),
        integer("whole_unsigned", "int unsigned"),
        integer("big", "bigint"),
        integer("big_unsigned", "bigint unsigned"),
        integer("built", "year"),
        Column("paid", "boolean", "tinyint(1)"),
        Column("ratio", "float", "float"),
        Column("measure", "double", "double"),
    ),
)
DECIMALS = Table(
    "decimals",
    (
        ID,
        Column("price", "decimal", "decimal(10,2)"),
        Column("small", "decimal", "decimal(20,15)"),
        Column("plain", "decimal", "decimal(10,0)"),
    ),
)
WIDE_DECIMALS = Table("wide_decimals", (ID, Column("total", "decimal", "decimal(65,30)")))
HOSTILE_TEXTS = {
    "empty": "",
    "blanks": "  a b  ",
    "quotes": 'it\'s "quoted" `so`',
    "backslashes": "C:\\temp\\new \\",
    "lines": "one\ntwo\r\nthree\rfour\ttab",
    "controls": "\x01\x02\x08\x0b\x0c\x1b\x1f\x7f\x85",
    "emoji": "😀👩\u200d👩\u200d👧 𠮷",
    "chinese": "华为云 日本語 é e\u0301",
    "like_json": '{"a": [1.0, null, "x"]}',
    "like_mongo": 'ObjectId("64650cf67dc36a464e76e583") ISODate("2024-05-01T00:00:00Z")',
    "like_escape": "\\u003d \\n &lt; <a href='x?y=1&z=2'>",
    "separators": "a\u2028b\u2029c",
    "like_null": "null",
    "like_number": "1.50E+1",
    "like_base64": "aGVsbG8=",
    "like_bytes": "[106, -1, 0]",
}
TEXTS = Table("texts", (ID, *(string(name, "text") for name in HOSTILE_TEXTS)))
BITS_OF_A_SET = tuple(f"l{number}" for number in range(64))
LABELS = Table(
    "labels",
    (
        ID,
        labelled("size", "enum", "small", "it's", "x,y", "(大)"),
        labelled("tags", "set", "red", "green", "it's", "blue"),
        labelled("many", "set", *BITS_OF_A_SET),
    ),
)
DOCUMENTS = Table("documents", (ID, Column("body", "json", "json")))
FILES = Table(
    "files",
    (
        ID,
        Column("content", "binary", "blob"),
        Column("code", "binary", "varbinary(16)"),
        Column("flags", "bit", "bit(10)"),
        Column("all_flags", "bit", "bit(64)"),
        Column("flag", "bit", "bit(1)"),
    ),
)
PLACES = Table("places", (ID, Column("shape", "geometry", "geometry")))
CALENDAR = Table(
    "calendar",
    (
        ID,
        Column("day", "date", "date"),
        Column("clock", "time", "time(6)"),
        Column("seen", "datetime", "datetime(6)"),
        Column("moment", "timestamp", "timestamp(6)"),
    ),
)
LONG_TIMES = Table("long_times", (ID, Column("clock", "time", "time(3)")))
ZERO_DATES = Table("zero_dates", (ID, Column("day", "date", "date"), Column("seen", "datetime", "datetime")))
ZERO_MOMENTS = Table("zero_moments", (ID, Column("moment", "timestamp", "timestamp")))
ODD_NAMES = Table(
    "Odd name ", (ID, string("a b"), string("名字"), string("x.y"), string('it\'s "so"'), string("Label"))
)

# A point at (1, 2): byte order, type, x, y.
POINT = pack("<BIdd", 1, 1, 1.0, 2.0)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


# --- what happened
# ----------------------------------------------------------------------------------------------------------------------


def _insert(name: str, table: Table, **after: Any) -> Change:
    return Change(name, "insert", table, None, after, f"{table.name}/{name}")


def _nulls(table: Table) -> dict[str, Any]:
    return {column.name: (9 if column.name in table.key else None) for column in table.columns}


def _lives_of_orders() -> list[Change]:
    first = {"id": 1, "label": "old one", "amount": Decimal("10.00"), "note": None}
    second = {"id": 2, "label": "new", "amount": Decimal("1.50"), "note": ""}
    renamed = {**second, "label": "新"}
    moved = {**renamed, "id": 3}
    noted = {**moved, "note": "a", "label": None}
    return [
        Change("snapshot", "snapshot", ORDERS, None, first, "orders/1"),
        Change("insert", "insert", ORDERS, None, second, "orders/2"),
        Change("update", "update", ORDERS, second, renamed, "orders/2"),
        Change("no_op", "update", ORDERS, renamed, dict(renamed), "orders/2"),
        Change("key_change", "update", ORDERS, renamed, moved, "orders/2"),
        Change("null_and_back", "update", ORDERS, moved, noted, "orders/2"),
        Change("delete", "delete", ORDERS, noted, None, "orders/2"),
        Change("update_of_snapshot", "update", ORDERS, first, {**first, "amount": Decimal("-0.10")}, "orders/1"),
    ]


def _lives_of_lines() -> list[Change]:
    line = {"order_id": 2, "line": "a-1", "quantity": 5}
    more = {**line, "quantity": 6}
    moved = {**more, "line": 'b "2"'}
    return [
        Change("composite_insert", "insert", ORDER_LINES, None, line, "order_lines/1"),
        Change("composite_update", "update", ORDER_LINES, line, more, "order_lines/1"),
        Change("composite_key_change", "update", ORDER_LINES, more, moved, "order_lines/1"),
        Change("composite_delete", "delete", ORDER_LINES, moved, None, "order_lines/1"),
    ]


def _lives_of_visits() -> list[Change]:
    visit = {"page": "/", "seconds": 1}
    longer = {**visit, "seconds": 20}
    return [
        Change("no_key_insert", "insert", VISITS, None, visit, "visits/1"),
        Change("no_key_update", "update", VISITS, visit, longer, "visits/1"),
        Change("no_key_delete", "delete", VISITS, longer, None, "visits/1"),
    ]


def _numbers() -> list[Change]:
    largest = dict(
        id=1,
        tiny=127,
        small_unsigned=65535,
        medium=8388607,
        whole=2147483647,
        whole_unsigned=4294967295,
        big=2**63 - 1,
        big_unsigned=2**64 - 1,
        built=2155,
        paid=1,
        ratio=1.2222,
        measure=9.999999999999999e-308,
    )
    least = dict(
        id=1,
        tiny=-128,
        small_unsigned=0,
        medium=-8388608,
        whole=-2147483648,
        whole_unsigned=0,
        big=-(2**63),
        big_unsigned=0,
        built=1901,
        paid=0,
        ratio=-0.5,
        measure=-12510357.0,
    )
    return [
        Change("numbers_insert", "insert", NUMBERS, None, largest, "numbers/1"),
        Change("numbers_update", "update", NUMBERS, largest, least, "numbers/1"),
        Change("numbers_null", "update", NUMBERS, least, {**_nulls(NUMBERS), "id": 1}, "numbers/1"),
        _insert("long_double", NUMBERS, **{**_nulls(NUMBERS), "id": 2, "ratio": 0.0, "measure": 0.30000000000000004}),
        _insert(
            "decimals", DECIMALS, id=1, price=Decimal("1.50"), small=Decimal("0.000000100000000"), plain=Decimal("100")
        ),
        _insert(
            "decimals_negative",
            DECIMALS,
            id=2,
            price=Decimal("-99999999.90"),
            small=Decimal("-0.000000000000001"),
            plain=Decimal("-9999999999"),
        ),
        _insert(
            "decimals_zero",
            DECIMALS,
            id=3,
            price=Decimal("0.00"),
            small=Decimal("0.000000000000000"),
            plain=Decimal("0"),
        ),
        _insert(
            "wide_decimal", WIDE_DECIMALS, id=1, total=Decimal("-" + "9" * 35 + "." + "1234567890" * 2 + "1234500000")
        ),
    ]


def _others() -> list[Change]:
    labels = dict(id=1, size="it's", tags=("red", "it's"), many=("l0", "l63"))
    file = dict(id=1, content=bytes(range(256)), code=b"\x00\x01\xff\x00", flags=513, all_flags=2**64 - 1, flag=1)
    calendar = dict(
        id=1,
        day="2024-02-29",
        clock="23:59:59.123456",
        seen="2024-05-01 10:20:30.123456",
        moment=moment("2024-05-01 02:20:30.123456"),
    )
    return [
        _insert("texts", TEXTS, id=1, **HOSTILE_TEXTS),
        _insert("labels_insert", LABELS, **labels),
        Change(
            "labels_update", "update", LABELS, labels, dict(id=1, size="(大)", tags=(), many=()), "labels/labels_insert"
        ),
        _insert("all_labels", LABELS, id=2, size="x,y", tags=("red", "green", "it's", "blue"), many=BITS_OF_A_SET),
        _insert(
            "document",
            DOCUMENTS,
            id=1,
            body='{"a": {"b": [1.10, 1E-7, 9007199254740993, true, null]}, "text": "ISODate(\\"x\\") 日本", "": {}}',
        ),
        _insert("document_list", DOCUMENTS, id=2, body='[0.00, {"z": 1, "a": 2}, []]'),
        Change("file_insert", "insert", FILES, None, file, "files/1"),
        Change(
            "file_update",
            "update",
            FILES,
            file,
            dict(id=1, content=b"", code=b"hello world", flags=0, all_flags=1, flag=0),
            "files/1",
        ),
        Change(
            "file_delete",
            "delete",
            FILES,
            dict(id=1, content=b"", code=b"hello world", flags=0, all_flags=1, flag=0),
            None,
            "files/1",
        ),
        _insert("place", PLACES, id=1, shape=(4326, POINT)),
        Change("calendar_insert", "insert", CALENDAR, None, calendar, "calendar/1"),
        Change(
            "calendar_update",
            "update",
            CALENDAR,
            calendar,
            dict(
                id=1,
                day="1969-07-20",
                clock="00:00:00",
                seen="1969-07-20 20:17:40.5",
                moment=moment("2038-01-19 03:14:07"),
            ),
            "calendar/1",
        ),
        _insert(
            "last_day",
            CALENDAR,
            id=2,
            day="9999-12-31",
            clock="12:00:00.5",
            seen="9999-12-31 00:00:00",
            moment=moment("1970-01-01 00:00:01.000001"),
        ),
        _insert("negative_time", LONG_TIMES, id=1, clock="-838:59:59"),
        _insert("long_time", LONG_TIMES, id=2, clock="100:00:00.5"),
        _insert("zero_dates", ZERO_DATES, id=1, day="0000-00-00", seen="0000-00-00 00:00:00"),
        _insert("zero_moment", ZERO_MOMENTS, id=1, moment=ZERO_MOMENT),
        *(
            _insert(f"nulls_of_{table.name}", table, **_nulls(table))
            for table in (TEXTS, LABELS, DOCUMENTS, DECIMALS, FILES, PLACES, CALENDAR)
        ),
        _insert(
            "odd_names",
            ODD_NAMES,
            **{"id": 1, "a b": "1", "名字": "李", "x.y": "3", 'it\'s "so"': "4", "Label": "upper"},
        ),
        Change(
            "alter", "alter", ORDERS, statement="alter table orders add column colour varchar(10) default 'it''s <b>'"
        ),
        Change("index", "index", ORDERS, statement="create unique index by_label on orders (label)"),
        Change("truncate", "truncate", VISITS, statement="/* 清空 */ truncate table visits"),
        Change("heartbeat", "heartbeat"),
    ]


def numbered(changes: list[Change]) -> tuple[Change, ...]:
    """The changes with their order and their times."""
    out = []
    for order, change in enumerate(changes, 1):
        instant = FIRST_INSTANT + STEP * (order - 1)
        out.append(
            replace(
                change,
                order=order,
                instant=instant,
                written=instant + WRITTEN_AFTER,
                transaction=f"transaction-{order}",
            )
        )
    return tuple(out)


CHANGES = numbered([*_lives_of_orders(), *_lives_of_lines(), *_lives_of_visits(), *_numbers(), *_others()])
TABLES = tuple({change.table.name: change.table for change in CHANGES if change.table}.values())


# --- the changelog row
# ----------------------------------------------------------------------------------------------------------------------


def canonical_text(column: Column, value: Any) -> str | None:
    """The contract's text of a value.

    >>> canonical_text(Column("v", "decimal", "decimal(9,8)"), Decimal("0.00000010"))
    '0.00000010'
    >>> canonical_text(Column("v", "timestamp", "timestamp(6)"), moment("2024-05-01 10:00:00.120"))
    '2024-05-01T10:00:00.12Z'
    >>> (
    ...     canonical_text(Column("v", "set", "set('a','b')"), ("a", "b")),
    ...     canonical_text(Column("v", "geometry", "point"), (1, b"")),
    ... )
    ('a,b', 'AQAAAA==')
    """
    match column.kind, value:
        case _, None:
            return None
        case "decimal", _:
            return f"{value:f}"
        case "set", _:
            return ",".join(value)
        case "binary", _:
            return b64encode(value).decode()
        case "geometry", (srid, wkb):
            return b64encode(pack("<I", srid) + wkb).decode()
        case "timestamp", datetime():
            return instant_text(value)
    return str(value)


def instant_text(instant: datetime) -> str:
    """ISO 8601 in UTC, without zeros at the end of the fraction.

    >>> instant_text(moment("2024-05-01 10:00:00"))
    '2024-05-01T10:00:00Z'
    """
    text = instant.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return text.rstrip("0").rstrip(".") + "Z"


def milliseconds_text(epoch_ms: int) -> str:
    """
    >>> milliseconds_text(1714528800250)
    '2024-05-01T02:00:00.25Z'
    """
    return instant_text(
        datetime.fromtimestamp(epoch_ms // 1000, timezone.utc).replace(microsecond=epoch_ms % 1000 * 1000)
    )


def canonical_image(table: Table, image: Mapping[str, Any] | None) -> dict[str, str | None] | None:
    return (
        None if image is None else {column.name: canonical_text(column, image[column.name]) for column in table.columns}
    )


Image = Mapping[str, "str | None"]


def key_of(change: Change, image: Image) -> dict[str, str | None] | None:
    return {name: image[name] for name in change.table.key} if change.table.key else None


def key_text(key: Image | None) -> str | None:
    return None if key is None else json.dumps(key, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def changelog_row(change: Change, before: Image | None, after: Image | None) -> dict[str, Any]:
    """All columns that must not differ from vendor to vendor; the images are given in canonical text."""
    row: dict[str, Any] = {
        "kind": change.kind,
        "op": change.op,
        "tenant": change.table.tenant if change.table else None,
        "db_name": change.table.database if change.table else None,
        "schema_name": None,
        "table_name": change.table.name if change.table else None,
        "key": None,
        "old_key": None,
        "key_text": None,
        "before": before,
        "after": after,
        "before_image": None,
        "after_image": None,
        "changed": None,
        "event_time": milliseconds_text(change.instant),
        "produced_at": milliseconds_text(change.written),
        "statement": change.statement,
    }
    return row | _of_a_row(change, before, after) if change.kind == "row" else row


def _of_a_row(change: Change, before: Image | None, after: Image | None) -> dict[str, Any]:
    key = key_of(change, after or before)
    out = {
        "key": key,
        "key_text": key_text(key),
        "before_image": "full" if before else "none",
        "after_image": "full" if after else "none",
    }
    if change.op == "update":
        old_key = key_of(change, before)
        out["old_key"] = old_key if old_key != key else None
        out["changed"] = sorted(name for name in after if before[name] != after[name])
    return out
