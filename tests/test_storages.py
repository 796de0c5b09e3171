"""The same project on each storage gives the same rows: changelog tables, views, models, increments, and what is
refused. Everything through the command line.
"""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from runner.cli import main
from runner.engine.errors import QueryFailed
from runner.engine.files import LocalFiles
from runner.engine.increment import columns_after
from runner.project.nodes import SCHEMA_CHANGES
from runner.project.targets import TARGET_KEYS
from tests.pages import Block, commands, section, write_files
from tests.rest_catalog import RestCatalog

pytestmark = pytest.mark.usefixtures("interpreted")
ROOT = Path(__file__).parent.parent
STORAGES = ("parquet", "delta", "iceberg")
# What is the same code on all: on one in `make test`, on the others in `make soak`.
DELTA_FIRST = ("delta", *(pytest.param(one, marks=pytest.mark.soak) for one in ("parquet", "iceberg")))
OTHERS = STORAGES[1:]
TARGETS = """
name: storages
target: parquet
targets:
  parquet: {path: lake/parquet}
  delta: {storage: delta, path: lake/delta}
  iceberg: {storage: iceberg, path: lake/iceberg, catalog: {type: hadoop}}
"""


class Runner:
    """The command line on a project."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._capsys = folder, capsys
        monkeypatch.chdir(folder)

    def write(self, **models: str) -> None:
        for name, sql in models.items():
            path = self.folder / f"models/{name}.sql"
            path.parent.mkdir(exist_ok=True)
            path.write_text(sql)

    def run(self, storage: str, *words: str, step: int = 1) -> tuple[int, str]:
        """The exit code, and what was reported."""
        self._capsys.readouterr()
        code = main([*(words or ("run",)), "-t", storage, "--vars", f"{{step: {step}}}"])
        return code, self._capsys.readouterr().err

    def build(self, storage: str, *words: str, step: int = 1) -> None:
        code, said = self.run(storage, "run", *words, step=step)
        assert code == 0, said

    def rows(self, storage: str, sql: str) -> list[dict[str, Any]]:
        self._capsys.readouterr()
        code = main(
            ["show", "-t", storage, "--vars", "{step: 1}", "--inline", sql, "--limit", "100000", "--output", "json"]
        )
        out, err = self._capsys.readouterr()
        assert code == 0, err
        return [json.loads(line) for line in out.split("\n") if line]  # values hold other ends of lines

    def results(self) -> dict[str, str]:
        """Model -> how it went in the last run."""
        results = json.loads((self.folder / "target/run_results.json").read_text())["results"]
        return {result["unique_id"].split(".")[-1]: result["status"] for result in results}


@pytest.fixture
def runner(
    tmp_path: Path, spark: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Runner:
    (tmp_path / "project.yml").write_text(TARGETS)
    return Runner(tmp_path, capsys, monkeypatch)


# --- landing


NESTED = """
{{ config(materialized='table') }}
select
  kind, source, op, seq as `seq of.it`, after as `AFTER`, changed as ```changed```, origin.file is null as no_file,
  named_struct('n', named_struct('list', array(named_struct('x.y', key_text)))) as nested,
  array(map('a', cast(seq.row as decimal(20, 5)))) as maps, event_time
from {{ ref('changelog') }}
"""
VIEWS = (
    "changelog",
    "ddl_events",
    "control_events",
    "dead_letters",
    "freshness",
    "freshness_by_table",
    "nested",
    "views_of_it",
)


def sources_of(formats: Sequence[str]) -> str:
    return "sources:\n" + "".join(
        f"  - {{name: {name}, format: {name}, {'table' if is_avro(name) else 'files'}: in/{name}}}\n"
        for name in formats
    )


def is_avro(name: str) -> bool:
    return name.endswith("avro")


def write_messages(folder: Path, formats: Sequence[str], part: int) -> None:
    """Half of the messages of the formats' cases; both halves together are all of them."""
    for name in formats:
        (folder / "in" / name).mkdir(parents=True, exist_ok=True)
        ending = "base64" if is_avro(name) else "jsonl"
        files = sorted((ROOT / "formats/cases" / name).glob(f"*.messages.{ending}"))[part::2]
        if is_avro(name):
            values = [base64.b64decode(line) for file in files for line in file.read_bytes().split()]
            pyarrow.parquet.write_table(
                pyarrow.table({"value": pyarrow.array(values, pyarrow.binary())}), folder / f"in/{name}/{part}.parquet"
            )
        else:
            (folder / f"in/{name}/{part}.jsonl").write_bytes(b"\n".join(file.read_bytes() for file in files))


