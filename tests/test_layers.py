"""What the code keeps to: packages import in one direction, Spark stays behind its door, vendors stay in formats,
functions stay small.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.conftest import PROJECT

ROOT = Path(__file__).parent.parent
RUNNER = ROOT / "runner"

# Package -> the packages that it may import. The modules beside the packages are packages of one module here; `base`
# are those that all may use.
BASE = (
    "errors",
    "files",
    "patterns",
    "yaml_text",
    "contract",
    "render",
    "sandbox",
    "secrets",
    "sql_text",
    "csv_text",
    "counts",
    "grid",
    "live",
)
MAY_IMPORT = {
    "base": {"base"},
    "functions": {"functions"},
    "spec": {"base", "functions", "spec"},
    "storage": {"base", "storage"},
    "project": {"base", "spec", "storage", "project"},
    "compile": {"base", "functions", "spec", "project", "compile"},
    "infer": {"base", "functions", "spec", "compile", "infer"},
    "engine": {"base", "functions", "storage", "project", "engine"},
    "run": {"base", "functions", "spec", "project", "compile", "engine", "run"},
    "artifacts": {"base", "project", "compile", "run"},
    "site": {"base", "functions", "project", "spec", "compile", "infer", "site"},
    "report": {"base", "project", "run"},
    "commands": {
        *("base", "functions", "spec", "project", "compile", "infer", "engine", "run"),
        *("artifacts", "site", "report", "commands"),
    },
    "notebook": {"base", "functions", "compile", "engine", "run"},
    "cli": {"base", "report", "commands", "engine", "run"},
}
MODULES = sorted(path for path in RUNNER.rglob("*.py") if path.stem != "__init__")
MACROS = sorted((ROOT / "macros").rglob("*.sql"))
VENDORS = [
    *("canal", "oms", "drs", "dataworks", "shareplex", "dts", "debezium", "gaussdb", "oceanbase", "huawei", "alibaba"),
    *("maxwell", "goldengate", "ogg", "ticdc", "tidb", "qlik", "tencent", "wal2json", "dms", "confluent", "apicurio"),
    *("mysql", "mariadb", "postgres", "oracle", "sqlserver", "db2"),
]
# Short names are parts of other words too.
VENDOR = re.compile("|".join(rf"\b{name}" if len(name) <= 3 else name for name in VENDORS))


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def package_of(module: str) -> str:
    """
    >>> package_of("runner.engine.session"), package_of("runner.errors"), package_of("runner.cli")
    ('engine', 'base', 'cli')
    """
    name = module.split(".")[1]
    return "base" if name in BASE else name


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


@functools.cache
def imports(path: Path) -> frozenset[str]:
    """All modules that a file imports, wherever in it the import stands."""
    return frozenset(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    return _imports_in(tree(path))


def _imports_in(top: ast.AST, left_out: Sequence[ast.AST] = ()) -> Iterator[str]:
    inside = {id(node) for one in left_out for node in ast.walk(one)}
    for node in ast.walk(top):
        if id(node) in inside:
            continue
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def own_imports(path: Path) -> set[str]:
    """The modules of the project that a file imports."""
    return imports(path) & NAMES


def loaded_by(path: Path) -> set[str]:
    """Those of them that it needs when it runs, and not only for its types. A run knows its parts, and each part its
    run.
    """
    texts = (node for node in ast.walk(tree(path)) if isinstance(node, ast.If))
    typing = [node for node in texts if ast.unparse(node.test) == "TYPE_CHECKING"]
    only_types = {name for node in typing for name in _imports_in(node)}
    others = set(_imports_in(tree(path), typing))
    return own_imports(path) - (only_types - others)


NAMES = frozenset(module_of(path) for path in MODULES)


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree(path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def test_every_module_is_in_a_known_package() -> None:
    assert {package_of(module_of(path)) for path in MODULES} == set(MAY_IMPORT)


def test_packages_import_in_one_direction() -> None:
    pairs = [(module_of(path), other) for path in MODULES for other in sorted(own_imports(path))]
    assert [(own, other) for own, other in pairs if package_of(other) not in MAY_IMPORT[package_of(own)]] == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    graphlib.TopologicalSorter({module_of(path): loaded_by(path) for path in MODULES}).prepare()


def test_what_is_pickled_imports_nothing_else_of_the_project() -> None:
    travelling = [path for path in MODULES if package_of(module_of(path)) == "functions"]
    assert {package_of(other) for path in travelling for other in own_imports(path)} == {"functions"}


def test_specs_know_of_functions_only_what_a_schema_is_and_where() -> None:
    specs = [path for path in MODULES if package_of(module_of(path)) == "spec"]
    assert {other for path in specs for other in own_imports(path) if package_of(other) == "functions"} == {
        "runner.functions.avro.layout",
        "runner.functions.avro.schema",
    }


def importers(package: str) -> list[str]:
    return [named(path) for path in MODULES if any(module.split(".")[0] == package for module in imports(path))]


def test_what_reads_sql_imports_sqlglot() -> None:
    assert importers("sqlglot") == [
        "runner/project/ddl.py",
        "runner/project/sql_analysis.py",
    ]


def test_only_the_engine_imports_pyspark() -> None:
    assert [path for path in [*importers("pyspark"), *importers("py4j")] if not path.startswith("runner/engine/")] == []


LISTING = ["--help", "ls", "ls --output json"]
WITHOUT_SPARK = [
    *LISTING,
    "ls -s nothing_of_this_name",
    "formats list",
    "completion bash",
    "completion candidates ls",
    "compile",
    "check",
    "state",
    "status",
]
PAGE = "docs generate --no-tables"
# Of the formats that `check` compiles, one is enough.
COMMANDS = """
import sys
from runner.cli import main
from runner.spec.formats import FormatFolders
FormatFolders.names = lambda folders: ["canal"]
for words in sys.argv[1:]:
    try: main(words.split())
    except SystemExit: pass
    print("loaded", *sys.modules)
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Command -> the modules that are loaded when it has ended. One process runs them all, in this order."""
    folder, commands = tmp_path_factory.mktemp("project"), [*WITHOUT_SPARK, PAGE]
    (folder / "project.yml").write_text(PROJECT)
    environment = {"PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-c", COMMANDS, *commands]
    ran = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    found = [set(line.split()) for line in ran.stdout.splitlines() if line.startswith("loaded ")]
    assert "all good: 1 format" in ran.stdout, ran.stderr
    return dict(zip(commands, found, strict=True))


def test_no_spark_is_loaded(loaded: dict[str, set[str]]) -> None:
    for words in WITHOUT_SPARK:
        assert "runner.cli" in loaded[words]
        assert not {name for name in loaded[words] if name.split(".")[0] in ("pyspark", "pandas", "pyarrow")}, words


def test_a_page_without_tables_loads_no_spark(loaded: dict[str, set[str]]) -> None:
    assert "runner.site.page" in loaded[PAGE] and not loaded[PAGE] & {"pyspark", "runner.engine.session"}


def test_listing_loads_no_compiler_and_no_decoder(loaded: dict[str, set[str]]) -> None:
    heavy = ("runner.compile.", "runner.functions.", "runner.engine.", "runner.run.")
    assert {name for name in loaded[LISTING[-1]] if name.startswith(heavy)} <= {
        "runner.functions.avro",
        "runner.functions.avro.layout",
        "runner.functions.avro.schema",
        "runner.run.results",
        "runner.run.workspace",
    }


def test_no_vendor_is_named() -> None:
    texts = {named(path): path.read_text().lower() for path in (*MODULES, *MACROS)}
    maybe = [name for name, text in texts.items() if any(vendor in text for vendor in VENDORS)]
    found = [(name, line) for name in maybe for line in texts[name].splitlines() if VENDOR.search(line)]
    assert len(texts) > 150 and found == []


def calls(path: Path) -> list[str]:
    return [ast.unparse(node.func) for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]


def test_only_the_report_prints() -> None:
    assert [named(path) for path in MODULES if "print" in calls(path)] == ["runner/report.py"]


def test_only_the_command_line_exits() -> None:
    assert [named(path) for path in MODULES if {"sys.exit", "exit", "quit", "os._exit"} & set(calls(path))] == [
        "runner/cli.py"
    ]


def test_only_the_project_the_command_line_and_what_starts_java_read_the_environment() -> None:
    readers = {named(path) for path in MODULES if "os.environ" in path.read_text() or "getenv" in path.read_text()}
    project = {"runner/project/project.py", "runner/project/variables.py"}
    assert readers <= {*project, "runner/cli.py", "runner/engine/start.py"}


def test_files_and_functions_stay_small() -> None:
    assert [named(path) for path in MODULES if len(path.read_text().splitlines()) > 400] == []
    assert [(named(path), name) for path in MODULES for name, lines in functions(path) if lines > 40] == []
