"""The rows that a change gives as one vendor can tell it: those of logical_changes, but for the vendor's exceptions."""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from struct import unpack
from typing import Any

import yaml

from tests.logical_changes import Change, Column, canonical_image, changelog_row, key_text

EXCEPTIONS: dict[str, dict[str, Any]] = yaml.load(
    (Path(__file__).parent / "vendors" / "exceptions.yml").read_text(encoding="utf-8"), yaml.CSafeLoader
)
FORMATS = {"dataworks_single": "dataworks"}
# One source lands the messages of several databases, as one topic may hold them.
SOURCES = {
    **dict.fromkeys(("drs_sql_postgresql", "drs_sql_oracle", "drs_sql_sqlserver"), "drs_sql"),
    "oms_default_extend_oracle": "oms_default_extend",
    "oceanbase_canal_oracle": "oceanbase_canal",
    **dict.fromkeys(("debezium_oracle", "debezium_sqlserver", "debezium_db2"), "debezium"),
    "debezium_mongodb_patches": "debezium_mongodb",
}


def format_of(vendor: str) -> str:
    source = SOURCES.get(vendor, vendor)
    return FORMATS.get(source, source)


VendorException = Mapping[str, Any]
Row = dict[str, Any]
LEFT_OUT = object()


def cut_fraction(digits: int) -> Callable[[Column, str], str]:
    def cut(_: Column, text: str) -> str:
        found = re.fullmatch(r"([^.]*)\.(\d+)(Z?)", text)
        if not found:
            return text
        fraction = found[2][:digits].rstrip("0")
        return found[1] + (f".{fraction}" if fraction else "") + found[3]

    return cut


def compact_json(_: Column, text: str) -> str:
    """Without blanks outside of strings.

    >>> compact_json(None, '{"a": [1.10, "b: c, \\\\" d"]}')
    '{"a":[1.10,"b: c, \\\\" d"]}'
    """
    return re.sub(r'("(?:[^"\\]|\\.)*")|\s+', lambda found: found[1] or "", text)


def extended_json(_: Column, text: str) -> str:
    """As MongoDB writes it, where only 32 bits and doubles are plain numbers.

    >>> extended_json(None, '{"a": [1.10, 5, 9007199254740993]}')
    '{"a":[{"$numberDecimal":"1.10"},5,{"$numberLong":"9007199254740993"}]}'
    """

    def whole(digits: str) -> Any:
        return int(digits) if -(2**31) <= int(digits) < 2**31 else {"$numberLong": digits}

    read = json.loads(text, parse_int=whole, parse_float=lambda digits: {"$numberDecimal": digits})
    return json.dumps(read, ensure_ascii=False, separators=(",", ":"))


def declared_digits(column: Column, text: str) -> str:
    """
    >>> declared_digits(Column("v", "time", "time(3)"), "01:02:03.5")
    '01:02:03.500'
    >>> declared_digits(Column("v", "time", "time"), "01:02:03")
    '01:02:03'
    """
    whole, _, fraction = text.partition(".")
    digits = re.search("[0-9]+", column.type)
    return f"{whole}.{fraction.ljust(int(digits[0]), '0')}" if digits else whole


def without_srid(_: Column, text: str) -> str:
    return b64encode(b64decode(text)[4:]).decode()


def list_of_labels(_: Column, text: str) -> str:
    return json.dumps(text.split(",") if text else [], ensure_ascii=False, separators=(",", ":"))


def well_known_text(_: Column, text: str) -> str:
    """Of a point.

    >>> well_known_text(None, "5hAAAAEBAAAAAAAAAAAA8D8AAAAAAAAAQA==")
    'POINT (1 2)'
    """
    x, y = unpack("<dd", b64decode(text)[9:])
    return f"POINT ({x:g} {y:g})"


def mask(column: Column, text: str) -> str:
    return str(sum(1 << column.labels.index(label) for label in text.split(",") if text))


