"""The layout of a format's messages in Avro: the parts that the format reads, as data."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict, Union

if TYPE_CHECKING:
    import ssl


Names = tuple[str, ...]
"""The names that lead to a value, from the record of a message or from a record inside it."""

SlotTree = Mapping[str, Union[int, "SlotTree"]]
"""Names -> the number of a slot, or a tree of that kind."""


class RecordEntry(TypedDict):
    """The way in which the values of a named record or enum become text. All paths start at the record.

    `classes` maps the name of the value's type to its class; `else` stands for all other types. The text is at `text`,
    or decoded from the bytes at `bytes`, or made of `parts`. Bytes are in the charset named at `charset`, whose codec
    is in `charsets`, or follow the number at `srid`. `labels` and `length` are what enums and bits need. `is_null` and
    `not_sent` are the symbols of an enum that stand for null and for no value at all.
    """

    classes: Mapping[str, str]
    text: Names
    bytes: Names
    charset: Names
    charsets: Mapping[str, str]
    srid: Names
    parts: Mapping[str, Names]
    labels: Names
    length: Names
    is_null: tuple[str, ...]
    not_sent: tuple[str, ...]


Records = Mapping[str, RecordEntry]


@dataclass(frozen=True)
class Slot:
    """A value that is read from each message. `kind` is one of

    - text: the text of the value at `path`; JSON if it is not a scalar
    - scalar: the same, but null if it is not a scalar
    - texts, numbers: a list of texts or numbers; `path` may also lead to a member of the records in a list
    - names: a list of texts in the same way; a single text is a list of one
    - map: a map of texts
    - others: the text of a map without the members in `taken`; null if there are no others
    - row: a map of column -> value, or a record whose fields are the columns
    - rows: a list of such rows; a bare row counts as a list of one
    - types: what the schema calls the types of a row's columns, column -> name: the first of the attributes `names`
      that the schema of a value has, with its attributes `params`
    - positional: a list of values. If the values are members of records, `value` is the name of the member, and `type`
      the name of the member that says which type the value has

    Where columns have types that say how a text is to be read (`by_type`), an image names the columns whose values were
    not sent as text: these are settled. Where the schema names these types (`names`), only columns that the schema
    describes completely are settled.
    """

    path: Names
    kind: str
    value: str | None = None
    type: str | None = None
    taken: Names = ()
    by_type: bool = False
    names: Names = ()
    params: Names = ()


@dataclass(frozen=True)
class Numbers:
    """The way in which messages name their schemas: before each record are a byte that is zero and a number of so many
    `bytes`. The texts of schemas are `known`, by number; others are in the `registry`. Each schema must have what is
    `required`: paths, and the kind of the slot that each path is for.
    """

    bytes: int
    known: Mapping[int, str] = field(repr=False)
    registry: Registry | None = field(repr=False)
    required: tuple[tuple[Names, str], ...]


@dataclass(frozen=True)
class Layout:
    """The parts of messages that are read: `slots`. `schemas` are the schemas that a message may be written with; the
    first that fits counts. `skip_bytes` is the number of bytes before each record, except in files that bring their own
    schema. Of the paths `needed`, such a schema must have at least one. With `numbers`, messages name their schemas,
    and those in `schemas` are not used.
    """

    schemas: tuple[str, ...]
    slots: tuple[Slot, ...]
    records: Records
    skip_bytes: int = 0
    needed: tuple[Names, ...] = ()
    numbers: Numbers | None = field(default=None, repr=False)


@dataclass(frozen=True)
class AvroFunction:
    """The SQL function that reads a source's messages. `sql_type` is the type that it returns: a struct of reason,
    detail, and one struct for each of `fields` and `images` that is not empty.
    """

    name: str
    layout: Layout
    fields: SlotTree
    images: SlotTree
    sql_type: str


USUAL_PATH = "schemas/ids/{number}"


@dataclass(frozen=True)
class Registry:
    """The addresses of a registry of schemas, and the access to it. `path` is that of a schema, with `{number}` in it.
    `login` is a name, a colon and a password. `authorities` are certificates that are trusted in place of the system's;
    `certificate` is that of the caller, with its key; both as PEM.
    """

    urls: tuple[str, ...]
    path: str = USUAL_PATH
    login: str = field(default="", repr=False)
    authorities: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)


def tls_context(registry: Registry) -> ssl.SSLContext:
    """Returns the certificates that connections to a registry trust and show; raises ssl.SSLError for unusable ones."""
    import ssl

    context = ssl.create_default_context(cadata=registry.authorities or None)
    if registry.certificate:
        # Python reads a certificate with its key only from a file. No other user can read this file.
        handle, path = tempfile.mkstemp()
        try:
            with os.fdopen(handle, "w") as file:
                file.write(registry.certificate)
            context.load_cert_chain(path, password="")  # never asks a person
        finally:
            os.unlink(path)
    return context
