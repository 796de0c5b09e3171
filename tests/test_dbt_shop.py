"""A project made of dbt's own parts builds: seeds, models, properties, blocks of documentation, tests of all kinds."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import pytest

from tests.pages import ROOT
from tests.spark_fixtures import rows

SHOP = ROOT / "tests/dbt_shop"
pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(SHOP, tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def seed(name: str, delimiter: str = ",") -> list[dict[str, str]]:
    with (SHOP / f"seeds/{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def spent_by_order() -> dict[str, Decimal]:
    spent: dict[str, Decimal] = defaultdict(Decimal)
    for payment in seed("raw_payments", ";"):
        spent[payment["order_id"]] += Decimal(payment["amount"]) / 100
    return spent


def test_it_builds_and_its_20_tests_pass(shop: Path, spark, runner, capsys) -> None:
    built = runner("build")
    assert built.code == 0, built.err
    assert re.search(r"Done\. PASS=(\d+) WARN=0 ERROR=0 SKIP=0 TOTAL=\1$", built.err.strip()), built.err
    passed = re.findall(r"PASS test (\S+)", built.err)
    assert sorted(re.findall(r"PASS unit test (\S+)", built.err)) == ["amounts_as_a_macro_says", "cents_become_dollars"]
    assert len(passed) == 20 and {"every_order_is_paid", "assert_total_amount_is_positive"} < set(passed)
    assert len(re.findall(r"OK seed (\S+)", built.err)) == 3 and len(re.findall(r"OK \w+ model", built.err)) == 5

    assert Path("warehouse/customer_totals").is_dir() and not Path("warehouse/customers").exists()

    spent, orders = spent_by_order(), seed("raw_orders")
    customers = {row["customer_id"]: row for row in rows(capsys, "select * from {{ ref('customers') }}")}
    for person in seed("raw_customers"):
        own = [order for order in orders if order["user_id"] == person["id"]]
        row = customers.pop(int(person["id"]))
        assert row["first_name"] == person["first_name"]
        assert row["last_name"] == (None if person["last_name"] == "null" else person["last_name"])
        assert row["first_order"] == min((order["order_date"] for order in own), default=None)
        assert row["number_of_orders"] == (len(own) or None)
        total = sum(spent[order["id"]] for order in own) if own else None
        assert row["customer_lifetime_value"] == (None if total is None else f"{total:.2f}")
    assert not customers
    kept = runner("show", "-s", "every_order_is_paid", "--output", "json")
    assert (kept.code, kept.out) == (0, ""), kept.err

    again = runner("seed")
    assert again.code == 0 and again.err.count("unchanged since it was loaded") == 3
    with Path("seeds/raw_orders.csv").open("a") as file:
        file.write("5,9,2024-03-01,lost\n")
    failed = runner("build", "-s", "raw_orders+")
    assert failed.code == 1 and failed.err.count("unchanged since") == 0
    assert {"FAIL test accepted_values_stg_orders_status"} <= set(re.findall(r"FAIL test \S+", failed.err))
    assert "SKIP table model orders" in failed.err
    failing = runner("show", "-s", "accepted_values_stg_orders_status", "--output", "json")
    assert json.loads(failing.out) == {"status": "lost", "n_records": 1}
    loaded = runner("seed", "--full-refresh", "-s", "raw_customers")
    assert loaded.code == 0 and "unchanged" not in loaded.err


def test_what_it_says_of_itself(shop: Path, runner) -> None:
    assert runner("compile").code == 0
    manifest = json.loads((shop / "target/manifest.json").read_text())
    nodes = manifest["nodes"]
    assert nodes["model.dbt_shop.customers"]["config"]["meta"] == {"owner": "sales"}
    types = defaultdict(list)
    for node in [*nodes.values(), *manifest["unit_tests"].values()]:
        types[node["resource_type"]].append(node["name"])
    counts = {kind: len(names) for kind, names in types.items()}
    assert counts == {"seed": 3, "model": 5, "test": 20, "unit_test": 2}
    listed = runner("ls", "-s", "+exposure:weekly_sales", "--resource-type", "seed").out.split()
    assert sorted(listed) == ["raw_customers", "raw_orders", "raw_payments"]
    assert runner("ls", "-s", "path:seeds", "--resource-type", "seed").out.split() == listed
    assert runner("ls", "-s", "tag:nightly", "--resource-type", "model").out.split() == ["customers"]
    sql = runner("compile", "-q", "-s", "raw_payments").out
    assert "cast(`amount` as int)" in sql and "cast(`id` as bigint)" in sql
