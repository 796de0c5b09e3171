"""What the code keeps to: imports point one way, Spark stays behind its door, vendors stay in formats, functions stay small."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ORDER = [
    "errors", "files", "file_systems", "locks", "yaml_text", "zones", "contract", "avro_schema", "avro_values", "avro_reader", "avro_texts", "avro_files", "avro_messages", "spec", "spec_values", "spec_lines",
    "spec_messages", "spec_reading", "spec_schema", "formats", "readers", "fields", "layout", "nodes", "plan", "render", "compile", "settings", "targets", "topics", "project", "properties", "parse", "graph", "select", "schedule", "opened",
    "compare", "documents", "checkpoint", "artifacts", "report", "shell_text", "udfs", "spark_errors", "spark_values", "spark_connect", "spark", "spark_files", "spark_messages", "spark_tables", "spark_catalog", "spark_maintenance", "landing", "execute", "continuous", "lineage",
    "commands", "spark_commands", "cli",
]  # fmt: skip
MODULES = sorted(path for path in (ROOT / "runner").glob("*.py") if path.stem != "__init__")
MACROS = sorted((ROOT / "macros").glob("*.sql"))
VENDORS = re.compile(r"canal|\boms|\bdrs|dataworks|shareplex|\bdts|debezium|gaussdb|oceanbase|huawei|alibaba", re.IGNORECASE)


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def imports(path: Path) -> Iterator[str]:
    """All modules that a file imports, wherever in it the import stands."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree(path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def test_every_module_has_its_place() -> None:
    assert sorted(ORDER) == [path.stem for path in MODULES]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_imports_point_one_way(path: Path) -> None:
    known = {f"runner.{name}": name for name in ORDER}
    for other in {known[module] for module in imports(path) if module in known}:
        assert ORDER.index(other) < ORDER.index(path.stem), f"{path.stem} may not import {other}"


def test_only_lineage_imports_sqlglot() -> None:
    assert [path.stem for path in MODULES if any(module.split(".")[0] == "sqlglot" for module in imports(path))] == ["lineage"]


def test_only_spark_imports_pyspark() -> None:
    assert all(path.stem.startswith("spark") for path in MODULES if any(module.split(".")[0] == "pyspark" for module in imports(path)))


@pytest.mark.parametrize("words", [["--help"], ["ls"], ["check"], ["compile"], ["compile", "-q"], ["formats", "list"], ["ls", "-s", "nothing_of_this_name"]], ids=" ".join)
def test_no_spark_is_loaded(project, words: list[str]) -> None:
    code = "import sys; from runner.cli import main\ntry: main(sys.argv[1:])\nfinally: assert not [m for m in sys.modules if m.split('.')[0] in ('pyspark', 'pandas', 'pyarrow')]"
    ran = subprocess.run([sys.executable, "-c", code, *words], cwd=project(), env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert "AssertionError" not in ran.stderr


@pytest.mark.parametrize("path", [*MODULES, *MACROS], ids=lambda path: path.name)
def test_no_vendor_is_named(path: Path) -> None:
    assert [line for line in path.read_text().splitlines() if VENDORS.search(line)] == []


def calls(path: Path) -> list[str]:
    return [ast.unparse(node.func) for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]


def test_only_the_report_prints() -> None:
    assert [path.stem for path in MODULES if "print" in calls(path)] == ["report"]


def test_only_the_command_line_exits() -> None:
    assert [path.stem for path in MODULES if {"sys.exit", "exit", "quit", "os._exit"} & set(calls(path))] == ["cli"]


def test_only_the_project_and_the_command_line_read_the_environment() -> None:
    assert {path.stem for path in MODULES if "os.environ" in path.read_text() or "getenv" in path.read_text()} <= {"project", "cli"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_files_and_functions_stay_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400
    assert [(name, lines) for name, lines in functions(path) if lines > 40] == []
