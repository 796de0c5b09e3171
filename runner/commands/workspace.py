"""What every command begins with: the project, its graph, and what was chosen of it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from runner.errors import RunnerError
from runner.project.graph import Graph
from runner.project.nodes import Node, Project
from runner.project.parse import Parser
from runner.project.project import find_project, read_project
from runner.project.select import select

Wanted = Callable[[Node], bool]


class Opened:
    """A project with its graph, and what was chosen of it."""

    def __init__(self, args: Namespace) -> None:
        self.project: Project = read_project(args.project_dir, args.target, args.vars, args.target_path)
        parser = Parser(self.project)
        self.graph = Graph(parser.nodes_of_project())
        self.renderer = parser.renderer
        self.args = args

    def chosen(self, wanted: Wanted = lambda node: True) -> list[Node]:
        """The chosen nodes of a kind; raises if there is none."""
        names = select(self.graph, self.args.select or [], self.args.exclude or [])
        nodes = [
            self.graph.nodes[name] for name in self.graph.order() if name in names and wanted(self.graph.nodes[name])
        ]
        if not nodes:
            what = " ".join(self.args.select or []) or "the project"
            raise RunnerError(
                "selector-empty",
                f'nothing to do: "{what}" holds nothing that this command works on',
                hint="runner ls shows what there is",
            )
        return nodes


def project_root(args: Namespace) -> Path | None:
    try:
        return (args.project_dir or find_project(Path.cwd())).absolute()
    except RunnerError:
        return None
