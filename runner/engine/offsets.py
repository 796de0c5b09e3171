"""Offsets of topics: where a stream is, and what a broker has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

# Topic -> partition -> offset.
Offsets = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class TopicsNow:
    """The topics that a broker has now. `ids` are the ids of the topics. For each partition, `first` is the first
    offset that the broker still has, `next` the offset that the next message will get.
    """

    ids: Mapping[str, str]
    first: Offsets
    next: Offsets

    def only(self, topics: Iterable[str]) -> TopicsNow:
        kept = list(topics)
        ids = {topic: self.ids[topic] for topic in kept}
        return TopicsNow(ids, {topic: self.first[topic] for topic in kept}, {topic: self.next[topic] for topic in kept})

    def left(self, read: Offsets) -> int:
        """Returns the number of messages from these offsets on, and in all partitions that have no offset here.

        >>> TopicsNow({"a": "1"}, {"a": {"0": 3, "1": 0}}, {"a": {"0": 10, "1": 4}}).left({"a": {"0": 8}})
        6
        """
        return sum(
            max(0, end - max(read.get(topic, {}).get(partition, 0), self.first[topic].get(partition, 0)))
            for topic, partitions in self.next.items()
            for partition, end in partitions.items()
        )

    def lost(self, wanted: Offsets, known: Mapping[str, str], added: bool) -> list[str]:
        """Returns in words the messages from the wanted offsets on that the broker no longer has. `known` are the ids
        that the topics had; with `added`, a partition without a wanted offset counts as wanted from its beginning.
        """
        return [f"{place} {what}" for place, what in self._lost(wanted, known, added)]

    def _lost(self, wanted: Offsets, known: Mapping[str, str], added: bool) -> Iterator[tuple[str, str]]:
        for topic in sorted({*wanted, *(self.ids if added else ())}):
            if topic not in self.ids:
                yield topic, "no longer exists"
                continue
            if known.get(topic, self.ids[topic]) != self.ids[topic]:
                yield topic, "was deleted and created again, with offsets from 0"
                continue
            partitions = self.first[topic] if added else {}
            for partition in sorted({*partitions, *wanted.get(topic, {})}, key=int):
                offset = wanted.get(topic, {}).get(partition, 0)
                if what := self._lost_of(topic, partition, offset):
                    yield f"{topic}/{partition}", what

    def _lost_of(self, topic: str, partition: str, offset: int) -> str:
        first, following = self.first[topic].get(partition), self.next[topic].get(partition)
        if first is None or following is None:
            return "no longer exists"
        if first > offset:
            return f"offset {offset}" if first == offset + 1 else f"offsets {offset} to {first - 1}"
        return f"ends before offset {following}, and would be read from {offset} on" if following < offset else ""


def by_topic(offsets: Mapping[tuple[str, str], int]) -> Offsets:
    """Returns the offsets of partitions as mappings of topics to partitions.

    >>> by_topic({("orders", "0"): 5, ("orders", "1"): 2})
    {'orders': {'0': 5, '1': 2}}
    """
    out: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in offsets.items():
        out.setdefault(topic, {})[partition] = offset
    return out
