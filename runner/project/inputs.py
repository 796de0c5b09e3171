"""The places of messages and of tables: data only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
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


# The forms of files in which each line of text is a whole record of a topic, or a row that repairs a mirror.
DUMPS = ("json", "console", "repair")
# The ending of files with records of topics as this project writes them, with key, headers and value.
RECORDS = ".records.jsonl"


@dataclass(frozen=True)
class Dump:
    """The files of a dump, in a form such as csv, with names of columns in a first line or not. `null` is the text of a
    null value. `tables` are the declared tables with their columns. `taken_at` is the instant of the dump as a text,
    empty if it is not known.
    """

    form: str
    has_header: bool = False
    null: str = ""
    tables: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()
    taken_at: str = ""


@dataclass(frozen=True)
class Jdbc:
    """A query of a database. `options` are those of Spark's reader, including secrets. `url` is the address of the
    database, without a login, and `folder` the place for the result.
    """

    options: Mapping[str, str] = field(repr=False)
    url: str
    folder: str


@dataclass(frozen=True)
class Messages:
    """The place of a source's messages. `kind` is files (text, one message per line), one of DUMPS before `_files`,
    table (Parquet with a column `value`) or kafka; or, for Avro, files, table or kafka after `binary_`: files are then
    containers, lines of base64 or single messages; or rows_files, whose rows are read as `dump` says. `path` is the
    place, also as people see it; for files it is a pattern. Messages of a container carry its schema unless it is one
    of `schemas`. If there is a query `jdbc`, its result is written to the files before they are read.
    """

    kind: str
    path: str
    schemas: tuple[str, ...] = ()
    topics: Topics | None = None
    dump: Dump | None = None
    jdbc: Jdbc | None = None

    @property
    def are_whole_files(self) -> bool:
        """True if a function in Python reads each file as a whole."""
        return self.kind in ("binary_files", "rows_files")

    @property
    def are_repairs(self) -> bool:
        """True if the messages are rows with which `runner verify --repair` repairs mirrors."""
        return self.kind == "repair_files"

    @property
    def reach(self) -> str:
        """The end of reading, as JSON; empty if reading has no end."""
        return json.dumps(self.topics.ending) if self.topics and self.topics.ending is not None else ""

    @property
    def local_pattern(self) -> str | None:
        """The pattern of files that this machine sees; None for topics and for other file systems."""
        path = self.path.removeprefix("file://")
        return None if self.topics or is_uri(path) else path


# Masks of columns, and the name that stands for all columns that have none of their own.
HASHED, SHOWN, FUNCTION, OTHER_COLUMNS = "hmac", "none", "function", "*"


@dataclass(frozen=True)
class TableSettings:
    """The settings of a table that its source declares because messages do not say them. `name` are the parts of the
    table's name, of which the first may be missing; `columns` are column -> type; `masks` say what becomes of columns
    whose values nobody may see, by their names in lower case. If `has_masked_key`, columns of the key may be masked.
    """

    name: tuple[str, ...]
    key: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    zone: str | None = None
    masks: Mapping[str, str] = field(default_factory=dict)
    has_masked_key: bool = False
    origin: Yaml = field(default=Yaml({}, {}), repr=False, compare=False)


def masked_tables(tables: Iterable[TableSettings]) -> tuple[TableSettings, ...]:
    """Returns the tables of which columns are masked, those with longer names first."""
    return tuple(sorted((table for table in tables if table.masks), key=lambda table: -len(table.name)))


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
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Limit:
    """A number of dead letters or, if it `is_share`, a share of the messages in percent."""

    number: Decimal
    is_share: bool = False

    def is_reached(self, dead_letters: int, messages: int) -> bool:
        """Returns True if so many dead letters of so many messages are as many as the limit, or more.

        >>> Limit(Decimal(2)).is_reached(1, 9), Limit(Decimal(1), True).is_reached(2, 200)
        (False, True)
        """
        most = self.number * messages / 100 if self.is_share else self.number
        return dead_letters > 0 and dead_letters >= most

    def __str__(self) -> str:
        return f"{self.number} %" if self.is_share else str(self.number)


@dataclass(frozen=True)
class Waiver:
    """Dead letters that are expected: those with a `reason` and, if they are named, with a detail of the shape of
    `detail`, and in a `table`, of whose name the first parts may be missing. `because` says why they are expected,
    `until` is the last day on which the waiver holds, `where` the place at which it is written.
    """

    reason: str
    detail: str
    table: tuple[str, ...]
    because: str
    until: date | None
    where: Where | None = field(default=None, repr=False, compare=False)

    def has_ended(self, today: date) -> bool:
        return self.until is not None and self.until < today

    def waives_same_as(self, other: Waiver) -> bool:
        return (self.reason, self.detail, self.table) == (other.reason, other.detail, other.table)


@dataclass(frozen=True)
class DeadLetterLimits:
    """The limits of a source for the dead letters that a run, or a batch of a stream, has landed: from `warn` on the
    run warns, from `fail` on it fails; None for no limit. Dead letters that are `waived` do not count.
    """

    warn: Limit | None = Limit(Decimal(1))
    fail: Limit | None = Limit(Decimal(1), True)
    waived: tuple[Waiver, ...] = ()


@dataclass(frozen=True)
class Place:
    """The place in the log of changes at which a dump was taken. `kind` says how a change is compared with it: by its
    `numbers`, in one of the `logs` if any are named; by its global transaction id, which is one of `ids`: server, first
    and last number; by its transaction, which a snapshot sees unless its number is `until` or later or one of `open`;
    or by its time. `time` is in microseconds, None if it is not known.
    """

    kind: str
    numbers: tuple[int, ...] = ()
    logs: tuple[str, ...] = ()
    ids: tuple[tuple[str, int, int], ...] = ()
    until: int = 0
    open: tuple[int, ...] = ()
    time: int | None = None

    @property
    def instant(self) -> str:
        """The time as a text, empty if it is not known."""
        return "" if self.time is None else instant_of(self.time)


def instant_of(time: int) -> str:
    """Returns an instant in microseconds since 1970 as a text.

    >>> instant_of(1_500_000)
    '1970-01-01T00:00:01.500000Z'
    """
    return (EPOCH + timedelta(microseconds=time)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


# The ending of the names of models that land the messages of sources.
CHANGELOG = "_to_changelog"


# The messages whose text a source keeps: of all, of dead letters, or of none.
ALL, DEAD_LETTERS, NONE = RAW_KEPT = ("all", "dead_letters", "none")


@dataclass(frozen=True)
class RawKept:
    """The messages whose text is kept beside their rows: `all`, those of dead_letters, or none. `days` is for how long
    the texts of messages that are no dead letters are kept, None for as long as their rows.
    """

    which: str = DEAD_LETTERS
    days: int | None = None

    @property
    def are_all(self) -> bool:
        return self.which == ALL


@dataclass(frozen=True)
class Source:
    """Messages of one format, and their place. `zone` is the time zone of their local times. `generation` is the number
    of the full load to which new rows belong. `at` is the place in the log at which its rows were taken, if it is
    named. `dead_letters` are the limits for its dead letters, `raw` the messages that are kept. `written` is the
    source's entry in project.yml, `renamed_from` are names that it had before.
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
    at: Place | None = None
    dead_letters: DeadLetterLimits = DeadLetterLimits()
    raw: RawKept = RawKept()
    written: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    renamed_from: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def masked(self) -> tuple[TableSettings, ...]:
        """The tables of which columns are masked, those with longer names first."""
        return masked_tables(self.tables)

    @property
    def model(self) -> str:
        """The name of the model that lands the messages of this source."""
        return f"{self.name}{CHANGELOG}"


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
