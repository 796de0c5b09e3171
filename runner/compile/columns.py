"""Columns of the contract that come from plain fields of a message: their values, order numbers and `meta`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from runner.spec.vocabulary import TEXT_COLUMNS, TIME_COLUMNS
from runner.spec.words import Field, FieldPath, Format, Value, fields_of


@dataclass(frozen=True)
class Column:
    """Where a column comes from: `value`, or for messages with a verdict in `by_verdict` the value there."""

    name: str
    is_time: bool
    value: Value
    by_verdict: Mapping[str, Value]

    @property
    def groups(self) -> list[tuple[list[str], Value]]:
        """The values of verdicts that have their own, each once."""
        out: list[tuple[list[str], Value]] = []
        for verdict, value in self.by_verdict.items():
            same = next((verdicts for verdicts, known in out if known == value), None)
            if same is None:
                out.append(([verdict], value))
            else:
                same.append(verdict)
        return out

    @property
    def is_local(self) -> bool:
        """Whether it comes from local times only."""
        readers = {field.reader for value in (self.value, *self.by_verdict.values()) for field in fields_of(value)}
        return readers == {"local"}


@dataclass(frozen=True)
class OrderNumber:
    """A number of the position: of places that give several numbers, the `index`-th."""

    value: Value
    index: int


@dataclass(frozen=True)
class MetaEntry:
    """An entry of `meta`. If it comes from members of rows, `members` names them and `column` holds their text. An
    entry `old_NAME` says what NAME, whose value is `new`, was before a change: it is there only where both differ.
    """

    name: str
    value: Value
    new: Value
    members: tuple[str, ...]
    column: str


def make_columns(spec: Format) -> dict[str, Column]:
    """Name -> column, for all plain columns of the contract."""
    lines = spec.op.lines()
    return {
        name: Column(
            name,
            name in TIME_COLUMNS,
            spec.columns.get(name, ()),
            {line.verdict: line.columns[name] for line in lines if name in line.columns},
        )
        for name in (*TEXT_COLUMNS, *TIME_COLUMNS)
    }


def order_numbers(spec: Format) -> Iterator[OrderNumber]:
    """The numbers of the position, the most significant first."""
    for value in spec.seq:
        yield from (OrderNumber(value, index) for index in range(max(field.count for field in fields_of(value))))


def meta_entries(spec: Format, lists: Collection[FieldPath]) -> Iterator[MetaEntry]:
    """The entries of `meta`; `lists` are the paths whose elements are rows."""
    for name, value in spec.meta.items():
        paths = [choice.path for choice in value if isinstance(choice, Field) and choice.path[:-1] in lists]
        members = dict.fromkeys(path[-1] for path in paths) if len(paths) == len(value) else ()
        new = spec.meta.get(name.removeprefix("old_"), ()) if name.startswith("old_") else ()
        yield MetaEntry(name, value, new, tuple(members), f"meta_{name}")
