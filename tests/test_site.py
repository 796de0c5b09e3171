"""docs generate: the page as data, which needs no browser. What people see is in test_site_browser.py."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.cli import main
from runner.project.node_results import NodeResults
from runner.project.sql_analysis import columns_read
from runner.project.tables_seen import ColumnSeen, TableSeen, TablesSeen, path_of_seen
from runner.run.workspace import ProjectArguments, Workspace
from runner.site.mapping import mapping_of
from runner.spec.formats import FormatFolders

ROOT = Path(__file__).parent.parent
SHOP = Path(__file__).parent / "site" / "project"
PAGE = Path("target/docs/index.html")
LATER = "2026-03-03T10:00:00Z"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project in tests/site, not run yet, with its page."""
    folder = tmp_path_factory.mktemp("shop")
    shutil.copytree(SHOP, folder, dirs_exist_ok=True)
    generated(folder)
    return folder


@pytest.fixture(scope="module")
def page(shop: Path) -> Any:
    """All that the page of the project in tests/site shows."""
    return data_of(shop / PAGE)


@pytest.fixture(scope="module")
def page_of_more(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The page of that project with an overview, a model whose columns no one knows, and the results of a run."""
    folder = tmp_path_factory.mktemp("more")
    shutil.copytree(SHOP, folder, dirs_exist_ok=True)
    overview = "{% docs __overview__ %}\nA shop on the web.\n\n<b>All</b> of it.\n{% enddocs %}"
    (folder / "models/overview.md").write_text(overview)
    (folder / "models/odd.sql").write_text("select * from parquet.`somewhere`, {{ ref('orders') }}\n")
    told = {"status": "fail", "seconds": 1.5, "message": "2 rows fail", "failures": 2, "rows": {}, "reasons": {}}
    entry = {**told, "command": "test", "run_id": "1", "waived": {}, "behind": None, "is_incomplete": False}
    workspace = Workspace(ProjectArguments(folder))
    results = NodeResults(workspace.project)
    for name, ended in {"unique_orders_order_id": "2026-03-01T10:00:00Z", "orders": "2026-03-02T10:00:00Z"}.items():
        for at in ("2026-02-01T10:00:00Z", ended):
            results.add(workspace.graph.nodes[name], {**entry, "ended": at})
    # A later run of another part of the project did not get to it.
    results.add(workspace.graph.nodes["unique_orders_order_id"], {**entry, "status": "skipped", "ended": LATER})
    holder = {"user": "ann", "host": os.uname().nodename, "pid": 2**22 + 1, "start": "1", "command": "build"}
    holder |= {"target": "local", "since": LATER, "jvm": None, "session": None}
    (folder / "warehouse/_locks").mkdir()
    (folder / "warehouse/_locks/orders.lock").write_text(json.dumps(holder) + "\n")
    # The record of a node that is gone, and one that no run has written.
    for record in results.folder.glob("model.web_shop.orders-*"):
        record.with_name("model.web_shop.gone-12345678.json").write_text(record.read_text())
        record.write_text("{")
    return generated(folder)


def data_of(page: Path) -> Any:
    """All that a page shows."""
    html = page.read_text(encoding="utf-8")
    (packed,) = re.findall(r'<script type="text/plain" id="data">(.*?)</script>', html, re.DOTALL)
    return json.loads(zlib.decompress(base64.b64decode(packed), -15))


def generated(folder: Path) -> Any:
    assert main(["--project-dir", str(folder), "docs", "generate", "--no-tables"]) == 0
    return data_of(folder / PAGE)


def test_the_page_has_every_node_in_the_order_of_the_data(shop: Path, page: Any, runner: Callable[..., Any]) -> None:
    listed = runner("--project-dir", str(shop), "ls").out.split()
    assert [node["label"] for node in page["nodes"]] == [
        word.removeprefix("source:").removeprefix("exposure:") for word in listed
    ]
    places = {node["name"]: number for number, node in enumerate(page["nodes"])}
    assert all(places[parent] < places[node["name"]] for node in page["nodes"] for parent in node["parents"])
    types = {node["label"]: node["type"] for node in page["nodes"]}
    assert {types[name] for name in ("customers", "customers_history")} == {"mirror"}
    assert (types["shop"], types["orders"], types["sales_board"]) == ("source", "model", "exposure")
    assert (types["unique_orders_order_id"], types["sales_are_of_paid_orders"]) == ("test", "unit_test")


def test_the_page_has_descriptions_source_and_compiled_sql(
    shop: Path, page: Any, page_of_more: Any, runner: Callable[..., Any]
) -> None:
    orders = next(node for node in page["nodes"] if node["name"] == "orders")
    assert orders["description"].startswith("Orders as they are **now**")
    assert page["project"]["about"] == ""
    assert page_of_more["project"]["about"] == "A shop on the web.\n\n<b>All</b> of it."
    assert orders["columns"]["about"]["customer_id"] == "who ordered"
    texts = page["texts"]["nodes"]
    assert texts["orders"]["source"] == (SHOP / "models/orders.sql").read_text()
    runner("--project-dir", str(shop), "compile", "-s", "orders", "unique_orders_order_id")
    compiled = shop / "target/compiled/web_shop"
    assert texts["orders"]["compiled"] == (compiled / "models/orders.sql").read_text()
    test = "unique_orders_order_id"
    assert texts[test]["compiled"] == (compiled / f"tests/{test}.sql").read_text()
    expected = [{"day": "2026-03-02", "orders": "1", "sold": "2.50"}]
    assert texts["sales_are_of_paid_orders"]["expect"] == expected


def test_columns_come_from_columns(page: Any) -> None:
    columns = {node["name"]: node["columns"] for node in page["nodes"] if node["columns"]}
    # By hand, from the SQL of the models.
    assert columns["daily_sales"]["from"] == {
        "day": [["orders", "changed_at"]],
        "orders": [],
        "sold": [["orders", "amount"]],
    }
    assert columns["orders"]["from"]["amount"] == [["changelog", "after", "amount"]]
    assert columns["order_status"]["from"]["step"] == [["changelog", "key_text"], ["changelog", "seq"]]
    pieces = [["stock_to_changelog", "after", "pieces"], ["stock_to_changelog", "seq"]]
    assert columns["low_stock"]["from"]["pieces"] == pieces
    assert columns["changelog"]["same"]
    assert columns["shop_to_changelog"]["words"] == "from the messages, as the format canal says"
    landed = "shop_to_changelog"
    assert columns["customers"]["from"]["city"] == [[landed, "after", "city"], [landed, "before", "city"]]
    assert columns["customers"]["from"]["id"] == [[landed, image, "id"] for image in ("key", "after", "before")]
    assert columns["customers"]["from"]["_changed_at"] == [[landed, "event_time"]]


def test_columns_have_types_where_they_are_known_without_the_tables(page: Any) -> None:
    types = {node["name"]: node["columns"]["types"] for node in page["nodes"] if node["columns"]}
    mirror = {name: types["customers_history"][name] for name in ("id", "city", "valid_from", "is_current")}
    assert mirror == {"id": "bigint", "city": "string", "valid_from": "timestamp", "is_current": "boolean"}
    assert types["changelog"]["after"] == types["shop_to_changelog"]["after"] == "map<string,string>"
    assert types["orders"] == {}


def test_nodes_have_a_kind_in_words_and_an_owner(page: Any) -> None:
    kinds = {node["label"]: node["kind"] for node in page["nodes"]}
    expected = {"customers": "mirror", "customers_history": "history of a mirror", "shop": "source"}
    expected |= {"shop_to_changelog": "changelog of a source", "changelog": "view of all sources", "orders": "table"}
    expected |= {"sales_board": "dashboard", "unique_orders_order_id": "data test unique"}
    expected |= {"sales_are_of_paid_orders": "unit test"}
    assert {name: kinds[name] for name in expected} == expected
    facts = {node["label"]: dict(node["facts"]) for node in page["nodes"]}
    assert (facts["orders"]["owner"], facts["sales_board"]["owner"]) == ("Sales sales@shop.example.com", "Sales")


def test_tables_of_sources_are_shown_with_their_columns(project: Callable[..., Path]) -> None:
    declared = "tables: [{name: shop.carts, key: [id], columns: {id: int, note: text}}]"
    root = project({"project.yml": f"name: x\nsources: [{{name: s, format: canal, files: in, {declared}}}]\n"})
    orders = TableSeen("s", ("shop", "orders"), key=("id",), columns=(ColumnSeen("id", "bigint"), ColumnSeen("note")))
    path = path_of_seen(Workspace(ProjectArguments(root)).project, "s")
    path.parent.mkdir(parents=True)
    path.write_text(TablesSeen("s", "s_to_changelog", 0, -1, (orders,)).text())
    nodes = {node["name"]: node for node in generated(root)["nodes"]}
    expected = [
        {"name": "shop.carts", "key": ["id"], "columns": {"id": "int", "note": "text"}},
        {"name": "shop.orders", "key": ["id"], "columns": {"id": "bigint", "note": ""}},
    ]
    assert nodes["source.s"]["tables"] == nodes["s_to_changelog"]["tables"] == expected
    assert nodes["changelog"]["tables"] == []


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("with t as (select a as x from t) select x from t", {"x": [("t", "a")]}),
        ("select a from t union all select b from u", {"a": [("t", "a"), ("u", "b")]}),
        ("select t.*, u.b from t join u on t.a = u.b", {"a": [("t", "a")], "b": [("u", "b")]}),
        ("select e from t lateral view explode(a) as e", {"e": [("t", "a")]}),
        (
            "with s as (select a as m from t) select m['k'] as x, m as y from s",
            {"x": [("t", "a", "k")], "y": [("t", "a")]},
        ),
        ("select coalesce(a['k'], a['l']) as x from t", {"x": [("t", "a", "k"), ("t", "a", "l")]}),
        ("select a[b] as x, concat(a['k'], a) as y from u, t", {"x": [("t", "a"), ("u", "b")], "y": [("t", "a")]}),
        ("select max(b) over (order by `b`) as `odd name` from u", {"odd name": [("u", "b")]}),
        ("select * from unknown_table", None),
        ("select * from t where (", None),
        ("", None),
    ],
)
def test_columns_of_queries(sql: str, expected: Any) -> None:
    assert columns_read(sql, {"t": ["a"], "u": ["b"]}) == expected


def test_where_columns_are_not_derived_the_page_says_so(page_of_more: Any) -> None:
    odd = next(node for node in page_of_more["nodes"] if node["name"] == "odd")
    assert odd["columns"]["words"] == "the SQL does not tell which columns these come from"


def test_the_newest_result_of_each_node_is_shown(page: Any, page_of_more: Any) -> None:
    assert page["run"] is None
    ended = "2026-03-01T10:00:00Z"
    result = {"status": "fail", "ended": ended, "seconds": 1.5, "message": "2 rows fail", "failures": 2, "rows": {}}
    result |= {"since": "2026-02-01T10:00:00Z", "was_skipped": True}
    assert page_of_more["run"] == {"at": ended, "results": {"unique_orders_order_id": result}}


def test_the_page_tells_how_the_project_is_but_not_who_runs_it_and_where(page_of_more: Any) -> None:
    health = page_of_more["health"]
    killed = '"build" of 2026-03-03 10:00:00 UTC was stopped before its end; it wrote orders (run again)'
    assert not health["well"] and health["problems"][0] == killed
    assert health["said"].startswith(f"not well: {killed}; test unique_orders_order_id failed ")
    shown = json.dumps({**page_of_more, "texts": None})
    assert "(process" not in shown and '"ann' not in shown and " ann " not in shown


def test_formats_show_where_in_a_message_columns_are() -> None:
    folders = FormatFolders((ROOT / "formats",))
    mapping = mapping_of(folders.load("canal"), folders.folders)
    assert mapping
    lines = mapping["message"]
    message = json.loads("\n".join(lines))
    found = {column["name"]: [lines[number].strip() for _, number in column["from"]] for column in mapping["columns"]}
    assert found["table_name"] == [f'"table": "{message["table"]}",']
    assert found["event_time"] == [f'"es": {message["es"]},']
    assert [line[:7] for line in found["before"]] == ['"old": ', '"data":']
    words = {column["name"]: [said for said, _ in column["from"]] for column in mapping["columns"]}
    assert (words["event_time"], words["before"]) == (["es (epoch_ms)"], ["old", "data (the rest)"])


def test_most_built_in_formats_have_a_picture() -> None:
    folders = FormatFolders((ROOT / "formats",))
    specs = [spec for name in folders.names() if (spec := folders.check(name))]
    without = {spec.name for spec in specs if mapping_of(spec, folders.folders) is None}
    # Rows of these are only told by a schema that a source gives, or by more than one message.
    assert len(specs) >= 30 and len(without) <= 4


def test_the_page_allows_its_own_scripts_alone(shop: Path) -> None:
    html = (shop / PAGE).read_text(encoding="utf-8")
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    rules = dict(rule.split(" ", 1) for rule in policy.replace("&#39;", "'").split("; "))
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        texts = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
        assert rules[rule].split() == [f"'sha256-{one}'" for one in hashes]
    assert rules["default-src"] == "'none'"
    assert not re.search(r"<(?:script|link|img)[^>]* (?:src|href)=", html)


@pytest.mark.usefixtures("lean")
def test_secrets_are_not_on_the_page(project: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASS", 'tr0ut"&gill')
    source = "{name: s, format: lean, files: \"in/{{ env_var('PASS') }}\"}"
    data = generated(project({"project.yml": f"sources: [{source}]\n"}))
    assert ["messages", "in/***"] in data["nodes"][0]["facts"]
    assert "tr0ut" not in json.dumps(data) and "tr0ut" not in PAGE.read_text()


def test_the_page_is_always_the_same(shop: Path, runner: Callable[..., Any]) -> None:
    first = data_of(shop / PAGE)
    ran = runner("--project-dir", str(shop), "docs", "generate", "--no-tables")
    assert (ran.code, ran.out, ran.err) == (0, f"{shop / PAGE}\n", "")
    again = data_of(shop / PAGE)
    assert first["health"].pop("at") <= again["health"].pop("at")
    assert first == again


def inserted(number: int, at: int) -> str:
    row = {"data": [{"id": str(number)}], "old": None, "type": "INSERT", "database": "d", "table": "t"}
    return json.dumps({**row, "pkNames": ["id"], "es": at, "ts": at})


@pytest.mark.usefixtures("spark", "lean")
def test_what_has_landed_is_on_the_page(project: Callable[..., Path], runner: Callable[..., Any]) -> None:
    day, minute = 86_400_000, 60_000
    first = 1_772_323_200_000  # 2026-03-01 00:00 UTC
    sent = [inserted(1, first), inserted(2, first + 5 * minute), inserted(3, first + 40 * day), "{", "[]", "{}"]
    half = "{name: s, format: lean, files: in/*, dead_letters: {fail: null}}"
    two = f"sources:\n  - {half}\n  - {{name: empty, format: lean, files: none/*}}\n"
    project({"project.yml": f"name: x\n{two}", "in/a.jsonl": "\n".join(sent)})
    assert runner("run", "-s", "s_to_changelog").code == 0
    ran = runner("docs", "generate")
    assert (ran.code, ran.out.strip()) == (0, str(PAGE.absolute())), ran.err
    data = data_of(PAGE)
    (fresh,) = data["landed"]["freshness"]
    assert (fresh["source"], fresh["messages"], fresh["rows"], fresh["dead_letters"]) == ("s", 6, 3, 3)
    rows = [row for row in data["landed"]["over_time"] if row["kind"] == "row"]
    # Forty days are shown by the day: the first two rows are of one.
    assert [(row["op"], row["rows"], row["messages"]) for row in rows] == [("insert", 2, 2), ("insert", 1, 1)]
    assert [row["moment"] * 1000 for row in rows] == [first, first + 40 * day]
    dead = [row for row in data["landed"]["over_time"] if row["kind"] == "dead_letter"]
    assert sum(row["rows"] for row in dead) == 3 and all(row["reason"] for row in dead)
    assert data["run"]["results"]["s_to_changelog"]["rows"]["row"] == 3
    letters = {source["name"]: source["dead_letters_open"] for source in data["health"]["sources"]}
    assert letters == {"s": 3, "empty": None} and data["health"]["said"] in runner("status").out
    # What Spark says of a view whose columns nothing else tells.
    types = next(node["columns"]["types"] for node in data["nodes"] if node["name"] == "freshness")
    assert (types["source"], types["last_event"], types["rows"]) == ("string", "timestamp", "bigint")


@pytest.mark.usefixtures("spark", "interpreted")
def test_the_page_says_how_far_mirrors_have_got(project: Callable[..., Path], runner: Callable[..., Any]) -> None:
    def told(seconds: int, **more: Any) -> str:
        at = 1_772_323_200_000 + 1000 * seconds
        return json.dumps({"database": "d", "table": "t", "es": at, "ts": at, "id": seconds, "isDdl": False, **more})

    row = {"pkNames": ["id"], "mysqlType": {"id": "int"}, "old": None}
    lines = [
        told(0, type="INSERT", data=[{"id": "1"}], **row),
        told(1, type="ALTER", isDdl=True, data=None, sql="alter table d.t add column n int default 7"),
        told(2, type="ALTER", isDdl=True, data=None, sql="alter table d.t add column at datetime default now()"),
        told(3, type="INSERT", data=[{"id": "2"}], **row),
    ]
    mirrors = "\n".join(
        f"  - {{name: {name}, of: {{source: s, table: {table}}}, key: [id], columns: {{id: int, n: int}}}}"
        for name, table in (("t", "d.t"), ("late", "d.late"))
    )
    settings = "name: x\nsources:\n  - {name: s, format: canal, files: in/*}\n"
    project({"project.yml": settings, "models/m.yml": f"mirrors:\n{mirrors}\n", "in/a.jsonl": "\n".join(lines)})
    assert runner("run", "-s", "s_to_changelog t").code == 0
    Path("t.jsonl").write_text('{"id": 1, "n": 7}\n{"id": 2, "n": 7}\n')
    assert runner("verify", "-s", "t", "--against", "t.jsonl").code == 1
    assert runner("docs", "generate").code == 0
    nodes = {node["name"]: node for node in data_of(PAGE)["nodes"]}
    facts = {name: node["facts"] for name, node in nodes.items()}
    types = nodes["t"]["columns"]["types"]
    query = f"select {', '.join(f'typeof({name}) as {name}' for name in types)} from t limit 1"
    shown = json.loads(runner("show", "--inline", query, "--output", "json").out)
    assert shown == types
    *shown, verified = facts["t"][-4:]
    assert shown[0] == ["read", "d.t: batch 0 of s, changes up to 2026-03-01T00:00:03Z"]
    assert shown[1] == ["statements followed", "1"]
    assert shown[2][0] == "not followed" and "default now()" in shown[2][1]
    # The second row was told without the column, which is a difference.
    assert verified[0] == "verified" and verified[1].endswith(
        ": 1 row differed, for what happened up to 2026-03-01T00:00:03Z"
    )
    assert facts["late"][-1] == ["read", "nothing"]
