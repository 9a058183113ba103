"""The log of one coordinator's shard in the backend, with one writer at a time. BEHAVIOUR.md, section 3.

A writer is a producer with a transactional id of the shard: the backend fences the former writer when a new one begins,
and recognizes a batch that is sent twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from shareq.broker.backend.client import BackendClient
from shareq.broker.backend.log_reads import fetch_request, fetched_partitions
from shareq.broker.coordinator_log import CHUNK_BYTES, records_read
from shareq.broker.loop import EventLoop
from shareq.log.records import encode_batch
from shareq.log.results import ReadResult
from shareq.model.actor import Answer, Appended, AppendRecords, ReadRecords, RecordsRead
from shareq.model.errors import Errors
from shareq.model.ids import TopicIdPartition, TopicPartition
from shareq.model.messages.base import Request
from shareq.model.messages.cluster import CoordinatorType, FindCoordinatorRequest, FindCoordinatorResponse
from shareq.model.messages.data import (
    EARLIEST_TIMESTAMP,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ProduceRequest,
    ProduceResponse,
)
from shareq.model.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from shareq.model.records import CoordinatorRecord
from shareq.model.states import IsolationLevel

RETRY_MS = 100

BEGIN_VERSION = 4
"""The version of InitProducerId: without the transactions of KIP-890, which Kafka 3.9 does not have."""

FENCED = frozenset({Errors.INVALID_PRODUCER_EPOCH, Errors.PRODUCER_FENCED, Errors.OUT_OF_ORDER_SEQUENCE_NUMBER})
"""Errors of a writer that another one has replaced."""

_REFUSED = frozenset(
    {
        Errors.MESSAGE_TOO_LARGE,
        Errors.RECORD_LIST_TOO_LARGE,
        Errors.INVALID_RECORD,
        Errors.CORRUPT_MESSAGE,
        Errors.TOPIC_AUTHORIZATION_FAILED,
        Errors.CLUSTER_AUTHORIZATION_FAILED,
        Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
"""Errors of a batch that is not in the log, and that a second attempt would not change."""


class Place(NamedTuple):
    """Where the backend keeps a shard: the partition, its topic's id, and the present leader (-1: none)."""

    at: TopicPartition
    topic_id: Any
    leader: int


class Locator(Protocol):
    """What a shard's log needs of the metadata."""

    def place(self, shard: TopicPartition) -> Place | None:
        """None if the topic does not exist."""
        ...

    def stale(self) -> None:
        """An answer shows that the metadata is out of date."""
        ...


