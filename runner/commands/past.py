"""What earlier runs have left, as far as selectors ask for it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from runner.artifacts import unique_id
from runner.errors import RunnerError
from runner.project.state import check_status, contents_in, differences, is_in_state, statuses_in

if TYPE_CHECKING:
    from runner.commands.workspace import Workspace


class Past:
    """Compares a project with what a run has written to `folder`, its target folder. Without a folder, results are
    those of the project's last run. Nothing is read before it is asked for.
    """

    def __init__(self, workspace: Workspace, folder: Path | None) -> None:
        self.workspace, self.folder, self.was_asked = workspace, folder, False

    def in_state(self, state: str) -> set[str]:
        """The names of the nodes in a state, such as `modified.body`."""
        self.was_asked = True
        return {name for name, changed in self.changes.items() if is_in_state(state, changed)}

    def with_result(self, status: str) -> set[str]:
        """The names of the nodes with a status in the last run."""
        self.was_asked = True
        check_status(status)
        project, nodes = self.workspace.project, self.workspace.graph.nodes
        statuses = statuses_in(self.folder or project.target_path)
        return {name for name, node in nodes.items() if statuses.get(unique_id(project, node)) == status}

    @cached_property
    def changes(self) -> dict[str, tuple[str, ...]]:
        """Node -> what of it has changed."""
        from runner.compile.contents import ContentsOf
        from runner.compile.library import Library

        before, workspace = contents_in(self.state), self.workspace
        contents = ContentsOf(workspace.project, Library(workspace.templates.renderer))
        nodes = workspace.graph.nodes.values()
        return {node.name: differences(before.get(node.name), contents.node(node)) for node in nodes}

    @property
    def state(self) -> Path:
        """The folder; raises `state-missing` if none is given."""
        if self.folder is None:
            hint = "--state FOLDER, or the environment variable RUNNER_STATE: the target folder of an earlier run"
            raise RunnerError("state-missing", "it is not said with what to compare", hint=hint)
        return self.folder