def as_text(
    rows: list[dict[str, Any]], without: tuple[str, ...] = ("run_id", "batch", "loaded_at", "landed_on", "last_loaded")
) -> list[str]:
    return sorted(
        json.dumps({key: value for key, value in row.items() if key not in without}, sort_keys=True) for row in rows
    )


@pytest.mark.parametrize(
    "formats",
    [
        ("canal", "oceanbase_avro"),
        pytest.param(("oms_default", "oms_shareplex", "drs_json", "dataworks", "dts_avro"), marks=pytest.mark.soak),
    ],
    ids=len,
)
def test_the_same_rows_land_everywhere(runner: Runner, formats: tuple[str, ...]) -> None:
    (runner.folder / "project.yml").write_text(TARGETS + sources_of(formats))
    runner.write(nested=NESTED, views_of_it="select kind, op, count(*) as n from {{ ref('nested') }} group by kind, op")
    for part in (0, 1):
        write_messages(runner.folder, formats, part)
        for storage in STORAGES:
            runner.build(storage)
    names = [*(f"{name}_to_changelog" for name in formats), *VIEWS]
    found = {
        storage: {name: runner.rows(storage, f"select * from {{{{ ref('{name}') }}}}") for name in names}
        for storage in STORAGES
    }
    for storage in STORAGES:
        for name in names:
            assert as_text(found[storage][name]) == as_text(found["parquet"][name]), (storage, name)
        for name in formats:
            landed = found[storage][f"{name}_to_changelog"]
            assert len({row["run_id"] for row in landed}) == 2
            assert {row["kind"] for row in landed} >= {"row", "ddl", "control", "dead_letter"} - (
                {"control"} if name == "oms_shareplex" else set()
            )
    assert all(found["parquet"][name] for name in names)


# --- models that grow


GROWING = """
{{ config(materialized='incremental', unique_key=['k'], on_schema_change='MODE') }}
{% if var('step') == '1' %}
select k, v, w from values (1, 'a', 1.5), (2, 'b', 2.5), (cast(null as int), 'n', null) as t(k, v, w)
{% else %} CHANGED {% endif %}
"""
CHANGES = {
    "added": (
        "select k, v, w, named_struct('x y', 1) as `more.of it` from values (2, 'B', 2.0), (3, 'c', null), "
        "(cast(null as int), 'N', 0.5) as t(k, v, w)"
    ),
    "removed": "select k, v from values (2, 'B'), (3, 'c'), (cast(null as int), 'N') as t(k, v)",
    "retyped": "select k, v, cast(w as string) as w from values (2, 'B', 2.0) as t(k, v, w)",
}
BEFORE = [{"k": None, "v": "n", "w": None}, {"k": 1, "v": "a", "w": "1.5"}, {"k": 2, "v": "b", "w": "2.5"}]
ADDED = [
    {"k": None, "v": "N", "w": "0.5"},
    {"k": 1, "v": "a", "w": "1.5"},
    {"k": 2, "v": "B", "w": "2.0"},
    {"k": 3, "v": "c", "w": None},
]
MORE = "more.of it"
# Mode and change -> the rows afterwards; where they are those before, it is refused.
AFTERWARDS = {
    "ignore_added": ADDED,
    "append_new_columns_added": [{**row, MORE: None if row["k"] == 1 else {"x y": 1}} for row in ADDED],
    "append_new_columns_removed": [
        {**row, "w": "1.5" if row["k"] == 1 else "2.5" if row["k"] == 2 else None} for row in ADDED
    ],
    "sync_all_columns_removed": [{"k": row["k"], "v": row["v"]} for row in ADDED],
    "sync_all_columns_retyped": BEFORE,
}


@pytest.mark.parametrize("storage", STORAGES)
def test_columns_that_change(runner: Runner, storage: str) -> None:
    for model in AFTERWARDS:
        mode, _, change = model.rpartition("_")
        runner.write(**{model: GROWING.replace("MODE", mode).replace("CHANGED", CHANGES[change])})
    runner.build(storage)
    code, said = runner.run(storage, "run", step=2)
    assert code == 1
    assert {model for model, status in runner.results().items() if status == "error"} == {"sync_all_columns_retyped"}, (
        said
    )
    assert (
        'the columns of "sync_all_columns_retyped" have changed (with another type: w (decimal(2,1), now string))'
        in said
    )
    for model, rows in AFTERWARDS.items():
        assert runner.rows(storage, f"select * from {model} order by k") == rows, model


