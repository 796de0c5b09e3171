"""The project's files -> nodes: sources and the models generated from them, models, tests, cases. Compiles no SQL."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from runner.contract import COLUMNS
from runner.errors import Problems, RunnerError, Where, did_you_mean, nearest_or_all
from runner.project.mirrors import MIRROR_KEYS, fits_test, mirror_names, mirror_nodes, mirror_tests
from runner.project.nodes import STREAMING, Case, DataTest, Model, Node, Project, Source, SourcesView, SqlFile
from runner.project.properties import COLUMN_KEYS, MODEL_KEYS, PROPERTY_KEYS, data_tests, entries, optional_text
from runner.project.settings import as_tuple, check_together, read_settings
from runner.project.templates import Templates
from runner.project.tests import Tests, function_tests
from runner.render import function_folder
from runner.yaml_text import Yaml, read_yaml

VIEWS = {
    "changelog": "one row for each row change, from all sources",
    "ddl_events": "one row for each DDL message",
    "control_events": "heartbeats, watermarks, transaction marks and tombstones",
    "dead_letters": "messages that could not be understood, with the reason and the message itself",
    "freshness": "for each source: last event, last heartbeat, last message, counts by kind",
    "freshness_by_table": "the same for each table",
}

# The version of property files, which dbt's have too.
VERSION = "2"


def read_properties(project: Project, problems: Problems) -> list[Yaml]:
    """The property files of the project; mistakes are added to `problems`, and files with mistakes are left out."""
    return [read for path in _property_files(project) if (read := _read_properties(path, problems))]


def read_templates(project: Project, properties: Iterable[Yaml]) -> Templates:
    """The project's templates, which know the names of all its models; raises mistakes in its macros."""
    files = (path.stem for path in _model_files(project))
    mirrors = (name for file in properties for name in mirror_names(file))
    return Templates(project, {*VIEWS, *(source.model for source in project.sources), *files, *mirrors})


def parse(project: Project, files: list[Yaml], templates: Templates, problems: Problems) -> dict[str, Node]:
    """All nodes of the project, whose property files are `files`, by name. Mistakes are added to `problems`, and nodes
    with mistakes are left out.
    """
    nodes = Nodes(project, problems)
    for source in project.sources:
        for node in _nodes_of_source(source):
            nodes.add(node)
    for node in _views(project.sources):
        nodes.add(node)
    described = _described(files, problems)
    tests = Tests(templates, nodes.by_name, nodes.relative)
    for entry in (entry for file in files for entry in entries(file, "mirrors", MIRROR_KEYS, problems)):
        with problems.gathered():
            _add_mirror(nodes, tests, entry)
    _add_models(nodes, templates, tests, described)
    for node in nodes.by_name.values():
        with problems.gathered():
            _check_new_rows(node, nodes.by_name)
    for source in project.sources:
        nodes.add(_conserved(source))
    for entry in (entry for file in files for entry in _unit_tests(file)):
        with problems.gathered():
            # No test of a model that could not be read: the mistake in the model is already among the problems.
            if (test := tests.unit_test(entry, nodes.by_name)) is not None:
                nodes.add(test)
    for path in sorted(function_folder(project.root / "macros").rglob("*.yml")):
        with problems.gathered():
            for node in function_tests(path, nodes.relative):
                nodes.add(node)
    for path in _singular_tests(project):
        with problems.gathered():
            if singular := tests.singular_test(path):
                nodes.add(singular)
    for path in sorted((project.root / "formats" / "cases").glob("*/*.rows.yml")):
        nodes.add(_case(path, nodes))
    return nodes.by_name


class Nodes:
    """The nodes found so far. `tables` are those that have a table of a name, their own or one beside it."""

    def __init__(self, project: Project, problems: Problems) -> None:
        self.project, self.problems = project, problems
        self.by_name: dict[str, Node] = {}
        self.tables: dict[str, Node] = {}

    def add(self, node: Node) -> None:
        self.by_name.setdefault(node.name, node)
        for name in node.names:
            taken = self.tables.setdefault(name, node)
            if taken is not node:
                message, by = f'the name "{name}" is taken', f"by {taken.resource_type} {taken.path}"
                self.problems.add(RunnerError("name-taken", message, node.where, by))

    def relative(self, path: Path) -> str:
        """A path as nodes have it: relative to the project's folder."""
        root = self.project.root
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _model_files(project: Project) -> list[Path]:
    return sorted((project.root / "models").rglob("*.sql"))


def _property_files(project: Project) -> list[Path]:
    return sorted((project.root / "models").rglob("*.yml"))


def _singular_tests(project: Project) -> list[Path]:
    """The files in tests/, without those of folders that are projects of their own."""
    folder = project.root / "tests"
    others = {path.parent for path in folder.rglob("project.yml")}
    return sorted(path for path in folder.rglob("*.sql") if not others.intersection(path.parents))


# --- sources and the models generated from them


def _nodes_of_source(source: Source) -> tuple[Node, Node]:
    """The source and the model that lands its messages."""
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
        Model(source, STREAMING),
        (declared.name,),
        path=f"project.yml#{source.name}",
        description=f"the messages of source {source.name}, as rows of the changelog",
        config={"materialized": STREAMING},
        columns=COLUMNS,
        format=source.format.name,
        where=source.where,
    )
    return declared, landing


def _views(sources: tuple[Source, ...]) -> Iterable[Node]:
    """The views over the tables of all sources."""
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


def _conserved(source: Source) -> Node:
    return Node(
        f"conserved_{source.name}",
        "test",
        DataTest("conserved", source.model, source=source),
        (source.model,),
        path="project.yml",
        format=source.format.name,
        where=source.where,
    )


