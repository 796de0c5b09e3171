"""A data test as it is written in properties -> what it calls, and its config."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from runner.errors import Problems, nearest_or_all
from runner.project.data_test_config import TEST_SETTINGS, test_settings
from runner.project.properties import optional_text, ref_name
from runner.yaml_text import Yaml

# What is written beside the arguments of a test, and is none of them.
BESIDE = ("name", "description", "config", "arguments", "test_name", *TEST_SETTINGS)
ONE_NAME = "for instance: accepted_values: {values: [a, b]}"


@dataclass(frozen=True)
class TestCall:
    """The test `kind` with its arguments. Without a `name`, its node gets one of its parts."""

    kind: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    description: str = ""


def test_call(entry: Yaml, models: Collection[str]) -> TestCall:
    """A test such as `unique`, `accepted_values: {values: [a, b]}`, or the same with `arguments`, `config` and `name`
    beside each other. Raises `test-arguments` and mistakes in what they hold.
    """
    if isinstance(entry.value, str):
        return TestCall(entry.value)
    if entry.get("test_name"):
        return _call(entry["test_name"].text(), entry, models)
    if not isinstance(entry.value, dict) or len(entry.value) != 1:
        raise entry.error("test-arguments", "a data test is one name with its arguments", ONE_NAME)
    ((kind, written),) = entry.items()
    return TestCall(kind) if written.value is None else _call(kind, written.mapping(), models)


def _call(kind: str, written: Yaml, models: Collection[str]) -> TestCall:
    problems, arguments, settings = Problems(), dict[str, Any](), dict[str, Any]()
    for name, yaml in _arguments(written):
        with problems.gathered():
            arguments[name] = _argument(name, yaml, models)
    with problems.gathered():
        settings = test_settings(_settings(written))
    problems.raise_if_any()
    return TestCall(
        kind,
        arguments,
        settings,
        optional_text(written.get("name")),
        optional_text(written.get("description")),
    )


def _arguments(written: Yaml) -> Iterator[tuple[str, Yaml]]:
    """The arguments, each under the name that macros have for it."""
    inline = [(name, yaml) for name, yaml in written.items() if name not in BESIDE]
    under = written["arguments"].mapping().items() if written.get("arguments") else []
    if inline and under:
        name, yaml = inline[0]
        raise yaml.error("test-arguments", f'"{name}" stands beside "arguments"', 'put all arguments under "arguments"')
    for name, yaml in inline or under:
        yield ("column" if name == "column_name" else name), yaml


def _settings(written: Yaml) -> Iterator[tuple[str, Yaml]]:
    under = dict(written["config"].mapping().items()) if written.get("config") else {}
    for name in TEST_SETTINGS:
        if name in under and written.get(name):
            raise written[name].error("duplicate-key", f'"{name}" stands beside "config" and in it', "keep one")
        if yaml := written.get(name):
            yield name, yaml
    yield from under.items()


def _argument(name: str, yaml: Yaml, models: Collection[str]) -> Any:
    match name:
        case "column" | "field" | "expression":
            return yaml.text()
        case "share":
            return _share(yaml)
        case "values":
            return [value.text() for value in yaml.list().elements()]
        case "to":
            return _model(yaml, models)
    return yaml.value


def _model(yaml: Yaml, models: Collection[str]) -> str:
    model = ref_name(yaml)
    if model not in models:
        raise yaml.error("ref-unknown", f'there is no model "{model}"', nearest_or_all(model, models))
    return model


def _share(yaml: Yaml) -> float:
    """A part of all keys: more than 0, and 1 at most."""
    with contextlib.suppress(ValueError):
        if 0 < (share := float(yaml.text())) <= 1:
            return share
    raise yaml.error("test-arguments", f'"share" must be a number from 0 to 1, not "{yaml.value}"', "such as 0.01")
