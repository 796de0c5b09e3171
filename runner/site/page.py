"""The page of a project: the data that it shows of the project and of its runs, and one file of HTML that opens from
disk: no server, no network, and no script from elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from runner.compile.column_lineage import columns_of_models, known_types
from runner.compile.compiled import Compiled
from runner.errors import Problems
from runner.files import read_text
from runner.project.inputs import ExternalTable, Freshness, Source
from runner.project.mirror import MirrorQuery
from runner.project.node_results import NodeRecord, NodeResults
from runner.project.nodes import (
    DataTest,
    Exposure,
    Graph,
    Model,
    Node,
    Project,
    SourcesView,
    UnitTest,
)
from runner.project.properties import doc_blocks
from runner.project.tables_seen import tables_seen
from runner.secrets import Secrets
from runner.site.mapping import mapping_of
from runner.spec.formats import FormatFolders
from runner.spec.words import Format


class Landed(NamedTuple):
    """The rows of the views `freshness` and `landed_over_time`, facts about mirrors by their names, the types of the
    columns of models by their names, and why there is nothing of all this.
    """

    freshness: Sequence[Mapping[str, Any]] = ()
    over_time: Sequence[Mapping[str, Any]] = ()
    mirrors: Mapping[str, list[tuple[str, str]]] = MappingProxyType({})
    types: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    problem: str = ""


# The name of the block of text about the whole project.
OVERVIEW = "__overview__"


def site_data(
    project: Project, graph: Graph, compiled: Compiled, formats: FormatFolders, landed: Landed, health: Any
) -> Any:
    """Returns the data of the page: the `project` with its overview, its `health`, `nodes` in the order of the data,
    `formats`, the last run, what has `landed`, and `texts`, which are long: SQL, specs and examples.
    """
    shown = [graph.nodes[name] for name in graph.order() if _is_shown(graph.nodes[name])]
    specs = _specs(project, formats)
    columns = columns_of_models(graph, compiled)
    return {
        "project": {
            "name": project.name,
            "target": project.target.name,
            "storage": project.target.storage,
            "about": _about(project),
        },
        "health": health,
        "nodes": [_node(project, node, columns.get(node.name), landed) for node in shown],
        "formats": [
            {"name": name, "about": spec.about, "docs": spec.docs, "cases": _cases(graph, name)}
            for name, spec in specs.items()
        ],
        "run": _results(project, graph),
        "landed": {"freshness": landed.freshness, "over_time": landed.over_time, "problem": landed.problem},
        "texts": {
            "nodes": {node.name: _texts(node, compiled) for node in shown},
            "formats": {
                name: {"spec": _spec_text(name, formats), "mapping": mapping_of(spec, formats.folders)}
                for name, spec in specs.items()
            },
        },
    }


def _about(project: Project) -> str:
    """Returns the text of the block `__overview__`, if there is one."""
    return doc_blocks(sorted((project.root / "models").rglob("*.md")), Problems()).get(OVERVIEW, "")


def _is_shown(node: Node) -> bool:
    """Returns True for all nodes but cases of formats, which are shown with their formats."""
    return node.format is None or node.resource_type != "unit_test"


# --- nodes


def _node(project: Project, node: Node, columns: Any, landed: Landed) -> dict[str, Any]:
    facts = (*_facts(node, project.root), *landed.mirrors.get(node.name, ()))
    return {
        "name": node.name,
        "label": node.label,
        "type": _type(node),
        "kind": _kind(node),
        "description": node.description,
        "path": node.path,
        "tags": sorted(node.tags),
        "format": node.format,
        "parents": list(node.parents),
        "columns": _described(node, columns, landed.types.get(node.name, {})),
        "facts": [[name, str(value)] for name, value in facts if value],
        "tables": _tables(project, node),
    }


def _type(node: Node) -> str:
    return "mirror" if node.model and node.model.mirror else node.resource_type


def _kind(node: Node) -> str:
    """Returns what a node is, in words."""
    match node.subject:
        case Model(query=MirrorQuery(shows=shows)):
            return "mirror" if shows == "state" else "history of a mirror"
        case Model(query=Source()):
            return "changelog of a source"
        case Model(query=SourcesView()):
            return "view of all sources"
        case Model() as model if not model.seed:
            return {"incremental": "incremental table", "ephemeral": "query"}.get(
                model.materialized, model.materialized
            )
        case DataTest(kind=kind):
            return f"data test {kind}".rstrip()
        case Exposure(properties=properties):
            return str(properties.get("type") or "exposure")
    return node.resource_type.replace("_", " ")


def _described(node: Node, columns: Any, read: Mapping[str, str]) -> Any:
    """Returns the columns with their descriptions and types, of which those that were `read` are known only where the
    table was. Generated models have types in place of descriptions.
    """
    if columns is None or not node.model:
        return None
    is_generated = node.model.source or node.model.reads_all_sources
    about = {} if is_generated else {name: text for name, text in node.columns.items() if text}
    types = {**read, **(node.columns if is_generated else known_types(node.model))}
    return {**columns, "names": list(dict.fromkeys([*columns["names"], *node.columns])), "about": about, "types": types}


def _tables(project: Project, node: Node) -> list[dict[str, Any]]:
    """Returns the tables of a source with their columns, which are members of images: those that have landed, as far as
    runs look at them, and those that are declared.
    """
    source = node.subject if isinstance(node.subject, Source) else node.model.source if node.model else None
    if not source:
        return []
    seen = tables_seen(project, source).tables
    tables = {one.path: (one.key, {column.name: column.type or "" for column in one.there}) for one in seen}
    for table in source.tables:
        if not any(one.is_named(table.name) for one in seen):
            tables[".".join(table.name)] = (table.key, dict(table.columns))
    return [{"name": name, "key": key, "columns": columns} for name, (key, columns) in sorted(tables.items())]


def _owner(node: Node) -> str:
    """Returns the owner that an exposure names, or the notes about a model do."""
    notes = node.subject.properties if isinstance(node.subject, Exposure) else node.config.get("meta") or {}
    owner = notes.get("owner") or ""
    return " ".join(str(one) for one in owner.values() if one) if isinstance(owner, Mapping) else str(owner)


def _facts(node: Node, root: Path) -> Iterator[tuple[str, object]]:
    """Returns the facts about a node that are shown beside its texts, as names and values."""
    yield "file", node.path
    yield "owner", _owner(node)
    match node.subject:
        case ExternalTable(place=place, folder=folder, loaded_at=loaded_at, freshness=freshness):
            yield "table", folder.removeprefix(f"{root}/") or ".".join(place)
            yield "loaded at", loaded_at
            yield from _thresholds(freshness)
        case Source(messages=messages, zone=zone, generation=generation, tables=tables, freshness=freshness):
            yield from _thresholds(freshness)
            yield "messages", messages.path.removeprefix("file://").removeprefix(f"{root}/")
            yield "read from", messages.kind.replace("_", " ")
            yield "zone", zone
            yield "generation", generation
            yield "declared tables", ", ".join(".".join(table.name) for table in tables)
        case Model(query=MirrorQuery(mirror=mirror)):
            yield "of", ", ".join(f"{table.source.name}: {'.'.join(table.name)}" for table in mirror.tables)
            yield "key", ", ".join(mirror.key)
        case Model() as model:
            yield "called", model.alias
            yield "unique key", ", ".join(model.unique_key)
            yield "new rows of", ", ".join(model.new_rows)
        case DataTest(model=model_name, config=config):
            yield "tests", model_name
            yield "severity", config.severity
        case UnitTest(model=model_name):
            yield "tests", model_name
        case Exposure(properties=properties):
            yield from ((name, properties.get(name)) for name in ("url", "maturity"))
    yield "tags", ", ".join(sorted(node.tags))


def _thresholds(freshness: Freshness) -> Iterator[tuple[str, object]]:
    """Returns the ages of the newest row after which freshness warns and fails."""
    for name, age in (("warning after", freshness.warn_after), ("error after", freshness.error_after)):
        yield name, str(age) if age else ""


def _texts(node: Node, compiled: Compiled) -> dict[str, Any]:
    """Returns the SQL of a node, or the rows of a unit test."""
    out: dict[str, Any] = {}
    file = node.model.query if node.model else node.data_test.file if node.data_test else None
    if isinstance(file, Path):
        out["source"] = read_text(file)
    if found := compiled.nodes.get(node.name):
        out["compiled"] = found.sql
        if found.increment:
            out["increment"] = found.increment
    if isinstance(node.subject, UnitTest):
        out["given"], out["expect"] = dict(node.subject.given), node.subject.expect
    return out


# --- formats


def _specs(project: Project, formats: FormatFolders) -> dict[str, Format]:
    """Returns the formats of the sources, and those in the project's own folder."""
    used = {source.format.name: source.format for source in project.sources}
    own = project.root / "formats"
    names = sorted(path.stem for path in own.glob("*.yml")) if own.is_dir() else []
    loaded = {name: spec for name in names if name not in used and (spec := formats.check(name))}
    return dict(sorted({**used, **loaded}.items()))


