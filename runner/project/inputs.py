"""The places of messages and of tables: data only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runner.errors import Where
from runner.files import is_uri
from runner.spec.words import Format
from runner.yaml_text import Yaml


@dataclass(frozen=True)
class Catalog:
    """The names of tables and views for people: a Spark catalog and a schema in it."""

    name: str
    schema: str


@dataclass(frozen=True)
class Target:
    """A place for tables, and the settings of Spark for it. `path` is a folder or a URI, `spark` the settings of Spark,
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
    """The tables of another target. They are read in place of tables of these `names` that are not here."""

    target: Target
    names: frozenset[str]


@dataclass(frozen=True)
class Topics:
    """The topics that are read from Kafka. `options` are those of the connector, including secrets. `ending` is where
    the source ends: offsets (topic -> partition -> offset) or an instant in milliseconds. `by_time` is True if messages
    arrive in the order of their timestamps.
    """

    options: Mapping[str, str] = field(repr=False)
    ending: Mapping[str, Mapping[str, int]] | int | None = None
    by_time: bool = False


# The forms of files in which each line of text is a whole record of a topic.
DUMPS = ("json", "console")
# The ending of files with records of topics as this project writes them, with key, headers and value.
RECORDS = ".records.jsonl"


@dataclass(frozen=True)
class Messages:
    """The place of a source's messages. `kind` is files (text, one message per line), one of DUMPS before `_files`,
    table (Parquet with a column `value`) or kafka; or, for Avro, files, table or kafka after `binary_`: files are then
    containers, lines of base64 or single messages. `path` is the place, also as people see it; for files it is a
    pattern. Messages of a container carry its schema unless it is one of `schemas`.
    """

    kind: str
    path: str
    schemas: tuple[str, ...] = ()
    topics: Topics | None = None

    @property
    def reach(self) -> str:
        """The end of reading, as JSON; empty if reading has no end."""
        return json.dumps(self.topics.ending) if self.topics and self.topics.ending is not None else ""

    @property
    def local_pattern(self) -> str | None:
        """The pattern of files that this machine sees; None for topics and for other file systems."""
        path = self.path.removeprefix("file://")
        return None if self.topics or is_uri(path) else path


@dataclass(frozen=True)
class TableSettings:
    """The settings of a table that its source declares because messages do not say them. `name` are the parts of the
    table's name, of which the first may be missing; `columns` are column -> type.
    """

    name: tuple[str, ...]
    key: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    zone: str | None = None
    origin: Yaml = field(default=Yaml({}, {}), repr=False, compare=False)


# Period -> its seconds.
PERIODS = {"minute": 60, "hour": 3600, "day": 86400}


@dataclass(frozen=True)
class Age:
    """An age of `count` minutes, hours or days."""

    count: int
    period: str

    @property
    def seconds(self) -> int:
        return self.count * PERIODS[self.period]

    def __str__(self) -> str:
        """Returns the age in words.

        >>> str(Age(1, "day")), str(Age(6, "hour"))
        ('1 day', '6 hours')
        """
        return f"{self.count} {self.period}{'' if self.count == 1 else 's'}"


@dataclass(frozen=True)
class Freshness:
    """The thresholds of a source: the ages after which there is a warning, and an error. Rows for which `filter` is not
    true do not count.
    """

    warn_after: Age | None = None
    error_after: Age | None = None
    filter: str = ""


ANY_AGE = Freshness()


@dataclass(frozen=True)
class Source:
    """Messages of one format, and their place. `zone` is the time zone of their local times. `generation` is the number
    of the full load to which new rows belong. `written` is the source's entry in project.yml.
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
        """The name of the model that lands the messages of this source."""
        return f"{self.name}_to_changelog"


@dataclass(frozen=True)
class ExternalTable:
    """A table that something else fills. `place` are the parts of its name in a catalog, or the table is in a `folder`,
    in a `storage` that Spark reads. `loaded_at` is an expression for the time when a row came.
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
