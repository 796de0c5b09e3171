"""The settings of models and of their tables: project.yml, properties and the models themselves may give them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from runner.errors import Problems, RunnerError, Where, nearest_or_all, placed
from runner.project import dbt_hints
from runner.project.inputs import Target
from runner.project.nodes import MATERIALIZATIONS, SCHEMA_CHANGES
from runner.project.properties import is_enforced
from runner.storage.data import Layout, Part
from runner.storage.known import STORAGES
from runner.yaml_text import Yaml, whole_number

# Settings that say how a table is kept, and all settings of tables.
LAYOUTS = ("partition_by", "cluster_by", "table_properties", "persist_docs")
TABLE_SETTINGS = (*LAYOUTS, "contract", "incremental_strategy")
SETTINGS = (
    *("materialized", "alias", "tags", "meta", "enabled", "pre_hook", "post_hook", "unique_key", "on_schema_change"),
    *("renamed_from", *TABLE_SETTINGS),
)
SEED_SETTINGS = (
    *("column_types", "delimiter", "quote_columns", "alias", "tags", "meta", "enabled", "pre_hook", "post_hook"),
)
# Names that a table can have in every storage and catalog.
TABLE_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
TABLE_NAME_HINT = "use only letters from a to z, digits and _: it becomes the name of a table"
# A name that a table may have had: it leads out of no folder.
FORMER_NAME = re.compile(r"[^./\\\x00][^/\\\x00]*")
HOOKS = ("pre_hook", "post_hook")
INCREMENTAL_SETTINGS = ("unique_key", "on_schema_change", "incremental_strategy", "new_rows")


def check_setting(name: str, value: Any, known: Collection[str] = SETTINGS) -> None:
    """Raises RunnerError, without a place, if there is no such setting or it cannot have this value."""
    if name not in known:
        hint = dbt_hints.SETTINGS.get(name) or nearest_or_all(name, known)
        raise RunnerError("setting-unknown", f'unknown setting "{name}"', hint=hint)
    match name:
        case "materialized" if value not in MATERIALIZATIONS:
            hint = dbt_hints.MATERIALIZATIONS.get(str(value)) or nearest_or_all(str(value), MATERIALIZATIONS)
            raise RunnerError("materialization-unknown", f'unknown materialisation "{value}"', hint=hint)
        case "enabled" if str(value).lower() not in ("true", "false"):
            raise _value_error(f'"enabled" is true or false, not "{value}"')
        case "alias" if value is not None and not TABLE_NAME.fullmatch(str(value)):
            raise _value_error(f'"{value}" cannot be an alias', TABLE_NAME_HINT)
        case "delimiter" if not isinstance(value, str) or len(value) != 1:
            raise _value_error(f'"delimiter" is one character, not "{value}"', 'delimiter: ";"')
        case "column_types" if not isinstance(value, dict) or not _are_texts(value.values()):
            raise _value_error('"column_types" is a mapping of columns to types', "{id: bigint}")
        case "meta" if not isinstance(value, dict):
            raise _value_error('"meta" is a mapping of names to values', "meta: {owner: data}")
        case "renamed_from":
            _check_former(as_tuple(value))
        case "pre_hook" | "post_hook" if not _are_texts(hooks(value)):
            raise _value_error(f'"{name}" is a statement or a list of them', "post_hook: analyze ...")
        case "tags" if not _are_texts(as_tuple(value)):
            hint = "tags: [nightly, orders]"
            raise RunnerError("setting-tags", "tags must be a text or a list of texts", hint=hint)
        case "unique_key" if not _are_texts(as_tuple(value)):
            message = "unique_key must be the name of a column or a list of names"
            raise RunnerError("setting-key", message, hint="unique_key: [db_name, id]")
        case "on_schema_change" if value not in SCHEMA_CHANGES:
            hint = nearest_or_all(str(value), SCHEMA_CHANGES)
            raise RunnerError("setting-schema-change", f'unknown value "{value}" of on_schema_change', hint=hint)
    if name in TABLE_SETTINGS and value is not None:
        _check_table_setting(name, value)


def _value_error(message: str, hint: str = "") -> RunnerError:
    return RunnerError("setting-value", message, hint=hint)


def _are_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def check_together(settings: dict[str, Any]) -> None:
    """Raises RunnerError, without a place, for settings that have no meaning together with the others."""
    useless = [name for name in INCREMENTAL_SETTINGS if name in settings]
    if useless and settings.get("materialized") != "incremental":
        raise RunnerError(
            "setting-alone",
            f'"{useless[0]}" has no meaning for a model that is not incremental',
            hint="materialized: incremental",
        )
    _check_strategy(settings)


def setting_name(written: str) -> str:
    """Returns the plain name of a setting that YAML may write with a + before it, or with hyphens.

    >>> setting_name("+pre-hook")
    'pre_hook'
    """
    return written.removeprefix("+").replace("-", "_")


def places_of_settings(yaml: Yaml | None) -> dict[str, Where]:
    """Returns the places of the settings in the config of properties, by their names."""
    written = yaml.items() if yaml and isinstance(yaml.value, dict) else ()
    return {setting_name(key): value.where() for key, value in written}


def hooks(value: Any) -> tuple[Any, ...]:
    """Returns the statements of a hook. Each may stand under `sql`.

    >>> hooks("a"), hooks([{"sql": "b", "transaction": "false"}, "c"])
    (('a',), ('b', 'c'))
    """
    return tuple(one.get("sql") if isinstance(one, dict) else one for one in as_tuple(value))


def read_former_names(yaml: Yaml | None) -> tuple[str, ...]:
    """Returns the names that something had before, each once; raises `setting-value`."""
    names = tuple(dict.fromkeys(one.text() for one in yaml.as_list())) if yaml and yaml.value else ()
    with placed(yaml.where()) if yaml else nullcontext():
        _check_former(names)
    return names


def _check_former(names: tuple[Any, ...]) -> None:
    if not _are_texts(names) or not all(FORMER_NAME.fullmatch(name) for name in names):
        raise _value_error('"renamed_from" is a name of a table, or a list of them', "renamed_from: orders_old")


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


# --- settings of tables

STRATEGIES = ("append", "merge", "insert_overwrite")
DOCS = ("relation", "columns")
# Transform -> whether it takes a number before the column.
TRANSFORMS = {"years": False, "months": False, "days": False, "hours": False, "bucket": True, "truncate": True}
CALL = re.compile(r"(\w+)\(\s*(?:(\w+)\s*,)?\s*([^,()]+?)\s*\)")
# Properties that are set in another way, or are not for people to set.
RESERVED = {
    "comment": "persist_docs: {relation: true} makes the description the comment",
    "location": "the path of the target says where tables are",
    "provider": "storage of the target says what tables are",
    "owner": "the catalog sets it",
    "external": "the path of the target says where tables are",
    "is_managed_location": "the path of the target says where tables are",
}


def layout_of(config: Mapping[str, Any], description: str, columns: Mapping[str, str]) -> Layout:
    """Returns the layout that settings ask for; `columns` are the descriptions of columns, by column."""
    docs = config.get("persist_docs") or {}
    return Layout(
        _parts("partition_by", config.get("partition_by")),
        _parts("cluster_by", config.get("cluster_by")),
        {str(key): _text(value) for key, value in (config.get("table_properties") or {}).items()},
        description if _is_true(docs.get("relation")) else None,
        columns if _is_true(docs.get("columns")) else None,
    )


def check_storage(layout: Layout, target: Target, places: Mapping[str, Where], otherwise: Where) -> None:
    """Raises `setting-storage` for each part of the layout that the storage lacks, at the place of its setting in
    `places`.
    """
    problems = Problems()
    for name, error in _not_kept(layout, target):
        problems.add(error.at(places.get(name, otherwise)))
    problems.raise_if_any()


def _not_kept(layout: Layout, target: Target) -> Iterator[tuple[str, RunnerError]]:
    """Returns the settings that the storage does not have, each with its error, without a place."""
    storage_name = target.storage
    storage = STORAGES[storage_name]
    has_comments = layout.comment is not None or layout.comments is not None
    if has_comments and not storage.keeps_comments and not target.catalog:
        hint = "catalog: {schema: changelog}, under the target"
        yield "persist_docs", _lacks(storage_name, '"persist_docs" without a catalog', hint)
    asked = {
        "partition_by": layout.partition_by,
        "cluster_by": layout.cluster_by,
        "table_properties": layout.properties,
    }
    for name, hint in storage.lacks.items():
        if asked[name]:
            yield name, _lacks(storage_name, f'"{name}"', hint)
    keeps_together = (("partition_by", layout.partition_by), ("cluster_by", layout.cluster_by))
    for name, part in ((name, part) for name, parts in keeps_together if name not in storage.lacks for part in parts):
        if part.transform and part.transform not in storage.transforms:
            hint = "make a column of it, and name that" if not storage.transforms else ""
            yield name, _lacks(storage_name, f'"{part}", but columns alone', hint)
    most = storage.most_clusters
    if most and layout.cluster_by and layout.partition_by:
        yield "cluster_by", _lacks(storage_name, '"cluster_by" beside "partition_by"', "keep one of them")
    if most and len(layout.cluster_by) > most:
        hint = f"name the {most} that most queries use"
        yield "cluster_by", _lacks(storage_name, f'"cluster_by" of more than {most} columns', hint)


def _check_strategy(config: Mapping[str, Any]) -> None:
    """Raises RunnerError `setting-strategy`, without a place, for a strategy that does not go with other settings."""
    strategy, key = config.get("incremental_strategy"), config.get("unique_key")
    if strategy == "merge" and not key:
        raise RunnerError("setting-strategy", '"merge" needs "unique_key"', hint="unique_key: id")
    if strategy in ("append", "insert_overwrite") and key:
        message = f'"unique_key" has no meaning with "{strategy}"'
        raise RunnerError("setting-strategy", message, hint="incremental_strategy: merge, or no unique_key")
    if strategy == "insert_overwrite" and not config.get("partition_by"):
        message = '"insert_overwrite" replaces partitions, and needs "partition_by"'
        raise RunnerError("setting-strategy", message, hint="partition_by: day")


def _lacks(storage: str, what: str, hint: str) -> RunnerError:
    return RunnerError("setting-storage", f"tables in {storage} do not have {what}", hint=hint)


def _parts(name: str, value: Any) -> tuple[Part, ...]:
    """Returns the parts that a setting names, in its order; raises RunnerError `setting-parts`, without a place."""
    given = value if isinstance(value, (list, tuple)) else () if value is None else (value,)
    parts = tuple(_part(name, one) for one in given)
    seen: set[str] = set()
    for part in map(str, parts):
        if part.lower() in seen:
            raise RunnerError("setting-parts", f'"{name}" names "{part}" twice', hint="remove one of them")
        seen.add(part.lower())
    return parts


def _part(name: str, text: Any) -> Part:
    """Returns a column or a transform of a column, from its text.

    >>> _part("partition_by", "bucket(16, id)"), str(_part("partition_by", "days( ts )"))
    (Part(column='id', transform='bucket', argument=16), 'days(ts)')
    """
    if not isinstance(text, str) or not text.strip():
        message = f'"{name}" is a column or a list of them'
        raise RunnerError("setting-parts", message, hint=f"{name}: [day, country]")
    call = CALL.fullmatch(text.strip())
    if not call:
        return Part(text.strip().strip("`"))
    transform, number, column = call[1], call[2], call[3].strip("`")
    if transform not in TRANSFORMS:
        hint = nearest_or_all(transform, TRANSFORMS)
        raise RunnerError("setting-parts", f'"{name}" knows no transform "{transform}"', hint=hint)
    argument = whole_number(number) if number else None
    if TRANSFORMS[transform] != bool(number) or (number and not argument):
        form = f"{transform}(16, id)" if TRANSFORMS[transform] else f"{transform}(at)"
        raise RunnerError("setting-parts", f'"{text}" in "{name}" is not like {form}', hint=f"{name}: ['{form}']")
    return Part(column, transform, argument)


def _check_table_setting(name: str, value: Any) -> None:
    """Raises RunnerError, without a place, if a setting of tables cannot have this value."""
    match name:
        case "partition_by" | "cluster_by":
            _parts(name, value)
        case "table_properties":
            _check_properties(name, value)
        case "persist_docs":
            if not isinstance(value, dict) or not all(str(one).lower() in ("true", "false") for one in value.values()):
                hint = f"{name}: {{relation: true, columns: true}}"
                raise _value_error(f'"{name}" says of relation and columns whether it is so', hint)
            _check_words(name, value, DOCS)
        case "contract":
            is_enforced(value)
        case "incremental_strategy" if value in ("delete+insert", "microbatch"):
            raise _value_error(f'"{name}" knows no "{value}"', "merge: new rows replace rows with the same unique_key")
        case "incremental_strategy":
            _check_words(name, (value,), STRATEGIES)


def _check_properties(name: str, value: Any) -> None:
    if not isinstance(value, dict) or not all(isinstance(one, (str, bool, int, float)) for one in value.values()):
        hint = f"{name}: {{delta.enableChangeDataFeed: true}}"
        raise _value_error(f'"{name}" is a mapping of names to values', hint)
    for key in value:
        if str(key).lower() in RESERVED:
            raise _value_error(f'"{key}" is not set in "{name}"', RESERVED[str(key).lower()])


def _check_words(name: str, words: Iterable[Any], known: Iterable[str]) -> None:
    for word in words:
        if word not in known:
            raise _value_error(f'"{name}" knows no "{word}"', nearest_or_all(str(word), known))


def _is_true(value: Any) -> bool:
    return str(value).lower() == "true"


def _text(value: Any) -> str:
    """Returns a value of YAML as a text of SQL settings.

    >>> _text(True), _text("a"), _text(5)
    ('true', 'a', '5')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)
