"""The settings of models: project.yml, properties and the models themselves may give them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from runner.errors import Problems, RunnerError, Where, nearest_or_all, placed
from runner.project import dbt_hints, table_settings
from runner.project.nodes import MATERIALIZATIONS, SCHEMA_CHANGES
from runner.yaml_text import Yaml

SETTINGS = (
    *("materialized", "alias", "tags", "meta", "enabled", "pre_hook", "post_hook", "unique_key", "on_schema_change"),
    *table_settings.SETTINGS,
)
SEED_SETTINGS = (
    "column_types",
    "delimiter",
    "quote_columns",
    "alias",
    "tags",
    "meta",
    "enabled",
    "pre_hook",
    "post_hook",
)
# Names that a table can have in every storage and catalog.
TABLE_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
TABLE_NAME_HINT = "use only letters from a to z, digits and _: it becomes the name of a table"
HOOKS = ("pre_hook", "post_hook")
INCREMENTAL_SETTINGS = ("unique_key", "on_schema_change", "incremental_strategy", "new_rows")


def check_setting(name: str, value: Any, known: Collection[str] = SETTINGS) -> None:
    """Raises RunnerError, without a place, if there is no such setting or it cannot have this value."""
    if name not in known:
        hint = dbt_hints.SETTINGS.get(name) or nearest_or_all(name, known)
        raise RunnerError("setting-unknown", f'unknown setting "{name}"', hint=hint)
    if name in table_settings.SETTINGS:
        table_settings.check(name, value)
    if name == "materialized" and value not in MATERIALIZATIONS:
        hint = dbt_hints.MATERIALIZATIONS.get(str(value)) or nearest_or_all(str(value), MATERIALIZATIONS)
        raise RunnerError("materialization-unknown", f'unknown materialisation "{value}"', hint=hint)
    if name == "enabled" and str(value).lower() not in ("true", "false"):
        raise RunnerError("setting-value", f'"enabled" is true or false, not "{value}"')
    if name == "alias" and value is not None and not TABLE_NAME.fullmatch(str(value)):
        raise RunnerError("setting-value", f'"{value}" cannot be an alias', hint=TABLE_NAME_HINT)
    if name == "delimiter" and not (isinstance(value, str) and len(value) == 1):
        raise RunnerError("setting-value", f'"delimiter" is one character, not "{value}"', hint='delimiter: ";"')
    if name == "column_types" and not (isinstance(value, dict) and all(isinstance(one, str) for one in value.values())):
        raise RunnerError("setting-value", '"column_types" is a mapping of columns to types', hint="{id: bigint}")
    if name == "meta" and not isinstance(value, dict):
        raise RunnerError("setting-value", '"meta" is a mapping of names to values', hint="meta: {owner: data}")
    if name in HOOKS and not all(isinstance(sql, str) for sql in hooks(value)):
        raise RunnerError("setting-value", f'"{name}" is a statement or a list of them', hint="post_hook: analyze ...")
    if name == "tags" and not all(isinstance(tag, str) for tag in as_tuple(value)):
        raise RunnerError("setting-tags", "tags must be a text or a list of texts", hint="tags: [nightly, orders]")
    if name == "unique_key" and not all(isinstance(column, str) for column in as_tuple(value)):
        raise RunnerError(
            "setting-key",
            "unique_key must be the name of a column or a list of names",
            hint="unique_key: [db_name, id]",
        )
    if name == "on_schema_change" and value not in SCHEMA_CHANGES:
        raise RunnerError(
            "setting-schema-change",
            f'unknown value "{value}" of on_schema_change',
            hint=nearest_or_all(str(value), SCHEMA_CHANGES),
        )


def check_together(settings: dict[str, Any]) -> None:
    """Raises RunnerError, without a place, for settings that have no meaning together with the others."""
    useless = [name for name in INCREMENTAL_SETTINGS if name in settings]
    if useless and settings.get("materialized") != "incremental":
        raise RunnerError(
            "setting-alone",
            f'"{useless[0]}" has no meaning for a model that is not incremental',
            hint="materialized: incremental",
        )
    table_settings.check_strategy(settings)


def setting_name(written: str) -> str:
    """Returns the plain name of a setting that YAML may write with a + before it, or with hyphens.

    >>> setting_name("+pre-hook")
    'pre_hook'
    """
    return written.removeprefix("+").replace("-", "_")


def place_of_setting(yaml: Yaml | None, name: str, otherwise: Where) -> Where:
    """Returns the place of a setting in the config of properties."""
    written = yaml.items() if yaml and isinstance(yaml.value, dict) else ()
    return next((value.where() for key, value in written if setting_name(key) == name), otherwise)


def hooks(value: Any) -> tuple[Any, ...]:
    """Returns the statements of a hook. Each may stand under `sql`.

    >>> hooks("a"), hooks([{"sql": "b", "transaction": "false"}, "c"])
    (('a',), ('b', 'c'))
    """
    return tuple(one.get("sql") if isinstance(one, dict) else one for one in as_tuple(value))


def is_enabled(settings: Mapping[str, Any]) -> bool:
    return str(settings.get("enabled", True)).lower() == "true"


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Returns the values of a setting that may be one value, a list, or nothing.

    >>> as_tuple("a"), as_tuple(["a", "b"]), as_tuple(None)
    (('a',), ('a', 'b'), ())
    """
    return () if value is None else tuple(value) if isinstance(value, (list, tuple)) else (value,)


