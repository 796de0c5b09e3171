"""What is recorded of the table of a mirror, and what tells if the mirror has changed since."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from runner.files import read_text
from runner.project.inputs import CHANGELOG, Source
from runner.project.mirror import MirrorQuery
from runner.run.statements import Effect

if TYPE_CHECKING:
    from runner.run.run import Run


class Mark(NamedTuple):
    """The facts that are recorded of a mirror's table, as JSON; any other text is read as no facts. `made_by` is the
    hash of the SQL that made the table, `defined_by` that of the mirror as it was written. `told_parts` is True if
    changes told only parts of a row. `numbered_in` is the log in which all changes are numbered, None if there is no
    such log. `defaults` are the defaults of columns that messages named, `columns` the columns that the mirror then
    had, `left_out` those that it then was not to have. `named` are the names of the mirror and of its changelogs that
    have changed since the table was first built, each with the first one: the hashes are those under the first names.
    """

    made_by: str
    told_parts: bool
    numbered_in: str | None
    defaults: dict[str, str]
    defined_by: str = ""
    columns: Sequence[Sequence[Any]] = ()
    left_out: Sequence[str] = ()
    named: Mapping[str, str] = {}

    def text(self) -> str:
        return json.dumps(self._asdict())

    def under_first_names(self, query: MirrorQuery) -> MirrorQuery:
        """Returns a query with the names with which its table was first built."""
        if not self.named:
            return query
        tables = (replace(table, source=self._first(table.source)) for table in query.mirror.tables)
        first = self.named.get(query.mirror.name, query.mirror.name)
        return replace(query, mirror=replace(query.mirror, name=first, tables=tuple(tables)))

    def _first(self, source: Source) -> Source:
        model = self.named.get(source.model, source.model)
        return replace(source, name=model.removesuffix(CHANGELOG))

    @classmethod
    def read(cls, text: str) -> Mark:
        try:
            return cls(**json.loads(text))
        except (TypeError, ValueError):
            return NO_MARK


NO_MARK = Mark("", True, None, {})


def log_of_numbers(found: Mapping[str, Any], effects: Iterable[Effect]) -> str | None:
    """Returns the log in which all changes are numbered; None unless all statements have at least as many numbers
    there.
    """
    log = found["numbered_in"]
    if log is None:
        # Before a change has landed, there is neither a log nor a number.
        return None
    told = [(one.row["numbered_in"], len(one.position)) for one in effects if one.row["arrival"]]
    are_alike = all(of_one == log and number >= found["numbers"] for of_one, number in told)
    return log if are_alike else None


class Definitions:
    """The hashes of mirrors as they are written: they tell without any SQL if a mirror has changed."""

    def __init__(self, run: Run) -> None:
        self.renderer, self.vars = run.library.renderer, run.project.vars
        # A source may be asked for under a name that another source has now.
        self.formats: dict[tuple[str, int], str] = {}

    @cached_property
    def macros(self) -> str:
        texts = [read_text(path) for path in sorted(set(self.renderer.files.values()))]
        return hashlib.sha256("".join([*texts, repr(self.vars)]).encode()).hexdigest()

    def of(self, query: MirrorQuery) -> str:
        tables = [(self._source(table.source), table.name, table.after) for table in query.mirror.tables]
        # What was acknowledged for a time speaks again: the mirror is looked at once more when it has ended.
        today = datetime.now(timezone.utc).date()
        known = tuple(one for one in query.mirror.acknowledged if not one.has_ended(today))
        mirror = replace(query.mirror, tables=(), acknowledged=known)
        written = (query.shows, query.layout, mirror, tables, self.macros)
        return hashlib.sha256(repr(written).encode()).hexdigest()

    def _source(self, source: Source) -> str:
        key = source.name, id(source.format)
        if key not in self.formats:
            self.formats[key] = repr((source.name, source.generation, source.format))
        return self.formats[key]