def _spec_text(name: str, formats: FormatFolders) -> str:
    """Returns the spec of a format as it is written; an empty text for a spec that is written inside a source."""
    paths = (folder / f"{name}.yml" for folder in formats.folders)
    return next((read_text(path) for path in paths if path.is_file()), "")


def _cases(graph: Graph, name: str) -> int:
    return sum(node.format == name and node.resource_type == "unit_test" for node in graph.nodes.values())


# --- results


def _results(project: Project, graph: Graph) -> dict[str, Any] | None:
    """Returns the newest result of each node, whatever command ran it, and when the newest of them ended; None if there
    are none.
    """
    recorded = NodeResults(project)
    records = {name: recorded.read(node) for name, node in graph.nodes.items() if node.runs}
    results = {name: _result(record) for name, record in records.items() if record.results}
    return {"at": max(one["ended"] for one in results.values()), "results": results} if results else None


def _result(record: NodeRecord) -> dict[str, Any]:
    """Returns the newest result, which is that of a skipped node only if there is no other."""
    entry = record.newest or record.results[0]
    shown = {key: entry[key] for key in ("status", "ended", "seconds", "failures", "rows")}
    was_skipped = entry is not record.results[0]
    return {**shown, "message": entry["message"] or None, "since": record.failing_since, "was_skipped": was_skipped}


