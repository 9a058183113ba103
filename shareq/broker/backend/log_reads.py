"""Reads of the backend's logs for share-partition leaders, and the watch for records that arrive.

BEHAVIOUR.md, section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from shareq.broker.backend.client import BackendClient
from shareq.broker.loop import EventLoop
from shareq.model.actor import MAX_OFFSET, Answer, FindOffset, LogRead, OffsetFound, ReadLog
from shareq.model.errors import Errors
from shareq.model.ids import TopicId, TopicIdPartition, TopicPartition
from shareq.model.image import ClusterImage
from shareq.model.messages.data import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, ListOffsetsRequest, ListOffsetsResponse
from shareq.model.messages.fetch import FetchRequest, FetchResponse
from shareq.model.records import AbortedTransaction, RecordBatch
from shareq.model.states import IsolationLevel

READS = "reads"
"""The lane of reads that do not wait."""

WATCH_WAIT_MS = 200
"""How long a fetch of the watch waits for records; a partition that begins to be watched may wait as long if all lanes
of the watch are in use."""

WATCH_LANES = 4
"""The most fetches of the watch that wait at one broker."""

AHEAD_BYTES, ALL_AHEAD_BYTES = 64 << 10, 1 << 20
"""The bytes of new records that a fetch of the watch returns for a partition, and for all: the read that follows needs
no request of its own."""

RETRY_MS = 100

UNREACHABLE = Errors.NOT_LEADER_OR_FOLLOWER
"""The error of reads while the backend does not answer: clients refresh their metadata and try again."""

_STALE = frozenset(
    {
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.UNKNOWN_TOPIC_ID,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.NETWORK_EXCEPTION,
    }
)
"""Errors after which the metadata is read again."""


class _Read(NamedTuple):
    at: TopicIdPartition
    effect: ReadLog
    done: Callable[[LogRead], object]


class _Watched(NamedTuple):
    """The end of the log that a read has reached, and the call for records beyond it."""

    at: TopicIdPartition
    offset: int
    grew: Callable[[], object]


class LogReads:
    """The reads of the share-partition leader of one broker, which are sent to the same broker of the backend.

    `stale()` is called when an answer shows that the image is out of date, and `moved(partition, log start, high
    watermark)` with the offsets in each answer.
    """

    def __init__(
        self,
        node: int,
        client: BackendClient,
        loop: EventLoop,
        *,
        stale: Callable[[], object],
        moved: Callable[[TopicIdPartition, int, int], object],
    ) -> None:
        self.image = ClusterImage()
        self._node = node
        self._client = client
        self._loop = loop
        self._stale = stale
        self._moved = moved
        self._reads: list[_Read] = []
        self._watched: dict[TopicIdPartition, _Watched] = {}
        self._ahead: dict[tuple[TopicIdPartition, int], FetchResponse.Partition] = {}
        """(Partition, offset) -> what the watch has just fetched; for the reads of the same turn of the loop."""
        self._idle_lanes = [f"watch-{number}" for number in range(WATCH_LANES)]

    # ---- reads -------------------------------------------------------------------------------------------------------

    def read(self, effect: ReadLog, done: Callable[[LogRead], object], grew: Callable[[], object]) -> None:
        """Read; `done` gets the result. After a read up to the end of the log, `grew()` is called once when there are
        more records. Reads of one turn of the loop are sent together."""
        topic = self.image.topics.get(effect.topic_partition.topic)
        if topic is None:
            self._loop.post(done, LogRead(effect.id, Errors.UNKNOWN_TOPIC_OR_PARTITION))
            return
        at = TopicIdPartition(topic.topic_id, effect.topic_partition.partition)

        def take(read: LogRead) -> None:
            if not read.error and _reached_end(effect, read):
                self._watch(_Watched(at, read.high_watermark, grew))
            done(read)

        ahead = self._ahead.get((at, effect.offset))
        if ahead is not None and effect.isolation_level == IsolationLevel.READ_UNCOMMITTED:
            self._loop.post(take, _log_read(effect.id, ahead, effect.max_bytes))
            return
        if not self._reads:
            self._loop.post(self._send)
        self._reads.append(_Read(at, effect, take))

    def _send(self) -> None:
        """Send the collected reads: one request for each isolation level, and for each read of the same partition."""
        reads, self._reads = self._reads, []
        while reads:
            level = reads[0].effect.isolation_level
            chosen: dict[TopicIdPartition, _Read] = {}
            later = []
            for read in reads:
                if read.effect.isolation_level == level and read.at not in chosen:
                    chosen[read.at] = read
                else:
                    later.append(read)
            reads = later
            self._fetch(chosen, level)

    def _fetch(self, reads: dict[TopicIdPartition, _Read], level: int) -> None:
        partitions = [(read.at, read.effect.offset, read.effect.max_bytes) for read in reads.values()]
        total = sum(read.effect.max_bytes for read in reads.values())
        request = fetch_request(partitions, total, level, max_wait_ms=0)
        self._client.call(self._node, request, lambda answer: self._fetched(reads, answer), lane=READS)

    def _fetched(self, reads: dict[TopicIdPartition, _Read], answer: Answer) -> None:
        found = fetched_partitions(answer)
        for at, read in reads.items():
            partition = found.get(at)
            error = UNREACHABLE if partition is None else partition.error_code
            if error in _STALE:
                self._stale()
            if partition is not None and not error:
                self._moved(at, partition.log_start_offset, partition.high_watermark)
                read.done(_log_read(read.effect.id, partition))
            elif error is Errors.OFFSET_OUT_OF_RANGE:
                self._find_bounds(read)
            else:
                read.done(LogRead(read.effect.id, error))

    def _find_bounds(self, read: _Read) -> None:
        """Look up the offsets of the log, which Kafka's response with OFFSET_OUT_OF_RANGE does not have."""
        bounds: list[int] = []

        def take(error: Errors, offset: int) -> None:
            bounds.append(offset)
            if error:
                read.done(LogRead(read.effect.id, error))
            elif len(bounds) == 1:
                self._look_up(read.effect.topic_partition, LATEST_TIMESTAMP, take)
            else:
                start, end = bounds
                read.done(LogRead(read.effect.id, Errors.OFFSET_OUT_OF_RANGE, (), end, start, end))

        self._look_up(read.effect.topic_partition, EARLIEST_TIMESTAMP, take)

    # ---- offsets -----------------------------------------------------------------------------------------------------

    def find_offset(self, effect: FindOffset, done: Callable[[OffsetFound], object]) -> None:
        """Look an offset up by timestamp; `done` gets the result."""
        at, timestamp = effect.topic_partition, effect.timestamp
        self._look_up(at, timestamp, lambda error, offset: done(OffsetFound(effect.id, error, offset)))

    def _look_up(self, at: TopicPartition, timestamp: int, done: Callable[[Errors, int], object]) -> None:
        partition = ListOffsetsRequest.Partition(partition_index=at.partition, timestamp=timestamp)
        topic = ListOffsetsRequest.Topic(name=at.topic, partitions=(partition,))
        request = ListOffsetsRequest(topics=(topic,))

        def take(answer: Answer) -> None:
            found = answer.response.topics if isinstance(answer.response, ListOffsetsResponse) else ()
            result = next((p for one in found for p in one.partitions), None)
            error = UNREACHABLE if result is None else result.error_code
            if error in _STALE:
                self._stale()
            done(error, -1 if result is None else result.offset)

        self._client.call(self._node, request, take)

    # ---- the watch ---------------------------------------------------------------------------------------------------

    def _watch(self, watched: _Watched) -> None:
        new = not self._watched
        self._watched[watched.at] = watched
        if new:
            self._loop.post(self._wait)

    def _wait(self) -> None:
        """Wait for records of all partitions that no fetch waits for. Without a free lane, the next one that returns
        takes them."""
        if self._watched and self._idle_lanes:
            lane, waiting = self._idle_lanes.pop(), self._watched
            self._watched = {}
            partitions = [(one.at, one.offset, AHEAD_BYTES) for one in waiting.values()]
            level = IsolationLevel.READ_UNCOMMITTED
            request = fetch_request(partitions, ALL_AHEAD_BYTES, level, max_wait_ms=WATCH_WAIT_MS)
            self._client.call(self._node, request, lambda answer: self._waited(lane, waiting, answer), lane=lane)

    def _waited(self, lane: str, waiting: dict[TopicIdPartition, _Watched], answer: Answer) -> None:
        """Report the partitions that have grown; the others are waited for again. A partition that has been read to its
        end meanwhile keeps its newer entry."""
        self._idle_lanes.append(lane)
        found = fetched_partitions(answer)
        failed = []
        for at, watched in waiting.items():
            partition = found.get(at)
            if partition is None or partition.error_code:
                failed.append(watched)
            elif partition.records or partition.high_watermark > watched.offset:
                self._moved(at, partition.log_start_offset, partition.high_watermark)
                if partition.records:
                    self._ahead[at, watched.offset] = partition
                watched.grew()
            else:
                self._watched.setdefault(at, watched)
        if failed:
            self._stale()
            self._loop.at(self._loop.now_ms() + RETRY_MS, lambda: [watched.grew() for watched in failed])
        self._loop.post(self._ahead.clear)
        self._wait()


