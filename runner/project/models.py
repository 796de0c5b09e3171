"""Models and seeds: nodes made of their files, their properties and project.yml."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from runner.contract import COLUMNS
from runner.errors import Problems, RunnerError, Where, nearest_or_all, placed
from runner.project.inputs import CHANGELOG, Source
from runner.project.nodes import QUERIES, SEED, STREAMING, DataTest, Model, Node, Project, SeedFile, SourcesView
from runner.project.properties import (
    COLUMN_KEYS,
    Contract,
    described_columns,
    entries,
    is_enforced,
    optional_text,
    read_contract,
)
from runner.project.settings import (
    HOOKS,
    LAYOUTS,
    SEED_SETTINGS,
    TABLE_SETTINGS,
    as_tuple,
    check_storage,
    check_together,
    folder_settings,
    hooks,
    is_enabled,
    layout_of,
    places_of_settings,
    read_settings,
)
from runner.project.templates import Reading, Templates
from runner.storage.data import Layout
from runner.yaml_text import Yaml

VIEWS = {
    "changelog": "one row for each row change, from all sources",
    "ddl_events": "one row for each DDL message",
    "control_events": "heartbeats, watermarks, transaction marks and tombstones",
    "dead_letters": "messages that could not be understood, with the reason and the message itself",
    "freshness": "for each source: last event, last heartbeat, last message, counts by kind",
    "freshness_by_table": "the same for each table",
}


def model_node(project: Project, templates: Templates, path: Path, properties: Yaml | None) -> Node | None:
    """Returns the model of a file; None if it is not enabled. Settings in the file override those in its properties,
    and these override project.yml.
    """
    problems, reading, own, where = Problems(), Reading(), dict[str, Any](), Where(path, 1)
    in_yaml = properties.get("config") if properties else None
    with problems.gathered():
        reading = templates.read(path)
    with problems.gathered():
        own = read_settings(in_yaml)
    problems.raise_if_any()
    of_folders = folder_settings(project.model_config, path.relative_to(project.root).with_suffix(""))
    config = {**of_folders, **own, **reading.config}
    if not is_enabled(config):
        return None
    if config.get("materialized", "view") in QUERIES:
        _check_query({**own, **reading.config}, config.get("materialized", "view"), path)
    description = optional_text(properties.get("description")) if properties else ""
    described = described_columns(properties)
    with placed(where):
        layout = _layout(config, reading.new_rows, description, described)
    if config.get("materialized", "view") not in QUERIES:
        places = {name: at for name, at in places_of_settings(in_yaml).items() if name not in reading.config}
        check_storage(layout, project.target, places, where)
    model = replace(_model(path, config, reading.new_rows), layout=layout, contract=_contract(config, properties, path))
    of_hooks = templates.read_by_hooks(path, (*model.pre_hook, *model.post_hook))
    return Node(
        path.stem,
        "model",
        model,
        tuple(dict.fromkeys([*reading.parents, *of_hooks])),
        frozenset(as_tuple(config.get("tags"))),
        project.relative(path),
        description,
        {"materialized": model.materialized, "meta": meta(properties, config), **shown(config)},
        described,
        where=where,
    )


def _model(path: Path, config: Mapping[str, Any], new_rows: list[str]) -> Model:
    return Model(
        path,
        config.get("materialized", "view"),
        as_tuple(config.get("unique_key")),
        config.get("on_schema_change", "ignore"),
        tuple(dict.fromkeys(new_rows)),
        hooks(config.get("pre_hook")),
        hooks(config.get("post_hook")),
        replaces_partitions=config.get("incremental_strategy") == "insert_overwrite",
        alias=config.get("alias") or "",
        renamed_from=as_tuple(config.get("renamed_from")),
    )


def _layout(config: dict[str, Any], new_rows: list[str], description: str, described: Mapping[str, str]) -> Layout:
    """Returns the layout of a model's table; raises an error for settings that do not go together."""
    check_together({**config, **({"new_rows": new_rows} if new_rows else {})})
    layout = layout_of(config, description, described)
    if config.get("materialized", "view") in QUERIES:
        # Of the layout, a view keeps only comments, for the catalog, if there is one.
        return Layout(comment=layout.comment, comments=layout.comments)
    return layout


def _check_query(own: Mapping[str, Any], kind: str, path: Path) -> None:
    """Raises `setting-alone` for a setting of a view or an ephemeral model that only tables can have, or models that
    are built. Settings of its folder are for other models, and are not checked.
    """
    is_view = kind == "view"
    without = [name for name in LAYOUTS if name != "persist_docs"] if is_view else [*LAYOUTS, *HOOKS]
    without.append("renamed_from")
    if useless := [name for name in without if own.get(name)]:
        message = f'"{useless[0]}" has no meaning for {"a view" if is_view else "an ephemeral model"}'
        raise RunnerError("setting-alone", message, Where(path, 1), "materialized: table")


