"""Views of messages (of the messages of a source, as a stream or a batch, and of given messages), and the streams that
land them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from runner.contract import MESSAGE_COLUMNS, ORIGIN, Landed, landed_of, schema
from runner.engine.errors import query_errors
from runner.engine.kafka import read_kafka
from runner.engine.session import Spark
from runner.engine.values import observed
from runner.functions import udfs
from runner.functions.avro.files import FileMessage, TopicRecord, plain_path
from runner.functions.row_files import RowFiles
from runner.patterns import SPECIAL, escaped, is_pattern, unescaped
from runner.project.inputs import DUMPS, Messages
from runner.render import name as quoted
from runner.storage.data import Sink

# Kind of messages -> the format in which Spark reads them.
STORED_AS = {
    "files": "text",
    **{f"{dump}_files": "text" for dump in DUMPS},
    "table": "parquet",
    "kafka": "kafka",
    "binary_files": "binaryFile",
    "rows_files": "binaryFile",
    "binary_table": "parquet",
    "binary_kafka": "kafka",
}

# Without this Spark would also end a line at a CR that no LF follows. Other kinds of files have no such option.
LINES = {"lineSep": "\n"}
# All of time: without this Spark would silently leave out files that are older than the newest one by more than a week.
MAX_FILE_AGE = f"{2**63 - 1}ms"
# Names of ordinary files have at most this many characters, as on a disk; in an object store names may be longer.
ORDINARY_NAME = 255
# A comma in a group of a pattern.
COMMA = "\\,"


def _ordinary_names() -> str:
    """Returns the pattern of names without special characters: Hadoop's patterns can say this only at length, and with
    a limit.
    """
    pattern = ""
    for _ in range(ORDINARY_NAME):
        pattern = f"{{,[^{SPECIAL}]{pattern}}}"
    return pattern


# Options that decide which files a stream reads. If a path in a batch has a character that is special in patterns,
# Spark 4.1 reads the other files of the batch twice: such a file needs a batch of its own.
ONE_BY_ONE = {"maxFilesPerTrigger": "1"}
ORDINARY_FILES = {"pathGlobFilter": _ordinary_names()}
OTHER_FILES = {"pathGlobFilter": f"{{*[{SPECIAL}]*,{'?' * ORDINARY_NAME}?*}}", **ONE_BY_ONE}

# The type of ORIGIN in Arrow.
_TEXT, _NUMBER = pyarrow.string(), pyarrow.int64()
GIVEN_ORIGIN = pyarrow.struct(
    {
        "topic": _TEXT,
        "partition": pyarrow.int32(),
        "offset": _NUMBER,
        "timestamp": pyarrow.timestamp("us", "UTC"),
        "key": _TEXT,
        "headers": pyarrow.list_(pyarrow.struct({"key": _TEXT, "value": _TEXT})),
        "file": _TEXT,
        "block": _NUMBER,
    }
)

COUNTS = "place string, messages bigint"
FILE_COUNTS = "file string, messages bigint"


def source_view(
    spark: Spark,
    messages: Messages,
    reads: Mapping[str, str],
    view: str,
    stream: Mapping[str, str] | None = None,
    again: str = "",
) -> None:
    """Creates a view of a source's messages with the columns raw, origin and arrival; in Avro also own_schema and
    damage. `reads` maps these columns, `is_message` and `scanned` to the SQL expressions of the kind of messages.
    `stream` has the options of a stream, and is None for a batch. A stream also reads the messages that land once more,
    in folders of Parquet files in the folder `again`, which may not exist yet.
    """
    spark.functions.prepare(" ".join(reads.values()))
    with query_errors():
        scanned = _scan(spark, messages, reads, stream).where(reads["is_message"])
        kinds = MESSAGE_COLUMNS["avro" if "own_schema" in reads else "json"]
        frame = scanned.select(*(F.expr(reads[column]).alias(column) for column in kinds))
        if stream is not None:
            # Always, since a checkpoint is of as many streams as it began with.
            once_more = spark.session.readStream.schema(schema(kinds)).options(maxFileAge=MAX_FILE_AGE)
            frame = frame.union(once_more.parquet(f"{escaped(again)}/*"))
        frame.createOrReplaceTempView(quoted(view))


def _scan(spark: Spark, messages: Messages, reads: Mapping[str, str], stream: Mapping[str, str] | None) -> DataFrame:
    reader: Any = spark.session.read if stream is None else spark.session.readStream
    if messages.topics:
        options = dict(messages.topics.options)
        if stream is None and options.get("startingOffsets") == "latest":
            options["startingOffsets"] = "earliest"  # in a batch, there is nothing after the latest
        return read_kafka(reader, options)
    options = {"maxFileAge": MAX_FILE_AGE, **LINES, **(stream or {})}
    reader = reader.format(STORED_AS[messages.kind]).schema(reads["scanned"]).options(**options)
    frame: DataFrame = reader.load(_pattern(messages))
    if not messages.are_whole_files:
        return frame
    schemas, rows = messages.schemas, _row_files(messages)
    files = frame.select("_metadata.file_path", F.unix_millis("modificationTime"), _content(messages.path))
    return files.mapInArrow(lambda batches: udfs.messages_of_files(batches, schemas, rows), udfs.MESSAGE_SQL_TYPE)


def _row_files(messages: Messages) -> RowFiles | None:
    dump = messages.dump
    return RowFiles(dump.form, dump.has_header, dump.null, dump.tables, dump.taken_at) if dump else None


def messages_view(spark: Spark, messages: Iterable[FileMessage], encoding: str, view: str) -> None:
    """Creates a view of given messages; `arrival` is the number of a message, from 0."""
    given = list(messages)
    columns = {
        "value": pyarrow.array([m.raw or (None if m.record else m.raw) for m in given], pyarrow.binary()),
        "origin": pyarrow.array([_origin(m.record) for m in given], GIVEN_ORIGIN),
        "own_schema": pyarrow.array([m.schema for m in given], pyarrow.string()),
        "damage": pyarrow.array([m.damage for m in given], pyarrow.string()),
        "number": pyarrow.array(range(len(given)), pyarrow.int64()),
    }
    raw = F.col("value").cast("string") if encoding == "json" else F.col("value")
    own = [] if encoding == "json" else ["own_schema", "damage"]
    frame = spark.session.createDataFrame(pyarrow.table(columns))
    origin, arrival = F.col("origin").cast(ORIGIN).alias("origin"), F.array("number").alias("arrival")
    frame.select(raw.alias("raw"), *own, origin, arrival).createOrReplaceTempView(quoted(view))


def _origin(record: TopicRecord | None) -> dict[str, Any] | None:
    """Returns the origin of a given message, as far as its record names it."""
    if record is None:
        return None
    headers = [{"key": key, "value": value} for key, value in record.headers]
    return {"topic": record.topic, "key": record.key, "headers": headers}


def file_counts_view(spark: Spark, messages: Messages, reads: Mapping[str, str], files: list[str], view: str) -> None:
    """Creates a view of some files of a source (`place`) with the number of their messages (`messages`); a file may
    have several rows, whose numbers add up. Files are named as in `origin.file`.
    """
    paths = [escaped(plain_path(file)) for file in files]
    reader = spark.session.read.format(STORED_AS[messages.kind])
    if not files:
        frame = spark.session.createDataFrame([], COUNTS)
    elif messages.are_whole_files:
        rows = _row_files(messages)
        scanned = reader.load(paths).select("_metadata.file_path", _content(messages.path))
        counted = scanned.mapInArrow(lambda batches: udfs.counts_of_files(batches, rows), FILE_COUNTS)
        frame = counted.select(F.col("file").alias("place"), "messages")
    else:
        scanned = reader.options(**LINES).schema(reads["scanned"]).load(paths).where(reads["is_message"])
        frame = scanned.select(F.col("_metadata.file_path").alias("place"), F.lit(1).cast("bigint").alias("messages"))
    frame.createOrReplaceTempView(quoted(view))


def _content(path: str) -> Column:
    """Returns the bytes of files for functions in Python; null for local files, which the functions read themselves:
    Spark would hold each file in memory as a whole.
    """
    is_local = "://" not in path or path.startswith("file://")
    return F.lit(None).cast("binary") if is_local else F.col("content")


def _pattern(messages: Messages) -> str:
    """Returns a path that a stream can read: a stream refuses a single file, so its path becomes a pattern that matches
    only this file.
    """
    path = messages.local_pattern
    if path is None or is_pattern(path) or not Path(unescaped(path)).is_file():
        return messages.path
    folder, name = path.rsplit("/", 1)
    return f"{folder}/{{{name.replace(',', COMMA)}}}"


# --- streams of messages into changelogs, and the numbers of what their batches have landed

# The property in which Spark gives its tasks the number of a batch.
BATCH_NUMBER = "streaming.sql.batchId"
# Options of a stream that split the messages that are there when it starts into several batches.
LIMITS = ("maxFilesPerTrigger", "maxOffsetsPerTrigger")


def changelog_stream(spark: Spark, sql: str, counts: str, run_id: str, batch: int | None) -> DataFrame:
    """Returns the rows of a source's query with the columns that a run adds; each batch reports what it lands, with the
    expression `counts`. `batch` is the number of the only batch, None if there may be several.
    """
    with query_errors():
        frame = spark.query(sql).withColumns(
            {
                "run_id": F.lit(run_id),
                "batch": _batch_number(spark) if batch is None else F.lit(batch).cast("bigint"),
                "loaded_at": F.current_timestamp(),
                "landed_on": F.current_date(),
            }
        )
        return frame.observe("landed", F.expr(counts).alias("counts"))


def _batch_number(spark: Spark) -> Column:
    """Returns the number of the batch that a stream computes, as a subquery, which runs once for each batch. SQL itself
    has no expression for the number. Python has to start for the subquery, which takes a second.
    """

    def number(_: object) -> int:
        # The function is pickled with the query: where it runs, nothing of this project is installed.
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context
        return int(context.getLocalProperty(BATCH_NUMBER) or 0)

    # The function has no type hints: Spark would look in them for the kind of the function.
    numbered = F.udf(lambda row: number(row), "bigint").asNondeterministic()
    return spark.session.range(0, 1, 1, 1).select(numbered("id")).scalar()


def start_stream(
    frame: DataFrame, name: str, checkpoint: str, sink: Sink, trigger: Mapping[str, Any]
) -> StreamingQuery:
    """Starts a stream with the checkpoint in this folder; `trigger` has the arguments of Spark's `trigger()`."""
    with query_errors():
        writer = frame.writeStream.queryName(name).option("checkpointLocation", checkpoint).trigger(**trigger)
        writer = writer.format(sink.format).options(**sink.options)
        if sink.partitioned_by:
            writer = writer.partitionBy(*sink.partitioned_by)
        return writer.toTable(sink.table) if sink.table else writer.start(sink.path)


