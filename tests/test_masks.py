"""Columns whose values nobody may see: in no file and no output of a project, whatever the messages are in, whatever
goes wrong. What stands in their place is checked against Python's own HMAC.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import sqlite3
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from tests.hidden import holding
from tests.landed import Project
from tests.storages import TARGETS
from tests.test_avro_sources import SCHEMA, container, record
from tests.test_frames import framed, key_of

pytestmark = pytest.mark.usefixtures("spark", "interpreted", "lean")

SECRET, OTHER = "the secret of the tests of masks", "a secret that comes after the other one"
# All values that nobody may see begin so.
PLANTED = "Pl4nted"
PROJECT = """
sources:
  - name: shop
    format: mine
    files: in/*.jsonl
    keep_raw: all
    dead_letters: {{fail: null}}
    mask_unknown_columns: hmac
    tables:
      - name: Shop.Customers
        key: id
        mask: {{phone: hmac, mail: {mail}, name: drop, card: {{last: 4}}, born: null, city: loud, n: none}}
  - name: keyed
    format: debezium
    files: in/keyed/*.records.jsonl
    keep_raw: all
    dead_letters: {{fail: null}}
    tables: [{{name: people, mask: {{mail: hmac}}, masked_key: true}}]
  - name: events
    format: ticdc_open
    table: in/dump
    keep_raw: all
    dead_letters: {{fail: null}}
    tables: [{{name: t, mask: {{v: hmac}}}}]
  - name: bytes
    format: oceanbase_avro
    files: in/bytes/*
    keep_raw: all
    dead_letters: {{fail: null}}
    tables: [{{name: t, mask: {{v: {{first: 2}}}}}}]
  - name: db
    format: rows
    jdbc: {{url: "jdbc:sqlite:{database}", query: select * from people}}
    tables: [{{name: people, key: id, mask: {{name: hmac}}}}]
"""
FILES = {
    "formats/mine.yml": "extends: canal\nabout: ours\n",
    "macros/functions/loud.sql": (
        "create function loud(a string comment 'a text') returns string comment 'Its length.'"
        " return cast(length(a) as string);\n"
    ),
    "models/m.yml": """
mirrors:
  - name: customers
    of: {source: shop, table: shop.customers}
    key: [id]
    history: true
    columns: {id: bigint, phone: string, mail: string, card: string, born: date, city: string, n: bigint, later: string}
  - {tables: "*.people", of: {source: keyed}, name: "keyed_{table}", history: true}
models:
  - name: told
    columns:
      - name: key_text
        data_tests: [{accepted_values: {values: [x], config: {store_failures: true}}}]
""",
    "models/told.sql": "{{ config(materialized='incremental') }}\n"
    "select source, kind, key_text, after, before, raw, statement, detail from {{ new_rows('changelog') }}\n",
}
ROW = {
    "id": "7",
    "phone": f"{PLANTED} 1",
    "mail": f"{PLANTED}@example.org",
    "name": f"{PLANTED} Ann",
    "card": f"{PLANTED}4111",
    "born": "1980-02-03",
    "city": f"{PLANTED}burg",
    "n": "5",
    "note": f"{PLANTED}: a note",
}
FIRST_TIME = 1_764_490_000_000


def change(number: int, kind: str, **told: Any) -> str:
    """A message of Canal about the customers; `number` counts seconds."""
    times = {"es": FIRST_TIME + 1000 * number, "ts": FIRST_TIME + 1000 * number + 1}
    common = {"id": number, "database": "shop", "table": "customers", "type": kind, "isDdl": False, "pkNames": ["id"]}
    return json.dumps({**common, **times, "mysqlType": dict.fromkeys(ROW, "varchar(99)"), "old": None, **told})


ALTER = (
    f"alter table customers add later varchar(30) not null default '{PLANTED} x' "
    f'comment "{PLANTED} y" /* {PLANTED} z */ -- {PLANTED}'
)
AFTER = {**ROW, "phone": f"{PLANTED} 2", "note": None}
MESSAGES = [
    change(1, "INSERT", data=[ROW]),
    change(2, "UPDATE", data=[AFTER], old=[{"phone": ROW["phone"], "note": ROW["note"], "name": f"{PLANTED} before"}]),
    change(3, "ALTER", isDdl=True, sql=ALTER, data=None),
    change(4, "QUERY", isDdl=True, sql=f"update customers set phone = '{PLANTED}' where id = 7", data=None),
    change(5, "ODD", data=[{"id": "9", "phone": f"{PLANTED} 9"}], sql=f"{PLANTED} sql"),
    change(6, "UPDATE", data=None, sql=f"update customers set name = '{PLANTED}'"),
    change(7, "INSERT", data=[{"id": "8", "CITY": f"{PLANTED}", "phone": ROW["phone"]}]),
    f'{{"database": "shop", "table": "customers", "broken": "{PLANTED}',
    change(8, "INSERT", table="orders", data=[{"id": "1", "n": "3"}]),
]
SOURCE = {"connector": "mysql", "db": "d", "table": "people", "ts_ms": FIRST_TIME}


