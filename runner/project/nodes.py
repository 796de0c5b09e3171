"""The nodes of a project, and the graph of which node reads which."""

from __future__ import annotations

import graphlib
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.errors import Problems, RunnerError, Where, nearest_or_all
from runner.files import is_uri
from runner.project.inputs import ExternalTable, Source, Target
from runner.project.mask_secret import MaskSecret
from runner.project.mirror import Mirror, MirrorQuery
from runner.project.notifications import Hook, OpenLineage
from runner.project.properties import Contract, TestConfig
from runner.secrets import Secrets
from runner.storage.data import Layout
from runner.yaml_text import Yaml

MATERIALIZATIONS = ("view", "table", "incremental", "ephemeral")
# Materializations without a table. A run leaves nothing of an ephemeral model.
QUERIES = ("view", "ephemeral")
STREAMING = "streaming"
SEED = "seed"
# Types of nodes that are only declared: their names contain the type, and no command runs them.
DECLARED = ("source", "exposure")
# Types of nodes that are selected together with what they test.
TESTS = ("test", "unit_test")
SCHEMA_CHANGES = ("ignore", "fail", "append_new_columns", "sync_all_columns")


# --- where the SQL of a model comes from


@dataclass(frozen=True)
class SeedFile:
    """A file of comma-separated values in seeds/. `types` are those of columns that are not to be told by their values;
    columns of other names are not changed.
    """

    path: Path
    delimiter: str = ","
    types: Mapping[str, str] = field(default_factory=dict)

    @property
    def view(self) -> str:
        """The name of the view of the values as they stand in the file."""
        return f"{self.path.stem}__file"


@dataclass(frozen=True)
class SourcesView:
    """A view over the changelog tables of all sources, printed by the macro `view_<name>`."""

    name: str
    sources: tuple[Source, ...]


# --- what a node is


@dataclass(frozen=True)
class Model:
    """A model. `query` is the origin of its SQL: a file in models/, SQL from the command line or, for a model that
    lands messages, their source. New rows of an incremental model replace rows with the same values of `unique_key`;
    without a key they are added to the others. `on_schema_change` says what happens when its columns have changed.
    `new_rows` are the nodes of which the model reads, in each run, only the rows that it has not read yet. `pre_hook`
    and `post_hook` are templates of statements that run before and after it is built. `layout` is how its table is
    kept, `contract` the promise about its columns; an incremental model that `replaces_partitions` puts new rows in
    place of all rows of their partitions. `alias` is the name of its table or view, if that is another one.
    `renamed_from` are names that its table had before.
    """

    query: Source | Path | str | SeedFile | SourcesView | MirrorQuery
    materialized: str
    unique_key: tuple[str, ...] = ()
    on_schema_change: str = "ignore"
    new_rows: tuple[str, ...] = ()
    pre_hook: tuple[str, ...] = ()
    post_hook: tuple[str, ...] = ()
    layout: Layout = field(default_factory=Layout)
    contract: Contract | None = None
    replaces_partitions: bool = False
    alias: str = ""
    renamed_from: tuple[str, ...] = ()

    @property
    def source(self) -> Source | None:
        """The source that this model lands; None for other models."""
        return self.query if isinstance(self.query, Source) else None

    @property
    def mirror(self) -> Mirror | None:
        """The mirror whose rows this model has; None for other models."""
        return self.query.mirror if isinstance(self.query, MirrorQuery) else None

    @property
    def seed(self) -> SeedFile | None:
        """The file whose rows this model has; None for other models."""
        return self.query if isinstance(self.query, SeedFile) else None

    @property
    def makes(self) -> str:
        """What the table of this model is, in a word."""
        return "source" if self.source else "mirror" if self.mirror else "seed" if self.seed else "model"

    @property
    def reads_all_sources(self) -> bool:
        """True if this model is a view over the changelogs of all sources."""
        return isinstance(self.query, SourcesView)

    @property
    def is_table(self) -> bool:
        """True if a run writes this model to a table."""
        return self.materialized not in QUERIES

    @property
    def is_ephemeral(self) -> bool:
        """True if this model has no table and no view: its query runs only as a part of queries that read the model."""
        return self.materialized == "ephemeral"

    @property
    def is_incremental(self) -> bool:
        return self.materialized == "incremental"

    @property
    def is_added_to(self) -> bool:
        """True if a run adds rows to the table of this model, unless the table is built again."""
        return bool(self.source or self.is_incremental or self.mirror or self.seed)


