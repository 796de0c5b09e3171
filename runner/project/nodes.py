"""What a project consists of: data only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.errors import Where
from runner.files import is_uri
from runner.project.test_config import TestConfig
from runner.secrets import Secrets
from runner.spec.words import Format
from runner.yaml_text import Yaml

MATERIALIZATIONS = ("view", "table", "incremental")
STREAMING = "streaming"
HISTORY = "_history"
SCHEMA_CHANGES = ("ignore", "fail", "append_new_columns", "sync_all_columns")


@dataclass(frozen=True)
class Catalog:
    """Where people find tables and views by name: a Spark catalog and a schema in it."""

    name: str
    schema: str


@dataclass(frozen=True)
class Target:
    """Where tables are stored, and how Spark is started. `path` is a folder or a URI, `spark` the settings of Spark,
    `remote` the address of a Spark Connect server.
    """

    name: str
    path: str
    storage: str = "parquet"
    spark: Mapping[str, str] = field(default_factory=dict)
    catalog: Catalog | None = None
    remote: str | None = None

    def at(self, name: str) -> str:
        return f"{self.path}/{name}"

    @property
    def schemas(self) -> str:
        """The folder of schemas from registries; empty if Python does not see the folder of the tables."""
        return "" if is_uri(self.path) else self.at("_schemas")


@dataclass(frozen=True)
class Topics:
    """What is read from Kafka. `options` are those of the connector, including secrets. `ending` is where the source
    ends: offsets (topic -> partition -> offset) or an instant in milliseconds. `by_time`: messages arrive in the order
    of their timestamps.
    """

    options: Mapping[str, str] = field(repr=False)
    ending: Mapping[str, Mapping[str, int]] | int | None = None
    by_time: bool = False


@dataclass(frozen=True)
class Messages:
    """Where a source's messages are. `kind` is files (text, one message per line), table (Parquet with a column
    `value`) or kafka; or, for Avro, one of these after `binary_`: files are then containers, lines of base64 or single
    messages. `path` is the place, also as people see it; for files it is a pattern. Messages of a container carry its
    schema unless it is one of `schemas`.
    """

    kind: str
    path: str
    schemas: tuple[str, ...] = ()
    topics: Topics | None = None

    @property
    def reach(self) -> str:
        """Where reading ends, as JSON; empty if it has no end."""
        return json.dumps(self.topics.ending) if self.topics and self.topics.ending is not None else ""

    @property
    def local_pattern(self) -> str | None:
        """The pattern of files that this machine sees; None for topics and for other file systems."""
        path = self.path.removeprefix("file://")
        return None if self.topics or is_uri(path) else path


@dataclass(frozen=True)
class TableSettings:
    """What a source declares about a table because messages do not say it. `name` are the parts of its name, of which
    the first may be missing; `columns` are column -> type.
    """

    name: tuple[str, ...]
    key: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    zone: str | None = None
    origin: Yaml = field(default_factory=lambda: Yaml({}, {}), repr=False, compare=False)


@dataclass(frozen=True)
class Source:
    """Messages of one format, and where they come from. `zone` is the time zone of their local times. `generation` is
    the number of the full load to which what lands belongs.
    """

    name: str
    format: Format
    messages: Messages
    zone: str | None
    description: str
    where: Where
    tables: tuple[TableSettings, ...] = ()
    generation: int = 0

    @property
    def model(self) -> str:
        """The name of the model that lands its messages."""
        return f"{self.name}_to_changelog"


# --- where the SQL of a model comes from


@dataclass(frozen=True)
class SqlFile:
    """A file in models/."""

    path: Path


@dataclass(frozen=True)
class SqlText:
    """SQL from the command line."""

    text: str


@dataclass(frozen=True)
class SourcesView:
    """A view over the changelog tables of all sources, printed by the macro `view_<name>`."""

    name: str
    sources: tuple[Source, ...]


# --- mirrors


@dataclass(frozen=True)
class MirroredTable:
    """A table whose changes a source tells. `name` are the parts of its name, of which the first may be missing. `rows`
    is the view of the changes that are to be read; if it is empty, all are.
    """

    source: Source
    name: tuple[str, ...]
    rows: str = ""


@dataclass(frozen=True)
class MirrorColumn:
    """A column of a mirror. `sent_as` are other names under which messages send it."""

    name: str
    type: str
    sent_as: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mirror:
    """
    A table as it is in its database, typed, made of its changes. Changes of a later table of `tables` come after those
    of an earlier one. `where` is an expression over the columns, and rows for which it is not true are left out.

    `without_key` says what becomes of changes of a table without a key; `on_truncate` and `on_drift` what happens when
    the table is emptied, and when it has columns that the mirror has not, except those that are `left_out`.
    """

    name: str
    tables: tuple[MirroredTable, ...]
    key: tuple[str, ...]
    columns: tuple[MirrorColumn, ...]
    without_key: str = "reject"
    on_truncate: str = "delete"
    on_drift: str = "warn"
    left_out: tuple[str, ...] = ()
    where: str = ""

    @property
    def takes_increments(self) -> bool:
        """Whether new changes alone say which rows change: not without a key, not where halves of an update must find
        each other, and not where the source of a row does not tell which of the tables it was in.
        """
        has_halves = any(table.source.format.has_halves for table in self.tables)
        return bool(self.key) and not has_halves and len(self.models) == len(self.tables)

    @property
    def drift(self) -> str:
        """What is done with columns that it does not have."""
        return f"{self.on_drift} {json.dumps(sorted(self.left_out))}"

    @property
    def state_columns(self) -> tuple[str, ...]:
        """The columns of the table that has its rows as they are."""
        own = ("_changed_at", "_seq", "_source", "_in_parts", "_unfit")
        return (*(column.name for column in self.columns), *own)

    @property
    def history_columns(self) -> tuple[str, ...]:
        """The columns of the table that has its versions."""
        own = ("valid_from", "valid_to", "is_current", "op", "_changed_at", "_seq", "_source", "_unfit")
        return (*(column.name for column in self.columns), *own)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that land its changes."""
        return tuple(dict.fromkeys(table.source.model for table in self.tables))