def read_settings(yaml: Yaml | None, known: Collection[str] = SETTINGS) -> dict[str, Any]:
    """Returns the settings of one model or seed, from its properties."""
    problems = Problems()
    for name, value in yaml.mapping().items() if yaml else ():
        with problems.gathered():
            _check_at(value, setting_name(name), known)
    problems.raise_if_any()
    return {setting_name(name): value for name, value in yaml.value.items()} if yaml else {}


def read_folder_settings(yaml: Yaml | None, folder: Path, files: str, known: Collection[str]) -> dict[str, Any]:
    """Returns the settings by folder, from project.yml: keys with a + are settings, all others are folders, or models
    or seeds, whose files have the ending `files`.
    """
    problems = Problems()
    for key, value in yaml.mapping().items() if yaml else ():
        with problems.gathered():
            if key.startswith("+"):
                _check_at(value, setting_name(key), known)
            elif is_in_folder(key, folder, files):
                read_folder_settings(value, folder / key, files, known)
            else:
                raise _nothing_called(value, key, folder, files, known)
    problems.raise_if_any()
    return dict(yaml.value) if yaml else {}


def is_in_folder(key: str, folder: Path, files: str) -> bool:
    """Returns True if a folder has a folder of that name, or a model or seed, whose files have the ending `files`."""
    return (folder / key).is_dir() or (folder / f"{key}{files}").is_file()


def _nothing_called(yaml: Yaml, key: str, folder: Path, files: str, known: Collection[str]) -> RunnerError:
    """Returns the error of a key that is not a setting and names nothing in a folder."""
    there = [path.name.removesuffix(files) for path in folder.glob("*") if path.is_dir() or path.suffix == files]
    below = (path for path in sorted(folder.rglob(f"*{files}")) if path.name == f"{key}{files}")
    deeper = next((path.parent.relative_to(folder).parts for path in below), ())
    hint = nearest_or_all(key, there)
    if key in known:
        hint = f'settings begin with +: "+{key}"'
    elif deeper:
        hint = f"it is in a folder: {''.join(f'{part}: {{' for part in deeper)}{key}: ...{'}' * len(deeper)}"
    return yaml.error("setting-folder", f'there is no folder "{key}" in "{folder.name}", and no "{key}{files}"', hint)


def folder_settings(config: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Returns the settings in project.yml for a folder in models/ or seeds/, or for a file without its ending, with
    those of all folders above; the nearest win. The path is relative to the project.
    """
    level: Any = config
    levels = [level]
    for part in path.parts[1:]:
        level = level.get(part, {})
        levels.append(level)
    return {setting_name(key): value for level in levels for key, value in level.items() if key.startswith("+")}


def _check_at(yaml: Yaml, name: str, known: Collection[str]) -> None:
    with placed(yaml.where()):
        check_setting(name, yaml.value, known)
