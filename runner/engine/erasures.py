"""Keys whose rows were erased: what is recorded of them, so that messages that come again do not bring the rows back.
No value stands in a record, only digests, each with a salt of its own.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from runner.contract import COLUMNS, RUN_COLUMNS
from runner.engine.recorded import ERASING
from runner.errors import RunnerError
from runner.files import mapping
from runner.storage.data import FileSystem

if TYPE_CHECKING:
    from runner.engine.tables import Tables

# In a target: the records, one file for each changelog; the certificates.
ERASED, CERTIFICATES = "_erased", "_certificates"


@dataclass(frozen=True)
class KeyPart:
    """A column of a key that was erased, with its name in lower case. The digests are those of `prefix` and the value:
    as rows have it, and as messages tell it, which is another one if the column is masked. Their lengths are known too,
    so that texts that hold the value can be found.
    """

    name: str
    prefix: str
    length: int
    digest: str
    told_length: int
    told_digest: str

    @classmethod
    def of(cls, table: Sequence[str], name: str, value: str, told: str, salt: str) -> KeyPart:
        prefix = f"{salt} {json.dumps([*table, name.lower()])} "
        return cls(name.lower(), prefix, len(value), _digest(prefix, value), len(told), _digest(prefix, told))

    def is_of(self, told: str) -> bool:
        """Returns True if messages tell this value."""
        return len(told) == self.told_length and _digest(self.prefix, told) == self.told_digest


@dataclass(frozen=True)
class Erasure:
    """A key of a table whose rows were erased, up to the instant `at`. `names` is the whole name of the table."""

    id: str
    names: tuple[str, ...]
    parts: tuple[KeyPart, ...]
    at: str

    @classmethod
    def of(cls, id_: str, names: Sequence[str], key: Mapping[str, str], told: Mapping[str, str], at: str) -> Erasure:
        """Returns the erasure of a key, with its values as rows have them, and as messages tell them."""
        salt = secrets.token_hex(16)
        parts = (KeyPart.of(names, name, key[name], told[name], salt) for name in sorted(key))
        return cls(id_, tuple(names), tuple(parts), at)

    @classmethod
    def read(cls, json_: Mapping[str, Any]) -> Erasure:
        parts = tuple(KeyPart(**part) for part in json_["parts"])
        return cls(json_["id"], tuple(json_["names"]), parts, json_["at"])

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def under(self, names: Sequence[str]) -> Erasure:
        """Returns this erasure for a table that a source calls by another name."""
        return replace(self, names=tuple(names))

    def is_of_key(self, key: Mapping[str, str]) -> bool:
        """Returns True if this is the erasure of a key that messages tell."""
        own = {name.lower(): value for name, value in key.items()}
        return own.keys() == {part.name for part in self.parts} and all(
            part.is_of(own[part.name]) for part in self.parts
        )


def _digest(prefix: str, value: str) -> str:
    return hashlib.sha256(f"{prefix}{value}".encode()).hexdigest()


def erasures_of(tables: Tables, changelog: str) -> list[Erasure]:
    """Returns the keys that were erased from a changelog, the oldest first; raises Damaged."""
    path = _path(tables, changelog)
    if not tables.files.exists(path):
        return []
    return [Erasure.read(one) for one in mapping(tables.files.read(path), path, ("erased",))["erased"]]


def record_erasures(tables: Tables, changelog: str, erasures: Sequence[Erasure], key: Mapping[str, str]) -> None:
    """Records that a key was erased from a changelog, in place of earlier records of the key; twice has the same
    result.
    """
    names = {one.names for one in erasures}
    others = [one for one in erasures_of(tables, changelog) if one.names not in names or not one.is_of_key(key)]
    record = {"erased": [one.as_json() for one in (*others, *erasures)]}
    tables.files.write(_path(tables, changelog), json.dumps(record) + "\n")


def copy_erasures(own: Tables, other: Tables, changelog: str) -> None:
    """Copies the record of a changelog into another target."""
    if own.files.exists(path := _path(own, changelog)):
        other.files.write(_path(other, changelog), own.files.read(path))


def _path(tables: Tables, changelog: str) -> str:
    return f"{tables.target.at(ERASED)}/{changelog}"


def without_erased(tables: Tables, changelog: str, sql: str) -> str:
    """Returns the query of the rows of messages of a changelog, without the rows of keys that were erased; the same
    query if none were.
    """
    if not (erasures := erasures_of(tables, changelog)):
        return sql
    columns = [column for column in COLUMNS if column not in RUN_COLUMNS]
    return tables.macro("landing_without_erased", sql, erasures, columns)


# --- an erase that is not finished


def unfinished_erase(files: FileSystem, path: str) -> dict[str, Any] | None:
    """Returns the state of the erase that was begun in a target and not finished; None if there is none."""
    if not files.exists(path):
        return None
    return mapping(files.read(path), path, ("command", "names", "erasure", "sources"))


def check_no_erase(tables: Tables) -> None:
    """Raises `erase-unfinished` if an erase in the target was begun and not finished."""
    if found := unfinished_erase(tables.files, tables.target.at(ERASING)):
        raise erase_unfinished(tables, found)


def erase_unfinished(tables: Tables, state: Mapping[str, Any]) -> RunnerError:
    table = ".".join(state["names"])
    what = f'an erase of a key of "{table}" in the target "{tables.target.name}" was interrupted'
    return RunnerError("erase-unfinished", what, hint=f"{state['command']} finishes it")


def of_tables(names: Iterable[Sequence[str]], table: Sequence[str]) -> bool:
    """Returns True if a table has one of these names, of which the first parts may be missing."""
    own = [part.lower() for part in table]
    return any(own[-len(one) :] == [part.lower() for part in one] for one in names if one)
