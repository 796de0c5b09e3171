"""The only file that imports pyspark: the session, views, streams, tables and their errors."""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from runner import avro_files, avro_messages, avro_reader, avro_schema, avro_texts, avro_values, shell_text, udfs
from runner.avro_files import FileMessage, local_path
from runner.contract import COLUMNS, MESSAGE_COLUMNS, ORIGIN, SQL_SETTINGS, schema
from runner.layout import AvroFunction
from runner.nodes import Messages, Target

# Executors have nothing of this project: what its functions are made of goes to them with the query.
for _module in (avro_files, avro_messages, avro_reader, avro_schema, avro_texts, avro_values, shell_text, udfs):
    cloudpickle.register_pickle_by_value(_module)

SETTINGS = {
    "spark.master": "local[*]",
    "spark.driver.memory": "2g",
    # The query of a format compiles to long methods, and without the second option Java would only interpret it.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:-DontCompileHugeMethods",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
    # Rows of several kinds and days are written side by side: without this Spark sorts them first.
    "spark.sql.maxConcurrentOutputFileWriters": "32",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # What Python functions make of so many rows stays near the processor, and large messages do not come in thousands.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
}


# Kind of messages -> what Spark reads them as.
STORED_AS = {"files": "text", "table": "parquet", "binary_files": "binaryFile", "binary_table": "parquet"}


