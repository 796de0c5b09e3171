"""Runs of which nothing has changed since they last ended well: they start no Spark, and say what a run says that finds
nothing new. Anything that may have changed something is looked at by Spark.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.engine.locks import TableLocks
from tests.landed import Project
from tests.small_format import SMALL, message
from tests.storages import TARGETS

pytestmark = pytest.mark.usefixtures("spark", "interpreted", "lean")

SOURCE = "sources: [{name: shop, format: small, files: in/*.jsonl}]\n"
MIRROR = "mirrors: [{name: orders, of: {source: shop, table: t}, key: [id], columns: {id: int}, history: true}]\n"
ADDED = "{{ config(materialized='incremental') }}\nselect key_text from {{ new_rows('changelog') }}\n"
COUNTED = """{{ config(materialized='table') }}
select count(*) as n, '{{ env_var('WORD', 'none', public=true) }}' as word from {{ ref('seen') }}
"""
FILES = {
    "project.yml": TARGETS + SOURCE,
    "formats/small.yml": SMALL,
    "models/m.yml": MIRROR,
    "models/added.sql": ADDED,
    "models/seen.sql": "select key_text from {{ ref('added') }} -- as they are now\n",
    "models/counted.sql": COUNTED,
    "in/1.jsonl": f"{message(1)}\n",
}
NOT_NEEDED = "Spark is not needed"


class SparkAsked(Exception):
    pass


Quiet = Callable[..., str | None]


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> Quiet:
    """What a command says that starts no Spark; None if it would start it."""

    def run(made: Project, *words: str) -> str | None:
        def asked(*_: object, **__: object) -> None:
            raise SparkAsked

        with monkeypatch.context() as patch:
            patch.setattr("runner.commands.session.open_spark", asked)
            ran = made.run(*words)
            assert (NOT_NEEDED in ran.err) == (ran.code == 0), ran.err
            assert ran.code == 0 or "SparkAsked" in ran.err, ran.err
            return ran.err if ran.code == 0 else None

    return run


def told(err: str) -> list[str]:
    """What a run says of its nodes, without times and order."""
    return sorted(
        re.sub(r"(\[| in )[0-9.]+s\]", "]", line.split(" OK ")[1]) for line in err.splitlines() if " OK " in line
    )


@pytest.mark.parametrize(
    "storage", ["parquet", *(pytest.param(other, marks=pytest.mark.soak) for other in ("delta", "iceberg"))]
)
def test_a_run_of_which_nothing_has_changed_starts_no_spark(tmp_path: Path, storage: str, quiet: Quiet) -> None:
    target, made = ("-t", storage), Project(tmp_path / "made", FILES)
    assert quiet(made, "run", *target) is None
    made.ok("run", *target)
    said = quiet(made, "run", *target)
    results = made.results
    (made / "project.yml").touch()
    found = made.ok("run", *target)
    assert said is not None and told(said) == told(found)
    assert "no new messages" in said and said.count("nothing new") == 2 and "PASS=12" in said
    assert {name: (one["status"], one["message"]) for name, one in results.items()} == {
        name: (one["status"], one["message"]) for name, one in made.results.items()
    }
    # Another selection has not run yet; tests, builds and full refreshes run.
    for words in (("-s", "orders"), ("--full-refresh",), ("--empty",)):
        assert quiet(made, "run", *words, *target) is None, words
    for command in ("build", "test"):
        assert quiet(made, command, *target) is None, command


@pytest.mark.parametrize("storage", ["parquet", "delta", "iceberg"])
def test_what_changes_in_tables_is_looked_at_by_spark(tmp_path: Path, storage: str, quiet: Quiet) -> None:
    target, made = ("-t", storage), Project(tmp_path / "made", FILES)

    def another_run_lands() -> None:
        made.write({"in/3.jsonl": f"{message(3)}\n"})
        made.ok("run", "-s", "shop_to_changelog", *target)

    made.ok("run", *target)
    for change in (lambda: made.write({"in/2.jsonl": f"{message(2)}\n"}), another_run_lands):
        assert quiet(made, "run", *target) is not None
        change()
        assert quiet(made, "run", *target) is None
        made.ok("run", *target)
    assert quiet(made, "run", *target) is not None
    lost = min((made / "lake" / storage).rglob("orders/**/*.parquet"))
    lost.rename(made / "lost")
    assert quiet(made, "run", *target) is None
    (made / "lost").rename(lost)
    assert [row["id"] for row in made.rows("select id from orders order by id", *target)] == [1, 2, 3]


LAKE = "lake/parquet"


def same_size_and_time(made: Project) -> None:
    path = made / "in/1.jsonl"
    found = path.stat()
    path.write_text(path.read_text().replace("1", "7"))
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


# What may change between two runs -> how; each is looked at by Spark.
CHANGES: dict[str, Callable[[Project], Any]] = {
    "a table is not there": lambda made: shutil.rmtree(made / LAKE / "counted"),
    "a table has come back under another name": lambda made: shutil.copytree(
        made / LAKE / "counted", made / LAKE / "counted_before"
    ),
    "a checkpoint lacks a record": lambda made: (made / LAKE / "_checkpoints/orders/_progress.json").unlink(),
    "what the source told of its tables is not there": lambda made: (made / LAKE / "_tables_seen/shop.json").unlink(),
    "results are not there": lambda made: shutil.rmtree(made / LAKE / "_node_results/storages"),
    "a full refresh has begun": lambda made: made.write({f"{LAKE}/_refreshes/added": "a run"}),
    "a rename has begun": lambda made: (made / LAKE / "_renames").mkdir(),
    "a batch was begun": lambda made: made.write({f"{LAKE}/_checkpoints/shop_to_changelog/again/.x": ""}),
    "a new macro": lambda made: made.write({"macros/mine.sql": "{% macro mine() %} 1 {% endmacro %}\n"}),
    "a description": lambda made: made.write({"models/m.yml": MIRROR + "models: [{name: seen, description: rows}]\n"}),
    "another query": lambda made: made.write({"models/counted.sql": COUNTED.replace("count(*)", "count(*) + 1")}),
    "a variable of the project": lambda made: made.write({"project.yml": FILES["project.yml"] + "vars: {a: 1}\n"}),
    "a setting of Spark": lambda made: made.write(
        {"project.yml": FILES["project.yml"].replace("lake/parquet}", 'lake/parquet, spark: {spark.sql.ansi.x: "1"}}')}
    ),
    "a format": lambda made: made.write({"formats/small.yml": f"{SMALL}produced_at: {{at: ts}}\n"}),
    "a time zone": lambda made: made.write(
        {"project.yml": FILES["project.yml"].replace("small,", "small, zone: UTC,")}
    ),
    "a file of messages was written again": same_size_and_time,
    "a file that no stream reads": lambda made: made.write({"in/_2.jsonl": f"{message(2)}\n"}),
    "a name with a colon": lambda made: made.write({"in/2:3.txt": f"{message(2)}\n"}),
    "a file of messages is gone": lambda made: (made / "in/1.jsonl").unlink(),
}


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory, spark: object) -> Project:
    made = Project(tmp_path_factory.mktemp("unchanged") / "made", FILES)
    made.ok("run")
    return made


def make_quiet(landed: Project, quiet: Quiet) -> None:
    """Gives back the project and its messages as they were, whatever has landed, and runs until nothing is new."""
    landed.write(FILES)
    for path in (landed / "in").iterdir():
        if f"in/{path.name}" not in FILES:
            path.unlink()
    ran = landed.run("run")
    if ran.code or "WARN=0" not in ran.err or quiet(landed, "run") is None:
        landed.ok("run", "--full-refresh", "--accept-loss")
        landed.ok("run")
    assert quiet(landed, "run") is not None


@pytest.mark.parametrize("what", CHANGES)
def test_what_has_changed_is_looked_at_by_spark(landed: Project, what: str, quiet: Quiet) -> None:
    make_quiet(landed, quiet)
    CHANGES[what](landed)
    assert quiet(landed, "run") is None


def test_what_is_not_in_files_is_looked_at_too(landed: Project, quiet: Quiet, monkeypatch: pytest.MonkeyPatch) -> None:
    make_quiet(landed, quiet)
    assert quiet(landed, "run", "--vars", "{a: 1}") is None
    places = {
        "WORD": lambda patch: patch.setenv("WORD", "other"),
        "RUNNER_MASK_SECRET": lambda patch: patch.setenv("RUNNER_MASK_SECRET", "x" * 64),
        "another version": lambda patch: patch.setattr("runner.run.unchanged._ours", lambda: [landed / "in"]),
        "another Spark": lambda patch: patch.setattr("runner.run.unchanged.find_spec", lambda _: None),
        "many files": lambda patch: patch.setattr("runner.run.unchanged.MOST_FILES", 3),
    }
    for what, change in places.items():
        with monkeypatch.context() as patch:
            change(patch)
            assert quiet(landed, "run") is None, what
    assert quiet(landed, "run") is not None


def test_a_table_that_another_run_writes_is_held(landed: Project, quiet: Quiet) -> None:
    make_quiet(landed, quiet)
    with TableLocks(landed / LAKE / "_locks", "run", "parquet") as locks:
        locks.take(["orders"])
        ran = landed.run("run")
    assert ran.code == 2 and 'error[target-held]: "orders" is being written by "run"' in ran.err
    assert quiet(landed, "run") is not None


def test_what_others_write_while_a_run_goes_on_is_not_taken_for_read(
    landed: Project, quiet: Quiet, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runner.run.models import Models

    make_quiet(landed, quiet)
    build = Models.build

    def and_then(*arguments: Any) -> Any:
        result = build(*arguments)
        landed.write({"in/late.jsonl": f"{message(9)}\n"})
        return result

    for words in (("run",), ("run", "-s", "shop_to_changelog")):
        (landed / "project.yml").touch()
        with monkeypatch.context() as patch:
            patch.setattr(Models, "build", and_then)
            landed.ok(*words)
        assert (landed / "in/late.jsonl").exists()
        assert quiet(landed, *words) is None
        landed.ok(*words)
        (landed / "in/late.jsonl").unlink()


# Models that may have other rows in a run that finds nothing new, or that do something in each run.
TABLE, ADDS = "{{ config(materialized='table') }}\n", "{{ config(materialized='incremental') }}\n"
NEVER = {
    "the time of the run": f"{TABLE}select now() as at\n",
    "rows in any number": f"{TABLE}select rand() as r from {{{{ ref('changelog') }}}}\n",
    "files that the project does not know": f"{TABLE}select * from text.`HERE/in`\n",
    "rows that are added again": f"{ADDS}select key_text from {{{{ ref('changelog') }}}}\n",
    "a row for no rows": f"{ADDS}select count(*) as n from {{{{ new_rows('changelog') }}}}\n",
    "a hook": "{{ config(materialized='table', post_hook='select 1') }}\nselect 1 as one\n",
    "a view of the time": f"{TABLE}select * from {{{{ ref('at') }}}}\n",
    "a table of others": f"{TABLE}select * from {{{{ source('others', 'texts') }}}}\n",
}
OTHERS = "sources: [{name: others, tables: [{name: texts, external: {location: in, using: json}}]}]\n"


@pytest.mark.parametrize("what", NEVER)
def test_models_that_may_change_by_themselves_are_run_by_spark(tmp_path: Path, what: str, quiet: Quiet) -> None:
    files = {key: FILES[key] for key in ("project.yml", "formats/small.yml", "in/1.jsonl")}
    made = Project(tmp_path / "made", files | {"models/m.sql": NEVER[what].replace("HERE", f"{tmp_path}/made")})
    made.write({"models/others.yml": OTHERS, "models/at.sql": "select now() as at\n"})
    made.ok("run")
    made.ok("run")
    assert quiet(made, "run") is None
    # Without this model the project is quiet: nothing else keeps it from that.
    made.write({"models/m.sql": "select 1 as one\n"})
    made.ok("run")
    assert quiet(made, "run") is not None


def test_a_record_that_is_damaged_is_none(landed: Project, quiet: Quiet) -> None:
    make_quiet(landed, quiet)
    for text in ("{", "[]", ""):
        for path in (landed / LAKE / "_unchanged").iterdir():
            path.write_text(text)
        assert quiet(landed, "run") is None
    landed.ok("run")
    assert quiet(landed, "run") is not None


def test_who_is_told_of_runs_is_told_of_these_too(landed: Project, quiet: Quiet) -> None:
    make_quiet(landed, quiet)
    landed.write({"project.yml": FILES["project.yml"] + "openlineage: {file: events.jsonl}\n"})
    landed.ok("run")
    landed.ok("run", "--metrics", "metrics.txt")

    def told_of() -> tuple[list[Any], str, str]:
        events = [json.loads(line) for line in (landed / "events.jsonl").read_text().splitlines()]
        (landed / "events.jsonl").unlink()
        shown = sorted((one["job"]["name"], one["eventType"], str(one.get("outputs"))) for one in events)
        # Times, counts of runs and the free space of disks differ each time.
        metrics = (landed / "metrics.txt").read_text().splitlines()
        same = [one for one in metrics if not re.search("seconds|bytes|node_results", one)]
        return shown, "\n".join(same), landed.run("status").out.split("\n")[0]

    (landed / "events.jsonl").unlink()
    (landed / "project.yml").touch()
    landed.ok("run", "--metrics", "metrics.txt")
    by_spark = told_of()
    assert quiet(landed, "run", "--metrics", "metrics.txt") is not None
    assert told_of() == by_spark


def test_a_run_that_warns_warns_again(tmp_path: Path, quiet: Quiet) -> None:
    files = {key: FILES[key] for key in ("project.yml", "formats/small.yml", "in/1.jsonl")}
    made = Project(tmp_path / "made", files | {"in/_hidden.jsonl": f"{message(2)}\n"})
    made.ok("run")
    assert quiet(made, "run") is None
