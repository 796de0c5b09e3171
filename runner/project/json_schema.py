"""The JSON Schema of project.yml, for editors, made from the words that project.yml is checked with."""

from __future__ import annotations

from typing import Any

from runner.project.inputs import DUMPS
from runner.project.project import KEYS
from runner.project.sources import SOURCE_KEYS, TABLE_KEYS
from runner.project.targets import TARGET_KEYS
from runner.project.topics import KAFKA_KEYS
from runner.spec.json_schema import spec_schema
from runner.storage.known import STORAGES

Schema = dict[str, Any]

TEXT: Schema = {"type": ["string", "number", "boolean"]}
TEXTS: Schema = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}


def project_schema() -> Schema:
    """Returns a JSON Schema (draft 2020-12) of project.yml, after YAML has read it with its own types."""
    target = {
        **dict.fromkeys(TARGET_KEYS, TEXT),
        "storage": {"enum": list(STORAGES)},
        "catalog": {"type": "object"},
        "spark": {"type": "object"},
        **dict.fromkeys(("packages", "jars"), TEXTS),
    }
    properties = {
        **dict.fromkeys(KEYS, TEXT),
        "targets": {"type": "object", "additionalProperties": {"anyOf": [_object(target), {"type": "null"}]}},
        "vars": {"type": "object"},
        "models": {"type": "object"},
        "sources": {"type": "array", "items": _source()},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A project",
        **_object(properties),
        "$defs": _formats(),
    }


def _source() -> Schema:
    table = {**dict.fromkeys(TABLE_KEYS, TEXT), "key": TEXTS, "columns": {"type": "object"}}
    source = {
        **dict.fromkeys(SOURCE_KEYS, TEXT),
        "format": {"anyOf": [TEXT, {"$ref": "#/$defs/format"}]},
        "schema": TEXTS,
        "dump": {"enum": list(DUMPS)},
        "tables": {"type": "array", "items": _object(table)},
        "kafka": _object({**dict.fromkeys(KAFKA_KEYS, TEXT), "topics": TEXTS, "options": {"type": "object"}}),
    }
    return _object(source)


def _formats() -> Schema:
    """Returns the definitions of the spec language, and a spec itself as one of them."""
    schema = spec_schema()
    definitions: Schema = schema.pop("$defs")
    return {**definitions, "format": {key: value for key, value in schema.items() if not key.startswith("$")}}


def _object(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}
