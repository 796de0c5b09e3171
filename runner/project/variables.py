"""Variables of the project and of the environment, and the `{{ }}` in YAML files that use them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from runner.errors import RunnerError, did_you_mean
from runner.project.inputs import Target
from runner.render import fill
from runner.sandbox import Sandbox
from runner.secrets import Secrets
from runner.yaml_text import Yaml

# The value of a default that a template does not give, because None is a default too.
NOT_GIVEN = object()


def env_var(secrets: Secrets, name: str, default: str | None = None, public: bool = False) -> str:
    """Returns an environment variable, for secrets and settings of a machine; raises if it is not set and has no
    default. The value is a secret unless it is public.
    """
    value = os.environ.get(name, default)
    if value is None:
        raise RunnerError("env-var-missing", f'the environment variable "{name}" is not set')
    if not public and name in os.environ:
        secrets.add(name, value)
    return value


def public_env_var(name: str, default: str | None = None, public: bool = False) -> str:
    """Returns an environment variable for a text that is written to files; raises `secret-in-model` unless public."""
    value = env_var(Secrets(), name, default, public)
    if not public:
        raise secret_in_model(name)
    return value


def secret_in_model(name: str) -> RunnerError:
    """Returns the error for SQL that holds the value of this variable or setting."""
    message = f'the SQL would show the secret "{name}"' if name else "the SQL would show a part of a secret"
    hint = "compiled SQL is written to files; if all may see the value: env_var('NAME', public=true)"
    return RunnerError("secret-in-model", message, hint=hint)


def variable(variables: Mapping[str, Any], name: str, default: Any = NOT_GIVEN) -> Any:
    """Returns the value of a variable, as `Yaml.data` gives it; raises if it is not set and has no default."""
    value = variables.get(name, default)
    if value is NOT_GIVEN:
        near = did_you_mean(name, variables)
        raise RunnerError(
            "var-missing",
            f'the variable "{name}" is not set',
            hint=near or 'set it under "vars" in project.yml or with --vars',
        )
    return value


class Filler:
    """Replaces `{{ }}` in the values of project.yml."""

    def __init__(self, variables: Mapping[str, Any], target: Target | None, secrets: Secrets) -> None:
        self.secrets = secrets
        self.variables, self.target = variables, target
        self.environment = Sandbox({"env_var": self._env_var, "var": self._var, "target": target})

    # Errors in calls show the names of these functions.

    def _env_var(self, name: str, default: str | None = None, public: bool = False) -> str:
        return env_var(self.secrets, name, default, public)

    def _var(self, name: str, default: Any = NOT_GIVEN) -> Any:
        return variable(self.variables, name, default)

    def text(self, yaml: Yaml, context: Mapping[str, Any] = MappingProxyType({})) -> str:
        """Returns a text with its templates filled in; they can also use the names in `context`."""
        text = yaml.text()
        return fill(self.environment, text, yaml.where(), context) if "{{" in text or "{%" in text else text

    def setting(self, name: str, yaml: Yaml) -> str:
        """Returns the value of a setting of Spark or a connector, which is a secret if its name says so."""
        return self.secrets.add_setting(name, self.text(yaml))


def texts_of(yaml: Yaml | None) -> dict[str, str]:
    """Returns a mapping of names to texts; empty if there is none."""
    return {key: value.text() for key, value in yaml.mapping().items()} if yaml else {}