def _reached_end(effect: ReadLog, read: LogRead) -> bool:
    """True if the read has returned all that can be read now."""
    committed = effect.isolation_level == IsolationLevel.READ_COMMITTED
    end = read.last_stable_offset if committed else read.high_watermark
    return not read.batches or read.batches[-1].last_offset + 1 >= end


def _log_read(read_id: int, partition: FetchResponse.Partition, max_bytes: int | None = None) -> LogRead:
    """`max_bytes`: the limit of batches beyond the first one; None: all of the response."""
    aborted = tuple(_aborted(one, partition.records) for one in partition.aborted_transactions or ())
    batches = partition.records
    if max_bytes is not None:
        sizes = accumulate(batch.size for batch in batches)
        batches = tuple(b for n, (b, size) in enumerate(zip(batches, sizes, strict=True)) if not n or size <= max_bytes)
    return LogRead(
        read_id,
        Errors.NONE,
        batches,
        partition.high_watermark,
        partition.log_start_offset,
        partition.last_stable_offset,
        aborted,
    )


def _aborted(one: FetchResponse.AbortedTransaction, batches: Sequence[RecordBatch]) -> AbortedTransaction:
    """An aborted transaction with the offset of its marker: a response has only the first offset. Without a marker in
    these batches it lasts beyond them."""
    markers = (b.base_offset for b in batches if b.is_control and b.producer_id == one.producer_id)
    last_offset = next((offset for offset in markers if offset >= one.first_offset), MAX_OFFSET)
    return AbortedTransaction(one.producer_id, one.first_offset, last_offset)


def fetch_request(
    partitions: Sequence[tuple[TopicIdPartition, int, int]], max_bytes: int, isolation_level: int, *, max_wait_ms: int
) -> FetchRequest:
    """A fetch outside of any session of (partition, offset, max bytes)."""
    topics: dict[TopicId, list[FetchRequest.Partition]] = {}
    for at, offset, limit in partitions:
        wanted = FetchRequest.Partition(partition=at.partition, fetch_offset=offset, partition_max_bytes=limit)
        topics.setdefault(at.topic_id, []).append(wanted)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        topics=tuple(FetchRequest.Topic(topic_id=i, partitions=tuple(found)) for i, found in topics.items()),
    )


def fetched_partitions(answer: Answer) -> dict[TopicIdPartition, FetchResponse.Partition]:
    """The partitions in the answer to a fetch; empty if there is no response."""
    response = answer.response
    topics: Iterable[FetchResponse.Topic] = response.responses if isinstance(response, FetchResponse) else ()
    return {TopicIdPartition(topic.topic_id, p.partition_index): p for topic in topics for p in topic.partitions}
