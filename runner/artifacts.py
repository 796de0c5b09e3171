"""target/compiled, manifest.json and run_results.json, with dbt's names for everything that dbt has too."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.files import write_whole
from runner.project.graph import Graph
from runner.project.nodes import Node, Project, UnitTest
from runner.run.results import Result

if TYPE_CHECKING:
    from runner.compile.compiled import Compiled

SCHEMA_VERSION = 1
WRITTEN = ("compiled", "logs", "manifest.json", "run_results.json")


def compiled_path(project: Project, node: Node) -> Path:
    folder = "tests" if node.resource_type == "test" else "models"
    return project.target_path / "compiled" / project.name / folder / f"{node.name}.sql"


def sql_path(project: Project, node: Node, is_increment: bool) -> Path:
    """The file for the SQL of a node; for that which an incremental model runs once its table exists."""
    path = compiled_path(project, node)
    return path.with_suffix(".increment.sql") if is_increment else path


def functions_path(project: Project) -> Path:
    """The file of the functions that compiled SQL calls."""
    return project.target_path / "compiled" / project.name / "functions.sql"


def write_compiled(project: Project, graph: Graph, compiled: Compiled, functions: str) -> None:
    """Writes the SQL of models and data tests and, if there are any, of the functions that they call; unchanged files
    are not written again.
    """
    if functions:
        _write(project, functions_path(project), functions)
    else:
        functions_path(project).unlink(missing_ok=True)
    for name, one in compiled.nodes.items():
        _write(project, compiled_path(project, graph.nodes[name]), one.sql)
        if one.increment:
            _write(project, sql_path(project, graph.nodes[name], True), one.increment)


def write_manifest(project: Project, graph: Graph, compiled: Compiled) -> None:
    """Writes all nodes, with the SQL of those that were compiled."""
    nodes = {
        _unique_id(project, node): _manifest_node(project, graph, node, compiled)
        for node in graph.nodes.values()
        if node.resource_type not in ("source", "exposure")
    }
    sources = {
        _unique_id(project, node): {
            "name": node.label,
            "description": node.description,
            "format": node.format,
        }
        for node in graph.nodes.values()
        if node.resource_type == "source"
    }
    metadata = {"schema_version": SCHEMA_VERSION, "project_name": project.name}
    manifest = {"metadata": metadata, "nodes": nodes, "sources": sources}
    _write(project, project.target_path / "manifest.json", _json(manifest))


def write_results(project: Project, graph: Graph, run_id: str, results: Iterable[Result]) -> None:
    entries = [
        {
            "unique_id": _unique_id(project, graph.nodes[r.name]),
            "status": r.status,
            "execution_time": round(r.seconds, 3),
            "message": "\n".join([r.message, *r.notes]).strip() or None,
            "failures": r.failures,
            "adapter_response": {"rows": dict(r.rows)},
        }
        for r in results
    ]
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    metadata = {"schema_version": SCHEMA_VERSION, "generated_at": now, "invocation_id": run_id}
    _write(project, project.target_path / "run_results.json", _json({"metadata": metadata, "results": entries}))


def _write(project: Project, path: Path, text: str) -> None:
    """Writes a text without secrets, unless the file has it already."""
    shown = project.secrets.blotted(text)
    if not path.is_file() or path.read_bytes() != shown.encode():
        write_whole(path, shown)


def _manifest_node(project: Project, graph: Graph, node: Node, compiled: Compiled) -> dict[str, Any]:
    out: dict[str, Any] = {
        "name": node.name,
        "resource_type": node.resource_type,
        "original_file_path": node.path,
        "description": node.description,
        "config": dict(node.config),
        "tags": sorted(node.tags),
        "columns": {column: {"name": column} for column in node.columns},
        "depends_on": {"nodes": sorted(_unique_id(project, graph.nodes[parent]) for parent in node.parents)},
    }
    if isinstance(node.subject, UnitTest):
        out["model"] = node.subject.model
    if node.name in compiled.nodes:
        out["compiled_code"] = compiled.nodes[node.name].sql
    return out


def _unique_id(project: Project, node: Node) -> str:
    return f"{node.resource_type}.{project.name}.{node.label}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"
