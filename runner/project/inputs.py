"""Where messages come from and where tables are: data only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runner.errors import Where
from runner.files import is_uri
from runner.project.freshness import ANY_AGE, Freshness
from runner.spec.words import Format
from runner.yaml_text import Yaml


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
class Deferred:
    """The tables of another target, which are read in place of those of these names that are not here."""

    target: Target
    names: frozenset[str]


@dataclass(frozen=True)
class Topics:
    """What is read from Kafka. `options` are those of the connector, including secrets. `ending` is where the source
    ends: offsets (topic -> partition -> offset) or an instant in milliseconds. `by_time`: messages arrive in the order
    of their timestamps.
    """

    options: Mapping[str, str] = field(repr=False)
    ending: Mapping[str, Mapping[str, int]] | int | None = None
    by_time: bool = False


# Lines of text that have a whole record of a topic each, by how they are written.
DUMPS = ("json", "console")
# How the names of files end that have such records as this project writes them, with key, headers and value.
RECORDS = ".records.jsonl"


@dataclass(frozen=True)
class Messages:
    """Where a source's messages are. `kind` is files (text, one message per line), one of DUMPS before `_files`, table
    (Parquet with a column `value`) or kafka; or, for Avro, files, table or kafka after `binary_`: files are then
    containers, lines of base64 or single messages. `path` is the place, also as people see it; for files it is a
    pattern. Messages of a container carry its schema unless it is one of `schemas`.
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
    the number of the full load to which what lands belongs. `written` is its entry in project.yml.
    """

    name: str
    format: Format
    messages: Messages
    zone: str | None
    description: str
    where: Where
    tables: tuple[TableSettings, ...] = ()
    generation: int = 0
    freshness: Freshness = ANY_AGE
    written: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def model(self) -> str:
        """The name of the model that lands its messages."""
        return f"{self.name}_to_changelog"


@dataclass(frozen=True)
class ExternalTable:
    """A table that something else fills. `place` are the parts of its name in a catalog, or it is in a folder, in a
    `storage` that Spark reads. `loaded_at` is an expression of when a row came.
    """

    group: str
    name: str
    place: tuple[str, ...]
    folder: str = ""
    storage: str = ""
    loaded_at: str = ""
    freshness: Freshness = ANY_AGE

    @property
    def label(self) -> str:
        return f"{self.group}.{self.name}"
