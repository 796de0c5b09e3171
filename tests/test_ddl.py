"""What statements do (runner/project/ddl.py), and what becomes of a mirror's table by them, in their order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from runner.engine.progress import Position
from runner.project.ddl import Unreadable, actions
from runner.project.inputs import Messages
from runner.project.mirror import Called, Mirror, MirrorColumn, MirroredTable
from runner.project.tables_seen import TablesSeen
from runner.run.statements import Followed, followed
from runner.run.tables_seen import SeenByRun
from tests import pages

CASES: list[dict[str, Any]] = pages.table("ddl")


@pytest.mark.parametrize("case", CASES, ids=[case["sql"] for case in CASES])
def test_what_a_statement_does(case: dict[str, Any]) -> None:
    if case["does"] == "unreadable":
        with pytest.raises(Unreadable):
            actions(case["sql"])
        return
    found = []
    for one in actions(case["sql"]):
        what = {"rename_table": ".".join(one.to), "rename": ".".join(one.to), "add": one.default, "drop": None}
        words = [one.kind, ".".join(one.name)]
        words += [one.column] if one.column or one.kind == "rename_table" else []
        found.append([*words, what[one.kind]] if one.kind in what else words)
    assert found == case["does"]


class Source:
    """As much of a source as statements need."""

    name, model, generation, masked = "shop", "shop_to_changelog", 0, ()
    messages = Messages("files", "in/*")


class Repairs(Source):
    name, messages = "repairs", Messages("repair_files", "repairs/*")


def read(
    *told: Any,
    table: tuple[str, ...] = ("db", "a"),
    known: tuple[str, ...] = ("a", "a_new"),
    more: tuple[MirroredTable, ...] = (),
) -> Followed:
    """What statements of one log did; each is given as its text, or with what else its row says."""
    rows = [
        {
            "source": "shop", "batch": n, "op": "other", "statement": one[0] if isinstance(one, tuple) else one,
            "tenant": None, "db_name": "db", "schema_name": None, "table_name": "a", "meta": None, "generation": 0,
            "position": [], "numbered_in": None, "sent_at": n, "log": "f", "arrival": [n], "at": n * 1000,
            "happened_at": n * 1000,
            **(one[1] if isinstance(one, tuple) else {}),
        }
        for n, one in enumerate(told)
    ]  # fmt: skip
    columns = (MirrorColumn("id", "int"), MirrorColumn("s", "string", ("text",)))
    mirror = Mirror("a", (MirroredTable(Source, table), *more), ("id",), columns)  # type: ignore[arg-type]
    return followed(mirror, rows, lambda one: sum(name == one.name[-1] for name in known))


def shown(found: Followed) -> list[Any]:
    """The batch of each effect, and what it does."""
    return [
        (one.row["batch"], "empties" if one.empties else dict(one.told) or dict(one.renamed) or "another name")
        for one in found.effects
    ]


def test_effects_are_those_on_the_table() -> None:
    found = read(
        "truncate b", "truncate A", "drop table x, db.a", "truncate other.a", "alter table a add s int default 1"
    )
    assert shown(found) == [(1, "empties"), (2, "empties"), (4, {"s": "1"})]
    assert shown(read("drop database db", "drop database other")) == [(0, "empties")]
    # A name without a database: the rows of the table tell where it is.
    assert shown(read("drop database db", table=("a",))) == [(0, "empties")]
    assert shown(read("drop database db", table=("a",), known=())) == []
    # Columns have the names that the mirror has.
    assert shown(read("alter table a rename column text to n")) == [(0, {"s": "n"})]
    assert shown(read("alter table a rename column text to s")) == []


def test_without_its_statement_the_op_of_a_message_counts() -> None:
    emptied = (None, {"op": "truncate"})
    database = (None, {"op": "drop", "table_name": None})
    unreadable = ("drop table", {"op": "drop"})
    assert shown(read(emptied, database, unreadable, (None, {"op": "index"}))) == [(n, "empties") for n in range(3)]
    for op in ("rename", "alter"):
        assert "is told without its statement" in read((None, {"op": op})).notes[0]


def test_a_statement_that_comes_twice_counts_once() -> None:
    again = {"at": 5, "batch": 7}
    assert shown(read(("truncate a", {"at": 5}), ("truncate a", again))) == [(0, "empties")]
    assert shown(read("truncate a", "truncate a")) == [(0, "empties"), (1, "empties")]
    # Emptied twice in one second, in two messages; and one of them told again.
    first, second = ({"op": "truncate", "at": 5, "meta": {"message_id": number}} for number in "78")
    told = [("truncate a", first), ("truncate a", second), ("truncate a", first)]
    assert shown(read(*told)) == [(0, "empties"), (1, "empties")]
    told = [("drop table a", {**first, "op": "drop"}), ("drop table a", {**second, "op": "drop"})]
    assert shown(read(*told)) == [(0, "empties")]
    numbered = {"position": ["12"], "numbered_in": ""}
    assert shown(read(("truncate a", numbered), ("truncate a", numbered))) == [(0, "empties")]


def test_numbers_give_the_order_in_one_log() -> None:
    numbers = [("truncate a", 30, "x"), ("alter table a add s int", 20, "x"), ("truncate a", 5, "y")]
    told = [(text, {"position": [str(n)], "numbered_in": log}) for text, n, log in numbers]
    assert shown(read(*told)) == [(1, {"s": None}), (0, "empties"), (2, "empties")]


def test_rows_go_with_the_name() -> None:
    found = read("truncate a_new", "truncate a", "rename table a to a_old, a_new to a", "truncate a_new", "truncate a")
    assert shown(found) == [(0, "empties"), (2, "another name"), (4, "empties")]
    assert [one.called for one in found.effects] == [1, -1, 0]
    (table,) = found.mirror.tables
    assert table.names == (Called(("db", "a"), since=2), Called(("db", "a_new"), until=2))
    # Repairs are under the name that the table had when they were made.
    repairs = MirroredTable(Repairs, ("db", "a"))  # type: ignore[arg-type]
    both = read("rename table a to a_old, a_new to a", more=(repairs,)).mirror.tables
    assert both[0].names == both[1].names == (Called(("db", "a"), since=1), Called(("db", "a_new"), until=1))
    # For a while it had a name under which nothing was told of it.
    found = read("alter table a rename to b", "truncate c", "rename table b to a", known=("a",))
    assert shown(found) == [(0, "another name"), (2, "another name")] and not found.notes
    assert [one.name[-1] for one in found.mirror.tables[0].names] == ["a", "b", "a"]
    made = ("create table b (id int)", {"op": "create", "table_name": "b"})
    found = read("alter table a rename to b", "drop table b", made, "rename table b to a", known=("a",))
    assert "nothing was told of db.b" in found.notes[0]
    for gone in ("alter table b rename to old", ("drop table x, b", {"op": "drop", "table_name": "x"})):
        found = read("alter table a rename to b", gone, "rename table b to a", known=("a",))
        assert "nothing was told of db.b" in found.notes[0]
    # Of the table that has its name now nothing was told.
    found = read("rename table a to a_old, a_new to a", known=("a",))
    assert shown(found) == [] and not found.mirror.was_renamed and "nothing was told of db.a_new" in found.notes[0]
    # It has no name any more.
    assert shown(read("alter table a rename to b")) == [(0, "empties")]


def test_a_statement_that_may_mean_several_tables_is_lost() -> None:
    """It names no tenant; of two there are tables of this name."""
    table, told = ("tenant", "db", "a"), ("truncate a", "alter table a drop s", "truncate b")
    assert shown(read(*told, table=table)) == [(0, "empties"), (1, {"s": None})]
    found = read(*told, table=table, known=("a", "a", "b", "b"))
    assert shown(found) == []
    assert [one.statement for one in found.lost] == [*told[:2]]
    named = [(sql, {"tenant": "tenant"}) for sql in told]
    assert shown(read(*named, table=table, known=("a", "a"))) == [(0, "empties"), (1, {"s": None})]


def test_what_cannot_be_followed_is_said() -> None:
    found = read("alter table a truncate partition p", "alter table b truncate partition p", "alter table a add x")
    assert found.notes == (
        "a statement cannot be followed (truncate partition): alter table a truncate partition p, batch 0 of shop",
    )


@pytest.mark.parametrize(
    ("position", "seen", "are_read"),
    [
        (Position("x", 3), TablesSeen("shop", "x", 3), False),
        (Position("x", 3), TablesSeen("shop", "x", 3, statements=1), True),
        (Position("x", 4), TablesSeen("shop", "x", 3), True),
        (Position("y", 3), TablesSeen("shop", "x", 3), True),
        (None, TablesSeen("shop"), True),
    ],
)
def test_statements_are_not_looked_for_where_all_that_has_landed_has_none(
    position: Position | None, seen: TablesSeen, are_read: bool
) -> None:
    run: Any = SimpleNamespace(tables=SimpleNamespace(position=lambda _: position), project=None, workspace=None)
    by_run, mirror = SeenByRun(run), Mirror("a", (MirroredTable(Source(), ("db", "a")),), ("id",), ())  # type: ignore[arg-type]
    by_run.known["shop"] = seen
    assert by_run.with_statements(mirror) == ([("shop_to_changelog", ())] if are_read else [])