WAS = {"k": "int", "w": "int"}
SENT = {
    "added": {**WAS, "new": "int"},
    "removed": {"k": "int"},
    "retyped": {"k": "int", "w": "string"},
    "exchanged": {"new": "int", "k": "int"},
}
# Mode -> change -> the columns afterwards; nothing if it is refused.
COLUMNS_AFTERWARDS = {
    "ignore": {"added": ["k", "w"]},
    "fail": {},
    "append_new_columns": {"added": ["k", "w", "new"], "removed": ["k", "w"], "exchanged": ["k", "w", "new"]},
    "sync_all_columns": {"added": ["k", "w", "new"], "removed": ["k"], "exchanged": ["k", "new"]},
}


@pytest.mark.parametrize("mode", SCHEMA_CHANGES)
@pytest.mark.parametrize("change", SENT)
def test_what_may_change(mode: str, change: str) -> None:
    columns = COLUMNS_AFTERWARDS[mode].get(change)
    if columns:
        assert columns_after("m", WAS, SENT[change], ["k"], mode) == columns
    else:
        with pytest.raises(QueryFailed, match=r'the columns of "m" have changed .*--full-refresh rebuilds it'):
            columns_after("m", WAS, SENT[change], ["k"], mode)


MODELS = {
    "added_up": (
        "{{ config(materialized='incremental') }} select {{ var('step') }} as step, cast(7 as smallint) as small "
        "{% if is_incremental() %} where (select count(*) from {{ this }}) < 3 {% endif %}"
    ),
    "odd": """
        {{ config(materialized='incremental', unique_key=['the `key`', 'Part.Of']) }}
        select 1 as `the ``key```, 'p' as `part.of`, {{ var('step') }} as `Step Of (it)`,
          map('a', array(named_struct('b c', {{ var('step') }}))) as nested
        {% if is_incremental() %} , (select max(`step of (it)`) from {{ this }}) as ignored {% endif %}
    """,
    "letter_case": (
        "{{ config(materialized='incremental', unique_key='ID', on_schema_change='sync_all_columns') }} select 1 "
        "as {{ 'Id' if var('step') == '1' else 'id' }}, {{ var('step') }} as step"
    ),
    "twice": (
        "{{ config(materialized='incremental', unique_key=['k', 'part']) }} select k, cast(null as string) as "
        "part, {{ var('step') }} as step from values (1), ({{ 1 if var('step') == '2' else 2 }}) as t(k)"
    ),
    "failing": (
        "{{ config(materialized='incremental', on_schema_change='sync_all_columns') }} select {% if var('step') == "
        "'1' %} id {% else %} cast(concat(id, 'x') as bigint) as id {% endif %} from range(1000)"
    ),
    "no_key": (
        "{{ config(materialized='incremental', unique_key='k') }} select 1 as {{ 'k' if var('step') == '1' else 'l' }}"
    ),
}


@pytest.mark.parametrize("storage", DELTA_FIRST)
def test_tables_that_grow(runner: Runner, storage: str) -> None:
    runner.write(**MODELS)
    runner.build(storage)
    code, said = runner.run(storage, "run", step=2)
    assert code == 1
    assert {model for model, status in runner.results().items() if status == "error"} == {
        "twice",
        "failing",
        "no_key",
    }, said
    assert (
        'two new rows of "twice" have one key: {"k":1,"part":null}: a unique key must tell the rows of one run apart'
        in said
    )
    assert 'the unique key "k" is not a column of "no_key": l' in said
    assert "cannot be cast" in said or "malformed" in said
    runner.build(storage, "-s", "added_up", step=3)
    runner.build(storage, "-s", "added_up", step=4)
    assert [row["step"] for row in runner.rows(storage, "select * from added_up order by step")] == [1, 2, 3]
    assert runner.rows(storage, "select * from odd") == [
        {"the `key`": 1, "part.of": "p", "Step Of (it)": 2, "nested": {"a": [{"b c": 2}]}}
    ]
    assert runner.rows(storage, "select * from letter_case") == [{"Id": 1, "step": 2}]
    assert runner.rows(storage, "select * from twice order by k") == [
        {"k": 1, "part": None, "step": 1},
        {"k": 2, "part": None, "step": 1},
    ]
    assert runner.rows(storage, "select count(*) as n from failing") == [{"n": 1000}]
    runner.build(storage, "--full-refresh", "-s", "added_up", step=5)
    assert runner.rows(storage, "select * from added_up") == [{"step": 5, "small": 7}]
    # The first run needs its key too.
    code, said = runner.run(storage, "run", "--full-refresh", "-s", "no_key", step=5)
    assert code == 1 and 'the unique key "k" is not a column of "no_key": l' in said


# --- what dies in between


