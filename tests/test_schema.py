"""The JSON Schema of specs takes what the runner takes, and refuses what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner.cli import main
from runner.spec.json_schema import spec_schema
from runner.yaml_text import read_yaml

ROOT = Path(__file__).parent.parent
KINDS = {"object": dict, "array": list, "string": str, "number": (int, float), "boolean": bool}


def fits(value: Any, schema: dict[str, Any], whole: dict[str, Any]) -> bool:
    """Whether a value is as a schema says: the part of JSON Schema that this one uses."""
    if "$ref" in schema:
        return fits(value, whole["$defs"][schema["$ref"].split("/")[-1]], whole)
    if "anyOf" in schema and not any(fits(value, one, whole) for one in schema["anyOf"]):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    kinds = schema.get("type", [])
    if kinds and not isinstance(value, tuple(KINDS[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds))):
        return False
    if isinstance(value, list):
        return all(fits(one, schema.get("items", {}), whole) for one in value)
    if isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        if not set(schema.get("required", ())) <= set(value) or (others is False and set(value) - set(properties)):
            return False
        return all(
            fits(one, properties.get(key, others if isinstance(others, dict) else {}), whole)
            for key, one in value.items()
        )
    return True


@pytest.mark.parametrize("path", sorted((ROOT / "formats").glob("*.yml")), ids=lambda path: path.stem)
def test_built_in_formats_are_valid(path: Path) -> None:
    assert fits(read_yaml(path).value, spec_schema(), spec_schema())


@pytest.mark.parametrize(
    "spec",
    [
        {"opp": {}}, {"op": {"by": "a", "case": {}}}, {"op": {"cases": {"I": "insret"}}}, {"op": {"cases": {"I": {"row": "create"}}}},
        {"values": {"binary": "base46"}}, {"values": {"blob": "base64"}}, {"types": {"att": "a"}}, {"meta": {"gtidd": "a"}}, {"event_time": {"at": "a", "as": "epoch"}},
        {"db_name": {"at": "a", "as": "epoch_s"}}, {"before": {"over": "a"}}, {"before": {"at": "a", "image": "ful"}}, {"message": {"numbers": "x"}}, {"key": {"name": "a"}}, {"message": {"encoding": "avr"}},
        {"records": {"A": {"txt": "a"}}}, {"records": {"A": {"class": "strng"}}}, {"records": {"A": {"parts": {"yeer": "a"}}}}, {"key": {"names": "a", "text": "jsn"}},
    ],
    ids=str,
)  # fmt: skip
def test_mistakes_are_refused(spec: dict[str, Any]) -> None:
    assert not fits(spec, spec_schema(), spec_schema())


def test_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats", "schema"]) == 0
    assert json.loads(capsys.readouterr().out) == spec_schema()