def keyed(op: str, before: object, after: object, mail: str) -> str:
    value = json.dumps({"op": op, "before": before, "after": after, "source": SOURCE, "ts_ms": FIRST_TIME})
    headers = ["user", f"{PLANTED} header"]
    return json.dumps({"topic": "s.d.people", "key": json.dumps({"mail": mail}), "value": value, "headers": headers})


MAIL, NEW_MAIL = f"{PLANTED}@a.org", f"{PLANTED}@b.org"
KEYED = [
    keyed("c", None, {"mail": MAIL, "n": 1}, MAIL),
    keyed("u", {"mail": MAIL, "n": 1}, {"mail": NEW_MAIL, "n": 2}, NEW_MAIL),
    keyed("d", {"mail": NEW_MAIL, "n": 2}, None, NEW_MAIL),
    json.dumps({"topic": "s.d.people", "key": json.dumps({"mail": NEW_MAIL}), "value": None}),
    keyed("c", None, {"mail": MAIL, "n": 3}, MAIL),
    json.dumps({"topic": "s.d.people", "key": None, "value": json.dumps({"op": "m", "message": {"content": PLANTED}})}),
]
TI_KEY = b'{"ts":415508878783938562,"scm":"test","tbl":"t","t":1}'
TI_ROW = b'{"u":{"id":{"t":8,"h":true,"f":130,"v":%d},"v":{"t":15,"f":64,"v":"%s"}}}'


def hashed(value: str, secret: str = SECRET) -> str:
    return hmac.new(secret.encode(), value.encode(), hashlib.sha256).hexdigest()


def project(folder: Path) -> Project:
    made = Project(folder, FILES)
    write_settings(made, "{keep: domain}")
    rows = [record(number) for number in range(3)]
    for row in rows:
        row["afterImages"][1]["value"] = f"{PLANTED} {row['id']}"
    rows.append({**record(4), "operation": "ODD"})
    rows[-1]["afterImages"][1]["value"] = PLANTED
    made.write(
        {
            "in/1.jsonl": "\n".join(MESSAGES),
            "in/keyed/1.records.jsonl": "\n".join(KEYED),
            "in/bytes/1.avro": container(rows[:3], SCHEMA),
        }
    )
    (made / "in/dump").mkdir()
    value = framed([TI_ROW % (number, f"{PLANTED} {number}".encode()) for number in (1, 2)])
    columns = {"key": [key_of([TI_KEY, TI_KEY]), b"x"], "value": [value, f"{PLANTED} frame".encode()]}
    places = {"topic": ["t", "t"], "partition": pyarrow.array([0, 0], pyarrow.int32()), "offset": [0, 1]}
    pyarrow.parquet.write_table(pyarrow.table({**columns, **places}), made / "in/dump/part.parquet")
    with sqlite3.connect(made / "in/people.db") as database:
        database.execute("create table people(id integer primary key, name text)")
        database.execute("insert into people values (1, ?)", [f"{PLANTED} of the database"])
    return made


