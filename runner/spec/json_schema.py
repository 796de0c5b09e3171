"""The spec language as a JSON Schema, for editors, made from the same words that specs are checked with."""

from __future__ import annotations

from typing import Any

from runner.spec.messages import FRAMES_KEYS, MESSAGE_KEYS, RECORD_KEYS
from runner.spec.op import LINE_KEYS
from runner.spec.read import KEY_WORDS, KEYS, TYPES_WORDS
from runner.spec.values import FIELD_KEYS, IMAGE_KEYS
from runner.spec.vocabulary import (
    BARE_OPS,
    BY_STATEMENT,
    CLASSES,
    CONTROL_OPS,
    DDL_OPS,
    ENCODINGS,
    FRAMINGS,
    IMAGE_KINDS,
    IMAGE_TEXTS,
    KEY_TEXTS,
    LENGTHS,
    LOADS,
    META,
    NUMBERS,
    ORDER_READERS,
    PARTS,
    ROW_OPS,
    TEXT_COLUMNS,
    TIME_COLUMNS,
    TIME_READERS,
    VALUE_READERS,
)

Schema = dict[str, Any]

TEXT: Schema = {"type": ["string", "number", "boolean"]}
TEXTS: Schema = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}
NOTHING: Schema = {"enum": ["none", None]}


def spec_schema() -> Schema:
    """Returns a JSON Schema (draft 2020-12) of `formats/*.yml`, after YAML has read them with its own types."""
    columns = {**{name: _ref("value") for name in TEXT_COLUMNS}, **{name: _ref("time") for name in TIME_COLUMNS}}
    properties = _properties()
    assert set(properties) == set(KEYS)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A format of change messages",
        **_object({**properties, **columns}),
        "$defs": {
            "value": _value(()),
            "time": _value(TIME_READERS),
            "conditions": _object(
                {
                    **{test: {"type": "object"} for test in ("is", "is_not")},
                    **dict.fromkeys(("has", "lacks", "holds"), TEXTS),
                }
            ),
            "image": _image(),
            "line": _line(columns),
            "op": _op(),
            "tables": {"anyOf": [TEXT, _object({"by": _ref("value"), "cases": {"type": "object"}, "else": TEXT})]},
        },
    }


def _properties() -> Schema:
    """Returns the schema of each key of a spec, without the columns."""
    key = {**dict.fromkeys(KEY_WORDS, TEXTS), "text": {"enum": [*KEY_TEXTS, *IMAGE_TEXTS]}}
    readers = _one_or_list({"enum": list(VALUE_READERS)})
    not_sent = [_object({"placeholder": TEXT}), _object({"types": TEXTS, "texts": TEXTS})]
    dropped = {"anyOf": [TEXT, _object({"name": TEXT, "if": _ref("conditions")}, ["name"])]}
    return {
        "about": TEXT,
        "docs": TEXT,
        "extends": TEXTS,
        "message": _object(_message()),
        "each": _or_nothing(TEXTS),
        "op": _ref("op"),
        "before": _ref("image"),
        "after": _ref("image"),
        "key": _or_nothing(_one_or_list(_object(key))),
        "types": _or_nothing(_object(_types())),
        "values": _or_nothing(_object({name: _or_nothing(readers) for name in CLASSES})),
        "records": _or_nothing({"type": "object", "additionalProperties": _or_nothing(_record())}),
        "drop": _or_nothing(_one_or_list(dropped)),
        "not_sent": _or_nothing(_one_or_list({"anyOf": [TEXT, *not_sent]})),
        "seq": _or_nothing({"type": "array", "items": _value(ORDER_READERS)}),
        "loads": {"enum": list(LOADS)},
        "meta": _or_nothing(_object({name: _ref("value") for name in META})),
        "zone": _or_nothing(TEXT),
        "for": _ref("conditions"),
    }


def _types() -> Schema:
    types = {
        **dict.fromkeys(("at", "value", "params", "schema"), TEXTS),
        **dict.fromkeys(("name", "names", "default", "items"), TEXT),
    }
    types["table"] = _ref("tables")
    types["flags"] = _or_nothing(_object({"at": TEXT, "words": {"type": "object"}}, ["at", "words"]))
    assert set(types) == set(TYPES_WORDS)
    return types


def _message() -> Schema:
    message = {
        "encoding": {"enum": list(ENCODINGS)},
        "numbers": {"enum": list(NUMBERS)},
        "schema": _or_nothing(TEXTS),
        "framing": _or_nothing({"enum": list(FRAMINGS)}),
        "skip_bytes": _or_nothing(TEXT),
        "optional": _or_nothing(TEXTS),
        "root": _or_nothing(TEXTS),
        "batch": _or_nothing(TEXT),
        "frames": _or_nothing(_object(_frames(), ["length_bytes"])),
    }
    assert set(message) == set(MESSAGE_KEYS)
    return message


def _frames() -> Schema:
    frames = {"length_bytes": {"enum": [*LENGTHS, *map(int, LENGTHS)]}, "key_starts": TEXT, "value_starts": TEXT}
    assert set(frames) == set(FRAMES_KEYS)
    return frames


def _record() -> Schema:
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


def _value(readers: tuple[str, ...]) -> Schema:
    field = {
        "at": TEXTS,
        "unknown": TEXTS,
        "pattern": TEXT,
        "dot": TEXT,
        "count": TEXT,
        "shift": TEXT,
        **({"as": {"enum": list(readers)}} if readers else {}),
    }
    assert set(field) | {"as"} == set(FIELD_KEYS)
    switch = {"by": TEXTS, "cases": {"type": "object"}, "missing": {}, "else": {}}
    return _or_nothing(_one_or_list({"anyOf": [TEXT, _object(field, ["at"]), _object(switch, ["by"])]}))


def _image() -> Schema:
    image = {
        "at": TEXTS,
        "over": TEXT,
        "text": {"enum": list(IMAGE_TEXTS)},
        "image": {"enum": list(IMAGE_KINDS)},
        **dict.fromkeys(("names", "value", "type", "name", "prefix", "removed"), TEXT),
    }
    assert set(image) == set(IMAGE_KEYS)
    return _or_nothing({"anyOf": [TEXTS, _object(image, ["at"])]})


def _line(columns: Schema) -> Schema:
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
        "tells": TEXTS,
    }
    assert set(keys) == set(LINE_KEYS)
    return {"anyOf": [{"enum": list(BARE_OPS)}, _object({**kinds, **keys, **columns})]}


def _op() -> Schema:
    lines = _or_nothing(_one_or_list(_ref("line")))
    return _object(
        {
            "by": _ref("value"),
            "first": lines,
            "cases": {"additionalProperties": lines},
            "missing": lines,
            "else": lines,
            "empty": lines,
        }
    )


def _object(properties: Schema, required: list[str] | None = None) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        **({"required": required} if required else {}),
    }


def _one_or_list(kind: Schema) -> Schema:
    return {"anyOf": [kind, {"type": "array", "items": kind}]}


def _or_nothing(kind: Schema) -> Schema:
    return {"anyOf": [kind, NOTHING]}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}
