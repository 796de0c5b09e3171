"""What a format says, as data: the words of the spec language of `formats/*.yml`, and what they are read into."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from runner.yaml_text import Yaml

Path = tuple[str, ...]

ROW_OPS = ("insert", "update", "delete", "snapshot")
DDL_OPS = ("create", "alter", "drop", "truncate", "rename", "index", "other")
CONTROL_OPS = ("heartbeat", "begin", "commit", "rollback", "watermark", "tombstone", "other")
OPS = {"row": ROW_OPS, "ddl": DDL_OPS, "control": CONTROL_OPS}
BARE_OPS = {op: kind for kind, ops in OPS.items() for op in ops if op != "other"}
BY_STATEMENT = "by_statement"

CLASSES = (
    "integer", "bit", "decimal", "float", "double", "boolean", "string", "enum", "set", "json", "xml", "array", "vector", "map", "range",
    "interval", "uuid", "binary", "raw", "geometry", "date", "time", "datetime", "timestamp", "zoned",
)  # fmt: skip
VALUE_READERS = (
    "as_sent", "local", "zoned", "epoch_s", "epoch_ms", "epoch_ms_nanos", "iso_t", "base64", "hex", "latin1", "java_bytes", "ordinal", "mask",
)  # fmt: skip
TIME_READERS = ("epoch_s", "epoch_ms", "local")
ORDER_READERS = ("numbers", "local")
META = (
    "db_type", "db_version", "protocol_version", "message_id", "gtid", "scn", "rowid", "checkpoint", "source_identity", "source_system",
    "cluster", "thread", "transaction_position", "log_position", "unique_keys", "clustertime", "previous_commit_time", "connector", "server",
    "prefix", "content",
)  # fmt: skip

TEXT_COLUMNS = ("tenant", "db_name", "schema_name", "table_name", "tx_id", "pair_id", "statement")
TIME_COLUMNS = ("event_time", "produced_at")
ENCODINGS = ("json", "avro")
NUMBERS = ("exact", "quoted")
PARTS = ("year", "month", "day", "hour", "minute", "second", "milli", "micro", "nano", "negative", "epoch_s", "zone")
KEY_TEXTS = ("json",)
IMAGE_TEXTS = ("mongo_shell",)
IMAGE_KINDS = ("full", "partial", "key", "patch")
MERGED = {(), ("message",), ("op",), ("op", "cases"), ("values",), ("records",), ("meta",)}


@dataclass(frozen=True)
class Field:
    """A field that a value may come from. `unknown` are the texts that stand for "not known"; `pattern` is a regular
    expression whose one
    group is taken, of what stands behind the text of the field `behind`, and `dot` is what stands for a dot in it;
    `count` is how many
    numbers the reader `numbers` takes."""

    path: Path
    reader: str = "text"
    unknown: tuple[str, ...] = ()
    pattern: str | None = None
    behind: Path | None = None
    dot: str | None = None
    count: int = 1


@dataclass(frozen=True)
class Switch:
    """A value chosen by the text of another, in any case of letters; a text with a trailing * stands for all that begin
    with it.
    """

    by: Value
    cases: Mapping[str, Value]
    missing: Value
    otherwise: Value


Value = tuple["Field | Switch", ...]
"""The places a value may come from; the first that gives something."""


def fields_of(value: Value) -> Iterator[Field]:
    """All fields that a value may read."""
    for choice in value:
        if isinstance(choice, Field):
            yield choice
        else:
            for part in (choice.by, *choice.cases.values(), choice.missing, choice.otherwise):
                yield from fields_of(part)


@dataclass(frozen=True)
class Condition:
    """`test` is one of is, is_not, has, lacks; `texts` are what is and is_not compare with."""

    test: str
    path: Path
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Image:
    """Where a row image lies: the first of `at` that holds a row, laid over the image at `over` if there is one. `text`
    is the language of
    an image that is a text of its own, `completeness` what the vendor at best puts into it. Where values stand by
    position, `names` is the
    list of their columns, `value` and `type` are the members of records that hold a value and the name of its type."""

    at: tuple[Path, ...]
    over: Path | None = None
    text: str | None = None
    completeness: str = "full"
    names: Path | None = None
    value: str | None = None
    type: str | None = None


@dataclass(frozen=True)
class DdlSwitch:
    """The op of a DDL chosen by a value; None takes it from the statement."""

    by: Value
    cases: Mapping[str, str | None]
    otherwise: str | None


@dataclass(frozen=True)
class Line:
    """What a message is. `op` is None where the statement or `ddl` tells, the reason for a dead letter. The images hold
    for row changes only;
    `half` is the side of an update whose other side is a message of its own; `columns` are values that hold for this
    line.
    """

    kind: str
    op: str | None
    conditions: tuple[Condition, ...] = ()
    phase: int = 1
    before: Image | None = None
    after: Image | None = None
    half: str | None = None
    ddl: DdlSwitch | None = None
    columns: Mapping[str, Value] = field(default_factory=dict, hash=False)
    label: str = ""

    @property
    def own_side(self) -> str:
        """The side of the image that the rows are counted by: where there is one after the change, that."""
        return "before" if self.op == "delete" or self.half == "before" else "after"

    @property
    def own(self) -> Image | None:
        return self.before if self.own_side == "before" else self.after

    @property
    def verdict(self) -> str:
        """The line in words, as compiled SQL carries it: kind, op, and what tells it from other lines with the same
        two.
        """
        return " ".join(word for word in (self.kind, self.op or BY_STATEMENT, self.half, self.label) if word)


@dataclass(frozen=True)
class Op:
    by: Value
    first: tuple[Line, ...]
    cases: Mapping[str, tuple[Line, ...]]
    missing: tuple[Line, ...]
    otherwise: tuple[Line, ...]
    empty: Line

    def lines(self) -> list[Line]:
        """All lines, each once, in the order in which a message is compared with them."""
        groups = [self.first, *self.cases.values(), self.missing, self.otherwise]
        return list({line.verdict + repr(line.conditions): line for group in groups for line in group}.values())


@dataclass(frozen=True)
class TypeTable:
    """Type name, in lower case and without parameters -> class, and -> reader where the name says how its values are
    written.
    """

    name: str
    classes: Mapping[str, str]
    readers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TypeTables:
    """The table of a message's type names: the case that the value `by` fits, in any case of letters; else `otherwise`."""

    by: Value
    cases: Mapping[str, TypeTable | None]
    otherwise: TypeTable | None

    def all(self) -> list[TypeTable]:
        return list({table.name: table for table in (*self.cases.values(), self.otherwise) if table}.values())