def site_path(project: Project) -> Path:
    return project.target_path / "docs" / "index.html"


# --- the file

HERE = Path(__file__).parent
STYLES = ("vendor/uPlot.min.css", "style.css")
SCRIPTS = (
    "vendor/dagre.min.js",
    "vendor/uPlot.iife.min.js",
    *(
        f"js/{name}.js"
        for name in (
            "elements",
            "markdown",
            "data",
            "code",
            "search",
            "layout",
            "picture",
            "chart",
            "mapping",
            "pages",
            "main",
        )
    ),
)


def page(data: Any, secrets: Secrets) -> str:
    """Returns the page of `site_data`, without secrets. A browser runs only the scripts and styles whose hashes stand
    at the top of the page, and fetches nothing, whatever the data are.
    """
    styles, scripts = [_asset(name) for name in STYLES], [_asset(name) for name in SCRIPTS]
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(read_text(HERE / "page.html.jinja"))
    return template.render(
        name=secrets.redacted(data["project"]["name"]),
        licences=read_text(HERE / "vendor" / "LICENSES.txt"),
        style_hashes=[_hash(one) for one in styles],
        script_hashes=[_hash(one) for one in scripts],
        styles=[Markup(one) for one in styles],
        scripts=[Markup(one) for one in scripts],
        data=_packed(secrets.redacted(_json(data))),
    )


def _asset(name: str) -> str:
    return f"\n{read_text(HERE / name).strip()}\n"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _packed(text: str) -> str:
    """Returns a text deflated, in base64, which no text can end: what a page says of a hundred mirrors is nearly the
    same a hundred times.
    """
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return base64.b64encode(packer.compress(text.encode()) + packer.flush()).decode()
