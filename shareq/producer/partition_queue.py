"""The records of one partition: the unfinished batch, waiting batches, and the batch in flight."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from shareq.client.message import Fields, Message, Origin, ReceivedMessage
from shareq.log.records import Headers, encode_batch
from shareq.model.errors import KafkaError

DeliveryCallback = Callable[[KafkaError | None, Message], object]


ProducedRecord = tuple[str, int, bytes | None, bytes | None, Headers, int, DeliveryCallback | None, int]
"""A record of `produce`: (topic, partition, key, value, headers, timestamp, on_delivery, size). Partition -1: the
partitioner chooses; timestamp 0: the start of the batch. A plain tuple, for speed: there is one per record."""

RECORD_OVERHEAD_BYTES = 16
"""The approximate size of a record besides key and value: lengths, deltas, header count."""


NEVER_MS = 1 << 62
"""The value for a message.timeout.ms of 0."""


def timed_out(timeout_ms: int) -> KafkaError:
    return KafkaError(KafkaError._MSG_TIMED_OUT, f"not delivered within message.timeout.ms={timeout_ms}")


class ProducerBatch:
    """A record batch of one partition. Once built, its bytes never change, so that brokers detect a retry.

    `created_ms` is a time of the client, from which time-outs count, `timestamp_ms` the time of day at that moment."""

    __slots__ = ("_bytes", "attempts", "created_ms", "records", "room_bytes", "timestamp_ms", "wants_reports")

    def __init__(self, now_ms: int, room_bytes: int, timestamp_ms: int) -> None:
        self.created_ms = now_ms
        self.timestamp_ms = timestamp_ms
        self.room_bytes = room_bytes
        self.attempts = 0
        self.records: list[ProducedRecord] = []
        self.wants_reports = False
        self._bytes: bytes | None = None

    @property
    def record_count(self) -> int:
        return len(self.records)

    @property
    def built(self) -> bool:
        return self._bytes is not None

    def build(
        self, *, compression: str, producer_id: int, producer_epoch: int, sequence: int, transactional: bool
    ) -> None:
        """Encode the batch with producer id, epoch and sequence, by which brokers detect gaps and duplicates."""
        timestamp_ms = self.timestamp_ms
        self._bytes = encode_batch(
            [
                (key, value, headers, timestamp or timestamp_ms)
                for _, _, key, value, headers, timestamp, _, _ in self.records
            ],
            compression=compression,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=sequence,
            transactional=transactional,
        )

    @property
    def encoded(self) -> bytes:
        assert self._bytes is not None, "not built"
        return self._bytes


class Delivery(NamedTuple):
    """The result of a record, for its callback. `offset` -1001: not delivered, or acks=0."""

    record: ProducedRecord
    offset: int
    timestamp_ms: int
    """The time of day of the batch, for a record without a timestamp of its own."""
    origin: Origin
    """The fields that all records of a batch share."""

    def report(self) -> tuple[DeliveryCallback, KafkaError | None, Message]:
        """The callback and its arguments."""
        record, offset, timestamp_ms, origin = self
        _, _, key, value, headers, timestamp, on_delivery, _ = record
        assert on_delivery is not None
        fields = Fields(offset, key, value, list(headers), timestamp or timestamp_ms, 0)
        return on_delivery, origin.error, ReceivedMessage(fields, origin)


class PartitionQueue:
    """One partition. At most one of its batches is in flight, so that a retry cannot change the order.

    `sequence`: of the next record; it restarts at 0 with a new producer id or epoch.
    """

    __slots__ = ("filling", "not_before_ms", "partition", "sequence", "topic", "under_way", "waiting")

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.filling: ProducerBatch | None = None
        self.waiting: deque[ProducerBatch] = deque()
        self.under_way: ProducerBatch | None = None
        self.sequence = 0
        self.not_before_ms = 0

    def close(self) -> None:
        """Finish the batch: it takes no further records."""
        if self.filling is not None:
            self.waiting.append(self.filling)
            self.filling = None

    @property
    def head(self) -> ProducerBatch | None:
        """The oldest finished batch without a result."""
        if self.under_way is not None:
            return self.under_way
        return self.waiting[0] if self.waiting else None

    def sendable(self, now_ms: int) -> bool:
        return bool(self.waiting) and self.under_way is None and now_ms >= self.not_before_ms
