"""Views of messages: of a source's, as a stream or as they lie there, and of messages at hand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow
import pyspark
from pyspark.sql import DataFrame

from runner.contract import MESSAGE_COLUMNS, ORIGIN
from runner.engine.checkpoint import Offsets, TopicsNow
from runner.engine.errors import QueryFailed, query_errors
from runner.engine.session import Spark
from runner.errors import did_you_mean
from runner.functions import udfs
from runner.functions.avro.files import FileMessage, local_path
from runner.project.nodes import Messages, Topics
from runner.project.topics import REACH_OPTIONS, without_secrets

# Kind of messages -> what Spark reads them as.
STORED_AS = {
    "files": "text",
    "table": "parquet",
    "kafka": "kafka",
    "binary_files": "binaryFile",
    "binary_table": "parquet",
    "binary_kafka": "kafka",
}

COUNTS = "place string, messages bigint"
RANGES = "topic string, partition int, first bigint, next bigint"
CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
# Kafka's own client tries for a minute, and Spark three times, before either says that a server does not answer.
PATIENCE_SECONDS = 15


def source_view(spark: Spark, messages: Messages, reads: Mapping[str, str], view: str, streaming: bool) -> None:
    """Makes a view of a source's messages: raw, origin, arrival."""
    with query_errors():
        frame = _scan(spark, messages, reads, streaming).where(reads["is_message"])
        columns = [column for column in MESSAGE_COLUMNS["avro"] if column in reads]
        frame.selectExpr(*(f"{reads[column]} as {column}" for column in columns)).createOrReplaceTempView(view)


def _scan(spark: Spark, messages: Messages, reads: Mapping[str, str], streaming: bool) -> DataFrame:
    reader = spark.session.readStream if streaming else spark.session.read
    if messages.topics:
        options = dict(messages.topics.options)
        if not streaming and options.get("startingOffsets") == "latest":
            options["startingOffsets"] = "earliest"  # of what lies there, nothing is behind the latest
        return _topics(reader, options)
    reader = reader.format(STORED_AS[messages.kind])
    # Files older than the newest one by more than maxFileAge would be left out without a word.
    frame = reader.schema(reads["scanned"]).option("maxFileAge", "36500d").load(_pattern(messages.path))
    if messages.kind != "binary_files":
        return frame
    usual = messages.schemas
    files = frame.selectExpr("_metadata.file_path", "unix_millis(modificationTime)", _content(messages.path))
    return files.mapInArrow(lambda batches: udfs.messages_of_files(batches, usual), udfs.MESSAGE_SQL_TYPE)


def view_at_hand(spark: Spark, messages: Iterable[FileMessage], encoding: str, view: str) -> None:
    """Makes a view of messages; arrival is their number, from 0."""
    at_hand = list(messages)
    columns = {
        "value": pyarrow.array([m.raw for m in at_hand], pyarrow.binary()),
        "own_schema": pyarrow.array([m.schema for m in at_hand], pyarrow.string()),
        "damage": pyarrow.array([m.damage for m in at_hand], pyarrow.string()),
        "number": pyarrow.array(range(len(at_hand)), pyarrow.int64()),
    }
    raw = ["cast(value as string) as raw"] if encoding == "json" else ["value as raw", "own_schema", "damage"]
    frame = spark.session.createDataFrame(pyarrow.table(columns))
    frame.selectExpr(*raw, f"cast(null as {ORIGIN}) as origin", "array(number) as arrival").createOrReplaceTempView(
        view
    )


def files_again(spark: Spark, messages: Messages, reads: Mapping[str, str], files: list[str], view: str) -> None:
    """Makes a view of some files (`place`) with the number of their messages, in one row or several."""
    paths = [local_path(f) if f.startswith("file:") else f for f in files]
    reader = spark.session.read.format(STORED_AS[messages.kind])
    if not files:
        frame = spark.session.createDataFrame([], COUNTS)
    elif messages.kind == "binary_files":
        counted = (
            reader.load(paths)
            .selectExpr("_metadata.file_path", _content(messages.path))
            .mapInArrow(udfs.counts_of_files, "file string, messages bigint")
        )
        frame = counted.selectExpr("file as place", "messages")
    else:
        frame = reader.schema(reads["scanned"]).load(paths).where(reads["is_message"])
        frame = frame.selectExpr("_metadata.file_path as place", "cast(1 as bigint) as messages")
    frame.createOrReplaceTempView(view)


def topics_again(
    spark: Spark,
    messages: Messages,
    reads: Mapping[str, str],
    first: Offsets,
    end: Offsets,
    now: TopicsNow | None,
    view: str,
) -> None:
    """Makes two views: of the partitions that were read with the offsets between which they were, and of the offsets
    between them of messages
    that are still there."""
    assert messages.topics
    ranges = {
        (topic, partition): (first.get(topic, {}).get(partition, 0), offset)
        for topic, partitions in end.items()
        for partition, offset in partitions.items()
    }
    spark.list_view(
        f"{view}_ranges", [(topic, int(partition), *both) for (topic, partition), both in ranges.items()], RANGES
    )
    there = {place: clipped for place, both in ranges.items() if (clipped := _clipped(*place, *both, now))}
    if not there:
        spark.list_view(f"{view}_there", [], "topic string, partition int, offset bigint")
        return
    own = {key: value for key, value in messages.topics.options.items() if key not in REACH_OPTIONS}
    starting, ending = (
        _by_topic({place: both[0] for place, both in there.items()}),
        _by_topic({place: both[1] for place, both in there.items()}),
    )
    partitions = {topic: [int(partition) for partition in offsets] for topic, offsets in starting.items()}
    where = {
        "assign": json.dumps(partitions),
        "startingOffsets": json.dumps(starting),
        "endingOffsets": json.dumps(ending),
        "failOnDataLoss": "false",
    }
    with query_errors():
        frame = _topics(spark.session.read, {**own, **where}).where(reads["is_message"])
        frame.select("topic", "partition", "offset").createOrReplaceTempView(f"{view}_there")


