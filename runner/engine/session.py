"""A session of Spark: its settings, its views, the rows of queries."""

from __future__ import annotations

import logging
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from runner import functions
from runner.contract import SQL_SETTINGS
from runner.engine.connect import connected
from runner.engine.errors import QueryFailed, SparkGone, query_errors
from runner.engine.locks import Session
from runner.engine.values import nullable, plain, typed
from runner.errors import RunnerError, from_here
from runner.functions import udfs
from runner.functions.avro.layout import AvroFunction
from runner.project.nodes import Target

# Executors have nothing of this project: what its functions are made of goes to them with the query.
cloudpickle.register_pickle_by_value(functions)

SETTINGS = {
    "spark.master": "local[*]",
    "spark.driver.memory": "2g",
    # The query of a format compiles to long methods, and without the second option Java would only interpret it.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:-DontCompileHugeMethods",
    "spark.executor.extraJavaOptions": "-XX:+UseParallelGC -XX:-DontCompileHugeMethods",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
    # The number of a row in its block is refused in streams, though it is right where it directly reads files.
    "spark.sql.streaming.unsupportedOperationCheck": "false",
    # Each batch of a stream is planned anew, and its Java compiled anew unless it is still known: a session of many
    # sources has more than 100 such classes.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # Delta's vacuum lists folders in so many tasks however few they are, and in 10,000 unless told.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "64",
    # Rows of several kinds and days are written side by side: without this Spark sorts them first.
    "spark.sql.maxConcurrentOutputFileWriters": "32",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # What Python functions make of so many rows stays near the processor, and large messages do not come in thousands.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
}

CORES = str(os.cpu_count() or 2)

# Settings for Spark on this machine alone.
LOCAL_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": CORES,
    # A task of listing files is sent all of Hadoop's settings: more of them than cores only cost.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": CORES,
    # Delta reads its log in 50 tasks, which for small tables takes longer than all else.
    "spark.databricks.delta.snapshotPartitions": "2",
}


class Spark:
    """A session for one run. Views are the session's own: another session of the same JVM does not see them."""

    def __init__(self, target: Target, log: Path) -> None:
        # A session of Spark Connect and one of a JVM of this process's own know nothing of each other.
        started = None if target.remote else SparkSession.getActiveSession()
        self.target = target
        self.owns_jvm = started is None and not target.remote
        self.server_session: Session | None = None
        self.in_server: list[SparkSession] = []
        if started:
            self.session = started.newSession()
        elif target.remote:
            self._connect(target.remote)
        else:
            self.session = _started(target, log)
        self._set_all()
        logging.getLogger("SQLQueryContextLogger").disabled = True

    def __enter__(self) -> Spark:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(SparkGone), query_errors():
            if self.owns_jvm:
                self.session.stop()
            for session in self.in_server:
                session.stop()

    @property
    def jvm(self) -> Any:
        """The gateway to the JVM of this session; None if it is the server's."""
        return None if self.target.remote else self.session._jvm

    @property
    def process(self) -> int | None:
        """The process of the JVM, where it is this run's own."""
        return self.jvm.java.lang.ProcessHandle.current().pid() if self.jvm and self.owns_jvm else None

    def fresh(self) -> Spark:
        """The same JVM or server with no views."""
        out = object.__new__(Spark)
        out.target, out.owns_jvm, out.in_server = self.target, False, self.in_server
        if self.target.remote:
            out._connect(self.target.remote)
        else:
            out.session, out.server_session = self.session.newSession(), None
        out._set_all()
        return out

    def _connect(self, remote: str) -> None:
        self.session, self.server_session = connected(remote)
        self.in_server.append(self.session)

    def _set_all(self) -> None:
        # In a server nothing was set when the JVM started.
        self._set({**(SETTINGS if self.target.remote else {}), **self.target.spark, **SQL_SETTINGS})

    def _set(self, settings: Mapping[str, str]) -> None:
        """Settings of the session; those of the JVM were given at its start."""
        with warnings.catch_warnings():
            # Spark Connect says of some that they are old.
            warnings.simplefilter("ignore")
            for key, value in settings.items():
                # Spark does not say of catalogs that they are settings of a session, but they are.
                if key.startswith("spark.sql.catalog.") or (
                    key.startswith("spark.sql.") and self.session.conf.isModifiable(key)
                ):
                    self.session.conf.set(key, value)

    def cancel(self) -> None:
        """Ends what runs in this session, in whichever thread."""
        with suppress(SparkGone), query_errors():
            for stream in self.session.streams.active:
                stream.stop()
            self.session.interruptAll()

    @contextmanager
    def setting(self, key: str, value: str) -> Iterator[None]:
        """A setting of the session, for a while."""
        self.session.conf.set(key, value)
        try:
            yield
        finally:
            self.session.conf.unset(key)

    # --- views

    def view(self, name: str, sql: str) -> None:
        with query_errors():
            self.query(sql).createOrReplaceTempView(name)

    def list_view(self, name: str, rows: Iterable[tuple[Any, ...]], columns: str) -> None:
        """Makes a view of rows at hand."""
        self.session.createDataFrame(list(rows), columns).createOrReplaceTempView(name)

    def given_rows(self, to: Spark, name: str, rows: list[Mapping[str, Any]]) -> None:
        """Gives another session rows, written as text, in place of a view of this one; what a row does not name is
        null.
        """
        kind = nullable(self.session.table(name).schema)
        to.session.createDataFrame([typed(row, kind) for row in rows], kind).createOrReplaceTempView(name)

    # --- queries

    def rows(self, sql: str, limit: int | None = None) -> tuple[list[str], list[dict[str, Any]]]:
        """Columns and rows of a query, as plain values: text, numbers, None, lists and dicts; instants as ISO 8601 in
        UTC.
        """
        with query_errors():
            frame = self.query(sql)
            frame = frame.limit(limit) if limit is not None else frame
            kinds = frame.schema
            return frame.columns, [
                {f.name: plain(row[f.name], f.dataType) for f in kinds} for row in frame.toArrow().to_pylist()
            ]

    def count(self, sql: str) -> int:
        with query_errors():
            return self.query(sql).count()

    def do(self, sql: str) -> None:
        """Runs a statement for what it does."""
        with query_errors():
            self.query(sql).collect()

    def query(self, sql: str) -> DataFrame:
        """The query, in a session that has the functions it calls."""
        for name, (function, kind) in udfs.FUNCTIONS.items():
            if f"{name}(" in sql and not self.session.catalog.functionExists(name):
                self.session.udf.register(name, F.arrow_udf(function, kind))
        return self.session.sql(sql)

    def know(self, functions: Iterable[AvroFunction]) -> None:
        """Makes functions known to the session that no other query has."""
        with query_errors():
            for one in functions:
                if not self.session.catalog.functionExists(one.name):
                    trees = {name: tree for name, tree in (("fields", one.fields), ("images", one.images)) if tree}
                    self.session.udf.register(one.name, F.arrow_udf(udfs.avro_reader(one.layout, trees), one.sql_type))