@dataclass(frozen=True)
class DataTest:
    """A data test. The macro `test_<kind>` returns the rows of `model` that fail, or the SQL at `file` does, which is a
    test of no model in particular. `source` is set for a test of the messages that were read from a source.
    """

    kind: str
    model: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    config: TestConfig = field(default_factory=TestConfig)
    source: Source | None = None
    file: Path | None = None

    @property
    def statements_of(self) -> Mirror | None:
        """The mirror whose statements this test looks at; None for other tests."""
        return self.arguments["mirror"] if self.kind == "followed" else None

    @property
    def values_of(self) -> Mirror | None:
        """The mirror of which this test looks for values that do not fit their types; None for other tests."""
        return self.arguments["mirror"] if self.kind == "fits" else None

    @property
    def mirror(self) -> Mirror | None:
        """The mirror whose query this test runs again, on the rows that the mirror has read; None for other tests."""
        query = self.arguments.get("query")
        return query.mirror if isinstance(query, MirrorQuery) else None


@dataclass(frozen=True)
class Exposure:
    """A use of models outside of the project: a dashboard, an application, a report."""

    properties: Mapping[str, Any]


@dataclass(frozen=True)
class Overrides:
    """The overrides of a unit test. `vars` are variables with other values. `macros` are texts that a model gets in
    place of what these macros print. With `is_incremental`, the model is rendered as if its table existed.
    """

    vars: Mapping[str, Any] = field(default_factory=dict)
    macros: Mapping[str, str] = field(default_factory=dict)
    is_incremental: bool = False


@dataclass(frozen=True)
class UnitTest:
    """A unit test of a model. Rows are YAML values: text, None, lists and dicts. Rows `given` for the model itself are
    the rows of its table. For nodes in `new_rows`, the model takes all given rows as new. With `overrides`, `file` is
    that of the model, which is rendered for the test.
    """

    model: str
    given: Mapping[str, list[Mapping[str, Any]]]
    expect: list[Mapping[str, Any]]
    new_rows: tuple[str, ...] = ()
    overrides: Overrides = field(default_factory=Overrides)
    file: Path | None = None


@dataclass(frozen=True)
class Case:
    """A unit test of a format. `path` is a file `NAME.rows.yml` with the rows that the format must make of the messages
    beside it; the file is read only when the case is compiled.
    """

    format: str
    path: Path


@dataclass(frozen=True)
class FunctionTest:
    """The unit tests of a SQL function in one file; they are read only when they are compiled."""

    function: str
    tests: Yaml = field(repr=False, compare=False)


Subject = Source | ExternalTable | Model | Exposure | DataTest | UnitTest | Case | FunctionTest


@dataclass(frozen=True)
class Node:
    """One part of a project that can be selected. `parents` are names of nodes; `path` is relative to the project."""

    name: str
    resource_type: str
    subject: Subject
    parents: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()
    path: str = ""
    description: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    format: str | None = None
    where: Where | None = None

    @property
    def label(self) -> str:
        """The name of this node among nodes of its type."""
        return self.name.removeprefix(f"{self.resource_type}.")

    @property
    def model(self) -> Model | None:
        """The subject of this node, if it is a model."""
        return self.subject if isinstance(self.subject, Model) else None

    @property
    def relation(self) -> str:
        """The name of the node's table or view. A table's folder, lock and checkpoint have this name too."""
        return (self.model and self.model.alias) or self.name

    @property
    def relations(self) -> tuple[str, ...]:
        """The name of the node's table or view, and that of the table beside it, if there is one."""
        query = self.model and self.model.query
        return (self.relation, query.beside) if isinstance(query, MirrorQuery) else (self.relation,)

    @property
    def runs(self) -> bool:
        """True if commands run this node: nodes that are only declared, and ephemeral models, are not run."""
        return self.resource_type not in DECLARED and not (self.model and self.model.is_ephemeral)

    @property
    def writes_table(self) -> bool:
        """True if running this node writes a table."""
        if isinstance(self.subject, DataTest):
            return self.subject.config.store_failures
        return bool(self.model and self.model.is_table)

    @property
    def is_test(self) -> bool:
        return self.resource_type in TESTS

    @property
    def data_test(self) -> DataTest | None:
        """The subject of this node, if it is a data test."""
        return self.subject if isinstance(self.subject, DataTest) else None