# What the names of the tables beside mirrors end with.
BESIDE = {"state": "__gone", "history": "__known"}


@dataclass(frozen=True)
class MirrorQuery:
    """The rows of a mirror, printed by the macro `mirror_<shows>`: its `state` or its `history`."""

    mirror: Mirror
    shows: str

    @property
    def model(self) -> str:
        """The name of the model that has these rows."""
        return f"{self.mirror.name}{HISTORY}" if self.shows == "history" else self.mirror.name

    @property
    def beside(self) -> str:
        """The name of the table beside it: up to where rows are known that are gone, or all rows of a history."""
        return f"{self.model}{BESIDE[self.shows]}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its table."""
        return self.mirror.history_columns if self.shows == "history" else self.mirror.state_columns


# --- what a node is


@dataclass(frozen=True)
class Model:
    """`query` is where its SQL comes from: for a model that lands messages, their source. New rows of an incremental
    model replace rows with the same values of `unique_key`; without a key they are added to the others.
    `on_schema_change` says what happens when its columns have changed. `new_rows` are the nodes of which it reads, in
    each run, only the rows that it has not read yet.
    """

    query: Source | SqlFile | SqlText | SourcesView | MirrorQuery
    materialized: str
    unique_key: tuple[str, ...] = ()
    on_schema_change: str = "ignore"
    new_rows: tuple[str, ...] = ()

    @property
    def source(self) -> Source | None:
        """The source that it lands."""
        return self.query if isinstance(self.query, Source) else None

    @property
    def mirror(self) -> Mirror | None:
        """The mirror whose rows it has."""
        return self.query.mirror if isinstance(self.query, MirrorQuery) else None

    @property
    def reads_all_sources(self) -> bool:
        """Whether it is a view over the changelogs of all sources."""
        return isinstance(self.query, SourcesView)

    @property
    def is_table(self) -> bool:
        """Whether a run writes it to a table."""
        return self.materialized != "view"

    @property
    def is_incremental(self) -> bool:
        return self.materialized == "incremental"


@dataclass(frozen=True)
class DataTest:
    """The macro `test_<kind>` returns the rows of `model` that fail, or the SQL at `file` does, which is a test of no
    model in particular. `source` is set for a test of what was read from a source.
    """

    kind: str
    model: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    config: TestConfig = field(default_factory=TestConfig)
    source: Source | None = None
    file: SqlFile | None = None

    @property
    def mirror(self) -> Mirror | None:
        """The mirror whose query it runs again, on what that has read."""
        query = self.arguments.get("query")
        return query.mirror if isinstance(query, MirrorQuery) else None


@dataclass(frozen=True)
class UnitTest:
    """Rows are YAML values: text, None, lists and dicts. Of what is in `new_rows`, the model takes all given rows as
    new.
    """

    model: str
    given: Mapping[str, list[Mapping[str, Any]]]
    expect: list[Mapping[str, Any]]
    new_rows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """A unit test of a format. `path` is a file `NAME.rows.yml` with the rows that the format must make of the messages
    beside it; it is read only when the case is compiled.
    """

    format: str
    path: Path


@dataclass(frozen=True)
class FunctionTest:
    """The unit tests of a SQL function in one file; they are read only when they are compiled."""

    function: str
    tests: Yaml = field(repr=False, compare=False)


Subject = Source | Model | DataTest | UnitTest | Case | FunctionTest


@dataclass(frozen=True)
class Node:
    """One thing that can be selected. `parents` are names of nodes; `path` is relative to the project."""

    name: str
    resource_type: str
    subject: Subject
    parents: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()
    path: str = ""
    description: str = ""
    config: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    format: str | None = None
    where: Where | None = None

    @property
    def model(self) -> Model | None:
        """The subject, if it is a model."""
        return self.subject if isinstance(self.subject, Model) else None

    @property
    def names(self) -> tuple[str, ...]:
        """Its name, and that of the table beside it."""
        query = self.model and self.model.query
        return (self.name, query.beside) if isinstance(query, MirrorQuery) else (self.name,)

    @property
    def writes_table(self) -> bool:
        """Whether running it writes a table with its name."""
        if isinstance(self.subject, DataTest):
            return self.subject.config.store_failures
        return bool(self.model and self.model.is_table)

    @property
    def data_test(self) -> DataTest | None:
        """The subject, if it is a data test."""
        return self.subject if isinstance(self.subject, DataTest) else None


@dataclass(frozen=True)
class Project:
    """A project as written, for one target."""

    root: Path
    name: str
    target: Target
    vars: Mapping[str, str]
    sources: tuple[Source, ...]
    model_config: Mapping[str, Any]
    format_folders: tuple[Path, ...]
    macro_folders: tuple[Path, ...]
    target_path: Path
    secrets: Secrets = field(default_factory=Secrets, repr=False, compare=False)
