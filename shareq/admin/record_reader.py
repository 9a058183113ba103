"""Reads ranges of partitions by Fetch, without a group: each range once, from its start to its end."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from shareq.admin.broker_routing import BrokerRouting, PartitionKey
from shareq.admin.core import Operation
from shareq.admin.topics import list_offsets
from shareq.client.topic_partition import TopicPartition
from shareq.log.records import Record, decode
from shareq.model.errors import Errors, KafkaException
from shareq.model.ids import TopicId
from shareq.model.messages.base import Request
from shareq.model.messages.data import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from shareq.model.messages.fetch import FetchRequest, FetchResponse
from shareq.model.records import RecordBatch

Span = tuple[int, int]
"""Offsets [first, end)."""

PARTITION_BYTES = 1 << 20
"""What one request asks of a partition: a round of many partitions stays small."""


class PartitionBatches(NamedTuple):
    """Batches of one partition in ascending order, as they are in the log: the first may begin below the range of
    offsets that was read, [start, end), and hold records that are deleted or that earlier batches of the reader had."""

    topic: str
    partition: int
    batches: tuple[RecordBatch, ...]
    start: int
    end: int

    def records(self, spans: Sequence[Span]) -> Iterator[Record]:
        """The records of [start, end) within the ascending spans, without transaction markers. CorruptBatch: a batch
        that cannot be decoded."""
        at = 0
        for batch in self.batches:
            if batch.is_control:
                continue
            for record in decode(batch):
                if record.offset < self.start:
                    continue
                while at < len(spans) and spans[at][1] <= record.offset:
                    at += 1
                if at < len(spans) and spans[at][0] <= record.offset:
                    yield record


class RecordReader:
    """The ranges that are still to be read, at most up to the high watermarks that the first round finds.

    `spans`: ascending, disjoint ranges by partition. What has been deleted from a log is passed.
    """

    def __init__(self, routing: BrokerRouting, spans: Mapping[PartitionKey, Sequence[Span]]) -> None:
        self._routing = routing
        self._left = {place: list(given) for place, given in spans.items()}
        self._topic_ids: dict[str, TopicId] = {}

    @property
    def done(self) -> bool:
        """True if there is nothing to read any more."""
        return not self._left

    def read(self) -> Operation[list[PartitionBatches]]:
        """One round: the next batches of each partition. Raises KafkaException for a partition that cannot be read."""
        if not self._topic_ids:
            yield from self._open()
        attempts = 0
        while self._left:
            done = yield from self._routing.by_leader(tuple(self._left), self._request, self._results_of)
            found: list[PartitionBatches] = []
            cut: list[PartitionKey] = []
            for place, (error, response) in sorted(done.items()):
                if error is not None:
                    raise KafkaException(error)
                if response.error_code is Errors.OFFSET_OUT_OF_RANGE:
                    cut.append(place)
                elif response.records:
                    found.append(self._taken(place, response.records))
            yield from self._within_the_logs(cut)
            if found:
                return found
            if not cut:
                attempts += 1
                yield self._routing.pause(attempts, Errors.NONE, "a fetch without records")
        return []

    def _open(self) -> Operation[None]:
        image = yield from self._routing.metadata(topic for topic, _ in self._left)
        self._topic_ids = {topic.name: topic.topic_id for topic in image.topics if topic.name and not topic.error_code}
        yield from self._within_the_logs(self._left)

    def _within_the_logs(self, places: Iterable[PartitionKey]) -> Operation[None]:
        """Limit the spans to what the logs still have, and to what they had at the first call."""
        wanted = tuple(places)
        if not wanted:
            return
        starts = yield from list_offsets(self._routing, dict.fromkeys(wanted, EARLIEST_TIMESTAMP), 0)
        ends = yield from list_offsets(self._routing, dict.fromkeys(wanted, LATEST_TIMESTAMP), 0)
        starts.check()
        ends.check()
        for place in wanted:
            start, end = starts[TopicPartition(*place)].offset or 0, ends[TopicPartition(*place)].offset or 0
            self._keep(place, [(max(first, start), min(last, end)) for first, last in self._left[place]])

    def _keep(self, place: PartitionKey, spans: Iterable[Span]) -> None:
        left = [(first, end) for first, end in spans if first < end]
        if left:
            self._left[place] = left
        else:
            del self._left[place]

    def _taken(self, place: PartitionKey, records: Sequence[RecordBatch]) -> PartitionBatches:
        spans, end = self._left[place], records[-1].last_offset + 1
        self._keep(place, [(max(first, end), last) for first, last in spans])
        batches = tuple(batch for batch in records if _wanted(batch, spans))
        return PartitionBatches(*place, batches, spans[0][0], end)

    def _request(self, topics: dict[str, list[int]]) -> Request:
        return FetchRequest(
            topics=tuple(
                FetchRequest.Topic(
                    topic_id=self._topic_ids[topic],
                    partitions=tuple(
                        FetchRequest.Partition(
                            partition=index,
                            fetch_offset=self._left[topic, index][0][0],
                            partition_max_bytes=PARTITION_BYTES,
                        )
                        for index in indexes
                    ),
                )
                for topic, indexes in topics.items()
            )
        )

    def _results_of(self, response: FetchResponse) -> list[tuple[PartitionKey, Errors, FetchResponse.Partition]]:
        names = {topic_id: name for name, topic_id in self._topic_ids.items()}
        return [
            ((names[topic.topic_id], partition.partition_index), _failure(partition.error_code), partition)
            for topic in response.responses
            for partition in topic.partitions
        ]


def _failure(error: Errors) -> Errors:
    """The error of a partition; a log that was cut meanwhile is none."""
    return Errors.NONE if error is Errors.OFFSET_OUT_OF_RANGE else error


def _wanted(batch: RecordBatch, spans: Sequence[Span]) -> bool:
    at = bisect_right(spans, batch.base_offset, key=_end)
    return at < len(spans) and spans[at][0] <= batch.last_offset


def _end(span: Span) -> int:
    return span[1]
