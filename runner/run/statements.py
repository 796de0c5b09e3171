"""The effects of statements on the table of a mirror, in their order (docs/mirrors.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from itertools import groupby
from operator import itemgetter
from typing import Any

from runner.engine.tables import Tables
from runner.project.ddl import Action, Unreadable, actions
from runner.project.inputs import SHOWN
from runner.project.masks import mask_in
from runner.project.mirror import Acknowledged, Called, Mirror, MirroredTable
from runner.project.tables_seen import TablesSeen

Row = Mapping[str, Any]
LOAD = itemgetter("source", "generation")


@dataclass(frozen=True)
class Effect:
    """The effect of the statement of a `row` on the rows of a table: the statement `empties` the table, or columns are
    `renamed`, or `told` maps columns to the value that all rows have; without any of these the table gets another name.
    `rank` is the table's number in the mirror, `called` the number of the name under which the table is meant, -1 for
    all names, `earlier` the number of tables before it that are of other sources, and `position` the numbers of the
    statement's message.
    """

    row: Row
    rank: int
    earlier: int
    position: tuple[int, ...]
    called: int = -1
    empties: bool = False
    told: Mapping[str, str | None] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Lost:
    """A statement that cannot be followed; `why` says the reason. `at` is the best known time at which the statement
    was run, in microseconds. `known` is set if a person has acknowledged it.
    """

    source: str
    batch: int
    statement: str
    why: str
    at: int | None
    known: Acknowledged | None = None

    @property
    def note(self) -> str:
        text = f"{self.statement[:100]}..." if len(self.statement) > 100 else self.statement
        finding = f"a statement cannot be followed ({self.why}): {text}, batch {self.batch} of {self.source}"
        return self.known.noted(finding) if self.known else finding


@dataclass(frozen=True)
class Followed:
    """The effects of all statements in their order, the mirror with all names that its tables had, and the statements
    that cannot be followed, without those before the table was emptied: those that are `lost`, and those that a person
    has `acknowledged`.
    """

    effects: tuple[Effect, ...]
    mirror: Mirror
    lost: tuple[Lost, ...]
    acknowledged: tuple[Lost, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(one.note for one in (*self.lost, *self.acknowledged))


class Statements:
    """Reads the statements of sources. The statements of a source are read once for all its mirrors, as long as nothing
    lands. `with_statements` returns the models that may have statements, each with the places after which these count.
    """

    def __init__(self, tables: Tables, with_statements: Callable[[Mirror], list[tuple[str, Any]]]) -> None:
        self.tables, self.with_statements = tables, with_statements
        self.told: dict[Any, list[Row]] = {}

    def show(self, mirror: Mirror, views: Mapping[str, str] | None = None) -> Followed:
        """Creates the view of what statements did to the table of a mirror. `views` maps the models of its sources to
        the views to read in their place.
        """
        statements = self.of(mirror, views)
        self._view(statements)
        return statements

    def of(self, mirror: Mirror, views: Mapping[str, str] | None = None) -> Followed:
        """Returns what statements did to the table of a mirror, read as by `show`."""
        read = mirror.statements_read.items()
        told = (
            self._rows("statements_told", [(views[one], after) for one, after in read]) if views else self._told(mirror)
        )
        if any(table.source.generation for table in mirror.tables):
            told = [*told, *self._rows("loads_told", mirror)]
        return followed(mirror, told, self._tables_named)

    def names(self, mirror: Mirror, table: MirroredTable, seen: TablesSeen) -> list[tuple[str, ...]]:
        """Returns the names that a table of a mirror has and had, as the tables seen of its source tell them."""

        def named(other: MirroredTable) -> int:
            return len(seen.named(other.name))

        found = followed(mirror, self._told(mirror), named).mirror.tables[mirror.tables.index(table)]
        return [one.name for one in found.called]

    def show_none(self, mirror: Mirror) -> None:
        """Creates the views as they are without any statements."""
        self._view(Followed((), mirror, ()))

    def _view(self, told: Followed) -> None:
        macro, effects = self.tables.macro, list(enumerate(told.effects, 1))
        sql = macro("statement_effects", effects) if effects else macro("no_effects")
        self.tables.view(f"{told.mirror.name}__statements", sql)
        sql = macro("lost_statements", told.lost) if told.lost else macro("none_lost")
        self.tables.view(f"{told.mirror.name}__lost", sql)

    def _told(self, mirror: Mirror) -> list[Row]:
        read = self.with_statements(mirror)
        until = tuple((model, after, self.tables.position(model)) for model, after in read)
        if read and until not in self.told:
            self.told[until] = self._rows("statements_told", read)
        return self.told.get(until, [])

    def _tables_named(self, table: MirroredTable) -> int:
        """Returns the number of tables with this name of which something was told; at most two are counted."""
        return len(self._rows("tables_named", table.source.model, Called(table.name)))

    def _rows(self, macro: str, *arguments: Any) -> list[Row]:
        return list(self.tables.spark.rows(self.tables.macro(macro, *arguments))[1])


TablesNamed = Callable[[MirroredTable], int]


def followed(mirror: Mirror, rows: Iterable[Row], tables_named: TablesNamed) -> Followed:
    """Returns what statements did to the table of a mirror. The macro `statements_told` selects the rows of the
    statements.
    """
    told = _in_order(_each_once(rows))
    sources = [table.source.name for table in mirror.tables]
    effects: list[Effect] = []
    tables: list[MirroredTable] = []
    lost: list[Lost] = []
    for rank, table in enumerate(mirror.tables):
        if table.has_repairs:
            # Repairs are of the table before, under the name that it had then.
            tables.append(replace(table, names=tables[-1].names))
            continue
        reader = _Reader(mirror, table, rank, sources.index(table.source.name), tables_named)
        own = reader.effects(
            [row for row in told if row["source"] == table.source.name and row.get("rank", rank) == rank]
        )
        first = len(effects)
        effects += own
        names = [
            Called(one.name, one.since and one.since + first, one.until and one.until + first) for one in reader.names
        ]
        tables.append(replace(table, names=tuple(names) if len(names) > 1 else ()))
        lost += reader.lost
    each = tuple(dict.fromkeys(lost))
    unknown, known = (tuple(one for one in each if bool(one.known) is is_known) for is_known in (False, True))
    return Followed(tuple(effects), replace(mirror, tables=tuple(tables)), unknown, known)


def renamed_columns(rows: Iterable[Row]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yields the columns that get another name by statements, in their order: the name of the table, then those of the
    column before and after.
    """
    for row in _in_order(_each_once(rows)):
        for action in _actions(row):
            if action.kind == "rename":
                yield _whole(action.name, row), action.column, action.to[0]