def newest_landed(progress: Iterable[Any]) -> int | None:
    """Returns the number of the newest of these batches that has landed messages; None if none has."""
    return max((p.batchId for p in progress if landed([p]).messages), default=None)


def landed(progress: Iterable[Any]) -> Landed:
    """Returns what batches have landed, as a sum; `progress` is Spark's progress of each batch."""
    batches = [
        observed(p.observedMetrics["landed"])["counts"] for p in progress if "landed" in (p.observedMetrics or {})
    ]
    return sum((landed_of(counts) for counts in batches if counts), Landed())


def has_run(progress: Any) -> bool:
    """Returns True if a batch has run. While no messages arrive, Spark reports progress under the number of the next
    batch.
    """
    return "addBatch" in progress.durationMs


def lag(sources: Iterable[Any]) -> int | None:
    """Returns the number of messages between the end of a batch and the end of its topics; None for sources without
    topics.

    >>> lag([{"endOffset": {"t": {"0": 5, "1": 2}}, "latestOffset": {"t": {"0": 8, "1": 2, "2": 4}}}])
    7
    >>> lag([{"endOffset": '{"t":{"0":5}}', "latestOffset": '{"t":{"0":6}}'}])
    1
    >>> lag([{"endOffset": {"logOffset": 3}, "latestOffset": None}])
    """
    ends = [(_offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))) for source in sources]
    behind = [_distance(end, latest) for end, latest in ends if isinstance(latest, dict)]
    return sum(behind) if behind else None


def _offsets(value: Any) -> Any:
    """Returns offsets as a mapping; through Spark Connect they come as JSON text."""
    return json.loads(value) if isinstance(value, str) else value


def _distance(end: Any, latest: Any) -> int:
    """Returns the number of messages between two offsets. A partition that is not in the batch was added later: all of
    its messages are still to be read.
    """
    return sum(
        offset - (end or {}).get(topic, {}).get(partition, 0)
        for topic, partitions in latest.items()
        for partition, offset in partitions.items()
    )
