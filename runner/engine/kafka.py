"""Topics of Kafka: reads them with Spark's connector, and asks the broker about them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyspark
from pyspark.sql import DataFrame

from runner.engine.errors import QueryFailed, query_errors
from runner.engine.offsets import Offsets, TopicsNow, by_topic
from runner.engine.session import Spark
from runner.errors import did_you_mean
from runner.project.inputs import Topics
from runner.project.topics import REACH_OPTIONS, without_secrets
from runner.render import name as quoted

RANGES = "topic string, partition int, first bigint, next bigint"
OFFSETS = "topic string, partition int, offset bigint"
CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
# By default Kafka's client waits a minute for a server that does not answer, and Spark tries three times.
PATIENCE_SECONDS = 15


def read_kafka(reader: Any, options: Mapping[str, str]) -> DataFrame:
    """Reads the messages of topics, with a Spark reader for a stream or for a batch."""
    try:
        with query_errors():
            frame: DataFrame = reader.format("kafka").options(**options).load()
            return frame
    except QueryFailed as failure:
        if "kafka.DefaultSource" in failure.message or "data source: kafka" in failure.message:
            raise QueryFailed(f'Spark has no connector for Kafka: give the target "packages: [{CONNECTOR}]"') from None
        raise


# --- what was read


def offset_views(
    spark: Spark,
    topics: Topics,
    is_message: str,
    first: Offsets,
    end: Offsets,
    now: TopicsNow | None,
    view: str,
) -> None:
    """Creates two views of what was read between two sets of offsets: `<view>_ranges`, a row for each partition with
    its two offsets, and `<view>_there`, a row for each message that the broker still has. `is_message` is the SQL
    condition for messages of the source.
    """
    ranges = {
        (topic, partition): (first.get(topic, {}).get(partition, 0), offset)
        for topic, partitions in end.items()
        for partition, offset in partitions.items()
    }
    spark.rows_view(f"{view}_ranges", [(topic, int(number), *both) for (topic, number), both in ranges.items()], RANGES)
    there = {place: clipped for place, both in ranges.items() if (clipped := _clipped(*place, *both, now))}
    if not there:
        spark.rows_view(f"{view}_there", [], OFFSETS)
        return
    with query_errors():
        frame = read_kafka(spark.session.read, _between(topics, there)).where(is_message)
        frame.select("topic", "partition", "offset").createOrReplaceTempView(quoted(f"{view}_there"))


def _clipped(topic: str, partition: str, first: int, end: int, now: TopicsNow | None) -> tuple[int, int] | None:
    """Returns the part of a range of offsets that the broker still has; the whole range if that is not known, None if
    nothing is left.
    """
    if now is None:
        return first, end
    if partition not in now.first.get(topic, {}):
        return None
    first, end = max(first, now.first[topic][partition]), min(end, now.next[topic][partition])
    return (first, end) if first < end else None


def _between(topics: Topics, ranges: Mapping[tuple[str, str], tuple[int, int]]) -> dict[str, str]:
    """Returns the connector's options for reading some ranges of offsets of a source's topics."""
    own = {key: value for key, value in topics.options.items() if key not in REACH_OPTIONS}
    starting, ending = (by_topic({place: both[end] for place, both in ranges.items()}) for end in (0, 1))
    return {
        **own,
        "assign": json.dumps({topic: [int(number) for number in offsets] for topic, offsets in starting.items()}),
        "startingOffsets": json.dumps(starting),
        "endingOffsets": json.dumps(ending),
        "failOnDataLoss": "false",
    }


# --- what the broker says


def topics_now(spark: Spark, topics: Topics, read: Iterable[str]) -> TopicsNow | None:
    """Returns what the broker has of a source's topics and of the topics that were `read` before; None with Spark
    Connect, where only the server could ask. Raises QueryFailed if the broker does not answer or lacks a topic that the
    source names.
    """
    if not spark.jvm:
        return None
    with _admin_client(spark, topics) as admin:
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
    return by_topic(
        {(one.topic(), str(one.partition())): found.partitionResult(one).get().offset() for one in partitions}
    )


@contextmanager
def _admin_client(spark: Spark, topics: Topics) -> Iterator[Any]:
    """Opens Kafka's client for administration, with the settings that the connector would give it. Errors in the block
    are raised as QueryFailed.
    """
    timeout = str(PATIENCE_SECONDS * 1000)
    given = {key[len("kafka.") :]: value for key, value in topics.options.items() if key.lower().startswith("kafka.")}
    jvm, admin = spark.jvm, None
    try:
        with query_errors():
            settings = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(
                {"request.timeout.ms": timeout, "default.api.timeout.ms": timeout, **given}
            )
            settings = (
                jvm.org.apache.spark.kafka010.KafkaConfigUpdater("runner", settings)
                .setAuthenticationConfigIfNeeded()
                .build()
            )
            admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)
            yield admin
    except QueryFailed as failure:
        # The cause is left out: the whole text of Java's error may hold secrets.
        raise QueryFailed(_refusal(without_secrets(failure.message), topics)) from None
    finally:
        if admin is not None:
            admin.close(jvm.java.time.Duration.ofSeconds(0))


def _refusal(text: str, topics: Topics) -> str:
    kind, _, rest = text.partition(": ")
    what = rest if kind.endswith("Exception") and rest else text
    if kind.endswith(("TimeoutException", "ConfigException")):
        return (
            f'Kafka does not answer at {_servers(topics)}: is "servers" right, can this machine reach them, '
            f'and do they need "kafka.security.protocol" among the options? ({what})'
        )
    return f"Kafka at {_servers(topics)} cannot be read: {what}"


def _servers(topics: Topics) -> str:
    return topics.options["kafka.bootstrap.servers"]