class _Reader:
    """Reads statements backward: the name that a table has now tells which name it had before."""

    def __init__(self, mirror: Mirror, table: MirroredTable, rank: int, earlier: int, named: TablesNamed) -> None:
        self.mirror, self.table, self.rank, self.earlier, self.tables_named = mirror, table, rank, earlier, named
        # The names and the effects are numbered from the last one, until all are known.
        self.names = [Called(table.name)]
        self.found: list[Effect] = []
        self.lost: list[Lost] = []

    def effects(self, rows: list[Row]) -> list[Effect]:
        for nth, row in reversed(list(enumerate(rows))):
            if row["op"] == "load":
                self._add(row, called=-1, empties=True)
                continue
            told = _actions(row)
            self._renamed(row, told, rows, nth)
            for action in reversed(told):
                self._does(row, action)
        number = len(self.found)
        self.names = [
            Called(one.name, *(nth and number + 1 - nth for nth in (one.since, one.until))) for one in self.names
        ]
        self.lost.reverse()
        return self.found[::-1]

    def _add(self, row: Row, **does: Any) -> None:
        effect = Effect(row, self.rank, self.earlier, _position(row), **{"called": len(self.names) - 1, **does})
        if not effect.empties or self.mirror.on_truncate == "delete":
            self.found.append(effect)

    def _renamed(self, row: Row, told: tuple[Action, ...], rows: list[Row], nth_row: int) -> None:
        """Takes the name that the table had before a statement. `rows` has all statements, `nth_row` is the number of
        this one.
        """
        now = self.names[-1].name
        moves = _moves(row, told)
        before = _name_before(now, moves)
        if before is None:
            if any(_is_same_name(old, now) for old, _ in moves):
                self._add(row, empties=True)
            return
        name = before[-len(self.table.name) :]
        if not self._is_told(name, rows[:nth_row]):
            self._lose(row, f"nothing was told of {'.'.join(name)}, which has its name now")
            return
        self._add(row, called=-1)
        nth = len(self.found)
        self.names[-1] = self.names[-1]._replace(since=nth)
        self.names.append(Called(name, until=nth))

    def _is_told(self, name: tuple[str, ...], earlier: list[Row]) -> bool:
        """Returns True if something was told of the table with a name, or with a name that the same table had before: a
        table may get a name and lose it again while its rows stay as they are.
        """
        if self.tables_named(replace(self.table, name=name)):
            return True
        for number, row in reversed(list(enumerate(earlier))):
            told = _actions(row)
            moves = _moves(row, told)
            before = _name_before(name, moves)
            if before is not None:
                return self._is_told(before[-len(self.table.name) :], earlier[:number])
            # From here back the name belonged to another table.
            others = [old for old, _ in moves]
            if row["op"] in ("create", "drop"):
                others += [_whole(one.name, row) for one in told if one.kind == "empty"]
                others += [_whole((row["table_name"] or "",), row)]
            if any(_is_same_name(one, name) for one in others):
                return False
        return False

    def _does(self, row: Row, action: Action) -> None:
        name = self.names[-1].name
        if action.kind == "empty_database":
            # If the name of a table is told without its database, the table's rows tell whether it was in that
            # database.
            whole = (*action.name, name[-1])
            if _is_same_name(whole, name) and (len(name) > 1 or self.tables_named(replace(self.table, name=whole))):
                self._add(row, empties=True)
            return
        whole = _whole(action.name, row)
        if action.kind == "rename_table" or not _is_same_name(whole, name):
            return
        if len(whole) < len(name) and self.tables_named(replace(self.table, name=whole)) > 1:
            self._lose(row, "several tables have this name, and it does not say which it means")
        else:
            match action.kind:
                case "empty":
                    self._add(row, empties=True)
                case "add" if action.default and mask_in(self.mirror, _column(self.mirror, action.column)) != SHOWN:
                    self._lose(row, f"the column {action.column} is masked, and its default is not")
                case "add" | "drop":
                    self._add(row, told={_column(self.mirror, action.column): action.default})
                case "rename":
                    column, to = _column(self.mirror, action.column), _column(self.mirror, action.to[0])
                    if column != to:
                        self._add(row, renamed={column: to})
                case "lost":
                    self._lose(row, action.why)

    def _lose(self, row: Row, why: str) -> None:
        """Records a statement that cannot be followed, unless the table was emptied later."""
        if not any(one.empties for one in self.found):
            text, today = " ".join((row["statement"] or row["op"]).split()), datetime.now(timezone.utc).date()
            covering = (one for one in self.mirror.known("statement") if one.covers(row["at"] or 0, today))
            self.lost.append(Lost(row["source"], row["batch"], text, why, row["at"], next(covering, None)))


