"""Commands on each storage: the same project gives the same rows, on other file systems and behind other catalogs too;
and the page about targets. What a storage promises is in test_storages.py.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from runner.project.nodes import SCHEMA_CHANGES
from runner.project.targets import TARGET_KEYS
from tests.conftest import Ran
from tests.pages import ROOT, Block, commands, section, write_files
from tests.rest_catalog import RestCatalog
from tests.storages import STORAGES, TARGETS

pytestmark = pytest.mark.usefixtures("interpreted")
Runner = Callable[..., Ran]
Write = Callable[..., Path]


def on(first: str) -> pytest.MarkDecorator:
    """Runs a test of what is the same code on all storages on one of them, and on the others in `make soak`."""
    others = [pytest.param(one, marks=pytest.mark.soak) for one in STORAGES if one != first]
    return pytest.mark.parametrize("storage", [first, *others])


def succeed(runner: Runner, storage: str, *words: str) -> None:
    assert (ran := runner("run", "-t", storage, *words)).code == 0, ran.err


def shown(runner: Runner, storage: str, sql: str, *words: str) -> list[dict[str, Any]]:
    ran = runner("show", "-t", storage, "--inline", sql, "--limit", "100000", "--output", "json", *words)
    assert ran.code == 0, ran.err
    return [json.loads(line) for line in ran.out.split("\n") if line]  # values hold other ends of lines


# --- the same rows everywhere


NESTED = """
{{ config(materialized='table') }}
select
  kind, source, op, seq as `seq of.it`, after as `AFTER`, changed as ```changed```, origin.file is null as no_file,
  named_struct('n', named_struct('list', array(named_struct('x.y', key_text)))) as nested,
  array(map('a', cast(seq.row as decimal(20, 5)))) as maps, event_time
from {{ ref('changelog') }}
"""
GROWN = """
{{ config(materialized='incremental', unique_key='kind') }}
select kind, count(*) as n from {{ ref('changelog') }} group by kind
{% if is_incremental() %} having count(*) > (select min(n) from {{ this }}) {% endif %}
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
    "grown",
)
OF_A_RUN = ("run_id", "batch", "loaded_at", "landed_on", "last_loaded")


def add_messages(folder: Path, formats: Sequence[str], part: int) -> None:
    """Adds half of the messages of the formats' cases; both halves together are all of them."""
    for name in formats:
        (folder / "in" / name).mkdir(parents=True, exist_ok=True)
        cases, ending = ROOT / "formats/cases" / name, "base64" if name.endswith("avro") else "jsonl"
        lines = [path.read_bytes() for path in sorted(cases.glob(f"*.messages.{ending}"))[part::2]]
        (folder / f"in/{name}/{part}.{ending}").write_bytes(b"\n".join(lines))