def write_settings(made: Project, mail: str) -> None:
    made.write({"project.yml": TARGETS + PROJECT.format(database=made / "in/people.db", mail=mail)})


def clean(made: Project) -> bool:
    return holding(made.folder, [PLANTED], ("in", "keyed", "bytes", "dump")) == []


@pytest.mark.parametrize(
    "storage", ["parquet", *(pytest.param(other, marks=pytest.mark.soak) for other in ("delta", "iceberg"))]
)
def test_no_value_is_anywhere(tmp_path: Path, storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target = ("-t", storage)
    monkeypatch.setenv("RUNNER_MASK_SECRET", SECRET)
    made = project(tmp_path / "made")
    said = [made.run("build", "--log-format", "json", *target)]
    assert said[0].code == 1, said[0].err  # the test of told fails
    assert clean(made)
    rows = {
        source: made.rows(f"select * from {source}_to_changelog order by seq, kind", *target)
        for source in ("shop", "keyed", "events", "bytes", "db")
    }
    check_shop(rows["shop"])
    check_keyed(rows["keyed"])
    mine = [(row["kind"], (row["after"] or {}).get("v")) for row in rows["events"]]
    assert sorted(mine, key=str) == sorted(
        [("dead_letter", None), ("row", hashed(f"{PLANTED} 1")), ("row", hashed(f"{PLANTED} 2"))], key=str
    )
    assert {(row["after"] or {}).get("v") for row in rows["bytes"]} == {"Pl***"}
    assert rows["db"][0]["after"] == {"id": "1", "name": hashed(f"{PLANTED} of the database")}
    (mirrored,) = made.rows("select * from customers where id = 7", *target)
    assert (mirrored["phone"], mirrored["card"]) == (hashed(f"{PLANTED} 2"), "***4111")
    assert [row["mail"] for row in made.rows("select mail from keyed_people", *target)] == [hashed(MAIL)]

    # All that people look at.
    said += [made.run(*words, *target) for words in (("dead-letters",), ("status",), ("state",), ("docs", "generate"))]
    (letter,) = [row for row in made.rows("select * from dead_letters", *target) if row["reason"] == "not-json"]
    of_letter = json.loads(made.run("dead-letters", "--output", "json", "--reason", "not-json", *target).out)
    said += [made.run("dead-letters", "show", of_letter["id"], *target), made.run("test", "--data", *target)]
    assert letter["meta"]["raw_encoding"] == "sealed" and letter["detail"] is None
    said.append(made.run("parse", "mine", "in/1.jsonl"))
    assert not any(PLANTED in text for one in said for text in (one.out, one.err))
    # Who has the secret may look.
    opened = made.run("dead-letters", "show", of_letter["id"], "--open", *target)
    assert opened.code == 0 and f'"broken": "{PLANTED}' in opened.out

    # A word is learned, and a mask; killed when the messages wait to land.
    made.write({"formats/mine.yml": "extends: canal\nabout: ours\nop: {cases: {ODD: insert}}\n"})
    write_settings(made, "hmac")
    with monkeypatch.context() as patch:
        patch.setattr("runner.commands.reprocess.land_and_build", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert made.run("reprocess", "shop", "--stale", *target).code == 130
    assert clean(made)
    for _ in range(2):
        assert made.run("reprocess", "shop", "--stale", *target).code in (0, 1)
    (mirrored,) = made.rows("select * from customers where id = 7", *target)
    assert mirrored["mail"] == hashed(ROW["mail"])
    assert clean(made)

    # A person is erased by a key that is masked, also from messages that are sealed.
    for mail in (MAIL, NEW_MAIL):
        erased = made.run("erase", "--table", "people", "--source", "keyed", "--key", f"mail={mail}", *target)
        assert erased.code == 0, erased.err
    left = made.rows("select kind, op, key, before, after, raw, origin.key as told from keyed_to_changelog", *target)
    assert all(row["key"] is row["before"] is row["after"] is row["told"] is None for row in left), left
    assert [row["op"] for row in left].count("erased") == 5 and made.rows("select * from keyed_people", *target) == []

    # Another secret is refused, unless it follows the one before.
    monkeypatch.setenv("RUNNER_MASK_SECRET", OTHER)
    refused = made.run("run", "-s", "shop_to_changelog", *target)
    assert refused.code == 1 and "was masked with another secret" in refused.err
    monkeypatch.setenv("RUNNER_MASK_SECRET_BEFORE", SECRET)
    assert made.run("reprocess", "shop", "--stale", *target).code == 0
    monkeypatch.delenv("RUNNER_MASK_SECRET_BEFORE")
    same = made.run("reprocess", "shop", "--dry-run", *target)
    assert same.code == 0 and "all their rows are the same" in same.err
    (mirrored,) = made.rows("select * from customers where id = 7", *target)
    assert (mirrored["mail"], mirrored["phone"]) == (hashed(ROW["mail"], OTHER), hashed(f"{PLANTED} 2", OTHER))
    with monkeypatch.context() as patch:
        patch.setattr("runner.engine.maintenance._days_ago", lambda days: date.today() + timedelta(days=1))
        made.run("maintain", "--history-days", "0", *target)
    assert clean(made)


def check_shop(rows: list[dict[str, Any]]) -> None:
    """All that the messages of Canal became, by hand."""
    inserted, updated, altered, statement, odd, without, other, broken, order = rows
    shown = {
        "id": "7",
        "phone": hashed(ROW["phone"]),
        "mail": "***@example.org",
        "card": "***4111",
        "born": None,
        "city": str(len(ROW["city"])),
        "n": "5",
        "note": hashed(ROW["note"]),
    }
    assert (inserted["after"], inserted["key"], inserted["key_text"]) == (shown, {"id": "7"}, '{"id":"7"}')
    assert (updated["before"], updated["changed"]) == (shown, ["note", "phone"])
    assert updated["after"] == {**shown, "phone": hashed(AFTER["phone"]), "note": None}
    assert "name" not in inserted["types"] and inserted["types"]["phone"] == "varchar(99)"
    assert altered["statement"] == (
        "alter table customers add later varchar(30) not null default '***' comment \"***\"  "
    )
    assert statement["statement"] == "update customers set phone = '***' where id = 0"
    assert [(one["reason"], one["detail"]) for one in (odd, without, broken)] == [
        ("unknown-op", None),
        ("statement-without-rows", None),
        ("not-json", None),
    ]
    # The name of a column may be in capitals.
    assert other["after"] == {"id": "8", "CITY": str(len(PLANTED)), "phone": hashed(ROW["phone"])}
    assert order["after"] == {"id": "1", "n": "3"} and json.loads(order["raw"])["table"] == "orders"


def check_keyed(rows: list[dict[str, Any]]) -> None:
    """A key that is masked joins, changes and goes as the key does."""
    old, new = {"mail": hashed(MAIL)}, {"mail": hashed(NEW_MAIL)}
    told = {row["op"]: row for row in rows if row["op"] != "insert"}
    inserts = [row for row in rows if row["op"] == "insert"]
    assert [row["key"] for row in inserts] == [old, old]
    assert (told["update"]["key"], told["update"]["old_key"]) == (new, old)
    assert told["update"]["key_text"] == json.dumps(new).replace(" ", "")
    assert told["delete"]["key"] == new
    assert all(PLANTED not in json.dumps(row) for row in rows)
