"""Rules for many mirrors: the mirrors that they make of the tables that were seen, and what they say of others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from runner.errors import RunnerErrors
from runner.project.mirror import Mirror
from runner.project.tables_seen import TableSeen, TablesSeen, wider_type, with_new
from runner.run.workspace import ProjectArguments, Workspace
from tests.landed import Project

SOURCES = "name: many\nsources:\n  - {name: shop, format: canal, files: in/*}\n"


def column(name: str, kind: str | None = "varchar(20)", *earlier: str, **flags: bool) -> dict[str, Any]:
    """A column as a run records it."""
    digits = {"integer_digits": 2, "fraction_digits": 0}
    return {"name": name, "type": kind, "earlier": earlier, "unfit": {}, **digits, **flags}


def table(path: str, *columns: dict[str, Any], key: Sequence[str] = ("id",), **flags: Any) -> dict[str, Any]:
    """A table as a run records it, with a column `id` before the others."""
    names = path.split(".")
    return {"source": "shop", "names": names, "key": key, "columns": [column("id", "bigint"), *columns], **flags}


def workspace(folder: Path, rule: str, *tables: Mapping[str, Any], more: Mapping[str, str] = {}) -> Workspace:
    """A project with one rule, whose source has these tables."""
    seen = {"source": "shop", "table": "x", "batch": 3, "statements": -1, "tables": tables}
    files = {"project.yml": SOURCES, "models/m.yml": f"mirrors:\n  - {{of: {{source: shop}}, {rule}}}\n"}
    Project(folder, {**files, "warehouse/_tables_seen/shop.json": json.dumps(seen), **more})
    return Workspace(ProjectArguments(project_dir=folder))


def mirrors(made: Workspace) -> dict[str, Mirror]:
    """The mirrors of a project by the names of their models, histories too."""
    nodes = made.graph.nodes.items()
    return {name: node.model.mirror for name, node in nodes if node.model and node.model.mirror}


def types(mirror: Mirror) -> dict[str, str]:
    return {one.name: one.type for one in mirror.columns}


def codes(made: Workspace) -> list[str]:
    return [warning.code for warning in made.mirrors.warnings]


def test_each_table_that_a_pattern_matches_has_a_mirror(tmp_path: Path) -> None:
    rule = 'tables: ["shop.*", "*.log_[0-9]"], except: shop.tmp_*, name: "{source}_{db}_{table}"'
    seen = [table(f"{db}.{name}") for db in ("shop", "depot") for name in ("orders", "tmp_1", "log_1", "log_x")]
    made = workspace(tmp_path, rule, *seen)
    found = mirrors(made)
    # Of shop all but tmp_1, of depot log_1.
    assert set(found) == {"shop_shop_orders", "shop_shop_log_1", "shop_shop_log_x", "shop_depot_log_1"}
    assert found["shop_depot_log_1"].tables[0].name == ("depot", "log_1")
    assert found["shop_shop_orders"].key == ("id",)
    assert {f"fits_{name}" for name in found} | {f"followed_{name}" for name in found} <= made.graph.nodes.keys()


def test_settings_of_some_tables_win(tmp_path: Path) -> None:
    like = "{orders: {history: true, columns: {note: {type: binary}, more: int}}, '*_log': {without_key: append}}"
    rule = f"tables: '*', left_out: [secret], tables_like: {like}"
    columns = [column("note"), column("Secret"), column("_seq")]
    found = mirrors(workspace(tmp_path, rule, table("a.orders", *columns), table("a.x_log", key=())))
    assert list(found) == ["orders", "orders_history", "x_log"]
    assert types(found["orders"]) == {"id": "bigint", "note": "binary", "_seq_of_table": "string", "more": "int"}
    assert found["orders"].columns[2].sent_as == ("_seq",)
    assert (found["x_log"].without_key, found["x_log"].key) == ("append", ())


def test_mirrors_with_a_key_take_the_repairs_that_a_rule_names(tmp_path: Path) -> None:
    rule = "tables: '*', of: [{source: shop}, {source: repairs}]"
    repairs = "  - {name: repairs, format: rows, files: repairs/*, dump: repair}\n"
    more = {"project.yml": SOURCES + repairs, "models/m.yml": f"mirrors:\n  - {{{rule}}}\n"}
    found = mirrors(workspace(tmp_path, "", table("shop.orders"), table("shop.none", key=()), more=more))
    assert [(one.source.name, one.name) for one in found["orders"].tables] == [
        ("shop", ("shop", "orders")),
        ("repairs", ("shop", "orders")),
    ]
    # Changes of both sources are of one table: neither comes after all of the other.
    assert [rank for rank, *_ in found["orders"].called] == [0, 0]
    assert [one.source.name for one in found["none"].tables] == ["shop"]


def test_what_the_runner_takes_from_what_landed(tmp_path: Path) -> None:
    """A table whose changes tell the ids of its rows has these as its key; one without any key rejects changes."""
    seen = [table("a.ids", key=(), has_row_ids=True), table("a.none", key=())]
    found = mirrors(workspace(tmp_path, "tables: '*'", *seen))
    assert (found["ids"].key, found["ids"].columns[0].sent_as) == (("rowid",), ("meta.rowid",))
    assert (found["none"].key, found["none"].without_key) == ((), "reject")


@pytest.mark.parametrize(
    ("schema", "expected", "left_out", "on_drift"),
    [
        # By default columns are added and kept, types become wider and never narrower.
        (
            "",
            {"wider": "decimal(12,2)", "narrower": "decimal(12,2)", "new": "string", "gone": "string"},
            ("old",),
            "warn",
        ),
        ("add: keep, ", {"gone": "string"}, ("new", "old"), "warn"),
        ("add: warn, ", {"gone": "string"}, ("old",), "warn"),
        ("add: fail, ", {"gone": "string"}, ("old",), "fail"),
        ("drop: follow, ", {"new": "string"}, ("gone", "old"), "warn"),
        ("rename: keep, ", {"new": "string", "gone": "string", "old": "string"}, (), "warn"),
        ("widen: keep, ", {"wider": "decimal(8,2)", "new": "string", "gone": "string"}, ("old",), "warn"),
        ("narrow: follow, ", {"narrower": "decimal(8,2)", "new": "string", "gone": "string"}, ("old",), "warn"),
    ],
)
def test_columns_that_change(
    tmp_path: Path, schema: str, expected: dict[str, str], left_out: tuple[str, ...], on_drift: str
) -> None:
    columns = [
        column("wider", "decimal(12,2)", "decimal(8,2)"),
        column("narrower", "decimal(8,2)", "decimal(12,2)"),
        column("new", is_added=True),
        column("gone", is_gone=True),
        column("old", is_gone=True, is_renamed=True),
    ]
    rule = f"tables: '*', schema: {{{schema.rstrip(', ')}}}" if schema else "tables: '*'"
    mirror = mirrors(workspace(tmp_path, rule, table("a.t", *columns)))["t"]
    usual = {"id": "bigint", "wider": "decimal(12,2)", "narrower": "decimal(12,2)"}
    assert types(mirror) == {**usual, **expected}
    assert (mirror.left_out, mirror.on_drift) == (left_out, on_drift)


def test_changes_that_warn_leave_the_mirror_as_it_is(tmp_path: Path) -> None:
    columns = [
        column("wider", "decimal(12,2)", "decimal(8,2)"),
        column("narrower", "decimal(8,2)", "decimal(12,2)"),
        column("gone", is_gone=True),
        column("old", is_gone=True, is_renamed=True),
    ]
    kinds = ("widen", "narrow", "drop", "rename")
    schema = ", ".join(f"{kind}: warn" for kind in kinds)
    made = workspace(tmp_path, f"tables: '*', schema: {{{schema}}}", table("a.t", *columns))
    found = types(mirrors(made)["t"])
    assert found == {
        "id": "bigint",
        "wider": "decimal(8,2)",
        "narrower": "decimal(12,2)",
        "gone": "string",
        "old": "string",
    }
    assert codes(made) == ["mirror-rule-column"] * 4
    said = [warning.message for warning in made.mirrors.warnings]
    assert said[0].endswith('of "a.t": "wider" is decimal(12,2), and was decimal(8,2)')
    assert said[3].endswith('"old" has another name')
    assert [kind in str(warning.hint) for kind, warning in zip(kinds, made.mirrors.warnings)] == [True] * 4


def test_drift_that_is_acknowledged_in_a_rule_does_not_warn(tmp_path: Path) -> None:
    """For tables that a pattern matches, and until its last day."""
    tables = [table(f"a.{name}", column("new", is_added=True)) for name in ("known", "other")]
    known = "{what: drift, column: NEW, because: not needed, until: %s}"
    rule = "tables: '*', schema: {add: warn}, tables_like: {known: {acknowledged: [%s]}}"
    made = workspace(tmp_path, rule % known % "9999-12-31", *tables)
    (warning,) = made.mirrors.warnings
    assert '"other" does not follow' in warning.message and types(mirrors(made)["known"]) == {"id": "bigint"}
    (entry,) = mirrors(made)["known"].acknowledged
    line = (tmp_path / "models/m.yml").read_text().splitlines()[1]
    assert entry.where and line[entry.where.column - 1 :].startswith("{what: drift")
    assert mirrors(made)["other"].acknowledged == ()
    assert len(workspace(tmp_path, rule % known % "2024-01-31", *tables).mirrors.warnings) == 2


def test_mirrors_are_compared_with_what_has_landed(tmp_path: Path) -> None:
    columns = [column("narrower", "decimal(8,2)", "decimal(12,2)"), column("gone", is_gone=True), column("Secret")]
    own = "mirrors:\n  - {name: own, of: {source: shop, table: a.own}, key: [no], columns: {no: int, id: int}}\n"
    rule = "tables: 'a.t*', left_out: [secret]"
    seen = table("a.t", *columns), table("a.own"), table("a.t2"), table("a.other")
    workspace(tmp_path, rule, *seen, more={"models/own.yml": own})
    project = Project(tmp_path, {})
    said = project.run("mirrors", "diff")
    assert said.code == 0 and said.out.splitlines() == [
        "t: a.t of source shop, models/m.yml: differs",
        '  "narrower": decimal(8,2) in the data, decimal(12,2) in the mirror (schema: {narrow: keep})',
        '  "gone": no longer in the data, string in the mirror (schema: {drop: keep})',
        '  "Secret": string in the data, left out of the mirror',
        "own: a.own of source shop, models/own.yml: differs",
        '  "id": bigint in the data, int in the mirror',
        '  "no": in no change, int in the mirror',
        "  the key: (id) in the data, (no) in the mirror",
        "t2: a.t2 of source shop, models/m.yml: as the data is",
        "a.other of source shop: no mirror",
    ]
    assert project.run("mirrors", "diff", "--table", "a.t2").out.count("\n") == 1
    refused = project.run("mirrors", "diff", "--apply")
    assert refused.code == 2 and "mirrors diff writes nothing" in refused.err


def test_shards_are_one_mirror(tmp_path: Path) -> None:
    shards = [
        table("s.orders_1", column("v", "decimal(8,2)")),
        table("s.orders_2", column("v", "decimal(10,4)"), column("w")),
        table("s.orders_3", key=("no",)),
    ]
    made = workspace(tmp_path, 'tables: "s.orders_[0-9]", into: orders_all', *shards)
    mirror = mirrors(made)["orders_all"]
    assert [one.name for one in mirror.tables] == [("s", "orders_1"), ("s", "orders_2")]
    assert mirror.key == ("_table", "id")
    assert types(mirror) == {"_table": "string", "id": "bigint", "v": "decimal(10,4)", "w": "string"}
    [warning] = made.mirrors.warnings
    assert warning.code == "mirror-rule-keys" and '"s.orders_3"' in warning.message
    assert warning.where and (warning.where.path.name, warning.where.line) == ("m.yml", 2)


def test_shards_without_a_key_reject_changes(tmp_path: Path) -> None:
    """Their table alone is no key: all rows of a shard would be one."""
    shards = [table(f"s.l_{nth}", column("V" if nth else "v"), key=()) for nth in range(2)]
    mirror = mirrors(workspace(tmp_path, "tables: s.*, into: l", *shards))["l"]
    assert (mirror.key, mirror.without_key) == ((), "reject")
    assert list(types(mirror)) == ["_table", "id", "v"]


def test_what_landed_stops_no_command(tmp_path: Path) -> None:
    """A key that is in no image makes no mirror; what a person has written wrong is a mistake."""
    seen = [table("a.odd", key=("nowhere",)), table("a.good")]
    made = workspace(tmp_path, "tables: 'a.*'", *seen)
    assert set(mirrors(made)) == {"good"}
    [warning] = made.mirrors.warnings
    assert warning.code == "mirror-rule-table" and '"nowhere" is not among the columns' in warning.message
    with pytest.raises(RunnerErrors, match="cannot be the type of a column"):
        workspace(tmp_path, "tables: 'a.*', tables_like: {good: {columns: {a: wat}}}", *seen)


def test_names_that_are_taken_leave_the_other_tables_alone(tmp_path: Path) -> None:
    """What lands later must not stop the commands of a project: a table without a free name has no mirror."""
    seen = [table("a.orders"), table("b.Orders"), table("a.changelog"), table("a.mine"), table("a.v1.x")]
    made = workspace(tmp_path, "tables: '*'", *seen, more={"models/mine.sql": "select 1 as a"})
    assert set(mirrors(made)) == {"orders", "x"}
    assert codes(made) == ["mirror-rule-name"] * 3
    said = " ".join(warning.message for warning in made.mirrors.warnings)
    assert all(f'"{path}"' in said for path in ("b.Orders", "a.changelog", "a.mine"))


def test_new_tables_may_wait_for_a_person(tmp_path: Path) -> None:
    seen = [table("a.old"), table("a.new", is_new=True), table("a.named", is_new=True)]
    made = workspace(tmp_path, "tables: ['a.*', a.named], new_tables: warn", *seen)
    assert set(mirrors(made)) == {"old", "named"}
    assert codes(made) == ["mirror-rule-new"] and '"a.new"' in made.mirrors.warnings[0].message


def test_patterns_that_match_nothing_say_so(tmp_path: Path) -> None:
    made = workspace(tmp_path, "tables: 'nowhere.*'", table("a.t"))
    assert (mirrors(made), codes(made)) == ({}, ["mirror-rule-empty"])


def test_before_anything_has_landed_a_rule_has_no_mirrors(tmp_path: Path) -> None:
    made = workspace(tmp_path, "tables: '*'")
    assert (mirrors(made), codes(made)) == ({}, [])


def test_models_read_mirrors_of_rules(tmp_path: Path) -> None:
    model = {"models/m.sql": "select count(*) as n from {{ ref('orders') }}"}
    made = workspace(tmp_path, "tables: '*', tags: [raw]", table("a.orders"), more=model)
    assert made.graph.nodes["m"].parents == ("orders",)
    assert "raw" in made.graph.nodes["orders"].tags


def test_models_may_read_tables_that_are_still_to_come(tmp_path: Path) -> None:
    """A project that is deployed anew has landed nothing, and must run all the same."""
    files = {
        "models/m.sql": "select count(*) as n from {{ ref('d_orders') }}",
        "models/n.sql": "select * from {{ ref('m') }}",
        "models/o.sql": "select 1 as a",
        "models/p.yml": "models:\n  - {name: m, columns: [{name: n, data_tests: [not_null]}]}\n",
    }
    made = workspace(tmp_path, "tables: '*', name: 'd_{table}'", more=files)
    assert {"m", "n"}.isdisjoint(made.graph.nodes) and "o" in made.graph.nodes
    [warning] = made.mirrors.warnings
    assert warning.code == "ref-waits" and "m (d_orders), n (m)" in warning.message
    with pytest.raises(RunnerErrors, match='there is no model "orders"'):
        workspace(tmp_path, "tables: '*', name: 'd_{table}'", more={"models/m.sql": "select {{ ref('orders') }}"})
    # Once tables have landed, a name that none of them has is a mistake.
    with pytest.raises(RunnerErrors, match='there is no model "d_orders"'):
        workspace(tmp_path, "tables: '*', name: 'd_{table}'", table("a.t"), more=files)


def test_tables_without_a_mirror(tmp_path: Path) -> None:
    """Tables that a rule leaves out, and those that wait for a person, are not among them."""
    seen = [table("a.kept"), table("a.out"), table("b.other")]
    made = workspace(tmp_path, "tables: 'a.*', except: a.out", *seen)
    record = (tmp_path / "warehouse/_tables_seen/shop.json").read_text()
    warning = made.unmirrored(TablesSeen.read(record, "shop.json"))
    assert warning and warning.message == "1 table of source shop without a mirror: b.other"
    assert warning.hint == "runner mirrors suggest --source shop"


# --- what a run sees


def shape(columns: Mapping[str, str | None], key: Sequence[str] | None = ("id",), is_whole: bool = True) -> Any:
    return {"columns": [*columns], "types": [*columns.values()], "key": key, "is_whole": is_whole}


def landed(batch: int, *shapes: Any, names: Sequence[str] = ("a", "t"), without_row_id: int = 1) -> dict[str, Any]:
    counts = {"changes": 2, "without_key": 1, "partial": 0, "without_row_id": without_row_id}
    return {"names": list(names), "batch": batch, "shapes": list(shapes), **counts}


def test_tables_are_seen_batch_by_batch() -> None:
    first = landed(0, shape({"id": "int", "a": "int", "b": "int"}, None), shape({"a": None}, is_whole=False))
    seen = with_new(TablesSeen("shop"), [first], "x", 0)
    later = landed(4, shape({"id": "bigint", "c": "int", "a": "int"}))
    seen = with_new(seen, [later, landed(2, names=()), landed(3, shape({"id": "int"}), names=("a", "u"))], "x", 4)
    assert (seen.table, seen.batch, seen.statements) == ("x", 4, 2)
    t, u = seen.tables
    assert [one.name for one in t.columns] == ["id", "c", "a", "b"]
    assert [one.name for one in t.there] == ["id", "c", "a"]
    assert (t.columns[0].type, t.columns[0].earlier) == ("bigint", ("int",))
    assert [one.is_added for one in t.columns] == [False, True, False, False]
    assert (t.key, t.changes, t.without_key, t.batch, t.is_new) == (("id",), 4, 2, 4, False)
    assert (u.names, u.is_new, u.batch) == (("a", "u"), True, 3)
    assert TablesSeen.read(seen.text(), "a file") == seen


def test_a_column_that_comes_back_is_there() -> None:
    rows = [landed(0, shape({"id": "int", "a": "int"}), shape({"id": "int"}), shape({"id": "int", "a": "int"}))]
    [t] = with_new(TablesSeen("shop"), rows, "x", 0).tables
    assert [one.name for one in t.there] == ["id", "a"]


def test_a_column_has_its_new_name_before_a_row_has_it() -> None:
    first = landed(0, shape({"id": "int", "old": "int", "new_b": "int", "B": "text"}), names=("d", "t"))
    other = landed(0, shape({"id": "int", "old": "int"}), names=("e", "t"))
    seen = with_new(TablesSeen("shop"), [first, other], "x", 0)
    t, u = seen.renamed([(("D", "T"), "OLD", "new"), (("d", "t"), "b", "new_b")]).tables
    assert [one.name for one in t.there] == ["id", "new", "new_b"]
    assert {one.name: one.is_renamed for one in t.columns if one.is_gone} == {"old": True, "B": True}
    assert t.columns[1].type == "int" and t.columns[1].is_added
    assert [one.name for one in u.there] == ["id", "old"]
    # A column that comes back under its old name is there again.
    [again, _] = with_new(seen, [landed(1, shape({"id": "int", "old": "int"}), names=("d", "t"))], "x", 1).tables
    assert "old" in [one.name for one in again.there]


def test_row_ids_are_a_key_only_if_each_change_tells_them() -> None:
    told = TableSeen("shop", ("a", "t"), has_row_ids=True).after(landed(0, shape({"a": None}, ()), without_row_id=0))
    assert told.row_id == "rowid"
    assert told.after(landed(1, shape({"a": None}, ()))).row_id == ""


@pytest.mark.parametrize(
    ("one", "other", "wider"),
    [
        ("bigint", "bigint", "bigint"),
        ("int", "bigint", "bigint"),
        ("bigint", "decimal(20,0)", "decimal(20,0)"),
        ("bigint", "decimal(10,2)", "decimal(21,2)"),
        ("decimal(38,2)", "decimal(38,4)", "string"),
        ("float", "double", "double"),
        # A double has fewer digits than a bigint.
        ("bigint", "double", "string"),
        ("date", "timestamp_ntz", "timestamp_ntz"),
        ("timestamp", "timestamp_ntz", "string"),
        ("binary", "string", "string"),
    ],
)
def test_wider_types(one: str, other: str, wider: str) -> None:
    assert wider_type(one, other) == wider_type(other, one) == wider