def _contract(config: Mapping[str, Any], properties: Yaml | None, path: Path) -> Contract | None:
    if not is_enforced(config.get("contract") or {}):
        return None
    if config.get("materialized") == "ephemeral":
        message = '"contract" has no meaning for an ephemeral model'
        raise RunnerError("setting-alone", message, Where(path, 1), "materialized: view")
    columns = entries(properties, "columns", COLUMN_KEYS)
    with placed(Where(path, 1)):
        contract = read_contract(columns)
    if contract.not_null and config.get("materialized", "view") == "view":
        message = f'nothing keeps "{contract.not_null[0]}" of a view from being null'
        hint = "materialized: table, or the data test not_null"
        raise RunnerError("contract-constraint", message, Where(path, 1), hint)
    return contract


def shown(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of a model's table, as they are written."""
    return {name: config[name] for name in ("alias", *TABLE_SETTINGS) if name in config}


def meta(properties: Yaml | None, config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the notes of people about a model, under `meta` or under `config`."""
    beside = properties["meta"].mapping().value if properties and properties.get("meta") else {}
    return {**beside, **config.get("meta", {})}


def check_new_rows(node: Node, by_name: dict[str, Node]) -> None:
    """Raises RunnerError if a model asks for the new rows of a node whose rows do not tell which are new."""
    for name in node.model.new_rows if node.model else ():
        if without := _without_batch(name, by_name, set()):
            raise RunnerError(
                "new-rows",
                f'new_rows("{name}"): the rows of "{without}" do not tell in which batch they landed',
                node.where,
                "new_rows takes a view of the changelog, the changelog of a source, or a view of these",
            )


def _without_batch(name: str, by_name: dict[str, Node], seen: set[str]) -> str | None:
    """Returns the first among a node and the nodes that it reads whose rows have no batch."""
    node = by_name.get(name)
    if node is None or name in seen:
        return None
    match node.model:
        case Model(query=Path(), is_table=False):
            found = (_without_batch(parent, by_name, seen | {name}) for parent in node.parents)
            return next((one for one in found if one), None)
        case Model(query=Source()):
            return None
    return None if "batch" in node.columns else name


def with_properties(node: Node, properties: Yaml) -> Node:
    """Returns a generated model with the description from its properties."""
    if properties.get("config"):
        message = f'"{node.name}" is generated by the runner, and its config cannot be changed'
        raise properties["config"].error("config-fixed", message)
    for column in entries(properties, "columns", COLUMN_KEYS):
        name = column["name"]
        if node.columns and name.text() not in node.columns:
            hint = nearest_or_all(name.text(), node.columns)
            raise name.error("column-unknown", f'"{node.name}" has no column "{name.text()}"', hint)
    return replace(node, description=properties["description"].text()) if properties.get("description") else node


def seed_files(project: Project) -> list[Path]:
    return sorted((project.root / "seeds").rglob("*.csv"))


def seed_node(project: Project, templates: Templates, path: Path, properties: Yaml | None) -> Node | None:
    """Returns the seed of a file; None if it is not enabled. Its rows are read only when the seed is compiled."""
    own = read_settings(properties.get("config") if properties else None, SEED_SETTINGS)
    config = {**folder_settings(project.seed_config, path.relative_to(project.root).with_suffix("")), **own}
    if not is_enabled(config):
        return None
    before, after = hooks(config.get("pre_hook")), hooks(config.get("post_hook"))
    file = SeedFile(path, config.get("delimiter", ","), config.get("column_types", {}))
    return Node(
        path.stem,
        "seed",
        Model(file, SEED, pre_hook=before, post_hook=after, alias=config.get("alias") or ""),
        templates.read_by_hooks(path, (*before, *after)),
        frozenset(as_tuple(config.get("tags"))),
        project.relative(path),
        optional_text(properties.get("description")) if properties else "",
        {"materialized": SEED, "meta": meta(properties, config), **shown(config)},
        described_columns(properties),
        where=Where(path, 1),
    )


# --- sources and the models generated from them


def nodes_of_source(source: Source) -> tuple[Node, Node]:
    """Returns the source and the model that lands its messages."""
    declared = Node(
        f"source.{source.name}",
        "source",
        source,
        path="project.yml",
        description=source.description,
        format=source.format.name,
        where=source.where,
    )
    landing = Node(
        source.model,
        "model",
        Model(source, STREAMING, renamed_from=tuple(f"{name}{CHANGELOG}" for name in source.renamed_from)),
        (declared.name,),
        path=f"project.yml#{source.name}",
        description=f"the messages of source {source.name}, as rows of the changelog",
        config={"materialized": STREAMING},
        columns=COLUMNS,
        format=source.format.name,
        where=source.where,
    )
    return declared, landing


def views(sources: tuple[Source, ...]) -> Iterable[Node]:
    """Returns the views over the tables of all sources."""
    for view, description in VIEWS.items():
        yield Node(
            view,
            "model",
            Model(SourcesView(view, sources), "view"),
            tuple(source.model for source in sources),
            path=f"macros/views.sql#{view}",
            description=description,
            columns={} if view.startswith("freshness") else COLUMNS,
            config={"materialized": "view"},
        )


def conserved(source: Source) -> Node:
    return Node(
        f"conserved_{source.name}",
        "test",
        DataTest("conserved", source.model, source=source),
        (source.model,),
        path="project.yml",
        format=source.format.name,
        where=source.where,
    )
