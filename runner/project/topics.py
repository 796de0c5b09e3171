"""The reader of `kafka` in a source: the topics that are read from Kafka, and the connector's options for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone

from runner.errors import nearest_or_all
from runner.project.inputs import Topics
from runner.project.variables import Filler
from runner.yaml_text import Yaml, whole_number

KAFKA_KEYS = ("servers", "topics", "pattern", "starting", "ending", "batch", "allow_loss", "arrival", "options")
ARRIVALS = ("offset", "timestamp")
# Options of the connector that cannot be given as such -> the key to use instead.
OWN_OPTIONS = {
    "kafka.bootstrap.servers": "servers",
    "subscribe": "topics",
    "subscribePattern": "pattern",
    "assign": "topics",
    "startingOffsets": "starting",
    "startingTimestamp": "starting",
    "startingOffsetsByTimestamp": "starting",
    "startingOffsetsByTimestampStrategy": "starting",
    "endingOffsets": "ending",
    "endingTimestamp": "ending",
    "endingOffsetsByTimestamp": "ending",
    "maxOffsetsPerTrigger": "batch",
    "failOnDataLoss": "allow_loss",
    "includeHeaders": "",
}

# Options of the connector that say which messages are read, not where or how.
REACH_OPTIONS = tuple(option for option, word in OWN_OPTIONS.items() if word not in ("servers", ""))

# The defaults of options. Messages of aborted transactions are not read.
USUAL_OPTIONS = {"includeHeaders": "true", "kafka.isolation.level": "read_committed"}

Fill = Callable[[Yaml], str]


def read_topics(yaml: Yaml, filler: Filler) -> tuple[Topics, str]:
    """Returns the topics to read, and a description of their place for people."""
    yaml.only(KAFKA_KEYS)
    if not yaml.get("servers"):
        raise yaml.error("kafka-missing", 'messages in Kafka need "servers"', "servers: broker-1:9092,broker-2:9092")
    if bool(yaml.get("topics")) == bool(yaml.get("pattern")):
        raise yaml.error(
            "kafka-missing", 'messages in Kafka need either "topics" or "pattern"', "topics: [shop.orders, shop.items]"
        )
    fill = filler.text
    topics = ",".join(fill(one) for one in yaml["topics"].as_list()) if yaml.get("topics") else fill(yaml["pattern"])
    servers = ",".join(fill(one) for one in yaml["servers"].as_list())
    options = {
        **USUAL_OPTIONS,
        "kafka.bootstrap.servers": servers,
        ("subscribe" if yaml.get("topics") else "subscribePattern"): topics,
        "failOnDataLoss": "false" if _choice(yaml, "allow_loss", ("true", "false"), "false") == "true" else "true",
        **_starting(yaml.get("starting"), fill),
        **({"maxOffsetsPerTrigger": str(_count(yaml["batch"], fill(yaml["batch"])))} if yaml.get("batch") else {}),
        **_options(yaml.get("options"), filler),
    }
    by_time = _choice(yaml, "arrival", ARRIVALS, "offset") == "timestamp"
    return Topics(options, _ending(yaml.get("ending"), fill), by_time), f"{topics} at {servers}"


def _choice(yaml: Yaml, key: str, words: tuple[str, ...], default: str) -> str:
    value = yaml.get(key)
    if value and value.text() not in words:
        raise value.error(
            "kafka-word",
            f'"{key}" must be one of {", ".join(words)}, not {value.kind()}',
            nearest_or_all(value.text(), words),
        )
    return value.text() if value else default


def _starting(yaml: Yaml | None, fill: Fill) -> dict[str, str]:
    if yaml is None:
        return {"startingOffsets": "earliest"}
    if isinstance(yaml.value, dict):
        return {"startingOffsets": json.dumps(_offsets(yaml, fill))}
    text = fill(yaml)
    return (
        {"startingOffsets": text}
        if text in ("earliest", "latest")
        else {
            "startingTimestamp": str(_instant(yaml, text, "earliest, latest")),
            "startingOffsetsByTimestampStrategy": "latest",
        }
    )


def _ending(yaml: Yaml | None, fill: Fill) -> dict[str, dict[str, int]] | int | None:
    if yaml is None:
        return None
    return _offsets(yaml, fill) if isinstance(yaml.value, dict) else _instant(yaml, fill(yaml), "")


def _offsets(yaml: Yaml, fill: Fill) -> dict[str, dict[str, int]]:
    """Returns offsets: topic -> partition -> offset."""
    out: dict[str, dict[str, int]] = {}
    for topic, partitions in yaml.items():
        out[topic] = {}
        for name, offset in partitions.mapping().items():
            partition = _count(Yaml(name, partitions.places, partitions.steps), name)
            out[topic][str(partition)] = _count(offset, fill(offset))
    return out


def _count(yaml: Yaml, text: str) -> int:
    number = whole_number(text)
    if number is None:
        raise yaml.error("kafka-number", f'{yaml.name()} must be a whole number, not "{text}"')
    return number


def _instant(yaml: Yaml, text: str, words: str) -> int:
    """Returns the milliseconds of an instant in ISO 8601; an instant without a zone is in UTC."""
    try:
        at = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        also = f"{words}, " if words else ""
        raise yaml.error(
            "kafka-offsets",
            f'{yaml.name()} cannot be "{text}"',
            f"{also}an instant (2024-05-01T00:00:00Z), or offsets (orders: {{0: 1200}})",
        ) from None
    return int((at if at.tzinfo else at.replace(tzinfo=timezone.utc)).timestamp() * 1000)


def _options(yaml: Yaml | None, filler: Filler) -> dict[str, str]:
    """Returns the options of the connector that have no key of their own, such as those of security."""
    out = {}
    for key, value in yaml.mapping().items() if yaml else ():
        own = {option.lower(): word for option, word in OWN_OPTIONS.items()}.get(key.lower())
        if own is not None:
            raise value.error(
                "kafka-option",
                f'"{key}" cannot be given as an option',
                f'use the key "{own}"' if own else "headers are always read",
            )
        out[key] = filler.setting(key, value)
    return out


def without_secrets(text: str) -> str:
    """Returns a message of Kafka or Spark without the words of a login that it quotes."""
    if "JAAS" in text:
        # Such a message quotes words of the option, which may be parts of a password.
        return 'the option "kafka.sasl.jaas.config" cannot be read: is a quote or the semicolon at its end missing?'
    return text
