"""Dead letters, from their first look to landed rows. What lands once more is what lands at once with the format as it
is in the end.
"""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests import pages
from tests.landed import Project
from tests.storages import STORAGES, TARGETS
from tests.test_exactly_once import PROJECT, Run

if TYPE_CHECKING:
    from runner.engine.session import Spark

pytestmark = pytest.mark.usefixtures("spark", "interpreted", "lean")

SOURCES = """
sources:
  - {name: shop, format: mine, files: in/*.jsonl}
  - {name: changes, format: wal2json_v1, files: pg/*.jsonl}
"""
MIRROR = """
mirrors:
  - {name: orders, of: {source: shop, table: shop.orders}, key: [id], columns: {id: int, n: int}, history: true}
"""
OF_APP = """
mirrors:
  - {name: orders, of: {source: app, table: shop.orders}, key: [id], columns: {id: int, n: int}}
"""
WRONG = "extends: canal\nabout: ours\n"
# What the format lacked: this vendor's word.
RIGHT = f"{WRONG}op: {{cases: {{UPSERT: insert}}}}\n"
# Facts of the run that has landed a row.
OF_RUN = "run_id, batch, loaded_at, landed_on"


def change(number: int, kind: str, n: int, key: int) -> str:
    row = {"id": f"{key}", "n": f"{n}"}
    times = {"es": 1_710_496_800_000 + 1000 * number, "ts": 1_710_496_800_500 + 1000 * number}
    types = {"mysqlType": {"id": "int", "n": "int"}, "pkNames": ["id"]}
    before = [{"n": "0"}] if kind == "UPDATE" else None
    return json.dumps(
        {
            "id": number,
            "database": "shop",
            "table": "orders",
            "type": kind,
            **times,
            **types,
            "data": [row],
            "old": before,
        }
    )


BROKEN = '{"id": 9, "broken'
LATIN = change(8, "INSERT", 1, 8).replace("shop", "sh\u00f6p").encode("latin-1")
FIRST = [change(1, "INSERT", 5, 1), change(2, "UPSERT", 6, 2), change(3, "UPSERT", 7, 3), BROKEN]
# Of the row of a dead letter, and newer than it.
SECOND = [change(4, "UPDATE", 60, 2), change(5, "UPSERT", 9, 4)]
PG = json.dumps({"change": [{"kind": "upsert", "schema": "s", "table": "t"}, {"kind": "mystery", "table": "t"}]})


def lines(*messages: str | bytes) -> bytes:
    return b"".join((one if isinstance(one, bytes) else one.encode()) + b"\n" for one in messages)


def project(folder: Path, spec: str) -> Project:
    files = {"project.yml": TARGETS + SOURCES, "models/m.yml": MIRROR, "formats/mine.yml": spec, "pg/1.jsonl": PG}
    return Project(folder, {**files, "in/1.jsonl": lines(*FIRST)})


def changelog(made: Project, *target: str) -> list[Mapping[str, Any]]:
    """All rows of all sources, without what a run says of them."""
    parts = " union all ".join(f"select * from {name}_to_changelog" for name in ("shop", "changes"))
    return made.rows(f"select * except ({OF_RUN}) from ({parts}) order by seq, kind, op", *target)


def mirrored(made: Project, *target: str) -> list[Mapping[str, Any]]:
    state = made.rows("select id, n, _changed_at from orders order by id", *target)
    return state + made.rows(
        "select id, n, valid_from, valid_to, is_current from orders_history order by id, valid_from", *target
    )


def letters(made: Project, *words: str) -> list[dict[str, Any]]:
    ran = made.run("dead-letters", *words, "--output", "json")
    assert ran.code == 0, ran.err
    return [json.loads(line) for line in ran.out.splitlines()]


def groups(made: Project, *words: str) -> set[tuple[Any, ...]]:
    return {
        (one["source"], one["reason"], one["detail"], one["table"], one["messages"]) for one in letters(made, *words)
    }


def state(made: Project, *target: str) -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in made.run("state", "--output", "json", *target).out.splitlines()]
    return {row["name"]: row for row in rows}


