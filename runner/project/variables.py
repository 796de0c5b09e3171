"""Variables of the project and of the environment, and the `{{ }}` in YAML files that use them."""

from __future__ import annotations

import os
from collections.abc import Mapping

from runner.errors import RunnerError, did_you_mean
from runner.project.nodes import Target
from runner.render import fill
from runner.sandbox import Sandbox
from runner.yaml_text import Yaml


def env_var(name: str, default: str | None = None) -> str:
    """An environment variable, for secrets and settings of a machine; raises if it is not set and has no default."""
    value = os.environ.get(name, default)
    if value is None:
        raise RunnerError("env-var-missing", f'the environment variable "{name}" is not set')
    return value


def variable(variables: Mapping[str, str], name: str, default: str | None = None) -> str:
    value = variables.get(name, default)
    if value is None:
        near = did_you_mean(name, variables)
        raise RunnerError(
            "var-missing",
            f'the variable "{name}" is not set',
            hint=near or 'set it under "vars" in project.yml or with --vars',
        )
    return value


class Filler:
    """Fills in `{{ }}` in the values of project.yml."""

    def __init__(self, variables: Mapping[str, str], target: Target | None) -> None:
        names = {
            "env_var": env_var,
            "var": lambda name, default=None: variable(variables, name, default),
            "target": target,
        }
        self.environment = Sandbox(names)

    def text(self, yaml: Yaml) -> str:
        text = yaml.text()
        return fill(self.environment, text, yaml.where()) if "{{" in text or "{%" in text else text


def texts_of(yaml: Yaml | None) -> dict[str, str]:
    """A mapping of names to texts; empty if there is none."""
    return {key: value.text() for key, value in yaml.mapping().items()} if yaml else {}
