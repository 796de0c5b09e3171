"""What earlier runs have left, as far as selectors ask for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from runner.errors import RunnerError
from runner.project.graph import Graph
from runner.project.nodes import Project
from runner.project.state import (
    check_state,
    check_status,
    contents_in,
    differences,
    given_state,
    is_in_state,
    landed_in,
    statuses_in,
    target_in,
    unique_id,
)
from runner.render import Renderer

FRESHER = "fresher"


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

    def with_source_status(self, status: str) -> set[str]:
        """The sources with new messages since the run in the folder, or since the project's last one."""
        from runner.engine.fresher import is_fresher

        self.was_asked = True
        if status != FRESHER:
            hint = f"source_status:{FRESHER}"
            raise RunnerError("selector-state", f'"source_status:{status}" is no state of a source', hint=hint)
        folder = self.folder or self.project.target_path
        landed, target = landed_in(folder), target_in(folder)
        fresher = (one for one in self.project.sources if is_fresher(one, target, landed.get(one.name)))
        return {f"source.{source.name}" for source in fresher}

    @cached_property
    def changes(self) -> dict[str, tuple[str, ...]]:
        """Node -> what of it has changed."""
        from runner.compile.contents import ContentsOf
        from runner.compile.library import Library

        before, contents = contents_in(given_state(self.folder)), ContentsOf(self.project, Library(self.renderer))
        return {name: differences(before.get(name), contents.node(node)) for name, node in self.graph.nodes.items()}
