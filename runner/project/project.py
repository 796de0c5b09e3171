"""The reader of project.yml: with target, variables and environment, it becomes a Project. Its JSON Schema."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from runner.errors import Problems, RunnerError, RunnerWarning, Where, nearest_or_all
from runner.files import read_text
from runner.project import dbt_hints
from runner.project.dead_letters import DEAD_LETTER_KEYS, WAIVER_KEYS
from runner.project.dumps import AT_KEYS, DUMP_KEYS, FORMS, JDBC_KEYS
from runner.project.inputs import DUMPS, Target
from runner.project.mask_secret import MASK_SECRET_KEYS, read_mask_secret
from runner.project.nodes import Project
from runner.project.notifications import HOOK_KEYS, OPENLINEAGE_KEYS, STATES, read_hooks, read_openlineage
from runner.project.settings import SEED_SETTINGS, SETTINGS, read_folder_settings
from runner.project.sources import SOURCE_KEYS, TABLE_KEYS, read_sources
from runner.project.targets import TARGET_KEYS, read_target
from runner.project.topics import KAFKA_KEYS
from runner.project.variables import Filler
from runner.render import function_folder
from runner.secrets import Secrets
from runner.spec.formats import FormatFolders
from runner.storage.known import STORAGES
from runner.yaml_text import Yaml, read_yaml

KEYS = ("name", "target", "targets", "vars", "models", "seeds", "sources", "notify", "openlineage", *MASK_SECRET_KEYS)
HERE = Path(__file__).parent.parent
BUILT_IN = HERE / "builtin" if (HERE / "builtin").is_dir() else HERE.parent


def find_project(start: Path) -> Path:
    """Returns the nearest folder with a project.yml, from `start` upwards."""
    for folder in (start.absolute(), *start.absolute().parents):
        if (folder / "project.yml").is_file():
            return folder
    is_of_dbt = (start / "dbt_project.yml").is_file()
    hint = "write one beside dbt_project.yml, with name: NAME" if is_of_dbt else "start one with: runner init NAME"
    raise RunnerError("project-missing", f'no project.yml in "{start.absolute()}" or above it', hint=hint)


def read_project(
    project_dir: Path | None,
    target: str | None,
    variables: Mapping[str, Any],
    target_path: Path | None,
    secrets: Secrets,
) -> Project:
    """Returns the project for the chosen target, and adds what it reads to `secrets`; raises all mistakes at once."""
    root = _root(project_dir)
    yaml = read_yaml(root / "project.yml")
    problems = Problems()
    with problems.gathered():
        yaml.only(KEYS, instead=dbt_hints.PROJECT_KEYS)
    all_vars = _variables(yaml, variables, problems)
    formats, chosen = FormatFolders(project_folders(root, "formats")), None
    with problems.gathered():
        chosen = _target(yaml, target or os.environ.get("RUNNER_TARGET"), root, all_vars, secrets)
    with problems.gathered():
        sources = read_sources(yaml.get("sources"), formats, root, Filler(all_vars, chosen, secrets))
    model_config = _folder_settings(yaml, root / "models", ".sql", SETTINGS, problems)
    seed_config = _folder_settings(yaml, root / "seeds", ".csv", SEED_SETTINGS, problems)
    name = _name(yaml, root, problems)
    told = _told(yaml, root, name, Filler(all_vars, chosen, secrets), problems)
    problems.raise_if_any()
    assert chosen
    return Project(
        root=root,
        name=name,
        target=chosen,
        vars=all_vars,
        sources=tuple(sources),
        model_config=model_config,
        seed_config=seed_config,
        format_folders=formats.folders,
        macro_folders=project_folders(root, "macros"),
        target_path=(target_path or Path(os.environ.get("RUNNER_TARGET_PATH", root / "target"))).absolute(),
        secrets=secrets,
        target_names=tuple(yaml["targets"].value) if yaml.get("targets") else (chosen.name,),
        **told,
    )


def _root(project_dir: Path | None) -> Path:
    root = (project_dir or find_project(Path.cwd())).absolute()
    if not (root / "project.yml").is_file():
        raise RunnerError("project-missing", f'no project.yml in "{root}"', hint="start one with: runner init NAME")
    return root


def _name(yaml: Yaml, root: Path, problems: Problems) -> str:
    with problems.gathered():
        return yaml["name"].text() if yaml.get("name") else root.name
    return ""


def _told(yaml: Yaml, root: Path, name: str, filler: Filler, problems: Problems) -> dict[str, Any]:
    """Returns the fields of a project that say who is told of its runs, and what nobody is told."""
    told: dict[str, Any] = {}
    with problems.gathered():
        told["hooks"] = read_hooks(yaml.get("notify"), filler)
    with problems.gathered():
        told["openlineage"] = read_openlineage(yaml.get("openlineage"), root, name, filler)
    with problems.gathered():
        told["mask_secret"] = read_mask_secret(yaml, filler)
    return told


def built_in_folder(name: str) -> Path:
    return BUILT_IN / name


def project_folders(root: Path | None, name: str) -> tuple[Path, ...]:
    """Returns the project's folder of that name, if there is a project that has one, then the built-in folder."""
    roots = [root] if root else []
    return tuple(
        dict.fromkeys(folder.resolve() for folder in [*(r / name for r in roots), BUILT_IN / name] if folder.is_dir())
    )


