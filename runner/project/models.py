"""Models: what their files, their properties and project.yml say of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from runner.errors import RunnerError, Where, nearest_or_all
from runner.project.inputs import Source
from runner.project.nodes import Model, Node, Project, SqlFile
from runner.project.properties import COLUMN_KEYS, entries, optional_text
from runner.project.settings import as_tuple, check_together, hooks, is_enabled, read_settings, setting_name
from runner.project.templates import Templates
from runner.yaml_text import Yaml


def model_node(project: Project, templates: Templates, path: Path, properties: Yaml | None) -> Node | None:
    """The model of a file; None if it is not enabled. Settings in the file override those in its properties, and these
    override project.yml.
    """
    reading = templates.read(path)
    own = read_settings(properties.get("config") if properties else None)
    config = {**folder_config(project.model_config, above(project, "models", path)), **own, **reading.config}
    if not is_enabled(config):
        return None
    _check_together(config, path, reading.new_rows)
    model = _model(path, config, reading.new_rows)
    of_hooks = templates.read_by_hooks(path, (*model.pre_hook, *model.post_hook))
    columns = entries(properties, "columns", COLUMN_KEYS)
    return Node(
        path.stem,
        "model",
        model,
        tuple(dict.fromkeys([*reading.parents, *of_hooks])),
        frozenset(as_tuple(config.get("tags"))),
        relative_to(project, path),
        optional_text(properties.get("description")) if properties else "",
        {"materialized": model.materialized, "meta": meta(properties, config)},
        {column["name"].text(): optional_text(column.get("description")) for column in columns},
        where=Where(path, 1),
    )


def _model(path: Path, config: Mapping[str, Any], new_rows: list[str]) -> Model:
    return Model(
        SqlFile(path),
        config.get("materialized", "view"),
        as_tuple(config.get("unique_key")),
        config.get("on_schema_change", "ignore"),
        tuple(dict.fromkeys(new_rows)),
        hooks(config.get("pre_hook")),
        hooks(config.get("post_hook")),
    )


def meta(properties: Yaml | None, config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What people note of a model, under `meta` or under `config`."""
    beside = properties["meta"].mapping().value if properties and properties.get("meta") else {}
    return {**beside, **config.get("meta", {})}


def _check_together(config: dict[str, Any], path: Path, new_rows: list[str]) -> None:
    try:
        check_together({**config, **({"new_rows": new_rows} if new_rows else {})})
    except RunnerError as e:
        raise RunnerError(e.code, e.message, Where(path, 1), e.hint) from None


def check_new_rows(node: Node, by_name: dict[str, Node]) -> None:
    """Raises RunnerError if new rows are asked for where nothing tells which rows are new."""
    for name in node.model.new_rows if node.model else ():
        if without := _without_batch(name, by_name, set()):
            raise RunnerError(
                "new-rows",
                f'new_rows("{name}"): the rows of "{without}" do not tell in which batch they landed',
                node.where,
                "new_rows takes a view of the changelog, the changelog of a source, or a view of these",
            )


def _without_batch(name: str, by_name: dict[str, Node], seen: set[str]) -> str | None:
    """The first among a node and what it reads whose rows have no batch."""
    node = by_name.get(name)
    if node is None or name in seen:
        return None
    match node.model:
        case Model(query=SqlFile(), materialized="view"):
            found = (_without_batch(parent, by_name, seen | {name}) for parent in node.parents)
            return next((one for one in found if one), None)
        case Model(query=Source()):
            return None
    return None if "batch" in node.columns else name


def above(project: Project, folder: str, path: Path) -> tuple[str, ...]:
    """The names of the folders between a folder of the project and a file."""
    return path.relative_to(project.root / folder).parts[:-1]


def folder_config(config: Mapping[str, Any], folders: Iterable[str]) -> dict[str, Any]:
    """The settings in project.yml (keys with a +) for the folders above a file; those of the nearest folder win."""
    level: Any = config
    levels = [level]
    for folder in folders:
        level = level.get(folder, {})
        levels.append(level)
    return {setting_name(key): value for level in levels for key, value in level.items() if key.startswith("+")}


def with_properties(node: Node, properties: Yaml) -> Node:
    """A generated model with the description from its properties."""
    if properties.get("config"):
        message = f'"{node.name}" is generated by the runner, and its config cannot be changed'
        raise properties["config"].error("config-fixed", message)
    for column in entries(properties, "columns", COLUMN_KEYS):
        name = column["name"]
        if node.columns and name.text() not in node.columns:
            hint = nearest_or_all(name.text(), node.columns)
            raise name.error("column-unknown", f'"{node.name}" has no column "{name.text()}"', hint)
    return replace(node, description=properties["description"].text()) if properties.get("description") else node


def relative_to(project: Project, path: Path) -> str:
    """A path as nodes have it: relative to the project's folder."""
    return path.relative_to(project.root).as_posix() if path.is_relative_to(project.root) else str(path)