def test_a_run_that_died_before_it_committed_a_table_in_delta(runner: Runner) -> None:
    """It leaves files of rows, and the folder of a log without commits."""
    runner.write(
        whole="{{ config(materialized='table') }} select 1 as a",
        grows="{{ config(materialized='incremental') }} select 2 as a",
    )
    for name in ("whole", "grows"):
        folder = runner.folder / f"lake/delta/{name}"
        (folder / "_delta_log").mkdir(parents=True)
        pyarrow.parquet.write_table(pyarrow.table({"a": [9]}), folder / "part-00000.parquet")
    runner.build("delta", "-s", "whole", "grows")
    assert runner.rows("delta", "select a from whole union all select a from grows order by a") == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("dies_at", [1, 2])
def test_a_run_that_dies_while_it_exchanges_a_table_in_parquet(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, dies_at: int
) -> None:
    runner.write(steps="{{ config(materialized='incremental') }} select {{ var('step') }} as step")
    runner.build("parquet")
    calls: list[str] = []

    def move(self: LocalFiles, path: str, to: str) -> None:
        calls.append(path)
        if len(calls) == dies_at:
            raise KeyboardInterrupt
        Path(path).rename(to)

    with monkeypatch.context() as patch:
        patch.setattr(LocalFiles, "move", move)
        with contextlib.suppress(KeyboardInterrupt):
            runner.run("parquet", "run", step=2)
    assert len(calls) == dies_at
    kept = [1] if dies_at == 1 else [1, 2]
    assert [row["step"] for row in runner.rows("parquet", "select * from steps order by step")] == kept
    runner.build("parquet", step=3)
    assert [row["step"] for row in runner.rows("parquet", "select * from steps order by step")] == [*kept, 3]
    assert sorted(path.name for path in (runner.folder / "lake/parquet").glob("steps*")) == ["steps"]


LANDED = "select after['id'] as id from {{ ref('app_to_changelog') }} order by id"


ONLY = ("-s", "app_to_changelog")


def write_message(folder: Path, number: int) -> None:
    (folder / "in").mkdir(exist_ok=True)
    (folder / f"in/{number}.jsonl").write_text(
        json.dumps({"type": "INSERT", "table": "t", "data": [{"id": str(number)}], "pkNames": ["id"]})
    )


@pytest.mark.parametrize("storage", DELTA_FIRST)
def test_a_table_and_its_checkpoint_belong_together(runner: Runner, storage: str) -> None:
    (runner.folder / "project.yml").write_text(TARGETS + "sources: [{name: app, format: canal, files: in/*}]\n")
    lake = runner.folder / "lake" / storage
    checkpoint, table = (
        lake / "_checkpoints/app_to_changelog",
        lake / ("changelog/app_to_changelog" if storage == "iceberg" else "app_to_changelog"),
    )
    (runner.folder / "in").mkdir()
    runner.build(storage, *ONLY)
    shutil.rmtree(checkpoint)  # a run that died before its stream began
    write_message(runner.folder, 1)
    runner.build(storage, *ONLY)
    shutil.rmtree(table)
    shutil.rmtree(checkpoint / "commits")  # a run that died in its first batch
    runner.build(storage, *ONLY)
    assert runner.rows(storage, LANDED) == [{"id": "1"}]
    shutil.rmtree(checkpoint)
    assert refused(runner, storage)
    write_message(runner.folder, 2)
    runner.build(storage, "--full-refresh", *ONLY)
    shutil.rmtree(table)
    assert refused(runner, storage)
    runner.build(storage, "--full-refresh", *ONLY)
    assert runner.rows(storage, LANDED) == [{"id": "1"}, {"id": "2"}]


def refused(runner: Runner, storage: str) -> bool:
    code, said = runner.run(storage, "run", *ONLY)
    return code == 1 and "so it is not known what was read: restore both" in said and "--full-refresh" in said


# --- other places


STEPS = (
    "{{ config(materialized='incremental', unique_key='id') }} select after['id'] as id, {{ var('step') }} as step "
    "from {{ ref('changelog') }}"
)


def check_target(runner: Runner, target: str) -> None:
    """Lands twice and reads what is there: a changelog, a view over it, a table that grew."""
    runner.write(steps=STEPS)
    write_message(runner.folder, 1)
    runner.build(target)
    write_message(runner.folder, 2)
    runner.build(target, step=2)
    assert runner.rows(target, LANDED) == [{"id": "1"}, {"id": "2"}]
    assert runner.rows(target, "select count(*) as n from changelog") == [{"n": 2}]
    assert runner.rows(target, "select * from steps order by id") == [{"id": "1", "step": 2}, {"id": "2", "step": 2}]


