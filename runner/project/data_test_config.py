"""The settings of a data test beside its arguments: when it fails, which rows it reads, where failures are stored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from runner.errors import Problems, Where, nearest_or_all
from runner.project.expressions import expression
from runner.yaml_text import Yaml, whole_number

SEVERITIES = ("error", "warn")
ANY_ROW = "!= 0"


@dataclass(frozen=True)
class TestConfig:
    """The config of a data test. The test reads the rows of its model for which `where` is true; of the rows that it
    finds, `limit` count. `fail_calc` makes a number of them, with which `warn_if` and `error_if` compare. With
    `store_failures`, the rows are written to a table with the name of the test.
    """

    severity: str = "error"
    where: str = ""
    limit: int | None = None
    fail_calc: str = "count(*)"
    warn_if: str = ANY_ROW
    error_if: str = ANY_ROW
    store_failures: bool = False
    enabled: bool = True
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] | None = None

    @property
    def counts_rows(self) -> bool:
        """True if any row that is found is a failure."""
        return (self.fail_calc, self.warn_if, self.error_if) == ("count(*)", ANY_ROW, ANY_ROW)


# The operators with which a condition on the number of failures may begin.
CONDITION = re.compile(r"\s*(?:[<>=]|!=|(?:between|in|not|is)\b)", re.IGNORECASE)

TEST_SETTINGS = tuple(field.name for field in fields(TestConfig))


def test_settings(settings: Iterable[tuple[str, Yaml]]) -> dict[str, Any]:
    """Returns the settings of a test that YAML gives; raises `test-severity`, `setting-unknown` and `setting-value`."""
    problems, read = Problems(), {}
    for name, yaml in settings:
        with problems.gathered():
            read[name] = _setting(name, yaml)
    problems.raise_if_any()
    return read


def _setting(name: str, yaml: Yaml) -> Any:
    match name:
        case "severity":
            severity = yaml.text().lower()
            if severity not in SEVERITIES:
                hint = nearest_or_all(severity, SEVERITIES)
                raise yaml.error("test-severity", f'unknown severity "{yaml.text()}"', hint)
            return severity
        case "where" if "{" in yaml.text() or not yaml.text():
            return yaml.text()
        case "where" | "fail_calc":
            return expression(yaml, name)
        case "warn_if" | "error_if":
            if not CONDITION.match(yaml.text()):
                message = f'"{name}" compares the number of failures, and "{yaml.text()}" does not'
                raise yaml.error("setting-value", message, f'{name}: ">10"')
            return expression(yaml, name, "failures")
        case "limit":
            number = whole_number(yaml.text())
            if number is None:
                raise yaml.error("setting-value", f'"limit" is a whole number, not "{yaml.text()}"', "limit: 100")
            return number
        case "store_failures" | "enabled":
            return read_boolean(yaml, name)
        case "tags":
            return tuple(tag.text() for tag in yaml.as_list())
        case "meta":
            return yaml.mapping().value
    hint = nearest_or_all(name, TEST_SETTINGS)
    raise yaml.error("setting-unknown", f'a test has no setting "{name}"', hint)


def read_boolean(yaml: Yaml, name: str) -> bool:
    """Returns a value of YAML that is true or false; raises `setting-value`."""
    text = yaml.text().lower()
    if text not in ("true", "false"):
        raise yaml.error("setting-value", f'"{name}" is true or false, not "{yaml.text()}"')
    return text == "true"


def settings_of(settings: Mapping[str, Any], where: Where) -> list[tuple[str, Yaml]]:
    """Returns the settings that a template gives, as they would stand in YAML."""
    return [(name, Yaml(_as_yaml(value), {(): where})) for name, value in settings.items()]


def _as_yaml(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _as_yaml(one) for key, one in value.items()}
        case list() | tuple():
            return [_as_yaml(one) for one in value]
        case bool():
            return "true" if value else "false"
        case None:
            return None
    return str(value)
