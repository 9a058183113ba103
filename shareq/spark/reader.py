"""What a task does: fetch ranges of offsets, whoever may have them locked, and make Arrow batches of their records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import TypeVar

import pyarrow as pa

from shareq.admin.asking import Asking
from shareq.admin.core import AdminCore, Ask, Operation
from shareq.client.config import ClientConfig
from shareq.client.shell import perform
from shareq.log.records import Record, decode
from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.messages.fetch import FetchRequest, FetchResponse
from shareq.model.records import RecordBatch
from shareq.model.transport import transport_for
from shareq.spark.ranges import Range

T = TypeVar("T")

SCHEMA = """
    key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int,
    headers array<struct<key: string, value: binary>>, deliveryCount int
"""
"""As of Spark's own Kafka source, with how often a record has been delivered: 1 the first time, 0 by a batch read."""

_TIMESTAMP = pa.timestamp("us", tz="UTC")
_HEADERS = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))

ARROW_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", _TIMESTAMP),
        ("timestampType", pa.int32()),
        ("headers", _HEADERS),
        ("deliveryCount", pa.int32()),
    ]
)

FETCH_BYTES = 8 << 20
TIMEOUT_MS = 60_000


class RecordsLost(RuntimeError):
    """Records of a batch are not to be had any more: their topic was deleted."""


class RangeFetcher:
    """Plain fetches over one connection a process: workers live for many tasks."""

    def __init__(self, bootstrap_servers: str) -> None:
        conf = {"bootstrap.servers": bootstrap_servers, "client.id": "shareq-spark-task"}
        transport = transport_for(bootstrap_servers)
        self._core = AdminCore(ClientConfig(conf, (), client="task"), transport.rng())
        self._asking = Asking(self._core.backoff)
        self._connection = transport.connect(self._core, self._core.client_id)
        self._leaders: dict[tuple[str, int], int] = {}

    def batches(self, wanted: Range) -> Iterator[Sequence[RecordBatch]]:
        """The record batches that hold the offsets of a range, an answer at a time."""
        cursor = wanted.first
        while cursor < wanted.end:
            cursor, found = self._do(self._fetch(wanted, cursor))
            yield found

    def _do(self, operation: Operation[T]) -> T:
        task = perform(
            self._connection, self._core.calls, lambda now_ms: self._core.start(operation, TIMEOUT_MS, now_ms)
        )
        self._connection.wait(lambda: task.done, None)
        return task.result()

    def _fetch(self, wanted: Range, cursor: int) -> Operation[tuple[int, Sequence[RecordBatch]]]:
        """Records from `cursor` on, and where to go on. What a retry can mend is retried until the time is up."""
        asked = FetchRequest.Partition(partition=wanted.partition, fetch_offset=cursor, partition_max_bytes=FETCH_BYTES)
        topic = FetchRequest.Topic(topic_id=TopicId(wanted.topic_id), partitions=(asked,))
        request = FetchRequest(max_wait_ms=0, max_bytes=FETCH_BYTES, topics=(topic,))
        attempts = 0
        while True:
            leader = yield from self._leader(wanted)
            ((response, error, reason),) = yield [Ask(leader, request)]
            if response is not None:
                error = response.error_code or _answer(response).error_code
            if not error and (step := _step(_answer(response), cursor, wanted.end)):
                return step
            if error is Errors.OFFSET_OUT_OF_RANGE:
                return max(cursor + 1, min(_answer(response).log_start_offset, wanted.end)), ()
            self._leaders.pop((wanted.topic, wanted.partition), None)
            attempts += 1
            yield self._asking.pause(attempts, error, f"{wanted.topic} [{wanted.partition}] at {cursor}", reason)

    def _leader(self, wanted: Range) -> Operation[int]:
        place = wanted.topic, wanted.partition
        attempts = 0
        while place not in self._leaders:
            image = yield from self._asking.metadata([wanted.topic])
            for topic in image.topics:
                if topic.topic_id != wanted.topic_id and not topic.error_code:
                    raise RecordsLost(f"topic {wanted.topic!r} is not the one that the records were read from")
                for partition in topic.partitions:
                    if partition.leader_id >= 0:
                        self._leaders[wanted.topic, partition.partition_index] = partition.leader_id
            if place not in self._leaders:
                attempts += 1
                yield self._asking.pause(attempts, Errors.LEADER_NOT_AVAILABLE, f"{wanted.topic} [{wanted.partition}]")
        return self._leaders[place]


def _answer(response: FetchResponse) -> FetchResponse.Partition:
    return response.responses[0].partitions[0]


def _step(answer: FetchResponse.Partition, cursor: int, end: int) -> tuple[int, Sequence[RecordBatch]] | None:
    """Where to go on after an answer; None where it says nothing of the range yet."""
    if answer.records:
        return max(answer.records[-1].last_offset + 1, cursor), answer.records
    return (end, ()) if answer.high_watermark >= end else None


@cache
def fetcher(bootstrap_servers: str) -> RangeFetcher:
    """This process's connection."""
    return RangeFetcher(bootstrap_servers)


def read(bootstrap_servers: str, ranges: Iterable[Range]) -> Iterator[pa.RecordBatch]:
    """The records of the ranges, those that are still there."""
    connection = fetcher(bootstrap_servers)
    return (
        rows(records, wanted)
        for wanted in ranges
        for batches in connection.batches(wanted)
        if (records := _records(batches, wanted))
    )


def _records(batches: Sequence[RecordBatch], wanted: Range) -> list[Record]:
    """The records within the range, out of batches that may reach beyond it on both sides."""
    inside = [b for b in batches if not b.is_control and b.last_offset >= wanted.first and b.base_offset < wanted.end]
    records = list(chain.from_iterable(map(decode, inside)))
    if inside and (inside[0].base_offset < wanted.first or inside[-1].last_offset >= wanted.end):
        records = [record for record in records if wanted.first <= record.offset < wanted.end]
    return records


def rows(records: Sequence[Record], origin: Range) -> pa.RecordBatch:
    """Records as columns."""
    size = len(records)
    times = pa.array([record.timestamp * 1000 for record in records], pa.int64())
    headers = [
        [{"key": key, "value": value} for key, value in record.headers] if record.headers else None
        for record in records
    ]
    return pa.RecordBatch.from_arrays(
        [
            pa.array([record.key for record in records], pa.binary()),
            pa.array([record.value for record in records], pa.binary()),
            pa.repeat(pa.scalar(origin.topic, pa.string()), size),
            pa.repeat(pa.scalar(origin.partition, pa.int32()), size),
            pa.array([record.offset for record in records], pa.int64()),
            times.cast(_TIMESTAMP),
            pa.array([record.timestamp_type for record in records], pa.int32()),
            pa.array(headers, _HEADERS),
            pa.repeat(pa.scalar(origin.delivery_count, pa.int32()), size),
        ],
        schema=ARROW_SCHEMA,
    )
