"""dbt's grammar of selection."""

from __future__ import annotations

import pytest

from runner.errors import RunnerError
from runner.project.nodes import Graph, Model, Node
from runner.project.select import select

# Selection asks a node for everything but its subject.
SUBJECT = Model("", "view")

#     source.shop -> shop_to_changelog -> changelog -> stg_orders -> orders -> orders_by_day
#                                                  \-> stg_items  -/       \-> unique_orders_id (test)


def model(
    name: str, parent: str, path: str, materialized: str = "view", tags: str = "", format: str | None = None
) -> Node:
    config = {"materialized": materialized}
    return Node(name, "model", SUBJECT, (*parent.split(),), frozenset(tags.split()), path, format=format, config=config)


NODES = [
    Node("source.shop", "source", SUBJECT, path="project.yml", format="canal"),
    model("shop_to_changelog", "source.shop", "project.yml#shop", "streaming", format="canal"),
    model("changelog", "shop_to_changelog", "macros/views.sql#changelog"),
    model("stg_orders", "changelog", "models/staging/shop/stg_orders.sql", tags="nightly orders"),
    model("stg_items", "changelog", "models/staging/shop/stg_items.sql", tags="nightly"),
    model("orders", "stg_orders stg_items", "models/marts/orders.sql", "table", "orders"),
    model("orders_by_day", "orders", "models/marts/orders_by_day.sql", "table"),
    Node("unique_orders_id", "test", SUBJECT, ("orders",), path="models/marts/orders.yml"),
    Node("canal.update", "unit_test", SUBJECT, path="formats/cases/canal/update.rows.yml", format="canal"),
]
GRAPH = Graph({node.name: node for node in NODES}, "lake", frozenset({"old_orders"}))
STAGING = "stg_items stg_orders"
ABOVE = "changelog shop_to_changelog source.shop"
MARTS = "orders orders_by_day"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("orders", "orders"),
        ("stg_*", STAGING),
        ("stg_[io]*", STAGING),
        ("*orders*", f"{MARTS} stg_orders unique_orders_id"),
        ("tag:nightly", STAGING),
        ("tag:n*", STAGING),
        ("path:models/staging", STAGING),
        ("path:models/staging/", STAGING),
        ("path:models/marts/orders.sql", "orders"),
        ("path:models/*/orders*.sql", MARTS),
        ("models/marts", f"{MARTS} unique_orders_id"),
        ("models/staging/shop/stg_items.sql", "stg_items"),
        ("stg_items.sql", "stg_items"),
        ("file:orders*.sql", MARTS),
        ("staging", STAGING),
        ("staging.shop", STAGING),
        ("staging.*.stg_orders", "stg_orders"),
        ("marts.*", MARTS),
        # behind the project's name
        ("lake.staging.shop", STAGING),
        ("lake.orders", "orders"),
        ("+lake.marts.orders,tag:nightly", STAGING),
        ("lake,resource_type:model", f"changelog shop_to_changelog {STAGING} {MARTS}"),
        ("source:shop", "source.shop"),
        ("source:s*", "source.shop"),
        ("format:canal", "canal.update shop_to_changelog source.shop"),
        ("format:c*", "canal.update shop_to_changelog source.shop"),
        ("config.materialized:table", MARTS),
        ("config.materialized:streaming", "shop_to_changelog"),
        ("resource_type:source", "source.shop"),
        ("resource_type:test", "unique_orders_id"),
        ("resource_type:unit_test", "canal.update"),
        ("canal.update", "canal.update"),
        # with what they read, and what reads them
        ("+orders", f"orders {STAGING} {ABOVE}"),
        ("orders+", f"{MARTS} unique_orders_id"),
        ("1+orders", f"orders {STAGING}"),
        ("2+orders", f"changelog orders {STAGING}"),
        ("0+orders", "orders"),
        ("stg_orders+1", "orders stg_orders"),
        ("2+orders+1", f"changelog {MARTS} {STAGING} unique_orders_id"),
        ("+orders+", f"{ABOVE} {MARTS} {STAGING} unique_orders_id"),
        ("@stg_orders", f"{ABOVE} {MARTS} {STAGING} unique_orders_id"),
        ("@orders_by_day", f"{ABOVE} {MARTS} {STAGING}"),
        ("source:shop+1", "shop_to_changelog source.shop"),
        ("tag:nightly+1", f"orders {STAGING}"),
        ("1+tag:orders", f"changelog orders {STAGING}"),
        ("1+config.materialized:streaming", "shop_to_changelog source.shop"),
        ("@source:shop", f"{ABOVE} {MARTS} {STAGING} unique_orders_id"),
        ("+models/marts/orders.sql", f"orders {STAGING} {ABOVE}"),
        # union and intersection
        ("orders changelog", "changelog orders"),
        ("tag:nightly,tag:orders", "stg_orders"),
        ("tag:nightly,tag:orders orders_by_day", "orders_by_day stg_orders"),
        ("+orders,tag:nightly", STAGING),
        ("stg_orders+,config.materialized:table", MARTS),
        ("orders,changelog", ""),
    ],
)
def test_grammar(text: str, names: str) -> None:
    assert " ".join(sorted(select(GRAPH, [text]))) == " ".join(sorted(names.split()))


