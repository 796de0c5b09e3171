"""Streams: a query over new messages into a changelog, and the numbers of what its batches have landed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from runner.contract import Landed, landed_of
from runner.engine.errors import query_errors
from runner.engine.session import Spark
from runner.engine.values import observed
from runner.storage.data import Sink

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


def start(frame: DataFrame, name: str, checkpoint: str, sink: Sink, trigger: Mapping[str, Any]) -> StreamingQuery:
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
