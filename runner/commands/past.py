"""What earlier runs have left, as far as selectors ask for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from runner.artifacts import unique_id
from runner.project.graph import Graph
from runner.project.nodes import Project
from runner.project.state import (
    check_state,
    check_status,
    contents_in,
    differences,
    given_state,
    is_in_state,
    statuses_in,
)
from runner.render import Renderer


@dataclass
class Past:
    """Compares a project with what a run has written to `folder`, its target folder. Without a folder, results are
    those of the project's last run. Nothing is read before it is asked for; `was_asked` says whether it was.
    """

    project: Project
    graph: Graph
    renderer: Renderer
    folder: Path | None
    was_asked: bool = False

    def in_state(self, state: str) -> set[str]:
        """The names of the nodes in a state, such as `modified.body`."""
        self.was_asked = True
        check_state(state)
        return {name for name, changed in self.changes.items() if is_in_state(state, changed)}

    def with_result(self, status: str) -> set[str]:
        """The names of the nodes with a status in the last run."""
        self.was_asked = True
        check_status(status)
        statuses = statuses_in(self.folder or self.project.target_path)
        nodes = self.graph.nodes.items()
        return {name for name, node in nodes if statuses.get(unique_id(self.project, node)) == status}

    @cached_property
    def changes(self) -> dict[str, tuple[str, ...]]:
        """Node -> what of it has changed."""
        from runner.compile.contents import ContentsOf
        from runner.compile.library import Library

        before, contents = contents_in(given_state(self.folder)), ContentsOf(self.project, Library(self.renderer))
        return {name: differences(before.get(name), contents.node(node)) for name, node in self.graph.nodes.items()}
