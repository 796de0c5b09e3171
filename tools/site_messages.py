"""Messages for the project in this folder: some weeks of a shop, always the same."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

FIRST = 1_772_380_800_000  # the first of March 2026, in milliseconds
HOUR = 3_600_000
TYPES = {"id": "bigint", "customer_id": "bigint", "status": "varchar(16)", "amount": "decimal(10,2)"}
CITIES = ("上海", "杭州", "Singapore", "Hamburg")


def write_messages(project: Path) -> None:
    """Writes messages/*.jsonl of a project."""
    folder = project / "messages"
    folder.mkdir(exist_ok=True)
    dice = random.Random(20)
    (folder / "shop.jsonl").write_text("".join(f"{line}\n" for line in shop(dice)), encoding="utf-8")
    (folder / "stock.jsonl").write_text("".join(f"{line}\n" for line in stock(dice)), encoding="utf-8")


def shop(dice: random.Random) -> Iterator[str]:
    for customer in range(1, 25):
        row = {"id": str(customer), "name": f"customer {customer}", "city": dice.choice(CITIES)}
        yield canal("INSERT", "customers", row, {"id": "bigint", "name": "varchar(64)", "city": "varchar(64)"}, FIRST)
    for number in range(1, 700):
        at = FIRST + int(number * 0.9 * HOUR) + dice.randrange(HOUR)
        row = {"id": str(number), "customer_id": str(dice.randrange(1, 25)), "status": "created"}
        row["amount"] = f"{dice.uniform(5, 400):.2f}"
        yield canal("INSERT", "orders", row, TYPES, at)
        for status in ("paid", "shipped") if dice.random() < 0.85 else ("cancelled",):
            at += dice.randrange(HOUR)
            old, row = {"status": row["status"]}, {**row, "status": status}
            if dice.random() < 0.9:
                yield canal("UPDATE", "orders", row, TYPES, at, old)
        if dice.random() < 0.03:
            yield canal("DELETE", "orders", row, TYPES, at + HOUR)
        if dice.random() < 0.02:
            yield dice.choice(['{"data": [{"id": "7"', json.dumps({"type": "MOVED", "es": at}), "[1, 2]"])


def canal(kind: str, table: str, row: dict[str, str], types: dict[str, str], at: int, old: object = None) -> str:
    message = {
        "data": [row],
        "database": "shop",
        "es": at,
        "id": at % 100_000,
        "isDdl": False,
        "mysqlType": types,
        "old": [old] if old else None,
        "pkNames": ["id"],
        "sql": "",
        "table": table,
        "ts": at + 240,
        "type": kind,
    }
    return json.dumps(message, ensure_ascii=False)


def stock(dice: random.Random) -> Iterator[str]:
    for number in range(260):
        at = FIRST + number * 2 * HOUR + dice.randrange(HOUR)
        sku, pieces = f"A-{dice.randrange(40):03}", dice.randrange(900)
        row = {"sku": sku, "pieces": pieces}
        message = {"database": "stock", "table": "articles", "type": "insert" if number < 40 else "update"}
        message |= {"ts": at // 1000, "xid": number, "commit": True, "data": row, "primary_key_columns": ["sku"]}
        yield json.dumps({**message, "old": {"pieces": pieces + 3}} if number >= 40 else message)
