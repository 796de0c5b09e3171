"""project.yml, target, variables and environment -> Project."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jinja2

from runner.compile.readers import TableSettings
from runner.errors import Problems, RunnerError, Where, did_you_mean, nearest_or_all
from runner.project.nodes import Messages, Project, Source, Target
from runner.project.settings import read_folder_settings
from runner.project.targets import read_target
from runner.project.topics import read_topics
from runner.render import fill
from runner.spec.formats import FormatFolders
from runner.spec.messages import read_schema
from runner.spec.words import Format
from runner.yaml_text import Yaml, read_yaml
from runner.zones import read_zone

KEYS = ("name", "target", "targets", "vars", "models", "sources")
SOURCE_KEYS = ("name", "description", "format", "schema", "zone", "tables", "files", "table", "kafka")
MESSAGE_KEYS = ("files", "table", "kafka")
TABLE_KEYS = ("name", "key", "columns", "zone")
HERE = Path(__file__).parent.parent
BUILT_IN = HERE / "builtin" if (HERE / "builtin").is_dir() else HERE.parent


def find_project(start: Path) -> Path:
    """The nearest folder upwards that has a project.yml."""
    for folder in (start.absolute(), *start.absolute().parents):
        if (folder / "project.yml").is_file():
            return folder
    raise RunnerError(
        "project-missing",
        f'no project.yml in "{start.absolute()}" or above it',
        hint="start one with: runner init NAME",
    )


def read_project(
    project_dir: Path | None, target: str | None, variables: Mapping[str, str], target_path: Path | None = None
) -> Project:
    """The project as written, for the chosen target; raises all its mistakes at once."""
    root = (project_dir or find_project(Path.cwd())).absolute()
    if not (root / "project.yml").is_file():
        raise RunnerError("project-missing", f'no project.yml in "{root}"', hint="start one with: runner init NAME")
    yaml = read_yaml(root / "project.yml")
    problems = Problems()
    with problems.gathered():
        yaml.only(KEYS)
    all_vars = dict(variables)
    with problems.gathered():
        all_vars = {**_texts(yaml.get("vars")), **variables}
    formats = FormatFolders(project_folders(root, "formats"))
    chosen: Target | None = None
    with problems.gathered():
        chosen = _target(yaml, target or os.environ.get("RUNNER_TARGET"), root, all_vars)
    sources: list[Source] = []
    with problems.gathered():
        sources = _sources(yaml.get("sources"), formats, root, _Filler(all_vars, chosen))
    model_config: Mapping[str, Any] = {}
    with problems.gathered():
        model_config = read_folder_settings(yaml.get("models"), root / "models")
    name = root.name
    with problems.gathered():
        name = yaml["name"].text() if yaml.get("name") else name
    problems.raise_if_any()
    assert chosen
    return Project(
        root=root,
        name=name,
        target=chosen,
        vars=all_vars,
        sources=tuple(sources),
        model_config=model_config,
        format_folders=formats.folders,
        macro_folders=project_folders(root, "macros"),
        target_path=(target_path or Path(os.environ.get("RUNNER_TARGET_PATH", root / "target"))).absolute(),
    )


def env_var(name: str, default: str | None = None) -> str:
    """A variable of the environment, for secrets and machines; raises if it is not set and has no default."""
    value = os.environ.get(name, default)
    if value is None:
        raise RunnerError("env-var-missing", f'the environment variable "{name}" is not set')
    return value


def built_in_folder(name: str) -> Path:
    return BUILT_IN / name


def project_folders(root: Path | None, name: str) -> tuple[Path, ...]:
    """The project's own folder of that name, if there is a project and it has one, then the built-in one."""
    roots = [root] if root else []
    return tuple(
        dict.fromkeys(folder.resolve() for folder in [*(r / name for r in roots), BUILT_IN / name] if folder.is_dir())
    )


def _texts(yaml: Yaml | None) -> dict[str, str]:
    return {key: value.text() for key, value in yaml.mapping().items()} if yaml else {}


class _Filler:
    """Fills in `{{ }}` in the values of project.yml."""

    def __init__(self, variables: Mapping[str, str], target: Target | None) -> None:
        self.environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
        self.context: dict[str, Any] = {
            "env_var": env_var,
            "var": lambda name, default=None: variable(variables, name, default),
            "target": target,
        }

    def text(self, yaml: Yaml) -> str:
        text = yaml.text()
        return fill(self.environment, text, yaml.where(), self.context) if "{{" in text or "{%" in text else text


def variable(variables: Mapping[str, str], name: str, default: str | None = None) -> str:
    value = variables.get(name, default)
    if value is None:
        near = did_you_mean(name, variables)
        raise RunnerError(
            "var-missing",
            f'the variable "{name}" is not set',
            hint=near or 'give it under "vars" in project.yml or with --vars',
        )
    return value


def _target(yaml: Yaml, wanted: str | None, root: Path, variables: Mapping[str, str]) -> Target:
    targets = yaml["targets"].mapping() if yaml.get("targets") else None
    name = wanted or (yaml["target"].text() if yaml.get("target") else "local")
    if targets is None and name == "local":
        return Target("local", str(root / "warehouse"))
    if targets is None or name not in targets.value:
        known = list(targets.value) if targets else ["local"]
        asked_by = yaml.get("targets" if wanted else "target")
        raise (asked_by or yaml).error("target-unknown", f'there is no target "{name}"', nearest_or_all(name, known))
    return read_target(name, targets[name], root, _Filler(variables, None).text)


