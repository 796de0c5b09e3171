"""The session of Spark in which a command runs its nodes: the tables that it locks, and the files that it writes to
target/.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from datetime import datetime, timezone
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from runner import artifacts
from runner.compile.compiled import Compiled
from runner.compile.contents import ContentsOf
from runner.compile.library import Library, functions_file
from runner.engine.locks import Session, TableLocks
from runner.errors import RunnerWarning
from runner.files import Damaged, is_uri
from runner.project.inputs import ExternalTable, Source, Target
from runner.project.nodes import Case, FunctionTest, Graph, Project, UnitTest
from runner.report import Report
from runner.run.results import INTERRUPTED, Interrupted, Result
from runner.run.run import Run

if TYPE_CHECKING:
    from runner.engine.session import Spark


def always_needed() -> bool:
    return False


@contextmanager
def session(
    run: Run, report: Report, may_be_small: bool = False, unless: Callable[[], bool] = always_needed
) -> Iterator[bool]:
    """Opens a session with the tables of a run locked; the block sets the results of the run. Writes the compiled SQL
    and the manifest before the block; after it, writes and reports the results. With `may_be_small` Java is started for
    a small job, if the run is one. Yields False, without Spark, if `unless` is true once the tables are locked. Raises
    Interrupted after the results are written.
    """
    # The nodes are compiled here: all mistakes in their SQL are raised before anything is locked or started.
    run.check_masks()
    _write_project(run, run.compiled)
    graph = run.graph
    run.run_id = f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:8]}"
    report.of_run(run.run_id)
    began, is_written, exit_code = time.monotonic(), False, None
    try:
        with run.signals, _locked(run, report, may_be_small, unless) as is_needed:
            try:
                yield is_needed
            except Interrupted as interrupted:
                run.results = interrupted.results
                raise
            finally:
                # The results are written before the session ends, which may hang.
                if run.results is not None:
                    # Nodes of tables that the run has met have come to the graph (`Run.of_new_tables`).
                    if run.graph is not graph:
                        _write_project(run, run.compiled)
                    _write(run, began)
                    is_written = True
    except KeyboardInterrupt:
        exit_code = INTERRUPTED
        if run.results is None and not run.signals.only_count:
            _write_skipped(run, began)
            is_written = True
        raise
    finally:
        if is_written:
            report.done(run.results or [], time.monotonic() - began, run.exit_code if exit_code is None else exit_code)


def _write_skipped(run: Run, began: float) -> None:
    """Writes the results of a run that was interrupted before it had any."""
    why = "because the run was interrupted"
    run.results = [Result(node.name, node.resource_type, "skipped", why) for node in run.nodes]
    _write(run, began)


def _begin(run: Run, spark: Spark, report: Report) -> None:
    """Begins the work of a run: what has another name now gets it first."""
    from runner.engine.copies import check_whole
    from runner.engine.erasures import check_no_erase

    run.spark = spark
    # Nothing is renamed in a target that is half a copy.
    check_whole(run.tables)
    if run.command != "erase":
        check_no_erase(run.tables)
    for rename in run.renames.carry_out():
        report.say(str(rename))
    run.begin(spark)
    report.measuring(spark.measures.now)


def _write_project(run: Run, compiled: Compiled) -> None:
    """Writes the compiled SQL and the manifest."""
    artifacts.write_compiled(run.project, run.graph, compiled, functions_file(run.macro, compiled))
    artifacts.write_manifest(run.project, run.graph, compiled, ContentsOf(run.project, run.library).node)


@contextmanager
def _locked(run: Run, report: Report, may_be_small: bool, unless: Callable[[], bool]) -> Iterator[bool]:
    """Opens a session of Spark for a run, with the tables locked that it writes; yields False, without a session, if
    `unless` is true then.
    """
    target = run.project.target
    with _locks(run.project, run.command) as locks:
        run.lock = partial(locks.take, end=partial(_end, target))
        run.take_tables()
        if unless():
            yield False
            return
        # No JVM is started, and no Spark is imported, before the tables are locked: a run that is refused waits for
        # neither.
        is_small_job = may_be_small and _is_small_job(run)
        with open_spark(target, spark_log(run.project), run.library, report, is_small_job) as spark:
            run.signals.count_only(spark.cancel, spark.kill)
            _hold(locks, spark)
            _begin(run, spark, report)
            yield True


def _hold(locks: TableLocks, spark: Spark) -> None:
    """Writes into locks what works with the tables: it may live longer than this process."""
    if spark.process:
        locks.jvm(spark.process)
    if spark.server_session:
        locks.session(spark.server_session)


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
    target = run.project.target
    is_small_job = not run.settings.deferred and is_little(stored=_stored(run.graph, target))
    with open_spark(target, spark_log(run.project), run.library, report, is_small_job) as spark:
        run.begin(spark)
        for rename in run.renames.waiting():
            old, new = rename.shown
            what = f'"{new}" is still "{old}" in this target, and is not read'
            report.warn(RunnerWarning("rename-waits", what, hint="runner run gives it the new name"))
        yield


@contextmanager
def session_to_compare(run: Run, report: Report, tables: Iterable[str]) -> Iterator[None]:
    """Opens a session in which a run reads tables as they are, and writes these tables, which are locked."""
    with _locks(run.project, run.command) as locks:
        locks.take(tables, partial(_end, run.project.target))
        with session_to_read(run, report):
            _hold(locks, run.spark)
            yield


@contextmanager
def session_between(run: Run, other: Project, target: Target, report: Report, tables: Iterable[str]) -> Iterator[Spark]:
    """Opens a session with the settings of `target`, in which tables go from the target of a run into that of another
    project; these tables are locked in both.
    """
    names = list(tables)
    # Targets whose tables this machine does not see may have their locks in one folder.
    projects = {project.beside_tables("locks"): project for project in (run.project, other)}
    with ExitStack() as held:
        taken = [held.enter_context(_locks(project, run.command)) for project in projects.values()]
        for locks, project in zip(taken, projects.values()):
            locks.take(names, partial(_end, project.target))
        with open_spark(target, spark_log(run.project), run.library, report) as spark:
            for locks in taken:
                _hold(locks, spark)
            yield spark


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
    return TableLocks(project.beside_tables("locks"), command, project.target.name)


def _end(target: Target, session: Session) -> bool:
    """Ends a session that a dead client has left; returns False if the session is on another server."""
    if not target.remote:
        return False
    from runner.engine.connect import end_session

    return end_session(target.remote, session)


# --- small jobs: runs that read so little that they end before Java's second compiler would have paid for its time

# A run that reads no more than this is shorter without Java's second compiler: measured on two cores. Lines count too,
# since short lines take more time for their size. Files without lines, and tables, are compressed.
LITTLE_TEXT, LITTLE_STORED, LINES = 1 << 26, 1 << 24, 60_000
# Tests that bring the rows that they read.
SELF_CONTAINED = (Case, UnitTest, FunctionTest)


# The bytes of files with lines, the number of their lines, and the bytes of tables and of files without lines.
Amount = tuple[float, float, float]
# The amount of anything that this machine does not see.
UNKNOWN: Amount = (0, 0, inf)


def is_little(text: float = 0, lines: float = 0, stored: float = 0) -> bool:
    """Returns True if an amount is little to read."""
    return text <= LITTLE_TEXT and lines <= LINES and stored <= LITTLE_STORED


def _is_small_job(run: Run) -> bool:
    """Returns True if the nodes of a run read little: messages that have not landed (in a full refresh all messages),
    messages that are read again for a test, and tables. Returns False where this machine does not see them.
    """
    if run.settings.reads_nothing or run.settings.deferred:
        return not run.settings.deferred
    target, is_refresh = run.project.target, run.settings.full_refresh
    reading = [node for node in run.nodes if not isinstance(node.subject, SELF_CONTAINED)]
    landing = [node.model.source for node in reading if node.model and node.model.source]
    again = [node.data_test.source for node in reading if node.data_test and node.data_test.source]
    try:
        amounts = [
            *(_messages(source, target, is_refresh) for source in landing),
            *(_messages(source, target, True) for source in again),
            *([(0, 0, _stored(run.graph, target))] if len(landing) < len(reading) else []),
        ]
    except (Damaged, OSError):
        return False
    return is_little(*map(sum, zip(*amounts)))


def _stored(graph: Graph, target: Target) -> float:
    """Returns the bytes of all tables of a target, or so many that they are not little."""
    has_others = target.catalog or any(isinstance(node.subject, ExternalTable) for node in graph.nodes.values())
    if target.remote or is_uri(target.path) or has_others:
        return inf
    size = 0
    for path in Path(target.path).rglob("*"):
        # A file may go away at any moment.
        with suppress(OSError):
            size += path.stat().st_size if path.is_file() else 0
        if size > LITTLE_STORED:
            break
    return size


def _messages(source: Source, target: Target, all_of_them: bool) -> Amount:
    """Returns the amount of the messages of a source: of all messages, or of those that have not landed."""
    from runner.engine.progress import checkpoint_of
    from runner.run.source_files import SourceFiles

    if not source.messages.local_pattern or target.remote or is_uri(target.path):
        return UNKNOWN
    files = SourceFiles.found(source.messages, checkpoint_of(target, source))
    if not all_of_them and files.checkpoint.has_unfinished_batch:
        return UNKNOWN
    size, lines = files.amount(files.there) if all_of_them else files.to_read
    return (0, 0, size) if lines is None else (size, lines, 0)
