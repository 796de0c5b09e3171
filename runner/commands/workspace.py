"""What most commands begin with: the project, its graph, and the selected nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from runner.commands.arguments import ProjectArguments, Selection
from runner.contract import MACRO_GLOBALS
from runner.errors import Problems, RunnerError
from runner.project.graph import Graph
from runner.project.nodes import Node, Project
from runner.project.parse import parse, read_properties, read_templates
from runner.project.project import find_project, project_folders, read_project
from runner.project.select import select
from runner.render import Renderer
from runner.spec.formats import FormatFolders

Wanted = Callable[[Node], bool]


def read_project_of(arguments: ProjectArguments) -> Project:
    """The project of the arguments; raises all mistakes in its project.yml."""
    return read_project(
        arguments.project_dir, arguments.target, arguments.variables, arguments.target_path, arguments.secrets
    )


class Workspace:
    """A project with its templates and its graph."""

    def __init__(self, arguments: ProjectArguments) -> None:
        problems = Problems()
        self.project = read_project_of(arguments)
        files = read_properties(self.project, problems)
        self.templates = read_templates(self.project, files)
        nodes = parse(self.project, files, self.templates, problems)
        problems.raise_if_any()
        self.graph = Graph(nodes)
        self.formats = FormatFolders(self.project.format_folders)

    def chosen(self, selection: Selection, wanted: Wanted = lambda node: True) -> list[Node]:
        """The selected nodes that are wanted, parents first; raises `selector-empty` if there are none."""
        nodes = self.in_order(select(self.graph, selection.select, selection.exclude), wanted)
        if not nodes:
            subject = f'"{selection.text}" selects' if selection.text else "the project has"
            message = f"nothing to do: {subject} nothing that this command works on"
            raise RunnerError("selector-empty", message, hint="runner ls shows what there is")
        return nodes

    def in_order(self, names: Collection[str], wanted: Wanted) -> list[Node]:
        """The nodes of these names that are wanted, parents first."""
        nodes = (self.graph.nodes[name] for name in self.graph.order() if name in names)
        return [node for node in nodes if wanted(node)]


def folders_of(arguments: ProjectArguments, name: str) -> tuple[Path, ...]:
    """The folders `formats` or `macros` of the project, if there is one, and the built-in one: for commands that need
    no project.
    """
    return project_folders(root_of(arguments), name)


def format_renderer(arguments: ProjectArguments) -> Renderer:
    """Renders macros for formats that are compiled without a project."""
    return Renderer(folders_of(arguments, "macros"), {**MACRO_GLOBALS, "ref": str})


def root_of(arguments: ProjectArguments) -> Path | None:
    """The folder of the project, None if there is none here."""
    try:
        return (arguments.project_dir or find_project(Path.cwd())).absolute()
    except RunnerError:
        return None