def _moves(row: Row, told: tuple[Action, ...]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Returns the tables that get another name by a statement, as pairs of the old and the new name."""
    return [(_whole(one.name, row), _whole(one.to, row)) for one in told if one.kind == "rename_table"]


def _name_before(now: tuple[str, ...], moves: list[tuple[tuple[str, ...], tuple[str, ...]]]) -> tuple[str, ...] | None:
    """Returns the name that a table had before names were changed, one after the other; None if the table already had
    this name, or was not there.

    >>> _name_before(("a",), [(("a",), ("old",)), (("new",), ("a",))])
    ('new',)
    """
    name = now
    for old, new in reversed(moves):
        if _is_same_name(new, name):
            name = old
    return name if not _is_same_name(name, now) else None


def _each_once(rows: Iterable[Row]) -> Iterator[Row]:
    """Yields the statements as they came, without those that are told again with the same numbers or the same time.
    Some vendors tell a statement once for each table that it names. Two truncates in one second count twice if their
    messages have different ids: a tool that tells the first again also tells the rows behind it again.
    """
    seen: set[tuple[Any, ...]] = set()
    for row in _as_they_came(rows):
        words = row["statement"] or (row["op"], row["table_name"])
        names = tuple(row[name] for name in ("source", "tenant", "db_name", "schema_name"))
        message = row["meta"].get("message_id") if row["op"] == "truncate" and row["meta"] else None
        when = (row["generation"], row["numbered_in"], message, _position(row) or row["at"])
        if row["op"] == "load" or when[-1] is None or (words, names, when) not in seen:
            yield row
        seen.add((words, names, when))


def _as_they_came(rows: Iterable[Row]) -> list[Row]:
    """Sorts statements as they came: within a log in the order of the log, between logs by when they were sent."""
    out: list[Row] = []
    logs = sorted(rows, key=_place_in_log)
    for _, of_log in groupby(logs, key=itemgetter("source", "log")):
        latest = -1
        for row in of_log:
            latest = max(latest, -1 if row["sent_at"] is None else row["sent_at"])
            out.append({**row, "told_at": latest})
    return sorted(out, key=_when_told)


def _place_in_log(row: Row) -> tuple[Any, ...]:
    return row["source"], row["log"] or "", row["arrival"]


def _when_told(row: Row) -> tuple[Any, ...]:
    return row["told_at"], row["arrival"], row["log"] or ""


def _in_order(rows: Iterable[Row]) -> list[Row]:
    """Sorts statements, given as they came: stretches in which all are numbered in one log, by their numbers."""
    out: list[Row] = []
    for _, load in groupby(sorted(rows, key=LOAD), key=LOAD):
        for _, stretch in groupby(load, key=itemgetter("numbered_in")):
            out += sorted(stretch, key=_position)
    return out


def _position(row: Row) -> tuple[int, ...]:
    return tuple(int(number) for number in row["position"] or ())


def _actions(row: Row) -> tuple[Action, ...]:
    """Returns the actions of a statement."""
    told = _by_op(row)
    if not row["statement"]:
        return told
    try:
        return actions(row["statement"])
    except Unreadable:
        return told or (Action("lost", (row["table_name"] or "",), why="it cannot be read"),)


def _by_op(row: Row) -> tuple[Action, ...]:
    """Returns the actions that a message tells without its statement."""
    name = (row["table_name"],) if row["table_name"] else ()
    if row["op"] in ("truncate", "drop"):
        return (
            Action("empty", name) if name else Action("empty_database", (row["schema_name"] or row["db_name"] or "",)),
        )
    is_lost = name and row["op"] in ("alter", "rename")
    return (Action("lost", name, why="it is told without its statement"),) if is_lost else ()


def _whole(name: tuple[str, ...], row: Row) -> tuple[str, ...]:
    """Returns a name with the database of its message, if the name itself has none."""
    others = [row[part] for part in ("tenant", "db_name", "schema_name") if row[part]]
    return (*others[: max(0, len(others) + 1 - len(name))], *name)


def _is_same_name(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Returns True if two names are the same in all parts that both have."""
    parts = zip(reversed(one), reversed(other))
    return all(part.strip().lower() == of_other.strip().lower() for part, of_other in parts)


def _column(mirror: Mirror, name: str) -> str:
    """Returns the column of a mirror that is sent under a name; a name without such a column is returned as it is."""
    for column in mirror.columns:
        if name.lower() in (column.name.lower(), *(one.lower() for one in column.sent_as)):
            return column.name
    return name
