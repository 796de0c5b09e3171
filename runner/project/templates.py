"""The templates of a project: `ref`, `source`, `config` and other functions in them, and the nodes that each reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from runner.contract import MACRO_GLOBALS
from runner.errors import Problems, RunnerError, Where, nearest_or_all, placed
from runner.project import dbt_hints
from runner.project.inputs import Source
from runner.project.macro_calls import constant_calls
from runner.project.nodes import DataTest, Node, Overrides, Project
from runner.project.settings import check_setting
from runner.project.variables import NOT_GIVEN, public_env_var, secret_in_model, variable
from runner.render import Renderer, Signature, TracingRenderer, name
from runner.sandbox import Trace
from runner.storage.known import STORAGES
from runner.yaml_text import Yaml


@dataclass
class Reading:
    """The facts that a template gives about its node: the nodes that it reads, and the settings of a model or of a
    test.
    """

    is_test: bool = False
    parents: list[str] = field(default_factory=list)
    new_rows: list[str] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)


class Templates:
    """The models and macros of a project; `awaited` are names that models may get later. Not safe for several threads,
    except for macros that name no models.
    """

    def __init__(
        self,
        project: Project,
        models: Iterable[str],
        foreign: Iterable[tuple[Node, Yaml]] = (),
        awaited: Iterable[re.Pattern[str]] = (),
    ) -> None:
        self.awaited = tuple(awaited)
        self.models, self.secrets, self.target = set(models), project.secrets, project.target
        self.project, self.sources = project.name, {source.name: source for source in project.sources}
        self.vars = project.vars
        # Name of a table that the runner does not make -> its node, and its YAML.
        self.foreign = {node.name: (node, written) for node, written in foreign}
        # Node -> the name of its table or view; empty while nodes are read.
        self.relations: Mapping[str, str] = {}
        self.reading = Reading()
        self.building = ""
        self.is_incremental = False
        self.overrides = Overrides()
        self.functions: dict[str, Callable[..., Any]] = {
            "ref": self._ref,
            "source": self._source,
            "new_rows": self._new_rows,
            "changelog_of": self._changelog_of,
            "config": self._config,
            "var": self._var,
            "env_var": public_env_var,
        }
        scope = {
            "target": project.target,
            "is_incremental": self._is_incremental,
            "read_rows_view": read_rows_view,
        }
        self.folders, self.scope = project.macro_folders, {**MACRO_GLOBALS, **self.functions, **scope}
        self.renderer = Renderer(self.folders, self.scope, instead=dbt_hints.IN_TEMPLATES, namespace=self.project)

    # --- what a template says about its node

    def read(self, path: Path) -> Reading:
        """Returns the reading of a model's file, for its first run and for later ones together."""
        calls = constant_calls(self.renderer.parse(path), self.functions)
        self.reading, self.building = Reading(), path.stem
        if calls is None:
            return self._read_by_rendering(path)
        try:
            for function, arguments, named, line in calls:
                with placed(Where(path, line)):
                    self.functions[function](*arguments, **named)
        except TypeError:  # other arguments than the function has: rendering says where
            return self._read_by_rendering(path)
        return self.reading

    def _read_by_rendering(self, path: Path) -> Reading:
        self.sql(path)
        if self.reading.config.get("materialized") != "incremental":
            return self.reading
        first = self.reading
        self.sql(path, is_incremental=True)
        later = self.reading
        return Reading(False, [*first.parents, *later.parents], [*first.new_rows, *later.new_rows], first.config)

    def read_test(self, kind: str, model: str, arguments: Mapping[str, Any]) -> Reading:
        """Returns the reading of a data test: the nodes that it reads besides its model, and its settings."""
        self.test_sql(kind, model, arguments)
        return self.reading

    # --- SQL

    def sql(self, path: Path, is_incremental: bool = False) -> str:
        """Returns the SQL of a model's file; with `is_incremental` the SQL that runs once its table exists."""
        self._begin(path, is_incremental)
        return self._shown(self.renderer.render(path, self._context(path)), Where(path))

    def overridden_sql(self, path: Path, overrides: Overrides, where: Where | None) -> str:
        """Returns the SQL of a model's file with other variables, and with texts in place of what its macros print."""
        self.overrides = overrides
        try:
            self._begin(path, overrides.is_incremental)
            texts = {macro: self.renderer.constant(macro, text, where) for macro, text in overrides.macros.items()}
            return self._shown(self.renderer.render(path, {**self._context(path), **texts}), Where(path))
        finally:
            self.overrides = Overrides()

    def trace(self, path: Path, sql: str, is_incremental: bool = False) -> Trace | None:
        """Returns, for the SQL of a model's file, the places that it comes from: in the file itself and in macros of
        the project. None if the places cannot be told, because the templates look at what macros print.
        """
        own = [folder for folder in self.folders if folder != self.renderer.built_in]
        for folders in (own, []):
            marked = partial(_is_in, [path, *folders])
            with suppress(RunnerError):
                self._begin(path, is_incremental)
                renderer = TracingRenderer(self.folders, self.scope, marked, self.project)
                trace = renderer.trace(path, self._context(path))
                if trace.text == sql.strip():
                    return trace
        return None

    def _begin(self, path: Path, is_incremental: bool) -> None:
        self.reading, self.building, self.is_incremental = Reading(), path.stem, is_incremental

    def test_sql(self, kind: str, model: str, arguments: Mapping[str, Any], where: str = "") -> str:
        """Returns the query of the rows of a model that fail a data test, among those for which `where` is true."""
        self.reading, self.building = Reading(is_test=True), ""
        return self._shown(self.renderer.call(f"test_{kind}", model=self._rows(model, where), **arguments))

    def passing(self, test: DataTest) -> str | None:
        """Returns the aggregate of a table that is true if no row fails a data test; None if the kind of test has none.
        The aggregate stands beside the query of the rows that fail. If a project has replaced that query, there is no
        aggregate.
        """
        query, aggregate = (self.renderer.files.get(f"{of}_{test.kind}") for of in ("test", "passes"))
        if aggregate is None or aggregate != query:
            return None
        self.reading, self.building = Reading(), ""
        return self.renderer.call(f"passes_{test.kind}", **test.arguments).strip()

    def tested_together(self, model: str, where: str, passing: Mapping[str, str]) -> str:
        """Returns the query of one row: for each data test of a model, whether no row with a true `where` fails."""
        return self._shown(self.renderer.call("tested_together", self._rows(model, where), passing))

    def _rows(self, model: str, where: str) -> str:
        """Returns the rows of a model, or of a table that the runner does not make, for which `where` is true."""
        table = self._table_named(model)
        return self.renderer.call("rows_where", table, where).strip() if where else table

    def _table_named(self, node: str) -> str:
        """Returns the name in SQL of a model, or of a table that the runner does not make."""
        if node not in self.foreign:
            return name(self._relation(node))
        return self.call("external_table", self.foreign[node][0].subject).strip()

    def singular_test_sql(self, path: Path) -> str:
        """Returns the query of the rows that fail the test of a file."""
        self.reading, self.building = Reading(is_test=True), ""
        return self._shown(self.renderer.render(path, {}), Where(path))

    def read_singular_test(self, path: Path) -> Reading:
        """Returns the reading of the file of a test."""
        self.singular_test_sql(path)
        return self.reading

    def expand(self, text: str, where: Where, this: str = "") -> tuple[str, Reading]:
        """Returns a text with its `{{ }}` replaced by their values, and the nodes that the text reads. `this` is the
        name of its own table.
        """
        self.reading, self.building = Reading(), ""
        return self._shown(self.renderer.expand(text, where, {"this": this} if this else {}), where), self.reading

    def read_by_hooks(self, path: Path, hooks: Iterable[str]) -> tuple[str, ...]:
        """Returns the nodes that the hooks of a model read."""
        this = name(path.stem)
        return tuple(parent for sql in hooks for parent in self.expand(sql, Where(path, 1), this)[1].parents)

    def table(self, relation: str) -> str:
        """Returns the name in SQL of a table outside of this session."""
        return STORAGES[self.target.storage].table_of(self.target, self.call, relation)

    def _relation(self, node: str) -> str:
        """Returns the name of the table or view of a node."""
        return self.relations.get(node, node)

    def _context(self, path: Path) -> dict[str, str]:
        """Returns the names that only one model's template sees."""
        return {"this": name(self._relation(path.stem))}

    def _shown(self, sql: str, where: Where | None = None) -> str:
        """Returns the SQL; raises `secret-in-model` if it holds a secret."""
        secret = self.secrets.named_in(sql)
        if secret is None:
            return sql
        raise secret_in_model(secret).at(where)

    def call(self, macro: str, *arguments: Any) -> str:
        """Returns the text that a macro prints."""
        return self.renderer.call(macro, *arguments)

    def tests(self) -> dict[str, Signature]:
        """Returns the arguments of each data test, by its name."""
        prefix = "test_"
        named = [macro for macro in self.renderer.names() if macro.startswith(prefix)]
        return {macro.removeprefix(prefix): self.renderer.signature(macro) for macro in named}

    def is_built_in(self, macro: str) -> bool:
        """Returns True if the project has not replaced a built-in macro by its own."""
        return macro not in self.renderer.own

    # --- what templates call

    def _ref(self, *names: Any) -> str:
        if len(names) == 2 and names[0] != self.project:
            message = f'there is no project "{names[0]}"'
            raise RunnerError("ref-unknown", message, hint=f'there are no packages: this project is "{self.project}"')
        model = _one_name("ref", names[-1:] if len(names) == 2 else names)
        if model not in self.models and not self.awaits(model):
            raise RunnerError("ref-unknown", f'there is no model "{model}"', hint=nearest_or_all(model, self.models))
        self.reading.parents.append(model)
        return name(self._relation(model))

    def awaits(self, model: str) -> bool:
        """Returns True if a model may be the mirror of a table that has not landed yet."""
        return any(pattern.fullmatch(model) for pattern in self.awaited)

    def _var(self, name: str, default: Any = NOT_GIVEN) -> Any:
        return variable({**self.vars, **self.overrides.vars}, name, default)

    def _is_incremental(self) -> bool:
        return self.is_incremental

    def _new_rows(self, *names: Any) -> str:
        self._ref(*names)
        if not self.building:
            raise RunnerError("new-rows", "new_rows is only for incremental models", hint="ref shows all rows")
        self.reading.new_rows.append(names[-1])
        return name(new_rows_view(self.building, names[-1]))

    def _source(self, *names: Any) -> str:
        if len(names) == 2:
            return self._foreign(f"{names[0]}.{names[1]}")
        source = self._source_named(_one_name("source", names))
        self.reading.parents.append(f"source.{source.name}")
        return name(f"{source.name}_messages")

    def _changelog_of(self, *names: Any) -> str:
        """Returns the view `changelog`, of one source alone."""
        source = self._source_named(_one_name("changelog_of", names))
        self.reading.parents.append(source.model)
        return f"({self.call('view_changelog', [source]).strip()})"

    def _source_named(self, source: str) -> Source:
        if source not in self.sources:
            hint = nearest_or_all(source, self.sources)
            raise RunnerError("source-unknown", f'there is no source "{source}"', hint=hint)
        return self.sources[source]

    def _foreign(self, label: str) -> str:
        name = f"source.{label}"
        if name not in self.foreign:
            known = [node.label for node, _ in self.foreign.values()]
            hint = nearest_or_all(label, known) or "a YAML file in models/ declares it under sources"
            raise RunnerError("source-unknown", f'there is no source "{label}"', hint=hint)
        self.reading.parents.append(name)
        return self._table_named(name)

    def _config(self, *unnamed: Any, **settings: Any) -> str:
        if unnamed:
            raise RunnerError(
                "template", "config takes settings by name", hint="for instance: config(materialized='table')"
            )
        problems = Problems()
        for key, value in settings.items() if not self.reading.is_test else ():
            with problems.gathered():
                check_setting(key, value)
        problems.raise_if_any()
        self.reading.config |= settings
        return ""


def _is_in(places: Iterable[Path], path: Path) -> bool:
    return any(path.is_relative_to(place) for place in places)


def read_rows_view(model: str, read: str) -> str:
    """
    Returns the name of the view of those rows of a model that another model has read.

    >>> read_rows_view("orders", "shop_to_changelog")
    'orders__rows_read_of__shop_to_changelog'
    """
    return f"{model}__rows_read_of__{read}"


def new_rows_view(model: str, read: str) -> str:
    """
    Returns the name of the view of those rows of a model that another model has not read yet.

    >>> new_rows_view("daily_changes", "changelog")
    'daily_changes__new_rows_of__changelog'
    """
    return f"{model}__new_rows_of__{read}"


# Function -> its arguments.
TAKES = {
    "ref": "the name of a model, after the project's name or alone",
    "source": "the name of a source of messages, or a source and its table",
    "changelog_of": "the name of a source of messages",
}


def _one_name(function: str, names: tuple[Any, ...]) -> str:
    if len(names) != 1 or not isinstance(names[0], str):
        hint = f"for instance: {function}('orders')"
        raise RunnerError("template", f"{function} takes {TAKES[function]}", hint=hint)
    return names[0]
