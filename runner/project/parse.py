"""The project's files -> nodes: sources and what is made from them, models, tests, cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from runner.compile.query import compile_format
from runner.contract import COLUMNS, MACRO_GLOBALS
from runner.errors import Problems, RunnerError, Where, did_you_mean, nearest_or_all
from runner.project.nodes import (
    STREAMING,
    Case,
    DataTest,
    FormatQuery,
    Increment,
    Model,
    Node,
    Project,
    Source,
    UnitTest,
)
from runner.project.project import env_var, read_source_format, read_tables, variable
from runner.project.properties import entries, needed, optional_text, ref_name, rows, test_call
from runner.project.settings import check_setting, check_together, listed, read_settings
from runner.render import Renderer, name
from runner.spec.formats import FormatFolders
from runner.spec.messages import read_schemas
from runner.yaml_text import Yaml, read_yaml
from runner.zones import read_zone

VIEWS = {
    "changelog": "one row for each row change, from all sources",
    "ddl_events": "one row for each DDL message",
    "control_events": "heartbeats, watermarks, transaction marks and tombstones",
    "dead_letters": "messages that could not be understood, with the reason and the message itself",
    "freshness": "for each source: last event, last heartbeat, last message, counts by kind",
    "freshness_by_table": "the same for each table",
}
PROPERTY_KEYS = ("models", "unit_tests")
MODEL_KEYS = ("name", "description", "config", "columns", "data_tests")
COLUMN_KEYS = ("name", "description", "data_tests")
UNIT_TEST_KEYS = ("name", "description", "model", "given", "expect")
CASE_SOURCE_KEYS = ("zone", "format", "tables", "schema")
# Encoding -> how files of messages beside cases end: messages that are no text are lines of base64.
CASE_ENDINGS = {"json": "jsonl", "avro": "base64"}


@dataclass
class _Reading:
    """What one model's file says of itself while it is rendered."""

    parents: list[str] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    increasing: bool = False
    """Whether the SQL is for a table that is there."""


