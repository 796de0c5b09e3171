"""Records of Kafka's topics, and dumps of topics as Parquet files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow
import pyarrow.parquet


class Record(NamedTuple):
    """A record of a topic; the value of a tombstone is null."""

    key: bytes | None
    value: bytes | None
    topic: str = "shop"


def record(key: Any, value: Any, topic: str = "shop") -> Record:
    """Both parts as compact JSON, non-ASCII characters as themselves."""
    return Record(_json_bytes(key), _json_bytes(value), topic)


def _json_bytes(part: Any) -> bytes | None:
    return None if part is None else json.dumps(part, ensure_ascii=False, separators=(",", ":")).encode()


def write_topic(records: Iterable[Record], path: Path, first: int = 95, times: Sequence[datetime] = ()) -> None:
    """A dump of a partition of each topic as a Parquet file. Old records are gone: offsets do not begin at 0. Without
    `times`, all records were written at one moment.
    """
    told = list(records)
    written = [datetime(2024, 5, 1, 3, tzinfo=timezone.utc)] * len(told)
    columns = {
        "key": pyarrow.array([one.key for one in told], pyarrow.binary()),
        "value": pyarrow.array([one.value for one in told], pyarrow.binary()),
        "topic": pyarrow.array([one.topic for one in told], pyarrow.string()),
        "partition": pyarrow.array([0] * len(told), pyarrow.int32()),
        "offset": pyarrow.array([number + first for number in range(len(told))], pyarrow.int64()),
        "timestamp": pyarrow.array(times or written, pyarrow.timestamp("us", tz="UTC")),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


def write_recorded(lines: Iterable[str], path: Path, first: int) -> None:
    """A dump of records that were written down with their topic, key, value and time, each a line of JSON."""
    records = [json.loads(line) for line in lines]
    written = [datetime.fromtimestamp(one["ts"] / 1000, timezone.utc) for one in records]
    sent = [Record(*(one[part] and one[part].encode() for part in ("key", "value")), one["topic"]) for one in records]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_topic(sent, path, first, written)
