"""What a project consists of: data only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.compile.avro import AvroFunction
from runner.compile.readers import TableSettings
from runner.errors import Where
from runner.spec.words import Format

MATERIALIZATIONS = ("view", "table", "incremental")
STREAMING = "streaming"
SCHEMA_CHANGES = ("ignore", "fail", "append_new_columns", "sync_all_columns")


@dataclass(frozen=True)
class Catalog:
    """Where people find tables and views by name: a catalog of Spark's, and the schema in it."""

    name: str
    schema: str


@dataclass(frozen=True)
class Target:
    """Where tables are kept, and how Spark is started for it. `path` is a folder or a URI, `spark` its settings,
    `remote` a server of Spark Connect.
    """

    name: str
    path: str
    storage: str = "parquet"
    spark: Mapping[str, str] = field(default_factory=dict)
    catalog: Catalog | None = None
    remote: str | None = None

    def at(self, name: str) -> str:
        return f"{self.path}/{name}"


@dataclass(frozen=True)
class Topics:
    """What is read of Kafka: `options` are the connector's own, secrets among them. `ending` are the offsets (topic ->
    partition -> offset) or
    the instant (milliseconds) behind which messages are not the source's."""

    options: Mapping[str, str] = field(repr=False)
    ending: Mapping[str, Mapping[str, int]] | int | None = None
    by_time: bool = False


@dataclass(frozen=True)
class Messages:
    """Where a source's messages are: `kind` is files (text, one message a line), table (Parquet with a column `value`)
    or kafka, or one of these with
    `binary_` before it: files of containers, lines of base64 or single messages, and the same table and topics. `path`
    says where, for people too.
    `schemas` are those that messages of containers need not bring with them."""

    kind: str
    path: str
    schemas: tuple[str, ...] = ()
    topics: Topics | None = None

    @property
    def reach(self) -> str:
        """How far messages are read, where that has an end."""
        return json.dumps(self.topics.ending) if self.topics and self.topics.ending is not None else ""


@dataclass(frozen=True)
class Source:
    name: str
    format: Format
    messages: Messages
    zone: str | None
    description: str
    where: Where
    tables: tuple[TableSettings, ...] = ()

    @property
    def model(self) -> str:
        return f"{self.name}_to_changelog"


@dataclass(frozen=True)
class Node:
    """One thing that can be selected. `parents` are names of nodes; `path` is relative to the project."""

    name: str
    resource_type: str
    parents: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()
    path: str = ""
    description: str = ""
    config: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    format: str | None = None
    where: Where | None = None
    about: Any = None
    """What kind of node it is: a Source, Model, DataTest, UnitTest or Case."""


@dataclass(frozen=True)
class FormatQuery:
    """The SELECT that a format compiles to, and the functions that it calls beside those of every session."""

    sql: str
    encoding: str
    functions: tuple[AvroFunction, ...] = ()


@dataclass(frozen=True)
class Increment:
    """How a table takes in what is new: `sql` is the SELECT once there is a table; rows with the same values of `key`
    replace each other, without
    one all are added; `on_schema_change` is what happens when the columns are others."""

    sql: str
    key: tuple[str, ...] = ()
    on_schema_change: str = "ignore"


@dataclass(frozen=True)
class Model:
    """`sql` is the compiled SELECT; `source` is set on the models that land a source's messages, whose SQL may call
    `functions`.
    """

    sql: str
    materialized: str
    source: Source | None = None
    functions: tuple[AvroFunction, ...] = ()
    increment: Increment | None = None


@dataclass(frozen=True)
class DataTest:
    """`sql` returns the rows that fail; a test of what was read has the source in place of SQL that can run alone."""

    kind: str
    model: str
    sql: str
    severity: str = "error"
    source: Source | None = None


@dataclass(frozen=True)
class UnitTest:
    """Rows are YAML values: text, None, lists and dicts."""

    model: str
    given: Mapping[str, list[Mapping[str, Any]]]
    expect: list[Mapping[str, Any]]


@dataclass(frozen=True)
class Case:
    """A file of messages and the changelog rows that a format must make of them; the query reads the view `view`."""

    query: FormatQuery
    view: str
    messages: Path
    rows: list[Mapping[str, Any]]


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