class Parser:
    """Reads a project's files; all mistakes are gathered and raised at once."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.problems = Problems()
        self.nodes: dict[str, Node] = {}
        self.reading = _Reading()
        files = (path.stem for path in (project.root / "models").rglob("*.sql"))
        self.models = {*VIEWS, *(source.model for source in project.sources), *files}
        self.case_queries: dict[tuple[str, str], FormatQuery] = {}
        self.renderer = Renderer(
            project.macro_folders,
            {
                **MACRO_GLOBALS,
                "ref": self._ref,
                "source": self._source,
                "config": self._config,
                "var": lambda key, default=None: variable(project.vars, key, default),
                "env_var": env_var,
                "target": project.target,
                "is_incremental": lambda: self.reading.increasing,
            },
        )

    def nodes_of_project(self) -> dict[str, Node]:
        for source in self.project.sources:
            with self.problems.gathered():
                self._add_source(source)
        for view, description in VIEWS.items():
            sql = self.renderer.call(f"view_{view}", self.project.sources)
            parents = tuple(source.model for source in self.project.sources)
            self._add(
                Node(
                    view,
                    "model",
                    parents,
                    path=f"macros/views.sql#{view}",
                    description=description,
                    columns=_view_columns(view),
                    config={"materialized": "view"},
                    about=Model(sql, "view"),
                )
            )
        properties = [
            read for path in sorted((self.project.root / "models").rglob("*.yml")) if (read := self._read(path))
        ]
        described = self._described(properties)
        for path in sorted((self.project.root / "models").rglob("*.sql")):
            with self.problems.gathered():
                self._add_model(path, described.pop(path.stem, None))
        for model in [name for name in described if name in self.nodes]:
            with self.problems.gathered():
                self._describe(self.nodes[model], described.pop(model))
        for left in described.values():
            known = [n for n, node in self.nodes.items() if node.resource_type == "model"]
            self.problems.add(
                left["name"].error(
                    "model-unknown",
                    f'there is no model "{left["name"].value}"',
                    did_you_mean(left["name"].value, known),
                )
            )
        for source in self.project.sources:
            self._add_conserved(source)
        for file in properties:
            for entry in file["unit_tests"].list().elements() if file.get("unit_tests") else ():
                with self.problems.gathered():
                    self._add_unit_test(entry)
        self._add_cases()
        self.problems.raise_if_any()
        return self.nodes

    # --- sources and what is made from them

    def _add_source(self, source: Source) -> None:
        self._add(
            Node(
                f"source.{source.name}",
                "source",
                path="project.yml",
                description=source.description,
                format=source.format.name,
                where=source.where,
                about=source,
            )
        )
        query = compile_format(self.renderer, source.format, source.name, source.zone, source.tables)
        self._add(
            Node(
                source.model,
                "model",
                (f"source.{source.name}",),
                path=f"project.yml#{source.name}",
                description=f"the messages of source {source.name}, as rows of the changelog",
                config={"materialized": STREAMING},
                columns=COLUMNS,
                format=source.format.name,
                where=source.where,
                about=Model(query.sql, STREAMING, source, query.functions),
            )
        )

    def _add_conserved(self, source: Source) -> None:
        sql = self.renderer.call("test_conserved", source)
        test = DataTest("conserved", source.model, sql, source=source)
        self._add(
            Node(
                f"conserved_{source.name}",
                "test",
                (source.model,),
                path="project.yml",
                format=source.format.name,
                where=source.where,
                about=test,
            )
        )

    # --- models

    def _add_model(self, path: Path, described: Yaml | None) -> None:
        where = Where(path, 1)
        sql = self._render(path, increasing=False)
        if not sql.strip():
            raise RunnerError("model-empty", f'the model "{path.stem}" has no SQL', where)
        config = {
            **self._folder_config(path),
            **read_settings(described.get("config") if described else None),
            **self.reading.config,
        }
        materialized = config.get("materialized", "view")
        try:
            check_together(config)
        except RunnerError as e:
            raise RunnerError(e.code, e.message, where, e.hint) from None
        parents = self.reading.parents
        increment = None
        if materialized == "incremental":
            increment = Increment(
                self._render(path, increasing=True),
                listed(config.get("unique_key")),
                config.get("on_schema_change", "ignore"),
            )
            parents = [*parents, *self.reading.parents]
        tags = config.get("tags") or ()
        columns = {
            c["name"].text(): optional_text(c.get("description")) for c in entries(described, "columns", COLUMN_KEYS)
        }
        node = Node(
            path.stem,
            "model",
            tuple(dict.fromkeys(parents)),
            frozenset([tags] if isinstance(tags, str) else tags),
            self._relative(path),
            optional_text(described.get("description")) if described else "",
            {"materialized": materialized},
            columns,
            where=where,
            about=Model(sql, materialized, increment=increment),
        )
        self._add(node)
        if described:
            self._add_data_tests(node, described)

    def _render(self, path: Path, increasing: bool) -> str:
        self.reading = _Reading(increasing=increasing)
        return self.renderer.render(path, {"this": name(path.stem)})

    def _describe(self, node: Node, described: Yaml) -> None:
        """Gives a model that no file was written for its tests and a description of one's own."""
        if described.get("config"):
            raise described["config"].error(
                "config-fixed", f'"{node.name}" is made by the runner, and its config cannot be changed'
            )
        for column in entries(described, "columns", COLUMN_KEYS):
            if node.columns and column["name"].text() not in node.columns:
                raise column["name"].error(
                    "column-unknown",
                    f'"{node.name}" has no column "{column["name"].value}"',
                    nearest_or_all(column["name"].value, node.columns),
                )
        if described.get("description"):
            self.nodes[node.name] = replace(node, description=described["description"].text())
        self._add_data_tests(node, described)

    def _folder_config(self, path: Path) -> dict[str, Any]:
        """What project.yml says for the folders above a model, the nearest last; keys with a + are settings."""
        out: dict[str, Any] = {}
        level: Any = self.project.model_config
        for folder in ("", *path.relative_to(self.project.root / "models").parts[:-1]):
            level = level.get(folder, {}) if folder and isinstance(level, dict) else level if not folder else {}
            out |= {key.removeprefix("+"): value for key, value in level.items() if key.startswith("+")}
        return out

    def _ref(self, *names: Any) -> str:
        model = _one_name("ref", names)
        if model not in self.models:
            raise RunnerError("ref-unknown", f'there is no model "{model}"', hint=nearest_or_all(model, self.models))
        self.reading.parents.append(model)
        return name(model)

    def _source(self, *names: Any) -> str:
        source, known = _one_name("source", names), [s.name for s in self.project.sources]
        if source not in known:
            raise RunnerError("source-unknown", f'there is no source "{source}"', hint=nearest_or_all(source, known))
        self.reading.parents.append(f"source.{source}")
        return name(f"{source}_messages")

    def _config(self, *unnamed: Any, **settings: Any) -> str:
        if unnamed:
            raise RunnerError(
                "template", "config takes settings by name", hint="for instance: config(materialized='table')"
            )
        for key, value in settings.items():
            check_setting(key, value)
        self.reading.config |= settings
        return ""

    # --- properties and tests

    def _read(self, path: Path) -> Yaml | None:
        with self.problems.gathered():
            return read_yaml(path).only(PROPERTY_KEYS)
        return None

    def _described(self, files: Iterable[Yaml]) -> dict[str, Yaml]:
        out: dict[str, Yaml] = {}
        for file in files:
            for entry in entries(file, "models", MODEL_KEYS, self.problems):
                first = out.setdefault(entry["name"].text(), entry)
                if first is not entry:
                    self.problems.add(
                        entry.error(
                            "duplicate-key",
                            f'the model "{entry["name"].value}" is described twice',
                            f"also in {first.where()}",
                        )
                    )
        return out

    def _add_data_tests(self, node: Node, described: Yaml) -> None:
        for entry in described["data_tests"].as_list() if described.get("data_tests") else ():
            with self.problems.gathered():
                self._add_data_test(node, None, entry)
        for column in entries(described, "columns", COLUMN_KEYS):
            for entry in column["data_tests"].as_list() if column.get("data_tests") else ():
                with self.problems.gathered():
                    self._add_data_test(node, column["name"].text(), entry)

    def _add_data_test(self, node: Node, column: str | None, entry: Yaml) -> None:
        kind, arguments, severity = test_call(entry, self.models)
        if f"test_{kind}" not in self.renderer.macros or kind == "conserved":
            known = [
                m.removeprefix("test_") for m in self.renderer.macros if m.startswith("test_") and m != "test_conserved"
            ]
            raise entry.error("test-unknown", f'there is no data test "{kind}"', nearest_or_all(kind, known))
        named = {**arguments, **({"column": column} if column else {})}
        macro = self.renderer.macros[f"test_{kind}"]
        expected = [a for a in macro.arguments if a != "model"]
        if set(named) - set(expected) or self.renderer.required[f"test_{kind}"] - {"model", *named}:
            hint = 'under "columns" the column is given' if "column" in expected and not column else ""
            raise entry.error(
                "test-arguments",
                f'the data test "{kind}" takes {", ".join(expected) or "nothing"}, not {", ".join(named) or "nothing"}',
                hint,
            )
        self.reading = _Reading()
        sql = self.renderer.call(f"test_{kind}", model=name(node.name), **named)
        label = "_".join([kind, node.name, *([column] if column else [])])
        self._add(
            Node(
                self._free(label),
                "test",
                (node.name, *self.reading.parents),
                path=self._relative(entry.where().path),
                where=entry.where(),
                about=DataTest(kind, node.name, sql, severity),
            )
        )

    def _add_unit_test(self, entry: Yaml) -> None:
        entry.only(UNIT_TEST_KEYS)
        for key in ("name", "model", "given", "expect"):
            if not entry.get(key):
                raise entry.error("unit-test-missing", f'a unit test needs "{key}"')
        model = entry["model"].text()
        given = {
            ref_name(needed(g, "input")): rows(g) for g in entry["given"].list().elements() if g.only(["input", "rows"])
        }
        target = self.nodes.get(model)
        if target is None or target.resource_type != "model" or target.about.source:
            known = [n for n, node in self.nodes.items() if node.resource_type == "model" and not node.about.source]
            raise entry["model"].error(
                "model-unknown", f'there is no model "{model}" to test', nearest_or_all(model, known)
            )
        missing = [p for p in target.parents if p not in given]
        extra = [g for g in given if g not in target.parents]
        if missing or extra:
            what = (
                f"lacks rows for {', '.join(missing)}"
                if missing
                else f"gives rows for {', '.join(extra)}, which the model does not read"
            )
            raise entry["given"].error(
                "unit-test-given",
                f'the unit test of "{model}" {what}',
                f"inputs of the model: {', '.join(target.parents) or 'none'}",
            )
        test = UnitTest(model, given, rows(entry["expect"].only(["rows"])))
        self._add(
            Node(
                entry["name"].text(),
                "unit_test",
                (model,),
                path=self._relative(entry.where().path),
                description=optional_text(entry.get("description")),
                where=entry.where(),
                about=test,
            )
        )

    def _add_cases(self) -> None:
        """The cases of the formats that the project itself has."""
        own = self.project.root / "formats"
        folders = FormatFolders(self.project.format_folders)
        for path in sorted((own / "cases").glob("*/*.rows.yml")):
            with self.problems.gathered():
                self._add(self._case(folders, path))

    def _case(self, folders: FormatFolders, path: Path) -> Node:
        """The case of a `NAME.rows.yml` and the messages beside it."""
        yaml = read_yaml(path).only(["about", "source", "rows"])
        case_name, format_name = path.name.removesuffix(".rows.yml"), path.parent.name
        query = self._case_query(folders, format_name, yaml)
        messages = path.with_name(f"{case_name}.messages.{CASE_ENDINGS[query.encoding]}")
        if not messages.is_file():
            raise yaml.error(
                "case-messages", f'the case "{case_name}" has no messages', f"they belong in {messages.name}"
            )
        case = Case(query, f"{format_name}_messages", messages, rows(yaml))
        return Node(
            f"{format_name}.{case_name}",
            "unit_test",
            path=self._relative(path),
            description=optional_text(yaml.get("about")),
            format=format_name,
            where=yaml.where(),
            about=case,
        )

    def _case_query(self, folders: FormatFolders, format_name: str, case: Yaml) -> FormatQuery:
        source = case["source"].only(CASE_SOURCE_KEYS) if case.get("source") else Yaml({}, case.places)
        settings = (format_name, repr(source.value))
        if settings not in self.case_queries:
            schemas = read_schemas(source.get("schema"))
            written = source.get("format") or Yaml(format_name, case.places)
            spec = read_source_format(written, folders, format_name, schemas)
            self.case_queries[settings] = compile_format(
                self.renderer, spec, format_name, read_zone(source.get("zone")), read_tables(source.get("tables"))
            )
        return self.case_queries[settings]

    # --- names

    def _add(self, node: Node) -> None:
        taken = self.nodes.get(node.name)
        if taken:
            self.problems.add(
                RunnerError(
                    "name-taken",
                    f'the name "{node.name}" is taken',
                    node.where,
                    f"by {taken.resource_type} {taken.path}",
                )
            )
            return
        self.nodes[node.name] = node

    def _free(self, label: str) -> str:
        """The label, with a number if a test of that name is there."""
        names = [label, *(f"{label}_{number}" for number in range(2, 1000))]
        return next(n for n in names if n not in self.nodes)

    def _relative(self, path: Path) -> str:
        return path.relative_to(self.project.root).as_posix() if path.is_relative_to(self.project.root) else str(path)


def parse(project: Project) -> dict[str, Node]:
    """All nodes of the project by name; raises all mistakes in it at once."""
    return Parser(project).nodes_of_project()


def _view_columns(view: str) -> Mapping[str, str]:
    return {} if view.startswith("freshness") else COLUMNS


def _one_name(function: str, names: tuple[Any, ...]) -> str:
    if len(names) != 1 or not isinstance(names[0], str):
        raise RunnerError("template", f"{function} takes one name", hint=f"for instance: {function}('orders')")
    return names[0]
