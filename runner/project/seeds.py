"""Seeds: what their files, their properties and project.yml say of them."""

from __future__ import annotations

from pathlib import Path

from runner.errors import Where
from runner.project.models import meta, relative_to, shown
from runner.project.nodes import SEED, Model, Node, Project, SeedFile
from runner.project.properties import described_columns, optional_text
from runner.project.settings import SEED_SETTINGS, as_tuple, folder_settings, hooks, is_enabled, read_settings
from runner.project.templates import Templates
from runner.yaml_text import Yaml


def seed_files(project: Project) -> list[Path]:
    return sorted((project.root / "seeds").rglob("*.csv"))


def seed_node(project: Project, templates: Templates, path: Path, properties: Yaml | None) -> Node | None:
    """The seed of a file; None if it is not enabled. Its rows are read only when it is compiled."""
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
        relative_to(project, path),
        optional_text(properties.get("description")) if properties else "",
        {"materialized": SEED, "meta": meta(properties, config), **shown(config)},
        described_columns(properties),
        where=Where(path, 1),
    )
