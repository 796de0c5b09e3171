"""ls, check, compile: nodes, mistakes, compiled SQL. They need no Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from runner import artifacts
from runner.commands.arguments import Call
from runner.counts import counted
from runner.errors import Problems, Where
from runner.grid import json_text
from runner.project.nodes import DECLARED, TESTS, Case, DataTest, Model, Node
from runner.project.parse import Nodes
from runner.project.project import unread
from runner.project.templates import Templates
from runner.run.workspace import Workspace, format_renderer, read_nodes, read_project_of, saved_selectors
from runner.spec.formats import FormatFolders


def ls(call: Call, output: str, resource_type: str | None) -> int:
    """Prints one line per node, parents first. Cases of formats are printed only if nodes or a resource type are
    selected; tests of selected nodes, if tests are asked for.
    """
    workspace = Workspace(call.project)
    with_tests = resource_type in TESTS
    names = (workspace.selected_with_tests if with_tests else workspace.selected)(call.selection)
    with_cases = bool(call.selection.select or resource_type)

    def is_listed(node: Node) -> bool:
        is_of_type = resource_type in (None, node.resource_type)
        return is_of_type and (with_cases or not isinstance(node.subject, Case))

    for node in workspace.in_order(names, is_listed):
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
        formats = check_formats(call.project, (templates or format_renderer(call.project)).call)
    problems.raise_if_any()
    assert nodes
    nodes.graph()
    for warning in (*unread(project.root), *mirrors.warnings):
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
    nodes = workspace.chosen(call.selection, lambda node: isinstance(node.subject, (Model, DataTest)))
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
