"""Sources in property files: tables that the runner does not make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from runner.errors import Problems, nearest_or_all
from runner.files import is_uri
from runner.patterns import escaped
from runner.project.expressions import expression
from runner.project.freshness import read_freshness
from runner.project.inputs import ExternalTable
from runner.project.models import relative_to
from runner.project.nodes import Node, Project
from runner.project.properties import described_columns, entries, optional_text
from runner.project.settings import as_tuple
from runner.yaml_text import Yaml

OF_BOTH = ("name", "description", "config", "meta", "tags", "loaded_at_field", "freshness", "quoting")
GROUP_KEYS = (*OF_BOTH, "database", "schema", "tables", "loader")
TABLE_KEYS = (*OF_BOTH, "identifier", "columns", "data_tests", "tests", "external")
CONFIG_KEYS = ("enabled", "tags", "meta", "loaded_at_field", "freshness")
EXTERNAL_KEYS = ("location", "using")
# The storages that Spark reads from a folder without other settings.
STORAGES = ("delta", "parquet", "orc", "json", "avro")


def foreign_tables(project: Project, files: Iterable[Yaml], problems: Problems) -> Iterator[tuple[Node, Yaml]]:
    """Returns the node and the YAML of each table in property files that is enabled. Mistakes are added to `problems`,
    and tables with mistakes are left out.
    """
    for group in (group for file in files for group in entries(file, "sources", GROUP_KEYS, problems)):
        for table in entries(group, "tables", TABLE_KEYS, problems):
            with problems.gathered():
                for one in (group, table):
                    if one.get("config"):
                        one["config"].only(CONFIG_KEYS)
                if "false" not in {str(_said(one, "enabled").value).lower() for one in (group, table)}:
                    yield _node(project, group, table), table


def _node(project: Project, group: Yaml, table: Yaml) -> Node:
    loaded_at = next((one for of in (table, group) if (one := _said(of, "loaded_at_field")).value), None)
    of_group, of_table = (_said(one, "freshness") if _says(one, "freshness") else None for one in (group, table))
    folder, storage = _external(project, table["external"]) if table.get("external") else ("", "")
    subject = ExternalTable(
        group["name"].text(),
        table["name"].text(),
        _place(group, table),
        folder,
        storage,
        expression(loaded_at, "loaded_at_field") if loaded_at else "",
        read_freshness(of_table, read_freshness(of_group)),
    )
    tags = (tag for one in (group, table) for tag in as_tuple(_said(one, "tags").value))
    return Node(
        f"source.{subject.label}",
        "source",
        subject,
        tags=frozenset(tags),
        path=relative_to(project, table.where().path),
        description=optional_text(table.get("description")),
        columns=described_columns(table),
        where=table.where(),
    )


def _place(group: Yaml, table: Yaml) -> tuple[str, ...]:
    """Returns the parts of a table's name: a catalog, if one is named, a schema and a table."""
    schema = optional_text(group.get("schema")) or group["name"].text()
    name = optional_text(table.get("identifier")) or table["name"].text()
    return (*((group["database"].text(),) if group.get("database") else ()), schema, name)


def _external(project: Project, yaml: Yaml) -> tuple[str, str]:
    yaml.only(EXTERNAL_KEYS)
    if not yaml.get("location"):
        raise yaml.error("setting-value", "a table outside of a catalog needs a location", "location: data/orders")
    location = yaml["location"].text()
    storage = optional_text(yaml.get("using")) or STORAGES[0]
    if storage not in STORAGES:
        raise yaml["using"].error("setting-value", f'cannot read "{storage}"', nearest_or_all(storage, STORAGES))
    # Spark reads the path of a folder of files as a pattern, so the path is escaped.
    found = location if is_uri(location) else str(project.root / location)
    return found if storage == "delta" else escaped(found), storage


def _said(yaml: Yaml, key: str) -> Yaml:
    """Returns the value of a group or a table under a key, in `config` or beside it."""
    return yaml["config"][key] if _is_in_config(yaml, key) else yaml[key] if key in yaml.value else Yaml(None, {})


def _says(yaml: Yaml, key: str) -> bool:
    return _is_in_config(yaml, key) or key in yaml.value


def _is_in_config(yaml: Yaml, key: str) -> bool:
    return bool(yaml.get("config")) and key in yaml["config"].value
