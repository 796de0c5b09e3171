"""The start of most commands: the project, its graph, and the selected nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from secrets import token_hex
from typing import Any

from runner.contract import MACRO_GLOBALS
from runner.counts import counted, enumeration
from runner.errors import Problems, RunnerError, RunnerWarning, nearest_or_all
from runner.files import read_text
from runner.project.inputs import Source, TableSettings
from runner.project.many_mirrors import Mirrors, lacks_mirror, read_mirrors
from runner.project.mask_secret import MaskSecret
from runner.project.mirror import Mirror
from runner.project.nodes import Node, Project
from runner.project.parse import Nodes, names_of_files, parse, read_properties, read_templates
from runner.project.project import find_project, project_folders, read_project
from runner.project.select import Lookup, SavedSelectors, read_selectors, select
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
from runner.project.tables_seen import TableSeen, TablesSeen, tables_seen
from runner.project.templates import Templates
from runner.project.variables import Filler
from runner.render import Renderer
from runner.secrets import Secrets
from runner.spec.formats import FormatFolders


def _tells_no_one(project: Project) -> None:
    """Does nothing: used where nobody waits for the project."""


@dataclass(frozen=True)
class ProjectArguments:
    """The arguments that say which project to read, and how. If `project_dir` is None, the project is looked for from
    the current folder upwards. The secrets that the project reads are added to `secrets`; `was_read` is called with the
    project.
    """

    project_dir: Path | None = None
    target: str | None = None
    variables: Mapping[str, Any] = field(default_factory=dict)
    target_path: Path | None = None
    secrets: Secrets = field(default_factory=Secrets)
    was_read: Callable[[Project], None] = _tells_no_one


@dataclass(frozen=True)
class Selection:
    """Selectors of nodes: without any, all nodes are selected. `state` is the target folder of an earlier run, with
    which selectors compare; `selector` is the name of a saved selector, which takes the place of the others.
    """

    select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    state: Path | None = None
    selector: str | None = None

    @property
    def text(self) -> str:
        return " ".join(self.select) or self.selector or ""


NOTHING = "nothing to do: what is selected has nothing that this command works on"
Wanted = Callable[[Node], bool]


def read_project_of(arguments: ProjectArguments) -> Project:
    """Returns the project of the arguments; raises all mistakes in its project.yml."""
    project = read_project(
        arguments.project_dir, arguments.target, arguments.variables, arguments.target_path, arguments.secrets
    )
    arguments.was_read(project)
    return project


def saved_selectors(project: Project) -> SavedSelectors:
    """Returns the selectors in selectors.yml; raises all mistakes in it."""
    return read_selectors(project.root, Filler(project.vars, project.target, project.secrets))


def read_nodes(project: Project, problems: Problems) -> tuple[Templates, Mirrors, Nodes]:
    """Returns the templates, the mirrors and all nodes of a project. Mistakes are added to `problems`, or raised."""

    def seen(source: Source) -> TablesSeen:
        return tables_seen(project, source)

    files = read_properties(project, problems)
    mirrors = read_mirrors(files, project.sources, seen, names_of_files(project), problems)
    templates = read_templates(project, files, mirrors, problems)
    nodes = parse(project, files, mirrors, templates, problems)
    mirrors = replace(mirrors, warnings=(*mirrors.warnings, *nodes.warnings))
    if nodes.waiting:
        named = enumeration([f"{name} ({parent})" for name, parent in nodes.waiting.items()])
        what = (
            f"{counted(len(nodes.waiting), 'model')} left out that read tables of which nothing has landed yet: {named}"
        )
        mirrors = replace(mirrors, warnings=(*mirrors.warnings, RunnerWarning("ref-waits", what)))
    return templates, mirrors, nodes


class Workspace:
    """A project with its templates and its graph."""

    def __init__(self, arguments: ProjectArguments) -> None:
        problems, self.arguments = Problems(), arguments
        self.project = read_project_of(arguments)
        self.templates, self.mirrors, nodes = read_nodes(self.project, problems)
        problems.raise_if_any()
        self.graph = nodes.graph()
        self.formats = FormatFolders(self.project.format_folders)
        self.previous = PreviousState(self, None)

    def lacks_mirror(self, table: TableSeen) -> bool:
        """Returns True if a table has no mirror, and no rule is for it or leaves it out."""
        return lacks_mirror(table, self._mirrors, self.mirrors.rules)

    def unmirrored(self, seen: TablesSeen) -> RunnerWarning | None:
        """Returns a warning about the tables of a source that have no mirror; None if there are none."""
        if not (without := [table.path for table in seen.tables if self.lacks_mirror(table)]):
            return None
        what = f"{counted(len(without), 'table')} of source {seen.source} without a mirror: {enumeration(without)}"
        return RunnerWarning("unmirrored", what, hint=f"runner mirrors suggest --source {seen.source}")

    def sources_named(self, name: str | None) -> list[Source]:
        """Returns the source of this name, or all sources; raises `source-unknown`."""
        sources = {source.name: source for source in self.project.sources}
        if name is not None and name not in sources:
            raise RunnerError("source-unknown", f'there is no source "{name}"', hint=nearest_or_all(name, sources))
        return [source for source in sources.values() if name in (None, source.name)]

    @property
    def _mirrors(self) -> list[Mirror]:
        return [node.model.mirror for node in self.graph.nodes.values() if node.model and node.model.mirror]

    @cached_property
    def mirrored(self) -> frozenset[str]:
        """The names of the sources of which tables have mirrors."""
        own = {table.source.name for mirror in self._mirrors for table in mirror.tables}
        return frozenset(own | {rule.source.name for rule in self.mirrors.rules})

    def chosen(self, selection: Selection, wanted: Wanted | None = None) -> list[Node]:
        """Returns the selected nodes that are wanted, parents first. Raises `selector-empty` if there are none, unless
        selectors ask for what earlier runs have left: that may well be nothing.
        """
        nodes = self.in_order(self.selected(selection), wanted)
        if not nodes and not self.previous.was_asked:
            subject = f'"{selection.text}" selects' if selection.text else "the project has"
            message = f"nothing to do: {subject} nothing that this command works on"
            raise RunnerError("selector-empty", message, hint="runner ls shows what there is")
        return nodes

    def selected(self, selection: Selection) -> set[str]:
        """Returns the names of the selected nodes: without any selector, those of the default selector, or all."""
        if selection.state != self.previous.folder:
            self.previous = PreviousState(self, selection.state)
        previous, saved = self.previous, self.saved_selectors
        asked: dict[str, Lookup] = {"state": previous.in_state, "result": previous.with_result}
        asked["source_status"] = previous.with_source_status
        asked["selector"] = partial(saved.select, graph=self.graph, lookups=asked)
        name = selection.selector
        if not (name or selection.select or selection.exclude):
            name = saved.default
        return asked["selector"](name) if name else select(self.graph, selection.select, selection.exclude, asked)

    def selected_with_tests(self, selection: Selection) -> set[str]:
        """Returns the names of the selected nodes, and of the tests of selected models that are not excluded."""
        chosen = self.selected(selection)
        excluded = (
            self.selected(replace(selection, select=selection.exclude, exclude=())) if selection.exclude else set()
        )
        tests = {name for name, node in self.graph.nodes.items() if node.is_test and set(node.parents) & chosen}
        return chosen | (tests - excluded)

    @cached_property
    def saved_selectors(self) -> SavedSelectors:
        return saved_selectors(self.project)

    def changes(self, node: Node) -> tuple[str, ...] | None:
        """Returns the parts of a node that are not as in the state; None if no state is given."""
        return self.previous.changes[node.name] if self.previous.folder else None

    def in_order(self, names: Collection[str], wanted: Wanted | None = None) -> list[Node]:
        """Returns the nodes of these names, parents first; only those that are wanted, if `wanted` is given."""
        nodes = (self.graph.nodes[name] for name in self.graph.order() if name in names)
        return [node for node in nodes if wanted is None or wanted(node)]


def folders_of(arguments: ProjectArguments, name: str) -> tuple[Path, ...]:
    """Returns the folders `formats` or `macros` of the project, if there is one, and the built-in one: for commands
    that need no project.
    """
    return project_folders(root_of(arguments), name)


def format_renderer(arguments: ProjectArguments) -> Renderer:
    """Renders macros for formats that are compiled without a project."""
    return Renderer(folders_of(arguments, "macros"), {**MACRO_GLOBALS, "ref": str})


def masks_of_format(arguments: ProjectArguments, format_name: str) -> tuple[tuple[TableSettings, ...], MaskSecret]:
    """Returns the tables that sources of a format mask in the project, if there is one, and the secret for them: one of
    this moment if none is set, so that what is hidden stays hidden.
    """
    root, tables = root_of(arguments), tuple[TableSettings, ...]()
    secret = MaskSecret(token_hex())
    # Nobody who only looks at a file needs a project without mistakes, unless it hides something.
    if root and "mask:" in read_text(root / "project.yml"):
        project = read_project_of(arguments)
        own = (source for source in project.sources if source.format.name == format_name)
        tables = tuple(table for source in own for table in source.masked)
        secret = project.mask_secret or secret
    return tables, secret


def root_of(arguments: ProjectArguments) -> Path | None:
    """Returns the folder of the project; None if there is none here."""
    try:
        return (arguments.project_dir or find_project(Path.cwd())).absolute()
    except RunnerError:
        return None


FRESHER = "fresher"


class PreviousState:
    """Compares a project with what a run has written to `folder`, its target folder. Without a folder, results are
    those of the project's last run. Nothing is read before a method needs it; `was_asked` is True after that.
    """

    def __init__(self, workspace: Workspace, folder: Path | None) -> None:
        self.project, self.graph, self.renderer = workspace.project, workspace.graph, workspace.templates.renderer
        self.folder, self.was_asked = folder, False

    def in_state(self, state: str) -> set[str]:
        """Returns the names of the nodes in a state, such as `modified.body`."""
        self.was_asked = True
        check_state(state)
        return {name for name, changed in self.changes.items() if is_in_state(state, changed)}

    def with_result(self, status: str) -> set[str]:
        """Returns the names of the nodes with a status in the last run."""
        self.was_asked = True
        check_status(status)
        statuses = statuses_in(self.folder or self.project.target_path)
        nodes = self.graph.nodes.items()
        return {name for name, node in nodes if statuses.get(unique_id(self.project, node)) == status}

    def with_source_status(self, status: str) -> set[str]:
        """Returns the sources with new messages since the run in the folder, or since the project's last one."""
        from runner.engine.progress import has_new_input

        self.was_asked = True
        if status != FRESHER:
            hint = f"source_status:{FRESHER}"
            raise RunnerError("selector-state", f'"source_status:{status}" is no state of a source', hint=hint)
        folder = self.folder or self.project.target_path
        landed, target = landed_in(folder), target_in(folder)
        fresher = (one for one in self.project.sources if has_new_input(one, target, landed.get(one.name)))
        return {f"source.{source.name}" for source in fresher}

    @cached_property
    def changes(self) -> dict[str, tuple[str, ...]]:
        """Each node -> the parts of it that have changed."""
        from runner.compile.contents import ContentsOf
        from runner.compile.library import Library

        before, contents = contents_in(given_state(self.folder)), ContentsOf(self.project, Library(self.renderer))
        return {name: differences(before.get(name), contents.node(node)) for name, node in self.graph.nodes.items()}
