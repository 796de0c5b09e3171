"""Writes target/compiled, manifest.json and run_results.json, with dbt's names for everything that dbt has too."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from runner.files import read_text, write_whole
from runner.project.inputs import ANY_AGE, ExternalTable, Freshness, Source, Target
from runner.project.nodes import Case, Exposure, FunctionTest, Graph, Node, Project, UnitTest, compiled_path
from runner.project.state import MANIFEST, RESULTS, Contents, unique_id
from runner.project.tests import GIVEN
from runner.run.results import Result

if TYPE_CHECKING:
    from runner.compile.compiled import Compiled

# The version of dbt whose readers take these files.
DBT = "1.10.0"
# Nodes that are declared, or that run on given rows, have a list of their own.
LISTS = {"source": "sources", "exposure": "exposures", "unit_test": "unit_tests"}
# Keys that readers of manifests look for, and that no project here has.
NOT_HERE = (
    *("macros", "docs", "metrics", "groups", "selectors", "disabled"),
    *("group_map", "saved_queries", "semantic_models"),
)
AGES = "sources.json"
WRITTEN = ("compiled", "docs", "logs", MANIFEST, RESULTS, AGES)
# The status of a measurement -> its name in sources.json.
STATUSES_OF_AGES = {"fail": "error"}
BEGINNING = datetime(1, 1, 1, tzinfo=timezone.utc)


def functions_path(project: Project) -> Path:
    """Returns the file of the functions that compiled SQL calls."""
    return project.target_path / "compiled" / project.name / "functions.sql"


def write_compiled(project: Project, graph: Graph, compiled: Compiled, functions: str) -> None:
    """Writes the SQL of models and data tests and, if there are any, of the functions that they call; does not write
    unchanged files again.
    """
    if functions:
        _write(project, functions_path(project), functions)
    else:
        functions_path(project).unlink(missing_ok=True)
    for name, one in compiled.nodes.items():
        _write(project, compiled_path(project, graph.nodes[name]), one.sql)
        if one.increment:
            _write(project, compiled_path(project, graph.nodes[name], True), one.increment)


def write_manifest(project: Project, graph: Graph, compiled: Compiled, contents_of: Callable[[Node], Contents]) -> None:
    """Writes all nodes, with the SQL of those that were compiled, and the checksums of what they consist of."""
    ids = {name: unique_id(project, node) for name, node in graph.nodes.items()}
    lists: dict[str, dict[str, Any]] = {"nodes": {}, **{one: {} for one in LISTS.values()}}
    for name, node in graph.nodes.items():
        listed = lists[LISTS.get(node.resource_type, "nodes")]
        listed[ids[name]] = ManifestEntry(project, node, ids, compiled, contents_of(node)).written
    maps = {
        "parent_map": {ids[name]: _ids(ids, node.parents) for name, node in graph.nodes.items()},
        "child_map": {ids[name]: _ids(ids, graph.children[name]) for name in graph.nodes},
    }
    metadata = {**_about("manifest", 12), "project_name": project.name, "adapter_type": "spark"}
    # `env` is the one key in which a project may keep values of its own.
    metadata["env"] = _place(project.target)
    written = {"metadata": metadata, **lists, **maps, **{one: {} for one in NOT_HERE}}
    _write(project, project.target_path / MANIFEST, _json(written))


@dataclass(frozen=True)
class ManifestEntry:
    """The entry of a node in a manifest. `ids` maps the names of nodes to their names in artifacts."""

    project: Project
    node: Node
    ids: Mapping[str, str]
    compiled: Compiled
    contents: Contents

    @property
    def written(self) -> dict[str, Any]:
        """The entry, with dbt's keys; `contents` is ours, and stands where dbt lets others write."""
        node = self.node
        path = PurePosixPath(node.path)
        return {
            "name": node.label,
            "resource_type": node.resource_type,
            "package_name": self.project.name,
            "unique_id": self.ids[node.name],
            "path": "/".join(path.parts[1:]) or node.path,
            "original_file_path": node.path,
            "fqn": [self.project.name, *path.parts[1:-1], node.label],
            "description": node.description,
            "config": {**self._config, "enabled": True, "contents": dict(sorted(self.contents.items()))},
            **self._of_its_type,
        }

    @property
    def _config(self) -> dict[str, Any]:
        if test := self.node.data_test:
            return {**asdict(test.config), "meta": dict(test.config.meta or {})}
        return {**self.node.config, **self._promised, "tags": sorted(self.node.tags)}

    @property
    def _promised(self) -> dict[str, Any]:
        """The keys that say whether a model has a contract: in YAML, "true" is a text. A contract refuses other
        columns, and dbt wants an incremental model to say so.
        """
        model = self.node.model
        if model is None or model.contract is None:
            return {"contract": {"enforced": False}} if model else {}
        refuses = model.is_incremental and model.on_schema_change != "append_new_columns"
        return {"contract": {"enforced": True}, **({"on_schema_change": "fail"} if refuses else {})}

    @property
    def _of_its_type(self) -> dict[str, Any]:
        match self.node.subject:
            case Source() as source:
                return self._source(source.name, source.name, "", source.freshness)
            case ExternalTable() as table:
                return self._source(table.group, table.name, table.place[-2], table.freshness) | {
                    "identifier": table.place[-1],
                    "loaded_at_field": table.loaded_at or None,
                }
            case Exposure(properties=properties):
                return self._exposure(properties)
            case UnitTest(model=model, given=given, expect=expect):
                inputs = [{"input": f"ref('{name}')", "rows": rows} for name, rows in given.items()]
                return self._unit_test(model, inputs, expect)
            case Case(format=subject) | FunctionTest(function=subject):
                return self._unit_test(subject, [], [])
        return self._of_query

    def _source(self, group: str, name: str, schema: str, freshness: Freshness) -> dict[str, Any]:
        return {
            "name": name,
            "source_name": group,
            "source_description": "",
            "loader": self.node.format or "",
            "identifier": name,
            "database": None,
            "schema": schema,
            "freshness": _criteria(freshness),
            "tags": sorted(self.node.tags),
            "columns": self._columns,
        }

    def _exposure(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        known = {name: properties[name] for name in ("label", "maturity", "url", "meta") if properties.get(name)}
        owner = {"name": None, "email": None, **(properties.get("owner") or {})}
        kind = properties.get("type") or "application"
        return {**known, "type": kind, "owner": owner, "tags": sorted(self.node.tags), "depends_on": self._depends_on}

    def _unit_test(self, subject: str, given: list[Any], expect: list[Any]) -> dict[str, Any]:
        return {"model": subject, "given": given, "expect": {"rows": expect}, "depends_on": self._depends_on}

    @property
    def _of_query(self) -> dict[str, Any]:
        """The keys that only models, seeds and data tests have."""
        node, test = self.node, self.node.data_test
        catalog = self.project.target.catalog
        out: dict[str, Any] = {
            "database": catalog.name if catalog else None,
            "schema": catalog.schema if catalog else "",
            "alias": node.relation,
            "checksum": {"name": "sha256", "checksum": self.contents["body"]},
            "tags": sorted(node.tags),
            "columns": self._columns,
            "meta": dict(node.config.get("meta", {})),
            "raw_code": self._raw_code,
        }
        if node.resource_type == "seed":
            return out | {"depends_on": {"macros": []}}
        if test and test.model:
            arguments = {name: value for name, value in test.arguments.items() if name not in GIVEN}
            out["test_metadata"] = {"name": test.kind, "kwargs": arguments, "namespace": None}
            out["column_name"], out["attached_node"] = arguments.get("column"), self.ids[test.model]
        if found := self.compiled.nodes.get(node.name):
            out["compiled"], out["compiled_code"] = True, found.sql
            out["compiled_path"] = str(compiled_path(self.project, node))
        return out | {"depends_on": self._depends_on, "language": "sql"}

    @property
    def _raw_code(self) -> str:
        file = self.node.model.query if self.node.model else self.node.data_test and self.node.data_test.file
        return read_text(file) if isinstance(file, Path) else ""

    @property
    def _columns(self) -> dict[str, Any]:
        """The columns, with their types for generated models, whose types are known, and with their descriptions for
        others.
        """
        model = self.node.model
        said = "data_type" if model and (model.source or model.reads_all_sources) else "description"
        return {name: {"name": name, said: text} for name, text in self.node.columns.items()}

    @property
    def _depends_on(self) -> dict[str, list[str]]:
        macros = sorted(part.removeprefix("macros.") for part in self.contents if part.startswith("macros."))
        return {
            "macros": [f"macro.{self.project.name}.{macro}" for macro in macros],
            "nodes": _ids(self.ids, self.node.parents),
        }


def write_results(
    project: Project,
    graph: Graph,
    compiled: Compiled,
    run_id: str,
    results: Iterable[Result],
    seconds: float,
    args: Mapping[str, Any],
) -> None:
    """Writes the results of a run, how long it took, and how it was run."""
    entries: list[dict[str, Any]] = [
        {
            "unique_id": unique_id(project, graph.nodes[r.name]),
            "status": r.status,
            "timing": _timing(r, compiled.times.get(r.name)),
            "thread_id": "",
            "execution_time": round(r.seconds, 3),
            "message": "\n".join([r.message, *r.notes]).strip() or None,
            "failures": r.failures,
            "adapter_response": {"rows": dict(r.rows), **({"waived": dict(r.waived)} if r.waived else {})},
            **dict.fromkeys(("compiled", "compiled_code", "relation_name")),
        }
        for r in results
    ]
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    metadata = {**_about("run-results", 6), "generated_at": now, "invocation_id": run_id}
    written = {"metadata": metadata, "args": dict(args), "results": entries, "elapsed_time": round(seconds, 3)}
    _write(project, project.target_path / RESULTS, _json(written))


def write_ages(
    project: Project, graph: Graph, results: Iterable[Result], found: Mapping[str, Mapping[str, Any]]
) -> None:
    """Writes how old the sources are, as dbt's sources.json has it. `found` has `newest` and `age` of the sources that
    could be measured.
    """
    now, results = datetime.now(timezone.utc), list(results)
    entries = [
        {
            "unique_id": unique_id(project, graph.nodes[result.name]),
            **_age(graph.nodes[result.name], result, found.get(result.name), now),
        }
        for result in results
    ]
    metadata = {**_about("sources", 3), "generated_at": now.isoformat(timespec="seconds")}
    seconds = round(sum(result.seconds for result in results), 3)
    _write(
        project, project.target_path / AGES, _json({"metadata": metadata, "results": entries, "elapsed_time": seconds})
    )


def _age(node: Node, result: Result, found: Mapping[str, Any] | None, now: datetime) -> dict[str, Any]:
    """Returns the entry of a source with its age, if that could be measured; as in dbt, a source without rows is as old
    as can be.
    """
    if found is None:
        return {"status": "runtime error", "error": result.message}
    freshness = node.subject.freshness if isinstance(node.subject, (Source, ExternalTable)) else ANY_AGE
    ever = int((now - BEGINNING).total_seconds())
    return {
        "status": STATUSES_OF_AGES.get(result.status, result.status),
        "max_loaded_at": found["newest"] or BEGINNING.isoformat(),
        "max_loaded_at_time_ago_in_s": ever if found["age"] is None else found["age"],
        "snapshotted_at": now.isoformat(timespec="seconds"),
        "criteria": _criteria(freshness),
        "adapter_response": {},
        "timing": _timing(result),
        "thread_id": "",
        "execution_time": round(result.seconds, 3),
    }


def _timing(result: Result, compiled: tuple[datetime, datetime] | None = None) -> list[dict[str, str]]:
    """Returns when the compiling and the run of a node began and ended; nothing for a node that did not run."""
    if result.status == "skipped":
        return []
    spans = {"compile": compiled, "execute": (result.ended - timedelta(seconds=result.seconds), result.ended)}
    return [
        {"name": name, "started_at": _instant(span[0]), "completed_at": _instant(span[1])}
        for name, span in spans.items()
        if span
    ]


def _instant(moment: datetime) -> str:
    return f"{moment.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def _criteria(freshness: Freshness) -> dict[str, Any]:
    """Returns the thresholds of a source."""
    return {**asdict(freshness), "filter": freshness.filter or None}


def _about(artifact: str, version: int) -> dict[str, Any]:
    """Returns the keys that tell readers which file this is."""
    return {"dbt_schema_version": f"https://schemas.getdbt.com/dbt/{artifact}/v{version}.json", "dbt_version": DBT}


def _ids(ids: Mapping[str, str], names: Iterable[str]) -> list[str]:
    return sorted(ids[name] for name in names)


def _write(project: Project, path: Path, text: str) -> None:
    """Writes a text without secrets, unless the file has it already."""
    shown = project.secrets.redacted(text)
    if not path.is_file() or path.read_bytes() != shown.encode():
        write_whole(path, shown)


def _place(target: Target) -> dict[str, str]:
    """Returns the keys that say where the tables are."""
    catalog = {"catalog": target.catalog.name, "schema": target.catalog.schema} if target.catalog else {}
    return {"target": target.name, "storage": target.storage, "path": target.path, **catalog}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"
