"""What has been redriven: a compacted topic of the cluster, written in the transactions of the redriven records.

Committed offsets of a consumer group would be one number a partition, and they expire: a filter leaves letters behind,
and a queue may keep its records longer than Kafka keeps offsets. A record here has all ranges of one partition of a
queue; the latest one is valid. Its key names the topic by id, so that a queue that is created again begins anew.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from shareq.admin.arguments import PartitionLike
from shareq.admin.record_reader import Span
from shareq.admin.redrive.calls import AdminCalls
from shareq.admin.results import TopicDescription
from shareq.admin.topics import NewTopic
from shareq.client.arguments import INT64_MAX
from shareq.log.records import ControlType, decode, decode_control
from shareq.model.errors import Errors, KafkaException

LEDGER_TOPIC = "shareq-dead-letter-redrives"


class OffsetRanges:
    """A set of offsets as ascending ranges [first, end) that do not touch."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._firsts: list[int] = []
        self._ends: list[int] = []
        for first, end in ranges:
            self.add(first, end)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._firsts, self._ends, strict=True)

    def __contains__(self, offset: int) -> bool:
        at = bisect_right(self._firsts, offset) - 1
        return at >= 0 and offset < self._ends[at]

    def add(self, first: int, end: int) -> None:
        """Add the offsets of [first, end), if there are any."""
        if first >= end:
            return
        low, high = bisect_left(self._ends, first), bisect_right(self._firsts, end)
        if low < high:
            first, end = min(first, self._firsts[low]), max(end, self._ends[high - 1])
        self._firsts[low:high], self._ends[low:high] = [first], [end]

    def gaps(self) -> list[tuple[int, int]]:
        """The ranges of all other offsets from 0 on."""
        bounds = zip([0, *self._ends], [*self._firsts, INT64_MAX], strict=True)
        return [(first, end) for first, end in bounds if first < end]


class Ledger:
    """The settled offsets of a group's letters, by partition of one queue: redriven, or not the group's.

    Only the holder of the group's transactional id writes for the group, so that each of its transactions has ended
    when the next holder reads.
    """

    def __init__(self, group_id: str, queue: TopicDescription) -> None:
        partitions = [partition.partition for partition in queue.partitions]
        self._keys = {index: json.dumps([group_id, queue.topic_id, index]).encode() for index in partitions}
        self._settled = {index: OffsetRanges() for index in partitions}

    def settled(self, partition: int) -> OffsetRanges:
        return self._settled[partition]

    def record(self, partition: int) -> tuple[bytes, bytes]:
        """Key and value that store the settled offsets of a partition of the queue."""
        return self._keys[partition], json.dumps([*self._settled[partition]], separators=(",", ":")).encode()

    def read(self, admin: AdminCalls, timeout: float) -> None:
        """Take the settled offsets from the records of all transactions that have been committed."""
        described = admin.describe_topics([LEDGER_TOPIC], timeout=timeout)[LEDGER_TOPIC]
        if described.error is not None:
            if described.error.code() == Errors.UNKNOWN_TOPIC_OR_PARTITION:
                return
            raise KafkaException(described.error)
        wanted = {key: partition for partition, key in self._keys.items()}
        open_transactions: dict[int, list[tuple[int, bytes]]] = {}
        spans: dict[PartitionLike, list[Span]] = {
            (LEDGER_TOPIC, partition.partition): [(0, INT64_MAX)] for partition in described.partitions
        }
        for read in admin.read_batches(spans, timeout=timeout):
            for batch in read.batches:
                if batch.is_control:
                    rows = open_transactions.pop(batch.producer_id, [])
                    if decode_control(batch) is ControlType.COMMIT:
                        self._take(rows)
                    continue
                rows = open_transactions.setdefault(batch.producer_id, [])
                for record in decode(batch):
                    if record.key in wanted and record.value is not None:
                        rows.append((wanted[record.key], record.value))

    def _take(self, rows: Iterable[tuple[int, bytes]]) -> None:
        for partition, value in rows:
            self._settled[partition] = OffsetRanges((first, end) for first, end in json.loads(value))


def create_ledger(admin: AdminCalls, timeout: float) -> None:
    """Create the topic unless it exists, with the broker's number of replicas."""
    topic = NewTopic(LEDGER_TOPIC, 1, config={"cleanup.policy": "compact"})
    created = admin.create_topics([topic], timeout=timeout)[LEDGER_TOPIC]
    if created.error is not None and created.error.code() != Errors.TOPIC_ALREADY_EXISTS:
        raise KafkaException(created.error)
