"""A topic of a producer: its partitions, their queues, and records without a partition."""

from __future__ import annotations

import random
from collections import deque

from shareq.client.metadata import Topic
from shareq.model.errors import KafkaError
from shareq.model.ids import ZERO_TOPIC_ID, TopicId
from shareq.producer.partition_queue import PartitionQueue, ProducedRecord, timed_out
from shareq.producer.partitioner import Partitioner


class ProducedTopic:
    """`unplaced` has (record, ms since the epoch at which it began to wait), oldest first.

    A topic that is created again may have fewer partitions: queues from `partition_count` on take no records then.
    """

    __slots__ = (
        "_timeout_ms",
        "_unknown_ms",
        "name",
        "partition_count",
        "partitioner",
        "queues",
        "topic_id",
        "unknown_since_ms",
        "unplaced",
    )  # fmt: skip

    def __init__(self, name: str, timeout_ms: int, unknown_ms: int) -> None:
        self.name = name
        self._timeout_ms = timeout_ms
        self._unknown_ms = unknown_ms
        self.topic_id: TopicId = ZERO_TOPIC_ID
        self.partition_count = 0
        self.partitioner: Partitioner | None = None
        self.queues: list[PartitionQueue] = []
        self.unplaced: deque[tuple[ProducedRecord, int]] = deque()
        self.unknown_since_ms: int | None = None
        """The time at which a broker first returned UNKNOWN_TOPIC_OR_PARTITION; None if the topic is known."""

    def queue(self, partition: int, key: bytes | None) -> PartitionQueue | None:
        """The queue of a record; None if its partition is unknown."""
        if 0 <= partition < self.partition_count:
            return self.queues[partition]
        if partition >= 0 or self.partitioner is None:
            return None
        return self.queues[self.partitioner.place(key)]

    def learn(self, known: Topic, partitioner: str, rng: random.Random) -> None:
        """Apply new metadata. A topic only grows, unless it is created again: fewer partitions with the same id come
        from a broker with old metadata."""
        count = len(known.leaders)
        same = known.topic_id == self.topic_id != ZERO_TOPIC_ID
        if count == 0 or (same and count < self.partition_count):
            return
        self.topic_id = known.topic_id
        self.unknown_since_ms = None
        self.partition_count = count
        self.queues += [PartitionQueue(self.name, partition) for partition in range(len(self.queues), count)]
        if self.partitioner is None:
            self.partitioner = Partitioner(partitioner, count, rng)
        else:
            self.partitioner.resize(count)

    @property
    def removed_queues(self) -> list[PartitionQueue]:
        """The queues of partitions that no longer exist."""
        return self.queues[self.partition_count :]

    @property
    def waits(self) -> bool:
        """True if records wait for the topic's metadata, or have waited since it last arrived."""
        return bool(self.unplaced) or self.unknown_since_ms is not None

    @property
    def expires_at_ms(self) -> int | None:
        """The time at which the oldest record without a partition fails; None if there is none."""
        if not self.unplaced:
            return None
        timed_out_ms = self.unplaced[0][1] + self._timeout_ms
        if self.unknown_since_ms is None:
            return timed_out_ms
        return min(timed_out_ms, self.unknown_since_ms + self._unknown_ms)

    def expiry_error(self, now_ms: int) -> KafkaError | None:
        """The error of the first record without a partition; None if it may still wait. A topic that is unknown for
        topic.metadata.propagation.max.ms does not exist; if no broker answers, records time out."""
        if not self.unplaced:
            self.unknown_since_ms = None
            return None
        ends_ms = self.expires_at_ms
        if ends_ms is None or now_ms < ends_ms:
            return None
        if now_ms >= self.unplaced[0][1] + self._timeout_ms:
            return timed_out(self._timeout_ms)
        return KafkaError(KafkaError._UNKNOWN_TOPIC, f"topic {self.name!r} is unknown")
