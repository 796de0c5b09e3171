"""A run: its Spark session, the tables that it locks, and the files that it writes to target/."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner import artifacts
from runner.commands.workspace import Workspace
from runner.compile.compiled import Compiled
from runner.compile.contents import ContentsOf
from runner.compile.library import Library
from runner.compile.nodes import compile_nodes, with_queries_read
from runner.compile.query import reads
from runner.compile.runnable import functions_file
from runner.engine.locks import Session, TableLocks
from runner.files import is_uri
from runner.project.inputs import Elsewhere, Target
from runner.project.nodes import Node, Project
from runner.report import Report
from runner.run.results import Interrupted, Result
from runner.run.signals import StopSignals

if TYPE_CHECKING:
    from runner.engine.session import Spark
    from runner.run.parts import Parts
    from runner.run.places import Places


@dataclass(frozen=True)
class Job:
    """Nodes to work on, and the SQL that this needs. Other runs that find its tables locked report `command`; with
    `arguments` it can be run again. If it `reads_nothing`, all that its nodes read has no rows; if it `reads_little`,
    there are few: asked when its tables are locked, for whoever is refused must not wait for Spark to be imported.
    """

    workspace: Workspace
    command: str
    nodes: list[Node]
    compiled: Compiled
    library: Library
    full_refresh: bool = False
    reads_nothing: bool = False
    reads_little: Callable[[], bool] = lambda: False
    elsewhere: Elsewhere | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, workspace: Workspace, command: str, nodes: list[Node], full_refresh: bool = False) -> Job:
        """The job, compiled; raises all mistakes in what it compiles."""
        needed = with_queries_read(workspace.graph, nodes)
        library = Library(workspace.templates.renderer)
        compiled = compile_nodes(needed, workspace.templates, workspace.formats, library)
        return cls(workspace, command, nodes, compiled, library, full_refresh)

    @property
    def how(self) -> dict[str, Any]:
        """How it was run, and how far each source has landed by now."""
        from runner.engine.fresher import landed_until

        project = self.workspace.project
        landed = landed_until(project.target, project.sources)
        return {"which": self.command, **self.arguments, "landed": landed}

    @property
    def tables(self) -> list[str]:
        """The names of the tables that it writes: those of models, and of tests that keep the rows that fail."""
        return [node.relation for node in self.nodes if node.writes_table]

    @property
    def growing(self) -> list[str]:
        """The names of the tables that it adds to, unless they are built again."""
        models = [
            node
            for node in self.nodes
            if node.model and (node.model.source or node.model.is_incremental or node.model.mirror or node.model.seed)
        ]
        return [node.relation for node in models]

    @property
    def functions_file(self) -> str:
        """The SQL of all functions that its nodes call."""
        return functions_file(self.workspace.templates.call, self.compiled)

    @cached_property
    def places(self) -> Places:
        """Where its queries are wrong."""
        from runner.run.places import Places

        workspace = self.workspace
        path = partial(artifacts.sql_path, workspace.project)
        return Places(workspace.graph, self.compiled, workspace.templates, path)


def run_locked(job: Job, report: Report, work: Callable[[Parts], list[Result]]) -> int:
    """Does the work in a session, with the tables of the job locked; writes and reports the results. Returns the exit
    code; raises Interrupted after the results are written.
    """
    project, graph = job.workspace.project, job.workspace.graph
    artifacts.write_compiled(project, graph, job.compiled, job.functions_file)
    artifacts.write_manifest(project, graph, job.compiled, ContentsOf(project, job.library).node)
    began = time.monotonic()
    run_id = f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:8]}"
    with StopSignals() as signals:
        try:
            results = _worked(job, report, work, run_id, signals)
        except Interrupted as interrupted:
            report.done(interrupted.results)
            raise
        except KeyboardInterrupt:
            if not signals.only_count:
                why = "because the run was interrupted"
                results = [Result(node.name, node.resource_type, "skipped", why) for node in job.nodes]
                took = time.monotonic() - began
                artifacts.write_results(project, graph, job.compiled, run_id, results, took, job.how)
                report.done(results)
            raise
    report.done(results)
    return 1 if any(result.has_failed or result.is_incomplete for result in results) else 0


def _worked(
    job: Job, report: Report, work: Callable[[Parts], list[Result]], run_id: str, signals: StopSignals
) -> list[Result]:
    """The results of the work. They are written before the session ends: it may hang."""
    project, interrupted, began = job.workspace.project, None, time.monotonic()
    with _locks(project, job.command) as locks:
        locks.take(job.tables, lambda session: _end(project.target, session))
        with open_spark(
            project.target, spark_log(project), job.library, report, job.reads_little()
        ) as spark:  # before this there is no JVM
            signals.count_only(spark.kill)
            if spark.process:
                locks.jvm(spark.process)
            if spark.server_session:
                locks.session(spark.server_session)
            parts = parts_of(job, spark, run_id, signals)
            try:
                results = work(parts)
            except Interrupted as error:
                results, interrupted = error.results, error
            seconds = time.monotonic() - began
            artifacts.write_results(project, job.workspace.graph, job.compiled, run_id, results, seconds, job.how)
    if interrupted:
        raise interrupted
    return results


def parts_of(job: Job, spark: Spark, run_id: str = "", signals: StopSignals | None = None) -> Parts:
    """What runs the nodes of a job in a session. If the job is a full refresh, that has begun then."""
    from runner.run.parts import Parts

    macro = job.workspace.templates.call
    parts = Parts(
        job.workspace.graph,
        job.compiled,
        spark,
        macro,
        lambda messages: reads(macro, messages),
        run_id,
        signals or StopSignals(),
        job.reads_nothing,
        job.elsewhere,
    )
    if job.full_refresh:
        parts.tables.refreshes.begin(job.growing, run_id)
    return parts


def open_spark(target: Target, log: Path, library: Library | None, report: Report, reads_little: bool = False) -> Spark:
    """A session, which says that it is being started if it has to be. For one that `reads_little` Java is started so
    that it is there sooner, and is slower with much.
    """
    said = "connecting to Spark" if target.remote else "starting Spark"
    with nullcontext() if _has_spark(target) else report.during(said, is_said=True):
        from runner.engine.session import Spark

        return Spark(target, log, library, reads_little)


def open_to_read(job: Job, report: Report) -> Spark:
    """A session for a job that reads tables as they are."""
    from runner.run.little import tables_are_small

    workspace, target = job.workspace, job.workspace.project.target
    reads_little = not job.elsewhere and tables_are_small(workspace.graph, target)
    return open_spark(target, spark_log(workspace.project), job.library, report, reads_little)


def _has_spark(target: Target) -> bool:
    """Whether this process has a Spark that such a target uses."""
    # Importing Spark takes a second: what has not been imported has not been started.
    if target.remote or "pyspark" not in sys.modules:
        return False
    from runner.engine.start import running

    return running() is not None


def spark_log(project: Project) -> Path:
    return project.target_path / "logs" / "spark.log"


def _locks(project: Project, command: str) -> TableLocks:
    """Locks beside the tables; if these are not on this machine, in the target path."""
    target = project.target
    folder = project.target_path / "locks" if is_uri(target.path) else Path(target.at("_locks"))
    return TableLocks(folder, command, target.name)


def _end(target: Target, session: Session) -> bool:
    """Ends a session that a dead client has left; False if it is on another server."""
    if not target.remote:
        return False
    from runner.engine.connect import end_session

    return end_session(target.remote, session)
