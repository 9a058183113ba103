"""Reading and pruning the log of one coordinator's shard in the backend. BEHAVIOUR.md, section 3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from shareq.broker.backend.client import BackendClient
from shareq.broker.backend.fetches import fetch_request, fetched_partitions
from shareq.broker.backend.generations import Generations
from shareq.broker.coordinator_log import CHUNK_BYTES, records_read
from shareq.broker.loop import EventLoop
from shareq.log.results import ReadResult
from shareq.model.actor import Answer, ReadRecords, RecordsRead
from shareq.model.errors import Errors
from shareq.model.ids import TopicIdPartition, TopicPartition
from shareq.model.messages.base import Request
from shareq.model.messages.data import (
    EARLIEST_TIMESTAMP,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from shareq.model.messages.fetch import FetchResponse
from shareq.model.records import CoordinatorRecord
from shareq.model.states import IsolationLevel

RETRY_MS = 100


class ShardPlace(NamedTuple):
    """Where the backend keeps a shard: the partition, its topic's id, and the present leader (-1: none)."""

    at: TopicPartition
    topic_id: Any
    leader: int


class Locator(Protocol):
    """What a shard's log needs of the metadata."""

    def place(self, shard: TopicPartition) -> ShardPlace | None:
        """None if the topic does not exist."""
        ...

    def stale(self) -> None:
        """An answer shows that the metadata is out of date."""
        ...


class ShardReads:
    """Reads and prunes the log of a shard until `close()`. A request that fails for a passing reason is sent again
    until it succeeds. `fence`: the record that a writer begins with; the log is read from its start on."""

    def __init__(
        self, shard: TopicPartition, fence: CoordinatorRecord, client: BackendClient, loop: EventLoop, locator: Locator
    ) -> None:
        self.closed = False
        self.shard = shard
        self._client = client
        self._loop = loop
        self._locator = locator
        self._generations = Generations(fence)

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
        self, request: Callable[[ShardPlace], Request], done: Callable[[Answer], None], again: Callable[[], object]
    ) -> None:
        """Send a request to the leader; without one, repeat the step."""
        place = self._locator.place(self.shard)
        if place is None or place.leader < 0:
            self._again(again)
        else:
            lane = f"shard-{place.at}"
            self._client.call(place.leader, request(place), self._unless_closed(done), lane=lane)

    def read(self, effect: ReadRecords, done: Callable[[RecordsRead], object], *, wait_ms: int = 0) -> None:
        """Read a chunk of committed records; `done` gets it, without those of replaced writers. A read below the log
        start begins at the log start. At the end of the log it waits for records, at most `wait_ms`."""
        offset = effect.offset

        def taken(partition: FetchResponse.Partition) -> None:
            batches = partition.records
            ends = partition.high_watermark, partition.log_start_offset, partition.last_stable_offset
            found = records_read(effect.id, ReadResult(Errors.NONE, self._generations.valid(batches), *ends), offset)
            end = batches[-1].last_offset + 1 if batches else partition.high_watermark
            done(found._replace(next_offset=end, done=end >= partition.high_watermark))

        def below() -> None:
            self._find_start(lambda start: self.read(effect._replace(offset=start), done))

        self._fetch(offset, taken, below, wait_ms)

    def _fetch(
        self,
        offset: int,
        done: Callable[[FetchResponse.Partition], object],
        out_of_range: Callable[[], object],
        wait_ms: int = 0,
    ) -> None:
        def request(place: ShardPlace) -> Request:
            at = TopicIdPartition(place.topic_id, place.at.partition)
            level = IsolationLevel.READ_UNCOMMITTED
            return fetch_request([(at, offset, CHUNK_BYTES)], CHUNK_BYTES, level, max_wait_ms=wait_ms)

        def attempt() -> None:
            self._send(request, taken, attempt)

        def taken(answer: Answer) -> None:
            partition = next(iter(fetched_partitions(answer).values()), None)
            if partition is not None and not partition.error_code:
                done(partition)
            elif partition is not None and partition.error_code is Errors.OFFSET_OUT_OF_RANGE:
                out_of_range()
            else:
                self._again(attempt)

        attempt()

    def _find_start(self, done: Callable[[int], object]) -> None:
        def request(place: ShardPlace) -> Request:
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

        def request(place: ShardPlace) -> Request:
            partition = DeleteRecordsRequest.Partition(partition_index=place.at.partition, offset=offset)
            topic = DeleteRecordsRequest.Topic(name=place.at.topic, partitions=(partition,))
            return DeleteRecordsRequest(topics=(topic,))

        def taken(answer: Answer) -> None:
            topics = answer.response.topics if isinstance(answer.response, DeleteRecordsResponse) else ()
            result = next((p for topic in topics for p in topic.partitions), None)
            done(Errors.NETWORK_EXCEPTION if result is None else result.error_code)

        self._send(request, taken, lambda: done(Errors.NOT_LEADER_OR_FOLLOWER))
