"""target/compiled, manifest.json and run_results.json, with dbt's names for everything that dbt has too."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.files import write_whole
from runner.project.freshness import ANY_AGE
from runner.project.graph import Graph
from runner.project.inputs import ForeignTable, Source, Target
from runner.project.nodes import DECLARED, Node, Project, UnitTest
from runner.project.state import MANIFEST, RESULTS, Contents, unique_id
from runner.run.results import Result

if TYPE_CHECKING:
    from runner.compile.compiled import Compiled

SCHEMA_VERSION = 1
AGES = "sources.json"
WRITTEN = ("compiled", "docs", "logs", MANIFEST, RESULTS, AGES)
# What a result of a measurement is in sources.json.
STATUSES_OF_AGES = {"fail": "error", "error": "runtime error"}


def compiled_path(project: Project, node: Node) -> Path:
    folder = "tests" if node.resource_type in ("test", "unit_test") else "models"
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


def write_manifest(project: Project, graph: Graph, compiled: Compiled, contents_of: Callable[[Node], Contents]) -> None:
    """Writes all nodes, with the SQL of those that were compiled, and the checksums of what they consist of."""
    nodes: dict[str, dict[str, Any]] = {"nodes": {}, "sources": {}, "exposures": {}}
    for node in graph.nodes.values():
        contents = contents_of(node)
        macros = sorted(part.removeprefix("macros.") for part in contents if part.startswith("macros."))
        entry: dict[str, Any] = {
            "name": node.label,
            "resource_type": node.resource_type,
            "description": node.description,
            "checksum": {"name": "sha256", "checksum": contents["body"]},
            "contents": dict(sorted(contents.items())),
            "depends_on": {
                "macros": [f"macro.{project.name}.{macro}" for macro in macros],
                "nodes": sorted(unique_id(project, graph.nodes[parent]) for parent in node.parents),
            },
        }
        if node.resource_type == "source":
            entry["format"] = node.format
        elif node.resource_type != "exposure":
            entry |= _of_node(node, compiled)
        # What is declared has a list of its own.
        nodes[f"{node.resource_type}s" if node.resource_type in DECLARED else "nodes"][unique_id(project, node)] = entry
    metadata = {"schema_version": SCHEMA_VERSION, "project_name": project.name, "target": _place(project.target)}
    _write(project, project.target_path / MANIFEST, _json({"metadata": metadata, **nodes}))


def write_results(
    project: Project, graph: Graph, run_id: str, results: Iterable[Result], about: Mapping[str, Any]
) -> None:
    """Writes the results of a run, and what else is to be known about it."""
    entries = [
        {
            "unique_id": unique_id(project, graph.nodes[r.name]),
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
    _write(project, project.target_path / RESULTS, _json({"metadata": metadata, **about, "results": entries}))


def write_ages(
    project: Project, graph: Graph, results: Iterable[Result], found: Mapping[str, Mapping[str, Any]]
) -> None:
    """Writes how old the sources are, as dbt's sources.json has it. `found` has `newest` and `age` of each."""
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    entries = [
        {
            "unique_id": unique_id(project, graph.nodes[result.name]),
            "status": STATUSES_OF_AGES.get(result.status, result.status),
            "max_loaded_at": found.get(result.name, {}).get("newest"),
            "max_loaded_at_time_ago_in_s": found.get(result.name, {}).get("age"),
            "snapshotted_at": now,
            "criteria": _criteria(graph.nodes[result.name]),
            "execution_time": round(result.seconds, 3),
        }
        for result in results
    ]
    metadata = {"schema_version": SCHEMA_VERSION, "generated_at": now}
    _write(project, project.target_path / AGES, _json({"metadata": metadata, "results": entries}))


def _criteria(node: Node) -> dict[str, Any]:
    """The thresholds of a source."""
    freshness = node.subject.freshness if isinstance(node.subject, (Source, ForeignTable)) else ANY_AGE
    return {**asdict(freshness), "filter": freshness.filter or None}


def _write(project: Project, path: Path, text: str) -> None:
    """Writes a text without secrets, unless the file has it already."""
    shown = project.secrets.blotted(text)
    if not path.is_file() or path.read_bytes() != shown.encode():
        write_whole(path, shown)


def _place(target: Target) -> dict[str, Any]:
    """Where tables are."""
    catalog = {"name": target.catalog.name, "schema": target.catalog.schema} if target.catalog else None
    return {"name": target.name, "storage": target.storage, "path": target.path, "catalog": catalog}


def _of_node(node: Node, compiled: Compiled) -> dict[str, Any]:
    """What only the entries of models and tests have."""
    out: dict[str, Any] = {
        "original_file_path": node.path,
        "config": dict(node.config),
        "tags": sorted(node.tags),
        "columns": {column: {"name": column} for column in node.columns},
    }
    if isinstance(node.subject, UnitTest):
        out["model"] = node.subject.model
    if node.name in compiled.nodes:
        out["compiled_code"] = compiled.nodes[node.name].sql
    return out


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"
