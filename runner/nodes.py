"""What a project consists of: data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.errors import Where
from runner.layout import AvroFunction
from runner.readers import TableSettings
from runner.spec import Format

MATERIALIZATIONS = ("view", "table")
STREAMING = "streaming"
STORAGES = ("parquet",)
MESSAGE_KINDS = ("files", "table", "binary_files", "binary_table")


@dataclass(frozen=True)
class Target:
    """Where tables are kept, and how Spark is started for it. `path` is a folder, `spark` its settings."""

    name: str
    path: Path
    storage: str = "parquet"
    spark: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Messages:
    """Where a source's messages are: `kind` is files (text, one message a line) or table (Parquet with a column `value`), or one of these with
    `binary_` before it: files of containers, lines of base64 or single messages, and the same table. `schemas` are those
    that messages of containers need not bring with them."""

    kind: str
    path: str
    schemas: tuple[str, ...] = ()


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
class Model:
    """`sql` is the compiled SELECT; `source` is set on the models that land a source's messages, whose SQL may call `functions`."""

    sql: str
    materialized: str
    source: Source | None = None
    functions: tuple[AvroFunction, ...] = ()


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