class QueryFailed(Exception):
    """Spark refused or broke off a query; `line` and `column` (from 1) point into the SQL that was submitted."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.message, self.line, self.column = message, line, column


@dataclass(frozen=True)
class Landed:
    """What one run of a stream has landed: rows by kind, and messages."""

    messages: int
    rows: Mapping[str, int]


class Spark:
    """A session for one run. Views are the session's own: another session of the same JVM does not see them."""

    def __init__(self, target: Target, log: Path) -> None:
        started = SparkSession.getActiveSession()
        self.owns_jvm = started is None
        settings = {**SETTINGS, **target.spark, **SQL_SETTINGS}
        if started:
            self.session = started.newSession()
        else:
            with _java_log(log):
                builder = SparkSession.builder.appName("runner").config("spark.sql.warehouse.dir", str(target.path / "_catalog"))
                for key, value in settings.items():
                    builder = builder.config(key, value)
                self.session = builder.getOrCreate()
        self._set({**target.spark, **SQL_SETTINGS})
        if "spark.pyspark.python" not in target.spark and str(settings["spark.master"]).startswith("local"):
            self.session.sparkContext.pythonExec = sys.executable
        logging.getLogger("SQLQueryContextLogger").disabled = True

    def __enter__(self) -> Spark:
        return self

    def __exit__(self, *_: object) -> None:
        if self.owns_jvm:
            self.session.stop()

    # --- reading

    def messages(self, messages: Messages, reads: Mapping[str, str], view: str, streaming: bool) -> None:
        """Makes a view of a source's messages: raw, origin, arrival."""
        reader = self.session.readStream if streaming else self.session.read
        with _query_errors():
            frame = self._scan(reader, messages, reads).where(reads["is_message"])
            columns = [column for column in MESSAGE_COLUMNS["avro"] if column in reads]
            frame.selectExpr(*(f"{reads[column]} as {column}" for column in columns)).createOrReplaceTempView(view)

    def _scan(self, reader: Any, messages: Messages, reads: Mapping[str, str]) -> DataFrame:
        # Files older than the newest one by more than maxFileAge would be left out without a word.
        frame = reader.format(STORED_AS[messages.kind]).schema(reads["scanned"]).option("maxFileAge", "36500d").load(_pattern(messages.path))
        if messages.kind != "binary_files":
            return frame
        usual = messages.schemas
        files = frame.selectExpr("_metadata.file_path", "unix_millis(modificationTime)", _content(messages.path))
        return files.mapInArrow(lambda batches: udfs.messages_of_files(batches, usual), udfs.MESSAGE_SQL_TYPE)

    def messages_at_hand(self, messages: Iterable[FileMessage], encoding: str, view: str) -> None:
        """Makes a view of messages; arrival is their number, from 0."""
        at_hand = list(messages)
        columns = {
            "value": pyarrow.array([m.raw for m in at_hand], pyarrow.binary()),
            "own_schema": pyarrow.array([m.schema for m in at_hand], pyarrow.string()),
            "damage": pyarrow.array([m.damage for m in at_hand], pyarrow.string()),
            "number": pyarrow.array(range(len(at_hand)), pyarrow.int64()),
        }
        raw = ["cast(value as string) as raw"] if encoding == "json" else ["value as raw", "own_schema", "damage"]
        frame = self.session.createDataFrame(pyarrow.table(columns))
        frame.selectExpr(*raw, f"cast(null as {ORIGIN}) as origin", "array(number) as arrival").createOrReplaceTempView(view)

    def read_again(self, messages: Messages, reads: Mapping[str, str], files: list[str], view: str) -> None:
        """Makes a view of some files with the number of their messages, in one row or several."""
        paths = [local_path(f) if f.startswith("file:") else f for f in files]
        reader = self.session.read.format(STORED_AS[messages.kind])
        if not files:
            frame = self.session.createDataFrame([], "file string, messages bigint")
        elif messages.kind == "binary_files":
            frame = reader.load(paths).selectExpr("_metadata.file_path", _content(messages.path)).mapInArrow(udfs.counts_of_files, "file string, messages bigint")
        else:
            frame = reader.schema(reads["scanned"]).load(paths).where(reads["is_message"]).selectExpr("_metadata.file_path as file", "1 as messages")
        frame.createOrReplaceTempView(view)

    def know(self, functions: Iterable[AvroFunction]) -> None:
        """Makes functions known to the session that no other query has."""
        for one in functions:
            if not self.session.catalog.functionExists(one.name):
                trees = {name: tree for name, tree in (("fields", one.fields), ("images", one.images)) if tree}
                self.session.udf.register(one.name, F.arrow_udf(udfs.avro_reader(one.layout, trees), one.sql_type))

    # --- views and tables

    def view(self, name: str, sql: str) -> None:
        with _query_errors():
            self._query(sql).createOrReplaceTempView(name)

    def changelog_table(self, name: str, root: Path) -> None:
        """Makes a view of a changelog table; of none if nothing has landed yet."""
        if (root / "_spark_metadata").is_dir():
            # Only the root: with a glob or a sub-folder Spark would not look into the log of what is committed.
            frame = self.session.read.schema(schema(COLUMNS)).parquet(str(root))
        else:
            frame = self.session.createDataFrame([], schema(COLUMNS))
        frame.select(*COLUMNS).createOrReplaceTempView(name)

    def table(self, name: str, path: Path) -> bool:
        """Makes a view of a table that was written before; False if there is none."""
        if not (path / "_SUCCESS").is_file():
            return False
        self.session.read.parquet(str(path)).createOrReplaceTempView(name)
        return True

    def write_table(self, name: str, sql: str, path: Path) -> int:
        """Writes a query's rows to a table, in place of what was there; returns their number."""
        building = path.with_name(f"{path.name}.building")
        shutil.rmtree(building, ignore_errors=True)
        with _query_errors():
            self._query(sql).write.parquet(str(building))
        shutil.rmtree(path, ignore_errors=True)
        building.rename(path)
        self.table(name, path)
        return self.session.table(name).count()

    def list_view(self, name: str, values: list[str]) -> None:
        """Makes a view of texts, in a column `value`."""
        self.session.createDataFrame([(value,) for value in values], "value string").createOrReplaceTempView(name)

    def given_rows(self, to: Spark, name: str, rows: list[Mapping[str, Any]]) -> None:
        """Gives another session rows, written as text, in place of a view of this one; what a row does not name is null."""
        kind = _nullable(self.session.table(name).schema)
        to.session.createDataFrame([_typed(row, kind) for row in rows], kind).createOrReplaceTempView(name)

    def fresh(self) -> Spark:
        """The same JVM with no views."""
        out = object.__new__(Spark)
        out.owns_jvm, out.session = False, self.session.newSession()
        out._set(SQL_SETTINGS)
        return out

    def _set(self, settings: Mapping[str, str]) -> None:
        """Settings of the session; those of the JVM were given at its start."""
        for key, value in settings.items():
            if key.startswith("spark.sql.") and self.session.conf.isModifiable(key):
                self.session.conf.set(key, value)

    # --- queries

    def rows(self, sql: str, limit: int | None = None) -> tuple[list[str], list[dict[str, Any]]]:
        """Columns and rows of a query, as plain values: text, numbers, None, lists and dicts; instants as ISO 8601 in UTC."""
        with _query_errors():
            frame = self._query(sql)
            frame = frame.limit(limit) if limit is not None else frame
            kinds = frame.schema
            return frame.columns, [{f.name: plain(row[f.name], f.dataType) for f in kinds} for row in frame.toArrow().to_pylist()]

    def count(self, sql: str) -> int:
        with _query_errors():
            return self._query(sql).count()

    def _query(self, sql: str) -> DataFrame:
        """The query, in a session that has the functions it calls."""
        for name, (function, kind) in udfs.FUNCTIONS.items():
            if f"{name}(" in sql and not self.session.catalog.functionExists(name):
                self.session.udf.register(name, F.arrow_udf(function, kind))
        return self.session.sql(sql)

    def land(self, sql: str, root: Path, run_id: str) -> Landed:
        """Runs a stream over what is new, to its end; every message lands once, whatever befell earlier runs."""
        with _query_errors():
            frame = self._query(sql).withColumns({"run_id": F.lit(run_id), "loaded_at": F.current_timestamp(), "landed_on": F.current_date()})
            counted = frame.observe("landed", *(F.count_if(F.col("kind") == kind).alias(kind) for kind in ("row", "ddl", "control", "dead_letter")), F.count_if(F.col("seq.row") == 0).alias("messages"))
            writer = counted.writeStream.format("parquet").partitionBy("kind", "landed_on").option("path", str(root)).option("checkpointLocation", str(root / "_checkpoint"))
            # The number of a row in its block is refused in streams, though it is right where it directly reads files.
            self.session.conf.set("spark.sql.streaming.unsupportedOperationCheck", "false")
            try:
                query = writer.trigger(availableNow=True).start()
            finally:
                self.session.conf.unset("spark.sql.streaming.unsupportedOperationCheck")
            query.awaitTermination()
        return _landed(query.recentProgress)


