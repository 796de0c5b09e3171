"""One run: nodes of a project, compiled, in a session of Spark, and the parts that work on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from runner.compile.compiled import Compiled
from runner.compile.library import Library
from runner.compile.nodes import compile_nodes, queries_together, with_queries_read
from runner.compile.query import reads
from runner.errors import RunnerError
from runner.project.inputs import Deferred, Messages, Source
from runner.project.mask_secret import SHORTEST, VARIABLE
from runner.project.nodes import Node
from runner.run.results import Result
from runner.run.schedule import Order, StopSignals
from runner.run.workspace import Workspace

if TYPE_CHECKING:
    from runner.engine.catalog import CatalogPublisher
    from runner.engine.recorded import Fingerprint
    from runner.engine.session import Spark
    from runner.engine.tables import Tables
    from runner.run.increments import Increments, Reading
    from runner.run.landing import Landing
    from runner.run.mirrors import Mirrors
    from runner.run.models import Seeds
    from runner.run.renames import Renames
    from runner.run.statements import Statements
    from runner.run.tables_seen import SeenByRun
    from runner.run.views import Views


@dataclass(frozen=True)
class Settings:
    """The settings of a run. With `full_refresh` tables are built again, if it `accepts_loss` also of sources whose
    messages are not all there any more. If `reads_nothing` is True, all that the nodes
    read has no rows. `deferred` are the tables of another run that this run reads. `arguments` are those with which
    this run can be run again.
    """

    full_refresh: bool = False
    reads_nothing: bool = False
    deferred: Deferred | None = None
    accepts_loss: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)


class Run:
    """The nodes that a command works on, in order, and the parts that work on them. Other runs that find its tables
    locked report `command`; `lock` locks more tables. Parts are made when they are first used: before there is a
    session of Spark nothing may import it.
    """

    # Set once there is a session: `lock` and `run_id` by `session`, `spark` by `begin`.
    spark: Spark
    lock: Callable[[Iterable[str]], None]
    results: list[Result] | None = None

    def __init__(
        self, workspace: Workspace, command: str, nodes: list[Node], settings: Settings | None = None, run_id: str = ""
    ) -> None:
        self.workspace, self.project, self.graph = workspace, workspace.project, workspace.graph
        self.command, self.nodes, self.settings, self.run_id = command, nodes, settings or Settings(), run_id
        self.macro, self.signals = workspace.templates.call, StopSignals()
        # Source -> the number of its dead letters that are open, None until it is known.
        self.open_letters: dict[str, int | None] = {}
        self.library = Library(workspace.templates.renderer)

    @cached_property
    def compiled(self) -> Compiled:
        """The SQL of the nodes and of the nodes that they read; raises all mistakes in it."""
        workspace, needed = self.workspace, with_queries_read(self.graph, self.nodes)
        later = workspace.mirrors.by_rule
        compiled = compile_nodes(needed, workspace.templates, workspace.formats, self.library, later)
        return replace(compiled, together=queries_together(self.nodes, workspace.templates))

    @property
    def exit_code(self) -> int:
        """The exit code: 1 if a node has failed, or has not done all that it could; else 0."""
        return int(any(result.has_failed or result.is_incomplete for result in self.results or ()))

    @property
    def tables_written(self) -> list[str]:
        """The names of the tables that the run writes: those of models, and of tests that keep the rows that fail."""
        return [node.relation for node in self.nodes if node.writes_table]

    @property
    def tables_growing(self) -> list[str]:
        """The names of the tables to which the run adds rows, unless they are built again."""
        return [node.relation for node in self.nodes if node.model and node.model.is_added_to]

    def reads(self, messages: Messages) -> dict[str, str]:
        """Returns the expressions that read messages of a kind."""
        return reads(self.macro, messages)

    def fingerprint_of(self, source: Source) -> Fingerprint:
        """Returns what decides the rows of a source now."""
        from runner.run.stale import fingerprint_of

        return fingerprint_of(source, self._meaning_of(source), self.project.mask_secret)

    def _meaning_of(self, source: Source) -> str:
        """Returns all text that decides which rows a source's messages become. It does not change with the name of the
        source: it has the one under which the first messages landed.
        """
        node, names = self.graph.nodes[source.model], self.tables.checkpoint(source.model).names()
        if not names:
            return self.compiled.nodes[source.model].meaning
        assert node.model
        named = replace(node, subject=replace(node.model, query=replace(source, name=names.landed)))
        compiled = compile_nodes([named], self.workspace.templates, self.workspace.formats, self.library)
        return compiled.nodes[node.name].meaning

    @property
    def sources_landed(self) -> list[Source]:
        """The sources with mirrors whose messages this run has landed."""
        return [source for source in self._sources if source.name in self.workspace.mirrored]

    @property
    def sources_masked(self) -> list[Source]:
        """The sources that hide columns whose messages this run has landed."""
        return [source for source in self._sources if source.masked and not self.settings.reads_nothing]

    @property
    def _sources(self) -> list[Source]:
        return [node.model.source for node in self.nodes if node.model and node.model.source]

    @contextmanager
    def of_new_tables(self, workspace: Workspace, nodes: list[Node]) -> Iterator[Run]:
        """Makes a run of nodes that are in the project only since this run has landed, in the same session. After the
        block, this run is that of all nodes.
        """
        more = Run(workspace, self.command, nodes, self.settings, self.run_id)
        more.signals, more.lock = self.signals, self.lock
        more.take_tables()
        more.spark, more.tables = self.spark, self.tables
        try:
            yield more
        finally:
            self.workspace, self.graph, self.nodes = workspace, workspace.graph, [*self.nodes, *nodes]
            compiled, times = (
                {**self.compiled.nodes, **more.compiled.nodes},
                {**self.compiled.times, **more.compiled.times},
            )
            self.compiled = replace(self.compiled, nodes=compiled, times=times)

    def begin(self, spark: Spark) -> None:
        """Sets the session in which the run works from now on. A full refresh begins here. Raises `copy-unfinished` if
        the tables of the target are a part of a copy.
        """
        from runner.engine.copies import check_whole
        from runner.engine.erasures import ERASED
        from runner.engine.masks import mask_keys_view

        self.spark = spark
        check_whole(self.tables)
        if self.project.mask_secret or self.tables.files.exists(self.tables.target.at(ERASED)):
            mask_keys_view(spark, self.project.mask_secret)
        if self.settings.full_refresh:
            if not self.settings.accepts_loss:
                self._check_replayable()
            self.tables.refreshes.begin(self.tables_growing, self.run_id)

    def check_masks(self) -> None:
        """Raises `mask-secret` if there is no secret for the values that its sources mask."""
        masked = next((source for source in self._sources if source.masked), None)
        if masked and not self.project.mask_secret:
            where = masked.masked[0].origin.where()
            hint = f"export {VARIABLE}=..., at least {SHORTEST} characters, or mask_secret in project.yml"
            raise RunnerError(
                "mask-secret", f'the source "{masked.name}" masks values, and no secret is set', where, hint
            )

    def _check_replayable(self) -> None:
        from runner.run.replay import check_replayable

        check_replayable(self.spark, self.tables, self._sources)

    def take_tables(self) -> None:
        """Locks the tables that the run is about to write, and records them, so that they are known when no node has
        them any more.
        """
        from runner.engine.progress import TablesWritten

        self.lock(self.tables_written)
        TablesWritten(self.project).add(self.tables_written)

    @property
    def order(self) -> Order:
        """The order of the nodes. Tests that one query answers run together."""
        queries = {
            **{name: case.query.meaning for name, case in self.compiled.cases.items()},
            **{name: str(test.file) for name, test in self.compiled.function_tests.items()},
            **self.compiled.together,
        }
        return Order(self.graph, [node.name for node in self.nodes], queries)

    # --- parts, which share the run

    @cached_property
    def tables(self) -> Tables:
        from runner.engine.tables import Tables

        return Tables(self.spark, self.macro, self.settings.reads_nothing, self.settings.deferred)

    @cached_property
    def landing(self) -> Landing:
        from runner.run.landing import Landing

        return Landing(self)

    @cached_property
    def views(self) -> Views:
        from runner.run.views import Views

        return Views(self)

    @cached_property
    def shapes(self) -> Views:
        """The views without rows, in a session of their own: a table that is not built yet is the view of its query."""
        other = Run(self.workspace, self.command, self.nodes, replace(self.settings, reads_nothing=True))
        other.compiled, other.spark = self.compiled, self.spark.fresh()
        return other.views

    @cached_property
    def reading(self) -> Reading:
        from runner.run.increments import Reading

        return Reading(self)

    @cached_property
    def increments(self) -> Increments:
        from runner.run.increments import Increments

        return Increments(self)

    @cached_property
    def statements(self) -> Statements:
        from runner.run.statements import Statements

        return Statements(self.tables, self.seen.with_statements)

    @cached_property
    def seen(self) -> SeenByRun:
        from runner.run.tables_seen import SeenByRun

        return SeenByRun(self)

    @cached_property
    def mirrors(self) -> Mirrors:
        from runner.run.mirrors import Mirrors

        return Mirrors(self)

    @cached_property
    def seeds(self) -> Seeds:
        from runner.run.models import Seeds

        return Seeds(self)

    @cached_property
    def renames(self) -> Renames:
        from runner.run.renames import Renames

        return Renames(self)

    @cached_property
    def publisher(self) -> CatalogPublisher:
        from runner.engine.catalog import CatalogPublisher
        from runner.run.models import catalog_entries

        return CatalogPublisher(self.spark, self.tables, partial(catalog_entries, self))