class ShardLog:
    """Reads, writes and prunes the log of a shard until `close()`.

    A request that fails for a passing reason is sent again until it succeeds: an append whose result is unknown must
    not be reported as failed. `fence` is a record without an effect.
    """

    def __init__(
        self, shard: TopicPartition, fence: CoordinatorRecord, client: BackendClient, loop: EventLoop, locator: Locator
    ) -> None:
        self.closed = False
        self.shard = shard
        self._fence = fence
        self._client = client
        self._loop = loop
        self._locator = locator
        self._producer_id = self._producer_epoch = -1
        self._sequence = 0

    def close(self) -> None:
        """Send nothing more: another process or broker is the writer now. Results under way are dropped."""
        self.closed = True

    def _again(self, call: Callable[[], object]) -> None:
        """Repeat a step after a pause, with newer metadata."""
        self._locator.stale()
        self._loop.at(self._loop.time_ms() + RETRY_MS, lambda: self.closed or call())

    def _unless_closed(self, done: Callable[[Answer], None]) -> Callable[[Answer], None]:
        def take(answer: Answer) -> None:
            if not self.closed:
                done(answer)

        return take

    def _send(
        self, request: Callable[[Place], Request], done: Callable[[Answer], None], again: Callable[[], object]
    ) -> None:
        """Send a request to the leader; without one, repeat the step."""
        place = self._locator.place(self.shard)
        if place is None or place.leader < 0:
            self._again(again)
        else:
            lane = f"shard-{place.at}"
            self._client.call(place.leader, request(place), self._unless_closed(done), lane=lane)

    # ---- the writer --------------------------------------------------------------------------------------------------

    def open(self, done: Callable[[Errors], object]) -> None:
        """Become the writer: fence the former one, and write the fence, so that the log itself refuses it from here on.
        Only then may the log be read to its end."""
        key = f"shareq-{self.shard}"
        request = FindCoordinatorRequest(key_type=CoordinatorType.TRANSACTION, coordinator_keys=(key,))

        def found(answer: Answer) -> None:
            response = answer.response
            coordinators = response.coordinators if isinstance(response, FindCoordinatorResponse) else ()
            node = next((one.node_id for one in coordinators if not one.error_code), -1)
            if self.closed:
                return
            if node < 0:
                self._again(lambda: self.open(done))
            else:
                begin = InitProducerIdRequest(transactional_id=key)
                self._client.call(node, begin, self._unless_closed(begun), version=BEGIN_VERSION)

        def begun(answer: Answer) -> None:
            response = answer.response
            error = response.error_code if isinstance(response, InitProducerIdResponse) else Errors.NETWORK_EXCEPTION
            if error or not isinstance(response, InitProducerIdResponse):
                if error in _REFUSED:
                    done(error)
                else:
                    self._again(lambda: self.open(done))
                return
            self._producer_id, self._producer_epoch, self._sequence = response.producer_id, response.producer_epoch, 0
            self._append((self._fence,), lambda error, _: done(error))

        self._client.call_any(request, found)

    def append(self, effect: AppendRecords, done: Callable[[Appended], object]) -> None:
        """Append records as one batch; `done` gets the result, which is definite."""
        self._append(effect.records, lambda error, offset: done(Appended(effect.id, error, offset)))

    def _append(self, records: tuple[CoordinatorRecord, ...], done: Callable[[Errors, int], object]) -> None:
        now_ms = self._loop.now_ms()
        batch = encode_batch(
            ((record.key, record.value, (), now_ms) for record in records),
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=self._sequence,
        )

        def request(place: Place) -> Request:
            partition = ProduceRequest.Partition(index=place.at.partition, records=batch)
            topic = ProduceRequest.Topic(topic_id=place.topic_id, name=place.at.topic, partitions=(partition,))
            return ProduceRequest(topics=(topic,))

        def attempt() -> None:
            self._send(request, taken, attempt)

        def taken(answer: Answer) -> None:
            topics = answer.response.responses if isinstance(answer.response, ProduceResponse) else ()
            result = next((p for topic in topics for p in topic.partitions), None)
            error = Errors.NETWORK_EXCEPTION if result is None else result.error_code
            if result is not None and not error:
                self._sequence = (self._sequence + len(records)) & 0x7FFFFFFF
                done(Errors.NONE, result.base_offset)
            elif error in FENCED:
                done(Errors.NOT_COORDINATOR, -1)
            elif error in _REFUSED:
                done(error, -1)
            else:
                self._again(attempt)

        attempt()

    # ---- reading and pruning -----------------------------------------------------------------------------------------

    def read(self, effect: ReadRecords, done: Callable[[RecordsRead], object], *, wait_ms: int = 0) -> None:
        """Read a chunk of committed records; `done` gets it. A read below the log start begins at the log start. At the
        end of the log it waits for records, at most `wait_ms`."""
        offset = effect.offset

        def request(place: Place) -> Request:
            at = TopicIdPartition(place.topic_id, place.at.partition)
            level = IsolationLevel.READ_UNCOMMITTED
            return fetch_request([(at, offset, CHUNK_BYTES)], CHUNK_BYTES, level, max_wait_ms=wait_ms)

        def attempt() -> None:
            self._send(request, taken, attempt)

        def taken(answer: Answer) -> None:
            partition = next(iter(fetched_partitions(answer).values()), None)
            if partition is not None and not partition.error_code:
                ends = partition.high_watermark, partition.log_start_offset, partition.last_stable_offset
                read = ReadResult(Errors.NONE, partition.records, *ends)
                done(records_read(effect.id, read, offset))
            elif partition is not None and partition.error_code is Errors.OFFSET_OUT_OF_RANGE:
                self._find_start(lambda start: self.read(effect._replace(offset=start), done))
            else:
                self._again(attempt)

        attempt()

    def _find_start(self, done: Callable[[int], object]) -> None:
        def request(place: Place) -> Request:
            index = place.at.partition
            partition = ListOffsetsRequest.Partition(partition_index=index, timestamp=EARLIEST_TIMESTAMP)
            topic = ListOffsetsRequest.Topic(name=place.at.topic, partitions=(partition,))
            return ListOffsetsRequest(topics=(topic,))

        def attempt() -> None:
            self._send(request, taken, attempt)

        def taken(answer: Answer) -> None:
            topics = answer.response.topics if isinstance(answer.response, ListOffsetsResponse) else ()
            result = next((p for topic in topics for p in topic.partitions), None)
            if result is None or result.error_code or result.offset < 0:
                self._again(attempt)
            else:
                done(result.offset)

        attempt()

    def delete_before(self, offset: int, done: Callable[[Errors], object]) -> None:
        """Delete the records before `offset`; `done` gets the error, and the caller decides about another attempt."""

        def request(place: Place) -> Request:
            partition = DeleteRecordsRequest.Partition(partition_index=place.at.partition, offset=offset)
            topic = DeleteRecordsRequest.Topic(name=place.at.topic, partitions=(partition,))
            return DeleteRecordsRequest(topics=(topic,))

        def taken(answer: Answer) -> None:
            topics = answer.response.topics if isinstance(answer.response, DeleteRecordsResponse) else ()
            result = next((p for topic in topics for p in topic.partitions), None)
            done(Errors.NETWORK_EXCEPTION if result is None else result.error_code)

        self._send(request, taken, lambda: done(Errors.NOT_LEADER_OR_FOLLOWER))
