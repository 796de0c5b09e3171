"""ls, check, compile, docs: nodes, mistakes, compiled SQL, a page. They need no Spark, except for what has landed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from runner import artifacts
from runner.commands.arguments import Call
from runner.counts import counted
from runner.errors import Problems, RunnerWarning, Where
from runner.files import write_whole
from runner.grid import json_text
from runner.project.nodes import DECLARED, TESTS, Case, DataTest, Model, Node, SourcesView
from runner.project.parse import Nodes
from runner.project.project import unread
from runner.project.templates import Templates
from runner.project.waivers import ended_waivers
from runner.render import name as quoted
from runner.report import Report
from runner.run.workspace import Workspace, format_renderer, read_nodes, read_project_of, saved_selectors
from runner.spec.formats import FormatFolders

if TYPE_CHECKING:
    from runner.run.health import Health
    from runner.run.run import Run
    from runner.site.page import Landed

OVER_TIME = "landed_over_time"
NOT_READ = "not read: the page was made with --no-tables"


def ls(call: Call, output: str, resource_type: str | None, orphans: bool) -> int:
    """Prints one line per node, parents first. Cases of formats are printed only if nodes or a resource type are
    selected; tests of selected nodes, if tests are asked for. With `orphans`, prints tables without a node.
    """
    workspace = Workspace(call.project)
    if orphans:
        from runner.commands.clean import orphans_of

        for name in orphans_of(workspace):
            call.report.payload(name)
        return 0
    with_tests = resource_type in TESTS
    names = (workspace.selected_with_tests if with_tests else workspace.selected)(call.selection)
    with_cases = bool(call.selection.select or resource_type)
    for node in workspace.in_order(names):
        if resource_type in (None, node.resource_type) and (with_cases or not isinstance(node.subject, Case)):
            call.report.payload(_line(node, output, workspace.changes))
    return 0


def _line(node: Node, output: str, changes: Callable[[Node], Sequence[str] | None]) -> str:
    is_named_by_type = node.resource_type in DECLARED
    name = f"{node.resource_type}:{node.label}" if is_named_by_type else node.name
    match output:
        case "json":
            changed = changes(node)
            return json_text({**_properties(node), **({} if changed is None else {"changed": list(changed)})})
        case "path":
            return node.path
        case "selector" if not is_named_by_type:
            return f"{node.resource_type}:{name}"
    return name


def _properties(node: Node) -> dict[str, object]:
    return {
        "name": node.name,
        "resource_type": node.resource_type,
        "path": node.path,
        "format": node.format,
        "materialized": node.config.get("materialized"),
        "tags": sorted(node.tags),
        "depends_on": list(node.parents),
    }


def check(call: Call) -> int:
    """Reads and compiles everything; raises all mistakes at once."""
    from runner.commands.formats import check_formats
    from runner.compile.library import Library
    from runner.compile.nodes import compile_nodes

    problems = Problems()
    templates: Templates | None = None
    nodes: Nodes | None = None
    with problems.gathered():
        project = read_project_of(call.project)
        templates, mirrors, nodes = read_nodes(project, problems)
        library = Library(templates.renderer)
        with problems.gathered():
            library.all()
        with problems.gathered():
            saved_selectors(project)
        written = [node for node in nodes.by_name.values() if not mirrors.makes(node)]
        compile_nodes(written, templates, FormatFolders(project.format_folders), library)
    formats: list[str] = []
    with problems.gathered():
        macro = (templates or format_renderer(call.project)).call
        formats = check_formats(call.project, macro, changed=True)
    problems.raise_if_any()
    assert nodes
    nodes.graph()
    today = datetime.now(timezone.utc).date()
    for warning in (*unread(project.root), *mirrors.warnings, *ended_waivers(project, nodes.by_name.values(), today)):
        call.report.warn(warning)
    counts = Counter(node.resource_type for node in nodes.by_name.values())
    counts["format"] = len(formats)
    words = (counted(count, kind.replace("_", " ")) for kind, count in sorted(counts.items()))
    call.report.payload(f"{call.report.verdict}: {', '.join(words)}")
    return 0


def compile_(call: Call, inline: str | None, runnable: bool) -> int:
    """Writes target/compiled and prints the paths; with `inline`, prints the SQL of that text instead."""
    from runner.compile.contents import ContentsOf
    from runner.compile.library import Library, functions_file
    from runner.compile.library import runnable as runnable_sql
    from runner.compile.nodes import compile_nodes
    from runner.project.nodes import compiled_path

    workspace, report = Workspace(call.project), call.report
    if inline:
        report.payload(workspace.templates.expand(inline, Where(Path("--inline")))[0])
        return 0
    nodes = workspace.chosen(call.selection, _is_compiled)
    library = Library(workspace.templates.renderer)
    compiled = compile_nodes(nodes, workspace.templates, workspace.formats, library)
    macro = workspace.templates.call
    artifacts.write_compiled(workspace.project, workspace.graph, compiled, functions_file(macro, compiled))
    contents_of = ContentsOf(workspace.project, library).node
    artifacts.write_manifest(workspace.project, workspace.graph, compiled, contents_of)
    for node in nodes:
        if runnable:
            report.payload(runnable_sql(macro, workspace.graph, node.name, compiled.nodes[node.name]).rstrip())
        elif call.flags["quiet"]:
            report.payload(compiled.nodes[node.name].sql.rstrip())
        else:
            report.payload(str(compiled_path(workspace.project, node)))
    return 0


def _is_compiled(node: Node) -> bool:
    return isinstance(node.subject, (Model, DataTest))


# --- docs generate


def docs(call: Call, action: str, no_tables: bool) -> int:
    """Writes target/docs/index.html and prints its path."""
    from runner.compile.library import Library
    from runner.compile.nodes import compile_nodes
    from runner.run.health import Health
    from runner.run.inventory import LOCAL_DIRS
    from runner.site.page import Landed, page, site_data, site_path

    workspace = Workspace(call.project)
    project, graph = workspace.project, workspace.graph
    nodes = [node for node in graph.nodes.values() if _is_compiled(node)]
    compiled = compile_nodes(nodes, workspace.templates, workspace.formats, Library(workspace.templates.renderer))
    reads = not no_tables and bool(project.sources)
    tables: Landed = _read_tables(workspace, call.report) if reads else Landed(problem=NOT_READ)
    health = Health(workspace, graph.nodes, call.environment.get(LOCAL_DIRS))
    data = site_data(project, graph, compiled, workspace.formats, tables, _shown(health))
    path = site_path(project)
    write_whole(path, page(data, project.secrets))
    call.report.payload(str(path))
    return 0


def _shown(health: Health) -> dict[str, object]:
    """Returns what the page says of the health of a project: not who writes, and not the folders of this machine."""
    from runner.run.health import in_a_line

    known, of_nodes = health.everything, ("name", "problems", "warnings", "behind")
    shown = {name: known[name] for name in ("well", "at", "problems", "warnings", "sources")}
    for name in ("tables", "tests"):
        shown[name] = [{key: value for key, value in row.items() if key in of_nodes} for row in known[name]]
    return {**shown, "said": in_a_line(health.problems, health.warnings)}


def _read_tables(workspace: Workspace, report: Report) -> Landed:
    """Reads what the page shows of the tables of sources; a table that cannot be read gives a warning, and a text on
    the page.
    """
    from runner.commands.session import session_to_read
    from runner.engine.errors import QueryFailed
    from runner.run.mirror_states import mirror_states
    from runner.run.run import Run
    from runner.site.page import Landed

    sources = workspace.project.sources
    over_time = Node(
        OVER_TIME, "model", Model(SourcesView(OVER_TIME, sources), "view"), tuple(source.model for source in sources)
    )
    graph = workspace.graph
    workspace.graph = graph.with_node(over_time)
    models = [node for node in graph.nodes.values() if node.model and not node.model.source and not node.model.mirror]
    try:
        run = Run(workspace, "docs", [*models, over_time])
        with session_to_read(run, report), report.during("reading what has landed"):
            freshness, numbers = (_rows(run, node, report) for node in (graph.nodes["freshness"], over_time))
            return Landed(freshness, numbers, mirror_states(run, graph.nodes.values()), _types(run, models))
    except QueryFailed as failure:
        report.warn(RunnerWarning("source-unreadable", failure.message))
        return Landed(problem=failure.message)
    finally:
        workspace.graph = graph


def _types(run: Run, models: Sequence[Node]) -> dict[str, dict[str, str]]:
    """Returns the types of the columns of models, by the models' names; none of those that cannot be read, such as
    those that were not built yet.
    """
    from runner.engine.errors import QueryFailed

    types = {}
    for node in models:
        with suppress(QueryFailed):
            run.views.prepare(node.name)
            run.views.make(node)
            types[node.name] = run.spark.column_types(quoted(node.relation), {})
    return types


def _rows(run: Run, node: Node, report: Report) -> list[dict[str, object]]:
    for note in run.views.prepare(node.name):
        report.warn(RunnerWarning("source-unreadable", note))
    return run.spark.rows(run.compiled.nodes[node.name].sql)[1]
