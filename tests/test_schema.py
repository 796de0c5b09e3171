"""The JSON Schema of specs accepts what the runner accepts, and refuses what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from runner.cli import main
from runner.spec.json_schema import spec_schema
from runner.yaml_text import read_yaml

ROOT = Path(__file__).parent.parent
VALIDATOR = Draft202012Validator(spec_schema())


def test_it_is_a_json_schema() -> None:
    Draft202012Validator.check_schema(spec_schema())


@pytest.mark.parametrize("path", sorted((ROOT / "formats").glob("*.yml")), ids=lambda path: path.stem)
def test_built_in_formats_are_valid(path: Path) -> None:
    VALIDATOR.validate(read_yaml(path).value)


@pytest.mark.parametrize(
    "spec",
    [
        {"opp": {}},
        {"op": {"by": "a", "case": {}}},
        {"op": {"cases": {"I": "insret"}}},
        {"op": {"cases": {"I": {"row": "create"}}}},
        {"values": {"binary": "base46"}},
        {"values": {"blob": "base64"}},
        {"types": {"att": "a"}},
        {"meta": {"gtidd": "a"}},
        {"event_time": {"at": "a", "as": "epoch"}},
        {"db_name": {"at": "a", "as": "epoch_s"}},
        {"before": {"over": "a"}},
        {"before": {"at": "a", "image": "ful"}},
        {"message": {"numbers": "x"}},
        {"message": {"encoding": "avr"}},
        {"key": {"named": "a"}},
        {"key": {"names": "a", "text": "jsn"}},
        {"records": {"A": {"txt": "a"}}},
        {"records": {"A": {"class": "strng"}}},
        {"records": {"A": {"parts": {"yeer": "a"}}}},
    ],
    ids=str,
)
def test_mistakes_are_refused(spec: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(spec)


def test_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats", "schema"]) == 0
    assert json.loads(capsys.readouterr().out) == spec_schema()