def all_rows(runner: Runner, storage: str, names: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """The rows of several nodes, from one query."""
    as_json = "to_json(struct(*), map('ignoreNullFields', 'false'))"
    each = [f"select '{name}' as name, {as_json} as row from {{{{ ref('{name}') }}}}" for name in names]
    rows = shown(runner, storage, " union all ".join(each))
    return {name: [json.loads(row["row"]) for row in rows if row["name"] == name] for name in names}


def comparable(rows: list[dict[str, Any]]) -> list[str]:
    """Rows in one order, without what differs between runs."""
    return sorted(json.dumps({k: v for k, v in row.items() if k not in OF_A_RUN}, sort_keys=True) for row in rows)


@pytest.mark.engines
@pytest.mark.parametrize(
    "formats",
    [
        ("canal", "oceanbase_avro"),
        pytest.param(("oms_default", "oms_shareplex", "drs_json", "dataworks", "dts_avro"), marks=pytest.mark.soak),
    ],
    ids=len,
)
def test_the_same_rows_land_everywhere(spark: object, project: Write, runner: Runner, formats: tuple[str, ...]) -> None:
    reads = [f"{{name: {one}, format: {one}, files: in/{one}/*, dead_letters: {{fail: null}}}}" for one in formats]
    files = {
        "project.yml": f"{TARGETS}sources: [{', '.join(reads)}]\n",
        "models/nested.sql": NESTED,
        "models/views_of_it.sql": "select kind, op, count(*) as n from {{ ref('nested') }} group by kind, op",
        "models/grown.sql": GROWN,
    }
    folder = project(files)
    for part in (0, 1):
        add_messages(folder, formats, part)
        for storage in STORAGES:
            succeed(runner, storage)
    names = [*(f"{name}_to_changelog" for name in formats), *VIEWS]
    found = {storage: all_rows(runner, storage, names) for storage in STORAGES}
    assert all(found["parquet"].values())
    for storage in STORAGES:
        for name in names:
            assert comparable(found[storage][name]) == comparable(found["parquet"][name]), (storage, name)
        for name in formats:
            landed = found[storage][f"{name}_to_changelog"]
            lacks = {"control"} if name == "oms_shareplex" else set()
            assert len({row["run_id"] for row in landed}) == 2
            assert {row["kind"] for row in landed} >= {"row", "ddl", "control", "dead_letter"} - lacks


# --- what dies in between


LANDED = "select after['id'] as id from {{ ref('app_to_changelog') }} order by id"
ONLY = ("-s", "app_to_changelog")
SOURCES = "sources: [{name: app, format: lean, files: in/*}]\n"


def write_message(folder: Path, number: int) -> None:
    (folder / "in").mkdir(exist_ok=True)
    change = {"type": "INSERT", "table": "t", "data": [{"id": str(number)}], "pkNames": ["id"]}
    (folder / f"in/{number}.jsonl").write_text(json.dumps(change))


@pytest.mark.usefixtures("spark", "lean")
@on("parquet")
def test_a_table_and_its_checkpoint_belong_together(project: Write, runner: Runner, storage: str) -> None:
    folder = project({"project.yml": TARGETS + SOURCES})
    lake = folder / "lake" / storage
    checkpoint = lake / "_checkpoints/app_to_changelog"
    table = lake / ("changelog/app_to_changelog" if storage == "iceberg" else "app_to_changelog")
    (folder / "in").mkdir()
    succeed(runner, storage, *ONLY)
    shutil.rmtree(checkpoint)  # a run that died before its stream began
    write_message(folder, 1)
    succeed(runner, storage, *ONLY)
    shutil.rmtree(table)
    shutil.rmtree(checkpoint / "commits")  # a run that died in its first batch
    succeed(runner, storage, *ONLY)
    assert shown(runner, storage, LANDED) == [{"id": "1"}]
    shutil.rmtree(checkpoint)
    assert is_refused(runner, storage)
    write_message(folder, 2)
    succeed(runner, storage, "--full-refresh", *ONLY)
    shutil.rmtree(table)
    assert is_refused(runner, storage)
    succeed(runner, storage, "--full-refresh", *ONLY)
    assert shown(runner, storage, LANDED) == [{"id": "1"}, {"id": "2"}]


def is_refused(runner: Runner, storage: str) -> bool:
    ran = runner("run", "-t", storage, *ONLY)
    said = "so it is not known what was read: restore both"
    return ran.code == 1 and said in ran.err and "--full-refresh" in ran.err


# --- other places


STEPS = (
    "{{ config(materialized='incremental', unique_key='id') }} select after['id'] as id, {{ var('step') }} as step "
    "from {{ ref('changelog') }}"
)


def check_target(runner: Runner, folder: Path, target: str) -> None:
    """Lands twice and reads what is there: a changelog, a view over it, a table that grew."""
    (folder / "models").mkdir()
    (folder / "models/steps.sql").write_text(STEPS)
    for step in (1, 2):
        write_message(folder, step)
        succeed(runner, target, "--vars", f"{{step: {step}}}")
    query = f"""select (select sort_array(array_agg(id)) from ({LANDED})) as landed,
        (select count(*) from changelog) as n,
        (select sort_array(array_agg(concat(id, ' ', step))) from steps) as steps"""
    found = shown(runner, target, query, "--vars", "{step: 1}")
    assert found == [{"landed": ["1", "2"], "n": 2, "steps": ["1 2", "2 2"]}]


@pytest.mark.usefixtures("spark", "lean")
@on("parquet")
def test_tables_in_a_file_system_of_hadoop(tmp_path: Path, project: Write, runner: Runner, storage: str) -> None:
    """As s3a:// and hdfs:// are, too: everything by Hadoop's file systems, nothing by this machine's."""
    catalog = "catalog: {type: hadoop}, " if storage == "iceberg" else ""
    place = tmp_path / "away" / storage
    target = f"{{storage: {storage}, {catalog}path: 'file://{place}'}}"
    folder = project({"project.yml": f"{SOURCES}targets: {{{storage}: {target}}}\n"})
    check_target(runner, folder, storage)
    assert (place / "_checkpoints/app_to_changelog/commits/1").is_file()
    (folder / "models/steps.sql").unlink()
    shutil.rmtree(place / "_checkpoints/app_to_changelog")
    assert is_refused(runner, storage)
    succeed(runner, storage, "--full-refresh", *ONLY)
    assert shown(runner, storage, LANDED) == [{"id": "1"}, {"id": "2"}]


SECRET = "s3cret-of-the-loader"


@pytest.mark.engines
@pytest.mark.usefixtures("lean")
def test_a_catalog_behind_a_server(
    project: Write, runner: Runner, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A REST catalog: it holds views, and wants a token."""
    monkeypatch.setenv("CATALOG_CREDENTIAL", f"loader:{SECRET}")
    with RestCatalog(spark.session._jvm, tmp_path, SECRET) as served:
        catalog = f"{{type: rest, uri: '{served.uri}', credential: '{{{{ env_var(\"CATALOG_CREDENTIAL\") }}}}'}}"
        target = f"{{storage: iceberg, path: lake, catalog: {catalog}}}"
        folder = project({"project.yml": f"{SOURCES}targets: {{rest: {target}}}\n"})
        check_target(runner, folder, "rest")
        both, again = [{"id": "1"}, {"id": "2"}], ("--vars", "{step: 1}")
        by_name = "select after['id'] as id from lake.changelog.changelog order by id"
        assert shown(runner, "rest", by_name, *again) == both
        succeed(runner, "rest", "--full-refresh", *again)
        assert shown(runner, "rest", LANDED, *again) == both
    handlers = {handler for _, handler in served.requests}
    assert {"createNamespace", "createTable", "updateTable", "dropTable", "createView"} <= handlers
    kept = list((folder / "served/changelog").glob("app_to_changelog*/metadata/*.metadata.json"))
    assert kept, "the tables are where the catalog keeps them"
    written = [path for path in (folder / "target").rglob("*") if path.is_file()]
    assert written and [path for path in written if SECRET in path.read_text()] == []


# --- the page


PAGE = ROOT / "docs/targets.md"
TARGETS_OF_THE_PAGE = [
    "delta",
    *(pytest.param(one, marks=pytest.mark.soak) for one in ("parquet", "iceberg", "database", "rest")),
]


@pytest.mark.parametrize("target", TARGETS_OF_THE_PAGE)
def test_the_page_of_targets_does_what_it_says(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, runner: Runner, target: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert runner("init", "demo").code == 0
    monkeypatch.chdir(tmp_path / "demo")
    found = blocks_of(target) + section(PAGE, "Models that grow")
    write_files(found, Path.cwd())
    # The page's paths are those of the folder where the runner was started; the JVM of the tests was started elsewhere.
    written = Path("project.yml").read_text().replace("sqlite:catalog.db", f"sqlite:{tmp_path}/catalog.db")
    Path("project.yml").write_text(written.replace("warehouse: lake", f"warehouse: {tmp_path}/lake"))
    with RestCatalog(spark.session._jvm, tmp_path, SECRET) if target == "rest" else contextlib.nullcontext() as served:
        if served:
            monkeypatch.setenv("CATALOG_URI", served.uri)
            monkeypatch.setenv("CATALOG_CREDENTIAL", f"loader:{SECRET}")
        for words in commands(found):
            ran = runner(*words)
            assert ran.code == 0, (words, ran.err)
    assert "1001" in ran.out


def blocks_of(target: str) -> list[Block]:
    """What the page shows for a target; of Iceberg there are three, each with its commands."""
    found = section(PAGE, "Iceberg" if target in ("database", "rest") else target.capitalize())
    projects = [number for number, block in enumerate(found) if block.name == "project.yml"]
    named = [number for number in projects if f"\ntarget: {target}\n" in found[number].text]
    (begin,) = named if len(projects) > 1 else [0]
    return found[begin : next((number for number in projects if number > begin), None)]


def test_the_page_names_all_keys() -> None:
    text = PAGE.read_text()
    assert [key for key in (*TARGET_KEYS, *SCHEMA_CHANGES, *STORAGES) if f"| `{key}`" not in text] == []