def _content(path: str) -> str:
    """How functions get the bytes of files: local ones they open themselves, for Spark would hold them whole in memory."""
    return "content" if "://" in path and not path.startswith("file://") else "cast(null as binary)"


def _pattern(path: str) -> str:
    """A path that a stream can read: of a single file, a pattern that matches just it."""
    single = Path(path)
    return f"{single.parent}/{{{single.name}}}" if single.is_file() else path


def _landed(progress: Iterable[Any]) -> Landed:
    batches = [p.observedMetrics["landed"].asDict() for p in progress if p.observedMetrics and "landed" in p.observedMetrics]
    total = {key: sum(batch[key] or 0 for batch in batches) for key in ("messages", "row", "ddl", "control", "dead_letter")}
    return Landed(total.pop("messages"), total)


# --- plain values -----------------------------------------------------------------------------------------------------------------


def plain(value: Any, kind: T.DataType) -> Any:
    """A value of a query as text, number, list or dict; instants as ISO 8601 in UTC without trailing zeros."""
    if value is None:
        return None
    match kind:
        case T.MapType():
            return {key: plain(v, kind.valueType) for key, v in value}
        case T.ArrayType():
            return [plain(v, kind.elementType) for v in value]
        case T.StructType():
            return {f.name: plain(value[f.name], f.dataType) for f in kind}
        case T.TimestampType():
            return iso(value)
        case T.TimestampNTZType() | T.DateType():
            return value.isoformat()
        case T.DecimalType():
            return int(value) if kind.scale == 0 else str(value)
        case T.BinaryType():
            return value.hex()
    return value


def iso(value: datetime) -> str:
    """
    >>> iso(datetime(2024, 5, 1, 10, 0, 0, 500000, tzinfo=timezone.utc))
    '2024-05-01T10:00:00.5Z'
    """
    text = value.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".") + "Z"
    return text.rjust(20 if "." not in text else len(text), "0")


def _nullable(kind: T.DataType) -> Any:
    """A type in which everything may be null, at any depth."""
    match kind:
        case T.StructType():
            return T.StructType([T.StructField(f.name, _nullable(f.dataType)) for f in kind])
        case T.ArrayType():
            return T.ArrayType(_nullable(kind.elementType))
        case T.MapType():
            return T.MapType(kind.keyType, _nullable(kind.valueType))
    return kind


def _typed(value: Any, kind: T.DataType) -> Any:
    """A YAML value (text, None, list, dict) as Spark wants it for a type."""
    if value is None:
        return None
    match kind:
        case T.StructType():
            unknown = [key for key in value if key not in kind.names]
            if unknown:
                raise QueryFailed(f'rows are given with a column "{unknown[0]}", which the input does not have: {", ".join(kind.names)}')
            return Row(*(_typed(value.get(f.name), f.dataType) for f in kind))
        case T.MapType():
            return {_typed(k, kind.keyType): _typed(v, kind.valueType) for k, v in value.items()}
        case T.ArrayType():
            return [_typed(v, kind.elementType) for v in value]
        case T.IntegerType() | T.LongType() | T.ShortType() | T.ByteType():
            return int(value)
        case T.DoubleType() | T.FloatType():
            return float(value)
        case T.DecimalType():
            return Decimal(value)
        case T.BooleanType():
            return value == "true"
        case T.DateType():
            return date.fromisoformat(value)
        case T.TimestampType():
            instant = datetime.fromisoformat(value.replace("Z", "+00:00"))
            return instant if instant.tzinfo else instant.replace(tzinfo=timezone.utc)
        case T.TimestampNTZType():
            return datetime.fromisoformat(value)
        case T.BinaryType():
            return bytes.fromhex(value)
    return value


# --- errors and noise ---------------------------------------------------------------------------------------------------------------


@contextmanager
def _query_errors() -> Iterator[None]:
    try:
        yield
    except PySparkException as error:
        raise _query_failed(error) from error


PLACE = re.compile(r"line (\d+),? pos(?:ition)? (\d+)")


def _query_failed(error: PySparkException) -> QueryFailed:
    """What Spark says, without plans and stack traces, and the place that it names (`line 3 pos 7`, counted from 0)."""
    whole = str(error)
    text = re.split(r"\n\nJVM stacktrace|;\n|\n=+ \w|; line \d+ pos", whole)[0].strip()
    place = PLACE.search(whole)
    return QueryFailed(text, int(place[1]), int(place[2]) + 1) if place else QueryFailed(text)


@contextmanager
def _java_log(path: Path) -> Iterator[None]:
    """What the JVM prints goes to a file: it is started with this process's stderr."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    saved = os.dup(2)
    with path.open("ab") as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)
