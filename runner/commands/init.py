"""init and clean: creating a project, also beside one of dbt, and removing what the runner wrote to target/."""

from __future__ import annotations

import importlib.resources
import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jinja2
import yaml

from runner.commands.arguments import Call, MessagesArguments
from runner.counts import counted
from runner.errors import RunnerError, RunnerWarning, Where, did_you_mean, from_here
from runner.files import is_uri, write_whole
from runner.grid import json_text
from runner.patterns import escaped, matching, unescaped
from runner.project import dbt_hints
from runner.project.project import built_in_folder, project_schema
from runner.project.settings import HOOKS, SEED_SETTINGS, SETTINGS, check_setting, is_in_folder, setting_name
from runner.report import Report
from runner.spec.formats import FormatFolders
from runner.spec.json_schema import spec_schema
from runner.spec.schemas import schemas_at, with_schemas
from runner.spec.values import read_zone
from runner.yaml_text import Yaml, read_yaml


def init(call: Call, name: str | None, from_dbt: Path | None, format: str | None, files: str | None) -> int:
    """Creates a project that can be built: with the given messages, or a sample with messages, a model and tests."""
    of_messages = {"format": format, "files": files, "zone": call.flags["zone"], "schema": call.flags["schema"]}
    flags = [flag for flag, value in of_messages.items() if value]
    if bool(name) == bool(from_dbt) or (from_dbt and flags):
        hint = "runner init NAME, or: runner init --from-dbt FOLDER"
        raise RunnerError("usage", "init needs the name of a new project, or a project of dbt alone", hint=hint)
    if from_dbt:
        return _init_from_dbt(from_dbt, call.report)
    assert name
    missing = [f'"--{flag}"' for flag in ("format", "files") if flag not in flags]
    if flags and missing:
        hint = f"runner init {name} --format FORMAT --files 'messages/*.jsonl'"
        raise RunnerError("usage", f'"--{flags[0]}" needs {" and ".join(missing)} too', hint=hint)
    messages, root = call.messages(format, files) if format and files else None, Path(name)
    if root.is_file() or (root.is_dir() and any(root.iterdir())):
        raise RunnerError("init-exists", f'"{root}" already exists and is not empty', hint="choose another name")
    project_file = _project_of(messages, root) if messages else sample(root)
    root.mkdir(parents=True, exist_ok=True)
    write_schemas(root)
    (root / "project.yml").write_text(f"{editor_line('project')}\n{project_file}", encoding="utf-8")
    call.report.say(f"wrote {root}/. Next: cd {root} && runner build && runner show -s changelog --limit 5")
    return 0


def sample(root: Path, spark: Mapping[str, str] = MappingProxyType({})) -> str:
    """Writes all files of the sample but project.yml; returns the text of that, with these settings for Spark."""
    (messages,) = (built_in_folder("formats") / "cases").glob("*/shop.messages.jsonl")
    (root / "messages").mkdir(parents=True)
    shutil.copyfile(messages, root / "messages" / "shop.jsonl")
    shutil.copytree(built_in_folder("models"), root / "models", dirs_exist_ok=True)
    about = "The changes in the database of a shop"
    return _project_file(
        root,
        source="shop",
        description=about,
        format=messages.parent.name,
        zone="Asia/Shanghai",
        files="messages/*.jsonl",
        spark=dict(spark),
    )


def _project_of(messages: MessagesArguments, root: Path) -> str:
    """Returns the project.yml of a project with these messages; raises mistakes in the arguments about them."""
    formats = FormatFolders((built_in_folder("formats"),))
    if messages.format not in formats.names():
        own = f"start with one of runner formats list; one of your own is formats/{messages.format}.yml in the project"
        hint = did_you_mean(messages.format, formats.names()) or own
        raise RunnerError("format-unknown", f'there is no format "{messages.format}"', hint=hint)
    spec = formats.load(messages.format)
    with_schemas(spec, schemas_at([(path, None) for path in messages.schemas]), "--schema FILE.avsc", None)
    zone = read_zone(Yaml(messages.zone, {(): Where(Path("--zone"))}))
    if not is_uri(messages.file) and not any(one.is_file() for one in _matching(messages.file)):
        hint = "quote a pattern, so that the shell leaves it as it is: --files 'messages/*.jsonl'"
        raise RunnerError("file-missing", f'no file matches "{messages.file}"', hint=hint)
    files, schemas = _seen_from(root, messages.file), [_seen_from(root, str(path)) for path in messages.schemas]
    return _project_file(root, source="messages", format=messages.format, zone=zone, files=files, schemas=schemas)


def _matching(place: str) -> list[Path]:
    """Returns the files of a pattern or a folder."""
    pattern = place if place.startswith("/") else f"{escaped(str(Path.cwd()))}/{place}"
    return matching(f"{pattern}/*" if Path(unescaped(pattern)).is_dir() else pattern)


def _seen_from(root: Path, place: str) -> str:
    """Returns a path of the current folder as project.yml in another folder has it."""
    return place if is_uri(place) or place.startswith("/") else os.path.relpath(place, root)


def _project_file(root: Path, **values: object) -> str:
    template = (importlib.resources.files("runner") / "starter" / "project.yml.jinja").read_text(encoding="utf-8")
    environment = jinja2.Environment(keep_trailing_newline=True)
    environment.filters["yaml"] = _yaml
    return environment.from_string(template).render(name=root.absolute().name, **values)


def _yaml(value: object) -> str:
    """Returns a value as YAML on one line.

    >>> _yaml("demo"), _yaml("*.jsonl"), _yaml(["a.avsc"])
    ('demo', "'*.jsonl'", '[a.avsc]')
    """
    text: str = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=float("inf"))
    return text.removesuffix("...\n").rstrip("\n")


# --- the JSON Schemas of specs and of project.yml, for editors that complete and check YAML

SCHEMA_FOLDER = ".schemas"
SCHEMAS = {"format": spec_schema, "project": project_schema}


def editor_line(kind: str, above: str = "") -> str:
    """Returns the first line of a file of this kind, which tells editors its schema. `above` leads from the file's
    folder to the folder of the project.

    >>> editor_line("format", "../")
    '# yaml-language-server: $schema=../.schemas/format.json'
    """
    return f"# yaml-language-server: $schema={above}{SCHEMA_FOLDER}/{kind}.json"


def write_schemas(root: Path) -> None:
    """Writes the schemas to the places that the first lines of files name."""
    for kind, schema in SCHEMAS.items():
        write_whole(root / SCHEMA_FOLDER / f"{kind}.json", json_text(schema()) + "\n")


# --- beside a project of dbt

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


class Moved:
    """Moves the settings of a dbt_project.yml that project.yml has in the same way; `left_out` has a warning for each
    other one.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.left_out: list[RunnerWarning] = []

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


def _init_from_dbt(folder: Path, report: Report) -> int:
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