@pytest.mark.parametrize("text", ["source:web", "source:web.visits", "source:web.*", "source:w*"])
def test_a_source_stands_for_its_tables(text: str) -> None:
    tables = [Node(f"source.{name}", "source", SUBJECT) for name in ("web.visits", "shop.web")]
    assert select(Graph({node.name: node for node in tables}), [text], []) == {"source.web.visits"}


def test_flags_add_up() -> None:
    assert select(GRAPH, ["orders", "changelog stg_items"]) == {"orders", "changelog", "stg_items"}


def test_nothing_asked_for_is_everything() -> None:
    assert select(GRAPH, []) == select(GRAPH, [""]) == select(GRAPH, ["*", "source:*"]) == set(GRAPH.nodes)


@pytest.mark.parametrize(
    ("include", "exclude", "names"),
    [
        (["+orders"], ["source:shop+2"], f"orders {STAGING}"),
        (["tag:nightly"], ["tag:orders"], "stg_items"),
        (["tag:nightly"], ["tag:orders,stg_*"], "stg_items"),
        (["tag:nightly"], ["stg_items", "stg_orders"], ""),
        ([], ["resource_type:model resource_type:unit_test"], "source.shop unique_orders_id"),
    ],
)
def test_exclude(include: list[str], exclude: list[str], names: str) -> None:
    assert select(GRAPH, include, exclude) == set(names.split())


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("ordrs", "selector-empty", 'did you mean "orders"?'),
        ("orders ordrs", "selector-empty", 'did you mean "orders"?'),
        ("orders,ordrs", "selector-empty", 'did you mean "orders"?'),
        ("+ordrs+2", "selector-empty", 'did you mean "orders"?'),
        ("tag:nihgtly", "selector-empty", 'did you mean "nightly"?'),
        ("source:shp", "selector-empty", 'did you mean "shop"?'),
        ("format:cannal", "selector-empty", 'did you mean "canal"?'),
        ("path:models/mart", "selector-empty", 'did you mean "models/marts"?'),
        ("config.materialized:tabel", "selector-empty", 'did you mean "table"?'),
        ("resource_type:modle", "selector-empty", 'did you mean "model"?'),
        ("qqqq", "selector-empty", "runner ls shows what there is"),
        ("tga:nightly", "selector-method", 'did you mean "tag"?'),
        ("+", "selector-syntax", None),
        ("orders++", "selector-syntax", None),
        ("++orders", "selector-syntax", None),
        ("orders,", "selector-syntax", None),
        ("@orders+", "selector-syntax", None),
        ("@1+orders", "selector-syntax", None),
    ],
)
def test_mistakes(text: str, code: str, hint: str | None) -> None:
    with pytest.raises(RunnerError) as caught:
        select(GRAPH, [text])
    assert caught.value.code == code
    assert caught.value.hint == hint if hint else caught.value.hint.startswith("for instance: ")