@pytest.mark.parametrize("storage", DELTA_FIRST)
def test_tables_in_a_file_system_of_hadoop(runner: Runner, storage: str) -> None:
    """As s3a:// and hdfs:// are, too: everything by Hadoop's file systems, nothing by this machine's."""
    catalog = "catalog: {type: hadoop}, " if storage == "iceberg" else ""
    place = runner.folder / "away" / storage
    (runner.folder / "project.yml").write_text(
        f"sources: [{{name: app, format: canal, files: in/*}}]\n"
        f"targets: {{{storage}: {{storage: {storage}, {catalog}path: 'file://{place}'}}}}\n"
    )
    check_target(runner, storage)
    assert (place / "_checkpoints/app_to_changelog/commits/1").is_file()
    shutil.rmtree(place / "_checkpoints/app_to_changelog")
    assert refused(runner, storage)
    runner.build(storage, "--full-refresh", *ONLY)
    assert runner.rows(storage, LANDED) == [{"id": "1"}, {"id": "2"}]


SECRET = "s3cret-of-the-loader"


def test_a_catalog_behind_a_server(runner: Runner, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A REST catalog: it holds views, and wants a token."""
    monkeypatch.setenv("CATALOG_CREDENTIAL", f"loader:{SECRET}")
    with RestCatalog(spark.session._jvm, runner.folder, SECRET) as served:
        catalog = f"{{type: rest, uri: '{served.uri}', credential: '{{{{ env_var(\"CATALOG_CREDENTIAL\") }}}}'}}"
        (runner.folder / "project.yml").write_text(
            f"sources: [{{name: app, format: canal, files: in/*}}]\n"
            f"targets: {{rest: {{storage: iceberg, path: lake, catalog: {catalog}}}}}\n"
        )
        check_target(runner, "rest")
        assert runner.rows("rest", "select after['id'] as id from lake.changelog.changelog order by id") == [
            {"id": "1"},
            {"id": "2"},
        ]
        runner.build("rest", "--full-refresh")
        assert runner.rows("rest", LANDED) == [{"id": "1"}, {"id": "2"}]
    assert {"createNamespace", "createTable", "updateTable", "dropTable", "createView"} <= {
        handler for _, handler in served.requests
    }
    assert list((runner.folder / "served/changelog").glob("app_to_changelog*/metadata/*.metadata.json")), (
        "the tables are where the catalog keeps them"
    )
    assert [
        path for path in (runner.folder / "target").rglob("*") if path.is_file() and SECRET in path.read_text()
    ] == []


# --- the page


PAGE = ROOT / "docs/targets.md"


@pytest.mark.parametrize(
    "target", [*DELTA_FIRST, *(pytest.param(one, marks=pytest.mark.soak) for one in ("database", "rest"))]
)
def test_the_page_of_targets_does_what_it_says(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "demo"]) == 0
    monkeypatch.chdir(tmp_path / "demo")
    shown = blocks_of(target) + section(PAGE, "Models that grow")
    write_files(shown, Path.cwd())
    # The page's paths are those of the folder where the runner was started; the JVM of the tests was started elsewhere.
    written = Path("project.yml").read_text()
    Path("project.yml").write_text(
        written.replace("sqlite:catalog.db", f"sqlite:{tmp_path}/catalog.db").replace(
            "warehouse: lake", f"warehouse: {tmp_path}/lake"
        )
    )
    with RestCatalog(spark.session._jvm, tmp_path, SECRET) if target == "rest" else contextlib.nullcontext() as served:
        if served:
            monkeypatch.setenv("CATALOG_URI", served.uri)
            monkeypatch.setenv("CATALOG_CREDENTIAL", f"loader:{SECRET}")
        for words in commands(shown):
            capsys.readouterr()
            assert main(words) == 0, (words, capsys.readouterr().err)
    assert "1001" in capsys.readouterr().out


def blocks_of(target: str) -> list[Block]:
    """What the page shows for a target; of Iceberg there are three, each with its commands."""
    found = section(PAGE, "Iceberg" if target in ("database", "rest") else target.capitalize())
    projects = [number for number, block in enumerate(found) if block.name == "project.yml"]
    (begin,) = (
        [number for number in projects if f"\ntarget: {target}\n" in found[number].text] if len(projects) > 1 else [0]
    )
    return found[begin : next((number for number in projects if number > begin), None)]


def test_the_page_names_all_keys() -> None:
    text = PAGE.read_text()
    assert [key for key in (*TARGET_KEYS, *SCHEMA_CHANGES, *STORAGES) if f"| `{key}`" not in text] == []