def _case(path: Path, nodes: Nodes) -> Node:
    """The case of a file `NAME.rows.yml`, which is read only when the case is compiled."""
    case = Case(path.parent.name, path)
    name = f"{case.format}.{path.name.removesuffix('.rows.yml')}"
    return Node(name, "unit_test", case, path=nodes.relative(path), format=case.format, where=Where(path, 1, 1))


# --- properties


def _read_properties(path: Path, problems: Problems) -> Yaml | None:
    with problems.gathered():
        read = read_yaml(path).only(PROPERTY_KEYS)
        if (version := read.get("version")) and version.text() != VERSION:
            message = f'the version of property files is {VERSION}, not "{version.text()}"'
            raise version.error("properties-version", message, "remove the line, or write version: 2")
        return read
    return None


def _unit_tests(file: Yaml) -> list[Yaml]:
    return file["unit_tests"].list().elements() if file.get("unit_tests") else []


def _described(files: Iterable[Yaml], problems: Problems) -> dict[str, Yaml]:
    """The properties of models, by the names of the models."""
    out: dict[str, Yaml] = {}
    for entry in (entry for file in files for entry in entries(file, "models", MODEL_KEYS, problems)):
        first = out.setdefault(entry["name"].text(), entry)
        if first is not entry:
            message = f'the model "{entry["name"].value}" is described twice'
            problems.add(entry.error("duplicate-key", message, f"also at {first.where()}"))
    return out


# --- mirrors


def _add_mirror(nodes: Nodes, tests: Tests, entry: Yaml) -> None:
    """Adds the models of a mirror, and the data tests of its rows."""
    sources = {source.name: source for source in nodes.project.sources}
    state, *history = mirror_nodes(entry, sources, nodes.relative(entry.where().path))
    for node in (state, *history):
        nodes.add(node)
    if state.model and state.model.mirror:
        nodes.add(fits_test(state, state.model.mirror))
    for column, test in mirror_tests(entry):
        with nodes.problems.gathered():
            if (found := tests.data_test(state, column, test)) is None:
                continue
            nodes.add(found)
            # What is read again for the one is read again for the other.
            for node in history if found.data_test and found.data_test.mirror else ():
                if again := tests.data_test(node, column, test):
                    nodes.add(again)


# --- models


def _add_models(nodes: Nodes, templates: Templates, tests: Tests, described: dict[str, Yaml]) -> None:
    """Adds the models of files and the data tests of all models; gives generated models their properties."""
    for path in _model_files(nodes.project):
        properties = described.pop(path.stem, None)
        with nodes.problems.gathered():
            node = _model(nodes, templates, path, properties)
            nodes.add(node)
            if properties:
                _add_data_tests(nodes, tests, node, properties)
    for name in [name for name in described if name in nodes.by_name]:
        properties = described.pop(name)
        with nodes.problems.gathered():
            nodes.by_name[name] = _with_properties(nodes.by_name[name], properties)
            _add_data_tests(nodes, tests, nodes.by_name[name], properties)
    models = [name for name, node in nodes.by_name.items() if node.model]
    for name, properties in described.items():
        hint = did_you_mean(name, models)
        nodes.problems.add(properties["name"].error("model-unknown", f'there is no model "{name}"', hint))


def _add_data_tests(nodes: Nodes, tests: Tests, node: Node, properties: Yaml) -> None:
    for column, entry in _data_tests(properties):
        with nodes.problems.gathered():
            if test := tests.data_test(node, column, entry):
                nodes.add(test)


def _data_tests(properties: Yaml) -> Iterable[tuple[str | None, Yaml]]:
    """Each data test of a model, and its column if it is the test of a column."""
    for entry in data_tests(properties):
        yield None, entry
    for column in entries(properties, "columns", COLUMN_KEYS):
        for entry in data_tests(column):
            yield column["name"].text(), entry


def _model(nodes: Nodes, templates: Templates, path: Path, properties: Yaml | None) -> Node:
    """The model of a file. Settings in the file override those in its properties, and these override project.yml."""
    reading = templates.read(path)
    own = read_settings(properties.get("config") if properties else None)
    config = {**_folder_config(nodes.project, path), **own, **reading.config}
    _check_together(config, path, reading.new_rows)
    materialized = config.get("materialized", "view")
    key, on_schema_change = as_tuple(config.get("unique_key")), config.get("on_schema_change", "ignore")
    columns = entries(properties, "columns", COLUMN_KEYS)
    return Node(
        path.stem,
        "model",
        Model(SqlFile(path), materialized, key, on_schema_change, tuple(dict.fromkeys(reading.new_rows))),
        tuple(dict.fromkeys(reading.parents)),
        frozenset(as_tuple(config.get("tags"))),
        nodes.relative(path),
        optional_text(properties.get("description")) if properties else "",
        {"materialized": materialized},
        {column["name"].text(): optional_text(column.get("description")) for column in columns},
        where=Where(path, 1),
    )


def _check_together(config: dict[str, Any], path: Path, new_rows: list[str]) -> None:
    try:
        check_together({**config, **({"new_rows": new_rows} if new_rows else {})})
    except RunnerError as e:
        raise RunnerError(e.code, e.message, Where(path, 1), e.hint) from None


def _check_new_rows(node: Node, by_name: dict[str, Node]) -> None:
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


def _folder_config(project: Project, path: Path) -> dict[str, Any]:
    """The settings in project.yml (keys with a +) for the folders above a model; those of the nearest folder win."""
    level: Any = project.model_config
    levels = [level]
    for folder in path.relative_to(project.root / "models").parts[:-1]:
        level = level.get(folder, {})
        levels.append(level)
    return {key.removeprefix("+"): value for level in levels for key, value in level.items() if key.startswith("+")}


def _with_properties(node: Node, properties: Yaml) -> Node:
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