def _sources(yaml: Yaml | None, formats: FormatFolders, root: Path, filler: _Filler) -> list[Source]:
    problems = Problems()
    sources: list[Source] = []
    for entry in yaml.list().elements() if yaml else ():
        with problems.gathered():
            sources.append(_source(entry, formats, root, filler))
    with problems.gathered():
        _unique(sources)
    problems.raise_if_any()
    return sources


def _source(yaml: Yaml, formats: FormatFolders, root: Path, filler: _Filler) -> Source:
    yaml.only(SOURCE_KEYS)
    for key in ("name", "format"):
        if not yaml.get(key):
            raise yaml.error("source-missing", f'a source needs "{key}"')
    name = yaml["name"].text()
    if not name.replace("_", "").isalnum():
        raise yaml["name"].error(
            "source-name",
            f'"{name}" is no name for a source',
            "letters, digits and _ only: it becomes part of table names",
        )
    chosen = read_source_format(yaml["format"], formats, name, _schemas(yaml.get("schema"), root, filler))
    return Source(
        name,
        chosen,
        _messages(yaml, name, chosen, root, filler),
        read_zone(yaml.get("zone")),
        _optional(yaml.get("description")),
        yaml.where(),
        read_tables(yaml.get("tables")),
    )


def _messages(yaml: Yaml, name: str, chosen: Format, root: Path, filler: _Filler) -> Messages:
    """Where the messages of a source are."""
    kinds = [kind for kind in MESSAGE_KEYS if yaml.get(kind)]
    if len(kinds) != 1:
        raise yaml.error(
            "source-messages",
            f'the source "{name}" must say where its messages are: exactly one of {", ".join(MESSAGE_KEYS)}',
            "files: messages/*.jsonl",
        )
    kind = f"binary_{kinds[0]}" if chosen.message.encoding == "avro" else kinds[0]
    schemas = () if chosen.message.skip_bytes else chosen.message.schemas
    if kinds[0] == "kafka":
        topics, place = read_topics(yaml["kafka"], filler.text)
        return Messages(kind, place, schemas, topics)
    path = filler.text(yaml[kinds[0]])
    return Messages(kind, path if "://" in path or path.startswith("/") else str(root / path), schemas)


def _schemas(yaml: Yaml | None, root: Path, filler: _Filler) -> tuple[str, ...]:
    return tuple(read_schema(root / filler.text(one), one.where()) for one in yaml.as_list()) if yaml else ()


def read_source_format(yaml: Yaml, formats: FormatFolders, name: str, schemas: tuple[str, ...] = ()) -> Format:
    """The format that a source names, or writes in place; the source's schemas count before the format's own. Raises
    `schema-missing` if there are none.
    """
    spec = formats.read(name, formats.inline(yaml)) if isinstance(yaml.value, dict) else formats.load(yaml.text(), yaml)
    return with_schemas(spec, schemas, '"schema: FILE.avsc"', yaml.where())


def with_schemas(spec: Format, schemas: tuple[str, ...], word: str, where: Where | None) -> Format:
    """The format with the schemas that are given for its messages in place of its own; raises `schema-missing` if it
    needs some, or takes none.
    """
    if spec.message.encoding != "avro":
        if schemas:
            raise RunnerError(
                "schema-missing",
                f'messages of the format "{spec.name}" are no Avro, and have no schema',
                where,
                f"leave out {word}",
            )
        return spec
    if not schemas and not spec.message.schemas:
        vendor = f"; the vendor has it at {spec.docs}" if spec.docs else ""
        raise RunnerError(
            "schema-missing",
            f'the format "{spec.name}" needs the schema of its messages',
            where,
            f"give it with {word}{vendor}",
        )
    return replace(spec, message=replace(spec.message, schemas=schemas or spec.message.schemas))


def read_tables(yaml: Yaml | None) -> tuple[TableSettings, ...]:
    """What a source says of its tables; a name may leave out what stands before the last dots."""
    problems = Problems()
    out: list[TableSettings] = []
    for entry in yaml.list().elements() if yaml else ():
        with problems.gathered():
            entry.only(TABLE_KEYS)
            if not entry.get("name"):
                raise entry.error("name-missing", 'every entry of "tables" needs a "name"')
            key = tuple(column.text() for column in entry["key"].as_list()) if entry.get("key") else ()
            out.append(
                TableSettings(
                    entry["name"].text(), key, _texts(entry.get("columns")), read_zone(entry.get("zone")), entry
                )
            )
    problems.raise_if_any()
    return tuple(out)


def _optional(yaml: Yaml | None) -> str:
    return yaml.text() if yaml else ""


def _unique(sources: list[Source]) -> None:
    problems = Problems()
    seen: dict[str, Where] = {}
    for source in sources:
        first = seen.setdefault(source.name.lower(), source.where)
        if first != source.where:
            problems.add(
                RunnerError(
                    "name-taken", f'there are two sources "{source.name}"', source.where, f"the other one: {first}"
                )
            )
    problems.raise_if_any()
