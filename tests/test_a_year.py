"""A year in the life of a project: a new version, a new column, a spec that was wrong for two weeks, two hundred dead
letters of six kinds, files that are gone, other names, another storage. In the end every row is what a plain reading of
all messages gives.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.landed import Project
from tests.test_kept_tables import unpacked

pytestmark = [pytest.mark.usefixtures("spark", "interpreted"), pytest.mark.soak]

Row = dict[str, Any]
PROJECT = """
name: kept
target: {target}
targets:
  local: {{path: lake}}
  ice: {{storage: iceberg, path: ice, catalog: {{type: hadoop}}}}
sources:
  - name: {source}
    format: mine
    files: in/*.jsonl
    keep_raw: all
    {renamed}
"""
MIRROR = """
mirrors:
  - name: {name}
    of: {{source: {source}, table: shop.orders}}
    key: [id]
    columns: {{id: int, n: int{more}}}
    history: true
    {renamed}
"""
SPEC = "extends: canal\nabout: ours\n"
# Kind of dead letter -> how many messages of it come in April, and how many of those understands the corrected spec.
BROKEN, LATIN, MERGED, BARE, EMPTY, ODD = 40, 30, 50, 20, 30, 30


class Shop:
    """A table, and what its messages say: `changes` are those that can be understood, as a plain reader has them."""

    def __init__(self) -> None:
        # What the kept tables were made of.
        self.rows: dict[int, Row] = {1: {"id": 1, "n": 7, "note": None}}
        self.number = 10
        self.changes: list[tuple[str, int, int, str | None]] = [
            *(("insert", 1, 5, None), ("insert", 2, 6, None), ("update", 1, 7, None), ("delete", 2, 6, None))
        ]

    def message(self, word: str, row: Row, op: str = "", old: Row | None = None) -> str:
        """A message; `op` is what it means if it is more than noise."""
        self.number += 1
        at = 1_710_500_000_000 + 1000 * self.number
        if op:
            self.changes.append((op, row["id"], row["n"], row.get("note")))
            self.rows.pop(row["id"], None)
            if op != "delete":
                self.rows[row["id"]] = {"note": None, **row}
        types = {"id": "int", "n": "int", **({"note": "varchar(9)"} if "note" in row else {})}
        sent = {name: None if value is None else str(value) for name, value in row.items()}
        before = [{name: str(value) for name, value in old.items()}] if old else None
        told = {"id": self.number, "database": "shop", "table": "orders", "type": word, "es": at, "ts": at + 5}
        return json.dumps({**told, "mysqlType": types, "pkNames": ["id"], "data": [sent], "old": before})

    def alter(self, sql: str) -> str:
        """A message of a statement."""
        self.number += 1
        at = 1_710_500_000_000 + 1000 * self.number
        told = {"id": self.number, "database": "shop", "table": "orders", "type": "ALTER", "es": at, "ts": at + 5}
        return json.dumps({**told, "isDdl": True, "sql": sql, "data": None, "old": None})

    def month(self, first: int, note: str | None = None, has_note: bool = True) -> list[str]:
        """Ten new rows, of which one changes and one goes."""
        more = {"note": note} if has_note else {}
        rows = [{"id": first + nth, "n": nth, **more} for nth in range(10)]
        told = [self.message("INSERT", row, "insert") for row in rows]
        told.append(self.message("UPDATE", {**rows[3], "n": 33}, "update", {"n": 3}))
        return [*told, self.message("DELETE", rows[4], "delete")]


def lines(messages: Iterable[str | bytes]) -> bytes:
    return b"".join((one if isinstance(one, bytes) else one.encode()) + b"\n" for one in messages)


class Year:
    """A project, and the diary of the commands of a year."""

    def __init__(self, folder: Path) -> None:
        self.made, self.diary = unpacked("0.3.0", folder), list[str]()
        self.target, self.source, self.mirror, self.more = "local", "shop", "orders", ""
        self.set_up()

    def set_up(self, renamed: str = "", waived: Any = None) -> None:
        old = {"source": self.source, "mirror": self.mirror}
        if renamed:
            self.source, self.mirror = "store", "sales"
        said = [f"renamed_from: {old[one]}" if renamed else "" for one in ("source", "mirror")]
        project = yaml.safe_load(PROJECT.format(target=self.target, source=self.source, renamed=said[0]))
        if waived:
            project["sources"][0]["dead_letters"] = waived
        mirror = MIRROR.format(name=self.mirror, source=self.source, more=self.more, renamed=said[1])
        self.made.write({"project.yml": yaml.safe_dump(project), "models/orders.yml": mirror})

    def spec(self, more: str = "") -> None:
        self.made.write({"formats/mine.yml": SPEC + more})

    def do(self, *words: str, code: int = 0) -> str:
        ran = self.made.run(*words)
        self.diary.append(f"{ran.code}  runner {' '.join(words)}")
        assert ran.code == code, ran.err
        return ran.out + ran.err


def test_a_year(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    year, shop = Year(tmp_path), Shop()
    made = year.made
    year.spec()
    # January: this version goes on with the tables of the one before.
    made.write({"in/a.jsonl": lines(shop.month(100, has_note=False))})
    year.do("run")
    # February: a new column.
    year.more = ", note: string"
    year.set_up()
    altered = shop.alter("alter table orders add column note varchar(9)")
    made.write({"in/b.jsonl": lines([altered, *shop.month(200, "new")])})
    year.do("run")
    # March: for two weeks the spec leaves the column out. Then it is corrected.
    year.spec("drop: [note]\n")
    made.write({"in/c.jsonl": lines(shop.month(300, "spring"))})
    year.do("run")
    made.write({"in/d.jsonl": lines(shop.month(400, "spring"))})
    year.do("run")
    year.spec()
    assert "24 of" not in year.do("reprocess", "shop", "--stale", "--dry-run")
    year.do("reprocess", "shop", "--stale")
    # April: two hundred messages that nobody understands; one word of them is learned, the others are waived.
    bad: list[str | bytes] = [f'{{"broken": {nth}' for nth in range(BROKEN)]
    bad += ['{"database": "caf\u00e9"}'.encode("latin-1")] * LATIN
    merged = [shop.message("MERGE", {"id": 500 + nth, "n": nth, "note": "m"}, "insert") for nth in range(MERGED)]
    bad += [shop.message("ODD", {"id": 9, "n": nth}) for nth in range(ODD)]
    bad += ['{"database": "shop", "table": "orders", "type": "INSERT"}'] * BARE + ["{}"] * EMPTY
    made.write({"in/e.jsonl": lines([*merged, *bad])})
    year.do("run", code=1)
    year.spec("op: {cases: {MERGE: insert}}\n")
    year.do("dead-letters", "land")
    groups = [json.loads(line) for line in made.run("dead-letters", "--output", "json").out.splitlines()]
    assert sum(one["messages"] for one in groups if one["state"] == "open") == 200 - MERGED + 1
    for group in groups:
        year.do("dead-letters", "waive", group["id"], "--because", "sent by mistake", "--until", "2999-12-31")
    waived = yaml.safe_load((made / "project.yml").read_text())["sources"][0]["dead_letters"]
    # May: what has landed is gone.
    for name in "abcd":
        (made / f"in/{name}.jsonl").unlink()
    year.do("run", "--full-refresh", code=2)
    year.do("reprocess", "shop", "--stale")
    # June: other names.
    year.set_up("renamed", waived)
    made.write({"in/f.jsonl": lines(shop.month(600, "june"))})
    year.do("run")
    # August: another storage.
    year.do("copy", "--to", "ice")
    year.target = "ice"
    year.set_up(waived=waived)
    made.write({"in/g.jsonl": lines(shop.month(700, "august"))})
    year.do("run")
    # October: a spec is wrong once more, in the new place.
    year.spec("op: {cases: {MERGE: insert}}\ndrop: [n]\n")
    made.write({"in/h.jsonl": lines(shop.month(800, "october"))})
    year.do("run")
    year.spec("op: {cases: {MERGE: insert}}\n")
    year.do("reprocess", "store", "--stale")
    # December: all is well.
    made.write({"in/i.jsonl": lines(shop.month(900, "december"))})
    year.do("run")
    # Rows of the kept tables name files of another folder, which nobody can count again.
    year.do("test", "--data", "--exclude", "conserved_store")
    year.do("maintain", "--history-days", "0")
    check(made, shop)
    with capsys.disabled():
        print("\n" + "\n".join(year.diary))


def check(made: Project, shop: Shop) -> None:
    """Every row of the changelog, the mirror, its history and the incremental model."""
    told = made.rows(
        "select op, int(key['id']) as id, int(image['n']) as n, image['note'] as note "
        "from (select *, coalesce(after, before) as image from store_to_changelog where kind = 'row') order by seq"
    )
    assert [tuple(one.values()) for one in told] == shop.changes
    assert made.rows("select id, n, note from sales order by id") == [shop.rows[key] for key in sorted(shop.rows)]
    history = made.rows("select id, n, note from sales_history where op <> 'delete' order by id, valid_from")
    expected = sorted(((one[1], nth, one) for nth, one in enumerate(shop.changes) if one[0] != "delete"), key=str)
    assert len(history) == len(expected)
    counts = made.rows("select op, sum(changes) as n from daily where op is not null group by op order by op")
    ops = [one[0] for one in shop.changes]
    assert [(one["op"], one["n"]) for one in counts] == [(op, ops.count(op)) for op in sorted({*ops})]
