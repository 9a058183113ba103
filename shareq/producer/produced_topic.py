"""A topic that records go to: its partitions, their queues, and records without a partition yet."""

from __future__ import annotations

import random
from collections import deque

from shareq.client.metadata import Topic
from shareq.model.errors import KafkaError
from shareq.model.ids import ZERO_TOPIC_ID, TopicId
from shareq.producer.partition_queue import PartitionQueue, ProducedRecord, timed_out
from shareq.producer.partitioner import Partitioner


class ProducedTopic:
    """`unplaced` holds (record, ms since when it waits), oldest first.

    A topic that is created again may have fewer partitions: queues from `partition_count` on then take no records.
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
        """When a broker first answered that there is no such topic."""

    def queue(self, partition: int, key: bytes | None) -> PartitionQueue | None:
        """Where a record goes; None while that is not known."""
        if 0 <= partition < self.partition_count:
            return self.queues[partition]
        if partition >= 0 or self.partitioner is None:
            return None
        return self.queues[self.partitioner.place(key)]

    def learn(self, known: Topic, partitioner: str, rng: random.Random) -> None:
        """Use new metadata. Topics only grow, unless they are created again: fewer partitions of the same topic come
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
        """True if records wait for the topic's metadata, or have waited since it was last known."""
        return bool(self.unplaced) or self.unknown_since_ms is not None

    @property
    def expires_at_ms(self) -> int | None:
        """When the oldest record without a place is given up; None where there is none."""
        if not self.unplaced:
            return None
        timed_out_ms = self.unplaced[0][1] + self._timeout_ms
        if self.unknown_since_ms is None:
            return timed_out_ms
        return min(timed_out_ms, self.unknown_since_ms + self._unknown_ms)

    def expiry_error(self, now_ms: int) -> KafkaError | None:
        """Why the first record without a place fails now; None if it may wait. A topic that brokers do not know for
        topic.metadata.propagation.max.ms does not exist; where no broker answers, records time out."""
        if not self.unplaced:
            self.unknown_since_ms = None
            return None
        ends_ms = self.expires_at_ms
        if ends_ms is None or now_ms < ends_ms:
            return None
        if now_ms >= self.unplaced[0][1] + self._timeout_ms:
            return timed_out(self._timeout_ms)
        return KafkaError(KafkaError._UNKNOWN_TOPIC, f"topic {self.name!r} is unknown")
