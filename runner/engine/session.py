"""A session of Spark: its settings, its views and tables, the rows of queries."""

from __future__ import annotations

import json
import logging
import os
import signal
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from runner.contract import SQL_SETTINGS, schema
from runner.engine.connect import connected
from runner.engine.errors import QueryFailed, SparkGone, query_errors, spark_gone
from runner.engine.functions import MessageFunction, NoFunctions, SessionFunctions, SqlFunctions
from runner.engine.locks import LOOK_AGAIN_SECONDS, Session, start_of
from runner.engine.measures import Measures
from runner.engine.start import NEEDED, SETTINGS, running, started
from runner.engine.values import column_types, fitted, nullable, plain, typed
from runner.patterns import escaped
from runner.project.inputs import Target
from runner.project.sql_functions import SqlFunction
from runner.render import name as quoted

SECONDS_TO_DIE = 5.0
# Settings with which queries are interpreted: compiling a query to Java takes longer than reading a few thousand rows.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
# The models of formats compare letters in lower case with ASCII. They need none of the tables of letters that ICU would
# load to change the case, which takes half a second.
ASCII_LETTERS = {"spark.sql.icu.caseMappings.enabled": "false"}


class Spark:
    """A session for one run. Its views are not visible to other sessions of the same JVM."""

    def __init__(
        self, target: Target, log: Path, library: SqlFunctions | None = None, is_small_job: bool = False
    ) -> None:
        # A session of Spark Connect and one in this process's JVM do not know each other.
        there = None if target.remote else running()
        self.target = target
        self.owns_jvm = there is None and not target.remote
        self.server_session: Session | None = None
        self.opened: list[SparkSession] = []
        self.is_killed = False
        if there:
            self.session = there.newSession()
        elif target.remote:
            self._connect(target.remote)
        else:
            self.session = started(target, log, is_small_job)
        self.opened.append(self.session)
        self.measures = Measures(self.session, bool(target.remote))
        with spark_gone():
            # The number of the process is asked for now, not when it is needed: the JVM may not answer then.
            self.process: int | None = self.jvm.java.lang.ProcessHandle.current().pid() if self.owns_jvm else None
            self._prepare(library or NoFunctions())
        logging.getLogger("SQLQueryContextLogger").disabled = True

    def __enter__(self) -> Spark:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # If a JVM was killed, pyspark warns that it cannot be stopped.
        with suppress(SparkGone), query_errors(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if self.owns_jvm:
                self.session.stop()
            for session in self.opened if self.target.remote else ():
                session.stop()
        if self.is_killed:
            # The next holder of the locks must not meet a JVM that is still alive.
            deadline = time.monotonic() + SECONDS_TO_DIE
            while self.process and start_of(self.process) and time.monotonic() < deadline:
                time.sleep(LOOK_AGAIN_SECONDS)
            logging.disable(logging.NOTSET)
        elif error:
            with spark_gone():
                raise error

    @property
    def jvm(self) -> Any:
        """The gateway to the JVM of this session; None with Spark Connect, where the JVM is the server's."""
        return None if self.target.remote else self.session._jvm

    def fresh(self, library: SqlFunctions | None = None) -> Spark:
        """Returns another session in the same JVM or server, without views. Its queries find the functions of
        `library`, or those of this session's library if none is given.
        """
        out = self._another()
        if self.target.remote:
            out._connect(self.target.remote)
        else:
            out.session = self.session.newSession()
        out.opened.append(out.session)
        out._prepare(library or self.library)
        return out

    def cloned(self, settings: Mapping[str, str]) -> Spark:
        """Returns a session with settings of its own, and with the views and functions that this session has now;
        settings of the target stay. With Spark Connect returns this session, with its settings.
        """
        if self.target.remote:
            return self
        out = self._another()
        assert self.session._jsparkSession
        # Other threads may be making functions.
        with self.functions.making:
            out.session = SparkSession(self.session.sparkContext, self.session._jsparkSession.cloneSession())
            out.functions = self.functions.cloned(out.session)
        out.opened.append(out.session)
        out._set({key: value for key, value in settings.items() if key not in self.target.spark})
        return out

    def for_messages(self, are_few: bool) -> Spark:
        """Returns a clone for the query of a format, which is interpreted if the query will read few messages."""
        return self.cloned({**ASCII_LETTERS, **(INTERPRETED if are_few else {})})

    def _another(self) -> Spark:
        """Returns a copy that does not end the JVM; the copy still has the session of this one."""
        out = copy(self)
        out.owns_jvm, out.process, out.is_killed = False, None, False
        return out

    def _connect(self, remote: str) -> None:
        self.session, self.server_session = connected(remote)

    def _prepare(self, library: SqlFunctions) -> None:
        """Completes a session that was just opened."""
        self.library = library
        self.functions = SessionFunctions(self.session, library, bool(self.target.remote), self.target.schemas)
        # On a server nothing was set when its JVM started; in a JVM that somebody else started, perhaps nothing.
        self._set({**(SETTINGS if self.target.remote else NEEDED), **self.target.spark, **SQL_SETTINGS})

    def _set(self, settings: Mapping[str, str]) -> None:
        """Sets the settings of the session; the settings of the JVM were given at its start."""
        with warnings.catch_warnings():
            # Spark Connect warns that some settings are deprecated.
            warnings.simplefilter("ignore")
            for key, value in settings.items():
                # Catalogs are settings of a session, although isModifiable denies it.
                if key.startswith("spark.sql.catalog.") or (
                    key.startswith("spark.sql.") and self.session.conf.isModifiable(key)
                ):
                    self.session.conf.set(key, value)

    def cancel(self) -> None:
        """Ends all work in this session and in the sessions that were opened from it, in all threads."""
        for session in tuple(self.opened):
            with suppress(QueryFailed), query_errors():
                for stream in session.streams.active:
                    stream.stop()
                session.interruptAll()

    def kill(self) -> None:
        """Ends the JVM at once, if this run started it. May be called in the handler of a signal."""
        if self.process:
            self.is_killed = True
            # Without this each thread that waits for the JVM would log that the JVM is gone.
            logging.disable(logging.CRITICAL)
            with suppress(ProcessLookupError):
                os.kill(self.process, signal.SIGKILL)

    @contextmanager
    def setting(self, key: str, value: str) -> Iterator[None]:
        """Sets a setting of the session until the block ends."""
        self.session.conf.set(key, value)
        try:
            yield
        finally:
            self.session.conf.unset(key)

    # --- views

    def view(self, name: str, sql: str) -> None:
        """Creates a view of a query."""
        with query_errors():
            self.query(sql).createOrReplaceTempView(quoted(name))

    @contextmanager
    def computed_view(self, name: str, sql: str) -> Iterator[None]:
        """Creates a view of a query that is computed once, until the block ends. The view stays as it is when the
        tables change that the query reads; a cached view would be computed again then.
        """
        with query_errors():
            self.query(sql).localCheckpoint().createOrReplaceTempView(quoted(name))
        with self._dropped_at_end(name):
            yield

    def kept_view(self, name: str, sql: str, counts: str, condition: str = "true") -> str:
        """Creates a view of those rows of a query for which a condition is true, computed once; returns the text that
        the expression `counts` makes of all rows.
        """
        with query_errors():
            counting = Observation()
            rows = self.query(sql).observe(counting, F.expr(counts).alias("counts"))
            rows.where(condition).localCheckpoint().createOrReplaceTempView(quoted(name))
            return str(counting.get["counts"])

    @contextmanager
    def counted_view(self, name: str, sql: str, counts: str) -> Iterator[Any]:
        """Creates a view of a query that is computed once, as `computed_view` does; yields the value of the JSON that
        the expression `counts` makes of its rows.
        """
        counted = json.loads(self.kept_view(name, sql, counts))
        with self._dropped_at_end(name):
            yield counted

    @contextmanager
    def _dropped_at_end(self, view: str) -> Iterator[None]:
        try:
            yield
        finally:
            with query_errors():
                self.session.catalog.dropTempView(view)

    def parquet_view(self, name: str, folder: str, columns: Mapping[str, str]) -> None:
        """Creates a view of a folder of Parquet files with these columns and types."""
        with query_errors():
            frame = self.session.read.schema(schema(columns)).parquet(folder)
            frame.select(*map(quoted, columns)).createOrReplaceTempView(quoted(name))

    def files_view(self, name: str, paths: Sequence[str]) -> list[str]:
        """Creates a view of Parquet files with all columns that they have; returns the columns."""
        with query_errors():
            frame = self.session.read.option("mergeSchema", "true").parquet(*map(escaped, paths))
            frame.createOrReplaceTempView(quoted(name))
            return frame.columns

    def rows_view(self, name: str, rows: Iterable[tuple[Any, ...]], columns: str) -> None:
        """Creates a view of the given rows."""
        self.session.createDataFrame(list(rows), columns).createOrReplaceTempView(quoted(name))

    def given_rows(self, to: Spark, name: str, rows: list[Mapping[str, Any]]) -> None:
        """Creates a view of rows in another session, with the columns that the view of this name has in this session.
        Rows are YAML values; columns that a row does not name are null.
        """
        kind = nullable(self.session.table(quoted(name)).schema)
        to.session.createDataFrame([typed(row, kind) for row in rows], kind).createOrReplaceTempView(quoted(name))

    def yaml_view(self, name: str, rows: Iterable[tuple[Any, ...]], columns: Mapping[str, str]) -> None:
        """Creates a view of rows of YAML values, which become values of the types of the columns."""
        with query_errors():
            kind = self.session.createDataFrame([], schema(columns)).schema
            values = [tuple(typed(value, field.dataType) for value, field in zip(row, kind)) for row in rows]
            self.session.createDataFrame(values, kind).createOrReplaceTempView(quoted(name))

    # --- tables

    def column_types(self, table: str, instead: Mapping[str, str]) -> dict[str, str]:
        """Returns the columns of a table or view with their types in SQL; `instead` maps types to those that replace
        them.
        """
        with query_errors():
            return column_types(self.session.table(table).schema, instead)

    def table_exists(self, table: str) -> bool:
        with query_errors():
            return self.session.catalog.tableExists(table)

    def is_empty(self, table: str) -> bool:
        with query_errors():
            return self.session.table(table).isEmpty()

    def write_parquet(self, sql: str, folder: str, partitions: Sequence[str] = ()) -> None:
        """Writes the rows of a query to a folder that has no table yet, with folders in it for these columns."""
        with query_errors():
            self.query(sql).write.mode("append").partitionBy(*partitions).parquet(folder)

    def overwrite_partitions(self, table: str, sql: str) -> None:
        """Writes the rows of a query to a table, in place of all rows of the partitions that they are in."""
        with query_errors():
            self.query(sql).writeTo(table).overwritePartitions()

    # --- queries

    def each_row(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Yields the rows of a query, of which memory holds a part at a time."""
        with query_errors():
            yield from map(tuple, self.query(sql).toLocalIterator())

    def rows(self, sql: str, limit: int | None = None) -> tuple[list[str], list[dict[str, Any]]]:
        """Returns the columns and the rows of a query, as plain values: text, numbers, None, lists and dicts; instants
        as ISO 8601 in UTC.
        """
        with query_errors():
            frame = self.query(sql)
            return frame.columns, _plain_rows(frame.limit(limit) if limit is not None else frame)

    def rows_beside(self, sql: str, given: Iterable[Mapping[str, Any]]) -> tuple[list[str], list[Any], list[Any]]:
        """Returns the columns and the rows of a query as `rows` does, and given rows of YAML values as they would be
        among the rows of the query: a value that the type of its column has is written as the query writes it.
        """
        with query_errors():
            frame = self.query(sql)
            kinds = {field.name: field.dataType for field in frame.schema}
        written = [{c: fitted(v, kinds[c]) if c in kinds else v for c, v in row.items()} for row in given]
        with query_errors():
            return frame.columns, _plain_rows(frame), written

    def rows_counted(self, sql: str, counts: str) -> tuple[list[dict[str, Any]], str]:
        """Returns the rows of a query, and the text that the expression `counts` makes of all rows; both need one run
        of the query.
        """
        with query_errors():
            counting = Observation()
            rows = _plain_rows(self.query(sql).observe(counting, F.expr(counts).alias("counts")))
            return rows, str(counting.get["counts"])

    def count(self, sql: str) -> int:
        with query_errors():
            return self.query(sql).count()

    def is_deterministic(self, sql: str) -> bool:
        """Returns True if Spark knows of nothing in a query that has other values when it runs again. Needs a JVM."""
        with query_errors():
            return bool(_plans(self.query(sql)).analyzed().deterministic())

    def has_no_rows(self, sql: str) -> bool:
        """Returns True if Spark knows, without running a query, that it has no rows. Needs a JVM."""
        with query_errors():
            most = _plans(self.query(sql)).optimizedPlan().maxRows()
            return bool(most.isDefined() and most.get() == 0)

    def do(self, sql: str) -> None:
        """Runs a statement for its effect."""
        with query_errors():
            self.query(sql).collect()

    def query(self, sql: str) -> DataFrame:
        """Returns the query, in a session that has the functions that the query calls."""
        self.functions.prepare(sql)
        return self.session.sql(sql)

    def register(self, readers: Iterable[MessageFunction], functions: Iterable[SqlFunction] = ()) -> None:
        """Makes functions that only some queries call: those in Python that read messages, and SQL functions."""
        with query_errors():
            self.functions.register(readers)
            self.functions.make(functions)


def _plans(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution()


def _plain_rows(frame: DataFrame) -> list[dict[str, Any]]:
    kinds = frame.schema
    return [{f.name: plain(row[f.name], f.dataType) for f in kinds} for row in frame.toArrow().to_pylist()]
