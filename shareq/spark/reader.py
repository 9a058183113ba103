"""A task's work: fetch ranges of offsets, locked or not, and return their records as Arrow batches."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import pyarrow as pa

from shareq.admin.broker_routing import BrokerRouting
from shareq.admin.core import AdminCore, Operation, Send
from shareq.client.config import ClientConfig
from shareq.client.shell import perform
from shareq.log.records import CorruptBatch, Record, stream
from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.messages.fetch import FetchRequest, FetchResponse
from shareq.model.records import RecordBatch
from shareq.spark.ranges import Range
from shareq.spark.worker import spare_modules
from shareq.transports import transport_for

log = logging.getLogger(__name__)

T = TypeVar("T")

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
    """The records of a batch are lost, because their topic was deleted."""


class RangeFetcher:
    """Plain fetches, over one connection per process: a worker process runs many tasks."""

    def __init__(self, conf: Mapping[str, Any]) -> None:
        config = ClientConfig(conf, (), client="task")
        transport = transport_for(config["bootstrap.servers"], config.sockets)
        self._core = AdminCore(config, transport.rng())
        self._routing = BrokerRouting(self._core.backoff)
        self._connection = transport.connect(self._core, self._core.client_id)
        self._leaders: dict[tuple[str, int], int] = {}

    def batches(self, wanted: Range) -> Iterator[Sequence[RecordBatch]]:
        """The record batches with the offsets of a range, by response."""
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
        """Records from `cursor` on, and the next cursor. Retries retriable errors until the time-out."""
        place = FetchRequest.Partition(partition=wanted.partition, fetch_offset=cursor, partition_max_bytes=FETCH_BYTES)
        topic = FetchRequest.Topic(topic_id=TopicId(wanted.topic_id), partitions=(place,))
        request = FetchRequest(max_wait_ms=0, max_bytes=FETCH_BYTES, topics=(topic,))
        attempts = 0
        while True:
            leader = yield from self._leader(wanted)
            ((response, error, reason),) = yield [Send(leader, request)]
            if response is not None:
                error = response.error_code or _answer(response).error_code
            if not error and (step := _step(_answer(response), cursor, wanted.end)):
                return step
            if error is Errors.OFFSET_OUT_OF_RANGE:
                return max(cursor + 1, min(_answer(response).log_start_offset, wanted.end)), ()
            self._leaders.pop((wanted.topic, wanted.partition), None)
            attempts += 1
            yield self._routing.pause(attempts, error, f"{wanted.topic} [{wanted.partition}] at {cursor}", reason)

    def _leader(self, wanted: Range) -> Operation[int]:
        place = wanted.topic, wanted.partition
        attempts = 0
        while place not in self._leaders:
            image = yield from self._routing.metadata([wanted.topic])
            for topic in image.topics:
                if topic.topic_id != wanted.topic_id and not topic.error_code:
                    raise RecordsLost(f"topic {wanted.topic!r} was deleted: its id is no longer {wanted.topic_id}")
                for partition in topic.partitions:
                    if partition.leader_id >= 0:
                        self._leaders[wanted.topic, partition.partition_index] = partition.leader_id
            if place not in self._leaders:
                attempts += 1
                yield self._routing.pause(attempts, Errors.LEADER_NOT_AVAILABLE, f"{wanted.topic} [{wanted.partition}]")
        return self._leaders[place]


def _answer(response: FetchResponse) -> FetchResponse.Partition:
    return response.responses[0].partitions[0]


def _step(answer: FetchResponse.Partition, cursor: int, end: int) -> tuple[int, Sequence[RecordBatch]] | None:
    """The next cursor and the records of a response; None if it has nothing of the range."""
    if answer.records:
        return max(answer.records[-1].last_offset + 1, cursor), answer.records
    return (end, ()) if answer.high_watermark >= end else None


@cache
def fetcher(conf: tuple[tuple[str, Any], ...]) -> RangeFetcher:
    """The process's fetcher for this configuration."""
    return RangeFetcher(dict(conf))


def read(conf: Mapping[str, Any], ranges: Iterable[Range], *, leave_out: bool = False) -> Iterator[pa.RecordBatch]:
    """The records of the ranges that are still in the logs. `conf`: the connection settings.

    CorruptBatch for an unreadable batch: the query's member has read it before, so another attempt may succeed, and
    skipping it would lose its records. `leave_out`: skip unreadable batches with a warning, for batch reads.
    """
    connection = fetcher(tuple(sorted(conf.items())))
    for wanted in ranges:
        for batches in connection.batches(wanted):
            found = rows(_records(batches, wanted, leave_out), wanted)
            if found.num_rows:
                yield found
    spare_modules()  # only now: the first fetch loads modules, too


def _records(batches: Iterable[RecordBatch], wanted: Range, leave_out: bool) -> Iterator[Record]:
    """The records of batches, which may extend beyond the range on both sides."""
    for batch in batches:
        if batch.is_control or batch.last_offset < wanted.first or batch.base_offset >= wanted.end:
            continue
        try:
            yield from stream(batch, check_crc=True)
        except CorruptBatch as broken:
            if not leave_out:
                raise
            log.warning("%s [%d]: left out: %s", wanted.topic, wanted.partition, broken)


def rows(records: Iterable[Record], origin: Range) -> pa.RecordBatch:
    """The records within the range, as columns.

    A single pass that keeps no record: with a list of them, garbage collection would cost three times the decoding.
    """
    keys: list[bytes | None] = []
    values: list[bytes | None] = []
    offsets: list[int] = []
    times: list[int] = []
    kinds: list[int] = []
    headers: list[Any] = []
    _, _, _, first, end, _ = origin
    for record in records:
        offset = record.offset
        if first <= offset < end:
            keys.append(record.key)
            values.append(record.value)
            offsets.append(offset)
            times.append(record.timestamp)
            kinds.append(record.timestamp_type)
            headers.append(record.headers or None)
    size = len(offsets)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(keys, pa.binary()),
            pa.array(values, pa.binary()),
            pa.repeat(pa.scalar(origin.topic, pa.string()), size),
            pa.repeat(pa.scalar(origin.partition, pa.int32()), size),
            pa.array(offsets, pa.int64()),
            pa.array(times, pa.timestamp("ms", tz="UTC")).cast(_TIMESTAMP),
            pa.array(kinds, pa.int32()),
            _of_headers(headers),
            pa.repeat(pa.scalar(origin.delivery_count, pa.int32()), size),
        ],
        schema=ARROW_SCHEMA,
    )


def _of_headers(headers: Sequence[Sequence[tuple[str, bytes | None]] | None]) -> pa.Array:
    """The headers; null for a record without any, as in Spark's source."""
    if not any(headers):
        return pa.nulls(len(headers), _HEADERS)
    structs = ([{"key": key, "value": value} for key, value in each] if each else None for each in headers)
    return pa.array(list(structs), _HEADERS)
