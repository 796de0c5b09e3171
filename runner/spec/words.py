"""The data of a format: the types into which the specs `formats/*.yml` are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from runner.errors import Where
from runner.functions.avro.layout import Records, Registry
from runner.spec.vocabulary import BY_STATEMENT, Frames
from runner.yaml_text import Yaml

Result = TypeVar("Result")


class FieldPath(tuple[str, ...]):
    """The names that lead to a field of a message, and the place in the spec where they are written.

    A path compares, hashes, prints and pickles as a plain tuple. Its place has no influence on compiled SQL. Executors
    do not have this class, and can still read data that holds a path.

    >>> FieldPath(["a", "b"]), FieldPath(["a", "b"]).parent, FieldPath(["a"]).child("b") == ("a", "b")
    (('a', 'b'), ('a',), True)
    """

    where: Where | None

    def __new__(cls, parts: Iterable[str] = (), where: Where | None = None) -> FieldPath:
        path = super().__new__(cls, parts)
        path.where = where
        return path

    def __reduce__(self) -> tuple[type[tuple[str, ...]], tuple[tuple[str, ...]]]:
        return tuple, (tuple(self),)

    @property
    def parent(self) -> FieldPath:
        """The path without its last name."""
        return FieldPath(self[:-1], self.where)

    def child(self, name: str) -> FieldPath:
        """Returns the path with one more name."""
        return FieldPath((*self, name), self.where)


@dataclass(frozen=True)
class Field:
    """A field that a value may come from. `unknown` are the texts that stand for "not known". `pattern` is a regular
    expression with one group, which is the value, for the text that follows the text of the field `behind`; with
    `may_lack_it`, a text without that prefix is the value itself. `dot` stands for a dot in the value. `count` is how
    many numbers the readers `numbers` and `last_numbers` take. `shift` is how many of a number's lowest bits do not
    count.
    """

    path: FieldPath
    reader: str = "text"
    unknown: tuple[str, ...] = ()
    pattern: str | None = None
    behind: FieldPath | None = None
    may_lack_it: bool = False
    dot: str | None = None
    count: int = 1
    shift: int = 0


@dataclass(frozen=True)
class Switch(Generic[Result]):
    """A choice by the text of a value, in any case of letters: of another value, of the op of a DDL (None takes the op
    from the statement), or of the table of a message's type names. A text that ends in * matches all texts that begin
    like it. `missing` is chosen if there is no text.
    """

    by: Value
    cases: Mapping[str, Result]
    missing: Result
    otherwise: Result

    def groups(self) -> list[tuple[list[str], Result]]:
        """Returns the results with their texts, in order; neighbouring texts with the same result are together.

        >>> Switch((), {"A": 1, "B": 1, "C": 2, "D": 1}, 0, 0).groups()
        [(['A', 'B'], 1), (['C'], 2), (['D'], 1)]
        """
        out: list[tuple[list[str], Result]] = []
        for text, result in self.cases.items():
            if out and out[-1][1] == result:
                out[-1][0].append(text)
            else:
                out.append(([text], result))
        return out


Value = tuple["Field | Switch[Value]", ...]
"""The places a value may come from; the first that is not null counts."""


def fields_of(value: Value) -> Iterator[Field]:
    """Returns all fields that a value may read."""
    for choice in value:
        if isinstance(choice, Field):
            yield choice
        else:
            for part in (choice.by, *choice.cases.values(), choice.missing, choice.otherwise):
                yield from fields_of(part)


@dataclass(frozen=True)
class Condition:
    """A condition. `test` is one of `is`, `is_not`, `has`, `lacks`, and `holds`, which is true of an image that has a
    column. `texts` are the texts that `is` and `is_not` compare with.
    """

    test: str
    path: FieldPath
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Image:
    """The place of a row image: the first of `at` that holds a row. If `over` is set, the columns missing in the image
    come from the image at that path. `text` is the language of an image that is a text itself. `completeness` is the
    most columns that the vendor puts into the image. For values by position, `names` is the list of their columns,
    `value` and `type` are the members of a record that hold a value and the name of its type. With `name`, the image is
    a list of objects, which hold a column in `name` and its value in `value`; a text is only the value of the column
    `name`. With `value` alone, the image is an object of objects, each with the value of its column. With `prefix`,
    only members whose names begin so are columns of the image, and the rest of the name names the column. `removed` is
    the list of the columns that a patch removes.
    """

    at: tuple[FieldPath, ...]
    over: FieldPath | None = None
    text: str | None = None
    completeness: str = "full"
    names: FieldPath | None = None
    value: str | None = None
    type: str | None = None
    name: str | None = None
    prefix: str | None = None
    removed: FieldPath | None = None

    @property
    def has_members(self) -> bool:
        return bool(self.value) and not (self.names or self.name)


@dataclass(frozen=True)
class Line:
    """A rule that says what a message is. `op` is None where the statement or `ddl` decides, and the reason for a dead
    letter. Images are set for row changes only. `half` is the side that this message brings of an update that comes as
    two messages. `columns` are values that hold for this line only. `label` separates lines that have the same kind, op
    and half. `tells` are the fields that the detail of a dead letter has beside those of its conditions.
    """

    kind: str
    op: str | None
    conditions: tuple[Condition, ...] = ()
    before: Image | None = None
    after: Image | None = None
    half: str | None = None
    ddl: Switch[str | None] | None = None
    columns: Mapping[str, Value] = field(default_factory=dict, hash=False)
    label: str = ""
    tells: tuple[FieldPath, ...] = ()

    @property
    def detail_paths(self) -> tuple[FieldPath, ...]:
        """The fields that the detail of a dead letter has, each once."""
        return tuple(dict.fromkeys((*(condition.path for condition in self.conditions), *self.tells)))

    @property
    def own_side(self) -> str:
        """The side whose image decides how many rows there are: the side after the change, if the change has one."""
        return "before" if self.op == "delete" or self.half == "before" else "after"

    @property
    def own(self) -> Image | None:
        return self.before if self.own_side == "before" else self.after

    @property
    def verdict(self) -> str:
        """The kind, op, half and label of the line in words, as compiled SQL carries them."""
        return " ".join(word for word in (self.kind, self.op or BY_STATEMENT, self.half, self.label) if word)

    def means(self, other: Line) -> bool:
        """Returns True if both lines say the same of the same messages."""
        return (self.verdict, self.conditions) == (other.verdict, other.conditions)


@dataclass(frozen=True)
class Op:
    """The order of the lines that a message is compared with: `first`, then the case of the text at `by`, `missing` if
    there is no such text, and `otherwise` if no case fits. `empty` is for a message without a body; one of its lines
    fits each such message.
    """

    by: Value
    first: tuple[Line, ...]
    cases: Mapping[str, tuple[Line, ...]]
    missing: tuple[Line, ...]
    otherwise: tuple[Line, ...]
    empty: tuple[Line, ...]

    def lines(self) -> list[Line]:
        """Returns all lines, each once, in the order in which a message is compared with them."""
        groups = [self.empty, self.first, *self.cases.values(), self.missing, self.otherwise]
        return list({line.verdict + repr(line.conditions): line for group in groups for line in group}.values())

    def groups(self) -> list[tuple[list[str], Line]]:
        """Returns the lines of the cases with their texts, in order; neighbouring texts that mean the same are
        together.
        """
        out: list[tuple[list[str], Line]] = []
        for text, lines in self.cases.items():
            for line in lines:
                if not line.conditions and len(lines) == 1 and out and out[-1][1].means(line):
                    out[-1][0].append(text)
                else:
                    out.append(([text], line))
        return out

    @property
    def is_switch(self) -> bool:
        """True if each case is one text with one line that has no conditions."""
        return bool(self.cases) and all(
            not text.endswith("*") and len(lines) == 1 and not lines[0].conditions for text, lines in self.cases.items()
        )

    @property
    def misses_as_others(self) -> bool:
        """True if a message without a text is treated like a message with an unknown text."""
        pairs = zip(self.missing, self.otherwise)
        return len(self.missing) == len(self.otherwise) and all(one.means(other) for one, other in pairs)


@dataclass(frozen=True)
class TypeTable:
    """A table of types. `classes` maps the name of a type, in lower case and without parameters, to its class.
    `readers` maps a name to the readers that belong to this type alone.
    """

    name: str
    classes: Mapping[str, str]
    readers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Types:
    """The places where a message names the types of columns. `at` holds maps column -> type, or lists of objects that
    hold the column in `name`. Where entries are objects, the type is in their members `value`. Without `at`, messages
    name no types, and the tables are for columns declared at a source. The values at `params` in an entry follow its
    type, in brackets, with commas between. With `names`, types are in step with the list of columns there. `flags` are
    bits, from 0, of the number in the member `flag`, with words that follow the type if the bit is set. `default` is
    the member with the column's default. `items` is the member with the type of an array's elements, written as that of
    a column. With `schema`, `at` are images, and the types are what the first of these attributes says in the schema of
    their columns; the attributes `params` follow.
    """

    at: tuple[FieldPath, ...]
    name: str | None
    value: tuple[str, ...]
    tables: Switch[TypeTable | None] | None
    params: tuple[FieldPath, ...] = ()
    names: FieldPath | None = None
    flag: str | None = None
    flags: tuple[tuple[int, str], ...] = ()
    default: str | None = None
    items: str | None = None
    schema: tuple[str, ...] = ()

    def all_tables(self) -> list[TypeTable]:
        """Returns the tables of types that a message may need, each once."""
        tables = (*self.tables.cases.values(), self.tables.otherwise) if self.tables else ()
        return list({table.name: table for table in tables if table}.values())


@dataclass(frozen=True)
class Key:
    """The places where a message names its key. The columns are at `names`, as a list or as a text in which `split`
    stands between them, or are `columns`; their values, joined by `split`, are at `values`, or in the members of
    `image`. With `indexes`, the key is given as positions in the list at `names`. With `text`, the last part of each of
    `names` is a member of the document in the text before it. With `members`, the key columns are the members of the
    object at that path. If a list of objects is there, `member` holds the name. Of members that are objects, only those
    count in which `flag` is true. With `is_value`, the text of the image is the value of the only column.
    """

    names: tuple[FieldPath, ...] = ()
    indexes: FieldPath | None = None
    text: str | None = None
    columns: tuple[str, ...] = ()
    values: tuple[FieldPath, ...] = ()
    split: str | None = None
    image: Image | None = None
    is_value: bool = False
    members: FieldPath | None = None
    member: str | None = None
    flag: str | None = None


@dataclass(frozen=True)
class Message:
    """The encoding of messages. `schemas` are texts of schemas; the first that a message fits counts. `skip_bytes` is
    the number of bytes before each record. `optional` are the fields that schemas may lack. Paths start at the first of
    the objects at `root`; an empty path is the whole message. A message may be a list, or have a list at `batch`, whose
    elements are messages of their own; or its key and value are `frames`, and each pair of frames is a message.
    Messages that name their schemas do so in `number_bytes` after a zero byte; these schemas are `known`, or in a
    `registry`, and `schemas` are only what the spec is checked with.
    """

    encoding: str = "json"
    numbers: str = "exact"
    schemas: tuple[str, ...] = ()
    skip_bytes: int = 0
    optional: tuple[FieldPath, ...] = ()
    root: tuple[FieldPath, ...] = ()
    batch: FieldPath | None = None
    frames: Frames | None = None
    number_bytes: int = 0
    known: Mapping[int, str] = field(default_factory=dict)
    registry: Registry | None = None

    @property
    def has_parts(self) -> bool:
        """True if a message may hold several messages."""
        return bool(self.batch or self.frames)

    def may_be_lacking(self, path: FieldPath) -> bool:
        """Returns True if a schema may lack this field, or a field that this field is in."""
        return any(path[: len(one)] == one for one in self.optional)


@dataclass(frozen=True)
class Format:
    """A spec, resolved and checked. `columns` are the plain columns of the contract that the spec fills. `readers` maps
    a class to the readers to try in turn. `each` are the lists whose elements are rows. `loads` says how loaded rows
    are numbered. `drop` are members of rows that are no columns of the table, each with the conditions for that.
    `not_sent` maps the type of a column, empty for any type, to texts that mean "not sent"; a text with a
    `*` stands for all that begin so. `meant` are conditions that hold in messages that the format is for, where other
    messages are written alike.
    """

    name: str
    about: str
    docs: str
    message: Message
    records: Records
    each: tuple[FieldPath, ...]
    op: Op
    columns: Mapping[str, Value]
    key: tuple[Key, ...]
    types: Types | None
    readers: Mapping[str, tuple[str, ...]]
    seq: tuple[Value, ...]
    meta: Mapping[str, Value]
    drop: tuple[tuple[str, tuple[Condition, ...]], ...]
    not_sent: Mapping[str, tuple[str, ...]]
    loads: str
    zone: str | None
    meant: tuple[Condition, ...]
    origin: Yaml = field(repr=False, compare=False)

    @property
    def has_halves(self) -> bool:
        """True if updates may come as two messages."""
        return any(line.half for line in self.op.lines())
