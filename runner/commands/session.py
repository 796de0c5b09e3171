"""The session of Spark in which a command runs its nodes: the tables that it locks, and the files that it writes to
target/.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from runner import artifacts
from runner.compile.contents import ContentsOf
from runner.compile.library import Library, functions_file
from runner.engine.locks import Session, TableLocks
from runner.files import is_uri
from runner.project.inputs import Target
from runner.project.nodes import Project
from runner.report import Report
from runner.run.results import Interrupted, Result
from runner.run.run import Run

if TYPE_CHECKING:
    from runner.engine.session import Spark


@contextmanager
def session(run: Run, report: Report, is_small_job: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Opens a session with the tables of a run locked; the block sets the results of the run. Writes the compiled SQL
    and the manifest before the block; after it, writes and reports the results. `is_small_job` decides how Java is
    started: it is called when the tables are locked, because a run that is refused must not wait for the import of
    Spark. Raises Interrupted after the results are written.
    """
    _write_project(run)
    graph = run.graph
    run.run_id = f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:8]}"
    began, is_written = time.monotonic(), False
    try:
        with run.signals, _locked(run, report, is_small_job) as spark:
            run.begin(spark)
            report.measuring(spark.measures.now)
            try:
                yield
            except Interrupted as interrupted:
                run.results = interrupted.results
                raise
            finally:
                # The results are written before the session ends, which may hang.
                if run.results is not None:
                    if run.graph is not graph:
                        _write_project(run)
                    _write(run, began)
                    is_written = True
    except KeyboardInterrupt:
        if run.results is None and not run.signals.only_count:
            why = "because the run was interrupted"
            run.results = [Result(node.name, node.resource_type, "skipped", why) for node in run.nodes]
            _write(run, began)
            is_written = True
        raise
    finally:
        if is_written:
            report.done(run.results or [])


def _write_project(run: Run) -> None:
    """Writes the compiled SQL and the manifest."""
    artifacts.write_compiled(run.project, run.graph, run.compiled, functions_file(run.macro, run.compiled))
    artifacts.write_manifest(run.project, run.graph, run.compiled, ContentsOf(run.project, run.library).node)


@contextmanager
def _locked(run: Run, report: Report, is_small_job: Callable[[], bool]) -> Iterator[Spark]:
    """Opens a session of Spark, with the tables locked that the run writes."""
    target = run.project.target
    with _locks(run.project, run.command) as locks:
        run.lock = partial(locks.take, end=partial(_end, target))
        run.lock(run.tables_written)
        # No JVM is started before the tables are locked.
        with open_spark(target, spark_log(run.project), run.library, report, is_small_job()) as spark:
            run.signals.count_only(spark.cancel, spark.kill)
            if spark.process:
                locks.jvm(spark.process)
            if spark.server_session:
                locks.session(spark.server_session)
            yield spark


def _write(run: Run, began: float) -> None:
    """Writes the results, how the command was run, and how far each source has landed by now."""
    from runner.engine.progress import landed_until

    landed = landed_until(run.project.target, run.project.sources)
    how = {"which": run.command, **run.settings.arguments, "landed": landed}
    seconds = time.monotonic() - began
    artifacts.write_results(run.project, run.graph, run.compiled, run.run_id, run.results or [], seconds, how)


def open_spark(target: Target, log: Path, library: Library | None, report: Report, is_small_job: bool = False) -> Spark:
    """Opens a session; reports that Spark is being started if it has to be. For a run that `is_small_job`, Java is
    started so that it is there sooner, and is slower with much to read.
    """
    said = "connecting to Spark" if target.remote else "starting Spark"
    with nullcontext() if _has_spark(target) else report.during(said, is_said=True):
        from runner.engine.session import Spark

        return Spark(target, log, library, is_small_job)


@contextmanager
def session_to_read(run: Run, report: Report) -> Iterator[None]:
    """Opens a session in which a run reads tables as they are."""
    from runner.run.job_size import tables_are_small

    target = run.project.target
    is_small_job = not run.settings.deferred and tables_are_small(run.graph, target)
    with open_spark(target, spark_log(run.project), run.library, report, is_small_job) as spark:
        run.begin(spark)
        yield


def _has_spark(target: Target) -> bool:
    """Returns True if this process has a Spark that such a target uses."""
    # Importing Spark takes a second, so this must not import it: if it has not been imported, it has not been started.
    if target.remote or "pyspark" not in sys.modules:
        return False
    from runner.engine.start import running

    return running() is not None


def spark_log(project: Project) -> Path:
    return project.target_path / "logs" / "spark.log"


def _locks(project: Project, command: str) -> TableLocks:
    """Returns the locks, which are beside the tables; in the target path if the tables are not on this machine."""
    target = project.target
    folder = project.target_path / "locks" if is_uri(target.path) else Path(target.at("_locks"))
    return TableLocks(folder, command, target.name)


def _end(target: Target, session: Session) -> bool:
    """Ends a session that a dead client has left; returns False if the session is on another server."""
    if not target.remote:
        return False
    from runner.engine.connect import end_session

    return end_session(target.remote, session)
