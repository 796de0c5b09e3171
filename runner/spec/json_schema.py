"""The spec language as a JSON Schema, for editors: made of the same words that specs are checked with."""

from __future__ import annotations

from typing import Any

from runner.spec.messages import MESSAGE_KEYS, RECORD_KEYS
from runner.spec.op import LINE_KEYS
from runner.spec.read import KEY_WORDS, KEYS
from runner.spec.values import FIELD_KEYS, IMAGE_KEYS
from runner.spec.words import (
    BARE_OPS,
    BY_STATEMENT,
    CLASSES,
    CONTROL_OPS,
    DDL_OPS,
    ENCODINGS,
    IMAGE_KINDS,
    IMAGE_TEXTS,
    KEY_TEXTS,
    META,
    NUMBERS,
    ORDER_READERS,
    PARTS,
    ROW_OPS,
    TEXT_COLUMNS,
    TIME_COLUMNS,
    TIME_READERS,
    VALUE_READERS,
)  # fmt: skip

TEXT: dict[str, Any] = {"type": ["string", "number", "boolean"]}
TEXTS: dict[str, Any] = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}
NOTHING: dict[str, Any] = {"enum": ["none", None]}


def spec_schema() -> dict[str, Any]:
    """A JSON Schema (draft 2020-12) of `formats/*.yml`."""
    columns = {**{name: _ref("value") for name in TEXT_COLUMNS}, **{name: _ref("time") for name in TIME_COLUMNS}}
    properties: dict[str, Any] = {
        "about": TEXT,
        "docs": TEXT,
        "extends": TEXTS,
        "message": _object(_message()),
        "each": _or_nothing(TEXTS),
        "op": _ref("op"),
        "before": _ref("image"),
        "after": _ref("image"),
        "key": _or_nothing(
            _one_or_list(_object({**dict.fromkeys(KEY_WORDS, TEXTS), "text": {"enum": [*KEY_TEXTS, *IMAGE_TEXTS]}}))
        ),
        "types": _or_nothing(_object({"at": TEXTS, "name": TEXT, "value": TEXTS, "table": _ref("tables")})),
        "values": _or_nothing(
            _object({name: _or_nothing(_one_or_list({"enum": list(VALUE_READERS)})) for name in CLASSES})
        ),
        "records": _or_nothing({"type": "object", "additionalProperties": _or_nothing(_record())}),
        "drop": _or_nothing(
            _one_or_list({"anyOf": [TEXT, _object({"name": TEXT, "if": _ref("conditions")}, ["name"])]})
        ),
        "not_sent": _or_nothing(TEXTS),
        "seq": _or_nothing({"type": "array", "items": _value(ORDER_READERS)}),
        "meta": _or_nothing(_object({name: _ref("value") for name in META})),
        "zone": _or_nothing(TEXT),
    }
    assert set(properties) == set(KEYS)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A format of change messages",
        **_object({**properties, **columns}),
        "$defs": {
            "value": _value(()),
            "time": _value(TIME_READERS),
            "conditions": _object(
                {"is": {"type": "object"}, "is_not": {"type": "object"}, "has": TEXTS, "lacks": TEXTS}
            ),
            "image": _image(),
            "line": _line(columns),
            "op": _op(),
            "tables": {"anyOf": [TEXT, _object({"by": _ref("value"), "cases": {"type": "object"}, "else": TEXT})]},
        },
    }


def _message() -> dict[str, Any]:
    message = {
        "encoding": {"enum": list(ENCODINGS)},
        "numbers": {"enum": list(NUMBERS)},
        "schema": _or_nothing(TEXTS),
        "skip_bytes": _or_nothing(TEXT),
    }
    assert set(message) == set(MESSAGE_KEYS)
    return message


def _record() -> dict[str, Any]:
    classes = {"enum": list(CLASSES)}
    record = {
        **dict.fromkeys(("text", "bytes", "charset", "srid", "labels", "length"), TEXT),
        "class": {"anyOf": [classes, {"type": "object", "additionalProperties": classes}]},
        "charsets": {"type": "object", "additionalProperties": TEXT},
        "parts": _object(dict.fromkeys(PARTS, TEXT)),
        "is_null": TEXTS,
        "not_sent": TEXTS,
    }
    assert set(record) == set(RECORD_KEYS)
    return _object(record)


def _value(readers: tuple[str, ...]) -> dict[str, Any]:
    field = {
        "at": TEXTS,
        "unknown": TEXTS,
        "pattern": TEXT,
        "dot": TEXT,
        "count": TEXT,
        **({"as": {"enum": list(readers)}} if readers else {}),
    }
    assert set(field) | {"as"} == set(FIELD_KEYS)
    switch = {"by": TEXTS, "cases": {"type": "object"}, "missing": {}, "else": {}}
    return _or_nothing(_one_or_list({"anyOf": [TEXT, _object(field, ["at"]), _object(switch, ["by"])]}))


def _image() -> dict[str, Any]:
    laid = {
        "at": TEXTS,
        "over": TEXT,
        "text": {"enum": list(IMAGE_TEXTS)},
        "image": {"enum": list(IMAGE_KINDS)},
        "names": TEXT,
        "value": TEXT,
        "type": TEXT,
    }
    assert set(laid) == set(IMAGE_KEYS)
    return _or_nothing({"anyOf": [TEXTS, _object(laid, ["at"])]})


def _line(columns: dict[str, Any]) -> dict[str, Any]:
    ddl = {"enum": [*DDL_OPS, BY_STATEMENT]}
    kinds = {
        "row": {"enum": list(ROW_OPS)},
        "ddl": {"anyOf": [ddl, _object({"by": TEXTS, "cases": {"additionalProperties": ddl}, "else": ddl}, ["by"])]},
    }
    kinds |= {"control": {"enum": list(CONTROL_OPS)}, "dead_letter": TEXT}
    keys = {
        "if": _ref("conditions"),
        "before": _ref("image"),
        "after": _ref("image"),
        "half": {"enum": ["before", "after"]},
        "phase": {"enum": ["snapshot", "stream"]},
    }
    assert set(keys) == set(LINE_KEYS)
    return {"anyOf": [{"enum": list(BARE_OPS)}, _object({**kinds, **keys, **columns})]}


def _op() -> dict[str, Any]:
    lines = _or_nothing(_one_or_list(_ref("line")))
    return _object(
        {
            "by": _ref("value"),
            "first": lines,
            "cases": {"additionalProperties": lines},
            "missing": lines,
            "else": lines,
            "empty": _ref("line"),
        }
    )


def _object(properties: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        **({"required": required} if required else {}),
    }


def _one_or_list(kind: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [kind, {"type": "array", "items": kind}]}


def _or_nothing(kind: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [kind, NOTHING]}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}