@pytest.mark.parametrize(
    "storage", ["parquet", *(pytest.param(other, marks=pytest.mark.soak) for other in ("delta", "iceberg"))]
)
def test_what_lands_once_more(tmp_path: Path, storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target = ("-t", storage)
    made = project(tmp_path / "made", WRONG)
    made.run("run", *target)
    made.write({"in/2.jsonl": lines(*SECOND, LATIN)})
    made.run("run", *target)
    upserts = ("shop", "unknown-op", 'type: "UPSERT"', "shop.orders", 3)
    broken, latin = ("shop", "not-json", None, None, 1), ("shop", "not-utf8", None, None, 1)
    parts = {
        ("changes", "unknown-op", f'change.kind: "{kind}"', table, 1)
        for kind, table in (("upsert", "s.t"), ("mystery", "t"))
    }
    assert groups(made, *target) == {upserts, broken, latin} | parts
    assert groups(made, *target, "--source", "shop", "--reason", "unknown-op", "--table", "orders") == {upserts}
    assert groups(made, *target, "--since", "2999-01-01") == set()

    # With the format as it is, nothing lands.
    assert [one["land"] for one in letters(made, "try", *target)] == [0] * 5
    made.write({"formats/mine.yml": RIGHT})
    tried = {(one["reason"], one["detail"]): one for one in letters(made, "land", "--dry-run", *target)}
    assert (tried["unknown-op", 'type: "UPSERT"']["land"], tried["unknown-op", 'type: "UPSERT"']["as_rows"]) == (
        3,
        "row insert",
    )
    assert (tried["not-json", None]["land"], tried["not-json", None]["still"]) == (0, "not-json")
    assert tried["unknown-op", 'change.kind: "mystery"']["still"] == "a part of a message"
    assert mirrored(made, *target)[0]["n"] == 5 and len(letters(made, *target)) == 5

    # Killed when the messages are placed and have not landed: the next run lands them, and each once.
    with monkeypatch.context() as patch:
        patch.setattr(
            "runner.commands.dead_letters.land_and_build", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        assert made.run("dead-letters", "land", *target).code == 130
    assert state(made, *target)["shop"]["note"] == "messages wait to land once more with the next run"
    again = made.run("dead-letters", "land", *target)
    assert again.code == 0 and "land first: shop" in again.err
    assert {"shop_to_changelog", "orders"} <= {*made.statuses} and "changes_to_changelog" not in made.statuses
    assert "no message would land" in made.run("dead-letters", "land", *target).out
    made.ok("run", *target)
    assert groups(made, *target) == {broken, latin} | parts

    told = {name: (row["kind"], row["read"], row["note"]) for name, row in state(made, *target).items()}
    assert told["shop"] == ("source", "batch 2: 2 files", "") and told["orders"] == ("mirror", "shop: batch 2", "")

    # What all messages become that land at once with this format.
    found = mirrored(made, *target), changelog(made, *target)
    assert [row["n"] for row in found[0]][:4] == [5, 60, 7, 9]
    made.ok("test", "-s", "conserved_shop", "orders", *target)
    assert made.run("run", "--full-refresh", *target).code == 1
    assert found == (mirrored(made, *target), changelog(made, *target))


def test_one_by_one(tmp_path: Path) -> None:
    """What a person sees of one message, what is written to files, and a waiver."""
    made = project(tmp_path, WRONG)
    made.write({"in/2.jsonl": lines(*SECOND, LATIN)})
    assert made.run("run").code == 1
    found = {(one["reason"], one["detail"]): one for one in letters(made)}
    upsert = found["unknown-op", 'type: "UPSERT"']
    shown = made.run("dead-letters", "show", upsert["id"]).out.splitlines()
    where = next(line for line in shown if line.startswith("decided"))
    assert where.startswith("decided  by op.cases, at ") and "canal.yml:" in where
    # The marks stand below the field that names the operation.
    text, marks = shown[-2], shown[-1]
    assert text[marks.index("^") : marks.index("^") + marks.count("^")] == '"type": "UPSERT"'
    # All landed at the same time, and any of them may be the newest.
    number = int(re.findall(r'"id": (\d+), "database"', text)[0])
    file, line = {2: ("in/1.jsonl", 2), 3: ("in/1.jsonl", 3), 5: ("in/2.jsonl", 2)}[number]
    assert f"lies in  file:{made / file}, line {line}" in shown
    (made / file).rename(made / "gone")
    assert f"lies in  file:{made / file}, which is gone\n" in made.run("dead-letters", "show", upsert["id"]).out
    (made / "gone").rename(made / file)
    of_one = made.run("dead-letters", "show", found["not-json", None]["example"]).out.splitlines()
    assert of_one[0] == f"{found['not-json', None]['example']}  not-json" and of_one[-2].endswith(BROKEN)
    assert of_one[-1].index("^") == of_one[-2].index('"broken')
    none = made.run("dead-letters", "show", "0000")
    assert none.code == 2 and "error[dead-letter-unknown]" in none.err

    of_several = made.run("dead-letters", "export", "all.jsonl")
    assert of_several.code == 2 and "several formats" in of_several.err
    made.ok("dead-letters", "export", "all.jsonl", "--source", "shop")
    # Two files that were written in the same millisecond have no order.
    refused = [*(one for one in [*FIRST, *SECOND] if one == BROKEN or "UPSERT" in one), LATIN]
    assert sorted((made / "all.jsonl").read_bytes().splitlines()) == sorted(lines(*refused).splitlines())
    made.write({"formats/mine.yml": RIGHT})
    made.ok("dead-letters", "export", "--as-case", "upsert", "--reason", "unknown-op", "--source", "shop")
    case = made.ok("test", "-s", "resource_type:unit_test", "format:mine")
    assert "upsert" in case and (made / "formats/cases/mine/upsert.rows.yml").read_text().count("op: insert") == 3

    assert "there are no such dead letters" in made.run("dead-letters", "export", "x.jsonl", "--reason", "empty").err
    broken = made.run("dead-letters", "waive", upsert["id"], "--because", "x", "--until", "never")
    assert (
        broken.code == 2 and "error[source-waiver]" in broken.err and "waived" not in (made / "project.yml").read_text()
    )
    made.ok(
        "dead-letters",
        "waive",
        found["not-json", None]["id"],
        "--because",
        "cut by the sender",
        "--until",
        "2999-01-31",
    )
    state = {one["reason"]: one["state"] for one in letters(made)}
    assert (state["not-json"], state["not-utf8"]) == ("waived", "open")
    made.write({"in/3.jsonl": BROKEN + "\n"})
    assert "1 waived" in made.ok("run", "-s", "shop_to_changelog")


@pytest.mark.parametrize("storage", ["parquet", "delta"])
def test_other_tools_see_it_too(tmp_path: Path, spark: Spark, storage: str) -> None:
    """The views in a catalog have no dead letter whose message has landed since."""
    schema = f"landed_again_{storage}"
    made = project(tmp_path, WRONG)
    targets = f"target: t\ntargets: {{t: {{storage: {storage}, path: lake, catalog: {{schema: {schema}}}}}}}\n"
    made.write({"project.yml": targets + SOURCES})
    made.run("run")
    made.write({"formats/mine.yml": RIGHT})
    made.ok("dead-letters", "land")
    other = spark.fresh().session
    reasons = other.sql(f"select reason from {schema}.dead_letters where source = 'shop'").collect()
    assert [row.reason for row in reasons] == ["not-json"]
    assert other.table(f"{schema}.changelog").count() == 3
    assert other.sql(f"select dead_letters from {schema}.freshness where source = 'shop'").collect()[0][0] == 1


PAGE = Path(__file__).parent.parent / "docs/operations.md"


def test_the_page_shows_what_comes_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line that the page shows begins a line of what the commands above it print; files change as it goes on."""
    monkeypatch.setenv("COLUMNS", "140")
    made, said = Project(tmp_path, {}), ""
    for block in pages.blocks(PAGE):
        if block.name:
            made.write({block.name: block.text})
        elif block.kind == "sh":
            said = ""
            for words in pages.statements(block.text):
                if words[0] == "mv":
                    (made / words[1]).rename(made / words[2])
            for words in pages.commands([block]):
                ran = made.run(*words)
                # The first run has more dead letters than a run may have.
                assert ran.code == (words == ["run"]), ran.err
                said += ran.out
        else:
            shown = [line.rstrip() for line in said.splitlines()]
            missing = [line for line in block.text.splitlines() if not any(one.startswith(line) for one in shown)]
            assert not missing, said
    waived = yaml.safe_load((made / "project.yml").read_text())["sources"][0]["dead_letters"]["waived"]
    assert [one["because"] for one in waived] == ["cut off by the sender"]


def test_a_full_refresh_does_not_lose_what_is_gone(tmp_path: Path) -> None:
    made = project(tmp_path, RIGHT)
    made.run("run")
    before = mirrored(made)
    (made / "in/1.jsonl").unlink()
    made.write({"in/2.jsonl": lines(*SECOND)})
    refused = made.run("run", "--full-refresh")
    assert refused.code == 2 and "error[source-not-replayable]" in refused.err and "1 file, such as" in refused.err
    assert "--> project.yml:" in refused.err and before == mirrored(made)
    # What the mirror has is not lost if the run after that is an ordinary one.
    made.run("run")
    assert [row["n"] for row in mirrored(made)][:4] == [5, 60, 7, 9]
    made.run("run", "--full-refresh", "--accept-loss")
    assert [row["n"] for row in mirrored(made)][:2] == [60, 9]


def drawn_moment(run: Run, chance: random.Random) -> Callable[[], bool]:
    until = time.monotonic() + chance.uniform(2, 25)
    return chance.choice(
        [run.is_between_commits, lambda: run.data_files() > run.written, lambda: time.monotonic() > until]
    )


@pytest.mark.soak
@pytest.mark.parametrize("storage", STORAGES)
def test_killed_commands_land_each_message_once(
    tmp_path: Path, storage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each round knows one word more; the command that lands the messages with it is killed at a random moment, and
    sometimes the run after it too. In the end each message is one row, and all rows are as a full refresh makes them.
    """
    chance, hit, size = random.Random(storage), Counter[str](), 300
    made = Project(tmp_path, {"project.yml": PROJECT.replace("format: canal", "format: mine"), "models/m.yml": OF_APP})
    for round_ in range(int(os.environ.get("KILLS", "20"))):
        words = ", ".join(f"W{nth}: insert" for nth in range(round_))
        made.write({"formats/mine.yml": WRONG + (f"op: {{cases: {{{words}}}}}\n" if words else "")})
        told = [change(size * round_ + nth, f"W{round_}", nth, size * round_ + nth) for nth in range(size)]
        made.write({f"in/{round_}.jsonl": lines(*told)})
        for command in (["run"], ["dead-letters", "land"], ["run"]):
            run = Run(tmp_path, storage, command)
            if (command != ["run"] or chance.random() < 0.3) and run.wait_for(drawn_moment(run, chance)):
                run.kill(chance.random() < 0.3)
                hit[command[0]] += 1
            run.process.wait()
            assert run.process.returncode <= 1, run.log.read_text()
    target, rounds = ("-t", storage), round_ + 1
    words = ", ".join(f"W{nth}: insert" for nth in range(rounds))
    made.write({"formats/mine.yml": f"{WRONG}op: {{cases: {{{words}}}}}\n"})
    for _ in range(2):  # the first may finish what an interrupted command has left
        made.ok("run", *target)
        made.run("dead-letters", "land", *target)
    assert letters(made, *target) == []
    query = f"select * except ({OF_RUN}) from app_to_changelog order by seq"
    rows, mirror = made.rows(query, *target), made.rows("select id, n from orders order by id", *target)
    assert [row["id"] for row in mirror] == list(range(size * rounds)) and len(rows) == size * rounds
    made.ok("test", "-s", "conserved_app", "orders", *target)
    made.ok("run", "--full-refresh", *target)
    assert rows == made.rows(query, *target) and mirror == made.rows("select id, n from orders order by id", *target)
    with capsys.disabled():
        print(f"\n{storage}: killed {dict(hit)}; {len(rows)} messages, each landed once")


@pytest.mark.parametrize("storage", ["delta", "iceberg"])
def test_what_nobody_sees_is_removed(tmp_path: Path, storage: str) -> None:
    """Where a storage changes rows, maintenance leaves no dead letter in a table whose message has landed since."""
    target = ("-t", storage)
    made = project(tmp_path, WRONG)
    made.run("run", *target)
    made.write({"formats/mine.yml": RIGHT})
    made.ok("dead-letters", "land", *target)
    seen = changelog(made, *target)
    made.ok("maintain", "-s", "shop_to_changelog", *target)
    assert (
        json.loads((made / f"lake/{storage}/_checkpoints/shop_to_changelog/_again.json").read_text())["letters"] == []
    )
    assert changelog(made, *target) == seen and len(seen) == 6
    made.ok("run", *target)
    assert changelog(made, *target) == seen
