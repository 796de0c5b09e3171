"""init --from-dbt: the project.yml that takes the place of a dbt_project.yml."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from runner.commands.editors import editor_line, write_schemas
from runner.counts import counted
from runner.errors import RunnerError, RunnerWarning, from_here
from runner.files import write_whole
from runner.project import dbt_hints
from runner.project.settings import HOOKS, SEED_SETTINGS, SETTINGS, check_setting, is_in_folder, setting_name
from runner.report import Report
from runner.yaml_text import Yaml, read_yaml

# Keys of dbt_project.yml that are not needed here: a project does without them what they say.
NEEDLESS = ("version", "config-version", "require-dbt-version", "clean-targets")
DEFAULTS = {
    "model-paths": ["models"],
    "seed-paths": ["seeds"],
    "test-paths": ["tests"],
    "macro-paths": ["macros"],
    "analysis-paths": ["analyses"],
    "snapshot-paths": ["snapshots"],
    "target-path": "target",
    "log-path": "logs",
}


class Plain(yaml.SafeDumper):
    """Writes texts without quotes, as readers of project.yml take no plain text for a number, a date or a boolean."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [one for one in resolvers if one[0].endswith(":null")]
        for first, resolvers in yaml.SafeDumper.yaml_implicit_resolvers.items()
    }


@dataclass
class Moved:
    """Moves the settings of a dbt_project.yml that project.yml has in the same way; `left_out` has a warning for each
    other one.
    """

    root: Path
    left_out: list[RunnerWarning] = field(default_factory=list)

    def project(self, of_dbt: Yaml) -> dict[str, Any]:
        """Returns the keys of project.yml."""
        out: dict[str, Any] = {"name": of_dbt["name"].text() if of_dbt.get("name") else self.root.absolute().name}
        if of_dbt.get("vars"):
            out["vars"] = of_dbt["vars"].mapping().value
        for section, files, known in (("models", ".sql", SETTINGS), ("seeds", ".csv", SEED_SETTINGS)):
            if (written := of_dbt.get(section)) and written.value:
                out[section] = self._settings(written, self.root / section, files, known, out["name"])
        for key, value in of_dbt.items():
            if key not in (*out, *NEEDLESS, "models", "seeds") and value.value not in (DEFAULTS.get(key), None, [], {}):
                self._leave_out(key, value, dbt_hints.PROJECT_KEYS.get(key, "project.yml has no such key"))
        return {key: value for key, value in out.items() if value}

    def _settings(self, section: Yaml, folder: Path, files: str, known: Collection[str], name: str = "") -> Any:
        """Returns the settings of a folder, a model or a seed that project.yml can have; settings below `name` are
        those of all.
        """
        out = {}
        for key, value in section.mapping().items():
            is_here = is_in_folder(key, folder, files)
            if not key.startswith("+") and (is_here or key == name):
                if value.value and (inner := self._settings(value, folder / key if is_here else folder, files, known)):
                    out[key] = inner
            elif hint := self._why_not(key, value, known):
                self._leave_out(".".join(map(str, value.steps)), value, hint)
            else:
                out[f"+{setting_name(key)}"] = value.value
        return out

    def _why_not(self, key: str, value: Yaml, known: Collection[str]) -> str:
        """Returns what to do instead of writing a setting in project.yml; empty if the setting can be written."""
        setting = setting_name(key)
        if not key.startswith("+") and setting not in (*known, *dbt_hints.SETTINGS):
            return f'there is no folder, model or seed "{key}": settings of packages belong to folders of this project'
        if setting not in HOOKS and "{{" in str(value.value):
            return "settings of folders have no templates here: write the value, or config(...) in the models"
        try:
            check_setting(setting, value.value, known)
        except RunnerError as error:
            return error.hint or error.message
        return ""

    def _leave_out(self, what: str, value: Yaml, hint: str) -> None:
        self.left_out.append(RunnerWarning("left-out", f'"{what}" is not in project.yml', value.where(), hint))


def init_from_dbt(folder: Path, report: Report) -> int:
    """Writes project.yml beside dbt_project.yml, and reports which settings are left out."""
    of_dbt, project = folder / "dbt_project.yml", folder / "project.yml"
    if not of_dbt.is_file():
        hint = "give the folder of a project of dbt: runner init --from-dbt FOLDER"
        raise RunnerError("project-missing", f'no dbt_project.yml in "{folder}"', hint=hint)
    if project.exists():
        raise RunnerError("init-exists", f'"{from_here(project)}" already exists', hint="move it away")
    moved = Moved(folder)
    keys = moved.project(read_yaml(of_dbt).mapping())
    written = yaml.dump(keys, Dumper=Plain, sort_keys=False, allow_unicode=True, width=float("inf"))
    write_schemas(folder)
    write_whole(project, f"{editor_line('project')}\n{written}")
    for warning in moved.left_out:
        report.warn(warning)
    without = f", without {counted(len(moved.left_out), 'key')} of dbt_project.yml" if moved.left_out else ""
    report.say(f"wrote {from_here(project)}{without}. Next: cd {folder} && runner check")
    return 0