def _clipped(topic: str, partition: str, first: int, end: int, now: TopicsNow | None) -> tuple[int, int] | None:
    """What of a range of offsets is still there."""
    if now is None:
        return first, end
    if partition not in now.first.get(topic, {}):
        return None
    first, end = max(first, now.first[topic][partition]), min(end, now.next[topic][partition])
    return (first, end) if first < end else None


def _by_topic(offsets: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    out: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in offsets.items():
        out.setdefault(topic, {})[partition] = offset
    return out


def _topics(reader: Any, options: Mapping[str, str]) -> DataFrame:
    try:
        with query_errors():
            return reader.format("kafka").options(**options).load()
    except QueryFailed as failure:
        if "kafka.DefaultSource" in failure.message or "data source: kafka" in failure.message:
            raise QueryFailed(f'Spark has no connector for Kafka: give the target "packages: [{CONNECTOR}]"') from None
        raise


# --- what a broker says of its topics


def topics_now(spark: Spark, topics: Topics, read: Iterable[str]) -> TopicsNow | None:
    """What the broker has of a source's topics and of those that were read before; None if only a server of Spark could
    ask it. Raises
    QueryFailed if it does not answer, or does not have a topic that is named."""
    if not spark.jvm:
        return None
    with _asked(spark, topics) as admin:
        known = set(admin.listTopics().names().get())
        named = topics.options["subscribe"].split(",") if "subscribe" in topics.options else []
        missing = [topic for topic in named if topic not in known]
        if not missing:
            return _described(
                spark, admin, {*named, *_matching(spark, topics, known), *(topic for topic in read if topic in known)}
            )
    near = did_you_mean(missing[0], known)
    raise QueryFailed(f'there is no topic "{missing[0]}" at {_servers(topics)}{"; " if near else ""}{near}')


def _matching(spark: Spark, topics: Topics, known: Iterable[str]) -> list[str]:
    pattern = topics.options.get("subscribePattern")
    return [topic for topic in known if spark.jvm.java.util.regex.Pattern.matches(pattern, topic)] if pattern else []


def _described(spark: Spark, admin: Any, topics: Iterable[str]) -> TopicsNow:
    kafka = spark.jvm.org.apache.kafka
    found = admin.describeTopics(sorted(topics)).allTopicNames().get()
    ids = {topic: found[topic].topicId().toString() for topic in sorted(found)}
    partitions = [
        kafka.common.TopicPartition(topic, number)
        for topic in ids
        for number in range(found[topic].partitions().size())
    ]
    spec = kafka.clients.admin.OffsetSpec
    return TopicsNow(ids, _offsets(admin, partitions, spec.earliest()), _offsets(admin, partitions, spec.latest()))


def _offsets(admin: Any, partitions: Iterable[Any], which: Any) -> Offsets:
    found = admin.listOffsets(dict.fromkeys(partitions, which))
    return _by_topic(
        {(one.topic(), str(one.partition())): found.partitionResult(one).get().offset() for one in partitions}
    )


@contextmanager
def _asked(spark: Spark, topics: Topics) -> Iterator[Any]:
    """Kafka's client for administration, with the settings that the connector would give it."""
    patience = str(PATIENCE_SECONDS * 1000)
    given = {key[len("kafka.") :]: value for key, value in topics.options.items() if key.lower().startswith("kafka.")}
    jvm, admin = spark.jvm, None
    try:
        with query_errors():
            settings = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(
                {"request.timeout.ms": patience, "default.api.timeout.ms": patience, **given}
            )
            settings = (
                jvm.org.apache.spark.kafka010.KafkaConfigUpdater("runner", settings)
                .setAuthenticationConfigIfNeeded()
                .build()
            )
            admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)
            yield admin
    except QueryFailed as failure:
        # Not from the failure: what Java says in full may have secrets.
        raise QueryFailed(_refusal(without_secrets(failure.message, topics), topics)) from None
    finally:
        if admin is not None:
            admin.close(jvm.java.time.Duration.ofSeconds(0))


def _refusal(text: str, topics: Topics) -> str:
    kind, _, said = text.partition(": ")
    what = said if kind.endswith("Exception") and said else text
    if kind.endswith(("TimeoutException", "ConfigException")):
        return f'Kafka does not answer at {_servers(topics)}: is "servers" right, can this machine reach them, and do they want "kafka.security.protocol" among the options? ({what})'
    return f"Kafka at {_servers(topics)} cannot be read: {what}"


def _servers(topics: Topics) -> str:
    return topics.options["kafka.bootstrap.servers"]


def _content(path: str) -> str:
    """How functions get the bytes of files: local ones they open themselves, for Spark would hold them whole in memory."""
    return "content" if "://" in path and not path.startswith("file://") else "cast(null as binary)"


def _pattern(path: str) -> str:
    """A path that a stream can read: of a single file, a pattern that matches just it."""
    single = Path(path)
    return f"{single.parent}/{{{single.name}}}" if single.is_file() else path
