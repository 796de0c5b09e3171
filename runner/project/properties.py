"""Properties of models and tests, read from YAML files beside the models."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

from runner.errors import Problems, nearest_or_all
from runner.yaml_text import Yaml

SEVERITIES = ("error", "warn")
TEXT_ARGUMENTS = ("column", "field", "expression")
PROPERTY_KEYS = ("models", "mirrors", "unit_tests")
MODEL_KEYS = ("name", "description", "config", "columns", "data_tests")
COLUMN_KEYS = ("name", "description", "data_tests")
UNIT_TEST_KEYS = ("name", "description", "model", "given", "expect")


def entries(yaml: Yaml | None, key: str, known: tuple[str, ...], problems: Problems | None = None) -> list[Yaml]:
    """The entries of the list under a key, each with a name. Mistakes are added to `problems`, or raised without it."""
    if yaml is None or not yaml.get(key):
        return []
    out = []
    for entry in yaml[key].list().elements():
        gather = problems or Problems()
        with gather.gathered():
            entry.only(known)
            if not entry.get("name"):
                raise entry.error("name-missing", f'every entry of "{key}" needs a "name"')
            out.append(entry)
        if problems is None:
            gather.raise_if_any()
    return out


def optional_text(yaml: Yaml | None) -> str:
    return yaml.text() if yaml else ""


def needed(yaml: Yaml, key: str) -> Yaml:
    if not yaml.mapping().get(key):
        raise yaml.error("unit-test-missing", f'{yaml.name()} needs "{key}"')
    return yaml[key]


def data_tests(yaml: Yaml) -> tuple[Yaml, ...]:
    """The data tests of a model or of a column."""
    return tuple(yaml["data_tests"].as_list()) if yaml.get("data_tests") else ()


def rows(yaml: Yaml) -> list[Any]:
    """The rows of a test: mappings of columns to values."""
    return [row.mapping().value for row in needed(yaml, "rows").list().elements()]


def test_call(entry: Yaml, models: Iterable[str]) -> tuple[str, dict[str, Any], str]:
    """Kind, arguments and severity of a test such as `unique` or `accepted_values: {values: [a, b]}`."""
    if isinstance(entry.value, str):
        return entry.value, {}, "error"
    if not isinstance(entry.value, dict) or len(entry.value) != 1:
        raise entry.error(
            "test-arguments",
            "a data test is one name with its arguments",
            "for instance: accepted_values: {values: [a, b]}",
        )
    ((kind, arguments),) = entry.items()
    given = dict(arguments.mapping().value) if arguments.value is not None else {}
    severity = given.pop("severity", "error")
    if severity not in SEVERITIES:
        raise arguments["severity"].error(
            "test-severity", f'unknown severity "{severity}"', nearest_or_all(severity, SEVERITIES)
        )
    given |= {key: arguments[key].text() for key in TEXT_ARGUMENTS if key in given}
    if "share" in given:
        given["share"] = _share(arguments["share"])
    if "values" in given:
        given["values"] = [value.text() for value in arguments["values"].list().elements()]
    if "to" in given:
        given["to"] = ref_name(arguments["to"])
        if given["to"] not in models:
            raise arguments["to"].error(
                "ref-unknown", f'there is no model "{given["to"]}"', nearest_or_all(given["to"], models)
            )
    return kind, given, severity


def _share(yaml: Yaml) -> float:
    """A part of all keys: more than 0, and 1 at most."""
    with contextlib.suppress(ValueError):
        if 0 < (share := float(yaml.text())) <= 1:
            return share
    raise yaml.error("test-arguments", f'"share" must be a number from 0 to 1, not "{yaml.value}"', "such as 0.01")


def ref_name(yaml: Yaml) -> str:
    """
    >>> ref_name(Yaml("ref('orders')", {}))
    'orders'
    """
    text = yaml.text().strip()
    return text.removeprefix("ref(").removesuffix(")").strip("'\" ")