@dataclass(frozen=True)
class Project:
    """A project as written, for one target."""

    root: Path
    name: str
    target: Target
    vars: Mapping[str, Any]
    sources: tuple[Source, ...]
    model_config: Mapping[str, Any]
    seed_config: Mapping[str, Any]
    format_folders: tuple[Path, ...]
    macro_folders: tuple[Path, ...]
    target_path: Path
    secrets: Secrets = field(default_factory=Secrets, repr=False, compare=False)
    hooks: tuple[Hook, ...] = field(default=(), repr=False, compare=False)
    openlineage: OpenLineage | None = field(default=None, repr=False, compare=False)
    mask_secret: MaskSecret | None = field(default=None, repr=False, compare=False)
    target_names: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def beside_tables(self, name: str) -> Path:
        """Returns a folder of this machine: beside the tables or, where this machine does not see them, in the target
        path.
        """
        return self.target_path / name if is_uri(self.target.path) else Path(self.target.at(f"_{name}"))

    def relative(self, path: Path) -> str:
        """Returns a path as nodes have it: relative to the project's folder."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)


def compiled_path(project: Project, node: Node, is_increment: bool = False) -> Path:
    """Returns the file for the SQL of a node, or for what an incremental model runs once its table exists."""
    folder = "tests" if node.is_test else "models"
    path = project.target_path / "compiled" / project.name / folder / f"{node.name}.sql"
    return path.with_suffix(".increment.sql") if is_increment else path


# --- which node reads which


class Graph:
    """The nodes of a project and which node reads which. `project` is the project's name, which may stand before the
    names of its models; `disabled` are the names of models that are not enabled.
    """

    def __init__(self, nodes: Mapping[str, Node], project: str = "", disabled: frozenset[str] = frozenset()) -> None:
        self.nodes, self.project, self.disabled = nodes, project, disabled
        self._check_parents()
        self.parents: dict[str, tuple[str, ...]] = {name: node.parents for name, node in nodes.items()}
        self.children: dict[str, set[str]] = {name: set() for name in nodes}
        for name, parents in self.parents.items():
            for parent in parents:
                self.children[parent].add(name)
        self._order = self._sorted()

    @classmethod
    def of(cls, parents: Mapping[str, Iterable[str]]) -> Graph:
        """Returns a graph of plain models, from the names of their parents."""
        return cls(
            {
                name: Node(name, "model", Model("", "view"), tuple(read), path=f"models/{name}.sql")
                for name, read in parents.items()
            }
        )

    @property
    def former_tables(self) -> dict[str, Node]:
        """The names that tables had before, each with its node."""
        models = [(node, node.model) for node in self.nodes.values() if node.model and node.model.is_table]
        return {old: node for node, model in models for old in model.renamed_from}

    def with_node(self, node: Node) -> Graph:
        """Returns a graph that has one more node."""
        return Graph({**self.nodes, node.name: node}, self.project, self.disabled)

    def _check_parents(self) -> None:
        problems = Problems()
        models = [name for name, node in self.nodes.items() if node.model]
        for node in self.nodes.values():
            for parent in node.parents:
                if parent not in self.nodes:
                    message = f'"{node.label}" reads "{parent}", and there is no such model'
                    problems.add(RunnerError("ref-unknown", message, node.where, nearest_or_all(parent, models)))
        problems.raise_if_any()

    def order(self) -> list[str]:
        """Returns the names of all nodes: parents first, otherwise in alphabetical order.

        >>> Graph.of({"a": ["b"], "b": ["a"]})
        Traceback (most recent call last):
        runner.errors.RunnerError: error[cycle]: models read each other in a circle: a -> b -> a
        """
        return list(self._order)

    def _sorted(self) -> list[str]:
        sorter = graphlib.TopologicalSorter({name: sorted(self.parents[name]) for name in sorted(self.nodes)})
        try:
            return list(sorter.static_order())
        except graphlib.CycleError as e:
            circle = e.args[1][::-1]
            message = f"models read each other in a circle: {' -> '.join(circle)}"
            raise RunnerError("cycle", message, self.nodes[circle[0]].where) from None

    def upstream(self, names: Iterable[str], depth: int | None = None) -> set[str]:
        return _reached(set(names), self.parents, depth)

    def downstream(self, names: Iterable[str], depth: int | None = None, without: Set[str] = frozenset()) -> set[str]:
        """Returns the nodes that read these, directly or not. Nodes of `without` are left out, and so is all that is
        read only through them.
        """
        return _reached(set(names), self.children, depth, without)


def _reached(
    names: set[str], steps: Mapping[str, Iterable[str]], depth: int | None, without: Set[str] = frozenset()
) -> set[str]:
    seen: set[str] = set()
    frontier = names
    while frontier and (depth is None or depth > 0):
        frontier = {reached for name in frontier for reached in steps[name]} - seen - without
        seen |= frontier
        depth = depth if depth is None else depth - 1
    return seen
