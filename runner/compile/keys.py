"""Where the key of a row comes from."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from runner.compile.images import RowImage, row_image
from runner.compile.readers import DeclaredTable
from runner.spec.vocabulary import RECORD_KEY
from runner.spec.words import Format, Key


@dataclass(frozen=True)
class KeyNames:
    """One place of the names of key columns. `form` is `columns` (the spec has the names), `positions` (of names in a
    list), `split` (one text), `joined` (one text, and another for the values), `text` (a list in a JSON text), `list`,
    `members` (of an object, or of objects in a list), `record` (members of the record's key), or `declared` (the source
    has the names, and `key` is empty).
    """

    form: str
    key: Key


@dataclass(frozen=True)
class Keys:
    """`names`: the places of names, of which the first that gives some counts; `image`: an image beside the row, where
    the `image_columns` are looked up if the row lacks them; `joined`: the key whose values are one text; `positions`:
    the keys that are numbers of names in a list.
    """

    names: tuple[KeyNames, ...]
    image: RowImage | None
    image_columns: tuple[str, ...]
    joined: Key | None
    positions: tuple[Key, ...]

    @property
    def are_sent(self) -> bool:
        """Whether messages themselves name the key columns of their table. A record's key may be another's."""
        return any(place.form not in ("columns", "declared", "record") for place in self.names)


def make_keys(spec: Format, keyed: Collection[DeclaredTable]) -> Keys:
    """Where the key is in a format's messages; `keyed` are the tables for which the source declares one."""
    beside_row = next((key for key in spec.key if key.image), Key())
    return Keys(
        tuple(_names(spec, keyed)),
        row_image(beside_row.image, is_avro=False) if beside_row.image else None,
        beside_row.columns,
        next((key for key in spec.key if key.values), None),
        tuple(key for key in spec.key if key.indexes),
    )


def _names(spec: Format, keyed: Collection[DeclaredTable]) -> Iterator[KeyNames]:
    for key in spec.key:
        yield KeyNames(_form(key), key)
    if keyed:
        yield KeyNames("declared", Key())


def _form(key: Key) -> str:
    if key.columns:
        return "columns"
    if key.members:
        return "record" if key.members == (RECORD_KEY,) else "members"
    if key.indexes:
        return "positions"
    if key.split:
        return "joined" if key.values else "split"
    return "text" if key.text else "list"