@dataclass(frozen=True)
class Types:
    """Where a message tells the columns' types: maps column -> type at `at`, lists of objects if `name` is given; the
    types are the members
    `value` of the entries if those are objects. With no `at`, messages tell none and the tables are for columns
    declared at a source.
    """

    at: tuple[Path, ...]
    name: str | None
    value: tuple[str, ...]
    tables: TypeTables | None

    def all_tables(self) -> list[TypeTable]:
        return self.tables.all() if self.tables else []


@dataclass(frozen=True)
class Key:
    """Where a message names its key: the columns at `names` or `columns`, with values joined by `split` at `values`; or
    both in the image at
    `image`. With `indexes` these are positions in the list at `names`; with `text` the last part of `names` is a member
    of a document in a text.
    """

    names: tuple[Path, ...] = ()
    indexes: Path | None = None
    text: str | None = None
    columns: tuple[str, ...] = ()
    values: tuple[Path, ...] = ()
    split: str | None = None
    image: Image | None = None


@dataclass(frozen=True)
class Message:
    """How messages are written. `schemas` are texts, the first that a message fits counts; `skip_bytes` stand before
    each record.
    """

    encoding: str = "json"
    numbers: str = "exact"
    schemas: tuple[str, ...] = ()
    skip_bytes: int = 0


@dataclass(frozen=True)
class RecordText:
    """How a value that is a record becomes text. `classes` are by the name of its type, `else` for all others. The text
    is at `text`, or that of
    the bytes at `bytes` (in the charset named at `charset`, whose codec is in `charsets`; behind the number at `srid`),
    or is made of `parts`. `labels` and
    `length` are what enums and bits need. Of an enum, the symbols that stand for null and for no value at all."""

    classes: Mapping[str, str]
    text: Path = ()
    bytes: Path = ()
    charset: Path = ()
    charsets: Mapping[str, str] = field(default_factory=dict)
    srid: Path = ()
    parts: Mapping[str, Path] = field(default_factory=dict)
    labels: Path = ()
    length: Path = ()
    is_null: tuple[str, ...] = ()
    not_sent: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dropped:
    """A member of rows that is no column of the table, where the conditions hold."""

    name: str
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Format:
    """A spec, resolved and checked. `columns` are the contract's plain columns that it fills, `readers` class -> the
    readers to try in turn.
    """

    name: str
    about: str
    docs: str
    message: Message
    records: Mapping[str, RecordText]
    each: tuple[Path, ...]
    op: Op
    columns: Mapping[str, Value]
    key: tuple[Key, ...]
    types: Types | None
    readers: Mapping[str, tuple[str, ...]]
    seq: tuple[Value, ...]
    meta: Mapping[str, Value]
    drop: tuple[Dropped, ...]
    not_sent: tuple[str, ...]
    zone: str | None
    origin: Yaml = field(repr=False, compare=False)

    @property
    def has_halves(self) -> bool:
        """Whether updates may come as two messages."""
        return any(line.half for line in self.op.lines())
