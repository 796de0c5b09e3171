"""Class of a value + the spec's word -> Reader: which macros make its text canonical."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from runner.contract import CLASS_READERS
from runner.errors import RunnerError, nearest_or_all
from runner.project.nodes import TableSettings
from runner.spec.words import CLASSES, Format
from runner.yaml_text import Yaml

# Kinds of reading that look up labels in the column's type, and those that are Python functions over whole images.
LABELLED = frozenset({"ordinal", "mask"})
PYTHON_READERS = ("java_bytes",)


@dataclass(frozen=True)
class Reader:
    """The macros `read_<kind>` to try in turn, each with the zone that it needs or None."""

    attempts: tuple[tuple[str, str | None], ...]

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(kind for kind, _ in self.attempts)

    @property
    def labelled(self) -> bool:
        return bool(self.kinds & LABELLED)

    @property
    def word(self) -> str:
        """How compiled SQL names it."""
        return " or ".join(" ".join(part for part in attempt if part) for attempt in self.attempts)


@dataclass(frozen=True)
class Declared:
    """The settings of one table, with the readers of its columns: column -> reader, for columns that have one."""

    name: str
    key: tuple[str, ...]
    columns: Mapping[str, str]
    readers: Mapping[str, Reader]


def reader_of_class(class_name: str, spec: Format, zone: str | None, word: str | None = None) -> Reader | None:
    """How this format's values of a class become canonical; None if they are so as sent. `word` is what the type's name
    says of it.
    """
    words = (word,) if word else spec.readers.get(class_name) or (CLASS_READERS.get(class_name, "as_sent"),)
    attempts = [attempt for one in words if (attempt := _attempt(one, class_name, zone))]
    return Reader(tuple(attempts)) if attempts else None


def _attempt(word: str, class_name: str, zone: str | None) -> tuple[str, str | None] | None:
    match word, class_name:
        case "as_sent", _:
            return None
        case "local", "timestamp" | "zoned" if zone:
            return "instant", zone
        case "local", _:
            return "wall_clock", None
        case "zoned", _:
            return "zoned", zone
        case "epoch_ms", "date" | "time" | "datetime" if zone:
            return f"epoch_ms_{class_name}", zone
        case "epoch_ms_nanos", _:
            return ("epoch_ms_nanos", zone) if zone else None
        case "iso_t", "date" | "time":
            return f"iso_{class_name}", None
        case "iso_t", _:
            return "iso_datetime", None
        case "base64", "bit":
            return "base64_bits", None
    return word, None


def bare_type(type_name: str) -> str:
    """A type's name in lower case, without what is in brackets and without `unsigned`, `signed` and `zerofill`.

    >>> [bare_type(t) for t in ("INT(11) UNSIGNED", "timestamp(6) with time zone", "enum('a)','b')", "bit  varying(3)")]
    ['int', 'timestamp with time zone', 'enum', 'bit varying']
    """
    words = re.sub(r"\([0-9, *]*\)|\(.*", " ", type_name.lower()).split()
    return " ".join(word for word in words if word not in ("unsigned", "signed", "zerofill"))


def declared_readers(table: TableSettings, spec: Format, zone: str | None) -> Declared:
    """A table's settings with the readers of its columns; raises `types-unknown` for a type that neither the format nor
    the classes know.
    """
    readers = {}
    for column, type_name in table.columns.items():
        class_name, word = _class_of(column, bare_type(type_name), table, spec)
        reader = reader_of_class(class_name, spec, table.zone or zone, word)
        if reader:
            readers[column] = reader
    return Declared(table.name, table.key, table.columns, readers)


def _class_of(column: str, type_name: str, table: TableSettings, spec: Format) -> tuple[str, str | None]:
    tables = spec.types.all_tables() if spec.types else []
    if type_name in CLASSES:
        return type_name, None
    for known in tables:
        if type_name in known.classes:
            return known.classes[type_name], known.readers.get(type_name)
    names = [*CLASSES, *(name for known in tables for name in known.classes)]
    raise _unknown(table.origin, column, type_name, names)


def _unknown(origin: Yaml, column: str, type_name: str, names: list[str]) -> RunnerError:
    return origin["columns"][column].error(
        "types-unknown", f'the format does not know the type "{type_name}"', nearest_or_all(type_name, names)
    )