def bytes_of_bits(column: Column, text: str) -> str:
    """
    >>> bytes_of_bits(Column("v", "bit", "bit(10)"), "513")
    'AgE='
    """
    return b64encode(int(text).to_bytes((int(re.search("[0-9]+", column.type)[0]) + 7) // 8)).decode()


VALUE_RULES: dict[str, Callable[[Column, str], Any]] = {
    "left_out": lambda column, text: LEFT_OUT,
    "seconds": cut_fraction(0),
    "milliseconds": cut_fraction(3),
    "sixteen_digits": lambda column, text: repr(float(f"{float(text):.16g}")),
    "true_false": lambda column, text: "true" if text == "1" else "false",
    "one_bit_as_boolean": lambda column, text: ("false", "true")[int(text)] if column.type == "bit(1)" else text,
    "binary_digits": lambda column, text: f"{int(text):0{re.search('[0-9]+', column.type)[0]}b}",
    "null_if_empty": lambda column, text: text or None,
    "midnight": lambda column, text: f"{text} 00:00:00",
    "compact_json": compact_json,
    "extended_json": extended_json,
    "declared_digits": declared_digits,
    "without_srid": without_srid,
    "with_zone": lambda column, text: f"{text}[Asia/Shanghai]",
    "list_of_labels": list_of_labels,
    "well_known_text": well_known_text,
    "ordinal": lambda column, text: str(column.labels.index(text) + 1),
    "mask": mask,
    "bytes_of_bits": bytes_of_bits,
}
RULES_IN_WORDS = {
    "left_out": "the column is not in the message",
    "seconds": "cut to whole seconds",
    "milliseconds": "cut to milliseconds",
    "sixteen_digits": "rounded to 16 digits",
    "true_false": "`true`, `false`",
    "binary_digits": "the bits as text, `0101`",
    "null_if_empty": "`''` is null",
    "midnight": "with the time of day `00:00:00`",
    "compact_json": "JSON without blanks",
    "extended_json": 'extended JSON, such as `{"$numberLong":"9007199254740993"}`',
    "declared_digits": "with as many digits of a second's fraction as its type declares",
    "without_srid": "WKB without the SRID in front",
    "with_zone": "the instant, with the name of its zone behind it",
    "list_of_labels": 'a JSON list, `["a","b"]`',
    "well_known_text": "well known text, without the SRID",
    "ordinal": "the number of the label",
    "mask": "a number with a bit for each label",
    "bytes_of_bits": "base64 of the bytes that hold them",
    "key_of_a_document": "key `_id`, which is in whole images too; no `old_key`",
    "no_before": "`before` none; `changed` null unless it is a patch",
    "patch": "`after` and `changed` are what was set, `after_image` `patch`",
    "compressed": "images have the key and what changed, and are `partial`; all columns if there is no key",
    "key_as_identity": "`before` has the key only, `key` of an update, `partial` of a delete; `after` is `partial`, "
    "`changed` null",
    "the_key_or_all": "`before` has the key only, or all columns if there is none, and is `key`",
    "only_the_key": "`before` has `_id` only, `before_image` `key`",
    "key_before": "`before` has the key only, `before_image` `key`",
    "one_bit_as_boolean": "`true`, `false` if it is one bit",
    "one_time": "`event_time` is the time of the message, as `produced_at` is",
    "split_key": "if the key changes, a `delete` of the old key and an `insert` of the new one",
    "tombstone": "behind it comes a control `tombstone`, if the table has a key",
}


def key_of_a_document(change: Change, row: Row) -> Row:
    key = {"_id": change.document_id}
    images = {name: {**key, **row[name]} for name in ("before", "after") if row[name] is not None}
    return {**row, **images, "key": key, "key_text": key_text(key), "old_key": None}


def no_before(change: Change, row: Row) -> Row:
    return {**row, "before": None, "before_image": "none", "changed": None}


def patch(change: Change, row: Row) -> Row:
    """An update that changes nothing, or the table's key, replaces the document."""
    names = sorted(name for name in change.after if change.after[name] != change.before[name])
    if not names or set(names) & set(change.table.key):
        return row
    return {
        **row,
        "after": {name: row["after"][name] for name in names if name in row["after"]},
        "after_image": "patch",
        "changed": names,
    }


def only_the_key(change: Change, row: Row) -> Row:
    return {**row, "before": row["key"], "before_image": "key"}


def compressed(change: Change, row: Row) -> Row:
    names = {column.name for column in change.table.columns}
    if change.table.key:
        changed = row["changed"] or []
        names = {*change.table.key, *changed}
    sides = [side for side in ("before", "after") if row[side] is not None]
    images = {side: {name: value for name, value in row[side].items() if name in names} for side in sides}
    return {**row, **images, **{f"{side}_image": "partial" for side in sides}}


def the_key_or_all(change: Change, row: Row) -> Row:
    return {**row, "before": row["key"] or row["before"], "before_image": "key"}


def key_as_identity(change: Change, row: Row) -> Row:
    if change.op == "delete":
        return {**row, "before": row["key"], "before_image": "partial"}
    images = {"before_image": "key", "after_image": "partial"}
    return {**row, **images, "before": row["old_key"] or row["key"], "changed": None}


def key_before(change: Change, row: Row) -> Row:
    return {**row, "before": row["key"], "before_image": "key"}


def one_time(change: Change, row: Row) -> Row:
    return {**row, "event_time": row["produced_at"]}


ROW_RULES = {
    rule.__name__: rule
    for rule in (
        key_of_a_document,
        no_before,
        patch,
        only_the_key,
        compressed,
        the_key_or_all,
        key_as_identity,
        key_before,
        one_time,
    )
}
# What makes several rows of one.
SEVERAL = ("split_key", "tombstone")


def concerns(exception: VendorException, change: Change) -> bool:
    facts = {"kind": change.kind, "op": change.op, "table": change.table.name if change.table else None}
    return all(
        facts[name] in (wanted if isinstance(wanted, list) else [wanted])
        for name, wanted in exception.get("of", {}).items()
    )


def expected_rows(change: Change, exceptions: list[VendorException]) -> list[Row]:
    """The rows of a change as one vendor can give them, in order; none if it cannot."""
    return list(_expected_rows(change, exceptions))


def _expected_rows(change: Change, exceptions: list[VendorException]) -> Iterator[Row]:
    rules = {exception["row"] for exception in exceptions if "row" in exception and concerns(exception, change)}
    if "split_key" in rules and has_new_key(change):
        yield from _expected_rows(replace(change, op="delete", after=None), exceptions)
        yield from _expected_rows(replace(change, op="insert", before=None), exceptions)
    elif row := expected_row(change, exceptions):
        yield row
        if "tombstone" in rules and row["key"]:
            yield {**dict.fromkeys(row), "kind": "control", "op": "tombstone"}


def has_new_key(change: Change) -> bool:
    return change.op == "update" and any(change.before[name] != change.after[name] for name in change.table.key)


def expected_row(change: Change, exceptions: list[VendorException]) -> Row | None:
    """The row of a change that is told in one; None if it cannot be told."""
    mine = [exception for exception in exceptions if concerns(exception, change)]
    if any(exception.get("arrives") == "never" for exception in mine):
        return None
    before, after = (_excepted_image(change, image, mine) for image in (change.before, change.after))
    row = changelog_row(change, before, after)
    for exception in mine:
        row = _excepted_row(exception, change, row)
    return row


def _excepted_image(
    change: Change, image: Mapping[str, Any] | None, exceptions: list[VendorException]
) -> dict[str, str | None] | None:
    if image is None:
        return None
    out = canonical_image(change.table, image)
    for exception in exceptions:
        for column in change.table.columns:
            if exception.get("values") == column.kind and column.name in out:
                value = _excepted_value(exception["rule"], column, out.pop(column.name))
                out |= {} if value is LEFT_OUT else {column.name: value}
    return out


def _excepted_value(rule: str, column: Column, text: str | None) -> Any:
    return text if text is None and rule != "left_out" else VALUE_RULES[rule](column, text)


def _excepted_row(exception: VendorException, change: Change, row: Row) -> Row:
    if "row" in exception:
        rule = ROW_RULES.get(exception["row"])
        return rule(change, row) if rule and (change.kind == "row" or rule is one_time) else row
    name = exception.get("column")
    if name is None:
        return row
    if "rule" not in exception:
        return {**row, name: exception["becomes"]}
    return {**row, name: row[name] and VALUE_RULES[exception["rule"]](None, row[name])}
