"""Random lives of one table, told by each of several vendors in three runs: every mirror holds what the
database held, and every history the versions that it had.
"""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from tests.commands import query, run
from tests.encoders import ENCODERS
from tests.lives import shuffled
from tests.logical_changes import CHANGES, ORDERS, Change, numbered
from tests.storages import STORAGES, TARGETS
from tests.test_many_vendors import MIRROR_ROWS, VERSIONS, as_shown, mirror_of, orders_then
from tests.vendor_messages import messages_of
from tests.vendor_sources import BY_ARRIVAL, source_of

RUNS, STEPS = 3, 120


@pytest.mark.parametrize("vendor", list(ENCODERS))
def test_encoders_write_what_is_recorded(vendor: str) -> None:
    recorded: dict[str, list[Any]] = {}
    for sent in messages_of(vendor):
        recorded.setdefault(sent.change, []).append(exact(sent.record.value))
    told = [one for one in CHANGES if one.table is ORDERS or one.kind == "ddl"]
    assert len(told) == 11
    for change in told:
        assert [exact(message) for message in ENCODERS[vendor](change)] == recorded.get(change.name, [])


def exact(text: bytes) -> Any:
    """JSON with the digits of its numbers, which differ from the same digits in quotes."""
    return json.loads(text, parse_float=lambda digits: ("a number", digits))


def random_life(chance: Random) -> tuple[Change, ...]:
    """Inserts, updates, deletes, and changes of the key, also of and to keys that were deleted before."""
    held: dict[int, dict[str, Any]] = {}
    changes: list[Change] = []
    for step in range(STEPS):
        number = chance.randrange(1, 9)
        old = held.pop(number, None)
        op = "insert" if old is None else chance.choice(["update", "update", "update", "key_change", "delete"])
        new = None if op == "delete" else {**(old or {"id": number}), **random_values(chance, some=old is not None)}
        if new and op == "key_change":
            new["id"] = chance.choice([other for other in range(1, 99) if other not in held])
        if new:
            held[new["id"]] = new
        op = "update" if op == "key_change" else op
        changes.append(Change(f"step_{step}", op, ORDERS, old, new, f"orders/{number}"))
    return numbered(changes)


def random_values(chance: Random, some: bool) -> dict[str, Any]:
    values = {
        "label": chance.choice([None, "paid", "已付", "x" * chance.randrange(1, 20)]),
        "amount": chance.choice([None, Decimal(chance.randrange(-(10**6), 10**6)).scaleb(-2)]),
        "note": chance.choice([None, 'it\'s "so"', "a\\b"]),
    }
    return {name: value for name, value in values.items() if not some or chance.random() < 0.4}


def parts(vendor: str, life: tuple[Change, ...], chance: Random) -> list[list[bytes]]:
    """The messages that each run reads: some twice and in any order, where the vendor's numbers give one."""
    sent = [message for change in life for message in ENCODERS[vendor](change)]
    if vendor in BY_ARRIVAL:
        return [sent[len(sent) * run // RUNS : len(sent) * (run + 1) // RUNS] for run in range(RUNS)]
    return shuffled(sent, RUNS, chance)


@pytest.mark.soak
@pytest.mark.usefixtures("spark", "interpreted")
@pytest.mark.parametrize("storage", STORAGES)
def test_mirrors_of_random_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storage: str) -> None:
    chance = Random(storage)
    lives = {vendor: random_life(chance) for vendor in ENCODERS}
    told = {vendor: parts(vendor, life, chance) for vendor, life in lives.items()}
    project = {
        **yaml.safe_load(TARGETS),
        "target": storage,
        "sources": [source_of(vendor) for vendor in ENCODERS],
    }
    (tmp_path / "project.yml").write_text(yaml.safe_dump(project, allow_unicode=True, sort_keys=False))
    (tmp_path / "models").mkdir()
    (tmp_path / "models/mirrors.yml").write_text(yaml.safe_dump({"mirrors": [mirror_of(one) for one in ENCODERS]}))
    monkeypatch.chdir(tmp_path)
    for number in range(RUNS):
        for vendor, messages in told.items():
            (tmp_path / "in" / vendor).mkdir(parents=True, exist_ok=True)
            lines = b"".join(message + b"\n" for message in messages[number])
            (tmp_path / f"in/{vendor}/{number}.jsonl").write_bytes(lines)
        run("run")
    for vendor, life in lives.items():
        held, versions = orders_then(life)
        found = list(query(f"select {MIRROR_ROWS} from orders_of_{vendor}"))
        assert sorted(map(as_shown, found), key=str) == sorted(held, key=str), vendor
        assert sorted(map(as_shown, query(VERSIONS.format(vendor))), key=str) == sorted(versions, key=str), vendor