def _folder_settings(
    yaml: Yaml, folder: Path, files: str, known: tuple[str, ...], problems: Problems
) -> dict[str, Any]:
    """Returns the settings by folder; those below the project's name count as if they stood beside it, and win."""
    section, name = yaml.get(folder.name), _written_name(yaml)
    parts = [section]
    if section and isinstance(section.value, dict) and name in section.value and not (folder / name).is_dir():
        others = {key: value for key, value in section.value.items() if key != name}
        parts = [Yaml(others, section.places, section.steps), section[name]]
    settings: dict[str, Any] = {}
    for part in parts:
        with problems.gathered():
            settings |= read_folder_settings(part, folder, files, known)
    return settings


def _written_name(yaml: Yaml) -> str:
    """Returns the project's name, below which settings and variables may stand; empty if it is not written."""
    return str(yaml["name"].value) if yaml.get("name") else ""


def _variables(yaml: Yaml, given: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    """Returns the variables of the project, also those below its name, and those of the command line, which win."""
    own: dict[str, Any] = {}
    with problems.gathered():
        if yaml.get("vars"):
            own = yaml["vars"].mapping().data()
    name = _written_name(yaml)
    of_project = own.pop(name) if isinstance(own.get(name), dict) else {}
    return {**own, **of_project, **given}


def _target(yaml: Yaml, wanted: str | None, root: Path, variables: Mapping[str, Any], secrets: Secrets) -> Target:
    targets = yaml["targets"].mapping() if yaml.get("targets") else None
    name = wanted or (yaml["target"].text() if yaml.get("target") else "local")
    if targets is None and name == "local":
        return Target("local", str(root / "warehouse"))
    if targets is None or name not in targets.value:
        known = list(targets.value) if targets else ["local"]
        named_at = yaml.get("targets" if wanted else "target")
        raise (named_at or yaml).error("target-unknown", f'there is no target "{name}"', nearest_or_all(name, known))
    return read_target(name, targets[name], root, Filler(variables, None, secrets))


DEFINED = re.compile(r"\{%-?\s*macro\s+(\w+)")


def unread(root: Path) -> Iterator[RunnerWarning]:
    """Returns a warning for each kind of file that the project has and no command reads, and for each macro that dbt
    looks for by its name.
    """
    functions = function_folder(root / "macros")
    for pattern, hint in dbt_hints.FILES.items():
        if found := sorted(path for path in root.glob(pattern) if not path.is_relative_to(functions)):
            first = found[0].relative_to(root).as_posix()
            what = f'"{first}"' if len(found) == 1 else f'"{first}" and {len(found) - 1} more of its kind'
            yield RunnerWarning("files-unread", f"nothing reads {what}", Where(found[0]), hint)
    for path in sorted(root.glob("macros/**/*.sql")):
        for name in DEFINED.findall(read_text(path)):
            if name in dbt_hints.MACROS:
                yield RunnerWarning("files-unread", f'nothing looks for "{name}"', Where(path), dbt_hints.MACROS[name])


# --- the JSON Schema of project.yml

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
        "sources": {"type": "array", "items": _source_schema()},
        "openlineage": _object({**dict.fromkeys(OPENLINEAGE_KEYS, TEXT), "headers": {"type": "object"}}),
        "notify": _object({event: _hooks_schema() for event in STATES}),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A project",
        **_object(properties),
        "$defs": _formats(),
    }


def _source_schema() -> Schema:
    mask = {"anyOf": [TEXT, {"type": ["object", "null"]}]}
    masks = {"type": "object", "additionalProperties": mask}
    table = {**dict.fromkeys(TABLE_KEYS, TEXT), "key": TEXTS, "columns": {"type": "object"}, "mask": masks}
    limit = {"type": ["string", "number", "null"]}
    waivers = {"type": "array", "items": _object(dict.fromkeys(WAIVER_KEYS, TEXT))}
    source = {
        **dict.fromkeys(SOURCE_KEYS, TEXT),
        "format": {"anyOf": [TEXT, {"$ref": "#/$defs/format"}]},
        **dict.fromkeys(("schema", "renamed_from"), TEXTS),
        "dump": {
            "anyOf": [
                {"enum": [*DUMPS, *FORMS]},
                _object({**dict.fromkeys(DUMP_KEYS, TEXT), "form": {"enum": [*FORMS]}}),
            ]
        },
        "at": {"anyOf": [TEXT, _object(dict.fromkeys(AT_KEYS, TEXT))]},
        "jdbc": _object({**dict.fromkeys(JDBC_KEYS, TEXT), "options": {"type": "object"}}),
        "tables": {"type": "array", "items": _object(table)},
        "dead_letters": _object({**dict.fromkeys(DEAD_LETTER_KEYS, limit), "waived": waivers}),
        "kafka": _object({**dict.fromkeys(KAFKA_KEYS, TEXT), "topics": TEXTS, "options": {"type": "object"}}),
    }
    return _object(source)


def _hooks_schema() -> Schema:
    """Returns the schema of one hook, or of a list of them."""
    words, mapping = {"type": "array", "items": TEXT}, {"type": "object"}
    hook = _object({**dict.fromkeys(HOOK_KEYS, TEXT), "command": words, "headers": mapping, "body": mapping})
    return {"anyOf": [hook, {"type": "array", "items": hook}]}


def _formats() -> Schema:
    """Returns the definitions of the spec language, and a spec itself as one of them."""
    from runner.spec.json_schema import spec_schema

    schema = spec_schema()
    definitions: Schema = schema.pop("$defs")
    return {**definitions, "format": {key: value for key, value in schema.items() if not key.startswith("$")}}


def _object(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}