def _started(target: Target, log: Path) -> SparkSession:
    """A session in a JVM of its own."""
    is_local = str(target.spark.get("spark.master", "local")).startswith("local")
    settings = {
        **SETTINGS,
        **(LOCAL_SETTINGS if is_local else {}),
        "spark.sql.warehouse.dir": target.at("_catalog"),
        **target.spark,
        **SQL_SETTINGS,
    }
    builder = SparkSession.builder.appName("runner")
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _start_explained(log), _java_log(log):
        session = builder.getOrCreate()
    if is_local and "spark.pyspark.python" not in target.spark:
        session.sparkContext.pythonExec = sys.executable
    return session


@contextmanager
def _start_explained(log: Path) -> Iterator[None]:
    """What keeps Spark from starting, as `spark-start`."""
    known = log.stat().st_size if log.exists() else 0
    try:
        with query_errors():
            yield
    except (QueryFailed, OSError) as failure:
        # A JVM that did not start has told only its log why.
        said = (
            _first_reason(log.read_bytes()[known:].decode(errors="replace"))
            if "JAVA_GATEWAY_EXITED" in str(failure)
            else str(failure)
        )
        hint = f"it needs Java 17 or later (that of JAVA_HOME, or java) and settings it knows under spark in the target; {from_here(log)} has all it said"
        raise RunnerError("spark-start", f"Spark did not start: {said}", hint=hint) from failure


# What Java and Spark print at every start, and where in their code a failure was.
SAYS_NO_REASON = re.compile(r"\s|Picked up |WARNING: |Using |Setting |To adjust |\S+ \S+ (WARN|INFO) ")


def _first_reason(text: str) -> str:
    """
    Of what a JVM or its launcher prints, the line that says what is wrong.

    >>> _first_reason("Picked up JAVA_TOOL_OPTIONS: -Da=b\\nWARNING: Using incubator modules\\nException in thread \\"main\\" x.Bad: number\\n\\tat a.b(C.java)")
    'Exception in thread "main" x.Bad: number'
    """
    return next(
        (line for line in text.splitlines() if line and not SAYS_NO_REASON.match(line)), "its Java ended without a word"
    )


@contextmanager
def _java_log(path: Path) -> Iterator[None]:
    """What the JVM prints goes to a file: it is started with this process's stdout and stderr."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [(number, os.dup(number)) for number in (1, 2)]
    with path.open("ab") as log:
        for number, _ in saved:
            os.dup2(log.fileno(), number)
        try:
            yield
        finally:
            for number, copy in saved:
                os.dup2(copy, number)
                os.close(copy)
